// SPDX-License-Identifier: GPL-2.0
/* Providers and callbacks that return nonsense. */
#include "cache_mock.h"

static const struct flexmem_cache_provider *below;
/* Changes what the provider's next calls return. */
static void (*change)(struct flexmem_cache_memory *memory, uint64_t bytes);
static int result;
static int map_result;
static int info_result;
static uint64_t info_free;
static unsigned int frees;
static unsigned int grows;
static unsigned int shrinks;
static struct flexmem_cache_allocation first;

static int alloc(void *user, uint64_t bytes, uint64_t alignment, uint32_t flags,
		 struct flexmem_cache_memory *memory,
		 struct flexmem_failure *failure)
{
	int err;

	if (result)
		return result;
	err = below->alloc(user, bytes, alignment, flags, memory, failure);
	if (!err && change)
		change(memory, bytes);
	return err;
}

static int release(void *user, uint64_t handle)
{
	frees++;
	return below->free(user, handle);
}

static int grow(void *user, uint64_t handle, uint64_t old_bytes, uint64_t bytes,
		struct flexmem_failure *failure)
{
	(void)user;
	(void)handle;
	(void)old_bytes;
	(void)bytes;
	(void)failure;
	grows++;
	return 0;
}

static int shrink(void *user, uint64_t handle, uint64_t old_bytes,
		  uint64_t bytes)
{
	(void)user;
	(void)handle;
	assert_int_equal(old_bytes - bytes, 2 * MIB);
	shrinks++;
	return 0;
}

static int map(void *user, uint64_t handle, uint64_t bytes, void **pointer)
{
	(void)user;
	(void)handle;
	(void)bytes;
	(void)pointer;
	return map_result;
}

static int unmap(void *user, uint64_t handle, void *pointer, uint64_t bytes)
{
	(void)user;
	(void)handle;
	(void)pointer;
	(void)bytes;
	return 0;
}

static int memory_info(void *user, uint64_t *free, uint64_t *total)
{
	(void)user;
	*free = info_free;
	*total = GIB;
	return info_result;
}

static int pressure(void *user, struct flexmem_pressure_event *event)
{
	(void)user;
	(void)event;
	return result;
}

static struct flexmem_cache *start_with(const char *configuration,
					uint32_t flags)
{
	struct flexmem_cache_options options = mock_options(configuration);
	static struct flexmem_cache_provider provider;
	struct flexmem_cache *cache = NULL;

	below = options.provider;
	provider = *below;
	provider.alloc = alloc;
	provider.free = release;
	provider.grow = grow;
	provider.shrink = shrink;
	provider.map = map;
	provider.unmap = unmap;
	provider.memory_info = memory_info;
	provider.pressure = pressure;
	options.provider = &provider;
	options.flags |= flags;
	grows = 0;
	shrinks = 0;
	change = NULL;
	result = 0;
	frees = 0;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	return cache;
}

static struct flexmem_cache *start(const char *configuration)
{
	return start_with(configuration, 0);
}

static void not_aligned(struct flexmem_cache_memory *memory, uint64_t bytes)
{
	(void)bytes;
	memory->address.offset += 64;
}

static void beyond_the_end(struct flexmem_cache_memory *memory, uint64_t bytes)
{
	memory->address.offset = UINT64_MAX - bytes + 129;
	memory->address.offset -= memory->address.offset % 128;
}


/* Returns memory that overlaps the last byte of the first segment. */
static void in_use(struct flexmem_cache_memory *memory, uint64_t bytes)
{
	(void)bytes;
	memory->address = first.address;
	memory->address.offset += 20 * MIB - 128;
}

static void at_the_same_place(struct flexmem_cache_memory *memory,
			      uint64_t bytes)
{
	(void)bytes;
	memory->address = first.address;
}

/* Returns memory whose last bytes are the first ones of the first segment. */
static void into_it(struct flexmem_cache_memory *memory, uint64_t bytes)
{
	memory->address = first.address;
	memory->address.offset -= bytes - 128;
}

static void high_up(struct flexmem_cache_memory *memory, uint64_t bytes)
{
	(void)bytes;
	memory->address.offset += GIB;
}

static void refused(struct flexmem_cache *cache,
		    void (*how)(struct flexmem_cache_memory *memory,
				uint64_t bytes), const char *why)
{
	unsigned int before = frees;

	mock.log[0] = '\0';
	change = how;
	assert_int_equal(try_alloc(cache, 30 * MIB), -EIO);
	change = NULL;
	assert_non_null(strstr(mock.log, why));
	/* The cache has freed the memory. */
	assert_int_equal(frees, before + 1);
	assert_int_equal(figures(cache).segment[0].current, 1);
}

/* The cache frees memory with impossible addresses, and goes on. */
static void impossible_addresses(void **state)
{
	struct flexmem_cache *cache = start("");

	(void)state;
	change = high_up;
	first = lookup(cache, take(cache, 2 * MIB, 0));
	refused(cache, not_aligned, "memory that is not aligned (region ");
	refused(cache, beyond_the_end, "memory that goes beyond the last");
	refused(cache, in_use, "memory that is in use already (region ");
	refused(cache, at_the_same_place, "memory that is in use already");
	refused(cache, into_it, "memory that is in use already (region ");
	give(cache, take(cache, 30 * MIB, 0));
	flexmem_cache_destroy(cache);
}

/*
 * The true handle of new memory. The provider returns the handle of the first
 * segment instead, which the cache must not free.
 */
static uint64_t lost;

static void same_handle(struct flexmem_cache_memory *memory, uint64_t bytes)
{
	in_use(memory, bytes);
	lost = memory->handle;
	memory->handle = first.handle;
}

static void a_handle_twice(void **state)
{
	struct flexmem_cache *cache = start("");

	(void)state;
	first = lookup(cache, take(cache, 2 * MIB, 0));
	change = same_handle;
	assert_int_equal(try_alloc(cache, 30 * MIB), -EIO);
	assert_int_equal(frees, 0);
	assert_int_equal(release(below->user, lost), 0);
	flexmem_cache_destroy(cache);
}

/*
 * Results of a provider that are no valid errno: a positive number, and the
 * errno that the cache itself uses after a fork.
 */
static void results_that_are_no_errno(void **state)
{
	static const int results[] = { 1, 5, -ECHILD };
	struct flexmem_cache *cache = start("");
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		result = results[i];
		assert_int_equal(try_alloc(cache, MIB), -EIO);
	}
	result = 0;
	give(cache, take(cache, MIB, 0));
	flexmem_cache_destroy(cache);
}

/* The last map succeeds, but sets no pointer. */
static void results_of_a_map(void **state)
{
	static const int results[] = { 1, -ECHILD, 0 };
	struct flexmem_cache *cache = start_with("", FLEXMEM_CACHE_MAPPED);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		map_result = results[i];
		assert_int_equal(try_alloc(cache, MIB), -EIO);
		assert_int_equal(frees, i + 1);
	}
	map_result = 0;
	flexmem_cache_destroy(cache);
}

static void results_of_pressure(void **state)
{
	static const int results[] = { 1, -ECHILD };
	struct flexmem_cache *cache = start("");
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		result = results[i];
		assert_int_equal(flexmem_cache_serve_pressure(cache, NULL),
				 -EIO);
	}
	result = 0;
	flexmem_cache_destroy(cache);
}

/*
 * Impossible answers of memory_info: more free bytes than the total, and
 * results that are not an errno.
 */
static void impossible_figures(void **state)
{
	struct flexmem_cache *cache =
		start("per_process_memory_fraction:0.001");
	uint64_t total;
	uint64_t free;

	(void)state;
	info_free = GIB + 1;
	assert_int_equal(flexmem_cache_memory_info(cache, &free, &total), -EIO);
	/*
	 * If the provider cannot tell the total, the memory fraction has no
	 * effect, and the cache logs a warning.
	 */
	give(cache, take(cache, 30 * MIB, 0));
	assert_non_null(strstr(mock.log, "is not known (error 5)"));
	info_free = GIB;
	assert_int_equal(flexmem_cache_memory_info(cache, &free, &total), 0);
	info_result = -ECHILD;
	assert_int_equal(flexmem_cache_memory_info(cache, &free, &total), -EIO);
	info_result = 0;
	flexmem_cache_destroy(cache);
}

/* The provider grows a segment into another one. The cache must refuse that. */
static void next_to_it(struct flexmem_cache_memory *memory, uint64_t bytes)
{
	(void)bytes;
	memory->address = first.address;
	memory->address.offset += 2 * MIB;
}

static void growth_into_another(void **state)
{
	struct flexmem_cache *cache = start("expandable_segments:True");

	(void)state;
	first = lookup(cache, take(cache, 2 * MIB, 0));
	change = next_to_it;
	take(cache, 2 * MIB, 1);
	change = NULL;
	/* The cache shrinks the first segment again. The second may grow. */
	mock.log[0] = '\0';
	assert_int_equal(try_alloc(cache, 2 * MIB), -EIO);
	assert_non_null(strstr(mock.log, "memory that is in use already"));
	assert_int_equal(grows, 1);
	assert_int_equal(shrinks, 1);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 4 * MIB);
	take(cache, 2 * MIB, 1);
	assert_int_equal(grows, 2);
	assert_int_equal(shrinks, 1);
	flexmem_cache_destroy(cache);
}

static int no_child(void *user)
{
	(void)user;
	return -ECHILD;
}

/* All segments are freed even if the wait for the device fails. */
static void echild_of_an_event(void **state)
{
	struct flexmem_cache_options options = mock_options("");
	struct flexmem_cache_events events = mock_events;
	struct flexmem_cache *cache = NULL;
	void *token;

	(void)state;
	events.synchronize_device = no_child;
	options.events = &events;
	options.events_size = sizeof(events);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	token = take(cache, MIB, 0);
	assert_int_equal(flexmem_cache_record_stream(cache, token, 1), 0);
	give(cache, token);
	/*
	 * The teardown checks that all memory has been returned to the
	 * provider.
	 */
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(impossible_addresses),
		CACHE_TEST(a_handle_twice),
		CACHE_TEST(results_that_are_no_errno),
		CACHE_TEST(results_of_a_map),
		CACHE_TEST(results_of_pressure),
		CACHE_TEST(impossible_figures),
		CACHE_TEST(growth_into_another),
		CACHE_TEST(echild_of_an_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
