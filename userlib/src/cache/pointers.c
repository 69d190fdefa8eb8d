// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Allocations that are freed by pointer: tables from pointers to tokens.
 *
 * A pointer is removed from its table before its token is freed, because
 * another thread may get the same pointer directly afterwards. So a free by
 * token removes the pointer too, and no entry outlives its allocation. The lock
 * of a table is taken after all other locks.
 */
#include "cache.h"

#include <stdlib.h>

#define SHARDS 16
#define SHARD_BITS 4
#define FIRST_ROOM 64

struct entry {
	void *pointer;
	void *token;
};

/* A hash table. @room is a power of two. At most half of @entries are used. */
struct shard {
	struct fmlib_lock lock;
	size_t count;
	size_t room;
	struct entry *entries;
} __attribute__((aligned(64)));

struct fmlib_pointers {
	struct shard shards[SHARDS];
};

struct fmlib_pointers *fmlib_pointers_make(void)
{
	struct fmlib_pointers *pointers;

	pointers = aligned_alloc(64, sizeof(*pointers));
	if (pointers)
		*pointers = (struct fmlib_pointers){ 0 };
	return pointers;
}

void fmlib_pointers_free(struct fmlib_pointers *pointers)
{
	size_t i;

	if (!pointers)
		return;
	for (i = 0; i < SHARDS; i++)
		free(pointers->shards[i].entries);
	free(pointers);
}

/* The upper bits choose the shard, the bits below them the entry. */
static uint64_t hash(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer * UINT64_C(0x9e3779b97f4a7c15);
}

static struct shard *shard_of(struct flexmem_cache *cache, const void *pointer)
{
	return &cache->pointers->shards[hash(pointer) >> (64 - SHARD_BITS)];
}

static size_t home(const struct shard *shard, const void *pointer)
{
	return (size_t)(hash(pointer) >> 24) & (shard->room - 1);
}

/* Returns the entry of the pointer, or the empty entry in which it belongs. */
static size_t place(const struct shard *shard, const void *pointer)
{
	size_t i = home(shard, pointer);

	while (shard->entries[i].pointer && shard->entries[i].pointer != pointer)
		i = (i + 1) & (shard->room - 1);
	return i;
}

/* Makes room for one more entry. Returns 0 or -ENOMEM. */
static int widen(struct shard *shard)
{
	struct shard wide = {
		.room = shard->room ? 2 * shard->room : FIRST_ROOM,
	};
	size_t i;

	if (2 * (shard->count + 1) <= shard->room)
		return 0;
	wide.entries = calloc(wide.room, sizeof(*wide.entries));
	if (!wide.entries)
		return -ENOMEM;
	for (i = 0; i < shard->room; i++) {
		if (shard->entries[i].pointer)
			wide.entries[place(&wide, shard->entries[i].pointer)] =
				shard->entries[i];
	}
	free(shard->entries);
	shard->entries = wide.entries;
	shard->room = wide.room;
	return 0;
}

static int add(struct flexmem_cache *cache, void *pointer, void *token)
{
	struct shard *shard = shard_of(cache, pointer);
	struct entry *entry;
	int err;

	fmlib_lock_take(&shard->lock);
	err = widen(shard);
	if (!err) {
		entry = &shard->entries[place(shard, pointer)];
		shard->count += !entry->pointer;
		entry->pointer = pointer;
		entry->token = token;
	}
	fmlib_lock_drop(&shard->lock);
	return err;
}

/*
 * Empties an entry. Moves later entries into the hole. No entry moves to an
 * index before its home(), where a search for the entry begins.
 */
static void empty(struct shard *shard, size_t hole)
{
	size_t mask = shard->room - 1;
	size_t i = hole;
	size_t from_home;

	for (;;) {
		i = (i + 1) & mask;
		if (!shard->entries[i].pointer)
			break;
		from_home = (i - home(shard, shard->entries[i].pointer)) & mask;
		if (from_home < ((i - hole) & mask))
			continue;
		shard->entries[hole] = shard->entries[i];
		hole = i;
	}
	shard->entries[hole] = (struct entry){ 0 };
	shard->count--;
}

void fmlib_pointers_forget(struct flexmem_cache *cache, const void *pointer,
			   const void *token)
{
	struct shard *shard = shard_of(cache, pointer);
	size_t i;

	fmlib_lock_take(&shard->lock);
	if (shard->count) {
		i = place(shard, pointer);
		/* Another thread may have freed and allocated meanwhile. */
		if (shard->entries[i].token == token)
			empty(shard, i);
	}
	fmlib_lock_drop(&shard->lock);
}

void fmlib_pointers_forget_token(struct flexmem_cache *cache, void *token)
{
	struct flexmem_cache_allocation allocation;
	uint64_t offset;

	if (!flexmem_cache_lookup(cache, token, &allocation, sizeof(allocation),
				  &offset) && !offset)
		fmlib_pointers_forget(cache, allocation.pointer, token);
}

/* Returns the token of a pointer, or NULL. @take: also removes the entry. */
static void *find(struct flexmem_cache *cache, const void *pointer, bool take)
{
	struct shard *shard = shard_of(cache, pointer);
	void *token = NULL;
	size_t i;

	fmlib_lock_take(&shard->lock);
	if (shard->count) {
		i = place(shard, pointer);
		token = shard->entries[i].token;
		if (token && take)
			empty(shard, i);
	}
	fmlib_lock_drop(&shard->lock);
	return token;
}

static int check(struct flexmem_cache *cache)
{
	int err = fmlib_cache_check(cache);

	if (err)
		return err;
	return cache->pointers ? 0 : -EOPNOTSUPP;
}

int flexmem_cache_alloc_pointer(struct flexmem_cache *cache,
				const struct flexmem_cache_request *request,
				size_t request_size,
				struct flexmem_cache_allocation *allocation,
				size_t allocation_size)
{
	int err = check(cache);

	if (err)
		return err;
	if (!allocation ||
	    allocation_size <
		    FMLIB_SIZE_TO(struct flexmem_cache_allocation, pointer))
		return -EINVAL;
	err = flexmem_cache_alloc_request(cache, request, request_size,
					  allocation, allocation_size);
	if (err || !allocation->token)
		return err;
	err = add(cache, allocation->pointer, allocation->token);
	if (!err)
		return 0;
	fmlib_free(cache, allocation->token);
	*allocation = (struct flexmem_cache_allocation){ 0 };
	return err;
}

int flexmem_cache_free_pointer(struct flexmem_cache *cache, void *pointer)
{
	int err = check(cache);
	void *token;

	if (err || !pointer)
		return err;
	token = find(cache, pointer, true);
	return token ? fmlib_free(cache, token) : -EINVAL;
}

int flexmem_cache_lookup_pointer(struct flexmem_cache *cache,
				 const void *pointer,
				 struct flexmem_cache_allocation *allocation,
				 size_t size)
{
	int err = check(cache);
	const void *token;

	if (err)
		return err;
	token = find(cache, pointer, false);
	return token ? flexmem_cache_lookup(cache, token, allocation, size,
					    NULL) : -EINVAL;
}
