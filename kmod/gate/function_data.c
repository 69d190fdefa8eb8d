// SPDX-License-Identifier: GPL-2.0
/*
 * Calls to a function's driver that move data; function_answer.c has the checks of
 * the answers. They change only bytes, so a call without an answer leaves nothing
 * to undo. They do not check to whom the bytes belong: the callers do.
 */

#include <linux/lockdep.h>
#include <linux/minmax.h>

#include "gate/function.h"
#include "trace.h"

/*
 * Zeroes memory of the device. @size: bytes, at most FLEXMEM_SCRUB_MAX.
 * Context: under data_lock. May sleep. Return: 0 or an error of the firmware.
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

/*
 * Zeroes memory that no program can reach. Suspend, reset and removal wait at
 * most for the operation under way.
 * @start: offset of the first byte; receives the end of the bytes that are zero
 * now. @end: offset of the end. If it is not above @start, nothing is zeroed.
 * Context: the caller runs no other operation of the function, and does not
 * hold data_lock. May sleep. Return: 0; an error of flexmem_function_error();
 * -EINTR; or an error of the firmware.
 */
int flexmem_function_clear(struct flexmem_function *function,
			   const struct flexmem_memory *mem, u64 *start,
			   u64 end)
{
	int rc = 0;
	u64 size;

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

/*
 * Copies out of the device, or into it with @write.
 * @function: function whose driver has these operations. @size: bytes, at most
 * FLEXMEM_RW_MAX. @buffer: from kmalloc(). If the device may still use it, the
 * function keeps it, and *@buffer becomes NULL. There is only one such buffer,
 * because a failed function moves no data before its reset.
 * Context: the caller runs no other operation that moves data. May sleep.
 * Return: 0 or an error of the firmware.
 */
int flexmem_function_rw(struct flexmem_function *function,
			const struct flexmem_memory *mem, u64 offset, u64 size,
			void **buffer, bool write)
{
	int rc = write ?
		function->ops.write(function->priv, mem, offset, size, *buffer) :
		function->ops.read(function->priv, mem, offset, size, *buffer);

	if (rc == -ENOTRECOVERABLE) {
		function->late_buffer = *buffer;
		*buffer = NULL;
	}
	return flexmem_function_outcome(function, write ? "write" : "read", rc,
					false);
}

/*
 * Copies within the device.
 * @function: function whose driver has this operation. @to: memory of the
 * function, which is written. @to_offset: first byte in @to. @from: memory of
 * the function, which is read; may be @to. @from_offset: first byte in @from.
 * @size: number of bytes, at most FLEXMEM_COPY_MAX. @size and both offsets are
 * multiples of FLEXMEM_ALIGN. The ranges do not overlap.
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

/*
 * Tells the driver, which has had a reference to the client, that the client
 * has closed its file. The function is in any state but gone. Under data_lock.
 * May sleep.
 */
void flexmem_function_client_gone(struct flexmem_function *function,
				  struct flexmem_client *client)
{
	if (function->ops.client_gone)
		function->ops.client_gone(function->priv, client);
}
