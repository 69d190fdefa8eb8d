// SPDX-License-Identifier: GPL-2.0
/*
 * A free block remembers the owner of the bytes that it may hold. A layout is
 * written as the owner of the bytes of each block; 0 means clean, * means
 * mixed.
 */

#include "blocks.h"

static const char *bytes_of(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_block *block;
	unsigned int at = 0;

	list_for_each_entry(block, &ctx->blocks.all, link)
		at += block->residue.bytes_of == FLEXMEM_MIXED ?
			scnprintf(ctx->layout + at, LAYOUT_SIZE - at, "*") :
			scnprintf(ctx->layout + at, LAYOUT_SIZE - at, "%llu",
				  block->residue.bytes_of);
	return ctx->layout;
}

static unsigned int nr_dirty(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	return list_count_nodes(&ctx->blocks.residues.dirty);
}

static struct flexmem_block *take_for(struct kunit *test, u64 units, u64 owner)
{
	struct flexmem_block *block = take(test, units);

	flexmem_block_mark_dirty(block, owner);
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
	/* Each part of a split block keeps the owner of its bytes. */
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
 * If free blocks merge, the strictest state wins: mixed over a single owner, a
 * single owner over clean. Clean bytes before the first and after the last
 * dirty byte stay clean.
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
		KUNIT_EXPECT_EQ_MSG(test, block[0]->residue.bytes_of, want, "case %u",
				    n);
		KUNIT_EXPECT_EQ(test, nr_dirty(test), want != FLEXMEM_CLEAN);
		if (want == FLEXMEM_CLEAN)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, block[0]->residue.start, first,
				    "case %u", n);
		KUNIT_EXPECT_EQ_MSG(test, block[0]->residue.end, last, "case %u",
				    n);
	}
}

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
	/* Of the 12 units, those from 3 to 5 are dirty. */
	KUNIT_EXPECT_EQ(test, take(test, 3)->residue.bytes_of, FLEXMEM_CLEAN);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "05");
	block[0] = take(test, 2);
	KUNIT_EXPECT_EQ(test, block[0]->residue.bytes_of, 5);
	KUNIT_EXPECT_EQ(test, block[0]->residue.start, 3 * UNIT);
	KUNIT_EXPECT_EQ(test, block[0]->residue.end, 5 * UNIT);
	block[1] = take(test, 4);
	KUNIT_EXPECT_EQ(test, block[1]->residue.bytes_of, 5);
	KUNIT_EXPECT_EQ(test, block[1]->residue.start, 5 * UNIT);
	KUNIT_EXPECT_EQ(test, block[1]->residue.end, 6 * UNIT);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "0550");
	KUNIT_EXPECT_EQ(test, nr_dirty(test), 0);
}

static void aligned_split_knows_where_it_is_dirty(struct kunit *test)
{
	struct flexmem_block *block[2];

	init(test, 16);
	take(test, 1);
	block[0] = take_for(test, 1, 5);
	block[1] = take_for(test, 8, FLEXMEM_CLEAN);
	give(test, block[0]);
	give(test, block[1]);
	/*
	 * Unit 1 is dirty. It lies in front of the aligned block, which begins
	 * at 8.
	 */
	KUNIT_EXPECT_EQ(test, take_aligned(test, 2, 8)->residue.bytes_of,
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
	first = list_first_entry(&ctx->blocks.residues.dirty, struct flexmem_block,
				 residue.link);
	KUNIT_EXPECT_PTR_EQ(test, first, block[1]);
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
	flexmem_residues_watch(&ctx->blocks.residues, &block->residue);
	KUNIT_EXPECT_EQ(test,
			flexmem_residues_end_scrub(&ctx->blocks.residues,
						   UNIT, 0), 0);
	check(test);
	KUNIT_EXPECT_STREQ(test, bytes_of(test), "0060");
	KUNIT_EXPECT_EQ(test, nr_dirty(test), 1);
}

static void watched_block_is_noticed_to_change(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_blocks *blocks = &ctx->blocks;
	struct flexmem_block *a, *b, *hole;

	init(test, 16);
	a = take(test, 1);
	take(test, 2);
	hole = list_last_entry(&blocks->all, struct flexmem_block, link);
	blocks->residues.watched = &hole->residue;
	give(test, a);
	KUNIT_EXPECT_PTR_EQ(test, blocks->residues.watched,
			    &hole->residue);
	/*
	 * Two changes: a part of the block is taken, and then a neighbour is
	 * freed and merges with the block.
	 */
	b = take(test, 4);
	KUNIT_EXPECT_NULL(test, blocks->residues.watched);
	hole = list_last_entry(&blocks->all, struct flexmem_block, link);
	blocks->residues.watched = &hole->residue;
	give(test, b);
	KUNIT_EXPECT_NULL(test, blocks->residues.watched);
	/* The whole watched block is taken. */
	hole = list_last_entry(&blocks->all, struct flexmem_block, link);
	blocks->residues.watched = &hole->residue;
	take(test, 13);
	KUNIT_EXPECT_NULL(test, blocks->residues.watched);
}

static struct kunit_case residue_cases[] = {
	FIT_CASE(new_region_is_clean),
	FIT_CASE(split_leaves_both_parts_dirty),
	FIT_CASE(merge_of_one_owners_stays_its),
	FIT_CASE(merge_keeps_the_strictest),
	FIT_CASE(split_knows_where_it_is_dirty),
	FIT_CASE(aligned_split_knows_where_it_is_dirty),
	FIT_CASE(mixed_comes_first),
	FIT_CASE(cleaned_block_is_clean),
	FIT_CASE(watched_block_is_noticed_to_change),
	{}
};

static struct kunit_suite residue_suite = {
	.name = "flexmem_residue",
	.init = block_test_init,
	.test_cases = residue_cases,
};

kunit_test_suite(residue_suite);
