// SPDX-License-Identifier: GPL-2.0
/*
 * Running out of device memory: each limit with its reason and figures, on a PF
 * and on a VF, with regions acquired on demand or all at once. Also tests
 * allocation after frees.
 */
#include "flexmem_test.h"

/*
 * The PF and the VF of a card share its memory. A test on the PF has a card
 * without VFs, so the size of the card is the PF's. A test on a VF limits the
 * capacity of the VF, on a card so large that the PF cannot take the VF's
 * share.
 */
#define PF_HAS(size) "num_vfs=0 slots=8 memory=" size " vf_capacity=" size
#define VF_HAS(size) "num_vfs=1 slots=8 memory=256G vf_capacity=" size
#define LAZY " acquire=lazy "
#define PREALLOC " acquire=prealloc "

#define MAX_PIECES 1024

FIXTURE(exhaust) {
	int fd;
	unsigned int nr;		/* live allocations below */
	__u32 handle[MAX_PIECES];
	struct flexmem_alloc last;	/* the reply to the ALLOC that failed */
};

FIXTURE_VARIANT(exhaust) {
	int mode;
	bool prealloc;
	const char *params;
	const char *sim;
	enum flexmem_reason reason;	/* why the last ALLOC failed */
	/* sizes of the regions that exist when the ALLOC fails, in GiB */
	__u64 sizes[16];
	__u64 max_region;		/* in GiB */
};

/*
 * Each case runs once on a VF and once on a PF. One of the two runs acquires
 * regions on demand: in an EVEN case the run on the VF, in an ODD case the run
 * on the PF. The other run acquires all regions when the driver is bound.
 */
#define EVEN(name, pf_sim, vf_sim, pars, ...)				\
	FIXTURE_VARIANT_ADD(exhaust, name##_vf_lazy) {			\
		FM_VF, false, LAZY pars, vf_sim, __VA_ARGS__ };		\
	FIXTURE_VARIANT_ADD(exhaust, name##_pf_prealloc) {		\
		FM_PF, true, PREALLOC pars, pf_sim, __VA_ARGS__ }
#define ODD(name, pf_sim, vf_sim, pars, ...)				\
	FIXTURE_VARIANT_ADD(exhaust, name##_pf_lazy) {			\
		FM_PF, false, LAZY pars, pf_sim, __VA_ARGS__ };		\
	FIXTURE_VARIANT_ADD(exhaust, name##_vf_prealloc) {		\
		FM_VF, true, PREALLOC pars, vf_sim, __VA_ARGS__ }
#define SIZES(...) { __VA_ARGS__ }

EVEN(fallback_12_12, PF_HAS("24G"), VF_HAS("24G"), "",
     FLEXMEM_REASON_CAPACITY, SIZES(12, 12), 12);
ODD(fallback_12_8, PF_HAS("20G"), VF_HAS("20G"), "",
    FLEXMEM_REASON_CAPACITY, SIZES(12, 8), 12);
EVEN(fallback_12_4, PF_HAS("16G"), VF_HAS("16G"), "order=fill_first",
     FLEXMEM_REASON_CAPACITY, SIZES(12, 4), 12);
ODD(fallback_8, PF_HAS("10G"), VF_HAS("10G"), "",
    FLEXMEM_REASON_CAPACITY, SIZES(8, 2), 8);
EVEN(fallback_remainder, PF_HAS("30G"), VF_HAS("30G"), "",
     FLEXMEM_REASON_CAPACITY, SIZES(12, 12, 4, 2), 12);
ODD(own_fallback_sizes, PF_HAS("10G"), VF_HAS("10G"), "fallback_sizes=3G,2G",
    FLEXMEM_REASON_CAPACITY, SIZES(3, 3, 3, 1), 3);
EVEN(max_regions, PF_HAS("128G"), VF_HAS("64G"),
     "max_regions=3 fallback_sizes=4G",
     FLEXMEM_REASON_MAX_REGIONS, SIZES(4, 4, 4), 4);
ODD(max_regions_fill_first, PF_HAS("128G"), VF_HAS("64G"),
    "max_regions=3 fallback_sizes=4G order=fill_first",
    FLEXMEM_REASON_MAX_REGIONS, SIZES(4, 4, 4), 4);

/* Only a VF has slots in the firmware, so only a VF can run out of them. */
FIXTURE_VARIANT_ADD(exhaust, slots_vf_lazy) {
	FM_VF, false, LAZY "max_regions=12 fallback_sizes=4G", VF_HAS("64G"),
	FLEXMEM_REASON_SLOTS, { 4, 4, 4, 4, 4, 4, 4, 4 }, 4
};
FIXTURE_VARIANT_ADD(exhaust, slots_vf_lazy_fill_first) {
	FM_VF, false, LAZY "max_regions=12 fallback_sizes=4G order=fill_first",
	VF_HAS("64G"),
	FLEXMEM_REASON_SLOTS, { 4, 4, 4, 4, 4, 4, 4, 4 }, 4
};
FIXTURE_VARIANT_ADD(exhaust, slots_vf_prealloc) {
	FM_VF, true, PREALLOC "max_regions=12 fallback_sizes=4G", VF_HAS("64G"),
	FLEXMEM_REASON_SLOTS, { 4, 4, 4, 4, 4, 4, 4, 4 }, 4
};

FIXTURE_SETUP(exhaust)
{
	LOAD(variant->params, variant->sim);
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	/*
	 * the state after loading: no region, or with prealloc only empty
	 * regions
	 */
	if (!variant->prealloc)
		ASSERT_EQ(0, fm_trim(self->fd));
}

FIXTURE_TEARDOWN(exhaust)
{
	EXPECT_STREQ("", fm_sums(self->fd, false));
	close(self->fd);
	EXPECT_EMPTY(variant->mode);
}

/* Allocates until ALLOC fails. */
static void fill_up(FIXTURE_DATA(exhaust) *self, __u64 piece)
{
	while (self->nr < MAX_PIECES && !fm_alloc(self->fd, piece, &self->last))
		self->handle[self->nr++] = self->last.out_handle;
}

static __u64 sum(const FIXTURE_VARIANT(exhaust) *variant)
{
	__u64 bytes = 0;
	int i;

	for (i = 0; variant->sizes[i]; i++)
		bytes += variant->sizes[i] * GiB;
	return bytes;
}

TEST_F(exhaust, regions_have_the_fallback_sizes)
{
	struct snapshot s;
	int i;

	SNAP(self->fd, &s);
	if (variant->prealloc) {
		EXPECT_EQ(sum(variant), s.stats.out_total);
		EXPECT_TRUE(fm_exhausted(self->fd));
	} else {
		EXPECT_EQ(0, s.stats.out_regions);
		EXPECT_EQ(0, s.stats.out_total);
		EXPECT_FALSE(fm_exhausted(self->fd));
	}
	fill_up(self, GiB);
	SNAP(self->fd, &s);
	for (i = 0; variant->sizes[i]; i++) {
		EXPECT_EQ(variant->sizes[i] * GiB, s.region[i].total);
		EXPECT_EQ(i, (int)s.region[i].slot);
		EXPECT_EQ(0, s.region[i].flags);
	}
	EXPECT_EQ(i, (int)s.stats.out_regions);
}

TEST_F(exhaust, the_reply_says_which_limit_and_how_much)
{
	struct flexmem_info info;
	struct snapshot before;
	struct flexmem_alloc reply;

	fill_up(self, GiB);
	EXPECT_EQ(sum(variant) / GiB, self->nr);
	SNAP(self->fd, &before);
	info = fm_info(self->fd);
	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, GiB - 1, &reply));
	EXPECT_EQ(variant->reason, reply.out_reason);
	EXPECT_EQ(ENOMEM, reply.out_error);
	EXPECT_EQ(0, reply.out_handle);
	EXPECT_EQ(GiB, reply.out_size);
	EXPECT_EQ(0, reply.out_total_free);
	EXPECT_EQ(0, reply.out_largest_free);
	EXPECT_EQ(variant->max_region * GiB, reply.out_max_region);
	EXPECT_EQ(variant->max_region * GiB, info.out_max_region);
	EXPECT_TRUE(before.stats.out_flags & FLEXMEM_REPORT_EXHAUSTED);
	EXPECT_TRUE(before.stats.out_flags & FLEXMEM_REPORT_PROGRAM_EXHAUSTED);
	EXPECT_UNCHANGED(self->fd, &before);
}

/* Each region has a few free bytes left, so that no figure is 0 by chance. */
TEST_F(exhaust, the_figures_are_those_of_the_regions)
{
	const __u64 piece = GiB - 128 * KiB;
	struct snapshot s;
	__u64 largest = 0;
	int i;

	fill_up(self, piece);
	SNAP(self->fd, &s);
	for (i = 0; variant->sizes[i]; i++) {
		EXPECT_GT(piece, s.region[i].largest_free);
		if (s.region[i].largest_free > largest)
			largest = s.region[i].largest_free;
	}
	EXPECT_NE(0, largest);
	EXPECT_EQ(largest, self->last.out_largest_free);
	EXPECT_EQ(s.stats.out_free, self->last.out_total_free);
	EXPECT_EQ(s.stats.out_regions, self->last.out_regions);
	EXPECT_EQ(s.stats.out_client_used, self->last.out_client_used);
	/*
	 * if enough bytes are free, but not in one block, the reason is
	 * fragmentation
	 */
	EXPECT_EQ(s.stats.out_free >= piece ? FLEXMEM_REASON_FRAGMENTATION :
		  variant->reason, self->last.out_reason);
	EXPECT_EQ(s.stats.out_free >= piece ? variant->reason :
		  FLEXMEM_REASON_NONE, self->last.out_region_reason);
}

TEST_F(exhaust, works_again_after_frees)
{
	__u32 again;
	unsigned int i;

	fill_up(self, GiB);
	for (i = 0; i < self->nr; i += 3) {
		ASSERT_EQ(0, fm_free(self->fd, self->handle[i]));
		again = fm_take(self->fd, GiB);
		ASSERT_NE(0, again);
		self->handle[i] = again;
		ASSERT_EQ(0, fm_take(self->fd, GiB));
	}
	for (i = 0; i < self->nr; i++)
		ASSERT_EQ(0, fm_free(self->fd, self->handle[i]));
	EXPECT_STREQ("", fm_sums(self->fd, true));
	/* the slots stay in use, but all memory can be allocated again */
	EXPECT_TRUE(fm_exhausted(self->fd));
	self->nr = 0;
	fill_up(self, variant->max_region * GiB);
	EXPECT_LE(1, self->nr);
	EXPECT_EQ(sum(variant), fm_stats(self->fd).out_total);
}

TEST_F(exhaust, a_request_above_the_largest_region_acquires_nothing)
{
	/* Of 10 GiB without regions, one region can take all. */
	const __u64 max = fm_info(self->fd).out_max_region;
	struct flexmem_alloc reply;
	struct snapshot before;

	EXPECT_LE(variant->max_region * GiB, max);

	SNAP(self->fd, &before);
	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, max + 1, &reply));
	EXPECT_EQ(FLEXMEM_REASON_REGION_SIZE, reply.out_reason);
	EXPECT_EQ(max, reply.out_max_region);
	EXPECT_EQ(max + 128, reply.out_size);
	EXPECT_EQ(before.stats.out_free, reply.out_total_free);
	EXPECT_UNCHANGED(self->fd, &before);

	/* a request of exactly the reported size must succeed */
	EXPECT_EQ(0, fm_alloc(self->fd, max, &reply));
	EXPECT_EQ(0, reply.out_address.offset);
}

TEST_F(exhaust, close_frees_memory_for_others)
{
	int other = fm_open(variant->mode);
	struct flexmem_alloc reply;

	ASSERT_LE(0, other);
	fill_up(self, GiB);
	EXPECT_EQ(ENOMEM, fm_alloc(other, 128, &reply));
	EXPECT_EQ(variant->reason, reply.out_reason);
	close(self->fd);
	EXPECT_EQ(0, fm_alloc(other, variant->max_region * GiB, &reply));
	self->fd = other;
}

/* ---- fragmentation in the only region of the PF or VF ---- */

FIXTURE(fragments) {
	int fd;
};

FIXTURE_VARIANT(fragments) {
	int mode;
	const char *params;
};

FIXTURE_VARIANT_ADD(fragments, pf_first_fit) {
	FM_PF, "strategy=first_fit max_regions=1 fallback_sizes=4G"
};
FIXTURE_VARIANT_ADD(fragments, pf_best_fit) {
	FM_PF, "strategy=best_fit max_regions=1 fallback_sizes=4G"
};
FIXTURE_VARIANT_ADD(fragments, vf_first_fit) {
	FM_VF, "strategy=first_fit max_regions=1 fallback_sizes=4G"
};
FIXTURE_VARIANT_ADD(fragments, vf_best_fit) {
	FM_VF, "strategy=best_fit max_regions=1 fallback_sizes=4G"
};

FIXTURE_SETUP(fragments)
{
	LOAD(variant->params, NULL);
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(fragments)
{
	close(self->fd);
	EXPECT_EMPTY(variant->mode);
}

TEST_F(fragments, enough_but_not_in_one_piece)
{
	struct flexmem_alloc reply;
	struct snapshot before;
	__u32 handle[4];
	int i;

	for (i = 0; i < 4; i++)
		ASSERT_NE(0, handle[i] = fm_take(self->fd, GiB));
	ASSERT_EQ(0, fm_free(self->fd, handle[0]));
	ASSERT_EQ(0, fm_free(self->fd, handle[2]));
	SNAP(self->fd, &before);
	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, GiB + 1, &reply));
	EXPECT_EQ(FLEXMEM_REASON_FRAGMENTATION, reply.out_reason);
	EXPECT_EQ(2 * GiB, reply.out_total_free);
	EXPECT_EQ(GiB, reply.out_largest_free);
	EXPECT_EQ(4 * GiB, reply.out_max_region);
	EXPECT_EQ(GiB + 128, reply.out_size);
	EXPECT_EQ(2 * GiB, reply.out_client_used);
	EXPECT_EQ(1, reply.out_regions);
	/* the reply also says why there is no further region */
	EXPECT_EQ(FLEXMEM_REASON_MAX_REGIONS, reply.out_region_reason);
	EXPECT_UNCHANGED(self->fd, &before);
	/* a request for more than all free bytes fails for another reason */
	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, 2 * GiB + 1, &reply));
	EXPECT_EQ(FLEXMEM_REASON_MAX_REGIONS, reply.out_reason);
	EXPECT_EQ(FLEXMEM_REASON_NONE, reply.out_region_reason);
	EXPECT_UNCHANGED(self->fd, &before);

	/* this block lies between two free ones, so all three merge */
	ASSERT_EQ(0, fm_free(self->fd, handle[1]));
	EXPECT_EQ(0, fm_alloc(self->fd, 3 * GiB, &reply));
	EXPECT_EQ(0, reply.out_address.offset);
}

/*
 * The only suitable hole comes after so many holes at unsuitable offsets that
 * the bounded search does not reach it.
 */
TEST_F(fragments, alignment_is_a_reason_of_its_own)
{
	enum { HOLES = 2000 };
	static __u32 hole[HOLES];
	struct flexmem_alloc reply;
	__u32 last;
	int i;

	ASSERT_NE(0, fm_take(self->fd, 128));
	for (i = 0; i < HOLES; i++) {
		ASSERT_NE(0, hole[i] = fm_take(self->fd, 256));
		ASSERT_NE(0, fm_take(self->fd, 256));
	}
	ASSERT_NE(0, fm_take(self->fd, 128));
	ASSERT_NE(0, last = fm_take(self->fd, 256));
	ASSERT_NE(0, fm_take(self->fd, fm_stats(self->fd).out_free));
	for (i = 0; i < HOLES; i++)
		ASSERT_EQ(0, fm_free(self->fd, hole[i]));
	ASSERT_EQ(0, fm_free(self->fd, last));
	reply = CMD(alloc, .length = 256, .alignment = 256);
	must_fail(ENOMEM, alloc, self->fd, &reply);
	EXPECT_EQ(FLEXMEM_REASON_ALIGNMENT, reply.out_reason);
	EXPECT_EQ(FLEXMEM_REASON_MAX_REGIONS, reply.out_region_reason);
	EXPECT_EQ(256, reply.out_largest_free);
}

TEST_F(fragments, free_bytes_may_lack_the_alignment)
{
	struct flexmem_alloc reply;

	/* [256M used][512M free][rest used]: only half of it is aligned to 512M */
	ASSERT_NE(0, fm_take(self->fd, GiB / 4));
	ASSERT_EQ(0, fm_alloc(self->fd, GiB / 2, &reply));
	ASSERT_NE(0, fm_take(self->fd, GiB / 4));
	ASSERT_NE(0, fm_take(self->fd, 3 * GiB));
	ASSERT_EQ(0, fm_free(self->fd, reply.out_handle));
	reply = CMD(alloc, .length = 128, .alignment = GiB / 2);
	must_fail(ENOMEM, alloc, self->fd, &reply);
	EXPECT_EQ(FLEXMEM_REASON_FRAGMENTATION, reply.out_reason);
	EXPECT_EQ(GiB / 2, reply.out_total_free);
	EXPECT_EQ(GiB / 2, reply.out_largest_free);
	reply = CMD(alloc, .length = 128, .alignment = GiB / 4);
	must(alloc, self->fd, &reply);
	EXPECT_EQ(GiB / 4, reply.out_address.offset);
}

/*
 * Regions smaller than the request are not tried, so smaller requests can still
 * succeed.
 */

FIXTURE(skipped) {
	int fd;
};

FIXTURE_VARIANT(skipped) {
	int mode;
	const char *params;
	const char *sim;
};

FIXTURE_VARIANT_ADD(skipped, pf_load_balance) {
	FM_PF, LAZY "order=load_balance", PF_HAS("16G")
};
FIXTURE_VARIANT_ADD(skipped, vf_load_balance) {
	FM_VF, LAZY "order=load_balance", VF_HAS("16G")
};
FIXTURE_VARIANT_ADD(skipped, pf_fill_first) {
	FM_PF, LAZY "order=fill_first", PF_HAS("16G")
};
FIXTURE_VARIANT_ADD(skipped, vf_fill_first) {
	FM_VF, LAZY "order=fill_first", VF_HAS("16G")
};

FIXTURE_SETUP(skipped)
{
	LOAD(variant->params, variant->sim);
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, fm_trim(self->fd));
}

FIXTURE_TEARDOWN(skipped)
{
	close(self->fd);
	EXPECT_EMPTY(variant->mode);
}

TEST_F(skipped, sizes_below_the_request_do_not_lock)
{
	struct flexmem_alloc reply;

	ASSERT_EQ(0, fm_alloc(self->fd, 12 * GiB, &reply));
	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, 8 * GiB, &reply));
	EXPECT_EQ(FLEXMEM_REASON_CAPACITY, reply.out_reason);
	EXPECT_EQ(1, fm_stats(self->fd).out_regions);
	EXPECT_FALSE(fm_exhausted(self->fd));

	ASSERT_EQ(0, fm_alloc(self->fd, 4 * GiB, &reply));
	EXPECT_EQ(2, fm_stats(self->fd).out_regions);
	EXPECT_EQ(16 * GiB, fm_stats(self->fd).out_total);
	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, 128, &reply));
	EXPECT_EQ(FLEXMEM_REASON_CAPACITY, reply.out_reason);
	EXPECT_TRUE(fm_exhausted(self->fd));
}

TEST_HARNESS_MAIN
