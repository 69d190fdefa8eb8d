// SPDX-License-Identifier: GPL-2.0
/* Which limit holds for a cgroup, and what open() does with limits. */

#include <kunit/test.h>
#include <linux/cgroup.h>
#include <linux/err.h>

#include "accounts.h"
#include "fake_device.h"
#include "settings.h"
#include "tenant/owner.h"

/* Cgroups: 14 below 13, 13 below 12, 12 below 1; 1 to 11 below 0, the root. */

static struct flexmem_account *open_in(struct kunit *test, unsigned int cgroup)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client;

	client = flexmem_owner_open(&ctx->accounts, fake_uid(0),
				    fake_cgroup(cgroup), NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, client);
	return client;
}

static u64 limit_of(struct kunit *test, unsigned int cgroup,
		    enum flexmem_resource resource)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *account;
	u64 limit;

	account = flexmem_owner_of_cgroup(&ctx->accounts, fake_cgroup(cgroup));
	KUNIT_ASSERT_NOT_NULL(test, account);
	spin_lock(&ctx->accounts.lock);
	flexmem_account_settle(account);
	limit = account->limit[resource];
	spin_unlock(&ctx->accounts.lock);
	flexmem_owner_put(account);
	return limit;
}

#define DEFAULT FLEXMEM_SCOPE_DEFAULT
#define NO_LIMIT FLEXMEM_NO_LIMIT

/*
 * Each cgroup at the default depth has a default limit. The cgroups below it
 * share that limit.
 */
static void default_is_shared(struct kunit *test)
{
	struct flexmem_account *low = open_in(test, 14), *mid, *high;
	unsigned int n;

	accounts_set(test, DEFAULT, 0, BYTES, 3 * GIB);
	mid = open_in(test, 13);
	high = open_in(test, 2);
	for (n = 0; n < 15; n++)
		EXPECT(test, limit_of(test, n, BYTES),
		       n == 12 ? 3 * GIB : NO_LIMIT);
	/* Handles and open files have a default limit from the first. */
	for (n = 0; n < 15; n++) {
		EXPECT(test, limit_of(test, n, HANDLES),
		       n == 12 ? FLEXMEM_DEFAULT_HANDLES : NO_LIMIT);
		EXPECT(test, limit_of(test, n, FILES),
		       n == 12 ? FLEXMEM_DEFAULT_FILES : NO_LIMIT);
	}
	EXPECT(test, limit_of(test, 12, NR_SLOTS), NO_LIMIT);
	EXPECT(test, accounts_charge(test, low, 0, 2 * GIB), NONE);
	EXPECT(test, accounts_charge(test, mid, 0, GIB + UNIT), CGROUP_LIMIT);
	EXPECT(test, accounts_charge(test, mid, 0, GIB), NONE);
	EXPECT(test, accounts_charge(test, low, 0, UNIT), CGROUP_LIMIT);
	EXPECT(test, accounts_charge(test, high, 0, 9 * GIB), NONE);
	accounts_remove_region(test, 0);
	flexmem_owner_close(low);
	flexmem_owner_close(mid);
	flexmem_owner_close(high);
}

/* A cgroup's own limit counts first, then the default. */
static void nearest_limit_holds(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client;

	accounts_set(test, DEFAULT, 0, BYTES, 5 * GIB);
	EXPECT(test, ctx->accounts.nr_cgroups, 0);
	client = open_in(test, 12);
	EXPECT(test, limit_of(test, 12, BYTES), 5 * GIB);
	accounts_limit_cgroup(test, 12, BYTES, 7 * GIB);
	EXPECT(test, limit_of(test, 1, BYTES), NO_LIMIT);
	EXPECT(test, limit_of(test, 13, BYTES), NO_LIMIT);
	accounts_set(test, DEFAULT, 0, BYTES, 2 * GIB);
	EXPECT(test, limit_of(test, 12, BYTES), 7 * GIB);
	EXPECT(test, limit_of(test, 12, NR_SLOTS), NO_LIMIT);
	accounts_limit_cgroup(test, 12, BYTES, NO_LIMIT);
	EXPECT(test, limit_of(test, 12, BYTES), 2 * GIB);
	accounts_set(test, DEFAULT, 0, BYTES, NO_LIMIT);
	EXPECT(test, limit_of(test, 12, BYTES), NO_LIMIT);
	flexmem_owner_close(client);
	EXPECT(test, ctx->accounts.nr_cgroups, 0);
	/*
	 * The limits of an account are freed with the account: the next account
	 * of the cgroup has no limits.
	 */
	accounts_limit_cgroup(test, 2, BYTES, GIB);
	EXPECT(test, ctx->accounts.nr_cgroups, 2);
	accounts_limit_cgroup(test, 2, BYTES, NO_LIMIT);
	EXPECT(test, ctx->accounts.nr_cgroups, 0);
}

/* This is so for limits that are set after the removal, too. */
static void removed_cgroup_inherits_limits(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client = open_in(test, 12);

	accounts_set(test, DEFAULT, 0, BYTES, GIB);
	accounts_limit_cgroup(test, 12, FILES, 5);
	EXPECT(test, limit_of(test, 12, BYTES), GIB);
	KUNIT_EXPECT_FALSE(test, flexmem_account_is_removed(client->parent));
#ifdef CONFIG_CGROUPS
	fake_cgroup(12)->self.flags &= ~CSS_ONLINE;
	flexmem_owner_forget(&ctx->accounts);
	accounts_check(test);
	KUNIT_EXPECT_TRUE(test, flexmem_account_is_removed(client->parent));
	KUNIT_EXPECT_FALSE(test, flexmem_account_is_removed(client));
	EXPECT(test, accounts_charge(test, client, 0, GIB + UNIT), CGROUP_LIMIT);
	accounts_set(test, DEFAULT, 0, BYTES, 2 * GIB);
	EXPECT(test, accounts_charge(test, client, 0, GIB + UNIT), NONE);
	EXPECT(test, client->parent->limit[BYTES], 2 * GIB);
	accounts_uncharge(test, client, 0, GIB + UNIT);
#endif
	flexmem_owner_close(client);
	fake_cgroup(12);
	accounts_limit_cgroup(test, 12, FILES, NO_LIMIT);
	accounts_set(test, DEFAULT, 0, BYTES, NO_LIMIT);
	EXPECT(test, ctx->accounts.nr_cgroups, 0);
}

/*
 * The limit counts all files below a cgroup. A refused open() leaves nothing
 * charged.
 */
static void open_files_are_limited(struct kunit *test)
{
	struct flexmem_account *a = open_in(test, 14), *b, *refused;
	struct accounts_ctx *ctx = test->priv;

	accounts_limit_cgroup(test, 12, FILES, 2);
	b = open_in(test, 13);
	EXPECT(test, a->parent->used[FILES], 1);
	EXPECT(test, b->parent->used[FILES], 2);
	refused = flexmem_owner_open(&ctx->accounts, fake_uid(0),
				     fake_cgroup(12), NULL);
	EXPECT(test, PTR_ERR_OR_ZERO(refused), -EMFILE);
	accounts_check(test);
	EXPECT(test, ctx->accounts.nr_clients, 2);
	flexmem_owner_close(open_in(test, 1));
	flexmem_owner_close(a);
	accounts_check(test);
	a = open_in(test, 12);
	/*
	 * A file counts only until close(), even if memory is still charged to
	 * it.
	 */
	flexmem_owner_get(a);
	flexmem_owner_close(a);
	flexmem_owner_close(open_in(test, 14));
	flexmem_owner_put(a);
	flexmem_owner_close(b);
	accounts_limit_cgroup(test, 12, FILES, NO_LIMIT);
	EXPECT(test, ctx->accounts.nr_cgroups, 0);
}

static struct kunit_case limit_cases[] = {
	KUNIT_CASE(default_is_shared),
	KUNIT_CASE(nearest_limit_holds),
	KUNIT_CASE(removed_cgroup_inherits_limits),
	KUNIT_CASE(open_files_are_limited),
	{}
};

static struct kunit_suite limit_suite = {
	.name = "flexmem_limit",
	.init = accounts_test_init,
	.test_cases = limit_cases,
};

kunit_test_suite(limit_suite);
