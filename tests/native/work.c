// SPDX-License-Identifier: GPL-2.0
/* Timers, in virtual time, and workers. */
#include "internal.h"

void native_set_jiffies(unsigned long jiffy);

static unsigned int timers_lock;
static LIST_HEAD(timers);

/*
 * The first is held while work is put off, so that who cancels it finds either
 * nothing or a timer. Then that of the timers, then that of the queue.
 */
static unsigned int later_lock;
static unsigned int work_lock;
static LIST_HEAD(queue);

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

/* Returns true if it was set; otherwise it may be under way. */
bool native_timer_del(struct native_timer *timer)
{
	bool was_set;

	raw_lock(&timers_lock);
	was_set = !list_empty(&timer->link);
	list_del_init(&timer->link);
	raw_unlock(&timers_lock);
	return was_set;
}

/* Takes off the first timer that is due at @at, and runs it. */
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
	/* Under the lock: who takes a timer away knows that it is over. */
	timer->function(timer);
	raw_unlock(&timers_lock);
	return true;
}

/*
 * Lets time go on to where the next timer is due, and runs all that are due
 * then. False: there is none.
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
 * native_time_advance - let time go on
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

/* Work. */
void native_work_init(struct work_struct *work, work_func_t func)
{
	*work = (struct work_struct) { .func = func };
	INIT_LIST_HEAD(&work->link);
}

/* One that is not being done already: nothing is done twice at a time. */
static struct work_struct *next_work(void)
{
	struct work_struct *work;

	list_for_each_entry(work, &queue, link)
		if (!work->worker)
			return work;
	return NULL;
}

static void do_work(struct work_struct *work)
{
	work_func_t func = work->func;

	list_del_init(&work->link);
	work->queued = false;
	__atomic_store_n(&work->pending, false, RELAXED);
	work->worker = current;
	raw_unlock(&work_lock);
	os_acquire(work);
	func(work);
	if (current->locks || current->atomic || current->rcu)
		shim_bug("work ends with locks held");
	os_release(work);
	raw_lock(&work_lock);
	work->worker = NULL;
	if (work->waiter)
		native_unpark(work->waiter);
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
		/* Woken up for work it is not in the list any more. */
		if (!list_empty(&self.link)) {
			list_del_init(&self.link);
		}
	}
	return 0;
}

/* Under work_lock: there is always a worker for what can be done. */
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

static void queue_locked(struct work_struct *work)
{
	work->queued = true;
	list_add_tail(&work->link, &queue);
	call_worker();
}

/* Under work_lock. Who asks first is who asks. */
static bool ask_for(struct work_struct *work)
{
	if (work->pending || work->canceling)
		return false;
	__atomic_store_n(&work->pending, true, RELAXED);
	os_release(work);
	return true;
}

bool native_queue_work(struct work_struct *work)
{
	bool asked;

	raw_lock(&work_lock);
	asked = ask_for(work);
	if (asked)
		queue_locked(work);
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

bool native_queue_delayed_work(struct delayed_work *work, unsigned long delay)
{
	bool asked;

	if (!delay)
		return native_queue_work(&work->work);
	raw_lock(&later_lock);
	raw_lock(&work_lock);
	asked = ask_for(&work->work);
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
	native_queue_delayed_work(work, delay);
	return was_set;
}

/* Under work_lock: until nobody is doing it. */
static void wait_for_worker(struct work_struct *work)
{
	if (work->waiter)
		shim_bug("two wait for the same work");
	work->waiter = current;
	while (work->worker || work->queued) {
		raw_unlock(&work_lock);
		native_park();
		raw_lock(&work_lock);
	}
	work->waiter = NULL;
}

bool flush_work(struct work_struct *work)
{
	might_sleep();
	native_point();
	raw_lock(&work_lock);
	wait_for_worker(work);
	raw_unlock(&work_lock);
	os_acquire(work);
	return true;
}

/* What would be done later is done now. */
bool flush_delayed_work(struct delayed_work *work)
{
	if (native_timer_del(&work->timer))
		work_is_due(&work->timer);
	return flush_work(&work->work);
}

/* Afterwards it is neither being done nor going to be. */
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
	wait_for_worker(&work->work);
	work->work.canceling--;
	raw_unlock(&work_lock);
	os_acquire(work);
	return was_pending;
}
