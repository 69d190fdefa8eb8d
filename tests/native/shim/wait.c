// SPDX-License-Identifier: GPL-2.0
/* Wait queues and completions. */
#include "internal.h"

void init_waitqueue_head(wait_queue_head_t *queue)
{
	*queue = (wait_queue_head_t) {};
	INIT_LIST_HEAD(&queue->head);
}

static int wake_function(struct wait_queue_entry *entry)
{
	native_unpark(entry->private);
	return 1;
}

int autoremove_wake_function(struct wait_queue_entry *entry, unsigned int mode,
			     int flags, void *key)
{
	list_del_init(&entry->entry);
	return wake_function(entry);
}

int woken_wake_function(struct wait_queue_entry *entry, unsigned int mode,
			int flags, void *key)
{
	__atomic_fetch_or(&entry->flags, WQ_FLAG_WOKEN, __ATOMIC_SEQ_CST);
	return wake_function(entry);
}

long wait_woken(struct wait_queue_entry *entry, unsigned int mode,
		long timeout)
{
	if (!(__atomic_load_n(&entry->flags, __ATOMIC_SEQ_CST) &
	      WQ_FLAG_WOKEN) && !native_signal_ends(mode))
		timeout = schedule_timeout(timeout);
	__atomic_fetch_and(&entry->flags, ~WQ_FLAG_WOKEN, __ATOMIC_SEQ_CST);
	return timeout;
}

void add_wait_queue(wait_queue_head_t *queue, struct wait_queue_entry *entry)
{
	spin_lock_irq(&queue->lock);
	list_add(&entry->entry, &queue->head);
	spin_unlock_irq(&queue->lock);
}

void remove_wait_queue(wait_queue_head_t *queue, struct wait_queue_entry *entry)
{
	spin_lock_irq(&queue->lock);
	list_del_init(&entry->entry);
	spin_unlock_irq(&queue->lock);
}

void prepare_to_wait(wait_queue_head_t *queue, struct wait_queue_entry *entry,
		     int state)
{
	spin_lock_irq(&queue->lock);
	if (list_empty(&entry->entry))
		list_add(&entry->entry, &queue->head);
	spin_unlock_irq(&queue->lock);
}

void finish_wait(wait_queue_head_t *queue, struct wait_queue_entry *entry)
{
	spin_lock_irq(&queue->lock);
	list_del_init(&entry->entry);
	spin_unlock_irq(&queue->lock);
}

bool wq_has_sleeper(wait_queue_head_t *queue)
{
	smp_mb();
	native_point();
	return __atomic_load_n(&queue->head.next, RELAXED) != &queue->head;
}

/* Wakes up the first waiter, or all waiters. */
void native_wake_up(wait_queue_head_t *queue, bool all)
{
	struct wait_queue_entry *entry, *next;

	spin_lock_irq(&queue->lock);
	list_for_each_entry_safe(entry, next, &queue->head, entry)
		if (entry->func(entry, 0, 0, NULL) && !all)
			break;
	spin_unlock_irq(&queue->lock);
}

/* ---- completions ---- */

void init_completion(struct completion *done)
{
	done->done = 0;
	init_waitqueue_head(&done->wait);
}

/*
 * Does everything under the lock, because a waiter may free the completion as
 * soon as it is done.
 */
static void add_done(struct completion *done, unsigned int n)
{
	struct wait_queue_entry *entry, *next;

	spin_lock_irq(&done->wait.lock);
	done->done = n == UINT_MAX ? n : done->done + n;
	list_for_each_entry_safe(entry, next, &done->wait.head, entry)
		entry->func(entry, 0, 0, NULL);
	spin_unlock_irq(&done->wait.lock);
}

void complete(struct completion *done)
{
	add_done(done, 1);
}

void complete_all(struct completion *done)
{
	add_done(done, UINT_MAX);
}

static bool take_done(struct completion *done)
{
	bool is_done;

	spin_lock_irq(&done->wait.lock);
	is_done = done->done;
	if (is_done && done->done != UINT_MAX)
		done->done--;
	spin_unlock_irq(&done->wait.lock);
	return is_done;
}

bool completion_done(struct completion *done)
{
	bool is_done;

	spin_lock_irq(&done->wait.lock);
	is_done = done->done;
	spin_unlock_irq(&done->wait.lock);
	return is_done;
}

unsigned long wait_for_completion_timeout(struct completion *done,
					  unsigned long timeout)
{
	return wait_event_timeout(done->wait, take_done(done), (long)timeout);
}

void wait_for_completion(struct completion *done)
{
	wait_event(done->wait, take_done(done));
}

int wait_for_completion_state(struct completion *done, unsigned int state)
{
	return native_wait_forever(done->wait, take_done(done), state);
}
