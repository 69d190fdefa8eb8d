// SPDX-License-Identifier: GPL-2.0
/*
 * The frame of a command: the caller's struct is copied in, and the reply is
 * copied out. The reply is never longer than the caller's struct.
 *
 * The caller's struct nearly always has the driver's size, which is a multiple
 * of a word. Copying such a struct word by word costs less than
 * copy_from_user() and copy_to_user().
 */

#include <linux/errno.h>
#include <linux/fault-inject-usercopy.h>
#include <linux/minmax.h>
#include <linux/uaccess.h>

#include "ioctl.h"

static int read_words(unsigned long *to, const unsigned long __user *from,
		      size_t size)
{
	size_t i;

	if (should_fail_usercopy() || !user_read_access_begin(from, size))
		return -EFAULT;
	for (i = 0; i < size / sizeof(*to); i++)
		unsafe_get_user(to[i], from + i, fault);
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

static int write_words(unsigned long __user *to, const unsigned long *from,
		       size_t size)
{
	size_t i;

	if (should_fail_usercopy() || !user_write_access_begin(to, size))
		return -EFAULT;
	for (i = 0; i < size / sizeof(*from); i++)
		unsafe_put_user(from[i], to + i, fault);
	user_write_access_end();
	return 0;
fault:
	user_write_access_end();
	return -EFAULT;
}

/**
 * flexmem_fetch - read the caller's struct
 * @call: command under way; its @cmd has room for @size bytes
 * @size: size of the driver's struct
 * @min_size: size of the struct in its first version
 *
 * Return: 0; -EFAULT; -EINVAL if the caller's struct is shorter than @min_size;
 * or -E2BIG if it is too long, or has a value in a member that the driver does
 * not know.
 */
int flexmem_fetch(struct flexmem_call *call, size_t size, size_t min_size)
{
	int rc;

	if (get_user(call->user_size, (u32 __user *)call->ubuffer))
		return -EFAULT;
	if (call->user_size < min_size)
		return -EINVAL;
	if (call->user_size > FLEXMEM_MAX_STRUCT)
		return -E2BIG;
	if (call->user_size == size)
		rc = read_words(call->cmd, call->ubuffer, size);
	else
		rc = copy_struct_from_user(call->cmd, size, call->ubuffer,
					   call->user_size);
	/*
	 * The caller may have changed the size since it was checked, so the
	 * checked value is used.
	 */
	*(u32 *)call->cmd = call->user_size;
	return rc;
}

/**
 * flexmem_reply - write the reply to the caller's struct
 * @call: command under way
 * @size: size of the driver's struct
 *
 * Return: 0 or -EFAULT.
 */
int flexmem_reply(struct flexmem_call *call, size_t size)
{
	if (call->user_size == size)
		return write_words(call->ubuffer, call->cmd, size);
	return copy_to_user(call->ubuffer, call->cmd,
			    min_t(size_t, call->user_size, size)) ? -EFAULT : 0;
}
