/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#ifndef CGROUP_MOUNT_H
#define CGROUP_MOUNT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Fills @root with the directory where the cgroups are mounted, without a slash
 * at the end. Returns false if they are not.
 */
bool fmlib_cgroup_root(char root[PATH_MAX]);
/*
 * Finds the number of a cgroup by its path below @root. Returns 0; -ENOENT: there
 * is no such cgroup; or what else stat() failed with.
 */
int fmlib_cgroup_below(const char *root, const char *path, uint64_t *id);
/*
 * The same for a path as in /proc/PID/cgroup, which begins with a slash. -ENODEV:
 * no cgroups are mounted.
 */
int fmlib_cgroup_at(const char *path, uint64_t *id);
/*
 * Finds the path of the caller's cgroup, or of one above it, by its number. Returns
 * false if none of those that the caller sees has it.
 */
bool fmlib_cgroup_above(uint64_t wanted, char path[PATH_MAX]);

#endif /* CGROUP_MOUNT_H */
