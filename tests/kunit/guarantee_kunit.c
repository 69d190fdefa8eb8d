// SPDX-License-Identifier: GPL-2.0
/* Guarantees of open files and of users: what they refuse to whom (B1, D18). */

#include <kunit/test.h>

#include "accounts.h"
#include "fake_device.h"

/* Guarantees of bytes. */

static void guaranteed_bytes_are_refused_to_others(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);

	accounts_set_capacity(test, 13 * GIB);
	accounts_add_region(test, 0, 12 * GIB, NULL);
	EXPECT(test,
	       accounts_guarantee(test, accounts_open(test, 3), BYTES, GIB), 0);
	EXPECT(test, accounts_guarantee(test, client, BYTES, 5 * GIB), 0);
	EXPECT(test, accounts_charge(test, other, 0, 6 * GIB + UNIT),
	       GUARANTEE);
	EXPECT(test, accounts_charge(test, other, 0, 6 * GIB), NONE);
	EXPECT(test, accounts_charge(test, other, 0, UNIT), GUARANTEE);
	EXPECT(test, accounts_charge(test, client, 0, 5 * GIB - UNIT), NONE);
	EXPECT(test, accounts_charge(test, client, 0, 2 * UNIT), GUARANTEE);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), NONE);
	/* What the owner gives back is kept for it again. */
	accounts_uncharge(test, client, 0, 5 * GIB - UNIT);
	EXPECT(test, accounts_charge(test, other, 0, UNIT), GUARANTEE);
	EXPECT(test, accounts_charge(test, client, 0, 5 * GIB - UNIT), NONE);
}

static void guarantee_of_bytes_is_refused_at_the_border(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);

	/* A region of 12 and one of 8: what is left is too small for one. */
	accounts_set_capacity(test, 23 * GIB);
	EXPECT(test, accounts_guarantee(test, client, BYTES, 20 * GIB + 1),
	       -ENOSPC);
	EXPECT(test, client->guarantee[BYTES], 0);
	EXPECT(test, accounts_guarantee(test, client, BYTES, 20 * GIB), 0);
	EXPECT(test, accounts_guarantee(test, other, BYTES, 1), -ENOSPC);
	EXPECT(test, accounts_guarantee(test, client, BYTES, 8 * GIB), 0);
	EXPECT(test, accounts_guarantee(test, other->user, BYTES, 12 * GIB + 1),
	       -ENOSPC);
	EXPECT(test, accounts_guarantee(test, other->user, BYTES, 12 * GIB), 0);
}

static void guarantee_counts_what_others_use(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);
	struct accounts_ctx *ctx = test->priv;

	accounts_set_capacity(test, 12 * GIB);
	accounts_add_region(test, 0, 12 * GIB, NULL);
	EXPECT(test, accounts_charge(test, other, 0, 3 * GIB), NONE);
	flexmem_charge_quarantine(&ctx->accounts, 0, GIB);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	/* What the owner uses already counts as given. */
	EXPECT(test, accounts_guarantee(test, client, BYTES, 8 * GIB + 1),
	       -ENOSPC);
	EXPECT(test, accounts_guarantee(test, client, BYTES, 8 * GIB), 0);
	flexmem_charge_quarantine(&ctx->accounts, 0, -(s64)GIB);
	EXPECT(test, accounts_guarantee(test, client, BYTES, 9 * GIB), 0);
	EXPECT(test, accounts_charge(test, other, 0, UNIT), GUARANTEE);
}

static void guarantee_of_client_is_on_top_of_its_users(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);

	accounts_set_capacity(test, 12 * GIB);
	accounts_add_region(test, 0, 12 * GIB, NULL);
	EXPECT(test,
	       accounts_guarantee(test, accounts_open(test, 3), BYTES, GIB), 0);
	EXPECT(test, accounts_guarantee(test, a, BYTES, 3 * GIB), 0);
	EXPECT(test, accounts_guarantee(test, a->user, BYTES, 4 * GIB), 0);
	EXPECT(test, accounts_charge(test, other, 0, 4 * GIB + UNIT),
	       GUARANTEE);
	EXPECT(test, accounts_charge(test, other, 0, 4 * GIB), NONE);
	/* The user's own share is any of its clients'; the client's is not. */
	EXPECT(test, accounts_charge(test, b, 0, 4 * GIB + UNIT), GUARANTEE);
	EXPECT(test, accounts_charge(test, b, 0, 4 * GIB), NONE);
	EXPECT(test, accounts_charge(test, a, 0, 3 * GIB + UNIT), GUARANTEE);
	EXPECT(test, accounts_charge(test, a, 0, 3 * GIB), NONE);
	accounts_uncharge(test, b, 0, 4 * GIB);
	EXPECT(test, accounts_charge(test, a, 0, 4 * GIB), NONE);
	EXPECT(test, accounts_charge(test, b, 0, UNIT), GUARANTEE);
}

static void guarantee_must_not_be_above_the_limit(struct kunit *test)
{
	const u32 both = FLEXMEM_QUOTA_LIMIT | FLEXMEM_QUOTA_GUARANTEE;
	struct flexmem_account *client = accounts_open(test, 1);

	EXPECT(test, accounts_set_limit(test, client, BYTES, GIB), 0);
	EXPECT(test, accounts_guarantee(test, client, BYTES, GIB + 1), -EINVAL);
	EXPECT(test, accounts_guarantee(test, client, BYTES, GIB), 0);
	EXPECT(test, accounts_set_limit(test, client, BYTES, GIB - 1), -EINVAL);
	EXPECT(test, client->limit[BYTES], GIB);
	EXPECT(test,
	       accounts_set_quota(test, client, both, BYTES, GIB, GIB + 1),
	       -EINVAL);
	EXPECT(test,
	       accounts_set_quota(test, client, both, BYTES, 3 * GIB, 2 * GIB),
	       0);
	/* Neither changes if one is refused. */
	EXPECT(test,
	       accounts_set_quota(test, client, both, BYTES, FLEXMEM_NO_LIMIT,
				  2048 * GIB),
	       -ENOSPC);
	EXPECT(test, client->limit[BYTES], 3 * GIB);
	EXPECT(test, client->guarantee[BYTES], 2 * GIB);
}

static void guarantee_of_client_is_within_its_users_limit(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);

	accounts_add_region(test, 0, 12 * GIB, NULL);
	EXPECT(test, accounts_set_limit(test, a->user, BYTES, 4 * GIB), 0);
	EXPECT(test, accounts_charge(test, b, 0, GIB), NONE);
	EXPECT(test, accounts_guarantee(test, a, BYTES, 3 * GIB + 1), -ENOSPC);
	EXPECT(test, accounts_guarantee(test, a, BYTES, 3 * GIB), 0);
	/* Others of its user cannot use up the limit before it does. */
	EXPECT(test, accounts_charge(test, b, 0, UNIT), USER_LIMIT);
	EXPECT(test, accounts_charge(test, a, 0, 3 * GIB), NONE);
}

/* The limit may be lowered later: what was guaranteed is still there to take. */
static void guarantee_outlasts_a_lower_limit_of_the_user(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);

	accounts_add_region(test, 0, 12 * GIB, NULL);
	EXPECT(test, accounts_guarantee(test, a, BYTES, 3 * GIB), 0);
	EXPECT(test, accounts_guarantee(test, a, HANDLES, 1), 0);
	EXPECT(test, accounts_set_limit(test, a->user, BYTES, GIB), 0);
	EXPECT(test, accounts_set_limit(test, a->user, HANDLES, 0), 0);
	EXPECT(test, accounts_charge(test, b, 0, UNIT), USER_LIMIT);
	EXPECT(test, accounts_charge(test, a, 0, 3 * GIB + UNIT), USER_LIMIT);
	EXPECT(test, accounts_charge(test, a, 0, 3 * GIB), NONE);
	EXPECT(test, accounts_charge(test, a, 0, UNIT), USER_LIMIT);
	EXPECT(test, accounts_charge_handle(test, b), USER_LIMIT);
	EXPECT(test, accounts_charge_handle(test, a), NONE);
	EXPECT(test, accounts_charge_handle(test, a), USER_LIMIT);
}

static void guarantee_can_always_be_lowered(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);

	EXPECT(test, accounts_guarantee(test, client, BYTES, 20 * GIB), 0);
	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 2), 0);
	accounts_set_capacity(test, 0);
	EXPECT(test, accounts_guarantee(test, client, BYTES, 19 * GIB),
	       -ENOSPC);
	accounts_set_capacity(test, 20 * GIB);
	EXPECT(test, accounts_guarantee(test, client, BYTES, 19 * GIB), 0);
	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 1), 0);
	EXPECT(test, accounts_guarantee(test, client, BYTES, 20 * GIB),
	       -ENOSPC);
	EXPECT(test, accounts_guarantee(test, client, BYTES, 0), 0);
	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 0), 0);
}

static void guarantee_ends_with_the_file(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);

	accounts_set_capacity(test, 12 * GIB);
	accounts_add_region(test, 0, 12 * GIB, NULL);
	EXPECT(test, accounts_guarantee(test, client, BYTES, 12 * GIB), 0);
	EXPECT(test, accounts_charge(test, other, 0, UNIT), GUARANTEE);
	accounts_close(test, client);
	EXPECT(test, accounts_charge(test, other, 0, 12 * GIB), NONE);
}

static void guarantee_of_user_outlasts_its_files(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);

	accounts_set_capacity(test, 12 * GIB);
	accounts_add_region(test, 0, 12 * GIB, NULL);
	EXPECT(test, accounts_guarantee(test, client->user, BYTES, 12 * GIB),
	       0);
	accounts_close(test, client);
	EXPECT(test, accounts_charge(test, other, 0, UNIT), GUARANTEE);
	EXPECT(test, accounts_charge(test, accounts_open(test, 1), 0, 12 * GIB),
	       NONE);
}

/* Guarantees of slots. */

static void guaranteed_slot_is_left_by_others(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);
	struct accounts_ctx *ctx = test->priv;

	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 2), 0);
	accounts_add_region(test, 0, 12 * GIB, other);
	KUNIT_EXPECT_NULL(test, ctx->accounts.slot[0].keeper);
	EXPECT(test, accounts_refuses_region(test, other, false, 12 * GIB),
	       NONE);
	accounts_add_region(test, 1, 12 * GIB, other);
	EXPECT(test, accounts_refuses_region(test, other, false, 4 * GIB),
	       GUARANTEE);
	EXPECT(test, accounts_refuses_region(test, NULL, false, 4 * GIB),
	       GUARANTEE);
	EXPECT(test, accounts_refuses_region(test, client, false, 12 * GIB),
	       NONE);
	accounts_add_region(test, 2, 12 * GIB, client);
	KUNIT_EXPECT_PTR_EQ(test, ctx->accounts.slot[2].keeper, client);
	EXPECT(test, accounts_refuses_region(test, other, false, 4 * GIB),
	       GUARANTEE);
	accounts_add_region(test, 3, 12 * GIB, client);
	KUNIT_EXPECT_PTR_EQ(test, ctx->accounts.slot[3].keeper, client);
}

static void capacity_of_a_guaranteed_slot_is_left(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);

	accounts_set_capacity(test, 15 * GIB);
	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 1), 0);
	EXPECT(test, accounts_refuses_region(test, other, false, 12 * GIB),
	       GUARANTEE);
	EXPECT(test, accounts_refuses_region(test, other, false, 8 * GIB),
	       NONE);
	EXPECT(test, accounts_refuses_region(test, client, false, 12 * GIB),
	       NONE);
	/* For programs there is another slot, but the same capacity. */
	EXPECT(test, accounts_refuses_region(test, other, true, 12 * GIB),
	       GUARANTEE);
}

static void guarantee_of_slots_is_refused_at_the_border(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);

	accounts_set_capacity(test, 12 * GIB);
	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 4), -ENOSPC);
	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 3), 0);
	EXPECT(test, accounts_guarantee(test, other, NR_SLOTS, 1), -ENOSPC);
	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 0), 0);
	accounts_set_capacity(test, 1024 * GIB);
	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 5), -ENOSPC);
	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 4), 0);
	EXPECT(test, accounts_guarantee(test, client, BYTES, 1), -ENOSPC);
}

static void kept_region_is_its_owners_alone(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct flexmem_account *sibling = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);
	struct accounts_ctx *ctx = test->priv;
	bool own;

	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 1), 0);
	accounts_add_region(test, 0, 4 * GIB, client);
	EXPECT(test, accounts_charge(test, other, 0, UNIT), GUARANTEE);
	EXPECT(test, accounts_charge(test, sibling, 0, UNIT), GUARANTEE);
	EXPECT(test, accounts_charge(test, client, 0, UNIT), NONE);
	EXPECT(test, client->reserved_used, 1);
	KUNIT_EXPECT_FALSE(test, flexmem_slot_is_open(&ctx->accounts, 0, other,
						      &own));
	KUNIT_EXPECT_TRUE(test, flexmem_slot_is_open(&ctx->accounts, 0, client,
						     &own));
	KUNIT_EXPECT_TRUE(test, own);
	/* Its bytes are not in use where guaranteed bytes are. */
	EXPECT(test, ctx->accounts.shared_used, 0);
	accounts_uncharge(test, client, 0, UNIT);
	EXPECT(test, client->reserved_used, 0);
}

static void region_kept_for_a_user_is_all_its_clients(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);

	EXPECT(test, accounts_guarantee(test, a->user, NR_SLOTS, 1), 0);
	accounts_add_region(test, 0, 4 * GIB, a);
	EXPECT(test, accounts_charge(test, a, 0, UNIT), NONE);
	EXPECT(test, accounts_charge(test, b, 0, UNIT), NONE);
	EXPECT(test, accounts_charge(test, other, 0, UNIT), GUARANTEE);
}

static void clients_slot_comes_before_its_users(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct accounts_ctx *ctx = test->priv;

	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 1), 0);
	EXPECT(test, accounts_guarantee(test, client->user, NR_SLOTS, 1), 0);
	accounts_add_region(test, 0, 4 * GIB, client);
	KUNIT_EXPECT_PTR_EQ(test, ctx->accounts.slot[0].keeper, client);
	accounts_add_region(test, 1, 4 * GIB, client);
	KUNIT_EXPECT_PTR_EQ(test, ctx->accounts.slot[1].keeper, client->user);
	accounts_add_region(test, 2, 4 * GIB, client);
	KUNIT_EXPECT_NULL(test, ctx->accounts.slot[2].keeper);
}

static void kept_region_is_shared_when_the_guarantee_ends(struct kunit *test)
{
	struct flexmem_account *client = accounts_open(test, 1);
	struct flexmem_account *other = accounts_open(test, 2);
	struct accounts_ctx *ctx = test->priv;

	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 2), 0);
	accounts_add_region(test, 0, 4 * GIB, client);
	accounts_add_region(test, 1, 4 * GIB, client);
	EXPECT(test, accounts_charge(test, client, 0, GIB), NONE);
	EXPECT(test, accounts_charge(test, client, 1, GIB), NONE);
	EXPECT(test, accounts_guarantee(test, client, NR_SLOTS, 1), 0);
	/* The last one first. */
	EXPECT(test, accounts_charge(test, other, 0, UNIT), GUARANTEE);
	EXPECT(test, accounts_charge(test, other, 1, UNIT), NONE);
	EXPECT(test, ctx->accounts.shared_used, GIB + UNIT);
	EXPECT(test, client->reserved_used, 1);
	accounts_uncharge(test, client, 0, GIB);
	accounts_uncharge(test, client, 1, GIB);
	accounts_close(test, client);
	EXPECT(test, accounts_charge(test, other, 0, UNIT), NONE);
}

static void
guaranteed_handles_are_kept_under_the_users_limit(struct kunit *test)
{
	struct flexmem_account *a = accounts_open(test, 1);
	struct flexmem_account *b = accounts_open(test, 1);

	EXPECT(test, accounts_set_limit(test, a->user, HANDLES, 4), 0);
	EXPECT(test, accounts_guarantee(test, a, HANDLES, 5), -ENOSPC);
	EXPECT(test, accounts_guarantee(test, a, HANDLES, 3), 0);
	EXPECT(test, accounts_charge_handle(test, b), NONE);
	EXPECT(test, accounts_charge_handle(test, b), USER_LIMIT);
	EXPECT(test, accounts_charge_handle(test, a), NONE);
	EXPECT(test, accounts_charge_handle(test, a), NONE);
	EXPECT(test, accounts_charge_handle(test, a), NONE);
	EXPECT(test, accounts_charge_handle(test, a), USER_LIMIT);
}

static struct kunit_case guarantee_cases[] = {
	KUNIT_CASE(guaranteed_bytes_are_refused_to_others),
	KUNIT_CASE(guarantee_of_bytes_is_refused_at_the_border),
	KUNIT_CASE(guarantee_counts_what_others_use),
	KUNIT_CASE(guarantee_of_client_is_on_top_of_its_users),
	KUNIT_CASE(guarantee_must_not_be_above_the_limit),
	KUNIT_CASE(guarantee_of_client_is_within_its_users_limit),
	KUNIT_CASE(guarantee_outlasts_a_lower_limit_of_the_user),
	KUNIT_CASE(guarantee_can_always_be_lowered),
	KUNIT_CASE(guarantee_ends_with_the_file),
	KUNIT_CASE(guarantee_of_user_outlasts_its_files),
	KUNIT_CASE(guaranteed_slot_is_left_by_others),
	KUNIT_CASE(capacity_of_a_guaranteed_slot_is_left),
	KUNIT_CASE(guarantee_of_slots_is_refused_at_the_border),
	KUNIT_CASE(kept_region_is_its_owners_alone),
	KUNIT_CASE(region_kept_for_a_user_is_all_its_clients),
	KUNIT_CASE(clients_slot_comes_before_its_users),
	KUNIT_CASE(kept_region_is_shared_when_the_guarantee_ends),
	KUNIT_CASE(guaranteed_handles_are_kept_under_the_users_limit),
	{}
};

static struct kunit_suite guarantee_suite = {
	.name = "flexmem_guarantee",
	.init = accounts_test_init,
	.test_cases = guarantee_cases,
};

kunit_test_suite(guarantee_suite);
