// SPDX-License-Identifier: GPL-2.0
/*
 * Scrubbing in the background: free blocks with bytes of closed or of several
 * files, and blocks that change during their scrub.
 */

#include <linux/cgroup.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>

#include "compat.h"
#include "owners.h"

/* Frees two neighbours of different owners. They merge into a mixed block. */
static struct flexmem_region *make_mixed(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *a, *b;
	struct flexmem_region *region;

	a = alloc(test, open(test, 1), GIB);
	b = alloc(test, open(test, 2), GIB);
	/*
	 * This allocation separates the two blocks from the clean bytes behind
	 * them.
	 */
	alloc(test, open(test, 3), 128);
	region = a->chunks[0]->region;
	/*
	 * Stops the background worker, which on a slow machine could run before
	 * the test wants it to.
	 */
	flexmem_table_suspend(ctx->table);
	give(test, a);
	give(test, b);
	flexmem_function_resume(&ctx->table->function);
	scrubbed(test);
	return region;
}

static const struct flexmem_block *first_block(struct flexmem_region *region)
{
	return list_first_entry(&region->blocks.all, struct flexmem_block,
				link);
}

static const struct flexmem_block *second_block(struct flexmem_region *region)
{
	return list_next_entry(first_block(region), link);
}

static void mixed_block_is_scrubbed(struct kunit *test)
{
	struct flexmem_region *region = make_mixed(test);
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, first_block(region)->residue.bytes_of, FLEXMEM_MIXED);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 2 * GIB);
	KUNIT_EXPECT_EQ(test, first_block(region)->residue.bytes_of, FLEXMEM_CLEAN);
	KUNIT_EXPECT_NULL(test, fake_table_check(ctx->table));
	KUNIT_EXPECT_TRUE(test, fake_data_is(ctx->fake, &region->mem, 0,
					     2 * GIB, 0));
	alloc(test, open(test, 4), 2 * GIB);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
}

static void mixed_block_is_scrubbed_by_the_worker(struct kunit *test)
{
	struct flexmem_allocation *a = alloc(test, open(test, 1), GIB);
	struct flexmem_allocation *b = alloc(test, open(test, 2), GIB);
	struct ctx *ctx = test->priv;
	unsigned long end;

	alloc(test, open(test, 3), 128);
	scrubbed(test);
	end = jiffies + 60 * HZ;
	give(test, a);
	give(test, b);
	while (atomic64_read(&ctx->table->function.scrubbed) < 2 * GIB &&
	       time_before(jiffies, end))
		msleep(20);
	flush_delayed_work(&ctx->table->scrub_work);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 2 * GIB);
}

static void mixed_block_is_scrubbed_by_the_caller(struct kunit *test)
{
	struct flexmem_region *region = make_mixed(test);

	alloc(test, open(test, 1), GIB + 128);
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB + 128);
	KUNIT_EXPECT_EQ(test, first_block(region)->size, GIB + 128);
}

static void bytes_of_an_open_file_are_left(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct ctx *ctx = test->priv;

	make_dirty(test, client, GIB);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
	/* The worker does not look again before a file is closed. */
	KUNIT_EXPECT_FALSE(test,
			   delayed_work_pending(&ctx->table->scrub_work));
}

/* The worker scrubs the bytes that a file left, without a further call. */
static void bytes_of_a_closed_file_are_scrubbed(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct ctx *ctx = test->priv;

	alloc(test, client, GIB);
	alloc(test, open(test, 1), 128);
	scrubbed(test);
	close_client(client);
	flush_delayed_work(&ctx->table->scrub_work);
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB);
}

/* The bytes of a closed file are freed when nothing uses them any more. */
static void bytes_of_a_closed_file_are_scrubbed_after_their_use(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation = alloc(test, client, GIB);
	struct ctx *ctx = test->priv;

	alloc(test, open(test, 2), 128);
	scrubbed(test);
	flexmem_allocation_get(allocation);
	close_client(client);
	flush_delayed_work(&ctx->table->scrub_work);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
	flexmem_allocation_put(allocation);
	flush_delayed_work(&ctx->table->scrub_work);
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB);
}

/* One run of the worker finds the closed file, however many blocks it checks. */
static void closed_file_is_found_beside_others(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct flexmem_allocation *allocation[50];
	struct ctx *ctx = test->priv;
	unsigned int nr, i;

	for (nr = 1; nr < ARRAY_SIZE(allocation); nr += 7) {
		for (i = 0; i < nr; i++) {
			allocation[i] = alloc(test, other, 4096);
			alloc(test, other, 128);
		}
		for (i = 0; i < nr; i++)
			give(test, allocation[i]);
		alloc(test, client, GIB);
		alloc(test, other, 128);
		scrubbed(test);
		close_client(client);
		scrub_background(ctx);
		KUNIT_EXPECT_EQ_MSG(test, scrubbed(test), GIB, "%u others", nr);
		client = open(test, 1);
	}
}

static void background_goes_on_after_an_error(struct kunit *test)
{
	struct flexmem_region *region = make_mixed(test);
	struct ctx *ctx = test->priv;

	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
	KUNIT_EXPECT_EQ(test, first_block(region)->residue.bytes_of, FLEXMEM_MIXED);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
	KUNIT_EXPECT_TRUE(test,
			  delayed_work_pending(&ctx->table->scrub_work));
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, first_block(region)->residue.bytes_of, FLEXMEM_CLEAN);
}

/*
 * Two files leave a block each. The scrub of the first block fails, so the
 * second block is next, before the first one is tried again.
 */
static void a_block_that_fails_delays_no_other(struct kunit *test)
{
	struct flexmem_client *a = open(test, 1), *b = open(test, 2);
	struct flexmem_client *other = open(test, 3);
	struct ctx *ctx = test->priv;

	alloc(test, a, GIB);
	alloc(test, other, 128);
	alloc(test, b, 4096);
	alloc(test, other, 128);
	scrubbed(test);
	/* As in make_mixed(). */
	flexmem_table_suspend(ctx->table);
	close_client(a);
	close_client(b);
	flexmem_function_resume(&ctx->table->function);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 2, 1, -EIO);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB);
}

/*
 * The same with a block that has bytes of two files, whose scrub never
 * succeeds.
 */
static void a_mixed_block_that_fails_delays_no_other(struct kunit *test)
{
	struct flexmem_client *a = open(test, 1), *b = open(test, 2);
	struct flexmem_client *c = open(test, 3), *other = open(test, 4);
	struct ctx *ctx = test->priv;

	alloc(test, a, GIB);
	alloc(test, b, GIB);
	alloc(test, other, 128);
	alloc(test, c, 4096);
	alloc(test, other, 128);
	scrubbed(test);
	/* As in make_mixed(). */
	flexmem_table_suspend(ctx->table);
	close_client(c);
	close_client(a);
	close_client(b);
	flexmem_function_resume(&ctx->table->function);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 2, 1, -EIO);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 2 * GIB);
}

/*
 * An ALLOC that fails before its scrub gives back a block with the bytes of
 * another file. That file was closed in the meantime.
 */
static void bytes_of_a_closed_file_are_scrubbed_after_a_failed_alloc(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct ctx *ctx = test->priv;
	struct fake_block *block;

	make_dirty(test, client, GIB);
	block = fake_alloc_in(ctx->table, fake_table_region(ctx->table, 0), GIB,
			      false);
	KUNIT_ASSERT_FALSE(test, IS_ERR(block));
	close_client(client);
	flush_delayed_work(&ctx->table->scrub_work);
	/* The file's other block. */
	KUNIT_EXPECT_EQ(test, scrubbed(test), 128);
	fake_free(block);
	flush_delayed_work(&ctx->table->scrub_work);
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB);
}

/*
 * Allocates a part of the block when the background worker scrubs it for the
 * first time.
 */
static void take_a_part(void *arg)
{
	struct kunit *test = arg;
	struct ctx *ctx = test->priv;
	struct fake_block *block;

	ctx->fake->during_scrub = NULL;
	block = fake_alloc_in(ctx->table, fake_table_region(ctx->table, 0),
			      4096, false);
	if (IS_ERR(block))
		return;
	KUNIT_EXPECT_EQ(test, block->block->start, 0);
	KUNIT_EXPECT_EQ(test, block->block->residue.bytes_of, FLEXMEM_MIXED);
}

/*
 * Allocates a part of the block and frees it again, so that the blocks look
 * unchanged.
 */
static void take_and_give(void *arg)
{
	struct kunit *test = arg;
	struct ctx *ctx = test->priv;
	struct fake_block *block;

	ctx->fake->during_scrub = NULL;
	block = fake_alloc_in(ctx->table, fake_table_region(ctx->table, 0),
			      4096, false);
	if (!IS_ERR(block))
		fake_free(block);
}

static void block_split_during_its_scrub_stays_dirty(struct kunit *test)
{
	struct flexmem_region *region = make_mixed(test);
	struct ctx *ctx = test->priv;

	ctx->fake->during_scrub_arg = test;
	ctx->fake->during_scrub = take_a_part;
	fake_device_forget(ctx->fake);
	scrub_background(ctx);
	/* The background worker stops after the piece that it was scrubbing. */
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB);
	KUNIT_EXPECT_EQ(test, first_block(region)->residue.bytes_of, FLEXMEM_MIXED);
	KUNIT_EXPECT_EQ(test, second_block(region)->residue.bytes_of, FLEXMEM_MIXED);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 2 * GIB - 4096);
	KUNIT_EXPECT_EQ(test, first_block(region)->residue.bytes_of, FLEXMEM_MIXED);
	KUNIT_EXPECT_EQ(test, second_block(region)->residue.bytes_of, FLEXMEM_CLEAN);
}

static void block_reused_during_its_scrub_stays_dirty(struct kunit *test)
{
	struct flexmem_region *region = make_mixed(test);
	struct ctx *ctx = test->priv;

	ctx->fake->during_scrub_arg = test;
	ctx->fake->during_scrub = take_and_give;
	fake_device_forget(ctx->fake);
	/* If the FREE has queued a run already, a second run is needed. */
	scrub_background(ctx);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB + 2 * GIB);
	KUNIT_EXPECT_EQ(test, first_block(region)->residue.bytes_of, FLEXMEM_CLEAN);
}

/* Stops a scrub until the test lets the scrub go on. */
struct gate {
	struct ctx *ctx;
	struct completion reached;
	struct completion open;
};

static void wait_at_gate(void *arg)
{
	struct gate *gate = arg;

	gate->ctx->fake->during_scrub = NULL;
	complete(&gate->reached);
	wait_for_completion(&gate->open);
}

struct taker {
	struct ctx *ctx;
	struct flexmem_client *client;
	struct flexmem_allocation *allocation;
	struct completion done;
};

static int take(void *data)
{
	struct taker *taker = data;

	taker->allocation = try(taker->ctx, taker->client, GIB, 0);
	complete_all(&taker->done);
	return 0;
}

/*
 * A file gets a block while the worker scrubs it. The file must not write before
 * the scrub is over, because the scrub would erase the new data.
 */
static void new_owner_waits_for_the_scrub(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct taker taker = { .ctx = ctx };
	struct gate gate = { .ctx = ctx };
	struct task_struct *task;
	unsigned long early = 1;

	make_mixed(test);
	taker.client = open(test, 1);
	init_completion(&gate.reached);
	init_completion(&gate.open);
	init_completion(&taker.done);
	ctx->fake->during_scrub_arg = &gate;
	ctx->fake->during_scrub = wait_at_gate;
	mod_delayed_work(system_dfl_wq, &ctx->table->scrub_work, 0);
	wait_for_completion(&gate.reached);

	task = kthread_run(take, &taker, "flexmem_kunit");
	if (!IS_ERR(task))
		early = wait_for_completion_timeout(&taker.done, HZ / 5);
	complete(&gate.open);
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	wait_for_completion(&taker.done);
	KUNIT_EXPECT_EQ(test, early, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, taker.allocation);
	KUNIT_EXPECT_EQ(test, taker.allocation->chunks[0]->start, 0);
	flexmem_client_release(taker.client, taker.allocation);
}

static void background_forgets_limits_of_removed_cgroups(struct kunit *test)
{
#ifdef CONFIG_CGROUPS
	static const struct flexmem_resource_limit cmd = { .limit = GIB };
	struct ctx *ctx = test->priv;
	struct flexmem_accounts *accounts = &ctx->table->accounts;
	unsigned int before = accounts->nr_cgroups;
	struct flexmem_account *account;

	account = flexmem_owner_of_cgroup(accounts, fake_cgroup(9));
	KUNIT_ASSERT_NOT_NULL(test, account);
	flexmem_limit_set(accounts, account, &cmd);
	flexmem_owner_put(account);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, accounts->nr_cgroups, before + 1);
	fake_cgroup(9)->self.flags &= ~CSS_ONLINE;
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, accounts->nr_cgroups, before);
	fake_cgroup(9);
#else
	kunit_skip(test, "this kernel has no cgroups");
#endif
}

static struct kunit_case table_scrub_cases[] = {
	KUNIT_CASE(background_forgets_limits_of_removed_cgroups),
	KUNIT_CASE(mixed_block_is_scrubbed),
	KUNIT_CASE(mixed_block_is_scrubbed_by_the_worker),
	KUNIT_CASE(mixed_block_is_scrubbed_by_the_caller),
	KUNIT_CASE(bytes_of_an_open_file_are_left),
	KUNIT_CASE(bytes_of_a_closed_file_are_scrubbed),
	KUNIT_CASE(bytes_of_a_closed_file_are_scrubbed_after_their_use),
	KUNIT_CASE(closed_file_is_found_beside_others),
	KUNIT_CASE(background_goes_on_after_an_error),
	KUNIT_CASE(a_block_that_fails_delays_no_other),
	KUNIT_CASE(a_mixed_block_that_fails_delays_no_other),
	KUNIT_CASE(bytes_of_a_closed_file_are_scrubbed_after_a_failed_alloc),
	KUNIT_CASE(block_split_during_its_scrub_stays_dirty),
	KUNIT_CASE(block_reused_during_its_scrub_stays_dirty),
	KUNIT_CASE(new_owner_waits_for_the_scrub),
	{}
};

static struct kunit_suite table_scrub_suite = {
	.name = "flexmem_table_scrub",
	.init = scrub_test_init,
	.test_cases = table_scrub_cases,
};

kunit_test_suite(table_scrub_suite);
