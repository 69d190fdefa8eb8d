/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A lock for data that one thread locks most of the time. It costs one atomic
 * instruction. A mutex costs two; the second one would be a tenth of the cost
 * of an allocation. lock.c describes it.
 */
#ifndef FMLIB_LOCK_H
#define FMLIB_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

struct fmlib_lock {
	atomic_uint taken;
	atomic_uint waiters;
};

/*
 * Whether waiting threads call membarrier(), so that an unlock needs no barrier
 * of its own.
 */
extern bool fmlib_lock_light __attribute__((visibility("hidden")));

/* Must be called before the first lock is used, and in a forked child. */
void fmlib_lock_start(void);
void fmlib_lock_wait(struct fmlib_lock *lock);
void fmlib_lock_wake(struct fmlib_lock *lock);

static inline bool fmlib_lock_try(struct fmlib_lock *lock)
{
	unsigned int no = 0;

	return atomic_compare_exchange_strong_explicit(&lock->taken, &no, 1,
						       memory_order_acquire,
						       memory_order_relaxed);
}

static inline void fmlib_lock_take(struct fmlib_lock *lock)
{
	if (!fmlib_lock_try(lock))
		fmlib_lock_wait(lock);
}

static inline void fmlib_lock_drop(struct fmlib_lock *lock)
{
	unsigned int waiters;

	if (fmlib_lock_light) {
		atomic_store_explicit(&lock->taken, 0, memory_order_release);
		/*
		 * The compiler must not move the load before the store.
		 * membarrier() of the waiting thread orders both on the
		 * processor.
		 */
		atomic_signal_fence(memory_order_seq_cst);
		waiters = atomic_load_explicit(&lock->waiters,
					       memory_order_relaxed);
	} else {
		atomic_exchange(&lock->taken, 0);
		waiters = atomic_load(&lock->waiters);
	}
	if (waiters)
		fmlib_lock_wake(lock);
}

#endif /* FMLIB_LOCK_H */
