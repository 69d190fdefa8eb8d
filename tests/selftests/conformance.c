// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the device contract from outside. The tests know nothing of the
 * device and inject no fault, so they run on any device that no other program
 * uses. tests/conformance/flexmem-conformance runs them on the node that
 * FLEXMEM_DEVICE names; without that, the device is the simulator.
 *
 * FLEXMEM_HOOK names a command for what only the device's driver can do:
 *
 *  - fill HANDLE SIZE BYTE MS: begin a program that waits MS milliseconds and
 *    then sets the first SIZE bytes of an allocation. Its fence is added to the
 *    allocation. Descriptor 3 is the file that HANDLE belongs to. Does not wait
 *    for the program.
 *  - stray HANDLE SIZE BYTE MS: the same, but flexmem learns of no fence.
 *  - hang HANDLE SIZE BYTE MS: begin a program that never ends. Its fence is
 *    added to the allocation.
 *  - suspend: suspend the function; resume: resume it.
 *  - reset: call flexmem_device_reset().
 *
 * The command exits with 0, or with 77 if the driver cannot do that. Then the
 * test is skipped.
 */
#include <poll.h>
#include <stdarg.h>
#include <sys/resource.h>

#include "tenants.h"

#define SIZE (256 * KiB)
#define A 0xa1
#define PROGRAM_MS 300

/* How long a test watches bytes that must not change any more. */
#define WATCH_MS (PROGRAM_MS + 500)

/* Longer than a TRIM and the scrubs of take_all() need. */
#define STRAY_MS 3000

/* The longest time that a driver's watchdog may give a program. */
#define WATCHDOG_S 60

#define NO_HOOK 77

FIXTURE(device) {
	char path[64];
	int a, b;	/* two owners */
	__u32 can;	/* its capabilities */
};

static int open_owner(const char *path)
{
	return open(path, O_RDWR | O_CLOEXEC);
}

static int choose_simulator(char path[64])
{
	char name[32], hook[PATH_MAX] = "";
	int fd = fm_open_nth(FM_VF, 0, name);

	if (fd < 0)
		fd = fm_open_nth(FM_PF, 0, name);
	if (fd < 0 || readlink("/proc/self/exe", hook, sizeof(hook) - 16) < 0)
		return -1;
	strcpy(path, name);
	strcpy(strrchr(hook, '/'), "/sim_hook");
	setenv("FLEXMEM_HOOK", hook, 1);
	return close(fd);
}

FIXTURE_SETUP(device)
{
	const char *named = fm_env("FLEXMEM_DEVICE");

	if (*named) {
		snprintf(self->path, sizeof(self->path), "%s", named);
	} else {
		/* Little memory, because a test reads all of it. */
		LOAD("fallback_sizes=16M",
		     "memory=256M vf_capacity=64M job_timeout_ms=2000");
		ASSERT_EQ(0, choose_simulator(self->path));
	}
	self->a = open_owner(self->path);
	self->b = open_owner(self->path);
	ASSERT_LE(0, self->a) TH_LOG("%s: %s", self->path, strerror(errno));
	ASSERT_LE(0, self->b);
	self->can = fm_info(self->a).out_capabilities;
	ASSERT_EQ(0, fm_trim(self->a));
	ASSERT_EQ(0, fm_stats(self->a).out_used)
		TH_LOG("another process uses the device");
}

FIXTURE_TEARDOWN(device)
{
	close(self->a);
	close(self->b);
}

#define NEED(what, name) do {						\
	if (!(self->can & FLEXMEM_CAP_##what))				\
		SKIP(return, "the device has no " name);		\
} while (0)

#define TAKE(fd, length, flags, reply)					\
	ASSERT_EQ(0, fm_alloc_flags(fd, length, flags, reply))		\
		TH_LOG("ALLOC failed: the kernel log may say why")

/* ---- regions ---- */

TEST_F(device, memory_is_acquired)
{
	struct flexmem_alloc a;

	TAKE(self->a, SIZE, 0, &a);
	EXPECT_EQ(SIZE, a.out_size);
	EXPECT_LE(1, fm_stats(self->a).out_regions);
	EXPECT_EQ(0, fm_free(self->a, a.out_handle));
}

#define MAX_BLOCKS 512

struct block {
	__u32 handle;
	__u64 size;
};

/*
 * Allocates all free memory. Returns ENOMEM if all is allocated, E2BIG if that
 * takes too many blocks, or another error of ALLOC.
 */
static int take_all(int fd, struct block *blocks, unsigned int *nr)
{
	struct flexmem_alloc reply;
	__u64 size = GiB;
	int error;

	while (size < fm_info(fd).out_capacity)
		size *= 2;
	for (*nr = 0; size >= 64 * KiB; size /= 2)
		while ((error = fm_alloc(fd, size, &reply)) != ENOMEM) {
			if (error)
				return error;
			if (*nr == MAX_BLOCKS)
				return E2BIG;
			blocks[(*nr)++] = (struct block){
				reply.out_handle, reply.out_size };
		}
	return ENOMEM;
}

static int free_all(int fd, const struct block *blocks, unsigned int nr)
{
	int error = 0;

	while (nr-- && !error)
		error = fm_free(fd, blocks[nr].handle);
	return error;
}

/*
 * Writes a pattern to both ends of a block, or checks the pattern. The pattern
 * depends on the seed, and differs at the two ends.
 */
static int tag(int fd, const struct block *block, unsigned int seed, bool check)
{
	unsigned char want[128], have[128];
	__u64 at[2] = { 0, block->size - sizeof(want) };
	int end, error = 0;

	for (end = 0; end < 2 && !error; end++) {
		pattern(want, sizeof(want), 2 * seed + end + 1);
		if (!check)
			error = fm_write(fd, block->handle, at[end], want,
					 sizeof(want));
		else
			error = fm_read(fd, block->handle, at[end], have,
					sizeof(have));
		if (!error && check && memcmp(want, have, sizeof(want)))
			error = EILSEQ;
	}
	return error;
}

TEST_F(device, no_two_blocks_share_bytes)
{
	struct block blocks[MAX_BLOCKS];
	unsigned int i, nr;

	ASSERT_EQ(ENOMEM, take_all(self->a, blocks, &nr))
		TH_LOG("after %u blocks: the kernel log may say why", nr);
	for (i = 0; i < nr && self->can & FLEXMEM_CAP_RW; i++)
		ASSERT_EQ(0, tag(self->a, &blocks[i], i, false));
	for (i = 0; i < nr && self->can & FLEXMEM_CAP_RW; i++)
		ASSERT_EQ(0, tag(self->a, &blocks[i], i, true))
			TH_LOG("block %u of %u has other bytes", i, nr);
	EXPECT_EQ(0, free_all(self->a, blocks, nr));
}

static __u64 sum(const struct block *blocks, unsigned int nr)
{
	__u64 bytes = 0;

	while (nr--)
		bytes += blocks[nr].size;
	return bytes;
}

TEST_F(device, released_memory_can_be_acquired_again)
{
	struct block blocks[MAX_BLOCKS];
	unsigned int round, nr;
	__u64 bytes = 0;

	for (round = 0; round < 3; round++) {
		ASSERT_EQ(ENOMEM, take_all(self->a, blocks, &nr));
		if (round)
			EXPECT_EQ(bytes, sum(blocks, nr));
		bytes = sum(blocks, nr);
		ASSERT_EQ(0, free_all(self->a, blocks, nr));
		ASSERT_EQ(0, fm_trim(self->a));
	}
}

/* ---- bytes ---- */

TEST_F(device, reads_return_what_was_written)
{
	const unsigned int size = MiB + 640;
	unsigned char *have = calloc(1, size), *buf = malloc(size);
	unsigned int i, offset, length;
	struct flexmem_alloc a;

	NEED(RW, "READ and WRITE");
	TAKE(self->a, size, 0, &a);
	ASSERT_EQ(0, fm_write(self->a, a.out_handle, 0, have, size));
	srand(1);
	for (i = 0; i < 100; i++) {
		offset = rand() % size;
		length = 1 + rand() % (i % 2 ? 5000 : 200000);
		if (length > size - offset)
			length = size - offset;
		pattern(have + offset, length, i);
		ASSERT_EQ(0, fm_write(self->a, a.out_handle, offset,
				      have + offset, length));
		ASSERT_EQ(0, fm_read(self->a, a.out_handle, offset, buf,
				     length));
		ASSERT_EQ(0, memcmp(have + offset, buf, length))
			TH_LOG("%u bytes from %u are not what was written",
			       length, offset);
	}
	ASSERT_EQ(0, fm_read(self->a, a.out_handle, 0, buf, size));
	EXPECT_EQ(0, memcmp(have, buf, size));
}

TEST_F(device, copies_are_exact)
{
	unsigned char *have = malloc(2 * SIZE), *buf = malloc(2 * SIZE);
	unsigned int i, from, to, length;
	struct flexmem_alloc a;

	NEED(RW, "READ and WRITE");
	NEED(COPY, "COPY");
	TAKE(self->a, 2 * SIZE, 0, &a);
	pattern(have, 2 * SIZE, 1);
	ASSERT_EQ(0, fm_write(self->a, a.out_handle, 0, have, 2 * SIZE));
	srand(2);
	for (i = 0; i < 100; i++) {
		length = 128 * (1 + rand() % 2000);
		from = 128 * (rand() % ((SIZE - length) / 128));
		to = SIZE + 128 * (rand() % ((SIZE - length) / 128));
		memmove(have + to, have + from, length);
		ASSERT_EQ(0, raw_copy(self->a, &CMD(copy,
			.from = a.out_handle, .from_offset = from,
			.to = a.out_handle, .to_offset = to,
			.length = length)));
	}
	ASSERT_EQ(0, fm_read(self->a, a.out_handle, 0, buf, 2 * SIZE));
	EXPECT_EQ(0, memcmp(have, buf, 2 * SIZE));
}

/* ---- maps ---- */

TEST_F(device, maps_show_the_memory)
{
	unsigned char *want = malloc(SIZE), *buf = malloc(SIZE), *map;
	struct flexmem_alloc a;

	NEED(MAP, "maps");
	NEED(RW, "READ and WRITE");
	TAKE(self->a, SIZE, FLEXMEM_ALLOC_MAPPABLE, &a);
	map = fm_mmap(self->a, a.out_handle, 0, SIZE);
	ASSERT_NE(MAP_FAILED, (void *)map);
	pattern(want, SIZE, 1);
	memcpy(map, want, SIZE);
	ASSERT_EQ(0, fm_read(self->a, a.out_handle, 0, buf, SIZE));
	EXPECT_EQ(0, memcmp(want, buf, SIZE));
	pattern(want, SIZE, 2);
	ASSERT_EQ(0, fm_write(self->a, a.out_handle, 0, want, SIZE));
	EXPECT_EQ(0, memcmp(want, map, SIZE));
	munmap(map, SIZE);
}

static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

/*
 * The kernel counts voluntary context switches. A task that waits makes them; a
 * task that is only slow does not.
 */
TEST_F(device, page_faults_do_not_wait)
{
	const int rounds = 64;
	long slept = 0, before;
	struct flexmem_alloc a;
	int i;

	NEED(MAP, "maps");
	TAKE(self->a, SIZE, FLEXMEM_ALLOC_MAPPABLE, &a);
	for (i = 0; i < rounds; i++) {
		char *map = fm_mmap(self->a, a.out_handle, 0, SIZE);

		ASSERT_NE(MAP_FAILED, (void *)map);
		before = sleeps();
		ASSERT_EQ(0, fm_touch(map + i * 4096, true));
		slept += sleeps() - before;
		munmap(map, SIZE);
	}
	EXPECT_GT(rounds / 2, slept)
		TH_LOG("%ld of %d page faults have waited", slept, rounds);
}

/* ---- owners ---- */

/* Writes to memory, and frees it in one of several ways. */
static int leave_bytes(const char *path, int way)
{
	int fd = open_owner(path), pid, error;
	struct flexmem_alloc reply;

	error = fm_alloc(fd, SIZE, &reply) ?:
		fm_fill(fd, reply.out_handle, 0, SIZE, A);
	if (!error && way == 0)
		error = fm_free(fd, reply.out_handle);
	if (!error && way == 1) {
		pid = fork();
		if (pid < 0)
			return errno;
		if (!pid)
			pause();
		close(fd);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return 0;
	}
	if (!error && way == 2)
		error = fm_free(fd, reply.out_handle) ?: fm_trim(fd);
	close(fd);
	return error;
}

TEST_F(device, the_next_owner_finds_zeroes)
{
	struct flexmem_alloc b;
	int way;

	NEED(RW, "READ and WRITE");
	NEED(SCRUB, "scrub");
	for (way = 0; way < 3; way++) {
		ASSERT_EQ(0, leave_bytes(self->path, way));
		TAKE(self->b, SIZE, 0, &b);
		EXPECT_BYTES(self->b, &b, 0)
			TH_LOG("bytes of another owner, after %s",
			       way == 0 ? "FREE" : way == 1 ? "a kill" :
			       "FREE and TRIM");
		ASSERT_EQ(0, fm_free(self->b, b.out_handle));
	}
}

/* ---- many at once ---- */

/* Allocates, moves bytes and frees until it is killed. */
static int work(const char *path, unsigned int seed, unsigned int rounds)
{
	unsigned char want[5000], have[5000];
	struct flexmem_alloc reply;
	int fd = open_owner(path), error = 0;
	unsigned int i;

	for (i = 0; i < rounds && !error; i++) {
		pattern(want, sizeof(want), seed + i);
		error = fm_alloc(fd, SIZE / 2, &reply);
		if (error == ENOMEM) {
			error = 0;
			continue;
		}
		error = error ?:
			fm_write(fd, reply.out_handle, i, want, sizeof(want)) ?:
			fm_read(fd, reply.out_handle, i, have, sizeof(have));
		if (!error && memcmp(want, have, sizeof(want)))
			error = EILSEQ;
		error = error ?: fm_free(fd, reply.out_handle);
		if (!error && i % 8 == 7)
			error = fm_trim(fd);
	}
	close(fd);
	return error;
}

#define WORKERS 4

TEST_F(device, operations_run_side_by_side)
{
	pid_t pids[WORKERS];
	int i, status;

	NEED(RW, "READ and WRITE");
	for (i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (!pids[i])
			_exit(work(self->path, 1000 * i, 50));
	}
	for (i = 0; i < WORKERS; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_EQ(0, status) TH_LOG("errno %d", WEXITSTATUS(status));
	}
}

TEST_F(device, killed_callers_leave_nothing)
{
	struct flexmem_alloc b;
	int i, status;
	pid_t pid;

	NEED(RW, "READ and WRITE");
	for (i = 0; i < 20; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(work(self->path, i, ~0U));
		usleep(1000 * i);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
	}
	/* flexmem completes the commands of killed callers before a TRIM. */
	EXPECT_EQ(0, fm_trim(self->a));
	EXPECT_EQ(0, fm_stats(self->a).out_used);
	EXPECT_STREQ("", fm_sums(self->a, true));
	if (self->can & FLEXMEM_CAP_SCRUB) {
		TAKE(self->b, SIZE, 0, &b);
		EXPECT_BYTES(self->b, &b, 0);
	}
}

/* ---- what only the driver can begin ---- */

/*
 * Runs the command FLEXMEM_HOOK with @fd as its descriptor 3. Returns the exit
 * status of the command, or -1.
 */
static int hook(int fd, const char *format, ...)
{
	const char *command = fm_env("FLEXMEM_HOOK");
	char text[PATH_MAX + 128];
	va_list args;
	int status;
	pid_t pid;

	if (!*command)
		return NO_HOOK;
	status = snprintf(text, sizeof(text), "%s ", command);
	va_start(args, format);
	vsnprintf(text + status, sizeof(text) - status, format, args);
	va_end(args);
	pid = fork();
	if (!pid) {
		/* dup2(3, 3) would not clear FD_CLOEXEC. */
		if (fd == 3)
			fcntl(3, F_SETFD, 0);
		else
			dup2(fd, 3);
		execl("/bin/sh", "sh", "-c", text, NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

#define HOOK(...) do {							\
	int __status = hook(__VA_ARGS__);				\
									\
	if (__status == NO_HOOK)					\
		SKIP(return, "only the driver can begin that: no hook");	\
	ASSERT_EQ(0, __status) TH_LOG("the hook failed");		\
} while (0)

/* Repeats the allocation for up to 30 s, until memory is free again. */
static int take_in_time(int fd, __u64 length, struct flexmem_alloc *reply)
{
	int tries, error = ENOMEM;

	for (tries = 0; error == ENOMEM && tries < 3000; tries++) {
		if (tries)
			usleep(10000);
		error = fm_alloc(fd, length, reply);
	}
	return error;
}

/*
 * A program fills memory that its owner frees. All other memory is taken, so the
 * next owner gets that memory as soon as the fence has signalled.
 */
TEST_F(device, nothing_is_written_after_the_fence)
{
	struct block blocks[MAX_BLOCKS];
	struct flexmem_alloc a, b;
	unsigned int nr;

	NEED(RW, "READ and WRITE");
	NEED(SCRUB, "scrub");
	TAKE(self->a, SIZE, 0, &a);
	ASSERT_EQ(ENOMEM, take_all(self->b, blocks, &nr));
	HOOK(self->a, "fill %u %llu %d %d", a.out_handle, SIZE, A, PROGRAM_MS);
	ASSERT_EQ(0, fm_free(self->a, a.out_handle));
	ASSERT_EQ(0, take_in_time(self->b, SIZE, &b));
	EXPECT_BYTES(self->b, &b, 0);
	usleep(1000 * WATCH_MS);
	EXPECT_BYTES(self->b, &b, 0)
		TH_LOG("the device wrote after the program's fence");
}

/* Freed memory of an open file that programs still use. */
static __u64 leaving(int fd)
{
	struct flexmem_region_entry regions[64];
	struct flexmem_owner_entry owners[64];
	struct flexmem_snapshot s = CMD(snapshot,
		.region_entry_size = sizeof(regions[0]),
		.region_count = 64,
		.regions = (uintptr_t)regions,
		.owner_entry_size = sizeof(owners[0]), .owner_count = 64,
		.owners = (uintptr_t)owners);
	__u64 bytes = 0;
	unsigned int i;

	if (raw_snapshot(fd, &s))
		return ~0ULL;
	for (i = 0; i < s.out_owner_count; i++)
		bytes += owners[i].leaving;
	return bytes;
}

/*
 * Repeats the allocation as long as a reset of the device may be the reason why
 * it fails. Returns 0 or an errno.
 */
static int take_after_reset(int fd, __u64 length)
{
	struct flexmem_alloc reply;
	int tries, error = EIO;

	for (tries = 0; error == EIO && tries < WATCHDOG_S * 10; tries++) {
		if (tries)
			usleep(100000);
		error = fm_alloc(fd, length, &reply);
	}
	return error;
}

/*
 * The driver's watchdog must end the program: nothing else frees the memory. If
 * the watchdog resets the device, the program's fence signals before the reset
 * has ended.
 */
TEST_F(device, every_program_ends)
{
	struct flexmem_alloc a;
	int tries;

	TAKE(self->a, SIZE, 0, &a);
	HOOK(self->a, "hang %u %llu %d %d", a.out_handle, SIZE, A, 0);
	ASSERT_EQ(0, fm_free(self->a, a.out_handle));
	EXPECT_EQ(SIZE, leaving(self->a));
	for (tries = 0; leaving(self->a) && tries < WATCHDOG_S * 10; tries++)
		usleep(100000);
	EXPECT_EQ(0, leaving(self->a))
		TH_LOG("a fence has not signalled in %d s", WATCHDOG_S);
	EXPECT_EQ(0, take_after_reset(self->b, SIZE));
}

/* Returns 0 if a block has zeroes only, EILSEQ if not, or an errno of READ. */
static int is_zero(int fd, const struct block *block)
{
	static char have[MiB], zeroes[MiB];
	__u64 at, length;
	int error = 0;

	for (at = 0; at < block->size && !error; at += length) {
		length = block->size - at;
		if (length > sizeof(have))
			length = sizeof(have);
		error = fm_read(fd, block->handle, at, have, length);
		if (!error && memcmp(have, zeroes, length))
			error = EILSEQ;
	}
	return error;
}

/*
 * flexmem knows of no fence here, so only draining can wait for the program. The
 * next owner takes all memory, because the device may choose other memory for
 * its next answer.
 */
TEST_F(device, a_release_drains)
{
	struct block blocks[MAX_BLOCKS];
	struct flexmem_alloc a;
	unsigned int i, nr;

	NEED(RW, "READ and WRITE");
	NEED(SCRUB, "scrub");
	TAKE(self->a, SIZE, 0, &a);
	HOOK(self->a, "stray %u %llu %d %d", a.out_handle, SIZE, A, STRAY_MS);
	ASSERT_EQ(0, fm_free(self->a, a.out_handle));
	ASSERT_EQ(0, fm_trim(self->a));
	ASSERT_EQ(ENOMEM, take_all(self->b, blocks, &nr));
	usleep(1000 * (STRAY_MS + 500));
	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, is_zero(self->b, &blocks[i]))
			TH_LOG("the device wrote to memory that was released");
	EXPECT_EQ(0, free_all(self->b, blocks, nr));
}

/*
 * A program without a fence is to write to memory of an owner. The reset waits
 * for the program or ends it, and then all memory is free.
 */
TEST_F(device, a_reset_ends_programs_and_frees_all_memory)
{
	struct block before[MAX_BLOCKS], after[MAX_BLOCKS];
	unsigned int i, nr, nr_after;
	char *map = NULL;

	ASSERT_EQ(ENOMEM, take_all(self->a, before, &nr));
	ASSERT_LE(1, nr);
	ASSERT_LE(SIZE, before[0].size);
	if (self->can & FLEXMEM_CAP_MAP) {
		struct flexmem_alloc a;

		ASSERT_EQ(0, fm_free(self->a, before[--nr].handle));
		TAKE(self->a, before[nr].size, FLEXMEM_ALLOC_MAPPABLE, &a);
		before[nr++].handle = a.out_handle;
		map = fm_mmap(self->a, a.out_handle, 0, 4096);
		ASSERT_NE(MAP_FAILED, (void *)map);
		ASSERT_EQ(0, fm_touch(map, true));
	}
	HOOK(self->a, "stray %u %llu %d %d", before[0].handle, SIZE, A,
	     STRAY_MS);
	HOOK(self->a, "reset");
	if (map)
		EXPECT_EQ(SIGBUS, fm_touch(map, false))
			TH_LOG("a map shows memory after a reset");
	EXPECT_EQ(0, free_all(self->a, before, nr));
	ASSERT_EQ(ENOMEM, take_all(self->b, after, &nr_after));
	EXPECT_EQ(sum(before, nr), sum(after, nr_after))
		TH_LOG("the device has other free memory after a reset");
	usleep(1000 * (STRAY_MS + 500));
	for (i = 0; i < nr_after && self->can & FLEXMEM_CAP_SCRUB &&
	     self->can & FLEXMEM_CAP_RW; i++)
		EXPECT_EQ(0, is_zero(self->b, &after[i]))
			TH_LOG("the device wrote to memory after a reset");
	EXPECT_EQ(0, free_all(self->b, after, nr_after));
}

/*
 * Starts a child that writes a byte to a pipe before it accesses the memory,
 * and one afterwards. Returns the pipe after the first byte, or -1.
 */
static int access_in_child(int fd, __u32 handle, char *map, pid_t *pid)
{
	int ends[2];
	char byte;

	if (pipe(ends))
		return -1;
	*pid = fork();
	if (!*pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ends[1], "b", 1) != 1)
			_exit(1);
		if (map ? fm_touch(map, true) :
			  fm_write(fd, handle, 0, "x", 1))
			_exit(2);
		_exit(write(ends[1], "e", 1) != 1);
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		return -1;
	return ends[0];
}

static bool says_more(int fd, int ms)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	char byte;

	return poll(&wait, 1, ms) == 1 && read(fd, &byte, 1) == 1;
}

TEST_F(device, nothing_is_accessed_while_it_is_suspended)
{
	struct flexmem_alloc a;
	char *map = NULL;
	pid_t pids[2];
	int ends[2], i;

	NEED(RW, "READ and WRITE");
	TAKE(self->a, SIZE, self->can & FLEXMEM_CAP_MAP ?
	     FLEXMEM_ALLOC_MAPPABLE : 0, &a);
	if (self->can & FLEXMEM_CAP_MAP) {
		map = fm_mmap(self->a, a.out_handle, 0, SIZE);
		ASSERT_NE(MAP_FAILED, (void *)map);
		ASSERT_EQ(0, fm_touch(map, true));
	}
	HOOK(self->a, "suspend");
	for (i = 0; i < 2; i++) {
		ends[i] = access_in_child(self->a, a.out_handle,
					  i ? map : NULL, &pids[i]);
		EXPECT_LE(0, ends[i]);
		EXPECT_FALSE(says_more(ends[i], 1000))
			TH_LOG("%s has reached a suspended device",
			       i && map ? "a map" : "WRITE");
	}
	EXPECT_EQ(0, hook(self->a, "resume"));
	for (i = 0; i < 2; i++) {
		int status = -1;

		EXPECT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_EQ(0, status);
		close(ends[i]);
	}
}

TEST_HARNESS_MAIN
