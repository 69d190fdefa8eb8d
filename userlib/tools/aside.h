/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Files that a reader never sees half written. */
#ifndef ASIDE_H
#define ASIDE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * A file that is being written with another name. @path: the name that it gets at
 * the end. @name: the name that it has so far, which ends in no suffix that
 * node_exporter reads; empty if the file is written in place.
 */
struct aside {
	char path[PATH_MAX];
	char name[PATH_MAX];
};

/*
 * Begins a file with the mode @mode in place of @path, which is replaced only if it is
 * a regular file; otherwise returns -EEXIST. For folders in which others can write.
 *
 * aside_begin_own() is for a path that the user chose: it follows symbolic links,
 * writes to a device or a pipe in place, and keeps the mode of a file that is there.
 *
 * Both return a descriptor, which the caller closes before aside_end(), or a negative
 * errno. Until aside_end() a signal that ends the process removes the file, so there
 * is only one at a time.
 */
int aside_begin(struct aside *aside, const char *path, mode_t mode);
int aside_begin_own(struct aside *aside, const char *path);

/*
 * Gives the file its name if @err is 0, otherwise removes it; then the file at the
 * path is as before. Returns @err or the error of the renaming.
 */
int aside_end(struct aside *aside, int err);
/* Removes an unfinished file, if there is one. The process ends after that. */
void aside_drop(void);

/*
 * Writes the text of @print to @fd, and closes it. Returns 0 or a negative errno.
 */
int aside_print(int fd, void (*print)(FILE *file, void *user), void *user);

#endif /* ASIDE_H */
