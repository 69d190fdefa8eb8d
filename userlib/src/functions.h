/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The functions whose nodes are in /dev, in an order that stays. */
#ifndef FMLIB_FUNCTIONS_H
#define FMLIB_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "flexmem.h"

struct fmlib_functions {
	struct flexmem_identity *list;
	size_t count;
};

/*
 * Lists the functions, and allocates @functions->list, which the caller frees.
 * @visible: only the functions that FLEXMEM_VISIBLE_DEVICES names, in its
 * order; otherwise all of them. Returns 0, -ENOMEM, or what opendir() returned.
 */
int fmlib_functions_list(struct fmlib_functions *functions, bool visible);

#endif /* FMLIB_FUNCTIONS_H */
