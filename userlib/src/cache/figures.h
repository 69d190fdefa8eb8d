/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The figures (statistics) of a cache. The functions that count an allocation
 * or a free are here, so that they are inlined. Other functions are in
 * figures.c.
 */
#ifndef FMLIB_FIGURES_H
#define FMLIB_FIGURES_H

#include "lanes.h"

void fmlib_figure_add(struct flexmem_cache_figure *figure, uint64_t count);
void fmlib_figure_subtract(struct flexmem_cache_figure *figure, uint64_t count);
/* Adds the counters of a lane's account to @sum, and clears @part. */
void fmlib_account_add(struct fmlib_account *sum, struct fmlib_account *part);
void fmlib_figures_tagged(struct flexmem_cache *cache);
void fmlib_figures_untagged(const struct flexmem_cache *cache,
			    struct flexmem_cache_tag *sums);
/*
 * Called when a freed block begins to wait for events, with @change 1, and when
 * its wait ends, with -1.
 */
void fmlib_figures_wait(struct flexmem_cache *cache,
			const struct fmlib_block *block, int change);
/* The caller has locked the whole cache. */
uint64_t fmlib_figures_allocated(const struct flexmem_cache *cache);
/* Returns the most bytes that were allocated. The whole cache is locked. */
uint64_t fmlib_figures_peak(const struct flexmem_cache *cache);
/* Returns how many allocations were freed so far. */
uint64_t fmlib_figures_freed(const struct flexmem_cache *cache);
/*
 * Counts again what is oversize, because max_split_size_mb has changed. The
 * whole cache is locked.
 */
void fmlib_figures_oversize(struct flexmem_cache *cache);
void fmlib_figures_segment(struct flexmem_cache *cache,
			   const struct fmlib_segment *segment, int change);
void fmlib_figures_reserved(struct flexmem_cache *cache,
			    const struct fmlib_segment *segment, uint64_t add,
			    uint64_t subtract);
/* The bytes that the cache has from a provider. */
uint64_t fmlib_reserved_on(const struct flexmem_cache *cache,
			   const struct flexmem_cache_provider *provider);

/*
 * Whether the block has a tag. A block without a tag counts only in the figures
 * of the cache.
 */
static inline bool fmlib_is_tagged(const struct flexmem_cache *cache,
				   const struct fmlib_block *block)
{
	return block->origin->tag != &cache->untagged;
}

/* Starts a lane's account at the clock of @sum, the cache's account. */
static inline void fmlib_account_begin(struct fmlib_account *part,
				       const struct fmlib_account *sum)
{
	part->clock = sum->clock;
	part->began = sum->clock;
}

static inline int64_t fmlib_flow_now(const struct fmlib_flow *flow,
				     enum fmlib_amount i)
{
	return (int64_t)(flow->in[i] - flow->out[i]);
}

static inline void fmlib_flow_add(struct fmlib_flow *flow, enum fmlib_amount i,
				  uint64_t more)
{
	int64_t now;

	flow->in[i] += more;
	now = fmlib_flow_now(flow, i);
	if (now > flow->peak[i])
		flow->peak[i] = now;
}

static inline void fmlib_flow_move(struct fmlib_flow *flow,
				   enum fmlib_amount i, int64_t by)
{
	if (by > 0)
		fmlib_flow_add(flow, i, (uint64_t)by);
	else
		flow->out[i] -= (uint64_t)by;
}

/* Raises the peak of active bytes, which include waiting blocks. */
void fmlib_flow_raise_active(struct fmlib_flow *flow);

static inline void fmlib_flow_in(struct fmlib_flow *flow, uint64_t size,
				 uint64_t requested)
{
	fmlib_flow_add(flow, FMLIB_COUNT, 1);
	fmlib_flow_add(flow, FMLIB_BYTES, size);
	fmlib_flow_add(flow, FMLIB_REQUESTED, requested);
	if (flow->waiting[FMLIB_COUNT])
		fmlib_flow_raise_active(flow);
}

static inline void fmlib_flow_out(struct fmlib_flow *flow,
				  const struct fmlib_block *block)
{
	flow->out[FMLIB_COUNT]++;
	flow->out[FMLIB_BYTES] += block->size;
	flow->out[FMLIB_REQUESTED] += block->requested;
}

/*
 * Counts an allocation. If all requests count as large, the sum over all kinds
 * is not counted separately.
 */
FMLIB_INLINE void fmlib_figures_alloc(struct flexmem_cache *cache,
				      const struct fmlib_block *block)
{
	const struct fmlib_arena *arena = block->segment->arena;
	struct fmlib_flow *flows =
		fmlib_account(cache, fmlib_lane_of(block))->flows;

	if (!cache->one_kind)
		fmlib_flow_in(&flows[FLEXMEM_CACHE_ALL], block->size,
			      block->requested);
	fmlib_flow_in(&flows[arena->kind], block->size, block->requested);
	if (cache->tagged && !fmlib_is_tagged(cache, block))
		fmlib_flow_in(&flows[FMLIB_UNTAGGED], block->size,
			      block->requested);
	if (block->size >= cache->config.max_split)
		fmlib_figure_add(&cache->figures.oversize_allocations, 1);
}

static inline void fmlib_figures_free(struct flexmem_cache *cache,
				      const struct fmlib_block *block)
{
	const struct fmlib_arena *arena = block->segment->arena;
	struct fmlib_flow *flows =
		fmlib_account(cache, fmlib_lane_of(block))->flows;

	if (!cache->one_kind)
		fmlib_flow_out(&flows[FLEXMEM_CACHE_ALL], block);
	fmlib_flow_out(&flows[arena->kind], block);
	if (cache->tagged && !fmlib_is_tagged(cache, block))
		fmlib_flow_out(&flows[FMLIB_UNTAGGED], block);
	if (block->size >= cache->config.max_split)
		fmlib_figure_subtract(&cache->figures.oversize_allocations, 1);
}

/*
 * Notes that a free piece has appeared or vanished in a segment that has other
 * pieces. fmlib_figures_commit() counts the change.
 */
static inline void fmlib_figures_split(struct flexmem_cache *cache,
				       const struct fmlib_piece *piece,
				       int change)
{
	const struct fmlib_arena *arena = piece->segment->arena;
	struct fmlib_account *account = fmlib_account(cache, arena->lane);

	account->split_count[arena->kind] += change;
	account->split_bytes[arena->kind] += change * (int64_t)piece->size;
}

/*
 * The holes of a growing segment. The figures count these holes only while
 * there is an allocation in the segment.
 */
struct fmlib_holes {
	int64_t count;
	int64_t bytes;
};

static inline struct fmlib_holes
fmlib_holes_of(const struct fmlib_range *range)
{
	struct fmlib_holes holes = { 0 };

	if (range->parts) {
		holes.count = range->holes;
		holes.bytes = (int64_t)(range->size - range->used)
			      << range->shift;
	}
	return holes;
}

/*
 * Counts the change in holes after a block was taken or freed. @lane: a locked
 * lane.
 */
static inline void fmlib_figures_holes(struct flexmem_cache *cache,
				       struct fmlib_lane *lane,
				       const struct fmlib_segment *segment,
				       struct fmlib_holes before)
{
	struct fmlib_account *account = fmlib_account(cache, lane);
	struct fmlib_holes now = fmlib_holes_of(&segment->range);

	account->split_count[segment->arena->kind] += now.count - before.count;
	account->split_bytes[segment->arena->kind] += now.bytes - before.bytes;
}

/*
 * fmlib_figures_hole_taken() and fmlib_figures_hole_left() are for calls that
 * change no other figures. They count at once that @size bytes of a hole were
 * taken or freed. Before that there were @before holes.
 */
static inline void fmlib_figures_hole_taken(struct fmlib_account *account,
					    const struct fmlib_range *range,
					    uint32_t before, uint64_t size)
{
	struct fmlib_flow *flow = &account->flows[FLEXMEM_CACHE_LARGE];

	if (range->parts == 1) {
		/*
		 * This is the first allocation, so from now on the remaining
		 * hole of the segment counts.
		 */
		fmlib_flow_add(flow, FMLIB_SPLIT, range->holes);
		fmlib_flow_add(flow, FMLIB_SPLIT_BYTES,
			       (uint64_t)(range->size - range->used) <<
			       range->shift);
	} else {
		flow->out[FMLIB_SPLIT] += before - range->holes;
		flow->out[FMLIB_SPLIT_BYTES] += size;
	}
}

static inline void fmlib_figures_hole_left(struct fmlib_account *account,
					   const struct fmlib_range *range,
					   uint32_t before, uint64_t size)
{
	struct fmlib_flow *flow = &account->flows[FLEXMEM_CACHE_LARGE];

	if (!range->parts) {
		/*
		 * The last allocation is gone, and a segment that is free as a
		 * whole counts no holes.
		 */
		flow->out[FMLIB_SPLIT] += before;
		flow->out[FMLIB_SPLIT_BYTES] +=
			((uint64_t)range->size << range->shift) - size;
	} else {
		if (range->holes != before)
			fmlib_flow_move(flow, FMLIB_SPLIT,
					(int32_t)(range->holes - before));
		fmlib_flow_add(flow, FMLIB_SPLIT_BYTES, size);
	}
}

static inline void fmlib_figures_commit_kind(struct fmlib_account *account,
					     enum flexmem_cache_pool_kind kind,
					     bool one_kind)
{
	struct fmlib_flow *all = &account->flows[FLEXMEM_CACHE_ALL];
	int64_t count = account->split_count[kind];
	int64_t bytes = account->split_bytes[kind];

	if (!bytes && !count)
		return;
	fmlib_flow_move(&account->flows[kind], FMLIB_SPLIT, count);
	fmlib_flow_move(&account->flows[kind], FMLIB_SPLIT_BYTES, bytes);
	account->split_count[kind] = 0;
	account->split_bytes[kind] = 0;
	if (one_kind)
		return;
	fmlib_flow_move(all, FMLIB_SPLIT, count);
	fmlib_flow_move(all, FMLIB_SPLIT_BYTES, bytes);
}

/*
 * Makes the changes of a call visible. A free block that merges with a
 * neighbour is subtracted and added again, so only the difference over a whole
 * call may be visible.
 */
static inline void fmlib_figures_commit(struct flexmem_cache *cache,
					struct fmlib_account *account)
{
	if (cache->one_kind) {
		fmlib_figures_commit_kind(account, FLEXMEM_CACHE_LARGE, true);
		return;
	}
	fmlib_figures_commit_kind(account, FLEXMEM_CACHE_SMALL, false);
	fmlib_figures_commit_kind(account, FLEXMEM_CACHE_LARGE, false);
}

#endif /* FMLIB_FIGURES_H */
