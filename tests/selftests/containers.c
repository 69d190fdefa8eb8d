// SPDX-License-Identifier: GPL-2.0
/*
 * Two containers that run as root: each has a cgroup, a cgroup namespace and a
 * mount of cgroup2 in which its cgroup is the root, and no CAP_SYS_ADMIN. A
 * process in each does the steps below, one container after the other.
 */
#include "tenants.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#define PARAMS "max_regions=4 fallback_sizes=64M order=fill_first strategy=first_fit" FM_PF_FOR_ALL
#define SIM "num_vfs=1 memory=1G vf_capacity=256M"
#define BYTES FLEXMEM_RESOURCE_BYTES
#define NR 2
#define SECRET 0xa5

static const char * const in[NR] = { "flexmem/a", "flexmem/b" };
static const __u64 limit[NR] = { 3 * MiB, 5 * MiB };

FIXTURE(containers) {
	int root;
	__u64 id[NR];
	struct child child[NR];
	/* what the first container has freed; in shared memory */
	struct flexmem_alloc *freed;
};

FIXTURE_VARIANT(containers) {
	int mode;
};

FIXTURE_VARIANT_ADD(containers, pf) { FM_PF };
FIXTURE_VARIANT_ADD(containers, vf) { FM_VF };

static int set_limit(int fd, __u64 cgroup, __u64 bytes)
{
	return raw_set_limit(fd, &CMD(resource_limit, .cgroup = cgroup, .resource = BYTES, .limit = bytes));
}

FIXTURE_SETUP(containers)
{
	unsigned int i;

	LOAD(PARAMS, SIM);
	fm_mend();
	self->root = fm_open(variant->mode);
	ASSERT_LE(0, self->root);
	ENTER("flexmem");
	for (i = 0; i < NR; i++) {
		ENTER(in[i]);
		self->id[i] = fm_cgroup_id(in[i]);
		ASSERT_EQ(0, set_limit(self->root, self->id[i], limit[i]));
	}
	ENTER("");
	self->freed = mmap(NULL, sizeof(*self->freed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->freed);
}

FIXTURE_TEARDOWN(containers)
{
	unsigned int i;

	for (i = 0; i < NR; i++) {
		if (self->child[i].pid > 0)
			child_kill(&self->child[i]);
		EXPECT_EQ(0, fm_remove_cgroup(i ? "flexmem/b/sub" : "flexmem/a/sub"));
		EXPECT_EQ(0, fm_remove_cgroup(in[i]));
	}
	EXPECT_EQ(0, fm_remove_cgroup("flexmem"));
	EXPECT_EQ(0, fm_trim(self->root));
	close(self->root);
	EXPECT_SETTLED(variant->mode);
}

/* If a step fails, STEP() returns its line number from the calling function. */
#define STEP(is) do {							\
	if (!(is))							\
		return __LINE__;					\
} while (0)

static int leave_the_host(const char *cgroup)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];
	char line[8] = "";
	FILE *f;

	STEP(!fm_enter(cgroup));
	STEP(!unshare(CLONE_NEWCGROUP | CLONE_NEWNS));
	STEP(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	STEP(!umount2("/sys/fs/cgroup", MNT_DETACH));
	STEP(!mount("none", "/sys/fs/cgroup", "cgroup2", 0, NULL));
	f = fopen("/proc/self/cgroup", "r");
	STEP(f && fgets(line, sizeof(line), f) && !strcmp(line, "0::/\n"));
	fclose(f);
	STEP(!syscall(SYS_capget, &header, caps));
	caps[0].effective &= ~(1U << CAP_SYS_ADMIN);
	caps[0].permitted &= ~(1U << CAP_SYS_ADMIN);
	STEP(!syscall(SYS_capset, &header, caps));
	return 0;
}

static bool is_same_refusal(const struct flexmem_refusal *a, const struct flexmem_refusal *b)
{
	return a->resource == b->resource && a->flags == b->flags && a->cgroup == b->cgroup &&
	       a->limit == b->limit && a->used == b->used && a->own == b->own;
}

/* Whether ALLOC fails because a cgroup's limit refuses the bytes. */
static bool is_refused(int fd, __u64 length)
{
	struct flexmem_alloc reply;

	return fm_alloc(fd, length, &reply) == ENOMEM && reply.out_reason == FLEXMEM_REASON_CGROUP_LIMIT;
}

static bool has_limit(int fd, __u64 bytes, __u64 used)
{
	struct flexmem_resource_limit q = CMD(resource_limit, .resource = BYTES);

	return !fm_get_limit(fd, &q) && q.out_limit == bytes && q.out_used == used;
}

/*
 * Allocates exactly up to the limit, from the container's cgroup and from a
 * cgroup below it.
 */
static int use_the_limit(int mode, int fd, __u64 bytes)
{
	struct flexmem_alloc reply;
	int other;

	STEP(has_limit(fd, bytes, MiB));
	STEP(!fm_alloc(fd, bytes - MiB, &reply));
	STEP(is_refused(fd, 1));
	STEP(!fm_enter("sub"));
	other = fm_open(mode);
	STEP(other >= 0);
	STEP(has_limit(other, FLEXMEM_NO_LIMIT, 0));
	STEP(is_refused(other, 1));
	STEP(!fm_free(fd, reply.out_handle));
	STEP(!fm_alloc(other, bytes - MiB, &reply));
	STEP(is_refused(fd, 1));
	STEP(has_limit(other, FLEXMEM_NO_LIMIT, bytes - MiB));
	return 0;
}

/* Checks that a container cannot set a limit, and sees no other container. */
static int look_around(int fd, const __u64 *id)
{
	struct account a;
	unsigned int i;

	for (i = 0; i < NR; i++)
		STEP(set_limit(fd, id[i], FLEXMEM_NO_LIMIT) == EPERM);
	STEP(!fm_account(fd, &a));
	STEP(a.s.out_owner_count == 2);
	return 0;
}

/*
 * The user root opens a file in each of two containers. Neither file may get
 * bytes of the other. The second file's first allocation is where the first
 * file has freed one: in front of memory that the first file keeps.
 */
static int check_bytes(int fd, unsigned int i, struct flexmem_alloc *freed)
{
	struct flexmem_alloc keep, reply;

	STEP(!fm_alloc(fd, MiB, &reply));
	STEP(!fm_alloc(fd, MiB, &keep));
	if (i) {
		STEP(fm_same_place(&reply, freed));
		STEP(!fm_others(fd, reply.out_handle, 0, MiB, 0));
	}
	STEP(!fm_fill(fd, reply.out_handle, 0, MiB, SECRET));
	*freed = reply;
	STEP(!fm_free(fd, reply.out_handle));
	return 0;
}

static int be_container(int mode, unsigned int i, const __u64 *id, struct flexmem_alloc *freed)
{
	int line = leave_the_host(in[i]), fd;

	if (line)
		return line;
	fd = fm_open(mode);
	STEP(fd >= 0);
	line = look_around(fd, id);
	if (!line)
		line = check_bytes(fd, i, freed);
	if (!line)
		line = use_the_limit(mode, fd, limit[i]);
	return line;
}

TEST_F(containers, each_has_a_limit_and_bytes_of_its_own)
{
	const struct flexmem_owner_entry *o;
	struct account a;
	unsigned int i;

	for (i = 0; i < NR; i++) {
		if (child_start(&self->child[i]))
			child_ready(&self->child[i], be_container(variant->mode, i, self->id, self->freed));
		/* the result is 0, or the line of the step that failed */
		ASSERT_EQ(0, child_wait_ready(&self->child[i]));
	}
	ACCOUNT(self->root, &a);
	for (i = 0; i < NR; i++) {
		o = fm_owner(&a, FLEXMEM_OWNER_CGROUP, self->id[i]);
		ASSERT_NE(NULL, o);
		EXPECT_EQ(limit[i], o->bytes);
		EXPECT_EQ(limit[i], o->limit[BYTES]);
		EXPECT_EQ(2, o->files);
	}
}

/*
 * A container with a limit of 3 MiB below a cgroup with one of 1 MiB: it sees its
 * own limit, and of the limit outside it only what is left.
 */
static int be_refused(int mode, __u64 id)
{
	struct flexmem_alloc reply;
	const struct flexmem_refusal *is = &reply.out_refusal;
	int line = leave_the_host(in[0]), fd;

	if (line)
		return line;
	fd = fm_open(mode);
	STEP(fd >= 0);
	STEP(!fm_alloc(fd, MiB / 4, &reply));
	STEP(is_same_refusal(is, &(struct flexmem_refusal) {}));
	STEP(fm_alloc(fd, MiB, &reply) == ENOMEM);
	STEP(is_same_refusal(is, &(struct flexmem_refusal) {
		.flags = FLEXMEM_REFUSAL_HIDDEN | FLEXMEM_REFUSAL_ALONE,
		.limit = 3 * MiB / 4, .own = MiB / 4,
	}));
	STEP(fm_alloc(fd, limit[0], &reply) == ENOMEM);
	STEP(is_same_refusal(is, &(struct flexmem_refusal) {
		.flags = FLEXMEM_REFUSAL_ALONE, .cgroup = id, .limit = limit[0],
		.used = MiB / 4, .own = MiB / 4,
	}));
	return 0;
}

TEST_F(containers, a_limit_outside_is_hidden)
{
	__u64 above = fm_cgroup_id("flexmem");

	/* The teardown removes these. */
	ENTER("flexmem/a/sub");
	ENTER("flexmem/b/sub");
	ENTER("");
	ASSERT_EQ(0, set_limit(self->root, above, MiB));
	if (child_start(&self->child[0]))
		child_ready(&self->child[0], be_refused(variant->mode, self->id[0]));
	ASSERT_EQ(0, child_wait_ready(&self->child[0]));
	ASSERT_EQ(0, set_limit(self->root, above, FLEXMEM_NO_LIMIT));
}

TEST_HARNESS_MAIN
