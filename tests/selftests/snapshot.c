// SPDX-License-Identifier: GPL-2.0
/*
 * SNAPSHOT: at every moment the parts must add up to the total, and the bytes
 * of the owners to the owned bytes. Also tests which accounts each user sees,
 * how the lists are passed, and /proc/PID/fdinfo of a file.
 */
#include "tenants.h"

#define PAGE 4096
#define PARAMS "max_regions=3 fallback_sizes=4G order=load_balance "	\
	"strategy=first_fit acquire=lazy program_slots=0" FM_PF_FOR_ALL
#define SIM "num_vfs=1 memory=64G vf_capacity=16G"

FIXTURE(snapshot) {
	int root;
	int alice;
	int bob;
};

FIXTURE_VARIANT(snapshot) {
	int mode;
};

FIXTURE_VARIANT_ADD(snapshot, pf) { .mode = FM_PF };
FIXTURE_VARIANT_ADD(snapshot, vf) { .mode = FM_VF };

FIXTURE_SETUP(snapshot)
{
	LOAD(PARAMS, SIM);
	OPEN_TENANTS();
}

FIXTURE_TEARDOWN(snapshot)
{
	fm_become(0);
	close(self->root);
	close(self->alice);
	close(self->bob);
	EXPECT_SETTLED(variant->mode);
}

/* The owner's entry in a snapshot, which must have one. */
#define OWNER(a, kind, id) ({						\
	const struct flexmem_owner_entry *__o = fm_owner(a, kind, id);	\
									\
	ASSERT_NE(NULL, __o);						\
	__o;								\
})
#define CLIENT FLEXMEM_OWNER_CLIENT
#define CGROUP FLEXMEM_OWNER_CGROUP

TEST_F(snapshot, of_an_empty_device)
{
	struct flexmem_info info = fm_info(self->root);
	struct snapshot s;
	struct account a;

	SNAP(self->root, &s);
	ACCOUNT(self->root, &a);
	EXPECT_STREQ("", fm_wrong(&a));
	EXPECT_EQ(info.out_capacity, a.s.out_capacity);
	EXPECT_EQ(0, a.s.out_total);
	EXPECT_EQ(0, a.s.out_region_count);
	EXPECT_EQ(3, a.s.out_clients);
	EXPECT_EQ(s.segments.out_generation, a.s.out_generation);
}

TEST_F(snapshot, agrees_with_the_other_commands)
{
	struct snapshot s;
	struct account a;
	unsigned int i;

	for (i = 0; i < 20; i++)
		ASSERT_NE(0, fm_take(i & 1 ? self->alice : self->bob, 1 + i * MiB));
	SNAP(self->root, &s);
	ACCOUNT(self->root, &a);
	EXPECT_EQ(s.stats.out_total, a.s.out_total);
	EXPECT_EQ(s.stats.out_free, a.s.out_free);
	EXPECT_EQ(s.stats.out_used, a.s.out_owned);
	EXPECT_EQ(s.nr_regions, a.s.out_region_count);
	EXPECT_EQ(0, memcmp(s.region, a.region,
			    s.nr_regions * sizeof(s.region[0])));
	EXPECT_EQ(s.segments.out_generation, a.s.out_generation);
	EXPECT_EQ(0, a.s.out_reserved);
	EXPECT_EQ(0, a.s.out_quarantined);
	EXPECT_STREQ("", fm_wrong(&a));
}

TEST_F(snapshot, owners_have_what_they_took)
{
	const __u64 alice = fm_client_id(self->alice);
	const __u64 bob = fm_client_id(self->bob);
	const struct flexmem_owner_entry *o;
	struct flexmem_alloc mapped;
	struct account a;
	__u32 handle;
	char *p;

	handle = fm_take(self->alice, 2 * GiB);
	ASSERT_NE(0, handle);
	ASSERT_NE(0, fm_take(self->alice, 1000));
	ASSERT_EQ(0, fm_alloc_flags(self->bob, PAGE, FLEXMEM_ALLOC_MAPPABLE, &mapped));
	p = fm_mmap(self->bob, mapped.out_handle, 0, PAGE);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, fm_free(self->bob, mapped.out_handle));
	ASSERT_NE(0, fm_take(self->bob, 128));
	ASSERT_EQ(0, fm_free(self->alice, handle));

	ACCOUNT(self->root, &a);
	EXPECT_STREQ("", fm_wrong(&a));
	EXPECT_EQ(1024 + 128, a.s.out_owned);
	EXPECT_EQ(PAGE, a.s.out_orphaned);
	o = OWNER(&a, CLIENT, alice);
	EXPECT_EQ(ALICE, o->uid);
	EXPECT_EQ(getpid(), o->pid);
	EXPECT_EQ(0, o->flags);
	EXPECT_EQ(1024, o->bytes);
	EXPECT_EQ(0, o->orphaned);
	EXPECT_EQ(2 * GiB + 1024, o->peak);
	EXPECT_EQ(1, o->slots);
	EXPECT_EQ(1, o->handles);
	EXPECT_EQ(FLEXMEM_NO_LIMIT, o->limit[FLEXMEM_RESOURCE_BYTES]);
	o = OWNER(&a, CGROUP, fm_account_id(ALICE));
	EXPECT_EQ(0, o->uid);
	EXPECT_EQ(1024, o->bytes);
	EXPECT_LE(2 * GiB + 1024, o->peak);
	o = OWNER(&a, CLIENT, bob);
	EXPECT_EQ(128, o->bytes);
	EXPECT_EQ(PAGE, o->orphaned);
	EXPECT_EQ(128 + PAGE, o->peak);
	EXPECT_EQ(2, o->handles);
	/* each user with an open file, and each file, has an entry */
	OWNER(&a, CGROUP, fm_account_id(0));
	OWNER(&a, CGROUP, fm_account_id(BOB));
	OWNER(&a, CLIENT, fm_client_id(self->root));
	munmap(p, PAGE);
}

TEST_F(snapshot, owners_have_their_limits)
{
	const __u64 id = fm_account_id(ALICE);
	struct flexmem_resource_limit q = CMD(resource_limit, .cgroup = id,
					      .limit = 12 * GiB);
	struct account a;

	must(set_limit, self->root, &q);
	ACCOUNT(self->root, &a);
	EXPECT_EQ(12 * GiB, OWNER(&a, CGROUP, id)->limit[0]);
	EXPECT_EQ(FLEXMEM_NO_LIMIT, OWNER(&a, CGROUP, id)->limit[1]);
	EXPECT_EQ(1, OWNER(&a, CGROUP, id)->files);
	EXPECT_EQ(FLEXMEM_NO_LIMIT, OWNER(&a, CLIENT, fm_client_id(self->alice))->limit[0]);
	q.limit = FLEXMEM_NO_LIMIT;
	must(set_limit, self->root, &q);
}

/* A user sees all totals, but only the entries of its own cgroup and file. */
TEST_F(snapshot, users_see_their_own_entries_only)
{
	const __u64 id = fm_client_id(self->alice);
	int second = fm_open_as(variant->mode, ALICE);
	struct account a, all;

	ASSERT_LE(0, second);
	ASSERT_NE(0, fm_take(self->alice, MiB));
	ASSERT_NE(0, fm_take(second, 2 * MiB));
	ASSERT_NE(0, fm_take(self->bob, 4 * MiB));
	ACCOUNT(self->root, &all);
	EXPECT_LE(3 + 4, all.s.out_owner_count);
	BECOME(ALICE);
	ACCOUNT(self->alice, &a);
	BECOME(0);
	EXPECT_EQ(2, a.s.out_owner_count);
	EXPECT_EQ(CGROUP, a.owner[0].kind);
	EXPECT_EQ(CLIENT, a.owner[1].kind);
	EXPECT_EQ(3 * MiB, OWNER(&a, CGROUP, fm_account_id(ALICE))->bytes);
	EXPECT_EQ(MiB, OWNER(&a, CLIENT, id)->bytes);
	EXPECT_EQ(7 * MiB, a.s.out_owned);
	EXPECT_EQ(all.s.out_total, a.s.out_total);
	EXPECT_EQ(4, a.s.out_clients);
	/*
	 * If Alice passes her file to Bob, he sees her accounts through the
	 * file, and no other accounts.
	 */
	BECOME(BOB);
	ACCOUNT(self->alice, &a);
	BECOME(0);
	EXPECT_EQ(2, a.s.out_owner_count);
	EXPECT_EQ(NULL, fm_owner(&a, CGROUP, fm_account_id(BOB)));
	/* the administrator sees all entries, through any file */
	ACCOUNT(self->alice, &a);
	EXPECT_EQ(all.s.out_owner_count, a.s.out_owner_count);
	close(second);
}

/*
 * Only an administrator sees how many calls others have made, in each snapshot.
 * Users see how many bytes are in use.
 */
TEST_F(snapshot, users_see_no_counts_of_calls)
{
	struct fm_stats old = fm_stats(self->root);
	struct account a;
	struct fm_own own;
	__u32 handle = fm_take(self->alice, MiB);
	struct flexmem_alloc p = CMD(alloc, .length = 2 * MiB,
				     .flags = FLEXMEM_ALLOC_PROGRAM);
	struct flexmem_alloc large;

	ASSERT_NE(0, handle);
	ASSERT_EQ(0, fm_free(self->alice, handle));
	must(alloc, self->alice, &p);
	EXPECT_EQ(ENOMEM, fm_alloc(self->alice, 1ULL << 50, &large));
	ACCOUNT(self->root, &a);
	EXPECT_EQ(0, a.s.out_flags & FLEXMEM_REPORT_HIDDEN);
	EXPECT_EQ(1, a.s.out_allocated);
	EXPECT_EQ(old.out_allocs + 2, a.s.out_allocs);
	EXPECT_EQ(old.out_frees + 1, a.s.out_frees);
	EXPECT_EQ(old.out_failures + 1, a.s.out_failures);
	EXPECT_EQ(2 * MiB, a.s.out_used_program);
	ASSERT_EQ(0, fm_own(self->root, &own));
	EXPECT_EQ(2, own.sums.out_owner_count);
	EXPECT_EQ(a.s.out_allocs, own.sums.out_allocs);
	EXPECT_EQ(a.s.out_failures, own.sums.out_failures);

	BECOME(BOB);
	ACCOUNT(self->bob, &a);
	ASSERT_EQ(0, fm_own(self->bob, &own));
	BECOME(0);
	EXPECT_EQ(FLEXMEM_REPORT_HIDDEN, a.s.out_flags);
	EXPECT_EQ(0, a.s.out_allocated);
	EXPECT_EQ(0, a.s.out_allocs);
	EXPECT_EQ(0, a.s.out_frees);
	EXPECT_EQ(0, a.s.out_failures);
	EXPECT_EQ(2 * MiB, a.s.out_used_program);
	EXPECT_EQ(FLEXMEM_REPORT_HIDDEN, own.sums.out_flags);
	EXPECT_EQ(0, own.sums.out_allocs);
}

TEST_F(snapshot, failures_have_a_reason_and_an_owner)
{
	const __u32 reason = FLEXMEM_REASON_REGION_SIZE;
	const __u64 alice = fm_client_id(self->alice);
	const __u64 bob = fm_client_id(self->bob);
	struct account old, a;
	struct flexmem_alloc large;
	struct fm_own own;
	unsigned int i;

	ACCOUNT(self->root, &old);
	EXPECT_EQ(ENOMEM, fm_alloc(self->alice, 1ULL << 50, &large));
	ASSERT_EQ(reason, large.out_reason);
	ACCOUNT(self->root, &a);
	for (i = 0; i < FLEXMEM_MAX_REASONS; i++) {
		EXPECT_EQ(i == reason, OWNER(&a, CLIENT, alice)->failures[i]);
		EXPECT_EQ(0, OWNER(&a, CLIENT, bob)->failures[i]);
		EXPECT_EQ(OWNER(&old, CGROUP, fm_account_id(ALICE))->failures[i] + (i == reason),
			  OWNER(&a, CGROUP, fm_account_id(ALICE))->failures[i]);
		EXPECT_EQ(OWNER(&old, CGROUP, fm_account_id(BOB))->failures[i],
			  OWNER(&a, CGROUP, fm_account_id(BOB))->failures[i]);
		EXPECT_EQ(OWNER(&old, CGROUP, fm_account_id(0))->failures[i] + (i == reason),
			  OWNER(&a, CGROUP, fm_account_id(0))->failures[i]);
	}
	/* A user sees what failed in its own file. */
	BECOME(ALICE);
	ASSERT_EQ(0, fm_own(self->alice, &own));
	BECOME(0);
	EXPECT_EQ(1, own.file.failures[reason]);
	EXPECT_EQ(0, own.cgroup.failures[reason]);
}

struct stranger {
	int fd;
	int flags;		/* the namespaces that the child unshares */
};

/* Returns 0, or the number of the check that failed. */
static int look_from_a_namespace(void *arg)
{
	struct stranger *s = arg;
	struct account a;
	pid_t pid;
	int status = -1;

	if (unshare(s->flags))
		return 250;
	/* only the next child is in the new pid namespace */
	pid = fork();
	if (!pid) {
		if (fm_account(s->fd, &a))
			_exit(1);
		if (s->flags & CLONE_NEWUSER && a.s.out_owner_count != 2)
			_exit(2);
		if (s->flags & CLONE_NEWUSER && a.owner[1].uid != 65534)
			_exit(3);
		if (a.owner[a.s.out_owner_count - 1].pid)
			_exit(4);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		return 251;
	return WEXITSTATUS(status);
}

TEST_F(snapshot, uids_and_pids_are_as_the_caller_sees_them)
{
	struct stranger s = { .fd = self->root, .flags = CLONE_NEWPID };
	struct child c;
	struct account a;

	EXPECT_EQ(0, fm_child(look_from_a_namespace, &s));
	s.flags |= CLONE_NEWUSER;
	EXPECT_EQ(0, fm_child(look_from_a_namespace, &s));

	if (child_start(&c))
		child_ready(&c, fm_open_as(variant->mode, CAROL) < 0);
	ASSERT_EQ(0, child_wait_ready(&c));
	ACCOUNT(self->root, &a);
	EXPECT_EQ(c.pid, a.owner[a.s.out_owner_count - 1].pid);
	EXPECT_EQ(CAROL, a.owner[a.s.out_owner_count - 1].uid);
	child_kill(&c);
}

#define NEWER 24	/* bytes that a newer caller's entry has more */

struct lists {
	unsigned char regions[8 * (sizeof(struct flexmem_region_entry) + NEWER)];
	unsigned char owners[16 * (sizeof(struct flexmem_owner_entry) + NEWER)];
};

static struct flexmem_snapshot into(struct lists *lists, __u32 regions,
				    __u32 owners)
{
	memset(lists, 0xaa, sizeof(*lists));
	return CMD(snapshot,
		   .region_entry_size = sizeof(struct flexmem_region_entry),
		   .region_count = regions, .regions = (uintptr_t)lists->regions,
		   .owner_entry_size = sizeof(struct flexmem_owner_entry),
		   .owner_count = owners, .owners = (uintptr_t)lists->owners);
}

static bool untouched(const unsigned char *p, size_t from, size_t to)
{
	for (; from < to; from++)
		if (p[from] != 0xaa)
			return false;
	return true;
}

/* The test makes two regions, and at least three users with a file each. */
#define REGIONS 2
#define MIN_OWNERS 6
#define MAX_OWNERS 15

#define PREPARE(a) do {							\
	ASSERT_NE(0, fm_take(self->alice, MiB));			\
	ASSERT_NE(0, fm_take(self->bob, MiB));				\
	ACCOUNT(self->root, a);						\
	ASSERT_EQ(REGIONS, (a)->s.out_region_count);			\
	ASSERT_LE(MIN_OWNERS, (a)->s.out_owner_count);			\
	ASSERT_GE(MAX_OWNERS, (a)->s.out_owner_count);			\
} while (0)

TEST_F(snapshot, too_small_lists_are_not_written)
{
	/*
	 * fewer: the number of entries that do not fit; a negative number means
	 * that there is room to spare
	 */
	static const struct { __u32 regions; int fewer; } counts[] = {
		{ 0, MIN_OWNERS - 1 }, { REGIONS, MIN_OWNERS - 1 }, { 0, 0 },
		{ REGIONS - 1, 0 }, { REGIONS, 1 }, { 100, 1 }, { 1, -100 },
	};
	struct flexmem_snapshot s;
	struct account a;
	struct lists lists;
	unsigned int i;

	PREPARE(&a);
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		s = into(&lists, counts[i].regions,
			 a.s.out_owner_count - counts[i].fewer);
		must_fail(EMSGSIZE, snapshot, self->root, &s);
		EXPECT_EQ(REGIONS, s.out_region_count);
		EXPECT_EQ(a.s.out_owner_count, s.out_owner_count);
		/* the totals come even if the lists do not fit */
		EXPECT_EQ(2 * MiB, s.out_owned);
		EXPECT_EQ(8 * GiB, s.out_total);
		EXPECT_EQ(3, s.out_clients);
		EXPECT_TRUE(untouched(lists.regions, 0, sizeof(lists.regions)));
		EXPECT_TRUE(untouched(lists.owners, 0, sizeof(lists.owners)));
	}
	/* both counts are 0, so these pointers are not used */
	s = into(&lists, 0, 0);
	s.regions = 0;
	s.owners = 16;
	must_fail(EMSGSIZE, snapshot, self->root, &s);
	EXPECT_EQ(a.s.out_owner_count, s.out_owner_count);
}

TEST_F(snapshot, no_room_for_owners_asks_for_no_list_of_them)
{
	const size_t regions = REGIONS * sizeof(struct flexmem_region_entry);
	struct flexmem_snapshot s;
	struct account a;
	struct lists lists;

	PREPARE(&a);
	s = into(&lists, REGIONS, 0);
	/* this pointer is not used */
	s.owners = 16;
	must(snapshot, self->root, &s);
	EXPECT_EQ(REGIONS, s.out_region_count);
	EXPECT_EQ(a.s.out_owner_count, s.out_owner_count);
	EXPECT_EQ(2 * MiB, s.out_owned);
	EXPECT_EQ(0, memcmp(lists.regions, a.region, regions));
	EXPECT_TRUE(untouched(lists.regions, regions, sizeof(lists.regions)));
	EXPECT_TRUE(untouched(lists.owners, 0, sizeof(lists.owners)));
}

TEST_F(snapshot, exact_and_larger_lists_are_filled)
{
	const size_t regions = REGIONS * sizeof(struct flexmem_region_entry);
	static const __u32 more[] = { 0, 1, UINT_MAX - 1000 };
	struct flexmem_snapshot s;
	struct account a;
	struct lists lists;
	unsigned int i;
	size_t owners;

	PREPARE(&a);
	owners = a.s.out_owner_count * sizeof(struct flexmem_owner_entry);
	for (i = 0; i < ARRAY_SIZE(more); i++) {
		s = into(&lists, REGIONS + more[i],
			 a.s.out_owner_count + more[i]);
		must(snapshot, self->root, &s);
		EXPECT_EQ(REGIONS, s.out_region_count);
		EXPECT_EQ(a.s.out_owner_count, s.out_owner_count);
		EXPECT_EQ(0, memcmp(lists.regions, a.region, regions));
		EXPECT_EQ(0, memcmp(lists.owners, a.owner, owners));
		EXPECT_TRUE(untouched(lists.regions, regions, sizeof(lists.regions)));
		EXPECT_TRUE(untouched(lists.owners, owners, sizeof(lists.owners)));
	}
}

TEST_F(snapshot, larger_entries_end_in_zeroes)
{
	const size_t region = sizeof(struct flexmem_region_entry);
	const size_t owner = sizeof(struct flexmem_owner_entry);
	static const char zeroes[NEWER];
	struct flexmem_snapshot s;
	struct account a;
	struct lists lists;
	unsigned int i;

	PREPARE(&a);
	s = into(&lists, REGIONS, a.s.out_owner_count);
	s.region_entry_size += NEWER;
	s.owner_entry_size += NEWER;
	must(snapshot, self->root, &s);
	for (i = 0; i < REGIONS; i++) {
		unsigned char *at = lists.regions + i * (region + NEWER);

		EXPECT_EQ(0, memcmp(at, &a.region[i], region));
		EXPECT_EQ(0, memcmp(at + region, zeroes, NEWER));
	}
	for (i = 0; i < a.s.out_owner_count; i++) {
		unsigned char *at = lists.owners + i * (owner + NEWER);

		EXPECT_EQ(0, memcmp(at, &a.owner[i], owner));
		EXPECT_EQ(0, memcmp(at + owner, zeroes, NEWER));
	}
}

TEST_F(snapshot, wrong_entry_sizes_are_einval)
{
	static const __u32 bad[] = { 0, 1, 8, 4097, 1U << 31, UINT_MAX };
	struct flexmem_snapshot s;
	struct account a;
	struct lists lists;
	unsigned int i;

	PREPARE(&a);
	for (i = 0; i < ARRAY_SIZE(bad) + 2; i++) {
		s = into(&lists, REGIONS, MAX_OWNERS);
		s.region_entry_size = i < ARRAY_SIZE(bad) ? bad[i] :
			sizeof(struct flexmem_region_entry) - 1;
		must_fail(EINVAL, snapshot, self->root, &s);
		s = into(&lists, REGIONS, MAX_OWNERS);
		s.owner_entry_size = i < ARRAY_SIZE(bad) ? bad[i] :
			sizeof(struct flexmem_owner_entry) - 1;
		must_fail(EINVAL, snapshot, self->root, &s);
		/* wrong entry sizes are refused even with counts of 0 */
		s.owner_count = s.region_count = 0;
		must_fail(EINVAL, snapshot, self->root, &s);
	}
	EXPECT_TRUE(untouched(lists.regions, 0, sizeof(lists.regions)));
	EXPECT_TRUE(untouched(lists.owners, 0, sizeof(lists.owners)));
}

TEST_F(snapshot, lists_that_are_not_there_are_efault)
{
	const __u64 bad[] = {
		0, 64, ~0ULL - 4095, 1ULL << 63,
		(uintptr_t)&bad | 0x7fff000000000000ULL
	};
	struct flexmem_snapshot s;
	struct account a;
	struct lists lists;
	unsigned int i;

	PREPARE(&a);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		s = into(&lists, REGIONS, MAX_OWNERS);
		s.regions = bad[i];
		must_fail(EFAULT, snapshot, self->root, &s);
		s = into(&lists, REGIONS, MAX_OWNERS);
		s.owners = bad[i];
		must_fail(EFAULT, snapshot, self->root, &s);
	}
}

/*
 * Snapshots during changes of all kinds. The figures of each snapshot must add
 * up.
 */

#define WORKERS 4
#define MS 500

struct worker {
	pthread_t thread;
	int fd;
	__u32 flags;		/* of all its allocations */
	unsigned int seed;
	__u64 until;
	unsigned int done, bad;
};

/*
 * Allocates, maps, unmaps and frees; sometimes frees memory that is still
 * mapped.
 */
static void *churn(void *arg)
{
	struct worker *w = arg;
	struct flexmem_alloc held[16];
	unsigned int nr = 0, dice;
	char *p;

	while (w->done < 30 || fm_now_ms() < w->until) {
		dice = rand_r(&w->seed) % 8;
		w->done++;
		if (nr == ARRAY_SIZE(held) || (nr && dice < 3)) {
			w->bad += fm_free(w->fd, held[--nr].out_handle) != 0;
		} else if (dice < 6) {
			w->bad += fm_alloc_flags(w->fd, 1 + rand_r(&w->seed) % 65536,
						 w->flags, &held[nr++]) != 0;
		} else {
			w->bad += fm_alloc_flags(w->fd, 2 * PAGE,
						 FLEXMEM_ALLOC_MAPPABLE | w->flags,
						 &held[nr]) != 0;
			p = fm_mmap(w->fd, held[nr].out_handle, 0, 2 * PAGE);
			w->bad += p == MAP_FAILED;
			if (dice == 7)
				*p = 1;
			w->bad += fm_free(w->fd, held[nr].out_handle) != 0;
			munmap(p, 2 * PAGE);
		}
	}
	while (nr)
		w->bad += fm_free(w->fd, held[--nr].out_handle) != 0;
	return NULL;
}

/* Runs in a child process. Calls churn() on one new file after the other. */
static int churn_on_new_files(int mode, uid_t uid, __u64 until)
{
	struct worker w = { .seed = uid };
	int fd;

	do {
		fd = fm_open_as(mode, uid);
		if (fd < 0)
			return 1;
		w.fd = fd;
		w.done = 0;
		churn(&w);
		/* close() frees this allocation */
		if (!fm_take(fd, 3 * PAGE))
			return 2;
		close(fd);
	} while (!w.bad && fm_now_ms() < until);
	return w.bad != 0;
}

TEST_F(snapshot, adds_up_under_churn)
{
	const __u64 until = fm_now_ms() + MS;
	struct worker w[WORKERS] = { };
	unsigned int i, snapshots = 0;
	struct account a;
	pid_t pid[3];
	int status;

	for (i = 0; i < ARRAY_SIZE(pid); i++) {
		pid[i] = fork();
		ASSERT_LE(0, pid[i]);
		if (!pid[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			/* the parent kills the last child while it works */
			_exit(churn_on_new_files(variant->mode, ALICE + i,
						 i == 2 ? ~0ULL : until));
		}
	}
	for (i = 0; i < WORKERS; i++) {
		w[i].fd = i & 1 ? self->alice : self->bob;
		w[i].seed = i;
		w[i].until = until;
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, churn, &w[i]));
	}
	while (snapshots++ < 50 || fm_now_ms() < until) {
		ACCOUNT(self->root, &a);
		ASSERT_STREQ("", fm_wrong(&a));
	}
	kill(pid[2], SIGKILL);
	for (i = 0; i < WORKERS; i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		EXPECT_EQ(0, w[i].bad);
	}
	for (i = 0; i < ARRAY_SIZE(pid); i++) {
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, 0));
		EXPECT_EQ(i == 2 ? SIGKILL : 0, status);
	}
	TH_LOG("%u snapshots", snapshots);
	ACCOUNT(self->root, &a);
	EXPECT_EQ(0, a.s.out_owned);
	EXPECT_EQ(0, a.s.out_orphaned);
}

#define HELD MiB	/* of programs, and of tensors, during the whole test */

/* Returns the rule that the figures of a domain break, or "". */
static const char *wrong_kinds(const struct flexmem_domain_info *d)
{
	const __u64 total = d->out_total - d->out_program_total;
	const __u64 free = d->out_free - d->out_program_free;

	/* One slot is set aside for programs, and two remain for tensors. */
	if (d->out_program_total != 4 * GiB ||
	    (total != 4 * GiB && total != 8 * GiB))
		return "total of each kind";
	if (d->out_program_free > d->out_program_total - HELD ||
	    free > total - HELD)
		return "free of each kind";
	if (d->out_program_largest > d->out_program_free ||
	    d->out_tensor_largest > free)
		return "largest of each kind";
	if (d->out_largest_free != d->out_program_largest &&
	    d->out_largest_free != d->out_tensor_largest)
		return "largest of both";
	return "";
}

/*
 * torch-spyre #4541: while programs and tensors come and go, DOMAIN tells them
 * apart. It reads the snapshot whose sums adds_up_under_churn() checks, so the
 * figures of the regions are of one moment.
 */
TEST_F(snapshot, tells_programs_from_tensors_under_churn)
{
	const __u64 until = fm_now_ms() + MS;
	struct flexmem_domain_info d;
	struct worker w[WORKERS] = { };
	unsigned int i, calls = 0;
	struct flexmem_alloc held;

	close(self->root);
	close(self->alice);
	close(self->bob);
	RELOAD(PARAMS " program_slots=1", SIM);
	OPEN_TENANTS();
	ASSERT_EQ(0, fm_alloc_flags(self->root, HELD, FLEXMEM_ALLOC_PROGRAM, &held));
	ASSERT_NE(0, fm_take(self->root, HELD));
	for (i = 0; i < WORKERS; i++) {
		w[i].fd = i & 1 ? self->alice : self->bob;
		w[i].flags = i & 2 ? FLEXMEM_ALLOC_PROGRAM : 0;
		w[i].seed = i;
		w[i].until = until;
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, churn, &w[i]));
	}
	while (calls++ < 50 || fm_now_ms() < until) {
		d = CMD(domain_info, .domain = calls & 1 ? FLEXMEM_DOMAIN_ALL : 0);
		must(domain, self->root, &d);
		ASSERT_STREQ("", wrong_kinds(&d));
	}
	for (i = 0; i < WORKERS; i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		EXPECT_EQ(0, w[i].bad);
	}
	TH_LOG("%u calls", calls);
	must(domain, self->root, &d);
	EXPECT_EQ(4 * GiB - HELD, d.out_program_free);
	EXPECT_EQ(d.out_total - 2 * HELD, d.out_free);
}

/* The value of a key in /proc/self/fdinfo/FD, cut to 63 characters, or "". */
static void fdinfo(int fd, const char *key, char value[64])
{
	char path[64], line[256];
	size_t n = strlen(key);
	FILE *f;

	value[0] = '\0';
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, n) && line[n] == ':')
			sscanf(line + n + 1, " %63[^\n]", value);
	}
	if (f)
		fclose(f);
}

#define EXPECT_INFO(fd, key, ...) do {					\
	char __is[64], __want[64];					\
									\
	snprintf(__want, sizeof(__want), __VA_ARGS__);			\
	fdinfo(fd, key, __is);						\
	EXPECT_STREQ(__want, __is);					\
} while (0)

TEST_F(snapshot, fdinfo_has_the_same_figures)
{
	const unsigned long long id = fm_client_id(self->alice);
	struct flexmem_resource_limit q = CMD(resource_limit, .resource = FLEXMEM_RESOURCE_BYTES);
	struct flexmem_resource_limit slots = CMD(resource_limit, .resource = FLEXMEM_RESOURCE_REGIONS);
	struct flexmem_alloc mapped;
	char path[32], *p;

	close(fm_open_nth(variant->mode, 0, path));
	EXPECT_INFO(self->alice, "flexmem-total-memory", "0 KiB");
	ASSERT_NE(0, fm_take(self->alice, 3 * MiB));
	ASSERT_NE(0, fm_take(self->alice, KiB));
	ASSERT_EQ(0, fm_alloc_flags(self->alice, 2 * PAGE,
				    FLEXMEM_ALLOC_MAPPABLE, &mapped));
	p = fm_mmap(self->alice, mapped.out_handle, 0, PAGE);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, fm_free(self->alice, mapped.out_handle));

	EXPECT_INFO(self->alice, "flexmem-driver", "flexmem");
	EXPECT_INFO(self->alice, "flexmem-client-id", "%llu", id);
	EXPECT_INFO(self->alice, "flexmem-total-memory", "%u KiB", 3 * 1024 + 1 + 8);
	EXPECT_INFO(self->alice, "flexmem-orphaned-memory", "8 KiB");
	/* three allocations in three regions; one is freed but still mapped */
	EXPECT_INFO(self->alice, "flexmem-slots", "3");
	EXPECT_INFO(self->alice, "flexmem-handles", "3");
	EXPECT_INFO(self->alice, "flexmem-device", "%s", path + strlen("/dev/"));
	ASSERT_EQ(0, fm_get_limit(self->alice, &q));
	EXPECT_EQ(3 * MiB + KiB + 2 * PAGE, q.out_used);
	ASSERT_EQ(0, fm_get_limit(self->alice, &slots));
	EXPECT_EQ(3, slots.out_used);

	munmap(p, PAGE);
	EXPECT_INFO(self->alice, "flexmem-orphaned-memory", "0 KiB");
	EXPECT_INFO(self->alice, "flexmem-total-memory", "%u KiB", 3 * 1024 + 1);
	EXPECT_INFO(self->bob, "flexmem-total-memory", "0 KiB");
	EXPECT_INFO(self->bob, "flexmem-handles", "0");
}

TEST_HARNESS_MAIN
