// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The last rung of the ladder: waits for memory that other processes give back.
 * The driver has refused memory, so it sends these processes a pressure event,
 * and the helper threads of their caches return memory within some
 * milliseconds. A request waits only if another process can change the outcome.
 */
#include "cache.h"

/*
 * The first wait, in milliseconds, and how often the wait doubles. The
 * description of flexmem_cache_alloc() promises seven attempts.
 */
#define WAIT_MS 10
#define WAITS 7

/*
 * Whether other open files are charged to the limit of a cgroup that refused
 * the request, and so much that the request could succeed if they freed it.
 */
static bool limit_could_yield(const struct flexmem_failure *failure,
			      uint64_t bytes)
{
	uint64_t more = failure->charge == FLEXMEM_CHARGE_BYTES ? bytes : 1;

	return failure->quota_used > failure->quota_own &&
	       failure->quota_own <= failure->quota &&
	       more <= failure->quota - failure->quota_own;
}

/*
 * Whether other processes have so much memory that the request could succeed if
 * they freed it. @own: what this process has, at least.
 */
static bool memory_could_yield(const struct flexmem_cache_provider *provider,
			       uint64_t own, uint64_t bytes)
{
	uint64_t free_bytes;
	uint64_t total;

	if (fmlib_provider_memory(provider, &free_bytes, &total))
		return false;
	return total - free_bytes > own && bytes <= total - own;
}

/* Whether another process can change the outcome of the last attempt. */
static bool others_could_help(const struct flexmem_cache *cache,
			      const struct fmlib_want *want)
{
	const struct flexmem_cache_provider *provider = want->pool->provider;
	const struct flexmem_failure *device = &want->failure->device;
	uint64_t own = cache->figures.reserved_bytes[FLEXMEM_CACHE_ALL].current;
	/* A segment grows by no more than the request. */
	uint64_t bytes = fmlib_size_grows(cache, want) ?
			 want->size : fmlib_size_segment(cache, want);

	/* Without an error the cache's own fraction forbade to ask. */
	if (!want->failure->error || !provider->pressure_fd)
		return false;
	switch (device->limit) {
	case FLEXMEM_LIMIT_REGION_SIZE:
	case FLEXMEM_LIMIT_HANDLES:
		return false;
	case FLEXMEM_LIMIT_CGROUP:
	case FLEXMEM_LIMIT_CGROUP_REGIONS:
		if (device->quota != FLEXMEM_UNLIMITED)
			return limit_could_yield(device, bytes);
		break;
	default:
		break;
	}
	if (own < device->own_used)
		own = device->own_used;
	return memory_could_yield(provider, own, bytes);
}

int fmlib_others_wait(struct flexmem_cache *cache, struct fmlib_want *want)
{
	unsigned int ms = WAIT_MS;
	int state;
	int err;
	int i;

	for (i = 0; i < WAITS && others_could_help(cache, want); i++) {
		state = fmlib_pause(cache);
		fmlib_sleep_until(fmlib_now() + ms * FMLIB_MS);
		err = fmlib_go_on(cache, state);
		if (err)
			return err;
		err = fmlib_segment_obtain(cache, want);
		if (err != -ENOMEM || want->no_host_memory)
			return err;
		ms *= 2;
	}
	return -ENOMEM;
}
