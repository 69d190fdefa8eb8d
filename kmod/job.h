/* SPDX-License-Identifier: GPL-2.0 */
/* What a worker does for a caller, who may be killed meanwhile. */
#ifndef _FLEXMEM_JOB_H
#define _FLEXMEM_JOB_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/workqueue.h>

struct flexmem_table;

/**
 * struct flexmem_job - something that has to ask the firmware
 * @run: what is to be done, under acquire_lock, while the device is awake. May
 *	sleep; gets no signals. -EAGAIN: the device is about to fall asleep, and
 *	@run is to be called again when it is awake, for the rest
 * @free: frees the job, and gives back what @run has got and nobody has taken.
 *	May sleep; in the caller's context or the worker's
 * @table: whose firmware it is
 * @state: of enum flexmem_job_state
 * @work: for the worker
 * @done: the worker is done, and has nothing to do with the job any more
 * @rc: what @run returned, or why it was not run; -EAGAIN: it is to be run once
 *	more
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
bool flexmem_job_is_forsaken(const struct flexmem_job *job);

#endif /* _FLEXMEM_JOB_H */
