// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Pools and their arenas. A pin keeps a pool or an arena from being freed. */
#include "cache.h"

#include <stdlib.h>

struct fmlib_pool *fmlib_pool_find(struct flexmem_cache *cache, uint64_t id)
{
	struct fmlib_pool *pool;

	if (!id)
		return &cache->common;
	pool = cache->pools[id % FMLIB_CHAINS];
	while (pool && pool->id != id)
		pool = pool->next;
	return pool && !pool->released ? pool : NULL;
}

void fmlib_pool_put(struct flexmem_cache *cache, struct fmlib_pool *pool)
{
	struct fmlib_pool **link = &cache->pools[pool->id % FMLIB_CHAINS];

	if (--pool->pins || !pool->released)
		return;
	while (*link != pool)
		link = &(*link)->next;
	*link = pool->next;
	free(pool);
}

struct fmlib_arena *fmlib_arena_find(const struct flexmem_cache *cache,
				     const struct fmlib_want *want)
{
	struct fmlib_arena *arena =
		cache->arenas[fmlib_arena_chain(want->stream, want->pool->id)];

	while (arena && (arena->stream != want->stream ||
			 arena->pool != want->pool ||
			 arena->kind != want->kind))
		arena = arena->next;
	return arena;
}

static struct fmlib_arena **chain_of(struct flexmem_cache *cache,
				     uint64_t stream,
				     const struct fmlib_pool *pool)
{
	return &cache->arenas[fmlib_arena_chain(stream, pool->id)];
}

static struct fmlib_arena *make_arena(const struct fmlib_want *want)
{
	struct fmlib_arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		return NULL;
	arena->pool = want->pool;
	arena->lane = want->lane;
	arena->kind = want->kind;
	arena->stream = want->stream;
	want->pool->pins++;
	return arena;
}

struct fmlib_arena *fmlib_arena_get(struct flexmem_cache *cache,
				    const struct fmlib_want *want)
{
	struct fmlib_arena **first = chain_of(cache, want->stream, want->pool);
	struct fmlib_arena *arena = fmlib_arena_find(cache, want);

	if (!arena) {
		arena = make_arena(want);
		if (!arena)
			return NULL;
		arena->next = *first;
		*first = arena;
	}
	arena->pins++;
	return arena;
}

struct fmlib_arena *fmlib_arena_share(struct flexmem_cache *cache,
				      const struct fmlib_want *want)
{
	struct fmlib_arena *arena = cache->share.arena;

	if (!arena) {
		arena = make_arena(want);
		if (!arena)
			return NULL;
		arena->kind = FLEXMEM_CACHE_LARGE;
		fmlib_share_begin(cache, arena, want->owner);
	}
	arena->pins++;
	return arena;
}

void fmlib_arena_put(struct flexmem_cache *cache, struct fmlib_arena *arena)
{
	struct fmlib_arena **link = chain_of(cache, arena->stream, arena->pool);

	if (--arena->pins)
		return;
	if (arena == cache->share.arena) {
		fmlib_share_end(cache);
	} else {
		while (*link != arena)
			link = &(*link)->next;
		*link = arena->next;
	}
	fmlib_pool_put(cache, arena->pool);
	free(arena);
}

static void note_larger(struct fmlib_largest *largest, uint64_t size,
			const struct fmlib_arena *arena)
{
	if (size <= largest->size)
		return;
	largest->size = size;
	largest->arena = arena;
}

static void find_largest_in(const struct fmlib_arena *arena,
			    struct fmlib_largest *largest)
{
	const struct fmlib_segment *segment;

	for (; arena; arena = arena->next) {
		note_larger(largest, fmlib_fit_largest(&arena->free), arena);
		for (segment = arena->growing; segment;
		     segment = segment->next_growing)
			note_larger(largest,
				    fmlib_range_largest(&segment->range),
				    arena);
	}
}

struct fmlib_largest fmlib_pools_largest(const struct flexmem_cache *cache)
{
	struct fmlib_largest largest = { 0 };
	size_t i;

	if (cache->share.arena)
		find_largest_in(cache->share.arena, &largest);
	for (i = 0; i < FMLIB_CHAINS; i++)
		find_largest_in(cache->arenas[i], &largest);
	return largest;
}
