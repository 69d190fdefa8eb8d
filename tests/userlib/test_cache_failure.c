// SPDX-License-Identifier: GPL-2.0
/* Failed allocations: the reason and the figures. */
#include "cache_mock.h"
#include "internal.h"

static const char no_such_text[] =
	"no such private pool, setting or callback, or no helper thread is running";

/* No size of 1 KiB or more, such as " 1.0 MiB", appears twice. */
static void expect_no_size_twice(const char *text)
{
	const char *unit = text;
	const char *begin;
	char size[32];

	while ((unit = strstr(unit + 1, "iB"))) {
		begin = unit - 2;
		while (begin[-1] != ' ')
			begin--;
		snprintf(size, sizeof(size), " %.*s", (int)(unit - begin) + 2,
			 begin);
		if (strstr(unit, size))
			fail_msg("%s: twice in %s", size, text);
	}
}

static void failure_details(void **state)
{
	struct flexmem_cache_request request = { .bytes = 30 * MIB - 5 };
	struct flexmem_cache *cache = mock_cache_events("");
	struct flexmem_cache_allocation a;
	char text[512];

	(void)state;
	/* The cache cannot return a free block beside a used one. */
	take(cache, MIB, 3);
	take(cache, 2 * MIB, 3);
	mock.fail_allocs = 3;
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	assert_null(a.token);
	assert_int_equal(a.failure.error, -ENOMEM);
	assert_int_equal(a.failure.asked, 30 * MIB);
	assert_int_equal(a.failure.segment, 30 * MIB);
	assert_int_equal(a.failure.allocated_bytes, 3 * MIB);
	assert_int_equal(a.failure.reserved_bytes, 22 * MIB);
	assert_int_equal(a.failure.largest_free, 18 * MIB);
	assert_int_equal(a.failure.allowed_bytes, 0);
	assert_int_equal(a.failure.device_free, GIB - 22 * MIB);
	assert_int_equal(a.failure.device_total, GIB);
	assert_int_equal(a.failure.device.limit, FLEXMEM_LIMIT_SLOTS);
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &a.failure,
						  sizeof(a.failure), text,
						  sizeof(text)), 0);
	assert_string_equal(text,
		"out of device memory: tried to allocate 30.0 MiB; this process can have 1.0 GiB, free: 1002.0 MiB; this cache has allocated 3.0 MiB, reserved but unallocated: 19.0 MiB, the largest free block has 18.0 MiB; the device says: no slot left (0 of 0 used)");
	expect_no_size_twice(text);
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &a.failure,
						  sizeof(a.failure), text, 30),
			 -EMSGSIZE);
	assert_string_equal(text, "out of device memory: tried t");
	flexmem_cache_destroy(cache);
}

/* The error text of a failed allocation of @bytes. */
static void text_of(struct flexmem_cache *cache, uint64_t bytes, char *text,
		    size_t length)
{
	const struct flexmem_cache_request request = { .bytes = bytes };
	struct flexmem_cache_allocation a;

	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &a.failure,
						  sizeof(a.failure), text,
						  length), 0);
}

/*
 * Like CUDA's text, the text states the memory of other processes, and the
 * memory that is reserved but unused.
 */
static void parts_of_the_text(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache *other = mock_cache("");
	char text[512];

	(void)state;
	take(other, 100 * MIB, 0);
	take(cache, 2 * MIB, 0);
	mock.fail_allocs = 9;
	text_of(cache, 951 * MIB, text, sizeof(text));
	assert_string_equal(text,
		"out of device memory: tried to allocate 951.0 MiB; this process can have 1.0 GiB, free: 904.0 MiB, in use by others: 100.0 MiB; this cache has allocated 2.0 MiB, reserved but unallocated: 18.0 MiB, in one block; the device says: no slot left (0 of 0 used)");
	expect_no_size_twice(text);
	flexmem_cache_destroy(other);
	flexmem_cache_destroy(cache);
}

/* Memory of another provider is not counted as that of others, nor against it. */
static void memory_of_another_provider(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache *other = mock_cache("");
	struct flexmem_cache_request request = { .bytes = 50 * MIB };
	struct flexmem_cache_allocation a;
	struct flexmem_cache_provider provider;
	struct flexmem_cache_flat *flat;
	char text[512];

	(void)state;
	take(other, 100 * MIB, 0);
	assert_int_equal(flexmem_cache_flat_create(&flat, GIB, &provider,
						   sizeof(provider)), 0);
	assert_int_equal(flexmem_cache_pool_create_on(cache, &provider,
						      sizeof(provider),
						      &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	mock.fail_allocs = 9;
	text_of(cache, 951 * MIB, text, sizeof(text));
	assert_non_null(strstr(text, "can have 1.0 GiB, free: 924.0 MiB; this cache has allocated 50.0 MiB"));
	give(cache, a.token);
	assert_int_equal(flexmem_cache_pool_release(cache, request.pool), 0);
	mock.fail_allocs = 9;
	text_of(cache, 951 * MIB, text, sizeof(text));
	assert_non_null(strstr(text, "free: 924.0 MiB, in use by others: 100.0 MiB"));
	flexmem_cache_destroy(other);
	flexmem_cache_destroy(cache);
	flexmem_cache_flat_destroy(flat);
}

static const char fragmentation[] =
	"; expandable_segments:True may avoid this fragmentation";

/* The text gives advice only if the advice would help. */
static void advice(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache *growing;
	void *tokens[5];
	char text[512];
	size_t i;

	(void)state;
	for (i = 0; i < 5; i++)
		tokens[i] = take(cache, 4 * MIB, 0);
	give(cache, tokens[0]);
	give(cache, tokens[2]);
	mock.fail_allocs = 9;
	/* 8 MiB are free, in several blocks. */
	text_of(cache, 8 * MIB, text, sizeof(text));
	assert_string_equal(text + strlen(text) - strlen(fragmentation),
			    fragmentation);
	mock.fail_allocs = 9;
	text_of(cache, 8 * MIB + 1, text, sizeof(text));
	assert_null(strstr(text, "fragmentation"));
	/* A growing segment is in one region, too. */
	mock.reason.limit = FLEXMEM_LIMIT_REGION_SIZE;
	mock.fail_allocs = 9;
	text_of(cache, 8 * MIB, text, sizeof(text));
	assert_null(strstr(text, "fragmentation"));
	mock.reason.limit = FLEXMEM_LIMIT_SLOTS;
	mock.fail_allocs = 0;
	/* The segments grow already, so the text does not advise that. */
	growing = mock_cache("expandable_segments:True");
	for (i = 0; i < 4; i++)
		tokens[i] = take(growing, 4 * MIB, 0);
	give(growing, tokens[0]);
	give(growing, tokens[2]);
	mock.fail_grows = 9;
	mock.fail_allocs = 9;
	text_of(growing, 8 * MIB, text, sizeof(text));
	assert_null(strstr(text, "fragmentation"));
	flexmem_cache_destroy(growing);
	flexmem_cache_destroy(cache);
	cache = mock_cache("per_process_memory_fraction:0.5");
	mock.fail_allocs = 0;
	text_of(cache, 600 * MIB, text, sizeof(text));
	assert_string_equal(text,
		"out of device memory: tried to allocate 600.0 MiB; this process can have 512.0 MiB, all of it free; this cache has allocated 0 B and reserved no more; per_process_memory_fraction allows 512.0 MiB; a larger fraction may help");
	flexmem_cache_destroy(cache);
}

/*
 * Makes the provider refuse a request of @bytes. @said is the expected text
 * about free memory.
 */
static struct flexmem_cache_failure refused(struct flexmem_cache *cache,
					    uint64_t bytes, uint64_t pool,
					    const char *said)
{
	const struct flexmem_cache_request request = {
		.bytes = bytes,
		.pool = pool,
	};
	struct flexmem_cache_allocation a;
	char expected[200];
	char text[512];

	mock.fail_allocs = 9;
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	mock.fail_allocs = 0;
	assert_int_equal(a.failure.limit, FLEXMEM_CACHE_LIMIT_NONE);
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &a.failure,
						  sizeof(a.failure), text,
						  sizeof(text)), 0);
	snprintf(expected, sizeof(expected),
		 "%s; the device says",
		 said);
	assert_non_null(strstr(text, expected));
	return a.failure;
}

/*
 * A block can be free and large enough, but still not usable. The text explains
 * why.
 */
static void obstacles(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("");
	struct flexmem_cache_failure failure;
	uint64_t pool;

	(void)state;
	refused(cache, 5 * MIB, 0, "and reserved no more");
	take(cache, 1000, 0);
	failure = refused(cache, MIB + 1, 0,
			  ": 2.0 MiB, in one block, which is in the pool of small requests, and this is a large one");
	assert_int_equal(failure.largest_free, 2 * MIB - 1024);
	assert_int_equal(failure.obstacle, FLEXMEM_CACHE_OBSTACLE_KIND);
	take(cache, 2 * MIB, 3);
	failure = refused(cache, 5 * MIB, 0,
			  "the largest free block has 18.0 MiB, which belongs to stream 3 and serves no other");
	assert_int_equal(failure.obstacle, FLEXMEM_CACHE_OBSTACLE_STREAM);
	assert_int_equal(failure.largest_stream, 3);
	assert_int_equal(failure.largest_pool, 0);
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	failure = refused(cache, 5 * MIB, pool,
			  "the largest free block has 18.0 MiB, which belongs to no private pool, and this is for private pool 1");
	assert_int_equal(failure.obstacle, FLEXMEM_CACHE_OBSTACLE_POOL);
	/*
	 * The failure names the pool of the largest free block, even if that
	 * block is just too small.
	 */
	failure = refused(cache, 30 * MIB, 0,
			  "the largest free block has 18.0 MiB");
	assert_int_equal(failure.obstacle, FLEXMEM_CACHE_OBSTACLE_SIZE);
	assert_int_equal(failure.largest_stream, 3);
	flexmem_cache_destroy(cache);
}

static void obstacle_of_a_pool(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	struct flexmem_cache_request request = { .bytes = 7 * MIB };
	struct flexmem_cache_failure failure;
	struct flexmem_cache_allocation a;
	uint64_t other;
	char text[512];

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	give(cache, a.token);
	failure = refused(cache, 6 * MIB, 0,
			  "unallocated: 8.0 MiB, in one block, which belongs to private pool 1, and this is for no private pool");
	assert_int_equal(failure.obstacle, FLEXMEM_CACHE_OBSTACLE_POOL);
	assert_int_equal(failure.largest_pool, request.pool);
	assert_int_equal(flexmem_cache_pool_create(cache, &other), 0);
	failure = refused(cache, 6 * MIB, other,
			  "unallocated: 8.0 MiB, in one block, which belongs to private pool 1, and this is for private pool 2");
	assert_int_equal(failure.pool, other);
	/*
	 * The struct of an older caller lacks @pool, so the text names no pool
	 * of the request.
	 */
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &failure,
						  offsetof(struct flexmem_cache_failure,
							   pool),
						  text, sizeof(text)), 0);
	assert_non_null(strstr(text, "belongs to private pool 1; the device says"));
	flexmem_cache_destroy(cache);
}

/*
 * A pool with FLEXMEM_CACHE_POOL_USE_ON_OOM is no obstacle, but the stream of
 * its block is.
 */
static void obstacle_in_a_pool_for_all(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_request request = { .bytes = 20 * MIB, .stream = 1 };
	struct flexmem_cache_failure failure;
	struct flexmem_cache_allocation a;
	char text[512];

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	give(cache, a.token);
	failure = refused(cache, 12 * MIB, 0,
			  "which belongs to private pool 1, and this is for no private pool");
	assert_int_equal(failure.obstacle, FLEXMEM_CACHE_OBSTACLE_POOL);
	/* Segments that grow would not help. */
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &failure,
						  sizeof(failure), text,
						  sizeof(text)), 0);
	assert_null(strstr(text, "fragmentation"));
	assert_int_equal(
		flexmem_cache_pool_set_flags(cache, request.pool,
					     FLEXMEM_CACHE_POOL_USE_ON_OOM), 0);
	failure = refused(cache, 12 * MIB, 0,
			  "which belongs to stream 1 and serves no other");
	assert_int_equal(failure.obstacle, FLEXMEM_CACHE_OBSTACLE_STREAM);
	flexmem_cache_destroy(cache);
}

/*
 * A small request fails, because there is free memory only in a large segment.
 */
static void obstacle_of_a_kind(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_failure failure;

	(void)state;
	take(cache, 2 * MIB, 0);
	failure = refused(cache, 1000, 0,
			  "unallocated: 18.0 MiB, in one block, which is in the pool of large requests, and this is a small one");
	assert_int_equal(failure.obstacle, FLEXMEM_CACHE_OBSTACLE_KIND);
	assert_int_equal(failure.largest_kind, FLEXMEM_CACHE_LARGE);
	flexmem_cache_destroy(cache);
}

static void no_pool(struct flexmem_cache *cache, uint64_t pool,
		    const char *expected)
{
	const struct flexmem_cache_request request = {
		.bytes = 1000,
		.pool = pool,
	};
	struct flexmem_cache_allocation a;
	char text[512];

	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOENT);
	assert_int_equal(flexmem_cache_error_text(-ENOENT, &a.failure,
						  sizeof(a.failure), text,
						  sizeof(text)), 0);
	assert_string_equal(text, expected);
}

/* A pool that never existed, and a pool that was released. */
static void unknown_pools(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	uint64_t pool;

	(void)state;
	no_pool(cache, 7, "private pool 7 was never made, nor was another one");
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	no_pool(cache, 7, "private pool 7 was never made: the last one is 2");
	assert_int_equal(flexmem_cache_pool_release(cache, 1), 0);
	no_pool(cache, 1, "private pool 1 was released, and nothing can be allocated into it any more");
	flexmem_cache_destroy(cache);
}

/*
 * The caller passes the failure of an allocation together with the ENOENT of
 * another call. The text must be about ENOENT.
 */
static void failure_of_another_call(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_failure failure;
	char text[512];
	uint64_t pool;

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	failure = refused(cache, 5 * MIB, pool, "and reserved no more");
	assert_int_equal(failure.pool, pool);
	assert_int_equal(flexmem_cache_error_text(-ENOENT, &failure,
						  sizeof(failure), text,
						  sizeof(text)), 0);
	assert_string_equal(text, no_such_text);
	flexmem_cache_destroy(cache);
}

/* An ENOENT of the provider is not a missing pool. */
static void enoent_of_the_provider(void **state)
{
	const struct flexmem_cache_failure none = { 0 };
	struct flexmem_cache_request request = { .bytes = 1000 };
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_allocation a;

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	mock.fail_allocs = 1;
	mock.error = -ENOENT;
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOENT);
	assert_memory_equal(&a.failure, &none, sizeof(none));
	flexmem_cache_destroy(cache);
}

static void obstacle_of_a_setting(void **state)
{
	struct flexmem_cache *cache = mock_cache("max_split_size_mb:20");
	struct flexmem_cache_failure failure;

	(void)state;
	give(cache, take(cache, 30 * MIB, 0));
	/* The provider refuses the block, so that it stays free. */
	mock.fail_frees = 9;
	failure = refused(cache, 5 * MIB, 0,
			  "unallocated: 30.0 MiB, in one block, which max_split_size_mb keeps for larger requests");
	mock.fail_frees = 0;
	assert_int_equal(failure.obstacle, FLEXMEM_CACHE_OBSTACLE_SPLIT);
	flexmem_cache_destroy(cache);
}

static void error_texts(void **state)
{
	static const struct {
		int error;
		const char *text;
	} cases[] = {
		{ 0, "success" },
		{ -ECHILD, "the cache belongs to the process that this one was forked from" },
		{ -EINVAL, "not a live allocation of this cache, or another bad argument" },
		{ -ENOENT, no_such_text },
		{ -EEXIST, "the callback is registered already, or the helper runs already" },
		{ -EAGAIN, "there is no event, or the process may have no further thread" },
		{ -ENOMEM, "out of host memory" },
		{ -EBUSY, "the memory is in use: it is mapped, waits for events, or is in a segment of the pool" },
		{ -ENXIO, "memory of the checkpoint was returned to the device, or lost" },
		{ -EIO, "the device's firmware failed, or a reset lost the "
			"allocation" },
	};
	struct flexmem_cache_failure none = { 0 };
	char text[512];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(flexmem_cache_error_text(cases[i].error,
							  &none, sizeof(none),
							  text, sizeof(text)),
				 0);
		assert_string_equal(text, cases[i].text);
	}
	/*
	 * Without a struct flexmem_cache_failure the text cannot tell which
	 * memory ran out.
	 */
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, NULL, 0, text,
						  sizeof(text)), 0);
	assert_string_equal(text, "out of memory, the device's or the host's, "
			    "or a limit of the cache's own: "
			    "struct flexmem_cache_failure tells which");
	assert_int_equal(flexmem_cache_error_text(1, NULL, 0, text,
						  sizeof(text)), -EINVAL);
	assert_int_equal(flexmem_cache_error_text(-EIO, &none, 8, text,
						  sizeof(text)), -EINVAL);
	assert_int_equal(flexmem_cache_error_text(-ENOENT, NULL, 0, NULL, 0),
			 -EMSGSIZE);
}

/*
 * Returns the length of the longest text over all reasons of the device, with
 * the largest numbers.
 */
static size_t longest_text(struct flexmem_cache_failure failure)
{
	char advice[] = "; private pool 18446744073709551615 keeps free segments: if no graph uses them, flexmem_cache_pool_empty() may help; freed memory that other streams use waits until the capture ends; a larger fraction may help";
	char end[FMLIB_LIMIT_TEXT + sizeof(advice)];
	char limit[FMLIB_LIMIT_TEXT];
	char text[1024];
	size_t most = 0;
	uint32_t i;

	/*
	 * The loop includes limits and charges that the library does not know.
	 */
	for (i = 0; i < 16 * 4 * 16 * 2; i++) {
		failure.device.limit = i % 16;
		failure.device.charge = i / 16 % 4;
		failure.device.region_limit = i / 64 % 16;
		failure.device.flags = i / 1024 ? FLEXMEM_PROGRAM : 0;
		assert_int_equal(flexmem_cache_error_text(-ENOMEM, &failure,
							  sizeof(failure),
							  text, sizeof(text)),
				 0);
		if (strlen(text) > most)
			most = strlen(text);
		/* The text ends with the whole text about the limit, and advice. */
		fmlib_limit_text(&failure.device, limit);
		snprintf(end, sizeof(end), "%s%s", limit, advice);
		if (failure.device.limit != FLEXMEM_LIMIT_NONE &&
		    failure.limit == FLEXMEM_CACHE_LIMIT_NONE)
			assert_string_equal(text + strlen(text) -
					    strlen(end), end);
	}
	return most;
}

/* No text is cut off, and each text names its pool. */
static void check_pools(struct flexmem_cache_failure *failure)
{
	char text[1024];

	failure->device.limit = FLEXMEM_LIMIT_NONE;
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, failure,
						  sizeof(*failure), text,
						  sizeof(text)), 0);
	if (failure->limit == FLEXMEM_CACHE_LIMIT_NONE &&
	    failure->obstacle == FLEXMEM_CACHE_OBSTACLE_POOL) {
		assert_non_null(strstr(text, "pool 18446744073709551615, "));
		assert_non_null(strstr(text, "pool 18446744073709551614; "));
	}
	/* The text about an unknown pool, with the longest numbers. */
	failure->asked = 0;
	failure->last_pool = UINT64_MAX - 2;
	assert_int_equal(flexmem_cache_error_text(-ENOENT, failure,
						  sizeof(*failure), text,
						  sizeof(text)), 0);
	assert_string_equal(text,
		"private pool 18446744073709551614 was never made: the last one is 18446744073709551613");
}

/* A buffer of the size that the header names holds any error text. */
/* Prints more than an error text can contain. */
static size_t print_much(void *user, void *context, char *text, size_t length)
{
	(void)user;
	(void)context;
	memset(text, 'x', length - 1);
	text[length - 1] = '\0';
	return 100000;
}

static void any_text_fits(void **state)
{
	const uint64_t human = 1023 * GIB;
	struct flexmem_cache_failure failure;
	size_t most = 0;
	size_t length;
	uint32_t i;

	(void)state;
	/* The longest size, and the largest numbers. */
	for (i = 0; i < 3 * 8; i++) {
		memset(&failure, 0xff, sizeof(failure));
		failure.print = print_much;
		failure.limit = i / 8;
		failure.obstacle = i % 8;
		failure.asked = human;
		failure.segment = human;
		failure.allocated_bytes = human;
		failure.reserved_bytes = human;
		failure.largest_free = human;
		failure.allowed_bytes = human;
		failure.device_free = human;
		failure.device_total = human;
		failure.device.total_free = human;
		failure.device.own_used = human;
		failure.device.max_region = human;
		failure.device.largest_free = UINT64_MAX - 1;
		failure.device.quota = UINT64_MAX - 1;
		/*
		 * The largest free block is in another pool than the request's.
		 */
		failure.pool = UINT64_MAX - 1;
		length = longest_text(failure);
		if (length > most)
			most = length;
		check_pools(&failure);
	}
	assert_in_range(most, 512, 1023);
}

/*
 * No device is as large as this request, so the cache calls neither the
 * provider nor a callback.
 */
static void absurd_size(struct flexmem_cache *cache, uint64_t bytes,
			const char *said)
{
	const struct flexmem_cache_request request = { .bytes = bytes };
	struct flexmem_cache_failure expected = {
		.limit = FLEXMEM_CACHE_LIMIT_SIZE,
		.asked = bytes,
		.allocated_bytes = 3 * MIB,
		.reserved_bytes = 22 * MIB,
	};
	struct flexmem_cache_allocation a;
	char line[300];
	char text[512];

	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	/*
	 * The failure has the cache's figures, but no reason of the provider.
	 */
	assert_memory_equal(&a.failure, &expected, sizeof(expected));
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &a.failure,
						  sizeof(a.failure), text,
						  sizeof(text)), 0);
	snprintf(line, sizeof(line),
		 "too large: one allocation of a cache has at most 8.0 TiB; tried to allocate %s; the cache has reserved 22.0 MiB, of which 3.0 MiB are allocated",
		 said);
	assert_string_equal(text, line);
	assert_int_equal(mock.allocs, 2);
}

static void absurd_sizes(void **state)
{
	const uint64_t most = FLEXMEM_CACHE_ALLOCATION_BYTES;
	struct flexmem_cache *cache = mock_cache_events("");

	(void)state;
	take(cache, MIB, 0);
	take(cache, 2 * MIB, 0);
	absurd_size(cache, UINT64_MAX, "16.0 EiB");
	absurd_size(cache, 9216 * GIB, "9.0 TiB");
	absurd_size(cache, most + 1, "8796093022209 B");
	expect_counters(cache, 0, 0, 3);
	/* The cache accepts this size. The provider refuses it. */
	assert_int_equal(try_alloc(cache, most), -ENOMEM);
	assert_int_equal(mock.allocs, 4);
	expect_counters(cache, 1, 0, 4);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(failure_details),
		CACHE_TEST(parts_of_the_text),
		CACHE_TEST(memory_of_another_provider),
		CACHE_TEST(advice),
		CACHE_TEST(obstacles),
		CACHE_TEST(obstacle_of_a_pool),
		CACHE_TEST(obstacle_in_a_pool_for_all),
		CACHE_TEST(obstacle_of_a_kind),
		CACHE_TEST(unknown_pools),
		CACHE_TEST(failure_of_another_call),
		CACHE_TEST(enoent_of_the_provider),
		CACHE_TEST(obstacle_of_a_setting),
		CACHE_TEST(error_texts),
		CACHE_TEST(any_text_fits),
		CACHE_TEST(absurd_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
