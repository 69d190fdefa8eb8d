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

/**
 * flexmem_table_remove - give everything back: the device goes
 * @table: region table; blocks of it may still be in use, and be freed later
 *
 * Nothing is given back that a device program may still reach. The firmware may
 * be dead: it is not asked again once it has not answered, and not at all while
 * the function is suspended or wedged. The driver resets the function when we are
 * done with it, so nothing is lost.
 *
 * Context: may sleep. The device's operations are not called after it returns.
 */
void flexmem_table_remove(struct flexmem_table *table)
{
	struct flexmem_function *function = &table->function;
	enum flexmem_state state = READ_ONCE(function->state);
	struct flexmem_region *region;
	unsigned int slot;

	flexmem_function_enter(function, FLEXMEM_GONE);
	wake_up_all(&table->accounts.gauge.readers);
	flexmem_table_scrub_stop(table);
	mutex_lock(&table->acquire_lock);
	mutex_lock(&table->data_lock);
	for (slot = 0; slot < table->slots.nr; slot++) {
		region = flexmem_region_at(table, slot);
		if (region)
			lose_region(table, region);
	}
	take_maps_away(table);
	/* All leases end, and no slot is seen any more. */
	flexmem_slots_forget(&table->slots);
	if (flexmem_function_held(function) && !function->clears)
		dev_info(function->dev, "%llu bytes go without being cleared: the driver of the PF clears them before another function gets them\n",
			 flexmem_function_held(function));
	if (state != FLEXMEM_SUSPENDED && state != FLEXMEM_WEDGED &&
	    !flexmem_function_quiesce(function))
		flexmem_function_give_all_back(function);
	/* That goes with the reset. */
	if (flexmem_function_held(function))
		dev_warn(function->dev, "%llu bytes were not given back\n",
			 flexmem_function_held(function));
	/* Messages went by the function's device, which may go now. */
	function->dev = NULL;
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
	cancel_delayed_work_sync(&table->function.work);
	/* Jobs whose callers were killed: what they have got is freed. */
	destroy_workqueue(table->function.worker);
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
	struct flexmem_function *function = &table->function;
	unsigned int slot, failures;
	struct flexmem_region *region;
	int rc;

	for (slot = 0; slot < table->slots.nr; slot++) {
		region = flexmem_region_at(table, slot);
		if (region)
			lose_region(table, region);
	}
	take_maps_away(table);
	flexmem_slots_forget(&table->slots);
	flexmem_table_update_memory(table);

	/* If it cannot, for it may be dead: a reset ends programs, too. */
	flexmem_function_quiesce(function);
	/* The device may fail again while it is reset, or right after that. */
	failures = READ_ONCE(function->failures);
	rc = flexmem_function_reset(function);
	rc = rc ?: flexmem_function_recover(function, failures);
	if (rc) {
		flexmem_function_enter(function, FLEXMEM_WEDGED);
		return rc;
	}
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
	flexmem_function_enter(&table->function, FLEXMEM_WEDGED);
	mutex_lock(&table->acquire_lock);
	mutex_lock(&table->data_lock);
	if (!flexmem_function_is_gone(&table->function))
		rc = reset_locked(table);
	mutex_unlock(&table->data_lock);
	if (!flexmem_function_error(&table->function) &&
	    table->settings.acquire == FLEXMEM_ACQUIRE_PREALLOC)
		acquire_anew(table);
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
 * Context: may sleep, for one command about regions and one that gives back what
 * was being acquired or trimmed, and for one operation that moves data.
 */
void flexmem_table_suspend(struct flexmem_table *table)
{
	flexmem_function_suspend(&table->function);
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
	flexmem_function_resume(&table->function);
	flexmem_pressure_freed(&table->accounts);
	flexmem_scrub_soon(table);
	/* If there is anything to settle. */
	flexmem_function_work_later(&table->function);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_resume);
