// SPDX-License-Identifier: GPL-2.0
/* Streams and events. */
#include "cache_mock.h"
#include "cache/cache.h"

/*
 * Makes the cache query events, as it does when no free block serves a request.
 */
static void query(struct flexmem_cache *cache)
{
	assert_int_equal(flexmem_cache_trim(cache, 0, NULL), 0);
}

/* Whether the next block of 1000 bytes on stream 0 is at @where. */
static bool is_back(struct flexmem_cache *cache, uint64_t where)
{
	void *token;
	bool back;

	query(cache);
	token = take(cache, 1000, 0);
	back = place(cache, token) == where;

	/*
	 * A block at another place is not freed, so that the next call does not
	 * get it again.
	 */
	if (back)
		give(cache, token);
	return back;
}

static void own_stream(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 1000, 0);
	uint64_t where = place(cache, token);

	(void)state;
	use(cache, token, 0);
	give(cache, token);
	assert_int_equal(mock.events, 0);
	assert_true(is_back(cache, where));
	flexmem_cache_destroy(cache);
}

/* More streams than lanes, so that some streams share a lane and its lock. */
static void many_streams(const char *configuration, unsigned int segments)
{
	struct flexmem_cache *cache = mock_cache_events(configuration);
	void *tokens[3 * FMLIB_LANES];
	uint64_t places[3 * FMLIB_LANES];
	unsigned int i;

	for (i = 0; i < 3 * FMLIB_LANES; i++) {
		tokens[i] = take(cache, 1000, i);
		places[i] = place(cache, tokens[i]);
		assert_int_equal(lookup(cache, tokens[i]).stream, i);
	}
	assert_int_equal(mock.allocs, segments);
	for (i = 0; i < 3 * FMLIB_LANES; i++)
		give(cache, tokens[i]);
	for (i = 3 * FMLIB_LANES; i--;)
		assert_int_equal(place(cache, take(cache, 1000, i)), places[i]);
	assert_int_equal(mock.allocs, segments);
	flexmem_cache_destroy(cache);
}

/* Each stream has a segment of its own, whichever lane the stream is in. */
static void streams_that_share_a_lock(void **state)
{
	(void)state;
	many_streams("", 3 * FMLIB_LANES);
}

static void growing_streams_that_share_a_lock(void **state)
{
	(void)state;
	many_streams("expandable_segments:True", 3 * FMLIB_LANES);
}

/*
 * All streams have one segment. Each gets its own memory again, because no
 * event has happened.
 */
static void streams_that_share_a_segment(void **state)
{
	(void)state;
	many_streams("expandable_segments:True,reuse:wait", 1);
}

/* The next stream in the same hash chain, outside of pools. */
static uint64_t colliding(uint64_t stream, uint64_t pool)
{
	size_t chain = fmlib_arena_chain(stream, pool);

	do
		stream++;
	while (fmlib_arena_chain(stream, 0) != chain);
	return stream;
}

/* Streams and pools in the same hash chain share no memory. */
static void streams_that_share_a_chain(void **state)
{
	struct flexmem_cache_request request = { .bytes = 1000 };
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_allocation a;
	uint64_t streams[3] = { 0 };
	void *tokens[3];
	uint64_t where;
	uint64_t pool;
	int i;

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	streams[1] = colliding(0, 0);
	streams[2] = colliding(0, request.pool);
	for (i = 0; i < 3; i++)
		tokens[i] = take(cache, 1000, streams[i]);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	assert_int_equal(mock.allocs, 4);
	for (i = 0; i < 3; i++) {
		where = place(cache, tokens[i]);
		give(cache, tokens[i]);
		assert_int_equal(place(cache, take(cache, 1000, streams[i])),
				 where);
	}
	assert_int_equal(mock.allocs, 4);
	/*
	 * The cache tells two pools apart even if their numbers are in the same
	 * hash chain.
	 */
	do
		assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	while ((pool - request.pool) % FMLIB_CHAINS);
	assert_int_equal(flexmem_cache_pool_release(cache, request.pool), 0);
	assert_int_equal(flexmem_cache_pool_release(cache, request.pool),
			 -ENOENT);
	request.pool = pool;
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	assert_int_equal(a.pool, pool);
	assert_int_equal(mock.allocs, 5);
	assert_int_equal(flexmem_cache_pool_release(cache, pool), 0);
	flexmem_cache_destroy(cache);
}

static void waits_for_all(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 1000, 0);
	uint64_t where = place(cache, token);

	(void)state;
	use(cache, token, 1);
	use(cache, token, 2);
	use(cache, token, 1);
	assert_int_equal(mock.events, 0);
	give(cache, token);
	assert_int_equal(mock.events, 2);
	assert_int_equal(mock.streams[0] + mock.streams[1], 3);
	assert_int_equal(flexmem_cache_free(cache, token), -EINVAL);
	/* The block is no longer allocated, but still active. */
	assert_int_equal(figures(cache).allocation[0].current, 0);
	assert_int_equal(figures(cache).active[0].current, 1);
	assert_int_equal(figures(cache).active_bytes[0].current, 1024);
	assert_int_equal(figures(cache).requested_bytes[0].current, 1000);
	assert_int_equal(figures(cache).requested_bytes[0].freed, 0);
	assert_false(is_back(cache, where));
	mock.happened[0] = true;
	assert_false(is_back(cache, where));
	mock.happened[1] = true;
	assert_true(is_back(cache, where));
	/* The two blocks that were freed earlier still wait. */
	assert_int_equal(figures(cache).requested_bytes[0].current, 2000);
	assert_int_equal(figures(cache).requested_bytes[0].peak, 3000);
	assert_int_equal(mock.destroys, 2);
	assert_int_equal(mock.waits + mock.device_waits, 0);
	flexmem_cache_destroy(cache);
}

/*
 * A stream's events happen in order, so the cache queries only the first event.
 */
static void in_order(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *tokens[10];
	int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		tokens[i] = take(cache, 1000, 0);
		use(cache, tokens[i], 1);
	}
	for (i = 0; i < 10; i++)
		give(cache, tokens[i]);
	mock.queries = 0;
	query(cache);
	assert_int_equal(mock.queries, 1);
	for (i = 0; i < 4; i++)
		mock.happened[i] = true;
	mock.queries = 0;
	query(cache);
	assert_int_equal(mock.queries, 5);
	assert_int_equal(figures(cache).active[0].current, 6);
	flexmem_cache_destroy(cache);
}

static unsigned int mutexes;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	mutexes++;
	return __real_pthread_mutex_lock(mutex);
}

#define PAIRS 500

/*
 * A lane needs only its own lock to serve requests, even while one of its
 * blocks waits.
 */
static void fast_while_blocks_wait(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("expandable_segments:True");
	uint64_t hits;
	void *waiting;
	int i;

	(void)state;
	waiting = take(cache, 1000, 0);
	use(cache, waiting, 1);
	give(cache, waiting);
	assert_int_equal(figures(cache).active[0].current, 1);
	hits = figures(cache).num_hits;
	mock.queries = 0;
	mutexes = 0;
	for (i = 0; i < PAIRS; i++)
		assert_int_equal(flexmem_cache_free(cache,
						    take(cache, 1000, 0)), 0);
	assert_int_equal(mutexes, 0);
	assert_int_equal(mock.queries, 0);
	assert_int_equal(figures(cache).num_hits - hits, PAIRS);
	/* The peak includes the waiting block. */
	assert_int_equal(figures(cache).active[0].peak, 2);
	assert_int_equal(figures(cache).active[0].current, 1);
	flexmem_cache_destroy(cache);
}

static struct flexmem_cache *the_cache;
static unsigned int locked;

/* Counts the locked lanes. */
static void count_locked(void)
{
	const struct fmlib_lane *lane;
	size_t i;

	locked = 0;
	for (i = 0; i < FMLIB_LANES; i++) {
		lane = fmlib_lane_at(the_cache, i);
		locked += lane && atomic_load(&lane->lock.taken);
	}
}

static void count_and_destroy(void *user, uint64_t event)
{
	count_locked();
	mock_events.destroy(user, event);
}

/*
 * While a block waits, a new segment is made with only its lane locked. After
 * the event all lanes are locked, because the block may belong to any lane.
 */
static void a_miss_leaves_lanes_open(void **state)
{
	struct flexmem_cache_options options = mock_options("");
	struct flexmem_cache_events events = mock_events;
	uint64_t where;
	void *token;

	(void)state;
	events.destroy = count_and_destroy;
	options.events = &events;
	options.events_size = sizeof(events);
	assert_int_equal(flexmem_cache_create(&the_cache, &options,
					      sizeof(options)), 0);
	take(the_cache, 1000, 1);
	token = take(the_cache, 20 * MIB, 0);
	where = place(the_cache, token);
	use(the_cache, token, 1);
	give(the_cache, token);
	mock.on_alloc = count_locked;
	mock.allocs = 0;
	take(the_cache, 20 * MIB, 0);
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(mock.queries, 1);
	assert_int_equal(locked, 1);
	mock.happened[0] = true;
	token = take(the_cache, 20 * MIB, 0);
	assert_int_equal(place(the_cache, token), where);
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(locked, 2);
	flexmem_cache_destroy(the_cache);
}

/* Blocks whose events have happened are used before the provider is asked. */
static void queries_before_the_provider(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *tokens[3];
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		tokens[i] = take(cache, 20 * MIB, 0);
		use(cache, tokens[i], 1);
	}
	give(cache, tokens[0]);
	mock.happened[0] = true;
	mock.allocs = 0;
	tokens[0] = take(cache, 20 * MIB, 0);
	assert_int_equal(mock.allocs, 0);
	assert_int_equal(figures(cache).num_misses, 3);
	give(cache, tokens[1]);
	mock.happened[1] = true;
	mock.queries = 0;
	give(cache, tokens[2]);
	assert_int_equal(mock.queries, 1);
	assert_int_equal(figures(cache).active[0].current, 2);
	flexmem_cache_destroy(cache);
}

/* If no block waits, the cache asks about no event. */
static void no_queries(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		give(cache, take(cache, 1000, 0));
	assert_int_equal(mock.queries, 0);
	assert_int_equal(mock.events, 0);
	flexmem_cache_destroy(cache);
}

/* A device without streams: each free takes effect at once. */
static void without_events(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	void *token = take(cache, 1000, 0);
	uint64_t where = place(cache, token);

	(void)state;
	use(cache, token, 1);
	give(cache, token);
	assert_true(is_back(cache, where));
	mock.fail_allocs = 1;
	take(cache, 20 * MIB, 0);
	assert_int_equal(figures(cache).num_sync_all_streams, 0);
	flexmem_cache_destroy(cache);
}

/*
 * The uses that were recorded for an allocation end when it is freed. The next
 * allocation in the same block has none.
 */
static void uses_end_with_the_free(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 1000, 0);

	(void)state;
	use(cache, token, 1);
	give(cache, token);
	mock.happened[0] = true;
	token = take(cache, 1000, 0);
	give(cache, token);
	assert_int_equal(mock.events, 1);
	flexmem_cache_destroy(cache);
}

static unsigned int count_queues(const struct flexmem_cache *cache)
{
	const struct fmlib_queue *queue;
	unsigned int count = 0;
	size_t i;

	for (i = 0; i < FMLIB_CHAINS; i++) {
		for (queue = cache->queues[i]; queue; queue = queue->next)
			count++;
	}
	return count;
}

/*
 * The cache has a queue for a stream only as long as a block is used on that
 * stream.
 */
static void queues_go(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	uint64_t streams[] = { 1, colliding(1, 0), 2 };
	void *live = take(cache, 1000, 0);
	void *token;
	unsigned int i;

	(void)state;
	use(cache, live, 1);
	for (i = 0; i < 3; i++) {
		token = take(cache, 1000, 0);
		use(cache, token, streams[i]);
		assert_int_equal(count_queues(cache), i + 1);
		give(cache, token);
		assert_int_equal(count_queues(cache), i + 1);
	}
	/* The events of two streams are independent. */
	mock.happened[1] = true;
	query(cache);
	assert_true(mock.destroyed[1]);
	assert_int_equal(count_queues(cache), 2);
	memset(mock.happened, true, sizeof(mock.happened));
	query(cache);
	assert_int_equal(count_queues(cache), 1);
	give(cache, live);
	query(cache);
	assert_int_equal(count_queues(cache), 0);
	assert_int_equal(mock.destroys, 4);
	flexmem_cache_destroy(cache);
}

static void wait_for_device(void)
{
	mock.on_wait = NULL;
	mock.fail_allocs = 9;
	assert_int_equal(flexmem_cache_alloc(the_cache, 40 * MIB, 9,
					     &(void *){ NULL }), -ENOMEM);
	mock.fail_allocs = 0;
	assert_int_equal(mock.device_waits, 1);
}

/* One thread waits for an event, another for the device. */
static void queues_stay_for_a_walk(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	uint64_t stream;
	void *token;

	(void)state;
	the_cache = cache;
	for (stream = 1; stream <= 3; stream++) {
		token = take(cache, 20 * MIB, 0);
		use(cache, token, stream);
		give(cache, token);
		token = take(cache, 20 * MIB, 0);
		use(cache, token, stream);
		give(cache, token);
	}
	mock.on_wait = wait_for_device;
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(mock.destroys, 6);
	assert_int_equal(count_queues(cache), 0);
	flexmem_cache_destroy(cache);
}

/* If no event can be recorded, the block waits for the whole device. */
static void record_fails(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 1000, 0);
	uint64_t where = place(cache, token);

	(void)state;
	use(cache, token, 1);
	use(cache, token, 2);
	mock.fail_records = 1;
	give(cache, token);
	assert_int_equal(mock.events, 1);
	assert_int_equal(mock.warnings, 1);
	mock.happened[0] = true;
	assert_false(is_back(cache, where));
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(mock.device_waits, 1);
	assert_int_equal(figures(cache).active[0].current, 1);
	flexmem_cache_destroy(cache);
}

static int query_error(void *user, uint64_t event)
{
	(void)user;
	(void)event;
	mock.queries++;
	return -EIO;
}

/* The cache treats an error as "not yet", and logs it once. */
static void query_fails(void **state)
{
	struct flexmem_cache_options options = mock_options("");
	struct flexmem_cache_events events = mock_events;
	struct flexmem_cache *cache;
	uint64_t where;
	void *token;
	int i;

	(void)state;
	events.query = query_error;
	options.events = &events;
	options.events_size = sizeof(events);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	token = take(cache, 1000, 0);
	where = place(cache, token);
	use(cache, token, 1);
	give(cache, token);
	for (i = 0; i < 5; i++)
		assert_false(is_back(cache, where));
	assert_int_equal(mock.queries, 5);
	assert_int_equal(mock.warnings, 1);
	flexmem_cache_destroy(cache);
}

static void pools_and_events(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	struct flexmem_cache_request request = { .bytes = 1000 };
	struct flexmem_cache_allocation a;

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	use(cache, a.token, 1);
	give(cache, a.token);
	assert_int_equal(flexmem_cache_pool_release(cache, request.pool), 0);
	assert_int_equal(mock.frees, 0);
	/* The pending event was the last reason to keep the segment. */
	mock.happened[0] = true;
	take(cache, 1, 0);
	assert_int_equal(mock.frees, 1);

	/* Now the event happens before the pool is released. */
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	use(cache, a.token, 1);
	give(cache, a.token);
	mock.happened[1] = true;
	assert_int_equal(flexmem_cache_pool_release(cache, request.pool), 0);
	assert_int_equal(mock.frees, 2);
	flexmem_cache_destroy(cache);
}

/*
 * When the cache is destroyed, some blocks wait for events, and live ones are
 * used by streams.
 */
static void destruction(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 1000, 0);

	(void)state;
	use(cache, token, 1);
	give(cache, token);
	use(cache, take(cache, 1000, 0), 1);
	flexmem_cache_destroy(cache);
	assert_int_equal(mock.device_waits, 1);
	assert_int_equal(mock.destroys, 1);

	/* A failed wait does not prevent the destruction. */
	cache = mock_cache_events("");
	token = take(cache, 1000, 0);
	use(cache, token, 1);
	give(cache, token);
	mock.fail_waits = 1;
	flexmem_cache_destroy(cache);
	assert_int_equal(mock.destroys, 2);
}

/*
 * When the cache is destroyed, a block still waits for an event that was never
 * recorded. The device cannot be synchronized. Only events that exist are
 * destroyed.
 */
static void destruction_without_the_event(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *tokens[2];

	(void)state;
	tokens[0] = take(cache, 1000, 0);
	tokens[1] = take(cache, 1000, 0);
	use(cache, tokens[0], 1);
	use(cache, tokens[1], 1);
	give(cache, tokens[0]);
	assert_int_equal(mock.events, 1);
	mock.fail_records = 1;
	give(cache, tokens[1]);
	mock.fail_waits = 1;
	flexmem_cache_destroy(cache);
	assert_int_equal(mock.device_waits, 1);
	assert_int_equal(mock.destroys, 1);
}

static int no_stream(void *user, uint64_t stream)
{
	(void)user;
	(void)stream;
	return 0;
}

/*
 * The cache is destroyed during a capture, in which a freed block has no event
 * yet.
 */
static void destruction_in_a_capture(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 1000, 0);
	uint64_t pool;

	(void)state;
	use(cache, token, 1);
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	assert_int_equal(flexmem_cache_pool_begin(cache, pool, no_stream, NULL),
			 0);
	assert_int_equal(flexmem_cache_pool_capture(cache, pool), 0);
	give(cache, token);
	mock.fail_waits = 1;
	flexmem_cache_destroy(cache);
	assert_int_equal(mock.events, 0);
	assert_int_equal(mock.destroys, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(own_stream),
		CACHE_TEST(streams_that_share_a_lock),
		CACHE_TEST(growing_streams_that_share_a_lock),
		CACHE_TEST(streams_that_share_a_segment),
		CACHE_TEST(streams_that_share_a_chain),
		CACHE_TEST(waits_for_all),
		CACHE_TEST(in_order),
		CACHE_TEST(fast_while_blocks_wait),
		CACHE_TEST(a_miss_leaves_lanes_open),
		CACHE_TEST(queries_before_the_provider),
		CACHE_TEST(no_queries),
		CACHE_TEST(without_events),
		CACHE_TEST(uses_end_with_the_free),
		CACHE_TEST(queues_go),
		CACHE_TEST(queues_stay_for_a_walk),
		CACHE_TEST(record_fails),
		CACHE_TEST(query_fails),
		CACHE_TEST(pools_and_events),
		CACHE_TEST(destruction),
		CACHE_TEST(destruction_without_the_event),
		CACHE_TEST(destruction_in_a_capture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
