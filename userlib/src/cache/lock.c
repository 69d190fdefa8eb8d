// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * How the lock works: an unlock writes @taken and then reads @waiters. A
 * waiting thread writes @waiters and then reads @taken. If neither saw the
 * other's write, the waiting thread would sleep for ever, so both sides need a
 * barrier between their two accesses. Unlocks are frequent and waits are rare.
 * So the waiting thread calls membarrier(), which executes a barrier on every
 * processor that runs a thread of this process. The waiting thread then sees
 * every earlier unlock, and every later unlock sees @waiters. Where the kernel
 * has no membarrier(), every unlock has its own barrier.
 *
 * A process may forbid itself membarrier() later, with seccomp for example,
 * although unlocks already rely on it. Then the lock is still exclusive, but an
 * unlock may miss @waiters. So a waiting thread checks the lock again after a
 * moment.
 *
 * No wake-up is lost just before a thread sleeps: the kernel lets the thread
 * sleep only while @taken is still set. While a thread is counted in @waiters,
 * every unlock wakes one thread.
 */
#include "lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * How many times a thread reads the lock before it sleeps. That takes longer
 * than a lock is usually held.
 */
#define LOOKS 100

/*
 * Longest sleep if membarrier() fails, some thousand times as long as a lock is
 * usually held.
 */
#define MOMENT_NS 1000000

bool fmlib_lock_light;

static bool barrier(int command)
{
	return !syscall(SYS_membarrier, command, 0, 0);
}

void fmlib_lock_start(void)
{
	fmlib_lock_light =
		barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
		barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

static bool look(struct fmlib_lock *lock)
{
	unsigned int i;

	for (i = 0; i < LOOKS; i++) {
		if (!atomic_load_explicit(&lock->taken, memory_order_relaxed) &&
		    fmlib_lock_try(lock))
			return true;
	}
	return false;
}

void fmlib_lock_wait(struct fmlib_lock *lock)
{
	static const struct timespec moment = { .tv_nsec = MOMENT_NS };
	const struct timespec *limit = NULL;

	if (look(lock))
		return;
	atomic_fetch_add(&lock->waiters, 1);
	if (fmlib_lock_light && !barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		limit = &moment;
	/*
	 * look() reads the lock many times before each sleep. If this thread
	 * only slept, a thread that unlocks and locks again would always be
	 * faster.
	 */
	while (!look(lock))
		syscall(SYS_futex, &lock->taken, FUTEX_WAIT_PRIVATE, 1, limit,
			NULL, 0);
	atomic_fetch_sub(&lock->waiters, 1);
}

void fmlib_lock_wake(struct fmlib_lock *lock)
{
	syscall(SYS_futex, &lock->taken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
