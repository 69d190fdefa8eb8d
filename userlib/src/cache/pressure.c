// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Pressure: other processes need memory, and the cache returns free memory.
 * flexmem_cache_serve_pressure() describes the rule.
 */
#include "cache.h"

int fmlib_pressure_read(struct flexmem_cache *cache,
			struct flexmem_pressure_event *event)
{
	int err;

	*event = (struct flexmem_pressure_event){ 0 };
	if (!cache->provider.pressure)
		return -EOPNOTSUPP;
	err = cache->provider.pressure(cache->provider.user, event);
	/*
	 * If the process has forked in the meantime, the event belongs to the
	 * parent.
	 */
	return fmlib_cache_check(cache) ? -ECHILD : fmlib_callback_result(err);
}

/* By how many bytes the memory in use must fall for CRITICAL to end. */
static uint64_t surplus(const struct flexmem_pressure_event *event)
{
	uint64_t bound = event->memory / 100 * FLEXMEM_CRITICAL_LEAVE;

	return event->in_use < bound ? 0 : event->in_use - bound + 1;
}

/* The bytes that the cache could return to its provider now. */
static uint64_t spare(const struct flexmem_cache *cache)
{
	const struct fmlib_segment *segment;
	uint64_t bytes = 0;

	for (segment = cache->first_segment; segment; segment = segment->next) {
		if (fmlib_is_same_provider(fmlib_provider_of(segment),
					   &cache->provider))
			bytes += fmlib_segment_excess(cache, segment);
	}
	return bytes;
}

/*
 * Answers an event. At MODERATE the cache returns half of its free bytes, the
 * oldest first: no allocation has failed yet, and the memory that was used last
 * will be used next. Pools with a provider of their own keep theirs: the event is not
 * about that provider.
 */
static uint64_t relieve(struct flexmem_cache *cache,
			const struct flexmem_pressure_event *event, int *error)
{
	uint32_t before = cache->level;
	uint64_t bytes;

	*error = 0;
	cache->level = event->level;
	if (event->level < FLEXMEM_LEVEL_MODERATE ||
	    (event->level < FLEXMEM_LEVEL_CRITICAL && event->level < before))
		return 0;
	/* The event tells of another process, not of the level. */
	if (event->wanted && event->level == before &&
	    !(event->flags & FLEXMEM_TELLS_LEVEL))
		return 0;
	fmlib_uses_poll(cache);
	bytes = (spare(cache) + 1) / 2;
	if (event->level >= FLEXMEM_LEVEL_CRITICAL && bytes < surplus(event))
		bytes = surplus(event);
	return fmlib_reclaim_own(cache, bytes, error);
}

static void count(struct flexmem_cache *cache,
		  const struct flexmem_pressure_event *event, uint64_t released)
{
	cache->figures.pressure_bytes += released;
	fmlib_figures_commit(cache, &cache->account);
	fmlib_cache_log(cache, FLEXMEM_LOG_DEBUG,
			"pressure: level %u, %llu of %llu bytes in use: %llu given back",
			event->level, (unsigned long long)event->in_use,
			(unsigned long long)event->memory,
			(unsigned long long)released);
}

static int give(struct flexmem_cache *cache,
		const struct flexmem_pressure_event *event, uint64_t *released)
{
	int err;

	*released = relieve(cache, event, &err);
	count(cache, event, *released);
	return err;
}

/* An event can be about the level, and about what another process lacks. */
static int answer(struct flexmem_cache *cache,
		  const struct flexmem_pressure_event *event,
		  uint64_t *released)
{
	int wanted_err = 0;
	int err;

	*released = relieve(cache, event, &err);
	if (event->wanted > *released)
		*released += fmlib_wanted_answer(cache, event, *released,
						 &wanted_err);
	count(cache, event, *released);
	return err ? err : wanted_err;
}

int fmlib_pressure_answer(struct flexmem_cache *cache,
			  const struct flexmem_pressure_event *event,
			  uint64_t *released)
{
	int err = 0;

	*released = 0;
	fmlib_lock(cache);
	/* Another thread may have served a later event first. */
	if (event->sequence >= cache->answered) {
		cache->answered = event->sequence;
		cache->figures.num_pressure_events++;
		err = answer(cache, event, released);
	}
	fmlib_unlock(cache);
	return err;
}

bool fmlib_pressure_lasts(struct flexmem_cache *cache)
{
	bool lasts;

	fmlib_lock(cache);
	lasts = cache->level >= FLEXMEM_LEVEL_CRITICAL;
	fmlib_unlock(cache);
	return lasts;
}

/*
 * Returns memory that the program has freed into the cache after the level
 * became CRITICAL, because the device sends no event about that. If the program
 * is still allocating, does nothing, because the program will need the memory
 * again.
 */
void fmlib_pressure_look(struct flexmem_cache *cache)
{
	struct flexmem_pressure_event now = { .level = FLEXMEM_LEVEL_CRITICAL };
	uint64_t free_bytes;
	uint64_t released;

	fmlib_lock(cache);
	if (cache->level >= FLEXMEM_LEVEL_CRITICAL &&
	    !fmlib_device_info(cache, &free_bytes, &now.memory)) {
		now.in_use = now.memory - free_bytes;
		/*
		 * Ignores errors: the cache logs a segment that the provider
		 * refuses to take back.
		 */
		if (cache->looked_at == cache->account.clock && surplus(&now))
			give(cache, &now, &released);
	}
	cache->looked_at = cache->account.clock;
	fmlib_unlock(cache);
}

void fmlib_pressure_again(struct flexmem_cache *cache)
{
	fmlib_lock(cache);
	cache->figures.pressure_bytes += fmlib_wanted_look(cache);
	fmlib_figures_commit(cache, &cache->account);
	fmlib_unlock(cache);
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
