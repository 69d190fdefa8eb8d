// SPDX-License-Identifier: GPL-2.0
/*
 * Memory pressure on a real driver, with a device of 2 GiB in regions of 1 GiB.
 * One idle process has 90 percent of the memory in its cache, and another
 * process needs memory. Runs in a virtual machine, on the PF or VF that
 * FLEX_DEVICE names.
 */
#include "test.h"
#include "flexmem_cache.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIECE (32 * MIB)
#define PIECES 57

/*
 * Which part of the process that has the memory serves the events of the
 * device.
 */
enum served_by { NOBODY, LOOP, HELPER };

/* The report that the other process sends at its end. */
struct outcome {
	int error;
	uint64_t cached;
	uint64_t events;
	uint64_t released;
};

struct holder {
	pid_t pid;
	int ready;
	int stop;
	int outcome;
};

static int fill(struct flexmem_cache *cache)
{
	void *tokens[PIECES] = { NULL };
	int err = 0;
	int i;

	for (i = 0; !err && i < PIECES; i++)
		err = flexmem_cache_alloc(cache, PIECE, 0, &tokens[i]);
	while (--i >= 0)
		flexmem_cache_free(cache, tokens[i]);
	return err;
}

/*
 * A framework's event loop, in which the device is one of several descriptors.
 */
static int loop(struct flexmem_cache *cache, struct flexmem_device *device,
		int stop)
{
	struct pollfd fds[] = {
		{ .fd = stop, .events = POLLIN },
		{ .fd = flexmem_device_fd(device), .events = POLLIN },
	};
	int err = 0;

	while (!err) {
		if (poll(fds, 2, -1) < 0)
			return -errno;
		if (fds[0].revents)
			return 0;
		if (fds[1].revents & (POLLERR | POLLHUP))
			return -ENODEV;
		err = flexmem_cache_serve_pressure(cache, NULL);
		if (err == -EAGAIN)
			err = 0;
	}
	return err;
}

static struct outcome keep(const char *configuration, enum served_by served_by,
			   int ready, int stop)
{
	struct flexmem_cache_options options = {
		.configuration = configuration,
	};
	struct flexmem_cache_statistics f = { 0 };
	struct flexmem_cache *cache = NULL;
	struct outcome outcome = { 0 };
	char byte = 0;

	outcome.error = flexmem_device_open(&options.device, NULL);
	if (!outcome.error)
		outcome.error = flexmem_cache_create(&cache, &options,
						     sizeof(options));
	if (!outcome.error)
		outcome.error = fill(cache);
	flexmem_cache_statistics(cache, &f, sizeof(f));
	outcome.cached = f.reserved_bytes[0].current;
	if (!outcome.error && served_by == HELPER)
		outcome.error = flexmem_cache_start_helper(cache);
	if (write(ready, &byte, 1) != 1)
		outcome.error = -errno;
	if (!outcome.error && served_by == LOOP)
		outcome.error = loop(cache, options.device, stop);
	/*
	 * The test closes the other end to stop the loop, so read() returns 0.
	 */
	if (read(stop, &byte, 1))
		outcome.error = -EPROTO;
	flexmem_cache_statistics(cache, &f, sizeof(f));
	outcome.events = f.num_pressure_events;
	outcome.released = f.pressure_bytes;
	flexmem_cache_destroy(cache);
	flexmem_device_close(options.device);
	return outcome;
}

/* Starts a process and waits until it has 90 percent of the memory. */
static struct holder start(const char *configuration, enum served_by served_by)
{
	struct holder holder;
	struct outcome outcome;
	int ready[2];
	int stop[2];
	int back[2];
	char byte;

	assert_int_equal(pipe(ready) || pipe(stop) || pipe(back), 0);
	holder.pid = fork();
	assert_true(holder.pid >= 0);
	if (!holder.pid) {
		close(stop[1]);
		outcome = keep(configuration, served_by, ready[1], stop[0]);
		_exit(write(back[1], &outcome, sizeof(outcome)) !=
		      sizeof(outcome));
	}
	close(ready[1]);
	close(stop[0]);
	close(back[1]);
	holder.ready = ready[0];
	holder.stop = stop[1];
	holder.outcome = back[0];
	assert_int_equal(read(holder.ready, &byte, 1), 1);
	return holder;
}

static struct outcome stop_holder(struct holder *holder)
{
	struct outcome outcome;
	int status;

	close(holder->stop);
	assert_int_equal(read(holder->outcome, &outcome, sizeof(outcome)),
			 sizeof(outcome));
	assert_int_equal(waitpid(holder->pid, &status, 0), holder->pid);
	assert_int_equal(status, 0);
	close(holder->ready);
	close(holder->outcome);
	assert_int_equal(outcome.error, 0);
	assert_true(outcome.cached >= PIECE * PIECES);
	return outcome;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * Like flexmem_cache_alloc_request(), but waits for memory until @until. It tries
 * again each second, because a failed allocation asks other processes once.
 */
static int patient_alloc(struct flexmem_cache *cache,
			 struct flexmem_device *device,
			 const struct flexmem_cache_request *request,
			 struct flexmem_cache_allocation *made, int64_t until)
{
	const struct flexmem_failure *failure = &made->failure.device;
	int64_t left;
	int err;

	for (;;) {
		err = flexmem_cache_alloc_request(cache, request,
						  sizeof(*request), made,
						  sizeof(*made));
		left = until - now_ms();
		if (err != -ENOMEM || left <= 0 || !failure->event)
			return err;
		flexmem_device_wait(device, failure->event, failure->asked,
				    left < 1000 ? (uint32_t)left : 1000);
	}
}

/*
 * Allocates @bytes in allocations of @piece bytes, within a time limit. Returns
 * 0 or the error of the cache.
 */
static int need(uint64_t bytes, uint64_t piece, int64_t patience_ms)
{
	struct flexmem_cache_options options = { .configuration = "" };
	struct flexmem_cache_request request = { .bytes = piece };
	struct flexmem_cache_allocation made = { 0 };
	struct flexmem_cache *cache = NULL;
	int64_t begin = now_ms();
	char text[512];
	int err;

	err = flexmem_device_open(&options.device, NULL);
	if (!err)
		err = flexmem_cache_create(&cache, &options, sizeof(options));
	for (; !err && bytes; bytes -= piece)
		err = patient_alloc(cache, options.device, &request, &made,
				    begin + patience_ms);
	flexmem_cache_error_text(err, &made.failure, sizeof(made.failure), text,
				 sizeof(text));
	printf("# after %lld ms: %s\n", (long long)(now_ms() - begin), text);
	flexmem_cache_destroy(cache);
	flexmem_device_close(options.device);
	return err;
}

/* Much longer than a process takes to serve the events. */
#define PATIENCE_MS 120000

/*
 * The process with the memory serves events: it must return as many bytes as
 * the other process needs, but need not return more.
 */
static void is_relieved(const char *configuration, enum served_by served_by,
			uint64_t bytes, uint64_t piece)
{
	struct holder holder = start(configuration, served_by);
	int err = need(bytes, piece, PATIENCE_MS);
	struct outcome outcome = stop_holder(&holder);

	assert_int_equal(err, 0);
	assert_true(outcome.events > 0);
	assert_true(outcome.released >= bytes - (2 * GIB - outcome.cached));
	printf("# %llu events, %llu MiB of %llu MiB given back\n",
	       (unsigned long long)outcome.events,
	       (unsigned long long)(outcome.released / MIB),
	       (unsigned long long)(outcome.cached / MIB));
}

/*
 * If no part of the process serves events, the request fails. This shows that
 * the other tests can fail.
 */
static void unserved_pressure_is_enomem(void **state)
{
	struct holder holder = start("", NOBODY);
	struct outcome outcome;

	(void)state;
	assert_int_equal(need(GIB, PIECE, 1000), -ENOMEM);
	outcome = stop_holder(&holder);
	assert_int_equal(outcome.released, 0);
	/* The kernel frees a process's memory when the process ends. */
	assert_int_equal(need(GIB, PIECE, 0), 0);
}

static void loop_relieves_many_pieces(void **state)
{
	(void)state;
	is_relieved("", LOOP, GIB, PIECE);
}

static void helper_relieves_many_pieces(void **state)
{
	(void)state;
	is_relieved("", HELPER, GIB, PIECE);
}

static void loop_relieves_growing_segments(void **state)
{
	(void)state;
	is_relieved("expandable_segments:True", LOOP, GIB, GIB);
}

static void helper_relieves_nearly_all(void **state)
{
	(void)state;
	is_relieved("expandable_segments:True", HELPER, 60 * PIECE, PIECE);
}

static atomic_int warnings;
static char warning[512];

static void keep_warning(enum flexmem_log_level level, const char *text,
			 void *user)
{
	(void)level;
	(void)user;
	snprintf(warning, sizeof(warning), "%s", text);
	atomic_fetch_add(&warnings, 1);
}

/* Binds the PF or VF to its driver, or unbinds it. */
static void driver(const char *what)
{
	const char *kind = getenv("FLEX_DEVICE");
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/platform/drivers/flexmem_sim/%s",
		 what);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "flexmem_sim_%s.0", kind && !strcmp(kind, "PF") ?
		"pf" : "vf");
	assert_int_equal(fclose(file), 0);
}

/*
 * The device is removed while the helper waits for events, and is bound again
 * later.
 */
static void helper_ends_with_the_device(void **state)
{
	struct flexmem_cache_options options = {
		.configuration = "",
		.log = keep_warning,
		.level = FLEXMEM_LOG_WARNING,
	};
	struct flexmem_cache *cache;
	int waited;

	(void)state;
	warning[0] = '\0';
	assert_int_equal(flexmem_device_open(&options.device, NULL), 0);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	assert_int_equal(flexmem_cache_start_helper(cache), 0);
	driver("unbind");
	for (waited = 0; waited < 60000 && !atomic_load(&warnings); waited++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(flexmem_cache_stop_helper(cache), 0);
	assert_non_null(strstr(warning, "pressure is not served any more"));
	assert_int_equal(flexmem_cache_serve_pressure(cache, NULL), -ENODEV);
	flexmem_cache_destroy(cache);
	flexmem_device_close(options.device);
	driver("bind");
	assert_int_equal(need(GIB, PIECE, 0), 0);
}

#define PRESSURE_TEST(name) cmocka_unit_test(name)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		PRESSURE_TEST(unserved_pressure_is_enomem),
		PRESSURE_TEST(loop_relieves_many_pieces),
		PRESSURE_TEST(helper_relieves_many_pieces),
		PRESSURE_TEST(loop_relieves_growing_segments),
		PRESSURE_TEST(helper_relieves_nearly_all),
		PRESSURE_TEST(helper_ends_with_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
