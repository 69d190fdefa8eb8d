// SPDX-License-Identifier: GPL-2.0
/*
 * Firmware slots, and the holds that keep them as they are.
 *
 * The segment table has one entry for each slot. Filling a slot asks the
 * firmware first, and then shows the entry under a new generation. Clearing a
 * slot hides the entry before it asks the firmware. So an entry that a dispatch
 * sees is certainly in the firmware's table. The driver of a device can hold
 * visible entries, even while another slot is being filled or cleared. A PF has
 * no firmware table. Its entries exist only here, and the layers above see no
 * difference.
 *
 * Invariant: a slot names at most one region; generations only grow.
 */

#include <linux/bitmap.h>
#include <linux/errno.h>
#include <linux/string.h>

#include "region/slot.h"

/*
 * Initialises an empty segment table, whose struct is zeroed.
 * @nr: slots, up to FLEXMEM_MAX_SLOTS. @function: the function that the slots
 * belong to; must outlive @slots.
 */
void flexmem_slots_init(struct flexmem_slots *slots, unsigned int nr,
			struct flexmem_function *function)
{
	slots->nr = nr;
	slots->function = function;
	spin_lock_init(&slots->lock);
}

/*
 * The lowest empty slot in @range; -ENOSPC if the firmware permits none. Under
 * the table's acquire_lock.
 */
int flexmem_slots_find(struct flexmem_slots *slots,
		       const struct flexmem_slot_range *range)
{
	unsigned int slot;

	for (slot = range->first; slot < range->end; slot++)
		if (!test_bit(slot, slots->filled) &&
		    !test_bit(slot, slots->refused) &&
		    flexmem_function_slot_is_known(slots->function, slot))
			return slot;
	return -ENOSPC;
}

/* Makes a slot visible or invisible. */
static void show(struct flexmem_slots *slots, unsigned int slot, bool filled)
{
	lockdep_assert_held(&slots->lock);
	if (test_bit(slot, slots->filled) == filled)
		return;
	__assign_bit(slot, slots->filled, filled);
	slots->generation++;
	slots->since[slot] = slots->generation;
}

/*
 * Makes memory addressable.
 * @slot: an empty slot. @mem: memory. @entry: entry of the segment table, as
 * user space reads it.
 * Context: under the table's acquire_lock. May sleep. Return: 0, -ENOSPC if the
 * firmware does not let the driver use the slot (then flexmem_slots_find() does
 * not return it again), or an error of the firmware.
 */
int flexmem_slots_fill(struct flexmem_slots *slots, unsigned int slot,
		       const struct flexmem_memory *mem,
		       const struct flexmem_segment_entry *entry)
{
	int rc = flexmem_function_slot_set(slots->function, slot, mem);

	if (rc == -ENOSPC)
		__set_bit(slot, slots->refused);
	if (rc)
		return rc;

	spin_lock_irq(&slots->lock);
	slots->entry[slot] = *entry;
	show(slots, slot, true);
	spin_unlock_irq(&slots->lock);
	return 0;
}

/*
 * Hides a slot before it is cleared.
 * @slot: a filled slot.
 * Context: under the table's acquire_lock. Return: false if the slot is held;
 * then the slot stays visible.
 */
bool flexmem_slots_hide(struct flexmem_slots *slots, unsigned int slot)
{
	bool held;

	spin_lock_irq(&slots->lock);
	held = slots->holds[slot];
	if (!held)
		show(slots, slot, false);
	spin_unlock_irq(&slots->lock);
	return !held;
}

/*
 * Makes memory unaddressable.
 * @slot: a slot that flexmem_slots_hide() has hidden.
 * Context: under the table's acquire_lock. May sleep. Return: 0; -ETIMEDOUT or
 * -EINTR if the firmware may have emptied the slot: then the slot stays hidden
 * and unused until the firmware has answered; or another error of the firmware:
 * then the slot is filled again.
 */
int flexmem_slots_clear(struct flexmem_slots *slots, unsigned int slot)
{
	int rc = flexmem_function_slot_clear(slots->function, slot);

	if (!rc || rc == -ETIMEDOUT || rc == -EINTR)
		return rc;

	spin_lock_irq(&slots->lock);
	show(slots, slot, true);
	spin_unlock_irq(&slots->lock);
	return rc;
}

/*
 * Keeps filled slots as they are, until flexmem_slots_unhold() or a loss of
 * their regions.
 * @generation: generation of the table for which the caller has chosen the
 * slots. @wanted: bit mask of the slots; slots that are not filled are not
 * held. @hold: receives the hold.
 * Return: false if the table has another generation; then nothing is held. A
 * caller of flexmem_slots_hide() sees the hold, or the caller of this function
 * sees the changed table.
 */
bool flexmem_slots_hold(struct flexmem_slots *slots, u64 generation,
			u64 wanted, struct flexmem_hold *hold)
{
	unsigned long flags;
	unsigned int slot;
	bool is_same;

	*hold = (struct flexmem_hold){ .generation = generation };
	spin_lock_irqsave(&slots->lock, flags);
	is_same = slots->generation == generation;
	for_each_set_bit(slot, slots->filled, slots->nr) {
		if (!is_same || !(wanted & BIT_ULL(slot)))
			continue;
		slots->holds[slot]++;
		hold->slots |= BIT_ULL(slot);
	}
	spin_unlock_irqrestore(&slots->lock, flags);
	return is_same;
}

/*
 * Ends a hold. Skips each slot whose region was lost since, even if another
 * region has got the slot. Any context in which a spinlock_t may be taken.
 */
void flexmem_slots_unhold(struct flexmem_slots *slots,
			  const struct flexmem_hold *hold)
{
	unsigned long flags;
	unsigned int slot;

	spin_lock_irqsave(&slots->lock, flags);
	for_each_set_bit(slot, slots->filled, slots->nr)
		if (hold->slots & BIT_ULL(slot) &&
		    slots->since[slot] <= hold->generation &&
		    !WARN_ON(!slots->holds[slot]))
			slots->holds[slot]--;
	spin_unlock_irqrestore(&slots->lock, flags);
}

/* Whether the region in a slot is held. The answer may be stale at once. */
bool flexmem_slots_are_held(struct flexmem_slots *slots, unsigned int slot)
{
	bool held;

	spin_lock_irq(&slots->lock);
	held = slots->holds[slot];
	spin_unlock_irq(&slots->lock);
	return held;
}

/*
 * Empties the segment table, because the device was reset and has lost its own.
 * All holds end. Under the table's acquire_lock.
 */
void flexmem_slots_forget(struct flexmem_slots *slots)
{
	spin_lock_irq(&slots->lock);
	bitmap_zero(slots->filled, FLEXMEM_MAX_SLOTS);
	memset(slots->holds, 0, sizeof(slots->holds));
	slots->generation++;
	spin_unlock_irq(&slots->lock);
}

/*
 * Reads the segment table.
 * @entries: room for FLEXMEM_MAX_SLOTS entries. @generation: receives the
 * generation of these entries.
 * Return: number of entries filled in, in the order of their slots.
 */
unsigned int flexmem_slots_read(struct flexmem_slots *slots,
				struct flexmem_segment_entry *entries,
				u64 *generation)
{
	unsigned int slot, nr = 0;

	spin_lock_irq(&slots->lock);
	for_each_set_bit(slot, slots->filled, slots->nr)
		entries[nr++] = slots->entry[slot];
	*generation = slots->generation;
	spin_unlock_irq(&slots->lock);
	return nr;
}

u64 flexmem_slots_generation(struct flexmem_slots *slots)
{
	unsigned long flags;
	u64 generation;

	spin_lock_irqsave(&slots->lock, flags);
	generation = slots->generation;
	spin_unlock_irqrestore(&slots->lock, flags);
	return generation;
}
