// SPDX-License-Identifier: GPL-2.0
/* What limits let an open file have, and whether memory was freed, as DOMAIN tells it. */
#include "corners.h"

#define NONE FLEXMEM_NO_LIMIT

static bool limit_of(struct run *r, struct cgroup *cgroup,
		     enum flexmem_resource resource, u64 most)
{
	return CALL(r, SET_LIMIT,
		    &CMD(resource_limit, .cgroup = cgroup_id(cgroup),
			 .resource = resource, .limit = most));
}

static bool limit(struct run *r, struct cgroup *cgroup, u64 bytes)
{
	return limit_of(r, cgroup, FLEXMEM_RESOURCE_BYTES, bytes);
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
	struct flexmem_domain_info is = CMD(domain_info,
					    .domain = FLEXMEM_DOMAIN_ALL);

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
	limit(r, below, NONE);
	limit(r, above, NONE);
	BY(r, 1, DOMAIN, &is, 0);
	limit_of(r, below, FLEXMEM_RESOURCE_REGIONS, 2);
	must_have(r, 0, NONE, 0, "limit of regions of another cgroup");
	/* If there is one region, it is in this one, with the file above. */
	if (is.out_regions == 1) {
		must_have(r, 1, is.out_total + is.out_max_region,
			  is.out_free + is.out_max_region, "limit of regions");
		limit_of(r, below, FLEXMEM_RESOURCE_REGIONS, 1);
		must_have(r, 1, is.out_total, is.out_free,
			  "limit of regions that is reached");
	}
	limit(r, below, SZ_1M);
	must_have(r, 1, SZ_1M, SZ_512K, "the limit of bytes is smaller");
	close_all(r);
	native_cgroup_remove(below);
	native_cgroup_remove(above);
	/* Unbinding forgets the owners, which would otherwise look like leaks. */
	WARN_ON(world_unbind(1));
}

static bool is_same(const struct flexmem_refusal *is,
		    const struct flexmem_refusal *wanted)
{
	return is->resource == wanted->resource &&
	       is->flags == wanted->flags && is->cgroup == wanted->cgroup &&
	       is->limit == wanted->limit && is->used == wanted->used &&
	       is->own == wanted->own;
}

/* File 1 asks for too much. Expects what it is told of the limit. */
static void must_tell(struct run *r, const struct flexmem_refusal *wanted,
		      const char *what)
{
	const struct flexmem_refusal none = {}, old = { .own = 77 };
	/* It asks for more than what its own memory leaves of the limit. */
	const struct flexmem_refusal alone = { .flags = FLEXMEM_REFUSAL_ALONE };
	struct flexmem_refusal for_alloc = *wanted;
	struct flexmem_alloc cmd = CMD(alloc, .length = SZ_1M);
	struct flexmem_resize more = CMD(resize, .handle = r->handle[1][0],
					 .length = SZ_1M);

	for_alloc.flags |= FLEXMEM_REFUSAL_ALONE;
	if (BY(r, 1, ALLOC, &cmd, ENOMEM) && cmd.out_reason)
		must(r, is_same(&cmd.out_refusal, &for_alloc), what);
	if (BY(r, 1, RESIZE, &more, ENOMEM) && more.out_reason)
		must(r, is_same(&more.out_refusal, wanted), what);
	cmd = CMD(alloc, .length = 1ull << 50, .out_refusal = old);
	BY(r, 1, ALLOC, &cmd, ENOMEM);
	must(r, is_same(&cmd.out_refusal, &alone), "no limit refused this");
	more = CMD(resize, .handle = r->handle[1][0], .out_refusal = old);
	BY(r, 1, RESIZE, &more, EINVAL);
	must(r, is_same(&more.out_refusal, &none), "another error");
}

/*
 * File 1 is in the lowest of three cgroups. Who sees which of them, and what of
 * their limits?
 */
static void run_refusals(struct run *r)
{
	struct cgroup *above = native_cgroup_make(native_cgroup_root);
	struct cgroup *middle = native_cgroup_make(above);
	struct cgroup *below = native_cgroup_make(middle);
	struct cgroup *other = native_cgroup_make(native_cgroup_root);
	struct flexmem_refusal is = {
		.flags = FLEXMEM_REFUSAL_SHARED, .cgroup = cgroup_id(above),
		.limit = SZ_1M, .used = SZ_256K, .own = SZ_128K,
	};

	open_in(r, 0, above);
	open_in(r, 1, below);
	alloc(r, 0, SZ_128K, 0);
	alloc(r, 1, SZ_128K, 0);
	if (r->nr[0] && r->nr[1] && limit(r, above, SZ_1M)) {
		must_tell(r, &is, "the administrator sees all");
		current->cgroup_ns = below;
		must_tell(r, &is, "also from a container");
		current->cred.admin = false;
		is = (struct flexmem_refusal) {
			.flags = FLEXMEM_REFUSAL_HIDDEN |
				 FLEXMEM_REFUSAL_SHARED,
			.limit = SZ_1M - SZ_256K, .own = SZ_128K,
		};
		must_tell(r, &is, "what is left, and no more");
		current->cgroup_ns = above;
		is = (struct flexmem_refusal) {
			.flags = FLEXMEM_REFUSAL_SHARED,
			.cgroup = cgroup_id(above), .limit = SZ_1M,
			.used = SZ_256K, .own = SZ_128K,
		};
		must_tell(r, &is, "a cgroup that the namespace shows");
	}
	current->cred.admin = true;
	if (r->nr[0] && r->nr[1] && limit(r, below, SZ_512K)) {
		current->cred.admin = false;
		current->cgroup_ns = other;
		is = (struct flexmem_refusal) {
			.cgroup = cgroup_id(below), .limit = SZ_512K,
			.used = SZ_128K, .own = SZ_128K,
		};
		must_tell(r, &is, "the opener's cgroup, wherever that is");
	}
	current->cred.admin = true;
	current->cgroup_ns = NULL;
	close_all(r);
	native_cgroup_remove(below);
	native_cgroup_remove(middle);
	native_cgroup_remove(above);
	native_cgroup_remove(other);
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

/* The memory that DOMAIN tells can be had, even if the slots do not take all. */
static void run_memory(struct run *r)
{
	struct flexmem_domain_info is = CMD(domain_info,
					    .domain = FLEXMEM_DOMAIN_ALL);
	struct flexmem_alloc cmd = CMD(alloc, .length = 4 * SZ_1M);
	u64 have, had = 0;

	open_file(r, 0);
	if (!CALL(r, DOMAIN, &is))
		return;
	have = is.out_memory - is.out_program_total;
	while (r->nr[0] < RUN_HANDLES &&
	       !native_ioctl(r->file[0], FLEXMEM_IOCTL_ALLOC, &cmd)) {
		r->handle[0][r->nr[0]++] = cmd.out_handle;
		had += cmd.out_size;
	}
	must(r, had <= have, "more than what was told");
	if (r->nr[0] < RUN_HANDLES && cmd.out_reason)
		must(r, have - had < cmd.length, "what was told can be had");
	CALL(r, DOMAIN, &is);
	must(r, is.out_memory - is.out_program_total == have,
	     "what was told does not change");
	is.domain = 0;
	CALL(r, DOMAIN, &is);
	must(r, !is.out_memory, "memory of one domain");
}

static u64 freed(struct run *r)
{
	struct flexmem_domain_info is = CMD(domain_info,
					    .domain = FLEXMEM_DOMAIN_ALL);

	native_time_advance(msecs_to_jiffies(FLEXMEM_EVENT_MS));
	native_settle_work();
	CALL(r, DOMAIN, &is);
	return is.out_freed;
}

/*
 * File 0 waits for memory that file 1 has. A program of another thread reads the
 * event first.
 */
static void run_wait(struct run *r)
{
	const u32 older = offsetof(struct flexmem_alloc, out_event);
	struct flexmem_alloc cmd = CMD(alloc, .length = 4 * SZ_1M);
	struct flexmem_event event;

	open_file(r, 1);
	while (r->nr[1] < RUN_HANDLES &&
	       !native_ioctl(r->file[1], FLEXMEM_IOCTL_ALLOC, &cmd))
		r->handle[1][r->nr[1]++] = cmd.out_handle;
	/* Without a reason it was a fault that ended the loop. */
	if (!cmd.out_reason || !r->nr[1])
		return;
	/* Tells of what was freed before, if anything was. */
	freed(r);
	BY(r, 0, ALLOC, &cmd, ENOMEM);
	must(r, cmd.out_event, "number of the event before an ALLOC");
	must(r, freed(r) <= cmd.out_event, "nothing was freed");
	BY(r, 1, FREE, &CMD(free, .handle = r->handle[1][--r->nr[1]]), 0);
	must(r, freed(r) > cmd.out_event, "memory was freed");
	must(r, native_read(r->file[0], &event, sizeof(event)) == sizeof(event) &&
	     event.flags & FLEXMEM_EVENT_FREED, "event that tells of it");
	must(r, freed(r) > cmd.out_event, "memory was freed before a read");
	cmd = CMD(alloc, .length = 1ull << 50, .out_event = 77);
	BY(r, 0, ALLOC, &cmd, ENOMEM);
	must(r, !cmd.out_event, "an ALLOC that no FREE can help");
	cmd = CMD(alloc, .length = 1ull << 50, .out_event = 77);
	cmd.size = older;
	BY(r, 0, ALLOC, &cmd, ENOMEM);
	must(r, cmd.size == older && cmd.out_event == 77,
	     "struct of an older program");
}

/*
 * A region that a limit refuses comes first, the next one serves the ALLOC, and then
 * the kernel has no memory for the handle: the limit is not the reason. Each
 * operation of the ALLOC fails once, until none is left.
 */
static void run_no_handle(struct run *r)
{
	struct cgroup *below = native_cgroup_make(native_cgroup_root);
	struct flexmem_domain_info is = CMD(domain_info);
	unsigned int n = 0, refused = 0;
	struct flexmem_alloc cmd;
	long rc;

	open_file(r, 0);
	open_in(r, 1, below);
	/* Only the first handle of a file needs memory. */
	open_in(r, 2, below);
	alloc(r, 1, SZ_64K, 0);
	limit_of(r, below, FLEXMEM_RESOURCE_REGIONS, 1);
	CALL(r, DOMAIN, &is);
	/* This is too long for the region of file 1, and its own is fuller. */
	alloc(r, 0, is.out_max_region - 4096, 0);
	do {
		cmd = CMD(alloc, .length = 128, .out_regions = 77);
		current->fail_at = ++n;
		rc = native_ioctl(r->file[2], FLEXMEM_IOCTL_ALLOC, &cmd);
		current->fail_at = 0;
		/* Without a copy of the struct there is no reply. */
		if (rc == -EFAULT)
			continue;
		refused += rc == -ENOMEM;
		must(r, cmd.out_error == -rc, "error without memory");
		must(r, cmd.out_reason == FLEXMEM_REASON_NONE &&
		     cmd.out_region_reason == FLEXMEM_REASON_NONE &&
		     !cmd.out_regions && !cmd.out_leaving && !cmd.out_event &&
		     !cmd.out_refusal.cgroup && !cmd.out_refusal.flags,
		     "reason without memory");
	} while (!r->wrong && rc);
	r->handle[2][r->nr[2]++] = cmd.out_handle;
	must(r, refused, "there was memory for the handle each time");
	close_all(r);
	native_cgroup_remove(below);
	WARN_ON(world_unbind(1));
}

const struct sequence limit_corners[] = {
	{ "limits: what can be had", NULL, run_limits },
	{ "limits: programs", NULL, run_programs },
	{ "limits: what a refusal tells", NULL, run_refusals },
	{ "memory that the slots take", NULL, run_memory },
	{ "waiting for memory", prepare, run_wait },
	{ "limits: no memory for the handle", NULL, run_no_handle },
	{}
};
