// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The cgroup of a container. */
#include "hook.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cgroup_mount.h"

/*
 * Reads the path of a process' cgroup (version 2). Reads whole lines, because the
 * name of a cgroup of version 1 may contain what begins the line of version 2.
 * The kernel may add " (deleted)" to a path that is as long as paths can be.
 */
static bool read_path(const char *file, char path[PATH_MAX])
{
	FILE *stream = fopen(file, "re");
	char *line = NULL;
	bool found = false;
	ssize_t length;
	size_t room = 0;

	while (stream && !found &&
	       (length = getline(&line, &room, stream)) > 0) {
		if (line[length - 1] == '\n')
			line[--length] = '\0';
		found = !strncmp(line, "0::/", 4) && length - 3 < PATH_MAX;
		if (found)
			strcpy(path, line + 3);
	}
	free(line);
	if (stream)
		fclose(stream);
	return found;
}

static bool read_process(const struct hook *hook, char path[PATH_MAX])
{
	char file[32];

	snprintf(file, sizeof(file), "/proc/%ld/cgroup", (long)hook->pid);
	return read_path(file, path);
}

static bool is_hex(const char *name)
{
	return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
}

/* Whether an engine names the cgroup of one pod like this. */
static bool is_pod(const char *name)
{
	if (is_hex(name) || !strncmp(name, "pod", 3) ||
	    !strncmp(name, "machine-libpod_pod_", 19))
		return true;
	return !strncmp(name, "kubepods", 8) && strstr(name, "-pod");
}

static char *last_part(char *path)
{
	return strrchr(path, '/');
}

/*
 * Goes from a container's cgroup to that of its pod. With the systemd manager of
 * podman the container is in the child "container" of its scope.
 */
static bool go_to_pod(char path[PATH_MAX])
{
	if (!strcmp(last_part(path), "/container"))
		*last_part(path) = '\0';
	if (*path)
		*last_part(path) = '\0';
	return *path && is_pod(last_part(path) + 1);
}

bool hook_find_cgroup(struct hook *hook)
{
	char own[PATH_MAX];
	int err;

	/* The descriptor keeps the number from being given to another process. */
	hook->pidfd = (int)syscall(SYS_pidfd_open, hook->pid, 0);
	if (hook->pidfd < 0)
		return hook_fail("the container's process %ld is gone: %s",
				 (long)hook->pid, strerror(errno));
	if (!read_process(hook, hook->process_path))
		return hook_fail("the container's process %ld has no cgroup of version 2 whose path has less than %d bytes",
				 (long)hook->pid, PATH_MAX);
	if (!read_path("/proc/self/cgroup", own))
		return hook_fail("the hook has no cgroup of version 2 whose path has less than %d bytes",
				 PATH_MAX);
	strcpy(hook->path, hook->process_path);
	if (!strcmp(hook->path, "/") || !strncmp(hook->path, "/../", 4) ||
	    !strcmp(hook->path, "/.."))
		return hook_fail("the container is in the root cgroup or outside the hook's cgroups, so it cannot be limited");
	if (!strcmp(hook->path, own))
		return hook_fail("the container has no cgroup of its own (--cgroups=disabled), so it cannot be limited");
	if (hook->pod && !go_to_pod(hook->path))
		return hook_fail("the container's cgroup %s is in no pod",
				 hook->process_path);
	err = fmlib_cgroup_at(hook->path, &hook->cgroup);
	if (err == -ENOENT)
		return hook_fail("the cgroup %s is gone", hook->path);
	if (err)
		return hook_fail("the container's cgroup cannot be found: %s: %s",
				 strerror(-err), hook->path);
	return true;
}

bool hook_check_process(const struct hook *hook)
{
	struct pollfd ended = { .fd = hook->pidfd, .events = POLLIN };
	char path[PATH_MAX];

	if (!read_process(hook, path) || strcmp(path, hook->process_path))
		return hook_fail("the container's process %ld has moved to another cgroup",
				 (long)hook->pid);
	if (poll(&ended, 1, 0))
		return hook_fail("the container's process %ld has ended",
				 (long)hook->pid);
	return true;
}
