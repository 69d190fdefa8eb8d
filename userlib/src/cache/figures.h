/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* What every allocation and every free counts: figures.c has the rest. */
#ifndef FMLIB_FIGURES_H
#define FMLIB_FIGURES_H

#include "cache.h"

/* Which way it goes is hard to foresee, so it is not branched upon. */
static inline void fmlib_flow_add(struct fmlib_flow *flow, enum fmlib_amount i,
				  uint64_t more, int64_t by)
{
	int64_t now = flow->now[i] + by;

	flow->in[i] += more;
	flow->now[i] = now;
	flow->peak[i] = now > flow->peak[i] ? now : flow->peak[i];
}

static inline void fmlib_flow_move(struct fmlib_flow *flow,
				   enum fmlib_amount i, int64_t by)
{
	fmlib_flow_add(flow, i, by > 0 ? (uint64_t)by : 0, by);
}

/* What waits is there as well: whether that was ever more. */
void fmlib_flow_raise_active(struct fmlib_flow *flow);

static inline void fmlib_flow_in(struct fmlib_flow *flow,
				 const struct fmlib_block *block)
{
	fmlib_flow_add(flow, FMLIB_COUNT, 1, 1);
	fmlib_flow_add(flow, FMLIB_BYTES, block->size, (int64_t)block->size);
	fmlib_flow_add(flow, FMLIB_REQUESTED, block->requested,
		       (int64_t)block->requested);
	if (flow->waiting[FMLIB_COUNT])
		fmlib_flow_raise_active(flow);
}

static inline void fmlib_flow_out(struct fmlib_flow *flow,
				  const struct fmlib_block *block)
{
	flow->now[FMLIB_COUNT]--;
	flow->now[FMLIB_BYTES] -= (int64_t)block->size;
	flow->now[FMLIB_REQUESTED] -= (int64_t)block->requested;
}

/* Where segments grow all are large, and the sum is not counted by itself. */
FMLIB_INLINE void fmlib_figures_alloc(struct flexmem_cache *cache,
				      const struct fmlib_block *block)
{
	const struct fmlib_arena *arena = block->segment->arena;
	struct fmlib_flow *flows = fmlib_account(cache, arena->lane)->flows;

	if (!cache->expandable)
		fmlib_flow_in(&flows[FLEXMEM_CACHE_ALL], block);
	fmlib_flow_in(&flows[arena->kind], block);
	if (cache->tagged && !fmlib_is_tagged(cache, block))
		fmlib_flow_in(&flows[FMLIB_UNTAGGED], block);
	if (block->size >= cache->config.max_split)
		fmlib_figure_add(&cache->figures.oversize_allocations, 1);
}

static inline void fmlib_figures_free(struct flexmem_cache *cache,
				      const struct fmlib_block *block)
{
	const struct fmlib_arena *arena = block->segment->arena;
	struct fmlib_flow *flows = fmlib_account(cache, arena->lane)->flows;

	if (!cache->expandable)
		fmlib_flow_out(&flows[FLEXMEM_CACHE_ALL], block);
	fmlib_flow_out(&flows[arena->kind], block);
	if (cache->tagged && !fmlib_is_tagged(cache, block))
		fmlib_flow_out(&flows[FMLIB_UNTAGGED], block);
	if (block->size >= cache->config.max_split)
		fmlib_figure_subtract(&cache->figures.oversize_allocations, 1);
}

/* A free piece that shares its segment came or went; counted by commit. */
static inline void fmlib_figures_split(struct flexmem_cache *cache,
				       const struct fmlib_piece *piece,
				       int change)
{
	const struct fmlib_arena *arena = piece->segment->arena;
	struct fmlib_account *account = fmlib_account(cache, arena->lane);

	account->split_count[arena->kind] += change;
	account->split_bytes[arena->kind] += change * (int64_t)piece->size;
}

/* The same of all holes of a segment that grows, after any change. */
static inline void fmlib_figures_holes(struct flexmem_cache *cache,
				       struct fmlib_segment *segment)
{
	const struct fmlib_arena *arena = segment->arena;
	struct fmlib_account *account = fmlib_account(cache, arena->lane);
	const struct fmlib_range *range = &segment->range;
	uint64_t bytes = 0;
	uint64_t count = 0;

	if (range->parts) {
		bytes = (uint64_t)(range->size - range->used) << range->shift;
		count = range->holes;
	}
	account->split_count[FLEXMEM_CACHE_LARGE] +=
		(int64_t)(count - segment->split_count);
	account->split_bytes[FLEXMEM_CACHE_LARGE] +=
		(int64_t)(bytes - segment->split_bytes);
	segment->split_count = count;
	segment->split_bytes = bytes;
}

/*
 * The same at once, for a call that changes nothing else: @size bytes of a hole
 * were taken, or left. The holes of a segment count while something lives in it.
 */
static inline void fmlib_figures_hole_taken(struct fmlib_account *account,
					    struct fmlib_segment *segment,
					    uint64_t size)
{
	struct fmlib_flow *flow = &account->flows[FLEXMEM_CACHE_LARGE];
	uint64_t holes = segment->range.holes;
	uint64_t left = segment->split_bytes - size;

	if (segment->range.parts == 1) {
		/* The first one: what is left of the whole counts from now on. */
		left = (uint64_t)(segment->range.size - segment->range.used) <<
		       segment->range.shift;
		fmlib_flow_add(flow, FMLIB_SPLIT, holes, (int64_t)holes);
		fmlib_flow_add(flow, FMLIB_SPLIT_BYTES, left, (int64_t)left);
	} else {
		flow->now[FMLIB_SPLIT] -= (int64_t)(segment->split_count -
						    holes);
		flow->now[FMLIB_SPLIT_BYTES] -= (int64_t)size;
	}
	segment->split_count = holes;
	segment->split_bytes = left;
}

static inline void fmlib_figures_hole_left(struct fmlib_account *account,
					   struct fmlib_segment *segment,
					   uint64_t size)
{
	struct fmlib_flow *flow = &account->flows[FLEXMEM_CACHE_LARGE];
	uint64_t holes = segment->range.holes;
	uint64_t left = segment->split_bytes + size;

	if (!segment->range.parts) {
		/* The last one: a segment that is free as a whole is no hole. */
		flow->now[FMLIB_SPLIT] -= (int64_t)segment->split_count;
		flow->now[FMLIB_SPLIT_BYTES] -= (int64_t)segment->split_bytes;
		holes = 0;
		left = 0;
	} else {
		if (holes != segment->split_count)
			fmlib_flow_move(flow, FMLIB_SPLIT,
					(int64_t)(holes -
						  segment->split_count));
		fmlib_flow_add(flow, FMLIB_SPLIT_BYTES, size, (int64_t)size);
	}
	segment->split_count = holes;
	segment->split_bytes = left;
}

static inline void fmlib_figures_commit_kind(struct fmlib_account *account,
					     enum flexmem_cache_pool_kind kind,
					     bool expandable)
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
	if (expandable)
		return;
	fmlib_flow_move(all, FMLIB_SPLIT, count);
	fmlib_flow_move(all, FMLIB_SPLIT_BYTES, bytes);
}

/*
 * A free block that grows by a neighbour leaves and comes back; only the
 * difference that a whole call makes is to be seen.
 */
static inline void fmlib_figures_commit(struct flexmem_cache *cache,
					struct fmlib_account *account)
{
	if (cache->expandable) {
		fmlib_figures_commit_kind(account, FLEXMEM_CACHE_LARGE, true);
		return;
	}
	fmlib_figures_commit_kind(account, FLEXMEM_CACHE_SMALL, false);
	fmlib_figures_commit_kind(account, FLEXMEM_CACHE_LARGE, false);
}

#endif /* FMLIB_FIGURES_H */
