// SPDX-License-Identifier: GPL-2.0
/*
 * Many threads use clients at the same time, while KASAN, lockdep and the debug
 * build's checks look for errors.
 */

#include <linux/align.h>
#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/prandom.h>

#include "checks.h"
#include "clients.h"

#define WORKERS 4
#define WORKER_LIVE 24
#define RACED_HANDLES 300

static unsigned int thread_ops = 1500;
module_param(thread_ops, uint, 0444);
MODULE_PARM_DESC(thread_ops, "Random operations of each of several threads (default 1500)");

/**
 * struct worker - one thread
 * @client: client of the thread; another thread uses the client too
 * @table: table
 * @handles: handles that threads share; the thread that takes a handle out of
 *	here frees it
 * @stop: the other threads are done
 * @seed: seed of the thread's random numbers
 * @won: number of handles that the thread has freed
 * @wrong: the first error that the thread has seen, or NULL
 * @done: the thread has ended
 * @snapshot: room for a snapshot
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
	struct flexmem_request request;
	u32 handle;

	allocation = fake_client_prepare(worker->client, size, alignment, 0,
					 &request);
	if (IS_ERR(allocation)) {
		if (PTR_ERR(allocation) != -ENOMEM || !request.reason)
			worker->wrong = "allocation failed without a reason";
		return 0;
	}
	if (!IS_ALIGNED(allocation->chunks[0]->start, alignment) ||
	    allocation->chunks[0]->size != size ||
	    allocation->chunks[0]->account != worker->client->account)
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
	for (n = 0; n < thread_ops && !worker->wrong; n++) {
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

/* Releases regions and spare objects while other threads use them. */
static int trim_and_look(void *data)
{
	struct worker *worker = data;
	u64 bytes, allocs = 0;
	unsigned int nr;

	while (!READ_ONCE(worker->stop) && !worker->wrong) {
		if (flexmem_table_trim(worker->table, &nr, &bytes))
			worker->wrong = "trim failed";
		flexmem_stock_shrink(1);
		flexmem_table_snapshot(worker->table, NULL,
				       &worker->snapshot);
		if (!worker->wrong)
			worker->wrong = check_snapshot(&worker->snapshot);
		if (worker->snapshot.sum.out_allocs < allocs)
			worker->wrong = "allocations were lost count of";
		allocs = worker->snapshot.sum.out_allocs;
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

/* Makes small regions, which are often full and often empty. */
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
	wrong = checks_of_table(ctx->table);
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

static void one_thread_frees_each_handle(struct kunit *test)
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

/*
 * Debug builds normally keep no spare objects. In this suite clients keep spare
 * objects, and a thread acts as the shrinker.
 */
static int client_threads_test_init(struct kunit *test)
{
	flexmem_stock_most = FLEXMEM_STOCK_MOST;
	return client_test_init(test);
}

static void client_threads_test_exit(struct kunit *test)
{
	flexmem_stock_most = 0;
}

static struct kunit_case client_threads_cases[] = {
	KUNIT_CASE_PARAM(allocates_and_frees_at_once, strategy_gen_params),
	KUNIT_CASE_PARAM(one_thread_frees_each_handle, strategy_gen_params),
	{}
};

static struct kunit_suite client_threads_suite = {
	.name = "flexmem_client_threads",
	.init = client_threads_test_init,
	.exit = client_threads_test_exit,
	.test_cases = client_threads_cases,
};

kunit_test_suite(client_threads_suite);
