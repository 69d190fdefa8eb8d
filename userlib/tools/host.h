/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* What the host says of flexmem in /proc and /sys. */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>
#include <stddef.h>

/* Room for a line that is read. Longer lines are cut off. */
#define HOST_LINE_MAX 256

/* Reads the first line of a file, without its end. */
bool host_read(const char *path, char line[HOST_LINE_MAX]);
bool host_exists(const char *path);
/*
 * The state that the driver has for the function of a node, which only root may
 * see: "usable", "unresponsive", "suspended" or "wedged". NULL: not known.
 */
const char *host_state(const char *node);

#endif /* HOST_H */
