// SPDX-License-Identifier: GPL-2.0
/* Clients and their handles (A1, A18, A39, B3, D6, D20). */

#include <kunit/test.h>
#include <linux/align.h>
#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/limits.h>
#include <linux/prandom.h>
#include <linux/string.h>

#include "client.h"
#include "fake_device.h"
#include "snapshot.h"
#include "table.h"

#define PLENTY (1024 * GIB)

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_client *client;
	struct flexmem_place place;
	struct flexmem_view snapshot;
};

static struct ctx *make(struct kunit *test, enum flexmem_mode mode,
			const struct flexmem_settings *settings)
{
	struct ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->fake = fake_device_create(test, mode, 8, PLENTY);
	ctx->table = fake_table_create(test, ctx->fake, settings);
	ctx->client = fake_client_open(test, ctx->table, 1);
	return ctx;
}

/* One region that fills up before there is another; at most 5 handles. */
static int client_test_init(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();

	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	settings.max_handles = 5;
	test->priv = make(test, FLEXMEM_MODE_VF, &settings);
	return 0;
}

static u64 nr_handles(const struct flexmem_client *client)
{
	return client->account->used[FLEXMEM_RESOURCE_HANDLES];
}

static void check(struct kunit *test, struct flexmem_client *client)
{
	const char *wrong = flexmem_client_check(client);

	KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
}

static struct flexmem_allocation *try(struct flexmem_client *client, u64 size,
				      struct flexmem_place *place)
{
	return flexmem_client_prepare(client, size, FLEXMEM_ALIGN, 0, place);
}

static struct flexmem_allocation *
prepare(struct kunit *test, struct flexmem_client *client, u64 size)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation = try(client, size, &ctx->place);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	check(test, client);
	return allocation;
}

/* Makes an allocation: its handle. */
static u32 alloc(struct kunit *test, struct flexmem_client *client, u64 size)
{
	struct flexmem_allocation *allocation = prepare(test, client, size);

	flexmem_client_publish(client, allocation);
	check(test, client);
	return allocation->handle;
}

static int free_address(struct flexmem_client *client, u64 region_id,
			u64 offset)
{
	const struct flexmem_address address = {
		.region_id = region_id,
		.offset = offset,
	};
	struct flexmem_allocation *allocation;

	allocation = flexmem_client_detach_address(client, &address);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	flexmem_client_release(client, allocation);
	return 0;
}

static int lookup(struct flexmem_client *client, u32 handle)
{
	struct flexmem_lookup out = {};

	return flexmem_client_lookup(client, handle, &out);
}

static u64 used_bytes(struct ctx *ctx)
{
	u64 used = 0;
	unsigned int i;

	flexmem_table_snapshot(ctx->table, NULL, &ctx->snapshot);
	for (i = 0; i < ctx->snapshot.nr; i++)
		used += ctx->snapshot.region[i].total -
			ctx->snapshot.region[i].free;
	return used;
}

/* Handles. */

static void handles_begin_with_one(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, 128), 1);
	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, 128), 2);
}

static void freed_handle_is_not_the_next(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, 128), 1);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, 1), 0);
	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, 128), 2);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 1), -ENOENT);
}

static void handles_wrap_past_zero_and_those_in_use(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, 128), 1);
	ctx->client->next_handle = INT_MAX;
	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, 128), INT_MAX);
	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, 128), 2);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, INT_MAX), 0);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 0), -ENOENT);
}

static void handles_are_limited(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;
	u64 used;

	for (i = 0; i < 5; i++)
		alloc(test, ctx->client, 128);
	used = used_bytes(ctx);
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR(try(ctx->client, 128, &ctx->place)));
	KUNIT_EXPECT_EQ(test, ctx->place.reason, FLEXMEM_REASON_HANDLES);
	KUNIT_EXPECT_EQ(test, ctx->place.total_free, 12 * GIB - used);
	KUNIT_EXPECT_EQ(test, ctx->place.largest_free, 12 * GIB - used);
	KUNIT_EXPECT_EQ(test, ctx->place.max_region, 12 * GIB);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), used);
	check(test, ctx->client);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, 3), 0);
	alloc(test, ctx->client, 128);
}

static void reserved_handles_count_too(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation[5];
	unsigned int i;

	for (i = 0; i < 5; i++)
		allocation[i] = prepare(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR(try(ctx->client, 128, &ctx->place)));
	KUNIT_EXPECT_EQ(test, ctx->place.reason, FLEXMEM_REASON_HANDLES);
	for (i = 0; i < 5; i++)
		flexmem_client_release(ctx->client, allocation[i]);
	alloc(test, ctx->client, 128);
}

static void limit_is_of_one_client(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;

	for (i = 0; i < 5; i++)
		alloc(test, ctx->client, 128);
	alloc(test, fake_client_open(test, ctx->table, 1), 128);
}

static void failed_placement_gives_the_handle_back(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, -ENOMEM,
				PTR_ERR(try(ctx->client, 13 * GIB,
					    &ctx->place)));
		KUNIT_EXPECT_EQ(test, ctx->place.reason,
				FLEXMEM_REASON_REGION_SIZE);
	}
	KUNIT_EXPECT_EQ(test, nr_handles(ctx->client), 0);
	check(test, ctx->client);
}

static void firmware_error_is_passed_on(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			PTR_ERR(try(ctx->client, 128, &ctx->place)));
	KUNIT_EXPECT_EQ(test, nr_handles(ctx->client), 0);
	check(test, ctx->client);
}

/* The life of an allocation. */

static void prepared_cannot_be_named(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	allocation = prepare(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, allocation->handle),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, allocation->handle),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, ctx->client->used, 0);
	flexmem_client_release(ctx->client, allocation);
}

static void released_leaves_nothing(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	flexmem_client_release(ctx->client, prepare(test, ctx->client, GIB));
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	KUNIT_EXPECT_EQ(test, nr_handles(ctx->client), 0);
	check(test, ctx->client);
}

static void published_is_found(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_lookup out = {};
	u32 handle;

	alloc(test, ctx->client, 128);
	handle = alloc(test, ctx->client, GIB);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_client_lookup(ctx->client, handle, &out));
	KUNIT_EXPECT_EQ(test, out.out_address.region_id, 0);
	KUNIT_EXPECT_EQ(test, out.out_address.offset, 128);
	KUNIT_EXPECT_EQ(test, out.out_size, GIB);
	KUNIT_EXPECT_EQ(test, out.out_flags, 0);
}

static void flags_are_kept(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	struct flexmem_lookup out = {};

	allocation = flexmem_client_prepare(ctx->client, 128, FLEXMEM_ALIGN,
					    FLEXMEM_ALLOC_PROGRAM,
					    &ctx->place);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_publish(ctx->client, allocation);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_client_lookup(ctx->client, allocation->handle,
					      &out));
	KUNIT_EXPECT_EQ(test, out.out_flags, FLEXMEM_ALLOC_PROGRAM);
	used_bytes(ctx);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.used_program, 128);
	KUNIT_EXPECT_EQ(test, 0, fake_client_free(ctx->client, 1));
	used_bytes(ctx);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.used_program, 0);
}

static void detached_cannot_be_named(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	u32 handle = alloc(test, ctx->client, 128);

	allocation = flexmem_client_detach(ctx->client, handle);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, handle), -ENOENT);
	KUNIT_EXPECT_EQ(test,
			PTR_ERR(flexmem_client_detach(ctx->client, handle)),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 128);
	check(test, ctx->client);
	flexmem_client_release(ctx->client, allocation);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
}

static void detached_handle_stays_reserved(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	u32 handle = alloc(test, ctx->client, 128);

	allocation = flexmem_client_detach(ctx->client, handle);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	ctx->client->next_handle = handle;
	KUNIT_EXPECT_NE(test, alloc(test, ctx->client, 128), handle);
	flexmem_client_release(ctx->client, allocation);
}

static void detached_can_be_published_again(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	u32 handle = alloc(test, ctx->client, GIB);

	allocation = flexmem_client_detach(ctx->client, handle);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_publish(ctx->client, allocation);
	check(test, ctx->client);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, handle), 0);
	KUNIT_EXPECT_EQ(test, ctx->client->used, GIB);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), 0);
}

static void usage_counts_what_is_published(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_stats stats = {};

	alloc(test, ctx->client, GIB);
	alloc(test, ctx->client, 128);
	fake_client_free(ctx->client, 1);
	flexmem_client_usage(ctx->client, &stats);
	KUNIT_EXPECT_EQ(test, stats.out_client_used, 128);
	KUNIT_EXPECT_EQ(test, stats.out_client_peak, GIB + 128);
	KUNIT_EXPECT_EQ(test, stats.out_client_handles, 1);
}

/* By address. */

static void address_must_be_exact(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->client, 1024);
	alloc(test, ctx->client, 1024);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 128), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 1023), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 2048), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 1, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, U64_MAX), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, U64_MAX, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 2048);
	check(test, ctx->client);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 1024), 0);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 2), -ENOENT);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 1), 0);
	check(test, ctx->client);
}

static void address_cannot_be_freed_twice(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, 1), -ENOENT);
}

static void address_is_found_in_every_region(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx = make(test, FLEXMEM_MODE_PF, &settings);
	unsigned int slot;

	test->priv = ctx;
	/* Load balance: each in a region of its own, with falling ids. */
	for (slot = 0; slot < 5; slot++)
		alloc(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), -ENOENT);
	for (slot = 0; slot < 5; slot++) {
		u64 id = ctx->fake->piece[slot].base;

		KUNIT_EXPECT_EQ(test, free_address(ctx->client, id, 128),
				-ENOENT);
		KUNIT_EXPECT_EQ(test, free_address(ctx->client, id, 0), 0);
		check(test, ctx->client);
	}
}

/* Others. */

static void names_of_others_are_unknown(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = fake_client_open(test, ctx->table, 1);

	alloc(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, lookup(other, 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, fake_client_free(other, 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(other, 0, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 1), 0);
	/* The same handle, another allocation. */
	KUNIT_EXPECT_EQ(test, alloc(test, other, 128), 1);
	KUNIT_EXPECT_EQ(test, fake_client_free(other, 1), 0);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 1), 0);
}

static void unknown_handles_are_refused(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, 2), -ENOENT);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, U32_MAX), -ENOENT);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 128);
}

/* The end. */

/* A client that the test itself has to finish. */
static struct flexmem_client *local_client(struct kunit *test, struct ctx *ctx)
{
	struct flexmem_client *client;

	client = kunit_kzalloc(test, sizeof(*client), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, client);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_client_init(client, ctx->table, fake_uid(2),
					    NULL));
	return client;
}

static void fini_gives_everything_back(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = local_client(test, ctx);
	unsigned int i;

	alloc(test, ctx->client, 128);
	for (i = 0; i < 5; i++) {
		struct flexmem_allocation *allocation =
			try(client, GIB, &ctx->place);

		if (IS_ERR(allocation))
			break;
		flexmem_client_publish(client, allocation);
	}
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 5 * GIB + 128);
	flexmem_client_fini(client);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 128);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 1), 0);
}

/* What somebody still refers to is charged to its owner until that ends. */
static void allocation_may_outlive_its_client(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = local_client(test, ctx);
	struct flexmem_allocation *allocation;
	u32 handle = alloc(test, client, GIB);
	struct flexmem_snapshot *sum = &ctx->snapshot.sum;

	allocation = flexmem_client_get(client, handle);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_fini(client);
	memset(client, 0xff, sizeof(*client));
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), GIB);
	KUNIT_EXPECT_EQ(test, sum->out_orphaned, GIB);
	KUNIT_EXPECT_EQ(test, sum->out_owned, 0);
	KUNIT_EXPECT_EQ(test, allocation->owner->user->orphaned, GIB);
	flexmem_allocation_put(allocation);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	KUNIT_EXPECT_EQ(test, sum->out_orphaned, 0);
}

static void fini_may_come_after_the_device_went(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	u32 handle = alloc(test, ctx->client, GIB);

	alloc(test, ctx->client, 128);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, handle), 0);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, handle), 0);
	/* The teardown frees the other one. */
}

static void fini_drops_the_lease(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = local_client(test, ctx);

	fake_take_lease(&ctx->table->slots, &client->lease, 60 * 60 * 1000);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->table->slots), 1);
	flexmem_client_fini(client);
	KUNIT_EXPECT_EQ(test, flexmem_lease_count(&ctx->table->slots), 0);
}

/* The checker. */

static void expect_wrong(struct kunit *test, struct ctx *ctx, const char *what)
{
	KUNIT_EXPECT_STREQ(test, flexmem_client_check(ctx->client) ?: "none",
			   what);
}

static void check_notices_wrong_counts(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->client, 128);
	ctx->client->used += 128;
	expect_wrong(test, ctx, "bytes miscounted");
	ctx->client->used -= 128;
	ctx->client->nr_published++;
	expect_wrong(test, ctx, "addresses miscounted");
	ctx->client->nr_published--;
}

static void check_notices_a_lost_address(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	allocation = prepare(test, ctx->client, 128);
	flexmem_client_publish(ctx->client, allocation);
	rb_erase(&allocation->by_address, &ctx->client->by_address);
	expect_wrong(test, ctx, "handles miscounted");
}

static void check_notices_a_wrong_handle_and_owner(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	allocation = prepare(test, ctx->client, 128);
	flexmem_client_publish(ctx->client, allocation);
	allocation->handle++;
	expect_wrong(test, ctx, "allocation under another handle");
	allocation->handle--;
	allocation->block->owner = test;
	expect_wrong(test, ctx, "block of another owner");
	allocation->block->owner = ctx->client->account;
}

/* Many at a time (A39). KASAN, lockdep and the debug build's checks watch. */

#define WORKERS 4
#define WORKER_OPS 1500
#define WORKER_LIVE 24
#define RACED_HANDLES 300

/**
 * struct worker - one thread
 * @client: shared with another one
 * @table: table
 * @handles: handles to be freed by whoever comes first
 * @stop: the others are done
 * @seed: of its random numbers
 * @won: handles it has freed
 * @wrong: NULL, or what went wrong first
 * @done: it has ended
 * @snapshot: room for one
 */
struct worker {
	struct flexmem_client *client;
	struct flexmem_table *table;
	const u32 *handles;
	bool stop;
	u32 seed;
	unsigned int won;
	const char *wrong;
	struct completion done;
	struct flexmem_view snapshot;
};

static bool run_worker(struct worker *worker, int (*function)(void *data))
{
	struct task_struct *task;

	init_completion(&worker->done);
	task = kthread_run(function, worker, "flexmem_kunit");
	if (!IS_ERR(task))
		return true;
	worker->wrong = "no thread";
	complete(&worker->done);
	return false;
}

static void join(struct kunit *test, struct worker *worker)
{
	wait_for_completion(&worker->done);
	KUNIT_EXPECT_NULL_MSG(test, worker->wrong, "%s", worker->wrong);
}

static u32 worker_alloc(struct worker *worker, struct rnd_state *rnd)
{
	u64 size = BIT_ULL(7 + prandom_u32_state(rnd) % 20);
	u64 alignment = BIT_ULL(7 + prandom_u32_state(rnd) % 8);
	struct flexmem_allocation *allocation;
	struct flexmem_place place;
	u32 handle;

	allocation = flexmem_client_prepare(worker->client, size, alignment, 0,
					    &place);
	if (IS_ERR(allocation)) {
		if (PTR_ERR(allocation) != -ENOMEM || !place.reason)
			worker->wrong = "allocation failed without a reason";
		return 0;
	}
	if (!IS_ALIGNED(allocation->block->start, alignment) ||
	    allocation->block->size != size ||
	    allocation->block->owner != worker->client->account)
		worker->wrong = "another block than was asked for";
	handle = allocation->handle;
	flexmem_client_publish(worker->client, allocation);
	return handle;
}

static void worker_free(struct worker *worker, u32 handle, bool by_address)
{
	struct flexmem_lookup out = {};

	if (flexmem_client_lookup(worker->client, handle, &out))
		worker->wrong = "own handle not found";
	else if (by_address ?
		 free_address(worker->client, out.out_address.region_id,
			      out.out_address.offset) :
		 fake_client_free(worker->client, handle))
		worker->wrong = "own allocation not found";
}

static int alloc_and_free(void *data)
{
	struct worker *worker = data;
	u32 live[WORKER_LIVE] = {};
	struct rnd_state rnd;
	unsigned int i, n;

	prandom_seed_state(&rnd, worker->seed);
	for (n = 0; n < WORKER_OPS && !worker->wrong; n++) {
		u32 roll = prandom_u32_state(&rnd);

		i = roll % WORKER_LIVE;
		if (live[i]) {
			worker_free(worker, live[i], roll & BIT(20));
			live[i] = 0;
		} else {
			live[i] = worker_alloc(worker, &rnd);
		}
		cond_resched();
	}
	for (i = 0; i < WORKER_LIVE; i++)
		if (live[i])
			worker_free(worker, live[i], i & 1);
	complete(&worker->done);
	return 0;
}

static const char *check_snapshot(const struct flexmem_view *snapshot)
{
	const struct flexmem_snapshot *sum = &snapshot->sum;
	unsigned int i;

	if (sum->out_free + sum->out_owned + sum->out_orphaned +
	    sum->out_quarantined != sum->out_total)
		return "sums of a snapshot do not add up";
	for (i = 0; i < snapshot->nr; i++) {
		const struct flexmem_region_entry *entry = &snapshot->region[i];

		if (entry->free > entry->total ||
		    entry->largest_free > entry->free ||
		    !entry->nr_free != !entry->free ||
		    !entry->nr_allocated != !(entry->total - entry->free))
			return "snapshot does not add up";
		if (i && entry->slot <= entry[-1].slot)
			return "snapshot not in the order of slots";
	}
	return NULL;
}

/* Regions go while others allocate, and snapshots are taken. */
static int trim_and_look(void *data)
{
	struct worker *worker = data;
	u64 bytes, allocs = 0;
	unsigned int nr;

	while (!READ_ONCE(worker->stop) && !worker->wrong) {
		if (flexmem_table_trim(worker->table, false, &nr, &bytes))
			worker->wrong = "trim failed";
		flexmem_table_snapshot(worker->table, NULL,
				       &worker->snapshot);
		if (!worker->wrong)
			worker->wrong = check_snapshot(&worker->snapshot);
		if (worker->snapshot.allocs < allocs)
			worker->wrong = "allocations were lost count of";
		allocs = worker->snapshot.allocs;
		cond_resched();
	}
	complete(&worker->done);
	return 0;
}

struct strategy {
	const char *name;
	enum flexmem_order order;
	enum flexmem_fit fit;
};

static const struct strategy strategies[] = {
	{ "first_fit, load_balance", FLEXMEM_ORDER_LOAD_BALANCE,
	  FLEXMEM_FIT_FIRST },
	{ "best_fit, fill_first", FLEXMEM_ORDER_FILL_FIRST,
	  FLEXMEM_FIT_BEST },
};

KUNIT_ARRAY_PARAM_DESC(strategy, strategies, name);

/* Small regions, so that they are often full and often empty. */
static struct ctx *make_small(struct kunit *test)
{
	const struct strategy *strategy = test->param_value;
	struct flexmem_settings settings = fake_settings();

	settings.order = strategy->order;
	settings.fit = strategy->fit;
	settings.nr_sizes = 2;
	settings.sizes[0] = 64 * SZ_1M;
	settings.sizes[1] = 32 * SZ_1M;
	return make(test, FLEXMEM_MODE_VF, &settings);
}

static void allocates_and_frees_at_once(struct kunit *test)
{
	struct ctx *ctx = make_small(test);
	struct flexmem_client *client[2];
	struct worker *worker, *trimmer;
	const char *wrong;
	unsigned int i;

	client[0] = ctx->client;
	client[1] = fake_client_open(test, ctx->table, 1);
	worker = kunit_kcalloc(test, WORKERS + 1, sizeof(*worker), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, worker);
	trimmer = &worker[WORKERS];
	for (i = 0; i <= WORKERS; i++) {
		worker[i].client = client[i % 2];
		worker[i].table = ctx->table;
		worker[i].seed = i;
		run_worker(&worker[i], i < WORKERS ? alloc_and_free :
						     trim_and_look);
	}
	for (i = 0; i < WORKERS; i++)
		join(test, &worker[i]);
	WRITE_ONCE(trimmer->stop, true);
	join(test, trimmer);

	check(test, client[0]);
	check(test, client[1]);
	wrong = flexmem_table_check(ctx->table);
	KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	KUNIT_EXPECT_EQ(test, nr_handles(client[0]), 0);
	KUNIT_EXPECT_EQ(test, nr_handles(client[1]), 0);
}

static int free_all(void *data)
{
	struct worker *worker = data;
	unsigned int i;

	for (i = 0; i < RACED_HANDLES; i++)
		if (!fake_client_free(worker->client, worker->handles[i]))
			worker->won++;
	complete(&worker->done);
	return 0;
}

static void freed_by_exactly_one(struct kunit *test)
{
	struct ctx *ctx = make_small(test);
	struct worker *worker;
	unsigned int i, won = 0;
	u32 *handles;

	handles = kunit_kcalloc(test, RACED_HANDLES, sizeof(*handles),
				GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, handles);
	worker = kunit_kcalloc(test, WORKERS, sizeof(*worker), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, worker);
	for (i = 0; i < RACED_HANDLES; i++)
		handles[i] = alloc(test, ctx->client, 4096);
	for (i = 0; i < WORKERS; i++) {
		worker[i].client = ctx->client;
		worker[i].handles = handles;
		run_worker(&worker[i], free_all);
	}
	for (i = 0; i < WORKERS; i++) {
		join(test, &worker[i]);
		won += worker[i].won;
	}
	KUNIT_EXPECT_EQ(test, won, RACED_HANDLES);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	check(test, ctx->client);
}

static struct kunit_case client_cases[] = {
	KUNIT_CASE(handles_begin_with_one),
	KUNIT_CASE(freed_handle_is_not_the_next),
	KUNIT_CASE(handles_wrap_past_zero_and_those_in_use),
	KUNIT_CASE(handles_are_limited),
	KUNIT_CASE(reserved_handles_count_too),
	KUNIT_CASE(limit_is_of_one_client),
	KUNIT_CASE(failed_placement_gives_the_handle_back),
	KUNIT_CASE(firmware_error_is_passed_on),
	KUNIT_CASE(prepared_cannot_be_named),
	KUNIT_CASE(released_leaves_nothing),
	KUNIT_CASE(published_is_found),
	KUNIT_CASE(flags_are_kept),
	KUNIT_CASE(detached_cannot_be_named),
	KUNIT_CASE(detached_handle_stays_reserved),
	KUNIT_CASE(detached_can_be_published_again),
	KUNIT_CASE(usage_counts_what_is_published),
	KUNIT_CASE(address_must_be_exact),
	KUNIT_CASE(address_cannot_be_freed_twice),
	KUNIT_CASE(address_is_found_in_every_region),
	KUNIT_CASE(names_of_others_are_unknown),
	KUNIT_CASE(unknown_handles_are_refused),
	KUNIT_CASE(fini_gives_everything_back),
	KUNIT_CASE(allocation_may_outlive_its_client),
	KUNIT_CASE(fini_may_come_after_the_device_went),
	KUNIT_CASE(fini_drops_the_lease),
	KUNIT_CASE(check_notices_wrong_counts),
	KUNIT_CASE(check_notices_a_lost_address),
	KUNIT_CASE(check_notices_a_wrong_handle_and_owner),
	KUNIT_CASE_PARAM(allocates_and_frees_at_once, strategy_gen_params),
	KUNIT_CASE_PARAM(freed_by_exactly_one, strategy_gen_params),
	{}
};

static struct kunit_suite client_suite = {
	.name = "flexmem_client",
	.init = client_test_init,
	.test_cases = client_cases,
};

kunit_test_suite(client_suite);
