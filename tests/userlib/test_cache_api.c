// SPDX-License-Identifier: GPL-2.0
/* The cache: private pools, tags, options, providers. */
#include "cache_mock.h"

#include <unistd.h>

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
	/* The pool keeps its segments, and no other pool uses them. */
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
	/* A released pool ends when its last allocation is freed. */
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
	/* These calls fail before the options are read. */
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
					 pressure) - 1;
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
 * New members of struct flexmem_failure take up the reserved room behind its
 * copies in other structs. The members behind that room must not move, because
 * older programs would read them wrongly.
 */
_Static_assert(offsetof(struct flexmem_cache_failure, device) == 72 &&
	       offsetof(struct flexmem_cache_failure, obstacle) == 232 &&
	       offsetof(struct flexmem_cache_failure, largest_pool) == 248 &&
	       offsetof(struct flexmem_cache_failure, last_pool) == 264 &&
	       offsetof(struct flexmem_cache_failure, print_user) == 288 &&
	       offsetof(struct flexmem_cache_failure, kept_pool) == 304,
	       "struct flexmem_failure grows into FLEXMEM_CACHE_DEVICE_ROOM");
_Static_assert(sizeof(struct flexmem_failure) +
	       8 * FLEXMEM_CACHE_DEVICE_ROOM == 232 - 72,
	       "device_room is what struct flexmem_failure may still grow by");
_Static_assert(offsetof(struct flexmem_cache_allocation, failure) == 120 &&
	       offsetof(struct flexmem_cache_allocation, handle) == 440 &&
	       offsetof(struct flexmem_cache_allocation, offset) == 448 &&
	       offsetof(struct flexmem_cache_allocation, context) == 456 &&
	       offsetof(struct flexmem_cache_allocation, pointer) == 464,
	       "struct flexmem_cache_failure grows into FLEXMEM_CACHE_ROOM");
_Static_assert(sizeof(struct flexmem_cache_failure) +
	       8 * FLEXMEM_CACHE_ROOM == 440 - 120,
	       "failure_room is what struct flexmem_cache_failure may grow by");

/* Callers with older and with newer structs than the library's. */
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
	/*
	 * Sizes of struct flexmem_cache_allocation: in the first version, and
	 * in the last version whose failure has no @pool.
	 */
	static const size_t ends[] = { 288, 376 };
	struct flexmem_cache_options options = mock_options("nonsense:1");
	struct flexmem_cache *cache;
	size_t at;
	size_t i;

	(void)state;
	/*
	 * The library must not read members that the struct of an older caller
	 * does not have.
	 */
	options.flags = FLEXMEM_CACHE_STRICT;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      offsetof(struct flexmem_cache_options,
						       flags)), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &newer.request,
						     sizeof(newer),
						     &result.allocation,
						     sizeof(result)), 0);
	assert_int_equal(result.more, 0);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		memset(&result, 7, sizeof(result));
		assert_int_equal(flexmem_cache_alloc_request(cache,
							     &newer.request,
							     sizeof(newer.request),
							     &result.allocation,
							     ends[i]), 0);
		assert_int_equal(result.allocation.requested, 1000);
		/* The library must not write beyond the caller's struct. */
		for (at = ends[i]; at < sizeof(result); at++)
			assert_int_equal(((char *)&result)[at], 7);
	}
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

/*
 * Sizes of struct flexmem_cache_failure: in the first version, and in the last
 * version without @pool.
 */
static void older_failures(void **state)
{
	static const size_t sizes[] = { 168, 256 };
	const struct flexmem_cache_failure none = { 0 };
	struct flexmem_cache_failure failure;
	char expected[512];
	char text[512];
	size_t i;

	(void)state;
	assert_int_equal(flexmem_cache_error_text(-ENOENT, &none, sizeof(none),
						  expected, sizeof(expected)),
			 0);
	for (i = 0; i < 2; i++) {
		/* The bytes beyond the caller's struct may be anything. */
		memset(&failure, 7, sizeof(failure));
		memset(&failure, 0, sizes[i]);
		assert_int_equal(flexmem_cache_error_text(-ENOENT, &failure,
							  sizes[i], text,
							  sizeof(text)), 0);
		assert_string_equal(text, expected);
		/*
		 * Now the figures are those of an earlier failure, so the text
		 * must not use them.
		 */
		failure.asked = 1024;
		failure.largest_pool = 1;
		assert_int_equal(flexmem_cache_error_text(-ENOENT, &failure,
							  sizes[i], text,
							  sizeof(text)), 0);
		assert_string_equal(text, expected);
	}
}

/*
 * If the provider refuses to take memory back when the cache is destroyed, the
 * cache logs that and forgets the memory.
 */
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
	/*
	 * The test frees the memory itself, so that the next test has all of
	 * it.
	 */
	assert_int_equal(mock.below.free(mock.below.user, 0), 0);
}

/*
 * Captures what a cache without a log callback prints, while it is created and
 * later.
 */
static void printed(const char *configuration, uint32_t flags, char text[1000])
{
	struct flexmem_cache_options options = mock_options(configuration);
	struct flexmem_cache *cache = NULL;
	FILE *file = tmpfile();
	int saved = dup(2);
	size_t length;

	options.log = NULL;
	options.flags = flags;
	assert_int_equal(dup2(fileno(file), 2), 2);
	flexmem_cache_create(&cache, &options, sizeof(options));
	if (cache) {
		mock.fail_frees = 1;
		mock.error = -EIO;
		give(cache, take(cache, MIB, 0));
		flexmem_cache_empty(cache, NULL);
		flexmem_cache_destroy(cache);
	}
	fflush(stderr);
	assert_int_equal(dup2(saved, 2), 2);
	rewind(file);
	length = fread(text, 1, 999, file);
	text[length] = '\0';
	fclose(file);
	close(saved);
	assert_string_equal(mock.log, "");
}

/* Without a callback only warnings about settings go to stderr. */
static void warnings_without_a_callback(void **state)
{
	char text[1000];

	(void)state;
	mock.no_growth = true;
	printed("nonsense:1,expandable_segments:True", 0, text);
	assert_string_equal(text,
		"flexmem cache: caller: unknown key 'nonsense' with value '1' is ignored\n"
		"flexmem cache: expandable_segments has no effect: segments cannot grow here\n");
	printed("backend:native", 0, text);
	assert_string_equal(text, "");
	/*
	 * A strict caller gets the problem as an error, so nothing is printed.
	 */
	printed("nonsense:1", FLEXMEM_CACHE_STRICT, text);
	assert_string_equal(text, "");
}

/* With TORCH_SPYRE_ALLOC_DEBUG set the cache prints all messages. */
static void log_of_the_environment(void **state)
{
	static const char first[] =
		"flexmem cache: caller: unknown key 'nonsense' with value '1' is ignored\n";
	char text[1000];

	(void)state;
	setenv("TORCH_SPYRE_ALLOC_DEBUG", "1", 1);
	printed("nonsense:1", 0, text);
	assert_memory_equal(text, first, strlen(first));
	assert_non_null(strstr(text, "flexmem cache: alloc "));
}

/* A segment grows to 256 GiB. A larger request gets a fixed segment. */
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
	/* A large free segment of fixed size also serves smaller requests. */
	take(cache, 290 * GIB, 0);
	assert_int_equal(mock.allocs, 3);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 300 * GIB);
	flexmem_cache_destroy(cache);
}

/* A cache on a device of the fake driver. */
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
	char text[512];
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
	/* The failure contains the driver's reason. */
	assert_int_equal(flexmem_cache_alloc_request(cache, &wanted,
						     sizeof(wanted),
						     &allocation,
						     sizeof(allocation)),
			 -ENOMEM);
	assert_int_equal(allocation.failure.error, -ENOMEM);
	assert_int_equal(allocation.failure.device.limit,
			 FLEXMEM_LIMIT_REGION_SIZE);
	assert_int_equal(allocation.failure.device_total, 64 * GIB);
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &allocation.failure,
						  sizeof(allocation.failure),
						  text, sizeof(text)), 0);
	assert_non_null(strstr(text, "see fallback_sizes"));
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
	uint64_t largest;
	char text[256];

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
	assert_int_equal(p.largest(p.user, &largest), 0);
	assert_int_equal(largest, 3968);
	assert_int_equal(p.alloc(p.user, 9216, 128, 0, &b, &failure), -ENOMEM);
	assert_int_equal(failure.limit, FLEXMEM_LIMIT_REGION_SIZE);
	/* No parameter of the driver allows a larger region. */
	assert_int_equal(flexmem_error_text(-ENOMEM, &failure, sizeof(failure),
					    text, sizeof(text)), 0);
	assert_string_equal(text,
		"out of device memory: no region can be that large (at most 8.0 KiB); asked 9.0 KiB, free 6.9 KiB in 1 region, largest piece 3.9 KiB");
	assert_int_equal(p.alloc(p.user, 1024, 1024, 0, &b, &failure), 0);
	assert_int_equal(b.address.offset, 1024);
	assert_int_equal(p.free(p.user, 128), -ENOENT);
	assert_int_equal(p.free(p.user, a.handle), 0);
	flexmem_cache_flat_destroy(flat);
	flexmem_cache_flat_destroy(NULL);
}

/* The segment ends at the largest address: the sum must not overflow to 0. */
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
		CACHE_TEST(longest_segment),
		CACHE_TEST(private_pools),
		CACHE_TEST(unknown_pools),
		CACHE_TEST(tags),
		CACHE_TEST(profile),
		CACHE_TEST(bad_options),
		CACHE_TEST(struct_sizes),
		CACHE_TEST(older_failures),
		CACHE_TEST(destruction_fails),
		CACHE_TEST(warnings_without_a_callback),
		CACHE_TEST(log_of_the_environment),
		CACHE_TEST(over_the_device),
		CACHE_TEST(flat_provider),
		CACHE_TEST(longest_flat_provider),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
