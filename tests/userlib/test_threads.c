// SPDX-License-Identifier: GPL-2.0
/* Threads use one device object. TSan runs this test, too. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 10
#define ROUNDS 300

static struct flexmem_device *device;
static atomic_int failures;
static atomic_uint in_log;

#define EXPECT(condition) \
	do { \
		if (!(condition)) \
			atomic_fetch_add(&failures, 1); \
	} while (0)

static void count_log(enum flexmem_log_level level, const char *text,
		      void *user)
{
	(void)level;
	(void)text;
	(void)user;
	/* Only one thread at a time calls the log function. */
	EXPECT(atomic_fetch_add(&in_log, 1) == 0);
	atomic_fetch_sub(&in_log, 1);
}

static void *allocate(void *argument)
{
	struct flexmem_allocated a;
	struct flexmem_allocated b;
	int i;

	(void)argument;
	for (i = 0; i < ROUNDS; i++) {
		EXPECT(!flexmem_device_alloc(device, 1000, 0, 0, &a,
					     sizeof(a)));
		EXPECT(!flexmem_device_lookup(device, a.handle, &b,
					      sizeof(b)));
		EXPECT(a.address.offset == b.address.offset);
		if (i % 2)
			EXPECT(!flexmem_device_free(device, a.handle));
		else
			EXPECT(!flexmem_device_free_address(device,
							    a.address));
		EXPECT(flexmem_device_alloc(device, 13 * GIB, 0, 0, &a,
					    sizeof(a)) == -ENOMEM);
	}
	return NULL;
}

/*
 * Each thread writes its own byte to its own allocation, and reads no byte of
 * another thread.
 */
static void *copy(void *argument)
{
	static atomic_uint next;
	int byte = (int)(atomic_fetch_add(&next, 1) % 250) + 1;
	struct flexmem_allocated a;
	unsigned char in[4096];
	unsigned char out[4096];
	void *address;
	int i;

	(void)argument;
	memset(out, byte, sizeof(out));
	for (i = 0; i < ROUNDS / 3; i++) {
		EXPECT(!flexmem_device_alloc(device, 4096, 0, FLEXMEM_MAPPABLE,
					     &a, sizeof(a)));
		EXPECT(!flexmem_device_write(device, a.handle, 0, out, 4096,
					     NULL));
		EXPECT(!flexmem_device_map(device, a.handle, 0, 0, 0, &address,
					   NULL));
		EXPECT(!memcmp(address, out, 4096));
		EXPECT(!flexmem_device_unmap(device, address, 4096));
		EXPECT(!flexmem_device_read(device, a.handle, 0, in, 4096,
					    NULL));
		EXPECT(!memcmp(in, out, 4096));
		EXPECT(!flexmem_device_free(device, a.handle));
	}
	return NULL;
}

static void *batches(void *argument)
{
	struct flexmem_alloc_request requests[100];
	struct flexmem_allocated results[100];
	uint32_t handles[100];
	int errors[100];
	int round;
	int i;

	(void)argument;
	memset(requests, 0, sizeof(requests));
	for (i = 0; i < 100; i++)
		requests[i].length = (uint64_t)i + 1;
	for (round = 0; round < ROUNDS / 30; round++) {
		EXPECT(!flexmem_device_alloc_batch(device, requests,
						   sizeof(requests[0]),
						   results,
						   sizeof(results[0]), 100));
		for (i = 0; i < 100; i++)
			handles[i] = results[i].handle;
		EXPECT(!flexmem_device_free_batch(device, handles, errors,
						  100));
		for (i = 0; i < 100; i++)
			EXPECT(!errors[i]);
	}
	return NULL;
}

static void *observe(void *argument)
{
	struct flexmem_statistics statistics;
	struct flexmem_segment *segments;
	struct flexmem_region_state *regions;
	struct flexmem_allowance allowance;
	struct flexmem_account_state *accounts;
	struct flexmem_properties p;
	struct flexmem_usage usage;
	size_t count;
	int i;

	(void)argument;
	for (i = 0; i < ROUNDS; i++) {
		EXPECT(!flexmem_device_statistics(device, &statistics,
						  sizeof(statistics)));
		EXPECT(statistics.free + statistics.used == statistics.total);
		EXPECT(!flexmem_device_regions(device, &regions,
					       sizeof(*regions), &count));
		flexmem_regions_free(regions);
		EXPECT(!flexmem_device_segments(device, &segments,
						sizeof(*segments), &count,
						NULL));
		flexmem_segments_free(segments);
		EXPECT(!flexmem_device_usage(device, &usage, sizeof(usage),
					     NULL, 0, &accounts,
					     sizeof(*accounts)));
		EXPECT(usage.free + usage.owned == usage.total);
		EXPECT(accounts[0].bytes == usage.owned);
		flexmem_accounts_free(accounts);
		EXPECT(!flexmem_device_get_limit(device,
						 FLEXMEM_CHARGE_BYTES, &allowance,
					     sizeof(allowance)));
		EXPECT(!flexmem_device_properties(device, &p, sizeof(p)));
		EXPECT(!strcmp(flexmem_device_path(device), "/dev/flexmem0"));
	}
	return NULL;
}

static void *change_log(void *argument)
{
	int i;

	(void)argument;
	for (i = 0; i < ROUNDS; i++)
		flexmem_device_set_log(device, i % 3 ? FLEXMEM_LOG_DEBUG :
					       FLEXMEM_LOG_NONE,
				       i % 5 ? count_log : NULL, NULL);
	return NULL;
}

static void run_all(void *(*last)(void *argument))
{
	void *(*const work[])(void *argument) = {
		allocate, batches, observe, copy, last,
	};
	struct flexmem_statistics s;
	pthread_t threads[THREADS];
	int i;

	device = open_device();
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work[i % 5],
						NULL), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(failures, 0);
	flexmem_device_statistics(device, &s, sizeof(s));
	assert_int_equal(s.own_used, 0);
	flexmem_device_close(device);
}

static void concurrent_calls(void **state)
{
	(void)state;
	run_all(allocate);
}

static void concurrent_calls_and_log(void **state)
{
	(void)state;
	run_all(change_log);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(concurrent_calls),
		TEST(concurrent_calls_and_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
