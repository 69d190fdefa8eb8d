/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work that a worker does for a caller. It is completed even if the caller is
 * killed.
 */
#ifndef _FLEXMEM_JOB_H
#define _FLEXMEM_JOB_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/workqueue.h>

struct flexmem_table;

/**
 * struct flexmem_job - work that needs the firmware
 * @run: does the work, under acquire_lock, while the device is awake. May
 *	sleep; gets no signals. It returns -EAGAIN if the device is about to
 *	suspend: then @run is called again after the resume, to do the rest
 * @free: frees the job, and releases everything that @run acquired and the
 *	caller did not take. May sleep; runs in the caller's context or in the
 *	worker's
 * @table: table of the function
 * @state: of enum flexmem_job_state
 * @work: for the worker
 * @done: completed when the worker no longer uses the job
 * @rc: result of @run, or the reason why it did not run; -EAGAIN if @run must
 *	be called again
 */
struct flexmem_job {
	int (*run)(struct flexmem_job *job);
	void (*free)(struct flexmem_job *job);
	struct flexmem_table *table;
	atomic_t state;
	struct work_struct work;
	struct completion done;
	int rc;
};

void flexmem_job_init(struct flexmem_job *job, struct flexmem_table *table,
		      int (*run)(struct flexmem_job *job),
		      void (*free)(struct flexmem_job *job));
bool flexmem_job_run(struct flexmem_job *job);
bool flexmem_job_is_abandoned(const struct flexmem_job *job);

#endif /* _FLEXMEM_JOB_H */
