// SPDX-License-Identifier: GPL-2.0
/*
 * The blocks of a region that need a scrub: free blocks, which the background
 * worker scrubs (table_scrub.c), and blocks in quarantine. A quarantined block
 * could not be scrubbed. It is charged to no account, and is not allocated
 * until it is clean.
 */

#include <linux/jiffies.h>
#include <linux/minmax.h>

#include "owner.h"
#include "region.h"
#include "region_dirty.h"
#include "scrub.h"
#include "spare.h"
#include "table.h"

/* Delay before a failed scrub is retried. */
#define RETRY_JIFFIES (30 * HZ)

/*
 * Puts a block into quarantine after a failed scrub. The block is not allocated
 * before it is clean. The background worker and TRIM retry the scrub. If the
 * region is dead, the block is freed instead.
 * @block: new block of @region, not visible to its owner yet.
 * Context: takes the region's lock. The caller must not use @block or @region
 * afterwards.
 */
void flexmem_region_quarantine(struct flexmem_region *region,
			       struct flexmem_block *block)
{
	bool dead;

	spin_lock(&region->lock);
	dead = region->dead;
	if (!dead) {
		flexmem_region_set_use(region, block,
				       FLEXMEM_USE_QUARANTINED);
		list_add_tail(&block->dirty_link, &region->quarantine);
		WRITE_ONCE(region->retry_at, jiffies + RETRY_JIFFIES);
		flexmem_scrub_soon(region->table);
	}
	spin_unlock(&region->lock);
	if (dead)
		flexmem_region_free(region, block, NULL);
}

/*
 * Takes a block out of quarantine for a retry.
 * @region: region that the caller keeps, or that is dying; the returned block
 * keeps the region from now on.
 * Context: takes the region's lock. Return: the block, for
 * flexmem_region_retry() or flexmem_region_end_quarantine(); NULL if there is
 * none.
 */
struct flexmem_block *
flexmem_region_take_quarantined(struct flexmem_region *region)
{
	struct flexmem_block *block;

	spin_lock(&region->lock);
	block = list_first_entry_or_null(&region->quarantine,
					 struct flexmem_block, dirty_link);
	if (block)
		list_del(&block->dirty_link);
	spin_unlock(&region->lock);
	return block;
}

/*
 * Ends a retry that flexmem_region_take_quarantined() has begun. Frees @block
 * if it was scrubbed or its region is dead. Otherwise the block goes back into
 * quarantine. Context: takes the region's lock. The caller must not use @block
 * afterwards, and must not use @region if it is dead.
 */
void flexmem_region_end_quarantine(struct flexmem_region *region,
				   struct flexmem_block *block, bool scrubbed)
{
	bool ends;

	spin_lock(&region->lock);
	ends = scrubbed || region->dead;
	if (ends) {
		block->bytes_of = FLEXMEM_CLEAN;
	} else {
		list_add_tail(&block->dirty_link, &region->quarantine);
		WRITE_ONCE(region->retry_at, jiffies + RETRY_JIFFIES);
	}
	spin_unlock(&region->lock);
	if (ends)
		flexmem_region_free(region, block, NULL);
}

/*
 * Scrubs a quarantined block.
 * @region: region, which @block keeps. @block: from
 * flexmem_region_take_quarantined(); becomes free, or goes back into
 * quarantine.
 * Context: may sleep. Return: 0, or an error of flexmem_scrub_whole().
 */
int flexmem_region_retry(struct flexmem_region *region,
			 struct flexmem_block *block)
{
	int rc = flexmem_scrub_whole(region, block);

	flexmem_region_end_quarantine(region, block, !rc);
	return rc;
}

/*
 * The first dirty block, if it is worth a scrub: it is mixed, or its bytes are
 * those of a file that is closed. Otherwise moves the block to the end of the
 * list and returns NULL; the next call checks the next block.
 */
static struct flexmem_block *find_worthy(struct flexmem_region *region)
{
	struct list_head *dirty = &region->blocks.dirty;
	struct flexmem_block *block;

	lockdep_assert_held(&region->lock);
	block = list_first_entry_or_null(dirty, struct flexmem_block,
					 dirty_link);
	if (!block || block->bytes_of == FLEXMEM_MIXED ||
	    !flexmem_owner_is_open(&region->table->accounts, block->bytes_of))
		return block;
	list_move_tail(&block->dirty_link, dirty);
	return NULL;
}

/*
 * Finds the part of an empty, retired region that needs a scrub: from the first
 * byte that an owner may have written up to the last one. @end is exclusive.
 * @end is equal to @start if there is no such byte. Takes the region's lock.
 */
void flexmem_region_dirty_part(struct flexmem_region *region, u64 *start,
			       u64 *end)
{
	const struct flexmem_block *block;

	*start = 0;
	*end = 0;
	spin_lock(&region->lock);
	list_for_each_entry(block, &region->blocks.dirty, dirty_link) {
		*start = block->dirty_start;
		*end = block->dirty_end;
	}
	spin_unlock(&region->lock);
}

/*
 * Finds the next part of a free block to scrub. The part is a part of the
 * watched block, from @scrub_start to @scrub_end. If no block is watched, this
 * function chooses one.
 * @region: region that the caller keeps. @dirty: receives a number that the
 * number of dirty blocks does not exceed. So after this many calls without a
 * part, each dirty block has been checked.
 * Context: under data_lock until flexmem_region_end_scrub(). Takes the region's
 * lock. O(log files). Return: true if there is a part to scrub.
 */
bool flexmem_region_begin_scrub(struct flexmem_region *region, u64 *dirty)
{
	struct flexmem_blocks *blocks = &region->blocks;
	u64 size;

	spin_lock(&region->lock);
	if (!region->dead && !blocks->watched) {
		WRITE_ONCE(blocks->watched, find_worthy(region));
		if (blocks->watched)
			region->scrub_next = blocks->watched->dirty_start;
	}
	if (!region->dead && blocks->watched) {
		size = min(blocks->watched->dirty_end - region->scrub_next,
			   FLEXMEM_SCRUB_MAX);
		region->scrub_start = region->scrub_next;
		region->scrub_end = region->scrub_next + size;
	}
	*dirty = list_empty(&blocks->dirty) ? 0 : blocks->nr_free;
	spin_unlock(&region->lock);
	return region->scrub_start < region->scrub_end;
}

/*
 * Ends a scrub that flexmem_region_begin_scrub() has begun. A block that could
 * not be scrubbed is checked again after all other dirty blocks.
 * @rc: 0 if the part is clean now.
 * Context: takes the region's lock. Return: @rc; or -EAGAIN if the block has
 * changed during the scrub. The block then stays dirty.
 */
int flexmem_region_end_scrub(struct flexmem_region *region, int rc)
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
	else if (rc && block)
		list_move_tail(&block->dirty_link, &blocks->dirty);
	spin_unlock(&region->lock);
	return rc;
}
