// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Statistics. */
#include "cache.h"

#include <string.h>

#define MIN_SIZE FMLIB_SIZE_TO(struct flexmem_cache_statistics, num_collections)

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

static inline void add(struct flexmem_cache_figure *figures,
		       enum flexmem_cache_pool_kind kind, uint64_t count)
{
	fmlib_figure_add(&figures[FLEXMEM_CACHE_ALL], count);
	fmlib_figure_add(&figures[kind], count);
}

static inline void subtract(struct flexmem_cache_figure *figures,
			    enum flexmem_cache_pool_kind kind, uint64_t count)
{
	fmlib_figure_subtract(&figures[FLEXMEM_CACHE_ALL], count);
	fmlib_figure_subtract(&figures[kind], count);
}

void fmlib_flow_raise_active(struct fmlib_flow *flow)
{
	int64_t active;
	int i;

	for (i = 0; i < FMLIB_ACTIVE_AMOUNTS; i++) {
		active = fmlib_flow_now(flow, i) + (int64_t)flow->waiting[i];
		if (active > flow->active_peak[i])
			flow->active_peak[i] = active;
	}
}

/* If all requests count as large, the large ones are also the sum. */
static enum flexmem_cache_pool_kind
flow_of(const struct flexmem_cache *cache, enum flexmem_cache_pool_kind kind)
{
	return kind || !cache->one_kind ? kind : FLEXMEM_CACHE_LARGE;
}

static void flow_wait(struct fmlib_flow *flow, const struct fmlib_block *block,
		      uint64_t count)
{
	flow->waiting[FMLIB_COUNT] += count;
	flow->waiting[FMLIB_BYTES] += count * block->size;
	flow->waiting[FMLIB_REQUESTED] += count * block->requested;
}

void fmlib_figures_wait(struct flexmem_cache *cache,
			const struct fmlib_block *block, int change)
{
	uint64_t count = change > 0 ? 1 : -UINT64_C(1);

	struct fmlib_flow *flows = cache->account.flows;

	flow_wait(&flows[FLEXMEM_CACHE_ALL], block, count);
	flow_wait(&flows[block->segment->arena->kind], block, count);
}

uint64_t fmlib_figures_allocated(const struct flexmem_cache *cache)
{
	const struct fmlib_flow *all =
		&cache->account.flows[flow_of(cache, FLEXMEM_CACHE_ALL)];

	return (uint64_t)fmlib_flow_now(all, FMLIB_BYTES);
}

uint64_t fmlib_figures_peak(const struct flexmem_cache *cache)
{
	const struct fmlib_flow *all =
		&cache->account.flows[flow_of(cache, FLEXMEM_CACHE_ALL)];

	return (uint64_t)all->peak[FMLIB_BYTES];
}

uint64_t fmlib_figures_freed(const struct flexmem_cache *cache)
{
	const struct fmlib_flow *all =
		&cache->account.flows[flow_of(cache, FLEXMEM_CACHE_ALL)];

	return all->out[FMLIB_COUNT];
}

/*
 * A segment that grows does not count as oversize, whatever its size.
 */
static bool is_oversize(const struct flexmem_cache *cache,
			const struct fmlib_segment *segment)
{
	return !segment->growing && segment->size >= cache->config.max_split;
}

static void set_current(struct flexmem_cache_figure *figure, uint64_t now)
{
	if (now > figure->current)
		fmlib_figure_add(figure, now - figure->current);
	else
		fmlib_figure_subtract(figure, figure->current - now);
}

void fmlib_figures_oversize(struct flexmem_cache *cache)
{
	const struct fmlib_segment *segment;
	const struct fmlib_block *block;
	uint64_t allocations = 0;
	uint64_t segments = 0;
	uint32_t i;

	for (segment = cache->first_segment; segment; segment = segment->next)
		segments += is_oversize(cache, segment);
	for (i = 0; i < fmlib_blocks_count(cache); i++) {
		block = fmlib_block_at(cache, i);
		allocations += block && fmlib_block_is_live(block) &&
			       block->size >= cache->config.max_split;
	}
	set_current(&cache->figures.oversize_segments, segments);
	set_current(&cache->figures.oversize_allocations, allocations);
}

void fmlib_figures_segment(struct flexmem_cache *cache,
			   const struct fmlib_segment *segment, int change)
{
	enum flexmem_cache_pool_kind kind = segment->arena->kind;
	struct flexmem_cache_statistics *f = &cache->figures;
	bool oversize = is_oversize(cache, segment);

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
			    const struct fmlib_segment *segment, uint64_t more,
			    uint64_t less)
{
	enum flexmem_cache_pool_kind kind = segment->arena->kind;

	if (more)
		add(cache->figures.reserved_bytes, kind, more);
	if (less)
		subtract(cache->figures.reserved_bytes, kind, less);
	if (!fmlib_is_same_provider(fmlib_provider_of(segment),
				    &cache->provider))
		cache->elsewhere += more - less;
}

uint64_t fmlib_reserved_on(const struct flexmem_cache *cache,
			   const struct flexmem_cache_provider *provider)
{
	const struct fmlib_segment *segment = cache->first_segment;
	uint64_t bytes = 0;

	if (fmlib_is_same_provider(provider, &cache->provider))
		return cache->figures.reserved_bytes[FLEXMEM_CACHE_ALL].current -
		       cache->elsewhere;
	for (; segment; segment = segment->next) {
		if (fmlib_is_same_provider(fmlib_provider_of(segment), provider))
			bytes += segment->size;
	}
	return bytes;
}

static void add_flow(struct fmlib_flow *sum, struct fmlib_flow *part)
{
	int64_t peak;
	int i;

	for (i = 0; i < FMLIB_AMOUNTS; i++) {
		if (!part->in[i] && !part->out[i])
			continue;
		peak = fmlib_flow_now(sum, i) + part->peak[i];
		if (peak > sum->peak[i])
			sum->peak[i] = peak;
		if (i < FMLIB_ACTIVE_AMOUNTS)
			peak += (int64_t)sum->waiting[i];
		if (i < FMLIB_ACTIVE_AMOUNTS && peak > sum->active_peak[i])
			sum->active_peak[i] = peak;
		sum->in[i] += part->in[i];
		sum->out[i] += part->out[i];
		part->in[i] = 0;
		part->out[i] = 0;
		part->peak[i] = 0;
	}
}

void fmlib_account_add(struct fmlib_account *sum, struct fmlib_account *part)
{
	int i;

	for (i = 0; i < FMLIB_FLOWS; i++)
		add_flow(&sum->flows[i], &part->flows[i]);
	sum->clock += part->clock - part->began;
	fmlib_account_begin(part, sum);
	part->operations = 0;
}

void fmlib_figures_tagged(struct flexmem_cache *cache)
{
	struct fmlib_flow *flows = cache->account.flows;

	if (!cache->tagged)
		flows[FMLIB_UNTAGGED] =
			flows[flow_of(cache, FLEXMEM_CACHE_ALL)];
	cache->tagged = true;
}

void fmlib_figures_untagged(const struct flexmem_cache *cache,
			    struct flexmem_cache_tag *sums)
{
	const struct fmlib_flow *flow =
		&cache->account.flows[cache->tagged ? FMLIB_UNTAGGED :
				      flow_of(cache, FLEXMEM_CACHE_ALL)];

	sums->allocations = (uint64_t)fmlib_flow_now(flow, FMLIB_COUNT);
	sums->allocated_bytes = (uint64_t)fmlib_flow_now(flow, FMLIB_BYTES);
	sums->requested_bytes = (uint64_t)fmlib_flow_now(flow, FMLIB_REQUESTED);
	sums->peak_bytes = (uint64_t)flow->peak[FMLIB_BYTES];
}

static void show(struct flexmem_cache_figure *figure,
		 const struct fmlib_flow *flow, const struct fmlib_flow *before,
		 enum fmlib_amount i)
{
	figure->current = (uint64_t)fmlib_flow_now(flow, i);
	figure->peak = (uint64_t)flow->peak[i];
	figure->allocated = flow->in[i] - before->in[i];
	figure->freed = flow->out[i] - before->out[i];
}

/*
 * The active figures are those of allocations plus blocks that wait for events,
 * which are not free yet.
 */
static void show_active(struct flexmem_cache_figure *figure,
			const struct flexmem_cache_figure *allocated,
			const struct fmlib_flow *flow,
			const struct fmlib_flow *before, enum fmlib_amount i)
{
	*figure = *allocated;
	figure->current += flow->waiting[i];
	figure->freed -= flow->waiting[i] - before->waiting[i];
	if ((uint64_t)flow->active_peak[i] > figure->peak)
		figure->peak = (uint64_t)flow->active_peak[i];
}

static void show_kind(const struct flexmem_cache *cache,
		      struct flexmem_cache_statistics *f,
		      enum flexmem_cache_pool_kind kind)
{
	enum flexmem_cache_pool_kind of = flow_of(cache, kind);
	const struct fmlib_flow *before = &cache->flows_before[of];
	const struct fmlib_flow *flow = &cache->account.flows[of];

	show(&f->allocation[kind], flow, before, FMLIB_COUNT);
	show(&f->allocated_bytes[kind], flow, before, FMLIB_BYTES);
	show(&f->requested_bytes[kind], flow, before, FMLIB_REQUESTED);
	show_active(&f->active[kind], &f->allocation[kind], flow, before,
		    FMLIB_COUNT);
	show_active(&f->active_bytes[kind], &f->allocated_bytes[kind], flow,
		    before, FMLIB_BYTES);
	show_active(&f->requested_bytes[kind], &f->requested_bytes[kind], flow,
		    before, FMLIB_REQUESTED);
	show(&f->inactive_split[kind], flow, before, FMLIB_SPLIT);
	show(&f->inactive_split_bytes[kind], flow, before, FMLIB_SPLIT_BYTES);
}

int flexmem_cache_statistics(struct flexmem_cache *cache,
			     struct flexmem_cache_statistics *statistics,
			     size_t size)
{
	struct flexmem_cache_statistics f;
	enum flexmem_cache_pool_kind kind;
	int err = fmlib_cache_check(cache);

	if (err)
		return err;
	if (!statistics || size < MIN_SIZE)
		return -EINVAL;
	fmlib_lock(cache);
	/*
	 * Some threads may wait in the middle of a call, with the cache
	 * unlocked. The figures must include what these calls have done so far.
	 */
	fmlib_figures_commit(cache, &cache->account);
	f = cache->figures;
	for (kind = 0; kind < FLEXMEM_CACHE_POOL_KINDS; kind++)
		show_kind(cache, &f, kind);
	/* by_ladder counts the allocations that found no block in the cache. */
	f.num_hits = f.allocation[FLEXMEM_CACHE_ALL].allocated -
		     cache->by_ladder;
	f.max_split_size = cache->config.max_split;
	fmlib_unlock(cache);
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
		f->segment, f->reserved_bytes,
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

static void begin_flow_peaks(struct fmlib_flow *flow)
{
	int i;

	for (i = 0; i < FMLIB_AMOUNTS; i++)
		flow->peak[i] = fmlib_flow_now(flow, i);
	for (i = 0; i < FMLIB_ACTIVE_AMOUNTS; i++)
		flow->active_peak[i] = flow->peak[i] +
				       (int64_t)flow->waiting[i];
}

int flexmem_cache_reset_peaks(struct flexmem_cache *cache)
{
	int err = fmlib_cache_check(cache);
	int i;

	if (err)
		return err;
	fmlib_lock(cache);
	each_figure(&cache->figures, begin_peak);
	for (i = 0; i < FMLIB_FLOWS; i++)
		begin_flow_peaks(&cache->account.flows[i]);
	/* Peaks are exact until a second thread allocates. */
	cache->shared = false;
	cache->sole = FMLIB_NOBODY;
	fmlib_tags_reset_peaks(cache);
	fmlib_unlock(cache);
	return 0;
}

int flexmem_cache_reset_accumulated(struct flexmem_cache *cache)
{
	struct flexmem_cache_statistics *f;
	int err = fmlib_cache_check(cache);

	if (err)
		return err;
	f = &cache->figures;
	fmlib_lock(cache);
	each_figure(f, begin_sums);
	memcpy(cache->flows_before, cache->account.flows,
	       sizeof(cache->flows_before));
	cache->by_ladder = 0;
	f->num_ooms = 0;
	f->num_alloc_retries = 0;
	f->num_first_failures = 0;
	f->num_sync_all_streams = 0;
	f->num_stream_waits = 0;
	f->num_device_alloc = 0;
	f->num_device_free = 0;
	f->num_device_grow = 0;
	f->num_device_shrink = 0;
	f->num_misses = 0;
	f->num_collections = 0;
	f->num_pressure_events = 0;
	f->pressure_bytes = 0;
	f->num_limit_errors = 0;
	fmlib_unlock(cache);
	return 0;
}
