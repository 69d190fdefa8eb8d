/* SPDX-License-Identifier: GPL-2.0 */
/* The state of one PF or VF at one moment. */
#ifndef _FLEXMEM_SNAPSHOT_H
#define _FLEXMEM_SNAPSHOT_H

#include <linux/types.h>
#include <linux/flexmem.h>

#include "region/region.h"
#include "region/slot.h"

/* Owners are read in batches of this number. */
#define FLEXMEM_VIEW_OWNERS 64

/**
 * struct flexmem_view - a PF or VF at one moment
 * @domains: bit mask of the domains that @kinds is about; set by the caller
 * @kinds: sums over the regions of @domains, by kind of slot
 * @nr: number of regions
 * @rooms: what the client could have in the regions
 * @limit: the client's flexmem_account_limit(); FLEXMEM_NO_LIMIT if all owners
 *	are reported
 * @limit_left: what @limit still allows
 * @memory: &flexmem_gauge.memory, or the bytes in use if these are more
 * @sum: receives the ``out_`` members except @out_flags and @out_failures; the
 *	other members stay unchanged
 * @owner: receives the first FLEXMEM_VIEW_OWNERS owners of the list, and then
 *	others, see flexmem_table_more_owners(); NULL if the caller wants none
 * @nr_owners: number of owners in @owner
 * @region: the regions, in the order of their slots; flexmem_view_hide()
 *	removes the figures that the caller must not see
 */
struct flexmem_view {
	u64 domains;
	struct flexmem_sum kinds[FLEXMEM_NR_KINDS];
	unsigned int nr;
	struct flexmem_rooms rooms;
	u64 limit;
	u64 limit_left;
	u64 memory;
	struct flexmem_snapshot sum;
	struct flexmem_owner_entry *owner;
	unsigned int nr_owners;
	struct flexmem_region_entry region[FLEXMEM_MAX_SLOTS];
};

void flexmem_table_snapshot(struct flexmem_table *table,
			    struct flexmem_account *only,
			    struct flexmem_view *view);
void flexmem_table_more_owners(struct flexmem_table *table,
			       struct flexmem_view *view);
void flexmem_view_hide(struct flexmem_view *view);

#endif /* _FLEXMEM_SNAPSHOT_H */
