/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A sorted set of objects, each of which contains a node: a treap. It allocates
 * nothing, so it can be used where memory is short.
 *
 * Each operation is O(log n), whatever the order of the calls, because
 * priorities are random. So recursion is safe.
 */
#ifndef FMLIB_TREE_H
#define FMLIB_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fmlib_node {
	struct fmlib_node *left;
	struct fmlib_node *right;
	uint32_t priority;
};

/* The object of type @type whose member @member the node is. */
#define FMLIB_OF_NODE(node, type, member) \
	((type *)(void *)((char *)(node) - offsetof(type, member)))

/* Whether a node is before another one. No two nodes may be equal. */
typedef bool (*fmlib_before_fn)(const struct fmlib_node *a,
				const struct fmlib_node *b);
/*
 * Whether a node is at or behind a place. If a node is, so are all later ones.
 */
typedef bool (*fmlib_reaches_fn)(const struct fmlib_node *node,
				 const void *place);

/*
 * Add a node, and remove it. *@root is NULL if the set is empty. @random: any
 * number that has nothing to do with the order.
 */
void fmlib_tree_insert(struct fmlib_node **root, struct fmlib_node *node,
		       fmlib_before_fn before, uint32_t random);
void fmlib_tree_remove(struct fmlib_node **root, struct fmlib_node *node,
		       fmlib_before_fn before);

/* The first node that reaches the place; NULL: none does. */
struct fmlib_node *fmlib_tree_from(struct fmlib_node *root,
				   fmlib_reaches_fn reaches, const void *place);
/* The last node that does not reach the place; NULL: all do. */
struct fmlib_node *fmlib_tree_below(struct fmlib_node *root,
				    fmlib_reaches_fn reaches,
				    const void *place);

#endif /* FMLIB_TREE_H */
