// SPDX-License-Identifier: GPL-2.0
/*
 * The cache gives back what an allocation of another process lacked, with a
 * clock that only the test moves.
 */
#include "cache_mock.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "cache/cache.h"

#define PATIENCE_MS 60000

static _Atomic int64_t now_ms;

int __real_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	int64_t now = atomic_load(&now_ms);

	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, time);
	time->tv_sec = now / 1000;
	time->tv_nsec = now % 1000 * 1000000;
	return 0;
}

uint64_t __real_fmlib_segment_excess(const struct flexmem_cache *cache,
				     const struct fmlib_segment *segment);

/* How many segments the cache has looked at for something to give. */
static unsigned int looks;

uint64_t __wrap_fmlib_segment_excess(const struct flexmem_cache *cache,
				     const struct fmlib_segment *segment)
{
	looks++;
	return __real_fmlib_segment_excess(cache, segment);
}

/* What others have: all that is in use, less what the cache has reserved. */
static uint64_t others = 500 * MIB;

/* The measure of the events. */
static int device_info(void *user, uint64_t *free_bytes, uint64_t *total)
{
	uint64_t in_use;
	int err = mock.below.memory_info(mock.below.user, free_bytes, total);

	(void)user;
	in_use = others + *total - *free_bytes;
	*total = GIB;
	*free_bytes = in_use < GIB ? GIB - in_use : 0;
	return err;
}

static struct flexmem_cache *pressed_cache(const char *configuration)
{
	struct flexmem_cache_options options;
	struct flexmem_cache_provider provider;
	struct flexmem_cache *cache;

	atomic_store(&now_ms, 5000);
	mock.has_pressure = true;
	options = mock_options(configuration);
	provider = *options.provider;
	provider.device_info = device_info;
	options.provider = &provider;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	return cache;
}

static uint64_t reserved(struct flexmem_cache *cache)
{
	return figures(cache).reserved_bytes[FLEXMEM_CACHE_ALL].current;
}

/* Another process lacks @bytes. Returns what the cache gives. */
static uint64_t lack(struct flexmem_cache *cache, uint32_t level,
		     uint64_t bytes)
{
	uint64_t released = UINT64_MAX;

	press_wanted(level, others + reserved(cache), GIB, bytes);
	assert_int_equal(flexmem_cache_serve_pressure(cache, &released), 0);
	return released;
}

static void at_any_level(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	others = 500 * MIB;
	/* 20, 40 and 60 MiB are free. */
	three_free(cache);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 0), 0);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 30 * MIB), 40 * MIB);
	assert_int_equal(reserved(cache), 80 * MIB);
	assert_int_equal(figures(cache).num_pressure_events, 2);
	assert_int_equal(figures(cache).pressure_bytes, 40 * MIB);
	flexmem_cache_destroy(cache);
}

/*
 * Allocates segments of so many MiB, up to a 0. A negative number stays in use,
 * the others become free.
 */
static struct flexmem_cache *cache_with(const int64_t *sizes)
{
	struct flexmem_cache *cache = pressed_cache("");
	void *tokens[8];
	size_t i;

	others = 500 * MIB;
	for (i = 0; sizes[i]; i++)
		tokens[i] = take(cache, (uint64_t)llabs(sizes[i]) * MIB, 0);
	while (i--)
		if (sizes[i] > 0)
			give(cache, tokens[i]);
	return cache;
}

/* What a cache with such segments gives if @bytes are lacking, in MiB. */
static uint64_t gift(const int64_t *sizes, uint64_t bytes)
{
	struct flexmem_cache *cache = cache_with(sizes);
	uint64_t released = lack(cache, FLEXMEM_LEVEL_NONE, bytes * MIB);

	flexmem_cache_destroy(cache);
	return released / MIB;
}

/* If no segment is large enough, the largest go, and then one that suffices. */
static void several_segments(void **state)
{
	static const int64_t apart[] = { 20, -12, 40, -12, 60, 0 };
	struct flexmem_cache *cache = cache_with(apart);

	(void)state;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 75 * MIB), 80 * MIB);
	assert_int_equal(reserved(cache), 64 * MIB);
	flexmem_cache_destroy(cache);
	cache = pressed_cache("");
	three_free(cache);
	take(cache, 100 * MIB, 0);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, GIB), 120 * MIB);
	assert_int_equal(reserved(cache), 100 * MIB);
	flexmem_cache_destroy(cache);
}

/*
 * The other process needs one piece, so adjacent segments go, even if fewer
 * bytes of others would be enough. Of those that are large enough together, the
 * ones with the fewest bytes go.
 */
static void adjacent_segments(void **state)
{
	static const int64_t three[] = { 20, 40, 60, 0 };
	static const int64_t equal[] = { 30, 30, 30, 30, 34, 0 };
	static const int64_t higher[] = { 20, 40, 20, 20, 0 };
	static const int64_t apart[] = { 60, -12, 30, 22, 0 };
	static const int64_t pieces[] = { 40, -12, 22, 22, -12, 40, 0 };
	static const int64_t gaps[] = { 24, -12, 20, -12, 40, 0 };

	(void)state;
	assert_int_equal(gift(three, 75), 100);
	assert_int_equal(gift(equal, 60), 60);
	assert_int_equal(gift(equal, 61), 64);
	assert_int_equal(gift(higher, 60), 60);
	assert_int_equal(gift(apart, 50), 52);
	assert_int_equal(gift(apart, 53), 60);
	assert_int_equal(gift(pieces, 44), 44);
	assert_int_equal(gift(pieces, 45), 62);
	assert_int_equal(gift(gaps, 42), 60);
}

static void as_much_of_a_growing_one(void **state)
{
	struct flexmem_cache *cache = pressed_cache("expandable_segments:True");
	void *first;

	(void)state;
	first = take(cache, 100 * MIB, 0);
	give(cache, take(cache, 200 * MIB, 0));
	assert_int_equal(reserved(cache), 300 * MIB);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 30 * MIB + 1),
			 32 * MIB);
	assert_int_equal(reserved(cache), 268 * MIB);
	give(cache, first);
	atomic_fetch_add(&now_ms, 1000);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 200 * MIB), 200 * MIB);
	atomic_fetch_add(&now_ms, 1000);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 67 * MIB), 68 * MIB);
	assert_int_equal(reserved(cache), 0);
	assert_int_equal(mock.frees, 1);
	flexmem_cache_destroy(cache);
	/* A segment that cannot shrink goes as a whole. */
	cache = pressed_cache("expandable_segments:True");
	give(cache, take(cache, 100 * MIB, 0));
	mock.fail_frees = 1;
	mock.error = -EIO;
	press_wanted(FLEXMEM_LEVEL_NONE, others, GIB, 30 * MIB);
	assert_int_equal(flexmem_cache_serve_pressure(cache, NULL), -EIO);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 30 * MIB), 100 * MIB);
	flexmem_cache_destroy(cache);
}

/* Nobody takes what the cache has given: nothing more for a second. */
static void nothing_in_vain(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	others = 500 * MIB;
	three_free(cache);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 10 * MIB), 20 * MIB);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 10 * MIB), 0);
	atomic_fetch_add(&now_ms, 999);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 10 * MIB), 0);
	/* An event that is in vain does not make the pause longer. */
	atomic_fetch_add(&now_ms, 1);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 10 * MIB), 40 * MIB);
	/* Another process has taken it, so the next one is served at once. */
	others += 10 * MIB;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 10 * MIB), 60 * MIB);
	flexmem_cache_destroy(cache);
}

/*
 * Lets the cache look again: @ms later, while the others have what they have.
 * Returns what it gives.
 */
static uint64_t look_after(struct flexmem_cache *cache, int64_t ms)
{
	uint64_t before = reserved(cache);

	mock.total = mock.capacity + others;
	atomic_fetch_add(&now_ms, ms);
	fmlib_pressure_again(cache);
	return before - reserved(cache);
}

/* What is asked for during the pause is given after it, without an event. */
static void the_pause_delays(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	others = 500 * MIB;
	three_free(cache);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 10 * MIB), 20 * MIB);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 50 * MIB), 0);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, MIB), 0);
	assert_true(fmlib_wanted_lasts(cache));
	assert_int_equal(look_after(cache, 999), 0);
	/* The event would have got it also from a program that is not idle. */
	give(cache, take(cache, 40 * MIB, 9));
	assert_int_equal(look_after(cache, 1), 60 * MIB);
	assert_false(fmlib_wanted_lasts(cache));
	/* If the gift is taken, the pause is over. */
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 10 * MIB), 0);
	assert_int_equal(look_after(cache, 100), 0);
	others += 50 * MIB;
	assert_int_equal(look_after(cache, 100), 40 * MIB);
	flexmem_cache_destroy(cache);
	/* A wish that has ended by then gets nothing. */
	cache = pressed_cache("");
	three_free(cache);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 10 * MIB), 20 * MIB);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 30 * MIB), 0);
	assert_int_equal(look_after(cache, 1300), 0);
	flexmem_cache_destroy(cache);
}

/* All memory that the cache has not reserved is others'. */
static void fill_device(struct flexmem_cache *cache)
{
	others = GIB - reserved(cache);
}

/* One byte of a gift does not make another gift due. */
static void a_gift_is_taken_as_a_whole(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	three_free(cache);
	fill_device(cache);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 15 * MIB), 20 * MIB);
	others += 1;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 75 * MIB), 60 * MIB);
	assert_int_equal(look_after(cache, 100), 0);
	flexmem_cache_destroy(cache);
	cache = pressed_cache("");
	three_free(cache);
	fill_device(cache);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 15 * MIB), 20 * MIB);
	others += 15 * MIB;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 75 * MIB), 100 * MIB);
	flexmem_cache_destroy(cache);
	/* The cache had less than was lacking. */
	cache = pressed_cache("");
	three_free(cache);
	fill_device(cache);
	others -= 20 * MIB;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 150 * MIB), 120 * MIB);
	give(cache, take(cache, 20 * MIB, 0));
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, MIB), 0);
	others += 120 * MIB;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, MIB), 20 * MIB);
	flexmem_cache_destroy(cache);
}

/* Several processes take what was given for the sum of their wishes. */
static void what_is_left_of_a_gift_counts(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	three_free(cache);
	give(cache, take(cache, 80 * MIB, 9));
	fill_device(cache);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 60 * MIB), 60 * MIB);
	others += 18 * MIB;
	/* 42 MiB are there still. */
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 60 * MIB), 20 * MIB);
	/* Of 80 MiB, others have got 40, and asked for 78. */
	others += 22 * MIB;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 60 * MIB), 40 * MIB);
	flexmem_cache_destroy(cache);
	/* Of the 42 MiB the cache has taken 40 itself. */
	cache = pressed_cache("");
	three_free(cache);
	fill_device(cache);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 60 * MIB), 60 * MIB);
	others += 18 * MIB;
	take(cache, 40 * MIB, 0);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 42 * MIB), 0);
	flexmem_cache_destroy(cache);
}

/*
 * More is free than another process asks for, and the device has refused it: what
 * is free is in pieces, and so is the rest of a gift.
 */
static void a_rest_in_pieces_does_not_count(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	three_free(cache);
	fill_device(cache);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 60 * MIB), 60 * MIB);
	others += 18 * MIB;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 42 * MIB), 60 * MIB);
	flexmem_cache_destroy(cache);
	/* The same when the program becomes idle. */
	cache = pressed_cache("");
	three_free(cache);
	fill_device(cache);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 60 * MIB), 60 * MIB);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 42 * MIB), 0);
	others += 18 * MIB;
	assert_int_equal(look_after(cache, 1), 60 * MIB);
	flexmem_cache_destroy(cache);
}

/* A smaller wish of another process does not end a larger one. */
static void the_larger_wish_counts(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	void *tokens[2];

	(void)state;
	others = 500 * MIB;
	tokens[0] = take(cache, 20 * MIB, 0);
	tokens[1] = take(cache, 40 * MIB, 0);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 50 * MIB), 0);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, MIB), 0);
	give(cache, tokens[0]);
	give(cache, tokens[1]);
	assert_int_equal(look_after(cache, 100), 60 * MIB);
	flexmem_cache_destroy(cache);
	/* The smaller one counts after the end of the larger one. */
	cache = pressed_cache("");
	tokens[0] = take(cache, 20 * MIB, 0);
	tokens[1] = take(cache, 40 * MIB, 0);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 50 * MIB), 0);
	atomic_fetch_add(&now_ms, 1200);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, MIB), 0);
	give(cache, tokens[0]);
	give(cache, tokens[1]);
	assert_int_equal(look_after(cache, 100), 20 * MIB);
	assert_false(fmlib_wanted_lasts(cache));
	flexmem_cache_destroy(cache);
}

/* A process that fails on purpose costs no walk over the segments. */
static void nothing_to_give_costs_no_walk(void **state)
{
	struct flexmem_cache *cache;
	void *tokens[2];

	(void)state;
	atomic_store(&now_ms, 5000);
	others = 500 * MIB;
	mock.has_pressure = true;
	cache = mock_cache_events("");
	tokens[0] = take(cache, 20 * MIB, 0);
	tokens[1] = take(cache, 40 * MIB, 0);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 30 * MIB), 0);
	looks = 0;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 30 * MIB), 0);
	assert_int_equal(look_after(cache, 100), 0);
	assert_int_equal(looks, 0);
	/* A block that waits for an event is not free. */
	use(cache, tokens[0], 1);
	give(cache, tokens[0]);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 30 * MIB), 0);
	assert_int_equal(looks, 0);
	mock.happened[0] = true;
	assert_int_equal(look_after(cache, 100), 20 * MIB);
	give(cache, tokens[1]);
	others += 20 * MIB;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 30 * MIB), 40 * MIB);
	flexmem_cache_destroy(cache);
}

/* What the provider has refused to take is offered to others again. */
static void what_could_not_go_goes_later(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	struct flexmem_cache_allocation a;
	struct flexmem_cache_request request = { .bytes = 20 * MIB };

	(void)state;
	others = 500 * MIB;
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	give(cache, a.token);
	/* The pool keeps it for the graph. */
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, MIB), 0);
	mock.fail_frees = 2;
	mock.error = -EBUSY;
	assert_int_equal(flexmem_cache_pool_release(cache, request.pool), 0);
	press_wanted(FLEXMEM_LEVEL_NONE, others + 20 * MIB, GIB, MIB);
	assert_int_equal(flexmem_cache_serve_pressure(cache, NULL), -EBUSY);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, MIB), 20 * MIB);
	flexmem_cache_destroy(cache);
}

/* A provider of a pool. While it is busy, it takes no segment back. */
static struct flexmem_cache_provider flat;
static bool is_busy;

static int flat_alloc(void *user, uint64_t bytes, uint64_t alignment,
		      uint32_t flags, struct flexmem_cache_memory *memory,
		      struct flexmem_failure *failure)
{
	int err = flat.alloc(user, bytes, alignment, flags, memory, failure);

	memory->address.region_id = 77;
	return err;
}

static int flat_free(void *user, uint64_t handle)
{
	return is_busy ? -EBUSY : flat.free(user, handle);
}

static void *take_in(struct flexmem_cache *cache, uint64_t pool, uint64_t bytes)
{
	struct flexmem_cache_request request = { .bytes = bytes, .pool = pool };
	struct flexmem_cache_allocation a;

	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	return a.token;
}

/*
 * A pool has memory of another provider. That memory neither counts, nor does it
 * help others.
 */
static void memory_of_another_provider(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	struct flexmem_cache_provider provider;
	struct flexmem_cache_flat *memory;
	uint64_t pool;
	void *token;

	(void)state;
	assert_int_equal(flexmem_cache_flat_create(&memory, 4 * GIB, &flat,
						   sizeof(flat)), 0);
	provider = flat;
	provider.alloc = flat_alloc;
	provider.free = flat_free;
	assert_int_equal(flexmem_cache_pool_create_on(cache, &provider,
						      sizeof(provider),
						      &pool), 0);
	take(cache, 100 * MIB, 0);
	three_free(cache);
	take_in(cache, pool, 2 * GIB);
	token = take_in(cache, pool, 70 * MIB);
	others = 500 * MIB - 2 * GIB - 70 * MIB;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 10 * MIB), 20 * MIB);
	/* It was taken. */
	others += 10 * MIB;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 10 * MIB), 40 * MIB);
	others += 10 * MIB;
	is_busy = true;
	give(cache, token);
	assert_int_equal(flexmem_cache_pool_release(cache, pool), 0);
	is_busy = false;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 70 * MIB), 60 * MIB);
	/* Nobody takes that, although the other provider gets its memory back. */
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	others += 70 * MIB;
	give(cache, take(cache, 20 * MIB, 0));
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 10 * MIB), 0);
	flexmem_cache_destroy(cache);
	flexmem_cache_flat_destroy(memory);
}

/* What goes for the level counts for the other process, too. */
static void the_rest_of_what_is_lacking(void **state)
{
	static const uint64_t sizes[] = { 80, 60, 20, 40 };
	struct flexmem_cache *cache = pressed_cache("");
	void *tokens[4];
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		tokens[i] = take(cache, sizes[i] * MIB, 0);
	for (i = 0; i < 4; i++)
		give(cache, tokens[i]);
	/* At least half are the oldest two; 10 MiB are lacking then. */
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_MODERATE, 150 * MIB),
			 160 * MIB);
	flexmem_cache_destroy(cache);
}

/* An event about both; and one at a level that lasts, which is about one. */
static void levels_and_what_is_lacking(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");

	(void)state;
	others = 500 * MIB;
	three_free(cache);
	/* Half of it, of 20 and 40 MiB, and the last one for the other 10. */
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_MODERATE, 70 * MIB),
			 120 * MIB);
	flexmem_cache_destroy(cache);
	cache = pressed_cache("");
	three_free(cache);
	press(FLEXMEM_LEVEL_MODERATE, 850 * MIB, 1000 * MIB);
	assert_int_equal(flexmem_cache_serve_pressure(cache, NULL), 0);
	assert_int_equal(reserved(cache), 60 * MIB);
	give(cache, take(cache, 20 * MIB, 1));
	assert_int_equal(reserved(cache), 80 * MIB);
	/* Half of the free memory would be 60 MiB, since it is the older. */
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_MODERATE, MIB), 20 * MIB);
	flexmem_cache_destroy(cache);
	/* The level has fallen and risen again: half of 20 and 60 MiB. */
	cache = pressed_cache("");
	three_free(cache);
	press(FLEXMEM_LEVEL_MODERATE, 850 * MIB, 1000 * MIB);
	assert_int_equal(flexmem_cache_serve_pressure(cache, NULL), 0);
	give(cache, take(cache, 20 * MIB, 1));
	mock.event_flags = FLEXMEM_TELLS_LEVEL | FLEXMEM_TELLS_WANTED;
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_MODERATE, MIB), 60 * MIB);
	mock.event_flags = 0;
	flexmem_cache_destroy(cache);
	/* What the level returns is enough, so nothing more goes. */
	cache = pressed_cache("");
	three_free(cache);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_MODERATE, 60 * MIB),
			 60 * MIB);
	flexmem_cache_destroy(cache);
}

/* What was in use at the event goes when the program is idle. */
static void what_becomes_idle_goes(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	void *tokens[2];

	(void)state;
	tokens[0] = take(cache, 20 * MIB, 0);
	tokens[1] = take(cache, 40 * MIB, 0);
	assert_false(fmlib_wanted_lasts(cache));
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 50 * MIB), 0);
	assert_true(fmlib_wanted_lasts(cache));
	give(cache, tokens[0]);
	fmlib_pressure_again(cache);
	assert_int_equal(reserved(cache), 40 * MIB);
	assert_true(fmlib_wanted_lasts(cache));
	/* The program is not idle. */
	give(cache, tokens[1]);
	give(cache, take(cache, 40 * MIB, 0));
	fmlib_pressure_again(cache);
	assert_int_equal(reserved(cache), 40 * MIB);
	fmlib_pressure_again(cache);
	assert_int_equal(reserved(cache), 0);
	assert_false(fmlib_wanted_lasts(cache));
	assert_int_equal(figures(cache).pressure_bytes, 60 * MIB);
	flexmem_cache_destroy(cache);
}

/* The other process waits, and each of its attempts is an event. */
static void it_goes_between_events(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	void *token;

	(void)state;
	others = 500 * MIB;
	token = take(cache, 40 * MIB, 0);
	give(cache, take(cache, 20 * MIB, 0));
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 50 * MIB), 20 * MIB);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 50 * MIB), 0);
	give(cache, token);
	/* The program is not idle. */
	give(cache, take(cache, 40 * MIB, 0));
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 50 * MIB), 0);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 50 * MIB), 40 * MIB);
	flexmem_cache_destroy(cache);
}

/* The other process has given up by then. */
static void a_wish_ends(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	void *token;

	(void)state;
	token = take(cache, 20 * MIB, 0);
	assert_int_equal(lack(cache, FLEXMEM_LEVEL_NONE, 50 * MIB), 0);
	give(cache, token);
	atomic_fetch_add(&now_ms, 1299);
	assert_true(fmlib_wanted_lasts(cache));
	atomic_fetch_add(&now_ms, 1);
	fmlib_pressure_again(cache);
	assert_false(fmlib_wanted_lasts(cache));
	assert_int_equal(reserved(cache), 20 * MIB);
	flexmem_cache_destroy(cache);
}

static void the_helper_looks_again(void **state)
{
	struct flexmem_cache *cache = pressed_cache("");
	void *token = take(cache, 20 * MIB, 0);
	int waited = 0;

	(void)state;
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	press_wanted(FLEXMEM_LEVEL_NONE, others + 20 * MIB, GIB, 50 * MIB);
	while (!figures(cache).num_pressure_events) {
		assert_true(waited++ < PATIENCE_MS);
		usleep(1000);
	}
	give(cache, token);
	while (reserved(cache)) {
		assert_true(waited++ < PATIENCE_MS);
		usleep(1000);
	}
	assert_int_equal(flexmem_cache_stop_helper(cache), 0);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(at_any_level),
		CACHE_TEST(several_segments),
		CACHE_TEST(adjacent_segments),
		CACHE_TEST(as_much_of_a_growing_one),
		CACHE_TEST(nothing_in_vain),
		CACHE_TEST(the_pause_delays),
		CACHE_TEST(a_gift_is_taken_as_a_whole),
		CACHE_TEST(what_is_left_of_a_gift_counts),
		CACHE_TEST(a_rest_in_pieces_does_not_count),
		CACHE_TEST(the_larger_wish_counts),
		CACHE_TEST(nothing_to_give_costs_no_walk),
		CACHE_TEST(what_could_not_go_goes_later),
		CACHE_TEST(memory_of_another_provider),
		CACHE_TEST(the_rest_of_what_is_lacking),
		CACHE_TEST(levels_and_what_is_lacking),
		CACHE_TEST(what_becomes_idle_goes),
		CACHE_TEST(it_goes_between_events),
		CACHE_TEST(a_wish_ends),
		CACHE_TEST(the_helper_looks_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
