// SPDX-License-Identifier: GPL-2.0
/* Pressure: how full a function is, and which files get events about it. */

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/string.h>

#include "alloc/client.h"
#include "alloc/placement.h"
#include "compat.h"
#include "fake_device.h"
#include "parts/pressure.h"
#include "region/table.h"
#include "tenant/owner.h"

#define NONE FLEXMEM_PRESSURE_NONE
#define MODERATE FLEXMEM_PRESSURE_MODERATE
#define CRITICAL FLEXMEM_PRESSURE_CRITICAL

/* ---- levels ---- */

static void set_memory(struct flexmem_gauge *gauge, u64 memory, u64 in_use)
{
	gauge->memory = memory;
	flexmem_gauge_settle(gauge, in_use);
}

static struct flexmem_gauge *make_gauge(struct kunit *test, u64 memory)
{
	struct flexmem_gauge *gauge;

	gauge = kunit_kzalloc(test, sizeof(*gauge), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, gauge);
	flexmem_gauge_init(gauge);
	set_memory(gauge, memory, 0);
	return gauge;
}

static enum flexmem_pressure level(struct flexmem_gauge *gauge, u64 in_use)
{
	flexmem_gauge_move(gauge, in_use);
	return gauge->level;
}

static void levels_of_a_thousand(struct kunit *test)
{
	struct flexmem_gauge *gauge = make_gauge(test, 1000);
	u64 in_use;

	for (in_use = 0; in_use <= 1000; in_use++)
		KUNIT_ASSERT_EQ(test, level(gauge, in_use),
				in_use < 800 ? NONE :
				in_use < 950 ? MODERATE : CRITICAL);
	for (in_use = 1000; in_use; in_use--)
		KUNIT_ASSERT_EQ(test, level(gauge, in_use),
				in_use < 700 ? NONE :
				in_use < 900 ? MODERATE : CRITICAL);
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
	struct flexmem_gauge *gauge = make_gauge(test, 1000);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		KUNIT_EXPECT_EQ_MSG(test, level(gauge, steps[i].in_use),
				    steps[i].level, "step %u", i);
}

/* Thresholds are rounded up, whatever the size of the memory. */
static void shares_are_exact(struct kunit *test)
{
	static const u64 memories[] = {
		1, 99, 100, 101, 128, 12345, 4 * GIB, 12 * GIB + 128,
		1ULL << 56, (1ULL << 56) - 1,
	};
	struct flexmem_gauge *gauge;
	unsigned int i;
	u64 enter;

	for (i = 0; i < ARRAY_SIZE(memories); i++) {
		gauge = make_gauge(test, memories[i]);
		enter = gauge->up;
		KUNIT_EXPECT_GE(test, enter * 100, memories[i] * 80);
		KUNIT_EXPECT_LT(test, (enter - 1) * 100, memories[i] * 80);
	}
	/*
	 * 95 per cent of this size cannot be computed by a plain
	 * multiplication: 95 times the size overflows 64 bits.
	 */
	gauge = make_gauge(test, 0);
	set_memory(gauge, U64_MAX, U64_MAX);
	KUNIT_EXPECT_EQ(test, gauge->level, CRITICAL);
	KUNIT_EXPECT_EQ(test, gauge->down, U64_MAX / 10 * 9 + 5);
}

static void nothing_in_use_is_no_pressure(struct kunit *test)
{
	struct flexmem_gauge *gauge = make_gauge(test, 0);

	KUNIT_EXPECT_EQ(test, gauge->level, NONE);
	KUNIT_EXPECT_EQ(test, level(gauge, 0), NONE);
	KUNIT_EXPECT_EQ(test, level(gauge, 128), CRITICAL);
	KUNIT_EXPECT_EQ(test, level(gauge, 0), NONE);
}

static void memory_moves_the_level_too(struct kunit *test)
{
	static const struct {
		u64 memory;
		enum flexmem_pressure level;
	} steps[] = {
		{ 900, MODERATE }, { 750, CRITICAL }, { 800, CRITICAL },
		{ 1000, MODERATE }, { 2000, NONE },
	};
	struct flexmem_gauge *gauge = make_gauge(test, 1000);
	unsigned int i;

	KUNIT_EXPECT_EQ(test, level(gauge, 750), NONE);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		set_memory(gauge, steps[i].memory, 750);
		KUNIT_EXPECT_EQ_MSG(test, gauge->level, steps[i].level,
				    "step %u", i);
	}
}

/* ---- events ---- */

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_accounts *accounts;
	struct flexmem_client *client;
	struct flexmem_reading reading;
	struct flexmem_listener listener;
};

/* A device with room for two regions of 1 GiB. */
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
	ctx->client = fake_client_open(test, ctx->table, 1);
	flexmem_pressure_listen(ctx->accounts, &ctx->listener, NULL);
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

/* Delivers pending events now. */
static void deliver(struct ctx *ctx)
{
	fake_events_deliver(ctx->accounts);
}

/*
 * Reads an event as the listener's file does. Returns false if there is none.
 */
static bool read_event(struct ctx *ctx, struct flexmem_listener *listener)
{
	deliver(ctx);
	return flexmem_pressure_look(ctx->accounts, listener, &ctx->reading) &&
	       flexmem_pressure_take(ctx->accounts, listener, &ctx->reading);
}

static void expect_quiet(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_FALSE(test, read_event(ctx, &ctx->listener));
}

static void expect_event(struct kunit *test, enum flexmem_pressure want,
			 u64 in_use, u64 memory)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_TRUE(test, read_event(ctx, &ctx->listener));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.size,
			sizeof(struct flexmem_event));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.level, want);
	KUNIT_EXPECT_EQ(test, ctx->reading.event.in_use, in_use);
	KUNIT_EXPECT_EQ(test, ctx->reading.event.memory, memory);
	expect_quiet(test);
}

/* The memory of the gauge includes bytes that the device can still grant. */
static void memory_counts_capacity_to_acquire(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, ctx->accounts->gauge.memory, 2 * GIB);
	alloc(test, GIB);
	expect_quiet(test);
	KUNIT_EXPECT_EQ(test, ctx->accounts->gauge.memory, 2 * GIB);
	/*
	 * Now the device can grant no more memory, so one full region is
	 * CRITICAL.
	 */
	ctx->fake->capacity = GIB;
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), 0);
	expect_event(test, CRITICAL, GIB, GIB);
	/* Less than a granule cannot be acquired. */
	ctx->fake->capacity = GIB + SZ_2M - 1;
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), 0);
	expect_quiet(test);
	ctx->fake->capacity = 2 * GIB;
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), 0);
	expect_event(test, NONE, GIB, 2 * GIB);
}

/*
 * Bytes that go into quarantine count as in use all the time, so the level does
 * not drop for a moment.
 */
static void quarantined_bytes_stay_in_use(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_region *region;
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
	region = block->region;
	fake_quarantine(block);
	expect_quiet(test);
	/* A scrub succeeds, and the block is free. */
	region->retry_at = jiffies;
	mod_delayed_work(system_dfl_wq, &ctx->table->scrub_work, 0);
	flush_work(&ctx->table->scrub_work.work);
	expect_event(test, NONE, GIB + GIB / 4, 2 * GIB);
}

/*
 * After a device has failed, and before its regions are lost, more bytes may be
 * in use than the device has. The event then reports the bytes in use as the
 * memory.
 */
static void no_more_is_in_use_than_there_is(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_accounts *accounts = ctx->accounts;

	alloc(test, GIB);
	spin_lock(&accounts->lock);
	set_memory(&accounts->gauge, GIB / 2, GIB);
	spin_unlock(&accounts->lock);
	flexmem_pressure_tell(accounts);
	expect_event(test, CRITICAL, GIB, GIB);
}

/* Closes the file of the test, and opens it again. */
static void open_anew(struct ctx *ctx)
{
	flexmem_pressure_unlisten(ctx->accounts, &ctx->listener);
	flexmem_pressure_listen(ctx->accounts, &ctx->listener, NULL);
}

static void new_file_gets_the_level_as_event(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, GIB);
	alloc(test, GIB);
	expect_event(test, CRITICAL, 2 * GIB, 2 * GIB);
	open_anew(ctx);
	expect_event(test, CRITICAL, 2 * GIB, 2 * GIB);
}

/* If two threads read the same file, one of them gets the event. */
static void an_event_is_taken_once(struct kunit *test)
{
	struct flexmem_reading first, second;
	struct ctx *ctx = test->priv;

	alloc(test, GIB);
	alloc(test, GIB);
	deliver(ctx);
	/* The event is older than the file, so only the file counts its reads. */
	open_anew(ctx);
	KUNIT_EXPECT_TRUE(test, flexmem_pressure_look(ctx->accounts,
						      &ctx->listener, &first));
	KUNIT_EXPECT_TRUE(test, flexmem_pressure_look(ctx->accounts,
						      &ctx->listener, &second));
	KUNIT_EXPECT_TRUE(test, flexmem_pressure_take(ctx->accounts,
						      &ctx->listener, &second));
	KUNIT_EXPECT_FALSE(test, flexmem_pressure_take(ctx->accounts,
						       &ctx->listener, &first));
	expect_quiet(test);
}

/* Holds back the next event. */
static struct flexmem_gauge *hold_events(struct ctx *ctx)
{
	fake_events_hold(ctx->accounts);
	return &ctx->accounts->gauge;
}

static void pressure_that_ended_is_no_event(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_gauge *gauge;
	struct fake_block *block;

	alloc(test, GIB);
	gauge = hold_events(ctx);
	block = alloc(test, GIB);
	KUNIT_EXPECT_EQ(test, gauge->level, CRITICAL);
	fake_free(block);
	KUNIT_EXPECT_TRUE(test, gauge->moved);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&gauge->deliver));
	expect_quiet(test);
	KUNIT_EXPECT_EQ(test, gauge->sequence, 1);
	/*
	 * A file that is opened now gets no event about the past level either.
	 */
	open_anew(ctx);
	expect_quiet(test);
}

/*
 * If the level falls and rises before the next event, caches must free again.
 */
static void pressure_that_returns_is_an_event(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_gauge *gauge;
	struct fake_block *block;

	alloc(test, GIB);
	block = alloc(test, GIB);
	expect_event(test, CRITICAL, 2 * GIB, 2 * GIB);
	gauge = hold_events(ctx);
	fake_free(block);
	KUNIT_EXPECT_EQ(test, gauge->level, NONE);
	block = alloc(test, GIB);
	expect_event(test, CRITICAL, 2 * GIB, 2 * GIB);
	KUNIT_EXPECT_EQ(test, gauge->sequence, 3);
	/*
	 * The end of a level is an event only for files that have read about
	 * the level.
	 */
	fake_free(block);
	expect_event(test, NONE, GIB, 2 * GIB);
	open_anew(ctx);
	expect_quiet(test);
}

/* The time of the latest event, in jiffies. */
static unsigned long delivered(const struct ctx *ctx)
{
	return READ_ONCE(ctx->accounts->gauge.next) -
	       msecs_to_jiffies(FLEXMEM_EVENT_MS);
}

static void events_keep_their_distance(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_gauge *gauge = &ctx->accounts->gauge;
	struct fake_block *block;
	unsigned long due;
	int i, tries;

	alloc(test, GIB);
	for (i = 0; i < 3; i++) {
		block = alloc(test, GIB);
		expect_event(test, CRITICAL, 2 * GIB, 2 * GIB);
		KUNIT_ASSERT_EQ(test, gauge->told, CRITICAL);
		due = gauge->next;
		fake_free(block);
		for (tries = 0; tries < 500 &&
		     READ_ONCE(gauge->told) != NONE; tries++)
			msleep(20);
		KUNIT_ASSERT_EQ(test, READ_ONCE(gauge->told), NONE);
		KUNIT_EXPECT_TRUE(test, time_after_eq(delivered(ctx), due));
		expect_event(test, NONE, GIB, 2 * GIB);
	}
}

/* If the worker runs too early, it waits until the next event is due. */
static void an_early_worker_waits(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_gauge *gauge = hold_events(ctx);

	alloc(test, GIB);
	alloc(test, GIB);
	/* Long enough for a slow machine, and less than what is never waited. */
	gauge->next = jiffies + msecs_to_jiffies(FLEXMEM_EVENT_MS);
	flush_delayed_work(&gauge->deliver);
	if (time_before(jiffies, gauge->next)) {
		KUNIT_EXPECT_EQ(test, gauge->sequence, 1);
		KUNIT_EXPECT_TRUE(test, delayed_work_pending(&gauge->deliver));
	}
	expect_event(test, CRITICAL, 2 * GIB, 2 * GIB);
}

/* An event was due so long ago that its time seems to be in the future again. */
static void no_event_waits_for_jiffies_to_wrap(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_gauge *gauge = &ctx->accounts->gauge;

	gauge->next = jiffies + LONG_MAX;
	alloc(test, GIB);
	alloc(test, GIB);
	flush_work(&gauge->deliver.work);
	KUNIT_EXPECT_EQ(test, gauge->sequence, 2);
	expect_event(test, CRITICAL, 2 * GIB, 2 * GIB);
}

/* ---- files after a failed ALLOC ---- */

/*
 * Allocates for a client. Returns 0 or the error. Closing the client frees the
 * memory.
 */
static int try(struct flexmem_client *client, u64 size)
{
	struct flexmem_allocation *allocation;
	struct flexmem_request request;

	allocation = fake_client_prepare(client, size, FLEXMEM_ALIGN, 0,
					 &request);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	flexmem_client_publish(client, allocation);
	return 0;
}

static void a_free_is_an_event_after_a_failure(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = fake_client_open(test, ctx->table, 2);
	struct fake_block *block[3];
	int i;

	alloc(test, GIB);
	for (i = 0; i < 3; i++)
		block[i] = alloc(test, GIB / 4);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, &ctx->client->listener));
	KUNIT_EXPECT_TRUE(test, read_event(ctx, &other->listener));
	KUNIT_EXPECT_EQ(test, try(ctx->client, GIB / 2), -ENOMEM);
	KUNIT_EXPECT_FALSE(test, read_event(ctx, &ctx->client->listener));
	fake_free(block[0]);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, &ctx->client->listener));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.in_use, GIB + GIB / 2);
	/* The other file has had no failed ALLOC. It hears of the failure. */
	KUNIT_EXPECT_TRUE(test, read_event(ctx, &other->listener));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.flags, FLEXMEM_EVENT_WANTED);
	KUNIT_EXPECT_FALSE(test, read_event(ctx, &other->listener));
	/* A second event needs another failed ALLOC. */
	fake_free(alloc(test, 128));
	KUNIT_EXPECT_FALSE(test, read_event(ctx, &ctx->client->listener));
	KUNIT_EXPECT_EQ(test, try(ctx->client, GIB), -ENOMEM);
	fake_free(alloc(test, 128));
	KUNIT_EXPECT_TRUE(test, read_event(ctx, &ctx->client->listener));
}

static void successful_alloc_ends_the_memory_event(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, GIB);
	alloc(test, 128);
	KUNIT_EXPECT_EQ(test, try(ctx->client, GIB), -ENOMEM);
	KUNIT_EXPECT_EQ(test, try(ctx->client, GIB / 4), 0);
	fake_free(alloc(test, 128));
	KUNIT_EXPECT_FALSE(test, read_event(ctx, &ctx->client->listener));
}

/* An event about the level leaves the event about freed memory pending. */
static void level_event_keeps_the_memory_event(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct fake_block *block;

	alloc(test, GIB);
	block = alloc(test, 128);
	KUNIT_EXPECT_EQ(test, try(ctx->client, GIB), -ENOMEM);
	alloc(test, GIB - 128);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, &ctx->client->listener));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.level, CRITICAL);
	fake_free(block);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, &ctx->client->listener));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.level, CRITICAL);
	KUNIT_EXPECT_FALSE(test, read_event(ctx, &ctx->client->listener));
}

/* The request is larger than the device, so no FREE can help. */
static void impossible_size_gets_no_event(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, try(ctx->client, GIB + 128), -ENOMEM);
	fake_free(alloc(test, 128));
	KUNIT_EXPECT_FALSE(test, read_event(ctx, &ctx->client->listener));
}

/*
 * A handle stays charged while its memory is in use. When the memory is free, a
 * file whose ALLOC failed for lack of a handle gets an event.
 */
static void a_handle_is_an_event(struct kunit *test)
{
	struct flexmem_allocation *allocation;
	struct ctx *ctx = test->priv;

	fake_client_limit(ctx->client, FLEXMEM_RESOURCE_HANDLES, 1);
	KUNIT_ASSERT_EQ(test, try(ctx->client, 128), 0);
	allocation = flexmem_client_allocation(ctx->client, 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	KUNIT_EXPECT_EQ(test, try(ctx->client, 128), -ENOMEM);
	KUNIT_EXPECT_FALSE(test, read_event(ctx, &ctx->client->listener));
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, 1), 0);
	KUNIT_EXPECT_FALSE(test, read_event(ctx, &ctx->client->listener));
	KUNIT_EXPECT_EQ(test, try(ctx->client, 128), -ENOMEM);
	flexmem_allocation_put(allocation);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, &ctx->client->listener));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.in_use, 0);
	KUNIT_EXPECT_EQ(test, try(ctx->client, 128), 0);
}

/*
 * Before it fails, an ALLOC holds what it was charged. After an ALLOC that the
 * firmware refuses, others get an event.
 */
static void a_refused_alloc_is_an_event(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = fake_client_open(test, ctx->table, 2);

	fake_client_limit(ctx->client, FLEXMEM_RESOURCE_HANDLES, 1);
	KUNIT_ASSERT_EQ(test, try(ctx->client, 128), 0);
	KUNIT_EXPECT_EQ(test, try(ctx->client, 128), -ENOMEM);
	KUNIT_EXPECT_FALSE(test, read_event(ctx, &ctx->client->listener));
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, try(other, GIB), -EIO);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, &ctx->client->listener));
}

/*
 * Memory that is freed while ALLOC searches is reported after ALLOC has failed.
 */
static void a_free_in_between_counts(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_listener late;
	u64 began = flexmem_gauge_frees(&ctx->accounts->gauge);
	struct fake_reader reader;

	flexmem_pressure_listen(ctx->accounts, &late, NULL);
	fake_free(alloc(test, 128));
	flexmem_pressure_failed(ctx->accounts, &ctx->listener, began);
	expect_event(test, NONE, 0, 2 * GIB);
	/* The event is news for this file, although another has read it before. */
	fake_reader_add(&reader, &late);
	flexmem_pressure_failed(ctx->accounts, &late, began);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, &late));
	KUNIT_EXPECT_EQ(test, fake_reader_remove(&reader, &late), 1);
	flexmem_pressure_unlisten(ctx->accounts, &late);
}

/* Does what an ALLOC does after a failure. */
static u64 fail(struct ctx *ctx, struct flexmem_listener *listener)
{
	u64 began = flexmem_gauge_frees(&ctx->accounts->gauge);

	return flexmem_pressure_failed(ctx->accounts, listener, began);
}

static u64 number(struct ctx *ctx)
{
	return flexmem_pressure_number(ctx->accounts, &ctx->listener);
}

/*
 * The number of a file grows only when memory was freed, whichever events there
 * are and who reads them.
 */
static void a_number_counts_frees_that_were_seen(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct fake_block *block;
	u64 first;

	KUNIT_EXPECT_EQ(test, number(ctx), 1);
	block = alloc(test, GIB);
	alloc(test, SZ_2M);
	/* A new region has room for others. */
	first = number(ctx);
	KUNIT_EXPECT_EQ(test, first, 2);
	alloc(test, GIB - SZ_2M - 128);
	expect_event(test, CRITICAL, 2 * GIB - 128, 2 * GIB);
	KUNIT_EXPECT_EQ(test, number(ctx), first);
	fake_free(alloc(test, 128));
	fake_free(alloc(test, 128));
	KUNIT_EXPECT_EQ(test, number(ctx), first + 1);
	KUNIT_EXPECT_EQ(test, number(ctx), first + 1);
	fake_free(block);
	KUNIT_EXPECT_EQ(test, number(ctx), first + 2);
	expect_event(test, NONE, GIB - 128, 2 * GIB);
	KUNIT_EXPECT_EQ(test, number(ctx), first + 2);
}

/* After a failed ALLOC the number says whether memory was freed since. */
static void a_failure_knows_its_number(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	u64 began, event;

	/* Freed before the ALLOC. */
	fake_free(alloc(test, 128));
	event = fail(ctx, &ctx->listener);
	KUNIT_EXPECT_EQ(test, number(ctx), event);
	expect_quiet(test);
	KUNIT_EXPECT_EQ(test, number(ctx), event);
	/* After it. */
	fake_free(alloc(test, 128));
	KUNIT_EXPECT_GT(test, number(ctx), event);
	expect_event(test, NONE, 0, 2 * GIB);
	/* Meanwhile. */
	fake_free(alloc(test, 128));
	began = flexmem_gauge_frees(&ctx->accounts->gauge);
	fake_free(alloc(test, 128));
	event = flexmem_pressure_failed(ctx->accounts, &ctx->listener, began);
	KUNIT_EXPECT_GT(test, number(ctx), event);
	/* Meanwhile, but another thread of the file has counted it. */
	began = flexmem_gauge_frees(&ctx->accounts->gauge);
	fake_free(alloc(test, 128));
	number(ctx);
	event = flexmem_pressure_failed(ctx->accounts, &ctx->listener, began);
	KUNIT_EXPECT_GT(test, number(ctx), event);
	KUNIT_EXPECT_GE(test, event, 1);
}

/*
 * Each file with a failed ALLOC gets an event, even if its ALLOC failed while
 * events for other files were delivered.
 */
static void several_have_failed(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_listener second;

	flexmem_pressure_listen(ctx->accounts, &second, NULL);
	fail(ctx, &ctx->listener);
	fake_free(alloc(test, 128));
	fail(ctx, &second);
	expect_event(test, NONE, 0, 2 * GIB);
	KUNIT_EXPECT_FALSE(test, read_event(ctx, &second));
	fake_free(alloc(test, 128));
	KUNIT_EXPECT_TRUE(test, read_event(ctx, &second));
	expect_quiet(test);
	flexmem_pressure_unlisten(ctx->accounts, &second);
}

/*
 * An ALLOC fails while a thread reads an event about an earlier failure. The file
 * still gets the event about the later one.
 */
static void failure_during_a_read_keeps_its_event(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_accounts *accounts = ctx->accounts;

	fail(ctx, &ctx->listener);
	flexmem_accounts_freed(accounts);
	deliver(ctx);
	KUNIT_ASSERT_TRUE(test, flexmem_pressure_look(accounts, &ctx->listener,
						      &ctx->reading));
	fail(ctx, &ctx->listener);
	KUNIT_EXPECT_FALSE(test, flexmem_pressure_take(accounts, &ctx->listener,
						       &ctx->reading));
	flexmem_accounts_freed(accounts);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, &ctx->listener));
}

/* ALLOC and FREE queue the worker, which wakes up the readers. */
static void only_the_worker_wakes_readers(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct fake_block *block;
	struct fake_reader reader;
	int i;

	fake_reader_add(&reader, &ctx->listener);
	hold_events(ctx);
	alloc(test, GIB);
	for (i = 0; i < 10; i++) {
		block = alloc(test, GIB);
		KUNIT_EXPECT_EQ(test, try(ctx->client, 128), -ENOMEM);
		fake_free(block);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&reader.wakeups), 0);
	deliver(ctx);
	KUNIT_EXPECT_EQ(test, fake_reader_remove(&reader, &ctx->listener), 1);
}

/* Each file has readers, and an event wakes them all. */
static void an_event_wakes_every_file(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_listener *other =
		&fake_client_open(test, ctx->table, 2)->listener;
	struct flexmem_listener *file[] = {
		&ctx->client->listener, &ctx->listener, other,
	};
	struct fake_reader reader[ARRAY_SIZE(file)];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(file); i++)
		fake_reader_add(&reader[i], file[i]);
	hold_events(ctx);
	alloc(test, GIB);
	alloc(test, GIB);
	deliver(ctx);
	for (i = 0; i < ARRAY_SIZE(file); i++)
		KUNIT_EXPECT_EQ(test, fake_reader_remove(&reader[i], file[i]),
				1);
}

/* The removal of the device wakes the readers of files without an event, too. */
static void removal_wakes_every_file(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct fake_reader reader[2];

	fake_reader_add(&reader[0], &ctx->client->listener);
	fake_reader_add(&reader[1], &ctx->listener);
	KUNIT_EXPECT_FALSE(test, flexmem_pressure_has_news(ctx->accounts,
							   &ctx->listener));
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_TRUE(test, flexmem_pressure_has_news(ctx->accounts,
							  &ctx->listener));
	KUNIT_EXPECT_EQ(test, fake_reader_remove(&reader[0],
						 &ctx->client->listener), 1);
	KUNIT_EXPECT_EQ(test, fake_reader_remove(&reader[1], &ctx->listener), 1);
}

/* After close() the worker does not know the file any more. */
static void a_closed_file_gets_no_event(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *closed;

	closed = kunit_kzalloc(test, sizeof(*closed), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, closed);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_client_init(closed, ctx->table, fake_uid(2),
					    fake_cgroup(2), NULL));
	flexmem_client_fini(closed);
	memset(closed, 0xff, sizeof(*closed));
	alloc(test, GIB);
	alloc(test, GIB);
	expect_event(test, CRITICAL, 2 * GIB, 2 * GIB);
}

/*
 * FREE queues the worker only if an ALLOC has failed. After a failed ALLOC,
 * close() of a file without memory does not queue the worker either.
 */
static void free_without_a_failed_alloc_is_silent(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_gauge *gauge = &ctx->accounts->gauge;
	struct flexmem_account *account;

	/* No event is due yet, so the worker would stay in the queue. */
	gauge->next = jiffies + msecs_to_jiffies(FLEXMEM_EVENT_MS);
	fake_free(alloc(test, 128));
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&gauge->deliver));
	fail(ctx, &ctx->listener);
	account = flexmem_owner_open(ctx->accounts, fake_uid(3), fake_cgroup(3),
				     NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, account);
	flexmem_owner_close(account);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&gauge->deliver));
	expect_quiet(test);
	KUNIT_EXPECT_EQ(test, gauge->sequence, 1);
}

static struct kunit_case pressure_cases[] = {
	KUNIT_CASE(levels_of_a_thousand),
	KUNIT_CASE(levels_by_jumps),
	KUNIT_CASE(shares_are_exact),
	KUNIT_CASE(nothing_in_use_is_no_pressure),
	KUNIT_CASE(memory_moves_the_level_too),
	KUNIT_CASE(memory_counts_capacity_to_acquire),
	KUNIT_CASE(quarantined_bytes_stay_in_use),
	KUNIT_CASE(no_more_is_in_use_than_there_is),
	KUNIT_CASE(new_file_gets_the_level_as_event),
	KUNIT_CASE(an_event_is_taken_once),
	KUNIT_CASE(pressure_that_ended_is_no_event),
	KUNIT_CASE(pressure_that_returns_is_an_event),
	KUNIT_CASE(events_keep_their_distance),
	KUNIT_CASE(an_early_worker_waits),
	KUNIT_CASE(no_event_waits_for_jiffies_to_wrap),
	KUNIT_CASE(a_free_is_an_event_after_a_failure),
	KUNIT_CASE(successful_alloc_ends_the_memory_event),
	KUNIT_CASE(level_event_keeps_the_memory_event),
	KUNIT_CASE(impossible_size_gets_no_event),
	KUNIT_CASE(a_handle_is_an_event),
	KUNIT_CASE(a_refused_alloc_is_an_event),
	KUNIT_CASE(a_free_in_between_counts),
	KUNIT_CASE(a_number_counts_frees_that_were_seen),
	KUNIT_CASE(a_failure_knows_its_number),
	KUNIT_CASE(several_have_failed),
	KUNIT_CASE(failure_during_a_read_keeps_its_event),
	KUNIT_CASE(only_the_worker_wakes_readers),
	KUNIT_CASE(an_event_wakes_every_file),
	KUNIT_CASE(removal_wakes_every_file),
	KUNIT_CASE(a_closed_file_gets_no_event),
	KUNIT_CASE(free_without_a_failed_alloc_is_silent),
	{}
};

static struct kunit_suite pressure_suite = {
	.name = "flexmem_pressure",
	.init = pressure_test_init,
	.test_cases = pressure_cases,
};

kunit_test_suite(pressure_suite);
