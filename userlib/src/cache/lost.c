// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* What a reset of the device has lost serves nobody, and goes back. */
#include "cache.h"

/* Bytes in use, by anybody or by what waits for events. */
static uint64_t bytes_in_use(const struct fmlib_segment *segment)
{
	const struct fmlib_block *block;
	uint64_t bytes = 0;

	if (segment->growing)
		return (uint64_t)segment->range.used << segment->range.shift;
	for (block = segment->first; block; block = block->next)
		bytes += block->state == FMLIB_FREE ? 0 : block->size;
	return bytes;
}

/* Returns what is still in use. */
static uint64_t drop_all(struct flexmem_cache *cache, int *error)
{
	struct fmlib_segment *segment;
	struct fmlib_segment *next;
	uint64_t released = 0;
	uint64_t live = 0;
	int err;

	for (segment = cache->first_segment; segment; segment = next) {
		next = segment->next;
		if (!fmlib_segment_is_lost(cache, segment))
			continue;
		live += bytes_in_use(segment);
		if (!fmlib_segment_excess(cache, segment))
			continue;
		err = fmlib_segment_give_back(cache, segment, &released);
		if (err && !*error)
			*error = err;
	}
	return live;
}

int flexmem_cache_drop_lost(struct flexmem_cache *cache, uint64_t *live)
{
	int err = fmlib_cache_check(cache);
	uint64_t bytes;

	if (err)
		return err;
	if (!cache->provider.lost)
		return -EOPNOTSUPP;
	fmlib_lock(cache);
	fmlib_threads_recall(cache);
	fmlib_uses_poll(cache);
	bytes = drop_all(cache, &err);
	fmlib_figures_commit(cache, &cache->account);
	fmlib_unlock(cache);
	if (!err && live)
		*live = bytes;
	return err;
}
