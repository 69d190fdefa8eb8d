/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The names of allocations, which tokens are made of: tokens.c says how. */
#ifndef FMLIB_NAMES_H
#define FMLIB_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct flexmem_cache;
struct fmlib_block;
struct fmlib_lane;

enum fmlib_name_state {
	FMLIB_NAME_FREE,
	FMLIB_NAME_LIVE,
};

struct fmlib_name {
	_Atomic uint64_t word;
	struct fmlib_block *block;
	struct fmlib_name *next;
};

/* @lane: whose names they are; NULL: nobody's, as wide ones are. Constant. */
struct fmlib_chunk {
	_Atomic(struct fmlib_name *) names;
	struct fmlib_lane *lane;
};

/* All names, under the cache's lock. */
struct fmlib_names {
	struct fmlib_chunk *chunks;
	uint32_t count;
};

/*
 * So many names rest at least, before the oldest of them is used again: a token
 * that was freed stays invalid for long.
 */
#define FMLIB_RESTING 1024

/*
 * Names that no allocation has. @fresh: of the last chunk, never used so far.
 * @resting: how many are in the list from the oldest to the newest.
 */
struct fmlib_idle {
	struct fmlib_name *fresh;
	uint32_t fresh_count;
	uint32_t resting;
	struct fmlib_name *oldest;
	struct fmlib_name *newest;
};

/* Whether one has rested, or is fresh. */
static inline bool fmlib_name_ready(const struct fmlib_idle *idle)
{
	return idle->resting > FMLIB_RESTING || idle->fresh_count;
}

/* The oldest one, which is there. */
static inline struct fmlib_name *fmlib_name_oldest(struct fmlib_idle *idle)
{
	struct fmlib_name *name = idle->oldest;

	idle->oldest = name->next;
	idle->resting--;
	return name;
}

/* One that is ready. */
static inline struct fmlib_name *fmlib_name_pop(struct fmlib_idle *idle)
{
	if (idle->resting > FMLIB_RESTING)
		return fmlib_name_oldest(idle);
	idle->fresh_count--;
	return idle->fresh++;
}

/* One that nothing has any more begins to rest. */
static inline void fmlib_name_rest(struct fmlib_idle *idle,
				   struct fmlib_name *name)
{
	name->block = NULL;
	if (idle->resting++)
		idle->newest->next = name;
	else
		idle->oldest = name;
	idle->newest = name;
}

/* Whether there can be no further one for such a size. */
bool fmlib_names_are_used_up(const struct flexmem_cache *cache, uint64_t size);
/* NULL: there is none; with a lane that has one left, its lock is enough. */
struct fmlib_name *fmlib_name_take(struct flexmem_cache *cache,
				   struct fmlib_lane *lane, uint64_t size);
void fmlib_name_give(struct flexmem_cache *cache, struct fmlib_lane *lane,
		     struct fmlib_name *name);
/* Which name a token has, if it is live now; needs no lock. */
struct fmlib_name *fmlib_name_find(const struct flexmem_cache *cache,
				   const void *token, uint64_t *word,
				   uint64_t *offset);

/* The first size that has a wide name. */
#define FMLIB_NARROW (UINT64_C(1) << FMLIB_NARROW_SHIFT)

/* tokens.c says what is where in a token. */
#define FMLIB_NARROW_SHIFT 32
#define FMLIB_NARROW_BITS 22
#define FMLIB_CHUNK_BITS 10
#define FMLIB_CHUNK (UINT32_C(1) << FMLIB_CHUNK_BITS)
#define FMLIB_GENERATION_SHIFT 54
#define FMLIB_GENERATION_MASK UINT64_C(0xff)
#define FMLIB_WIDE (UINT64_C(1) << 62)

/* A word is the token of the first byte, with a state where the offset is 0. */
#define FMLIB_STATE_MASK UINT64_C(3)

/* Where the name of a narrow token is, live or not; NULL: nowhere. No lock. */
static inline const struct fmlib_chunk *
fmlib_name_chunk(const struct fmlib_names *narrow, const void *token)
{
	uint64_t value = (uintptr_t)token;
	uint64_t index = value >> FMLIB_NARROW_SHIFT &
			 ((UINT32_C(1) << FMLIB_NARROW_BITS) - 1);
	const struct fmlib_chunk *chunk =
		&narrow->chunks[index >> FMLIB_CHUNK_BITS];

	if (value & FMLIB_WIDE ||
	    !atomic_load_explicit(&chunk->names, memory_order_acquire))
		return NULL;
	return chunk;
}

/* The name there, if this is the token of its first byte, and live now. */
static inline struct fmlib_name *
fmlib_name_first(const struct fmlib_chunk *chunk, const void *token,
		 uint64_t *word)
{
	uint64_t value = (uintptr_t)token;
	struct fmlib_name *name;

	name = atomic_load_explicit(&chunk->names, memory_order_relaxed) +
	       (value >> FMLIB_NARROW_SHIFT & (FMLIB_CHUNK - 1));
	*word = atomic_load_explicit(&name->word, memory_order_acquire);
	return *word == value + FMLIB_NAME_LIVE ? name : NULL;
}

static inline uint64_t fmlib_name_word(const struct fmlib_name *name)
{
	return atomic_load_explicit(&name->word, memory_order_relaxed);
}

static inline enum fmlib_name_state fmlib_name_state(uint64_t word)
{
	return word & FMLIB_STATE_MASK;
}

static inline void *fmlib_word_token(uint64_t word)
{
	return (void *)(uintptr_t)(word & ~FMLIB_STATE_MASK);
}

static inline void *fmlib_name_token(const struct fmlib_name *name)
{
	return fmlib_word_token(fmlib_name_word(name));
}

/* The name is live from now on. */
static inline void fmlib_name_begin(struct fmlib_name *name, void *token)
{
	atomic_store_explicit(&name->word, (uintptr_t)token | FMLIB_NAME_LIVE,
			      memory_order_release);
}

/* Its token is none from now on: the generation is the next one, never 0. */
static inline void fmlib_name_retire(struct fmlib_name *name, uint64_t word)
{
	const uint64_t mask = FMLIB_GENERATION_MASK << FMLIB_GENERATION_SHIFT;

	if ((word & mask) == mask)
		word &= ~mask;
	word += UINT64_C(1) << FMLIB_GENERATION_SHIFT;
	atomic_store_explicit(&name->word, word & ~FMLIB_STATE_MASK,
			      memory_order_release);
}

/* All blocks that have names: the i-th one, or NULL; i is below the count. */
uint32_t fmlib_names_count(const struct flexmem_cache *cache);
struct fmlib_block *fmlib_names_block(const struct flexmem_cache *cache,
				      uint32_t i);
int fmlib_names_start(struct fmlib_names *names, bool wide);
void fmlib_names_free(struct fmlib_names *names);

#endif /* FMLIB_NAMES_H */
