// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Lanes, and the locks of a cache. cache.h says what each lock protects.
 *
 * The lane of a stream is found without a lock: lanes are in a hash table, and
 * live as long as the cache. A stream has several possible places in the table.
 * If other streams have taken all of them, the stream shares the lane in the
 * first place.
 *
 * For speed, lanes should not share counters. But the peak of the sum over all
 * lanes is known only if one account counts everything. While only one thread
 * allocates and frees, there is one account, and peaks are exact. After that
 * each lane counts in its own account. The account is added to the cache's
 * account after a number of operations, or when the whole cache is locked.
 */
#include "cache.h"

#include <stdlib.h>

#define PLACES 4

_Thread_local uint64_t fmlib_thread;
atomic_ulong fmlib_generation;

struct fmlib_lane *fmlib_lane_seek(const struct flexmem_cache *cache,
				   uint64_t stream)
{
	struct fmlib_lane *lane;
	size_t i;

	for (i = 0; i < PLACES; i++) {
		lane = fmlib_lane_at(cache, fmlib_lane_place(stream, i));
		if (!lane || lane->stream == stream)
			return lane;
	}
	return fmlib_lane_at(cache, fmlib_lane_place(stream, 0));
}

/* Finds or makes a lane. Needs the cache's lock, and no lock of a lane. */
static struct fmlib_lane *get_lane(struct flexmem_cache *cache, uint64_t stream)
{
	struct fmlib_lane *lane = fmlib_lane_find(cache, stream);
	size_t i = 0;

	if (lane)
		return lane;
	lane = aligned_alloc(FMLIB_LINE, sizeof(*lane));
	if (!lane)
		return NULL;
	while (fmlib_lane_at(cache, fmlib_lane_place(stream, i)))
		i++;
	*lane = (struct fmlib_lane){
		.stream = stream,
		.random = UINT32_C(0x9e3779b9),
	};
	atomic_store_explicit(&cache->lanes[fmlib_lane_place(stream, i)], lane,
			      memory_order_release);
	return lane;
}

static void lock_lanes(struct flexmem_cache *cache)
{
	struct fmlib_lane *lane;
	size_t i;

	for (i = 0; i < FMLIB_LANES; i++) {
		lane = fmlib_lane_at(cache, i);
		if (lane)
			fmlib_lock_take(&lane->lock);
	}
	/*
	 * All lanes are locked, so no lane adds its account to the sum by
	 * itself now.
	 */
	for (i = 0; cache->apart && i < FMLIB_LANES; i++) {
		lane = fmlib_lane_at(cache, i);
		if (lane)
			fmlib_account_add(&cache->account, &lane->account);
	}
	cache->apart = false;
}

void fmlib_lock_raw(struct flexmem_cache *cache)
{
	pthread_mutex_lock(&cache->lock);
	lock_lanes(cache);
}

/*
 * Disables cancellation. A callback under the lock can be a cancellation point,
 * for example a log that prints. A thread that is cancelled in the callback
 * would leave the cache locked.
 */
void fmlib_lock(struct flexmem_cache *cache)
{
	int state = fmlib_cancel_off();

	fmlib_lock_raw(cache);
	cache->cancel_state = state;
	cache->take_back(cache);
}

int fmlib_lock_stream(struct flexmem_cache *cache, uint64_t stream,
		      struct fmlib_lane **lane)
{
	int state = fmlib_cancel_off();

	pthread_mutex_lock(&cache->lock);
	*lane = get_lane(cache, stream);
	if (!*lane) {
		pthread_mutex_unlock(&cache->lock);
		fmlib_cancel_as(state);
		return -ENOMEM;
	}
	cache->cancel_state = state;
	fmlib_lock_take(&(*lane)->lock);
	cache->alone = *lane;
	return 0;
}

void fmlib_lock_rest(struct flexmem_cache *cache)
{
	struct fmlib_lane *lane = cache->alone;

	if (!lane)
		return;
	/*
	 * Makes the changes of this call visible before the lane is unlocked,
	 * because another thread may then add up the lane's account.
	 */
	if (cache->apart)
		fmlib_figures_commit(cache, &lane->account);
	/* Locks the lanes in order, to avoid deadlocks. */
	fmlib_lock_drop(&lane->lock);
	cache->alone = NULL;
	lock_lanes(cache);
	cache->take_back(cache);
}

static void unlock_lanes(struct flexmem_cache *cache)
{
	struct fmlib_lane *lane;
	size_t i;

	cache->apart = cache->shared;
	if (cache->config.direct || cache->history.room || cache->selections ||
	    fmlib_cache_logs(cache, FLEXMEM_LOG_DEBUG))
		cache->served = FMLIB_NOBODY;
	else
		cache->served = cache->shared ? 0 : cache->sole;
	/*
	 * Adds up before the first unlock, because afterwards other threads
	 * change the sum.
	 */
	for (i = 0; i < FMLIB_LANES; i++) {
		lane = fmlib_lane_at(cache, i);
		if (lane)
			fmlib_account_begin(&lane->account, &cache->account);
	}
	for (i = 0; i < FMLIB_LANES; i++) {
		lane = fmlib_lane_at(cache, i);
		if (lane)
			fmlib_lock_drop(&lane->lock);
	}
}

void fmlib_unlock_raw(struct flexmem_cache *cache)
{
	struct fmlib_lane *alone = cache->alone;

	cache->alone = NULL;
	if (alone)
		fmlib_lock_drop(&alone->lock);
	else
		unlock_lanes(cache);
	pthread_mutex_unlock(&cache->lock);
}

void fmlib_unlock(struct flexmem_cache *cache)
{
	struct fmlib_origin *gone = cache->gone_origins;
	int state = cache->cancel_state;

	cache->gone_origins = NULL;
	fmlib_unlock_raw(cache);
	fmlib_cancel_as(state);
	if (gone)
		fmlib_origins_release(cache, gone);
}

int fmlib_pause(struct flexmem_cache *cache)
{
	int state = cache->cancel_state;

	fmlib_unlock_raw(cache);
	return state;
}

int fmlib_go_on(struct flexmem_cache *cache, int state)
{
	fmlib_lock_raw(cache);
	cache->cancel_state = state;
	cache->take_back(cache);
	return fmlib_cache_check(cache);
}

void fmlib_lane_admit(struct flexmem_cache *cache)
{
	static _Atomic uint64_t last;

	if (!fmlib_thread)
		fmlib_thread = atomic_fetch_add(&last, 1) + 1;
	if (cache->sole == FMLIB_NOBODY)
		cache->sole = fmlib_thread;
	else if (cache->sole != fmlib_thread)
		cache->shared = true;
}

void fmlib_lane_add_up(struct flexmem_cache *cache, struct fmlib_lane *lane)
{
	pthread_mutex_lock(&cache->account_lock);
	fmlib_account_add(&cache->account, &lane->account);
	pthread_mutex_unlock(&cache->account_lock);
}

void fmlib_lanes_free(struct flexmem_cache *cache)
{
	struct fmlib_piece *piece;
	struct fmlib_lane *lane;
	size_t i;

	for (i = 0; i < FMLIB_LANES; i++) {
		lane = fmlib_lane_at(cache, i);
		if (!lane)
			continue;
		while ((piece = lane->spare)) {
			lane->spare = piece->next;
			free(piece);
		}
		free(lane);
	}
}
