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
#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/flexmem.h>
#include <asm/barrier.h>

/* Smallest block and alignment of every start and size, in bytes (A14). */
#define FLEXMEM_ALIGN 128ULL
#define FLEXMEM_MAX_ALIGNMENT BIT_ULL(30)

/*
 * For an alignment above 128: after the holes that surely fit, so many smaller
 * ones are tried for one that happens to lie well (D15). A bound, because
 * nothing unbounded runs under the region's spinlock.
 */
#define FLEXMEM_FIT_TRIES 256

/*
 * What will grow starts at a multiple of this, or of its own alignment if that
 * is more, in a free block that is so many times larger: it costs little there.
 */
#define FLEXMEM_GROWABLE_ALIGN BIT_ULL(21)
#define FLEXMEM_GROWABLE_TIMES 8

/*
 * Whose bytes may be in a block: a number that stands for an owner, or one of
 * these. Where they are, at most, is remembered beside it, so that a small block
 * that is freed beside much clean memory does not spoil all of it. A range that
 * is split hands both on to its parts; what is merged out of different ones is
 * nobody's, from the first such byte to the last.
 */
#define FLEXMEM_CLEAN 0ULL
#define FLEXMEM_MIXED (~0ULL)

/**
 * struct flexmem_block - an interval of a region, free or occupied
 * @link: in &flexmem_blocks.all, by @start
 * @node: in &flexmem_blocks.index while the block is free
 * @dirty_link: in &flexmem_blocks.dirty while the block is free and not clean
 * @start: offset of the first byte from the start of the region
 * @size: bytes
 * @subtree_max: first fit: largest @size in the subtree below @node
 * @bytes_of: whose bytes may be in it: an owner's number, FLEXMEM_CLEAN (all
 *	are zero) or FLEXMEM_MIXED
 * @dirty_start: before that all are zero, unless it is clean altogether
 * @dirty_end: and from there on
 * @owner: token of the owner; NULL means that the block is free
 * @tail: occupied, and to become part of the block before it: does not count
 */
struct flexmem_block {
	struct list_head link;
	struct rb_node node;
	struct list_head dirty_link;
	u64 start;
	u64 size;
	u64 subtree_max;
	u64 bytes_of;
	u64 dirty_start;
	u64 dirty_end;
	const void *owner;
	bool tail;
};

struct flexmem_fit_ops;

/**
 * struct flexmem_blocks - all blocks of one region
 * @all: every block, ordered by offset; they tile [0, @total)
 * @index: the free ones, ordered as the fit needs them
 * @dirty: the free ones that are not clean, those that are mixed first
 * @watched: a free block, until it changes in any way; then NULL
 * @fit: block strategy
 * @total: bytes of the region
 * @free: bytes in free blocks
 * @nr_used: occupied blocks; a tail is not one
 * @nr_free: free blocks
 */
struct flexmem_blocks {
	struct list_head all;
	struct rb_root index;
	struct list_head dirty;
	struct flexmem_block *watched;
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

/*
 * The block is @owner's from now on, all of it: only for an occupied one, by who
 * has it, and without the lock. Whoever checks the blocks of the region
 * meanwhile sees where it is dirty before it sees that it is.
 */
static inline void flexmem_block_soil(struct flexmem_block *block, u64 owner)
{
	WRITE_ONCE(block->dirty_start, block->start);
	WRITE_ONCE(block->dirty_end, block->start + block->size);
	/* Pairs with flexmem_blocks_check(). */
	smp_store_release(&block->bytes_of, owner);
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

/* Likewise flexmem_blocks_alloc_growable(), which may leave room on both sides. */
#define FLEXMEM_GROWABLE_SPARES 2

const char *flexmem_fit_name(unsigned int fit);

void flexmem_blocks_init(struct flexmem_blocks *blocks, u64 total,
			 enum flexmem_fit fit, struct flexmem_block *first);
bool flexmem_blocks_fit(struct flexmem_blocks *blocks, u64 size, u64 alignment);
bool flexmem_blocks_give_up(struct flexmem_blocks *blocks, u64 size,
			    u64 alignment);
struct flexmem_block *flexmem_blocks_alloc(struct flexmem_blocks *blocks,
					   u64 size, u64 alignment,
					   const void *owner,
					   struct flexmem_spare *spare);
struct flexmem_block *
flexmem_blocks_alloc_growable(struct flexmem_blocks *blocks, u64 size,
			      u64 alignment, const void *owner,
			      struct flexmem_spare *spare);
void flexmem_blocks_free(struct flexmem_blocks *blocks,
			 struct flexmem_block *block,
			 struct flexmem_spare *unused);
void flexmem_blocks_clean(struct flexmem_blocks *blocks,
			  struct flexmem_block *block);
struct flexmem_block *flexmem_blocks_extend(struct flexmem_blocks *blocks,
					    struct flexmem_block *block,
					    u64 size,
					    struct flexmem_spare *spare);
struct flexmem_block *flexmem_blocks_split(struct flexmem_blocks *blocks,
					   struct flexmem_block *block,
					   u64 size,
					   struct flexmem_spare *spare);
void flexmem_blocks_join(struct flexmem_block *block,
			 struct flexmem_block *tail);
void flexmem_blocks_part(struct flexmem_blocks *blocks,
			 struct flexmem_block *tail);
u64 flexmem_blocks_room(const struct flexmem_blocks *blocks,
			const struct flexmem_block *block);
u64 flexmem_blocks_largest(const struct flexmem_blocks *blocks);
const char *flexmem_blocks_check(const struct flexmem_blocks *blocks);

#endif /* _FLEXMEM_BLOCK_H */
