/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cgroups: the tree of version 2. A task is in one of them, from the beginning in
 * the root.
 */
#ifndef _NATIVE_CGROUP_H
#define _NATIVE_CGROUP_H

#define CONFIG_CGROUPS 1

/**
 * struct cgroup - a cgroup
 * @parent: the one that it was made in; a reference is held. NULL: the root
 * @id: its number, never used twice
 * @refs: the directory, each task in it, each child, and holders of references
 */
struct cgroup {
	struct cgroup *parent;
	u64 id;
	refcount_t refs;
};

#define cgroup_id(cgroup) ((cgroup)->id)
#define task_dfl_cgroup(task) ((task)->cgroup)

/* Like mkdir, rmdir and a write to cgroup.procs in /sys/fs/cgroup. */
struct cgroup *native_cgroup_make(struct cgroup *parent);
void native_cgroup_remove(struct cgroup *cgroup);
void native_cgroup_move(struct cgroup *cgroup);
extern struct cgroup native_cgroup_root;

#endif /* _NATIVE_CGROUP_H */
