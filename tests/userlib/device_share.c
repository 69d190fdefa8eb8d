// SPDX-License-Identifier: GPL-2.0
/*
 * A process in a container with a share of a VF, for tests/vm/shares.sh:
 *
 *	device_share exact	allocates exactly what it is told that it can
 *				have, each time as much as it is told that one
 *				allocation can have
 *	device_share pieces	the same in pieces of at most PIECE bytes, while
 *				others allocate and free
 *	device_share told	the same as "exact", while others allocate and
 *				free: if they take the block first, PIECE bytes
 *	device_share churn	allocates and frees up to its limit, until it is
 *				killed; prints a line when it has reached it
 *
 * Exit status: 0; 1: an allocation has failed, or the figures are wrong.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flexmem.h"

/* All sizes are multiples of this, so no hole is smaller. */
#define PIECE (UINT64_C(64) << 10)

/* More pieces than a limit here has room for. */
#define MANY 1024

static struct flexmem_device *device;

static void check(int err, const char *what, const struct flexmem_failure *why)
{
	char text[512];

	if (!err)
		return;
	flexmem_error_text(err, why, why ? sizeof(*why) : 0, text,
			   sizeof(text));
	printf("%s: %s\n", what, text);
	exit(1);
}

static int get(uint64_t bytes, struct flexmem_allocated *a)
{
	return flexmem_device_alloc(device, bytes, 0, 0, a, sizeof(*a));
}

static struct flexmem_available available(void)
{
	struct flexmem_available found;

	check(flexmem_device_available(device, &found, sizeof(found)),
	      "available", NULL);
	return found;
}

/*
 * The other containers may leave no hole of that size. But each byte that this
 * container has not used of its share is free, so there is a hole of PIECE.
 * @bytes: receives PIECE in this case.
 */
static int get_some(uint64_t *bytes, struct flexmem_allocated *a)
{
	int err = get(*bytes, a);

	if (err == -ENOMEM && *bytes > PIECE &&
	    a->failure.limit != FLEXMEM_LIMIT_CGROUP) {
		*bytes = PIECE;
		err = get(PIECE, a);
	}
	return err;
}

/* @strict: each request must succeed as it is told. */
static int fill(uint64_t most, bool strict)
{
	struct flexmem_available told = available();
	uint64_t total = told.total;
	uint64_t free_bytes = told.free;
	struct flexmem_allocated a;
	uint64_t bytes;

	if (free_bytes != total) {
		printf("%llu of %llu bytes are free at the start\n",
		       (unsigned long long)free_bytes,
		       (unsigned long long)total);
		return 1;
	}
	for (; free_bytes; free_bytes -= bytes) {
		bytes = available().largest;
		if (bytes > most)
			bytes = most;
		if (bytes > free_bytes)
			bytes = free_bytes;
		check(strict ? get(bytes, &a) : get_some(&bytes, &a), "alloc",
		      &a.failure);
	}
	/* That was all. */
	if (get(1, &a) != -ENOMEM || a.failure.limit != FLEXMEM_LIMIT_CGROUP) {
		printf("more than %llu bytes can be had\n",
		       (unsigned long long)total);
		return 1;
	}
	return 0;
}

/* The same numbers in each run. */
static uint32_t next(void)
{
	static uint32_t state = 1;

	state = state * 1664525 + 1013904223;
	return state >> 8;
}

static void churn(void)
{
	static uint32_t handles[MANY];
	struct flexmem_allocated a;
	uint32_t count = 0;
	uint32_t victim;
	bool full = false;
	uint64_t bytes;
	int err;

	for (;;) {
		bytes = (1 + next() % 16) * PIECE;
		err = get_some(&bytes, &a);
		if (!err && count < MANY) {
			handles[count++] = a.handle;
			continue;
		}
		if (!err) {
			printf("more than %d pieces\n", MANY);
			exit(1);
		}
		if (err != -ENOMEM || a.failure.limit != FLEXMEM_LIMIT_CGROUP)
			check(err, "churn", &a.failure);
		if (!full) {
			puts("full");
			fflush(stdout);
		}
		full = true;
		/* The others get most of the processor. */
		usleep(1000);
		for (victim = next() % 8; victim && count; victim--) {
			uint32_t at = next() % count;

			check(flexmem_device_free(device, handles[at]), "free",
			      NULL);
			handles[at] = handles[--count];
		}
	}
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";
	int status = 1;

	check(flexmem_device_open(&device, "VF"), "open", NULL);
	if (!strcmp(what, "churn"))
		churn();
	else if (!strcmp(what, "exact"))
		status = fill(UINT64_MAX, true);
	else if (!strcmp(what, "pieces"))
		status = fill(PIECE, true);
	else if (!strcmp(what, "told"))
		status = fill(UINT64_MAX, false);
	flexmem_device_close(device);
	return status;
}
