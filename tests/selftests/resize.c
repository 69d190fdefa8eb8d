// SPDX-License-Identifier: GPL-2.0
/*
 * RESIZE: an allocation is extended or shortened in place, and only its size
 * changes. Placement with FLEXMEM_ALLOC_GROWABLE.
 */
#include <sched.h>

#include "tenants.h"

#define SIZE (256 * KiB)
#define REGION (4 * GiB)
#define A 0xa1		/* the byte that Alice writes */
#define B 0xb2
#define NOT_A 0x5e	/* the byte that Alice writes later */

FIXTURE(resize) {
	int root;
	int alice;
	int bob;
};

FIXTURE_VARIANT(resize) {
	int mode;
	const char *memory;	/* the PF's or VF's file in debugfs */
};

FIXTURE_VARIANT_ADD(resize, pf) { FM_PF, "pf/memory" };
FIXTURE_VARIANT_ADD(resize, vf) { FM_VF, "vf0/memory" };

/* Sets the byte limit of a user's cgroup. Returns 0 or an errno. */
static int set_limit(int root, uid_t user, __u64 limit)
{
	return raw_set_limit(root, &CMD(resource_limit,
					.cgroup = fm_account_id(user),
					.resource = FLEXMEM_RESOURCE_BYTES,
					.limit = limit));
}

FIXTURE_SETUP(resize)
{
	LOAD("max_regions=2 fallback_sizes=4G order=fill_first acquire=lazy "
	     "program_slots=0" FM_PF_FOR_ALL,
	     "num_vfs=2 memory=48G vf_capacity=16G");
	OPEN_TENANTS();
}

FIXTURE_TEARDOWN(resize)
{
	fm_mend();
	EXPECT_EQ(0, set_limit(self->root, ALICE, FLEXMEM_NO_LIMIT));
	close(self->alice);
	close(self->bob);
	EXPECT_EQ(0, fm_trim(self->root));
	close(self->root);
	EXPECT_SETTLED(variant->mode);
}

#define TAKE(fd, length, reply) ASSERT_EQ(0, fm_alloc(fd, length, reply))
#define FREE(fd, reply) ASSERT_EQ(0, fm_free(fd, (reply)->out_handle))

/* Resizes. Returns 0 or an errno. *cmd receives the reply. */
static int resize(int fd, __u32 handle, __u64 length, struct flexmem_resize *cmd)
{
	*cmd = CMD(resize, .handle = handle, .length = length,
		   .out_reason = ~0U, .out_size = ~0ULL, .out_max = ~0ULL);
	return raw_resize(fd, cmd);
}

/* Expects that RESIZE succeeds and that all commands show the new size. */
#define RESIZE(fd, reply, length, bytes) do {				\
	struct flexmem_lookup __l = CMD(lookup, .handle = (reply)->out_handle); \
	struct flexmem_resize __r;					\
									\
	ASSERT_EQ(0, resize(fd, (reply)->out_handle, length, &__r));	\
	EXPECT_EQ(bytes, __r.out_size);					\
	EXPECT_EQ(FLEXMEM_REASON_NONE, __r.out_reason);			\
	EXPECT_EQ(0, __r.out_max);					\
	must(lookup, fd, &__l);						\
	EXPECT_EQ(bytes, __l.out_size);					\
	EXPECT_EQ((reply)->out_address.region_id, __l.out_address.region_id); \
	EXPECT_EQ((reply)->out_address.offset, __l.out_address.offset);	\
} while (0)

/* Expects that RESIZE fails with this reason and changes nothing. */
#define EXPECT_FAILS(error, fd, reply, length, bytes, why, max) do {	\
	struct flexmem_resize __r;					\
	struct snapshot __before;					\
									\
	SNAP(fd, &__before);						\
	EXPECT_EQ(error, resize(fd, (reply)->out_handle, length, &__r)); \
	EXPECT_EQ(bytes, __r.out_size);					\
	EXPECT_EQ(why, __r.out_reason);					\
	EXPECT_EQ(max, __r.out_max);					\
	EXPECT_UNCHANGED(fd, &__before);				\
} while (0)

static __u64 used(int fd)
{
	return fm_stats(fd).out_client_used;
}

TEST_F(resize, grows_and_shrinks_in_place)
{
	struct fm_stats before, after;
	struct flexmem_alloc a;

	TAKE(self->alice, SIZE, &a);
	ASSERT_EQ(0, fm_fill(self->alice, a.out_handle, 0, SIZE, A));
	before = fm_stats(self->alice);
	RESIZE(self->alice, &a, 3 * SIZE, 3 * SIZE);
	EXPECT_EQ(3 * SIZE, used(self->alice));
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, 0, SIZE, A));
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, SIZE, 2 * SIZE, 0));
	ASSERT_EQ(0, fm_fill(self->alice, a.out_handle, SIZE, 2 * SIZE, NOT_A));
	EXPECT_EQ(-EINVAL, fm_others(self->alice, a.out_handle, 3 * SIZE, 1, 0));

	RESIZE(self->alice, &a, 2 * SIZE, 2 * SIZE);
	EXPECT_EQ(2 * SIZE, used(self->alice));
	EXPECT_EQ(-EINVAL, fm_others(self->alice, a.out_handle, 2 * SIZE, 1, 0));
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, 0, SIZE, A));
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, SIZE, SIZE, NOT_A));
	RESIZE(self->alice, &a, 2 * SIZE, 2 * SIZE);
	RESIZE(self->alice, &a, 1, 128);
	EXPECT_EQ(128, used(self->alice));
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, 0, 128, A));

	/* a RESIZE does not count as an ALLOC or a FREE */
	after = fm_stats(self->alice);
	EXPECT_EQ(before.out_allocs, after.out_allocs);
	EXPECT_EQ(before.out_frees, after.out_frees);
	EXPECT_EQ(1, after.out_client_handles);
	EXPECT_EQ(3 * SIZE, after.out_client_peak);
	EXPECT_STREQ("", fm_sums(self->alice, false));
	RESIZE(self->alice, &a, REGION, REGION);
	EXPECT_EQ(0, fm_stats(self->alice).out_free);
	FREE(self->alice, &a);
}

TEST_F(resize, lengths_are_rounded_as_by_alloc)
{
	struct flexmem_alloc a, m;

	TAKE(self->alice, SIZE, &a);
	RESIZE(self->alice, &a, SIZE + 1, SIZE + 128);
	RESIZE(self->alice, &a, SIZE + 128, SIZE + 128);
	RESIZE(self->alice, &a, 129, 256);
	ASSERT_EQ(0, fm_alloc_flags(self->alice, 1, FLEXMEM_ALLOC_MAPPABLE, &m));
	RESIZE(self->alice, &m, 4097, 8192);
	RESIZE(self->alice, &m, 4097, 8192);
	RESIZE(self->alice, &m, 1, 4096);
}

/* After EAGAIN, a RESIZE to exactly out_max succeeds. */
TEST_F(resize, eagain_says_how_far_it_could_grow)
{
	struct flexmem_alloc a, gap, b;

	TAKE(self->alice, SIZE, &a);
	TAKE(self->bob, SIZE + 128, &gap);
	TAKE(self->bob, SIZE, &b);
	EXPECT_FAILS(EAGAIN, self->alice, &a, SIZE + 1, SIZE, 0, SIZE);
	FREE(self->bob, &gap);
	EXPECT_FAILS(EAGAIN, self->alice, &a, 2 * SIZE + 129, SIZE, 0,
		     2 * SIZE + 128);
	EXPECT_FAILS(EAGAIN, self->alice, &a, REGION, SIZE, 0, 2 * SIZE + 128);
	EXPECT_FAILS(EAGAIN, self->alice, &a, ~0ULL, SIZE, 0, 2 * SIZE + 128);
	EXPECT_FAILS(EAGAIN, self->alice, &a, 1ULL << 63, SIZE, 0,
		     2 * SIZE + 128);
	RESIZE(self->alice, &a, 2 * SIZE, 2 * SIZE);
	EXPECT_FAILS(EAGAIN, self->alice, &a, REGION, 2 * SIZE, 0,
		     2 * SIZE + 128);
	RESIZE(self->alice, &a, 2 * SIZE + 128, 2 * SIZE + 128);
	EXPECT_FAILS(EAGAIN, self->alice, &a, REGION, 2 * SIZE + 128, 0,
		     2 * SIZE + 128);
	FREE(self->bob, &b);
	EXPECT_FAILS(EAGAIN, self->alice, &a, REGION + 1, 2 * SIZE + 128, 0,
		     REGION);
	RESIZE(self->alice, &a, REGION, REGION);
	EXPECT_FAILS(EAGAIN, self->alice, &a, REGION + 1, REGION, 0, REGION);
}

TEST_F(resize, eagain_says_whole_pages_of_a_mappable_one)
{
	struct flexmem_alloc a, gap, b;

	ASSERT_EQ(0, fm_alloc_flags(self->alice, 4096, FLEXMEM_ALLOC_MAPPABLE,
				    &a));
	TAKE(self->bob, 2 * 4096 + 128, &gap);
	TAKE(self->bob, SIZE, &b);
	FREE(self->bob, &gap);
	EXPECT_FAILS(EAGAIN, self->alice, &a, 3 * 4096 + 1, 4096, 0, 3 * 4096);
	RESIZE(self->alice, &a, 3 * 4096, 3 * 4096);
	EXPECT_FAILS(EAGAIN, self->alice, &a, 4 * 4096, 3 * 4096, 0, 3 * 4096);
}

TEST_F(resize, refused_resizes_change_nothing)
{
	struct flexmem_alloc a, b;
	struct flexmem_resize r;
	struct snapshot before;

	TAKE(self->alice, SIZE, &a);
	TAKE(self->bob, SIZE, &b);
	FREE(self->bob, &b);
	SNAP(self->alice, &before);
	EXPECT_EQ(EINVAL, resize(self->alice, a.out_handle, 0, &r));
	EXPECT_EQ(SIZE, r.out_size);
	EXPECT_EQ(ENOENT, resize(self->bob, a.out_handle, 2 * SIZE, &r));
	EXPECT_EQ(0, r.out_size);
	EXPECT_EQ(ENOENT, resize(self->alice, 0, 2 * SIZE, &r));
	EXPECT_EQ(EINVAL, resize(self->alice, 0, 0, &r));
	EXPECT_EQ(ENOENT, resize(self->alice, ~0U, 2 * SIZE, &r));
	EXPECT_EQ(ENOENT, resize(self->alice, a.out_handle + 1, SIZE, &r));
	r = CMD(resize, .handle = a.out_handle, .length = 2 * SIZE, .flags = 1);
	must_fail(EOPNOTSUPP, resize, self->alice, &r);
	EXPECT_UNCHANGED(self->alice, &before);
	FREE(self->alice, &a);
	EXPECT_EQ(ENOENT, resize(self->alice, a.out_handle, 2 * SIZE, &r));
}

TEST_F(resize, mapped_allocation_is_busy)
{
	struct flexmem_alloc a;
	char *p;

	ASSERT_EQ(0, fm_alloc_flags(self->alice, SIZE, FLEXMEM_ALLOC_MAPPABLE,
				    &a));
	p = fm_mmap(self->alice, a.out_handle, 0, SIZE);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_FAILS(EBUSY, self->alice, &a, 2 * SIZE, SIZE, 0, 0);
	EXPECT_FAILS(EBUSY, self->alice, &a, SIZE / 2, SIZE, 0, 0);
	memset(p, A, SIZE);
	/* one mapped page is enough for EBUSY */
	munmap(p + 4096, SIZE - 4096);
	EXPECT_FAILS(EBUSY, self->alice, &a, SIZE / 2, SIZE, 0, 0);
	munmap(p, 4096);
	RESIZE(self->alice, &a, 2 * SIZE, 2 * SIZE);
	p = fm_mmap(self->alice, a.out_handle, 0, 2 * SIZE);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ((char)A, p[SIZE - 1]);
	EXPECT_EQ(0, p[SIZE]);
	EXPECT_EQ(0, p[2 * SIZE - 1]);
	munmap(p, 2 * SIZE);
	RESIZE(self->alice, &a, 4096, 4096);
	EXPECT_EQ(MAP_FAILED, fm_mmap(self->alice, a.out_handle, 0, 8192));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, fm_mmap(self->alice, a.out_handle, 4096, 4096));
	EXPECT_EQ(ENOENT, errno);
}

TEST_F(resize, a_limit_is_exact)
{
	struct flexmem_alloc a;

	TAKE(self->alice, SIZE, &a);
	ASSERT_EQ(0, set_limit(self->root, ALICE, 2 * SIZE));
	EXPECT_FAILS(ENOMEM, self->alice, &a, 2 * SIZE + 1, SIZE,
		     FLEXMEM_REASON_CGROUP_LIMIT, 0);
	RESIZE(self->alice, &a, 2 * SIZE, 2 * SIZE);
	EXPECT_FAILS(ENOMEM, self->alice, &a, 2 * SIZE + 128, 2 * SIZE,
		     FLEXMEM_REASON_CGROUP_LIMIT, 0);
	/* the bytes that were cut off can be allocated */
	RESIZE(self->alice, &a, SIZE, SIZE);
	RESIZE(self->alice, &a, 2 * SIZE, 2 * SIZE);
	ASSERT_EQ(0, set_limit(self->root, ALICE, SIZE));
	RESIZE(self->alice, &a, SIZE + 128, SIZE + 128);
	EXPECT_FAILS(ENOMEM, self->alice, &a, SIZE + 256, SIZE + 128,
		     FLEXMEM_REASON_CGROUP_LIMIT, 0);
}

/*
 * The added memory must not contain bytes of another tenant, and the allocation
 * must keep all its bytes.
 */
TEST_F(resize, added_bytes_are_scrubbed)
{
	struct flexmem_alloc a, b;

	TAKE(self->alice, SIZE, &a);
	ASSERT_EQ(0, fm_fill(self->alice, a.out_handle, 0, SIZE, A));
	TAKE(self->bob, 2 * SIZE, &b);
	EXPECT_EQ(a.out_address.offset + SIZE, b.out_address.offset);
	ASSERT_EQ(0, fm_fill(self->bob, b.out_handle, 0, 2 * SIZE, B));
	FREE(self->bob, &b);
	RESIZE(self->alice, &a, 2 * SIZE, 2 * SIZE);
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, 0, SIZE, A));
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, SIZE, SIZE, 0));
	RESIZE(self->alice, &a, 3 * SIZE, 3 * SIZE);
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, 0, SIZE, A));
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, SIZE, 2 * SIZE, 0));
}

TEST_F(resize, bytes_cut_off_are_scrubbed)
{
	struct flexmem_alloc a, b;

	TAKE(self->alice, 3 * SIZE, &a);
	ASSERT_EQ(0, fm_fill(self->alice, a.out_handle, 0, 3 * SIZE, A));
	RESIZE(self->alice, &a, SIZE, SIZE);
	TAKE(self->bob, SIZE, &b);
	EXPECT_EQ(a.out_address.offset + SIZE, b.out_address.offset);
	EXPECT_BYTES(self->bob, &b, 0);
	ASSERT_EQ(0, fm_fill(self->bob, b.out_handle, 0, SIZE, B));
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, 0, SIZE, A));
	FREE(self->bob, &b);
	/*
	 * the added bytes had no other owner in the meantime, so they may be
	 * scrubbed or still Alice's
	 */
	RESIZE(self->alice, &a, 2 * SIZE, 2 * SIZE);
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, SIZE, SIZE, 0));
}

TEST_F(resize, zeroed_means_what_is_added_too)
{
	struct flexmem_alloc a;

	ASSERT_EQ(0, fm_alloc_flags(self->alice, 2 * SIZE, FLEXMEM_ALLOC_ZEROED,
				    &a));
	ASSERT_EQ(0, fm_fill(self->alice, a.out_handle, 0, 2 * SIZE, A));
	RESIZE(self->alice, &a, SIZE, SIZE);
	RESIZE(self->alice, &a, 2 * SIZE, 2 * SIZE);
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, 0, SIZE, A));
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, SIZE, SIZE, 0));
}

TEST_F(resize, failed_scrub_is_quarantined)
{
	struct flexmem_alloc a, b;
	struct flexmem_resize r;
	struct account account;

	TAKE(self->alice, SIZE, &a);
	TAKE(self->bob, SIZE, &b);
	ASSERT_EQ(0, fm_fill(self->bob, b.out_handle, 0, SIZE, B));
	FREE(self->bob, &b);
	KNOB("fault_command", "scrub");
	KNOB("fail_commands", "100");
	EXPECT_EQ(EIO, resize(self->alice, a.out_handle, 2 * SIZE, &r));
	EXPECT_EQ(SIZE, r.out_size);
	fm_mend();
	ACCOUNT(self->root, &account);
	EXPECT_STREQ("", fm_wrong(&account));
	EXPECT_EQ(SIZE, account.s.out_quarantined);
	EXPECT_EQ(SIZE, used(self->alice));
	EXPECT_STREQ("", fm_sums(self->alice, false));
	EXPECT_FAILS(EAGAIN, self->alice, &a, 2 * SIZE, SIZE, 0, SIZE);
	ASSERT_EQ(0, fm_trim(self->root));
	RESIZE(self->alice, &a, 2 * SIZE, 2 * SIZE);
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, SIZE, SIZE, 0));
}

TEST_F(resize, lost_allocation_is_eio)
{
	struct flexmem_alloc a;
	struct flexmem_resize r;

	TAKE(self->alice, SIZE, &a);
	RESET(variant->mode);
	EXPECT_EQ(EIO, resize(self->alice, a.out_handle, 2 * SIZE, &r));
	EXPECT_EQ(SIZE, r.out_size);
	EXPECT_EQ(EIO, resize(self->alice, a.out_handle, SIZE / 2, &r));
	EXPECT_EQ(EIO, resize(self->alice, a.out_handle, SIZE, &r));
	FREE(self->alice, &a);
}

TEST_F(resize, a_program_counts_as_one)
{
	struct flexmem_alloc a;

	ASSERT_EQ(0, fm_alloc_flags(self->alice, SIZE, FLEXMEM_ALLOC_PROGRAM,
				    &a));
	RESIZE(self->alice, &a, 4 * SIZE, 4 * SIZE);
	EXPECT_EQ(4 * SIZE, fm_stats(self->root).out_used_program);
	RESIZE(self->alice, &a, SIZE / 2, SIZE / 2);
	EXPECT_EQ(SIZE / 2, fm_stats(self->root).out_used_program);
	FREE(self->alice, &a);
	EXPECT_EQ(0, fm_stats(self->root).out_used_program);
}

TEST_F(resize, undone_if_the_reply_cannot_go)
{
	static const __u64 lengths[] = { 2 * SIZE, SIZE, SIZE / 2 };
	char *page = fm_two_pages(PROT_READ);
	struct flexmem_resize *cmd;
	struct flexmem_alloc a;
	struct snapshot before;
	unsigned int i;

	ASSERT_NE(NULL, page);
	cmd = (void *)page;
	TAKE(self->alice, SIZE, &a);
	ASSERT_EQ(0, fm_fill(self->alice, a.out_handle, 0, SIZE, A));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		SNAP(self->alice, &before);
		ASSERT_EQ(0, mprotect(page, 4096, PROT_READ | PROT_WRITE));
		*cmd = CMD(resize, .handle = a.out_handle, .length = lengths[i]);
		ASSERT_EQ(0, mprotect(page, 4096, PROT_READ));
		must_fail(EFAULT, resize, self->alice, cmd);
		EXPECT_UNDONE(self->alice, &before);
		EXPECT_BYTES(self->alice, &a, A);
	}
	RESIZE(self->alice, &a, 2 * SIZE, 2 * SIZE);
}

/* ---- memory that will grow ---- */

#define GROWABLE FLEXMEM_ALLOC_GROWABLE

TEST_F(resize, growable_begins_an_empty_region)
{
	struct flexmem_alloc a;

	ASSERT_EQ(0, fm_alloc_flags(self->alice, SIZE, GROWABLE, &a));
	EXPECT_EQ(0, a.out_address.offset);
	RESIZE(self->alice, &a, REGION, REGION);
}

TEST_F(resize, two_growable_ones_can_both_grow)
{
	struct flexmem_alloc a, b, c;

	ASSERT_EQ(0, fm_alloc_flags(self->alice, SIZE, GROWABLE, &a));
	ASSERT_EQ(0, fm_alloc_flags(self->bob, SIZE, GROWABLE, &b));
	EXPECT_EQ(a.out_address.region_id, b.out_address.region_id);
	EXPECT_EQ(0, b.out_address.offset % (2 * MiB));
	RESIZE(self->alice, &a, REGION / 4, REGION / 4);
	RESIZE(self->bob, &b, REGION / 4, REGION / 4);
	RESIZE(self->alice, &a, b.out_address.offset, b.out_address.offset);
	RESIZE(self->bob, &b, REGION - b.out_address.offset,
	       REGION - b.out_address.offset);
	EXPECT_EQ(0, fm_stats(self->root).out_free);

	/* the next allocation is placed in a new region, which has more room */
	ASSERT_EQ(0, fm_alloc_flags(self->alice, SIZE, GROWABLE, &c));
	EXPECT_NE(a.out_address.region_id, c.out_address.region_id);
	EXPECT_EQ(0, c.out_address.offset);
}

TEST_F(resize, growable_goes_where_most_room_is)
{
	struct flexmem_alloc first, second, a;

	TAKE(self->bob, REGION - REGION / 4, &first);
	TAKE(self->bob, REGION / 2, &second);
	ASSERT_NE(first.out_address.region_id, second.out_address.region_id);
	TAKE(self->alice, SIZE, &a);
	EXPECT_EQ(first.out_address.region_id, a.out_address.region_id);
	FREE(self->alice, &a);
	ASSERT_EQ(0, fm_alloc_flags(self->alice, SIZE, GROWABLE, &a));
	EXPECT_EQ(second.out_address.region_id, a.out_address.region_id);
	EXPECT_EQ(REGION - REGION / 4, a.out_address.offset);
}

TEST_F(resize, growable_fits_where_it_just_fits)
{
	struct flexmem_alloc a, b;

	TAKE(self->bob, REGION, &b);
	TAKE(self->bob, REGION - SIZE, &b);
	ASSERT_EQ(0, fm_alloc_flags(self->alice, SIZE, GROWABLE, &a));
	EXPECT_EQ(REGION - SIZE, a.out_address.offset);
	a = CMD(alloc, .length = 128, .flags = GROWABLE);
	must_fail(ENOMEM, alloc, self->alice, &a);
}

TEST_F(resize, growable_keeps_its_alignment)
{
	struct flexmem_alloc a, b;
	__u64 alignment;

	TAKE(self->bob, 128, &b);
	for (alignment = 256; alignment <= GiB; alignment *= 2) {
		a = CMD(alloc, .length = 128, .alignment = alignment,
			.flags = GROWABLE);
		must(alloc, self->alice, &a);
		EXPECT_EQ(0, a.out_address.offset % alignment);
		FREE(self->alice, &a);
	}
}

/* ---- many threads ---- */

struct worker {
	pthread_t thread;
	int fd;
	__u32 handle;
	unsigned int bad;
	unsigned int done;
	unsigned int busy;
};

#define ROUNDS 300
#define MOST_TRIES 10000000

/*
 * Checks a call with a shared handle: it succeeds, or fails with EBUSY while
 * another thread uses the handle. Returns true while there is more to do.
 */
static bool more(struct worker *w, unsigned int i, int error)
{
	w->done += !error;
	w->busy += error == EBUSY;
	w->bad += error && error != EBUSY;
	if (error)
		sched_yield();
	return w->done < ROUNDS && !w->bad && i < MOST_TRIES;
}

static void *resizer(void *arg)
{
	struct worker *w = arg;
	struct flexmem_resize r;
	unsigned int i = 0;
	int error;

	do {
		error = resize(w->fd, w->handle, (1 + i % 7) * 4096, &r);
	} while (more(w, i++, error));
	return NULL;
}

static void *reader(void *arg)
{
	struct worker *w = arg;
	unsigned char data[4096];
	unsigned int i = 0, j;
	int error;

	do {
		memset(data, 0, sizeof(data));
		error = fm_read(w->fd, w->handle, 0, data, sizeof(data));
		for (j = 0; !error && j < sizeof(data); j++)
			w->bad += data[j] != A;
	} while (more(w, i++, error));
	return NULL;
}

TEST_F(resize, threads_with_one_handle)
{
	void *(*const work[])(void *) = { resizer, resizer, reader, reader };
	struct worker w[ARRAY_SIZE(work)] = { };
	struct flexmem_alloc a;
	unsigned int i;

	TAKE(self->alice, 4096, &a);
	ASSERT_EQ(0, fm_fill(self->alice, a.out_handle, 0, 4096, A));
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i].fd = self->alice;
		w[i].handle = a.out_handle;
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, work[i], &w[i]));
	}
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		EXPECT_EQ(0, w[i].bad);
		EXPECT_EQ(ROUNDS, w[i].done);
		TH_LOG("%u done, %u busy", w[i].done, w[i].busy);
	}
	EXPECT_STREQ("", fm_sums(self->alice, false));
	EXPECT_EQ(0, fm_others(self->alice, a.out_handle, 0, 4096, A));
	RESIZE(self->alice, &a, 4096, 4096);
	EXPECT_EQ(4096, used(self->alice));
}

TEST_HARNESS_MAIN
