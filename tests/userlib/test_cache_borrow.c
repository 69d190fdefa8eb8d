// SPDX-License-Identifier: GPL-2.0
/* Streams that take holes in the segments of other streams. */
#include "cache_mock.h"
#include "cache/cache.h"

/* A full device: stream 1 has three blocks, of which the first is free. */
static struct flexmem_cache *full_cache(bool with_events, void **tokens)
{
	const char *growing = "expandable_segments:True";
	struct flexmem_cache *cache;
	int i;

	mock.capacity = 12 * MIB;
	cache = with_events ? mock_cache_events(growing) : mock_cache(growing);
	for (i = 0; i < 3; i++)
		tokens[i] = take(cache, 4 * MIB, 1);
	give(cache, tokens[0]);
	return cache;
}

/*
 * Another stream may take a hole once an event that was recorded after the free
 * has happened.
 */
static void a_hole_moves_after_its_event(void **state)
{
	void *tokens[3];
	struct flexmem_cache *cache = full_cache(true, tokens);
	const struct fmlib_chunk *chunk;
	void *token;

	(void)state;
	mock.happened[0] = true;
	token = take(cache, 4 * MIB, 2);
	/*
	 * The token belongs to the block's lane. A lane is a group of streams
	 * that share a lock.
	 */
	chunk = fmlib_token_chunk(&cache->narrow, token);
	assert_ptr_equal(chunk->lane,
			 fmlib_lane_of(fmlib_token_first(chunk, token)));
	assert_int_equal(place(cache, token), 0);
	assert_int_equal(lookup(cache, token).stream, 2);
	assert_int_equal(mock.streams[0], 1);
	assert_int_equal(mock.destroys, 1);
	assert_int_equal(mock.device_waits, 0);
	expect_counters(cache, 1, 1, 0);
	/*
	 * The stream of the segment gets the block back after the event on the
	 * other stream.
	 */
	use(cache, token, 2);
	use(cache, token, 1);
	give(cache, token);
	assert_int_equal(mock.events, 2);
	assert_int_equal(mock.streams[1], 2);
	assert_int_equal(figures(cache).active[0].current, 3);
	mock.happened[1] = true;
	assert_int_equal(place(cache, take(cache, 4 * MIB, 1)), 0);
	assert_int_equal(mock.device_waits, 0);
	flexmem_cache_destroy(cache);
}

/* After a wait for the device any stream may take any hole. */
static void a_hole_moves_after_a_wait(void **state)
{
	void *tokens[3];
	struct flexmem_cache *cache = full_cache(true, tokens);
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(lookup(cache, take(cache, MIB, i + 2)).stream,
				 i + 2);
	assert_int_equal(mock.device_waits, 1);
	/* A block that is freed later needs another wait. */
	give(cache, tokens[1]);
	mock.device_waits = 0;
	take(cache, MIB, 2);
	assert_int_equal(mock.device_waits, 1);
	flexmem_cache_destroy(cache);
}

static struct flexmem_cache *full;
static void *freed_meanwhile;

static void free_during_wait(void)
{
	mock.on_wait = NULL;
	give(full, freed_meanwhile);
}

/* A block that is freed during the wait may still be in use. */
static void a_hole_freed_during_the_wait_stays(void **state)
{
	void *tokens[3];

	(void)state;
	full = full_cache(true, tokens);
	freed_meanwhile = tokens[1];
	mock.on_wait = free_during_wait;
	assert_int_equal(flexmem_cache_alloc(full, 4 * MIB, 2, &tokens[0]),
			 -ENOMEM);
	assert_int_equal(mock.device_waits, 1);
	flexmem_cache_destroy(full);
}

/* Another thread waits for the device at the same time, and ends first. */
static void two_wait(void)
{
	mock.on_wait = NULL;
	assert_int_equal(place(full, take(full, 2 * MIB, 3)), 0);
	give(full, freed_meanwhile);
}

/*
 * The wait of the second thread makes the first hole quiet. A block that is
 * freed between the ends of the two waits may still be in use.
 */
static void a_hole_freed_after_the_second_wait_stays(void **state)
{
	void *tokens[3];

	(void)state;
	full = full_cache(true, tokens);
	freed_meanwhile = tokens[1];
	mock.on_wait = two_wait;
	assert_int_equal(flexmem_cache_alloc(full, 4 * MIB, 2, &tokens[0]),
			 -ENOMEM);
	assert_int_equal(mock.device_waits, 2);
	flexmem_cache_destroy(full);
}

/* A block that waited for the device moves as soon as the wait has ended. */
static void a_block_that_waited_moves(void **state)
{
	void *tokens[3];
	struct flexmem_cache *cache = full_cache(true, tokens);

	(void)state;
	take(cache, 4 * MIB, 1);
	use(cache, tokens[1], 3);
	give(cache, tokens[1]);
	assert_int_equal(lookup(cache, take(cache, 4 * MIB, 2)).stream, 2);
	assert_int_equal(mock.device_waits, 1);
	flexmem_cache_destroy(cache);
}

/*
 * Without events each free takes effect at once, so another stream may take a
 * hole. A private pool keeps its holes.
 */
static void holes_without_events(void **state)
{
	struct flexmem_cache_request request = { .bytes = MIB, .stream = 2 };
	struct flexmem_cache_allocation a;
	void *tokens[3];
	struct flexmem_cache *cache = full_cache(false, tokens);
	void *token;
	int i;

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	for (i = 0; i < 3000; i++) {
		token = take(cache, 4 * MIB, 2);
		assert_int_equal(lookup(cache, token).stream, 2);
		assert_int_equal(place(cache, token), 0);
		give(cache, token);
	}
	assert_int_equal(place(cache, take(cache, 4 * MIB, 1)), 0);
	assert_int_equal(figures(cache).active[0].current, 3);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CACHE_TEST(a_hole_moves_after_its_event),
		CACHE_TEST(a_hole_moves_after_a_wait),
		CACHE_TEST(a_hole_freed_during_the_wait_stays),
		CACHE_TEST(a_hole_freed_after_the_second_wait_stays),
		CACHE_TEST(a_block_that_waited_moves),
		CACHE_TEST(holes_without_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
