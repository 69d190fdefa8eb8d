// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a region table: its beginning, and removal, reset, suspend and
 * resume of a device with regions in use.
 *
 * An owner keeps an allocation in a lost region until the owner frees it. The
 * bytes are gone. Before the memory is released to the device, every mapping is
 * removed, and from then on every access to the bytes fails. So no user can
 * reach another user's bytes through a stale allocation.
 */

#include <linux/device.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>

#include "part.h"
#include "region/scrub.h"
#include "region/table.h"

static int init_domains(struct flexmem_table *table,
			const struct flexmem_settings *settings)
{
	struct flexmem_domain *domain;
	unsigned int i;
	int rc;

	table->map_shift = FLEXMEM_MIN_MAP_SHIFT;
	flexmem_for_each_domain(domain, table, flexmem_table_all(table)) {
		rc = flexmem_domain_init(domain, domain - table->domain,
					 &table->function, settings);
		if (rc)
			return rc;
		if (domain->desc->type == FLEXMEM_DOMAIN_DEVICE)
			table->default_domains |= BIT_ULL(domain->id);
		for (i = 0; i < domain->nr_sizes; i++)
			table->map_shift = max_t(unsigned int, table->map_shift,
						 order_base_2(domain->sizes[i]));
	}
	return 0;
}

/*
 * Initialises a table without regions. Resets the device if it has a reset
 * operation, and asks the firmware for the capacity.
 * @dev: for messages, or NULL. @desc: its operations are called until
 * flexmem_table_remove().
 * Context: may sleep. Return: 0, -EINVAL if the description is not valid or the
 * settings do not suit the device (with a message), -ENOMEM, or an error of the
 * firmware.
 */
int flexmem_table_init(struct flexmem_table *table, struct device *dev,
		       const struct flexmem_device_desc *desc,
		       const struct flexmem_settings *settings)
{
	unsigned int nr = settings->max_regions, split;
	int rc;

	memset(table, 0, sizeof(*table));
	rc = flexmem_function_init(&table->function, dev, desc);
	if (rc)
		return rc;
	table->function.capabilities = flexmem_parts_capabilities(desc->ops);
	if (desc->mode == FLEXMEM_MODE_VF)
		nr = min(nr, desc->slots);
	if (settings->program_slots >= nr) {
		dev_err(dev, "program_slots=%u: must be less than the %u slots there are\n",
			settings->program_slots, nr);
		return -EINVAL;
	}
	/* An earlier driver or kernel may have left memory acquired. */
	if (desc->ops->reset) {
		rc = flexmem_function_reset(&table->function);
		if (rc)
			return rc;
	}
	rc = init_domains(table, settings);
	if (rc)
		return rc;

	table->settings = *settings;
	table->hw_slots = desc->mode == FLEXMEM_MODE_VF ? desc->slots : nr;
	table->full_reason = desc->mode == FLEXMEM_MODE_VF &&
			     desc->slots <= settings->max_regions ?
				FLEXMEM_REASON_SLOTS :
				FLEXMEM_REASON_MAX_REGIONS;
	INIT_LIST_HEAD(&table->reservations);
	mutex_init(&table->acquire_lock);
	mutex_init(&table->snapshot_lock);
	init_rwsem(&table->map_lock);
	INIT_DELAYED_WORK(&table->scrub_work, flexmem_table_scrub_work);
	INIT_DELAYED_WORK(&table->function.work, flexmem_table_work);
	table->function.worker = alloc_ordered_workqueue("flexmem", 0);
	if (!table->function.worker)
		return -ENOMEM;
	flexmem_slots_init(&table->slots, nr, &table->function);

	split = nr - settings->program_slots;
	table->range[FLEXMEM_KIND_TENSOR].end = split;
	table->range[FLEXMEM_KIND_PROGRAM].first = split;
	table->range[FLEXMEM_KIND_PROGRAM].end = nr;
	flexmem_accounts_init(&table->accounts, settings->default_depth);
	table->accounts.function = &table->function;
	flexmem_table_update_memory(table);
	flexmem_parts_call(start, table);
	flexmem_table_release_init(table);
	flexmem_function_join(&table->function);
	return 0;
}

/* The caller that frees the last block in use destroys the region. */
static void lose_region(struct flexmem_table *table,
			struct flexmem_region *region)
{
	struct flexmem_block *block, *next;
	LIST_HEAD(quarantine);

	if (flexmem_region_unpublish(table, region, &quarantine)) {
		flexmem_region_destroy(region);
		return;
	}
	/* Freeing the last block destroys the region. */
	list_for_each_entry_safe(block, next, &quarantine, residue.link)
		flexmem_region_end_quarantine(block, true);
}

/* No new mapping: regions are lost, or the function is suspended. */
static void take_maps_away(struct flexmem_table *table)
{
	down_write(&table->map_lock);
	if (table->mapping)
		unmap_mapping_range(table->mapping, 0, 0, 1);
	up_write(&table->map_lock);
}

/* Removes all regions, with their CPU mappings, and ends all holds. */
static void lose_all(struct flexmem_table *table)
{
	struct flexmem_region *region;
	unsigned int slot;

	for (slot = 0; slot < table->slots.nr; slot++) {
		region = flexmem_region_at(table, slot);
		if (region)
			lose_region(table, region);
	}
	take_maps_away(table);
	flexmem_slots_forget(&table->slots);
}

/*
 * Releases everything because the device is removed. Memory that a device
 * program may still reach is not released. The firmware may be dead, so it gets
 * no further command after a timeout, and none at all if the function is suspended
 * or wedged, or if the device has failed. The driver resets it afterwards. Blocks
 * may still be in use, and be freed later.
 * Context: may sleep. The device's operations are not called after it returns.
 */
void flexmem_table_remove(struct flexmem_table *table)
{
	struct flexmem_function *function = &table->function;
	enum flexmem_state state = READ_ONCE(function->state);

	flexmem_function_enter(function, FLEXMEM_STATE_GONE);
	flexmem_table_scrub_stop(table);
	mutex_lock(&table->acquire_lock);
	mutex_lock(&function->data_lock);
	lose_all(table);
	if (flexmem_function_held(function) && !function->clears)
		dev_info(function->dev, "%llu bytes go without being cleared: the driver of the PF clears them before another function gets them\n",
			 flexmem_function_held(function));
	/* The operation that was under way may have made the device fail. */
	if (state != FLEXMEM_STATE_SUSPENDED && state != FLEXMEM_STATE_WEDGED &&
	    !flexmem_function_has_failed(function) &&
	    !flexmem_function_quiesce(function))
		flexmem_function_release_all(function);
	flexmem_function_vm_forget(function);
	/* The driver of the device recovers these bytes by a reset. */
	if (flexmem_function_held(function))
		dev_warn(function->dev, "%llu bytes were not released\n",
			 flexmem_function_held(function));
	flexmem_function_leave(function);
	/* The device may be freed from here on. */
	function->dev = NULL;
	mutex_unlock(&function->data_lock);
	mutex_unlock(&table->acquire_lock);
	flexmem_parts_undo(loss, table);
}

/* Frees the rest of a removed table that has no clients any more. */
void flexmem_table_fini(struct flexmem_table *table)
{
	/* Jobs of killed callers and closed spaces put references. */
	flush_workqueue(table->function.worker);
	flexmem_parts_undo(end, table);
	cancel_delayed_work_sync(&table->release_work);
	cancel_delayed_work_sync(&table->function.work);
	destroy_workqueue(table->function.worker);
	/* A free in parallel with the removal may have queued it again. */
	flexmem_table_scrub_stop(table);
	flexmem_accounts_fini(&table->accounts);
}

/* In this order no user can reach memory that the device has released. */
static int reset_locked(struct flexmem_table *table)
{
	struct flexmem_function *function = &table->function;
	unsigned int failures;
	int rc;

	lose_all(table);
	flexmem_table_update_memory(table);

	/* A failure does not matter: a reset ends programs too. */
	flexmem_function_quiesce(function);
	/*
	 * No operation is under way: this task holds both locks, and lose_all()
	 * has waited for page faults. The device may fail again during the
	 * reset, or directly after it.
	 */
	failures = READ_ONCE(function->failures);
	rc = flexmem_function_reset(function);
	rc = rc ?: flexmem_function_recover(function, failures);
	if (rc) {
		flexmem_function_enter(function, FLEXMEM_STATE_WEDGED);
		return rc;
	}
	WRITE_ONCE(table->resets, table->resets + 1);
	flexmem_table_outdate(table);
	flexmem_table_reopen(table);
	return 0;
}

/*
 * Acquires regions after a reset, reserved ones first. If the firmware refuses
 * further regions now, they are acquired later, on demand.
 */
static void acquire_anew(struct flexmem_table *table)
{
	int rc;

	flexmem_parts_call(work, table);
	if (table->settings.acquire != FLEXMEM_ACQUIRE_PREALLOC)
		return;
	rc = flexmem_table_refresh(table);
	rc = rc ?: flexmem_table_prealloc(table);
	if (rc)
		dev_warn(table->function.dev,
			 "not all regions were acquired anew: error %d\n", rc);
}

/*
 * Does what flexmem_device_reset() says. Then the regions are acquired again:
 * reserved ones at once, others on demand, or at once with acquire=prealloc.
 * Context: as there; the device may be suspended. The caller holds no lock that a
 * job takes.
 */
int flexmem_table_reset(struct flexmem_table *table)
{
	int rc = -ENODEV;

	if (!table->function.ops.reset)
		return -EOPNOTSUPP;
	flexmem_function_enter(&table->function, FLEXMEM_STATE_WEDGED);
	mutex_lock(&table->acquire_lock);
	mutex_lock(&table->function.data_lock);
	if (!flexmem_function_is_gone(&table->function))
		rc = reset_locked(table);
	mutex_unlock(&table->function.data_lock);
	if (!flexmem_function_error(&table->function))
		acquire_anew(table);
	mutex_unlock(&table->acquire_lock);
	flexmem_parts_undo(loss, table);
	return rc;
}

/* Does what flexmem_device_suspend() says. */
void flexmem_table_suspend(struct flexmem_table *table)
{
	flexmem_function_suspend(&table->function);
	flexmem_table_scrub_stop(table);
	mutex_lock(&table->acquire_lock);
	mutex_lock(&table->function.data_lock);
	mutex_unlock(&table->function.data_lock);
	mutex_unlock(&table->acquire_lock);
	take_maps_away(table);
}

void flexmem_table_resume(struct flexmem_table *table)
{
	flexmem_function_resume(&table->function);
	flexmem_accounts_freed(&table->accounts);
	flexmem_scrub_soon(table);
	/* Retries the commands that the suspend left pending. */
	flexmem_function_work_later(&table->function);
}
