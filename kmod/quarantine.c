// SPDX-License-Identifier: GPL-2.0
/*
 * Quarantine: blocks that could not be scrubbed are nobody's, and are given to
 * nobody, until they have been.
 */

#include <linux/jiffies.h>
#include <linux/minmax.h>

#include "compat.h"
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
