/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The firmware slots of one function: which slots are in use, which memory each
 * slot makes addressable, and the leases that keep slots as they are.
 */
#ifndef _FLEXMEM_SLOT_H
#define _FLEXMEM_SLOT_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/flexmem.h>

#include "function.h"

struct flexmem_settings;

/* How many expired leases are removed under one hold of the lock. */
#define FLEXMEM_LEASES_AT_ONCE 64

/**
 * struct flexmem_slot_range - a range of slots for one kind of memory
 * @first: first slot
 * @end: the slot after the last
 * @no_slot: why no slot is left for a further region, or FLEXMEM_REASON_NONE.
 *	Changes under the table's acquire_lock, and is read without it
 */
struct flexmem_slot_range {
	unsigned int first;
	unsigned int end;
	enum flexmem_reason no_slot;
};

/**
 * struct flexmem_lease_hold - one client's lease
 * @link: in &flexmem_slots.leases while the lease is held; in
 *	&flexmem_slots.broken after it was broken
 * @began: when the lease was taken, in jiffies since boot; an extension does
 *	not change it
 * @expires: when the lease expires, in jiffies since boot
 * @breaks: value of &flexmem_slots.breaks when the lease was taken; a different
 *	value now means that the lease is broken
 */
struct flexmem_lease_hold {
	struct list_head link;
	u64 began;
	u64 expires;
	u64 breaks;
};

/**
 * struct flexmem_slots - the segment table
 * @nr: number of slots
 * @function: the function that the slots belong to
 * @refused: slots that the firmware does not let the driver use
 * @lock: protects the members below; a leaf. Filling and clearing a slot also
 *	needs the table's acquire_lock, so the slots do not change while a task
 *	holds acquire_lock. Taking a lease needs only @lock
 * @filled: slots in use
 * @entry: the memory that each slot makes addressable
 * @generation: grows by one whenever a slot is filled or cleared
 * @leases: held leases, of struct flexmem_lease_hold; some may have expired.
 *	All leases last equally long, so the list is in the order of expiry
 * @nr_leases: number of leases in @leases
 * @broken: broken leases that their clients have not noticed yet. One list
 *	splice breaks all leases, however many there are
 * @breaks: number of times that all leases were broken
 * @holds: number of holds that the device's driver has taken; no client can end
 *	them. Taken under @lock; dropped without it
 */
struct flexmem_slots {
	unsigned int nr;
	struct flexmem_function *function;
	DECLARE_BITMAP(refused, FLEXMEM_MAX_SLOTS);
	spinlock_t lock; /* protects the members below */
	DECLARE_BITMAP(filled, FLEXMEM_MAX_SLOTS);
	struct flexmem_segment_entry entry[FLEXMEM_MAX_SLOTS];
	u64 generation;
	struct list_head leases;
	unsigned int nr_leases;
	struct list_head broken;
	u64 breaks;
	atomic_t holds;
};

void flexmem_slots_init(struct flexmem_slots *slots, unsigned int nr,
			struct flexmem_function *function);
int flexmem_slots_find(struct flexmem_slots *slots,
		       const struct flexmem_slot_range *range);
int flexmem_slots_fill(struct flexmem_slots *slots, unsigned int slot,
		       const struct flexmem_memory *mem,
		       const struct flexmem_segment_entry *entry);
int flexmem_slots_clear(struct flexmem_slots *slots, unsigned int slot,
			bool break_leases);
int flexmem_slots_may_clear(struct flexmem_slots *slots, bool break_leases);
void flexmem_slots_forget(struct flexmem_slots *slots);
unsigned int flexmem_slots_read(struct flexmem_slots *slots,
				struct flexmem_segment_entry *entries,
				u64 *generation);
u64 flexmem_slots_generation(struct flexmem_slots *slots);

void flexmem_slots_hold(struct flexmem_slots *slots);
void flexmem_slots_unhold(struct flexmem_slots *slots);

/* Whether the driver holds the table, so that no slot can be cleared. */
static inline bool flexmem_slots_are_held(const struct flexmem_slots *slots)
{
	return atomic_read(&slots->holds);
}

static inline void flexmem_lease_init(struct flexmem_lease_hold *hold)
{
	INIT_LIST_HEAD(&hold->link);
}

int flexmem_lease_take(struct flexmem_slots *slots,
		       struct flexmem_lease_hold *hold,
		       const struct flexmem_settings *settings, u64 generation);
bool flexmem_lease_held(struct flexmem_slots *slots,
			struct flexmem_lease_hold *hold);
int flexmem_lease_drop(struct flexmem_slots *slots,
		       struct flexmem_lease_hold *hold);
unsigned int flexmem_lease_count(struct flexmem_slots *slots);

#endif /* _FLEXMEM_SLOT_H */
