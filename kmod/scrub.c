// SPDX-License-Identifier: GPL-2.0
/*
 * Scrubbing: no owner gets the bytes of another.
 *
 * Each block knows whose bytes may be in it (block.h). When it goes to somebody
 * else it is scrubbed first, by who asked for it, who waits for that; the same
 * owner gets its own bytes back at no cost. What is free and has been several
 * owners', or one's who is not there any more, is scrubbed in the background,
 * so that fewer have to wait.
 *
 * The background takes nothing out of the free blocks (D25): it watches a free
 * block while the device scrubs it, and if the block is still the same
 * afterwards it is clean. Who has taken a part of it meanwhile waits until the
 * scrub under way is over, or it would wipe out what is new there.
 *
 * What the device fails to scrub is quarantined: nobody gets it until it has
 * been scrubbed. The background tries that again, too.
 */

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "owner.h"
#include "scrub.h"
#include "table.h"

/* How long a user may be away before its bytes are scrubbed unasked. */
#define IDLE_JIFFIES (5 * HZ)
/* Before the background begins; and blocks of a region that it looks at in a row. */
#define SOON_JIFFIES (HZ / 10)
#define LOOK_AT 16

/* Zeroes a part of what the device gave. Under data_lock. */
static int scrub_part(struct flexmem_table *table,
		      const struct flexmem_memory *mem, u64 start, u64 size)
{
	int rc;

	lockdep_assert_held(&table->data_lock);
	rc = flexmem_function_scrub(&table->function, mem, start, size);
	if (!rc)
		atomic64_add(size, &table->scrubbed);
	return rc;
}

/* For who holds acquire_lock: the device does not fall asleep before that. */
static int lock_data_awake(struct flexmem_table *table)
{
	lockdep_assert_held(&table->acquire_lock);
	/* Who removes or resets it waits for us. */
	return flexmem_table_cut_in(table) ?:
	       mutex_lock_killable(&table->data_lock);
}

/*
 * Zeroes [start, end), in pieces, so that nobody waits long for data_lock.
 * @region is NULL, or stays.
 */
static int scrub_range(struct flexmem_table *table,
		       const struct flexmem_memory *mem,
		       const struct flexmem_region *region, u64 start, u64 end,
		       int (*lock)(struct flexmem_table *table))
{
	int rc = 0;
	u64 size;

	for (; !rc && start < end; start += size) {
		size = min(end - start, FLEXMEM_SCRUB_MAX);
		rc = lock(table);
		if (rc)
			return rc;
		rc = region ? flexmem_region_error(region) : 0;
		rc = rc ?: scrub_part(table, mem, start, size);
		mutex_unlock(&table->data_lock);
	}
	return rc;
}

/**
 * flexmem_scrub_memory - make new memory clean
 * @table: region table
 * @mem: as the device gave it; not addressable yet
 *
 * Context: under acquire_lock. May sleep.
 * Return: 0, -EINTR or an error of the firmware.
 */
int flexmem_scrub_memory(struct flexmem_table *table,
			 const struct flexmem_memory *mem)
{
	if (!table->function.ops.scrub)
		return 0;
	return scrub_range(table, mem, NULL, 0, mem->size, lock_data_awake);
}

/* Whether the background is at work in a block that has just been taken. */
static bool is_being_scrubbed(struct flexmem_region *region,
			      const struct flexmem_block *block)
{
	bool overlap;

	spin_lock(&region->lock);
	overlap = region->scrub_start < flexmem_block_end(block) &&
		  block->start < region->scrub_end;
	spin_unlock(&region->lock);
	return overlap;
}

/**
 * flexmem_scrub_block - make a block fit for its new owner
 * @region: region
 * @block: block of it that nobody can name yet
 * @owner: number of the new owner
 * @zeroed: not even its own bytes are to be in there
 *
 * Context: may sleep.
 * Return: 0; -EINTR if the caller was killed; -ENODEV or -EIO if the region is
 * lost; -EAGAIN if the firmware may be dead, and was not asked; or an error of the
 * firmware. If it fails the block is as it was, as far
 * as anybody knows.
 */
int flexmem_scrub_block(struct flexmem_region *region,
			struct flexmem_block *block, u64 owner, bool zeroed)
{
	struct flexmem_table *table = region->table;
	u64 bytes_of = block->bytes_of;
	int rc = 0;

	if (!table->function.ops.scrub)
		return 0;
	if (bytes_of != FLEXMEM_CLEAN && (bytes_of != owner || zeroed)) {
		rc = scrub_range(table, &region->mem, region,
				 block->dirty_start, block->dirty_end,
				 flexmem_table_lock_to_move);
	} else if (is_being_scrubbed(region, block)) {
		rc = flexmem_table_lock_data(table);
		if (!rc)
			mutex_unlock(&table->data_lock);
	}
	if (!rc)
		flexmem_block_soil(block, owner);
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_scrub_block);

/**
 * flexmem_scrub_quarantine - try again what could not be scrubbed
 * @table: region table
 *
 * Context: under acquire_lock, so that regions stay. May sleep.
 * Return: 0; the error that the first one failed with again; or as
 * flexmem_table_put_off().
 */
int flexmem_scrub_quarantine(struct flexmem_table *table)
{
	struct flexmem_region *region;
	struct flexmem_block *block;
	unsigned int slot;
	int rc = 0;

	lockdep_assert_held(&table->acquire_lock);
	for (slot = 0; !rc && slot < table->slots.nr; slot++) {
		region = flexmem_region_at(table, slot);
		while (!rc && region) {
			rc = flexmem_table_put_off(table);
			block = rc ? NULL :
				flexmem_region_take_quarantined(region);
			if (!block)
				break;
			rc = scrub_range(table, &region->mem, region,
					 block->start, flexmem_block_end(block),
					 lock_data_awake);
			flexmem_region_end_quarantine(region, block, !rc);
		}
	}
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_scrub_quarantine);

/* Does nothing for a device that sleeps: who puts it to sleep waits for us. */
static bool may_scrub(const struct flexmem_table *table)
{
	return !READ_ONCE(table->closing) && !READ_ONCE(table->suspended) &&
	       !READ_ONCE(table->needs_reset);
}

/*
 * A free block worth scrubbing: one that is nobody's, or, when it was looked at
 * last, @owner's. Otherwise @seen is whose the first one is, which goes to the
 * end of the list.
 */
static struct flexmem_block *find_worthy(struct flexmem_region *region,
					 u64 owner, u64 *seen)
{
	struct list_head *dirty = &region->blocks.dirty;
	struct flexmem_block *block;

	lockdep_assert_held(&region->lock);
	if (list_empty(dirty))
		return NULL;
	block = list_first_entry(dirty, struct flexmem_block, dirty_link);
	if (block->bytes_of == FLEXMEM_MIXED)
		return block;
	block = list_last_entry(dirty, struct flexmem_block, dirty_link);
	if (block->bytes_of == owner)
		return block;
	block = list_first_entry(dirty, struct flexmem_block, dirty_link);
	*seen = block->bytes_of;
	list_move_tail(&block->dirty_link, dirty);
	return NULL;
}

/* The block to scrub next: the one that is watched already, or a new one. */
static bool watch(struct flexmem_region *region, u64 owner, u64 *seen)
{
	struct flexmem_blocks *blocks = &region->blocks;
	u64 size;

	spin_lock(&region->lock);
	if (!region->dead && !blocks->watched) {
		WRITE_ONCE(blocks->watched, find_worthy(region, owner, seen));
		if (blocks->watched)
			region->scrub_next = blocks->watched->dirty_start;
	}
	if (!region->dead && blocks->watched) {
		size = min(blocks->watched->dirty_end - region->scrub_next,
			   FLEXMEM_SCRUB_MAX);
		region->scrub_start = region->scrub_next;
		region->scrub_end = region->scrub_next + size;
	}
	spin_unlock(&region->lock);
	return region->scrub_start < region->scrub_end;
}

/*
 * A piece has been scrubbed, or not. -EAGAIN if the block is not the same any
 * more, so that what was done is lost.
 */
static int end_piece(struct flexmem_region *region, int rc)
{
	struct flexmem_blocks *blocks = &region->blocks;
	struct flexmem_block *block;

	spin_lock(&region->lock);
	block = blocks->watched;
	region->scrub_next = region->scrub_end;
	region->scrub_start = region->scrub_end;
	if (!block)
		rc = rc ?: -EAGAIN;
	else if (rc || region->scrub_next == block->dirty_end)
		WRITE_ONCE(blocks->watched, NULL);
	if (!rc && !blocks->watched)
		flexmem_blocks_clean(blocks, block);
	spin_unlock(&region->lock);
	return rc;
}

/*
 * Scrubs one piece of a free block of a region, which stays as data_lock is
 * held. @waits is set if there may be something to do later. Returns -ENOENT if
 * there is nothing to do now.
 */
static int scrub_free_piece(struct flexmem_region *region, bool *waits)
{
	struct flexmem_table *table = region->table;
	bool found = false, idle = false;
	u64 seen = FLEXMEM_CLEAN, none;
	unsigned int i;
	int rc = -EAGAIN;

	for (i = 0; i < LOOK_AT && !found && !idle; i++) {
		seen = FLEXMEM_CLEAN;
		found = watch(region, FLEXMEM_MIXED, &seen);
		if (found || seen == FLEXMEM_CLEAN)
			break;
		*waits = true;
		/* Not under the region's lock: there may be many owners. */
		idle = flexmem_owner_is_idle(&table->accounts, seen,
					     IDLE_JIFFIES);
	}
	if (idle)
		found = watch(region, seen, &none);
	if (!found)
		return -ENOENT;
	if (flexmem_function_may_probe(&table->function))
		rc = scrub_part(table, &region->mem, region->scrub_start,
				region->scrub_end - region->scrub_start);
	return end_piece(region, rc);
}

/*
 * Tries one piece of a quarantined block again, if it is time. -ENOENT: it is
 * not. The block stays in quarantine until all of it is done: TRIM may take it
 * out between two pieces, and waits for data_lock before it does anything to it.
 */
static int retry_quarantined(struct flexmem_region *region, bool *waits)
{
	struct flexmem_table *table = region->table;
	u64 start, size;
	int rc;

	lockdep_assert_held(&table->data_lock);
	if (!READ_ONCE(region->nr_quarantined))
		return -ENOENT;
	*waits = true;
	if (time_before(jiffies, READ_ONCE(region->retry_at)))
		return -ENOENT;
	if (!flexmem_region_begin_retry(region, &start, &size))
		return -ENOENT;
	if (!flexmem_function_may_probe(&table->function))
		return -EAGAIN;
	rc = scrub_part(table, &region->mem, start, size);
	flexmem_region_end_retry(region, size, rc);
	return rc;
}

/*
 * One piece of each region: then others may have the lock. Returns 0 if there
 * was something to do and nothing failed.
 */
static int scrub_round(struct flexmem_table *table, bool *waits)
{
	struct flexmem_region *region;
	int rc = -ENOENT, one;
	unsigned int slot;

	for (slot = 0; slot < table->slots.nr; slot++) {
		mutex_lock(&table->data_lock);
		/* A region leaves the table under this lock only. */
		region = rcu_dereference_protected(table->region[slot],
						   lockdep_is_held(&table->data_lock));
		one = -ENOENT;
		if (region && may_scrub(table))
			one = retry_quarantined(region, waits);
		if (region && may_scrub(table) && one == -ENOENT)
			one = scrub_free_piece(region, waits);
		mutex_unlock(&table->data_lock);
		if (one != -ENOENT && (rc == -ENOENT || !rc))
			rc = one;
		cond_resched();
	}
	return rc;
}

static void scrub_work(struct work_struct *work)
{
	struct delayed_work *delayed = to_delayed_work(work);
	struct flexmem_table *table =
		container_of(delayed, struct flexmem_table, scrub_work);
	bool waits = false;
	int rc;

	do {
		rc = scrub_round(table, &waits);
	} while (!rc && may_scrub(table));
	/* What fails, or changes under our hands, is not tried again at once. */
	if (may_scrub(table) && (waits || rc != -ENOENT))
		queue_delayed_work(system_unbound_wq, &table->scrub_work,
				   IDLE_JIFFIES);
}

/**
 * flexmem_scrub_init - prepare the background
 * @table: region table
 */
void flexmem_scrub_init(struct flexmem_table *table)
{
	INIT_DELAYED_WORK(&table->scrub_work, scrub_work);
}

/**
 * flexmem_scrub_soon - there may be something to do in the background
 * @table: region table
 *
 * Context: any; also under a region's lock.
 */
void flexmem_scrub_soon(struct flexmem_table *table)
{
	if (table->function.ops.scrub &&
	    !delayed_work_pending(&table->scrub_work) && may_scrub(table))
		queue_delayed_work(system_unbound_wq, &table->scrub_work,
				   SOON_JIFFIES);
}

/**
 * flexmem_scrub_stop - nothing is scrubbed in the background any more
 * @table: region table that is closing or suspended
 *
 * Context: may sleep, for one operation at most.
 */
void flexmem_scrub_stop(struct flexmem_table *table)
{
	cancel_delayed_work_sync(&table->scrub_work);
}
