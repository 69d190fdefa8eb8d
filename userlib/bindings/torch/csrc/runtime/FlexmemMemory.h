// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The process's device memory: a flexmem cache with mapped segments.
#pragma once

#include <flexmem_cache.h>

#include <string>

namespace flexmem_torch {

// Returns the cache, which the first call makes. The cache is on the device that
// FLEX_DEVICE names. FLEXMEM_TORCH=host[:MiB] makes a cache on host memory (4096
// MiB without a number), for tests and for machines without the driver. Throws
// c10::Error if there is no device. Tensors may live until the process ends, so
// the cache does too. The driver then frees the memory.
flexmem_cache* cache();

// Sets the function that runs on the first failure of a request, before the
// request is tried again; nullptr: none. May be called before there is a cache.
using OutOfMemoryCallback = void (*)();
void onOutOfMemory(OutOfMemoryCallback callback) noexcept;

// Returns the device's node, or "host memory". Makes the cache if there is none.
std::string deviceName();

// Whether there is a device. Does not throw.
bool isAvailable() noexcept;

// isInitialized(): whether cache() has been called. isInBadFork(): whether this
// process was forked after the first call of cache(). Then the cache, and every
// tensor in it, belongs to the parent.
bool isInitialized() noexcept;
bool isInBadFork() noexcept;

// Allocates, or returns nullptr for 0 bytes. Throws c10::OutOfMemoryError for
// -ENOMEM, and c10::Error for any other error.
void* allocate(size_t bytes);

// Frees a pointer that allocate() returned. Returns false for any other
// pointer. In a forked child, frees nothing that belongs to the parent.
bool deallocate(void* pointer) noexcept;

void emptyCache();

// Private pools. makePool() returns the number of a new one. releasePool() ends
// it: its segments go when their last tensor is freed. In a forked child, and
// before there is a cache, it does nothing. selectPool(): from now on this thread
// allocates in a pool; 0: in none. Returns the number of the pool before.
uint64_t makePool(bool useOnOom, bool noSplit);
void releasePool(uint64_t pool);
uint64_t selectPool(uint64_t pool);
// Frees device memory of a pool that no tensor uses.
void emptyPool(uint64_t pool);

// What this process can still get and what it can have, of one moment.
struct MemoryInfo {
  uint64_t free;
  uint64_t total;
};
MemoryInfo memoryInfo();

// resetPeaks(): peaks become the present values. resetAccumulated(): sums and
// counters become 0.
void resetPeaks();
void resetAccumulated();

// Throws c10::Error with the text of a negative errno that a call returned.
void check(int error, const char* call);

} // namespace flexmem_torch
