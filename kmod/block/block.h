/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The blocks of one region.
 *
 * A pure data structure. It has no lock, because the caller holds the lock of
 * the region. It never sleeps, takes the memory for its nodes from the caller,
 * and knows no device, file or ioctl. `end` is exclusive throughout.
 */
#ifndef _FLEXMEM_BLOCK_H
#define _FLEXMEM_BLOCK_H

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/flexmem.h>

#include "block/residue.h"

/* Smallest block, and alignment of every start and size, in bytes. */
#define FLEXMEM_ALIGN 128ULL
#define FLEXMEM_MAX_ALIGNMENT BIT_ULL(30)

/*
 * The search tries at most this many holes one by one, in all regions together,
 * because it runs under the region's spinlock.
 */
#define FLEXMEM_FIT_TRIES 256

/*
 * A growable block in the middle of a free block starts at a multiple of
 * FLEXMEM_GROWABLE_ALIGN, or of its own alignment if that is larger. The
 * skipped bytes must be a small part of the free block. So the rule applies
 * only if the free block has at least FLEXMEM_GROWABLE_TIMES times
 * FLEXMEM_GROWABLE_ALIGN bytes.
 */
#define FLEXMEM_GROWABLE_ALIGN BIT_ULL(21)
#define FLEXMEM_GROWABLE_TIMES 8

struct flexmem_account;
struct flexmem_allocation;
struct flexmem_region;

/**
 * enum flexmem_use - what a block is used for
 * @FLEXMEM_USE_FREE: nothing
 * @FLEXMEM_USE_OWNED: an allocation; or addresses of a device-virtual space
 * @FLEXMEM_USE_ORPHANED: an allocation that was freed, but is still in use
 * @FLEXMEM_USE_QUARANTINED: nothing, because its bytes could not be scrubbed
 * @FLEXMEM_NR_USES: number of uses
 */
enum flexmem_use {
	FLEXMEM_USE_FREE,
	FLEXMEM_USE_OWNED,
	FLEXMEM_USE_ORPHANED,
	FLEXMEM_USE_QUARANTINED,
	FLEXMEM_NR_USES,
};

/**
 * struct flexmem_block - an interval of a region, free or occupied
 * @link: in &flexmem_blocks.all, by @start
 * @node: in &flexmem_blocks.index while the block is free. While the block
 *	is occupied, its owner may use the node: that of a chunk is in a tree of
 *	&struct flexmem_client from the ALLOC on until the allocation is released
 * @start: offset of the first byte from the start of the region
 * @size: bytes
 * @subtree_max: for first fit: the largest @size in the subtree of @node
 * @residue: bytes that may be left in the block
 * @use: what the block is used for
 * @program: for region.c: the block is memory of a program
 * @account: for region.c: the account that is charged for the block. NULL in
 *	quarantine; without meaning in a free block
 * @region: for region.c: region of an occupied block, which stays as long as
 *	the block is occupied
 * @allocation: for allocation.c: the allocation of which the block is a chunk
 */
struct flexmem_block {
	struct list_head link;
	struct rb_node node;
	u64 start;
	u64 size;
	u64 subtree_max;
	struct flexmem_residue residue;
	enum flexmem_use use;
	bool program;
	struct flexmem_account *account;
	struct flexmem_region *region;
	struct flexmem_allocation *allocation;
};

struct flexmem_fit_ops;

/**
 * struct flexmem_blocks - all blocks of one region
 * @all: every block, ordered by offset; they tile [0, @total)
 * @index: the free blocks, in the order that the block strategy needs
 * @residues: the free blocks that are not clean
 * @fit: block strategy
 * @total: bytes of the region
 * @free: bytes in free blocks
 * @nr_used: number of occupied blocks
 * @nr_free: number of free blocks
 */
struct flexmem_blocks {
	struct list_head all;
	struct rb_root index;
	struct flexmem_residues residues;
	const struct flexmem_fit_ops *fit;
	u64 total;
	u64 free;
	u64 nr_used;
	u64 nr_free;
};

/**
 * struct flexmem_spare - nodes that an operation may use, or has left over
 * @block: up to two nodes; NULL where there is none
 *
 * The caller allocates nodes before it takes the lock, and frees those left
 * over after it has released the lock.
 */
struct flexmem_spare {
	struct flexmem_block *block[2];
};

/**
 * struct flexmem_found - result of flexmem_blocks_find()
 * @block: the free block, or NULL
 * @start: offset for the new block in the region
 * @gave_up: no block was found, but not all large enough blocks were tried
 * @tries: number of blocks that were tried one by one, also in other regions
 */
struct flexmem_found {
	struct flexmem_block *block;
	u64 start;
	bool gave_up;
	unsigned int tries;
};

static inline u64 flexmem_block_end(const struct flexmem_block *block)
{
	return block->start + block->size;
}

/*
 * Marks an occupied block as holding @owner's bytes in its whole range. Needs
 * no lock, because only the user of the block calls this. As
 * flexmem_blocks_check() may run at the same time, the range is written before
 * the owner.
 */
static inline void
flexmem_block_mark_dirty(struct flexmem_block *block, u64 owner)
{
	WRITE_ONCE(block->residue.start, block->start);
	WRITE_ONCE(block->residue.end, block->start + block->size);
	/* Pairs with flexmem_blocks_check(). */
	smp_store_release(&block->residue.bytes_of, owner);
}

static inline bool flexmem_block_is_free(const struct flexmem_block *block)
{
	return block->use == FLEXMEM_USE_FREE;
}

/* Whether the bytes of a block with this use are charged to an account. */
static inline bool flexmem_use_is_charged(enum flexmem_use use)
{
	return use == FLEXMEM_USE_OWNED || use == FLEXMEM_USE_ORPHANED;
}

/* How many spare nodes flexmem_blocks_take() can need for an alignment. */
static inline unsigned int flexmem_spares_for(u64 alignment)
{
	return alignment > FLEXMEM_ALIGN ? 2 : 1;
}

/* The same for a growable block: a free block may remain on each side. */
#define FLEXMEM_GROWABLE_SPARES 2

void flexmem_blocks_init(struct flexmem_blocks *blocks, u64 total,
			 enum flexmem_fit fit, struct flexmem_block *first);
bool flexmem_blocks_find(const struct flexmem_blocks *blocks, u64 size,
			 u64 alignment, bool growable,
			 struct flexmem_found *found);
struct flexmem_block *flexmem_blocks_take(struct flexmem_blocks *blocks,
					  const struct flexmem_found *found,
					  u64 size,
					  struct flexmem_spare *spare);
void flexmem_blocks_free(struct flexmem_blocks *blocks,
			 struct flexmem_block *block,
			 struct flexmem_spare *unused);
struct flexmem_block *flexmem_blocks_split(struct flexmem_blocks *blocks,
					   struct flexmem_block *block,
					   u64 size,
					   struct flexmem_spare *spare);
void flexmem_blocks_join(struct flexmem_blocks *blocks,
			 struct flexmem_block *block,
			 struct flexmem_block *tail);
u64 flexmem_blocks_room(const struct flexmem_blocks *blocks,
			const struct flexmem_block *block);
u64 flexmem_blocks_largest(const struct flexmem_blocks *blocks);
const char *flexmem_blocks_check(const struct flexmem_blocks *blocks);

#endif /* _FLEXMEM_BLOCK_H */
