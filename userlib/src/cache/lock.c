// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The lock of lanes. An unlock writes @taken and then reads @waiters; whoever
 * waits writes @waiters and then reads @taken. If one of the two saw neither
 * what the other wrote, nobody would be woken, so both need a barrier in
 * between. Unlocks are many and waits are few: so the one who waits has
 * membarrier() make one on every processor that runs a thread of this process.
 * An unlock before it is seen, and one after it sees who waits. Where the kernel
 * has no such call every unlock has its own barrier.
 *
 * A process may come to forbid itself that call later, as by seccomp, when unlocks
 * count on it already. Nothing is locked twice then, but an unlock may not see
 * who waits: so who waits looks again after a moment, by himself.
 *
 * Nobody wakes the one that is about to sleep: it only does while @taken is
 * still set, which the kernel looks at; and as long as it is in @waiters every
 * unlock wakes one.
 */
#include "lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What is done under such a lock takes less than this takes to look at it. */
#define LOOKS 100

/* Where nobody may wake one: some thousand times as long as that. */
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
	/* Whoever has just unlocked, and locks again, is not always faster. */
	while (!look(lock))
		syscall(SYS_futex, &lock->taken, FUTEX_WAIT_PRIVATE, 1, limit,
			NULL, 0);
	atomic_fetch_sub(&lock->waiters, 1);
}

void fmlib_lock_wake(struct fmlib_lock *lock)
{
	syscall(SYS_futex, &lock->taken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
