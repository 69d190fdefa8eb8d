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
  // A CPU tensor over the same bytes, which it keeps alive. Tensors that share
  // a storage get aliases that share one, and the same tensor always gets the
  // same alias. A tensor that is not on the device is returned unchanged.
  // @argument: the argument that the tensor belongs to, or nullptr.
  at::Tensor toCpu(const at::Tensor& tensor, const c10::Argument* argument = nullptr);

  // Called after the kernel. Resizes the device's storage of each storage that
  // the kernel has resized, and copies changed sizes and strides to the
  // original tensors.
  void writeBack();

  // Turns a result into a tensor of the device: an alias into its original, a
  // view of an alias into a view on the device. The bytes of any other CPU
  // tensor are taken over, and it is an alias afterwards.
  at::Tensor toDevice(const at::Tensor& result);

  // Throws c10::Error if an argument is on the CPU that must be on the device
  // like the others. A CPU tensor without dimensions is a number: it may be
  // read, but not written.
  void checkDevices(const c10::FunctionSchema& schema) const;

  // Returns the CPU's generator that belongs to ours.
  at::Generator toCpu(const at::Generator& generator);

  // Whether the kernel draws random numbers from a generator.
  bool draws() const {
    return draws_;
  }

 private:
  struct TensorPair {
    at::Tensor original;
    at::Tensor alias;
  };
  // The storage of an alias, and that of the device. @data and @bytes: address
  // and size when the alias was made.
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

// Makes an alias use the present bytes of its original, whose storage may have
// got other bytes since. Throws c10::Error if there are fewer bytes than the
// alias had.
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
