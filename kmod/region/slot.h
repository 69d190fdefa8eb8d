/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The firmware slots of one function: which slots are in use, which memory each
 * slot makes addressable, and the holds that keep slots as they are.
 */
#ifndef _FLEXMEM_SLOT_H
#define _FLEXMEM_SLOT_H

#include <linux/bitmap.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/flexmem.h>
#include <flexmem/dispatch.h>

#include "gate/function.h"

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
 * struct flexmem_slots - the segment table
 * @nr: number of slots
 * @function: the function that the slots belong to
 * @refused: slots that the firmware does not let the driver use
 * @lock: protects the members below; a leaf, which interrupt handlers take too.
 *	Filling and clearing a slot also needs the table's acquire_lock, so the
 *	slots do not change while a task holds acquire_lock. A hold needs only
 *	@lock
 * @filled: slots in use
 * @entry: the memory that each slot makes addressable
 * @generation: grows by one whenever a slot is filled or cleared
 * @since: generation with which each filled slot was filled. It tells a region
 *	from the regions that had the slot before
 * @holds: number of holds of each filled slot
 */
struct flexmem_slots {
	unsigned int nr;
	struct flexmem_function *function;
	DECLARE_BITMAP(refused, FLEXMEM_MAX_SLOTS);
	spinlock_t lock; /* protects the members below */
	DECLARE_BITMAP(filled, FLEXMEM_MAX_SLOTS);
	struct flexmem_segment_entry entry[FLEXMEM_MAX_SLOTS];
	u64 generation;
	u64 since[FLEXMEM_MAX_SLOTS];
	u32 holds[FLEXMEM_MAX_SLOTS];
};

void flexmem_slots_init(struct flexmem_slots *slots, unsigned int nr,
			struct flexmem_function *function);
int flexmem_slots_find(struct flexmem_slots *slots,
		       const struct flexmem_slot_range *range);
int flexmem_slots_fill(struct flexmem_slots *slots, unsigned int slot,
		       const struct flexmem_memory *mem,
		       const struct flexmem_segment_entry *entry);
bool flexmem_slots_hide(struct flexmem_slots *slots, unsigned int slot);
int flexmem_slots_clear(struct flexmem_slots *slots, unsigned int slot);
void flexmem_slots_forget(struct flexmem_slots *slots);
unsigned int flexmem_slots_read(struct flexmem_slots *slots,
				struct flexmem_segment_entry *entries,
				u64 *generation);
u64 flexmem_slots_generation(struct flexmem_slots *slots);

bool flexmem_slots_hold(struct flexmem_slots *slots, u64 generation,
			u64 wanted, struct flexmem_hold *hold);
void flexmem_slots_unhold(struct flexmem_slots *slots,
			  const struct flexmem_hold *hold);
bool flexmem_slots_are_held(struct flexmem_slots *slots, unsigned int slot);

#endif /* _FLEXMEM_SLOT_H */
