// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Blocks: which one serves a request, splitting, and merging. Giving back
 * cannot fail: what it needs is set aside before.
 */
#include "cache.h"

#include <stdlib.h>

/* Spare blocks beyond this go back to the C library. */
#define SPARE_MAX 8192

int fmlib_blocks_make(struct fmlib_lane *lane, size_t count)
{
	struct fmlib_block *block;

	while (lane->spare_count < count) {
		block = aligned_alloc(FMLIB_LINE, sizeof(*block));
		if (!block)
			return -ENOMEM;
		fmlib_block_drop(lane, block);
	}
	return 0;
}

void fmlib_block_drop(struct fmlib_lane *lane, struct fmlib_block *block)
{
	if (lane->spare_count >= SPARE_MAX) {
		free(block);
		return;
	}
	block->spare = lane->spare;
	lane->spare = block;
	lane->spare_count++;
}

static bool is_alone(const struct fmlib_block *block)
{
	return !block->previous && !block->next;
}

uint64_t fmlib_segment_tail(const struct fmlib_segment *segment)
{
	const struct fmlib_block *last = segment->last;

	if (segment->growing)
		return fmlib_range_tail(&segment->range);
	return last->state == FMLIB_FREE ? last->size : 0;
}

uint64_t fmlib_segment_stamp(const struct fmlib_segment *segment)
{
	return segment->growing ? segment->stamp : segment->last->stamp;
}

void fmlib_block_insert(struct flexmem_cache *cache, struct fmlib_block *block)
{
	struct fmlib_lane *lane = fmlib_lane_of(block);

	block->state = FMLIB_FREE;
	block->left = NULL;
	block->right = NULL;
	/* xorshift32: spreads well enough for priorities. */
	lane->random ^= lane->random << 13;
	lane->random ^= lane->random >> 17;
	lane->random ^= lane->random << 5;
	block->priority = lane->random;
	if (!block->segment->lost)
		fmlib_fit_insert(&block->segment->arena->free, block);
	if (!is_alone(block))
		fmlib_figures_split(cache, block, 1);
}

void fmlib_block_remove(struct flexmem_cache *cache, struct fmlib_block *block)
{
	if (!is_alone(block))
		fmlib_figures_split(cache, block, -1);
	if (!block->segment->lost)
		fmlib_fit_remove(&block->segment->arena->free, block);
}

/* C8: large blocks are kept whole for requests of about their size. */
static bool fits_oversize_rule(const struct flexmem_cache *cache,
			       const struct fmlib_want *want,
			       const struct fmlib_block *block)
{
	uint64_t max_split = cache->config.max_split;

	if (want->kind == FLEXMEM_CACHE_SMALL || block->size < max_split)
		return true;
	return want->size >= max_split &&
	       block->size - want->size <= cache->config.slack;
}

static uint64_t cut(const struct flexmem_cache *cache,
		    const struct fmlib_block *block, uint64_t size)
{
	if (block->segment->arena->kind == FLEXMEM_CACHE_SMALL)
		return size;
	if (size < cache->config.max_split &&
	    block->size - size > cache->profile.large_remainder)
		return size;
	return block->size;
}

void fmlib_block_take(struct flexmem_cache *cache, struct fmlib_block *block,
		      uint64_t size)
{
	struct fmlib_block *rest;

	size = cut(cache, block, size);
	fmlib_block_remove(cache, block);
	if (size < block->size) {
		rest = fmlib_block_new(fmlib_lane_of(block));
		rest->segment = block->segment;
		rest->offset = block->offset + size;
		rest->size = block->size - size;
		/* It has been free for as long as the whole was. */
		rest->stamp = block->stamp;
		rest->previous = block;
		rest->next = block->next;
		if (rest->next)
			rest->next->previous = rest;
		else
			block->segment->last = rest;
		block->next = rest;
		block->size = size;
		fmlib_block_insert(cache, rest);
	}
	block->state = FMLIB_LIVE;
}

/* Two neighbours become one, @block; neither is among the free ones. */
static void absorb_next(struct fmlib_block *block)
{
	struct fmlib_block *next = block->next;

	block->size += next->size;
	block->next = next->next;
	if (block->next)
		block->next->previous = block;
	else
		block->segment->last = block;
	fmlib_block_drop(fmlib_lane_of(block), next);
}

static void release_fixed(struct flexmem_cache *cache,
			  struct fmlib_block *block)
{
	if (block->next && block->next->state == FMLIB_FREE) {
		fmlib_block_remove(cache, block->next);
		absorb_next(block);
	}
	if (block->previous && block->previous->state == FMLIB_FREE) {
		block = block->previous;
		fmlib_block_remove(cache, block);
		absorb_next(block);
	}
	block->stamp = fmlib_account(cache, fmlib_lane_of(block))->clock;
	fmlib_block_insert(cache, block);
}

static void release_growing(struct flexmem_cache *cache,
			    struct fmlib_block *block)
{
	struct fmlib_segment *segment = block->segment;
	struct fmlib_lane *lane = segment->arena->lane;
	uint64_t tail = fmlib_range_tail(&segment->range);

	/* It was reserved: it cannot be refused. */
	fmlib_range_release(&segment->range, block->offset, block->size);
	if (fmlib_range_tail(&segment->range) != tail)
		segment->stamp = fmlib_account(cache, lane)->clock;
	fmlib_block_drop(lane, block);
	fmlib_figures_holes(cache, segment);
}

void fmlib_block_release(struct flexmem_cache *cache,
			 struct fmlib_block *block)
{
	if (block->segment->growing)
		release_growing(cache, block);
	else
		release_fixed(cache, block);
}

static inline int reserve(struct flexmem_cache *cache,
			  struct fmlib_segment *segment,
			  struct fmlib_want *want, struct fmlib_block **block)
{
	struct fmlib_block *made;
	uint64_t offset;
	int err;

	err = fmlib_blocks_prepare(want->lane, 1);
	if (!err)
		err = fmlib_range_reserve(&segment->range, want->size, &offset);
	if (err) {
		want->no_host_memory = err == -ENOMEM;
		return err;
	}
	made = fmlib_block_new(want->lane);
	made->segment = segment;
	made->offset = offset;
	made->size = want->size;
	made->state = FMLIB_LIVE;
	fmlib_figures_holes(cache, segment);
	*block = made;
	return 0;
}

int fmlib_block_reserve(struct flexmem_cache *cache,
			struct fmlib_segment *segment, struct fmlib_want *want,
			struct fmlib_block **block)
{
	return reserve(cache, segment, want, block);
}

int fmlib_block_obtain(struct flexmem_cache *cache, struct fmlib_want *want,
		       struct fmlib_block **block)
{
	struct fmlib_segment *segment;
	struct fmlib_arena *arena;
	struct fmlib_block *best;
	int err;

	arena = fmlib_arena_find(want);
	if (!arena)
		return -ENOENT;
	for (segment = arena->growing; segment;
	     segment = segment->next_growing) {
		err = reserve(cache, segment, want, block);
		if (err != -ENOSPC)
			return err;
	}
	/* If the tightest breaks the rule, all larger ones do. */
	best = fmlib_fit_best(&arena->free, want->size);
	if (!best || !fits_oversize_rule(cache, want, best))
		return -ENOENT;
	if (fmlib_blocks_prepare(want->lane, 1)) {
		want->no_host_memory = true;
		return -ENOMEM;
	}
	fmlib_block_take(cache, best, want->size);
	*block = best;
	return 0;
}
