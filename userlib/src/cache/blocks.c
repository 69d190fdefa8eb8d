// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Finds the memory for a request: a part of a hole of a growing segment, or a
 * free piece of a fixed segment, which may be split. A free merges pieces that
 * were split. A free cannot fail, because the nodes that it needs are set aside
 * before.
 */
#include "cache.h"
#include "kept.h"

#include <stdlib.h>

/* A lane with this many spare pieces keeps no more of those that merge. */
#define SPARE_MAX 8192

static struct fmlib_lane *lane_of(const struct fmlib_piece *piece)
{
	return piece->segment->arena->lane;
}

static void add_spare(struct fmlib_lane *lane, struct fmlib_piece *piece)
{
	piece->next = lane->spare;
	lane->spare = piece;
	lane->spare_count++;
}

int fmlib_pieces_make(struct fmlib_lane *lane, size_t count)
{
	struct fmlib_piece *piece;

	while (lane->spare_count < count) {
		piece = malloc(sizeof(*piece));
		if (!piece)
			return -ENOMEM;
		add_spare(lane, piece);
	}
	return 0;
}

struct fmlib_piece *fmlib_piece_new(struct fmlib_lane *lane)
{
	struct fmlib_piece *piece = lane->spare;

	lane->spare = piece->next;
	lane->spare_count--;
	return piece;
}

void fmlib_piece_drop(struct fmlib_lane *lane, struct fmlib_piece *piece)
{
	if (lane->spare_count >= SPARE_MAX) {
		free(piece);
		return;
	}
	add_spare(lane, piece);
}

static bool is_alone(const struct fmlib_piece *piece)
{
	return !piece->previous && !piece->next;
}

uint64_t fmlib_segment_tail(const struct fmlib_segment *segment)
{
	const struct fmlib_piece *last = segment->last;

	if (segment->growing)
		return fmlib_range_tail(&segment->range);
	return last->is_free ? last->size : 0;
}

uint64_t fmlib_segment_stamp(const struct fmlib_segment *segment)
{
	return segment->growing ? segment->stamp : segment->last->stamp;
}

void fmlib_piece_insert(struct flexmem_cache *cache, struct fmlib_piece *piece)
{
	struct fmlib_lane *lane = lane_of(piece);

	piece->is_free = true;
	piece->left = NULL;
	piece->right = NULL;
	/* xorshift32 spreads well enough for priorities. */
	lane->random ^= lane->random << 13;
	lane->random ^= lane->random >> 17;
	lane->random ^= lane->random << 5;
	piece->priority = lane->random;
	if (!piece->segment->lost)
		fmlib_fit_insert(&piece->segment->arena->free, piece);
	if (is_alone(piece))
		fmlib_spare_add(piece->segment);
	else
		fmlib_figures_split(cache, piece, 1);
}

void fmlib_piece_remove(struct flexmem_cache *cache, struct fmlib_piece *piece)
{
	if (is_alone(piece))
		fmlib_spare_remove(piece->segment);
	else
		fmlib_figures_split(cache, piece, -1);
	if (!piece->segment->lost)
		fmlib_fit_remove(&piece->segment->arena->free, piece);
	piece->is_free = false;
}

/*
 * The oversize rule: outside of the small pool, a piece of max_split_size_mb
 * and above serves a request only if the request has that size too, and is at
 * most config.slack smaller than the piece. A whole segment also serves a request for
 * which the cache would get another one as large, because of its alignment.
 */
static bool fits_oversize_rule(const struct flexmem_cache *cache,
			       const struct fmlib_want *want,
			       const struct fmlib_piece *piece)
{
	uint64_t max_split = cache->config.max_split;

	if (want->kind == FLEXMEM_CACHE_SMALL || piece->size < max_split)
		return true;
	if (want->size >= max_split &&
	    piece->size - want->size <= cache->config.slack)
		return true;
	return want->mask && is_alone(piece) &&
	       piece->size <= fmlib_size_segment(cache, want);
}

static uint64_t cut(const struct flexmem_cache *cache,
		    const struct fmlib_piece *piece, uint64_t size)
{
	const struct fmlib_arena *arena = piece->segment->arena;

	if (arena->pool->flags & FLEXMEM_CACHE_POOL_NO_SPLIT)
		return piece->size;
	if (size <= cache->profile.small_limit)
		return size;
	if (size < cache->config.max_split &&
	    piece->size - size > cache->profile.large_remainder)
		return size;
	return piece->size;
}

/*
 * Splits a piece after @size bytes. Returns the rest, which is not in the tree
 * of free pieces.
 */
static struct fmlib_piece *split(struct fmlib_piece *piece, uint64_t size)
{
	struct fmlib_piece *rest = fmlib_piece_new(lane_of(piece));

	rest->segment = piece->segment;
	rest->offset = piece->offset + size;
	rest->size = piece->size - size;
	/* The rest counts as free since the piece became free. */
	rest->stamp = piece->stamp;
	rest->is_free = false;
	rest->previous = piece;
	rest->next = piece->next;
	if (rest->next)
		rest->next->previous = rest;
	else
		piece->segment->last = rest;
	piece->next = rest;
	piece->size = size;
	return rest;
}

/* Takes a piece out of the tree, less its first bytes, which stay free. */
static struct fmlib_piece *take_behind(struct flexmem_cache *cache,
				       struct fmlib_piece *piece, uint64_t bytes)
{
	struct fmlib_piece *before = piece;

	fmlib_piece_remove(cache, piece);
	if (bytes) {
		piece = split(before, bytes);
		fmlib_piece_insert(cache, before);
	}
	return piece;
}

void fmlib_piece_take(struct flexmem_cache *cache, struct fmlib_piece *piece,
		      struct fmlib_want *want)
{
	uint64_t size;

	piece = take_behind(cache, piece,
			    fmlib_skip(piece->segment, piece->offset, want));
	size = cut(cache, piece, want->size);
	if (size < piece->size)
		fmlib_piece_insert(cache, split(piece, size));
	want->found = (struct fmlib_found){
		.segment = piece->segment,
		.offset = piece->offset,
		.size = piece->size,
		.piece = piece,
	};
}

/*
 * Merges @piece with the next piece. Neither may be in the tree of free pieces.
 */
static void absorb_next(struct fmlib_piece *piece)
{
	struct fmlib_piece *next = piece->next;

	piece->size += next->size;
	piece->next = next->next;
	if (piece->next)
		piece->next->previous = piece;
	else
		piece->segment->last = piece;
	fmlib_piece_drop(lane_of(piece), next);
}

void fmlib_piece_release(struct flexmem_cache *cache, struct fmlib_piece *piece)
{
	if (piece->next && piece->next->is_free) {
		fmlib_piece_remove(cache, piece->next);
		absorb_next(piece);
	}
	if (piece->previous && piece->previous->is_free) {
		piece = piece->previous;
		fmlib_piece_remove(cache, piece);
		absorb_next(piece);
	}
	piece->stamp = fmlib_account(cache, lane_of(piece))->clock;
	fmlib_piece_insert(cache, piece);
}

void fmlib_release_shared(struct flexmem_cache *cache,
			  const struct fmlib_found *found)
{
	struct fmlib_segment *segment = found->segment;
	struct fmlib_lane *lane = segment->shared ? found->owner->lane :
						    segment->arena->lane;
	struct fmlib_holes before = fmlib_holes_of(&segment->range);
	uint64_t tail = fmlib_range_tail(&segment->range);

	/* Cannot fail, because these bytes are reserved. */
	fmlib_range_release(&segment->range, found->offset, found->size);
	if (fmlib_range_tail(&segment->range) != tail)
		segment->stamp = fmlib_account(cache, lane)->clock;
	fmlib_figures_holes(cache, lane, segment, before);
	if (segment->tracks)
		fmlib_share_free(cache, segment, found->owner, found->offset,
				 found->size);
}

static void release_growing(struct flexmem_cache *cache,
			    const struct fmlib_found *found)
{
	struct fmlib_segment *segment = found->segment;

	fmlib_share_lock(cache, segment);
	fmlib_release_shared(cache, found);
	fmlib_share_unlock(cache, segment);
}

void fmlib_release(struct flexmem_cache *cache,
		   const struct fmlib_found *found)
{
	if (found->segment->growing)
		release_growing(cache, found);
	else
		fmlib_piece_release(cache, found->piece);
}

bool fmlib_hole_find(const struct fmlib_segment *segment,
		     const struct fmlib_want *want, uint64_t *offset)
{
	uint64_t hole = 0;
	uint64_t length;
	uint64_t skip;

	while (fmlib_range_fit(&segment->range, want->size, &hole, &length)) {
		skip = fmlib_skip(segment, hole, want);
		*offset = hole + skip;
		if (length - want->size >= skip)
			return true;
		hole += length;
	}
	return false;
}

static int reserve_aligned(struct fmlib_segment *segment,
			   const struct fmlib_want *want, uint64_t *offset)
{
	if (fmlib_range_prepare_claims(&segment->range, 1))
		return -ENOMEM;
	if (!fmlib_hole_find(segment, want, offset))
		return -ENOSPC;
	/* Cannot fail: the bytes are free, and the nodes are set aside. */
	return fmlib_range_claim(&segment->range, *offset, want->size);
}

int fmlib_reserve(struct flexmem_cache *cache, struct fmlib_segment *segment,
		  struct fmlib_want *want)
{
	struct fmlib_holes before = fmlib_holes_of(&segment->range);
	uint64_t offset;
	int err;

	if (segment->tracks) {
		err = fmlib_share_reserve(cache, segment, want);
		want->no_host_memory = err == -ENOMEM;
		return err;
	}
	err = want->mask ? reserve_aligned(segment, want, &offset) :
			   fmlib_range_reserve(&segment->range, want->size,
					       &offset);
	if (err) {
		want->no_host_memory = err == -ENOMEM;
		return err;
	}
	fmlib_figures_holes(cache, want->lane, segment, before);
	want->found = (struct fmlib_found){
		.segment = segment,
		.offset = offset,
		.size = want->size,
		.owner = segment->shared ? cache->share.sole : NULL,
	};
	return 0;
}

/* The caller has prepared two spare pieces. */
static struct fmlib_piece *claim_piece(struct flexmem_cache *cache,
				       const struct fmlib_segment *segment,
				       uint64_t offset, uint64_t size)
{
	struct fmlib_piece *piece = segment->first;

	while (piece->offset + piece->size <= offset)
		piece = piece->next;
	piece = take_behind(cache, piece, offset - piece->offset);
	if (piece->size > size)
		fmlib_piece_insert(cache, split(piece, size));
	return piece;
}

void fmlib_claim(struct flexmem_cache *cache, struct fmlib_segment *segment,
		 uint64_t offset, uint64_t size, struct fmlib_want *want)
{
	struct fmlib_holes before = fmlib_holes_of(&segment->range);

	want->found = (struct fmlib_found){
		.segment = segment,
		.offset = offset,
		.size = size,
	};
	if (segment->growing) {
		fmlib_range_claim(&segment->range, offset, size);
		fmlib_figures_holes(cache, segment->arena->lane, segment,
				    before);
	} else {
		want->found.piece = claim_piece(cache, segment, offset, size);
	}
}

/* Looks for memory in the growing segments of an arena. */
static int obtain_growing(struct flexmem_cache *cache, struct fmlib_want *want,
			  const struct fmlib_arena *arena)
{
	struct fmlib_segment *segment;
	int err = -ENOSPC;

	for (segment = arena->growing; segment && err == -ENOSPC;
	     segment = segment->next_growing)
		err = fmlib_reserve(cache, segment, want);
	return err == -ENOSPC ? -ENOENT : err;
}

static int obtain_shared(struct flexmem_cache *cache, struct fmlib_want *want)
{
	bool locks;
	int err;

	/*
	 * Without an owner only the lane is locked. With one, another stream
	 * may have made the first segment while the lock was dropped.
	 */
	if (fmlib_share_is_shut(cache, want)) {
		if (!want->owner)
			return -ENOENT;
		err = fmlib_share_open(cache, want);
		want->no_host_memory = err;
		if (err)
			return err;
	}
	if (fmlib_kept_count(&want->lane->kept) && !want->mask &&
	    want->lane->stream == want->stream &&
	    fmlib_kept_take(want->lane, want->size, &want->found))
		return 0;
	locks = !cache->share.sole;
	if (locks)
		fmlib_lock_take(&cache->share.lock);
	err = obtain_growing(cache, want, cache->share.arena);
	if (locks)
		fmlib_lock_drop(&cache->share.lock);
	return err;
}

/* The tightest piece that serves a request. */
static struct fmlib_piece *find_piece(const struct flexmem_cache *cache,
				      const struct fmlib_want *want,
				      const struct fmlib_arena *arena)
{
	uint64_t whole = want->kind == FLEXMEM_CACHE_SMALL ?
			 UINT64_MAX : cache->config.max_split;

	if (!want->mask)
		return fmlib_fit_best(&arena->free, want->size);
	if (want->pool->flags & FLEXMEM_CACHE_POOL_NO_SPLIT)
		whole = 0;
	return fmlib_fit_aligned(&arena->free, want, whole);
}

int fmlib_obtain(struct flexmem_cache *cache, struct fmlib_want *want)
{
	struct fmlib_arena *arena;
	struct fmlib_piece *best;
	int err;

	if (cache->share.arena && fmlib_share_serves(cache, want->pool)) {
		err = obtain_shared(cache, want);
		if (err != -ENOENT)
			return err;
	}
	arena = fmlib_arena_find(cache, want);
	if (!arena)
		return -ENOENT;
	err = obtain_growing(cache, want, arena);
	if (err != -ENOENT)
		return err;
	/*
	 * If the smallest piece that fits is too large by the oversize rule,
	 * all larger pieces are too large.
	 */
	best = find_piece(cache, want, arena);
	if (!best || !fits_oversize_rule(cache, want, best))
		return -ENOENT;
	if (fmlib_pieces_prepare(want->lane, 2)) {
		want->no_host_memory = true;
		return -ENOMEM;
	}
	fmlib_piece_take(cache, best, want);
	return 0;
}
