// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The operators torch.ops.flexmem.*: Python, and programs that load this library at run time, use flexmem only through
// them, so the library needs no headers of Python.
#include "aten/FlexmemAlias.h"
#include "runtime/FlexmemDeviceAllocator.h"
#include "runtime/FlexmemGenerator.h"
#include "runtime/FlexmemHistory.h"
#include "runtime/FlexmemMemory.h"
#include "runtime/FlexmemStatistics.h"

#include <torch/library.h>

namespace flexmem_torch {
namespace {

std::tuple<int64_t, int64_t> memGetInfo() {
  const MemoryInfo info = memoryInfo();
  return {static_cast<int64_t>(info.free), static_cast<int64_t>(info.total)};
}

int64_t largestSegment() {
  flexmem_available available{};
  check(flexmem_cache_available(cache(), &available, sizeof(available)),
        "largest_segment");
  return static_cast<int64_t>(available.largest);
}

void setMemoryFraction(double fraction) {
  check(flexmem_cache_set_memory_fraction(cache(), fraction),
        "set_per_process_memory_fraction");
}

std::string setting(const std::string& key) {
  struct flexmem_cache_setting s{};
  for (size_t i = 0; !flexmem_cache_setting(cache(), i, &s, sizeof(s)); i++) {
    if (key == s.key) {
      return s.value;
    }
  }
  TORCH_CHECK(false, "flexmem: no setting '", key, "'");
}

void recordHistory(int64_t entries, bool stacks, bool cpp) {
  check(flexmem_cache_set_history(cache(), static_cast<size_t>(entries)),
        "_record_memory_history");
  recordStacks(stacks, cpp);
}

// Returns PyTorch's snapshot as JSON, of one pool, or of all if the number is
// negative.
std::string snapshot(int64_t pool) {
  char* text = nullptr;
  check(flexmem_cache_snapshot(cache(),
                               pool < 0 ? FLEXMEM_CACHE_EVERY_POOL
                                        : static_cast<uint64_t>(pool),
                               &text, nullptr),
        "_snapshot");
  std::string copy = text;
  flexmem_cache_text_free(text);
  return copy;
}

int64_t poolUses(int64_t pool) {
  struct flexmem_cache_usage usage{};
  check(flexmem_cache_pool_usage(cache(), static_cast<uint64_t>(pool), nullptr,
                                 &usage, sizeof(usage)),
        "use_count");
  return static_cast<int64_t>(usage.uses);
}

// For tests: how many kernels ran, and how many results were copied.
std::tuple<int64_t, int64_t> kernelCounters() {
  const AliasCounters counters = aliasCounters();
  return {counters.calls, counters.copied};
}

at::Generator generator() {
  return defaultGenerator();
}

void manualSeed(int64_t seed) {
  generator().set_current_seed(static_cast<uint64_t>(seed));
}

int64_t seedAnew() {
  return static_cast<int64_t>(generator().seed());
}

int64_t initialSeed() {
  return static_cast<int64_t>(generator().current_seed());
}

at::Tensor rngState() {
  return generator().get_state();
}

void setRngState(const at::Tensor& state) {
  generator().set_state(state);
}

TORCH_LIBRARY(flexmem, m) {
  m.def("is_available() -> bool", +[] { return isAvailable(); });
  m.def("is_initialized() -> bool", +[] { return isInitialized(); });
  m.def("is_in_bad_fork() -> bool", +[] { return isInBadFork(); });
  m.def("init() -> ()", +[] { cache(); });
  m.def("device_name() -> str", &deviceName);

  m.def("memory_stats() -> Dict(str, int)", &memoryStats);
  m.def("empty_cache() -> ()", &emptyCache);
  m.def("pool_make(bool use_on_oom, bool no_split) -> int",
        +[](bool useOnOom, bool noSplit) {
          return static_cast<int64_t>(makePool(useOnOom, noSplit));
        });
  m.def("pool_release(int pool) -> ()",
        +[](int64_t pool) { releasePool(static_cast<uint64_t>(pool)); });
  m.def("pool_select(int pool) -> int", +[](int64_t pool) {
    return static_cast<int64_t>(selectPool(static_cast<uint64_t>(pool)));
  });
  m.def("pool_empty(int pool) -> ()",
        +[](int64_t pool) { emptyPool(static_cast<uint64_t>(pool)); });
  m.def("pool_uses(int pool) -> int", &poolUses);
  m.def("mem_get_info() -> (int, int)", &memGetInfo);
  m.def("largest_segment() -> int", &largestSegment);
  m.def("reset_peaks() -> ()", &resetPeaks);
  m.def("reset_accumulated() -> ()", &resetAccumulated);
  m.def("set_memory_fraction(float fraction) -> ()", &setMemoryFraction);
  m.def("setting(str key) -> str", &setting);
  m.def("record_history(int entries, bool stacks, bool cpp) -> ()",
        &recordHistory);
  m.def("snapshot(int pool) -> str", &snapshot);
  m.def("kernel_counters() -> (int, int)", &kernelCounters);

  m.def("manual_seed(int seed) -> ()", &manualSeed);
  m.def("seed() -> int", &seedAnew);
  m.def("initial_seed() -> int", &initialSeed);
  m.def("get_rng_state() -> Tensor", &rngState);
  m.def("set_rng_state(Tensor state) -> ()", &setRngState);
}

} // namespace
} // namespace flexmem_torch

// Python passes a function that runs Python's garbage collection.
extern "C" __attribute__((visibility("default"))) void flexmem_torch_on_oom(
    flexmem_torch::OutOfMemoryCallback callback) {
  flexmem_torch::onOutOfMemory(callback);
}
