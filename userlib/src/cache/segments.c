// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Segments: makes, grows, shrinks and returns them. */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

/* Makes room for another region number. Returns 0 or -ENOMEM. */
static int make_region_room(struct flexmem_cache *cache)
{
	uint32_t room = cache->region_count + cache->askers + 1;
	uint64_t *regions;

	if (room <= cache->region_room)
		return 0;
	regions = realloc(cache->regions, room * sizeof(*regions));
	if (!regions)
		return -ENOMEM;
	cache->regions = regions;
	cache->region_room = room;
	return 0;
}

/*
 * Returns the number of a region in snapshots, from 1 on. The caller has made
 * room for a new entry.
 */
static uint32_t region_number(struct flexmem_cache *cache, uint64_t region_id)
{
	uint32_t i = 0;

	while (i < cache->region_count && cache->regions[i] != region_id)
		i++;
	if (i == cache->region_count)
		cache->regions[cache->region_count++] = region_id;
	return i + 1;
}

static int read_info(const struct flexmem_cache_provider *provider,
		     int (*info)(void *user, uint64_t *free, uint64_t *total),
		     uint64_t *free, uint64_t *total)
{
	int err;

	if (!info)
		return -EOPNOTSUPP;
	err = info(provider->user, free, total);
	return err ? fmlib_callback_result(err) : *free > *total ? -EIO : 0;
}

int fmlib_provider_memory(const struct flexmem_cache_provider *provider,
			  uint64_t *free, uint64_t *total)
{
	return read_info(provider, provider->memory_info, free, total);
}

int fmlib_memory_info(const struct flexmem_cache *cache, uint64_t *free,
		      uint64_t *total)
{
	return fmlib_provider_memory(&cache->provider, free, total);
}

int fmlib_device_info(const struct flexmem_cache *cache, uint64_t *free,
		      uint64_t *total)
{
	const struct flexmem_cache_provider *provider = &cache->provider;

	return read_info(provider, provider->device_info ?
			 provider->device_info : provider->memory_info, free,
			 total);
}

uint64_t fmlib_share_of_device(struct flexmem_cache *cache, double share)
{
	uint64_t total;
	uint64_t free;
	int err = fmlib_memory_info(cache, &free, &total);

	if (!err) {
		total = (uint64_t)(share * (double)total);
		/* A limit of 0 would mean "no limit". */
		return total ? total : 1;
	}
	if (!cache->warned_of_memory_info) {
		cache->warned_of_memory_info = true;
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"the device's memory is not known (error %d): garbage_collection_threshold and per_process_memory_fraction have no effect",
				-err);
	}
	return 0;
}

/*
 * Checks whether the cache may get @more bytes. Called before each request to
 * the provider.
 */
static int check_allowance(struct flexmem_cache *cache, struct fmlib_want *want,
			   uint64_t more)
{
	uint64_t reserved =
		cache->figures.reserved_bytes[FLEXMEM_CACHE_ALL].current +
		cache->asking;
	uint64_t allowed = 0;

	if (cache->config.fraction < 1.0)
		allowed = fmlib_share_of_device(cache, cache->config.fraction);
	want->failure->allowed_bytes = allowed;
	want->failure->segment = more;
	want->failure->error = 0;
	/* Forgets the reason of an earlier refusal. */
	want->failure->device = (struct flexmem_failure){ 0 };
	if (!allowed || (more <= allowed && reserved <= allowed - more))
		return 0;
	return -ENOMEM;
}

/*
 * Notes from which segment the lane allocates, because that may have changed.
 */
static void note_first(struct flexmem_cache *cache,
		       const struct fmlib_arena *arena)
{
	const struct fmlib_owner *sole = cache->share.sole;

	if (arena == cache->share.arena) {
		if (sole && sole->stream == sole->lane->stream)
			sole->lane->current = arena->growing;
	} else if (!arena->pool->id && arena->stream == arena->lane->stream &&
		   arena->kind == FLEXMEM_CACHE_LARGE) {
		arena->lane->current = arena->growing;
	}
}

static void link_segment(struct flexmem_cache *cache,
			 struct fmlib_segment *segment)
{
	struct fmlib_segment **link = &segment->arena->growing;

	segment->previous = cache->last_segment;
	if (segment->previous)
		segment->previous->next = segment;
	else
		cache->first_segment = segment;
	cache->last_segment = segment;
	fmlib_place_add(cache, segment);
	if (!segment->growing)
		return;
	segment->previous_grown = cache->last_growing;
	if (segment->previous_grown)
		segment->previous_grown->next_grown = segment;
	else
		cache->first_growing = segment;
	cache->last_growing = segment;
	while (*link)
		link = &(*link)->next_growing;
	*link = segment;
	note_first(cache, segment->arena);
}

/* Removes a segment from the list of growing segments that serve requests. */
static void unlink_growing(struct flexmem_cache *cache,
			   struct fmlib_segment *segment)
{
	struct fmlib_segment **link = &segment->arena->growing;

	while (*link != segment)
		link = &(*link)->next_growing;
	*link = segment->next_growing;
	note_first(cache, segment->arena);
}

static void unlink_segment(struct flexmem_cache *cache,
			   struct fmlib_segment *segment)
{
	if (segment->previous)
		segment->previous->next = segment->next;
	else
		cache->first_segment = segment->next;
	if (segment->next)
		segment->next->previous = segment->previous;
	else
		cache->last_segment = segment->previous;
	fmlib_place_remove(cache, segment);
	if (!segment->growing)
		return;
	if (segment->previous_grown)
		segment->previous_grown->next_grown = segment->next_grown;
	else
		cache->first_growing = segment->next_grown;
	if (segment->next_grown)
		segment->next_grown->previous_grown = segment->previous_grown;
	else
		cache->last_growing = segment->previous_grown;
	if (!segment->lost)
		unlink_growing(cache, segment);
}

/*
 * Adds a segment that is free as a whole. @piece: the only piece of a fixed
 * segment.
 */
static void attach(struct flexmem_cache *cache, struct fmlib_segment *segment,
		   struct fmlib_lane *lane, struct fmlib_piece *piece)
{
	segment->serial = ++cache->segment_serial;
	/* The pool may have been released while the lock was dropped. */
	atomic_init(&segment->leaving, segment->arena->pool->released);
	segment->stamp = fmlib_account(cache, lane)->clock;
	link_segment(cache, segment);
	if (segment->growing) {
		/* Cannot fail: the nodes are prepared. */
		fmlib_range_grow(&segment->range, segment->size);
	} else {
		segment->first = piece;
		segment->last = piece;
		piece->segment = segment;
		piece->previous = NULL;
		piece->next = NULL;
		piece->offset = 0;
		piece->size = segment->size;
		piece->stamp = segment->stamp;
		fmlib_piece_insert(cache, piece);
	}
	fmlib_figures_segment(cache, segment, 1);
	fmlib_figures_reserved(cache, segment, segment->size, 0);
	fmlib_history_segment(cache, segment, 0, segment->size, true);
	fmlib_cache_log(cache, FLEXMEM_LOG_DEBUG,
			"segment %llu: %llu bytes for stream %llu",
			(unsigned long long)segment->serial,
			(unsigned long long)segment->size,
			(unsigned long long)segment->arena->stream);
}

/*
 * Checks memory from the provider. On an error returns the memory to the
 * provider.
 */
static int accept(struct flexmem_cache *cache, const struct fmlib_want *want,
		  struct fmlib_segment *segment,
		  const struct flexmem_cache_memory *memory)
{
	int err;

	segment->handle = memory->handle;
	__atomic_store_n(&segment->address.region_id,
			 memory->address.region_id, __ATOMIC_RELEASE);
	__atomic_store_n(&segment->address.offset, memory->address.offset,
			 __ATOMIC_RELEASE);
	if (!fmlib_memory_is_possible(cache, segment, segment->size,
				      want->mask)) {
		fmlib_memory_reject(cache, segment);
		return -EIO;
	}
	segment->region = region_number(cache, memory->address.region_id);
	err = fmlib_segment_map(cache, segment);
	if (err)
		fmlib_memory_reject(cache, segment);
	return err;
}

/*
 * Calls the provider, without the lock if the setting
 * release_lock_on_device_malloc is on. Returns -ECHILD if the process has
 * forked in the meantime.
 */
static int call_alloc(struct flexmem_cache *cache, struct fmlib_want *want,
		      const struct fmlib_segment *segment,
		      struct flexmem_cache_memory *memory)
{
	const struct flexmem_cache_provider *provider =
		fmlib_provider_of(segment);
	uint32_t flags = cache->flags & FLEXMEM_CACHE_MAPPABLE;
	bool unlock = cache->config.release_lock;
	int state = 0;
	int gone = 0;
	int err;

	if (segment->growing)
		flags |= FLEXMEM_CACHE_GROWABLE;
	if (unlock)
		state = fmlib_pause(cache);
	err = provider->alloc(provider->user, segment->size,
			      want->mask ? want->mask + 1 :
			      cache->profile.granule, flags, memory,
			      &want->failure->device);
	if (unlock)
		gone = fmlib_go_on(cache, state);
	return gone ? gone : fmlib_callback_result(err);
}

/* Requests memory for a new segment, and checks what the provider returns. */
static int ask(struct flexmem_cache *cache, struct fmlib_want *want,
	       struct fmlib_segment *segment)
{
	struct flexmem_cache_memory memory = { 0 };
	struct fmlib_pool *pool = segment->arena->pool;
	int err;

	err = make_region_room(cache);
	if (err) {
		want->no_host_memory = true;
		return err;
	}
	cache->asking += segment->size;
	cache->askers++;
	pool->askers++;
	err = call_alloc(cache, want, segment, &memory);
	if (err == -ECHILD)
		return err;
	cache->askers--;
	pool->askers--;
	cache->asking -= segment->size;
	want->failure->error = err;
	if (err)
		return err;
	err = accept(cache, want, segment, &memory);
	want->failure->error = err;
	want->no_host_memory = err == -ENOMEM;
	return err;
}

static void dispose(struct flexmem_cache *cache, struct fmlib_segment *segment)
{
	fmlib_range_end(&segment->range);
	fmlib_arena_put(cache, segment->arena);
	segment->next = cache->spare_segment;
	cache->spare_segment = segment;
}

/*
 * Returns a zeroed struct for a segment. Structs of returned segments are not
 * freed but reused, because flexmem_cache_address() may still read them.
 */
static struct fmlib_segment *new_segment(struct flexmem_cache *cache)
{
	struct fmlib_segment *segment = cache->spare_segment;

	if (!segment)
		return calloc(1, sizeof(*segment));
	cache->spare_segment = segment->next;
	memset(segment, 0, offsetof(struct fmlib_segment, address));
	return segment;
}

/*
 * Allocates the host structs of a new segment, except a fixed segment's piece.
 */
static struct fmlib_segment *prepare(struct flexmem_cache *cache,
				     struct fmlib_want *want)
{
	struct fmlib_segment *segment;
	struct fmlib_arena *arena;
	bool shared;
	bool grows;

	/*
	 * Prepares two pieces: one for the request, and one for the rest of a
	 * fixed segment.
	 */
	if (fmlib_pieces_prepare(want->lane, 2))
		return NULL;
	grows = fmlib_size_begins_growing(cache, want);
	shared = grows && want->owner;
	arena = shared ? fmlib_arena_share(cache, want) :
			 fmlib_arena_get(cache, want);
	if (!arena)
		return NULL;
	segment = new_segment(cache);
	if (!segment) {
		fmlib_arena_put(cache, arena);
		return NULL;
	}
	segment->arena = arena;
	segment->growing = grows;
	segment->shared = shared;
	if (segment->growing &&
	    fmlib_range_start(&segment->range, cache->profile.granule)) {
		dispose(cache, segment);
		return NULL;
	}
	return segment;
}

/* Takes the request's bytes from the new segment. */
static int use(struct flexmem_cache *cache, struct fmlib_want *want,
	       struct fmlib_segment *segment)
{
	if (segment->growing)
		return fmlib_reserve(cache, segment, want);
	/*
	 * While the lock was dropped, other threads may have used the spare
	 * pieces.
	 */
	if (fmlib_pieces_prepare(want->lane, 1)) {
		want->no_host_memory = true;
		return -ENOMEM;
	}
	fmlib_piece_take(cache, segment->first, want);
	return 0;
}

static int make(struct flexmem_cache *cache, struct fmlib_want *want)
{
	uint64_t size = fmlib_size_segment(cache, want);
	struct fmlib_piece *whole = NULL;
	struct fmlib_segment *segment;
	int err;

	err = check_allowance(cache, want, size);
	if (err)
		return err;
	segment = prepare(cache, want);
	if (!segment) {
		want->no_host_memory = true;
		return -ENOMEM;
	}
	segment->size = size;
	if (!segment->growing)
		whole = fmlib_piece_new(want->lane);
	err = ask(cache, want, segment);
	if (err) {
		if (whole)
			fmlib_piece_drop(want->lane, whole);
		dispose(cache, segment);
		return err;
	}
	/* A second stream may have appeared while the lock was dropped. */
	segment->tracks = segment->shared && !cache->share.sole;
	segment->quick = segment->growing && cache->one_kind &&
			 !segment->tracks;
	fmlib_share_lock(cache, segment);
	attach(cache, segment, want->lane, whole);
	err = use(cache, want, segment);
	fmlib_share_unlock(cache, segment);
	return err;
}

static void extend(struct flexmem_cache *cache, struct fmlib_lane *lane,
		   struct fmlib_segment *segment, uint64_t more)
{
	struct fmlib_holes before = fmlib_holes_of(&segment->range);

	/* Cannot fail: the nodes are prepared. */
	fmlib_range_grow(&segment->range, more);
	segment->stamp = fmlib_account(cache, lane)->clock;
	fmlib_figures_holes(cache, lane, segment, before);
	fmlib_history_segment(cache, segment, segment->size, more, true);
	segment->size += more;
	segment->stuck = false;
	fmlib_figures_reserved(cache, segment, more, 0);
	cache->figures.num_device_grow++;
}

void fmlib_segment_leave(struct fmlib_segment *segment)
{
	atomic_store(&segment->leaving, true);
	/* A private pool has kept the segment so far. */
	fmlib_spare_add(segment);
}

/*
 * From now on the free memory of a segment serves no request, and is returned
 * when possible.
 */
static void withdraw(struct flexmem_cache *cache,
		     struct fmlib_segment *segment)
{
	struct fmlib_piece *piece;

	for (piece = segment->first; piece; piece = piece->next) {
		if (piece->is_free)
			fmlib_fit_remove(&segment->arena->free, piece);
	}
	if (segment->growing)
		unlink_growing(cache, segment);
	fmlib_share_cut(cache, segment, 0);
	segment->lost = true;
	fmlib_segment_leave(segment);
}

bool fmlib_segment_is_lost(struct flexmem_cache *cache,
			   struct fmlib_segment *segment)
{
	const struct flexmem_cache_provider *provider =
		fmlib_provider_of(segment);

	if (segment->lost)
		return true;
	if (!provider->lost ||
	    provider->lost(provider->user, segment->handle) <= 0)
		return false;
	withdraw(cache, segment);
	fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
			"a reset of the device has lost a segment of %llu bytes",
			(unsigned long long)segment->size);
	return true;
}

static int grow(struct flexmem_cache *cache, struct fmlib_want *want,
		struct fmlib_segment *segment)
{
	const struct flexmem_cache_provider *provider =
		fmlib_provider_of(segment);
	uint64_t tail = segment->tracks ?
			fmlib_share_tail(segment, want->owner) :
			fmlib_segment_tail(segment);
	uint64_t lacks = fmlib_tail_lacks(segment, tail, want);
	uint64_t more = fmlib_round_up(lacks, cache->profile.growing_step);
	uint64_t size = segment->size + more;
	int err;

	/* Another thread has freed the end of the segment. */
	if (!lacks)
		return 0;

	if (size > fmlib_range_limit(cache->profile.granule))
		return -EAGAIN;
	err = check_allowance(cache, want, more);
	if (err)
		return err;
	if (fmlib_range_prepare(&segment->range)) {
		want->no_host_memory = true;
		return -ENOMEM;
	}
	err = provider->grow(provider->user, segment->handle, segment->size,
			     size, &want->failure->device);
	err = fmlib_callback_result(err);
	if (!err && !fmlib_memory_is_possible(cache, segment, size, 0)) {
		if (provider->shrink)
			provider->shrink(provider->user, segment->handle, size,
					 segment->size);
		err = -EIO;
	}
	want->failure->error = err;
	if (!err)
		extend(cache, want->lane, segment, more);
	else if (err == -EIO && fmlib_segment_is_lost(cache, segment))
		err = -EAGAIN;
	return err;
}

/*
 * Tries each growing segment, because one may have room to grow where another
 * has none. Returns -ENOENT if none can grow.
 */
static int obtain_by_growth(struct flexmem_cache *cache,
			    struct fmlib_want *want,
			    const struct fmlib_arena *arena)
{
	struct fmlib_segment *segment;
	struct fmlib_segment *next;
	int err;

	for (segment = arena->growing; segment; segment = next) {
		next = segment->next_growing;
		err = grow(cache, want, segment);
		if (!err)
			return fmlib_reserve(cache, segment, want);
		if (want->no_host_memory ||
		    (err != -EAGAIN && err != -ENOMEM))
			return err;
	}
	return -ENOENT;
}

static int obtain_shared(struct flexmem_cache *cache, struct fmlib_want *want)
{
	const struct fmlib_arena *arena = cache->share.arena;
	bool locks = !cache->share.sole;
	int err = fmlib_share_wait(cache, want, false);

	if (err != -ENOENT || !arena || !cache->expandable)
		return err;
	if (locks)
		fmlib_lock_take(&cache->share.lock);
	err = obtain_by_growth(cache, want, arena);
	if (locks)
		fmlib_lock_drop(&cache->share.lock);
	return err;
}

int fmlib_segment_obtain(struct flexmem_cache *cache, struct fmlib_want *want)
{
	const struct fmlib_arena *arena;
	int err;

	/* The setting may have changed while the lock was dropped. */
	err = fmlib_share_join(cache, want);
	if (err)
		return err;
	/*
	 * While the lock was dropped, an event or another thread may have freed
	 * memory. If the search fails again, the free end of each growing
	 * segment is too small.
	 */
	err = fmlib_obtain(cache, want);
	if (err != -ENOENT)
		return err;
	if (want->owner) {
		err = obtain_shared(cache, want);
	} else {
		arena = fmlib_arena_find(cache, want);
		if (arena && cache->expandable)
			err = obtain_by_growth(cache, want, arena);
	}
	return err == -ENOENT ? make(cache, want) : err;
}

int fmlib_segment_exact(struct flexmem_cache *cache, struct fmlib_want *want)
{
	bool grows = fmlib_size_begins_growing(cache, want);
	uint64_t usual = fmlib_size_segment(cache, want);
	int err = -ENOMEM;

	want->exact = true;
	if (grows || fmlib_size_segment(cache, want) < usual)
		err = make(cache, want);
	want->exact = false;
	return err;
}

uint64_t fmlib_segment_spare(const struct flexmem_cache *cache,
			     const struct fmlib_segment *segment)
{
	uint64_t tail = fmlib_segment_tail(segment);

	if (tail == segment->size)
		return segment->size;
	if (!tail || segment->lost || !segment->growing || segment->stuck ||
	    !fmlib_provider_of(segment)->shrink)
		return 0;
	return segment->size - fmlib_round_up(segment->size - tail,
					      cache->profile.growing_step);
}

uint64_t fmlib_segment_excess(const struct flexmem_cache *cache,
			      const struct fmlib_segment *segment)
{
	return segment->arena->pool->id && !fmlib_segment_leaves(segment) ? 0 :
	       fmlib_segment_spare(cache, segment);
}

static int shrink(struct flexmem_cache *cache, struct fmlib_segment *segment,
		  uint64_t less)
{
	const struct flexmem_cache_provider *provider =
		fmlib_provider_of(segment);
	struct fmlib_holes before = fmlib_holes_of(&segment->range);
	uint64_t size = segment->size - less;
	int err;

	err = provider->shrink(provider->user, segment->handle, segment->size,
			       size);
	err = fmlib_callback_result(err);
	/* After -EIO another attempt would fail again. */
	segment->stuck = err == -EIO;
	if (segment->stuck)
		fmlib_segment_is_lost(cache, segment);
	if (err)
		return err;
	fmlib_range_shrink(&segment->range, less);
	fmlib_share_cut(cache, segment, size);
	fmlib_figures_holes(cache, segment->arena->lane, segment, before);
	segment->size = size;
	fmlib_history_segment(cache, segment, size, less, false);
	fmlib_figures_reserved(cache, segment, 0, less);
	cache->figures.num_device_shrink++;
	return 0;
}

/*
 * If the provider refuses to take a segment back, the segment stays in use, so
 * it is mapped again. If this map fails, the bytes have no pointer any more,
 * and the segment serves no request.
 */
static int free_whole(struct flexmem_cache *cache,
		      struct fmlib_segment *segment)
{
	int err = fmlib_segment_free(segment);

	if (!err)
		fmlib_segment_forget(cache, segment);
	else if (!segment->pointer && !segment->lost &&
		 fmlib_segment_map(cache, segment))
		withdraw(cache, segment);
	return err;
}

/* Returns @excess bytes: the whole segment, or its end if it @shrinks. */
static int give(struct flexmem_cache *cache, struct fmlib_segment *segment,
		uint64_t excess, bool shrinks, uint64_t *released)
{
	int err;

	err = shrinks ? shrink(cache, segment, excess) :
			free_whole(cache, segment);
	/*
	 * If the segment only shrinks, -EBUSY is no error: the bytes are
	 * mapped, or are being copied.
	 */
	if (err && !(shrinks && err == -EBUSY))
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"the provider did not take %llu bytes back: error %d",
				(unsigned long long)excess, -err);
	if (err)
		return err;
	*released += excess;
	cache->returned += excess;
	return 0;
}

int fmlib_segment_give_back(struct flexmem_cache *cache,
			    struct fmlib_segment *segment, uint64_t *released)
{
	return give(cache, segment, fmlib_segment_spare(cache, segment),
		    fmlib_segment_tail(segment) < segment->size, released);
}

int fmlib_segment_give_some(struct flexmem_cache *cache,
			    struct fmlib_segment *segment, uint64_t bytes,
			    uint64_t *released)
{
	uint64_t step = cache->profile.growing_step;

	if (!segment->growing || segment->lost || segment->stuck ||
	    !fmlib_provider_of(segment)->shrink ||
	    bytes >= fmlib_segment_excess(cache, segment))
		return fmlib_segment_give_back(cache, segment, released);
	bytes = fmlib_round_up(bytes, step);
	if (bytes >= fmlib_segment_excess(cache, segment))
		return fmlib_segment_give_back(cache, segment, released);
	return give(cache, segment, bytes, true, released);
}

void fmlib_put_back(struct flexmem_cache *cache,
		    const struct fmlib_found *found)
{
	struct fmlib_segment *segment = found->segment;
	uint64_t released = 0;

	fmlib_release(cache, found);
	if (!cache->config.direct && !fmlib_segment_leaves(segment))
		return;
	/*
	 * If the provider refuses, the segment stays, and is returned later
	 * together with others.
	 */
	if (fmlib_segment_tail(segment) == segment->size &&
	    fmlib_segment_excess(cache, segment))
		fmlib_segment_give_back(cache, segment, &released);
}

void fmlib_settle(struct flexmem_cache *cache, struct fmlib_block *block)
{
	const struct fmlib_found found = {
		.segment = block->segment,
		.offset = block->offset,
		.size = block->size,
		.piece = block->piece,
		.owner = block->owner,
	};
	struct fmlib_lane *lane = fmlib_lane_of(block);

	fmlib_history_block(cache, FMLIB_FREE_COMPLETED, block);
	fmlib_origin_drop(cache, block->origin);
	fmlib_block_give(cache, lane, block);
	fmlib_put_back(cache, &found);
}

void fmlib_segment_forget(struct flexmem_cache *cache,
			  struct fmlib_segment *segment)
{
	struct fmlib_piece *piece;
	struct fmlib_piece *next;

	fmlib_history_segment(cache, segment, 0, segment->size, false);
	fmlib_figures_segment(cache, segment, -1);
	fmlib_figures_reserved(cache, segment, 0, segment->size);
	for (piece = segment->first; piece; piece = next) {
		next = piece->next;
		if (piece->is_free)
			fmlib_piece_remove(cache, piece);
		fmlib_piece_drop(segment->arena->lane, piece);
	}
	fmlib_share_cut(cache, segment, 0);
	unlink_segment(cache, segment);
	dispose(cache, segment);
}
