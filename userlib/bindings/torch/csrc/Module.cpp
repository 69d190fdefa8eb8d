// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The operators torch.ops.flexmem.*: Python, and programs that load this library at run time, use flexmem only through
// them, so the library needs no headers of Python.
#include "aten/FlexmemAlias.h"
#include "runtime/FlexmemDevices.h"
#include "runtime/FlexmemGenerator.h"
#include "runtime/FlexmemHistory.h"
#include "runtime/FlexmemMemory.h"
#include "runtime/FlexmemStatistics.h"

#include <torch/library.h>

namespace flexmem_torch {
namespace {

// Operators have only one type of integers. Throws c10::Error if there is no such device.
DeviceIndex toIndex(int64_t index) {
  TORCH_CHECK(index >= -1 && index < kMaxDevices, "flexmem: there is no device ", index);
  return checkedDevice(static_cast<DeviceIndex>(index));
}

Pool toPool(int64_t device, int64_t number) {
  return {toIndex(device), static_cast<uint64_t>(number)};
}

std::tuple<int64_t, int64_t> fromPool(Pool pool) {
  return {pool.device, static_cast<int64_t>(pool.number)};
}

std::tuple<int64_t, int64_t> memGetInfo(int64_t device) {
  const MemoryInfo info = memoryInfo(toIndex(device));
  return {static_cast<int64_t>(info.free), static_cast<int64_t>(info.total)};
}

int64_t largestSegment(int64_t device) {
  flexmem_available available{};
  check(flexmem_cache_available(cache(toIndex(device)), &available, sizeof(available)),
        "largest_segment");
  return static_cast<int64_t>(available.largest);
}

void setMemoryFraction(double fraction, int64_t device) {
  check(flexmem_cache_set_memory_fraction(cache(toIndex(device)), fraction),
        "set_per_process_memory_fraction");
}

std::string setting(const std::string& key, int64_t device) {
  struct flexmem_cache_setting s{};
  for (size_t i = 0; !flexmem_cache_setting(cache(toIndex(device)), i, &s, sizeof(s)); i++) {
    if (key == s.key) {
      return s.value;
    }
  }
  TORCH_CHECK(false, "flexmem: no setting '", key, "'");
}

void recordHistory(int64_t entries, bool stacks, bool cpp) {
  keepHistory(static_cast<size_t>(entries));
  recordStacks(stacks, cpp);
}

// Returns PyTorch's snapshot as JSON, of one pool, or of all if the number is
// negative. "" if the device has no cache yet.
std::string snapshot(int64_t device, int64_t pool) {
  const DeviceIndex index = toIndex(device);
  if (!hasCache(index)) {
    return "";
  }
  char* text = nullptr;
  check(flexmem_cache_snapshot(cache(index),
                               pool < 0 ? FLEXMEM_CACHE_EVERY_POOL
                                        : static_cast<uint64_t>(pool),
                               &text, nullptr),
        "_snapshot");
  std::string copy = text;
  flexmem_cache_text_free(text);
  return copy;
}

int64_t poolUses(int64_t device, int64_t number) {
  const Pool pool = toPool(device, number);
  struct flexmem_cache_usage usage{};
  check(flexmem_cache_pool_usage(cache(pool.device), pool.number, nullptr,
                                 &usage, sizeof(usage)),
        "use_count");
  return static_cast<int64_t>(usage.uses);
}

// For tests: how many kernels ran, and how many results were copied.
std::tuple<int64_t, int64_t> kernelCounters() {
  const AliasCounters counters = aliasCounters();
  return {counters.calls, counters.copied};
}

at::Generator generator(int64_t device) {
  return defaultGenerator(toIndex(device));
}

void manualSeed(int64_t seed, int64_t device) {
  generator(device).set_current_seed(static_cast<uint64_t>(seed));
}

// Also of devices that the process has only later.
void manualSeedAll(int64_t seed) {
  for (DeviceIndex i = 0; i < kMaxDevices; i++) {
    at::Generator(defaultGenerator(i)).set_current_seed(static_cast<uint64_t>(seed));
  }
}

int64_t seedAnew(int64_t device) {
  return static_cast<int64_t>(generator(device).seed());
}

int64_t initialSeed(int64_t device) {
  return static_cast<int64_t>(generator(device).current_seed());
}

at::Tensor rngState(int64_t device) {
  return generator(device).get_state();
}

void setRngState(const at::Tensor& state, int64_t device) {
  generator(device).set_state(state);
}

// @device: the index of a device; -1: the current one.
TORCH_LIBRARY(flexmem, m) {
  m.def("is_available() -> bool", +[] { return isAvailable(); });
  m.def("is_initialized() -> bool", +[] { return isInitialized(); });
  m.def("is_in_bad_fork() -> bool", +[] { return isInBadFork(); });
  m.def("device_count() -> int",
        +[] { return static_cast<int64_t>(countDevices()); });
  m.def("device_index(int device) -> int",
        +[](int64_t device) { return static_cast<int64_t>(toIndex(device)); });
  m.def("exchange_device(int device) -> int",
        +[](int64_t device) { return static_cast<int64_t>(exchangeDevice(toIndex(device))); });
  m.def("init(int device) -> ()", +[](int64_t device) { cache(toIndex(device)); });
  m.def("device_name(int device) -> str",
        +[](int64_t device) { return deviceName(toIndex(device)); });

  m.def("memory_stats(int device) -> Dict(str, int)",
        +[](int64_t device) { return memoryStats(toIndex(device)); });
  m.def("empty_cache() -> ()", &emptyCaches);
  m.def("pool_make(bool use_on_oom, bool no_split) -> (int, int)",
        +[](bool useOnOom, bool noSplit) { return fromPool(makePool(useOnOom, noSplit)); });
  m.def("pool_release(int device, int pool) -> ()",
        +[](int64_t device, int64_t pool) { releasePool(toPool(device, pool)); });
  m.def("pool_select(int device, int pool) -> int", +[](int64_t device, int64_t pool) {
    return static_cast<int64_t>(selectPool(toPool(device, pool)));
  });
  m.def("pool_empty(int device, int pool) -> ()",
        +[](int64_t device, int64_t pool) { emptyPool(toPool(device, pool)); });
  m.def("pool_uses(int device, int pool) -> int", &poolUses);
  m.def("mem_get_info(int device) -> (int, int)", &memGetInfo);
  m.def("largest_segment(int device) -> int", &largestSegment);
  m.def("reset_peaks(int device) -> ()",
        +[](int64_t device) { resetPeaks(toIndex(device)); });
  m.def("reset_accumulated(int device) -> ()",
        +[](int64_t device) { resetAccumulated(toIndex(device)); });
  m.def("set_memory_fraction(float fraction, int device) -> ()", &setMemoryFraction);
  m.def("setting(str key, int device) -> str", &setting);
  m.def("record_history(int entries, bool stacks, bool cpp) -> ()",
        &recordHistory);
  m.def("snapshot(int device, int pool) -> str", &snapshot);
  m.def("kernel_counters() -> (int, int)", &kernelCounters);

  m.def("manual_seed(int seed, int device) -> ()", &manualSeed);
  m.def("manual_seed_all(int seed) -> ()", &manualSeedAll);
  m.def("seed(int device) -> int", &seedAnew);
  m.def("initial_seed(int device) -> int", &initialSeed);
  m.def("get_rng_state(int device) -> Tensor", &rngState);
  m.def("set_rng_state(Tensor state, int device) -> ()", &setRngState);
}

} // namespace
} // namespace flexmem_torch

// Python passes a function that runs Python's garbage collection.
extern "C" __attribute__((visibility("default"))) void flexmem_torch_on_oom(
    flexmem_torch::OutOfMemoryCallback callback) {
  flexmem_torch::onOutOfMemory(callback);
}
