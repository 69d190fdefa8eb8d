// SPDX-License-Identifier: GPL-2.0
/*
 * Threads and processes on one file and on several at the same time. The
 * figures must agree at every moment, everything must be free in the end, and
 * the kernel must log no warning.
 */
#include "flexmem_test.h"

#define THREADS 4
#define MS 400		/* how long a test runs its threads */

FIXTURE(race) {
	int fd;
};

FIXTURE_VARIANT(race) {
	int mode;
	const char *params;
};

FIXTURE_VARIANT_ADD(race, pf_load_balance) {
	FM_PF, "order=load_balance max_regions=3 fallback_sizes=4G"
};
FIXTURE_VARIANT_ADD(race, vf_load_balance) {
	FM_VF, "order=load_balance max_regions=3 fallback_sizes=4G"
};
FIXTURE_VARIANT_ADD(race, vf_fill_first_best_fit) {
	FM_VF, "order=fill_first strategy=best_fit max_regions=3 fallback_sizes=4G"
};

FIXTURE_SETUP(race)
{
	LOAD(variant->params, NULL);
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, fm_trim(self->fd));
}

FIXTURE_TEARDOWN(race)
{
	close(self->fd);
	EXPECT_EMPTY(variant->mode);
}

struct work {
	pthread_t thread;
	int fd;
	unsigned int seed;
	__u64 until;
	unsigned int bad;	/* results that must not happen */
	unsigned int done;
	__u32 *handles;
	unsigned int nr;
};

/*
 * Whether to continue: until the time is over, but for at least 50 operations.
 */
static bool goes_on(const struct work *w)
{
	return w->done < 50 || fm_now_ms() < w->until;
}

/* Allocates and frees at random. Holds at most 64 allocations. */
static void *churn(void *arg)
{
	struct work *w = arg;
	struct flexmem_alloc held[64], reply;
	unsigned int nr = 0, i;
	int error;

	while (goes_on(w)) {
		if (nr < ARRAY_SIZE(held) && rand_r(&w->seed) % 2) {
			reply = CMD(alloc, .length = 1 + rand_r(&w->seed) % 65536,
				    .alignment = 1U << rand_r(&w->seed) % 13);
			error = raw_alloc(w->fd, &reply);
			w->bad += error != 0;
			if (!error)
				held[nr++] = reply;
		} else if (nr) {
			i = rand_r(&w->seed) % nr;
			error = i & 1 ? fm_free(w->fd, held[i].out_handle) :
				fm_free_address(w->fd, held[i].out_address);
			w->bad += error != 0;
			held[i] = held[--nr];
		}
		w->done++;
	}
	while (nr)
		w->bad += fm_free(w->fd, held[--nr].out_handle) != 0;
	return NULL;
}

/* The figures of one reply must be consistent at any time. */
static void *watch(void *arg)
{
	struct work *w = arg;
	struct fm_stats s;

	while (goes_on(w)) {
		s = fm_stats(w->fd);
		w->bad += s.out_used + s.out_free != s.out_total;
		w->bad += s.out_allocs - s.out_frees != s.out_allocated;
		w->bad += s.out_used_program > s.out_used;
		w->done++;
	}
	return NULL;
}

static void run(struct __test_metadata *_metadata, struct work *work, int nr,
		void *(*fn)(void *arg))
{
	int i;

	for (i = 0; i < nr; i++) {
		work[i].seed = 1234 + i;
		work[i].until = fm_now_ms() + MS;
		ASSERT_EQ(0, pthread_create(&work[i].thread, NULL, fn, &work[i]));
	}
}

static void join(struct __test_metadata *_metadata, struct work *work, int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, pthread_join(work[i].thread, NULL));
		EXPECT_EQ(0, work[i].bad);
		EXPECT_NE(0, work[i].done);
	}
}

TEST_F(race, threads_on_one_file)
{
	struct work work[THREADS] = { }, eye = { .fd = self->fd };
	int i;

	for (i = 0; i < THREADS; i++)
		work[i].fd = self->fd;
	run(_metadata, work, THREADS, churn);
	run(_metadata, &eye, 1, watch);
	join(_metadata, work, THREADS);
	join(_metadata, &eye, 1);
	EXPECT_EQ(0, fm_stats(self->fd).out_used);
	EXPECT_EQ(0, fm_stats(self->fd).out_client_used);
	EXPECT_STREQ("", fm_sums(self->fd, true));
}

TEST_F(race, threads_on_a_file_each)
{
	struct work work[THREADS] = { }, eye = { .fd = self->fd };
	int i;

	for (i = 0; i < THREADS; i++)
		work[i].fd = fm_open(variant->mode);
	run(_metadata, work, THREADS, churn);
	run(_metadata, &eye, 1, watch);
	join(_metadata, work, THREADS);
	join(_metadata, &eye, 1);
	for (i = 0; i < THREADS; i++)
		close(work[i].fd);
	EXPECT_STREQ("", fm_sums(self->fd, true));
}

/*
 * Moves a block between two regions: allocates in one, then frees in the other.
 */
static struct flexmem_alloc moving;

static void *move(void *arg)
{
	struct work *w = arg;
	struct flexmem_alloc from = moving, to;

	while (goes_on(w)) {
		w->bad += fm_alloc(w->fd, MiB, &to) != 0;
		/*
		 * the emptiest region comes first, so the new block is in the
		 * other region
		 */
		w->bad += to.out_address.region_id == from.out_address.region_id;
		w->bad += fm_free(w->fd, from.out_handle) != 0;
		from = to;
		w->done++;
	}
	return NULL;
}

/* Checks that the block is always in one of the regions. */
static void *find(void *arg)
{
	struct work *w = arg;
	__u64 used;

	while (goes_on(w)) {
		used = fm_stats(w->fd).out_used - 6 * GiB;
		w->bad += used != MiB && used != 2 * MiB;
		w->done++;
	}
	return NULL;
}

TEST(snapshots_are_of_one_moment)
{
	struct work mover = { }, eye[3] = { };
	struct flexmem_alloc full[8];
	unsigned int i;
	int fd;

	LOAD("order=load_balance max_regions=8 fallback_sizes=1G", NULL);
	fd = fm_open(FM_VF);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fm_trim(fd));
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, fm_alloc(fd, GiB, &full[i]));
	for (i = 0; i < 8; i++)
		if (full[i].out_address.region_id % 7 == 0)
			ASSERT_EQ(0, fm_free(fd, full[i].out_handle));
	ASSERT_EQ(0, fm_alloc(fd, MiB, &moving));
	mover.fd = fd;
	for (i = 0; i < 3; i++)
		eye[i].fd = fd;
	run(_metadata, &mover, 1, move);
	run(_metadata, eye, 3, find);
	join(_metadata, &mover, 1);
	join(_metadata, eye, 3);
	close(fd);
	EXPECT_EMPTY(FM_VF);
}

/* Several processes, some of which are killed while they work. */
TEST_F(race, processes)
{
	struct work work = { .until = fm_now_ms() + MS };
	int i, status;
	pid_t pid[THREADS];

	for (i = 0; i < THREADS; i++) {
		pid[i] = fork();
		ASSERT_LE(0, pid[i]);
		if (!pid[i]) {
			work.seed = i;
			if (i < THREADS / 2)
				work.until = UINT64_MAX;
			work.fd = fm_open(variant->mode);
			churn(&work);
			_exit(work.bad || !work.done);
		}
	}
	usleep(MS * 500);
	for (i = 0; i < THREADS / 2; i++)
		kill(pid[i], SIGKILL);
	for (i = 0; i < THREADS; i++) {
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, 0));
		EXPECT_EQ(i < THREADS / 2 ? SIGKILL : 0, status);
	}
	EXPECT_STREQ("", fm_sums(self->fd, true));
}

static void *free_all(void *arg)
{
	struct work *w = arg;
	unsigned int i;
	int error;

	for (i = 0; i < w->nr; i++) {
		error = fm_free(w->fd, w->handles[i]);
		w->done += !error;
		w->bad += error && error != ENOENT;
	}
	return NULL;
}

TEST_F(race, exactly_one_free_of_a_handle_wins)
{
	__u32 handles[500];
	struct work work[THREADS] = { };
	unsigned int i, round, won;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < ARRAY_SIZE(handles); i++)
			ASSERT_NE(0, handles[i] = fm_take(self->fd, 256));
		memset(work, 0, sizeof(work));
		for (i = 0; i < THREADS; i++) {
			work[i].fd = self->fd;
			work[i].handles = handles;
			work[i].nr = ARRAY_SIZE(handles);
		}
		run(_metadata, work, THREADS, free_all);
		for (won = 0, i = 0; i < THREADS; i++) {
			ASSERT_EQ(0, pthread_join(work[i].thread, NULL));
			EXPECT_EQ(0, work[i].bad);
			won += work[i].done;
		}
		ASSERT_EQ(ARRAY_SIZE(handles), won);
		ASSERT_EQ(0, fm_stats(self->fd).out_used);
	}
}

static void *free_batch(void *arg)
{
	struct work *w = arg;
	struct flexmem_free e[100];
	struct flexmem_batch batch = CMD(batch, .entry_size = sizeof(e[0]),
					 .entries = (uintptr_t)e);
	unsigned int i, j;

	for (i = 0; i < w->nr; i += batch.count) {
		batch.count = ARRAY_SIZE(e);
		for (j = 0; j < batch.count; j++)
			e[j] = CMD(free, .handle = w->handles[i + j]);
		w->bad += raw_free_batch(w->fd, &batch) != 0;
		for (j = 0; j < batch.count; j++) {
			w->done += !e[j].out_error;
			w->bad += e[j].out_error && e[j].out_error != ENOENT;
		}
	}
	return NULL;
}

TEST_F(race, exactly_one_free_wins_in_batches)
{
	__u32 handles[500];
	struct work work[THREADS] = { };
	unsigned int i, won = 0;

	for (i = 0; i < ARRAY_SIZE(handles); i++)
		ASSERT_NE(0, handles[i] = fm_take(self->fd, 256));
	for (i = 0; i < THREADS; i++) {
		work[i].fd = self->fd;
		work[i].handles = handles;
		work[i].nr = ARRAY_SIZE(handles);
	}
	/* two threads free allocations one by one, and two free batches */
	run(_metadata, work, 2, free_batch);
	run(_metadata, work + 2, 2, free_all);
	for (i = 0; i < THREADS; i++) {
		ASSERT_EQ(0, pthread_join(work[i].thread, NULL));
		EXPECT_EQ(0, work[i].bad);
		won += work[i].done;
	}
	EXPECT_EQ(ARRAY_SIZE(handles), won);
	EXPECT_STREQ("", fm_sums(self->fd, true));
}

/*
 * Runs until another thread has closed the descriptor. After that calls fail
 * with EBADF, or reach another file that got the number.
 */
static void *churn_until_closed(void *arg)
{
	struct work *w = arg;
	struct flexmem_alloc reply;
	int error;

	do {
		error = fm_alloc(w->fd, 1000, &reply);
		if (!error && w->done % 3)
			error = fm_free(w->fd, reply.out_handle);
		w->done++;
	} while (!error);
	w->bad += error != EBADF;
	return NULL;
}

TEST_F(race, close_while_others_call)
{
	struct work work[THREADS];
	int round, i, fd;

	for (round = 0; round < 10; round++) {
		memset(work, 0, sizeof(work));
		fd = fm_open(variant->mode);
		for (i = 0; i < THREADS; i++)
			work[i].fd = fd;
		run(_metadata, work, THREADS, churn_until_closed);
		usleep(10000);
		close(fd);
		join(_metadata, work, THREADS);
		ASSERT_EQ(0, fm_stats(self->fd).out_used);
	}
}

/*
 * Releases all empty regions, again and again, while threads acquire regions.
 */
static void *trim_all_the_time(void *arg)
{
	struct work *w = arg;

	while (goes_on(w)) {
		w->bad += fm_trim(w->fd) != 0;
		w->done++;
	}
	return NULL;
}

TEST_F(race, trim_while_others_allocate)
{
	struct work work[THREADS] = { }, trimmer = { .fd = self->fd };
	struct work eye = { .fd = self->fd };
	int i;

	for (i = 0; i < THREADS; i++)
		work[i].fd = i & 1 ? self->fd : fm_open(variant->mode);
	run(_metadata, work, THREADS, churn);
	run(_metadata, &trimmer, 1, trim_all_the_time);
	run(_metadata, &eye, 1, watch);
	join(_metadata, work, THREADS);
	join(_metadata, &trimmer, 1);
	join(_metadata, &eye, 1);
	EXPECT_STREQ("", fm_sums(self->fd, true));
}

/*
 * All threads need the last region at the same time. It must be acquired
 * exactly once.
 */
static void *take_one(void *arg)
{
	struct work *w = arg;

	while (fm_now_ms() < w->until - MS + 50)
		sched_yield();
	w->nr = fm_take(w->fd, 4 * GiB);
	w->done = 1;
	return NULL;
}

TEST_F(race, regions_are_acquired_once)
{
	struct work work[THREADS] = { };
	unsigned int i, won;
	int round;

	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, fm_trim(self->fd));
		for (i = 0; i < THREADS; i++)
			work[i].fd = self->fd;
		run(_metadata, work, THREADS, take_one);
		join(_metadata, work, THREADS);
		for (won = 0, i = 0; i < THREADS; i++) {
			won += !!work[i].nr;
			if (work[i].nr)
				ASSERT_EQ(0, fm_free(self->fd, work[i].nr));
		}
		EXPECT_EQ(3, won);
		EXPECT_EQ(3, fm_stats(self->fd).out_regions);
	}
}

TEST_HARNESS_MAIN
