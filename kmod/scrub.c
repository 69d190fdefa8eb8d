// SPDX-License-Identifier: GPL-2.0
/*
 * Scrubbing: no owner can read another owner's bytes.
 *
 * Each block knows the owner of the bytes in it (block.h). A new owner's
 * allocation scrubs the block first, and waits for that. The same owner gets
 * its own bytes back at no cost. An allocation may take a part of a block that
 * the background is scrubbing (background.c). It waits until that scrub ends,
 * because the scrub would erase new bytes.
 *
 * A block that the device fails to scrub goes into quarantine (dirty.c). It is
 * not allocated until it is clean.
 */

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "scrub.h"
#include "table.h"

/* How long the background waits before it starts. */
#define SOON_JIFFIES (HZ / 10)

/**
 * flexmem_scrub_part - zero a part of the device's memory
 * @table: region table
 * @mem: memory as the device gave it
 * @start: offset
 * @size: bytes, at most FLEXMEM_SCRUB_MAX
 *
 * Context: under data_lock. May sleep.
 * Return: 0 or an error of the firmware.
 */
int flexmem_scrub_part(struct flexmem_table *table,
		       const struct flexmem_memory *mem, u64 start, u64 size)
{
	int rc;

	lockdep_assert_held(&table->function.data_lock);
	rc = flexmem_function_scrub(&table->function, mem, start, size);
	if (!rc)
		atomic64_add(size, &table->scrubbed);
	return rc;
}

/* For holders of acquire_lock: the device cannot suspend while they hold it. */
static int lock_data_awake(struct flexmem_table *table)
{
	lockdep_assert_held(&table->acquire_lock);
	return flexmem_function_error(&table->function) ?:
	       mutex_lock_killable(&table->function.data_lock);
}

/*
 * For callers without a lock. -EAGAIN: a probe timed out, so the device was not
 * asked.
 */
static int lock_data(struct flexmem_table *table)
{
	int rc = flexmem_function_lock_data(&table->function);

	return rc == -ETIMEDOUT ? -EAGAIN : rc;
}

/*
 * Zeroes [start, end) in parts, so that data_lock is never held for long.
 * @region is NULL, or the caller keeps it.
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
		rc = rc ?: flexmem_scrub_part(table, mem, start, size);
		mutex_unlock(&table->function.data_lock);
	}
	return rc;
}

/**
 * flexmem_scrub_memory - zero unused memory
 * @table: region table
 * @mem: memory as the device gave it; it stays, or is not addressable yet
 * @start: start of the part, an offset
 * @end: end of the part, an offset
 *
 * Context: under acquire_lock. May sleep.
 * Return: 0, -EINTR or an error of the firmware.
 */
int flexmem_scrub_memory(struct flexmem_table *table,
			 const struct flexmem_memory *mem, u64 start, u64 end)
{
	if (!table->function.ops.scrub)
		return 0;
	return scrub_range(table, mem, NULL, start, end, lock_data_awake);
}

/* For the worker and the background. */
static int lock_data_while_up(struct flexmem_table *table)
{
	int rc;

	mutex_lock(&table->function.data_lock);
	rc = flexmem_function_error(&table->function);
	if (rc)
		mutex_unlock(&table->function.data_lock);
	return rc;
}

/**
 * flexmem_scrub_whole - zero a block
 * @region: region; the caller keeps it
 * @block: block of it that only the caller uses
 *
 * Context: may sleep.
 * Return: 0; as flexmem_function_error(); -ENODEV or -EIO if the region is lost;
 * or an error of the firmware.
 */
int flexmem_scrub_whole(struct flexmem_region *region,
			const struct flexmem_block *block)
{
	return scrub_range(region->table, &region->mem, region, block->start,
			   flexmem_block_end(block), lock_data_while_up);
}

/* Whether the background is scrubbing a part of a newly allocated block. */
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
 * flexmem_scrub_block - prepare a block for its new owner
 * @region: region
 * @block: new block of it, not visible to its owner yet
 * @owner: number of the new owner
 * @zeroed: also scrub the owner's own bytes
 *
 * Context: may sleep.
 * Return: 0; -EINTR if the caller was killed; -ENODEV or -EIO if the region is
 * lost; -EAGAIN if the firmware may be dead and was not asked; or an error of
 * the firmware. After an error the block counts as dirty as before.
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
				 lock_data);
	} else if (is_being_scrubbed(region, block)) {
		/* Waits for the scrub under way. Sends no command. */
		rc = mutex_lock_killable(&table->function.data_lock);
		if (!rc)
			mutex_unlock(&table->function.data_lock);
	}
	if (!rc)
		flexmem_block_mark_dirty(block, owner);
	return rc;
}

/**
 * flexmem_scrub_soon - queue the background work
 * @table: region table
 *
 * Context: any; also under a region's lock.
 */
void flexmem_scrub_soon(struct flexmem_table *table)
{
	if (table->function.ops.scrub &&
	    !delayed_work_pending(&table->scrub_work) &&
	    !flexmem_function_error(&table->function))
		queue_delayed_work(system_unbound_wq, &table->scrub_work,
				   SOON_JIFFIES);
}
