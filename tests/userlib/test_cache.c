// SPDX-License-Identifier: GPL-2.0
/* The cache: pools, blocks, segments, sizes. */
#include "cache_mock.h"

static void zero_bytes(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_request request = { .stream = 1 };
	struct flexmem_cache_allocation allocation;
	void *token = &token;

	(void)state;
	assert_int_equal(flexmem_cache_alloc(cache, 0, 0, &token), 0);
	assert_null(token);
	assert_int_equal(flexmem_cache_free(cache, NULL), 0);
	assert_int_equal(flexmem_cache_record_stream(cache, NULL, 1), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request),
						     &allocation,
						     sizeof(allocation)), 0);
	assert_null(allocation.token);
	assert_int_equal(allocation.size, 0);
	assert_int_equal(figures(cache).allocation[0].allocated, 0);
	assert_int_equal(mock.allocs, 0);
	flexmem_cache_destroy(cache);
}

/*
 * Sizes are rounded up to multiples of 128 bytes. Small allocations share
 * segments of 2 MiB.
 */
static void small_pool(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	void *a = take(cache, 1, 0);
	void *b = take(cache, 129, 0);
	void *c = take(cache, MIB, 0);

	(void)state;
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(mock.last_alloc, 2 * MIB);
	assert_int_equal(mock.last_alignment, 128);
	assert_int_equal(mock.last_flags, 0);
	assert_int_equal(lookup(cache, a).size, 128);
	assert_int_equal(lookup(cache, a).requested, 1);
	assert_int_equal(lookup(cache, b).size, 256);
	assert_int_equal(place(cache, b), place(cache, a) + 128);
	assert_int_equal(place(cache, c), place(cache, b) + 256);
	/* The segment has 384 bytes less than 1 MiB left. */
	take(cache, MIB, 0);
	assert_int_equal(mock.allocs, 2);
	take(cache, MIB - 384, 0);
	assert_int_equal(mock.allocs, 2);
	flexmem_cache_destroy(cache);
}

static void large_pool(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	void *a = take(cache, MIB + 1, 0);
	void *b;

	(void)state;
	assert_int_equal(mock.last_alloc, 20 * MIB);
	assert_int_equal(lookup(cache, a).size, MIB + 128);
	b = take(cache, 10 * MIB - 128, 0);
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(place(cache, b), place(cache, a) + MIB + 128);
	/*
	 * From 10 MiB on each allocation has a segment of its own, whose size
	 * is a multiple of 2 MiB.
	 */
	a = take(cache, 10 * MIB, 0);
	assert_int_equal(mock.last_alloc, 10 * MIB);
	assert_int_equal(lookup(cache, a).size, 10 * MIB);
	b = take(cache, 11 * MIB, 0);
	assert_int_equal(mock.last_alloc, 12 * MIB);
	/* The block is not split, because the rest would be too small. */
	assert_int_equal(lookup(cache, b).size, 12 * MIB);
	assert_int_equal(lookup(cache, b).requested, 11 * MIB);
	b = take(cache, 12 * MIB + 1, 0);
	assert_int_equal(mock.last_alloc, 14 * MIB);
	assert_int_equal(lookup(cache, b).size, 12 * MIB + 128);
	flexmem_cache_destroy(cache);
}

/* A request gets the smallest block that fits; of equal blocks, the lowest. */
static void best_fit(void **state)
{
	static const uint64_t sizes[] = { 4096, 1024, 2048, 1024 };
	struct flexmem_cache *cache = mock_cache("");
	void *holes[4];
	uint64_t places[4];
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		holes[i] = take(cache, sizes[i], 0);
		places[i] = place(cache, holes[i]);
		take(cache, 128, 0);
	}
	for (i = 0; i < 4; i++)
		give(cache, holes[i]);
	assert_int_equal(place(cache, take(cache, 900, 0)), places[1]);
	assert_int_equal(place(cache, take(cache, 900, 0)), places[3]);
	assert_int_equal(place(cache, take(cache, 900, 0)), places[2]);
	assert_int_equal(place(cache, take(cache, 4096, 0)), places[0]);
	assert_int_equal(place(cache, take(cache, 1024, 0)), places[2] + 1024);
	flexmem_cache_destroy(cache);
}

/* Of equal blocks, a request gets the lowest one in the oldest segment. */
static void equals_go_by_segment_and_offset(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	uint64_t places[3];
	void *tokens[3];
	int i;

	(void)state;
	/*
	 * The first two blocks, and the memory behind each of them, fill the
	 * first segment (2 MiB). The third block is in a second segment.
	 */
	for (i = 0; i < 3; i++) {
		tokens[i] = take(cache, 600 * KIB, 0);
		places[i] = place(cache, tokens[i]);
		take(cache, i == 1 ? 848 * KIB - 128 : 128, 0);
	}
	assert_int_equal(mock.allocs, 2);
	for (i = 3; i--;)
		give(cache, tokens[i]);
	for (i = 0; i < 3; i++)
		assert_int_equal(place(cache, take(cache, 600 * KIB, 0)),
				 places[i]);
	flexmem_cache_destroy(cache);
}

/*
 * A freed block merges with both neighbours, and the merged block is used
 * again.
 */
static void merging(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	void *t[5];
	int i;

	(void)state;
	for (i = 0; i < 5; i++)
		t[i] = take(cache, 400 * KIB, 0);
	assert_int_equal(mock.allocs, 1);
	give(cache, t[1]);
	give(cache, t[3]);
	assert_int_equal(figures(cache).inactive_split[0].current, 3);
	give(cache, t[2]);
	assert_int_equal(figures(cache).inactive_split[0].current, 2);
	assert_int_equal(place(cache, take(cache, MIB, 0)),
			 place(cache, t[0]) + 400 * KIB);
	assert_int_equal(mock.allocs, 1);
	flexmem_cache_destroy(cache);
}

static void streams_are_apart(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	void *a = take(cache, 1000, 7);
	uint64_t where = place(cache, a);
	void *b;

	(void)state;
	assert_int_equal(lookup(cache, a).stream, 7);
	give(cache, a);
	b = take(cache, 1000, 8);
	assert_int_equal(mock.allocs, 2);
	assert_int_not_equal(place(cache, b), where);
	assert_int_equal(place(cache, take(cache, 1000, 7)), where);
	assert_int_equal(mock.allocs, 2);
	flexmem_cache_destroy(cache);
}

static void oversize_rule(void **state)
{
	struct flexmem_cache *cache = mock_cache("max_split_size_mb:32");
	uint64_t where;
	void *a;

	(void)state;
	a = take(cache, 40 * MIB, 0);
	where = place(cache, a);
	assert_int_equal(figures(cache).oversize_allocations.current, 1);
	assert_int_equal(figures(cache).oversize_segments.current, 1);
	give(cache, a);
	/*
	 * A request below max_split_size_mb does not get a block above that
	 * size.
	 */
	take(cache, 30 * MIB, 0);
	assert_int_equal(mock.allocs, 2);
	/*
	 * A request gets no block that is more than 1 MiB larger than the
	 * request.
	 */
	take(cache, 39 * MIB - 128, 0);
	assert_int_equal(mock.allocs, 3);
	a = take(cache, 39 * MIB, 0);
	assert_int_equal(mock.allocs, 3);
	assert_int_equal(place(cache, a), where);
	assert_int_equal(lookup(cache, a).size, 40 * MIB);
	/*
	 * A request or a block of exactly max_split_size_mb counts as larger
	 * than that.
	 */
	take(cache, 32 * MIB, 1);
	assert_int_equal(mock.last_alloc, 32 * MIB);
	assert_int_equal(mock.allocs, 4);
	give(cache, take(cache, 33 * MIB + 128, 2));
	assert_int_equal(mock.last_alloc, 34 * MIB);
	a = take(cache, 33 * MIB, 2);
	assert_int_equal(lookup(cache, a).size, 34 * MIB);
	assert_int_equal(mock.allocs, 5);
	give(cache, take(cache, 32 * MIB, 3));
	assert_int_equal(mock.allocs, 6);
	take(cache, 31 * MIB, 3);
	assert_int_equal(mock.allocs, 7);
	a = take(cache, 32 * MIB, 3);
	assert_int_equal(mock.allocs, 7);
	mock.allocs = 3;
	/* Blocks smaller than max_split_size_mb are split as usual. */
	a = take(cache, 24 * MIB, 0);
	give(cache, a);
	a = take(cache, 12 * MIB, 0);
	assert_int_equal(lookup(cache, a).size, 12 * MIB);
	assert_int_equal(mock.allocs, 4);
	flexmem_cache_destroy(cache);
}

/* max_non_split_rounding_mb, a setting of newer PyTorch versions. */
static void oversize_knob(void **state)
{
	struct flexmem_cache *cache =
		mock_cache("max_split_size_mb:32,max_non_split_rounding_mb=8");
	void *a = take(cache, 40 * MIB, 0);

	(void)state;
	give(cache, a);
	a = take(cache, 32 * MIB, 0);
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(lookup(cache, a).size, 40 * MIB);
	flexmem_cache_destroy(cache);
}

/* large_segment_size_mb, another one of them. */
static void size_of_a_large_segment(void **state)
{
	struct flexmem_cache *cache = mock_cache("large_segment_size_mb:12");
	struct flexmem_cache_profile profile;

	(void)state;
	take(cache, 5 * MIB, 0);
	assert_int_equal(mock.last_alloc, 12 * MIB);
	assert_int_equal(flexmem_cache_profile(cache, &profile,
					       sizeof(profile)), 0);
	assert_int_equal(profile.large_segment, 12 * MIB);
	/* Other requests get what they got before. */
	take(cache, MIB, 0);
	assert_int_equal(mock.last_alloc, 2 * MIB);
	take(cache, 10 * MIB, 0);
	assert_int_equal(mock.last_alloc, 10 * MIB);
	/* A request that is larger than the segments gets one of its own. */
	assert_int_equal(flexmem_cache_set_setting(cache, "large_segment_size_mb",
						   "4"), 0);
	take(cache, 9 * MIB, 1);
	assert_int_equal(mock.last_alloc, 10 * MIB);
	take(cache, 3 * MIB, 1);
	assert_int_equal(mock.last_alloc, 4 * MIB);
	flexmem_cache_destroy(cache);
}

/* Segments larger than max_split_size_mb still serve smaller requests. */
static void small_split_limit(void **state)
{
	struct flexmem_cache *cache = mock_cache("max_split_size_mb:7");
	void *a = take(cache, 6 * MIB + 1, 0);

	(void)state;
	assert_int_equal(mock.last_alloc, 6 * MIB + 128);
	give(cache, a);
	take(cache, 6 * MIB + 1, 0);
	assert_int_equal(mock.allocs, 1);
	take(cache, 3 * MIB, 0);
	assert_int_equal(mock.last_alloc, 4 * MIB);
	/* max_split_size_mb does not apply to the small pool. */
	give(cache, take(cache, 1000, 0));
	take(cache, 2000, 0);
	assert_int_equal(mock.allocs, 3);
	flexmem_cache_destroy(cache);
}

static void growing(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	void *a = take(cache, 3 * MIB, 0);
	void *b;
	void *c;

	(void)state;
	assert_int_equal(mock.last_flags, FLEXMEM_CACHE_GROWABLE);
	assert_int_equal(mock.last_alloc, 4 * MIB);
	b = take(cache, 3 * MIB, 0);
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(mock.grows, 1);
	assert_int_equal(place(cache, b), place(cache, a) + 3 * MIB);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 6 * MIB);
	assert_int_equal(figures(cache).segment[0].current, 1);
	assert_int_equal(figures(cache).num_device_grow, 1);
	/* The segment grows behind a block that is in use. */
	c = take(cache, 2 * MIB, 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 8 * MIB);
	assert_int_equal(place(cache, c), place(cache, b) + 3 * MIB);
	/*
	 * Small requests use the same segment, and count in the statistics of
	 * the large pool.
	 */
	take(cache, 128, 0);
	take(cache, 2 * MIB - 128, 0);
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(mock.grows, 3);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 10 * MIB);
	assert_int_equal(figures(cache).inactive_split[0].current, 0);
	assert_int_equal(figures(cache).allocation[FLEXMEM_CACHE_SMALL].current,
			 0);
	/* Another stream has its own growing segment. */
	take(cache, 128, 1);
	assert_int_equal(mock.allocs, 2);
	flexmem_cache_destroy(cache);
}

/*
 * In a growing segment a request gets the lowest block that fits, and not the
 * smallest.
 */
static void lowest_fit(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	void *a = take(cache, 4 * MIB, 0);
	uint64_t low = place(cache, a);
	void *b;

	(void)state;
	take(cache, MIB, 0);
	b = take(cache, 2 * MIB, 0);
	take(cache, MIB, 0);
	give(cache, b);
	give(cache, a);
	assert_int_equal(place(cache, take(cache, 2 * MIB, 0)), low);
	assert_int_equal(place(cache, take(cache, 3 * MIB / 2, 0)),
			 low + 2 * MIB);
	assert_int_equal(place(cache, take(cache, MIB, 0)), low + 5 * MIB);
	flexmem_cache_destroy(cache);
}

/*
 * The space behind the segment is in use, so the cache makes a second segment,
 * which grows.
 */
static void growing_is_stopped(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	void *a = take(cache, 4 * MIB, 0);

	(void)state;
	mock.fail_grows = 1;
	mock.error = -EAGAIN;
	take(cache, 4 * MIB, 0);
	assert_int_equal(mock.allocs, 2);
	assert_int_equal(figures(cache).num_first_failures, 0);
	mock.fail_grows = 1;
	take(cache, 4 * MIB, 0);
	assert_int_equal(mock.allocs, 2);
	assert_int_equal(mock.grows, 3);
	/* Free memory in the first segment is used first. */
	give(cache, a);
	take(cache, MIB, 0);
	assert_int_equal(mock.grows, 3);
	assert_int_equal(figures(cache).segment[0].current, 2);
	/*
	 * If no segment can grow for lack of memory, the cache makes a new one,
	 * and the request succeeds.
	 */
	mock.error = -ENOMEM;
	mock.fail_grows = 2;
	take(cache, 8 * MIB, 0);
	assert_int_equal(mock.allocs, 3);
	assert_int_equal(figures(cache).num_first_failures, 0);
	mock.error = -EAGAIN;
	/*
	 * If all segments fail to grow with EAGAIN, the cache makes a new
	 * segment. If one fails with EIO, the request fails.
	 */
	mock.fail_grows = 3;
	take(cache, 8 * MIB, 0);
	assert_int_equal(mock.allocs, 4);
	mock.error = -EIO;
	mock.fail_grows = 1;
	assert_int_equal(flexmem_cache_alloc(cache, 8 * MIB, 0,
					     &(void *){ NULL }), -EIO);
	flexmem_cache_destroy(cache);
}

/*
 * A failure reports why the cache could not make a new segment, not why an
 * existing segment could not grow.
 */
static void growing_has_its_own_reasons(void **state)
{
	struct flexmem_cache *cache =
		mock_cache("expandable_segments:True,"
			   "per_process_memory_fraction:0.5");
	struct flexmem_cache_request request = { .bytes = 8 * MIB };
	struct flexmem_cache_allocation a;

	(void)state;
	take(cache, 500 * MIB, 0);
	give(cache, take(cache, 6 * MIB, 0));
	/* The fraction permits 2 MiB more, but not a new segment of 8 MiB. */
	mock.fail_grows = 10;
	mock.fail_frees = 10;
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	assert_true(mock.grows > 1);
	assert_int_equal(a.failure.error, 0);
	assert_int_equal(a.failure.segment, 8 * MIB);
	assert_int_equal(a.failure.allowed_bytes, 512 * MIB);
	assert_int_equal(a.failure.device.limit, FLEXMEM_LIMIT_NONE);
	mock.fail_frees = 0;
	flexmem_cache_destroy(cache);
}

/* A growing segment returns its free end, in whole steps. */
static void shrinking(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	void *a = take(cache, 3 * MIB, 0);
	void *b = take(cache, 20 * MIB, 0);
	uint64_t released;

	(void)state;
	give(cache, b);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 20 * MIB);
	assert_int_equal(mock.shrinks, 1);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 4 * MIB);
	assert_int_equal(figures(cache).inactive_split_bytes[0].current, MIB);
	assert_int_equal(figures(cache).num_device_shrink, 1);
	/* There is nothing left to return. */
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 0);
	assert_int_equal(mock.shrinks, 1);
	take(cache, MIB, 0);
	assert_int_equal(mock.grows, 1);
	give(cache, a);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 0);
	take(cache, 20 * MIB, 0);
	assert_int_equal(mock.grows, 2);
	assert_int_equal(mock.grown_from, 4 * MIB);
	flexmem_cache_destroy(cache);
}

/* If the free end is a whole number of steps, the segment returns all of it. */
static void shrinking_to_the_step(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	void *b;

	(void)state;
	take(cache, 4 * MIB, 0);
	b = take(cache, 4 * MIB, 0);
	give(cache, b);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 4 * MIB);
	assert_int_equal(figures(cache).inactive_split[0].current, 0);
	take(cache, 2 * MIB, 0);
	assert_int_equal(mock.grows, 2);
	flexmem_cache_destroy(cache);
}

static void no_growth(void **state)
{
	struct flexmem_cache *cache;

	(void)state;
	mock.no_growth = true;
	cache = mock_cache("expandable_segments:True");
	assert_int_equal(mock.warnings, 1);
	assert_non_null(strstr(mock.log, "expandable_segments has no effect"));
	take(cache, 3 * MIB, 0);
	assert_int_equal(mock.last_alloc, 20 * MIB);
	assert_int_equal(mock.last_flags, 0);
	flexmem_cache_destroy(cache);
}

static void direct(void **state)
{
	struct flexmem_cache *cache =
		mock_cache("backend:direct,expandable_segments:True");
	void *a = take(cache, 1000, 0);

	(void)state;
	assert_int_equal(mock.warnings, 0);
	assert_int_equal(mock.last_alloc, 1024);
	take(cache, 1000, 0);
	assert_int_equal(mock.allocs, 2);
	give(cache, a);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 1024);
	flexmem_cache_destroy(cache);
}

/*
 * backend:direct keeps no free memory. But a block must still wait for its
 * events before it is returned.
 */
static void direct_with_streams(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("backend:direct");
	void *a = take(cache, 5 * MIB, 0);
	void *b = take(cache, 7 * MIB, 0);
	uint64_t released = 1;

	(void)state;
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 0);
	assert_int_equal(flexmem_cache_record_stream(cache, a, 1), 0);
	assert_int_equal(flexmem_cache_record_stream(cache, b, 2), 0);
	give(cache, a);
	give(cache, b);
	/* A trim does not wait for events. One block's event has happened. */
	mock.happened[1] = true;
	assert_int_equal(flexmem_cache_trim(cache, 1, &released), 0);
	assert_int_equal(released, 7 * MIB);
	assert_int_equal(flexmem_cache_trim(cache, UINT64_MAX, &released), 0);
	assert_int_equal(released, 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 5 * MIB);
	assert_int_equal(mock.waits, 0);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 5 * MIB);
	assert_int_equal(mock.waits, 1);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	assert_int_equal(figures(cache).active[0].current, 0);
	/*
	 * The provider refuses to take memory back. flexmem_cache_empty() tries
	 * again.
	 */
	mock.fail_frees = 1;
	mock.error = -EIO;
	give(cache, take(cache, 3 * MIB, 0));
	assert_int_equal(figures(cache).reserved_bytes[0].current, 3 * MIB);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 3 * MIB);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	flexmem_cache_destroy(cache);
}

/*
 * Memory that becomes free during a trim because an event happens counts as
 * released.
 */
static void released_on_the_way(void **state)
{
	struct flexmem_cache_request request = { .bytes = 20 * MIB };
	struct flexmem_cache *cache = mock_cache_events("");
	struct flexmem_cache_allocation a;
	uint64_t released;

	(void)state;
	give(cache, take(cache, 30 * MIB, 0));
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	assert_int_equal(flexmem_cache_record_stream(cache, a.token, 1), 0);
	assert_int_equal(flexmem_cache_pool_release(cache, request.pool), 0);
	give(cache, a.token);
	mock.happened[0] = true;
	assert_int_equal(flexmem_cache_trim(cache, 10 * MIB, &released), 0);
	assert_int_equal(released, 20 * MIB);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 30 * MIB);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 30 * MIB);
	flexmem_cache_destroy(cache);
}

static void rounding(void **state)
{
	struct flexmem_cache *cache =
		mock_cache("roundup_power2_divisions:[2:1,4:4,16:8,>:2]");
	static const struct {
		uint64_t bytes;
		uint64_t size;
	} cases[] = {
		/* Below 4 MiB the size is a multiple of 128. */
		{ 1, 128 }, { 1000, 1024 }, { 3 * MIB, 3 * MIB },
		/* Up to 16 MiB a step is a quarter of a power of two. */
		{ 4 * MIB, 4 * MIB }, { 4 * MIB + 1, 5 * MIB },
		{ 7 * MIB + 1, 8 * MIB }, { 8 * MIB + 1, 10 * MIB },
		{ 16 * MIB + 1, 18 * MIB },
		/* Above 32 MiB a step is half of a power of two. */
		{ 32 * MIB + 1, 48 * MIB }, { 64 * MIB + 1, 96 * MIB },
	};
	struct flexmem_cache_allocation allocation;
	size_t i;
	void *token;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		token = take(cache, cases[i].bytes, 0);
		allocation = lookup(cache, token);
		assert_int_equal(allocation.size, cases[i].size);
		assert_int_equal(allocation.requested, cases[i].bytes);
		give(cache, token);
	}
	flexmem_cache_destroy(cache);
	/* The first entry also applies to all smaller sizes. */
	cache = mock_cache("roundup_power2_divisions:[4:4,8:2]");
	assert_int_equal(lookup(cache, take(cache, 2 * MIB + 1, 0)).size,
			 5 * MIB / 2);
	assert_int_equal(lookup(cache, take(cache, 1025, 0)).size, 1280);
	flexmem_cache_destroy(cache);
	/* 0 switches the rounding off. */
	cache = mock_cache("roundup_power2_divisions:[1:0, 4:4]");
	assert_int_equal(lookup(cache, take(cache, 3 * MIB + 1, 0)).size,
			 3 * MIB + 128);
	assert_int_equal(lookup(cache, take(cache, 4 * MIB + 1, 0)).size,
			 5 * MIB);
	flexmem_cache_destroy(cache);
	/* No step is smaller than 128 bytes. */
	cache = mock_cache("roundup_power2_divisions:8");
	assert_int_equal(lookup(cache, take(cache, 1000, 0)).size, 1024);
	assert_int_equal(lookup(cache, take(cache, 1025, 0)).size, 1152);
	assert_int_equal(lookup(cache, take(cache, 2049, 0)).size, 2304);
	assert_int_equal(lookup(cache, take(cache, 129, 0)).size, 256);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(zero_bytes),
		CACHE_TEST(small_pool),
		CACHE_TEST(large_pool),
		CACHE_TEST(best_fit),
		CACHE_TEST(equals_go_by_segment_and_offset),
		CACHE_TEST(merging),
		CACHE_TEST(streams_are_apart),
		CACHE_TEST(oversize_rule),
		CACHE_TEST(oversize_knob),
		CACHE_TEST(size_of_a_large_segment),
		CACHE_TEST(small_split_limit),
		CACHE_TEST(growing),
		CACHE_TEST(lowest_fit),
		CACHE_TEST(growing_is_stopped),
		CACHE_TEST(growing_has_its_own_reasons),
		CACHE_TEST(shrinking),
		CACHE_TEST(shrinking_to_the_step),
		CACHE_TEST(no_growth),
		CACHE_TEST(direct),
		CACHE_TEST(direct_with_streams),
		CACHE_TEST(released_on_the_way),
		CACHE_TEST(rounding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
