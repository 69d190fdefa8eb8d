// SPDX-License-Identifier: GPL-2.0
/*
 * Accounts: limits and guarantees of open files and of users.
 *
 * Every allocation is charged to its open file and to the user who opened it,
 * under the lock of the region it is in, so that blocks and accounts are of one
 * moment. A limit is looked at in the charge itself: it holds exactly, also
 * when many allocate at once.
 *
 * What others are guaranteed is the business of promise.c, which also moves the
 * counters that it depends on.
 */

#include <linux/minmax.h>
#include <linux/string.h>

#include "account.h"
#include "compat.h"
#include "promise.h"

/**
 * flexmem_accounts_init - no accounts yet
 * @accounts: to initialise
 * @slots: slots for tensors, from slot 0 on
 * @sizes: what regions are acquired in, in any order
 * @nr_sizes: how many sizes, not 0
 */
void flexmem_accounts_init(struct flexmem_accounts *accounts,
			   unsigned int slots, const u64 *sizes,
			   unsigned int nr_sizes)
{
	unsigned int i, j;

	memset(accounts, 0, sizeof(*accounts));
	spin_lock_init(&accounts->lock);
	INIT_LIST_HEAD(&accounts->clients);
	INIT_LIST_HEAD(&accounts->users);
	accounts->by_id = RB_ROOT;
	flexmem_gauge_init(&accounts->gauge);
	accounts->slots = slots;
	accounts->too_large = U64_MAX;
	accounts->nr_sizes = nr_sizes;
	for (i = 0; i < nr_sizes; i++) {
		for (j = i; j && accounts->sizes[j - 1] < sizes[i]; j--)
			accounts->sizes[j] = accounts->sizes[j - 1];
		accounts->sizes[j] = sizes[i];
	}
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_accounts_init);

/*
 * What counts against a user's limit: what is charged, and what is promised to
 * its clients out of it. It is not refused what does not add to that: a client's
 * guarantee holds, also when the limit was lowered later.
 */
static u64 counted(const struct flexmem_account *user, unsigned int resource)
{
	return user->used[resource] + user->promised[resource];
}

static bool user_refuses(const struct flexmem_account *user,
			 unsigned int resource, u64 before)
{
	return counted(user, resource) > before &&
	       counted(user, resource) > user->limit[resource];
}

static void count_handle(struct flexmem_accounts *accounts,
			 struct flexmem_account *client, int sign)
{
	lockdep_assert_held(&accounts->lock);
	flexmem_promise_handles(client, sign);
	client->user->used[FLEXMEM_RESOURCE_HANDLES] += sign;
}

/**
 * flexmem_charge_handle - one more live allocation
 * @accounts: accounts of the function
 * @client: whose
 * @max: how many an open file may have at all
 *
 * Return: FLEXMEM_REASON_NONE, or the limit that forbids it.
 */
enum flexmem_reason
flexmem_charge_handle(struct flexmem_accounts *accounts,
		      struct flexmem_account *client, unsigned int max)
{
	const unsigned int r = FLEXMEM_RESOURCE_HANDLES;
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;
	u64 before;

	spin_lock(&accounts->lock);
	if (flexmem_exceeds(client->used[r], 1, client->limit[r])) {
		reason = FLEXMEM_REASON_CLIENT_LIMIT;
		goto unlock;
	}
	before = counted(client->user, r);
	count_handle(accounts, client, 1);
	if (user_refuses(client->user, r, before))
		reason = FLEXMEM_REASON_USER_LIMIT;
	else if (client->used[r] > max)
		reason = FLEXMEM_REASON_HANDLES;
	if (reason)
		count_handle(accounts, client, -1);
unlock:
	spin_unlock(&accounts->lock);
	return reason;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_charge_handle);

/**
 * flexmem_uncharge_handle - one less
 * @accounts: accounts of the function
 * @client: whose
 */
void flexmem_uncharge_handle(struct flexmem_accounts *accounts,
			     struct flexmem_account *client)
{
	spin_lock(&accounts->lock);
	count_handle(accounts, client, -1);
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_uncharge_handle);

static void add_to(struct flexmem_account *account, unsigned int slot, u64 size)
{
	struct flexmem_charges *in = &account->in[slot];

	if (!in->blocks++)
		account->used[FLEXMEM_RESOURCE_SLOTS]++;
	in->bytes += size;
	account->used[FLEXMEM_RESOURCE_BYTES] += size;
}

static void take_from(struct flexmem_account *account, unsigned int slot,
		      u64 size)
{
	struct flexmem_charges *in = &account->in[slot];

	if (!--in->blocks)
		account->used[FLEXMEM_RESOURCE_SLOTS]--;
	in->bytes -= size;
	account->used[FLEXMEM_RESOURCE_BYTES] -= size;
}

static void apply_charge(struct flexmem_accounts *accounts,
			 struct flexmem_account *client, unsigned int slot,
			 u64 size)
{
	lockdep_assert_held(&accounts->lock);
	if (accounts->slot[slot].keeper == client && !client->in[slot].blocks)
		flexmem_promise_reserved_use(client, 1);
	add_to(client, slot, size);
	add_to(client->user, slot, size);
	accounts->owned += size;
	if (flexmem_slot_is_shared(accounts, slot))
		flexmem_promise_shared_use(accounts, client, size);
}

static void undo_charge(struct flexmem_accounts *accounts,
			struct flexmem_account *client, unsigned int slot,
			u64 size)
{
	lockdep_assert_held(&accounts->lock);
	take_from(client, slot, size);
	take_from(client->user, slot, size);
	accounts->owned -= size;
	if (accounts->slot[slot].keeper == client && !client->in[slot].blocks)
		flexmem_promise_reserved_use(client, -1);
	if (flexmem_slot_is_shared(accounts, slot))
		flexmem_promise_shared_use(accounts, client, -size);
}

/**
 * flexmem_client_refuses - the limits of a client
 * @client: client, before anything has been charged
 * @size: bytes more
 * @slots: slots more, or 0
 *
 * Return: FLEXMEM_REASON_NONE or FLEXMEM_REASON_CLIENT_LIMIT.
 */
enum flexmem_reason flexmem_client_refuses(const struct flexmem_account *client,
					   u64 size, u64 slots)
{
	if (flexmem_exceeds(client->used[FLEXMEM_RESOURCE_BYTES], size,
			    client->limit[FLEXMEM_RESOURCE_BYTES]) ||
	    (slots &&
	     flexmem_exceeds(client->used[FLEXMEM_RESOURCE_SLOTS], slots,
			     client->limit[FLEXMEM_RESOURCE_SLOTS])))
		return FLEXMEM_REASON_CLIENT_LIMIT;
	return FLEXMEM_REASON_NONE;
}

/* That may be an event: who took the region's lock tells of it without. */
static void gauge_move(struct flexmem_accounts *accounts)
{
	lockdep_assert_held(&accounts->lock);
	flexmem_gauge_move(&accounts->gauge, flexmem_accounts_in_use(accounts));
}

/**
 * flexmem_charge - charge a block that is about to be allocated
 * @accounts: accounts of the function
 * @client: whose
 * @slot: of its region
 * @size: its bytes
 *
 * Context: under the lock of the region. O(1).
 * Return: FLEXMEM_REASON_NONE, or what forbids it; then nothing is charged.
 */
enum flexmem_reason flexmem_charge(struct flexmem_accounts *accounts,
				   struct flexmem_account *client,
				   unsigned int slot, u64 size)
{
	struct flexmem_account *user = client->user, *keeper;
	const unsigned int b = FLEXMEM_RESOURCE_BYTES;
	const unsigned int s = FLEXMEM_RESOURCE_SLOTS;
	enum flexmem_reason reason;
	u64 before, bytes, slots;

	spin_lock(&accounts->lock);
	keeper = accounts->slot[slot].keeper;
	reason = flexmem_client_refuses(client, size, !client->in[slot].blocks);
	if (!reason && keeper && keeper != client && keeper != user)
		reason = FLEXMEM_REASON_GUARANTEE;
	if (reason)
		goto unlock;

	bytes = counted(user, b);
	slots = counted(user, s);
	before = accounts->shared_used + accounts->promised;
	apply_charge(accounts, client, slot, size);
	if (user_refuses(user, b, bytes) || user_refuses(user, s, slots))
		reason = FLEXMEM_REASON_USER_LIMIT;
	if (!reason && accounts->shared_used + accounts->promised > before &&
	    accounts->promised &&
	    accounts->shared_used + accounts->promised > accounts->reach)
		reason = FLEXMEM_REASON_GUARANTEE;
	if (reason) {
		undo_charge(accounts, client, slot, size);
	} else {
		client->peak =
			max(client->peak, client->used[FLEXMEM_RESOURCE_BYTES]);
		client->user->peak =
			max(client->user->peak,
			    client->user->used[FLEXMEM_RESOURCE_BYTES]);
		gauge_move(accounts);
	}
unlock:
	spin_unlock(&accounts->lock);
	return reason;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_charge);

/**
 * flexmem_uncharge - a block is given back
 * @accounts: accounts of the function
 * @client: whose it was
 * @slot: of its region
 * @size: its bytes
 * @orphaned: flexmem_charge_orphan() was called for it
 *
 * Context: under the lock of the region. O(1).
 */
void flexmem_uncharge(struct flexmem_accounts *accounts,
		      struct flexmem_account *client, unsigned int slot,
		      u64 size, bool orphaned)
{
	spin_lock(&accounts->lock);
	if (orphaned) {
		client->orphaned -= size;
		client->in[slot].orphaned -= size;
		client->user->orphaned -= size;
		client->user->in[slot].orphaned -= size;
		accounts->orphaned -= size;
		accounts->owned += size;
	}
	undo_charge(accounts, client, slot, size);
	gauge_move(accounts);
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_uncharge);

/**
 * flexmem_charge_pieces - what is charged is in one piece more, or one less
 * @accounts: accounts of the function
 * @client: whose it is
 * @slot: of its region, in which at least one piece stays
 * @more: 1 or -1
 *
 * Context: under the lock of the region. O(1).
 */
void flexmem_charge_pieces(struct flexmem_accounts *accounts,
			   struct flexmem_account *client, unsigned int slot,
			   int more)
{
	spin_lock(&accounts->lock);
	client->in[slot].blocks += more;
	client->user->in[slot].blocks += more;
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_charge_pieces);

/**
 * flexmem_charge_orphan - a block was freed, but is still in use
 * @accounts: accounts of the function
 * @client: whose it is
 * @slot: of its region
 * @size: its bytes
 *
 * It stays charged, but counts as orphaned.
 *
 * Context: under the lock of the region. O(1).
 */
void flexmem_charge_orphan(struct flexmem_accounts *accounts,
			   struct flexmem_account *client, unsigned int slot,
			   u64 size)
{
	spin_lock(&accounts->lock);
	client->orphaned += size;
	client->in[slot].orphaned += size;
	client->user->orphaned += size;
	client->user->in[slot].orphaned += size;
	accounts->orphaned += size;
	accounts->owned -= size;
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_charge_orphan);

static void count_quarantined(struct flexmem_accounts *accounts,
			      unsigned int slot, s64 size)
{
	lockdep_assert_held(&accounts->lock);
	accounts->slot[slot].quarantined += size;
	accounts->quarantined += size;
	if (flexmem_slot_is_shared(accounts, slot))
		accounts->shared_used += size;
}

/**
 * flexmem_uncharge_quarantined - a block goes into quarantine
 * @accounts: accounts of the function
 * @client: who was charged for it
 * @slot: of its region
 * @size: its bytes
 *
 * In one piece: they are in use all the time.
 *
 * Context: under the lock of the region. O(1).
 */
void flexmem_uncharge_quarantined(struct flexmem_accounts *accounts,
				  struct flexmem_account *client,
				  unsigned int slot, u64 size)
{
	spin_lock(&accounts->lock);
	undo_charge(accounts, client, slot, size);
	count_quarantined(accounts, slot, size);
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_uncharge_quarantined);

/**
 * flexmem_charge_quarantine - bytes go into quarantine, or come out of it
 * @accounts: accounts of the function
 * @slot: of their region
 * @size: how many; negative: come out
 *
 * Context: under the lock of the region. O(1).
 */
void flexmem_charge_quarantine(struct flexmem_accounts *accounts,
			       unsigned int slot, s64 size)
{
	spin_lock(&accounts->lock);
	count_quarantined(accounts, slot, size);
	gauge_move(accounts);
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_charge_quarantine);

/**
 * flexmem_account_refuses - would a limit forbid any allocation of that size
 * @accounts: accounts of the function
 * @client: whose
 * @size: bytes
 *
 * Asked before a region is acquired; flexmem_charge() decides.
 *
 * Return: FLEXMEM_REASON_NONE or the limit.
 */
enum flexmem_reason
flexmem_account_refuses(struct flexmem_accounts *accounts,
			struct flexmem_account *client, u64 size)
{
	enum flexmem_reason reason;

	spin_lock(&accounts->lock);
	reason = flexmem_client_refuses(client, size, 0);
	if (!reason &&
	    flexmem_user_refuses(client->user, FLEXMEM_RESOURCE_BYTES,
				 flexmem_promise_growth(client, size)))
		reason = FLEXMEM_REASON_USER_LIMIT;
	spin_unlock(&accounts->lock);
	return reason;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_account_refuses);

/* Sums over all accounts, to compare with what is kept. */
struct account_sums {
	u64 bytes;
	u64 orphaned;
	u64 promised;
	u64 slots;
};

static const char *check_account(const struct flexmem_account *account,
				 struct account_sums *sums)
{
	const unsigned int b = FLEXMEM_RESOURCE_BYTES;
	const unsigned int s = FLEXMEM_RESOURCE_SLOTS;
	u64 bytes = 0, orphaned = 0, slots = 0;
	unsigned int i;

	for (i = 0; i < FLEXMEM_MAX_SLOTS; i++) {
		bytes += account->in[i].bytes;
		orphaned += account->in[i].orphaned;
		slots += !!account->in[i].blocks;
		if (!account->in[i].blocks && account->in[i].bytes)
			return "bytes charged without a block";
	}
	if (bytes != account->used[FLEXMEM_RESOURCE_BYTES])
		return "bytes of an account miscounted";
	if (orphaned != account->orphaned || orphaned > bytes)
		return "orphaned bytes of an account miscounted";
	if (slots != account->used[FLEXMEM_RESOURCE_SLOTS])
		return "slots of an account miscounted";
	if (account->reserved > account->guarantee[FLEXMEM_RESOURCE_SLOTS])
		return "more regions kept than guaranteed";
	sums->bytes += bytes;
	sums->orphaned += orphaned;
	sums->promised += flexmem_shortfall(account->guarantee[b],
					    account->shared);
	sums->slots += flexmem_shortfall(account->guarantee[s],
					 account->reserved);
	return NULL;
}

/* What a client has in shared regions, and in those kept for it. */
static const char *check_regions(const struct flexmem_accounts *accounts,
				 const struct flexmem_account *client)
{
	u64 shared = 0, reserved = 0, reserved_used = 0;
	unsigned int i;

	for (i = 0; i < FLEXMEM_MAX_SLOTS; i++) {
		if (flexmem_slot_is_shared(accounts, i))
			shared += client->in[i].bytes;
		if (accounts->slot[i].keeper != client)
			continue;
		reserved++;
		reserved_used += !!client->in[i].blocks;
	}
	if (shared != client->shared)
		return "bytes in shared regions miscounted";
	if (reserved != client->reserved)
		return "kept regions miscounted";
	if (reserved_used != client->reserved_used)
		return "kept regions in use miscounted";
	return NULL;
}

/* What a user's clients have and are promised, of which its limits know. */
static const char *check_user(const struct flexmem_accounts *accounts,
			      const struct flexmem_account *user)
{
	const unsigned int b = FLEXMEM_RESOURCE_BYTES;
	const unsigned int s = FLEXMEM_RESOURCE_SLOTS;
	const unsigned int h = FLEXMEM_RESOURCE_HANDLES;
	u64 promised[FLEXMEM_NR_RESOURCES] = {}, shared = 0, handles = 0;
	const struct flexmem_account *client;

	list_for_each_entry(client, &accounts->clients, link) {
		if (client->user != user)
			continue;
		promised[b] += flexmem_shortfall(client->guarantee[b],
						 client->shared);
		promised[s] += flexmem_shortfall(client->guarantee[s],
						 client->reserved_used);
		promised[h] += flexmem_shortfall(client->guarantee[h],
						 client->used[h]);
		shared += flexmem_shortfall(client->shared,
					    client->guarantee[b]);
		handles += client->used[h];
	}
	if (memcmp(promised, user->promised, sizeof(promised)))
		return "what is promised to a user's clients miscounted";
	if (shared != user->shared)
		return "shared bytes of a user miscounted";
	return handles == user->used[h] ? NULL : "handles of a user miscounted";
}

/**
 * flexmem_accounts_check - check every invariant
 * @accounts: accounts of a function
 *
 * Context: O(open files * users). For tests.
 * Return: NULL, or what is wrong.
 */
const char *flexmem_accounts_check(struct flexmem_accounts *accounts)
{
	struct account_sums clients = {}, users = {};
	struct flexmem_account *account;
	const char *wrong = NULL;

	spin_lock(&accounts->lock);
	list_for_each_entry(account, &accounts->clients, link)
		wrong = wrong ?: check_account(account, &clients);
	list_for_each_entry(account, &accounts->users, link)
		wrong = wrong ?: check_account(account, &users);
	if (!wrong && (clients.bytes != users.bytes ||
		       clients.bytes != accounts->owned + accounts->orphaned))
		wrong = "bytes of clients and of users differ";
	if (!wrong && (clients.orphaned != users.orphaned ||
		       clients.orphaned != accounts->orphaned))
		wrong = "orphaned bytes differ";
	if (!wrong && clients.promised + users.promised != accounts->promised)
		wrong = "promised bytes miscounted";
	if (!wrong && clients.slots + users.slots != accounts->promised_slots)
		wrong = "promised slots miscounted";
	list_for_each_entry(account, &accounts->clients, link)
		wrong = wrong ?: check_regions(accounts, account);
	list_for_each_entry(account, &accounts->users, link)
		wrong = wrong ?: check_user(accounts, account);
	spin_unlock(&accounts->lock);
	return wrong;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_accounts_check);
