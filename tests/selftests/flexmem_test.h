/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by all selftests: the commands, opening a node by its mode, loading
 * the modules with parameters, and a snapshot of everything that a call can
 * change.
 *
 * Every command has three forms: raw_alloc(fd, &arg) returns 0 or an errno,
 * must(alloc, fd, &arg) ends the test on an error, and
 * must_fail(EINVAL, alloc, fd, &arg) wants exactly this errno.
 *
 * A fixture names its module parameters. fm_load() loads the modules from
 * $FLEXMEM_KO, unless they are loaded with these parameters already.
 */
#ifndef FLEXMEM_TEST_H
#define FLEXMEM_TEST_H

#include <kselftest_harness.h>

/*
 * Tests may take long, because the machine may be emulated and shared, and its
 * kernel full of checks.
 */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 900

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#include <linux/flexmem.h>

#define KiB (1ULL << 10)
#define MiB (1ULL << 20)
#define GiB (1ULL << 30)

#define FM_PF FLEXMEM_MODE_PF
#define FM_VF FLEXMEM_MODE_VF

#define FM_MAX_REGIONS 64
/* Node numbers of PFs begin at 0, node numbers of VFs at FM_MAX_PFS. */
#define FM_MAX_PFS 64
#define FM_MAX_NODES 1024

#define FM_STAMP "/run/flexmem-selftests"

/*
 * Timeout for replies of the firmware, longer than any machine needs.
 */
#define FM_CALM_MS "30000"

/* No program uses all functions of this header. */
#define fm_fn static inline __attribute__((unused))

/* ---- commands ---- */

fm_fn int fm_ioctl(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? errno : 0;
}

#define FM_RAW(name, NAME, type)					\
fm_fn int raw_##name(int fd, struct flexmem_##type *arg)		\
{									\
	return fm_ioctl(fd, FLEXMEM_IOCTL_##NAME, arg);			\
}

FM_RAW(info, INFO, info)
FM_RAW(alloc, ALLOC, alloc)
FM_RAW(free, FREE, free)
FM_RAW(alloc_batch, ALLOC_BATCH, batch)
FM_RAW(free_batch, FREE_BATCH, batch)
FM_RAW(lookup, LOOKUP, lookup)
FM_RAW(segments, SEGMENTS, segments)
FM_RAW(trim, TRIM, trim)
FM_RAW(read, READ, rw)
FM_RAW(write, WRITE, rw)
FM_RAW(copy, COPY, copy)
FM_RAW(snapshot, SNAPSHOT, snapshot)
FM_RAW(set_limit, SET_LIMIT, resource_limit)
FM_RAW(reserve, RESERVE, reserve)
FM_RAW(resize, RESIZE, resize)
FM_RAW(domain, DOMAIN, domain_info)
FM_RAW(va_reserve, VA_RESERVE, va_reserve)
FM_RAW(va_free, VA_FREE, va_free)
FM_RAW(va_bind, VA_BIND, va_bind)
FM_RAW(va_unbind, VA_UNBIND, va_unbind)
FM_RAW(va_lookup, VA_LOOKUP, va_lookup)

#define must(name, fd, arg) ASSERT_EQ(0, raw_##name(fd, arg))
#define must_fail(error, name, fd, arg) EXPECT_EQ(error, raw_##name(fd, arg))

/* A command's struct with its size set: CMD(alloc, .length = 128). */
#define CMD(type, ...)							\
	((struct flexmem_##type){					\
		.size = sizeof(struct flexmem_##type), ##__VA_ARGS__	\
	})

/* Shortcuts for the usual calls. Each returns 0 or an errno. */

fm_fn int fm_alloc(int fd, __u64 length, struct flexmem_alloc *reply)
{
	*reply = CMD(alloc, .length = length);
	return raw_alloc(fd, reply);
}

/* Allocates. Returns the handle, or 0. */
fm_fn __u32 fm_take(int fd, __u64 length)
{
	struct flexmem_alloc reply;

	return fm_alloc(fd, length, &reply) ? 0 : reply.out_handle;
}

fm_fn int fm_free(int fd, __u32 handle)
{
	return raw_free(fd, &CMD(free, .handle = handle));
}

fm_fn int fm_free_address(int fd, struct flexmem_address address)
{
	return raw_free(fd, &CMD(free, .flags = FLEXMEM_FREE_BY_ADDRESS,
				 .address = address));
}

fm_fn int fm_trim(int fd)
{
	return raw_trim(fd, &CMD(trim));
}

fm_fn struct flexmem_info fm_info(int fd)
{
	struct flexmem_info info = CMD(info);

	if (raw_info(fd, &info))
		memset(&info, 0, sizeof(info));
	return info;
}

/* ---- figures ---- */

/* What SNAPSHOT shows of the caller's own: its cgroup, and the open file. */
struct fm_own {
	struct flexmem_snapshot sums;
	struct flexmem_owner_entry cgroup;
	struct flexmem_owner_entry file;
};

/* Returns 0 or an errno. */
fm_fn int fm_own(int fd, struct fm_own *own)
{
	struct flexmem_region_entry region[FM_MAX_REGIONS];
	struct flexmem_owner_entry owner[2] = {};
	int error;

	own->sums = CMD(snapshot,
		.flags = FLEXMEM_SNAPSHOT_OWN,
		.region_entry_size = sizeof(region[0]),
		.region_count = FM_MAX_REGIONS, .regions = (uintptr_t)region,
		.owner_entry_size = sizeof(owner[0]),
		.owner_count = 2, .owners = (uintptr_t)owner);
	error = raw_snapshot(fd, &own->sums);
	own->cgroup = owner[0];
	own->file = owner[1];
	return error;
}

/* The figures of a function and of an open file that most tests look at. */
struct fm_stats {
	__u64 out_flags;
	__u64 out_regions;
	__u64 out_total;
	__u64 out_free;
	__u64 out_used;
	__u64 out_used_program;
	__u64 out_allocated;
	__u64 out_allocs;
	__u64 out_frees;
	__u64 out_failures;
	__u64 out_generation;
	__u64 out_client_used;
	__u64 out_client_peak;
	__u64 out_client_handles;
};

/* After an error all figures are ~0. */
fm_fn struct fm_stats fm_stats(int fd)
{
	struct fm_stats stats;
	struct fm_own own;

	if (fm_own(fd, &own)) {
		memset(&stats, 0xff, sizeof(stats));
		return stats;
	}
	return (struct fm_stats) {
		.out_flags = own.sums.out_flags,
		.out_regions = own.sums.out_region_count,
		.out_total = own.sums.out_total,
		.out_free = own.sums.out_free,
		.out_used = own.sums.out_total - own.sums.out_free,
		.out_used_program = own.sums.out_used_program,
		.out_allocated = own.sums.out_allocated,
		.out_allocs = own.sums.out_allocs,
		.out_frees = own.sums.out_frees,
		.out_failures = own.sums.out_failures,
		.out_generation = own.sums.out_generation,
		.out_client_used = own.file.bytes,
		.out_client_peak = own.file.peak,
		.out_client_handles = own.file.handles,
	};
}

fm_fn bool fm_exhausted(int fd)
{
	return fm_stats(fd).out_flags & FLEXMEM_REPORT_EXHAUSTED;
}

/* ---- snapshot: everything that a call could have changed ---- */

struct snapshot {
	struct fm_stats stats;
	__u32 nr_regions;
	struct flexmem_segments segments;
	struct flexmem_region_entry region[FM_MAX_REGIONS];
	struct flexmem_segment_entry segment[FM_MAX_REGIONS];
};

fm_fn int fm_snap(int fd, struct snapshot *s)
{
	struct flexmem_snapshot all = CMD(snapshot,
		.region_entry_size = sizeof(s->region[0]),
		.region_count = FM_MAX_REGIONS, .regions = (uintptr_t)s->region,
		.owner_entry_size = sizeof(struct flexmem_owner_entry));
	int error;

	memset(s, 0, sizeof(*s));
	s->segments = CMD(segments, .entry_size = sizeof(s->segment[0]),
			  .count = FM_MAX_REGIONS,
			  .entries = (uintptr_t)s->segment);
	s->stats = fm_stats(fd);
	error = raw_snapshot(fd, &all);
	if (!error)
		error = raw_segments(fd, &s->segments);
	s->nr_regions = all.out_region_count;
	s->segments.entries = 0;
	return error;
}

/*
 * Describes the difference between two snapshots; "" if there is none. The
 * count of failures may differ. If a call was undone, the counts of changes and
 * the peak may differ too.
 */
fm_fn const char *fm_diff(const struct snapshot *old,
			  const struct snapshot *new, bool undone)
{
	struct snapshot a = *old, b = *new;
	unsigned int i;

	a.stats.out_failures = b.stats.out_failures;
	if (undone) {
		a.stats.out_allocs += b.stats.out_frees - a.stats.out_frees;
		a.stats.out_frees = b.stats.out_frees;
		a.stats.out_client_peak = b.stats.out_client_peak;
		for (i = 0; i < FM_MAX_REGIONS; i++)
			a.region[i].sequence = b.region[i].sequence;
	}
	if (a.stats.out_used != b.stats.out_used)
		return "used bytes";
	if (a.stats.out_client_handles != b.stats.out_client_handles)
		return "live allocations";
	if (memcmp(&a.stats, &b.stats, sizeof(a.stats)))
		return "stats";
	if (a.nr_regions != b.nr_regions ||
	    memcmp(a.region, b.region, sizeof(a.region)))
		return "regions";
	if (memcmp(&a.segments, &b.segments, sizeof(a.segments)) ||
	    memcmp(a.segment, b.segment, sizeof(a.segment)))
		return "segments";
	return "";
}

#define SNAP(fd, s) ASSERT_EQ(0, fm_snap(fd, s))

/*
 * Reads the limit of @q->resource of the opener's cgroup, and what is charged.
 * Returns 0 or an errno.
 */
fm_fn int fm_get_limit(int fd, struct flexmem_resource_limit *q)
{
	struct fm_own own;
	int error = fm_own(fd, &own);
	const struct flexmem_owner_entry *cgroup = &own.cgroup;
	const __u64 used[FLEXMEM_NR_RESOURCES] = {
		[FLEXMEM_RESOURCE_BYTES] = cgroup->bytes + cgroup->orphaned,
		[FLEXMEM_RESOURCE_REGIONS] = cgroup->slots,
		[FLEXMEM_RESOURCE_HANDLES] = cgroup->handles,
		[FLEXMEM_RESOURCE_FILES] = cgroup->files,
	};

	if (error)
		return error;
	q->out_limit = cgroup->limit[q->resource];
	q->out_used = used[q->resource];
	return 0;
}

#define EXPECT_SAME(fd, before, undone) do {				\
	struct snapshot __now;						\
									\
	SNAP(fd, &__now);						\
	EXPECT_STREQ("", fm_diff(before, &__now, undone));		\
} while (0)
#define EXPECT_UNCHANGED(fd, before) EXPECT_SAME(fd, before, false)
#define EXPECT_UNDONE(fd, before) EXPECT_SAME(fd, before, true)

/*
 * Checks that the sums of a snapshot agree. Returns "" if so, or a text with
 * the error. No other process may use the device.
 */
fm_fn const char *fm_sums(int fd, bool empty)
{
	__u64 total = 0, free = 0, allocated = 0;
	const struct flexmem_segment_entry *seg;
	unsigned int i;
	struct snapshot s;

	if (fm_snap(fd, &s))
		return "no snapshot";
	for (i = 0; i < s.nr_regions; i++) {
		const struct flexmem_region_entry *r = &s.region[i];

		total += r->total;
		free += r->free;
		allocated += r->nr_allocated;
		if (r->largest_free > r->free || !r->nr_free != !r->free)
			return "free blocks of a region";
		if (i && r->slot <= s.region[i - 1].slot)
			return "order of the regions";
		if (empty && (r->nr_free != 1 || r->largest_free != r->total))
			return "an empty region is not one free block";
		seg = &s.segment[i];
		if (seg->slot != r->slot ||
		    seg->flags != (r->flags & FLEXMEM_REGION_PROGRAM) ||
		    seg->region_id != r->region_id || seg->length != r->total)
			return "segment is not the region";
	}
	if (s.stats.out_regions != i || s.segments.out_count != i)
		return "number of regions";
	if (s.stats.out_total != total || s.stats.out_free != free)
		return "sum of the regions";
	if (s.stats.out_used + s.stats.out_free != s.stats.out_total)
		return "used + free is not total";
	if (s.stats.out_allocated != allocated ||
	    s.stats.out_allocs - s.stats.out_frees != allocated)
		return "number of allocations";
	if (s.stats.out_client_used > s.stats.out_used)
		return "client uses more than all";
	if (empty && (s.stats.out_used || s.stats.out_used_program ||
		      allocated))
		return "not empty";
	return "";
}

/* ---- nodes ---- */

/*
 * Opens the nth node of a mode, and stores its path unless @path is NULL.
 * Returns -1 if there is none.
 */
fm_fn int fm_open_nth(int mode, int nth, char path[32])
{
	char name[32];
	int end = mode == FM_PF ? FM_MAX_PFS : FM_MAX_NODES;
	int i, fd;

	for (i = mode == FM_PF ? 0 : FM_MAX_PFS; i < end; i++) {
		struct flexmem_info info = CMD(info);

		snprintf(name, sizeof(name), "/dev/flexmem%d", i);
		fd = open(name, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!raw_info(fd, &info) && (int)info.out_mode == mode &&
		    !nth--) {
			if (path)
				strcpy(path, name);
			return fd;
		}
		close(fd);
	}
	errno = ENOENT;
	return -1;
}

fm_fn int fm_open(int mode)
{
	return fm_open_nth(mode, 0, NULL);
}

/* ---- modules ---- */

fm_fn const char *fm_env(const char *name)
{
	return getenv(name) ?: "";
}

fm_fn bool fm_loaded(const char *module)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/module/%s", module);
	return !access(path, F_OK);
}

/*
 * Unloads a module. Returns 0 or an errno. Tries for a while, because the
 * kernel may still be closing a file.
 */
fm_fn int fm_rmmod(const char *module)
{
	int tries, error = 0;

	for (tries = 0; fm_loaded(module) && tries < 600; tries++) {
		if (!syscall(SYS_delete_module, module, O_NONBLOCK))
			return 0;
		error = errno;
		usleep(100000);
	}
	return fm_loaded(module) ? error : 0;
}

fm_fn int fm_insmod(const char *module, const char *params)
{
	char path[PATH_MAX];
	int fd, error;

	snprintf(path, sizeof(path), "%s/%s.ko", fm_env("FLEXMEM_KO"), module);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	error = syscall(SYS_finit_module, fd, params, 0) ? errno : 0;
	close(fd);
	return error;
}

fm_fn int fm_unload(void)
{
	int error;

	unlink(FM_STAMP);
	error = fm_rmmod("flexmem_sim");
	return error ?: fm_rmmod("flexmem");
}

/*
 * Makes sure that the modules are loaded with these parameters, and with a long
 * timeout of the firmware. The parameters take precedence over those that
 * run.sh has put into the environment. @fresh: loads the modules again even if
 * they are loaded with these parameters.
 */
fm_fn int fm_load(const char *params, const char *sim_params, bool fresh)
{
	char want[1024], have[1024] = "", *sim;
	int fd, error, n;

	if (!*fm_env("FLEXMEM_KO"))
		return ENOENT;
	snprintf(want, sizeof(want), "%s %s\ntimeout_ms=%s %s %s",
		 fm_env("FLEXMEM_PARAMS"), params ?: "", FM_CALM_MS,
		 fm_env("FLEXMEM_SIM_PARAMS"), sim_params ?: "");
	fd = open(FM_STAMP, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	n = read(fd, have, sizeof(have) - 1);
	close(fd);
	if (!fresh && n > 0 && !strcmp(have, want) && fm_loaded("flexmem_sim"))
		return 0;

	error = fm_unload();
	if (error)
		return error;
	sim = strchr(want, '\n');
	*sim++ = '\0';
	error = fm_insmod("flexmem", want);
	if (!error)
		error = fm_insmod("flexmem_sim", sim);
	if (error)
		return error;
	sim[-1] = '\n';
	fd = open(FM_STAMP, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	n = write(fd, want, strlen(want));
	close(fd);
	return n == (int)strlen(want) ? 0 : EIO;
}

#define LOAD(params, sim) ASSERT_EQ(0, fm_load(params, sim, false))
#define RELOAD(params, sim) ASSERT_EQ(0, fm_load(params, sim, true))

/*
 * For teardowns: expects that no byte is allocated, and that each region is one
 * free block.
 */
#define EXPECT_EMPTY(mode) do {						\
	int __fd = fm_open(mode);					\
									\
	ASSERT_LE(0, __fd);						\
	EXPECT_STREQ("", fm_sums(__fd, true));				\
	close(__fd);							\
} while (0)

/* ---- memory that ends, or is read-only, at a page boundary ---- */

/*
 * Maps two pages. The second page has protection @prot, or is not mapped if
 * @prot is -1.
 */
fm_fn char *fm_two_pages(int prot)
{
	size_t page = getpagesize();
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (prot < 0)
		munmap(p + page, page);
	else if (mprotect(p + page, page, prot))
		return NULL;
	return p;
}

/* ---- children ---- */

/* Runs fn(arg) in a child. Returns its exit status, or minus the signal. */
fm_fn int fm_child(int (*fn)(void *arg), void *arg)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fn(arg));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1000;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

fm_fn __u64 fm_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ULL + t.tv_nsec / 1000000;
}

#endif /* FLEXMEM_TEST_H */
