// SPDX-License-Identifier: GPL-2.0
/*
 * Placement: the choice of the region (order, acquisition, program slots), and
 * of the free block in it (fit).
 */
#include "flexmem_test.h"

#define SMALL " max_regions=3 fallback_sizes=4G "

FIXTURE(place) {
	int fd;
	struct flexmem_alloc last;
};

FIXTURE_VARIANT(place) {
	int mode;
};

FIXTURE_VARIANT_ADD(place, pf) { .mode = FM_PF };
FIXTURE_VARIANT_ADD(place, vf) { .mode = FM_VF };

FIXTURE_SETUP(place)
{
	self->fd = -1;
}

FIXTURE_TEARDOWN(place)
{
	EXPECT_STREQ("", fm_sums(self->fd, false));
	close(self->fd);
	EXPECT_EMPTY(variant->mode);
}

#define START(params, sim) do {						\
	RELOAD(params, sim);						\
	self->fd = fm_open(variant->mode);				\
	ASSERT_LE(0, self->fd);						\
} while (0)

/* Returns the slot that contains an address, or -1. */
static int slot_of(int fd, struct flexmem_address at, __u32 *flags)
{
	struct snapshot s;
	unsigned int i;

	if (fm_snap(fd, &s))
		return -1;
	for (i = 0; i < s.nr_regions; i++) {
		if (s.region[i].region_id == at.region_id) {
			if (flags)
				*flags = s.region[i].flags;
			return s.region[i].slot;
		}
	}
	return -1;
}

/* Allocates. Returns the slot of the allocation, or a negative errno. */
static int place(FIXTURE_DATA(place) *self, __u64 length)
{
	int error = fm_alloc(self->fd, length, &self->last);

	return error ? -error : slot_of(self->fd, self->last.out_address, NULL);
}

TEST_F(place, load_balance_acquires_before_each_until_exhausted)
{
	int i;

	START("order=load_balance acquire=lazy" SMALL, NULL);
	for (i = 0; i < 3; i++) {
		EXPECT_FALSE(fm_exhausted(self->fd));
		EXPECT_EQ(i, place(self, KiB));
		EXPECT_EQ(i + 1, (int)fm_stats(self->fd).out_regions);
	}
	EXPECT_TRUE(fm_exhausted(self->fd));
	EXPECT_EQ(0, place(self, KiB));
	EXPECT_EQ(3, fm_stats(self->fd).out_regions);
}

TEST_F(place, load_balance_takes_most_free_then_lowest_slot)
{
	/*
	 * The first three allocations put 3, 2 and 1 KiB into slots 0, 1 and 2.
	 * After that the emptiest region is next.
	 */
	static const struct { int kib, slot; } steps[] = {
		{ 3, 0 }, { 2, 1 }, { 1, 2 },		/* KiB used: 3 2 1 */
		{ 1, 2 }, { 1, 1 }, { 1, 2 },		/* 3 3 3 */
		{ 1, 0 }, { 2, 1 }, { 1, 2 },		/* 4 5 4 */
		{ 1, 0 }, { 1, 2 }, { 1, 0 },		/* 6 5 5 */
		{ 4, 1 }, { 1, 2 },
	};
	unsigned int i;

	START("order=load_balance acquire=lazy" SMALL, NULL);
	for (i = 0; i < ARRAY_SIZE(steps); i++)
		ASSERT_EQ(steps[i].slot, place(self, steps[i].kib * KiB))
			TH_LOG("step %u", i);
}

TEST_F(place, load_balance_tries_the_new_region_first)
{
	START("order=load_balance acquire=lazy", variant->mode == FM_PF ?
	      "num_vfs=0 memory=16G vf_capacity=16G" : "vf_capacity=16G");
	EXPECT_EQ(0, place(self, KiB));
	EXPECT_EQ(1, place(self, KiB));
	EXPECT_EQ(16 * GiB, fm_stats(self->fd).out_total);
	EXPECT_EQ(0, place(self, KiB));
	EXPECT_TRUE(fm_exhausted(self->fd));
}

TEST_F(place, load_balance_orders_preallocated_regions)
{
	int i;

	START("order=load_balance acquire=prealloc" SMALL, "memory=256G");
	EXPECT_EQ(3, fm_stats(self->fd).out_regions);
	EXPECT_TRUE(fm_exhausted(self->fd));
	for (i = 0; i < 6; i++)
		EXPECT_EQ(i % 3, place(self, KiB));
}

TEST_F(place, fill_first_acquires_only_when_nothing_fits)
{
	int i;

	START("order=fill_first acquire=lazy" SMALL, NULL);
	EXPECT_EQ(0, fm_stats(self->fd).out_regions);
	for (i = 0; i < 12; i++) {
		EXPECT_EQ(i / 4, place(self, GiB));
		EXPECT_EQ(i / 4 + 1, (int)fm_stats(self->fd).out_regions);
		EXPECT_EQ(i / 4 == 2, fm_exhausted(self->fd));
	}
	EXPECT_EQ(-ENOMEM, place(self, 128));
}

TEST_F(place, fill_first_takes_fewest_free_that_fit_then_lowest_slot)
{
	struct flexmem_alloc first;

	START("order=fill_first acquire=lazy" SMALL, NULL);
	EXPECT_EQ(0, place(self, 2 * GiB));
	first = self->last;
	EXPECT_EQ(0, place(self, GiB));		/* free GiB: 1 */
	EXPECT_EQ(1, place(self, 2 * GiB));	/* free GiB: 1 2 */
	EXPECT_EQ(0, place(self, KiB));		/* the fullest region */
	/* slot 0 has less than 1 GiB left */
	EXPECT_EQ(1, place(self, GiB));
	EXPECT_EQ(0, fm_free(self->fd, self->last.out_handle));
	ASSERT_EQ(0, fm_free(self->fd, first.out_handle));
	/* free: 3 GiB - 1 KiB, and 2 GiB */
	EXPECT_EQ(1, place(self, KiB));
	/* free: 1 GiB - 1 KiB, 2 GiB - 1 KiB */
	EXPECT_EQ(0, place(self, 2 * GiB));
	EXPECT_EQ(1, place(self, GiB));		/* free: twice 1 GiB - 1 KiB */
	/* of two equal regions, the one in the lower slot is used */
	EXPECT_EQ(0, place(self, KiB));
	EXPECT_EQ(2, fm_stats(self->fd).out_regions);
}

TEST_F(place, fill_first_orders_preallocated_regions)
{
	START("order=fill_first acquire=prealloc" SMALL, "memory=256G");
	EXPECT_EQ(3, fm_stats(self->fd).out_regions);
	EXPECT_EQ(0, place(self, KiB));
	EXPECT_EQ(0, place(self, KiB));
	EXPECT_EQ(1, place(self, 4 * GiB));
	EXPECT_EQ(0, place(self, KiB));
	EXPECT_EQ(2, place(self, 4 * GiB));
}

/*
 * Makes holes of 4, 2 and 8 KiB in this order, in front of the free end of the
 * region, and checks where requests are placed.
 */
static void holes(struct __test_metadata *_metadata, int fd,
		  const __u64 wanted[4][2])
{
	static const __u64 sizes[] = { 4, 1, 2, 1, 8, 1 };
	struct flexmem_alloc reply[ARRAY_SIZE(sizes)], hit;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		ASSERT_EQ(0, fm_alloc(fd, sizes[i] * KiB, &reply[i]));
	for (i = 0; i < ARRAY_SIZE(sizes); i += 2)
		ASSERT_EQ(0, fm_free(fd, reply[i].out_handle));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, fm_alloc(fd, wanted[i][0] * KiB, &hit));
		EXPECT_EQ(wanted[i][1] * KiB, hit.out_address.offset)
			TH_LOG("request %u of %llu KiB", i, wanted[i][0]);
	}
}

TEST_F(place, first_fit_is_the_lowest_offset_that_fits)
{
	/* the holes are [0, 4), [5, 7) and [8, 16) */
	static const __u64 wanted[4][2] = { { 2, 0 }, { 3, 8 }, { 2, 2 }, { 1, 5 } };

	START("strategy=first_fit max_regions=1", NULL);
	EXPECT_EQ(FLEXMEM_FIT_FIRST, fm_info(self->fd).out_fit);
	holes(_metadata, self->fd, wanted);
}

TEST_F(place, best_fit_is_the_tightest_then_the_lowest)
{
	static const __u64 wanted[4][2] = { { 2, 5 }, { 4, 0 }, { 6, 8 }, { 2, 14 } };

	START("strategy=best_fit max_regions=1", NULL);
	EXPECT_EQ(FLEXMEM_FIT_BEST, fm_info(self->fd).out_fit);
	holes(_metadata, self->fd, wanted);
}

TEST_F(place, best_fit_takes_the_lowest_of_equals)
{
	struct flexmem_alloc reply[6], hit;
	int i;

	START("strategy=best_fit max_regions=1", NULL);
	for (i = 0; i < 6; i++)
		ASSERT_EQ(0, fm_alloc(self->fd, KiB, &reply[i]));
	/*
	 * frees the highest allocation first, so that the order of frees
	 * differs from the order of offsets
	 */
	for (i = 4; i >= 0; i -= 2)
		ASSERT_EQ(0, fm_free(self->fd, reply[i].out_handle));
	for (i = 0; i <= 4; i += 2) {
		ASSERT_EQ(0, fm_alloc(self->fd, KiB, &hit));
		EXPECT_EQ(i * KiB, hit.out_address.offset);
	}
}

static int place_program(FIXTURE_DATA(place) *self, __u64 length, __u32 *flags)
{
	int error;

	self->last = CMD(alloc, .length = length, .flags = FLEXMEM_ALLOC_PROGRAM);
	error = raw_alloc(self->fd, &self->last);
	return error ? -error :
		slot_of(self->fd, self->last.out_address, flags);
}

TEST_F(place, programs_share_when_no_slots_are_set_aside)
{
	__u32 flags = ~0;

	START("program_slots=0 order=fill_first" SMALL, NULL);
	EXPECT_EQ(0, fm_info(self->fd).out_program_slots);
	EXPECT_EQ(0, place(self, KiB));
	EXPECT_EQ(0, place_program(self, KiB, &flags));
	EXPECT_EQ(0, flags);
}

TEST_F(place, tensors_and_programs_keep_to_their_slots)
{
	static const char * const params[] = {
		"program_slots=1 order=load_balance acquire=lazy" SMALL,
		"program_slots=1 order=fill_first acquire=lazy" SMALL,
		"program_slots=1 order=load_balance acquire=prealloc" SMALL,
		"program_slots=1 order=fill_first acquire=prealloc" SMALL,
	};
	unsigned int p, i, flags = 0;
	struct fm_stats stats;
	int program, slot;

	for (p = 0; p < ARRAY_SIZE(params); p++) {
		if (self->fd >= 0)
			close(self->fd);
		START(params[p], "memory=256G");
		EXPECT_EQ(1, fm_info(self->fd).out_program_slots);
		program = place_program(self, GiB, &flags);
		ASSERT_LE(0, program);
		EXPECT_EQ(FLEXMEM_REGION_PROGRAM, flags);

		/*
		 * tensors can fill two regions, but cannot use the region for
		 * programs
		 */
		for (i = 0; i < 8; i++) {
			slot = place(self, GiB);
			ASSERT_LE(0, slot);
			ASSERT_NE(program, slot);
		}
		EXPECT_EQ(-ENOMEM, place(self, 128));
		EXPECT_EQ(FLEXMEM_REASON_MAX_REGIONS, self->last.out_reason);
		EXPECT_EQ(0, self->last.out_total_free);
		EXPECT_EQ(0, self->last.out_largest_free);

		/* programs can fill their region */
		for (i = 0; i < 3; i++)
			ASSERT_EQ(program, place_program(self, GiB, NULL));
		EXPECT_EQ(-ENOMEM, place_program(self, 128, NULL));
		EXPECT_EQ(FLEXMEM_REASON_MAX_REGIONS, self->last.out_reason);
		stats = fm_stats(self->fd);
		EXPECT_EQ(3, stats.out_regions);
		EXPECT_EQ(4 * GiB, stats.out_used_program);
		EXPECT_EQ(FLEXMEM_REPORT_EXHAUSTED | FLEXMEM_REPORT_PROGRAM_EXHAUSTED,
			  (int)stats.out_flags);
	}
}

TEST_F(place, full_programs_do_not_stop_tensors)
{
	struct flexmem_alloc program;

	START("program_slots=1 order=fill_first acquire=lazy" SMALL, NULL);
	ASSERT_LE(0, place_program(self, 4 * GiB, NULL));
	program = self->last;
	EXPECT_EQ(-ENOMEM, place_program(self, 128, NULL));
	EXPECT_EQ(FLEXMEM_REPORT_PROGRAM_EXHAUSTED,
		  (int)fm_stats(self->fd).out_flags);
	EXPECT_LE(0, place(self, 4 * GiB));
	EXPECT_LE(0, place(self, 4 * GiB));
	EXPECT_EQ(-ENOMEM, place(self, 128));
	/* memory of a freed program is used only for programs */
	EXPECT_EQ(0, fm_free(self->fd, program.out_handle));
	EXPECT_EQ(-ENOMEM, place(self, 128));
	EXPECT_LE(0, place_program(self, 4 * GiB, NULL));
}

TEST_HARNESS_MAIN
