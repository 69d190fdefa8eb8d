// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The shortest path through the cache, which most calls take. It needs one
 * lane's lock, uses only the segment from which the lane allocates, and fills
 * in no request struct. If it cannot serve a call, it changes nothing, and the
 * call takes the long path (cache.c).
 */
#include "cache.h"
#include "kept.h"

/* Counts an allocation. @holes: the number of holes before the allocation. */
static inline void count_alloc(struct flexmem_cache *cache,
			       struct fmlib_account *account,
			       const struct fmlib_range *range, uint32_t holes,
			       uint64_t size, uint64_t requested)
{
	account->clock++;
	fmlib_flow_in(&account->flows[FLEXMEM_CACHE_LARGE], size, requested);
	if (cache->tagged)
		fmlib_flow_in(&account->flows[FMLIB_UNTAGGED], size, requested);
	fmlib_figures_hole_taken(account, range, holes, size);
}

/*
 * Like take(), for a stream that shares its segments: takes memory that the
 * stream keeps (kept.c).
 */
static __attribute__((noinline)) void *
take_kept(struct flexmem_cache *cache, struct fmlib_lane *lane, uint64_t bytes,
	  uint64_t size)
{
	struct fmlib_found found;
	struct fmlib_block *block;

	if (!fmlib_block_ready(&lane->blocks) || !fmlib_lane_serves(cache) ||
	    !fmlib_kept_take(lane, size, &found))
		return NULL;
	block = fmlib_block_pop(&lane->blocks);
	fmlib_block_put(block, found.segment, found.offset, size);
	block->owner = found.owner;
	block->requested = bytes;
	block->origin = &cache->untagged.origin;
	block->uses = NULL;
	fmlib_account(cache, lane)->clock++;
	fmlib_figures_alloc(cache, block);
	fmlib_lane_done(cache, lane);
	return fmlib_block_begin(block);
}

/* Takes memory in a locked lane, or returns NULL. */
FMLIB_INLINE void *take(struct flexmem_cache *cache, struct fmlib_lane *lane,
			uint64_t bytes, uint64_t size)
{
	struct fmlib_segment *segment = lane->current;
	struct fmlib_block *block;
	uint64_t offset;
	uint32_t holes;

	if (!segment)
		return fmlib_kept_count(&lane->kept) ?
		       take_kept(cache, lane, bytes, size) : NULL;
	if (!fmlib_block_ready(&lane->blocks) || !fmlib_lane_serves(cache))
		return NULL;
	holes = segment->range.holes;
	if (fmlib_range_reserve(&segment->range, size, &offset))
		return NULL;
	block = fmlib_block_pop(&lane->blocks);
	fmlib_block_put(block, segment, offset, size);
	block->owner = cache->share.sole;
	block->requested = bytes;
	block->origin = &cache->untagged.origin;
	block->uses = NULL;
	count_alloc(cache, fmlib_account(cache, lane), &segment->range, holes,
		    size, bytes);
	fmlib_lane_done(cache, lane);
	return fmlib_block_begin(block);
}

/*
 * Serves a request of 1 byte or more. Returns NULL if the request needs more
 * than its lane.
 */
FMLIB_INLINE void *hit(struct flexmem_cache *cache, uint64_t bytes,
		       uint64_t stream)
{
	struct fmlib_lane *lane = fmlib_lane_find(cache, stream);
	void *token = NULL;

	/* A stream that has no lane, or shares one, takes the long path. */
	if (!lane || lane->stream != stream)
		return NULL;
	fmlib_lock_take(&lane->lock);
	if (bytes <= cache->hit_limit)
		token = take(cache, lane, bytes,
			     fmlib_size_round(cache, bytes));
	fmlib_lock_drop(&lane->lock);
	return token;
}

int flexmem_cache_alloc(struct flexmem_cache *cache, uint64_t bytes,
			uint64_t stream, void **token)
{
	int err = fmlib_cache_check(cache);
	void *made = NULL;

	if (err)
		return err;
	if (!token)
		return -EINVAL;
	if (bytes)
		made = hit(cache, bytes, stream);
	if (!made && bytes)
		return fmlib_cache_alloc(cache, bytes, stream, token);
	*token = made;
	return 0;
}

/* Whether a free of @block changes only the lane of the block. */
static inline bool is_simple(const struct flexmem_cache *cache,
			     const struct fmlib_block *block)
{
	return !block->uses && block->origin == &cache->untagged.origin &&
	       block->size < cache->config.max_split &&
	       !fmlib_segment_leaves(block->segment);
}

/* Counts a free. @holes: the number of holes before the free. */
static inline void count_free(struct flexmem_cache *cache,
			      struct fmlib_account *account,
			      const struct fmlib_block *block, uint32_t holes)
{
	fmlib_flow_out(&account->flows[FLEXMEM_CACHE_LARGE], block);
	if (cache->tagged)
		fmlib_flow_out(&account->flows[FMLIB_UNTAGGED], block);
	fmlib_figures_hole_left(account, &block->segment->range, holes,
				block->size);
}

/* Frees a block of a quick segment. */
static inline void give_range(struct flexmem_cache *cache,
			      struct fmlib_account *account,
			      const struct fmlib_block *block)
{
	struct fmlib_segment *segment = block->segment;
	uint32_t holes = segment->range.holes;
	uint32_t tail = segment->range.tail;

	/* Cannot fail, because these bytes are reserved. */
	fmlib_range_release(&segment->range, block->offset, block->size);
	if (segment->range.tail != tail)
		segment->stamp = account->clock;
	count_free(cache, account, block, holes);
}

static __attribute__((noinline)) void
give_memory(struct flexmem_cache *cache, struct fmlib_lane *lane,
	    const struct fmlib_block *block)
{
	const struct fmlib_found found = {
		.segment = block->segment,
		.offset = block->offset,
		.size = block->size,
		.piece = block->piece,
		.owner = block->owner,
	};

	fmlib_figures_free(cache, block);
	fmlib_release(cache, &found);
	fmlib_figures_commit(cache, fmlib_account(cache, lane));
}

static inline void give(struct flexmem_cache *cache, struct fmlib_lane *lane,
			struct fmlib_block *block)
{
	if (block->segment->quick)
		give_range(cache, fmlib_account(cache, lane), block);
	else if (!fmlib_keep(cache, lane, block))
		give_memory(cache, lane, block);
	fmlib_block_rest(&lane->blocks, block);
	fmlib_lane_done(cache, lane);
}

/* Frees a block. Returns false if the free needs more than the block's lane. */
FMLIB_INLINE bool hit_free(struct flexmem_cache *cache, const void *token)
{
	const struct fmlib_chunk *chunk =
		fmlib_token_chunk(&cache->narrow, token);
	struct fmlib_block *block = NULL;
	struct fmlib_lane *lane;

	if (!chunk)
		return false;
	lane = chunk->lane;
	fmlib_lock_take(&lane->lock);
	if (fmlib_lane_serves(cache))
		block = fmlib_token_first(chunk, token);
	if (block && !is_simple(cache, block))
		block = NULL;
	if (block) {
		fmlib_block_retire(block, (uintptr_t)token | FMLIB_LIVE);
		give(cache, lane, block);
	}
	fmlib_lock_drop(&lane->lock);
	return block;
}

/*
 * Reads the address of the byte that a token names. Returns false if the token
 * is not the live token of this block. Another thread may free the block and
 * its segment at the same time. So the word of the block is read again at the
 * end, and the values are valid only if it has not changed. The structs of the
 * block and the segment stay readable as long as the cache exists.
 */
FMLIB_INLINE bool read_address(const struct fmlib_block *block,
			       const void *token,
			       struct flexmem_virtual_address *address)
{
	uint64_t word = atomic_load_explicit(&block->word,
					     memory_order_acquire);
	/*
	 * If more bits differ than those of the offset, @offset exceeds any
	 * block's size.
	 */
	uint64_t offset = (uintptr_t)token + FMLIB_LIVE - word;
	const struct fmlib_segment *segment;
	uint64_t region_id;

	if (!(word & FMLIB_LIVE) ||
	    offset >= __atomic_load_n(&block->size, __ATOMIC_ACQUIRE))
		return false;
	segment = __atomic_load_n(&block->segment, __ATOMIC_ACQUIRE);
	offset += __atomic_load_n(&block->offset, __ATOMIC_ACQUIRE);
	offset += __atomic_load_n(&segment->address.offset, __ATOMIC_ACQUIRE);
	region_id = __atomic_load_n(&segment->address.region_id,
				    __ATOMIC_ACQUIRE);
	if (fmlib_block_word(block) != word)
		return false;
	address->region_id = region_id;
	address->offset = offset;
	return true;
}

/*
 * Handles tokens that are not narrow. Not inlined, so that most calls need not
 * save registers.
 */
static __attribute__((noinline)) int
wide_address(const struct flexmem_cache *cache, const void *token,
	     struct flexmem_virtual_address *address)
{
	const struct fmlib_block *block;
	uint64_t offset;
	uint64_t word;

	block = fmlib_block_find(cache, token, &word, &offset);
	return block && read_address(block, token, address) ? 0 : -EINVAL;
}

int flexmem_cache_address(const struct flexmem_cache *cache, const void *token,
			  struct flexmem_virtual_address *address)
{
	int err = fmlib_cache_check(cache);
	struct fmlib_block *blocks;

	if (err)
		return err;
	if (!address)
		return -EINVAL;
	/*
	 * A wide token may find a block here too, but then the token of the
	 * block differs.
	 */
	blocks = atomic_load_explicit(&fmlib_token_place(&cache->narrow,
							 token)->blocks,
				      memory_order_acquire);
	if (blocks && read_address(fmlib_block_in(blocks, token), token,
				   address))
		return 0;
	return wide_address(cache, token, address);
}

int fmlib_free(struct flexmem_cache *cache, const void *token)
{
	return hit_free(cache, token) ? 0 : fmlib_cache_free(cache, token);
}

int flexmem_cache_free(struct flexmem_cache *cache, void *token)
{
	int err = fmlib_cache_check(cache);

	if (err)
		return err;
	if (token && cache->pointers)
		fmlib_pointers_forget_token(cache, token);
	if (!token || hit_free(cache, token))
		return 0;
	return fmlib_cache_free(cache, token);
}
