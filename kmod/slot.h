/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The firmware handle slots of one function: which are in use, what each of
 * them makes addressable, and who wants them to stay as they are.
 */
#ifndef _FLEXMEM_SLOT_H
#define _FLEXMEM_SLOT_H

#include <linux/bitmap.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/flexmem.h>

#include "function.h"
#include "settings.h"

/* Leases that have run out, and are taken off the list under one lock. */
#define FLEXMEM_LEASES_AT_ONCE 64

/**
 * struct flexmem_pool - a run of slots for one kind of memory
 * @first: first slot
 * @end: the one after the last
 */
struct flexmem_pool {
	unsigned int first;
	unsigned int end;
};

/**
 * struct flexmem_lease_hold - one client's lease
 * @link: in &flexmem_slots.leases while it is held, in @broken of that after it
 *	was broken
 * @began: when it was taken first, in jiffies since boot
 * @expires: when it runs out, likewise
 * @breaks: &flexmem_slots.breaks when it was taken: once that is another, it has
 *	been broken
 */
struct flexmem_lease_hold {
	struct list_head link;
	u64 began;
	u64 expires;
	u64 breaks;
};

/**
 * struct flexmem_slots - the segment table
 * @nr: slots there are
 * @function: whose they are
 * @refused: slots that the firmware did not let us use
 * @lock: protects the members below; a leaf. Filling and clearing slots happens
 *	under the table's acquire_lock besides, so that who holds that lock sees
 *	no other change; leases are taken without it
 * @filled: slots in use
 * @entry: what they make addressable
 * @generation: grows by one with each change
 * @leases: leases held, of struct flexmem_lease_hold; may have run out. All
 *	last equally long, so they are in the order in which they run out
 * @nr_leases: how many are in the list
 * @broken: those that were broken and whose clients have not noticed: breaking all
 *	of them takes no longer than one, however many there are
 * @breaks: how often all were broken
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
};

void flexmem_slots_init(struct flexmem_slots *slots, unsigned int nr,
			struct flexmem_function *function);
int flexmem_slots_find(struct flexmem_slots *slots,
		       const struct flexmem_pool *pool);
int flexmem_slots_fill(struct flexmem_slots *slots, unsigned int slot,
		       const struct flexmem_memory *mem,
		       const struct flexmem_segment_entry *entry);
int flexmem_slots_clear(struct flexmem_slots *slots, unsigned int slot,
			bool break_leases);
void flexmem_slots_forget(struct flexmem_slots *slots);
unsigned int flexmem_slots_read(struct flexmem_slots *slots,
				struct flexmem_segment_entry *entries,
				u64 *generation);
u64 flexmem_slots_generation(struct flexmem_slots *slots);

void flexmem_lease_init(struct flexmem_lease_hold *hold);
int flexmem_lease_take(struct flexmem_slots *slots,
		       struct flexmem_lease_hold *hold,
		       const struct flexmem_settings *settings, u64 generation);
bool flexmem_lease_held(struct flexmem_slots *slots,
			struct flexmem_lease_hold *hold);
int flexmem_lease_drop(struct flexmem_slots *slots,
		       struct flexmem_lease_hold *hold);
unsigned int flexmem_lease_count(struct flexmem_slots *slots);
void flexmem_lease_break_all(struct flexmem_slots *slots);

#endif /* _FLEXMEM_SLOT_H */
