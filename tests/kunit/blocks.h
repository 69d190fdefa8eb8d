/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The blocks of one region, without the rest of the driver, for the tests of
 * how blocks are found, split and merged. After each call everything is
 * checked.
 *
 * Sizes are given in units of FLEXMEM_ALIGN. A layout is written as the blocks
 * in the order of their offsets: "u3 f7" is three occupied units and then seven
 * free ones.
 */
#ifndef _FLEXMEM_TEST_BLOCKS_H
#define _FLEXMEM_TEST_BLOCKS_H

#include <kunit/test.h>
#include <linux/slab.h>

#include "block/block.h"
#include "fake_device.h"

#define UNIT FLEXMEM_ALIGN
#define LAYOUT_SIZE 1024

/* The region under test. */
struct ctx {
	struct flexmem_blocks blocks;
	struct flexmem_spare spare;
	struct flexmem_found found;
	char layout[LAYOUT_SIZE];
};

static const enum flexmem_fit fits[] = {
	FLEXMEM_FIT_FIRST,
	FLEXMEM_FIT_BEST,
};

static inline void fit_desc(const enum flexmem_fit *fit, char *desc)
{
	strscpy(desc, fake_fit_name(*fit), KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(fit, fits, fit_desc);

static inline enum flexmem_fit param_fit(struct kunit *test)
{
	return *(const enum flexmem_fit *)test->param_value;
}

static inline void check(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	const char *wrong = flexmem_blocks_check(&ctx->blocks);

	KUNIT_ASSERT_NULL_MSG(test, wrong, "%s", wrong);
}

static inline struct flexmem_block *new_node(struct kunit *test)
{
	struct flexmem_block *block;

	block = kunit_kzalloc(test, sizeof(*block), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, block);
	return block;
}

static inline void init_fit(struct kunit *test, u64 units, enum flexmem_fit fit)
{
	struct ctx *ctx = test->priv;

	flexmem_blocks_init(&ctx->blocks, units * UNIT, fit, new_node(test));
	check(test);
}

static inline void init(struct kunit *test, u64 units)
{
	init_fit(test, units, param_fit(test));
}

/* Allocates, or returns NULL. Nodes that were not needed stay in @spare. */
static inline struct flexmem_block *try_aligned(struct kunit *test, u64 units,
						u64 alignment)
{
	struct ctx *ctx = test->priv;
	struct flexmem_block *block = NULL;
	unsigned int i;

	ctx->spare = (struct flexmem_spare) {};
	ctx->found = (struct flexmem_found) {};
	for (i = 0; i < flexmem_spares_for(alignment * UNIT); i++)
		ctx->spare.block[i] = new_node(test);
	if (flexmem_blocks_find(&ctx->blocks, units * UNIT, alignment * UNIT,
				false, &ctx->found))
		block = flexmem_blocks_take(&ctx->blocks, &ctx->found,
					    units * UNIT, &ctx->spare);
	check(test);
	return block;
}

static inline struct flexmem_block *try(struct kunit *test, u64 units)
{
	return try_aligned(test, units, 1);
}

/*
 * Allocates, and asserts that the block has the requested size and alignment.
 */
static inline struct flexmem_block *take_aligned(struct kunit *test, u64 units,
						 u64 alignment)
{
	struct flexmem_block *block = try_aligned(test, units, alignment);

	KUNIT_ASSERT_NOT_NULL(test, block);
	KUNIT_ASSERT_EQ(test, block->size, units * UNIT);
	KUNIT_ASSERT_EQ(test, block->start % (alignment * UNIT), 0);
	KUNIT_ASSERT_EQ(test, block->use, FLEXMEM_USE_OWNED);
	return block;
}

static inline struct flexmem_block *take(struct kunit *test, u64 units)
{
	return take_aligned(test, units, 1);
}

/* Frees a block. Returns the number of nodes that are no longer needed. */
static inline unsigned int give(struct kunit *test, struct flexmem_block *block)
{
	struct ctx *ctx = test->priv;
	struct flexmem_spare unused;

	memset(&unused, 0xff, sizeof(unused));
	flexmem_blocks_free(&ctx->blocks, block, &unused);
	check(test);
	return !!unused.block[0] + !!unused.block[1];
}

static inline unsigned int nr_spare(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	return !!ctx->spare.block[0] + !!ctx->spare.block[1];
}

static inline const char *layout(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_block *block;
	size_t at = 0;

	list_for_each_entry(block, &ctx->blocks.all, link)
		at += scnprintf(ctx->layout + at, LAYOUT_SIZE - at, "%s%c%llu",
				at ? " " : "", block->use ? 'u' : 'f',
				block->size / UNIT);
	return ctx->layout;
}

static inline u64 largest(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	return flexmem_blocks_largest(&ctx->blocks) / UNIT;
}

/*
 * Makes holes of the given sizes, each between two occupied units, in a region
 * that ends with an occupied unit: "u1 f<a> u1 f<b> ... u1". The holes are
 * freed from the last to the first, so an allocator that takes the hole that
 * was freed first takes the wrong one.
 */
static inline void make_holes(struct kunit *test, const u64 *units,
			      unsigned int nr)
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

static inline int block_test_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct ctx), GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

#define FIT_CASE(name) KUNIT_CASE_PARAM(name, fit_gen_params)

#endif /* _FLEXMEM_TEST_BLOCKS_H */
