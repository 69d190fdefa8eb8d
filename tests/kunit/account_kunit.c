// SPDX-License-Identifier: GPL-2.0
/* Accounts: charges and limits of open files and of cgroups. */

#include <kunit/test.h>
#include <linux/cgroup.h>
#include <linux/jiffies.h>

#include "accounts.h"
#include "checks.h"
#include "fake_device.h"
#include "settings.h"
#include "tenant/owner.h"

/* ---- limits of an account ---- */

static void cgroup_limit_of_bytes_is_exact(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);

	accounts_set_limit(test, a->parent, BYTES, GIB);
	EXPECT(test, accounts_charge(test, a, 0, GIB - UNIT), NONE);
	EXPECT(test, accounts_charge(test, b, 1, 2 * UNIT), CGROUP_LIMIT);
	EXPECT(test, accounts_charge(test, b, 1, UNIT), NONE);
	EXPECT(test, accounts_charge(test, a, 0, UNIT), CGROUP_LIMIT);
	EXPECT(test, accounts_charge(test, other, 0, 2 * GIB), NONE);
	/* The limit also holds if the sum of used bytes and size overflows. */
	EXPECT(test, flexmem_charge(accounts_open(test, 1),
				    -UNIT, 0, NULL), CGROUP_LIMIT);
	accounts_uncharge(test, a, 0, GIB - UNIT);
	EXPECT(test, accounts_charge(test, b, 1, GIB - UNIT), NONE);
	EXPECT(test, accounts_charge(test, b, 1, UNIT), CGROUP_LIMIT);
}

/* Each file may have a number of handles, whatever the limits are. */
static void handles_of_a_file_are_limited(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);

	EXPECT(test, flexmem_charge(a, 0, FLEXMEM_MAX_HANDLES - 1, NULL), NONE);
	EXPECT(test, flexmem_charge(a, 0, 1, NULL), NONE);
	EXPECT(test, flexmem_charge(a, 0, 1, NULL), FLEXMEM_REASON_HANDLES);
	EXPECT(test, flexmem_charge(a, UNIT, 0, NULL), NONE);
	EXPECT(test, flexmem_charge(b, 0, 1, NULL), NONE);
	flexmem_uncharge(a, UNIT, 1);
	EXPECT(test, flexmem_charge(a, 0, 1, NULL), NONE);
	flexmem_uncharge(a, 0, FLEXMEM_MAX_HANDLES);
	flexmem_uncharge(b, 0, 1);
}

static void cgroup_limit_of_slots_counts_a_region_once(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);

	accounts_set_limit(test, a->parent, NR_SLOTS, 1);
	EXPECT(test, accounts_charge(test, a, 0, UNIT), NONE);
	EXPECT(test, accounts_charge(test, b, 0, UNIT), NONE);
	EXPECT(test, a->parent->used[NR_SLOTS], 1);
	EXPECT(test, accounts_charge(test, b, 1, UNIT), REGION_LIMIT);
	KUNIT_EXPECT_TRUE(test, flexmem_account_refuses_region(b, NULL));
	accounts_uncharge(test, a, 0, UNIT);
	EXPECT(test, accounts_charge(test, b, 1, UNIT), REGION_LIMIT);
	accounts_uncharge(test, b, 0, UNIT);
	EXPECT(test, accounts_charge(test, b, 1, UNIT), NONE);
}

static void limits_of_handles_are_exact(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);

	accounts_set_limit(test, a->parent, HANDLES, 2);
	EXPECT(test, accounts_charge_handle(test, a), NONE);
	EXPECT(test, accounts_charge_handle(test, b), NONE);
	EXPECT(test, accounts_charge_handle(test, b), CGROUP_LIMIT);
	EXPECT(test, b->used[HANDLES], 1);
	EXPECT(test, a->parent->used[HANDLES], 2);
	flexmem_uncharge(a, 0, 1);
	EXPECT(test, accounts_charge_handle(test, b), NONE);
	EXPECT(test, accounts_charge_handle(test, a), CGROUP_LIMIT);
}

static void limit_below_use_takes_nothing_away(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);

	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	accounts_set_limit(test, client->parent, BYTES, GIB);
	EXPECT(test, client->used[BYTES], 2 * GIB);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), CGROUP_LIMIT);
	accounts_uncharge(test, client, 0, GIB);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), CGROUP_LIMIT);
	accounts_set_limit(test, client->parent, BYTES, GIB + UNIT);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), NONE);
}

static void refused_charge_changes_nothing(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1), *before;

	before = kunit_kcalloc(test, 2, sizeof(*before), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, before);
	accounts_set_limit(test, client->parent, BYTES, 5 * GIB);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	before[0] = *client;
	before[1] = *client->parent;
	EXPECT(test, accounts_charge(test, client, 0, 5 * GIB), CGROUP_LIMIT);
	KUNIT_EXPECT_EQ(test, 0, memcmp(&before[0], client, sizeof(*client)));
	KUNIT_EXPECT_EQ(test, 0,
			memcmp(&before[1], client->parent, sizeof(*client)));
}

/* Expects that @refused tells of a limit of @by, and with which figures. */
static void expect_refusal(struct kunit *test,
			   const struct flexmem_refused *refused,
			   const struct flexmem_account *by,
			   const struct flexmem_refusal *figures)
{
	KUNIT_EXPECT_PTR_EQ(test, refused->by, by);
	EXPECT(test, refused->figures.cgroup, by->id);
	EXPECT(test, refused->figures.resource, figures->resource);
	EXPECT(test, refused->figures.flags, figures->flags);
	EXPECT(test, refused->figures.limit, figures->limit);
	EXPECT(test, refused->figures.used, figures->used);
	EXPECT(test, refused->figures.own, figures->own);
}

/* The figures are those of the refusal, whatever is charged and set later. */
static void refusal_tells_the_limit(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 2);
	struct flexmem_account *above = a->parent->parent;
	struct flexmem_refused refused = {}, later;
	const struct flexmem_refusal bytes = {
		.resource = BYTES, .limit = 3 * UNIT, .used = 2 * UNIT,
		.own = UNIT, .flags = FLEXMEM_REFUSAL_SHARED,
	}, handles = {
		.resource = HANDLES, .limit = 2, .used = 2, .own = 1,
		.flags = FLEXMEM_REFUSAL_SHARED,
	}, regions = {
		.resource = NR_SLOTS, .limit = 1, .used = 1,
		.flags = FLEXMEM_REFUSAL_SHARED,
	};

	accounts_set_limit(test, b->parent, BYTES, GIB);
	accounts_set_limit(test, above, BYTES, 3 * UNIT);
	accounts_set_limit(test, above, HANDLES, 2);
	accounts_set_limit(test, above, NR_SLOTS, 1);
	EXPECT(test, flexmem_charge(a, UNIT, 1, &refused), NONE);
	EXPECT(test, flexmem_charge(b, UNIT, 1, &refused), NONE);
	KUNIT_EXPECT_NULL(test, refused.by);
	EXPECT(test, flexmem_charge(b, 2 * UNIT, 1, &refused), CGROUP_LIMIT);
	expect_refusal(test, &refused, above, &bytes);
	EXPECT(test, flexmem_charge(b, UNIT, 1, &later), CGROUP_LIMIT);
	expect_refusal(test, &later, above, &handles);
	EXPECT(test, flexmem_account_take(a, 0, UNIT, NULL), NONE);
	EXPECT(test, flexmem_account_take(b, 1, UNIT, &later), REGION_LIMIT);
	expect_refusal(test, &later, above, &regions);
	later = (struct flexmem_refused) {};
	KUNIT_EXPECT_TRUE(test, flexmem_account_refuses_region(b, &later));
	expect_refusal(test, &later, above, &regions);
	flexmem_uncharge(b, UNIT, 1);
	accounts_uncharge(test, a, 0, UNIT);
	expect_refusal(test, &refused, above, &bytes);
}

/* Whether the limit refuses a block of @client in a slot because of others. */
static void expect_shared_region(struct kunit *test,
				 struct flexmem_account *client,
				 unsigned int slot, bool shared)
{
	struct flexmem_refused refused = {};

	EXPECT(test, flexmem_account_take(client, slot, UNIT, &refused),
	       REGION_LIMIT);
	EXPECT(test, refused.figures.flags,
	       shared ? FLEXMEM_REFUSAL_SHARED : 0);
}

/* A limit is shared if another file is charged to it, also in the same region. */
static void refusal_tells_of_others(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);
	struct flexmem_refused refused = {};

	accounts_set_limit(test, a->parent, BYTES, 4 * UNIT);
	accounts_set_limit(test, a->parent, HANDLES, 1);
	accounts_set_limit(test, a->parent, NR_SLOTS, 1);
	EXPECT(test, accounts_charge(test, a, 0, UNIT), NONE);
	EXPECT(test, flexmem_charge(a, 4 * UNIT, 0, &refused), CGROUP_LIMIT);
	EXPECT(test, refused.figures.flags, 0);
	EXPECT(test, flexmem_charge(a, UNIT, 1, &refused), NONE);
	EXPECT(test, flexmem_charge(a, UNIT, 1, &refused), CGROUP_LIMIT);
	EXPECT(test, refused.figures.flags, 0);
	expect_shared_region(test, a, 1, false);
	EXPECT(test, accounts_charge(test, b, 0, UNIT), NONE);
	expect_shared_region(test, a, 1, true);
	expect_shared_region(test, b, 1, true);
	accounts_uncharge(test, a, 0, UNIT);
	flexmem_uncharge(a, UNIT, 1);
	expect_shared_region(test, b, 1, false);
	expect_shared_region(test, a, 1, true);
	accounts_uncharge(test, b, 0, UNIT);
}

static void orphaned_bytes_stay_charged(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct accounts_ctx *ctx = test->priv;

	accounts_set_limit(test, client->parent, BYTES, GIB);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	accounts_move(test, client, 0, GIB,
		      FLEXMEM_USE_OWNED, FLEXMEM_USE_ORPHANED);
	accounts_check(test);
	EXPECT(test, ctx->accounts.bytes[FLEXMEM_USE_OWNED], 0);
	EXPECT(test, ctx->accounts.bytes[FLEXMEM_USE_ORPHANED], GIB);
	EXPECT(test, client->used[BYTES], GIB);
	EXPECT(test, client->orphaned, GIB);
	EXPECT(test, client->parent->in[0].orphaned, GIB);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), CGROUP_LIMIT);
	accounts_move(test, client, 0, GIB,
		      FLEXMEM_USE_ORPHANED, FLEXMEM_USE_FREE);
	accounts_check(test);
	EXPECT(test, ctx->accounts.bytes[FLEXMEM_USE_ORPHANED], 0);
	EXPECT(test, client->orphaned, 0);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), NONE);
	EXPECT(test, client->peak, GIB);
}

static void cgroup_need_not_have_a_file(struct kunit *test)
{
	struct flexmem_account *client;

	accounts_limit_cgroup(test, 7, BYTES, GIB);
	client = accounts_open(test, 7);
	EXPECT(test, accounts_charge(test, client, 0, GIB + UNIT),
	       CGROUP_LIMIT);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	EXPECT(test, client->parent->limit[BYTES], GIB);
	EXPECT(test, client->parent->used[BYTES], GIB);
}

/* ---- cgroups below one another ---- */

static struct flexmem_account *open_in(struct kunit *test, unsigned int cgroup)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client;

	client = flexmem_owner_open(&ctx->accounts, fake_uid(0),
				    fake_cgroup(cgroup), NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, client);
	return client;
}

static void every_ancestor_is_charged(struct kunit *test)
{
	static const unsigned int way[] = { 14, 13, 12, 1, 0 };
	struct flexmem_account *client = open_in(test, 14), *account;
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *beside = open_in(test, 2);
	unsigned int i;

	EXPECT(test, accounts_charge(test, client, 3, GIB), NONE);
	EXPECT(test, accounts_charge_handle(test, client), NONE);
	account = client->parent;
	for (i = 0; i < ARRAY_SIZE(way); i++, account = account->parent) {
		KUNIT_ASSERT_NOT_NULL(test, account);
		EXPECT(test, account->id, way[i] + 1);
		EXPECT(test, account->used[BYTES], GIB);
		EXPECT(test, account->used[NR_SLOTS], 1);
		EXPECT(test, account->used[HANDLES], 1);
		EXPECT(test, account->peak, GIB);
	}
	KUNIT_EXPECT_NULL(test, account);
	EXPECT(test, beside->parent->used[BYTES], 0);
	for (i = 0; i < ARRAY_SIZE(way); i++) {
		accounts_limit_cgroup(test, way[i], BYTES, 2 * GIB);
		EXPECT(test, accounts_charge(test, client, 3, GIB + UNIT),
		       CGROUP_LIMIT);
		accounts_limit_cgroup(test, way[i], BYTES, FLEXMEM_NO_LIMIT);
		accounts_limit_cgroup(test, way[i], NR_SLOTS, 1);
		EXPECT(test, accounts_charge(test, client, 4, UNIT),
		       REGION_LIMIT);
		KUNIT_EXPECT_TRUE(test,
				  flexmem_account_refuses_region(client, NULL));
		accounts_limit_cgroup(test, way[i], NR_SLOTS, FLEXMEM_NO_LIMIT);
		accounts_limit_cgroup(test, way[i], HANDLES, 1);
		EXPECT(test, accounts_charge_handle(test, client),
		       CGROUP_LIMIT);
		accounts_limit_cgroup(test, way[i], HANDLES, FLEXMEM_NO_LIMIT);
	}
	accounts_limit_cgroup(test, 1, BYTES, GIB);
	EXPECT(test, accounts_charge(test, beside, 3, GIB), NONE);
	accounts_uncharge(test, beside, 3, GIB);
	accounts_uncharge(test, client, 3, GIB);
	flexmem_uncharge(client, 0, 1);
	flexmem_owner_close(client);
	flexmem_owner_close(beside);
	accounts_limit_cgroup(test, 1, BYTES, FLEXMEM_NO_LIMIT);
	EXPECT(test, ctx->accounts.nr_cgroups, 0);
}

static void a_subtree_shares_a_limit(struct kunit *test)
{
	struct flexmem_account *low = open_in(test, 14), *high = open_in(test, 12);

	accounts_limit_cgroup(test, 1, BYTES, 3 * GIB);
	accounts_limit_cgroup(test, 1, NR_SLOTS, 1);
	EXPECT(test, accounts_charge(test, low, 0, GIB), NONE);
	EXPECT(test, accounts_charge(test, high, 0, GIB), NONE);
	EXPECT(test, accounts_charge(test, high, 1, UNIT), REGION_LIMIT);
	EXPECT(test, accounts_charge(test, low, 0, GIB + UNIT), CGROUP_LIMIT);
	EXPECT(test, accounts_charge(test, low, 0, GIB), NONE);
	EXPECT(test, accounts_charge(test, high, 0, UNIT), CGROUP_LIMIT);
	EXPECT(test, low->parent->used[BYTES], 2 * GIB);
	accounts_remove_region(test, 0);
	EXPECT(test, accounts_charge(test, low, 1, 3 * GIB), NONE);
	accounts_uncharge(test, low, 1, 3 * GIB);
	flexmem_owner_close(low);
	flexmem_owner_close(high);
}

/* ---- lost regions ---- */

static void lost_region_has_no_charges(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 2);
	struct accounts_ctx *ctx = test->priv;

	EXPECT(test, accounts_charge(test, a, 0, GIB), NONE);
	EXPECT(test, accounts_charge(test, a, 1, GIB), NONE);
	EXPECT(test, accounts_charge(test, b, 0, 4 * GIB), NONE);
	EXPECT(test, accounts_charge(test, b, 0, GIB), NONE);
	accounts_move(test, b, 0, 4 * GIB,
		      FLEXMEM_USE_OWNED, FLEXMEM_USE_ORPHANED);
	accounts_move(test, b, 0, GIB,
		      FLEXMEM_USE_OWNED, FLEXMEM_USE_QUARANTINED);
	EXPECT(test, ctx->accounts.bytes[FLEXMEM_USE_QUARANTINED], GIB);
	accounts_remove_region(test, 0);
	EXPECT(test, ctx->accounts.bytes[FLEXMEM_USE_OWNED], GIB);
	EXPECT(test, ctx->accounts.bytes[FLEXMEM_USE_ORPHANED], 0);
	EXPECT(test, ctx->accounts.bytes[FLEXMEM_USE_QUARANTINED], 0);
	EXPECT(test, a->used[BYTES], GIB);
	EXPECT(test, a->used[NR_SLOTS], 1);
	EXPECT(test, b->used[BYTES], 0);
	EXPECT(test, b->parent->used[BYTES], 0);
	EXPECT(test, b->parent->used[NR_SLOTS], 0);
	EXPECT(test, b->orphaned, 0);
}

/*
 * A lost region no longer counts against a limit of regions. A file that had a
 * block in the lost region has none in the region that fills the slot now: a
 * block there counts as a further region, which the limit refuses here. The
 * test checks no account in between, because a check drops lost blocks.
 */
static void limit_of_regions_holds_after_a_loss(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_accounts *accounts = &ctx->accounts;

	accounts_set_limit(test, a->parent, NR_SLOTS, 1);
	EXPECT(test, accounts_charge(test, a, 0, UNIT), NONE);
	flexmem_accounts_remove_region(accounts, 0);
	EXPECT(test, flexmem_charge(b, UNIT, 0, NULL), NONE);
	EXPECT(test, flexmem_account_take(b, 1, UNIT, NULL), NONE);
	EXPECT(test, flexmem_charge(a, UNIT, 0, NULL), NONE);
	EXPECT(test, flexmem_account_take(a, 0, UNIT, NULL), REGION_LIMIT);
	flexmem_uncharge(a, UNIT, 0);
	accounts_uncharge(test, b, 1, UNIT);
}

/*
 * An ALLOC charges the bytes first and the block later. The region can be lost
 * in between.
 */
static void lost_bytes_do_not_raise_the_peak(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct accounts_ctx *ctx = test->priv;

	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	EXPECT(test, accounts_charge(test, client, 1, UNIT), NONE);
	EXPECT(test, flexmem_charge(client, GIB, 0, NULL), NONE);
	flexmem_accounts_remove_region(&ctx->accounts, 0);
	EXPECT(test, flexmem_account_take(client, 1, GIB, NULL), NONE);
	EXPECT(test, client->parent->peak, GIB + UNIT);
	accounts_uncharge(test, client, 1, GIB);
	accounts_uncharge(test, client, 1, UNIT);
}

static void charges_after_a_loss_stay(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 14);
	struct accounts_ctx *ctx = test->priv;

	EXPECT(test, accounts_charge(test, a, 0, GIB), NONE);
	EXPECT(test, accounts_charge(test, a, 1, GIB), NONE);
	/* The accounts learn of the loss only at the next charge. */
	flexmem_accounts_remove_region(&ctx->accounts, 0);
	EXPECT(test, accounts_charge(test, a, 0, 2 * GIB), NONE);
	EXPECT(test, a->used[BYTES], 3 * GIB);
	EXPECT(test, a->in[0].bytes, 2 * GIB);
	accounts_remove_region(test, 1);
	EXPECT(test, a->used[BYTES], 2 * GIB);
	EXPECT(test, a->parent->used[BYTES], 2 * GIB);
	EXPECT(test, a->parent->used[NR_SLOTS], 1);
	EXPECT(test, ctx->accounts.bytes[FLEXMEM_USE_OWNED], 2 * GIB);
	accounts_uncharge(test, a, 0, 2 * GIB);
}

/* ---- the accounts of cgroups ---- */

static struct flexmem_account *account_of(struct accounts_ctx *ctx,
					  unsigned int cgroup)
{
	struct flexmem_account *account;
	struct rb_node *node;

	for (node = rb_first(&ctx->accounts.cgroups); node;
	     node = rb_next(node)) {
		account = rb_entry(node, struct flexmem_account, by_id);
		if (account->id == 1 + cgroup)
			return account;
	}
	return NULL;
}

static void cgroup_stays_with_a_file_or_a_limit(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 3);
	struct accounts_ctx *ctx = test->priv;

	KUNIT_EXPECT_NOT_NULL(test, account_of(ctx, 3));
	KUNIT_EXPECT_NOT_NULL(test, account_of(ctx, 0));
	accounts_set_limit(test, client->parent, BYTES, GIB);
	accounts_set_limit(test, client->parent, HANDLES, 7);
	accounts_close(test, client);
	accounts_limit_cgroup(test, 13, BYTES, GIB);
	KUNIT_EXPECT_NOT_NULL(test, account_of(ctx, 13));
	KUNIT_EXPECT_NOT_NULL(test, account_of(ctx, 12));
	accounts_limit_cgroup(test, 3, BYTES, FLEXMEM_NO_LIMIT);
	KUNIT_EXPECT_NOT_NULL(test, account_of(ctx, 3));
	accounts_limit_cgroup(test, 3, HANDLES, FLEXMEM_NO_LIMIT);
	KUNIT_EXPECT_NULL(test, account_of(ctx, 3));
	accounts_close(test, accounts_open(test, 2));
	KUNIT_EXPECT_NULL(test, account_of(ctx, 2));
	EXPECT(test, ctx->accounts.nr_cgroups, 4);
	accounts_limit_cgroup(test, 13, BYTES, FLEXMEM_NO_LIMIT);
	EXPECT(test, ctx->accounts.nr_cgroups, 0);
}

/*
 * A process that has moved away goes on allocating through a file of the removed
 * cgroup. The limit holds until that file has neither a reference nor a charge.
 */
static void cgroup_that_is_removed_keeps_its_limits(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client = open_in(test, 5);

	accounts_limit_cgroup(test, 4, BYTES, 9 * GIB);
	accounts_limit_cgroup(test, 5, BYTES, GIB);
	accounts_limit_cgroup(test, 6, HANDLES, 1);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
#ifdef CONFIG_CGROUPS
	fake_cgroup(5)->self.flags &= ~CSS_ONLINE;
	account_of(ctx, 6)->cgroup->self.flags &= ~CSS_ONLINE;
	EXPECT(test, accounts_charge(test, client, 0, UNIT), CGROUP_LIMIT);
	flexmem_owner_forget(&ctx->accounts);
	flexmem_owner_forget(&ctx->accounts);
	accounts_check(test);
	KUNIT_EXPECT_NOT_NULL(test, account_of(ctx, 4));
	KUNIT_EXPECT_NULL(test, account_of(ctx, 6));
	EXPECT(test, account_of(ctx, 4)->limit[BYTES], 9 * GIB);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), CGROUP_LIMIT);
	EXPECT(test, client->parent->limit[BYTES], GIB);
	EXPECT(test, client->parent->used[BYTES], GIB);
	/* A limit that is set now is in effect, and keeps no account. */
	accounts_set_limit(test, client->parent, BYTES, 2 * GIB);
	KUNIT_EXPECT_FALSE(test, client->parent->kept);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), CGROUP_LIMIT);
	accounts_uncharge(test, client, 0, GIB);
#endif
	accounts_uncharge(test, client, 0, GIB);
	flexmem_owner_close(client);
	KUNIT_EXPECT_NULL(test, account_of(ctx, 5));
	fake_cgroup(5);
	fake_cgroup(6);
}

static void cgroup_that_is_charged_stays(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client = open_in(test, 5);

	flexmem_owner_get(client);
	flexmem_owner_close(client);
	KUNIT_EXPECT_NOT_NULL(test, account_of(ctx, 5));
	flexmem_owner_put(client);
	KUNIT_EXPECT_NULL(test, account_of(ctx, 5));
	accounts_check(test);
}

/* ---- open files ---- */

static void numbers_are_never_used_twice(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	u64 id = client->id;

	accounts_close(test, client);
	KUNIT_EXPECT_GT(test, accounts_open(test, 1)->id, id);
}

static void closed_file_is_not_open(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_accounts *accounts = &ctx->accounts;
	struct flexmem_account *client = accounts_open(test, 1);
	u64 id = client->id;

	KUNIT_EXPECT_TRUE(test, flexmem_owner_is_open(accounts, id));
	KUNIT_EXPECT_FALSE(test, flexmem_owner_is_open(accounts, id + 1));
	/* A charge keeps the account, but not the file. */
	flexmem_owner_get(client);
	accounts_close(test, client);
	KUNIT_EXPECT_FALSE(test, flexmem_owner_is_open(accounts, id));
	EXPECT(test, ctx->accounts.nr_clients, 1);
	flexmem_owner_put(client);
	KUNIT_EXPECT_FALSE(test, flexmem_owner_is_open(accounts, id));
}

static void account_stays_while_referenced(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client, *parent;

	client = flexmem_owner_open(&ctx->accounts, fake_uid(1),
				    fake_cgroup(1), NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, client);
	parent = flexmem_owner_get(client->parent);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	flexmem_owner_get(client);
	flexmem_owner_close(client);
	accounts_check(test);
	/* The charges have not changed. */
	EXPECT(test, ctx->accounts.nr_clients, 1);
	EXPECT(test, ctx->accounts.bytes[FLEXMEM_USE_OWNED], GIB);
	EXPECT(test, parent->used[BYTES], GIB);
	accounts_uncharge(test, client, 0, GIB);
	flexmem_owner_put(client);
	accounts_check(test);
	KUNIT_EXPECT_TRUE(test, RB_EMPTY_ROOT(&ctx->accounts.clients));
	EXPECT(test, ctx->accounts.nr_clients, 0);
	EXPECT(test, refcount_read(&parent->refs), 1);
	flexmem_owner_put(parent);
}

static void open_file_is_found_among_many(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *client[64];
	u64 id[ARRAY_SIZE(client)];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(client); i++) {
		client[i] = accounts_open(test, i / 2);
		id[i] = client[i]->id;
	}
	for (i = 0; i < ARRAY_SIZE(client); i += 3)
		accounts_close_unchecked(client[i]);
	for (i = 0; i < ARRAY_SIZE(client); i++)
		EXPECT(test, flexmem_owner_is_open(&ctx->accounts, id[i]),
		       i % 3 != 0);
	KUNIT_EXPECT_FALSE(test, flexmem_owner_is_open(&ctx->accounts, 0));
}

/* checks_of_accounts() must notice each figure that is wrong by one. */

enum figure_of {
	OF_ACCOUNTS,
	OF_CLIENT,
	OF_CGROUP,
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
	{ "bytes of a client", OF_CLIENT, IN_ACCOUNT(placed),
	  "bytes of an account miscounted" },
	{ "charged bytes of a client", OF_CLIENT, IN_ACCOUNT(used[BYTES]),
	  "charges of a cgroup are not those below it" },
	{ "slots of a client", OF_CLIENT, IN_ACCOUNT(used[NR_SLOTS]),
	  "slots of an account miscounted" },
	{ "bytes of a cgroup", OF_CGROUP, IN_ACCOUNT(placed),
	  "bytes of an account miscounted" },
	{ "orphaned of a client", OF_CLIENT, IN_ACCOUNT(orphaned),
	  "orphaned bytes of an account miscounted" },
	{ "bytes of a client in a region", OF_CLIENT, IN_ACCOUNT(in[3].bytes),
	  "bytes of an account miscounted" },
	{ "owned", OF_ACCOUNTS, IN_ACCOUNTS(bytes[FLEXMEM_USE_OWNED]),
	  "bytes of the clients are not all bytes" },
	{ "orphaned", OF_ACCOUNTS, IN_ACCOUNTS(bytes[FLEXMEM_USE_ORPHANED]),
	  "bytes of the clients are not all bytes" },
	{ "quarantined", OF_ACCOUNTS,
	  IN_ACCOUNTS(bytes[FLEXMEM_USE_QUARANTINED]),
	  "sums by use miscounted" },
	{ "quarantined in a region", OF_ACCOUNTS,
	  IN_ACCOUNTS(in[3].bytes[FLEXMEM_USE_QUARANTINED]),
	  "sums by use miscounted" },
	{ "handles of a client", OF_CLIENT, IN_ACCOUNT(used[HANDLES]),
	  "charges of a cgroup are not those below it" },
};

KUNIT_ARRAY_PARAM_DESC(figure, wrong_figures, name);

static void check_notices(struct kunit *test)
{
	const struct wrong_figure *wrong = test->param_value;
	struct flexmem_account *client = accounts_open(test, 1);
	struct accounts_ctx *ctx = test->priv;
	void *base[] = { &ctx->accounts, client, client->parent };
	u64 *figure = base[wrong->of] + wrong->offset;

	EXPECT(test, accounts_charge(test, client, 0, 2 * GIB), NONE);
	++*figure;
	KUNIT_EXPECT_STREQ(test,
			   checks_of_accounts(&ctx->accounts) ?: "none",
			   wrong->says);
	--*figure;
}

static struct kunit_case account_cases[] = {
	KUNIT_CASE(handles_of_a_file_are_limited),
	KUNIT_CASE(cgroup_limit_of_bytes_is_exact),
	KUNIT_CASE(cgroup_limit_of_slots_counts_a_region_once),
	KUNIT_CASE(limits_of_handles_are_exact),
	KUNIT_CASE(limit_below_use_takes_nothing_away),
	KUNIT_CASE(refused_charge_changes_nothing),
	KUNIT_CASE(refusal_tells_the_limit),
	KUNIT_CASE(refusal_tells_of_others),
	KUNIT_CASE(orphaned_bytes_stay_charged),
	KUNIT_CASE(cgroup_need_not_have_a_file),
	KUNIT_CASE(lost_region_has_no_charges),
	KUNIT_CASE(limit_of_regions_holds_after_a_loss),
	KUNIT_CASE(lost_bytes_do_not_raise_the_peak),
	KUNIT_CASE(charges_after_a_loss_stay),
	KUNIT_CASE(every_ancestor_is_charged),
	KUNIT_CASE(a_subtree_shares_a_limit),
	KUNIT_CASE(cgroup_stays_with_a_file_or_a_limit),
	KUNIT_CASE(cgroup_that_is_charged_stays),
	KUNIT_CASE(cgroup_that_is_removed_keeps_its_limits),
	KUNIT_CASE(numbers_are_never_used_twice),
	KUNIT_CASE(closed_file_is_not_open),
	KUNIT_CASE(account_stays_while_referenced),
	KUNIT_CASE(open_file_is_found_among_many),
	KUNIT_CASE_PARAM(check_notices, figure_gen_params),
	{}
};

static struct kunit_suite account_suite = {
	.name = "flexmem_account",
	.init = accounts_test_init,
	.test_cases = account_cases,
};

kunit_test_suite(account_suite);
