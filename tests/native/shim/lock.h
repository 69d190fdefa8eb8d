/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Locks and RCU. Each lock knows its owner. The shim reports wrong use at once:
 * the release of a lock that is not held, and an acquisition by the owner. A
 * task, a test or a work item must hold no lock when it ends.
 */
#ifndef _NATIVE_LOCK_H
#define _NATIVE_LOCK_H

struct task_struct;

/**
 * struct spinlock - a spinlock; all zero is unlocked
 * @word: 0: free, 1: held, 2: held, and a task waits
 * @owner: the holder
 * @interrupts: an interrupt handler has taken the lock before
 * @interrupted: a task has taken the lock while interrupts were on. Together
 *	with @interrupts this could deadlock on a single processor
 */
typedef struct spinlock {
	unsigned int word;
	struct task_struct *owner;
	bool interrupts;
	bool interrupted;
} spinlock_t;

/**
 * struct mutex - a mutex; waiters sleep, so that time can advance
 * @guard: protects the other members
 * @owner: the holder
 * @waiters: tasks that wait, first come first
 */
struct mutex {
	unsigned int guard;
	struct task_struct *owner;
	struct list_head waiters;
};

/**
 * struct rw_semaphore - a lock with readers; waiters sleep
 * @guard: protects the other members
 * @owner: writer
 * @readers: number of readers that hold the lock
 * @writers: number of writers that wait; new readers wait for them
 * @waiters: tasks that wait
 */
struct rw_semaphore {
	unsigned int guard;
	struct task_struct *owner;
	int readers;
	int writers;
	struct list_head waiters;
};

#define __SPIN_LOCK_UNLOCKED(name) { 0 }
#define DEFINE_SPINLOCK(name) spinlock_t name
#define __MUTEX_INITIALIZER(name) { .waiters = LIST_HEAD_INIT((name).waiters) }
#define DEFINE_MUTEX(name) struct mutex name = __MUTEX_INITIALIZER(name)

/*
 * If it is set, it is called when a task has taken its first spinlock, and before
 * the task releases its last one.
 */
extern void (*native_note_spinlocks)(bool held);

void spin_lock_init(spinlock_t *lock);
void spin_lock(spinlock_t *lock);
bool spin_trylock(spinlock_t *lock);
void spin_unlock(spinlock_t *lock);

/* Takes the lock before the count becomes 0. */
static inline bool refcount_dec_and_lock(refcount_t *r, spinlock_t *lock)
{
	int n = refcount_read(r);

	while (n > 1)
		if (__atomic_compare_exchange_n(&r->count, &n, n - 1, false,
						__ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return false;
	spin_lock(lock);
	if (refcount_dec_and_test(r))
		return true;
	spin_unlock(lock);
	return false;
}

#define spin_lock_nested(lock, subclass) spin_lock(lock)
#define spin_lock_nest_lock(lock, nest) spin_lock(lock)
#define spin_lock_bh(lock) spin_lock(lock)
#define spin_unlock_bh(lock) spin_unlock(lock)
void native_irqs_off(int more);
#define spin_lock_irq(lock) (native_irqs_off(1), spin_lock(lock))
#define spin_unlock_irq(lock) (spin_unlock(lock), native_irqs_off(-1))
#define spin_lock_irqsave(lock, flags) ((flags) = 0, spin_lock_irq(lock))
#define spin_unlock_irqrestore(lock, flags) \
	((void)(flags), spin_unlock_irq(lock))

void mutex_init(struct mutex *lock);
void mutex_destroy(struct mutex *lock);
void mutex_lock(struct mutex *lock);
#define mutex_lock_nested(lock, subclass) mutex_lock(lock)
int __must_check mutex_lock_killable(struct mutex *lock);
bool mutex_trylock(struct mutex *lock);
void mutex_unlock(struct mutex *lock);
bool mutex_is_locked(struct mutex *lock);

void init_rwsem(struct rw_semaphore *sem);
void down_read(struct rw_semaphore *sem);
void up_read(struct rw_semaphore *sem);
void down_write(struct rw_semaphore *sem);
void up_write(struct rw_semaphore *sem);

bool native_spin_is_held(const spinlock_t *lock);
bool native_mutex_is_held(const struct mutex *lock);
bool native_rwsem_is_held(const struct rw_semaphore *sem);
#define lockdep_is_held(lock) \
	_Generic((lock), \
		 spinlock_t *: native_spin_is_held((const void *)(lock)), \
		 struct mutex *: native_mutex_is_held((const void *)(lock)), \
		 const spinlock_t *: native_spin_is_held((const void *)(lock)), \
		 const struct mutex *: native_mutex_is_held((const void *)(lock)), \
		 struct rw_semaphore *: native_rwsem_is_held((const void *)(lock)))
#define lockdep_assert_held(lock) \
	((void)WARN(!lockdep_is_held(lock), "not held: %s", #lock))
#define lockdep_init_map(args...) ((void)0)
#define might_lock(lock) ((void)0)
#define lock_acquire_shared_recursive(args...) ((void)0)

void rcu_read_lock(void);
void rcu_read_unlock(void);
bool rcu_read_lock_held(void);
void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head));
void native_kfree_rcu(struct rcu_head *head, void *object);
#define kfree_rcu(object, member) \
	native_kfree_rcu(&(object)->member, (object))
#define RCU_INITIALIZER(p) (p)
#define RCU_INIT_POINTER(p, value) WRITE_ONCE(p, value)
#define rcu_assign_pointer(p, value) smp_store_release(&(p), (value))
#define rcu_dereference_check(p, condition) ({ \
	WARN(!((condition) || rcu_read_lock_held()), \
	     "suspicious rcu_dereference of %s", #p); \
	__atomic_load_n(&(p), __ATOMIC_ACQUIRE); \
})
#define rcu_dereference(p) rcu_dereference_check(p, false)
#define rcu_dereference_raw(p) __atomic_load_n(&(p), __ATOMIC_ACQUIRE)
#define rcu_dereference_protected(p, condition) ({ \
	WARN(!(condition), "unprotected rcu_dereference of %s", #p); \
	READ_ONCE(p); \
})
#define rcu_access_pointer(p) READ_ONCE(p)

#endif /* _NATIVE_LOCK_H */
