// SPDX-License-Identifier: GPL-2.0
/*
 * Accounts: charges and limits of open files and of cgroups.
 *
 * Every allocation is charged to its open file, to the opener's cgroup, and to
 * all ancestors of the cgroup. Bytes and handle are charged before the
 * allocation is placed. A region is charged when a block in it is allocated.
 * A block and its charge change together, under the lock of the region, so they
 * always agree. The charge itself checks the limits, so limits are exact even
 * if many callers allocate at once.
 *
 * Accounts do not know how much memory the device has: domain.c does.
 */

#include <linux/bits.h>
#include <linux/cgroup.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "settings.h"
#include "tenant/account.h"
#include "trace.h"

/* Initialises the accounts of a function on which no file is open. */
void flexmem_accounts_init(struct flexmem_accounts *accounts,
			   unsigned int default_depth)
{
	memset(accounts, 0, sizeof(*accounts));
	spin_lock_init(&accounts->lock);
	accounts->clients = RB_ROOT;
	accounts->cgroups = RB_ROOT;
	INIT_LIST_HEAD(&accounts->limited);
	/* New accounts start at 0, so they compute their limits at first use. */
	accounts->changes = 1;
	accounts->default_depth = default_depth;
	memset64(accounts->default_limit, FLEXMEM_NO_LIMIT,
		 FLEXMEM_NR_RESOURCES);
	accounts->default_limit[FLEXMEM_RESOURCE_HANDLES] =
		FLEXMEM_DEFAULT_HANDLES;
	accounts->default_limit[FLEXMEM_RESOURCE_FILES] = FLEXMEM_DEFAULT_FILES;
	flexmem_gauge_init(&accounts->gauge);
}

/* Whether the cgroup of an account was removed. False for an open file. */
bool flexmem_account_is_removed(const struct flexmem_account *account)
{
#ifdef CONFIG_CGROUPS
	return account->cgroup &&
	       !(READ_ONCE(account->cgroup->self.flags) & CSS_ONLINE);
#else
	return false;
#endif
}

/* A cgroup without a limit of its own has the default, or none. */
static void inherit_limits(struct flexmem_account *account)
{
	const struct flexmem_accounts *accounts = account->accounts;
	bool defaults = account->depth == accounts->default_depth;
	unsigned int r;

	if (account->kind != FLEXMEM_OWNER_CGROUP)
		return;
	for (r = 0; r < FLEXMEM_NR_RESOURCES; r++)
		if (!(account->own & BIT(r)))
			account->limit[r] = defaults ?
				accounts->default_limit[r] : FLEXMEM_NO_LIMIT;
}

static void forget_lost(struct flexmem_account *account)
{
	struct flexmem_charges *in;
	unsigned int slot;

	for (slot = 0; slot < FLEXMEM_MAX_SLOTS; slot++) {
		in = &account->in[slot];
		if (!in->bytes || in->era == account->accounts->in[slot].era)
			continue;
		account->placed -= in->bytes;
		account->used[FLEXMEM_RESOURCE_BYTES] -= in->bytes;
		account->used[FLEXMEM_RESOURCE_REGIONS]--;
		account->orphaned -= in->orphaned;
		*in = (struct flexmem_charges){};
	}
}

/* The slow path of flexmem_account_settle(). */
void flexmem_account_follow(struct flexmem_account *account)
{
	struct flexmem_accounts *accounts = account->accounts;

	lockdep_assert_held(&accounts->lock);
	if (account->losses != accounts->losses)
		forget_lost(account);
	inherit_limits(account);
	account->losses = accounts->losses;
	account->changes = accounts->changes;
}

/* A charge of zero is never refused, even if the limit is exceeded already. */
static bool exceeds(u64 used, u64 more, u64 limit)
{
	return more > limit - min(used, limit);
}

static bool refuses(const struct flexmem_account *account,
		    enum flexmem_resource r, u64 more)
{
	return exceeds(account->used[r], more, account->limit[r]);
}

/* Loops over the accounts of the client, its cgroup, and all ancestors. */
/* checkpatch: MACRO_ARG_REUSE - account is always the name of a pointer */
#define for_each_charged(account, client) \
	for ((account) = (client); (account); (account) = (account)->parent)

/*
 * Whether other files than @client use up what @by has a limit of. For regions:
 * whether they have bytes in a region, however many files share it. O(slots).
 */
static bool is_shared(const struct flexmem_account *client,
		      const struct flexmem_account *by, enum flexmem_resource r)
{
	unsigned int slot;

	if (r != FLEXMEM_RESOURCE_REGIONS)
		return by->used[r] > client->used[r];
	for (slot = 0; slot < FLEXMEM_MAX_SLOTS; slot++)
		if (by->in[slot].bytes > client->in[slot].bytes)
			return true;
	return false;
}

/* Describes the limit of @by that refuses @charged. @refused may be NULL. */
static noinline void describe(struct flexmem_account *charged,
			      struct flexmem_account *by,
			      enum flexmem_resource r,
			      struct flexmem_refused *refused)
{
	if (!refused)
		return;
	flexmem_account_settle(charged);
	refused->by = by;
	refused->figures = (struct flexmem_refusal) {
		.resource = r,
		.flags = is_shared(charged, by, r) ? FLEXMEM_REFUSAL_SHARED : 0,
		.cgroup = by->id,
		.limit = by->limit[r],
		.used = by->used[r],
		.own = charged->used[r],
	};
}

/* Whether requests are charged to an account that have no blocks yet. */
static bool has_charges_in_flight(const struct flexmem_account *account)
{
	return account->used[FLEXMEM_RESOURCE_BYTES] != account->placed;
}

/*
 * Notes that the account's limit has refused @bytes, perhaps only because of a
 * request that fails soon. See flexmem_uncharge_failed().
 */
static void note_refusal(struct flexmem_account *account,
			 const struct flexmem_account *charged, u64 bytes,
			 u64 where)
{
	u64 cgroup;

	if (!bytes || !has_charges_in_flight(account))
		return;
	cgroup = charged->parent->id;
	if (!account->refused) {
		account->refused = bytes;
		account->refused_cgroup = cgroup;
		account->refused_where = where;
	} else if (account->refused_cgroup != cgroup ||
		   account->refused_where != where) {
		/* One of them has other rules than the one that will fail. */
		account->refused = 1;
	} else {
		account->refused = min(account->refused, bytes);
	}
}

/* Whether a charge would exceed a limit of @account or of one above it. */
static __always_inline bool is_over(struct flexmem_account *charged,
				    struct flexmem_account *account,
				    u64 bytes, enum flexmem_resource r,
				    unsigned int more,
				    struct flexmem_refused *refused)
{
	bool too_long;

	for (; account; account = account->parent) {
		flexmem_account_settle(account);
		too_long = refuses(account, FLEXMEM_RESOURCE_BYTES, bytes);
		if (too_long || refuses(account, r, more)) {
			note_refusal(account, charged, bytes,
				     refused ? refused->where : 0);
			describe(charged, account,
				 too_long ? FLEXMEM_RESOURCE_BYTES : r, refused);
			return true;
		}
	}
	return false;
}

static __always_inline void count(struct flexmem_account *client, u64 bytes,
				  enum flexmem_resource r, int more)
{
	struct flexmem_account *account;

	lockdep_assert_held(&client->accounts->lock);
	for_each_charged(account, client) {
		account->used[FLEXMEM_RESOURCE_BYTES] += bytes;
		account->used[r] += more;
	}
}

/* Charges an open file unless a limit forbids it. Under the accounts' lock. */
bool flexmem_charge_file(struct flexmem_account *client)
{
	if (is_over(client, client->parent, 0, FLEXMEM_RESOURCE_FILES, 1, NULL))
		return false;
	count(client, 0, FLEXMEM_RESOURCE_FILES, 1);
	return true;
}

/* Uncharges an open file. Under &flexmem_accounts.lock. */
void flexmem_uncharge_file(struct flexmem_account *client)
{
	count(client, 0, FLEXMEM_RESOURCE_FILES, -1);
}

/*
 * Charges the bytes and the handle of an allocation before it is placed.
 * flexmem_account_take() charges the region of a block later.
 * @handles: 1; 0 for an allocation that grows. @refused: receives the limit; may
 * be NULL.
 * Context: the caller holds no region's lock. O(depth of the cgroup). Return:
 * FLEXMEM_REASON_NONE, or the limit that forbids the charge; then nothing is
 * charged.
 */
enum flexmem_reason flexmem_charge(struct flexmem_account *client, u64 size,
				   unsigned int handles,
				   struct flexmem_refused *refused)
{
	const unsigned int r = FLEXMEM_RESOURCE_HANDLES;
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;

	spin_lock(&client->accounts->lock);
	if (handles && client->used[r] >= FLEXMEM_MAX_HANDLES)
		reason = FLEXMEM_REASON_HANDLES;
	else if (is_over(client, client->parent, size, r, handles, refused))
		reason = FLEXMEM_REASON_CGROUP_LIMIT;
	else
		count(client, size, r, handles);
	spin_unlock(&client->accounts->lock);
	trace_flexmem_charge(client, size, handles, reason);
	return reason;
}

/* Undoes flexmem_charge(), or a part. Any context. @size: bytes in no block. */
void flexmem_uncharge(struct flexmem_account *client, u64 size,
		      unsigned int handles)
{
	spin_lock(&client->accounts->lock);
	count(client, -size, FLEXMEM_RESOURCE_HANDLES, -(int)handles);
	spin_unlock(&client->accounts->lock);
}

/*
 * Does the same for a request that has failed for lack of memory. Meanwhile its
 * charge may have made a limit refuse other requests. Returns whether one of them
 * may succeed now: a smaller one, or one of another cgroup, which may have
 * reserved regions, or one that may use other regions. That any other one may
 * does not count: otherwise two requests could wake each other for ever.
 * @where: as in &struct flexmem_refused.
 */
bool flexmem_uncharge_failed(struct flexmem_account *client, u64 size,
			     unsigned int handles, u64 where)
{
	u64 cgroup = client->parent->id;
	struct flexmem_account *account;
	bool may = false;

	flexmem_uncharge(client, size, handles);
	spin_lock(&client->accounts->lock);
	for (account = client->parent; account; account = account->parent) {
		may |= account->refused &&
		       (account->refused < size ||
			account->refused_cgroup != cgroup ||
			account->refused_where != where);
		if (!has_charges_in_flight(account))
			account->refused = 0;
	}
	spin_unlock(&client->accounts->lock);
	return may;
}

static_assert(FLEXMEM_REASON_RESERVED < FLEXMEM_MAX_REASONS);

/* Counts an ALLOC of the client that ended in -ENOMEM. Any context. */
void flexmem_account_failed(struct flexmem_account *client,
			    enum flexmem_reason reason)
{
	struct flexmem_accounts *accounts = client->accounts;

	spin_lock(&accounts->lock);
	for (; client; client = client->parent)
		client->failures[reason]++;
	spin_unlock(&accounts->lock);
}

static bool refuses_region(struct flexmem_account *charged,
			   struct flexmem_account *account, unsigned int slot,
			   struct flexmem_refused *refused)
{
	for (; account; account = account->parent) {
		flexmem_account_settle(account);
		if (!flexmem_charges_region(&account->in[slot]) &&
		    refuses(account, FLEXMEM_RESOURCE_REGIONS, 1)) {
			describe(charged, account, FLEXMEM_RESOURCE_REGIONS,
				 refused);
			return true;
		}
	}
	return false;
}

static void enter_region(struct flexmem_account *account, unsigned int slot)
{
	if (!flexmem_charges_region(&account->in[slot])) {
		account->in[slot].era = account->accounts->in[slot].era;
		account->used[FLEXMEM_RESOURCE_REGIONS]++;
	}
}

static void leave_region(struct flexmem_account *account, unsigned int slot)
{
	if (!flexmem_charges_region(&account->in[slot]))
		account->used[FLEXMEM_RESOURCE_REGIONS]--;
}

/* Charges a block and its region; flexmem_charge() has charged the bytes. */
static void charge_block(struct flexmem_account *client, unsigned int slot,
			 u64 size)
{
	struct flexmem_account *account;

	for_each_charged(account, client) {
		flexmem_account_settle(account);
		enter_region(account, slot);
		account->in[slot].bytes += size;
		account->placed += size;
		if (unlikely(account->placed > account->peak))
			account->peak = account->placed;
	}
}

static void uncharge_block(struct flexmem_account *client, unsigned int slot,
			   u64 size, unsigned int handles)
{
	struct flexmem_account *account;

	for_each_charged(account, client) {
		account->in[slot].bytes -= size;
		leave_region(account, slot);
		account->placed -= size;
		account->used[FLEXMEM_RESOURCE_BYTES] -= size;
		account->used[FLEXMEM_RESOURCE_HANDLES] -= handles;
	}
}

static void count_orphaned(struct flexmem_account *client, unsigned int slot,
			   s64 size)
{
	struct flexmem_account *account;

	for_each_charged(account, client) {
		account->orphaned += size;
		account->in[slot].orphaned += size;
	}
}

/*
 * Counts the bytes of a block under another use. All bytes in blocks are
 * counted here, so that charges, sums and pressure always agree. Inline: the
 * compiler makes a short copy for ALLOC, and one for FREE.
 */
static __always_inline enum flexmem_reason
recount(struct flexmem_accounts *accounts, struct flexmem_account *client,
	unsigned int slot, u64 size, enum flexmem_use from, enum flexmem_use to,
	unsigned int handles, struct flexmem_refused *refused)
{
	bool ends = flexmem_use_is_charged(from) && !flexmem_use_is_charged(to);
	struct flexmem_slot_charges *in = &accounts->in[slot];
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;

	spin_lock(&accounts->lock);
	if (to == FLEXMEM_USE_OWNED) {
		flexmem_account_settle(client);
		/*
		 * If the client has a block in this region, so do all accounts
		 * above it, and a further block exceeds no limit of regions.
		 */
		if (!client->in[slot].bytes &&
		    refuses_region(client, client->parent, slot, refused)) {
			reason = FLEXMEM_REASON_REGION_LIMIT;
			goto unlock;
		}
		charge_block(client, slot, size);
	}
	if (from == FLEXMEM_USE_ORPHANED)
		count_orphaned(client, slot, -size);
	if (to == FLEXMEM_USE_ORPHANED)
		count_orphaned(client, slot, size);
	if (ends)
		uncharge_block(client, slot, size, handles);
	in->bytes[from] -= size;
	in->bytes[to] += size;
	accounts->bytes[from] -= size;
	accounts->bytes[to] += size;
	flexmem_gauge_move(&accounts->gauge, flexmem_accounts_in_use(accounts));
unlock:
	spin_unlock(&accounts->lock);
	return reason;
}

/*
 * Charges a block that is about to be allocated; flexmem_charge() has charged
 * the bytes. @refused: receives the limit; may be NULL.
 * Context: as flexmem_account_move(). Return: FLEXMEM_REASON_NONE, or the
 * region limit that forbids the block; then the bytes stay charged.
 */
enum flexmem_reason flexmem_account_take(struct flexmem_account *client,
					 unsigned int slot, u64 size,
					 struct flexmem_refused *refused)
{
	return recount(client->accounts, client, slot, size, FLEXMEM_USE_FREE,
		       FLEXMEM_USE_OWNED, 0, refused);
}

/*
 * Counts the bytes of a block under another use, which is not OWNED.
 * @client: account that is charged for the block before the move, or NULL.
 * @handles: 1 if the charge of a handle ends with that of the block, otherwise 0.
 * Context: under the lock of the region. The caller delivers the event about
 * pressure after it has dropped that lock. O(depth of the cgroup).
 */
void flexmem_account_move(struct flexmem_accounts *accounts,
			  struct flexmem_account *client, unsigned int slot,
			  u64 size, enum flexmem_use from, enum flexmem_use to,
			  unsigned int handles)
{
	if (likely(from == FLEXMEM_USE_OWNED && to == FLEXMEM_USE_FREE))
		recount(accounts, client, slot, size, FLEXMEM_USE_OWNED,
			FLEXMEM_USE_FREE, handles, NULL);
	else
		recount(accounts, client, slot, size, from, to, handles, NULL);
}

/* Bit mask of the slots in which an account has blocks. O(slots). */
u64 flexmem_account_slots(struct flexmem_account *account)
{
	unsigned int slot;
	u64 slots = 0;

	spin_lock(&account->accounts->lock);
	flexmem_account_settle(account);
	for (slot = 0; slot < FLEXMEM_MAX_SLOTS; slot++)
		if (account->in[slot].bytes)
			slots |= BIT_ULL(slot);
	spin_unlock(&account->accounts->lock);
	return slots;
}

/*
 * What a limit of regions lets an account have for tensors: the regions that it
 * is in, and as many of the largest as it may have besides. FLEXMEM_NO_LIMIT if
 * there is none. @left: receives how many of these bytes are free.
 */
static u64 limit_of_regions(const struct flexmem_account *account,
			    const struct flexmem_rooms *rooms, u64 *left)
{
	u64 more = account->limit[FLEXMEM_RESOURCE_REGIONS], bytes = 0;
	unsigned int slot;

	*left = FLEXMEM_NO_LIMIT;
	if (more >= FLEXMEM_MAX_SLOTS)
		return FLEXMEM_NO_LIMIT;
	*left = 0;
	for (slot = 0; slot < FLEXMEM_MAX_SLOTS; slot++) {
		if (!flexmem_charges_region(&account->in[slot]))
			continue;
		bytes += rooms->size[slot];
		*left += rooms->free[slot];
		/* The limit may have been set below what is in use. */
		more -= !!more;
	}
	*left += more * rooms->further;
	return bytes + more * rooms->further;
}

/*
 * What a limit of bytes lets an account have for tensors: the limit, less what it
 * has for programs. @left: as above.
 */
static u64 limit_of_bytes(const struct flexmem_account *account, u64 programs,
			  u64 *left)
{
	u64 limit = account->limit[FLEXMEM_RESOURCE_BYTES], bytes = 0;

	*left = FLEXMEM_NO_LIMIT;
	if (limit == FLEXMEM_NO_LIMIT)
		return limit;
	*left = limit - min(account->used[FLEXMEM_RESOURCE_BYTES], limit);
	for (; programs; programs &= programs - 1)
		bytes += account->in[__ffs64(programs)].bytes;
	return limit - min(bytes, limit);
}

/*
 * The least that the limits of an account and those above it let it have for
 * tensors. FLEXMEM_NO_LIMIT if there is none.
 * @left: receives the least that these limits still allow.
 * Context: under &flexmem_accounts.lock. O(depth * slots).
 */
u64 flexmem_account_limit(struct flexmem_account *account,
			  const struct flexmem_rooms *rooms, u64 *left)
{
	u64 smallest = FLEXMEM_NO_LIMIT, bytes, regions;

	*left = FLEXMEM_NO_LIMIT;
	for (; account; account = account->parent) {
		flexmem_account_settle(account);
		smallest = min3(smallest,
				limit_of_bytes(account, rooms->programs, &bytes),
				limit_of_regions(account, rooms, &regions));
		*left = min3(*left, bytes, regions);
	}
	return smallest;
}

/*
 * Whether a limit forbids a new region. Asked before a region is acquired, to
 * avoid a useless acquisition; the charge decides. @refused: may be NULL.
 */
bool flexmem_account_refuses_region(struct flexmem_account *account,
				    struct flexmem_refused *refused)
{
	bool is_refused;

	spin_lock(&account->accounts->lock);
	is_refused = is_over(account, account, 0, FLEXMEM_RESOURCE_REGIONS, 1,
			     refused);
	spin_unlock(&account->accounts->lock);
	return is_refused;
}

/*
 * The slots in which a file could have a block if no other file had memory, as
 * far as limits of regions say: a bit mask. U64_MAX: any, also that of a further
 * region. Under &flexmem_accounts.lock. O(depth * slots).
 */
u64 flexmem_account_may_enter(struct flexmem_account *client)
{
	struct flexmem_account *account;
	u64 may_enter = U64_MAX, charged;
	unsigned int slot;

	flexmem_account_settle(client);
	for (account = client->parent; account; account = account->parent) {
		flexmem_account_settle(account);
		charged = 0;
		for (slot = 0; slot < FLEXMEM_MAX_SLOTS; slot++)
			if (client->in[slot].bytes ||
			    account->in[slot].reserved)
				charged |= BIT_ULL(slot);
		if (hweight64(charged) >=
		    account->limit[FLEXMEM_RESOURCE_REGIONS])
			may_enter &= charged;
	}
	return may_enter;
}

/*
 * Whether limits of bytes and handles would allow an allocation of @bytes bytes
 * if no other file had any.
 */
static bool could_fit(struct flexmem_account *client, u64 bytes)
{
	const u64 *own = client->used;
	struct flexmem_account *account;
	const u64 *limit;

	for (account = client->parent; account; account = account->parent) {
		flexmem_account_settle(account);
		limit = account->limit;
		if (exceeds(own[FLEXMEM_RESOURCE_BYTES], bytes,
			    limit[FLEXMEM_RESOURCE_BYTES]) ||
		    exceeds(own[FLEXMEM_RESOURCE_HANDLES], 1,
			    limit[FLEXMEM_RESOURCE_HANDLES]))
			return false;
	}
	return true;
}

/* The wishes that the files may fulfil whose memory an ALLOC lacked, or NULL. */
static struct flexmem_wishes *wishes_for(struct flexmem_account *client,
					 enum flexmem_reason reason,
					 const struct flexmem_refused *refused)
{
	switch (reason) {
	case FLEXMEM_REASON_NONE:
	case FLEXMEM_REASON_REGION_SIZE:
	case FLEXMEM_REASON_HANDLES:
		return NULL;
	case FLEXMEM_REASON_REGION_LIMIT:
	case FLEXMEM_REASON_CGROUP_LIMIT:
		return refused->figures.flags & FLEXMEM_REFUSAL_SHARED ?
			&refused->by->wishes : NULL;
	default:
		return &client->accounts->gauge.wishes;
	}
}

/*
 * Tells other files that an ALLOC of @bytes bytes has failed, if memory that they
 * have could have served it: all files if the device had no room, and the files
 * that are charged to a limit if the limit refused it. The caller knows that the
 * regions would do.
 * Context: not under &flexmem_accounts.lock. O(depth of the cgroup). Return:
 * whether other files could help.
 */
bool flexmem_account_want(struct flexmem_listener *listener, u64 bytes,
			  enum flexmem_reason reason,
			  const struct flexmem_refused *refused)
{
	struct flexmem_account *client = listener->account;
	struct flexmem_accounts *accounts = client->accounts;
	struct flexmem_wishes *wishes;
	bool could_help;

	spin_lock(&accounts->lock);
	flexmem_account_settle(client);
	wishes = wishes_for(client, reason, refused);
	could_help = wishes && could_fit(client, bytes);
	if (could_help)
		flexmem_gauge_wish(&accounts->gauge, listener, wishes,
				   min(bytes, accounts->gauge.memory));
	spin_unlock(&accounts->lock);
	flexmem_pressure_tell(accounts);
	return could_help;
}

/* Charges a reserved region unless a limit forbids it. Under the region's lock. */
bool flexmem_charge_region(struct flexmem_account *cgroup, unsigned int slot)
{
	struct flexmem_account *account;
	bool refused;

	spin_lock(&cgroup->accounts->lock);
	refused = refuses_region(cgroup, cgroup, slot, NULL);
	if (!refused) {
		for_each_charged(account, cgroup) {
			enter_region(account, slot);
			account->in[slot].reserved = true;
		}
		WRITE_ONCE(cgroup->reserved, cgroup->reserved | BIT_ULL(slot));
	}
	spin_unlock(&cgroup->accounts->lock);
	return !refused;
}

/* Undoes flexmem_charge_region(). The region is not lost; under its lock. */
void flexmem_uncharge_region(struct flexmem_account *cgroup, unsigned int slot)
{
	struct flexmem_account *account;

	spin_lock(&cgroup->accounts->lock);
	for_each_charged(account, cgroup) {
		account->in[slot].reserved = false;
		leave_region(account, slot);
	}
	WRITE_ONCE(cgroup->reserved, cgroup->reserved & ~BIT_ULL(slot));
	spin_unlock(&cgroup->accounts->lock);
}

/*
 * Drops all charges in a region, for good. An account drops its charges at its
 * next use, so this takes O(1), however many accounts there are.
 */
void flexmem_accounts_remove_region(struct flexmem_accounts *accounts,
				    unsigned int slot)
{
	struct flexmem_slot_charges *in = &accounts->in[slot];
	enum flexmem_use use;

	spin_lock(&accounts->lock);
	if (in->bytes[FLEXMEM_USE_OWNED] + in->bytes[FLEXMEM_USE_ORPHANED]) {
		in->era++;
		accounts->losses++;
		accounts->changes++;
	}
	for (use = 0; use < FLEXMEM_NR_USES; use++) {
		accounts->bytes[use] -= in->bytes[use];
		in->bytes[use] = 0;
	}
	spin_unlock(&accounts->lock);
}
