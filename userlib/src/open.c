// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Chooses the node: a path, or the first node of a kind. */
#define _GNU_SOURCE
#include "internal.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define DEVICE_DIR "/dev"
#define DEVICE_STEM "flexmem"

/*
 * Opens one node and reads its properties. -ENOTTY: it is a node of another
 * driver.
 */
static int open_node(struct flexmem_device *device, const char *path)
{
	struct flexmem_info info = { .size = sizeof(info) };
	int err;

	/* With O_NONBLOCK flexmem_device_pressure() does not wait. */
	device->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (device->fd < 0)
		return errno == ENOENT || errno == ENXIO ? -ENODEV : -errno;
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_INFO, &info);
	if (err)
		goto out_close;
	device->path = strdup(path);
	if (!device->path) {
		err = -ENOMEM;
		goto out_close;
	}
	device->info = info;
	return 0;

out_close:
	close(device->fd);
	device->fd = -1;
	return err;
}

static void close_node(struct flexmem_device *device)
{
	close(device->fd);
	device->fd = -1;
	free(device->path);
	device->path = NULL;
}

/*
 * Returns the number in the name of a node, or -1 if it is not the name of a
 * flexmem node.
 */
static long node_number(const char *name)
{
	size_t stem = strlen(DEVICE_STEM);
	const char *digit;

	if (strncmp(name, DEVICE_STEM, stem))
		return -1;
	/* The kernel writes no leading zeros. A minor number has 20 bits. */
	if (!name[stem] || (name[stem] == '0' && name[stem + 1]) ||
	    strlen(name + stem) > 7)
		return -1;
	for (digit = name + stem; *digit; digit++) {
		if (!isdigit((unsigned char)*digit))
			return -1;
	}
	return strtol(name + stem, NULL, 10);
}

static int compare_numbers(const void *a, const void *b)
{
	long left = *(const long *)a;
	long right = *(const long *)b;

	return (left > right) - (left < right);
}

/* Collects the numbers of all nodes in ascending order. */
static int list_nodes(long **numbers, size_t *count)
{
	struct dirent *entry;
	size_t room = 0;
	long *more;
	long number;
	DIR *dir;
	int err = 0;

	*numbers = NULL;
	*count = 0;
	dir = opendir(DEVICE_DIR);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = readdir(dir))) {
		number = node_number(entry->d_name);
		if (number < 0)
			continue;
		if (*count == room) {
			room = room ? 2 * room : 16;
			more = realloc(*numbers, room * sizeof(**numbers));
			if (!more) {
				err = -ENOMEM;
				break;
			}
			*numbers = more;
		}
		(*numbers)[(*count)++] = number;
	}
	closedir(dir);
	if (err) {
		free(*numbers);
		return err;
	}
	if (*count)
		qsort(*numbers, *count, sizeof(**numbers), compare_numbers);
	return 0;
}

/*
 * Returns the more helpful of two errors, if several nodes cannot be used. An
 * error of permissions is more helpful than any other, because an administrator
 * can change permissions. EACCES is more helpful than EPERM: EPERM means a PF
 * that only the administrator may open.
 */
static int worse_error(int before, int now)
{
	if (now == -ENOTTY)
		now = -ENODEV;
	if (before == -EACCES || (before == -EPERM && now != -EACCES))
		return before;
	if (now == -EACCES || now == -EPERM || before == -ENODEV)
		return now;
	return before;
}

/*
 * Whether the error is about this process, not about the node: then other nodes
 * would cause the error too.
 */
static bool is_final(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM ||
	       err == -EINTR;
}

static int open_first(struct flexmem_device *device, const long *numbers,
		      size_t count, enum flexmem_mode mode)
{
	char path[sizeof(DEVICE_DIR "/" DEVICE_STEM) + 20];
	int result = -ENODEV;
	size_t i;
	int err;

	for (i = 0; i < count; i++) {
		snprintf(path, sizeof(path), DEVICE_DIR "/" DEVICE_STEM "%ld",
			 numbers[i]);
		err = open_node(device, path);
		if (!err && device->info.out_mode == mode)
			return 0;
		if (!err) {
			close_node(device);
			continue;
		}
		if (is_final(err))
			return err;
		result = worse_error(result, err);
	}
	return result;
}

static int open_kind(struct flexmem_device *device, bool want_vf, bool want_pf)
{
	int result = -ENODEV;
	size_t count;
	long *numbers;
	int err;

	err = list_nodes(&numbers, &count);
	if (err)
		return err;
	if (want_vf)
		result = open_first(device, numbers, count, FLEXMEM_MODE_VF);
	if (want_pf && result && !is_final(result)) {
		err = open_first(device, numbers, count, FLEXMEM_MODE_PF);
		if (!err || is_final(err))
			result = err;
		else
			result = worse_error(result, err);
	}
	free(numbers);
	return result;
}

int fmlib_open(struct flexmem_device *device, const char *path)
{
	bool from_environment = !path;

	/* The user of a setuid program must not choose the node. */
	if (from_environment)
		path = secure_getenv("FLEX_DEVICE");
	if (from_environment && (!path || !*path))
		return open_kind(device, true, true);
	if (!strcasecmp(path, "VF"))
		return open_kind(device, true, false);
	if (!strcasecmp(path, "PF"))
		return open_kind(device, false, true);
	if (from_environment && path[0] != '/')
		return -EINVAL;
	return open_node(device, path);
}
