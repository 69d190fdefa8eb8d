// SPDX-License-Identifier: GPL-2.0
/* What the administrator sets: limits of open files and cgroups. */

#include <linux/cgroup.h>
#include <linux/err.h>
#include <linux/string.h>

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

/* Never for the account of an open file. */
static bool is_removed(const struct flexmem_account *account)
{
#ifdef CONFIG_CGROUPS
	return account->cgroup &&
	       !(READ_ONCE(account->cgroup->self.flags) & CSS_ONLINE);
#else
	return false;
#endif
}

static void read_quota(const struct flexmem_account *account,
		       struct flexmem_quota *quota)
{
	unsigned int r = quota->resource;

	quota->out_limit = account->limit[r];
	quota->out_used = account->used[r];
}

static struct flexmem_account *find_account(struct flexmem_accounts *accounts,
					    const struct flexmem_quota *quota)
{
	struct flexmem_account *account;
	struct cgroup *cgroup;

	if (quota->kind == FLEXMEM_OWNER_CGROUP) {
		cgroup = flexmem_owner_find_cgroup(quota->id);
		if (IS_ERR(cgroup))
			return ERR_CAST(cgroup);
		account = flexmem_owner_of_cgroup(accounts, cgroup);
		flexmem_owner_put_cgroup(cgroup);
		return account ?: ERR_PTR(-ENOMEM);
	}
	spin_lock(&accounts->lock);
	account = client_of(accounts, quota->id);
	spin_unlock(&accounts->lock);
	return account ?: ERR_PTR(-ENOENT);
}

/**
 * flexmem_quota_find - whose limit is to be set
 * @accounts: accounts of the function
 * @quota: which; receives the ``out_`` members as they are once it is set
 *
 * Context: may sleep.
 * Return: the account, for flexmem_quota_set() and flexmem_owner_put(); -ENOENT
 * if there is no such client or cgroup; -ENOMEM.
 */
struct flexmem_account *
flexmem_quota_find(struct flexmem_accounts *accounts,
		   struct flexmem_quota *quota)
{
	struct flexmem_account *account = find_account(accounts, quota);

	if (IS_ERR(account))
		return account;
	spin_lock(&accounts->lock);
	read_quota(account, quota);
	quota->out_limit = quota->limit;
	spin_unlock(&accounts->lock);
	return account;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_quota_find);

/**
 * flexmem_quota_set - set a limit. Cannot fail
 * @account: as flexmem_quota_find() returned it, which the caller keeps. That of a
 *	cgroup has a reference to itself while it has a limit
 * @quota: which
 */
void flexmem_quota_set(struct flexmem_account *account,
		       const struct flexmem_quota *quota)
{
	struct flexmem_accounts *accounts = account->accounts;
	bool kept;

	spin_lock(&accounts->lock);
	/* A cgroup that was removed just now gets no limit any more. */
	if (!is_removed(account))
		account->limit[quota->resource] = quota->limit;
	kept = account->kept;
	account->kept = account->kind == FLEXMEM_OWNER_CGROUP &&
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
 * flexmem_quota_forget - drop the limits of cgroups that were removed
 * @accounts: accounts of the function
 *
 * What is charged to them stays. The last reference to such a cgroup may go.
 *
 * Context: may sleep. O(cgroups): for the administrator.
 */
void flexmem_quota_forget(struct flexmem_accounts *accounts)
{
	struct flexmem_account *account, *next;
	struct rb_node *node;
	LIST_HEAD(removed);

	spin_lock(&accounts->lock);
	for (node = rb_first(&accounts->cgroups); node; node = rb_next(node)) {
		account = rb_entry(node, struct flexmem_account, by_id);
		if (!account->kept || !is_removed(account))
			continue;
		memset64(account->limit, FLEXMEM_NO_LIMIT,
			 FLEXMEM_NR_RESOURCES);
		account->kept = false;
		list_add(&account->link, &removed);
	}
	spin_unlock(&accounts->lock);
	/* Each has had a reference to itself. */
	list_for_each_entry_safe(account, next, &removed, link)
		flexmem_owner_put(account);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_quota_forget);

/**
 * flexmem_quota_get - read a client's own limit, or its cgroup's
 * @client: client
 * @quota: which; receives the ``out_`` members
 */
void flexmem_quota_get(struct flexmem_account *client,
		       struct flexmem_quota *quota)
{
	bool cgroup = quota->kind == FLEXMEM_OWNER_CGROUP;

	spin_lock(&client->accounts->lock);
	read_quota(cgroup ? client->parent : client, quota);
	spin_unlock(&client->accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_quota_get);
