// SPDX-License-Identifier: GPL-2.0
/*
 * The end of an allocation.
 *
 * After its owner has freed it, an allocation ends when nothing uses it any
 * more: no CPU map, no copy and no kernel user has a reference, and every fence
 * of a device program has signalled. Until then it is leaving: still charged,
 * but neither free nor scrubbed.
 *
 * Once the last reference is put, no fence can be added, and the allocation
 * waits for its fences one by one. The allocations of a file that wait for the
 * same fence are a group: the first one adds its callback to the fence, and the
 * others queue behind it. So nothing is allocated here. A fence may signal in an
 * interrupt, where blocks cannot be freed. So the callback only marks the group as
 * ready, however many allocations are in it. A worker, or the next ALLOC of the
 * file, frees the blocks. An ALLOC ends no allocation of another file. But before
 * it fails it waits for the worker, so that its result does not depend on when the
 * worker runs. Here a fence has signalled when its callbacks have run.
 *
 * No other owner gets the bytes of a lost region, so allocations in it do not
 * wait for fences.
 */

#include <linux/completion.h>
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/jiffies.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <flexmem/dispatch.h>

#include "alloc/allocation.h"
#include "compat.h"
#include "part.h"
#include "parts/leaving.h"
#include "region/table.h"
#include "tenant/owner.h"
#include "trace.h"

/**
 * struct flexmem_fences - the device's uses of an allocation
 * @resv: fences of the programs that use it
 * @allocation: the allocation
 * @pending: the fence for which the allocation waits, or waited last; NULL before
 *	the first one. @resv keeps it
 * @wait: in &flexmem_account.leaving, from the last reference on
 * @link: ready: in &flexmem_account.ready. The first one of a group that waits: in
 *	&flexmem_leaving.waiting. Another one of it: in @behind of the first one
 * @node: the first one of a group that waits: in &flexmem_account.waits
 * @behind: the first one of a group that waits: the others
 * @callback: the first one of a group: called when @pending signals
 */
struct flexmem_fences {
	struct dma_resv resv;
	struct flexmem_allocation *allocation;
	struct dma_fence *pending;
	struct flexmem_wait wait;
	struct list_head link;
	struct rb_node node;
	struct list_head behind;
	struct dma_fence_cb callback;
};

static struct flexmem_leaving *leaving_of(const struct flexmem_account *file)
{
	return &container_of(file->accounts, struct flexmem_table,
			     accounts)->leaving;
}

static void free_fences(struct flexmem_fences *fences)
{
	dma_resv_fini(&fences->resv);
	kfree(fences);
}

/* Returns the struct for an allocation's fences, and makes a missing one. */
static struct flexmem_fences *
make_fences(struct flexmem_allocation *allocation)
{
	/* Pairs with cmpxchg(): another task may just have made the struct. */
	struct flexmem_fences *fences = smp_load_acquire(&allocation->fences);
	struct flexmem_fences *first;

	if (fences)
		return fences;
	fences = kzalloc(sizeof(*fences), GFP_KERNEL_ACCOUNT);
	if (!fences)
		return NULL;
	dma_resv_init(&fences->resv);
	INIT_LIST_HEAD(&fences->behind);
	INIT_LIST_HEAD(&fences->callback.node);
	RB_CLEAR_NODE(&fences->node);
	fences->allocation = allocation;
	first = cmpxchg(&allocation->fences, NULL, fences);
	if (!first)
		return fences;
	free_fences(fences);
	return first;
}

/**
 * flexmem_allocation_add_fence - the device uses an allocation until a fence
 * signals
 * @allocation: allocation that the caller has a reference to
 * @fence: signals when the device no longer uses the allocation; a single
 *	fence, neither an array nor a chain
 *
 * Call this before the device can see the job. A later fence of the same fence
 * context replaces the earlier one.
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM. After an error the fence is not added.
 */
int flexmem_allocation_add_fence(struct flexmem_allocation *allocation,
				 struct dma_fence *fence)
{
	struct flexmem_fences *fences = make_fences(allocation);
	int rc;

	if (!fences)
		return -ENOMEM;
	/*
	 * This lock is taken only here, and never together with another
	 * reservation lock, so it needs no ticket.
	 */
	dma_resv_lock(&fences->resv, NULL);
	rc = dma_resv_reserve_fences(&fences->resv, 1);
	if (!rc) {
		dma_resv_add_fence(&fences->resv, fence,
				   DMA_RESV_USAGE_BOOKKEEP);
		trace_flexmem_fence_add(allocation, fence);
	}
	dma_resv_unlock(&fences->resv);
	return rc;
}
EXPORT_SYMBOL_GPL(flexmem_allocation_add_fence);

/* Whether a fence that was added to an allocation has not signalled. */
bool flexmem_allocation_is_in_flight(const struct flexmem_allocation *allocation)
{
	/* Pairs with make_fences(). */
	struct flexmem_fences *fences = smp_load_acquire(&allocation->fences);

	return fences && !dma_resv_test_signaled(&fences->resv,
						 DMA_RESV_USAGE_BOOKKEEP);
}

/*
 * A task must look at the ready allocations of a file. Under the lists' lock,
 * maybe in an interrupt.
 */
static void queue_file(struct flexmem_leaving *leaving,
		       struct flexmem_account *file)
{
	lockdep_assert_held(&leaving->lock);
	if (list_empty(&file->queued.link)) {
		flexmem_owner_get(file);
		list_add_tail(&file->queued.link, &leaving->queue);
	}
	queue_work(system_dfl_wq, &leaving->work);
}

/*
 * Makes a group ready, unless look_at_all() has. Under the lists' lock. O(log
 * fences).
 */
static void make_ready(struct flexmem_leaving *leaving,
		       struct flexmem_fences *first)
{
	struct flexmem_account *file = first->allocation->owner;

	if (RB_EMPTY_NODE(&first->node))
		return;
	rb_erase(&first->node, &file->waits);
	RB_CLEAR_NODE(&first->node);
	list_move_tail(&first->link, &file->ready);
	list_splice_tail_init(&first->behind, &file->ready);
	queue_file(leaving, file);
}

static void has_signalled(struct dma_fence *fence, struct dma_fence_cb *callback)
{
	struct flexmem_fences *first =
		container_of(callback, struct flexmem_fences, callback);
	struct flexmem_leaving *leaving = leaving_of(first->allocation->owner);
	unsigned long flags;

	spin_lock_irqsave(&leaving->lock, flags);
	make_ready(leaving, first);
	spin_unlock_irqrestore(&leaving->lock, flags);
}

/* Returns a fence that has not signalled, or NULL. */
static struct dma_fence *next_fence(struct flexmem_fences *fences)
{
	struct dma_resv_iter cursor;
	struct dma_fence *fence;

	dma_resv_iter_begin(&cursor, &fences->resv, DMA_RESV_USAGE_BOOKKEEP);
	fence = dma_resv_iter_first_unlocked(&cursor);
	dma_resv_iter_end(&cursor);
	return fence;
}

static struct flexmem_fences *to_fences(const struct rb_node *node)
{
	return rb_entry(node, struct flexmem_fences, node);
}

static int fence_cmp(struct rb_node *node, const struct rb_node *other)
{
	const struct dma_fence *a = to_fences(node)->pending;
	const struct dma_fence *b = to_fences(other)->pending;

	return a == b ? 0 : a < b ? -1 : 1;
}

/*
 * Lets an allocation wait for its next fence. Returns false if no fence keeps
 * it. Under the turn of its file, which keeps the first one of each group.
 */
static bool wait_on(struct flexmem_fences *fences)
{
	struct flexmem_account *file = fences->allocation->owner;
	struct flexmem_leaving *leaving = leaving_of(file);
	struct rb_node *first = NULL;
	bool waits;

	lockdep_assert_held(&file->turn);
	/* It is still there if look_at_all() ended the wait. */
	if (fences->pending)
		dma_fence_remove_callback(fences->pending, &fences->callback);
	fences->pending = next_fence(fences);
	spin_lock_irq(&leaving->lock);
	/* If it is lost later, look_at_all() finds it in a list. */
	waits = fences->pending && !flexmem_allocation_error(fences->allocation);
	if (waits) {
		first = rb_find_add(&fences->node, &file->waits, fence_cmp);
		list_add_tail(&fences->link, first ?
			      &to_fences(first)->behind : &leaving->waiting);
	}
	spin_unlock_irq(&leaving->lock);
	/* If the fence has signalled already, no callback will run. */
	if (waits && !first &&
	    dma_fence_add_callback(fences->pending, &fences->callback,
				   has_signalled))
		has_signalled(fences->pending, &fences->callback);
	return waits;
}

/* Ends an allocation that no fence keeps. The caller has a reference to its file. */
static void end(struct flexmem_fences *fences)
{
	struct flexmem_account *file = fences->allocation->owner;
	struct flexmem_leaving *leaving = leaving_of(file);
	u64 size = fences->allocation->size;

	flexmem_allocation_end(fences->allocation, NULL);
	/* Not earlier: an ALLOC of a file that has nothing here looks at nothing. */
	spin_lock_irq(&leaving->lock);
	list_del(&fences->wait.link);
	file->leaving_bytes -= size;
	spin_unlock_irq(&leaving->lock);
	free_fences(fences);
}

/*
 * Ends the ready allocations of a file that no fence keeps. Looks only at those
 * that are ready when it begins: otherwise other threads could keep an ALLOC here.
 */
static void end_ready(struct flexmem_account *file)
{
	struct flexmem_leaving *leaving = leaving_of(file);
	struct flexmem_fences *fences;
	LIST_HEAD(ready);

	lockdep_assert_held(&file->turn);
	spin_lock_irq(&leaving->lock);
	list_splice_init(&file->ready, &ready);
	spin_unlock_irq(&leaving->lock);
	while ((fences = list_first_entry_or_null(&ready, struct flexmem_fences,
						  link))) {
		list_del(&fences->link);
		if (!wait_on(fences))
			end(fences);
		cond_resched();
	}
}

/*
 * Ends the allocations of a file that are ready when the call begins, unless a
 * further fence keeps them.
 * Context: may sleep. Return: 0, or -EINTR if the caller was killed while it
 * waited for its turn.
 */
int flexmem_leaving_look(struct flexmem_account *file)
{
	if (mutex_lock_killable(&file->turn))
		return -EINTR;
	end_ready(file);
	mutex_unlock(&file->turn);
	return 0;
}

/*
 * Waits until the worker has looked at the allocations of all files that are
 * ready when the call begins. @looks: flexmem_leaving_looks() from before the
 * caller's search. @state: TASK_KILLABLE or TASK_UNINTERRUPTIBLE.
 * Context: may sleep; the caller holds no lock of the table. Return: 1 if the
 * worker has looked at anything since; otherwise 0; -EINTR if the caller was
 * killed.
 */
int flexmem_leaving_wait(struct flexmem_leaving *leaving, unsigned long looks,
			 unsigned int state)
{
	DECLARE_COMPLETION_ONSTACK(passed);
	struct flexmem_queued queued = { .passed = &passed };
	bool looked, waits;
	int rc;

	spin_lock_irq(&leaving->lock);
	looked = leaving->looks != looks;
	waits = leaving->looks & 1 || !list_empty(&leaving->queue);
	if (waits)
		list_add_tail(&queued.link, &leaving->queue);
	spin_unlock_irq(&leaving->lock);
	if (!waits)
		return looked;
	rc = wait_for_completion_state(&passed, state);
	spin_lock_irq(&leaving->lock);
	list_del(&queued.link);
	spin_unlock_irq(&leaving->lock);
	return rc ? -EINTR : 1;
}

/*
 * Takes the first entry from the queue: a file, with the reference of the queue, or
 * an ALLOC, which goes on. Returns false if there is none.
 */
static bool take_queued(struct flexmem_leaving *leaving,
			struct flexmem_account **file)
{
	struct flexmem_queued *queued;

	*file = NULL;
	spin_lock_irq(&leaving->lock);
	queued = list_first_entry_or_null(&leaving->queue,
					  struct flexmem_queued, link);
	WRITE_ONCE(leaving->looks,
		   leaving->looks + (leaving->looks & 1) + !!queued);
	if (queued) {
		list_del_init(&queued->link);
		if (queued->passed)
			complete(queued->passed);
		else
			*file = container_of(queued, struct flexmem_account,
					     queued);
	}
	spin_unlock_irq(&leaving->lock);
	return queued;
}

/* Looks at the files in the order in which they have become ready. */
static void look_work(struct work_struct *work)
{
	struct flexmem_leaving *leaving =
		container_of(work, struct flexmem_leaving, work);
	struct flexmem_account *file;

	while (take_queued(leaving, &file)) {
		if (!file)
			continue;
		mutex_lock(&file->turn);
		end_ready(file);
		mutex_unlock(&file->turn);
		flexmem_owner_put(file);
	}
}

/*
 * Puts an allocation without references on a list, because the device may still
 * use it. So neither FREE nor the end of a mapping or a copy waits for fences.
 */
static void wait_for_fences(struct flexmem_allocation *allocation)
{
	struct flexmem_account *file = allocation->owner;
	struct flexmem_leaving *leaving = leaving_of(file);
	struct flexmem_fences *fences = allocation->fences;

	trace_flexmem_leaving(allocation);
	fences->wait.since = get_jiffies_64();
	spin_lock_irq(&leaving->lock);
	list_add_tail(&fences->wait.link, &file->leaving);
	file->leaving_bytes += allocation->size;
	list_add_tail(&fences->link, &file->ready);
	queue_file(leaving, file);
	spin_unlock_irq(&leaving->lock);
}

/* An allocation has lost its last reference: ends it, now or later. */
static void leave(struct flexmem_allocation *allocation,
		  struct flexmem_stock *stock)
{
	if (flexmem_allocation_is_in_flight(allocation)) {
		flexmem_allocation_orphan(allocation);
		wait_for_fences(allocation);
		return;
	}
	free_fences(allocation->fences);
	flexmem_allocation_end(allocation, stock);
}

/*
 * Ends the allocations in lost regions, too. Looks only at those that wait when the
 * call begins: other files may free memory all the time, and only new memory can
 * wait for a fence again.
 * Context: may sleep. The caller may hold a lock of the device's driver.
 */
static void look_at_all(struct flexmem_table *table)
{
	struct flexmem_leaving *leaving = &table->leaving;
	struct flexmem_fences *first;
	LIST_HEAD(waiting);

	spin_lock_irq(&leaving->lock);
	list_splice_init(&leaving->waiting, &waiting);
	spin_unlock_irq(&leaving->lock);
	/* A callback may take a group from the list, under the lock. */
	do {
		spin_lock_irq(&leaving->lock);
		first = list_first_entry_or_null(&waiting,
						 struct flexmem_fences, link);
		if (first)
			make_ready(leaving, first);
		spin_unlock_irq(&leaving->lock);
	} while (first);
	flexmem_leaving_wait(leaving, flexmem_leaving_looks(leaving),
			     TASK_UNINTERRUPTIBLE);
}

static void start(struct flexmem_table *table)
{
	struct flexmem_leaving *leaving = &table->leaving;

	spin_lock_init(&leaving->lock);
	INIT_LIST_HEAD(&leaving->waiting);
	INIT_LIST_HEAD(&leaving->queue);
	INIT_WORK(&leaving->work, look_work);
}

/* The worker may have put references of jobs and spaces until now. */
static void wait_for_work(struct flexmem_table *table)
{
	flush_work(&table->leaving.work);
}

const struct flexmem_part_ops flexmem_part_programs = {
	.start = start,
	.leave = leave,
	.loss = look_at_all,
	.end = wait_for_work,
};
