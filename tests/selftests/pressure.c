// SPDX-License-Identifier: GPL-2.0
/*
 * Pressure: events of a node by poll() and read(). Each level must begin and
 * end exactly at its threshold.
 *
 * There is one region. Alice has one allocation and resizes it to set the
 * number of bytes in use. Bob reads the events.
 */
#include "tenants.h"

#include <poll.h>
#include <sys/epoll.h>

#define REGION (4 * GiB)
#define UNIT 128ULL

#define NONE FLEXMEM_PRESSURE_NONE
#define MODERATE FLEXMEM_PRESSURE_MODERATE
#define CRITICAL FLEXMEM_PRESSURE_CRITICAL

static short events(int fd, int timeout)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLRDNORM };

	return poll(&p, 1, timeout) < 0 ? -1 : p.revents;
}

/* Reads an event. Returns 0 or an errno. */
static int next(int fd, struct flexmem_event *event)
{
	ssize_t n;

	memset(event, 0xee, sizeof(*event));
	n = read(fd, event, sizeof(*event));
	return n < 0 ? errno : n == sizeof(*event) ? 0 : EPROTO;
}

/* If no event has come after this time, none will come. */
#define QUIET_MS (2 * FLEXMEM_EVENT_MS)

FIXTURE(pressure) {
	int root;
	int alice;
	int bob;
	__u32 handle;	/* of Alice; 128 bytes at first */
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
	ASSERT_EQ(0, fcntl(self->root, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, fcntl(self->bob, F_SETFL, O_NONBLOCK));
	/* reads the events that may be pending from before this test */
	while (events(self->bob, QUIET_MS))
		next(self->bob, &(struct flexmem_event){});
	while (events(self->root, 0))
		next(self->root, &(struct flexmem_event){});
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

/* Resizes. Returns 0 or an errno. */
static int resize(int fd, __u32 handle, __u64 length)
{
	return raw_resize(fd, &CMD(resize, .handle = handle, .length = length));
}

#define USE(bytes) ASSERT_EQ(0, resize(self->alice, self->handle, bytes))

/* The file must not block, or a test that passes would never end. */
#define EXPECT_QUIET(fd) do {						\
	struct flexmem_event __none;					\
									\
	ASSERT_EQ(O_NONBLOCK, fcntl(fd, F_GETFL) & O_NONBLOCK);		\
	EXPECT_EQ(0, events(fd, QUIET_MS));				\
	EXPECT_EQ(EAGAIN, next(fd, &__none));				\
} while (0)

/* Expects one event with these figures and no other. */
#define EXPECT_EVENT(fd, what, bytes) do {				\
	struct flexmem_event __e;					\
									\
	EXPECT_EQ(POLLIN | POLLRDNORM, events(fd, -1));			\
	ASSERT_EQ(0, next(fd, &__e));					\
	EXPECT_EQ(sizeof(__e), __e.size);				\
	EXPECT_EQ(what, (int)__e.level);				\
	EXPECT_EQ(bytes, __e.in_use);					\
	EXPECT_EQ(REGION, __e.memory);					\
	EXPECT_QUIET(fd);						\
} while (0)

/* The smallest multiple of 128 that is @n percent of a region or more. */
static __u64 percent(unsigned int n)
{
	__u64 bytes = (REGION * n + 99) / 100;

	return (bytes + UNIT - 1) / UNIT * UNIT;
}

TEST_F(pressure, quiet_at_first)
{
	EXPECT_QUIET(self->bob);
	USE(percent(FLEXMEM_MODERATE_ENTER) - UNIT);
	EXPECT_QUIET(self->bob);
	USE(UNIT);
	EXPECT_QUIET(self->bob);
}

TEST_F(pressure, a_level_begins_and_ends_exactly)
{
	__u64 moderate = percent(FLEXMEM_MODERATE_ENTER);
	__u64 critical = percent(FLEXMEM_CRITICAL_ENTER);
	__u64 still_critical = percent(FLEXMEM_CRITICAL_LEAVE);
	__u64 still_moderate = percent(FLEXMEM_MODERATE_LEAVE);

	USE(moderate - UNIT);
	EXPECT_QUIET(self->bob);
	USE(moderate);
	EXPECT_EVENT(self->bob, MODERATE, moderate);
	USE(critical - UNIT);
	EXPECT_QUIET(self->bob);
	USE(critical);
	EXPECT_EVENT(self->bob, CRITICAL, critical);
	USE(REGION);
	EXPECT_QUIET(self->bob);
	USE(still_critical);
	EXPECT_QUIET(self->bob);
	USE(still_critical - UNIT);
	EXPECT_EVENT(self->bob, MODERATE, still_critical - UNIT);
	USE(still_moderate);
	EXPECT_QUIET(self->bob);
	USE(still_moderate - UNIT);
	EXPECT_EVENT(self->bob, NONE, still_moderate - UNIT);
	/* goes from the lowest level to the highest in one step */
	USE(REGION);
	EXPECT_EVENT(self->bob, CRITICAL, REGION);
	USE(UNIT);
	EXPECT_EVENT(self->bob, NONE, UNIT);
}

/*
 * A program that allocates and frees around a threshold causes one event, not
 * many.
 */
TEST_F(pressure, no_flapping)
{
	static const unsigned int enter[] = {
		FLEXMEM_MODERATE_ENTER, FLEXMEM_CRITICAL_ENTER
	};
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(enter); i++) {
		USE(percent(enter[i]));
		EXPECT_EVENT(self->bob, i ? CRITICAL : MODERATE,
			     percent(enter[i]));
		for (n = 0; n < 3; n++) {
			USE(percent(enter[i]) - UNIT);
			EXPECT_QUIET(self->bob);
			USE(percent(enter[i]));
			EXPECT_QUIET(self->bob);
		}
	}
}

TEST_F(pressure, every_file_gets_each_event_once)
{
	int other = fm_open_as(variant->mode, BOB), new;
	struct flexmem_event a, b;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, fcntl(other, F_SETFL, O_NONBLOCK));
	USE(REGION);
	EXPECT_EQ(POLLIN | POLLRDNORM, events(self->alice, -1));
	ASSERT_EQ(0, next(self->bob, &a));
	EXPECT_QUIET(self->bob);
	ASSERT_EQ(0, next(other, &b));
	EXPECT_EQ(a.sequence, b.sequence);
	EXPECT_QUIET(other);
	/* a new file reads an event with the present level */
	new = fm_open_as(variant->mode, CAROL);
	ASSERT_LE(0, new);
	ASSERT_EQ(0, fcntl(new, F_SETFL, O_NONBLOCK));
	EXPECT_EVENT(new, CRITICAL, REGION);
	close(new);
	close(other);
}

/*
 * A file that has missed several events reads a single one, with the present
 * figures.
 */
TEST_F(pressure, figures_are_of_the_moment)
{
	struct flexmem_event before, after;

	USE(REGION);
	EXPECT_EQ(POLLIN | POLLRDNORM, events(self->bob, -1));
	ASSERT_EQ(0, next(self->bob, &before));
	USE(UNIT);
	USE(REGION);
	USE(percent(75));
	/*
	 * on a slow machine there may be events about the levels in between too
	 */
	do {
		EXPECT_EQ(POLLIN | POLLRDNORM, events(self->bob, -1));
		ASSERT_EQ(0, next(self->bob, &after));
		EXPECT_LT(before.sequence, after.sequence);
		EXPECT_EQ(percent(75), after.in_use);
	} while (after.level != MODERATE);
	EXPECT_QUIET(self->bob);
}

TEST_F(pressure, orphaned_and_quarantined_bytes_are_in_use)
{
	/*
	 * Rounds up to pages, so that Alice's allocation covers all of root's
	 * bytes. Otherwise a block could have bytes of both users, and the
	 * background worker would scrub it.
	 */
	const __u64 used = (percent(60) + 4095) / 4096 * 4096;
	struct flexmem_alloc m, b;
	char *p;

	USE(used);
	ASSERT_EQ(0, fm_alloc_flags(self->root, GiB, FLEXMEM_ALLOC_MAPPABLE, &m));
	p = fm_mmap(self->root, m.out_handle, 0, 4096);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EVENT(self->bob, MODERATE, GiB + used);
	ASSERT_EQ(0, fm_free(self->root, m.out_handle));
	EXPECT_QUIET(self->bob);
	munmap(p, 4096);
	EXPECT_EVENT(self->bob, NONE, used);

	/*
	 * the scrub of Alice's bytes for Bob fails, so the block goes into
	 * quarantine
	 */
	ASSERT_EQ(0, fm_alloc(self->alice, GiB, &m));
	EXPECT_EVENT(self->bob, MODERATE, GiB + used);
	ASSERT_EQ(0, fm_free(self->alice, m.out_handle));
	EXPECT_EVENT(self->bob, NONE, used);
	/*
	 * injects many faults, because background scrubs of another PF or VF
	 * use some of them up
	 */
	KNOB("fault_command", "scrub");
	KNOB("fail_commands", "1000");
	EXPECT_EQ(EIO, fm_alloc(self->bob, GiB, &b));
	EXPECT_EVENT(self->bob, MODERATE, GiB + used);
	fm_mend();
	ASSERT_EQ(0, fm_trim(self->root));
	EXPECT_EVENT(self->bob, NONE, used);
}

TEST_F(pressure, short_and_long_buffers)
{
	unsigned char buf[64];
	unsigned int i;

	USE(REGION);
	EXPECT_EQ(POLLIN | POLLRDNORM, events(self->bob, -1));
	for (i = 0; i < FLEXMEM_EVENT_MIN; i += 13) {
		EXPECT_EQ(-1, read(self->bob, buf, i));
		EXPECT_EQ(EINVAL, errno);
	}
	EXPECT_EQ(POLLIN | POLLRDNORM, events(self->bob, 0));
	memset(buf, 0xee, sizeof(buf));
	EXPECT_EQ(sizeof(struct flexmem_event),
		  read(self->bob, buf, sizeof(buf)));
	for (i = sizeof(struct flexmem_event); i < sizeof(buf); i++)
		EXPECT_EQ(0xee, buf[i]);
	EXPECT_EQ(-1, pread(self->bob, buf, sizeof(buf), 0));
	EXPECT_EQ(ESPIPE, errno);
}

TEST_F(pressure, an_event_that_cannot_be_written_is_not_lost)
{
	char *page = fm_two_pages(PROT_READ);

	ASSERT_NE(NULL, page);
	USE(REGION);
	EXPECT_EQ(POLLIN | POLLRDNORM, events(self->bob, -1));
	EXPECT_EQ(-1, read(self->bob, page + 4096, sizeof(struct flexmem_event)));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EVENT(self->bob, CRITICAL, REGION);
}

/* ---- a file after a failed ALLOC ---- */

TEST_F(pressure, a_free_after_a_failure_is_an_event)
{
	struct flexmem_alloc reply;
	struct flexmem_event wish;

	USE(GiB);
	EXPECT_EQ(ENOMEM, fm_alloc(self->bob, REGION, &reply));
	EXPECT_QUIET(self->bob);
	USE(GiB - UNIT);
	EXPECT_EVENT(self->bob, NONE, GiB - UNIT);
	/* a failed ALLOC causes one event about a free, and only for its file */
	USE(UNIT);
	EXPECT_QUIET(self->bob);
	EXPECT_EQ(POLLIN | POLLRDNORM, events(self->root, -1));
	ASSERT_EQ(0, next(self->root, &wish));
	EXPECT_EQ(FLEXMEM_EVENT_WANTED, wish.flags);
	EXPECT_EQ(REGION, wish.wanted);
	EXPECT_QUIET(self->root);
	/* a request that can never fit causes no event */
	EXPECT_EQ(ENOMEM, fm_alloc(self->bob, REGION + 1, &reply));
	EXPECT_EQ(FLEXMEM_REASON_REGION_SIZE, reply.out_reason);
	USE(2 * UNIT);
	USE(UNIT);
	EXPECT_QUIET(self->bob);
}

struct waiter {
	pthread_t thread;
	int fd;
	int error;
	struct flexmem_alloc reply;
	_Atomic unsigned int failures;
};

/*
 * Waits for memory with a time limit, and then tries again, as the library
 * does.
 */
static void *waiter(void *arg)
{
	struct waiter *w = arg;
	struct flexmem_event e;

	while ((w->error = fm_alloc(w->fd, GiB, &w->reply)) == ENOMEM) {
		w->failures++;
		if (events(w->fd, 60000) != (POLLIN | POLLRDNORM))
			break;
		next(w->fd, &e);
	}
	return NULL;
}

TEST_F(pressure, a_program_can_wait_for_memory)
{
	struct waiter w = { .fd = self->bob };
	__u64 began;

	USE(REGION);
	EXPECT_EVENT(self->bob, CRITICAL, REGION);
	ASSERT_EQ(0, pthread_create(&w.thread, NULL, waiter, &w));
	while (!w.failures)
		usleep(1000);
	began = fm_now_ms();
	USE(UNIT);
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(0, w.error);
	/*
	 * The waiter polls for up to 60 s. It returned sooner, so an event
	 * ended its wait.
	 */
	EXPECT_LT(fm_now_ms() - began, 60000);
}

/* ---- waiting for an event ---- */

struct reader {
	pthread_t thread;
	int fd;
	int error;
	struct flexmem_event event;
	_Atomic bool done;
};

static void *reader(void *arg)
{
	struct reader *r = arg;

	r->error = next(r->fd, &r->event);
	r->done = true;
	return NULL;
}

static void nothing(int signal)
{
	(void)signal;
}

TEST_F(pressure, read_waits_for_an_event)
{
	struct sigaction sa = { .sa_handler = nothing };
	int fd = fm_open_as(variant->mode, BOB);
	struct reader r = { .fd = fd };

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pthread_create(&r.thread, NULL, reader, &r));
	usleep(100000);
	USE(REGION);
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(0, r.error);
	EXPECT_EQ(CRITICAL, (int)r.event.level);

	sigaction(SIGUSR1, &sa, NULL);
	ASSERT_EQ(0, pthread_create(&r.thread, NULL, reader, &r));
	/* repeats the signal, because read() may not have begun yet */
	do {
		usleep(100000);
		pthread_kill(r.thread, SIGUSR1);
	} while (pthread_tryjoin_np(r.thread, NULL) == EBUSY);
	EXPECT_EQ(EINTR, r.error);
	close(fd);
}

TEST_F(pressure, an_event_is_read_once)
{
	int fd = fm_open_as(variant->mode, BOB);
	struct reader r[2] = { { .fd = fd }, { .fd = fd } };
	unsigned int i;

	ASSERT_LE(0, fd);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&r[i].thread, NULL, reader, &r[i]));
	USE(REGION);
	while (!r[0].done && !r[1].done)
		usleep(1000);
	/* the other thread waits for a further event */
	usleep(100000);
	EXPECT_FALSE(r[0].done && r[1].done);
	USE(UNIT);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(r[i].thread, NULL));
		EXPECT_EQ(0, r[i].error);
	}
	EXPECT_EQ(CRITICAL + NONE, (int)(r[0].event.level + r[1].event.level));
	EXPECT_NE(r[0].event.sequence, r[1].event.sequence);
	close(fd);
}

struct poller {
	pthread_t thread;
	int fd;
	short events;
};

static void *poller(void *arg)
{
	struct poller *p = arg;

	p->events = events(p->fd, -1);
	return NULL;
}

TEST_F(pressure, poll_wakes_up)
{
	struct poller p = { .fd = self->bob };

	ASSERT_EQ(0, pthread_create(&p.thread, NULL, poller, &p));
	usleep(100000);
	USE(REGION);
	ASSERT_EQ(0, pthread_join(p.thread, NULL));
	EXPECT_EQ(POLLIN | POLLRDNORM, p.events);
}

static void *exclusive_poller(void *arg)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	struct poller *p = arg;
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (!epoll_ctl(fd, EPOLL_CTL_ADD, p->fd, &e) &&
	    epoll_wait(fd, &e, 1, -1) == 1)
		p->events = e.events;
	close(fd);
	return NULL;
}

/*
 * Each file reads its own event, so no reader takes the event of another
 * reader.
 */
TEST_F(pressure, exclusive_pollers_all_wake_up)
{
	struct poller p[3] = { };
	unsigned int i;

	/*
	 * fm_open_as() changes the user, which interrupts all threads, so all
	 * files are opened before the threads start
	 */
	for (i = 0; i < ARRAY_SIZE(p); i++) {
		p[i].fd = fm_open_as(variant->mode, BOB);
		ASSERT_LE(0, p[i].fd);
	}
	for (i = 0; i < ARRAY_SIZE(p); i++)
		ASSERT_EQ(0, pthread_create(&p[i].thread, NULL,
					    exclusive_poller, &p[i]));
	usleep(300000);
	USE(REGION);
	for (i = 0; i < ARRAY_SIZE(p); i++) {
		ASSERT_EQ(0, pthread_join(p[i].thread, NULL));
		EXPECT_EQ(EPOLLIN, p[i].events);
		close(p[i].fd);
	}
}

TEST_F(pressure, hangup_when_the_device_goes)
{
	int fd = fm_open_as(variant->mode, BOB);
	struct poller p = { .fd = self->bob };
	struct flexmem_event e;
	struct reader r = { .fd = fd };

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pthread_create(&p.thread, NULL, poller, &p));
	ASSERT_EQ(0, pthread_create(&r.thread, NULL, reader, &r));
	usleep(100000);
	UNBIND(variant->mode);
	ASSERT_EQ(0, pthread_join(p.thread, NULL));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(POLLERR | POLLHUP, p.events);
	EXPECT_EQ(ENODEV, r.error);
	EXPECT_EQ(ENODEV, next(self->bob, &e));
	BIND(variant->mode);
	close(fd);
	close(self->root);
	self->root = fm_open(variant->mode);
	ASSERT_LE(0, self->root);
}

/* ---- memory that is not acquired yet ---- */

FIXTURE(reach) {
	int alice;
	int bob;
};

FIXTURE_VARIANT(reach) {
	int mode;
	unsigned int regions;	/* that the PF or VF can have */
};

FIXTURE_VARIANT_ADD(reach, pf) { FM_PF, 3 };	/* limited by max_regions */
FIXTURE_VARIANT_ADD(reach, vf) { FM_VF, 2 };	/* limited by its capacity */

FIXTURE_SETUP(reach)
{
	LOAD("max_regions=3 fallback_sizes=4G order=fill_first acquire=lazy "
	     "program_slots=0" FM_PF_FOR_ALL,
	     "num_vfs=2 memory=48G vf_capacity=8G");
	self->alice = fm_open_as(variant->mode, ALICE);
	self->bob = fm_open_as(variant->mode, BOB);
	ASSERT_LE(0, self->alice);
	ASSERT_LE(0, self->bob);
	ASSERT_EQ(0, fcntl(self->bob, F_SETFL, O_NONBLOCK));
	while (events(self->bob, QUIET_MS))
		next(self->bob, &(struct flexmem_event){});
}

FIXTURE_TEARDOWN(reach)
{
	int root = fm_open(variant->mode);

	close(self->alice);
	close(self->bob);
	EXPECT_EQ(0, fm_trim(root));
	close(root);
	EXPECT_SETTLED(variant->mode);
}

TEST_F(reach, memory_that_could_be_acquired_counts)
{
	struct flexmem_event e;
	unsigned int i;

	for (i = 0; i < variant->regions; i++) {
		EXPECT_QUIET(self->bob);
		ASSERT_NE(0, fm_take(self->alice, REGION - MiB));
	}
	EXPECT_EQ(POLLIN | POLLRDNORM, events(self->bob, -1));
	ASSERT_EQ(0, next(self->bob, &e));
	EXPECT_EQ(CRITICAL, (int)e.level);
	EXPECT_EQ(variant->regions * REGION, e.memory);
	EXPECT_EQ(variant->regions * (REGION - MiB), e.in_use);
}

TEST_HARNESS_MAIN
