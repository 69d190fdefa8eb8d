// SPDX-License-Identifier: GPL-2.0
/* Cgroups. */
#include "internal.h"

struct cgroup native_cgroup_root = { .id = 1, .refs = { 1 } };
static u64 last_id = 1;

struct cgroup *native_cgroup_get(struct cgroup *cgroup)
{
	refcount_inc(&cgroup->refs);
	return cgroup;
}

void native_cgroup_put(struct cgroup *cgroup)
{
	struct cgroup *parent;

	for (; cgroup && refcount_dec_and_test(&cgroup->refs); cgroup = parent) {
		parent = cgroup->parent;
		free(cgroup);
	}
}

/**
 * native_cgroup_make - mkdir
 * @parent: where
 *
 * Return: the cgroup, for native_cgroup_remove().
 */
struct cgroup *native_cgroup_make(struct cgroup *parent)
{
	struct cgroup *cgroup = calloc(1, sizeof(*cgroup));

	if (!cgroup)
		abort();
	cgroup->parent = native_cgroup_get(parent);
	cgroup->id = __atomic_add_fetch(&last_id, 1, RELAXED);
	refcount_set(&cgroup->refs, 1);
	return cgroup;
}

/**
 * native_cgroup_remove - rmdir
 * @cgroup: cgroup that no task is in
 */
void native_cgroup_remove(struct cgroup *cgroup)
{
	native_cgroup_put(cgroup);
}

/**
 * native_cgroup_move - the calling task writes its number into cgroup.procs
 * @cgroup: where it goes
 */
void native_cgroup_move(struct cgroup *cgroup)
{
	struct cgroup *before = current->cgroup;

	current->cgroup = native_cgroup_get(cgroup);
	native_cgroup_put(before);
}
