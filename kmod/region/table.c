// SPDX-License-Identifier: GPL-2.0
/*
 * The region table.
 *
 * A region is acquired in this order: memory from the device, a slot that makes
 * it addressable, an entry in the table. Allocations find the region only after
 * the last step. The region stays in the table until it is empty and released,
 * or until the device is reset or removed.
 *
 * Two kinds of command are not sent, because the firmware would certainly
 * refuse them: for a slot when all slots of a kind are used up or refused, and
 * for at least as many bytes as the firmware last refused for lack of capacity.
 * (The RFC calls this state locked.) A failure or a missing answer does not
 * count. When memory is released, or the device announces new capacity, the
 * driver tries slots and sizes again.
 *
 * A region is scrubbed before a slot makes it addressable, because the memory
 * may have belonged to another PF or VF. Through the slot a device program can
 * read the whole region without the driver.
 *
 * A region outlives its entry in the table. If the device is removed or reset
 * while blocks of it are in use, the region is dead: it has no memory, and
 * exists only until the last of these blocks is freed.
 */

#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/nospec.h>

#include "region/scrub.h"
#include "region/table.h"
#include "trace.h"

static unsigned int empty_slots(const struct flexmem_table *table)
{
	DECLARE_BITMAP(taken, FLEXMEM_MAX_SLOTS);
	unsigned int nr = table->range[FLEXMEM_KIND_TENSOR].end;

	bitmap_or(taken, table->slots.filled, table->slots.refused, nr);
	return nr - bitmap_weight(taken, nr);
}

/*
 * Recomputes how much memory the function can have, to which pressure is
 * relative, and what is left for a region that takes the rest. Memory that the
 * firmware has not taken back yet is neither.
 * Context: under acquire_lock, or before the table is visible to others.
 */
void flexmem_table_update_memory(struct flexmem_table *table)
{
	struct flexmem_function *function = &table->function;
	struct flexmem_accounts *accounts = &table->accounts;
	/* The memory that a wedged function holds cannot be used. */
	bool wedged = flexmem_function_fatal(function);
	unsigned int slots = empty_slots(table);
	struct flexmem_domain *domain;
	u64 memory = 0, held;

	if (table->range[FLEXMEM_KIND_TENSOR].no_slot)
		slots = 0;
	flexmem_for_each_domain(domain, table, flexmem_table_all(table)) {
		held = wedged ? 0 : flexmem_function_held_in(function,
							     domain->id, false);
		memory += flexmem_domain_memory(domain, held, &slots);
		if (!wedged)
			memory -= flexmem_function_held_in(function,
							   domain->id, true);
	}
	spin_lock(&accounts->lock);
	accounts->gauge.memory = memory;
	flexmem_gauge_settle(&accounts->gauge, flexmem_accounts_in_use(accounts));
	spin_unlock(&accounts->lock);
	flexmem_pressure_tell(accounts);
}

/* Notes whether a kind of memory has an empty slot, and if not, why. */
static void update_no_slot(struct flexmem_table *table, enum flexmem_kind kind)
{
	struct flexmem_slot_range *range = &table->range[kind];
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;

	lockdep_assert_held(&table->acquire_lock);
	if (flexmem_slots_find(&table->slots, range) < 0)
		reason = find_next_bit(table->slots.refused, range->end,
				       range->first) < range->end ?
			FLEXMEM_REASON_SLOTS : table->full_reason;
	WRITE_ONCE(range->no_slot, reason);
}

/* Forgets which slots and sizes the firmware has refused. Under acquire_lock. */
void flexmem_table_reopen(struct flexmem_table *table)
{
	struct flexmem_domain *domain;
	enum flexmem_kind kind;

	lockdep_assert_held(&table->acquire_lock);
	bitmap_zero(table->slots.refused, FLEXMEM_MAX_SLOTS);
	for (kind = 0; kind < FLEXMEM_NR_KINDS; kind++) {
		if (table->range[kind].first == table->range[kind].end)
			continue;
		update_no_slot(table, kind);
	}
	flexmem_for_each_domain(domain, table, flexmem_table_all(table))
		WRITE_ONCE(domain->too_large, U64_MAX);
	flexmem_table_update_memory(table);
	flexmem_accounts_freed(&table->accounts);
}

/* As flexmem_function_retry(). Under acquire_lock. May sleep. */
int flexmem_table_retry(struct flexmem_table *table, bool all)
{
	unsigned int before = table->function.nr_pieces;
	int rc;

	lockdep_assert_held(&table->acquire_lock);
	rc = flexmem_function_retry(&table->function, all);
	/* The device has memory back, so it may grant a region again. */
	if (table->function.nr_pieces < before)
		flexmem_table_reopen(table);
	return rc;
}

/*
 * Why the device cannot give another region of these domains of at least
 * @min_size bytes, or FLEXMEM_REASON_NONE.
 */
enum flexmem_reason
flexmem_table_exhausted(const struct flexmem_table *table,
			enum flexmem_kind kind, u64 domains, u64 min_size)
{
	enum flexmem_reason no_slot = READ_ONCE(table->range[kind].no_slot);
	const struct flexmem_domain *domain;

	if (no_slot)
		return no_slot;
	flexmem_for_each_domain(domain, table, domains)
		if (!flexmem_domain_is_exhausted(domain, min_size))
			return FLEXMEM_REASON_NONE;
	return FLEXMEM_REASON_CAPACITY;
}

/*
 * Acquires memory of the first size, from @min_size to @max_size, that the domain
 * grants and has not refused before; the rest of its capacity comes last.
 */
static int acquire_from(struct flexmem_table *table,
			struct flexmem_domain *domain, enum flexmem_kind kind,
			u64 min_size, u64 max_size, struct flexmem_memory *mem)
{
	int rc = -ENOSPC;
	unsigned int i;

	for (i = 0; i <= domain->nr_sizes; i++) {
		/* Programs are small, so the order is reversed for them. */
		unsigned int at = kind == FLEXMEM_KIND_PROGRAM ?
			domain->nr_sizes - 1 - i : i;
		u64 size = i < domain->nr_sizes ? domain->sizes[at] :
			   flexmem_domain_rest(domain);

		if (!size || size < min_size || size > max_size ||
		    size >= domain->too_large)
			continue;
		rc = flexmem_function_error(&table->function);
		if (rc)
			break;
		rc = flexmem_function_acquire(&table->function, domain->id,
					      size, mem);
		if (rc != -ENOSPC)
			break;
		WRITE_ONCE(domain->too_large, size);
	}
	return rc;
}

static int acquire_memory(struct flexmem_table *table,
			  enum flexmem_kind kind, u64 domains, u64 min_size,
			  u64 max_size, struct flexmem_memory *mem)
{
	struct flexmem_domain *domain;
	int rc = -ENOSPC;

	flexmem_for_each_domain(domain, table, domains) {
		rc = acquire_from(table, domain, kind, min_size, max_size, mem);
		if (rc != -ENOSPC)
			break;
	}
	if (rc)
		flexmem_table_update_memory(table);
	return rc;
}

/* Gives the region the lowest slot of its kind that the firmware permits. */
static int fill_slot(struct flexmem_table *table, enum flexmem_kind kind,
		     struct flexmem_region *region)
{
	struct flexmem_segment_entry entry;
	int slot, rc;

	do {
		rc = flexmem_function_error(&table->function);
		if (rc)
			return rc;
		slot = flexmem_slots_find(&table->slots, &table->range[kind]);
		if (slot < 0) {
			update_no_slot(table, kind);
			return slot;
		}
		region->slot = slot;
		region->kind = kind;
		region->id = table->function.mode == FLEXMEM_MODE_PF ?
				region->mem.base : slot;
		entry = (struct flexmem_segment_entry) {
			.slot = slot,
			.flags = kind == FLEXMEM_KIND_PROGRAM ?
				FLEXMEM_REGION_PROGRAM : 0,
			.region_id = region->id,
			.length = region->mem.size,
		};
		rc = flexmem_slots_fill(&table->slots, slot, &region->mem,
					&entry);
	} while (rc == -ENOSPC);
	return rc;
}

/*
 * Acquires a region with a slot. The caller can allocate from it before other
 * tasks find it, and then calls flexmem_region_publish().
 * @kind: there must be slots for it. @domains: bit mask of the domains to ask,
 * lowest id first. @min_size, @max_size: bounds of the region's size in bytes.
 * @fresh: from flexmem_region_create(); NULL after success.
 * Context: under acquire_lock. May sleep. Return: the region; -ENOSPC if no
 * region of that size can be acquired; an error of the firmware; or an error of
 * flexmem_function_error(): then nothing was acquired.
 */
struct flexmem_region *flexmem_region_acquire(struct flexmem_table *table,
					      enum flexmem_kind kind,
					      u64 domains, u64 min_size,
					      u64 max_size,
					      struct flexmem_region **fresh)
{
	struct flexmem_region *region = *fresh;
	struct flexmem_memory mem;
	u64 clean = 0;
	int rc;

	lockdep_assert_held(&table->acquire_lock);
	rc = flexmem_table_retry(table, false);
	if (rc == -ETIMEDOUT || rc == -EINTR || rc == -ENODEV)
		return ERR_PTR(rc);
	if (flexmem_table_exhausted(table, kind, domains, min_size))
		return ERR_PTR(-ENOSPC);

	rc = acquire_memory(table, kind, domains, min_size, max_size, &mem);
	if (rc)
		return ERR_PTR(rc);
	flexmem_region_set_memory(region, &mem);
	region->domain = &table->domain[mem.domain];

	rc = flexmem_function_clear(&table->function, &mem, &clean, mem.size);
	if (!rc)
		rc = fill_slot(table, kind, region);
	if (rc) {
		flexmem_function_release(&table->function, &mem);
		flexmem_table_update_memory(table);
		return ERR_PTR(rc);
	}
	region->serial = ++table->last_serial;
	flexmem_table_update_memory(table);
	*fresh = NULL;
	return region;
}

/*
 * Lets allocations find an acquired region. Under acquire_lock, and under
 * snapshot_lock, so that a snapshot that shows charges also lists the region.
 */
void flexmem_region_publish(struct flexmem_table *table,
			    struct flexmem_region *region)
{
	u64 *filled = &region->domain->filled[region->kind];

	lockdep_assert_held(&table->acquire_lock);
	lockdep_assert_held(&table->snapshot_lock);
	rcu_assign_pointer(table->region[region->slot], region);
	WRITE_ONCE(*filled, *filled | BIT_ULL(region->slot));
	update_no_slot(table, region->kind);
	flexmem_accounts_freed(&table->accounts);
	trace_flexmem_region_add(region);
}

/*
 * Acquires an empty region. @kind, @domains: as flexmem_region_acquire().
 * @size: of the region in bytes; 0: the first that the device grants. @cgroup: to
 * reserve the region for, or NULL. @slot: receives its slot; or NULL.
 * Context: under acquire_lock. May sleep. Return: 0; -ENOMEM; an error of
 * flexmem_region_acquire(); or -EDQUOT if the cgroup may have no further
 * region: then the region was added, but is not reserved.
 */
int flexmem_region_add(struct flexmem_table *table, enum flexmem_kind kind,
		       u64 domains, u64 size, struct flexmem_account *cgroup,
		       unsigned int *slot)
{
	struct flexmem_region *fresh, *region;
	int rc = 0;

	fresh = flexmem_region_create(table);
	if (!fresh)
		return -ENOMEM;
	region = flexmem_region_acquire(table, kind, domains, size,
					size ?: U64_MAX, &fresh);
	flexmem_region_destroy(fresh);
	if (IS_ERR(region))
		return PTR_ERR(region);
	mutex_lock(&table->snapshot_lock);
	if (cgroup)
		rc = flexmem_region_reserve(region, cgroup);
	if (slot)
		*slot = region->slot;
	flexmem_region_publish(table, region);
	mutex_unlock(&table->snapshot_lock);
	return rc;
}

/* Takes the domains in turn, so that the first one does not take all slots. */
static int prealloc_kind(struct flexmem_table *table, enum flexmem_kind kind,
			 u64 domains)
{
	struct flexmem_domain *domain;
	bool more;
	int rc;

	do {
		more = false;
		flexmem_for_each_domain(domain, table, domains) {
			if (flexmem_table_exhausted(table, kind,
						    BIT_ULL(domain->id), 0))
				continue;
			rc = flexmem_region_add(table, kind,
						BIT_ULL(domain->id), 0, NULL,
						NULL);
			if (rc && rc != -ENOSPC)
				return rc;
			more |= !rc;
		}
	} while (more);
	return 0;
}

/*
 * Acquires all possible regions. Regions for programs come first: they are few
 * and small, and regions for tensors would leave no capacity for them.
 * Context: under acquire_lock. May sleep. Return: 0; an error of the firmware;
 * an error of flexmem_function_error(); or -ENOMEM. After an error the regions
 * acquired so far stay until flexmem_table_remove().
 */
int flexmem_table_prealloc(struct flexmem_table *table)
{
	int rc = 0;

	lockdep_assert_held(&table->acquire_lock);
	if (table->settings.program_slots)
		rc = prealloc_kind(table, FLEXMEM_KIND_PROGRAM,
				   table->default_domains);
	if (!rc)
		rc = prealloc_kind(table, FLEXMEM_KIND_TENSOR,
				   flexmem_table_all(table));
	return rc;
}

/*
 * Removes a region from the table; it is dead and lost from then on. @quarantine:
 * receives its quarantined blocks, which belong to the caller.
 * Context: under acquire_lock. Return: true if no block is in use: then the
 * caller frees the region. Otherwise the task that frees the last block does,
 * possibly before this call returns.
 */
bool flexmem_region_unpublish(struct flexmem_table *table,
			      struct flexmem_region *region,
			      struct list_head *quarantine)
{
	u64 *filled = &region->domain->filled[region->kind];
	bool empty;

	lockdep_assert_held(&table->acquire_lock);
	trace_flexmem_region_remove(region);
	/* A snapshot shows the region with its charges, or neither. */
	mutex_lock(&table->snapshot_lock);
	spin_lock(&region->lock);
	region->dead = true;
	/* Pairs with flexmem_region_is_lost(). */
	smp_store_release(&region->lost, true);
	table->past_allocs += region->allocs;
	flexmem_region_unreserve(region);
	flexmem_accounts_remove_region(&table->accounts, region->slot);
	list_splice_init(&region->quarantine, quarantine);
	empty = !region->blocks.nr_used;
	/*
	 * Ordered after the store to region->lost: a reader that no longer
	 * finds the region in the table sees that it is lost.
	 */
	smp_store_release(&table->region[region->slot], RCU_INITIALIZER(NULL));
	WRITE_ONCE(*filled, *filled & ~BIT_ULL(region->slot));
	spin_unlock(&region->lock);
	mutex_unlock(&table->snapshot_lock);
	return empty;
}

/*
 * Reads each changed capacity from the firmware. Under acquire_lock. May sleep.
 * Return: 0, or an error of the firmware; then the old capacities stay in use.
 */
int flexmem_table_refresh(struct flexmem_table *table)
{
	struct flexmem_domain *domain;
	bool any = false;
	int rc = 0;

	lockdep_assert_held(&table->acquire_lock);
	flexmem_for_each_domain(domain, table, flexmem_table_all(table)) {
		/* If it is true, the driver has the new capacity. */
		if (!smp_load_acquire(&domain->capacity_is_old))
			continue;
		rc = flexmem_domain_refresh(domain);
		if (rc)
			break;
		any = true;
	}
	if (any)
		flexmem_table_reopen(table);
	return rc;
}

void flexmem_table_outdate(struct flexmem_table *table)
{
	struct flexmem_domain *domain;

	flexmem_for_each_domain(domain, table, flexmem_table_all(table)) {
		/* Pairs with flexmem_table_refresh(). */
		smp_store_release(&domain->capacity_is_old, true);
	}
}

/*
 * Reads the changed capacity, or leaves it to the next allocation that needs a
 * region if the firmware is busy.
 * Context: may sleep, for at most one operation of the device and one that
 * undoes it. Return: 0, or an error of the firmware.
 */
int flexmem_table_new_capacity(struct flexmem_table *table)
{
	int rc = 0;

	flexmem_table_outdate(table);
	flexmem_accounts_freed(&table->accounts);
	if (!mutex_trylock(&table->acquire_lock))
		return 0;
	if (!flexmem_function_error(&table->function))
		rc = flexmem_table_refresh(table);
	mutex_unlock(&table->acquire_lock);
	return rc;
}

/*
 * The serial number of the region with an id (any number), or 0. A lost region is
 * never found, even if another region has got its id.
 */
u64 flexmem_table_serial(struct flexmem_table *table, u64 region_id)
{
	struct flexmem_region *region;
	unsigned int slot;
	u64 serial = 0;

	rcu_read_lock();
	for (slot = 0; !serial && slot < table->slots.nr; slot++) {
		region = rcu_dereference(table->region[slot]);
		if (region && region->id == region_id)
			serial = region->serial;
	}
	rcu_read_unlock();
	return serial;
}

/* The serial number of the region in a slot, or 0. @slot: any number. */
u64 flexmem_table_serial_at(struct flexmem_table *table, unsigned int slot)
{
	struct flexmem_region *region;
	u64 serial = 0;

	if (slot >= table->slots.nr)
		return 0;
	slot = array_index_nospec(slot, FLEXMEM_MAX_SLOTS);
	rcu_read_lock();
	region = rcu_dereference(table->region[slot]);
	if (region)
		serial = region->serial;
	rcu_read_unlock();
	return serial;
}

u64 flexmem_table_capacity(const struct flexmem_table *table)
{
	const struct flexmem_domain *domain;
	u64 capacity = 0;

	flexmem_for_each_domain(domain, table, flexmem_table_all(table))
		capacity += READ_ONCE(domain->capacity);
	return capacity;
}

/*
 * Size of the largest further region for tensors that the device would give now;
 * 0 if there is none. @domains: bit mask.
 */
u64 flexmem_table_next_region(struct flexmem_table *table, u64 domains)
{
	struct flexmem_domain *domain;
	u64 largest = 0;

	if (READ_ONCE(table->range[FLEXMEM_KIND_TENSOR].no_slot))
		return 0;
	flexmem_for_each_domain(domain, table, domains)
		largest = max(largest, flexmem_domain_next(domain));
	return largest;
}

/* Size of the largest possible region of these domains. */
u64 flexmem_table_max_region(struct flexmem_table *table, u64 domains)
{
	struct flexmem_domain *domain;
	struct flexmem_region *region;
	unsigned int i;
	u64 largest = 0;

	flexmem_for_each_domain(domain, table, domains)
		largest = max(largest, flexmem_domain_largest(domain));
	/* The capacity may have shrunk since a region was acquired. */
	rcu_read_lock();
	for (i = 0; i < table->slots.nr; i++) {
		region = rcu_dereference(table->region[i]);
		if (region && BIT_ULL(region->domain->id) & domains)
			largest = max(largest, region->mem.size);
	}
	rcu_read_unlock();
	return largest;
}
