// SPDX-License-Identifier: GPL-2.0
/*
 * A firmware that fails, loses or repeats replies, or is slow or dead, as files
 * in debugfs tell the simulator. In each case the call must end in bounded time
 * with the documented errno, and must block no other call. Afterwards firmware
 * and driver must agree on every region.
 */
#include "tenants.h"

#define PARAMS "max_regions=4 fallback_sizes=4G acquire=lazy program_slots=0 "
#define SIM "num_vfs=1 memory=256G vf_capacity=64G"
/*
 * Timeout in ms for a dead firmware. It is short, because the firmware never
 * answers.
 */
#define HASTY "50"
#define REGION (4 * GiB)

FIXTURE(fw) {
	int fd;
};

FIXTURE_VARIANT(fw) {
	int mode;
	const char *dir;	/* the PF's or VF's directory in debugfs */
	const char *order;
};

FIXTURE_VARIANT_ADD(fw, pf) { FM_PF, "pf/", "order=load_balance" };
FIXTURE_VARIANT_ADD(fw, vf) { FM_VF, "vf0/", "order=load_balance" };
FIXTURE_VARIANT_ADD(fw, vf_fill_first) { FM_VF, "vf0/", "order=fill_first" };

/* Writes to a debugfs file of a PF or VF. Returns 0 or an errno. */
static int knob(const char *dir, const char *name, const char *value)
{
	char path[64];

	snprintf(path, sizeof(path), "%s%s", dir, name);
	return fm_knob(path, value);
}

/* Counts the lines of a debugfs file of the simulator about a PF or VF. */
static int lines(const char *dir, const char *name)
{
	char path[128], line[128];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), FM_KNOBS "%s%s", dir, name);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n++;
	fclose(f);
	return n;
}

FIXTURE_SETUP(fw)
{
	char params[256];

	snprintf(params, sizeof(params), PARAMS "%s", variant->order);
	ASSERT_EQ(0, fm_load(params, SIM, false));
	fm_mend();
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, fm_trim(self->fd));
	ASSERT_EQ(0, lines(variant->dir, "memory"));
}

/*
 * Checks that nothing is lost: all regions can be acquired, and released to the
 * last byte.
 */
FIXTURE_TEARDOWN(fw)
{
	int fd, i;

	fm_mend();
	close(self->fd);
	fd = fm_open(variant->mode);
	EXPECT_EQ(0, fm_trim(fd));
	EXPECT_EQ(0, lines(variant->dir, "memory"));
	EXPECT_FALSE(fm_exhausted(fd));
	for (i = 0; i < 4; i++)
		EXPECT_NE(0, fm_take(fd, REGION));
	EXPECT_EQ(4, lines(variant->dir, "memory"));
	if (variant->mode == FM_VF)
		EXPECT_EQ(4, lines(variant->dir, "table"));
	EXPECT_STREQ("", fm_sums(fd, false));
	close(fd);
	EXPECT_EMPTY(variant->mode);
}

/* Faults of the firmware, with the error that a valid call must return. */
static const struct {
	const char *fault;
	int error;
} losses[] = {
	{ "fail_commands", EIO },
	{ "drop_requests", ETIMEDOUT },
	{ "drop_replies", ETIMEDOUT },
};

/*
 * The commands that an allocation sends, and those of a TRIM. A PF has no
 * slots.
 */
static const char * const acquire_commands[] = { "acquire", "slot_set" };
static const char * const release_commands[] = { "slot_clear", "release" };

#define NR_COMMANDS(mode) ((mode) == FM_VF ? 2 : 1)

TEST_F(fw, a_fault_while_acquiring_fails_once_and_exhausts_nothing)
{
	struct flexmem_alloc reply;
	struct snapshot before;
	int c;
	unsigned int i;

	for (c = 0; c < NR_COMMANDS(variant->mode); c++)
		for (i = 0; i < ARRAY_SIZE(losses); i++) {
			ASSERT_EQ(0, fm_trim(self->fd));
			SNAP(self->fd, &before);
			KNOB("fault_command", acquire_commands[c]);
			KNOB(losses[i].fault, "1");
			EXPECT_EQ(losses[i].error, fm_alloc(self->fd, KiB, &reply))
				TH_LOG("%s of %s", losses[i].fault,
				       acquire_commands[c]);
			EXPECT_EQ(0, fm_knob_value(losses[i].fault));
			EXPECT_EQ(0, reply.out_handle);
			EXPECT_EQ(losses[i].error, reply.out_error);
			EXPECT_EQ(FLEXMEM_REASON_NONE, reply.out_reason);
			EXPECT_FALSE(fm_exhausted(self->fd));
			EXPECT_EQ(before.stats.out_failures,
				  fm_stats(self->fd).out_failures);
			EXPECT_UNCHANGED(self->fd, &before);

			ASSERT_EQ(0, fm_alloc(self->fd, KiB, &reply));
			EXPECT_EQ(1, lines(variant->dir, "memory"));
			ASSERT_EQ(0, fm_free(self->fd, reply.out_handle));
		}
}

/* Injects fault after fault. In the end all memory must still be available. */
TEST_F(fw, many_faults_leave_all_memory_usable)
{
	unsigned int i, n = 0, failed = 0;
	struct flexmem_alloc reply;
	int error;

	for (i = 0; i < 60 && n < 4; i++) {
		if (i % 4 != 3) {
			/* flexmem may scrub in the background meanwhile. */
			KNOB("fault_command",
			     acquire_commands[i % NR_COMMANDS(variant->mode)]);
			KNOB(losses[i % 3].fault, "1");
		}
		error = fm_alloc(self->fd, REGION, &reply);
		if (!error)
			n++;
		else
			failed++;
		EXPECT_TRUE(!error || error == EIO || error == ETIMEDOUT)
			TH_LOG("%s", strerror(error));
		ASSERT_EQ(n == 4, fm_exhausted(self->fd));
	}
	EXPECT_EQ(4, n);
	EXPECT_LT(4, failed);
	fm_mend();
	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, 128, &reply));
	EXPECT_EQ(FLEXMEM_REASON_MAX_REGIONS, reply.out_reason);
	EXPECT_EQ(4, lines(variant->dir, "memory"));
}

TEST_F(fw, repeated_and_stale_replies_do_no_harm)
{
	const long long duplicates = fm_counter("duplicates");
	const long long stale = fm_counter("stale");
	int i;

	KNOB("duplicate_replies", "3");
	KNOB("stale_replies", "3");
	for (i = 0; i < 4; i++)
		ASSERT_NE(0, fm_take(self->fd, REGION));
	EXPECT_EQ(4, lines(variant->dir, "memory"));
	EXPECT_LT(duplicates, fm_counter("duplicates"));
	EXPECT_LT(stale, fm_counter("stale"));
}

TEST_F(fw, trim_fails_without_losing_anything)
{
	struct flexmem_trim trim;
	unsigned int i;
	__u32 handle;
	__u64 kept;
	int c;

	for (c = 2 - NR_COMMANDS(variant->mode); c < 2; c++)
		for (i = 0; i < ARRAY_SIZE(losses); i++) {
			handle = fm_take(self->fd, REGION);
			ASSERT_NE(0, fm_take(self->fd, REGION));
			ASSERT_EQ(0, fm_free(self->fd, handle));
			KNOB("fault_command", release_commands[c]);
			KNOB(losses[i].fault, "1");
			trim = CMD(trim, .out_regions = 77);
			must_fail(losses[i].error, trim, self->fd, &trim);
			/*
			 * memory that the firmware did not take back is not
			 * counted
			 */
			EXPECT_EQ(0, trim.out_regions);
			EXPECT_EQ(0, trim.out_bytes);
			/*
			 * After a lost reply the slot may be empty and the
			 * memory may be released. So the driver counts no
			 * region there until it has repeated the command. If
			 * the firmware refuses slot_clear, the region stays.
			 */
			EXPECT_STREQ("", fm_sums(self->fd, false));
			kept = losses[i].error != ETIMEDOUT &&
			       strcmp(release_commands[c], "release") ? 2 : 1;
			EXPECT_EQ(kept * REGION, fm_stats(self->fd).out_total)
				TH_LOG("%s of %s", losses[i].fault,
				       release_commands[c]);

			/* a second TRIM succeeds, and nothing is lost */
			trim = CMD(trim);
			must(trim, self->fd, &trim);
			EXPECT_EQ(1, fm_stats(self->fd).out_regions);
			EXPECT_EQ(1, lines(variant->dir, "memory"));
			close(self->fd);
			self->fd = fm_open(variant->mode);
			ASSERT_EQ(0, fm_trim(self->fd));
			EXPECT_EQ(0, lines(variant->dir, "memory"));
		}
}

TEST_F(fw, a_slow_firmware_is_waited_for_within_the_timeout)
{
	struct flexmem_alloc reply;
	__u64 start = fm_now_ms();
	int error;

	KNOB("latency_us", "50000");
	ASSERT_EQ(0, fm_alloc(self->fd, KiB, &reply));
	EXPECT_LE(50, fm_now_ms() - start);
	ASSERT_EQ(0, fm_free(self->fd, reply.out_handle));
	ASSERT_EQ(0, fm_trim(self->fd));

	/*
	 * On a slow machine the caller may look at its time limit only after the
	 * late reply has come. Then the call succeeds, so this loop repeats it.
	 */
	do {
		KNOB("latency_us", "900000");
		KNOB("timeout_ms", HASTY);
		error = fm_alloc(self->fd, KiB, &reply);
		fm_mend();
		if (!error) {
			ASSERT_EQ(0, fm_free(self->fd, reply.out_handle));
			ASSERT_EQ(0, fm_trim(self->fd));
		}
	} while (!error);
	EXPECT_EQ(ETIMEDOUT, error);
	EXPECT_FALSE(fm_exhausted(self->fd));
	EXPECT_EQ(0, fm_alloc(self->fd, KiB, &reply));
}

TEST_F(fw, a_dead_firmware_is_etimedout)
{
	struct flexmem_alloc reply;
	int i;

	KNOB("dead", "1");
	KNOB("timeout_ms", HASTY);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(ETIMEDOUT, fm_alloc(self->fd, KiB, &reply));
	EXPECT_FALSE(fm_exhausted(self->fd));
	fm_mend();
	EXPECT_EQ(0, fm_alloc(self->fd, KiB, &reply));
}

/*
 * A caller that waits for the firmware can be killed. The worker completes the
 * command of the killed caller before it runs the TRIM.
 */
TEST_F(fw, a_waiting_caller_can_be_killed)
{
	const long long requests = fm_counter("requests");
	const long long killed = fm_counter("killed");
	const long long timeouts = fm_counter("timeouts");
	pid_t pid;
	int fd;

	KNOB("dead", "1");
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		fd = fm_open(variant->mode);
		fm_take(fd, KiB);
		_exit(1);
	}
	fm_await_counter("requests", requests);
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	KNOB("dead", "0");
	EXPECT_EQ(0, fm_trim(self->fd));
	EXPECT_EQ(killed, fm_counter("killed"));
	EXPECT_EQ(timeouts, fm_counter("timeouts"));
	EXPECT_EQ(0, fm_stats(self->fd).out_used);
	EXPECT_EQ(0, lines(variant->dir, "memory"));
}

static void *take_region(void *arg)
{
	return (void *)(uintptr_t)fm_take(*(int *)arg, REGION);
}

/*
 * Only the caller that needs a region waits for the slow firmware. Other calls
 * end before the call of that caller.
 */
TEST_F(fw, a_slow_firmware_stops_only_its_callers)
{
	struct flexmem_alloc reply, small;
	long long requests;
	pthread_t thread;
	void *handle;

	ASSERT_EQ(0, fm_alloc(self->fd, KiB, &reply));
	requests = fm_counter("requests");
	KNOB("dead", "1");
	ASSERT_EQ(0, pthread_create(&thread, NULL, take_region, &self->fd));
	fm_await_counter("requests", requests);
	EXPECT_EQ(1, fm_stats(self->fd).out_regions);
	EXPECT_EQ(0, fm_free(self->fd, reply.out_handle));
	if (!strcmp(variant->order, "order=fill_first")) {
		/* an existing region has room, so the firmware is not needed */
		EXPECT_EQ(0, fm_alloc(self->fd, KiB, &small));
		EXPECT_EQ(0, fm_free(self->fd, small.out_handle));
	}
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(thread, NULL));
	KNOB("dead", "0");
	ASSERT_EQ(0, pthread_join(thread, &handle));
	EXPECT_NE(NULL, handle);
}

/*
 * After a refusal, regions are acquired again only after a release or a new
 * capacity.
 */
TEST_F(fw, new_capacity_reopens)
{
	struct flexmem_alloc reply;
	char old[32], more[32];

	snprintf(old, sizeof(old), "%llu", fm_info(self->fd).out_capacity);
	ASSERT_EQ(0, knob(variant->dir, "capacity", "4294967296"));	/* 4 GiB */
	EXPECT_EQ(4 * GiB, fm_info(self->fd).out_capacity);
	ASSERT_EQ(0, fm_alloc(self->fd, REGION, &reply));
	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, 128, &reply));
	EXPECT_EQ(FLEXMEM_REASON_CAPACITY, reply.out_reason);
	EXPECT_TRUE(fm_exhausted(self->fd));

	snprintf(more, sizeof(more), "%llu", 8 * GiB);
	ASSERT_EQ(0, knob(variant->dir, "capacity", more));
	EXPECT_FALSE(fm_exhausted(self->fd));
	EXPECT_EQ(8 * GiB, fm_info(self->fd).out_capacity);
	EXPECT_EQ(0, fm_alloc(self->fd, REGION, &reply));
	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, 128, &reply));

	/*
	 * the capacity is now less than the allocated bytes, and no allocation
	 * is lost
	 */
	ASSERT_EQ(0, knob(variant->dir, "capacity", "4294967296"));
	EXPECT_EQ(8 * GiB, fm_stats(self->fd).out_used);
	ASSERT_EQ(0, knob(variant->dir, "capacity", old));
}

TEST_F(fw, no_region_could_be_that_large_follows_the_capacity)
{
	struct flexmem_alloc reply;
	char old[32];

	snprintf(old, sizeof(old), "%llu", fm_info(self->fd).out_capacity);
	ASSERT_EQ(0, knob(variant->dir, "capacity", "0"));
	EXPECT_EQ(0, fm_info(self->fd).out_max_region);
	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, 128, &reply));
	EXPECT_EQ(FLEXMEM_REASON_REGION_SIZE, reply.out_reason);
	EXPECT_EQ(0, reply.out_max_region);
	ASSERT_EQ(0, knob(variant->dir, "capacity", old));
	EXPECT_EQ(REGION, fm_info(self->fd).out_max_region);
	EXPECT_EQ(0, fm_alloc(self->fd, 128, &reply));
}

/* The firmware refuses to fill existing slots. */
TEST_F(fw, refused_slots_are_reason_slots)
{
	struct flexmem_alloc reply;

	if (variant->mode == FM_PF)
		return;
	ASSERT_EQ(0, knob(variant->dir, "usable_slots", "2"));
	ASSERT_NE(0, fm_take(self->fd, REGION));
	ASSERT_NE(0, fm_take(self->fd, REGION));
	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, KiB, &reply));
	EXPECT_EQ(FLEXMEM_REASON_SLOTS, reply.out_reason);
	EXPECT_TRUE(fm_exhausted(self->fd));
	EXPECT_EQ(2, fm_stats(self->fd).out_regions);
	/* the memory for the refused slot was released */
	EXPECT_EQ(2, lines(variant->dir, "memory"));
	ASSERT_EQ(0, knob(variant->dir, "usable_slots", "16"));
}

TEST_HARNESS_MAIN
