/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Finds and locks lanes. cache.h says what each lock protects. */
#ifndef FMLIB_LANES_H
#define FMLIB_LANES_H

#include "structs.h"

/* The number of this thread. It is 0 until the thread needs a number. */
extern _Thread_local uint64_t fmlib_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Fibonacci hashing: the upper bits depend on all bits of the number. */
static inline uint64_t fmlib_hash(uint64_t number)
{
	return number * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

/* The i-th index at which a stream's lane may be. */
static inline size_t fmlib_lane_place(uint64_t stream, size_t i)
{
	return (fmlib_hash(stream) + i) % FMLIB_LANES;
}

static inline struct fmlib_lane *
fmlib_lane_at(const struct flexmem_cache *cache, size_t place)
{
	return atomic_load_explicit(&cache->lanes[place], memory_order_acquire);
}

struct fmlib_lane *fmlib_lane_seek(const struct flexmem_cache *cache,
				   uint64_t stream);

/* Finds the lane of a stream, without a lock. NULL: the stream has no lane. */
static inline struct fmlib_lane *
fmlib_lane_find(const struct flexmem_cache *cache, uint64_t stream)
{
	struct fmlib_lane *lane =
		fmlib_lane_at(cache, fmlib_lane_place(stream, 0));

	return lane && lane->stream == stream ? lane :
	       fmlib_lane_seek(cache, stream);
}

/* Disables cancellation of the thread. Returns the earlier state. */
static inline int fmlib_cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void fmlib_cancel_as(int state)
{
	pthread_setcancelstate(state, NULL);
}

/*
 * Locks the whole cache; the caller holds no lock. The thread cannot be
 * cancelled until the unlock.
 */
void fmlib_lock(struct flexmem_cache *cache);
/*
 * Locks the cache and the stream's lane. Makes the lane if there is none.
 * Returns 0, or -ENOMEM: then nothing is locked.
 */
int fmlib_lock_stream(struct flexmem_cache *cache, uint64_t stream,
		      struct fmlib_lane **lane);
/*
 * Locks the whole cache for a caller that has used fmlib_lock_stream(). Unlocks
 * the lane for a moment, so that all lanes are locked in order.
 */
void fmlib_lock_rest(struct flexmem_cache *cache);
void fmlib_unlock(struct flexmem_cache *cache);
/*
 * fmlib_pause() unlocks in the middle of a call. fmlib_go_on() takes the result
 * of fmlib_pause(), and locks the whole cache again. The thread cannot be
 * cancelled in between. If the thread is in a forked child by then,
 * fmlib_go_on() returns -ECHILD, and the caller must not touch the cache.
 */
int fmlib_pause(struct flexmem_cache *cache);
int fmlib_go_on(struct flexmem_cache *cache, int state)
	__attribute__((warn_unused_result));
/*
 * Lock and unlock without a change of the thread's cancellation, for a fork.
 * Streams may still keep blocks then.
 */
void fmlib_lock_raw(struct flexmem_cache *cache);
void fmlib_unlock_raw(struct flexmem_cache *cache);
/* Whether a simple allocation or free of this thread locks only a lane. */
static inline bool fmlib_lane_serves(const struct flexmem_cache *cache)
{
	return !cache->served || cache->served == fmlib_thread;
}

/*
 * Notes that this thread allocates or frees. The caller has locked the whole
 * cache.
 */
void fmlib_lane_admit(struct flexmem_cache *cache);
/* Adds a lane's counts to the cache's account. */
void fmlib_lane_add_up(struct flexmem_cache *cache, struct fmlib_lane *lane);

/* Ends an operation that has locked only a lane. */
static inline void fmlib_lane_done(struct flexmem_cache *cache,
				   struct fmlib_lane *lane)
{
	if (cache->apart &&
	    ++lane->account.operations >= FMLIB_OPERATIONS_APART)
		fmlib_lane_add_up(cache, lane);
}

void fmlib_lanes_free(struct flexmem_cache *cache);

static inline struct fmlib_lane *fmlib_lane_of(const struct fmlib_block *block)
{
	return block->segment->shared ? block->owner->lane :
	       block->segment->arena->lane;
}

/* The stream that may use a block again without an event. */
static inline uint64_t fmlib_stream_of(const struct fmlib_block *block)
{
	return block->segment->shared ? block->owner->stream :
	       block->segment->arena->stream;
}

/*
 * Returns the account in which the lane counts at present: its own, or the
 * cache's.
 */
static inline struct fmlib_account *
fmlib_account(struct flexmem_cache *cache, struct fmlib_lane *lane)
{
	return cache->apart ? &lane->account : &cache->account;
}

#endif /* FMLIB_LANES_H */
