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
 * waits for its fences one by one. A fence may signal in an interrupt, where
 * blocks cannot be freed. So the fence's callback only queues the allocation,
 * and a worker or the next ALLOC frees the blocks.
 *
 * No other owner gets the bytes of a lost region, so allocations in it do not
 * wait for fences.
 */

#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <flexmem/dispatch.h>

#include "allocation.h"
#include "compat.h"
#include "leaving.h"
#include "table.h"
#include "trace.h"

/**
 * struct flexmem_fences - the device's uses of an allocation
 * @resv: fences of the programs that use it
 * @link: in &flexmem_leaving.waiting or &flexmem_leaving.ready
 * @leaving: the lists; NULL before the last reference is put
 * @allocation: the allocation
 * @pending: the fence for which the allocation waits, or waited last; a
 *	reference is held
 * @wait: in &flexmem_account.leaving, from the last reference on
 * @callback: called when @pending signals
 */
struct flexmem_fences {
	struct dma_resv resv;
	struct list_head link;
	struct flexmem_leaving *leaving;
	struct flexmem_allocation *allocation;
	struct dma_fence *pending;
	struct flexmem_wait wait;
	struct dma_fence_cb callback;
};

static void free_fences(struct flexmem_fences *fences)
{
	dma_fence_put(fences->pending);
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
	INIT_LIST_HEAD(&fences->link);
	INIT_LIST_HEAD(&fences->wait.link);
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

/* The allocation waits no longer, so its file's figures do not count it. */
static void leave_file(struct flexmem_fences *fences)
{
	spin_lock_irq(&fences->leaving->lock);
	list_del(&fences->wait.link);
	fences->allocation->owner->leaving_bytes -= fences->allocation->size;
	spin_unlock_irq(&fences->leaving->lock);
}

static void give_back(struct flexmem_allocation *allocation,
		      struct flexmem_stock *stock)
{
	struct flexmem_fences *fences = allocation->fences;

	if (fences) {
		if (fences->leaving)
			leave_file(fences);
		free_fences(fences);
	}
	flexmem_allocation_end(allocation, stock);
}

/* Moves an allocation to the ready list. Called under the lists' lock. */
static void make_ready(struct flexmem_leaving *leaving,
		       struct flexmem_fences *fences)
{
	lockdep_assert_held(&leaving->lock);
	list_move_tail(&fences->link, &leaving->ready);
	atomic_inc(&leaving->nr_ready);
}

static void has_signalled(struct dma_fence *fence, struct dma_fence_cb *callback)
{
	struct flexmem_fences *fences =
		container_of(callback, struct flexmem_fences, callback);
	struct flexmem_leaving *leaving = fences->leaving;
	unsigned long flags;

	trace_flexmem_fence_signalled(fences->allocation, fence);
	spin_lock_irqsave(&leaving->lock, flags);
	make_ready(leaving, fences);
	queue_work(system_dfl_wq, &leaving->work);
	spin_unlock_irqrestore(&leaving->lock, flags);
}

/* Returns a fence that has not signalled, with a reference, or NULL. */
static struct dma_fence *next_fence(struct flexmem_fences *fences)
{
	struct dma_resv_iter cursor;
	struct dma_fence *fence;

	dma_resv_iter_begin(&cursor, &fences->resv, DMA_RESV_USAGE_BOOKKEEP);
	fence = dma_fence_get(dma_resv_iter_first_unlocked(&cursor));
	dma_resv_iter_end(&cursor);
	return fence;
}

/*
 * Adds a callback to the next fence that has not signalled. Returns false if
 * there is none.
 */
static bool wait_on(struct flexmem_leaving *leaving,
		    struct flexmem_fences *fences)
{
	unsigned long flags;

	lockdep_assert_held(&leaving->turn);
	if (flexmem_allocation_error(fences->allocation))
		return false;
	for (;;) {
		dma_fence_put(fences->pending);
		fences->pending = next_fence(fences);
		if (!fences->pending)
			return false;
		/*
		 * The struct must be in the list before the callback can run,
		 * because the callback moves it.
		 */
		spin_lock_irqsave(&leaving->lock, flags);
		list_add_tail(&fences->link, &leaving->waiting);
		spin_unlock_irqrestore(&leaving->lock, flags);
		if (!dma_fence_add_callback(fences->pending, &fences->callback,
					    has_signalled))
			return true;
		/* The fence has signalled already, so no callback will run. */
		spin_lock_irqsave(&leaving->lock, flags);
		list_del_init(&fences->link);
		spin_unlock_irqrestore(&leaving->lock, flags);
	}
}

static struct flexmem_fences *take_ready(struct flexmem_leaving *leaving)
{
	struct flexmem_fences *fences;

	spin_lock_irq(&leaving->lock);
	fences = list_first_entry_or_null(&leaving->ready,
					  struct flexmem_fences, link);
	if (fences)
		list_del_init(&fences->link);
	spin_unlock_irq(&leaving->lock);
	return fences;
}

/*
 * Ends the ready allocations that no fence keeps, then drops @turn. Looks only
 * at as many as are ready now: otherwise the FREEs of other clients could keep
 * an ALLOC here. @work is queued for allocations that become ready later.
 */
static void end_ready(struct flexmem_leaving *leaving)
{
	int left = atomic_read(&leaving->nr_ready);
	struct flexmem_fences *fences;

	while (left-- > 0 && (fences = take_ready(leaving))) {
		if (!wait_on(leaving, fences))
			give_back(fences->allocation, NULL);
		atomic_dec(&leaving->nr_ready);
		cond_resched();
	}
	mutex_unlock(&leaving->turn);
}

/*
 * Ends the allocations that are ready when the call begins, unless a further
 * fence keeps them.
 * Context: may sleep. Return: 0, or -EINTR if the caller was killed while it
 * waited for its turn.
 */
int flexmem_leaving_look(struct flexmem_leaving *leaving)
{
	if (mutex_lock_killable(&leaving->turn))
		return -EINTR;
	end_ready(leaving);
	return 0;
}

static struct flexmem_fences *first_waiting(struct flexmem_leaving *leaving)
{
	struct flexmem_fences *fences;

	spin_lock_irq(&leaving->lock);
	fences = list_first_entry_or_null(&leaving->waiting,
					  struct flexmem_fences, link);
	spin_unlock_irq(&leaving->lock);
	return fences;
}

/* Ends the allocations in lost regions too. May sleep. */
void flexmem_leaving_look_at_all(struct flexmem_leaving *leaving)
{
	struct flexmem_fences *fences;

	mutex_lock(&leaving->turn);
	/*
	 * @fences stays valid without the lock, because only the holder of
	 * @turn ends allocations. If the callback cannot be removed, it moves
	 * the allocation to the ready list itself.
	 */
	while ((fences = first_waiting(leaving))) {
		if (!dma_fence_remove_callback(fences->pending,
					       &fences->callback))
			continue;
		spin_lock_irq(&leaving->lock);
		make_ready(leaving, fences);
		spin_unlock_irq(&leaving->lock);
	}
	end_ready(leaving);
}

static void look_work(struct work_struct *work)
{
	struct flexmem_leaving *leaving =
		container_of(work, struct flexmem_leaving, work);

	mutex_lock(&leaving->turn);
	end_ready(leaving);
}

/* Initialises empty lists. The struct was zeroed with its table. */
void flexmem_leaving_init(struct flexmem_leaving *leaving)
{
	spin_lock_init(&leaving->lock);
	INIT_LIST_HEAD(&leaving->waiting);
	INIT_LIST_HEAD(&leaving->ready);
	mutex_init(&leaving->turn);
	INIT_WORK(&leaving->work, look_work);
}

/*
 * Puts an allocation without references on a list, because the device may still
 * use it. So neither FREE nor the end of a mapping or a copy waits for fences.
 */
static void leave(struct flexmem_allocation *allocation)
{
	struct flexmem_leaving *leaving =
		&allocation->chunks[0]->region->table->leaving;
	struct flexmem_fences *fences = allocation->fences;

	trace_flexmem_leaving(allocation);
	fences->leaving = leaving;
	fences->wait.since = get_jiffies_64();
	spin_lock_irq(&leaving->lock);
	list_add_tail(&fences->wait.link, &allocation->owner->leaving);
	allocation->owner->leaving_bytes += allocation->size;
	make_ready(leaving, fences);
	queue_work(system_dfl_wq, &leaving->work);
	spin_unlock_irq(&leaving->lock);
}

/* Inline, because each FREE calls it. */
static __always_inline void put(struct flexmem_allocation *allocation,
				struct flexmem_stock *stock)
{
	if (!refcount_dec_and_test(&allocation->refs))
		return;
	if (!flexmem_allocation_is_in_flight(allocation)) {
		give_back(allocation, stock);
		return;
	}
	flexmem_allocation_orphan(allocation);
	leave(allocation);
}

/**
 * flexmem_allocation_put - put a reference
 * @allocation: allocation, which this may free
 *
 * After the last reference was put, the blocks are freed as soon as the device
 * no longer uses them.
 *
 * Context: may sleep.
 */
void flexmem_allocation_put(struct flexmem_allocation *allocation)
{
	put(allocation, NULL);
}
EXPORT_SYMBOL_GPL(flexmem_allocation_put);

/*
 * Frees an allocation for its owner. An allocation that is still in use is leaving
 * from now on, and stays charged with its handle.
 * @allocation: this function puts the reference of the handle. The caller has a
 * reference to the account. @stock: stock that may keep the objects that this
 * frees.
 */
void flexmem_allocation_drop_handle(struct flexmem_allocation *allocation,
				    struct flexmem_stock *stock)
{
	/* No task can get a further reference by the handle. */
	if (refcount_read(&allocation->refs) > 1)
		flexmem_allocation_orphan(allocation);
	put(allocation, stock);
}
