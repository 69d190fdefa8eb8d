/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Shared by the files of the caching allocator.
 *
 * The words used in these files; where PyTorch has a word, it is used here too:
 *
 *  segment  memory from the provider. An expandable one grows and shrinks at
 *           its end (@growing); all others are fixed.
 *  block    an allocation, live or waiting for events. Its token leads to it
 *           (tokens.h).
 *  range    which parts of an expandable segment are free: its holes (range.h).
 *  piece    an interval of a fixed segment. Pieces tile it, and no two
 *           neighbours are both free. PyTorch calls pieces blocks.
 *  pool     segments for one purpose: the common pool, or a private one
 *           (MemPool).
 *  arena    the segments that a pool has for one stream: one arena for all
 *           requests if segments are expandable; otherwise one for small
 *           requests and one for large ones. With reuse:done and reuse:wait,
 *           the growing segments of the common pool are in one arena for all
 *           streams (share.c).
 *  lane     the state of one stream, seldom of several: a lock, its arenas,
 *           idle blocks, spare pieces, what the stream freed last in shared
 *           segments (kept.c), and its part of the account.
 *  use      a block is used on another stream (record_stream). The uses that
 *           an event ends are in the queue of that stream.
 *  origin   where an allocation comes from: its tag, and the caller's context.
 *  want     a request that is being served.
 *  account  counts of allocations and frees: a flow for each kind of pool.
 *  ladder   the attempts, rung by rung, if no free memory serves a request.
 *  excess   bytes of a segment that could be returned to the provider.
 *
 * Calls run downwards: cache -> ladder -> reclaim -> segments -> blocks -> fit
 * and range, blocks and segments -> share, ladder -> borrow -> streams, and
 * helper -> pressure -> reclaim. All of them count figures. Ladder, reclaim and
 * segments find segments with spares, which blocks keep up to date.
 *
 * The order of locks: helper, registry (fork.c), cache, lanes in the order of
 * their table, share, account. A thread that holds a lane's lock but not the
 * cache's takes no other lock except the last two. A thread holds one of these
 * sets of locks (lanes.c):
 *
 *  - one lane's lock: to allocate free memory of the lane, and to free;
 *  - the cache's and one lane's, and for a moment one other lane's (kept.c): to
 *    get more from the provider as well;
 *  - the cache's lock and all lanes' locks, so that the *whole cache* is locked:
 *    for everything else. Then no stream keeps anything (kept.c).
 *
 * A lane's lock protects the lane, its arenas and their blocks. The cache's
 * lock protects the calls of the provider. struct flexmem_cache groups its
 * members by the lock that protects them. Members of other structs, and the
 * list of arenas, are read under any of these locks, and changed only while the
 * whole cache is locked. Members that are constant, atomic, or of one thread
 * are exceptions, and marked.
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

/* Grows by one in each forked child. */
extern atomic_ulong fmlib_generation;

static inline unsigned long fmlib_registry_generation(void)
{
	return atomic_load_explicit(&fmlib_generation, memory_order_relaxed);
}

/*
 * Every public function that takes a cache calls this first. Returns 0; -EINVAL
 * for NULL; or -ECHILD in a forked child.
 */
static inline int fmlib_cache_check(const struct flexmem_cache *cache)
{
	if (!cache)
		return -EINVAL;
	return cache->generation == fmlib_registry_generation() ? 0 : -ECHILD;
}

/*
 * Checks the result of a callback. -ECHILD is reserved for forked processes,
 * and a positive number is not an errno, so both become -EIO.
 */
static inline int fmlib_callback_result(int result)
{
	return result > 0 || result == -ECHILD ? -EIO : result;
}

/* Defined in cache_log.c. */
void fmlib_cache_log(const struct flexmem_cache *cache,
		     enum flexmem_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Logs a warning. The first warning during the creation of the cache is also
 * written to @problem of the caller's options.
 */
void fmlib_cache_complain(struct flexmem_cache *cache, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Defined in config.c. */
int fmlib_config_read(struct flexmem_cache *cache, const char *text);
/*
 * Computes values that follow from settings, profile and provider. The whole
 * cache is locked, or is being made.
 */
void fmlib_config_apply(struct flexmem_cache *cache);

#define FMLIB_PROVIDER_MIN FMLIB_SIZE_TO(struct flexmem_cache_provider, user)

/* Defined in provider.c. */
void fmlib_provider_device(struct flexmem_device *device,
			   struct flexmem_cache_provider *provider);

/* mapped.c: maps a segment of a cache with FLEXMEM_CACHE_MAPPED. */
int fmlib_segment_map(struct flexmem_cache *cache,
		      struct fmlib_segment *segment);
/* Unmaps the segment, and returns it to the provider. */
int fmlib_segment_free(struct fmlib_segment *segment);

/* pointers.c: finds the token of an allocation by its pointer. */
struct fmlib_pointers *fmlib_pointers_make(void);
void fmlib_pointers_free(struct fmlib_pointers *pointers);
/*
 * Called before a token is freed. fmlib_pointers_forget() removes the entry of
 * a pointer if it leads to @token. fmlib_pointers_forget_token() looks up the
 * pointer of a token first, for which the caller holds no lock of the cache.
 */
void fmlib_pointers_forget(struct flexmem_cache *cache, const void *pointer,
			   const void *token);
void fmlib_pointers_forget_token(struct flexmem_cache *cache, void *token);

/* Defined in fork.c. */
int fmlib_registry_start(void);
void fmlib_registry_add(struct flexmem_cache *cache);
void fmlib_registry_remove(struct flexmem_cache *cache);

/* Defined in fit.c. */
void fmlib_fit_insert(struct fmlib_fit *fit, struct fmlib_piece *piece);
void fmlib_fit_remove(struct fmlib_fit *fit, struct fmlib_piece *piece);
struct fmlib_piece *fmlib_fit_best(const struct fmlib_fit *fit, uint64_t size);
/*
 * The same for a request with an alignment. Bytes in front of the request stay
 * free only in pieces of less than @whole bytes.
 */
struct fmlib_piece *fmlib_fit_aligned(const struct fmlib_fit *fit,
				      const struct fmlib_want *want,
				      uint64_t whole);
uint64_t fmlib_fit_largest(const struct fmlib_fit *fit);

/* Defined in blocks.c. */
int fmlib_pieces_make(struct fmlib_lane *lane, size_t count);
/* Prepares @count spare pieces. Returns 0 or -ENOMEM. */
static inline int fmlib_pieces_prepare(struct fmlib_lane *lane, size_t count)
{
	return lane->spare_count >= count ? 0 : fmlib_pieces_make(lane, count);
}

/* Takes a spare piece, which the caller has prepared. */
struct fmlib_piece *fmlib_piece_new(struct fmlib_lane *lane);
void fmlib_piece_drop(struct fmlib_lane *lane, struct fmlib_piece *piece);
void fmlib_piece_insert(struct flexmem_cache *cache, struct fmlib_piece *piece);
void fmlib_piece_remove(struct flexmem_cache *cache, struct fmlib_piece *piece);
/*
 * Takes a free piece for a request, and splits off the rest. The caller has
 * prepared a spare piece.
 */
void fmlib_piece_take(struct flexmem_cache *cache, struct fmlib_piece *piece,
		      struct fmlib_want *want);
/* Frees a piece, and merges it with its free neighbours. */
void fmlib_piece_release(struct flexmem_cache *cache,
			 struct fmlib_piece *piece);
/*
 * Finds free memory for a request, and takes it. Returns 0; -ENOENT if there is
 * none; or -ENOMEM if there is no host memory.
 */
int fmlib_obtain(struct flexmem_cache *cache, struct fmlib_want *want);
/*
 * Finds the lowest hole of a growing segment that is large enough for a request,
 * and where in the hole the request begins.
 */
bool fmlib_hole_find(const struct fmlib_segment *segment,
		     const struct fmlib_want *want, uint64_t *offset);
/* Like fmlib_obtain(), but in one growing segment. -ENOSPC: no room there. */
int fmlib_reserve(struct flexmem_cache *cache, struct fmlib_segment *segment,
		  struct fmlib_want *want);
/*
 * Takes the free bytes at @offset of a segment. The caller has set nodes aside
 * with fmlib_range_prepare_claims(), or has prepared two spare pieces.
 */
void fmlib_claim(struct flexmem_cache *cache, struct fmlib_segment *segment,
		 uint64_t offset, uint64_t size, struct fmlib_want *want);
/* Frees memory that fmlib_obtain() found but that no allocation uses yet. */
void fmlib_release(struct flexmem_cache *cache,
		   const struct fmlib_found *found);
/* The same for a growing segment that is locked (fmlib_share_lock()). */
void fmlib_release_shared(struct flexmem_cache *cache,
			  const struct fmlib_found *found);
/*
 * fmlib_segment_tail() returns the bytes of the free end of a segment.
 * fmlib_segment_stamp() returns the clock's value when that end became free.
 */
uint64_t fmlib_segment_tail(const struct fmlib_segment *segment);
uint64_t fmlib_segment_stamp(const struct fmlib_segment *segment);

/* Pools have copies of their providers, so the copies are compared. */
static inline bool
fmlib_is_same_provider(const struct flexmem_cache_provider *a,
		       const struct flexmem_cache_provider *b)
{
	return a->alloc == b->alloc && a->user == b->user;
}

static inline const struct flexmem_cache_provider *
fmlib_provider_of(const struct fmlib_segment *segment)
{
	return segment->arena->pool->provider;
}

static inline bool fmlib_segment_leaves(const struct fmlib_segment *segment)
{
	return atomic_load_explicit(&segment->leaving, memory_order_relaxed);
}

/* The bytes from an offset to the next one that suits a request. */
static inline uint64_t fmlib_skip(const struct fmlib_segment *segment,
				  uint64_t offset,
				  const struct fmlib_want *want)
{
	return -(segment->address.offset + offset) & want->mask;
}

/*
 * How many bytes a growing segment must grow for a request, if the last @tail
 * bytes are free; 0: none.
 */
static inline uint64_t fmlib_tail_lacks(const struct fmlib_segment *segment,
					uint64_t tail,
					const struct fmlib_want *want)
{
	uint64_t size = want->size +
			fmlib_skip(segment, segment->size - tail, want);

	return size > tail ? size - tail : 0;
}

/* Defined in pools.c. */
struct fmlib_pool *fmlib_pool_find(struct flexmem_cache *cache, uint64_t id);
void fmlib_pool_put(struct flexmem_cache *cache, struct fmlib_pool *pool);
/*
 * A hash. It must spread numbers of streams and pools, which are either small
 * or addresses.
 */
static inline size_t fmlib_arena_chain(uint64_t stream, uint64_t pool)
{
	return (fmlib_hash(stream) + pool) % FMLIB_CHAINS;
}

struct fmlib_arena *fmlib_arena_find(const struct flexmem_cache *cache,
				     const struct fmlib_want *want);

/*
 * Finds and pins an arena, or makes it. To make an arena, the whole cache must be
 * locked. Returns NULL if there is no host memory.
 */
struct fmlib_arena *fmlib_arena_get(struct flexmem_cache *cache,
				    const struct fmlib_want *want);
/*
 * Like fmlib_arena_get(), for the arena that all streams share, whose segments
 * count as large. The request has an owner.
 */
struct fmlib_arena *fmlib_arena_share(struct flexmem_cache *cache,
				      const struct fmlib_want *want);
void fmlib_arena_put(struct flexmem_cache *cache, struct fmlib_arena *arena);
/*
 * The largest free block, and its arena, which is NULL if there is no free
 * block.
 */
struct fmlib_largest {
	uint64_t size;
	const struct fmlib_arena *arena;
};

struct fmlib_largest fmlib_pools_largest(const struct flexmem_cache *cache);

/*
 * failure.c: finds the largest free block, and why it cannot serve the request.
 */
void fmlib_failure_largest(const struct flexmem_cache *cache,
			   struct fmlib_want *want);

/*
 * In offered.c. fmlib_memory_is_possible() returns whether @size bytes at the
 * address of the segment are a valid answer of the provider.
 * fmlib_memory_reject() returns memory that the cache cannot use to the
 * provider.
 */
bool fmlib_memory_is_possible(const struct flexmem_cache *cache,
			      const struct fmlib_segment *segment,
			      uint64_t size, uint64_t mask);
void fmlib_memory_reject(struct flexmem_cache *cache,
			 const struct fmlib_segment *segment);

/* Defined in segments.c. */
uint64_t fmlib_round_up(uint64_t size, uint64_t unit);
/*
 * Takes free memory like fmlib_obtain(), or else memory from the provider. On
 * failure @want->failure has the details.
 */
int fmlib_segment_obtain(struct flexmem_cache *cache, struct fmlib_want *want);
/*
 * Takes a fixed segment of just the request's size from the provider. Returns
 * -ENOMEM also if fmlib_segment_obtain() asks for such a segment.
 */
int fmlib_segment_exact(struct flexmem_cache *cache, struct fmlib_want *want);
/* The bytes of a segment that the cache could return to the provider now. */
uint64_t fmlib_segment_excess(const struct flexmem_cache *cache,
			      const struct fmlib_segment *segment);
/*
 * Like fmlib_segment_excess(), but not 0 for a segment of a private pool that
 * was not released. Such a segment normally stays in its pool.
 */
uint64_t fmlib_segment_spare(const struct flexmem_cache *cache,
			     const struct fmlib_segment *segment);
/* From now on a segment is returned as soon as it is free. */
void fmlib_segment_leave(struct fmlib_segment *segment);
/*
 * Asks the provider whether the segment was lost in a reset, and if so counts
 * its bytes as lost.
 */
bool fmlib_segment_is_lost(struct flexmem_cache *cache,
			   struct fmlib_segment *segment);
int fmlib_segment_give_back(struct flexmem_cache *cache,
			    struct fmlib_segment *segment, uint64_t *released);
/* The same, but of a growing segment only as much as reaches @bytes. */
int fmlib_segment_give_some(struct flexmem_cache *cache,
			    struct fmlib_segment *segment, uint64_t bytes,
			    uint64_t *released);
/*
 * Removes a segment from the cache, even if it has live blocks. Does not return
 * its memory to the provider. Another segment may reuse the struct.
 */
void fmlib_segment_forget(struct flexmem_cache *cache,
			  struct fmlib_segment *segment);

/*
 * Frees memory of a segment. Returns an empty segment to the provider if the
 * segment is leaving, or with backend:direct.
 */
void fmlib_put_back(struct flexmem_cache *cache,
		    const struct fmlib_found *found);
/* Calls fmlib_put_back() for the memory of a block that is no longer in use. */
void fmlib_settle(struct flexmem_cache *cache, struct fmlib_block *block);
/*
 * Asks a provider for the free and total bytes that the process can have.
 * Returns 0, -EOPNOTSUPP, or the error of the provider.
 */
int fmlib_provider_memory(const struct flexmem_cache_provider *provider,
			  uint64_t *free, uint64_t *total);
/* The same for the provider of the cache. */
int fmlib_memory_info(const struct flexmem_cache *cache, uint64_t *free,
		      uint64_t *total);
/* reclaim.c: the same times the cache's fraction. */
int fmlib_cache_memory(const struct flexmem_cache *cache, uint64_t *free,
		       uint64_t *total);
/* The same for the whole device, whatever the process can have. */
int fmlib_device_info(const struct flexmem_cache *cache, uint64_t *free,
		      uint64_t *total);
/*
 * Returns a share of what the process can have, in bytes. If that is unknown,
 * returns 0 and warns once.
 */
uint64_t fmlib_share_of_device(struct flexmem_cache *cache, double share);

/*
 * In spares.c: fmlib_spare_add() is called when a segment may have become one
 * that can be returned, and fmlib_spare_remove() before a piece of it is used.
 * The lane of the segment is locked.
 */
void fmlib_spare_add(struct fmlib_segment *segment);
void fmlib_spare_remove(struct fmlib_segment *segment);

/*
 * A segment that can be returned, and its place among them: by the bytes that
 * it could return, and of equal ones the younger one first.
 */
struct fmlib_excess {
	uint64_t size;
	uint64_t serial;
	struct fmlib_segment *segment;
};

static inline bool fmlib_excess_is_smaller(uint64_t size, uint64_t serial,
					   const struct fmlib_excess *than)
{
	return size != than->size ? size < than->size : serial > than->serial;
}

/*
 * In excess.c: finds the next larger or the next smaller segment. Returns false
 * if there is none. The whole cache is locked.
 */
bool fmlib_spare_next(const struct flexmem_cache *cache, bool larger,
		      struct fmlib_excess *place);
/* All of them, linked by @next_victim. The whole cache is locked. */
struct fmlib_segment *fmlib_spares(const struct flexmem_cache *cache,
				   size_t *count);
/*
 * The bytes that a request that has failed needs from the provider at least: for
 * a segment, or for the growth of one.
 */
uint64_t fmlib_segment_least(const struct flexmem_cache *cache,
			     const struct fmlib_want *want);
/* All segments by address. They are protected by the lock of the cache. */
void fmlib_place_add(struct flexmem_cache *cache,
		     struct fmlib_segment *segment);
void fmlib_place_remove(struct flexmem_cache *cache,
			struct fmlib_segment *segment);
/*
 * Whether another segment has one of @size bytes from the start of a segment,
 * which need not be among them.
 */
bool fmlib_place_is_taken(const struct flexmem_cache *cache,
			  const struct fmlib_segment *segment, uint64_t size);

/* Defined in reclaim.c. */
void fmlib_collect(struct flexmem_cache *cache);
/*
 * fmlib_reclaim_large() and fmlib_reclaim() return how many bytes the provider
 * got back.
 */
uint64_t fmlib_reclaim_large(struct flexmem_cache *cache, uint64_t size);
/*
 * Returns @bytes, or as much as is free, and not more than one segment too
 * many: adjacent segments that are large enough together, or else the largest
 * ones.
 */
uint64_t fmlib_reclaim_wanted(struct flexmem_cache *cache, uint64_t bytes,
			      int *error);
uint64_t fmlib_reclaim(struct flexmem_cache *cache, uint64_t bytes, int *error);
/* The same of the cache's provider only, not of pools with a provider of their own. */
uint64_t fmlib_reclaim_own(struct flexmem_cache *cache, uint64_t bytes,
			   int *error);

/*
 * pressure.c: fmlib_pressure_read() reads the next event without the lock. It
 * returns 0 or the reason why there is no event. fmlib_pressure_answer()
 * ignores the event if a later one was answered already. It returns 0 or an
 * error of the provider.
 */
int fmlib_pressure_read(struct flexmem_cache *cache,
			struct flexmem_pressure_event *event);
int fmlib_pressure_answer(struct flexmem_cache *cache,
			  const struct flexmem_pressure_event *event,
			  uint64_t *released);
/* Whether the last event was CRITICAL. */
bool fmlib_pressure_lasts(struct flexmem_cache *cache);
/*
 * Called again and again while CRITICAL lasts: returns memory if the program
 * has allocated nothing since the last call.
 */
void fmlib_pressure_look(struct flexmem_cache *cache);

/* Called while fmlib_wanted_lasts(): gives what became free, like the above. */
void fmlib_pressure_again(struct flexmem_cache *cache);

/*
 * wanted.c: under the lock. fmlib_wanted_answer() answers an event about what
 * another process lacks. fmlib_wanted_look() gives what a pause has delayed, and
 * what the program has freed since, if it has allocated nothing since the last
 * look. Both return the number of bytes that they have released. @released: what
 * the cache has released for the level of the same event, less than is lacking.
 */
uint64_t fmlib_wanted_answer(struct flexmem_cache *cache,
			     const struct flexmem_pressure_event *event,
			     uint64_t released, int *error);
uint64_t fmlib_wanted_look(struct flexmem_cache *cache);
/* Without the lock: whether another process still lacks memory. */
bool fmlib_wanted_lasts(struct flexmem_cache *cache);

/* helper.c: closes what a child inherited from the helper of its parent. */
void fmlib_helper_in_child(struct flexmem_cache *cache);

/* Defined in streams.c. */
/* Returns NULL if there is no host memory. */
struct fmlib_use *fmlib_use_new(struct flexmem_cache *cache, uint64_t stream);
/* @use may be NULL. */
void fmlib_use_drop(struct flexmem_cache *cache, struct fmlib_use *use);
void fmlib_use_begin(struct fmlib_block *block, struct fmlib_use *use);
int fmlib_use_add(struct flexmem_cache *cache, struct fmlib_block *block,
		  uint64_t stream);
/* Records events for the uses of a freed block with at least one use. */
void fmlib_uses_wait(struct flexmem_cache *cache, struct fmlib_block *block);
/*
 * Frees blocks whose events have happened. Does nothing while work is captured.
 * The caller holds the cache's lock and a lane's lock. This function locks the
 * other lanes too if a block may be freed.
 */
void fmlib_uses_poll(struct flexmem_cache *cache);
/* Records the deferred events, after the capture of work has ended. */
void fmlib_uses_resume(struct flexmem_cache *cache);
/*
 * fmlib_uses_synchronize() and fmlib_uses_synchronize_device() drop the lock
 * while they wait, and then free blocks that have waited.
 */
int fmlib_uses_synchronize(struct flexmem_cache *cache);
int fmlib_uses_synchronize_device(struct flexmem_cache *cache);
void fmlib_uses_forget(struct flexmem_cache *cache, bool destroy_events);

/*
 * borrow.c: finds a hole in another stream's segment for @want, with the whole
 * cache locked. Returns 0; -ENOMEM: no hole is safe to use.
 */
int fmlib_borrow(struct flexmem_cache *cache, struct fmlib_want *want);

/*
 * Defined in parts.c: the streams that use shared segments, and the free parts
 * that their work may still use. The caller holds the lock of the share.
 */

/* Finds or makes the owner of a stream. Returns NULL if there is no memory. */
struct fmlib_owner *fmlib_owner_get(struct fmlib_share *share,
				    struct fmlib_lane *lane, uint64_t stream);
/* Frees an owner, unless it is still needed. */
void fmlib_owner_put(struct flexmem_cache *cache, struct fmlib_owner *owner);
/* Forgets the first event of an owner, and destroys it if @destroy. */
void fmlib_epoch_drop(struct flexmem_cache *cache, struct fmlib_owner *owner,
		      bool destroy);

static inline uint64_t fmlib_part_end(const struct fmlib_pending *part)
{
	return part->offset + part->size;
}

/* The first part that ends behind @offset, or NULL. */
struct fmlib_pending *fmlib_part_from(const struct fmlib_segment *segment,
				      uint64_t offset);
/* Prepares spare parts. Returns 0 or -ENOMEM. */
int fmlib_parts_prepare(struct fmlib_share *share, size_t count);
/* Adds a part of the present epoch. The caller has prepared a spare part. */
void fmlib_part_add(struct fmlib_share *share, struct fmlib_segment *segment,
		    struct fmlib_owner *owner, uint64_t offset, uint64_t size);
/* Removes a part. This may free its owner. */
void fmlib_part_remove(struct flexmem_cache *cache,
		       struct fmlib_pending *part);
/* From now on no part of the interval is pending. */
void fmlib_parts_clear(struct flexmem_cache *cache,
		       struct fmlib_segment *segment, uint64_t offset,
		       uint64_t end);

/* Defined in share.c: the shared segments. */

/* Whether requests of this pool may get shared memory. */
static inline bool fmlib_share_serves(const struct flexmem_cache *cache,
				      const struct fmlib_pool *pool)
{
	return !pool->id && cache->config.reuse != FMLIB_REUSE_OWN &&
	       (cache->expandable || cache->share.arena);
}

/*
 * Whether only another stream has used the shared segments so far.
 * fmlib_share_open() lets the stream of the request in. It may lock the whole
 * cache. It returns 0 or -ENOMEM.
 */
bool fmlib_share_is_shut(const struct flexmem_cache *cache,
			 const struct fmlib_want *want);
int fmlib_share_open(struct flexmem_cache *cache,
		     const struct fmlib_want *want);
/*
 * Sets the owner of a request that may get shared memory, until
 * fmlib_share_leave(). The caller holds the cache's lock and the lane's; the
 * function may lock the whole cache. Returns 0 or -ENOMEM.
 */
int fmlib_share_join(struct flexmem_cache *cache, struct fmlib_want *want);
void fmlib_share_leave(struct flexmem_cache *cache, struct fmlib_want *want);
/* An arena for shared segments has come, for a first stream, and has gone. */
void fmlib_share_begin(struct flexmem_cache *cache, struct fmlib_arena *arena,
		       struct fmlib_owner *owner);
void fmlib_share_end(struct flexmem_cache *cache);
/* Frees all host memory. The segments are gone. */
void fmlib_share_free_all(struct flexmem_cache *cache, bool destroy_events);

/*
 * Defined in kept.c: what streams freed last and keep for themselves. See kept.h
 * too.
 */

/*
 * Frees a simple block (hit.c) of a locked lane, but keeps its memory for its
 * stream. Returns false, without a change, if the memory cannot be kept.
 */
bool fmlib_keep(struct flexmem_cache *cache, struct fmlib_lane *lane,
		const struct fmlib_block *block);
/*
 * For a request that has found no place: takes back what all streams keep.
 * Returns whether there was anything.
 */
bool fmlib_take_back(struct flexmem_cache *cache,
		       const struct fmlib_want *want);
/* The same with the whole cache locked. Does nothing in a forked child. */
void fmlib_take_back_all(struct flexmem_cache *cache);

/* Locks a segment, if several streams use it. */
static inline void fmlib_share_lock(struct flexmem_cache *cache,
				    const struct fmlib_segment *segment)
{
	if (segment->tracks)
		fmlib_lock_take(&cache->share.lock);
}

static inline void fmlib_share_unlock(struct flexmem_cache *cache,
				      const struct fmlib_segment *segment)
{
	if (segment->tracks)
		fmlib_lock_drop(&cache->share.lock);
}

/*
 * These functions are for locked segments that track. fmlib_share_reserve() is
 * like fmlib_reserve(). fmlib_share_tail() returns how many bytes of the free
 * end a stream can use.
 */
int fmlib_share_reserve(struct flexmem_cache *cache,
			struct fmlib_segment *segment, struct fmlib_want *want);
void fmlib_share_free(struct flexmem_cache *cache,
		      struct fmlib_segment *segment, struct fmlib_owner *owner,
		      uint64_t offset, uint64_t size);
/*
 * Counts frees of a stream, and may record an event. The segments are locked,
 * and the stream has blocks.
 */
void fmlib_share_count(struct flexmem_cache *cache, struct fmlib_owner *owner,
		       uint32_t frees);
uint64_t fmlib_share_tail(const struct fmlib_segment *segment,
			  const struct fmlib_owner *owner);
/* No part from @end on is pending. The whole cache is locked. */
void fmlib_share_cut(struct flexmem_cache *cache,
		     struct fmlib_segment *segment, uint64_t end);
/*
 * Queries the events of the other streams. Returns whether one has happened.
 */
bool fmlib_share_poll(struct flexmem_cache *cache,
		      const struct fmlib_want *want);
/*
 * Takes memory that work of other streams may still use. The stream of the
 * request waits for this work. @is_short: the provider has refused more memory;
 * otherwise the segments first grow to a little more than the peak of live
 * bytes. Returns 0; -ENOENT: there is none, or the stream cannot wait; or
 * -ENOMEM: no host memory.
 */
int fmlib_share_wait(struct flexmem_cache *cache, struct fmlib_want *want,
		     bool is_short);
/*
 * Before and after a synchronization of the device: ends the epoch, and notes
 * that it is done. The whole cache is locked.
 */
uint64_t fmlib_share_mark(struct flexmem_cache *cache);
void fmlib_share_done(struct flexmem_cache *cache, uint64_t epoch);

/*
 * private.c: returns the pool that flexmem_cache_pool_begin() selects for a
 * stream, or the common pool.
 */
struct fmlib_pool *fmlib_selected_pool(struct flexmem_cache *cache,
				       uint64_t stream);

/*
 * private.c: returns the free memory of a private pool to the provider, unless
 * it has to stay. Returns how many bytes the provider got back.
 */
uint64_t fmlib_pool_reclaim(struct flexmem_cache *cache,
			    const struct fmlib_pool *pool);
/*
 * private.c: returns the number of a private pool, or 0.
 * flexmem_cache_pool_empty() of that pool could help a request that has failed.
 * Of several such pools it is the one that keeps the most free memory. @left: what
 * the cache's provider could still give.
 */
uint64_t fmlib_pools_keeper(const struct flexmem_cache *cache,
			    const struct fmlib_want *want, uint64_t left);

/*
 * Defined in others.c: gives other processes time to free memory, if they can
 * help. Returns what the last attempt returned; -ENOMEM without an attempt if
 * no other process can help; or -ECHILD.
 */
int fmlib_others_wait(struct flexmem_cache *cache, struct fmlib_want *want);

/* Defined in ladder.c. */
int fmlib_ladder(struct flexmem_cache *cache, struct fmlib_want *want);

/* hit.c: frees a token that has no entry in a table of pointers any more. */
int fmlib_free(struct flexmem_cache *cache, const void *token);

/* cache.c: the slow paths of flexmem_cache_alloc() and flexmem_cache_free(). */
int fmlib_cache_alloc(struct flexmem_cache *cache, uint64_t bytes,
		      uint64_t stream, void **token);
int fmlib_cache_free(struct flexmem_cache *cache, const void *token);
/* The last steps of an allocation and of a free. The whole cache is locked. */
void fmlib_cache_make(struct flexmem_cache *cache,
		      const struct fmlib_want *want, struct fmlib_block *block);
void fmlib_cache_give(struct flexmem_cache *cache, struct fmlib_block *block);

/* Defined in tags.c. */
struct fmlib_tag *fmlib_tag_find(struct flexmem_cache *cache, const char *tag);

void fmlib_tag_add(struct fmlib_tag *tag, const struct fmlib_block *block);
void fmlib_tag_subtract(struct fmlib_tag *tag, const struct fmlib_block *block);
void fmlib_tags_reset_peaks(struct flexmem_cache *cache);
void fmlib_tags_free(struct flexmem_cache *cache);

/* Defined in sizes.c. */
uint64_t fmlib_size_divided(const struct flexmem_cache *cache, uint64_t bytes);

/*
 * Rounds a size. @bytes is not 0, and small enough that rounding does not
 * overflow.
 */
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
	return !cache->one_kind && size <= cache->profile.small_limit ?
	       FLEXMEM_CACHE_SMALL : FLEXMEM_CACHE_LARGE;
}

/* Whether a growing segment may serve the request. */
bool fmlib_size_grows(const struct flexmem_cache *cache,
		      const struct fmlib_want *want);
/*
 * Whether a new segment for the request grows. A device rounds the length of a segment
 * up to its alignment. With an alignment that does not divide the growing step, each
 * step would take more than what the cache counts, so the segment is fixed.
 */
bool fmlib_size_begins_growing(const struct flexmem_cache *cache,
			       const struct fmlib_want *want);
/* The bytes of a new segment: what a device would round them up to. */
uint64_t fmlib_size_segment(const struct flexmem_cache *cache,
			    const struct fmlib_want *want);
/* The bytes of the smallest segment that can serve the request. */
uint64_t fmlib_size_least(const struct fmlib_want *want);

#endif /* FMLIB_CACHE_H */
