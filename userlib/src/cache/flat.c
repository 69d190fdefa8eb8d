// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The flat provider: an address space without memory, for tests of a cache and
 * replays of traces without a device. Its segments are in a list, ordered by
 * address. A growing segment begins in the middle of the largest hole, any
 * other segment at the start of the tightest hole.
 */
#include "cache.h"

#include <stdlib.h>

#define GRANULE 128

struct piece {
	struct piece *next;
	uint64_t start;
	uint64_t size;
};

struct flexmem_cache_flat {
	pthread_mutex_t lock;
	uint64_t size;
	uint64_t used;
	struct piece *pieces;
};

static uint64_t align(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

/* Returns the end of the hole in front of @piece. */
static uint64_t hole_end(const struct flexmem_cache_flat *flat,
			 const struct piece *piece)
{
	return piece ? piece->start : flat->size;
}

/* A hole, which lies in front of the piece *@link. */
struct hole {
	struct piece **link;
	uint64_t start;
	uint64_t size;
};

static bool better(const struct hole *hole, const struct hole *than, bool grows)
{
	if (!than->link)
		return true;
	return grows ? hole->size > than->size : hole->size < than->size;
}

static struct hole find_hole(struct flexmem_cache_flat *flat, uint64_t bytes,
			     uint64_t alignment, bool grows,
			     struct flexmem_failure *failure)
{
	struct hole best = { 0 };
	struct hole hole = { .link = &flat->pieces };
	uint64_t end = 0;
	uint64_t limit;

	for (;;) {
		limit = hole_end(flat, *hole.link);
		hole.start = align(end, alignment);
		/*
		 * There is no hole here if the next multiple of the alignment
		 * overflows.
		 */
		hole.size = hole.start >= end && limit > hole.start ?
			    limit - hole.start : 0;
		if (hole.size > failure->largest_free)
			failure->largest_free = hole.size;
		if (hole.size >= bytes && better(&hole, &best, grows))
			best = hole;
		if (!*hole.link)
			return best;
		end = (*hole.link)->start + (*hole.link)->size;
		hole.link = &(*hole.link)->next;
	}
}

static void explain(const struct flexmem_cache_flat *flat, uint64_t bytes,
		    struct flexmem_failure *failure)
{
	failure->asked = bytes;
	failure->regions = 1;
	failure->slots = 1;
	failure->max_regions = 1;
	failure->total_free = flat->size - flat->used;
	failure->max_region = flat->size;
	if (bytes > flat->size)
		failure->limit = FLEXMEM_LIMIT_REGION_SIZE;
	else if (bytes > failure->total_free)
		failure->limit = FLEXMEM_LIMIT_CAPACITY;
	else
		failure->limit = FLEXMEM_LIMIT_FRAGMENTATION;
}

static int flat_alloc(void *user, uint64_t bytes, uint64_t alignment,
		      uint32_t flags, struct flexmem_cache_memory *memory,
		      struct flexmem_failure *failure)
{
	bool grows = flags & FLEXMEM_CACHE_GROWABLE;
	struct flexmem_cache_flat *flat = user;
	struct piece *piece = malloc(sizeof(*piece));
	struct hole hole;
	uint64_t room;

	if (!piece)
		return -ENOMEM;
	pthread_mutex_lock(&flat->lock);
	failure->largest_free = 0;
	hole = find_hole(flat, bytes, alignment, grows, failure);
	if (!hole.link) {
		explain(flat, bytes, failure);
		pthread_mutex_unlock(&flat->lock);
		free(piece);
		return -ENOMEM;
	}
	/*
	 * The segment in front may grow too, so half of the free bytes stay for
	 * it.
	 */
	room = grows && hole.start ? (hole.size - bytes) / 2 : 0;
	piece->start = align(hole.start + room - room % alignment, alignment);
	piece->size = bytes;
	piece->next = *hole.link;
	*hole.link = piece;
	flat->used += bytes;
	memory->handle = piece->start;
	memory->address.region_id = 0;
	memory->address.offset = piece->start;
	pthread_mutex_unlock(&flat->lock);
	return 0;
}

static struct piece **find_piece(struct flexmem_cache_flat *flat,
				 uint64_t handle)
{
	struct piece **link = &flat->pieces;

	while (*link && (*link)->start != handle)
		link = &(*link)->next;
	return link;
}

static int flat_free(void *user, uint64_t handle)
{
	struct flexmem_cache_flat *flat = user;
	struct piece **link;
	struct piece *piece;

	pthread_mutex_lock(&flat->lock);
	link = find_piece(flat, handle);
	piece = *link;
	if (piece) {
		*link = piece->next;
		flat->used -= piece->size;
	}
	pthread_mutex_unlock(&flat->lock);
	free(piece);
	return piece ? 0 : -ENOENT;
}

static int resize(struct flexmem_cache_flat *flat, uint64_t handle,
		  uint64_t old_bytes, uint64_t bytes)
{
	struct piece *piece = *find_piece(flat, handle);

	if (!piece || piece->size != old_bytes)
		return -ENOENT;
	if (bytes > hole_end(flat, piece->next) - piece->start)
		return -EAGAIN;
	piece->size = bytes;
	flat->used += bytes - old_bytes;
	return 0;
}

static int flat_grow(void *user, uint64_t handle, uint64_t old_bytes,
		     uint64_t bytes, struct flexmem_failure *failure)
{
	struct flexmem_cache_flat *flat = user;
	int err;

	(void)failure;
	pthread_mutex_lock(&flat->lock);
	err = resize(flat, handle, old_bytes, bytes);
	pthread_mutex_unlock(&flat->lock);
	return err;
}

static int flat_shrink(void *user, uint64_t handle, uint64_t old_bytes,
		       uint64_t bytes)
{
	struct flexmem_cache_flat *flat = user;
	int err;

	pthread_mutex_lock(&flat->lock);
	err = resize(flat, handle, old_bytes, bytes);
	pthread_mutex_unlock(&flat->lock);
	return err;
}

static int flat_memory_info(void *user, uint64_t *free, uint64_t *total)
{
	struct flexmem_cache_flat *flat = user;

	pthread_mutex_lock(&flat->lock);
	*free = flat->size - flat->used;
	*total = flat->size;
	pthread_mutex_unlock(&flat->lock);
	return 0;
}

int flexmem_cache_flat_create(struct flexmem_cache_flat **flat, uint64_t bytes,
			      struct flexmem_cache_provider *provider,
			      size_t size)
{
	struct flexmem_cache_provider filled = {
		.alloc = flat_alloc,
		.free = flat_free,
		.grow = flat_grow,
		.shrink = flat_shrink,
		.memory_info = flat_memory_info,
	};
	struct flexmem_cache_flat *made;

	if (!flat || !provider || size < FMLIB_PROVIDER_MIN || !bytes ||
	    bytes % GRANULE)
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	pthread_mutex_init(&made->lock, NULL);
	made->size = bytes;
	filled.user = made;
	*flat = made;
	return fmlib_copy_out(provider, size, FMLIB_PROVIDER_MIN, &filled,
			      sizeof(filled));
}

void flexmem_cache_flat_destroy(struct flexmem_cache_flat *flat)
{
	struct piece *piece;

	if (!flat)
		return;
	while ((piece = flat->pieces)) {
		flat->pieces = piece->next;
		free(piece);
	}
	pthread_mutex_destroy(&flat->lock);
	free(flat);
}
