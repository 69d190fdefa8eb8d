// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of ALLOC and FREE. There are 1,000 live allocations of 1 byte to 1
 * MiB. 5,000 times a random allocation is freed and a new one is made, one by
 * one and in batches of 64. Prints nanoseconds of the machine's clock. In
 * tests/vm/bench.sh that clock counts instructions.
 * usage: pairs DEVICE-NODE
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include <linux/flexmem.h>

#define LIVE 1000
#define PAIRS 5000
#define BATCH 64
#define ROUNDS 5

static int fd;
static uint32_t live[LIVE];
/* Random numbers, drawn before the measurement. */
static uint32_t victim[PAIRS];
static uint64_t length[PAIRS];

static void fail(const char *what)
{
	fprintf(stderr, "pairs: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t draw(uint64_t below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % below;
}

static uint64_t now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000ull + at.tv_nsec;
}

static uint32_t allocate(uint64_t size)
{
	struct flexmem_alloc cmd = { .size = sizeof(cmd), .length = size };

	if (ioctl(fd, FLEXMEM_IOCTL_ALLOC, &cmd))
		fail("ALLOC");
	return cmd.out_handle;
}

static void give_back(uint32_t handle)
{
	struct flexmem_free cmd = { .size = sizeof(cmd), .handle = handle };

	if (ioctl(fd, FLEXMEM_IOCTL_FREE, &cmd))
		fail("FREE");
}

static void one_by_one(void)
{
	unsigned int i;

	for (i = 0; i < PAIRS; i++) {
		give_back(live[victim[i]]);
		live[victim[i]] = allocate(length[i]);
	}
}

static void batch(unsigned long command, void *entries, uint32_t entry_size,
		  uint32_t count)
{
	struct flexmem_batch cmd = {
		.size = sizeof(cmd),
		.entry_size = entry_size,
		.count = count,
		.entries = (uintptr_t)entries,
	};

	if (ioctl(fd, command, &cmd) || cmd.out_done != count)
		fail("batch");
}

/* A batch frees adjacent victims, so that no victim is drawn twice. */
static void in_batches(void)
{
	static struct flexmem_alloc alloc[BATCH];
	static struct flexmem_free free[BATCH];
	unsigned int i, j, at;

	for (i = 0; i + BATCH <= PAIRS; i += BATCH) {
		for (j = 0; j < BATCH; j++) {
			at = (victim[i] + j) % LIVE;
			free[j] = (struct flexmem_free) {
				.size = sizeof(free[j]), .handle = live[at] };
			alloc[j] = (struct flexmem_alloc) {
				.size = sizeof(alloc[j]), .length = length[i + j] };
		}
		batch(FLEXMEM_IOCTL_FREE_BATCH, free, sizeof(free[0]), BATCH);
		batch(FLEXMEM_IOCTL_ALLOC_BATCH, alloc, sizeof(alloc[0]), BATCH);
		for (j = 0; j < BATCH; j++)
			live[(victim[i] + j) % LIVE] = alloc[j].out_handle;
	}
}

/* Makes two system calls that do nothing, because their command is unknown. */
static void nothing(void)
{
	unsigned int i;

	for (i = 0; i < 2 * PAIRS; i++)
		if (!ioctl(fd, _IO(FLEXMEM_TYPE, 0xff), 0))
			fail("a command that there is not");
}

static int compare(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 :
	       *(const uint64_t *)a > *(const uint64_t *)b;
}

/* Returns the median of several rounds, divided by the number of pairs. */
static uint64_t measure(void (*work)(void), unsigned int pairs)
{
	uint64_t took[ROUNDS], begin;
	unsigned int i, j;

	for (i = 0; i < ROUNDS; i++) {
		for (j = 0; j < PAIRS; j++) {
			victim[j] = draw(LIVE);
			length[j] = 1 + draw(1 << 20);
		}
		begin = now();
		work();
		took[i] = (now() - begin) / pairs;
	}
	qsort(took, ROUNDS, sizeof(took[0]), compare);
	return took[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	unsigned int i;

	if (argc != 2) {
		fprintf(stderr, "usage: pairs DEVICE-NODE\n");
		return 2;
	}
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail(argv[1]);
	for (i = 0; i < LIVE; i++)
		live[i] = allocate(1 + draw(1 << 20));
	printf("one by one %llu, in batches of %d %llu, the way in and out alone %llu\n",
	       (unsigned long long)measure(one_by_one, PAIRS), BATCH,
	       (unsigned long long)measure(in_batches, PAIRS / BATCH * BATCH),
	       (unsigned long long)measure(nothing, PAIRS));
	return 0;
}
