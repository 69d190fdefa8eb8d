// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Finds the paths of cgroups (version 2), which the driver knows by number. */
#include "tool.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No deeper cgroup has an account in the driver. */
#define DEPTH_MAX 32

bool cgroup_id(const char *name, uint64_t *id)
{
	char root[PATH_MAX];
	size_t length;

	if (!fmlib_cgroup_root(root))
		return false;
	length = strlen(root);
	if (!strncmp(name, root, length) && (!name[length] || name[length] == '/'))
		name += length;
	return !fmlib_cgroup_below(root, name, id);
}

/* A walk through all cgroups. @path: of the cgroup where the walk is. */
struct walk {
	struct cgroup_names *names;
	size_t left;
	char path[PATH_MAX];
};

static int by_id(const void *a, const void *b)
{
	const struct cgroup_name *one = a;
	const struct cgroup_name *other = b;

	return (one->id > other->id) - (one->id < other->id);
}

static struct cgroup_name *find_name(const struct cgroup_names *names,
				     uint64_t id)
{
	const struct cgroup_name wanted = { .id = id };

	if (!names->count)
		return NULL;
	return bsearch(&wanted, names->entries, names->count,
		       sizeof(*names->entries), by_id);
}

static void note_path(struct walk *walk, uint64_t id)
{
	struct cgroup_name *name = find_name(walk->names, id);

	if (!name || name->path)
		return;
	name->path = copy_text(*walk->path ? walk->path : "/");
	walk->left--;
}

static void walk_below(struct walk *walk, int parent, const char *name,
		       unsigned int depth);

/* Looks at one child of the cgroup, whose path has @length bytes. */
static void walk_child(struct walk *walk, int parent, size_t length,
		       const struct dirent *child, unsigned int depth)
{
	size_t size = strlen(child->d_name);

	if (child->d_type != DT_DIR || !strcmp(child->d_name, ".") ||
	    !strcmp(child->d_name, "..") || length + 1 + size >= PATH_MAX)
		return;
	walk->path[length] = '/';
	memcpy(walk->path + length + 1, child->d_name, size + 1);
	note_path(walk, child->d_ino);
	if (depth < DEPTH_MAX)
		walk_below(walk, parent, child->d_name, depth + 1);
	walk->path[length] = '\0';
}

/* A cgroup that is removed during the walk gets no path. */
static void walk_below(struct walk *walk, int parent, const char *name,
		       unsigned int depth)
{
	int fd = openat(parent, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	size_t length = strlen(walk->path);
	const struct dirent *child;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (walk->left && (child = readdir(directory)))
		walk_child(walk, fd, length, child, depth);
	closedir(directory);
}

static void find_paths(struct cgroup_names *names)
{
	struct walk walk = { .names = names, .left = names->count };
	struct stat state;
	char root[PATH_MAX];

	if (!names->count || !fmlib_cgroup_root(root))
		return;
	if (!*root)
		strcpy(root, "/");
	if (stat(root, &state))
		return;
	note_path(&walk, state.st_ino);
	walk_below(&walk, AT_FDCWD, root, 1);
}

/* A cgroup can have an account of each function. */
static void drop_repeated(struct cgroup_names *names)
{
	size_t left = 0;
	size_t i;

	for (i = 0; i < names->count; i++) {
		if (!left || names->entries[left - 1].id != names->entries[i].id)
			names->entries[left++] = names->entries[i];
	}
	names->count = left;
}

void cgroup_names_find(struct cgroup_names *names,
		       const struct flexmem_account_state *accounts,
		       size_t count)
{
	size_t i;

	names->count = 0;
	names->entries = grow(NULL, count + 1, sizeof(*names->entries));
	for (i = 0; i < count; i++) {
		if (accounts[i].kind != FLEXMEM_ACCOUNT_CGROUP ||
		    accounts[i].removed)
			continue;
		names->entries[names->count++] = (struct cgroup_name){
			.id = accounts[i].id,
		};
	}
	qsort(names->entries, names->count, sizeof(*names->entries), by_id);
	drop_repeated(names);
	find_paths(names);
}

const char *cgroup_names_get(const struct cgroup_names *names, uint64_t id)
{
	const struct cgroup_name *name = find_name(names, id);

	return name ? name->path : NULL;
}

void cgroup_names_clear(struct cgroup_names *names)
{
	size_t i;

	for (i = 0; i < names->count; i++)
		free(names->entries[i].path);
	free(names->entries);
}

char *cgroup_path(uint64_t id)
{
	struct cgroup_name name = { .id = id };
	struct cgroup_names names = { .entries = &name, .count = 1 };

	find_paths(&names);
	return name.path;
}
