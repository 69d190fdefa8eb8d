// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Tokens. From the top: a zero bit, so that a token is positive as a signed
 * number; a bit that is set for wide names; the generation of the name, 8 bits
 * and never 0; the name; the offset in the allocation. Narrow names have 22
 * bits and 32 of offset. Allocations of 4 GiB and more have wide names, of 10
 * bits with 44 of offset. No allocation uses all of its offsets, so that the
 * token one past its end is that of no other.
 *
 * The word of a name holds its token and its state. Of two threads that free the
 * same token the second one finds that it is not live. Names are made in chunks,
 * each for one lane, but for wide ones, of which there is one chunk for all.
 */
#include "cache.h"

#include <stdlib.h>

#define WIDE_BITS 10

_Static_assert(sizeof(void *) == 8, "a token takes 64 bits");
_Static_assert(FLEXMEM_CACHE_ALLOCATIONS == 1 << FMLIB_NARROW_BITS &&
	       FLEXMEM_CACHE_HUGE_ALLOCATIONS == 1 << WIDE_BITS,
	       "what the header says is what names can tell apart");
/* A segment is rounded up by less than that, and may be one block. */
_Static_assert(2 * FLEXMEM_CACHE_ALLOCATION_BYTES <=
	       UINT64_C(1) << (FMLIB_GENERATION_SHIFT - WIDE_BITS),
	       "a wide token numbers each byte of a block");

static unsigned int name_bits(bool wide)
{
	return wide ? WIDE_BITS : FMLIB_NARROW_BITS;
}

static unsigned int offset_bits(bool wide)
{
	return FMLIB_GENERATION_SHIFT - name_bits(wide);
}

static bool is_full(const struct fmlib_names *names, bool wide)
{
	return (uint64_t)names->count << FMLIB_CHUNK_BITS >> name_bits(wide);
}

bool fmlib_names_are_used_up(const struct flexmem_cache *cache, uint64_t size)
{
	return size >= FMLIB_NARROW ? is_full(&cache->wide, true) :
	       is_full(&cache->narrow, false);
}

/* A chunk more, all of it fresh; false: there is no memory, or no number. */
static bool add_chunk(struct fmlib_names *names, struct fmlib_lane *lane,
		      struct fmlib_idle *idle, bool wide)
{
	uint64_t first = (wide ? FMLIB_WIDE : 0) |
			 UINT64_C(1) << FMLIB_GENERATION_SHIFT;
	uint64_t index = (uint64_t)names->count << FMLIB_CHUNK_BITS;
	struct fmlib_chunk *chunk;
	struct fmlib_name *made;
	uint32_t i;

	if (is_full(names, wide))
		return false;
	made = calloc(FMLIB_CHUNK, sizeof(*made));
	if (!made)
		return false;
	for (i = 0; i < FMLIB_CHUNK; i++)
		atomic_init(&made[i].word, first | FMLIB_NAME_FREE |
			    (index + i) << offset_bits(wide));
	chunk = &names->chunks[names->count++];
	chunk->lane = lane;
	atomic_store_explicit(&chunk->names, made, memory_order_release);
	idle->fresh = made;
	idle->fresh_count = FMLIB_CHUNK;
	return true;
}

/* In this order: one that has rested, a fresh one, one that has not rested. */
struct fmlib_name *fmlib_name_take(struct flexmem_cache *cache,
				   struct fmlib_lane *lane, uint64_t size)
{
	bool wide = size >= FMLIB_NARROW;
	struct fmlib_idle *idle = wide ? &cache->wide_idle : &lane->names;

	if (fmlib_name_ready(idle) ||
	    add_chunk(wide ? &cache->wide : &cache->narrow, wide ? NULL : lane,
		      idle, wide))
		return fmlib_name_pop(idle);
	return idle->resting ? fmlib_name_oldest(idle) : NULL;
}

void fmlib_name_give(struct flexmem_cache *cache, struct fmlib_lane *lane,
		     struct fmlib_name *name)
{
	fmlib_name_rest(fmlib_name_word(name) & FMLIB_WIDE ?
			&cache->wide_idle : &lane->names, name);
}

static uint32_t index_of(uint64_t value, bool wide)
{
	return (uint32_t)(value >> offset_bits(wide)) &
	       ((UINT32_C(1) << name_bits(wide)) - 1);
}

struct fmlib_name *fmlib_name_find(const struct flexmem_cache *cache,
				   const void *token, uint64_t *word,
				   uint64_t *offset)
{
	uint64_t value = (uintptr_t)token;
	bool wide = value & FMLIB_WIDE;
	const struct fmlib_names *names = wide ? &cache->wide : &cache->narrow;
	uint32_t index = index_of(value, wide);
	const struct fmlib_chunk *chunk =
		&names->chunks[index >> FMLIB_CHUNK_BITS];
	struct fmlib_name *name;

	name = atomic_load_explicit(&chunk->names, memory_order_acquire);
	if (!name)
		return NULL;
	name += index % FMLIB_CHUNK;
	*word = atomic_load_explicit(&name->word, memory_order_acquire);
	*offset = value & ((UINT64_C(1) << offset_bits(wide)) - 1);
	/* Whatever is above the offset has to be the same. */
	if ((*word ^ value) >> offset_bits(wide))
		return NULL;
	return fmlib_name_state(*word) == FMLIB_NAME_LIVE ? name : NULL;
}

uint32_t fmlib_names_count(const struct flexmem_cache *cache)
{
	return (cache->narrow.count + cache->wide.count) << FMLIB_CHUNK_BITS;
}

struct fmlib_block *fmlib_names_block(const struct flexmem_cache *cache,
				      uint32_t i)
{
	const struct fmlib_names *names = &cache->narrow;

	if (i >> FMLIB_CHUNK_BITS >= names->count) {
		i -= names->count << FMLIB_CHUNK_BITS;
		names = &cache->wide;
	}
	return names->chunks[i >> FMLIB_CHUNK_BITS].names[i % FMLIB_CHUNK].block;
}

int fmlib_names_start(struct fmlib_names *names, bool wide)
{
	size_t count = (size_t)1 << (name_bits(wide) - FMLIB_CHUNK_BITS);

	names->chunks = calloc(count, sizeof(*names->chunks));
	return names->chunks ? 0 : -ENOMEM;
}

void fmlib_names_free(struct fmlib_names *names)
{
	uint32_t i;

	for (i = 0; i < names->count; i++)
		free(names->chunks[i].names);
	free(names->chunks);
}
