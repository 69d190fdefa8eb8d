// SPDX-License-Identifier: GPL-2.0
/* Which users may open a node, and which see physical addresses. */
#include "tenants.h"

#include <grp.h>
#include <linux/capability.h>

#define PARAMS "max_regions=3 fallback_sizes=4G acquire=lazy order=load_balance"

FIXTURE(perm) {
	int fd;
	char path[32];
	struct stat st;
};

FIXTURE_VARIANT(perm) {
	int mode;
	mode_t bits;
};

FIXTURE_VARIANT_ADD(perm, pf) { .mode = FM_PF, .bits = 0600 };
FIXTURE_VARIANT_ADD(perm, vf) { .mode = FM_VF, .bits = 0660 };

FIXTURE_SETUP(perm)
{
	LOAD(PARAMS, NULL);
	self->fd = fm_open_nth(variant->mode, 0, self->path);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, fstat(self->fd, &self->st));
}

FIXTURE_TEARDOWN(perm)
{
	close(self->fd);
	EXPECT_EMPTY(variant->mode);
}

TEST_F(perm, node_has_its_mode)
{
	EXPECT_TRUE(S_ISCHR(self->st.st_mode));
	EXPECT_EQ(variant->bits, self->st.st_mode & 07777);
	EXPECT_EQ(0, self->st.st_uid);
}

TEST_F(perm, pfs_and_vfs_have_numbers_apart)
{
	unsigned int n = minor(self->st.st_rdev);
	char name[32];

	EXPECT_EQ(variant->mode == FM_PF, n < FM_MAX_PFS);
	snprintf(name, sizeof(name), "/dev/flexmem%u", n);
	EXPECT_STREQ(name, self->path);
}

/* A user without rights, in the given group. */
struct stranger {
	const char *path;
	gid_t gid;
};

static int open_as_stranger(void *arg)
{
	struct stranger *s = arg;
	int fd;

	if (setgroups(0, NULL) || setgid(s->gid) || setuid(65534))
		return 250;
	fd = open(s->path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return 0;
	return errno;
}

TEST_F(perm, a_stranger_cannot_open)
{
	struct stranger s = { .path = self->path, .gid = 65534 };

	EXPECT_EQ(EACCES, fm_child(open_as_stranger, &s));
}

TEST_F(perm, the_group_can_open_a_vf_only)
{
	struct stranger s = { .path = self->path, .gid = 4242 };

	/* as a udev rule does; no other user is in this group */
	ASSERT_EQ(0, chown(self->path, 0, 4242));
	EXPECT_EQ(variant->mode == FM_VF ? 0 : EACCES,
		  fm_child(open_as_stranger, &s));
	ASSERT_EQ(0, chown(self->path, self->st.st_uid, self->st.st_gid));
}

/*
 * First the node's mode lets all users open the PF, then the mode of another
 * node with the same number. The driver must refuse in both cases.
 */
TEST_F(perm, a_pf_is_the_administrators_whatever_its_mode)
{
	const int expected = variant->mode == FM_VF ? 0 : EPERM;
	struct stranger s = { .path = self->path, .gid = 65534 };
	int fd;

	ASSERT_EQ(0, chmod(self->path, 0666));
	EXPECT_EQ(expected, fm_child(open_as_stranger, &s));
	ASSERT_EQ(0, chmod(self->path, variant->bits));
	fd = fm_open_as(variant->mode, ALICE);
	EXPECT_EQ(variant->mode == FM_VF, fd >= 0);
	if (fd >= 0)
		close(fd);
}

static int open_without_sys_admin(void *path)
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
	return open(path, O_RDWR | O_CLOEXEC) < 0 ? errno : 0;
}

static int open_in_a_user_ns(void *path)
{
	if (unshare(CLONE_NEWUSER))
		return 251;
	return open(path, O_RDWR | O_CLOEXEC) < 0 ? errno : 0;
}

/*
 * Opening a PF requires the capability in the initial user namespace. The uid
 * of root is not enough.
 */
TEST_F(perm, root_without_cap_sys_admin_is_no_administrator)
{
	const int expected = variant->mode == FM_VF ? 0 : EPERM;

	EXPECT_EQ(expected, fm_child(open_without_sys_admin, self->path));
	if (!access("/proc/self/ns/user", F_OK))
		EXPECT_EQ(expected, fm_child(open_in_a_user_ns, self->path));
}

TEST_F(perm, the_administrator_can_turn_that_off)
{
	struct stranger s = { .path = self->path, .gid = 65534 };

	close(self->fd);
	LOAD(PARAMS FM_PF_FOR_ALL, NULL);
	self->fd = fm_open_nth(variant->mode, 0, self->path);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(EACCES, fm_child(open_as_stranger, &s));
	ASSERT_EQ(0, chmod(self->path, 0666));
	EXPECT_EQ(0, fm_child(open_as_stranger, &s));
	ASSERT_EQ(0, chmod(self->path, variant->bits));
	EXPECT_EQ(0, fm_child(open_without_sys_admin, self->path));
}

/* Collects each region_id that any command returns. */
static int collect(int fd, __u64 *ids)
{
	struct flexmem_alloc reply[3];
	struct flexmem_lookup lookup;
	struct account a;
	struct snapshot s;
	unsigned int i;
	int n = 0;

	for (i = 0; i < 3; i++) {
		if (fm_alloc(fd, KiB, &reply[i]))
			return -1;
		ids[n++] = reply[i].out_address.region_id;
		lookup = CMD(lookup, .handle = reply[i].out_handle);
		if (raw_lookup(fd, &lookup))
			return -1;
		ids[n++] = lookup.out_address.region_id;
	}
	if (fm_snap(fd, &s) || fm_account(fd, &a))
		return -1;
	for (i = 0; i < s.nr_regions; i++) {
		ids[n++] = s.region[i].region_id;
		ids[n++] = a.region[i].region_id;
		ids[n++] = s.segment[i].region_id;
	}
	return n;
}

TEST_F(perm, region_ids_are_of_the_modes_kind)
{
	struct snapshot s;
	__u64 ids[64];
	unsigned int j;
	int i, n;

	n = collect(self->fd, ids);
	ASSERT_EQ(15, n);
	SNAP(self->fd, &s);
	for (i = 0; i < n; i++) {
		if (variant->mode == FM_VF) {
			EXPECT_GT(fm_info(self->fd).out_slots, ids[i]);
		} else {
			EXPECT_EQ(0, ids[i] % GiB);
		}
	}
	for (j = 0; j < s.nr_regions; j++) {
		if (variant->mode == FM_VF) {
			EXPECT_EQ(s.region[j].slot, s.region[j].region_id);
			continue;
		}
		/*
		 * the ids of a PF are physical addresses, so regions must not
		 * overlap
		 */
		for (i = 0; i < (int)j; i++)
			EXPECT_TRUE(s.region[i].region_id + s.region[i].total <=
				    s.region[j].region_id ||
				    s.region[j].region_id + s.region[j].total <=
				    s.region[i].region_id);
	}
}

TEST_F(perm, a_second_file_starts_empty)
{
	int other = fm_open(variant->mode);
	struct fm_stats stats;

	ASSERT_LE(0, other);
	ASSERT_NE(0, fm_take(self->fd, KiB));
	stats = fm_stats(other);
	EXPECT_EQ(0, stats.out_client_used);
	EXPECT_EQ(0, stats.out_client_peak);
	EXPECT_EQ(0, stats.out_client_handles);
	close(other);
}

/*
 * A group may have only the right to read. Files that are open for reading can
 * change nothing.
 */
TEST_F(perm, a_file_to_read_changes_nothing)
{
	int fd = open(self->path, O_RDONLY | O_CLOEXEC);
	struct flexmem_alloc reply;

	ASSERT_LE(0, fd);
	EXPECT_EQ(EBADF, fm_alloc(fd, KiB, &reply));
	EXPECT_EQ(EBADF, raw_trim(fd, &CMD(trim)));
	EXPECT_EQ(0, fm_stats(fd).out_client_handles);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				   MAP_SHARED, fd, 0));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
	EXPECT_EQ(EINVAL, errno);
	close(fd);
	fd = open(self->path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, fm_alloc(fd, KiB, &reply));
	close(fd);
}

TEST_HARNESS_MAIN
