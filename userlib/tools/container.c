// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Finds the cgroup of a container by the container's id.
 *
 * Engines name a cgroup after the container: podman libpod-ID.scope or libpod-ID,
 * docker docker-ID.scope or ID, Kubernetes cri-containerd-ID.scope, crio-ID.scope
 * or ID. Only the whole id counts. The search does not look into containers: a
 * tenant who may make cgroups there could use the id of another one.
 */
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_LENGTH 64
/* Kubernetes has the most levels: three, and the container. */
#define DEPTH_MAX 6

/*
 * @bare: a name that is only an id is that of a container. podman names the cgroup
 * of a pod like that, and its containers with a prefix. @hits: how many cgroups
 * have the id. @cgroup: the number of the last.
 */
struct search {
	const char *id;
	bool bare;
	unsigned int hits;
	uint64_t cgroup;
};

static bool is_id(const char *text, size_t length)
{
	return length == ID_LENGTH &&
	       strspn(text, "0123456789abcdef") >= ID_LENGTH;
}

bool is_container(const char *text)
{
	return is_id(text, strlen(text));
}

/*
 * Returns the id in the name of a container's cgroup, or NULL. The cgroup of
 * podman's monitor, libpod-conmon-ID, is none.
 */
static const char *id_in(const struct search *search, const char *name)
{
	static const char *const engines[] = {
		"libpod-", "docker-", "cri-containerd-", "crio-", "",
	};
	size_t count = sizeof(engines) / sizeof(engines[0]);
	size_t length = strlen(name);
	size_t i, prefix;

	if (length > strlen(".scope") &&
	    !strcmp(name + length - strlen(".scope"), ".scope"))
		length -= strlen(".scope");
	for (i = 0; i < (search->bare ? count : count - 1); i++) {
		prefix = strlen(engines[i]);
		if (!strncmp(name, engines[i], prefix) && length > prefix &&
		    is_id(name + prefix, length - prefix))
			return name + prefix;
	}
	return NULL;
}

/*
 * Notes a container. With the systemd manager of podman its first process is in
 * the child "container".
 */
static void note(struct search *search, int parent, const char *name)
{
	char child[NAME_MAX + sizeof("/container")];
	struct stat state;

	snprintf(child, sizeof(child), "%s/container", name);
	if (fstatat(parent, child, &state, AT_SYMLINK_NOFOLLOW) &&
	    fstatat(parent, name, &state, AT_SYMLINK_NOFOLLOW))
		return;
	search->hits++;
	search->cgroup = state.st_ino;
}

static void search_below(struct search *search, int parent, const char *name,
			 unsigned int depth)
{
	int fd = openat(parent, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *child;
	const char *id;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((child = readdir(directory))) {
		if (child->d_type != DT_DIR || child->d_name[0] == '.')
			continue;
		id = id_in(search, child->d_name);
		if (!id) {
			if (depth < DEPTH_MAX)
				search_below(search, fd, child->d_name,
					     depth + 1);
		} else if (!strncmp(id, search->id, ID_LENGTH)) {
			note(search, fd, child->d_name);
		}
	}
	closedir(directory);
}

/* Whether engines make the cgroups of containers below this one. */
static bool is_parent(const char *name)
{
	return !strcmp(name, "machine.slice") || !strcmp(name, "system.slice") ||
	       !strcmp(name, "libpod_parent") || !strcmp(name, "docker") ||
	       !strncmp(name, "kubepods", strlen("kubepods"));
}

int container_cgroup(const char *id, uint64_t *cgroup)
{
	struct search search = { .id = id };
	char root[PATH_MAX];
	const struct dirent *child;
	DIR *directory;

	if (!fmlib_cgroup_root(root))
		return -ENOENT;
	directory = opendir(*root ? root : "/");
	if (!directory)
		return -errno;
	while ((child = readdir(directory))) {
		if (child->d_type != DT_DIR || !is_parent(child->d_name))
			continue;
		search.bare = strcmp(child->d_name, "libpod_parent");
		search_below(&search, dirfd(directory), child->d_name, 1);
	}
	closedir(directory);
	*cgroup = search.cgroup;
	if (search.hits > 1)
		return -ENOTUNIQ;
	return search.hits ? 0 : -ENOENT;
}
