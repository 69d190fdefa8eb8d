// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Chooses the node: a path, or the first node of a kind. */
#define _GNU_SOURCE
#include "functions.h"
#include "internal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEVICES "/proc/devices"
#define NAME "flexmem"

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

static int open_first(struct flexmem_device *device,
		      const struct fmlib_functions *functions,
		      enum flexmem_mode mode)
{
	int result = -ENODEV;
	size_t i;
	int err;

	for (i = 0; i < functions->count; i++) {
		err = open_node(device, functions->list[i].path);
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
	struct fmlib_functions functions;
	int result = -ENODEV;
	int err;

	err = fmlib_functions_list(&functions, true);
	if (err)
		return err;
	if (want_vf)
		result = open_first(device, &functions, FLEXMEM_MODE_VF);
	if (want_pf && result && !is_final(result)) {
		err = open_first(device, &functions, FLEXMEM_MODE_PF);
		if (!err || is_final(err))
			result = err;
		else
			result = worse_error(result, err);
	}
	free(functions.list);
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

/*
 * Whether a line of /proc/devices says that flexmem has this major number. The
 * list of block devices has other names.
 */
static bool is_ours(const char *line, unsigned int number)
{
	char name[sizeof(NAME) + 1];
	unsigned int found;

	return sscanf(line, "%u %8s", &found, name) == 2 && found == number &&
	       !strcmp(name, NAME);
}

/* Whether the driver of the character devices with this number is flexmem. */
static int check_major(unsigned int number)
{
	char line[128];
	int err = -EINVAL;
	FILE *file;
	int fd;

	fd = open(DEVICES, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	file = fdopen(fd, "r");
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	while (err && fgets(line, sizeof(line), file)) {
		if (is_ours(line, number))
			err = 0;
	}
	fclose(file);
	return err;
}

/*
 * Before the first command, because other drivers may give the number of INFO
 * another meaning.
 */
static int check_node(int fd)
{
	struct stat status;

	if (fstat(fd, &status) || !S_ISCHR(status.st_mode))
		return -EINVAL;
	return check_major(major(status.st_rdev));
}

/* The path by which this process would reach the file, if there is one. */
static char *path_of(int fd)
{
	char link[32], path[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	path[length < 0 ? 0 : length] = '\0';
	return strdup(path);
}

int fmlib_adopt(struct flexmem_device *device, int fd)
{
	struct flexmem_info info = { .size = sizeof(info) };
	int err;

	err = check_node(fd);
	if (err)
		return err;
	device->fd = fd;
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_INFO, &info);
	if (err)
		return err == -ENODEV ? err : -EINVAL;
	device->path = path_of(fd);
	if (!device->path)
		return -ENOMEM;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	device->info = info;
	device->adopted = true;
	return 0;
}
