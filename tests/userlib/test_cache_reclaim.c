// SPDX-License-Identifier: GPL-2.0
/* The cache returns memory to the provider before memory is short. */
#include "cache_mock.h"

#include <math.h>

#include <pthread.h>

/* Above the threshold the oldest free segments are returned first. */
static void threshold(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("garbage_collection_threshold:0.5");
	void *tokens[5];
	uint64_t places[5];
	int i;

	(void)state;
	mock.total = 100 * MIB;
	for (i = 0; i < 5; i++) {
		tokens[i] = take(cache, 20 * MIB, 0);
		places[i] = place(cache, tokens[i]);
	}
	/*
	 * No segment is free, so the cache can return nothing. Requests above
	 * the threshold still succeed.
	 */
	assert_int_equal(mock.allocs, 5);
	assert_int_equal(figures(cache).num_collections, 0);
	give(cache, tokens[2]);
	give(cache, tokens[0]);
	give(cache, tokens[1]);
	give(cache, tokens[3]);
	/*
	 * The cache counts age in allocations. None came after the frees, so no
	 * segment has aged.
	 */
	assert_int_equal(figures(cache).reserved_bytes[0].current, 100 * MIB);
	take(cache, 1, 0);
	assert_int_equal(figures(cache).num_collections, 1);
	assert_int_equal(mock.frees, 3);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 42 * MIB);
	assert_int_equal(mock.device_waits, 0);
	/*
	 * All four blocks have the same age, so the segments that were made
	 * first were returned.
	 */
	assert_int_equal(place(cache, take(cache, 20 * MIB, 0)), places[3]);
	flexmem_cache_destroy(cache);
}

static void below_the_threshold(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("garbage_collection_threshold:0.5");

	(void)state;
	mock.total = 100 * MIB;
	give(cache, take(cache, 30 * MIB, 1));
	give(cache, take(cache, 20 * MIB, 2));
	take(cache, 20 * MIB, 3);
	assert_int_equal(mock.frees, 0);
	take(cache, 20 * MIB, 4);
	assert_int_equal(mock.frees, 1);
	flexmem_cache_destroy(cache);
}

static void oldest_first(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("garbage_collection_threshold:0.75");
	void *tokens[4];
	uint64_t places[4];
	int i;

	(void)state;
	mock.total = 100 * MIB;
	take(cache, 1000, 0);
	for (i = 0; i < 4; i++) {
		tokens[i] = take(cache, 20 * MIB, 0);
		places[i] = place(cache, tokens[i]);
	}
	for (i = 3; i > 0; i--) {
		give(cache, tokens[i]);
		take(cache, 1000, 0);
	}
	/* 82 MiB are reserved by now. */
	assert_int_equal(mock.frees, 0);
	take(cache, 1, 1);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(place(cache, take(cache, 20 * MIB, 0)), places[1]);
	assert_int_equal(place(cache, take(cache, 20 * MIB, 0)), places[2]);
	flexmem_cache_destroy(cache);
}

/* The rest of a split block keeps the block's age. */
static void age_of_remainders(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("expandable_segments:True");
	uint64_t released;
	void *old;

	(void)state;
	/*
	 * Stream 1 gets a growing segment with an old free end, and stream 2 a
	 * newer segment.
	 */
	take(cache, MIB, 1);
	old = take(cache, 9 * MIB, 1);
	give(cache, old);
	give(cache, take(cache, 6 * MIB, 2));
	take(cache, MIB, 1);
	assert_int_equal(flexmem_cache_trim(cache, 1, &released), 0);
	assert_int_equal(released, 8 * MIB);
	assert_int_equal(flexmem_cache_trim(cache, 1, &released), 0);
	assert_int_equal(released, 6 * MIB);
	flexmem_cache_destroy(cache);
}

/* Blocks whose events have happened are returned. The cache does not wait. */
static void threshold_takes_what_is_done(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("garbage_collection_threshold:0.1");
	void *a = take(cache, 20 * MIB, 0);
	void *b = take(cache, 20 * MIB, 0);

	(void)state;
	mock.total = 100 * MIB;
	assert_int_equal(flexmem_cache_record_stream(cache, a, 5), 0);
	assert_int_equal(flexmem_cache_record_stream(cache, b, 6), 0);
	give(cache, a);
	give(cache, b);
	mock.happened[0] = true;
	take(cache, 30 * MIB, 0);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(mock.waits + mock.device_waits, 0);
	flexmem_cache_destroy(cache);
}

static void first_event_happens(void)
{
	mock.happened[0] = true;
}

/* Before the cache waits, it checks which events have happened already. */
static void events_are_checked_before_a_wait(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("garbage_collection_threshold:0.1");
	void *token = take(cache, 20 * MIB, 9);

	(void)state;
	mock.total = 100 * MIB;
	assert_int_equal(flexmem_cache_record_stream(cache, token, 5), 0);
	give(cache, token);
	mock.on_alloc = first_event_happens;
	mock.fail_allocs = 1;
	assert_int_equal(try_alloc(cache, 400 * MIB), 0);
	assert_int_equal(mock.device_waits, 0);
	assert_int_equal(figures(cache).num_collections, 1);
	expect_counters(cache, 1, 1, 0);
	mock.on_alloc = NULL;
	flexmem_cache_destroy(cache);
}

/*
 * When memory is short, a cache with a threshold returns old segments before it
 * tries anything else.
 */
static void threshold_on_oom(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("garbage_collection_threshold:0.5");

	(void)state;
	three_free(cache);
	/*
	 * With a total of 1 GiB the cache stays below its threshold of a half.
	 * So it collects nothing before it asks the provider.
	 */
	mock.total = GIB;
	mock.fail_allocs = 1;
	assert_int_equal(try_alloc(cache, 400 * MIB), 0);
	assert_int_equal(mock.frees, 3);
	assert_int_equal(figures(cache).num_collections, 0);
	expect_counters(cache, 1, 1, 0);
	flexmem_cache_destroy(cache);
}

static void no_memory_info(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("garbage_collection_threshold:0.01,"
				  "per_process_memory_fraction:0.01");
	uint64_t free_bytes;
	uint64_t total;
	int i;

	(void)state;
	mock.no_info = true;
	for (i = 0; i < 5; i++)
		give(cache, take(cache, 20 * MIB, (uint64_t)i));
	assert_int_equal(mock.warnings, 1);
	assert_non_null(strstr(mock.log, "the device's memory is not known"));
	assert_int_equal(mock.frees, 0);
	assert_int_equal(flexmem_cache_memory_info(cache, &free_bytes, &total),
			 -EOPNOTSUPP);
	flexmem_cache_destroy(cache);
}

static void memory_info(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	uint64_t free_bytes;
	uint64_t total;

	(void)state;
	give(cache, take(cache, 1, 0));
	assert_int_equal(flexmem_cache_memory_info(cache, &free_bytes, &total),
			 0);
	assert_int_equal(total, GIB);
	assert_int_equal(free_bytes, GIB - 2 * MIB);
	assert_int_equal(flexmem_cache_memory_info(cache, NULL, &total),
			 -EINVAL);
	/*
	 * The provider was asked once: by the successful call above. By itself
	 * the cache asks only if a setting such as per_process_memory_fraction
	 * needs the figures, and this cache has no such setting.
	 */
	assert_int_equal(mock.infos, 1);
	flexmem_cache_destroy(cache);
}

static int tell_largest(void *user, uint64_t *bytes)
{
	assert_ptr_equal(user, &mock);
	*bytes = 300 * MIB;
	return mock.fails ? -EIO : 0;
}

/* How large a segment can be, within the fraction. */
static void the_largest_segment(void **state)
{
	struct flexmem_cache_options options =
		mock_options("per_process_memory_fraction:0.5");
	struct flexmem_cache_provider provider = *options.provider;
	struct flexmem_available found;
	struct flexmem_cache *cache;

	(void)state;
	provider.largest = tell_largest;
	options.provider = &provider;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	assert_int_equal(flexmem_cache_available(cache, &found, sizeof(found)),
			 0);
	assert_int_equal(found.total, GIB / 2);
	assert_int_equal(found.free, GIB / 2);
	assert_int_equal(found.largest, 300 * MIB);
	take(cache, 400 * MIB, 0);
	assert_int_equal(flexmem_cache_available(cache, &found, sizeof(found)),
			 0);
	assert_int_equal(found.free, 112 * MIB);
	assert_int_equal(found.largest, 112 * MIB);
	mock.fails = true;
	assert_int_equal(flexmem_cache_available(cache, &found, sizeof(found)),
			 -EIO);
	mock.fails = false;
	assert_int_equal(flexmem_cache_available(cache, NULL, sizeof(found)),
			 -EINVAL);
	assert_int_equal(flexmem_cache_available(cache, &found, 8), -EINVAL);
	assert_int_equal(flexmem_cache_available(NULL, &found, sizeof(found)),
			 -EINVAL);
	flexmem_cache_destroy(cache);
	cache = mock_cache("");
	assert_int_equal(flexmem_cache_available(cache, &found, sizeof(found)),
			 -EOPNOTSUPP);
	flexmem_cache_destroy(cache);
}

/*
 * A fraction counts from what the provider can give, a threshold from the
 * fraction of that. A fraction that is set again does not compound.
 */
static void memory_info_of_a_fraction(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("per_process_memory_fraction:0.5,"
				  "garbage_collection_threshold:0.25");
	uint64_t free_bytes;
	uint64_t total;
	void *live;

	(void)state;
	assert_int_equal(flexmem_cache_memory_info(cache, &free_bytes, &total),
			 0);
	assert_int_equal(total, GIB / 2);
	assert_int_equal(free_bytes, GIB / 2);
	live = take(cache, 100 * MIB, 0);
	give(cache, take(cache, 100 * MIB, 1));
	assert_int_equal(flexmem_cache_memory_info(cache, &free_bytes, &total),
			 0);
	assert_int_equal(free_bytes, GIB / 2 - 200 * MIB);
	/* The threshold is 128 MiB, and 200 MiB are reserved. */
	take(cache, 200 * MIB, 2);
	assert_int_equal(figures(cache).num_collections, 1);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(flexmem_cache_set_memory_fraction(cache, 0.5), 0);
	assert_int_equal(flexmem_cache_memory_info(cache, &free_bytes, &total),
			 0);
	assert_int_equal(total, GIB / 2);
	assert_int_equal(flexmem_cache_set_memory_fraction(cache, 0.125), 0);
	assert_int_equal(flexmem_cache_memory_info(cache, &free_bytes, &total),
			 0);
	assert_int_equal(total, GIB / 8);
	assert_int_equal(free_bytes, 0);
	give(cache, live);
	flexmem_cache_destroy(cache);
}

static void fraction(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("per_process_memory_fraction:0.5");
	struct flexmem_cache_request request = { .bytes = 60 * MIB };
	struct flexmem_cache_allocation a;
	char text[512];

	(void)state;
	mock.total = 200 * MIB;
	give(cache, take(cache, 20 * MIB, 1));
	give(cache, take(cache, 40 * MIB, 2));
	/*
	 * A third segment would exceed the memory fraction, so the cache first
	 * returns the other two.
	 */
	give(cache, take(cache, 60 * MIB, 3));
	assert_int_equal(mock.frees, 2);
	assert_int_equal(mock.allocs, 3);
	assert_int_equal(figures(cache).reserved_bytes[0].peak, 60 * MIB);
	expect_counters(cache, 1, 1, 0);
	flexmem_cache_destroy(cache);

	cache = mock_cache_events("per_process_memory_fraction:0.5");
	take(cache, 40 * MIB, 0);
	take(cache, 60 * MIB, 0);
	mock.allocs = 0;
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	assert_int_equal(mock.allocs, 0);
	assert_int_equal(a.failure.error, 0);
	assert_int_equal(a.failure.allowed_bytes, 100 * MIB);
	expect_counters(cache, 1, 0, 1);
	flexmem_cache_error_text(-ENOMEM, &a.failure, sizeof(a.failure), text,
				 sizeof(text));
	assert_non_null(strstr(text, "; per_process_memory_fraction allows 100.0 MiB"));
	/* These are the figures of flexmem_cache_memory_info(). */
	assert_int_equal(a.failure.device_total, 100 * MIB);
	assert_int_equal(a.failure.device_free, 0);
	assert_non_null(strstr(text, "; this process can have 100.0 MiB, free: 0 B; "));
	flexmem_cache_destroy(cache);

	/*
	 * A fraction that means less than one byte must not be taken for "no
	 * limit".
	 */
	cache = mock_cache_events("per_process_memory_fraction:0.000000001");
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	flexmem_cache_destroy(cache);
}

/*
 * The memory fraction can change at any time. The change itself returns no
 * memory to the provider.
 */
static void fraction_changes(void **state)
{
	static const double bad[] = { 0.0, -0.5, 1.001, NAN };
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 200 * MIB, 5);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(flexmem_cache_set_memory_fraction(cache,
								   bad[i]),
				 -EINVAL);
	assert_int_equal(flexmem_cache_set_memory_fraction(NULL, 0.5),
			 -EINVAL);
	mock.allocs = 0;
	assert_int_equal(flexmem_cache_set_memory_fraction(cache, 0.1), 0);
	assert_int_equal(try_alloc(cache, 2 * MIB), -ENOMEM);
	expect_counters(cache, 1, 0, 1);
	assert_int_equal(mock.allocs, 0);
	give(cache, token);
	/* The cache returns free memory to stay within the fraction. */
	assert_int_equal(try_alloc(cache, 50 * MIB), 0);
	assert_int_equal(try_alloc(cache, 100 * MIB), -ENOMEM);
	assert_int_equal(flexmem_cache_set_memory_fraction(cache, 1.0), 0);
	assert_int_equal(try_alloc(cache, 100 * MIB), 0);
	flexmem_cache_destroy(cache);
}

/*
 * The threshold of garbage collection can change at any time. The cache returns
 * the bytes above the new threshold when it makes the next segment.
 */
static void threshold_changes(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");

	(void)state;
	mock.total = 200 * MIB;
	give(cache, take(cache, 60 * MIB, 1));
	take(cache, 30 * MIB, 2);
	assert_int_equal(mock.frees, 0);
	assert_int_equal(flexmem_cache_set_setting(cache,
						   "garbage_collection_threshold",
						   "0.2"), 0);
	assert_int_equal(mock.frees, 0);
	take(cache, 20 * MIB, 2);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(figures(cache).num_collections, 1);
	flexmem_cache_destroy(cache);
}

/* The bytes that a segment grows by count against the memory fraction. */
static void fraction_of_growing(void **state)
{
	struct flexmem_cache *cache =
		mock_cache("expandable_segments:True,"
			   "per_process_memory_fraction:0.5");

	(void)state;
	mock.total = 20 * MIB;
	take(cache, 6 * MIB, 0);
	take(cache, 4 * MIB, 0);
	assert_int_equal(try_alloc(cache, MIB), -ENOMEM);
	assert_int_equal(mock.grows, 1);
	expect_counters(cache, 1, 0, 1);
	flexmem_cache_destroy(cache);
}

static struct flexmem_cache *the_cache;

static void *allocate_too(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)try_alloc(the_cache, 30 * MIB);
}

static int second_error;

static void another_thread_allocates(void)
{
	pthread_t thread;
	void *result;

	mock.on_alloc = NULL;
	assert_int_equal(pthread_create(&thread, NULL, allocate_too, NULL), 0);
	pthread_join(thread, &result);
	second_error = (int)(intptr_t)result;
}

/*
 * Memory counts against the fraction as soon as the cache asks the provider for
 * it. The cache is not locked during that call.
 */
static void fraction_of_two_at_once(void **state)
{
	struct flexmem_cache *cache =
		mock_cache("release_lock_on_device_malloc:True,"
			   "per_process_memory_fraction:0.5");

	(void)state;
	the_cache = cache;
	mock.total = 100 * MIB;
	mock.on_alloc = another_thread_allocates;
	assert_int_equal(try_alloc(cache, 30 * MIB), 0);
	assert_int_equal(second_error, -ENOMEM);
	assert_int_equal(mock.allocs, 1);
	/* Memory that the provider refused does not count for the fraction. */
	give(cache, take(cache, 20 * MIB, 0));
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	mock.fail_allocs = 2;
	assert_int_equal(try_alloc(cache, 20 * MIB), -ENOMEM);
	assert_int_equal(try_alloc(cache, 20 * MIB), 0);
	flexmem_cache_destroy(cache);
}

static void relieving(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	uint64_t released;
	void *token;

	(void)state;
	three_free(cache);
	token = take(cache, 100 * MIB, 0);
	assert_int_equal(flexmem_cache_record_stream(cache, token, 1), 0);
	give(cache, token);
	assert_int_equal(flexmem_cache_trim(cache, 0, &released), 0);
	assert_int_equal(released, 0);
	/* The cache returns the oldest segments until enough is returned. */
	assert_int_equal(flexmem_cache_trim(cache, 21 * MIB, &released), 0);
	assert_int_equal(released, 60 * MIB);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 160 * MIB);
	/* A trim does not wait for events. */
	assert_int_equal(flexmem_cache_trim(cache, UINT64_MAX, &released),
			 0);
	assert_int_equal(released, 60 * MIB);
	assert_int_equal(mock.waits + mock.device_waits, 0);
	mock.happened[0] = true;
	assert_int_equal(flexmem_cache_trim(cache, 1, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	flexmem_cache_destroy(cache);
}

/* The reserved bytes fall only when the provider has taken the memory back. */
static void reserved_falls_late(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 20 * MIB, 0);

	(void)state;
	give(cache, token);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 20 * MIB);
	assert_int_equal(figures(cache).segment[0].current, 1);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	assert_int_equal(figures(cache).reserved_bytes[0].freed, 20 * MIB);
	assert_int_equal(figures(cache).segment[0].current, 0);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(threshold),
		CACHE_TEST(below_the_threshold),
		CACHE_TEST(oldest_first),
		CACHE_TEST(age_of_remainders),
		CACHE_TEST(threshold_takes_what_is_done),
		CACHE_TEST(events_are_checked_before_a_wait),
		CACHE_TEST(threshold_on_oom),
		CACHE_TEST(no_memory_info),
		CACHE_TEST(memory_info),
		CACHE_TEST(memory_info_of_a_fraction),
		CACHE_TEST(the_largest_segment),
		CACHE_TEST(fraction),
		CACHE_TEST(fraction_changes),
		CACHE_TEST(threshold_changes),
		CACHE_TEST(fraction_of_growing),
		CACHE_TEST(fraction_of_two_at_once),
		CACHE_TEST(relieving),
		CACHE_TEST(reserved_falls_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
