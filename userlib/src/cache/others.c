// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The last rung of the ladder: waits for memory that other processes give back.
 * The driver has refused memory, so it sends these processes a pressure event,
 * and the helper threads of their caches return memory within some
 * milliseconds. A request waits only if another process can change the outcome.
 */
#include "cache.h"

/*
 * The first wait, in milliseconds, the longest, and the number of waits. The
 * first three double, and the description of flexmem_cache_alloc() promises the
 * sum. A wait is no longer than the time between two events of the driver: of
 * several processes that wait, the next one takes what was given for the last
 * event, before the next event tells what is lacking still.
 */
#define WAIT_MS 10
#define LONGEST_MS 100
#define WAITS 15

static unsigned int next_wait(unsigned int ms)
{
	return ms < LONGEST_MS / 2 - WAIT_MS ? 2 * ms : LONGEST_MS;
}

/*
 * Whether the request could succeed if the other open files that are charged to
 * a limit gave back all they have. A region can have bytes of several files, so
 * another file can make room in one that this file is charged, too.
 */
static bool limit_could_yield(const struct flexmem_failure *failure,
			      uint64_t bytes)
{
	uint64_t more = failure->charge == FLEXMEM_CHARGE_BYTES ? bytes : 1;

	return failure->charge == FLEXMEM_CHARGE_REGIONS ||
	       (failure->quota_own <= failure->quota &&
		more <= failure->quota - failure->quota_own);
}

/*
 * Whether other processes have so much memory that the request could succeed if
 * they freed it. @own: what this process has of it, at least.
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
	uint64_t own = fmlib_reserved_on(cache, provider);
	/* The least that a new segment can have. */
	uint64_t bytes = fmlib_size_least(want);

	/* Without an error the cache's own fraction forbade to ask. */
	if (!want->failure->error || !provider->pressure_fd)
		return false;
	/* The driver has compared regions, limits and what each file has. */
	if (device->quota_flags & FLEXMEM_QUOTA_ALONE)
		return false;
	switch (device->limit) {
	case FLEXMEM_LIMIT_REGION_SIZE:
	case FLEXMEM_LIMIT_HANDLES:
		return false;
	case FLEXMEM_LIMIT_CGROUP:
	case FLEXMEM_LIMIT_CGROUP_REGIONS:
		/* An older driver does not tell which limit it was. */
		if (device->quota_left == FLEXMEM_UNLIMITED)
			break;
		if (!(device->quota_flags & FLEXMEM_QUOTA_SHARED))
			return false;
		if (device->quota != FLEXMEM_UNLIMITED)
			return limit_could_yield(device, bytes);
		if (device->charge != FLEXMEM_CHARGE_BYTES)
			return true;
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
		if (err == -ENOMEM && !want->no_host_memory)
			err = fmlib_segment_exact(cache, want);
		if (err != -ENOMEM || want->no_host_memory)
			return err;
		ms = next_wait(ms);
	}
	return -ENOMEM;
}
