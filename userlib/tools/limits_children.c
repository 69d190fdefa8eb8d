// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* In a file of limits, one line may stand for each child of a cgroup. */
#include "cgroup_limits.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_line(struct limits_file *file, const struct limits_line *line,
		     char *path)
{
	struct limits_line *added;

	file->lines = grow(file->lines, file->count + 1, sizeof(*file->lines));
	added = &file->lines[file->count++];
	*added = *line;
	added->path = path;
	added->function = line->function ? copy_text(line->function) : NULL;
}

static bool sets_any(const struct limits_line *line)
{
	uint32_t i;

	for (i = 0; i < LIMITS_AMOUNTS; i++)
		if (line->sets[i])
			return true;
	return false;
}

/* Adds a child, with the amounts that no line of its own sets on all functions. */
static void add_child(const struct limits_file *file, struct limits_file *to,
		      const struct limits_line *parent, const char *name)
{
	struct limits_line child = *parent;
	size_t size = strlen(parent->path) + strlen(name) + 2;
	char *path = grow(NULL, size, 1);
	const struct limits_line *own;
	size_t i;
	uint32_t amount;

	snprintf(path, size, "%s/%s",
		 strcmp(parent->path, "/") ? parent->path : "", name);
	for (i = 0; i < file->count; i++) {
		own = &file->lines[i];
		if (own->whose != FLEXMEM_FOR_CGROUP || own->each ||
		    own->function || strcmp(own->path, path))
			continue;
		for (amount = 0; amount < LIMITS_AMOUNTS; amount++)
			if (own->sets[amount])
				child.sets[amount] = false;
	}
	child.each = false;
	child.is_child = true;
	if (sets_any(&child))
		add_line(to, &child, path);
	else
		free(path);
}

static int is_cgroup(const struct dirent *entry)
{
	return entry->d_type == DT_DIR && strcmp(entry->d_name, ".") &&
	       strcmp(entry->d_name, "..");
}

static int by_name(const struct dirent **one, const struct dirent **other)
{
	return strcmp((*one)->d_name, (*other)->d_name);
}

static int add_children(const struct limits_file *file, struct limits_file *to,
			const struct limits_line *line, const char *root)
{
	char path[PATH_MAX * 2];
	struct dirent **children;
	size_t before = to->count;
	int count, i;

	snprintf(path, sizeof(path), "%s%s", root, line->path);
	count = scandir(path, &children, is_cgroup, by_name);
	if (count < 0 && errno != ENOENT && errno != ENOTDIR)
		return -errno;
	for (i = 0; i < count; i++) {
		add_child(file, to, line, children[i]->d_name);
		free(children[i]);
	}
	if (count >= 0)
		free(children);
	if (to->count == before)
		add_line(to, line, copy_text(line->path));
	return 0;
}

int limits_expand(const struct limits_file *file, struct limits_file *expanded)
{
	const struct limits_line *line;
	char root[PATH_MAX];
	bool mounted = fmlib_cgroup_root(root);
	size_t i;
	int err = 0;

	*expanded = (struct limits_file){ 0 };
	for (i = 0; i < file->count && !err; i++) {
		line = &file->lines[i];
		if (line->each && mounted)
			err = add_children(file, expanded, line, root);
		else
			add_line(expanded, line,
				 line->path ? copy_text(line->path) : NULL);
	}
	return err;
}
