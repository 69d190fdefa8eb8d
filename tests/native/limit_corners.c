// SPDX-License-Identifier: GPL-2.0
/* What limits let an open file have, as DOMAIN tells it. */
#include "corners.h"

#define NONE FLEXMEM_NO_LIMIT

static void limit(struct run *r, struct cgroup *cgroup, u64 bytes)
{
	CALL(r, SET_LIMIT, &CMD(resource_limit, .cgroup = cgroup_id(cgroup),
				.resource = FLEXMEM_RESOURCE_BYTES,
				.limit = bytes));
}

/* @f: number of the file that asks. @most: NONE, or the smallest limit. */
static void must_have(struct run *r, unsigned int f, u64 most, u64 left,
		      const char *what)
{
	struct flexmem_domain_info is = CMD(domain_info,
					    .domain = FLEXMEM_DOMAIN_ALL);
	bool limited = most != NONE;

	if (!BY(r, f, DOMAIN, &is, 0))
		return;
	must(r, !!(is.out_flags & FLEXMEM_REPORT_LIMITED) == limited, what);
	must(r, is.out_limit == (limited ? most : 0), what);
	must(r, is.out_limit_left == (limited ? left : 0), what);
}

static void open_in(struct run *r, unsigned int f, struct cgroup *cgroup)
{
	native_cgroup_move(cgroup);
	open_file(r, f);
	native_cgroup_move(native_cgroup_root);
}

/* Takes the files away, so that their cgroup is forgotten. */
static void close_all(struct run *r)
{
	unsigned int f;

	for (f = 0; f < ARRAY_SIZE(r->file); f++) {
		if (r->file[f])
			native_close(r->file[f]);
		r->file[f] = NULL;
		r->nr[f] = 0;
	}
}

/* File 0 is in a cgroup, and file 1 in one below it. */
static void run_limits(struct run *r)
{
	struct cgroup *above = native_cgroup_make(native_cgroup_root);
	struct cgroup *below = native_cgroup_make(above);

	open_in(r, 0, above);
	open_in(r, 1, below);
	must_have(r, 1, NONE, 0, "no limit");
	limit(r, below, SZ_1M);
	must_have(r, 0, NONE, 0, "limit of another cgroup");
	must_have(r, 1, SZ_1M, SZ_1M, "own limit");
	limit(r, above, SZ_512K);
	must_have(r, 0, SZ_512K, SZ_512K, "limit above");
	must_have(r, 1, SZ_512K, SZ_512K, "the limit above is smaller");
	limit(r, above, SZ_2M);
	must_have(r, 1, SZ_1M, SZ_1M, "the own limit is smaller");
	alloc(r, 0, SZ_1M + SZ_512K, 0);
	must_have(r, 0, SZ_2M, SZ_512K, "what is left");
	must_have(r, 1, SZ_1M, SZ_512K, "less is left above");
	alloc(r, 1, SZ_256K, 0);
	must_have(r, 1, SZ_1M, SZ_256K, "still less is left above");
	/* What is left can be had, and not a block more. */
	alloc(r, 1, SZ_256K, 0);
	must_have(r, 1, SZ_1M, 0, "nothing is left");
	BY(r, 1, ALLOC, &CMD(alloc, .length = 128), ENOMEM);
	limit(r, above, SZ_1M);
	must_have(r, 0, SZ_1M, 0, "limit below what is in use");
	close_all(r);
	native_cgroup_remove(below);
	native_cgroup_remove(above);
	/* Unbinding forgets the owners, which would otherwise look like leaks. */
	WARN_ON(world_unbind(1));
}

/* Bytes in regions that are only for programs cannot be had for tensors. */
static void run_programs(struct run *r)
{
	struct cgroup *cgroup = native_cgroup_make(native_cgroup_root);
	struct flexmem_info info = CMD(info);
	u64 programs;

	open_in(r, 0, cgroup);
	CALL(r, INFO, &info);
	programs = info.out_program_slots ? SZ_64K : 0;
	limit(r, cgroup, SZ_1M);
	alloc(r, 0, SZ_64K, FLEXMEM_ALLOC_PROGRAM);
	alloc(r, 0, SZ_128K, 0);
	must_have(r, 0, SZ_1M - programs, SZ_1M - SZ_64K - SZ_128K, "programs");
	close_all(r);
	native_cgroup_remove(cgroup);
	WARN_ON(world_unbind(1));
}

const struct sequence limit_corners[] = {
	{ "limits: what can be had", NULL, run_limits },
	{ "limits: programs", NULL, run_programs },
	{}
};
