/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations that the files of the shim share.
 *
 * There are two ways to wait. A task that needs a lock which is held only for a
 * few instructions waits until a word changes. A task that sleeps is parked
 * until another task unparks it; a wake-up that comes before the task is parked
 * is kept, so none is lost. When all tasks are parked, time advances.
 */
#ifndef _NATIVE_INTERNAL_H
#define _NATIVE_INTERNAL_H

#include "shim.h"
#include "os.h"

/*
 * Memory order of the shim's own variables, so that TSan does not take accesses
 * to them for synchronization.
 */
#define RELAXED __ATOMIC_RELAXED

/* Defined in sched.c. */
void native_wait_word(unsigned int *word, unsigned int value);
void native_wake_word(unsigned int *word);
void raw_lock(unsigned int *word);
void raw_unlock(unsigned int *word);
void sched_add(struct task_struct *task);
void sched_begin(struct task_struct *task);
void sched_end(void);
void sched_yield_turn(void);

/* Defined in rcu.c. */
void native_bury_given_up(void);

/* Defined in task.c. */
extern struct list_head native_tasks;
extern unsigned int native_tasks_lock;
void native_park(void);
void native_unpark(struct task_struct *task);
void native_shim_init(void);
void native_show_tasks(void);
void native_quiesce(void);

/* Defined in work.c. */
void native_timer_set(struct native_timer *timer, unsigned long expires);
bool native_timer_del(struct native_timer *timer);
bool native_timers_next(void);

/* Defined in memory.c. */
void *native_user_part(void);
void native_user_part_free(void *part);

#endif /* _NATIVE_INTERNAL_H */
