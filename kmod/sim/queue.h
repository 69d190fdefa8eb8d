/* SPDX-License-Identifier: GPL-2.0 */
/* The jobs of one function. See queue.c. */
#ifndef _FLEXMEM_SIM_QUEUE_H
#define _FLEXMEM_SIM_QUEUE_H

#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "run.h"

struct dma_fence;
struct flexmem_client;
struct sim_function;
struct sim_job;

/**
 * struct sim_queue - the jobs of one function
 * @fn: the function; never changes
 * @context: fence context of its jobs; never changes
 * @lock: protects the members below, and the fences of the jobs. The interrupt
 *	handler takes it
 * @jobs: jobs to do, of struct sim_job; the first one has begun
 * @running: the first job while the card carries it out, or NULL
 * @waits: @running waits until the firmware or a program of another function
 *	has ended. This time does not count
 * @ended: jobs whose fence the interrupt handler will signal
 * @stopped: no job may be queued before the next reset
 * @seqno: sequence number of the latest fence
 * @work: work in which the card carries out the first job
 * @began: when the time of the first job began, in jiffies since boot
 * @watchdog: work that runs when the first job may have run too long
 * @irq: the interrupt with which the card reports the end of a job
 */
struct sim_queue {
	struct sim_function *fn;
	u64 context;
	spinlock_t lock; /* protects the members below */
	struct list_head jobs;
	struct sim_job *running;
	bool waits;
	struct list_head ended;
	bool stopped;
	u64 seqno;
	struct delayed_work work;
	u64 began;
	struct delayed_work watchdog;
	struct irq_work irq;
};

void sim_queue_init(struct sim_queue *queue, struct sim_function *fn);
void sim_queue_destroy(struct sim_queue *queue);
int sim_queue_run(struct sim_queue *queue, const struct sim_run *run,
		  struct dma_fence **fence);
void sim_queue_client_gone(struct sim_queue *queue,
			   struct flexmem_client *client);
void sim_queue_wake(struct sim_queue *queue);
void sim_queue_drain(struct sim_queue *queue);
void sim_queue_stop(struct sim_queue *queue);
void sim_queue_restart(struct sim_queue *queue);

#endif /* _FLEXMEM_SIM_QUEUE_H */
