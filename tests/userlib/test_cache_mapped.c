// SPDX-License-Identifier: GPL-2.0
/* Caches that map their segments: pointers, and frees by pointer. */
#include "cache_mock.h"

#include <pthread.h>
#include <sys/mman.h>

#define MAPS 64

/* The mappings of the mock's segments, and the faults that a test injects. */
static struct {
	struct {
		uint64_t handle;
		uint64_t bytes;
		char *pointer;
	} there[MAPS];
	unsigned int maps;
	unsigned int unmaps;
	unsigned int fail_maps;
	unsigned int fail_unmaps;
	int error;
	struct flexmem_cache_provider provider;
} card;

static int card_map(void *user, uint64_t handle, uint64_t bytes, void **pointer)
{
	size_t i = 0;

	assert_ptr_equal(user, &mock);
	if (card.fail_maps) {
		card.fail_maps--;
		return card.error;
	}
	while (card.there[i].pointer)
		assert_true(++i < MAPS);
	card.there[i].handle = handle;
	card.there[i].bytes = bytes;
	card.there[i].pointer = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(card.there[i].pointer != MAP_FAILED);
	*pointer = card.there[i].pointer;
	card.maps++;
	return 0;
}

static int card_unmap(void *user, uint64_t handle, void *pointer, uint64_t bytes)
{
	size_t i = 0;

	assert_ptr_equal(user, &mock);
	if (card.fail_unmaps) {
		card.fail_unmaps--;
		return card.error;
	}
	while (card.there[i].pointer != pointer)
		assert_true(++i < MAPS);
	assert_int_equal(card.there[i].handle, handle);
	assert_int_equal(card.there[i].bytes, bytes);
	munmap(pointer, bytes);
	card.there[i].pointer = NULL;
	card.unmaps++;
	return 0;
}

static int mapped_setup(void **state)
{
	memset(&card, 0, sizeof(card));
	card.error = -EIO;
	return mock_setup(state);
}

/* Every mapping must have been removed. */
static int mapped_teardown(void **state)
{
	assert_int_equal(card.maps, card.unmaps);
	return mock_teardown(state);
}

static struct flexmem_cache_options mapped_options(const char *configuration)
{
	struct flexmem_cache_options options = mock_options(configuration);

	card.provider = *options.provider;
	card.provider.map = card_map;
	card.provider.unmap = card_unmap;
	options.provider = &card.provider;
	options.flags = FLEXMEM_CACHE_MAPPED;
	return options;
}

static struct flexmem_cache *mapped_cache(const char *configuration)
{
	struct flexmem_cache_options options = mapped_options(configuration);
	struct flexmem_cache *cache;

	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	return cache;
}

static int try_pointer(struct flexmem_cache *cache, uint64_t bytes,
		       struct flexmem_cache_allocation *allocation)
{
	const struct flexmem_cache_request request = { .bytes = bytes };

	return flexmem_cache_alloc_pointer(cache, &request, sizeof(request),
					   allocation, sizeof(*allocation));
}

static struct flexmem_cache_allocation get(struct flexmem_cache *cache,
					   uint64_t bytes)
{
	struct flexmem_cache_allocation allocation;

	assert_int_equal(try_pointer(cache, bytes, &allocation), 0);
	return allocation;
}

static void pointers_lead_to_the_bytes(void **state)
{
	struct flexmem_cache *cache = mapped_cache(NULL);
	struct flexmem_cache_allocation a = get(cache, 1000);
	struct flexmem_cache_allocation b = get(cache, 30 * MIB);
	struct flexmem_cache_allocation c;
	void *token = take(cache, 500, 0);

	(void)state;
	assert_int_equal(card.maps, 2);
	assert_int_equal(mock.last_flags, FLEXMEM_CACHE_MAPPABLE);
	assert_ptr_equal(a.pointer, card.there[0].pointer + a.offset);
	assert_ptr_equal(b.pointer, card.there[1].pointer + b.offset);
	memset(b.pointer, 7, 30 * MIB);
	/*
	 * lookup() gives the pointer to any byte of an allocation, whichever
	 * call has made the allocation.
	 */
	c = lookup(cache, (char *)token + 499);
	assert_ptr_equal(c.pointer, (char *)a.pointer + c.offset - a.offset);
	assert_int_equal(flexmem_cache_free_pointer(cache, a.pointer), 0);
	assert_int_equal(flexmem_cache_free_pointer(cache, b.pointer), 0);
	give(cache, token);
	/* The segment stays mapped as long as the cache has the segment. */
	assert_int_equal(card.unmaps, 0);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(card.unmaps, 2);
	flexmem_cache_destroy(cache);
}

static void a_cache_that_maps_nothing(void **state)
{
	struct flexmem_cache *cache = mock_cache(NULL);
	struct flexmem_cache_allocation a;
	void *token = take(cache, 1000, 0);

	(void)state;
	assert_null(lookup(cache, token).pointer);
	assert_int_equal(try_pointer(cache, 1000, &a), -EOPNOTSUPP);
	assert_int_equal(flexmem_cache_free_pointer(cache, token), -EOPNOTSUPP);
	assert_int_equal(flexmem_cache_lookup_pointer(cache, token, &a,
						      sizeof(a)), -EOPNOTSUPP);
	assert_int_equal(flexmem_cache_free_pointer(NULL, token), -EINVAL);
	flexmem_cache_destroy(cache);
}

static void a_provider_that_cannot_map(void **state)
{
	struct flexmem_cache_options options = mapped_options(NULL);
	struct flexmem_cache *cache;

	(void)state;
	card.provider.unmap = NULL;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EOPNOTSUPP);
	card.provider.unmap = card_unmap;
	card.provider.map = NULL;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EOPNOTSUPP);
}

static void segments_that_are_mapped_do_not_grow(void **state)
{
	struct flexmem_cache *cache = mapped_cache("expandable_segments:True");

	(void)state;
	assert_int_equal(mock.warnings, 1);
	assert_non_null(strstr(mock.log, "expandable_segments has no effect"));
	get(cache, 1000);
	assert_int_equal(mock.last_flags, FLEXMEM_CACHE_MAPPABLE);
	flexmem_cache_destroy(cache);
	assert_int_equal(mock.grows + mock.shrinks, 0);
}

static void a_map_that_fails(void **state)
{
	struct flexmem_cache *cache = mapped_cache(NULL);
	struct flexmem_cache_allocation a;

	(void)state;
	card.fail_maps = 1;
	assert_int_equal(try_pointer(cache, 1000, &a), -EIO);
	assert_null(a.pointer);
	assert_int_equal(mock.frees, 1);
	card.error = -ENOMEM;
	card.fail_maps = 1;
	assert_int_equal(try_pointer(cache, 1000, &a), -ENOMEM);
	/*
	 * Host memory was exhausted, so the failure has no figures of the
	 * device.
	 */
	assert_int_equal(a.failure.asked, 0);
	assert_int_equal(mock.frees, 2);
	get(cache, 1000);
	flexmem_cache_destroy(cache);
}

/*
 * If the provider refuses to take a segment back, the cache maps the segment
 * again and continues to use it.
 */
static void a_segment_that_is_refused(void **state)
{
	struct flexmem_cache *cache = mapped_cache(NULL);
	struct flexmem_cache_allocation a = get(cache, 1000);

	(void)state;
	assert_int_equal(flexmem_cache_free_pointer(cache, a.pointer), 0);
	mock.error = -EIO;
	mock.fail_frees = 1;
	assert_int_equal(flexmem_cache_empty(cache, NULL), -EIO);
	assert_int_equal(card.unmaps, 1);
	assert_int_equal(card.maps, 2);
	a = get(cache, 1000);
	assert_int_equal(mock.allocs, 1);
	memset(a.pointer, 1, 1000);
	assert_int_equal(flexmem_cache_free_pointer(cache, a.pointer), 0);

	/*
	 * If the segment cannot be mapped again, it serves no request, and is
	 * returned later.
	 */
	mock.fail_frees = 1;
	card.fail_maps = 1;
	assert_int_equal(flexmem_cache_empty(cache, NULL), -EIO);
	a = get(cache, 1000);
	assert_int_equal(mock.allocs, 2);
	memset(a.pointer, 1, 1000);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).segment[0].current, 1);

	/* If the unmap fails, the cache does not free the segment. */
	assert_int_equal(flexmem_cache_free_pointer(cache, a.pointer), 0);
	mock.frees = 0;
	card.fail_unmaps = 1;
	assert_int_equal(flexmem_cache_empty(cache, NULL), -EIO);
	assert_int_equal(mock.frees, 0);
	flexmem_cache_destroy(cache);
}

static void only_pointers_of_the_cache(void **state)
{
	struct flexmem_cache *cache = mapped_cache(NULL);
	struct flexmem_cache_allocation a = get(cache, 1000);
	struct flexmem_cache_allocation b = get(cache, 1000);
	struct flexmem_cache_allocation none = get(cache, 0);
	char *token = take(cache, 1000, 0);
	char *other = lookup(cache, token).pointer;

	(void)state;
	assert_null(none.pointer);
	assert_int_equal(flexmem_cache_free_pointer(cache, NULL), 0);
	assert_int_equal(flexmem_cache_free_pointer(cache, (char *)a.pointer + 8),
			 -EINVAL);
	assert_int_equal(flexmem_cache_free_pointer(cache, a.token), -EINVAL);
	assert_int_equal(flexmem_cache_free_pointer(cache, other), -EINVAL);
	assert_int_equal(flexmem_cache_lookup_pointer(cache, b.pointer, &none,
						      sizeof(none)), 0);
	assert_ptr_equal(none.token, b.token);
	assert_int_equal(none.requested, 1000);
	assert_int_equal(flexmem_cache_lookup_pointer(cache, NULL, &none,
						      sizeof(none)), -EINVAL);
	assert_int_equal(flexmem_cache_lookup_pointer(cache, a.pointer, NULL, 0),
			 -EINVAL);
	assert_int_equal(flexmem_cache_free_pointer(cache, a.pointer), 0);
	assert_int_equal(flexmem_cache_lookup_pointer(cache, a.pointer, &none,
						      sizeof(none)), -EINVAL);
	assert_int_equal(flexmem_cache_free_pointer(cache, a.pointer), -EINVAL);
	assert_int_equal(flexmem_cache_free(cache, a.token), -EINVAL);
	/*
	 * The allocation was freed by its token, so its pointer is invalid,
	 * too.
	 */
	give(cache, b.token);
	assert_int_equal(flexmem_cache_free_pointer(cache, b.pointer), -EINVAL);
	give(cache, get(cache, 1000).token);
	a = get(cache, 1000);
	assert_int_equal(flexmem_cache_free_pointer(cache, a.pointer), 0);
	assert_int_equal(figures(cache).allocation[0].current, 1);
	assert_int_equal(try_pointer(cache, 2 * GIB, &a), -ENOMEM);
	assert_int_equal(a.failure.asked, 2 * GIB);
	assert_int_equal(flexmem_cache_alloc_pointer(cache, NULL, 0, &a,
						     sizeof(a)), -EINVAL);
	flexmem_cache_destroy(cache);
}

/* More than the uses of all names of a stream after which a token comes again. */
#define REUSES (1 << 20)

/* Allocates and frees until a token comes again. */
static void reuse(struct flexmem_cache *cache, const void *old)
{
	unsigned int i;
	void *token;

	for (i = 0; i < REUSES; i++) {
		token = take(cache, 1000, 0);
		if (token == old)
			return;
		give(cache, token);
	}
	fail_msg("the token was not reused");
}

static struct flexmem_cache_allocation get_in(struct flexmem_cache *cache,
					      uint64_t pool)
{
	const struct flexmem_cache_request request = {
		.bytes = 1000,
		.pool = pool,
	};
	struct flexmem_cache_allocation allocation;

	assert_int_equal(flexmem_cache_alloc_pointer(cache, &request,
						     sizeof(request),
						     &allocation,
						     sizeof(allocation)), 0);
	return allocation;
}

/*
 * A free by token and a restore remove the pointer. Otherwise the pointer would
 * name another allocation as soon as the token is reused.
 */
static void no_pointer_outlives_its_token(void **state)
{
	struct flexmem_cache *cache = mapped_cache(NULL);
	struct flexmem_cache_checkpoint *checkpoint;
	struct flexmem_cache_allocation a = get(cache, 1000);
	struct flexmem_cache_allocation b;
	struct flexmem_cache_allocation found;
	uint64_t pool;

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	b = get_in(cache, pool);
	give(cache, b.token);
	assert_int_equal(flexmem_cache_pool_checkpoint(cache, pool,
						       &checkpoint), 0);
	b = get_in(cache, pool);
	assert_int_equal(flexmem_cache_pool_restore(cache, checkpoint), 0);
	flexmem_cache_checkpoint_free(checkpoint);
	reuse(cache, b.token);
	assert_int_equal(flexmem_cache_lookup_pointer(cache, b.pointer, &found,
						      sizeof(found)), -EINVAL);
	give(cache, b.token);

	/* A token inside of the allocation removes nothing. */
	assert_int_equal(flexmem_cache_free(cache, (char *)a.token + 1),
			 -EINVAL);
	assert_int_equal(flexmem_cache_lookup_pointer(cache, a.pointer, &found,
						      sizeof(found)), 0);
	give(cache, a.token);
	take(cache, 1000, 0);
	reuse(cache, a.token);
	assert_int_equal(flexmem_cache_free_pointer(cache, a.pointer), -EINVAL);
	flexmem_cache_destroy(cache);
}

#define LIVE 20000
#define STEPS 200000

/*
 * The pointer table grows. The removal of a pointer closes the gap in the
 * table.
 */
static void many_pointers(void **state)
{
	struct flexmem_cache *cache = mapped_cache(NULL);
	void **live = calloc(LIVE, sizeof(*live));
	uint64_t draw = 1;
	size_t count = 0;
	size_t i;

	(void)state;
	assert_non_null(live);
	for (i = 0; i < STEPS; i++) {
		size_t at;

		draw = draw * UINT64_C(6364136223846793005) + 1;
		at = (draw >> 33) % LIVE;
		if (live[at]) {
			assert_int_equal(flexmem_cache_free_pointer(cache,
								    live[at]),
					 0);
			live[at] = NULL;
			count--;
		} else {
			live[at] = get(cache, 128 + (draw >> 60) * 128).pointer;
			count++;
		}
	}
	assert_int_equal(figures(cache).allocation[0].current, count);
	for (i = 0; i < LIVE; i++)
		assert_int_equal(flexmem_cache_free_pointer(cache, live[i]), 0);
	assert_int_equal(figures(cache).allocation[0].current, 0);
	free(live);
	flexmem_cache_destroy(cache);
}

#define THREADS 4

static struct flexmem_cache *shared;
static _Atomic(char *) mailbox[THREADS];

/* Frees another thread's allocation. A third thread may get the memory next. */
static void *pass_on(void *argument)
{
	size_t self = (size_t)argument;
	uint64_t i;
	char *got;

	for (i = 0; i < 20000; i++) {
		struct flexmem_cache_request request = {
			.bytes = 200,
			.stream = self,
		};
		struct flexmem_cache_allocation a;

		if (flexmem_cache_alloc_pointer(shared, &request,
						sizeof(request), &a, sizeof(a)))
			return "no memory";
		*(uint64_t *)a.pointer = i;
		got = atomic_exchange(&mailbox[(self + i) % THREADS], a.pointer);
		if (got && flexmem_cache_free_pointer(shared, got))
			return "not freed";
	}
	return NULL;
}

static void threads(void **state)
{
	pthread_t ids[THREADS];
	void *problem;
	size_t i;

	(void)state;
	shared = mapped_cache(NULL);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, pass_on,
						(void *)i), 0);
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(ids[i], &problem), 0);
		assert_null(problem);
	}
	for (i = 0; i < THREADS; i++)
		assert_int_equal(flexmem_cache_free_pointer(
					 shared,
					 atomic_exchange(&mailbox[i], NULL)), 0);
	assert_int_equal(figures(shared).allocation[0].current, 0);
	flexmem_cache_destroy(shared);
}

/*
 * A caller may wrap a function of the device's provider. Counts the calls of
 * the wrapped function.
 */
static unsigned int wrapped_allocs;
static struct flexmem_cache_provider below;

static int count_alloc(void *user, uint64_t bytes, uint64_t alignment,
		       uint32_t flags, struct flexmem_cache_memory *memory,
		       struct flexmem_failure *failure)
{
	wrapped_allocs++;
	return below.alloc(user, bytes, alignment, flags, memory, failure);
}

static void the_provider_of_a_device(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_cache_provider provider;
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.flags = FLEXMEM_CACHE_MAPPED,
	};
	struct flexmem_cache_allocation a;
	struct flexmem_cache *cache;
	char text[6] = "";

	(void)state;
	assert_int_equal(flexmem_cache_device_provider(NULL, &below,
						       sizeof(below)), -EINVAL);
	assert_int_equal(flexmem_cache_device_provider(device, NULL, 0),
			 -EINVAL);
	assert_int_equal(flexmem_cache_device_provider(device, &below, 8),
			 -EINVAL);
	assert_int_equal(flexmem_cache_device_provider(device, &below,
						       sizeof(below)), 0);
	assert_ptr_equal(below.user, device);
	provider = below;
	provider.alloc = count_alloc;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	a = get(cache, 1000);
	assert_int_equal(wrapped_allocs, 1);
	assert_int_equal(fake.maps, 1);
	memcpy(a.pointer, "bytes", 6);
	assert_int_equal(flexmem_device_read(device, (uint32_t)a.handle,
					     a.offset, text, 6, NULL), 0);
	assert_string_equal(text, "bytes");
	assert_int_equal(flexmem_cache_free_pointer(cache, a.pointer), 0);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	/* Everything is unmapped and freed. */
	assert_int_equal(fake.unmaps, 1);
	flexmem_cache_destroy(cache);

	fake.capabilities &= ~(uint64_t)FLEXMEM_CAP_MAP;
	flexmem_device_close(device);
	device = open_device();
	assert_int_equal(flexmem_cache_device_provider(device, &below,
						       sizeof(below)), 0);
	assert_null(below.map);
	options = (struct flexmem_cache_options){
		.device = device,
		.flags = FLEXMEM_CACHE_MAPPED,
	};
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EOPNOTSUPP);
	flexmem_device_close(device);
}

#define MAPPED_TEST(name) \
	cmocka_unit_test_setup_teardown(name, mapped_setup, mapped_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MAPPED_TEST(pointers_lead_to_the_bytes),
		MAPPED_TEST(a_cache_that_maps_nothing),
		MAPPED_TEST(a_provider_that_cannot_map),
		MAPPED_TEST(segments_that_are_mapped_do_not_grow),
		MAPPED_TEST(a_map_that_fails),
		MAPPED_TEST(a_segment_that_is_refused),
		MAPPED_TEST(only_pointers_of_the_cache),
		MAPPED_TEST(no_pointer_outlives_its_token),
		MAPPED_TEST(many_pointers),
		MAPPED_TEST(threads),
		TEST(the_provider_of_a_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
