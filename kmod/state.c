// SPDX-License-Identifier: GPL-2.0
/*
 * When a function's driver can be called: not when it goes, not while it sleeps,
 * and after a reset that has failed only by the next one.
 *
 * Who removes or resets the function, or puts it to sleep, says so here first, and
 * then waits for the locks under which the driver is called: acquire_lock and
 * data_lock, and for a page fault map_lock. Who has one of them may finish the
 * operation under way, and looks here before the next one.
 */

#include <linux/errno.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>

#include "compat.h"
#include "function.h"

/**
 * flexmem_function_error - why the driver cannot be called now
 * @function: function
 *
 * Context: any; but only who holds a lock under which the driver is called is
 * waited for if it changes.
 * Return: 0, -ENODEV if the device goes, -EIO if it could not be reset, or
 * -EAGAIN if it sleeps.
 */
int flexmem_function_error(const struct flexmem_function *function)
{
	if (READ_ONCE(function->closing))
		return -ENODEV;
	if (READ_ONCE(function->needs_reset))
		return -EIO;
	return READ_ONCE(function->suspended) ? -EAGAIN : 0;
}

/**
 * flexmem_function_wait_awake - wait until the device is awake, or goes
 * @function: function
 *
 * Who waits can be frozen: the device wakes up after the processes do.
 *
 * Context: may sleep.
 * Return: 0, or -EINTR if the caller was killed.
 */
int flexmem_function_wait_awake(struct flexmem_function *function)
{
	if (wait_event_state(function->resumed,
			     !READ_ONCE(function->suspended) ||
			     READ_ONCE(function->closing),
			     (TASK_KILLABLE | TASK_FREEZABLE)))
		return -EINTR;
	return 0;
}

/**
 * flexmem_function_lock - take a lock under which the driver is called
 * @function: function
 * @lock: acquire_lock or data_lock of its table
 *
 * Once the device is awake. The wait for it to wake up is repeated only if it has
 * fallen asleep again.
 *
 * Context: may sleep.
 * Return: 0, -EINTR if the caller was killed, -ENODEV if the device goes, or
 * -EIO if it could not be reset.
 */
int flexmem_function_lock(struct flexmem_function *function, struct mutex *lock)
{
	int rc;

	do {
		if (flexmem_function_wait_awake(function) ||
		    mutex_lock_killable(lock))
			return -EINTR;
		rc = flexmem_function_error(function);
		if (!rc)
			return 0;
		mutex_unlock(lock);
	} while (rc == -EAGAIN && !fatal_signal_pending(current));
	return rc == -EAGAIN ? -EINTR : rc;
}

/**
 * flexmem_function_lock_to_move - likewise, unless the firmware may be dead
 * @function: function
 * @lock: data_lock of its table
 * @claim: receives, if the lock is taken, what flexmem_function_leave_probe()
 *	takes from who finds that it has nothing to ask
 *
 * For who would ask it to move data. Whoever did that would wait for a time-out;
 * one caller an interval may try (D28).
 *
 * Context: may sleep.
 * Return: as flexmem_function_lock(), or -EAGAIN if the firmware is not to be
 * asked now.
 */
int flexmem_function_lock_to_move(struct flexmem_function *function,
				  struct mutex *lock, unsigned long *claim)
{
	int timeouts = atomic_read(&function->timeouts), rc;

	if (!flexmem_function_claim_probe(function, claim))
		return -EAGAIN;
	rc = flexmem_function_lock(function, lock);
	if (!rc && flexmem_function_heard_timeout(function, timeouts)) {
		mutex_unlock(lock);
		rc = -EAGAIN;
	} else if (rc) {
		flexmem_function_leave_probe(function, *claim);
	}
	return rc;
}
