/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* CDI files, with which container engines give a share of a function to a container. */
#ifndef CDI_H
#define CDI_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "tool.h"

#define CDI_NAME_MAX 128

/* Where engines look for CDI files: for good, and until the next boot. */
enum cdi_folder {
	CDI_PERMANENT,
	CDI_TRANSIENT,
	CDI_FOLDERS,
};

/*
 * A share: part of a function. @unlimited: the whole function. @pod: the limits
 * are those of the pod. @function: its stable id. @node: its node. @gid, @mode: of
 * the container's node. @regions and @handles: 0: no limit.
 */
struct cdi_share {
	char name[CDI_NAME_MAX + 1];
	enum cdi_folder folder;
	bool unlimited;
	bool pod;
	char *function;
	char *node;
	uint64_t bytes;
	uint64_t regions;
	uint64_t handles;
	unsigned int gid;
	unsigned int mode;
};

/* All functions return 0 or a negative errno unless they say otherwise. */

bool cdi_is_name(const char *name);
/* The name of the share's file, in its folder. */
void cdi_path(const struct cdi_share *share, char path[PATH_MAX]);
/*
 * Writes the file of a share. If there is one already, -EEXIST, unless it has the
 * same content or @replace is set.
 */
int cdi_write(const struct cdi_share *share, bool replace);
/* Removes the files of a share from all folders. A share without one is none. */
int cdi_remove(const char *name, bool unlimited);
/* Reads all files that cdi_write() has written. Other files are left out. */
int cdi_read_all(struct cdi_share **shares, size_t *count);
void cdi_clear(struct cdi_share *shares, size_t count);
/*
 * Fills in the node of the share's function, its group, and the mode that the
 * container's node gets: -ENODEV if the function is gone.
 */
int cdi_find_node(struct cdi_share *share);

#endif /* CDI_H */
