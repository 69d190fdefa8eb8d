// SPDX-License-Identifier: GPL-2.0
/* Device-virtual address spaces: suspend, reset, failed devices, and the end. */

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>

#include "spaces.h"

static void suspend(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	flexmem_function_suspend(&ctx->table->function);
}

static struct completion resumed;

static int resume_soon(void *data)
{
	struct ctx *ctx = data;

	while (!flexmem_function_is_suspended(&ctx->table->function))
		msleep(20);
	/* A suspend waits like this for the command under way. */
	mutex_lock(&ctx->table->acquire_lock);
	mutex_unlock(&ctx->table->acquire_lock);
	flexmem_table_resume(ctx->table);
	complete(&resumed);
	return 0;
}

static int reset_soon(void *data)
{
	struct ctx *ctx = data;

	while (!flexmem_function_is_suspended(&ctx->table->function))
		msleep(20);
	KUNIT_EXPECT_EQ(pages.test, flexmem_table_reset(ctx->table), 0);
	flexmem_table_resume(ctx->table);
	complete(&resumed);
	return 0;
}

static void fail_device(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	flexmem_function_fail(&ctx->table->function);
}

/* The device fails after the suspend, so the state does not show that. */
static void suspend_and_fail(struct kunit *test)
{
	suspend(test);
	fail_device(test);
}

static void reset_all(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, flexmem_table_reset(ctx->table), 0);
	flush_workqueue(ctx->table->function.worker);
}

/* The device suspends between two chunks. */
static void goes_on_after_a_suspend(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 3, 3);

	reserve(test, client, 3);
	pages.during = suspend;
	init_completion(&resumed);
	kthread_run(resume_soon, ctx, "flexmem_kunit");
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 3), 0);
	wait_for_completion(&resumed);
	KUNIT_EXPECT_EQ(test, pages.maps, 3);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 0);
	check_pages(test, client, 3);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
}

static void suspend_at_the_next(struct kunit *test)
{
	pages.during = suspend;
}

/*
 * There is no room for the second chunk, and the device suspends before the
 * first one can be unmapped. After the resume there is room.
 */
static void no_room_in_a_suspend(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 3, 3);

	reserve(test, client, 3);
	pages.during = suspend_at_the_next;
	fail(1, 1, -ENOSPC);
	init_completion(&resumed);
	kthread_run(resume_soon, ctx, "flexmem_kunit");
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 3), 0);
	wait_for_completion(&resumed);
	KUNIT_EXPECT_EQ(test, pages.maps, 4);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 0);
	check_pages(test, client, 3);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
}

static void a_reset_between_two_chunks(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 3, 3);

	reserve(test, client, 3);
	pages.during = suspend;
	init_completion(&resumed);
	kthread_run(reset_soon, ctx, "flexmem_kunit");
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 3), -EIO);
	wait_for_completion(&resumed);
	KUNIT_EXPECT_EQ(test, pages.maps, 1);
	KUNIT_EXPECT_EQ(test, nr_entries(), 0);
	KUNIT_EXPECT_EQ(test, free_at(test, client, START), 0);
}

static struct flexmem_client *open_one(struct kunit *test,
				       struct flexmem_client *client)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0,
			flexmem_client_init(client, ctx->table, fake_uid(3),
					    fake_cgroup(3), NULL));
	return client;
}

/* Allocates, reserves and binds. Returns a hash of all addresses. */
static u64 deploy(struct kunit *test, struct flexmem_client *client)
{
	struct flexmem_address address;
	unsigned int i;
	u64 hash = 0;

	for (i = 1; i < 6; i++) {
		u32 handle = alloc_pages_in(test, client, 2 * i, i);
		struct flexmem_allocation *allocation =
			flexmem_client_allocation(client, handle);
		int page = reserve(test, client, 2 * i);

		KUNIT_EXPECT_EQ(test, 0,
				bind_pages(test, client, handle, page, 0, 2 * i));
		address = flexmem_allocation_address(allocation);
		hash = hash * 31 + address.region_id + address.offset + page;
		flexmem_allocation_put(allocation);
	}
	return hash;
}

static void close_gives_all_back(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client client;
	u64 first, space;

	first = deploy(test, open_one(test, &client));
	space = flexmem_client_space(&client);
	check_pages(test, &client, 30);
	flexmem_client_fini(&client);
	KUNIT_EXPECT_EQ(test, flexmem_client_space(&client), 0);
	KUNIT_EXPECT_EQ(test, nr_entries(), 0);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 1);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	KUNIT_EXPECT_EQ(test, deploy(test, open_one(test, &client)), first);
	KUNIT_EXPECT_NE(test, flexmem_client_space(&client), space);
	flexmem_client_fini(&client);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	check_breach(test);
}

/* If nothing is bound, close() does not wait for the worker. */
static void close_without_bindings(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client client;
	u32 handle;

	open_one(test, &client);
	handle = alloc_pages_in(test, &client, 1, 1);
	KUNIT_EXPECT_EQ(test, reserve(test, &client, 1), 0);
	KUNIT_EXPECT_EQ(test, bind_pages(test, &client, handle, 0, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, unbind(test, &client, 0), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&ctx->table->function.vms));
	pages.unmaps = 0;
	mutex_lock(&ctx->table->acquire_lock);
	flexmem_client_fini(&client);
	mutex_unlock(&ctx->table->acquire_lock);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 0);
}

static void retry(struct ctx *ctx)
{
	mutex_lock(&ctx->table->acquire_lock);
	flexmem_function_vm_retry(&ctx->table->function);
	mutex_unlock(&ctx->table->acquire_lock);
	flush_workqueue(ctx->table->function.worker);
}

static bool is_pending(struct ctx *ctx)
{
	bool pending;

	mutex_lock(&ctx->table->acquire_lock);
	pending = flexmem_function_vm_is_pending(&ctx->table->function);
	mutex_unlock(&ctx->table->acquire_lock);
	return pending;
}

/* Closes a client while the firmware refuses to unmap its space. */
static void close_in_vain(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client client;
	unsigned int entries;
	u64 used;

	deploy(test, open_one(test, &client));
	entries = nr_entries();
	used = used_bytes(ctx);
	fail(0, 1, -EIO);
	flexmem_client_fini(&client);
	KUNIT_EXPECT_EQ(test, nr_entries(), entries);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), used);
	KUNIT_EXPECT_TRUE(test, is_pending(ctx));
}

static void close_waits_for_the_firmware(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;

	close_in_vain(test);
	/* The worker retries the unmapping without a limit. */
	fail(0, 20, -EIO);
	for (i = 0; i < 20; i++)
		retry(ctx);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 30 * page_of(test));
	retry(ctx);
	KUNIT_EXPECT_EQ(test, nr_entries(), 0);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	KUNIT_EXPECT_FALSE(test, is_pending(ctx));
	check_breach(test);
}

static void close_while_suspended(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client client;

	deploy(test, open_one(test, &client));
	flexmem_table_suspend(ctx->table);
	flexmem_client_fini(&client);
	retry(ctx);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 0);
	flexmem_table_resume(ctx->table);
	retry(ctx);
	KUNIT_EXPECT_EQ(test, nr_entries(), 0);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
}

static void close_many_in_vain(struct kunit *test, unsigned int nr)
{
	struct flexmem_client client;

	for (; nr; nr--) {
		deploy(test, open_one(test, &client));
		fail(0, 1, -EIO);
		flexmem_client_fini(&client);
	}
	pages.unmaps = 0;
}

/*
 * The worker unmaps some closed spaces, then others, without a delay. The
 * firmware refuses a release. Only the last run of the worker retries it.
 */
static void many_closed_spaces_wait_for_no_delay(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_function *function = &ctx->table->function;
	struct flexmem_client client;
	unsigned int nr, releases;
	u64 bytes;

	function->work_ms = INT_MAX;
	deploy(test, open_one(test, &client));
	flexmem_client_fini(&client);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 99, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	close_many_in_vain(test, 40);
	releases = ctx->fake->calls[FAKE_RELEASE];
	flush_delayed_work(&function->work);
	/*
	 * Waits for what is queued, but for nothing that has a delay. The
	 * second run queues the third one.
	 */
	flush_workqueue(function->worker);
	flush_workqueue(function->worker);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 40);
	KUNIT_EXPECT_EQ(test, nr_entries(), 0);
	KUNIT_EXPECT_FALSE(test, is_pending(ctx));
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], releases + 1);
	KUNIT_EXPECT_EQ(test, function->work_tries, 1);
}

/* TRIM unmaps some closed spaces, and then the worker the others. */
static void trim_leaves_spaces_to_the_worker(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_function *function = &ctx->table->function;
	unsigned int nr;
	u64 bytes;

	function->work_ms = INT_MAX;
	close_many_in_vain(test, 20);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	flush_workqueue(function->worker);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 20);
	KUNIT_EXPECT_FALSE(test, is_pending(ctx));
}

/* A reset ends spaces that could not be unmapped, and unmaps all others. */
static void reset_unmaps(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 2, 1);

	reserve(test, client, 4);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 1), 0);
	close_in_vain(test);
	pages.unmaps = 0;
	KUNIT_EXPECT_EQ(test, flexmem_table_reset(ctx->table), 0);
	flush_workqueue(ctx->table->function.worker);
	KUNIT_EXPECT_FALSE(test, is_pending(ctx));
	KUNIT_EXPECT_TRUE(test, list_empty(&ctx->table->function.vms));
	KUNIT_EXPECT_EQ(test, pages.unmaps, 0);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 1, 1, 1), -EIO);
	KUNIT_EXPECT_EQ(test, pages.maps, 16);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
	KUNIT_EXPECT_EQ(test, fake_client_free(client, handle), 0);
	handle = alloc_pages_in(test, client, 1, 1);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 1), 0);
	check_pages(test, client, 1);
}

/* One binding was lost in a reset. The other one was made after the reset. */
static void removal_after_a_reset(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 lost = alloc_pages_in(test, client, 1, 1), handle;

	reserve(test, client, 2);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, lost, 0, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, flexmem_table_reset(ctx->table), 0);
	handle = alloc_pages_in(test, client, 1, 1);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 1, 0, 1), 0);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, nr_entries(), 0);
}

/*
 * Checks a client whose device has failed during a command about page 0. Until
 * a reset the device gets no command, and the client keeps its memory.
 */
static void check_failed(struct kunit *test, u32 handle)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	unsigned int calls = pages.maps + pages.unmaps;
	u64 used = used_bytes(ctx);

	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), -EIO);
	KUNIT_EXPECT_EQ(test, free_at(test, client, START), -EBUSY);
	KUNIT_EXPECT_FALSE(test, is_bound(test, client, 0));
	KUNIT_EXPECT_EQ(test, fake_client_free(client, handle), 0);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), used);
	KUNIT_EXPECT_EQ(test, pages.maps + pages.unmaps, calls);
	reset_all(test);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
	KUNIT_EXPECT_EQ(test, free_at(test, client, START), 0);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], 0);
}

/* A VA_BIND fails, and bytes may still move until the device is reset. */
static void a_failed_device_keeps_what_may_be_mapped(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 3, 3);

	reserve(test, client, 3);
	fail(1, 1, -ENOTRECOVERABLE);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 3), -EIO);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 0);
	KUNIT_EXPECT_EQ(test, nr_entries(), 2);
	check_failed(test, handle);

	handle = alloc_pages_in(test, client, 3, 3);
	reserve(test, client, 3);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 3), 0);
	fail(0, 1, -ENOTRECOVERABLE);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), -EIO);
	KUNIT_EXPECT_EQ(test, nr_entries(), 3);
	check_failed(test, handle);
}

/* The device is suspended between two chunks, and fails in that time. */
static void fails_in_a_suspend(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 3, 3);

	reserve(test, client, 3);
	pages.during = suspend_and_fail;
	init_completion(&resumed);
	kthread_run(resume_soon, ctx, "flexmem_kunit");
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 3), -EIO);
	wait_for_completion(&resumed);
	KUNIT_EXPECT_EQ(test, pages.maps, 1);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 0);
	check_failed(test, handle);
}

/* The memory of a closed client waits for the reset of its device. */
static void check_closed_on_a_failed_device(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int unmaps = pages.unmaps;

	retry(ctx);
	KUNIT_EXPECT_EQ(test, pages.unmaps, unmaps);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 30 * page_of(test));
	KUNIT_EXPECT_TRUE(test, is_pending(ctx));
	reset_all(test);
	KUNIT_EXPECT_EQ(test, pages.unmaps, unmaps);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	KUNIT_EXPECT_FALSE(test, is_pending(ctx));
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], 0);
}

static void close_on_a_failed_device(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client client;

	deploy(test, open_one(test, &client));
	fail(0, 1, -ENOTRECOVERABLE);
	flexmem_client_fini(&client);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 1);
	check_closed_on_a_failed_device(test);

	/* The device fails before close() begins. */
	deploy(test, open_one(test, &client));
	fail_device(test);
	flexmem_client_fini(&client);
	check_closed_on_a_failed_device(test);

	/* The device fails after close(), while it is suspended. */
	deploy(test, open_one(test, &client));
	flexmem_table_suspend(ctx->table);
	flexmem_client_fini(&client);
	fail_device(test);
	retry(ctx);
	flexmem_table_resume(ctx->table);
	check_closed_on_a_failed_device(test);
}

/*
 * Two clients have spaces when their device is removed. The device fails during
 * the first command. So it gets no further command, and no memory is released.
 */
static void remove_failing(struct kunit *test, int rc,
			   void (*during)(struct kunit *test))
{
	struct ctx *ctx = test->priv;
	struct flexmem_client client;

	deploy(test, open_one(test, &client));
	deploy(test, ctx->client);
	fail(0, !!rc, rc);
	pages.during = during;
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 1);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], 0);
	flexmem_client_fini(&client);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 1);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], 0);
	fake_device_reset(ctx->fake);
}

static void removal_of_a_failing_device(struct kunit *test)
{
	remove_failing(test, -ENOTRECOVERABLE, NULL);
}

/* The command succeeds, but the driver reports a failure while it runs. */
static void removal_learns_of_a_failure(struct kunit *test)
{
	remove_failing(test, 0, fail_device);
}

static void removal_unmaps(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client client;

	deploy(test, open_one(test, &client));
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, nr_entries(), 0);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 1);
	KUNIT_EXPECT_EQ(test, unbind(test, &client, 0), -ENODEV);
	flexmem_client_fini(&client);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 1);
}

static void has_no_wish(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, ctx->table->accounts.gauge.nr_wishes, 0);
}

/* While the firmware unmaps the space, no other file is asked for memory. */
static void close_withdraws_a_wish_first(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_accounts *accounts = &ctx->table->accounts;
	struct flexmem_client client;

	deploy(test, open_one(test, &client));
	spin_lock(&accounts->lock);
	flexmem_gauge_wish(&accounts->gauge, &client.listener,
			   &accounts->gauge.wishes, GIB);
	KUNIT_EXPECT_EQ(test, accounts->gauge.nr_wishes, 1);
	spin_unlock(&accounts->lock);
	pages.during = has_no_wish;
	flexmem_client_fini(&client);
	KUNIT_EXPECT_NULL(test, pages.during);
}

/* Memory that may be mapped is not released. */
static void removal_in_vain(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client client;

	deploy(test, open_one(test, &client));
	close_in_vain(test);
	fail(0, 1, -EIO);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], 0);
	KUNIT_EXPECT_FALSE(test, is_pending(ctx));
	flexmem_client_fini(&client);
	fake_device_reset(ctx->fake);
}

static void removal_while_suspended(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client client;

	deploy(test, open_one(test, &client));
	flexmem_table_suspend(ctx->table);
	fake_table_remove(ctx->table);
	flexmem_client_fini(&client);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 0);
	fake_device_reset(ctx->fake);
}

static struct kunit_case space_end_cases[] = {
	KUNIT_CASE(goes_on_after_a_suspend),
	KUNIT_CASE(no_room_in_a_suspend),
	KUNIT_CASE(a_reset_between_two_chunks),
	KUNIT_CASE(close_gives_all_back),
	KUNIT_CASE(close_without_bindings),
	KUNIT_CASE(close_waits_for_the_firmware),
	KUNIT_CASE(close_while_suspended),
	KUNIT_CASE(many_closed_spaces_wait_for_no_delay),
	KUNIT_CASE(trim_leaves_spaces_to_the_worker),
	KUNIT_CASE(reset_unmaps),
	KUNIT_CASE(removal_after_a_reset),
	KUNIT_CASE(a_failed_device_keeps_what_may_be_mapped),
	KUNIT_CASE(fails_in_a_suspend),
	KUNIT_CASE(close_on_a_failed_device),
	KUNIT_CASE(removal_of_a_failing_device),
	KUNIT_CASE(removal_learns_of_a_failure),
	KUNIT_CASE(removal_unmaps),
	KUNIT_CASE(close_withdraws_a_wish_first),
	KUNIT_CASE(removal_in_vain),
	KUNIT_CASE(removal_while_suspended),
	{}
};

static struct kunit_suite space_end_suite = {
	.name = "flexmem_space_end",
	.init = large_pages,
	.test_cases = space_end_cases,
};

kunit_test_suite(space_end_suite);
