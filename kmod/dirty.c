// SPDX-License-Identifier: GPL-2.0
/*
 * What of a region is to be scrubbed: free blocks that the background watches,
 * and those in quarantine, which could not be scrubbed: they are nobody's, and are
 * given to nobody, until they have been.
 */

#include <linux/jiffies.h>
#include <linux/minmax.h>

#include "compat.h"
#include "dirty.h"
#include "region.h"
#include "scrub.h"
#include "table.h"

/* When what could not be scrubbed is tried again. */
#define RETRY_JIFFIES (30 * HZ)

/* Owns what could not be scrubbed. */
static const char quarantine_owner;

/**
 * flexmem_region_quarantine - a block could not be scrubbed
 * @region: region
 * @block: occupied block of it that nobody can name yet
 * @kind: as it was allocated
 * @account: whose it would have been
 *
 * Nobody gets it before it is scrubbed, which is tried again in the background
 * and with TRIM: see flexmem_region_take_quarantined().
 * If the region is dead, the block is simply given back.
 *
 * Context: takes the region's lock. Neither @block nor @region may be used
 * after it.
 */
void flexmem_region_quarantine(struct flexmem_region *region,
			       struct flexmem_block *block,
			       enum flexmem_kind kind,
			       struct flexmem_account *account)
{
	struct flexmem_accounts *accounts = &region->table->accounts;
	bool dead;

	spin_lock(&region->lock);
	dead = region->dead;
	if (!dead) {
		flexmem_uncharge_quarantined(accounts, account, region->slot,
					     block->size);
		region->used[kind] -= block->size;
		if (block->tail)
			flexmem_blocks_part(&region->blocks, block);
		block->owner = &quarantine_owner;
		list_add_tail(&block->dirty_link, &region->quarantine);
		WRITE_ONCE(region->nr_quarantined, region->nr_quarantined + 1);
		WRITE_ONCE(region->retry_at, jiffies + RETRY_JIFFIES);
		flexmem_scrub_soon(region->table);
	}
	spin_unlock(&region->lock);
	if (dead)
		flexmem_region_free(region, block, kind, account, false);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_region_quarantine);

/**
 * flexmem_region_take_quarantined - a block to try once more
 * @region: region that stays, or that is dying
 *
 * Context: takes the region's lock.
 * Return: the block, for flexmem_region_end_quarantine(); NULL if there is none.
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
	if (block == region->retried)
		region->retried = NULL;
	spin_unlock(&region->lock);
	return block;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_region_take_quarantined);

/**
 * flexmem_region_end_quarantine - let a block be used again, or not
 * @region: region
 * @block: as flexmem_region_take_quarantined() returned it
 * @scrubbed: it has been scrubbed, or the region is dead; otherwise it goes
 *	back into quarantine
 *
 * Context: takes the region's lock. Neither @block nor a dead @region may be
 * used after it.
 */
void flexmem_region_end_quarantine(struct flexmem_region *region,
				   struct flexmem_block *block, bool scrubbed)
{
	struct flexmem_accounts *accounts = &region->table->accounts;
	struct flexmem_spare unused = {};
	bool last = false;

	spin_lock(&region->lock);
	if (scrubbed) {
		WRITE_ONCE(region->nr_quarantined, region->nr_quarantined - 1);
		block->bytes_of = FLEXMEM_CLEAN;
		if (!region->dead)
			flexmem_charge_quarantine(accounts, region->slot,
						  -block->size);
		last = flexmem_region_give_back(region, block, &unused);
	} else {
		list_add_tail(&block->dirty_link, &region->quarantine);
		WRITE_ONCE(region->retry_at, jiffies + RETRY_JIFFIES);
	}
	spin_unlock(&region->lock);
	flexmem_pressure_freed(accounts);
	flexmem_spare_drop(&unused);
	if (last)
		flexmem_region_destroy(region);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_region_end_quarantine);

/**
 * flexmem_region_begin_retry - what to scrub next of the quarantined blocks
 * @region: region that stays
 * @start: receives where to begin
 * @size: receives bytes, at most FLEXMEM_SCRUB_MAX
 *
 * Context: under data_lock until flexmem_region_end_retry(). Takes the region's
 * lock.
 * Return: true if there is something.
 */
bool flexmem_region_begin_retry(struct flexmem_region *region, u64 *start,
				u64 *size)
{
	struct flexmem_block *block;

	spin_lock(&region->lock);
	block = list_first_entry_or_null(&region->quarantine,
					 struct flexmem_block, dirty_link);
	if (block && region->retried != block) {
		region->retried = block;
		region->retry_next = block->dirty_start;
	}
	if (block) {
		*start = region->retry_next;
		*size = min(block->dirty_end - *start, FLEXMEM_SCRUB_MAX);
	}
	spin_unlock(&region->lock);
	return block;
}

/**
 * flexmem_region_end_retry - a piece has been scrubbed, or not
 * @region: region
 * @size: bytes of the piece
 * @rc: 0 if it has been
 *
 * With the last piece the block can be used again; a block that failed has to
 * wait. If somebody has taken the block out of quarantine meanwhile, it is his.
 *
 * Context: takes the region's lock.
 */
void flexmem_region_end_retry(struct flexmem_region *region, u64 size, int rc)
{
	struct flexmem_block *block, *done = NULL;

	spin_lock(&region->lock);
	block = region->retried;
	region->retry_next += size;
	if (block && rc) {
		list_move_tail(&block->dirty_link, &region->quarantine);
		WRITE_ONCE(region->retry_at, jiffies + RETRY_JIFFIES);
		region->retried = NULL;
	} else if (block && region->retry_next == block->dirty_end) {
		list_del(&block->dirty_link);
		region->retried = NULL;
		done = block;
	}
	spin_unlock(&region->lock);
	if (done)
		flexmem_region_end_quarantine(region, done, true);
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

/**
 * flexmem_region_dirty_part - where an empty region may hold bytes of its owners
 * @region: region that was retired, so it is one free block
 * @start: receives the offset of the first such byte
 * @end: receives the offset behind the last one; @start if there is none
 *
 * Context: takes the region's lock.
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

/**
 * flexmem_region_begin_scrub - what to scrub next of the free blocks
 * @region: region that stays
 * @owner: whose blocks are worth it, besides those that were several owners';
 *	or FLEXMEM_MIXED
 * @seen: receives whose the first block is, if none is worth it
 *
 * A piece of the block that is watched already, or of a new one, is between
 * @scrub_start and @scrub_end then.
 *
 * Context: under data_lock until flexmem_region_end_scrub(). Takes the region's
 * lock.
 * Return: true if there is something.
 */
bool flexmem_region_begin_scrub(struct flexmem_region *region, u64 owner,
				u64 *seen)
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

/**
 * flexmem_region_end_scrub - a piece has been scrubbed, or not
 * @region: region
 * @rc: 0 if it has been
 *
 * Context: takes the region's lock.
 * Return: @rc; or -EAGAIN if the block is not the same any more, so that what
 * was done is lost.
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
	spin_unlock(&region->lock);
	return rc;
}
