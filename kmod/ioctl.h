/* SPDX-License-Identifier: GPL-2.0 */
/* What ioctl.c and the files that carry out commands share. */
#ifndef _FLEXMEM_IOCTL_H
#define _FLEXMEM_IOCTL_H

#include <linux/compiler_types.h>
#include <linux/errno.h>
#include <linux/fault-inject-usercopy.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/uaccess.h>

struct flexmem_client;
struct flexmem_dev;

/*
 * The largest size of a struct that a caller may pass; no struct of the ABI
 * comes near it. This limit bounds the time to check that the bytes beyond the
 * known members are zero.
 */
#define FLEXMEM_MAX_STRUCT SZ_4K

/* The most entries of a batch. */
#define FLEXMEM_MAX_BATCH 1024

/**
 * struct flexmem_call - one command under way
 * @fdev: function
 * @client: open file of the caller
 * @ubuffer: the caller's struct
 * @user_size: bytes of the caller's struct
 * @cmd: the driver's copy of the caller's struct
 */
struct flexmem_call {
	struct flexmem_dev *fdev;
	struct flexmem_client *client;
	void __user *ubuffer;
	u32 user_size;
	void *cmd;
};

/* Writes a struct word by word, for the same reason as read_words(). */
static inline int flexmem_write_words(void __user *to, const void *from,
				      size_t size)
{
	const unsigned long *word = from, *end = from + size;
	unsigned long __user *user = to;

	if (should_fail_usercopy() || !user_write_access_begin(to, size))
		return -EFAULT;
	for (; word < end; word++, user++)
		unsafe_put_user(*word, user, fault);
	user_write_access_end();
	return 0;
fault:
	user_write_access_end();
	return -EFAULT;
}

/**
 * flexmem_reply - write the reply to the caller's struct
 * @call: command under way
 * @cmd_size: size of the driver's struct
 *
 * Return: 0 or -EFAULT.
 */
static inline int flexmem_reply(struct flexmem_call *call, size_t cmd_size)
{
	if (call->user_size == cmd_size)
		return flexmem_write_words(call->ubuffer, call->cmd, cmd_size);
	return copy_to_user(call->ubuffer, call->cmd,
			    min_t(size_t, call->user_size, cmd_size)) ?
		-EFAULT : 0;
}

/*
 * Each of these functions carries out a command, and returns 0 or an errno that
 * the ABI header lists.
 */
int flexmem_cmd_info(struct flexmem_call *call);
int flexmem_cmd_domain(struct flexmem_call *call);
int flexmem_cmd_lookup(struct flexmem_call *call);
int flexmem_cmd_regions(struct flexmem_call *call);
int flexmem_cmd_segments(struct flexmem_call *call);
int flexmem_cmd_stats(struct flexmem_call *call);
int flexmem_cmd_snapshot(struct flexmem_call *call);
int flexmem_cmd_get_limit(struct flexmem_call *call);
int flexmem_cmd_set_limit(struct flexmem_call *call);
int flexmem_cmd_reserve(struct flexmem_call *call);
int flexmem_cmd_strict(struct flexmem_call *call);
int flexmem_cmd_lease(struct flexmem_call *call);
int flexmem_cmd_trim(struct flexmem_call *call);
int flexmem_cmd_map(struct flexmem_call *call);
int flexmem_cmd_read(struct flexmem_call *call);
int flexmem_cmd_write(struct flexmem_call *call);
int flexmem_cmd_copy(struct flexmem_call *call);

#endif /* _FLEXMEM_IOCTL_H */
