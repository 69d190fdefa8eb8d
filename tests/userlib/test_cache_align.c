// SPDX-License-Identifier: GPL-2.0
/* Requests with an alignment. */
#include "cache_mock.h"

/* The pool of the requests. */
static uint64_t pool_id;

static int try_at(struct flexmem_cache *cache, uint64_t bytes, uint64_t stream,
		  uint64_t alignment, struct flexmem_cache_allocation *made)
{
	const struct flexmem_cache_request request = {
		.bytes = bytes,
		.stream = stream,
		.alignment = alignment,
		.pool = pool_id,
	};

	return flexmem_cache_alloc_request(cache, &request, sizeof(request),
					   made, sizeof(*made));
}

/* Returns where the allocation is in the space of the mock. */
static uint64_t take_at(struct flexmem_cache *cache, uint64_t bytes,
			uint64_t stream, uint64_t alignment, void **token)
{
	struct flexmem_cache_allocation made;

	assert_int_equal(try_at(cache, bytes, stream, alignment, &made), 0);
	assert_int_equal(made.address.offset % alignment, 0);
	*token = made.token;
	return made.address.offset;
}

/* The bytes in front of the allocation stay free. */
static void in_the_middle(const char *settings)
{
	struct flexmem_cache *cache = mock_cache(settings);
	void *first = take(cache, 2 * MIB + MIB / 2, 0);
	uint64_t start = place(cache, first);
	void *aligned;
	void *token;

	assert_int_equal(take_at(cache, 4 * MIB, 0, 4 * MIB, &aligned),
			 start + 4 * MIB);
	/* Exactly the gap. */
	token = take(cache, MIB + MIB / 2, 0);
	assert_int_equal(place(cache, token), start + 2 * MIB + MIB / 2);
	give(cache, token);
	/* It is large enough, but not from the next multiple on. */
	assert_int_equal(take_at(cache, MIB + MIB / 2, 0, MIB, &token),
			 start + 8 * MIB);
	give(cache, token);
	give(cache, aligned);
	give(cache, first);
	/* All is one free block again. */
	assert_int_equal(figures(cache).inactive_split[0].current, 0);
	flexmem_cache_destroy(cache);
}

static void of_fixed_segments(void **state)
{
	(void)state;
	in_the_middle("");
}

static void of_growing_segments(void **state)
{
	(void)state;
	in_the_middle("expandable_segments:True");
}

/* A growing segment grows by what lacks behind the next multiple. */
static void at_the_end(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	void *first = take(cache, 3 * MIB, 0);
	void *aligned;

	(void)state;
	assert_int_equal(figures(cache).reserved_bytes[0].current, 4 * MIB);
	assert_int_equal(take_at(cache, 2 * MIB, 0, 8 * MIB, &aligned),
			 place(cache, first) + 8 * MIB);
	assert_int_equal(mock.grows, 1);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 10 * MIB);
	give(cache, first);
	give(cache, aligned);
	flexmem_cache_destroy(cache);
}

/* The provider aligns a new segment. */
static void at_the_start(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	void *token;

	(void)state;
	give(cache, take(cache, 100, 0));
	assert_int_equal(take_at(cache, 30 * MIB, 0, 32 * MIB, &token),
			 32 * MIB);
	assert_int_equal(mock.last_alignment, 32 * MIB);
	/* A device would round it up itself. */
	assert_int_equal(figures(cache).reserved_bytes[0].current,
			 2 * MIB + 32 * MIB);
	give(cache, token);
	/* A smaller alignment than the cache's own changes nothing. */
	take_at(cache, 40 * MIB, 0, 1, &token);
	assert_int_equal(mock.last_alignment, 128);
	flexmem_cache_destroy(cache);
}

/*
 * With an alignment that does not divide the step, a device would round each step up.
 * So the new segment is fixed.
 */
static void of_a_new_segment(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	uint64_t released;
	void *other;
	void *token;

	(void)state;
	take_at(cache, 512, 0, 2 * MIB, &token);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 2 * MIB);
	take(cache, 3 * MIB, 0);
	assert_int_equal(mock.grows, 1);
	flexmem_cache_destroy(cache);

	cache = mock_cache("expandable_segments:True");
	take_at(cache, 512, 0, 64 * MIB, &token);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 64 * MIB);
	other = take(cache, 70 * MIB, 0);
	assert_int_equal(mock.grows, 1);
	give(cache, other);
	give(cache, token);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, (64 + 70) * MIB);
	flexmem_cache_destroy(cache);
}

/*
 * Two streams: the request lies in the middle of what the other stream has
 * freed, and leaves both ends to that stream's work.
 */
static void in_work_of_others(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_waits("expandable_segments:True,reuse:done");
	void *first = take(cache, 2 * MIB, 1);
	void *other = take(cache, 14 * MIB, 2);
	uint64_t start = place(cache, first);
	void *aligned;
	void *token;

	(void)state;
	give(cache, other);
	/* Its own work runs in order. */
	assert_int_equal(take_at(cache, 4 * MIB, 2, 4 * MIB, &aligned),
			 start + 4 * MIB);
	/* The rest still belongs to stream 2: the other one must not get it. */
	token = take(cache, 2 * MIB, 1);
	assert_true(place(cache, token) >= start + 16 * MIB);
	give(cache, token);
	token = take(cache, 2 * MIB, 2);
	assert_int_equal(place(cache, token), start + 2 * MIB);
	give(cache, token);
	token = take(cache, 8 * MIB, 2);
	assert_int_equal(place(cache, token), start + 8 * MIB);
	give(cache, token);
	give(cache, aligned);
	give(cache, first);
	flexmem_cache_destroy(cache);
}

/* A piece that is not split serves only if its start suits the request. */
static void without_a_split(void **state)
{
	struct flexmem_cache *cache = mock_cache("max_split_size_mb:20");
	void *before = take(cache, 30 * MIB, 0);
	void *token = take(cache, 30 * MIB, 0);
	uint64_t start = place(cache, token);
	void *aligned;

	(void)state;
	assert_int_equal(start % (4 * MIB), 2 * MIB);
	give(cache, token);
	assert_int_not_equal(take_at(cache, 26 * MIB, 0, 4 * MIB, &aligned),
			     start + 2 * MIB);
	give(cache, aligned);
	assert_int_equal(take_at(cache, 29 * MIB, 0, 2 * MIB, &token), start);
	give(cache, token);
	give(cache, before);
	flexmem_cache_destroy(cache);
}

/*
 * The segment of a small request with a large alignment is above max_split_size_mb,
 * and serves the next request of the kind, but no smaller one.
 */
static void of_an_oversize_segment(void **state)
{
	static const struct { uint64_t bytes, alignment; } kinds[] = {
		{ 4 * MIB, 64 * MIB }, { 30 * MIB, 64 * MIB },
		{ 26 * MIB, 4 * MIB },
	};
	struct flexmem_cache *cache;
	uint64_t reserved;
	void *token;
	size_t i;
	int turn;

	(void)state;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		cache = mock_cache("max_split_size_mb:20");
		take_at(cache, kinds[i].bytes, 0, kinds[i].alignment, &token);
		reserved = figures(cache).reserved_bytes[0].current;
		for (turn = 0; turn < 3; turn++) {
			give(cache, token);
			take_at(cache, kinds[i].bytes, 0, kinds[i].alignment,
				&token);
			assert_int_equal(figures(cache).reserved_bytes[0].current,
					 reserved);
		}
		give(cache, token);
		take(cache, 4 * MIB, 0);
		assert_int_equal(figures(cache).reserved_bytes[0].current,
				 reserved + 4 * MIB);
		flexmem_cache_destroy(cache);
	}
}

static void in_a_pool_without_splits(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	void *before = take(cache, 30 * MIB, 0);
	uint64_t start;
	void *token;

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &pool_id), 0);
	assert_int_equal(flexmem_cache_pool_set_flags(cache, pool_id,
						      FLEXMEM_CACHE_POOL_NO_SPLIT),
			 0);
	start = take_at(cache, 30 * MIB, 0, 2 * MIB, &token);
	assert_int_equal(start % (4 * MIB), 2 * MIB);
	give(cache, token);
	assert_int_not_equal(take_at(cache, 26 * MIB, 0, 4 * MIB, &token),
			     start + 2 * MIB);
	give(cache, token);
	pool_id = 0;
	give(cache, before);
	flexmem_cache_destroy(cache);
}

static void refused(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_allocation made;
	char text[1024];

	(void)state;
	assert_int_equal(try_at(cache, 100, 0, 3, &made), -EINVAL);
	assert_int_equal(try_at(cache, 100, 0, UINT64_MAX, &made), -EINVAL);
	/* Enough is free, but not from a multiple on. */
	take(cache, 512 * MIB, 0);
	assert_int_equal(try_at(cache, 400 * MIB, 0, 512 * MIB, &made), 0);
	give(cache, made.token);
	mock.fail_allocs = 100;
	/* It keeps the segment of 400 MiB, of which 398 are free. */
	take(cache, 2 * MIB, 0);
	assert_int_equal(try_at(cache, 300 * MIB, 0, 1024 * MIB, &made),
			 -ENOMEM);
	assert_int_equal(made.failure.obstacle,
			 FLEXMEM_CACHE_OBSTACLE_ALIGNMENT);
	flexmem_cache_error_text(-ENOMEM, &made.failure, sizeof(made.failure),
				 text, sizeof(text));
	assert_non_null(strstr(text, ", which has too few bytes from the next multiple of the alignment on"));
	/* The remedy: a smaller alignment. */
	assert_int_equal(try_at(cache, 300 * MIB, 0, 2 * MIB, &made), 0);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CACHE_TEST(of_fixed_segments),
		CACHE_TEST(of_growing_segments),
		CACHE_TEST(at_the_end),
		CACHE_TEST(at_the_start),
		CACHE_TEST(of_a_new_segment),
		CACHE_TEST(in_work_of_others),
		CACHE_TEST(without_a_split),
		CACHE_TEST(of_an_oversize_segment),
		CACHE_TEST(in_a_pool_without_splits),
		CACHE_TEST(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
