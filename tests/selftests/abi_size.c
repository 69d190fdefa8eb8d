// SPDX-License-Identifier: GPL-2.0
/*
 * The form of every command: its size, flags, reserved members and pointers.
 * Each wrong call has a single mistake. It must fail with the documented errno
 * and change nothing.
 */
#include "tenants.h"

/* The ABI is the same for each compiler, in 32 and 64 bits. */
#define IS_LONG(type, size) \
	_Static_assert(sizeof(struct flexmem_##type) == (size), #type)

IS_LONG(info, 216);
IS_LONG(alloc, 168);
IS_LONG(free, 32);
IS_LONG(batch, 32);
IS_LONG(lookup, 72);
IS_LONG(chunk_entry, 40);
IS_LONG(domain_info, 240);
IS_LONG(region_entry, 72);
IS_LONG(segments, 40);
IS_LONG(segment_entry, 24);
IS_LONG(trim, 24);
IS_LONG(rw, 48);
IS_LONG(copy, 48);
IS_LONG(snapshot, 192);
IS_LONG(owner_entry, 256);
IS_LONG(resource_limit, 48);
IS_LONG(resize, 80);
IS_LONG(reserve, 32);
IS_LONG(va_reserve, 32);
IS_LONG(va_free, 16);
IS_LONG(va_bind, 40);
IS_LONG(va_unbind, 16);
IS_LONG(va_lookup, 64);
IS_LONG(event, 48);
_Static_assert(offsetof(struct flexmem_event, wanted) == FLEXMEM_EVENT_MIN,
	       "the first version of the event");

/* The longest struct that the ABI allows; unknown members must be zero. */
#define LONGEST 4096

/* A command, and the arguments with which it succeeds. */
struct command {
	unsigned long nr;
	__u32 size;		/* of the driver's struct */
	__u32 flags;		/* flags that the driver knows */
	int reserved;		/* offset of __reserved, or -1 */
	/* the command is undone if its reply cannot be written */
	bool undone;
};

#define COMMAND(NAME, type, ...)					\
	.cmd = { FLEXMEM_IOCTL_##NAME, sizeof(struct flexmem_##type), __VA_ARGS__ }
#define RESERVED(type) offsetof(struct flexmem_##type, __reserved)

/* Size of the struct in the first version of the ABI. */
static __u32 first_size(const struct command *cmd)
{
	if (cmd->nr == FLEXMEM_IOCTL_SNAPSHOT)
		return offsetof(struct flexmem_snapshot, out_timeouts);
	if (cmd->nr == FLEXMEM_IOCTL_ALLOC)
		return offsetof(struct flexmem_alloc, out_leaving);
	if (cmd->nr == FLEXMEM_IOCTL_LOOKUP)
		return offsetof(struct flexmem_lookup, entry_size);
	if (cmd->nr == FLEXMEM_IOCTL_INFO)
		return offsetof(struct flexmem_info, out_va_page);
	if (cmd->nr == FLEXMEM_IOCTL_DOMAIN)
		return offsetof(struct flexmem_domain_info, out_program_total);
	if (cmd->nr == FLEXMEM_IOCTL_RESIZE)
		return offsetof(struct flexmem_resize, out_refusal);
	return cmd->size;
}

/* A PF or VF can have two regions at most. One of them stays empty for TRIM. */
#define PARAMS "max_regions=2 order=load_balance acquire=lazy program_slots=0"

FIXTURE(command) {
	int fd;
	__u32 handle;
	__u64 address;
	struct flexmem_alloc allocs[1];
	struct flexmem_free frees[1];
	struct flexmem_region_entry regions[2];
	struct flexmem_segment_entry segments[2];
	struct flexmem_owner_entry owners[8];
	char data[128];
	struct snapshot before;
	char *buf;		/* 2 * LONGEST bytes */
};

FIXTURE_VARIANT(command) {
	int mode;
	struct command cmd;
};

#define BOTH_MODES(name, ...)						\
	FIXTURE_VARIANT_ADD(command, name##_pf) { .mode = FM_PF, __VA_ARGS__ }; \
	FIXTURE_VARIANT_ADD(command, name##_vf) { .mode = FM_VF, __VA_ARGS__ }

BOTH_MODES(info, COMMAND(INFO, info, 0, -1, false));
BOTH_MODES(alloc, COMMAND(ALLOC, alloc, FLEXMEM_ALLOC_PROGRAM |
			  FLEXMEM_ALLOC_MAPPABLE | FLEXMEM_ALLOC_ZEROED |
			  FLEXMEM_ALLOC_GROWABLE,
			  -1, true));
BOTH_MODES(free, COMMAND(FREE, free, FLEXMEM_FREE_BY_ADDRESS, -1, true));
BOTH_MODES(alloc_batch, COMMAND(ALLOC_BATCH, batch, 0, RESERVED(batch), true));
BOTH_MODES(free_batch, COMMAND(FREE_BATCH, batch, 0, RESERVED(batch), true));
BOTH_MODES(lookup, COMMAND(LOOKUP, lookup, 0, RESERVED(lookup), false));
BOTH_MODES(segments, COMMAND(SEGMENTS, segments, 0, RESERVED(segments), false));
BOTH_MODES(trim, COMMAND(TRIM, trim, 0, RESERVED(trim), false));
BOTH_MODES(read, COMMAND(READ, rw, 0, RESERVED(rw), false));
BOTH_MODES(write, COMMAND(WRITE, rw, 0, RESERVED(rw), false));
BOTH_MODES(copy, COMMAND(COPY, copy, 0, -1, false));
BOTH_MODES(snapshot, COMMAND(SNAPSHOT, snapshot, FLEXMEM_SNAPSHOT_OWN, -1,
			     false));
BOTH_MODES(set_limit, COMMAND(SET_LIMIT, resource_limit,
			      FLEXMEM_LIMIT_ALL_FUNCTIONS, -1, false));
BOTH_MODES(reserve, COMMAND(RESERVE, reserve, 0, -1, false));
BOTH_MODES(resize, COMMAND(RESIZE, resize, 0, -1, true));
BOTH_MODES(domain, COMMAND(DOMAIN, domain_info, 0, -1, false));
BOTH_MODES(va_reserve, COMMAND(VA_RESERVE, va_reserve, 0, -1, false));
BOTH_MODES(va_free, COMMAND(VA_FREE, va_free, 0, -1, false));
BOTH_MODES(va_bind, COMMAND(VA_BIND, va_bind, 0, -1, false));
BOTH_MODES(va_unbind, COMMAND(VA_UNBIND, va_unbind, 0, -1, false));
BOTH_MODES(va_lookup, COMMAND(VA_LOOKUP, va_lookup, 0, -1, false));

#define VA_PAGE (64 * KiB)

/* Prepares the next call of a command about device-virtual addresses. */
static void arm_space(FIXTURE_DATA(command) *self, const struct command *cmd)
{
	struct flexmem_va_reserve range = CMD(va_reserve, .length = VA_PAGE);
	struct flexmem_va_bind bind = CMD(va_bind, .handle = self->handle,
					  .access = FLEXMEM_VA_READ,
					  .address = self->address,
					  .length = VA_PAGE);
	struct flexmem_va_unbind unbind = CMD(va_unbind,
					      .address = self->address);

	switch (cmd->nr) {
	case FLEXMEM_IOCTL_VA_FREE:
		raw_va_reserve(self->fd, &range);
		self->address = range.out_address;
		break;
	case FLEXMEM_IOCTL_VA_BIND:
		raw_va_unbind(self->fd, &unbind);
		break;
	case FLEXMEM_IOCTL_VA_UNBIND:
	case FLEXMEM_IOCTL_VA_LOOKUP:
		raw_va_bind(self->fd, &bind);
		break;
	}
}

/* Replaces the allocation by one that can be bound, and reserves addresses. */
static int prepare_space(FIXTURE_DATA(command) *self, const struct command *cmd)
{
	struct flexmem_alloc pages = CMD(alloc, .length = VA_PAGE,
					 .alignment = VA_PAGE);
	struct flexmem_va_reserve range = CMD(va_reserve, .length = VA_PAGE);
	int error;

	error = fm_free(self->fd, self->handle);
	error = error ?: raw_alloc(self->fd, &pages);
	if (!error && cmd->nr != FLEXMEM_IOCTL_VA_FREE)
		error = raw_va_reserve(self->fd, &range);
	self->handle = pages.out_handle;
	self->address = range.out_address;
	arm_space(self, cmd);
	return error;
}

FIXTURE_SETUP(command)
{
	struct flexmem_alloc live;
	__u32 second;

	LOAD(PARAMS, NULL);
	ENTER("sizes");
	ENTER("");
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	if (fm_stats(self->fd).out_regions < 2) {
		self->handle = fm_take(self->fd, KiB);
		second = fm_take(self->fd, KiB);
		ASSERT_NE(0, self->handle);
		ASSERT_EQ(0, fm_free(self->fd, second));
		ASSERT_EQ(0, fm_free(self->fd, self->handle));
	}
	ASSERT_EQ(0, fm_alloc_flags(self->fd, KiB, FLEXMEM_ALLOC_MAPPABLE, &live));
	self->handle = live.out_handle;
	if (variant->cmd.nr >= FLEXMEM_IOCTL_VA_RESERVE &&
	    variant->cmd.nr <= FLEXMEM_IOCTL_VA_LOOKUP)
		ASSERT_EQ(0, prepare_space(self, &variant->cmd));
	self->buf = mmap(NULL, 2 * LONGEST, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->buf);
	SNAP(self->fd, &self->before);
}

FIXTURE_TEARDOWN(command)
{
	close(self->fd);
	EXPECT_EQ(0, fm_remove_cgroup("sizes"));
	EXPECT_EMPTY(variant->mode);
}

/* Writes the arguments of a successful call to @p. */
static void fill(FIXTURE_DATA(command) *self, const struct command *cmd, void *p)
{
	struct flexmem_batch *batch = p;
	struct flexmem_segments *list = p;
	struct flexmem_snapshot *snapshot = p;
	struct flexmem_rw *copy = p;
	struct flexmem_copy *range = p;
	struct flexmem_resource_limit *limit = p;
	struct flexmem_reserve *reserve = p;
	struct flexmem_va_bind *bind = p;

	memset(p, 0, cmd->size);
	*(__u32 *)p = cmd->size;
	switch (cmd->nr) {
	case FLEXMEM_IOCTL_ALLOC:
		((struct flexmem_alloc *)p)->length = 128;
		break;
	case FLEXMEM_IOCTL_FREE:
		((struct flexmem_free *)p)->handle = self->handle;
		break;
	case FLEXMEM_IOCTL_LOOKUP:
		((struct flexmem_lookup *)p)->handle = self->handle;
		break;
	case FLEXMEM_IOCTL_RESIZE:
		((struct flexmem_resize *)p)->handle = self->handle;
		((struct flexmem_resize *)p)->length = 64 * KiB;
		break;
	case FLEXMEM_IOCTL_ALLOC_BATCH:
		self->allocs[0] = CMD(alloc, .length = 128);
		batch->entry_size = sizeof(self->allocs[0]);
		batch->count = 1;
		batch->entries = (uintptr_t)self->allocs;
		break;
	case FLEXMEM_IOCTL_FREE_BATCH:
		self->frees[0] = CMD(free, .handle = self->handle);
		batch->entry_size = sizeof(self->frees[0]);
		batch->count = 1;
		batch->entries = (uintptr_t)self->frees;
		break;
	case FLEXMEM_IOCTL_SEGMENTS:
		list->entry_size = sizeof(self->segments[0]);
		list->count = ARRAY_SIZE(self->segments);
		list->entries = (uintptr_t)self->segments;
		break;
	case FLEXMEM_IOCTL_READ:
	case FLEXMEM_IOCTL_WRITE:
		copy->handle = self->handle;
		copy->length = sizeof(self->data);
		copy->data = (uintptr_t)self->data;
		break;
	case FLEXMEM_IOCTL_COPY:
		range->to = self->handle;
		range->from = self->handle;
		range->from_offset = KiB / 2;
		range->length = KiB / 2;
		break;
	case FLEXMEM_IOCTL_SNAPSHOT:
		snapshot->region_entry_size = sizeof(self->regions[0]);
		snapshot->region_count = ARRAY_SIZE(self->regions);
		snapshot->regions = (uintptr_t)self->regions;
		snapshot->owner_entry_size = sizeof(self->owners[0]);
		snapshot->owner_count = ARRAY_SIZE(self->owners);
		snapshot->owners = (uintptr_t)self->owners;
		break;
	case FLEXMEM_IOCTL_RESERVE:
		reserve->cgroup = fm_cgroup_id("sizes");
		break;
	case FLEXMEM_IOCTL_SET_LIMIT:
		limit->cgroup = fm_cgroup_id("");
		limit->limit = FLEXMEM_NO_LIMIT;
		break;
	case FLEXMEM_IOCTL_VA_RESERVE:
		((struct flexmem_va_reserve *)p)->length = 1;
		break;
	case FLEXMEM_IOCTL_VA_FREE:
		((struct flexmem_va_free *)p)->address = self->address;
		break;
	case FLEXMEM_IOCTL_VA_BIND:
		bind->handle = self->handle;
		bind->access = FLEXMEM_VA_READ;
		bind->address = self->address;
		bind->length = VA_PAGE;
		break;
	case FLEXMEM_IOCTL_VA_UNBIND:
		((struct flexmem_va_unbind *)p)->address = self->address;
		break;
	case FLEXMEM_IOCTL_VA_LOOKUP:
		((struct flexmem_va_lookup *)p)->address = self->address;
		break;
	}
}

static int call(FIXTURE_DATA(command) *self, const struct command *cmd, void *p)
{
	return fm_ioctl(self->fd, cmd->nr, p);
}

/*
 * Makes a new handle after a FREE that succeeded, so that FREE can be called
 * again.
 */
static void rearm(FIXTURE_DATA(command) *self, const struct command *cmd)
{
	if (cmd->nr == FLEXMEM_IOCTL_FREE || cmd->nr == FLEXMEM_IOCTL_FREE_BATCH)
		self->handle = fm_take(self->fd, KiB);
	if (cmd->nr != FLEXMEM_IOCTL_VA_LOOKUP)
		arm_space(self, cmd);
}

TEST_F(command, exact_size_passes)
{
	fill(self, &variant->cmd, self->buf);
	EXPECT_EQ(0, call(self, &variant->cmd, self->buf));
	EXPECT_EQ(variant->cmd.size, *(__u32 *)self->buf);
}

TEST_F(command, size_zero_is_einval)
{
	fill(self, &variant->cmd, self->buf);
	*(__u32 *)self->buf = 0;
	EXPECT_EQ(EINVAL, call(self, &variant->cmd, self->buf));
	EXPECT_UNCHANGED(self->fd, &self->before);
}

TEST_F(command, every_short_size_is_einval)
{
	__u32 size;

	for (size = 1; size < first_size(&variant->cmd); size++) {
		fill(self, &variant->cmd, self->buf);
		*(__u32 *)self->buf = size;
		ASSERT_EQ(EINVAL, call(self, &variant->cmd, self->buf))
			TH_LOG("size %u", size);
	}
	EXPECT_UNCHANGED(self->fd, &self->before);
}

TEST_F(command, struct_of_an_older_program_passes)
{
	__u32 size = first_size(&variant->cmd);

	fill(self, &variant->cmd, self->buf);
	*(__u32 *)self->buf = size;
	memset(self->buf + size, 'x', 8);
	EXPECT_EQ(0, call(self, &variant->cmd, self->buf));
	EXPECT_EQ(size, *(__u32 *)self->buf);
	EXPECT_EQ(0, memcmp(self->buf + size, "xxxxxxxx", 8));
}

TEST_F(command, longer_with_zero_tail_passes)
{
	const __u32 extra[] = { 1, 4, 8, 64, LONGEST - variant->cmd.size };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(extra); i++) {
		fill(self, &variant->cmd, self->buf);
		*(__u32 *)self->buf = variant->cmd.size + extra[i];
		ASSERT_EQ(0, call(self, &variant->cmd, self->buf))
			TH_LOG("%u bytes more", extra[i]);
		for (j = variant->cmd.size; j < 2 * LONGEST; j++)
			ASSERT_EQ(0, self->buf[j]);
		rearm(self, &variant->cmd);
	}
}

TEST_F(command, longer_with_nonzero_tail_is_e2big)
{
	const __u32 extra[] = { 1, 4, 8, 64, LONGEST - variant->cmd.size };
	__u32 *size = (__u32 *)self->buf;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(extra); i++) {
		/* sets the first unknown byte, then the last */
		fill(self, &variant->cmd, self->buf);
		*size = variant->cmd.size + extra[i];
		self->buf[variant->cmd.size] = 1;
		ASSERT_EQ(E2BIG, call(self, &variant->cmd, self->buf));
		self->buf[variant->cmd.size] = 0;

		fill(self, &variant->cmd, self->buf);
		*size = variant->cmd.size + extra[i];
		self->buf[*size - 1] = (char)0x80;
		ASSERT_EQ(E2BIG, call(self, &variant->cmd, self->buf));
		self->buf[variant->cmd.size + extra[i] - 1] = 0;
	}
	EXPECT_UNCHANGED(self->fd, &self->before);
}

/* The struct reaches into kernel addresses, or beyond the last address. */
TEST_F(command, huge_size_fails)
{
	static const __u32 sizes[] = { 1U << 30, 1U << 31, UINT_MAX };
	unsigned int i;
	int error;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		fill(self, &variant->cmd, self->buf);
		*(__u32 *)self->buf = sizes[i];
		error = call(self, &variant->cmd, self->buf);
		EXPECT_TRUE(error == EFAULT || error == E2BIG)
			TH_LOG("size %u: %s", sizes[i], strerror(error));
	}
	EXPECT_UNCHANGED(self->fd, &self->before);
}

TEST_F(command, every_unknown_flag_is_eopnotsupp)
{
	int bit;

	for (bit = 0; bit < 32; bit++) {
		if (variant->cmd.flags & (1U << bit))
			continue;
		fill(self, &variant->cmd, self->buf);
		((__u32 *)self->buf)[1] |= 1U << bit;
		ASSERT_EQ(EOPNOTSUPP, call(self, &variant->cmd, self->buf))
			TH_LOG("flag %#x", 1U << bit);
	}
	EXPECT_UNCHANGED(self->fd, &self->before);
}

TEST_F(command, nonzero_reserved_is_eopnotsupp)
{
	int bit;

	if (variant->cmd.reserved < 0)
		return;
	for (bit = 0; bit < 32; bit++) {
		fill(self, &variant->cmd, self->buf);
		*(__u32 *)(self->buf + variant->cmd.reserved) = 1U << bit;
		ASSERT_EQ(EOPNOTSUPP, call(self, &variant->cmd, self->buf))
			TH_LOG("bit %d", bit);
	}
	EXPECT_UNCHANGED(self->fd, &self->before);
}

TEST_F(command, unmapped_struct_is_efault)
{
	const uintptr_t where[] = {
		0, 8, 4096 + 1, UINTPTR_MAX - 4095, UINTPTR_MAX - 3, UINTPTR_MAX
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(where); i++)
		ASSERT_EQ(EFAULT, call(self, &variant->cmd, (void *)where[i]))
			TH_LOG("at %#lx", (unsigned long)where[i]);
	EXPECT_UNCHANGED(self->fd, &self->before);
}

/*
 * Only the first bytes of the struct are mapped: 4 bytes (the member @size),
 * then 8, and so on, until only the last 4 are missing.
 */
TEST_F(command, struct_across_end_of_mapping_is_efault)
{
	char *pages = fm_two_pages(-1), *end = pages + getpagesize();
	__u32 n;

	ASSERT_NE(NULL, pages);
	for (n = 4; n < variant->cmd.size; n += 4) {
		fill(self, &variant->cmd, self->buf);
		memcpy(end - n, self->buf, n);
		ASSERT_EQ(EFAULT, call(self, &variant->cmd, end - n))
			TH_LOG("%u bytes are mapped", n);
	}
	EXPECT_UNCHANGED(self->fd, &self->before);
}

/* Whether the command has output members. One without them writes no reply. */
static bool replies(const struct command *cmd)
{
	return cmd->nr != FLEXMEM_IOCTL_VA_FREE &&
	       cmd->nr != FLEXMEM_IOCTL_VA_BIND &&
	       cmd->nr != FLEXMEM_IOCTL_VA_UNBIND;
}

TEST_F(command, read_only_struct_is_efault)
{
	char *page = self->buf;

	fill(self, &variant->cmd, page);
	ASSERT_EQ(0, mprotect(page, getpagesize(), PROT_READ));
	EXPECT_EQ(replies(&variant->cmd) ? EFAULT : 0,
		  call(self, &variant->cmd, page));
	EXPECT_SAME(self->fd, &self->before, variant->cmd.undone);
	EXPECT_EQ(0, raw_lookup(self->fd, &CMD(lookup, .handle = self->handle)));
}

/* The driver can read the whole struct, and cannot write its output members. */
TEST_F(command, half_read_only_struct_is_efault)
{
	char *pages = fm_two_pages(PROT_READ | PROT_WRITE), *end;
	__u32 n;

	ASSERT_NE(NULL, pages);
	end = pages + getpagesize();
	if (!replies(&variant->cmd))
		return;
	for (n = 4; n <= 8 && n < variant->cmd.size; n += 4) {
		ASSERT_EQ(0, mprotect(end, getpagesize(), PROT_READ | PROT_WRITE));
		fill(self, &variant->cmd, end - n);
		ASSERT_EQ(0, mprotect(end, getpagesize(), PROT_READ));
		ASSERT_EQ(EFAULT, call(self, &variant->cmd, end - n));
		EXPECT_SAME(self->fd, &self->before, variant->cmd.undone);
	}
}

/* SET_LIMIT sets no limit if its reply cannot be written. */
TEST(a_limit_that_cannot_be_answered_is_not_set)
{
	struct flexmem_resource_limit *q, now = CMD(resource_limit);
	int fd;

	LOAD(PARAMS, NULL);
	fd = fm_open(FM_VF);
	q = (void *)fm_two_pages(PROT_READ | PROT_WRITE);
	ASSERT_LE(0, fd);
	ASSERT_NE(NULL, q);
	*q = CMD(resource_limit, .cgroup = fm_cgroup_id(""),
		 .limit = MiB);
	ASSERT_EQ(0, mprotect(q, getpagesize(), PROT_READ));
	must_fail(EFAULT, set_limit, fd, q);
	ASSERT_EQ(0, fm_get_limit(fd, &now));
	EXPECT_EQ(FLEXMEM_NO_LIMIT, now.out_limit);
	close(fd);
}

/* ---- ioctl numbers that are no command ---- */

FIXTURE(number) {
	int fd;
	struct snapshot before;
};

FIXTURE_VARIANT(number) {
	int mode;
};

FIXTURE_VARIANT_ADD(number, pf) { .mode = FM_PF };
FIXTURE_VARIANT_ADD(number, vf) { .mode = FM_VF };

FIXTURE_SETUP(number)
{
	LOAD(PARAMS, NULL);
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	SNAP(self->fd, &self->before);
}

FIXTURE_TEARDOWN(number)
{
	EXPECT_UNCHANGED(self->fd, &self->before);
	close(self->fd);
}

TEST_F(number, unknown_numbers_are_enotty)
{
	__u64 buf[64] = { sizeof(buf) };
	unsigned int nr;

	for (nr = FLEXMEM_CMD_VA_LOOKUP + 1; nr <= 0xff; nr++)
		ASSERT_EQ(ENOTTY, fm_ioctl(self->fd, _IO(FLEXMEM_TYPE, nr), buf))
			TH_LOG("number %#x", nr);
	/* commands that were removed */
	EXPECT_EQ(ENOTTY, fm_ioctl(self->fd, _IO(FLEXMEM_TYPE, 0x11), buf));
	EXPECT_EQ(ENOTTY, fm_ioctl(self->fd, _IO(FLEXMEM_TYPE, 0x08), buf));
	EXPECT_EQ(ENOTTY, fm_ioctl(self->fd, _IO(FLEXMEM_TYPE, 0x09), buf));
}

TEST_F(number, wrong_type_is_enotty)
{
	__u64 buf[64] = { sizeof(struct flexmem_info) };
	unsigned int nr;

	for (nr = 0; nr <= FLEXMEM_CMD_VA_LOOKUP; nr++) {
		ASSERT_EQ(ENOTTY, fm_ioctl(self->fd, _IO(0xE6, nr), buf));
		ASSERT_EQ(ENOTTY, fm_ioctl(self->fd, _IO(0xE8, nr), buf));
		ASSERT_EQ(ENOTTY, fm_ioctl(self->fd, _IO(0, nr + 0x80), buf));
	}
}

TEST_F(number, direction_and_size_bits_are_enotty)
{
	static const unsigned int dirs[] = {
		_IOC_NONE, _IOC_READ, _IOC_WRITE, _IOC_READ | _IOC_WRITE
	};
	static const unsigned int sizes[] = { 0, 1, 4, 24, 96, 0x2000, 0x3fff };
	__u64 buf[4096] = { 0 };
	unsigned int nr, d, s;

	for (nr = 0; nr <= FLEXMEM_CMD_VA_LOOKUP; nr++)
		for (d = 0; d < ARRAY_SIZE(dirs); d++)
			for (s = !d; s < ARRAY_SIZE(sizes); s++)
				ASSERT_EQ(ENOTTY, fm_ioctl(self->fd,
					_IOC(dirs[d], FLEXMEM_TYPE, nr, sizes[s]),
					buf))
					TH_LOG("nr %u dir %u size %u", nr,
					       dirs[d], sizes[s]);
}

/* ---- arrays that a struct points to ---- */

FIXTURE(array) {
	int fd;
	char *pages;
	struct snapshot before;
};

FIXTURE_VARIANT(array) {
	int mode;
	unsigned long nr;
	__u32 entry_size;
};

FIXTURE_VARIANT_ADD(array, regions_pf) {
	FM_PF, FLEXMEM_IOCTL_SNAPSHOT, sizeof(struct flexmem_region_entry)
};
FIXTURE_VARIANT_ADD(array, regions_vf) {
	FM_VF, FLEXMEM_IOCTL_SNAPSHOT, sizeof(struct flexmem_region_entry)
};
FIXTURE_VARIANT_ADD(array, segments_pf) {
	FM_PF, FLEXMEM_IOCTL_SEGMENTS, sizeof(struct flexmem_segment_entry)
};
FIXTURE_VARIANT_ADD(array, segments_vf) {
	FM_VF, FLEXMEM_IOCTL_SEGMENTS, sizeof(struct flexmem_segment_entry)
};
FIXTURE_VARIANT_ADD(array, alloc_batch_pf) {
	FM_PF, FLEXMEM_IOCTL_ALLOC_BATCH, sizeof(struct flexmem_alloc)
};
FIXTURE_VARIANT_ADD(array, alloc_batch_vf) {
	FM_VF, FLEXMEM_IOCTL_ALLOC_BATCH, sizeof(struct flexmem_alloc)
};
FIXTURE_VARIANT_ADD(array, free_batch_pf) {
	FM_PF, FLEXMEM_IOCTL_FREE_BATCH, sizeof(struct flexmem_free)
};
FIXTURE_VARIANT_ADD(array, free_batch_vf) {
	FM_VF, FLEXMEM_IOCTL_FREE_BATCH, sizeof(struct flexmem_free)
};

FIXTURE_SETUP(array)
{
	__u32 handles[2];

	LOAD(PARAMS, NULL);
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	handles[0] = fm_take(self->fd, KiB);
	handles[1] = fm_take(self->fd, KiB);
	ASSERT_NE(0, handles[0]);
	ASSERT_EQ(0, fm_free(self->fd, handles[0]));
	ASSERT_EQ(0, fm_free(self->fd, handles[1]));
	self->pages = fm_two_pages(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->pages);
	SNAP(self->fd, &self->before);
}

FIXTURE_TEARDOWN(array)
{
	close(self->fd);
	EXPECT_EMPTY(variant->mode);
}

/*
 * Calls a command with an array. The structs of these commands begin with the
 * same members, but for SNAPSHOT.
 */
static int call_array(FIXTURE_DATA(array) *self,
		      const FIXTURE_VARIANT(array) *variant, __u64 where,
		      __u32 count)
{
	struct flexmem_segments arg = {
		.size = variant->nr == FLEXMEM_IOCTL_SEGMENTS ? sizeof(arg) :
			sizeof(struct flexmem_batch),
		.entry_size = variant->entry_size,
		.count = count,
		.entries = where,
	};

	if (variant->nr == FLEXMEM_IOCTL_SNAPSHOT)
		return raw_snapshot(self->fd, &CMD(snapshot,
			.region_entry_size = variant->entry_size,
			.region_count = count, .regions = where,
			.owner_entry_size = sizeof(struct flexmem_owner_entry)));
	return fm_ioctl(self->fd, variant->nr, &arg);
}

TEST_F(array, unmapped_is_efault)
{
	const __u64 where[] = {
		0, 64, ~0ULL - 4095, ~0ULL, 1ULL << 63, 1ULL << 62
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(where); i++)
		ASSERT_EQ(EFAULT, call_array(self, variant, where[i], 2))
			TH_LOG("at %#llx", where[i]);
	EXPECT_UNCHANGED(self->fd, &self->before);
}

TEST_F(array, read_only_is_efault)
{
	struct flexmem_alloc *alloc = (void *)self->pages;

	/* valid entries: ALLOC of 128 bytes, FREE of handle 0 */
	if (variant->nr == FLEXMEM_IOCTL_ALLOC_BATCH)
		alloc[0] = alloc[1] = CMD(alloc, .length = 128);
	ASSERT_EQ(0, mprotect(self->pages, 2 * getpagesize(), PROT_READ));
	EXPECT_EQ(EFAULT, call_array(self, variant, (uintptr_t)self->pages, 2));
	EXPECT_UNDONE(self->fd, &self->before);
}

TEST_F(array, across_end_of_mapping_is_efault)
{
	__u32 page = getpagesize(), n;

	ASSERT_EQ(0, munmap(self->pages + page, page));
	for (n = 4; n < 2 * variant->entry_size; n += 4)
		ASSERT_EQ(EFAULT, call_array(self, variant, (uintptr_t)
					     self->pages + page - n, 2))
			TH_LOG("%u bytes are mapped", n);
	EXPECT_UNDONE(self->fd, &self->before);
}

/* A pointer with a wrong high half causes EFAULT, for 32-bit callers too. */
TEST_F(array, high_half_of_pointer_counts)
{
	EXPECT_EQ(EFAULT, call_array(self, variant, (uintptr_t)self->pages |
				     0x7fff000000000000ULL, 2));
	EXPECT_UNDONE(self->fd, &self->before);
}

TEST_HARNESS_MAIN
