// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A provider in the program itself: the segments of the cache are host memory,
 * with reserved addresses behind each segment so that it can grow.
 *
 * cc cache_provider.c $(pkg-config --cflags --libs libflexmem)
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <flexmem_cache.h>
#include <stdio.h>
#include <sys/mman.h>

/* The address space for each segment, which may grow in it. */
#define ROOM (UINT64_C(1) << 32)

static int host_alloc(void *user, uint64_t bytes, uint64_t alignment,
		      uint32_t flags, struct flexmem_cache_memory *memory,
		      struct flexmem_failure *failure)
{
	char *start;

	/* A page is aligned enough, and each segment has room to grow. */
	(void)user;
	(void)alignment;
	(void)flags;
	(void)failure;
	if (bytes > ROOM)
		return -ENOMEM;
	start = mmap(NULL, ROOM, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (start == MAP_FAILED)
		return -ENOMEM;
	if (mprotect(start, bytes, PROT_READ | PROT_WRITE)) {
		munmap(start, ROOM);
		return -ENOMEM;
	}
	memory->handle = (uintptr_t)start;
	memory->address.region_id = 0;
	memory->address.offset = (uintptr_t)start;
	return 0;
}

static int host_free(void *user, uint64_t handle)
{
	(void)user;
	return munmap((void *)(uintptr_t)handle, ROOM) ? -errno : 0;
}

static int host_grow(void *user, uint64_t handle, uint64_t old_bytes,
		     uint64_t bytes, struct flexmem_failure *failure)
{
	char *end = (char *)(uintptr_t)handle + old_bytes;

	(void)user;
	(void)failure;
	if (bytes > ROOM)
		return -EAGAIN;
	return mprotect(end, bytes - old_bytes, PROT_READ | PROT_WRITE) ?
	       -errno : 0;
}

static int host_shrink(void *user, uint64_t handle, uint64_t old_bytes,
		       uint64_t bytes)
{
	char *end = (char *)(uintptr_t)handle + bytes;
	void *kept;

	(void)user;
	kept = mmap(end, old_bytes - bytes, PROT_NONE, MAP_FIXED |
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return kept == MAP_FAILED ? -errno : 0;
}

int main(void)
{
	const struct flexmem_cache_provider provider = {
		.alloc = host_alloc,
		.free = host_free,
		.grow = host_grow,
		.shrink = host_shrink,
	};
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.configuration = "expandable_segments:True",
	};
	struct flexmem_cache_allocation made = { 0 };
	struct flexmem_cache_request request = { .bytes = 3 << 20 };
	struct flexmem_cache *cache = NULL;
	uint64_t back = 0;
	int err;

	err = flexmem_cache_create(&cache, &options, sizeof(options));
	if (!err)
		err = flexmem_cache_alloc_request(cache, &request,
						  sizeof(request), &made,
						  sizeof(made));
	if (!err) {
		/* The offsets of this provider are CPU addresses. */
		*(char *)(uintptr_t)made.address.offset = 1;
		err = flexmem_cache_free(cache, made.token);
	}
	if (!err)
		err = flexmem_cache_empty(cache, &back);
	printf("error %d, %lu bytes went back\n", -err, (unsigned long)back);
	flexmem_cache_destroy(cache);
	return err != 0;
}
