// SPDX-License-Identifier: GPL-2.0
/*
 * Device programs, and what happens to a device without its consent: sleep and
 * failure. A program is a fence in the allocations that it uses.
 */
#include "shim/internal.h"

#include <linux/dma-fence.h>
#include <flexmem/dispatch.h>

#include "fuzz.h"

static const char *fence_name(struct dma_fence *fence)
{
	return "fuzz";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
};

static DEFINE_SPINLOCK(fence_lock);

/* Each fence has a context of its own, so that it replaces no earlier one. */
static struct dma_fence *make_fence(void)
{
	struct dma_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	if (!fence)
		abort();
	dma_fence_init(fence, &fence_ops, &fence_lock,
		       dma_fence_context_alloc(1), 1);
	return fence;
}

/* A driver starts no program that uses a lost allocation. */
static void begin(struct fuzz *f, struct fuzz_job *job,
		  struct fuzz_allocation *a)
{
	struct flexmem_file *private = f->files[a->file].file->private_data;
	struct flexmem_allocation *allocation;

	allocation = flexmem_client_allocation(&private->client, a->handle);
	SAME(f, PTR_ERR_OR_ZERO(allocation), 0);
	SAME(f, flexmem_allocation_error(allocation), a->lost ? -EIO : 0);
	if (!a->lost) {
		job->fence = make_fence();
		job->serial = a->serial;
		SAME(f, flexmem_allocation_add_fence(allocation, job->fence),
		     0);
		a->jobs++;
	}
	flexmem_allocation_put(allocation);
}

static void end(struct fuzz *f, struct fuzz_job *job)
{
	struct fuzz_allocation *a = f->allocation;

	dma_fence_signal(job->fence);
	native_quiesce();
	dma_fence_put(job->fence);
	job->fence = NULL;
	while (a < f->allocation + f->nr && a->serial != job->serial)
		a++;
	/* A reset may have ended the allocation. */
	if (a == f->allocation + f->nr)
		return;
	a->jobs--;
	fuzz_end_unused(f, a);
}

/* Begins or ends a program. */
void fuzz_job(struct fuzz *f)
{
	u8 n = fuzz_take(f);
	struct fuzz_job *job = &f->job[n % FUZZ_JOBS];
	struct fuzz_allocation *a;

	if (job->fence) {
		end(f, job);
		return;
	}
	a = f->allocation + n / FUZZ_JOBS;
	if (!f->gone && a < f->allocation + f->nr && a->handle &&
	    !a->index)
		begin(f, job, a);
}

/*
 * Ends all programs. The model has no closed file whose memory is still in use,
 * so this is called before a file is closed.
 */
void fuzz_end_jobs(struct fuzz *f)
{
	unsigned int i;

	for (i = 0; i < FUZZ_JOBS; i++)
		if (f->job[i].fence)
			end(f, &f->job[i]);
}

static u64 slots_of(const struct fuzz *f, unsigned int file)
{
	const struct fuzz_allocation *a;
	u64 slots = 0;

	for (a = f->allocation; a < f->allocation + f->nr; a++)
		if (a->file == file && !a->lost)
			slots |= BIT_ULL(a->slot);
	return slots;
}

/* Holds the regions of a file, or ends a hold. */
void fuzz_hold(struct fuzz *f)
{
	u8 n = fuzz_take(f);
	unsigned int file = n / FUZZ_HOLDS % FUZZ_FILES;
	struct fuzz_hold *hold = &f->hold[n % FUZZ_HOLDS];
	struct flexmem_file *private;

	if (f->gone)
		return;
	if (hold->taken) {
		flexmem_regions_unhold(f->fdev, &hold->hold);
		hold->taken = false;
	} else if (f->files[file].file) {
		private = f->files[file].file->private_data;
		hold->hold = flexmem_client_hold(&private->client);
		hold->slots = slots_of(f, file);
		hold->taken = true;
		SAME(f, hold->hold.slots, hold->slots);
	}
}

/* The slots that holds keep, as a bit mask. */
u64 fuzz_held(const struct fuzz *f)
{
	unsigned int i;
	u64 slots = 0;

	for (i = 0; i < FUZZ_HOLDS; i++)
		if (f->hold[i].taken)
			slots |= f->hold[i].slots;
	return slots;
}

/* A reset loses the regions that are held. The holds end later. */
void fuzz_lose_holds(struct fuzz *f)
{
	unsigned int i;

	for (i = 0; i < FUZZ_HOLDS; i++)
		f->hold[i].slots = 0;
}

/* A device that cannot be reset would stay failed, so it does not fail. */
void fuzz_failed(struct fuzz *f)
{
	if (f->gone || f->bare)
		return;
	flexmem_device_failed(f->fdev);
	f->model->broken = true;
}

void fuzz_sleep(struct fuzz *f)
{
	u8 n = fuzz_take(f);

	if (f->gone)
		return;
	flexmem_device_suspend(f->fdev);
	f->fake->asleep = true;
	if (n & 1)
		fuzz_failed(f);
	native_time_advance((n >> 1) * HZ / 10);
	native_quiesce();
	f->fake->asleep = false;
	flexmem_device_resume(f->fdev);
}
