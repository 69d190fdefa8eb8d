// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Tokens. From the top: a zero bit, so that a token is positive as a signed
 * number; a bit that is set for wide names; the generation of the name, 8 bits
 * and never 0; the name; the offset in the allocation. Narrow names have 22
 * bits and 32 of offset. Allocations of 4 GiB and more have wide names, of 10
 * bits with 44 of offset. No allocation uses all of its offsets, so that the
 * token one past its end is that of no other.
 *
 * The word of a name holds its token and its state. Whoever changes it
 * from live to something else owns the block from then on; of two threads that
 * free the same token one loses. Names are never freed while the cache is
 * there, so a token can be looked at without the lock. They are made in chunks,
 * each for one lane, but for wide ones, of which there is one chunk for all.
 */
#include "cache.h"

#include <stdlib.h>

#define CHUNK_BITS 10
#define CHUNK (UINT32_C(1) << CHUNK_BITS)
#define WIDE (UINT64_C(1) << 62)
#define GENERATION_SHIFT 54
#define GENERATION_MASK UINT64_C(0xff)
#define GENERATIONS 255

/*
 * So many names rest at least, before the oldest of them is used again. Of those
 * that have rested the last one goes first: it is the likeliest to be in the
 * processor's cache.
 */
#define RESTING 1024

_Static_assert(sizeof(void *) == 8, "a token takes 64 bits");

static unsigned int name_bits(bool wide)
{
	return wide ? 10 : 22;
}

static unsigned int offset_bits(bool wide)
{
	return GENERATION_SHIFT - name_bits(wide);
}

/* A chunk more, all of it fresh; false: there is no memory, or no number. */
static bool add_chunk(struct fmlib_names *names, struct fmlib_lane *lane,
		      struct fmlib_idle *idle, bool wide)
{
	uint64_t first = (wide ? WIDE : 0) | UINT64_C(1) << GENERATION_SHIFT;
	uint64_t index = (uint64_t)names->count << CHUNK_BITS;
	struct fmlib_chunk *chunk;
	struct fmlib_name *made;
	uint32_t i;

	if (index >> name_bits(wide))
		return false;
	made = calloc(CHUNK, sizeof(*made));
	if (!made)
		return false;
	for (i = 0; i < CHUNK; i++)
		atomic_init(&made[i].word, first | FMLIB_NAME_FREE |
			    (index + i) << offset_bits(wide));
	chunk = &names->chunks[names->count++];
	chunk->lane = lane;
	atomic_store_explicit(&chunk->names, made, memory_order_release);
	idle->fresh = made;
	idle->fresh_count = CHUNK;
	return true;
}

/* In this order: what has rested, what is fresh, what has not rested. */
struct fmlib_name *fmlib_name_take(struct flexmem_cache *cache,
				   struct fmlib_lane *lane, uint64_t size)
{
	bool wide = size >= FMLIB_NARROW;
	struct fmlib_idle *idle = wide ? &cache->wide_idle : &lane->names;
	struct fmlib_name *name = idle->rested;

	if (name) {
		idle->rested = name->next;
		return name;
	}
	if (idle->fresh_count ||
	    add_chunk(wide ? &cache->wide : &cache->narrow, wide ? NULL : lane,
		      idle, wide)) {
		idle->fresh_count--;
		return idle->fresh++;
	}
	name = idle->oldest;
	if (name) {
		idle->oldest = name->next;
		idle->resting--;
	}
	return name;
}

void fmlib_name_give(struct flexmem_cache *cache, struct fmlib_lane *lane,
		     struct fmlib_name *name)
{
	struct fmlib_idle *idle = fmlib_name_word(name) & WIDE ?
				  &cache->wide_idle : &lane->names;

	name->block = NULL;
	name->next = NULL;
	if (idle->oldest)
		idle->newest->next = name;
	else
		idle->oldest = name;
	idle->newest = name;
	if (++idle->resting <= RESTING)
		return;
	name = idle->oldest;
	idle->oldest = name->next;
	idle->resting--;
	name->next = idle->rested;
	idle->rested = name;
}

void *fmlib_name_token(const struct fmlib_name *name)
{
	return (void *)(uintptr_t)(fmlib_name_word(name) & ~FMLIB_STATE_MASK);
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
	bool wide = value & WIDE;
	const struct fmlib_names *names = wide ? &cache->wide : &cache->narrow;
	uint32_t index = index_of(value, wide);
	struct fmlib_name *chunk;
	struct fmlib_name *name;

	chunk = atomic_load_explicit(&names->chunks[index >> CHUNK_BITS].names,
				     memory_order_acquire);
	if (!chunk)
		return NULL;
	name = &chunk[index % CHUNK];
	*word = atomic_load_explicit(&name->word, memory_order_acquire);
	*offset = value & ((UINT64_C(1) << offset_bits(wide)) - 1);
	/* Whatever is above the offset has to be the same. */
	if ((*word ^ value) >> offset_bits(wide))
		return NULL;
	switch (fmlib_name_state(*word)) {
	case FMLIB_NAME_LIVE:
	case FMLIB_NAME_PLAIN:
		return name;
	default:
		return NULL;
	}
}

struct fmlib_lane *fmlib_name_lane(const struct flexmem_cache *cache,
				   const void *token)
{
	uint64_t value = (uintptr_t)token;
	const struct fmlib_chunk *chunk;

	if (value & WIDE)
		return NULL;
	chunk = &cache->narrow.chunks[index_of(value, false) >> CHUNK_BITS];
	return atomic_load_explicit(&chunk->names, memory_order_acquire) ?
	       chunk->lane : NULL;
}

static bool replace(struct fmlib_name *name, uint64_t word, uint64_t next)
{
	return atomic_compare_exchange_strong_explicit(&name->word, &word, next,
						       memory_order_acq_rel,
						       memory_order_relaxed);
}

bool fmlib_name_change(struct fmlib_name *name, uint64_t word,
		       enum fmlib_name_state state)
{
	return replace(name, word, (word & ~FMLIB_STATE_MASK) | state);
}

/* The word of the next generation. */
static uint64_t after(uint64_t word, enum fmlib_name_state state)
{
	uint64_t generation = word >> GENERATION_SHIFT & GENERATION_MASK;

	word &= ~(GENERATION_MASK << GENERATION_SHIFT | FMLIB_STATE_MASK);
	return word | state |
	       (generation % GENERATIONS + 1) << GENERATION_SHIFT;
}

bool fmlib_name_retire(struct fmlib_name *name, uint64_t word,
		       enum fmlib_name_state state)
{
	uint64_t next = after(word, state);

	/* Without the lock only plain ones change. */
	if (fmlib_name_state(word) != FMLIB_NAME_LIVE)
		return replace(name, word, next);
	atomic_store_explicit(&name->word, next, memory_order_release);
	return true;
}

uint32_t fmlib_names_count(const struct flexmem_cache *cache)
{
	return (cache->narrow.count + cache->wide.count) << CHUNK_BITS;
}

struct fmlib_block *fmlib_names_block(const struct flexmem_cache *cache,
				      uint32_t i)
{
	const struct fmlib_names *names = &cache->narrow;

	if (i >> CHUNK_BITS >= names->count) {
		i -= names->count << CHUNK_BITS;
		names = &cache->wide;
	}
	return names->chunks[i >> CHUNK_BITS].names[i % CHUNK].block;
}

int fmlib_names_start(struct fmlib_names *names, bool wide)
{
	names->chunks = calloc((size_t)1 << (name_bits(wide) - CHUNK_BITS),
			       sizeof(*names->chunks));
	return names->chunks ? 0 : -ENOMEM;
}

void fmlib_names_free(struct fmlib_names *names)
{
	uint32_t i;

	for (i = 0; i < names->count; i++)
		free(names->chunks[i].names);
	free(names->chunks);
}
