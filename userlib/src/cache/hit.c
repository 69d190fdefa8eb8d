// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The shortest way through the cache, which most calls take: one lane's lock, the
 * segment that the lane allocates from, and no request struct. A call for which
 * this does not do leaves everything as it was, and goes the long way (cache.c).
 */
#include "cache.h"

/* The block of a reserved interval; a spare one is there. */
FMLIB_INLINE struct fmlib_block *
make_block(struct flexmem_cache *cache, struct fmlib_lane *lane,
	   struct fmlib_name *name, uint64_t offset, uint64_t size)
{
	struct fmlib_block *block = fmlib_block_new(lane);

	block->segment = lane->current;
	block->offset = offset;
	block->size = size;
	block->state = FMLIB_LIVE;
	block->origin = &cache->untagged.origin;
	block->name = name;
	name->block = block;
	return block;
}

/* The figures of an allocation that took so much of a hole. */
static inline void count_alloc(struct flexmem_cache *cache,
			       struct fmlib_account *account,
			       const struct fmlib_block *block)
{
	account->clock++;
	account->ticks++;
	account->hits++;
	fmlib_flow_in(&account->flows[FLEXMEM_CACHE_LARGE], block);
	if (cache->tagged)
		fmlib_flow_in(&account->flows[FMLIB_UNTAGGED], block);
	fmlib_figures_hole_taken(account, block->segment, block->size);
}

/* With the lane's lock; NULL: there is nothing. */
FMLIB_INLINE void *take(struct flexmem_cache *cache, struct fmlib_lane *lane,
			uint64_t bytes, uint64_t size)
{
	struct fmlib_segment *segment = lane->current;
	struct fmlib_block *block;
	struct fmlib_name *name;
	uint64_t offset;
	void *token;

	if (!segment || !lane->spare || !fmlib_name_ready(&lane->names) ||
	    !fmlib_lane_serves(cache) ||
	    fmlib_range_reserve(&segment->range, size, &offset))
		return NULL;
	name = fmlib_name_pop(&lane->names);
	block = make_block(cache, lane, name, offset, size);
	block->requested = bytes;
	token = fmlib_name_token(name);
	fmlib_name_begin(name, token);
	count_alloc(cache, fmlib_account(cache, lane), block);
	fmlib_lane_done(cache, lane);
	return token;
}

bool fmlib_hit_alloc(struct flexmem_cache *cache, uint64_t bytes,
		     uint64_t stream, void **token)
{
	struct fmlib_lane *lane = fmlib_lane_find(cache, stream);
	void *made = NULL;
	uint64_t size;

	/* Streams that share a lane have no segment in it. */
	if (!lane || lane->stream != stream || bytes >= cache->simple_limit)
		return false;
	size = fmlib_size_round(cache, bytes);
	if (size >= cache->simple_limit)
		return false;
	fmlib_lock_take(&lane->lock);
	made = take(cache, lane, bytes, size);
	fmlib_lock_drop(&lane->lock);
	if (made)
		*token = made;
	return made;
}

/* Whether it becomes free in its lane, and nothing else comes of it. */
static inline bool is_simple(const struct flexmem_cache *cache,
			     const struct fmlib_block *block)
{
	return !block->uses && block->origin == &cache->untagged.origin &&
	       block->size < cache->config.max_split &&
	       !fmlib_segment_leaves(block->segment);
}

/* The figures of a free that left so much of a hole. */
static inline void count_free(struct flexmem_cache *cache,
			      struct fmlib_account *account,
			      const struct fmlib_block *block)
{
	fmlib_flow_out(&account->flows[FLEXMEM_CACHE_LARGE], block);
	if (cache->tagged)
		fmlib_flow_out(&account->flows[FMLIB_UNTAGGED], block);
	fmlib_figures_hole_left(account, block->segment, block->size);
}

/* In a segment that grows. */
static inline void give_range(struct flexmem_cache *cache,
			      struct fmlib_lane *lane,
			      struct fmlib_block *block)
{
	struct fmlib_account *account = fmlib_account(cache, lane);
	struct fmlib_segment *segment = block->segment;
	uint32_t tail = segment->range.tail;

	/* It was reserved: it cannot be refused. */
	fmlib_range_release(&segment->range, block->offset, block->size);
	if (segment->range.tail != tail)
		segment->stamp = account->clock;
	count_free(cache, account, block);
	fmlib_block_drop(lane, block);
}

static inline void give(struct flexmem_cache *cache, struct fmlib_lane *lane,
			struct fmlib_name *name)
{
	struct fmlib_block *block = name->block;

	fmlib_name_rest(&lane->names, name);
	block->name = NULL;
	if (block->segment->growing) {
		give_range(cache, lane, block);
	} else {
		fmlib_figures_free(cache, block);
		fmlib_block_release(cache, block);
		fmlib_figures_commit(cache, fmlib_account(cache, lane));
	}
	fmlib_lane_done(cache, lane);
}

bool fmlib_hit_free(struct flexmem_cache *cache, const void *token)
{
	const struct fmlib_chunk *chunk =
		fmlib_name_chunk(&cache->narrow, token);
	struct fmlib_name *name = NULL;
	struct fmlib_lane *lane;
	uint64_t word = 0;

	if (!chunk)
		return false;
	lane = chunk->lane;
	fmlib_lock_take(&lane->lock);
	if (fmlib_lane_serves(cache))
		name = fmlib_name_first(chunk, token, &word);
	if (name && !is_simple(cache, name->block))
		name = NULL;
	if (name) {
		fmlib_name_retire(name, word);
		give(cache, lane, name);
	}
	fmlib_lock_drop(&lane->lock);
	return name;
}
