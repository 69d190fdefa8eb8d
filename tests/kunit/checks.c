// SPDX-License-Identifier: GPL-2.0
/* Invariants of the driver's structures, for all tests. */

#include <linux/bitmap.h>
#include <linux/rbtree.h>
#include <linux/xarray.h>

#include "alloc/client.h"
#include "checks.h"
#include "parts/space.h"
#include "region/table.h"
#include "tenant/owner.h"

/*
 * Sums over all accounts, to compare with the counters that the driver keeps.
 */
struct account_sums {
	u64 bytes;
	u64 orphaned;
};

static const char *check_account(const struct flexmem_account *account,
				 struct account_sums *sums)
{
	u64 bytes = 0, orphaned = 0, slots = 0;
	unsigned int i;

	for (i = 0; i < FLEXMEM_MAX_SLOTS; i++) {
		bytes += account->in[i].bytes;
		orphaned += account->in[i].orphaned;
		slots += flexmem_charges_region(&account->in[i]);
	}
	if (bytes != account->placed ||
	    bytes > account->used[FLEXMEM_RESOURCE_BYTES])
		return "bytes of an account miscounted";
	if (orphaned != account->orphaned || orphaned > bytes)
		return "orphaned bytes of an account miscounted";
	if (slots != account->used[FLEXMEM_RESOURCE_REGIONS])
		return "slots of an account miscounted";
	sums->bytes += bytes;
	sums->orphaned += orphaned;
	return NULL;
}

static void add_if_below(const struct flexmem_account *account,
			 const struct flexmem_account *above,
			 struct flexmem_account *sum)
{
	unsigned int i;

	if (account->parent != above)
		return;
	sum->used[FLEXMEM_RESOURCE_HANDLES] +=
		account->used[FLEXMEM_RESOURCE_HANDLES];
	sum->used[FLEXMEM_RESOURCE_FILES] +=
		account->used[FLEXMEM_RESOURCE_FILES];
	sum->used[FLEXMEM_RESOURCE_BYTES] +=
		account->used[FLEXMEM_RESOURCE_BYTES];
	sum->orphaned += account->orphaned;
	for (i = 0; i < FLEXMEM_MAX_SLOTS; i++) {
		sum->in[i].bytes += account->in[i].bytes;
		sum->in[i].orphaned += account->in[i].orphaned;
		sum->in[i].reserved |= account->in[i].reserved;
	}
}

static struct flexmem_account *to_account(struct rb_node *node)
{
	return rb_entry(node, struct flexmem_account, by_id);
}

/*
 * A cgroup's charges must be the sum of the charges of its files and of its
 * child cgroups. A region that is reserved for a child cgroup counts as reserved
 * for the cgroup.
 */
static bool adds_up(struct flexmem_accounts *accounts,
		    const struct flexmem_account *above)
{
	static struct flexmem_account sum;
	struct rb_node *node;
	u64 reserved = 0;
	unsigned int i;

	memset(&sum, 0, sizeof(sum));
	for (node = rb_first(&accounts->clients); node; node = rb_next(node))
		add_if_below(to_account(node), above, &sum);
	for (node = rb_first(&accounts->cgroups); node; node = rb_next(node))
		add_if_below(to_account(node), above, &sum);
	for (i = 0; i < FLEXMEM_MAX_SLOTS; i++) {
		if (sum.in[i].bytes != above->in[i].bytes ||
		    sum.in[i].orphaned != above->in[i].orphaned ||
		    above->in[i].reserved < sum.in[i].reserved)
			return false;
		if (above->in[i].reserved && !sum.in[i].reserved)
			reserved |= BIT_ULL(i);
	}
	return reserved == above->reserved && sum.orphaned == above->orphaned &&
	       sum.used[FLEXMEM_RESOURCE_BYTES] ==
	       above->used[FLEXMEM_RESOURCE_BYTES] &&
	       sum.used[FLEXMEM_RESOURCE_FILES] ==
	       above->used[FLEXMEM_RESOURCE_FILES] &&
	       sum.used[FLEXMEM_RESOURCE_HANDLES] ==
	       above->used[FLEXMEM_RESOURCE_HANDLES];
}

/* No byte may be in two uses, or in none. */
static bool sums_agree(const struct flexmem_accounts *accounts)
{
	u64 in_slots, all = 0;
	enum flexmem_use use;
	unsigned int i;

	for (use = 0; use < FLEXMEM_NR_USES; use++) {
		all += accounts->bytes[use];
		in_slots = 0;
		for (i = 0; i < FLEXMEM_MAX_SLOTS; i++)
			in_slots += accounts->in[i].bytes[use];
		if (in_slots != accounts->bytes[use])
			return false;
	}
	return !all;
}

/**
 * checks_of_accounts - check every invariant
 * @accounts: accounts of a PF or VF
 *
 * Context: O(open files * cgroups). Only for tests, which run one at a time.
 * Return: NULL, or a text that says what is wrong.
 */
const char *checks_of_accounts(struct flexmem_accounts *accounts)
{
	struct account_sums clients = {}, cgroups = {};
	struct flexmem_account *account;
	const char *wrong = NULL;
	struct rb_node *node;
	u64 orphaned;

	spin_lock(&accounts->lock);
	for (node = rb_first(&accounts->cgroups); node; node = rb_next(node))
		flexmem_account_settle(to_account(node));
	for (node = rb_first(&accounts->clients); node; node = rb_next(node)) {
		account = to_account(node);
		flexmem_account_settle(account);
		wrong = wrong ?: check_account(account, &clients);
	}
	for (node = rb_first(&accounts->cgroups); node; node = rb_next(node)) {
		account = to_account(node);
		wrong = wrong ?: check_account(account, &cgroups);
		if (!wrong && !adds_up(accounts, account))
			wrong = "charges of a cgroup are not those below it";
	}
	orphaned = accounts->bytes[FLEXMEM_USE_ORPHANED];
	if (!wrong && clients.bytes !=
		      accounts->bytes[FLEXMEM_USE_OWNED] + orphaned)
		wrong = "bytes of the clients are not all bytes";
	if (!wrong && clients.orphaned != orphaned)
		wrong = "orphaned bytes differ";
	if (!wrong && !sums_agree(accounts))
		wrong = "sums by use miscounted";
	spin_unlock(&accounts->lock);
	return wrong;
}

/*
 * Each chunk must be charged to the client, and the sizes of the chunks must
 * add up to the size of the allocation.
 */
static const char *check_chunks(const struct flexmem_client *client,
				const struct flexmem_allocation *allocation)
{
	const struct flexmem_block *chunk;
	u64 size = allocation->size;
	unsigned int i;

	for (i = 0; i < allocation->nr_chunks; i++) {
		chunk = allocation->chunks[i];
		size -= chunk->size;
		if (chunk->allocation != allocation)
			return "chunk of another allocation";
		if (chunk->account != client->account)
			return "block of another owner";
	}
	return size && !allocation->resizing ? "chunks of another size" : NULL;
}

static u32 count_nodes(const struct rb_root *root)
{
	struct rb_node *node;
	u32 nr = 0;

	for (node = rb_first(root); node; node = rb_next(node))
		nr++;
	return nr;
}

/* Whether the addresses of a binding lie in one reserved range. */
static bool is_in_range(const struct flexmem_space *space,
			const struct flexmem_span *addresses)
{
	u64 start = addresses->start - space->table->function.vm_start;
	const struct flexmem_block *range;
	struct rb_node *node;

	for (node = rb_first(&space->ranges); node; node = rb_next(node)) {
		range = rb_entry(node, struct flexmem_block, node);
		if (start >= range->start &&
		    start + addresses->size <= range->start + range->size)
			return true;
	}
	return false;
}

static const char *check_space(struct flexmem_space *space)
{
	const char *wrong = flexmem_blocks_check(&space->blocks);
	const struct flexmem_binding *binding;
	struct rb_node *node;
	u64 end = 0;

	if (count_nodes(&space->by_address) != space->nr_bindings ||
	    count_nodes(&space->by_bytes) != space->nr_bindings)
		wrong = "bindings miscounted";
	if (count_nodes(&space->ranges) != space->blocks.nr_used)
		wrong = "ranges miscounted";
	for (node = rb_first(&space->by_address); node; node = rb_next(node)) {
		binding = rb_entry(node, struct flexmem_binding,
				   addresses.node);
		if (binding->addresses.start < end)
			wrong = "bindings overlap";
		if (!is_in_range(space, &binding->addresses))
			wrong = "binding outside ranges";
		if (binding->state == FLEXMEM_BINDING_BUSY)
			wrong = "binding without a command is busy";
		end = binding->addresses.start + binding->addresses.size;
	}
	return wrong;
}

/**
 * checks_of_client - check that handles, addresses and counters agree
 * @client: client that is in no command
 *
 * Context: O(n). For tests.
 * Return: NULL, or a text that says what is wrong.
 */
const char *checks_of_client(struct flexmem_client *client)
{
	struct flexmem_allocation *allocation;
	u32 nr_chunks, index = 0;
	const char *wrong = NULL;
	unsigned int i;

	spin_lock(&client->handles.lock);
	nr_chunks = count_nodes(&client->mappable);
	for (i = 0; i < ARRAY_SIZE(client->by_address); i++)
		nr_chunks += count_nodes(&client->by_address[i]);
	while ((allocation = flexmem_handles_next(&client->handles, &index))) {
		nr_chunks -= allocation->nr_chunks;
		wrong = check_chunks(client, allocation) ?: wrong;
		if (flexmem_handles_find(&client->handles,
					 allocation->handle) != allocation)
			wrong = "allocation under another handle";
	}
	if (nr_chunks)
		wrong = "addresses miscounted";
	spin_unlock(&client->handles.lock);
	return wrong ?: client->space ? check_space(client->space) : NULL;
}

/**
 * check_region - check the invariants of a region's blocks
 * @region: region
 *
 * Context: takes the region's lock. O(blocks). For tests.
 * Return: NULL, or a text that says what is wrong.
 */
static const char *check_region(struct flexmem_region *region)
{
	const struct flexmem_block *block;
	u64 nr_quarantined = 0;
	const char *wrong;

	spin_lock(&region->lock);
	wrong = flexmem_blocks_check(&region->blocks);
	list_for_each_entry(block, &region->blocks.all, link)
		nr_quarantined += block->use == FLEXMEM_USE_QUARANTINED;
	if (!wrong && nr_quarantined != region->nr_quarantined)
		wrong = "blocks in quarantine miscounted";
	if (!wrong && region->blocks.total != region->mem.size)
		wrong = "blocks of another size than the region";
	spin_unlock(&region->lock);
	return wrong;
}

/* A slot and the table must agree about the region in the slot. */
static const char *check_slot(struct flexmem_table *table, unsigned int slot)
{
	const struct flexmem_segment_entry *entry = &table->slots.entry[slot];
	struct flexmem_region *region = flexmem_region_at(table, slot);

	if (test_bit(slot, table->slots.filled) != !!region)
		return "slot filled without a region, or the other way round";
	if (!region)
		return NULL;
	if (region->slot != slot || entry->slot != slot ||
	    entry->region_id != region->id ||
	    entry->length != region->mem.size)
		return "slot and region do not agree";
	return check_region(region);
}

/*
 * Each reserved region must be counted by exactly one account. Called under
 * acquire_lock.
 */
static bool reservations_add_up(struct flexmem_table *table)
{
	struct flexmem_region *region;
	struct rb_node *node;
	unsigned int slot;
	u64 reserved = 0;

	for (slot = 0; slot < table->slots.nr; slot++) {
		region = flexmem_region_at(table, slot);
		reserved += region && region->reserved_for;
	}
	spin_lock(&table->accounts.lock);
	for (node = rb_first(&table->accounts.cgroups); node;
	     node = rb_next(node))
		reserved -= hweight64(to_account(node)->reserved);
	spin_unlock(&table->accounts.lock);
	return !reserved;
}

/**
 * checks_of_table - check every invariant
 * @table: region table
 *
 * Context: may sleep. For tests.
 * Return: NULL, or a text that says what is wrong.
 */
const char *checks_of_table(struct flexmem_table *table)
{
	const char *wrong = NULL;
	unsigned int slot;

	mutex_lock(&table->acquire_lock);
	for (slot = 0; !wrong && slot < table->slots.nr; slot++)
		wrong = check_slot(table, slot);
	if (!wrong && !reservations_add_up(table))
		wrong = "reserved regions miscounted";
	mutex_unlock(&table->acquire_lock);
	if (!wrong)
		wrong = checks_of_accounts(&table->accounts);
	return wrong;
}
