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

/* NULL: there is none; with a lane that has one left, its lock is enough. */
struct fmlib_name *fmlib_name_take(struct flexmem_cache *cache,
				   struct fmlib_lane *lane, uint64_t size);
void fmlib_name_give(struct flexmem_cache *cache, struct fmlib_lane *lane,
		     struct fmlib_name *name);
void *fmlib_name_token(const struct fmlib_name *name);
/* Which name a token has, if it is live now; needs no lock. */
struct fmlib_name *fmlib_name_find(const struct flexmem_cache *cache,
				   const void *token, uint64_t *word,
				   uint64_t *offset);
/* The lane of that name, live or not, if it has one; needs no lock. */
struct fmlib_lane *fmlib_name_lane(const struct flexmem_cache *cache,
				   const void *token);

/* The first size that has a wide name. */
#define FMLIB_NARROW (UINT64_C(1) << 32)

/* A word is the token of the first byte, with a state where the offset is 0. */
#define FMLIB_STATE_MASK UINT64_C(3)

static inline uint64_t fmlib_name_word(const struct fmlib_name *name)
{
	return atomic_load_explicit(&name->word, memory_order_relaxed);
}

static inline enum fmlib_name_state fmlib_name_state(uint64_t word)
{
	return word & FMLIB_STATE_MASK;
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

/*
 * The same with the lock, if it is not to be parked, and what the token was is
 * none from now on.
 */
bool fmlib_name_retire(struct fmlib_name *name, uint64_t word,
		       enum fmlib_name_state state);
/* All blocks that have names: the i-th one, or NULL; i is below the count. */
uint32_t fmlib_names_count(const struct flexmem_cache *cache);
struct fmlib_block *fmlib_names_block(const struct flexmem_cache *cache,
				      uint32_t i);
int fmlib_names_start(struct fmlib_names *names, bool wide);
void fmlib_names_free(struct fmlib_names *names);

#endif /* FMLIB_NAMES_H */
