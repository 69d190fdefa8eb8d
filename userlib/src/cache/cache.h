/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Shared by the files of the caching allocator.
 *
 * Its words, which are PyTorch's where PyTorch has them:
 *
 *  segment  memory from the provider. An expandable one grows and shrinks at its
 *           end (@growing); all others are fixed.
 *  block    an allocation, live or waiting for events; its token leads to it
 *           (tokens.h).
 *  range    which intervals of an expandable segment are free: its holes
 *           (range.h).
 *  piece    an interval of a fixed segment. Pieces tile it, and no two neighbours
 *           are both free. PyTorch calls pieces blocks.
 *  pool     segments for one purpose: the common pool, or a private one (MemPool).
 *  arena    the segments that a pool has for one stream: one arena for all
 *           requests if segments are expandable, else one for small requests and
 *           one for large ones.
 *  lane     what one stream works with, and usually that stream alone: a lock, its
 *           arenas, idle blocks, spare pieces and its part of the account.
 *  use      a block is used on another stream (record_stream). The uses that an
 *           event ends are in the queue of that stream.
 *  origin   where an allocation comes from: its tag, and the caller's context.
 *  want     a request that is being served.
 *  account  what allocations and frees count: a flow for each kind of pool.
 *  ladder   what is tried, rung by rung, if no free memory serves a request.
 *  excess   what of a segment could go back to the provider.
 *
 * Calls run downwards: cache -> ladder -> reclaim -> segments -> blocks -> fit
 * and range, ladder -> borrow -> streams, and helper -> pressure -> reclaim. Figures are counted from below.
 *
 * Locks, in their order: the helper's, the registry's (fork.c), the cache's, the
 * lanes' as they are in the table, and the account's. A thread that has a lane's
 * lock, but not the cache's, takes no other lock but the account's. There are
 * three ways to hold them (lanes.c):
 *
 *  - one lane's lock: to allocate what is free there, and to free;
 *  - the cache's and one lane's: to get more from the provider as well;
 *  - the whole: the cache's and all lanes'. For everything else.
 *
 * A lane's lock protects the lane, its arenas, and the blocks there. The cache's
 * lock protects the calls of the provider, the list of segments, and what is said
 * to be. All the rest, also which arenas there are, is read with any of these
 * locks and changed with the whole, except what is said to be constant, atomic, or
 * of one thread.
 */
#ifndef FMLIB_CACHE_H
#define FMLIB_CACHE_H

#include "figures.h"
#include "lanes.h"
#include "snapshot.h"
#include "structs.h"

static inline bool fmlib_cache_logs(const struct flexmem_cache *cache,
				    enum flexmem_log_level level)
{
	return cache->log && cache->log_level >= (uint32_t)level;
}

/* Changes in a child. */
extern atomic_ulong fmlib_generation;

static inline unsigned long fmlib_registry_generation(void)
{
	return atomic_load_explicit(&fmlib_generation, memory_order_relaxed);
}

/* 0; -EINVAL for NULL; -ECHILD. Every public function begins with it. */
static inline int fmlib_cache_check(const struct flexmem_cache *cache)
{
	if (!cache)
		return -EINVAL;
	return cache->generation == fmlib_registry_generation() ? 0 : -ECHILD;
}

/*
 * The result of a callback. -ECHILD is the cache's own word for a process that
 * was forked, and a positive number is no errno: both are taken for -EIO.
 */
static inline int fmlib_callback_result(int result)
{
	return result > 0 || result == -ECHILD ? -EIO : result;
}

/* cache_log.c */
void fmlib_cache_log(const struct flexmem_cache *cache,
		     enum flexmem_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A warning that may be the reason why the cache cannot be made. */
void fmlib_cache_complain(struct flexmem_cache *cache, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* config.c */
int fmlib_config_read(struct flexmem_cache *cache, const char *text);

#define FMLIB_PROVIDER_MIN FMLIB_SIZE_TO(struct flexmem_cache_provider, user)

/* provider.c */
void fmlib_provider_device(struct flexmem_device *device,
			   struct flexmem_cache_provider *provider);

/* mapped.c: with FLEXMEM_CACHE_MAPPED a segment is mapped as long as it is there. */
int fmlib_segment_map(struct flexmem_cache *cache,
		      struct fmlib_segment *segment);
/* Ends the map, and then gives the memory back to the provider. */
int fmlib_segment_free(struct fmlib_segment *segment);

/* pointers.c: which token has the allocation that begins at a pointer. */
struct fmlib_pointers *fmlib_pointers_make(void);
void fmlib_pointers_free(struct fmlib_pointers *pointers);

/* fork.c */
int fmlib_registry_start(void);
void fmlib_registry_add(struct flexmem_cache *cache);
void fmlib_registry_remove(struct flexmem_cache *cache);

/* fit.c */
void fmlib_fit_insert(struct fmlib_fit *fit, struct fmlib_piece *piece);
void fmlib_fit_remove(struct fmlib_fit *fit, struct fmlib_piece *piece);
struct fmlib_piece *fmlib_fit_best(const struct fmlib_fit *fit, uint64_t size);
uint64_t fmlib_fit_largest(const struct fmlib_fit *fit);

/* blocks.c */
int fmlib_pieces_make(struct fmlib_lane *lane, size_t count);
/* So many spare ones: 0 or -ENOMEM. */
static inline int fmlib_pieces_prepare(struct fmlib_lane *lane, size_t count)
{
	return lane->spare_count >= count ? 0 : fmlib_pieces_make(lane, count);
}

/* One of those. */
struct fmlib_piece *fmlib_piece_new(struct fmlib_lane *lane);
void fmlib_piece_drop(struct fmlib_lane *lane, struct fmlib_piece *piece);
void fmlib_piece_insert(struct flexmem_cache *cache, struct fmlib_piece *piece);
void fmlib_piece_remove(struct flexmem_cache *cache, struct fmlib_piece *piece);
/*
 * Takes a piece out of the free ones for a request, and cuts off what is not
 * needed; a spare piece is there.
 */
void fmlib_piece_take(struct flexmem_cache *cache, struct fmlib_piece *piece,
		      struct fmlib_want *want);
/* Makes it free again, with its neighbours. */
void fmlib_piece_release(struct flexmem_cache *cache,
			 struct fmlib_piece *piece);
/*
 * Finds what serves a request, and takes it: 0; -ENOENT: there is nothing;
 * -ENOMEM: no host memory.
 */
int fmlib_obtain(struct flexmem_cache *cache, struct fmlib_want *want);
/* The same in one segment that grows; -ENOSPC: there is nothing. */
int fmlib_reserve(struct flexmem_cache *cache, struct fmlib_segment *segment,
		  struct fmlib_want *want);
/*
 * The bytes at @offset of a segment, which are free. The caller has set aside the
 * pieces that this takes: fmlib_range_prepare_claims(), or two spare pieces.
 */
void fmlib_claim(struct flexmem_cache *cache, struct fmlib_segment *segment,
		 uint64_t offset, uint64_t size, struct fmlib_want *want);
/* Gives that back. */
void fmlib_release(struct flexmem_cache *cache,
		   const struct fmlib_found *found);
/* The free end of a segment, 0 if there is none, and since when it is free. */
uint64_t fmlib_segment_tail(const struct fmlib_segment *segment);
uint64_t fmlib_segment_stamp(const struct fmlib_segment *segment);

static inline const struct flexmem_cache_provider *
fmlib_provider_of(const struct fmlib_segment *segment)
{
	return segment->arena->pool->provider;
}

static inline bool fmlib_segment_leaves(const struct fmlib_segment *segment)
{
	return atomic_load_explicit(&segment->leaving, memory_order_relaxed);
}

/* pools.c */
struct fmlib_pool *fmlib_pool_find(struct flexmem_cache *cache, uint64_t id);
void fmlib_pool_put(struct flexmem_cache *cache, struct fmlib_pool *pool);
/* Streams and pools are small numbers, or addresses. */
static inline size_t fmlib_arena_chain(uint64_t stream, uint64_t pool)
{
	return (fmlib_hash(stream) + pool) % FMLIB_CHAINS;
}

struct fmlib_arena *fmlib_arena_find(const struct flexmem_cache *cache,
				     const struct fmlib_want *want);

/* Finds it or, with the whole, makes it; and pins it. */
struct fmlib_arena *fmlib_arena_get(struct flexmem_cache *cache,
				    const struct fmlib_want *want);
void fmlib_arena_put(struct flexmem_cache *cache, struct fmlib_arena *arena);
/* The largest free block there is, and where; NULL: there is none. */
struct fmlib_largest {
	uint64_t size;
	const struct fmlib_arena *arena;
};

struct fmlib_largest fmlib_pools_largest(const struct flexmem_cache *cache);

/* failure.c: the largest free block, and why it is of no use. */
void fmlib_failure_largest(const struct flexmem_cache *cache,
			   struct fmlib_want *want);

/* segments.c */
uint64_t fmlib_round_up(uint64_t size, uint64_t unit);
/*
 * As fmlib_obtain(); if there is nothing asks the provider for memory. If that
 * fails details are in @want->failure.
 */
int fmlib_segment_obtain(struct flexmem_cache *cache, struct fmlib_want *want);
/* How much of a segment is free and could go back now. */
uint64_t fmlib_segment_excess(const struct flexmem_cache *cache,
			      const struct fmlib_segment *segment);
/* The same, also of a private pool, whose segments stay while it lives. */
uint64_t fmlib_segment_spare(const struct flexmem_cache *cache,
			     const struct fmlib_segment *segment);
/* Looks whether a reset has lost it, and how much went so. */
bool fmlib_segment_is_lost(struct flexmem_cache *cache,
			   struct fmlib_segment *segment);
int fmlib_segment_give_back(struct flexmem_cache *cache,
			    struct fmlib_segment *segment, uint64_t *released);
/* Takes a segment out and frees it, whatever lives in it. */
void fmlib_segment_forget(struct flexmem_cache *cache,
			  struct fmlib_segment *segment);

/* Memory becomes free, and perhaps its segment goes. */
void fmlib_put_back(struct flexmem_cache *cache,
		    const struct fmlib_found *found);
/* So does that of a block which is not in use any more. */
void fmlib_settle(struct flexmem_cache *cache, struct fmlib_block *block);
/* The provider's answer: 0, -EOPNOTSUPP, or its error. */
int fmlib_memory_info(const struct flexmem_cache *cache, uint64_t *free,
		      uint64_t *total);
/* That share of the device in bytes; 0: not known, which is warned of once. */
uint64_t fmlib_share_of_device(struct flexmem_cache *cache, double share);

/* reclaim.c */
void fmlib_collect(struct flexmem_cache *cache);
/* All return how many bytes went back. */
uint64_t fmlib_reclaim_large(struct flexmem_cache *cache, uint64_t size);
uint64_t fmlib_reclaim(struct flexmem_cache *cache, uint64_t bytes, int *error);

/*
 * pressure.c: 0 and the next event, or why there is none; without the lock.
 * The other one answers it, unless a later one has been, and returns what the
 * provider refused.
 */
int fmlib_pressure_read(struct flexmem_cache *cache,
			struct flexmem_pressure_event *event);
int fmlib_pressure_answer(struct flexmem_cache *cache,
			  const struct flexmem_pressure_event *event,
			  uint64_t *released);

/* streams.c */
/* NULL: no host memory. */
struct fmlib_use *fmlib_use_new(struct flexmem_cache *cache, uint64_t stream);
/* NULL does no harm. */
void fmlib_use_drop(struct flexmem_cache *cache, struct fmlib_use *use);
void fmlib_use_begin(struct fmlib_block *block, struct fmlib_use *use);
int fmlib_use_add(struct flexmem_cache *cache, struct fmlib_block *block,
		  uint64_t stream);
/* Records the events that a freed block waits for: there is one at least. */
void fmlib_uses_wait(struct flexmem_cache *cache, struct fmlib_block *block);
/* Brings back what has waited long enough; but not while work is captured. */
void fmlib_uses_poll(struct flexmem_cache *cache);
/* Nothing is captured any more: records the events that were deferred. */
void fmlib_uses_resume(struct flexmem_cache *cache);
/* Both drop the lock in between, and bring back what has waited. */
int fmlib_uses_synchronize(struct flexmem_cache *cache);
int fmlib_uses_synchronize_device(struct flexmem_cache *cache);
void fmlib_uses_forget(struct flexmem_cache *cache, bool destroy_events);

/*
 * borrow.c: a hole in another stream's segment: 0, and @want has it; -ENOMEM: there
 * is none that is safe to use. With the whole.
 */
int fmlib_borrow(struct flexmem_cache *cache, struct fmlib_want *want);

/* private.c: the pool for a request of a stream that names none. */
struct fmlib_pool *fmlib_capture_pool(struct flexmem_cache *cache,
				      uint64_t stream);

/* ladder.c */
int fmlib_ladder(struct flexmem_cache *cache, struct fmlib_want *want);

/* cache.c: the long way of flexmem_cache_alloc() and flexmem_cache_free(). */
int fmlib_cache_alloc(struct flexmem_cache *cache, uint64_t bytes,
		      uint64_t stream, void **token);
int fmlib_cache_free(struct flexmem_cache *cache, const void *token);
/* The end of an allocation, and of a free: with the whole. */
void fmlib_cache_make(struct flexmem_cache *cache,
		      const struct fmlib_want *want, struct fmlib_block *block);
void fmlib_cache_give(struct flexmem_cache *cache, struct fmlib_block *block);

/* tags.c */
struct fmlib_tag *fmlib_tag_find(struct flexmem_cache *cache, const char *tag);

void fmlib_tag_add(struct fmlib_tag *tag, const struct fmlib_block *block);
void fmlib_tag_subtract(struct fmlib_tag *tag, const struct fmlib_block *block);
void fmlib_tags_reset_peaks(struct flexmem_cache *cache);
void fmlib_tags_free(struct flexmem_cache *cache);

/* sizes.c */
uint64_t fmlib_size_divided(const struct flexmem_cache *cache, uint64_t bytes);

/* @bytes is at least 1, and small enough to be rounded. */
static inline uint64_t fmlib_size_round(const struct flexmem_cache *cache,
					uint64_t bytes)
{
	uint64_t granule = cache->profile.granule;

	return cache->config.divides ? fmlib_size_divided(cache, bytes) :
	       (bytes + granule - 1) & ~(granule - 1);
}

static inline enum flexmem_cache_pool_kind
fmlib_size_kind(const struct flexmem_cache *cache, uint64_t size)
{
	/* Where segments grow small ones and large ones share them. */
	return !cache->expandable && size <= cache->profile.small_limit ?
	       FLEXMEM_CACHE_SMALL : FLEXMEM_CACHE_LARGE;
}

/* Whether a new segment for it grows. */
bool fmlib_size_grows(const struct flexmem_cache *cache,
		      const struct fmlib_want *want);
uint64_t fmlib_size_segment(const struct flexmem_cache *cache,
			    const struct fmlib_want *want);

#endif /* FMLIB_CACHE_H */
