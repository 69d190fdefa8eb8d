// SPDX-License-Identifier: GPL-2.0
/*
 * Counts instructions in user space: by the processor's counter if there is
 * one, else by callgrind. callgrind runs this program again and counts in
 * functions named counted_...
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* The descriptor of this thread's counter, or below 0. */
static _Thread_local int counter = -1;
static uint64_t counted;

static int open_counter(void)
{
	struct perf_event_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.size = sizeof(attributes);
	attributes.type = PERF_TYPE_HARDWARE;
	attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
	attributes.exclude_kernel = 1;
	attributes.exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
}

void count_begin(void)
{
	counter = open_counter();
}

void count_end(void)
{
	if (counter < 0)
		return;
	if (read(counter, &counted, sizeof(counted)) != sizeof(counted))
		counted = 0;
	close(counter);
	counter = -1;
}

bool count_by_processor(void)
{
	int fd = open_counter();

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

uint64_t count_of_last(void)
{
	return counted;
}

/* Reads the line "summary: NUMBER" of callgrind's output; 0: there is none. */
static uint64_t read_summary(const char *path)
{
	unsigned long long number = 0;
	char line[4096];
	FILE *file = fopen(path, "r");

	while (file && !number && fgets(line, sizeof(line), file))
		sscanf(line, "summary: %llu", &number);
	if (file)
		fclose(file);
	return number;
}

uint64_t count_by_callgrind(const char *what, const char *trace)
{
	char path[] = "/tmp/flexmem-bench-XXXXXX";
	char self[4096] = "";
	char output[64];
	uint64_t number;
	int status = 1;
	pid_t child;
	int fd;

	fd = mkstemp(path);
	if (fd < 0 || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 0;
	close(fd);
	snprintf(output, sizeof(output), "--callgrind-out-file=%s", path);
	child = fork();
	if (!child) {
		execlp("valgrind", "valgrind", "-q", "--tool=callgrind",
		       output, "--collect-atstart=no",
		       "--toggle-collect=counted_*", self,
		       "--count", what, trace, (char *)NULL);
		_exit(127);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	number = status ? 0 : read_summary(path);
	unlink(path);
	return number;
}
