// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Tokens. From the top: a zero bit, so that a token is positive as a signed
 * number; a bit that is set for wide names; the generation of the name, 8 bits
 * and never 0; the name; the offset in the allocation. Narrow names have 22
 * bits and 32 of offset. Allocations of 4 GiB and more have wide names, of 10
 * bits with 44 of offset. No allocation uses all of its offsets, so that the
 * token one past its end is that of no other.
 *
 * The word of a name holds its generation and its state. Whoever changes it
 * from live to something else owns the block from then on; of two threads that
 * free the same token one loses. Names are never freed while the cache is
 * there, so a token can be looked at without the lock.
 */
#include "cache.h"

#include <stdlib.h>

#define CHUNK_BITS 10
#define CHUNK (UINT32_C(1) << CHUNK_BITS)
#define WIDE (UINT64_C(1) << 62)
#define GENERATION_SHIFT 54
#define GENERATIONS 255
#define STATE_BITS FMLIB_STATE_BITS

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

static int add_chunk(struct fmlib_names *names, bool wide)
{
	struct fmlib_name *chunk;
	uint32_t i;

	chunk = calloc(CHUNK, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	for (i = 0; i < CHUNK; i++) {
		atomic_init(&chunk[i].word, 1 << STATE_BITS | FMLIB_NAME_FREE);
		chunk[i].index = names->used + i;
		chunk[i].wide = wide;
	}
	atomic_store_explicit(&names->chunks[names->used >> CHUNK_BITS], chunk,
			      memory_order_release);
	return 0;
}

/* The next one to be used again; with none left, one that has not rested. */
static struct fmlib_name *used_one(struct fmlib_names *names)
{
	struct fmlib_name *name = names->rested;

	if (name) {
		names->rested = name->next;
		return name;
	}
	name = names->oldest;
	if (name) {
		names->oldest = name->next;
		names->resting--;
	}
	return name;
}

struct fmlib_name *fmlib_name_take(struct flexmem_cache *cache, uint64_t size)
{
	bool wide = size >> offset_bits(false);
	struct fmlib_names *names = wide ? &cache->wide : &cache->narrow;
	uint32_t at = names->used;

	if (names->rested || at >> name_bits(wide))
		return used_one(names);
	if (!(at % CHUNK) && add_chunk(names, wide))
		return used_one(names);
	names->used++;
	return &names->chunks[at >> CHUNK_BITS][at % CHUNK];
}

void fmlib_name_give(struct flexmem_cache *cache, struct fmlib_name *name)
{
	struct fmlib_names *names = name->wide ? &cache->wide : &cache->narrow;

	name->block = NULL;
	name->next = NULL;
	if (names->oldest)
		names->newest->next = name;
	else
		names->oldest = name;
	names->newest = name;
	if (++names->resting <= RESTING)
		return;
	name = names->oldest;
	names->oldest = name->next;
	names->resting--;
	name->next = names->rested;
	names->rested = name;
}

void *fmlib_name_token(const struct fmlib_name *name)
{
	uint64_t word = atomic_load_explicit(&name->word, memory_order_relaxed);

	return (void *)(uintptr_t)((name->wide ? WIDE : 0) |
				   word >> STATE_BITS << GENERATION_SHIFT |
				   (uint64_t)name->index <<
				   offset_bits(name->wide));
}

struct fmlib_name *fmlib_name_find(const struct flexmem_cache *cache,
				   const void *token, uint64_t *word,
				   uint64_t *offset)
{
	uint64_t value = (uintptr_t)token;
	bool wide = value & WIDE;
	const struct fmlib_names *names = wide ? &cache->wide : &cache->narrow;
	uint32_t index;
	struct fmlib_name *chunk;
	struct fmlib_name *name;

	if (value >> 63)
		return NULL;
	index = (uint32_t)(value >> offset_bits(wide)) &
		((UINT32_C(1) << name_bits(wide)) - 1);
	chunk = atomic_load_explicit(&names->chunks[index >> CHUNK_BITS],
				     memory_order_acquire);
	if (!chunk)
		return NULL;
	name = &chunk[index % CHUNK];
	*word = atomic_load_explicit(&name->word, memory_order_acquire);
	*offset = value & ((UINT64_C(1) << offset_bits(wide)) - 1);
	if (*word >> STATE_BITS != (value >> GENERATION_SHIFT & 0xff))
		return NULL;
	switch (fmlib_name_state(*word)) {
	case FMLIB_NAME_LIVE:
	case FMLIB_NAME_PLAIN:
		return name;
	default:
		return NULL;
	}
}

static bool replace(struct fmlib_name *name, uint64_t word,
		    uint64_t generation, enum fmlib_name_state state)
{
	uint64_t next = generation << STATE_BITS | state;

	return atomic_compare_exchange_strong_explicit(&name->word, &word, next,
						       memory_order_acq_rel,
						       memory_order_relaxed);
}

bool fmlib_name_change(struct fmlib_name *name, uint64_t word,
		       enum fmlib_name_state state)
{
	return replace(name, word, word >> STATE_BITS, state);
}

bool fmlib_name_retire(struct fmlib_name *name, uint64_t word,
		       enum fmlib_name_state state)
{
	uint64_t next = (word >> STATE_BITS) % GENERATIONS + 1;

	/* Without the lock only plain ones change. */
	if (fmlib_name_state(word) != FMLIB_NAME_LIVE)
		return replace(name, word, next, state);
	atomic_store_explicit(&name->word, next << STATE_BITS | state,
			      memory_order_release);
	return true;
}

uint32_t fmlib_names_count(const struct flexmem_cache *cache)
{
	return cache->narrow.used + cache->wide.used;
}

struct fmlib_block *fmlib_names_block(const struct flexmem_cache *cache,
				      uint32_t i)
{
	const struct fmlib_names *names = &cache->narrow;

	if (i >= names->used) {
		i -= names->used;
		names = &cache->wide;
	}
	return names->chunks[i >> CHUNK_BITS][i % CHUNK].block;
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

	for (i = 0; i < names->used; i += CHUNK)
		free(names->chunks[i >> CHUNK_BITS]);
	free(names->chunks);
}
