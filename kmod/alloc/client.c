// SPDX-License-Identifier: GPL-2.0
/*
 * Clients and their handles.
 *
 * The life of an allocation: ALLOC *prepares* it (it has blocks, a handle and
 * addresses, but look-ups pass it over) and then *publishes* it, which cannot
 * fail. FREE *detaches* it (look-ups pass it over again) and then *releases* all
 * that it has, or publishes it again. Each step that can fail, above all the copy
 * of the reply to user space, comes while no other caller can see the allocation.
 * So each such step can be undone.
 *
 * While the size of an allocation changes (resize.c), other callers get EBUSY.
 */

#include <linux/err.h>
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/sched.h>

#include "alloc/client.h"
#include "part.h"
#include "parts/leaving.h"
#include "region/scrub.h"
#include "region/table.h"
#include "tenant/owner.h"
#include "trace.h"

/*
 * Initialises a client without allocations.
 * @cgroup: the opener's cgroup; NULL in a kernel without cgroups. @pid: the
 * process that opened the file, or NULL.
 * Context: may sleep. Return: 0; -EMFILE if a cgroup may have no more open
 * files; -ENOMEM.
 */
int flexmem_client_init(struct flexmem_client *client,
			struct flexmem_table *table, kuid_t uid,
			struct cgroup *cgroup, struct pid *pid)
{
	memset(client, 0, sizeof(*client));
	refcount_set(&client->refs, 1);
	client->table = table;
	client->account = flexmem_owner_open(&table->accounts, uid, cgroup,
					     pid);
	if (IS_ERR(client->account))
		return PTR_ERR(client->account);
	flexmem_handles_init(&client->handles);
	flexmem_stock_init(&client->stock);
	flexmem_pressure_listen(&table->accounts, &client->listener,
				client->account);
	return 0;
}

/**
 * flexmem_client_get - one more reference to a client
 * @client: client that the caller has a reference to, or whose file is open
 *
 * Context: any.
 */
void flexmem_client_get(struct flexmem_client *client)
{
	refcount_inc(&client->refs);
	WRITE_ONCE(client->is_known, true);
	WRITE_ONCE(client->table->runs_programs, true);
}
EXPORT_SYMBOL_GPL(flexmem_client_get);

/**
 * flexmem_client_put - put a reference to a client
 * @client: client, which this may free
 *
 * Context: any.
 */
void flexmem_client_put(struct flexmem_client *client)
{
	if (refcount_dec_and_test(&client->refs) && client->free)
		client->free(client);
}
EXPORT_SYMBOL_GPL(flexmem_client_put);

/* A place in device memory. A region's serial number is never used again. */
struct place_key {
	u64 serial;
	u64 offset;
};

static struct place_key key_of(const struct flexmem_block *chunk)
{
	return (struct place_key) {
		.serial = chunk->region->serial,
		.offset = chunk->start,
	};
}

static int compare_keys(const struct place_key *a, const struct place_key *b)
{
	if (a->serial != b->serial)
		return a->serial < b->serial ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return 0;
}

static struct flexmem_block *to_chunk(const struct rb_node *node)
{
	return rb_entry(node, struct flexmem_block, node);
}

static bool address_less(struct rb_node *a, const struct rb_node *b)
{
	struct place_key x = key_of(to_chunk(a));
	struct place_key y = key_of(to_chunk(b));

	return compare_keys(&x, &y) < 0;
}

static int address_cmp(const void *key, const struct rb_node *node)
{
	struct place_key other = key_of(to_chunk(node));

	return compare_keys(key, &other);
}

static struct rb_root *tree_of(struct flexmem_client *client,
			       const struct place_key *key)
{
	const unsigned int bits = ilog2(FLEXMEM_ADDRESS_TREES);

	return &client->by_address[hash_64(key->serial + key->offset, bits)];
}

static struct rb_root *tree_of_chunk(struct flexmem_client *client,
				     const struct flexmem_block *chunk)
{
	const struct place_key key = key_of(chunk);

	return chunk->allocation->flags & FLEXMEM_ALLOC_MAPPABLE ?
		&client->mappable : tree_of(client, &key);
}

/* Gives an allocation its handle and its addresses. Returns 0 or -ENOMEM. */
static int give_names(struct flexmem_client *client,
		      struct flexmem_allocation *allocation)
{
	struct flexmem_block *chunk;
	unsigned int i;
	int rc;

	spin_lock(&client->handles.lock);
	rc = flexmem_handles_add(&client->handles, allocation);
	for (i = 0; !rc && i < allocation->nr_chunks; i++) {
		chunk = allocation->chunks[i];
		rb_add(&chunk->node, tree_of_chunk(client, chunk),
		       address_less);
	}
	spin_unlock(&client->handles.lock);
	return rc;
}

static void take_names(struct flexmem_client *client,
		       struct flexmem_allocation *allocation)
{
	struct flexmem_block *chunk;
	unsigned int i;

	spin_lock(&client->handles.lock);
	for (i = 0; i < allocation->nr_chunks; i++) {
		chunk = allocation->chunks[i];
		rb_erase(&chunk->node, tree_of_chunk(client, chunk));
	}
	flexmem_handles_remove(&client->handles, allocation->handle);
	spin_unlock(&client->handles.lock);
}

/* Whether memory that comes back can let a failed ALLOC succeed. */
static bool could_come(const struct flexmem_request *request)
{
	return request->reason != FLEXMEM_REASON_NONE &&
	       request->reason != FLEXMEM_REASON_REGION_SIZE;
}

static struct flexmem_allocation *make(struct flexmem_client *client,
				       struct flexmem_request *request)
{
	int rc;

	request->began = flexmem_gauge_frees(&client->table->accounts.gauge);
	rc = flexmem_leaving_settle(client->account);
	request->table = client->table;
	request->account = client->account;
	request->stock = &client->stock;
	return rc ? ERR_PTR(rc) : flexmem_allocation_make(request);
}

/* Tells the other files that a request lacks memory, if that can help. */
static void tell_failure(struct flexmem_client *client,
			 struct flexmem_request *request)
{
	struct flexmem_accounts *accounts = &client->table->accounts;
	u64 event;

	if (could_come(request)) {
		event = flexmem_pressure_failed(accounts, &client->listener,
						request->began);
		if (request->part <= request->room)
			request->event = event;
	}
	if (request->part <= request->room_of_others &&
	    flexmem_account_want(&client->listener, request->size,
				 request->reason, &request->refused))
		return;
	/*
	 * What others have was read after the search, so memory that was freed
	 * meanwhile may be enough. What the file itself has freed may still be
	 * in use by others.
	 */
	request->alone = flexmem_gauge_frees(&accounts->gauge) ==
			 request->began &&
			 request->part > request->room_of_leaving;
}

/*
 * Makes an allocation that look-ups do not find yet. Before this fails for lack of
 * memory, it waits once for what the device no longer uses, and searches again.
 * @request: receives the reason on -ENOMEM, on each path.
 * Context: may sleep. Return: the allocation, for flexmem_client_publish() or
 * flexmem_client_release(); or an error of flexmem_leaving_look(),
 * flexmem_leaving_wait() or flexmem_allocation_make().
 */
struct flexmem_allocation *
flexmem_client_prepare(struct flexmem_client *client,
		       struct flexmem_request *request)
{
	struct flexmem_accounts *accounts = &client->table->accounts;
	const u64 domains = request->domains, first = request->first;
	struct flexmem_allocation *allocation;
	unsigned long looks = flexmem_leaving_looks(&client->table->leaving);
	int rc = 0;

	allocation = make(client, request);
	if (IS_ERR(allocation) && could_come(request))
		rc = flexmem_leaving_wait(&client->table->leaving, looks,
					  TASK_KILLABLE);
	if (rc) {
		request->domains = domains;
		request->first = first;
		request->reason = FLEXMEM_REASON_NONE;
		allocation = rc < 0 ? ERR_PTR(rc) : make(client, request);
	}
	if (IS_ERR(allocation)) {
		if (request->reason != FLEXMEM_REASON_NONE)
			tell_failure(client, request);
		return allocation;
	}
	flexmem_pressure_succeeded(accounts, &client->listener, request->size);
	rc = give_names(client, allocation);
	if (rc) {
		/* A region that was tried before may have left its reason. */
		request->reason = FLEXMEM_REASON_NONE;
		flexmem_allocation_drop_handle(allocation, &client->stock);
		return ERR_PTR(rc);
	}
	trace_flexmem_alloc(allocation);
	return allocation;
}

/* Lets look-ups find a prepared or detached allocation. Cannot fail. */
void flexmem_client_publish(struct flexmem_client *client,
			    struct flexmem_allocation *allocation)
{
	/* The last access before another thread may free it. See named(). */
	smp_store_release(&allocation->named, true);
}

/*
 * Frees the blocks and the names of a prepared or detached allocation. Blocks
 * that a map, copy, kernel user or fence still uses stay charged, as orphaned.
 */
void flexmem_client_release(struct flexmem_client *client,
			    struct flexmem_allocation *allocation)
{
	trace_flexmem_free(allocation);
	take_names(client, allocation);
	flexmem_allocation_drop_handle(allocation, &client->stock);
}

/* An allocation that a look-up may find; otherwise NULL. */
static struct flexmem_allocation *named(struct flexmem_allocation *allocation)
{
	/* Pairs with flexmem_client_publish(). */
	return allocation && smp_load_acquire(&allocation->named) ?
		allocation : NULL;
}

static struct flexmem_allocation *usable(struct flexmem_allocation *allocation)
{
	if (!named(allocation))
		return ERR_PTR(-ENOENT);
	return allocation->resizing ? ERR_PTR(-EBUSY) : allocation;
}

/* The allocation that a handle names, or NULL. Under the lock of the handles. */
struct flexmem_allocation *flexmem_client_find(struct flexmem_client *client,
					       u32 handle)
{
	lockdep_assert_held(&client->handles.lock);
	return named(flexmem_handles_find(&client->handles, handle));
}

/*
 * Hides an allocation from look-ups, for flexmem_client_release() or
 * flexmem_client_publish(). Return: the allocation; -ENOENT if the handle names
 * none; -EBUSY if the allocation is being resized.
 */
struct flexmem_allocation *
flexmem_client_detach(struct flexmem_client *client, u32 handle)
{
	struct flexmem_allocation *allocation;

	spin_lock(&client->handles.lock);
	allocation = usable(flexmem_client_find(client, handle));
	if (!IS_ERR(allocation))
		WRITE_ONCE(allocation->named, false);
	spin_unlock(&client->handles.lock);
	return allocation;
}

/* As flexmem_client_detach(), for the allocation that starts at an address. */
struct flexmem_allocation *
flexmem_client_detach_address(struct flexmem_client *client,
			      const struct flexmem_address *address)
{
	struct flexmem_allocation *allocation = NULL;
	struct flexmem_block *chunk;
	struct rb_node *node;
	struct place_key key = {
		.serial = flexmem_table_serial(client->table,
					       address->region_id),
		.offset = address->offset,
	};

	spin_lock(&client->handles.lock);
	node = rb_find(&key, tree_of(client, &key), address_cmp) ?:
	       rb_find(&key, &client->mappable, address_cmp);
	chunk = node ? to_chunk(node) : NULL;
	if (chunk && chunk == chunk->allocation->chunks[0])
		allocation = chunk->allocation;
	allocation = usable(allocation);
	if (!IS_ERR(allocation))
		WRITE_ONCE(allocation->named, false);
	spin_unlock(&client->handles.lock);
	return allocation;
}

/* Describes the allocation of a handle. Return: 0 or -ENOENT. */
int flexmem_client_lookup(struct flexmem_client *client, u32 handle,
			  struct flexmem_lookup *out)
{
	struct flexmem_allocation *allocation;

	spin_lock(&client->handles.lock);
	allocation = flexmem_client_find(client, handle);
	if (allocation) {
		out->out_flags = allocation->flags;
		if (flexmem_allocation_error(allocation))
			out->out_flags |= FLEXMEM_LOOKUP_LOST;
		out->out_address = flexmem_allocation_address(allocation);
		out->out_size = allocation->size;
		out->out_count = allocation->nr_chunks;
		out->out_map_offset =
			allocation->flags & FLEXMEM_ALLOC_MAPPABLE ?
			flexmem_chunk_map_offset(allocation->chunks[0]) : 0;
	}
	spin_unlock(&client->handles.lock);
	return allocation ? 0 : -ENOENT;
}

/**
 * flexmem_client_allocation - the allocation that a handle names
 * @client: client; its file may be closed
 * @handle: any number
 *
 * Context: not an interrupt.
 * Return: the allocation, with a reference for flexmem_allocation_put(). An
 * ERR_PTR(): -ENOENT if there is none; -EBUSY if the allocation is being
 * resized.
 */
struct flexmem_allocation *
flexmem_client_allocation(struct flexmem_client *client, u32 handle)
{
	struct flexmem_allocation *allocation;

	spin_lock(&client->handles.lock);
	allocation = usable(flexmem_client_find(client, handle));
	if (!IS_ERR(allocation))
		flexmem_allocation_get(allocation);
	spin_unlock(&client->handles.lock);
	return allocation;
}
EXPORT_SYMBOL_GPL(flexmem_client_allocation);

/* The handle of an allocation of this client; 0 if the allocation was freed. */
u32 flexmem_client_handle(struct flexmem_client *client,
			  const struct flexmem_allocation *allocation)
{
	u32 handle;

	spin_lock(&client->handles.lock);
	handle = READ_ONCE(allocation->named) ? allocation->handle : 0;
	spin_unlock(&client->handles.lock);
	return handle;
}

/* The client's account, for flexmem_owner_put(); NULL after close(). */
static struct flexmem_account *get_account(struct flexmem_client *client)
{
	struct flexmem_account *account;

	spin_lock(&client->handles.lock);
	account = client->account ? flexmem_owner_get(client->account) : NULL;
	spin_unlock(&client->handles.lock);
	return account;
}

/**
 * flexmem_client_hold - keep the regions of a client for a job
 * @client: client that the caller has a reference to
 *
 * For a driver whose jobs do not name the memory that they use. Holds each
 * region in which the client has bytes, so that the region keeps its slot. The
 * caller begins a hold before it queues the job. Memory that the client gets
 * later may be in a region that is not held.
 *
 * Context: not an interrupt; before flexmem_device_unregister() returns.
 * Return: the hold, for flexmem_regions_unhold(). It is empty if the client has
 * no bytes, or has closed the file.
 */
struct flexmem_hold flexmem_client_hold(struct flexmem_client *client)
{
	struct flexmem_slots *slots = &client->table->slots;
	struct flexmem_account *account = get_account(client);
	struct flexmem_hold hold = {};
	u64 generation;

	if (!account)
		return hold;
	/* A region may have been released since the account named its slot. */
	do {
		generation = flexmem_slots_generation(slots);
	} while (!flexmem_slots_hold(slots, generation,
				     flexmem_account_slots(account), &hold));
	flexmem_owner_put(account);
	return hold;
}
EXPORT_SYMBOL_GPL(flexmem_client_hold);

/* The mappable chunk that starts at @key, or else the next one below. */
static struct flexmem_block *find_floor(struct flexmem_client *client,
					const struct place_key *key)
{
	struct rb_node *node = client->mappable.rb_node;
	struct flexmem_block *floor = NULL;

	lockdep_assert_held(&client->handles.lock);
	while (node) {
		if (address_cmp(key, node) < 0) {
			node = node->rb_left;
		} else {
			floor = to_chunk(node);
			node = node->rb_right;
		}
	}
	return floor;
}

/*
 * The mappable chunk that an mmap() offset is in, with a reference to its
 * allocation; or an error of flexmem_client_allocation().
 */
struct flexmem_block *
flexmem_client_get_mapped(struct flexmem_client *client, u64 map_offset)
{
	unsigned int shift = client->table->map_shift;
	struct flexmem_allocation *allocation = NULL;
	struct flexmem_block *chunk;
	struct place_key key = {
		.offset = map_offset & (BIT_ULL(shift) - 1),
	};

	if (map_offset >> shift < FLEXMEM_MAX_SLOTS)
		key.serial = flexmem_table_serial_at(client->table,
						     map_offset >> shift);
	spin_lock(&client->handles.lock);
	chunk = find_floor(client, &key);
	if (chunk && chunk->region->serial == key.serial &&
	    key.offset - chunk->start < READ_ONCE(chunk->size))
		allocation = chunk->allocation;
	allocation = usable(allocation);
	if (!IS_ERR(allocation))
		flexmem_allocation_get(allocation);
	spin_unlock(&client->handles.lock);
	return IS_ERR(allocation) ? ERR_CAST(allocation) : chunk;
}

/* Bytes that the client could free: those of handles in regions not lost. */
u64 flexmem_client_used(struct flexmem_client *client)
{
	struct flexmem_account *account = client->account;
	u64 used;

	spin_lock(&client->table->accounts.lock);
	flexmem_account_settle(account);
	used = account->placed - account->orphaned;
	spin_unlock(&client->table->accounts.lock);
	return used;
}

/* Tells the device's driver of the close before any allocation is freed. */
static void tell_driver(struct flexmem_client *client)
{
	struct flexmem_table *table = client->table;

	/* Removal takes data_lock too, so it waits for the driver's operation. */
	mutex_lock(&table->function.data_lock);
	if (!flexmem_function_is_gone(&table->function))
		flexmem_function_client_gone(&table->function, client);
	mutex_unlock(&table->function.data_lock);
}

/* Closes the client's account. flexmem_client_hold() may run meanwhile. */
static void close_account(struct flexmem_client *client)
{
	struct flexmem_account *account;

	spin_lock(&client->handles.lock);
	account = client->account;
	client->account = NULL;
	spin_unlock(&client->handles.lock);
	flexmem_owner_close(account);
}

/*
 * Frees everything that a client with a closed file has. The device's driver may
 * still have a reference, but finds no allocation by it from then on.
 * Context: may sleep. May be called after the device has gone.
 */
void flexmem_client_fini(struct flexmem_client *client)
{
	struct flexmem_allocation *allocation;
	u32 index = 0;

	if (READ_ONCE(client->is_known))
		tell_driver(client);
	flexmem_parts_undo(close, client);
	while ((allocation = flexmem_handles_next(&client->handles, &index))) {
		flexmem_client_release(client, allocation);
		cond_resched();
	}
	flexmem_handles_fini(&client->handles);
	flexmem_stock_fini(&client->stock);
	close_account(client);
	/* From now on the bytes that the file left are worth a scrub. */
	flexmem_scrub_soon(client->table);
}
