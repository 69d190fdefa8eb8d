/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Allocations that no caller uses any more. Their memory becomes free when the
 * device does not use it either.
 */
#ifndef _FLEXMEM_LEAVING_H
#define _FLEXMEM_LEAVING_H

#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "account.h"

struct flexmem_stock;

/**
 * struct flexmem_leaving - allocations of one function without a reference that
 * wait for fences
 * @lock: protects the lists, and &flexmem_account.leaving of all files.
 *	Interrupt handlers take it; a leaf
 * @waiting: list of struct flexmem_fences: allocations with a callback on a
 *	fence
 * @ready: allocations that a task must look at, because a fence has signalled
 *	or the last reference was just put
 * @nr_ready: number of allocations in @ready, or taken out of it by the
 *	holder of @turn. An ALLOC first ends the allocations that are ready when
 *	it begins, and none that becomes ready later. So the address that it
 *	returns does not depend on when @work runs
 * @turn: held by the task that takes allocations out of @ready and ends them
 * @work: ends the allocations in @ready
 */
struct flexmem_leaving {
	spinlock_t lock; /* protects the lists */
	struct list_head waiting;
	struct list_head ready;
	atomic_t nr_ready;
	struct mutex turn; /* held to end ready allocations */
	struct work_struct work;
};

/**
 * struct flexmem_wait - an allocation that waits for fences
 * @link: in &flexmem_account.leaving
 * @since: when the wait began, in jiffies since boot
 */
struct flexmem_wait {
	struct list_head link;
	u64 since;
};

void flexmem_leaving_init(struct flexmem_leaving *leaving);
int flexmem_leaving_look(struct flexmem_leaving *leaving);
void flexmem_leaving_look_at_all(struct flexmem_leaving *leaving);

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

/*
 * Tells how much freed memory of a file device programs still use.
 * @waits_ms: receives how long the oldest of its allocations has waited.
 * Return: bytes; 0: no allocation waits, and @waits_ms is 0.
 */
static inline u64 flexmem_leaving_of(struct flexmem_leaving *leaving,
				     struct flexmem_account *file,
				     u64 *waits_ms)
{
	struct flexmem_wait *oldest;
	u64 bytes;

	spin_lock_irq(&leaving->lock);
	bytes = file->leaving_bytes;
	oldest = list_first_entry_or_null(&file->leaving, struct flexmem_wait,
					  link);
	*waits_ms = oldest ?
		    jiffies64_to_msecs(get_jiffies_64() - oldest->since) : 0;
	spin_unlock_irq(&leaving->lock);
	return bytes;
}

#endif /* _FLEXMEM_LEAVING_H */
