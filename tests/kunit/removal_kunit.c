// SPDX-License-Identifier: GPL-2.0
/*
 * Reset, removal and suspend of a device whose regions are in use.
 *
 * The device is a VF. Its regions of 12 GiB fill up one after the other.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/workqueue.h>

#include "alloc/client.h"
#include "checks.h"
#include "compat.h"
#include "fake_device.h"
#include "parts/snapshot.h"
#include "region/table.h"

#define PLENTY (1024 * GIB)

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_client *client;
	struct flexmem_request request;
	struct flexmem_view view;
};

static struct ctx *make(struct kunit *test, enum flexmem_acquire acquire,
			bool bare)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	settings.acquire = acquire;
	ctx->fake = fake_device_create(test, FLEXMEM_MODE_VF, 4, PLENTY);
	ctx->fake->bare = bare;
	ctx->table = fake_table_create(test, ctx->fake, &settings);
	ctx->client = fake_client_open(test, ctx->table, 1);
	return ctx;
}

static int removal_test_init(struct kunit *test)
{
	test->priv = make(test, FLEXMEM_ACQUIRE_LAZY, false);
	return 0;
}

static struct flexmem_allocation *try(struct ctx *ctx,
				      struct flexmem_client *client, u64 size)
{
	return fake_client_prepare(client, size, FLEXMEM_ALIGN,
				   FLEXMEM_ALLOC_MAPPABLE, &ctx->request);
}

static struct flexmem_allocation *alloc(struct kunit *test,
					struct flexmem_client *client, u64 size)
{
	struct flexmem_allocation *allocation = try(test->priv, client, size);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_publish(client, allocation);
	return allocation;
}

/* Frees by address. Returns the handle, or 0 if nothing is there. */
static u32 free_address(struct flexmem_client *client, u64 region_id,
			u64 offset)
{
	const struct flexmem_address address = {
		.region_id = region_id,
		.offset = offset,
	};
	struct flexmem_allocation *allocation;
	u32 handle;

	allocation = flexmem_client_detach_address(client, &address);
	if (IS_ERR(allocation))
		return 0;
	handle = allocation->handle;
	flexmem_client_release(client, allocation);
	return handle;
}

static bool is_lost(struct kunit *test, struct flexmem_client *client,
		    u32 handle)
{
	struct flexmem_lookup out = {};

	KUNIT_EXPECT_EQ(test, 0, flexmem_client_lookup(client, handle, &out));
	return out.out_flags & FLEXMEM_LOOKUP_LOST;
}

static const struct flexmem_snapshot *sums(struct ctx *ctx)
{
	flexmem_table_snapshot(ctx->table, NULL, &ctx->view);
	return &ctx->view.sum;
}

static void check(struct kunit *test, struct ctx *ctx)
{
	const char *wrong = fake_table_check(ctx->table);

	KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
}

static void reset(struct kunit *test, struct ctx *ctx)
{
	KUNIT_ASSERT_EQ(test, flexmem_table_reset(ctx->table), 0);
	check(test, ctx);
}

/* Makes a quarantined block: a scrub for another owner fails. */
static void quarantine(struct kunit *test, struct ctx *ctx, u64 size)
{
	struct flexmem_client *other = fake_client_open(test, ctx->table, 7);
	u32 handle = alloc(test, ctx->client, size)->handle;

	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, handle), 0);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, PTR_ERR(try(ctx, other, size)));
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, size);
}

/* Frees a handle while its bytes are in use. */
static struct flexmem_allocation *orphan(struct kunit *test, struct ctx *ctx,
					 u64 size)
{
	struct flexmem_allocation *allocation;
	u32 handle = alloc(test, ctx->client, size)->handle;

	allocation = flexmem_client_allocation(ctx->client, handle);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, handle), 0);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_orphaned, size);
	return allocation;
}

/* ---- reset ---- */

static void reset_forgets_everything(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *orphaned;
	u32 handle;

	quarantine(test, ctx, 4096);
	handle = alloc(test, ctx->client, GIB)->handle;
	orphaned = orphan(test, ctx, 2 * GIB);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_owned, GIB);
	fake_device_forget(ctx->fake);
	reset(test, ctx);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "quiesce, reset");
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_total, 0);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_owned, 0);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_orphaned, 0);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_quarantined, 0);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_resets, 1);
	KUNIT_EXPECT_EQ(test, ctx->client->account->used[FLEXMEM_RESOURCE_BYTES],
			0);
	/*
	 * A lost allocation's handle stays valid until its owner frees it. That
	 * of the orphaned one is charged until its last use ends.
	 */
	KUNIT_EXPECT_EQ(test,
			ctx->client->account->used[FLEXMEM_RESOURCE_HANDLES], 2);
	KUNIT_EXPECT_TRUE(test, is_lost(test, ctx->client, handle));
	/*
	 * Freeing the last block must free its region. KASAN and kmemleak would
	 * notice an error.
	 */
	flexmem_allocation_put(orphaned);
	check(test, ctx);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, handle), 0);
	KUNIT_EXPECT_EQ(test,
			ctx->client->account->used[FLEXMEM_RESOURCE_HANDLES], 0);
	check(test, ctx);
}

/* If quiesce() fails, the reset stops the programs. */
static void reset_goes_on_if_programs_cannot_be_stopped(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->client, GIB);
	fake_device_forget(ctx->fake);
	fake_device_fail(ctx->fake, FAKE_QUIESCE, 1, 1, -ETIMEDOUT);
	reset(test, ctx);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake),
			   "quiesce ETIMEDOUT, reset");
	alloc(test, ctx->client, GIB);
}

static void reset_without_memory_stops_nothing(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fake_device_forget(ctx->fake);
	reset(test, ctx);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "reset");
}

static void reset_of_an_empty_region_frees_it(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test,
				     fake_table_acquire(ctx->table, false, 0));
	quarantine(test, ctx, 128);
	reset(test, ctx);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_total, 0);
}

static void free_after_reset_frees_no_memory(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = fake_client_open(test, ctx->table, 2);
	struct flexmem_allocation *orphaned;
	u32 lost;

	lost = alloc(test, ctx->client, GIB)->handle;
	orphaned = orphan(test, ctx, GIB);
	reset(test, ctx);
	/* Another owner allocates in the same slot. */
	alloc(test, other, 3 * GIB);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_owned, 3 * GIB);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, lost), 0);
	check(test, ctx);
	flexmem_allocation_put(orphaned);
	check(test, ctx);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_owned, 3 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_free, 9 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_orphaned, 0);
	KUNIT_EXPECT_EQ(test, ctx->view.region[0].sequence, 1);
}

static void address_names_the_new_one_after_reset(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	u32 lost = alloc(test, ctx->client, GIB)->handle, new;
	u32 lost_too = alloc(test, ctx->client, GIB)->handle;

	reset(test, ctx);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), 0);
	new = alloc(test, ctx->client, GIB)->handle;
	KUNIT_EXPECT_NE(test, new, lost);
	/* The new allocation has the region id and offset of the lost one. */
	KUNIT_EXPECT_FALSE(test, is_lost(test, ctx->client, new));
	KUNIT_EXPECT_TRUE(test, is_lost(test, ctx->client, lost));
	KUNIT_EXPECT_NULL(test, checks_of_client(ctx->client));
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, GIB), 0);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), new);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, lost), 0);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, lost_too), 0);
}

static void expect_unmapped(struct kunit *test, struct flexmem_client *client,
			    u64 offset)
{
	KUNIT_EXPECT_EQ(test,
			PTR_ERR(flexmem_client_get_mapped(client, offset)),
			-ENOENT);
}

static void map_offset_names_the_new_one_after_reset(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *lost, *new;
	struct flexmem_block *found;
	u64 offset;

	alloc(test, ctx->client, 4096);
	lost = alloc(test, ctx->client, GIB);
	offset = flexmem_chunk_map_offset(lost->chunks[0]);
	found = flexmem_client_get_mapped(ctx->client, offset + 4096);
	KUNIT_EXPECT_PTR_EQ(test, found, lost->chunks[0]);
	flexmem_allocation_put(lost);
	expect_unmapped(test, ctx->client, offset + GIB);
	reset(test, ctx);
	expect_unmapped(test, ctx->client, offset);
	alloc(test, ctx->client, 4096);
	expect_unmapped(test, ctx->client, offset);
	new = alloc(test, ctx->client, GIB);
	KUNIT_EXPECT_EQ(test, flexmem_chunk_map_offset(new->chunks[0]),
			offset);
	found = flexmem_client_get_mapped(ctx->client, offset);
	KUNIT_EXPECT_PTR_EQ(test, found, new->chunks[0]);
	flexmem_allocation_put(new);
	/* Another file cannot map the memory. */
	expect_unmapped(test, fake_client_open(test, ctx->table, 1), offset);
	expect_unmapped(test, ctx->client, ~0ULL);
}

/*
 * The unhold of a region that a reset has lost does nothing, even if another
 * region has got its slot, and is held too.
 */
static void reset_ends_holds_and_counts_a_generation(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_slots *slots = &ctx->table->slots;
	struct flexmem_hold old, new;

	alloc(test, ctx->client, 128);
	old = flexmem_client_hold(ctx->client);
	KUNIT_ASSERT_EQ(test, old.slots, BIT_ULL(0));
	/* Not reset(): its snapshot would bring the account up to date. */
	KUNIT_ASSERT_EQ(test, flexmem_table_reset(ctx->table), 0);
	KUNIT_EXPECT_FALSE(test, flexmem_slots_are_held(slots, 0));
	KUNIT_EXPECT_GT(test, flexmem_slots_generation(slots), old.generation);

	alloc(test, fake_client_open(test, ctx->table, 1), 128);
	KUNIT_EXPECT_EQ(test, flexmem_client_hold(ctx->client).slots, 0);
	alloc(test, ctx->client, 128);
	new = flexmem_client_hold(ctx->client);
	KUNIT_EXPECT_EQ(test, new.slots, old.slots);
	flexmem_slots_unhold(slots, &old);
	KUNIT_EXPECT_TRUE(test, flexmem_slots_are_held(slots, 0));
	flexmem_slots_unhold(slots, &new);
	KUNIT_EXPECT_FALSE(test, flexmem_slots_are_held(slots, 0));
}

static void reset_unlocks_and_reads_the_capacity(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;

	for (i = 0; i < 4; i++)
		alloc(test, ctx->client, 12 * GIB);
	KUNIT_EXPECT_TRUE(test,
			  fake_exhausted(ctx->table, FLEXMEM_KIND_TENSOR));
	ctx->fake->capacity = 8 * GIB;
	reset(test, ctx);
	KUNIT_EXPECT_FALSE(test,
			   fake_exhausted(ctx->table, FLEXMEM_KIND_TENSOR));
	alloc(test, ctx->client, GIB);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_capacity, 8 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_total, 8 * GIB);
}

static void failed_reset_stops_everything_but_a_reset(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	u32 lost = alloc(test, ctx->client, GIB)->handle;
	unsigned int nr;
	u64 bytes;

	fake_device_fail(ctx->fake, FAKE_RESET, 1, 2, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, flexmem_table_reset(ctx->table), -ETIMEDOUT);
	fake_device_forget(ctx->fake);
	KUNIT_EXPECT_TRUE(test, is_lost(test, ctx->client, lost));
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, ctx->client, 128)), -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), 0);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "");
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, lost), 0);
	KUNIT_EXPECT_EQ(test, flexmem_table_reset(ctx->table), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_resets, 0);
	reset(test, ctx);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_resets, 1);
	alloc(test, ctx->client, 128);
}

static void fail_again(void *arg)
{
	struct ctx *ctx = arg;

	ctx->fake->during_reset = NULL;
	flexmem_function_fail(&ctx->table->function);
}

/*
 * The device fails again after the reset operation, but before flexmem has
 * finished the reset.
 */
static void failure_during_a_reset_is_not_lost(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	flexmem_function_fail(&ctx->table->function);
	ctx->fake->during_reset = fail_again;
	ctx->fake->during_reset_arg = ctx;
	KUNIT_EXPECT_EQ(test, flexmem_table_reset(ctx->table), -EIO);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, ctx->client, 128)), -EIO);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_resets, 0);
	reset(test, ctx);
	alloc(test, ctx->client, 128);
}

static void failure_during_a_reset_in_its_sleep_is_not_lost(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	flexmem_table_suspend(ctx->table);
	ctx->fake->during_reset = fail_again;
	ctx->fake->during_reset_arg = ctx;
	KUNIT_EXPECT_EQ(test, flexmem_table_reset(ctx->table), -EIO);
	flexmem_table_resume(ctx->table);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, ctx->client, 128)), -EIO);
	reset(test, ctx);
	alloc(test, ctx->client, 128);
}

static void reset_forgets_stranded_memory(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int nr;
	u64 bytes;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test,
				     fake_table_acquire(ctx->table, false, 0));
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	reset(test, ctx);
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
	fake_device_forget(ctx->fake);
	alloc(test, ctx->client, 128);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake),
			   "capacity, acquire 12G, set 0");
}

static void reset_acquires_anew_with_prealloc(struct kunit *test)
{
	struct ctx *ctx = make(test, FLEXMEM_ACQUIRE_PREALLOC, false);

	test->priv = ctx;
	KUNIT_ASSERT_EQ(test, fake_table_prealloc(ctx->table), 0);
	alloc(test, ctx->client, GIB);
	reset(test, ctx);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_total, 4 * 12 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_free, 4 * 12 * GIB);
}

static void reset_that_cannot_be(struct kunit *test)
{
	struct ctx *ctx = make(test, FLEXMEM_ACQUIRE_LAZY, true);
	u32 handle;

	test->priv = ctx;
	handle = alloc(test, ctx->client, GIB)->handle;
	KUNIT_EXPECT_EQ(test, flexmem_table_reset(ctx->table), -EOPNOTSUPP);
	KUNIT_EXPECT_FALSE(test, is_lost(test, ctx->client, handle));
}

static void reset_after_removal_does_nothing(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->client, GIB);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, flexmem_table_reset(ctx->table), -ENODEV);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RESET], 0);
}

/* The device is reset while a block is scrubbed for its new owner. */
static void lose_device(void *arg)
{
	struct kunit *test = arg;
	struct ctx *ctx = test->priv;

	ctx->fake->during_scrub = NULL;
	WRITE_ONCE(fake_table_region(ctx->table, 0)->lost, true);
}

static void scrub_of_a_lost_region_stops(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = fake_client_open(test, ctx->table, 2);
	struct flexmem_allocation *allocation;

	allocation = alloc(test, ctx->client, 4 * GIB);
	alloc(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, 0, fake_client_free(ctx->client, allocation->handle));
	fake_device_forget(ctx->fake);
	ctx->fake->during_scrub_arg = test;
	ctx->fake->during_scrub = lose_device;
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, other, 4 * GIB)), -EIO);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 1);
}

/* ---- removal ---- */

static void removal_with_all_kinds_of_blocks(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *orphaned;
	u32 handle;

	quarantine(test, ctx, 4096);
	handle = alloc(test, ctx->client, GIB)->handle;
	orphaned = orphan(test, ctx, GIB);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_total, 0);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_owned, 0);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_quarantined, 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, ctx->client, 128)), -ENODEV);
	flexmem_allocation_put(orphaned);
	KUNIT_EXPECT_TRUE(test, is_lost(test, ctx->client, handle));
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, handle), 0);
	check(test, ctx);
}

/* The device's driver resets the device later. The reset returns the memory. */
static void removal_keeps_what_programs_may_reach(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->client, GIB);
	fake_device_forget(ctx->fake);
	fake_device_fail(ctx->fake, FAKE_QUIESCE, 1, 1, -EIO);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_NULL(test, ctx->fake->breach);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "quiesce EIO");
	fake_device_reset(ctx->fake);
}

static void removal_undoes_what_was_lost(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	ctx->fake->replies_are_lost = true;
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, ctx->client, 128)), -ETIMEDOUT);
	fake_device_forget(ctx->fake);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake),
			   "quiesce, release 12G");
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

/*
 * Orphans: freed memory that is still in use stays occupied until the last user
 * puts its reference.
 */

static void orphan_keeps_its_address(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *orphaned = orphan(test, ctx, GIB);
	u32 handle = orphaned->handle;

	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, handle), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, GIB)->chunks[0]->start, GIB);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_orphaned, GIB);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_owned, GIB);
	check(test, ctx);
	flexmem_allocation_put(orphaned);
	check(test, ctx);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_orphaned, 0);
	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, GIB)->chunks[0]->start, 0);
}

/* ---- suspend and resume ---- */

struct waiter {
	struct ctx *ctx;
	struct flexmem_client *client;
	struct flexmem_allocation *allocation;
	struct completion done;
};

static int wait_for_memory(void *data)
{
	struct waiter *waiter = data;

	waiter->allocation = try(waiter->ctx, waiter->client, 12 * GIB);
	complete_all(&waiter->done);
	return 0;
}

/* Starts an allocation that waits for the suspended device. */
static void start_waiter(struct kunit *test, struct waiter *waiter)
{
	struct task_struct *task;

	init_completion(&waiter->done);
	task = kthread_run(wait_for_memory, waiter, "flexmem_kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	KUNIT_EXPECT_EQ(test, 0,
			wait_for_completion_timeout(&waiter->done, HZ / 5));
}

static void suspend(struct ctx *ctx)
{
	flexmem_table_suspend(ctx->table);
	ctx->fake->asleep = true;
}

static void resume(struct ctx *ctx)
{
	ctx->fake->asleep = false;
	flexmem_table_resume(ctx->table);
}

static void callers_wait_until_the_device_is_awake(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct waiter *waiter;

	waiter = kunit_kzalloc(test, sizeof(*waiter), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, waiter);
	waiter->ctx = ctx;
	waiter->client = ctx->client;
	alloc(test, ctx->client, 128);
	suspend(ctx);
	start_waiter(test, waiter);
	resume(ctx);
	wait_for_completion(&waiter->done);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, waiter->allocation);
	flexmem_client_release(ctx->client, waiter->allocation);
}

static void calls_without_the_device_do_not_wait(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	u32 handle = alloc(test, ctx->client, GIB)->handle;

	suspend(ctx);
	alloc(test, ctx->client, GIB);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, handle), 0);
	alloc(test, ctx->client, GIB);
	check(test, ctx);
	resume(ctx);
}

static void removal_ends_the_wait_for_a_device_asleep(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct waiter *waiter;

	waiter = kunit_kzalloc(test, sizeof(*waiter), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, waiter);
	waiter->ctx = ctx;
	waiter->client = ctx->client;
	suspend(ctx);
	start_waiter(test, waiter);
	fake_table_remove(ctx->table);
	wait_for_completion(&waiter->done);
	KUNIT_EXPECT_EQ(test, PTR_ERR(waiter->allocation), -ENODEV);
	fake_device_reset(ctx->fake);
}

/* The device's driver resets the device later. The reset returns the memory. */
static void removal_lets_a_device_sleep(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->client, GIB);
	suspend(ctx);
	fake_device_forget(ctx->fake);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_NULL(test, ctx->fake->breach);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "");
	fake_device_reset(ctx->fake);
}

static void background_sleeps_too(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = fake_client_open(test, ctx->table, 2);
	u32 a = alloc(test, ctx->client, GIB)->handle;
	u32 b = alloc(test, other, GIB)->handle;

	alloc(test, other, 128);
	suspend(ctx);
	fake_device_forget(ctx->fake);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, a), 0);
	KUNIT_EXPECT_EQ(test, fake_client_free(other, b), 0);
	mod_delayed_work(system_dfl_wq, &ctx->table->scrub_work, 0);
	flush_work(&ctx->table->scrub_work.work);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 0);
	/* flexmem asks for the new capacity after the resume. */
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), 0);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_CAPACITY], 0);
	resume(ctx);
	/* Runs the background work, if it has not run yet. */
	flush_delayed_work(&ctx->table->scrub_work);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SCRUB], 2);
}

static struct kunit_case removal_cases[] = {
	KUNIT_CASE(reset_forgets_everything),
	KUNIT_CASE(reset_goes_on_if_programs_cannot_be_stopped),
	KUNIT_CASE(reset_without_memory_stops_nothing),
	KUNIT_CASE(reset_of_an_empty_region_frees_it),
	KUNIT_CASE(free_after_reset_frees_no_memory),
	KUNIT_CASE(address_names_the_new_one_after_reset),
	KUNIT_CASE(map_offset_names_the_new_one_after_reset),
	KUNIT_CASE(reset_ends_holds_and_counts_a_generation),
	KUNIT_CASE(reset_unlocks_and_reads_the_capacity),
	KUNIT_CASE(failed_reset_stops_everything_but_a_reset),
	KUNIT_CASE(failure_during_a_reset_is_not_lost),
	KUNIT_CASE(failure_during_a_reset_in_its_sleep_is_not_lost),
	KUNIT_CASE(reset_forgets_stranded_memory),
	KUNIT_CASE(reset_acquires_anew_with_prealloc),
	KUNIT_CASE(reset_that_cannot_be),
	KUNIT_CASE(reset_after_removal_does_nothing),
	KUNIT_CASE(scrub_of_a_lost_region_stops),
	KUNIT_CASE(removal_with_all_kinds_of_blocks),
	KUNIT_CASE(removal_keeps_what_programs_may_reach),
	KUNIT_CASE(removal_undoes_what_was_lost),
	KUNIT_CASE(orphan_keeps_its_address),
	KUNIT_CASE(callers_wait_until_the_device_is_awake),
	KUNIT_CASE(calls_without_the_device_do_not_wait),
	KUNIT_CASE(removal_ends_the_wait_for_a_device_asleep),
	KUNIT_CASE(removal_lets_a_device_sleep),
	KUNIT_CASE(background_sleeps_too),
	{}
};

static struct kunit_suite removal_suite = {
	.name = "flexmem_removal",
	.init = removal_test_init,
	.test_cases = removal_cases,
};

kunit_test_suite(removal_suite);
