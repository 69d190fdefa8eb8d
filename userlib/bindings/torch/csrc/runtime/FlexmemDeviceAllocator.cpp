// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "FlexmemDeviceAllocator.h"

#include "FlexmemDevices.h"
#include "FlexmemMemory.h"
#include "FlexmemProvider.h"
#include "FlexmemStatistics.h"

#include <c10/core/CPUAllocator.h>

namespace flexmem_torch {

thread_local c10::DeviceIndex KernelScope::device = -1;

namespace {

// Tells PyTorch's profiler about an allocation or a free.
void report(void* pointer, int64_t sign) {
  struct flexmem_cache_allocation allocation{};
  struct flexmem_cache_statistics s{};
  const DeviceIndex index = deviceOf(pointer);
  if (index < 0 ||
      flexmem_cache_lookup_pointer(cache(index), pointer, &allocation,
                                   sizeof(allocation)) ||
      flexmem_cache_statistics(cache(index), &s, sizeof(s))) {
    return;
  }
  // A free is reported before the memory is freed.
  const auto size = static_cast<int64_t>(allocation.size);
  const uint64_t gone = sign < 0 ? allocation.size : 0;
  c10::reportMemoryUsageToProfiler(
      pointer, sign * size, s.allocated_bytes[FLEXMEM_CACHE_ALL].current - gone,
      s.reserved_bytes[FLEXMEM_CACHE_ALL].current, deviceAt(index));
}

void deleteOurs(void* pointer) {
  if (c10::memoryProfilingEnabled()) {
    report(pointer, -1);
  }
  deallocate(pointer);
}

// @named: the device that the DataPtr names.
c10::DataPtr make(size_t bytes, DeviceIndex index, c10::Device named) {
  void* pointer = allocate(bytes, index);
  if (c10::memoryProfilingEnabled()) {
    report(pointer, 1);
  }
  return {pointer, pointer, &deleteOurs, named};
}

#if FLEXMEM_TORCH_ACCELERATOR
using AllocatorOfDevice = c10::DeviceAllocator;
#else
using AllocatorOfDevice = c10::Allocator;
#endif

class DeviceAllocator final : public AllocatorOfDevice {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    return make(bytes, currentDevice(), deviceAt(currentDevice()));
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &deleteOurs;
  }
  void copy_data(void* dest, const void* src, size_t count) const override {
    default_copy_data(dest, src, count);
  }

#if FLEXMEM_TORCH_ACCELERATOR
  bool initialized() override {
    return isInitialized();
  }
  // The pools of torch.flexmem are not those of PyTorch.
  void emptyCache(c10::MempoolId_t /*pool*/) override {
    emptyCaches();
  }
  // The only stream has no pending work.
  void recordStream(const c10::DataPtr& /*data*/, c10::Stream /*stream*/) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(
      DeviceIndex device) override {
    return deviceStats(device);
  }
  void resetAccumulatedStats(DeviceIndex device) override {
    resetAccumulated(device);
  }
  void resetPeakStats(DeviceIndex device) override {
    resetPeaks(device);
  }
  // PyTorch 2.9 does not call this function.
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex device) {
    const MemoryInfo info = memoryInfo(device);
    return {info.free, info.total};
  }
#endif
};

// The allocator that PyTorch had for CPU tensors.
c10::Allocator* previous = nullptr;

void deleteEither(void* pointer) {
  if (!deallocate(pointer)) {
    previous->raw_deallocate(pointer);
  }
}

class KernelAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const DeviceIndex index = KernelScope::device;
    return index < 0 ? previous->allocate(bytes) : make(bytes, index, kCpu);
  }
  // A kernel may pass the bare pointer on to another kernel, so the deleter accepts memory of both allocators.
  c10::DeleterFnPtr raw_deleter() const override {
    return &deleteEither;
  }
  void copy_data(void* dest, const void* src, size_t count) const override {
    default_copy_data(dest, src, count);
  }
};

// Never destroyed, because other threads may allocate while the process ends.
DeviceAllocator& theDeviceAllocator = *new DeviceAllocator;
KernelAllocator& theKernelAllocator = *new KernelAllocator;

struct AllocatorRegistration {
  AllocatorRegistration() {
    previous = c10::GetCPUAllocator();
    c10::SetCPUAllocator(&theKernelAllocator, 255);
    c10::SetAllocator(c10::DeviceType::PrivateUse1, &theDeviceAllocator);
  }
} allocatorRegistration;

} // namespace

c10::Allocator* deviceAllocator() {
  return &theDeviceAllocator;
}

bool isOurs(const c10::DataPtr& data) noexcept {
  return data.get_deleter() == &deleteOurs;
}

} // namespace flexmem_torch
