// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of cgroups. The administrator sets them.
 *
 * For each resource a cgroup has a limit of its own; without one it has the
 * default limit if it is at the default depth. Each account stores the resulting
 * limit, so a charge only compares.
 *
 * A limit is for one function, or for each function. The limits for each
 * function are kept in the accounts of @everywhere. A function that is
 * registered later gets a copy of them.
 */

#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/string.h>

#include "settings.h"
#include "tenant/account.h"
#include "tenant/owner.h"

/*
 * Accounts that belong to no function. They have only limits, never charges.
 */
static struct flexmem_accounts everywhere;

/* The accounts of each function, and @everywhere. */
static LIST_HEAD(all);

/* Protects @all, and is held while limits in @everywhere change. */
static DEFINE_MUTEX(all_lock);

/*
 * Finds the account for a new limit.
 * @cmd: receives the ``out_`` members of the reply.
 * Context: may sleep. Return: the account, for flexmem_limit_set() and
 * flexmem_owner_put(); NULL if the command sets a default limit; -ENOENT if the
 * caller sees no such cgroup; -EINVAL if the command limits the open files of
 * the root cgroup, or a cgroup that is too deep to have an account; -ENOMEM.
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
	/* The administrator must always be able to open a file. */
	if (!account->parent && cmd->resource == FLEXMEM_RESOURCE_FILES) {
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
 * An account with a limit has a reference to itself. Takes this reference at
 * the first limit, and drops it with the last.
 */
static void keep(struct flexmem_account *account)
{
	bool kept = account->kept;

	account->kept = account->own;
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

	__assign_bit(r, &account->own, cmd->limit != FLEXMEM_NO_LIMIT);
	account->limit[r] = cmd->limit;
	/*
	 * The account of a removed cgroup may be in the list of
	 * flexmem_owner_forget(), which drops the lock.
	 */
	if (!flexmem_account_is_removed(account))
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
	flexmem_accounts_freed(accounts);
}

/*
 * Sets a limit for each function, present and future. Sets it for all of them,
 * or fails and sets none.
 * @cmd: the caller has replied; the ``out_`` members are overwritten.
 * Context: may sleep. O(functions * depth * log cgroups). Return: 0, or an error
 * of flexmem_limit_find().
 */
int flexmem_limit_set_all(struct flexmem_resource_limit *cmd)
{
	struct flexmem_accounts *accounts;
	int rc = 0;

	mutex_lock(&all_lock);
	list_for_each_entry(accounts, &all, link) {
		flexmem_owner_forget(accounts);
		accounts->found = flexmem_limit_find(accounts, cmd);
		rc = PTR_ERR_OR_ZERO(accounts->found);
		if (rc) {
			accounts->found = NULL;
			break;
		}
	}
	list_for_each_entry(accounts, &all, link) {
		if (!rc)
			flexmem_limit_set(accounts, accounts->found, cmd);
		flexmem_owner_put(accounts->found);
		accounts->found = NULL;
	}
	mutex_unlock(&all_lock);
	return rc;
}

/*
 * Gives a new function the limits that apply to each function. From now on
 * commands that set such limits set them for this function too. Called before
 * the function can be opened.
 * Context: may sleep. Return: 0; then flexmem_limit_leave() must be called; or
 * -ENOMEM.
 */
int flexmem_limit_join(struct flexmem_accounts *accounts)
{
	struct flexmem_account *from, *to;
	int rc = 0;

	mutex_lock(&all_lock);
	flexmem_owner_forget(&everywhere);
	memcpy(accounts->default_limit, everywhere.default_limit,
	       sizeof(accounts->default_limit));
	list_for_each_entry(from, &everywhere.limited, link) {
		if (flexmem_account_is_removed(from))
			continue;
		to = flexmem_owner_of_cgroup(accounts, from->cgroup);
		if (!to) {
			rc = -ENOMEM;
			break;
		}
		spin_lock(&accounts->lock);
		to->own = from->own;
		memcpy(to->limit, from->limit, sizeof(to->limit));
		keep(to);
		spin_unlock(&accounts->lock);
		flexmem_owner_put(to);
	}
	if (!rc)
		list_add_tail(&accounts->link, &all);
	mutex_unlock(&all_lock);
	return rc;
}

/*
 * From now on commands that set a limit for each function leave this function
 * out. May sleep.
 */
void flexmem_limit_leave(struct flexmem_accounts *accounts)
{
	mutex_lock(&all_lock);
	list_del(&accounts->link);
	mutex_unlock(&all_lock);
}

void flexmem_limit_init(void)
{
	flexmem_accounts_init(&everywhere, 0);
	list_add(&everywhere.link, &all);
}

void flexmem_limit_exit(void)
{
	list_del(&everywhere.link);
	flexmem_accounts_fini(&everywhere);
}
