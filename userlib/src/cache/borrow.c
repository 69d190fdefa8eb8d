// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * If the provider has refused memory, a stream may take a hole in an expandable
 * segment of another stream. But queued work of the other stream may still use
 * the hole. So the segment must be *quiet*: nothing was freed in the segment
 * since the device was synchronized, or since the last completed event of the
 * other stream was recorded.
 *
 * The new block counts as used on the stream of its request from the start. So
 * after the block is freed, the segment's stream gets the memory back only when
 * that use has ended.
 */
#include "cache.h"

/* Whether the stream of the segment has no work left. */
static bool is_idle(struct flexmem_cache *cache,
		    const struct fmlib_segment *segment)
{
	const struct flexmem_cache_events *events = &cache->events;
	uint64_t event;
	bool idle;

	if (events->record(events->user, segment->arena->stream, &event))
		return false;
	idle = !events->query(events->user, event);
	events->destroy(events->user, event);
	return idle;
}

static bool is_quiet(struct flexmem_cache *cache, struct fmlib_segment *segment)
{
	if (!cache->has_events || segment->quiet == segment->range.releases)
		return true;
	if (!is_idle(cache, segment))
		return false;
	segment->quiet = segment->range.releases;
	return true;
}

static bool may_serve(const struct fmlib_segment *segment,
		      const struct fmlib_want *want)
{
	const struct fmlib_arena *arena = segment->arena;
	uint64_t offset;

	return !segment->shared && !segment->lost &&
	       arena->pool == want->pool && arena->stream != want->stream &&
	       fmlib_hole_find(segment, want, &offset);
}

int fmlib_borrow(struct flexmem_cache *cache, struct fmlib_want *want)
{
	struct fmlib_segment *segment = cache->first_growing;
	int err;

	/*
	 * During a capture nothing is known about the holes: captured work may
	 * use any of them, and records no event.
	 */
	if (cache->captures)
		return -ENOMEM;
	while (segment && !(may_serve(segment, want) &&
			    is_quiet(cache, segment)))
		segment = segment->next_grown;
	if (!segment)
		return -ENOMEM;
	want->loan = fmlib_use_new(cache, want->stream);
	if (!want->loan) {
		want->no_host_memory = true;
		return -ENOMEM;
	}
	want->loan->owns = true;
	err = fmlib_reserve(cache, segment, want);
	if (err) {
		fmlib_use_drop(cache, want->loan);
		want->loan = NULL;
	}
	return err;
}
