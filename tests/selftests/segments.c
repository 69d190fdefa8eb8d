// SPDX-License-Identifier: GPL-2.0
/* The lists of regions and segments, and TRIM. */
#include "flexmem_test.h"

#include <linux/capability.h>

#define PARAMS "max_regions=3 fallback_sizes=4G acquire=lazy order=load_balance program_slots=0"
#define N 3

/* A newer caller's entry is longer by this number of bytes. */
#define NEWER 24

FIXTURE(list) {
	int fd;
	char buf[N * 128];
	struct snapshot before;
};

FIXTURE_VARIANT(list) {
	int mode;
	unsigned long nr;
	__u32 entry_size;
};

#define REGIONS_LIST							\
	FLEXMEM_IOCTL_SNAPSHOT, sizeof(struct flexmem_region_entry)
#define SEGMENTS_LIST							\
	FLEXMEM_IOCTL_SEGMENTS, sizeof(struct flexmem_segment_entry)

FIXTURE_VARIANT_ADD(list, regions_pf) { FM_PF, REGIONS_LIST };
FIXTURE_VARIANT_ADD(list, regions_vf) { FM_VF, REGIONS_LIST };
FIXTURE_VARIANT_ADD(list, segments_pf) { FM_PF, SEGMENTS_LIST };
FIXTURE_VARIANT_ADD(list, segments_vf) { FM_VF, SEGMENTS_LIST };

FIXTURE_SETUP(list)
{
	int i;

	LOAD(PARAMS, NULL);
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	for (i = 0; i < N; i++)
		ASSERT_NE(0, fm_take(self->fd, KiB));
	ASSERT_EQ(N, fm_stats(self->fd).out_regions);
	SNAP(self->fd, &self->before);
	memset(self->buf, 0xaa, sizeof(self->buf));
}

FIXTURE_TEARDOWN(list)
{
	EXPECT_UNCHANGED(self->fd, &self->before);
	close(self->fd);
	EXPECT_EMPTY(variant->mode);
}

/* Reads the list of regions or that of segments. */
static int list(FIXTURE_DATA(list) *self, const FIXTURE_VARIANT(list) *variant,
		__u32 entry_size, __u32 count, void *entries, __u32 *out_count)
{
	struct flexmem_snapshot regions = CMD(snapshot,
		.region_entry_size = entry_size, .region_count = count,
		.regions = (uintptr_t)entries,
		.owner_entry_size = sizeof(struct flexmem_owner_entry),
		.out_region_count = 77);
	struct flexmem_segments segments = CMD(segments,
		.entry_size = entry_size, .count = count,
		.entries = (uintptr_t)entries, .out_count = 77);
	bool is_regions = variant->nr == FLEXMEM_IOCTL_SNAPSHOT;
	int error = is_regions ? raw_snapshot(self->fd, &regions) :
				 raw_segments(self->fd, &segments);

	*out_count = is_regions ? regions.out_region_count : segments.out_count;
	return error;
}

static bool untouched(const char *buf, size_t from, size_t to)
{
	for (; from < to; from++) {
		if (buf[from] != (char)0xaa)
			return false;
	}
	return true;
}

TEST_F(list, count_zero_tells_how_many)
{
	__u32 n;

	EXPECT_EQ(EMSGSIZE, list(self, variant, variant->entry_size, 0, NULL, &n));
	EXPECT_EQ(N, n);
	/* with a count of 0 the pointer is not used */
	EXPECT_EQ(EMSGSIZE, list(self, variant, variant->entry_size, 0,
				 (void *)16, &n));
	EXPECT_EQ(N, n);
}

TEST_F(list, too_small_writes_nothing)
{
	__u32 count, n;

	for (count = 1; count < N; count++) {
		EXPECT_EQ(EMSGSIZE, list(self, variant, variant->entry_size,
					 count, self->buf, &n));
		EXPECT_EQ(N, n);
		EXPECT_TRUE(untouched(self->buf, 0, sizeof(self->buf)));
	}
}

TEST_F(list, exact_and_larger_arrays_are_filled)
{
	static const __u32 counts[] = { N, N + 1, 1000, UINT_MAX };
	const size_t written = N * variant->entry_size;
	unsigned int i;
	__u32 n;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		memset(self->buf, 0xaa, sizeof(self->buf));
		ASSERT_EQ(0, list(self, variant, variant->entry_size, counts[i],
				  self->buf, &n));
		EXPECT_EQ(N, n);
		EXPECT_EQ(0, memcmp(self->buf, variant->nr ==
				    FLEXMEM_IOCTL_SNAPSHOT ?
				    (void *)self->before.region :
				    (void *)self->before.segment, written));
		EXPECT_TRUE(untouched(self->buf, written, sizeof(self->buf)));
	}
}

TEST_F(list, the_rest_of_larger_entries_is_zeroed)
{
	const __u32 step = variant->entry_size + NEWER;
	const char *want = variant->nr == FLEXMEM_IOCTL_SNAPSHOT ?
		(char *)self->before.region : (char *)self->before.segment;
	static const char zeroes[NEWER];
	__u32 n;
	int i;

	ASSERT_EQ(0, list(self, variant, step, N, self->buf, &n));
	EXPECT_EQ(N, n);
	for (i = 0; i < N; i++) {
		EXPECT_EQ(0, memcmp(self->buf + i * step,
				    want + i * variant->entry_size,
				    variant->entry_size));
		EXPECT_EQ(0, memcmp(self->buf + i * step + variant->entry_size,
				    zeroes, NEWER));
	}
	EXPECT_TRUE(untouched(self->buf, N * step, sizeof(self->buf)));
}

TEST_F(list, short_entry_size_is_einval)
{
	__u32 size, n;

	for (size = 0; size < variant->entry_size; size++)
		ASSERT_EQ(EINVAL, list(self, variant, size, N, self->buf, &n));
	/* a short entry size is refused even if no entry is requested */
	EXPECT_EQ(EINVAL, list(self, variant, variant->entry_size - 8, 0, NULL, &n));
	EXPECT_TRUE(untouched(self->buf, 0, sizeof(self->buf)));
}

FIXTURE(trim) {
	int fd;
	int other;
};

FIXTURE_VARIANT(trim) {
	int mode;
};

FIXTURE_VARIANT_ADD(trim, pf) { .mode = FM_PF };
FIXTURE_VARIANT_ADD(trim, vf) { .mode = FM_VF };

FIXTURE_SETUP(trim)
{
	LOAD(PARAMS, NULL);
	self->fd = fm_open(variant->mode);
	self->other = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->other);
	ASSERT_EQ(0, fm_trim(self->fd));
	ASSERT_EQ(0, fm_stats(self->fd).out_regions);
}

FIXTURE_TEARDOWN(trim)
{
	EXPECT_STREQ("", fm_sums(self->fd, false));
	close(self->fd);
	close(self->other);
	EXPECT_EMPTY(variant->mode);
}

static __u64 generation(int fd)
{
	struct flexmem_segments arg =
		CMD(segments, .entry_size = sizeof(struct flexmem_segment_entry));
	int error = raw_segments(fd, &arg);

	return !error || error == EMSGSIZE ? arg.out_generation : 0;
}

TEST_F(trim, generation_grows_with_every_change_and_no_other)
{
	__u64 last = generation(self->fd), now;
	__u32 handle[N + 1];
	int i;

	for (i = 0; i < N; i++) {
		handle[i] = fm_take(self->fd, KiB);
		ASSERT_NE(0, handle[i]);
		now = generation(self->fd);
		EXPECT_LT(last, now);
		last = now;
	}
	handle[N] = fm_take(self->fd, KiB);
	for (i = 0; i <= N; i++)
		ASSERT_EQ(0, fm_free(self->fd, handle[i]));
	EXPECT_EQ(last, generation(self->other));
	EXPECT_EQ(last, fm_stats(self->fd).out_generation);
	EXPECT_EQ(0, fm_trim(self->fd));
	EXPECT_LT(last, generation(self->fd));
}

TEST_F(trim, knows_no_flags)
{
	__u32 handle = fm_take(self->fd, KiB);
	struct snapshot before;

	ASSERT_NE(0, handle);
	ASSERT_EQ(0, fm_free(self->fd, handle));
	SNAP(self->fd, &before);
	must_fail(EOPNOTSUPP, trim, self->fd, &CMD(trim, .flags = 1));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(trim, gives_back_empty_regions_only_and_reopens)
{
	struct flexmem_trim trim = CMD(trim, .out_regions = 77);
	struct flexmem_alloc reply[N], again;
	struct snapshot s;
	int i;

	for (i = 0; i < N; i++)
		ASSERT_EQ(0, fm_alloc(self->fd, KiB, &reply[i]));
	EXPECT_TRUE(fm_exhausted(self->fd));
	ASSERT_EQ(0, fm_free(self->fd, reply[0].out_handle));
	ASSERT_EQ(0, fm_free(self->fd, reply[2].out_handle));
	must(trim, self->fd, &trim);
	EXPECT_EQ(2, trim.out_regions);
	EXPECT_EQ(8 * GiB, trim.out_bytes);
	SNAP(self->fd, &s);
	EXPECT_EQ(1, s.nr_regions);
	EXPECT_EQ(1, s.region[0].slot);
	EXPECT_EQ(reply[1].out_address.region_id, s.region[0].region_id);
	EXPECT_EQ(4 * GiB, s.stats.out_total);
	EXPECT_EQ(0, s.stats.out_flags);
	EXPECT_STREQ("", fm_sums(self->fd, false));

	/* FREE by an address in a released region finds nothing */
	EXPECT_EQ(ENOENT, fm_free_address(self->fd, reply[0].out_address));
	must(lookup, self->fd, &CMD(lookup, .handle = reply[1].out_handle));

	/* a TRIM that has nothing to release succeeds */
	trim = CMD(trim, .out_regions = 77);
	must(trim, self->fd, &trim);
	EXPECT_EQ(0, trim.out_regions);
	EXPECT_EQ(0, trim.out_bytes);

	/* the next regions fill the slots that became empty */
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, fm_alloc(self->fd, KiB, &again));
	EXPECT_EQ(N, fm_stats(self->fd).out_regions);
	EXPECT_TRUE(fm_exhausted(self->fd));
}

TEST_F(trim, figures_survive_trim)
{
	struct fm_stats before, after;
	__u32 handle = fm_take(self->fd, KiB);

	ASSERT_NE(0, handle);
	ASSERT_EQ(0, fm_free(self->fd, handle));
	before = fm_stats(self->fd);
	ASSERT_EQ(0, fm_trim(self->fd));
	after = fm_stats(self->fd);
	EXPECT_EQ(before.out_allocs, after.out_allocs);
	EXPECT_EQ(before.out_frees, after.out_frees);
	EXPECT_EQ(before.out_failures, after.out_failures);
	EXPECT_EQ(KiB, after.out_client_peak);
}

struct trim_child {
	int fd;
	bool user_ns;
};

static int unprivileged_trim(void *arg)
{
	struct trim_child *child = arg;

	if (setgid(65534) || setuid(65534))
		return 250;
	if (child->user_ns && unshare(CLONE_NEWUSER))
		return 251;
	return fm_trim(child->fd);
}

static int root_of_a_user_ns_trim(void *arg)
{
	if (unshare(CLONE_NEWUSER))
		return 251;
	return fm_trim(((struct trim_child *)arg)->fd);
}

static int trim_without_sys_admin(void *arg)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct caps[2] = { };

	if (syscall(SYS_capget, &header, caps))
		return 252;
	caps[0].effective &= ~(1U << CAP_SYS_ADMIN);
	if (syscall(SYS_capset, &header, caps))
		return 253;
	return fm_trim(((struct trim_child *)arg)->fd);
}

TEST_F(trim, is_eperm_without_cap_sys_admin)
{
	struct trim_child child = { .fd = self->fd };
	__u32 handle = fm_take(self->fd, KiB);
	struct snapshot before;

	ASSERT_NE(0, handle);
	ASSERT_EQ(0, fm_free(self->fd, handle));
	SNAP(self->fd, &before);
	EXPECT_EQ(EPERM, fm_child(unprivileged_trim, &child));
	EXPECT_EQ(EPERM, fm_child(trim_without_sys_admin, &child));
	EXPECT_UNCHANGED(self->fd, &before);
	EXPECT_EQ(0, fm_trim(self->fd));
}

TEST_F(trim, is_eperm_for_root_of_a_user_namespace)
{
	struct trim_child child = { .fd = self->fd, .user_ns = true };
	__u32 handle = fm_take(self->fd, KiB);
	struct snapshot before;

	if (access("/proc/self/ns/user", F_OK))
		SKIP(return, "kernel without user namespaces");
	ASSERT_NE(0, handle);
	ASSERT_EQ(0, fm_free(self->fd, handle));
	SNAP(self->fd, &before);
	EXPECT_EQ(EPERM, fm_child(unprivileged_trim, &child));
	EXPECT_EQ(EPERM, fm_child(root_of_a_user_ns_trim, &child));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_HARNESS_MAIN
