// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Statistics. */
#include "cache.h"

#define MIN_SIZE FMLIB_SIZE_TO(struct flexmem_cache_statistics, thread_bound)

void fmlib_figure_add(struct flexmem_cache_figure *figure, uint64_t count)
{
	figure->current += count;
	figure->allocated += count;
	if (figure->current > figure->peak)
		figure->peak = figure->current;
}

void fmlib_figure_subtract(struct flexmem_cache_figure *figure, uint64_t count)
{
	figure->current -= count;
	figure->freed += count;
}

static void add(struct flexmem_cache_figure *figures,
		enum flexmem_cache_pool_kind kind, uint64_t count)
{
	fmlib_figure_add(&figures[FLEXMEM_CACHE_ALL], count);
	fmlib_figure_add(&figures[kind], count);
}

static void subtract(struct flexmem_cache_figure *figures,
		     enum flexmem_cache_pool_kind kind, uint64_t count)
{
	fmlib_figure_subtract(&figures[FLEXMEM_CACHE_ALL], count);
	fmlib_figure_subtract(&figures[kind], count);
}

void fmlib_figures_alloc(struct flexmem_cache *cache,
			 const struct fmlib_block *block)
{
	enum flexmem_cache_pool_kind kind = block->segment->arena->kind;
	struct flexmem_cache_statistics *f = &cache->figures;

	add(f->allocation, kind, 1);
	add(f->allocated_bytes, kind, block->size);
	add(f->requested_bytes, kind, block->requested);
	add(f->active, kind, 1);
	add(f->active_bytes, kind, block->size);
	if (block->size >= cache->config.max_split)
		fmlib_figure_add(&f->oversize_allocations, 1);
}

void fmlib_figures_free(struct flexmem_cache *cache,
			const struct fmlib_block *block)
{
	enum flexmem_cache_pool_kind kind = block->segment->arena->kind;
	struct flexmem_cache_statistics *f = &cache->figures;

	subtract(f->allocation, kind, 1);
	subtract(f->allocated_bytes, kind, block->size);
	subtract(f->requested_bytes, kind, block->requested);
	if (block->size >= cache->config.max_split)
		fmlib_figure_subtract(&f->oversize_allocations, 1);
}

void fmlib_figures_settle(struct flexmem_cache *cache,
			  const struct fmlib_block *block)
{
	enum flexmem_cache_pool_kind kind = block->segment->arena->kind;

	subtract(cache->figures.active, kind, 1);
	subtract(cache->figures.active_bytes, kind, block->size);
}

void fmlib_figures_segment(struct flexmem_cache *cache,
			   const struct fmlib_segment *segment, int change)
{
	enum flexmem_cache_pool_kind kind = segment->arena->kind;
	struct flexmem_cache_statistics *f = &cache->figures;
	/* That a growing segment becomes oversize by and by counts nowhere. */
	bool oversize = !segment->growing &&
			segment->size >= cache->config.max_split;

	if (change > 0) {
		add(f->segment, kind, 1);
		f->num_device_alloc++;
		if (oversize)
			fmlib_figure_add(&f->oversize_segments, 1);
	} else {
		subtract(f->segment, kind, 1);
		f->num_device_free++;
		if (oversize)
			fmlib_figure_subtract(&f->oversize_segments, 1);
	}
}

void fmlib_figures_reserved(struct flexmem_cache *cache,
			    enum flexmem_cache_pool_kind kind, uint64_t more,
			    uint64_t less)
{
	if (more)
		add(cache->figures.reserved_bytes, kind, more);
	if (less)
		subtract(cache->figures.reserved_bytes, kind, less);
}

void fmlib_figures_split(struct flexmem_cache *cache,
			 const struct fmlib_block *block, int change)
{
	enum flexmem_cache_pool_kind kind = block->segment->arena->kind;

	cache->split_count[kind] += change;
	cache->split_bytes[kind] += change * (int64_t)block->size;
}

void fmlib_figures_holes(struct flexmem_cache *cache,
			 struct fmlib_segment *segment)
{
	enum flexmem_cache_pool_kind kind = segment->arena->kind;
	const struct fmlib_range *range = &segment->range;
	uint64_t bytes = 0;
	uint64_t count = 0;

	if (range->parts) {
		bytes = (uint64_t)(range->size - range->used) << range->shift;
		count = range->holes;
	}
	cache->split_count[kind] += (int64_t)(count - segment->split_count);
	cache->split_bytes[kind] += (int64_t)(bytes - segment->split_bytes);
	segment->split_count = count;
	segment->split_bytes = bytes;
}

static void commit(struct flexmem_cache_figure *figures,
		   enum flexmem_cache_pool_kind kind, int64_t *change)
{
	if (*change > 0)
		add(figures, kind, (uint64_t)*change);
	else if (*change < 0)
		subtract(figures, kind, (uint64_t)-*change);
	*change = 0;
}

/*
 * A free block that grows by a neighbour leaves and comes back; only the
 * difference that a whole call makes is to be seen.
 */
void fmlib_figures_commit(struct flexmem_cache *cache)
{
	struct flexmem_cache_statistics *f = &cache->figures;
	enum flexmem_cache_pool_kind kind;

	for (kind = FLEXMEM_CACHE_SMALL; kind <= FLEXMEM_CACHE_LARGE; kind++) {
		commit(f->inactive_split, kind, &cache->split_count[kind]);
		commit(f->inactive_split_bytes, kind,
		       &cache->split_bytes[kind]);
	}
}

/* What threads keep is free for the caller, and live for the cache. */
static void correct(const struct flexmem_cache *cache,
		    struct flexmem_cache_figure *figures, uint64_t held,
		    uint64_t hits)
{
	const enum flexmem_cache_pool_kind kinds[] = {
		FLEXMEM_CACHE_ALL, fmlib_size_kind(cache, 1),
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		figures[kinds[i]].current -= held;
		figures[kinds[i]].allocated += hits;
		figures[kinds[i]].freed += hits + held;
	}
}

int flexmem_cache_statistics(struct flexmem_cache *cache,
			     struct flexmem_cache_statistics *statistics,
			     size_t size)
{
	struct flexmem_cache_statistics f;
	int err = fmlib_cache_check(cache);
	struct fmlib_tally sum;

	if (err)
		return err;
	if (!statistics || size < MIN_SIZE)
		return -EINVAL;
	pthread_mutex_lock(&cache->lock);
	f = cache->figures;
	fmlib_threads_sum(cache, &sum);
	f.thread_bound = cache->store_peak * cache->profile.thread_bytes;
	pthread_mutex_unlock(&cache->lock);

	correct(cache, f.allocation, sum.held, sum.hits);
	correct(cache, f.active, sum.held, sum.hits);
	correct(cache, f.allocated_bytes, sum.held_bytes, sum.hit_bytes);
	correct(cache, f.active_bytes, sum.held_bytes, sum.hit_bytes);
	correct(cache, f.requested_bytes, sum.held_requested,
		sum.hit_requested);
	f.num_hits += sum.hits;
	f.max_split_size = cache->config.max_split;
	return fmlib_copy_out(statistics, size, MIN_SIZE, &f, sizeof(f));
}

static void begin_peak(struct flexmem_cache_figure *figure)
{
	figure->peak = figure->current;
}

static void begin_sums(struct flexmem_cache_figure *figure)
{
	figure->allocated = 0;
	figure->freed = 0;
}

static void each_figure(struct flexmem_cache_statistics *f,
			void (*change)(struct flexmem_cache_figure *figure))
{
	struct flexmem_cache_figure *const arrays[] = {
		f->allocation, f->segment, f->active, f->inactive_split,
		f->allocated_bytes, f->reserved_bytes, f->active_bytes,
		f->inactive_split_bytes, f->requested_bytes,
	};
	size_t i;
	int kind;

	for (i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
		for (kind = 0; kind < FLEXMEM_CACHE_POOL_KINDS; kind++)
			change(&arrays[i][kind]);
	}
	change(&f->oversize_allocations);
	change(&f->oversize_segments);
}

int flexmem_cache_reset_peaks(struct flexmem_cache *cache)
{
	int err = fmlib_cache_check(cache);

	if (err)
		return err;
	pthread_mutex_lock(&cache->lock);
	each_figure(&cache->figures, begin_peak);
	fmlib_tags_reset_peaks(cache);
	cache->store_peak = cache->store_count;
	pthread_mutex_unlock(&cache->lock);
	return 0;
}

/* The threads' sums go on; what they are now is taken off instead. */
static void take_off(const struct flexmem_cache *cache,
		     struct flexmem_cache_figure *figures, uint64_t held,
		     uint64_t hits)
{
	enum flexmem_cache_pool_kind kind = fmlib_size_kind(cache, 1);

	figures[FLEXMEM_CACHE_ALL].allocated -= hits;
	figures[kind].allocated -= hits;
	figures[FLEXMEM_CACHE_ALL].freed -= hits + held;
	figures[kind].freed -= hits + held;
}

int flexmem_cache_reset_accumulated(struct flexmem_cache *cache)
{
	struct flexmem_cache_statistics *f;
	int err = fmlib_cache_check(cache);
	struct fmlib_tally sum;

	if (err)
		return err;
	f = &cache->figures;
	pthread_mutex_lock(&cache->lock);
	each_figure(f, begin_sums);
	fmlib_threads_sum(cache, &sum);
	take_off(cache, f->allocation, sum.held, sum.hits);
	take_off(cache, f->active, sum.held, sum.hits);
	take_off(cache, f->allocated_bytes, sum.held_bytes, sum.hit_bytes);
	take_off(cache, f->active_bytes, sum.held_bytes, sum.hit_bytes);
	take_off(cache, f->requested_bytes, sum.held_requested,
		 sum.hit_requested);
	f->num_ooms = 0;
	f->num_alloc_retries = 0;
	f->num_oom_errors = 0;
	f->num_sync_all_streams = 0;
	f->num_device_alloc = 0;
	f->num_device_free = 0;
	f->num_device_grow = 0;
	f->num_device_shrink = 0;
	f->num_hits = 0 - sum.hits;
	f->num_misses = 0;
	f->num_collections = 0;
	f->num_pressure_events = 0;
	f->pressure_bytes = 0;
	pthread_mutex_unlock(&cache->lock);
	return 0;
}
