// SPDX-License-Identifier: GPL-2.0
/*
 * Regions, each under its own lock: allocate and charge blocks, orphan and free
 * them. Nothing here sleeps under a lock or acquires a region. No bytes are charged
 * in a dead region, because their charges are dropped when it dies.
 */

#include <linux/jiffies.h>
#include <linux/slab.h>

#include "alloc/request.h"
#include "block/spare.h"
#include "region/region.h"
#include "region/scrub.h"
#include "region/table.h"

/* Delay before the scrub of a block in quarantine is retried. */
#define RETRY_JIFFIES (30 * HZ)

static u64 program_bytes(const struct flexmem_block *block)
{
	return block->program ? block->size : 0;
}

/*
 * Whether a block that is being freed may hold bytes that no open file can use:
 * those of its file, which is closed, or those of another file, for which the
 * block was not scrubbed. Does not ask whether that other file is open. If a
 * file is closed later, flexmem_client_fini() queues the scrub.
 */
static bool is_left(const struct flexmem_block *block)
{
	const struct flexmem_account *account = block->account;
	u64 bytes_of = block->residue.bytes_of;

	return bytes_of != FLEXMEM_CLEAN &&
	       (bytes_of != account->id || !READ_ONCE(account->is_open));
}

/* Frees a region that only readers under RCU may still use. */
void flexmem_region_destroy(struct flexmem_region *region)
{
	struct flexmem_block *block, *next;

	if (!region)
		return;
	list_for_each_entry_safe(block, next, &region->blocks.all, link) {
		WARN_ON_ONCE(!flexmem_block_is_free(block));
		flexmem_stock_give(NULL, FLEXMEM_OBJECT_BLOCK, block);
	}
	kfree_rcu(region, rcu);
}

/* Makes a region without memory. May sleep. Return: the region, or NULL. */
struct flexmem_region *flexmem_region_create(struct flexmem_table *table)
{
	struct flexmem_region *region;
	struct flexmem_block *first;

	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return NULL;
	first = flexmem_stock_take(NULL, FLEXMEM_OBJECT_BLOCK);
	if (!first) {
		kfree(region);
		return NULL;
	}
	spin_lock_init(&region->lock);
	region->table = table;
	region->idle_since = jiffies;
	INIT_LIST_HEAD(&region->quarantine);
	flexmem_blocks_init(&region->blocks, FLEXMEM_ALIGN,
			    table->settings.fit, first);
	return region;
}

void flexmem_region_set_memory(struct flexmem_region *region,
			       const struct flexmem_memory *mem)
{
	struct flexmem_block *first =
		list_first_entry(&region->blocks.all, struct flexmem_block, link);

	region->mem = *mem;
	flexmem_blocks_init(&region->blocks, mem->size,
			    region->table->settings.fit, first);
}

/* Debug builds check all blocks after every change, or after one in 64. */
#ifdef FLEXMEM_DEBUG
static void debug_check(struct flexmem_region *region)
{
	const char *wrong;

	if (region->blocks.nr_used > 64 && region->sequence % 64)
		return;
	wrong = flexmem_blocks_check(&region->blocks);
	WARN_ONCE(wrong, "slot %u: %s\n", region->slot, wrong);
}
#else
static void debug_check(struct flexmem_region *region)
{
}
#endif

/*
 * Counts an occupied block under a new use. Only free_block() makes it free.
 * @handles: 1 if the charge of a handle ends, too.
 */
static void set_use(struct flexmem_region *region, struct flexmem_block *block,
		    enum flexmem_use use, unsigned int handles)
{
	lockdep_assert_held(&region->lock);
	if (!region->dead)
		flexmem_account_move(&region->table->accounts, block->account,
				     region->slot, block->size, block->use,
				     use, handles);
	else if (handles)
		flexmem_uncharge(block->account, 0, handles);
	if (!flexmem_use_is_charged(use))
		region->used_program -= program_bytes(block);
	if (block->use == FLEXMEM_USE_QUARANTINED)
		WRITE_ONCE(region->nr_quarantined, region->nr_quarantined - 1);
	if (use == FLEXMEM_USE_QUARANTINED) {
		WRITE_ONCE(region->nr_quarantined, region->nr_quarantined + 1);
		block->program = false;
		block->account = NULL;
	}
	block->use = use;
}

static void set_user(struct flexmem_region *region, struct flexmem_block *block,
		     struct flexmem_account *account, bool program)
{
	block->region = region;
	block->account = account;
	block->program = program;
	region->used_program += program_bytes(block);
	region->sequence++;
	debug_check(region);
}

/*
 * Allocates a block for the chunk that a request places. The charge of the bytes
 * belongs to the block from then on.
 * @request: receives the block; or the reason if a limit or a reservation
 * forbids a block that would fit.
 * Context: takes the region's lock. Return: true if there is a block.
 */
bool flexmem_region_alloc(struct flexmem_region *region,
			  struct flexmem_request *request)
{
	struct flexmem_account *account = request->account;
	struct flexmem_found found = { .tries = request->tries };
	enum flexmem_reason reason;
	bool placed = false;

	spin_lock(&region->lock);
	if (region->dead)
		goto unlock;
	/* A request that does not fit is never charged. */
	if (!flexmem_blocks_find(&region->blocks, request->part,
				 request->alignment,
				 flexmem_request_is_growable(request), &found)) {
		request->gave_up |= found.gave_up;
		request->tries = found.tries;
		goto unlock;
	}
	reason = flexmem_region_is_closed(region, account) ?
			FLEXMEM_REASON_RESERVED :
			flexmem_account_take(account, region->slot,
					     request->part, &request->refused);
	if (reason) {
		request->reason = reason;
		goto unlock;
	}
	request->block = flexmem_blocks_take(&region->blocks, &found,
					     request->part, &request->spare);
	request->unplaced -= request->part;
	set_user(region, request->block, account,
		 request->flags & FLEXMEM_ALLOC_PROGRAM);
	region->allocs++;
	placed = true;
unlock:
	spin_unlock(&region->lock);
	flexmem_pressure_tell(&region->table->accounts);
	return placed;
}

static void quarantine(struct flexmem_region *region,
		       struct flexmem_block *block)
{
	list_add_tail(&block->residue.link, &region->quarantine);
	WRITE_ONCE(region->retry_at, jiffies + RETRY_JIFFIES);
}

/*
 * Allocates bytes directly behind a block.
 * @block: occupied; the caller ensures that no other task extends or frees it.
 * @size: bytes to add, a multiple of FLEXMEM_ALIGN, not 0; charged. @spare: at
 * least one node. @tail: receives the new block, or NULL if fewer than @size
 * bytes are free behind @block.
 * Context: takes the region's lock. Return: the number of free bytes directly
 * behind the block before the call.
 */
u64 flexmem_region_extend(struct flexmem_block *block, u64 size,
			  struct flexmem_spare *spare,
			  struct flexmem_block **tail)
{
	struct flexmem_region *region = block->region;
	struct flexmem_found found = {};
	u64 room = 0;

	*tail = NULL;
	spin_lock(&region->lock);
	if (!region->dead)
		room = flexmem_blocks_room(&region->blocks, block);
	if (size > room)
		goto unlock;
	/* The account has a block here, so no limit of regions is checked. */
	flexmem_account_take(block->account, region->slot, size, NULL);
	found.block = list_next_entry(block, link);
	found.start = flexmem_block_end(block);
	*tail = flexmem_blocks_take(&region->blocks, &found, size, spare);
	set_user(region, *tail, block->account, block->program);
unlock:
	spin_unlock(&region->lock);
	flexmem_pressure_tell(&region->table->accounts);
	return room;
}

/* Gives @block the bytes of @tail. Takes the region's lock. */
void flexmem_region_join(struct flexmem_block *block,
			 struct flexmem_block *tail)
{
	struct flexmem_region *region = block->region;
	struct flexmem_spare unused = { .block = { tail } };

	spin_lock(&region->lock);
	flexmem_blocks_join(&region->blocks, block, tail);
	region->sequence++;
	debug_check(region);
	spin_unlock(&region->lock);
	flexmem_spare_drop(&unused, NULL);
}

/* Marks a block as freed but still in use. Takes the region's lock. */
void flexmem_region_orphan(struct flexmem_block *block)
{
	spin_lock(&block->region->lock);
	set_use(block->region, block, FLEXMEM_USE_ORPHANED, 0);
	spin_unlock(&block->region->lock);
}

/*
 * Uncharges a block, and makes it free.
 * @unused: receives nodes, for flexmem_spare_drop() without the lock.
 * Context: under the region's lock. The caller calls flexmem_pressure_tell_free()
 * without it. Return: true if @block was the last block
 * of a dead region. Then the caller drops the lock and destroys the region.
 */
static bool free_block(struct flexmem_region *region,
		       struct flexmem_block *block, unsigned int handles,
		       struct flexmem_spare *unused)
{
	set_use(region, block, FLEXMEM_USE_FREE, handles);
	flexmem_blocks_free(&region->blocks, block, unused);
	flexmem_accounts_count_free(&region->table->accounts);
	region->sequence++;
	debug_check(region);
	if (!region->dead && flexmem_residues_have_mixed(&region->blocks.residues))
		flexmem_scrub_soon(region->table);
	return region->dead && !region->blocks.nr_used;
}

/*
 * Frees a block. @handles: 1 if this ends the charge of its allocation's handle;
 * otherwise 0. @stock: receives nodes that are left over; NULL: the nodes are freed.
 * Takes the region's lock. The caller must not use @block afterwards, nor its
 * region.
 */
void flexmem_region_free(struct flexmem_block *block, unsigned int handles,
			 struct flexmem_stock *stock)
{
	struct flexmem_region *region = block->region;
	struct flexmem_accounts *accounts = &region->table->accounts;
	struct flexmem_spare unused;
	bool last;

	spin_lock(&region->lock);
	if (!region->dead && is_left(block))
		flexmem_scrub_soon(region->table);
	last = free_block(region, block, handles, &unused);
	spin_unlock(&region->lock);

	flexmem_pressure_tell_free(accounts);
	flexmem_spare_drop(&unused, stock);
	if (last)
		flexmem_region_destroy(region);
}

/*
 * Frees the end of a block; arguments as those of flexmem_region_extend().
 * @size: bytes that @block keeps, less than it has. Takes the region's lock.
 */
void flexmem_region_shrink(struct flexmem_block *block, u64 size,
			   struct flexmem_spare *spare)
{
	struct flexmem_region *region = block->region;
	struct flexmem_spare unused;
	struct flexmem_block *tail;

	spin_lock(&region->lock);
	tail = flexmem_blocks_split(&region->blocks, block, size, spare);
	/* The region stays, because @block stays in it. */
	free_block(region, tail, 0, &unused);
	spin_unlock(&region->lock);
	flexmem_pressure_tell_free(&region->table->accounts);
	flexmem_spare_drop(&unused, NULL);
}

/*
 * Puts a new block into quarantine after a failed scrub, until a retry succeeds.
 * If the region is dead, the block is freed instead.
 * Context: takes the region's lock. The caller must not use @block afterwards,
 * nor its region.
 */
void flexmem_region_quarantine(struct flexmem_block *block)
{
	struct flexmem_region *region = block->region;
	bool dead;

	spin_lock(&region->lock);
	dead = region->dead;
	if (!dead) {
		set_use(region, block, FLEXMEM_USE_QUARANTINED, 0);
		quarantine(region, block);
		flexmem_scrub_soon(region->table);
	}
	spin_unlock(&region->lock);
	if (dead)
		flexmem_region_free(block, 0, NULL);
}

/*
 * Takes a block out of quarantine for a retry. The block keeps the region from
 * now on. Context: takes the region's lock. Return: the block, for
 * flexmem_region_end_quarantine(); NULL if there is none.
 */
struct flexmem_block *
flexmem_region_take_quarantined(struct flexmem_region *region)
{
	struct flexmem_block *block;

	spin_lock(&region->lock);
	block = list_first_entry_or_null(&region->quarantine,
					 struct flexmem_block, residue.link);
	if (block)
		list_del(&block->residue.link);
	spin_unlock(&region->lock);
	return block;
}

/*
 * Ends a retry: frees @block if it was scrubbed or its region is dead. Takes the
 * region's lock. The caller must not use @block afterwards, nor a dead region.
 */
void flexmem_region_end_quarantine(struct flexmem_block *block, bool scrubbed)
{
	struct flexmem_region *region = block->region;
	bool ends;

	spin_lock(&region->lock);
	ends = scrubbed || region->dead;
	if (ends)
		block->residue.bytes_of = FLEXMEM_CLEAN;
	else
		quarantine(region, block);
	spin_unlock(&region->lock);
	if (ends)
		flexmem_region_free(block, 0, NULL);
}

/*
 * Finds the part of an empty, retired region that needs a scrub, from the first
 * to the last byte that was written; empty if none. Takes the region's lock.
 */
void flexmem_region_dirty_part(struct flexmem_region *region, u64 *start,
			       u64 *end)
{
	const struct flexmem_residue *residue;

	spin_lock(&region->lock);
	residue = flexmem_residues_first(&region->blocks.residues);
	*start = residue ? residue->start : 0;
	*end = residue ? residue->end : 0;
	spin_unlock(&region->lock);
}

static bool is_unused(const struct flexmem_region *region)
{
	return !region->blocks.nr_used && !region->reserved_for;
}

/*
 * Sets an empty region aside for a cgroup, which is charged for it.
 * Context: under acquire_lock; takes the region's lock. Return: 0, also if the
 * region was reserved for this cgroup before; -EBUSY if a block of the region
 * is occupied, or another cgroup has reserved the region; -EDQUOT if a limit of
 * regions forbids the reservation.
 */
int flexmem_region_reserve(struct flexmem_region *region,
			   struct flexmem_account *cgroup)
{
	int rc = 0;

	spin_lock(&region->lock);
	if (region->reserved_for == cgroup)
		goto unlock;
	if (!is_unused(region))
		rc = -EBUSY;
	else if (!flexmem_charge_region(cgroup, region->slot))
		rc = -EDQUOT;
	else
		WRITE_ONCE(region->reserved_for, cgroup);
unlock:
	spin_unlock(&region->lock);
	return rc;
}

/* Under acquire_lock and the region's lock. */
void flexmem_region_unreserve(struct flexmem_region *region)
{
	lockdep_assert_held(&region->lock);
	if (!region->reserved_for)
		return;
	flexmem_uncharge_region(region->reserved_for, region->slot);
	WRITE_ONCE(region->reserved_for, NULL);
}

/*
 * Stops allocation from an empty region. Takes the region's lock. False: a block
 * is occupied or the region is reserved.
 */
bool flexmem_region_retire(struct flexmem_region *region)
{
	bool empty;

	spin_lock(&region->lock);
	empty = is_unused(region);
	if (empty)
		region->dead = true;
	spin_unlock(&region->lock);
	return empty;
}

/*
 * Whether a region has been empty for at least @for_jiffies, counted from the
 * call that first found it so: allocations and frees need not note the time, but
 * the caller must ask often. @empty: receives whether the region is empty now,
 * and not reserved. Takes the region's lock.
 */
bool flexmem_region_is_idle(struct flexmem_region *region,
			    unsigned long for_jiffies, bool *empty)
{
	bool idle;

	spin_lock(&region->lock);
	*empty = is_unused(region);
	idle = *empty && region->idle_sequence == region->sequence;
	if (!idle) {
		region->idle_sequence = region->sequence;
		region->idle_since = jiffies;
	}
	idle = idle && time_after_eq(jiffies, region->idle_since + for_jiffies);
	spin_unlock(&region->lock);
	return idle;
}

/* Allows allocation from a retired region again. Takes the region's lock. */
void flexmem_region_revive(struct flexmem_region *region)
{
	spin_lock(&region->lock);
	region->dead = false;
	spin_unlock(&region->lock);
}

/*
 * Size of the largest free block of a region, which the caller's reference or
 * lock keeps. Takes the region's lock.
 */
u64 flexmem_region_room(struct flexmem_region *region)
{
	u64 room;

	spin_lock(&region->lock);
	room = region->dead ? 0 : flexmem_blocks_largest(&region->blocks);
	spin_unlock(&region->lock);
	return room;
}

/*
 * Adds a region to sums. @closed: it is reserved for others. Under the region's
 * lock. The region is not dead, or no other task destroys it.
 */
void flexmem_region_add_to(const struct flexmem_region *region, bool closed,
			   struct flexmem_sum *sum)
{
	u64 largest = flexmem_blocks_largest(&region->blocks);

	lockdep_assert_held(&region->lock);
	sum->regions++;
	sum->total += region->blocks.total;
	if (closed) {
		sum->closed_total += region->blocks.total;
		sum->closed_free += region->blocks.free;
		sum->closed_largest = max(sum->closed_largest, largest);
	} else {
		sum->free += region->blocks.free;
		sum->largest = max(sum->largest, largest);
	}
}

void flexmem_region_describe(const struct flexmem_region *region,
			     struct flexmem_region_entry *entry)
{
	lockdep_assert_held(&region->lock);
	*entry = (struct flexmem_region_entry) {
		.region_id = region->id,
		.slot = region->slot,
		.flags = region->kind == FLEXMEM_KIND_PROGRAM ?
			FLEXMEM_REGION_PROGRAM : 0,
		.total = region->blocks.total,
		.free = region->blocks.free,
		.largest_free = flexmem_blocks_largest(&region->blocks),
		.nr_allocated = region->blocks.nr_used - region->nr_quarantined,
		.nr_free = region->blocks.nr_free,
		.sequence = region->sequence,
		.domain = region->mem.domain,
	};
}
