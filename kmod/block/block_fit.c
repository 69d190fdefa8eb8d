// SPDX-License-Identifier: GPL-2.0
/*
 * The search tree of a region's free blocks. The fit (the block strategy)
 * determines the order of the tree:
 *
 *  - first fit: by offset. Each node has the size of the largest free block in
 *    its subtree, so the lowest block that is large enough is found in O(log
 *    n).
 *  - best fit: by (size, offset). The first block in this order with at least
 *    the requested size is the tightest one, and the lowest one among equally
 *    tight blocks.
 */

#include <linux/minmax.h>
#include <linux/rbtree_augmented.h>

#include "block/block_fit.h"

static struct flexmem_block *to_block(struct rb_node *node)
{
	return rb_entry_safe(node, struct flexmem_block, node);
}

/*
 * First fit: the tree is ordered by offset, and augmented with the largest size
 * in each subtree.
 */

static inline u64 block_size(struct flexmem_block *block)
{
	return block->size;
}

RB_DECLARE_CALLBACKS_MAX(static, first_fit_augment, struct flexmem_block, node,
			 u64, subtree_max, block_size)

static u64 first_fit_max(struct rb_node *node)
{
	return node ? to_block(node)->subtree_max : 0;
}

static void first_fit_insert(struct rb_root *index, struct flexmem_block *block)
{
	struct rb_node **link = &index->rb_node, *parent = NULL;

	while (*link) {
		struct flexmem_block *other = to_block(*link);

		parent = *link;
		other->subtree_max = max(other->subtree_max, block->size);
		link = block->start < other->start ? &parent->rb_left :
						     &parent->rb_right;
	}
	block->subtree_max = block->size;
	rb_link_node(&block->node, parent, link);
	rb_insert_augmented(&block->node, index, &first_fit_augment);
}

static void first_fit_remove(struct rb_root *index, struct flexmem_block *block)
{
	rb_erase_augmented(&block->node, index, &first_fit_augment);
}

static void first_fit_resize(struct rb_root *index, struct flexmem_block *block,
			     u64 start, u64 size)
{
	bool grows = size > block->size;

	block->start = start;
	block->size = size;
	if (!grows)
		first_fit_augment_propagate(&block->node, NULL);
	/* A larger block makes no maximum smaller. */
	for (; grows && block && block->subtree_max < size;
	     block = to_block(rb_parent(&block->node)))
		block->subtree_max = size;
}

/*
 * Returns the lowest block of at least @size bytes in the subtree of @node. The
 * caller has checked that such a block exists.
 */
static struct flexmem_block *first_fit_lowest(struct rb_node *node, u64 size)
{
	while (first_fit_max(node->rb_left) >= size ||
	       to_block(node)->size < size) {
		if (first_fit_max(node->rb_left) >= size)
			node = node->rb_left;
		else
			node = node->rb_right;
	}
	return to_block(node);
}

static struct flexmem_block *first_fit_find(const struct rb_root *index,
					    u64 size)
{
	if (first_fit_max(index->rb_node) < size)
		return NULL;
	return first_fit_lowest(index->rb_node, size);
}

static struct flexmem_block *first_fit_next(struct flexmem_block *block,
					    u64 size)
{
	struct rb_node *node = &block->node, *parent;

	if (first_fit_max(node->rb_right) >= size)
		return first_fit_lowest(node->rb_right, size);

	/*
	 * Climbs the tree: the next block at a higher offset is an ancestor, or
	 * in the right subtree of an ancestor.
	 */
	while ((parent = rb_parent(node))) {
		if (node == parent->rb_left) {
			if (to_block(parent)->size >= size)
				return to_block(parent);
			if (first_fit_max(parent->rb_right) >= size)
				return first_fit_lowest(parent->rb_right, size);
		}
		node = parent;
	}
	return NULL;
}

static u64 first_fit_largest(const struct rb_root *index)
{
	return first_fit_max(index->rb_node);
}

/* Best fit: the tree is ordered by size, then by offset. */

static bool best_fit_less(struct rb_node *a, const struct rb_node *b)
{
	const struct flexmem_block *x = to_block(a);
	const struct flexmem_block *y = rb_entry(b, struct flexmem_block, node);

	return x->size != y->size ? x->size < y->size : x->start < y->start;
}

static void best_fit_insert(struct rb_root *index, struct flexmem_block *block)
{
	rb_add(&block->node, index, best_fit_less);
}

static void best_fit_remove(struct rb_root *index, struct flexmem_block *block)
{
	rb_erase(&block->node, index);
}

static void best_fit_resize(struct rb_root *index, struct flexmem_block *block,
			    u64 start, u64 size)
{
	best_fit_remove(index, block);
	block->start = start;
	block->size = size;
	best_fit_insert(index, block);
}

static struct flexmem_block *best_fit_find(const struct rb_root *index,
					   u64 size)
{
	struct rb_node *node = index->rb_node;
	struct flexmem_block *best = NULL;

	while (node) {
		if (to_block(node)->size >= size) {
			best = to_block(node);
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return best;
}

static struct flexmem_block *best_fit_next(struct flexmem_block *block,
					   u64 size)
{
	return to_block(rb_next(&block->node));
}

static u64 best_fit_largest(const struct rb_root *index)
{
	struct flexmem_block *last = to_block(rb_last(index));

	return last ? last->size : 0;
}

const struct flexmem_fit_ops flexmem_fits[] = {
	[FLEXMEM_FIT_FIRST] = {
		.insert = first_fit_insert,
		.remove = first_fit_remove,
		.resize = first_fit_resize,
		.find = first_fit_find,
		.next = first_fit_next,
		.largest = first_fit_largest,
	},
	[FLEXMEM_FIT_BEST] = {
		.insert = best_fit_insert,
		.remove = best_fit_remove,
		.resize = best_fit_resize,
		.find = best_fit_find,
		.next = best_fit_next,
		.largest = best_fit_largest,
	},
};
