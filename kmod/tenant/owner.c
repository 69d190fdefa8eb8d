// SPDX-License-Identifier: GPL-2.0
/*
 * The accounts of open files and of cgroups.
 *
 * The number of a file's account is never reused, and says whose bytes a range of
 * memory holds (block.h). So bytes never seem to belong to a later file, and
 * move to another file only after a scrub.
 *
 * Memory of a file is charged to its account, and to the accounts of the cgroup
 * (v2) of the opener at open() and of all ancestors. A file's account stays until
 * the file is closed and nothing is charged to it. A cgroup's account holds a
 * reference to the cgroup. It stays while there is an account below it, or while
 * it has a limit or a reservation.
 */

#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/user_namespace.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "settings.h"
#include "tenant/owner.h"

/* How many cgroups flexmem_owner_forget() checks in one call. */
#define AT_ONCE 16

/* The caller's cgroup (v2), for flexmem_owner_put_cgroup(); NULL: none. */
struct cgroup *flexmem_owner_cgroup(void)
{
	struct cgroup *cgroup = NULL;

#ifdef CONFIG_CGROUPS
	rcu_read_lock();
	do {
		cgroup = task_dfl_cgroup(current);
		/* A cgroup that is being removed: the task moves to another. */
	} while (!cgroup_tryget(cgroup));
	rcu_read_unlock();
#endif
	return cgroup;
}

/*
 * The cgroup that has an id, for flexmem_owner_put_cgroup(); -ENOENT if the
 * caller's cgroup namespace shows no such cgroup. NULL for id 0 in a kernel
 * without cgroups: there all files share one account.
 */
static struct cgroup *find_cgroup(u64 id)
{
#ifdef CONFIG_CGROUPS
	struct cgroup *cgroup = cgroup_get_from_id(id);

	return IS_ERR(cgroup) ? ERR_PTR(-ENOENT) : cgroup;
#else
	return id ? ERR_PTR(-ENOENT) : NULL;
#endif
}

/* Drops a reference to a cgroup, or to NULL. */
void flexmem_owner_put_cgroup(struct cgroup *cgroup)
{
#ifdef CONFIG_CGROUPS
	if (cgroup)
		cgroup_put(cgroup);
#endif
}

static struct flexmem_account *
account_create(struct flexmem_accounts *accounts, enum flexmem_owner_kind kind)
{
	struct flexmem_account *account;

	account = kzalloc(sizeof(*account), GFP_KERNEL_ACCOUNT);
	if (!account)
		return NULL;
	refcount_set(&account->refs, 1);
	account->accounts = accounts;
	account->kind = kind;
	INIT_LIST_HEAD(&account->leaving);
	INIT_LIST_HEAD(&account->ready);
	INIT_LIST_HEAD(&account->queued.link);
	mutex_init(&account->turn);
	memset64(account->limit, FLEXMEM_NO_LIMIT, FLEXMEM_NR_RESOURCES);
	return account;
}

static void account_destroy(struct flexmem_account *account)
{
	flexmem_owner_put_cgroup(account->cgroup);
	put_pid(account->pid);
	kfree(account);
}

static struct flexmem_account *to_account(const struct rb_node *node)
{
	return rb_entry(node, struct flexmem_account, by_id);
}

static int id_cmp(const void *key, const struct rb_node *node)
{
	u64 id = *(const u64 *)key, other = to_account(node)->id;

	return id == other ? 0 : id < other ? -1 : 1;
}

static int account_cmp(struct rb_node *node, const struct rb_node *other)
{
	return id_cmp(&to_account(node)->id, other);
}

/* Adds @fresh, or frees it if its cgroup has an account; returns the account. */
static struct flexmem_account *add_cgroup(struct flexmem_accounts *accounts,
					  struct flexmem_account *fresh)
{
	struct flexmem_account *account = fresh;
	struct rb_node *node;

	spin_lock(&accounts->lock);
	node = rb_find_add(&fresh->by_id, &accounts->cgroups, account_cmp);
	if (node)
		account = flexmem_owner_get(to_account(node));
	else
		accounts->nr_cgroups++;
	spin_unlock(&accounts->lock);
	if (!node)
		return fresh;
	/* The existing account has its own references to parent and cgroup. */
	flexmem_owner_put(fresh->parent);
	account_destroy(fresh);
	return account;
}

/* Makes the account of a cgroup; takes the caller's reference to @parent. */
static struct flexmem_account *account_below(struct flexmem_accounts *accounts,
					     struct flexmem_account *parent,
					     struct cgroup *cgroup)
{
	struct flexmem_account *account;

	account = account_create(accounts, FLEXMEM_OWNER_CGROUP);
	if (!account) {
		flexmem_owner_put(parent);
		return NULL;
	}
	account->parent = parent;
	account->depth = parent ? parent->depth + 1 : 0;
#ifdef CONFIG_CGROUPS
	cgroup_get(cgroup);
	account->cgroup = cgroup;
	account->id = cgroup_id(cgroup);
#endif
	return add_cgroup(accounts, account);
}

#ifdef CONFIG_CGROUPS
/*
 * The account of @cgroup's ancestor at @level, or else of the nearest one above
 * it, whose level @level becomes. NULL: none has an account; @level becomes -1.
 */
static struct flexmem_account *nearest_account(struct flexmem_accounts *accounts,
					       struct cgroup *cgroup,
					       int *level)
{
	struct rb_node *node = NULL;
	u64 id;

	spin_lock(&accounts->lock);
	for (; *level >= 0; --*level) {
		id = cgroup_id(cgroup_ancestor(cgroup, *level));
		node = rb_find(&id, &accounts->cgroups, id_cmp);
		if (node)
			break;
	}
	if (node)
		flexmem_owner_get(to_account(node));
	spin_unlock(&accounts->lock);
	return node ? to_account(node) : NULL;
}
#endif

/*
 * A cgroup's account; makes it, and those of the ancestors, if they are missing.
 * @cgroup: NULL in a kernel without cgroups. Context: may sleep. O(depth * log
 * cgroups). Return: the account, for flexmem_owner_put(); NULL: no memory.
 */
struct flexmem_account *
flexmem_owner_of_cgroup(struct flexmem_accounts *accounts,
			struct cgroup *cgroup)
{
	struct flexmem_account *account;
#ifdef CONFIG_CGROUPS
	int last = min_t(int, cgroup->level, FLEXMEM_MAX_DEPTH), level = last;

	account = nearest_account(accounts, cgroup, &level);
	while (level++ < last) {
		account = account_below(accounts, account,
					cgroup_ancestor(cgroup, level));
		if (!account)
			break;
	}
#else
	account = account_below(accounts, NULL, NULL);
#endif
	return account;
}

static bool is_too_deep(const struct cgroup *cgroup)
{
#ifdef CONFIG_CGROUPS
	return cgroup->level > FLEXMEM_MAX_DEPTH;
#else
	return false;
#endif
}

/*
 * The account of the cgroup that has an id, or a new one.
 * Context: may sleep. Return: the account, for flexmem_owner_put(); -ENOENT if
 * the caller's cgroup namespace shows no such cgroup; -EINVAL if the cgroup is
 * deeper than FLEXMEM_MAX_DEPTH levels; -ENOMEM.
 */
struct flexmem_account *flexmem_owner_by_id(struct flexmem_accounts *accounts,
					    u64 id)
{
	struct cgroup *cgroup = find_cgroup(id);
	struct flexmem_account *account;

	if (IS_ERR(cgroup))
		return ERR_CAST(cgroup);
	account = is_too_deep(cgroup) ? ERR_PTR(-EINVAL) :
		  flexmem_owner_of_cgroup(accounts, cgroup);
	flexmem_owner_put_cgroup(cgroup);
	return account ?: ERR_PTR(-ENOMEM);
}

/*
 * Makes the account of an open file. @cgroup, @pid: as for flexmem_client_init().
 * Context: may sleep. Return: the account, for flexmem_owner_close(); -EMFILE
 * if a cgroup may have no more open files; -ENOMEM.
 */
struct flexmem_account *flexmem_owner_open(struct flexmem_accounts *accounts,
					   kuid_t uid, struct cgroup *cgroup,
					   struct pid *pid)
{
	struct flexmem_account *client, *parent;
	int rc = -ENOMEM;

	flexmem_owner_forget(accounts);
	client = account_create(accounts, FLEXMEM_OWNER_CLIENT);
	parent = flexmem_owner_of_cgroup(accounts, cgroup);
	if (!client || !parent)
		goto free;
	client->uid = uid;
	client->pid = get_pid(pid);
	client->parent = parent;
	client->is_open = true;

	spin_lock(&accounts->lock);
	if (!flexmem_charge_file(client)) {
		spin_unlock(&accounts->lock);
		rc = -EMFILE;
		goto free;
	}
	client->id = ++accounts->last_id;
	rb_find_add(&client->by_id, &accounts->clients, account_cmp);
	accounts->nr_clients++;
	spin_unlock(&accounts->lock);
	return client;

free:
	flexmem_owner_put(parent);
	if (client)
		account_destroy(client);
	return ERR_PTR(rc);
}

/* Closes the account of a file; the caller must not use it afterwards. */
void flexmem_owner_close(struct flexmem_account *client)
{
	spin_lock(&client->accounts->lock);
	flexmem_uncharge_file(client);
	WRITE_ONCE(client->is_open, false);
	spin_unlock(&client->accounts->lock);
	flexmem_owner_put(client);
}

/* Drops a reference to an account, or to NULL. Not under the accounts' lock. */
void flexmem_owner_put(struct flexmem_account *account)
{
	struct flexmem_account *parent;

	for (; account; account = parent) {
		struct flexmem_accounts *accounts = account->accounts;

		if (!__cond_lock(&accounts->lock,
				 refcount_dec_and_lock(&account->refs,
						       &accounts->lock)))
			return;
		parent = account->parent;
		flexmem_account_settle(account);
		WARN_ON_ONCE(account->used[FLEXMEM_RESOURCE_BYTES] ||
			     account->used[FLEXMEM_RESOURCE_REGIONS] ||
			     account->used[FLEXMEM_RESOURCE_HANDLES]);
		if (account->kind == FLEXMEM_OWNER_CLIENT) {
			rb_erase(&account->by_id, &accounts->clients);
			accounts->nr_clients--;
		} else {
			rb_erase(&account->by_id, &accounts->cgroups);
			accounts->nr_cgroups--;
		}
		spin_unlock(&accounts->lock);
		account_destroy(account);
	}
}

/*
 * Lets the accounts of removed cgroups go, in which no file can be opened any
 * more. Their limits hold as long as an open file or a charge keeps the account.
 * One call checks a few cgroups, and the next call continues after them.
 * Context: may sleep, because it may put the last reference to a cgroup. O(1).
 */
void flexmem_owner_forget(struct flexmem_accounts *accounts)
{
	struct flexmem_account *account, *next;
	unsigned int left = AT_ONCE;
	LIST_HEAD(removed);

	spin_lock(&accounts->lock);
	list_for_each_entry_safe(account, next, &accounts->limited, link) {
		if (!left--) {
			list_rotate_to_front(&account->link,
					     &accounts->limited);
			break;
		}
		if (!flexmem_account_is_removed(account))
			continue;
		account->kept = false;
		list_move(&account->link, &removed);
	}
	spin_unlock(&accounts->lock);
	list_for_each_entry_safe(account, next, &removed, link)
		flexmem_owner_put(account);
}

/* If a file is not open, its bytes are scrubbed before any use. O(log files). */
bool flexmem_owner_is_open(struct flexmem_accounts *accounts, u64 id)
{
	struct rb_node *node;
	bool is_open;

	spin_lock(&accounts->lock);
	node = rb_find(&id, &accounts->clients, id_cmp);
	is_open = node && to_account(node)->is_open;
	spin_unlock(&accounts->lock);
	return is_open;
}

/* The caller sees its own cgroup and those of its namespace; root sees all. */
static bool may_see(const struct flexmem_account *client,
		    const struct flexmem_account *account)
{
	struct cgroup *cgroup;

	if (account == client->parent ||
	    ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN))
		return true;
	cgroup = find_cgroup(account->id);
	if (IS_ERR(cgroup))
		return false;
	flexmem_owner_put_cgroup(cgroup);
	return true;
}

/*
 * Tells the caller which limit has refused a charge. Of a cgroup that the caller
 * may not see it tells only what was left of the limit. May sleep.
 */
void flexmem_owner_tell_refusal(const struct flexmem_account *client,
				const struct flexmem_refused *refused,
				struct flexmem_refusal *reply)
{
	*reply = refused->figures;
	if (may_see(client, refused->by))
		return;
	reply->flags |= FLEXMEM_REFUSAL_HIDDEN;
	reply->cgroup = 0;
	reply->limit -= min(reply->used, reply->limit);
	reply->used = 0;
}

/* Ends all limits and reservations. Called when no file is open any more. */
void flexmem_accounts_fini(struct flexmem_accounts *accounts)
{
	struct flexmem_account *account, *next;

	WARN_ON_ONCE(accounts->nr_clients);
	flexmem_gauge_fini(&accounts->gauge);
	rbtree_postorder_for_each_entry_safe(account, next, &accounts->cgroups,
					     by_id)
		account_destroy(account);
}
