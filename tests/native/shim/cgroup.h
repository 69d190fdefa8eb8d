/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cgroups: the tree of version 2. A task is in one cgroup; at the beginning in
 * the root.
 */
#ifndef _NATIVE_CGROUP_H
#define _NATIVE_CGROUP_H

#ifdef NATIVE_NO_CGROUPS
struct cgroup;
#else
#define CONFIG_CGROUPS 1

struct kernfs_node {
	u64 id;
};

#define CSS_NO_REF 1u
#define CSS_ONLINE 2u

/**
 * struct cgroup_subsys_state - state and references of a cgroup
 * @flags: CSS_ONLINE until the directory is removed
 * @refs: number of references: one for the directory, one for each task in it
 *	and for each child, and those that the driver has taken
 */
struct cgroup_subsys_state {
	unsigned int flags;
	refcount_t refs;
};

/**
 * struct cgroup - a cgroup
 * @self: the part that the kernel's functions for references use
 * @kn: its directory, with a number that is never used twice
 * @level: 0: the root
 * @ancestors: by level, from the root to the cgroup itself. The cgroup holds a
 *	reference to its parent
 */
struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[];
};

#define cgroup_id(cgroup) ((cgroup)->kn->id)
#define cgroup_ancestor(cgroup, level) ((cgroup)->ancestors[level])
#define task_dfl_cgroup(task) ((task)->cgroup)
bool cgroup_tryget(struct cgroup *cgroup);
void cgroup_get(struct cgroup *cgroup);
void cgroup_put(struct cgroup *cgroup);
struct cgroup *cgroup_get_from_id(u64 id);

/* Like mkdir, rmdir and a write to cgroup.procs in /sys/fs/cgroup. */
struct cgroup *native_cgroup_make(struct cgroup *parent);
void native_cgroup_remove(struct cgroup *cgroup);
void native_cgroup_move(struct cgroup *cgroup);
extern struct cgroup *const native_cgroup_root;
#endif /* NATIVE_NO_CGROUPS */

#endif /* _NATIVE_CGROUP_H */
