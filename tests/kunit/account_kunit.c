// SPDX-License-Identifier: GPL-2.0
/* Accounts: charges and limits of open files and of users. */

#include <kunit/test.h>
#include <linux/jiffies.h>

#include "accounts.h"
#include "checks.h"
#include "fake_device.h"
#include "owner.h"

/* Limits. */

static void client_limit_of_bytes_is_exact(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 1);

	EXPECT(test, accounts_set_limit(test, client, BYTES, GIB), 0);
	EXPECT(test, accounts_charge(test, client, 0, GIB + UNIT),
	       CLIENT_LIMIT);
	EXPECT(test, accounts_charge(test, client, 0, GIB - UNIT), NONE);
	EXPECT(test, accounts_charge(test, client, 0, 2 * UNIT), CLIENT_LIMIT);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), NONE);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), CLIENT_LIMIT);
	EXPECT(test, accounts_charge(test, other, 0, 2 * GIB), NONE);
	accounts_uncharge(test, client, 0, UNIT);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), NONE);
}

static void user_limit_of_bytes_is_exact(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);
	struct accounts_ctx *ctx = test->priv;

	EXPECT(test, accounts_set_limit(test, a->user, BYTES, GIB), 0);
	EXPECT(test, accounts_charge(test, a, 0, GIB - UNIT), NONE);
	EXPECT(test, accounts_charge(test, b, 1, 2 * UNIT), USER_LIMIT);
	EXPECT(test, accounts_charge(test, b, 1, UNIT), NONE);
	EXPECT(test, accounts_charge(test, a, 0, UNIT), USER_LIMIT);
	EXPECT(test, accounts_charge(test, other, 0, 2 * GIB), NONE);
	/* The same for a size that overflows the sum. */
	EXPECT(test, flexmem_account_refuses(&ctx->accounts,
					     accounts_open(test, 1), -UNIT, 0),
	       USER_LIMIT);
	accounts_uncharge(test, a, 0, GIB - UNIT);
	EXPECT(test, accounts_charge(test, b, 1, GIB - UNIT), NONE);
	EXPECT(test, accounts_charge(test, b, 1, UNIT), USER_LIMIT);
}

static void client_limit_of_slots_counts_regions(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);

	EXPECT(test, accounts_set_limit(test, client, NR_SLOTS, 2), 0);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), NONE);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), NONE);
	EXPECT(test, accounts_charge(test, client, 1, UNIT), NONE);
	EXPECT(test, accounts_charge(test, client, 2, UNIT), CLIENT_LIMIT);
	EXPECT(test, accounts_refuses_region(test, client), CLIENT_LIMIT);
	EXPECT(test, accounts_charge(test, client, 1, UNIT), NONE);
	/* A slot is given back with the last block in it. */
	accounts_uncharge(test, client, 0, UNIT);
	EXPECT(test, accounts_charge(test, client, 2, UNIT), CLIENT_LIMIT);
	accounts_uncharge(test, client, 0, UNIT);
	EXPECT(test, accounts_refuses_region(test, client), NONE);
	EXPECT(test, accounts_charge(test, client, 2, UNIT), NONE);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), CLIENT_LIMIT);
}

static void user_limit_of_slots_counts_a_region_once(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);

	EXPECT(test, accounts_set_limit(test, a->user, NR_SLOTS, 1), 0);
	EXPECT(test, accounts_charge(test, a, 0, UNIT), NONE);
	EXPECT(test, accounts_charge(test, b, 0, UNIT), NONE);
	EXPECT(test, a->user->used[NR_SLOTS], 1);
	EXPECT(test, accounts_charge(test, b, 1, UNIT), USER_LIMIT);
	EXPECT(test, accounts_refuses_region(test, b), USER_LIMIT);
	accounts_uncharge(test, a, 0, UNIT);
	EXPECT(test, accounts_charge(test, b, 1, UNIT), USER_LIMIT);
	accounts_uncharge(test, b, 0, UNIT);
	EXPECT(test, accounts_charge(test, b, 1, UNIT), NONE);
}

static void limits_of_handles_are_exact(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);
	struct accounts_ctx *ctx = test->priv;

	EXPECT(test, accounts_set_limit(test, a, HANDLES, 2), 0);
	EXPECT(test, accounts_set_limit(test, a->user, HANDLES, 3), 0);
	EXPECT(test, accounts_charge_handle(test, a), NONE);
	EXPECT(test, accounts_charge_handle(test, a), NONE);
	EXPECT(test, accounts_charge_handle(test, a), CLIENT_LIMIT);
	EXPECT(test, accounts_charge_handle(test, b), NONE);
	EXPECT(test, accounts_charge_handle(test, b), USER_LIMIT);
	EXPECT(test, b->used[HANDLES], 1);
	EXPECT(test, a->user->used[HANDLES], 3);
	flexmem_uncharge_handle(&ctx->accounts, a);
	EXPECT(test, accounts_charge_handle(test, b), NONE);
	EXPECT(test, accounts_charge_handle(test, a), USER_LIMIT);
}

static void limit_below_use_takes_nothing_away(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);

	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	EXPECT(test, accounts_set_limit(test, client, BYTES, GIB), 0);
	EXPECT(test, client->used[BYTES], 2 * GIB);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), CLIENT_LIMIT);
	accounts_uncharge(test, client, 0, GIB);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), CLIENT_LIMIT);
	EXPECT(test, accounts_set_limit(test, client, BYTES, GIB + UNIT), 0);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), NONE);
}

static void refused_charge_changes_nothing(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1), *before;

	before = kunit_kcalloc(test, 2, sizeof(*before), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, before);
	EXPECT(test, accounts_set_limit(test, client->user, BYTES, 5 * GIB), 0);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	before[0] = *client;
	before[1] = *client->user;
	EXPECT(test, accounts_charge(test, client, 0, 5 * GIB), USER_LIMIT);
	KUNIT_EXPECT_EQ(test, 0, memcmp(&before[0], client, sizeof(*client)));
	KUNIT_EXPECT_EQ(test, 0,
			memcmp(&before[1], client->user, sizeof(*client)));
}

static void orphaned_bytes_stay_charged(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct accounts_ctx *ctx = test->priv;

	EXPECT(test, accounts_set_limit(test, client->user, BYTES, GIB), 0);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	flexmem_charge_orphan(&ctx->accounts, client, 0, GIB);
	accounts_check(test);
	EXPECT(test, ctx->accounts.owned, 0);
	EXPECT(test, ctx->accounts.orphaned, GIB);
	EXPECT(test, client->used[BYTES], GIB);
	EXPECT(test, client->orphaned, GIB);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), USER_LIMIT);
	flexmem_uncharge(&ctx->accounts, client, 0, GIB, true);
	accounts_check(test);
	EXPECT(test, ctx->accounts.orphaned, 0);
	EXPECT(test, client->orphaned, 0);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), NONE);
	EXPECT(test, client->peak, GIB);
}

static void a_closed_client_is_enoent(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	u64 id = client->id;

	EXPECT(test, accounts_limit_absent(test, FLEXMEM_OWNER_CLIENT, id, 1),
	       0);
	accounts_close(test, client);
	EXPECT(test, accounts_limit_absent(test, FLEXMEM_OWNER_CLIENT, id, 1),
	       -ENOENT);
	EXPECT(test, accounts_limit_absent(test, FLEXMEM_OWNER_CLIENT, 0, 1),
	       -ENOENT);
}

static void user_need_not_have_a_file(struct kunit *test)
{
	struct flexmem_account *client;
	struct flexmem_quota quota = {
		.kind = FLEXMEM_OWNER_USER,
		.resource = BYTES,
	};

	EXPECT(test, accounts_limit_absent(test, FLEXMEM_OWNER_USER, 0, 7), 0);
	client = accounts_open(test, 7);
	EXPECT(test, accounts_charge(test, client, 0, GIB + UNIT), USER_LIMIT);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	flexmem_quota_get(client, &quota);
	EXPECT(test, quota.out_limit, GIB);
	EXPECT(test, quota.out_used, GIB);
	quota.kind = FLEXMEM_OWNER_CLIENT;
	flexmem_quota_get(client, &quota);
	EXPECT(test, quota.out_limit, FLEXMEM_NO_LIMIT);
}

/* Regions that go. */

static void lost_region_has_no_charges(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 2);
	struct accounts_ctx *ctx = test->priv;

	EXPECT(test, accounts_charge(test, a, 0, GIB), NONE);
	EXPECT(test, accounts_charge(test, a, 1, GIB), NONE);
	EXPECT(test, accounts_charge(test, b, 0, 4 * GIB), NONE);
	flexmem_charge_orphan(&ctx->accounts, b, 0, 4 * GIB);
	flexmem_charge_quarantine(&ctx->accounts, 0, GIB);
	accounts_check(test);
	accounts_remove_region(test, 0);
	EXPECT(test, ctx->accounts.owned, GIB);
	EXPECT(test, ctx->accounts.orphaned, 0);
	EXPECT(test, ctx->accounts.quarantined, 0);
	EXPECT(test, a->used[BYTES], GIB);
	EXPECT(test, a->used[NR_SLOTS], 1);
	EXPECT(test, b->used[BYTES], 0);
	EXPECT(test, b->user->used[BYTES], 0);
	EXPECT(test, b->user->used[NR_SLOTS], 0);
	EXPECT(test, b->orphaned, 0);
}

/* Users. */

static struct flexmem_account *user_of(struct accounts_ctx *ctx,
				       unsigned int uid)
{
	struct flexmem_account *user;

	list_for_each_entry(user, &ctx->accounts.users, link)
		if (uid_eq(user->uid, fake_uid(uid)))
			return user;
	return NULL;
}

static void user_stays_with_a_file_or_a_limit(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client = accounts_open(test, 0);

	KUNIT_EXPECT_NOT_NULL(test, user_of(ctx, 0));
	EXPECT(test, accounts_set_limit(test, client->user, BYTES, GIB), 0);
	EXPECT(test, accounts_set_limit(test, client->user, HANDLES, 7), 0);
	accounts_close(test, client);
	EXPECT(test, accounts_limit_absent(test, FLEXMEM_OWNER_USER, 0, 1), 0);
	KUNIT_EXPECT_NOT_NULL(test, user_of(ctx, 1));
	accounts_set_limit(test, user_of(ctx, 0), BYTES, FLEXMEM_NO_LIMIT);
	KUNIT_EXPECT_NOT_NULL(test, user_of(ctx, 0));
	accounts_set_limit(test, user_of(ctx, 0), HANDLES, FLEXMEM_NO_LIMIT);
	KUNIT_EXPECT_NULL(test, user_of(ctx, 0));
	accounts_close(test, accounts_open(test, 2));
	KUNIT_EXPECT_NULL(test, user_of(ctx, 2));
}

/* Its file is closed, but something in use is charged to that still. */
static void user_who_is_charged_stays(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client;

	client = flexmem_owner_open(&ctx->accounts, fake_uid(0), 1, NULL);
	KUNIT_ASSERT_NOT_NULL(test, client);
	flexmem_owner_get(client);
	flexmem_owner_close(client);
	KUNIT_EXPECT_NOT_NULL(test, user_of(ctx, 0));
	flexmem_owner_put(client);
	KUNIT_EXPECT_NULL(test, user_of(ctx, 0));
	accounts_check(test);
}

/* Owners. */

static bool is_known(struct kunit *test, u64 owner)
{
	struct accounts_ctx *ctx = test->priv;
	bool known;

	spin_lock(&ctx->accounts.lock);
	known = flexmem_owner_find(&ctx->accounts, owner);
	spin_unlock(&ctx->accounts.lock);
	return known;
}

static void idle_owners_are_forgotten_oldest_first(struct kunit *test)
{
	const unsigned int nr = FLEXMEM_MAX_IDLE_OWNERS;
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client;
	u64 first = 0, id = 0;
	unsigned int uid;

	for (uid = 0; uid < nr; uid++) {
		client = accounts_open(test, uid);
		id = flexmem_owner_of_bytes(client);
		first = first ?: id;
		accounts_close_unchecked(client);
	}
	EXPECT(test, ctx->accounts.nr_idle, nr);
	/* An owner with an open file is not idle, and then the latest one. */
	client = accounts_open(test, 0);
	EXPECT(test, flexmem_owner_of_bytes(client), first);
	EXPECT(test, ctx->accounts.nr_idle, nr - 1);
	accounts_close(test, client);
	EXPECT(test, ctx->accounts.nr_idle, nr);
	accounts_close(test, accounts_open(test, nr));
	EXPECT(test, ctx->accounts.nr_idle, nr);
	KUNIT_EXPECT_FALSE(test, is_known(test, first + 1));
	KUNIT_EXPECT_TRUE(test, is_known(test, first));
	KUNIT_EXPECT_TRUE(test, is_known(test, first + 2));
	KUNIT_EXPECT_TRUE(test, is_known(test, id));
	/* A strict owner goes with its file, and no other one for it. */
	client = accounts_open(test, nr);
	EXPECT(test, flexmem_owner_set_strict(client), 0);
	id = flexmem_owner_of_bytes(client);
	accounts_close(test, client);
	KUNIT_EXPECT_FALSE(test, is_known(test, id));
	KUNIT_EXPECT_TRUE(test, is_known(test, first + 2));
	EXPECT(test, ctx->accounts.nr_idle, nr);
}

static void owner_is_a_user_in_a_cgroup(struct kunit *test)
{
	static const struct { unsigned int uid; u64 cgroup; } of[] = {
		{ 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 }, { 0, U64_MAX },
	};
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client;
	u64 id[ARRAY_SIZE(of)];
	unsigned int i, j;

	for (i = 0; i < 2 * ARRAY_SIZE(of); i++) {
		j = i % ARRAY_SIZE(of);
		client = flexmem_owner_open(&ctx->accounts, fake_uid(of[j].uid),
					    of[j].cgroup, NULL);
		KUNIT_ASSERT_NOT_NULL(test, client);
		if (i == j)
			id[j] = flexmem_owner_of_bytes(client);
		EXPECT(test, flexmem_owner_of_bytes(client), id[j]);
		flexmem_owner_close(client);
		while (i == j && j--)
			KUNIT_EXPECT_NE(test, id[i], id[j]);
	}
}

static void numbers_are_never_used_twice(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	u64 id = client->id, owner = flexmem_owner_of_bytes(client), strict;

	EXPECT(test, flexmem_owner_set_strict(client), 0);
	strict = flexmem_owner_of_bytes(client);
	KUNIT_EXPECT_GT(test, strict, owner);
	EXPECT(test, flexmem_owner_set_strict(client), 0);
	EXPECT(test, flexmem_owner_of_bytes(client), strict);
	accounts_close(test, client);
	client = accounts_open(test, 1);
	KUNIT_EXPECT_GT(test, client->id, id);
	EXPECT(test, flexmem_owner_of_bytes(client), owner);
	client = accounts_open(test, 2);
	KUNIT_EXPECT_GT(test, flexmem_owner_of_bytes(client), strict);
}

static void users_are_listed_by_uid(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *user;
	unsigned int uid = 0;

	accounts_open(test, 2);
	accounts_open(test, 3);
	accounts_open(test, 1);
	list_for_each_entry(user, &ctx->accounts.users, link)
		KUNIT_EXPECT_TRUE(test, uid_eq(user->uid, fake_uid(++uid)));
	EXPECT(test, uid, 3);
}

static void owner_without_files_becomes_idle(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_owner *owner = client->owner;
	u64 id = owner->id;

	KUNIT_EXPECT_FALSE(test, flexmem_owner_is_idle(&ctx->accounts, id, 0));
	accounts_close(test, client);
	KUNIT_EXPECT_FALSE(test, flexmem_owner_is_idle(&ctx->accounts, id,
						       1000 * HZ));
	owner->idle_since = jiffies - 2 * HZ;
	KUNIT_EXPECT_TRUE(test, flexmem_owner_is_idle(&ctx->accounts, id, HZ));
	KUNIT_EXPECT_TRUE(test, flexmem_owner_is_idle(&ctx->accounts, 9999, 0));
	client = accounts_open(test, 1);
	EXPECT(test, flexmem_owner_set_strict(client), 0);
	id = flexmem_owner_of_bytes(client);
	KUNIT_EXPECT_FALSE(test, flexmem_owner_is_idle(&ctx->accounts, id, 0));
	accounts_close(test, client);
	KUNIT_EXPECT_TRUE(test, flexmem_owner_is_idle(&ctx->accounts, id, HZ));
}

static void owner_stays_while_referenced(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client, *user;
	u64 id;

	client = flexmem_owner_open(&ctx->accounts, fake_uid(1), 1, NULL);
	KUNIT_ASSERT_NOT_NULL(test, client);
	user = flexmem_owner_get(client->user);
	id = client->id;
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	flexmem_owner_get(client);
	flexmem_owner_close(client);
	accounts_check(test);
	/* Charged as before. */
	EXPECT(test, ctx->accounts.nr_clients, 1);
	EXPECT(test, ctx->accounts.owned, GIB);
	EXPECT(test, user->used[BYTES], GIB);
	EXPECT(test, accounts_limit_absent(test, FLEXMEM_OWNER_CLIENT, id, 0),
	       -ENOENT);
	accounts_uncharge(test, client, 0, GIB);
	flexmem_owner_put(client);
	accounts_check(test);
	KUNIT_EXPECT_TRUE(test, list_empty(&ctx->accounts.clients));
	EXPECT(test, ctx->accounts.nr_clients, 0);
	EXPECT(test, refcount_read(&user->refs), 1);
	flexmem_owner_put(user);
}

static void owner_is_found_among_many(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client[64];
	unsigned int i;
	u64 id;

	for (i = 0; i < ARRAY_SIZE(client); i++)
		client[i] = accounts_open(test, i / 2);
	for (i = 0; i < ARRAY_SIZE(client); i += 3)
		accounts_close_unchecked(client[i]);
	spin_lock(&ctx->accounts.lock);
	for (i = 0; i < ARRAY_SIZE(client); i++) {
		if (i % 3 == 0)
			continue;
		id = flexmem_owner_of_bytes(client[i]);
		KUNIT_EXPECT_PTR_EQ(test, client[i]->owner,
				    flexmem_owner_find(&ctx->accounts, id));
	}
	id = ctx->accounts.last_owner + 1;
	KUNIT_EXPECT_NULL(test, flexmem_owner_find(&ctx->accounts, 0));
	KUNIT_EXPECT_NULL(test, flexmem_owner_find(&ctx->accounts, id));
	spin_unlock(&ctx->accounts.lock);
}

/* The checker: each figure, wrong by one. */

enum figure_of {
	OF_ACCOUNTS,
	OF_CLIENT,
	OF_USER,
};

struct wrong_figure {
	const char *name;
	enum figure_of of;
	size_t offset;
	const char *says;
};

#define IN_ACCOUNT(member) offsetof(struct flexmem_account, member)
#define IN_ACCOUNTS(member) offsetof(struct flexmem_accounts, member)

static const struct wrong_figure wrong_figures[] = {
	{ "bytes of a client", OF_CLIENT, IN_ACCOUNT(used[BYTES]),
	  "bytes of an account miscounted" },
	{ "slots of a client", OF_CLIENT, IN_ACCOUNT(used[NR_SLOTS]),
	  "slots of an account miscounted" },
	{ "bytes of a user", OF_USER, IN_ACCOUNT(used[BYTES]),
	  "bytes of an account miscounted" },
	{ "orphaned of a client", OF_CLIENT, IN_ACCOUNT(orphaned),
	  "orphaned bytes of an account miscounted" },
	{ "bytes without a block", OF_CLIENT, IN_ACCOUNT(in[3].bytes),
	  "bytes charged without a block" },
	{ "owned", OF_ACCOUNTS, IN_ACCOUNTS(owned),
	  "bytes of clients and of users differ" },
	{ "orphaned", OF_ACCOUNTS, IN_ACCOUNTS(orphaned),
	  "bytes of clients and of users differ" },
	{ "handles of a client", OF_CLIENT, IN_ACCOUNT(used[HANDLES]),
	  "handles of a user miscounted" },
};

KUNIT_ARRAY_PARAM_DESC(figure, wrong_figures, name);

static void check_notices(struct kunit *test)
{
	const struct wrong_figure *wrong = test->param_value;
	struct flexmem_account *client = accounts_open(test, 1);
	struct accounts_ctx *ctx = test->priv;
	void *base[] = { &ctx->accounts, client, client->user };
	u64 *figure = base[wrong->of] + wrong->offset;

	EXPECT(test, accounts_charge(test, client, 0, 2 * GIB), NONE);
	++*figure;
	KUNIT_EXPECT_STREQ(test,
			   checks_of_accounts(&ctx->accounts) ?: "none",
			   wrong->says);
	--*figure;
}

static struct kunit_case account_cases[] = {
	KUNIT_CASE(client_limit_of_bytes_is_exact),
	KUNIT_CASE(user_limit_of_bytes_is_exact),
	KUNIT_CASE(client_limit_of_slots_counts_regions),
	KUNIT_CASE(user_limit_of_slots_counts_a_region_once),
	KUNIT_CASE(limits_of_handles_are_exact),
	KUNIT_CASE(limit_below_use_takes_nothing_away),
	KUNIT_CASE(refused_charge_changes_nothing),
	KUNIT_CASE(orphaned_bytes_stay_charged),
	KUNIT_CASE(a_closed_client_is_enoent),
	KUNIT_CASE(user_need_not_have_a_file),
	KUNIT_CASE(lost_region_has_no_charges),
	KUNIT_CASE(user_stays_with_a_file_or_a_limit),
	KUNIT_CASE(user_who_is_charged_stays),
	KUNIT_CASE(idle_owners_are_forgotten_oldest_first),
	KUNIT_CASE(owner_is_a_user_in_a_cgroup),
	KUNIT_CASE(numbers_are_never_used_twice),
	KUNIT_CASE(users_are_listed_by_uid),
	KUNIT_CASE(owner_without_files_becomes_idle),
	KUNIT_CASE(owner_stays_while_referenced),
	KUNIT_CASE(owner_is_found_among_many),
	KUNIT_CASE_PARAM(check_notices, figure_gen_params),
	{}
};

static struct kunit_suite account_suite = {
	.name = "flexmem_account",
	.init = accounts_test_init,
	.test_cases = account_cases,
};

kunit_test_suite(account_suite);
