// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "FlexmemProvider.h"

#include "FlexmemDevices.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <new>
#include <sys/mman.h>

namespace flexmem_torch {
namespace {

// The addresses of one mapped segment. A signal handler walks through the list, so a node is never freed; the next
// segment uses a node that has become empty. A cache calls map and unmap under its lock, so a list has only one writer.
struct Range {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  Range* next = nullptr;
};

// A device that is open. The caches of two devices call at the same time, so each has its own list. The handle of a
// segment of host memory is its offset from @base.
struct Opened {
  std::atomic<Range*> ranges{nullptr};
  flexmem_cache_provider below{};
  char* base = nullptr;
  // Set last, because the caches of other devices compare it.
  std::atomic<const void*> user{nullptr};
};

// By the device's index. Never destroyed, because a signal may come while the process ends.
auto& openedDevices = *new std::array<Opened, kMaxDevices>;

// The provider's own callbacks get its @user, which is another one for each.
Opened& openedBy(const void* user) {
  auto* opened = openedDevices.begin();
  while (opened->user != user) {
    opened++;
  }
  return *opened;
}

// Notes a mapped segment. Returns 0 or -ENOMEM, and throws nothing: C calls it.
int noteMap(Opened& opened, void* pointer, uint64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  Range* range = opened.ranges;
  while (range && range->end) {
    range = range->next;
  }
  if (!range) {
    range = new (std::nothrow) Range;
    if (!range) {
      return -ENOMEM;
    }
    range->next = opened.ranges;
    opened.ranges = range;
  }
  range->begin = begin;
  range->end = begin + bytes;
  return 0;
}

void noteUnmap(Opened& opened, void* pointer) {
  for (Range* range = opened.ranges; range; range = range->next) {
    if (range->end && range->begin == reinterpret_cast<uintptr_t>(pointer)) {
      range->end = 0;
      return;
    }
  }
}

int deviceMap(void* user, uint64_t handle, uint64_t bytes, void** pointer) {
  Opened& opened = openedBy(user);
  int error = opened.below.map(user, handle, bytes, pointer);
  if (error) {
    return error;
  }
  error = noteMap(opened, *pointer, bytes);
  if (error) {
    opened.below.unmap(user, handle, *pointer, bytes);
  }
  return error;
}

int deviceUnmap(void* user, uint64_t handle, void* pointer, uint64_t bytes) {
  Opened& opened = openedBy(user);
  const int error = opened.below.unmap(user, handle, pointer, bytes);
  if (!error) {
    noteUnmap(opened, pointer);
  }
  return error;
}

// Host memory is one reserved range of addresses. The flat provider of the library allocates offsets in it.
int hostMap(void* user, uint64_t handle, uint64_t bytes, void** pointer) {
  Opened& opened = openedBy(user);
  *pointer = opened.base + handle;
  return noteMap(opened, *pointer, bytes);
}

int hostUnmap(void* user, uint64_t /*handle*/, void* pointer, uint64_t bytes) {
  // Frees the pages. The addresses stay reserved.
  if (madvise(pointer, bytes, MADV_DONTNEED)) {
    return -errno;
  }
  noteUnmap(openedBy(user), pointer);
  return 0;
}

} // namespace

flexmem_cache_provider deviceProvider(flexmem_device* device, c10::DeviceIndex index) {
  flexmem_cache_provider provider{};
  const int error = flexmem_cache_device_provider(device, &provider, sizeof(provider));
  if (error) {
    flexmem_device_close(device);
    TORCH_CHECK(false, "flexmem: no provider for the device: error ", -error);
  }
  Opened& opened = openedDevices.at(static_cast<size_t>(index));
  opened.below = provider;
  opened.user = provider.user;
  if (provider.map) {
    provider.map = deviceMap;
    provider.unmap = deviceUnmap;
  }
  return provider;
}

flexmem_cache_provider hostProvider(uint64_t bytes, c10::DeviceIndex index) {
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
  Opened& opened = openedDevices.at(static_cast<size_t>(index));
  opened.below = provider;
  opened.base = static_cast<char*>(base);
  opened.user = provider.user;
  provider.map = hostMap;
  provider.unmap = hostUnmap;
  return provider;
}

c10::DeviceIndex deviceOf(const void* pointer) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (size_t i = 0; i < openedDevices.size(); i++) {
    for (const Range* range = openedDevices[i].ranges; range; range = range->next) {
      if (address >= range->begin && address < range->end) {
        return static_cast<c10::DeviceIndex>(i);
      }
    }
  }
  return -1;
}

} // namespace flexmem_torch
