// SPDX-License-Identifier: GPL-2.0
/*
 * RCU that frees each object as early as it may.
 *
 * An object waits only for tasks that were in a read section when it was passed
 * to RCU. Without such a task the object is freed at once. Otherwise the object
 * is freed when the last of these tasks leaves its read section. So two errors
 * are found at once: a reader that keeps a pointer for too long, and an object
 * that is freed without RCU.
 *
 * Since 4.20 the holder of a spinlock counts as a reader, too. So a task that
 * holds a spinlock may pass an object to RCU first, and hide it from other
 * tasks later, if the lock is still held then. (XArray relies on that: it
 * passes a node to RCU before it removes the node.)
 */
#include "internal.h"

struct grave {
	struct list_head link;
	struct grave *next;
	struct rcu_head *head;
	void *object;
	void (*func)(struct rcu_head *head);
	unsigned int readers;
	struct {
		struct task_struct *task;
		unsigned long passed;
	} reader[64];
};

static unsigned int graves_lock;
static LIST_HEAD(graves);
static int nr_graves;

void rcu_read_lock(void)
{
	native_point();
	__atomic_fetch_add(&current->rcu, 1, __ATOMIC_SEQ_CST);
}

bool rcu_read_lock_held(void)
{
	return current->rcu > 0;
}

/* Notes the tasks that are in a read section now. */
static void note_readers(struct grave *grave)
{
	struct task_struct *task;

	raw_lock(&native_tasks_lock);
	list_for_each_entry(task, &native_tasks, link) {
		if (!__atomic_load_n(&task->rcu, __ATOMIC_SEQ_CST))
			continue;
		if (grave->readers == ARRAY_SIZE(grave->reader))
			shim_bug("too many readers");
		grave->reader[grave->readers].task = get_task_struct(task);
		grave->reader[grave->readers++].passed =
			__atomic_load_n(&task->rcu_passed, __ATOMIC_SEQ_CST);
	}
	raw_unlock(&native_tasks_lock);
}

/*
 * Drops the tasks that have left their read section. Returns true if no task is
 * left.
 */
static bool all_passed(struct grave *grave)
{
	unsigned int i = 0;

	while (i < grave->readers) {
		struct task_struct *task = grave->reader[i].task;

		if (__atomic_load_n(&task->rcu, __ATOMIC_SEQ_CST) &&
		    __atomic_load_n(&task->rcu_passed, __ATOMIC_SEQ_CST) ==
		    grave->reader[i].passed) {
			i++;
			continue;
		}
		native_task_put(task);
		grave->reader[i] = grave->reader[--grave->readers];
	}
	return !grave->readers;
}

static void bury(struct grave *grave)
{
	/*
	 * Tells TSan that all accesses of the readers, and of the task that
	 * freed the object, happened before.
	 */
	os_acquire(&nr_graves);
	os_acquire(grave->head);
	if (grave->func)
		grave->func(grave->head);
	else
		kfree(grave->object);
	free(grave);
}

static void bury_all(void)
{
	struct grave *grave, *next;
	LIST_HEAD(free_now);

	raw_lock(&graves_lock);
	list_for_each_entry_safe(grave, next, &graves, link) {
		if (!all_passed(grave))
			continue;
		list_move_tail(&grave->link, &free_now);
		__atomic_fetch_sub(&nr_graves, 1, RELAXED);
	}
	raw_unlock(&graves_lock);
	list_for_each_entry_safe(grave, next, &free_now, link)
		bury(grave);
}

void rcu_read_unlock(void)
{
	if (current->rcu <= 0)
		shim_bug("rcu_read_unlock() without rcu_read_lock()");
	os_release(&nr_graves);
	if (current->rcu == 1)
		__atomic_fetch_add(&current->rcu_passed, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_sub(&current->rcu, 1, __ATOMIC_SEQ_CST);
	if (!current->rcu && __atomic_load_n(&nr_graves, __ATOMIC_SEQ_CST))
		bury_all();
	native_point();
}

static void dig(struct grave *grave)
{
	/*
	 * A read section that begins after this fence cannot find the object.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	note_readers(grave);
	raw_lock(&graves_lock);
	list_add_tail(&grave->link, &graves);
	__atomic_fetch_add(&nr_graves, 1, __ATOMIC_SEQ_CST);
	raw_unlock(&graves_lock);
	bury_all();
}

/*
 * Passes on the objects that the task gave to RCU while it held spinlocks. The
 * task holds no spinlock now.
 */
void native_bury_given_up(void)
{
	struct grave *grave = current->given_up, *next;

	current->given_up = NULL;
	for (; grave; grave = next) {
		next = grave->next;
		dig(grave);
	}
}

static void give_up(struct rcu_head *head, void *object,
		    void (*func)(struct rcu_head *head))
{
	struct grave *grave = calloc(1, sizeof(*grave));

	if (!grave)
		abort();
	grave->head = head;
	grave->object = object;
	grave->func = func;
	os_release(head);
	if (current->atomic) {
		grave->next = current->given_up;
		current->given_up = grave;
	} else {
		dig(grave);
	}
	native_point();
}

void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	give_up(head, NULL, func);
}

void native_kfree_rcu(struct rcu_head *head, void *object)
{
	give_up(head, object, NULL);
}
