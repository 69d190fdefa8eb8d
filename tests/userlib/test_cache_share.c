// SPDX-License-Identifier: GPL-2.0
/* Growing segments that streams share: when a hole moves to another stream. */
#include "cache_mock.h"
#include "cache/cache.h"

#define SHARED "expandable_segments:True,reuse:wait"

/* A full device: stream 1 has three blocks, of which the first is free. */
static struct flexmem_cache *full_cache(bool with_events, void **tokens)
{
	struct flexmem_cache *cache;
	int i;

	mock.capacity = 12 * MIB;
	cache = with_events ? mock_cache_events(SHARED) : mock_cache(SHARED);
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
	assert_int_equal(place(cache, token), 0);
	assert_int_equal(lookup(cache, token).stream, 2);
	assert_int_equal(mock.streams[0], 1);
	assert_int_equal(mock.destroys, 1);
	assert_int_equal(mock.device_waits, 0);
	expect_counters(cache, 0, 0, 0);
	/* The token belongs to the lane of its stream. */
	chunk = fmlib_token_chunk(&cache->narrow, token);
	assert_ptr_equal(chunk->lane,
			 fmlib_lane_of(fmlib_token_first(chunk, token)));
	assert_int_equal(chunk->lane->stream, 2);
	/* The block's own stream needs no event, and another stream one. */
	use(cache, token, 2);
	give(cache, token);
	assert_int_equal(mock.events, 1);
	mock.happened[1] = true;
	assert_int_equal(place(cache, take(cache, 4 * MIB, 1)), 0);
	assert_int_equal(mock.streams[1], 2);
	assert_int_equal(mock.device_waits, 0);
	flexmem_cache_destroy(cache);
}

/*
 * A stream waits on the device for the event of another stream, before the host
 * waits, and before a segment grows.
 */
static void a_stream_waits(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_waits(SHARED);
	void *tokens[2];

	(void)state;
	tokens[0] = take(cache, 4 * MIB, 1);
	tokens[1] = take(cache, 4 * MIB, 1);
	take(cache, 4 * MIB, 3);
	give(cache, tokens[0]);
	mock.grows = 0;
	assert_int_equal(place(cache, take(cache, 3 * MIB, 2)), 0);
	assert_int_equal(mock.stream_waits, 1);
	assert_int_equal(mock.waiting_stream, 2);
	assert_int_equal(mock.streams[mock.waited_event], 1);
	assert_int_equal(figures(cache).num_stream_waits, 1);
	/* The rest of the hole is not stream 2's yet. */
	take(cache, MIB, 2);
	assert_int_equal(mock.stream_waits, 2);
	assert_int_equal(mock.grows, 0);
	assert_int_equal(mock.device_waits, 0);
	flexmem_cache_destroy(cache);
}

/* With reuse:done no stream waits for another. */
static void a_stream_does_not_wait(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_waits("expandable_segments:True,reuse:done");

	(void)state;
	give(cache, take(cache, 4 * MIB, 1));
	mock.grows = 0;
	assert_int_equal(place(cache, take(cache, 4 * MIB, 2)), 4 * MIB);
	assert_int_equal(mock.grows, 1);
	assert_int_equal(mock.stream_waits, 0);
	assert_int_equal(mock.events, 1);
	flexmem_cache_destroy(cache);
}

/* A stream whose memory has gone is a second stream when it comes back. */
static void a_stream_comes_back(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_waits("expandable_segments:True,reuse:done");

	(void)state;
	give(cache, take(cache, 4 * MIB, 2));
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	give(cache, take(cache, 4 * MIB, 1));
	assert_int_equal(place(cache, take(cache, 4 * MIB, 2)), 4 * MIB);
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
	assert_int_equal(flexmem_cache_alloc(full, 8 * MIB, 2, &tokens[0]),
			 -ENOMEM);
	assert_int_equal(mock.device_waits, 1);
	assert_int_equal(place(full, take(full, 4 * MIB, 2)), 0);
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
	struct flexmem_cache_request request = { .bytes = MIB };
	struct flexmem_cache_allocation a;
	void *tokens[3];
	struct flexmem_cache *cache = full_cache(false, tokens);
	void *token;
	int i;

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	for (request.stream = 1; request.stream < 3; request.stream++)
		assert_int_equal(flexmem_cache_alloc_request(cache, &request,
							     sizeof(request),
							     &a, sizeof(a)),
				 -ENOMEM);
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

/* An event says nothing about memory that was freed after it was recorded. */
static void memory_freed_after_the_event_stays(void **state)
{
	struct flexmem_cache *cache;
	void *a, *b;

	(void)state;
	mock.capacity = 20 * MIB;
	cache = mock_cache_waits("expandable_segments:True,reuse:done");
	a = take(cache, 4 * MIB, 1);
	b = take(cache, 4 * MIB, 1);
	take(cache, 4 * MIB, 2);
	give(cache, a);
	/* Stream 2 asks for the memory, so an event is recorded. */
	assert_int_equal(place(cache, take(cache, 4 * MIB, 2)), 12 * MIB);
	assert_int_equal(mock.events, 1);
	give(cache, b);
	mock.happened[0] = true;
	assert_int_equal(place(cache, take(cache, 4 * MIB, 2)), 0);
	assert_int_equal(place(cache, take(cache, 4 * MIB, 2)), 16 * MIB);
	assert_int_equal(mock.device_waits, 0);
	flexmem_cache_destroy(cache);
}

/* So the memory can be free before another stream asks for it. */
static void many_frees_record_an_event(void **state)
{
	struct flexmem_cache *cache;
	void *tokens[50];
	int i;

	(void)state;
	cache = mock_cache_waits("expandable_segments:True,reuse:done");
	/* Smaller ones are kept for the stream (test_cache_kept.c). */
	for (i = 0; i < 50; i++)
		tokens[i] = take(cache, 2 * MIB, 1);
	take(cache, MIB, 2);
	for (i = 0; i < 50; i++)
		give(cache, tokens[i]);
	/* One after each 24 frees. */
	assert_int_equal(mock.events, 2);
	assert_int_equal(mock.streams[0], 1);
	flexmem_cache_destroy(cache);
}

static int no_stream(void *user, uint64_t stream)
{
	(void)user;
	(void)stream;
	return 0;
}

/* Not while work is captured: the first free after that records it. */
static void frees_in_a_capture_record_none(void **state)
{
	struct flexmem_cache *cache;
	uint64_t pool;
	void *tokens[50];
	int i;

	(void)state;
	cache = mock_cache_waits("expandable_segments:True,reuse:done");
	for (i = 0; i < 50; i++)
		tokens[i] = take(cache, 2 * MIB, 1);
	take(cache, MIB, 2);
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	assert_int_equal(flexmem_cache_pool_begin(cache, pool, no_stream, NULL),
			 0);
	assert_int_equal(flexmem_cache_pool_capture(cache, pool), 0);
	for (i = 0; i < 49; i++)
		give(cache, tokens[i]);
	assert_int_equal(mock.events, 0);
	assert_int_equal(flexmem_cache_pool_end(cache, pool), 0);
	give(cache, tokens[49]);
	assert_int_equal(mock.events, 1);
	flexmem_cache_destroy(cache);
}

static void hang(void)
{
	fail_msg("the host waits for work that does not end");
}

/*
 * Two streams exchange messages: the work of each one ends only when the other
 * one has memory, too. So with reuse:done nothing waits, and nothing fails.
 */
static void streams_that_need_each_other(void **state)
{
	struct flexmem_cache *cache;
	void *tokens[4];
	int round;
	int i;

	(void)state;
	mock.capacity = 12 * MIB;
	mock.on_wait = hang;
	cache = mock_cache_waits("expandable_segments:True,reuse:done");
	for (round = 0; round < 100; round++) {
		for (i = 0; i < 4; i++) {
			tokens[i] = take(cache, i % 2 ? 4 * MIB : MIB / 2,
					 (round + i / 2) % 2);
			if (i % 2) {
				give(cache, tokens[i - 1]);
				give(cache, tokens[i]);
			}
		}
		memset(mock.happened, true, mock.events);
	}
	assert_int_equal(mock.stream_waits, 0);
	flexmem_cache_destroy(cache);
}

/* Blocks belong to their stream also if they were taken while it was alone. */
static void the_first_stream_keeps_its_blocks(void **state)
{
	struct flexmem_cache *cache;
	void *tokens[3];
	int i;

	(void)state;
	mock.capacity = 16 * MIB;
	cache = mock_cache_waits("expandable_segments:True,reuse:done");
	give(cache, take(cache, 12 * MIB, 1));
	/* The segment need not grow, so the cache takes its shortest path. */
	for (i = 0; i < 3; i++)
		tokens[i] = take(cache, 4 * MIB, 1);
	take(cache, 4 * MIB, 2);
	for (i = 0; i < 3; i++)
		give(cache, tokens[i]);
	assert_int_equal(place(cache, take(cache, 12 * MIB, 1)), 0);
	assert_int_equal(mock.device_waits, 0);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CACHE_TEST(a_hole_moves_after_its_event),
		CACHE_TEST(a_stream_waits),
		CACHE_TEST(a_stream_does_not_wait),
		CACHE_TEST(a_stream_comes_back),
		CACHE_TEST(a_hole_moves_after_a_wait),
		CACHE_TEST(a_hole_freed_during_the_wait_stays),
		CACHE_TEST(a_hole_freed_after_the_second_wait_stays),
		CACHE_TEST(a_block_that_waited_moves),
		CACHE_TEST(holes_without_events),
		CACHE_TEST(memory_freed_after_the_event_stays),
		CACHE_TEST(many_frees_record_an_event),
		CACHE_TEST(frees_in_a_capture_record_none),
		CACHE_TEST(streams_that_need_each_other),
		CACHE_TEST(the_first_stream_keeps_its_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
