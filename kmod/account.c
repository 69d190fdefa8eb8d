// SPDX-License-Identifier: GPL-2.0
/*
 * Accounts: charges and limits of open files and of cgroups.
 *
 * Every allocation is charged to its open file, to the opener's cgroup and to
 * all ancestors of that, under the lock of its region, so that blocks and
 * accounts agree at any moment. The charge itself checks the limits, so they
 * hold exactly, also when many callers allocate at once.
 *
 * Accounts know owners and charges. The domain knows how much memory there is.
 */

#include <linux/minmax.h>
#include <linux/string.h>

#include "account.h"
#include "compat.h"

/**
 * flexmem_accounts_init - no accounts yet
 * @accounts: to initialise
 */
void flexmem_accounts_init(struct flexmem_accounts *accounts)
{
	memset(accounts, 0, sizeof(*accounts));
	spin_lock_init(&accounts->lock);
	INIT_LIST_HEAD(&accounts->clients);
	accounts->cgroups = RB_ROOT;
	INIT_LIST_HEAD(&accounts->idle_owners);
	accounts->owners_by_id = RB_ROOT;
	accounts->owners_by_key = RB_ROOT;
	flexmem_gauge_init(&accounts->gauge);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_accounts_init);

static bool exceeds(u64 used, u64 more, u64 limit)
{
	return used > limit || more > limit - used;
}

/* What needs no further slot is not refused for slots, however low their limit. */
static bool is_over(const struct flexmem_account *account, u64 size,
		    unsigned int slots)
{
	return exceeds(account->used[FLEXMEM_RESOURCE_BYTES], size,
		       account->limit[FLEXMEM_RESOURCE_BYTES]) ||
	       (slots && exceeds(account->used[FLEXMEM_RESOURCE_SLOTS], slots,
				 account->limit[FLEXMEM_RESOURCE_SLOTS]));
}

/* An account and all above it. */
/* checkpatch: MACRO_ARG_REUSE - account is always the name of a pointer */
#define for_each_charged(account, client) \
	for ((account) = (client); (account); (account) = (account)->parent)

static enum flexmem_reason limit_of(const struct flexmem_account *account)
{
	return account->kind == FLEXMEM_OWNER_CLIENT ?
	       FLEXMEM_REASON_CLIENT_LIMIT : FLEXMEM_REASON_CGROUP_LIMIT;
}

static void count_handle(struct flexmem_account *client, int sign)
{
	struct flexmem_account *account;

	lockdep_assert_held(&client->accounts->lock);
	for_each_charged(account, client)
		account->used[FLEXMEM_RESOURCE_HANDLES] += sign;
}

static enum flexmem_reason
refuses_handle(const struct flexmem_account *client, unsigned int max)
{
	const unsigned int r = FLEXMEM_RESOURCE_HANDLES;
	const struct flexmem_account *account;

	for_each_charged(account, client)
		if (exceeds(account->used[r], 1, account->limit[r]))
			return limit_of(account);
	return client->used[r] < max ? FLEXMEM_REASON_NONE :
				       FLEXMEM_REASON_HANDLES;
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
	enum flexmem_reason reason;

	spin_lock(&accounts->lock);
	reason = refuses_handle(client, max);
	if (!reason)
		count_handle(client, 1);
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
	count_handle(client, -1);
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
	account->peak = max(account->peak,
			    account->used[FLEXMEM_RESOURCE_BYTES]);
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

static void undo_charge(struct flexmem_accounts *accounts,
			struct flexmem_account *client, unsigned int slot,
			u64 size)
{
	struct flexmem_account *account;

	lockdep_assert_held(&accounts->lock);
	for_each_charged(account, client)
		take_from(account, slot, size);
	accounts->owned -= size;
}

static void count_orphaned(struct flexmem_accounts *accounts,
			   struct flexmem_account *client, unsigned int slot,
			   s64 size)
{
	struct flexmem_account *account;

	lockdep_assert_held(&accounts->lock);
	for_each_charged(account, client) {
		account->orphaned += size;
		account->in[slot].orphaned += size;
	}
	accounts->orphaned += size;
	accounts->owned -= size;
}

/*
 * May cause an event, which the caller delivers after it has dropped the
 * region's lock.
 */
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
	struct flexmem_account *account;
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;

	spin_lock(&accounts->lock);
	for_each_charged(account, client) {
		if (is_over(account, size, !account->in[slot].blocks)) {
			reason = limit_of(account);
			goto unlock;
		}
	}
	for_each_charged(account, client)
		add_to(account, slot, size);
	accounts->owned += size;
	gauge_move(accounts);
unlock:
	spin_unlock(&accounts->lock);
	return reason;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_charge);

/**
 * flexmem_uncharge - a block is freed
 * @accounts: accounts of the function
 * @client: account that it was charged to
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
	if (orphaned)
		count_orphaned(accounts, client, slot, -size);
	undo_charge(accounts, client, slot, size);
	gauge_move(accounts);
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_uncharge);

/**
 * flexmem_charge_pieces - charged bytes are in one block more, or one less
 * @accounts: accounts of the function
 * @client: account that they are charged to
 * @slot: of its region, in which at least one piece stays
 * @more: 1 or -1
 *
 * Context: under the lock of the region. O(1).
 */
void flexmem_charge_pieces(struct flexmem_accounts *accounts,
			   struct flexmem_account *client, unsigned int slot,
			   int more)
{
	struct flexmem_account *account;

	spin_lock(&accounts->lock);
	for_each_charged(account, client)
		account->in[slot].blocks += more;
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_charge_pieces);

/**
 * flexmem_charge_orphan - a block was freed, but is still in use
 * @accounts: accounts of the function
 * @client: account that it is charged to
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
	count_orphaned(accounts, client, slot, size);
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_charge_orphan);

static void count_quarantined(struct flexmem_accounts *accounts,
			      unsigned int slot, s64 size)
{
	lockdep_assert_held(&accounts->lock);
	accounts->quarantined_in[slot] += size;
	accounts->quarantined += size;
}

/**
 * flexmem_uncharge_quarantined - a block goes into quarantine
 * @accounts: accounts of the function
 * @client: account that it was charged to
 * @slot: of its region
 * @size: its bytes
 *
 * In one step under the lock, so that the bytes count as in use all the time.
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
 * flexmem_account_refuses - would a limit forbid an allocation
 * @accounts: accounts of the function
 * @client: whose
 * @size: bytes
 * @slots: 1 if it is for a region that is still to be acquired; 0: for any region
 *
 * Asked before a region is acquired; flexmem_charge() decides.
 *
 * Return: FLEXMEM_REASON_NONE or the limit.
 */
enum flexmem_reason
flexmem_account_refuses(struct flexmem_accounts *accounts,
			const struct flexmem_account *client, u64 size,
			unsigned int slots)
{
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;
	const struct flexmem_account *account;

	spin_lock(&accounts->lock);
	for_each_charged(account, client) {
		if (is_over(account, size, slots)) {
			reason = limit_of(account);
			break;
		}
	}
	spin_unlock(&accounts->lock);
	return reason;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_account_refuses);

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
 * Drops all charges in the region; they must not be uncharged later. O(open
 * files): for rare events.
 */
void flexmem_accounts_remove_region(struct flexmem_accounts *accounts,
				    unsigned int slot)
{
	struct flexmem_account *account;
	struct rb_node *node;

	spin_lock(&accounts->lock);
	list_for_each_entry(account, &accounts->clients, link) {
		accounts->owned -= account->in[slot].bytes -
				   account->in[slot].orphaned;
		accounts->orphaned -= account->in[slot].orphaned;
		forget_charges(account, slot);
	}
	for (node = rb_first(&accounts->cgroups); node; node = rb_next(node))
		forget_charges(rb_entry(node, struct flexmem_account, by_id),
			       slot);
	accounts->quarantined -= accounts->quarantined_in[slot];
	accounts->quarantined_in[slot] = 0;
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_accounts_remove_region);
