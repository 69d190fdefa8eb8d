/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The region table of one function: which regions there are, how further ones
 * are acquired, and when that stops.
 */
#ifndef _FLEXMEM_REGION_H
#define _FLEXMEM_REGION_H

#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/flexmem.h>

#include "block.h"
#include "device_ops.h"
#include "settings.h"
#include "slot.h"

struct device;

/**
 * struct flexmem_region - device memory in a slot
 * @slot: index in the table and in the firmware's; never changes
 * @id: region_id of every address in it; never changes
 * @program: in a slot set aside for programs; never changes
 * @mem: what the device gave; never changes
 * @stranded: in &flexmem_table.stranded
 * @rcu: frees the region
 * @lock: protects what follows. Held for O(log n) work only: no allocation, no
 *	callback, no firmware and no user memory under it.
 * @dead: on its way back to the device: nothing is allocated from it any more.
 *	Who frees its last block frees the region.
 * @blocks: its blocks
 * @used_program: bytes allocated for programs
 * @sequence: changes so far, so that a record of them can be put in order
 * @allocs: allocations made so far
 */
struct flexmem_region {
	unsigned int slot;
	u64 id;
	bool program;
	struct flexmem_memory mem;
	struct list_head stranded;
	struct rcu_head rcu;

	spinlock_t lock ____cacheline_aligned_in_smp;
	bool dead;
	struct flexmem_blocks blocks;
	u64 used_program;
	u64 sequence;
	u64 allocs;
};

enum flexmem_pool_kind {
	FLEXMEM_POOL_TENSOR,
	FLEXMEM_POOL_PROGRAM,
	FLEXMEM_NR_POOLS,
};

/**
 * struct flexmem_table - all regions of one function
 * @dev: for messages; may be NULL
 * @mode: PF or VF; decides what a region's id is, and nothing else
 * @ops: the device's operations
 * @priv: their argument
 * @settings: as they were when the device registered
 * @granule: region sizes are multiples of this
 * @hw_slots: entries of the firmware's table; of a PF, as many as @slots has
 * @full_reason: which limit it is that makes @slots as many as they are
 * @capacity: bytes the function may acquire; changes under @acquire_lock
 * @capacity_is_old: it has changed, but the firmware has not said to what yet
 * @slots: the segment table
 * @pool: the slots for tensors and for programs; the same ones, unless some
 *	are set aside
 * @region: by slot; NULL where there is none. Written under @acquire_lock,
 *	read under RCU.
 * @stranded: memory without a slot that the firmware would not take back yet;
 *	under @acquire_lock
 * @closing: the device goes: its operations are not called any more. Set before
 *	acquire_lock is taken for the last time, so that nobody who waits for
 *	that lock makes removal wait for the firmware.
 * @past_allocs: allocations made in regions that are gone; under
 *	@snapshot_lock
 * @acquire_lock: acquisition and release of regions and slots. May be held
 *	while the firmware works, so it is waited for killably.
 * @snapshot_lock: held while all region locks are taken; never while the
 *	firmware works
 *
 * Lock order: acquire_lock -> snapshot_lock -> region locks, lowest slot
 * first -> slots.lock. The lock of a client's handles is a leaf, never held
 * together with any of these.
 */
struct flexmem_table {
	struct device *dev;
	enum flexmem_mode mode;
	const struct flexmem_device_ops *ops;
	void *priv;
	struct flexmem_settings settings;
	u64 granule;
	unsigned int hw_slots;
	enum flexmem_reason full_reason;
	u64 capacity;
	bool capacity_is_old;
	struct flexmem_slots slots;
	struct flexmem_pool pool[FLEXMEM_NR_POOLS];
	struct flexmem_region __rcu *region[FLEXMEM_MAX_SLOTS];
	struct list_head stranded;
	bool closing;
	u64 past_allocs;
	struct mutex acquire_lock; /* regions and slots; see above */
	struct mutex snapshot_lock; /* all region locks at once; see above */
};

/**
 * struct flexmem_snapshot - the table at one moment
 * @nr: regions there are
 * @used_program: bytes allocated for programs
 * @allocs: allocations made since the device is there
 * @region: the regions, in the order of their slots
 */
struct flexmem_snapshot {
	unsigned int nr;
	u64 used_program;
	u64 allocs;
	struct flexmem_region_entry region[FLEXMEM_MAX_SLOTS];
};

int flexmem_region_init_caches(void);
void flexmem_region_exit_caches(void);

int flexmem_table_init(struct flexmem_table *table, struct device *dev,
		       const struct flexmem_device_desc *desc,
		       const struct flexmem_settings *settings);
int flexmem_table_prealloc(struct flexmem_table *table);
void flexmem_table_remove(struct flexmem_table *table);
int flexmem_table_trim(struct flexmem_table *table, unsigned int *regions,
		       u64 *bytes);
int flexmem_table_lock(struct flexmem_table *table);
int flexmem_table_new_capacity(struct flexmem_table *table);
int flexmem_table_refresh(struct flexmem_table *table);
u64 flexmem_table_max_region(struct flexmem_table *table);
void flexmem_table_snapshot(struct flexmem_table *table,
			    struct flexmem_snapshot *snapshot);
const char *flexmem_table_check(struct flexmem_table *table);

struct flexmem_pool *flexmem_table_pool(struct flexmem_table *table,
					bool program);
struct flexmem_region *flexmem_region_acquire(struct flexmem_table *table,
					      struct flexmem_pool *pool,
					      u64 min_size);
void flexmem_region_publish(struct flexmem_table *table,
			    struct flexmem_region *region);

int flexmem_spare_fill(struct flexmem_spare *spare, unsigned int nr);
void flexmem_spare_drop(struct flexmem_spare *spare);
struct flexmem_block *flexmem_region_alloc(struct flexmem_region *region,
					   u64 size, u64 alignment,
					   bool program, const void *owner,
					   struct flexmem_spare *spare);
void flexmem_region_free(struct flexmem_region *region,
			 struct flexmem_block *block, bool program);

#endif /* _FLEXMEM_REGION_H */
