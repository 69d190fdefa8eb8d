/* SPDX-License-Identifier: GPL-2.0 */
/* The accounts of open files and cgroups. */
#ifndef _FLEXMEM_OWNER_H
#define _FLEXMEM_OWNER_H

#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include "tenant/account.h"

struct cgroup *flexmem_owner_cgroup(void);
void flexmem_owner_put_cgroup(struct cgroup *cgroup);
struct flexmem_account *
flexmem_owner_of_cgroup(struct flexmem_accounts *accounts,
			struct cgroup *cgroup);
struct flexmem_account *flexmem_owner_by_id(struct flexmem_accounts *accounts,
					    u64 id);
struct flexmem_account *flexmem_owner_open(struct flexmem_accounts *accounts,
					   kuid_t uid, struct cgroup *cgroup,
					   struct pid *pid);
void flexmem_owner_close(struct flexmem_account *client);
void flexmem_owner_put(struct flexmem_account *account);
void flexmem_owner_forget(struct flexmem_accounts *accounts);
void flexmem_owner_tell_refusal(const struct flexmem_account *client,
				const struct flexmem_refused *refused,
				struct flexmem_refusal *reply);
bool flexmem_owner_is_open(struct flexmem_accounts *accounts, u64 id);

/* Takes a further reference to an account. The caller holds one already. */
static inline struct flexmem_account *
flexmem_owner_get(struct flexmem_account *account)
{
	refcount_inc(&account->refs);
	return account;
}

#endif /* _FLEXMEM_OWNER_H */
