// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Which free block serves a request. Free blocks are in a treap: a search tree
 * by size (the tightest fit; the oldest segment and the lowest offset among
 * equals), or by offset within one segment (the lowest fit). Each block knows
 * the largest size below it, so that both are found in O(log n).
 *
 * The depth of a treap is O(log n) whatever the order of the calls, since
 * priorities are random; recursion is safe.
 */
#include "cache.h"

static bool before(const struct fmlib_fit *fit, const struct fmlib_block *a,
		   const struct fmlib_block *b)
{
	if (!fit->by_offset) {
		if (a->size != b->size)
			return a->size < b->size;
		if (a->segment != b->segment)
			return a->segment->serial < b->segment->serial;
	}
	return a->offset < b->offset;
}

static void update(struct fmlib_block *block)
{
	block->largest = block->size;
	if (block->left && block->left->largest > block->largest)
		block->largest = block->left->largest;
	if (block->right && block->right->largest > block->largest)
		block->largest = block->right->largest;
}

/* Parts a tree into what comes before @key and the rest. */
static void part(const struct fmlib_fit *fit, struct fmlib_block *root,
		 const struct fmlib_block *key, struct fmlib_block **left,
		 struct fmlib_block **right)
{
	if (!root) {
		*left = NULL;
		*right = NULL;
		return;
	}
	if (before(fit, root, key)) {
		part(fit, root->right, key, &root->right, right);
		*left = root;
	} else {
		part(fit, root->left, key, left, &root->left);
		*right = root;
	}
	update(root);
}

/* Everything in @left comes before everything in @right. */
static struct fmlib_block *join(struct fmlib_block *left,
				struct fmlib_block *right)
{
	if (!left)
		return right;
	if (!right)
		return left;
	if (left->priority > right->priority) {
		left->right = join(left->right, right);
		update(left);
		return left;
	}
	right->left = join(left, right->left);
	update(right);
	return right;
}

static struct fmlib_block *insert(const struct fmlib_fit *fit,
				  struct fmlib_block *root,
				  struct fmlib_block *block)
{
	if (!root || block->priority > root->priority) {
		part(fit, root, block, &block->left, &block->right);
		root = block;
	} else if (before(fit, block, root)) {
		root->left = insert(fit, root->left, block);
	} else {
		root->right = insert(fit, root->right, block);
	}
	update(root);
	return root;
}

static struct fmlib_block *take_out(const struct fmlib_fit *fit,
				    struct fmlib_block *root,
				    struct fmlib_block *block)
{
	if (root == block)
		return join(block->left, block->right);
	if (before(fit, block, root))
		root->left = take_out(fit, root->left, block);
	else
		root->right = take_out(fit, root->right, block);
	update(root);
	return root;
}

void fmlib_fit_insert(struct fmlib_fit *fit, struct fmlib_block *block)
{
	fit->root = insert(fit, fit->root, block);
}

void fmlib_fit_remove(struct fmlib_fit *fit, struct fmlib_block *block)
{
	fit->root = take_out(fit, fit->root, block);
}

struct fmlib_block *fmlib_fit_best(const struct fmlib_fit *fit, uint64_t size)
{
	struct fmlib_block *block = fit->root;
	struct fmlib_block *best = NULL;

	while (block) {
		if (block->size >= size) {
			best = block;
			block = block->left;
		} else {
			block = block->right;
		}
	}
	return best;
}

struct fmlib_block *fmlib_fit_lowest(const struct fmlib_fit *fit, uint64_t size)
{
	struct fmlib_block *block = fit->root;

	if (!block || block->largest < size)
		return NULL;
	for (;;) {
		if (block->left && block->left->largest >= size)
			block = block->left;
		else if (block->size >= size)
			return block;
		else
			block = block->right;
	}
}

uint64_t fmlib_fit_largest(const struct fmlib_fit *fit)
{
	return fit->root ? fit->root->largest : 0;
}
