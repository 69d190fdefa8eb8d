// SPDX-License-Identifier: GPL-2.0
/* The steps of the cache when the provider has no memory. */
#include "cache_mock.h"

#include <pthread.h>

static struct flexmem_cache *the_cache;
static void *victim;
static unsigned int calls;
static uint64_t wanted_bytes;

/*
 * If the second attempt succeeds, num_first_failures and num_alloc_retries
 * grow.
 */
static void retry_succeeds(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");

	(void)state;
	mock.fail_allocs = 1;
	assert_int_equal(try_alloc(cache, 1000), 0);
	expect_counters(cache, 1, 1, 0);
	/* The cache had no memory to return, so it only asked again. */
	assert_int_equal(mock.allocs, 2);
	assert_int_equal(mock.device_waits, 1);
	assert_int_equal(figures(cache).num_sync_all_streams, 1);
	assert_int_equal(try_alloc(cache, 1000), 0);
	expect_counters(cache, 1, 1, 0);
	flexmem_cache_destroy(cache);
}

static void retry_fails(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");

	(void)state;
	mock.fail_allocs = 3;
	assert_int_equal(try_alloc(cache, 1000), -ENOMEM);
	expect_counters(cache, 1, 0, 1);
	/* The last time for just 1,024 bytes. */
	assert_int_equal(mock.allocs, 3);
	assert_int_equal(mock.last_alloc, 1024);
	assert_int_equal(try_alloc(cache, 1000), 0);
	flexmem_cache_destroy(cache);
}

/*
 * Less is left than a new segment has, or the step by which one grows. The last
 * attempt is a fixed segment of just the request's size.
 */
static void just_enough(const char *settings)
{
	const uint64_t rest = 9 * MIB + MIB / 2;
	struct flexmem_cache *cache;
	void *token;
	void *other;

	mock.capacity = 20 * MIB + rest;
	cache = mock_cache(settings);
	other = take(cache, 20 * MIB, 0);
	token = take(cache, rest, 0);
	expect_counters(cache, 1, 1, 0);
	assert_int_equal(mock.last_alloc, rest);
	assert_int_equal(mock.last_flags, 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current,
			 mock.capacity);
	/* A cached segment like any other: it serves again, and goes. */
	give(cache, token);
	token = take(cache, 8 * MIB, 0);
	expect_counters(cache, 1, 1, 0);
	give(cache, token);
	give(cache, other);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	flexmem_cache_destroy(cache);
}

static void just_enough_is_left(void **state)
{
	(void)state;
	just_enough("");
}

static void just_enough_to_grow(void **state)
{
	(void)state;
	just_enough("expandable_segments:True");
}

/* Only -ENOMEM leads to further attempts. */
static void other_errors(void **state)
{
	static const int errors[] = { -EIO, -ETIMEDOUT, -ENODEV, -EINTR };
	struct flexmem_cache *cache = mock_cache_events("");
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		mock.fail_allocs = 1;
		mock.error = errors[i];
		assert_int_equal(try_alloc(cache, 1000), errors[i]);
		assert_int_equal(mock.allocs, i + 1);
	}
	expect_counters(cache, 0, 0, 0);
	assert_int_equal(mock.device_waits, 0);
	assert_int_equal(figures(cache).segment[0].current, 0);
	flexmem_cache_destroy(cache);
}

/* The smallest free segment that is large enough is returned first. */
static void one_large_goes(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");

	(void)state;
	three_free(cache);
	mock.fail_allocs = 1;
	assert_int_equal(try_alloc(cache, 30 * MIB), 0);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 110 * MIB);
	assert_int_equal(mock.device_waits, 0);
	expect_counters(cache, 1, 1, 0);
	flexmem_cache_destroy(cache);
}

/*
 * No free segment is large enough, so the cache returns several segments to the
 * provider, the largest ones first.
 */
static void several_large_go(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");

	(void)state;
	three_free(cache);
	mock.fail_allocs = 1;
	assert_int_equal(try_alloc(cache, 70 * MIB), 0);
	assert_int_equal(mock.frees, 2);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 90 * MIB);
	flexmem_cache_destroy(cache);
}

/* Segments that are exactly large enough, together or one alone, suffice. */
static void exactly_enough_goes(void **state)
{
	static const struct {
		uint64_t bytes;
		unsigned int frees;
	} cases[] = { { 100, 2 }, { 120, 3 }, { 60, 1 }, { 40, 1 } };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct flexmem_cache *cache = mock_cache_events("");

		three_free(cache);
		mock.fail_allocs = 1;
		assert_int_equal(try_alloc(cache, cases[i].bytes * MIB), 0);
		assert_int_equal(mock.allocs, 2);
		assert_int_equal(mock.frees, cases[i].frees);
		assert_int_equal(figures(cache).reserved_bytes[0].current,
				 120 * MIB);
		flexmem_cache_destroy(cache);
		mock_teardown(state);
		mock_setup(state);
	}
}

static void all_go(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");

	(void)state;
	three_free(cache);
	mock.fail_allocs = 2;
	assert_int_equal(try_alloc(cache, 30 * MIB), 0);
	assert_int_equal(mock.allocs, 3);
	assert_int_equal(mock.frees, 3);
	assert_int_equal(mock.device_waits, 0);
	expect_counters(cache, 1, 1, 0);
	flexmem_cache_destroy(cache);
}

/* Expects four attempts, the last of them after a wait for the device. */
static void whole_ladder(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");

	(void)state;
	three_free(cache);
	mock.fail_allocs = 3;
	assert_int_equal(try_alloc(cache, 30 * MIB), 0);
	assert_int_equal(mock.allocs, 4);
	assert_int_equal(mock.device_waits, 1);
	expect_counters(cache, 1, 1, 0);
	flexmem_cache_destroy(cache);
}

/* A block that waited for events becomes free, and serves the request. */
static void waiting_blocks_help(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 20 * MIB, 0);

	(void)state;
	assert_int_equal(flexmem_cache_record_stream(cache, token, 5), 0);
	give(cache, token);
	mock.allocs = 0;
	mock.fail_allocs = 100;
	assert_int_equal(try_alloc(cache, 20 * MIB), 0);
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(mock.device_waits, 1);
	expect_counters(cache, 1, 1, 0);
	flexmem_cache_destroy(cache);
}

static void event_happens(void)
{
	mock.happened[0] = true;
}

/*
 * An event happens while the cache calls the provider. Now the free end of the
 * segment is large enough, so the segment need not grow.
 */
static void free_end_grows_during_a_call(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("expandable_segments:True");
	uint64_t where;
	void *token;

	(void)state;
	take(cache, 2 * MIB, 0);
	token = take(cache, 10 * MIB, 0);
	where = place(cache, token);
	assert_int_equal(flexmem_cache_record_stream(cache, token, 1), 0);
	give(cache, token);
	/*
	 * This segment is large enough, so the cache returns it and keeps the
	 * free end of the growing segment.
	 */
	give(cache, take(cache, 6 * MIB, 9));
	mock.allocs = 0;
	mock.grows = 0;
	mock.fail_grows = 1;
	mock.fail_allocs = 1;
	mock.on_alloc = event_happens;
	token = take(cache, 6 * MIB, 0);
	assert_int_equal(place(cache, token), where);
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(mock.grows, 1);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 12 * MIB);
	expect_counters(cache, 1, 1, 0);
	flexmem_cache_destroy(cache);
}

/* The wait for the device fails. The request must still fail with -ENOMEM. */
static void waiting_fails(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 20 * MIB, 0);

	(void)state;
	assert_int_equal(flexmem_cache_record_stream(cache, token, 5), 0);
	give(cache, token);
	mock.fail_allocs = 2;
	mock.fail_waits = 1;
	assert_int_equal(try_alloc(cache, 20 * MIB), -ENOMEM);
	assert_non_null(strstr(mock.log, "cannot be synchronized: error 5"));
	expect_counters(cache, 1, 0, 1);
	flexmem_cache_destroy(cache);
}

/* A segment that the provider does not take back stays usable. */
static void frees_that_fail(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	uint64_t released = 1;

	(void)state;
	give(cache, take(cache, 20 * MIB, 0));
	mock.fail_frees = 1;
	mock.error = -EIO;
	assert_int_equal(flexmem_cache_empty(cache, &released), -EIO);
	assert_int_equal(released, 0);
	assert_non_null(strstr(mock.log, "did not take 20971520 bytes back"));
	give(cache, take(cache, 20 * MIB, 0));
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 20 * MIB);
	flexmem_cache_destroy(cache);
}

static void give_victim(void *user, uint64_t bytes)
{
	assert_ptr_equal(user, &calls);
	calls++;
	wanted_bytes = bytes;
	if (victim)
		give(the_cache, victim);
	victim = NULL;
}

static void callbacks(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");

	(void)state;
	the_cache = cache;
	calls = 0;
	assert_int_equal(flexmem_cache_add_oom_callback(cache, give_victim,
							&calls), 0);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, give_victim,
							&calls), -EEXIST);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, NULL, &calls),
			 -EINVAL);
	victim = take(cache, 30 * MIB, 0);
	mock.fail_allocs = 100;
	/* The freed memory serves the request. */
	assert_int_equal(try_alloc(cache, 25 * MIB + 1), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(wanted_bytes, 25 * MIB + 128);
	expect_counters(cache, 1, 1, 0);
	/*
	 * The callback frees nothing, so the cache makes only one more attempt.
	 */
	mock.allocs = 0;
	assert_int_equal(try_alloc(cache, 30 * MIB), -ENOMEM);
	assert_int_equal(calls, 2);
	assert_int_equal(mock.allocs, 2);
	assert_int_equal(flexmem_cache_remove_oom_callback(cache, give_victim,
							   &calls), 0);
	assert_int_equal(flexmem_cache_remove_oom_callback(cache, give_victim,
							   &calls), -ENOENT);
	assert_int_equal(try_alloc(cache, 30 * MIB), -ENOMEM);
	assert_int_equal(calls, 2);
	mock.fail_allocs = 0;
	flexmem_cache_destroy(cache);
}

/*
 * The cache runs the framework's callbacks before it returns its own free
 * memory.
 */
static void callbacks_come_first(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");

	(void)state;
	the_cache = cache;
	calls = 0;
	assert_int_equal(flexmem_cache_add_oom_callback(cache, give_victim,
							&calls), 0);
	three_free(cache);
	victim = take(cache, 80 * MIB, 0);
	/* The freed memory serves the request. */
	mock.fail_allocs = 1;
	take(cache, 70 * MIB, 0);
	assert_int_equal(calls, 1);
	assert_int_equal(mock.frees, 0);
	assert_int_equal(mock.device_waits, 0);
	expect_counters(cache, 1, 1, 0);
	/*
	 * The callback frees nothing more. The cache returns its free segments
	 * and asks again.
	 */
	mock.allocs = 0;
	mock.fail_allocs = 1;
	take(cache, 50 * MIB, 0);
	assert_int_equal(calls, 2);
	assert_int_equal(mock.allocs, 2);
	assert_int_equal(mock.frees, 1);
	expect_counters(cache, 2, 2, 0);
	flexmem_cache_destroy(cache);
}

/* Returns memory of the cache to the provider, and frees no block. */
static void trim_all(void *user, uint64_t bytes)
{
	(void)user;
	(void)bytes;
	calls++;
	assert_int_equal(flexmem_cache_trim(the_cache, UINT64_MAX, NULL), 0);
}

/*
 * A callback makes room without a free: a growing segment gets shorter, or a
 * whole segment goes. The cache asks again, and need not wait for the device.
 */
static void a_callback_trims(void **state)
{
	static const char *const configuration[] = {
		"", "expandable_segments:True",
	};
	unsigned int grows;

	for (grows = 0; grows < 2; grows++) {
		struct flexmem_cache *cache =
			mock_cache_events(configuration[grows]);
		void *freed;

		the_cache = cache;
		calls = 0;
		if (grows)
			take(cache, 2 * MIB, 9);
		freed = take(cache, 60 * MIB, 9);
		give(cache, freed);
		assert_int_equal(flexmem_cache_add_oom_callback(cache, trim_all,
								NULL), 0);
		mock.fail_allocs = 1;
		assert_int_equal(try_alloc(cache, 80 * MIB), 0);
		assert_int_equal(calls, 1);
		assert_int_equal(mock.shrinks, grows);
		assert_int_equal(mock.frees, !grows);
		assert_int_equal(mock.device_waits, 0);
		flexmem_cache_destroy(cache);
		mock_teardown(state);
		mock_setup(state);
	}
}

/*
 * A callback that makes calls which are permitted there, and one call which
 * must fail.
 */
static void busy(void *user, uint64_t bytes)
{
	struct flexmem_cache *cache = user;
	void *token;

	(void)bytes;
	calls++;
	/*
	 * The first request is served from the cache. The second one fails and
	 * runs no callback, because a callback is running.
	 */
	give(cache, take(cache, 100, 0));
	assert_int_equal(try_alloc(cache, 50 * MIB), -ENOMEM);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(flexmem_cache_alloc(cache, 100, 0, &token), 0);
	give(cache, token);
	figures(cache);
	assert_int_equal(flexmem_cache_remove_oom_callback(cache, busy, cache),
			 -EDEADLK);
}

static void busy_callbacks(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");

	(void)state;
	calls = 0;
	take(cache, 100, 0);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, busy, cache),
			 0);
	mock.fail_allocs = 100;
	assert_int_equal(try_alloc(cache, 30 * MIB), -ENOMEM);
	assert_int_equal(calls, 1);
	expect_counters(cache, 2, 0, 2);
	mock.fail_allocs = 0;
	flexmem_cache_destroy(cache);
}

/*
 * Other threads use the cache while a callback runs, because no lock is held.
 */
static void *use_cache(void *unused)
{
	(void)unused;
	give(the_cache, take(the_cache, 100, 0));
	return NULL;
}

static void let_others(void *user, uint64_t bytes)
{
	pthread_t thread;

	(void)user;
	(void)bytes;
	calls++;
	assert_int_equal(pthread_create(&thread, NULL, use_cache, NULL), 0);
	pthread_join(thread, NULL);
}

/* Several callbacks run in the order in which they were added. */
static unsigned int order;

static void first_of_two(void *user, uint64_t bytes)
{
	(void)user;
	(void)bytes;
	order = order * 10 + 1;
}

static void second_of_two(void *user, uint64_t bytes)
{
	(void)user;
	(void)bytes;
	order = order * 10 + 2;
}

static void several_callbacks(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	uint64_t pool;

	(void)state;
	order = 0;
	mock.no_info = true;
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, first_of_two,
							NULL), 0);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, second_of_two,
							NULL), 0);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, first_of_two,
							&order), 0);
	mock.fail_allocs = 3;
	assert_int_equal(try_alloc(cache, 1000), -ENOMEM);
	assert_int_equal(order, 121);
	assert_int_equal(flexmem_cache_remove_oom_callback(cache, first_of_two,
							   &order), 0);
	assert_int_equal(flexmem_cache_remove_oom_callback(cache, first_of_two,
							   NULL), 0);
	mock.fail_allocs = 3;
	assert_int_equal(try_alloc(cache, 1000), -ENOMEM);
	assert_int_equal(order, 1212);
	flexmem_cache_destroy(cache);
}

static void let_others_wait(void)
{
	let_others(NULL, 0);
}

static void no_lock_in_callbacks(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");

	(void)state;
	the_cache = cache;
	calls = 0;
	take(cache, 100, 0);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, let_others,
							NULL), 0);
	mock.on_wait = let_others_wait;
	/* A block was freed, so there is one more attempt. */
	mock.fail_allocs = 3;
	assert_int_equal(try_alloc(cache, 30 * MIB), -ENOMEM);
	assert_int_equal(calls, 2);
	flexmem_cache_destroy(cache);
}

static void release_lock(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("release_lock_on_device_malloc:True");

	(void)state;
	the_cache = cache;
	calls = 0;
	take(cache, 100, 0);
	mock.on_alloc = let_others_wait;
	assert_int_equal(try_alloc(cache, 30 * MIB), 0);
	assert_int_equal(calls, 1);
	flexmem_cache_destroy(cache);
}

static void *give_the_victim(void *unused)
{
	give(the_cache, victim);
	return unused;
}

/* Frees a block during the second of two attempts. */
static void give_at_the_last(void)
{
	pthread_t thread;

	if (++calls != 2)
		return;
	assert_int_equal(pthread_create(&thread, NULL, give_the_victim, NULL),
			 0);
	pthread_join(thread, NULL);
}

/* Another thread frees a block during the last attempt. */
static void freed_at_the_last(void **state)
{
	struct flexmem_cache *cache =
		mock_cache("release_lock_on_device_malloc:True");

	(void)state;
	the_cache = cache;
	calls = 0;
	victim = take(cache, 20 * MIB, 0);
	mock.fail_allocs = 2;
	mock.on_alloc = give_at_the_last;
	assert_int_equal(try_alloc(cache, 20 * MIB), 0);
	assert_int_equal(calls, 2);
	expect_counters(cache, 1, 1, 0);
	assert_int_equal(figures(cache).segment[0].current, 1);
	flexmem_cache_destroy(cache);
}

static void *second_thread(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)try_alloc(the_cache, 30 * MIB);
}

static void release_pool_in_callback(void *user, uint64_t bytes)
{
	(void)bytes;
	calls++;
	assert_int_equal(flexmem_cache_pool_release(the_cache,
						    *(uint64_t *)user), 0);
}

/* A pool is released while a request in it is under way. */
static void pool_is_released_during_an_alloc(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	struct flexmem_cache_request request = { .bytes = 1000 };
	struct flexmem_cache_allocation a;
	pthread_t thread;
	void *result;

	(void)state;
	the_cache = cache;
	calls = 0;
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_add_oom_callback(cache,
							release_pool_in_callback,
							&request.pool), 0);
	mock.fail_allocs = 1;
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	assert_int_equal(calls, 1);
	give(cache, a.token);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(pthread_create(&thread, NULL, second_thread, NULL),
			 0);
	pthread_join(thread, &result);
	assert_null(result);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(retry_succeeds),
		CACHE_TEST(retry_fails),
		CACHE_TEST(just_enough_is_left),
		CACHE_TEST(just_enough_to_grow),
		CACHE_TEST(other_errors),
		CACHE_TEST(one_large_goes),
		CACHE_TEST(several_large_go),
		CACHE_TEST(exactly_enough_goes),
		CACHE_TEST(all_go),
		CACHE_TEST(whole_ladder),
		CACHE_TEST(waiting_blocks_help),
		CACHE_TEST(free_end_grows_during_a_call),
		CACHE_TEST(waiting_fails),
		CACHE_TEST(frees_that_fail),
		CACHE_TEST(callbacks),
		CACHE_TEST(callbacks_come_first),
		CACHE_TEST(a_callback_trims),
		CACHE_TEST(busy_callbacks),
		CACHE_TEST(several_callbacks),
		CACHE_TEST(no_lock_in_callbacks),
		CACHE_TEST(release_lock),
		CACHE_TEST(freed_at_the_last),
		CACHE_TEST(pool_is_released_during_an_alloc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
