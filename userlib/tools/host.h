/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* What the host says of flexmem in /proc and /sys. */
#ifndef HOST_H
#define HOST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Room for a line that is read. Longer lines are cut off. */
#define HOST_LINE_MAX 256

/* Reads the first line of a file, without its end. */
bool host_read(const char *path, char line[HOST_LINE_MAX]);
bool host_exists(const char *path);
/* Calls @call for each name in a folder that does not begin with a dot. */
void host_list(const char *path, void (*call)(const char *name, void *user),
	       void *user);
/* Finds flexmem.ko among the modules that are installed for a kernel. */
bool host_module(const char *release, char path[PATH_MAX]);
/*
 * Whether a module is signed. True, too, if it is compressed, so that the file
 * does not show it.
 */
bool host_is_signed(const char *path);

#endif /* HOST_H */
