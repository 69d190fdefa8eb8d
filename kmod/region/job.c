// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs: a worker does everything that needs the firmware's answer.
 *
 * A caller can be killed. If the kill ended a command in the middle, memory
 * would be left without a slot, or a slot with unknown contents. A worker gets
 * no signals, so it finishes each command. The caller waits, killably and
 * without a lock. If the caller is killed, memory that was acquired for it is
 * released as if the caller had freed it.
 *
 * Each PF or VF has one worker, so its jobs run one after another in the order
 * in which they were queued.
 */

#include <linux/errno.h>
#include <linux/mutex.h>
#include <linux/sched.h>

#include "region/job.h"
#include "region/table.h"

/*
 * The state decides whether the caller or the worker frees a job. Each of them
 * tries to change JOB_WAITED_FOR to its own end state. The one that succeeds
 * leaves the job to the other.
 */
enum flexmem_job_state {
	JOB_WAITED_FOR,
	JOB_DONE,	/* the caller frees it */
	JOB_ABANDONED,	/* the worker frees it */
};

/*
 * Whether the caller of a job was killed. The job then takes no block and no
 * reservation for the caller. A region that it has acquired stays.
 */
bool flexmem_job_is_abandoned(const struct flexmem_job *job)
{
	return atomic_read(&job->state) == JOB_ABANDONED;
}

static void do_job(struct work_struct *work)
{
	struct flexmem_job *job = container_of(work, struct flexmem_job, work);
	struct flexmem_table *table = job->table;
	int error;

	mutex_lock(&table->acquire_lock);
	error = flexmem_function_error(&table->function);
	/* If the caller was killed before, the job does not run. */
	if (!error && flexmem_job_is_abandoned(job))
		error = -EINTR;
	job->rc = error ?: job->run(job);
	mutex_unlock(&table->acquire_lock);

	if (atomic_cmpxchg(&job->state, JOB_WAITED_FOR, JOB_DONE) ==
	    JOB_WAITED_FOR)
		complete(&job->done);
	else
		job->free(job);
}

/*
 * Prepares a job. The members of the same names of &struct flexmem_job describe
 * the arguments.
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

/*
 * Called for a killed caller. Returns true if the caller frees the job, because
 * the worker has not begun it or has finished it.
 */
static bool take_back(struct flexmem_job *job)
{
	if (cancel_work(&job->work)) {
		job->rc = -EINTR;
		return true;
	}
	if (atomic_cmpxchg(&job->state, JOB_WAITED_FOR, JOB_ABANDONED) ==
	    JOB_WAITED_FOR)
		return false;
	wait_for_completion(&job->done);
	return true;
}

/*
 * Runs a job on the worker, and waits for it. If the device suspends before
 * @run is called, the job waits for the resume. If the device suspends while
 * @run runs, @run returns -EAGAIN, and is called again after the resume. When
 * the job has ended, its @rc is the final result of @run; -ENODEV if the device
 * is removed; -EIO if the device could not be reset; or -EINTR if the caller
 * was killed before @run was called or had finished.
 * Context: may sleep; holds no lock that a job takes. Return: true if the job
 * has ended: then the caller frees it. False if the caller was killed and the
 * worker frees the job.
 */
bool flexmem_job_run(struct flexmem_job *job)
{
	do {
		job->rc = flexmem_function_wait(&job->table->function);
		if (job->rc)
			return true;
		atomic_set(&job->state, JOB_WAITED_FOR);
		init_completion(&job->done);
		queue_work(job->table->function.worker, &job->work);
		if (wait_for_completion_state(&job->done,
					      TASK_KILLABLE | TASK_FREEZABLE) &&
		    !take_back(job))
			return false;
	} while (job->rc == -EAGAIN);
	return true;
}
