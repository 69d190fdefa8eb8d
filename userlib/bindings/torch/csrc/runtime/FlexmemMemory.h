// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The process's device memory: a flexmem cache with mapped segments for each device.
#pragma once

#include <flexmem_cache.h>

#include <c10/core/Device.h>

#include <string>

namespace flexmem_torch {

// A device's index: -1 means the current device of the thread. Functions throw
// c10::Error if there is no such device.
using c10::DeviceIndex;

// Returns the cache of a device, which the first call makes. Throws c10::Error if it
// cannot be opened. Tensors may live until the process ends, so the cache does too.
// The driver then frees the memory.
flexmem_cache* cache(DeviceIndex index);

// Whether a device has a cache that this process can use.
bool hasCache(DeviceIndex index);

// Sets the function that runs on the first failure of a request, before the
// request is tried again; nullptr: none. May be called before there is a cache.
using OutOfMemoryCallback = void (*)();
void onOutOfMemory(OutOfMemoryCallback callback) noexcept;

// Returns the device's node, or "host memory". Makes the cache if there is none.
std::string deviceName(DeviceIndex index);

// Whether there is a device. Does not throw.
bool isAvailable() noexcept;

// isInitialized(): whether a device has a cache. isInBadFork(): whether this process
// was forked after a device was opened. Then all caches, and every tensor in them,
// belong to the parent.
bool isInitialized() noexcept;
bool isInBadFork() noexcept;

// Allocates, or returns nullptr for 0 bytes. Throws c10::OutOfMemoryError for
// -ENOMEM, and c10::Error for any other error.
void* allocate(size_t bytes, DeviceIndex index);

// Frees a pointer that allocate() returned. Returns false for any other
// pointer. In a forked child, frees nothing that belongs to the parent.
bool deallocate(void* pointer) noexcept;

// Frees device memory that no tensor uses, of all devices.
void emptyCaches();

// Private pools, which lie on one device. makePool() returns the number of a new one.
// releasePool() ends it: its segments go when their last tensor is freed. In a forked
// child, and before there is a cache, it does nothing. selectPool(): from now on this
// thread allocates on that device in a pool; 0: in none. Returns the number before.
struct Pool {
  DeviceIndex device;
  uint64_t number;
};
Pool makePool(bool useOnOom, bool noSplit);
void releasePool(Pool pool);
uint64_t selectPool(Pool pool);
// Frees device memory of a pool that no tensor uses.
void emptyPool(Pool pool);

// Keeps so many events of each device, also of one that is opened later.
void keepHistory(size_t entries);

// What this process can still get and what it can have, of one moment.
struct MemoryInfo {
  uint64_t free;
  uint64_t total;
};
MemoryInfo memoryInfo(DeviceIndex index);

// resetPeaks(): peaks become the present values. resetAccumulated(): sums and
// counters become 0.
void resetPeaks(DeviceIndex index);
void resetAccumulated(DeviceIndex index);

// Throws c10::Error with the text of a negative errno that a call returned.
void check(int error, const char* call);

} // namespace flexmem_torch
