// SPDX-License-Identifier: GPL-2.0
/*
 * Calls to the driver of a function that move data; function.c has the checks
 * of answers. These calls change only bytes, so a call without an answer leaves
 * nothing to undo. They do not check to whom the bytes belong: the callers do.
 */

#include <linux/lockdep.h>
#include <linux/minmax.h>

#include "function.h"
#include "trace.h"

/**
 * flexmem_function_scrub - zero memory of the device
 * @function: function that can do that
 * @mem: memory that it holds
 * @offset: where to begin
 * @size: bytes, at most FLEXMEM_SCRUB_MAX
 *
 * Context: under data_lock. May sleep.
 * Return: 0 or an error of the firmware.
 */
int flexmem_function_scrub(struct flexmem_function *function,
			   const struct flexmem_memory *mem, u64 offset,
			   u64 size)
{
	int rc;

	lockdep_assert_held(&function->data_lock);
	rc = function->ops.scrub(function->priv, mem, offset, size);
	rc = flexmem_function_outcome(function, "scrub", rc, false);
	trace_flexmem_scrub(function, mem, offset, size, rc);
	if (!rc)
		atomic64_add(size, &function->scrubbed);
	return rc;
}

/**
 * flexmem_function_clear - zero memory that no program can reach
 * @function: function
 * @mem: memory that it holds
 * @start: first byte, an offset; receives the end of what is zero now
 * @end: end of the part, an offset. Nothing is zeroed if it is not above @start
 *
 * Does nothing on a device that cannot scrub. Suspend, reset and removal wait
 * at most for the operation under way.
 *
 * Context: the caller runs no other operation of the function, and does not
 * hold data_lock. May sleep.
 * Return: 0; an error of flexmem_function_error(); -EINTR; or an error of the
 * firmware.
 */
int flexmem_function_clear(struct flexmem_function *function,
			   const struct flexmem_memory *mem, u64 *start,
			   u64 end)
{
	int rc = 0;
	u64 size;

	if (!function->ops.scrub)
		return 0;
	while (!rc && *start < end) {
		size = min(end - *start, FLEXMEM_SCRUB_MAX);
		rc = flexmem_function_error(function) ?:
		     mutex_lock_killable(&function->data_lock);
		if (rc)
			return rc;
		rc = flexmem_function_scrub(function, mem, *start, size);
		mutex_unlock(&function->data_lock);
		if (!rc)
			*start += size;
	}
	return rc;
}

/**
 * flexmem_function_read - copy out of the device
 * @function: function that can do that
 * @mem: memory that it holds
 * @offset: where to begin
 * @size: bytes, at most FLEXMEM_RW_MAX
 * @to: buffer
 *
 * Context: the caller runs no other operation that moves data. May sleep.
 * Return: 0 or an error of the firmware.
 */
int flexmem_function_read(struct flexmem_function *function,
			  const struct flexmem_memory *mem, u64 offset,
			  u64 size, void *to)
{
	int rc = function->ops.read(function->priv, mem, offset, size, to);

	return flexmem_function_outcome(function, "read", rc, false);
}

/**
 * flexmem_function_write - copy into the device
 * @function: function that can do that
 * @mem: memory that it holds
 * @offset: where to begin
 * @size: bytes, at most FLEXMEM_RW_MAX
 * @from: buffer
 *
 * Context: the caller runs no other operation that moves data. May sleep.
 * Return: 0 or an error of the firmware.
 */
int flexmem_function_write(struct flexmem_function *function,
			   const struct flexmem_memory *mem, u64 offset,
			   u64 size, const void *from)
{
	int rc = function->ops.write(function->priv, mem, offset, size, from);

	return flexmem_function_outcome(function, "write", rc, false);
}

/**
 * flexmem_function_copy - copy within the device
 * @function: function that can do that
 * @to: memory that it holds
 * @to_offset: where to begin there
 * @from: memory that it holds; may be the same
 * @from_offset: where to begin there
 * @size: bytes, at most FLEXMEM_COPY_MAX; like the offsets a multiple of
 *	FLEXMEM_ALIGN. The ranges do not overlap
 *
 * Context: the caller runs no other operation that moves data. May sleep.
 * Return: 0 or an error of the firmware.
 */
int flexmem_function_copy(struct flexmem_function *function,
			  const struct flexmem_memory *to, u64 to_offset,
			  const struct flexmem_memory *from, u64 from_offset,
			  u64 size)
{
	int rc = function->ops.copy(function->priv, to, to_offset, from,
				    from_offset, size);

	return flexmem_function_outcome(function, "copy", rc, false);
}

/**
 * flexmem_function_check_fence - may memory of the function wait for a fence
 * @function: function whose driver can tell
 * @fence: any fence that a program has named; neither an array nor a chain
 *
 * Context: any. Removal waits for the driver's answer.
 * Return: 0; -EINVAL if it is not of a job of this function; or -ENODEV.
 */
int flexmem_function_check_fence(struct flexmem_function *function,
				 const struct dma_fence *fence)
{
	unsigned long flags;
	int rc = 0;

	spin_lock_irqsave(&function->state_lock, flags);
	if (flexmem_function_is_gone(function))
		rc = -ENODEV;
	else if (!function->ops.owns_fence(function->priv, fence))
		rc = -EINVAL;
	spin_unlock_irqrestore(&function->state_lock, flags);
	return rc;
}

/**
 * flexmem_function_cancel - end all jobs of a client with an overdue job
 * @function: function
 * @fence: fence of the overdue job, which the driver has added to an allocation
 *
 * Context: under data_lock. May sleep.
 * Return: 0; -EOPNOTSUPP if the device cannot do that; or an error of
 * flexmem_function_error() or of the contract.
 */
int flexmem_function_cancel(struct flexmem_function *function,
			    struct dma_fence *fence)
{
	int rc = flexmem_function_error(function);

	if (rc)
		return rc;
	if (!function->ops.cancel)
		return -EOPNOTSUPP;
	rc = function->ops.cancel(function->priv, fence);
	return flexmem_function_outcome(function, "cancel", rc, false);
}

/**
 * flexmem_function_client_gone - tell the driver that a client has closed its
 * file
 * @function: function, in any state but gone
 * @client: client to which the driver has had a reference
 *
 * Context: under data_lock. May sleep.
 */
void flexmem_function_client_gone(struct flexmem_function *function,
				  struct flexmem_client *client)
{
	if (function->ops.client_gone)
		function->ops.client_gone(function->priv, client);
}
