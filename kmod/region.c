// SPDX-License-Identifier: GPL-2.0
/*
 * The region table.
 *
 * A region is acquired whole: memory from the device, a slot that makes it
 * addressable, and only then an entry in the table, where allocations find it.
 * It stays until it is trimmed while empty, or the device goes.
 *
 * A pool is locked, so that the firmware is not asked in vain, when its slots
 * are used up or when every size was tried and refused for want of capacity or
 * of a slot (A16, D4). A firmware that fails or does not answer never locks it.
 * Regions that go back, and new capacity, unlock it.
 *
 * A region outlives its place in the table: if the device goes while blocks of
 * it are in use, it is dead and waits for the last of them.
 */

#include <linux/device.h>
#include <linux/err.h>
#include <linux/slab.h>

#include "compat.h"
#include "region.h"

static struct kmem_cache *block_cache;

/**
 * flexmem_region_init_caches - once, when the module is loaded
 *
 * Return: 0 or -ENOMEM.
 */
int flexmem_region_init_caches(void)
{
	block_cache = kmem_cache_create("flexmem_block",
					sizeof(struct flexmem_block), 0,
					SLAB_ACCOUNT, NULL);
	return block_cache ? 0 : -ENOMEM;
}

/**
 * flexmem_region_exit_caches - once, when the module is unloaded
 */
void flexmem_region_exit_caches(void)
{
	/* Regions that were given back by kfree_rcu() hold no block. */
	kmem_cache_destroy(block_cache);
}

/**
 * flexmem_table_init - a table without regions
 * @table: to initialise
 * @dev: for messages, or NULL
 * @desc: the device; its operations are called until flexmem_table_remove()
 * @settings: how to manage it
 *
 * Context: may sleep; asks the firmware for its capacity.
 * Return: 0, -EINVAL if the settings do not suit the device (with a message),
 * or an error of the firmware.
 */
int flexmem_table_init(struct flexmem_table *table, struct device *dev,
		       const struct flexmem_device_desc *desc,
		       const struct flexmem_settings *settings)
{
	unsigned int i, nr = settings->max_regions, split;

	if (desc->mode == FLEXMEM_MODE_VF)
		nr = min(nr, desc->slots);
	if (settings->program_slots >= nr) {
		dev_err(dev, "program_slots=%u: must be less than the %u slots there are\n",
			settings->program_slots, nr);
		return -EINVAL;
	}
	for (i = 0; i < settings->nr_sizes; i++) {
		if (!IS_ALIGNED(settings->sizes[i], desc->granule)) {
			dev_err(dev, "fallback_sizes: %llu is not a multiple of the device's granule %llu\n",
				settings->sizes[i], desc->granule);
			return -EINVAL;
		}
	}

	memset(table, 0, sizeof(*table));
	table->dev = dev;
	table->mode = desc->mode;
	table->ops = desc->ops;
	table->priv = desc->priv;
	table->settings = *settings;
	table->granule = desc->granule;
	table->hw_slots = desc->mode == FLEXMEM_MODE_VF ? desc->slots : nr;
	table->full_reason = desc->mode == FLEXMEM_MODE_VF &&
			     desc->slots <= settings->max_regions ?
				FLEXMEM_REASON_SLOTS :
				FLEXMEM_REASON_MAX_REGIONS;
	INIT_LIST_HEAD(&table->stranded);
	mutex_init(&table->acquire_lock);
	mutex_init(&table->snapshot_lock);
	flexmem_slots_init(&table->slots, nr, desc->ops, desc->priv);

	split = nr - settings->program_slots;
	table->pool[FLEXMEM_POOL_TENSOR].end = split;
	table->pool[FLEXMEM_POOL_PROGRAM].first = split;
	table->pool[FLEXMEM_POOL_PROGRAM].end = nr;

	return desc->ops->capacity(desc->priv, &table->capacity);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_init);

/**
 * flexmem_table_pool - where a kind of memory comes from
 * @table: region table
 * @program: memory for a program
 *
 * Return: the pool.
 */
struct flexmem_pool *flexmem_table_pool(struct flexmem_table *table,
					bool program)
{
	if (program && table->settings.program_slots)
		return &table->pool[FLEXMEM_POOL_PROGRAM];
	return &table->pool[FLEXMEM_POOL_TENSOR];
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_pool);

static struct flexmem_region *region_at(struct flexmem_table *table,
					unsigned int slot)
{
	return rcu_dereference_protected(table->region[slot],
					 lockdep_is_held(&table->acquire_lock));
}

static void lock_pool(struct flexmem_table *table, struct flexmem_pool *pool,
		      enum flexmem_reason reason)
{
	lockdep_assert_held(&table->acquire_lock);
	WRITE_ONCE(pool->reason, reason);
	/* Who sees the lock sees its reason. */
	smp_store_release(&pool->locked, true);
	dev_dbg(table->dev, "regions locked, slots %u to %u, reason %d\n",
		pool->first, pool->end - 1, reason);
}

/* Why there can be no region more when the slots of a pool are used up. */
static enum flexmem_reason slots_reason(const struct flexmem_table *table,
					const struct flexmem_pool *pool)
{
	if (find_next_bit(table->slots.refused, pool->end, pool->first) <
	    pool->end)
		return FLEXMEM_REASON_SLOTS;
	return table->full_reason;
}

static void lock_if_full(struct flexmem_table *table, struct flexmem_pool *pool)
{
	if (flexmem_slots_find(&table->slots, pool) < 0)
		lock_pool(table, pool, slots_reason(table, pool));
}

/* Lets regions be acquired again, in the pools that have a slot for one. */
static void unlock_pools(struct flexmem_table *table)
{
	unsigned int i;

	lockdep_assert_held(&table->acquire_lock);
	bitmap_zero(table->slots.refused, FLEXMEM_MAX_SLOTS);
	for (i = 0; i < FLEXMEM_NR_POOLS; i++) {
		if (table->pool[i].first == table->pool[i].end)
			continue;
		WRITE_ONCE(table->pool[i].locked, false);
		lock_if_full(table, &table->pool[i]);
	}
}

/**
 * flexmem_table_lock - take acquire_lock, to call the device
 * @table: region table
 *
 * Context: may sleep.
 * Return: 0, -EINTR if the caller was killed, or -ENODEV if the device goes.
 */
int flexmem_table_lock(struct flexmem_table *table)
{
	if (mutex_lock_killable(&table->acquire_lock))
		return -EINTR;
	if (READ_ONCE(table->closing)) {
		mutex_unlock(&table->acquire_lock);
		return -ENODEV;
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_lock);

/* Frees a region that nothing refers to but, perhaps, readers under RCU. */
static void region_destroy(struct flexmem_region *region)
{
	struct flexmem_block *block, *next;

	list_for_each_entry_safe(block, next, &region->blocks.all, link) {
		WARN_ON_ONCE(!flexmem_block_is_free(block));
		kmem_cache_free(block_cache, block);
	}
	kfree_rcu(region, rcu);
}

static struct flexmem_region *region_create(enum flexmem_fit fit)
{
	struct flexmem_region *region;
	struct flexmem_block *first;

	region = kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region)
		return NULL;
	first = kmem_cache_alloc(block_cache, GFP_KERNEL);
	if (!first) {
		kfree(region);
		return NULL;
	}
	spin_lock_init(&region->lock);
	INIT_LIST_HEAD(&region->stranded);
	flexmem_blocks_init(&region->blocks, FLEXMEM_ALIGN, fit, first);
	return region;
}

/* Makes the region what the device gave: one free block of that size. */
static void region_set_memory(struct flexmem_region *region,
			      const struct flexmem_memory *mem,
			      enum flexmem_fit fit)
{
	struct flexmem_block *first;

	first = list_first_entry(&region->blocks.all, struct flexmem_block,
				 link);
	region->mem = *mem;
	flexmem_blocks_init(&region->blocks, mem->size, fit, first);
}

/*
 * Gives the memory of a region without a slot back. If the firmware fails, the
 * region is kept and tried again before the next one is acquired: memory that
 * we lost sight of would be lost for good.
 */
static int release_memory(struct flexmem_table *table,
			  struct flexmem_region *region)
{
	int rc;

	lockdep_assert_held(&table->acquire_lock);
	rc = table->ops->release(table->priv, &region->mem);
	if (rc) {
		dev_dbg(table->dev, "release of %llu bytes: error %d\n",
			region->mem.size, rc);
		list_move_tail(&region->stranded, &table->stranded);
		return rc;
	}
	list_del_init(&region->stranded);
	region_destroy(region);
	return 0;
}

static int release_stranded(struct flexmem_table *table)
{
	struct flexmem_region *region, *next;
	int rc;

	list_for_each_entry_safe(region, next, &table->stranded, stranded) {
		rc = release_memory(table, region);
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * Takes memory of the first size that the device gives. Sizes below @min_size
 * are skipped. If every size was tried and refused, the pool is locked.
 * Programs are small: for their own slots the sizes are tried from the last.
 */
static int acquire_memory(struct flexmem_table *table,
			  struct flexmem_pool *pool, u64 min_size,
			  struct flexmem_memory *mem)
{
	const struct flexmem_settings *settings = &table->settings;
	bool skipped = false, backwards;
	unsigned int i;
	int rc;

	backwards = pool == &table->pool[FLEXMEM_POOL_PROGRAM];
	for (i = 0; i < settings->nr_sizes; i++) {
		unsigned int level = backwards ? settings->nr_sizes - 1 - i : i;
		u64 size = settings->sizes[level];

		if (size < min_size) {
			skipped = true;
			continue;
		}
		rc = table->ops->acquire(table->priv, size, mem);
		dev_dbg(table->dev, "acquire %llu bytes (size %u of %u): %d\n",
			size, level + 1, settings->nr_sizes, rc);
		if (rc != -ENOSPC)
			return rc;
	}
	if (!skipped)
		lock_pool(table, pool, FLEXMEM_REASON_CAPACITY);
	return -ENOSPC;
}

/* Gives the region the lowest slot of the pool that the firmware lets it have. */
static int fill_slot(struct flexmem_table *table, struct flexmem_pool *pool,
		     struct flexmem_region *region)
{
	struct flexmem_segment_entry entry;
	int slot, rc;

	do {
		slot = flexmem_slots_find(&table->slots, pool);
		if (slot < 0) {
			lock_pool(table, pool, slots_reason(table, pool));
			return slot;
		}
		region->slot = slot;
		region->program =
			pool == &table->pool[FLEXMEM_POOL_PROGRAM];
		region->id = table->mode == FLEXMEM_MODE_PF ? region->mem.base :
							      slot;
		entry = (struct flexmem_segment_entry) {
			.slot = slot,
			.flags = region->program ? FLEXMEM_REGION_PROGRAM : 0,
			.region_id = region->id,
			.length = region->mem.size,
		};
		rc = flexmem_slots_fill(&table->slots, slot, &region->mem,
					&entry);
	} while (rc == -ENOSPC);
	return rc;
}

/**
 * flexmem_region_acquire - acquire a region
 * @table: region table
 * @pool: slots it may have
 * @min_size: bytes it must have at least
 *
 * The region has its slot, but is not in the table yet: the caller may take
 * what it needs before anybody else can, and then calls
 * flexmem_region_publish().
 *
 * Context: under acquire_lock. May sleep.
 * Return: the region; -ENOSPC if there can be none (more) of that size; -ENOMEM
 * if the kernel has no memory; or an error of the firmware.
 */
struct flexmem_region *flexmem_region_acquire(struct flexmem_table *table,
					      struct flexmem_pool *pool,
					      u64 min_size)
{
	enum flexmem_fit fit = table->settings.fit;
	struct flexmem_region *region;
	struct flexmem_memory mem;
	int rc;

	lockdep_assert_held(&table->acquire_lock);
	if (pool->locked)
		return ERR_PTR(-ENOSPC);
	rc = release_stranded(table);
	if (rc)
		return ERR_PTR(rc);

	region = region_create(fit);
	if (!region)
		return ERR_PTR(-ENOMEM);

	rc = acquire_memory(table, pool, min_size, &mem);
	if (rc)
		goto destroy;
	region_set_memory(region, &mem, fit);

	rc = fill_slot(table, pool, region);
	if (rc) {
		release_memory(table, region);
		return ERR_PTR(rc);
	}
	return region;

destroy:
	region_destroy(region);
	return ERR_PTR(rc);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_region_acquire);

/**
 * flexmem_region_publish - let allocations find a region
 * @table: region table
 * @region: as flexmem_region_acquire() returned it
 *
 * Context: under acquire_lock.
 */
void flexmem_region_publish(struct flexmem_table *table,
			    struct flexmem_region *region)
{
	lockdep_assert_held(&table->acquire_lock);
	rcu_assign_pointer(table->region[region->slot], region);
	lock_if_full(table, flexmem_table_pool(table, region->program));
	dev_dbg(table->dev, "region %#llx in slot %u, %llu bytes\n",
		region->id, region->slot, region->mem.size);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_region_publish);

static int prealloc_pool(struct flexmem_table *table, struct flexmem_pool *pool)
{
	struct flexmem_region *region;

	while (!pool->locked) {
		region = flexmem_region_acquire(table, pool, 0);
		if (!IS_ERR(region))
			flexmem_region_publish(table, region);
		else if (PTR_ERR(region) != -ENOSPC)
			return PTR_ERR(region);
	}
	return 0;
}

/**
 * flexmem_table_prealloc - acquire every region there can be
 * @table: region table
 *
 * Those for programs first: they are few and small, and tensors would leave no
 * capacity for them.
 *
 * Context: may sleep.
 * Return: 0, or an error of the firmware or -ENOMEM; what has been acquired
 * stays until flexmem_table_remove().
 */
int flexmem_table_prealloc(struct flexmem_table *table)
{
	int rc = 0;

	mutex_lock(&table->acquire_lock);
	if (table->settings.program_slots)
		rc = prealloc_pool(table, &table->pool[FLEXMEM_POOL_PROGRAM]);
	if (!rc)
		rc = prealloc_pool(table, &table->pool[FLEXMEM_POOL_TENSOR]);
	mutex_unlock(&table->acquire_lock);
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_prealloc);

/* Takes a region out of the table. Its allocations still count as made. */
static void unpublish(struct flexmem_table *table, struct flexmem_region *region)
{
	lockdep_assert_held(&table->acquire_lock);
	mutex_lock(&table->snapshot_lock);
	RCU_INIT_POINTER(table->region[region->slot], NULL);
	table->past_allocs += region->allocs;
	mutex_unlock(&table->snapshot_lock);
}

/* If nothing is allocated from the region, sees to it that nothing will be. */
static bool region_retire(struct flexmem_region *region)
{
	bool empty;

	spin_lock(&region->lock);
	empty = !region->blocks.nr_used;
	if (empty)
		region->dead = true;
	spin_unlock(&region->lock);
	return empty;
}

static void region_revive(struct flexmem_region *region)
{
	spin_lock(&region->lock);
	region->dead = false;
	spin_unlock(&region->lock);
}

/* Gives one empty region back; false if it is not empty, or there is none. */
static bool trim_region(struct flexmem_table *table, unsigned int slot, int *rc)
{
	struct flexmem_region *region = region_at(table, slot);

	if (!region || !region_retire(region))
		return false;
	*rc = flexmem_slots_clear(&table->slots, slot);
	if (*rc) {
		region_revive(region);
		return false;
	}
	unpublish(table, region);
	*rc = release_memory(table, region);
	return true;
}

/**
 * flexmem_table_trim - give empty regions back to the device
 * @table: region table
 * @regions: receives how many have been given back
 * @bytes: receives the bytes in them
 *
 * An allocation that finds nothing meanwhile waits for acquire_lock before it
 * fails, so a region that is only retired for the moment is not missed. Memory
 * that the firmware would not take back does not count: it is kept, and given
 * back before the next region is acquired or trimmed.
 *
 * Context: may sleep.
 * Return: 0, -EBUSY if there is a lease, -EINTR, -ENODEV, or an error of the
 * firmware; @regions and @bytes tell what has been done before it.
 */
int flexmem_table_trim(struct flexmem_table *table, unsigned int *regions,
		       u64 *bytes)
{
	bool emptied = false;
	unsigned int slot;
	int rc;

	*regions = 0;
	*bytes = 0;
	rc = flexmem_table_lock(table);
	if (rc)
		return rc;

	rc = flexmem_lease_count(&table->slots) ? -EBUSY :
						  release_stranded(table);
	for (slot = 0; !rc && slot < table->slots.nr; slot++) {
		u64 size = table->slots.entry[slot].length;

		if (!trim_region(table, slot, &rc))
			continue;
		emptied = true;
		if (!rc) {
			++*regions;
			*bytes += size;
		}
	}
	if (emptied)
		unlock_pools(table);
	mutex_unlock(&table->acquire_lock);
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_trim);

/*
 * Takes a region out of the table and gives its memory back, while blocks of it
 * may be in use: once it is dead, whoever frees the last of them destroys it.
 */
static int region_remove(struct flexmem_table *table,
			 struct flexmem_region *region, bool reachable)
{
	struct flexmem_memory mem = region->mem;
	unsigned int slot = region->slot;
	bool empty;
	int rc;

	/* First: a snapshot must not find it with its blocks destroyed. */
	mutex_lock(&table->snapshot_lock);
	RCU_INIT_POINTER(table->region[slot], NULL);
	mutex_unlock(&table->snapshot_lock);
	spin_lock(&region->lock);
	region->dead = true;
	empty = !region->blocks.nr_used;
	spin_unlock(&region->lock);
	if (empty)
		region_destroy(region);

	if (!reachable)
		return -ETIMEDOUT;
	rc = flexmem_slots_clear(&table->slots, slot);
	return rc ?: table->ops->release(table->priv, &mem);
}

/**
 * flexmem_table_remove - give everything back: the device goes
 * @table: region table; blocks of it may still be in use, and be freed later
 *
 * The firmware may be dead: it is not asked again once it has not answered. The
 * driver resets the function when we are done with it, so nothing is lost.
 *
 * Context: may sleep. The device's operations are not called after it returns.
 */
void flexmem_table_remove(struct flexmem_table *table)
{
	struct flexmem_region *region, *next;
	unsigned int slot;
	int rc;

	WRITE_ONCE(table->closing, true);
	mutex_lock(&table->acquire_lock);
	flexmem_lease_break_all(&table->slots);
	rc = release_stranded(table);
	for (slot = 0; slot < table->slots.nr; slot++) {
		region = region_at(table, slot);
		if (!region)
			continue;
		rc = region_remove(table, region, rc != -ETIMEDOUT);
		if (rc)
			dev_warn(table->dev,
				 "slot %u was not given back: error %d\n",
				 slot, rc);
	}
	list_for_each_entry_safe(region, next, &table->stranded, stranded) {
		list_del_init(&region->stranded);
		region_destroy(region);
	}
	/* Messages went by the function's device, which may go now. */
	table->dev = NULL;
	mutex_unlock(&table->acquire_lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_remove);

/**
 * flexmem_table_refresh - read the capacity anew, if it has changed
 * @table: region table
 *
 * Context: under acquire_lock. May sleep.
 * Return: 0, or an error of the firmware; then the old figure stands for now.
 */
int flexmem_table_refresh(struct flexmem_table *table)
{
	u64 capacity;
	int rc;

	lockdep_assert_held(&table->acquire_lock);
	if (!READ_ONCE(table->capacity_is_old))
		return 0;
	/* Before it is asked for: what changes after that is to be asked for. */
	WRITE_ONCE(table->capacity_is_old, false);
	rc = table->ops->capacity(table->priv, &capacity);
	if (rc) {
		WRITE_ONCE(table->capacity_is_old, true);
		return rc;
	}
	WRITE_ONCE(table->capacity, capacity);
	unlock_pools(table);
	return 0;
}

/**
 * flexmem_table_new_capacity - the device says that its capacity has changed
 * @table: region table
 *
 * If the firmware is at work already, or fails, the next allocation that needs
 * a region asks.
 *
 * Context: may sleep, for one operation at most.
 * Return: 0, or an error of the firmware.
 */
int flexmem_table_new_capacity(struct flexmem_table *table)
{
	int rc = 0;

	WRITE_ONCE(table->capacity_is_old, true);
	if (!mutex_trylock(&table->acquire_lock))
		return 0;
	if (!READ_ONCE(table->closing))
		rc = flexmem_table_refresh(table);
	mutex_unlock(&table->acquire_lock);
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_new_capacity);

/**
 * flexmem_table_max_region - the largest region there could be
 * @table: region table
 *
 * Return: bytes; more than that can never be allocated in one piece (D5).
 */
u64 flexmem_table_max_region(struct flexmem_table *table)
{
	u64 capacity = READ_ONCE(table->capacity), largest = 0;
	struct flexmem_region *region;
	unsigned int i;

	for (i = 0; i < table->settings.nr_sizes; i++)
		if (table->settings.sizes[i] <= capacity)
			largest = max(largest, table->settings.sizes[i]);

	/* Capacity may have shrunk since a region was acquired. */
	rcu_read_lock();
	for (i = 0; i < table->slots.nr; i++) {
		region = rcu_dereference(table->region[i]);
		if (region)
			largest = max(largest, region->mem.size);
	}
	rcu_read_unlock();
	return largest;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_max_region);

static void fill_entry(struct flexmem_region *region,
		       struct flexmem_region_entry *entry)
{
	lockdep_assert_held(&region->lock);
	*entry = (struct flexmem_region_entry) {
		.region_id = region->id,
		.slot = region->slot,
		.flags = region->program ? FLEXMEM_REGION_PROGRAM : 0,
		.total = region->blocks.total,
		.free = region->blocks.free,
		.largest_free = flexmem_blocks_largest(&region->blocks),
		.nr_allocated = region->blocks.nr_used,
		.nr_free = region->blocks.nr_free,
		.sequence = region->sequence,
	};
}

/* Sparse cannot count locks taken in a loop: to it these two are balanced. */
static void lock_for_snapshot(struct flexmem_table *table,
			      struct flexmem_region *region)
{
	spin_lock_nest_lock(&region->lock, &table->snapshot_lock);
	__release(&region->lock);
}

static void unlock_after_snapshot(struct flexmem_region *region)
{
	__acquire(&region->lock);
	spin_unlock(&region->lock);
}

/**
 * flexmem_table_snapshot - all regions as they are at one moment
 * @table: region table
 * @snapshot: receives them
 *
 * Context: may sleep until another snapshot is done; not for firmware.
 */
void flexmem_table_snapshot(struct flexmem_table *table,
			    struct flexmem_snapshot *snapshot)
{
	struct flexmem_region *region[FLEXMEM_MAX_SLOTS];
	unsigned int slot, nr = 0, i;

	/* Regions come and go from the table under this lock or locked below. */
	mutex_lock(&table->snapshot_lock);
	rcu_read_lock();
	for (slot = 0; slot < table->slots.nr; slot++) {
		region[nr] = rcu_dereference(table->region[slot]);
		if (!region[nr])
			continue;
		lock_for_snapshot(table, region[nr++]);
	}

	snapshot->nr = nr;
	snapshot->used_program = 0;
	snapshot->allocs = table->past_allocs;
	for (i = 0; i < nr; i++) {
		fill_entry(region[i], &snapshot->region[i]);
		snapshot->used_program += region[i]->used_program;
		snapshot->allocs += region[i]->allocs;
	}

	while (nr)
		unlock_after_snapshot(region[--nr]);
	rcu_read_unlock();
	mutex_unlock(&table->snapshot_lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_snapshot);

/**
 * flexmem_spare_fill - get nodes for an allocation, before any lock is taken
 * @spare: receives them; flexmem_spare_drop() frees what is left of them
 * @nr: how many, see flexmem_spares_for()
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM; then there is nothing to drop.
 */
int flexmem_spare_fill(struct flexmem_spare *spare, unsigned int nr)
{
	unsigned int i;

	*spare = (struct flexmem_spare) {};
	for (i = 0; i < nr; i++) {
		spare->block[i] = kmem_cache_alloc(block_cache, GFP_KERNEL);
		if (!spare->block[i]) {
			flexmem_spare_drop(spare);
			return -ENOMEM;
		}
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_spare_fill);

/**
 * flexmem_spare_drop - free the nodes that were not used
 * @spare: nodes, or none
 */
void flexmem_spare_drop(struct flexmem_spare *spare)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(spare->block); i++)
		if (spare->block[i])
			kmem_cache_free(block_cache, spare->block[i]);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_spare_drop);

/*
 * In debug builds every change is checked whole, as long as that is cheap, and
 * one in 64 of the changes of a region with many blocks.
 */
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

/**
 * flexmem_region_alloc - allocate a block of a region
 * @region: region
 * @size: bytes, a multiple of FLEXMEM_ALIGN, not 0
 * @alignment: of the offset; a power of two, at least FLEXMEM_ALIGN
 * @program: for a program
 * @owner: token of the owner, not NULL
 * @spare: nodes, see flexmem_spares_for()
 *
 * Context: takes the region's lock.
 * Return: the block, or NULL if none fits.
 */
struct flexmem_block *flexmem_region_alloc(struct flexmem_region *region,
					   u64 size, u64 alignment,
					   bool program, const void *owner,
					   struct flexmem_spare *spare)
{
	struct flexmem_block *block = NULL;

	spin_lock(&region->lock);
	if (!region->dead)
		block = flexmem_blocks_alloc(&region->blocks, size, alignment,
					     owner, spare);
	if (block) {
		region->sequence++;
		region->allocs++;
		if (program)
			region->used_program += size;
		debug_check(region);
	}
	spin_unlock(&region->lock);
	return block;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_region_alloc);

/**
 * flexmem_region_free - give a block back
 * @region: region
 * @block: occupied block of it
 * @program: as it was allocated
 *
 * Context: takes the region's lock. Neither @block nor @region may be used
 * after it.
 */
void flexmem_region_free(struct flexmem_region *region,
			 struct flexmem_block *block, bool program)
{
	struct flexmem_spare unused;
	bool last;

	spin_lock(&region->lock);
	if (program)
		region->used_program -= block->size;
	flexmem_blocks_free(&region->blocks, block, &unused);
	region->sequence++;
	debug_check(region);
	last = region->dead && !region->blocks.nr_used;
	spin_unlock(&region->lock);

	flexmem_spare_drop(&unused);
	if (last)
		region_destroy(region);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_region_free);

/* What invariant 5 says of one slot: it and the table agree. */
static const char *check_slot(struct flexmem_table *table, unsigned int slot)
{
	const struct flexmem_segment_entry *entry = &table->slots.entry[slot];
	struct flexmem_region *region = region_at(table, slot);
	const char *wrong;

	if (test_bit(slot, table->slots.filled) != !!region)
		return "slot filled without a region, or the other way round";
	if (!region)
		return NULL;
	if (region->slot != slot || entry->slot != slot ||
	    entry->region_id != region->id ||
	    entry->length != region->mem.size)
		return "slot and region do not agree";

	spin_lock(&region->lock);
	wrong = flexmem_blocks_check(&region->blocks);
	if (!wrong && region->blocks.total != region->mem.size)
		wrong = "blocks of another size than the region";
	spin_unlock(&region->lock);
	return wrong;
}

/**
 * flexmem_table_check - check every invariant
 * @table: region table
 *
 * Context: may sleep. For tests.
 * Return: NULL, or what is wrong.
 */
const char *flexmem_table_check(struct flexmem_table *table)
{
	const char *wrong = NULL;
	unsigned int slot;

	mutex_lock(&table->acquire_lock);
	for (slot = 0; !wrong && slot < table->slots.nr; slot++)
		wrong = check_slot(table, slot);
	mutex_unlock(&table->acquire_lock);
	return wrong;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_check);
