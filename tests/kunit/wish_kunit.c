// SPDX-License-Identifier: GPL-2.0
/*
 * Wishes: the events that tell other files how many bytes an ALLOC lacks.
 * pressure_kunit.c tests the other events.
 */

#include <kunit/test.h>
#include <linux/err.h>
#include <linux/sizes.h>

#include "alloc/client.h"
#include "fake_device.h"
#include "parts/pressure.h"
#include "parts/reservation.h"
#include "parts/resize.h"
#include "region/table.h"

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_accounts *accounts;
	/* Files in the cgroups 1, 12, which is below 1, and 2. */
	struct flexmem_client *file, *below, *other;
	struct flexmem_reading reading;
	/* Who asks for memory meanwhile, and for what. */
	struct flexmem_client *asker;
	struct flexmem_request asked;
	/* What is freed meanwhile. */
	struct flexmem_allocation *gift;
};

static void make(struct kunit *test, u64 capacity,
		 const struct flexmem_settings *settings)
{
	struct ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, capacity);
	ctx->table = fake_table_create(test, ctx->fake, settings);
	ctx->accounts = &ctx->table->accounts;
	ctx->file = fake_client_open(test, ctx->table, 1);
	ctx->below = fake_client_open(test, ctx->table, 12);
	ctx->other = fake_client_open(test, ctx->table, 2);
	test->priv = ctx;
}

/* A device with room for two regions of 1 GiB. */
static int wish_test_init(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();

	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	settings.max_regions = 2;
	settings.nr_sizes = 1;
	settings.sizes[0] = GIB;
	make(test, 8 * GIB, &settings);
	return 0;
}

/*
 * Allocates. Returns the allocation, which close() frees, or an ERR_PTR() with
 * the reason in @request.
 */
static struct flexmem_allocation *try_for(struct flexmem_client *client,
					  u64 size, u32 flags,
					  struct flexmem_request *request)
{
	struct flexmem_allocation *allocation;

	allocation = fake_client_prepare(client, size, FLEXMEM_ALIGN, flags,
					 request);
	if (!IS_ERR(allocation))
		flexmem_client_publish(client, allocation);
	return allocation;
}

static struct flexmem_allocation *try(struct flexmem_client *client, u64 size)
{
	struct flexmem_request request;

	return try_for(client, size, 0, &request);
}

static struct flexmem_allocation *alloc(struct kunit *test,
					struct flexmem_client *client, u64 size)
{
	struct flexmem_allocation *allocation = try(client, size);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	return allocation;
}

static void fail(struct kunit *test, struct flexmem_client *client, u64 size)
{
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(client, size)), -ENOMEM);
}

/* Expects that an ALLOC fails, and that no FREE could let it succeed. */
static void fail_for_ever(struct kunit *test, struct flexmem_client *client,
			  u64 size, u32 flags)
{
	struct flexmem_request request;

	KUNIT_EXPECT_EQ(test, PTR_ERR(try_for(client, size, flags, &request)),
			-ENOMEM);
	KUNIT_EXPECT_NE(test, request.reason, FLEXMEM_REASON_REGION_SIZE);
	KUNIT_EXPECT_EQ(test, request.event, 0);
}

static void free_all(struct flexmem_client *client,
		     struct flexmem_allocation *allocation)
{
	flexmem_client_detach(client, allocation->handle);
	flexmem_client_release(client, allocation);
}

static void deliver(struct ctx *ctx)
{
	fake_events_deliver(ctx->accounts);
}

/*
 * Reads the event of a file. Returns false, and empties the event, if there is
 * none.
 */
static bool read_event(struct ctx *ctx, struct flexmem_client *client)
{
	bool is_new;

	deliver(ctx);
	is_new = flexmem_pressure_look(ctx->accounts, &client->listener,
				       &ctx->reading) &&
		 flexmem_pressure_take(ctx->accounts, &client->listener,
				       &ctx->reading);
	if (!is_new)
		ctx->reading.event = (struct flexmem_event) {};
	return is_new;
}

/* Expects that a file is told of @bytes, once; 0: that it has no event. */
static void expect_wish(struct kunit *test, struct flexmem_client *client,
			u64 bytes)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, read_event(ctx, client), !!bytes);
	KUNIT_EXPECT_EQ(test, ctx->reading.event.wanted, bytes);
	KUNIT_EXPECT_EQ(test, ctx->reading.event.flags,
			bytes ? FLEXMEM_EVENT_WANTED : 0);
	KUNIT_EXPECT_FALSE(test, read_event(ctx, client));
}

static void expect_wishes(struct kunit *test, u64 file, u64 below, u64 other)
{
	struct ctx *ctx = test->priv;

	expect_wish(test, ctx->file, file);
	expect_wish(test, ctx->below, below);
	expect_wish(test, ctx->other, other);
}

/* All other files hear of it, at each level. */
static void a_lack_of_room_is_for_all_others(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->other, GIB);
	alloc(test, ctx->other, GIB / 2);
	fail(test, ctx->file, GIB);
	expect_wishes(test, 0, GIB, GIB);
	KUNIT_EXPECT_EQ(test, ctx->accounts->gauge.level,
			FLEXMEM_PRESSURE_NONE);
	fail(test, ctx->other, 3 * (u64)SZ_512M / 2);
	/* The file has one and a half GiB, and there are only two. */
	expect_wishes(test, 0, 0, 0);
	fail(test, ctx->below, SZ_512M + SZ_2M);
	expect_wishes(test, SZ_512M + SZ_2M, 0, SZ_512M + SZ_2M);
}

/* No file hears of an ALLOC that fails even if no other file has memory. */
static void what_is_impossible_is_no_wish(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->other, GIB / 2);
	alloc(test, ctx->below, FLEXMEM_ALIGN);
	/* As long as the capacity is not known, a region of any size could come. */
	flexmem_table_outdate(ctx->table);
	fail(test, ctx->file, 100 * GIB);
	expect_wishes(test, 0, 0, 0);
	fail(test, ctx->file, GIB + FLEXMEM_ALIGN);
	fail(test, ctx->file, 1ULL << 62);
	expect_wishes(test, 0, 0, 0);
	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_BYTES, GIB / 2);
	fail(test, ctx->file, GIB / 2 + FLEXMEM_ALIGN);
	expect_wishes(test, 0, 0, 0);
	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_HANDLES, 0);
	fail(test, ctx->file, FLEXMEM_ALIGN);
	expect_wishes(test, 0, 0, 0);
}

/*
 * The regions that exist are too small, and the device can give no further one,
 * although it could have given a larger one at first.
 */
static void regions_that_are_too_small(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct flexmem_allocation *first, *second;
	struct ctx *ctx;

	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	settings.nr_sizes = 2;
	settings.sizes[0] = 4 * GIB;
	settings.sizes[1] = 8 * GIB;
	make(test, 8 * GIB, &settings);
	ctx = test->priv;
	first = alloc(test, ctx->other, 4 * GIB);
	second = alloc(test, ctx->other, GIB);
	fail_for_ever(test, ctx->file, 6 * GIB, 0);
	expect_wishes(test, 0, 0, 0);
	free_all(ctx->other, first);
	free_all(ctx->other, second);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, ctx->file));
	fail_for_ever(test, ctx->below, 6 * GIB, 0);
	expect_wishes(test, 0, 0, 0);
}

/* A limit refuses before the device is asked for a region. */
static void a_region_that_could_come(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct flexmem_request request;
	struct ctx *ctx;

	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	settings.nr_sizes = 2;
	settings.sizes[0] = 4 * GIB;
	settings.sizes[1] = 8 * GIB;
	make(test, 11 * GIB, &settings);
	ctx = test->priv;
	alloc(test, ctx->below, GIB);
	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_BYTES, 7 * GIB - SZ_2M);
	/* The device has 7 GiB left. */
	KUNIT_EXPECT_EQ(test, PTR_ERR(try_for(ctx->file, 6 * GIB, 0, &request)),
			-ENOMEM);
	KUNIT_EXPECT_NE(test, request.event, 0);
	expect_wishes(test, 0, 6 * GIB, 0);
	alloc(test, ctx->other, 4 * GIB);
	fail_for_ever(test, ctx->file, 6 * GIB, 0);
	expect_wishes(test, 0, 0, 0);
}

/* Programs get no region but that of their slot. */
static void a_slot_for_programs_is_too_small(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct flexmem_allocation *program;
	struct flexmem_request request;
	struct ctx *ctx;

	settings.nr_sizes = 2;
	settings.sizes[0] = 4 * GIB;
	settings.sizes[1] = GIB;
	settings.program_slots = 1;
	make(test, 32 * GIB, &settings);
	ctx = test->priv;
	program = try_for(ctx->other, FLEXMEM_ALIGN, FLEXMEM_ALLOC_PROGRAM,
			  &request);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, program);
	fail_for_ever(test, ctx->file, 2 * GIB, FLEXMEM_ALLOC_PROGRAM);
	expect_wishes(test, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try_for(ctx->file, GIB,
					      FLEXMEM_ALLOC_PROGRAM, &request)),
			-ENOMEM);
	KUNIT_EXPECT_NE(test, request.event, 0);
	expect_wishes(test, 0, GIB, GIB);
	free_all(ctx->other, program);
}

/* What is reserved for others cannot help, whoever frees it. */
static void reserved_regions_do_not_count(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_account *cgroup = ctx->other->account->parent;
	enum flexmem_reason reason;

	KUNIT_ASSERT_EQ(test, 0, flexmem_reservation_set(ctx->table, cgroup,
							 GIB, 1, &reason));
	/* Each region has memory of another file. */
	alloc(test, ctx->other, SZ_2M);
	alloc(test, ctx->file, SZ_512M + SZ_64M);
	alloc(test, ctx->below, SZ_2M);
	fail(test, ctx->file, SZ_512M);
	expect_wishes(test, 0, 0, 0);
	/* A file that has little in the other region lacks what is in it. */
	fail(test, ctx->below, SZ_512M);
	expect_wishes(test, SZ_512M, 0, SZ_512M);
	/* So does the file whose reserved region is full of its own memory. */
	alloc(test, ctx->other, GIB - SZ_2M);
	fail(test, ctx->other, SZ_512M);
	expect_wishes(test, SZ_512M, SZ_512M, 0);
	KUNIT_ASSERT_EQ(test, 0, flexmem_reservation_set(ctx->table, cgroup, 0,
							 0, &reason));
}

/* The file itself has all regions that a limit allows. */
static void own_regions_fill_a_limit(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_REGIONS, 1);
	alloc(test, ctx->file, GIB - SZ_64M);
	alloc(test, ctx->below, SZ_32M);
	fail(test, ctx->file, SZ_128M);
	expect_wishes(test, 0, 0, 0);
	alloc(test, ctx->other, SZ_64M);
	fail(test, ctx->file, SZ_128M);
	expect_wishes(test, 0, 0, 0);
	/* In its own region the other file has these bytes. */
	fail(test, ctx->file, SZ_64M);
	expect_wishes(test, 0, SZ_64M, 0);
	/* And the other file lacks what the first one has there. */
	fail(test, ctx->below, GIB - SZ_64M);
	expect_wishes(test, GIB - SZ_64M, 0, 0);
}

/* Memory of the file itself lies in the way, so no other file can help. */
static void own_memory_lies_in_the_way(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *first, *second, *third;
	struct flexmem_request request;

	first = alloc(test, ctx->file, SZ_256M);
	alloc(test, ctx->file, SZ_2M);
	second = alloc(test, ctx->file, GIB - SZ_256M - SZ_2M);
	third = alloc(test, ctx->file, SZ_512M);
	alloc(test, ctx->file, SZ_2M);
	free_all(ctx->file, first);
	free_all(ctx->file, second);
	free_all(ctx->file, third);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try_for(ctx->file, GIB - SZ_64M, 0,
					      &request)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, request.reason, FLEXMEM_REASON_FRAGMENTATION);
	KUNIT_EXPECT_TRUE(test, request.alone);
	expect_wishes(test, 0, 0, 0);
	/* Another file has memory there, too. */
	alloc(test, ctx->other, SZ_2M);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try_for(ctx->file, GIB - SZ_64M, 0,
					      &request)), -ENOMEM);
	KUNIT_EXPECT_FALSE(test, request.alone);
	expect_wishes(test, 0, GIB - SZ_64M, GIB - SZ_64M);
}

/* Others make room below a limit, and the memory is in a region of nobody. */
static void a_limit_and_a_region_of_nobody(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *empty, *given;
	struct flexmem_request request;

	alloc(test, ctx->file, SZ_512M);
	empty = alloc(test, ctx->other, GIB);
	free_all(ctx->other, empty);
	given = alloc(test, ctx->below, SZ_64M);
	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_BYTES, GIB + SZ_128M);
	deliver(ctx);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try_for(ctx->file, SZ_512M + SZ_128M, 0,
					      &request)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, request.reason, FLEXMEM_REASON_CGROUP_LIMIT);
	KUNIT_EXPECT_FALSE(test, request.alone);
	expect_wishes(test, 0, SZ_512M + SZ_128M, 0);
	free_all(ctx->below, given);
	alloc(test, ctx->file, SZ_512M + SZ_128M);
}

/* Another process may map memory that the file has freed. */
static void own_memory_that_others_use(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *used = alloc(test, ctx->file, GIB);
	struct flexmem_request request;

	alloc(test, ctx->file, SZ_512M);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try_for(ctx->file, GIB - SZ_2M, 0,
					      &request)), -ENOMEM);
	KUNIT_EXPECT_TRUE(test, request.alone);
	flexmem_allocation_get(used);
	free_all(ctx->file, used);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try_for(ctx->file, GIB - SZ_2M, 0,
					      &request)), -ENOMEM);
	KUNIT_EXPECT_FALSE(test, request.alone);
	expect_wishes(test, 0, 0, 0);
	flexmem_allocation_put(used);
	used = alloc(test, ctx->file, SZ_2M);
	alloc(test, ctx->file, GIB - SZ_2M);
	/* This little memory makes no room. */
	flexmem_allocation_get(used);
	free_all(ctx->file, used);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try_for(ctx->file, GIB - SZ_2M, 0,
					      &request)), -ENOMEM);
	KUNIT_EXPECT_TRUE(test, request.alone);
	flexmem_allocation_put(used);
}

static void give_meanwhile(void *arg)
{
	struct ctx *ctx = arg;

	ctx->fake->during_acquire = NULL;
	free_all(ctx->other, ctx->gift);
}

/* What others have is read after the search. */
static void memory_that_is_freed_meanwhile(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct flexmem_request request;
	struct ctx *ctx;

	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	settings.nr_sizes = 1;
	settings.sizes[0] = GIB;
	make(test, GIB, &settings);
	ctx = test->priv;
	ctx->gift = alloc(test, ctx->other, SZ_512M);
	ctx->fake->during_acquire = give_meanwhile;
	ctx->fake->during_acquire_arg = ctx;
	KUNIT_EXPECT_EQ(test, PTR_ERR(try_for(ctx->file, SZ_512M + SZ_2M, 0,
					      &request)), -ENOMEM);
	KUNIT_EXPECT_NULL(test, ctx->fake->during_acquire);
	KUNIT_EXPECT_FALSE(test, request.alone);
	alloc(test, ctx->file, SZ_512M + SZ_2M);
}

/* A limit of regions, and only files of other cgroups are in the region. */
static void nobody_else_has_regions_of_a_limit(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_REGIONS, 1);
	alloc(test, ctx->file, SZ_2M);
	alloc(test, ctx->other, SZ_512M);
	fail(test, ctx->file, SZ_512M);
	expect_wishes(test, 0, 0, 0);
}

/* Fails for a place. As much is free elsewhere. */
static void fail_aligned(struct kunit *test, struct flexmem_client *client,
			 u64 size)
{
	struct flexmem_request request;

	KUNIT_EXPECT_EQ(test, PTR_ERR(fake_client_prepare(client, size, GIB / 2,
							  0, &request)),
			-ENOMEM);
}

static void grow(struct kunit *test, struct flexmem_client *client,
		 struct flexmem_allocation *allocation, u64 length)
{
	struct flexmem_resize cmd = {
		.size = sizeof(cmd),
		.handle = allocation->handle,
		.length = length,
	};
	struct flexmem_resizing resizing;

	KUNIT_ASSERT_EQ(test, 0, flexmem_resize_prepare(client, &cmd, &resizing));
	flexmem_resize_commit(&resizing);
}

/* A wish ends when the file gets as much. */
static void a_wish_ends_with_success(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	u64 sequence;

	/* The second region has a hole behind 2 MiB. */
	alloc(test, ctx->other, GIB);
	alloc(test, ctx->other, SZ_2M);
	fail_aligned(test, ctx->file, SZ_512M + SZ_64M);
	expect_wishes(test, 0, SZ_512M + SZ_64M, SZ_512M + SZ_64M);
	sequence = ctx->accounts->gauge.sequence;
	fake_events_hold(ctx->accounts);
	fail_aligned(test, ctx->file, SZ_512M + SZ_64M);
	allocation = alloc(test, ctx->file, SZ_512M + SZ_64M);
	expect_wishes(test, 0, 0, 0);
	fake_events_hold(ctx->accounts);
	fail_aligned(test, ctx->file, SZ_8M);
	grow(test, ctx->file, allocation, SZ_512M + SZ_64M + SZ_8M);
	expect_wishes(test, 0, 0, 0);
	/* No event was made. */
	KUNIT_EXPECT_EQ(test, ctx->accounts->gauge.sequence, sequence);
	fake_events_hold(ctx->accounts);
	fail(test, ctx->file, SZ_512M);
	grow(test, ctx->file, allocation, SZ_512M + SZ_64M + SZ_16M);
	expect_wishes(test, 0, SZ_512M, SZ_512M);
}

/* A RESIZE is no ALLOC: the file still waits for memory. */
static void a_resize_ends_no_wait_for_a_free(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *gift, *allocation;

	alloc(test, ctx->other, GIB);
	gift = alloc(test, ctx->other, SZ_512M);
	allocation = alloc(test, ctx->file, SZ_64M);
	fail(test, ctx->file, SZ_512M);
	deliver(ctx);
	grow(test, ctx->file, allocation, SZ_64M + SZ_2M);
	free_all(ctx->other, gift);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, ctx->file));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.flags, FLEXMEM_EVENT_FREED);
}

/* A small allocation is not what a large request lacks. */
static void a_small_success_ends_no_wish(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->other, GIB);
	alloc(test, ctx->other, SZ_512M);
	fake_events_hold(ctx->accounts);
	fail(test, ctx->file, GIB);
	alloc(test, ctx->file, SZ_2M);
	expect_wishes(test, 0, GIB, GIB);
	fake_events_hold(ctx->accounts);
	fail(test, ctx->file, GIB);
	fail(test, ctx->below, SZ_512M + SZ_2M);
	alloc(test, ctx->file, SZ_2M);
	expect_wishes(test, SZ_512M + SZ_2M, GIB, GIB + SZ_512M + SZ_2M);
}

static void what_an_event_has_told_stays(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->other, GIB);
	alloc(test, ctx->other, SZ_2M);
	fail_aligned(test, ctx->file, SZ_512M + SZ_64M);
	deliver(ctx);
	alloc(test, ctx->file, SZ_512M + SZ_64M);
	expect_wishes(test, 0, SZ_512M + SZ_64M, SZ_512M + SZ_64M);
}

/* Only files that are charged to a limit hear that the limit has refused. */
static void a_limit_is_for_files_below_it(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_BYTES, SZ_512M);
	alloc(test, ctx->below, SZ_256M);
	alloc(test, ctx->file, SZ_128M);
	fail(test, ctx->file, SZ_256M);
	expect_wishes(test, 0, SZ_256M, 0);
	fail(test, ctx->below, SZ_128M + SZ_2M);
	expect_wishes(test, SZ_128M + SZ_2M, 0, 0);
	/* The file itself has too much. */
	fail(test, ctx->file, SZ_512M - SZ_64M);
	expect_wishes(test, 0, 0, 0);
	/* A limit below: the file above has nothing that is charged to it. */
	fake_client_limit(ctx->below, FLEXMEM_RESOURCE_BYTES, SZ_256M + SZ_2M);
	/* A new limit may be higher, so it is an event after a failure. */
	KUNIT_EXPECT_TRUE(test, read_event(ctx, ctx->file));
	KUNIT_EXPECT_TRUE(test, read_event(ctx, ctx->below));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.flags, FLEXMEM_EVENT_FREED);
	fail(test, ctx->below, SZ_4M);
	expect_wishes(test, 0, 0, 0);
}

/* A wish wakes only the readers of files that could fulfil it. */
static void a_wish_wakes_whom_it_concerns(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_listener *file[] = {
		&ctx->file->listener, &ctx->below->listener,
		&ctx->other->listener,
	};
	struct fake_reader reader[ARRAY_SIZE(file)];
	unsigned int i;

	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_BYTES, SZ_512M);
	alloc(test, ctx->below, SZ_256M);
	for (i = 0; i < ARRAY_SIZE(file); i++)
		fake_reader_add(&reader[i], file[i]);
	fail(test, ctx->file, SZ_512M - SZ_64M);
	deliver(ctx);
	KUNIT_EXPECT_EQ(test, fake_reader_remove(&reader[0], file[0]), 0);
	KUNIT_EXPECT_EQ(test, fake_reader_remove(&reader[1], file[1]), 1);
	KUNIT_EXPECT_EQ(test, fake_reader_remove(&reader[2], file[2]), 0);
}

/* The same for a limit of handles, and for one of regions. */
static void a_limit_of_handles_or_regions(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_HANDLES, 1);
	allocation = alloc(test, ctx->below, GIB);
	fail(test, ctx->file, SZ_2M);
	expect_wishes(test, 0, SZ_2M, 0);
	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_HANDLES,
			  FLEXMEM_NO_LIMIT);
	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_REGIONS, 1);
	fail(test, ctx->file, SZ_4M);
	expect_wishes(test, 0, SZ_4M, 0);
	flexmem_client_detach(ctx->below, allocation->handle);
	flexmem_client_release(ctx->below, allocation);
	alloc(test, ctx->file, SZ_4M);
}

/*
 * Several ALLOCs fail before an event: each file hears of what the other files
 * lack, and of each of them only of the largest ALLOC.
 */
static void several_wishes_are_one_event(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	u64 sequence = ctx->accounts->gauge.sequence;

	alloc(test, ctx->other, GIB / 2);
	alloc(test, ctx->file, GIB - SZ_64M);
	deliver(ctx);
	fake_events_hold(ctx->accounts);
	fail(test, ctx->below, SZ_512M + SZ_2M);
	fail(test, ctx->other, SZ_512M + SZ_8M);
	fail(test, ctx->below, SZ_512M + SZ_16M);
	fail(test, ctx->below, SZ_512M + SZ_4M);
	fail(test, ctx->other, SZ_512M + SZ_4M);
	KUNIT_EXPECT_EQ(test, ctx->accounts->gauge.sequence, sequence);
	expect_wishes(test, GIB + SZ_16M + SZ_8M, SZ_512M + SZ_8M,
		      SZ_512M + SZ_16M);
	KUNIT_EXPECT_EQ(test, ctx->accounts->gauge.sequence, sequence + 1);
}

/* Nobody is asked for more than the function has. */
static void the_sum_is_no_more_than_the_memory(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *hog = fake_client_open(test, ctx->table, 3);

	alloc(test, hog, GIB);
	alloc(test, hog, SZ_512M);
	fake_events_hold(ctx->accounts);
	fail(test, ctx->file, GIB);
	fail(test, ctx->below, GIB);
	fail(test, ctx->other, GIB);
	expect_wish(test, hog, 2 * GIB);
	expect_wishes(test, 2 * GIB, 2 * GIB, 2 * GIB);
}

/*
 * A file reads late. It still gets the largest of the latest wishes, whatever
 * it lacks itself.
 */
static void a_smaller_wish_hides_no_larger_one(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;

	alloc(test, ctx->other, GIB);
	alloc(test, ctx->below, SZ_512M);
	fail(test, ctx->file, GIB);
	deliver(ctx);
	fail(test, ctx->below, SZ_512M + SZ_8M);
	deliver(ctx);
	fail(test, ctx->other, SZ_512M + SZ_4M);
	fail(test, ctx->other, SZ_512M + SZ_2M);
	deliver(ctx);
	expect_wishes(test, SZ_512M + SZ_8M, GIB, GIB);
	/* Its own wish of the same event does not count, nor do those before. */
	for (i = 0; i < 2 * FLEXMEM_OLD_WISHES; i++) {
		fail(test, ctx->file, GIB - SZ_2M * i);
		fail(test, ctx->other, SZ_512M + SZ_4M);
		deliver(ctx);
	}
	expect_wish(test, ctx->other, GIB);
	expect_wish(test, ctx->file, SZ_512M + SZ_4M);
	expect_wish(test, ctx->below, GIB + SZ_512M + SZ_4M - SZ_2M * FLEXMEM_OLD_WISHES);
}

/* A file lacks room, and then a limit refuses it: only the latter wish counts. */
static void a_file_has_one_wish_at_a_time(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->other, SZ_512M + SZ_256M);
	alloc(test, ctx->below, SZ_512M);
	alloc(test, ctx->other, SZ_256M + SZ_64M);
	alloc(test, ctx->file, SZ_4M);
	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_BYTES, GIB);
	fake_events_hold(ctx->accounts);
	fail(test, ctx->below, SZ_256M + SZ_128M);
	fail(test, ctx->below, SZ_512M);
	expect_wishes(test, SZ_512M, 0, 0);
	fake_events_hold(ctx->accounts);
	fail(test, ctx->below, SZ_512M);
	fail(test, ctx->other, SZ_512M + SZ_128M);
	expect_wishes(test, SZ_512M + SZ_128M, SZ_512M + SZ_128M, 0);
	fake_events_hold(ctx->accounts);
	fail(test, ctx->below, SZ_512M);
	fail(test, ctx->below, SZ_256M + SZ_128M);
	expect_wishes(test, SZ_256M + SZ_128M, 0, SZ_256M + SZ_128M);
}

/* While a wish waits for its event, the ALLOCs of others do not queue the worker. */
static void a_wish_is_queued_once(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct delayed_work *work = &ctx->accounts->gauge.deliver;

	alloc(test, ctx->other, GIB);
	alloc(test, ctx->other, SZ_2M);
	fake_events_hold(ctx->accounts);
	fail(test, ctx->file, GIB);
	cancel_delayed_work_sync(work);
	alloc(test, ctx->below, SZ_2M);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(work));
	fail(test, ctx->below, GIB);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, ctx->other));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.wanted, 2 * GIB);
}

/* What others fail with at a limit of their own is not told to a file. */
static void foreign_failures_are_not_counted(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_request before, after;
	unsigned int i;

	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_BYTES, SZ_2M);
	alloc(test, ctx->below, SZ_1M);
	alloc(test, ctx->other, GIB);
	alloc(test, ctx->other, SZ_512M);
	try_for(ctx->other, GIB, 0, &before);
	deliver(ctx);
	for (i = 0; i < 7; i++) {
		fail(test, ctx->file, SZ_2M);
		deliver(ctx);
	}
	KUNIT_EXPECT_EQ(test, flexmem_pressure_number(ctx->accounts,
						      &ctx->other->listener),
			before.event);
	try_for(ctx->other, GIB, 0, &after);
	KUNIT_EXPECT_EQ(test, before.event, after.event);
	/* Nor do the numbers of the file's events count them. */
	KUNIT_EXPECT_TRUE(test, read_event(ctx, ctx->below));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.sequence, 1);
	for (i = 0; i < 7; i++) {
		fail(test, ctx->other, SZ_512M);
		deliver(ctx);
	}
	KUNIT_EXPECT_TRUE(test, read_event(ctx, ctx->below));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.sequence, 2);
}

/* A file that misses events reads the largest wish, but none of the next event. */
static void a_late_reader_gets_the_largest_wish(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *late;

	alloc(test, ctx->other, GIB);
	alloc(test, ctx->other, SZ_512M);
	fail(test, ctx->file, GIB);
	deliver(ctx);
	late = fake_client_open(test, ctx->table, 3);
	expect_wish(test, late, 0);
	fake_events_hold(ctx->accounts);
	fail(test, ctx->file, SZ_512M + SZ_2M);
	/* Until the event is delivered, a file reads the wish before. */
	KUNIT_EXPECT_FALSE(test, flexmem_pressure_look(ctx->accounts,
						       &late->listener,
						       &ctx->reading));
	KUNIT_EXPECT_TRUE(test, flexmem_pressure_look(ctx->accounts,
						      &ctx->other->listener,
						      &ctx->reading));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.wanted, GIB);
	expect_wish(test, late, SZ_512M + SZ_2M);
	expect_wish(test, ctx->other, GIB);
}

/* Events whose wishes were taken back are not told, however many there are. */
static void what_was_taken_back_hides_no_wish(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;

	alloc(test, ctx->other, GIB);
	alloc(test, ctx->other, SZ_2M);
	fail(test, ctx->below, GIB);
	deliver(ctx);
	for (i = 0; i < 2 * FLEXMEM_OLD_WISHES; i++) {
		fake_events_hold(ctx->accounts);
		fail_aligned(test, ctx->file, SZ_512M + SZ_64M);
		free_all(ctx->file, alloc(test, ctx->file, SZ_512M + SZ_64M));
		deliver(ctx);
	}
	KUNIT_EXPECT_TRUE(test, read_event(ctx, ctx->other));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.wanted, GIB);
}

/* Two threads look at a wish. One of them gets the event. */
static void a_wish_is_taken_once(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_listener *listener = &ctx->other->listener;
	struct flexmem_reading second;

	alloc(test, ctx->other, GIB);
	alloc(test, ctx->below, SZ_2M);
	fail(test, ctx->file, GIB);
	deliver(ctx);
	KUNIT_EXPECT_TRUE(test, flexmem_pressure_look(ctx->accounts, listener,
						      &ctx->reading));
	KUNIT_EXPECT_TRUE(test, flexmem_pressure_look(ctx->accounts, listener,
						      &second));
	KUNIT_EXPECT_TRUE(test, flexmem_pressure_take(ctx->accounts, listener,
						      &second));
	KUNIT_EXPECT_FALSE(test, flexmem_pressure_take(ctx->accounts, listener,
						       &ctx->reading));
}

/* An ALLOC that fails while a thread reads a wish counts the wish as unread. */
static void a_failure_during_a_read_keeps_the_wish(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->other, GIB);
	alloc(test, ctx->other, GIB / 4 * 3);
	fail(test, ctx->below, GIB / 2);
	fail(test, ctx->file, GIB / 2);
	deliver(ctx);
	KUNIT_EXPECT_TRUE(test, flexmem_pressure_look(ctx->accounts,
						      &ctx->below->listener,
						      &ctx->reading));
	fail(test, ctx->below, GIB / 2);
	KUNIT_EXPECT_FALSE(test, flexmem_pressure_take(ctx->accounts,
						       &ctx->below->listener,
						       &ctx->reading));
	KUNIT_EXPECT_TRUE(test, read_event(ctx, ctx->below));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.wanted, GIB / 2);
}

/* The flags tell what the event is about. */
static void flags_tell_the_kind(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	alloc(test, ctx->other, GIB);
	allocation = alloc(test, ctx->other, GIB / 4 * 3);
	fail(test, ctx->file, GIB / 2);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, ctx->below));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.flags,
			FLEXMEM_EVENT_LEVEL | FLEXMEM_EVENT_WANTED);
	KUNIT_EXPECT_EQ(test, ctx->reading.event.wanted, GIB / 2);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, ctx->file));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.flags, FLEXMEM_EVENT_LEVEL);
	flexmem_client_detach(ctx->other, allocation->handle);
	flexmem_client_release(ctx->other, allocation);
	KUNIT_EXPECT_TRUE(test, read_event(ctx, ctx->file));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.flags,
			FLEXMEM_EVENT_LEVEL | FLEXMEM_EVENT_FREED);
}

/* ---- charges of requests that fail ---- */

static void ask_meanwhile(void *arg)
{
	struct ctx *ctx = arg;

	ctx->fake->during_acquire = NULL;
	flexmem_client_prepare(ctx->asker, &ctx->asked);
}

static void expect_flags(struct kunit *test, struct flexmem_client *client,
			 u32 flags)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_TRUE(test, read_event(ctx, client));
	KUNIT_EXPECT_EQ(test, ctx->reading.event.flags, flags);
}

/*
 * An ALLOC of 3 GiB fails for lack of room. Meanwhile a limit of 4 GiB refuses
 * another one, because of this charge. @same: it is from a file of the same
 * cgroup. @flags: of the event that the other file gets.
 */
static void refuse_meanwhile(struct kunit *test, bool same,
			     const struct flexmem_request *asked, u32 flags)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	settings.nr_sizes = 1;
	settings.sizes[0] = 4 * GIB;
	make(test, 4 * GIB, &settings);
	ctx = test->priv;
	alloc(test, ctx->other, 2 * GIB);
	fake_client_limit(ctx->file, FLEXMEM_RESOURCE_BYTES, 4 * GIB);
	ctx->fake->during_acquire = ask_meanwhile;
	ctx->fake->during_acquire_arg = ctx;
	ctx->asked = *asked;
	ctx->asker = same ? fake_client_open(test, ctx->table, 1) : ctx->below;
	fail(test, ctx->file, 3 * GIB);
	KUNIT_EXPECT_NULL(test, ctx->fake->during_acquire);
	expect_flags(test, ctx->asker, flags);
	expect_flags(test, ctx->file, FLEXMEM_EVENT_WANTED);
}

static struct flexmem_request request_of(u64 size)
{
	return (struct flexmem_request) {
		.size = size,
		.alignment = FLEXMEM_ALIGN,
		.domains = 1,
		.first = 1,
		.chunks = 1,
	};
}

static void a_charge_that_ends_is_an_event_for_smaller_ones(struct kunit *test)
{
	struct flexmem_request same = request_of(3 * GIB);
	struct flexmem_request smaller = request_of(2 * GIB);
	struct ctx *ctx;

	refuse_meanwhile(test, true, &same, FLEXMEM_EVENT_WANTED);
	refuse_meanwhile(test, true, &smaller,
			 FLEXMEM_EVENT_WANTED | FLEXMEM_EVENT_FREED);
	/* Another cgroup may have regions that are reserved for it. */
	refuse_meanwhile(test, false, &same,
			 FLEXMEM_EVENT_WANTED | FLEXMEM_EVENT_FREED);
	/* It is one only once. */
	ctx = test->priv;
	fail(test, ctx->below, 3 * GIB);
	fail(test, ctx->file, 3 * GIB);
	expect_flags(test, ctx->below, FLEXMEM_EVENT_WANTED);
	alloc(test, ctx->below, 2 * GIB);
}

/* A request may fit where another one of its size does not. */
static void a_charge_that_ends_is_an_event_for_other_places(struct kunit *test)
{
	struct flexmem_request aligned = request_of(3 * GIB);
	struct flexmem_request pieces = request_of(3 * GIB);

	aligned.alignment = SZ_2M;
	refuse_meanwhile(test, true, &aligned,
			 FLEXMEM_EVENT_WANTED | FLEXMEM_EVENT_FREED);
	pieces.chunks = 2;
	refuse_meanwhile(test, true, &pieces,
			 FLEXMEM_EVENT_WANTED | FLEXMEM_EVENT_FREED);
}

static struct kunit_case wish_cases[] = {
	KUNIT_CASE(a_lack_of_room_is_for_all_others),
	KUNIT_CASE(what_is_impossible_is_no_wish),
	KUNIT_CASE(regions_that_are_too_small),
	KUNIT_CASE(a_region_that_could_come),
	KUNIT_CASE(a_slot_for_programs_is_too_small),
	KUNIT_CASE(reserved_regions_do_not_count),
	KUNIT_CASE(own_regions_fill_a_limit),
	KUNIT_CASE(own_memory_lies_in_the_way),
	KUNIT_CASE(a_limit_and_a_region_of_nobody),
	KUNIT_CASE(own_memory_that_others_use),
	KUNIT_CASE(memory_that_is_freed_meanwhile),
	KUNIT_CASE(nobody_else_has_regions_of_a_limit),
	KUNIT_CASE(a_wish_ends_with_success),
	KUNIT_CASE(a_resize_ends_no_wait_for_a_free),
	KUNIT_CASE(a_small_success_ends_no_wish),
	KUNIT_CASE(what_an_event_has_told_stays),
	KUNIT_CASE(a_limit_is_for_files_below_it),
	KUNIT_CASE(a_wish_wakes_whom_it_concerns),
	KUNIT_CASE(a_limit_of_handles_or_regions),
	KUNIT_CASE(several_wishes_are_one_event),
	KUNIT_CASE(a_wish_is_queued_once),
	KUNIT_CASE(the_sum_is_no_more_than_the_memory),
	KUNIT_CASE(a_smaller_wish_hides_no_larger_one),
	KUNIT_CASE(a_file_has_one_wish_at_a_time),
	KUNIT_CASE(foreign_failures_are_not_counted),
	KUNIT_CASE(a_late_reader_gets_the_largest_wish),
	KUNIT_CASE(what_was_taken_back_hides_no_wish),
	KUNIT_CASE(a_wish_is_taken_once),
	KUNIT_CASE(a_failure_during_a_read_keeps_the_wish),
	KUNIT_CASE(flags_tell_the_kind),
	KUNIT_CASE(a_charge_that_ends_is_an_event_for_smaller_ones),
	KUNIT_CASE(a_charge_that_ends_is_an_event_for_other_places),
	{}
};

static struct kunit_suite wish_suite = {
	.name = "flexmem_wish",
	.init = wish_test_init,
	.test_cases = wish_cases,
};

kunit_test_suite(wish_suite);
