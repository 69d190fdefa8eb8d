// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Sets the limits of a file whenever one of its cgroups appears.
 *
 * All directories above these cgroups are watched, and those whose children have a
 * line together; no others. An event only
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

/*
 * The lines of the file as limits_expand() made them. @known: for each line, the
 * number of the cgroup whose limits were set, or 0. @wanted: which lines are to be
 * set.
 */
struct lines {
	struct limits_file file;
	uint64_t *known;
	bool *wanted;
};

/* @lines: after the last event that was dealt with. */
struct watcher {
	struct tool *tool;
	const char *name;
	const struct limits_file *file;
	struct lines lines;
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

/*
 * Adds the directories above one cgroup: for /a/b the root and /a, and with @each
 * also /a/b. The highest is the first, so that watch_parents() watches it before
 * it looks for the next one.
 */
static void add_parents(struct watcher *watcher, const char *path, bool each)
{
	bool is_root = !strcmp(path, "/");
	const char *slash;

	if (!is_root)
		for (slash = path; slash; slash = strchr(slash + 1, '/'))
			add_parent(watcher, path, (size_t)(slash - path));
	if (each)
		add_parent(watcher, path, is_root ? 0 : strlen(path));
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

/* The order of the lines of limits_expand(). */
static int compare_lines(const struct limits_line *one,
			 const struct limits_line *other)
{
	if (one->number != other->number)
		return one->number < other->number ? -1 : 1;
	return one->path ? strcmp(one->path, other->path) : 0;
}

static void show(const struct watcher *watcher, const struct limits_line *line,
		 const char *text)
{
	char *path = line->is_child ? escaped_text(line->path) : NULL;

	printf("%s:%u: %s%s%s\n", watcher->name, line->number,
	       path ? path : "", path ? ": " : "", text);
	free(path);
}

static void show_gone(const struct watcher *watcher, const struct lines *lines,
		      size_t i)
{
	if (lines->known[i])
		show(watcher, &lines->file.lines[i], "no cgroup");
}

/* Takes over what is known of the lines before the event. */
static void take_over(const struct watcher *watcher, struct lines *now)
{
	const struct lines *before = &watcher->lines;
	size_t i, at = 0;
	int order;

	for (i = 0; i < now->file.count; i++) {
		order = 1;
		for (; at < before->file.count; at++) {
			order = compare_lines(&before->file.lines[at],
					      &now->file.lines[i]);
			if (order >= 0)
				break;
			show_gone(watcher, before, at);
		}
		now->known[i] = order ? 0 : before->known[at++];
	}
	for (; at < before->file.count; at++)
		show_gone(watcher, before, at);
}

static void clear_lines(struct lines *lines)
{
	limits_file_clear(&lines->file);
	free(lines->known);
	free(lines->wanted);
}

static int read_lines(struct watcher *watcher)
{
	struct lines now = { .known = NULL };
	int err = limits_expand(watcher->file, &now.file);

	if (err) {
		limits_file_clear(&now.file);
		return err;
	}
	now.known = grow(NULL, now.file.count + 1, sizeof(*now.known));
	now.wanted = grow(NULL, now.file.count + 1, sizeof(*now.wanted));
	take_over(watcher, &now);
	clear_lines(&watcher->lines);
	watcher->lines = now;
	return 0;
}

/*
 * Finds the lines whose cgroup is new. Returns whether there is any. The default
 * is set once.
 */
static bool find_new(struct watcher *watcher)
{
	struct lines *lines = &watcher->lines;
	const struct limits_line *line;
	bool any = false;
	uint64_t cgroup;
	size_t i;

	for (i = 0; i < lines->file.count; i++) {
		line = &lines->file.lines[i];
		cgroup = line->each ? 0 : 1;
		if (cgroup && line->path &&
		    fmlib_cgroup_at(line->path, &cgroup)) {
			show_gone(watcher, lines, i);
			lines->known[i] = 0;
			cgroup = 0;
		}
		lines->wanted[i] = cgroup != lines->known[i];
		any |= lines->wanted[i];
	}
	return any;
}

static void show_outcome(const struct watcher *watcher,
			 const struct limits_line *line,
			 const struct limits_outcome *outcome)
{
	if (outcome->error)
		tool_fail(watcher->tool, outcome->error, "%s:%u: %s",
			  watcher->name, line->number, outcome->text);
	else
		show(watcher, line, limits_state_name(outcome->state));
}

/*
 * Sets the limits of new cgroups. A line that failed is tried again after the
 * next event. Without a function the limits are set when one appears, by
 * `flexmem limit --apply`, which udev starts.
 */
static int set_new(struct watcher *watcher)
{
	struct lines *lines = &watcher->lines;
	const struct limits_file *file = &lines->file;
	struct limits_outcome *outcomes;
	size_t i;
	int err;

	outcomes = grow(NULL, file->count + 1, sizeof(*outcomes));
	err = limits_set(file, lines->wanted, outcomes);
	if (err) {
		free(outcomes);
		return err;
	}
	for (i = 0; i < file->count; i++) {
		if (!lines->wanted[i] || outcomes[i].state == LIMITS_NO_CGROUP)
			continue;
		show_outcome(watcher, &file->lines[i], &outcomes[i]);
		if (outcomes[i].state != LIMITS_FAILED)
			lines->known[i] = file->lines[i].path ?
						  outcomes[i].cgroup : 1;
	}
	limits_outcomes_clear(outcomes, file->count);
	return 0;
}

static int watch(struct watcher *watcher)
{
	const struct limits_line *line;
	size_t i;
	int err;

	for (i = 0; i < watcher->file->count; i++) {
		line = &watcher->file->lines[i];
		if (line->path)
			add_parents(watcher, line->path, line->each);
	}
	do {
		err = watch_parents(watcher);
		if (!err)
			err = read_lines(watcher);
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
	size_t i;
	int err;

	if (!fmlib_cgroup_root(watcher->root))
		return tool_fail(watcher->tool, -ENOENT,
				 "limit: no cgroups of version 2 are mounted");
	watcher->fd = inotify_init1(IN_CLOEXEC);
	if (watcher->fd < 0)
		return tool_error(watcher->tool, -errno, NULL,
				  "limit: inotify");
	err = watch(watcher);
	close(watcher->fd);
	for (i = 0; i < watcher->nr_parents; i++)
		free(watcher->parents[i].path);
	free(watcher->parents);
	clear_lines(&watcher->lines);
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
