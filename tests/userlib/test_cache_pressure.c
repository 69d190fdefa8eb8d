// SPDX-License-Identifier: GPL-2.0
/* B6, M7: what the cache gives back when others need memory, and when it waits. */
#include "cache_mock.h"

#include <time.h>

/* Time passes when a test says so: no machine is too slow for a second's wait. */
static long clock_ms;

int __wrap_clock_gettime(clockid_t which, struct timespec *now);
int __wrap_clock_gettime(clockid_t which, struct timespec *now)
{
	(void)which;
	*now = (struct timespec){
		.tv_sec = clock_ms / 1000,
		.tv_nsec = clock_ms % 1000 * 1000000,
	};
	return 0;
}

static struct flexmem_cache *pressed_cache(const char *configuration)
{
	mock.has_pressure = true;
	return mock_cache_events(configuration);
}

/* Serves one event, which there must be, and says how much went back. */
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
	/* Half of many, where a quarter or all would be another number. */
	for (i = 0; i < 8; i++)
		tokens[i] = take(cache, 20 * MIB, 0);
	for (i = 0; i < 8; i++)
		give(cache, tokens[i]);
	press(FLEXMEM_LEVEL_MODERATE, 0, 850 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 80 * MIB);
	flexmem_cache_destroy(cache);

	cache = pressed_cache("");
	three_free(cache);
	take(cache, 100 * MIB, 0);
	press(FLEXMEM_LEVEL_MODERATE, 0, 850 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	assert_int_equal(reserved(cache), 160 * MIB);
	/* Half of what is left goes as a whole: it is one segment. */
	press(FLEXMEM_LEVEL_MODERATE, 0, 850 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	/* Live allocations stay. */
	press(FLEXMEM_LEVEL_MODERATE, 0, 850 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 0);
	assert_int_equal(reserved(cache), 100 * MIB);
	assert_int_equal(figures(cache).num_pressure_events, 3);
	assert_int_equal(figures(cache).pressure_bytes, 120 * MIB);
	assert_int_equal(flexmem_cache_reset_accumulated(cache), 0);
	assert_int_equal(figures(cache).num_pressure_events, 0);
	assert_int_equal(figures(cache).pressure_bytes, 0);
	flexmem_cache_destroy(cache);
}

/* Only a level that rises, or stays, asks for something. */
static void falling_levels(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	three_free(cache);
	press(FLEXMEM_LEVEL_NONE, 0, 0, 1000 * MIB);
	assert_int_equal(serve(cache), 0);
	press(FLEXMEM_LEVEL_CRITICAL, 10 * MIB, 100 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	press(FLEXMEM_LEVEL_MODERATE, 0, 750 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 0);
	press(FLEXMEM_LEVEL_NONE, 0, 0, 1000 * MIB);
	assert_int_equal(serve(cache), 0);
	press(FLEXMEM_LEVEL_MODERATE, 0, 850 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	flexmem_cache_destroy(cache);
}

/* No allocation waits: until less than 90 percent are in use, at least half. */
static void critical_goes_below_its_level(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	three_free(cache);
	press(FLEXMEM_LEVEL_CRITICAL, 0, 910 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	flexmem_cache_destroy(cache);

	cache = pressed_cache("");
	three_free(cache);
	press(FLEXMEM_LEVEL_CRITICAL, 0, 960 * MIB, 1000 * MIB);
	assert_int_equal(serve(cache), 120 * MIB);
	flexmem_cache_destroy(cache);
}

/* The smallest piece that is large enough goes, and the oldest beside it. */
static void wanted_goes_in_one_piece(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	uint64_t places[2];
	void *tokens[2];

	(void)state;
	tokens[0] = take(cache, 20 * MIB, 0);
	tokens[1] = take(cache, 100 * MIB, 0);
	places[0] = place(cache, tokens[0]);
	give(cache, tokens[0]);
	give(cache, tokens[1]);
	give(cache, take(cache, 30 * MIB, 1));
	press(FLEXMEM_LEVEL_CRITICAL, 90 * MIB, 0, 1000 * MIB);
	assert_int_equal(serve(cache), 100 * MIB);
	assert_int_equal(place(cache, take(cache, 20 * MIB, 0)), places[0]);
	flexmem_cache_destroy(cache);
}

/* Where there is no such piece, all together may make one. */
static void wanted_takes_all(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	three_free(cache);
	press(FLEXMEM_LEVEL_CRITICAL, 60 * MIB, 0, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	assert_int_equal(reserved(cache), 60 * MIB);
	press(FLEXMEM_LEVEL_CRITICAL, 61 * MIB, 0, 1000 * MIB);
	assert_int_equal(serve(cache), 60 * MIB);
	flexmem_cache_destroy(cache);

	/* The largest two would have the bytes, but are not one piece. */
	cache = pressed_cache("");
	three_free(cache);
	press(FLEXMEM_LEVEL_CRITICAL, 70 * MIB, 0, 1000 * MIB);
	assert_int_equal(serve(cache), 120 * MIB);
	flexmem_cache_destroy(cache);

	cache = pressed_cache("");
	three_free(cache);
	press(FLEXMEM_LEVEL_CRITICAL, UINT64_MAX, UINT64_MAX, 1000 * MIB);
	assert_int_equal(serve(cache), 120 * MIB);
	flexmem_cache_destroy(cache);
}

/* The free ends of segments that grow go back as well, and no more. */
static void growing_segments_shrink(void **state)
{
	struct flexmem_cache *cache = pressed_cache("expandable_segments:True");
	void *kept = take(cache, 3 * MIB, 0);
	void *token = take(cache, 30 * MIB, 0);

	(void)state;
	give(cache, token);
	press(FLEXMEM_LEVEL_CRITICAL, GIB, 0, GIB);
	assert_int_equal(serve(cache), 30 * MIB);
	assert_int_equal(reserved(cache), 4 * MIB);
	assert_int_equal(mock.shrinks, 1);
	assert_int_equal(lookup(cache, kept).size, 3 * MIB);
	flexmem_cache_destroy(cache);
}

/* A segment that grows: 2 MiB are used, and @bytes behind them are free. */
static uint64_t free_end(struct flexmem_cache *cache, uint64_t bytes,
			 uint64_t stream)
{
	uint64_t handle = lookup(cache, take(cache, 2 * MIB, stream)).handle;

	give(cache, take(cache, bytes, stream));
	return handle;
}

/* Mapped memory stays: the next larger piece has to do, and nothing less. */
static void mapped_pieces_stay(void **state)
{
	struct flexmem_cache *cache = pressed_cache("expandable_segments:True");
	uint64_t released;
	uint64_t handle;
	uint64_t before;
	void *late;
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		give(cache, take(cache, 2 * MIB, 100 + i));
	mock_map(free_end(cache, 10 * MIB, 1), true);
	handle = free_end(cache, 16 * MIB, 2);
	late = take(cache, 2 * MIB, 3);
	press(FLEXMEM_LEVEL_CRITICAL, 8 * MIB, 0, GIB);
	/* Half of all that is free is 17 MiB. */
	assert_int_equal(serve(cache), 18 * MIB);
	assert_int_equal(figures(cache).num_device_shrink, 1);
	assert_int_equal(mock.shrinks, 2);
	/* With none all goes that can, and the rest is owed. */
	give(cache, take(cache, 16 * MIB, 2));
	mock_map(handle, true);
	press(FLEXMEM_LEVEL_CRITICAL, 8 * MIB, 0, GIB);
	assert_int_equal(flexmem_cache_serve_pressure(cache, &released),
			 -EBUSY);
	assert_int_equal(released, 6 * MIB);
	before = reserved(cache);
	give(cache, late);
	assert_int_equal(reserved(cache), before - 2 * MIB);
	assert_int_equal(mock.warnings, 0);
	flexmem_cache_destroy(cache);
}

/* A segment of which nothing is used cannot be busy: that is told. */
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

/* M7: nothing that lives, no private pool, and no wait for a stream. */
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
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB, GIB);
	assert_int_equal(serve(cache), 0);
	assert_int_equal(mock.waits + mock.device_waits, 0);
	mock.happened[0] = true;
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB, GIB);
	assert_int_equal(serve(cache), 40 * MIB);
	assert_int_equal(reserved(cache), 40 * MIB);
	assert_int_equal(lookup(cache, used).size, 20 * MIB);
	flexmem_cache_destroy(cache);
}

/*
 * Memory that comes too late for the event goes back nevertheless, and no more.
 */
static void freed_while_others_wait(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	void *tokens[5];
	int i;

	(void)state;
	for (i = 0; i < 5; i++)
		tokens[i] = take(cache, 20 * MIB, 0);
	press(FLEXMEM_LEVEL_CRITICAL, 30 * MIB, GIB, GIB);
	assert_int_equal(serve(cache), 0);
	give(cache, tokens[0]);
	assert_int_equal(reserved(cache), 80 * MIB);
	give(cache, tokens[1]);
	assert_int_equal(reserved(cache), 60 * MIB);
	give(cache, tokens[2]);
	assert_int_equal(reserved(cache), 60 * MIB);
	assert_int_equal(figures(cache).pressure_bytes, 40 * MIB);
	press(FLEXMEM_LEVEL_CRITICAL, 30 * MIB, GIB, GIB);
	assert_int_equal(serve(cache), 20 * MIB);
	/* No allocation waits any more. */
	press(FLEXMEM_LEVEL_MODERATE, 0, GIB, GIB);
	assert_int_equal(serve(cache), 0);
	give(cache, tokens[3]);
	assert_int_equal(reserved(cache), 40 * MIB);
	flexmem_cache_destroy(cache);
}

/* However it goes back: others have it. */
static void others_take_what_goes_back(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	void *tokens[2];
	int i;

	(void)state;
	for (i = 0; i < 2; i++)
		tokens[i] = take(cache, 20 * MIB, 0);
	give(cache, tokens[0]);
	press(FLEXMEM_LEVEL_CRITICAL, 20 * MIB, GIB, GIB);
	mock.fail_frees = 2;
	mock.error = -EIO;
	assert_int_equal(flexmem_cache_serve_pressure(cache, NULL), -EIO);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(reserved(cache), 20 * MIB);
	assert_int_equal(figures(cache).pressure_bytes, 20 * MIB);
	give(cache, tokens[1]);
	assert_int_equal(reserved(cache), 20 * MIB);
	flexmem_cache_destroy(cache);
}

/* The waiter gave up, or got memory elsewhere: what is freed then stays. */
static void nobody_waits_any_more(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	void *tokens[3];
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		tokens[i] = take(cache, 20 * MIB, 0);
	press(FLEXMEM_LEVEL_CRITICAL, 100 * MIB, GIB, GIB);
	assert_int_equal(serve(cache), 0);
	give(cache, tokens[0]);
	assert_int_equal(reserved(cache), 40 * MIB);
	clock_ms += 1000 - 1;
	give(cache, tokens[1]);
	assert_int_equal(reserved(cache), 20 * MIB);
	clock_ms++;
	give(cache, tokens[2]);
	assert_int_equal(reserved(cache), 20 * MIB);
	assert_int_equal(figures(cache).pressure_bytes, 40 * MIB);
	flexmem_cache_destroy(cache);
}

/* Two threads read events, and the one with the later event is faster. */
static void late_events_are_ignored(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	three_free(cache);
	mock.sequence = 7;
	press(FLEXMEM_LEVEL_NONE, 0, 0, GIB);
	assert_int_equal(serve(cache), 0);
	mock.sequence = 6;
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB, GIB);
	assert_int_equal(serve(cache), 0);
	assert_int_equal(figures(cache).num_pressure_events, 1);
	/* Nor is anything owed. */
	give(cache, take(cache, 20 * MIB, 9));
	assert_int_equal(reserved(cache), 120 * MIB);
	mock.sequence = 8;
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB, GIB);
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
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB, GIB);
	mock.fail_frees = 1;
	mock.error = -EIO;
	assert_int_equal(flexmem_cache_serve_pressure(cache, &released), -EIO);
	assert_int_equal(released, 100 * MIB);
	press(FLEXMEM_LEVEL_CRITICAL, GIB, GIB, GIB);
	assert_int_equal(flexmem_cache_serve_pressure(cache, NULL), 0);
	assert_int_equal(reserved(cache), 0);
	flexmem_cache_destroy(cache);
}

/* A provider as the first version of the header had it. */
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
		CACHE_TEST(falling_levels),
		CACHE_TEST(critical_goes_below_its_level),
		CACHE_TEST(wanted_goes_in_one_piece),
		CACHE_TEST(wanted_takes_all),
		CACHE_TEST(growing_segments_shrink),
		CACHE_TEST(mapped_pieces_stay),
		CACHE_TEST(busy_is_silent_for_ends_only),
		CACHE_TEST(nothing_is_waited_for),
		CACHE_TEST(freed_while_others_wait),
		CACHE_TEST(others_take_what_goes_back),
		CACHE_TEST(nobody_waits_any_more),
		CACHE_TEST(late_events_are_ignored),
		CACHE_TEST(serving_errors),
		CACHE_TEST(providers_of_the_first_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
