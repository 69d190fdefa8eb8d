// SPDX-License-Identifier: GPL-2.0
/* Tokens of allocations, and requests when no token is free. */
#include "cache_mock.h"

static void *at(void *token, uint64_t offset)
{
	return (void *)((uintptr_t)token + offset);
}

static void tokens(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_allocation allocation;
	void *a = take(cache, 1000, 3);
	void *b = take(cache, 5 * MIB, 3);
	uint64_t offset;

	(void)state;
	assert_true((intptr_t)a > 0 && (intptr_t)b > 0);
	assert_int_equal((uintptr_t)a % 4096, 0);
	assert_int_equal(flexmem_cache_lookup(cache, at(b, 12345), &allocation,
					      sizeof(allocation), &offset), 0);
	assert_ptr_equal(allocation.token, b);
	assert_int_equal(offset, 12345);
	assert_int_equal(allocation.size, 5 * MIB);
	assert_int_equal(allocation.stream, 3);
	assert_int_equal(allocation.pool, 0);
	assert_string_equal(allocation.tag, "");
	/* The mock's handles are the addresses of its segments. */
	assert_int_equal(allocation.handle + allocation.offset,
			 allocation.address.offset);
	assert_int_equal(lookup(cache, a).handle, 0);
	assert_int_equal(lookup(cache, take(cache, 1, 3)).offset, 1024);
	assert_int_equal(flexmem_cache_lookup(cache, at(a, 1023), &allocation,
					      sizeof(allocation), NULL), 0);
	/* The address behind an allocation belongs to no allocation. */
	assert_int_equal(flexmem_cache_lookup(cache, at(a, 1024), &allocation,
					      sizeof(allocation), NULL),
			 -EINVAL);
	assert_int_equal(flexmem_cache_lookup(cache, NULL, &allocation,
					      sizeof(allocation), NULL),
			 -EINVAL);
	flexmem_cache_destroy(cache);
}

/* Allocations of 4 GiB and more have wide tokens. */
static void wide_tokens(void **state)
{
	struct flexmem_cache_allocation allocation;
	struct flexmem_cache *cache;
	uint64_t offset;
	void *below;
	void *above;

	(void)state;
	mock.capacity = 64 * GIB;
	cache = mock_cache("expandable_segments:True");
	above = take(cache, 4 * GIB, 0);
	below = take(cache, 4 * GIB - 128, 0);
	assert_true((intptr_t)above > 0);
	assert_int_equal(flexmem_cache_lookup(cache, at(above, 4 * GIB - 1),
					      &allocation, sizeof(allocation),
					      &offset), 0);
	assert_ptr_equal(allocation.token, above);
	assert_int_equal(offset, 4 * GIB - 1);
	assert_int_equal(flexmem_cache_lookup(cache, at(below, 4 * GIB - 129),
					      &allocation, sizeof(allocation),
					      &offset), 0);
	assert_ptr_equal(allocation.token, below);
	assert_int_equal(flexmem_cache_lookup(cache, at(below, 4 * GIB - 128),
					      &allocation, sizeof(allocation),
					      &offset), -EINVAL);
	give(cache, above);
	/* A smaller allocation in the same block has a narrow token. */
	above = take(cache, 3 * GIB, 0);
	assert_int_equal(flexmem_cache_lookup(cache, at(above, 3 * GIB - 1),
					      &allocation, sizeof(allocation),
					      &offset), 0);
	assert_int_equal((uintptr_t)above >> 62, 0);
	flexmem_cache_destroy(cache);
}

static int address_of(struct flexmem_cache *cache, const void *token,
		      uint64_t *offset)
{
	struct flexmem_virtual_address found = { 7, 7 };
	int err = flexmem_cache_address(cache, token, &found);

	/* A failed call writes nothing. */
	assert_int_equal(found.region_id == 7, err != 0);
	*offset = found.offset;
	return err;
}

/* Looks up the address of any byte, by narrow and by wide tokens. */
static void addresses(void **state)
{
	struct flexmem_virtual_address found;
	struct flexmem_cache_allocation a;
	struct flexmem_cache *cache;
	uint64_t offset;
	void *tokens_of[3];
	size_t i;

	(void)state;
	mock.capacity = 64 * GIB;
	cache = mock_cache("");
	tokens_of[0] = take(cache, 1000, 3);
	tokens_of[1] = take(cache, 5 * MIB, 3);
	tokens_of[2] = take(cache, 5 * GIB, 3);
	for (i = 0; i < 3; i++) {
		a = lookup(cache, tokens_of[i]);
		assert_int_equal(flexmem_cache_address(cache, tokens_of[i],
						       &found), 0);
		assert_memory_equal(&found, &a.address, sizeof(found));
		assert_int_equal(address_of(cache, at(a.token, a.size - 1),
					    &offset), 0);
		assert_int_equal(offset, a.address.offset + a.size - 1);
		assert_int_equal(address_of(cache, at(a.token, a.size),
					    &offset), -EINVAL);
		assert_int_equal(flexmem_cache_address(cache, a.token, NULL),
				 -EINVAL);
		give(cache, a.token);
		assert_int_equal(address_of(cache, a.token, &offset), -EINVAL);
	}
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(address_of(cache, tokens_of[0], &offset), -EINVAL);
	assert_int_equal(address_of(cache, NULL, &offset), -EINVAL);
	assert_int_equal(address_of(cache, (void *)UINTPTR_MAX, &offset),
			 -EINVAL);
	assert_int_equal(address_of(NULL, tokens_of[0], &offset), -EINVAL);
	flexmem_cache_destroy(cache);
	/* The next token of a block is invalid until the block gets it. */
	cache = mock_cache_events("");
	tokens_of[0] = take(cache, 1000, 3);
	assert_int_equal(flexmem_cache_record_stream(cache, tokens_of[0], 4),
			 0);
	give(cache, tokens_of[0]);
	assert_int_equal(address_of(cache,
				    at(tokens_of[0], UINT64_C(1) << 54),
				    &offset), -EINVAL);
	flexmem_cache_destroy(cache);
}

static void foreign_frees(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache *other = mock_cache("");
	struct flexmem_cache_statistics before;
	void *a = take(cache, 1000, 0);
	void *const bad[] = {
		at(a, 1), at(a, 128), at(a, 1024), &before, (void *)1,
		(void *)UINTPTR_MAX, (void *)(UINTPTR_MAX >> 1),
		(void *)(UINTPTR_MAX >> 2), at(a, UINT64_C(1) << 32),
		at(a, UINT64_C(1) << 54), at(a, UINT64_C(1) << 62),
		at(a, UINT64_C(1) << 63),
	};
	struct flexmem_cache_statistics after;
	size_t i;

	(void)state;
	before = figures(cache);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(flexmem_cache_free(cache, bad[i]), -EINVAL);
		assert_int_equal(flexmem_cache_record_stream(cache, bad[i], 1),
				 -EINVAL);
	}
	assert_int_equal(flexmem_cache_free(other, a), -EINVAL);
	after = figures(cache);
	assert_memory_equal(&before, &after, sizeof(before));
	give(cache, a);
	assert_int_equal(flexmem_cache_free(cache, a), -EINVAL);
	assert_int_equal(flexmem_cache_record_stream(cache, a, 1), -EINVAL);
	flexmem_cache_destroy(cache);
	flexmem_cache_destroy(other);
}

/* A stale token stays invalid, however often its block is used again. */
static void stale_tokens(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_allocation allocation;
	void *stale = take(cache, 1000, 0);
	int last[4096] = { 0 };
	uintptr_t index;
	void *token;
	int i;

	(void)state;
	give(cache, stale);
	/* More than 256 generations, of 1024 allocations each. */
	for (i = 1024; i < 270000; i++) {
		token = take(cache, 1000, 0);
		index = (uintptr_t)token >> 32 & 4095;
		assert_true((uintptr_t)token >> 54 && i - last[index] >= 1024);
		last[index] = i;
		if (i < 256 * 1024) {
			assert_ptr_not_equal(token, stale);
			assert_int_equal(flexmem_cache_free(cache, stale),
					 -EINVAL);
		}
		give(cache, token);
	}
	assert_int_equal(flexmem_cache_lookup(cache, token, &allocation,
					      sizeof(allocation), NULL),
			 -EINVAL);
	flexmem_cache_destroy(cache);
}

/* More allocations than the token table has entries at first. */
static void many_names(void **state)
{
	static void *tokens_of[20000];
	struct flexmem_cache *cache = mock_cache("");
	size_t i;

	(void)state;
	for (i = 0; i < 20000; i++)
		tokens_of[i] = take(cache, i % 777 + 1, 0);
	for (i = 0; i < 20000; i++)
		assert_int_equal(lookup(cache, tokens_of[i]).requested,
				 i % 777 + 1);
	for (i = 0; i < 20000; i++)
		give(cache, tokens_of[(i * 7919) % 20000]);
	assert_int_equal(figures(cache).inactive_split[0].current, 0);
	assert_int_equal(figures(cache).active[0].current, 0);
	flexmem_cache_destroy(cache);
}

/* If no token is free, the request fails, and the failure says so. */
static void all_names(void **state)
{
	struct flexmem_cache_request request = { .bytes = 4 * GIB };
	static void *tokens_of[FLEXMEM_CACHE_HUGE_ALLOCATIONS];
	struct flexmem_cache_allocation a;
	struct flexmem_cache *cache;
	char text[512];
	size_t i;

	(void)state;
	mock.capacity = 65536 * GIB;
	cache = mock_cache("expandable_segments:True");
	for (i = 0; i < FLEXMEM_CACHE_HUGE_ALLOCATIONS; i++)
		tokens_of[i] = take(cache, 4 * GIB, i % 3);
	for (i = 0; i < 2; i++)
		assert_int_equal(flexmem_cache_alloc_request(cache, &request,
							     sizeof(request),
							     &a, sizeof(a)),
				 -ENOMEM);
	assert_null(a.token);
	assert_int_equal(a.failure.limit, FLEXMEM_CACHE_LIMIT_ALLOCATIONS);
	assert_int_equal(a.failure.error, 0);
	assert_int_equal(a.failure.asked, 4 * GIB);
	assert_int_equal(a.failure.allocated_bytes, 4096 * GIB);
	assert_int_equal(a.failure.reserved_bytes,
			 figures(cache).reserved_bytes[0].current);
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &a.failure,
						  sizeof(a.failure), text,
						  sizeof(text)), 0);
	assert_string_equal(text,
		"too many live allocations: one cache can tell 4194304 apart, less what other streams ever had at once, and 1024 of 4 GiB and more; tried to allocate 4.0 GiB, have 4.0 TiB");
	assert_int_equal(figures(cache).num_limit_errors, 2);
	expect_counters(cache, 0, 0, 0);
	assert_int_equal(figures(cache).allocation[0].current,
			 FLEXMEM_CACHE_HUGE_ALLOCATIONS);
	/*
	 * All wide tokens are in use. An allocation below 4 GiB needs none, and
	 * a wide token that was freed can be used again.
	 */
	give(cache, take(cache, 3 * GIB, 0));
	give(cache, tokens_of[500]);
	tokens_of[500] = take(cache, 4 * GIB, 1);
	assert_int_equal(flexmem_cache_reset_accumulated(cache), 0);
	assert_int_equal(figures(cache).num_limit_errors, 0);
	for (i = 0; i < FLEXMEM_CACHE_HUGE_ALLOCATIONS; i++)
		give(cache, tokens_of[i]);
	flexmem_cache_destroy(cache);
}

/* A cache that has no wide token left. */
static struct flexmem_cache *full_cache(const char *configuration,
					uint64_t bytes)
{
	struct flexmem_cache *cache;
	int i;

	mock.capacity = 65536 * GIB;
	cache = mock_cache(configuration);
	for (i = 0; i < FLEXMEM_CACHE_HUGE_ALLOCATIONS; i++)
		take(cache, bytes, 0);
	return cache;
}

static void refuse_name(struct flexmem_cache *cache, uint64_t bytes,
			uint64_t pool)
{
	struct flexmem_cache_request request = { .bytes = bytes, .pool = pool };
	struct flexmem_cache_statistics before = figures(cache);
	struct flexmem_cache_allocation a;

	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	assert_int_equal(a.failure.limit, FLEXMEM_CACHE_LIMIT_ALLOCATIONS);
	assert_int_equal(a.failure.asked, bytes);
	assert_int_equal(figures(cache).num_limit_errors,
			 before.num_limit_errors + 1);
	assert_int_equal(figures(cache).num_hits, before.num_hits);
	assert_int_equal(a.failure.reserved_bytes,
			 figures(cache).reserved_bytes[0].current);
}

/*
 * The size of the block, not of the request, decides which kind of token the
 * allocation gets. A refused request leaves nothing allocated.
 */
static void refused_hits(void **state)
{
	/* The rest of the block is too small to be split off. */
	struct flexmem_cache *cache = full_cache("", 4 * GIB - 64 * KIB);

	(void)state;
	refuse_name(cache, 4 * GIB - 64 * KIB, 0);
	/*
	 * The second request uses the free segment that the first one left in
	 * the cache.
	 */
	refuse_name(cache, 4 * GIB - 64 * KIB, 0);
	assert_int_equal(figures(cache).segment[0].current,
			 FLEXMEM_CACHE_HUGE_ALLOCATIONS + 1);
	flexmem_cache_destroy(cache);
}

/* With backend:direct a refused request keeps no memory. */
static void refused_directly(void **state)
{
	struct flexmem_cache *cache = full_cache("backend:direct", 4 * GIB);

	(void)state;
	refuse_name(cache, 4 * GIB, 0);
	assert_int_equal(figures(cache).segment[0].current,
			 FLEXMEM_CACHE_HUGE_ALLOCATIONS);
	flexmem_cache_destroy(cache);
}

static struct flexmem_cache *pool_cache;
static uint64_t leaving;

static void release_the_pool(void)
{
	assert_int_equal(flexmem_cache_pool_release(pool_cache, leaving), 0);
}

/* The pool is released while the provider makes a segment for the pool. */
static void refused_in_a_leaving_pool(void **state)
{
	(void)state;
	pool_cache = full_cache("release_lock_on_device_malloc:True", 4 * GIB);
	assert_int_equal(flexmem_cache_pool_create(pool_cache, &leaving), 0);
	mock.on_alloc = release_the_pool;
	refuse_name(pool_cache, 4 * GIB, leaving);
	assert_int_equal(figures(pool_cache).segment[0].current,
			 FLEXMEM_CACHE_HUGE_ALLOCATIONS);
	flexmem_cache_destroy(pool_cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(tokens),
		CACHE_TEST(wide_tokens),
		CACHE_TEST(addresses),
		CACHE_TEST(foreign_frees),
		CACHE_TEST(stale_tokens),
		CACHE_TEST(many_names),
		CACHE_TEST(all_names),
		CACHE_TEST(refused_hits),
		CACHE_TEST(refused_directly),
		CACHE_TEST(refused_in_a_leaving_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
