// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Which containers use which shares. A share is for one container, or one pod, at
 * a time. A file for each share has the number and path of the cgroup, and the
 * function. It counts while that cgroup exists.
 */
#include "hook.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup_mount.h"

#ifndef SHARES_DIR
#define SHARES_DIR "/run/flexmem"
#endif

#define FUNCTION_MAX 128

struct use {
	uint64_t cgroup;
	char function[FUNCTION_MAX];
	char path[PATH_MAX];
};

/* Reads the file of a share. Returns 0 or a negative errno. */
static int read_file(int shares, const char *name, struct use *use)
{
	int fd = openat(shares, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	int err = file ? 0 : -errno;
	char line[PATH_MAX + FUNCTION_MAX + 32];
	int length = 0;

	if (!file) {
		if (fd >= 0)
			close(fd);
		return err;
	}
	if (!fgets(line, sizeof(line), file))
		err = ferror(file) ? -errno : -EBADMSG;
	else if (sscanf(line, "%" SCNu64 " %127s %n", &use->cgroup,
			use->function, &length) != 2 || line[length] != '/')
		err = -EBADMSG;
	fclose(file);
	if (err)
		return err;
	line[strcspn(line, "\n")] = '\0';
	snprintf(use->path, sizeof(use->path), "%s", line + length);
	return 0;
}

/*
 * Whether a container uses a share, and what of: @use. If that cannot be found
 * out, reports it and clears @good: another container may have the share.
 */
static bool is_used(const struct hook *hook, const char *name, struct use *use,
		    bool *good)
{
	int err = read_file(hook->shares, name, use);
	uint64_t now = 0;

	if (!err)
		err = fmlib_cgroup_at(use->path, &now);
	if (err && err != -ENOENT)
		*good = hook_fail("whether the share %s is in use cannot be found out: %s; if it is not, remove %s",
				  name, strerror(-err), SHARES_DIR "/share");
	return !err && now == use->cgroup;
}

static int open_shares(void)
{
	int run, shares;

	if ((mkdir(SHARES_DIR, 0755) && errno != EEXIST))
		return -1;
	run = open(SHARES_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (run < 0)
		return -1;
	if (mkdirat(run, "share", 0755) && errno != EEXIST) {
		close(run);
		return -1;
	}
	shares = openat(run, "share",
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	close(run);
	return shares;
}

/* Checks that the cgroup has no other share of the function. */
static bool check_other(const struct hook *hook, const char *name)
{
	struct use use;
	bool good = true;

	if (name[0] != '.' && strcmp(name, hook->share) &&
	    is_used(hook, name, &use, &good) && use.cgroup == hook->cgroup &&
	    !strcmp(use.function, hook->function))
		return hook_fail("the container has another share of the function %s: %s",
				 hook->function, name);
	return good;
}

static bool check_others(const struct hook *hook)
{
	int fd = openat(hook->shares, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *file;
	bool good = true;

	if (!directory)
		return hook_fail("the shares in use cannot be read: %s",
				 strerror(errno));
	do {
		errno = 0;
		file = readdir(directory);
		if (file)
			good = check_other(hook, file->d_name);
		else if (errno)
			good = hook_fail("the shares in use cannot be read: %s",
					 strerror(errno));
	} while (file && good);
	closedir(directory);
	return good;
}

bool hook_take_share(struct hook *hook)
{
	struct use use;
	bool good = true;

	hook->shares = open_shares();
	/* The lock ends with this process. */
	if (hook->shares < 0 || flock(hook->shares, LOCK_EX))
		return hook_fail("the shares in use cannot be locked: %s",
				 strerror(errno));
	if (hook->unlimited)
		return true;
	if (is_used(hook, hook->share, &use, &good) &&
	    use.cgroup != hook->cgroup)
		return hook_fail("the share %s is in use by %s", hook->share,
				 use.path);
	return good && check_others(hook);
}

bool hook_keep_share(const struct hook *hook)
{
	char temporary[NAME_MAX + 1];
	FILE *file;
	bool good;
	int fd;

	if (hook->unlimited)
		return true;
	snprintf(temporary, sizeof(temporary), ".%.200s", hook->share);
	fd = openat(hook->shares, temporary,
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return hook_fail("the use of the share cannot be noted: %s",
				 strerror(errno));
	fprintf(file, "%" PRIu64 " %s %s\n", hook->cgroup, hook->function,
		hook->path);
	good = !ferror(file);
	good = !fclose(file) && good &&
	       !renameat(hook->shares, temporary, hook->shares, hook->share);
	return good || hook_fail("the use of the share cannot be noted: %s",
				 strerror(errno));
}
