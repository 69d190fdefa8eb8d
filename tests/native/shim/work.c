// SPDX-License-Identifier: GPL-2.0
/* Timers in virtual time, and workers. */
#include "internal.h"

void native_set_jiffies(unsigned long jiffy);

static unsigned int timers_lock;
static LIST_HEAD(timers);

/*
 * Order of the locks: @later_lock, @timers_lock, @work_lock. @later_lock is
 * held while work is being delayed, so that a task that cancels the work finds
 * either nothing or a timer.
 */
static unsigned int later_lock;
static unsigned int work_lock;
static LIST_HEAD(queue);

/*
 * A work that runs now. The work may free itself, so @work may only be compared
 * with other pointers.
 */
struct busy {
	struct list_head link;
	struct work_struct *work;
	struct workqueue_struct *wq;
	struct task_struct *worker;
};

static LIST_HEAD(busy);

/*
 * A task that waits for running work. Each worker that has finished a work
 * wakes it up.
 */
struct waiter {
	struct list_head link;
	struct task_struct *task;
};

static LIST_HEAD(waiters);

/* Every queue of the driver runs one work at a time. */
struct workqueue_struct {
	char name[24];
};

void native_timer_set(struct native_timer *timer, unsigned long expires)
{
	struct native_timer *other;

	raw_lock(&timers_lock);
	timer->expires = expires;
	list_for_each_entry(other, &timers, link)
		if (time_after(other->expires, expires))
			break;
	list_add_tail(&timer->link, &other->link);
	raw_unlock(&timers_lock);
}

/* Returns true if the timer was set. If not, its callback may be running. */
bool native_timer_del(struct native_timer *timer)
{
	bool was_set;

	raw_lock(&timers_lock);
	was_set = !list_empty(&timer->link);
	list_del_init(&timer->link);
	raw_unlock(&timers_lock);
	return was_set;
}

/* Runs the first timer that is due at @at. */
static bool run_due(unsigned long at)
{
	struct native_timer *timer;

	raw_lock(&timers_lock);
	timer = list_first_entry_or_null(&timers, struct native_timer, link);
	if (!timer || time_after(timer->expires, at)) {
		raw_unlock(&timers_lock);
		return false;
	}
	list_del_init(&timer->link);
	/*
	 * Called under timers_lock: a task that has removed a timer under this
	 * lock knows that the callback is not running.
	 */
	timer->function(timer);
	raw_unlock(&timers_lock);
	return true;
}

/*
 * Advances time to the next timer, and runs all timers that are due then.
 * Returns false if there is no timer.
 */
bool native_timers_next(void)
{
	struct native_timer *timer;
	unsigned long at;
	bool any;

	raw_lock(&timers_lock);
	timer = list_first_entry_or_null(&timers, struct native_timer, link);
	any = timer;
	at = any ? timer->expires : 0;
	if (any && time_after(at, jiffies))
		native_set_jiffies(at);
	raw_unlock(&timers_lock);
	if (any)
		while (run_due(at))
			;
	return any;
}

/**
 * native_time_advance - advance time
 * @ticks: jiffies
 */
void native_time_advance(unsigned long ticks)
{
	unsigned long at = jiffies + ticks;

	raw_lock(&timers_lock);
	if (time_after(at, jiffies))
		native_set_jiffies(at);
	raw_unlock(&timers_lock);
	while (run_due(at))
		;
	native_point();
}

/* ---- work ---- */

void native_work_init(struct work_struct *work, work_func_t func)
{
	*work = (struct work_struct) { .func = func };
	INIT_LIST_HEAD(&work->link);
}

static bool is_busy(const struct work_struct *work,
		    const struct workqueue_struct *wq)
{
	struct busy *one;

	list_for_each_entry(one, &busy, link)
		if (one->work == work || (wq && one->wq == wq))
			return true;
	return false;
}

/*
 * Returns the next work that may run. No work runs twice at the same time, and
 * work of an ordered queue runs alone. For an ordered queue only the queue is
 * compared, not the work: a worker may still name work that was freed, and new
 * work may have the same address.
 */
static struct work_struct *next_work(void)
{
	struct work_struct *work;

	list_for_each_entry(work, &queue, link)
		if (!is_busy(work->wq ? NULL : work, work->wq))
			return work;
	return NULL;
}

static void do_work(struct work_struct *work)
{
	struct task_struct *asker = work->asker;
	work_func_t func = work->func;
	struct busy self = { .work = work, .wq = work->wq, .worker = current };
	struct waiter *waiter;

	list_del_init(&work->link);
	list_add(&self.link, &busy);
	work->queued = false;
	work->asker = NULL;
	__atomic_store_n(&work->pending, false, RELAXED);
	current->asker = asker;
	raw_unlock(&work_lock);
	os_acquire(work);
	func(work);
	if (current->locks || current->atomic || current->rcu)
		shim_bug("work ends with locks held");
	/* The work may have freed itself, so only its address is used. */
	os_release(self.wq ?: (void *)work);
	current->asker = NULL;
	if (asker)
		put_task_struct(asker);
	raw_lock(&work_lock);
	list_del(&self.link);
	list_for_each_entry(waiter, &waiters, link)
		native_unpark(waiter->task);
}

/* Returns the work that this task runs, or NULL. */
struct work_struct *current_work(void)
{
	struct work_struct *work = NULL;
	struct busy *one;

	raw_lock(&work_lock);
	list_for_each_entry(one, &busy, link)
		if (one->worker == current)
			work = one->work;
	raw_unlock(&work_lock);
	return work;
}

struct idle {
	struct list_head link;
	struct task_struct *task;
};

static LIST_HEAD(idle);

static int work_thread(void *unused)
{
	struct idle self = { .task = current };
	struct work_struct *work;

	raw_lock(&work_lock);
	for (;;) {
		work = next_work();
		if (work) {
			do_work(work);
			continue;
		}
		list_add(&self.link, &idle);
		raw_unlock(&work_lock);
		native_park();
		raw_lock(&work_lock);
		/*
		 * If the worker is still in the list, no new work has woken it
		 * up.
		 */
		if (!list_empty(&self.link)) {
			list_del_init(&self.link);
		}
	}
	return 0;
}

/*
 * Starts a worker if work can run and no worker is idle. The caller holds
 * work_lock.
 */
static void call_worker(void)
{
	struct idle *worker;

	worker = list_first_entry_or_null(&idle, struct idle, link);
	if (worker) {
		list_del_init(&worker->link);
		native_unpark(worker->task);
		return;
	}
	native_kthread_run(work_thread, NULL, "worker");
}

/*
 * Queues work. Its worker uses the planned failures of the task that queues it.
 */
static void queue_locked(struct work_struct *work)
{
	if (work->wq && current && current->fail_at)
		work->asker = get_task_struct(current);
	work->queued = true;
	list_add_tail(&work->link, &queue);
	call_worker();
}

/*
 * Marks the work as pending. Returns false if it is already pending, or being
 * cancelled. The caller holds work_lock.
 */
static bool ask_for(struct work_struct *work)
{
	if (work->pending || work->canceling)
		return false;
	__atomic_store_n(&work->pending, true, RELAXED);
	os_release(work);
	return true;
}

bool queue_work(struct workqueue_struct *wq, struct work_struct *work)
{
	bool asked;

	native_point();
	raw_lock(&work_lock);
	asked = ask_for(work);
	if (asked) {
		work->wq = wq;
		queue_locked(work);
	}
	raw_unlock(&work_lock);
	return asked;
}

static void work_is_due(struct native_timer *timer)
{
	struct delayed_work *work =
		container_of(timer, struct delayed_work, timer);

	raw_lock(&work_lock);
	if (work->work.pending && !work->work.queued)
		queue_locked(&work->work);
	raw_unlock(&work_lock);
}

void native_delayed_work_init(struct delayed_work *work, work_func_t func)
{
	native_work_init(&work->work, func);
	INIT_LIST_HEAD(&work->timer.link);
	work->timer.function = work_is_due;
}

bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *work,
			unsigned long delay)
{
	bool asked;

	if (!delay)
		return queue_work(wq, &work->work);
	raw_lock(&later_lock);
	raw_lock(&work_lock);
	asked = ask_for(&work->work);
	if (asked)
		work->work.wq = wq;
	raw_unlock(&work_lock);
	if (asked)
		native_timer_set(&work->timer, jiffies + delay);
	raw_unlock(&later_lock);
	return asked;
}

bool delayed_work_pending(struct delayed_work *work)
{
	return __atomic_load_n(&work->work.pending, RELAXED);
}

bool mod_delayed_work(struct workqueue_struct *wq, struct delayed_work *work,
		      unsigned long delay)
{
	bool was_set = native_timer_del(&work->timer);

	if (was_set) {
		raw_lock(&work_lock);
		__atomic_store_n(&work->work.pending, false, RELAXED);
		raw_unlock(&work_lock);
	}
	queue_delayed_work(wq, work, delay);
	return was_set;
}

static bool is_queued(const struct work_struct *work,
		      const struct workqueue_struct *wq)
{
	struct work_struct *one;

	list_for_each_entry(one, &queue, link)
		if (one == work || (wq && one->wq == wq))
			return true;
	return false;
}

/*
 * Waits until no worker runs the work, or any work of the queue. The caller
 * holds work_lock.
 */
static void wait_for_worker(const struct work_struct *work,
			    const struct workqueue_struct *wq)
{
	struct waiter self = { .task = current };

	list_add(&self.link, &waiters);
	while (is_busy(work, wq) || is_queued(work, wq)) {
		raw_unlock(&work_lock);
		native_park();
		raw_lock(&work_lock);
	}
	list_del(&self.link);
}

struct workqueue_struct *alloc_ordered_workqueue(const char *name,
						 unsigned int flags)
{
	struct workqueue_struct *wq = kzalloc(sizeof(*wq), GFP_KERNEL);

	if (wq)
		strscpy(wq->name, name, sizeof(wq->name));
	return wq;
}

void flush_workqueue(struct workqueue_struct *wq)
{
	might_sleep();
	native_point();
	raw_lock(&work_lock);
	wait_for_worker(NULL, wq);
	raw_unlock(&work_lock);
	os_acquire(wq);
}

/* Queued work runs before the queue is freed. */
void destroy_workqueue(struct workqueue_struct *wq)
{
	flush_workqueue(wq);
	kfree(wq);
}

/**
 * native_settle_work - wait until no work is queued or running
 *
 * Does not wait for delayed work.
 */
void native_settle_work(void)
{
	struct waiter self = { .task = current };

	raw_lock(&work_lock);
	list_add(&self.link, &waiters);
	while (!list_empty(&busy) || !list_empty(&queue)) {
		raw_unlock(&work_lock);
		native_park();
		raw_lock(&work_lock);
	}
	list_del(&self.link);
	raw_unlock(&work_lock);
}

bool flush_work(struct work_struct *work)
{
	struct workqueue_struct *wq;

	might_sleep();
	native_point();
	raw_lock(&work_lock);
	wq = work->wq;
	wait_for_worker(work, NULL);
	raw_unlock(&work_lock);
	os_acquire(wq ?: (void *)work);
	return true;
}

bool flush_delayed_work(struct delayed_work *work)
{
	/* The worker must see the earlier writes of this task. */
	if (native_timer_del(&work->timer)) {
		os_release(&work->work);
		work_is_due(&work->timer);
	}
	return flush_work(&work->work);
}

/* Cancels work that has not begun. Does not wait for running work. */
bool cancel_work(struct work_struct *work)
{
	struct task_struct *asker = NULL;
	bool was_queued;

	native_point();
	raw_lock(&work_lock);
	was_queued = work->queued;
	if (was_queued) {
		list_del_init(&work->link);
		work->queued = false;
		__atomic_store_n(&work->pending, false, RELAXED);
		asker = work->asker;
		work->asker = NULL;
	}
	raw_unlock(&work_lock);
	if (asker)
		put_task_struct(asker);
	return was_queued;
}

/* Stops the timer. If the timer has expired, the work may run yet. */
bool cancel_delayed_work(struct delayed_work *work)
{
	bool was_pending;

	native_point();
	was_pending = native_timer_del(&work->timer);
	if (was_pending) {
		raw_lock(&work_lock);
		__atomic_store_n(&work->work.pending, false, RELAXED);
		raw_unlock(&work_lock);
	}
	return was_pending;
}

/* When this returns, the work neither runs nor is queued. */
bool cancel_delayed_work_sync(struct delayed_work *work)
{
	bool was_pending;

	might_sleep();
	native_point();
	raw_lock(&later_lock);
	raw_lock(&work_lock);
	work->work.canceling++;
	raw_unlock(&work_lock);
	raw_unlock(&later_lock);
	native_timer_del(&work->timer);
	raw_lock(&work_lock);
	was_pending = work->work.pending;
	list_del_init(&work->work.link);
	work->work.queued = false;
	__atomic_store_n(&work->work.pending, false, RELAXED);
	wait_for_worker(&work->work, NULL);
	work->work.canceling--;
	raw_unlock(&work_lock);
	os_acquire(work);
	return was_pending;
}

/* Runs the handler of an interrupt in atomic context. */
static void run_irq(struct work_struct *work)
{
	struct irq_work *irq = container_of(work, struct irq_work, work);

	current->atomic++;
	current->in_irq = true;
	irq->func(irq);
	current->in_irq = false;
	current->atomic--;
	if (current->given_up && !current->atomic)
		native_bury_given_up();
}

void init_irq_work(struct irq_work *work, void (*func)(struct irq_work *work))
{
	native_work_init(&work->work, run_irq);
	work->func = func;
}

bool irq_work_queue(struct irq_work *work)
{
	return queue_work(NULL, &work->work);
}
