/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Placement: the order of regions for an allocation, and when to acquire one.
 */
#ifndef _FLEXMEM_PLACEMENT_H
#define _FLEXMEM_PLACEMENT_H

#include <linux/types.h>
#include <linux/flexmem.h>

#include "domain.h"

struct flexmem_block;
struct flexmem_region;
struct flexmem_account;
struct flexmem_request;
struct flexmem_stock;
struct flexmem_table;

/**
 * struct flexmem_place - result of a placement
 * @block: block
 * @reason: on -ENOMEM: the reason; FLEXMEM_REASON_NONE if the kernel had no
 *	memory. During the search: the limit that refused a block which was
 *	large enough
 * @region_reason: on -ENOMEM for fragmentation or alignment: why no further
 *	region was acquired
 * @abandoned: the caller was killed, and the worker uncharges the bytes
 * @given: blocks that a failed allocation of several chunks has freed again
 * @gave_up: the search in a region ended early, so a block that would fit may
 *	exist
 * @regions: on -ENOMEM: number of acquired regions
 * @total_free: on -ENOMEM: free bytes in all regions for this kind of memory,
 *	of the domains that the request could use, without regions that are
 *	reserved for others
 * @largest_free: on -ENOMEM: largest free block in these regions
 * @largest_closed: on -ENOMEM: largest free block in regions that are reserved for
 *	others
 * @max_region: on -ENOMEM: largest possible region
 * @leaving: on -ENOMEM: freed bytes that are still in use, in all regions
 */
struct flexmem_place {
	struct flexmem_block *block;
	enum flexmem_reason reason;
	enum flexmem_reason region_reason;
	bool abandoned;
	bool gave_up;
	unsigned int given;
	unsigned int regions;
	u64 total_free;
	u64 largest_free;
	u64 largest_closed;
	u64 max_region;
	u64 leaving;
};

int flexmem_place(struct flexmem_table *table,
		  const struct flexmem_request *request,
		  struct flexmem_stock *stock, struct flexmem_place *place);
bool flexmem_place_is_impossible(struct flexmem_table *table, u64 domains,
				 u64 size);
void flexmem_place_stats(struct flexmem_table *table,
			 const struct flexmem_account *account,
			 enum flexmem_kind kind, u64 domains,
			 struct flexmem_place *place);

#endif /* _FLEXMEM_PLACEMENT_H */
