// SPDX-License-Identifier: GPL-2.0
/* What the administrator sets: limits of clients and users. */

#include <linux/err.h>
#include <linux/slab.h>

#include "account.h"
#include "compat.h"
#include "owner.h"

static struct flexmem_account *client_of(struct flexmem_accounts *accounts,
					 u64 id)
{
	struct flexmem_account *client;

	list_for_each_entry(client, &accounts->clients, link)
		if (client->id == id && !client->closed)
			return flexmem_owner_get(client);
	return NULL;
}

static bool has_limit(const struct flexmem_account *account)
{
	unsigned int r;

	for (r = 0; r < FLEXMEM_NR_RESOURCES; r++)
		if (account->limit[r] != FLEXMEM_NO_LIMIT)
			return true;
	return false;
}

static void read_quota(const struct flexmem_account *account,
		       struct flexmem_quota *quota)
{
	unsigned int r = quota->resource;

	quota->out_limit = account->limit[r];
	quota->out_used = account->used[r];
}

/**
 * flexmem_quota_find - whose limit is to be set
 * @accounts: accounts of the function
 * @quota: which; receives the ``out_`` members as they are once it is set
 * @uid: the user, if it is a user's
 *
 * Context: may sleep.
 * Return: the account, for flexmem_quota_set() and flexmem_owner_put(); -ENOENT
 * if there is no such client; -ENOMEM.
 */
struct flexmem_account *
flexmem_quota_find(struct flexmem_accounts *accounts,
		   struct flexmem_quota *quota, kuid_t uid)
{
	struct flexmem_account *account, *fresh = NULL;

	if (quota->kind == FLEXMEM_OWNER_USER) {
		fresh = kmalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
		if (!fresh)
			return ERR_PTR(-ENOMEM);
	}
	spin_lock(&accounts->lock);
	account = fresh ? flexmem_owner_of_user(accounts, uid, &fresh) :
			  client_of(accounts, quota->id);
	if (account) {
		read_quota(account, quota);
		quota->out_limit = quota->limit;
	}
	spin_unlock(&accounts->lock);
	kfree(fresh);
	return account ?: ERR_PTR(-ENOENT);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_quota_find);

/**
 * flexmem_quota_set - set a limit. Cannot fail
 * @account: as flexmem_quota_find() returned it, which the caller keeps. That of a
 *	user has a reference to itself while it has a limit
 * @quota: which
 */
void flexmem_quota_set(struct flexmem_account *account,
		       const struct flexmem_quota *quota)
{
	struct flexmem_accounts *accounts = account->accounts;
	bool kept;

	spin_lock(&accounts->lock);
	account->limit[quota->resource] = quota->limit;
	kept = account->kept;
	account->kept = account->kind == FLEXMEM_OWNER_USER &&
			has_limit(account);
	if (account->kept && !kept)
		flexmem_owner_get(account);
	else if (kept && !account->kept)
		refcount_dec(&account->refs);
	spin_unlock(&accounts->lock);
	flexmem_pressure_freed(accounts);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_quota_set);

/**
 * flexmem_quota_get - read a client's own limit, or its user's
 * @client: client
 * @quota: which; receives the ``out_`` members
 */
void flexmem_quota_get(struct flexmem_account *client,
		       struct flexmem_quota *quota)
{
	bool user = quota->kind == FLEXMEM_OWNER_USER;

	spin_lock(&client->accounts->lock);
	read_quota(user ? client->user : client, quota);
	spin_unlock(&client->accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_quota_get);
