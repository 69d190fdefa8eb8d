/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Accounts: the charges of open files and cgroups, and the limits of cgroups.
 */
#ifndef _FLEXMEM_ACCOUNT_H
#define _FLEXMEM_ACCOUNT_H

#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/flexmem.h>

#include "pressure.h"
#include "slot.h"

/*
 * Deeper cgroups have no account of their own. A charge walks up all accounts
 * under a lock for which other callers wait.
 */
#define FLEXMEM_MAX_DEPTH 32

struct cgroup;
struct flexmem_owner;
struct pid;

/**
 * struct flexmem_charges - charges of an account in one region
 * @bytes: bytes charged, with orphaned ones
 * @orphaned: of these, freed but still in use
 * @blocks: number of blocks
 * @era: &flexmem_slot_charges.era at the first of these charges. A later era means
 *	that the region is lost, and the charges with it
 */
struct flexmem_charges {
	u64 bytes;
	u64 orphaned;
	u32 blocks;
	u32 era;
};

/**
 * struct flexmem_slot_charges - what all owners are charged in one region
 * @owned: bytes in live allocations
 * @orphaned: bytes freed but still in use
 * @quarantined: bytes that could not be scrubbed
 * @era: how many regions were lost in this slot with something charged in them
 */
struct flexmem_slot_charges {
	u64 owned;
	u64 orphaned;
	u64 quarantined;
	u32 era;
};

/**
 * struct flexmem_account - one account
 * @refs: client: the open file, and each of its allocations. Cgroup: each
 *	account below it, and @kept
 * @accounts: all accounts of the function
 * @parent: account of the opener's cgroup, or of the cgroup's parent; a
 *	reference is held. It is charged as well. NULL: this is the root
 * @link: client: in &flexmem_accounts.clients. Cgroup: in
 *	&flexmem_accounts.limited while it is @kept
 * @by_id: cgroup: in &flexmem_accounts.cgroups
 * @kind: client or cgroup
 * @id: client: its number, never reused on this function. Cgroup: its id
 * @cgroup: cgroup: itself; a reference is held
 * @uid: client: the opener of the file
 * @pid: client: the process that opened it
 * @owner: client: the owner of its bytes, until the file is closed
 * @kept: cgroup: a limit was set for it or its children, so it has a reference to
 *	itself
 * @depth: cgroup: number of ancestors
 * @own: cgroup: bit mask of resources with a limit of its own; it inherits the
 *	other limits
 * @used: charges, by resource; bytes include @orphaned, and those of requests
 *	under way
 * @placed: of the bytes, those in blocks
 * @orphaned: bytes freed but still in use
 * @peak: largest number of bytes in blocks so far
 * @limit: cgroup: by resource
 * @each_child: cgroup: limits of each child without one of its own, by resource
 * @changes: &flexmem_accounts.changes that it has followed
 * @losses: &flexmem_accounts.losses that it has followed
 * @reservation: cgroup: number of regions that should be reserved for it
 * @reserved: cgroup: number of regions that are
 * @in: charges by slot of the region
 *
 * @accounts, @parent, @kind, @id, @cgroup, @depth, @uid and @pid never change.
 * &flexmem_accounts.lock protects the other members, except @refs. @owner does
 * not change while a handle is charged.
 */
struct flexmem_account {
	refcount_t refs;
	struct flexmem_accounts *accounts;
	struct flexmem_account *parent;
	struct list_head link;
	struct rb_node by_id;
	enum flexmem_owner_kind kind;
	u64 id;
	struct cgroup *cgroup;
	kuid_t uid;
	struct pid *pid;
	struct flexmem_owner *owner;
	bool kept;
	unsigned int depth;
	unsigned long own;
	u64 used[FLEXMEM_NR_RESOURCES];
	u64 placed;
	u64 orphaned;
	u64 peak;
	u64 limit[FLEXMEM_NR_RESOURCES];
	u64 each_child[FLEXMEM_NR_RESOURCES];
	u64 changes;
	u64 losses;
	unsigned int reservation;
	unsigned int reserved;
	struct flexmem_charges in[FLEXMEM_MAX_SLOTS];
};

/**
 * struct flexmem_accounts - all accounts of one function
 * @lock: protects the members below; a leaf. A charge for a block takes it
 *	under the lock of the region, so that block and charge change together
 * @clients: accounts of open files, and of closed files with charges, by id
 * @cgroups: accounts of cgroups, by id
 * @nr_cgroups: how many there are
 * @limited: of these, those that limits were set for, or for their children. The
 *	first is the one that flexmem_limit_forget() checks next
 * @changes: what has changed for all accounts: limits, and lost regions. An
 *	account follows when it is used, see flexmem_account_settle(), so that no
 *	change takes longer if there are many accounts
 * @losses: of these, the lost regions
 * @default_depth: the depth of cgroups that inherit @default_limit; constant
 * @default_limit: by resource
 * @owners_by_id: all owners of bytes, see owner.h
 * @owners_by_key: owners of bytes that are not strict
 * @idle_owners: of these, those without an open file, longest idle first
 * @nr_idle: how many there are
 * @last_owner: latest id of an owner
 * @nr_clients: accounts in @clients
 * @last_id: latest number of an account
 * @owned: bytes in live allocations
 * @orphaned: bytes freed but still in use
 * @quarantined: bytes that could not be scrubbed
 * @gauge: how full the function is
 * @in: of @owned, @orphaned and @quarantined, by slot of the region
 */
struct flexmem_accounts {
	spinlock_t lock; /* see above */
	struct list_head clients;
	struct rb_root cgroups;
	unsigned int nr_cgroups;
	struct list_head limited;
	u64 changes;
	u64 losses;
	unsigned int default_depth;
	u64 default_limit[FLEXMEM_NR_RESOURCES];
	struct rb_root owners_by_id;
	struct rb_root owners_by_key;
	struct list_head idle_owners;
	unsigned int nr_idle;
	u64 last_owner;
	unsigned int nr_clients;
	u64 last_id;
	u64 owned;
	u64 orphaned;
	u64 quarantined;
	struct flexmem_gauge gauge;
	struct flexmem_slot_charges in[FLEXMEM_MAX_SLOTS];
};

/* The bytes in use. The caller holds the lock. */
static inline u64
flexmem_accounts_in_use(const struct flexmem_accounts *accounts)
{
	return accounts->owned + accounts->orphaned + accounts->quarantined;
}

/* Bytes freed but still in use. */
static inline u64 flexmem_accounts_leaving(struct flexmem_accounts *accounts)
{
	u64 bytes;

	spin_lock(&accounts->lock);
	bytes = accounts->orphaned;
	spin_unlock(&accounts->lock);
	return bytes;
}

void flexmem_accounts_init(struct flexmem_accounts *accounts,
			   unsigned int default_depth);
void flexmem_accounts_fini(struct flexmem_accounts *accounts);

bool flexmem_account_is_removed(const struct flexmem_account *account);
void flexmem_account_follow(struct flexmem_account *account);

/* Whether what an account uses is charged to @above as well. */
static inline bool flexmem_account_is_below(const struct flexmem_account *account,
					    const struct flexmem_account *above)
{
	for (; account; account = account->parent)
		if (account == above)
			return true;
	return false;
}

/* Whether regions are reserved for an account or one above it; may be stale. */
static inline bool
flexmem_account_has_regions(const struct flexmem_account *account)
{
	for (; account; account = account->parent)
		if (READ_ONCE(account->reserved))
			return true;
	return false;
}

/*
 * To be called before an account's figures or limits are read, under the lock.
 * O(1), and O(slots) after a change.
 */
static inline void flexmem_account_settle(struct flexmem_account *account)
{
	if (account->changes != account->accounts->changes)
		flexmem_account_follow(account);
}

enum flexmem_reason flexmem_charge(struct flexmem_account *client, u64 size,
				   unsigned int handles,
				   unsigned int max_handles);
void flexmem_uncharge(struct flexmem_account *client, u64 size,
		      unsigned int handles);
bool flexmem_charge_file(struct flexmem_account *client);
void flexmem_uncharge_file(struct flexmem_account *client);
enum flexmem_reason flexmem_charge_block(struct flexmem_account *client,
					 unsigned int slot, u64 size);
void flexmem_uncharge_block(struct flexmem_account *client, unsigned int slot,
			    u64 size, bool orphaned);
void flexmem_charge_pieces(struct flexmem_account *client, unsigned int slot,
			   int more);
void flexmem_charge_orphan(struct flexmem_account *client, unsigned int slot,
			   u64 size);
void flexmem_uncharge_quarantined(struct flexmem_account *client,
				  unsigned int slot, u64 size);
void flexmem_charge_quarantine(struct flexmem_accounts *accounts,
			       unsigned int slot, s64 size);
bool flexmem_account_refuses_region(const struct flexmem_account *client);
bool flexmem_charge_region(struct flexmem_account *cgroup, unsigned int slot);
void flexmem_uncharge_region(struct flexmem_account *cgroup, unsigned int slot);
void flexmem_account_reserve(struct flexmem_account *cgroup,
			     unsigned int count);
void flexmem_accounts_remove_region(struct flexmem_accounts *accounts,
				    unsigned int slot);

struct flexmem_account *
flexmem_limit_find(struct flexmem_accounts *accounts,
		   struct flexmem_resource_limit *cmd);
void flexmem_limit_set(struct flexmem_accounts *accounts,
		       struct flexmem_account *account,
		       const struct flexmem_resource_limit *cmd);
void flexmem_limit_forget(struct flexmem_accounts *accounts);
void flexmem_limit_get(const struct flexmem_account *client,
		       struct flexmem_resource_limit *cmd);

#endif /* _FLEXMEM_ACCOUNT_H */
