// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Pools and their arenas. Each exists while something needs it. */
#include "cache.h"

#include <stdlib.h>

struct fmlib_pool *fmlib_pool_find(struct flexmem_cache *cache, uint64_t id)
{
	struct fmlib_pool *pool;

	if (!id)
		return &cache->common;
	for (pool = cache->pools; pool; pool = pool->next) {
		if (pool->id == id && !pool->released)
			return pool;
	}
	return NULL;
}

void fmlib_pool_put(struct flexmem_cache *cache, struct fmlib_pool *pool)
{
	struct fmlib_pool **link = &cache->pools;

	if (--pool->pins || !pool->released)
		return;
	while (*link != pool)
		link = &(*link)->next;
	*link = pool->next;
	free(pool);
}

struct fmlib_arena *fmlib_arena_get(const struct fmlib_want *want)
{
	struct fmlib_arena **first =
		&want->pool->arenas[want->kind][want->lane->place];
	struct fmlib_arena *arena = fmlib_arena_find(want);

	if (!arena) {
		arena = calloc(1, sizeof(*arena));
		if (!arena)
			return NULL;
		arena->pool = want->pool;
		arena->lane = want->lane;
		arena->kind = want->kind;
		arena->stream = want->stream;
		arena->next = *first;
		*first = arena;
		want->pool->pins++;
	}
	arena->pins++;
	return arena;
}

void fmlib_arena_put(struct flexmem_cache *cache, struct fmlib_arena *arena)
{
	struct fmlib_arena **link =
		&arena->pool->arenas[arena->kind][arena->lane->place];

	if (--arena->pins)
		return;
	while (*link != arena)
		link = &(*link)->next;
	*link = arena->next;
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

static void find_largest(const struct fmlib_pool *pool,
			 struct fmlib_largest *largest)
{
	size_t place;
	int kind;

	for (kind = 0; kind < FLEXMEM_CACHE_POOL_KINDS; kind++) {
		for (place = 0; place < FMLIB_LANES; place++)
			find_largest_in(pool->arenas[kind][place], largest);
	}
}

struct fmlib_largest fmlib_pools_largest(const struct flexmem_cache *cache)
{
	struct fmlib_largest largest = { 0 };
	const struct fmlib_pool *pool;

	find_largest(&cache->common, &largest);
	for (pool = cache->pools; pool; pool = pool->next)
		find_largest(pool, &largest);
	return largest;
}

int flexmem_cache_pool_create(struct flexmem_cache *cache, uint64_t *pool)
{
	int err = fmlib_cache_check(cache);
	struct fmlib_pool *made;

	if (err)
		return err;
	if (!pool)
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	/* Held by the caller that made it, until the release. */
	made->pins = 1;
	fmlib_lock(cache);
	made->id = ++cache->last_pool;
	made->next = cache->pools;
	cache->pools = made;
	*pool = made->id;
	fmlib_unlock(cache);
	return 0;
}
