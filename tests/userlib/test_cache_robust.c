// SPDX-License-Identifier: GPL-2.0
/* Providers and callbacks that return what they should not. */
#include "cache_mock.h"

static const struct flexmem_cache_provider *below;
/* The memory that the next calls of the provider return instead; by @change. */
static void (*change)(struct flexmem_cache_memory *memory, uint64_t bytes);
static int result;
static unsigned int frees;

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

static struct flexmem_cache *start(const char *configuration)
{
	struct flexmem_cache_options options = mock_options(configuration);
	static struct flexmem_cache_provider provider;
	struct flexmem_cache *cache = NULL;

	below = options.provider;
	provider = *below;
	provider.alloc = alloc;
	provider.free = release;
	options.provider = &provider;
	change = NULL;
	result = 0;
	frees = 0;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	return cache;
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

static struct flexmem_cache_allocation first;

/* The last byte of the first segment. */
static void in_use(struct flexmem_cache_memory *memory, uint64_t bytes)
{
	(void)bytes;
	memory->address = first.address;
	memory->address.offset += 20 * MIB - 128;
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
	/* It went back. */
	assert_int_equal(frees, before + 1);
	assert_int_equal(figures(cache).segment[0].current, 1);
}

/* Addresses that cannot be: the memory goes back, and the cache goes on. */
static void impossible_addresses(void **state)
{
	struct flexmem_cache *cache = start("");

	(void)state;
	first = lookup(cache, take(cache, 2 * MIB, 0));
	refused(cache, not_aligned, "memory that is not aligned (region ");
	refused(cache, beyond_the_end, "memory that goes beyond the last");
	refused(cache, in_use, "memory that is in use already (region ");
	give(cache, take(cache, 30 * MIB, 0));
	flexmem_cache_destroy(cache);
}

/* A handle of a segment that is in use is not given back. */
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

/* A positive number, and the errno by which the cache tells of a fork. */
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

static int no_child(void *user)
{
	(void)user;
	return -ECHILD;
}

/* A device that cannot be waited for: all segments go back nevertheless. */
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
	/* The teardown sees that the provider has everything back. */
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(impossible_addresses),
		CACHE_TEST(a_handle_twice),
		CACHE_TEST(results_that_are_no_errno),
		CACHE_TEST(echild_of_an_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
