// SPDX-License-Identifier: GPL-2.0
/* The segment table: slots are filled and cleared; generations; holds. */

#include <kunit/test.h>

#include "fake_device.h"
#include "region/slot.h"

#define NR_SLOTS 8

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

/* Hides a slot and clears it, as TRIM does. -EBUSY: the slot is held. */
static int clear(struct ctx *ctx, unsigned int slot)
{
	return flexmem_slots_hide(&ctx->slots, slot) ?
		flexmem_slots_clear(&ctx->slots, slot) : -EBUSY;
}

static void begins_empty(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 0);
	KUNIT_EXPECT_EQ(test, generation(ctx), 0);
	KUNIT_EXPECT_EQ(test, find(ctx), 0);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "");
}

static void finds_the_lowest_empty(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fill_first(test, 4);
	KUNIT_EXPECT_EQ(test, find(ctx), 4);
	KUNIT_ASSERT_EQ(test, 0, clear(ctx, 2));
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
	KUNIT_ASSERT_EQ(test, 0, clear(ctx, 0));
	KUNIT_EXPECT_EQ(test, generation(ctx), 2);
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	KUNIT_EXPECT_EQ(test, generation(ctx), 3);
}

static void clear_empties(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 5));
	KUNIT_ASSERT_EQ(test, 0, clear(ctx, 5));
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
	KUNIT_EXPECT_EQ(test, clear(ctx, 0), -EIO);
	/* The generation grew twice: a reader in between saw the slot empty. */
	KUNIT_EXPECT_EQ(test, generation(ctx), 3);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 1);
	KUNIT_EXPECT_EQ(test, find(ctx), 1);
	KUNIT_EXPECT_EQ(test, clear(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, generation(ctx), 4);
}

static void unanswered_clear_hides_the_slot(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, clear(ctx, 0),
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
	KUNIT_EXPECT_EQ(test, clear(ctx, 0),
			-EINTR);
	KUNIT_EXPECT_EQ(test, clear(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, generation(ctx), 2);
	KUNIT_EXPECT_EQ(test, find(ctx), 0);
	/* The slot can be filled again. */
	KUNIT_EXPECT_EQ(test, fill(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 1);
}

struct seen {
	struct ctx *ctx;
	struct flexmem_hold hold;
	unsigned int entries;
};

static void look_and_hold(void *arg)
{
	struct seen *seen = arg;

	seen->entries = nr_filled(seen->ctx);
	seen->hold = fake_hold(&seen->ctx->slots, BIT_ULL(0) | BIT_ULL(1));
}

/*
 * While the firmware empties a slot, callers that do not need that slot do not
 * wait, and cannot hold it any more.
 */
static void hold_can_begin_while_a_slot_is_cleared(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct seen seen = { .ctx = ctx };

	fill_first(test, 2);
	ctx->fake->during_clear = look_and_hold;
	ctx->fake->during_clear_arg = &seen;
	KUNIT_EXPECT_EQ(test, clear(ctx, 0), 0);
	ctx->fake->during_clear = NULL;
	KUNIT_EXPECT_EQ(test, seen.entries, 1);
	KUNIT_EXPECT_EQ(test, seen.hold.slots, BIT_ULL(1));
	KUNIT_EXPECT_EQ(test, seen.hold.generation, 3);
	KUNIT_EXPECT_EQ(test, generation(ctx), 3);
	KUNIT_EXPECT_EQ(test, clear(ctx, 1), -EBUSY);
}

static void hold_is_on_the_table_that_its_holder_knows(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_hold hold;

	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	KUNIT_EXPECT_FALSE(test, flexmem_slots_hold(&ctx->slots, 0, BIT_ULL(0),
						    &hold));
	KUNIT_EXPECT_EQ(test, hold.slots, 0);
	KUNIT_EXPECT_FALSE(test, flexmem_slots_are_held(&ctx->slots, 0));
	KUNIT_EXPECT_TRUE(test, flexmem_slots_hold(&ctx->slots, 1, BIT_ULL(0),
						   &hold));
	KUNIT_EXPECT_EQ(test, hold.slots, BIT_ULL(0));
	KUNIT_EXPECT_TRUE(test, flexmem_slots_are_held(&ctx->slots, 0));
}

static void hold_keeps_its_slots_only(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_hold hold;

	fill_first(test, 3);
	fake_device_forget(ctx->fake);
	/* Slot 7 is empty. */
	hold = fake_hold(&ctx->slots, BIT_ULL(0) | BIT_ULL(2) | BIT_ULL(7));
	KUNIT_EXPECT_EQ(test, hold.slots, BIT_ULL(0) | BIT_ULL(2));
	KUNIT_EXPECT_EQ(test, clear(ctx, 0), -EBUSY);
	KUNIT_EXPECT_EQ(test, clear(ctx, 2), -EBUSY);
	KUNIT_EXPECT_EQ(test, generation(ctx), 3);
	KUNIT_EXPECT_EQ(test, clear(ctx, 1), 0);
	/* An empty slot can be filled, and nobody holds the new region. */
	KUNIT_EXPECT_EQ(test, fill(ctx, 7), 0);
	KUNIT_EXPECT_EQ(test, clear(ctx, 7), 0);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake),
			   "clear 1, set 7, clear 7");
	flexmem_slots_unhold(&ctx->slots, &hold);
	KUNIT_EXPECT_EQ(test, clear(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, clear(ctx, 2), 0);
}

static void every_hold_counts(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_hold a, b;

	fill_first(test, 2);
	a = fake_hold(&ctx->slots, BIT_ULL(0));
	b = fake_hold(&ctx->slots, BIT_ULL(0) | BIT_ULL(1));
	flexmem_slots_unhold(&ctx->slots, &b);
	KUNIT_EXPECT_EQ(test, clear(ctx, 0), -EBUSY);
	KUNIT_EXPECT_EQ(test, clear(ctx, 1), 0);
	flexmem_slots_unhold(&ctx->slots, &a);
	KUNIT_EXPECT_EQ(test, clear(ctx, 0), 0);
}

/* The unhold of a lost region must not end the hold of the region after it. */
static void lost_region_is_not_held(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_hold old, new;

	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	old = fake_hold(&ctx->slots, BIT_ULL(0));
	flexmem_slots_forget(&ctx->slots);
	KUNIT_EXPECT_FALSE(test, flexmem_slots_are_held(&ctx->slots, 0));
	flexmem_slots_unhold(&ctx->slots, &old);
	KUNIT_ASSERT_EQ(test, 0, flexmem_function_slot_clear(&ctx->function, 0));
	KUNIT_ASSERT_EQ(test, 0, fill(ctx, 0));
	new = fake_hold(&ctx->slots, BIT_ULL(0));
	flexmem_slots_unhold(&ctx->slots, &old);
	KUNIT_EXPECT_EQ(test, clear(ctx, 0), -EBUSY);
	flexmem_slots_unhold(&ctx->slots, &new);
	KUNIT_EXPECT_EQ(test, clear(ctx, 0), 0);
}

static void pf_keeps_its_table_alone(struct kunit *test)
{
	struct ctx *ctx = make_slots(test, FLEXMEM_MODE_PF);

	KUNIT_EXPECT_EQ(test, fill(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 1);
	KUNIT_EXPECT_EQ(test, clear(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, nr_filled(ctx), 0);
	KUNIT_EXPECT_EQ(test, generation(ctx), 2);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "");
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
	KUNIT_CASE(hold_can_begin_while_a_slot_is_cleared),
	KUNIT_CASE(hold_is_on_the_table_that_its_holder_knows),
	KUNIT_CASE(hold_keeps_its_slots_only),
	KUNIT_CASE(every_hold_counts),
	KUNIT_CASE(lost_region_is_not_held),
	KUNIT_CASE(pf_keeps_its_table_alone),
	{}
};

static struct kunit_suite slot_suite = {
	.name = "flexmem_slot",
	.init = slot_test_init,
	.test_cases = slot_cases,
};

kunit_test_suite(slot_suite);
