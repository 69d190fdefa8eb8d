// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs: what needs the firmware's answer is done by a worker (D28).
 *
 * A caller can be killed, and a command that is cut off in the middle leaves
 * something that nobody has: memory without a slot, a slot of which nobody knows
 * what it names. A worker gets no signals, so what it has begun it ends. Its
 * caller waits, killably and without a lock; if it is killed, what was got for it
 * goes where it would have gone had it been freed at once.
 *
 * There is one worker a function, so that jobs are done in their order.
 */

#include <linux/errno.h>
#include <linux/mutex.h>
#include <linux/sched.h>

#include "compat.h"
#include "job.h"
#include "table.h"

/*
 * Whose a job is: it leaves the first state once, and who takes it out of there
 * leaves it to the other one.
 */
enum flexmem_job_state {
	JOB_WAITED_FOR,
	JOB_DONE,	/* the caller's */
	JOB_FORSAKEN,	/* the worker's */
};

/**
 * flexmem_job_is_forsaken - whether nobody waits for a job any more
 * @job: job that is being run
 *
 * Return: true if what it gets is given back at once.
 */
bool flexmem_job_is_forsaken(const struct flexmem_job *job)
{
	return atomic_read(&job->state) == JOB_FORSAKEN;
}

static void do_job(struct work_struct *work)
{
	struct flexmem_job *job = container_of(work, struct flexmem_job, work);
	struct flexmem_table *table = job->table;
	int error;

	mutex_lock(&table->acquire_lock);
	error = flexmem_function_error(&table->function);
	/* What nobody waits for is not begun. */
	if (!error && flexmem_job_is_forsaken(job))
		error = -EINTR;
	job->rc = error ?: job->run(job);
	mutex_unlock(&table->acquire_lock);

	if (atomic_cmpxchg(&job->state, JOB_WAITED_FOR, JOB_DONE) ==
	    JOB_WAITED_FOR)
		complete(&job->done);
	else
		job->free(job);
}

/**
 * flexmem_job_init - a job that is still to be done
 * @job: to initialise
 * @table: region table, which stays for as long as the caller does
 * @run: see &struct flexmem_job
 * @free: likewise
 */
void flexmem_job_init(struct flexmem_job *job, struct flexmem_table *table,
		      int (*run)(struct flexmem_job *job),
		      void (*free)(struct flexmem_job *job))
{
	job->run = run;
	job->free = free;
	job->table = table;
	INIT_WORK(&job->work, do_job);
}

/* By a caller who was killed. True: it is over, or has never been begun. */
static bool take_back(struct flexmem_job *job)
{
	if (cancel_work(&job->work)) {
		job->rc = -EINTR;
		return true;
	}
	if (atomic_cmpxchg(&job->state, JOB_WAITED_FOR, JOB_FORSAKEN) ==
	    JOB_WAITED_FOR)
		return false;
	wait_for_completion(&job->done);
	return true;
}

/**
 * flexmem_job_run - have a job done, and wait for it
 * @job: the caller's job
 *
 * If the device falls asleep before it was run, or while it was, so that @run put
 * off the rest, it goes on when the device is awake. The job's @rc is what @run
 * returned in the end; or -ENODEV if the device goes, -EIO if it could not be
 * reset, or -EINTR: then it was not run, or not to its end.
 *
 * Context: may sleep; holds no lock that a job takes.
 * Return: true if it is over, and the caller's to free; false if the caller was
 * killed: then it is not the caller's any more.
 */
bool flexmem_job_run(struct flexmem_job *job)
{
	struct flexmem_table *table = job->table;

	do {
		job->rc = flexmem_function_wait(&table->function);
		if (job->rc)
			return true;
		atomic_set(&job->state, JOB_WAITED_FOR);
		init_completion(&job->done);
		queue_work(table->function.worker, &job->work);
		if (wait_for_completion_state(&job->done,
					      TASK_KILLABLE | TASK_FREEZABLE) &&
		    !take_back(job))
			return false;
	} while (job->rc == -EAGAIN);
	return true;
}
