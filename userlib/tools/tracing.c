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

#define INSTANCE TRACING "/instances/flexmem-map"

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

/* Each of these events tells of an address or of a failure. */
static const char *const events[] = { "alloc", "end", "charge", "region_add",
				      "region_remove" };

/*
 * An instance begins with the options of the whole system. Not each kernel has each
 * option.
 */
static const struct { const char *name, *value; } options[] = {
	{ "options/context-info", "0" }, { "options/raw", "0" },
	{ "options/hex", "0" }, { "options/bin", "0" },
	{ "options/fields", "0" }, { "options/overwrite", "1" },
};

static int set_up(uint32_t number)
{
	char text[64];
	size_t i;
	int err;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		err = put(options[i].name, options[i].value);
		if (err && err != -ENOENT)
			return err;
	}
	snprintf(text, sizeof(text), "minor == %" PRIu32, number);
	err = put("events/flexmem/filter", text);
	for (i = 0; !err && i < sizeof(events) / sizeof(events[0]); i++) {
		snprintf(text, sizeof(text), "events/flexmem/flexmem_%s/enable",
			 events[i]);
		err = put(text, "1");
	}
	return err;
}

int tracing_begin(uint32_t number)
{
	int err = make_instance();
	int fd;

	if (err)
		return err;
	fd = open_file("trace_pipe", O_RDONLY | O_NONBLOCK);
	err = fd < 0 ? fd : set_up(number);
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
	tracing_stop();
	if (fd >= 0)
		close(fd);
	rmdir(INSTANCE);
}
