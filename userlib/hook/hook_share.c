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

/* Reads the use of a share. Returns false if its container is gone. */
static bool read_use(int shares, const char *name, struct use *use)
{
	int fd = openat(shares, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char line[PATH_MAX + FUNCTION_MAX + 32];
	uint64_t now;
	int length = 0;
	bool good;

	if (!file)
		return false;
	good = fgets(line, sizeof(line), file) &&
	       sscanf(line, "%" SCNu64 " %127s %n", &use->cgroup,
		      use->function, &length) == 2 && length;
	fclose(file);
	if (!good)
		return false;
	line[strcspn(line, "\n")] = '\0';
	snprintf(use->path, sizeof(use->path), "%s", line + length);
	return cgroup_at(use->path, &now) && now == use->cgroup;
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

/* Whether another share of the function has the same cgroup. */
static bool has_other_share(const struct hook *hook)
{
	int fd = dup(hook->shares);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *file;
	struct use use;
	bool found = false;

	if (!directory)
		return !hook_fail("the shares in use cannot be read");
	rewinddir(directory);
	while (!found && (file = readdir(directory)))
		found = file->d_name[0] != '.' &&
			strcmp(file->d_name, hook->share) &&
			read_use(hook->shares, file->d_name, &use) &&
			use.cgroup == hook->cgroup &&
			!strcmp(use.function, hook->function) &&
			!hook_fail("the container has another share of the function %s: %s",
				   hook->function, file->d_name);
	closedir(directory);
	return found;
}

bool hook_take_share(struct hook *hook)
{
	struct use use;

	hook->shares = open_shares();
	/* The lock ends with this process. */
	if (hook->shares < 0 || flock(hook->shares, LOCK_EX))
		return hook_fail("the shares in use cannot be locked: %s",
				 strerror(errno));
	if (!hook->unlimited && read_use(hook->shares, hook->share, &use) &&
	    use.cgroup != hook->cgroup)
		return hook_fail("the share %s is in use by %s", hook->share,
				 use.path);
	return hook->unlimited || !has_other_share(hook);
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
