// SPDX-License-Identifier: GPL-2.0
/*
 * A process of the qcard suite: opens a device node, and does what its standard input says, a command a line. It answers
 * each with one line.
 * usage: user NODE N        N: 1 to 15, differs between processes; the low half of each byte of their patterns
 *   alloc    allocates 4 MiB, checks that they are zero, maps them and fills them with a pattern:  ok | ERRNO | FOREIGN
 *   touch    writes and reads the map:                      ok | SIGBUS | CHANGED
 *   copy     writes by WRITE, reads by READ, compares:      ok | ERRNO | CHANGED
 *   free     unmaps and frees:                              ok | ERRNO
 *   trim     releases all regions without allocations:      ok | ERRNO
 *   churn N  N times alloc, touch, copy, free, trim:        good=N foreign=N failed=N (latest ERRNO)
 *   exit
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/flexmem.h>

#define SIZE (4u << 20)
#define PIECE 65536u

static int node;
static uint32_t handle;
static unsigned char *map;
static unsigned char seed;
static sigjmp_buf fault;

static void on_sigbus(int signal)
{
	(void)signal;
	siglongjmp(fault, 1);
}

static const char *error_name(void)
{
	return strerrorname_np(errno);
}

static const char *do_free(void)
{
	struct flexmem_free request = { .size = sizeof(request), .handle = handle };

	if (map)
		munmap(map, SIZE);
	map = NULL;
	return ioctl(node, FLEXMEM_IOCTL_FREE, &request) ? error_name() : "ok";
}

static const char *look_and_fill(void)
{
	if (sigsetjmp(fault, 1))
		return "SIGBUS";
	for (unsigned int i = 0; i < SIZE; i += 8)
		if (*(volatile uint64_t *)(map + i))
			return "FOREIGN";
	memset(map, seed, SIZE);
	return "ok";
}

static const char *do_alloc(void)
{
	struct flexmem_alloc alloc = { .size = sizeof(alloc), .length = SIZE, .alignment = 4096,
				       .flags = FLEXMEM_ALLOC_ZEROED | FLEXMEM_ALLOC_MAPPABLE };
	struct flexmem_lookup where = { .size = sizeof(where) };

	if (ioctl(node, FLEXMEM_IOCTL_ALLOC, &alloc))
		return error_name();
	handle = where.handle = alloc.out_handle;
	if (ioctl(node, FLEXMEM_IOCTL_LOOKUP, &where))
		return error_name();
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, node, where.out_map_offset);
	if (map == MAP_FAILED) {
		map = NULL;
		return error_name();
	}
	seed += 16;
	return look_and_fill();
}

static const char *do_touch(void)
{
	if (!map)
		return "unmapped";
	if (sigsetjmp(fault, 1))
		return "SIGBUS";
	for (unsigned int i = 0; i < SIZE; i += 4096) {
		volatile unsigned char *byte = map + i;

		if (*byte != seed)
			return "CHANGED";
		*byte = ~seed;
		if (*byte != (unsigned char)~seed)
			return "CHANGED";
		*byte = seed;
	}
	return "ok";
}

static const char *do_copy(void)
{
	static unsigned char out[PIECE], in[PIECE];
	struct flexmem_rw request = { .size = sizeof(request), .handle = handle, .length = PIECE };

	memset(out, seed, PIECE);
	for (request.offset = 0; request.offset < SIZE; request.offset += 16 * PIECE) {
		request.data = (uintptr_t)out;
		if (ioctl(node, FLEXMEM_IOCTL_WRITE, &request))
			return error_name();
		memset(in, ~seed, PIECE);
		request.data = (uintptr_t)in;
		if (ioctl(node, FLEXMEM_IOCTL_READ, &request))
			return error_name();
		if (memcmp(in, out, PIECE))
			return "CHANGED";
	}
	return "ok";
}

static const char *do_trim(void)
{
	struct flexmem_trim request = { .size = sizeof(request) };

	return ioctl(node, FLEXMEM_IOCTL_TRIM, &request) ? error_name() : "ok";
}

static const char *do_churn(long rounds)
{
	static const char *(*const steps[])(void) = { do_alloc, do_touch, do_copy, do_free, do_trim };
	static char answer[100];
	long good = 0, foreign = 0, failed = 0;
	const char *latest = "";

	for (long i = 0; i < rounds; i++) {
		bool whole = true;

		handle = 0;
		for (int step = 0; step < 5; step++) {
			const char *said = step == 3 && !handle ? "ok" : steps[step]();

			if (!strcmp(said, "ok"))
				continue;
			whole = false;
			foreign += !strcmp(said, "FOREIGN") || !strcmp(said, "CHANGED");
			latest = said;
			if (step < 3)
				step = 2;	/* free what there is */
		}
		good += whole;
		failed += !whole;
	}
	snprintf(answer, sizeof(answer), "good=%ld foreign=%ld failed=%ld %s", good, foreign, failed, latest);
	return answer;
}

static const char *obey(char *line)
{
	line[strcspn(line, "\n")] = 0;
	if (!strcmp(line, "alloc"))
		return do_alloc();
	if (!strcmp(line, "touch"))
		return do_touch();
	if (!strcmp(line, "copy"))
		return do_copy();
	if (!strcmp(line, "free"))
		return do_free();
	if (!strcmp(line, "trim"))
		return do_trim();
	if (!strncmp(line, "churn ", 6))
		return do_churn(atol(line + 6));
	return "unknown command";
}

int main(int argc, char **argv)
{
	char line[100];

	node = argc == 3 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	seed = argc == 3 ? atoi(argv[2]) : 0;
	if (node < 0 || !seed) {
		fprintf(stderr, "user: cannot open the node: %s\n", strerror(errno));
		return 2;
	}
	signal(SIGBUS, on_sigbus);
	setlinebuf(stdout);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "exit\n"))
		puts(obey(line));
	return 0;
}
