// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks of one region: search, split, merge.
 *
 * All blocks hang in one list by offset, which gives a block its neighbours;
 * the free ones are also in one search tree, whose order is the fit's:
 *
 *  - first fit: by offset, each node knowing the largest free block below it,
 *    so that the lowest one that is large enough is found in O(log n);
 *  - best fit: by (size, offset), so that the tightest one, and of equally
 *    tight ones the lowest, is the lower bound of the size wanted.
 *
 * Invariants, checked by flexmem_blocks_check(): the blocks tile the region, no
 * two neighbours are both free, every start and size is a multiple of
 * FLEXMEM_ALIGN, and the counters and the tree agree with the list.
 */

#include <linux/align.h>
#include <linux/bug.h>
#include <linux/minmax.h>
#include <linux/rbtree_augmented.h>

#include "block.h"
#include "compat.h"

/**
 * struct flexmem_fit_ops - a block strategy
 * @name: as in the module parameter
 * @insert: add a free block to the index
 * @remove: take one out
 * @resize: give one in the index a new start and size; its order by offset
 *	among the free blocks stays the same
 * @find: first free block of at least @size bytes, in the order of the fit
 * @next: the next such block after one that find or next returned
 * @largest: size of the largest free block, 0 if there is none
 */
struct flexmem_fit_ops {
	const char *name;
	void (*insert)(struct rb_root *index, struct flexmem_block *block);
	void (*remove)(struct rb_root *index, struct flexmem_block *block);
	void (*resize)(struct rb_root *index, struct flexmem_block *block,
		       u64 start, u64 size);
	struct flexmem_block *(*find)(const struct rb_root *index, u64 size);
	struct flexmem_block *(*next)(struct flexmem_block *block, u64 size);
	u64 (*largest)(const struct rb_root *index);
};

static struct flexmem_block *to_block(struct rb_node *node)
{
	return rb_entry_safe(node, struct flexmem_block, node);
}

/* First fit: tree by offset, augmented with the largest size below. */

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
	block->start = start;
	block->size = size;
	first_fit_augment_propagate(&block->node, NULL);
}

/* The lowest block of at least @size below @node, whose maximum is not less. */
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

	/* Climb: what lies higher is right of an ancestor, or is one. */
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

/* Best fit: tree by size, of equal ones by offset. */

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

static const struct flexmem_fit_ops fits[] = {
	[FLEXMEM_FIT_FIRST] = {
		.name = "first_fit",
		.insert = first_fit_insert,
		.remove = first_fit_remove,
		.resize = first_fit_resize,
		.find = first_fit_find,
		.next = first_fit_next,
		.largest = first_fit_largest,
	},
	[FLEXMEM_FIT_BEST] = {
		.name = "best_fit",
		.insert = best_fit_insert,
		.remove = best_fit_remove,
		.resize = best_fit_resize,
		.find = best_fit_find,
		.next = best_fit_next,
		.largest = best_fit_largest,
	},
};

/**
 * flexmem_fit_name - name of a block strategy
 * @fit: strategy
 *
 * Return: the name, or NULL if there is no such strategy.
 */
const char *flexmem_fit_name(unsigned int fit)
{
	return fit < ARRAY_SIZE(fits) ? fits[fit].name : NULL;
}

/* State changes. Each moves the list, the index and the counters together. */

static void mark_free(struct flexmem_blocks *blocks,
		      struct flexmem_block *block)
{
	block->owner = NULL;
	blocks->fit->insert(&blocks->index, block);
	blocks->nr_free++;
}

static void unmark_free(struct flexmem_blocks *blocks,
			struct flexmem_block *block)
{
	blocks->fit->remove(&blocks->index, block);
	blocks->nr_free--;
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

/**
 * flexmem_blocks_init - make a region one free block (A11)
 * @blocks: to initialise
 * @total: bytes of the region, a multiple of FLEXMEM_ALIGN, not 0
 * @fit: block strategy
 * @first: node for the block; it is the list's from here on
 */
void flexmem_blocks_init(struct flexmem_blocks *blocks, u64 total,
			 enum flexmem_fit fit, struct flexmem_block *first)
{
	*blocks = (struct flexmem_blocks) {
		.all = LIST_HEAD_INIT(blocks->all),
		.index = RB_ROOT,
		.fit = &fits[fit],
		.total = total,
		.free = total,
	};
	first->start = 0;
	first->size = total;
	list_add(&first->link, &blocks->all);
	mark_free(blocks, first);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_blocks_init);

/*
 * The free block that @size bytes go to, and where in it they start. For an
 * alignment above FLEXMEM_ALIGN, a hole with room for every misalignment is
 * preferred over a smaller one that happens to lie well: the first search is
 * exact and logarithmic, the second has to try (D15).
 */
static struct flexmem_block *find_block(struct flexmem_blocks *blocks,
					u64 size, u64 alignment, u64 *start)
{
	const struct flexmem_fit_ops *fit = blocks->fit;
	u64 slack = alignment - FLEXMEM_ALIGN;
	struct flexmem_block *block;
	unsigned int tries;

	/* Also keeps size + slack from overflowing. */
	if (size > blocks->free)
		return NULL;

	block = fit->find(&blocks->index, size + slack);
	if (block) {
		*start = ALIGN(block->start, alignment);
		return block;
	}
	if (!slack)
		return NULL;

	block = fit->find(&blocks->index, size);
	for (tries = 0; block && tries < FLEXMEM_FIT_TRIES; tries++) {
		*start = ALIGN(block->start, alignment);
		if (*start + size <= flexmem_block_end(block))
			return block;
		block = fit->next(block, size);
	}
	return NULL;
}

/**
 * flexmem_blocks_alloc - occupy a block
 * @blocks: blocks of a region
 * @size: bytes, a multiple of FLEXMEM_ALIGN, not 0
 * @alignment: of the start; a power of two from FLEXMEM_ALIGN to
 *	FLEXMEM_MAX_ALIGNMENT
 * @owner: token of the owner, not NULL
 * @spare: at least flexmem_spares_for(@alignment) nodes; those used are taken
 *	out of it
 *
 * Splits the free block that the fit chooses into an occupied block of exactly
 * @size bytes and what remains (A23).
 *
 * Context: the caller holds the lock of the region. O(log n).
 * Return: the block, or NULL if none fits; then nothing has changed.
 */
struct flexmem_block *flexmem_blocks_alloc(struct flexmem_blocks *blocks,
					   u64 size, u64 alignment,
					   const void *owner,
					   struct flexmem_spare *spare)
{
	struct flexmem_block *hole, *block;
	u64 start, front, back;

	hole = find_block(blocks, size, alignment, &start);
	if (!hole)
		return NULL;

	front = start - hole->start;
	back = flexmem_block_end(hole) - (start + size);

	if (!front && !back) {
		block = hole;
		unmark_free(blocks, hole);
	} else if (!front) {
		block = take_spare(spare);
		blocks->fit->resize(&blocks->index, hole, start + size, back);
		list_add_tail(&block->link, &hole->link);
		block->start = start;
		block->size = size;
	} else {
		blocks->fit->resize(&blocks->index, hole, hole->start, front);
		block = add_after(hole, take_spare(spare), start, size);
		if (back)
			mark_free(blocks, add_after(block, take_spare(spare),
						    start + size, back));
	}

	block->owner = owner;
	blocks->nr_used++;
	/* Placement looks at it without the lock. */
	WRITE_ONCE(blocks->free, blocks->free - size);
	return block;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_blocks_alloc);

static struct flexmem_block *free_neighbour(struct flexmem_blocks *blocks,
					    struct list_head *link)
{
	struct flexmem_block *block;

	if (link == &blocks->all)
		return NULL;
	block = list_entry(link, struct flexmem_block, link);
	return flexmem_block_is_free(block) ? block : NULL;
}

/**
 * flexmem_blocks_free - give an occupied block back
 * @blocks: blocks of a region
 * @block: occupied block of it
 * @unused: receives up to two nodes that merging has left over, for the caller
 *	to free once it has released the lock
 *
 * Merges the block with its free neighbours (A20). Cannot fail.
 *
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
	}
	if (prev)
		blocks->fit->resize(&blocks->index, prev, prev->start,
				    end - prev->start);
	else
		blocks->fit->resize(&blocks->index, next, block->start,
				    flexmem_block_end(next) - block->start);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_blocks_free);

/**
 * flexmem_blocks_largest - size of the largest free block
 * @blocks: blocks of a region
 *
 * Context: the caller holds the lock of the region. O(log n).
 * Return: bytes, 0 if nothing is free.
 */
u64 flexmem_blocks_largest(const struct flexmem_blocks *blocks)
{
	return blocks->fit->largest(&blocks->index);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_blocks_largest);

/* Walks the index: in order, all free, and each maximum right. */
static const char *check_index(const struct flexmem_blocks *blocks)
{
	bool first_fit = blocks->fit == &fits[FLEXMEM_FIT_FIRST];
	struct rb_node *node, *prev = NULL;
	u64 nr = 0;

	for (node = rb_first(&blocks->index); node; node = rb_next(node)) {
		struct flexmem_block *block = to_block(node);
		u64 below = max(first_fit_max(node->rb_left),
				first_fit_max(node->rb_right));

		if (!flexmem_block_is_free(block))
			return "occupied block in the index";
		if (first_fit && prev && to_block(prev)->start >= block->start)
			return "index not in order of offsets";
		if (first_fit && block->subtree_max != max(below, block->size))
			return "wrong maximum in the index";
		if (!first_fit && prev && !best_fit_less(prev, node))
			return "index not in order of sizes";
		prev = node;
		nr++;
	}
	return nr == blocks->nr_free ? NULL : "free blocks not in the index";
}

/**
 * flexmem_blocks_check - check every invariant
 * @blocks: blocks of a region
 *
 * Context: the caller holds the lock of the region. O(n): for tests and debug
 * builds.
 * Return: NULL, or what is wrong.
 */
const char *flexmem_blocks_check(const struct flexmem_blocks *blocks)
{
	u64 end = 0, free = 0, nr_free = 0, used = 0, largest = 0;
	const struct flexmem_block *block;
	bool prev_free = false;

	list_for_each_entry(block, &blocks->all, link) {
		bool is_free = flexmem_block_is_free(block);

		if (block->start != end)
			return "hole or overlap";
		if (!block->size || !IS_ALIGNED(block->size, FLEXMEM_ALIGN))
			return "size not a multiple of the alignment";
		if (is_free && prev_free)
			return "two free neighbours";
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
EXPORT_SYMBOL_IF_KUNIT(flexmem_blocks_check);
