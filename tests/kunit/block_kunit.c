// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks: how they are found, split and merged. Also tests the checker that all
 * tests of blocks rely on.
 */

#include "blocks.h"

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

static void a_run_of_four_is_one_hole(struct kunit *test)
{
	struct flexmem_block *block[16];
	unsigned int i;

	init(test, 16);
	for (i = 0; i < 16; i++)
		block[i] = take(test, 1);
	for (i = 5; i < 9; i++)
		give(test, block[i]);
	KUNIT_EXPECT_EQ(test, largest(test), 4);
	KUNIT_EXPECT_NULL(test, try(test, 5));
	KUNIT_EXPECT_EQ(test, take(test, 4)->start, 5 * UNIT);
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

/*
 * For each hole there is a size for which this hole is the only right answer,
 * so the search must visit every subtree.
 */
static void finds_each_of_many_holes(struct kunit *test)
{
	u64 holes[48], start = 1;
	unsigned int i;

	for (i = 0; i < 48; i++)
		holes[i] = 48 - i;
	make_holes(test, holes, 48);
	for (i = 0; i < 48; i++) {
		u64 want = start;

		/* The largest hole left is the lowest one, and fits exactly. */
		KUNIT_EXPECT_EQ(test, take(test, holes[i])->start, want * UNIT);
		start += holes[i] + 1;
	}
	KUNIT_EXPECT_NULL(test, try(test, 1));
}

/*
 * Tests of the checker of a region's blocks. No other test would notice a
 * checker that misses a corruption. Each corruption is made in the blocks "f2
 * u1 f2 u1 f2 u1 f9". The free ones were freed in an order that gives the root
 * of the tree two children.
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
	c->block[1]->use = FLEXMEM_USE_FREE;
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
	c->block[0]->use = FLEXMEM_USE_OWNED;
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

/*
 * Swaps two blocks of equal size: then the order is wrong for both fits, but no
 * subtree_max changes.
 */
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
	c->block[2]->residue.bytes_of = FLEXMEM_CLEAN;
}

static void dirty_but_not_listed(struct corrupt_ctx *c)
{
	flexmem_block_mark_dirty(c->block[4], 5);
}

static void dirty_before_its_start(struct corrupt_ctx *c)
{
	c->block[2]->residue.start -= UNIT;
}

static void dirty_beyond_its_end(struct corrupt_ctx *c)
{
	c->block[2]->residue.end += UNIT;
}

static void dirty_nowhere(struct corrupt_ctx *c)
{
	c->block[2]->residue.end = c->block[2]->residue.start;
}

struct corruption {
	const char *name;
	void (*make)(struct corrupt_ctx *c);
	const char *says;
	/* The checker's message for best fit, if it differs. */
	const char *best_fit_says;
	/* Best fit does not use the corrupted field. */
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
	flexmem_block_mark_dirty(c.block[2], 7);
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
	FIT_CASE(a_run_of_four_is_one_hole),
	KUNIT_CASE(first_fit_takes_the_lowest),
	KUNIT_CASE(best_fit_takes_the_tightest),
	FIT_CASE(equal_holes_go_by_offset),
	FIT_CASE(nothing_fits_changes_nothing),
	FIT_CASE(nothing_fits_in_a_full_region),
	FIT_CASE(huge_sizes_do_not_wrap),
	FIT_CASE(a_split_uses_one_node),
	FIT_CASE(an_exact_fit_uses_no_node),
	FIT_CASE(largest_follows_every_change),
	FIT_CASE(finds_each_of_many_holes),
	KUNIT_CASE_PARAM(check_notices, corruption_gen_params),
	{}
};

static struct kunit_suite block_suite = {
	.name = "flexmem_block",
	.init = block_test_init,
	.test_cases = block_cases,
};

kunit_test_suite(block_suite);
