// SPDX-License-Identifier: GPL-2.0
/* Checks the invariants of a region's blocks. flexmem.ko has it in debug builds. */

#include <linux/align.h>
#include <linux/minmax.h>

#include "block/block.h"
#include "block/block_fit.h"

static const struct flexmem_block *to_block(const struct rb_node *node)
{
	return rb_entry_safe(node, struct flexmem_block, node);
}

static u64 max_below(const struct rb_node *node)
{
	return node ? to_block(node)->subtree_max : 0;
}

static const char *check_first_fit(const struct flexmem_block *prev,
				   const struct flexmem_block *block)
{
	u64 below = max(max_below(block->node.rb_left),
			max_below(block->node.rb_right));

	if (prev && prev->start >= block->start)
		return "index not in order of offsets";
	if (block->subtree_max != max(below, block->size))
		return "wrong maximum in the index";
	return NULL;
}

static const char *check_best_fit(const struct flexmem_block *prev,
				  const struct flexmem_block *block)
{
	if (prev && (prev->size > block->size ||
		     (prev->size == block->size && prev->start >= block->start)))
		return "index not in order of sizes";
	return NULL;
}

static const char *check_index(const struct flexmem_blocks *blocks)
{
	bool first_fit = blocks->fit == &flexmem_fits[FLEXMEM_FIT_FIRST];
	const struct flexmem_block *prev = NULL, *block;
	const struct rb_node *node;
	const char *wrong;
	u64 nr = 0;

	for (node = rb_first(&blocks->index); node; node = rb_next(node)) {
		block = to_block(node);
		if (!flexmem_block_is_free(block))
			return "occupied block in the index";
		wrong = first_fit ? check_first_fit(prev, block) :
				    check_best_fit(prev, block);
		if (wrong)
			return wrong;
		prev = block;
		nr++;
	}
	return nr == blocks->nr_free ? NULL : "free blocks not in the index";
}

/*
 * Checks every invariant. Returns NULL, or a text that says what is wrong.
 * Context: the caller holds the lock of the region. O(n): for tests and debug
 * builds.
 */
const char *flexmem_blocks_check(const struct flexmem_blocks *blocks)
{
	u64 end = 0, free = 0, nr_free = 0, used = 0, largest = 0;
	const struct flexmem_block *block;
	bool prev_free = false, clean;

	list_for_each_entry(block, &blocks->all, link) {
		bool is_free = flexmem_block_is_free(block);
		u64 dirty_start, dirty_end;

		if (block->start != end)
			return "hole or overlap";
		if (!block->size || !IS_ALIGNED(block->size, FLEXMEM_ALIGN))
			return "size not a multiple of the alignment";
		if (is_free && prev_free)
			return "two free neighbours";
		/*
		 * Pairs with flexmem_block_mark_dirty(), which runs without
		 * the lock.
		 */
		clean = smp_load_acquire(&block->residue.bytes_of) ==
			FLEXMEM_CLEAN;
		dirty_start = READ_ONCE(block->residue.start);
		dirty_end = READ_ONCE(block->residue.end);
		if (is_free && list_empty(&block->residue.link) != clean)
			return "free block wrongly listed as clean or dirty";
		if (!clean && (dirty_start < block->start ||
			       dirty_start >= dirty_end ||
			       dirty_end > flexmem_block_end(block)))
			return "dirty where the block is not";
		if (is_free) {
			free += block->size;
			nr_free++;
			largest = max(largest, block->size);
		} else {
			used++;
		}
		prev_free = is_free;
		end = flexmem_block_end(block);
	}
	if (end != blocks->total)
		return "blocks do not tile the region";
	if (free != blocks->free)
		return "free bytes miscounted";
	if (used != blocks->nr_used)
		return "occupied blocks miscounted";
	if (nr_free != blocks->nr_free)
		return "free blocks miscounted";
	if (largest != flexmem_blocks_largest(blocks))
		return "wrong largest free block";
	return check_index(blocks);
}
