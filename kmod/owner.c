// SPDX-License-Identifier: GPL-2.0
/*
 * Owners: who bytes belong to.
 *
 * An owner is known by its account: that of an open file, or that of the user who
 * opened it, which all of the user's files share. Its id is never used again, so
 * whoever remembers it (a block whose bytes it was) takes nobody else for it.
 *
 * An open file's account stays until the file is closed and nobody refers to it
 * any more: what is charged has somebody to be charged to. A user's stays longer,
 * so that the next file finds the user's bytes and limits.
 */

#include <linux/jiffies.h>
#include <linux/pid.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "compat.h"
#include "owner.h"

static struct flexmem_account *to_account(const struct rb_node *node)
{
	return rb_entry(node, struct flexmem_account, by_id);
}

static bool id_less(struct rb_node *a, const struct rb_node *b)
{
	return to_account(a)->id < to_account(b)->id;
}

static int id_cmp(const void *key, const struct rb_node *node)
{
	u64 id = *(const u64 *)key, other = to_account(node)->id;

	return id == other ? 0 : id < other ? -1 : 1;
}

/**
 * flexmem_owner_find - who has an id
 * @accounts: accounts of the function
 * @id: any number
 *
 * Context: under &flexmem_accounts.lock. O(log owners).
 * Return: the account, or NULL if there is none (any more).
 */
struct flexmem_account *flexmem_owner_find(struct flexmem_accounts *accounts,
					   u64 id)
{
	struct rb_node *node;

	lockdep_assert_held(&accounts->lock);
	node = rb_find(&id, &accounts->by_id, id_cmp);
	return node ? to_account(node) : NULL;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_owner_find);

static void account_init(struct flexmem_account *account,
			 struct flexmem_accounts *accounts,
			 enum flexmem_owner_kind kind, kuid_t uid)
{
	memset(account, 0, sizeof(*account));
	refcount_set(&account->refs, 1);
	account->accounts = accounts;
	account->kind = kind;
	account->uid = uid;
	memset64(account->limit, FLEXMEM_NO_LIMIT, FLEXMEM_NR_RESOURCES);
}

static void add_account(struct flexmem_account *account,
			struct list_head *before)
{
	struct flexmem_accounts *accounts = account->accounts;

	lockdep_assert_held(&accounts->lock);
	account->id = ++accounts->last_id;
	rb_add(&account->by_id, &accounts->by_id, id_less);
	list_add_tail(&account->link, before);
}

static void remove_account(struct flexmem_account *account)
{
	lockdep_assert_held(&account->accounts->lock);
	rb_erase(&account->by_id, &account->accounts->by_id);
	list_del(&account->link);
}

/* Whether a user's account says more than that there is one. */
static bool has_quota(const struct flexmem_account *user)
{
	unsigned int i;

	for (i = 0; i < FLEXMEM_NR_RESOURCES; i++)
		if (user->limit[i] != FLEXMEM_NO_LIMIT)
			return true;
	return false;
}

/**
 * flexmem_owner_find_user - a user's account, if there is one
 * @accounts: accounts of the function
 * @uid: user
 *
 * Return: the account, or NULL.
 */
struct flexmem_account *
flexmem_owner_find_user(struct flexmem_accounts *accounts, kuid_t uid)
{
	struct flexmem_account *user;

	lockdep_assert_held(&accounts->lock);
	list_for_each_entry(user, &accounts->users, link)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

/**
 * flexmem_owner_of_user - a user's account
 * @accounts: accounts of the function
 * @uid: user
 * @fresh: memory for a new one; NULL afterwards if it was needed
 *
 * Context: under &flexmem_accounts.lock.
 * Return: the account.
 */
struct flexmem_account *
flexmem_owner_of_user(struct flexmem_accounts *accounts, kuid_t uid,
		      struct flexmem_account **fresh)
{
	struct flexmem_account *user = flexmem_owner_find_user(accounts, uid);
	struct list_head *before = &accounts->users;
	struct flexmem_account *other;

	lockdep_assert_held(&accounts->lock);
	if (user)
		return user;
	user = *fresh;
	*fresh = NULL;
	account_init(user, accounts, FLEXMEM_OWNER_USER, uid);
	user->idle_since = jiffies;
	accounts->nr_idle++;
	list_for_each_entry(other, &accounts->users, link) {
		if (uid_lt(uid, other->uid)) {
			before = &other->link;
			break;
		}
	}
	add_account(user, before);
	return user;
}

/**
 * flexmem_owner_evict - forget a user, if too many are idle
 * @accounts: accounts of the function
 *
 * The one who has been idle longest, and has neither a quota nor a file that was
 * closed and is still charged for something; its bytes are nobody's from then on.
 *
 * Context: under &flexmem_accounts.lock.
 * Return: its account, for the caller to free without the lock, or NULL.
 */
struct flexmem_account *flexmem_owner_evict(struct flexmem_accounts *accounts)
{
	struct flexmem_account *user, *oldest = NULL;

	lockdep_assert_held(&accounts->lock);
	if (accounts->nr_idle <= FLEXMEM_MAX_IDLE_USERS)
		return NULL;
	list_for_each_entry(user, &accounts->users, link) {
		if (refcount_read(&user->refs) > 1 || has_quota(user))
			continue;
		if (!oldest ||
		    time_before(user->idle_since, oldest->idle_since))
			oldest = user;
	}
	if (oldest) {
		remove_account(oldest);
		accounts->nr_idle--;
	}
	return oldest;
}

/**
 * flexmem_owner_open - an account for an open file
 * @accounts: accounts of the function
 * @uid: who opens it
 * @pid: the process that does; a reference is taken. NULL: not known
 *
 * Context: may sleep.
 * Return: the account, for flexmem_owner_close(); NULL if there is no memory.
 */
struct flexmem_account *flexmem_owner_open(struct flexmem_accounts *accounts,
					   kuid_t uid, struct pid *pid)
{
	struct flexmem_account *client, *fresh;

	client = kmalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);
	fresh = kmalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!client || !fresh) {
		kfree(client);
		kfree(fresh);
		return NULL;
	}
	account_init(client, accounts, FLEXMEM_OWNER_CLIENT, uid);
	client->pid = get_pid(pid);

	spin_lock(&accounts->lock);
	client->user = flexmem_owner_of_user(accounts, uid, &fresh);
	refcount_inc(&client->user->refs);
	if (!client->user->clients++)
		accounts->nr_idle--;
	add_account(client, &accounts->clients);
	accounts->nr_clients++;
	spin_unlock(&accounts->lock);
	kfree(fresh);
	return client;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_owner_open);

/**
 * flexmem_owner_close - the file is closed
 * @client: account as flexmem_owner_open() returned it; the caller's no more
 */
void flexmem_owner_close(struct flexmem_account *client)
{
	struct flexmem_accounts *accounts = client->accounts;
	struct flexmem_account *user = client->user;

	spin_lock(&accounts->lock);
	client->closed = true;
	if (!--user->clients) {
		user->idle_since = jiffies;
		accounts->nr_idle++;
	}
	spin_unlock(&accounts->lock);
	flexmem_owner_put(client);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_owner_close);

/**
 * flexmem_owner_put - nobody is charged on account of the caller any more
 * @client: open file's account; may be gone afterwards. A user's is not
 *
 * Context: any, but under no lock of ours.
 */
void flexmem_owner_put(struct flexmem_account *client)
{
	struct flexmem_accounts *accounts = client->accounts;
	struct flexmem_account *evicted;

	if (!refcount_dec_and_test(&client->refs))
		return;
	spin_lock(&accounts->lock);
	WARN_ON_ONCE(client->used[FLEXMEM_RESOURCE_BYTES] ||
		     client->used[FLEXMEM_RESOURCE_SLOTS] ||
		     client->used[FLEXMEM_RESOURCE_HANDLES]);
	remove_account(client);
	accounts->nr_clients--;
	/* Not the last one: a user is not forgotten before. */
	WARN_ON_ONCE(refcount_dec_and_test(&client->user->refs));
	evicted = flexmem_owner_evict(accounts);
	spin_unlock(&accounts->lock);
	kfree(evicted);
	put_pid(client->pid);
	kfree(client);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_owner_put);

/**
 * flexmem_owner_set_strict - keep the bytes from others of the same user
 * @client: open file's account
 *
 * Return: 0, or -EBUSY if it has allocations, or freed ones that are in use.
 */
int flexmem_owner_set_strict(struct flexmem_account *client)
{
	struct flexmem_accounts *accounts = client->accounts;
	int rc = -EBUSY;

	spin_lock(&accounts->lock);
	/* A handle is charged before it is asked whose its bytes are. */
	if (!client->used[FLEXMEM_RESOURCE_HANDLES] &&
	    !client->used[FLEXMEM_RESOURCE_BYTES]) {
		WRITE_ONCE(client->strict, true);
		rc = 0;
	}
	spin_unlock(&accounts->lock);
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_owner_set_strict);

/**
 * flexmem_owner_is_idle - is nobody there to take bytes again that are its own
 * @accounts: accounts of the function
 * @id: owner's number
 * @for_jiffies: for how long a user has had no file open at least
 *
 * Context: O(log owners).
 * Return: true if the owner is gone, or has been idle that long.
 */
bool flexmem_owner_is_idle(struct flexmem_accounts *accounts, u64 id,
			   unsigned long for_jiffies)
{
	struct flexmem_account *account;
	bool idle = true;

	spin_lock(&accounts->lock);
	account = flexmem_owner_find(accounts, id);
	if (account && account->kind == FLEXMEM_OWNER_CLIENT)
		idle = account->closed;
	else if (account)
		idle = !account->clients &&
		       time_after(jiffies, account->idle_since + for_jiffies);
	spin_unlock(&accounts->lock);
	return idle;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_owner_is_idle);

/**
 * flexmem_accounts_fini - forget the users; no file is open any more
 * @accounts: accounts
 */
void flexmem_accounts_fini(struct flexmem_accounts *accounts)
{
	struct flexmem_account *user, *next;

	WARN_ON_ONCE(!list_empty(&accounts->clients));
	flexmem_gauge_fini(&accounts->gauge);
	list_for_each_entry_safe(user, next, &accounts->users, link)
		kfree(user);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_accounts_fini);
