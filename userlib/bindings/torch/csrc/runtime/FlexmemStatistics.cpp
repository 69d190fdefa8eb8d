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

struct flexmem_cache_statistics statistics(c10::DeviceIndex index) {
  struct flexmem_cache_statistics s{};
  s.max_split_size = UINT64_MAX;
  if (hasCache(index)) {
    check(flexmem_cache_statistics(cache(index), &s, sizeof(s)), "memory_stats");
  }
  return s;
}

} // namespace

Figures memoryStats(c10::DeviceIndex index) {
  const struct flexmem_cache_statistics s = statistics(index);
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
  // "No limit" is UINT64_MAX here and -1 in PyTorch: the same bits.
  add("max_split_size", s.max_split_size);
  add("num_alloc_retries", s.num_alloc_retries);
  add("num_ooms", s.num_ooms);
  add("num_sync_all_streams", s.num_sync_all_streams);
  add("num_device_alloc", s.num_device_alloc);
  add("num_device_free", s.num_device_free);
  return figures;
}

#if FLEXMEM_TORCH_ACCELERATOR
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;

Stat toStat(const flexmem_cache_figure& figure) {
  Stat stat;
  stat.current = static_cast<int64_t>(figure.current);
  stat.peak = static_cast<int64_t>(figure.peak);
  stat.allocated = static_cast<int64_t>(figure.allocated);
  stat.freed = static_cast<int64_t>(figure.freed);
  return stat;
}

// Both arrays have the order: all, the small pool, the large pool.
StatArray toStats(const flexmem_cache_figure (&pools)[FLEXMEM_CACHE_POOL_KINDS]) {
  return {toStat(pools[0]), toStat(pools[1]), toStat(pools[2])};
}

} // namespace

c10::CachingDeviceAllocator::DeviceStats deviceStats(c10::DeviceIndex index) {
  const struct flexmem_cache_statistics s = statistics(index);
  c10::CachingDeviceAllocator::DeviceStats stats;
  stats.allocation = toStats(s.allocation);
  stats.segment = toStats(s.segment);
  stats.active = toStats(s.active);
  stats.inactive_split = toStats(s.inactive_split);
  stats.allocated_bytes = toStats(s.allocated_bytes);
  stats.reserved_bytes = toStats(s.reserved_bytes);
  stats.active_bytes = toStats(s.active_bytes);
  stats.inactive_split_bytes = toStats(s.inactive_split_bytes);
  stats.requested_bytes = toStats(s.requested_bytes);
  stats.oversize_allocations = toStat(s.oversize_allocations);
  stats.oversize_segments = toStat(s.oversize_segments);
  stats.max_split_size = static_cast<int64_t>(s.max_split_size);
  stats.num_alloc_retries = static_cast<int64_t>(s.num_alloc_retries);
  stats.num_ooms = static_cast<int64_t>(s.num_ooms);
  stats.num_sync_all_streams = static_cast<int64_t>(s.num_sync_all_streams);
  stats.num_device_alloc = static_cast<int64_t>(s.num_device_alloc);
  stats.num_device_free = static_cast<int64_t>(s.num_device_free);
  return stats;
}
#endif

} // namespace flexmem_torch
