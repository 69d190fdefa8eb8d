// SPDX-License-Identifier: GPL-2.0
/*
 * Scrubbing: no open file can read another file's bytes.
 *
 * Each block knows the owner of the bytes in it, an open file (block.h). An
 * allocation of a new owner scrubs the block first, and waits for the scrub. An
 * owner that gets its own bytes back needs no scrub. An allocation may take a
 * block while the background worker is scrubbing a part of it (table_scrub.c).
 * The allocation waits until that scrub ends, and scrubs the block again.
 *
 * A block that the device fails to scrub goes into quarantine: it is charged to
 * no account, and is not allocated until it is clean (region.c).
 */

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "region/scrub.h"
#include "region/table.h"

/* Delay from the first free of a dirty block to the background scrub. */
#define SOON_JIFFIES (HZ / 10)

/*
 * Takes data_lock for a caller that holds no lock. Returns -EAGAIN if the device
 * did not answer a probe in time, because no scrub was sent to the device.
 */
static int lock_data(struct flexmem_function *function)
{
	int rc = flexmem_function_lock_data(function);

	return rc == -ETIMEDOUT ? -EAGAIN : rc;
}

/*
 * Zeroes [start, end) of a region that the caller keeps. Takes and drops
 * data_lock for each part, so that the lock is never held for long.
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

/*
 * Takes data_lock for the function's worker, or for the worker that scrubs in
 * the background. These workers do not wait for a PF or VF that cannot take
 * commands.
 */
static int lock_data_while_up(struct flexmem_function *function)
{
	int rc;

	mutex_lock(&function->data_lock);
	rc = flexmem_function_error(function);
	if (rc)
		mutex_unlock(&function->data_lock);
	return rc;
}

/*
 * Zeroes a block.
 * @block: occupied block that only the caller uses.
 * Context: may sleep. Return: 0; an error of flexmem_function_error(); -ENODEV
 * or -EIO if the region is lost; or an error of the firmware.
 */
int flexmem_scrub_whole(const struct flexmem_block *block)
{
	return scrub_range(block->region, block->start, flexmem_block_end(block),
			   lock_data_while_up);
}

/* Not inline, because most new blocks need no scrub. */
static noinline int scrub_residue(const struct flexmem_block *block)
{
	return scrub_range(block->region, block->residue.start,
			   block->residue.end, lock_data);
}

/*
 * Prepares a block for its new owner.
 * @block: new block, not visible to its owner yet. @zeroed: scrub the block even
 * if the bytes in it are the new owner's own.
 * Context: may sleep. Return: 0; -EINTR if the caller was killed; -ENODEV or
 * -EIO if the region is lost; -EAGAIN if the firmware may be dead and was not
 * asked; or an error of the firmware. After an error the block still counts as
 * dirty.
 */
int flexmem_scrub_block(struct flexmem_block *block, u64 owner, bool zeroed)
{
	u64 bytes_of = block->residue.bytes_of;
	int rc = 0;

	/*
	 * If the background worker is scrubbing a part of the block, the bytes
	 * are not the owner's, and this waits for data_lock.
	 */
	if (bytes_of != FLEXMEM_CLEAN && (bytes_of != owner || zeroed))
		rc = scrub_residue(block);
	if (!rc)
		flexmem_block_mark_dirty(block, owner);
	return rc;
}

/*
 * Queues the background scrub, which checks all dirty blocks then. Also called
 * under a region's lock.
 */
void flexmem_scrub_soon(struct flexmem_table *table)
{
	/* The work reads it after it has stopped being pending. */
	smp_store_mb(table->scrub_anew, 1);
	if (!delayed_work_pending(&table->scrub_work) &&
	    !flexmem_function_error(&table->function))
		queue_delayed_work(system_dfl_wq, &table->scrub_work,
				   SOON_JIFFIES);
}
