/* SPDX-License-Identifier: GPL-2.0 */
/* Which regions an allocation tries, in which order, and when it gets a new one. */
#ifndef _FLEXMEM_PLACEMENT_H
#define _FLEXMEM_PLACEMENT_H

#include <linux/types.h>
#include <linux/flexmem.h>

#include "domain.h"

struct flexmem_block;
struct flexmem_region;
struct flexmem_request;
struct flexmem_stock;
struct flexmem_table;

/**
 * struct flexmem_place - where a request was placed, or why it was not
 * @region: region
 * @block: block of the region
 * @address: address of the block, as the ABI reports it
 * @reason: on -ENOMEM: the limit that stopped it; FLEXMEM_REASON_NONE if the
 *	kernel had no memory. During the search: the limit that refused a hole
 *	that was large enough
 * @region_reason: on -ENOMEM for fragmentation or alignment: why no further
 *	region was acquired
 * @gave_up: the search of a region ended at its bound; a later hole may suit
 * @regions: on -ENOMEM: regions acquired
 * @total_free: on -ENOMEM: bytes free in all regions that were candidates
 * @largest_free: on -ENOMEM: largest free block among them
 * @max_region: on -ENOMEM: the largest region there could be
 */
struct flexmem_place {
	struct flexmem_region *region;
	struct flexmem_block *block;
	struct flexmem_address address;
	enum flexmem_reason reason;
	enum flexmem_reason region_reason;
	bool gave_up;
	unsigned int regions;
	u64 total_free;
	u64 largest_free;
	u64 max_region;
};

const char *flexmem_order_name(unsigned int order);
int flexmem_place(struct flexmem_table *table,
		  const struct flexmem_request *request,
		  struct flexmem_stock *stock, struct flexmem_place *place);
void flexmem_place_stats(struct flexmem_table *table,
			 enum flexmem_kind kind, struct flexmem_place *place);

#endif /* _FLEXMEM_PLACEMENT_H */
