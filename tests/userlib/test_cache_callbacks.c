// SPDX-License-Identifier: GPL-2.0
/* Events in a callback: its thread waits, is cancelled, or forks. */
#include "cache_mock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static struct flexmem_cache *cache;
static atomic_int failures;
static pthread_barrier_t barrier;

#define EXPECT(condition) \
	do { \
		if (!(condition)) \
			atomic_fetch_add(&failures, 1); \
	} while (0)

static void *call_back(void *unused)
{
	void *token;

	(void)unused;
	mock.fail_allocs = 2;
	EXPECT(flexmem_cache_alloc(cache, 20 * MIB, 0, &token) == -ENOMEM);
	return NULL;
}

static atomic_bool running;
static atomic_bool done;

static void slow_callback(void *user, uint64_t bytes)
{
	(void)user;
	(void)bytes;
	atomic_store(&running, true);
	pthread_barrier_wait(&barrier);
	usleep(20000);
	atomic_store(&done, true);
}

/* The removal of a callback waits until a running call of it has ended. */
static void removal_waits(void **state)
{
	pthread_t thread;

	(void)state;
	cache = mock_cache("");
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, slow_callback,
							NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, call_back, NULL),
			 0);
	pthread_barrier_wait(&barrier);
	assert_true(atomic_load(&running));
	assert_int_equal(flexmem_cache_remove_oom_callback(cache, slow_callback,
							   NULL), 0);
	assert_true(atomic_load(&done));
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	assert_int_equal(failures, 0);
	flexmem_cache_destroy(cache);
}

/* A thread with a pending cancellation calls the cache. */
static void *cancelled(void *argument)
{
	void (*call)(void) = *(void (**)(void))argument;

	pthread_cancel(pthread_self());
	call();
	/* The call has returned, and holds no lock. */
	atomic_store(&done, true);
	pthread_testcancel();
	return NULL;
}

static void cancel_in(void (*call)(void))
{
	pthread_t thread;
	void *result;

	atomic_store(&done, false);
	assert_int_equal(pthread_create(&thread, NULL, cancelled, &call), 0);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(atomic_load(&done));
}

static void log_and_cancel(enum flexmem_log_level level, const char *text,
			   void *user)
{
	(void)level;
	(void)text;
	(void)user;
	pthread_testcancel();
}

static int info_and_cancel(void *user, uint64_t *free_bytes, uint64_t *total)
{
	(void)user;
	*free_bytes = GIB;
	*total = GIB;
	pthread_testcancel();
	return 0;
}

static void call_and_cancel(void *user, uint64_t bytes)
{
	(void)user;
	(void)bytes;
	pthread_testcancel();
}

static void alloc_in_vain(void)
{
	void *token;

	mock.fail_allocs = 9;
	EXPECT(flexmem_cache_alloc(cache, 40 * MIB, 0, &token) == -ENOMEM);
	mock.fail_allocs = 0;
}

static void use_it(void)
{
	struct flexmem_cache_request request = { .bytes = 5000, .tag = "tag" };
	struct flexmem_cache_allocation a;
	void *token = take(cache, 3 * MIB, 0);

	EXPECT(!flexmem_cache_record_stream(cache, token, 1));
	give(cache, token);
	EXPECT(!flexmem_cache_pool_create(cache, &request.pool));
	EXPECT(!flexmem_cache_alloc_request(cache, &request, sizeof(request),
					    &a, sizeof(a)));
	give(cache, a.token);
	EXPECT(!flexmem_cache_pool_release(cache, request.pool));
}

static int held;

static void hold_and_cancel(void *user, void *context)
{
	(void)user;
	(void)context;
	held++;
	pthread_testcancel();
}

static void release_and_cancel(void *user, void *context)
{
	(void)user;
	(void)context;
	pthread_testcancel();
	held--;
}

static size_t print_and_cancel(void *user, void *context, char *text,
			       size_t length)
{
	(void)user;
	(void)context;
	pthread_testcancel();
	return (size_t)snprintf(text, length, "main");
}

static const struct flexmem_cache_contexts cancelling = {
	.print = print_and_cancel,
	.hold = hold_and_cancel,
	.release = release_and_cancel,
};

/* Two allocations, so that one unlock releases two contexts. */
static void use_contexts(void)
{
	struct flexmem_cache_request request = { .bytes = 5000 };
	struct flexmem_cache_allocation a[2];
	char *text;
	int i;

	for (i = 0; i < 2; i++) {
		request.context = &held;
		EXPECT(!flexmem_cache_alloc_request(cache, &request,
						    sizeof(request), &a[i],
						    sizeof(a[i])));
	}
	EXPECT(!flexmem_cache_snapshot(cache, FLEXMEM_CACHE_EVERY_POOL, &text,
				       NULL));
	flexmem_cache_text_free(text);
	for (i = 0; i < 2; i++)
		give(cache, a[i].token);
}

static void empty_it(void)
{
	/* The provider once fails to free a segment. The cache logs this. */
	mock.fail_frees = 1;
	EXPECT(flexmem_cache_empty(cache, NULL) == -ENOMEM);
	EXPECT(!flexmem_cache_empty(cache, NULL));
}

static void ask_it(void)
{
	uint64_t value;

	EXPECT(!flexmem_cache_memory_info(cache, &value, &value));
}

static void destroy_it(void)
{
	void *token = take(cache, 3 * MIB, 0);

	EXPECT(!flexmem_cache_record_stream(cache, token, 1));
	give(cache, token);
	flexmem_cache_destroy(cache);
}

/*
 * A thread is cancelled in a callback that is a cancellation point, while the
 * cache holds its lock.
 */
static void cancelled_afterwards(const char *configuration)
{
	struct flexmem_cache_options options = mock_options(configuration);
	struct flexmem_cache_provider provider = *options.provider;

	provider.memory_info = info_and_cancel;
	options.provider = &provider;
	options.events = &mock_events;
	options.events_size = sizeof(mock_events);
	options.log = log_and_cancel;
	options.contexts = &cancelling;
	options.contexts_size = sizeof(cancelling);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, call_and_cancel,
							NULL), 0);
	mock.on_alloc = pthread_testcancel;
	mock.on_free = pthread_testcancel;
	mock.on_wait = pthread_testcancel;
	cancel_in(use_it);
	cancel_in(alloc_in_vain);
	cancel_in(use_it);
	cancel_in(empty_it);
	cancel_in(ask_it);
	cancel_in(use_contexts);
	assert_int_equal(held, 0);
	assert_int_equal(figures(cache).allocation[0].current, 0);
	cancel_in(destroy_it);
	assert_int_equal(failures, 0);
}

static void cancelled_with_lock(void **state)
{
	(void)state;
	cancelled_afterwards("");
}

static void cancelled_without_lock(void **state)
{
	(void)state;
	cancelled_afterwards("release_lock_on_device_malloc:True");
}

static int record_and_cancel(void *user, uint64_t stream, uint64_t *event)
{
	pthread_testcancel();
	return mock_events.record(user, stream, event);
}

static int query_and_cancel(void *user, uint64_t event)
{
	pthread_testcancel();
	return mock_events.query(user, event);
}

#define FREES 100

static void *tokens[FREES];

static void free_them(void)
{
	int i;

	for (i = 0; i < FREES; i++)
		give(cache, tokens[i]);
}

/*
 * The same for frees that lock only the lane of their stream. Now and then they
 * record an event, and query those of other streams.
 */
static void cancelled_in_a_free(void **state)
{
	struct flexmem_cache_options options =
		mock_options("expandable_segments:True,reuse:done");
	struct flexmem_cache_events events = mock_events;
	int i;

	(void)state;
	events.record = record_and_cancel;
	events.query = query_and_cancel;
	options.events = &events;
	options.events_size = sizeof(events);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	/* Some of the blocks are kept (kept.c), and some are not. */
	for (i = 0; i < FREES; i++)
		tokens[i] = take(cache, i % 2 ? MIB : 2 * MIB, 1);
	take(cache, MIB, 2);
	cancel_in(free_them);
	assert_int_equal(failures, 0);
	assert_true(mock.events > 1);
	assert_int_equal(figures(cache).allocation[0].current, 1);
	flexmem_cache_destroy(cache);
}

static void remove_it(void)
{
	EXPECT(!flexmem_cache_remove_oom_callback(cache, slow_callback, NULL));
}

/* Cancels a thread that waits until a callback has ended. */
static void cancelled_removal(void **state)
{
	pthread_t thread;

	(void)state;
	cache = mock_cache("");
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, slow_callback,
							NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, call_back, NULL),
			 0);
	pthread_barrier_wait(&barrier);
	cancel_in(remove_it);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	assert_int_equal(failures, 0);
	flexmem_cache_destroy(cache);
}

/* Forks in a callback, once. */
static pid_t forked;

static void fork_here(void)
{
	if (forked >= 0)
		return;
	forked = fork();
	if (!forked)
		mock.frees = 0;
}

static void call_and_fork(void *user, uint64_t bytes)
{
	(void)user;
	(void)bytes;
	fork_here();
}

static int pressure_and_fork(void *user, struct flexmem_pressure_event *event)
{
	(void)user;
	fork_here();
	*event = (struct flexmem_pressure_event){
		.level = FLEXMEM_LEVEL_CRITICAL,
		.in_use = UINT64_MAX,
		.memory = GIB,
	};
	return 0;
}

/*
 * After the callback both processes continue. In the child the call must fail,
 * because the segments belong to the parent. The call must leave no lock held.
 */
static void fork_in(int (*call)(void), int expected)
{
	int status;
	int err;

	forked = -1;
	err = call();
	if (!forked) {
		if (err == -ECHILD)
			flexmem_cache_destroy(cache);
		_exit(err != -ECHILD || mock.frees ? 1 : 0);
	}
	assert_true(forked > 0);
	assert_int_equal(err, expected);
	assert_int_equal(waitpid(forked, &status, 0), forked);
	assert_int_equal(status, 0);
}

static int alloc_much(void)
{
	void *token;

	return flexmem_cache_alloc(cache, 20 * MIB, 0, &token);
}

static int empty_all(void)
{
	return flexmem_cache_empty(cache, NULL);
}

static int serve(void)
{
	return flexmem_cache_serve_pressure(cache, NULL);
}

static int destroy_all(void)
{
	flexmem_cache_destroy(cache);
	cache = NULL;
	return forked ? 0 : -ECHILD;
}

static void leave_waiting(uint64_t bytes)
{
	void *token = take(cache, bytes, 0);

	assert_int_equal(flexmem_cache_record_stream(cache, token, 1), 0);
	give(cache, token);
}

static void forking_in_callbacks(void **state)
{
	struct flexmem_cache_options options;
	struct flexmem_cache_provider provider;

	(void)state;
	mock.has_pressure = true;
	options = mock_options("release_lock_on_device_malloc:True");
	provider = *options.provider;
	provider.pressure = pressure_and_fork;
	options.provider = &provider;
	options.events = &mock_events;
	options.events_size = sizeof(mock_events);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	/* Now the cache has a free segment that it could return. */
	give(cache, take(cache, 60 * MIB, 7));
	mock.on_alloc = fork_here;
	fork_in(alloc_much, 0);
	mock.on_alloc = NULL;
	give(cache, take(cache, 60 * MIB, 7));
	assert_int_equal(flexmem_cache_add_oom_callback(cache, call_and_fork,
							NULL), 0);
	mock.fail_allocs = 1;
	fork_in(alloc_much, 0);
	assert_int_equal(flexmem_cache_remove_oom_callback(cache, call_and_fork,
							   NULL), 0);
	give(cache, take(cache, 60 * MIB, 7));
	fork_in(serve, 0);
	leave_waiting(60 * MIB);
	mock.on_wait = fork_here;
	fork_in(empty_all, 0);
	leave_waiting(MIB);
	mock.fail_allocs = 9;
	fork_in(alloc_much, -ENOMEM);
	mock.fail_allocs = 0;
	leave_waiting(60 * MIB);
	fork_in(destroy_all, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(removal_waits),
		CACHE_TEST(cancelled_with_lock),
		CACHE_TEST(cancelled_without_lock),
		CACHE_TEST(cancelled_in_a_free),
		CACHE_TEST(cancelled_removal),
		CACHE_TEST(forking_in_callbacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
