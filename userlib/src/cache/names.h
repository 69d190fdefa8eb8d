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
	FMLIB_NAME_PLAIN,
	FMLIB_NAME_PARKED,
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

/* Those that nothing has. @fresh: of the last chunk, never used so far. */
struct fmlib_idle {
	struct fmlib_name *fresh;
	uint32_t fresh_count;
	uint32_t resting;
	struct fmlib_name *oldest;
	struct fmlib_name *newest;
	struct fmlib_name *rested;
};

/* One that has rested, or is fresh; NULL: there is none. */
static inline struct fmlib_name *fmlib_name_pop(struct fmlib_idle *idle)
{
	struct fmlib_name *name = idle->rested;

	if (name) {
		idle->rested = name->next;
	} else if (idle->fresh_count) {
		idle->fresh_count--;
		name = idle->fresh++;
	}
	return name;
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
	uint64_t state;

	name = atomic_load_explicit(&chunk->names, memory_order_relaxed) +
	       (value >> FMLIB_NARROW_SHIFT & (FMLIB_CHUNK - 1));
	*word = atomic_load_explicit(&name->word, memory_order_acquire);
	state = *word & FMLIB_STATE_MASK;
	if (*word - state != value)
		return NULL;
	return state == FMLIB_NAME_LIVE || state == FMLIB_NAME_PLAIN ? name :
	       NULL;
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

/* The word of the next generation, which is never 0. */
static inline uint64_t fmlib_name_after(uint64_t word,
					enum fmlib_name_state state)
{
	const uint64_t mask = FMLIB_GENERATION_MASK << FMLIB_GENERATION_SHIFT;

	if ((word & mask) == mask)
		word &= ~mask;
	word += UINT64_C(1) << FMLIB_GENERATION_SHIFT;
	return (word & ~FMLIB_STATE_MASK) | state;
}

static inline bool fmlib_name_replace(struct fmlib_name *name, uint64_t word,
				      uint64_t next)
{
	return atomic_compare_exchange_strong_explicit(&name->word, &word, next,
						       memory_order_acq_rel,
						       memory_order_relaxed);
}

/* Changes the state; false if it is no longer @word. */
bool fmlib_name_change(struct fmlib_name *name, uint64_t word,
		       enum fmlib_name_state state);
/* The same, of a name that nobody else can change. */
static inline void fmlib_name_set(struct fmlib_name *name,
				  enum fmlib_name_state state)
{
	uint64_t word = fmlib_name_word(name) & ~FMLIB_STATE_MASK;

	atomic_store_explicit(&name->word, word | state, memory_order_release);
}

/* The same, if its token is known. */
static inline void fmlib_name_begin(struct fmlib_name *name, void *token,
				    enum fmlib_name_state state)
{
	atomic_store_explicit(&name->word, (uintptr_t)token | state,
			      memory_order_release);
}

/*
 * The same with the lock, if it is not to be parked, and what the token was is
 * none from now on.
 */
static inline bool fmlib_name_retire(struct fmlib_name *name, uint64_t word,
				     enum fmlib_name_state state)
{
	uint64_t next = fmlib_name_after(word, state);

	/* Without the lock only plain ones change. */
	if (fmlib_name_state(word) != FMLIB_NAME_LIVE)
		return fmlib_name_replace(name, word, next);
	atomic_store_explicit(&name->word, next, memory_order_release);
	return true;
}

/* All blocks that have names: the i-th one, or NULL; i is below the count. */
uint32_t fmlib_names_count(const struct flexmem_cache *cache);
struct fmlib_block *fmlib_names_block(const struct flexmem_cache *cache,
				      uint32_t i);
int fmlib_names_start(struct fmlib_names *names, bool wide);
void fmlib_names_free(struct fmlib_names *names);

#endif /* FMLIB_NAMES_H */
