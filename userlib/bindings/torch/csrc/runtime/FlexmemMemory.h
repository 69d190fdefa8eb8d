// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The process's device memory: a flexmem cache with mapped segments.
#pragma once

#include <flexmem_cache.h>

#include <string>

namespace flexmem_torch {

// The cache, made on first use. FLEXMEM_TORCH=host[:MiB] puts it on host memory
// (4096 MiB without a number), for tests and for machines without the driver;
// otherwise it is on the device that FLEX_DEVICE names. Throws c10::Error if
// there is no device. The cache lives until the process ends, because tensors
// may live as long. The driver then frees its memory.
flexmem_cache* cache();

// Sets the function that runs on the first failure of a request, before the
// request is tried again; nullptr: none. May be called before there is a cache.
using OutOfMemoryCallback = void (*)();
void onOutOfMemory(OutOfMemoryCallback callback) noexcept;

// The device's node, or "host memory". Makes the cache.
std::string deviceName();

// Whether there is a device. Does not throw.
bool isAvailable() noexcept;

// isInitialized(): whether cache() has been called. isInBadFork(): whether this
// process was forked after that. Then the cache, and every tensor in it,
// belongs to the parent.
bool isInitialized() noexcept;
bool isInBadFork() noexcept;

// Allocates, or returns nullptr for 0 bytes. Throws c10::OutOfMemoryError.
void* allocate(size_t bytes);

// Frees a pointer that allocate() returned. Returns false for any other
// pointer. In a forked child it does not free memory of the parent.
bool deallocate(void* pointer) noexcept;

// Returns unused memory to the device.
void emptyCache();

// The device's free and total bytes at the same moment.
struct MemoryInfo {
  uint64_t free;
  uint64_t total;
};
MemoryInfo memoryInfo();

// Peaks become the present values. Sums and counters become 0.
void resetPeaks();
void resetAccumulated();

// Throws c10::Error with the text of a negative errno that a call returned.
void check(int error, const char* call);

} // namespace flexmem_torch
