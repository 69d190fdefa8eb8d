// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The history, a ring of the last events, and snapshots of segments, blocks and
 * history. To make a snapshot, the records are copied with the lock held;
 * snapshot_text.c then writes the text without the lock.
 */
#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The ring of the history has memory for this many events at first. */
#define FIRST_EVENTS 1024

static uint64_t flat_address(const struct fmlib_segment *segment,
			     uint64_t offset)
{
	return ((uint64_t)segment->region << FMLIB_REGION_SHIFT) +
	       segment->address.offset + offset;
}

/*
 * Makes a full ring larger. If there is no host memory, the ring stays as it
 * is, and each new event takes the place of the oldest one.
 */
static void extend(struct fmlib_history *history)
{
	size_t size = history->room - history->size > history->size ?
		      2 * history->size : history->room;
	struct fmlib_event *events =
		realloc(history->events, size * sizeof(*events));

	if (!events) {
		history->room = history->size;
		return;
	}
	history->events = events;
	history->next = history->size;
	history->size = size;
}

static struct fmlib_event *next_event(struct flexmem_cache *cache,
				      enum fmlib_action action,
				      struct fmlib_origin *origin)
{
	struct fmlib_history *history = &cache->history;
	struct fmlib_event *event;
	struct timespec now;

	if (history->count == history->size && history->size < history->room)
		extend(history);
	event = &history->events[history->next];
	history->next = (history->next + 1) % history->size;
	if (history->count < history->size)
		history->count++;
	else
		fmlib_origin_drop(cache, event->origin);
	clock_gettime(CLOCK_REALTIME, &now);
	event->action = action;
	event->number = ++history->added;
	event->origin = fmlib_origin_hold(origin);
	event->time_us = (uint64_t)now.tv_sec * 1000000 +
			 (uint64_t)now.tv_nsec / 1000;
	return event;
}

void fmlib_history_add(struct flexmem_cache *cache, enum fmlib_action action,
		       const struct fmlib_block *block)
{
	struct fmlib_event *event = next_event(cache, action, block->origin);

	event->address = flat_address(block->segment, block->offset);
	event->size = block->size;
	event->requested = block->requested;
	event->region_id = block->segment->address.region_id;
	event->stream = block->segment->arena->stream;
	event->pool = block->segment->arena->pool->id;
}

void fmlib_history_segment(struct flexmem_cache *cache,
			   const struct fmlib_segment *segment, uint64_t offset,
			   uint64_t size, bool come)
{
	enum fmlib_action action;
	struct fmlib_event *event;

	if (!cache->history.room)
		return;
	/* PyTorch's history calls the growth of an expandable segment a map. */
	if (segment->growing)
		action = come ? FMLIB_SEGMENT_MAP : FMLIB_SEGMENT_UNMAP;
	else
		action = come ? FMLIB_SEGMENT_ALLOC : FMLIB_SEGMENT_FREE;
	event = next_event(cache, action, &cache->untagged.origin);
	event->address = flat_address(segment, offset);
	event->size = size;
	event->requested = size;
	event->region_id = segment->address.region_id;
	event->stream = segment->arena->stream;
	event->pool = segment->arena->pool->id;
}

void fmlib_history_oom(struct flexmem_cache *cache,
		       const struct fmlib_want *want)
{
	struct fmlib_event *event;

	if (!cache->history.room)
		return;
	event = next_event(cache, FMLIB_OOM, want->origin);
	event->address = want->failure->device_free;
	event->size = want->size;
	event->requested = want->bytes;
	event->stream = want->stream;
	event->pool = want->pool->id;
}

struct fmlib_event *fmlib_history_end(struct flexmem_cache *cache)
{
	struct fmlib_event *events = cache->history.events;
	size_t i;

	for (i = 0; i < cache->history.count; i++)
		fmlib_origin_drop(cache, events[i].origin);
	cache->history = (struct fmlib_history){ 0 };
	return events;
}

static size_t first_size(uint64_t entries)
{
	return entries < FIRST_EVENTS ? (size_t)entries : FIRST_EVENTS;
}

struct fmlib_event *fmlib_history_new(uint64_t entries)
{
	return calloc(first_size(entries), sizeof(struct fmlib_event));
}

struct fmlib_event *fmlib_history_begin(struct flexmem_cache *cache,
					struct fmlib_event *events)
{
	struct fmlib_event *old = fmlib_history_end(cache);

	cache->history.events = events;
	cache->history.room = cache->config.history;
	cache->history.size = first_size(cache->config.history);
	return old;
}

int flexmem_cache_set_history(struct flexmem_cache *cache, size_t entries)
{
	char text[3 * sizeof(entries) + 1];

	snprintf(text, sizeof(text), "%zu", entries);
	return flexmem_cache_set_setting(cache, "history_entries", text);
}

static bool is_shown(const struct fmlib_copy *copy, uint64_t pool)
{
	return copy->pool == FLEXMEM_CACHE_EVERY_POOL || copy->pool == pool;
}

static struct fmlib_origin *hold(struct fmlib_copy *copy, struct fmlib_origin *origin)
{
	copy->has_contexts |= origin->context != NULL;
	return fmlib_origin_hold(origin);
}

static void copy_hole(struct fmlib_copy *copy, const struct fmlib_segment *segment,
		      uint64_t offset, uint64_t size)
{
	copy->blocks[copy->block_count++] = (struct fmlib_copied_block){
		.serial = segment->serial,
		.offset = offset,
		.size = size,
		.state = FMLIB_COPY_FREE,
	};
}

static void copy_block(struct fmlib_copy *copy, const struct fmlib_block *block)
{
	bool live = fmlib_block_is_live(block);

	copy->blocks[copy->block_count++] = (struct fmlib_copied_block){
		.serial = block->segment->serial,
		.offset = block->offset,
		.size = block->size,
		.requested = block->requested,
		.token = live ? (uintptr_t)fmlib_block_token(block) : 0,
		.state = live ? FMLIB_COPY_LIVE : FMLIB_COPY_WAITING,
		.origin = hold(copy, block->origin),
	};
}

static void copy_segment(struct fmlib_copy *copy, const struct fmlib_segment *segment)
{
	const struct fmlib_arena *arena = segment->arena;
	const struct fmlib_piece *piece;
	uint64_t offset = 0;
	uint64_t size;

	copy->segments[copy->segment_count++] = (struct fmlib_copied_segment){
		.serial = segment->serial,
		.address = flat_address(segment, 0),
		.size = segment->size,
		.stream = arena->stream,
		.pool = arena->pool->id,
		.place = segment->address,
		.is_small = arena->kind == FLEXMEM_CACHE_SMALL,
		.growing = segment->growing,
	};
	for (piece = segment->first; piece; piece = piece->next) {
		if (piece->is_free)
			copy_hole(copy, segment, piece->offset, piece->size);
	}
	while (segment->growing &&
	       fmlib_range_hole(&segment->range, &offset, &size)) {
		copy_hole(copy, segment, offset, size);
		offset += size;
	}
}

/*
 * Counts the segments, and determines how many blocks and holes there can be at
 * most.
 */
static size_t count_segments(const struct flexmem_cache *cache, size_t *blocks)
{
	const struct fmlib_segment *segment;
	const struct fmlib_piece *piece;
	size_t count = 0;

	*blocks = fmlib_blocks_count(cache);
	for (segment = cache->first_segment; segment; segment = segment->next) {
		count++;
		*blocks += segment->range.holes;
		for (piece = segment->first; piece; piece = piece->next)
			++*blocks;
	}
	return count;
}

/* Copies the events, the oldest first. */
static void copy_events(struct fmlib_copy *copy, const struct fmlib_history *history)
{
	size_t oldest = history->count == history->size ? history->next : 0;
	struct fmlib_event *event;
	size_t i;

	for (i = 0; i < history->count; i++) {
		event = &history->events[(oldest + i) % history->size];
		if (!is_shown(copy, event->pool))
			continue;
		hold(copy, event->origin);
		copy->events[copy->event_count++] = *event;
	}
}

/* Copies the records. The whole cache is locked. Returns 0 or -ENOMEM. */
static int copy_all(struct flexmem_cache *cache, struct fmlib_copy *copy)
{
	const struct fmlib_segment *segment;
	const struct fmlib_block *block;
	size_t segments;
	size_t blocks;
	uint32_t i;

	segments = count_segments(cache, &blocks);
	copy->segments = calloc(segments + 1, sizeof(*copy->segments));
	copy->blocks = malloc((blocks + 1) * sizeof(*copy->blocks));
	copy->events = malloc((cache->history.count + 1) *
			      sizeof(*copy->events));
	if (!copy->segments || !copy->blocks || !copy->events)
		return -ENOMEM;
	for (segment = cache->first_segment; segment; segment = segment->next) {
		if (is_shown(copy, segment->arena->pool->id))
			copy_segment(copy, segment);
	}
	for (i = 0; i < fmlib_blocks_count(cache); i++) {
		block = fmlib_block_at(cache, i);
		if (block && is_shown(copy, block->segment->arena->pool->id))
			copy_block(copy, block);
	}
	copy_events(copy, &cache->history);
	return 0;
}

static void free_copy(struct flexmem_cache *cache, struct fmlib_copy *copy)
{
	size_t i;

	if (copy->has_contexts) {
		fmlib_lock(cache);
		for (i = 0; i < copy->block_count; i++) {
			if (copy->blocks[i].origin)
				fmlib_origin_drop(cache,
						  copy->blocks[i].origin);
		}
		for (i = 0; i < copy->event_count; i++)
			fmlib_origin_drop(cache, copy->events[i].origin);
		fmlib_unlock(cache);
	}
	free(copy->segments);
	free(copy->blocks);
	free(copy->events);
}

int flexmem_cache_snapshot(struct flexmem_cache *cache, uint64_t pool,
			   char **text, size_t *length)
{
	int err = fmlib_cache_check(cache);
	struct fmlib_copy copy = { .pool = pool };
	int state;

	if (err)
		return err;
	if (!text)
		return -EINVAL;
	/* A thread cancelled in a callback would lose @copy. */
	state = fmlib_cancel_off();
	fmlib_lock(cache);
	if (pool != FLEXMEM_CACHE_EVERY_POOL && !fmlib_pool_find(cache, pool))
		err = -ENOENT;
	else
		err = copy_all(cache, &copy);
	fmlib_unlock(cache);
	if (!err)
		err = fmlib_snapshot_text(cache, &copy, text, length);
	free_copy(cache, &copy);
	fmlib_cancel_as(state);
	return err;
}

void flexmem_cache_text_free(char *text)
{
	free(text);
}
