// SPDX-License-Identifier: GPL-2.0
/*
 * Placement: the two phases of an allocation (A31), a region and a block in it.
 *
 * The order is one row of a table: which of two regions comes first, and
 * whether a new region is acquired before the ones that are there are tried
 * (load_balance) or only after all of them have failed (fill_first).
 *
 * Where an allocation goes depends on the allocations before it and on nothing
 * else (D25): equal regions are ordered by slot, and background work has no say.
 */

#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/mutex.h>

#include "compat.h"
#include "placement.h"
#include "region.h"

/**
 * struct flexmem_order_ops - a region strategy
 * @name: as in the module parameter
 * @acquire_first: acquire a region before each allocation, as long as that is
 *	possible (A26)
 * @before: is a region with @free bytes free tried before one with @other
 */
struct flexmem_order_ops {
	const char *name;
	bool acquire_first;
	bool (*before)(u64 free, u64 other);
};

static bool most_free_first(u64 free, u64 other)
{
	return free > other;
}

static bool least_free_first(u64 free, u64 other)
{
	return free < other;
}

static const struct flexmem_order_ops orders[] = {
	[FLEXMEM_ORDER_LOAD_BALANCE] = {
		.name = "load_balance",
		.acquire_first = true,
		.before = most_free_first,
	},
	[FLEXMEM_ORDER_FILL_FIRST] = {
		.name = "fill_first",
		.before = least_free_first,
	},
};

/**
 * flexmem_order_name - name of a region strategy
 * @order: number of the strategy
 *
 * Return: the name, or NULL if there is no such strategy.
 */
const char *flexmem_order_name(unsigned int order)
{
	return order < ARRAY_SIZE(orders) ? orders[order].name : NULL;
}

/*
 * The first region, in the order of the strategy, with enough free bytes and
 * not yet in @tried. A scan of the few regions there are costs less than
 * keeping them sorted would with every allocation and free. What it reads
 * without the region's lock may be stale; the lock decides.
 */
static struct flexmem_region *next_region(struct flexmem_table *table,
					  const struct flexmem_pool *pool,
					  u64 size, u64 tried)
{
	const struct flexmem_order_ops *order = &orders[table->settings.order];
	struct flexmem_region *region, *first = NULL;
	u64 free, first_free = 0;
	unsigned int slot;

	for (slot = pool->first; slot < pool->end; slot++) {
		region = rcu_dereference(table->region[slot]);
		if (!region || tried & BIT_ULL(slot))
			continue;
		free = READ_ONCE(region->blocks.free);
		if (free < size)
			continue;
		if (!first || order->before(free, first_free)) {
			first = region;
			first_free = free;
		}
	}
	return first;
}

static bool place_in(struct flexmem_region *region,
		     const struct flexmem_request *request,
		     struct flexmem_spare *spare, struct flexmem_place *place)
{
	place->block = flexmem_region_alloc(region, request->size,
					    request->alignment,
					    request->program, request->owner,
					    spare);
	place->region = region;
	return place->block;
}

/* Tries the regions there are. */
static bool place_in_existing(struct flexmem_table *table,
			      const struct flexmem_pool *pool,
			      const struct flexmem_request *request,
			      struct flexmem_spare *spare,
			      struct flexmem_place *place)
{
	struct flexmem_region *region;
	bool placed = false;
	u64 tried = 0;

	static_assert(BITS_PER_TYPE(tried) >= FLEXMEM_MAX_SLOTS);

	/*
	 * Once it holds the block the region stays, also without RCU: a region
	 * with a block in use is not destroyed.
	 */
	rcu_read_lock();
	while (!placed) {
		region = next_region(table, pool, request->size, tried);
		if (!region)
			break;
		tried |= BIT_ULL(region->slot);
		placed = place_in(region, request, spare, place);
	}
	rcu_read_unlock();
	return placed;
}

/* Acquires a region and takes what is wanted before anyone else sees it. */
static int place_in_new(struct flexmem_table *table, struct flexmem_pool *pool,
			const struct flexmem_request *request,
			struct flexmem_spare *spare,
			struct flexmem_place *place)
{
	struct flexmem_region *region;
	int rc;

	rc = flexmem_table_refresh(table);
	if (rc)
		return rc;
	region = flexmem_region_acquire(table, pool, request->size);
	if (IS_ERR(region))
		return PTR_ERR(region);
	/* Cannot fail: one free block, no smaller than the request. */
	place_in(region, request, spare, place);
	flexmem_region_publish(table, region);
	return 0;
}

/*
 * Under acquire_lock: what is there may have changed while we waited for it, so
 * it is looked at once more.
 */
static int place_locked(struct flexmem_table *table, struct flexmem_pool *pool,
			const struct flexmem_request *request,
			struct flexmem_spare *spare,
			struct flexmem_place *place, bool acquire_first)
{
	int rc = -ENOSPC;

	lockdep_assert_held(&table->acquire_lock);
	if (acquire_first)
		rc = place_in_new(table, pool, request, spare, place);
	if (!rc)
		return 0;
	if (place_in_existing(table, pool, request, spare, place))
		return 0;
	if (!acquire_first)
		rc = place_in_new(table, pool, request, spare, place);
	return rc;
}

/**
 * flexmem_place_figures - what there is for an allocation that failed
 * @table: region table
 * @program: whether it was for a program
 * @place: receives the figures of the moment
 */
void flexmem_place_figures(struct flexmem_table *table, bool program,
			   struct flexmem_place *place)
{
	const struct flexmem_pool *pool = flexmem_table_pool(table, program);
	struct flexmem_region *region;
	unsigned int slot;

	place->total_free = 0;
	place->largest_free = 0;
	rcu_read_lock();
	for (slot = pool->first; slot < pool->end; slot++) {
		region = rcu_dereference(table->region[slot]);
		if (!region)
			continue;
		spin_lock(&region->lock);
		if (!region->dead) {
			place->total_free += region->blocks.free;
			place->largest_free =
				max(place->largest_free,
				    flexmem_blocks_largest(&region->blocks));
		}
		spin_unlock(&region->lock);
	}
	rcu_read_unlock();
	place->max_region = flexmem_table_max_region(table);
}

/* Says which limit stopped a request. */
static int explain(struct flexmem_table *table,
		   const struct flexmem_pool *pool,
		   const struct flexmem_request *request,
		   struct flexmem_place *place)
{
	flexmem_place_figures(table, request->program, place);
	if (request->size > place->max_region)
		place->reason = FLEXMEM_REASON_REGION_SIZE;
	else if (request->size <= place->total_free)
		place->reason = FLEXMEM_REASON_FRAGMENTATION;
	/* Pairs with lock_pool(): who sees the lock sees its reason. */
	else if (smp_load_acquire(&pool->locked))
		place->reason = READ_ONCE(pool->reason);
	else
		place->reason = FLEXMEM_REASON_CAPACITY;
	return -ENOMEM;
}

/**
 * flexmem_place - find room for an allocation
 * @table: region table
 * @request: what is wanted
 * @spare: nodes, see flexmem_spares_for()
 * @place: receives where it is; on -ENOMEM, why there is none
 *
 * Context: may sleep, if a region may have to be acquired.
 * Return: 0; -ENOMEM, with the reason in @place; -EINTR if the caller was
 * killed meanwhile; -ENODEV if the device goes; or an error of the firmware.
 */
int flexmem_place(struct flexmem_table *table,
		  const struct flexmem_request *request,
		  struct flexmem_spare *spare, struct flexmem_place *place)
{
	struct flexmem_pool *pool = flexmem_table_pool(table, request->program);
	bool acquire_first, unsure;
	int rc;

	*place = (struct flexmem_place) {};
	unsure = READ_ONCE(table->capacity_is_old);
	acquire_first = orders[table->settings.order].acquire_first &&
			table->settings.acquire == FLEXMEM_ACQUIRE_LAZY &&
			(unsure || !READ_ONCE(pool->locked));

	if (request->size > flexmem_table_max_region(table) && !unsure)
		return explain(table, pool, request, place);
	if (!acquire_first &&
	    place_in_existing(table, pool, request, spare, place))
		return 0;

	rc = flexmem_table_lock(table);
	if (rc)
		return rc;
	rc = place_locked(table, pool, request, spare, place, acquire_first);
	mutex_unlock(&table->acquire_lock);

	return rc == -ENOSPC ? explain(table, pool, request, place) : rc;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_place);
