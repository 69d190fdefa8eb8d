// SPDX-License-Identifier: GPL-2.0
/*
 * Exhausted host memory: for each n there is a run in which the n-th allocation
 * of the library fails. Linked with malloc() and the like intercepted.
 */
#include "cache_mock.h"

#include <pthread.h>

/* The number of the allocation that fails, from 1 on; 0: none. */
static unsigned int fail_at;
static unsigned int made;
static bool failed;
/* Memory that the library has allocated and not freed. */
static long outstanding;

static bool fails_now(void)
{
	made++;
	if (made != fail_at)
		return false;
	failed = true;
	return true;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	if (fails_now())
		return NULL;
	outstanding++;
	return __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	if (fails_now())
		return NULL;
	outstanding++;
	return __real_calloc(count, size);
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	if (fails_now())
		return NULL;
	outstanding++;
	return __real_aligned_alloc(alignment, size);
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size)
{
	if (fails_now())
		return NULL;
	outstanding += !memory;
	return __real_realloc(memory, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
	if (fails_now())
		return NULL;
	outstanding++;
	return __real_strdup(text);
}

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
	outstanding -= memory != NULL;
	__real_free(memory);
}

/* The action of another thread before the next mutex is locked, or NULL. */
static void (*meanwhile)(void);

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	void (*now)(void) = failed ? meanwhile : NULL;

	if (now) {
		meanwhile = NULL;
		now();
	}
	return __real_pthread_mutex_lock(mutex);
}

/* State that a failed call must not change. */
struct seen {
	struct flexmem_cache_statistics f;
};

static struct seen look(struct flexmem_cache *cache)
{
	struct seen seen = { .f = figures(cache) };

	/* These figures count calls, failed ones included. */
	seen.f.num_hits = 0;
	seen.f.num_misses = 0;
	seen.f.num_ooms = 0;
	seen.f.num_first_failures = 0;
	seen.f.num_sync_all_streams = 0;
	return seen;
}

/*
 * Checks the result of a call: 0, or -ENOMEM for lack of host memory. Returns
 * whether it succeeded.
 */
static bool check(int err)
{
	if (err) {
		assert_int_equal(err, -ENOMEM);
		assert_true(failed);
	}
	return !err;
}

static void *maybe(struct flexmem_cache *cache, uint64_t bytes,
		   uint64_t pool, const char *tag)
{
	struct flexmem_cache_request request = {
		.bytes = bytes, .pool = pool, .tag = tag,
	};
	static const struct flexmem_cache_failure nothing;
	struct flexmem_cache_allocation a;
	struct seen before = look(cache);
	struct seen after;
	bool provider;

	if (check(flexmem_cache_alloc_request(cache, &request, sizeof(request),
					      &a, sizeof(a))))
		return a.token;
	assert_null(a.token);
	/* The failed allocation may be one that the test's provider made. */
	provider = a.failure.error == -ENOMEM;
	if (!provider)
		assert_memory_equal(&a.failure, &nothing, sizeof(nothing));
	/* A new segment is allowed. The live allocations must be the same. */
	after = look(cache);
	assert_memory_equal(&before.f.allocation, &after.f.allocation,
			    sizeof(before.f.allocation));
	assert_memory_equal(&before.f.active, &after.f.active,
			    sizeof(before.f.active));
	assert_memory_equal(&before.f.requested_bytes,
			    &after.f.requested_bytes,
			    sizeof(before.f.requested_bytes));
	return NULL;
}

static void oom(void *user, uint64_t bytes)
{
	(void)user;
	(void)bytes;
}

static int no_stream(void *user, uint64_t stream)
{
	(void)user;
	(void)stream;
	return 0;
}

/* Restores a checkpoint. Returns the new token; NULL: it failed. */
static void *to_and_fro(struct flexmem_cache *cache, uint64_t pool, void *token)
{
	struct flexmem_cache_checkpoint *checkpoint;

	if (check(flexmem_cache_pool_begin(cache, pool, no_stream, NULL)))
		assert_int_equal(flexmem_cache_pool_end(cache, pool), 0);
	if (!token || !check(flexmem_cache_pool_checkpoint(cache, pool,
							   &checkpoint)))
		return token;
	assert_int_equal(flexmem_cache_free(cache, token), 0);
	token = NULL;
	if (check(flexmem_cache_pool_restore(cache, checkpoint)))
		token = flexmem_cache_checkpoint_token(checkpoint, 0);
	flexmem_cache_checkpoint_free(checkpoint);
	return token;
}

/* Makes each call that allocates host memory. */
static void scenario(struct flexmem_cache *cache)
{
	struct flexmem_cache_tag *sums;
	void *tokens[6] = { NULL };
	uint64_t pool = 0;
	size_t count;
	char *text;
	size_t i;

	tokens[0] = maybe(cache, 1000, 0, NULL);
	tokens[1] = maybe(cache, 1000, 0, "tag");
	tokens[2] = maybe(cache, 3 * MIB, 0, NULL);
	tokens[3] = maybe(cache, 30 * MIB, 0, NULL);
	tokens[4] = maybe(cache, 30 * MIB, 0, NULL);
	if (check(flexmem_cache_pool_create(cache, &pool)))
		tokens[5] = maybe(cache, 1000, pool, "other");
	if (pool)
		tokens[5] = to_and_fro(cache, pool, tokens[5]);
	for (i = 0; i < 6; i++)
		check(flexmem_cache_record_stream(cache, tokens[i], i));
	if (check(flexmem_cache_add_oom_callback(cache, oom, NULL)))
		assert_int_equal(flexmem_cache_remove_oom_callback(cache, oom,
								   NULL), 0);
	check(flexmem_cache_set_history(cache, 10));
	if (check(flexmem_cache_snapshot(cache, FLEXMEM_CACHE_EVERY_POOL,
					 &text, NULL)))
		flexmem_cache_text_free(text);
	if (check(flexmem_cache_tags(cache, &sums, sizeof(*sums), &count)))
		flexmem_cache_tags_free(sums);
	/* Calls that free something must not need host memory. */
	check(flexmem_cache_set_history(cache, 0));
	for (i = 0; i < 6; i++)
		assert_int_equal(flexmem_cache_free(cache, tokens[i]), 0);
	if (pool)
		assert_int_equal(flexmem_cache_pool_release(cache, pool), 0);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).allocation[0].current, 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
}

static void every_allocation(const char *configuration)
{
	struct flexmem_cache_options options = mock_options(configuration);
	struct flexmem_cache *cache;
	unsigned int n = 0;

	options.events = &mock_events;
	options.events_size = sizeof(mock_events);
	do {
		failed = false;
		made = 0;
		fail_at = ++n;
		if (check(flexmem_cache_create(&cache, &options,
					       sizeof(options)))) {
			scenario(cache);
			fail_at = 0;
			flexmem_cache_destroy(cache);
		}
		mock.events = 0;
		mock.destroys = 0;
		memset(mock.destroyed, 0, sizeof(mock.destroyed));
		memset(mock.happened, 0, sizeof(mock.happened));
	} while (failed);
	fail_at = 0;
	/* Each turn of the loop has made another allocation fail. */
	assert_true(n > 20);
}

static void fixed_segments(void **state)
{
	(void)state;
	every_allocation("max_split_size_mb:64");
}

/*
 * The provider takes no memory back, so all memory that it has given must be in
 * a segment, whichever allocation of the library failed.
 */
static void nothing_is_lost(const char *configuration)
{
	struct flexmem_cache_options options = mock_options(configuration);
	struct flexmem_cache *cache;
	unsigned int n = 0;
	uint64_t total;
	uint64_t free;

	do {
		failed = false;
		made = 0;
		fail_at = ++n;
		if (!check(flexmem_cache_create(&cache, &options,
						sizeof(options))))
			continue;
		mock.fail_frees = UINT32_MAX;
		maybe(cache, 1000, 0, NULL);
		maybe(cache, 3 * MIB, 0, NULL);
		maybe(cache, 30 * MIB, 0, NULL);
		fail_at = 0;
		assert_int_equal(mock.below.memory_info(mock.below.user, &free,
							&total), 0);
		assert_int_equal(figures(cache).reserved_bytes[0].current,
				 total - free);
		mock.fail_frees = 0;
		flexmem_cache_destroy(cache);
	} while (failed);
	fail_at = 0;
	assert_true(n > 8);
}

static void provider_takes_nothing_back(void **state)
{
	(void)state;
	nothing_is_lost("");
	nothing_is_lost("expandable_segments:True");
}

static int map(void *user, uint64_t handle, uint64_t bytes, void **pointer)
{
	(void)user;
	(void)handle;
	(void)bytes;
	/* The map needs no host memory. */
	*pointer = &mock;
	return 0;
}

static int unmap(void *user, uint64_t handle, void *pointer, uint64_t bytes)
{
	(void)user;
	(void)handle;
	(void)bytes;
	assert_ptr_equal(pointer, &mock);
	return 0;
}

/* If the pointer table cannot grow, the request fails. */
static void pointers(void **state)
{
	struct flexmem_cache_options options = mock_options(NULL);
	struct flexmem_cache_provider provider = *options.provider;
	const struct flexmem_cache_request request = { .bytes = 1000 };
	struct flexmem_cache_allocation a;
	struct flexmem_cache *cache;
	unsigned int n = 0;

	(void)state;
	provider.map = map;
	provider.unmap = unmap;
	options.provider = &provider;
	options.flags = FLEXMEM_CACHE_MAPPED;
	do {
		failed = false;
		made = 0;
		fail_at = ++n;
		if (!check(flexmem_cache_create(&cache, &options,
						sizeof(options))))
			continue;
		if (check(flexmem_cache_alloc_pointer(cache, &request,
						      sizeof(request), &a,
						      sizeof(a))))
			assert_int_equal(flexmem_cache_free_pointer(cache,
								    a.pointer),
					 0);
		assert_int_equal(figures(cache).allocation[0].current, 0);
		fail_at = 0;
		flexmem_cache_destroy(cache);
	} while (failed);
	fail_at = 0;
	assert_true(n > 8);
}

static void growing_segments(void **state)
{
	(void)state;
	every_allocation("expandable_segments:True");
}

static void flat(void **state)
{
	struct flexmem_cache_provider provider;
	struct flexmem_cache_flat *space;

	(void)state;
	made = 0;
	fail_at = 1;
	assert_int_equal(flexmem_cache_flat_create(&space, GIB, &provider,
						   sizeof(provider)), -ENOMEM);
	fail_at = 0;
}

static struct flexmem_cache *shared;

/* Takes the rest of the free memory. */
static void take_the_rest(void)
{
	take(shared, 15 * MIB, 0);
}

/*
 * Host memory was short only for a moment. After that the device has no memory.
 */
static void host_recovers(void **state)
{
	struct flexmem_cache_request request = { .bytes = 5 * MIB };
	struct flexmem_cache_allocation a;

	(void)state;
	shared = mock_cache("");
	take(shared, 5 * MIB, 0);
	mock.fail_allocs = 10;
	made = 0;
	failed = false;
	fail_at = 1;
	meanwhile = take_the_rest;
	assert_int_equal(flexmem_cache_alloc_request(shared, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	fail_at = 0;
	assert_true(failed);
	assert_null(meanwhile);
	expect_counters(shared, 1, 0, 1);
	assert_int_equal(a.failure.device.limit, FLEXMEM_LIMIT_SLOTS);
	flexmem_cache_destroy(shared);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(fixed_segments),
		CACHE_TEST(growing_segments),
		CACHE_TEST(provider_takes_nothing_back),
		CACHE_TEST(pointers),
		CACHE_TEST(host_recovers),
		CACHE_TEST(flat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
