// SPDX-License-Identifier: GPL-2.0
/*
 * A hog and its neighbours, for tests/vm/neighbours.sh:
 *
 *	device_hog FILL NEIGHBOURS CONFIGURATION [deaf]
 *
 * A process, the hog, fills FILL percent of the device through a cache with
 * that CONFIGURATION. Then it frees three quarters of that, which stay in its
 * cache. NEIGHBOURS processes, all at the same moment, each allocate their share
 * of the free memory and of half of what the hog keeps idle. Each makes a
 * single call of flexmem_cache_alloc_request(), as frameworks do: this call
 * fails in the driver, which tells the hog's helper, and it tries again inside.
 * All processes keep their memory until the end. With "deaf" the hog has no
 * helper.
 *
 * The device must be one region, because each share is one allocation.
 *
 * The test does not depend on the clock. The clock of the library stands still,
 * so what the hog gives is in vain for ever unless a neighbour takes it. A
 * neighbour tries again when a block is free that is as large as it needs, and
 * when another neighbour has got its memory: that may have been the block. Then it
 * fails again, and the driver tells the hog of that.
 *
 * Exit status: 0; 1: a neighbour's request has failed; 2: the test is wrong.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/cache.h"

#define MIB (UINT64_C(1) << 20)

/* The cache's segments of large blocks are multiples of this. */
#define ROUND (2 * MIB)

/* The size of the hog's idle blocks. Each is a segment unless segments grow. */
#define PIECE (32 * MIB)
#define MANY 64

/* Much longer than the hog takes to answer, in milliseconds. */
#define PATIENCE_MS 60000

struct figures {
	uint64_t free;
	uint64_t total;
	uint64_t idle;
};

struct outcome {
	int error;
	char text[512];
};

static struct flexmem_cache_options options;
static struct flexmem_cache *cache;

/* What a neighbour needs; 0 in the hog. */
static uint64_t needed;
static bool deaf;

/* How many neighbours have got their memory; all processes share it. */
static unsigned int *served;

/* Also ends the other processes, which wait for the parent's end of the pipe. */
static void wrong(const char *what, int err)
{
	printf("%s: %s\n", what, strerror(err < 0 ? -err : errno));
	exit(2);
}

static void check(int err, const char *what)
{
	if (err)
		wrong(what, err);
}

static void pause_ms(long ms)
{
	const struct timespec time = { .tv_nsec = ms * 1000000 };

	nanosleep(&time, NULL);
}

/* The library's clock. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){ .tv_sec = 5000 };
	return 0;
}

/* The pause between two attempts of a request. */
int __wrap_clock_nanosleep(clockid_t clock, int flags,
			   const struct timespec *time, struct timespec *left)
{
	static unsigned int seen;
	static int waited;
	struct flexmem_domain_state all;
	unsigned int now;

	(void)clock;
	(void)flags;
	(void)time;
	(void)left;
	for (; !deaf && waited < PATIENCE_MS; waited++) {
		check(flexmem_device_domain(options.device,
					    FLEXMEM_WHOLE_DEVICE, &all,
					    sizeof(all)), "domain");
		now = __atomic_load_n(served, __ATOMIC_SEQ_CST);
		if (all.tensor_largest >= needed || now != seen) {
			seen = now;
			break;
		}
		pause_ms(1);
	}
	return 0;
}

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);

/* The helper looks at what lacks, but not at the level, without an event. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	return __real_poll(fds, count, timeout < 1000 ? timeout : -1);
}

static void make_cache(const char *configuration, bool helper)
{
	options.configuration = configuration;
	check(flexmem_device_open(&options.device, NULL), "open");
	check(flexmem_cache_create(&cache, &options, sizeof(options)), "cache");
	if (helper)
		check(flexmem_cache_start_helper(cache), "helper");
}

/* The level that the device has in the end. */
static uint32_t level_of(uint64_t in_use, uint64_t memory)
{
	if (in_use >= memory / 100 * FLEXMEM_CRITICAL_ENTER + 100)
		return FLEXMEM_LEVEL_CRITICAL;
	if (in_use >= memory / 100 * FLEXMEM_MODERATE_ENTER + 100)
		return FLEXMEM_LEVEL_MODERATE;
	return FLEXMEM_LEVEL_NONE;
}

/* Waits until the helper has read the event that tells of @level. */
static void hears_of(uint32_t level)
{
	uint32_t now;
	int i;

	for (i = 0; i < PATIENCE_MS; i++) {
		fmlib_lock(cache);
		now = cache->level;
		fmlib_unlock(cache);
		if (now == level)
			return;
		pause_ms(1);
	}
	wrong("the hog hears of no event", -ETIMEDOUT);
}

/* Fills the device, of which one quarter stays in use. */
static void fill(unsigned int percent)
{
	void *tokens[MANY];
	uint64_t free_bytes;
	uint64_t total;
	uint64_t bytes;
	uint64_t size;
	void *live;
	int count;

	check(flexmem_device_memory_info(options.device, &free_bytes, &total),
	      "info");
	bytes = fmlib_round_up(total / 100 * percent, ROUND);
	size = bytes / 4 / ROUND * ROUND;
	check(flexmem_cache_alloc(cache, size, 0, &live), "live");
	for (bytes -= size, count = 0; bytes; bytes -= size, count++) {
		if (count == MANY)
			wrong("the device is too large", -E2BIG);
		size = bytes < 2 * PIECE ? bytes : PIECE;
		check(flexmem_cache_alloc(cache, size, 0, &tokens[count]),
		      "idle");
	}
	check(flexmem_device_memory_info(options.device, &free_bytes, &total),
	      "info");
	/* That was while all was live, so the hog gives nothing for it. */
	if (!deaf)
		hears_of(level_of(total - free_bytes, total));
	while (count--)
		check(flexmem_cache_free(cache, tokens[count]), "free");
}

/* The hog sends its figures, and stays until the pipe @stop is closed. */
static void hog(unsigned int percent, const char *configuration, int out,
		int stop)
{
	struct flexmem_cache_statistics f;
	struct figures figures;
	char byte;

	make_cache(configuration, !deaf);
	fill(percent);
	check(flexmem_device_memory_info(options.device, &figures.free,
					 &figures.total), "info");
	check(flexmem_cache_statistics(cache, &f, sizeof(f)), "statistics");
	figures.idle = f.reserved_bytes[0].current -
		       f.allocated_bytes[0].current;
	if (write(out, &figures, sizeof(figures)) != sizeof(figures) ||
	    read(stop, &byte, 1))
		wrong("pipe", 0);
}

/* Asks when the pipe @go is closed. Stays until the pipe @stop is closed. */
static void neighbour(uint64_t bytes, int out, const int *go, int stop)
{
	struct flexmem_cache_request request = { .bytes = bytes };
	struct flexmem_cache_allocation made = { 0 };
	struct outcome outcome = { 0 };
	char byte;

	needed = bytes;
	close(go[1]);
	make_cache("", true);
	if (write(out, "", 1) != 1 || read(go[0], &byte, 1))
		wrong("pipe", 0);
	outcome.error = flexmem_cache_alloc_request(cache, &request,
						    sizeof(request), &made,
						    sizeof(made));
	if (!outcome.error)
		__atomic_add_fetch(served, 1, __ATOMIC_SEQ_CST);
	flexmem_cache_error_text(outcome.error, &made.failure,
				 sizeof(made.failure), outcome.text,
				 sizeof(outcome.text));
	if (write(out, &outcome, sizeof(outcome)) != sizeof(outcome) ||
	    read(stop, &byte, 1))
		wrong("pipe", 0);
}

/*
 * Starts a process that holds @stop[0] until the end. Returns a pipe from which
 * the caller reads what the process sends; in the process @out is the other end
 * and the return value -1.
 */
static int start(const int *stop, int *out)
{
	int ends[2];
	pid_t pid;

	/* The process must not print again what is in the buffer. */
	fflush(stdout);
	if (pipe(ends))
		wrong("pipe", 0);
	pid = fork();
	if (pid < 0)
		wrong("fork", 0);
	close(pid ? ends[1] : ends[0]);
	if (pid)
		return ends[0];
	close(stop[1]);
	*out = ends[1];
	return -1;
}

/* Reads what a process sends. Exits if the process has ended instead. */
static void receive(int in, void *data, ssize_t size)
{
	if (read(in, data, (size_t)size) != size)
		exit(2);
}

/* Starts the neighbours, and lets them ask when all of them are ready. */
static void start_all(uint64_t share, unsigned int neighbours, const int *stop,
		      int *in)
{
	unsigned int i;
	char byte;
	int go[2];
	int out;

	if (pipe(go))
		wrong("pipe", 0);
	for (i = 0; i < neighbours; i++) {
		in[i] = start(stop, &out);
		if (in[i] < 0) {
			neighbour(share, out, go, stop[0]);
			_exit(0);
		}
		receive(in[i], &byte, sizeof(byte));
	}
	close(go[0]);
	close(go[1]);
}

/* Returns 1 if one of the requests fails. */
static int ask(const struct figures *hogs, unsigned int percent,
	       unsigned int neighbours, const int *stop)
{
	uint64_t share = (hogs->free + hogs->idle / 2) / neighbours / ROUND *
			 ROUND;
	struct outcome outcome;
	int in[MANY];
	unsigned int i;
	int status = 0;

	printf("fill %u %%: %llu of %llu MiB are free, the hog keeps %llu MiB idle; shares of %llu MiB\n",
	       percent, (unsigned long long)(hogs->free / MIB),
	       (unsigned long long)(hogs->total / MIB),
	       (unsigned long long)(hogs->idle / MIB),
	       (unsigned long long)(share / MIB));
	start_all(share, neighbours, stop, in);
	for (i = 0; i < neighbours; i++) {
		receive(in[i], &outcome, sizeof(outcome));
		close(in[i]);
		if (!outcome.error)
			continue;
		printf("neighbour %u: %s\n", i + 1, outcome.text);
		status = 1;
	}
	return status;
}

int main(int argc, char **argv)
{
	unsigned int neighbours;
	struct figures hogs;
	unsigned int percent;
	int status;
	int stop[2];
	int out;
	int in;

	if (argc < 4 || pipe(stop))
		return 2;
	percent = (unsigned int)atoi(argv[1]);
	neighbours = (unsigned int)atoi(argv[2]);
	if (neighbours > MANY)
		return 2;
	deaf = argc > 4;
	served = mmap(NULL, sizeof(*served), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (served == MAP_FAILED)
		wrong("mmap", 0);
	in = start(stop, &out);
	if (in < 0) {
		hog(percent, argv[3], out, stop[0]);
		_exit(0);
	}
	receive(in, &hogs, sizeof(hogs));
	close(in);
	status = ask(&hogs, percent, neighbours, stop);
	close(stop[1]);
	while (wait(NULL) > 0)
		;
	return status;
}
