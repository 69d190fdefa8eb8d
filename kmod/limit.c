// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of cgroups. The administrator sets them.
 *
 * For each resource a cgroup has a limit of its own or inherits a limit. The
 * inherited limit is the parent's limit for each child, or the default limit if
 * the cgroup is at the default depth. Each account stores the resulting limit,
 * so a charge only compares.
 */

#include <linux/err.h>

#include "account.h"
#include "owner.h"

static bool has_limit(const struct flexmem_account *account)
{
	unsigned int r;

	for (r = 0; r < FLEXMEM_NR_RESOURCES; r++)
		if (account->each_child[r] != FLEXMEM_NO_LIMIT)
			return true;
	return account->own;
}

/*
 * Finds the account for a new limit.
 * @cmd: receives the ``out_`` members of the reply.
 * Context: may sleep. Return: the account, for flexmem_limit_set() and
 * flexmem_owner_put(); NULL if the command sets a default limit; -ENOENT if the
 * caller sees no such cgroup; -EINVAL if the command limits the open files of
 * the root cgroup, because the administrator must always be able to open a
 * file; -ENOMEM.
 */
struct flexmem_account *
flexmem_limit_find(struct flexmem_accounts *accounts,
		   struct flexmem_resource_limit *cmd)
{
	struct flexmem_account *account;

	cmd->out_limit = cmd->limit;
	cmd->out_used = 0;
	if (cmd->scope == FLEXMEM_SCOPE_DEFAULT)
		return NULL;
	account = flexmem_owner_by_id(accounts, cmd->cgroup);
	if (IS_ERR(account))
		return account;
	if (!account->parent && cmd->scope == FLEXMEM_SCOPE_CGROUP &&
	    cmd->resource == FLEXMEM_RESOURCE_FILES) {
		flexmem_owner_put(account);
		return ERR_PTR(-EINVAL);
	}
	spin_lock(&accounts->lock);
	flexmem_account_settle(account);
	cmd->out_used = account->used[cmd->resource];
	spin_unlock(&accounts->lock);
	return account;
}

/*
 * Takes the reference that an account with a limit has to itself, or drops that
 * reference if no limit is left.
 */
static void keep(struct flexmem_account *account)
{
	bool kept = account->kept;

	account->kept = has_limit(account);
	if (account->kept && !kept) {
		list_add_tail(&account->link, &account->accounts->limited);
		flexmem_owner_get(account);
	} else if (kept && !account->kept) {
		list_del(&account->link);
		refcount_dec(&account->refs);
	}
}

static void set_of_cgroup(struct flexmem_account *account,
			  const struct flexmem_resource_limit *cmd)
{
	unsigned int r = cmd->resource;

	/* A cgroup that has just been removed gets no limit. */
	if (flexmem_account_is_removed(account))
		return;
	if (cmd->scope == FLEXMEM_SCOPE_EACH_CHILD) {
		account->each_child[r] = cmd->limit;
	} else {
		__assign_bit(r, &account->own, cmd->limit != FLEXMEM_NO_LIMIT);
		account->limit[r] = cmd->limit;
	}
	keep(account);
}

/*
 * Sets a limit on an account from flexmem_limit_find(). Cannot fail. O(1):
 * accounts that inherit the limit apply it at their next use.
 */
void flexmem_limit_set(struct flexmem_accounts *accounts,
		       struct flexmem_account *account,
		       const struct flexmem_resource_limit *cmd)
{
	spin_lock(&accounts->lock);
	if (account)
		set_of_cgroup(account, cmd);
	else
		accounts->default_limit[cmd->resource] = cmd->limit;
	accounts->changes++;
	spin_unlock(&accounts->lock);
	flexmem_pressure_freed(accounts, FLEXMEM_ALL_DOMAINS);
}

/* Reads the limit that @cmd names of a client's cgroup. */
void flexmem_limit_get(const struct flexmem_account *client,
		       struct flexmem_resource_limit *cmd)
{
	struct flexmem_account *account = client->parent;

	spin_lock(&client->accounts->lock);
	flexmem_account_settle(account);
	cmd->out_limit = account->limit[cmd->resource];
	cmd->out_used = account->used[cmd->resource];
	spin_unlock(&client->accounts->lock);
}
