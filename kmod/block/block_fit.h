/* SPDX-License-Identifier: GPL-2.0 */
/* block.c keeps the state of blocks; block_fit.c searches them. */
#ifndef _FLEXMEM_BLOCK_FIT_H
#define _FLEXMEM_BLOCK_FIT_H

#include "block/block.h"

/**
 * struct flexmem_fit_ops - a block strategy
 * @insert: adds a free block to the index
 * @remove: removes a block from the index
 * @resize: gives a block in the index a new start and size; its order by offset
 *	among the free blocks stays the same
 * @find: returns the first free block of at least @size bytes, in the order of
 *	the strategy
 * @next: returns the next such block after the one that @find or @next returned
 *	last
 * @largest: returns the size of the largest free block, or 0 if there is none
 */
struct flexmem_fit_ops {
	void (*insert)(struct rb_root *index, struct flexmem_block *block);
	void (*remove)(struct rb_root *index, struct flexmem_block *block);
	void (*resize)(struct rb_root *index, struct flexmem_block *block,
		       u64 start, u64 size);
	struct flexmem_block *(*find)(const struct rb_root *index, u64 size);
	struct flexmem_block *(*next)(struct flexmem_block *block, u64 size);
	u64 (*largest)(const struct rb_root *index);
};

extern const struct flexmem_fit_ops flexmem_fits[];

#endif /* _FLEXMEM_BLOCK_FIT_H */
