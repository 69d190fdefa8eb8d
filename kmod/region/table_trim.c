// SPDX-License-Identifier: GPL-2.0
/*
 * Releases memory to the device: empty regions, when a client calls TRIM or
 * when they have been idle for a while. Also releases memory whose release the
 * firmware has not confirmed yet.
 */

#include <linux/errno.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "part.h"
#include "region/job.h"
#include "region/scrub.h"
#include "region/table.h"

/*
 * The work of a function's worker. Probes an unresponsive PF or VF, unmaps
 * closed spaces, retries pending commands, and acquires the regions that
 * reservations still lack. The work queues itself again, with growing delays,
 * until nothing is pending, or until everything pending was retried too often.
 * Only the unmapping of spaces is retried without a limit. All commands of a
 * function share the delay: after many refused tries to unmap a space, the first
 * retry of any other command waits as long as the next try.
 * @work: the work of a table's function.
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
	/* A run that is repeated at once is no try of anything else. */
	if (flexmem_function_vm_retry(function))
		goto unlock;
	flexmem_table_retry(table, false);
	if (!flexmem_function_error(function))
		flexmem_parts_call(work, table);
	WRITE_ONCE(function->work_tries, function->work_tries + 1);
	if (flexmem_function_is_unresponsive(function) ||
	    (!flexmem_function_error(function) &&
	     (!flexmem_function_is_settled(function) ||
	      flexmem_function_vm_is_pending(function))))
		flexmem_function_work_later(function);
	else
		WRITE_ONCE(function->work_tries, 0);
unlock:
	mutex_unlock(&table->acquire_lock);
}

/*
 * Removes a retired region from the table and from its slot. Returns false if
 * the region stays: with 0 in @rc if it is held, otherwise with an error of the
 * firmware.
 */
static bool remove_region(struct flexmem_table *table,
			  struct flexmem_region *region, int *rc)
{
	LIST_HEAD(quarantine);
	u64 start, end;

	lockdep_assert_held(&table->function.data_lock);
	if (!flexmem_slots_hide(&table->slots, region->slot))
		return false;
	*rc = flexmem_slots_clear(&table->slots, region->slot);
	if (*rc && *rc != -ETIMEDOUT && *rc != -EINTR)
		return false;
	/*
	 * The region leaves the table even if the command times out and the
	 * slot may still name the memory. The function then clears the slot,
	 * zeroes what owners left, and releases the memory, in this order.
	 */
	flexmem_region_dirty_part(region, &start, &end);
	if (READ_ONCE(table->runs_programs)) {
		start = 0;
		end = region->mem.size;
	}
	flexmem_function_mark_dirty(&table->function, &region->mem, start, end);
	flexmem_region_unpublish(table, region, &quarantine);
	flexmem_region_destroy(region);
	return true;
}

/*
 * Releases the region in a slot if it is empty and not held. Returns false if
 * the region stays.
 */
static bool trim_slot(struct flexmem_table *table, unsigned int slot, int *rc)
{
	struct flexmem_region *region = flexmem_region_at(table, slot);
	struct flexmem_memory mem;
	bool removed = false;
	int released;

	if (!region || flexmem_slots_are_held(&table->slots, slot) ||
	    !flexmem_region_retire(region))
		return false;
	mem = region->mem;
	*rc = mutex_lock_killable(&table->function.data_lock);
	if (!*rc) {
		removed = remove_region(table, region, rc);
		mutex_unlock(&table->function.data_lock);
	}
	if (!removed) {
		flexmem_region_revive(region);
		/* A search may have missed the region. */
		flexmem_accounts_freed(&table->accounts);
		/* The background scrub may have left the region out. */
		flexmem_scrub_soon(table);
		return false;
	}
	released = flexmem_function_release(&table->function, &mem);
	*rc = *rc ?: released;
	return true;
}

/**
 * struct trim - a TRIM
 * @job: the job that runs the TRIM
 * @regions: number of regions released so far
 * @bytes: bytes in the released regions
 */
struct trim {
	struct flexmem_job job;
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
		if (rc || !trim_slot(table, slot, &rc))
			continue;
		emptied = true;
		if (!rc) {
			trim->regions++;
			trim->bytes += size;
		}
	}
	if (emptied)
		flexmem_table_reopen(table);
	return rc;
}

static int run_trim(struct flexmem_job *job)
{
	struct trim *trim = container_of(job, struct trim, job);
	struct flexmem_table *table = job->table;
	int rc, refused;

	flexmem_parts_call(trim, table);
	/*
	 * Unmaps closed spaces, so that a later TRIM can release their memory.
	 * The worker goes on with them after the TRIM.
	 */
	flexmem_function_vm_retry(&table->function);
	/*
	 * Scrubs quarantined blocks again. A block whose scrub fails stays in
	 * quarantine.
	 */
	rc = flexmem_table_scrub_quarantine(table);
	if (rc != -EINTR)
		rc = flexmem_function_error(&table->function);
	if (rc)
		return rc;
	refused = flexmem_table_retry(table, true);
	/* After such an error no further command makes sense. */
	if (refused == -ETIMEDOUT || refused == -EINTR || refused == -ENODEV)
		return refused;
	return trim_slots(table, trim) ?: refused;
}

static void free_trim(struct flexmem_job *job)
{
	kfree(container_of(job, struct trim, job));
}

/*
 * Releases empty regions to the device. TRIM may retire a region only for a
 * moment. So an allocation that finds no room during a TRIM waits until the
 * TRIM ends, and looks again. Memory that the firmware refused to take back is
 * not counted. Its release is retried before the next region is acquired or
 * trimmed. Regions that the device's driver holds stay.
 * Context: may sleep. The worker does the work. Return: 0, -EBUSY if the
 * function is suspended, -ENOMEM, -EINTR, -ENODEV, or the first error of the
 * firmware. @regions and @bytes are valid after an error too, unless the caller
 * was killed.
 */
int flexmem_table_trim(struct flexmem_table *table, unsigned int *regions,
		       u64 *bytes)
{
	struct trim *trim;
	int rc;

	*regions = 0;
	*bytes = 0;
	trim = kzalloc(sizeof(*trim), GFP_KERNEL_ACCOUNT);
	if (!trim)
		return -ENOMEM;
	flexmem_job_init(&trim->job, table, run_trim, free_trim);
	if (!flexmem_job_run(&trim->job))
		return -EINTR;
	rc = trim->job.rc;
	*regions = trim->regions;
	*bytes = trim->bytes;
	kfree(trim);
	return rc;
}

/*
 * Releases a region that is not needed any more. Releases one region at most:
 * one that has been empty for the time of the setting release_after_s. One
 * empty region stays for the next allocation. Reserved and held regions stay
 * too.
 * Context: under acquire_lock. May sleep.
 */
void flexmem_table_release_idle(struct flexmem_table *table)
{
	unsigned long wait = table->settings.release_after_s * HZ;
	unsigned int slot, last = 0, nr_empty = 0;
	struct flexmem_region *region;
	bool empty, found = false;
	int rc;

	lockdep_assert_held(&table->acquire_lock);
	flexmem_parts_call(trim, table);
	for (slot = 0; slot < table->slots.nr; slot++) {
		region = flexmem_region_at(table, slot);
		if (!region)
			continue;
		if (flexmem_region_is_idle(region, wait, &empty) &&
		    !flexmem_slots_are_held(&table->slots, slot)) {
			found = true;
			last = slot;
		}
		nr_empty += empty;
	}
	if (!found || nr_empty < 2 || flexmem_function_error(&table->function))
		return;
	if (trim_slot(table, last, &rc))
		flexmem_table_reopen(table);
}

static void release_work(struct work_struct *work)
{
	struct flexmem_table *table =
		container_of(to_delayed_work(work), struct flexmem_table,
			     release_work);

	mutex_lock(&table->acquire_lock);
	flexmem_table_release_idle(table);
	if (!flexmem_function_is_gone(&table->function))
		queue_delayed_work(table->function.worker,
				   &table->release_work, HZ);
	mutex_unlock(&table->acquire_lock);
}

/* Begins to release idle regions, unless the setting release_after_s is 0. */
void flexmem_table_release_init(struct flexmem_table *table)
{
	INIT_DEFERRABLE_WORK(&table->release_work, release_work);
	if (table->settings.release_after_s)
		queue_delayed_work(table->function.worker,
				   &table->release_work, HZ);
}
