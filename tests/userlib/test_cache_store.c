// SPDX-License-Identifier: GPL-2.0
/*
 * The store of a thread: what it does without the lock, and the figures; what
 * others ask back, and what the end of a thread does. Built with TSan as well.
 */
#include "cache_threads.h"

#include <limits.h>
#include <sched.h>

static void store(void **state)
{
	struct flexmem_cache_statistics f;
	void *first;
	void *token;
	uint64_t where;

	(void)state;
	cache = mock_cache("thread_cache:True");
	first = take(cache, 1000, 0);
	where = place(cache, first);
	give(cache, first);
	f = figures(cache);
	assert_int_equal(f.allocation[0].current, 0);
	assert_int_equal(f.allocation[0].freed, 1);
	assert_int_equal(f.allocated_bytes[FLEXMEM_CACHE_SMALL].current, 0);
	assert_int_equal(f.requested_bytes[0].freed, 1000);
	assert_int_equal(f.thread_bound, MIB + 64 * KIB);
	assert_int_equal(flexmem_cache_free(cache, first), -EINVAL);
	/* Not for another size, nor for another stream. */
	token = take(cache, 999, 0);
	assert_int_not_equal(place(cache, token), where);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	give(cache, token);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	give(cache, take(cache, 1000, 0));
	token = take(cache, 1000, 1);
	assert_int_not_equal(place(cache, token), where);
	give(cache, token);
	token = take(cache, 999, 0);
	assert_int_not_equal(place(cache, token), where);
	token = take(cache, 1000, 1);
	give(cache, token);
	give(cache, take(cache, 1000, 0));
	assert_int_equal(flexmem_cache_free(cache, first), -EINVAL);
	f = figures(cache);
	assert_int_equal(f.allocation[0].allocated, 7);
	assert_int_equal(f.allocation[0].current, 1);
	assert_int_equal(f.requested_bytes[0].current, 999);
	assert_int_equal(flexmem_cache_reset_accumulated(cache), 0);
	f = figures(cache);
	assert_int_equal(f.allocation[0].allocated, 0);
	assert_int_equal(f.allocation[0].freed, 0);
	assert_int_equal(f.allocation[FLEXMEM_CACHE_SMALL].freed, 0);
	assert_int_equal(f.num_hits, 0);
	/* All of it comes back when it is asked for. */
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	f = figures(cache);
	assert_int_equal(f.reserved_bytes[0].current, 2 * MIB);
	assert_int_equal(f.allocation[0].freed, 0);
	/* The live one is between two free ones. */
	assert_int_equal(f.inactive_split[0].current, 2);
	flexmem_cache_destroy(cache);
}

/* What is special about an allocation is not forgotten in a store. */
static void not_for_stores(void **state)
{
	struct flexmem_cache_request request = { .bytes = 1000, .tag = "t" };
	struct flexmem_cache_allocation a;
	uint64_t where;
	void *token;

	(void)state;
	cache = mock_cache_events("thread_cache:True");
	token = take(cache, 1000, 0);
	assert_int_equal(flexmem_cache_record_stream(cache, token, 1), 0);
	give(cache, token);
	assert_int_equal(mock.events, 1);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	give(cache, a.token);
	token = take(cache, 1000, 0);
	assert_string_equal(lookup(cache, token).tag, "");
	where = place(cache, token);
	give(cache, token);
	/* With a history everything has to pass by. */
	assert_int_equal(flexmem_cache_set_history(cache, 10), 0);
	token = take(cache, 1000, 0);
	assert_int_equal(place(cache, token), where);
	assert_int_equal(figures(cache).inactive_split[0].current, 1);
	give(cache, token);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	flexmem_cache_destroy(cache);
}

/* A store keeps no more than it may. */
static void store_is_bounded(void **state)
{
	static void *tokens[100];
	struct flexmem_cache_statistics f;
	int i;

	(void)state;
	cache = mock_cache("thread_cache:True");
	for (i = 0; i < 100; i++)
		tokens[i] = take(cache, 64 * KIB, 0);
	assert_int_equal(flexmem_cache_reset_peaks(cache), 0);
	for (i = 0; i < 100; i++)
		give(cache, tokens[i]);
	assert_int_equal(flexmem_cache_reset_peaks(cache), 0);
	f = figures(cache);
	assert_int_equal(f.allocated_bytes[0].current, 0);
	assert_true(f.allocated_bytes[0].peak <= f.thread_bound);
	flexmem_cache_destroy(cache);
}

/* When it is full half of it goes, the largest first. */
static void store_sheds_half(void **state)
{
	struct flexmem_cache_statistics f;
	static void *tokens[20];
	uint64_t kept = 0;
	uint64_t i;

	(void)state;
	cache = mock_cache("thread_cache:True");
	for (i = 0; i < 20; i++)
		tokens[i] = take(cache, 64 * KIB - 128 * i, 0);
	for (i = 0; i < 17; i++)
		give(cache, tokens[i]);
	/* 17 of nearly 64 KiB are more than 1 MiB, 8 are half of it. */
	for (i = 9; i < 17; i++)
		kept += 64 * KIB - 128 * i;
	f = figures(cache);
	assert_int_equal(f.reserved_bytes[0].current -
			 f.active_bytes[0].current -
			 f.inactive_split_bytes[0].current, kept);
	flexmem_cache_destroy(cache);
}

static void *fill_and_go_on(void *unused)
{
	(void)unused;
	give(cache, take(cache, 1000, 0));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	/* Any call will do. */
	give(cache, take(cache, 3 * MIB, 0));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* What others keep comes back at their next call. */
static void others_are_asked(void **state)
{
	pthread_t thread;

	(void)state;
	cache = mock_cache("thread_cache:True");
	pthread_barrier_init(&barrier, NULL, 2);
	run(&thread, 1, fill_and_go_on);
	pthread_barrier_wait(&barrier);
	give(cache, take(cache, 1000, 1));
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 2 * MIB);
	assert_int_equal(figures(cache).allocation[0].current, 0);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	flexmem_cache_destroy(cache);
}

/* The same when a history began after they had filled their stores. */
static void others_are_asked_with_a_history(void **state)
{
	pthread_t thread;
	char *text;

	(void)state;
	cache = mock_cache("thread_cache:True");
	pthread_barrier_init(&barrier, NULL, 2);
	run(&thread, 1, fill_and_go_on);
	pthread_barrier_wait(&barrier);
	assert_int_equal(flexmem_cache_set_history(cache, 100), 0);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	/* They were freed before, and the history has not seen it. */
	assert_int_equal(flexmem_cache_snapshot(cache, FLEXMEM_CACHE_EVERY_POOL,
						&text, NULL), 0);
	assert_null(strstr(text, "\"size\":1024,"));
	assert_non_null(strstr(text, "\"action\":\"free_completed\""));
	flexmem_cache_text_free(text);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	flexmem_cache_destroy(cache);
}

/* Whichever call allocates: this one knows no stores. */
static void *fill_and_request(void *unused)
{
	struct flexmem_cache_request request = { .bytes = 3 * MIB };
	struct flexmem_cache_allocation a;

	(void)unused;
	give(cache, take(cache, 1000, 0));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	EXPECT(!flexmem_cache_alloc_request(cache, &request, sizeof(request),
					    &a, sizeof(a)));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void any_allocation_answers(void **state)
{
	pthread_t thread;

	(void)state;
	cache = mock_cache("thread_cache:True");
	pthread_barrier_init(&barrier, NULL, 2);
	run(&thread, 1, fill_and_request);
	pthread_barrier_wait(&barrier);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 2 * MIB);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 20 * MIB);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	assert_int_equal(failures, 0);
	flexmem_cache_destroy(cache);
}

static void *fill_store(void *unused)
{
	(void)unused;
	give(cache, take(cache, 1000, 0));
	return NULL;
}

/* A thread that ends gives back what it kept. */
static void thread_ends(void **state)
{
	struct flexmem_cache_statistics f;
	pthread_t thread;

	(void)state;
	cache = mock_cache("thread_cache:True");
	run(&thread, 1, fill_store);
	pthread_join(thread, NULL);
	f = figures(cache);
	assert_int_equal(f.allocation[0].allocated, 1);
	assert_int_equal(f.allocation[0].freed, 1);
	assert_int_equal(f.active[0].current, 0);
	assert_int_equal(flexmem_cache_trim(cache, 1, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	flexmem_cache_destroy(cache);
}

/* To TSan a thread is gone before the last round. */
#ifdef __SANITIZE_THREAD__
#define LAST_ROUNDS (PTHREAD_DESTRUCTOR_ITERATIONS - 1)
#else
#define LAST_ROUNDS PTHREAD_DESTRUCTOR_ITERATIONS
#endif

static pthread_key_t late;
static void *late_tokens[LAST_ROUNDS];

/* Frees one in each of the rounds that the end of a thread has. */
static void free_late(void *round)
{
	void **token = round;

	give(cache, *token);
	if (++token < late_tokens + LAST_ROUNDS)
		pthread_setspecific(late, token);
}

static void *fill_and_free_late(void *unused)
{
	int i;

	(void)unused;
	for (i = 0; i < LAST_ROUNDS; i++)
		late_tokens[i] = take(cache, 2000, 0);
	give(cache, take(cache, 1000, 0));
	pthread_setspecific(late, late_tokens);
	return NULL;
}

/* What other destructors free then is not kept where nobody finds it again. */
static void thread_frees_while_it_ends(void **state)
{
	pthread_t thread;

	(void)state;
	cache = mock_cache("thread_cache:True");
	/* The library's key is there by now, so its destructor runs first. */
	assert_int_equal(pthread_key_create(&late, free_late), 0);
	run(&thread, 1, fill_and_free_late);
	pthread_join(thread, NULL);
	assert_int_equal(figures(cache).allocation[0].current, 0);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	pthread_key_delete(late);
	flexmem_cache_destroy(cache);
}

static void *fill_and_end(void *unused)
{
	(void)unused;
	give(cache, take(cache, 1000, 0));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* Runs when the thread that ends gives a segment back. */
static void let_others_go_on(void)
{
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
}

/* A provider that takes its time then holds up nobody but its own cache. */
static void others_go_on_while_a_thread_ends(void **state)
{
	struct flexmem_cache *other;
	pthread_t thread;

	(void)state;
	cache = mock_cache("thread_cache:True");
	pthread_barrier_init(&barrier, NULL, 2);
	run(&thread, 1, fill_and_end);
	pthread_barrier_wait(&barrier);
	mock_lose();
	assert_int_equal(flexmem_cache_drop_lost(cache, NULL), 0);
	assert_int_equal(mock.frees, 0);
	mock.on_free = let_others_go_on;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	other = mock_cache("thread_cache:True");
	give(other, take(other, 1000, 0));
	mock.on_free = NULL;
	flexmem_cache_destroy(other);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	flexmem_cache_destroy(cache);
}

/* Whichever of the two is first. */
static void both_end(void **state)
{
	pthread_t threads[2];
	int i;
	int j;

	(void)state;
	for (i = 0; i < 200; i++) {
		cache = mock_cache("thread_cache:True");
		pthread_barrier_init(&barrier, NULL, 3);
		run(threads, 2, fill_and_end);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		if (i % 2)
			sched_yield();
		flexmem_cache_destroy(cache);
		for (j = 0; j < 2; j++)
			pthread_join(threads[j], NULL);
		pthread_barrier_destroy(&barrier);
	}
}

static void *outlive(void *unused)
{
	(void)unused;
	give(cache, take(cache, 1000, 0));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	/* Its store is that of a cache that is gone; a new one is another. */
	give(cache, take(cache, 1000, 0));
	give(cache, take(cache, 1000, 0));
	EXPECT(figures(cache).num_hits == 1);
	return NULL;
}

static void cache_ends_first(void **state)
{
	pthread_t thread;

	(void)state;
	cache = mock_cache("thread_cache:True");
	pthread_barrier_init(&barrier, NULL, 2);
	run(&thread, 1, outlive);
	pthread_barrier_wait(&barrier);
	flexmem_cache_destroy(cache);
	cache = mock_cache("thread_cache:True");
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	flexmem_cache_destroy(cache);
	assert_int_equal(failures, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(store),
		CACHE_TEST(not_for_stores),
		CACHE_TEST(store_is_bounded),
		CACHE_TEST(store_sheds_half),
		CACHE_TEST(others_are_asked),
		CACHE_TEST(others_are_asked_with_a_history),
		CACHE_TEST(any_allocation_answers),
		CACHE_TEST(thread_ends),
		CACHE_TEST(thread_frees_while_it_ends),
		CACHE_TEST(others_go_on_while_a_thread_ends),
		CACHE_TEST(both_end),
		CACHE_TEST(cache_ends_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
