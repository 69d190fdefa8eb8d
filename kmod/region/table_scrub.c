// SPDX-License-Identifier: GPL-2.0
/*
 * Background scrubbing, so that fewer allocations wait for a scrub. The worker
 * scrubs free blocks with bytes of several files, free blocks with bytes of a
 * closed file, and blocks in quarantine. Nobody needs the bytes of a closed
 * file any more. Those of an open file stay, because the file may use the block
 * again without a scrub.
 *
 * The worker never removes a block from the free blocks, so placement does not
 * depend on background scrubs. The worker watches a free block during the
 * scrub, and marks the block clean if it did not change in the meantime.
 */

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "region/scrub.h"
#include "region/table.h"
#include "tenant/owner.h"

/* Delay before the worker runs again for blocks that it could not scrub. */
#define AGAIN_JIFFIES (5 * HZ)
/* How many blocks of a region the worker checks in one round. */
#define LOOK_AT 16
/*
 * How many blocks of a region the worker checks in one run, without finding
 * work. Any close() of a file starts a run, so a run must not take long. After
 * CONTINUE_JIFFIES the next run checks the blocks behind them.
 */
#define MOST_LOOKS 2048
#define CONTINUE_JIFFIES (HZ / 10)

/*
 * Scrubs a quarantined block.
 * @block: from flexmem_region_take_quarantined(); becomes free, or goes back into
 * quarantine.
 * Context: may sleep. Return: 0, or an error of flexmem_scrub_whole().
 */
int flexmem_table_retry_scrub(struct flexmem_block *block)
{
	int rc = flexmem_scrub_whole(block);

	flexmem_region_end_quarantine(block, !rc);
	return rc;
}

/*
 * Retries the scrub of quarantined blocks.
 * Context: under acquire_lock, so that regions stay. May sleep. Return: 0; the
 * error of the first block that failed again; or an error of
 * flexmem_function_error().
 */
int flexmem_table_scrub_quarantine(struct flexmem_table *table)
{
	struct flexmem_region *region;
	struct flexmem_block *block;
	unsigned int slot;
	int rc = 0;

	lockdep_assert_held(&table->acquire_lock);
	for (slot = 0; !rc && slot < table->slots.nr; slot++) {
		region = flexmem_region_at(table, slot);
		while (!rc && region) {
			block = flexmem_region_take_quarantined(region);
			if (!block)
				break;
			rc = flexmem_table_retry_scrub(block);
		}
	}
	return rc;
}

/*
 * Whether the worker may scrub: not while the function is suspended or
 * unresponsive. When the function is up again, the scrub work is queued again.
 */
static bool may_scrub(const struct flexmem_table *table)
{
	return !flexmem_function_error(&table->function);
}

/*
 * The first dirty block, if it is worth a scrub: it is mixed, or its bytes are
 * those of a file that is closed. Otherwise moves the block to the end of the
 * list and returns NULL; the next call checks the next block.
 */
static struct flexmem_residue *find_worthy(struct flexmem_region *region)
{
	struct flexmem_residues *residues = &region->blocks.residues;
	struct flexmem_residue *first = flexmem_residues_first(residues);

	lockdep_assert_held(&region->lock);
	if (!first || first->bytes_of == FLEXMEM_MIXED ||
	    !flexmem_owner_is_open(&region->table->accounts, first->bytes_of))
		return first;
	list_move_tail(&first->link, &residues->dirty);
	return NULL;
}

/*
 * Finds the next part of a free block to scrub.
 * @region: region that the caller keeps. @dirty: receives a number that the
 * number of dirty blocks does not exceed. So after this many calls without a
 * part, each dirty block has been checked.
 * Context: under data_lock until the part is scrubbed. Takes the region's lock.
 * O(log files). Return: true if there is a part to scrub.
 */
static bool begin_scrub(struct flexmem_region *region, u64 *start, u64 *end,
			u64 *dirty)
{
	struct flexmem_residues *residues = &region->blocks.residues;
	struct flexmem_residue *worthy = NULL;
	bool found;

	spin_lock(&region->lock);
	if (!region->dead && !residues->watched)
		worthy = find_worthy(region);
	if (worthy)
		flexmem_residues_watch(residues, worthy);
	found = !region->dead &&
		flexmem_residues_begin_scrub(residues, FLEXMEM_SCRUB_MAX,
					     start, end);
	*dirty = list_empty(&residues->dirty) ? 0 : region->blocks.nr_free;
	spin_unlock(&region->lock);
	return found;
}

/*
 * Scrubs one part of a free block of a region. The caller holds data_lock, so
 * the region stays. Checks at most LOOK_AT blocks; raises @dirty to how many
 * must be checked. Returns -ENOENT if none of them needs a scrub.
 */
static int scrub_free_piece(struct flexmem_region *region, u64 *dirty)
{
	u64 nr = 1, start, end;
	bool found = false;
	unsigned int i;
	int rc;

	for (i = 0; i < min_t(u64, LOOK_AT, nr) && !found; i++)
		found = begin_scrub(region, &start, &end, &nr);
	*dirty = max(*dirty, nr);
	if (!found)
		return -ENOENT;
	rc = flexmem_function_scrub(&region->table->function, &region->mem,
				    start, end - start);
	spin_lock(&region->lock);
	rc = flexmem_residues_end_scrub(&region->blocks.residues, end, rc);
	spin_unlock(&region->lock);
	return rc;
}

/* Returns a quarantined block that may be retried now, or NULL. */
static struct flexmem_block *take_due(struct flexmem_region *region,
				      bool *waits)
{
	if (!READ_ONCE(region->nr_quarantined))
		return NULL;
	*waits = true;
	if (time_before(jiffies, READ_ONCE(region->retry_at)))
		return NULL;
	return flexmem_region_take_quarantined(region);
}

/*
 * Scrubs one quarantined block, or a part of one free block, in each region.
 * Drops data_lock after each region. @waits: set if a block is in quarantine.
 * @dirty: raised to how many blocks of a region must be checked. Returns 0 if
 * there was work and nothing failed, and -ENOENT if there was no work.
 */
static int scrub_round(struct flexmem_table *table, bool *waits, u64 *dirty)
{
	struct flexmem_region *region;
	struct flexmem_block *block;
	int rc = -ENOENT, one;
	unsigned int slot;

	for (slot = 0; slot < table->slots.nr; slot++) {
		block = NULL;
		one = -ENOENT;
		mutex_lock(&table->function.data_lock);
		/* A region leaves the table under data_lock only. */
		region = rcu_dereference_protected(table->region[slot],
						   lockdep_is_held(&table->function.data_lock));
		if (region && may_scrub(table)) {
			block = take_due(region, waits);
			if (!block)
				one = scrub_free_piece(region, dirty);
		}
		mutex_unlock(&table->function.data_lock);
		if (block)
			one = flexmem_table_retry_scrub(block);
		if (one != -ENOENT && (rc == -ENOENT || !rc))
			rc = one;
		cond_resched();
	}
	return rc;
}

/*
 * Makes rounds until one has no work left, or this run has checked MOST_LOOKS
 * blocks of a region. Returns the result of the last round. @unchecked receives
 * whether a block may need a scrub that no round has checked since the latest
 * flexmem_scrub_soon().
 */
static int scrub_rounds(struct flexmem_table *table, bool *waits,
			bool *unchecked)
{
	unsigned int looks = 0;
	u64 dirty = 0;
	int rc;

	do {
		if (xchg(&table->scrub_anew, 0))
			table->scrub_checked = 0;
		if (!table->scrub_checked)
			dirty = 0;
		rc = scrub_round(table, waits, &dirty);
		if (rc == -ENOENT) {
			table->scrub_checked += LOOK_AT;
			looks += LOOK_AT;
		} else {
			table->scrub_checked = 0;
		}
		*unchecked = !rc || (rc == -ENOENT &&
				     table->scrub_checked < dirty);
	} while (*unchecked && looks < MOST_LOOKS && may_scrub(table));
	return rc;
}

/*
 * Scrubs what may be scrubbed now. There is nothing left when rounds without
 * work have checked each dirty block.
 */
void flexmem_table_scrub_work(struct work_struct *work)
{
	struct delayed_work *delayed = to_delayed_work(work);
	struct flexmem_table *table =
		container_of(delayed, struct flexmem_table, scrub_work);
	bool waits = false, unchecked;
	int rc;

	flexmem_owner_forget(&table->accounts);
	rc = scrub_rounds(table, &waits, &unchecked);
	if (!may_scrub(table))
		return;
	/* A block that failed or changed is retried after a delay. */
	if (unchecked || waits || rc != -ENOENT)
		queue_delayed_work(system_dfl_wq, &table->scrub_work,
				   unchecked ? CONTINUE_JIFFIES :
					       AGAIN_JIFFIES);
}

/* Stops scrubbing in the background. May sleep, for one operation at most. */
void flexmem_table_scrub_stop(struct flexmem_table *table)
{
	cancel_delayed_work_sync(&table->scrub_work);
}
