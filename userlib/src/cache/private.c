// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Private pools: their holds, which streams they serve, and their sums. */
#include "cache.h"

#include <stdlib.h>

#define USAGE_MIN FMLIB_SIZE_TO(struct flexmem_cache_usage, requested_bytes)

#define POOL_FLAGS (FLEXMEM_CACHE_POOL_USE_ON_OOM | FLEXMEM_CACHE_POOL_NO_SPLIT)

static int read_provider(const struct flexmem_cache *cache,
			 const struct flexmem_cache_provider *provider,
			 size_t size, struct flexmem_cache_provider *own)
{
	int err = fmlib_copy_in(own, sizeof(*own), provider, size,
				FMLIB_PROVIDER_MIN);

	if (err)
		return err;
	if (!own->alloc || !own->free)
		return -EINVAL;
	if (!cache->pointers)
		return 0;
	/* A mapped segment cannot be resized. */
	own->grow = NULL;
	own->shrink = NULL;
	return own->map && own->unmap ? 0 : -EOPNOTSUPP;
}

int flexmem_cache_pool_create_on(struct flexmem_cache *cache,
				 const struct flexmem_cache_provider *provider,
				 size_t provider_size, uint64_t *pool)
{
	int err = fmlib_cache_check(cache);
	struct fmlib_pool **first;
	struct fmlib_pool *made;

	if (err)
		return err;
	if (!pool)
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->provider = &cache->provider;
	if (provider) {
		made->provider = &made->own;
		err = read_provider(cache, provider, provider_size, &made->own);
		if (err) {
			free(made);
			return err;
		}
	}
	/*
	 * The pool begins with one pin and one hold. Both belong to the caller.
	 */
	made->pins = 1;
	made->uses = 1;
	fmlib_lock(cache);
	made->id = ++cache->last_pool;
	first = &cache->pools[made->id % FMLIB_CHAINS];
	made->next = *first;
	*first = made;
	*pool = made->id;
	fmlib_unlock(cache);
	return 0;
}

int flexmem_cache_pool_create(struct flexmem_cache *cache, uint64_t *pool)
{
	return flexmem_cache_pool_create_on(cache, NULL, 0, pool);
}

/*
 * Locks the whole cache and finds a private pool. -ENOENT: there is no such
 * pool, or it was released.
 */
static int lock_pool(struct flexmem_cache *cache, uint64_t id,
		     struct fmlib_pool **pool)
{
	int err = fmlib_cache_check(cache);

	if (err)
		return err;
	fmlib_lock(cache);
	*pool = id ? fmlib_pool_find(cache, id) : NULL;
	if (*pool)
		return 0;
	fmlib_unlock(cache);
	return -ENOENT;
}

int flexmem_cache_pool_hold(struct flexmem_cache *cache, uint64_t pool)
{
	struct fmlib_pool *found;
	int err = lock_pool(cache, pool, &found);

	if (err)
		return err;
	found->uses++;
	fmlib_unlock(cache);
	return 0;
}

static bool has_segments(const struct flexmem_cache *cache,
			 const struct fmlib_pool *pool)
{
	const struct fmlib_segment *segment = cache->first_segment;

	while (segment && segment->arena->pool != pool)
		segment = segment->next;
	return segment;
}

int flexmem_cache_pool_set_flags(struct flexmem_cache *cache, uint64_t pool,
				 uint32_t flags)
{
	struct fmlib_pool *found;
	int err;

	if (cache && flags & ~POOL_FLAGS)
		return -EOPNOTSUPP;
	err = lock_pool(cache, pool, &found);
	if (err)
		return err;
	if ((flags ^ found->flags) & FLEXMEM_CACHE_POOL_NO_SPLIT &&
	    (found->askers || has_segments(cache, found)))
		err = -EBUSY;
	else
		found->flags = flags;
	fmlib_unlock(cache);
	return err;
}

/*
 * Returns all free segments and free ends of a pool to the provider. Returns
 * the first error.
 */
static int give_back_all(struct flexmem_cache *cache,
			 const struct fmlib_pool *pool, bool leave)
{
	struct fmlib_segment *segment;
	struct fmlib_segment *next;
	uint64_t released = 0;
	int result = 0;
	int err = 0;

	for (segment = cache->first_segment; segment; segment = next) {
		next = segment->next;
		if (segment->arena->pool != pool)
			continue;
		if (leave)
			fmlib_segment_leave(segment);
		if (fmlib_segment_spare(cache, segment))
			err = fmlib_segment_give_back(cache, segment,
						      &released);
		if (err && !result)
			result = err;
	}
	return result;
}

uint64_t fmlib_pool_reclaim(struct flexmem_cache *cache,
			    const struct fmlib_pool *pool)
{
	uint64_t before = cache->returned;

	if (pool->id && !pool->stays)
		give_back_all(cache, pool, false);
	return cache->returned - before;
}

/*
 * Whether the free memory of @pool would be enough for the request, which needs
 * @least bytes. The device has @left.
 */
static bool could_help(const struct flexmem_cache *cache,
		       const struct fmlib_pool *pool,
		       const struct fmlib_want *want, uint64_t least,
		       uint64_t left)
{
	const struct flexmem_cache_failure *failure = want->failure;

	/* A setting has refused the request. */
	if (failure->allowed_bytes && !failure->error)
		return failure->reserved_bytes - pool->kept +
		       least <= failure->allowed_bytes;
	if (!fmlib_is_same_provider(pool->provider, want->pool->provider))
		return false;
	return !fmlib_is_same_provider(pool->provider, &cache->provider) ||
	       left >= least || pool->kept >= least - left;
}

static bool keeps_more(const struct fmlib_pool *a, const struct fmlib_pool *b)
{
	return a->kept != b->kept ? a->kept > b->kept : a->id < b->id;
}

uint64_t fmlib_pools_keeper(const struct flexmem_cache *cache,
			    const struct fmlib_want *want, uint64_t left)
{
	uint64_t least = fmlib_segment_least(cache, want);
	const struct fmlib_pool *keeper = NULL;
	const struct fmlib_segment *segment;
	struct fmlib_pool *pool;

	for (segment = cache->first_segment; segment; segment = segment->next)
		segment->arena->pool->kept = 0;
	for (segment = cache->first_segment; segment; segment = segment->next) {
		pool = segment->arena->pool;
		if (pool->id && !pool->released)
			pool->kept += fmlib_segment_spare(cache, segment);
	}
	for (segment = cache->first_segment; segment; segment = segment->next) {
		pool = segment->arena->pool;
		if (pool->kept && could_help(cache, pool, want, least, left) &&
		    (!keeper || keeps_more(pool, keeper)))
			keeper = pool;
	}
	return keeper ? keeper->id : 0;
}

int flexmem_cache_pool_release(struct flexmem_cache *cache, uint64_t pool)
{
	struct fmlib_pool *found;
	int err = lock_pool(cache, pool, &found);

	if (err)
		return err;
	if (!--found->uses) {
		fmlib_uses_poll(cache);
		found->released = true;
		/*
		 * Returns the pool's free memory, because no request can use it
		 * again.
		 */
		give_back_all(cache, found, true);
		fmlib_pool_put(cache, found);
		fmlib_figures_commit(cache, &cache->account);
	}
	fmlib_unlock(cache);
	return 0;
}

int flexmem_cache_pool_empty(struct flexmem_cache *cache, uint64_t pool,
			     uint64_t *released)
{
	struct fmlib_pool *found;
	int err = lock_pool(cache, pool, &found);
	uint64_t before;
	int wait_err;

	if (err)
		return err;
	before = cache->returned;
	/*
	 * The pin keeps the pool, which may be released during the wait without
	 * the lock.
	 */
	found->pins++;
	wait_err = fmlib_uses_synchronize(cache);
	if (wait_err != -ECHILD) {
		err = give_back_all(cache, found, false);
		fmlib_pool_put(cache, found);
	}
	before = cache->returned - before;
	fmlib_figures_commit(cache, &cache->account);
	fmlib_unlock(cache);
	if (released)
		*released = before;
	return wait_err ? wait_err : err;
}

/* Where the list has the selection of a pool, or the end of the list. */
static struct fmlib_selection **find_selection(struct flexmem_cache *cache,
					       uint64_t pool)
{
	struct fmlib_selection **link = &cache->selections;

	while (*link && (*link)->pool->id != pool)
		link = &(*link)->next;
	return link;
}

int flexmem_cache_pool_begin(struct flexmem_cache *cache, uint64_t pool,
			     flexmem_cache_filter_fn filter, void *user)
{
	struct fmlib_selection *made;
	struct fmlib_pool *found;
	int err;

	if (cache && !filter)
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	err = lock_pool(cache, pool, &found);
	if (err) {
		free(made);
		return err;
	}
	if (*find_selection(cache, pool)) {
		free(made);
		err = -EEXIST;
	} else {
		*made = (struct fmlib_selection){
			.pool = found, .filter = filter, .user = user,
		};
		found->pins++;
		made->next = cache->selections;
		cache->selections = made;
	}
	fmlib_unlock(cache);
	return err;
}

int flexmem_cache_pool_capture(struct flexmem_cache *cache, uint64_t pool)
{
	int err = fmlib_cache_check(cache);
	struct fmlib_selection *found;

	if (err)
		return err;
	fmlib_lock(cache);
	found = *find_selection(cache, pool);
	if (found && !found->captures) {
		found->captures = true;
		found->pool->stays = true;
		cache->captures++;
	}
	fmlib_unlock(cache);
	return found ? 0 : -ENOENT;
}

int flexmem_cache_pool_end(struct flexmem_cache *cache, uint64_t pool)
{
	int err = fmlib_cache_check(cache);
	struct fmlib_selection **link;
	struct fmlib_selection *ended;

	if (err)
		return err;
	fmlib_lock(cache);
	link = find_selection(cache, pool);
	ended = *link;
	if (ended) {
		*link = ended->next;
		fmlib_pool_put(cache, ended->pool);
		/* Events cannot be recorded while work is captured. */
		if (ended->captures && !--cache->captures)
			fmlib_uses_resume(cache);
		fmlib_figures_commit(cache, &cache->account);
	}
	fmlib_unlock(cache);
	free(ended);
	return ended ? 0 : -ENOENT;
}

struct fmlib_pool *fmlib_selected_pool(struct flexmem_cache *cache,
				       uint64_t stream)
{
	const struct fmlib_selection *selection = cache->selections;

	while (selection && (selection->pool->released ||
			     !selection->filter(selection->user, stream)))
		selection = selection->next;
	return selection ? selection->pool : &cache->common;
}

static void count(const struct flexmem_cache *cache,
		  const struct fmlib_pool *pool, const uint64_t *stream,
		  struct flexmem_cache_usage *usage)
{
	const struct fmlib_segment *segment;
	const struct fmlib_block *block;
	uint32_t i;

	for (segment = cache->first_segment; segment; segment = segment->next) {
		if (segment->arena->pool != pool ||
		    (stream && (segment->shared ||
				segment->arena->stream != *stream)))
			continue;
		usage->segments++;
		usage->reserved_bytes += segment->size;
	}
	for (i = 0; i < fmlib_blocks_count(cache); i++) {
		block = fmlib_block_at(cache, i);
		if (!block || block->segment->arena->pool != pool ||
		    (stream && fmlib_stream_of(block) != *stream))
			continue;
		usage->active_bytes += block->size;
		if (!fmlib_block_is_live(block))
			continue;
		usage->allocations++;
		usage->allocated_bytes += block->size;
		usage->requested_bytes += block->requested;
	}
}

int flexmem_cache_pool_usage(struct flexmem_cache *cache, uint64_t pool,
			const uint64_t *stream,
			struct flexmem_cache_usage *usage, size_t size)
{
	struct flexmem_cache_usage result = { 0 };
	int err = fmlib_cache_check(cache);
	const struct fmlib_pool *found;

	if (err)
		return err;
	if (!usage || size < USAGE_MIN)
		return -EINVAL;
	fmlib_lock(cache);
	found = fmlib_pool_find(cache, pool);
	if (found) {
		result.uses = found->uses;
		count(cache, found, stream, &result);
	}
	fmlib_unlock(cache);
	return found ? fmlib_copy_out(usage, size, USAGE_MIN, &result,
				      sizeof(result)) : -ENOENT;
}
