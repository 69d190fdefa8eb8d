// SPDX-License-Identifier: GPL-2.0
/*
 * How the worker's jobs end if callers are killed, the device is suspended or
 * reset, or the firmware does not answer. If a caller is killed while the
 * firmware works, the worker completes the job, but no client gets the result.
 */

#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/workqueue.h>

#include "checks.h"
#include "fake_device.h"
#include "parts/reservation.h"
#include "region/table.h"
#include "tenant/owner.h"

struct ctx {
	struct kunit *test;
	struct fake_device *fake;
	struct flexmem_table *table;
	int (*call)(struct ctx *ctx);
	struct task_struct *task;
	struct completion ready;
	struct completion started;
	struct completion done;
	struct completion asleep;
	unsigned int regions;
	u64 size;
	int rc;
};

static int job_test_init(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	ctx->test = test;
	ctx->fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, 64 * GIB);
	ctx->table = fake_table_create(test, ctx->fake, &settings);
	init_completion(&ctx->ready);
	init_completion(&ctx->started);
	init_completion(&ctx->done);
	init_completion(&ctx->asleep);
	ctx->size = GIB;
	test->priv = ctx;
	return 0;
}

static int call_alloc(struct ctx *ctx)
{
	return PTR_ERR_OR_ZERO(fake_alloc(ctx->table, ctx->size, FLEXMEM_ALIGN,
					  false, NULL));
}

static int call_trim(struct ctx *ctx)
{
	unsigned int regions;
	u64 bytes;

	int rc = flexmem_table_trim(ctx->table, &regions, &bytes);

	ctx->regions = regions;
	return rc;
}

static int call_reserve(struct ctx *ctx)
{
	enum flexmem_reason reason;
	struct flexmem_account *account;
	int rc;

	account = flexmem_owner_of_cgroup(&ctx->table->accounts,
					  fake_cgroup(1));
	if (!account)
		return -ENOMEM;
	rc = flexmem_reservation_set(ctx->table, account, 12 * GIB, 2, &reason);
	flexmem_owner_put(account);
	return rc;
}

static int caller(void *data)
{
	struct ctx *ctx = data;

	allow_signal(SIGKILL);
	complete(&ctx->ready);
	wait_for_completion(&ctx->started);
	ctx->rc = ctx->call(ctx);
	complete_all(&ctx->done);
	return 0;
}

static void start(struct kunit *test, struct ctx *ctx,
		  int (*call)(struct ctx *ctx))
{
	struct task_struct *task;

	ctx->call = call;
	task = kthread_run(caller, ctx, "flexmem_kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	ctx->task = task;
	/* From here on the task waits, and the test can kill it. */
	wait_for_completion(&ctx->ready);
	complete(&ctx->started);
}

/*
 * Kills the caller, and waits until the caller has returned. The fake device
 * calls this in the middle of a command, before it answers.
 */
static void kill_caller(void *arg)
{
	struct ctx *ctx = arg;

	if (completion_done(&ctx->done))
		return;
	send_sig(SIGKILL, ctx->task, 1);
	wait_for_completion(&ctx->done);
}

static unsigned int nr_regions(struct flexmem_table *table)
{
	unsigned int slot, nr = 0;

	for (slot = 0; slot < table->slots.nr; slot++)
		nr += !!fake_table_region(table, slot);
	return nr;
}

/*
 * Waits for the worker, and then compares the result of the job and the log of
 * the device.
 */
static void expect(struct kunit *test, int rc, unsigned int regions,
		   const char *log)
{
	struct ctx *ctx = test->priv;

	wait_for_completion(&ctx->done);
	flush_workqueue(ctx->table->function.worker);
	KUNIT_EXPECT_EQ(test, ctx->rc, rc);
	KUNIT_EXPECT_EQ(test, nr_regions(ctx->table), regions);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), log);
	KUNIT_EXPECT_STREQ(test, checks_of_table(ctx->table) ?: "", "");
	KUNIT_EXPECT_EQ(test, 0, fake_table_account(ctx->table)->used[0]);
	fake_device_forget(ctx->fake);
}

/*
 * The caller is killed during the command. The worker still completes the
 * region.
 */
static void killed_while_a_slot_is_set(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct fake_block *block;

	ctx->fake->during_set = kill_caller;
	ctx->fake->during_set_arg = ctx;
	start(test, ctx, call_alloc);
	expect(test, -EINTR, 1, "acquire 12G, set 0");

	/* The next caller gets the region, which is all free. */
	block = fake_alloc(ctx->table, 12 * GIB, FLEXMEM_ALIGN, false, NULL);
	KUNIT_EXPECT_FALSE(test, IS_ERR(block));
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "");
}

/*
 * A caller that was killed while it reserved regions leaves no region reserved.
 */
static void killed_while_it_reserves(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	ctx->fake->during_set = kill_caller;
	ctx->fake->during_set_arg = ctx;
	start(test, ctx, call_reserve);
	expect(test, -EINTR, 2,
	       "acquire 12G, set 0, acquire 12G, set 1");
	KUNIT_EXPECT_NULL(test, fake_table_region(ctx->table, 0)->reserved_for);
	KUNIT_EXPECT_NULL(test, fake_table_region(ctx->table, 1)->reserved_for);
	KUNIT_EXPECT_TRUE(test, list_empty(&ctx->table->reservations));
}

static void killed_while_a_slot_is_cleared(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_FALSE(test, IS_ERR(fake_table_acquire(ctx->table, false,
							   0)));
	KUNIT_ASSERT_FALSE(test, IS_ERR(fake_table_acquire(ctx->table, false,
							   0)));
	fake_device_forget(ctx->fake);
	ctx->fake->during_clear = kill_caller;
	ctx->fake->during_clear_arg = ctx;
	start(test, ctx, call_trim);
	expect(test, -EINTR, 0,
	       "clear 0, release 12G, clear 1, release 12G");
}

static void caller_killed_before_its_turn_asks_nothing(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	/* The test holds the lock, so the worker cannot begin the job. */
	mutex_lock(&ctx->table->acquire_lock);
	start(test, ctx, call_alloc);
	msleep(20);
	kill_caller(ctx);
	mutex_unlock(&ctx->table->acquire_lock);
	expect(test, -EINTR, 0, "");
}

/*
 * A job that waits behind another is dropped as soon as its caller is killed.
 */
static void killed_in_the_queue_leaves_nothing(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct ctx *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	refcount_t *refs = &fake_table_account(ctx->table)->refs;
	unsigned int before = refcount_read(refs);

	KUNIT_ASSERT_NOT_NULL(test, other);
	*other = *ctx;
	init_completion(&other->ready);
	init_completion(&other->started);
	init_completion(&other->done);
	mutex_lock(&ctx->table->acquire_lock);
	start(test, ctx, call_trim);
	msleep(20);
	start(test, other, call_alloc);
	while (refcount_read(refs) == before)
		msleep(20);
	kill_caller(other);
	KUNIT_EXPECT_EQ(test, other->rc, -EINTR);
	KUNIT_EXPECT_EQ(test, refcount_read(refs), before);
	mutex_unlock(&ctx->table->acquire_lock);
	expect(test, 0, 0, "");
}

static void waits_while_the_device_sleeps(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	mutex_lock(&ctx->table->acquire_lock);
	start(test, ctx, call_trim);
	msleep(20);
	/*
	 * This is what flexmem_table_suspend() does before it waits for the
	 * worker.
	 */
	flexmem_function_suspend(&ctx->table->function);
	mutex_unlock(&ctx->table->acquire_lock);
	msleep(20);
	KUNIT_EXPECT_FALSE(test, completion_done(&ctx->done));
	flexmem_table_resume(ctx->table);
	expect(test, 0, 0, "");
}

static int look_until_awake(void *data)
{
	struct ctx *ctx = data;

	complete(&ctx->started);
	while (flexmem_function_error(&ctx->table->function))
		msleep(20);
	ctx->size++;
	complete(&ctx->done);
	return 0;
}

/*
 * A caller that finds the device awake sees all writes that were made before
 * the resume, without a lock. TSan and KCSAN check this.
 */
static void writes_before_a_resume_are_seen_after_it(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	flexmem_table_suspend(ctx->table);
	kthread_run(look_until_awake, ctx, "flexmem_kunit");
	wait_for_completion(&ctx->started);
	msleep(20);
	ctx->size = 41;
	flexmem_table_resume(ctx->table);
	wait_for_completion(&ctx->done);
	KUNIT_EXPECT_EQ(test, ctx->size, 42);
}

static int reset_task(void *data)
{
	struct ctx *ctx = data;

	ctx->size = flexmem_table_reset(ctx->table);
	complete(&ctx->asleep);
	return 0;
}

/*
 * Starts a reset during a command, and waits up to 10 s until it has begun.
 */
static void begin_reset(void *arg)
{
	struct ctx *ctx = arg;
	unsigned int tries = 500;

	ctx->fake->during_clear = NULL;
	kthread_run(reset_task, ctx, "flexmem_kunit");
	while (!flexmem_function_error(&ctx->table->function) && tries--)
		msleep(20);
	KUNIT_EXPECT_TRUE_MSG(ctx->test,
			      flexmem_function_error(&ctx->table->function),
			      "the reset has not begun within 10 s");
}

static void reset_cuts_in(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_FALSE(test, IS_ERR(fake_table_acquire(ctx->table, false,
							   0)));
	KUNIT_ASSERT_FALSE(test, IS_ERR(fake_table_acquire(ctx->table, false,
							   0)));
	fake_device_forget(ctx->fake);
	ctx->fake->during_clear = begin_reset;
	ctx->fake->during_clear_arg = ctx;
	start(test, ctx, call_trim);
	wait_for_completion(&ctx->asleep);
	KUNIT_EXPECT_EQ(test, ctx->size, 0);
	expect(test, -EIO, 0, "clear 0, release 12G, quiesce, reset");
}

/* Acquires @nr empty regions. */
static void acquire(struct kunit *test, struct ctx *ctx, unsigned int nr)
{
	while (nr--)
		KUNIT_ASSERT_FALSE(test, IS_ERR(fake_table_acquire(ctx->table,
								   false, 0)));
	fake_device_forget(ctx->fake);
}

static void begin_suspend(void *arg)
{
	struct ctx *ctx = arg;

	/*
	 * This is what flexmem_table_suspend() does before it waits for the
	 * worker.
	 */
	flexmem_function_suspend(&ctx->table->function);
	ctx->fake->during_clear = NULL;
	ctx->fake->during_acquire = NULL;
	complete(&ctx->asleep);
}

/*
 * A suspend does not wait for a whole TRIM. The TRIM continues after the
 * resume.
 */
static void suspend_cuts_in(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	acquire(test, ctx, 3);
	ctx->fake->during_clear = begin_suspend;
	ctx->fake->during_clear_arg = ctx;
	start(test, ctx, call_trim);
	wait_for_completion(&ctx->asleep);
	flexmem_table_suspend(ctx->table);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake),
			   "clear 0, release 12G");
	KUNIT_EXPECT_FALSE(test, completion_done(&ctx->done));
	flexmem_table_resume(ctx->table);
	expect(test, 0, 0,
	       "clear 0, release 12G, clear 1, release 12G, clear 2, release 12G");
	KUNIT_EXPECT_EQ(test, ctx->regions, 3);
}

/* The suspend comes after 12G were refused and before 8G are requested. */
static void suspend_puts_growth_off(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	ctx->fake->capacity = 10 * GIB;
	ctx->fake->during_acquire = begin_suspend;
	ctx->fake->during_acquire_arg = ctx;
	start(test, ctx, call_alloc);
	wait_for_completion(&ctx->asleep);
	flexmem_table_suspend(ctx->table);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake),
			   "acquire 12G ENOSPC");
	KUNIT_EXPECT_FALSE(test, completion_done(&ctx->done));
	flexmem_table_resume(ctx->table);
	wait_for_completion(&ctx->done);
	KUNIT_EXPECT_EQ(test, ctx->rc, 0);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake),
			   "acquire 12G ENOSPC, acquire 8G, set 0");
}

/* Runs the delayed work at once, again and again until none is pending. */
static void let_settle(struct flexmem_table *table)
{
	unsigned int tries = 2 * FLEXMEM_RELEASE_TRIES;

	flush_workqueue(table->function.worker);
	while (delayed_work_pending(&table->function.work) && tries--) {
		flush_delayed_work(&table->function.work);
		flush_workqueue(table->function.worker);
	}
}

/*
 * The worker settles commands with lost replies even if no caller asks for
 * memory.
 */
static void worker_settles_unanswered_commands(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -ETIMEDOUT);
	/* Two of the worker's commands get no answer. */
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 2, -ETIMEDOUT);
	start(test, ctx, call_alloc);
	wait_for_completion(&ctx->done);
	let_settle(ctx->table);
	/* After the second timeout in a row the worker probes the device. */
	expect(test, -ETIMEDOUT, 0,
	       "acquire 12G ETIMEDOUT, release 12G ETIMEDOUT, capacity, release 12G ETIMEDOUT, release 12G");
	KUNIT_EXPECT_EQ(test, ctx->fake->taken, 0);
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_error(&ctx->table->function));
}

/* The worker also releases a region if its slot's contents are unknown. */
static void worker_releases_a_trimmed_region(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	acquire(test, ctx, 1);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -ETIMEDOUT);
	start(test, ctx, call_trim);
	wait_for_completion(&ctx->done);
	let_settle(ctx->table);
	expect(test, -ETIMEDOUT, 0, "clear 0 ETIMEDOUT, clear 0, release 12G");
	KUNIT_EXPECT_EQ(test, ctx->regions, 0);
}

/* The worker also releases memory if setting its slot got no answer. */
static void worker_releases_stranded_memory(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fake_device_fail(ctx->fake, FAKE_SLOT_SET, 1, 1, -ETIMEDOUT);
	start(test, ctx, call_alloc);
	wait_for_completion(&ctx->done);
	let_settle(ctx->table);
	expect(test, -ETIMEDOUT, 0,
	       "acquire 12G, set 0 ETIMEDOUT, clear 0, release 12G");
}

/* After TRIM has returned, the worker repeats a release that got no answer. */
static void worker_repeats_an_unanswered_release(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	acquire(test, ctx, 1);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 1, -ETIMEDOUT);
	start(test, ctx, call_trim);
	wait_for_completion(&ctx->done);
	let_settle(ctx->table);
	expect(test, -ETIMEDOUT, 0,
	       "clear 0, release 12G ETIMEDOUT, release 12G");
	KUNIT_EXPECT_EQ(test, ctx->fake->taken, 0);
}

static void release_is_given_up(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	acquire(test, ctx, 1);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 99, -ETIMEDOUT);
	start(test, ctx, call_trim);
	wait_for_completion(&ctx->done);
	let_settle(ctx->table);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE],
			FLEXMEM_RELEASE_TRIES);
	KUNIT_EXPECT_FALSE(test,
			   delayed_work_pending(&ctx->table->function.work));
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, call_trim(ctx), 0);
	KUNIT_EXPECT_EQ(test, ctx->fake->taken, 0);
}

/*
 * The slots are used up, so no caller asks for a region. Only the worker can
 * repeat the release.
 */
static void worker_repeats_a_failed_release(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	ctx->fake->refused_slots = ~0ULL;
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, call_alloc(ctx), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ctx->fake->taken, 12 * GIB);
	let_settle(ctx->table);
	KUNIT_EXPECT_EQ(test, ctx->fake->taken, 0);
}

static void lose_acquire(struct kunit *test, struct ctx *ctx)
{
	struct flexmem_table *table = ctx->table;
	struct flexmem_memory mem;

	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			flexmem_function_acquire(&table->function, 0, GIB, &mem));
}

/*
 * The worker sends no command to a suspended device. After the resume the
 * worker sends the pending commands.
 */
static void settled_after_a_sleep(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	lose_acquire(test, ctx);
	flexmem_table_suspend(ctx->table);
	KUNIT_EXPECT_TRUE(test,
			  delayed_work_pending(&ctx->table->function.work));
	ctx->fake->asleep = true;
	let_settle(ctx->table);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake),
			   "acquire 1G ETIMEDOUT");
	ctx->fake->asleep = false;
	flexmem_table_resume(ctx->table);
	let_settle(ctx->table);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake),
			   "acquire 1G ETIMEDOUT, release 1G");
}

static void run_work(struct flexmem_table *table)
{
	mod_delayed_work(table->function.worker, &table->function.work, 0);
	flush_workqueue(table->function.worker);
}

static void become_unresponsive(struct ctx *ctx)
{
	flexmem_function_enter(&ctx->table->function, FLEXMEM_STATE_UNRESPONSIVE);
}

/* Waits until the caller waits for the next probe. It must not return. */
static void let_wait(struct ctx *ctx)
{
	while (!wq_has_sleeper(&ctx->table->function.changed) &&
	       !completion_done(&ctx->done))
		msleep(20);
	KUNIT_EXPECT_FALSE(kunit_get_current_test(),
			   completion_done(&ctx->done));
}

/*
 * Each run of the worker is one probe. Commands with lost replies are not
 * repeated before a probe is answered.
 */
static void one_probe_at_a_time(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_function *function = &ctx->table->function;
	unsigned int i;

	lose_acquire(test, ctx);
	become_unresponsive(ctx);
	fake_device_forget(ctx->fake);
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 3, -ETIMEDOUT);
	for (i = 1; i <= 3; i++) {
		run_work(ctx->table);
		KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_CAPACITY], i);
		KUNIT_EXPECT_TRUE(test, delayed_work_pending(&function->work));
		/* Each failed probe makes the next interval longer. */
		KUNIT_EXPECT_EQ(test, function->work_tries, i);
	}
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], 0);
	run_work(ctx->table);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], 1);
	KUNIT_EXPECT_EQ(test, function->work_tries, 0);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&function->work));
}

/*
 * A probe that fails with EIO does not count as an answer: the function stays
 * unresponsive.
 */
static void probe_that_fails_is_no_answer(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	become_unresponsive(ctx);
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 1, -EIO);
	run_work(ctx->table);
	KUNIT_EXPECT_TRUE(test,
			  flexmem_function_is_unresponsive(&ctx->table->function));
	run_work(ctx->table);
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_error(&ctx->table->function));
}

static void callers_wait_for_the_probe(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	become_unresponsive(ctx);
	start(test, ctx, call_alloc);
	let_wait(ctx);
	run_work(ctx->table);
	wait_for_completion(&ctx->done);
	KUNIT_EXPECT_EQ(test, ctx->rc, 0);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake),
			   "capacity, acquire 12G, set 0");
}

/*
 * The success of any command, not only of the probe, shows that the device
 * lives. The test reports one itself.
 */
static void any_answer_ends_the_wait(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	become_unresponsive(ctx);
	start(test, ctx, call_alloc);
	let_wait(ctx);
	flexmem_function_note(&ctx->table->function, 0);
	wait_for_completion(&ctx->done);
	KUNIT_EXPECT_EQ(test, ctx->rc, 0);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake),
			   "acquire 12G, set 0");
}

static void failed_probe_fails_waiting_callers(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	acquire(test, ctx, 1);
	become_unresponsive(ctx);
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 1, -ETIMEDOUT);
	start(test, ctx, call_trim);
	let_wait(ctx);
	run_work(ctx->table);
	expect(test, -ETIMEDOUT, 1, "capacity ETIMEDOUT");
}

static void killed_while_waiting_for_the_probe(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	become_unresponsive(ctx);
	start(test, ctx, call_alloc);
	let_wait(ctx);
	kill_caller(ctx);
	expect(test, -EINTR, 0, "");
}

/*
 * With each region order, an ALLOC that fits into the existing regions needs no
 * command. An ALLOC that finds no room and could get no region needs no command
 * either.
 */
static void calls_without_a_command_do_not_wait(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_domain *domain = &ctx->table->domain[0];

	acquire(test, ctx, 1);
	become_unresponsive(ctx);
	KUNIT_EXPECT_EQ(test, 0, call_alloc(ctx));
	ctx->table->settings.order = FLEXMEM_ORDER_LOAD_BALANCE;
	KUNIT_EXPECT_EQ(test, 0, call_alloc(ctx));
	domain->too_large = 0;
	ctx->size = 12 * GIB;
	KUNIT_EXPECT_EQ(test, -ENOMEM, call_alloc(ctx));
	domain->too_large = U64_MAX;
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), "");
}

/* Another caller's command times out while this caller waits for its turn. */
static void waiting_caller_takes_an_existing_region(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	acquire(test, ctx, 1);
	ctx->table->settings.order = FLEXMEM_ORDER_LOAD_BALANCE;
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 1, -ETIMEDOUT);
	mutex_lock(&ctx->table->acquire_lock);
	start(test, ctx, call_alloc);
	msleep(20);
	become_unresponsive(ctx);
	mutex_unlock(&ctx->table->acquire_lock);
	let_wait(ctx);
	run_work(ctx->table);
	wait_for_completion(&ctx->done);
	KUNIT_EXPECT_EQ(test, ctx->rc, 0);
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake),
			   "capacity ETIMEDOUT");
}

static void removal_ends_a_waiting_call(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	mutex_lock(&ctx->table->acquire_lock);
	start(test, ctx, call_alloc);
	msleep(20);
	flexmem_function_enter(&ctx->table->function, FLEXMEM_STATE_GONE);
	mutex_unlock(&ctx->table->acquire_lock);
	expect(test, -ENODEV, 0, "");
}

/* Makes @nr regions that the firmware refuses to take back. */
static void strand(struct kunit *test, struct ctx *ctx, unsigned int nr)
{
	unsigned int i, regions;
	u64 bytes;

	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_FALSE(test, IS_ERR(fake_table_acquire(ctx->table,
								   false, 0)));
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, nr, -EIO);
	for (i = 0; i < nr; i++) {
		/* Each TRIM stops at the first refusal. */
		fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 99, -EIO);
		flexmem_table_trim(ctx->table, &regions, &bytes);
	}
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 0, 0);
	KUNIT_ASSERT_EQ(test, nr_regions(ctx->table), 0);
	fake_device_forget(ctx->fake);
}

static void reset_cuts_in_before_growth_releases(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	strand(test, ctx, 4);
	/*
	 * This is what flexmem_table_reset() does before it waits for the
	 * worker.
	 */
	flexmem_function_enter(&ctx->table->function, FLEXMEM_STATE_WEDGED);
	start(test, ctx, call_alloc);
	expect(test, -EIO, 0, "");
	flexmem_function_enter(&ctx->table->function, FLEXMEM_STATE_UP);
}

static void reset_cuts_in_before_trim_releases(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	strand(test, ctx, 4);
	flexmem_function_enter(&ctx->table->function, FLEXMEM_STATE_WEDGED);
	start(test, ctx, call_trim);
	expect(test, -EIO, 0, "");
	flexmem_function_enter(&ctx->table->function, FLEXMEM_STATE_UP);
}

static struct kunit_case job_test_cases[] = {
	KUNIT_CASE(reset_cuts_in_before_growth_releases),
	KUNIT_CASE(reset_cuts_in_before_trim_releases),
	KUNIT_CASE(killed_while_a_slot_is_set),
	KUNIT_CASE(killed_while_it_reserves),
	KUNIT_CASE(killed_while_a_slot_is_cleared),
	KUNIT_CASE(caller_killed_before_its_turn_asks_nothing),
	KUNIT_CASE(killed_in_the_queue_leaves_nothing),
	KUNIT_CASE(waits_while_the_device_sleeps),
	KUNIT_CASE(writes_before_a_resume_are_seen_after_it),
	KUNIT_CASE(reset_cuts_in),
	KUNIT_CASE(suspend_cuts_in),
	KUNIT_CASE(suspend_puts_growth_off),
	KUNIT_CASE(worker_settles_unanswered_commands),
	KUNIT_CASE(worker_releases_a_trimmed_region),
	KUNIT_CASE(worker_releases_stranded_memory),
	KUNIT_CASE(worker_repeats_an_unanswered_release),
	KUNIT_CASE(release_is_given_up),
	KUNIT_CASE(worker_repeats_a_failed_release),
	KUNIT_CASE(settled_after_a_sleep),
	KUNIT_CASE(one_probe_at_a_time),
	KUNIT_CASE(probe_that_fails_is_no_answer),
	KUNIT_CASE(callers_wait_for_the_probe),
	KUNIT_CASE(any_answer_ends_the_wait),
	KUNIT_CASE(failed_probe_fails_waiting_callers),
	KUNIT_CASE(killed_while_waiting_for_the_probe),
	KUNIT_CASE(calls_without_a_command_do_not_wait),
	KUNIT_CASE(waiting_caller_takes_an_existing_region),
	KUNIT_CASE(removal_ends_a_waiting_call),
	{}
};

static struct kunit_suite job_test_suite = {
	.name = "flexmem_job",
	.init = job_test_init,
	.test_cases = job_test_cases,
};

kunit_test_suite(job_test_suite);
