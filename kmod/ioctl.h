/* SPDX-License-Identifier: GPL-2.0 */
/* What ioctl.c and the files that carry out commands share. */
#ifndef _FLEXMEM_IOCTL_H
#define _FLEXMEM_IOCTL_H

#include <linux/compiler_types.h>
#include <linux/sizes.h>
#include <linux/types.h>

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

int flexmem_reply(struct flexmem_call *call, size_t cmd_size);

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
