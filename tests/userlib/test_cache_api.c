// SPDX-License-Identifier: GPL-2.0
/* The cache: tokens, private pools, tags, options, providers. */
#include "cache_mock.h"

#include <unistd.h>

#include <unistd.h>

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
	/* The provider's names are the addresses of its segments. */
	assert_int_equal(allocation.handle + allocation.offset,
			 allocation.address.offset);
	assert_int_equal(lookup(cache, a).handle, 0);
	assert_int_equal(lookup(cache, take(cache, 1, 3)).offset, 1024);
	assert_int_equal(flexmem_cache_lookup(cache, at(a, 1023), &allocation,
					      sizeof(allocation), NULL), 0);
	/* One past the end is that of nobody. */
	assert_int_equal(flexmem_cache_lookup(cache, at(a, 1024), &allocation,
					      sizeof(allocation), NULL),
			 -EINVAL);
	assert_int_equal(flexmem_cache_lookup(cache, NULL, &allocation,
					      sizeof(allocation), NULL),
			 -EINVAL);
	flexmem_cache_destroy(cache);
}

/* Allocations of 4 GiB and more have names of another form. */
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
	/* A small piece of what is free there has a name of the usual form. */
	above = take(cache, 3 * GIB, 0);
	assert_int_equal(flexmem_cache_lookup(cache, at(above, 3 * GIB - 1),
					      &allocation, sizeof(allocation),
					      &offset), 0);
	assert_int_equal((uintptr_t)above >> 62, 0);
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

/* A stale token is none, however often its place is used again. */
static void stale_tokens(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_allocation allocation;
	void *stale = take(cache, 1000, 0);
	void *token;
	int i;

	(void)state;
	give(cache, stale);
	for (i = 0; i < 100000; i++) {
		token = take(cache, 1000, 0);
		assert_ptr_not_equal(token, stale);
		assert_int_equal(flexmem_cache_free(cache, stale), -EINVAL);
		assert_int_equal(flexmem_cache_lookup(cache, stale, &allocation,
						      sizeof(allocation),
						      NULL), -EINVAL);
		give(cache, token);
	}
	flexmem_cache_destroy(cache);
}

/* More allocations than a table of names begins with. */
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

/* When all names are taken that is not memory which is missing, and is told so. */
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
	/* Smaller ones have names of their own; one that is free serves again. */
	give(cache, take(cache, 3 * GIB, 0));
	give(cache, tokens_of[500]);
	tokens_of[500] = take(cache, 4 * GIB, 1);
	assert_int_equal(flexmem_cache_reset_accumulated(cache), 0);
	assert_int_equal(figures(cache).num_limit_errors, 0);
	for (i = 0; i < FLEXMEM_CACHE_HUGE_ALLOCATIONS; i++)
		give(cache, tokens_of[i]);
	flexmem_cache_destroy(cache);
}

/* A cache whose wide names are all taken. */
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

/* The limit goes by the size of the block; a refusal is not served. */
static void refused_hits(void **state)
{
	/* A remainder so small is not split off. */
	struct flexmem_cache *cache = full_cache("", 4 * GIB - 64 * KIB);

	(void)state;
	refuse_name(cache, 4 * GIB - 64 * KIB, 0);
	/* What the first one brought is free for this one, and stays. */
	refuse_name(cache, 4 * GIB - 64 * KIB, 0);
	assert_int_equal(figures(cache).segment[0].current,
			 FLEXMEM_CACHE_HUGE_ALLOCATIONS + 1);
	flexmem_cache_destroy(cache);
}

/* Where nothing free is kept, nothing is left of a refusal. */
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

/* Nor in a pool that was released while its segment was made. */
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

static struct flexmem_cache_allocation
request(struct flexmem_cache *cache, uint64_t bytes, uint64_t pool,
	const char *tag)
{
	struct flexmem_cache_request wanted = {
		.bytes = bytes,
		.pool = pool,
		.tag = tag,
	};
	struct flexmem_cache_allocation allocation;

	assert_int_equal(flexmem_cache_alloc_request(cache, &wanted,
						     sizeof(wanted),
						     &allocation,
						     sizeof(allocation)), 0);
	return allocation;
}

static void private_pools(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_allocation a;
	struct flexmem_cache_allocation b;
	uint64_t released;
	uint64_t first;
	uint64_t pool;

	(void)state;
	give(cache, take(cache, 1000, 0));
	assert_int_equal(flexmem_cache_pool_create(cache, &first), 0);
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	assert_int_not_equal(pool, first);
	a = request(cache, 1000, pool, NULL);
	b = request(cache, 1000, pool, NULL);
	assert_int_equal(a.pool, pool);
	assert_int_equal(mock.allocs, 2);
	/* Its segments stay where they are, and serve nobody else. */
	give(cache, a.token);
	give(cache, b.token);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 2 * MIB);
	assert_int_equal(figures(cache).segment[0].current, 1);
	take(cache, 1000, 0);
	assert_int_equal(mock.allocs, 3);
	b = request(cache, 1000, pool, NULL);
	assert_int_equal(mock.allocs, 3);
	assert_int_equal(b.address.offset, a.address.offset);
	/* Released with something in it: it goes with the last free. */
	a = request(cache, 5 * MIB, pool, NULL);
	give(cache, a.token);
	assert_int_equal(flexmem_cache_pool_release(cache, pool), 0);
	assert_int_equal(mock.frees, 2);
	assert_int_equal(flexmem_cache_pool_release(cache, pool), -ENOENT);
	assert_int_equal(lookup(cache, b.token).pool, pool);
	give(cache, b.token);
	assert_int_equal(mock.frees, 3);
	assert_int_equal(flexmem_cache_pool_release(cache, first), 0);
	assert_int_equal(flexmem_cache_pool_release(cache, 0), -ENOENT);
	flexmem_cache_destroy(cache);
}

static void unknown_pools(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_request wanted = { .bytes = 1, .pool = 1 };
	struct flexmem_cache_allocation allocation;
	uint64_t pool;

	(void)state;
	assert_int_equal(flexmem_cache_alloc_request(cache, &wanted,
						     sizeof(wanted),
						     &allocation,
						     sizeof(allocation)),
			 -ENOENT);
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	wanted.pool = pool;
	assert_int_equal(flexmem_cache_pool_release(cache, pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &wanted,
						     sizeof(wanted),
						     &allocation,
						     sizeof(allocation)),
			 -ENOENT);
	assert_int_equal(flexmem_cache_pool_create(cache, &wanted.pool), 0);
	assert_int_not_equal(wanted.pool, pool);
	flexmem_cache_destroy(cache);
}

static void tags(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_allocation a;
	struct flexmem_cache_tag *sums;
	char longest[FLEXMEM_CACHE_TAG + 1];
	struct flexmem_cache_request wanted = { .bytes = 1, .tag = longest };
	size_t count;

	(void)state;
	a = request(cache, 1000, 0, "weights");
	assert_string_equal(a.tag, "weights");
	request(cache, 3000, 0, "weights");
	request(cache, 10, 0, "kv");
	take(cache, 1, 0);
	give(cache, a.token);
	assert_int_equal(flexmem_cache_tags(cache, &sums, sizeof(*sums),
					    &count), 0);
	assert_int_equal(count, 3);
	assert_string_equal(sums[0].tag, "");
	assert_int_equal(sums[0].allocated_bytes, 128);
	assert_string_equal(sums[1].tag, "weights");
	assert_int_equal(sums[1].allocations, 1);
	assert_int_equal(sums[1].allocated_bytes, 3072);
	assert_int_equal(sums[1].requested_bytes, 3000);
	assert_int_equal(sums[1].peak_bytes, 4096);
	assert_string_equal(sums[2].tag, "kv");
	flexmem_cache_tags_free(sums);
	assert_int_equal(flexmem_cache_reset_peaks(cache), 0);
	assert_int_equal(flexmem_cache_tags(cache, &sums, sizeof(*sums),
					    &count), 0);
	assert_int_equal(sums[1].peak_bytes, 3072);
	flexmem_cache_tags_free(sums);

	memset(longest, 'x', sizeof(longest));
	longest[FLEXMEM_CACHE_TAG] = '\0';
	assert_int_equal(flexmem_cache_alloc_request(cache, &wanted,
						     sizeof(wanted), &a,
						     sizeof(a)), -EINVAL);
	longest[FLEXMEM_CACHE_TAG - 1] = '\0';
	assert_string_equal(request(cache, 1, 0, longest).tag, longest);
	flexmem_cache_destroy(cache);
}

static void profile(void **state)
{
	struct flexmem_cache_options options = mock_options("");
	struct flexmem_cache_profile sizes = {
		.granule = 512,
		.small_limit = 4096,
		.small_segment = 8192,
		.large_round = 1024,
	};
	struct flexmem_cache_profile bad;
	struct flexmem_cache *cache;

	(void)state;
	options.profile = &sizes;
	options.profile_size = sizeof(sizes);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	assert_int_equal(flexmem_cache_profile(cache, &bad, sizeof(bad)), 0);
	assert_int_equal(bad.granule, 512);
	assert_int_equal(bad.large_segment, 20 * MIB);
	assert_int_equal(bad.thread_limit, 4096);
	assert_int_equal(lookup(cache, take(cache, 1, 0)).size, 512);
	assert_int_equal(mock.last_alloc, 8192);
	assert_int_equal(mock.last_alignment, 512);
	take(cache, 4097, 0);
	assert_int_equal(mock.last_alloc, 20 * MIB);
	take(cache, 30 * MIB + 1, 0);
	assert_int_equal(mock.last_alloc, 30 * MIB + 1024);
	assert_int_equal(mock.last_flags, 0);
	flexmem_cache_destroy(cache);

	options.flags = FLEXMEM_CACHE_MAPPABLE;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	take(cache, 1, 0);
	assert_int_equal(mock.last_flags, FLEXMEM_CACHE_MAPPABLE);
	flexmem_cache_destroy(cache);
	options.flags = 0;

	options.profile = &bad;
	bad = (struct flexmem_cache_profile){ .granule = 64 };
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EINVAL);
	bad = (struct flexmem_cache_profile){ .granule = 384 };
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EINVAL);
	bad = (struct flexmem_cache_profile){ .small_limit = 3 * MIB };
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EINVAL);
	bad = (struct flexmem_cache_profile){ .large_limit = 21 * MIB };
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EINVAL);
	bad = (struct flexmem_cache_profile){ .large_round = 1000 };
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EINVAL);
	bad = (struct flexmem_cache_profile){ .growing_step = UINT64_MAX };
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EINVAL);
}

static void refused(struct flexmem_cache_options options, size_t size,
		    const char *why)
{
	struct flexmem_cache *cache = NULL;
	char problem[512] = "nothing";

	options.problem = problem;
	options.problem_length = sizeof(problem);
	assert_int_equal(flexmem_cache_create(&cache, &options, size),
			 -EINVAL);
	assert_null(cache);
	assert_string_equal(problem, why);
}

static void bad_options(void **state)
{
	struct flexmem_cache_events incomplete = mock_events;
	struct flexmem_cache_options good = mock_options("");
	struct flexmem_cache_provider provider = *good.provider;
	struct flexmem_cache_options options = good;
	struct flexmem_cache *cache = NULL;
	char problem[20] = "nothing";

	(void)state;
	/* Here nothing of the options is used. */
	options.problem = problem;
	options.problem_length = sizeof(problem);
	assert_int_equal(flexmem_cache_create(NULL, &options, sizeof(options)),
			 -EINVAL);
	assert_int_equal(flexmem_cache_create(&cache, NULL, sizeof(options)),
			 -EINVAL);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      offsetof(struct flexmem_cache_options,
						       device_index)),
			 -EINVAL);
	assert_string_equal(problem, "nothing");
	options = good;
	options.provider = NULL;
	refused(options, sizeof(options),
		"there is neither a device nor a provider");
	options = good;
	options.device = (struct flexmem_device *)&mock;
	refused(options, sizeof(options),
		"there is both a device and a provider");
	options = good;
	options.provider_size = offsetof(struct flexmem_cache_provider,
					 alloc_wait) - 1;
	refused(options, sizeof(options),
		"a struct has a size that it never had");
	options = good;
	provider.free = NULL;
	options.provider = &provider;
	refused(options, sizeof(options),
		"the provider lacks 'alloc' or 'free'");
	options = good;
	incomplete.query = NULL;
	options.events = &incomplete;
	options.events_size = sizeof(incomplete);
	refused(options, sizeof(options),
		"a callback of the events is missing");
	options = good;
	options.level = 3;
	refused(options, sizeof(options),
		"there is no such level of the log");
	options = good;
	options.reserved = 1;
	refused(options, sizeof(options),
		"a reserved field of the options is not 0");
	options = good;
	options.flags = 1u << 31;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EOPNOTSUPP);
	assert_null(cache);
	flexmem_cache_destroy(NULL);
}

/*
 * What grows inside of another struct takes it from the room behind it: nothing
 * that follows may move, or programs that were compiled before read it wrongly.
 */
_Static_assert(offsetof(struct flexmem_cache_failure, device) == 72 &&
	       offsetof(struct flexmem_cache_failure, obstacle) == 232 &&
	       offsetof(struct flexmem_cache_failure, largest_pool) == 248,
	       "struct flexmem_failure grows into FLEXMEM_CACHE_DEVICE_ROOM");
_Static_assert(sizeof(struct flexmem_failure) +
	       8 * FLEXMEM_CACHE_DEVICE_ROOM == 232 - 72,
	       "device_room is what struct flexmem_failure may still grow by");
_Static_assert(offsetof(struct flexmem_cache_allocation, failure) == 120 &&
	       offsetof(struct flexmem_cache_allocation, handle) == 440 &&
	       offsetof(struct flexmem_cache_allocation, offset) == 448 &&
	       sizeof(struct flexmem_cache_allocation) == 456,
	       "struct flexmem_cache_failure grows into FLEXMEM_CACHE_ROOM");
_Static_assert(sizeof(struct flexmem_cache_failure) +
	       8 * FLEXMEM_CACHE_ROOM == 440 - 120,
	       "failure_room is what struct flexmem_cache_failure may grow by");

/* Structs of callers that are older and newer than the library. */
static void struct_sizes(void **state)
{
	struct {
		struct flexmem_cache_request request;
		uint64_t more;
	} newer = { .request.bytes = 1000 };
	struct {
		struct flexmem_cache_allocation allocation;
		uint64_t more;
	} result = { .more = 7 };
	struct flexmem_cache_options options = mock_options("nonsense:1");
	struct flexmem_cache *cache;

	(void)state;
	/* What a caller of 0.3 does not know is not read. */
	options.flags = FLEXMEM_CACHE_STRICT;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      offsetof(struct flexmem_cache_options,
						       flags)), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &newer.request,
						     sizeof(newer),
						     &result.allocation,
						     sizeof(result)), 0);
	assert_int_equal(result.more, 0);
	/* One of 0.3 has no room for what came later. */
	memset(&result, 7, sizeof(result));
	assert_int_equal(flexmem_cache_alloc_request(cache, &newer.request,
						     sizeof(newer.request),
						     &result.allocation,
						     offsetof(struct flexmem_cache_allocation,
							      failure_room)),
			 0);
	assert_int_equal(result.allocation.requested, 1000);
	assert_int_equal(result.allocation.failure_room[0],
			 UINT64_C(0x0707070707070707));
	newer.more = 1;
	assert_int_equal(flexmem_cache_alloc_request(cache, &newer.request,
						     sizeof(newer),
						     &result.allocation,
						     sizeof(result)), -E2BIG);
	assert_int_equal(flexmem_cache_alloc_request(cache, &newer.request, 8,
						     &result.allocation,
						     sizeof(result)), -EINVAL);
	assert_int_equal(flexmem_cache_alloc_request(cache, &newer.request,
						     sizeof(newer.request),
						     &result.allocation, 8),
			 -EINVAL);
	assert_int_equal(flexmem_cache_statistics(cache, NULL, 0), -EINVAL);
	assert_int_equal(flexmem_cache_alloc(cache, 1, 0, NULL), -EINVAL);
	assert_int_equal(flexmem_cache_alloc(NULL, 1, 0, &(void *){ NULL }),
			 -EINVAL);
	assert_int_equal(flexmem_cache_free(NULL, &newer), -EINVAL);
	flexmem_cache_destroy(cache);
}

/* What the provider keeps at the end is told, and forgotten. */
static void destruction_fails(void **state)
{
	struct flexmem_cache *cache = mock_cache("");

	(void)state;
	take(cache, 1, 0);
	take(cache, 2 * MIB, 0);
	mock.fail_frees = 1;
	mock.error = -EIO;
	flexmem_cache_destroy(cache);
	assert_int_equal(mock.frees, 2);
	assert_string_equal(mock.log,
		"the provider did not take 2097152 bytes back: error 5\n");
	/* It has the whole space for the next test again. */
	assert_int_equal(mock.below.free(mock.below.user, 0), 0);
}

/* Without a callback the environment decides who is told. */
static void log_of_the_environment(void **state)
{
	struct flexmem_cache_options options = mock_options("nonsense:1");
	struct flexmem_cache *cache;
	char text[300] = "";
	FILE *file = tmpfile();
	int saved = dup(2);

	(void)state;
	options.log = NULL;
	setenv("TORCH_SPYRE_ALLOC_DEBUG", "1", 1);
	assert_int_equal(dup2(fileno(file), 2), 2);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	fflush(stderr);
	assert_int_equal(dup2(saved, 2), 2);
	flexmem_cache_destroy(cache);
	rewind(file);
	assert_non_null(fgets(text, sizeof(text), file));
	assert_string_equal(text,
		"flexmem cache: caller: unknown key 'nonsense' with value '1' is ignored\n");
	fclose(file);
	close(saved);
	assert_string_equal(mock.log, "");
}

/* A segment grows up to 256 GiB; what is larger has one that does not grow. */
static void longest_segment(void **state)
{
	struct flexmem_cache *cache;
	void *tokens[4];
	size_t i;

	(void)state;
	mock.capacity = 2048 * GIB;
	cache = mock_cache("expandable_segments:True");
	tokens[0] = take(cache, 200 * GIB, 0);
	tokens[1] = take(cache, 50 * GIB, 0);
	assert_int_equal(mock.grows, 1);
	tokens[2] = take(cache, 50 * GIB, 0);
	assert_int_equal(mock.grows, 1);
	assert_int_equal(mock.allocs, 2);
	assert_int_equal(mock.last_flags, FLEXMEM_CACHE_GROWABLE);
	tokens[3] = take(cache, 300 * GIB, 0);
	assert_int_equal(mock.allocs, 3);
	assert_int_equal(mock.last_flags, 0);
	for (i = 0; i < 4; i++)
		give(cache, tokens[i]);
	assert_int_equal(figures(cache).inactive_split_bytes[0].current, 0);
	/* What has none left that is in use serves smaller ones as well. */
	take(cache, 290 * GIB, 0);
	assert_int_equal(mock.allocs, 3);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 300 * GIB);
	flexmem_cache_destroy(cache);
}

/* With a device behind it, over the driver that the tests have. */
static void over_the_device(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_cache_options options = {
		.device = device,
		.configuration = "expandable_segments:True",
	};
	struct flexmem_cache_allocation allocation;
	struct flexmem_cache_request wanted = { .bytes = 13 * GIB };
	struct flexmem_statistics statistics;
	struct flexmem_cache *cache;
	uint64_t free_bytes;
	uint64_t total;

	(void)state;
	fake.capabilities &= ~(uint64_t)FLEXMEM_CAP_MAP;
	flexmem_device_close(device);
	device = open_device();
	options.device = device;
	options.flags = FLEXMEM_CACHE_MAPPABLE;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EOPNOTSUPP);
	options.flags = 0;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	take(cache, 1000, 0);
	assert_int_equal(flexmem_cache_memory_info(cache, &free_bytes, &total),
			 0);
	assert_int_equal(total, 64 * GIB);
	assert_int_equal(free_bytes, 64 * GIB - 2 * MIB);
	/* The driver's reason comes along. */
	assert_int_equal(flexmem_cache_alloc_request(cache, &wanted,
						     sizeof(wanted),
						     &allocation,
						     sizeof(allocation)),
			 -ENOMEM);
	assert_int_equal(allocation.failure.error, -ENOMEM);
	assert_int_equal(allocation.failure.device.limit,
			 FLEXMEM_LIMIT_REGION_SIZE);
	assert_int_equal(allocation.failure.device_total, 64 * GIB);
	flexmem_cache_destroy(cache);
	assert_int_equal(flexmem_device_statistics(device, &statistics,
						   sizeof(statistics)), 0);
	assert_int_equal(statistics.own_used, 0);
	flexmem_device_close(device);
}

static void flat_provider(void **state)
{
	struct flexmem_cache_memory a = { 0 };
	struct flexmem_cache_memory b = { 0 };
	struct flexmem_cache_provider p;
	struct flexmem_cache_flat *flat;
	struct flexmem_failure failure = { 0 };

	(void)state;
	assert_int_equal(flexmem_cache_flat_create(&flat, 0, &p, sizeof(p)),
			 -EINVAL);
	assert_int_equal(flexmem_cache_flat_create(&flat, 100, &p, sizeof(p)),
			 -EINVAL);
	assert_int_equal(flexmem_cache_flat_create(&flat, 8192, &p, sizeof(p)),
			 0);
	assert_int_equal(p.alloc(p.user, 1024, 128, FLEXMEM_CACHE_GROWABLE, &a,
				 &failure), 0);
	assert_int_equal(a.address.offset, 0);
	assert_int_equal(p.alloc(p.user, 1024, 128, FLEXMEM_CACHE_GROWABLE, &b,
				 &failure), 0);
	assert_int_equal(b.address.offset, 4096);
	assert_int_equal(p.grow(p.user, a.handle, 1024, 4096, &failure), 0);
	assert_int_equal(p.grow(p.user, a.handle, 4096, 4224, &failure),
			 -EAGAIN);
	assert_int_equal(p.grow(p.user, a.handle, 1024, 4096, &failure),
			 -ENOENT);
	assert_int_equal(p.alloc(p.user, 3200, 128, 0, &b, &failure), -ENOMEM);
	assert_int_equal(failure.limit, FLEXMEM_LIMIT_CAPACITY);
	assert_int_equal(p.shrink(p.user, a.handle, 4096, 128), 0);
	assert_int_equal(p.alloc(p.user, 5120, 128, 0, &b, &failure), -ENOMEM);
	assert_int_equal(failure.limit, FLEXMEM_LIMIT_FRAGMENTATION);
	assert_int_equal(failure.largest_free, 3968);
	assert_int_equal(p.alloc(p.user, 9216, 128, 0, &b, &failure), -ENOMEM);
	assert_int_equal(failure.limit, FLEXMEM_LIMIT_REGION_SIZE);
	assert_int_equal(p.alloc(p.user, 1024, 1024, 0, &b, &failure), 0);
	assert_int_equal(b.address.offset, 1024);
	assert_int_equal(p.free(p.user, 128), -ENOENT);
	assert_int_equal(p.free(p.user, a.handle), 0);
	flexmem_cache_flat_destroy(flat);
	flexmem_cache_flat_destroy(NULL);
}

/* Nothing is behind the largest number, not even the beginning. */
static void longest_flat_provider(void **state)
{
	const uint64_t bytes = UINT64_MAX - 127;
	struct flexmem_cache_memory memory = { 0 };
	struct flexmem_failure failure = { 0 };
	struct flexmem_cache_provider p;
	struct flexmem_cache_flat *flat;

	(void)state;
	assert_int_equal(flexmem_cache_flat_create(&flat, bytes, &p, sizeof(p)),
			 0);
	assert_int_equal(p.alloc(p.user, bytes - 1024, 128, 0, &memory,
				 &failure), 0);
	assert_int_equal(p.alloc(p.user, MIB, MIB, 0, &memory, &failure),
			 -ENOMEM);
	assert_int_equal(failure.largest_free, 0);
	assert_int_equal(p.alloc(p.user, 1024, 128, 0, &memory, &failure), 0);
	assert_int_equal(memory.address.offset, bytes - 1024);
	flexmem_cache_flat_destroy(flat);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(tokens),
		CACHE_TEST(wide_tokens),
		CACHE_TEST(longest_segment),
		CACHE_TEST(foreign_frees),
		CACHE_TEST(stale_tokens),
		CACHE_TEST(many_names),
		CACHE_TEST(all_names),
		CACHE_TEST(refused_hits),
		CACHE_TEST(refused_directly),
		CACHE_TEST(refused_in_a_leaving_pool),
		CACHE_TEST(private_pools),
		CACHE_TEST(unknown_pools),
		CACHE_TEST(tags),
		CACHE_TEST(profile),
		CACHE_TEST(bad_options),
		CACHE_TEST(struct_sizes),
		CACHE_TEST(destruction_fails),
		CACHE_TEST(log_of_the_environment),
		CACHE_TEST(over_the_device),
		CACHE_TEST(flat_provider),
		CACHE_TEST(longest_flat_provider),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
