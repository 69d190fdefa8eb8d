// SPDX-License-Identifier: GPL-2.0
/*
 * A failure is a proof, with threads: each thread has a share of the device, by a
 * limit, and the shares fill the device. So a failure within a share is one with
 * a placement. Another thread calls TRIM, which takes the region away and brings
 * it back. There is only one region, because a search of several is not atomic:
 * others could free memory in a region behind it, and take the memory ahead.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/prandom.h>

#include "alloc/client.h"
#include "fake_device.h"
#include "region/table.h"

/* Threads, and the GiB that each may have. Together they fill the device. */
#define NR_SHARES 8
#define SHARE 3

static unsigned int share_ops = 1500;
module_param(share_ops, uint, 0444);
MODULE_PARM_DESC(share_ops, "Allocations of each thread with a share of the device (default 1500)");

/**
 * struct sharer - a thread with a share of the device
 * @client: its open file
 * @table: the table
 * @seed: seed of its random numbers
 * @stop: it must end
 * @failures: requests within the share that have failed
 * @reason: why the last of them has
 * @done: it has ended
 */
struct sharer {
	struct flexmem_client *client;
	struct flexmem_table *table;
	u32 seed;
	bool stop;
	unsigned int failures;
	enum flexmem_reason reason;
	struct completion done;
};

static u32 take_a_piece(struct sharer *sharer)
{
	struct flexmem_allocation *allocation;
	struct flexmem_request request;

	allocation = fake_client_prepare(sharer->client, GIB, FLEXMEM_ALIGN, 0,
					 &request);
	if (IS_ERR(allocation)) {
		sharer->failures++;
		sharer->reason = request.reason;
		return 0;
	}
	flexmem_client_publish(sharer->client, allocation);
	return allocation->handle;
}

/*
 * All pieces have the same size, so what is free has room for one. A thread that
 * has taken its share holds all of it but for the moment between two calls.
 */
static int use_a_share(void *data)
{
	struct sharer *sharer = data;
	u32 live[SHARE] = {};
	struct rnd_state random;
	unsigned int i, n;

	prandom_seed_state(&random, sharer->seed);
	for (n = 0; n < share_ops; n++) {
		i = prandom_u32_state(&random) % SHARE;
		if (live[i])
			fake_client_free(sharer->client, live[i]);
		live[i] = take_a_piece(sharer);
		cond_resched();
	}
	for (i = 0; i < SHARE; i++)
		if (live[i])
			fake_client_free(sharer->client, live[i]);
	complete(&sharer->done);
	return 0;
}

static int trim_all_the_time(void *data)
{
	struct sharer *sharer = data;
	unsigned int nr;
	u64 bytes;

	while (!READ_ONCE(sharer->stop)) {
		flexmem_table_trim(sharer->table, &nr, &bytes);
		cond_resched();
	}
	complete(&sharer->done);
	return 0;
}

static void start(struct sharer *sharer, int (*function)(void *data))
{
	init_completion(&sharer->done);
	if (!IS_ERR(kthread_run(function, sharer, "flexmem_kunit")))
		return;
	sharer->failures++;
	complete(&sharer->done);
}

static void no_failure_within_a_share(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct flexmem_table *table;
	struct sharer *sharer;
	unsigned int i;

	settings.nr_sizes = 1;
	settings.sizes[0] = NR_SHARES * SHARE * GIB;
	sharer = kunit_kcalloc(test, NR_SHARES + 1, sizeof(*sharer), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, sharer);
	table = fake_table_create(test,
				  fake_device_create(test, FLEXMEM_MODE_VF, 8,
						     NR_SHARES * SHARE * GIB),
				  &settings);
	for (i = 0; i < NR_SHARES; i++) {
		sharer[i].seed = i;
		sharer[i].client = fake_client_open(test, table, 1 + i);
		fake_client_limit(sharer[i].client, FLEXMEM_RESOURCE_BYTES,
				  SHARE * GIB);
	}
	sharer[NR_SHARES].table = table;
	for (i = 0; i <= NR_SHARES; i++)
		start(&sharer[i],
		      i < NR_SHARES ? use_a_share : trim_all_the_time);
	for (i = 0; i <= NR_SHARES; i++) {
		WRITE_ONCE(sharer[NR_SHARES].stop, i == NR_SHARES);
		wait_for_completion(&sharer[i].done);
		KUNIT_EXPECT_EQ_MSG(test, sharer[i].failures, 0,
				    "thread %u failed for reason %u", i,
				    sharer[i].reason);
	}
}

static struct kunit_case proof_threads_cases[] = {
	KUNIT_CASE(no_failure_within_a_share),
	{}
};

static struct kunit_suite proof_threads_suite = {
	.name = "flexmem_proof_threads",
	.test_cases = proof_threads_cases,
};

kunit_test_suite(proof_threads_suite);
