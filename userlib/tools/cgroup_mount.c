// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Where cgroups (version 2) are mounted. Also linked into the hook of containers. */
#include "cgroup_mount.h"

#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool cgroup_root(char root[PATH_MAX])
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

int cgroup_below(const char *root, const char *name, uint64_t *id)
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

int cgroup_at(const char *path, uint64_t *id)
{
	char root[PATH_MAX];

	return cgroup_root(root) ? cgroup_below(root, path, id) : -ENODEV;
}
