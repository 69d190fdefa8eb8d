// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations that wait for memory: others are told, and what they give back is
 * got at once.
 */
#include "pressure.h"

struct waiter {
	pthread_t thread;
	int fd;
	int error;
	__u64 took_ms;
	struct flexmem_alloc reply;
	struct flexmem_event told;	/* to Bob, when it began to wait */
};

static void *waiter(void *arg)
{
	struct waiter *w = arg;
	__u64 began = fm_now_ms();

	w->error = fm_alloc_flags(w->fd, GiB, FLEXMEM_ALLOC_WAIT, &w->reply);
	w->took_ms = fm_now_ms() - began;
	return NULL;
}

/* It waits, and that is an event that Bob is told. */
#define WAIT(w, file) do {						\
	memset(w, 0, sizeof(*(w)));					\
	(w)->fd = file;							\
	ASSERT_EQ(0, pthread_create(&(w)->thread, NULL, waiter, w));	\
	ASSERT_EQ(POLLIN | POLLRDNORM, events(self->bob, -1));		\
	ASSERT_EQ(0, next(self->bob, &(w)->told));			\
} while (0)

#define JOIN(w) ASSERT_EQ(0, pthread_join((w)->thread, NULL))

#define EXPECT_TOLD(w, bytes) do {					\
	EXPECT_EQ(CRITICAL, (int)(w)->told.level);			\
	EXPECT_EQ(bytes, (w)->told.wanted);				\
} while (0)

/*
 * A wait ends after a second, whatever else the machine was doing: then it may
 * be over before Bob has read of it, or before it is helped, and is done again.
 * Who has waited in vain so often was not helped.
 */
#define TRIES 20

/* The kernel counts in ticks of up to 10 ms, the first of which has begun. */
#define WAITED_MS (FLEXMEM_WAIT_MS - 20)

static bool too_late(const struct waiter *w)
{
	return w->took_ms >= WAITED_MS;
}

/* All events that there are, unseen */
static void drain(int fd)
{
	struct flexmem_event e;

	while (!next(fd, &e))
		;
}

/* Root waits for memory that is there after @help, which undoes @prepare. */
#define RELIEVED(w, prepare, help) do {					\
	unsigned int __try = 0;						\
									\
	do {								\
		if (__try)						\
			drain(self->bob);				\
		prepare;						\
		WAIT(w, self->root);					\
		help;							\
		JOIN(w);						\
		if (too_late(w) && !(w)->error)				\
			fm_free(self->root, (w)->reply.out_handle);	\
	} while (too_late(w) && ++__try < TRIES);			\
	EXPECT_EQ(0, (w)->error);					\
	EXPECT_FALSE(too_late(w));					\
	EXPECT_TOLD(w, GiB);						\
} while (0)

/* The region is full. */
#define FULL() do {							\
	USE(REGION);							\
	EXPECT_EVENT(self->bob, CRITICAL, REGION);			\
} while (0)

TEST_F(pressure, gives_up_after_a_while)
{
	struct flexmem_event e;
	struct waiter w;
	int tries = 0;

	USE(REGION - GiB / 2);
	EXPECT_EVENT(self->bob, MODERATE, REGION - GiB / 2);
	do {
		WAIT(&w, self->root);
		JOIN(&w);
		EXPECT_EQ(ENOMEM, w.error);
		EXPECT_LE(WAITED_MS, w.took_ms);
		EXPECT_EQ(FLEXMEM_REASON_MAX_REGIONS, w.reply.out_reason);
		EXPECT_EQ(GiB / 2, w.reply.out_total_free);
		EXPECT_EQ(GiB / 2, w.reply.out_largest_free);
	} while (!w.told.wanted && ++tries < TRIES);
	EXPECT_TOLD(&w, GiB);
	/* nobody waits any more, and that is news as well */
	ASSERT_EQ(0, next(self->bob, &e));
	EXPECT_EQ(MODERATE, (int)e.level);
	EXPECT_EQ(0, e.wanted);
	EXPECT_QUIET(self->bob);
}

TEST_F(pressure, gets_what_is_freed)
{
	struct waiter w;
	__u32 handle;

	USE(GiB);
	RELIEVED(&w, {
		handle = fm_take(self->alice, 3 * GiB);
		ASSERT_NE(0, handle);
		EXPECT_EVENT(self->bob, CRITICAL, REGION);
	}, ASSERT_EQ(0, fm_free(self->alice, handle)));
	EXPECT_EQ(FLEXMEM_REASON_NONE, w.reply.out_reason);
	EXPECT_EVENT(self->bob, NONE, 2 * GiB);
	ASSERT_EQ(0, fm_free(self->root, w.reply.out_handle));
}

TEST_F(pressure, gets_what_is_cut_off)
{
	struct waiter w;

	RELIEVED(&w, FULL(), USE(2 * GiB));
}

TEST_F(pressure, gets_what_is_closed)
{
	struct waiter w;

	RELIEVED(&w, {
		if (self->alice < 0) {
			self->alice = fm_open_as(variant->mode, ALICE);
			self->handle = fm_take(self->alice, UNIT);
		}
		FULL();
	}, {
		close(self->alice);
		self->alice = -1;
	});
}

/* Bit by bit: until it fits. */
TEST_F(pressure, waits_until_it_fits)
{
	struct waiter w;
	__u32 handle[8] = { };
	unsigned int i;

	RELIEVED(&w, {
		for (i = 0; i < 8; i++) {
			if (handle[i])
				ASSERT_EQ(0, fm_free(self->bob, handle[i]));
		}
		for (i = 0; i < 8; i++) {
			handle[i] = fm_take(self->bob, i == 7 ?
					    GiB / 2 - UNIT : GiB / 2);
			ASSERT_NE(0, handle[i]);
		}
		drain(self->bob);
	}, {
		/* these two are no neighbours: it is in pieces */
		ASSERT_EQ(0, fm_free(self->bob, handle[1]));
		ASSERT_EQ(0, fm_free(self->bob, handle[5]));
		ASSERT_EQ(0, fm_free(self->bob, handle[2]));
		handle[1] = 0;
		handle[5] = 0;
		handle[2] = 0;
	});
}

TEST_F(pressure, what_a_reset_gives_back_is_got)
{
	struct waiter w;

	RELIEVED(&w, {
		/* what the last reset took away can be freed all the same */
		fm_free(self->alice, self->handle);
		self->handle = fm_take(self->alice, UNIT);
		FULL();
	}, RESET(variant->mode));
}

/* After the function has been away: new files, as in the beginning. */
#define OPEN_AGAIN() do {						\
	close(self->root);						\
	close(self->alice);						\
	close(self->bob);						\
	OPEN_TENANTS();							\
	self->handle = fm_take(self->alice, UNIT);			\
	ASSERT_NE(0, self->handle);					\
	ASSERT_EQ(0, fcntl(self->bob, F_SETFL, O_NONBLOCK));		\
} while (0)

TEST_F(pressure, enodev_when_the_device_goes)
{
	struct waiter w;
	int tries = 0;

	do {
		FULL();
		WAIT(&w, self->alice);
		UNBIND(variant->mode);
		JOIN(&w);
		BIND(variant->mode);
		OPEN_AGAIN();
	} while (too_late(&w) && ++tries < TRIES);
	EXPECT_EQ(ENODEV, w.error);
	EXPECT_FALSE(too_late(&w));
	EXPECT_TOLD(&w, GiB);
}

TEST_F(pressure, several_wait_at_once)
{
	struct flexmem_event e;
	struct waiter w[2];
	int tries = 0, i;

	for (;;) {
		FULL();
		WAIT(&w[0], self->root);
		WAIT(&w[1], self->alice);
		USE(2 * GiB);
		JOIN(&w[0]);
		JOIN(&w[1]);
		if ((!too_late(&w[0]) && !too_late(&w[1])) || ++tries == TRIES)
			break;
		for (i = 0; i < 2; i++) {
			if (!w[i].error)
				ASSERT_EQ(0, fm_free(w[i].fd,
						     w[i].reply.out_handle));
		}
		drain(self->bob);
	}
	EXPECT_EQ(0, w[0].error);
	EXPECT_EQ(0, w[1].error);
	EXPECT_TOLD(&w[0], GiB);
	EXPECT_TOLD(&w[1], 2 * GiB);
	/* it was full before, and is full again: that is no news */
	EXPECT_QUIET(self->bob);
	USE(UNIT);
	ASSERT_EQ(0, next(self->bob, &e));
	EXPECT_EQ(NONE, (int)e.level);
	EXPECT_EQ(0, e.wanted);
	EXPECT_EQ(2 * GiB + UNIT, e.in_use);
}

/* Nobody can help it: it fails at once, and nobody is told. */
TEST_F(pressure, no_waiting_for_what_cannot_come)
{
	struct flexmem_alloc reply;
	int tries = 0;
	__u64 began;

	do {
		began = fm_now_ms();
		EXPECT_EQ(ENOMEM, fm_alloc_flags(self->bob, REGION + 1,
						 FLEXMEM_ALLOC_WAIT, &reply));
		EXPECT_EQ(FLEXMEM_REASON_REGION_SIZE, reply.out_reason);
		ASSERT_EQ(0, raw_set_quota(self->root,
					   &CMD(quota, .kind = FLEXMEM_OWNER_USER,
						.id = BOB, .limit = MiB,
						.flags = FLEXMEM_QUOTA_LIMIT)));
		EXPECT_EQ(ENOMEM, fm_alloc_flags(self->bob, GiB,
						 FLEXMEM_ALLOC_WAIT, &reply));
		EXPECT_EQ(FLEXMEM_REASON_USER_LIMIT, reply.out_reason);
		EXPECT_EQ(0, raw_set_quota(self->root,
					   &CMD(quota, .kind = FLEXMEM_OWNER_USER,
						.id = BOB,
						.limit = FLEXMEM_NO_LIMIT,
						.flags = FLEXMEM_QUOTA_LIMIT)));
		EXPECT_QUIET(self->bob);
	} while (fm_now_ms() - began >= WAITED_MS && ++tries < TRIES);
	EXPECT_GT(TRIES, tries);
	/* nor if there is room */
	EXPECT_EQ(0, fm_alloc_flags(self->bob, GiB, FLEXMEM_ALLOC_WAIT, &reply));
	EXPECT_QUIET(self->bob);
}

TEST_F(pressure, a_batch_does_not_wait)
{
	struct flexmem_alloc entries[3] = {
		CMD(alloc, .length = UNIT),
		CMD(alloc, .length = UNIT, .flags = FLEXMEM_ALLOC_WAIT),
		CMD(alloc, .length = UNIT, .flags = FLEXMEM_ALLOC_GROWABLE),
	};
	struct flexmem_batch batch = CMD(batch, .count = 3,
					 .entry_size = sizeof(entries[0]),
					 .entries = (uintptr_t)entries);

	must(alloc_batch, self->bob, &batch);
	EXPECT_EQ(3, batch.out_done);
	EXPECT_EQ(0, entries[0].out_error);
	EXPECT_EQ(EINVAL, entries[1].out_error);
	EXPECT_EQ(0, entries[1].out_handle);
	EXPECT_EQ(0, entries[2].out_error);
	EXPECT_QUIET(self->bob);
}

/* Whoever is killed does not wait on. */
TEST_F(pressure, killed_while_waiting)
{
	struct flexmem_alloc reply;
	struct flexmem_event e;
	int tries = 0, status;
	struct child c;
	__u64 began;

	USE(REGION);
	EXPECT_EVENT(self->bob, CRITICAL, REGION);
	do {
		began = fm_now_ms();
		if (child_start(&c))
			_exit(fm_alloc_flags(self->root, GiB,
					     FLEXMEM_ALLOC_WAIT, &reply));
		ASSERT_EQ(POLLIN | POLLRDNORM, events(self->bob, -1));
		ASSERT_EQ(0, next(self->bob, &e));
		status = child_kill(&c);
	} while (fm_now_ms() - began >= WAITED_MS && ++tries < TRIES);
	EXPECT_GT(TRIES, tries);
	EXPECT_EQ(SIGKILL, status);
	EXPECT_EQ(CRITICAL, (int)e.level);
	EXPECT_EQ(GiB, e.wanted);
	USE(UNIT);
	ASSERT_EQ(0, next(self->bob, &e));
	EXPECT_EQ(0, e.wanted);
	EXPECT_EQ(NONE, (int)e.level);
}

TEST_HARNESS_MAIN
