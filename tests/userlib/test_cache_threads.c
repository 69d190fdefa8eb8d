// SPDX-License-Identifier: GPL-2.0
/* Threads on one cache, and fork. Also runs under TSan. */
#include "cache_threads.h"
#include "cache_viewer.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 2000
#define KEPT 32

/* For each unit of 128 bytes of the first 64 MiB: whether it is in use. */
#define GRANULES (64 * MIB / 128)
static atomic_uchar used[GRANULES];

static void mark(void *token, unsigned char from, unsigned char to)
{
	struct flexmem_cache_allocation a;
	uint64_t i;

	if (flexmem_cache_lookup(cache, token, &a, sizeof(a), NULL)) {
		atomic_fetch_add(&failures, 1);
		return;
	}
	for (i = a.address.offset / 128;
	     i < (a.address.offset + a.size) / 128 && i < GRANULES; i++)
		EXPECT(atomic_exchange(&used[i], to) == from);
}

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * UINT32_C(1664525) + UINT32_C(1013904223);
	return *seed >> 8;
}

/* Tokens that one thread passes to another, which frees them. */
static _Atomic(void *) mailbox[THREADS * KEPT];

/*
 * Allocates and frees, and checks that a byte never belongs to two allocations.
 */
static void *allocate(void *argument)
{
	uint32_t seed = (uint32_t)(uintptr_t)argument;
	uint64_t bytes;
	void *token;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		bytes = next(&seed) % 8 ? (next(&seed) % 4 + 1) * 1000 :
			next(&seed) % (2 * MIB) + 1;
		token = NULL;
		EXPECT(!flexmem_cache_alloc(cache, bytes, next(&seed) % 2,
					    &token));
		if (!token)
			continue;
		mark(token, 0, 1);
		if (!(next(&seed) % 16))
			EXPECT(!flexmem_cache_record_stream(cache, token, 1));
		token = atomic_exchange(&mailbox[next(&seed) %
						 (THREADS * KEPT)], token);
		if (!token)
			continue;
		mark(token, 1, 0);
		EXPECT(!flexmem_cache_free(cache, token));
		EXPECT(flexmem_cache_free(cache, token) == -EINVAL);
	}
	return NULL;
}

static void *observe(void *unused)
{
	struct flexmem_cache_statistics f;
	struct flexmem_cache_tag *tags;
	size_t count;
	char *text;
	int i;

	(void)unused;
	for (i = 0; i < ROUNDS / 20; i++) {
		EXPECT(!flexmem_cache_statistics(cache, &f, sizeof(f)));
		EXPECT(f.allocated_bytes[0].current <=
		       f.reserved_bytes[0].current);
		EXPECT(f.allocation[0].current <= f.active[0].current);
		EXPECT(!flexmem_cache_snapshot(cache, FLEXMEM_CACHE_EVERY_POOL,
					       &text, NULL));
		EXPECT(!viewer_refuses_text(text));
		flexmem_cache_text_free(text);
		EXPECT(!flexmem_cache_tags(cache, &tags, sizeof(*tags),
					   &count));
		flexmem_cache_tags_free(tags);
		EXPECT(!flexmem_cache_empty(cache, NULL));
		EXPECT(!flexmem_cache_trim(cache, MIB, NULL));
		if (!(i % 16))
			EXPECT(!flexmem_cache_set_history(cache, i % 32));
		if (i % 16 == 7) {
			mock_lose();
			EXPECT(!flexmem_cache_drop_lost(cache, NULL));
		}
		sched_yield();
	}
	EXPECT(!flexmem_cache_set_history(cache, 0));
	return NULL;
}

static void *use_pools(void *unused)
{
	struct flexmem_cache_request request = { .bytes = 5000, .tag = "pool" };
	struct flexmem_cache_allocation a;
	int i;

	(void)unused;
	for (i = 0; i < ROUNDS / 10; i++) {
		EXPECT(!flexmem_cache_pool_create(cache, &request.pool));
		EXPECT(!flexmem_cache_alloc_request(cache, &request,
						    sizeof(request), &a,
						    sizeof(a)));
		EXPECT(!flexmem_cache_pool_release(cache, request.pool));
		EXPECT(!flexmem_cache_free(cache, a.token));
	}
	return NULL;
}

/* All allocations so far, live or freed. */
static struct published {
	void *token;
	struct flexmem_virtual_address address;
} published[20 * ROUNDS];
static atomic_size_t published_count;

/* Each byte's address must agree with the address of the first byte. */
static void *read_addresses(void *unused)
{
	struct flexmem_virtual_address found;
	const struct published *last;
	size_t count;

	(void)unused;
	do {
		count = atomic_load(&published_count);
		last = &published[count - !!count];
		if (count && !flexmem_cache_address(cache,
						    (char *)last->token + 7,
						    &found))
			EXPECT(found.offset == last->address.offset + 7 &&
			       found.region_id == last->address.region_id);
	} while (count < sizeof(published) / sizeof(published[0]));
	return NULL;
}

/*
 * A block and its segment are freed while another thread asks for the address.
 */
static void addresses(const char *configuration)
{
	struct flexmem_cache_request request = { .stream = 1 };
	struct flexmem_cache_allocation a;
	pthread_t thread;
	void *earlier = NULL;
	size_t i;

	atomic_store(&failures, 0);
	atomic_store(&published_count, 0);
	cache = mock_cache(configuration);
	run(&thread, 1, read_addresses);
	for (i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		request.bytes = (i * 7919 % 5 + 1) * 1000;
		assert_int_equal(flexmem_cache_alloc_request(cache, &request,
							     sizeof(request),
							     &a, sizeof(a)), 0);
		published[i].token = a.token;
		published[i].address = a.address;
		atomic_store(&published_count, i + 1);
		assert_int_equal(flexmem_cache_free(cache, earlier), 0);
		earlier = a.token;
	}
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&failures), 0);
	flexmem_cache_destroy(cache);
}

static void addresses_of_blocks(void **state)
{
	(void)state;
	addresses("expandable_segments:True");
}

static void addresses_of_segments(void **state)
{
	(void)state;
	addresses("backend:direct");
}

static void free_mailbox(void)
{
	void *token;
	size_t i;

	for (i = 0; i < THREADS * KEPT; i++) {
		token = atomic_exchange(&mailbox[i], NULL);
		if (!token)
			continue;
		mark(token, 1, 0);
		assert_int_equal(flexmem_cache_free(cache, token), 0);
	}
}

/* Every third query makes the event happen. The cache is locked. */
static int query_event(void *user, uint64_t event)
{
	if (!(mock.queries % 3))
		mock.happened[event] = true;
	return mock_events.query(user, event);
}

static void together(const char *configuration, bool with_events)
{
	struct flexmem_cache_options options = mock_options(configuration);
	struct flexmem_cache_events events = mock_events;
	pthread_t threads[THREADS + 2];
	struct flexmem_cache_statistics f;
	int i;

	events.query = query_event;
	options.events = with_events ? &events : NULL;
	options.events_size = with_events ? sizeof(events) : 0;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	run(threads, THREADS, allocate);
	run(&threads[THREADS], 1, observe);
	run(&threads[THREADS + 1], 1, use_pools);
	for (i = 0; i < THREADS + 2; i++)
		pthread_join(threads[i], NULL);
	free_mailbox();
	assert_int_equal(failures, 0);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	f = figures(cache);
	assert_int_equal(f.allocation[0].current, 0);
	assert_int_equal(f.active[0].current, 0);
	assert_int_equal(f.allocated_bytes[0].current, 0);
	assert_int_equal(f.requested_bytes[0].current, 0);
	assert_int_equal(f.reserved_bytes[0].current, 0);
	assert_int_equal(f.allocation[0].allocated,
			 THREADS * ROUNDS + ROUNDS / 10);
	assert_int_equal(f.allocation[0].freed, f.allocation[0].allocated);
	flexmem_cache_destroy(cache);
}

static void with_lock(void **state)
{
	(void)state;
	together("", false);
}

static void with_growing(void **state)
{
	(void)state;
	together("expandable_segments:True", false);
}

static void with_lock_released(void **state)
{
	(void)state;
	together("release_lock_on_device_malloc:True", false);
}

static void direct(void **state)
{
	(void)state;
	together("backend:direct,release_lock_on_device_malloc:True", false);
}

static void with_events(void **state)
{
	(void)state;
	together("", true);
}

static void with_growing_and_events(void **state)
{
	(void)state;
	together("expandable_segments:True", true);
}

/* All threads free the same token at once. Exactly one call must succeed. */
static _Atomic(void *) contended;
static atomic_int winners;

static void *free_contended(void *unused)
{
	int i;

	(void)unused;
	for (i = 0; i < 300; i++) {
		pthread_barrier_wait(&barrier);
		if (!flexmem_cache_free(cache, atomic_load(&contended)))
			atomic_fetch_add(&winners, 1);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void double_frees(const char *configuration)
{
	pthread_t threads[3];
	int i;

	cache = mock_cache(configuration);
	pthread_barrier_init(&barrier, NULL, 4);
	run(threads, 3, free_contended);
	for (i = 0; i < 300; i++) {
		atomic_store(&winners, 0);
		atomic_store(&contended, take(cache, 1000, 0));
		pthread_barrier_wait(&barrier);
		flexmem_cache_record_stream(cache, atomic_load(&contended), 1);
		pthread_barrier_wait(&barrier);
		assert_int_equal(atomic_load(&winners), 1);
	}
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	assert_int_equal(figures(cache).allocation[0].current, 0);
	flexmem_cache_destroy(cache);
}

static void double_frees_with_lock(void **state)
{
	(void)state;
	double_frees("");
}

/*
 * A child's calls on the parent's cache fail. But the child can make a cache of
 * its own.
 */
static int child(void *token)
{
	struct flexmem_cache_options options = mock_options("");
	struct flexmem_cache_statistics f;
	struct flexmem_cache_setting setting;
	struct flexmem_cache *own;
	uint64_t value;
	char *text;

	if (flexmem_cache_alloc(cache, 1000, 0, &token) != -ECHILD ||
	    flexmem_cache_free(cache, token) != -ECHILD ||
	    flexmem_cache_free(cache, NULL) != -ECHILD ||
	    flexmem_cache_record_stream(cache, token, 1) != -ECHILD ||
	    flexmem_cache_empty(cache, NULL) != -ECHILD ||
	    flexmem_cache_trim(cache, 1, NULL) != -ECHILD ||
	    flexmem_cache_memory_info(cache, &value, &value) != -ECHILD ||
	    flexmem_cache_pool_create(cache, &value) != -ECHILD ||
	    flexmem_cache_pool_release(cache, 1) != -ECHILD ||
	    flexmem_cache_set_history(cache, 1) != -ECHILD ||
	    flexmem_cache_snapshot(cache, 0, &text, NULL) != -ECHILD ||
	    flexmem_cache_setting(cache, 0, &setting, sizeof(setting)) !=
	    -ECHILD ||
	    flexmem_cache_reset_peaks(cache) != -ECHILD ||
	    flexmem_cache_reset_accumulated(cache) != -ECHILD ||
	    flexmem_cache_statistics(cache, &f, sizeof(f)) != -ECHILD)
		return 1;
	mock.frees = 0;
	flexmem_cache_destroy(cache);
	if (mock.frees)
		return 2;
	if (flexmem_cache_create(&own, &options, sizeof(options)))
		return 3;
	give(own, take(own, 1000, 0));
	give(own, take(own, 1000, 0));
	if (figures(own).num_hits != 1)
		return 4;
	flexmem_cache_destroy(own);
	return 0;
}

static void fork_and_wait(void *token)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid)
		_exit(child(token));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void forking(void **state)
{
	void *token;

	(void)state;
	cache = mock_cache_events("");
	token = take(cache, 1000, 0);
	give(cache, take(cache, 2000, 0));
	assert_int_equal(flexmem_cache_record_stream(cache, token, 1), 0);
	give(cache, token);
	token = take(cache, 1000, 0);
	fork_and_wait(token);
	/* In the parent the cache still works. */
	give(cache, token);
	mock.happened[0] = true;
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	flexmem_cache_destroy(cache);
}

#define SMALL 320

/* Fills the device, frees, and then does nothing while main() allocates. */
static void *free_and_idle(void *unused)
{
	void *tokens[SMALL];
	int i;

	(void)unused;
	for (i = 0; i < SMALL; i++)
		EXPECT(!flexmem_cache_alloc(cache, 20 * MIB / SMALL, 0,
					    &tokens[i]));
	for (i = 0; i < SMALL; i++)
		EXPECT(!flexmem_cache_free(cache, tokens[i]));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* The memory that an idle thread has freed serves any thread and stream. */
static void idle_threads_keep_nothing(void **state)
{
	pthread_t thread;

	(void)state;
	mock.capacity = 20 * MIB;
	cache = mock_cache("");
	pthread_barrier_init(&barrier, NULL, 2);
	run(&thread, 1, free_and_idle);
	pthread_barrier_wait(&barrier);
	give(cache, take(cache, 20 * MIB, 0));
	give(cache, take(cache, 20 * MIB, 1));
	assert_int_equal(figures(cache).num_ooms, 0);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&failures), 0);
	pthread_barrier_destroy(&barrier);
	flexmem_cache_destroy(cache);
}

static atomic_bool stop;

static void *work_on(void *unused)
{
	(void)unused;
	while (!atomic_load(&stop)) {
		give(cache, take(cache, 1000, 0));
		give(cache, take(cache, 5 * MIB, 1));
	}
	return NULL;
}

static void forking_among_threads(void **state)
{
	pthread_t threads[2];
	int i;

	(void)state;
	cache = mock_cache("");
	atomic_store(&stop, false);
	run(threads, 2, work_on);
	for (i = 0; i < 10; i++)
		fork_and_wait(&threads);
	atomic_store(&stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(figures(cache).allocation[0].current, 0);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(with_lock),
		CACHE_TEST(with_growing),
		CACHE_TEST(with_lock_released),
		CACHE_TEST(direct),
		CACHE_TEST(with_events),
		CACHE_TEST(with_growing_and_events),
		CACHE_TEST(addresses_of_blocks),
		CACHE_TEST(addresses_of_segments),
		CACHE_TEST(double_frees_with_lock),
		CACHE_TEST(idle_threads_keep_nothing),
		CACHE_TEST(forking),
		CACHE_TEST(forking_among_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
