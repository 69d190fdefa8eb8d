/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Shared by the files of the createRuntime hook. */
#ifndef HOOK_H
#define HOOK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "flexmem.h"

/*
 * The first members are the arguments. @pod: the limits are for the pod, not the
 * container. @cgroup, @path: the cgroup whose limits are set. @process_path: that
 * of the process @pid. @shares: the folder of the shares that are in use, which
 * is locked.
 */
struct hook {
	const char *share;
	const char *function;
	const char *node;
	bool pod;
	bool unlimited;
	bool sets[FLEXMEM_CHARGES];
	uint64_t limit[FLEXMEM_CHARGES];

	pid_t pid;
	int pidfd;
	char process_path[PATH_MAX];
	char path[PATH_MAX];
	uint64_t cgroup;
	struct flexmem_device *device;
	int shares;
};

/* Each function returns false after it has reported an error. */
bool hook_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* hook_cgroup.c */
bool hook_find_cgroup(struct hook *hook);
/* Whether the process lives, in the cgroup that was found. */
bool hook_check_process(const struct hook *hook);

/* hook_share.c: checks that no other container has the share, and notes it. */
bool hook_take_share(struct hook *hook);
bool hook_keep_share(const struct hook *hook);

#endif /* HOOK_H */
