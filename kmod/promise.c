// SPDX-License-Identifier: GPL-2.0
/*
 * What is guaranteed, and how it is kept: by refusing others.
 *
 * Two resources, kept apart:
 *
 *  - Bytes, an amount in the regions that owners share. What is guaranteed and
 *    not in use is *promised*; a charge that would leave less than that out of
 *    what there is or could be (the *reach*) is refused. A charge within the
 *    owner's own guarantee takes from the promise what it adds to the use, so
 *    it is never refused for this reason.
 *  - Slots. As long as an owner has fewer regions of its own than slots
 *    guaranteed, that many empty slots, and the least capacity that a region
 *    needs, are left by others. A region that it acquires is its own: nobody
 *    else's blocks come in.
 *
 * A client's guarantees come on top of its user's: what it has up to them is
 * its own, what is beyond counts as its user's. Handles are not scarce on the
 * device: a client's guarantee of them is kept out of its user's limit.
 */

#include <linux/math64.h>
#include <linux/minmax.h>

#include "account.h"
#include "compat.h"
#include "owner.h"
#include "promise.h"

static u64 unmet(const struct flexmem_account *account, unsigned int resource,
		 u64 used)
{
	return flexmem_shortfall(account->guarantee[resource], used);
}

/* Adds what is promised to a user beyond its clients, or takes it away. */
static void count_user(struct flexmem_accounts *accounts,
		       const struct flexmem_account *user, int sign)
{
	accounts->promised +=
		sign * unmet(user, FLEXMEM_RESOURCE_BYTES, user->shared);
	accounts->promised_slots +=
		sign * unmet(user, FLEXMEM_RESOURCE_SLOTS, user->reserved);
}

/* Likewise for a client, which its user's limits have to have room for. */
static void count_client(struct flexmem_accounts *accounts,
			 const struct flexmem_account *client,
			 struct flexmem_account *user, int sign)
{
	const unsigned int b = FLEXMEM_RESOURCE_BYTES;
	const unsigned int s = FLEXMEM_RESOURCE_SLOTS;
	const unsigned int h = FLEXMEM_RESOURCE_HANDLES;
	u64 bytes = unmet(client, b, client->shared);

	accounts->promised += sign * bytes;
	accounts->promised_slots += sign * unmet(client, s, client->reserved);
	user->promised[b] += sign * bytes;
	user->promised[s] += sign * unmet(client, s, client->reserved_used);
	user->promised[h] += sign * unmet(client, h, client->used[h]);
	/* What it has beyond its own guarantee counts as its user's. */
	user->shared += sign * flexmem_shortfall(client->shared,
						 client->guarantee[b]);
}

/**
 * flexmem_promise_withdraw - before something changes that promises depend on
 * @accounts: accounts of the function
 * @client: whose counters or guarantees change; NULL: only the user's
 * @user: its user
 */
void flexmem_promise_withdraw(struct flexmem_accounts *accounts,
			      const struct flexmem_account *client,
			      struct flexmem_account *user)
{
	lockdep_assert_held(&accounts->lock);
	count_user(accounts, user, -1);
	if (client)
		count_client(accounts, client, user, -1);
}

/**
 * flexmem_promise_make - after it has changed
 * @accounts: accounts of the function
 * @client: as for flexmem_promise_withdraw()
 * @user: likewise
 */
void flexmem_promise_make(struct flexmem_accounts *accounts,
			  const struct flexmem_account *client,
			  struct flexmem_account *user)
{
	lockdep_assert_held(&accounts->lock);
	if (client)
		count_client(accounts, client, user, 1);
	count_user(accounts, user, 1);
}

/**
 * flexmem_promise_shared_use - more bytes in use in shared regions, or fewer
 * @accounts: accounts of the function
 * @client: whose
 * @size: how many; those that are fewer as two's complement
 */
void flexmem_promise_shared_use(struct flexmem_accounts *accounts,
				struct flexmem_account *client, u64 size)
{
	const unsigned int b = FLEXMEM_RESOURCE_BYTES;
	struct flexmem_account *user = client->user;
	u64 mine = unmet(client, b, client->shared);

	lockdep_assert_held(&accounts->lock);
	accounts->promised -= mine + unmet(user, b, user->shared);
	user->promised[b] -= mine;
	user->shared -= flexmem_shortfall(client->shared, client->guarantee[b]);

	accounts->shared_used += size;
	client->shared += size;

	mine = unmet(client, b, client->shared);
	user->shared += flexmem_shortfall(client->shared, client->guarantee[b]);
	user->promised[b] += mine;
	accounts->promised += mine + unmet(user, b, user->shared);
}

/* One more of what is guaranteed out of the user's limit alone, or one less. */
static void count_one(struct flexmem_account *client, unsigned int resource,
		      u64 before, int sign)
{
	u64 *promised = &client->user->promised[resource];

	*promised -= unmet(client, resource, before);
	*promised += unmet(client, resource, before + sign);
}

/**
 * flexmem_promise_reserved_use - one more of a client's own regions has bytes
 * @client: client
 * @sign: 1, or -1 for one less
 */
void flexmem_promise_reserved_use(struct flexmem_account *client, int sign)
{
	count_one(client, FLEXMEM_RESOURCE_SLOTS, client->reserved_used, sign);
	client->reserved_used += sign;
}

/**
 * flexmem_promise_handles - a client has one more live allocation
 * @client: client
 * @sign: 1, or -1 for one less
 */
void flexmem_promise_handles(struct flexmem_account *client, int sign)
{
	u64 *used = &client->used[FLEXMEM_RESOURCE_HANDLES];

	count_one(client, FLEXMEM_RESOURCE_HANDLES, *used, sign);
	*used += sign;
}

static u64 smallest_size(const struct flexmem_accounts *accounts)
{
	return accounts->sizes[accounts->nr_sizes - 1];
}

static unsigned int free_slots(const struct flexmem_accounts *accounts)
{
	unsigned int slot, nr = 0;

	for (slot = 0; slot < accounts->slots; slot++)
		nr += !accounts->slot[slot].size;
	return flexmem_shortfall(nr, accounts->refused + accounts->coming_slots);
}

/*
 * Bytes of regions that could be acquired when @slots slots and @capacity bytes
 * may be used for them, largest regions first as they are acquired.
 */
static u64 acquirable(const struct flexmem_accounts *accounts,
		      unsigned int slots, u64 capacity)
{
	unsigned int i, nr;
	u64 bytes = 0;

	for (i = 0; i < accounts->nr_sizes && !accounts->full; i++) {
		if (accounts->sizes[i] >= accounts->too_large)
			continue;
		nr = min_t(u64, slots, div64_u64(capacity, accounts->sizes[i]));
		slots -= nr;
		capacity -= nr * accounts->sizes[i];
		bytes += nr * accounts->sizes[i];
	}
	return bytes;
}

/* Bytes of shared regions that there are or could be, likewise. */
static u64 reach_with(const struct flexmem_accounts *accounts,
		      unsigned int slots, u64 capacity)
{
	const struct flexmem_slot_use *use;
	u64 reach = accounts->coming_shared;
	unsigned int i;

	for (i = 0; i < accounts->slots; i++) {
		use = &accounts->slot[i];
		if (use->size && !use->keeper)
			reach += use->size;
	}
	return reach + acquirable(accounts, slots, capacity);
}

static u64 spare_capacity(const struct flexmem_accounts *accounts)
{
	return flexmem_shortfall(accounts->capacity,
				 accounts->acquired + accounts->coming);
}

static void update_reach(struct flexmem_accounts *accounts)
{
	u64 kept = accounts->promised_slots * smallest_size(accounts);

	lockdep_assert_held(&accounts->lock);
	accounts->reach =
		reach_with(accounts,
			   flexmem_shortfall(free_slots(accounts),
					     accounts->promised_slots),
			   flexmem_shortfall(spare_capacity(accounts), kept));
}

/*
 * What there is or could be has changed; nothing is on its way. That may be an
 * event, for flexmem_pressure_tell().
 */
static void update_gauge(struct flexmem_accounts *accounts)
{
	u64 memory = accounts->acquired +
		     acquirable(accounts, free_slots(accounts),
				spare_capacity(accounts));

	lockdep_assert_held(&accounts->lock);
	flexmem_gauge_set_memory(&accounts->gauge, memory,
				 flexmem_accounts_in_use(accounts));
}

/* The region is shared from now on, and so are the bytes in it. */
static void unkeep(struct flexmem_accounts *accounts, unsigned int slot)
{
	struct flexmem_slot_use *use = &accounts->slot[slot];
	struct flexmem_account *keeper = use->keeper, *client;

	lockdep_assert_held(&accounts->lock);
	list_for_each_entry(client, &accounts->clients, link) {
		if (client != keeper && client->user != keeper)
			continue;
		flexmem_promise_withdraw(accounts, client, client->user);
		client->shared += client->in[slot].bytes;
		accounts->shared_used += client->in[slot].bytes;
		if (client == keeper) {
			client->reserved--;
			client->reserved_used -= !!client->in[slot].blocks;
		}
		flexmem_promise_make(accounts, client, client->user);
	}
	if (keeper->kind == FLEXMEM_OWNER_USER) {
		flexmem_promise_withdraw(accounts, NULL, keeper);
		keeper->reserved--;
		flexmem_promise_make(accounts, NULL, keeper);
	}
	accounts->shared_used += use->quarantined;
	WRITE_ONCE(use->keeper, NULL);
}

/**
 * flexmem_promise_release - share what is guaranteed no longer
 * @accounts: accounts of the function
 * @keeper: whose regions of its own may be more than its guarantee of slots
 */
void flexmem_promise_release(struct flexmem_accounts *accounts,
			     struct flexmem_account *keeper)
{
	unsigned int slot = accounts->slots;

	while (keeper->reserved > keeper->guarantee[FLEXMEM_RESOURCE_SLOTS] &&
	       slot--)
		if (accounts->slot[slot].keeper == keeper)
			unkeep(accounts, slot);
	update_reach(accounts);
}

/* Who gets the next region for its own: the client, its user, or nobody. */
static struct flexmem_account *reserving_account(struct flexmem_account *client)
{
	const unsigned int s = FLEXMEM_RESOURCE_SLOTS;

	if (client->guarantee[s] > client->reserved)
		return client;
	if (client->user->guarantee[s] > client->user->reserved)
		return client->user;
	return NULL;
}

/* By how much a request adds to what is in use and promised together. */
static u64 growth_of(const struct flexmem_account *client, u64 request)
{
	const struct flexmem_account *user = client->user;
	u64 growth = flexmem_promise_growth(client, request);

	return flexmem_shortfall(growth, unmet(user, FLEXMEM_RESOURCE_BYTES,
					       user->shared));
}

/*
 * Whether a region of @size makes it harder to keep what is promised. (It may
 * not be possible any more, if the device has lost capacity; that is no reason
 * to refuse what changes nothing about it.) One for programs takes no slot of
 * those that are guaranteed, but it takes capacity, like one that is kept for
 * the client alone.
 */
static bool breaks_promises(const struct flexmem_accounts *accounts,
			    struct flexmem_account *client,
			    enum flexmem_kind kind, u64 size, u64 request)
{
	bool tensor = kind == FLEXMEM_KIND_TENSOR;
	bool kept = client && tensor && reserving_account(client);
	u64 old_spare = spare_capacity(accounts), reach, wanted, growth = 0;
	u64 spare = flexmem_shortfall(old_spare, size);
	unsigned int old_slots = free_slots(accounts);
	unsigned int slots = flexmem_shortfall(old_slots, tensor);
	u64 old_promised = accounts->promised_slots;
	u64 promised = old_promised - kept;
	u64 least = smallest_size(accounts);

	if (!old_promised && !accounts->promised)
		return false;
	if (flexmem_shortfall(promised, slots) >
		    flexmem_shortfall(old_promised, old_slots) ||
	    flexmem_shortfall(promised * least, spare) >
		    flexmem_shortfall(old_promised * least, old_spare))
		return true;

	reach = reach_with(accounts, flexmem_shortfall(slots, promised),
			   flexmem_shortfall(spare, promised * least));
	if (!kept && tensor) {
		reach += size;
		growth = client ? growth_of(client, request) : 0;
	}
	wanted = accounts->shared_used + accounts->promised;
	return flexmem_shortfall(wanted + growth, reach) >
	       flexmem_shortfall(wanted, accounts->reach);
}

/* From now on until it is there, or the accounts are told that it is not. */
static void expect_region(struct flexmem_accounts *accounts,
			  struct flexmem_account *client,
			  enum flexmem_kind kind, u64 size)
{
	bool tensor = kind == FLEXMEM_KIND_TENSOR;
	bool kept = client && tensor && reserving_account(client);

	accounts->coming = size;
	accounts->coming_shared = kept || !tensor ? 0 : size;
	accounts->coming_slots = tensor;
	update_reach(accounts);
}

static void expect_none(struct flexmem_accounts *accounts)
{
	accounts->coming = 0;
	accounts->coming_shared = 0;
	accounts->coming_slots = 0;
	update_reach(accounts);
}

/* The limits of a client and its user, if it gets something in a new region. */
static enum flexmem_reason limits_refuse(struct flexmem_account *client,
					 enum flexmem_kind kind, u64 request)
{
	const unsigned int b = FLEXMEM_RESOURCE_BYTES;
	const unsigned int s = FLEXMEM_RESOURCE_SLOTS;
	struct flexmem_account *keeper, *user = client->user;
	bool tensor = kind == FLEXMEM_KIND_TENSOR;
	u64 bytes = request, slots = 1;
	enum flexmem_reason reason;

	reason = flexmem_client_refuses(client, request, 1);
	if (reason)
		return reason;
	keeper = tensor ? reserving_account(client) : NULL;
	if (!keeper && tensor)
		bytes = flexmem_promise_growth(client, request);
	if (keeper == client &&
	    client->guarantee[s] > client->reserved_used)
		slots = 0;
	if (flexmem_user_refuses(user, b, bytes) ||
	    flexmem_user_refuses(user, s, slots))
		reason = FLEXMEM_REASON_USER_LIMIT;
	return reason;
}

/**
 * flexmem_account_refuses_region - may a region be acquired for a client now
 * @accounts: accounts of the function
 * @client: whose allocation it is for; NULL: for nobody's yet
 * @kind: what the region is for
 * @size: bytes of the region
 * @request: bytes of the allocation
 *
 * As flexmem_charge() will decide when the region is there: nobody gets regions
 * that are of no use to him. If it may, it is counted as if it was there, until
 * flexmem_accounts_add_region() or flexmem_accounts_set_device() says more.
 *
 * Context: one region at a time: under acquire_lock.
 * Return: FLEXMEM_REASON_NONE, or what forbids it.
 */
enum flexmem_reason
flexmem_account_refuses_region(struct flexmem_accounts *accounts,
			       struct flexmem_account *client,
			       enum flexmem_kind kind, u64 size, u64 request)
{
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;

	spin_lock(&accounts->lock);
	expect_none(accounts);
	if (client)
		reason = limits_refuse(client, kind, request);
	if (!reason && breaks_promises(accounts, client, kind, size, request))
		reason = FLEXMEM_REASON_GUARANTEE;
	if (!reason)
		expect_region(accounts, client, kind, size);
	spin_unlock(&accounts->lock);
	return reason;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_account_refuses_region);

/**
 * flexmem_accounts_add_region - a region has been acquired
 * @accounts: accounts of the function
 * @slot: of the region
 * @size: its bytes
 * @kind: what it is for
 * @client: whom it was acquired for, or NULL
 *
 * If a slot is guaranteed to that client or its user and has no region yet, the
 * region is theirs alone.
 */
void flexmem_accounts_add_region(struct flexmem_accounts *accounts,
				 unsigned int slot, u64 size,
				 enum flexmem_kind kind,
				 struct flexmem_account *client)
{
	struct flexmem_slot_use *use = &accounts->slot[slot];
	struct flexmem_account *keeper = NULL;

	spin_lock(&accounts->lock);
	use->size = size;
	use->kind = kind;
	use->quarantined = 0;
	if (client && kind == FLEXMEM_KIND_TENSOR)
		keeper = reserving_account(client);
	if (keeper) {
		flexmem_promise_withdraw(accounts, client, client->user);
		keeper->reserved++;
		flexmem_promise_make(accounts, client, client->user);
	}
	WRITE_ONCE(use->keeper, keeper);
	accounts->acquired += size;
	expect_none(accounts);
	update_gauge(accounts);
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_accounts_add_region);

static void forget_charges(struct flexmem_account *account, unsigned int slot)
{
	struct flexmem_charges *in = &account->in[slot];

	account->used[FLEXMEM_RESOURCE_BYTES] -= in->bytes;
	account->used[FLEXMEM_RESOURCE_SLOTS] -= !!in->blocks;
	account->orphaned -= in->orphaned;
	*in = (struct flexmem_charges){};
}

/**
 * flexmem_accounts_remove_region - a region has gone, or was lost
 * @accounts: accounts of the function
 * @slot: of the region
 *
 * What was charged in it is charged to nobody any more, and must not be
 * uncharged. O(open files): for rare events.
 */
void flexmem_accounts_remove_region(struct flexmem_accounts *accounts,
				    unsigned int slot)
{
	struct flexmem_slot_use *use = &accounts->slot[slot];
	struct flexmem_account *account;

	spin_lock(&accounts->lock);
	/* A shared one is easier to take apart; what was promised is anew. */
	if (use->keeper)
		unkeep(accounts, slot);
	list_for_each_entry(account, &accounts->clients, link) {
		u64 bytes = account->in[slot].bytes;

		accounts->owned -= bytes - account->in[slot].orphaned;
		accounts->orphaned -= account->in[slot].orphaned;
		flexmem_promise_withdraw(accounts, account, account->user);
		if (flexmem_slot_is_shared(accounts, slot)) {
			account->shared -= bytes;
			accounts->shared_used -= bytes;
		}
		forget_charges(account, slot);
		flexmem_promise_make(accounts, account, account->user);
	}
	list_for_each_entry(account, &accounts->users, link)
		forget_charges(account, slot);
	accounts->quarantined -= use->quarantined;
	if (flexmem_slot_is_shared(accounts, slot))
		accounts->shared_used -= use->quarantined;
	/* Not all at once: placement looks at the keeper, which is none by now. */
	use->size = 0;
	use->quarantined = 0;
	use->kind = FLEXMEM_KIND_TENSOR;
	update_reach(accounts);
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_accounts_remove_region);

/**
 * flexmem_accounts_too_large - what the device does not give in one piece
 * @accounts: accounts of the function
 * @size: regions of that size, and larger ones, are not to be had; U64_MAX: all
 *	may be
 */
void flexmem_accounts_too_large(struct flexmem_accounts *accounts, u64 size)
{
	spin_lock(&accounts->lock);
	accounts->too_large = size;
	update_reach(accounts);
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_accounts_too_large);

/**
 * flexmem_accounts_set_device - what the device has to give
 * @accounts: accounts of the function
 * @capacity: bytes the function may acquire
 * @acquired: bytes it has
 * @refused: slots for tensors that the firmware does not let us use
 * @full: it gets no further region
 *
 * No region is being acquired.
 */
void flexmem_accounts_set_device(struct flexmem_accounts *accounts,
				 u64 capacity, u64 acquired,
				 unsigned int refused, bool full)
{
	spin_lock(&accounts->lock);
	accounts->capacity = capacity;
	accounts->acquired = acquired;
	accounts->refused = refused;
	accounts->full = full;
	expect_none(accounts);
	update_gauge(accounts);
	spin_unlock(&accounts->lock);
	flexmem_pressure_tell(accounts);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_accounts_set_device);

/**
 * flexmem_accounts_set_refused - the firmware does not let us use all slots
 * @accounts: accounts of the function
 * @refused: slots for tensors that it does not
 *
 * Also while a region is being acquired: before anything in it is charged.
 */
void flexmem_accounts_set_refused(struct flexmem_accounts *accounts,
				  unsigned int refused)
{
	spin_lock(&accounts->lock);
	accounts->refused = refused;
	update_reach(accounts);
	spin_unlock(&accounts->lock);
}

/**
 * flexmem_promise_set - change a guarantee, as if it could always be kept
 * @accounts: accounts of the function
 * @account: whose
 * @r: of which resource
 * @guarantee: how much from now on
 */
void flexmem_promise_set(struct flexmem_accounts *accounts,
			 struct flexmem_account *account, unsigned int r,
			 u64 guarantee)
{
	bool is_user = account->kind == FLEXMEM_OWNER_USER;
	struct flexmem_account *client = is_user ? NULL : account;
	struct flexmem_account *user = is_user ? account : account->user;

	flexmem_promise_withdraw(accounts, client, user);
	account->guarantee[r] = guarantee;
	flexmem_promise_make(accounts, client, user);
	update_reach(accounts);
}

/**
 * flexmem_promise_can_keep - whether all that is promised now could be given
 * @accounts: accounts of the function
 * @account: whose guarantee has changed last
 * @r: of which resource
 *
 * Return: true if it could.
 */
bool flexmem_promise_can_keep(const struct flexmem_accounts *accounts,
			      const struct flexmem_account *account,
			      unsigned int r)
{
	const struct flexmem_account *user = account->user;
	u64 least;

	if (user &&
	    flexmem_exceeds(user->used[r], user->promised[r], user->limit[r]))
		return false;
	if (r == FLEXMEM_RESOURCE_HANDLES)
		return true;
	if (accounts->promised_slots) {
		/* As many bits as both factors have together. */
		if (accounts->promised_slots > free_slots(accounts))
			return false;
		least = accounts->promised_slots * smallest_size(accounts);
		if (accounts->full || least > spare_capacity(accounts))
			return false;
	}
	return !accounts->promised ||
	       accounts->shared_used + accounts->promised <= accounts->reach;
}
