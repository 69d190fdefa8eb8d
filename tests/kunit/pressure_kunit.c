// SPDX-License-Identifier: GPL-2.0
/* How full a function is, who is told, and who waits for memory. */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/wait.h>

#include "fake_device.h"
#include "placement.h"
#include "pressure.h"
#include "table.h"

#define NONE FLEXMEM_PRESSURE_NONE
#define MODERATE FLEXMEM_PRESSURE_MODERATE
#define CRITICAL FLEXMEM_PRESSURE_CRITICAL

/* ---- levels ---- */

static enum flexmem_pressure level(struct flexmem_gauge *gauge, u64 in_use)
{
	u64 before = gauge->sequence;
	enum flexmem_pressure was = gauge->base;
	bool changed;

	gauge->news = false;
	flexmem_gauge_move(gauge, in_use);
	changed = gauge->base != was;
	/* An event is a change of the level, and nothing else is. */
	if (gauge->news != changed || gauge->sequence != before + changed)
		return -1;
	return gauge->base;
}

static void levels_of_a_thousand(struct kunit *test)
{
	struct flexmem_gauge gauge;
	u64 in_use;

	flexmem_gauge_init(&gauge);
	flexmem_gauge_set_memory(&gauge, 1000, 0);
	for (in_use = 0; in_use <= 1000; in_use++)
		KUNIT_ASSERT_EQ(test, level(&gauge, in_use),
				in_use < 800 ? NONE :
				in_use < 950 ? MODERATE : CRITICAL);
	for (in_use = 1000; in_use; in_use--)
		KUNIT_ASSERT_EQ(test, level(&gauge, in_use),
				in_use < 700 ? NONE :
				in_use < 900 ? MODERATE : CRITICAL);
	KUNIT_EXPECT_EQ(test, gauge.sequence, 1 + 4);
}

static void levels_by_jumps(struct kunit *test)
{
	static const struct {
		u64 in_use;
		enum flexmem_pressure level;
	} steps[] = {
		{ 1000, CRITICAL }, { 0, NONE }, { 949, MODERATE },
		{ 799, MODERATE }, { 700, MODERATE }, { 699, NONE },
		{ 799, NONE }, { 950, CRITICAL }, { 900, CRITICAL },
		{ 750, MODERATE }, { 949, MODERATE }, { 950, CRITICAL },
		{ 699, NONE },
	};
	struct flexmem_gauge gauge;
	unsigned int i;

	flexmem_gauge_init(&gauge);
	flexmem_gauge_set_memory(&gauge, 1000, 0);
	for (i = 0; i < ARRAY_SIZE(steps); i++)
		KUNIT_EXPECT_EQ_MSG(test, level(&gauge, steps[i].in_use),
				    steps[i].level, "step %u", i);
}

/* So many percent are rounded up, whatever the size of the memory. */
static void shares_are_exact(struct kunit *test)
{
	static const u64 memories[] = {
		1, 99, 100, 101, 128, 12345, 4 * GIB, 12 * GIB + 128,
		1ULL << 56, (1ULL << 56) - 1,
	};
	struct flexmem_gauge gauge;
	unsigned int i;
	u64 enter;

	for (i = 0; i < ARRAY_SIZE(memories); i++) {
		flexmem_gauge_init(&gauge);
		flexmem_gauge_set_memory(&gauge, memories[i], 0);
		enter = gauge.up;
		KUNIT_EXPECT_GE(test, enter * 100, memories[i] * 80);
		KUNIT_EXPECT_LT(test, (enter - 1) * 100, memories[i] * 80);
	}
	/* 95 percent of that do not fit 64 bits on the way. */
	flexmem_gauge_init(&gauge);
	flexmem_gauge_set_memory(&gauge, U64_MAX, U64_MAX);
	KUNIT_EXPECT_EQ(test, gauge.base, CRITICAL);
	KUNIT_EXPECT_EQ(test, gauge.down, U64_MAX / 10 * 9 + 5);
}

static void nothing_in_use_is_no_pressure(struct kunit *test)
{
	struct flexmem_gauge gauge;

	flexmem_gauge_init(&gauge);
	KUNIT_EXPECT_EQ(test, gauge.base, NONE);
	KUNIT_EXPECT_EQ(test, level(&gauge, 0), NONE);
	KUNIT_EXPECT_EQ(test, level(&gauge, 128), CRITICAL);
	KUNIT_EXPECT_EQ(test, level(&gauge, 0), NONE);
}

/* Whether that is an event. */
static bool set_memory(struct flexmem_gauge *gauge, u64 memory, u64 in_use)
{
	u64 before = gauge->sequence;

	gauge->news = false;
	flexmem_gauge_set_memory(gauge, memory, in_use);
	return gauge->news && gauge->sequence == before + 1;
}

static void memory_moves_the_level_too(struct kunit *test)
{
	struct flexmem_gauge gauge;

	flexmem_gauge_init(&gauge);
	flexmem_gauge_set_memory(&gauge, 1000, 0);
	KUNIT_EXPECT_EQ(test, level(&gauge, 750), NONE);
	KUNIT_EXPECT_TRUE(test, set_memory(&gauge, 900, 750));
	KUNIT_EXPECT_EQ(test, gauge.base, MODERATE);
	KUNIT_EXPECT_TRUE(test, set_memory(&gauge, 750, 750));
	KUNIT_EXPECT_EQ(test, gauge.base, CRITICAL);
	KUNIT_EXPECT_FALSE(test, set_memory(&gauge, 800, 750));
	KUNIT_EXPECT_TRUE(test, set_memory(&gauge, 1000, 750));
	KUNIT_EXPECT_EQ(test, gauge.base, MODERATE);
	KUNIT_EXPECT_TRUE(test, set_memory(&gauge, 2000, 750));
	KUNIT_EXPECT_EQ(test, gauge.base, NONE);
}

/* ---- events ---- */

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_accounts *accounts;
	struct flexmem_event event;
	u64 seen;
};

/* At most two regions of a GiB. */
static int pressure_test_init(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	settings.max_regions = 2;
	settings.nr_sizes = 1;
	settings.sizes[0] = GIB;
	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, 8 * GIB);
	ctx->table = fake_table_create(test, ctx->fake, &settings);
	ctx->accounts = &ctx->table->accounts;
	ctx->seen = flexmem_pressure_first(ctx->accounts);
	test->priv = ctx;
	return 0;
}

static struct fake_block *alloc(struct kunit *test, u64 size)
{
	struct ctx *ctx = test->priv;
	struct fake_block *block;

	block = fake_alloc(ctx->table, size, FLEXMEM_ALIGN, false, NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
	return block;
}

static void expect_quiet(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_FALSE(test,
			   flexmem_pressure_is_new(ctx->accounts, &ctx->seen));
	KUNIT_EXPECT_FALSE(test, flexmem_pressure_take(ctx->accounts, &ctx->seen,
						       &ctx->event));
}

static void expect_event(struct kunit *test, enum flexmem_pressure want,
			 u64 in_use, u64 memory)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_TRUE(test,
			  flexmem_pressure_is_new(ctx->accounts, &ctx->seen));
	KUNIT_EXPECT_TRUE(test, flexmem_pressure_take(ctx->accounts, &ctx->seen,
						      &ctx->event));
	KUNIT_EXPECT_EQ(test, ctx->event.size, sizeof(ctx->event));
	KUNIT_EXPECT_EQ(test, ctx->event.level, want);
	KUNIT_EXPECT_EQ(test, ctx->event.in_use, in_use);
	KUNIT_EXPECT_EQ(test, ctx->event.memory, memory);
	expect_quiet(test);
}

/* What could be acquired counts, and what cannot does not. */
static void memory_is_what_there_could_be(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, ctx->accounts->gauge.memory, 2 * GIB);
	alloc(test, GIB);
	expect_quiet(test);
	KUNIT_EXPECT_EQ(test, ctx->accounts->gauge.memory, 2 * GIB);
	/* The device has given all it has, and that is full. */
	ctx->fake->capacity = GIB;
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), 0);
	expect_event(test, CRITICAL, GIB, GIB);
	ctx->fake->capacity = 2 * GIB - 1;
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), 0);
	expect_quiet(test);
	ctx->fake->capacity = 2 * GIB;
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), 0);
	expect_event(test, NONE, GIB, 2 * GIB);
}

/* Neither it comes nor goes for a moment: who was told keeps his level. */
static void quarantined_bytes_stay_in_use(struct kunit *test)
{
	struct fake_block *block;

	alloc(test, GIB);
	block = alloc(test, GIB / 2);
	alloc(test, GIB / 4);
	expect_event(test, MODERATE, GIB + GIB / 2 + GIB / 4, 2 * GIB);
	fake_orphan(block);
	expect_quiet(test);
	fake_free(block);
	expect_event(test, NONE, GIB + GIB / 4, 2 * GIB);
	block = alloc(test, GIB / 2);
	expect_event(test, MODERATE, GIB + GIB / 2 + GIB / 4, 2 * GIB);
	fake_quarantine(block);
	expect_quiet(test);
}

static void new_file_is_told_how_things_are(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, GIB);
	alloc(test, GIB);
	ctx->seen = flexmem_pressure_first(ctx->accounts);
	expect_event(test, CRITICAL, 2 * GIB, 2 * GIB);
	ctx->seen = flexmem_pressure_first(ctx->accounts);
	expect_event(test, CRITICAL, 2 * GIB, 2 * GIB);
}

static void event_that_was_not_delivered_is_there_again(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_event event;

	alloc(test, GIB);
	alloc(test, GIB);
	KUNIT_EXPECT_TRUE(test, flexmem_pressure_take(ctx->accounts, &ctx->seen,
						      &event));
	flexmem_pressure_untake(ctx->accounts, &ctx->seen, &event);
	expect_event(test, CRITICAL, 2 * GIB, 2 * GIB);
	/* Another thread has read a later one: it is not told twice. */
	flexmem_pressure_wait_begin(ctx->accounts, 128);
	KUNIT_EXPECT_TRUE(test, flexmem_pressure_take(ctx->accounts, &ctx->seen,
						      &ctx->event));
	flexmem_pressure_untake(ctx->accounts, &ctx->seen, &event);
	expect_quiet(test);
	flexmem_pressure_wait_end(ctx->accounts, 128);
}

static void each_waiter_is_an_event(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	flexmem_pressure_wait_begin(ctx->accounts, 128);
	expect_event(test, CRITICAL, 0, 2 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->event.wanted, 128);
	flexmem_pressure_wait_begin(ctx->accounts, 256);
	expect_event(test, CRITICAL, 0, 2 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->event.wanted, 384);
	/* What is in use says nothing new meanwhile. */
	alloc(test, GIB);
	alloc(test, GIB - 128);
	expect_quiet(test);
	flexmem_pressure_wait_end(ctx->accounts, 128);
	expect_quiet(test);
	flexmem_pressure_wait_end(ctx->accounts, 256);
	expect_quiet(test);
	KUNIT_EXPECT_EQ(test, ctx->event.level, CRITICAL);
	KUNIT_EXPECT_EQ(test, ctx->event.wanted, 0);
}

static void last_waiter_leaves_the_level_of_the_rest(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	flexmem_pressure_wait_begin(ctx->accounts, 128);
	expect_event(test, CRITICAL, 0, 2 * GIB);
	flexmem_pressure_wait_end(ctx->accounts, 128);
	expect_event(test, NONE, 0, 2 * GIB);
}

/* ---- waiting ---- */

struct waiter {
	struct completion done;
	struct flexmem_table *table;
	struct flexmem_request request;
	struct flexmem_place place;
	unsigned long took;
	int rc;
};

static int wait_for_room(void *data)
{
	struct waiter *waiter = data;
	unsigned long began = jiffies;

	waiter->rc = flexmem_place(waiter->table, &waiter->request,
				   &waiter->place);
	waiter->took = jiffies - began;
	complete(&waiter->done);
	return 0;
}

/* With the lock of the queue, so that what it did before is seen as well. */
static bool somebody_waits(struct ctx *ctx)
{
	wait_queue_head_t *starved = &ctx->accounts->gauge.starved;
	bool waits;

	spin_lock(&starved->lock);
	waits = !list_empty(&starved->head);
	spin_unlock(&starved->lock);
	return waits;
}

/* For a wait that must not end by itself, however slow the machine is */
#define PATIENT_MS 60000

/* Returns when it waits, or has waited. */
static struct waiter *start_waiter(struct kunit *test, u64 size,
				   unsigned int wait_ms)
{
	struct ctx *ctx = test->priv;
	struct task_struct *task;
	struct waiter *waiter;

	ctx->table->wait_ms = wait_ms;
	waiter = kunit_kzalloc(test, sizeof(*waiter), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, waiter);
	init_completion(&waiter->done);
	waiter->table = ctx->table;
	waiter->request = (struct flexmem_request) {
		.size = size,
		.alignment = FLEXMEM_ALIGN,
		.wait = true,
		.account = fake_table_account(ctx->table),
	};
	task = kthread_run(wait_for_room, waiter, "flexmem_kunit");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	while (!somebody_waits(ctx) &&
	       !completion_done(&waiter->done))
		msleep(20);
	return waiter;
}

static void end_waiter(struct kunit *test, struct waiter *waiter)
{
	struct ctx *ctx = test->priv;

	wait_for_completion(&waiter->done);
	if (!waiter->rc)
		flexmem_region_free(waiter->place.region, waiter->place.block,
				    FLEXMEM_KIND_TENSOR,
				    waiter->request.account, false);
	KUNIT_EXPECT_EQ(test, ctx->accounts->gauge.waiters, 0);
	KUNIT_EXPECT_EQ(test, ctx->accounts->gauge.wanted, 0);
}

static void gives_up_in_the_end(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct waiter *waiter;
	unsigned int asked;

	alloc(test, GIB);
	alloc(test, GIB);
	asked = ctx->fake->calls[FAKE_ACQUIRE];
	waiter = start_waiter(test, 128, FLEXMEM_WAIT_MS);
	end_waiter(test, waiter);
	KUNIT_EXPECT_EQ(test, waiter->rc, -ENOMEM);
	KUNIT_EXPECT_EQ(test, waiter->place.reason, FLEXMEM_REASON_MAX_REGIONS);
	KUNIT_EXPECT_GE(test, waiter->took, msecs_to_jiffies(FLEXMEM_WAIT_MS));
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_ACQUIRE], asked);
}

/* The device refuses each time: it is not asked again for nothing. */
static void does_not_wake_itself_up(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct waiter *waiter;
	unsigned int asked;

	alloc(test, GIB);
	ctx->fake->refused_size[0] = GIB;
	asked = ctx->fake->calls[FAKE_ACQUIRE];
	waiter = start_waiter(test, 128, FLEXMEM_WAIT_MS);
	end_waiter(test, waiter);
	KUNIT_EXPECT_EQ(test, waiter->rc, -ENOMEM);
	KUNIT_EXPECT_EQ(test, waiter->place.reason, FLEXMEM_REASON_CAPACITY);
	KUNIT_EXPECT_LE(test, ctx->fake->calls[FAKE_ACQUIRE] - asked, 3);
}

static void gets_what_is_freed(struct kunit *test)
{
	struct fake_block *block = alloc(test, GIB);
	struct ctx *ctx = test->priv;
	struct waiter *waiter;

	alloc(test, GIB);
	waiter = start_waiter(test, GIB / 2, PATIENT_MS);
	KUNIT_EXPECT_EQ(test, ctx->accounts->gauge.waiters, 1);
	fake_free(block);
	end_waiter(test, waiter);
	KUNIT_EXPECT_EQ(test, waiter->rc, 0);
	KUNIT_EXPECT_EQ(test, waiter->place.reason, FLEXMEM_REASON_NONE);
	KUNIT_EXPECT_LT(test, waiter->took, msecs_to_jiffies(PATIENT_MS));
}

static void gets_what_is_cut_off(struct kunit *test)
{
	struct fake_block *block = alloc(test, GIB);
	struct flexmem_spare spare;
	struct waiter *waiter;

	alloc(test, GIB);
	KUNIT_ASSERT_EQ(test, flexmem_spare_fill(&spare, 1), 0);
	waiter = start_waiter(test, GIB / 2, PATIENT_MS);
	flexmem_region_shrink(block->region, block->block, GIB / 2,
			      block->kind, block->account, &spare);
	flexmem_spare_drop(&spare);
	end_waiter(test, waiter);
	KUNIT_EXPECT_EQ(test, waiter->rc, 0);
	KUNIT_EXPECT_LT(test, waiter->took, msecs_to_jiffies(PATIENT_MS));
}

static void gets_what_leaves_quarantine(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct waiter *waiter;
	unsigned int regions;
	u64 bytes;

	fake_quarantine(alloc(test, GIB));
	alloc(test, GIB);
	waiter = start_waiter(test, GIB / 2, PATIENT_MS);
	/* The region is empty then, so it goes, and is acquired anew. */
	KUNIT_EXPECT_EQ(test, flexmem_table_trim(ctx->table, false, &regions, &bytes),
			0);
	end_waiter(test, waiter);
	KUNIT_EXPECT_EQ(test, waiter->rc, 0);
	KUNIT_EXPECT_LT(test, waiter->took, msecs_to_jiffies(PATIENT_MS));
}

static void gets_new_capacity(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct waiter *waiter;

	ctx->fake->capacity = GIB;
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), 0);
	alloc(test, GIB);
	waiter = start_waiter(test, GIB / 2, PATIENT_MS);
	ctx->fake->capacity = 2 * GIB;
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), 0);
	end_waiter(test, waiter);
	KUNIT_EXPECT_EQ(test, waiter->rc, 0);
	KUNIT_EXPECT_LT(test, waiter->took, msecs_to_jiffies(PATIENT_MS));
}

static void ends_when_the_device_goes(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct waiter *waiter;

	alloc(test, GIB);
	alloc(test, GIB);
	waiter = start_waiter(test, GIB / 2, PATIENT_MS);
	fake_table_remove(ctx->table);
	end_waiter(test, waiter);
	KUNIT_EXPECT_EQ(test, waiter->rc, -ENODEV);
	KUNIT_EXPECT_LT(test, waiter->took, msecs_to_jiffies(PATIENT_MS));
}

static struct kunit_case pressure_cases[] = {
	KUNIT_CASE(levels_of_a_thousand),
	KUNIT_CASE(levels_by_jumps),
	KUNIT_CASE(shares_are_exact),
	KUNIT_CASE(nothing_in_use_is_no_pressure),
	KUNIT_CASE(memory_moves_the_level_too),
	KUNIT_CASE(memory_is_what_there_could_be),
	KUNIT_CASE(quarantined_bytes_stay_in_use),
	KUNIT_CASE(new_file_is_told_how_things_are),
	KUNIT_CASE(event_that_was_not_delivered_is_there_again),
	KUNIT_CASE(each_waiter_is_an_event),
	KUNIT_CASE(last_waiter_leaves_the_level_of_the_rest),
	KUNIT_CASE(gives_up_in_the_end),
	KUNIT_CASE(does_not_wake_itself_up),
	KUNIT_CASE(gets_what_is_freed),
	KUNIT_CASE(gets_what_is_cut_off),
	KUNIT_CASE(gets_what_leaves_quarantine),
	KUNIT_CASE(gets_new_capacity),
	KUNIT_CASE(ends_when_the_device_goes),
	{}
};

static struct kunit_suite pressure_suite = {
	.name = "flexmem_pressure",
	.init = pressure_test_init,
	.test_cases = pressure_cases,
};

kunit_test_suite(pressure_suite);
