// SPDX-License-Identifier: GPL-2.0
/*
 * Reservations: regions that only one cgroup and the cgroups below it can use,
 * until the administrator ends the reservation or the cgroup is removed.
 */
#include "tenants.h"

/* A PF or VF can have four regions. */
#define PARAMS "max_regions=4 fallback_sizes=64M order=fill_first "	\
	"strategy=first_fit acquire=lazy program_slots=0" FM_PF_FOR_ALL
#define SIM "num_vfs=1 memory=1G vf_capacity=256M"
#define REGION (64 * MiB)

FIXTURE(reserve) {
	int root;
	int own;	/* opened below the cgroup */
	int other;
	__u64 id;
};

FIXTURE_VARIANT(reserve) {
	int mode;
};

FIXTURE_VARIANT_ADD(reserve, pf) { FM_PF };
FIXTURE_VARIANT_ADD(reserve, vf) { FM_VF };

/* Returns 0 or an errno. */
static int reserve(int fd, __u64 cgroup, __u32 count)
{
	return raw_reserve(fd, &CMD(reserve, .cgroup = cgroup, .length = count ? REGION : 0, .count = count));
}

FIXTURE_SETUP(reserve)
{
	LOAD(PARAMS, SIM);
	fm_mend();
	self->root = fm_open(variant->mode);
	ASSERT_LE(0, self->root);
	ASSERT_EQ(0, fm_trim(self->root));
	ENTER("held");
	ENTER("held/sub");
	ENTER("");
	self->id = fm_cgroup_id("held");
	ASSERT_NE(0, self->id);
	self->own = fm_open_nth_in(variant->mode, 0, ALICE, "held/sub");
	ASSERT_LE(0, self->own);
	self->other = fm_open_as(variant->mode, BOB);
	ASSERT_LE(0, self->other);
}

FIXTURE_TEARDOWN(reserve)
{
	close(self->own);
	close(self->other);
	if (self->id) {
		EXPECT_EQ(0, reserve(self->root, self->id, 0));
		EXPECT_EQ(0, fm_remove_cgroup("held/sub"));
		EXPECT_EQ(0, fm_remove_cgroup("held"));
	}
	EXPECT_EQ(0, fm_trim(self->root));
	close(self->root);
	EXPECT_SETTLED(variant->mode);
}

#define EXPECT_RESERVED(has, should) do {				\
	struct account __a;						\
	const struct flexmem_owner_entry *__o;				\
									\
	ACCOUNT(self->root, &__a);					\
	EXPECT_STREQ("", fm_wrong(&__a));				\
	__o = fm_owner(&__a, FLEXMEM_OWNER_CGROUP, self->id);		\
	ASSERT_NE(NULL, __o);						\
	EXPECT_EQ(has, __o->reserved);					\
	EXPECT_EQ(should, __o->reservation);				\
} while (0)

TEST_F(reserve, others_do_not_get_it)
{
	struct flexmem_alloc reply;
	struct account a;
	unsigned int i;

	ASSERT_EQ(0, reserve(self->root, self->id, 4));
	EXPECT_RESERVED(4, 4);
	ACCOUNT(self->root, &a);
	EXPECT_EQ(4 * REGION, a.s.out_reserved);
	EXPECT_EQ(0, a.s.out_free);
	EXPECT_EQ(ENOMEM, fm_alloc(self->other, KiB, &reply));
	EXPECT_EQ(FLEXMEM_REASON_RESERVED, reply.out_reason);
	EXPECT_EQ(0, reply.out_total_free);
	EXPECT_EQ(0, fm_stats(self->other).out_free);
	EXPECT_EQ(4 * REGION, fm_stats(self->own).out_free);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, fm_alloc(self->own, REGION, &reply));
	EXPECT_EQ(ENOMEM, fm_alloc(self->own, KiB, &reply));
	EXPECT_RESERVED(4, 4);
}

TEST_F(reserve, only_the_administrator_reserves)
{
	BECOME(ALICE);
	EXPECT_EQ(EPERM, reserve(self->own, self->id, 1));
	EXPECT_EQ(EPERM, reserve(self->own, self->id, 0));
	BECOME(0);
	EXPECT_EQ(ENOENT, reserve(self->root, self->id + 1000000, 1));
	EXPECT_EQ(EINVAL, reserve(self->root, fm_cgroup_id(""), 1));
	must_fail(EINVAL, reserve, self->root,
		  &CMD(reserve, .cgroup = self->id, .length = KiB, .count = 1));
	must_fail(EOPNOTSUPP, reserve, self->root,
		  &CMD(reserve, .flags = 1, .cgroup = self->id));
}

TEST_F(reserve, all_or_nothing)
{
	struct flexmem_reserve cmd = CMD(reserve, .cgroup = self->id, .length = REGION, .count = 5);
	struct flexmem_alloc reply;

	ASSERT_EQ(0, fm_alloc(self->other, KiB, &reply));
	must_fail(ENOMEM, reserve, self->root, &cmd);
	EXPECT_NE(FLEXMEM_REASON_NONE, cmd.out_reason);
	cmd.count = 4;
	must_fail(ENOMEM, reserve, self->root, &cmd);
	cmd.count = 3;
	must(reserve, self->root, &cmd);
	EXPECT_EQ(FLEXMEM_REASON_NONE, cmd.out_reason);
	EXPECT_RESERVED(3, 3);
	/* The other cgroup still has its region. */
	EXPECT_EQ(0, fm_alloc(self->other, REGION / 2, &reply));
	/* With a smaller reservation the other cgroup gets a region. */
	EXPECT_EQ(0, reserve(self->root, self->id, 1));
	EXPECT_RESERVED(1, 1);
	EXPECT_EQ(0, fm_alloc(self->other, REGION, &reply));
}

TEST_F(reserve, trim_and_reset_leave_it)
{
	struct flexmem_alloc reply;

	ASSERT_EQ(0, reserve(self->root, self->id, 2));
	EXPECT_EQ(0, fm_trim(self->root));
	EXPECT_RESERVED(2, 2);
	ASSERT_EQ(0, fm_alloc(self->own, KiB, &reply));
	RESET(variant->mode);
	EXPECT_RESERVED(2, 2);
	EXPECT_EQ(0, fm_free(self->own, reply.out_handle));
	EXPECT_EQ(0, fm_alloc(self->own, REGION, &reply));
	EXPECT_EQ(0, reserve(self->root, self->id, 0));
	EXPECT_EQ(0, fm_trim(self->root));
	EXPECT_EQ(1, fm_stats(self->root).out_regions);
}

/*
 * Reads the entry of a region by fm_snap() and by fm_account(). Returns false
 * if the entries differ.
 */
static bool read_region(int fd, uid_t user, unsigned int nr,
			struct flexmem_region_entry *entry)
{
	struct snapshot s;
	struct account a;
	bool same;

	if (fm_become(user))
		return false;
	same = !fm_snap(fd, &s) && !fm_account(fd, &a) &&
	       nr < s.nr_regions &&
	       !memcmp(&s.region[nr], &a.region[nr], sizeof(*entry));
	*entry = s.region[nr];
	return !fm_become(0) && same;
}

/* Only the administrator, and the cgroup that a region is reserved for, see how full it is. */
TEST_F(reserve, figures_are_not_for_others)
{
	struct flexmem_region_entry all, own, other;
	struct flexmem_alloc reply;

	ASSERT_EQ(0, reserve(self->root, self->id, 1));
	ASSERT_EQ(0, fm_alloc(self->own, MiB, &reply));
	ASSERT_TRUE(read_region(self->root, 0, 0, &all));
	EXPECT_EQ(0, all.flags);
	EXPECT_EQ(REGION - MiB, all.free);
	EXPECT_EQ(1, all.nr_allocated);
	ASSERT_TRUE(read_region(self->own, ALICE, 0, &own));
	EXPECT_EQ(0, memcmp(&own, &all, sizeof(all)));
	ASSERT_TRUE(read_region(self->other, BOB, 0, &other));
	EXPECT_EQ(FLEXMEM_REGION_HIDDEN, other.flags);
	EXPECT_EQ(all.region_id, other.region_id);
	EXPECT_EQ(REGION, other.total);
	EXPECT_EQ(0, other.free | other.largest_free | other.nr_allocated |
		     other.nr_free | other.sequence);
}

TEST_F(reserve, ends_with_the_cgroup)
{
	struct flexmem_alloc reply;

	ASSERT_EQ(0, reserve(self->root, self->id, 4));
	EXPECT_EQ(ENOMEM, fm_alloc(self->other, KiB, &reply));
	ASSERT_EQ(0, fm_remove_cgroup("held/sub"));
	ASSERT_EQ(0, fm_remove_cgroup("held"));
	EXPECT_EQ(0, fm_alloc(self->other, KiB, &reply));
	EXPECT_EQ(ENOENT, reserve(self->root, self->id, 1));
	self->id = 0;
}

TEST_HARNESS_MAIN
