// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Pressure: others need memory, and the cache gives back what is free. The rule
 * is that of flexmem_cache_serve_pressure().
 */
#include "cache.h"

#include <time.h>

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Others that wait for memory have it by then, or have given up. */
#define OWED_MS 1000

static void owe(struct flexmem_cache *cache, uint64_t bytes)
{
	cache->owed = bytes;
	cache->owed_until = now_ms() + OWED_MS;
}

bool fmlib_pressure_owes(struct flexmem_cache *cache)
{
	if (cache->owed && now_ms() >= cache->owed_until)
		cache->owed = 0;
	return cache->owed;
}

int fmlib_pressure_read(struct flexmem_cache *cache,
			struct flexmem_pressure_event *event)
{
	int err;

	*event = (struct flexmem_pressure_event){ 0 };
	if (!cache->provider.pressure)
		return -EOPNOTSUPP;
	err = cache->provider.pressure(cache->provider.user, event);
	/* A child that was forked in there must not answer it. */
	return fmlib_cache_check(cache) ? -ECHILD : err;
}

/* By how much too much will be in use when all that is wanted is allocated. */
static uint64_t surplus(const struct flexmem_pressure_event *event)
{
	uint64_t bound = event->memory / 100 * FLEXMEM_CRITICAL_LEAVE;
	uint64_t use = event->in_use;

	if (event->wanted > UINT64_MAX - use)
		return UINT64_MAX;
	use += event->wanted;
	return use < bound ? 0 : use - bound + 1;
}

static uint64_t relieve_critical(struct flexmem_cache *cache,
				 const struct flexmem_pressure_event *event,
				 int *error)
{
	struct fmlib_spare spare = fmlib_spare(cache);
	uint64_t bytes = surplus(event);
	uint64_t released = 0;

	if (bytes < spare.bytes - spare.bytes / 2)
		bytes = spare.bytes - spare.bytes / 2;
	if (event->wanted && event->wanted <= spare.largest)
		released = fmlib_reclaim_piece(cache, event->wanted);
	if (event->wanted && !released)
		bytes = UINT64_MAX;
	*error = 0;
	if (released < bytes)
		released += fmlib_reclaim(cache, bytes - released, error);
	return released;
}

void fmlib_pressure_paid(struct flexmem_cache *cache, uint64_t released)
{
	if (!fmlib_pressure_owes(cache))
		return;
	cache->owed -= released < cache->owed ? released : cache->owed;
	cache->figures.pressure_bytes += released;
}

static uint64_t relieve(struct flexmem_cache *cache,
			const struct flexmem_pressure_event *event, int *error)
{
	uint32_t before = cache->level;
	struct fmlib_spare spare;
	uint64_t released;

	*error = 0;
	cache->level = event->level;
	if (event->level >= FLEXMEM_LEVEL_CRITICAL) {
		released = relieve_critical(cache, event, error);
		if (event->wanted > released)
			owe(cache, event->wanted - released);
		return released;
	}
	if (event->level < before || event->level < FLEXMEM_LEVEL_MODERATE)
		return 0;
	spare = fmlib_spare(cache);
	return fmlib_reclaim(cache, spare.bytes - spare.bytes / 2, error);
}

static int answer(struct flexmem_cache *cache,
		  const struct flexmem_pressure_event *event,
		  uint64_t *released)
{
	int err;

	cache->answered = event->sequence;
	/* What was told before is settled by what is told now. */
	cache->owed = 0;
	if (event->level >= FLEXMEM_LEVEL_MODERATE)
	fmlib_uses_poll(cache);
	*released = relieve(cache, event, &err);
	cache->figures.num_pressure_events++;
	cache->figures.pressure_bytes += *released;
	fmlib_figures_commit(cache, &cache->account);
	fmlib_cache_log(cache, FLEXMEM_LOG_DEBUG,
			"pressure: level %u, %llu of %llu bytes in use, %llu wanted: %llu given back",
			event->level, (unsigned long long)event->in_use,
			(unsigned long long)event->memory,
			(unsigned long long)event->wanted,
			(unsigned long long)*released);
	return err;
}

int fmlib_pressure_answer(struct flexmem_cache *cache,
			  const struct flexmem_pressure_event *event,
			  uint64_t *released)
{
	int err = 0;

	*released = 0;
	fmlib_lock(cache);
	/* Another thread may have read a later one, and was faster. */
	if (event->sequence >= cache->answered)
		err = answer(cache, event, released);
	fmlib_unlock(cache);
	return err;
}

int flexmem_cache_serve_pressure(struct flexmem_cache *cache,
				 uint64_t *released)
{
	struct flexmem_pressure_event event;
	int err = fmlib_cache_check(cache);
	uint64_t sum = 0;

	if (err)
		return err;
	err = fmlib_pressure_read(cache, &event);
	if (!err)
		err = fmlib_pressure_answer(cache, &event, &sum);
	if (released)
		*released = sum;
	return err;
}
