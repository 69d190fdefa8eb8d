// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Finds the free piece for a request in the fixed segments: the tightest one,
 * and of equally tight ones the lowest one in the oldest segment. A treap keeps
 * the pieces in this order.
 *
 * The depth of a treap is O(log n), whatever the order of the calls, because
 * priorities are random. So recursion is safe.
 */
#include "cache.h"

static bool before(const struct fmlib_piece *a, const struct fmlib_piece *b)
{
	if (a->size != b->size)
		return a->size < b->size;
	if (a->segment != b->segment)
		return a->segment->serial < b->segment->serial;
	return a->offset < b->offset;
}

/* Splits a tree: @left gets the pieces before @key, @right the others. */
static void part(struct fmlib_piece *root, const struct fmlib_piece *key,
		 struct fmlib_piece **left, struct fmlib_piece **right)
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

/* Joins two trees. All of @left comes before all of @right. */
static struct fmlib_piece *join(struct fmlib_piece *left,
				struct fmlib_piece *right)
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

static struct fmlib_piece *insert(struct fmlib_piece *root,
				  struct fmlib_piece *piece)
{
	if (!root || piece->priority > root->priority) {
		part(root, piece, &piece->left, &piece->right);
		root = piece;
	} else if (before(piece, root)) {
		root->left = insert(root->left, piece);
	} else {
		root->right = insert(root->right, piece);
	}
	return root;
}

static struct fmlib_piece *take_out(struct fmlib_piece *root,
				    struct fmlib_piece *piece)
{
	if (root == piece)
		return join(piece->left, piece->right);
	if (before(piece, root))
		root->left = take_out(root->left, piece);
	else
		root->right = take_out(root->right, piece);
	return root;
}

void fmlib_fit_insert(struct fmlib_fit *fit, struct fmlib_piece *piece)
{
	fit->root = insert(fit->root, piece);
}

void fmlib_fit_remove(struct fmlib_fit *fit, struct fmlib_piece *piece)
{
	fit->root = take_out(fit->root, piece);
}

struct fmlib_piece *fmlib_fit_best(const struct fmlib_fit *fit, uint64_t size)
{
	struct fmlib_piece *piece = fit->root;
	struct fmlib_piece *best = NULL;

	while (piece) {
		if (piece->size >= size) {
			best = piece;
			piece = piece->left;
		} else {
			piece = piece->right;
		}
	}
	return best;
}

static bool serves(const struct fmlib_piece *piece,
		   const struct fmlib_want *want, uint64_t whole)
{
	uint64_t skip = fmlib_skip(piece->segment, piece->offset, want);

	return piece->size >= want->size && piece->size - want->size >= skip &&
	       (!skip || piece->size < whole);
}

/* A piece with alignment - 1 bytes more than the request always serves it. */
static struct fmlib_piece *search(struct fmlib_piece *root,
				  const struct fmlib_want *want, uint64_t whole)
{
	struct fmlib_piece *found = NULL;

	if (!root)
		return NULL;
	if (root->size >= want->size)
		found = search(root->left, want, whole);
	if (!found && serves(root, want, whole))
		found = root;
	return found ? found : search(root->right, want, whole);
}

struct fmlib_piece *fmlib_fit_aligned(const struct fmlib_fit *fit,
				      const struct fmlib_want *want,
				      uint64_t whole)
{
	return search(fit->root, want, whole);
}

uint64_t fmlib_fit_largest(const struct fmlib_fit *fit)
{
	const struct fmlib_piece *piece = fit->root;

	while (piece && piece->right)
		piece = piece->right;
	return piece ? piece->size : 0;
}
