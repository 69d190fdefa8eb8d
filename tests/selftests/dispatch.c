// SPDX-License-Identifier: GPL-2.0
/*
 * Programs on the device: if an owner frees memory while a program uses it, no
 * other owner gets the memory before the program has ended.
 *
 * The jobs of a PF or VF run in order. So a test runs a job of its own to wait
 * for a job of another process, and needs no clock.
 */
#include <linux/sync_file.h>
#include <poll.h>
#include <sys/wait.h>

#include "tenants.h"
#include "../../kmod/sim/run.h"

#define SIZE (256 * KiB)
#define PARAMS_BUT_PROGRAMS						\
	"max_regions=2 fallback_sizes=4G order=fill_first "		\
	"strategy=first_fit acquire=lazy" FM_PF_FOR_ALL
#define PARAMS PARAMS_BUT_PROGRAMS "program_slots=0"

FIXTURE(dispatch) {
	int root;
	int alice;
	int bob;
	int queue;
};

FIXTURE_VARIANT(dispatch) {
	int mode;
};

FIXTURE_VARIANT_ADD(dispatch, pf) { .mode = FM_PF };
FIXTURE_VARIANT_ADD(dispatch, vf) { .mode = FM_VF };

#define CLOSE_ALL() do {						\
	close(self->root);						\
	close(self->alice);						\
	close(self->bob);						\
	close(self->queue);						\
} while (0)

#define OPEN_ALL() do {							\
	self->root = fm_open(variant->mode);				\
	self->alice = fm_open_as(variant->mode, ALICE);			\
	self->bob = fm_open_as(variant->mode, BOB);			\
	self->queue = open(variant->mode == FM_PF ? FM_KNOBS "pf/queue" : \
			   FM_KNOBS "vf0/queue", O_RDWR | O_CLOEXEC);	\
	ASSERT_LE(0, self->root);					\
	ASSERT_LE(0, self->alice);					\
	ASSERT_LE(0, self->bob);					\
	ASSERT_LE(0, self->queue);					\
} while (0)

FIXTURE_SETUP(dispatch)
{
	self->root = self->alice = self->bob = self->queue = -1;
	if (sizeof(long) == 4)
		SKIP(return, "debugfs passes no ioctl of 32 bits on");
	RELOAD(PARAMS, NULL);
	OPEN_ALL();
}

FIXTURE_TEARDOWN(dispatch)
{
	CLOSE_ALL();
	EXPECT_EQ(0, fm_unload());
}

/* Returns the descriptor of the job's fence, or a negative errno. */
static int run(int queue, struct sim_run job)
{
	return ioctl(queue, SIM_IOCTL_RUN, &job) ? -errno : job.out_fence;
}

static int run_fill(int queue, int fd, __u32 handle, int value, int latency_ms)
{
	return run(queue, (struct sim_run) {
		.program = SIM_PROGRAM_FILL,
		.fd = fd,
		.to = handle,
		.size = SIZE,
		.value = value,
		.latency_ms = latency_ms,
	});
}

/*
 * Returns 1 if the job has succeeded, or a negative errno. Closes the fence.
 */
static int wait_for(int fence)
{
	struct pollfd wait = { .fd = fence, .events = POLLIN };
	struct sync_file_info info = {};
	int n;

	if (fence < 0)
		return fence;
	do {
		n = poll(&wait, 1, -1);
	} while (n < 0 && errno == EINTR);
	if (ioctl(fence, SYNC_IOC_FILE_INFO, &info))
		info.status = -errno;
	close(fence);
	return info.status;
}

/* Waits for a new job. If this returns 1, all earlier jobs have ended too. */
static int wait_for_queue(int queue, int fd)
{
	__u32 handle = fm_take(fd, SIZE);
	int fence = run_fill(queue, fd, handle, 0, 0);
	int ended = fence < 0 ? fence : wait_for(fence);

	return fm_free(fd, handle) ? -EIO : ended;
}

static __u64 leaving(int fd)
{
	struct flexmem_snapshot s = CMD(snapshot,
		.region_entry_size = sizeof(struct flexmem_region_entry),
		.owner_entry_size = sizeof(struct flexmem_owner_entry));
	int error = raw_snapshot(fd, &s);

	return error && error != EMSGSIZE ? ~0ULL : s.out_orphaned;
}

TEST_F(dispatch, programs_write_the_right_bytes)
{
	struct flexmem_alloc a, b;
	int fence;

	ASSERT_EQ(0, fm_alloc(self->alice, SIZE, &a));
	ASSERT_EQ(0, fm_alloc(self->alice, SIZE, &b));
	EXPECT_EQ(1, wait_for(run_fill(self->queue, self->alice, a.out_handle,
				       'a', 0)));
	EXPECT_BYTES(self->alice, &a, 'a');
	fence = run(self->queue, (struct sim_run) {
		.program = SIM_PROGRAM_COPY, .fd = self->alice,
		.to = b.out_handle, .from = a.out_handle, .size = SIZE,
	});
	EXPECT_EQ(1, wait_for(fence));
	EXPECT_BYTES(self->alice, &b, 'a');
	fence = run(self->queue, (struct sim_run) {
		.program = SIM_PROGRAM_ADD, .fd = self->alice,
		.to = b.out_handle, .from = a.out_handle,
		.to_offset = 5, .from_offset = 1000, .size = SIZE - 1000,
	});
	EXPECT_EQ(1, wait_for(fence));
	EXPECT_EQ(0, fm_others(self->alice, b.out_handle, 0, 5, 'a'));
	EXPECT_EQ(0, fm_others(self->alice, b.out_handle, 5, SIZE - 1000,
			       2 * 'a'));
	EXPECT_EQ(0, fm_others(self->alice, b.out_handle, SIZE - 995, 995, 'a'));
	EXPECT_BYTES(self->alice, &a, 'a');
}

TEST_F(dispatch, wrong_jobs_are_refused)
{
	__u32 a = fm_take(self->alice, SIZE);

	EXPECT_EQ(-EBADF, run_fill(self->queue, 999, a, 1, 0));
	EXPECT_EQ(-EINVAL, run_fill(self->queue, self->queue, a, 1, 0));
	EXPECT_EQ(-ENOENT, run_fill(self->queue, self->alice, a + 1, 1, 0));
	EXPECT_EQ(-ENOENT, run_fill(self->queue, self->bob, a, 1, 0));
	EXPECT_EQ(-EINVAL, run_fill(self->queue, self->alice, a, 256, 0));
	EXPECT_EQ(-EINVAL, run(self->queue, (struct sim_run) {
		.fd = self->alice, .to = a, .to_offset = 1, .size = SIZE,
	}));
	EXPECT_EQ(0, fm_free(self->alice, a));
	EXPECT_EQ(0, leaving(self->root));
}

/* Starts a process that dispatches programs and then waits to be killed. */
static pid_t start_program(int queue, int mode, struct flexmem_alloc *reply)
{
	int pipes[2];
	pid_t pid;

	if (pipe(pipes))
		return -1;
	pid = fork();
	if (!pid) {
		int fd = fm_open_as(mode, CAROL);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fm_alloc(fd, SIZE, reply) ||
		    run_fill(queue, fd, reply->out_handle, 'x', 500) < 0 ||
		    run_fill(queue, fd, reply->out_handle, 'y', 60000) < 0)
			_exit(1);
		if (write(pipes[1], reply, sizeof(*reply)) < 0)
			_exit(2);
		pause();
	}
	close(pipes[1]);
	if (read(pipes[0], reply, sizeof(*reply)) != sizeof(*reply)) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(pipes[0]);
	return pid;
}

/*
 * The killed process has also queued a second job, which would take a minute.
 * The driver must drop that job, because it has not begun.
 */
TEST_F(dispatch, a_program_outlives_its_process)
{
	struct flexmem_alloc victim, now, later;
	pid_t pid;

	pid = start_program(self->queue, variant->mode, &victim);
	ASSERT_LT(0, pid);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	/* ALLOC does not wait for this memory: it gets other memory */
	ASSERT_EQ(0, fm_alloc_flags(self->bob, SIZE, FLEXMEM_ALLOC_ZEROED,
				    &now));
	EXPECT_EQ(1, wait_for_queue(self->queue, self->alice));
	EXPECT_BYTES(self->bob, &now, 0);
	EXPECT_FALSE(fm_same_place(&victim, &now));
	ASSERT_EQ(0, fm_alloc_flags(self->bob, SIZE, FLEXMEM_ALLOC_ZEROED,
				    &later));
	EXPECT_TRUE(fm_same_place(&victim, &later));
	EXPECT_BYTES(self->bob, &later, 0);
	EXPECT_EQ(0, leaving(self->root));
}

TEST_F(dispatch, freed_memory_is_charged_until_the_end)
{
	struct flexmem_alloc a, b;
	int fence;

	ASSERT_EQ(0, fm_alloc(self->alice, 4 * GiB, &a));
	ASSERT_EQ(0, fm_alloc(self->bob, 4 * GiB, &b));
	fence = run_fill(self->queue, self->alice, a.out_handle, 'a', 500);
	ASSERT_LE(0, fence);
	ASSERT_EQ(0, fm_free(self->alice, a.out_handle));
	/*
	 * the program still uses the memory, so it is not free, and TRIM does
	 * not release its region
	 */
	EXPECT_EQ(ENOMEM, fm_alloc(self->bob, SIZE, &b));
	EXPECT_EQ(4 * GiB, b.out_leaving);
	EXPECT_EQ(0, fm_trim(self->root));
	EXPECT_EQ(2, fm_stats(self->root).out_regions);
	EXPECT_EQ(4 * GiB, leaving(self->root));
	EXPECT_EQ(1, wait_for(fence));
	EXPECT_EQ(0, fm_alloc_flags(self->bob, SIZE, FLEXMEM_ALLOC_ZEROED, &b));
	EXPECT_TRUE(fm_same_place(&a, &b));
	EXPECT_BYTES(self->bob, &b, 0);
	EXPECT_EQ(0, leaving(self->root));
}

/* Starts a program of alice that does not name all of her memory. */
static int start_holding(FIXTURE_DATA(dispatch) *self, __u32 handle)
{
	return run(self->queue, (struct sim_run) {
		.program = SIM_PROGRAM_FILL, .fd = self->alice,
		.to = handle, .size = SIZE, .value = 'a',
		.latency_ms = 1000, .flags = SIM_RUN_HOLDS,
	});
}

TEST_F(dispatch, a_program_holds_the_regions_of_its_process)
{
	struct flexmem_alloc a, b, c;
	int fence;

	ASSERT_EQ(0, fm_alloc(self->alice, SIZE, &a));
	ASSERT_EQ(0, fm_alloc(self->alice, 4 * GiB, &b));
	fence = start_holding(self, a.out_handle);
	ASSERT_LE(0, fence);
	ASSERT_EQ(0, fm_free(self->alice, b.out_handle));
	EXPECT_EQ(0, fm_trim(self->root));
	EXPECT_EQ(2, fm_stats(self->root).out_regions);
	/* ALLOC does not wait for the program. */
	EXPECT_EQ(0, fm_alloc(self->bob, SIZE, &c));
	EXPECT_EQ(0, fm_free(self->bob, c.out_handle));
	EXPECT_EQ(1, wait_for(fence));
	EXPECT_EQ(0, fm_trim(self->root));
	EXPECT_EQ(1, fm_stats(self->root).out_regions);
}

TEST_F(dispatch, a_program_does_not_hold_the_regions_of_others)
{
	struct flexmem_alloc a, b;
	int fence;

	ASSERT_EQ(0, fm_alloc(self->alice, SIZE, &a));
	ASSERT_EQ(0, fm_alloc(self->bob, 4 * GiB, &b));
	fence = start_holding(self, a.out_handle);
	ASSERT_LE(0, fence);
	ASSERT_EQ(0, fm_free(self->bob, b.out_handle));
	EXPECT_EQ(0, fm_trim(self->root));
	EXPECT_EQ(1, fm_stats(self->root).out_regions);
	EXPECT_EQ(1, wait_for(fence));
}

/* An endless program. The driver's watchdog resets the device. */
TEST_F(dispatch, a_program_does_not_run_for_ever)
{
	struct flexmem_alloc a, other;
	int hangs;

	CLOSE_ALL();
	RELOAD(PARAMS, "job_timeout_ms=300");
	OPEN_ALL();
	ASSERT_EQ(0, fm_alloc(self->bob, SIZE, &other));
	ASSERT_EQ(0, fm_alloc(self->alice, SIZE, &a));
	hangs = run(self->queue, (struct sim_run) {
		.program = SIM_PROGRAM_FILL, .fd = self->alice,
		.to = a.out_handle, .size = SIZE, .flags = SIM_RUN_HANGS,
	});
	ASSERT_LE(0, hangs);
	ASSERT_EQ(0, fm_free(self->alice, a.out_handle));
	EXPECT_EQ(-ETIMEDOUT, wait_for(hangs));
	/* READ waits until the reset is done. */
	EXPECT_EQ(EIO, fm_fill(self->bob, other.out_handle, 0, SIZE, 'o'));
	EXPECT_EQ(0, leaving(self->root));
}

/* The administrator sees who waits, also when the file is closed. */
TEST_F(dispatch, a_closed_file_is_shown_while_it_waits)
{
	const struct flexmem_owner_entry *o, *waits = NULL;
	__u32 handle = fm_take(self->alice, SIZE);
	struct account a;
	unsigned int i;
	int fence;

	fence = run_fill(self->queue, self->alice, handle, 'a', 60000);
	ASSERT_LE(0, fence);
	close(self->alice);
	self->alice = -1;
	usleep(20000);
	ASSERT_EQ(0, fm_account(self->root, &a));
	for (i = 0; i < a.s.out_owner_count; i++) {
		o = &a.owner[i];
		if (o->leaving) {
			EXPECT_EQ(NULL, waits);
			waits = o;
		}
	}
	ASSERT_NE(NULL, waits);
	EXPECT_EQ(FLEXMEM_OWNER_CLIENT, waits->kind);
	EXPECT_EQ(SIZE, waits->leaving);
	EXPECT_EQ(SIZE, waits->orphaned);
	EXPECT_EQ(0, waits->files);
	EXPECT_LE(20, waits->waits_ms);
	EXPECT_GE(60000, waits->waits_ms);
	RESET(variant->mode);
	EXPECT_EQ(-ECANCELED, wait_for(fence));
	ASSERT_EQ(0, fm_account(self->root, &a));
	for (i = 0; i < a.s.out_owner_count; i++)
		EXPECT_EQ(0, a.owner[i].leaving + a.owner[i].waits_ms);
}

/*
 * A reset stops a running program. It does not wait until the program ends by
 * itself.
 */
TEST_F(dispatch, a_reset_ends_programs)
{
	struct flexmem_alloc a, b, c;
	int fence, freed;

	ASSERT_EQ(0, fm_alloc(self->alice, SIZE, &a));
	ASSERT_EQ(0, fm_alloc(self->alice, SIZE, &b));
	fence = run_fill(self->queue, self->alice, a.out_handle, 'a', 60000);
	freed = run_fill(self->queue, self->alice, b.out_handle, 'b', 60000);
	ASSERT_LE(0, fence);
	ASSERT_LE(0, freed);
	ASSERT_EQ(0, fm_free(self->alice, b.out_handle));
	RESET(variant->mode);
	EXPECT_EQ(-ECANCELED, wait_for(fence));
	EXPECT_EQ(-ECANCELED, wait_for(freed));
	EXPECT_EQ(0, leaving(self->root));
	EXPECT_EQ(-EIO, run_fill(self->queue, self->alice, a.out_handle, 1, 0));
	ASSERT_EQ(0, fm_alloc_flags(self->bob, SIZE, FLEXMEM_ALLOC_ZEROED, &c));
	EXPECT_TRUE(fm_same_place(&a, &c));
	EXPECT_EQ(1, wait_for_queue(self->queue, self->bob));
	EXPECT_BYTES(self->bob, &c, 0);
}

TEST_F(dispatch, a_driver_goes_under_its_programs)
{
	__u32 a = fm_take(self->alice, SIZE), b = fm_take(self->alice, SIZE);
	int kept, freed;

	kept = run_fill(self->queue, self->alice, a, 'a', 60000);
	freed = run_fill(self->queue, self->alice, b, 'b', 60000);
	ASSERT_LE(0, kept);
	ASSERT_LE(0, freed);
	ASSERT_EQ(0, fm_free(self->alice, b));
	UNBIND(variant->mode);
	EXPECT_EQ(-ENODEV, run_fill(self->queue, self->alice, a, 'a', 0));
	EXPECT_EQ(-ECANCELED, wait_for(freed));
	CLOSE_ALL();
	self->root = self->alice = self->bob = self->queue = -1;
	/*
	 * The fence has a reference to the module, so the module cannot be
	 * unloaded.
	 */
	EXPECT_EQ(-1, syscall(SYS_delete_module, "flexmem_sim", O_NONBLOCK));
	EXPECT_EQ(-ECANCELED, wait_for(kept));
}

/* ---- loaded programs, as Documentation/tasks/programs.rst describes ---- */

#define TILE (4 * KiB)
#define TILES (SIZE / TILE)

/* The binary copies a tile, and adds the same tile to the copy. */
static const struct sim_record binary[] = {
	{ .program = SIM_PROGRAM_COPY, .size = TILE },
	{ .program = SIM_PROGRAM_ADD, .size = TILE },
};

/* A place in the binary that needs an address. */
struct patch {
	__u64 at;		/* offset in the binary */
	__u32 tensor;		/* handle of an allocation */
};

#define NR_PATCHES (2 * ARRAY_SIZE(binary))

FIXTURE(loaded) {
	int root;
	int alice;
	int bob;
	int queue;
	struct flexmem_alloc program;
	struct flexmem_alloc from;
	struct flexmem_alloc to;
	struct patch patches[NR_PATCHES];
};

FIXTURE_VARIANT(loaded) {
	int mode;
};

FIXTURE_VARIANT_ADD(loaded, pf) { .mode = FM_PF };
FIXTURE_VARIANT_ADD(loaded, vf) { .mode = FM_VF };

static int load(FIXTURE_DATA(loaded) *self)
{
	struct patch *patch = self->patches;
	int error = fm_alloc_flags(self->alice, sizeof(binary),
				   FLEXMEM_ALLOC_PROGRAM, &self->program);
	__u64 at;

	for (at = 0; at < sizeof(binary); at += sizeof(binary[0])) {
		patch->at = at + offsetof(struct sim_record, from);
		patch++->tensor = self->from.out_handle;
		patch->at = at + offsetof(struct sim_record, to);
		patch++->tensor = self->to.out_handle;
	}
	return error ?: fm_write(self->alice, self->program.out_handle, 0,
				 binary, sizeof(binary));
}

/* Each byte of the source is the number of its tile. */
FIXTURE_SETUP(loaded)
{
	unsigned int i;

	self->root = self->alice = self->bob = self->queue = -1;
	if (sizeof(long) == 4)
		SKIP(return, "debugfs passes no ioctl of 32 bits on");
	RELOAD(PARAMS_BUT_PROGRAMS "program_slots=1", NULL);
	OPEN_ALL();
	ASSERT_EQ(0, fm_alloc(self->alice, SIZE, &self->from));
	ASSERT_EQ(0, fm_alloc_flags(self->alice, SIZE, FLEXMEM_ALLOC_ZEROED,
				    &self->to));
	for (i = 0; i < TILES; i++)
		ASSERT_EQ(0, fm_fill(self->alice, self->from.out_handle,
				     i * TILE, TILE, i));
	ASSERT_EQ(0, load(self));
}

FIXTURE_TEARDOWN(loaded)
{
	CLOSE_ALL();
	EXPECT_EQ(0, fm_unload());
}

/* Writes the addresses of the tensors into the binary. */
static int correct(FIXTURE_DATA(loaded) *self)
{
	unsigned int i;
	int error = 0;

	for (i = 0; !error && i < NR_PATCHES; i++) {
		struct flexmem_lookup tensor = CMD(lookup,
			.handle = self->patches[i].tensor);

		error = raw_lookup(self->alice, &tensor);
		if (!error)
			error = fm_write(self->alice, self->program.out_handle,
					 self->patches[i].at,
					 &tensor.out_address,
					 sizeof(tensor.out_address));
	}
	return error;
}

/* Moves the addresses in the binary by @bytes. Leaves their regions alone. */
static int move(FIXTURE_DATA(loaded) *self, __s64 bytes)
{
	unsigned int i;
	int error = 0;

	for (i = 0; !error && i < NR_PATCHES; i++) {
		const __u64 at = self->patches[i].at +
				 offsetof(struct flexmem_address, offset);
		__u64 offset;

		error = fm_read(self->alice, self->program.out_handle, at,
				&offset, sizeof(offset));
		offset += bytes;
		if (!error)
			error = fm_write(self->alice, self->program.out_handle,
					 at, &offset, sizeof(offset));
	}
	return error;
}

static int start(FIXTURE_DATA(loaded) *self, __u32 flags)
{
	return run(self->queue, (struct sim_run) {
		.program = SIM_PROGRAM_LOADED,
		.fd = self->alice,
		.from = self->program.out_handle,
		.size = sizeof(binary),
		.flags = flags,
	});
}

/*
 * Returns how many bytes of the destination are wrong, if the program has run
 * for the tiles of the mask @done.
 */
static long long wrong_bytes(FIXTURE_DATA(loaded) *self, __u64 done)
{
	long long wrong = 0;
	unsigned int i;

	for (i = 0; i < TILES; i++)
		wrong += fm_others(self->alice, self->to.out_handle, i * TILE,
				   TILE, done >> i & 1 ? 2 * i : 0);
	return wrong;
}

/* The kind of the region that contains an address, or -1. */
static int kind_of(int fd, struct flexmem_address at)
{
	struct snapshot s;
	unsigned int i;

	if (fm_snap(fd, &s))
		return -1;
	for (i = 0; i < s.nr_regions; i++)
		if (s.region[i].region_id == at.region_id)
			return s.region[i].flags & FLEXMEM_REGION_PROGRAM;
	return -1;
}

TEST_F(loaded, a_corrected_binary_runs_in_a_slot_for_programs)
{
	EXPECT_EQ(FLEXMEM_REGION_PROGRAM,
		  kind_of(self->alice, self->program.out_address));
	EXPECT_EQ(0, kind_of(self->alice, self->to.out_address));
	EXPECT_EQ(0, kind_of(self->alice, self->from.out_address));
	ASSERT_EQ(0, correct(self));
	EXPECT_EQ(0, wrong_bytes(self, 0));
	EXPECT_EQ(1, wait_for(start(self, SIM_RUN_HOLDS)));
	EXPECT_EQ(0, wrong_bytes(self, 1));
	/* a program that is started again is not corrected again */
	EXPECT_EQ(0, fm_fill(self->alice, self->to.out_handle, 0, SIZE, 0));
	EXPECT_EQ(1, wait_for(start(self, SIM_RUN_HOLDS)));
	EXPECT_EQ(0, wrong_bytes(self, 1));
}

TEST_F(loaded, a_tile_changes_only_offsets)
{
	static const unsigned int tiles[] = { 3, TILES - 1, 2 };
	unsigned int i, tile = 0;
	__u64 done = 0;

	ASSERT_EQ(0, correct(self));
	for (i = 0; i < ARRAY_SIZE(tiles); i++) {
		ASSERT_EQ(0, move(self, ((__s64)tiles[i] - tile) * TILE));
		EXPECT_EQ(1, wait_for(start(self, SIM_RUN_HOLDS)));
		tile = tiles[i];
		done |= 1ull << tile;
		EXPECT_EQ(0, wrong_bytes(self, done));
	}
}

/*
 * The driver holds no regions. The program's fences keep all memory that the
 * program names, so TRIM leaves its regions in their slots.
 */
TEST_F(loaded, a_program_keeps_the_regions_that_it_names)
{
	int fence;

	ASSERT_EQ(0, correct(self));
	fence = start(self, 0);
	EXPECT_EQ(0, fm_trim(self->root));
	EXPECT_EQ(1, wait_for(fence));
	EXPECT_EQ(0, wrong_bytes(self, 1));
}

/* Runs the program with another address of the destination. */
static int run_with(FIXTURE_DATA(loaded) *self, struct flexmem_address to)
{
	int error = correct(self) ?:
		    fm_write(self->alice, self->program.out_handle,
			     self->patches[1].at, &to, sizeof(to));

	return error ? -error : wait_for(start(self, SIM_RUN_HOLDS));
}

TEST_F(loaded, a_wrong_address_ends_the_program)
{
	const struct flexmem_address good = self->to.out_address;
	struct flexmem_address bad = good;

	/* the last byte is behind the end of the region */
	bad.offset = 4 * GiB - TILE + 1;
	EXPECT_EQ(-EFAULT, run_with(self, bad));
	bad.offset = ~0ULL;
	EXPECT_EQ(-EFAULT, run_with(self, bad));
	/* VF: an empty slot, and none; PF: two addresses of no region */
	bad = good;
	bad.region_id += fm_info(self->root).out_max_regions;
	EXPECT_EQ(-EFAULT, run_with(self, bad));
	bad.region_id = ~0ULL;
	EXPECT_EQ(-EFAULT, run_with(self, bad));
	EXPECT_EQ(0, wrong_bytes(self, 0));
	EXPECT_EQ(1, run_with(self, good));
	EXPECT_EQ(0, wrong_bytes(self, 1));
}

TEST_HARNESS_MAIN
