// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The ladder: the attempts to get memory if the cache has no free block for a
 * request. The description of flexmem_cache_alloc() lists the attempts in
 * order.
 */
#include "cache.h"

#include <stdlib.h>

/*
 * The number of callbacks that this thread is in. A request made in a callback
 * runs no callback.
 */
static _Thread_local unsigned int callback_depth;

static int run_callbacks(struct flexmem_cache *cache, uint64_t bytes)
{
	struct fmlib_callback *callback;
	int state;
	int err = 0;

	callback_depth++;
	/*
	 * A callback stays in the list while it runs, so the loop can go on
	 * behind it.
	 */
	for (callback = cache->callbacks; callback && !err;
	     callback = callback->next) {
		if (callback->removed)
			continue;
		callback->running++;
		state = fmlib_pause(cache);
		callback->call(callback->user, bytes);
		err = fmlib_go_on(cache, state);
		callback->running--;
		if (callback->removed && !callback->running)
			pthread_cond_broadcast(&cache->callback_done);
	}
	callback_depth--;
	return err;
}

/*
 * A number that grows whenever a block is freed or memory is returned to the
 * provider.
 */
static uint64_t freed(const struct flexmem_cache *cache)
{
	return fmlib_figures_freed(cache) + cache->figures.num_device_free +
	       cache->figures.num_device_shrink;
}

/* The stream waits on the device for the work of other streams. */
static int wait_on_device(struct flexmem_cache *cache, struct fmlib_want *want)
{
	int err = fmlib_share_wait(cache, want, true);

	return err == -ENOENT ? -ENOMEM : err;
}

static int ask_framework(struct flexmem_cache *cache, struct fmlib_want *want)
{
	uint64_t before;
	int err;

	if (!cache->callbacks || callback_depth)
		return -ENOMEM;
	before = freed(cache);
	/*
	 * Calls that the callback makes must not be counted as part of this
	 * call.
	 */
	fmlib_figures_commit(cache, &cache->account);
	err = run_callbacks(cache, want->size);
	if (err)
		return err;
	if (freed(cache) == before)
		return -ENOMEM;
	return fmlib_segment_obtain(cache, want);
}

static int release_large(struct flexmem_cache *cache, struct fmlib_want *want)
{
	uint64_t before = cache->figures.num_collections;
	uint64_t released;

	fmlib_uses_poll(cache);
	fmlib_collect(cache);
	released = fmlib_reclaim_large(cache, fmlib_size_segment(cache, want));
	if (!released && cache->figures.num_collections == before)
		return -ENOMEM;
	return fmlib_segment_obtain(cache, want);
}

/*
 * Returns all free segments to the provider, also those of the request's own
 * private pool.
 */
static uint64_t reclaim_all(struct flexmem_cache *cache,
			    const struct fmlib_want *want)
{
	/* fmlib_reclaim() logs errors, so @err is ignored. */
	int err;

	return fmlib_reclaim(cache, UINT64_MAX, &err) +
	       fmlib_pool_reclaim(cache, want->pool);
}

static int release_all(struct flexmem_cache *cache, struct fmlib_want *want)
{
	if (!reclaim_all(cache, want))
		return -ENOMEM;
	return fmlib_segment_obtain(cache, want);
}

static int last_attempt(struct flexmem_cache *cache, struct fmlib_want *want)
{
	int err;

	/*
	 * If the device cannot be synchronized, blocks with pending events stay
	 * occupied. The other free memory may be enough.
	 */
	if (fmlib_uses_synchronize_device(cache) == -ECHILD)
		return -ECHILD;
	err = fmlib_obtain(cache, want);
	if (err == -ENOENT)
		err = fmlib_borrow(cache, want);
	if (err != -ENOMEM || want->no_host_memory)
		return err;
	reclaim_all(cache, want);
	err = fmlib_segment_obtain(cache, want);
	if (err != -ENOMEM || want->no_host_memory ||
	    !cache->config.release_lock)
		return err;
	/* Other threads may have freed memory while the lock was dropped. */
	fmlib_uses_poll(cache);
	return fmlib_obtain(cache, want) ? -ENOMEM : 0;
}

/*
 * Takes free memory of private pools with FLEXMEM_CACHE_POOL_USE_ON_OOM. The
 * request still belongs to the common pool. Only the block is in the private
 * pool.
 */
static int use_pools(struct flexmem_cache *cache, struct fmlib_want *want)
{
	struct fmlib_pool *common = want->pool;
	struct fmlib_pool *pool;
	int err = -ENOENT;
	size_t i;

	for (i = 0; i < FMLIB_CHAINS && !common->id; i++) {
		pool = cache->pools[i];
		for (; pool && err == -ENOENT; pool = pool->next) {
			want->pool = pool;
			if (pool->flags & FLEXMEM_CACHE_POOL_USE_ON_OOM &&
			    !pool->released)
				err = fmlib_obtain(cache, want);
		}
	}
	want->pool = common;
	return err == -ENOENT ? -ENOMEM : err;
}

/*
 * Whether a growing segment has, or could grow to have, a hole that is large
 * enough, whatever work may still use it.
 */
static bool holds(const struct fmlib_segment *segment,
		  const struct fmlib_want *want)
{
	uint64_t more = segment->tracks ? want->failure->device_free : 0;

	return segment->arena->pool == want->pool && !segment->lost &&
	       (fmlib_range_largest(&segment->range) >= want->size ||
		fmlib_segment_tail(segment) + more >= want->size);
}

/*
 * Whether the end of the capture could give the request memory: that of blocks
 * that wait, or a hole that another stream has left.
 */
static bool capture_keeps(const struct flexmem_cache *cache,
			  const struct fmlib_want *want)
{
	const struct fmlib_segment *segment = cache->first_growing;

	if (!cache->captures)
		return false;
	while (segment && !holds(segment, want))
		segment = segment->next_grown;
	return cache->waiting || segment;
}

/*
 * The bytes that the cache's provider could still give, without the cache's own
 * fraction; UINT64_MAX: not known.
 */
static uint64_t left_on_device(const struct flexmem_cache *cache)
{
	uint64_t free_bytes;
	uint64_t total;

	return fmlib_memory_info(cache, &free_bytes, &total) ? UINT64_MAX :
							       free_bytes;
}

/*
 * What could help. @left is of the cache's provider, so it says nothing about a
 * pool with a provider of its own.
 */
static uint32_t hints_for(const struct flexmem_cache *cache,
			  const struct fmlib_want *want, uint64_t left)
{
	const struct flexmem_cache_failure *failure = want->failure;
	uint32_t hints = 0;

	if (failure->allowed_bytes && !failure->error &&
	    (want->pool->provider != &cache->provider ||
	     left >= fmlib_segment_least(cache, want)))
		hints |= FLEXMEM_CACHE_HINT_FRACTION;
	if (capture_keeps(cache, want))
		hints |= FLEXMEM_CACHE_HINT_CAPTURE;
	if (cache->elsewhere)
		hints |= FLEXMEM_CACHE_HINT_ELSEWHERE;
	return hints;
}

static void describe(struct flexmem_cache *cache, struct fmlib_want *want)
{
	const struct flexmem_cache_statistics *f = &cache->figures;
	struct flexmem_cache_failure *failure = want->failure;
	uint64_t left = left_on_device(cache);

	failure->asked = want->size;
	failure->context = want->origin->context;
	failure->print = cache->contexts.print;
	failure->print_user = cache->contexts.user;
	failure->expandable = cache->expandable;
	failure->allocated_bytes = fmlib_figures_allocated(cache);
	failure->reserved_bytes = f->reserved_bytes[FLEXMEM_CACHE_ALL].current;
	fmlib_failure_largest(cache, want);
	if (fmlib_cache_memory(cache, &failure->device_free,
			       &failure->device_total)) {
		failure->device_free = 0;
		failure->device_total = 0;
	}
	failure->hints = hints_for(cache, want, left);
	failure->kept_pool = fmlib_pools_keeper(cache, want, left);
}

int fmlib_ladder(struct flexmem_cache *cache, struct fmlib_want *want)
{
	static int (*const rungs[])(struct flexmem_cache *cache,
				    struct fmlib_want *want) = {
		wait_on_device, fmlib_borrow, ask_framework, release_large,
		release_all, last_attempt, use_pools, fmlib_segment_exact,
		fmlib_others_wait,
	};
	size_t i;
	int err;

	cache->figures.num_misses++;
	*want->failure = (struct flexmem_cache_failure){ 0 };
	fmlib_collect(cache);
	err = fmlib_segment_obtain(cache, want);
	if (err != -ENOMEM || want->no_host_memory)
		return err;
	fmlib_lock_rest(cache);
	cache->figures.num_first_failures++;
	for (i = 0; i < sizeof(rungs) / sizeof(rungs[0]); i++) {
		err = rungs[i](cache, want);
		if (!err)
			cache->figures.num_alloc_retries++;
		if (err != -ENOMEM || want->no_host_memory)
			return err;
	}
	cache->figures.num_ooms++;
	describe(cache, want);
	fmlib_history_oom(cache, want);
	return -ENOMEM;
}

static struct fmlib_callback **find_callback(struct flexmem_cache *cache,
					     flexmem_cache_oom_fn call,
					     void *user)
{
	struct fmlib_callback **link = &cache->callbacks;

	while (*link && ((*link)->removed || (*link)->call != call ||
			 (*link)->user != user))
		link = &(*link)->next;
	return link;
}

int flexmem_cache_add_oom_callback(struct flexmem_cache *cache,
				   flexmem_cache_oom_fn callback, void *user)
{
	int err = fmlib_cache_check(cache);
	struct fmlib_callback **link;
	struct fmlib_callback *added;

	if (err)
		return err;
	if (!callback)
		return -EINVAL;
	added = calloc(1, sizeof(*added));
	if (!added)
		return -ENOMEM;
	added->call = callback;
	added->user = user;
	pthread_mutex_lock(&cache->lock);
	link = find_callback(cache, callback, user);
	if (*link) {
		free(added);
		err = -EEXIST;
	} else {
		*link = added;
	}
	pthread_mutex_unlock(&cache->lock);
	return err;
}

int flexmem_cache_remove_oom_callback(struct flexmem_cache *cache,
				      flexmem_cache_oom_fn callback,
				      void *user)
{
	int err = fmlib_cache_check(cache);
	struct fmlib_callback *removed;
	struct fmlib_callback **link;
	int state;

	if (err)
		return err;
	if (callback_depth)
		return -EDEADLK;
	/* A thread cancelled in the wait below would keep the lock. */
	state = fmlib_cancel_off();
	pthread_mutex_lock(&cache->lock);
	removed = *find_callback(cache, callback, user);
	if (!removed) {
		err = -ENOENT;
	} else {
		removed->removed = true;
		while (removed->running)
			pthread_cond_wait(&cache->callback_done, &cache->lock);
		/* Searches again: the list may have changed during the wait. */
		link = &cache->callbacks;
		while (*link != removed)
			link = &(*link)->next;
		*link = removed->next;
		free(removed);
	}
	pthread_mutex_unlock(&cache->lock);
	fmlib_cancel_as(state);
	return err;
}
