// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Returns memory to the provider: a part of the free memory, or all memory that
 * was lost in a reset of the device.
 */
#include "cache.h"

typedef bool (*order_fn)(const struct flexmem_cache *cache,
			 const struct fmlib_segment *a,
			 const struct fmlib_segment *b);

static bool older(const struct flexmem_cache *cache,
		  const struct fmlib_segment *a, const struct fmlib_segment *b)
{
	uint64_t stamp_a = fmlib_segment_stamp(a);
	uint64_t stamp_b = fmlib_segment_stamp(b);

	(void)cache;
	if (stamp_a != stamp_b)
		return stamp_a < stamp_b;
	return a->serial < b->serial;
}

static bool larger(const struct flexmem_cache *cache,
		   const struct fmlib_segment *a, const struct fmlib_segment *b)
{
	uint64_t size_a = fmlib_segment_excess(cache, a);
	uint64_t size_b = fmlib_segment_excess(cache, b);

	return size_a != size_b ? size_a > size_b : a->serial < b->serial;
}

static struct fmlib_segment *merge(const struct flexmem_cache *cache,
				   struct fmlib_segment *a,
				   struct fmlib_segment *b, order_fn order)
{
	struct fmlib_segment *first = NULL;
	struct fmlib_segment **link = &first;
	struct fmlib_segment **from;

	while (a && b) {
		from = order(cache, a, b) ? &a : &b;
		*link = *from;
		link = &(*link)->next_victim;
		*from = *link;
	}
	*link = a ? a : b;
	return first;
}

/* A merge sort, because it allocates nothing. Memory is short here. */
static struct fmlib_segment *sort(const struct flexmem_cache *cache,
				  struct fmlib_segment *list, size_t count,
				  order_fn order)
{
	struct fmlib_segment *middle = list;
	struct fmlib_segment *rest;
	size_t i;

	if (count < 2)
		return list;
	for (i = 1; i < count / 2; i++)
		middle = middle->next_victim;
	rest = middle->next_victim;
	middle->next_victim = NULL;
	return merge(cache, sort(cache, list, count / 2, order),
		     sort(cache, rest, count - count / 2, order), order);
}

/*
 * Returns a list of the segments that could return bytes, in the given order.
 */
static struct fmlib_segment *victims(struct flexmem_cache *cache,
				     order_fn order)
{
	size_t count;
	struct fmlib_segment *list = fmlib_spares(cache, &count);

	return sort(cache, list, count, order);
}

/*
 * The same of the provider of the cache only, not of pools with a provider of
 * their own: it is this provider's memory that others lack.
 */
static struct fmlib_segment *own_victims(struct flexmem_cache *cache,
					 order_fn order)
{
	struct fmlib_segment *list = victims(cache, order);
	struct fmlib_segment **link = &list;

	while (*link) {
		if (fmlib_is_same_provider(fmlib_provider_of(*link),
					   &cache->provider))
			link = &(*link)->next_victim;
		else
			*link = (*link)->next_victim;
	}
	return list;
}

static uint64_t give_back(struct flexmem_cache *cache,
			  struct fmlib_segment *segment, uint64_t bytes,
			  int *error)
{
	struct fmlib_segment *next;
	uint64_t released = 0;
	int err;

	*error = 0;
	for (; segment && released < bytes; segment = next) {
		next = segment->next_victim;
		err = fmlib_segment_give_back(cache, segment, &released);
		if (err && !*error)
			*error = err;
	}
	return released;
}

uint64_t fmlib_reclaim(struct flexmem_cache *cache, uint64_t bytes, int *error)
{
	return give_back(cache, bytes ? victims(cache, older) : NULL, bytes,
			 error);
}

uint64_t fmlib_reclaim_own(struct flexmem_cache *cache, uint64_t bytes,
			   int *error)
{
	return give_back(cache, bytes ? own_victims(cache, older) : NULL, bytes,
			 error);
}

/*
 * Returns the smallest free segment of at least @size bytes to the provider. If
 * the provider refuses a segment, for example because it is mapped, tries the
 * next larger one.
 */
static uint64_t reclaim_piece(struct flexmem_cache *cache, uint64_t size)
{
	struct fmlib_excess place = { .size = size, .serial = UINT64_MAX };
	uint64_t released = 0;

	while (!released && fmlib_spare_next(cache, true, &place))
		/* If the provider refuses, goes on with the next segment. */
		fmlib_segment_give_back(cache, place.segment, &released);
	return released;
}

/*
 * Returns the smallest free segment of at least @size bytes to the provider. If
 * there is none, returns several of the largest segments, if these have @size
 * bytes in total.
 */
uint64_t fmlib_reclaim_large(struct flexmem_cache *cache, uint64_t size)
{
	const struct fmlib_excess begin = {
		.size = size,
		.serial = UINT64_MAX,
	};
	uint64_t released = reclaim_piece(cache, size);
	struct fmlib_excess place = begin;
	uint64_t sum = 0;

	if (released)
		return released;
	while (sum < size && fmlib_spare_next(cache, false, &place))
		sum += place.size;
	if (sum < size)
		return 0;
	place = begin;
	while (released < size && fmlib_spare_next(cache, false, &place))
		/* If the provider refuses, goes on with the next segment. */
		fmlib_segment_give_back(cache, place.segment, &released);
	return released;
}

/* Where the bytes begin that a segment could return. */
static uint64_t spare_begins(const struct flexmem_cache *cache,
			     const struct fmlib_segment *segment)
{
	return segment->address.offset + segment->size -
	       fmlib_segment_excess(cache, segment);
}

static bool higher(const struct flexmem_cache *cache,
		   const struct fmlib_segment *a, const struct fmlib_segment *b)
{
	(void)cache;
	if (a->address.region_id != b->address.region_id)
		return a->address.region_id > b->address.region_id;
	return a->address.offset > b->address.offset;
}

/* Whether what a segment could return ends where that of @above begins. */
static bool touches(const struct flexmem_cache *cache,
		    const struct fmlib_segment *segment,
		    const struct fmlib_segment *above)
{
	return segment->address.region_id == above->address.region_id &&
	       segment->address.offset + segment->size ==
	       spare_begins(cache, above);
}

/*
 * Finds segments that could return at least @size bytes without a gap, and as
 * few more as possible. Returns the highest of them, with the others as its next
 * victims up to @last; or NULL.
 */
static struct fmlib_segment *find_run(struct flexmem_cache *cache,
				      uint64_t size,
				      struct fmlib_segment **last)
{
	struct fmlib_segment *segment = own_victims(cache, higher);
	struct fmlib_segment *above = NULL;
	struct fmlib_segment *found = NULL;
	struct fmlib_segment *top = NULL;
	uint64_t least = UINT64_MAX;
	uint64_t sum = 0;

	for (; segment; above = segment, segment = segment->next_victim) {
		if (!above || !touches(cache, segment, above)) {
			top = segment;
			sum = 0;
		}
		sum += fmlib_segment_excess(cache, segment);
		for (; sum - fmlib_segment_excess(cache, top) >= size;
		     top = top->next_victim)
			sum -= fmlib_segment_excess(cache, top);
		if (sum >= size && sum < least) {
			least = sum;
			found = top;
			*last = segment;
		}
	}
	return found;
}

/* Returns the largest segments, until @bytes have been returned. */
static uint64_t reclaim_largest(struct flexmem_cache *cache, uint64_t bytes,
				int *error)
{
	struct fmlib_segment *segment = own_victims(cache, larger);
	struct fmlib_segment *next;
	uint64_t released = 0;
	int err;

	for (; segment && released < bytes; segment = next) {
		next = segment->next_victim;
		/* A smaller one is enough. */
		if (next && fmlib_segment_excess(cache, next) >=
			    bytes - released)
			continue;
		err = fmlib_segment_give_some(cache, segment, bytes - released,
					      &released);
		if (err && !*error)
			*error = err;
	}
	return released;
}

/*
 * The other process needs one piece of that size. So the cache returns adjacent
 * segments if it has them, from the highest address down: a growing segment can
 * return a part of its end, which then touches the others.
 */
uint64_t fmlib_reclaim_wanted(struct flexmem_cache *cache, uint64_t bytes,
			      int *error)
{
	struct fmlib_segment *last = NULL;
	struct fmlib_segment *segment = find_run(cache, bytes, &last);
	struct fmlib_segment *next;
	uint64_t released = 0;
	int err;

	*error = 0;
	if (!segment)
		return reclaim_largest(cache, bytes, error);
	do {
		next = segment == last ? NULL : segment->next_victim;
		err = fmlib_segment_give_some(cache, segment, bytes - released,
					      &released);
		if (err && !*error)
			*error = err;
		segment = next;
	} while (segment && released < bytes);
	return released;
}

void fmlib_collect(struct flexmem_cache *cache)
{
	uint64_t reserved;
	uint64_t limit;
	int err;

	if (cache->config.threshold <= 0.0)
		return;
	limit = fmlib_share_of_device(cache, cache->config.threshold *
					     cache->config.fraction);
	reserved = cache->figures.reserved_bytes[FLEXMEM_CACHE_ALL].current;
	if (!limit || reserved <= limit)
		return;
	if (fmlib_reclaim(cache, reserved - limit, &err))
		cache->figures.num_collections++;
}

int flexmem_cache_trim(struct flexmem_cache *cache, uint64_t bytes,
			  uint64_t *released)
{
	int err = fmlib_cache_check(cache);
	uint64_t sum;

	if (err)
		return err;
	fmlib_lock(cache);
	sum = cache->returned;
	fmlib_uses_poll(cache);
	/*
	 * When blocks stop waiting for events, their segment may be returned at
	 * once. This memory counts as well.
	 */
	sum = cache->returned - sum;
	sum += fmlib_reclaim(cache, sum < bytes ? bytes - sum : 0, &err);
	fmlib_figures_commit(cache, &cache->account);
	fmlib_unlock(cache);
	if (released)
		*released = sum;
	return err;
}

int flexmem_cache_empty(struct flexmem_cache *cache, uint64_t *released)
{
	int err = fmlib_cache_check(cache);
	uint64_t sum;
	int wait_err;

	if (err)
		return err;
	fmlib_lock(cache);
	sum = cache->returned;
	wait_err = fmlib_uses_synchronize(cache);
	if (wait_err != -ECHILD)
		fmlib_reclaim(cache, UINT64_MAX, &err);
	sum = cache->returned - sum;
	fmlib_figures_commit(cache, &cache->account);
	fmlib_unlock(cache);
	if (released)
		*released = sum;
	return wait_err ? wait_err : err;
}

int fmlib_cache_memory(const struct flexmem_cache *cache, uint64_t *free,
		       uint64_t *total)
{
	uint64_t reserved =
		cache->figures.reserved_bytes[FLEXMEM_CACHE_ALL].current;
	uint64_t left;
	int err = fmlib_memory_info(cache, free, total);

	if (err || cache->config.fraction >= 1.0)
		return err;
	*total = (uint64_t)(cache->config.fraction * (double)*total);
	left = *total > reserved ? *total - reserved : 0;
	if (*free > left)
		*free = left;
	return 0;
}

int flexmem_cache_memory_info(struct flexmem_cache *cache, uint64_t *free,
			      uint64_t *total)
{
	int err = fmlib_cache_check(cache);
	int state;

	if (err)
		return err;
	if (!free || !total)
		return -EINVAL;
	state = fmlib_cancel_off();
	pthread_mutex_lock(&cache->lock);
	err = fmlib_cache_memory(cache, free, total);
	pthread_mutex_unlock(&cache->lock);
	fmlib_cancel_as(state);
	return err;
}

static int available_now(struct flexmem_cache *cache,
			 struct flexmem_available *now)
{
	const struct flexmem_cache_provider *provider = &cache->provider;
	int err;

	if (!provider->largest)
		return -EOPNOTSUPP;
	err = fmlib_cache_memory(cache, &now->free, &now->total);
	if (!err)
		err = fmlib_callback_result(provider->largest(provider->user,
							      &now->largest));
	/* The fraction may leave less, and others may have freed memory. */
	if (!err && now->largest > now->free)
		now->largest = now->free;
	return err;
}

int flexmem_cache_available(struct flexmem_cache *cache,
			    struct flexmem_available *available, size_t size)
{
	int err = fmlib_cache_check(cache);
	struct flexmem_available now;
	int state;

	if (err)
		return err;
	if (!available || size < FMLIB_AVAILABLE_MIN)
		return -EINVAL;
	state = fmlib_cancel_off();
	pthread_mutex_lock(&cache->lock);
	err = available_now(cache, &now);
	pthread_mutex_unlock(&cache->lock);
	fmlib_cancel_as(state);
	return err ? err : fmlib_copy_out(available, size, FMLIB_AVAILABLE_MIN,
					  &now, sizeof(now));
}

/* The bytes of live blocks, and of blocks that wait for events. */
static uint64_t bytes_in_use(const struct fmlib_segment *segment)
{
	const struct fmlib_piece *piece;
	uint64_t bytes = 0;

	if (segment->growing)
		return (uint64_t)segment->range.used << segment->range.shift;
	for (piece = segment->first; piece; piece = piece->next)
		bytes += piece->is_free ? 0 : piece->size;
	return bytes;
}

/*
 * Drops all lost segments. Returns the number of bytes in them that are still
 * in use.
 */
static uint64_t drop_all(struct flexmem_cache *cache, int *error)
{
	struct fmlib_segment *segment;
	struct fmlib_segment *next;
	uint64_t released = 0;
	uint64_t live = 0;
	int err;

	for (segment = cache->first_segment; segment; segment = next) {
		next = segment->next;
		if (!fmlib_segment_is_lost(cache, segment))
			continue;
		live += bytes_in_use(segment);
		if (!fmlib_segment_excess(cache, segment))
			continue;
		err = fmlib_segment_give_back(cache, segment, &released);
		if (err && !*error)
			*error = err;
	}
	return live;
}

int flexmem_cache_drop_lost(struct flexmem_cache *cache, uint64_t *live)
{
	int err = fmlib_cache_check(cache);
	uint64_t bytes;

	if (err)
		return err;
	if (!cache->provider.lost)
		return -EOPNOTSUPP;
	fmlib_lock(cache);
	fmlib_uses_poll(cache);
	bytes = drop_all(cache, &err);
	fmlib_figures_commit(cache, &cache->account);
	fmlib_unlock(cache);
	if (!err && live)
		*live = bytes;
	return err;
}
