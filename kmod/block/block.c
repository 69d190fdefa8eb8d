// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks of one region: search, split, merge.
 *
 * All blocks are in one list by offset, which gives a block its neighbours. The
 * free blocks are also in a search tree, which the block strategy orders
 * (block_fit.c).
 *
 * flexmem_blocks_check() checks the invariants: the blocks tile the region, and
 * no two neighbours are both free. Every start and size is a multiple of
 * FLEXMEM_ALIGN. The counters and the tree agree with the list.
 */

#include <linux/align.h>
#include <linux/minmax.h>

#include "block/block_fit.h"

static void mark_free(struct flexmem_blocks *blocks,
		      struct flexmem_block *block)
{
	block->use = FLEXMEM_USE_FREE;
	blocks->fit->insert(&blocks->index, block);
	blocks->nr_free++;
	flexmem_residue_free(&blocks->residues, &block->residue);
}

static void unmark_free(struct flexmem_blocks *blocks,
			struct flexmem_block *block)
{
	blocks->fit->remove(&blocks->index, block);
	blocks->nr_free--;
	flexmem_residue_take(&blocks->residues, &block->residue);
}

/* @block is a part of @from's old range, and gets its share of the residue. */
static void inherit(struct flexmem_block *block,
		    const struct flexmem_block *from)
{
	flexmem_residue_split(&block->residue, &from->residue, block->start,
			      flexmem_block_end(block));
}

/* Shrinks a free block from which a part was cut off, which inherits before. */
static void shrink_free(struct flexmem_blocks *blocks,
			struct flexmem_block *hole, u64 start, u64 size)
{
	blocks->fit->resize(&blocks->index, hole, start, size);
	flexmem_residue_cut(&blocks->residues, &hole->residue, start,
			    start + size);
}

/* Extends a free block, which absorbs @other. */
static void grow_free(struct flexmem_blocks *blocks, struct flexmem_block *hole,
		      u64 start, u64 end, const struct flexmem_block *other)
{
	blocks->fit->resize(&blocks->index, hole, start, end - start);
	flexmem_residue_absorb(&blocks->residues, &hole->residue,
			       &other->residue);
}

static struct flexmem_block *add_after(struct flexmem_block *prev,
				       struct flexmem_block *block, u64 start,
				       u64 size)
{
	block->start = start;
	block->size = size;
	list_add(&block->link, &prev->link);
	return block;
}

static struct flexmem_block *take_spare(struct flexmem_spare *spare)
{
	unsigned int i = spare->block[0] ? 0 : 1;
	struct flexmem_block *block = spare->block[i];

	spare->block[i] = NULL;
	return block;
}

/*
 * Makes a region one free block, clean because the caller ensures that all bytes
 * are zero. @total: its bytes, a multiple of FLEXMEM_ALIGN, not 0. @first: node
 * for the block; belongs to the list from here on.
 */
void flexmem_blocks_init(struct flexmem_blocks *blocks, u64 total,
			 enum flexmem_fit fit, struct flexmem_block *first)
{
	*blocks = (struct flexmem_blocks) {
		.all = LIST_HEAD_INIT(blocks->all),
		.index = RB_ROOT,
		.residues.dirty = LIST_HEAD_INIT(blocks->residues.dirty),
		.fit = &flexmem_fits[fit],
		.total = total,
		.free = total,
	};
	first->start = 0;
	first->size = total;
	first->residue.bytes_of = FLEXMEM_CLEAN;
	list_add(&first->link, &blocks->all);
	mark_free(blocks, first);
}

/*
 * Finds a free block for the request, and the offset in it. For an alignment
 * above FLEXMEM_ALIGN it first searches for a hole that fits at any
 * misalignment, which takes logarithmic time. If there is none, it tries
 * smaller holes one by one.
 */
static void find_block(const struct flexmem_blocks *blocks, u64 size,
		       u64 alignment, struct flexmem_found *found)
{
	const struct flexmem_fit_ops *fit = blocks->fit;
	u64 slack = alignment - FLEXMEM_ALIGN;
	struct flexmem_block *block;

	*found = (struct flexmem_found) { .tries = found->tries };
	/* This check also prevents an overflow of size + slack. */
	if (size > blocks->free)
		return;

	block = fit->find(&blocks->index, size + slack);
	if (block) {
		found->block = block;
		found->start = ALIGN(block->start, alignment);
		return;
	}
	if (!slack)
		return;

	block = fit->find(&blocks->index, size);
	for (; block && found->tries < FLEXMEM_FIT_TRIES; found->tries++) {
		found->start = ALIGN(block->start, alignment);
		if (found->start + size <= flexmem_block_end(block)) {
			found->block = block;
			return;
		}
		block = fit->next(block, size);
	}
	found->gave_up = block;
}

/* If @hole is too small, the growable block would end past its end. */
static u64 growable_start(const struct flexmem_blocks *blocks,
			  const struct flexmem_block *hole, u64 size,
			  u64 alignment)
{
	u64 end = flexmem_block_end(hole), start, step = alignment;

	if (hole->size >= FLEXMEM_GROWABLE_TIMES * FLEXMEM_GROWABLE_ALIGN)
		step = max(step, FLEXMEM_GROWABLE_ALIGN);
	start = ALIGN(hole->start + hole->size / 2, step);
	if (hole->size == blocks->total || start > end || size > end - start)
		start = ALIGN(hole->start, alignment);
	return start;
}

/*
 * Finds a free block. The block strategy chooses it. The choice never depends
 * on which bytes a block holds (bytes_of), so addresses do not depend on the
 * progress of scrubbing. In an empty region a growable block starts at offset
 * 0. Otherwise it starts in the middle of the largest free block, so that the
 * block before that hole can grow as well. A block that does not fit there
 * starts at the beginning of that hole. If the alignment prevents this too, the
 * block strategy chooses another hole.
 * @size: bytes, a multiple of FLEXMEM_ALIGN, not 0. @alignment: alignment of
 * the start; a power of two from FLEXMEM_ALIGN to FLEXMEM_MAX_ALIGNMENT.
 * @growable: leave room behind the block. @found: receives the block and the
 * offset, for flexmem_blocks_take(); @tries counts on from the caller's value.
 * Context: the caller holds the lock of the region. O(log n). Return: true if a
 * block was found.
 */
bool flexmem_blocks_find(const struct flexmem_blocks *blocks, u64 size,
			 u64 alignment, bool growable,
			 struct flexmem_found *found)
{
	struct flexmem_block *hole;
	u64 start;

	find_block(blocks, size, alignment, found);
	if (!growable || !found->block)
		return found->block;
	hole = blocks->fit->find(&blocks->index,
				 flexmem_blocks_largest(blocks));
	start = growable_start(blocks, hole, size, alignment);
	if (start <= flexmem_block_end(hole) &&
	    size <= flexmem_block_end(hole) - start) {
		found->block = hole;
		found->start = start;
	}
	return true;
}

/*
 * Splits the free block into an occupied block of exactly @size bytes and free
 * blocks for the rest. Each part inherits its share of the dirty range. Until the
 * occupied block is freed, its dirty fields belong to the caller.
 * @found: result of flexmem_blocks_find(), with no change of the blocks since.
 * @spare: has at least flexmem_spares_for() nodes, or FLEXMEM_GROWABLE_SPARES for
 * a growable block; nodes that are used are removed.
 * Context: the caller holds the lock of the region. O(log n). Return: the
 * block, charged to no account.
 */
struct flexmem_block *flexmem_blocks_take(struct flexmem_blocks *blocks,
					  const struct flexmem_found *found,
					  u64 size,
					  struct flexmem_spare *spare)
{
	struct flexmem_block *hole = found->block, *block, *rest;
	u64 start = found->start, front = start - hole->start;
	u64 back = flexmem_block_end(hole) - (start + size);

	if (!front && !back) {
		block = hole;
		unmark_free(blocks, hole);
	} else if (!front) {
		block = take_spare(spare);
		list_add_tail(&block->link, &hole->link);
		block->start = start;
		block->size = size;
		inherit(block, hole);
		shrink_free(blocks, hole, start + size, back);
	} else {
		block = add_after(hole, take_spare(spare), start, size);
		inherit(block, hole);
		if (back) {
			rest = add_after(block, take_spare(spare),
					 start + size, back);
			inherit(rest, hole);
			mark_free(blocks, rest);
		}
		shrink_free(blocks, hole, hole->start, front);
	}

	block->use = FLEXMEM_USE_OWNED;
	block->program = false;
	block->account = NULL;
	blocks->nr_used++;
	/* Placement reads blocks->free without the lock. */
	WRITE_ONCE(blocks->free, blocks->free - size);
	return block;
}

static struct flexmem_block *
free_neighbour(const struct flexmem_blocks *blocks,
	       const struct list_head *link)
{
	struct flexmem_block *block;

	if (link == &blocks->all)
		return NULL;
	block = list_entry(link, struct flexmem_block, link);
	return flexmem_block_is_free(block) ? block : NULL;
}

/*
 * Frees an occupied block, and merges it with its free neighbours. @unused:
 * receives up to two nodes, which the caller frees without the lock.
 * Context: the caller holds the lock of the region. O(log n).
 */
void flexmem_blocks_free(struct flexmem_blocks *blocks,
			 struct flexmem_block *block,
			 struct flexmem_spare *unused)
{
	struct flexmem_block *prev = free_neighbour(blocks, block->link.prev);
	struct flexmem_block *next = free_neighbour(blocks, block->link.next);
	u64 end = flexmem_block_end(block);

	*unused = (struct flexmem_spare) {};
	WRITE_ONCE(blocks->free, blocks->free + block->size);
	blocks->nr_used--;

	if (!prev && !next) {
		mark_free(blocks, block);
		return;
	}

	list_del(&block->link);
	unused->block[0] = block;
	if (prev && next) {
		end = flexmem_block_end(next);
		unmark_free(blocks, next);
		list_del(&next->link);
		unused->block[1] = next;
		flexmem_residue_merge(&block->residue, &next->residue);
	}
	if (prev)
		grow_free(blocks, prev, prev->start, end, block);
	else
		grow_free(blocks, next, block->start, flexmem_block_end(next),
			  block);
}

/* Free bytes directly behind an occupied block. Under the region's lock. O(1). */
u64 flexmem_blocks_room(const struct flexmem_blocks *blocks,
			const struct flexmem_block *block)
{
	const struct flexmem_block *next;

	next = free_neighbour(blocks, block->link.next);
	return next ? next->size : 0;
}

/*
 * Cuts the end off an occupied block.
 * @size: bytes that @block keeps: a multiple of FLEXMEM_ALIGN, not 0, less than
 * the present size of @block. @spare: has at least one node; one is removed.
 * Context: the caller holds the lock of the region. O(1). Return: the block
 * that was cut off, with the same use.
 */
struct flexmem_block *flexmem_blocks_split(struct flexmem_blocks *blocks,
					   struct flexmem_block *block,
					   u64 size,
					   struct flexmem_spare *spare)
{
	struct flexmem_block *tail;

	tail = add_after(block, take_spare(spare), block->start + size,
			 block->size - size);
	tail->use = block->use;
	tail->program = block->program;
	tail->account = block->account;
	tail->region = block->region;
	inherit(tail, block);
	WRITE_ONCE(block->size, size);
	inherit(block, block);
	blocks->nr_used++;
	return tail;
}

/*
 * Merges an occupied block with the one directly behind it, which has the same
 * use. The node of @tail belongs to the caller afterwards. Context: the caller
 * holds the lock of the region. O(1).
 */
void flexmem_blocks_join(struct flexmem_blocks *blocks,
			 struct flexmem_block *block,
			 struct flexmem_block *tail)
{
	list_del(&tail->link);
	/* mmap() reads the size of a chunk without the lock. */
	WRITE_ONCE(block->size, block->size + tail->size);
	flexmem_residue_merge(&block->residue, &tail->residue);
	blocks->nr_used--;
}

/* Size of the largest free block, or 0. Under the region's lock. O(log n). */
u64 flexmem_blocks_largest(const struct flexmem_blocks *blocks)
{
	return blocks->fit->largest(&blocks->index);
}
