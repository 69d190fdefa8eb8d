/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One region, and one allocation of Alice's that is extended and cut short, so
 * that any number of bytes can be in use; and Bob, who reads the events.
 */
#ifndef PRESSURE_H
#define PRESSURE_H

#include "tenants.h"

#include <poll.h>

#define REGION (4 * GiB)
#define UNIT 128ULL

#define NONE FLEXMEM_PRESSURE_NONE
#define MODERATE FLEXMEM_PRESSURE_MODERATE
#define CRITICAL FLEXMEM_PRESSURE_CRITICAL

FIXTURE(pressure) {
	int root;
	int alice;
	int bob;
	__u32 handle;	/* Alice's; 128 bytes at first */
};

FIXTURE_VARIANT(pressure) {
	int mode;
};

FIXTURE_VARIANT_ADD(pressure, pf) { FM_PF };
FIXTURE_VARIANT_ADD(pressure, vf) { FM_VF };

FIXTURE_SETUP(pressure)
{
	LOAD("max_regions=1 fallback_sizes=4G order=fill_first acquire=lazy "
	     "program_slots=0" FM_PF_FOR_ALL,
	     "num_vfs=2 memory=48G vf_capacity=16G");
	OPEN_TENANTS();
	self->handle = fm_take(self->alice, UNIT);
	ASSERT_NE(0, self->handle);
	ASSERT_EQ(0, fcntl(self->bob, F_SETFL, O_NONBLOCK));
}

FIXTURE_TEARDOWN(pressure)
{
	fm_mend();
	close(self->alice);
	close(self->bob);
	EXPECT_EQ(0, fm_trim(self->root));
	close(self->root);
	EXPECT_SETTLED(variant->mode);
}

/* 0 or an errno */
static int resize(int fd, __u32 handle, __u64 length)
{
	return raw_resize(fd, &CMD(resize, .handle = handle, .length = length));
}

#define USE(bytes) ASSERT_EQ(0, resize(self->alice, self->handle, bytes))

static short events(int fd, int timeout)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLRDNORM };

	return poll(&p, 1, timeout) < 0 ? -1 : p.revents;
}

/* 0 or an errno */
static int next(int fd, struct flexmem_event *event)
{
	ssize_t n;

	memset(event, 0xee, sizeof(*event));
	n = read(fd, event, sizeof(*event));
	return n < 0 ? errno : n == sizeof(*event) ? 0 : EPROTO;
}

#define EXPECT_QUIET(fd) do {						\
	struct flexmem_event __none;					\
									\
	EXPECT_EQ(0, events(fd, 0));					\
	EXPECT_EQ(EAGAIN, next(fd, &__none));				\
} while (0)

/* One event, of these figures, and no further one. */
#define EXPECT_EVENT(fd, what, bytes) do {				\
	struct flexmem_event __e;					\
									\
	EXPECT_EQ(POLLIN | POLLRDNORM, events(fd, 0));			\
	ASSERT_EQ(0, next(fd, &__e));					\
	EXPECT_EQ(sizeof(__e), __e.size);				\
	EXPECT_EQ(what, (int)__e.level);				\
	EXPECT_EQ(0, __e.wanted);					\
	EXPECT_EQ(bytes, __e.in_use);					\
	EXPECT_EQ(REGION, __e.memory);					\
	EXPECT_QUIET(fd);						\
} while (0)

#endif /* PRESSURE_H */
