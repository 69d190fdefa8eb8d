// SPDX-License-Identifier: GPL-2.0
/*
 * The cache returns memory that other processes need, and waits for memory of
 * other processes.
 */
#include "cache_mock.h"

static struct flexmem_cache *pressed_cache(const char *configuration)
{
	mock.has_pressure = true;
	return mock_cache_events(configuration);
}

/* Serves one event. Returns the bytes that were released. */
static uint64_t serve(struct flexmem_cache *cache)
{
	uint64_t released = UINT64_MAX;

	assert_int_equal(flexmem_cache_serve_pressure(cache, &released), 0);
	return released;
}

static uint64_t reserved(struct flexmem_cache *cache)
{
	return figures(cache).reserved_bytes[FLEXMEM_CACHE_ALL].current;
}

static void moderate_gives_half(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	void *tokens[8];
	int i;

	(void)state;
	/*
	 * With eight segments a half differs from a quarter and from all of
	 * them.
	 */
	for (i = 0; i < 8; i++)
		tokens[i] = take(cache, 20 * MIB, 0);
	for (i = 0; i < 8; i++)
		give(cache, tokens[i]);
	press(FLEXMEM_LEVEL_MODERATE, 850 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 80 * MIB);
	flexmem_cache_destroy(cache);

	cache = pressed_cache("");
	three_free(cache);
	take(cache, 100 * MIB, 0);
	press(FLEXMEM_LEVEL_MODERATE, 850 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	assert_int_equal(reserved(cache), 160 * MIB);
	/*
	 * A segment of more than half of the remaining free bytes is returned
	 * as a whole.
	 */
	press(FLEXMEM_LEVEL_MODERATE, 850 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	/* Live allocations are not returned. */
	press(FLEXMEM_LEVEL_MODERATE, 850 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 0);
	assert_int_equal(reserved(cache), 100 * MIB);
	assert_int_equal(figures(cache).num_pressure_events, 3);
	assert_int_equal(figures(cache).pressure_bytes, 120 * MIB);
	assert_int_equal(flexmem_cache_reset_accumulated(cache), 0);
	assert_int_equal(figures(cache).num_pressure_events, 0);
	assert_int_equal(figures(cache).pressure_bytes, 0);
	flexmem_cache_destroy(cache);
}

/* The memory used last stays, because the cache uses it first. */
static void moderate_gives_the_oldest_half(void **state)
{
	static const int order[] = { 2, 0, 3, 1 };
	struct flexmem_cache *cache = pressed_cache("");
	uint64_t places[4];
	void *tokens[4];
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		tokens[i] = take(cache, 20 * MIB, 0);
		places[i] = place(cache, tokens[i]);
	}
	take(cache, 128, 0);
	/*
	 * The cache measures age in allocations, so an allocation between two
	 * frees makes the block that is freed later younger.
	 */
	for (i = 0; i < 4; i++) {
		give(cache, tokens[order[i]]);
		give(cache, take(cache, 128, 0));
	}
	press(FLEXMEM_LEVEL_MODERATE, 850 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 40 * MIB);
	/* Segments 1 and 3 are left. */
	for (i = 1; i < 4; i += 2)
		assert_int_equal(place(cache, take(cache, 20 * MIB, 0)),
				 places[i]);
	flexmem_cache_destroy(cache);
}

/* When the level of pressure falls, the cache returns no memory. */
static void falling_levels(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	three_free(cache);
	press(FLEXMEM_LEVEL_NONE, 0, 1000 * MIB);
	assert_int_equal(serve(cache), 0);
	press(FLEXMEM_LEVEL_CRITICAL, 100 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	press(FLEXMEM_LEVEL_MODERATE, 750 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 0);
	press(FLEXMEM_LEVEL_NONE, 0, 1000 * MIB);
	assert_int_equal(serve(cache), 0);
	press(FLEXMEM_LEVEL_MODERATE, 850 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	flexmem_cache_destroy(cache);
}

/*
 * At CRITICAL the cache returns at least half of its free memory. It goes on
 * until less than 90 percent of the device are in use.
 */
static void critical_goes_below_its_level(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	three_free(cache);
	press(FLEXMEM_LEVEL_CRITICAL, 910 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	flexmem_cache_destroy(cache);

	cache = pressed_cache("");
	three_free(cache);
	press(FLEXMEM_LEVEL_CRITICAL, 960 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 120 * MIB);
	flexmem_cache_destroy(cache);
}

/* Growing segments return their free ends, in whole steps. */
static void growing_segments_shrink(void **state)
{
	struct flexmem_cache *cache = pressed_cache("expandable_segments:True");
	void *kept = take(cache, 3 * MIB, 0);
	void *token = take(cache, 30 * MIB, 0);

	(void)state;
	give(cache, token);
	press(FLEXMEM_LEVEL_CRITICAL, 0, GIB);
	assert_int_equal(serve(cache), 30 * MIB);
	assert_int_equal(reserved(cache), 4 * MIB);
	assert_int_equal(mock.shrinks, 1);
	assert_int_equal(lookup(cache, kept).size, 3 * MIB);
	flexmem_cache_destroy(cache);
}

/* Makes a growing segment: 2 MiB in use, then @bytes free. */
static uint64_t free_end(struct flexmem_cache *cache, uint64_t bytes,
			 uint64_t stream)
{
	uint64_t handle = lookup(cache, take(cache, 2 * MIB, stream)).handle;

	give(cache, take(cache, bytes, stream));
	return handle;
}

/* A mapped segment stays. The cache returns other segments instead. */
static void mapped_ends_stay(void **state)
{
	struct flexmem_cache *cache = pressed_cache("expandable_segments:True");
	uint64_t released;

	(void)state;
	mock_map(free_end(cache, 10 * MIB, 1), true);
	free_end(cache, 4 * MIB, 2);
	free_end(cache, 2 * MIB, 3);
	press(FLEXMEM_LEVEL_CRITICAL, 0, GIB);
	/*
	 * 10 of the 16 MiB are mapped, so only 6 MiB are returned. Half of the
	 * free memory would be 8 MiB.
	 */
	assert_int_equal(flexmem_cache_serve_pressure(cache, &released),
			 -EBUSY);
	assert_int_equal(released, 6 * MIB);
	assert_int_equal(mock.warnings, 0);
	flexmem_cache_destroy(cache);
}

/*
 * The provider may refuse with EBUSY to shrink a segment that is in use. If it
 * refuses to free a segment of which no byte is in use, the cache warns.
 */
static void busy_is_silent_for_ends_only(void **state)
{
	struct flexmem_cache *cache = pressed_cache("expandable_segments:True");
	uint64_t handle = free_end(cache, 10 * MIB, 1);

	(void)state;
	mock_map(handle, true);
	assert_int_equal(flexmem_cache_trim(cache, GIB, NULL), -EBUSY);
	assert_int_equal(mock.warnings, 0);
	give(cache, take(cache, 10 * MIB, 2));
	mock.fail_frees = 2;
	mock.error = -EBUSY;
	assert_int_equal(flexmem_cache_trim(cache, GIB, NULL), -EBUSY);
	assert_int_equal(mock.fail_frees, 0);
	assert_int_equal(mock.warnings, 1);
	assert_string_equal(mock.log,
		"the provider did not take 10485760 bytes back: error 16\n");
	flexmem_cache_destroy(cache);
}

/*
 * The cache keeps live allocations and private pools, and does not wait for
 * streams.
 */
static void nothing_is_waited_for(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	struct flexmem_cache_request request = { .bytes = 20 * MIB };
	struct flexmem_cache_allocation a;
	void *used = take(cache, 20 * MIB, 0);
	void *token = take(cache, 40 * MIB, 0);

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	give(cache, a.token);
	assert_int_equal(flexmem_cache_record_stream(cache, token, 1), 0);
	give(cache, token);
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB);
	assert_int_equal(serve(cache), 0);
	assert_int_equal(mock.waits + mock.device_waits, 0);
	mock.happened[0] = true;
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB);
	assert_int_equal(serve(cache), 40 * MIB);
	assert_int_equal(reserved(cache), 40 * MIB);
	assert_int_equal(lookup(cache, used).size, 20 * MIB);
	flexmem_cache_destroy(cache);
}

/* A provider of a pool. While it is busy, it takes no segment back. */
static struct flexmem_cache_provider elsewhere;
static bool is_busy;

static int alloc_elsewhere(void *user, uint64_t bytes, uint64_t alignment,
			   uint32_t flags, struct flexmem_cache_memory *memory,
			   struct flexmem_failure *failure)
{
	int err = elsewhere.alloc(user, bytes, alignment, flags, memory,
				  failure);

	memory->address.region_id = 77;
	return err;
}

static int free_elsewhere(void *user, uint64_t handle)
{
	return is_busy ? -EBUSY : elsewhere.free(user, handle);
}

/*
 * An event is about the device of the cache's provider. A free segment of another
 * provider, the oldest one here, neither counts nor goes.
 */
static void memory_of_another_provider(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	struct flexmem_cache_request request = { .bytes = 70 * MIB };
	struct flexmem_cache_allocation a;
	struct flexmem_cache_provider provider;
	struct flexmem_cache_flat *flat;

	(void)state;
	assert_int_equal(flexmem_cache_flat_create(&flat, GIB, &elsewhere,
						   sizeof(elsewhere)), 0);
	provider = elsewhere;
	provider.alloc = alloc_elsewhere;
	provider.free = free_elsewhere;
	assert_int_equal(flexmem_cache_pool_create_on(cache, &provider,
						      sizeof(provider),
						      &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	is_busy = true;
	give(cache, a.token);
	assert_int_equal(flexmem_cache_pool_release(cache, request.pool), 0);
	is_busy = false;
	three_free(cache);
	press(FLEXMEM_LEVEL_MODERATE, 850 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB);
	assert_int_equal(serve(cache), 60 * MIB);
	assert_int_equal(reserved(cache), 70 * MIB);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(reserved(cache), 0);
	flexmem_cache_destroy(cache);
	flexmem_cache_flat_destroy(flat);
}

/*
 * Two threads read events, and the thread with the later event is served first.
 * The earlier event is then ignored.
 */
static void late_events_are_ignored(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	three_free(cache);
	mock.sequence = 7;
	press(FLEXMEM_LEVEL_NONE, 0, GIB);
	assert_int_equal(serve(cache), 0);
	mock.sequence = 6;
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB);
	assert_int_equal(serve(cache), 0);
	assert_int_equal(figures(cache).num_pressure_events, 1);
	mock.sequence = 8;
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB);
	assert_int_equal(serve(cache), 120 * MIB);
	flexmem_cache_destroy(cache);
}

static void serving_errors(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	uint64_t released = 1;

	(void)state;
	assert_int_equal(flexmem_cache_serve_pressure(NULL, &released),
			 -EINVAL);
	assert_int_equal(flexmem_cache_serve_pressure(cache, &released),
			 -EAGAIN);
	assert_int_equal(released, 0);
	three_free(cache);
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB);
	mock.fail_frees = 1;
	mock.error = -EIO;
	assert_int_equal(flexmem_cache_serve_pressure(cache, &released), -EIO);
	assert_int_equal(released, 100 * MIB);
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB);
	assert_int_equal(flexmem_cache_serve_pressure(cache, NULL), 0);
	assert_int_equal(reserved(cache), 0);
	flexmem_cache_destroy(cache);
}

/* A provider whose struct has the size of the first version. */
static void providers_of_the_first_version(void **state)
{
	struct flexmem_cache_options options;
	struct flexmem_cache *cache;

	(void)state;
	mock.has_pressure = true;
	options = mock_options("");
	options.provider_size = offsetof(struct flexmem_cache_provider,
					 pressure);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	assert_int_equal(flexmem_cache_serve_pressure(cache, NULL),
			 -EOPNOTSUPP);
	assert_int_equal(flexmem_cache_start_helper(cache), -EOPNOTSUPP);
	mock.fail_allocs = 1;
	assert_int_equal(try_alloc(cache, MIB), 0);
	assert_int_equal(mock.allocs, 2);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(moderate_gives_half),
		CACHE_TEST(moderate_gives_the_oldest_half),
		CACHE_TEST(falling_levels),
		CACHE_TEST(critical_goes_below_its_level),
		CACHE_TEST(growing_segments_shrink),
		CACHE_TEST(mapped_ends_stay),
		CACHE_TEST(busy_is_silent_for_ends_only),
		CACHE_TEST(nothing_is_waited_for),
		CACHE_TEST(memory_of_another_provider),
		CACHE_TEST(late_events_are_ignored),
		CACHE_TEST(serving_errors),
		CACHE_TEST(providers_of_the_first_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
