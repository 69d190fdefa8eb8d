// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Runs CPU kernels on the device's memory, without copies: each tensor of the
// device is replaced by a CPU tensor over the same bytes, and what the kernel
// returns is turned into tensors of the device again.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

namespace flexmem_torch {

// The CPU aliases of one call's arguments.
class Aliases {
 public:
  // A CPU tensor over the same bytes, which it keeps alive. Tensors that share a
  // storage get aliases that share one, and the same tensor gets the same alias. A
  // tensor that is not the device's is returned as it is. @argument: what the tensor
  // is of, or nullptr.
  at::Tensor toCpu(const at::Tensor& tensor, const c10::Argument* argument = nullptr);

  // After the call: a storage that the kernel has resized is resized on the
  // device, and changes of sizes and strides reach the original tensors.
  void writeBack();

  // A result: an alias becomes its original, a view of an alias a view on the
  // device. Any other CPU tensor is taken over, and is an alias afterwards.
  at::Tensor toDevice(const at::Tensor& result);

  // Throws c10::Error if an argument must be on the device as the others are. A CPU
  // tensor without dimensions is a number: it may be read, but not written.
  void checkDevices(const c10::FunctionSchema& schema) const;

  // The CPU's generator in place of ours.
  at::Generator toCpu(const at::Generator& generator);

  // Whether the kernel has a generator.
  bool draws() const {
    return draws_;
  }

 private:
  struct TensorPair {
    at::Tensor original;
    at::Tensor alias;
  };
  // @data and @bytes: what the alias was made with.
  struct StoragePair {
    c10::Storage device;
    c10::Storage cpu;
    const void* data;
    size_t bytes;
  };

  c10::Storage aliasStorage(const c10::Storage& device);
  const c10::Storage* findDevice(const c10::StorageImpl* cpu) const;
  c10::Storage takeOver(const c10::Storage& cpu);

  c10::SmallVector<TensorPair, 6> tensors_;
  c10::SmallVector<StoragePair, 6> storages_;
  c10::SmallVector<at::Tensor, 2> cpuTensors_;
  // Arguments that are on the CPU and are not numbers.
  c10::SmallVector<const c10::Argument*, 2> onCpu_;
  bool draws_ = false;
};

// Replaces the arguments of a call, which are on top of the stack, by what the CPU
// takes: aliases, its device, its generator.
void argumentsToCpu(Aliases& aliases, const c10::OperatorHandle& op,
                    torch::jit::Stack* stack);

// Lets an alias follow its original after the storage has got other bytes. Throws
// c10::Error if there are fewer than the alias had.
void followOriginal(const at::Tensor& alias);

// The kernel of every operator that has one for the CPU.
void aliasKernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Counts since the program began.
struct AliasCounters {
  int64_t calls;
  // Results that had to be copied, because they were not in the device's
  // memory.
  int64_t copied;
};
AliasCounters aliasCounters() noexcept;

} // namespace flexmem_torch
