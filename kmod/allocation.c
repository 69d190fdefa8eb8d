// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that has been given out.
 *
 * An allocation has an owner, who is charged for it, and is there for as long as
 * somebody refers to it: its handle, a map for the CPU, a copy under way. What
 * loses its name while others refer to it is *orphaned*: still its owner's, and
 * charged. Its block is given back with the last reference.
 */

#include <linux/err.h>
#include <linux/slab.h>

#include "allocation.h"
#include "compat.h"
#include "dirty.h"
#include "owner.h"
#include "scrub.h"
#include "table.h"

static struct kmem_cache *allocation_cache;

/**
 * flexmem_allocation_init_caches - once, when the module is loaded
 *
 * Return: 0 or -ENOMEM.
 */
int flexmem_allocation_init_caches(void)
{
	allocation_cache = kmem_cache_create("flexmem_allocation",
					     sizeof(struct flexmem_allocation),
					     0, SLAB_ACCOUNT, NULL);
	return allocation_cache ? 0 : -ENOMEM;
}

/**
 * flexmem_allocation_exit_caches - once, when the module is unloaded
 */
void flexmem_allocation_exit_caches(void)
{
	kmem_cache_destroy(allocation_cache);
}

static int take_block(struct flexmem_table *table,
		      struct flexmem_allocation *allocation, u64 alignment,
		      struct flexmem_place *place)
{
	struct flexmem_request request = {
		.size = allocation->size,
		.alignment = alignment,
		.kind = allocation->kind,
		.growable = allocation->flags & FLEXMEM_ALLOC_GROWABLE,
		.wait = allocation->flags & FLEXMEM_ALLOC_WAIT,
		.account = allocation->owner,
	};
	int rc = flexmem_place(table, &request, place);

	allocation->region = place->region;
	allocation->block = place->block;
	return rc;
}

/**
 * flexmem_allocation_clean - see to it that no foreign bytes are in a block
 * @allocation: whose it will be
 * @block: block of its region that has just been allocated, or by which it is
 *	extended
 *
 * What the firmware fails to scrub is quarantined; whose wait was cut short, or
 * who has not asked as the firmware may be dead, gives it back as it is.
 *
 * Context: may sleep.
 * Return: 0, or an error as flexmem_scrub_block() has them: then the block is
 * not the caller's any more.
 */
int flexmem_allocation_clean(struct flexmem_allocation *allocation,
			     struct flexmem_block *block)
{
	struct flexmem_region *region = allocation->region;
	int rc;

	rc = flexmem_scrub_block(region, block, allocation->bytes_of,
				 allocation->flags & FLEXMEM_ALLOC_ZEROED);
	if (rc == -EINTR || rc == -ENOMEM || rc == -ENODEV || rc == -EAGAIN)
		flexmem_region_free(region, block, allocation->kind,
				    allocation->owner, false);
	else if (rc)
		flexmem_region_quarantine(region, block, allocation->kind,
					  allocation->owner);
	return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

/* An allocation has a handle for as long as it has a name. */
static bool charge_name(struct flexmem_table *table,
			struct flexmem_account *owner, enum flexmem_kind kind,
			struct flexmem_place *place)
{
	enum flexmem_reason refusal;

	refusal = flexmem_charge_handle(&table->accounts, owner,
					table->settings.max_handles);
	if (!refusal)
		return true;
	flexmem_place_figures(table, kind, owner, place);
	place->reason = refusal;
	return false;
}

/**
 * flexmem_allocation_make - give memory out
 * @table: region table
 * @owner: who is charged, for a handle as well
 * @size: bytes, a multiple of FLEXMEM_ALIGN, not 0
 * @alignment: of the offset; a power of two from FLEXMEM_ALIGN to
 *	FLEXMEM_MAX_ALIGNMENT
 * @flags: of enum flexmem_alloc_flags
 * @place: receives the reason on failure
 *
 * Context: may sleep.
 * Return: the allocation, with one reference, or an error as flexmem_place() and
 * flexmem_scrub_block() have them.
 */
struct flexmem_allocation *
flexmem_allocation_make(struct flexmem_table *table,
			struct flexmem_account *owner, u64 size, u64 alignment,
			u32 flags, struct flexmem_place *place)
{
	struct flexmem_allocation *allocation;
	int rc = -ENOMEM;

	*place = (struct flexmem_place) {};
	if (!charge_name(table, owner, flexmem_kind_of(flags), place))
		return ERR_PTR(-ENOMEM);
	allocation = kmem_cache_zalloc(allocation_cache, GFP_KERNEL);
	if (!allocation)
		goto uncharge;
	refcount_set(&allocation->refs, 1);
	allocation->kind = flexmem_kind_of(flags);
	allocation->owner = owner;
	/* Not before its handle is charged: flexmem_owner_set_strict(). */
	allocation->bytes_of = flexmem_owner_of_bytes(owner);
	allocation->flags = flags;
	allocation->size = size;
	rc = take_block(table, allocation, alignment, place);
	rc = rc ?: flexmem_allocation_clean(allocation, allocation->block);
	if (rc)
		goto free;
	flexmem_owner_get(owner);
	return allocation;

free:
	kmem_cache_free(allocation_cache, allocation);
uncharge:
	flexmem_uncharge_handle(&table->accounts, owner);
	return ERR_PTR(rc);
}

/**
 * flexmem_allocation_get - one more user of an allocation
 * @allocation: allocation that the caller has a reference to
 */
void flexmem_allocation_get(struct flexmem_allocation *allocation)
{
	refcount_inc(&allocation->refs);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_allocation_get);

/**
 * flexmem_allocation_put - one less; the last one gives the block back
 * @allocation: allocation; may be gone afterwards
 */
void flexmem_allocation_put(struct flexmem_allocation *allocation)
{
	if (!refcount_dec_and_test(&allocation->refs))
		return;
	flexmem_region_free(allocation->region, allocation->block,
			    allocation->kind, allocation->owner,
			    allocation->orphaned);
	flexmem_owner_put(allocation->owner);
	kmem_cache_free(allocation_cache, allocation);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_allocation_put);

/**
 * flexmem_allocation_unname - nobody can name an allocation any more
 * @allocation: allocation; the caller's reference, its name's, is dropped. Its
 *	owner's account is held by the caller as well
 *
 * If it is in use otherwise it is orphaned. Its handle is charged no more.
 */
void flexmem_allocation_unname(struct flexmem_allocation *allocation)
{
	struct flexmem_accounts *accounts = allocation->owner->accounts;
	struct flexmem_account *owner = allocation->owner;

	/* Nobody can get a further reference by the handle any more. */
	if (refcount_read(&allocation->refs) > 1) {
		flexmem_region_orphan(allocation->region, allocation->block,
				      allocation->owner);
		allocation->orphaned = true;
	}
	flexmem_allocation_put(allocation);
	flexmem_uncharge_handle(accounts, owner);
}

/**
 * flexmem_allocation_address - where an allocation starts
 * @allocation: allocation
 *
 * Return: its VirtualAddress.
 */
struct flexmem_address
flexmem_allocation_address(const struct flexmem_allocation *allocation)
{
	return (struct flexmem_address) {
		.region_id = allocation->region->id,
		.offset = allocation->block->start,
	};
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_allocation_address);

/**
 * flexmem_allocation_map_offset - where mmap() finds an allocation
 * @allocation: allocation
 *
 * Return: bytes, a multiple of the page size for a mappable one.
 */
u64 flexmem_allocation_map_offset(const struct flexmem_allocation *allocation)
{
	const struct flexmem_region *region = allocation->region;

	return ((u64)region->slot << region->table->map_shift) |
	       allocation->block->start;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_allocation_map_offset);
