// SPDX-License-Identifier: GPL-2.0
/*
 * Placement after a refusal: regions are acquired again when there is new
 * capacity, or when the firmware answers again. Also tests the callers that
 * wait for the firmware.
 */

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "placements.h"

static void recovers_after_a_free(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 1, PLENTY);
	struct fake_block *block;

	expect_tensor(test, ctx, 6 * GIB, 0, 0);
	block = expect_at(test, ctx, 6 * GIB, false, 0, 6 * GIB);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_SLOTS, 0, 0,
		      12 * GIB);
	fake_free(block);
	expect_tensor(test, ctx, 6 * GIB, 0, 6 * GIB);
}

static void recovers_from_fragmentation(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 1);
	struct fake_block *block[6];
	unsigned int i;

	for (i = 0; i < 6; i++)
		block[i] = expect_at(test, ctx, 2 * GIB, false, 0,
				     i * 2 * GIB);
	for (i = 0; i < 6; i += 2)
		fake_free(block[i]);
	expect_reason(test, ctx, 4 * GIB, false, FLEXMEM_REASON_FRAGMENTATION,
		      6 * GIB, 2 * GIB, 12 * GIB);
	for (i = 1; i < 6; i += 2)
		fake_free(block[i]);
	expect_tensor(test, ctx, 12 * GIB, 0, 0);
}

static void recovers_with_new_capacity(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 12 * GIB);

	expect_tensor(test, ctx, 12 * GIB, 0, 0);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_CAPACITY, 0, 0,
		      12 * GIB);
	ctx->fake->capacity = 24 * GIB;
	KUNIT_ASSERT_EQ(test, 0, flexmem_table_new_capacity(ctx->table));
	expect_tensor(test, ctx, 12 * GIB, 1, 0);
}

/*
 * If the capacity could not be read, the next caller that needs a region reads
 * it.
 */
static void unknown_capacity_is_asked_for_again(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 4 * GIB);

	ctx->fake->capacity = SZ_1M;
	KUNIT_ASSERT_EQ(test, 0, flexmem_table_new_capacity(ctx->table));
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_REGION_SIZE, 0, 0,
		      0);
	ctx->fake->capacity = 4 * GIB;
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 2, -EIO);
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), -EIO);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, 128, false)), -EIO);
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_NONE);
	expect_tensor(test, ctx, 128, 0, 0);
	expect_tensor(test, ctx, 128, 0, 128);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_CAPACITY], 4);
}

/*
 * The table is exhausted. Then the capacity grows, but cannot be read. The next
 * request must get a new region.
 */
static void unknown_capacity_reopens(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 4 * GIB);

	expect_tensor(test, ctx, 4 * GIB, 0, 0);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_CAPACITY, 0, 0,
		      4 * GIB);
	ctx->fake->capacity = 12 * GIB;
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), -EIO);
	expect_tensor(test, ctx, 8 * GIB, 1, 0);
}

/*
 * With an unknown capacity a new region is tried first, before the existing one
 * is used.
 */
static void region_is_acquired_if_the_capacity_is_unknown(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 8,
				    12 * GIB);

	expect_tensor(test, ctx, 128, 0, 0);
	expect_tensor(test, ctx, 128, 0, 128);
	ctx->fake->capacity = 24 * GIB;
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), -EIO);
	expect_tensor(test, ctx, 128, 1, 0);
}

/* If the firmware is busy the capacity is read later. */
static void new_capacity_does_not_wait(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 3 * GIB);
	int rc;

	ctx->fake->capacity = 4 * GIB;
	mutex_lock(&ctx->table->acquire_lock);
	rc = flexmem_table_new_capacity(ctx->table);
	mutex_unlock(&ctx->table->acquire_lock);
	KUNIT_EXPECT_EQ(test, rc, 0);
	expect_log(test, ctx, "");
	expect_tensor(test, ctx, 128, 0, 0);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_CAPACITY], 1);
}

static void allocation_that_fits_asks_for_no_capacity(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 1);

	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), -EIO);
	fake_device_forget(ctx->fake);
	expect_tensor(test, ctx, 128, 0, 0);
	expect_log(test, ctx, "");
}

static void nothing_is_placed_after_removal(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, PLENTY);

	expect_tensor(test, ctx, 128, 0, 0);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, 128, false)), -ENODEV);
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_NONE);
}

static void firmware_error_when_nothing_fits(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, PLENTY);

	expect_tensor(test, ctx, 12 * GIB, 0, 0);
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, 128, false)), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_NONE);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.free, 0);
	expect_tensor(test, ctx, 128, 1, 0);
}

static void firmware_error_is_hidden_if_a_region_has_room(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 8,
				    PLENTY);

	expect_tensor(test, ctx, 128, 0, 0);
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -EIO);
	expect_tensor(test, ctx, 128, 0, 128);
	fake_device_fail(ctx->fake, FAKE_SLOT_SET, 1, 1, -EIO);
	expect_tensor(test, ctx, 128, 0, 256);
	expect_tensor(test, ctx, 128, 1, 0);
}

static void fail_all(struct ctx *ctx, unsigned int times)
{
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, times, -ETIMEDOUT);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, times, -ETIMEDOUT);
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, times, -ETIMEDOUT);
}

static void dead_firmware_costs_two_timeouts(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 8,
				    PLENTY);
	struct flexmem_function *function = &ctx->table->function;

	expect_tensor(test, ctx, 128, 0, 0);
	fake_device_forget(ctx->fake);
	fail_all(ctx, 99);
	expect_tensor(test, ctx, 128, 0, 128);
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_error(function));
	expect_tensor(test, ctx, 128, 0, 256);
	KUNIT_EXPECT_TRUE(test, flexmem_function_is_unresponsive(function));
	/* The existing regions have room, so no command is sent. */
	expect_tensor(test, ctx, 128, 0, 384);
	expect_tensor(test, ctx, 128, 0, 512);
	expect_log(test, ctx, "acquire 12G ETIMEDOUT, release 12G ETIMEDOUT");
	/*
	 * A caller that needs a region waits for a probe, and fails if the
	 * probe does.
	 */
	function->work_ms = 1;
	mod_delayed_work(function->worker, &function->work, 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, 12 * GIB, false)), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_ACQUIRE], 0);

	/*
	 * The worker probes the firmware, which answers again. From now on
	 * regions can be acquired.
	 */
	mutex_lock(&ctx->table->acquire_lock);
	fail_all(ctx, 0);
	mutex_unlock(&ctx->table->acquire_lock);
	while (flexmem_function_wait(function))
		;
	expect_tensor(test, ctx, 128, 1, 0);
	expect_tensor(test, ctx, 128, 2, 0);
}

static void limit_and_error(struct kunit *test, int rc)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 8,
				    PLENTY);

	expect_tensor(test, ctx, 12 * GIB, 0, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(fake_table_acquire(ctx->table, false,
							   0)));
	fake_table_account(ctx->table)->parent->limit[FLEXMEM_RESOURCE_REGIONS] =
		1;
	flexmem_table_outdate(ctx->table);
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 1, rc);
	KUNIT_EXPECT_EQ(test, rc, PTR_ERR(try(ctx, 128, false)));
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_NONE);
}

static void timeout_has_no_reason(struct kunit *test)
{
	limit_and_error(test, -ETIMEDOUT);
}

static void kernel_memory_has_no_reason(struct kunit *test)
{
	limit_and_error(test, -ENOMEM);
}

/*
 * A request that is larger than the largest region size fails at once, even if
 * a capacity may have changed.
 */
static void impossible_size_asks_for_no_capacity(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, PLENTY);

	flexmem_table_outdate(ctx->table);
	expect_reason(test, ctx, 12 * GIB + 128, false,
		      FLEXMEM_REASON_REGION_SIZE, 0, 0, 12 * GIB);
	expect_log(test, ctx, "");
	KUNIT_EXPECT_TRUE(test, ctx->table->domain[0].capacity_is_old);
	expect_tensor(test, ctx, 12 * GIB, 0, 0);
	KUNIT_EXPECT_FALSE(test, ctx->table->domain[0].capacity_is_old);
}

struct killed {
	struct flexmem_table *table;
	struct completion started;
	struct completion done;
	long rc;
};

static int allocate_until_killed(void *data)
{
	struct killed *killed = data;

	allow_signal(SIGKILL);
	complete(&killed->started);
	killed->rc = PTR_ERR(fake_alloc(killed->table, 128, FLEXMEM_ALIGN,
					false, NULL));
	complete_all(&killed->done);
	return 0;
}

static void waiting_ends_when_killed(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, PLENTY);
	struct killed killed = { .table = ctx->table };
	struct task_struct *task;
	bool in_time = false;

	init_completion(&killed.started);
	init_completion(&killed.done);
	mutex_lock(&ctx->table->acquire_lock);
	task = kthread_run(allocate_until_killed, &killed, "flexmem_kunit");
	if (!IS_ERR(task)) {
		wait_for_completion(&killed.started);
		msleep(20);
		send_sig(SIGKILL, task, 1);
		in_time = wait_for_completion_timeout(&killed.done, 60 * HZ);
	}
	mutex_unlock(&ctx->table->acquire_lock);
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	wait_for_completion(&killed.done);
	KUNIT_EXPECT_TRUE(test, in_time);
	KUNIT_EXPECT_EQ(test, killed.rc, -EINTR);
	expect_log(test, ctx, "");
}

static struct kunit_case placement_recovery_cases[] = {
	ORDER_CASE(recovers_after_a_free),
	ORDER_CASE(recovers_from_fragmentation),
	ORDER_CASE(recovers_with_new_capacity),
	ORDER_CASE(unknown_capacity_is_asked_for_again),
	ORDER_CASE(unknown_capacity_reopens),
	KUNIT_CASE(region_is_acquired_if_the_capacity_is_unknown),
	ORDER_CASE(new_capacity_does_not_wait),
	ORDER_CASE(allocation_that_fits_asks_for_no_capacity),
	ORDER_CASE(impossible_size_asks_for_no_capacity),
	ORDER_CASE(nothing_is_placed_after_removal),
	ORDER_CASE(firmware_error_when_nothing_fits),
	KUNIT_CASE(firmware_error_is_hidden_if_a_region_has_room),
	KUNIT_CASE(dead_firmware_costs_two_timeouts),
	KUNIT_CASE(timeout_has_no_reason),
	KUNIT_CASE(kernel_memory_has_no_reason),
	ORDER_CASE(waiting_ends_when_killed),
	{}
};

static struct kunit_suite placement_recovery_suite = {
	.name = "flexmem_placement_recovery",
	.test_cases = placement_recovery_cases,
};

kunit_test_suite(placement_recovery_suite);
