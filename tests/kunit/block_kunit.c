// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks of one region (A8, A9, A11, A20, A23, A28 to A30, D3, D15).
 *
 * Sizes are given in units of FLEXMEM_ALIGN. A layout is written as the blocks
 * in the order of their offsets: "u3 f7" is three occupied units and then seven
 * free ones.
 */

#include <kunit/test.h>
#include <linux/slab.h>

#include "block.h"
#include "fake_device.h"

#define UNIT FLEXMEM_ALIGN
#define LAYOUT_SIZE 1024

/* What a test works on. */
struct ctx {
	struct flexmem_blocks blocks;
	struct flexmem_spare spare;
	char layout[LAYOUT_SIZE];
};

static const enum flexmem_fit fits[] = {
	FLEXMEM_FIT_FIRST,
	FLEXMEM_FIT_BEST,
};

static void fit_desc(const enum flexmem_fit *fit, char *desc)
{
	strscpy(desc, fake_fit_name(*fit), KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(fit, fits, fit_desc);

static enum flexmem_fit param_fit(struct kunit *test)
{
	return *(const enum flexmem_fit *)test->param_value;
}

static void check(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	const char *wrong = flexmem_blocks_check(&ctx->blocks);

	KUNIT_ASSERT_NULL_MSG(test, wrong, "%s", wrong);
}

static struct flexmem_block *new_node(struct kunit *test)
{
	struct flexmem_block *block;

	block = kunit_kzalloc(test, sizeof(*block), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, block);
	return block;
}

static void init_fit(struct kunit *test, u64 units, enum flexmem_fit fit)
{
	struct ctx *ctx = test->priv;

	flexmem_blocks_init(&ctx->blocks, units * UNIT, fit, new_node(test));
	check(test);
}

static void init(struct kunit *test, u64 units)
{
	init_fit(test, units, param_fit(test));
}

/* Allocates, or returns NULL; leaves the nodes that were not used in spare. */
static struct flexmem_block *try_aligned(struct kunit *test, u64 units,
					 u64 alignment)
{
	struct ctx *ctx = test->priv;
	struct flexmem_block *block;
	unsigned int i;

	ctx->spare = (struct flexmem_spare) {};
	for (i = 0; i < flexmem_spares_for(alignment * UNIT); i++)
		ctx->spare.block[i] = new_node(test);
	block = flexmem_blocks_alloc(&ctx->blocks, units * UNIT,
				     alignment * UNIT, test, &ctx->spare);
	check(test);
	return block;
}

static struct flexmem_block *try(struct kunit *test, u64 units)
{
	return try_aligned(test, units, 1);
}

/* Allocates and asserts that the block is what was asked for. */
static struct flexmem_block *take_aligned(struct kunit *test, u64 units,
					  u64 alignment)
{
	struct flexmem_block *block = try_aligned(test, units, alignment);

	KUNIT_ASSERT_NOT_NULL(test, block);
	KUNIT_ASSERT_EQ(test, block->size, units * UNIT);
	KUNIT_ASSERT_EQ(test, block->start % (alignment * UNIT), 0);
	KUNIT_ASSERT_PTR_EQ(test, block->owner, (const void *)test);
	return block;
}

static struct flexmem_block *take(struct kunit *test, u64 units)
{
	return take_aligned(test, units, 1);
}

/* Frees; returns how many nodes were left over. */
static unsigned int give(struct kunit *test, struct flexmem_block *block)
{
	struct ctx *ctx = test->priv;
	struct flexmem_spare unused;

	memset(&unused, 0xff, sizeof(unused));
	flexmem_blocks_free(&ctx->blocks, block, &unused);
	check(test);
	return !!unused.block[0] + !!unused.block[1];
}

static unsigned int nr_spare(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	return !!ctx->spare.block[0] + !!ctx->spare.block[1];
}

static const char *layout(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_block *block;
	size_t at = 0;

	list_for_each_entry(block, &ctx->blocks.all, link)
		at += scnprintf(ctx->layout + at, LAYOUT_SIZE - at, "%s%c%llu",
				at ? " " : "", block->owner ? 'u' : 'f',
				block->size / UNIT);
	return ctx->layout;
}

static u64 largest(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	return flexmem_blocks_largest(&ctx->blocks) / UNIT;
}

/*
 * Makes holes of the sizes given, each between two occupied units, in a region
 * that ends with an occupied unit: "u1 f<a> u1 f<b> ... u1". They are freed from
 * the last to the first, so that whoever goes by age takes the wrong one.
 */
static void make_holes(struct kunit *test, const u64 *units, unsigned int nr)
{
	struct flexmem_block **hole;
	u64 total = 1;
	unsigned int i;

	hole = kunit_kcalloc(test, nr, sizeof(*hole), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hole);
	for (i = 0; i < nr; i++)
		total += units[i] + 1;
	init(test, total);
	for (i = 0; i < nr; i++) {
		take(test, 1);
		hole[i] = take(test, units[i]);
	}
	take(test, 1);
	while (nr--)
		give(test, hole[nr]);
}

#define MAKE_HOLES(test, units...)					\
	make_holes(test, (const u64[]){ units },			\
		   ARRAY_SIZE(((const u64[]){ units })))

static void begins_as_one_free_block(struct kunit *test)
{
	init(test, 10);
	KUNIT_EXPECT_STREQ(test, layout(test), "f10");
	KUNIT_EXPECT_EQ(test, largest(test), 10);
}

static void splits_at_the_start(struct kunit *test)
{
	init(test, 10);
	KUNIT_EXPECT_EQ(test, take(test, 3)->start, 0);
	KUNIT_EXPECT_STREQ(test, layout(test), "u3 f7");
	KUNIT_EXPECT_EQ(test, take(test, 2)->start, 3 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(test), "u3 u2 f5");
}

static void leaves_a_remainder_of_one_unit(struct kunit *test)
{
	init(test, 10);
	take(test, 9);
	KUNIT_EXPECT_STREQ(test, layout(test), "u9 f1");
	KUNIT_EXPECT_EQ(test, largest(test), 1);
}

static void exact_fit_leaves_no_remainder(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	init(test, 10);
	take(test, 10);
	KUNIT_EXPECT_STREQ(test, layout(test), "u10");
	KUNIT_EXPECT_EQ(test, largest(test), 0);
	KUNIT_EXPECT_EQ(test, ctx->blocks.free, 0);
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_free, 0);
}

static void exact_fit_of_a_hole(struct kunit *test)
{
	MAKE_HOLES(test, 3);
	KUNIT_EXPECT_EQ(test, take(test, 3)->start, UNIT);
	KUNIT_EXPECT_STREQ(test, layout(test), "u1 u3 u1");
}

static void counts_bytes_and_blocks(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_block *block;

	init(test, 10);
	block = take(test, 3);
	take(test, 2);
	KUNIT_EXPECT_EQ(test, ctx->blocks.free, 5 * UNIT);
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_used, 2);
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_free, 1);
	give(test, block);
	KUNIT_EXPECT_EQ(test, ctx->blocks.free, 8 * UNIT);
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_used, 1);
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_free, 2);
}

static void free_without_free_neighbour(struct kunit *test)
{
	struct flexmem_block *block;

	init(test, 6);
	take(test, 2);
	block = take(test, 2);
	take(test, 2);
	KUNIT_EXPECT_EQ(test, give(test, block), 0);
	KUNIT_EXPECT_STREQ(test, layout(test), "u2 f2 u2");
}

static void free_of_the_only_block(struct kunit *test)
{
	struct flexmem_block *block;

	init(test, 6);
	block = take(test, 6);
	KUNIT_EXPECT_EQ(test, give(test, block), 0);
	KUNIT_EXPECT_STREQ(test, layout(test), "f6");
}

static void merges_with_predecessor(struct kunit *test)
{
	struct flexmem_block *first, *second;

	init(test, 6);
	first = take(test, 2);
	second = take(test, 2);
	take(test, 2);
	give(test, first);
	KUNIT_EXPECT_EQ(test, give(test, second), 1);
	KUNIT_EXPECT_STREQ(test, layout(test), "f4 u2");
	KUNIT_EXPECT_EQ(test, largest(test), 4);
}

static void merges_with_successor(struct kunit *test)
{
	struct flexmem_block *first, *second;

	init(test, 6);
	first = take(test, 2);
	second = take(test, 2);
	take(test, 2);
	give(test, second);
	KUNIT_EXPECT_EQ(test, give(test, first), 1);
	KUNIT_EXPECT_STREQ(test, layout(test), "f4 u2");
	KUNIT_EXPECT_EQ(test, largest(test), 4);
}

static void merges_with_both(struct kunit *test)
{
	struct flexmem_block *first, *second, *third;

	init(test, 10);
	first = take(test, 2);
	second = take(test, 3);
	third = take(test, 4);
	take(test, 1);
	give(test, first);
	give(test, third);
	KUNIT_EXPECT_STREQ(test, layout(test), "f2 u3 f4 u1");
	KUNIT_EXPECT_EQ(test, give(test, second), 2);
	KUNIT_EXPECT_STREQ(test, layout(test), "f9 u1");
	KUNIT_EXPECT_EQ(test, largest(test), 9);
}

/* Every order in which four neighbours can be freed ends in one block. */
static void merges_in_every_order(struct kunit *test)
{
	struct flexmem_block *block[4];
	unsigned int order, left, pick, i;

	for (order = 0; order < 4 * 3 * 2; order++) {
		unsigned int rest = order;

		init(test, 10);
		for (i = 0; i < 4; i++)
			block[i] = take(test, i + 1);
		for (left = 4; left; left--) {
			pick = rest % left;
			rest /= left;
			give(test, block[pick]);
			for (i = pick; i + 1 < left; i++)
				block[i] = block[i + 1];
		}
		KUNIT_EXPECT_STREQ(test, layout(test), "f10");
	}
}

static void merged_hole_can_be_taken_whole(struct kunit *test)
{
	struct flexmem_block *first, *second;

	init(test, 6);
	first = take(test, 2);
	second = take(test, 3);
	take(test, 1);
	KUNIT_EXPECT_NULL(test, try(test, 5));
	give(test, first);
	give(test, second);
	KUNIT_EXPECT_EQ(test, take(test, 5)->start, 0);
}

static void fragmented_then_recovers(struct kunit *test)
{
	struct flexmem_block *block[16];
	unsigned int i;

	init(test, 16);
	for (i = 0; i < 16; i++)
		block[i] = take(test, 1);
	for (i = 0; i < 16; i += 2)
		give(test, block[i]);
	KUNIT_EXPECT_EQ(test, largest(test), 1);
	KUNIT_EXPECT_NULL(test, try(test, 2));
	for (i = 1; i < 16; i += 2)
		give(test, block[i]);
	KUNIT_EXPECT_STREQ(test, layout(test), "f16");
	take(test, 16);
}

static void first_fit_takes_the_lowest(struct kunit *test)
{
	test->param_value = &fits[0];
	MAKE_HOLES(test, 2, 5, 3, 9);
	KUNIT_EXPECT_EQ(test, take(test, 3)->start, 4 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(test), "u1 f2 u1 u3 f2 u1 f3 u1 f9 u1");
	KUNIT_EXPECT_EQ(test, take(test, 2)->start, 1 * UNIT);
	KUNIT_EXPECT_EQ(test, take(test, 4)->start, 14 * UNIT);
}

static void best_fit_takes_the_tightest(struct kunit *test)
{
	test->param_value = &fits[1];
	MAKE_HOLES(test, 2, 5, 3, 9);
	KUNIT_EXPECT_EQ(test, take(test, 3)->start, 10 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(test), "u1 f2 u1 f5 u1 u3 u1 f9 u1");
	KUNIT_EXPECT_EQ(test, take(test, 4)->start, 4 * UNIT);
	KUNIT_EXPECT_EQ(test, take(test, 1)->start, 8 * UNIT);
}

static void equal_holes_go_by_offset(struct kunit *test)
{
	MAKE_HOLES(test, 3, 3, 3, 3);
	KUNIT_EXPECT_EQ(test, take(test, 3)->start, 1 * UNIT);
	KUNIT_EXPECT_EQ(test, take(test, 2)->start, 5 * UNIT);
	KUNIT_EXPECT_EQ(test, take(test, 3)->start, 9 * UNIT);
	KUNIT_EXPECT_EQ(test, take(test, 3)->start, 13 * UNIT);
}

static void nothing_fits_changes_nothing(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	MAKE_HOLES(test, 4, 3);
	KUNIT_EXPECT_NULL(test, try(test, 5));
	KUNIT_EXPECT_STREQ(test, layout(test), "u1 f4 u1 f3 u1");
	KUNIT_EXPECT_EQ(test, nr_spare(test), 1);
	KUNIT_EXPECT_EQ(test, ctx->blocks.free, 7 * UNIT);
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_used, 3);
}

static void nothing_fits_in_a_full_region(struct kunit *test)
{
	init(test, 4);
	take(test, 4);
	KUNIT_EXPECT_NULL(test, try(test, 1));
	KUNIT_EXPECT_NULL(test, try_aligned(test, 1, 8));
	KUNIT_EXPECT_STREQ(test, layout(test), "u4");
}

static void huge_sizes_do_not_wrap(struct kunit *test)
{
	u64 gib = FLEXMEM_MAX_ALIGNMENT / UNIT;

	init(test, 3 * gib);
	KUNIT_EXPECT_NULL(test, try(test, U64_MAX / UNIT));
	KUNIT_EXPECT_NULL(test, try_aligned(test, U64_MAX / UNIT, gib));
	KUNIT_EXPECT_EQ(test, largest(test), 3 * gib);
}

static void a_split_uses_one_node(struct kunit *test)
{
	init(test, 4);
	take(test, 3);
	KUNIT_EXPECT_EQ(test, nr_spare(test), 0);
}

static void an_exact_fit_uses_no_node(struct kunit *test)
{
	init(test, 4);
	take(test, 4);
	KUNIT_EXPECT_EQ(test, nr_spare(test), 1);
}

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

/* D15: offset 4 would do, but the hole there has no room to spare. */
static void alignment_prefers_a_hole_with_slack(struct kunit *test)
{
	MAKE_HOLES(test, 2, 2, 5);
	KUNIT_EXPECT_EQ(test, take_aligned(test, 2, 4)->start, 8 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(test), "u1 f2 u1 f2 u1 f1 u2 f2 u1");
}

/* One unit less than what surely holds it, and it lies badly. */
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

/* Of those that lie well, the lowest for one and the tightest for the other. */
static void alignment_tries_in_the_order_of_the_fit(struct kunit *test)
{
	/* Offsets 1, 7 and 16; 8 and 16 are aligned to 8. */
	static const u64 holes[] = { 5, 8, 4, 4 };
	u64 start = param_fit(test) == FLEXMEM_FIT_FIRST ? 8 : 16;

	make_holes(test, holes, ARRAY_SIZE(holes));
	KUNIT_EXPECT_EQ(test, take_aligned(test, 4, 8)->start, start * UNIT);
}

/*
 * @bad holes of one unit that lie badly for an alignment of four, then one that
 * lies well. Equal ones, so both fits try them in the order of their offsets.
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
	KUNIT_EXPECT_EQ(test, ctx->blocks.free, free);
	KUNIT_EXPECT_EQ(test, nr_spare(test), 2);
	/* The bound is for alignments only. */
	KUNIT_EXPECT_EQ(test, take(test, 1)->start, 2 * UNIT);
}

/* Alignments of one unit are exact, however many holes there are. */
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

static void largest_follows_every_change(struct kunit *test)
{
	struct flexmem_block *a, *b, *c;

	init(test, 10);
	a = take(test, 4);
	KUNIT_EXPECT_EQ(test, largest(test), 6);
	b = take(test, 1);
	c = take(test, 5);
	KUNIT_EXPECT_EQ(test, largest(test), 0);
	give(test, a);
	KUNIT_EXPECT_EQ(test, largest(test), 4);
	give(test, c);
	KUNIT_EXPECT_EQ(test, largest(test), 5);
	give(test, b);
	KUNIT_EXPECT_EQ(test, largest(test), 10);
}

/* For each size, every hole is the right answer once: no subtree is missed. */
static void finds_each_of_many_holes(struct kunit *test)
{
	u64 holes[48], start = 1;
	unsigned int i;

	for (i = 0; i < 48; i++)
		holes[i] = 48 - i;
	make_holes(test, holes, 48);
	for (i = 0; i < 48; i++) {
		u64 want = start;

		/* First fit: the largest is the first. Best fit: it is exact. */
		KUNIT_EXPECT_EQ(test, take(test, holes[i])->start, want * UNIT);
		start += holes[i] + 1;
	}
	KUNIT_EXPECT_NULL(test, try(test, 1));
}

/* Whose bytes: written as the owner of each block, 0 clean, * mixed. */

static const char *bytes_of(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_block *block;
	unsigned int at = 0;

	list_for_each_entry(block, &ctx->blocks.all, link)
		at += block->bytes_of == FLEXMEM_MIXED ?
			scnprintf(ctx->layout + at, LAYOUT_SIZE - at, "*") :
			scnprintf(ctx->layout + at, LAYOUT_SIZE - at, "%llu",
				  block->bytes_of);
	return ctx->layout;
}

static unsigned int nr_dirty(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	return list_count_nodes(&ctx->blocks.dirty);
}

static struct flexmem_block *take_for(struct kunit *test, u64 units, u64 owner)
{
	struct flexmem_block *block = take(test, units);

	flexmem_block_soil(block, owner);
	return block;
}

static void new_region_is_clean(struct kunit *test)
{
	init(test, 10);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "0");
	KUNIT_EXPECT_EQ(test, nr_dirty(test), 0);
}

static void split_leaves_both_parts_dirty(struct kunit *test)
{
	init(test, 8);
	give(test, take_for(test, 8, 5));
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "5");
	KUNIT_EXPECT_EQ(test, nr_dirty(test), 1);
	/* In front, in the middle, and the rest. */
	take(test, 1);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "55");
	take_aligned(test, 2, 4);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "5555");
	KUNIT_EXPECT_EQ(test, nr_dirty(test), 2);
	take(test, 3);
	take(test, 2);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "5555");
	KUNIT_EXPECT_EQ(test, nr_dirty(test), 0);
}

static void merge_of_one_owners_stays_its(struct kunit *test)
{
	struct flexmem_block *block[3];
	unsigned int i;

	init(test, 3);
	for (i = 0; i < 3; i++)
		block[i] = take_for(test, 1, 5);
	give(test, block[0]);
	give(test, block[2]);
	give(test, block[1]);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "5");
	KUNIT_EXPECT_EQ(test, nr_dirty(test), 1);
}

/*
 * The strictest state wins: mixed over an owner's, an owner's over clean. What
 * is clean before the first and after the last dirty one stays so.
 */
static void merge_keeps_the_strictest(struct kunit *test)
{
	static const u64 states[] = { FLEXMEM_CLEAN, 5, 6, FLEXMEM_MIXED };
	struct flexmem_block *block[3];
	unsigned int i, n, order;

	for (n = 0; n < 4 * 4 * 4 * 6; n++) {
		u64 want = FLEXMEM_CLEAN, first = U64_MAX, last = 0;

		order = n / 64;
		init(test, 3);
		for (i = 0; i < 3; i++) {
			u64 state = states[n >> 2 * i & 3];

			block[i] = take_for(test, 1, state);
			if (state != FLEXMEM_CLEAN) {
				first = min(first, i * UNIT);
				last = (i + 1) * UNIT;
			}
			if (state != FLEXMEM_CLEAN && want != state)
				want = want == FLEXMEM_CLEAN ? state :
							       FLEXMEM_MIXED;
		}
		give(test, block[order % 3]);
		give(test, block[(order + 1 + order / 3) % 3]);
		give(test, block[(order + 2 - order / 3) % 3]);
		block[0] = list_first_entry(&((struct ctx *)test->priv)->blocks.all,
					    struct flexmem_block, link);
		KUNIT_EXPECT_EQ_MSG(test, block[0]->bytes_of, want, "case %u",
				    n);
		KUNIT_EXPECT_EQ(test, nr_dirty(test), want != FLEXMEM_CLEAN);
		if (want == FLEXMEM_CLEAN)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, block[0]->dirty_start, first,
				    "case %u", n);
		KUNIT_EXPECT_EQ_MSG(test, block[0]->dirty_end, last, "case %u",
				    n);
	}
}

/* A part is dirty only where the whole was. */
static void split_knows_where_it_is_dirty(struct kunit *test)
{
	struct flexmem_block *block[3];
	unsigned int i;

	init(test, 12);
	for (i = 0; i < 3; i++)
		block[i] = take_for(test, 3, i == 1 ? 5 : FLEXMEM_CLEAN);
	for (i = 0; i < 3; i++)
		give(test, block[i]);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "5");
	/* [3, 6) of 12 units is dirty. */
	KUNIT_EXPECT_EQ(test, take(test, 3)->bytes_of, FLEXMEM_CLEAN);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "05");
	block[0] = take(test, 2);
	KUNIT_EXPECT_EQ(test, block[0]->bytes_of, 5);
	KUNIT_EXPECT_EQ(test, block[0]->dirty_start, 3 * UNIT);
	KUNIT_EXPECT_EQ(test, block[0]->dirty_end, 5 * UNIT);
	block[1] = take(test, 4);
	KUNIT_EXPECT_EQ(test, block[1]->bytes_of, 5);
	KUNIT_EXPECT_EQ(test, block[1]->dirty_start, 5 * UNIT);
	KUNIT_EXPECT_EQ(test, block[1]->dirty_end, 6 * UNIT);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "0550");
	KUNIT_EXPECT_EQ(test, nr_dirty(test), 0);
}

/* What lies in front of an aligned block, and behind it. */
static void aligned_split_knows_where_it_is_dirty(struct kunit *test)
{
	struct flexmem_block *block[2];

	init(test, 16);
	take(test, 1);
	block[0] = take_for(test, 1, 5);
	block[1] = take_for(test, 8, FLEXMEM_CLEAN);
	give(test, block[0]);
	give(test, block[1]);
	/* [1, 2) is dirty: in front of what begins at 8. */
	KUNIT_EXPECT_EQ(test, take_aligned(test, 2, 8)->bytes_of,
			FLEXMEM_CLEAN);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "0500");
	KUNIT_EXPECT_EQ(test, nr_dirty(test), 1);
}

static void mixed_comes_first(struct kunit *test)
{
	struct flexmem_block *block[3], *first;
	struct ctx *ctx = test->priv;
	unsigned int i;

	init(test, 6);
	for (i = 0; i < 3; i++) {
		block[i] = take_for(test, 1, i == 1 ? FLEXMEM_MIXED : 5);
		take(test, 1);
	}
	for (i = 0; i < 3; i++)
		give(test, block[i]);
	first = list_first_entry(&ctx->blocks.dirty, struct flexmem_block,
				 dirty_link);
	KUNIT_EXPECT_PTR_EQ(test, first, block[1]);
}

static void fit_says_what_alloc_does(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	init(test, 6);
	take(test, 1);
	KUNIT_EXPECT_TRUE(test, flexmem_blocks_fit(&ctx->blocks, 5 * UNIT,
						   UNIT));
	KUNIT_EXPECT_FALSE(test, flexmem_blocks_fit(&ctx->blocks, 6 * UNIT,
						    UNIT));
	KUNIT_EXPECT_TRUE(test, flexmem_blocks_fit(&ctx->blocks, 2 * UNIT,
						   4 * UNIT));
	KUNIT_EXPECT_FALSE(test, flexmem_blocks_fit(&ctx->blocks, 3 * UNIT,
						    4 * UNIT));
	check(test);
}

static void cleaned_block_is_clean(struct kunit *test)
{
	struct flexmem_block *block, *other;
	struct ctx *ctx = test->priv;

	init(test, 4);
	block = take_for(test, 1, 5);
	take(test, 1);
	other = take_for(test, 1, 6);
	take(test, 1);
	give(test, block);
	give(test, other);
	KUNIT_EXPECT_EQ(test, nr_dirty(test), 2);
	flexmem_blocks_clean(&ctx->blocks, block);
	check(test);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "0060");
	KUNIT_EXPECT_EQ(test, nr_dirty(test), 1);
}

/* What watches a free block sees that it is not the same any more. */
static void watched_block_is_noticed_to_change(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_blocks *blocks = &ctx->blocks;
	struct flexmem_block *a, *b, *hole;

	init(test, 16);
	a = take(test, 1);
	take(test, 2);
	hole = list_last_entry(&blocks->all, struct flexmem_block, link);
	blocks->watched = hole;
	give(test, a);
	KUNIT_EXPECT_PTR_EQ(test, blocks->watched, hole);
	/* A part of it is taken; another is given back beside it. */
	b = take(test, 4);
	KUNIT_EXPECT_NULL(test, blocks->watched);
	hole = list_last_entry(&blocks->all, struct flexmem_block, link);
	blocks->watched = hole;
	give(test, b);
	KUNIT_EXPECT_NULL(test, blocks->watched);
	/* All of it is taken. */
	hole = list_last_entry(&blocks->all, struct flexmem_block, link);
	blocks->watched = hole;
	take(test, 13);
	KUNIT_EXPECT_NULL(test, blocks->watched);
}

/*
 * The checker: what it does not notice, no other test does. Each corruption is
 * made in "f2 u1 f2 u1 f2 u1 f9", whose free blocks are freed such that the
 * tree has both children.
 */

struct corrupt_ctx {
	struct flexmem_blocks *blocks;
	struct flexmem_block *block[7];
	struct flexmem_block *other;
};

static void overlap(struct corrupt_ctx *c)
{
	c->block[1]->start -= UNIT;
}

static void hole(struct corrupt_ctx *c)
{
	c->block[1]->start += UNIT;
}

static void wrong_first_start(struct corrupt_ctx *c)
{
	c->block[0]->start = UNIT;
}

static void swapped_in_list(struct corrupt_ctx *c)
{
	list_move(&c->block[1]->link, &c->block[2]->link);
}

static void lost_from_list(struct corrupt_ctx *c)
{
	list_del(&c->block[6]->link);
}

static void longer_than_total(struct corrupt_ctx *c)
{
	c->blocks->total -= UNIT;
}

static void size_of_zero(struct corrupt_ctx *c)
{
	c->block[5]->size = 0;
	c->block[6]->start -= UNIT;
}

static void misaligned_size(struct corrupt_ctx *c)
{
	c->block[1]->size += 64;
	c->block[2]->start += 64;
	c->block[2]->size -= 64;
}

static void adjacent_free(struct corrupt_ctx *c)
{
	c->block[1]->owner = NULL;
}

static void free_bytes(struct corrupt_ctx *c)
{
	c->blocks->free += UNIT;
}

static void used_blocks(struct corrupt_ctx *c)
{
	c->blocks->nr_used--;
}

static void free_blocks(struct corrupt_ctx *c)
{
	c->blocks->nr_free++;
}

static void missing_in_index(struct corrupt_ctx *c)
{
	rb_erase(&c->block[4]->node, &c->blocks->index);
}

static void missing_in_index_and_count(struct corrupt_ctx *c)
{
	rb_erase(&c->block[4]->node, &c->blocks->index);
	c->blocks->nr_free--;
}

static void used_in_index(struct corrupt_ctx *c)
{
	c->block[0]->owner = c;
	c->blocks->free -= c->block[0]->size;
	c->blocks->nr_used++;
	c->blocks->nr_free--;
}

static void swap_nodes(struct corrupt_ctx *c, unsigned int a, unsigned int b)
{
	struct rb_root *index = &c->blocks->index;

	swap(c->block[a]->subtree_max, c->block[b]->subtree_max);
	rb_replace_node(&c->block[a]->node, &c->other->node, index);
	rb_replace_node(&c->block[b]->node, &c->block[a]->node, index);
	rb_replace_node(&c->other->node, &c->block[b]->node, index);
}

/* Equal sizes: wrong for either order, and no maximum changes. */
static void equal_out_of_order(struct corrupt_ctx *c)
{
	swap_nodes(c, 0, 2);
}

static void largest_not_last(struct corrupt_ctx *c)
{
	swap_nodes(c, 4, 6);
}

static struct flexmem_block *leaf(struct corrupt_ctx *c)
{
	unsigned int i;

	for (i = 0; i < 6; i += 2)
		if (!c->block[i]->node.rb_left && !c->block[i]->node.rb_right)
			break;
	return c->block[i];
}

static void maximum_too_large(struct corrupt_ctx *c)
{
	leaf(c)->subtree_max += UNIT;
}

static void maximum_too_small(struct corrupt_ctx *c)
{
	leaf(c)->subtree_max -= UNIT;
}

static void maximum_of_the_root(struct corrupt_ctx *c)
{
	rb_entry(c->blocks->index.rb_node, struct flexmem_block,
		 node)->subtree_max += UNIT;
}

static void clean_but_listed(struct corrupt_ctx *c)
{
	c->block[2]->bytes_of = FLEXMEM_CLEAN;
}

static void dirty_but_not_listed(struct corrupt_ctx *c)
{
	flexmem_block_soil(c->block[4], 5);
}

static void dirty_before_its_start(struct corrupt_ctx *c)
{
	c->block[2]->dirty_start -= UNIT;
}

static void dirty_beyond_its_end(struct corrupt_ctx *c)
{
	c->block[2]->dirty_end += UNIT;
}

static void dirty_nowhere(struct corrupt_ctx *c)
{
	c->block[2]->dirty_end = c->block[2]->dirty_start;
}

struct corruption {
	const char *name;
	void (*make)(struct corrupt_ctx *c);
	/* What the check says. */
	const char *says;
	/* And for best fit, if that is something else. */
	const char *best_fit_says;
	/* Best fit has no such thing. */
	bool first_fit_only;
};

/* checkpatch: MACRO_ARG_REUSE - the name of a function */
#define CORRUPTION(function) .name = #function, .make = (function)

static const struct corruption corruptions[] = {
	{ CORRUPTION(overlap), "hole or overlap" },
	{ CORRUPTION(hole), "hole or overlap" },
	{ CORRUPTION(wrong_first_start), "hole or overlap" },
	{ CORRUPTION(swapped_in_list), "hole or overlap" },
	{ CORRUPTION(lost_from_list), "blocks do not tile the region" },
	{ CORRUPTION(longer_than_total), "blocks do not tile the region" },
	{ CORRUPTION(size_of_zero), "size not a multiple of the alignment" },
	{ CORRUPTION(misaligned_size), "size not a multiple of the alignment" },
	{ CORRUPTION(adjacent_free), "two free neighbours" },
	{ CORRUPTION(free_bytes), "free bytes miscounted" },
	{ CORRUPTION(used_blocks), "occupied blocks miscounted" },
	{ CORRUPTION(free_blocks), "free blocks miscounted" },
	{ CORRUPTION(missing_in_index), "free blocks not in the index" },
	{ CORRUPTION(missing_in_index_and_count), "free blocks miscounted" },
	{ CORRUPTION(used_in_index), "occupied block in the index" },
	{ CORRUPTION(equal_out_of_order), "index not in order of offsets",
	  "index not in order of sizes" },
	{ CORRUPTION(largest_not_last), "wrong maximum in the index",
	  "wrong largest free block" },
	{ CORRUPTION(maximum_too_large), "wrong maximum in the index",
	  .first_fit_only = true },
	{ CORRUPTION(maximum_too_small), "wrong maximum in the index",
	  .first_fit_only = true },
	{ CORRUPTION(maximum_of_the_root), "wrong largest free block",
	  .first_fit_only = true },
	{ CORRUPTION(clean_but_listed),
	  "free block wrongly listed as clean or dirty" },
	{ CORRUPTION(dirty_but_not_listed),
	  "free block wrongly listed as clean or dirty" },
	{ CORRUPTION(dirty_before_its_start), "dirty where the block is not" },
	{ CORRUPTION(dirty_beyond_its_end), "dirty where the block is not" },
	{ CORRUPTION(dirty_nowhere), "dirty where the block is not" },
};

KUNIT_ARRAY_PARAM_DESC(corruption, corruptions, name);

static void corrupt(struct kunit *test, enum flexmem_fit fit)
{
	const struct corruption *corruption = test->param_value;
	struct ctx *ctx = test->priv;
	struct corrupt_ctx c = { .blocks = &ctx->blocks };
	const char *says = corruption->says;
	struct flexmem_block *block;
	unsigned int i = 0;

	init_fit(test, 18, fit);
	c.other = new_node(test);
	for (i = 0; i < 3; i++) {
		c.block[2 * i] = take(test, 2);
		take(test, 1);
	}
	flexmem_block_soil(c.block[2], 7);
	give(test, c.block[2]);
	give(test, c.block[0]);
	give(test, c.block[4]);
	KUNIT_ASSERT_STREQ(test, layout(test), "f2 u1 f2 u1 f2 u1 f9");

	i = 0;
	list_for_each_entry(block, &ctx->blocks.all, link)
		c.block[i++] = block;
	corruption->make(&c);
	if (fit == FLEXMEM_FIT_BEST && corruption->best_fit_says)
		says = corruption->best_fit_says;
	KUNIT_EXPECT_STREQ(test, flexmem_blocks_check(&ctx->blocks) ?: "none",
			   says);
}

static void check_notices(struct kunit *test)
{
	const struct corruption *corruption = test->param_value;

	corrupt(test, FLEXMEM_FIT_FIRST);
	if (!corruption->first_fit_only)
		corrupt(test, FLEXMEM_FIT_BEST);
}

static int block_test_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct ctx), GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

#define FIT_CASE(name) KUNIT_CASE_PARAM(name, fit_gen_params)

static struct kunit_case block_cases[] = {
	FIT_CASE(begins_as_one_free_block),
	FIT_CASE(splits_at_the_start),
	FIT_CASE(leaves_a_remainder_of_one_unit),
	FIT_CASE(exact_fit_leaves_no_remainder),
	FIT_CASE(exact_fit_of_a_hole),
	FIT_CASE(counts_bytes_and_blocks),
	FIT_CASE(free_without_free_neighbour),
	FIT_CASE(free_of_the_only_block),
	FIT_CASE(merges_with_predecessor),
	FIT_CASE(merges_with_successor),
	FIT_CASE(merges_with_both),
	FIT_CASE(merges_in_every_order),
	FIT_CASE(merged_hole_can_be_taken_whole),
	FIT_CASE(fragmented_then_recovers),
	KUNIT_CASE(first_fit_takes_the_lowest),
	KUNIT_CASE(best_fit_takes_the_tightest),
	FIT_CASE(equal_holes_go_by_offset),
	FIT_CASE(nothing_fits_changes_nothing),
	FIT_CASE(nothing_fits_in_a_full_region),
	FIT_CASE(huge_sizes_do_not_wrap),
	FIT_CASE(a_split_uses_one_node),
	FIT_CASE(an_exact_fit_uses_no_node),
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
	FIT_CASE(largest_follows_every_change),
	FIT_CASE(finds_each_of_many_holes),
	FIT_CASE(new_region_is_clean),
	FIT_CASE(split_leaves_both_parts_dirty),
	FIT_CASE(merge_of_one_owners_stays_its),
	FIT_CASE(merge_keeps_the_strictest),
	FIT_CASE(split_knows_where_it_is_dirty),
	FIT_CASE(aligned_split_knows_where_it_is_dirty),
	FIT_CASE(mixed_comes_first),
	FIT_CASE(fit_says_what_alloc_does),
	FIT_CASE(cleaned_block_is_clean),
	FIT_CASE(watched_block_is_noticed_to_change),
	KUNIT_CASE_PARAM(check_notices, corruption_gen_params),
	{}
};

static struct kunit_suite block_suite = {
	.name = "flexmem_block",
	.init = block_test_init,
	.test_cases = block_cases,
};

kunit_test_suite(block_suite);
