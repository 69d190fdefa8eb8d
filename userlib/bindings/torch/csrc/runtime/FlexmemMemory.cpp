// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "FlexmemMemory.h"

#include "FlexmemDeviceAllocator.h"
#include "FlexmemDevices.h"
#include "FlexmemHistory.h"
#include "FlexmemLost.h"
#include "FlexmemProvider.h"

#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <utility>

namespace flexmem_torch {
namespace {

constexpr char kForked[] =
    "flexmem: cannot use the device in a forked process. To use it with "
    "multiprocessing, choose the 'spawn' start method";

// Whether a provider is open, whether a cache exists, and whether this process was forked while a provider was open.
std::atomic<bool> providerOpened{false};
std::atomic<bool> initialized{false};
std::atomic<bool> badFork{false};
std::atomic<OutOfMemoryCallback> outOfMemory{nullptr};

// A device's memory. @alive: the number of live allocations. @name and @provider: set once the device is open.
struct Memory {
  std::atomic<flexmem_cache*> cache{nullptr};
  std::atomic<int64_t> alive{0};
  std::string name;
  std::optional<flexmem_cache_provider> provider;
};

// By the device's index. Never destroyed, because other threads may free while the process ends.
auto& memories = *new std::array<Memory, kMaxDevices>;

// Held while a cache is made. @historyEntries: how many events a new cache keeps, once it has been said.
std::mutex making;
std::optional<size_t> historyEntries;

Memory& memoryAt(DeviceIndex index) {
  return memories.at(static_cast<size_t>(checkedDevice(index)));
}

void forked() {
  if (providerOpened) {
    badFork = true;
  }
}

std::string textOf(int error) {
  char text[1024];
  flexmem_cache_error_text(error, nullptr, 0, text, sizeof(text));
  return text;
}

void warn(flexmem_log_level /*level*/, const char* text, void* /*user*/) {
  std::fprintf(stderr, "flexmem: %s\n", text);
}

// Runs Python's garbage collection, which calls finalizers that may use tensors. A finalizer must not inherit the modes
// of the kernel that is out of memory. A finalizer needs autograd, no inference mode, and CPU tensors in CPU memory.
void beforeRetry(void* /*user*/, uint64_t /*bytes*/) {
  const OutOfMemoryCallback callback = outOfMemory;
  if (!callback || WithoutPython::current) {
    return;
  }
  const KernelScope::Pause pause;
  const DeviceScope own(DeviceScope::ownDevice());
  const c10::InferenceMode withGradients(false);
  const c10::impl::ForceDispatchKeyGuard plain(c10::default_included_set,
                                               c10::default_excluded_set);
  callback();
}

flexmem_cache* make(Memory& memory, DeviceIndex index) {
  TORCH_CHECK(!badFork, kForked);
  static const int unnoticed = pthread_atfork(nullptr, nullptr, forked);
  check(-unnoticed, "pthread_atfork");
  // The provider is kept for the next attempt if a later step fails. A forked child does not use the provider.
  if (!memory.provider) {
    memory.provider = openDevice(index, memory.name);
  }
  const flexmem_cache_provider& provider = *memory.provider;
  providerOpened = true;
  flexmem_cache_options options{};
  char problem[512] = "";
  options.provider = &provider;
  options.provider_size = sizeof(provider);
  options.contexts = &stackContexts;
  options.contexts_size = sizeof(stackContexts);
  options.flags = FLEXMEM_CACHE_MAPPED;
  options.device_index = index;
  options.problem = problem;
  options.problem_length = sizeof(problem);
  // If the library prints its log itself, warnings need no second line.
  if (!std::getenv("FLEXMEM_DEBUG") && !std::getenv("TORCH_SPYRE_ALLOC_DEBUG")) {
    options.log = warn;
  }
  flexmem_cache* created = nullptr;
  const int error = flexmem_cache_create(&created, &options, sizeof(options));
  TORCH_CHECK(error != -EOPNOTSUPP,
              "flexmem: the CPU cannot map the memory of this device");
  TORCH_CHECK(!error, "flexmem: no cache: ", *problem ? problem : textOf(error));
  std::unique_ptr<flexmem_cache, void (*)(flexmem_cache*)> made(
      created, flexmem_cache_destroy);
  check(flexmem_cache_add_oom_callback(created, beforeRetry, nullptr),
        "callback for a lack of memory");
  if (historyEntries) {
    check(flexmem_cache_set_history(created, *historyEntries), "_record_memory_history");
  }
  if (provider.pressure_fd) {
    // The helper thread releases unused memory when other processes need memory.
    check(flexmem_cache_start_helper(created), "start of the helper thread");
  }
  explainLostMemory(index, memory.name);
  initialized = true;
  return made.release();
}

[[noreturn]] void refuse(int error, flexmem_cache_failure failure) {
  char text[1024];
  if (failure.print) {
    failure.print = printRequester;
  }
  flexmem_cache_error_text(error, &failure, sizeof(failure), text, sizeof(text));
  TORCH_CHECK_WITH(OutOfMemoryError, error != -ENOMEM, "flexmem: ", text);
  TORCH_CHECK(error != -ECHILD, kForked);
  TORCH_CHECK(false, "flexmem: ", text);
}

// The pool in which this thread allocates, by the device; 0: in none.
thread_local std::array<uint64_t, kMaxDevices> selectedPools{};

bool isUsable(const Memory& memory) {
  return memory.cache && !badFork;
}

// Calls a function for each cache, and throws the first error only then.
template <class Function>
void forAll(const char* call, Function function) {
  int first = 0;
  for (const Memory& memory : memories) {
    const int error = isUsable(memory) ? function(memory.cache) : 0;
    first = first ? first : error;
  }
  check(first, call);
}

// Frees a pointer of one device. Returns 0 or a negative errno.
int freeIn(Memory& memory, void* pointer) {
  flexmem_cache* const made = memory.cache;
  const int error = made ? flexmem_cache_free_pointer(made, pointer) : -ENOENT;
  if (!error) {
    --memory.alive;
  }
  return error;
}

} // namespace

flexmem_cache* cache(DeviceIndex index) {
  const DeviceIndex which = checkedDevice(index);
  Memory& memory = memoryAt(which);
  flexmem_cache* found = memory.cache;
  if (found) {
    return found;
  }
  // In a forked child another thread of the parent may hold the mutex for ever.
  TORCH_CHECK(!badFork, kForked);
  const std::lock_guard held(making);
  if (!memory.cache) {
    memory.cache = make(memory, which);
  }
  return memory.cache;
}

bool hasCache(DeviceIndex index) {
  return isUsable(memoryAt(index));
}

void onOutOfMemory(OutOfMemoryCallback callback) noexcept {
  outOfMemory = callback;
}

std::string deviceName(DeviceIndex index) {
  cache(index);
  return memoryAt(index).name;
}

bool isAvailable() noexcept {
  return countDevices() > 0;
}

bool isInitialized() noexcept {
  return initialized;
}

bool isInBadFork() noexcept {
  return badFork;
}

void* allocate(size_t bytes, DeviceIndex index) {
  if (!bytes) {
    return nullptr;
  }
  flexmem_cache_request request{};
  flexmem_cache_allocation allocation{};
  const Stack stack;
  const DeviceIndex which = checkedDevice(index);
  Memory& memory = memoryAt(which);
  if (!memory.alive) {
    // No event announces a reset of the device. Free segments in the cache may be lost, so they are dropped here. A
    // process that has lost no tensor can continue.
    flexmem_cache_drop_lost(cache(which), nullptr);
  }
  request.bytes = bytes;
  request.pool = selectedPools[static_cast<size_t>(which)];
  request.context = stack.context();
  const int error = flexmem_cache_alloc_pointer(
      cache(which), &request, sizeof(request), &allocation, sizeof(allocation));
  if (error) {
    refuse(error, allocation.failure);
  }
  ++memory.alive;
  return allocation.pointer;
}

bool deallocate(void* pointer) noexcept {
  if (!initialized || !pointer) {
    return initialized;
  }
  // Nearly all pointers are of the current device, and the other caches know no pointer of it.
  Memory& first = memories[static_cast<size_t>(currentDevice())];
  int error = freeIn(first, pointer);
  for (auto memory = memories.begin(); error && error != -ECHILD && memory != memories.end(); ++memory) {
    if (&*memory != &first) {
      error = freeIn(*memory, pointer);
    }
  }
  return error == -ECHILD ? deviceOf(pointer) >= 0 : !error;
}

void emptyCaches() {
  forAll("empty_cache", [](flexmem_cache* made) { return flexmem_cache_empty(made, nullptr); });
}

Pool makePool(bool useOnOom, bool noSplit) {
  Pool made{currentDevice(), 0};
  flexmem_cache* const from = cache(made.device);
  check(flexmem_cache_pool_create(from, &made.number), "MemPool");
  check(flexmem_cache_pool_set_flags(
            from, made.number,
            (useOnOom ? FLEXMEM_CACHE_POOL_USE_ON_OOM : 0) |
                (noSplit ? FLEXMEM_CACHE_POOL_NO_SPLIT : 0)),
        "MemPool");
  return made;
}

void releasePool(Pool released) {
  if (hasCache(released.device)) {
    check(flexmem_cache_pool_release(cache(released.device), released.number), "MemPool");
  }
}

uint64_t selectPool(Pool selected) {
  return std::exchange(selectedPools.at(static_cast<size_t>(selected.device)), selected.number);
}

void emptyPool(Pool emptied) {
  check(flexmem_cache_pool_empty(cache(emptied.device), emptied.number, nullptr), "empty_cache");
}

void keepHistory(size_t entries) {
  TORCH_CHECK(!badFork, kForked);
  const std::lock_guard held(making);
  historyEntries = entries;
  forAll("_record_memory_history",
         [entries](flexmem_cache* made) { return flexmem_cache_set_history(made, entries); });
}

MemoryInfo memoryInfo(DeviceIndex index) {
  MemoryInfo info{};
  check(flexmem_cache_memory_info(cache(index), &info.free, &info.total),
        "mem_get_info");
  return info;
}

void resetPeaks(DeviceIndex index) {
  if (hasCache(index)) {
    check(flexmem_cache_reset_peaks(cache(index)), "reset_peak_memory_stats");
  }
}

void resetAccumulated(DeviceIndex index) {
  if (hasCache(index)) {
    check(flexmem_cache_reset_accumulated(cache(index)),
          "reset_accumulated_memory_stats");
  }
}

void check(int error, const char* call) {
  TORCH_CHECK(!error, "flexmem: ", call, ": ", textOf(error));
}

} // namespace flexmem_torch
