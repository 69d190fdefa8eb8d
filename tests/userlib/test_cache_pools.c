// SPDX-License-Identifier: GPL-2.0
/* Private pools, as device graphs use them. */
#include <pthread.h>

#include "cache_mock.h"

static uint64_t new_pool(struct flexmem_cache *cache)
{
	uint64_t pool;

	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	return pool;
}

static struct flexmem_cache_allocation take_in(struct flexmem_cache *cache,
					       uint64_t pool, uint64_t bytes)
{
	const struct flexmem_cache_request request = {
		.bytes = bytes, .pool = pool,
	};
	struct flexmem_cache_allocation made;

	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &made,
						     sizeof(made)), 0);
	return made;
}

static struct flexmem_cache_usage usage_of(struct flexmem_cache *cache,
					   uint64_t pool)
{
	struct flexmem_cache_usage usage;

	assert_int_equal(flexmem_cache_pool_usage(cache, pool, NULL, &usage,
					     sizeof(usage)), 0);
	return usage;
}

/* A pool with two holds ends with the second release. */
static void held_twice(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	uint64_t pool = new_pool(cache);

	(void)state;
	give(cache, take_in(cache, pool, 1000).token);
	assert_int_equal(usage_of(cache, pool).uses, 1);
	assert_int_equal(flexmem_cache_pool_hold(cache, pool), 0);
	assert_int_equal(usage_of(cache, pool).uses, 2);
	assert_int_equal(flexmem_cache_pool_release(cache, pool), 0);
	assert_int_equal(mock.frees, 0);
	assert_int_equal(usage_of(cache, pool).uses, 1);
	assert_int_equal(flexmem_cache_pool_release(cache, pool), 0);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(flexmem_cache_pool_hold(cache, pool), -ENOENT);
	flexmem_cache_destroy(cache);
}

/*
 * A segment of a released pool does not shrink. It is freed with its last
 * block.
 */
static void released_in_use(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	uint64_t pool = new_pool(cache);
	void *low = take_in(cache, pool, 3 * MIB).token;
	void *high = take_in(cache, pool, 9 * MIB).token;

	(void)state;
	assert_int_equal(flexmem_cache_pool_release(cache, pool), 0);
	give(cache, high);
	assert_int_equal(mock.shrinks, 0);
	assert_int_equal(mock.frees, 0);
	give(cache, low);
	assert_int_equal(mock.shrinks, 0);
	assert_int_equal(mock.frees, 1);
	flexmem_cache_destroy(cache);
}

static int is_stream(void *user, uint64_t stream)
{
	return stream == *(uint64_t *)user;
}

static uint64_t pool_of(struct flexmem_cache *cache, uint64_t stream)
{
	return lookup(cache, take(cache, 1000, stream)).pool;
}

static void requests_go_by_stream(void **state)
{
	uint64_t streams[] = { 1, 2, 2 };
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	uint64_t pools[3];
	int i;

	(void)state;
	/* The pools do not use these free blocks of the common pool. */
	give(cache, take(cache, 1000, 1));
	give(cache, take(cache, 1000, 2));
	for (i = 0; i < 3; i++) {
		pools[i] = new_pool(cache);
		assert_int_equal(flexmem_cache_pool_begin(cache, pools[i],
							  is_stream,
							  &streams[i]), 0);
		assert_int_equal(flexmem_cache_pool_begin(cache, pools[i],
							  is_stream,
							  &streams[i]),
				 -EEXIST);
	}
	assert_int_equal(pool_of(cache, 0), 0);
	assert_int_equal(pool_of(cache, 1), pools[0]);
	/*
	 * Two pools accept the stream. The pool that began last serves the
	 * stream's requests.
	 */
	assert_int_equal(pool_of(cache, 2), pools[2]);
	/* A request that names a pool is served by that pool. */
	assert_int_equal(take_in(cache, pools[1], 1000).pool, pools[1]);
	/* A released pool serves no further request. */
	assert_int_equal(flexmem_cache_pool_release(cache, pools[2]), 0);
	assert_int_equal(pool_of(cache, 2), pools[1]);
	assert_int_equal(flexmem_cache_pool_end(cache, pools[1]), 0);
	assert_int_equal(pool_of(cache, 2), 0);
	assert_int_equal(flexmem_cache_pool_end(cache, pools[2]), 0);
	assert_int_equal(flexmem_cache_pool_end(cache, pools[2]), -ENOENT);
	/* Destroying the cache ends the first pool. */
	flexmem_cache_destroy(cache);
}

static int any_stream(void *user, uint64_t stream)
{
	(void)user;
	(void)stream;
	return 1;
}

static void begin(struct flexmem_cache *cache, uint64_t pool)
{
	assert_int_equal(flexmem_cache_pool_begin(cache, pool, any_stream,
						  NULL), 0);
}

static void capture(struct flexmem_cache *cache, uint64_t pool)
{
	assert_int_equal(flexmem_cache_pool_capture(cache, pool), 0);
}

static void end(struct flexmem_cache *cache, uint64_t pool)
{
	assert_int_equal(flexmem_cache_pool_end(cache, pool), 0);
}

/* Pools nest. The innermost one serves requests, whatever order they end in. */
static void nested(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	uint64_t a = new_pool(cache);
	uint64_t b = new_pool(cache);
	uint64_t c = new_pool(cache);

	(void)state;
	begin(cache, a);
	begin(cache, b);
	assert_int_equal(pool_of(cache, 0), b);
	begin(cache, c);
	assert_int_equal(pool_of(cache, 0), c);
	end(cache, b);
	assert_int_equal(pool_of(cache, 0), c);
	end(cache, c);
	assert_int_equal(pool_of(cache, 0), a);
	begin(cache, b);
	end(cache, a);
	begin(cache, a);
	assert_int_equal(pool_of(cache, 0), a);
	end(cache, a);
	end(cache, b);
	assert_int_equal(pool_of(cache, 0), 0);
	flexmem_cache_destroy(cache);
}

/* Recording an event would break the capture of a graph. */
static void no_events_in_a_capture(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	uint64_t stream = 1;
	uint64_t pool = new_pool(cache);
	void *before = take(cache, 1000, 0);
	uint64_t where = place(cache, before);
	void *token = take(cache, 1000, 0);
	void *kept;

	(void)state;
	assert_int_equal(flexmem_cache_record_stream(cache, before, 2), 0);
	give(cache, before);
	assert_int_equal(mock.events, 1);
	assert_int_equal(flexmem_cache_pool_begin(cache, pool, is_stream,
						  &stream), 0);
	capture(cache, pool);
	assert_int_equal(flexmem_cache_record_stream(cache, token, 2), 0);
	assert_int_equal(flexmem_cache_record_stream(cache, token, 3), 0);
	give(cache, token);
	assert_int_equal(mock.events, 1);
	assert_int_equal(figures(cache).active[0].current, 2);
	assert_int_equal(figures(cache).allocation[0].current, 0);
	memset(mock.happened, true, sizeof(mock.happened));
	kept = take(cache, 1000, 0);
	assert_int_not_equal(place(cache, kept), where);
	mock.fail_allocs = 9;
	assert_int_equal(try_alloc(cache, 40 * MIB), -ENOMEM);
	mock.fail_allocs = 0;
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(mock.queries + mock.waits + mock.device_waits, 0);
	assert_int_equal(mock.events, 1);
	/* The events are recorded when the capture ends. */
	memset(mock.happened, false, sizeof(mock.happened));
	assert_int_equal(flexmem_cache_pool_end(cache, pool), 0);
	assert_int_equal(mock.events, 3);
	assert_int_equal(figures(cache).active[0].current, 3);
	memset(mock.happened, true, sizeof(mock.happened));
	assert_int_equal(flexmem_cache_trim(cache, 0, NULL), 0);
	assert_int_equal(mock.destroys, 3);
	assert_int_equal(figures(cache).active[0].current, 1);
	/*
	 * Destroying the cache frees a block that waits for the end of the
	 * capture.
	 */
	assert_int_equal(flexmem_cache_pool_begin(cache, pool, is_stream,
						  &stream), 0);
	capture(cache, pool);
	assert_int_equal(flexmem_cache_record_stream(cache, kept, 2), 0);
	give(cache, kept);
	flexmem_cache_destroy(cache);
}

/*
 * During a capture no holes of other streams are used, because it is unknown
 * which work still uses the holes.
 */
static void nothing_moves(const char *configuration)
{
	struct flexmem_cache *cache;
	uint64_t stream = 9;
	uint64_t pool;
	void *token;

	mock.capacity = 4 * MIB;
	cache = mock_cache_events(configuration);
	pool = new_pool(cache);
	token = take(cache, 2 * MIB, 1);
	take(cache, 2 * MIB, 1);
	give(cache, token);
	assert_int_equal(flexmem_cache_pool_begin(cache, pool, is_stream,
						  &stream), 0);
	capture(cache, pool);
	memset(mock.happened, true, sizeof(mock.happened));
	assert_int_equal(try_alloc(cache, 2 * MIB), -ENOMEM);
	assert_int_equal(mock.events, 0);
	assert_int_equal(flexmem_cache_pool_end(cache, pool), 0);
	assert_int_equal(try_alloc(cache, 2 * MIB), 0);
	flexmem_cache_destroy(cache);
}

static void no_loans_in_a_capture(void **state)
{
	(void)state;
	nothing_moves("expandable_segments:True");
}

static void no_sharing_in_a_capture(void **state)
{
	(void)state;
	nothing_moves("expandable_segments:True,reuse:wait");
}

/*
 * A pool that only collects allocations captures nothing: memory of other
 * streams is recycled, as without the pool.
 */
static void events_without_a_capture(void **state)
{
	struct flexmem_cache *cache;
	uint64_t stream = 1;
	uint64_t pool;
	void *token;
	int i;

	(void)state;
	mock.capacity = 100 * MIB;
	cache = mock_cache_events("");
	pool = new_pool(cache);
	assert_int_equal(flexmem_cache_pool_begin(cache, pool, is_stream,
						  &stream), 0);
	memset(mock.happened, true, sizeof(mock.happened));
	for (i = 0; i < 40; i++) {
		token = take(cache, 10 * MIB, 2);
		assert_int_equal(flexmem_cache_record_stream(cache, token, 3),
				 0);
		give(cache, token);
	}
	assert_int_equal(figures(cache).reserved_bytes[0].current, 10 * MIB);
	/* Work that is not done keeps its memory, and can be waited for. */
	memset(mock.happened, false, sizeof(mock.happened));
	token = take(cache, 80 * MIB, 2);
	assert_int_equal(flexmem_cache_record_stream(cache, token, 3), 0);
	give(cache, token);
	take(cache, 60 * MIB, 2);
	assert_int_equal(mock.device_waits, 1);
	flexmem_cache_destroy(cache);
}

/* Events are recorded when the last capture ends, not the last pool. */
static void captures_end(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	uint64_t pools[] = {
		new_pool(cache), new_pool(cache), new_pool(cache),
	};
	void *token = take(cache, 1000, 0);
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		begin(cache, pools[i]);
	capture(cache, pools[1]);
	/* Once more changes nothing. */
	capture(cache, pools[1]);
	capture(cache, pools[2]);
	assert_int_equal(flexmem_cache_record_stream(cache, token, 2), 0);
	give(cache, token);
	end(cache, pools[2]);
	assert_int_equal(mock.events, 0);
	end(cache, pools[1]);
	assert_int_equal(mock.events, 1);
	assert_int_equal(flexmem_cache_pool_capture(cache, pools[1]), -ENOENT);
	/* A pool that begins again captures nothing before that is said. */
	begin(cache, pools[1]);
	token = take(cache, 1000, 0);
	assert_int_equal(flexmem_cache_record_stream(cache, token, 2), 0);
	give(cache, token);
	assert_int_equal(mock.events, 2);
	assert_int_equal(flexmem_cache_pool_release(cache, pools[1]), 0);
	capture(cache, pools[1]);
	end(cache, pools[1]);
	flexmem_cache_destroy(cache);
}

/* @idle: the bytes of the first pool that are free at the end. */
static void emptied(const char *settings, uint64_t idle)
{
	struct flexmem_cache *cache = mock_cache_events(settings);
	uint64_t pools[] = { new_pool(cache), new_pool(cache) };
	uint64_t released;
	void *token;
	int i;

	give(cache, take(cache, 20 * MIB, 0));
	for (i = 0; i < 2; i++)
		give(cache, take_in(cache, pools[i], 20 * MIB).token);
	take_in(cache, pools[0], 30 * MIB);
	/* flexmem_cache_empty() returns only memory outside of pools. */
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 20 * MIB);
	/* The call waits for the event of a block. */
	token = take_in(cache, pools[0], 40 * MIB).token;
	assert_int_equal(flexmem_cache_record_stream(cache, token, 1), 0);
	give(cache, token);
	assert_int_equal(flexmem_cache_pool_empty(cache, pools[0], &released),
			 0);
	assert_int_equal(released, idle);
	assert_int_equal(usage_of(cache, pools[0]).reserved_bytes, 30 * MIB);
	assert_int_equal(usage_of(cache, pools[1]).reserved_bytes, 20 * MIB);
	assert_int_equal(flexmem_cache_pool_empty(cache, 0, &released),
			 -ENOENT);
	/* The pool still serves requests. */
	take_in(cache, pools[0], 20 * MIB);
	flexmem_cache_destroy(cache);
}

static void emptied_alone(void **state)
{
	(void)state;
	emptied("", 60 * MIB);
}

static void emptied_to_its_end(void **state)
{
	(void)state;
	/* One segment, which has grown over the block of 20 MiB. */
	emptied("expandable_segments:True", 40 * MIB);
}

static void emptied_in_vain(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	uint64_t pool = new_pool(cache);
	uint64_t released = 1;

	(void)state;
	give(cache, take_in(cache, pool, 20 * MIB).token);
	mock.fail_frees = 1;
	mock.error = -EIO;
	assert_int_equal(flexmem_cache_pool_empty(cache, pool, &released),
			 -EIO);
	assert_int_equal(released, 0);
	flexmem_cache_destroy(cache);
}

/* Takes @bytes in a pool, and frees them. The pool keeps the segment. */
static void keep_in(struct flexmem_cache *cache, uint64_t pool, uint64_t bytes)
{
	give(cache, take_in(cache, pool, bytes).token);
	assert_int_equal(usage_of(cache, pool).reserved_bytes, bytes);
}

/* Lets a request fail. Its text names @keeper as the pool to empty, if any. */
static void refuse(struct flexmem_cache *cache, uint64_t pool, uint64_t bytes,
		   uint64_t keeper)
{
	const struct flexmem_cache_request request = {
		.bytes = bytes, .pool = pool,
	};
	struct flexmem_cache_allocation made;
	char expected[128];
	char text[512];

	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &made,
						     sizeof(made)), -ENOMEM);
	assert_int_equal(made.failure.kept_pool, keeper);
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &made.failure,
						  sizeof(made.failure), text,
						  sizeof(text)), 0);
	snprintf(expected, sizeof(expected),
		 "private pool %u keeps free segments: if no graph uses them, flexmem_cache_pool_empty() may help",
		 (unsigned int)keeper);
	assert_int_equal(!!strstr(text, expected), !!keeper);
	assert_int_equal(!!strstr(text, "pool_empty"), !!keeper);
}

/* Before a pool fails, it returns free segments that are in its way. */
static void in_its_own_way(void **state)
{
	struct flexmem_cache *cache;
	uint64_t pools[2];
	void *token;

	(void)state;
	mock.capacity = 80 * GIB;
	cache = mock_cache_events("");
	pools[0] = new_pool(cache);
	pools[1] = new_pool(cache);
	keep_in(cache, pools[0], 60 * GIB);
	token = take_in(cache, pools[0], 70 * GIB).token;
	assert_int_equal(usage_of(cache, pools[0]).reserved_bytes, 70 * GIB);
	/* The cache waits for work that uses the memory. */
	assert_int_equal(flexmem_cache_record_stream(cache, token, 1), 0);
	give(cache, token);
	token = take_in(cache, pools[0], 75 * GIB).token;
	assert_int_equal(mock.device_waits, 1);
	give(cache, token);
	/* Free segments of another pool stay. */
	refuse(cache, pools[1], 10 * GIB, pools[0]);
	assert_int_equal(usage_of(cache, pools[0]).reserved_bytes, 75 * GIB);
	flexmem_cache_destroy(cache);
}

/* If a graph may use a pool's segments, they stay, and the text says so. */
static void kept_for_a_graph(void **state)
{
	struct flexmem_cache_checkpoint *checkpoint;
	struct flexmem_cache *cache;
	uint64_t pool;
	int i;

	(void)state;
	mock.capacity = 80 * GIB;
	cache = mock_cache("");
	for (i = 0; i < 2; i++) {
		pool = new_pool(cache);
		if (i) {
			assert_int_equal(
				flexmem_cache_pool_checkpoint(cache, pool,
							      &checkpoint), 0);
			flexmem_cache_checkpoint_free(checkpoint);
		} else {
			begin(cache, pool);
			capture(cache, pool);
			end(cache, pool);
		}
		keep_in(cache, pool, 60 * GIB);
		refuse(cache, pool, 70 * GIB, pool);
		refuse(cache, 0, 70 * GIB, pool);
		/* Emptying the pool would not be enough. */
		refuse(cache, pool, 81 * GIB, 0);
		assert_int_equal(flexmem_cache_pool_empty(cache, pool, NULL),
				 0);
		give(cache, take_in(cache, pool, 70 * GIB).token);
		assert_int_equal(flexmem_cache_pool_release(cache, pool), 0);
	}
	flexmem_cache_destroy(cache);
}

/* So do those of a pool that serves a request while another pool captures. */
static void kept_for_a_graph_of_another_pool(void **state)
{
	struct flexmem_cache *cache;
	uint64_t graph;
	uint64_t pool;

	(void)state;
	mock.capacity = 80 * GIB;
	cache = mock_cache("");
	graph = new_pool(cache);
	pool = new_pool(cache);
	begin(cache, graph);
	capture(cache, graph);
	keep_in(cache, pool, 60 * GIB);
	refuse(cache, pool, 70 * GIB, pool);
	end(cache, graph);
	refuse(cache, pool, 70 * GIB, pool);
	assert_int_equal(flexmem_cache_pool_empty(cache, pool, NULL), 0);
	give(cache, take_in(cache, pool, 70 * GIB).token);
	flexmem_cache_destroy(cache);
}

static void usage_by_stream(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	struct flexmem_cache_usage usage;
	uint64_t pool = new_pool(cache);
	uint64_t stream = 1;
	void *token;

	(void)state;
	take(cache, 1000, 0);
	take(cache, 1000, 1);
	token = take(cache, 3000, 1);
	take_in(cache, pool, 1000);
	assert_int_equal(flexmem_cache_pool_usage(cache, 0, &stream, &usage,
					     sizeof(usage)), 0);
	assert_int_equal(usage.uses, 0);
	assert_int_equal(usage.segments, 1);
	assert_int_equal(usage.reserved_bytes, 2 * MIB);
	assert_int_equal(usage.allocations, 2);
	assert_int_equal(usage.allocated_bytes, 1024 + 3072);
	assert_int_equal(usage.requested_bytes, 4000);
	assert_int_equal(usage.active_bytes, 1024 + 3072);
	assert_int_equal(flexmem_cache_record_stream(cache, token, 0), 0);
	give(cache, token);
	assert_int_equal(flexmem_cache_pool_usage(cache, 0, &stream, &usage,
					     sizeof(usage)), 0);
	assert_int_equal(usage.allocations, 1);
	assert_int_equal(usage.active_bytes, 1024 + 3072);
	assert_int_equal(usage_of(cache, 0).segments, 2);
	assert_int_equal(usage_of(cache, 0).allocations, 2);
	assert_int_equal(usage_of(cache, pool).allocations, 1);
	assert_int_equal(flexmem_cache_pool_usage(cache, pool + 1, NULL, &usage,
					     sizeof(usage)), -ENOENT);
	assert_int_equal(flexmem_cache_pool_usage(cache, 0, NULL, &usage, 8),
			 -EINVAL);
	flexmem_cache_destroy(cache);
}

/* A segment that all streams share counts for none of them. */
static void usage_of_a_shared_segment(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("expandable_segments:True,reuse:wait");
	struct flexmem_cache_usage usage;
	uint64_t stream;

	(void)state;
	for (stream = 1; stream < 3; stream++)
		take(cache, stream * 1000, stream);
	for (stream = 1; stream < 3; stream++) {
		assert_int_equal(flexmem_cache_pool_usage(cache, 0, &stream,
							  &usage,
							  sizeof(usage)), 0);
		assert_int_equal(usage.segments, 0);
		assert_int_equal(usage.reserved_bytes, 0);
		assert_int_equal(usage.allocations, 1);
		assert_int_equal(usage.requested_bytes, stream * 1000);
	}
	assert_int_equal(usage_of(cache, 0).segments, 1);
	assert_int_equal(usage_of(cache, 0).allocations, 2);
	flexmem_cache_destroy(cache);
}

/*
 * A request that would fail may use memory of a pool with
 * FLEXMEM_CACHE_POOL_USE_ON_OOM.
 */
static void used_on_oom(void **state)
{
	struct flexmem_cache *cache;
	uint64_t pool;
	uint64_t where;
	void *token;

	(void)state;
	mock.capacity = 20 * MIB;
	cache = mock_cache("");
	pool = new_pool(cache);
	token = take_in(cache, pool, 20 * MIB).token;
	where = place(cache, token);
	give(cache, token);
	assert_int_equal(try_alloc(cache, 20 * MIB), -ENOMEM);
	assert_int_equal(flexmem_cache_pool_set_flags(cache, pool, 4),
			 -EOPNOTSUPP);
	assert_int_equal(
		flexmem_cache_pool_set_flags(cache, pool,
					     FLEXMEM_CACHE_POOL_USE_ON_OOM), 0);
	token = take(cache, 20 * MIB, 0);
	assert_int_equal(place(cache, token), where);
	assert_int_equal(lookup(cache, token).pool, pool);
	assert_int_equal(figures(cache).num_alloc_retries, 1);
	/* The freed block belongs to the pool again. */
	give(cache, token);
	assert_int_equal(usage_of(cache, pool).reserved_bytes, 20 * MIB);
	/* No other request uses memory of a released pool. */
	take_in(cache, pool, 2 * MIB);
	assert_int_equal(flexmem_cache_pool_release(cache, pool), 0);
	assert_int_equal(try_alloc(cache, 2 * MIB), -ENOMEM);
	flexmem_cache_destroy(cache);
}

static void without_splits(const char *configuration)
{
	struct flexmem_cache *cache = mock_cache(configuration);
	uint64_t pool = new_pool(cache);
	int i;

	assert_int_equal(
		flexmem_cache_pool_set_flags(cache, pool,
					     FLEXMEM_CACHE_POOL_NO_SPLIT), 0);
	for (i = 0; i < 2; i++) {
		take_in(cache, pool, 1000);
		take_in(cache, pool, 5 * MIB);
	}
	assert_int_equal(usage_of(cache, pool).segments, 4);
	assert_int_equal(usage_of(cache, pool).allocated_bytes,
			 usage_of(cache, pool).reserved_bytes);
	assert_int_equal(figures(cache).inactive_split[0].current, 0);
	/* NO_SPLIT cannot change while the pool has segments. */
	assert_int_equal(flexmem_cache_pool_set_flags(cache, pool, 0), -EBUSY);
	pool = new_pool(cache);
	take_in(cache, pool, 1000);
	assert_int_equal(
		flexmem_cache_pool_set_flags(cache, pool,
					     FLEXMEM_CACHE_POOL_NO_SPLIT),
		-EBUSY);
	assert_int_equal(
		flexmem_cache_pool_set_flags(cache, pool,
					     FLEXMEM_CACHE_POOL_USE_ON_OOM), 0);
	flexmem_cache_destroy(cache);
}

/*
 * A thread changes the flags of two pools: of the pool for which the cache
 * makes a segment just now, and of another pool.
 * @results: what these calls return.
 */
static struct flexmem_cache *asking_cache;
static uint64_t pools[2];
static int results[2];

static void *change_flags(void *unused)
{
	int i;

	for (i = 0; i < 2; i++)
		results[i] =
			flexmem_cache_pool_set_flags(asking_cache, pools[i],
						     FLEXMEM_CACHE_POOL_NO_SPLIT);
	return unused;
}

static void another_thread_changes_flags(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, change_flags, NULL), 0);
	pthread_join(thread, NULL);
}

/* While the cache makes a pool's segment, NO_SPLIT of the pool is fixed. */
static void no_split_while_it_asks(void **state)
{
	(void)state;
	asking_cache = mock_cache("release_lock_on_device_malloc:True");
	pools[0] = new_pool(asking_cache);
	pools[1] = new_pool(asking_cache);
	mock.on_alloc = another_thread_changes_flags;
	take_in(asking_cache, pools[0], 1000);
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(results[0], -EBUSY);
	assert_int_equal(results[1], 0);
	flexmem_cache_destroy(asking_cache);
}

static void no_split(void **state)
{
	(void)state;
	without_splits("");
	without_splits("expandable_segments:True");
}

/*
 * A provider of a single pool. It has another address space, and its handles
 * may be equal to handles of the cache's provider.
 */
static struct flexmem_cache_provider own;
static unsigned int own_allocs;
static unsigned int own_frees;

static int own_alloc(void *user, uint64_t bytes, uint64_t alignment,
		     uint32_t flags, struct flexmem_cache_memory *memory,
		     struct flexmem_failure *failure)
{
	int err = own.alloc(user, bytes, alignment, flags, memory, failure);

	own_allocs += !err;
	memory->address.region_id = 77;
	return err;
}

static int own_free(void *user, uint64_t handle)
{
	own_frees++;
	return own.free(user, handle);
}

static void own_provider(const char *configuration)
{
	struct flexmem_cache *cache = mock_cache(configuration);
	struct flexmem_cache_provider provider;
	struct flexmem_cache_allocation made;
	struct flexmem_cache_flat *flat;
	uint64_t pool;
	void *token;

	assert_int_equal(flexmem_cache_flat_create(&flat, GIB, &provider,
						   sizeof(provider)), 0);
	own = provider;
	own_allocs = 0;
	own_frees = 0;
	provider.alloc = own_alloc;
	provider.free = own_free;
	assert_int_equal(flexmem_cache_pool_create_on(cache, &provider, 8,
						      &pool), -EINVAL);
	assert_int_equal(flexmem_cache_pool_create_on(cache, &provider,
						      sizeof(provider), &pool),
			 0);
	token = take(cache, MIB, 0);
	made = take_in(cache, pool, MIB);
	assert_int_equal(own_allocs, 1);
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(made.address.region_id, 77);
	assert_int_equal(made.handle, 0);
	/* Segments of the pool's own provider grow through that provider. */
	take_in(cache, pool, 3 * MIB);
	assert_int_equal(mock.grows, 0);
	give(cache, token);
	give(cache, made.token);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(own_frees, 0);
	flexmem_cache_destroy(cache);
	assert_int_equal(own_frees, own_allocs);
	assert_int_equal(mock.frees, 1);
	flexmem_cache_flat_destroy(flat);
}

static void provider_of_its_own(void **state)
{
	(void)state;
	own_provider("");
	mock_teardown(state);
	mock_setup(state);
	own_provider("expandable_segments:True");
	assert_int_equal(own_allocs, 1);
}

/* The text names the pool that keeps most, also if a setting is the limit. */
static void kept_by_several(void **state)
{
	struct flexmem_cache_provider other;
	struct flexmem_cache_flat *flat;
	struct flexmem_cache *cache;
	uint64_t keepers[3];

	(void)state;
	mock.capacity = 100 * GIB;
	cache = mock_cache("per_process_memory_fraction:0.5");
	assert_int_equal(flexmem_cache_flat_create(&flat, 100 * GIB, &other,
						   sizeof(other)), 0);
	/* The region of the other provider has a number of its own. */
	own = other;
	other.alloc = own_alloc;
	keepers[0] = new_pool(cache);
	keepers[1] = new_pool(cache);
	assert_int_equal(flexmem_cache_pool_create_on(cache, &other,
						      sizeof(other),
						      &keepers[2]), 0);
	keep_in(cache, keepers[0], 10 * GIB);
	keep_in(cache, keepers[1], 20 * GIB);
	refuse(cache, 0, 30 * GIB, keepers[1]);
	refuse(cache, 0, 41 * GIB, 0);
	/* Memory of another provider counts for the fraction only. */
	take_in(cache, keepers[0], 10 * GIB);
	assert_int_equal(flexmem_cache_pool_empty(cache, keepers[1], NULL), 0);
	keep_in(cache, keepers[2], 40 * GIB);
	refuse(cache, 0, 20 * GIB, keepers[2]);
	assert_int_equal(flexmem_cache_set_memory_fraction(cache, 1.0), 0);
	refuse(cache, 0, 95 * GIB, 0);
	/* The pool that keeps most cannot help, but a smaller one can. */
	keep_in(cache, keepers[1], 20 * GIB);
	refuse(cache, 0, 75 * GIB, keepers[1]);
	refuse(cache, 0, 95 * GIB, 0);
	flexmem_cache_destroy(cache);
	flexmem_cache_flat_destroy(flat);
}

/*
 * Two providers give segments with the same handle and place. The cache cannot
 * use the second one, and must free it at the provider that made it.
 */
static void a_handle_of_another_provider(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_provider provider;
	struct flexmem_cache_allocation first;
	struct flexmem_cache_request request = { .bytes = MIB };
	struct flexmem_cache_flat *flat;

	(void)state;
	first = lookup(cache, take(cache, MIB, 0));
	assert_int_equal(first.handle, 0);
	assert_int_equal(flexmem_cache_flat_create(&flat, GIB, &provider,
						   sizeof(provider)), 0);
	own = provider;
	own_frees = 0;
	provider.free = own_free;
	assert_int_equal(flexmem_cache_pool_create_on(cache, &provider,
						      sizeof(provider),
						      &request.pool), 0);
	/* Both providers' segments are in region 0. */
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &first,
						     sizeof(first)), -EIO);
	assert_int_equal(own_frees, 1);
	flexmem_cache_destroy(cache);
	flexmem_cache_flat_destroy(flat);
}

static void bad_arguments(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_provider none = { 0 };
	uint64_t pool = new_pool(cache);
	uint64_t stream = 0;

	(void)state;
	assert_int_equal(flexmem_cache_pool_create_on(cache, &none,
						      sizeof(none), &pool),
			 -EINVAL);
	assert_int_equal(flexmem_cache_pool_hold(cache, 0), -ENOENT);
	assert_int_equal(flexmem_cache_pool_hold(NULL, pool), -EINVAL);
	assert_int_equal(flexmem_cache_pool_set_flags(cache, 0, 0), -ENOENT);
	assert_int_equal(flexmem_cache_pool_begin(cache, pool, NULL, NULL),
			 -EINVAL);
	assert_int_equal(flexmem_cache_pool_begin(cache, 0, is_stream, &stream),
			 -ENOENT);
	assert_int_equal(flexmem_cache_pool_capture(cache, pool), -ENOENT);
	assert_int_equal(flexmem_cache_pool_capture(NULL, pool), -EINVAL);
	assert_int_equal(flexmem_cache_pool_end(NULL, pool), -EINVAL);
	assert_int_equal(flexmem_cache_pool_usage(NULL, 0, NULL, NULL, 0), -EINVAL);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(held_twice),
		CACHE_TEST(released_in_use),
		CACHE_TEST(requests_go_by_stream),
		CACHE_TEST(nested),
		CACHE_TEST(no_events_in_a_capture),
		CACHE_TEST(no_loans_in_a_capture),
		CACHE_TEST(no_sharing_in_a_capture),
		CACHE_TEST(events_without_a_capture),
		CACHE_TEST(captures_end),
		CACHE_TEST(emptied_alone),
		CACHE_TEST(emptied_to_its_end),
		CACHE_TEST(emptied_in_vain),
		CACHE_TEST(in_its_own_way),
		CACHE_TEST(kept_for_a_graph),
		CACHE_TEST(kept_for_a_graph_of_another_pool),
		CACHE_TEST(kept_by_several),
		CACHE_TEST(usage_by_stream),
		CACHE_TEST(usage_of_a_shared_segment),
		CACHE_TEST(used_on_oom),
		CACHE_TEST(no_split),
		CACHE_TEST(no_split_while_it_asks),
		CACHE_TEST(provider_of_its_own),
		CACHE_TEST(a_handle_of_another_provider),
		CACHE_TEST(bad_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
