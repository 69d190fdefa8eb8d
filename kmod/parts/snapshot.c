// SPDX-License-Identifier: GPL-2.0
/*
 * Snapshots: regions, owners and sums at one moment.
 *
 * A snapshot takes all region locks, and then the lock of the accounts. Every
 * charge of a block takes the accounts' lock under the lock of the block's
 * region. So no block can change without its charge, and nothing changes while
 * the regions are copied.
 */

#include <linux/bits.h>
#include <linux/cred.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/pid.h>
#include <linux/user_namespace.h>

#include "parts/snapshot.h"
#include "region/table.h"

/* A lost region may have taken its bytes from @entry->orphaned already. */
static void fill_leaving(struct flexmem_account *file,
			 struct flexmem_owner_entry *entry)
{
	struct flexmem_table *table =
		container_of(file->accounts, struct flexmem_table, accounts);
	u64 bytes = flexmem_leaving_of(&table->leaving, file, &entry->waits_ms);

	entry->leaving = min(bytes, entry->orphaned);
}

/* The opener as the caller sees it; 0: it has ended, and its number is reused. */
static pid_t opener_of(const struct flexmem_account *account)
{
	return account->pid && pid_has_task(account->pid, PIDTYPE_TGID) ?
		pid_vnr(account->pid) : 0;
}

static void fill_owner(struct flexmem_account *account,
		       struct flexmem_owner_entry *entry)
{
	bool client = account->kind == FLEXMEM_OWNER_CLIENT;

	flexmem_account_settle(account);
	*entry = (struct flexmem_owner_entry) {
		.kind = account->kind,
		.flags = flexmem_account_is_removed(account) ?
			 FLEXMEM_OWNER_REMOVED : 0,
		.id = account->id,
		.uid = client ? from_kuid_munged(current_user_ns(),
						 account->uid) : 0,
		.pid = opener_of(account),
		.bytes = account->placed - account->orphaned,
		.orphaned = account->orphaned,
		.peak = account->peak,
		.slots = account->used[FLEXMEM_RESOURCE_REGIONS],
		.handles = account->used[FLEXMEM_RESOURCE_HANDLES],
		.files = account->used[FLEXMEM_RESOURCE_FILES],
		.reservation = account->reservation,
		.reserved = hweight64(account->reserved),
		.parent = account->parent ? account->parent->id : 0,
	};
	memcpy(entry->limit, account->limit, sizeof(entry->limit));
	memcpy(entry->failures, account->failures, sizeof(entry->failures));
	if (client)
		fill_leaving(account, entry);
}

static int is_below(const void *id, const struct rb_node *node)
{
	return rb_entry(node, struct flexmem_account, by_id)->id < *(u64 *)id;
}

/* Adds the owners in a tree whose ids are @id or more, as long as there is room. */
static void add_owners(const struct rb_root *tree, u64 id,
		       struct flexmem_view *view)
{
	struct rb_node *node = rb_find_first(&id, tree, is_below);

	for (; node && view->nr_owners < FLEXMEM_VIEW_OWNERS;
	     node = rb_next(node))
		fill_owner(rb_entry(node, struct flexmem_account, by_id),
			   &view->owner[view->nr_owners++]);
}

/*
 * Replaces the owners in a view by those that follow them in the list: cgroups
 * first, then clients, each by id. A view without owners gets the first ones.
 */
static void next_owners(struct flexmem_accounts *accounts,
			struct flexmem_view *view)
{
	const struct flexmem_owner_entry *last =
		view->nr_owners ? &view->owner[view->nr_owners - 1] : NULL;
	u64 id = last ? last->id + 1 : 0;

	lockdep_assert_held(&accounts->lock);
	view->nr_owners = 0;
	if (!last || last->kind == FLEXMEM_OWNER_CGROUP) {
		add_owners(&accounts->cgroups, id, view);
		id = 0;
	}
	add_owners(&accounts->clients, id, view);
}

static void fill_accounts(struct flexmem_accounts *accounts,
			  struct flexmem_account *only,
			  struct flexmem_view *view)
{
	lockdep_assert_held(&accounts->lock);
	view->sum.out_owned = accounts->bytes[FLEXMEM_USE_OWNED];
	view->sum.out_orphaned = accounts->bytes[FLEXMEM_USE_ORPHANED];
	view->sum.out_quarantined = accounts->bytes[FLEXMEM_USE_QUARANTINED];
	view->sum.out_clients = accounts->nr_clients;
	view->limit = flexmem_account_limit(only, &view->rooms,
					    &view->limit_left);
	view->memory = max(accounts->gauge.memory,
			   flexmem_accounts_in_use(accounts));
	view->sum.out_owner_count = only ? 2 : accounts->nr_cgroups +
					       accounts->nr_clients;
	view->nr_owners = 0;
	if (view->owner && only) {
		fill_owner(only->parent, &view->owner[view->nr_owners++]);
		/*
		 * A container does not learn about cgroups outside of it, and
		 * a file not how often others have failed.
		 */
		view->owner[0].parent = 0;
		memset(view->owner[0].failures, 0,
		       sizeof(view->owner[0].failures));
		fill_owner(only, &view->owner[view->nr_owners++]);
	} else if (view->owner) {
		next_owners(accounts, view);
	}
}

/* Sparse cannot count locks that are taken in a loop, so these hide them. */
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

/* If @only is NULL, every reservation counts. */
static bool is_held_back(const struct flexmem_region *region,
			 const struct flexmem_account *only)
{
	return only ? flexmem_region_is_closed(region, only) :
		      !!region->reserved_for;
}

static bool is_hidden(const struct flexmem_region *region,
		      const struct flexmem_account *only)
{
	return only && (!region->reserved_for ||
			flexmem_region_is_closed(region, only));
}

/* @usable: tensors of the client can be in the region. */
static void add_room(struct flexmem_rooms *rooms,
		     const struct flexmem_region_entry *entry, bool usable)
{
	if (entry->flags & FLEXMEM_REGION_PROGRAM) {
		rooms->programs |= BIT_ULL(entry->slot);
	} else if (usable) {
		rooms->size[entry->slot] = entry->total;
		rooms->free[entry->slot] = entry->free;
	}
}

static void fill_regions(struct flexmem_table *table,
			 struct flexmem_region **region, unsigned int nr,
			 const struct flexmem_account *only,
			 struct flexmem_view *view)
{
	struct flexmem_sum all = {};
	unsigned int i;
	bool closed;

	memset(view->kinds, 0, sizeof(view->kinds));
	view->nr = nr;
	view->sum.out_used_program = 0;
	view->sum.out_allocated = 0;
	view->sum.out_allocs = table->past_allocs;
	for (i = 0; i < nr; i++) {
		flexmem_region_describe(region[i], &view->region[i]);
		if (is_hidden(region[i], only))
			view->region[i].flags |= FLEXMEM_REGION_HIDDEN;
		closed = is_held_back(region[i], only);
		add_room(&view->rooms, &view->region[i],
			 !closed && table->default_domains &
				BIT_ULL(region[i]->domain->id));
		flexmem_region_add_to(region[i], closed, &all);
		if (view->domains & BIT_ULL(region[i]->domain->id))
			flexmem_region_add_to(region[i], closed,
					      &view->kinds[region[i]->kind]);
		view->sum.out_used_program += region[i]->used_program;
		view->sum.out_allocated += view->region[i].nr_allocated;
		view->sum.out_allocs += region[i]->allocs;
	}
	view->sum.out_total = all.total;
	view->sum.out_free = all.free;
	view->sum.out_reserved = all.closed_free;
	/*
	 * The bytes that a RESIZE adds are a block in use before they are part
	 * of an allocation, so there may be one more in use than was allocated.
	 */
	view->sum.out_frees = view->sum.out_allocs -
		min(view->sum.out_allocs, view->sum.out_allocated);
	view->sum.out_region_count = nr;
	view->sum.out_capacity = flexmem_table_capacity(table);
	view->sum.out_scrubbed = atomic64_read(&table->function.scrubbed);
	view->sum.out_resets = READ_ONCE(table->resets);
	view->sum.out_timeouts = atomic64_read(&table->function.all_timeouts);
	view->sum.out_generation = flexmem_slots_generation(&table->slots);
}

/*
 * Takes a snapshot, with the first owners. @only: report what this client may
 * see; NULL: all owners.
 * Context: may sleep until another snapshot is done, but not for firmware.
 */
void flexmem_table_snapshot(struct flexmem_table *table,
			    struct flexmem_account *only,
			    struct flexmem_view *view)
{
	struct flexmem_region *region[FLEXMEM_MAX_SLOTS];
	unsigned int slot, nr = 0;

	/* Every region enters and leaves the table under this lock. */
	mutex_lock(&table->snapshot_lock);
	memset(&view->rooms, 0, sizeof(view->rooms));
	view->rooms.further = flexmem_table_max_region(table,
						       table->default_domains);
	rcu_read_lock();
	for (slot = 0; slot < table->slots.nr; slot++) {
		region[nr] = rcu_dereference(table->region[slot]);
		if (!region[nr])
			continue;
		lock_for_snapshot(table, region[nr++]);
	}
	fill_regions(table, region, nr, only, view);
	/* accounts.lock keeps all charges, so the regions can be unlocked. */
	spin_lock(&table->accounts.lock);
	while (nr)
		unlock_after_snapshot(region[--nr]);
	fill_accounts(&table->accounts, only, view);
	spin_unlock(&table->accounts.lock);
	rcu_read_unlock();
	mutex_unlock(&table->snapshot_lock);
}

/* The next owners of the list; fewer than FLEXMEM_VIEW_OWNERS only at its end. */
void flexmem_table_more_owners(struct flexmem_table *table,
			       struct flexmem_view *view)
{
	spin_lock(&table->accounts.lock);
	next_owners(&table->accounts, view);
	spin_unlock(&table->accounts.lock);
}

/* Removes figures that are not for the caller. The view's sums stay. */
void flexmem_view_hide(struct flexmem_view *view)
{
	struct flexmem_region_entry *entry;

	for (entry = view->region; entry < view->region + view->nr; entry++)
		if (entry->flags & FLEXMEM_REGION_HIDDEN)
			*entry = (struct flexmem_region_entry) {
				.region_id = entry->region_id,
				.slot = entry->slot,
				.flags = entry->flags,
				.total = entry->total,
				.domain = entry->domain,
			};
}
