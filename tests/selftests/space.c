// SPDX-License-Identifier: GPL-2.0
/*
 * Device-virtual addresses: the same calls in a new file get the same addresses,
 * memory stays while it is bound, and close(), the death of a process and a reset
 * leave nothing behind.
 */
#include "tenants.h"

#define PARAMS "order=fill_first strategy=first_fit acquire=lazy "	\
	"fallback_sizes=4G program_slots=0"
#define SIM "num_vfs=1 memory=64G"
#define START (4 * GiB)
#define NR 8

FIXTURE(space) {
	int fd;
};

FIXTURE_VARIANT(space) {
	int mode;
	const char *sim;
	__u64 page;
	__u64 start;
};

FIXTURE_VARIANT_ADD(space, pf) {
	.mode = FM_PF, .sim = SIM, .page = 64 * KiB, .start = 64 * KiB,
};
FIXTURE_VARIANT_ADD(space, vf) {
	.mode = FM_VF, .sim = SIM, .page = 64 * KiB, .start = 64 * KiB,
};
FIXTURE_VARIANT_ADD(space, small_pages) {
	.mode = FM_VF, .sim = SIM " space=4K:4G:64G", .page = 4 * KiB,
	.start = START,
};
FIXTURE_VARIANT_ADD(space, large_pages) {
	.mode = FM_VF, .sim = SIM " space=2M:4G:64G", .page = 2 * MiB,
	.start = START,
};

FIXTURE_SETUP(space)
{
	LOAD(PARAMS, variant->sim);
	fm_mend();
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, fm_trim(self->fd));
}

FIXTURE_TEARDOWN(space)
{
	fm_mend();
	close(self->fd);
	EXPECT_EMPTY(variant->mode);
}

struct deployed {
	__u64 at[NR];
	struct flexmem_address memory[NR];
	__u32 handle[NR];
};

/* Allocates and binds @nr tensors of different lengths. */
static int deploy(int fd, unsigned int nr, struct deployed *all)
{
	const __u64 page = fm_info(fd).out_va_page;
	unsigned int i;
	int error = 0;

	for (i = 0; i < nr && !error; i++) {
		__u64 length = (1 + i % 3) * page;
		struct flexmem_va_reserve range =
			CMD(va_reserve, .length = length - 1);
		struct flexmem_alloc alloc = CMD(alloc, .length = length,
						 .alignment = page);
		struct flexmem_va_bind bind;

		error = raw_va_reserve(fd, &range);
		error = error ?: raw_alloc(fd, &alloc);
		bind = CMD(va_bind, .handle = alloc.out_handle,
			   .access = FLEXMEM_VA_READ | FLEXMEM_VA_WRITE,
			   .address = range.out_address, .length = length);
		error = error ?: raw_va_bind(fd, &bind);
		all->at[i] = range.out_address;
		all->memory[i] = alloc.out_address;
		all->handle[i] = alloc.out_handle;
	}
	return error;
}

static int lookup(int fd, __u64 address, struct flexmem_va_lookup *reply)
{
	*reply = CMD(va_lookup, .address = address);
	return raw_va_lookup(fd, reply);
}

TEST_F(space, a_new_file_gets_the_same_addresses)
{
	struct flexmem_info info = fm_info(self->fd);
	struct deployed first, second;
	struct flexmem_va_lookup found;
	unsigned int i;

	ASSERT_EQ(variant->page, info.out_va_page);
	ASSERT_EQ(variant->start, info.out_va_start);
	ASSERT_EQ(0, deploy(self->fd, NR, &first));
	EXPECT_EQ(variant->start, first.at[0]);
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, lookup(self->fd, first.at[i] + 5, &found));
		EXPECT_EQ(first.handle[i], found.out_handle);
		EXPECT_EQ(5, found.out_offset);
	}
	close(self->fd);
	EXPECT_EMPTY(variant->mode);
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(ENOENT, lookup(self->fd, first.at[0], &found));
	ASSERT_EQ(0, deploy(self->fd, NR, &second));
	EXPECT_EQ(0, memcmp(first.at, second.at, sizeof(first.at)));
	EXPECT_EQ(0, memcmp(first.memory, second.memory, sizeof(first.memory)));
}

TEST_F(space, memory_stays_while_it_is_bound)
{
	struct flexmem_va_lookup found;
	struct deployed all;
	__u64 used;

	ASSERT_EQ(0, deploy(self->fd, 1, &all));
	used = fm_stats(self->fd).out_used;
	ASSERT_EQ(0, fm_free(self->fd, all.handle[0]));
	EXPECT_EQ(used, fm_stats(self->fd).out_used);
	ASSERT_EQ(0, lookup(self->fd, all.at[0], &found));
	EXPECT_EQ(0, found.out_handle);
	must_fail(EBUSY, va_free, self->fd, &CMD(va_free, .address = all.at[0]));
	must(va_unbind, self->fd, &CMD(va_unbind, .address = all.at[0]));
	EXPECT_EQ(0, fm_stats(self->fd).out_used);
	must(va_free, self->fd, &CMD(va_free, .address = all.at[0]));
	must_fail(ENOENT, va_free, self->fd, &CMD(va_free, .address = all.at[0]));
}

/* If the caller cannot learn its addresses, they are free again. */
TEST_F(space, a_reply_that_cannot_be_written)
{
	struct flexmem_va_reserve range = CMD(va_reserve, .length = variant->page);
	char *pages = fm_two_pages(PROT_READ);
	void *cmd = pages + getpagesize() -
		    offsetof(struct flexmem_va_reserve, out_address);
	__u64 start = fm_info(self->fd).out_va_start;

	ASSERT_NE(NULL, pages);
	memcpy(cmd, &range, offsetof(struct flexmem_va_reserve, out_address));
	EXPECT_EQ(EFAULT, fm_ioctl(self->fd, FLEXMEM_IOCTL_VA_RESERVE, cmd));
	must(va_reserve, self->fd, &range);
	EXPECT_EQ(start, range.out_address);
	munmap(pages, 2 * getpagesize());
}

static int deploy_and_die(void *arg)
{
	struct deployed all;
	int fd = fm_open(*(int *)arg);

	if (fd < 0 || deploy(fd, NR, &all))
		return 1;
	raise(SIGKILL);
	return 2;
}

TEST_F(space, a_killed_process_leaves_nothing)
{
	int mode = variant->mode;

	ASSERT_EQ(-SIGKILL, fm_child(deploy_and_die, &mode));
	EXPECT_EMPTY(variant->mode);
}

/* The firmware refuses to unmap at close(). A TRIM tries again. */
TEST_F(space, memory_waits_for_the_firmware)
{
	struct deployed all;
	int fd = fm_open(variant->mode), tries = 600;
	__u64 used;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, deploy(fd, NR, &all));
	used = fm_stats(fd).out_used;
	KNOB("fault_command", "vm_unmap");
	KNOB("fail_commands", "1");
	close(fd);
	KNOB("fail_commands", "0");
	/* The worker may have tried again by now. */
	EXPECT_GE(used, fm_stats(self->fd).out_used);
	EXPECT_EQ(0, fm_trim(self->fd));
	while (fm_stats(self->fd).out_used && tries--)
		usleep(100000);
	EXPECT_EQ(0, fm_stats(self->fd).out_used);
}

TEST_F(space, a_reset_unmaps)
{
	struct flexmem_va_lookup found;
	struct deployed all, more;

	ASSERT_EQ(0, deploy(self->fd, 2, &all));
	RESET(variant->mode);
	ASSERT_EQ(0, lookup(self->fd, all.at[0], &found));
	EXPECT_EQ(all.handle[0], found.out_handle);
	must(va_unbind, self->fd, &CMD(va_unbind, .address = all.at[0]));
	must_fail(EIO, va_bind, self->fd,
		  &CMD(va_bind, .handle = all.handle[0],
		       .access = FLEXMEM_VA_READ, .address = all.at[0],
		       .length = variant->page));
	must_fail(ENOENT, va_unbind, self->fd,
		  &CMD(va_unbind, .address = all.at[0]));
	must(va_unbind, self->fd, &CMD(va_unbind, .address = all.at[1]));
	ASSERT_EQ(0, fm_free(self->fd, all.handle[0]));
	ASSERT_EQ(0, fm_free(self->fd, all.handle[1]));
	ASSERT_EQ(0, deploy(self->fd, NR, &more));
}

TEST_HARNESS_MAIN
