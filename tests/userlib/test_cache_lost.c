// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that was lost in a reset of the device serves no request, and is
 * returned to the provider.
 */
#include "cache_mock.h"

#include <pthread.h>

static uint64_t live(struct flexmem_cache *cache)
{
	uint64_t bytes = UINT64_MAX;

	assert_int_equal(flexmem_cache_drop_lost(cache, &bytes), 0);
	return bytes;
}

/* Lost segments of all sizes, and a lost growing segment, serve no request. */
static void is_not_used(const char *configuration, uint64_t segments)
{
	struct flexmem_cache *cache = mock_cache(configuration);
	void *small = take(cache, 1000, 0);
	void *large = take(cache, 8 * MIB, 0);
	void *token;

	give(cache, take(cache, 2000, 0));
	give(cache, take(cache, 4 * MIB, 0));
	give(cache, take(cache, 30 * MIB, 7));
	mock_lose();
	assert_int_equal(live(cache), 1024 + 8 * MIB);
	/*
	 * Lost segments without an allocation are freed. Lost segments with an
	 * allocation stay.
	 */
	assert_int_equal(mock.frees, 1);
	assert_int_equal(figures(cache).segment[0].current, segments);
	mock.allocs = 0;
	mock.grows = 0;
	token = take(cache, 2000, 0);
	assert_int_equal(mock.allocs, 1);
	assert_int_equal(mock.grows, 0);
	/* New allocations work as usual. */
	assert_int_equal(live(cache), 1024 + 8 * MIB);
	give(cache, token);
	take(cache, 2000, 0);
	assert_int_equal(mock.allocs, 1);
	/*
	 * A live allocation can be looked up, and freed once. The last free in
	 * a segment returns the segment.
	 */
	assert_int_equal(lookup(cache, large).size, 8 * MIB);
	give(cache, large);
	give(cache, small);
	assert_int_equal(flexmem_cache_free(cache, small), -EINVAL);
	assert_int_equal(live(cache), 0);
	assert_int_equal(mock.frees, 1 + segments);
	assert_int_equal(figures(cache).segment[0].current, 1);
	assert_int_equal(mock.warnings, 1 + segments);
	flexmem_cache_destroy(cache);
}

static void fixed(void **state)
{
	(void)state;
	is_not_used("", 2);
}

static void growing(void **state)
{
	(void)state;
	is_not_used("expandable_segments:True", 1);
}

/* Free neighbours in a lost segment are merged, but serve no request. */
static void freed_in_pieces(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	void *tokens[8];
	int i;

	(void)state;
	for (i = 0; i < 8; i++)
		tokens[i] = take(cache, 1000, 0);
	mock_lose();
	assert_int_equal(live(cache), 8 * 1024);
	for (i = 0; i < 8; i += 2)
		give(cache, tokens[i]);
	take(cache, 1000, 0);
	assert_int_equal(mock.allocs, 2);
	for (i = 1; i < 8; i += 2)
		give(cache, tokens[i]);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(figures(cache).segment[0].current, 1);
	flexmem_cache_destroy(cache);
}

/* After a loss a private pool makes new segments. */
static void private_pools(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	struct flexmem_cache_request request = { .bytes = MIB };
	struct flexmem_cache_allocation allocation;
	void *before;

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request),
						     &allocation,
						     sizeof(allocation)), 0);
	before = allocation.token;
	mock_lose();
	assert_int_equal(live(cache), MIB);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request),
						     &allocation,
						     sizeof(allocation)), 0);
	assert_int_equal(mock.allocs, 2);
	give(cache, before);
	assert_int_equal(mock.frees, 1);
	give(cache, allocation.token);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(flexmem_cache_pool_release(cache, request.pool), 0);
	assert_int_equal(mock.frees, 2);
	flexmem_cache_destroy(cache);
}

/* A lost block that waits for an event is freed after the event. */
static void waiting(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	void *token = take(cache, 30 * MIB, 0);

	(void)state;
	assert_int_equal(flexmem_cache_record_stream(cache, token, 5), 0);
	give(cache, token);
	mock_lose();
	assert_int_equal(live(cache), 30 * MIB);
	mock.happened[0] = true;
	take(cache, 1, 0);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(live(cache), 0);
	flexmem_cache_destroy(cache);
}

/* The cache notices the loss when it tries to grow a segment. */
static void noticed(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	void *kept = take(cache, MIB, 0);
	uint64_t released;
	void *end;

	(void)state;
	mock_lose();
	end = take(cache, MIB, 0);
	take(cache, 9 * MIB, 0);
	assert_int_equal(mock.allocs, 2);
	assert_int_equal(mock.warnings, 1);
	give(cache, end);
	take(cache, MIB, 0);
	assert_int_equal(mock.allocs, 2);
	assert_int_equal(mock.grows, 1);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 0);
	give(cache, kept);
	assert_int_equal(mock.frees, 1);
	flexmem_cache_destroy(cache);
}

/*
 * The cache notices the loss when it tries to shrink a segment. The cache tries
 * only once.
 */
static void noticed_when_it_shrinks(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	void *kept = take(cache, MIB, 0);
	uint64_t released;

	(void)state;
	give(cache, take(cache, 30 * MIB, 0));
	mock_lose();
	assert_int_equal(flexmem_cache_empty(cache, &released), -EIO);
	assert_int_equal(released, 0);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(mock.shrinks, 1);
	take(cache, MIB, 0);
	assert_int_equal(mock.allocs, 2);
	give(cache, kept);
	assert_int_equal(mock.frees, 1);
	flexmem_cache_destroy(cache);
}

/*
 * If the provider cannot tell whether a segment is lost, the segment counts as
 * not lost. If the provider refuses to free a lost segment, the cache tries
 * again later.
 */
static void in_doubt(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	uint64_t bytes = 42;

	(void)state;
	give(cache, take(cache, 30 * MIB, 0));
	mock_lose();
	mock.cannot_tell = true;
	assert_int_equal(live(cache), 0);
	assert_int_equal(mock.frees, 0);
	mock.cannot_tell = false;
	mock.fail_frees = 1;
	mock.error = -EINTR;
	assert_int_equal(flexmem_cache_drop_lost(cache, &bytes), -EINTR);
	assert_int_equal(bytes, 42);
	take(cache, 30 * MIB, 0);
	assert_int_equal(mock.allocs, 2);
	assert_int_equal(flexmem_cache_drop_lost(cache, NULL), 0);
	assert_int_equal(mock.frees, 2);
	assert_int_equal(figures(cache).segment[0].current, 1);
	assert_int_equal(flexmem_cache_drop_lost(NULL, NULL), -EINVAL);
	flexmem_cache_destroy(cache);
}

/* A provider of an older version has no function that reports a loss. */
static void unknown(void **state)
{
	struct flexmem_cache_options options = mock_options("");
	struct flexmem_cache_provider provider;
	struct flexmem_cache *cache = NULL;

	(void)state;
	memcpy(&provider, options.provider, sizeof(provider));
	options.provider = &provider;
	options.provider_size = offsetof(struct flexmem_cache_provider, lost);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	assert_int_equal(flexmem_cache_drop_lost(cache, NULL), -EOPNOTSUPP);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(fixed),
		CACHE_TEST(growing),
		CACHE_TEST(freed_in_pieces),
		CACHE_TEST(private_pools),
		CACHE_TEST(waiting),
		CACHE_TEST(noticed),
		CACHE_TEST(noticed_when_it_shrinks),
		CACHE_TEST(in_doubt),
		CACHE_TEST(unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
