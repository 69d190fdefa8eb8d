// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Runs CPU kernels on a device's memory, without copies: each tensor of the
// device is replaced by a CPU tensor over the same bytes, and what the kernel
// returns is turned into tensors of the device again.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <optional>

namespace flexmem_torch {

// The CPU aliases of one call's arguments.
class Aliases {
 public:
  // Returns a CPU tensor over the bytes of @tensor, and the CPU tensor keeps
  // the bytes alive. The same tensor always gets the same alias, and aliases
  // share a storage if their tensors do. A tensor that is not on the device is
  // returned unchanged.
  // @argument: the argument that the tensor belongs to, or nullptr.
  at::Tensor toCpu(const at::Tensor& tensor, const c10::Argument* argument = nullptr);

  // Called after the kernel. If the kernel has resized the storage of an alias,
  // gives the new bytes and size to the device's storage. Copies changed sizes
  // and strides to the original tensors.
  void writeBack();

  // Turns a result into a tensor of the device: an alias into its original, a
  // view of an alias into a view on the device. Any other CPU tensor becomes an
  // alias of a new device tensor, which takes over its bytes.
  at::Tensor toDevice(const at::Tensor& result);

  // Throws c10::Error if some arguments are on the device, and another one,
  // which must be there too, is on the CPU or on another device. A CPU tensor
  // without dimensions is a number: the kernel may read it, but not write to it.
  void checkDevices(const c10::FunctionSchema& schema) const;

  // Returns the CPU generator inside a flexmem generator.
  at::Generator toCpu(const at::Generator& generator);

  // An argument names the device of the results. A tensor among the arguments
  // decides instead.
  void chooseDevice(c10::Device device);

  // The device on which the kernel runs: that of the first tensor, else the chosen
  // one, else the thread's current device.
  c10::Device device() const;

  // Whether the kernel draws random numbers from a generator.
  bool draws() const {
    return draws_;
  }

 private:
  struct TensorPair {
    at::Tensor original;
    at::Tensor alias;
  };
  // The storage of an alias, and the device's storage with the same bytes.
  // @data and @bytes: address and size when the alias was made.
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
  // The first argument on another device than the first tensor, and that device.
  const c10::Argument* elsewhere_ = nullptr;
  std::optional<c10::Device> other_;
  std::optional<c10::Device> chosen_;
  bool draws_ = false;
};

// The arguments of a call are on top of the stack. Replaces device tensors by
// aliases, the device by the CPU, and a generator by the CPU's generator.
void argumentsToCpu(Aliases& aliases, const c10::OperatorHandle& op,
                    torch::jit::Stack* stack);

// Makes an alias use the present bytes of its original, because the original's
// storage may have moved. Throws c10::Error if the original has fewer bytes
// than the alias.
void followOriginal(const at::Tensor& alias);

// The device's kernel of every operator that has a CPU kernel.
void aliasKernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Counts since the program began.
struct AliasCounters {
  int64_t calls;
  // Results that were copied, because they were not in the device's memory.
  int64_t copied;
};
AliasCounters aliasCounters() noexcept;

} // namespace flexmem_torch
