// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of the answers of a function's driver. Shared by the files
 * function*.c.
 *
 * A driver passes on what its firmware says, and firmware has bugs. So each
 * answer is checked. An errno must be one that the contract lists. A wrong
 * answer becomes -EIO for the caller, and the first one is reported in the log.
 */

#include <linux/atomic.h>
#include <linux/device.h>
#include <linux/errno.h>

#include "gate/function.h"
#include "trace.h"

/*
 * Handles a driver that has lost control of its device: an access to device
 * memory or to a buffer may still be in flight. Only a reset ends such an
 * access, so from here on the function takes nothing but a reset.
 * Return: -EIO.
 */
static int fail(struct flexmem_function *function, const char *operation)
{
	flexmem_function_fail(function);
	dev_err(function->dev,
		"%s failed, and bytes may still move: nothing but a reset works\n",
		operation);
	return -EIO;
}

/*
 * Handles a wrong answer. Logs only the first wrong answer, because a faulty
 * device usually repeats its mistake.
 * @what: what is wrong. @value: the wrong value.
 * Return: -EIO.
 */
int flexmem_function_distrust(struct flexmem_function *function,
			      const char *operation, const char *what,
			      long long value)
{
	if (!atomic_xchg(&function->distrusted, 1))
		dev_err(function->dev,
			"the device is not to be trusted: %s answered %s %lld\n",
			operation, what, value);
	return -EIO;
}

/*
 * Checks the errno of an answer. @may_be_full: -ENOSPC is a valid answer.
 * Return: @rc; or -EIO if the function has failed, or if the contract does not
 * permit that error.
 */
int flexmem_function_check(struct flexmem_function *function,
			   const char *operation, int rc, bool may_be_full)
{
	trace_flexmem_command(function, operation, rc);
	switch (rc) {
	case -ENOSPC:
		if (!may_be_full)
			break;
		fallthrough;
	case 0:
	case -ETIMEDOUT:
	case -EIO:
	case -EINTR:
	case -ENODEV:
	case -ENOMEM:
		return rc;
	case -ENOTRECOVERABLE:
		return fail(function, operation);
	}
	return flexmem_function_distrust(function, operation, "error", rc);
}

/*
 * Checks the errno of an answer as flexmem_function_check() does, and notes
 * whether the firmware has answered.
 */
int flexmem_function_outcome(struct flexmem_function *function,
			     const char *operation, int rc, bool may_be_full)
{
	rc = flexmem_function_check(function, operation, rc, may_be_full);
	return flexmem_function_note(function, rc);
}
