// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "FlexmemProvider.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <sys/mman.h>

namespace flexmem_torch {
namespace {

// The addresses of one mapped segment. A signal handler walks through the list, so a node is never freed; the next
// segment uses a node that has become empty. The cache calls map and unmap under its lock, so there is only one writer.
struct Range {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  Range* next = nullptr;
};

std::atomic<Range*> ranges{nullptr};

// Notes a mapped segment. Returns 0 or -ENOMEM, and throws nothing: C calls it.
int noteMap(void* pointer, uint64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  Range* range = ranges;
  while (range && range->end) {
    range = range->next;
  }
  if (!range) {
    range = new (std::nothrow) Range;
    if (!range) {
      return -ENOMEM;
    }
    range->next = ranges;
    ranges = range;
  }
  range->begin = begin;
  range->end = begin + bytes;
  return 0;
}

void noteUnmap(void* pointer) {
  for (Range* range = ranges; range; range = range->next) {
    if (range->end && range->begin == reinterpret_cast<uintptr_t>(pointer)) {
      range->end = 0;
      return;
    }
  }
}

// The device's own callbacks.
flexmem_cache_provider below;

int deviceMap(void* user, uint64_t handle, uint64_t bytes, void** pointer) {
  int error = below.map(user, handle, bytes, pointer);
  if (error) {
    return error;
  }
  error = noteMap(*pointer, bytes);
  if (error) {
    below.unmap(user, handle, *pointer, bytes);
  }
  return error;
}

int deviceUnmap(void* user, uint64_t handle, void* pointer, uint64_t bytes) {
  const int error = below.unmap(user, handle, pointer, bytes);
  if (!error) {
    noteUnmap(pointer);
  }
  return error;
}

// Host memory is one reserved range of addresses. The flat provider of the library allocates offsets in it, and the
// handle of a segment is its offset.
char* hostBase;

int hostMap(void* /*user*/, uint64_t handle, uint64_t bytes, void** pointer) {
  *pointer = hostBase + handle;
  return noteMap(*pointer, bytes);
}

int hostUnmap(void* /*user*/, uint64_t /*handle*/, void* pointer, uint64_t bytes) {
  // Frees the pages. The addresses stay reserved.
  if (madvise(pointer, bytes, MADV_DONTNEED)) {
    return -errno;
  }
  noteUnmap(pointer);
  return 0;
}

} // namespace

flexmem_cache_provider deviceProvider(flexmem_device* device) {
  const int error =
      flexmem_cache_device_provider(device, &below, sizeof(below));
  if (error) {
    flexmem_device_close(device);
    TORCH_CHECK(false, "flexmem: no provider for the device: error ", -error);
  }
  flexmem_cache_provider provider = below;
  if (below.map) {
    provider.map = deviceMap;
    provider.unmap = deviceUnmap;
  }
  return provider;
}

flexmem_cache_provider hostProvider(uint64_t bytes) {
  flexmem_cache_provider provider{};
  flexmem_cache_flat* flat = nullptr;
  int error =
      flexmem_cache_flat_create(&flat, bytes, &provider, sizeof(provider));
  TORCH_CHECK(!error, "flexmem: no space of ", bytes, " bytes: error ", -error);
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    error = errno;
    flexmem_cache_flat_destroy(flat);
    TORCH_CHECK(false, "flexmem: cannot reserve ", bytes,
                " bytes of host memory: error ", error);
  }
  hostBase = static_cast<char*>(base);
  provider.map = hostMap;
  provider.unmap = hostUnmap;
  return provider;
}

bool isMapped(const void* pointer) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (const Range* range = ranges; range; range = range->next) {
    if (address >= range->begin && address < range->end) {
      return true;
    }
  }
  return false;
}

} // namespace flexmem_torch
