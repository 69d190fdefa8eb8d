// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Shared segments: with the settings reuse:done and reuse:wait, all streams
 * share the growing segments of the common pool.
 *
 * While only one stream uses them, they need no bookkeeping: the stream may use
 * each hole at once, because its work runs in order. When a second stream
 * appears, the segments begin to *track* which stream may still use which free
 * part. Such a part is *pending* until the work of that stream is done. A
 * stream takes the lowest place that consists of parts of its own and of parts
 * that are not pending.
 *
 * Time is counted in *epochs*. Each event that the cache records on a stream,
 * and each synchronization of the device, ends the present epoch. So if an
 * event of a stream has happened, all parts that the stream freed up to the
 * epoch of the event are free for all streams, and not pending any more. The
 * cache queries events now and then while streams free memory, and whenever no
 * place serves a request.
 *
 * If the cache would otherwise have to get more memory, a stream may take parts
 * that are pending, and wait on the device for the streams that use them.
 */
#include "cache.h"

#include <stdlib.h>

/*
 * After FMLIB_FREES frees of a stream an event is recorded on it, and the events
 * of this many streams are queried.
 */
#define POLLS 16
/* Up to this share above the peak of live bytes, the segments just grow. */
#define ROOM 50

/*
 * Searches a hole for @size bytes that the stream can use. Returns where they
 * begin. If fewer bytes are left there, there are none.
 */
static uint64_t search_hole(const struct fmlib_segment *segment,
			    const struct fmlib_owner *owner, uint64_t start,
			    uint64_t end, const struct fmlib_want *want)
{
	const struct fmlib_pending *part;
	uint64_t next;

	start += fmlib_skip(segment, start, want);
	next = start;
	while (start <= end && end - start >= want->size &&
	       next - start < want->size) {
		part = fmlib_part_from(segment, next);
		if (!part || part->offset >= end ||
		    part->offset >= start + want->size)
			break;
		next = fmlib_part_end(part);
		if (part->owner == owner)
			continue;
		start = next + fmlib_skip(segment, next, want);
		next = start;
	}
	return start < end ? start : end;
}

/* Finds the lowest place for a request that its stream can use at once. */
static bool search(const struct fmlib_segment *segment,
		   const struct fmlib_owner *owner,
		   const struct fmlib_want *want, uint64_t *offset)
{
	uint64_t hole = 0;
	uint64_t length;

	while (fmlib_range_fit(&segment->range, want->size, &hole, &length)) {
		*offset = search_hole(segment, owner, hole, hole + length,
				      want);
		hole += length;
		if (hole - *offset >= want->size)
			return true;
	}
	return false;
}

/* ---- epochs ---- */

static bool record(struct flexmem_cache *cache, struct fmlib_owner *owner)
{
	struct fmlib_epoch *epoch = malloc(sizeof(*epoch));
	int err = -ENOMEM;

	if (epoch)
		err = cache->events.record(cache->events.user, owner->stream,
					   &epoch->event);
	owner->frees = 0;
	if (err) {
		free(epoch);
		return false;
	}
	epoch->number = cache->share.epoch++;
	epoch->complained = false;
	epoch->next = NULL;
	if (owner->first)
		owner->last->next = epoch;
	else
		owner->first = epoch;
	owner->last = epoch;
	return true;
}

static bool happened(struct flexmem_cache *cache,
		     const struct fmlib_owner *owner)
{
	struct fmlib_epoch *epoch = owner->first;
	int err = cache->events.query(cache->events.user, epoch->event);

	if (err && err != -EAGAIN && !epoch->complained) {
		epoch->complained = true;
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"an event on stream %llu cannot be queried: error %d",
				(unsigned long long)owner->stream, -err);
	}
	return !err;
}

/* The parts of the stream up to an epoch are not pending any more. */
static void end_epoch(struct flexmem_cache *cache, struct fmlib_owner *owner,
		      uint64_t number)
{
	struct fmlib_pending *part = owner->first_part;
	struct fmlib_pending *next;

	while (owner->first && owner->first->number <= number)
		fmlib_epoch_drop(cache, owner, true);
	/* The last part may be the end of the owner. */
	for (; part && part->epoch <= number; part = next) {
		next = part->next;
		fmlib_part_remove(cache, part);
	}
}

/*
 * Finds out which epochs of a stream are done. Returns whether there is news.
 */
static bool poll_owner(struct flexmem_cache *cache, struct fmlib_owner *owner)
{
	bool news = false;
	bool more = true;
	uint64_t number;

	while (more && (owner->first || record(cache, owner)) &&
	       happened(cache, owner)) {
		number = owner->first->number;
		more = owner->last_part->epoch > number;
		end_epoch(cache, owner, number);
		news = true;
	}
	return news;
}

/* Polls at most @count streams. Returns whether an event has happened. */
static bool poll(struct flexmem_cache *cache, size_t count)
{
	struct fmlib_owner *owner = cache->share.pending;
	struct fmlib_owner *next;
	bool news = false;

	for (; owner && count--; owner = next) {
		next = owner->next_pending;
		if (poll_owner(cache, owner))
			news = true;
	}
	return news;
}

bool fmlib_share_poll(struct flexmem_cache *cache, const struct fmlib_want *want)
{
	bool news;

	if (!want->owner || cache->captures)
		return false;
	fmlib_lock_take(&cache->share.lock);
	news = poll(cache, SIZE_MAX);
	fmlib_lock_drop(&cache->share.lock);
	return news;
}

uint64_t fmlib_share_mark(struct flexmem_cache *cache)
{
	return cache->share.epoch++;
}

void fmlib_share_done(struct flexmem_cache *cache, uint64_t epoch)
{
	struct fmlib_owner *owner;
	struct fmlib_owner *next;

	for (owner = cache->share.pending; owner; owner = next) {
		next = owner->next_pending;
		end_epoch(cache, owner, epoch);
	}
}

/* ---- blocks ---- */

/* Whether the streams' work on free parts of the segment is tracked. */
static bool tracks_work(const struct flexmem_cache *cache,
			const struct fmlib_segment *segment)
{
	return segment->tracks && cache->has_events && !segment->lost &&
	       !cache->share.is_done;
}

/* The bytes of all blocks in shared segments. */
static uint64_t used(const struct fmlib_share *share)
{
	const struct fmlib_segment *segment = share->arena->growing;
	uint64_t bytes = 0;

	for (; segment; segment = segment->next_growing)
		bytes += fmlib_range_used(&segment->range);
	return bytes;
}

static void note_peak(struct fmlib_share *share)
{
	uint64_t bytes = used(share);

	if (bytes > share->peak)
		share->peak = bytes;
}

/* Sets host memory aside for one more block. */
static int prepare_block(struct flexmem_cache *cache,
			 struct fmlib_segment *segment)
{
	int err = fmlib_range_prepare_claims(&segment->range, 1);

	if (!err && cache->has_events)
		/* Two for the rests of a part in the middle of which it is. */
		err = fmlib_parts_prepare(&cache->share, cache->share.live + 2);
	return err;
}

static void take_at(struct flexmem_cache *cache, struct fmlib_segment *segment,
		    struct fmlib_want *want, struct fmlib_owner *owner,
		    uint64_t offset)
{
	struct fmlib_holes before = fmlib_holes_of(&segment->range);

	/* Cannot fail: the bytes are free, and the nodes are set aside. */
	fmlib_range_claim(&segment->range, offset, want->size);
	fmlib_figures_holes(cache, want->lane, segment, before);
	owner->blocks++;
	cache->share.live++;
	fmlib_parts_clear(cache, segment, offset, offset + want->size);
	note_peak(&cache->share);
	want->found = (struct fmlib_found){
		.segment = segment,
		.offset = offset,
		.size = want->size,
		.owner = owner,
	};
}

int fmlib_share_reserve(struct flexmem_cache *cache,
			struct fmlib_segment *segment, struct fmlib_want *want)
{
	struct fmlib_owner *owner = fmlib_owner_get(&cache->share, want->lane,
					      want->stream);
	uint64_t offset;
	int err = owner ? prepare_block(cache, segment) : -ENOMEM;

	if (!err && !search(segment, owner, want, &offset))
		err = -ENOSPC;
	if (!err)
		take_at(cache, segment, want, owner, offset);
	else if (owner)
		fmlib_owner_put(cache, owner);
	return err;
}

void fmlib_share_count(struct flexmem_cache *cache, struct fmlib_owner *owner,
		       uint32_t frees)
{
	int state;

	owner->frees += frees;
	if (owner->frees >= FMLIB_FREES && owner->first_part && !cache->captures) {
		/*
		 * A free that locks only a lane leaves cancellation on. A
		 * callback may be a cancellation point.
		 */
		state = fmlib_cancel_off();
		record(cache, owner);
		poll(cache, POLLS);
		fmlib_cancel_as(state);
	}
}

void fmlib_share_free(struct flexmem_cache *cache,
		      struct fmlib_segment *segment, struct fmlib_owner *owner,
		      uint64_t offset, uint64_t size)
{
	struct fmlib_share *share = &cache->share;
	struct fmlib_pending *before;

	share->live--;
	if (tracks_work(cache, segment)) {
		before = offset ? fmlib_part_from(segment, offset - 1) : NULL;
		if (before && fmlib_part_end(before) == offset &&
		    before->owner == owner && before->epoch == share->epoch)
			before->size += size;
		else
			fmlib_part_add(share, segment, owner, offset, size);
		fmlib_share_count(cache, owner, 1);
	}
	owner->blocks--;
	fmlib_owner_put(cache, owner);
}

uint64_t fmlib_share_tail(const struct fmlib_segment *segment,
			  const struct fmlib_owner *owner)
{
	uint64_t start = segment->size - fmlib_segment_tail(segment);
	const struct fmlib_pending *part;
	uint64_t next = start;

	while ((part = fmlib_part_from(segment, next))) {
		next = fmlib_part_end(part);
		if (part->owner != owner)
			start = next;
	}
	return segment->size - start;
}

/* Whether the segments may grow for a request, before its stream waits. */
static bool has_room(const struct fmlib_share *share,
		     const struct fmlib_want *want)
{
	const struct fmlib_segment *segment;
	uint64_t reserved = want->size;
	uint64_t peak;

	peak = used(share) + want->size;
	if (peak < share->peak)
		peak = share->peak;
	for (segment = share->arena->growing; segment;
	     segment = segment->next_growing)
		reserved += segment->size;
	return reserved <= peak + peak / ROOM;
}

/* ---- waits of a stream ---- */

/*
 * Returns an event of a stream that ends an epoch. Records it if there is none
 * yet. Returns NULL if that fails.
 */
static const struct fmlib_epoch *event_for(struct flexmem_cache *cache,
					   struct fmlib_owner *owner,
					   uint64_t number)
{
	const struct fmlib_epoch *epoch = owner->first;

	while (epoch && epoch->number < number)
		epoch = epoch->next;
	if (!epoch && record(cache, owner))
		epoch = owner->last;
	return epoch;
}

/*
 * Lets the stream of the request wait on the device for all work on the
 * interval. Returns false if it cannot.
 */
static bool wait_for(struct flexmem_cache *cache,
		     const struct fmlib_segment *segment,
		     const struct fmlib_want *want, uint64_t offset)
{
	const struct fmlib_epoch *epoch;
	struct fmlib_pending *part;
	struct fmlib_owner *owner;

	cache->share.request++;
	for (part = fmlib_part_from(segment, offset);
	     part && part->offset < offset + want->size;
	     part = fmlib_part_from(segment, fmlib_part_end(part))) {
		owner = part->owner;
		if (owner->request != cache->share.request) {
			owner->request = cache->share.request;
			owner->waited = 0;
		}
		if (owner == want->owner || part->epoch <= owner->waited)
			continue;
		epoch = event_for(cache, owner, part->epoch);
		if (!epoch ||
		    cache->events.wait(cache->events.user, want->stream,
				       epoch->event))
			return false;
		owner->waited = epoch->number;
		cache->figures.num_stream_waits++;
	}
	return true;
}

/* Takes the lowest place, whether work may still use it or not. */
static int take_pending(struct flexmem_cache *cache, struct fmlib_want *want)
{
	struct fmlib_segment *segment = cache->share.arena->growing;
	uint64_t offset;

	while (segment && !fmlib_hole_find(segment, want, &offset))
		segment = segment->next_growing;
	if (!segment)
		return -ENOENT;
	if (prepare_block(cache, segment)) {
		want->no_host_memory = true;
		return -ENOMEM;
	}
	if (!wait_for(cache, segment, want, offset))
		return -ENOENT;
	take_at(cache, segment, want, want->owner, offset);
	return 0;
}

int fmlib_share_wait(struct flexmem_cache *cache, struct fmlib_want *want,
		     bool is_short)
{
	int err = -ENOENT;

	if (!want->owner || !cache->share.arena || cache->share.sole ||
	    !cache->events.wait || cache->captures ||
	    cache->config.reuse != FMLIB_REUSE_WAIT)
		return -ENOENT;
	fmlib_lock_take(&cache->share.lock);
	if (is_short || !has_room(&cache->share, want))
		err = take_pending(cache, want);
	fmlib_lock_drop(&cache->share.lock);
	return err;
}

/* ---- the beginning and the end ---- */

bool fmlib_share_is_shut(const struct flexmem_cache *cache,
			 const struct fmlib_want *want)
{
	return cache->share.sole && cache->share.sole->stream != want->stream;
}

/*
 * A second stream appears: from now on the segments track which stream uses
 * which memory.
 */
static int begin_to_track(struct flexmem_cache *cache)
{
	struct fmlib_segment *first = cache->share.arena->growing;
	struct fmlib_share *share = &cache->share;
	struct fmlib_owner *sole = share->sole;
	struct fmlib_segment *segment;
	uint64_t offset;
	uint64_t size;
	size_t live = 0;
	size_t count = 0;

	for (segment = cache->first_segment; segment; segment = segment->next) {
		if (!segment->shared)
			continue;
		live += segment->range.parts;
		count += segment->range.holes;
	}
	if (cache->has_events && fmlib_parts_prepare(share, live + count))
		return -ENOMEM;
	share->sole = NULL;
	share->live = live;
	sole->blocks += live;
	sole->frees = 0;
	sole->lane->current = NULL;
	for (segment = cache->first_segment; segment; segment = segment->next) {
		segment->tracks = segment->shared;
		if (segment->tracks)
			segment->quick = false;
	}
	for (segment = first; segment; segment = segment->next_growing) {
		for (offset = 0; fmlib_range_hole(&segment->range, &offset,
						  &size); offset += size) {
			if (cache->has_events)
				fmlib_part_add(share, segment, sole, offset, size);
		}
	}
	share->peak = fmlib_figures_peak(cache);
	note_peak(share);
	fmlib_owner_put(cache, sole);
	return 0;
}

int fmlib_share_open(struct flexmem_cache *cache, const struct fmlib_want *want)
{
	if (!fmlib_share_is_shut(cache, want))
		return 0;
	fmlib_lock_rest(cache);
	return fmlib_share_is_shut(cache, want) ? begin_to_track(cache) : 0;
}

int fmlib_share_join(struct flexmem_cache *cache, struct fmlib_want *want)
{
	struct fmlib_share *share = &cache->share;
	int err;

	if (want->owner || !fmlib_share_serves(cache, want->pool))
		return 0;
	err = fmlib_share_open(cache, want);
	if (!err) {
		fmlib_lock_take(&share->lock);
		want->owner = fmlib_owner_get(share, want->lane, want->stream);
		if (want->owner)
			want->owner->blocks++;
		fmlib_lock_drop(&share->lock);
	}
	want->no_host_memory = !want->owner;
	return want->owner ? 0 : -ENOMEM;
}

void fmlib_share_leave(struct flexmem_cache *cache, struct fmlib_want *want)
{
	if (!want->owner)
		return;
	fmlib_lock_take(&cache->share.lock);
	want->owner->blocks--;
	fmlib_owner_put(cache, want->owner);
	fmlib_lock_drop(&cache->share.lock);
	want->owner = NULL;
}

void fmlib_share_begin(struct flexmem_cache *cache, struct fmlib_arena *arena,
		       struct fmlib_owner *owner)
{
	cache->share.arena = arena;
	cache->share.sole = owner;
}

void fmlib_share_end(struct flexmem_cache *cache)
{
	struct fmlib_owner *sole = cache->share.sole;

	cache->share.arena = NULL;
	cache->share.sole = NULL;
	if (sole) {
		sole->lane->current = NULL;
		fmlib_owner_put(cache, sole);
	}
}

void fmlib_share_free_all(struct flexmem_cache *cache, bool destroy_events)
{
	struct fmlib_share *share = &cache->share;
	struct fmlib_pending *part;
	struct fmlib_owner *owner;
	size_t i;

	for (i = 0; i < FMLIB_OWNER_CHAINS; i++) {
		while ((owner = share->owners[i])) {
			share->owners[i] = owner->next;
			while (owner->first)
				fmlib_epoch_drop(cache, owner, destroy_events);
			free(owner);
		}
	}
	while ((part = share->spare)) {
		share->spare = part->left;
		free(part);
	}
}
