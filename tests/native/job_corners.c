// SPDX-License-Identifier: GPL-2.0
/*
 * Device programs that still run after their memory was freed. The memory waits
 * until a program ends by itself, or until the driver's watchdog resets the
 * device. Time is virtual.
 */
#include "corners.h"
#include "watch.h"

/* The time limit of a device program, and a margin on either side. */
#define LIMIT_MS WORLD_JOB_MS
#define BIT_MS 1000

/* Bytes that a program writes without the knowledge of flexmem. */
#define STRAY_SIZE 4096

static unsigned int resets(void)
{
	return world_function(1)->fdev->table.resets;
}

/*
 * Starts a program of a client in memory that the client then frees. Another
 * client has an allocation.
 */
static struct dma_fence *begin(struct run *r, u32 latency_ms, u32 flags)
{
	struct sim_run run = {
		.program = SIM_PROGRAM_FILL,
		.fd = WORLD_FD,
		.size = 20000,
		.latency_ms = latency_ms,
		.flags = flags,
	};
	struct dma_fence *fence;

	prepare(r);
	open_file(r, 1);
	alloc(r, 1, 20000, 0);
	run.to = r->handle[0][0];
	if (!run_good(r, "run", world_run(r->file[0], &run, &fence), 0))
		return NULL;
	CALL(r, FREE, &CMD(free, .handle = run.to));
	r->nr[0] = 0;
	native_settle_work();
	return fence;
}

static void end(struct run *r, struct dma_fence *fence, int status)
{
	must(r, dma_fence_get_status(fence) == status, "the job's result");
	dma_fence_put(fence);
}

static void later(unsigned int ms)
{
	msleep(ms);
	native_settle_work();
}

static u32 lost(struct run *r)
{
	struct flexmem_lookup lookup = CMD(lookup, .handle = r->handle[1][0]);

	BY(r, 1, LOOKUP, &lookup, 0);
	return lookup.out_flags & FLEXMEM_LOOKUP_LOST;
}

/* What SNAPSHOT shows of a file's memory that waits for programs. */
static void must_wait(struct run *r, unsigned int i, u64 bytes, u64 from_ms,
		      u64 to_ms)
{
	const struct flexmem_file *file = r->file[i]->private_data;
	struct flexmem_region_entry region[FLEXMEM_MAX_SLOTS];
	struct flexmem_owner_entry owner[8] = {}, *one = owner;
	struct flexmem_snapshot cmd = CMD(snapshot,
		.region_entry_size = sizeof(*region),
		.region_count = ARRAY_SIZE(region),
		.regions = (uintptr_t)region,
		.owner_entry_size = sizeof(*owner),
		.owner_count = ARRAY_SIZE(owner),
		.owners = (uintptr_t)owner);

	CALL(r, SNAPSHOT, &cmd);
	while (one < owner + ARRAY_SIZE(owner) - 1 &&
	       (one->kind != FLEXMEM_OWNER_CLIENT ||
		one->id != file->client.account->id))
		one++;
	must(r, one->leaving == bytes && one->orphaned == bytes,
	     "the file's memory that waits");
	must(r, one->waits_ms >= from_ms && one->waits_ms <= to_ms,
	     "how long it has waited");
}

/* Only the watchdog ends the job, whether the device could still end it or not. */
static void run_too_long(struct run *r, u32 flags)
{
	unsigned int before = resets();
	struct dma_fence *fence = begin(r, SIM_MAX_RUN_MS, flags);

	if (!fence)
		return;
	must_wait(r, 0, 20480, 0, 0);
	later(LIMIT_MS - BIT_MS);
	must(r, resets() == before && !dma_fence_is_signaled(fence),
	     "the job has its time");
	must_wait(r, 0, 20480, LIMIT_MS - BIT_MS, LIMIT_MS - BIT_MS / 2);
	later(2 * BIT_MS);
	must(r, resets() == before + 1 && lost(r), "then the function is reset");
	must_wait(r, 0, 0, 0, 0);
	end(r, fence, -ETIMEDOUT);
	later(10 * LIMIT_MS);
	must(r, resets() == before + 1, "it is reset once");
}

static void run_overdue(struct run *r)
{
	run_too_long(r, 0);
}

static void run_hang(struct run *r)
{
	run_too_long(r, SIM_RUN_HANGS);
}

/*
 * Each job has its full time from its begin on. The second job waits for longer
 * than that behind the first one, and its memory was freed.
 */
static void run_behind(struct run *r)
{
	struct sim_run run = {
		.program = SIM_PROGRAM_FILL,
		.fd = WORLD_FD,
		.size = 20000,
		.latency_ms = LIMIT_MS - BIT_MS,
	};
	struct dma_fence *first = begin(r, LIMIT_MS - BIT_MS, 0), *second;
	unsigned int before = resets();

	if (!first)
		return;
	run.to = r->handle[1][0];
	if (!run_good(r, "run", world_run(r->file[1], &run, &second), 0))
		return;
	BY(r, 1, FREE, &CMD(free, .handle = run.to), 0);
	r->nr[1] = 0;
	later(LIMIT_MS);
	must_wait(r, 0, 0, 0, 0);
	must_wait(r, 1, 20096, LIMIT_MS, LIMIT_MS + BIT_MS);
	end(r, first, 1);
	later(LIMIT_MS);
	end(r, second, 1);
	must(r, resets() == before, "no job has run too long");
}

/* The card takes long to carry out a job. Another task may pause first. */
static void move_slowly(void)
{
	struct sim_queue *queue = &world_function(1)->queue;

	__atomic_store_n(&during_pause, READ_ONCE(queue->running) ? NULL : move_slowly,
			 __ATOMIC_RELEASE);
	if (READ_ONCE(queue->running))
		msleep(LIMIT_MS - BIT_MS);
}

/* A job's time begins when the job before it has ended. */
static void run_behind_slow(struct run *r)
{
	struct sim_run run = {
		.program = SIM_PROGRAM_FILL,
		.fd = WORLD_FD,
		.size = 20000,
		.latency_ms = LIMIT_MS - BIT_MS,
	};
	struct dma_fence *first = begin(r, BIT_MS, 0), *second;
	unsigned int before = resets();

	if (!first)
		return;
	run.to = r->handle[1][0];
	if (!run_good(r, "run", world_run(r->file[1], &run, &second), 0))
		return;
	__atomic_store_n(&during_pause, move_slowly, __ATOMIC_RELEASE);
	msleep(LIMIT_MS / 2);
	must(r, !__atomic_load_n(&during_pause, __ATOMIC_ACQUIRE) &&
	     !dma_fence_is_signaled(first), "the card carries out the first job");
	later(LIMIT_MS / 2 + BIT_MS);
	end(r, first, 1);
	later(LIMIT_MS);
	must(r, resets() == before, "no job has run too long");
	end(r, second, 1);
}

static void run_sleep(struct run *r)
{
	struct dma_fence *fence = begin(r, 0, SIM_RUN_HANGS);
	unsigned int before = resets();

	if (!fence)
		return;
	later(LIMIT_MS - BIT_MS);
	world_suspend(1);
	later(10 * LIMIT_MS);
	must(r, resets() == before, "a device that sleeps is not reset");
	world_resume(1);
	later(LIMIT_MS - BIT_MS);
	must(r, resets() == before, "the job has its full time again");
	later(2 * BIT_MS);
	must(r, resets() == before + 1, "then the function is reset");
	end(r, fence, -ETIMEDOUT);
}

static int occupy(void *data)
{
	msleep(3 * LIMIT_MS);
	return 0;
}

static int run_other(void *data)
{
	sim_firmware_run(world.card.fw, occupy, NULL);
	complete(data);
	return 0;
}

/*
 * The card carries out one job at a time. A job that waits for a job of another
 * function has not run too long.
 */
static void run_waits(struct run *r)
{
	struct dma_fence *fence = begin(r, BIT_MS, 0);
	unsigned int before = resets();
	struct completion ended;

	if (!fence)
		return;
	init_completion(&ended);
	native_kthread_run(run_other, &ended, "other");
	msleep(2 * LIMIT_MS);
	must(r, !dma_fence_is_signaled(fence), "the job waits");
	wait_for_completion(&ended);
	later(BIT_MS);
	must(r, resets() == before, "the time of another job does not count");
	end(r, fence, 1);
}

/*
 * An ALLOC that finds no room reports how many bytes are leaving. An older
 * program has a struct without this member. Then the driver writes nothing
 * behind the end of the struct.
 */
static void run_no_room(struct run *r)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = 1ull << 50);
	const u32 older = offsetof(struct flexmem_alloc, out_leaving);
	struct dma_fence *fence = begin(r, BIT_MS, 0);

	if (!fence)
		return;
	BY(r, 1, ALLOC, &cmd, ENOMEM);
	must(r, cmd.out_leaving == 20480, "bytes that are leaving");
	cmd = CMD(alloc, .length = 1ull << 50, .out_leaving = 77);
	cmd.size = older;
	BY(r, 1, ALLOC, &cmd, ENOMEM);
	must(r, cmd.size == older && cmd.out_leaving == 77,
	     "struct of an older program");
	later(2 * BIT_MS);
	end(r, fence, 1);
}

static u64 base_of(unsigned int index)
{
	return world_function(index)->fdev->table.region[0]->mem.base;
}

/*
 * Starts a program in memory of a PF or VF, frees the memory while the program
 * runs, and releases it. flexmem does not know the program's fence. Returns the
 * address of the memory.
 */
static u64 begin_stray(struct run *r, unsigned int index,
		       struct dma_fence **fence)
{
	struct sim_run run = {
		.program = SIM_PROGRAM_FILL,
		.fd = WORLD_FD,
		.size = STRAY_SIZE,
		.value = 'x',
		.latency_ms = BIT_MS,
		.flags = SIM_RUN_STRAY,
	};
	struct flexmem_trim trim = CMD(trim);
	struct file *file = native_open(world_minor(index), O_RDWR);
	u64 base;

	*fence = NULL;
	if (!run_good(r, "open", PTR_ERR_OR_ZERO(file), 0))
		return 0;
	r->file[0] = file;
	run.to = alloc(r, 0, STRAY_SIZE, 0);
	if (!run_good(r, "run", world_run(file, &run, fence), 0))
		return 0;
	base = base_of(index);
	CALL(r, FREE, &CMD(free, .handle = run.to));
	r->nr[0] = 0;
	CALL(r, TRIM, &trim);
	must(r, trim.out_regions, "TRIM releases the region");
	return base;
}

/* The program must have written no byte after the memory was released. */
static void end_stray(struct run *r, u64 base, struct dma_fence *fence)
{
	u8 bytes[STRAY_SIZE];

	later(2 * BIT_MS);
	must(r, dma_fence_is_signaled(fence), "the program has ended");
	sim_memory_read(&world_function(1)->card->memory, base, sizeof(bytes),
			bytes);
	must(r, !memchr_inv(bytes, 0, sizeof(bytes)),
	     "released memory stays clear");
	dma_fence_put(fence);
}

static void run_stray(struct run *r, unsigned int index)
{
	struct dma_fence *fence;
	u64 base = begin_stray(r, index, &fence);

	if (fence)
		end_stray(r, base, fence);
}

static void run_stray_vf(struct run *r)
{
	run_stray(r, 1);
}

static void run_stray_pf(struct run *r)
{
	run_stray(r, 0);
}

/*
 * The VF gets the memory of the PF at a time when the program of the PF would
 * still run.
 */
static void run_stray_heir(struct run *r)
{
	struct dma_fence *fence;
	u64 base;

	open_file(r, 1);
	BY(r, 1, TRIM, &CMD(trim), 0);
	base = begin_stray(r, 0, &fence);
	if (!fence)
		return;
	alloc(r, 1, STRAY_SIZE, 0);
	must(r, base_of(1) == base, "the VF gets the memory of the PF");
	end_stray(r, base, fence);
}

/*
 * A program also writes outside of all allocations. The memory is clear when the
 * region is released.
 */
static void run_elsewhere(struct run *r)
{
	struct sim_memory *memory = &world_function(1)->card->memory;
	struct sim_run run = {
		.program = SIM_PROGRAM_FILL,
		.fd = WORLD_FD,
		.size = STRAY_SIZE,
		.value = 'x',
	};
	u8 bytes[STRAY_SIZE] = { [0 ... STRAY_SIZE - 1] = 'x' };
	struct flexmem_trim trim = CMD(trim);
	struct dma_fence *fence;
	u64 base;

	open_file(r, 0);
	run.to = alloc(r, 0, STRAY_SIZE, 0);
	if (r->wrong ||
	    !run_good(r, "run", world_run(r->file[0], &run, &fence), 0))
		return;
	base = base_of(1) - STRAY_SIZE +
	       world_function(1)->fdev->table.region[0]->mem.size;
	later(BIT_MS);
	end(r, fence, 1);
	/* The simulator's programs keep to their handles. */
	if (!run_good(r, "pages", sim_memory_populate(memory, base, sizeof(bytes)),
		      0) ||
	    !run_good(r, "write", sim_memory_write(memory, base, sizeof(bytes),
						   bytes), 0))
		return;
	CALL(r, FREE, &CMD(free, .handle = r->handle[0][--r->nr[0]]));
	CALL(r, TRIM, &trim);
	must(r, trim.out_regions, "TRIM releases the region");
	sim_memory_read(memory, base, sizeof(bytes), bytes);
	must(r, !memchr_inv(bytes, 0, sizeof(bytes)),
	     "released memory is clear where no allocation was");
}

static void trim(struct run *r, unsigned int regions)
{
	struct flexmem_trim cmd = CMD(trim);

	CALL(r, TRIM, &cmd);
	must(r, cmd.out_regions == regions, "regions that TRIM releases");
}

/*
 * Two clients free memory in regions of their own while a job of the first
 * client runs that names none of it. Neither TRIM nor the automatic release
 * takes the region that the job's driver holds. The other region goes.
 */
static void run_hold(struct run *r)
{
	struct sim_run run = {
		.program = SIM_PROGRAM_FILL,
		.fd = WORLD_FD,
		.size = 128,
		.latency_ms = BIT_MS,
		.flags = SIM_RUN_HOLDS,
	};
	struct dma_fence *fence;
	u64 size;

	prepare(r);
	open_file(r, 1);
	run.to = r->handle[0][0];
	if (r->wrong)
		return;
	size = world_function(1)->fdev->table.region[0]->mem.size;
	alloc(r, 0, size, 0);
	alloc(r, 1, size, 0);
	if (r->wrong ||
	    !run_good(r, "run", world_run(r->file[0], &run, &fence), 0))
		return;
	CALL(r, FREE, &CMD(free, .handle = r->handle[0][--r->nr[0]]));
	trim(r, 0);
	must(r, !dma_fence_is_signaled(fence), "the job still runs");
	/* A release drains the device, and so ends the job. */
	BY(r, 1, FREE, &CMD(free, .handle = r->handle[1][0]), 0);
	r->nr[1] = 0;
	trim(r, 1);
	later(2 * BIT_MS);
	end(r, fence, 1);
	trim(r, 1);
}

const struct sequence job_corners[] = {
	{ "job that takes too long", NULL, run_overdue },
	{ "job behind a long job", NULL, run_behind },
	{ "job behind a job that moves bytes slowly", NULL, run_behind_slow },
	{ "job under a region of a VF that is released", NULL, run_stray_vf },
	{ "job under a region of a PF that is released", NULL, run_stray_pf },
	{ "job under memory that passes from a PF to a VF", NULL,
	  run_stray_heir },
	{ "job that writes outside of its memory", NULL, run_elsewhere },
	{ "job that waits for another function", NULL, run_waits },
	{ "job whose memory is leaving when there is no room", NULL,
	  run_no_room },
	{ "job that hangs", NULL, run_hang },
	{ "job that holds the regions of its client", NULL, run_hold },
	{ "job that hangs while the device sleeps", NULL, run_sleep },
	{}
};
