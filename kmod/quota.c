// SPDX-License-Identifier: GPL-2.0
/*
 * What the administrator sets: limits and guarantees of clients and users. A
 * guarantee that could not be kept is refused.
 */

#include <linux/limits.h>
#include <linux/slab.h>

#include "account.h"
#include "compat.h"
#include "owner.h"
#include "promise.h"

static struct flexmem_account *client_of(struct flexmem_accounts *accounts,
					 u64 id)
{
	struct flexmem_account *client = flexmem_owner_find(accounts, id);

	return client && client->kind == FLEXMEM_OWNER_CLIENT &&
	       !client->closed ? client : NULL;
}

static int apply_guarantee(struct flexmem_accounts *accounts,
			   struct flexmem_account *account, unsigned int r,
			   u64 guarantee)
{
	u64 old = account->guarantee[r];

	/* Also keeps the sums of what is promised from overflowing. */
	if (r == FLEXMEM_RESOURCE_BYTES && guarantee > accounts->capacity)
		return -ENOSPC;
	if (r == FLEXMEM_RESOURCE_SLOTS && guarantee > accounts->slots)
		return -ENOSPC;
	if (r == FLEXMEM_RESOURCE_HANDLES && guarantee > INT_MAX)
		return -ENOSPC;
	flexmem_promise_set(accounts, account, r, guarantee);
	if (guarantee > old &&
	    !flexmem_promise_can_keep(accounts, account, r)) {
		flexmem_promise_set(accounts, account, r, old);
		return -ENOSPC;
	}
	flexmem_promise_release(accounts, account);
	return 0;
}

static void read_quota(const struct flexmem_account *account,
		       struct flexmem_quota *quota)
{
	unsigned int r = quota->resource;

	quota->out_limit = account->limit[r];
	quota->out_guarantee = account->guarantee[r];
	quota->out_used = account->used[r];
}

static int write_quota(struct flexmem_accounts *accounts,
		       struct flexmem_account *account,
		       struct flexmem_quota *quota)
{
	unsigned int r = quota->resource;
	u64 guarantee = account->guarantee[r];
	u64 limit = account->limit[r], old = limit;
	int rc = 0;

	if (quota->flags & FLEXMEM_QUOTA_LIMIT)
		limit = quota->limit;
	if (quota->flags & FLEXMEM_QUOTA_GUARANTEE)
		guarantee = quota->guarantee;
	if (guarantee > limit)
		return -EINVAL;
	account->limit[r] = limit;
	if (quota->flags & FLEXMEM_QUOTA_GUARANTEE)
		rc = apply_guarantee(accounts, account, r, guarantee);
	if (rc)
		account->limit[r] = old;
	else
		read_quota(account, quota);
	return rc;
}

/**
 * flexmem_quota_set - set a limit, a guarantee or both
 * @accounts: accounts of the function
 * @quota: what; receives the ``out_`` members
 * @uid: the user, if it is a user's
 *
 * Context: may sleep.
 * Return: 0; -ENOENT if there is no such client; -EINVAL if the guarantee is
 * above the limit; -ENOSPC if it could not be kept; -ENOMEM.
 */
int flexmem_quota_set(struct flexmem_accounts *accounts,
		      struct flexmem_quota *quota, kuid_t uid)
{
	struct flexmem_account *account, *fresh = NULL, *evicted;
	int rc;

	if (quota->kind == FLEXMEM_OWNER_USER) {
		/* The worker's, for the administrator: charged to nobody. */
		fresh = kmalloc(sizeof(*fresh), GFP_KERNEL);
		if (!fresh)
			return -ENOMEM;
	}
	spin_lock(&accounts->lock);
	account = fresh ? flexmem_owner_of_user(accounts, uid, &fresh) :
			  client_of(accounts, quota->id);
	rc = account ? write_quota(accounts, account, quota) : -ENOENT;
	evicted = flexmem_owner_evict(accounts);
	spin_unlock(&accounts->lock);
	flexmem_pressure_freed(accounts);
	kfree(evicted);
	kfree(fresh);
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_quota_set);

/**
 * flexmem_quota_preview - what flexmem_quota_set() would leave, if it succeeds
 * @accounts: accounts of the function
 * @quota: what; receives the ``out_`` members
 * @uid: the user, if it is a user's
 */
void flexmem_quota_preview(struct flexmem_accounts *accounts,
			   struct flexmem_quota *quota, kuid_t uid)
{
	struct flexmem_account *account;

	quota->out_limit = FLEXMEM_NO_LIMIT;
	quota->out_guarantee = 0;
	quota->out_used = 0;
	spin_lock(&accounts->lock);
	account = quota->kind == FLEXMEM_OWNER_USER ?
		  flexmem_owner_find_user(accounts, uid) :
		  client_of(accounts, quota->id);
	if (account)
		read_quota(account, quota);
	spin_unlock(&accounts->lock);
	if (quota->flags & FLEXMEM_QUOTA_LIMIT)
		quota->out_limit = quota->limit;
	if (quota->flags & FLEXMEM_QUOTA_GUARANTEE)
		quota->out_guarantee = quota->guarantee;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_quota_preview);

/**
 * flexmem_quota_get - read a client's own limit, or its user's
 * @accounts: accounts of the function
 * @client: client
 * @quota: which; receives the ``out_`` members
 */
void flexmem_quota_get(struct flexmem_accounts *accounts,
		       struct flexmem_account *client,
		       struct flexmem_quota *quota)
{
	bool user = quota->kind == FLEXMEM_OWNER_USER;

	spin_lock(&accounts->lock);
	read_quota(user ? client->user : client, quota);
	spin_unlock(&accounts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_quota_get);
