// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The last events, in a ring. */
#include "cache.h"

#include <stdlib.h>
#include <time.h>

#define REGION_SHIFT 44

uint64_t fmlib_flat_address(const struct fmlib_segment *segment,
			    uint64_t offset)
{
	return ((uint64_t)segment->region << REGION_SHIFT) +
	       segment->address.offset + offset;
}

static struct fmlib_event *next_event(struct fmlib_history *history,
				      enum fmlib_action action)
{
	struct fmlib_event *event = &history->events[history->next];
	struct timespec now;

	history->next = (history->next + 1) % history->room;
	if (history->count < history->room)
		history->count++;
	clock_gettime(CLOCK_REALTIME, &now);
	event->action = action;
	event->time_us = (uint64_t)now.tv_sec * 1000000 +
			 (uint64_t)now.tv_nsec / 1000;
	return event;
}

void fmlib_history_add(struct flexmem_cache *cache, enum fmlib_action action,
		       const struct fmlib_block *block)
{
	struct fmlib_event *event = next_event(&cache->history, action);

	event->address = fmlib_flat_address(block->segment, block->offset);
	event->size = block->size;
	event->stream = block->segment->arena->stream;
	event->tag = block->tag;
}

void fmlib_history_segment(struct flexmem_cache *cache,
			   enum fmlib_action action,
			   const struct fmlib_segment *segment, uint64_t offset,
			   uint64_t size)
{
	struct fmlib_event *event;

	if (!cache->history.room)
		return;
	event = next_event(&cache->history, action);
	event->address = fmlib_flat_address(segment, offset);
	event->size = size;
	event->stream = segment->arena->stream;
	event->tag = &cache->untagged;
}

void fmlib_history_oom(struct flexmem_cache *cache,
		       const struct fmlib_want *want)
{
	struct fmlib_event *event;

	if (!cache->history.room)
		return;
	event = next_event(&cache->history, FMLIB_OOM);
	event->address = want->failure->device_free;
	event->size = want->size;
	event->stream = want->stream;
	event->tag = want->tag;
}

int flexmem_cache_set_history(struct flexmem_cache *cache, size_t entries)
{
	int err = fmlib_cache_check(cache);
	struct fmlib_event *events = NULL;
	struct fmlib_event *old;

	if (err)
		return err;
	if (entries) {
		events = calloc(entries, sizeof(*events));
		if (!events)
			return -ENOMEM;
	}
	fmlib_lock(cache);
	/* What threads keep now must not turn up in it without its begin. */
	fmlib_threads_recall(cache);
	fmlib_figures_commit(cache, &cache->account);
	old = cache->history.events;
	cache->history = (struct fmlib_history){
		.events = events,
		.room = entries,
	};
	fmlib_threads_allow(cache);
	fmlib_unlock(cache);
	free(old);
	return 0;
}
