/* SPDX-License-Identifier: GPL-2.0 */
/* Who bytes belong to: open files and users, by their accounts. */
#ifndef _FLEXMEM_OWNER_H
#define _FLEXMEM_OWNER_H

#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include "account.h"

struct pid;

/* What a user's account needs to be kept for is forgotten beyond so many. */
#define FLEXMEM_MAX_IDLE_USERS 1024

struct flexmem_account *flexmem_owner_open(struct flexmem_accounts *accounts,
					   kuid_t uid, struct pid *pid);
void flexmem_owner_close(struct flexmem_account *client);
void flexmem_owner_put(struct flexmem_account *client);
bool flexmem_owner_is_idle(struct flexmem_accounts *accounts, u64 id,
			   unsigned long for_jiffies);

/* One more who may be charged on an open file's account, by who has it. */
static inline struct flexmem_account *
flexmem_owner_get(struct flexmem_account *client)
{
	refcount_inc(&client->refs);
	return client;
}

/*
 * Number that stands for whose a client's bytes are. It may change before the
 * client is charged for a handle, and not as long as it is.
 */
static inline u64 flexmem_owner_of_bytes(const struct flexmem_account *client)
{
	return READ_ONCE(client->strict) ? client->id : client->user->id;
}

int flexmem_owner_set_strict(struct flexmem_account *client);

/* Under &flexmem_accounts.lock. */
struct flexmem_account *flexmem_owner_find(struct flexmem_accounts *accounts,
					   u64 id);
struct flexmem_account *
flexmem_owner_find_user(struct flexmem_accounts *accounts, kuid_t uid);
struct flexmem_account *
flexmem_owner_of_user(struct flexmem_accounts *accounts, kuid_t uid,
		      struct flexmem_account **fresh);
struct flexmem_account *flexmem_owner_evict(struct flexmem_accounts *accounts);

#endif /* _FLEXMEM_OWNER_H */
