/* SPDX-License-Identifier: GPL-2.0 */
/* A device function, its open files, and the commands of a file. */
#ifndef _FLEXMEM_IOCTL_H
#define _FLEXMEM_IOCTL_H

#include <linux/atomic.h>
#include <linux/compiler_types.h>
#include <linux/device.h>
#include <linux/errno.h>
#include <linux/fault-inject-usercopy.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "alloc/client.h"
#include "part.h"
#include "region/table.h"

/*
 * The largest size of a struct that a caller may pass; no struct of the ABI
 * comes near it. This limit bounds the time to check that the bytes beyond the
 * known members are zero.
 */
#define FLEXMEM_MAX_STRUCT SZ_4K

/* The most entries of a batch. */
#define FLEXMEM_MAX_BATCH 1024

/**
 * struct flexmem_dev - a device function, from registration to the last close
 * @dev: the node's device; putting its last reference frees this struct
 * @inode: inode whose address space holds all CPU mappings
 * @name: the device's name, for messages and user space
 * @failures: allocations that ended in ENOMEM
 * @table: regions of the function
 */
struct flexmem_dev {
	struct device dev;
	struct inode *inode;
	char name[32];
	atomic64_t failures;
	struct flexmem_table table;
};

/**
 * struct flexmem_file - private_data of an open file
 * @fdev: function; a reference is held
 * @client: its allocations
 */
struct flexmem_file {
	struct flexmem_dev *fdev;
	struct flexmem_client client;
};

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

/*
 * Writes @nr structs word by word. The compiler knows the size of nearly every
 * struct, so it can unroll the loop. Then this takes fewer instructions than
 * copy_to_user(). The struct of ALLOC has 21 words.
 */
static __always_inline int flexmem_write_words(void __user *to,
					       const void *from, size_t size,
					       u32 nr)
{
	size_t words = size / sizeof(unsigned long), i;
	unsigned long __user *user = to;
	const unsigned long *word = from;
	int rc = -EFAULT;

	if (should_fail_usercopy() || !user_write_access_begin(to, nr * size))
		return rc;
	for (; nr; nr--, word += words, user += words) {
#pragma GCC unroll 32
		for (i = 0; i < words; i++)
			unsafe_put_user(word[i], &user[i], fault);
	}
	rc = 0;
fault:
	user_write_access_end();
	return rc;
}

/*
 * Writes the reply to the caller's struct. @cmd_size: size of the driver's
 * struct. Return: 0 or -EFAULT.
 */
static inline int flexmem_reply(struct flexmem_call *call, size_t cmd_size)
{
	if (call->user_size == cmd_size)
		return flexmem_write_words(call->ubuffer, call->cmd,
					   cmd_size, 1);
	return copy_to_user(call->ubuffer, call->cmd,
			    min_t(size_t, call->user_size, cmd_size)) ?
		-EFAULT : 0;
}

long flexmem_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
int flexmem_put_list(u64 to, u32 capacity, u32 user_entry_size,
		     const void *entries, u32 count, u32 entry_size);

#endif /* _FLEXMEM_IOCTL_H */
