// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "FlexmemMemory.h"

#include "FlexmemDeviceAllocator.h"
#include "FlexmemHistory.h"
#include "FlexmemLost.h"
#include "FlexmemProvider.h"

#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <pthread.h>
#include <utility>

namespace flexmem_torch {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kHostMiB = 4096;
constexpr char kForked[] =
    "flexmem: cannot use the device in a forked process. To use it with "
    "multiprocessing, choose the 'spawn' start method";

// Whether the provider is open, whether the cache exists, and whether this process was forked while the provider was
// open.
std::atomic<bool> opened{false};
std::atomic<bool> initialized{false};
std::atomic<bool> badFork{false};
// The number of live allocations.
std::atomic<int64_t> alive{0};
std::atomic<OutOfMemoryCallback> outOfMemory{nullptr};
// Set once, by make().
std::string memoryName = "host memory";

void forked() {
  if (opened) {
    badFork = true;
  }
}

// Returns the bytes in FLEXMEM_TORCH=host[:MiB], or 0 if the variable does not ask for host memory.
uint64_t hostBytes() {
  const char* value = std::getenv("FLEXMEM_TORCH");
  if (!value || !*value) {
    return 0;
  }
  if (!std::strcmp(value, "host")) {
    return kHostMiB * kMiB;
  }
  char* end = nullptr;
  uint64_t mib = 0;
  if (!std::strncmp(value, "host:", 5)) {
    mib = std::strtoull(value + 5, &end, 10);
  }
  TORCH_CHECK(mib && mib <= (1 << 23) && !*end, "FLEXMEM_TORCH is '", value,
              "', but can only be 'host' or 'host:MEBIBYTES'");
  return mib * kMiB;
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
  const c10::InferenceMode withGradients(false);
  const c10::impl::ForceDispatchKeyGuard plain(c10::default_included_set,
                                               c10::default_excluded_set);
  callback();
}

flexmem_cache_provider openProvider() {
  if (const uint64_t bytes = hostBytes()) {
    return hostProvider(bytes);
  }
  flexmem_device* device = nullptr;
  const int error = flexmem_device_open(&device, nullptr);
  TORCH_CHECK(!error, "flexmem: cannot open a device: ", textOf(error),
              ". FLEXMEM_TORCH=host uses host memory instead");
  memoryName = flexmem_device_path(device);
  return deviceProvider(device);
}

flexmem_cache* make() {
  TORCH_CHECK(!badFork, kForked);
  static const int unnoticed = pthread_atfork(nullptr, nullptr, forked);
  check(-unnoticed, "pthread_atfork");
  // The provider is kept for the next attempt if a later step fails. A forked child does not use the provider.
  static flexmem_cache_provider provider = openProvider();
  opened = true;
  flexmem_cache_options options{};
  char problem[512] = "";
  options.provider = &provider;
  options.provider_size = sizeof(provider);
  options.contexts = &stackContexts;
  options.contexts_size = sizeof(stackContexts);
  options.flags = FLEXMEM_CACHE_MAPPED;
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
  if (provider.pressure_fd) {
    // The helper thread releases unused memory when other processes need memory.
    check(flexmem_cache_start_helper(created), "start of the helper thread");
  }
  explainLostMemory(memoryName);
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

// The pool in which this thread allocates; 0: none.
thread_local uint64_t selectedPool = 0;

// False before the first allocation, and in a forked child.
bool isUsable() {
  return initialized && !badFork;
}

} // namespace

flexmem_cache* cache() {
  static flexmem_cache* const made = make();
  return made;
}

void onOutOfMemory(OutOfMemoryCallback callback) noexcept {
  outOfMemory = callback;
}

std::string deviceName() {
  cache();
  return memoryName;
}

bool isAvailable() noexcept {
  try {
    if (initialized || hostBytes()) {
      return true;
    }
  } catch (const c10::Error&) {
    return false;
  }
  flexmem_device* device = nullptr;
  if (flexmem_device_open(&device, nullptr)) {
    return false;
  }
  flexmem_device_close(device);
  return true;
}

bool isInitialized() noexcept {
  return initialized;
}

bool isInBadFork() noexcept {
  return badFork;
}

void* allocate(size_t bytes) {
  if (!bytes) {
    return nullptr;
  }
  flexmem_cache_request request{};
  flexmem_cache_allocation allocation{};
  const Stack stack;
  if (!alive) {
    // No event announces a reset of the device. Free segments in the cache may be lost, so they are dropped here. A
    // process that has lost no tensor can continue.
    flexmem_cache_drop_lost(cache(), nullptr);
  }
  request.bytes = bytes;
  request.pool = selectedPool;
  request.context = stack.context();
  const int error = flexmem_cache_alloc_pointer(
      cache(), &request, sizeof(request), &allocation, sizeof(allocation));
  if (error) {
    refuse(error, allocation.failure);
  }
  ++alive;
  return allocation.pointer;
}

bool deallocate(void* pointer) noexcept {
  if (!initialized) {
    return false;
  }
  const int error = flexmem_cache_free_pointer(cache(), pointer);
  if (!error && pointer) {
    --alive;
  }
  return error == -ECHILD ? isMapped(pointer) : !error;
}

void emptyCache() {
  if (isUsable()) {
    check(flexmem_cache_empty(cache(), nullptr), "empty_cache");
  }
}

uint64_t makePool(bool useOnOom, bool noSplit) {
  uint64_t made = 0;
  check(flexmem_cache_pool_create(cache(), &made), "MemPool");
  check(flexmem_cache_pool_set_flags(
            cache(), made,
            (useOnOom ? FLEXMEM_CACHE_POOL_USE_ON_OOM : 0) |
                (noSplit ? FLEXMEM_CACHE_POOL_NO_SPLIT : 0)),
        "MemPool");
  return made;
}

void releasePool(uint64_t released) {
  if (isUsable()) {
    check(flexmem_cache_pool_release(cache(), released), "MemPool");
  }
}

uint64_t selectPool(uint64_t selected) {
  return std::exchange(selectedPool, selected);
}

void emptyPool(uint64_t emptied) {
  check(flexmem_cache_pool_empty(cache(), emptied, nullptr), "empty_cache");
}

MemoryInfo memoryInfo() {
  MemoryInfo info{};
  check(flexmem_cache_memory_info(cache(), &info.free, &info.total),
        "mem_get_info");
  return info;
}

void resetPeaks() {
  if (isUsable()) {
    check(flexmem_cache_reset_peaks(cache()), "reset_peak_memory_stats");
  }
}

void resetAccumulated() {
  if (isUsable()) {
    check(flexmem_cache_reset_accumulated(cache()),
          "reset_accumulated_memory_stats");
  }
}

void check(int error, const char* call) {
  TORCH_CHECK(!error, "flexmem: ", call, ": ", textOf(error));
}

} // namespace flexmem_torch
