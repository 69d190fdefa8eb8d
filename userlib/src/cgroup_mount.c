// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Where cgroups (version 2) are mounted. Also used by the command and the hook of containers. */
#include "cgroup_mount.h"

#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool fmlib_cgroup_root(char root[PATH_MAX])
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *mount;
	bool found = false;

	while (mounts && !found && (mount = getmntent(mounts))) {
		found = !strcmp(mount->mnt_type, "cgroup2") &&
			strlen(mount->mnt_dir) < PATH_MAX;
		if (found)
			strcpy(root, mount->mnt_dir);
	}
	if (mounts)
		endmntent(mounts);
	if (found && !strcmp(root, "/"))
		*root = '\0';
	return found;
}

int fmlib_cgroup_below(const char *root, const char *name, uint64_t *id)
{
	struct stat state;
	char path[PATH_MAX];
	size_t length;

	length = (size_t)snprintf(path, sizeof(path), "%s%s%s", root,
				  *name == '/' ? "" : "/", name);
	if (length >= sizeof(path))
		return -ENAMETOOLONG;
	if (stat(path, &state))
		return errno == ENOTDIR ? -ENOENT : -errno;
	if (!S_ISDIR(state.st_mode))
		return -ENOENT;
	*id = state.st_ino;
	return 0;
}

int fmlib_cgroup_at(const char *path, uint64_t *id)
{
	char root[PATH_MAX];

	return fmlib_cgroup_root(root) ? fmlib_cgroup_below(root, path, id) : -ENODEV;
}

/* Reads the path of the caller's cgroup. Returns false if it has none. */
static bool own_path(char path[PATH_MAX])
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX + 8];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = !strncmp(line, "0::/", 4) && strchr(line, '\n');
	if (file)
		fclose(file);
	if (found)
		snprintf(path, PATH_MAX, "%.*s", (int)strcspn(line + 3, "\n"),
			 line + 3);
	return found;
}

bool fmlib_cgroup_above(uint64_t wanted, char path[PATH_MAX])
{
	char root[PATH_MAX];
	uint64_t id;
	char *end;

	/* A path with ".." leads out of the cgroup namespace. */
	if (!own_path(path) || strstr(path, "/..") || !fmlib_cgroup_root(root))
		return false;
	for (;;) {
		if (!fmlib_cgroup_below(root, path, &id) && id == wanted)
			return true;
		end = strrchr(path, '/');
		if (!end[1])
			return false;
		end[end == path] = '\0';
	}
}
