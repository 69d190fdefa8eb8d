// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of cgroups are exact. A refused call reports the limit that refused
 * it. A charge ends with the use, whatever ends the use. Only the administrator
 * sets limits.
 */
#include "tenants.h"

/* A PF or VF can have four regions. */
#define PARAMS "max_regions=4 fallback_sizes=4G order=fill_first "	\
	"strategy=first_fit acquire=lazy program_slots=0" FM_PF_FOR_ALL
#define SIM "num_vfs=1 memory=32G vf_capacity=16G"
#define REGION (4 * GiB)

#define BYTES FLEXMEM_RESOURCE_BYTES
#define SLOTS FLEXMEM_RESOURCE_REGIONS
#define HANDLES FLEXMEM_RESOURCE_HANDLES
#define FILES FLEXMEM_RESOURCE_FILES
#define REFUSES FLEXMEM_REASON_CGROUP_LIMIT

FIXTURE(limit) {
	int root;
	int alice;
	int alice2;		/* another file of the same user and cgroup */
	int bob;
	__u64 id;		/* of Alice's cgroup */
};

FIXTURE_VARIANT(limit) {
	int mode;
};

FIXTURE_VARIANT_ADD(limit, pf) { FM_PF };
FIXTURE_VARIANT_ADD(limit, vf) { FM_VF };

/* set_scoped() and set_limit() return 0 or an errno. */
static int set_scoped(int fd, __u32 scope, __u64 cgroup, __u32 resource, __u64 limit)
{
	return raw_set_limit(fd, &CMD(resource_limit, .scope = scope, .cgroup = cgroup,
				      .resource = resource, .limit = limit));
}

static int set_limit(int fd, __u64 cgroup, __u32 resource, __u64 limit)
{
	return set_scoped(fd, FLEXMEM_SCOPE_CGROUP, cgroup, resource, limit);
}

#define LIMIT(resource, value)						\
	ASSERT_EQ(0, set_limit(self->root, self->id, resource, value))

static struct flexmem_resource_limit limit(int fd, __u32 resource)
{
	struct flexmem_resource_limit q = CMD(resource_limit, .resource = resource);

	if (fm_get_limit(fd, &q))
		memset(&q, 0xee, sizeof(q));
	return q;
}

#define used(fd, resource) (limit(fd, resource).out_used)

FIXTURE_SETUP(limit)
{
	LOAD(PARAMS, SIM);
	OPEN_TENANTS();
	self->alice2 = fm_open_as(variant->mode, ALICE);
	ASSERT_LE(0, self->alice2);
	self->id = fm_account_id(ALICE);
	ASSERT_NE(0, self->id);
}

FIXTURE_TEARDOWN(limit)
{
	static const uid_t users[] = { ALICE, BOB };
	unsigned int i, resource;

	fm_become(0);
	for (i = 0; i < ARRAY_SIZE(users); i++)
		for (resource = 0; resource < FLEXMEM_NR_RESOURCES; resource++)
			EXPECT_EQ(0, set_limit(self->root, fm_account_id(users[i]), resource, FLEXMEM_NO_LIMIT));
	close(self->alice);
	close(self->alice2);
	close(self->bob);
	EXPECT_EQ(0, fm_trim(self->root));
	close(self->root);
	EXPECT_SETTLED(variant->mode);
}

/* Expects that ALLOC fails with this reason and changes nothing. */
#define EXPECT_REFUSED(why, fd, length) do {				\
	struct flexmem_alloc __reply;					\
	struct snapshot __before;					\
									\
	SNAP(fd, &__before);						\
	EXPECT_EQ(ENOMEM, fm_alloc(fd, length, &__reply));		\
	EXPECT_EQ(why, __reply.out_reason);				\
	EXPECT_EQ(ENOMEM, __reply.out_error);				\
	EXPECT_EQ(0, __reply.out_handle);				\
	EXPECT_UNCHANGED(fd, &__before);				\
} while (0)

#define TAKE(fd, length) ({						\
	__u32 __handle = fm_take(fd, length);				\
									\
	ASSERT_NE(0, __handle);						\
	__handle;							\
})

TEST_F(limit, there_is_none_at_first)
{
	struct flexmem_resource_limit q;
	unsigned int resource;

	BECOME(ALICE);
	for (resource = 0; resource < FLEXMEM_NR_RESOURCES; resource++) {
		q = CMD(resource_limit, .resource = resource,
			.out_used = 77);
		ASSERT_EQ(0, fm_get_limit(self->alice, &q));
		EXPECT_EQ(FLEXMEM_NO_LIMIT, q.out_limit);
		EXPECT_EQ(resource == FILES ? 2 : 0, q.out_used);
	}
}

TEST_F(limit, snapshot_tells_what_was_set)
{
	struct flexmem_resource_limit q;

	LIMIT(BYTES, 5 * GiB);
	LIMIT(SLOTS, 3);
	LIMIT(HANDLES, 1000);
	TAKE(self->alice, MiB);
	TAKE(self->alice, 1);
	BECOME(ALICE);
	q = limit(self->alice, BYTES);
	EXPECT_EQ(5 * GiB, q.out_limit);
	EXPECT_EQ(MiB + 128, q.out_used);
	q = limit(self->alice, SLOTS);
	EXPECT_EQ(3, q.out_limit);
	EXPECT_EQ(1, q.out_used);
	q = limit(self->alice, HANDLES);
	EXPECT_EQ(1000, q.out_limit);
	EXPECT_EQ(2, q.out_used);
	/* Bob's cgroup has no limit */
	EXPECT_EQ(FLEXMEM_NO_LIMIT,
		  limit(self->bob, BYTES).out_limit);
}

TEST_F(limit, set_limit_replies_with_limit_and_use)
{
	struct flexmem_resource_limit q = CMD(resource_limit, .cgroup = self->id,
		.resource = BYTES, .limit = 2 * GiB);

	TAKE(self->alice, 1000);
	must(set_limit, self->root, &q);
	EXPECT_EQ(2 * GiB, q.out_limit);
	EXPECT_EQ(1024, q.out_used);
}

static int set_without_rights(void *arg)
{
	struct { __u64 id; int fd; bool namespace; __u32 scope; } *a = arg;

	if (a->namespace ? unshare(CLONE_NEWUSER) : setresuid(ALICE, ALICE, ALICE))
		return 250;
	return set_scoped(a->fd, a->scope, a->id, BYTES, GiB);
}

/*
 * A user cannot set limits on an own file, or on a file that the administrator
 * opened
 */
TEST_F(limit, only_the_administrator_sets)
{
	struct { __u64 id; int fd; bool namespace; __u32 scope; } a = {
		.id = self->id, .fd = self->alice, .scope = FLEXMEM_SCOPE_CGROUP,
	};

	EXPECT_EQ(EPERM, fm_child(set_without_rights, &a));
	a.fd = self->root;
	EXPECT_EQ(EPERM, fm_child(set_without_rights, &a));
	/* being root in a user namespace is not enough */
	a.namespace = true;
	EXPECT_EQ(EPERM, fm_child(set_without_rights, &a));
	/* the default limit is a limit of others, too */
	a.scope = FLEXMEM_SCOPE_DEFAULT;
	a.id = 0;
	EXPECT_EQ(EPERM, fm_child(set_without_rights, &a));
	a.namespace = false;
	EXPECT_EQ(EPERM, fm_child(set_without_rights, &a));
	EXPECT_EQ(FLEXMEM_NO_LIMIT,
		  limit(self->alice, BYTES).out_limit);
	/* the administrator may use any file of the PF or VF */
	EXPECT_EQ(0, set_limit(self->bob, self->id, BYTES, GiB));
	EXPECT_EQ(GiB, limit(self->alice, BYTES).out_limit);
}

TEST_F(limit, wrong_values_are_einval)
{
	struct flexmem_resource_limit good = CMD(resource_limit,
		.cgroup = self->id, .resource = BYTES, .limit = GiB), q;

	q = good;
	q.scope = 3;
	must_fail(EINVAL, set_limit, self->root, &q);
	q.scope = 1;
	must_fail(EINVAL, set_limit, self->root, &q);
	q.scope = FLEXMEM_SCOPE_DEFAULT;
	must_fail(EINVAL, set_limit, self->root, &q);
	q = good;
	q.resource = FLEXMEM_NR_RESOURCES;
	must_fail(EINVAL, set_limit, self->root, &q);
	EXPECT_EQ(EINVAL, set_limit(self->root, fm_cgroup_id(""), FILES, 100));
	EXPECT_EQ(FLEXMEM_NO_LIMIT, limit(self->alice, BYTES).out_limit);
	must(set_limit, self->root, &good);
}

TEST_F(limit, unknown_cgroups)
{
	struct flexmem_resource_limit q = CMD(resource_limit, .cgroup = ~0ULL,
					      .out_limit = 77);

	/* an unknown cgroup causes ENOENT, and the call writes no reply */
	must_fail(ENOENT, set_limit, self->root, &q);
	EXPECT_EQ(77, q.out_limit);
	EXPECT_EQ(ENOENT, set_limit(self->root, 0, BYTES, 1));
	EXPECT_EQ(ENOENT, set_limit(self->root, self->id | 1ULL << 62, BYTES, 1));
	/* the cgroup "flexmem" exists, and no file was opened in it */
	ENTER("flexmem");
	ENTER("");
	EXPECT_EQ(0, set_limit(self->root, fm_cgroup_id("flexmem"), BYTES, MiB));
	EXPECT_EQ(0, set_limit(self->root, fm_cgroup_id("flexmem"), BYTES,
			       FLEXMEM_NO_LIMIT));
	EXPECT_EQ(0, fm_remove_cgroup("flexmem"));
	TAKE(self->alice, 2 * MiB);
}

TEST_F(limit, bytes_are_exact)
{
	__u32 handle;

	LIMIT(BYTES, MiB);
	handle = TAKE(self->alice, MiB / 2);
	TAKE(self->alice2, MiB / 2);
	EXPECT_EQ(MiB, used(self->alice, BYTES));
	EXPECT_REFUSED(REFUSES, self->alice, 1);
	EXPECT_REFUSED(REFUSES, self->alice2, GiB);
	/* the limit does not hold for Bob */
	TAKE(self->bob, 2 * MiB);

	ASSERT_EQ(0, fm_free(self->alice, handle));
	EXPECT_REFUSED(REFUSES, self->alice2, MiB / 2 + 1);
	TAKE(self->alice2, MiB / 2);
	EXPECT_EQ(MiB, used(self->alice, BYTES));
	EXPECT_REFUSED(REFUSES, self->alice, 1);
}

/* An allocation is charged with its rounded size. */
TEST_F(limit, bytes_are_counted_as_rounded)
{
	struct flexmem_alloc reply;

	LIMIT(BYTES, 1000);
	EXPECT_REFUSED(REFUSES, self->alice, 1000);
	TAKE(self->alice, 800);
	EXPECT_EQ(896, used(self->alice, BYTES));
	EXPECT_REFUSED(REFUSES, self->alice, 1);
	LIMIT(BYTES, 4096 + 896 - 1);
	EXPECT_EQ(ENOMEM, fm_alloc_flags(self->alice, 1, FLEXMEM_ALLOC_MAPPABLE,
					 &reply));
	LIMIT(BYTES, 4096 + 896);
	EXPECT_EQ(0, fm_alloc_flags(self->alice, 1, FLEXMEM_ALLOC_MAPPABLE, &reply));
}

TEST_F(limit, handles_are_exact)
{
	struct flexmem_alloc e[4];
	struct flexmem_batch batch = CMD(batch, .entry_size = sizeof(e[0]),
					 .count = ARRAY_SIZE(e),
					 .entries = (uintptr_t)e);
	__u32 handle;
	unsigned int i;

	LIMIT(HANDLES, 4);
	TAKE(self->alice2, 128);
	handle = TAKE(self->alice, 128);
	for (i = 0; i < ARRAY_SIZE(e); i++)
		e[i] = CMD(alloc, .length = 128);
	must(alloc_batch, self->alice, &batch);
	for (i = 0; i < ARRAY_SIZE(e); i++) {
		EXPECT_EQ(i < 2 ? 0 : ENOMEM, e[i].out_error);
		EXPECT_EQ(i < 2 ? FLEXMEM_REASON_NONE : REFUSES,
			  e[i].out_reason);
	}
	EXPECT_EQ(4, used(self->alice, HANDLES));
	EXPECT_REFUSED(REFUSES, self->alice2, 128);
	TAKE(self->bob, 128);
	ASSERT_EQ(0, fm_free(self->alice, handle));
	TAKE(self->alice2, 128);
	EXPECT_REFUSED(REFUSES, self->alice, 128);
}

/* An owner is charged one slot for each region in which it has bytes. */
TEST_F(limit, slots_are_exact)
{
	__u32 large, small;

	LIMIT(SLOTS, 1);
	large = TAKE(self->alice, 3 * GiB);
	EXPECT_REFUSED(FLEXMEM_REASON_REGION_LIMIT, self->alice2, 2 * GiB);
	small = TAKE(self->alice2, GiB);
	EXPECT_EQ(1, used(self->alice, SLOTS));
	EXPECT_REFUSED(FLEXMEM_REASON_REGION_LIMIT, self->alice, 128);
	TAKE(self->bob, 2 * GiB);
	EXPECT_EQ(2, fm_stats(self->root).out_regions);

	/* a slot is charged until the last byte in it is freed */
	ASSERT_EQ(0, fm_free(self->alice, large));
	EXPECT_EQ(1, used(self->alice, SLOTS));
	ASSERT_EQ(0, fm_free(self->alice2, small));
	EXPECT_EQ(0, used(self->alice, SLOTS));
	TAKE(self->bob, REGION);
	TAKE(self->alice, 2 * GiB);
	EXPECT_EQ(1, used(self->alice, SLOTS));
	EXPECT_REFUSED(FLEXMEM_REASON_REGION_LIMIT, self->alice2, GiB);
	LIMIT(SLOTS, 2);
	TAKE(self->alice2, GiB);
	EXPECT_EQ(2, used(self->alice, SLOTS));
}

TEST_F(limit, zero_is_a_limit)
{
	LIMIT(BYTES, 0);
	EXPECT_REFUSED(REFUSES, self->alice, 1);
	LIMIT(BYTES, FLEXMEM_NO_LIMIT);
	LIMIT(HANDLES, 0);
	EXPECT_REFUSED(REFUSES, self->alice, 1);
	LIMIT(HANDLES, FLEXMEM_NO_LIMIT);
	LIMIT(SLOTS, 0);
	EXPECT_REFUSED(FLEXMEM_REASON_REGION_LIMIT, self->alice, 1);
	LIMIT(SLOTS, FLEXMEM_NO_LIMIT);
	TAKE(self->alice, 1);
}

TEST_F(limit, below_use_takes_nothing_away)
{
	__u32 handle = TAKE(self->alice, MiB), small = TAKE(self->alice2, 128);

	LIMIT(BYTES, MiB / 2);
	EXPECT_EQ(MiB + 128, used(self->alice, BYTES));
	must(lookup, self->alice, &CMD(lookup, .handle = handle));
	EXPECT_EQ(0, fm_fill(self->alice, handle, 0, MiB, 1));
	EXPECT_REFUSED(REFUSES, self->alice, 1);
	ASSERT_EQ(0, fm_free(self->alice2, small));
	EXPECT_REFUSED(REFUSES, self->alice, 1);
	ASSERT_EQ(0, fm_free(self->alice, handle));
	TAKE(self->alice2, MiB / 2);
	EXPECT_REFUSED(REFUSES, self->alice, 1);
}

TEST_F(limit, a_cgroup_limits_those_below_it)
{
	struct flexmem_alloc reply;
	int low, lower;
	__u64 id;

	ENTER("flexmem");
	ENTER("flexmem/a");
	low = fm_open_nth_in(variant->mode, 0, ALICE, "flexmem/a");
	lower = fm_open_nth_in(variant->mode, 0, BOB, "flexmem/a/b");
	ASSERT_LE(0, low);
	ASSERT_LE(0, lower);
	id = fm_cgroup_id("flexmem");
	ASSERT_EQ(0, set_limit(self->root, id, BYTES, MiB));
	TAKE(low, MiB / 2);
	EXPECT_REFUSED(REFUSES, lower, MiB / 2 + 1);
	TAKE(lower, MiB / 2);
	EXPECT_EQ(MiB, limit(low, BYTES).out_used);
	EXPECT_EQ(MiB / 2, limit(lower, BYTES).out_used);
	EXPECT_REFUSED(REFUSES, low, 1);
	EXPECT_REFUSED(REFUSES, lower, 1);
	/* The cgroup above is in the caller's cgroup namespace. */
	BECOME(BOB);
	EXPECT_EQ(ENOMEM, fm_alloc(lower, 1, &reply));
	BECOME(0);
	EXPECT_EQ(id, reply.out_refusal.cgroup);
	EXPECT_EQ(BYTES, reply.out_refusal.resource);
	EXPECT_EQ(FLEXMEM_REFUSAL_SHARED, reply.out_refusal.flags);
	EXPECT_EQ(MiB, reply.out_refusal.limit);
	EXPECT_EQ(MiB, reply.out_refusal.used);
	EXPECT_EQ(MiB / 2, reply.out_refusal.own);
	TAKE(self->alice, MiB);
	close(low);
	TAKE(lower, MiB / 2);
	close(lower);
	EXPECT_EQ(0, fm_remove_cgroup("flexmem/a/b"));
	EXPECT_EQ(0, fm_remove_cgroup("flexmem/a"));
	ASSERT_EQ(0, set_limit(self->root, id, BYTES, FLEXMEM_NO_LIMIT));
	EXPECT_EQ(0, fm_remove_cgroup("flexmem"));
}

/*
 * The cgroup in which the file was opened is charged, whichever process calls.
 */
TEST_F(limit, the_opener_is_charged)
{
	LIMIT(BYTES, MiB);
	BECOME(BOB);
	TAKE(self->alice, MiB);
	EXPECT_REFUSED(REFUSES, self->alice, 128);
	BECOME(0);
	EXPECT_REFUSED(REFUSES, self->alice, 128);
	EXPECT_EQ(MiB, used(self->alice, BYTES));
	EXPECT_EQ(0, used(self->bob, BYTES));
}

TEST_F(limit, freed_but_mapped_memory_is_charged)
{
	struct flexmem_alloc reply;
	char *p;

	LIMIT(BYTES, MiB);
	ASSERT_EQ(0, fm_alloc_flags(self->alice, MiB, FLEXMEM_ALLOC_MAPPABLE, &reply));
	p = fm_mmap(self->alice, reply.out_handle, 0, MiB);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, fm_touch(p, true));
	ASSERT_EQ(0, fm_free(self->alice, reply.out_handle));
	EXPECT_EQ(MiB, used(self->alice, BYTES));
	EXPECT_EQ(1, used(self->alice, SLOTS));
	EXPECT_EQ(1, used(self->alice, HANDLES));
	EXPECT_REFUSED(REFUSES, self->alice2, 128);
	munmap(p, MiB);
	EXPECT_EQ(0, used(self->alice, BYTES));
	EXPECT_EQ(0, used(self->alice, HANDLES));
	EXPECT_EQ(0, used(self->alice, SLOTS));
	TAKE(self->alice2, MiB);
}

/*
 * Two processes of Alice share one limit. When one of them is killed, its
 * charges end.
 */
TEST_F(limit, charges_end_with_close_and_kill)
{
	struct child c;
	int round, fd;

	ASSERT_EQ(0, set_limit(self->root, fm_account_id(ALICE), BYTES, MiB));
	ASSERT_EQ(0, set_limit(self->root, fm_account_id(ALICE), HANDLES, 8));
	for (round = 0; round < 5; round++) {
		if (child_start(&c)) {
			int i, bad = 0;

			fd = fm_open_as(variant->mode, ALICE);
			for (i = 0; i < 8; i++)
				bad |= !fm_take(fd, MiB / 8);
			child_ready(&c, bad);
		}
		ASSERT_EQ(0, child_wait_ready(&c));
		EXPECT_REFUSED(REFUSES, self->alice, 1);
		EXPECT_EQ(SIGKILL, child_kill(&c));
		EXPECT_EQ(0, limit(self->alice, BYTES).out_used);
		EXPECT_EQ(0, limit(self->alice, HANDLES).out_used);
		EXPECT_EQ(0, limit(self->alice, SLOTS).out_used);

		fd = fm_open_as(variant->mode, ALICE);
		TAKE(fd, MiB);
		EXPECT_REFUSED(REFUSES, self->alice, 1);
		close(fd);
		EXPECT_EQ(0, limit(self->alice, BYTES).out_used);
	}
	TAKE(self->alice, MiB);
}

TEST_F(limit, limits_stay_when_files_are_closed)
{
	LIMIT(BYTES, 2 * MiB);
	close(self->alice);
	close(self->alice2);
	self->alice = fm_open_as(variant->mode, ALICE);
	self->alice2 = fm_open_as(variant->mode, ALICE);
	EXPECT_EQ(2 * MiB, limit(self->alice, BYTES).out_limit);
	TAKE(self->alice, 2 * MiB);
	EXPECT_REFUSED(REFUSES, self->alice2, 1);
}

TEST_F(limit, open_files_are_exact)
{
	int fd;

	LIMIT(FILES, 3);
	fd = fm_open_as(variant->mode, ALICE);
	ASSERT_LE(0, fd);
	EXPECT_GT(0, fm_open_as(variant->mode, ALICE));
	EXPECT_EQ(EMFILE, errno);
	EXPECT_EQ(3, used(self->alice, FILES));
	TAKE(fd, MiB);
	close(fd);
	EXPECT_EQ(2, used(self->alice, FILES));
	fd = fm_open_as(variant->mode, ALICE);
	EXPECT_LE(0, fd);
	close(fd);
}

/* Each container has a limit of its own, which its sub-cgroups share. */
TEST_F(limit, containers_have_limits_of_their_own)
{
	static const char * const in[] = { "flexmem/a", "flexmem/b", "flexmem/a/x" };
	int fd[ARRAY_SIZE(in)];
	unsigned int i;

	ENTER("flexmem");
	/*
	 * sets the limit of a and the default limits before the files are
	 * opened, and the limit of b after that
	 */
	ENTER(in[0]);
	ENTER("");
	ASSERT_EQ(0, set_limit(self->root, fm_cgroup_id(in[0]), BYTES, MiB));
	ASSERT_EQ(0, set_scoped(self->root, FLEXMEM_SCOPE_DEFAULT, 0, HANDLES, 3));
	for (i = 0; i < ARRAY_SIZE(in); i++) {
		fd[i] = fm_open_nth_in(variant->mode, 0, i ? ALICE : BOB, in[i]);
		ASSERT_LE(0, fd[i]);
	}
	ASSERT_EQ(0, set_limit(self->root, fm_cgroup_id("flexmem/b"), BYTES, 2 * MiB));
	TAKE(fd[0], MiB / 2);
	TAKE(fd[2], MiB / 2);
	EXPECT_REFUSED(REFUSES, fd[0], 1);
	EXPECT_REFUSED(REFUSES, fd[2], 1);
	TAKE(fd[1], 2 * MiB);
	EXPECT_REFUSED(REFUSES, fd[1], 1);
	EXPECT_EQ(MiB, limit(fd[0], BYTES).out_limit);
	EXPECT_EQ(2 * MiB, limit(fd[1], BYTES).out_limit);
	EXPECT_EQ(FLEXMEM_NO_LIMIT, limit(fd[2], BYTES).out_limit);
	EXPECT_EQ(3, limit(fd[0], HANDLES).out_limit);
	EXPECT_EQ(4096, limit(fd[0], FILES).out_limit);
	EXPECT_EQ(FLEXMEM_NO_LIMIT, limit(fd[2], FILES).out_limit);
	EXPECT_EQ(FLEXMEM_NO_LIMIT, limit(fd[2], HANDLES).out_limit);
	for (i = ARRAY_SIZE(in); i--;) {
		close(fd[i]);
		EXPECT_EQ(0, fm_remove_cgroup(in[i]));
	}
	ASSERT_EQ(0, set_scoped(self->root, FLEXMEM_SCOPE_DEFAULT, 0, HANDLES,
				1 << 20));
	EXPECT_EQ(0, fm_remove_cgroup("flexmem"));
}

/* Several threads must not exceed the limit together, not even for a moment. */
#define THREADS 4

struct worker {
	pthread_t thread;
	int fd;
	__u64 until;
	unsigned int done, refused, bad, reason;
};

static void *churn(void *arg)
{
	struct worker *w = arg;
	struct flexmem_alloc reply[8];
	unsigned int n = 0;
	int error;

	while (w->done < 50 || fm_now_ms() < w->until) {
		error = n == ARRAY_SIZE(reply) ? -1 :
			fm_alloc(w->fd, 64 * KiB, &reply[n]);
		if (error == ENOMEM) {
			w->refused++;
			w->bad += reply[n].out_reason != w->reason;
		} else if (error > 0) {
			w->bad++;
		} else if (!error) {
			n++;
		}
		if (error && n)
			w->bad += fm_free(w->fd, reply[--n].out_handle) != 0;
		w->done++;
	}
	while (n)
		w->bad += fm_free(w->fd, reply[--n].out_handle) != 0;
	return NULL;
}

TEST_F(limit, holds_at_every_moment)
{
	struct worker w[THREADS] = { };
	const __u64 until = fm_now_ms() + 400;
	unsigned int refused = 0, looked = 0;
	int i;

	LIMIT(BYTES, 16 * 64 * KiB);
	for (i = 0; i < THREADS; i++) {
		w[i].fd = i & 1 ? self->alice : self->alice2;
		w[i].until = until;
		w[i].reason = REFUSES;
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, churn, &w[i]));
	}
	while (looked++ < 50 || fm_now_ms() < until)
		ASSERT_GE(16 * 64 * KiB, used(self->alice, BYTES));
	for (i = 0; i < THREADS; i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		EXPECT_EQ(0, w[i].bad);
		refused += w[i].refused;
	}
	TH_LOG("%u refused", refused);
	EXPECT_EQ(0, used(self->alice, BYTES));
	EXPECT_EQ(0, used(self->alice, HANDLES));
	EXPECT_EQ(0, used(self->alice, SLOTS));
}

TEST_HARNESS_MAIN
