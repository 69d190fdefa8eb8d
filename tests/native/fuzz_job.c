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
