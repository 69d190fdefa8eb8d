// SPDX-License-Identifier: GPL-2.0
/*
 * The end of regions that are in use: the device goes, or is reset. And its
 * sleep.
 *
 * Allocations in a region that is lost stay with their owners, who free them;
 * their bytes are gone, and nobody reaches another's through them: every map is
 * taken away, and whoever asks for the bytes is told so, before the memory goes
 * back to the device.
 */

#include <linux/device.h>
#include <linux/mm.h>

#include "compat.h"
#include "dirty.h"
#include "scrub.h"
#include "table.h"

/*
 * Takes a region out of the table, while blocks of it may be in use: whoever
 * frees the last of them destroys it.
 */
static void lose_region(struct flexmem_table *table,
			struct flexmem_region *region)
{
	struct flexmem_block *block, *next;
	LIST_HEAD(quarantine);

	if (flexmem_region_unpublish(table, region, &quarantine)) {
		flexmem_region_destroy(region);
		return;
	}
	/* The region may go with the last one, or stay for its other blocks. */
	list_for_each_entry_safe(block, next, &quarantine, dirty_link)
		flexmem_region_end_quarantine(region, block, true);
}

/* After this no map of a lost region is there, and none comes any more. */
static void take_maps_away(struct flexmem_table *table)
{
	down_write(&table->map_lock);
	if (table->mapping)
		unmap_mapping_range(table->mapping, 0, 0, 1);
	up_write(&table->map_lock);
}

/* What the firmware had not taken back yet. */
static void forget_stranded(struct flexmem_table *table)
{
	struct flexmem_region *region, *next;

	list_for_each_entry_safe(region, next, &table->stranded, stranded) {
		list_del_init(&region->stranded);
		flexmem_region_destroy(region);
	}
}

/* Gives the memory of a region that is lost back; nothing refers to it. */
static int return_memory(struct flexmem_table *table, unsigned int slot,
			 const struct flexmem_memory *mem)
{
	int rc;

	rc = flexmem_slots_clear(&table->slots, slot, true);
	return rc ?: flexmem_function_release(&table->function, mem);
}

/**
 * flexmem_table_remove - give everything back: the device goes
 * @table: region table; blocks of it may still be in use, and be freed later
 *
 * Nothing is given back that a device program may still reach. The firmware may
 * be dead: it is not asked again once it has not answered, and not at all while
 * the device sleeps. The driver resets the function when we are done with it, so
 * nothing is lost.
 *
 * Context: may sleep. The device's operations are not called after it returns.
 */
void flexmem_table_remove(struct flexmem_table *table)
{
	struct flexmem_memory *mem = table->leaving;
	struct flexmem_region *region;
	bool asleep = READ_ONCE(table->function.suspended);
	unsigned int slot;
	int quiet, rc;

	WRITE_ONCE(table->function.closing, true);
	wake_up_all(&table->function.resumed);
	flexmem_pressure_close(&table->accounts);
	flexmem_table_scrub_stop(table);
	mutex_lock(&table->acquire_lock);
	mutex_lock(&table->data_lock);
	for (slot = 0; slot < table->slots.nr; slot++) {
		region = flexmem_region_at(table, slot);
		if (!region)
			continue;
		mem[slot] = region->mem;
		lose_region(table, region);
	}
	take_maps_away(table);
	flexmem_table_forgive(table);
	quiet = asleep ? -EBUSY : flexmem_function_quiesce(&table->function);
	rc = quiet ?: flexmem_table_settle(table);
	rc = rc ?: flexmem_table_release_stranded(table, true);
	for (slot = 0; slot < table->slots.nr; slot++) {
		if (!mem[slot].size)
			continue;
		if (!quiet && rc != -ETIMEDOUT)
			rc = return_memory(table, slot, &mem[slot]);
		if (rc)
			dev_warn(table->function.dev,
				 "slot %u was not given back: error %d\n",
				 slot, rc);
	}
	/* What was not given back goes with the reset. */
	flexmem_slots_forget(&table->slots);
	table->nr_doubtful = 0;
	forget_stranded(table);
	/* Messages went by the function's device, which may go now. */
	table->function.dev = NULL;
	mutex_unlock(&table->data_lock);
	mutex_unlock(&table->acquire_lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_remove);

/**
 * flexmem_table_fini - free what is left of a table
 * @table: table that was removed, and whose clients are gone
 */
void flexmem_table_fini(struct flexmem_table *table)
{
	cancel_delayed_work_sync(&table->settle_work);
	/* Jobs whose callers were killed: what they have got is freed. */
	destroy_workqueue(table->worker);
	/* A free that ran beside the removal may have asked for it once more. */
	flexmem_table_scrub_stop(table);
	flexmem_accounts_fini(&table->accounts);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_fini);

/*
 * Everything that was acquired is lost, and the device begins anew. Once every
 * map is gone nobody can reach what it forgets.
 */
static int reset_locked(struct flexmem_table *table)
{
	struct flexmem_region *region;
	unsigned int slot;
	int rc;

	for (slot = 0; slot < table->slots.nr; slot++) {
		region = flexmem_region_at(table, slot);
		if (region)
			lose_region(table, region);
	}
	take_maps_away(table);
	flexmem_slots_forget(&table->slots);
	table->nr_doubtful = 0;
	forget_stranded(table);
	flexmem_table_tell_accounts(table);

	/* If it cannot, for it may be dead: a reset ends programs, too. */
	flexmem_function_quiesce(&table->function);
	rc = flexmem_function_reset(&table->function);
	WRITE_ONCE(table->function.needs_reset, rc);
	if (rc)
		return rc;
	WRITE_ONCE(table->resets, table->resets + 1);
	flexmem_domain_outdate(&table->domain);
	flexmem_table_reopen_pools(table);
	return 0;
}

/* What the firmware does not give now is acquired when it is needed. */
static void acquire_anew(struct flexmem_table *table)
{
	int rc = flexmem_table_refresh(table);

	rc = rc ?: flexmem_table_prealloc(table);
	if (rc)
		dev_warn(table->function.dev,
			 "not all regions were acquired anew: error %d\n", rc);
}

/**
 * flexmem_table_reset - bring the device back to where it began
 * @table: region table
 *
 * What is allocated is lost (D19). The regions are acquired anew: as they are
 * needed, or at once with acquire=prealloc.
 *
 * Context: may sleep. Not from an operation of the device. Also while the device
 * is suspended, if its driver can do that: on the way to resume, for instance.
 * Return: 0; -ENODEV if the device goes; -EOPNOTSUPP if it cannot be reset; or
 * an error of the driver: then everything but a reset fails with EIO until one
 * succeeds.
 */
int flexmem_table_reset(struct flexmem_table *table)
{
	int rc = -ENODEV;

	if (!table->function.ops.reset)
		return -EOPNOTSUPP;
	/* Not so that it waits for all that the worker has begun. */
	atomic_inc(&table->function.resetting);
	mutex_lock(&table->acquire_lock);
	mutex_lock(&table->data_lock);
	if (!table->function.closing)
		rc = reset_locked(table);
	mutex_unlock(&table->data_lock);
	atomic_dec(&table->function.resetting);
	if (!rc && !READ_ONCE(table->function.suspended) &&
	    table->settings.acquire == FLEXMEM_ACQUIRE_PREALLOC)
		acquire_anew(table);
	flexmem_table_settle_later(table);
	mutex_unlock(&table->acquire_lock);
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_reset);

/**
 * flexmem_table_suspend - the device goes to sleep
 * @table: region table
 *
 * Waits for the operations under way; whoever needs one afterwards waits,
 * killably, for flexmem_table_resume(). What takes many goes on after that.
 *
 * Context: may sleep, for as long as it takes to acquire, scrub and place one
 * region, or to give one back, and one operation that moves data.
 */
void flexmem_table_suspend(struct flexmem_table *table)
{
	WRITE_ONCE(table->function.suspended, true);
	flexmem_table_scrub_stop(table);
	mutex_lock(&table->acquire_lock);
	mutex_lock(&table->data_lock);
	mutex_unlock(&table->data_lock);
	mutex_unlock(&table->acquire_lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_suspend);

/**
 * flexmem_table_resume - the device is awake
 * @table: region table
 */
void flexmem_table_resume(struct flexmem_table *table)
{
	WRITE_ONCE(table->function.suspended, false);
	wake_up_all(&table->function.resumed);
	flexmem_pressure_supplied(&table->accounts);
	flexmem_scrub_soon(table);
	/* If there is anything to settle. */
	queue_delayed_work(table->worker, &table->settle_work,
			   msecs_to_jiffies(table->settle_ms));
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_resume);
