// SPDX-License-Identifier: GPL-2.0
/* The helper thread, which serves pressure events. Also runs under TSan. */
#include "cache_mock.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 200
#define PATIENCE_MS 60000

static struct flexmem_cache *cache;
static atomic_int mistakes;
static atomic_bool done;

static struct flexmem_cache *pressed_cache(const char *configuration)
{
	mock.has_pressure = true;
	return mock_cache(configuration);
}

static void pause_ms(long ms)
{
	const struct timespec time = { .tv_nsec = ms * 1000000 };

	nanosleep(&time, NULL);
}

/* Waits until the helper has served @count events. */
static void await_events(uint64_t count)
{
	int waited = 0;

	while (figures(cache).num_pressure_events < count) {
		assert_true(waited++ < PATIENCE_MS);
		pause_ms(1);
	}
}

static void helper_serves(void **state)
{
	(void)state;
	cache = pressed_cache("");
	three_free(cache);
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	assert_int_equal(flexmem_cache_start_helper(cache), -EEXIST);
	press(FLEXMEM_LEVEL_MODERATE, 850 * MIB, 1000 * MIB);
	await_events(1);
	assert_int_equal(figures(cache).pressure_bytes, 60 * MIB);
	press(FLEXMEM_LEVEL_CRITICAL, UINT64_MAX, GIB);
	await_events(2);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	assert_int_equal(flexmem_cache_stop_helper(cache), 0);
	assert_int_equal(flexmem_cache_stop_helper(cache), -ENOENT);
	/* No thread serves this event until a helper is started. */
	press(FLEXMEM_LEVEL_NONE, 0, GIB);
	pause_ms(20);
	assert_int_equal(figures(cache).num_pressure_events, 2);
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	await_events(3);
	/* Destroying the cache ends the helper. */
	flexmem_cache_destroy(cache);
	assert_int_equal(mock.warnings, 0);
}

/*
 * Makes three free segments, after the event that says that the device is full.
 */
static void free_after_the_event(void)
{
	void *tokens[3];
	int i;

	cache = pressed_cache("");
	mock.total = 60 * MIB;
	for (i = 0; i < 3; i++)
		tokens[i] = take(cache, 20 * MIB, 0);
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	press(FLEXMEM_LEVEL_CRITICAL, 60 * MIB, 60 * MIB);
	await_events(1);
	for (i = 0; i < 3; i++)
		give(cache, tokens[i]);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 60 * MIB);
}

/* Waits until the helper has checked the device's memory @count times. */
static void await_looks(unsigned int count)
{
	int waited = 0;

	while (atomic_load(&mock.infos) < count) {
		assert_true(waited++ < PATIENCE_MS);
		pause_ms(1);
	}
}

static void idle_program_gives(void **state)
{
	(void)state;
	free_after_the_event();
	await_looks(atomic_load(&mock.infos) + 2);
	/*
	 * The helper must return at least half of the memory, so it returns two
	 * of the three segments.
	 */
	assert_int_equal(flexmem_cache_stop_helper(cache), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 20 * MIB);
	assert_int_equal(figures(cache).pressure_bytes, 40 * MIB);
	assert_int_equal(figures(cache).num_pressure_events, 1);
	flexmem_cache_destroy(cache);
}

/*
 * The program allocates between two checks of the helper, so the helper must
 * not return memory. Returns false if the helper has checked more than once.
 */
static bool busy_once(void)
{
	unsigned int looks = atomic_load(&mock.infos);

	give(cache, take(cache, 20 * MIB, 0));
	await_looks(looks + 1);
	return atomic_load(&mock.infos) == looks + 1;
}

static void busy_program_keeps(void **state)
{
	bool busy;

	(void)state;
	do {
		free_after_the_event();
		busy = busy_once() && busy_once() && busy_once();
		assert_int_equal(flexmem_cache_stop_helper(cache), 0);
		/*
		 * If the helper checked more than once between two allocations,
		 * this thread was not scheduled in time. Then the result says
		 * nothing, and the test tries again.
		 */
		if (busy)
			assert_int_equal(figures(cache).pressure_bytes, 0);
		flexmem_cache_destroy(cache);
	} while (!busy);
}

static void bad_helpers(void **state)
{
	(void)state;
	cache = mock_cache("");
	assert_int_equal(flexmem_cache_start_helper(NULL), -EINVAL);
	assert_int_equal(flexmem_cache_stop_helper(NULL), -EINVAL);
	assert_int_equal(flexmem_cache_start_helper(cache), -EOPNOTSUPP);
	assert_int_equal(flexmem_cache_stop_helper(cache), -ENOENT);
	flexmem_cache_destroy(cache);
}

/* flexmem_cache_stop_helper() must not be a cancellation point. */
static void *stop_and_end(void *unused)
{
	(void)unused;
	pthread_cancel(pthread_self());
	if (!flexmem_cache_stop_helper(cache))
		atomic_store(&done, true);
	pthread_testcancel();
	return NULL;
}

static void cancelled_stop(void **state)
{
	pthread_t thread;
	void *result;

	(void)state;
	cache = pressed_cache("");
	atomic_store(&done, false);
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	assert_int_equal(pthread_create(&thread, NULL, stop_and_end, NULL), 0);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(atomic_load(&done));
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	flexmem_cache_destroy(cache);
}

#define DESCRIPTORS 256

static bool is_open(int descriptor)
{
	return fcntl(descriptor, F_GETFD) >= 0;
}

static void mark_open(bool open_ones[DESCRIPTORS])
{
	int i;

	for (i = 0; i < DESCRIPTORS; i++)
		open_ones[i] = is_open(i);
}

static int unread(int descriptor)
{
	int bytes = -1;

	assert_int_equal(ioctl(descriptor, FIONREAD, &bytes), 0);
	return bytes;
}

/* @user: the text that the test waits for. */
static void log_and_tell(enum flexmem_log_level level, const char *text,
			 void *user)
{
	(void)level;
	if (!strcmp(text, user))
		atomic_store(&done, true);
}

static void make_listening(char *text)
{
	struct flexmem_cache_options options;

	atomic_store(&done, false);
	mock.has_pressure = true;
	options = mock_options("");
	options.log = log_and_tell;
	options.log_user = text;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
}

static void start_and_listen(char *text)
{
	make_listening(text);
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
}

static void await_text(void)
{
	int waited = 0;

	while (!atomic_load(&done)) {
		assert_true(waited++ < PATIENCE_MS);
		pause_ms(1);
	}
}

/*
 * The program closes the provider's descriptor and opens another file with the
 * same number. The helper must not read that file.
 */
static void provider_loses_its_descriptor(void **state)
{
	char text[] = "pressure is not served any more: error 9";
	int foreign[2];
	int kept;

	(void)state;
	start_and_listen(text);
	assert_int_equal(pipe(foreign), 0);
	assert_int_equal(write(foreign[1], mock.log, 1000), 1000);
	press(FLEXMEM_LEVEL_NONE, 0, GIB);
	await_events(1);
	kept = dup(mock.pipe[0]);
	assert_int_equal(dup2(foreign[0], mock.pipe[0]), mock.pipe[0]);
	press(FLEXMEM_LEVEL_NONE, 0, GIB);
	await_text();
	assert_int_equal(flexmem_cache_stop_helper(cache), 0);
	assert_int_equal(unread(foreign[0]), 1000);
	assert_int_equal(figures(cache).num_pressure_events, 1);
	close(kept);
	close(foreign[0]);
	close(foreign[1]);
	flexmem_cache_destroy(cache);
}

/* TSan reports each close of a descriptor that another thread polls. */
#ifndef __SANITIZE_THREAD__
/* Finds the two descriptors that were opened since mark_open(). */
static void find_opened(const bool before[DESCRIPTORS], int opened[2])
{
	int count = 0;
	int i;

	for (i = 0; i < DESCRIPTORS; i++) {
		if (before[i] || !is_open(i))
			continue;
		assert_true(count < 2);
		opened[count++] = i;
	}
	assert_int_equal(count, 2);
}

/*
 * The program closes all descriptors and opens other files with the same
 * numbers. The helper must end by itself. Stopping the helper must not touch
 * these files.
 */
static void program_closes_all(void **state)
{
	char text[] = "pressure is not served any more: error 9";
	bool before[DESCRIPTORS];
	int foreign[2];
	int wake[2];

	(void)state;
	make_listening(text);
	mark_open(before);
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	press(FLEXMEM_LEVEL_NONE, 0, GIB);
	await_events(1);
	find_opened(before, wake);
	assert_int_equal(close(wake[0]), 0);
	assert_int_equal(close(wake[1]), 0);
	await_text();
	/* The lowest free descriptors: those of the helper. */
	assert_int_equal(pipe(foreign), 0);
	assert_memory_equal(foreign, wake, sizeof(wake));
	assert_int_equal(flexmem_cache_stop_helper(cache), 0);
	assert_int_equal(unread(foreign[0]), 0);
	assert_int_equal(close(foreign[0]), 0);
	assert_int_equal(close(foreign[1]), 0);
	flexmem_cache_destroy(cache);
}
#endif

/* The descriptors of the helper end with it, and a child inherits none. */
static void descriptors_end(void **state)
{
	bool before[DESCRIPTORS];
	bool after[DESCRIPTORS];
	int status;
	pid_t pid;

	(void)state;
	cache = pressed_cache("");
	mark_open(before);
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		mark_open(after);
		_exit(memcmp(before, after, sizeof(before)) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(flexmem_cache_stop_helper(cache), 0);
	mark_open(after);
	assert_memory_equal(before, after, sizeof(before));
	flexmem_cache_destroy(cache);
}

static pthread_t main_thread;

/* Runs in the helper when it returns a segment. */
static void look_at_signals(void)
{
	sigset_t set;

	if (pthread_equal(pthread_self(), main_thread))
		return;
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	if (!sigismember(&set, SIGINT) || !sigismember(&set, SIGUSR1) ||
	    !sigismember(&set, SIGCHLD))
		atomic_fetch_add(&mistakes, 1);
	atomic_store(&done, true);
}

static void helper_blocks_signals(void **state)
{
	sigset_t before;
	sigset_t after;

	(void)state;
	main_thread = pthread_self();
	atomic_store(&mistakes, 0);
	atomic_store(&done, false);
	cache = pressed_cache("");
	three_free(cache);
	mock.on_free = look_at_signals;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&before, SIGINT),
			 sigismember(&after, SIGINT));
	press(FLEXMEM_LEVEL_CRITICAL, UINT64_MAX, GIB);
	await_events(1);
	assert_true(atomic_load(&done));
	assert_int_equal(atomic_load(&mistakes), 0);
	flexmem_cache_destroy(cache);
}

/*
 * The pipe stands for the device. Closing its other end stands for the removal.
 */
static void device_goes(void **state)
{
	char text[] = "pressure is not served any more: error 19";

	(void)state;
	start_and_listen(text);
	close(mock.pipe[1]);
	mock.pipe[1] = -1;
	await_text();
	/* The helper has ended by itself, but must still be stopped. */
	assert_int_equal(flexmem_cache_stop_helper(cache), 0);
	assert_int_equal(flexmem_cache_stop_helper(cache), -ENOENT);
	flexmem_cache_destroy(cache);
}

/* A helper that has ended by itself can be replaced. */
static void ended_helper_is_replaced(void **state)
{
	int waited = 0;
	int err;

	(void)state;
	cache = pressed_cache("");
	atomic_store(&mock.pressure_error, -ENODEV);
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	press(FLEXMEM_LEVEL_NONE, 0, GIB);
	while ((err = flexmem_cache_start_helper(cache)) == -EEXIST) {
		assert_true(waited++ < PATIENCE_MS);
		pause_ms(1);
	}
	assert_int_equal(err, 0);
	await_events(1);
	assert_int_equal(flexmem_cache_stop_helper(cache), 0);
	assert_int_equal(mock.warnings, 1);
	flexmem_cache_destroy(cache);
}

static void some_errors_pass(void **state)
{
	static const int errors[] = { -ENOMEM, -EIO, -EINTR };
	size_t i;

	(void)state;
	cache = pressed_cache("");
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		atomic_store(&mock.pressure_error, errors[i]);
		press(FLEXMEM_LEVEL_NONE, 0, GIB);
		await_events(i + 1);
		assert_int_equal(atomic_load(&mock.pressure_error), 0);
	}
	assert_int_equal(flexmem_cache_stop_helper(cache), 0);
	assert_int_equal(mock.warnings, 0);
	flexmem_cache_destroy(cache);
}

static void *allocate(void *argument)
{
	void *tokens[8] = { NULL };
	uint64_t stream = (uintptr_t)argument % 2;
	size_t i;

	for (i = 0; !atomic_load(&done); i++) {
		if (flexmem_cache_free(cache, tokens[i % 8]))
			atomic_fetch_add(&mistakes, 1);
		if (flexmem_cache_alloc(cache, (i % 30 + 1) * MIB, stream,
					&tokens[i % 8]))
			atomic_fetch_add(&mistakes, 1);
	}
	for (i = 0; i < 8; i++) {
		if (flexmem_cache_free(cache, tokens[i]))
			atomic_fetch_add(&mistakes, 1);
	}
	return NULL;
}

/* The helper and this thread serve events while other threads allocate. */
static void everybody_at_once(const char *configuration)
{
	pthread_t threads[3];
	uint64_t events = 0;
	uint64_t before;
	size_t i;
	int err;

	mock.capacity = 4 * GIB;
	cache = pressed_cache(configuration);
	atomic_store(&mistakes, 0);
	atomic_store(&done, false);
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, allocate,
						(void *)(uintptr_t)i), 0);
	for (i = 0; i < ROUNDS; i++) {
		press(i % 3, GIB, GIB);
		events++;
		err = flexmem_cache_serve_pressure(cache, NULL);
		assert_true(!err || err == -EAGAIN);
		if (i % 50)
			continue;
		assert_int_equal(flexmem_cache_stop_helper(cache), 0);
		assert_int_equal(flexmem_cache_start_helper(cache), 0);
	}
	await_events(events);
	atomic_store(&done, true);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&mistakes), 0);
	assert_int_equal(figures(cache).allocation[0].current, 0);
	/*
	 * Whether memory was free at the events above depended on the threads.
	 * This event comes when all memory is free.
	 */
	give(cache, take(cache, 20 * MIB, 0));
	before = figures(cache).pressure_bytes;
	press(FLEXMEM_LEVEL_CRITICAL, UINT64_MAX, GIB);
	await_events(events + 1);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	assert_true(figures(cache).pressure_bytes > before);
	flexmem_cache_destroy(cache);
}

static void with_fixed_segments(void **state)
{
	(void)state;
	everybody_at_once("");
}

static void with_growing_segments(void **state)
{
	(void)state;
	everybody_at_once("expandable_segments:True");
}

/*
 * Calls that a forked child makes on its parent's cache and on a cache of its
 * own.
 */
static int child(void)
{
	if (flexmem_cache_serve_pressure(cache, NULL) != -ECHILD ||
	    flexmem_cache_start_helper(cache) != -ECHILD ||
	    flexmem_cache_stop_helper(cache) != -ECHILD)
		return 1;
	flexmem_cache_destroy(cache);
	/* TSan does not support threads in a child of a threaded process. */
#ifndef __SANITIZE_THREAD__
	/*
	 * The pipe and its event belong to the parent. The child makes a pipe
	 * of its own.
	 */
	close(mock.pipe[0]);
	close(mock.pipe[1]);
	mock.pipe[1] = 0;
	cache = mock_cache("");
	if (!cache || flexmem_cache_start_helper(cache) ||
	    flexmem_cache_stop_helper(cache))
		return 2;
	flexmem_cache_destroy(cache);
#endif
	return 0;
}

/*
 * The process forks while the helper works. In the parent the helper continues.
 */
static void fork_with_a_helper(void **state)
{
	uint64_t events = 0;
	int status;
	pid_t pid;
	int i;

	(void)state;
	cache = pressed_cache("");
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	for (i = 0; i < 20; i++) {
		give(cache, take(cache, 20 * MIB, 0));
		press(FLEXMEM_LEVEL_CRITICAL, UINT64_MAX, GIB);
		events++;
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			/*
			 * Ends the child if an inherited lock is held for ever.
			 */
			alarm(PATIENCE_MS / 1000);
			_exit(child());
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		await_events(events);
	}
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(helper_serves),
		CACHE_TEST(idle_program_gives),
		CACHE_TEST(busy_program_keeps),
		CACHE_TEST(bad_helpers),
		CACHE_TEST(cancelled_stop),
#ifndef __SANITIZE_THREAD__
		CACHE_TEST(program_closes_all),
#endif
		CACHE_TEST(descriptors_end),
		CACHE_TEST(provider_loses_its_descriptor),
		CACHE_TEST(helper_blocks_signals),
		CACHE_TEST(device_goes),
		CACHE_TEST(ended_helper_is_replaced),
		CACHE_TEST(some_errors_pass),
		CACHE_TEST(with_fixed_segments),
		CACHE_TEST(with_growing_segments),
		CACHE_TEST(fork_with_a_helper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
