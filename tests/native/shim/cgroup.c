// SPDX-License-Identifier: GPL-2.0
/* Cgroups. */
#include "internal.h"

/* The greatest depth of a cgroup that the shim supports. */
#define DEPTH 64

/* A cgroup and its directory. rmdir removes the directory from the list. */
struct directory {
	struct list_head link;
	struct kernfs_node node;
	struct cgroup cgroup;
	struct cgroup *ancestors[DEPTH];
};

static struct directory root = {
	.node = { .id = 1 },
	.cgroup = {
		.self = { .flags = CSS_ONLINE | CSS_NO_REF },
		.kn = &root.node,
	},
	.ancestors = { &root.cgroup },
};

struct cgroup *const native_cgroup_root = &root.cgroup;
static struct list_head directories = LIST_HEAD_INIT(directories);
static unsigned int lock;
static u64 last_id = 1;

bool cgroup_tryget(struct cgroup *cgroup)
{
	return cgroup->self.flags & CSS_NO_REF ||
	       refcount_inc_not_zero(&cgroup->self.refs);
}

void cgroup_get(struct cgroup *cgroup)
{
	if (!(cgroup->self.flags & CSS_NO_REF))
		refcount_inc(&cgroup->self.refs);
}

void cgroup_put(struct cgroup *cgroup)
{
	struct cgroup *parent;

	for (; !(cgroup->self.flags & CSS_NO_REF); cgroup = parent) {
		/*
		 * Tells TSan that accesses by the other holders happen before
		 * the last put.
		 */
		os_release(&cgroup->self.refs);
		if (!refcount_dec_and_test(&cgroup->self.refs))
			break;
		os_acquire(&cgroup->self.refs);
		if (cgroup->self.flags & CSS_ONLINE)
			shim_bug("a cgroup that is there loses its last reference");
		parent = cgroup->ancestors[cgroup->level - 1];
		free(container_of(cgroup, struct directory, cgroup));
	}
}

static bool is_below(const struct cgroup *cgroup, const struct cgroup *top)
{
	return cgroup->level >= top->level &&
	       cgroup->ancestors[top->level] == top;
}

struct cgroup *cgroup_get_from_id(u64 id)
{
	struct cgroup *cgroup = ERR_PTR(-ENOENT), *top = current->cgroup_ns;
	struct directory *directory;

	if (id == cgroup_id(native_cgroup_root))
		return top && top != native_cgroup_root ?
		       cgroup : native_cgroup_root;
	raw_lock(&lock);
	list_for_each_entry(directory, &directories, link) {
		if (directory->node.id == id &&
		    (!top || is_below(&directory->cgroup, top))) {
			cgroup = &directory->cgroup;
			cgroup_get(cgroup);
			break;
		}
	}
	raw_unlock(&lock);
	return cgroup;
}

/**
 * native_cgroup_make - mkdir
 * @parent: cgroup in which the new one is made
 *
 * Return: the cgroup, for native_cgroup_remove().
 */
struct cgroup *native_cgroup_make(struct cgroup *parent)
{
	struct directory *directory = calloc(1, sizeof(*directory));
	struct cgroup *cgroup = &directory->cgroup;
	int level = parent->level + 1;

	if (!directory || level == DEPTH)
		abort();
	cgroup_get(parent);
	memcpy(directory->ancestors, parent->ancestors,
	       level * sizeof(parent));
	directory->ancestors[level] = cgroup;
	cgroup->level = level;
	cgroup->kn = &directory->node;
	cgroup->self.flags = CSS_ONLINE;
	refcount_set(&cgroup->self.refs, 1);
	raw_lock(&lock);
	directory->node.id = ++last_id;
	list_add(&directory->link, &directories);
	raw_unlock(&lock);
	return cgroup;
}

/**
 * native_cgroup_remove - rmdir
 * @cgroup: cgroup that no task is in
 */
void native_cgroup_remove(struct cgroup *cgroup)
{
	raw_lock(&lock);
	list_del(&container_of(cgroup, struct directory, cgroup)->link);
	raw_unlock(&lock);
	__atomic_store_n(&cgroup->self.flags, 0, RELAXED);
	cgroup_put(cgroup);
}

/**
 * native_cgroup_move - the calling task writes its number into cgroup.procs
 * @cgroup: cgroup that the task moves to
 */
void native_cgroup_move(struct cgroup *cgroup)
{
	struct cgroup *before = current->cgroup;

	cgroup_get(cgroup);
	current->cgroup = cgroup;
	cgroup_put(before);
}
