// SPDX-License-Identifier: GPL-2.0
/*
 * Memory goes back to the device: of empty regions with TRIM, and what the
 * function has pending.
 */

#include <linux/device.h>
#include <linux/errno.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "compat.h"
#include "dirty.h"
#include "job.h"
#include "scrub.h"
#include "table.h"

/* Whether the firmware cannot be asked for anything else now. */
static bool is_no_answer(int rc)
{
	return rc == -ETIMEDOUT || rc == -EINTR || rc == -ENODEV;
}

/**
 * flexmem_table_drain - undo and repeat what the function has pending
 * @table: region table
 * @all: also what was tried too often
 *
 * Context: under acquire_lock. May sleep.
 * Return: as flexmem_function_drain().
 */
int flexmem_table_drain(struct flexmem_table *table, bool all)
{
	unsigned int before = table->function.nr_pieces;
	int rc;

	lockdep_assert_held(&table->acquire_lock);
	rc = flexmem_function_drain(&table->function, all);
	/* The device has more than when it was asked last. */
	if (table->function.nr_pieces < before)
		flexmem_table_reopen_pools(table);
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_drain);

/**
 * flexmem_table_work - the worker's part of the gate
 * @work: of the function of a table
 *
 * A probe while the function is unresponsive, and what is pending if no caller
 * asks for anything. It runs again, less and less often, until there is nothing
 * left to do, or all that is left was tried too often.
 *
 * Context: a worker.
 */
void flexmem_table_work(struct work_struct *work)
{
	struct flexmem_function *function =
		container_of(to_delayed_work(work), struct flexmem_function,
			     work);
	struct flexmem_table *table =
		container_of(function, struct flexmem_table, function);

	mutex_lock(&table->acquire_lock);
	if (flexmem_function_is_unresponsive(function)) {
		flexmem_function_probe(function);
		flexmem_scrub_soon(table);
	}
	flexmem_table_drain(table, false);
	WRITE_ONCE(function->work_tries, function->work_tries + 1);
	if (flexmem_function_is_unresponsive(function) ||
	    (!flexmem_function_error(function) &&
	     !flexmem_function_is_settled(function)))
		flexmem_function_work_later(function);
	else
		WRITE_ONCE(function->work_tries, 0);
	mutex_unlock(&table->acquire_lock);
}

/* Gives a region back that was retired; false if it stays. */
static bool trim_region(struct flexmem_table *table,
			struct flexmem_region *region, bool break_leases,
			int *rc)
{
	LIST_HEAD(quarantine);
	int released;

	lockdep_assert_held(&table->data_lock);
	*rc = flexmem_slots_clear(&table->slots, region->slot, break_leases);
	if (*rc && *rc != -ETIMEDOUT && *rc != -EINTR)
		return false;
	/* Also if the slot may name it: then it goes back once that is cleared. */
	flexmem_region_unpublish(table, region, &quarantine);
	released = flexmem_function_release(&table->function, &region->mem);
	*rc = *rc ?: released;
	flexmem_region_destroy(region);
	return true;
}

/*
 * The device may give the memory to another function next: what the owners of a
 * region that was retired left in it goes first.
 */
static int clear_region(struct flexmem_table *table,
			struct flexmem_region *region)
{
	u64 start, end;

	if (table->function.clears)
		return 0;
	flexmem_region_dirty_part(region, &start, &end);
	return flexmem_scrub_memory(table, &region->mem, start, end);
}

/* Gives the region of a slot back if it is empty; false if it stays. */
static bool trim_slot(struct flexmem_table *table, unsigned int slot,
		      bool break_leases, int *rc)
{
	struct flexmem_region *region = flexmem_region_at(table, slot);
	bool trimmed = false;

	if (!region || !flexmem_region_retire(region))
		return false;
	*rc = clear_region(table, region);
	*rc = *rc ?: mutex_lock_killable(&table->data_lock);
	if (!*rc) {
		trimmed = trim_region(table, region, break_leases, rc);
		mutex_unlock(&table->data_lock);
	}
	if (!trimmed)
		flexmem_region_revive(region);
	return trimmed;
}

/**
 * struct trim - a TRIM
 * @job: has it done
 * @break_leases: end all leases first
 * @regions: given back so far
 * @bytes: in them
 */
struct trim {
	struct flexmem_job job;
	bool break_leases;
	unsigned int regions;
	u64 bytes;
};

static int trim_slots(struct flexmem_table *table, struct trim *trim)
{
	bool emptied = false;
	unsigned int slot;
	int rc = 0;

	for (slot = 0; !rc && slot < table->slots.nr; slot++) {
		u64 size = table->slots.entry[slot].length;

		rc = flexmem_function_error(&table->function);
		if (rc || !trim_slot(table, slot, trim->break_leases, &rc))
			continue;
		emptied = true;
		if (!rc) {
			trim->regions++;
			trim->bytes += size;
		}
	}
	if (emptied)
		flexmem_table_reopen_pools(table);
	return rc;
}

static int run_trim(struct flexmem_job *job)
{
	struct trim *trim = container_of(job, struct trim, job);
	struct flexmem_table *table = job->table;
	int rc, refused;

	/* What still cannot be scrubbed stays where it is. */
	rc = flexmem_table_scrub_quarantine(table);
	if (rc != -EINTR)
		rc = flexmem_function_error(&table->function);
	if (rc)
		return rc;
	if (trim->break_leases)
		flexmem_lease_break_all(&table->slots);
	if (flexmem_lease_count(&table->slots))
		return -EBUSY;
	refused = flexmem_table_drain(table, true);
	rc = is_no_answer(refused) ? refused : trim_slots(table, trim);
	return rc ?: refused;
}

static void free_trim(struct flexmem_job *job)
{
	kfree(container_of(job, struct trim, job));
}

/**
 * flexmem_table_trim - give empty regions back to the device
 * @table: region table
 * @break_leases: end all leases, those too that are taken meanwhile
 * @regions: receives how many have been given back
 * @bytes: receives the bytes in them
 *
 * An allocation that finds nothing meanwhile waits for the end of it before it
 * fails, so a region that is only retired for the moment is not missed. Memory
 * that the firmware would not take back does not count: the function gives it back
 * before the next region is acquired or trimmed.
 *
 * Context: may sleep; the worker does it.
 * Return: 0, -EBUSY if there is a lease, or one is taken meanwhile, -ENOMEM,
 * -EINTR, -ENODEV, or the first error of the firmware; @regions and @bytes tell
 * what has been done nevertheless, unless the caller was killed.
 */
int flexmem_table_trim(struct flexmem_table *table, bool break_leases,
		       unsigned int *regions, u64 *bytes)
{
	struct trim *trim;
	int rc;

	*regions = 0;
	*bytes = 0;
	trim = kzalloc(sizeof(*trim), GFP_KERNEL_ACCOUNT);
	if (!trim)
		return -ENOMEM;
	flexmem_job_init(&trim->job, table, run_trim, free_trim);
	trim->break_leases = break_leases;
	if (!flexmem_job_run(&trim->job))
		return -EINTR;
	rc = trim->job.rc;
	*regions = trim->regions;
	*bytes = trim->bytes;
	kfree(trim);
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_trim);
