// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "aside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Signals that end the process while it writes. */
static const int deadly[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ };
#define DEADLY (sizeof(deadly) / sizeof(deadly[0]))

/* The file that such a signal removes, and how the signals were handled before. */
static const char *unfinished;
static struct sigaction before[DEADLY];

void aside_drop(void)
{
	if (unfinished)
		unlink(unfinished);
}

/* The signal's own action follows, because SA_RESETHAND has restored it. */
static void on_signal(int number)
{
	aside_drop();
	raise(number);
}

static void catch_signals(const char *name)
{
	const struct sigaction action = {
		.sa_handler = on_signal,
		.sa_flags = (int)SA_RESETHAND,
	};
	size_t i;

	unfinished = name;
	for (i = 0; i < DEADLY; i++) {
		sigaction(deadly[i], NULL, &before[i]);
		if (before[i].sa_handler == SIG_DFL)
			sigaction(deadly[i], &action, NULL);
	}
}

static void leave_signals(void)
{
	size_t i;

	unfinished = NULL;
	for (i = 0; i < DEADLY; i++)
		sigaction(deadly[i], &before[i], NULL);
}

static int begin(struct aside *aside, const char *path, mode_t mode)
{
	int fd, err;

	if (snprintf(aside->path, sizeof(aside->path), "%s", path) >=
	    (int)sizeof(aside->path) ||
	    snprintf(aside->name, sizeof(aside->name), "%s.XXXXXX", path) >=
	    (int)sizeof(aside->name))
		return -ENAMETOOLONG;
	catch_signals(aside->name);
	fd = mkstemp(aside->name);
	err = fd < 0 || fchmod(fd, mode) ? -errno : 0;
	if (!err)
		return fd;
	if (fd >= 0) {
		close(fd);
		unlink(aside->name);
	}
	leave_signals();
	return err;
}

int aside_begin(struct aside *aside, const char *path, mode_t mode)
{
	struct stat found;

	if (!lstat(path, &found) && !S_ISREG(found.st_mode))
		return S_ISDIR(found.st_mode) ? -EISDIR : -EEXIST;
	return begin(aside, path, mode);
}

int aside_begin_own(struct aside *aside, const char *path)
{
	char real[PATH_MAX];
	struct stat found;
	mode_t mask;
	int fd, err;

	if (!stat(path, &found)) {
		if (S_ISREG(found.st_mode) && realpath(path, real))
			return access(real, W_OK) ? -errno :
			       begin(aside, real, found.st_mode & 0777);
		aside->name[0] = '\0';
		fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	err = -errno;
	/* rename() would replace a link that leads nowhere. */
	if (err != -ENOENT || !lstat(path, &found))
		return err;
	mask = umask(0);
	umask(mask);
	return begin(aside, path, 0666 & ~mask);
}

int aside_end(struct aside *aside, int err)
{
	if (!aside->name[0])
		return err;
	if (!err && rename(aside->name, aside->path))
		err = -errno;
	if (err)
		unlink(aside->name);
	leave_signals();
	return err;
}

int aside_print(int fd, void (*print)(FILE *file, void *user), void *user)
{
	FILE *file = fdopen(fd, "w");
	int err = 0;

	if (!file) {
		err = -errno;
		close(fd);
		return err;
	}
	print(file, user);
	if (fflush(file) || ferror(file))
		err = -(errno ? errno : EIO);
	if (fclose(file) && !err)
		err = -errno;
	return err;
}
