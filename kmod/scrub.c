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

/*
 * For callers without a lock. -EAGAIN: a probe timed out, so the device was not
 * asked.
 */
static int lock_data(struct flexmem_function *function)
{
	int rc = flexmem_function_lock_data(function);

	return rc == -ETIMEDOUT ? -EAGAIN : rc;
}

/*
 * Zeroes [start, end) of a region that the caller keeps. Does it in parts, so
 * that data_lock is never held for long.
 */
static int scrub_range(const struct flexmem_region *region, u64 start, u64 end,
		       int (*lock)(struct flexmem_function *function))
{
	struct flexmem_function *function = &region->table->function;
	int rc = 0;
	u64 size;

	for (; !rc && start < end; start += size) {
		size = min(end - start, FLEXMEM_SCRUB_MAX);
		rc = lock(function);
		if (rc)
			return rc;
		rc = flexmem_region_error(region);
		rc = rc ?: flexmem_function_scrub(function, &region->mem, start,
						  size);
		mutex_unlock(&function->data_lock);
	}
	return rc;
}

/* For the worker and the background. */
static int lock_data_while_up(struct flexmem_function *function)
{
	int rc;

	mutex_lock(&function->data_lock);
	rc = flexmem_function_error(function);
	if (rc)
		mutex_unlock(&function->data_lock);
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
	return scrub_range(region, block->start, flexmem_block_end(block),
			   lock_data_while_up);
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
	struct flexmem_function *function = &region->table->function;
	u64 bytes_of = block->bytes_of;
	int rc = 0;

	if (!function->ops.scrub)
		return 0;
	if (bytes_of != FLEXMEM_CLEAN && (bytes_of != owner || zeroed)) {
		rc = scrub_range(region, block->dirty_start, block->dirty_end,
				 lock_data);
	} else if (is_being_scrubbed(region, block)) {
		/* Waits for the scrub under way. Sends no command. */
		rc = mutex_lock_killable(&function->data_lock);
		if (!rc)
			mutex_unlock(&function->data_lock);
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
