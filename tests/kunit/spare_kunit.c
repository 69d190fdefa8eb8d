// SPDX-License-Identifier: GPL-2.0
/* Spare objects, which a client keeps for its next allocations. */

#include "block/spare.h"
#include "clients.h"

static int spare_test_init(struct kunit *test)
{
	flexmem_stock_most = FLEXMEM_STOCK_MOST;
	return client_test_init(test);
}

static void spare_test_exit(struct kunit *test)
{
	flexmem_stock_most = 0;
}

static unsigned int kept(struct kunit *test, enum flexmem_object kind)
{
	struct ctx *ctx = test->priv;

	return ctx->client->stock.kept[kind].nr;
}

/* Makes @nr allocations, and then frees all of them. */
static void churn(struct kunit *test, unsigned int nr)
{
	struct ctx *ctx = test->priv;
	u32 handle[5];
	unsigned int i;

	for (i = 0; i < nr; i++)
		handle[i] = alloc(test, ctx->client, 128);
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ(test,
				fake_client_free(ctx->client, handle[i]), 0);
}

static void freed_objects_are_used_again(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *a = prepare(test, ctx->client, 128);
	struct flexmem_block *block = a->chunks[0];

	flexmem_client_release(ctx->client, a);
	KUNIT_EXPECT_EQ(test, kept(test, FLEXMEM_OBJECT_ALLOCATION), 1);
	KUNIT_EXPECT_EQ(test, kept(test, FLEXMEM_OBJECT_BLOCK), 1);
	KUNIT_EXPECT_PTR_EQ(test, a, prepare(test, ctx->client, 256));
	KUNIT_EXPECT_PTR_EQ(test, a->chunks[0], block);
	KUNIT_EXPECT_EQ(test, kept(test, FLEXMEM_OBJECT_ALLOCATION), 0);
	KUNIT_EXPECT_EQ(test, kept(test, FLEXMEM_OBJECT_BLOCK), 0);
	flexmem_client_release(ctx->client, a);
}

static void reused_objects_are_like_new_ones(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *a = prepare(test, ctx->client, 128);

	flexmem_client_publish(ctx->client, a);
	flexmem_allocation_get(a);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, a->handle), 0);
	KUNIT_EXPECT_EQ(test, a->chunks[0]->use, FLEXMEM_USE_ORPHANED);
	flexmem_allocation_put(a);
	churn(test, 1);
	a = prepare(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, a->chunks[0]->use, FLEXMEM_USE_OWNED);
	KUNIT_EXPECT_FALSE(test, a->named);
	KUNIT_EXPECT_FALSE(test, a->resizing);
	KUNIT_EXPECT_EQ(test, refcount_read(&a->refs), 1);
	flexmem_client_release(ctx->client, a);
}

static void an_allocation_needs_little_memory(struct kunit *test)
{
	KUNIT_EXPECT_LE(test, sizeof(struct flexmem_allocation) + sizeof(struct flexmem_block *) +
			      sizeof(struct flexmem_block), 200);
}

static void no_more_is_kept_than_is_allowed(struct kunit *test)
{
	flexmem_stock_most = 3;
	churn(test, 5);
	KUNIT_EXPECT_EQ(test, kept(test, FLEXMEM_OBJECT_ALLOCATION), 3);
	KUNIT_EXPECT_EQ(test, kept(test, FLEXMEM_OBJECT_BLOCK), 3);
}

static void shrinker_empties_the_stocks(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned long before = flexmem_stock_count();

	churn(test, 5);
	KUNIT_EXPECT_EQ(test, flexmem_stock_count(), before + 10);
	KUNIT_EXPECT_EQ(test, flexmem_stock_shrink(0), 0);
	KUNIT_EXPECT_EQ(test, flexmem_stock_shrink(ULONG_MAX), before + 10);
	KUNIT_EXPECT_EQ(test, flexmem_stock_count(), 0);
	KUNIT_EXPECT_EQ(test, flexmem_stock_shrink(ULONG_MAX), 0);
	/* The shrinker finds the stock again. */
	churn(test, 5);
	KUNIT_EXPECT_EQ(test, flexmem_stock_shrink(ULONG_MAX), 10);
	check(test, ctx->client);
}

static void shrinker_takes_no_more_stocks_than_it_must(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *first = ctx->client;

	churn(test, 1);
	ctx->client = fake_client_open(test, ctx->table, 1);
	churn(test, 2);
	KUNIT_EXPECT_EQ(test, flexmem_stock_shrink(1), 4);
	KUNIT_EXPECT_EQ(test, kept(test, FLEXMEM_OBJECT_ALLOCATION), 0);
	ctx->client = first;
	KUNIT_EXPECT_EQ(test, kept(test, FLEXMEM_OBJECT_ALLOCATION), 1);
}

static struct kunit_case spare_cases[] = {
	KUNIT_CASE(freed_objects_are_used_again),
	KUNIT_CASE(reused_objects_are_like_new_ones),
	KUNIT_CASE(an_allocation_needs_little_memory),
	KUNIT_CASE(no_more_is_kept_than_is_allowed),
	KUNIT_CASE(shrinker_empties_the_stocks),
	KUNIT_CASE(shrinker_takes_no_more_stocks_than_it_must),
	{}
};

static struct kunit_suite spare_suite = {
	.name = "flexmem_spare",
	.init = spare_test_init,
	.exit = spare_test_exit,
	.test_cases = spare_cases,
};

kunit_test_suite(spare_suite);
