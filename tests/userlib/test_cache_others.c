// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for memory of other processes, with a clock that only the test moves.
 */
#include "cache_mock.h"

#include <time.h>

/* All waits of a request together. */
#define WHOLE_MS (10 + 20 + 40 + 12 * 100)
#define WAITS 15
#define MS 1000000

/* The test's clock, and how many milliseconds pass between two signals. */
static int64_t now_ns;
static int64_t signal_ns;
static unsigned int interrupted;
static unsigned int sleeps;
static int64_t longest_ms;

int __real_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, time);
	time->tv_sec = now_ns / 1000 / MS;
	time->tv_nsec = now_ns % (1000 * (int64_t)MS);
	return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags,
			   const struct timespec *until, struct timespec *left)
{
	int64_t end = until->tv_sec * 1000 * (int64_t)MS + until->tv_nsec;

	(void)left;
	assert_int_equal(clock, CLOCK_MONOTONIC);
	assert_int_equal(flags, TIMER_ABSTIME);
	assert_in_range(until->tv_nsec, 0, 999999999);
	sleeps++;
	if ((end - now_ns) / MS > longest_ms)
		longest_ms = (end - now_ns) / MS;
	if (signal_ns && now_ns + signal_ns < end) {
		now_ns += signal_ns;
		interrupted++;
		return EINTR;
	}
	if (now_ns < end)
		now_ns = end;
	return 0;
}

/* The clock begins just before a full second. */
static void start_clock(void)
{
	now_ns = 999 * (int64_t)MS;
	signal_ns = 0;
	interrupted = 0;
	sleeps = 0;
	longest_ms = 0;
}

/* How long a request takes that fails. */
static int64_t failure_ms(struct flexmem_cache *cache, uint64_t bytes)
{
	int64_t began = now_ns;

	assert_int_equal(try_alloc(cache, bytes), -ENOMEM);
	return (now_ns - began) / MS;
}

static int64_t aligned_failure_ms(struct flexmem_cache *cache, uint64_t bytes,
				  uint64_t alignment)
{
	const struct flexmem_cache_request request = {
		.bytes = bytes,
		.alignment = alignment,
	};
	struct flexmem_cache_allocation made;
	int64_t began = now_ns;

	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &made,
						     sizeof(made)), -ENOMEM);
	return (now_ns - began) / MS;
}

/* Other processes have 1 GiB. The provider refuses for @reason. */
static struct flexmem_cache *beside_others(const char *configuration,
					   struct flexmem_failure reason)
{
	struct flexmem_cache *cache;

	start_clock();
	mock.has_pressure = true;
	cache = mock_cache(configuration);
	mock.total = 2 * mock.capacity;
	mock.error = -ENOMEM;
	mock.fail_allocs = 1000;
	mock.reason = reason;
	return cache;
}

static const struct flexmem_failure slots = { .limit = FLEXMEM_LIMIT_SLOTS };

static void others_get_time(void **state)
{
	struct flexmem_cache *cache = beside_others("", slots);
	int64_t began = now_ns;

	(void)state;
	mock.fail_allocs = 7;
	/*
	 * The cache asks three times, the last time for just the bytes of the
	 * request. Then it asks twice after each wait: in vain after two waits,
	 * and the first time after the third.
	 */
	assert_int_equal(try_alloc(cache, MIB), 0);
	assert_int_equal(mock.allocs, 8);
	assert_int_equal(now_ns - began, (10 + 20 + 40) * (int64_t)MS);
	expect_counters(cache, 1, 1, 0);
	flexmem_cache_destroy(cache);
}

static void others_get_the_promised_time(void **state)
{
	struct flexmem_cache *cache = beside_others("", slots);

	(void)state;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	assert_int_equal(mock.allocs, 3 + 2 * WAITS);
	expect_counters(cache, 1, 0, 1);
	flexmem_cache_destroy(cache);
}

/* The driver sends an event each 100 ms, and the gift for it must be taken. */
static void no_wait_is_longer_than_an_event(void **state)
{
	struct flexmem_cache *cache = beside_others("", slots);

	(void)state;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	assert_in_range(longest_ms, 1, 100);
	flexmem_cache_destroy(cache);
}

static void a_storm_of_signals(void **state)
{
	struct flexmem_cache *cache = beside_others("", slots);

	(void)state;
	signal_ns = 100000;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	assert_int_equal(mock.allocs, 3 + 2 * WAITS);
	assert_true(interrupted >= 10 * WHOLE_MS - WAITS);
	flexmem_cache_destroy(cache);
}

static void waits_only_for_others_with_enough(void **state)
{
	struct flexmem_cache *cache = beside_others("", slots);

	(void)state;
	/* The request needs more than all other processes could free. */
	assert_int_equal(failure_ms(cache, 3 * mock.capacity), 0);
	assert_int_equal(mock.allocs, 2);
	assert_int_equal(failure_ms(cache, mock.capacity), WHOLE_MS);
	/* What this process has outside of the cache is its own. */
	mock.reason.own_used = 512 * MIB;
	assert_int_equal(failure_ms(cache, 1536 * MIB), WHOLE_MS);
	mock.reason.own_used += 2 * MIB;
	assert_int_equal(failure_ms(cache, 1536 * MIB), 0);
	mock.reason.own_used = GIB;
	assert_int_equal(failure_ms(cache, MIB), 0);
	mock.reason.own_used = 0;
	/* No other process uses the device. */
	mock.total = 0;
	assert_int_equal(failure_ms(cache, MIB), 0);
	mock.total = 2 * mock.capacity;
	mock.no_info = true;
	assert_int_equal(failure_ms(cache, MIB), 0);
	mock.no_info = false;
	flexmem_cache_destroy(cache);
	/* The provider has no events, so others do not learn of the request. */
	mock.has_pressure = false;
	cache = mock_cache("");
	assert_int_equal(failure_ms(cache, MIB), 0);
	flexmem_cache_destroy(cache);
}

/* The request counts, not a segment: the last segment is just as large. */
static void the_request_counts(void **state)
{
	struct flexmem_cache *cache;

	(void)state;
	mock.capacity = 4 * MIB;
	cache = beside_others("", slots);
	mock.total = 15 * MIB;
	/* A request of 9 MiB would have a segment of 20 MiB. */
	assert_int_equal(failure_ms(cache, 9 * MIB), WHOLE_MS);
	/* A device gives a multiple of the alignment. */
	assert_int_equal(aligned_failure_ms(cache, MIB, 8 * MIB), WHOLE_MS);
	assert_int_equal(aligned_failure_ms(cache, MIB, 16 * MIB), 0);
	flexmem_cache_destroy(cache);
	cache = beside_others("expandable_segments:True", slots);
	mock.total = 15 * MIB;
	assert_int_equal(failure_ms(cache, 9 * MIB), WHOLE_MS);
	flexmem_cache_destroy(cache);
}

static void nobody_helps_the_own_fraction(void **state)
{
	struct flexmem_cache *cache =
		beside_others("per_process_memory_fraction:0.25", slots);

	(void)state;
	mock.fail_allocs = 0;
	assert_int_equal(failure_ms(cache, 600 * MIB), 0);
	assert_int_equal(mock.allocs, 0);
	assert_int_equal(sleeps, 0);
	flexmem_cache_destroy(cache);
}

static void nobody_helps_a_fixed_limit(void **state)
{
	struct flexmem_cache *cache =
		beside_others("", (struct flexmem_failure){
			      .limit = FLEXMEM_LIMIT_REGION_SIZE });

	(void)state;
	assert_int_equal(failure_ms(cache, MIB), 0);
	mock.reason.limit = FLEXMEM_LIMIT_HANDLES;
	assert_int_equal(failure_ms(cache, MIB), 0);
	assert_int_equal(sleeps, 0);
	mock.reason.limit = FLEXMEM_LIMIT_FRAGMENTATION;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	mock.reason.limit = FLEXMEM_LIMIT_RESERVED;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	flexmem_cache_destroy(cache);
}

static void a_limit_of_the_cgroup(void **state)
{
	struct flexmem_cache *cache =
		beside_others("", (struct flexmem_failure){
			      .limit = FLEXMEM_LIMIT_CGROUP,
			      .charge = FLEXMEM_CHARGE_BYTES,
			      .quota = 100 * MIB,
			      .quota_used = 100 * MIB,
			      .quota_own = 90 * MIB });

	(void)state;
	/* Only this file is charged, also if others use the device. */
	assert_int_equal(failure_ms(cache, MIB), 0);
	mock.reason.quota_flags = FLEXMEM_QUOTA_SHARED;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	assert_int_equal(failure_ms(cache, 12 * MIB), 0);
	/* The limit was set below what this file has. */
	mock.reason.quota = 50 * MIB;
	assert_int_equal(failure_ms(cache, MIB), 0);
	flexmem_cache_destroy(cache);
}

/* The driver knows that no other file can help, whatever the figures say. */
static void nobody_can_help(void **state)
{
	struct flexmem_cache *cache =
		beside_others("", (struct flexmem_failure){
			      .limit = FLEXMEM_LIMIT_FRAGMENTATION });

	(void)state;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	mock.reason.quota_flags = FLEXMEM_QUOTA_ALONE;
	assert_int_equal(failure_ms(cache, MIB), 0);
	flexmem_cache_destroy(cache);
}

/* Of the limit of a cgroup above, it is known whether others are charged. */
static void a_hidden_limit(void **state)
{
	struct flexmem_cache *cache =
		beside_others("", (struct flexmem_failure){
			      .limit = FLEXMEM_LIMIT_CGROUP,
			      .charge = FLEXMEM_CHARGE_BYTES,
			      .quota = FLEXMEM_UNLIMITED });

	(void)state;
	assert_int_equal(failure_ms(cache, MIB), 0);
	mock.reason.quota_flags = FLEXMEM_QUOTA_SHARED;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	mock.reason.own_used = 2 * mock.capacity;
	assert_int_equal(failure_ms(cache, MIB), 0);
	/* However much memory others have, it need not be charged. */
	mock.reason.charge = FLEXMEM_CHARGE_HANDLES;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	mock.reason.quota_flags = 0;
	mock.reason.own_used = 0;
	assert_int_equal(failure_ms(cache, MIB), 0);
	/* An older driver tells nothing about the limit. */
	mock.reason.quota_left = FLEXMEM_UNLIMITED;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	flexmem_cache_destroy(cache);
}

/* A segment that could grow within the limit waits for others, not for itself. */
static void a_growing_segment_below_a_limit(void **state)
{
	struct flexmem_cache *cache =
		beside_others("expandable_segments:True",
			      (struct flexmem_failure){
			      .limit = FLEXMEM_LIMIT_CGROUP,
			      .charge = FLEXMEM_CHARGE_BYTES,
			      .quota = 100 * MIB,
			      .quota_used = 91 * MIB,
			      .quota_own = 91 * MIB });

	(void)state;
	assert_int_equal(failure_ms(cache, 9 * MIB), 0);
	mock.reason.quota_own = 90 * MIB;
	mock.reason.quota_flags = FLEXMEM_QUOTA_SHARED;
	assert_int_equal(failure_ms(cache, 9 * MIB), WHOLE_MS);
	flexmem_cache_destroy(cache);
}

/* In a region that this file is charged, another file may have the room. */
static void a_limit_of_regions(void **state)
{
	struct flexmem_cache *cache =
		beside_others("", (struct flexmem_failure){
			      .limit = FLEXMEM_LIMIT_CGROUP_REGIONS,
			      .charge = FLEXMEM_CHARGE_REGIONS,
			      .quota = 2,
			      .quota_used = 2,
			      .quota_own = 1 });

	(void)state;
	assert_int_equal(failure_ms(cache, MIB), 0);
	mock.reason.quota_flags = FLEXMEM_QUOTA_SHARED;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	mock.reason.quota_own = 2;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	mock.reason.quota = FLEXMEM_UNLIMITED;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	mock.reason.quota_flags = 0;
	assert_int_equal(failure_ms(cache, MIB), 0);
	flexmem_cache_destroy(cache);
}

static void a_limit_of_handles(void **state)
{
	struct flexmem_cache *cache =
		beside_others("", (struct flexmem_failure){
			      .limit = FLEXMEM_LIMIT_CGROUP,
			      .charge = FLEXMEM_CHARGE_HANDLES,
			      .quota = 2,
			      .quota_used = 2,
			      .quota_own = 1 });

	(void)state;
	assert_int_equal(failure_ms(cache, MIB), 0);
	mock.reason.quota_flags = FLEXMEM_QUOTA_SHARED;
	assert_int_equal(failure_ms(cache, MIB), WHOLE_MS);
	mock.reason.quota_own = 2;
	assert_int_equal(failure_ms(cache, MIB), 0);
	flexmem_cache_destroy(cache);
}

/* During the wait others give all they have, and then nobody can help. */
static void the_cause_changes(void)
{
	if (mock.allocs == 6)
		mock.reason.limit = FLEXMEM_LIMIT_REGION_SIZE;
}

static void the_wait_ends_with_its_cause(void **state)
{
	struct flexmem_cache *cache = beside_others("", slots);

	(void)state;
	mock.on_alloc = the_cause_changes;
	assert_int_equal(failure_ms(cache, MIB), 10 + 20);
	assert_int_equal(mock.allocs, 7);
	flexmem_cache_destroy(cache);
}

/* A pool with a provider of its own waits for others on that provider only. */
static void a_pool_on_its_own_provider(void **state)
{
	struct flexmem_cache *cache = beside_others("", slots);
	struct flexmem_cache_allocation a;
	struct flexmem_cache_request request = { .bytes = MIB };
	struct flexmem_cache_provider provider;

	(void)state;
	provider = *mock_options("").provider;
	provider.pressure = NULL;
	provider.pressure_fd = NULL;
	assert_int_equal(flexmem_cache_pool_create_on(cache, &provider,
						      sizeof(provider),
						      &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	assert_int_equal(sleeps, 0);
	assert_int_equal(flexmem_cache_pool_release(cache, request.pool), 0);
	flexmem_cache_destroy(cache);
}

static int no_descriptor(void *user)
{
	(void)user;
	return -1;
}

/* What the process has of another provider is not its part of this one. */
static void memory_of_another_provider(void **state)
{
	struct flexmem_cache *cache = beside_others("", slots);
	struct flexmem_cache_request request = { .bytes = 10 * GIB };
	struct flexmem_cache_allocation a;
	struct flexmem_cache_provider provider;
	struct flexmem_cache_flat *flat;

	(void)state;
	assert_int_equal(flexmem_cache_flat_create(&flat, 16 * GIB, &provider,
						   sizeof(provider)), 0);
	provider.pressure_fd = no_descriptor;
	assert_int_equal(flexmem_cache_pool_create_on(cache, &provider,
						      sizeof(provider),
						      &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	assert_int_equal(failure_ms(cache, GIB), WHOLE_MS);
	/* Nobody else has memory of the other one. */
	sleeps = 0;
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	assert_int_equal(sleeps, 0);
	flexmem_cache_destroy(cache);
	flexmem_cache_flat_destroy(flat);
}

/* A cache over a device, in a cgroup with a limit of 1 GiB. */
static void a_device_below_a_limit(void **state)
{
	struct flexmem_cache_options options = { .configuration = "" };
	struct flexmem_device *other;
	struct flexmem_allocated a;
	struct flexmem_cache *cache;

	(void)state;
	start_clock();
	fake.limit = GIB;
	options.device = open_device();
	other = open_device();
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	take(cache, GIB / 2, 0);
	assert_int_equal(failure_ms(cache, GIB / 2 + 1), 0);
	assert_int_equal(failure_ms(cache, 2 * GIB), 0);
	assert_int_equal(sleeps, 0);
	assert_int_equal(flexmem_device_alloc(other, GIB / 4, 0, 0, &a,
					      sizeof(a)), 0);
	assert_int_equal(failure_ms(cache, GIB / 2), WHOLE_MS);
	fake.hides_limit = true;
	assert_int_equal(failure_ms(cache, GIB / 2), WHOLE_MS);
	assert_int_equal(flexmem_device_free(other, a.handle), 0);
	assert_int_equal(failure_ms(cache, GIB / 2 + 1), 0);
	flexmem_cache_destroy(cache);
	flexmem_device_close(other);
	flexmem_device_close(options.device);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(others_get_time),
		CACHE_TEST(others_get_the_promised_time),
		CACHE_TEST(no_wait_is_longer_than_an_event),
		CACHE_TEST(a_storm_of_signals),
		CACHE_TEST(waits_only_for_others_with_enough),
		CACHE_TEST(the_request_counts),
		CACHE_TEST(nobody_helps_the_own_fraction),
		CACHE_TEST(nobody_helps_a_fixed_limit),
		CACHE_TEST(a_limit_of_the_cgroup),
		CACHE_TEST(nobody_can_help),
		CACHE_TEST(a_hidden_limit),
		CACHE_TEST(a_growing_segment_below_a_limit),
		CACHE_TEST(a_limit_of_regions),
		CACHE_TEST(a_limit_of_handles),
		CACHE_TEST(the_wait_ends_with_its_cause),
		CACHE_TEST(a_pool_on_its_own_provider),
		CACHE_TEST(memory_of_another_provider),
		CACHE_TEST(a_device_below_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
