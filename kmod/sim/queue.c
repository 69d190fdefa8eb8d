// SPDX-License-Identifier: GPL-2.0
/*
 * Programs: an example of a driver that dispatches with flexmem.
 *
 * A job names handles. The job's fence is added to these allocations before the
 * card can see the job, so no byte of the allocations gets another owner before
 * the job has ended. Otherwise a job could write to memory of another owner,
 * because a program uses physical addresses, as on a real card.
 *
 * A loaded program (SIM_PROGRAM_LOADED) is read from device memory, so the
 * driver does not know which memory it reaches. The process names the handles
 * of the program and of all tensors whose addresses are in the binary. If the
 * process is killed, the fence keeps them all until the job has ended.
 *
 * A job in a device-virtual space names no handles: the page table decides what
 * it reaches. It faults if the memory was unmapped in the meantime, so no
 * allocation needs its fence.
 *
 * Jobs begin in order. If the process of a job dies, a job that has begun runs
 * to its end, and any other job is dropped. A quiesce or a reset ends all jobs.
 * Fences of one context must signal in order, because flexmem knows only the
 * latest fence for each allocation. So the fence of a job that fails or is
 * dropped signals only when all earlier jobs have ended.
 *
 * A watchdog sees that every fence signals: when a job has run too long, the
 * watchdog sets the error of its fence to -ETIMEDOUT, and resets the function.
 *
 * Fences signal in an interrupt. A fence points at code of this module, and
 * lives as long as a process keeps the sync_file. So each fence holds a
 * reference to the module.
 */

#include <linux/device.h>
#include <linux/dma-fence.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <flexmem/dispatch.h>

#include "card.h"
#include "compat.h"
#include "program.h"
#include "queue.h"

/**
 * struct sim_job - a program and its operands
 * @fence: signals when the job has ended
 * @link: in &sim_queue.jobs or &sim_queue.ended
 * @client: client that started the job; a reference is held
 * @program: what the card does
 * @latency_ms: how long the job takes
 * @error: why the job does not run, or 0
 * @hangs: the job writes nothing, and only a reset ends it
 * @holder: the PF or VF of @hold; NULL if the job holds no regions
 * @hold: the regions that the job holds until its end
 */
struct sim_job {
	struct dma_fence fence;
	struct list_head link;
	struct flexmem_client *client;
	struct sim_operation program;
	u32 latency_ms;
	int error;
	bool hangs;
	struct flexmem_dev *holder;
	struct flexmem_hold hold;
};

/*
 * A fence may outlive the queue. Then the kernel calls only the operations that
 * return the fence's names.
 */
static struct sim_job *to_job(struct dma_fence *fence)
{
	return container_of(fence, struct sim_job, fence);
}

static const char *get_driver_name(struct dma_fence *fence)
{
	return "flexmem_sim";
}

static const char *get_timeline_name(struct dma_fence *fence)
{
	return "queue";
}

/*
 * The module can be unloaded as soon as module_put() drops the reference. But
 * unloading waits for RCU callbacks, so free_job() has returned by then.
 */
static void free_job(struct rcu_head *rcu)
{
	kfree(to_job(container_of(rcu, struct dma_fence, rcu)));
	module_put(THIS_MODULE);
}

static void release_fence(struct dma_fence *fence)
{
	flexmem_client_put(to_job(fence)->client);
	call_rcu(&fence->rcu, free_job);
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = get_driver_name,
	.get_timeline_name = get_timeline_name,
	.release = release_fence,
};

/* The caller holds the queue's lock. */
static struct sim_job *first_job(struct sim_queue *queue)
{
	lockdep_assert_held(&queue->lock);
	return list_first_entry_or_null(&queue->jobs, struct sim_job, link);
}

/*
 * Moves the first job, which has ended, to the ended jobs. The caller holds the
 * queue's lock.
 */
static void finish_first(struct sim_queue *queue)
{
	struct sim_job *job = first_job(queue);

	if (job->error)
		dma_fence_set_error(&job->fence, job->error);
	list_move_tail(&job->link, &queue->ended);
	irq_work_queue(&queue->irq);
}

static u64 timeout(const struct sim_queue *queue)
{
	return msecs_to_jiffies(queue->fn->card->job_timeout_ms);
}

/*
 * The time of the first job begins now. If the job has not ended when its time
 * is over, watch() ends it.
 */
static void start_watch(struct sim_queue *queue)
{
	lockdep_assert_held(&queue->lock);
	queue->began = get_jiffies_64();
	mod_delayed_work(system_dfl_wq, &queue->watchdog, timeout(queue));
}

/*
 * Ends jobs that have an error, and begins the first job that can run. Does
 * nothing while the card carries out a job. The caller holds the queue's lock.
 */
static void begin(struct sim_queue *queue)
{
	struct sim_job *job;

	if (queue->running)
		return;
	while ((job = first_job(queue)) && job->error)
		finish_first(queue);
	if (!job) {
		cancel_delayed_work(&queue->watchdog);
		return;
	}
	start_watch(queue);
	/*
	 * The work may be queued already, to run when the latency of a dropped
	 * job is over. Then this call replaces that delay.
	 */
	if (!job->hangs)
		mod_delayed_work(system_dfl_wq, &queue->work,
				 msecs_to_jiffies(job->latency_ms));
}

static void interrupt(struct irq_work *irq)
{
	struct sim_queue *queue = container_of(irq, struct sim_queue, irq);
	struct sim_job *job, *next;
	unsigned long flags;
	LIST_HEAD(ended);

	spin_lock_irqsave(&queue->lock, flags);
	list_splice_init(&queue->ended, &ended);
	list_for_each_entry(job, &ended, link) {
		if (job->holder)
			flexmem_regions_unhold(job->holder, &job->hold);
		dma_fence_signal_locked(&job->fence);
	}
	spin_unlock_irqrestore(&queue->lock, flags);
	list_for_each_entry_safe(job, next, &ended, link)
		dma_fence_put(&job->fence);
}

/*
 * Carries out a job. No message and no other program is handled meanwhile, so
 * this may have waited for a program of another function. The time of the job
 * begins again.
 */
static int carry_out(void *data)
{
	struct sim_job *job = data;
	struct sim_queue *queue = &job->program.fn->queue;

	spin_lock_irq(&queue->lock);
	queue->waits = false;
	start_watch(queue);
	spin_unlock_irq(&queue->lock);
	return sim_program_run(&job->program);
}

/*
 * Runs the first job. If the job for which the work was queued has been dropped
 * since, the queue is empty, or the first job runs before its own latency is
 * over.
 */
static void run_job(struct work_struct *work)
{
	struct sim_queue *queue = container_of(to_delayed_work(work),
					       struct sim_queue, work);
	struct sim_job *job;
	int error;

	spin_lock_irq(&queue->lock);
	job = first_job(queue);
	if (job && job->hangs)
		job = NULL;
	queue->running = job;
	queue->waits = job;
	spin_unlock_irq(&queue->lock);
	if (!job)
		return;
	error = sim_firmware_run(queue->fn->card->fw, carry_out, job);
	spin_lock_irq(&queue->lock);
	queue->running = NULL;
	if (job->error != -ETIMEDOUT)
		job->error = error;
	finish_first(queue);
	begin(queue);
	spin_unlock_irq(&queue->lock);
}

/*
 * Ends a job for a reason, unless there is an earlier one. If the card carries
 * the job out, it moves no further bytes.
 */
static void end_job(struct sim_job *job, int error)
{
	job->error = job->error ?: error;
	WRITE_ONCE(job->program.cancelled, true);
}

static bool is_overdue(struct sim_queue *queue, const struct sim_job *job)
{
	return !job->error && !queue->waits &&
	       get_jiffies_64() - queue->began >= timeout(queue);
}

/*
 * Notes that the first job has run too long. Returns whether it has. The
 * function's lock keeps the driver bound.
 */
static bool time_out(struct sim_queue *queue)
{
	struct sim_job *job;
	bool overdue;

	spin_lock_irq(&queue->lock);
	job = first_job(queue);
	overdue = job && is_overdue(queue, job);
	if (overdue)
		end_job(job, -ETIMEDOUT);
	spin_unlock_irq(&queue->lock);
	return overdue;
}

/*
 * The card cannot end a single job, so the watchdog resets the function. The
 * time of a job that the function slept through begins again at the resume
 * (sim_queue_wake()).
 */
static void watch(struct work_struct *work)
{
	struct sim_queue *queue = container_of(to_delayed_work(work),
					       struct sim_queue, watchdog);
	struct sim_function *fn = queue->fn;

	mutex_lock(&fn->lock);
	if (fn->fdev && !fn->suspended && time_out(queue)) {
		dev_warn(fn->dev, "a job has run for more than %u ms: reset\n",
			 fn->card->job_timeout_ms);
		flexmem_device_reset(fn->fdev);
	}
	mutex_unlock(&fn->lock);
}

/**
 * sim_queue_init - initialise an empty queue
 * @queue: to initialise
 * @fn: the function
 */
void sim_queue_init(struct sim_queue *queue, struct sim_function *fn)
{
	queue->fn = fn;
	queue->context = dma_fence_context_alloc(1);
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->jobs);
	INIT_LIST_HEAD(&queue->ended);
	queue->stopped = true;
	INIT_DELAYED_WORK(&queue->work, run_job);
	INIT_DELAYED_WORK(&queue->watchdog, watch);
	init_irq_work(&queue->irq, interrupt);
}

/**
 * sim_queue_destroy - free a queue
 * @queue: queue that was stopped
 */
void sim_queue_destroy(struct sim_queue *queue)
{
	cancel_delayed_work_sync(&queue->watchdog);
	irq_work_sync(&queue->irq);
}

/**
 * struct operands - memory that a job uses
 * @client: client whose handles name the memory
 * @to: allocation that is written, or NULL
 * @from: allocation that is read, or NULL
 * @handles: handles of @tensors
 * @tensors: allocations that a loaded program may use; NULL behind the last
 */
struct operands {
	struct flexmem_client *client;
	struct flexmem_allocation *to;
	struct flexmem_allocation *from;
	u32 handles[SIM_MAX_HANDLES];
	struct flexmem_allocation *tensors[SIM_MAX_HANDLES + 1];
};

static void put_operands(struct operands *operands)
{
	struct flexmem_allocation **tensor;

	for (tensor = operands->tensors; *tensor; tensor++)
		flexmem_allocation_put(*tensor);
	if (operands->from)
		flexmem_allocation_put(operands->from);
	if (operands->to)
		flexmem_allocation_put(operands->to);
	if (operands->client)
		flexmem_client_put(operands->client);
}

static int find_allocation(struct flexmem_client *client, u32 handle,
			   struct flexmem_allocation **found)
{
	struct flexmem_allocation *allocation;

	allocation = flexmem_client_allocation(client, handle);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	*found = allocation;
	return 0;
}

static int find_operands(struct flexmem_dev *fdev, const struct sim_run *run,
			 struct operands *operands)
{
	struct flexmem_client *client = flexmem_client_from_fd(fdev, run->fd);
	unsigned int i;
	int ret = 0;

	if (IS_ERR(client))
		return PTR_ERR(client);
	operands->client = client;
	if (run->flags == SIM_RUN_VIRTUAL)
		return run->to || run->from ? -EINVAL : 0;
	if (run->program != SIM_PROGRAM_LOADED)
		ret = find_allocation(client, run->to, &operands->to);
	if (!ret && run->program != SIM_PROGRAM_FILL)
		ret = find_allocation(client, run->from, &operands->from);
	for (i = 0; !ret && i < run->nr_handles; i++)
		ret = find_allocation(client, operands->handles[i],
				      &operands->tensors[i]);
	return ret;
}

/*
 * Finds the physical address of a range. Returns an error if the range is not
 * in the allocation.
 */
static int find_address(const struct flexmem_allocation *allocation, u64 offset,
			u64 size, u64 *address)
{
	struct flexmem_part part;

	if (!allocation)
		return 0;
	flexmem_allocation_part(allocation, 0, &part);
	if (!size || size > part.size || offset > part.size - size)
		return -EINVAL;
	*address = part.mem.base + part.offset + offset;
	return 0;
}

/* Finds the address of a loaded program as the process knows it, and the card. */
static int find_binary(struct sim_operation *program, const struct sim_run *run,
		       const struct flexmem_allocation *from)
{
	struct flexmem_part part;
	u64 physical;
	int ret;

	ret = find_address(from, run->from_offset, run->size, &physical);
	if (ret)
		return ret;
	flexmem_allocation_part(from, 0, &part);
	program->binary = (struct flexmem_address) {
		.region_id = program->fn->index ? part.slot : part.mem.base,
		.offset = part.offset + run->from_offset,
	};
	return 0;
}

static int find_addresses(struct sim_operation *program,
			  const struct sim_run *run,
			  const struct operands *operands)
{
	int ret;

	if (run->program == SIM_PROGRAM_LOADED)
		return find_binary(program, run, operands->from);
	if (operands->to) {
		ret = find_address(operands->to, run->to_offset, run->size,
				   &program->to);
		return ret ?: find_address(operands->from, run->from_offset,
					   run->size, &program->from);
	}
	if (!run->size || run->size > U64_MAX - run->to_offset ||
	    run->size > U64_MAX - run->from_offset)
		return -EINVAL;
	program->to = run->to_offset;
	program->from = run->from_offset;
	program->is_virtual = true;
	program->space = flexmem_client_space(operands->client);
	return 0;
}

static struct sim_job *make_job(struct sim_queue *queue,
				const struct sim_run *run)
{
	struct sim_job *job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);

	if (!job)
		return NULL;
	job->program.fn = queue->fn;
	job->program.program = run->program;
	job->program.size = run->size;
	job->program.value = run->value;
	job->latency_ms = run->latency_ms;
	job->hangs = run->flags == SIM_RUN_HANGS;
	return job;
}

/* From here on the job must end, so that its fence signals. */
static void make_fence(struct sim_queue *queue, struct sim_job *job,
		       struct flexmem_client *client)
{
	u64 seqno;

	spin_lock_irq(&queue->lock);
	seqno = ++queue->seqno;
	spin_unlock_irq(&queue->lock);
	__module_get(THIS_MODULE);
	flexmem_client_get(client);
	job->client = client;
	dma_fence_init(&job->fence, &fence_ops, &queue->lock, queue->context,
		       seqno);
}

static int lost_error(const struct operands *operands)
{
	struct flexmem_allocation *const *tensor = operands->tensors;
	int ret = operands->to ? flexmem_allocation_error(operands->to) : 0;

	if (!ret && operands->from)
		ret = flexmem_allocation_error(operands->from);
	for (; !ret && *tensor; tensor++)
		ret = flexmem_allocation_error(*tensor);
	return ret;
}

static int submit(struct sim_queue *queue, struct sim_job *job, int error,
		  const struct operands *operands)
{
	spin_lock_irq(&queue->lock);
	/*
	 * A reset marks the memory as lost first, and then takes this lock. So
	 * either the job is refused here, or the reset finds it in the queue.
	 */
	if (!error)
		error = queue->stopped ? -EIO : lost_error(operands);
	dma_fence_get(&job->fence);
	job->error = error;
	list_add_tail(&job->link, &queue->jobs);
	if (job == first_job(queue))
		begin(queue);
	spin_unlock_irq(&queue->lock);
	return error;
}

static int add_fences(const struct operands *operands, struct dma_fence *fence)
{
	struct flexmem_allocation *const *tensor = operands->tensors;
	int ret = 0;

	if (operands->to)
		ret = flexmem_allocation_add_fence(operands->to, fence);
	if (!ret && operands->from)
		ret = flexmem_allocation_add_fence(operands->from, fence);
	for (; !ret && *tensor; tensor++)
		ret = flexmem_allocation_add_fence(*tensor, fence);
	return ret;
}

static int dispatch(struct sim_queue *queue, const struct sim_run *run,
		    const struct operands *operands, struct dma_fence **fence)
{
	struct sim_job *job = make_job(queue, run);
	int ret;

	if (!job)
		return -ENOMEM;
	ret = find_addresses(&job->program, run, operands);
	if (ret) {
		kfree(job);
		return ret;
	}
	if (run->flags == SIM_RUN_HOLDS) {
		job->holder = queue->fn->fdev;
		job->hold = flexmem_client_hold(operands->client);
	}
	make_fence(queue, job, operands->client);
	if (run->flags != SIM_RUN_STRAY)
		ret = add_fences(operands, &job->fence);
	ret = submit(queue, job, ret, operands);
	if (ret)
		dma_fence_put(&job->fence);
	else
		*fence = &job->fence;
	return ret;
}

static bool is_bad_binary(const struct sim_run *run)
{
	if (run->program != SIM_PROGRAM_LOADED)
		return run->nr_handles;
	return run->flags == SIM_RUN_VIRTUAL || run->to ||
	       run->size % sizeof(struct sim_record) ||
	       run->nr_handles > SIM_MAX_HANDLES;
}

/**
 * sim_queue_run - queue a job
 * @queue: the function's queue
 * @run: job to run
 * @fence: receives the job's fence, for dma_fence_put()
 *
 * Context: may sleep; in the task that has the descriptor in @run.
 *
 * Return: 0; -EINVAL if @run is not valid; -ENODEV if the function is not bound;
 * -EBUSY if the function is suspended; -EIO if the function must be reset;
 * -EFAULT if the handles cannot be read; -ENOMEM; -EINTR; or an error of
 * flexmem_client_from_fd() or flexmem_client_allocation().
 */
int sim_queue_run(struct sim_queue *queue, const struct sim_run *run,
		  struct dma_fence **fence)
{
	struct sim_function *fn = queue->fn;
	struct operands operands = {};
	int ret = -ENODEV;

	if (run->program >= SIM_NR_PROGRAMS || run->flags & (run->flags - 1) ||
	    run->flags > SIM_RUN_VIRTUAL ||
	    run->value > U8_MAX || run->latency_ms > SIM_MAX_RUN_MS ||
	    is_bad_binary(run))
		return -EINVAL;
	if (copy_from_user(operands.handles, u64_to_user_ptr(run->handles),
			   run->nr_handles * sizeof(operands.handles[0])))
		return -EFAULT;
	/* While the lock is held the driver stays bound. */
	if (mutex_lock_killable(&fn->lock))
		return -EINTR;
	if (fn->suspended)
		ret = -EBUSY;
	else if (fn->fdev)
		ret = find_operands(fn->fdev, run, &operands);
	if (!ret)
		ret = dispatch(queue, run, &operands, fence);
	put_operands(&operands);
	mutex_unlock(&fn->lock);
	return ret;
}

/**
 * sim_queue_client_gone - drop the jobs of a client that have not begun
 * @queue: the queue
 * @client: the client
 */
void sim_queue_client_gone(struct sim_queue *queue,
			   struct flexmem_client *client)
{
	struct sim_job *job;

	spin_lock_irq(&queue->lock);
	list_for_each_entry(job, &queue->jobs, link)
		if (job->client == client && job != first_job(queue))
			end_job(job, -ECANCELED);
	spin_unlock_irq(&queue->lock);
}

/**
 * sim_queue_wake - the function wakes up
 * @queue: the queue, whose first job may take its full time from now on
 */
void sim_queue_wake(struct sim_queue *queue)
{
	spin_lock_irq(&queue->lock);
	if (first_job(queue))
		start_watch(queue);
	spin_unlock_irq(&queue->lock);
}

/**
 * sim_queue_drain - wait for the accesses that are in flight
 * @queue: the queue
 *
 * The accesses of a job are in flight from its begin on. sim_queue_drain()
 * carries them out at once, so that its caller need not wait for the job's
 * latency.
 *
 * Context: may sleep.
 */
void sim_queue_drain(struct sim_queue *queue)
{
	flush_delayed_work(&queue->work);
}

/**
 * sim_queue_stop - end all jobs
 * @queue: the queue, which refuses jobs until sim_queue_restart()
 *
 * Context: may sleep. When this returns, the card runs no job of the queue, and
 * all fences of the queue have signalled.
 */
void sim_queue_stop(struct sim_queue *queue)
{
	struct sim_job *job;

	spin_lock_irq(&queue->lock);
	queue->stopped = true;
	list_for_each_entry(job, &queue->jobs, link)
		end_job(job, -ECANCELED);
	begin(queue);
	spin_unlock_irq(&queue->lock);
	/*
	 * The card ends the job under way first, and then the jobs behind it,
	 * so that the fences signal in order.
	 */
	cancel_delayed_work_sync(&queue->work);
	irq_work_sync(&queue->irq);
}

/**
 * sim_queue_restart - permit new jobs
 * @queue: the queue
 */
void sim_queue_restart(struct sim_queue *queue)
{
	spin_lock_irq(&queue->lock);
	queue->stopped = false;
	spin_unlock_irq(&queue->lock);
}
