// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "tracing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The tests have their own. */
#ifndef TRACING
#define TRACING "/sys/kernel/tracing"
#endif

#define INSTANCE TRACING "/instances/flexmem"

/* Opens a file of the instance. Returns a descriptor or a negative errno. */
static int open_file(const char *name, int flags)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), INSTANCE "/%s", name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int put(const char *name, const char *text)
{
	int fd = open_file(name, O_WRONLY | O_APPEND);
	int err = 0;

	if (fd < 0)
		return fd;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/*
 * Makes the instance. One that a killed process has left is made again; the kernel
 * removes none that a process reads.
 */
static int make_instance(void)
{
	if (!mkdir(INSTANCE, 0700))
		return 0;
	if (errno != EEXIST)
		return -errno;
	return rmdir(INSTANCE) || mkdir(INSTANCE, 0700) ? -errno : 0;
}

int tracing_begin(uint32_t number)
{
	char filter[40];
	int err = make_instance();
	int fd;

	if (err)
		return err;
	fd = open_file("trace_pipe", O_RDONLY | O_NONBLOCK);
	snprintf(filter, sizeof(filter), "minor == %" PRIu32, number);
	err = fd < 0 ? fd : put("options/context-info", "0");
	if (!err)
		err = put("events/flexmem/filter", filter);
	if (!err)
		err = put("events/flexmem/enable", "1");
	if (!err)
		return fd;
	tracing_end(fd);
	return err;
}

void tracing_stop(void)
{
	put("events/flexmem/enable", "0");
}

void tracing_end(int fd)
{
	if (fd >= 0)
		close(fd);
	rmdir(INSTANCE);
}
