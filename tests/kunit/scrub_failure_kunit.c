// SPDX-License-Identifier: GPL-2.0
/*
 * Scrubbing: a block that cannot be scrubbed is quarantined until a scrub
 * succeeds.
 */

#include "owners.h"

static void failed_scrub_is_quarantined(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	make_dirty(test, client, 4096);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, PTR_ERR(try(ctx, other, 4096, 0)));
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 4096);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_owned, 128);
	KUNIT_EXPECT_EQ(test, ctx->view.region[0].nr_allocated, 1);
	KUNIT_EXPECT_EQ(test, other->account->used[FLEXMEM_RESOURCE_BYTES], 0);
	KUNIT_EXPECT_EQ(test, other->account->used[FLEXMEM_RESOURCE_HANDLES], 0);
	KUNIT_EXPECT_NULL(test, fake_table_check(ctx->table));
	/*
	 * No owner gets the quarantined block, not even the owner of the bytes
	 * in it.
	 */
	allocation = alloc(test, client, 4096);
	KUNIT_EXPECT_EQ(test, allocation->chunks[0]->start, 4096 + 128);
}

/*
 * Errors that say nothing about the memory: the caller was killed, the kernel
 * has no memory, or the firmware was not asked. The block is free again.
 */
static void errors_without_quarantine(struct kunit *test)
{
	static const int errors[] = { -ENOMEM, -EINTR };
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;
	unsigned int i;

	make_dirty(test, client, 4096);
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, errors[i]);
		KUNIT_EXPECT_EQ(test, errors[i],
				PTR_ERR(try(ctx, other, 4096, 0)));
		KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
		KUNIT_EXPECT_EQ(test, sums(ctx)->out_owned, 128);
	}
	/* The bytes of the former owner are still cleared. */
	scrubbed(test);
	KUNIT_EXPECT_EQ(test, alloc(test, other, 4096)->chunks[0]->start, 0);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
}

static void trim_repairs_what_is_quarantined(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;
	unsigned int nr;
	u64 bytes;

	make_dirty(test, client, 4096);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 2, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, PTR_ERR(try(ctx, other, 4096, 0)));
	/* The first retry of the scrub fails, the second one succeeds. */
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 4096);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_free, 12 * GIB - 128);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	KUNIT_EXPECT_EQ(test, alloc(test, other, 4096)->chunks[0]->start, 0);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
}

static void region_with_quarantined_bytes_is_not_trimmed(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;
	unsigned int nr;
	u64 bytes;

	give(test, alloc(test, client, 4096));
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 2, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, PTR_ERR(try(ctx, other, 4096, 0)));
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 1);
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

static void background_repairs_what_is_quarantined(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;
	struct flexmem_region *region;

	make_dirty(test, client, 4096);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 2, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, PTR_ERR(try(ctx, other, 4096, 0)));
	region = fake_table_region(ctx->table, 0);
	fake_device_forget(ctx->fake);
	/* The background worker waits before it tries again. */
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 0);
	/* The next retry fails too, so the worker waits again. */
	region->retry_at = jiffies;
	scrub_background(ctx);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 1);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 4096);
	region->retry_at = jiffies;
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
	KUNIT_EXPECT_EQ(test, alloc(test, other, 4096)->chunks[0]->start, 0);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
}

/*
 * The first two callers wait for a timeout, and their blocks go into
 * quarantine. Later callers neither wait nor lose a block.
 */
static void dead_firmware_costs_two_timeouts(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;
	struct flexmem_function *function = &ctx->table->function;
	unsigned int *calls = &ctx->fake->calls[FAKE_SCRUB], i;

	make_dirty(test, client, 16 * 4096);
	fake_device_forget(ctx->fake);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 99, -ETIMEDOUT);
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 99, -ETIMEDOUT);
	function->work_ms = 1;
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
				PTR_ERR(try(ctx, other, 4096, 0)));
	KUNIT_EXPECT_EQ(test, *calls, 2);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
				PTR_ERR(try(ctx, other, 4096, 0)));
	fake_table_region(ctx->table, 0)->retry_at = jiffies;
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, *calls, 2);
	/*
	 * The worker that scrubs in the background does nothing until the
	 * firmware works again.
	 */
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&ctx->table->scrub_work));
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 2 * 4096);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_owned, 128);
	/*
	 * An owner can still allocate memory with its own bytes, which needs no
	 * scrub.
	 */
	give(test, alloc(test, client, 4096));
	/* The firmware works again. The worker's next probe notices that. */
	mutex_lock(&ctx->table->acquire_lock);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 0, 0);
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 0, 0);
	mutex_unlock(&ctx->table->acquire_lock);
	while (flexmem_function_wait(function))
		;
	flush_workqueue(function->worker);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&ctx->table->scrub_work));
	alloc(test, other, 4096);
}

static void count_piece(void *data)
{
	unsigned int *pieces = data;

	++*pieces;
}

/* Makes a region with 3 GiB in quarantine, ready for another try. */
static struct flexmem_region *quarantine_much(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;
	struct flexmem_region *region;

	make_dirty(test, client, 3 * GIB);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, PTR_ERR(try(ctx, other, 3 * GIB, 0)));
	region = fake_table_region(ctx->table, 0);
	region->retry_at = jiffies;
	return region;
}

/*
 * The scrub of a block drops data_lock between two commands, so no caller waits
 * for the whole block.
 */
static void quarantined_block_is_tried_in_pieces(struct kunit *test)
{
	struct flexmem_region *region = quarantine_much(test);
	struct ctx *ctx = test->priv;
	unsigned int pieces = 0;

	ctx->fake->during_scrub = count_piece;
	ctx->fake->during_scrub_arg = &pieces;
	/*
	 * After a failed command the scrub of the block starts from its
	 * beginning.
	 */
	fake_device_fail(ctx->fake, FAKE_SCRUB, 2, 1, -EIO);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 3 * GIB);
	pieces = 0;
	region->retry_at = jiffies;
	scrub_background(ctx);
	ctx->fake->during_scrub = NULL;
	KUNIT_EXPECT_EQ(test, pieces, 3);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_free, 12 * GIB - 128);
	KUNIT_EXPECT_NULL(test, fake_table_check(ctx->table));
}

/* The lost region exists only as long as the quarantined block. */
static void reset_ends_a_retry(struct kunit *test)
{
	struct flexmem_region *region = quarantine_much(test);
	struct flexmem_block *block = flexmem_region_take_quarantined(region);
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, block);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_reset(ctx->table));
	fake_device_forget(ctx->fake);
	KUNIT_EXPECT_EQ(test, flexmem_table_retry_scrub(block), -EIO);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 0);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
}

/* The device may be suspended between two commands of a scrub. */
static void suspend_interrupts_a_retry(struct kunit *test)
{
	struct flexmem_region *region = quarantine_much(test);
	struct flexmem_block *block = flexmem_region_take_quarantined(region);
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, block);
	flexmem_table_suspend(ctx->table);
	fake_device_forget(ctx->fake);
	KUNIT_EXPECT_EQ(test, flexmem_table_retry_scrub(block), -EAGAIN);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 0);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 3 * GIB);
	flexmem_table_resume(ctx->table);
	region->retry_at = jiffies;
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
}

static void killed_caller_returns_the_block_unchanged(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;

	make_dirty(test, client, 4096);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EINTR);
	KUNIT_EXPECT_EQ(test, -EINTR, PTR_ERR(try(ctx, other, 4096, 0)));
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
	KUNIT_EXPECT_EQ(test, alloc(test, other, 4096)->chunks[0]->start, 0);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
}

static struct kunit_case scrub_failure_cases[] = {
	KUNIT_CASE(failed_scrub_is_quarantined),
	KUNIT_CASE(errors_without_quarantine),
	KUNIT_CASE(trim_repairs_what_is_quarantined),
	KUNIT_CASE(region_with_quarantined_bytes_is_not_trimmed),
	KUNIT_CASE(background_repairs_what_is_quarantined),
	KUNIT_CASE(dead_firmware_costs_two_timeouts),
	KUNIT_CASE(quarantined_block_is_tried_in_pieces),
	KUNIT_CASE(reset_ends_a_retry),
	KUNIT_CASE(suspend_interrupts_a_retry),
	KUNIT_CASE(killed_caller_returns_the_block_unchanged),
	{}
};

static struct kunit_suite scrub_failure_suite = {
	.name = "flexmem_scrub_failure",
	.init = scrub_test_init,
	.test_cases = scrub_failure_cases,
};

kunit_test_suite(scrub_failure_suite);
