// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Which free block of the fixed segments serves a request: the tightest one; of
 * equals that in the oldest segment, and there the lowest. They are in a treap
 * in that order.
 *
 * The depth of a treap is O(log n) whatever the order of the calls, since
 * priorities are random; recursion is safe.
 */
#include "cache.h"

static bool before(const struct fmlib_block *a, const struct fmlib_block *b)
{
	if (a->size != b->size)
		return a->size < b->size;
	if (a->segment != b->segment)
		return a->segment->serial < b->segment->serial;
	return a->offset < b->offset;
}

/* Parts a tree into what comes before @key and the rest. */
static void part(struct fmlib_block *root, const struct fmlib_block *key,
		 struct fmlib_block **left, struct fmlib_block **right)
{
	if (!root) {
		*left = NULL;
		*right = NULL;
		return;
	}
	if (before(root, key)) {
		part(root->right, key, &root->right, right);
		*left = root;
	} else {
		part(root->left, key, left, &root->left);
		*right = root;
	}
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
		return left;
	}
	right->left = join(left, right->left);
	return right;
}

static struct fmlib_block *insert(struct fmlib_block *root,
				  struct fmlib_block *block)
{
	if (!root || block->priority > root->priority) {
		part(root, block, &block->left, &block->right);
		root = block;
	} else if (before(block, root)) {
		root->left = insert(root->left, block);
	} else {
		root->right = insert(root->right, block);
	}
	return root;
}

static struct fmlib_block *take_out(struct fmlib_block *root,
				    struct fmlib_block *block)
{
	if (root == block)
		return join(block->left, block->right);
	if (before(block, root))
		root->left = take_out(root->left, block);
	else
		root->right = take_out(root->right, block);
	return root;
}

void fmlib_fit_insert(struct fmlib_fit *fit, struct fmlib_block *block)
{
	fit->root = insert(fit->root, block);
}

void fmlib_fit_remove(struct fmlib_fit *fit, struct fmlib_block *block)
{
	fit->root = take_out(fit->root, block);
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

uint64_t fmlib_fit_largest(const struct fmlib_fit *fit)
{
	const struct fmlib_block *block = fit->root;

	while (block && block->right)
		block = block->right;
	return block ? block->size : 0;
}
