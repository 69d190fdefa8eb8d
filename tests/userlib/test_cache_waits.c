// SPDX-License-Identifier: GPL-2.0
/* Waiting for events and for the device. */
#include "cache_mock.h"

static struct flexmem_cache *the_cache;

static void emptying_waits(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *a = take(cache, 20 * MIB, 0);
	void *b = take(cache, 20 * MIB, 0);
	uint64_t released;

	(void)state;
	use(cache, a, 1);
	use(cache, b, 1);
	give(cache, a);
	give(cache, b);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 40 * MIB);
	/* The cache waited only for the stream's last event. */
	assert_int_equal(mock.waits, 1);
	assert_int_equal(mock.device_waits, 0);
	flexmem_cache_destroy(cache);
}

static void emptying_cannot_wait(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *a = take(cache, 20 * MIB, 0);
	void *b = take(cache, 20 * MIB, 0);
	uint64_t released;

	(void)state;
	use(cache, a, 1);
	use(cache, b, 2);
	give(cache, a);
	give(cache, b);
	mock.fail_waits = 1;
	assert_int_equal(flexmem_cache_empty(cache, &released), -EIO);
	assert_int_equal(released, 20 * MIB);
	assert_int_equal(mock.warnings, 1);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 20 * MIB);
	flexmem_cache_destroy(cache);
}

/* A thread must not destroy an event that another thread waits for. */
static void poll_meanwhile(void)
{
	memset(mock.happened, true, sizeof(mock.happened));
	mock.on_wait = NULL;
	take(the_cache, 1000, 0);
	assert_false(mock.destroyed[0]);
	/*
	 * A failing request waits for the device in the end. That wait does not
	 * destroy the event either.
	 */
	mock.fail_allocs = 2;
	assert_int_equal(flexmem_cache_alloc(the_cache, 20 * MIB, 0,
					     &(void *){ NULL }), -ENOMEM);
	assert_false(mock.destroyed[0]);
	mock.fail_allocs = 0;
}

static void waiting_pins(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 1000, 0);

	(void)state;
	the_cache = cache;
	use(cache, token, 1);
	give(cache, token);
	mock.on_wait = poll_meanwhile;
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_true(mock.destroyed[0]);
	flexmem_cache_destroy(cache);
}

static void take_meanwhile(void)
{
	void *token;

	mock.on_wait = NULL;
	token = take(the_cache, 20 * MIB, 0);
	assert_int_equal(mock.device_waits, 1);
	/* A thread still waits for the event of the block. */
	assert_false(mock.destroyed[0]);
	use(the_cache, token, 1);
	give(the_cache, token);
}

/*
 * While one thread waits for the event of a block, a request of another thread
 * gets the block, after a wait for the device.
 */
static void waiting_keeps_nothing(void **state)
{
	struct flexmem_cache *cache;
	void *token;

	(void)state;
	mock.capacity = 20 * MIB;
	cache = mock_cache_events("");
	the_cache = cache;
	token = take(cache, 20 * MIB, 0);
	use(cache, token, 1);
	give(cache, token);
	mock.on_wait = take_meanwhile;
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_true(mock.destroyed[0]);
	/* No thread has waited for this event. */
	assert_false(mock.destroyed[1]);
	assert_int_equal(figures(cache).active[0].current, 1);
	flexmem_cache_destroy(cache);
}

static int fail_to_wait(void *user, uint64_t event)
{
	assert_int_equal(mock_events.synchronize(user, event), 0);
	return -EIO;
}

/* The event is destroyed even if the wait for it fails. */
static void failed_wait_keeps_nothing(void **state)
{
	struct flexmem_cache_options options;
	struct flexmem_cache_events events = mock_events;
	void *token;

	(void)state;
	mock.capacity = 20 * MIB;
	options = mock_options("");
	events.synchronize = fail_to_wait;
	options.events = &events;
	options.events_size = sizeof(events);
	assert_int_equal(flexmem_cache_create(&the_cache, &options,
					      sizeof(options)), 0);
	token = take(the_cache, 20 * MIB, 0);
	use(the_cache, token, 1);
	give(the_cache, token);
	mock.on_wait = take_meanwhile;
	assert_int_equal(flexmem_cache_empty(the_cache, NULL), -EIO);
	assert_true(mock.destroyed[0]);
	assert_false(mock.destroyed[1]);
	flexmem_cache_destroy(the_cache);
}

/*
 * Frees a block during the wait for the device. The event of this block has not
 * happened after the wait.
 */
static void free_meanwhile(void)
{
	static void *token;

	mock.on_wait = NULL;
	token = take(the_cache, 1000, 7);
	use(the_cache, token, 8);
	give(the_cache, token);
}

static void only_events_before_the_wait(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 1000, 7);

	(void)state;
	the_cache = cache;
	take(cache, 1000, 7);
	use(cache, token, 8);
	give(cache, token);
	mock.on_wait = free_meanwhile;
	mock.fail_allocs = 1;
	take(cache, 20 * MIB, 0);
	assert_int_equal(mock.events, 2);
	assert_true(mock.destroyed[0]);
	assert_false(mock.destroyed[1]);
	assert_int_equal(figures(cache).active[0].current, 3);
	flexmem_cache_destroy(cache);
}

static uint64_t captured;

static int all_streams(void *user, uint64_t stream)
{
	(void)user;
	(void)stream;
	return 1;
}

static void capture_meanwhile(void)
{
	mock.on_wait = NULL;
	assert_int_equal(flexmem_cache_pool_begin(the_cache, captured,
						  all_streams, NULL), 0);
	assert_int_equal(flexmem_cache_pool_capture(the_cache, captured), 0);
}

/*
 * A thread that empties the cache waits for the first of two events when a
 * capture begins. It does not wait for the second one.
 */
static void a_capture_ends_the_waiting(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *a = take(cache, 20 * MIB, 0);
	void *b = take(cache, 20 * MIB, 0);
	uint64_t released;

	(void)state;
	the_cache = cache;
	assert_int_equal(flexmem_cache_pool_create(cache, &captured), 0);
	use(cache, a, 1);
	use(cache, b, 2);
	give(cache, a);
	give(cache, b);
	mock.on_wait = capture_meanwhile;
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 20 * MIB);
	assert_int_equal(mock.waits, 1);
	assert_int_equal(flexmem_cache_pool_end(cache, captured), 0);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 20 * MIB);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CACHE_TEST(emptying_waits),
		CACHE_TEST(emptying_cannot_wait),
		CACHE_TEST(waiting_pins),
		CACHE_TEST(waiting_keeps_nothing),
		CACHE_TEST(failed_wait_keeps_nothing),
		CACHE_TEST(only_events_before_the_wait),
		CACHE_TEST(a_capture_ends_the_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
