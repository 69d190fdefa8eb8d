// SPDX-License-Identifier: GPL-2.0
/*
 * The state of a function decides when its driver can be called.
 *
 * The driver is called under acquire_lock or data_lock, and in a page fault
 * under map_lock. Suspend, reset and removal change the state first and then
 * take these locks. A task that holds one of these locks may finish its
 * operation, and calls flexmem_function_error() before it begins another.
 *
 * A function here that does not say "may sleep" can be called in any context,
 * also in an interrupt.
 */

#include <linux/device.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/wait.h>

#include "gate/function.h"
#include "trace.h"

/*
 * By state: the error for a caller that needs the device. -EAGAIN means that
 * the caller waits.
 */
static const int errors[] = {
	[FLEXMEM_STATE_UP] = 0,
	[FLEXMEM_STATE_UNRESPONSIVE] = -EAGAIN,
	[FLEXMEM_STATE_SUSPENDED] = -EAGAIN,
	[FLEXMEM_STATE_WEDGED] = -EIO,
	[FLEXMEM_STATE_GONE] = -ENODEV,
};

/* Called with state_lock held. */
static void set_state(struct flexmem_function *function,
		      enum flexmem_state state)
{
	/*
	 * Pairs with flexmem_function_error(): a caller that finds the function
	 * up also sees all earlier writes, for example those of a driver that
	 * has woken the device.
	 */
	smp_store_release(&function->state, state);
	trace_flexmem_state(function, state);
}

/*
 * Enters @state. A suspended function enters FLEXMEM_STATE_GONE at once, and any
 * other state at its resume. FLEXMEM_STATE_GONE is final. Called with state_lock
 * held.
 */
static void enter(struct flexmem_function *function, enum flexmem_state state)
{
	if (function->state == FLEXMEM_STATE_SUSPENDED && state != FLEXMEM_STATE_GONE)
		function->resumes_as = state;
	else if (function->state != FLEXMEM_STATE_GONE)
		set_state(function, state);
}

/*
 * Changes the state of a function.
 * @state: FLEXMEM_STATE_UP, FLEXMEM_STATE_WEDGED or FLEXMEM_STATE_GONE; see enter().
 */
void flexmem_function_enter(struct flexmem_function *function,
			    enum flexmem_state state)
{
	unsigned long flags;

	spin_lock_irqsave(&function->state_lock, flags);
	enter(function, state);
	spin_unlock_irqrestore(&function->state_lock, flags);
	wake_up_all(&function->changed);
}

/*
 * The device has failed. The function stays wedged until a reset that begins
 * later succeeds.
 */
void flexmem_function_fail(struct flexmem_function *function)
{
	unsigned long flags;

	spin_lock_irqsave(&function->state_lock, flags);
	WRITE_ONCE(function->failures, function->failures + 1);
	enter(function, FLEXMEM_STATE_WEDGED);
	spin_unlock_irqrestore(&function->state_lock, flags);
	wake_up_all(&function->changed);
}

/*
 * The device was reset. The function is up afterwards unless it has failed
 * again. @failures: number of failures before the reset operation was called.
 * Return: 0; or -EIO if the device has failed since: the function stays wedged.
 */
int flexmem_function_recover(struct flexmem_function *function,
			     unsigned int failures)
{
	unsigned long flags;
	bool failed;

	spin_lock_irqsave(&function->state_lock, flags);
	failed = function->failures != failures;
	if (!failed) {
		WRITE_ONCE(function->repaired, failures);
		enter(function, FLEXMEM_STATE_UP);
	}
	spin_unlock_irqrestore(&function->state_lock, flags);
	wake_up_all(&function->changed);
	return failed ? -EIO : 0;
}

/* Suspends a function: no operation begins until flexmem_function_resume(). */
void flexmem_function_suspend(struct flexmem_function *function)
{
	unsigned long flags;

	spin_lock_irqsave(&function->state_lock, flags);
	if (function->state != FLEXMEM_STATE_SUSPENDED &&
	    function->state != FLEXMEM_STATE_GONE) {
		function->resumes_as = function->state;
		set_state(function, FLEXMEM_STATE_SUSPENDED);
	}
	spin_unlock_irqrestore(&function->state_lock, flags);
}

/*
 * Leaves the suspended state. The function returns to its state before the
 * suspend, unless it was told to enter another state since.
 */
void flexmem_function_resume(struct flexmem_function *function)
{
	unsigned long flags;

	spin_lock_irqsave(&function->state_lock, flags);
	if (function->state == FLEXMEM_STATE_SUSPENDED)
		set_state(function, function->resumes_as);
	spin_unlock_irqrestore(&function->state_lock, flags);
	wake_up_all(&function->changed);
}

/*
 * Why the driver cannot be called now: -EAGAIN if the function is suspended or
 * unresponsive; -EIO if it is wedged; -ENODEV if it has gone; or 0. Suspend,
 * reset and removal wait for the caller only if the caller holds a lock under
 * which the driver is called.
 */
int flexmem_function_error(const struct flexmem_function *function)
{
	/* Pairs with set_state(). */
	return errors[smp_load_acquire(&function->state)];
}

/*
 * Why the driver cannot be called, even after a wait: -EIO if the function is
 * wedged, -ENODEV if it has gone. 0 in any other state: the function is up, or
 * a wait for it can end.
 */
int flexmem_function_fatal(const struct flexmem_function *function)
{
	int error = flexmem_function_error(function);

	return error == -EAGAIN ? 0 : error;
}

/*
 * Waits until the device can take a command. Waits until a suspended function
 * resumes, or until the next probe of an unresponsive one has a result. A
 * waiting caller can be frozen, so that it does not keep the system from going
 * to sleep.
 * Context: may sleep. Return: 0; -EINTR if the caller was killed; -ETIMEDOUT if
 * the probe timed out; -EIO if the function is wedged; or -ENODEV if it has
 * gone.
 */
int flexmem_function_wait(struct flexmem_function *function)
{
	unsigned int probes = READ_ONCE(function->probes);
	int error;

	if (wait_event_state(function->changed,
			     flexmem_function_error(function) != -EAGAIN ||
			     READ_ONCE(function->probes) != probes,
			     (TASK_KILLABLE | TASK_FREEZABLE)))
		return -EINTR;
	error = flexmem_function_error(function);
	return error == -EAGAIN ? -ETIMEDOUT : error;
}

/*
 * Waits until the function is not suspended. May sleep. A waiting caller can be
 * frozen. Return: 0, or -EINTR if the caller was killed.
 */
int flexmem_function_wait_awake(struct flexmem_function *function)
{
	return wait_event_state(function->changed,
				!flexmem_function_is_suspended(function),
				(TASK_KILLABLE | TASK_FREEZABLE)) ? -EINTR : 0;
}

/*
 * Takes data_lock to call the driver. Waits as flexmem_function_wait() does,
 * then takes the lock. If the function was suspended or became unresponsive in
 * between, drops the lock and waits again.
 * Context: may sleep. Return: 0 with the lock held, or an error of
 * flexmem_function_wait().
 */
int flexmem_function_lock_data(struct flexmem_function *function)
{
	int rc;

	do {
		rc = flexmem_function_wait(function);
		if (rc)
			return rc;
		if (mutex_lock_killable(&function->data_lock))
			return -EINTR;
		rc = flexmem_function_error(function);
		if (rc)
			mutex_unlock(&function->data_lock);
	} while (rc == -EAGAIN);
	return rc;
}

/*
 * Queues the worker's probe and retries. The caller need not know whether
 * anything is pending: the worker checks.
 */
void flexmem_function_work_later(struct flexmem_function *function)
{
	unsigned int most = flexmem_function_is_unresponsive(function) ?
		FLEXMEM_PROBE_DOUBLINGS : FLEXMEM_WORK_DOUBLINGS;
	u64 ms = (u64)function->work_ms << min(READ_ONCE(function->work_tries), most);

	if (function->worker)
		queue_delayed_work(function->worker, &function->work,
				   msecs_to_jiffies(min_t(u64, ms, INT_MAX)));
}

/*
 * Changes the state from @from to another one. Returns false, and changes
 * nothing, if the state was not @from.
 */
static bool change_over(struct flexmem_function *function,
			enum flexmem_state from, enum flexmem_state to)
{
	unsigned long flags;
	bool changes;

	spin_lock_irqsave(&function->state_lock, flags);
	changes = function->state == from;
	if (changes)
		set_state(function, to);
	spin_unlock_irqrestore(&function->state_lock, flags);
	return changes;
}

/*
 * Notes whether the firmware answers, and returns @rc, the result of a command.
 */
int flexmem_function_note(struct flexmem_function *function, int rc)
{
	if (rc == -ETIMEDOUT) {
		atomic64_inc(&function->all_timeouts);
		if (atomic_inc_return(&function->timeouts) < FLEXMEM_TIMEOUTS ||
		    !change_over(function, FLEXMEM_STATE_UP, FLEXMEM_STATE_UNRESPONSIVE))
			return rc;
		dev_warn(function->dev,
			 "does not answer; callers wait for the next probe\n");
		flexmem_function_work_later(function);
	} else if (!rc || rc == -ENOSPC) {
		/* A firmware that answers with -ENOSPC is alive. */
		if (atomic_read(&function->timeouts))
			atomic_set(&function->timeouts, 0);
		if (!flexmem_function_is_unresponsive(function) ||
		    !change_over(function, FLEXMEM_STATE_UNRESPONSIVE, FLEXMEM_STATE_UP))
			return rc;
		dev_info(function->dev, "answers again\n");
		wake_up_all(&function->changed);
	}
	return rc;
}
