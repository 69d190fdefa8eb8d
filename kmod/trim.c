// SPDX-License-Identifier: GPL-2.0
/*
 * Memory goes back to the device: of empty regions, when somebody asks for that,
 * and of what was acquired in vain. What the firmware does not take is kept, and
 * what it may have taken is not used until that is known.
 */

#include <linux/device.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "compat.h"
#include "job.h"
#include "table.h"

/**
 * flexmem_table_release - give the memory of a region back
 * @table: region table
 * @region: region without a slot; nothing refers to it
 *
 * If the firmware fails, the region is kept and tried again before the next one
 * is acquired: memory that we lost sight of would be lost for good.
 *
 * Context: under acquire_lock. May sleep.
 * Return: 0 or an error of the firmware.
 */
int flexmem_table_release(struct flexmem_table *table,
			  struct flexmem_region *region)
{
	int rc;

	lockdep_assert_held(&table->acquire_lock);
	rc = flexmem_function_release(&table->function, &region->mem);
	if (rc) {
		dev_dbg(table->function.dev, "release of %llu bytes: error %d\n",
			region->mem.size, rc);
		list_move_tail(&region->stranded, &table->stranded);
		region->unanswered += rc == -ETIMEDOUT;
		return rc;
	}
	list_del_init(&region->stranded);
	flexmem_region_destroy(region);
	return 0;
}

/* Whether the firmware cannot be asked for anything else now. */
static bool is_no_answer(int rc)
{
	return rc == -ETIMEDOUT || rc == -EINTR || rc == -ENODEV;
}

/**
 * flexmem_table_release_stranded - try again what could not be released
 * @table: region table
 * @removing: by who removes the device, whom nobody cuts short
 *
 * A piece that the firmware refuses does not keep the others, and one whose
 * release is never answered is left alone after some tries, until TRIM or
 * removal: neither is a reason to acquire nothing any more.
 *
 * Context: under acquire_lock, after flexmem_table_settle(): what a slot may name
 * is not given back. May sleep.
 * Return: 0; -ETIMEDOUT, -EINTR or -ENODEV if the firmware cannot be asked for
 * anything else now; as flexmem_function_put_off(); or the error that a piece was
 * refused with.
 */
int flexmem_table_release_stranded(struct flexmem_table *table, bool removing)
{
	bool released = false;
	struct flexmem_region *region, *next;
	LIST_HEAD(stranded);
	int rc = 0, cut, one;

	if (list_empty(&table->stranded))
		return 0;
	/* What fails goes back to the list. */
	list_splice_init(&table->stranded, &stranded);
	list_for_each_entry_safe(region, next, &stranded, stranded) {
		/* Who removes, resets or suspends does not wait for all. */
		cut = removing ? 0 : flexmem_function_put_off(&table->function);
		rc = cut ?: rc;
		if (cut || is_no_answer(rc) ||
		    region->unanswered == FLEXMEM_RELEASE_TRIES) {
			list_move_tail(&region->stranded, &table->stranded);
			continue;
		}
		one = flexmem_table_release(table, region);
		released |= !one;
		if (one && !is_no_answer(rc))
			rc = one;
	}
	/* The device has more than when it was asked last. */
	if (released && !removing)
		flexmem_table_reopen_pools(table);
	else
		flexmem_table_tell_accounts(table);
	return rc;
}

/**
 * flexmem_table_forgive - let pieces be tried again that were left alone
 * @table: region table
 *
 * Context: under acquire_lock.
 */
void flexmem_table_forgive(struct flexmem_table *table)
{
	struct flexmem_region *region;

	list_for_each_entry(region, &table->stranded, stranded)
		region->unanswered = 0;
}

/**
 * flexmem_table_settle - undo what the firmware has not answered
 * @table: region table
 *
 * Then each slot is as it was, so that regions that were kept out of use are good
 * again, and those that never had a slot can be given back.
 *
 * Context: under acquire_lock. May sleep.
 * Return: 0, or an error of the firmware; then it is still not known.
 */
int flexmem_table_settle(struct flexmem_table *table)
{
	struct flexmem_region *region;
	unsigned int slot;
	int rc;

	lockdep_assert_held(&table->acquire_lock);
	rc = flexmem_function_settle(&table->function);
	if (rc || !table->nr_doubtful)
		return rc;
	for (slot = 0; slot < table->slots.nr; slot++) {
		region = flexmem_region_at(table, slot);
		if (!region || !region->doubtful)
			continue;
		region->doubtful = false;
		flexmem_slots_show(&table->slots, slot);
		flexmem_region_revive(region);
	}
	list_for_each_entry(region, &table->stranded, stranded)
		region->doubtful = false;
	table->nr_doubtful = 0;
	flexmem_pressure_freed(&table->accounts);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_settle);

/* Whether something is not known, or not back, that is to be tried again. */
static bool is_settled(const struct flexmem_table *table)
{
	const struct flexmem_region *region;

	if (table->nr_doubtful || !flexmem_function_is_settled(&table->function))
		return false;
	list_for_each_entry(region, &table->stranded, stranded)
		if (region->unanswered &&
		    region->unanswered < FLEXMEM_RELEASE_TRIES)
			return false;
	return true;
}

/*
 * Nobody may ask the firmware for anything any more, so it is undone unasked:
 * with it goes memory that was got in vain. If the firmware may be dead, it is
 * asked as seldom as by anybody else (D28).
 */
static void settle_unasked(struct work_struct *work)
{
	struct flexmem_table *table =
		container_of(to_delayed_work(work), struct flexmem_table,
			     settle_work);

	mutex_lock(&table->acquire_lock);
	if (!flexmem_function_error(&table->function) && !is_settled(table) &&
	    flexmem_function_may_probe(&table->function)) {
		table->settle_tries++;
		if (!flexmem_table_settle(table))
			flexmem_table_release_stranded(table, false);
	}
	if (is_settled(table))
		table->settle_tries = 0;
	flexmem_table_settle_later(table);
	mutex_unlock(&table->acquire_lock);
}

/**
 * flexmem_table_settle_init - prepare to settle unasked
 * @table: region table
 */
void flexmem_table_settle_init(struct flexmem_table *table)
{
	INIT_DELAYED_WORK(&table->settle_work, settle_unasked);
	table->settle_ms = FLEXMEM_SETTLE_MS;
}

/**
 * flexmem_table_settle_later - see to it that what is not known will be
 * @table: region table
 *
 * If there is any such thing: soon, and again, less and less often, until the
 * firmware answers; of a release, only some times. Not while the device sleeps, or
 * needs a reset.
 *
 * Context: under acquire_lock.
 */
void flexmem_table_settle_later(struct flexmem_table *table)
{
	unsigned int doublings;
	u64 ms;

	lockdep_assert_held(&table->acquire_lock);
	if (flexmem_function_error(&table->function) || is_settled(table))
		return;
	doublings = min(table->settle_tries, FLEXMEM_SETTLE_DOUBLINGS);
	ms = min_t(u64, (u64)table->settle_ms << doublings, INT_MAX);
	queue_delayed_work(table->worker, &table->settle_work,
			   msecs_to_jiffies(ms));
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_settle_later);

/* Gives one empty region back; false if it is not empty. */
static bool trim_region(struct flexmem_table *table,
			struct flexmem_region *region, bool break_leases,
			int *rc)
{
	LIST_HEAD(quarantine);

	lockdep_assert_held(&table->data_lock);
	if (!flexmem_region_retire(region))
		return false;
	*rc = flexmem_slots_clear(&table->slots, region->slot, break_leases);
	if (*rc == -ETIMEDOUT || *rc == -EINTR) {
		/* Nobody gets memory of which a slot may not know any more. */
		region->doubtful = true;
		table->nr_doubtful++;
		return false;
	}
	if (*rc) {
		flexmem_region_revive(region);
		return false;
	}
	flexmem_region_unpublish(table, region, &quarantine);
	*rc = flexmem_table_release(table, region);
	return true;
}

/* Likewise, with the scrubber kept out of it; false if there is none. */
static bool trim_slot(struct flexmem_table *table, unsigned int slot,
		      bool break_leases, int *rc)
{
	struct flexmem_region *region = flexmem_region_at(table, slot);
	bool trimmed;

	if (!region)
		return false;
	*rc = mutex_lock_killable(&table->data_lock);
	if (*rc)
		return false;
	trimmed = trim_region(table, region, break_leases, rc);
	mutex_unlock(&table->data_lock);
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

		/* Who removes, resets or suspends does not wait for all. */
		rc = flexmem_function_put_off(&table->function);
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

	rc = flexmem_table_settle(table);
	if (rc)
		return rc;
	/* What still cannot be scrubbed stays where it is. */
	rc = flexmem_table_scrub_quarantine(table);
	if (rc != -EINTR)
		rc = flexmem_function_put_off(&table->function);
	if (rc)
		return rc;
	if (trim->break_leases)
		flexmem_lease_break_all(&table->slots);
	if (flexmem_lease_count(&table->slots))
		return -EBUSY;
	flexmem_table_forgive(table);
	refused = flexmem_table_release_stranded(table, false);
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
 * that the firmware would not take back does not count: it is kept, and given
 * back before the next region is acquired or trimmed.
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
