/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Files that a reader never sees half written. */
#ifndef ASIDE_H
#define ASIDE_H

#include <stdio.h>
#include <sys/types.h>

/*
 * Writes a file with another name and renames it. The other name ends in no suffix
 * that node_exporter reads. @print writes the text. Returns 0 or a negative errno;
 * after an error the file at @path is as before.
 */
int write_aside(const char *path, mode_t mode,
		void (*print)(FILE *file, void *user), void *user);

#endif /* ASIDE_H */
