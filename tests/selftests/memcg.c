// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel memory of handles is charged to the memory cgroup of the caller,
 * so that a tenant cannot exhaust the kernel's memory.
 */
#include "tenants.h"

#include <sys/mount.h>

#define BATCHES 20

FIXTURE(memcg) {
	char mount[64];
	char group[96];
	struct flexmem_alloc *alloc;
};

/* Writes to a file of the cgroup. Returns 0 or an errno. */
static int put(const char *directory, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return fm_put(path, text);
}

/* Returns the number that a file contains, or -1. */
static long long number_in(const char *directory, const char *name)
{
	char path[PATH_MAX], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -1;
	close(fd);
	return atoll(text);
}

static long long charged(const char *group)
{
	return number_in(group, "memory.current");
}

FIXTURE_SETUP(memcg)
{
	/*
	 * loads the modules again, so that no page of the card has been touched
	 */
	RELOAD(NULL, NULL);
	strcpy(self->mount, "/run/flexmem-cgroup-XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->mount));
	ASSERT_EQ(0, mount("none", self->mount, "cgroup2", 0, NULL));
	ASSERT_EQ(0, put(self->mount, "cgroup.subtree_control", "+memory"));
	snprintf(self->group, sizeof(self->group), "%s/tenant", self->mount);
	ASSERT_EQ(0, mkdir(self->group, 0700));
	self->alloc = calloc(1024, sizeof(*self->alloc));
	ASSERT_NE(NULL, self->alloc);
}

FIXTURE_TEARDOWN(memcg)
{
	free(self->alloc);
	ASSERT_EQ(0, put(self->mount, "cgroup.procs", "0"));
	/*
	 * Charges of freed objects may leave the group with a delay.
	 */
	while (rmdir(self->group) && errno == EBUSY)
		usleep(10000);
	ASSERT_EQ(0, umount2(self->mount, MNT_DETACH));
	rmdir(self->mount);
	EXPECT_EMPTY(FM_VF);
}

TEST_F(memcg, handles_are_charged_to_the_caller)
{
	const long long count = BATCHES * 1024;
	struct flexmem_batch batch = CMD(batch, .count = 1024,
		.entry_size = sizeof(*self->alloc),
		.entries = (uintptr_t)self->alloc);
	const long long block = number_in("/sys/kernel/slab/flexmem_block",
					  "object_size");
	const long long allocation =
		number_in("/sys/kernel/slab/flexmem_allocation", "object_size");
	long long before, during, after;
	int fd, i;

	fd = fm_open(FM_VF);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, put(self->group, "cgroup.procs", "0"));
	for (i = 0; i < 1024; i++)
		self->alloc[i] = CMD(alloc, .length = 1);
	/* The first handle of a file costs more memory than later ones. */
	must(alloc_batch, fd, &batch);

	before = charged(self->group);
	for (i = 0; i < BATCHES; i++)
		must(alloc_batch, fd, &batch);
	during = charged(self->group);
	close(fd);
	after = charged(self->group);

	TH_LOG("%lld handles of %lld and %lld bytes: charged %lld, %lld after close",
	       count, block, allocation, during - before, after - before);
	ASSERT_LE(0, before);
	ASSERT_LT(0, block);
	ASSERT_LT(0, allocation);
	/* Neither kind of object makes up three quarters of the sum. */
	ASSERT_LT(block, (block + allocation) * 3 / 4);
	ASSERT_LT(allocation, (block + allocation) * 3 / 4);
	/*
	 * The kernel charges some bytes in advance for each processor, so the
	 * difference may be a little smaller.
	 */
	EXPECT_LT(count * (block + allocation) * 9 / 10, during - before);
	EXPECT_GT(count * 32, after - before);
}

#define TOUCHED (4 * MiB)

/* The simulated card is host memory, charged to the cgroup that writes it. */
TEST_F(memcg, pages_of_the_card_are_charged_to_the_caller)
{
	struct flexmem_alloc mapped, written;
	long long before, mapping, writing;
	int fd = fm_open(FM_VF);
	char *p;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fm_alloc_flags(fd, TOUCHED, FLEXMEM_ALLOC_MAPPABLE, &mapped));
	ASSERT_EQ(0, fm_alloc(fd, TOUCHED, &written));
	ASSERT_EQ(0, put(self->group, "cgroup.procs", "0"));
	/*
	 * the first write also allocates memory that does not belong to the
	 * card
	 */
	ASSERT_EQ(0, fm_fill(fd, written.out_handle, 0, 1, 'w'));

	before = charged(self->group);
	p = fm_mmap(fd, mapped.out_handle, 0, TOUCHED);
	ASSERT_NE(MAP_FAILED, p);
	memset(p, 'm', TOUCHED);
	mapping = charged(self->group);
	ASSERT_EQ(0, fm_fill(fd, written.out_handle, 0, TOUCHED, 'w'));
	writing = charged(self->group);
	munmap(p, TOUCHED);
	close(fd);

	ASSERT_LE(0, before);
	/* the kernel's counter may lag by a few pages for each CPU */
	EXPECT_LT((long long)TOUCHED * 3 / 4, mapping - before);
	EXPECT_LT((long long)TOUCHED * 3 / 4, writing - mapping);
}

TEST_HARNESS_MAIN
