// SPDX-License-Identifier: GPL-2.0
/*
 * Firmware slots, and the leases that keep them as they are.
 *
 * The segment table has one entry for each slot. Filling a slot asks the
 * firmware first, and then shows the entry under a new generation. Clearing a
 * slot hides the entry before it asks the firmware. So an entry that a dispatch
 * sees is certainly in the firmware's table. A lease keeps the visible entries
 * as they are, so a lease can be taken even while a slot is being filled or
 * cleared. A PF has no firmware table. Its entries exist only here, and the
 * layers above see no difference.
 *
 * Invariant: a slot names at most one region; generations only grow.
 */

#include <linux/bitmap.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/sched.h>

#include "settings.h"
#include "slot.h"
#include "trace.h"

/*
 * Initialises an empty segment table.
 * @nr: slots, up to FLEXMEM_MAX_SLOTS. @function: the function that the slots
 * belong to; must outlive @slots.
 */
void flexmem_slots_init(struct flexmem_slots *slots, unsigned int nr,
			struct flexmem_function *function)
{
	slots->nr = nr;
	slots->function = function;
	bitmap_zero(slots->refused, FLEXMEM_MAX_SLOTS);
	bitmap_zero(slots->filled, FLEXMEM_MAX_SLOTS);
	spin_lock_init(&slots->lock);
	slots->generation = 0;
	INIT_LIST_HEAD(&slots->leases);
	slots->nr_leases = 0;
	INIT_LIST_HEAD(&slots->broken);
	slots->breaks = 0;
	atomic_set(&slots->holds, 0);
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
	trace_flexmem_slot(slots->function, slot, filled, slots->generation);
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
	int rc;

	rc = flexmem_function_slot_set(slots->function, slot, mem);
	if (rc == -ENOSPC)
		__set_bit(slot, slots->refused);
	if (rc)
		return rc;

	spin_lock(&slots->lock);
	slots->entry[slot] = *entry;
	show(slots, slot, true);
	spin_unlock(&slots->lock);
	return 0;
}

static void unlink_lease(struct flexmem_slots *slots,
			 struct flexmem_lease_hold *hold)
{
	lockdep_assert_held(&slots->lock);
	list_del_init(&hold->link);
	if (hold->breaks == slots->breaks)
		slots->nr_leases--;
}

/* Whether a lease in a list has expired. */
static bool is_expired(const struct flexmem_lease_hold *hold)
{
	return !time_before64(get_jiffies_64(), hold->expires);
}

static bool is_held(struct flexmem_slots *slots,
		    const struct flexmem_lease_hold *hold)
{
	lockdep_assert_held(&slots->lock);
	return !list_empty(&hold->link) && hold->breaks == slots->breaks &&
	       !is_expired(hold);
}

/*
 * Whether any lease is held. The last lease in the list expires last, so only
 * that lease is checked.
 */
static bool is_leased(struct flexmem_slots *slots)
{
	lockdep_assert_held(&slots->lock);
	return !list_empty(&slots->leases) &&
	       is_held(slots, list_last_entry(&slots->leases,
					      struct flexmem_lease_hold, link));
}

/*
 * Removes expired leases from the list. One call removes a bounded number,
 * because there may be as many leases as open files. Returns false if expired
 * leases remain.
 */
static bool drop_expired(struct flexmem_slots *slots)
{
	struct flexmem_lease_hold *hold, *next;
	unsigned int nr = 0;

	lockdep_assert_held(&slots->lock);
	list_for_each_entry_safe(hold, next, &slots->leases, link) {
		if (!is_expired(hold))
			break;
		if (nr++ == FLEXMEM_LEASES_AT_ONCE)
			return false;
		unlink_lease(slots, hold);
	}
	return true;
}

static void end_leases(struct flexmem_slots *slots)
{
	lockdep_assert_held(&slots->lock);
	list_splice_init(&slots->leases, &slots->broken);
	slots->nr_leases = 0;
	slots->breaks++;
}

/*
 * Returns -EBUSY if no slot can be cleared. If a driver holds the table, this
 * ends no lease, because that would not help.
 */
static int may_clear(struct flexmem_slots *slots, bool break_leases)
{
	lockdep_assert_held(&slots->lock);
	if (flexmem_slots_are_held(slots))
		return -EBUSY;
	if (break_leases)
		end_leases(slots);
	return is_leased(slots) ? -EBUSY : 0;
}

/* Hides a slot, or returns -EBUSY. */
static int begin_clear(struct flexmem_slots *slots, unsigned int slot,
		       bool break_leases)
{
	int rc;

	spin_lock(&slots->lock);
	rc = may_clear(slots, break_leases);
	if (!rc)
		show(slots, slot, false);
	spin_unlock(&slots->lock);
	return rc;
}

/*
 * Makes memory unaddressable.
 * @slot: a filled slot. @break_leases: end all leases first, including leases
 * that were just taken.
 * Context: under the table's acquire_lock. May sleep. Return: 0; -EBUSY if
 * there is a lease or a hold; -ETIMEDOUT or -EINTR if the firmware may have
 * emptied the slot: then the slot stays hidden and unused until the firmware
 * has answered; or another error of the firmware: then the slot is still
 * filled.
 */
int flexmem_slots_clear(struct flexmem_slots *slots, unsigned int slot,
			bool break_leases)
{
	int rc;

	rc = begin_clear(slots, slot, break_leases);
	if (rc)
		return rc;
	rc = flexmem_function_slot_clear(slots->function, slot);
	if (!rc || rc == -ETIMEDOUT || rc == -EINTR)
		return rc;

	spin_lock(&slots->lock);
	show(slots, slot, true);
	spin_unlock(&slots->lock);
	return rc;
}

/* Keeps the filled slots as they are. Not called from an interrupt. */
void flexmem_slots_hold(struct flexmem_slots *slots)
{
	/*
	 * Under the lock, so that either begin_clear() sees the hold, or the
	 * holder sees the changed table.
	 */
	spin_lock(&slots->lock);
	atomic_inc(&slots->holds);
	spin_unlock(&slots->lock);
}

/* Ends a hold. Any context. */
void flexmem_slots_unhold(struct flexmem_slots *slots)
{
	if (WARN_ON(!flexmem_slots_are_held(slots)))
		return;
	atomic_dec(&slots->holds);
}

/*
 * Empties the segment table, because the device was reset and has lost its own.
 * All leases end. Under the table's acquire_lock.
 */
void flexmem_slots_forget(struct flexmem_slots *slots)
{
	spin_lock(&slots->lock);
	bitmap_zero(slots->filled, FLEXMEM_MAX_SLOTS);
	end_leases(slots);
	slots->generation++;
	trace_flexmem_slots_forget(slots->function, slots->generation);
	spin_unlock(&slots->lock);
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

	spin_lock(&slots->lock);
	for_each_set_bit(slot, slots->filled, slots->nr)
		entries[nr++] = slots->entry[slot];
	*generation = slots->generation;
	spin_unlock(&slots->lock);
	return nr;
}

u64 flexmem_slots_generation(struct flexmem_slots *slots)
{
	u64 generation;

	spin_lock(&slots->lock);
	generation = slots->generation;
	spin_unlock(&slots->lock);
	return generation;
}

/* Whether a held lease has reached its total time and cannot be renewed. */
static bool is_over(const struct flexmem_lease_hold *hold, unsigned int total_ms,
		    u64 now)
{
	return total_ms &&
	       !time_before64(now, hold->began + msecs_to_jiffies(total_ms));
}

/*
 * Keeps the filled slots as they are.
 * @hold: a held lease is renewed, up to the total time of @settings. @settings:
 * times of a lease; the same for all leases of a table. @generation: generation
 * of the table that the client has read.
 * Return: 0; -EAGAIN if the table has changed; or -EBUSY if the lease has
 * reached its total time. After an error no lease is taken or renewed, and a
 * held lease will expire.
 */
int flexmem_lease_take(struct flexmem_slots *slots,
		       struct flexmem_lease_hold *hold,
		       const struct flexmem_settings *settings, u64 generation)
{
	int rc = 0;
	u64 now;

	spin_lock(&slots->lock);
	if (!list_empty(&hold->link) && !is_held(slots, hold))
		unlink_lease(slots, hold);
	now = get_jiffies_64();
	if (slots->generation != generation) {
		rc = -EAGAIN;
	} else if (list_empty(&hold->link)) {
		slots->nr_leases++;
		hold->began = now;
		hold->breaks = slots->breaks;
	} else if (is_over(hold, settings->lease_total_ms, now)) {
		rc = -EBUSY;
	}
	if (!rc) {
		list_move_tail(&hold->link, &slots->leases);
		/* Adds a jiffy, because the current jiffy has begun already. */
		hold->expires = now + msecs_to_jiffies(settings->lease_ms) + 1;
	}
	spin_unlock(&slots->lock);
	return rc;
}

/* Whether a lease is held and has not expired. */
bool flexmem_lease_held(struct flexmem_slots *slots,
			struct flexmem_lease_hold *hold)
{
	bool held;

	spin_lock(&slots->lock);
	held = is_held(slots, hold);
	spin_unlock(&slots->lock);
	return held;
}

/* Ends a lease. Return: 0, or -EINVAL if it is not held. */
int flexmem_lease_drop(struct flexmem_slots *slots,
		       struct flexmem_lease_hold *hold)
{
	int rc;

	spin_lock(&slots->lock);
	rc = is_held(slots, hold) ? 0 : -EINVAL;
	if (!list_empty(&hold->link))
		unlink_lease(slots, hold);
	spin_unlock(&slots->lock);
	return rc;
}

/*
 * Number of leases that have not expired. May sleep. Drops the lock between
 * batches of expired leases.
 */
unsigned int flexmem_lease_count(struct flexmem_slots *slots)
{
	unsigned int nr;
	bool all;

	do {
		spin_lock(&slots->lock);
		all = drop_expired(slots);
		nr = slots->nr_leases;
		spin_unlock(&slots->lock);
		cond_resched();
	} while (!all);
	return nr;
}

/*
 * Checks whether slots can be cleared now. @break_leases: ends all leases
 * first, unless a driver holds the table. Return: 0, or -EBUSY if there is a
 * lease or a hold.
 */
int flexmem_slots_may_clear(struct flexmem_slots *slots, bool break_leases)
{
	int rc;

	spin_lock(&slots->lock);
	rc = may_clear(slots, break_leases);
	spin_unlock(&slots->lock);
	return rc;
}
