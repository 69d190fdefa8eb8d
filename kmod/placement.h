/* SPDX-License-Identifier: GPL-2.0 */
/* Which regions an allocation tries, in which order, and when it gets a new one. */
#ifndef _FLEXMEM_PLACEMENT_H
#define _FLEXMEM_PLACEMENT_H

#include <linux/types.h>
#include <linux/flexmem.h>

struct flexmem_block;
struct flexmem_region;
struct flexmem_spare;
struct flexmem_table;

/**
 * struct flexmem_request - what to place
 * @size: bytes, a multiple of FLEXMEM_ALIGN, not 0
 * @alignment: of the offset; a power of two from FLEXMEM_ALIGN to
 *	FLEXMEM_MAX_ALIGNMENT
 * @program: memory for a program
 * @owner: token of the owner, not NULL
 */
struct flexmem_request {
	u64 size;
	u64 alignment;
	bool program;
	const void *owner;
};

/**
 * struct flexmem_place - where it went, or why it did not go anywhere
 * @region: region
 * @block: block of it
 * @reason: on -ENOMEM: the limit that stopped it; FLEXMEM_REASON_NONE if it was
 *	the kernel that had no memory
 * @total_free: on -ENOMEM: bytes free in all regions that were candidates
 * @largest_free: on -ENOMEM: largest free block among them
 * @max_region: on -ENOMEM: the largest region there could be
 */
struct flexmem_place {
	struct flexmem_region *region;
	struct flexmem_block *block;
	enum flexmem_reason reason;
	u64 total_free;
	u64 largest_free;
	u64 max_region;
};

const char *flexmem_order_name(unsigned int order);
int flexmem_place(struct flexmem_table *table,
		  const struct flexmem_request *request,
		  struct flexmem_spare *spare, struct flexmem_place *place);
void flexmem_place_figures(struct flexmem_table *table, bool program,
			   struct flexmem_place *place);

#endif /* _FLEXMEM_PLACEMENT_H */
