// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Sets the limits of a file whenever one of its cgroups appears.
 *
 * All directories above these cgroups are watched, and no others. An event only
 * says that something has changed: then each path is looked up again, so a queue
 * that overflowed loses nothing. The watches are made before the look-up, because
 * a cgroup may appear in between.
 */
#include "cgroup_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* A directory above a cgroup of the file. @wd: its watch, or -1. */
struct parent {
	char *path;
	int wd;
};

/* @known: for each line, the number of the cgroup whose limits were set, or 0. */
struct watcher {
	struct tool *tool;
	const char *name;
	const struct limits_file *file;
	uint64_t *known;
	bool *wanted;
	char root[PATH_MAX];
	struct parent *parents;
	size_t nr_parents;
	int fd;
};

static void add_parent(struct watcher *watcher, const char *path, size_t length)
{
	struct parent *parent;
	size_t i;

	for (i = 0; i < watcher->nr_parents; i++) {
		parent = &watcher->parents[i];
		if (!strncmp(parent->path, path, length) &&
		    !parent->path[length])
			return;
	}
	watcher->parents = grow(watcher->parents, watcher->nr_parents + 1,
				sizeof(*watcher->parents));
	parent = &watcher->parents[watcher->nr_parents++];
	*parent = (struct parent){ .path = copy_text(path), .wd = -1 };
	parent->path[length] = '\0';
}

/* Adds the directories above one cgroup: for /a/b the root and /a. */
static void add_parents(struct watcher *watcher, const char *path)
{
	const char *slash;

	if (!strcmp(path, "/"))
		return;
	for (slash = path; slash; slash = strchr(slash + 1, '/'))
		add_parent(watcher, path, (size_t)(slash - path));
}

/*
 * Watches each directory that exists. A watch of a directory that was removed
 * ends. If the directory was made again, it is a different one.
 */
static int watch_parents(struct watcher *watcher)
{
	char path[PATH_MAX * 2];
	struct parent *parent;
	size_t i;
	int wd;

	for (i = 0; i < watcher->nr_parents; i++) {
		parent = &watcher->parents[i];
		snprintf(path, sizeof(path), "%s%s/", watcher->root,
			 parent->path);
		wd = inotify_add_watch(watcher->fd, path,
				       IN_CREATE | IN_DELETE | IN_MOVE |
				       IN_ONLYDIR);
		if (wd < 0 && errno != ENOENT && errno != ENOTDIR)
			return -errno;
		if (parent->wd >= 0 && parent->wd != wd)
			inotify_rm_watch(watcher->fd, parent->wd);
		parent->wd = wd;
	}
	return 0;
}

/* Waits until something has changed. */
static int wait_for_event(const struct watcher *watcher)
{
	char events[4096]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t size;

	do {
		size = read(watcher->fd, events, sizeof(events));
	} while (size < 0 && errno == EINTR);
	return size < 0 ? -errno : 0;
}

/*
 * Finds the lines whose cgroup is new. Returns whether there is any. The default
 * is set once.
 */
static bool find_new(struct watcher *watcher)
{
	const struct limits_line *line;
	bool any = false;
	uint64_t cgroup;
	size_t i;

	for (i = 0; i < watcher->file->count; i++) {
		line = &watcher->file->lines[i];
		cgroup = 1;
		if (line->path && cgroup_at(line->path, &cgroup)) {
			if (watcher->known[i])
				printf("%s:%u: no cgroup\n", watcher->name,
				       line->number);
			watcher->known[i] = 0;
			cgroup = 0;
		}
		watcher->wanted[i] = cgroup != watcher->known[i];
		any |= watcher->wanted[i];
	}
	return any;
}

static void show(struct watcher *watcher, size_t i,
		 const struct limits_outcome *outcome)
{
	const struct limits_line *line = &watcher->file->lines[i];

	if (outcome->error)
		tool_fail(watcher->tool, outcome->error, "%s:%u: %s",
			  watcher->name, line->number, outcome->text);
	else
		printf("%s:%u: %s\n", watcher->name, line->number,
		       limits_state_name(outcome->state));
}

/*
 * Sets the limits of new cgroups. A line that failed is tried again after the
 * next event. Without a function the limits are set when one appears, by
 * `flexmem limit --apply`, which udev starts.
 */
static int set_new(struct watcher *watcher)
{
	struct limits_outcome *outcomes;
	size_t i;
	int err;

	outcomes = grow(NULL, watcher->file->count + 1, sizeof(*outcomes));
	err = limits_set(watcher->file, watcher->wanted, outcomes);
	if (err) {
		free(outcomes);
		return err;
	}
	for (i = 0; i < watcher->file->count; i++) {
		if (!watcher->wanted[i] ||
		    outcomes[i].state == LIMITS_NO_CGROUP)
			continue;
		show(watcher, i, &outcomes[i]);
		if (outcomes[i].state != LIMITS_FAILED)
			watcher->known[i] = watcher->file->lines[i].path ?
						    outcomes[i].cgroup : 1;
	}
	limits_outcomes_clear(outcomes, watcher->file->count);
	return 0;
}

static int watch(struct watcher *watcher)
{
	size_t i;
	int err;

	for (i = 0; i < watcher->file->count; i++)
		if (watcher->file->lines[i].path)
			add_parents(watcher, watcher->file->lines[i].path);
	do {
		err = watch_parents(watcher);
		if (!err && find_new(watcher))
			err = set_new(watcher);
		fflush(stdout);
		if (!err)
			err = wait_for_event(watcher);
	} while (!err);
	return err;
}

static enum tool_status watch_file(struct watcher *watcher)
{
	const size_t count = watcher->file->count;
	size_t i;
	int err;

	if (!cgroup_root(watcher->root))
		return tool_fail(watcher->tool, -ENOENT,
				 "limit: no cgroups of version 2 are mounted");
	watcher->fd = inotify_init1(IN_CLOEXEC);
	if (watcher->fd < 0)
		return tool_error(watcher->tool, -errno, NULL,
				  "limit: inotify");
	watcher->known = grow(NULL, count + 1, sizeof(*watcher->known));
	memset(watcher->known, 0, count * sizeof(*watcher->known));
	watcher->wanted = grow(NULL, count + 1, sizeof(*watcher->wanted));
	err = watch(watcher);
	close(watcher->fd);
	for (i = 0; i < watcher->nr_parents; i++)
		free(watcher->parents[i].path);
	free(watcher->parents);
	free(watcher->known);
	free(watcher->wanted);
	return tool_error(watcher->tool, err, NULL, "limit: %s", watcher->name);
}

enum tool_status limits_watch(struct tool *tool, const char *name)
{
	struct limits_file file;
	struct watcher watcher = { .tool = tool, .name = name, .file = &file };
	enum tool_status status = limits_open(tool, name, &file);

	if (!status)
		status = watch_file(&watcher);
	limits_file_clear(&file);
	return status;
}
