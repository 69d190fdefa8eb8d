// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Lanes, and the locks of a cache: cache.h says what each protects.
 *
 * A stream finds its lane without a lock: lanes are in a table by a hash of the
 * stream, are made once and never go. When all places for a stream are taken by
 * others it shares the lane of the first.
 *
 * Lanes must not meet in what they count either, but a peak of all of them can
 * only be seen in one place. As long as one thread alone allocates and frees,
 * there is one account, and peaks are exact. From then on each lane counts
 * apart, and adds up after so many operations, or when the whole is locked.
 */
#include "cache.h"

#include <stdlib.h>

#define PLACES 4
#define OPERATIONS_APART 64

static uint64_t self(void)
{
	static _Thread_local uint64_t number;
	static _Atomic uint64_t last;

	if (!number)
		number = atomic_fetch_add(&last, 1) + 1;
	return number;
}

/* The i-th place where the lane of a stream can be. */
static size_t place(uint64_t stream, size_t i)
{
	/* Fibonacci hashing: the upper bits depend on all of the stream's. */
	uint64_t hash = stream * UINT64_C(0x9e3779b97f4a7c15);

	return ((hash >> 32) + i) % FMLIB_LANES;
}

static struct fmlib_lane *lane_at(const struct flexmem_cache *cache, size_t i)
{
	return atomic_load_explicit(&cache->lanes[i], memory_order_acquire);
}

struct fmlib_lane *fmlib_lane_find(const struct flexmem_cache *cache,
				   uint64_t stream)
{
	struct fmlib_lane *lane;
	size_t i;

	for (i = 0; i < PLACES; i++) {
		lane = lane_at(cache, place(stream, i));
		if (!lane || lane->stream == stream)
			return lane;
	}
	return lane_at(cache, place(stream, 0));
}

/* With the cache's lock, and no lane's. */
static struct fmlib_lane *get_lane(struct flexmem_cache *cache, uint64_t stream)
{
	struct fmlib_lane *lane = fmlib_lane_find(cache, stream);
	size_t i = 0;

	if (lane)
		return lane;
	lane = aligned_alloc(FMLIB_LINE, sizeof(*lane));
	if (!lane)
		return NULL;
	*lane = (struct fmlib_lane){
		.stream = stream,
		.random = UINT32_C(0x9e3779b9),
	};
	pthread_mutex_init(&lane->lock, NULL);
	while (lane_at(cache, place(stream, i)))
		i++;
	atomic_store_explicit(&cache->lanes[place(stream, i)], lane,
			      memory_order_release);
	return lane;
}

static void lock_lanes(struct flexmem_cache *cache)
{
	struct fmlib_lane *lane;
	size_t i;

	for (i = 0; i < FMLIB_LANES; i++) {
		lane = lane_at(cache, i);
		if (lane)
			pthread_mutex_lock(&lane->lock);
	}
	/* Now none of them adds up by itself. */
	for (i = 0; cache->apart && i < FMLIB_LANES; i++) {
		lane = lane_at(cache, i);
		if (lane)
			fmlib_account_add(&cache->account, &lane->account);
	}
	cache->apart = false;
}

void fmlib_lock(struct flexmem_cache *cache)
{
	pthread_mutex_lock(&cache->lock);
	lock_lanes(cache);
}

int fmlib_lock_stream(struct flexmem_cache *cache, uint64_t stream,
		      struct fmlib_lane **lane)
{
	pthread_mutex_lock(&cache->lock);
	*lane = get_lane(cache, stream);
	if (!*lane) {
		pthread_mutex_unlock(&cache->lock);
		return -ENOMEM;
	}
	pthread_mutex_lock(&(*lane)->lock);
	cache->alone = *lane;
	return 0;
}

void fmlib_lock_rest(struct flexmem_cache *cache)
{
	struct fmlib_lane *lane = cache->alone;

	if (!lane)
		return;
	/* What is not counted yet, while it is known where it belongs. */
	if (cache->apart)
		fmlib_figures_commit(cache, &lane->account);
	/* In their order, as everybody does. */
	pthread_mutex_unlock(&lane->lock);
	cache->alone = NULL;
	lock_lanes(cache);
}

static void unlock_lanes(struct flexmem_cache *cache)
{
	struct fmlib_lane *lane;
	size_t i;

	cache->apart = cache->shared;
	cache->open = !cache->config.direct && !cache->history.room &&
		      !fmlib_cache_logs(cache, FLEXMEM_LOG_DEBUG) &&
		      !cache->waiters && !cache->owed && !cache->waiting;
	/* From the first unlock on, the account may be somebody else's. */
	for (i = 0; i < FMLIB_LANES; i++) {
		lane = lane_at(cache, i);
		if (lane)
			lane->account.clock = cache->account.clock;
	}
	for (i = 0; i < FMLIB_LANES; i++) {
		lane = lane_at(cache, i);
		if (lane)
			pthread_mutex_unlock(&lane->lock);
	}
}

void fmlib_unlock(struct flexmem_cache *cache)
{
	struct fmlib_lane *alone = cache->alone;

	cache->alone = NULL;
	if (alone)
		pthread_mutex_unlock(&alone->lock);
	else
		unlock_lanes(cache);
	pthread_mutex_unlock(&cache->lock);
}

bool fmlib_lane_serves(const struct flexmem_cache *cache)
{
	return cache->open && (cache->shared || cache->sole == self());
}

void fmlib_lane_admit(struct flexmem_cache *cache)
{
	if (!cache->sole)
		cache->sole = self();
	else if (cache->sole != self())
		cache->shared = true;
}

void fmlib_lane_done(struct flexmem_cache *cache, struct fmlib_lane *lane)
{
	struct fmlib_account *account = &lane->account;

	if (!cache->apart || ++account->operations < OPERATIONS_APART)
		return;
	pthread_mutex_lock(&cache->account_lock);
	fmlib_account_add(&cache->account, account);
	pthread_mutex_unlock(&cache->account_lock);
}

void fmlib_lanes_free(struct flexmem_cache *cache)
{
	struct fmlib_block *block;
	struct fmlib_lane *lane;
	size_t i;

	for (i = 0; i < FMLIB_LANES; i++) {
		lane = lane_at(cache, i);
		if (!lane)
			continue;
		while ((block = lane->spare)) {
			lane->spare = block->spare;
			free(block);
		}
		pthread_mutex_destroy(&lane->lock);
		free(lane);
	}
}
