// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that are loaded into device memory: the card reads the binary, and
 * follows the addresses in it.
 */
#include "sim/program.h"

#include "corners.h"

#define SIZE 4096
#define TILE 1000

/**
 * struct loaded - a program in device memory, and a tensor
 * @program: allocation that holds the binary
 * @tensor: allocation that the program writes
 * @piece: the card's memory that holds @tensor
 */
struct loaded {
	struct flexmem_alloc program;
	struct flexmem_alloc tensor;
	struct sim_piece piece;
};

/* Finds the memory that a region_id means to programs. */
static struct sim_piece find_piece(unsigned int index, u64 region_id)
{
	struct sim_piece piece = {};

	while (sim_firmware_next_piece(world.card.fw, index, &piece))
		if (region_id == (index ? piece.slot : piece.base))
			return piece;
	return (struct sim_piece) {};
}

/* TRIM releases the regions of an earlier run, so that all runs are equal. */
static bool begin(struct run *r, unsigned int index, struct loaded *l)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = SIZE);
	struct flexmem_trim trim = CMD(trim);
	struct file *file = native_open(world_minor(index), O_RDWR);

	if (!run_good(r, "open", PTR_ERR_OR_ZERO(file), 0))
		return false;
	r->file[0] = file;
	CALL(r, TRIM, &trim);
	cmd.flags = FLEXMEM_ALLOC_PROGRAM;
	alloc_by(r, cmd, 0, &l->program);
	cmd.flags = FLEXMEM_ALLOC_ZEROED;
	alloc_by(r, cmd, 0, &l->tensor);
	l->piece = find_piece(index, l->tensor.out_address.region_id);
	must(r, l->piece.size, "the card knows the region of an address");
	return !r->wrong;
}

/* An operation on the tensor from byte @at on. */
static struct sim_record fill_record(const struct loaded *l, u64 at, u8 value)
{
	struct sim_record record = {
		.program = SIM_PROGRAM_FILL,
		.value = value,
		.to = l->tensor.out_address,
		.size = TILE,
	};

	record.to.offset += at;
	return record;
}

static void load(struct run *r, const struct loaded *l, u64 offset,
		 const struct sim_record *record, unsigned int nr)
{
	struct flexmem_rw cmd = CMD(rw, .handle = l->program.out_handle,
				    .offset = offset,
				    .length = nr * sizeof(*record),
				    .data = (uintptr_t)record);

	CALL(r, WRITE, &cmd);
}

static struct sim_run job_of(const struct loaded *l, unsigned int nr)
{
	return (struct sim_run) {
		.program = SIM_PROGRAM_LOADED,
		.fd = WORLD_FD,
		.from = l->program.out_handle,
		.size = nr * sizeof(struct sim_record),
		.flags = SIM_RUN_HOLDS,
	};
}

/* Runs a job, which the driver must accept, and which must end with @error. */
static void run_job(struct run *r, struct sim_run job, int error)
{
	struct dma_fence *fence;
	int status;

	if (!run_good(r, "run", world_run(r->file[0], &job, &fence), 0))
		return;
	dma_fence_wait(fence, false);
	status = dma_fence_get_status(fence);
	must(r, status == (error ? -error : 1) || status == -ENOMEM,
	     "the program's result");
	dma_fence_put(fence);
}

static void run_record(struct run *r, const struct loaded *l,
		       struct sim_record record, int error)
{
	/* After a violation the card might write more than the host has room for. */
	if (r->wrong)
		return;
	load(r, l, 0, &record, 1);
	run_job(r, job_of(l, 1), error);
}

/* The tensor must hold @value in these bytes. */
static void must_hold(struct run *r, const struct loaded *l, u64 at, u64 size,
		      u8 value)
{
	u8 data[SIZE];
	struct flexmem_rw cmd = CMD(rw, .handle = l->tensor.out_handle,
				    .offset = at, .length = size,
				    .data = (uintptr_t)data);

	if (CALL(r, READ, &cmd))
		must(r, !memchr_inv(data, value, size), "bytes of the tensor");
}

/*
 * The binary begins in the middle of the program's memory. The offsets of
 * addresses need not be multiples of 128, because tiles can have any size.
 */
static void run_binary(struct run *r, unsigned int index)
{
	struct sim_record record[3];
	struct sim_run job;
	struct loaded l;

	if (!begin(r, index, &l))
		return;
	record[0] = fill_record(&l, 1, 3);
	record[1] = record[0];
	record[1].program = SIM_PROGRAM_COPY;
	record[1].from = record[0].to;
	record[1].to.offset += TILE;
	record[2] = record[1];
	record[2].program = SIM_PROGRAM_ADD;
	load(r, &l, 77, record, 3);
	job = job_of(&l, 3);
	job.from_offset = 77;
	run_job(r, job, 0);
	must_hold(r, &l, 0, 1, 0);
	must_hold(r, &l, 1, TILE, 3);
	must_hold(r, &l, 1 + TILE, TILE, 6);
	must_hold(r, &l, 1 + 2 * TILE, TILE, 0);
}

static void run_vf(struct run *r)
{
	run_binary(r, 1);
}

static void run_pf(struct run *r)
{
	run_binary(r, 0);
}

/* Each of these addresses is wrong for the bytes of the record. */
static void run_outside(struct run *r, const struct loaded *l)
{
	struct sim_record good = fill_record(l, 0, 5), bad;
	const u64 end = l->piece.size;
	const u64 offsets[] = {
		end - TILE + 1, end, end + SZ_1M, U64_MAX, U64_MAX - TILE + 1,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		bad = good;
		bad.to.offset = offsets[i];
		run_record(r, l, bad, EFAULT);
		bad = good;
		bad.program = i & 1 ? SIM_PROGRAM_COPY : SIM_PROGRAM_ADD;
		bad.from = good.to;
		bad.from.offset = offsets[i];
		run_record(r, l, bad, EFAULT);
	}
	bad = good;
	bad.size = end + 1;
	run_record(r, l, bad, EFAULT);
	bad.size = U64_MAX;
	run_record(r, l, bad, EFAULT);
}

static void run_bad_records(struct run *r, const struct loaded *l)
{
	struct sim_record good = fill_record(l, 0, 5), bad = good;

	bad.size = 0;
	run_record(r, l, bad, EINVAL);
	bad = good;
	bad.value = 256 + 5;
	run_record(r, l, bad, EINVAL);
	bad = good;
	bad.program = SIM_PROGRAM_LOADED;
	run_record(r, l, bad, EINVAL);
	bad.program = U32_MAX;
	run_record(r, l, bad, EINVAL);
}

/* After a wrong record, the card does not carry out the records behind it. */
static void run_wrong_record(struct run *r, unsigned int index)
{
	struct sim_record record[3];
	struct loaded l;

	if (!begin(r, index, &l))
		return;
	run_outside(r, &l);
	run_bad_records(r, &l);
	must_hold(r, &l, 0, SIZE, 0);
	record[0] = fill_record(&l, 0, 7);
	record[1] = fill_record(&l, TILE, 7);
	record[1].to.offset = l.piece.size;
	record[2] = fill_record(&l, 2 * TILE, 7);
	load(r, &l, 0, record, 3);
	run_job(r, job_of(&l, 3), EFAULT);
	must_hold(r, &l, 0, TILE, 7);
	must_hold(r, &l, TILE, SIZE - TILE, 0);
}

static void run_wrong_vf(struct run *r)
{
	run_wrong_record(r, 1);
}

static void run_wrong_pf(struct run *r)
{
	run_wrong_record(r, 0);
}

/* A VF has no region at an empty entry of its table, or behind the table. */
static void run_no_slot(struct run *r)
{
	const u64 slots = world.card.slots;
	struct sim_record record;
	struct loaded l;

	if (!begin(r, 1, &l))
		return;
	record = fill_record(&l, 0, 9);
	for (record.to.region_id = 0; record.to.region_id < slots;
	     record.to.region_id++)
		if (!find_piece(1, record.to.region_id).size)
			run_record(r, &l, record, EFAULT);
	run_record(r, &l, record, EFAULT);
	record.to.region_id = slots + SIM_MAX_SLOTS;
	run_record(r, &l, record, EFAULT);
	record.to.region_id = BIT_ULL(32) + l.tensor.out_address.region_id;
	run_record(r, &l, record, EFAULT);
	record.to.region_id = U64_MAX;
	run_record(r, &l, record, EFAULT);
	must_hold(r, &l, 0, SIZE, 0);
}

/* A PF does not reach the memory of a VF, and finds only whole regions. */
static void run_other_function(struct run *r)
{
	struct sim_record record;
	struct loaded vf, pf;
	u8 data[TILE];

	if (!begin(r, 1, &vf))
		return;
	r->file[1] = r->file[0];
	r->nr[1] = r->nr[0];
	memcpy(r->handle[1], r->handle[0], sizeof(r->handle[0]));
	r->file[0] = NULL;
	r->nr[0] = 0;
	if (!begin(r, 0, &pf))
		return;
	record = fill_record(&pf, 0, 9);
	record.to.region_id = vf.piece.base;
	record.to.offset = vf.tensor.out_address.offset;
	run_record(r, &pf, record, EFAULT);
	sim_memory_read(&world.card.memory, vf.piece.base + record.to.offset,
			TILE, data);
	must(r, !memchr_inv(data, 0, TILE), "memory of the VF");
	record.to.region_id = pf.piece.base + 1;
	run_record(r, &pf, record, EFAULT);
	must_hold(r, &pf, 0, SIZE, 0);
}

static void refuse(struct run *r, struct sim_run job, int error)
{
	struct dma_fence *fence;

	run_good(r, "run", world_run(r->file[0], &job, &fence), error);
}

static u64 leaving(struct run *r, unsigned int f)
{
	struct flexmem_snapshot cmd = CMD(snapshot,
		.region_entry_size = sizeof(struct flexmem_region_entry),
		.owner_entry_size = sizeof(struct flexmem_owner_entry));

	BY(r, f, SNAPSHOT, &cmd, EMSGSIZE);
	return cmd.out_orphaned;
}

/* A job that is refused for its list adds its fence to no tensor. */
static void run_refused_list(struct run *r)
{
	u32 handles[SIM_MAX_HANDLES + 1] = {};
	struct sim_run good, bad;
	struct loaded l;

	if (!begin(r, 1, &l))
		return;
	handles[0] = l.tensor.out_handle;
	handles[1] = l.tensor.out_handle + 1;
	good = job_of(&l, 1);
	good.handles = (uintptr_t)handles;
	bad = good;
	bad.nr_handles = 2;
	refuse(r, bad, ENOENT);
	bad.nr_handles = SIM_MAX_HANDLES + 1;
	refuse(r, bad, EINVAL);
	bad.nr_handles = BIT_ULL(32) + 1;
	refuse(r, bad, EINVAL);
	bad = good;
	bad.nr_handles = 1;
	bad.handles = (uintptr_t)-4;
	refuse(r, bad, EFAULT);
	bad = good;
	bad.nr_handles = 1;
	bad.program = SIM_PROGRAM_COPY;
	bad.to = l.tensor.out_handle;
	refuse(r, bad, EINVAL);
	CALL(r, FREE, &CMD(free, .handle = l.tensor.out_handle));
	r->nr[0]--;
	must(r, !leaving(r, 0), "no job has begun");
}

static void run_refused(struct run *r)
{
	struct sim_run good, bad;
	struct loaded l;

	if (!begin(r, 1, &l))
		return;
	good = job_of(&l, 1);
	bad = good;
	bad.size--;
	refuse(r, bad, EINVAL);
	bad.size = 0;
	refuse(r, bad, EINVAL);
	bad = good;
	bad.from_offset = l.program.out_size - bad.size + 1;
	refuse(r, bad, EINVAL);
	bad = good;
	bad.flags = SIM_RUN_VIRTUAL;
	bad.from = 0;
	refuse(r, bad, EINVAL);
	bad = good;
	bad.from = 0;
	refuse(r, bad, ENOENT);
	bad = good;
	bad.to = l.tensor.out_handle;
	refuse(r, bad, EINVAL);
	must_hold(r, &l, 0, SIZE, 0);
}

/*
 * The job keeps the program's memory until it has ended, and the tensors that it
 * names.
 */
static void run_keeps(struct run *r)
{
	struct sim_record record;
	struct dma_fence *fence;
	struct sim_run job;
	struct loaded l;

	if (!begin(r, 1, &l))
		return;
	record = fill_record(&l, 0, 9);
	load(r, &l, 0, &record, 1);
	job = job_of(&l, 1);
	job.handles = (uintptr_t)&l.tensor.out_handle;
	job.nr_handles = 1;
	job.latency_ms = 1000;
	if (!run_good(r, "run", world_run(r->file[0], &job, &fence), 0))
		return;
	CALL(r, FREE, &CMD(free, .handle = l.program.out_handle));
	CALL(r, FREE, &CMD(free, .handle = l.tensor.out_handle));
	r->nr[0] = 0;
	must(r, leaving(r, 0) == 2 * SIZE, "memory that the job uses");
	dma_fence_wait(fence, false);
	native_settle_work();
	must(r, dma_fence_get_status(fence) == 1, "the program's result");
	must(r, !leaving(r, 0), "memory that the job has used");
	dma_fence_put(fence);
}

static u64 charged(struct run *r)
{
	struct world_own own;

	world_own(&own);
	BY(r, 1, SNAPSHOT, &own.cmd, 0);
	return own.owner[0].bytes + own.owner[0].orphaned;
}

/* Another client allocates as much as the job uses, and gets other bytes. */
static void must_get_others(struct run *r,
			    const struct flexmem_address *address)
{
	struct flexmem_alloc cmd;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		cmd = CMD(alloc, .length = SIZE);
		if (!BY(r, 1, ALLOC, &cmd, 0))
			return;
		r->handle[1][r->nr[1]++] = cmd.out_handle;
		must(r, memcmp(&cmd.out_address, &address[0],
			       sizeof(*address)) &&
		     memcmp(&cmd.out_address, &address[1], sizeof(*address)),
		     "bytes that the job uses");
	}
}

/* The process is killed while its job is under way. */
static void run_killed(struct run *r)
{
	struct flexmem_address address[2];
	struct flexmem_alloc other;
	struct dma_fence *fence;
	struct sim_run job;
	u32 handles[2];
	u64 before;
	struct loaded l;

	open_file(r, 1);
	if (!r->file[1] || !begin(r, 1, &l))
		return;
	alloc_by(r, CMD(alloc, .length = SIZE), 0, &other);
	handles[0] = l.tensor.out_handle;
	handles[1] = other.out_handle;
	address[0] = l.tensor.out_address;
	address[1] = other.out_address;
	load(r, &l, 0, &(struct sim_record) {
		.program = SIM_PROGRAM_FILL, .value = 1, .size = SIZE,
		.to = other.out_address,
	}, 1);
	before = charged(r);
	job = job_of(&l, 1);
	job.handles = (uintptr_t)handles;
	job.nr_handles = 2;
	job.latency_ms = 1000;
	if (!run_good(r, "run", world_run(r->file[0], &job, &fence), 0))
		return;
	native_close(r->file[0]);
	r->file[0] = NULL;
	r->nr[0] = 0;
	must(r, leaving(r, 1) == 3 * SIZE, "memory that the job uses");
	must(r, charged(r) == before, "memory that the job uses is charged");
	must_get_others(r, address);
	dma_fence_wait(fence, false);
	native_settle_work();
	must(r, dma_fence_get_status(fence) == 1, "the program's result");
	must(r, !leaving(r, 1), "memory that the job has used");
	dma_fence_put(fence);
}

/*
 * The time of the job is over. The watchdog notes that while this task waits.
 * Another task may pause first.
 */
static void overdue(void)
{
	struct sim_queue *queue = &world_function(1)->queue;

	if (READ_ONCE(queue->running))
		msleep(2 * WORLD_JOB_MS);
	else
		__atomic_store_n(&during_pause, overdue, __ATOMIC_RELEASE);
}

/*
 * The time is over while the card carries out a job, after @done bytes of the
 * tensor.
 */
static void end_too_long(struct run *r, const struct loaded *l,
			 struct sim_run *job, u64 done)
{
	u64 tensor = l->piece.base + l->tensor.out_address.offset;
	struct dma_fence *fence;
	u8 bytes[SIZE];
	int status;

	job->latency_ms = 1000;
	native_settle_work();
	if (!run_good(r, "run", world_run(r->file[0], job, &fence), 0))
		return;
	__atomic_store_n(&during_pause, overdue, __ATOMIC_RELEASE);
	dma_fence_wait(fence, false);
	__atomic_store_n(&during_pause, NULL, __ATOMIC_RELEASE);
	status = dma_fence_get_status(fence);
	must(r, status == -ETIMEDOUT || status == -ENOMEM,
	     "the program's result");
	native_settle_work();
	dma_fence_put(fence);
	if (status != -ETIMEDOUT)
		return;
	sim_memory_read(&world_function(1)->card->memory, tensor, SIZE, bytes);
	/* The first bytes may have been scrubbed since. */
	must(r, !memchr_inv(bytes + done, 0, SIZE - done),
	     "the card ends the program early");
}

static void run_too_long(struct run *r)
{
	struct sim_record record[4];
	struct sim_run job;
	struct loaded l;
	unsigned int i;

	if (!begin(r, 1, &l))
		return;
	for (i = 0; i < ARRAY_SIZE(record); i++)
		record[i] = fill_record(&l, i * TILE, 8);
	load(r, &l, 0, record, ARRAY_SIZE(record));
	job = job_of(&l, ARRAY_SIZE(record));
	end_too_long(r, &l, &job, TILE);
}

/* How many bytes the card moves at once. */
#define STEP sizeof_field(struct sim_operation, buffer[0])

static void run_long_fill(struct run *r)
{
	struct sim_run job = {
		.program = SIM_PROGRAM_FILL,
		.fd = WORLD_FD,
		.size = SIZE,
		.value = 8,
	};
	struct loaded l;

	if (!begin(r, 1, &l))
		return;
	job.to = l.tensor.out_handle;
	end_too_long(r, &l, &job, STEP);
}

const struct sequence program_corners[] = {
	{ "program: of a VF", NULL, run_vf },
	{ "program: of a PF", NULL, run_pf },
	{ "program: wrong records of a VF", NULL, run_wrong_vf },
	{ "program: wrong records of a PF", NULL, run_wrong_pf },
	{ "program: no region in the slot", NULL, run_no_slot },
	{ "program: memory of another function", NULL, run_other_function },
	{ "program: refused jobs", NULL, run_refused },
	{ "program: refused lists", NULL, run_refused_list },
	{ "program: memory that a job keeps", NULL, run_keeps },
	{ "program: a killed process", NULL, run_killed },
	{ "program: a binary that takes too long", NULL, run_too_long },
	{ "program: a fill that takes too long", NULL, run_long_fill },
	{}
};
