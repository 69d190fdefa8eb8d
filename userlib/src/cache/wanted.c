// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What another process lacks: an ALLOC of it has failed, and an event says how
 * many bytes were missing. The cache gives back that much of its free memory,
 * also if the device is far from full.
 *
 * A process can fail on purpose. So if what the cache gave was not taken, it
 * gives nothing for PAUSE_MS. What it could not give at once, because it was in
 * use, it gives when the program is idle, as long as the other process may still
 * be waiting for it.
 */
#include "cache.h"

/* How long nothing is given after a gift that nobody took. */
#define PAUSE_MS 1000

/* How long a request of another process counts: a cache waits no longer. */
#define WISH_MS 1300

static uint64_t now_ms(void)
{
	return fmlib_now() / FMLIB_MS;
}

/* What others have, if @in_use bytes of the device are in use. */
static uint64_t of_others(const struct flexmem_cache *cache, uint64_t in_use)
{
	uint64_t own = cache->figures.reserved_bytes[FLEXMEM_CACHE_ALL].current;

	return in_use > own ? in_use - own : 0;
}

/* Whether the last gift was so short ago that it counts, and was not taken. */
static bool is_in_vain(const struct flexmem_cache *cache, uint64_t in_use,
		       uint64_t now)
{
	const struct fmlib_wanted *wanted = &cache->wanted;

	return wanted->gave && now - wanted->gave_at < PAUSE_MS &&
	       of_others(cache, in_use) <= wanted->others;
}

static uint64_t give(struct flexmem_cache *cache, uint64_t in_use, uint64_t now,
		     int *error)
{
	struct fmlib_wanted *wanted = &cache->wanted;
	uint64_t others = of_others(cache, in_use);
	uint64_t released;

	fmlib_uses_poll(cache);
	released = fmlib_reclaim_wanted(cache, wanted->bytes, error);
	wanted->bytes -= released < wanted->bytes ? released : wanted->bytes;
	if (released) {
		wanted->gave = true;
		wanted->gave_at = now;
		wanted->others = others;
	}
	return released;
}

uint64_t fmlib_wanted_answer(struct flexmem_cache *cache,
			     const struct flexmem_pressure_event *event,
			     uint64_t released, int *error)
{
	uint64_t in_use = event->in_use > released ?
			  event->in_use - released : 0;
	uint64_t now = now_ms();

	if (is_in_vain(cache, in_use, now))
		return 0;
	cache->wanted.bytes = event->wanted - released;
	cache->wanted.until = now + WISH_MS;
	cache->wanted.looked_at = cache->account.clock;
	return give(cache, in_use, now, error);
}

bool fmlib_wanted_lasts(struct flexmem_cache *cache)
{
	bool lasts;

	fmlib_lock(cache);
	if (cache->wanted.bytes && now_ms() >= cache->wanted.until)
		cache->wanted.bytes = 0;
	lasts = cache->wanted.bytes;
	fmlib_unlock(cache);
	return lasts;
}

uint64_t fmlib_wanted_look(struct flexmem_cache *cache)
{
	uint64_t clock = cache->account.clock;
	uint64_t now = now_ms();
	uint64_t free_bytes;
	uint64_t released = 0;
	uint64_t total;
	/* The cache logs a segment that the provider refuses to take back. */
	int err;

	if (cache->wanted.bytes && now < cache->wanted.until &&
	    cache->wanted.looked_at == clock &&
	    !fmlib_device_info(cache, &free_bytes, &total))
		released = give(cache, total - free_bytes, now, &err);
	cache->wanted.looked_at = clock;
	return released;
}
