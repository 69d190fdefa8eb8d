/* SPDX-License-Identifier: GPL-2.0 */
/* Owners of bytes, and the accounts of open files and cgroups. */
#ifndef _FLEXMEM_OWNER_H
#define _FLEXMEM_OWNER_H

#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include "account.h"

struct cgroup;
struct pid;

/* How many owners without an open file the driver remembers. */
#define FLEXMEM_MAX_IDLE_OWNERS 1024

/**
 * struct flexmem_owner - an owner of bytes: a user in a cgroup, or a strict file
 * @by_id: in &flexmem_accounts.owners_by_id
 * @by_key: in &flexmem_accounts.owners_by_key, unless @strict
 * @idle: in &flexmem_accounts.idle_owners while @files is 0
 * @id: number in &flexmem_block.bytes_of; never reused
 * @uid: the user
 * @cgroup: id of the user's cgroup
 * @strict: the owner is one open file
 * @files: number of the owner's open files
 * @idle_since: time when the last file was closed, in jiffies
 *
 * @id never changes. &flexmem_accounts.lock protects the other members.
 */
struct flexmem_owner {
	struct rb_node by_id;
	struct rb_node by_key;
	struct list_head idle;
	u64 id;
	kuid_t uid;
	u64 cgroup;
	bool strict;
	unsigned int files;
	unsigned long idle_since;
};

struct cgroup *flexmem_owner_cgroup(void);
struct cgroup *flexmem_owner_find_cgroup(u64 id);
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
bool flexmem_owner_is_idle(struct flexmem_accounts *accounts, u64 id,
			   unsigned long for_jiffies);

/* Takes a further reference to an account. The caller holds one already. */
static inline struct flexmem_account *
flexmem_owner_get(struct flexmem_account *account)
{
	refcount_inc(&account->refs);
	return account;
}

/*
 * Number of the owner of a client's bytes. It cannot change while a handle is
 * charged to the client.
 */
static inline u64 flexmem_owner_of_bytes(const struct flexmem_account *client)
{
	return client->owner->id;
}

int flexmem_owner_set_strict(struct flexmem_account *client);

/* The caller holds &flexmem_accounts.lock. */
struct flexmem_owner *flexmem_owner_find(struct flexmem_accounts *accounts,
					 u64 id);

#endif /* _FLEXMEM_OWNER_H */
