// SPDX-License-Identifier: GPL-2.0
/*
 * Scrubbing: no owner gets the bytes of another, and an owner does not wait for
 * a scrub of its own bytes.
 */

#include <linux/moduleparam.h>
#include <linux/prandom.h>

#include "owners.h"

/* ---- new regions ---- */

static void expect_no_slot(void *arg)
{
	struct kunit *test = arg;
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SLOT_SET], 0);
}

static void region_is_scrubbed_before_it_has_a_slot(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	ctx->fake->during_scrub = expect_no_slot;
	ctx->fake->during_scrub_arg = test;
	alloc(test, open(test, 1), 128);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 12 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 12);
}

static void region_that_cannot_be_scrubbed_is_given_back(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = open(test, 1);

	fake_device_fail(ctx->fake, FAKE_SCRUB, 5, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, PTR_ERR(try(ctx, client, 128, 0)));
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_total, 0);
	alloc(test, client, 128);
}

static void region_acquired_again_is_scrubbed_again(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = open(test, 1);
	unsigned int nr;
	u64 bytes;

	give(test, alloc(test, client, 12 * GIB));
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 1);
	scrubbed(test);
	alloc(test, client, 128);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 12 * GIB);
}

/*
 * The next PF or VF that gets the memory must not see an owner's bytes. The
 * fake device checks that.
 */
static void trim_clears_what_owners_left(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *before;
	struct ctx *ctx = test->priv;
	unsigned int nr;
	u64 bytes;

	before = alloc(test, client, 4096);
	give(test, alloc(test, client, 3 * GIB));
	give(test, before);
	scrubbed(test);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 1);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 3 * GIB + 4096);
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

/*
 * Memory that cannot be zeroed is not released, but counts as stranded. TRIM
 * and the worker try to zero it again.
 */
static void memory_that_cannot_be_cleared_is_not_released(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct ctx *ctx = test->priv;
	unsigned int nr;
	u64 bytes;

	give(test, alloc(test, client, 3 * GIB));
	scrubbed(test);
	/* Makes the second of three commands fail. */
	fake_device_fail(ctx->fake, FAKE_SCRUB, 2, 1000, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_total, 0);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], 0);
	KUNIT_EXPECT_EQ(test, flexmem_function_held(&ctx->table->function),
			12 * GIB);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 3 * GIB);
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

/*
 * Simulates a write of a device program that arrives while the device clears a
 * slot or drains.
 */
static void late_write(void *arg)
{
	struct ctx *ctx = arg;

	ctx->fake->during_clear = NULL;
	fake_data_fill(ctx->fake, &ctx->fake->piece[0], 128, 128, 'x');
}

static void trim_after_a_late_write(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct ctx *ctx = test->priv;
	unsigned int nr;
	u64 bytes;

	give(test, alloc(test, client, 4096));
	ctx->fake->during_clear = late_write;
	ctx->fake->during_clear_arg = ctx;
	/* The fake device checks that released memory has no owner's bytes. */
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 1);
	KUNIT_EXPECT_NULL(test, ctx->fake->during_clear);
}

static void vf_clears_slot_then_memory(struct kunit *test)
{
	trim_after_a_late_write(test);
}

static void pf_drains_then_clears_memory(struct kunit *test)
{
	test->priv = make(test, FLEXMEM_MODE_PF);
	trim_after_a_late_write(test);
}

static void memory_that_cannot_be_drained_is_not_released(struct kunit *test)
{
	struct ctx *ctx = make(test, FLEXMEM_MODE_PF);
	unsigned int nr;
	u64 bytes;

	test->priv = ctx;
	give(test, alloc(test, open(test, 1), 4096));
	scrubbed(test);
	fake_device_fail(ctx->fake, FAKE_DRAIN, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], 0);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

static void wedge(void *arg)
{
	struct ctx *ctx = arg;

	ctx->fake->during_scrub = NULL;
	flexmem_function_enter(&ctx->table->function, FLEXMEM_STATE_WEDGED);
}

/* Suspend, reset and removal wait for at most one command. */
static void clearing_stops_between_two_commands(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct ctx *ctx = test->priv;
	unsigned int nr;
	u64 bytes;

	give(test, alloc(test, client, 3 * GIB));
	scrubbed(test);
	ctx->fake->during_scrub = wedge;
	ctx->fake->during_scrub_arg = ctx;
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB);
	flexmem_function_enter(&ctx->table->function, FLEXMEM_STATE_UP);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 2 * GIB);
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

/*
 * flexmem does not scrub memory before a release if the device clears released
 * memory. flexmem still scrubs memory that it has just acquired, because it
 * does not trust the device.
 */
static void device_that_clears_is_not_asked_to_before_a_release(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct ctx *ctx = test->priv;
	unsigned int nr;
	u64 bytes;

	ctx->fake->clears = true;
	ctx->table->function.clears = true;
	give(test, alloc(test, client, GIB));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 12 * GIB);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 1);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
	give(test, alloc(test, client, GIB));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 12 * GIB);
}

/* ---- memory that changes its owner ---- */

static void same_owner_pays_nothing(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation;

	allocation = alloc(test, client, GIB);
	alloc(test, client, 128);
	scrubbed(test);
	give(test, allocation);
	allocation = alloc(test, client, GIB / 2);
	KUNIT_EXPECT_EQ(test, allocation->chunks[0]->start, 0);
	KUNIT_EXPECT_EQ(test, alloc(test, client, GIB / 2)->chunks[0]->start,
			GIB / 2);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
}

static void another_owner_gets_scrubbed_memory(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct flexmem_allocation *allocation;

	allocation = alloc(test, client, GIB);
	alloc(test, client, 128);
	scrubbed(test);
	give(test, allocation);
	allocation = alloc(test, other, 4096);
	KUNIT_EXPECT_EQ(test, allocation->chunks[0]->start, 0);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	/* The rest of the block still holds the first owner's bytes. */
	allocation = alloc(test, client, GIB - 4096);
	KUNIT_EXPECT_EQ(test, allocation->chunks[0]->start, 4096);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
}

/* A dirty part does not make its clean neighbour dirty when they merge. */
static void only_dirty_bytes_are_scrubbed(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct flexmem_allocation *allocation;

	give(test, alloc(test, client, 4096));
	scrubbed(test);
	allocation = alloc_flags(test, other, GIB, FLEXMEM_ALLOC_ZEROED);
	KUNIT_EXPECT_EQ(test, allocation->chunks[0]->start, 0);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	/*
	 * All bytes of the block count as the new owner's now, whichever part
	 * was dirty before.
	 */
	give(test, allocation);
	alloc(test, client, GIB + 4096);
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB);
}

static void long_ranges_are_scrubbed_in_pieces(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;

	give(test, alloc(test, client, 3 * GIB + 128));
	scrubbed(test);
	fake_device_forget(ctx->fake);
	alloc(test, other, 3 * GIB + 128);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 3 * GIB + 128);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 4);
}

/* The files of one user in one cgroup are different owners, too. */
static void another_file_of_the_user_is_another_owner(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *sibling = open(test, 1);

	give(test, alloc(test, client, 4096));
	scrubbed(test);
	give(test, alloc(test, client, 4096));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
	give(test, alloc(test, sibling, 4096));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	give(test, alloc(test, client, 4096));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	close_client(sibling);
	/* A file that is opened later gets another number. */
	sibling = open(test, 1);
	give(test, alloc(test, sibling, 4096));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
}

static void zeroed_is_zero(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation;

	allocation = alloc_flags(test, client, 4096, FLEXMEM_ALLOC_ZEROED);
	/* The bytes scrubbed for the new region are not scrubbed again. */
	KUNIT_EXPECT_EQ(test, scrubbed(test), 12 * GIB);
	give(test, allocation);
	allocation = alloc_flags(test, client, 1024, FLEXMEM_ALLOC_ZEROED);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 1024);
	KUNIT_EXPECT_EQ(test, allocation->chunks[0]->start, 0);
}

/* Random operations. After each operation the owner of each byte is checked. */

static unsigned int scrub_ops = 4000;
module_param(scrub_ops, uint, 0444);
MODULE_PARM_DESC(scrub_ops, "Random operations after each of which the owner of each byte is checked (default 4000)");

#define RANDOM_CLIENTS 6
#define RANDOM_LIVE 40

struct random_run {
	struct rnd_state rnd;
	struct flexmem_client *client[RANDOM_CLIENTS];
	struct flexmem_allocation *live[RANDOM_LIVE];
	unsigned int failures;
};

static void random_alloc(struct kunit *test, struct random_run *run,
			 struct flexmem_allocation **live, u32 roll)
{
	struct flexmem_client *client = run->client[roll % RANDOM_CLIENTS];
	u64 size = BIT_ULL(7 + (roll >> 4) % 24) + 128 * ((roll >> 10) % 64);
	u32 flags = roll & BIT(20) ? FLEXMEM_ALLOC_ZEROED : 0;
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	u8 value = value_of(client);

	if (roll >> 21 & 1 && roll >> 22 & 1 && roll >> 23 & 1)
		fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	allocation = try(ctx, client, size, flags);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 0, 0);
	if (IS_ERR(allocation)) {
		KUNIT_ASSERT_EQ(test, PTR_ERR(allocation), -EIO);
		run->failures++;
		return;
	}
	KUNIT_ASSERT_TRUE(test, holds_own(ctx, allocation, flags ? 0 : value));
	flexmem_client_publish(client, allocation);
	fake_data_fill(ctx->fake, &allocation->chunks[0]->region->mem,
		       allocation->chunks[0]->start, size, value);
	*live = allocation;
}

static void random_reopen(struct kunit *test, struct random_run *run, u32 roll)
{
	unsigned int at = roll % RANDOM_CLIENTS, i;
	struct flexmem_client *client = run->client[at];

	for (i = 0; i < RANDOM_LIVE; i++)
		if (run->live[i] && run->live[i]->owner == client->account)
			run->live[i] = NULL;
	close_client(client);
	if (roll & BIT(11))
		scrub_background(test->priv);
	run->client[at] = open(test, at / 2);
}

static void no_owner_sees_other_owners_bytes(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct random_run *run;
	unsigned int op, nr;
	const char *wrong;
	u64 bytes;

	run = kunit_kzalloc(test, sizeof(*run), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, run);
	prandom_seed_state(&run->rnd, fake_seed());
	for (nr = 0; nr < RANDOM_CLIENTS; nr++)
		run->client[nr] = open(test, nr / 2);
	for (op = 0; op < scrub_ops; op++) {
		u32 roll = prandom_u32_state(&run->rnd);
		u32 what = prandom_u32_state(&run->rnd);
		struct flexmem_allocation **live;

		live = &run->live[(roll >> 24) % RANDOM_LIVE];
		if (what % 200 == 0) {
			random_reopen(test, run, roll);
		} else if (what % 200 == 1) {
			KUNIT_ASSERT_EQ(test, 0,
					flexmem_table_trim(ctx->table, &nr,
							   &bytes));
		} else if (what % 200 < 6) {
			scrub_background(ctx);
		} else if (*live) {
			give(test, *live);
			*live = NULL;
		} else {
			random_alloc(test, run, live, roll);
		}
		wrong = fake_table_check(ctx->table);
		KUNIT_ASSERT_NULL_MSG(test, wrong, "operation %u: %s", op,
				      wrong);
	}
	kunit_info(test, "seed=%u: %u operations, %u scrubs failed, %llu bytes scrubbed, %u scrubs",
		   fake_seed(), op, run->failures, ctx->fake->scrubbed,
		   ctx->fake->calls[FAKE_SCRUB]);
	KUNIT_EXPECT_GT(test, run->failures, 0);
}

static struct kunit_case scrub_cases[] = {
	KUNIT_CASE(region_is_scrubbed_before_it_has_a_slot),
	KUNIT_CASE(region_that_cannot_be_scrubbed_is_given_back),
	KUNIT_CASE(region_acquired_again_is_scrubbed_again),
	KUNIT_CASE(trim_clears_what_owners_left),
	KUNIT_CASE(memory_that_cannot_be_cleared_is_not_released),
	KUNIT_CASE(vf_clears_slot_then_memory),
	KUNIT_CASE(pf_drains_then_clears_memory),
	KUNIT_CASE(memory_that_cannot_be_drained_is_not_released),
	KUNIT_CASE(clearing_stops_between_two_commands),
	KUNIT_CASE(device_that_clears_is_not_asked_to_before_a_release),
	KUNIT_CASE(same_owner_pays_nothing),
	KUNIT_CASE(another_owner_gets_scrubbed_memory),
	KUNIT_CASE(only_dirty_bytes_are_scrubbed),
	KUNIT_CASE(long_ranges_are_scrubbed_in_pieces),
	KUNIT_CASE(another_file_of_the_user_is_another_owner),
	KUNIT_CASE(zeroed_is_zero),
	KUNIT_CASE(no_owner_sees_other_owners_bytes),
	{}
};

static struct kunit_suite scrub_suite = {
	.name = "flexmem_scrub",
	.init = scrub_test_init,
	.test_cases = scrub_cases,
};

kunit_test_suite(scrub_suite);
