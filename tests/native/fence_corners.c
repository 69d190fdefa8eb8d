// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of FREE that names fences of programs which the driver has not seen.
 * Time is virtual.
 */
#include <linux/dma-fence-array.h>
#include <linux/sync_file.h>

#include "corners.h"
#include "watch.h"

#define LATENCY_MS 100
#define SIZE 4096

static DEFINE_SPINLOCK(lock);

static const char *get_name(struct dma_fence *fence)
{
	return "foreign";
}

static const struct dma_fence_ops foreign_ops = {
	.get_driver_name = get_name,
	.get_timeline_name = get_name,
};

/* A fence of another driver. */
static struct dma_fence *make_foreign(void)
{
	struct dma_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	dma_fence_init(fence, &foreign_ops, &lock, dma_fence_context_alloc(1),
		       1);
	return fence;
}

/* Makes an array of two fences, and takes the caller's references to both. */
static struct dma_fence *make_array(struct dma_fence *a, struct dma_fence *b)
{
	struct dma_fence **fences = kmalloc_array(2, sizeof(*fences),
						  GFP_KERNEL);

	fences[0] = a;
	fences[1] = b;
	return &dma_fence_array_create(2, fences, dma_fence_context_alloc(1), 1,
				       false)->base;
}

/* Starts a program that flexmem does not know, in the memory of @handle. */
static struct dma_fence *begin(struct run *r, struct file *file, u32 handle,
			       u32 latency_ms)
{
	struct sim_run run = {
		.program = SIM_PROGRAM_FILL,
		.fd = WORLD_FD,
		.to = handle,
		.size = SIZE,
		.latency_ms = latency_ms,
		.flags = SIM_RUN_STRAY,
	};
	struct dma_fence *fence = NULL;

	run_good(r, "run", world_run(file, &run, &fence), 0);
	return fence;
}

static u64 leaving(struct run *r)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = 1ull << 50);

	FAILS(r, ALLOC, &cmd, ENOMEM);
	return cmd.out_leaving;
}

static void later(unsigned int ms)
{
	msleep(ms);
	native_settle_work();
}

/* Frees the file's newest allocation when @fence has signalled. */
static void free_after(struct run *r, struct dma_fence *fence, int error)
{
	u32 handle = r->handle[0][r->nr[0] - 1];

	if (run_good(r, "FREE", world_free_after(r->file[0], handle, fence),
		     error) && !error)
		r->nr[0]--;
}

static void run_one(struct run *r)
{
	struct dma_fence *fence;

	open_file(r, 0);
	fence = begin(r, r->file[0], alloc(r, 0, SIZE, 0), LATENCY_MS);
	free_after(r, fence, 0);
	must(r, leaving(r) == SIZE, "memory waits for the fence");
	later(LATENCY_MS + 1);
	must(r, dma_fence_is_signaled(fence) && !leaving(r),
	     "it is free when the fence has signalled");
	dma_fence_put(fence);
}

/*
 * The second job ends later than the first. One allocation waits for an array
 * of both fences, the other allocation for the first fence alone.
 */
static void run_two(struct run *r)
{
	struct dma_fence *first, *second, *both;
	u32 a;

	open_file(r, 0);
	a = alloc(r, 0, SIZE, 0);
	alloc(r, 0, SIZE, 0);
	first = begin(r, r->file[0], a, LATENCY_MS);
	second = begin(r, r->file[0], a, LATENCY_MS);
	both = make_array(dma_fence_get(first), dma_fence_get(second));
	free_after(r, both, 0);
	dma_fence_put(both);
	free_after(r, first, 0);
	must(r, leaving(r) == 2 * SIZE, "memory waits for its fences");
	later(LATENCY_MS + LATENCY_MS / 2);
	must(r, dma_fence_is_signaled(first) && leaving(r) == SIZE,
	     "the first fence frees one");
	later(LATENCY_MS);
	must(r, dma_fence_is_signaled(second) && !leaving(r),
	     "the second frees the other");
	dma_fence_put(first);
	dma_fence_put(second);
}

/* An earlier fence of a context does not take the place of a later one. */
static void run_earlier(struct run *r)
{
	struct dma_fence *first, *second;
	struct sim_run job = {
		.program = SIM_PROGRAM_FILL,
		.fd = WORLD_FD,
		.size = SIZE,
		.latency_ms = LATENCY_MS,
	};

	open_file(r, 0);
	job.to = alloc(r, 0, SIZE, 0);
	first = begin(r, r->file[0], job.to, LATENCY_MS);
	run_good(r, "run", world_run(r->file[0], &job, &second), 0);
	free_after(r, first, 0);
	later(LATENCY_MS + LATENCY_MS / 2);
	must(r, dma_fence_is_signaled(first) && leaving(r) == SIZE,
	     "memory waits for the job that the driver knows");
	later(LATENCY_MS);
	must(r, dma_fence_is_signaled(second) && !leaving(r), "and no longer");
	dma_fence_put(first);
	dma_fence_put(second);
}

/* The allocation stays, and no fence is added to it. */
static void refuse(struct run *r, struct dma_fence *fence)
{
	free_after(r, fence, EINVAL);
	dma_fence_put(fence);
}

static void run_foreign(struct run *r)
{
	struct dma_fence *foreign = make_foreign(), *own, *others, *neighbours;
	struct file *pf = native_open(world_minor(0), O_RDWR);
	struct flexmem_alloc cmd = CMD(alloc, .length = SIZE);
	u32 a;

	open_file(r, 0);
	a = alloc(r, 0, SIZE, 0);
	run_good(r, "ALLOC", native_ioctl(pf, FLEXMEM_IOCTL_ALLOC, &cmd), 0);
	own = begin(r, r->file[0], a, LATENCY_MS);
	others = begin(r, pf, cmd.out_handle, LATENCY_MS);
	open_file(r, 1);
	neighbours = begin(r, r->file[1], alloc(r, 1, SIZE, 0), LATENCY_MS);
	refuse(r, dma_fence_get(foreign));
	refuse(r, dma_fence_get(others));
	/*
	 * If the driver accepted this fence, a client could have the jobs of
	 * another client cancelled.
	 */
	refuse(r, dma_fence_get(neighbours));
	refuse(r, make_array(dma_fence_get(foreign), dma_fence_get(own)));
	refuse(r, make_array(dma_fence_get(own), dma_fence_get(foreign)));
	later(3 * LATENCY_MS);
	/* No memory waits for a signalled fence, whichever driver made it. */
	dma_fence_signal(foreign);
	free_after(r, foreign, 0);
	must(r, !leaving(r), "no refused fence is left");
	dma_fence_put(foreign);
	dma_fence_put(others);
	dma_fence_put(neighbours);
	dma_fence_put(own);
	native_ioctl(pf, FLEXMEM_IOCTL_FREE,
		     &CMD(free, .handle = cmd.out_handle));
	run_good(r, "TRIM", native_ioctl(pf, FLEXMEM_IOCTL_TRIM, &CMD(trim)), 0);
	native_close(pf);
}

static void run_wrong_fields(struct run *r)
{
	u32 handle, flag = FLEXMEM_FREE_AFTER_FENCE;

	open_file(r, 0);
	handle = alloc(r, 0, SIZE, 0);
	FAILS(r, FREE, &CMD(free, .handle = handle, .fence = 1), EINVAL);
	FAILS(r, FREE, &CMD(free, .handle = handle, .__reserved = 1),
	      EOPNOTSUPP);
	FAILS(r, FREE, &CMD(free, .handle = handle, .flags = flag, .fence = -1),
	      EINVAL);
	native_file_get(r->file[0]);
	native_install(WORLD_FENCE_FD, r->file[0]);
	FAILS(r, FREE, &CMD(free, .handle = handle, .flags = flag,
			    .fence = WORLD_FENCE_FD), EINVAL);
	native_close(native_uninstall(WORLD_FENCE_FD));
	CALL(r, FREE, &CMD(free, .handle = handle));
	r->nr[0] = 0;
}

/* The reply cannot be written, so the memory is not freed. */
static void run_undone(struct run *r)
{
	struct dma_fence *fence;
	u32 handle;

	open_file(r, 0);
	handle = alloc(r, 0, SIZE, 0);
	fence = begin(r, r->file[0], handle, LATENCY_MS);
	free_after(r, fence, 0);
	r->nr[0] = 0;
	/* The handle is gone, so the only right answer is ENOENT. */
	run_good(r, "FREE", world_free_after(r->file[0], handle, fence), ENOENT);
	later(2 * LATENCY_MS);
	dma_fence_put(fence);
}

const struct sequence fence_corners[] = {
	{ "free after a fence", NULL, run_one },
	{ "free after two fences", NULL, run_two },
	{ "free after an earlier fence", NULL, run_earlier },
	{ "free after another's fence", NULL, run_foreign },
	{ "free after no fence", NULL, run_wrong_fields },
	{ "free twice after a fence", NULL, run_undone },
	{}
};
