// SPDX-License-Identifier: GPL-2.0
/*
 * Scrubbing: no owner gets the bytes of another, and nobody pays for its own
 * (B4, D17, D25).
 *
 * The device remembers what is in its memory: every allocation is looked at
 * when it is made, filled with its owner's own value, and looked at again when
 * it is freed. Regions are of 12 GiB and fill up one after the other.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/workqueue.h>

#include "client.h"
#include "dirty.h"
#include "fake_device.h"
#include "owner.h"
#include "snapshot.h"
#include "table.h"

#define PLENTY (1024 * GIB)

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_place place;
	struct flexmem_view view;
	struct list_head opened;
};

/* An open file. */
struct opened {
	struct list_head link;
	struct flexmem_client client;
};

static struct ctx *make(struct kunit *test, bool bare)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	INIT_LIST_HEAD(&ctx->opened);
	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	ctx->fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, PLENTY);
	ctx->fake->bare = bare;
	ctx->table = fake_table_create(test, ctx->fake, &settings);
	return ctx;
}

static int scrub_test_init(struct kunit *test)
{
	test->priv = make(test, false);
	return 0;
}

/* A client; @table is NULL once it is closed. */
static void close_client(void *data)
{
	struct flexmem_client *client = data;

	if (!client->table)
		return;
	list_del(&container_of(client, struct opened, client)->link);
	flexmem_client_fini(client);
	client->table = NULL;
}

static struct flexmem_client *open(struct kunit *test, unsigned int uid)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client;
	struct opened *opened;

	opened = kunit_kzalloc(test, sizeof(*opened), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, opened);
	client = &opened->client;
	list_add(&opened->link, &ctx->opened);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_client_init(client, ctx->table, fake_uid(uid),
					    NULL));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, close_client, client));
	return client;
}

static struct flexmem_client *
client_of(struct ctx *ctx, const struct flexmem_allocation *allocation)
{
	struct opened *opened;

	list_for_each_entry(opened, &ctx->opened, link)
		if (opened->client.account == allocation->owner)
			break;
	return &opened->client;
}

static struct flexmem_client *open_strict(struct kunit *test, unsigned int uid)
{
	struct flexmem_client *client = open(test, uid);

	KUNIT_EXPECT_EQ(test, flexmem_client_set_strict(client), 0);
	return client;
}

/* What an owner writes into its bytes. */
static u8 value_of(const struct flexmem_client *client)
{
	u64 owner = flexmem_owner_of_bytes(client->account);

	return 1 + owner % (FAKE_FOREIGN - 1);
}

/* All bytes are the owner's, or clean; with @value 0, clean. */
static bool holds_own(struct ctx *ctx,
		      const struct flexmem_allocation *allocation, u8 value)
{
	return fake_data_is_own(ctx->fake, &allocation->region->mem,
				allocation->block->start,
				allocation->block->size, value);
}

static struct flexmem_allocation *try(struct ctx *ctx,
				      struct flexmem_client *client, u64 size,
				      u32 flags)
{
	return flexmem_client_prepare(client, size, FLEXMEM_ALIGN, flags,
				      &ctx->place);
}

static struct flexmem_allocation *alloc_flags(struct kunit *test,
					      struct flexmem_client *client,
					      u64 size, u32 flags)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	u8 value = value_of(client);

	allocation = try(ctx, client, size, flags);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	KUNIT_ASSERT_TRUE(test,
			  holds_own(ctx, allocation,
				    flags & FLEXMEM_ALLOC_ZEROED ? 0 : value));
	flexmem_client_publish(client, allocation);
	fake_data_fill(ctx->fake, &allocation->region->mem,
		       allocation->block->start, size, value);
	return allocation;
}

static struct flexmem_allocation *alloc(struct kunit *test,
					struct flexmem_client *client, u64 size)
{
	return alloc_flags(test, client, size, 0);
}

static void give(struct kunit *test, struct flexmem_allocation *allocation)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = client_of(ctx, allocation);

	/* Nobody has touched what was its own. */
	KUNIT_EXPECT_TRUE(test, fake_data_is(ctx->fake,
					     &allocation->region->mem,
					     allocation->block->start,
					     allocation->block->size,
					     value_of(client)));
	allocation = flexmem_client_detach(client, allocation->handle);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_release(client, allocation);
}

/* Bytes that were scrubbed since the last time; both counters agree. */
static u64 scrubbed(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	u64 bytes = ctx->fake->scrubbed;

	KUNIT_EXPECT_EQ(test, atomic64_read(&ctx->table->scrubbed), bytes);
	ctx->fake->scrubbed = 0;
	atomic64_set(&ctx->table->scrubbed, 0);
	return bytes;
}

static const struct flexmem_snapshot *sums(struct ctx *ctx)
{
	flexmem_table_snapshot(ctx->table, NULL, &ctx->view);
	return &ctx->view.sum;
}

/* Lets the background do what it has to do; what it puts off stays put off. */
static void scrub_background(struct ctx *ctx)
{
	mod_delayed_work(system_unbound_wq, &ctx->table->scrub_work, 0);
	flush_work(&ctx->table->scrub_work.work);
}

static void make_idle(struct flexmem_account *user)
{
	user->idle_since = jiffies - 60 * HZ;
}

/* New regions. */

static void expect_no_slot(void *arg)
{
	struct kunit *test = arg;
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SLOT_SET], 0);
}

static void region_is_scrubbed_before_it_has_a_slot(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	ctx->fake->during_scrub = expect_no_slot;
	ctx->fake->during_scrub_arg = test;
	alloc(test, open(test, 1), 128);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 12 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 12);
}

static void region_that_cannot_be_scrubbed_is_given_back(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = open(test, 1);

	fake_device_fail(ctx->fake, FAKE_SCRUB, 5, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, PTR_ERR(try(ctx, client, 128, 0)));
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_total, 0);
	alloc(test, client, 128);
}

static void region_acquired_again_is_scrubbed_again(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = open(test, 1);
	unsigned int nr;
	u64 bytes;

	give(test, alloc(test, client, 12 * GIB));
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, false, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 1);
	scrubbed(test);
	alloc(test, client, 128);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 12 * GIB);
}

/* Changes of owner. */

static void same_owner_pays_nothing(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *sibling = open(test, 1);
	struct flexmem_allocation *allocation;

	allocation = alloc(test, client, GIB);
	alloc(test, client, 128);
	scrubbed(test);
	give(test, allocation);
	allocation = alloc(test, client, GIB / 2);
	KUNIT_EXPECT_EQ(test, allocation->block->start, 0);
	KUNIT_EXPECT_EQ(test, alloc(test, sibling, GIB / 2)->block->start,
			GIB / 2);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
}

static void another_owner_scrubs_what_it_gets(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct flexmem_allocation *allocation;

	allocation = alloc(test, client, GIB);
	alloc(test, client, 128);
	scrubbed(test);
	give(test, allocation);
	allocation = alloc(test, other, 4096);
	KUNIT_EXPECT_EQ(test, allocation->block->start, 0);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	/* What is left of it is still the first one's. */
	allocation = alloc(test, client, GIB - 4096);
	KUNIT_EXPECT_EQ(test, allocation->block->start, 4096);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
}

/* A little that is dirty does not spoil the clean memory beside it. */
static void only_what_is_dirty_is_scrubbed(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct flexmem_allocation *allocation;

	give(test, alloc(test, client, 4096));
	scrubbed(test);
	allocation = alloc_flags(test, other, GIB, FLEXMEM_ALLOC_ZEROED);
	KUNIT_EXPECT_EQ(test, allocation->block->start, 0);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	/* All of it is the new owner's now, whatever was dirty before. */
	give(test, allocation);
	alloc(test, client, GIB + 4096);
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB);
}

static void long_ranges_are_scrubbed_in_pieces(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;

	give(test, alloc(test, client, 3 * GIB + 128));
	scrubbed(test);
	fake_device_forget(ctx->fake);
	alloc(test, other, 3 * GIB + 128);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 3 * GIB + 128);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 4);
}

static void strict_client_is_an_owner_of_its_own(struct kunit *test)
{
	struct flexmem_client *strict = open_strict(test, 1);
	struct flexmem_client *sibling = open(test, 1);
	struct flexmem_client *other = open_strict(test, 1);

	give(test, alloc(test, strict, 4096));
	scrubbed(test);
	give(test, alloc(test, strict, 4096));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
	give(test, alloc(test, sibling, 4096));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	give(test, alloc(test, strict, 4096));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	give(test, alloc(test, other, 4096));
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
}

static void strict_comes_before_the_first_allocation(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation = alloc(test, client, 128);

	KUNIT_EXPECT_EQ(test, flexmem_client_set_strict(client), -EBUSY);
	KUNIT_EXPECT_FALSE(test, client->account->strict);
	give(test, allocation);
	KUNIT_EXPECT_EQ(test, flexmem_client_set_strict(client), 0);
	KUNIT_EXPECT_TRUE(test, client->account->strict);
}

static void zeroed_is_zero(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation;

	allocation = alloc_flags(test, client, 4096, FLEXMEM_ALLOC_ZEROED);
	/* Nothing is done twice. */
	KUNIT_EXPECT_EQ(test, scrubbed(test), 12 * GIB);
	give(test, allocation);
	allocation = alloc_flags(test, client, 1024, FLEXMEM_ALLOC_ZEROED);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 1024);
	KUNIT_EXPECT_EQ(test, allocation->block->start, 0);
}

static void device_that_cannot_scrub_is_not_asked(struct kunit *test)
{
	struct ctx *ctx = make(test, true);
	struct flexmem_allocation *allocation;
	struct flexmem_client *client;

	test->priv = ctx;
	client = open(test, 1);
	allocation = try(ctx, client, 4096, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_release(client, allocation);
	allocation = try(ctx, open(test, 2), 4096, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	KUNIT_EXPECT_EQ(test, allocation->block->start, 0);
	flexmem_client_release(client_of(ctx, allocation), allocation);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
}

/* Failures. */

/* Two owners' blocks at the start of a region, the first of them free. */
static void make_dirty(struct kunit *test, struct flexmem_client *client,
		       u64 size)
{
	struct flexmem_allocation *allocation = alloc(test, client, size);

	alloc(test, client, 128);
	give(test, allocation);
	scrubbed(test);
}

static void what_cannot_be_scrubbed_is_quarantined(struct kunit *test)
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
	/* Nobody gets it, not even who was there before. */
	allocation = alloc(test, client, 4096);
	KUNIT_EXPECT_EQ(test, allocation->block->start, 4096 + 128);
}

static void trim_repairs_what_is_quarantined(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;
	unsigned int nr;
	u64 bytes;

	make_dirty(test, client, 4096);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 2, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, PTR_ERR(try(ctx, other, 4096, 0)));
	/* It fails once more, and then no more. */
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, false, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 4096);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, false, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_free, 12 * GIB - 128);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
	KUNIT_EXPECT_EQ(test, alloc(test, other, 4096)->block->start, 0);
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
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, false, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, false, &nr, &bytes));
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
	/* Not at once. */
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 0);
	/* It fails once more, and is left alone again. */
	region->retry_at = jiffies;
	scrub_background(ctx);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 1);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 4096);
	region->retry_at = jiffies;
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
	KUNIT_EXPECT_EQ(test, alloc(test, other, 4096)->block->start, 0);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
}

/* The first one pays a time-out, and a block; the others neither (D28). */
static void dead_firmware_costs_one_timeout(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;
	struct flexmem_function *function = &ctx->table->function;
	unsigned int *calls = &ctx->fake->calls[FAKE_SCRUB], i;

	make_dirty(test, client, 16 * 4096);
	fake_device_forget(ctx->fake);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 99, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, PTR_ERR(try(ctx, other, 4096, 0)));
	KUNIT_EXPECT_EQ(test, *calls, 1);
	/* Time is let pass by moving the next probe, not by waiting for it. */
	WRITE_ONCE(function->probe_at, jiffies + 3600 * HZ);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
				PTR_ERR(try(ctx, other, 4096, 0)));
	fake_table_region(ctx->table, 0)->retry_at = jiffies;
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, *calls, 1);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 4096);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_owned, 128);
	/* Its own bytes are there for everybody. */
	give(test, alloc(test, client, 4096));
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 0, 0);
	WRITE_ONCE(function->probe_at, jiffies);
	alloc(test, other, 4096);
	KUNIT_EXPECT_FALSE(test, function->doubt);
}

/* What somebody does in the middle of a piece. */
struct meddler {
	struct flexmem_region *region;
	struct flexmem_block *taken;
	unsigned int pieces;
	unsigned int takes_at;
};

static void meddle(void *data)
{
	struct meddler *meddler = data;

	if (++meddler->pieces == meddler->takes_at)
		meddler->taken =
			flexmem_region_take_quarantined(meddler->region);
}

static struct meddler quarantine_much(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;
	struct meddler meddler = {};

	make_dirty(test, client, 3 * GIB);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, PTR_ERR(try(ctx, other, 3 * GIB, 0)));
	meddler.region = fake_table_region(ctx->table, 0);
	meddler.region->retry_at = jiffies;
	ctx->fake->during_scrub = meddle;
	return meddler;
}

/* With the lock free in between, so that nobody waits for all of it. */
static void quarantined_block_is_tried_in_pieces(struct kunit *test)
{
	struct meddler meddler = quarantine_much(test);
	struct ctx *ctx = test->priv;

	ctx->fake->during_scrub_arg = &meddler;
	/* From the beginning, after a piece that fails. */
	fake_device_fail(ctx->fake, FAKE_SCRUB, 2, 1, -EIO);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 3 * GIB);
	meddler.pieces = 0;
	meddler.region->retry_at = jiffies;
	scrub_background(ctx);
	ctx->fake->during_scrub = NULL;
	KUNIT_EXPECT_EQ(test, meddler.pieces, 3);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_free, 12 * GIB - 128);
	KUNIT_EXPECT_NULL(test, fake_table_check(ctx->table));
}

/* As TRIM does, at any moment: also when all but the end has been done. */
static void quarantined_block_may_be_taken_between_pieces(struct kunit *test)
{
	struct meddler meddler = quarantine_much(test);
	struct ctx *ctx = test->priv;

	ctx->fake->during_scrub_arg = &meddler;
	meddler.takes_at = 3;
	scrub_background(ctx);
	ctx->fake->during_scrub = NULL;
	KUNIT_EXPECT_EQ(test, meddler.pieces, 3);
	KUNIT_ASSERT_NOT_NULL(test, meddler.taken);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 3 * GIB);
	flexmem_region_end_quarantine(meddler.region, meddler.taken, true);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
	KUNIT_EXPECT_NULL(test, fake_table_check(ctx->table));
}

static void who_was_killed_gives_the_block_back_as_it_was(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;

	make_dirty(test, client, 4096);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EINTR);
	KUNIT_EXPECT_EQ(test, -EINTR, PTR_ERR(try(ctx, other, 4096, 0)));
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
	KUNIT_EXPECT_EQ(test, alloc(test, other, 4096)->block->start, 0);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 4096);
}

/* The background. */

/* Two neighbours of different owners, both freed: nobody's. */
static struct flexmem_region *make_mixed(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *a, *b;
	struct flexmem_region *region;

	a = alloc(test, open(test, 1), GIB);
	b = alloc(test, open(test, 2), GIB);
	/* So that they do not merge with what is clean. */
	alloc(test, open(test, 3), 128);
	region = a->region;
	/* On a slow machine it would begin before the test says so. */
	flexmem_table_suspend(ctx->table);
	give(test, a);
	give(test, b);
	ctx->table->function.suspended = false;
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

	KUNIT_EXPECT_EQ(test, first_block(region)->bytes_of, FLEXMEM_MIXED);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 2 * GIB);
	KUNIT_EXPECT_EQ(test, first_block(region)->bytes_of, FLEXMEM_CLEAN);
	KUNIT_EXPECT_NULL(test, fake_table_check(ctx->table));
	KUNIT_EXPECT_TRUE(test, fake_data_is(ctx->fake, &region->mem, 0,
					     2 * GIB, 0));
	alloc(test, open(test, 4), 2 * GIB);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
}

static void mixed_block_is_scrubbed_unasked(struct kunit *test)
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
	while (atomic64_read(&ctx->table->scrubbed) < 2 * GIB &&
	       time_before(jiffies, end))
		msleep(20);
	flush_delayed_work(&ctx->table->scrub_work);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 2 * GIB);
}

static void mixed_block_is_scrubbed_by_who_cannot_wait(struct kunit *test)
{
	struct flexmem_region *region = make_mixed(test);

	alloc(test, open(test, 1), GIB + 128);
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB + 128);
	KUNIT_EXPECT_EQ(test, first_block(region)->size, GIB + 128);
}

static void bytes_of_who_is_there_are_left(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct ctx *ctx = test->priv;

	make_dirty(test, client, GIB);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
	close_client(client);
	/* Nor at once when its last file is closed. */
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
}

static void bytes_of_an_idle_user_are_scrubbed(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct flexmem_account *user = client->account->user;
	struct ctx *ctx = test->priv;

	alloc(test, client, GIB);
	alloc(test, other, 128);
	scrubbed(test);
	close_client(client);
	make_idle(user);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB);
}

/* However many blocks of those who are there lie about. */
static void idle_user_is_found_beside_others(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct flexmem_account *user = client->account->user;
	struct flexmem_allocation *allocation[16];
	struct ctx *ctx = test->priv;
	unsigned int nr, i;

	for (nr = 1; nr < ARRAY_SIZE(allocation); nr++) {
		alloc(test, client, GIB);
		alloc(test, other, 128);
		for (i = 0; i < nr; i++) {
			allocation[i] = alloc(test, other, 4096);
			alloc(test, other, 128);
		}
		scrubbed(test);
		close_client(client);
		make_idle(user);
		for (i = 0; i < nr; i++)
			give(test, allocation[i]);
		/* It may take as many times as there are owners to ask for. */
		for (i = 0; i <= nr; i++)
			scrub_background(ctx);
		KUNIT_EXPECT_EQ_MSG(test, scrubbed(test), GIB, "%u others", nr);
		client = open(test, 1);
	}
}

static void bytes_of_a_strict_client_go_with_it(struct kunit *test)
{
	struct flexmem_client *client = open_strict(test, 1);
	struct ctx *ctx = test->priv;

	alloc(test, client, GIB);
	alloc(test, open(test, 1), 128);
	scrubbed(test);
	close_client(client);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB);
}

static void background_goes_on_after_an_error(struct kunit *test)
{
	struct flexmem_region *region = make_mixed(test);
	struct ctx *ctx = test->priv;

	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 0);
	KUNIT_EXPECT_EQ(test, first_block(region)->bytes_of, FLEXMEM_MIXED);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 0);
	KUNIT_EXPECT_TRUE(test,
			  delayed_work_pending(&ctx->table->scrub_work));
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, first_block(region)->bytes_of, FLEXMEM_CLEAN);
}

/* Changes the block that is being scrubbed, the first time. */
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
	KUNIT_EXPECT_EQ(test, block->block->bytes_of, FLEXMEM_MIXED);
}

/* Takes a part and gives it back: then it looks as if nothing had happened. */
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

static void block_that_loses_a_part_meanwhile_stays_dirty(struct kunit *test)
{
	struct flexmem_region *region = make_mixed(test);
	struct ctx *ctx = test->priv;

	ctx->fake->during_scrub_arg = test;
	ctx->fake->during_scrub = take_a_part;
	fake_device_forget(ctx->fake);
	scrub_background(ctx);
	/* Given up after the piece under way. */
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB);
	KUNIT_EXPECT_EQ(test, first_block(region)->bytes_of, FLEXMEM_MIXED);
	KUNIT_EXPECT_EQ(test, second_block(region)->bytes_of, FLEXMEM_MIXED);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), 2 * GIB - 4096);
	KUNIT_EXPECT_EQ(test, first_block(region)->bytes_of, FLEXMEM_MIXED);
	KUNIT_EXPECT_EQ(test, second_block(region)->bytes_of, FLEXMEM_CLEAN);
}

static void block_that_is_taken_and_given_meanwhile_stays_dirty(struct kunit *test)
{
	struct flexmem_region *region = make_mixed(test);
	struct ctx *ctx = test->priv;

	ctx->fake->during_scrub_arg = test;
	ctx->fake->during_scrub = take_and_give;
	fake_device_forget(ctx->fake);
	/* The free may have asked for the second time itself. */
	scrub_background(ctx);
	scrub_background(ctx);
	KUNIT_EXPECT_EQ(test, scrubbed(test), GIB + 2 * GIB);
	KUNIT_EXPECT_EQ(test, first_block(region)->bytes_of, FLEXMEM_CLEAN);
}

/* Holds a scrub up until the test lets it go on. */
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
 * An idle user comes back while its bytes are scrubbed: it need not scrub, but
 * must not write before the scrub is over, which would wipe it out.
 */
static void owner_waits_for_the_scrub_of_its_bytes(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_account *user = client->account->user;
	struct ctx *ctx = test->priv;
	struct taker taker = { .ctx = ctx };
	struct gate gate = { .ctx = ctx };
	struct task_struct *task;
	unsigned long early = 1;

	alloc(test, client, GIB);
	alloc(test, open(test, 2), 128);
	close_client(client);
	make_idle(user);
	taker.client = open(test, 1);
	/* As if it had not come back yet when the background looks. */
	user->clients--;
	init_completion(&gate.reached);
	init_completion(&gate.open);
	init_completion(&taker.done);
	ctx->fake->during_scrub_arg = &gate;
	ctx->fake->during_scrub = wait_at_gate;
	mod_delayed_work(system_unbound_wq, &ctx->table->scrub_work, 0);
	wait_for_completion(&gate.reached);
	user->clients++;

	task = kthread_run(take, &taker, "flexmem_kunit");
	if (!IS_ERR(task))
		early = wait_for_completion_timeout(&taker.done, HZ / 5);
	complete(&gate.open);
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	wait_for_completion(&taker.done);
	KUNIT_EXPECT_EQ(test, early, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, taker.allocation);
	KUNIT_EXPECT_EQ(test, taker.allocation->block->start, 0);
	flexmem_client_release(taker.client, taker.allocation);
}

/* Everything at random; whose bytes are where is looked at all the time. */

#define RANDOM_OPS 4000
#define RANDOM_CLIENTS 6
#define RANDOM_LIVE 40

struct random_run {
	struct rnd_state rnd;
	struct flexmem_client *client[RANDOM_CLIENTS];
	struct flexmem_allocation *live[RANDOM_LIVE];
	unsigned int failures;
};

static void random_alloc(struct kunit *test, struct random_run *run,
			 struct flexmem_allocation **live, u32 roll)
{
	struct flexmem_client *client = run->client[roll % RANDOM_CLIENTS];
	u64 size = BIT_ULL(7 + (roll >> 4) % 24) + 128 * ((roll >> 10) % 64);
	u32 flags = roll & BIT(20) ? FLEXMEM_ALLOC_ZEROED : 0;
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	u8 value = value_of(client);

	if (roll >> 21 & 1 && roll >> 22 & 1 && roll >> 23 & 1)
		fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	allocation = try(ctx, client, size, flags);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 0, 0);
	if (IS_ERR(allocation)) {
		KUNIT_ASSERT_EQ(test, PTR_ERR(allocation), -EIO);
		run->failures++;
		return;
	}
	KUNIT_ASSERT_TRUE(test, holds_own(ctx, allocation, flags ? 0 : value));
	flexmem_client_publish(client, allocation);
	fake_data_fill(ctx->fake, &allocation->region->mem,
		       allocation->block->start, size, value);
	*live = allocation;
}

static void random_reopen(struct kunit *test, struct random_run *run, u32 roll)
{
	unsigned int at = roll % RANDOM_CLIENTS, i;
	struct flexmem_client *client = run->client[at];
	struct flexmem_account *user = client->account->user;

	for (i = 0; i < RANDOM_LIVE; i++)
		if (run->live[i] && run->live[i]->owner == client->account)
			run->live[i] = NULL;
	close_client(client);
	if (roll & BIT(10) && !user->clients)
		make_idle(user);
	if (roll & BIT(11))
		scrub_background(test->priv);
	run->client[at] = at % 2 ? open_strict(test, at / 2) :
				   open(test, at / 2);
}

static void nobody_sees_the_bytes_of_others(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct random_run *run;
	unsigned int op, nr;
	const char *wrong;
	u64 bytes;

	run = kunit_kzalloc(test, sizeof(*run), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, run);
	prandom_seed_state(&run->rnd, fake_seed());
	for (nr = 0; nr < RANDOM_CLIENTS; nr++)
		run->client[nr] = nr % 2 ? open_strict(test, nr / 2) :
					   open(test, nr / 2);
	for (op = 0; op < RANDOM_OPS; op++) {
		u32 roll = prandom_u32_state(&run->rnd);
		u32 what = prandom_u32_state(&run->rnd);
		struct flexmem_allocation **live;

		live = &run->live[(roll >> 24) % RANDOM_LIVE];
		if (what % 200 == 0) {
			random_reopen(test, run, roll);
		} else if (what % 200 == 1) {
			KUNIT_ASSERT_EQ(test, 0,
					flexmem_table_trim(ctx->table, false, &nr,
							   &bytes));
		} else if (what % 200 < 6) {
			scrub_background(ctx);
		} else if (*live) {
			give(test, *live);
			*live = NULL;
		} else {
			random_alloc(test, run, live, roll);
		}
		wrong = fake_table_check(ctx->table);
		KUNIT_ASSERT_NULL_MSG(test, wrong, "operation %u: %s", op,
				      wrong);
	}
	kunit_info(test, "seed=%u: %u operations, %u scrubs failed, %llu bytes scrubbed, %u scrubs",
		   fake_seed(), op, run->failures, ctx->fake->scrubbed,
		   ctx->fake->calls[FAKE_SCRUB]);
	KUNIT_EXPECT_GT(test, run->failures, 0);
}

static struct kunit_case scrub_cases[] = {
	KUNIT_CASE(region_is_scrubbed_before_it_has_a_slot),
	KUNIT_CASE(region_that_cannot_be_scrubbed_is_given_back),
	KUNIT_CASE(region_acquired_again_is_scrubbed_again),
	KUNIT_CASE(same_owner_pays_nothing),
	KUNIT_CASE(another_owner_scrubs_what_it_gets),
	KUNIT_CASE(only_what_is_dirty_is_scrubbed),
	KUNIT_CASE(long_ranges_are_scrubbed_in_pieces),
	KUNIT_CASE(strict_client_is_an_owner_of_its_own),
	KUNIT_CASE(strict_comes_before_the_first_allocation),
	KUNIT_CASE(zeroed_is_zero),
	KUNIT_CASE(device_that_cannot_scrub_is_not_asked),
	KUNIT_CASE(what_cannot_be_scrubbed_is_quarantined),
	KUNIT_CASE(trim_repairs_what_is_quarantined),
	KUNIT_CASE(region_with_quarantined_bytes_is_not_trimmed),
	KUNIT_CASE(background_repairs_what_is_quarantined),
	KUNIT_CASE(dead_firmware_costs_one_timeout),
	KUNIT_CASE(quarantined_block_is_tried_in_pieces),
	KUNIT_CASE(quarantined_block_may_be_taken_between_pieces),
	KUNIT_CASE(who_was_killed_gives_the_block_back_as_it_was),
	KUNIT_CASE(mixed_block_is_scrubbed),
	KUNIT_CASE(mixed_block_is_scrubbed_unasked),
	KUNIT_CASE(mixed_block_is_scrubbed_by_who_cannot_wait),
	KUNIT_CASE(bytes_of_who_is_there_are_left),
	KUNIT_CASE(bytes_of_an_idle_user_are_scrubbed),
	KUNIT_CASE(idle_user_is_found_beside_others),
	KUNIT_CASE(bytes_of_a_strict_client_go_with_it),
	KUNIT_CASE(background_goes_on_after_an_error),
	KUNIT_CASE(block_that_loses_a_part_meanwhile_stays_dirty),
	KUNIT_CASE(block_that_is_taken_and_given_meanwhile_stays_dirty),
	KUNIT_CASE(owner_waits_for_the_scrub_of_its_bytes),
	KUNIT_CASE(nobody_sees_the_bytes_of_others),
	{}
};

static struct kunit_suite scrub_suite = {
	.name = "flexmem_scrub",
	.init = scrub_test_init,
	.test_cases = scrub_cases,
};

kunit_test_suite(scrub_suite);
