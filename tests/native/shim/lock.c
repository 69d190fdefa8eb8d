// SPDX-License-Identifier: GPL-2.0
/* Spinlocks, mutexes and semaphores, and checks of their use. */
#include "internal.h"

struct waiter {
	struct list_head link;
	struct task_struct *task;
};

static void got(void *lock, struct task_struct **owner, bool tried)
{
	__atomic_store_n(owner, current, RELAXED);
	current->locks++;
	os_locked(lock, false, tried);
}

static void giving_back(void *lock, struct task_struct **owner,
			const char *what)
{
	if (__atomic_load_n(owner, RELAXED) != current)
		shim_bug("%s is unlocked, but not held", what);
	__atomic_store_n(owner, NULL, RELAXED);
	current->locks--;
	os_unlocking(lock, false);
}

static void not_twice(struct task_struct *const *owner, const char *what)
{
	if (__atomic_load_n(owner, RELAXED) == current)
		shim_bug("%s is locked, and held already", what);
}

/* ---- spinlocks ---- */

void spin_lock_init(spinlock_t *lock)
{
	*lock = (spinlock_t) {};
}

void native_irqs_off(int more)
{
	current->irqs_off += more;
}

/*
 * Checks, as lockdep does, that a lock which interrupt handlers take is always
 * taken with interrupts off.
 */
static void note_interrupts(spinlock_t *lock)
{
	if (current->in_irq)
		__atomic_store_n(&lock->interrupts, true, RELAXED);
	else if (!current->irqs_off)
		__atomic_store_n(&lock->interrupted, true, RELAXED);
	if (__atomic_load_n(&lock->interrupts, RELAXED) &&
	    __atomic_load_n(&lock->interrupted, RELAXED))
		shim_bug("spinlock of interrupts is locked with interrupts enabled");
}

void (*native_note_spinlocks)(bool held);

/* The task has just taken its first spinlock, or is about to release its last one. */
static void note(bool held)
{
	if (native_note_spinlocks && current->atomic == 1)
		native_note_spinlocks(held);
}

void spin_lock(spinlock_t *lock)
{
	not_twice(&lock->owner, "spinlock");
	note_interrupts(lock);
	native_point();
	raw_lock(&lock->word);
	current->atomic++;
	got(lock, &lock->owner, false);
	note(true);
}

bool spin_trylock(spinlock_t *lock)
{
	unsigned int seen = 0;

	native_point();
	if (!__atomic_compare_exchange_n(&lock->word, &seen, 1, false,
					 __ATOMIC_ACQUIRE, RELAXED))
		return false;
	current->atomic++;
	got(lock, &lock->owner, true);
	note(true);
	return true;
}

void spin_unlock(spinlock_t *lock)
{
	note(false);
	giving_back(lock, &lock->owner, "spinlock");
	current->atomic--;
	raw_unlock(&lock->word);
	if (current->given_up && !current->atomic)
		native_bury_given_up();
	native_point();
}

bool native_spin_is_held(const spinlock_t *lock)
{
	return __atomic_load_n(&lock->owner, RELAXED) == current;
}

/* ---- mutexes ---- */

void mutex_init(struct mutex *lock)
{
	*lock = (struct mutex) {};
	INIT_LIST_HEAD(&lock->waiters);
}

void mutex_destroy(struct mutex *lock)
{
	if (lock->owner || !list_empty(&lock->waiters))
		shim_bug("mutex is destroyed, but in use");
}

/* Lets the first waiter try to take the lock. The caller holds the guard. */
static void wake_first(struct list_head *waiters)
{
	if (!list_empty(waiters))
		native_unpark(list_first_entry(waiters, struct waiter,
					       link)->task);
}

static int lock_mutex(struct mutex *lock, bool killable)
{
	struct waiter waiter = { .task = current };
	int rc = 0;

	native_might_sleep("mutex_lock");
	not_twice(&lock->owner, "mutex");
	native_point();
	raw_lock(&lock->guard);
	if (lock->owner) {
		list_add_tail(&waiter.link, &lock->waiters);
		while (lock->owner && !(killable &&
					fatal_signal_pending(current))) {
			raw_unlock(&lock->guard);
			native_park();
			raw_lock(&lock->guard);
		}
		list_del(&waiter.link);
		/*
		 * A killed waiter gives up only while another task holds the
		 * lock. That task then wakes up the next waiter.
		 */
		if (lock->owner)
			rc = -EINTR;
	}
	if (!rc)
		__atomic_store_n(&lock->owner, current, RELAXED);
	raw_unlock(&lock->guard);
	if (!rc)
		got(lock, &lock->owner, false);
	return rc;
}

void mutex_lock(struct mutex *lock)
{
	lock_mutex(lock, false);
}

int mutex_lock_killable(struct mutex *lock)
{
	return lock_mutex(lock, true);
}

bool mutex_trylock(struct mutex *lock)
{
	bool free;

	native_point();
	raw_lock(&lock->guard);
	free = !lock->owner;
	if (free)
		__atomic_store_n(&lock->owner, current, RELAXED);
	raw_unlock(&lock->guard);
	if (free)
		got(lock, &lock->owner, true);
	return free;
}

void mutex_unlock(struct mutex *lock)
{
	if (__atomic_load_n(&lock->owner, RELAXED) != current)
		shim_bug("mutex is unlocked, but not held");
	current->locks--;
	os_unlocking(lock, false);
	raw_lock(&lock->guard);
	__atomic_store_n(&lock->owner, NULL, RELAXED);
	wake_first(&lock->waiters);
	raw_unlock(&lock->guard);
	native_point();
}

bool mutex_is_locked(struct mutex *lock)
{
	return __atomic_load_n(&lock->owner, RELAXED);
}

bool native_mutex_is_held(const struct mutex *lock)
{
	return __atomic_load_n(&lock->owner, RELAXED) == current;
}

/* Reader-writer semaphores. */
void init_rwsem(struct rw_semaphore *sem)
{
	*sem = (struct rw_semaphore) {};
	INIT_LIST_HEAD(&sem->waiters);
}

/*
 * Whether a task must wait. New readers wait for writers that are already
 * waiting.
 */
static bool is_closed(const struct rw_semaphore *sem, bool write)
{
	return sem->owner || (write ? sem->readers : sem->writers);
}

static void wake_all(struct rw_semaphore *sem)
{
	struct waiter *waiter;

	list_for_each_entry(waiter, &sem->waiters, link)
		native_unpark(waiter->task);
}

static void enter(struct rw_semaphore *sem, bool write)
{
	struct waiter waiter = { .task = current };

	native_might_sleep("down");
	not_twice(&sem->owner, "semaphore");
	native_point();
	raw_lock(&sem->guard);
	list_add_tail(&waiter.link, &sem->waiters);
	sem->writers += write;
	while (is_closed(sem, write)) {
		raw_unlock(&sem->guard);
		native_park();
		raw_lock(&sem->guard);
	}
	sem->writers -= write;
	list_del(&waiter.link);
	if (write)
		__atomic_store_n(&sem->owner, current, RELAXED);
	else
		sem->readers++;
	/* The next waiters may be readers too, so they try again. */
	wake_all(sem);
	raw_unlock(&sem->guard);
	current->locks++;
	os_locked(sem, !write, false);
}

static void leave(struct rw_semaphore *sem, bool write)
{
	if (write ? __atomic_load_n(&sem->owner, RELAXED) != current :
		    __atomic_load_n(&sem->readers, RELAXED) <= 0)
		shim_bug("semaphore is released, but not held");
	current->locks--;
	os_unlocking(sem, !write);
	raw_lock(&sem->guard);
	if (write)
		__atomic_store_n(&sem->owner, NULL, RELAXED);
	else
		sem->readers--;
	wake_all(sem);
	raw_unlock(&sem->guard);
	native_point();
}

void down_read(struct rw_semaphore *sem)
{
	enter(sem, false);
}

void up_read(struct rw_semaphore *sem)
{
	leave(sem, false);
}

void down_write(struct rw_semaphore *sem)
{
	enter(sem, true);
}

void up_write(struct rw_semaphore *sem)
{
	leave(sem, true);
}

bool native_rwsem_is_held(const struct rw_semaphore *sem)
{
	return __atomic_load_n(&sem->owner, RELAXED) == current ||
	       __atomic_load_n(&sem->readers, RELAXED) > 0;
}
