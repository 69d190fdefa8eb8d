// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Sorted sets. See tree.h. */
#include "tree.h"

/* Splits a tree: @left gets the nodes before @key, @right the others. */
static void part(struct fmlib_node *root, const struct fmlib_node *key,
		 fmlib_before_fn before, struct fmlib_node **left,
		 struct fmlib_node **right)
{
	if (!root) {
		*left = NULL;
		*right = NULL;
	} else if (before(root, key)) {
		*left = root;
		part(root->right, key, before, &root->right, right);
	} else {
		*right = root;
		part(root->left, key, before, left, &root->left);
	}
}

/* Joins two trees. All of @left comes before all of @right. */
static struct fmlib_node *join(struct fmlib_node *left,
			       struct fmlib_node *right)
{
	if (!left || !right)
		return left ? left : right;
	if (left->priority > right->priority) {
		left->right = join(left->right, right);
		return left;
	}
	right->left = join(left, right->left);
	return right;
}

void fmlib_tree_insert(struct fmlib_node **root, struct fmlib_node *node,
		       fmlib_before_fn before, uint32_t random)
{
	struct fmlib_node **link = root;

	node->priority = random;
	while (*link && (*link)->priority >= random)
		link = before(*link, node) ? &(*link)->right : &(*link)->left;
	part(*link, node, before, &node->left, &node->right);
	*link = node;
}

void fmlib_tree_remove(struct fmlib_node **root, struct fmlib_node *node,
		       fmlib_before_fn before)
{
	struct fmlib_node **link = root;

	while (*link != node)
		link = before(*link, node) ? &(*link)->right : &(*link)->left;
	*link = join(node->left, node->right);
}

struct fmlib_node *fmlib_tree_from(struct fmlib_node *root,
				   fmlib_reaches_fn reaches, const void *place)
{
	struct fmlib_node *found = NULL;

	while (root) {
		if (reaches(root, place)) {
			found = root;
			root = root->left;
		} else {
			root = root->right;
		}
	}
	return found;
}

struct fmlib_node *fmlib_tree_below(struct fmlib_node *root,
				    fmlib_reaches_fn reaches,
				    const void *place)
{
	struct fmlib_node *found = NULL;

	while (root) {
		if (reaches(root, place)) {
			root = root->left;
		} else {
			found = root;
			root = root->right;
		}
	}
	return found;
}
