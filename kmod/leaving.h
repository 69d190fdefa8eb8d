/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Allocations that no caller uses any more. Their memory becomes free when the
 * device does not use it either.
 */
#ifndef _FLEXMEM_LEAVING_H
#define _FLEXMEM_LEAVING_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct dma_fence;
struct flexmem_allocation;
struct flexmem_function;
struct flexmem_stock;

/**
 * struct flexmem_leaving - allocations of one function without a reference that
 * wait for fences
 * @lock: protects the lists. Interrupt handlers take it; a leaf
 * @waiting: list of struct flexmem_fences: allocations with a callback on a
 *	fence. The allocation that has waited longest is first
 * @ready: allocations that a task must look at, because a fence has signalled
 *	or the last reference was just put
 * @nr_ready: number of allocations in @ready, or taken out of it by the
 *	holder of @turn. An ALLOC first ends the allocations that are ready when
 *	it begins, and none that becomes ready later. So the address that it
 *	returns does not depend on when @work runs
 * @turn: held by the task that takes allocations out of @ready and ends them
 * @work: ends the allocations in @ready
 * @limit: how long an allocation waits for a fence before the fence is overdue,
 *	in jiffies; 0: without end. Under @lock
 * @watch: runs when a fence may be overdue
 * @asleep: the device is suspended; under @lock
 * @asleep_since: when the device was suspended, in jiffies since boot
 * @slept: how long the device was suspended before @asleep_since, in jiffies
 */
struct flexmem_leaving {
	spinlock_t lock; /* protects the lists */
	struct list_head waiting;
	struct list_head ready;
	atomic_t nr_ready;
	struct mutex turn; /* held to end ready allocations */
	struct work_struct work;
	unsigned long limit;
	struct delayed_work watch;
	bool asleep;
	u64 asleep_since;
	u64 slept;
};

/**
 * enum flexmem_overdue - what to do about the fence that allocations have
 * waited for longest
 * @FLEXMEM_NOT_OVERDUE: nothing
 * @FLEXMEM_OVERDUE: ask the driver to end the program of the fence, and all
 *	others of its client
 * @FLEXMEM_STUCK: the programs did not end: reset the function
 */
enum flexmem_overdue {
	FLEXMEM_NOT_OVERDUE,
	FLEXMEM_OVERDUE,
	FLEXMEM_STUCK,
};

void flexmem_leaving_init(struct flexmem_leaving *leaving);
void flexmem_leaving_fini(struct flexmem_leaving *leaving);
int flexmem_leaving_look(struct flexmem_leaving *leaving);
void flexmem_leaving_look_at_all(struct flexmem_leaving *leaving);
void flexmem_leaving_set_limit(struct flexmem_leaving *leaving,
			       unsigned long limit);
void flexmem_leaving_sleep(struct flexmem_leaving *leaving);
void flexmem_leaving_wake(struct flexmem_leaving *leaving);
enum flexmem_overdue flexmem_leaving_overdue(struct flexmem_leaving *leaving,
					     struct dma_fence **fence);

void flexmem_allocation_drop_handle(struct flexmem_allocation *allocation,
				    struct flexmem_stock *stock);
bool flexmem_allocation_is_in_flight(const struct flexmem_allocation *allocation);

/*
 * Ends the ready allocations as flexmem_leaving_look() does, but costs only one
 * load if no allocation is ready.
 */
static inline int flexmem_leaving_settle(struct flexmem_leaving *leaving)
{
	return unlikely(atomic_read(&leaving->nr_ready)) ?
		flexmem_leaving_look(leaving) : 0;
}

#endif /* _FLEXMEM_LEAVING_H */
