/* SPDX-License-Identifier: GPL-2.0 */
/* Accounts: the charges of open files and cgroups, and the limits of cgroups. */
#ifndef _FLEXMEM_ACCOUNT_H
#define _FLEXMEM_ACCOUNT_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/flexmem.h>

#include "block/block.h"
#include "gate/function.h"
#include "parts/pressure.h"

struct cgroup;
struct pid;

/**
 * struct flexmem_charges - charges of an account in one region
 * @bytes: bytes charged, including @orphaned
 * @orphaned: bytes freed but still in use
 * @reserved: the region is reserved for the account, or for one below it
 * @era: value of &flexmem_slot_charges.era at the first of these charges. If that
 *	value has grown, the region was lost, and these charges are void
 */
struct flexmem_charges {
	u64 bytes;
	u64 orphaned;
	u32 era;
	bool reserved;
};

static inline bool flexmem_charges_region(const struct flexmem_charges *in)
{
	return in->bytes || in->reserved;
}

/**
 * struct flexmem_slot_charges - what the blocks of one region are used for
 * @bytes: as &flexmem_accounts.bytes
 * @era: how many regions with charges were lost in this slot
 */
struct flexmem_slot_charges {
	u64 bytes[FLEXMEM_NR_USES];
	u32 era;
};

/**
 * struct flexmem_rooms - what an account could have in the regions
 * @programs: bit mask of the slots whose regions are for programs only
 * @further: bytes of the largest further region for tensors
 * @size: bytes of the regions for tensors, by slot; 0 if another cgroup has
 *	reserved the region, or if its domain must be asked for
 * @free: bytes in them that are free
 */
struct flexmem_rooms {
	u64 programs;
	u64 further;
	u64 size[FLEXMEM_MAX_SLOTS];
	u64 free[FLEXMEM_MAX_SLOTS];
};

/**
 * struct flexmem_queued - an entry of a queue of leaving.c
 * @link: in &flexmem_leaving.queue
 * @passed: of an ALLOC that waits for all entries in front; NULL: a file
 */
struct flexmem_queued {
	struct list_head link;
	struct completion *passed;
};

/**
 * struct flexmem_account - one account
 * @refs: client: one for the open file, and one for each of its allocations.
 *	Cgroup: one for each account below it, one if @kept, and one for a
 *	reservation (reservation.c)
 * @accounts: all accounts of the function
 * @parent: client: account of the opener's cgroup. Cgroup: account of its
 *	parent. Everything is charged to @parent too. A reference to it is held.
 *	NULL: this is the root
 * @link: cgroup: in &flexmem_accounts.limited while it is @kept
 * @by_id: in &flexmem_accounts.clients or &flexmem_accounts.cgroups
 * @kind: client or cgroup
 * @id: client: its number, never reused on this function. Cgroup: its id
 * @cgroup: cgroup: the kernel's cgroup; a reference is held
 * @uid: client: the opener of the file
 * @pid: client: the process that opened the file
 * @is_open: client: the file is open
 * @kept: cgroup: it has a limit of its own, so it has a reference to itself
 * @depth: cgroup: number of ancestors
 * @own: cgroup: bit mask of the resources for which it has a limit of its own
 * @used: charges, by resource. Bytes include @orphaned, and the bytes of
 *	requests that are not placed yet
 * @placed: bytes charged that are in blocks
 * @orphaned: bytes freed but still in use
 * @leaving: client: its allocations that wait for fences, oldest first
 * @leaving_bytes: client: bytes in @leaving, also in lost regions
 * @waits: client: the first allocation that waits for a fence, for each fence
 * @ready: client: allocations of @leaving that a task must look at, since a fence
 *	has signalled or the last reference was just put
 * @queued: client: in the queue until the worker looks at @ready; with a reference
 * @turn: client: held to take allocations out of @ready and end them
 * @peak: largest number of bytes in blocks so far
 * @limit: cgroup: its limits, by resource
 * @changes: &flexmem_accounts.changes when the account was last settled
 * @losses: &flexmem_accounts.losses when the account was last settled
 * @reserves: cgroup: in &flexmem_table.reservations while it has a @reservation
 * @reservation: cgroup: number of regions that should be reserved for it
 * @reservation_size: cgroup: bytes of each of these regions
 * @told: cgroup: a message in the log has said that it has too few of them
 * @reserved: cgroup: bit mask of the slots whose regions are reserved for it now
 * @refused: cgroup: bytes of the smallest request that its limits have refused while
 *	others were charged but not placed yet; 0: none; 1: requests of several
 *	cgroups, or for several places
 * @refused_cgroup: cgroup: id of the cgroup whose request that was
 * @refused_where: cgroup: where that request could have been placed
 * @wishes: cgroup: wishes that files with charges in it could fulfil
 * @failures: ALLOCs that ended in -ENOMEM, by enum flexmem_reason
 * @in: charges by slot of the region
 *
 * @accounts, @parent, @kind, @id, @cgroup, @depth, @uid and @pid never change.
 * &flexmem_leaving.lock protects @leaving to @queued. acquire_lock protects
 * @reserves, @reservation_size and @told, and is held as well while @reservation
 * and @reserved change.
 * &flexmem_accounts.lock protects the other members, except @refs.
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
	bool is_open;
	bool kept;
	unsigned int depth;
	unsigned long own;
	u64 used[FLEXMEM_NR_RESOURCES];
	u64 placed;
	u64 orphaned;
	struct list_head leaving;
	u64 leaving_bytes;
	struct rb_root waits;
	struct list_head ready;
	struct flexmem_queued queued;
	struct mutex turn; /* held to end allocations */
	u64 peak;
	u64 limit[FLEXMEM_NR_RESOURCES];
	u64 changes;
	u64 losses;
	struct list_head reserves;
	unsigned int reservation;
	u64 reservation_size;
	bool told;
	u64 reserved;
	u64 refused;
	u64 refused_cgroup;
	u64 refused_where;
	struct flexmem_wishes wishes;
	u64 failures[FLEXMEM_MAX_REASONS];
	struct flexmem_charges in[FLEXMEM_MAX_SLOTS];
};

/**
 * struct flexmem_refused - the limit that has refused a charge
 * @by: the account that has the limit: the charged account, or one above it. The
 *	charged account keeps it. NULL: no limit has refused the charge
 * @figures: the limit and its use at that moment, for a caller that may see @by
 * @where: set by the caller: a number for the places of the request, the same for
 *	all requests that fit into the same places if they are no larger
 */
struct flexmem_refused {
	struct flexmem_account *by;
	struct flexmem_refusal figures;
	u64 where;
};

/**
 * struct flexmem_accounts - all accounts of one function
 * @function: the function; NULL for the limits of all functions. Set once
 * @link: in the list of all functions' accounts in limit.c
 * @found: the account that a command of limit.c is about to change
 * @lock: protects the members below. A charge for a block takes it under the
 *	lock of the region, so that the block and its charge change together.
 *	Only SNAPSHOT takes a lock under it, &flexmem_leaving.lock
 * @clients: accounts of open files, and of closed files with charges, by id
 * @cgroups: accounts of cgroups, by id
 * @nr_cgroups: number of accounts in @cgroups
 * @limited: the accounts of @cgroups that are kept, because the cgroup has a
 *	limit of its own. flexmem_owner_forget() checks the first one next
 * @changes: number of limits set and regions lost. Each account applies these at
 *	its next use, so their cost does not depend on the number of accounts
 * @losses: how many of @changes were lost regions
 * @default_depth: the depth of cgroups that inherit @default_limit; constant
 * @default_limit: the default limits, by resource
 * @nr_clients: number of accounts in @clients
 * @last_id: number of the newest client
 * @bytes: bytes in blocks, by use. As accounts do not know how much memory there
 *	is, the number of free bytes begins at 0 and counts down: its negative is
 *	the number of all other bytes
 * @gauge: how full the function's memory is
 * @in: the parts of @bytes in each region, by slot
 */
struct flexmem_accounts {
	const struct flexmem_function *function;
	struct list_head link;
	struct flexmem_account *found;
	spinlock_t lock; /* protects the members below */
	struct rb_root clients;
	struct rb_root cgroups;
	unsigned int nr_cgroups;
	struct list_head limited;
	u64 changes;
	u64 losses;
	unsigned int default_depth;
	u64 default_limit[FLEXMEM_NR_RESOURCES];
	unsigned int nr_clients;
	u64 last_id;
	u64 bytes[FLEXMEM_NR_USES];
	struct flexmem_gauge gauge;
	struct flexmem_slot_charges in[FLEXMEM_MAX_SLOTS];
};

/*
 * Counts memory that becomes free, for flexmem_pressure_tell_free(). Context: any,
 * also under the lock of a region: who finds no room there knows of the free.
 */
static inline void flexmem_accounts_count_free(struct flexmem_accounts *accounts)
{
	/* The free bytes change before the number. Pairs with the searches. */
	smp_mb__before_atomic();
	atomic64_inc(&accounts->gauge.frees);
	/* Counts before @hungry is read. Pairs with flexmem_pressure_failed(). */
	smp_mb__after_atomic();
}

/*
 * Notes that an ALLOC that failed may succeed now. Context: any, but not under
 * &flexmem_accounts.lock.
 */
static inline void flexmem_accounts_freed(struct flexmem_accounts *accounts)
{
	flexmem_accounts_count_free(accounts);
	flexmem_pressure_tell_free(accounts);
}

/* Bytes that no allocation can get now. The caller holds accounts->lock. */
static inline u64
flexmem_accounts_in_use(const struct flexmem_accounts *accounts)
{
	return -accounts->bytes[FLEXMEM_USE_FREE];
}

void flexmem_accounts_init(struct flexmem_accounts *accounts,
			   unsigned int default_depth);
void flexmem_accounts_fini(struct flexmem_accounts *accounts);

bool flexmem_account_is_removed(const struct flexmem_account *account);
void flexmem_account_follow(struct flexmem_account *account);

/* Whether everything that is charged to an account is charged to @above too. */
static inline bool flexmem_account_is_below(const struct flexmem_account *account,
					    const struct flexmem_account *above)
{
	for (; account; account = account->parent)
		if (account == above)
			return true;
	return false;
}

/* Whether regions are reserved for an account or an ancestor. May be stale. */
static inline bool
flexmem_account_has_regions(const struct flexmem_account *account)
{
	for (; account; account = account->parent)
		if (READ_ONCE(account->reserved))
			return true;
	return false;
}

/*
 * Brings an account up to date. Must be called before its charges or limits are
 * read. Under &flexmem_accounts.lock. O(1); O(slots) after a change.
 */
static inline void flexmem_account_settle(struct flexmem_account *account)
{
	if (account->changes != account->accounts->changes)
		flexmem_account_follow(account);
}

enum flexmem_reason flexmem_charge(struct flexmem_account *client, u64 size,
				   unsigned int handles,
				   struct flexmem_refused *refused);
void flexmem_uncharge(struct flexmem_account *client, u64 size,
		      unsigned int handles);
void flexmem_account_failed(struct flexmem_account *client,
			    enum flexmem_reason reason);
bool flexmem_uncharge_failed(struct flexmem_account *client, u64 size,
			     unsigned int handles, u64 where);
bool flexmem_charge_file(struct flexmem_account *client);
void flexmem_uncharge_file(struct flexmem_account *client);
enum flexmem_reason flexmem_account_take(struct flexmem_account *client,
					 unsigned int slot, u64 size,
					 struct flexmem_refused *refused);
void flexmem_account_move(struct flexmem_accounts *accounts,
			  struct flexmem_account *client, unsigned int slot,
			  u64 size, enum flexmem_use from,
			  enum flexmem_use to, unsigned int handles);
u64 flexmem_account_slots(struct flexmem_account *account);
u64 flexmem_account_may_enter(struct flexmem_account *client);
u64 flexmem_account_limit(struct flexmem_account *account,
			  const struct flexmem_rooms *rooms, u64 *left);
bool flexmem_account_want(struct flexmem_listener *listener, u64 bytes,
			  enum flexmem_reason reason,
			  const struct flexmem_refused *refused);
bool flexmem_account_refuses_region(struct flexmem_account *account,
				    struct flexmem_refused *refused);
bool flexmem_charge_region(struct flexmem_account *cgroup, unsigned int slot);
void flexmem_uncharge_region(struct flexmem_account *cgroup, unsigned int slot);
void flexmem_accounts_remove_region(struct flexmem_accounts *accounts,
				    unsigned int slot);

struct flexmem_account *
flexmem_limit_find(struct flexmem_accounts *accounts,
		   struct flexmem_resource_limit *cmd);
void flexmem_limit_set(struct flexmem_accounts *accounts,
		       struct flexmem_account *account,
		       const struct flexmem_resource_limit *cmd);
int flexmem_limit_set_all(struct flexmem_resource_limit *cmd);
int flexmem_limit_join(struct flexmem_accounts *accounts);
void flexmem_limit_leave(struct flexmem_accounts *accounts);
void flexmem_limit_init(void);
void flexmem_limit_exit(void);

#endif /* _FLEXMEM_ACCOUNT_H */
