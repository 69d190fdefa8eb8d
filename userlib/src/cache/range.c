// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A B+ tree of holes, ordered by offset. An entry of a leaf is a hole, with its
 * offset and size. An entry of another node is a child, with an offset and a
 * size too: all holes of the child are at or behind the offset, all holes of
 * the children to its left are before it, and no hole of the child is larger
 * than the size. The size of a child is raised at once, but lowered only when a
 * search finds that it is too high. There are two searches: for the first entry
 * that is large enough, and for the last entry that is not behind an offset. On
 * each level both compare all entries of a node at once, without branches, with
 * vector instructions.
 *
 * A released part finds its neighbours through its place in the tree. An empty
 * node is removed; apart from that, nodes are not rebalanced.
 *
 * A release must not fail, so nodes for it are set aside in advance. How many?
 * A node with 32 entries is split into halves of 16. So there is at most one
 * split for each 16 entries that are there now or are inserted later. With P
 * parts and H holes, at most (P + 1 - H) / 2 holes are inserted before
 * everything is free, because each must be merged away again. That makes at
 * most (H + (P + 1 - H) / 2) / 16 splits of leaves, a sixteenth of that on the
 * level above, and so on, and one node for each new level: less than (P + H) /
 * 24 + 4.
 */
#include "range.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define FANOUT 32
#define HALF (FANOUT / 2)
#define LANES 4
/*
 * A tree with one more level holds at least 16 times as many parts, so 16
 * levels suffice.
 */
#define LEVELS 16
/* Larger than any offset. */
#define NOWHERE INT32_MAX
#define SPARE_EXCESS 16

typedef int32_t lanes __attribute__((vector_size(LANES * sizeof(int32_t))));

union numbers {
	int32_t of[FANOUT];
	lanes in[FANOUT / LANES];
};

/* Entries from @count on are unused: their offset is NOWHERE, their size 0. */
struct fmlib_range_node {
	union numbers offsets;
	union numbers sizes;
	uint32_t count;
	struct fmlib_range_node *children[FANOUT];
};

/*
 * The nodes from the root to a leaf, and for each node the entry that leads to
 * the next one.
 */
struct path {
	struct fmlib_range_node *nodes[LEVELS];
	unsigned int at[LEVELS];
};

/* Returns a bit mask of the entries that are at least @limit. */
#if defined(__SSE2__) && !defined(FMLIB_RANGE_PORTABLE)
static inline uint32_t at_least(const union numbers *numbers, int32_t limit)
{
	const __m128i less = _mm_set1_epi32(limit - 1);
	const __m128i *in = (const __m128i *)numbers->in;
	uint32_t found = 0;
	unsigned int i;
	__m128i low;
	__m128i high;

#pragma GCC unroll 2
	for (i = 0; i < FANOUT; i += 16, in += 4) {
		low = _mm_packs_epi32(_mm_cmpgt_epi32(in[0], less),
				      _mm_cmpgt_epi32(in[1], less));
		high = _mm_packs_epi32(_mm_cmpgt_epi32(in[2], less),
				       _mm_cmpgt_epi32(in[3], less));
		low = _mm_packs_epi16(low, high);
		found |= (uint32_t)_mm_movemask_epi8(low) << i;
	}
	return found;
}
#else
static inline uint32_t at_least(const union numbers *numbers, int32_t limit)
{
#define BITS(i) { 1u << (i), 2u << (i), 4u << (i), 8u << (i) }
	typedef uint32_t bits __attribute__((vector_size(sizeof(lanes))));
	typedef uint64_t pairs __attribute__((vector_size(sizeof(lanes))));
	static const bits bit[FANOUT / LANES] = {
		BITS(0), BITS(4), BITS(8), BITS(12),
		BITS(16), BITS(20), BITS(24), BITS(28),
	};
#undef BITS
	const lanes less = (lanes){ limit, limit, limit, limit } - 1;
	bits found = { 0 };
	uint64_t both;
	unsigned int i;

#pragma GCC unroll 8
	for (i = 0; i < FANOUT / LANES; i++)
		found |= (bits)(numbers->in[i] > less) & bit[i];
	both = ((pairs)found)[0] | ((pairs)found)[1];
	return (uint32_t)(both | both >> 32);
}
#endif

/* Returns the index of the first entry that is at least @limit, or FANOUT. */
static inline unsigned int first_from(const union numbers *numbers,
				      int32_t limit)
{
	return (unsigned int)__builtin_ctzll(at_least(numbers, limit) |
					     UINT64_C(1) << FANOUT);
}

static __attribute__((noinline)) int32_t
largest(const struct fmlib_range_node *node)
{
	lanes most = node->sizes.in[0];
	int32_t result = 0;
	unsigned int i;
	lanes more;

#pragma GCC unroll 8
	for (i = 1; i < FANOUT / LANES; i++) {
		more = node->sizes.in[i] > most;
		most = (node->sizes.in[i] & more) | (most & ~more);
	}
	for (i = 0; i < LANES; i++)
		result = most[i] > result ? most[i] : result;
	return result;
}

static void clear(struct fmlib_range_node *node)
{
	unsigned int i;

	for (i = 0; i < FANOUT; i++) {
		node->offsets.of[i] = NOWHERE;
		node->sizes.of[i] = 0;
	}
	node->count = 0;
}

static uint32_t spares_needed(const struct fmlib_range *range)
{
	return (range->parts + range->holes) / 24 + 4;
}

static struct fmlib_range_node *new_node(struct fmlib_range *range)
{
	struct fmlib_range_node *node = range->spare;

	range->spare = node->children[0];
	range->spare_count--;
	clear(node);
	return node;
}

static void drop_node(struct fmlib_range *range, struct fmlib_range_node *node)
{
	if (range->spare_count > spares_needed(range) + SPARE_EXCESS) {
		free(node);
		return;
	}
	node->children[0] = range->spare;
	range->spare = node;
	range->spare_count++;
}

/* Makes the spare nodes that the range needs now, and at least @more nodes. */
static int make_spares(struct fmlib_range *range, size_t more)
{
	struct fmlib_range_node *node;

	while (range->spare_count <= spares_needed(range) + more) {
		node = malloc(sizeof(*node));
		if (!node)
			return -ENOMEM;
		node->children[0] = range->spare;
		range->spare = node;
		range->spare_count++;
	}
	return 0;
}

/* Makes sure that there are spare nodes for one more part or hole. */
static inline int prepare(struct fmlib_range *range)
{
	return range->spare_count > spares_needed(range) ? 0 :
	       make_spares(range, 0);
}

/*
 * A claim may split a node on each level. Each new part and each new hole needs
 * spare nodes for its release.
 */
int fmlib_range_prepare_claims(struct fmlib_range *range, size_t count)
{
	return make_spares(range, count + range->height + 1);
}

int fmlib_range_prepare(struct fmlib_range *range)
{
	return prepare(range);
}

int fmlib_range_start(struct fmlib_range *range, uint64_t unit)
{
	int err;

	memset(range, 0, sizeof(*range));
	range->shift = (unsigned int)__builtin_ctzll(unit);
	err = fmlib_range_prepare(range);
	if (!err) {
		range->root = new_node(range);
		range->height = 1;
		err = fmlib_range_prepare(range);
	}
	if (err)
		fmlib_range_end(range);
	return err;
}

static void free_tree(struct fmlib_range_node *node, unsigned int height)
{
	uint32_t i;

	for (i = 0; height > 1 && i < node->count; i++)
		free_tree(node->children[i], height - 1);
	free(node);
}

void fmlib_range_end(struct fmlib_range *range)
{
	struct fmlib_range_node *node;

	if (range->root)
		free_tree(range->root, range->height);
	while ((node = range->spare)) {
		range->spare = node->children[0];
		free(node);
	}
	memset(range, 0, sizeof(*range));
}

uint64_t fmlib_range_limit(uint64_t unit)
{
	return (NOWHERE - UINT64_C(1)) * unit;
}

static void insert_entry(struct fmlib_range_node *node, unsigned int at,
			 int32_t offset, int32_t size,
			 struct fmlib_range_node *child)
{
	size_t after = node->count - at;

	memmove(&node->offsets.of[at + 1], &node->offsets.of[at],
		after * sizeof(node->offsets.of[0]));
	memmove(&node->sizes.of[at + 1], &node->sizes.of[at],
		after * sizeof(node->sizes.of[0]));
	if (child) {
		memmove(&node->children[at + 1], &node->children[at],
			after * sizeof(node->children[0]));
		node->children[at] = child;
	}
	node->offsets.of[at] = offset;
	node->sizes.of[at] = size;
	node->count++;
}

static void remove_entry(struct fmlib_range_node *node, unsigned int at,
			 bool is_leaf)
{
	size_t after = node->count - at - 1;

	memmove(&node->offsets.of[at], &node->offsets.of[at + 1],
		after * sizeof(node->offsets.of[0]));
	memmove(&node->sizes.of[at], &node->sizes.of[at + 1],
		after * sizeof(node->sizes.of[0]));
	if (!is_leaf)
		memmove(&node->children[at], &node->children[at + 1],
			after * sizeof(node->children[0]));
	node->count--;
	node->offsets.of[node->count] = NOWHERE;
	node->sizes.of[node->count] = 0;
}

/*
 * Fills @path down to the leaf that contains or would contain a hole at
 * @offset. Returns the index, in that leaf, of the first hole above @offset.
 */
static unsigned int descend(const struct fmlib_range *range, int32_t offset,
			    struct path *path)
{
	struct fmlib_range_node *node = range->root;
	unsigned int level;
	unsigned int at;

	for (level = 0; level + 1 < range->height; level++) {
		at = first_from(&node->offsets, offset + 1);
		at -= at > 0;
		path->nodes[level] = node;
		path->at[level] = at;
		node = node->children[at];
	}
	path->nodes[level] = node;
	return first_from(&node->offsets, offset + 1);
}

/*
 * Moves @path to the last hole of the previous leaf. Returns false if there is
 * no previous leaf.
 */
static bool step_back(const struct fmlib_range *range, struct path *path)
{
	unsigned int leaf = range->height - 1;
	struct fmlib_range_node *node;
	unsigned int level = leaf;

	do {
		if (!level)
			return false;
		level--;
	} while (!path->at[level]);
	path->at[level]--;
	for (; level < leaf; level++) {
		node = path->nodes[level]->children[path->at[level]];
		path->nodes[level + 1] = node;
		path->at[level + 1] = node->count - 1;
	}
	return true;
}

/*
 * Raises the sizes in the nodes above @level, after a hole of @size was
 * inserted into the node at @level.
 */
static void raise_sizes(struct path *path, unsigned int level, int32_t size)
{
	int32_t *above;

	while (level--) {
		above = &path->nodes[level]->sizes.of[path->at[level]];
		if (*above >= size)
			return;
		*above = size;
	}
}

/* Updates the nodes above a leaf after its first hole moved to @offset. */
static void lower_offsets(const struct fmlib_range *range, struct path *path,
			  int32_t offset)
{
	unsigned int level = range->height - 1;
	int32_t *above;

	while (level--) {
		above = &path->nodes[level]->offsets.of[path->at[level]];
		if (*above > offset)
			*above = offset;
		if (path->at[level])
			return;
	}
}

/*
 * Updates the offset of the next leaf after the last hole of this leaf moved to
 * @offset.
 */
static void raise_next(const struct fmlib_range *range, struct path *path,
		       int32_t offset)
{
	unsigned int level = range->height - 1;
	struct fmlib_range_node *node;
	unsigned int next;

	while (level--) {
		node = path->nodes[level];
		next = path->at[level] + 1;
		if (next == node->count)
			continue;
		if (node->offsets.of[next] <= offset)
			node->offsets.of[next] = offset + 1;
		return;
	}
}

/* Splits a full child. The parent has room. */
static void split(struct fmlib_range *range, struct fmlib_range_node *parent,
		  unsigned int at, bool is_leaf)
{
	struct fmlib_range_node *left = parent->children[at];
	struct fmlib_range_node *right = new_node(range);
	unsigned int i;

	for (i = 0; i < HALF; i++) {
		right->offsets.of[i] = left->offsets.of[HALF + i];
		right->sizes.of[i] = left->sizes.of[HALF + i];
		if (!is_leaf)
			right->children[i] = left->children[HALF + i];
		left->offsets.of[HALF + i] = NOWHERE;
		left->sizes.of[HALF + i] = 0;
	}
	left->count = HALF;
	right->count = HALF;
	parent->sizes.of[at] = largest(left);
	insert_entry(parent, at + 1, right->offsets.of[0], largest(right),
		     right);
}

/* Splits the full nodes on the way to @offset, from the root down. */
static void make_room(struct fmlib_range *range, int32_t offset)
{
	struct fmlib_range_node *node = range->root;
	unsigned int level;
	unsigned int at;

	if (node->count == FANOUT) {
		range->root = new_node(range);
		insert_entry(range->root, 0, node->offsets.of[0],
			     largest(node), node);
		range->height++;
		node = range->root;
	}
	for (level = 1; level < range->height; level++) {
		at = first_from(&node->offsets, offset + 1);
		at -= at > 0;
		if (node->children[at]->count == FANOUT) {
			split(range, node, at, level == range->height - 1);
			at += node->offsets.of[at + 1] <= offset;
		}
		node = node->children[at];
	}
}

static void insert_hole(struct fmlib_range *range, struct path *path,
			unsigned int at, int32_t offset, int32_t size)
{
	unsigned int leaf = range->height - 1;

	if (path->nodes[leaf]->count == FANOUT) {
		make_room(range, offset);
		leaf = range->height - 1;
		at = descend(range, offset, path);
	}
	insert_entry(path->nodes[leaf], at, offset, size, NULL);
	range->holes++;
	if (!at)
		lower_offsets(range, path, offset);
	raise_sizes(path, leaf, size);
}

static void remove_hole(struct fmlib_range *range, struct path *path,
			unsigned int at)
{
	unsigned int level = range->height - 1;
	struct fmlib_range_node *node = path->nodes[level];

	remove_entry(node, at, true);
	range->holes--;
	while (!node->count && level) {
		drop_node(range, node);
		node = path->nodes[--level];
		remove_entry(node, path->at[level], false);
	}
	while (range->height > 1 && range->root->count == 1) {
		node = range->root;
		range->root = node->children[0];
		range->height--;
		drop_node(range, node);
	}
}

/*
 * Fills @path down to the lowest hole that is large enough. Returns false if
 * there is none. Corrects sizes of children that it finds to be too high.
 */
static inline __attribute__((always_inline)) bool
find_fit(const struct fmlib_range *range, int32_t size, struct path *path)
{
	struct fmlib_range_node *node = range->root;
	unsigned int level = 0;
	int32_t most;
	unsigned int at;

	for (;;) {
		at = first_from(&node->sizes, size);
		path->nodes[level] = node;
		path->at[level] = at;
		if (at < FANOUT) {
			if (++level == range->height)
				return true;
			node = node->children[at];
			continue;
		}
		if (!level--)
			return false;
		most = largest(node);
		node = path->nodes[level];
		node->sizes.of[path->at[level]] = most;
	}
}

int fmlib_range_reserve(struct fmlib_range *range, uint64_t size,
			uint64_t *offset)
{
	uint64_t units = size >> range->shift;
	struct fmlib_range_node *node;
	struct path path;
	unsigned int leaf;
	unsigned int at;

	if (!units || units >= NOWHERE)
		return -ENOSPC;
	if (prepare(range))
		return -ENOMEM;
	if (!find_fit(range, (int32_t)units, &path))
		return -ENOSPC;
	leaf = range->height - 1;
	node = path.nodes[leaf];
	at = path.at[leaf];
	*offset = (uint64_t)node->offsets.of[at] << range->shift;
	/* Only the last hole can reach the end of the range. */
	if (range->tail && (uint32_t)(node->offsets.of[at] +
				      node->sizes.of[at]) == range->size)
		range->tail -= (uint32_t)units;
	if (node->sizes.of[at] == (int32_t)units) {
		remove_hole(range, &path, at);
	} else {
		node->offsets.of[at] += (int32_t)units;
		node->sizes.of[at] -= (int32_t)units;
		if (at + 1 == node->count)
			raise_next(range, &path, node->offsets.of[at]);
	}
	range->used += (uint32_t)units;
	range->parts++;
	return 0;
}

int fmlib_range_claim(struct fmlib_range *range, uint64_t offset, uint64_t size)
{
	uint64_t units = size >> range->shift;
	uint64_t from = offset >> range->shift;
	unsigned int leaf = range->height - 1;
	struct fmlib_range_node *node;
	struct path path;
	unsigned int at;
	int32_t before;
	int32_t rest;

	if (!units || from > range->size || units > range->size - from)
		return -EBUSY;
	at = descend(range, (int32_t)from, &path);
	if (!at && !step_back(range, &path))
		return -EBUSY;
	at = at ? at - 1 : path.at[leaf];
	node = path.nodes[leaf];
	before = (int32_t)from - node->offsets.of[at];
	rest = node->sizes.of[at] - before - (int32_t)units;
	if (rest < 0)
		return -EBUSY;
	if (range->tail && from + units + (uint32_t)rest == range->size)
		range->tail = (uint32_t)rest;
	range->used += (uint32_t)units;
	range->parts++;
	if (!before && !rest) {
		remove_hole(range, &path, at);
		return 0;
	}
	node->offsets.of[at] += before ? 0 : (int32_t)units;
	node->sizes.of[at] = before ? before : rest;
	if (at + 1 == node->count && rest)
		raise_next(range, &path, (int32_t)(from + units));
	if (before && rest)
		insert_hole(range, &path, at + 1, (int32_t)(from + units),
			    rest);
	return 0;
}

/* Merges two holes into one. */
static int32_t merge(struct fmlib_range *range, struct path *before,
		     unsigned int before_at, struct path *path,
		     unsigned int at, int32_t size)
{
	unsigned int leaf = range->height - 1;
	int32_t sum = before->nodes[leaf]->sizes.of[before_at] + size +
		      path->nodes[leaf]->sizes.of[at];

	before->nodes[leaf]->sizes.of[before_at] = sum;
	raise_sizes(before, leaf, sum);
	remove_hole(range, path, at);
	return sum;
}

static int32_t lengthen(const struct fmlib_range *range, struct path *path,
			unsigned int at, int32_t size)
{
	unsigned int leaf = range->height - 1;
	int32_t sum = path->nodes[leaf]->sizes.of[at] + size;

	path->nodes[leaf]->sizes.of[at] = sum;
	raise_sizes(path, leaf, sum);
	return sum;
}

static int give_back(struct fmlib_range *range, int32_t offset, int32_t size)
{
	unsigned int leaf = range->height - 1;
	struct path *before;
	struct path other;
	struct path path;
	struct fmlib_range_node *node;
	int32_t end = offset + size;
	unsigned int before_at;
	bool has_before = true;
	bool has_next;
	unsigned int at;

	at = descend(range, end, &path);
	node = path.nodes[leaf];
	has_next = at && node->offsets.of[at - 1] == end;
	if (has_next)
		end += node->sizes.of[--at];
	before = &path;
	before_at = at - 1;
	if (!at) {
		other = path;
		before = &other;
		has_before = step_back(range, before);
		before_at = before->at[leaf];
	}
	if (has_before) {
		int32_t before_end;

		node = before->nodes[leaf];
		before_end = node->offsets.of[before_at] +
			     node->sizes.of[before_at];
		if (before_end > offset)
			return -EINVAL;
		has_before = before_end == offset;
	}
	if (has_before && has_next) {
		size = merge(range, before, before_at, &path, at, size);
	} else if (has_before) {
		size = lengthen(range, before, before_at, size);
	} else if (has_next) {
		path.nodes[leaf]->offsets.of[at] = offset;
		if (!at)
			lower_offsets(range, &path, offset);
		size = lengthen(range, &path, at, size);
	} else {
		insert_hole(range, &path, at, offset, size);
	}
	if ((uint32_t)end == range->size)
		range->tail = (uint32_t)size;
	return 0;
}

int fmlib_range_release(struct fmlib_range *range, uint64_t offset,
			uint64_t size)
{
	uint64_t from = offset >> range->shift;
	uint64_t units = size >> range->shift;
	int err;

	if (!units || from > range->size || units > range->size - from)
		return -EINVAL;
	err = give_back(range, (int32_t)from, (int32_t)units);
	if (err)
		return err;
	range->used -= (uint32_t)units;
	range->parts--;
	range->releases++;
	return 0;
}

int fmlib_range_grow(struct fmlib_range *range, uint64_t more)
{
	uint64_t units = more >> range->shift;
	int err;

	if (units >= NOWHERE - (uint64_t)range->size)
		return -EFBIG;
	err = fmlib_range_prepare(range);
	if (err || !units)
		return err;
	range->size += (uint32_t)units;
	return give_back(range, (int32_t)(range->size - units),
			 (int32_t)units);
}

int fmlib_range_shrink(struct fmlib_range *range, uint64_t less)
{
	uint64_t units = less >> range->shift;
	struct path path;
	unsigned int at;

	if (units > range->tail)
		return -EINVAL;
	if (!units)
		return 0;
	at = descend(range, (int32_t)range->size, &path) - 1;
	if (units == range->tail)
		remove_hole(range, &path, at);
	else
		path.nodes[range->height - 1]->sizes.of[at] -= (int32_t)units;
	range->size -= (uint32_t)units;
	range->tail -= (uint32_t)units;
	return 0;
}

/*
 * Returns the size of the largest hole below the node, or @most if that is
 * larger.
 */
static int32_t find_largest(const struct fmlib_range_node *node,
			    unsigned int height, int32_t most)
{
	uint32_t i;

	for (i = 0; i < node->count; i++) {
		if (node->sizes.of[i] <= most)
			continue;
		most = height == 1 ? node->sizes.of[i] :
		       find_largest(node->children[i], height - 1, most);
	}
	return most;
}

uint64_t fmlib_range_largest(const struct fmlib_range *range)
{
	return (uint64_t)find_largest(range->root, range->height, 0) <<
	       range->shift;
}

/*
 * Moves @path from the entry @at of the node at @level to the first hole of at
 * least @size units at this entry or behind it. Returns false if there is none.
 */
static bool find_next_fit(const struct fmlib_range *range, int32_t size,
			  struct path *path, unsigned int level,
			  unsigned int at)
{
	uint32_t found;

	for (;;) {
		found = at < FANOUT ? at_least(&path->nodes[level]->sizes,
					       size) >> at << at : 0;
		if (found) {
			at = (unsigned int)__builtin_ctz(found);
			path->at[level] = at;
			if (level + 1 == range->height)
				return true;
			path->nodes[level + 1] =
				path->nodes[level]->children[at];
			level++;
			at = 0;
		} else {
			if (!level)
				return false;
			level--;
			at = path->at[level] + 1;
		}
	}
}

bool fmlib_range_fit(const struct fmlib_range *range, uint64_t size,
		     uint64_t *offset, uint64_t *hole)
{
	uint64_t from = *offset >> range->shift;
	uint64_t units = size >> range->shift;
	unsigned int leaf = range->height - 1;
	const struct fmlib_range_node *node;
	struct path path;
	unsigned int at;

	if (!units || units >= NOWHERE || from >= NOWHERE)
		return false;
	if (from) {
		at = descend(range, (int32_t)from - 1, &path);
		if (!find_next_fit(range, (int32_t)units, &path, leaf, at))
			return false;
	} else if (!find_fit(range, (int32_t)units, &path)) {
		return false;
	}
	node = path.nodes[leaf];
	at = path.at[leaf];
	*offset = (uint64_t)node->offsets.of[at] << range->shift;
	*hole = (uint64_t)node->sizes.of[at] << range->shift;
	return true;
}

bool fmlib_range_hole(const struct fmlib_range *range, uint64_t *offset,
		      uint64_t *size)
{
	uint64_t from = *offset >> range->shift;
	unsigned int level = range->height - 1;
	struct fmlib_range_node *node;
	struct path path;
	unsigned int at;

	if (from >= NOWHERE)
		return false;
	at = descend(range, (int32_t)from - 1, &path);
	node = path.nodes[level];
	while (at == node->count) {
		/*
		 * Climbs to the first node that has a next child, then descends
		 * to the first leaf of that child.
		 */
		do {
			if (!level--)
				return false;
		} while (path.at[level] + 1 == path.nodes[level]->count);
		path.at[level]++;
		for (; level + 1 < range->height; level++) {
			node = path.nodes[level]->children[path.at[level]];
			path.nodes[level + 1] = node;
			path.at[level + 1] = 0;
		}
		at = 0;
	}
	*offset = (uint64_t)node->offsets.of[at] << range->shift;
	*size = (uint64_t)node->sizes.of[at] << range->shift;
	return true;
}
