// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Tokens. The fields from the top: a zero bit, so that a token is positive as a
 * signed number; a bit that is set in wide tokens; the generation of the block,
 * 8 bits, never 0; the index of the block; the offset in the allocation. In
 * narrow tokens the index has 22 bits and the offset 32. Allocations of 4 GiB
 * and more have wide tokens, with 10 bits of index and 44 of offset. No
 * allocation uses all offsets, so a token one past the end of an allocation
 * belongs to no other allocation.
 *
 * The word of a block holds its token, and whether the block is live. If two
 * threads free the same token, the second one finds that the block is not live.
 * Blocks are made in chunks, each for one lane. Blocks with wide tokens have
 * one chunk for all lanes.
 */
#include "cache.h"

#include <stdlib.h>

#define WIDE_BITS 10

_Static_assert(sizeof(void *) == 8, "a token takes 64 bits");
_Static_assert(FLEXMEM_CACHE_ALLOCATIONS == 1 << FMLIB_NARROW_BITS &&
	       FLEXMEM_CACHE_HUGE_ALLOCATIONS == 1 << WIDE_BITS,
	       "what the header says is what tokens can tell apart");
/*
 * A block may be a whole segment, which exceeds its request by less than
 * FLEXMEM_CACHE_ALLOCATION_BYTES.
 */
_Static_assert(2 * FLEXMEM_CACHE_ALLOCATION_BYTES <=
	       UINT64_C(1) << (FMLIB_GENERATION_SHIFT - WIDE_BITS),
	       "a wide token numbers each byte of a block");

static unsigned int index_bits(bool wide)
{
	return wide ? WIDE_BITS : FMLIB_NARROW_BITS;
}

static unsigned int offset_bits(bool wide)
{
	return FMLIB_GENERATION_SHIFT - index_bits(wide);
}

static bool is_full(const struct fmlib_tokens *tokens, bool wide)
{
	return (uint64_t)tokens->count << FMLIB_CHUNK_BITS >> index_bits(wide);
}

bool fmlib_tokens_are_used_up(const struct flexmem_cache *cache, uint64_t size)
{
	return size >= FMLIB_NARROW ? is_full(&cache->wide, true) :
	       is_full(&cache->narrow, false);
}

/*
 * Adds a chunk of unused blocks. Returns false if there is no host memory, or
 * no index is left.
 */
static bool add_chunk(struct fmlib_tokens *tokens, struct fmlib_lane *lane,
		      struct fmlib_idle *idle, bool wide)
{
	uint64_t first = (wide ? FMLIB_WIDE : 0) |
			 UINT64_C(1) << FMLIB_GENERATION_SHIFT;
	uint64_t index = (uint64_t)tokens->count << FMLIB_CHUNK_BITS;
	struct fmlib_chunk *chunk;
	struct fmlib_block *made;
	uint32_t i;

	if (is_full(tokens, wide))
		return false;
	made = aligned_alloc(FMLIB_LINE, FMLIB_CHUNK * sizeof(*made));
	if (!made)
		return false;
	for (i = 0; i < FMLIB_CHUNK; i++) {
		made[i].size = 0;
		atomic_init(&made[i].word,
			    first | (index + i) << offset_bits(wide));
	}
	chunk = &tokens->chunks[tokens->count++];
	chunk->lane = lane;
	atomic_store_explicit(&chunk->blocks, made, memory_order_release);
	idle->fresh = made;
	idle->fresh_count = FMLIB_CHUNK;
	return true;
}

/*
 * Takes a block that has rested, or else a fresh block, or else the block that
 * has rested longest. Returns NULL if there is no block.
 */
struct fmlib_block *fmlib_block_take(struct flexmem_cache *cache,
				   struct fmlib_lane *lane, uint64_t size)
{
	bool wide = size >= FMLIB_NARROW;
	struct fmlib_idle *idle = wide ? &cache->wide_idle : &lane->blocks;

	if (fmlib_block_ready(idle) ||
	    add_chunk(wide ? &cache->wide : &cache->narrow, wide ? NULL : lane,
		      idle, wide))
		return fmlib_block_pop(idle);
	return idle->resting ? fmlib_block_oldest(idle) : NULL;
}

void fmlib_block_give(struct flexmem_cache *cache, struct fmlib_lane *lane,
		      struct fmlib_block *block)
{
	fmlib_block_rest(fmlib_block_word(block) & FMLIB_WIDE ?
			 &cache->wide_idle : &lane->blocks, block);
}

static uint32_t index_of(uint64_t value, bool wide)
{
	return (uint32_t)(value >> offset_bits(wide)) &
	       ((UINT32_C(1) << index_bits(wide)) - 1);
}

struct fmlib_block *fmlib_block_find(const struct flexmem_cache *cache,
				     const void *token, uint64_t *word,
				     uint64_t *offset)
{
	uint64_t value = (uintptr_t)token;
	bool wide = value & FMLIB_WIDE;
	const struct fmlib_tokens *tokens = wide ? &cache->wide :
						   &cache->narrow;
	uint32_t index = index_of(value, wide);
	const struct fmlib_chunk *chunk =
		&tokens->chunks[index >> FMLIB_CHUNK_BITS];
	struct fmlib_block *block;

	block = atomic_load_explicit(&chunk->blocks, memory_order_acquire);
	if (!block)
		return NULL;
	block += index % FMLIB_CHUNK;
	*word = atomic_load_explicit(&block->word, memory_order_acquire);
	*offset = value & ((UINT64_C(1) << offset_bits(wide)) - 1);
	/* All bits above the offset must be equal. */
	if ((*word ^ value) >> offset_bits(wide))
		return NULL;
	return *word & FMLIB_LIVE ? block : NULL;
}

uint32_t fmlib_blocks_count(const struct flexmem_cache *cache)
{
	return (cache->narrow.count + cache->wide.count) << FMLIB_CHUNK_BITS;
}

struct fmlib_block *fmlib_block_at(const struct flexmem_cache *cache,
				   uint32_t i)
{
	const struct fmlib_tokens *tokens = &cache->narrow;
	struct fmlib_block *block;

	if (i >> FMLIB_CHUNK_BITS >= tokens->count) {
		i -= tokens->count << FMLIB_CHUNK_BITS;
		tokens = &cache->wide;
	}
	block = tokens->chunks[i >> FMLIB_CHUNK_BITS].blocks + i % FMLIB_CHUNK;
	return block->size ? block : NULL;
}

int fmlib_tokens_start(struct fmlib_tokens *tokens, bool wide)
{
	size_t count = (size_t)1 << (index_bits(wide) - FMLIB_CHUNK_BITS);

	tokens->chunks = calloc(count, sizeof(*tokens->chunks));
	return tokens->chunks ? 0 : -ENOMEM;
}

void fmlib_tokens_free(struct fmlib_tokens *tokens)
{
	uint32_t i;

	for (i = 0; i < tokens->count; i++)
		free(tokens->chunks[i].blocks);
	free(tokens->chunks);
}
