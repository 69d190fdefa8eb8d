/* SPDX-License-Identifier: GPL-2.0 */
/* One region: device memory in a slot, its blocks, and the charges for them. */
#ifndef _FLEXMEM_REGION_H
#define _FLEXMEM_REGION_H

#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/flexmem.h>

#include "block/block.h"
#include "gate/function.h"
#include "region/domain.h"
#include "tenant/account.h"

struct flexmem_request;
struct flexmem_stock;
struct flexmem_table;

/**
 * struct flexmem_region - device memory in a slot
 * @table: table of the region
 * @serial: number of the region, never reused in its table
 * @slot: index in the table and in the firmware's table
 * @id: region_id of every address in the region
 * @domain: domain of the memory
 * @kind: FLEXMEM_KIND_PROGRAM if the slot is set aside for programs
 * @mem: the memory as the device gave it; never changes, nor does a member above
 * @rcu: frees the region
 * @lock: protects the members below. Held for O(log n) work only: no
 *	allocation, no callback, no firmware and no user memory under it
 * @dead: the region is being released: no memory is allocated from it, and its
 *	blocks are not charged. The caller that frees the last block frees it
 * @lost: the device was reset or removed, and the region's bytes are gone.
 *	Before the release of the memory flexmem takes &flexmem_table.map_lock
 *	for writing, to wait for page faults that have not seen @lost yet
 * @reserved_for: only this cgroup and cgroups below it get blocks of the
 *	region, which stays while it is empty; NULL: all cgroups. Set under the
 *	table's acquire_lock as well
 * @blocks: blocks of the region
 * @quarantine: blocks that could not be scrubbed, by their residue's link
 * @nr_quarantined: number of blocks in @quarantine, or taken out for a retry
 * @retry_at: earliest time to retry a quarantined block, in jiffies
 * @used_program: bytes allocated for programs
 * @sequence: number of changes so far
 * @allocs: number of allocations so far
 * @idle_sequence: @sequence when the worker last checked for an idle region
 * @idle_since: when the worker first saw the region empty with @idle_sequence,
 *	in jiffies
 */
struct flexmem_region {
	struct flexmem_table *table;
	u64 serial;
	unsigned int slot;
	u64 id;
	struct flexmem_domain *domain;
	enum flexmem_kind kind;
	struct flexmem_memory mem;
	struct rcu_head rcu;

	spinlock_t lock ____cacheline_aligned_in_smp;
	bool dead;
	bool lost;
	struct flexmem_account *reserved_for;
	struct flexmem_blocks blocks;
	struct list_head quarantine;
	u64 nr_quarantined;
	unsigned long retry_at;
	u64 used_program;
	u64 sequence;
	u64 allocs;
	u64 idle_sequence;
	unsigned long idle_since;
};

/**
 * struct flexmem_sum - sums over regions
 * @regions: number of regions
 * @total: bytes of the regions
 * @free: free bytes, without @closed_free
 * @largest: the largest of these blocks
 * @closed_total: bytes of regions that are reserved for others
 * @closed_free: free bytes in these regions
 * @closed_largest: the largest free block in these regions
 */
struct flexmem_sum {
	unsigned int regions;
	u64 total;
	u64 free;
	u64 largest;
	u64 closed_total;
	u64 closed_free;
	u64 closed_largest;
};

/*
 * Whether the bytes of a region are gone. A reader that gets true also sees the
 * new state of the PF or VF, which explains the loss.
 */
static inline bool flexmem_region_is_lost(const struct flexmem_region *region)
{
	/* Pairs with flexmem_region_unpublish(). */
	return smp_load_acquire(&region->lost);
}

/* Whether @account may not use a region that is reserved for @cgroup. */
static inline bool flexmem_is_closed_by(const struct flexmem_account *cgroup,
					const struct flexmem_account *account)
{
	return cgroup && !flexmem_account_is_below(account, cgroup);
}

/* The same for a region; may be stale if the caller does not hold its lock. */
static inline bool flexmem_region_is_closed(const struct flexmem_region *region,
					    const struct flexmem_account *account)
{
	return flexmem_is_closed_by(READ_ONCE(region->reserved_for), account);
}

struct flexmem_region *flexmem_region_create(struct flexmem_table *table);
void flexmem_region_destroy(struct flexmem_region *region);
void flexmem_region_set_memory(struct flexmem_region *region,
			       const struct flexmem_memory *mem);
int flexmem_region_reserve(struct flexmem_region *region,
			   struct flexmem_account *cgroup);
void flexmem_region_unreserve(struct flexmem_region *region);
bool flexmem_region_retire(struct flexmem_region *region);
bool flexmem_region_is_idle(struct flexmem_region *region,
			    unsigned long for_jiffies, bool *empty);
void flexmem_region_revive(struct flexmem_region *region);
u64 flexmem_region_room(struct flexmem_region *region);
void flexmem_region_add_to(const struct flexmem_region *region, bool closed,
			   struct flexmem_sum *sum);
void flexmem_region_describe(const struct flexmem_region *region,
			     struct flexmem_region_entry *entry);

bool flexmem_region_alloc(struct flexmem_region *region,
			  struct flexmem_request *request);
u64 flexmem_region_extend(struct flexmem_block *block, u64 size,
			  struct flexmem_spare *spare,
			  struct flexmem_block **tail);
void flexmem_region_join(struct flexmem_block *block,
			 struct flexmem_block *tail);
void flexmem_region_shrink(struct flexmem_block *block, u64 size,
			   struct flexmem_spare *spare);
void flexmem_region_orphan(struct flexmem_block *block);
void flexmem_region_free(struct flexmem_block *block, unsigned int handles,
			 struct flexmem_stock *stock);

void flexmem_region_quarantine(struct flexmem_block *block);
struct flexmem_block *
flexmem_region_take_quarantined(struct flexmem_region *region);
void flexmem_region_end_quarantine(struct flexmem_block *block, bool scrubbed);
void flexmem_region_dirty_part(struct flexmem_region *region, u64 *start,
			       u64 *end);

#endif /* _FLEXMEM_REGION_H */
