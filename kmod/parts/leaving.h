/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Allocations that no caller uses any more. Their memory becomes free when the
 * device does not use it either.
 */
#ifndef _FLEXMEM_LEAVING_H
#define _FLEXMEM_LEAVING_H

#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "tenant/account.h"

/**
 * struct flexmem_leaving - allocations of one function without a reference that
 * wait for fences
 * @lock: protects the lists, and those of &struct flexmem_account. Interrupt
 *	handlers take it; a leaf
 * @waiting: list of struct flexmem_fences: the first allocation of each group that
 *	waits for a fence
 * @queue: list of &struct flexmem_queued: what @work must look at, in this order
 * @looks: odd while @work looks at an entry of @queue; grows when that begins and
 *	when it ends. Also read without @lock
 * @work: looks at @queue
 */
struct flexmem_leaving {
	spinlock_t lock; /* protects the lists */
	struct list_head waiting;
	struct list_head queue;
	unsigned long looks;
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

#ifndef FLEXMEM_CORE
int flexmem_leaving_look(struct flexmem_account *file);
int flexmem_leaving_wait(struct flexmem_leaving *leaving, unsigned long looks,
			 unsigned int state);
#else
static inline int flexmem_leaving_look(struct flexmem_account *file) { return 0; }
static inline int flexmem_leaving_wait(struct flexmem_leaving *leaving,
				       unsigned long looks,
				       unsigned int state) { return 0; }
#endif
bool flexmem_allocation_is_in_flight(const struct flexmem_allocation *allocation);

/* For flexmem_leaving_wait(), from before the caller looks for free memory. */
static inline unsigned long
flexmem_leaving_looks(const struct flexmem_leaving *leaving)
{
	return READ_ONCE(leaving->looks);
}

/*
 * Does what flexmem_leaving_look() does, but costs only one load if nothing of the
 * file waits for fences.
 */
static inline int flexmem_leaving_settle(struct flexmem_account *file)
{
	return likely(list_empty(&file->leaving)) ?
		0 : flexmem_leaving_look(file);
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
