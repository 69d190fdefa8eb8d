// SPDX-License-Identifier: GPL-2.0
/*
 * What a tenant that fails on purpose costs a neighbour, for
 * tests/vm/failing.sh. The neighbour has 1,000 live allocations of 1 byte to 1
 * MiB. It frees a random one and makes a new one, over and over: at first while
 * another process makes calls that disturb nobody, and then while that process
 * asks in a loop for memory that it cannot get. Prints the neighbour's processor
 * time of a pair in nanoseconds, its helper thread included, and how many
 * requests failed. With FLEXMEM_ACCEL=icount a nanosecond is an instruction.
 *
 *	failing cache		through a cache with a helper
 *	failing driver		without a cache
 *
 * Exit status: 0; 1: the tenant costs more than 1 percent; 2: the test is wrong.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "flexmem_cache.h"

#define MIB (UINT64_C(1) << 20)
#define LIVE 1000
#define STEP 1000

/*
 * For how long is measured, in nanoseconds of the neighbour's processor time:
 * long, because a cache gives back memory in vain at most once a second.
 */
#define SPENT 2e9

static struct flexmem_device *device;
static struct flexmem_cache *cache;
static void *tokens[LIVE];
static uint32_t handles[LIVE];

/* What the other process counts, and what it is told to do. */
static struct {
	volatile bool fails;
	volatile uint64_t failures;
} *shared;

static void check(int err, const char *what)
{
	if (!err)
		return;
	printf("%s: %s\n", what, strerror(-err));
	fflush(stdout);
	_exit(2);
}

static uint32_t draw(uint32_t below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}

/* Asks for all of the memory, which the device could have if others freed it. */
static void fail_in_a_loop(void)
{
	struct flexmem_allocated a;
	uint64_t free_bytes;
	uint64_t total;
	int err;

	check(flexmem_device_open(&device, NULL), "open");
	check(flexmem_device_memory_info(device, &free_bytes, &total), "info");
	for (;;) {
		if (!shared->fails) {
			/* An ioctl that fails, too, and disturbs nobody. */
			flexmem_device_free(device, UINT32_MAX);
			continue;
		}
		err = flexmem_device_alloc(device, total, 0, 0, &a, sizeof(a));
		if (err != -ENOMEM)
			check(err ? err : -EPROTO, "a request that fails");
		shared->failures++;
	}
}

static void replace(uint32_t at)
{
	uint64_t bytes = 1 + draw(MIB);
	struct flexmem_allocated a;

	if (cache) {
		if (tokens[at])
			check(flexmem_cache_free(cache, tokens[at]), "free");
		check(flexmem_cache_alloc(cache, bytes, 0, &tokens[at]),
		      "alloc");
		return;
	}
	if (handles[at])
		check(flexmem_device_free(device, handles[at]), "free");
	check(flexmem_device_alloc(device, bytes, 0, 0, &a, sizeof(a)),
	      "alloc");
	handles[at] = a.handle;
}

static double processor_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* The processor time of a pair, in nanoseconds. */
static double measure(bool fails)
{
	uint64_t pairs = 0;
	double begin;
	double now;
	unsigned int i;

	shared->fails = fails;
	begin = processor_time();
	do {
		for (i = 0; i < STEP; i++)
			replace(draw(LIVE));
		pairs += STEP;
		now = processor_time();
	} while (now - begin < SPENT);
	return (now - begin) / (double)pairs;
}

int main(int argc, char **argv)
{
	struct flexmem_cache_options options = { .configuration = "" };
	struct flexmem_cache_statistics f = { 0 };
	double without;
	double with;
	double ratio;
	unsigned int i;
	pid_t other;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (argc != 2 || shared == MAP_FAILED)
		return 2;
	other = fork();
	if (!other)
		fail_in_a_loop();
	check(flexmem_device_open(&device, NULL), "open");
	options.device = device;
	if (!strcmp(argv[1], "cache")) {
		check(flexmem_cache_create(&cache, &options, sizeof(options)),
		      "cache");
		check(flexmem_cache_start_helper(cache), "helper");
	}
	for (i = 0; i < LIVE; i++)
		replace(i);
	without = measure(false);
	with = measure(true);
	if (kill(other, SIGKILL) || waitpid(other, NULL, 0) != other)
		return 2;
	if (cache)
		flexmem_cache_statistics(cache, &f, sizeof(f));
	ratio = with / without;
	printf("%s: %.0f without, %.0f with a tenant that failed %llu times: %.4f; %llu events, %llu MiB given back\n",
	       argv[1], without, with,
	       (unsigned long long)shared->failures, ratio,
	       (unsigned long long)f.num_pressure_events,
	       (unsigned long long)(f.pressure_bytes / MIB));
	return ratio > 1.01;
}
