// SPDX-License-Identifier: GPL-2.0
/* The segment table: slots are filled and cleared; generations; leases. */

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/jiffies.h>

#include "fake_device.h"
#include "slot.h"

#define NR_SLOTS 8
#define LONG_LEASE_MS (60 * 60 * 1000)

struct ctx {
	struct fake_device *fake;
	struct flexmem_function function;
	struct flexmem_slots slots;
	struct flexmem_slot_range range;
	struct flexmem_memory mem[NR_SLOTS];
};

static struct ctx *make_slots(struct kunit *test, enum flexmem_mode mode)
{
	struct flexmem_device_desc desc;
	struct ctx *ctx;
	unsigned int i;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->fake = fake_device_create(test, mode, NR_SLOTS, 64 * GIB);
	desc = fake_device_desc(ctx->fake);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_function_init(&ctx->function, NULL, &desc));
	for (i = 0; i < NR_SLOTS; i++)
		KUNIT_ASSERT_EQ(test, 0,
				flexmem_function_acquire(&ctx->function, 0, GIB,
							 &ctx->mem[i]));
	fake_device_forget(ctx->fake);
	flexmem_slots_init(&ctx->slots, NR_SLOTS, &ctx->function);
	ctx->range.end = NR_SLOTS;
	return ctx;
}

static int slot_test_init(struct kunit *test)
{
	test->priv = make_slots(test, FLEXMEM_MODE_VF);
	return 0;
}

static int fill(struct ctx *ctx, unsigned int slot)
{
	const struct flexmem_segment_entry entry = {
		.slot = slot,
		.flags = slot & 1 ? FLEXMEM_REGION_PROGRAM : 0,
		.region_id = 100 + slot,
		.length = ctx->mem[slot].size,
	};

	return flexmem_slots_fill(&ctx->slots, slot, &ctx->mem[slot], &entry);
}

static void fill_first(struct kunit *test, unsigned int nr)
{
	unsigned int slot;

	for (slot = 0; slot < nr; slot++)
		KUNIT_ASSERT_EQ(test, 0, fill(test->priv, slot));
}

static int find(struct ctx *ctx)
{
	return flexmem_slots_find(&ctx->slots, &ctx->range);
}

static unsigned int nr_filled(struct ctx *ctx)
{
	struct flexmem_segment_entry entries[FLEXMEM_MAX_SLOTS];
	u64 generation;

	return flexmem_slots_read(&ctx->slots, entries, &generation);
}

static u64 generation(struct ctx *ctx)
{
	return flexmem_slots_generation(&ctx->slots);
}

/* Lets the lease end now, so that the test need not wait. */
static void expire(struct flexmem_lease_hold *hold)
{
	hold->expires = get_jiffies_64();
}

static void begins_empty(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 0);
	KUNIT_EXPECT_EQ(test, generation(ctx), 0);
	KUNIT_EXPECT_EQ(test, find(ctx), 0);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 0);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "");
}

static void finds_the_lowest_empty(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fill_first(test, 4);
	KUNIT_EXPECT_EQ(test, find(ctx), 4);
	KUNIT_ASSERT_EQ(test, 0, flexmem_slots_clear(&ctx->slots, 2, false));
	KUNIT_EXPECT_EQ(test, find(ctx), 2);
}

static void finds_nothing_when_full(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fill_first(test, NR_SLOTS);
	KUNIT_EXPECT_EQ(test, find(ctx), -ENOSPC);
}

static void finds_only_in_the_range(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	ctx->range.first = 2;
	ctx->range.end = 4;
	KUNIT_EXPECT_EQ(test, find(ctx), 2);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 2));
	KUNIT_EXPECT_EQ(test, find(ctx), 3);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 3));
	KUNIT_EXPECT_EQ(test, find(ctx), -ENOSPC);
}

static void finds_nothing_in_an_empty_range(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	ctx->range.first = NR_SLOTS;
	KUNIT_EXPECT_EQ(test, find(ctx), -ENOSPC);
}

static void fill_publishes_the_entry(struct kunit *test)
{
	struct flexmem_segment_entry entries[FLEXMEM_MAX_SLOTS];
	struct ctx *ctx = test->priv;
	u64 gen;

	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 3));
	KUNIT_ASSERT_EQ(test, 1,
			flexmem_slots_read(&ctx->slots, entries, &gen));
	KUNIT_EXPECT_EQ(test, gen, 1);
	KUNIT_EXPECT_EQ(test, entries[0].slot, 3);
	KUNIT_EXPECT_EQ(test, entries[0].flags, FLEXMEM_REGION_PROGRAM);
	KUNIT_EXPECT_EQ(test, entries[0].region_id, 103);
	KUNIT_EXPECT_EQ(test, entries[0].length, GIB);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "set 3");
}

static void reads_in_the_order_of_slots(struct kunit *test)
{
	struct flexmem_segment_entry entries[FLEXMEM_MAX_SLOTS];
	struct ctx *ctx = test->priv;
	u64 gen;

	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 7));
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 1));
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 4));
	KUNIT_ASSERT_EQ(test, 3,
			flexmem_slots_read(&ctx->slots, entries, &gen));
	KUNIT_EXPECT_EQ(test, entries[0].slot, 1);
	KUNIT_EXPECT_EQ(test, entries[1].slot, 4);
	KUNIT_EXPECT_EQ(test, entries[2].slot, 7);
	KUNIT_EXPECT_EQ(test, gen, 3);
}

static void every_change_is_a_new_generation(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	KUNIT_EXPECT_EQ(test, generation(ctx), 1);
	KUNIT_ASSERT_EQ(test, 0, flexmem_slots_clear(&ctx->slots, 0, false));
	KUNIT_EXPECT_EQ(test, generation(ctx), 2);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	KUNIT_EXPECT_EQ(test, generation(ctx), 3);
}

static void clear_empties(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 5));
	KUNIT_ASSERT_EQ(test, 0, flexmem_slots_clear(&ctx->slots, 5, false));
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 0);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "set 5, clear 5");
}

static void refused_slot_is_not_found_again(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	ctx->fake->refused_slots = BIT(0) | BIT(2);
	KUNIT_EXPECT_EQ(test, fill(ctx, 0), -ENOSPC);
	KUNIT_EXPECT_EQ(test, generation(ctx), 0);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 0);
	KUNIT_EXPECT_EQ(test, find(ctx), 1);
}

static void failed_fill_changes_nothing(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fake_device_fail(ctx->fake, FAKE_SLOT_SET, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, fill(ctx, 0), -EIO);
	KUNIT_EXPECT_EQ(test, generation(ctx), 0);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 0);
	/* Slot 0 has unknown contents: clear it before it is filled. */
	KUNIT_EXPECT_EQ(test, find(ctx), 1);
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_slot_clear(&ctx->function, 0));
	KUNIT_EXPECT_EQ(test, find(ctx), 0);
	KUNIT_EXPECT_EQ(test, fill(ctx, 0), 0);
}

static void failed_clear_changes_nothing(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false), -EIO);
	/* The generation grew twice: a reader in between saw the slot empty. */
	KUNIT_EXPECT_EQ(test, generation(ctx), 3);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 1);
	KUNIT_EXPECT_EQ(test, find(ctx), 1);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false), 0);
	KUNIT_EXPECT_EQ(test, generation(ctx), 4);
}

static void unanswered_clear_hides_the_slot(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false),
			-ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, generation(ctx), 2);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 0);
	/* The slot may still name the old region, so the slot is not used. */
	KUNIT_EXPECT_EQ(test, find(ctx), 1);
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_slot_clear(&ctx->function, 0));
	KUNIT_EXPECT_EQ(test, find(ctx), 0);
}

static void unanswered_clear_can_be_repeated(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -EINTR);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false),
			-EINTR);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false), 0);
	KUNIT_EXPECT_EQ(test, generation(ctx), 2);
	KUNIT_EXPECT_EQ(test, find(ctx), 0);
	/* The slot can be filled again. */
	KUNIT_EXPECT_EQ(test, fill(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 1);
}

static const struct flexmem_settings limited = {
	.lease_ms = LONG_LEASE_MS,
	.lease_total_ms = 10 * LONG_LEASE_MS,
};

static void lease_is_on_the_table_that_its_holder_knows(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			flexmem_lease_take(&ctx->slots, &hold, &limited, 0));
	KUNIT_EXPECT_FALSE(test, flexmem_lease_held(&ctx->slots, &hold));
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_lease_take(&ctx->slots, &hold, &limited, 1));
	KUNIT_EXPECT_TRUE(test, flexmem_lease_held(&ctx->slots, &hold));
}

struct seen {
	struct ctx *ctx;
	struct flexmem_lease_hold *hold;
	unsigned int entries;
	u64 generation;
};

static void look_and_take(void *arg)
{
	struct seen *seen = arg;

	seen->entries = nr_filled(seen->ctx);
	seen->generation = fake_take_lease(&seen->ctx->slots, seen->hold,
					   LONG_LEASE_MS);
}

static void reset_ends_the_lease_that_came_in_between(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	KUNIT_EXPECT_EQ(test, 0, flexmem_slots_may_clear(&ctx->slots, true));
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	flexmem_slots_forget(&ctx->slots);
	KUNIT_EXPECT_FALSE(test, flexmem_lease_held(&ctx->slots, &hold));
}

/*
 * While the firmware empties a slot, callers that do not need that slot do not
 * wait.
 */
static void lease_can_be_taken_while_a_slot_is_cleared(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;
	struct seen seen = { .ctx = ctx, .hold = &hold };

	flexmem_lease_init(&hold);
	fill_first(test, 2);
	ctx->fake->during_clear = look_and_take;
	ctx->fake->during_clear_arg = &seen;
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false), 0);
	ctx->fake->during_clear = NULL;
	KUNIT_EXPECT_EQ(test, seen.entries, 1);
	KUNIT_EXPECT_EQ(test, seen.generation, 3);
	KUNIT_EXPECT_EQ(test, generation(ctx), 3);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 1, false),
			-EBUSY);
}

/*
 * The administrator's TRIM can end leases, so a client that renews its lease
 * again and again cannot delay the TRIM.
 */
static void clear_can_end_leases(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, true), 0);
	KUNIT_EXPECT_FALSE(test, flexmem_lease_held(&ctx->slots, &hold));
}

static void driver_hold_keeps_slots_and_leases(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	flexmem_slots_hold(&ctx->slots);
	flexmem_slots_hold(&ctx->slots);
	KUNIT_EXPECT_EQ(test, 0, fill(ctx, 1));
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	flexmem_slots_unhold(&ctx->slots);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, true),
			-EBUSY);
	KUNIT_EXPECT_EQ(test, -EBUSY,
			flexmem_slots_may_clear(&ctx->slots, true));
	KUNIT_EXPECT_TRUE(test, flexmem_lease_held(&ctx->slots, &hold));
	KUNIT_EXPECT_EQ(test, 0, flexmem_lease_drop(&ctx->slots, &hold));
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false),
			-EBUSY);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 2);
	flexmem_slots_unhold(&ctx->slots);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false), 0);
}

static void pf_keeps_its_table_alone(struct kunit *test)
{
	struct ctx *ctx = make_slots(test, FLEXMEM_MODE_PF);

	KUNIT_EXPECT_EQ(test, fill(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 1);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false), 0);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 0);
	KUNIT_EXPECT_EQ(test, generation(ctx), 2);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "");
}

static void lease_keeps_filled_slots(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	KUNIT_EXPECT_EQ(test, 1, fake_take_lease(&ctx->slots, &hold,
						 LONG_LEASE_MS));
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false),
			-EBUSY);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 1);
	KUNIT_EXPECT_EQ(test, generation(ctx), 1);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "set 0");
}

static void lease_lets_empty_slots_be_filled(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	KUNIT_EXPECT_EQ(test, fill(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, generation(ctx), 1);
}

static void dropped_lease_lets_go(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	KUNIT_EXPECT_EQ(test, 0, flexmem_lease_drop(&ctx->slots, &hold));
	KUNIT_EXPECT_EQ(test, flexmem_slots_generation(&ctx->slots), 1);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 0);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false), 0);
}

static void held_until_dropped_or_over(struct kunit *test)
{
	struct flexmem_lease_hold a, b;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&a);
	flexmem_lease_init(&b);
	KUNIT_EXPECT_FALSE(test, flexmem_lease_held(&ctx->slots, &a));
	fake_take_lease(&ctx->slots, &a, LONG_LEASE_MS);
	KUNIT_EXPECT_TRUE(test, flexmem_lease_held(&ctx->slots, &a));
	KUNIT_EXPECT_FALSE(test, flexmem_lease_held(&ctx->slots, &b));
	flexmem_lease_drop(&ctx->slots, &a);
	KUNIT_EXPECT_FALSE(test, flexmem_lease_held(&ctx->slots, &a));
	fake_take_lease(&ctx->slots, &a, LONG_LEASE_MS);
	expire(&a);
	KUNIT_EXPECT_FALSE(test, flexmem_lease_held(&ctx->slots, &a));
}

/*
 * The lease that was renewed last expires last, even if another lease was taken
 * later.
 */
static void renewed_lease_outlasts_a_later_one(struct kunit *test)
{
	struct flexmem_lease_hold a, b;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&a);
	flexmem_lease_init(&b);
	fake_take_lease(&ctx->slots, &a, LONG_LEASE_MS);
	fake_take_lease(&ctx->slots, &b, LONG_LEASE_MS);
	fake_take_lease(&ctx->slots, &a, LONG_LEASE_MS);
	expire(&b);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 1);
	KUNIT_EXPECT_TRUE(test, flexmem_lease_held(&ctx->slots, &a));
}

static void drop_of_no_lease_is_refused(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			flexmem_lease_drop(&ctx->slots, &hold));
	KUNIT_EXPECT_EQ(test, flexmem_slots_generation(&ctx->slots), 0);
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	KUNIT_EXPECT_EQ(test, 0, flexmem_lease_drop(&ctx->slots, &hold));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			flexmem_lease_drop(&ctx->slots, &hold));
}

static void every_lease_counts(struct kunit *test)
{
	struct flexmem_lease_hold a, b;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&a);
	flexmem_lease_init(&b);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	fake_take_lease(&ctx->slots, &a, LONG_LEASE_MS);
	fake_take_lease(&ctx->slots, &b, LONG_LEASE_MS);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 2);
	KUNIT_EXPECT_EQ(test, 0, flexmem_lease_drop(&ctx->slots, &a));
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false),
			-EBUSY);
	KUNIT_EXPECT_EQ(test, 0, flexmem_lease_drop(&ctx->slots, &b));
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false), 0);
}

static void lease_taken_twice_counts_once(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 1);
	KUNIT_EXPECT_EQ(test, 0, flexmem_lease_drop(&ctx->slots, &hold));
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 0);
}

static void expired_lease_lets_go(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	expire(&hold);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false), 0);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 0);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			flexmem_lease_drop(&ctx->slots, &hold));
}

static void lease_lasts_as_long_as_it_says(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;
	u64 before, after;

	flexmem_lease_init(&hold);
	before = get_jiffies_64();
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	after = get_jiffies_64();
	/*
	 * A lease is never shorter than its duration, even if it was taken at
	 * the end of a jiffy.
	 */
	KUNIT_EXPECT_GT(test, hold.expires,
			before + msecs_to_jiffies(LONG_LEASE_MS));
	KUNIT_EXPECT_LE(test, hold.expires,
			after + msecs_to_jiffies(LONG_LEASE_MS) + 1);
}

static void short_lease_ends_by_itself(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;
	unsigned int i;

	flexmem_lease_init(&hold);
	fake_take_lease(&ctx->slots, &hold, 1);
	for (i = 0; i < 3000 && flexmem_lease_count(&ctx->slots); i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 0);
}

static void renewed_lease_has_its_full_time(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	expire(&hold);
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 1);
}

/* Makes the lease @ms old. */
static void age(struct flexmem_lease_hold *hold, unsigned int ms)
{
	hold->began = get_jiffies_64() - msecs_to_jiffies(ms);
}

static void lease_cannot_be_renewed_for_ever(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;
	u64 began, expires;

	flexmem_lease_init(&hold);
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	age(&hold, limited.lease_total_ms / 2);
	began = hold.began;
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_lease_take(&ctx->slots, &hold, &limited, 0));
	KUNIT_EXPECT_EQ(test, hold.began, began);
	age(&hold, limited.lease_total_ms);
	expires = hold.expires;
	KUNIT_EXPECT_EQ(test, -EBUSY,
			flexmem_lease_take(&ctx->slots, &hold, &limited, 0));
	/* The client keeps its lease until the lease expires. */
	KUNIT_EXPECT_TRUE(test, flexmem_lease_held(&ctx->slots, &hold));
	KUNIT_EXPECT_EQ(test, hold.expires, expires);
}

static void lease_that_ended_begins_anew(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	age(&hold, limited.lease_total_ms);
	KUNIT_EXPECT_EQ(test, 0, flexmem_lease_drop(&ctx->slots, &hold));
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_lease_take(&ctx->slots, &hold, &limited, 0));
	age(&hold, limited.lease_total_ms);
	expire(&hold);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_lease_take(&ctx->slots, &hold, &limited, 0));
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_lease_take(&ctx->slots, &hold, &limited, 0));
}

static void lease_without_limit_is_renewed(struct kunit *test)
{
	struct flexmem_lease_hold hold;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&hold);
	fake_take_lease(&ctx->slots, &hold, LONG_LEASE_MS);
	age(&hold, UINT_MAX / 4);
	KUNIT_EXPECT_EQ(test, 0, fake_take_lease(&ctx->slots, &hold,
						 LONG_LEASE_MS));
}

static void one_of_two_leases_expires(struct kunit *test)
{
	struct flexmem_lease_hold a, b;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&a);
	flexmem_lease_init(&b);
	fake_take_lease(&ctx->slots, &a, LONG_LEASE_MS);
	fake_take_lease(&ctx->slots, &b, LONG_LEASE_MS);
	expire(&a);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 1);
}

/*
 * Expects that a call has removed some of the expired leases, but not all of
 * them.
 */
static void expect_some(struct kunit *test, unsigned int *nr)
{
	struct ctx *ctx = test->priv;
	unsigned int left = ctx->slots.nr_leases;

	KUNIT_EXPECT_LE(test, *nr, left + FLEXMEM_LEASES_AT_ONCE);
	*nr = left;
}

/*
 * Expired leases are removed in batches, because there may be as many as open
 * files, and the removal holds a spinlock.
 */
static void many_leases_expire_in_batches(struct kunit *test)
{
	const unsigned int many = 5 * FLEXMEM_LEASES_AT_ONCE;
	struct flexmem_lease_hold *hold, other;
	struct ctx *ctx = test->priv;
	unsigned int i, nr = many;

	hold = kunit_kcalloc(test, many, sizeof(*hold), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hold);
	flexmem_lease_init(&other);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	for (i = 0; i < many; i++) {
		flexmem_lease_init(&hold[i]);
		fake_take_lease(&ctx->slots, &hold[i], LONG_LEASE_MS);
	}
	for (i = 0; i < many; i++)
		expire(&hold[i]);

	KUNIT_EXPECT_FALSE(test, flexmem_lease_held(&ctx->slots, &hold[0]));
	expect_some(test, &nr);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			flexmem_lease_drop(&ctx->slots, &hold[1]));
	expect_some(test, &nr);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false), 0);
	expect_some(test, &nr);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	fake_take_lease(&ctx->slots, &other, LONG_LEASE_MS);
	expect_some(test, &nr);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false),
			-EBUSY);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 1);
	KUNIT_EXPECT_EQ(test, ctx->slots.nr_leases, 1);
}

/*
 * Broken leases stay in a list until their clients notice. Each client then
 * removes its own lease.
 */
static void many_leases_are_broken_in_batches(struct kunit *test)
{
	struct flexmem_lease_hold hold[4];
	struct ctx *ctx = test->priv;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	for (i = 0; i < ARRAY_SIZE(hold); i++) {
		flexmem_lease_init(&hold[i]);
		fake_take_lease(&ctx->slots, &hold[i], LONG_LEASE_MS);
	}
	KUNIT_EXPECT_EQ(test, 0, flexmem_slots_may_clear(&ctx->slots, true));
	for (i = 0; i < ARRAY_SIZE(hold); i++) {
		KUNIT_EXPECT_FALSE(test, list_empty(&hold[i].link));
		KUNIT_EXPECT_FALSE(test,
				   flexmem_lease_held(&ctx->slots, &hold[i]));
	}
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 0);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			flexmem_lease_drop(&ctx->slots, &hold[0]));
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 0);
	/*
	 * Clients 2 and 3 have not noticed yet that their leases are broken.
	 * Client 1 takes a new lease, which is broken too.
	 */
	fake_take_lease(&ctx->slots, &hold[1], LONG_LEASE_MS);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 1);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, false),
			-EBUSY);
	expire(&hold[2]);
	fake_take_lease(&ctx->slots, &hold[2], LONG_LEASE_MS);
	KUNIT_EXPECT_EQ(test, flexmem_lease_drop(&ctx->slots, &hold[1]), 0);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 1);
	KUNIT_EXPECT_EQ(test, flexmem_slots_clear(&ctx->slots, 0, true), 0);
	KUNIT_EXPECT_FALSE(test, flexmem_lease_held(&ctx->slots, &hold[2]));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			flexmem_lease_drop(&ctx->slots, &hold[3]));
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 0);
}

static void break_all_ends_every_lease(struct kunit *test)
{
	struct flexmem_lease_hold a, b;
	struct ctx *ctx = test->priv;

	flexmem_lease_init(&a);
	flexmem_lease_init(&b);
	fake_take_lease(&ctx->slots, &a, LONG_LEASE_MS);
	fake_take_lease(&ctx->slots, &b, LONG_LEASE_MS);
	KUNIT_EXPECT_EQ(test, 0, flexmem_slots_may_clear(&ctx->slots, true));
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->slots), 0);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			flexmem_lease_drop(&ctx->slots, &a));
}

static struct kunit_case slot_cases[] = {
	KUNIT_CASE(begins_empty),
	KUNIT_CASE(finds_the_lowest_empty),
	KUNIT_CASE(finds_nothing_when_full),
	KUNIT_CASE(finds_only_in_the_range),
	KUNIT_CASE(finds_nothing_in_an_empty_range),
	KUNIT_CASE(fill_publishes_the_entry),
	KUNIT_CASE(reads_in_the_order_of_slots),
	KUNIT_CASE(every_change_is_a_new_generation),
	KUNIT_CASE(clear_empties),
	KUNIT_CASE(refused_slot_is_not_found_again),
	KUNIT_CASE(failed_fill_changes_nothing),
	KUNIT_CASE(failed_clear_changes_nothing),
	KUNIT_CASE(unanswered_clear_hides_the_slot),
	KUNIT_CASE(unanswered_clear_can_be_repeated),
	KUNIT_CASE(lease_is_on_the_table_that_its_holder_knows),
	KUNIT_CASE(lease_can_be_taken_while_a_slot_is_cleared),
	KUNIT_CASE(clear_can_end_leases),
	KUNIT_CASE(driver_hold_keeps_slots_and_leases),
	KUNIT_CASE(reset_ends_the_lease_that_came_in_between),
	KUNIT_CASE(pf_keeps_its_table_alone),
	KUNIT_CASE(lease_keeps_filled_slots),
	KUNIT_CASE(lease_lets_empty_slots_be_filled),
	KUNIT_CASE(dropped_lease_lets_go),
	KUNIT_CASE(held_until_dropped_or_over),
	KUNIT_CASE(renewed_lease_outlasts_a_later_one),
	KUNIT_CASE(drop_of_no_lease_is_refused),
	KUNIT_CASE(every_lease_counts),
	KUNIT_CASE(lease_taken_twice_counts_once),
	KUNIT_CASE(expired_lease_lets_go),
	KUNIT_CASE(lease_lasts_as_long_as_it_says),
	KUNIT_CASE(short_lease_ends_by_itself),
	KUNIT_CASE(renewed_lease_has_its_full_time),
	KUNIT_CASE(lease_cannot_be_renewed_for_ever),
	KUNIT_CASE(lease_that_ended_begins_anew),
	KUNIT_CASE(lease_without_limit_is_renewed),
	KUNIT_CASE(one_of_two_leases_expires),
	KUNIT_CASE(many_leases_expire_in_batches),
	KUNIT_CASE(many_leases_are_broken_in_batches),
	KUNIT_CASE(break_all_ends_every_lease),
	{}
};

static struct kunit_suite slot_suite = {
	.name = "flexmem_slot",
	.init = slot_test_init,
	.test_cases = slot_cases,
};

kunit_test_suite(slot_suite);
