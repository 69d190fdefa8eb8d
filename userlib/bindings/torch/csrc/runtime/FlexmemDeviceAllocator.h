// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// PyTorch's allocators over FlexmemMemory.h.
#pragma once

#include <c10/core/Allocator.h>

#include <utility>

namespace flexmem_torch {

inline const c10::Device kCpu(c10::DeviceType::CPU);

// Allocates tensors of the thread's current device. The context of a DataPtr is the
// pointer.
c10::Allocator* deviceAllocator();

// While a KernelScope lives, CPU tensors that its thread allocates are in a
// device's memory too. So the results of a kernel become tensors of the device
// without a copy. Without a KernelScope a thread uses the allocator that
// PyTorch had.
class KernelScope {
 public:
  explicit KernelScope(c10::DeviceIndex index) : before_(std::exchange(device, index)) {}
  ~KernelScope() {
    device = before_;
  }
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

  // While a Pause lives, its thread behaves as if it were in no KernelScope.
  class Pause {
   public:
    Pause() : before_(std::exchange(device, -1)) {}
    ~Pause() {
      device = before_;
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    c10::DeviceIndex before_;
  };

  // The device of the innermost KernelScope, or -1.
  static thread_local c10::DeviceIndex device;

 private:
  c10::DeviceIndex before_;
};

// Whether a DataPtr owns memory of flexmem, whatever device it names.
bool isOurs(const c10::DataPtr& data) noexcept;

} // namespace flexmem_torch
