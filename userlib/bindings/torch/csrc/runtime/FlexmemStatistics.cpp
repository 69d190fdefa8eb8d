// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "FlexmemStatistics.h"

#include "FlexmemMemory.h"

namespace flexmem_torch {
namespace {

void addFigure(Figures& figures, const std::string& key,
               const flexmem_cache_figure& figure) {
  figures.insert(key + ".current", static_cast<int64_t>(figure.current));
  figures.insert(key + ".peak", static_cast<int64_t>(figure.peak));
  figures.insert(key + ".allocated", static_cast<int64_t>(figure.allocated));
  figures.insert(key + ".freed", static_cast<int64_t>(figure.freed));
}

void addPools(Figures& figures, const std::string& key,
              const flexmem_cache_figure* pools) {
  addFigure(figures, key + ".all", pools[FLEXMEM_CACHE_ALL]);
  addFigure(figures, key + ".small_pool", pools[FLEXMEM_CACHE_SMALL]);
  addFigure(figures, key + ".large_pool", pools[FLEXMEM_CACHE_LARGE]);
}

} // namespace

Figures memoryStats() {
  struct flexmem_cache_statistics s{};
  if (isInitialized() && !isInBadFork()) {
    check(flexmem_cache_statistics(cache(), &s, sizeof(s)), "memory_stats");
  }
  Figures figures;
  addPools(figures, "allocation", s.allocation);
  addPools(figures, "segment", s.segment);
  addPools(figures, "active", s.active);
  addPools(figures, "inactive_split", s.inactive_split);
  addPools(figures, "allocated_bytes", s.allocated_bytes);
  addPools(figures, "reserved_bytes", s.reserved_bytes);
  addPools(figures, "active_bytes", s.active_bytes);
  addPools(figures, "inactive_split_bytes", s.inactive_split_bytes);
  addPools(figures, "requested_bytes", s.requested_bytes);
  addFigure(figures, "oversize_allocations", s.oversize_allocations);
  addFigure(figures, "oversize_segments", s.oversize_segments);
  const auto add = [&](const char* key, uint64_t value) {
    figures.insert(key, static_cast<int64_t>(value));
  };
  // No limit is UINT64_MAX here and -1 in PyTorch: the same bits.
  add("max_split_size", s.max_split_size);
  add("num_alloc_retries", s.num_alloc_retries);
  add("num_ooms", s.num_ooms);
  add("num_sync_all_streams", s.num_sync_all_streams);
  add("num_device_alloc", s.num_device_alloc);
  add("num_device_free", s.num_device_free);
  return figures;
}

} // namespace flexmem_torch
