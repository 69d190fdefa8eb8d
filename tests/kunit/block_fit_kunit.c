// SPDX-License-Identifier: GPL-2.0
/* Blocks with an alignment of more than one unit. */

#include "blocks.h"

static void alignment_leaves_front_and_back(struct kunit *test)
{
	init(test, 16);
	take(test, 1);
	KUNIT_EXPECT_EQ(test, take_aligned(test, 2, 4)->start, 4 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(test), "u1 f3 u2 f10");
	KUNIT_EXPECT_EQ(test, nr_spare(test), 0);
	KUNIT_EXPECT_EQ(test, largest(test), 10);
}

static void alignment_leaves_only_a_front(struct kunit *test)
{
	MAKE_HOLES(test, 7);
	KUNIT_EXPECT_EQ(test, take_aligned(test, 4, 4)->start, 4 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(test), "u1 f3 u4 u1");
	KUNIT_EXPECT_EQ(test, nr_spare(test), 1);
	KUNIT_EXPECT_EQ(test, largest(test), 3);
}

static void alignment_leaves_only_a_back(struct kunit *test)
{
	init(test, 16);
	KUNIT_EXPECT_EQ(test, take_aligned(test, 2, 4)->start, 0);
	KUNIT_EXPECT_STREQ(test, layout(test), "u2 f14");
	KUNIT_EXPECT_EQ(test, nr_spare(test), 1);
}

static void alignment_leaves_nothing(struct kunit *test)
{
	init(test, 16);
	take_aligned(test, 16, 16);
	KUNIT_EXPECT_STREQ(test, layout(test), "u16");
	KUNIT_EXPECT_EQ(test, nr_spare(test), 2);
}

static void front_and_back_merge_again(struct kunit *test)
{
	struct flexmem_block *block;

	init(test, 16);
	take(test, 1);
	block = take_aligned(test, 2, 4);
	KUNIT_EXPECT_EQ(test, give(test, block), 2);
	KUNIT_EXPECT_STREQ(test, layout(test), "u1 f15");
}

static void alignment_up_to_the_largest(struct kunit *test)
{
	u64 gib = FLEXMEM_MAX_ALIGNMENT / UNIT;

	init(test, 3 * gib);
	take(test, 1);
	KUNIT_EXPECT_EQ(test, take_aligned(test, gib, gib)->start,
			FLEXMEM_MAX_ALIGNMENT);
	KUNIT_EXPECT_EQ(test, take_aligned(test, 1, gib)->start,
			2 * FLEXMEM_MAX_ALIGNMENT);
	KUNIT_EXPECT_NULL(test, try_aligned(test, 1, gib));
}

/*
 * The request would fit exactly into the hole at offset 4. But that hole has no
 * slack for a misaligned start, so the search skips it.
 */
static void alignment_prefers_a_hole_with_slack(struct kunit *test)
{
	MAKE_HOLES(test, 2, 2, 5);
	KUNIT_EXPECT_EQ(test, take_aligned(test, 2, 4)->start, 8 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(test), "u1 f2 u1 f2 u1 f1 u2 f2 u1");
}

/*
 * A hole of size + alignment - 1 units has room for the request, wherever the
 * hole begins. A hole with one unit less may have none.
 */
static void slack_is_alignment_less_one_unit(struct kunit *test)
{
	MAKE_HOLES(test, 4);
	KUNIT_EXPECT_NULL(test, try_aligned(test, 2, 4));
	MAKE_HOLES(test, 5);
	KUNIT_EXPECT_EQ(test, take_aligned(test, 2, 4)->start, 4 * UNIT);
}

static void alignment_takes_a_hole_that_lies_well(struct kunit *test)
{
	MAKE_HOLES(test, 2, 2, 2);
	KUNIT_EXPECT_EQ(test, take_aligned(test, 2, 4)->start, 4 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(test), "u1 f2 u1 u2 u1 f2 u1");
}

/*
 * Of the holes that suit the alignment, first fit takes the lowest and best fit
 * the tightest.
 */
static void alignment_tries_in_the_order_of_the_fit(struct kunit *test)
{
	/*
	 * The holes begin at 1, 7 and 16. The second one contains offset 8,
	 * which is aligned.
	 */
	static const u64 holes[] = { 5, 8, 4, 4 };
	u64 start = param_fit(test) == FLEXMEM_FIT_FIRST ? 8 : 16;

	make_holes(test, holes, ARRAY_SIZE(holes));
	KUNIT_EXPECT_EQ(test, take_aligned(test, 4, 8)->start, start * UNIT);
}

/*
 * Makes @bad holes that are not aligned to four units, and then an aligned
 * hole. All holes have one unit, so both fits try the holes in the order of
 * their offsets.
 */
static void make_bad_holes(struct kunit *test, unsigned int bad)
{
	struct flexmem_block **hole;
	unsigned int i;

	hole = kunit_kcalloc(test, bad + 1, sizeof(*hole), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hole);
	init(test, 4 * bad + 2);
	for (i = 0; i < bad; i++) {
		take(test, 2);
		hole[i] = take(test, 1);
		take(test, 1);
	}
	hole[bad] = take(test, 1);
	take(test, 1);
	for (i = 0; i <= bad; i++)
		give(test, hole[i]);
}

static void alignment_finds_the_last_try(struct kunit *test)
{
	u64 start = 4 * (FLEXMEM_FIT_TRIES - 1);

	make_bad_holes(test, FLEXMEM_FIT_TRIES - 1);
	KUNIT_EXPECT_EQ(test, take_aligned(test, 1, 4)->start, start * UNIT);
}

static void alignment_gives_up_after_the_last_try(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	u64 free;

	make_bad_holes(test, FLEXMEM_FIT_TRIES);
	free = ctx->blocks.free;
	KUNIT_EXPECT_NULL(test, try_aligned(test, 1, 4));
	KUNIT_EXPECT_TRUE(test, ctx->found.gave_up);
	KUNIT_EXPECT_EQ(test, ctx->blocks.free, free);
	KUNIT_EXPECT_EQ(test, nr_spare(test), 2);
	/*
	 * A search without an alignment may try any number of holes, so it
	 * finds the aligned hole.
	 */
	KUNIT_EXPECT_EQ(test, take(test, 1)->start, 2 * UNIT);
}

static void no_bound_without_alignment(struct kunit *test)
{
	u64 holes[64];
	unsigned int i;

	for (i = 0; i < 64; i++)
		holes[i] = 1 + i % 3;
	holes[63] = 9;
	make_holes(test, holes, 64);
	KUNIT_EXPECT_EQ(test, take(test, 4)->size, 4 * UNIT);
	KUNIT_EXPECT_NULL(test, try(test, 6));
}

static void finding_changes_nothing(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_found found = {};

	init(test, 6);
	take(test, 1);
	KUNIT_EXPECT_TRUE(test, flexmem_blocks_find(&ctx->blocks, 5 * UNIT,
						    UNIT, false, &found));
	KUNIT_EXPECT_FALSE(test, flexmem_blocks_find(&ctx->blocks, 6 * UNIT,
						     UNIT, false, &found));
	KUNIT_EXPECT_TRUE(test, flexmem_blocks_find(&ctx->blocks, 2 * UNIT,
						    4 * UNIT, false, &found));
	KUNIT_EXPECT_FALSE(test, flexmem_blocks_find(&ctx->blocks, 3 * UNIT,
						     4 * UNIT, false, &found));
	check(test);
}

static struct kunit_case block_fit_cases[] = {
	FIT_CASE(alignment_leaves_front_and_back),
	FIT_CASE(alignment_leaves_only_a_front),
	FIT_CASE(alignment_leaves_only_a_back),
	FIT_CASE(alignment_leaves_nothing),
	FIT_CASE(front_and_back_merge_again),
	FIT_CASE(alignment_up_to_the_largest),
	FIT_CASE(alignment_prefers_a_hole_with_slack),
	FIT_CASE(slack_is_alignment_less_one_unit),
	FIT_CASE(alignment_takes_a_hole_that_lies_well),
	FIT_CASE(alignment_tries_in_the_order_of_the_fit),
	FIT_CASE(alignment_finds_the_last_try),
	FIT_CASE(alignment_gives_up_after_the_last_try),
	FIT_CASE(no_bound_without_alignment),
	FIT_CASE(finding_changes_nothing),
	{}
};

static struct kunit_suite block_fit_suite = {
	.name = "flexmem_block_fit",
	.init = block_test_init,
	.test_cases = block_fit_cases,
};

kunit_test_suite(block_fit_suite);
