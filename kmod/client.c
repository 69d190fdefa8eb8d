// SPDX-License-Identifier: GPL-2.0
/*
 * Clients and their handles.
 *
 * The life of an allocation: it is *prepared* (a handle is reserved and a block
 * taken, but nobody can name it yet), then *published*, which cannot fail. To
 * be freed it is *detached* (nobody can name it any more, the handle is still
 * reserved), then *aborted*, which gives block and handle back, or published
 * again. So whatever can fail, the copy of the reply to user space above all,
 * happens while nobody else can see the allocation, and can be undone.
 */

#include <linux/err.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "client.h"
#include "compat.h"
#include "region.h"

static struct kmem_cache *allocation_cache;

/**
 * flexmem_client_init_caches - once, when the module is loaded
 *
 * Return: 0 or -ENOMEM.
 */
int flexmem_client_init_caches(void)
{
	allocation_cache = kmem_cache_create("flexmem_allocation",
					     sizeof(struct flexmem_allocation),
					     0, SLAB_ACCOUNT, NULL);
	return allocation_cache ? 0 : -ENOMEM;
}

/**
 * flexmem_client_exit_caches - once, when the module is unloaded
 */
void flexmem_client_exit_caches(void)
{
	kmem_cache_destroy(allocation_cache);
}

/**
 * flexmem_client_init - a client without allocations
 * @client: to initialise
 * @table: region table of the function; must outlive the client
 */
void flexmem_client_init(struct flexmem_client *client,
			 struct flexmem_table *table)
{
	memset(client, 0, sizeof(*client));
	client->table = table;
	flexmem_lease_init(&client->lease);
	xa_init_flags(&client->handles,
		      XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	client->by_address = RB_ROOT;
	client->next_handle = 1;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_client_init);

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

static int compare_address(const struct flexmem_address *a,
			   const struct flexmem_address *b)
{
	if (a->region_id != b->region_id)
		return a->region_id < b->region_id ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return 0;
}

static struct flexmem_allocation *to_allocation(const struct rb_node *node)
{
	return rb_entry(node, struct flexmem_allocation, by_address);
}

static bool address_less(struct rb_node *a, const struct rb_node *b)
{
	struct flexmem_address x, y;

	x = flexmem_allocation_address(to_allocation(a));
	y = flexmem_allocation_address(to_allocation(b));
	return compare_address(&x, &y) < 0;
}

static int address_cmp(const void *key, const struct rb_node *node)
{
	struct flexmem_address address;

	address = flexmem_allocation_address(to_allocation(node));
	return compare_address(key, &address);
}

/* Reserves a handle: 0, -EDQUOT if the client has all it may have, -ENOMEM. */
static int reserve_handle(struct flexmem_client *client, u32 *handle)
{
	unsigned int max = client->table->settings.max_handles;
	int rc = -EDQUOT;

	xa_lock(&client->handles);
	if (client->nr_handles < max) {
		client->nr_handles++;
		/* An entry of NULL reserves the index in this kind of XArray. */
		rc = __xa_alloc_cyclic(&client->handles, handle, NULL,
				       XA_LIMIT(1, INT_MAX),
				       &client->next_handle, GFP_KERNEL);
		if (rc < 0)
			client->nr_handles--;
		else
			rc = 0;	/* 1 says that the search wrapped */
	}
	xa_unlock(&client->handles);
	return rc;
}

static void release_handle(struct flexmem_client *client, u32 handle)
{
	xa_lock(&client->handles);
	__xa_erase(&client->handles, handle);
	client->nr_handles--;
	xa_unlock(&client->handles);
}

static int take_block(struct flexmem_client *client,
		      struct flexmem_allocation *allocation, u64 size,
		      u64 alignment, struct flexmem_place *place)
{
	struct flexmem_request request = {
		.size = size,
		.alignment = alignment,
		.program = allocation->flags & FLEXMEM_ALLOC_PROGRAM,
		.owner = client,
	};
	struct flexmem_spare spare;
	int rc;

	rc = flexmem_spare_fill(&spare, flexmem_spares_for(alignment));
	if (rc)
		return rc;
	rc = flexmem_place(client->table, &request, &spare, place);
	flexmem_spare_drop(&spare);
	allocation->region = place->region;
	allocation->block = place->block;
	return rc;
}

/**
 * flexmem_client_prepare - make an allocation that nobody can name yet
 * @client: client
 * @size: bytes, a multiple of FLEXMEM_ALIGN, not 0
 * @alignment: of the offset; a power of two from FLEXMEM_ALIGN to
 *	FLEXMEM_MAX_ALIGNMENT
 * @flags: of enum flexmem_alloc_flags
 * @place: receives the reason on failure
 *
 * Context: may sleep.
 * Return: the allocation, for flexmem_client_publish() or
 * flexmem_client_abort(), or an error as flexmem_place() has them.
 */
struct flexmem_allocation *
flexmem_client_prepare(struct flexmem_client *client, u64 size, u64 alignment,
		       u32 flags, struct flexmem_place *place)
{
	struct flexmem_allocation *allocation;
	int rc;

	*place = (struct flexmem_place) {};
	allocation = kmem_cache_zalloc(allocation_cache, GFP_KERNEL);
	if (!allocation)
		return ERR_PTR(-ENOMEM);
	allocation->flags = flags;

	rc = reserve_handle(client, &allocation->handle);
	if (rc) {
		if (rc == -EDQUOT) {
			flexmem_place_figures(client->table,
					      flags & FLEXMEM_ALLOC_PROGRAM,
					      place);
			place->reason = FLEXMEM_REASON_HANDLES;
			rc = -ENOMEM;
		}
		goto free_allocation;
	}

	rc = take_block(client, allocation, size, alignment, place);
	if (rc)
		goto release_handle;
	return allocation;

release_handle:
	release_handle(client, allocation->handle);
free_allocation:
	kmem_cache_free(allocation_cache, allocation);
	return ERR_PTR(rc);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_client_prepare);

/**
 * flexmem_client_publish - let an allocation be named. Cannot fail
 * @client: client
 * @allocation: prepared, or detached
 */
void flexmem_client_publish(struct flexmem_client *client,
			    struct flexmem_allocation *allocation)
{
	xa_lock(&client->handles);
	/* The handle is reserved, so this needs no memory. */
	__xa_store(&client->handles, allocation->handle, allocation, 0);
	rb_add(&allocation->by_address, &client->by_address, address_less);
	client->nr_published++;
	client->used += allocation->block->size;
	client->peak = max(client->peak, client->used);
	xa_unlock(&client->handles);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_client_publish);

/**
 * flexmem_client_abort - give block and handle of an allocation back
 * @client: client
 * @allocation: prepared, or detached; gone afterwards
 */
void flexmem_client_abort(struct flexmem_client *client,
			  struct flexmem_allocation *allocation)
{
	flexmem_region_free(allocation->region, allocation->block,
			    allocation->flags & FLEXMEM_ALLOC_PROGRAM);
	release_handle(client, allocation->handle);
	kmem_cache_free(allocation_cache, allocation);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_client_abort);

static void detach_locked(struct flexmem_client *client,
			  struct flexmem_allocation *allocation)
{
	lockdep_assert_held(&client->handles.xa_lock);
	__xa_store(&client->handles, allocation->handle, NULL, 0);
	rb_erase(&allocation->by_address, &client->by_address);
	client->nr_published--;
	client->used -= allocation->block->size;
}

/**
 * flexmem_client_detach - let an allocation be named no more
 * @client: client
 * @handle: its handle
 *
 * Return: the allocation, for flexmem_client_abort() or
 * flexmem_client_publish(); NULL if there is none of that handle.
 */
struct flexmem_allocation *
flexmem_client_detach(struct flexmem_client *client, u32 handle)
{
	struct flexmem_allocation *allocation;

	xa_lock(&client->handles);
	allocation = xa_load(&client->handles, handle);
	if (allocation)
		detach_locked(client, allocation);
	xa_unlock(&client->handles);
	return allocation;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_client_detach);

/**
 * flexmem_client_detach_address - likewise, by where the allocation starts
 * @client: client
 * @address: exact start
 *
 * Return: as flexmem_client_detach().
 */
struct flexmem_allocation *
flexmem_client_detach_address(struct flexmem_client *client,
			      const struct flexmem_address *address)
{
	struct flexmem_allocation *allocation = NULL;
	struct rb_node *node;

	xa_lock(&client->handles);
	node = rb_find(address, &client->by_address, address_cmp);
	if (node) {
		allocation = to_allocation(node);
		detach_locked(client, allocation);
	}
	xa_unlock(&client->handles);
	return allocation;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_client_detach_address);

/**
 * flexmem_client_lookup - what a handle names
 * @client: client
 * @handle: handle
 * @out: receives the ``out_`` members
 *
 * Return: 0 or -ENOENT.
 */
int flexmem_client_lookup(struct flexmem_client *client, u32 handle,
			  struct flexmem_lookup *out)
{
	struct flexmem_allocation *allocation;

	xa_lock(&client->handles);
	allocation = xa_load(&client->handles, handle);
	if (allocation) {
		out->out_flags = allocation->flags;
		out->out_address = flexmem_allocation_address(allocation);
		out->out_size = allocation->block->size;
	}
	xa_unlock(&client->handles);
	return allocation ? 0 : -ENOENT;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_client_lookup);

/**
 * flexmem_client_usage - the client's part of the statistics
 * @client: client
 * @out: receives the ``out_client_`` members
 */
void flexmem_client_usage(struct flexmem_client *client,
			  struct flexmem_stats *out)
{
	xa_lock(&client->handles);
	out->out_client_used = client->used;
	out->out_client_peak = client->peak;
	out->out_client_handles = client->nr_published;
	xa_unlock(&client->handles);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_client_usage);

/**
 * flexmem_client_fini - give everything back
 * @client: client that nobody uses any more
 *
 * Context: may sleep. Also after the device has gone.
 */
void flexmem_client_fini(struct flexmem_client *client)
{
	struct flexmem_allocation *allocation;
	unsigned long handle;
	u64 generation;

	flexmem_lease_drop(&client->table->slots, &client->lease, &generation);
	xa_for_each(&client->handles, handle, allocation) {
		flexmem_client_abort(client, allocation);
		cond_resched();
	}
	WARN_ON_ONCE(client->nr_handles);
	xa_destroy(&client->handles);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_client_fini);

/**
 * flexmem_client_check - check that the two indexes and the counters agree
 * @client: client
 *
 * Context: O(n). For tests.
 * Return: NULL, or what is wrong.
 */
const char *flexmem_client_check(struct flexmem_client *client)
{
	struct flexmem_allocation *allocation;
	unsigned long handle;
	const char *wrong = NULL;
	struct rb_node *node;
	u64 used = 0;
	u32 nr = 0;

	xa_lock(&client->handles);
	for (node = rb_first(&client->by_address); node; node = rb_next(node))
		nr++;
	if (nr != client->nr_published)
		wrong = "addresses miscounted";
	xa_for_each(&client->handles, handle, allocation) {
		nr--;
		used += allocation->block->size;
		if (allocation->handle != handle)
			wrong = "allocation under another handle";
		if (allocation->block->owner != client)
			wrong = "block of another owner";
	}
	if (nr)
		wrong = "handles miscounted";
	if (used != client->used)
		wrong = "bytes miscounted";
	xa_unlock(&client->handles);
	return wrong;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_client_check);
