// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "aside.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int fill(int fd, mode_t mode, void (*print)(FILE *file, void *user),
		void *user)
{
	FILE *file = fdopen(fd, "w");
	int err = 0;

	if (!file) {
		err = -errno;
		close(fd);
		return err;
	}
	print(file, user);
	if (fchmod(fd, mode) || fflush(file) || ferror(file))
		err = -errno;
	if (fclose(file) && !err)
		err = -errno;
	return err;
}

int write_aside(const char *path, mode_t mode,
		void (*print)(FILE *file, void *user), void *user)
{
	char aside[PATH_MAX];
	int fd, err;

	if (snprintf(aside, sizeof(aside), "%s.XXXXXX", path) >=
	    (int)sizeof(aside))
		return -ENAMETOOLONG;
	fd = mkstemp(aside);
	if (fd < 0)
		return -errno;
	err = fill(fd, mode, print, user);
	if (!err && rename(aside, path))
		err = -errno;
	if (err)
		unlink(aside);
	return err;
}
