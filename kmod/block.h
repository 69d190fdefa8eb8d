/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The blocks of one region.
 *
 * A pure data structure: it has no lock (its caller's region lock protects it),
 * never sleeps, takes the memory for its nodes from the caller, and knows no
 * device, file or ioctl. `end` is exclusive throughout.
 */
#ifndef _FLEXMEM_BLOCK_H
#define _FLEXMEM_BLOCK_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/flexmem.h>

/* Smallest block and alignment of every start and size, in bytes (A14). */
#define FLEXMEM_ALIGN 128ULL
#define FLEXMEM_MAX_ALIGNMENT BIT_ULL(30)

/*
 * For an alignment above 128: after the holes that surely fit, so many smaller
 * ones are tried for one that happens to lie well (D15). A bound, because
 * nothing unbounded runs under the region's spinlock.
 */
#define FLEXMEM_FIT_TRIES 16

/**
 * struct flexmem_block - an interval of a region, free or occupied
 * @link: in &flexmem_blocks.all, by @start
 * @node: in &flexmem_blocks.index while the block is free
 * @start: offset of the first byte from the start of the region
 * @size: bytes
 * @subtree_max: first fit: largest @size in the subtree below @node
 * @owner: token of the owner; NULL means that the block is free
 */
struct flexmem_block {
	struct list_head link;
	struct rb_node node;
	u64 start;
	u64 size;
	u64 subtree_max;
	const void *owner;
};

struct flexmem_fit_ops;

/**
 * struct flexmem_blocks - all blocks of one region
 * @all: every block, ordered by offset; they tile [0, @total)
 * @index: the free ones, ordered as the fit needs them
 * @fit: block strategy
 * @total: bytes of the region
 * @free: bytes in free blocks
 * @nr_used: occupied blocks
 * @nr_free: free blocks
 */
struct flexmem_blocks {
	struct list_head all;
	struct rb_root index;
	const struct flexmem_fit_ops *fit;
	u64 total;
	u64 free;
	u64 nr_used;
	u64 nr_free;
};

/**
 * struct flexmem_spare - nodes that an operation may use, or has left over
 * @block: up to two; NULL where there is none
 *
 * Filled before the lock is taken, emptied after it has been released.
 */
struct flexmem_spare {
	struct flexmem_block *block[2];
};

static inline u64 flexmem_block_end(const struct flexmem_block *block)
{
	return block->start + block->size;
}

static inline bool flexmem_block_is_free(const struct flexmem_block *block)
{
	return !block->owner;
}

/* How many spare nodes flexmem_blocks_alloc() can need for an alignment. */
static inline unsigned int flexmem_spares_for(u64 alignment)
{
	return alignment > FLEXMEM_ALIGN ? 2 : 1;
}

const char *flexmem_fit_name(unsigned int fit);

void flexmem_blocks_init(struct flexmem_blocks *blocks, u64 total,
			 enum flexmem_fit fit, struct flexmem_block *first);
struct flexmem_block *flexmem_blocks_alloc(struct flexmem_blocks *blocks,
					   u64 size, u64 alignment,
					   const void *owner,
					   struct flexmem_spare *spare);
void flexmem_blocks_free(struct flexmem_blocks *blocks,
			 struct flexmem_block *block,
			 struct flexmem_spare *unused);
u64 flexmem_blocks_largest(const struct flexmem_blocks *blocks);
const char *flexmem_blocks_check(const struct flexmem_blocks *blocks);

#endif /* _FLEXMEM_BLOCK_H */
