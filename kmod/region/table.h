/* SPDX-License-Identifier: GPL-2.0 */
/* The region table of one function: regions, and the acquisition of more. */
#ifndef _FLEXMEM_TABLE_H
#define _FLEXMEM_TABLE_H

#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/flexmem.h>

#include "gate/function.h"
#include "parts/leaving.h"
#include "region/domain.h"
#include "region/region.h"
#include "region/slot.h"
#include "settings.h"
#include "tenant/account.h"

struct address_space;

/**
 * struct flexmem_table - all regions of one function
 * @function: the device's function
 * @settings: copy of the module's settings at registration
 * @hw_slots: number of entries in the firmware's table; on a PF, which has no
 *	table, the number of slots in @slots
 * @full_reason: what limits the number of slots in @slots
 * @domain: the function's memories
 * @default_domains: bit mask of the domains that allocations come from by
 *	default
 * @slots: which slots are filled, and which the firmware refuses
 * @range: the range of slots for each kind of memory. The range for programs is
 *	empty unless slots are set aside
 * @region: regions by slot. Written under @acquire_lock, read under RCU
 * @reservations: accounts of the cgroups that have reservations; under
 *	@acquire_lock
 * @past_allocs: number of allocations in regions that were released; under
 *	@snapshot_lock
 * @last_serial: serial number of the last region; under @acquire_lock
 * @resets: number of resets of the function
 * @runs_programs: the device's driver has had a reference to a client, so programs
 *	may have written anywhere in any region
 * @scrub_work: background scrub
 * @scrub_anew: the background scrub must check all dirty blocks
 * @scrub_checked: how many dirty blocks of each region @scrub_work has checked
 *	since it last found work. Only @scrub_work uses it
 * @release_work: releases idle regions
 * @mapping: address space of all CPU mappings of this function, or NULL
 * @map_shift: the mmap() offset of a slot is its number shifted left by this
 * @accounts: charges of owners
 * @leaving: freed allocations that the device still uses
 * @acquire_lock: acquisition and release of regions and slots. May be held
 *	while the firmware works, so user tasks wait for it killably
 * @snapshot_lock: held while all region locks are taken; never while the
 *	firmware works
 * @map_lock: read: a page is being mapped; write: all mappings are removed.
 *	Never held while the firmware works
 *
 * Lock order: acquire_lock -> function.data_lock -> snapshot_lock -> region
 * locks, lowest slot first -> accounts.lock. The lock of a client's space comes
 * after acquire_lock; no lock is taken under it. map_lock comes after acquire_lock
 * and data_lock, and after mmap_lock in a page fault. slots.lock is a leaf. The
 * lock of a client's handles is never held together with any of these. While readers
 * of events are woken up, accounts.gauge.files_lock is held, and no other; it comes
 * before accounts.lock. A file's turn is taken before the region locks. leaving.lock
 * is a leaf; interrupt handlers take it under the locks of fences. No lock here is
 * ever held across a copy from or to user space.
 */
struct flexmem_table {
	struct flexmem_function function;
	struct flexmem_settings settings;
	unsigned int hw_slots;
	enum flexmem_reason full_reason;
	struct flexmem_domain domain[FLEXMEM_MAX_DOMAINS];
	u64 default_domains;
	struct flexmem_slots slots;
	struct flexmem_slot_range range[FLEXMEM_NR_KINDS];
	struct flexmem_region __rcu *region[FLEXMEM_MAX_SLOTS];
	struct list_head reservations;
	u64 past_allocs;
	u64 last_serial;
	u64 resets;
	bool runs_programs;
	struct delayed_work scrub_work;
	unsigned int scrub_anew;
	u64 scrub_checked;
	struct delayed_work release_work;
	struct address_space *mapping;
	unsigned int map_shift;
	struct flexmem_accounts accounts;
	struct flexmem_leaving leaving;
	struct mutex acquire_lock; /* held to change regions and slots */
	struct mutex snapshot_lock; /* held to take all region locks */
	struct rw_semaphore map_lock; /* held to map pages or to remove maps */
};

/* A loop over the domains in a bit mask, lowest id first. */
/* checkpatch: MACRO_ARG_REUSE - it is a name */
#define flexmem_for_each_domain(domain, table, mask)			\
	for (u64 left_ = (mask);					\
	     left_ && ((domain) = &(table)->domain[__ffs64(left_)], true); \
	     left_ &= left_ - 1)

static inline u64 flexmem_table_all(const struct flexmem_table *table)
{
	return U64_MAX >> (64 - table->function.nr_domains);
}

/* With this shift 32-bit programs can pass the mmap() offsets of 64 slots. */
#define FLEXMEM_MIN_MAP_SHIFT 38

/* The error for accesses to the bytes of a lost region; 0 if it is not lost. */
static inline int flexmem_region_error(const struct flexmem_region *region)
{
	if (!flexmem_region_is_lost(region))
		return 0;
	return flexmem_function_is_gone(&region->table->function) ? -ENODEV :
								     -EIO;
}

int flexmem_table_init(struct flexmem_table *table, struct device *dev,
		       const struct flexmem_device_desc *desc,
		       const struct flexmem_settings *settings);
int flexmem_table_prealloc(struct flexmem_table *table);
void flexmem_table_remove(struct flexmem_table *table);
void flexmem_table_fini(struct flexmem_table *table);
int flexmem_table_reset(struct flexmem_table *table);
void flexmem_table_suspend(struct flexmem_table *table);
void flexmem_table_resume(struct flexmem_table *table);
int flexmem_table_trim(struct flexmem_table *table, unsigned int *regions,
		       u64 *bytes);
u64 flexmem_table_serial(struct flexmem_table *table, u64 region_id);
u64 flexmem_table_serial_at(struct flexmem_table *table, unsigned int slot);
int flexmem_table_new_capacity(struct flexmem_table *table);
int flexmem_table_refresh(struct flexmem_table *table);
void flexmem_table_outdate(struct flexmem_table *table);
u64 flexmem_table_max_region(struct flexmem_table *table, u64 domains);
u64 flexmem_table_next_region(struct flexmem_table *table, u64 domains);
u64 flexmem_table_capacity(const struct flexmem_table *table);
enum flexmem_reason
flexmem_table_exhausted(const struct flexmem_table *table,
			enum flexmem_kind kind, u64 domains, u64 min_size);

/*
 * The declarations below are for the files that change regions: table.c and
 * table_*.c, placement.c and reservation.c. Reports also call
 * flexmem_table_kind().
 */
int flexmem_table_retry_scrub(struct flexmem_block *block);
int flexmem_table_scrub_quarantine(struct flexmem_table *table);
void flexmem_table_scrub_work(struct work_struct *work);
void flexmem_table_scrub_stop(struct flexmem_table *table);
void flexmem_table_update_memory(struct flexmem_table *table);
void flexmem_table_reopen(struct flexmem_table *table);
int flexmem_table_retry(struct flexmem_table *table, bool all);
void flexmem_table_work(struct work_struct *work);
void flexmem_table_release_idle(struct flexmem_table *table);
void flexmem_table_release_init(struct flexmem_table *table);
bool flexmem_region_unpublish(struct flexmem_table *table,
			      struct flexmem_region *region,
			      struct list_head *quarantine);

static inline struct flexmem_region *
flexmem_region_at(struct flexmem_table *table, unsigned int slot)
{
	return rcu_dereference_protected(table->region[slot],
					 lockdep_is_held(&table->acquire_lock));
}

/* Programs use slots for tensors unless slots are set aside for programs. */
static inline enum flexmem_kind
flexmem_table_kind(const struct flexmem_table *table, enum flexmem_kind kind)
{
	return table->settings.program_slots ? kind : FLEXMEM_KIND_TENSOR;
}

struct flexmem_region *flexmem_region_acquire(struct flexmem_table *table,
					      enum flexmem_kind kind,
					      u64 domains, u64 min_size,
					      u64 max_size,
					      struct flexmem_region **fresh);
int flexmem_region_add(struct flexmem_table *table, enum flexmem_kind kind,
		       u64 domains, u64 size, struct flexmem_account *cgroup,
		       unsigned int *slot);
void flexmem_region_publish(struct flexmem_table *table,
			    struct flexmem_region *region);

#endif /* _FLEXMEM_TABLE_H */
