// SPDX-License-Identifier: GPL-2.0
/*
 * Error texts and their remedies: each test causes an error, looks for its text,
 * does what Documentation/tasks/out-of-memory.rst advises, and repeats the call
 * with success.
 */
#include "cache_mock.h"

#include <unistd.h>

/* Requests of a device. */

static struct flexmem_allocated get(struct flexmem_device *device,
				    uint64_t length)
{
	struct flexmem_allocated a;

	flexmem_device_alloc(device, length, 0, 0, &a, sizeof(a));
	return a;
}

static void works(struct flexmem_device *device, uint64_t length)
{
	assert_int_equal(get(device, length).error, 0);
}

static void says(const struct flexmem_allocated *a, const char *words)
{
	char text[512];

	assert_true(a->error < 0);
	assert_int_equal(flexmem_error_text(a->error, &a->failure,
					    sizeof(a->failure), text,
					    sizeof(text)), 0);
	assert_non_null(strstr(text, words));
}

static void fails(struct flexmem_device *device, uint64_t length,
		  const char *words)
{
	struct flexmem_allocated a = get(device, length);

	assert_int_equal(a.error, -ENOMEM);
	says(&a, words);
}

static void give_back(struct flexmem_device *device,
		      const struct flexmem_allocated *a)
{
	assert_int_equal(flexmem_device_free(device, a->handle), 0);
}

static void a_smaller_request(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a = get(device, 13 * GIB);

	(void)state;
	says(&a, "out of device memory: no region can be that large (at most 12.0 GiB: see fallback_sizes); asked 13.0 GiB");
	works(device, a.failure.max_region);
	flexmem_device_close(device);
}

static void a_free_gives_back_a_handle(void **state)
{
	struct flexmem_device *device;
	struct flexmem_allocated a;

	(void)state;
	fake.max_handles = 1;
	device = open_device();
	a = get(device, 1000);
	fails(device, 1000,
	      "too many live allocations (at most 1 for one open file)");
	give_back(device, &a);
	works(device, 1000);
	flexmem_device_close(device);
}

static void set_limit(struct flexmem_device *device, uint32_t charge,
		      uint64_t limit)
{
	assert_int_equal(flexmem_device_set_limit(device, FLEXMEM_FOR_CGROUP,
						  1000, charge, limit, NULL,
						  0), 0);
}

static void a_limit_of_bytes(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a = get(device, GIB);

	(void)state;
	set_limit(device, FLEXMEM_CHARGE_BYTES, GIB);
	fails(device, GIB, "cgroup limit (1.0 GiB of 1.0 GiB used: see sudo flexmem owners)");
	/* The administrator raises the limit. */
	set_limit(device, FLEXMEM_CHARGE_BYTES, 2 * GIB);
	works(device, GIB);
	fails(device, GIB, "cgroup limit (2.0 GiB of 2.0 GiB used: see sudo flexmem owners)");
	give_back(device, &a);
	works(device, GIB);
	/* What is left of a limit outside the container can be had. */
	fake.hides_limit = true;
	set_limit(device, FLEXMEM_CHARGE_BYTES, 2 * GIB + 4096);
	fails(device, GIB, "a limit above this container (4.0 KiB left: see sudo flexmem owners)");
	works(device, 4096);
	fake.hides_limit = false;
	/* An older driver does not name the limit. */
	fake.tells_no_limit = true;
	fails(device, GIB, "memory: cgroup limit; asked");
	set_limit(device, FLEXMEM_CHARGE_BYTES, FLEXMEM_UNLIMITED);
	works(device, GIB);
	flexmem_device_close(device);
}

static void a_limit_of_regions_or_handles(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a = get(device, 12 * GIB);

	(void)state;
	set_limit(device, FLEXMEM_CHARGE_REGIONS, 1);
	fails(device, GIB, "cgroup limit (1 of 1 regions used: see sudo flexmem owners)");
	fake.tells_no_limit = true;
	fails(device, GIB, "cgroup limit of regions");
	fake.tells_no_limit = false;
	give_back(device, &a);
	a = get(device, GIB);
	assert_int_equal(a.error, 0);
	set_limit(device, FLEXMEM_CHARGE_REGIONS, FLEXMEM_UNLIMITED);
	set_limit(device, FLEXMEM_CHARGE_HANDLES, 1);
	fails(device, GIB, "cgroup limit (1 of 1 allocations used: see sudo flexmem owners)");
	give_back(device, &a);
	works(device, GIB);
	flexmem_device_close(device);
}

/* Three pieces fill a region; the outer two are free, and no region comes. */
static void free_the_neighbour(const char *words)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated piece[3];
	size_t i;

	for (i = 0; i < 3; i++)
		piece[i] = get(device, 4 * GIB);
	give_back(device, &piece[0]);
	give_back(device, &piece[2]);
	fails(device, 8 * GIB, words);
	give_back(device, &piece[1]);
	works(device, 8 * GIB);
	flexmem_device_close(device);
}

static void a_free_neighbour_joins_pieces(void **state)
{
	(void)state;
	fake.capacity = 12 * GIB;
	free_the_neighbour("fragmentation (enough is free, but in pieces; no memory for a region that is large enough)");
	fake_reset();
	fake.slots = 1;
	free_the_neighbour("fragmentation (enough is free, but in pieces; no slot for another region)");
	fake_reset();
	fake.max_regions = 1;
	free_the_neighbour("fragmentation (enough is free, but in pieces; max_regions allows no more)");
}

/* One region is full, and no further one comes. A free makes room. */
static void free_makes_room(const char *words)
{
	struct flexmem_device *device = open_device();
	struct flexmem_device *other = open_device();
	struct flexmem_allocated own = get(device, 6 * GIB);
	struct flexmem_allocated others = get(other, 6 * GIB);

	fails(device, GIB, words);
	give_back(other, &others);
	works(device, 6 * GIB);
	fails(device, GIB, "; own 12.0 GiB can be freed");
	give_back(device, &own);
	works(device, 6 * GIB);
	flexmem_device_close(other);
	flexmem_device_close(device);
}

static void a_free_makes_room(void **state)
{
	(void)state;
	fake.capacity = 12 * GIB;
	free_makes_room("the device has none left for a region that is large enough");
	fake_reset();
	fake.slots = 1;
	free_makes_room("no slot left (1 of 1 used)");
	fake_reset();
	fake.max_regions = 1;
	free_makes_room("no further region allowed (max_regions is 1)");
}

static void slots_kept_for_programs(void **state)
{
	struct flexmem_device *device;
	struct flexmem_allocated program;
	struct flexmem_allocated a;

	(void)state;
	fake.slots = 1;
	fake.program_slots = 1;
	device = open_device();
	assert_int_equal(flexmem_device_alloc(device, 12 * GIB, 0,
					      FLEXMEM_PROGRAM, &program,
					      sizeof(program)), 0);
	fails(device, GIB, "no slot left (1 of 1 used, 1 kept for programs)");
	assert_int_equal(flexmem_device_alloc(device, GIB, 0, FLEXMEM_PROGRAM,
					      &a, sizeof(a)), -ENOMEM);
	says(&a, "no slot for programs left (1 of the 1 slots are set aside)");
	give_back(device, &program);
	assert_int_equal(flexmem_device_alloc(device, GIB, 0, FLEXMEM_PROGRAM,
					      &a, sizeof(a)), 0);
	works(device, GIB);
	flexmem_device_close(device);
}

static void a_valid_request(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_alloc_request request = { .length = 0 };
	struct flexmem_allocated a;

	(void)state;
#define TRY(words) do { \
	assert_int_equal(flexmem_device_alloc_request(device, &request, \
						      sizeof(request), &a, \
						      sizeof(a)), -EINVAL); \
	says(&a, words); \
} while (0)
	TRY("invalid request: the length is 0");
	request.length = 1000;
	request.alignment = 3;
	TRY("invalid request: the alignment of 3 bytes is not a power of two");
	request.alignment = 2 * GIB;
	TRY("invalid request: the alignment of 2.0 GiB is above the largest of this device");
	request.alignment = 4096;
	request.placement = FLEXMEM_PLACE_BIND;
	request.domains = 2;
	TRY("invalid request: the device does not have domains 0x2, or they are too few");
#undef TRY
	request.domains = 1;
	assert_int_equal(flexmem_device_alloc_request(device, &request,
						      sizeof(request), &a,
						      sizeof(a)), 0);
	flexmem_device_close(device);
}

static void text_is(int error, const char *expected)
{
	char text[256];

	assert_int_equal(flexmem_error_text(error, NULL, 0, text,
					    sizeof(text)), 0);
	assert_string_equal(text, expected);
}

/* Errors that pass: the call is repeated. */
static void a_call_is_repeated(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	inject(FLEXMEM_CMD_ALLOC, 1, ETIMEDOUT);
	a = get(device, 1000);
	assert_int_equal(a.error, -ETIMEDOUT);
	text_is(a.error, "the device's firmware did not answer in time");
	works(device, 1000);
	inject(FLEXMEM_CMD_ALLOC, 1, EIO);
	a = get(device, 1000);
	assert_int_equal(a.error, -EIO);
	text_is(a.error, "the device's firmware failed, or a reset lost the allocation");
	works(device, 1000);
	inject(FLEXMEM_CMD_ALLOC, 1, ENOMEM);
	a = get(device, 1000);
	assert_int_equal(a.error, -ENOMEM);
	text_is(a.error, "out of host memory");
	works(device, 1000);
	flexmem_device_close(device);
}

static void a_resize_that_fits(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a = get(device, MIB);
	struct flexmem_allocated b = get(device, MIB);
	struct flexmem_resized r;

	(void)state;
	assert_int_equal(flexmem_device_resize(device, a.handle, 2 * MIB, &r,
					       sizeof(r)), -EAGAIN);
	text_is(-EAGAIN, "what follows the allocation is taken, or there is no event");
	assert_int_equal(flexmem_device_resize(device, a.handle, r.most, NULL,
					       0), 0);
	give_back(device, &b);
	assert_int_equal(flexmem_device_resize(device, a.handle, 2 * MIB, &r,
					       sizeof(r)), 0);
	flexmem_device_close(device);
}

/* Requests of a cache. */

static struct flexmem_cache_allocation ask(struct flexmem_cache *cache,
					   uint64_t bytes, uint64_t stream,
					   uint64_t pool, int error)
{
	const struct flexmem_cache_request request = {
		.bytes = bytes,
		.stream = stream,
		.pool = pool,
	};
	struct flexmem_cache_allocation a;

	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), error);
	return a;
}

static void refuses(struct flexmem_cache *cache, uint64_t bytes,
		    uint64_t stream, uint64_t pool, int error,
		    const char *words)
{
	struct flexmem_cache_allocation a =
		ask(cache, bytes, stream, pool, error);
	char text[1024];

	assert_int_equal(flexmem_cache_error_text(error, &a.failure,
						  sizeof(a.failure), text,
						  sizeof(text)), 0);
	assert_non_null(strstr(text, words));
}

static void serves(struct flexmem_cache *cache, uint64_t bytes, uint64_t stream,
		   uint64_t pool)
{
	assert_non_null(ask(cache, bytes, stream, pool, 0).token);
}

static void a_larger_fraction(void **state)
{
	struct flexmem_cache *cache =
		mock_cache("per_process_memory_fraction:0.5");

	(void)state;
	refuses(cache, 600 * MIB, 0, 0, -ENOMEM,
		"per_process_memory_fraction allows 512.0 MiB; a larger fraction may help");
	assert_int_equal(flexmem_cache_set_memory_fraction(cache, 1.0), 0);
	serves(cache, 600 * MIB, 0, 0);
	flexmem_cache_destroy(cache);
}

/* The device has too little, too, so the text does not name the fraction. */
static void a_fraction_that_would_not_help(void **state)
{
	struct flexmem_cache *cache;
	struct flexmem_cache *other = mock_cache("");
	const struct flexmem_cache_request request = { .bytes = 600 * MIB };
	struct flexmem_cache_allocation a;
	char text[1024];

	(void)state;
	take(other, 500 * MIB, 0);
	cache = mock_cache("per_process_memory_fraction:0.5");
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &a.failure,
						  sizeof(a.failure), text,
						  sizeof(text)), 0);
	assert_non_null(strstr(text, "per_process_memory_fraction allows"));
	assert_null(strstr(text, "help"));
	assert_int_equal(flexmem_cache_set_memory_fraction(cache, 1.0), 0);
	ask(cache, 600 * MIB, 0, 0, -ENOMEM);
	/* Exactly enough. */
	assert_int_equal(flexmem_cache_set_memory_fraction(cache, 0.5), 0);
	refuses(cache, 524 * MIB, 0, 0, -ENOMEM, "; a larger fraction may help");
	assert_int_equal(flexmem_cache_set_memory_fraction(cache, 1.0), 0);
	serves(cache, 524 * MIB, 0, 0);
	flexmem_cache_destroy(cache);
	flexmem_cache_destroy(other);
}

static int no_stream(void *user, uint64_t stream)
{
	(void)user;
	(void)stream;
	return 0;
}

static void the_end_of_a_capture(void **state)
{
	struct flexmem_cache *cache;
	uint64_t pool;
	void *token;

	(void)state;
	mock.capacity = 20 * MIB;
	cache = mock_cache_events("");
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	token = take(cache, 12 * MIB, 0);
	use(cache, token, 1);
	assert_int_equal(flexmem_cache_pool_begin(cache, pool, no_stream, NULL),
			 0);
	assert_int_equal(flexmem_cache_pool_capture(cache, pool), 0);
	give(cache, token);
	refuses(cache, 12 * MIB, 0, 0, -ENOMEM,
		"; freed memory that other streams use waits until the capture ends");
	assert_int_equal(flexmem_cache_pool_end(cache, pool), 0);
	serves(cache, 12 * MIB, 0, 0);
	flexmem_cache_destroy(cache);
}

/* Two fixed segments have room that a growing one would have in one piece. */
static void two_of_each(struct flexmem_cache *cache)
{
	void *tokens[2];

	take(cache, 4 * MIB, 0);
	tokens[0] = take(cache, 15 * MIB, 0);
	take(cache, 4 * MIB, 0);
	tokens[1] = take(cache, 15 * MIB, 0);
	give(cache, tokens[0]);
	give(cache, tokens[1]);
}

static void segments_that_grow(void **state)
{
	struct flexmem_cache *cache;

	(void)state;
	mock.capacity = 40 * MIB;
	cache = mock_cache("");
	two_of_each(cache);
	refuses(cache, 17 * MIB, 0, 0, -ENOMEM,
		"the largest free block has 16.0 MiB; the device says: the device has none left for a region that is large enough; expandable_segments:True may avoid this fragmentation");
	flexmem_cache_destroy(cache);
	cache = mock_cache("expandable_segments:True");
	two_of_each(cache);
	serves(cache, 17 * MIB, 0, 0);
	flexmem_cache_destroy(cache);
}

/* Small and large requests share segments that grow. */
static void segments_for_all_sizes(void **state)
{
	struct flexmem_cache *cache;

	(void)state;
	mock.capacity = 20 * MIB;
	cache = mock_cache("");
	take(cache, 2 * MIB, 0);
	refuses(cache, 1000, 0, 0, -ENOMEM,
		"in one block, which is in the pool of large requests, and this is a small one");
	flexmem_cache_destroy(cache);
	cache = mock_cache("");
	take(cache, 1000, 0);
	take(cache, 18 * MIB, 0);
	refuses(cache, MIB + 1, 0, 0, -ENOMEM,
		"in one block, which is in the pool of small requests, and this is a large one");
	flexmem_cache_destroy(cache);
	cache = mock_cache("expandable_segments:True");
	take(cache, 2 * MIB, 0);
	serves(cache, 1000, 0, 0);
	serves(cache, MIB + 1, 0, 0);
	flexmem_cache_destroy(cache);
}

static void the_stream_of_the_block(void **state)
{
	struct flexmem_cache *cache;

	(void)state;
	mock.capacity = 20 * MIB;
	cache = mock_cache_events("");
	take(cache, 2 * MIB, 3);
	refuses(cache, 5 * MIB, 0, 0, -ENOMEM,
		"which belongs to stream 3 and serves no other");
	serves(cache, 5 * MIB, 3, 0);
	flexmem_cache_destroy(cache);
}

static void a_pool_for_all(void **state)
{
	struct flexmem_cache *cache;
	uint64_t pool;

	(void)state;
	mock.capacity = 20 * MIB;
	cache = mock_cache("");
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	serves(cache, 2 * MIB, 0, pool);
	refuses(cache, 5 * MIB, 0, 0, -ENOMEM,
		"which belongs to private pool 1, and this is for no private pool");
	assert_int_equal(flexmem_cache_pool_set_flags(
				 cache, pool, FLEXMEM_CACHE_POOL_USE_ON_OOM),
			 0);
	serves(cache, 5 * MIB, 0, 0);
	flexmem_cache_destroy(cache);
}

static void a_pool_is_emptied(void **state)
{
	struct flexmem_cache *cache;
	uint64_t pool;

	(void)state;
	mock.capacity = 20 * MIB;
	cache = mock_cache("");
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	give(cache, ask(cache, 12 * MIB, 0, pool, 0).token);
	refuses(cache, 12 * MIB, 0, 0, -ENOMEM,
		"; private pool 1 keeps free segments: if no graph uses them, flexmem_cache_pool_empty() may help");
	assert_int_equal(flexmem_cache_pool_empty(cache, pool, NULL), 0);
	serves(cache, 12 * MIB, 0, 0);
	flexmem_cache_destroy(cache);
}

static void another_split_size(void **state)
{
	struct flexmem_cache *cache = mock_cache("max_split_size_mb:20");

	(void)state;
	give(cache, take(cache, 30 * MIB, 0));
	/* The provider refuses the block, so that it stays free. */
	mock.fail_frees = 9;
	mock.fail_allocs = 9;
	refuses(cache, 5 * MIB, 0, 0, -ENOMEM,
		"which max_split_size_mb keeps for larger requests");
	assert_int_equal(flexmem_cache_set_setting(cache, "max_split_size_mb",
						   "100"), 0);
	serves(cache, 5 * MIB, 0, 0);
	mock.fail_frees = 0;
	flexmem_cache_destroy(cache);
}

static void several_requests(void **state)
{
	struct flexmem_cache *cache = mock_cache("");

	(void)state;
	refuses(cache, UINT64_MAX, 0, 0, -ENOMEM,
		"too large: one allocation of a cache has at most 8.0 TiB");
	serves(cache, GIB / 2, 0, 0);
	flexmem_cache_destroy(cache);
}

static void a_pool_that_is_there(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	uint64_t pool;

	(void)state;
	refuses(cache, MIB, 0, 1, -ENOENT,
		"private pool 1 was never made, nor was another one");
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	serves(cache, MIB, 0, pool);
	refuses(cache, MIB, 0, 2, -ENOENT,
		"private pool 2 was never made: the last one is 1");
	assert_int_equal(flexmem_cache_pool_release(cache, pool), 0);
	refuses(cache, MIB, 0, pool, -ENOENT,
		"private pool 1 was released, and nothing can be allocated into it any more");
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	serves(cache, MIB, 0, pool);
	flexmem_cache_destroy(cache);
}

static void nothing(void *user, uint64_t bytes)
{
	(void)user;
	(void)bytes;
}

static void what_is_there(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	void *token = take(cache, 1000, 0);

	(void)state;
	give(cache, token);
	assert_int_equal(flexmem_cache_free(cache, token), -EINVAL);
	assert_int_equal(flexmem_cache_remove_oom_callback(cache, nothing,
							   NULL), -ENOENT);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, nothing, NULL),
			 0);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, nothing, NULL),
			 -EEXIST);
	assert_int_equal(flexmem_cache_remove_oom_callback(cache, nothing,
							   NULL), 0);
	give(cache, take(cache, 1000, 0));
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_smaller_request),
		TEST(a_free_gives_back_a_handle),
		TEST(a_limit_of_bytes),
		TEST(a_limit_of_regions_or_handles),
		TEST(a_free_neighbour_joins_pieces),
		TEST(a_free_makes_room),
		TEST(slots_kept_for_programs),
		TEST(a_valid_request),
		TEST(a_call_is_repeated),
		TEST(a_resize_that_fits),
		CACHE_TEST(a_larger_fraction),
		CACHE_TEST(a_fraction_that_would_not_help),
		CACHE_TEST(the_end_of_a_capture),
		CACHE_TEST(segments_that_grow),
		CACHE_TEST(segments_for_all_sizes),
		CACHE_TEST(the_stream_of_the_block),
		CACHE_TEST(a_pool_for_all),
		CACHE_TEST(a_pool_is_emptied),
		CACHE_TEST(another_split_size),
		CACHE_TEST(several_requests),
		CACHE_TEST(a_pool_that_is_there),
		CACHE_TEST(what_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
