/* SPDX-License-Identifier: GPL-2.0 */
/* Changes of the size of an allocation, in place. */
#ifndef _FLEXMEM_RESIZE_H
#define _FLEXMEM_RESIZE_H

#include <linux/types.h>
#include <linux/flexmem.h>

#include "alloc/allocation.h"
#include "tenant/account.h"

/**
 * struct flexmem_resizing - a change of size under way
 * @client: open file that the allocation belongs to
 * @allocation: allocation
 * @size: the allocation's new size in bytes
 * @tail: the block that will be joined to the block of its chunk, or NULL
 * @spare: spare nodes for @tail
 * @refused: on -ENOMEM: the limit that forbids the new size
 */
struct flexmem_resizing {
	struct flexmem_client *client;
	struct flexmem_allocation *allocation;
	u64 size;
	struct flexmem_block *tail;
	struct flexmem_spare spare;
	struct flexmem_refused refused;
};

int flexmem_resize_prepare(struct flexmem_client *client,
			   struct flexmem_resize *cmd,
			   struct flexmem_resizing *resizing);
void flexmem_resize_commit(struct flexmem_resizing *resizing);
void flexmem_resize_abort(struct flexmem_resizing *resizing);

#endif /* _FLEXMEM_RESIZE_H */
