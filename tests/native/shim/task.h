/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tasks, their users and signals; time; and all kinds of waiting. Time is
 * virtual: no test has to wait. When every task sleeps, time advances to the
 * next wake-up. So a timeout expires only if nothing else can happen, or if a
 * test calls native_time_advance().
 */
#ifndef _NATIVE_TASK_H
#define _NATIVE_TASK_H

/* ---- time ---- */

#define HZ 250
unsigned long native_jiffies(void);
#define jiffies native_jiffies()
#define get_jiffies_64() ((u64)native_jiffies())
#define msecs_to_jiffies(ms) (((unsigned long)(ms) * HZ + 999) / 1000)
#define jiffies64_to_msecs(j) ((u64)(j) * (1000 / HZ))
#define jiffies_to_msecs(j) ((unsigned int)((j) * (1000 / HZ)))
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
#define time_before64(a, b) ((s64)((a) - (b)) < 0)
#define time_after64(a, b) time_before64(b, a)
#define MAX_SCHEDULE_TIMEOUT ((long)(~0UL >> 1))
#define NSEC_PER_MSEC 1000000L
ktime_t ktime_get(void);
#define ktime_ms_delta(a, b) (((a) - (b)) / NSEC_PER_MSEC)

void native_time_advance(unsigned long ticks);

/* Users. There is one user namespace. */
typedef struct {
	uid_t val;
} kuid_t;

struct user_namespace {
	int unused;
};

struct cred {
	kuid_t uid;
	bool admin;
};

struct pid {
	refcount_t count;
	int nr;
	bool has_task;
};

#define KUIDT_INIT(value) ((kuid_t) { value })
#define INVALID_UID KUIDT_INIT((uid_t)-1)
#define uid_eq(a, b) ((a).val == (b).val)
#define uid_lt(a, b) ((a).val < (b).val)
#define uid_valid(uid) ((uid).val != (uid_t)-1)
#define make_kuid(ns, uid) ((void)(ns), KUIDT_INIT(uid))
#define from_kuid_munged(ns, uid) ((void)(ns), (uid).val)
#define current_user_ns() (&init_user_ns)
#define CAP_SYS_ADMIN 21
extern struct user_namespace init_user_ns;
bool capable(int capability);
#define ns_capable_noaudit(ns, capability) ((void)(ns), capable(capability))

/**
 * enum native_fault - operations that can fail on request
 * @NATIVE_ALLOC: an allocation
 * @NATIVE_USER: an access to user memory
 * @NATIVE_DEVICE: an operation of the device
 */
enum native_fault {
	NATIVE_ALLOC,
	NATIVE_USER,
	NATIVE_DEVICE,
	NATIVE_NR_FAULTS,
};

struct cgroup;
struct grave;

/**
 * struct task_struct - a task: a thread of its own
 * @comm: its name
 * @link: in the list of all tasks
 * @refs: one for the thread itself, and one for the waiter for its end
 * @cred: its user
 * @pid: its number
 * @cgroup: the cgroup that it is in; a reference is held
 * @cgroup_ns: the root of its cgroup namespace, which outlives the task; NULL: all
 *	cgroups
 * @word: 0: it runs; 1: it was woken up before it slept; 2: it sleeps
 * @killed: a fatal signal is pending
 * @interrupted: another signal is pending
 * @should_stop: kthread_stop() was called
 * @atomic: number of spinlocks that it holds, and of other reasons not to sleep
 * @irqs_off: how often it has disabled interrupts
 * @in_irq: it plays an interrupt
 * @locks: number of locks that it holds, including mutexes
 * @rcu: number of read sections that it is in
 * @rcu_passed: number of read sections that it has left so far
 * @given_up: objects that it has passed to RCU while it held a spinlock
 * @fail_at: n: the n-th of the next operations that can fail is made to fail;
 *	0: none is
 * @failed: 1 + the kind of the operation that failed then; 0: none
 * @fail_again: how many of the next operations of that kind fail too
 * @points: number of operations so far that could fail
 * @asker: in a worker: the task that queued the work, whose fail_at, failed,
 *	fail_again and points it uses; otherwise NULL
 * @meanwhile: function to call while it touches user memory, or NULL
 * @meanwhile_at: counts down the accesses until @meanwhile is called
 * @user: its part of the user-memory window
 * @wild: it passes arbitrary addresses, so only @user counts as mapped
 * @rank: scheduled mode: its priority
 * @blocked: scheduled mode: the word it waits for, or NULL
 * @go: scheduled mode: the task may run now
 * @function: the function that it runs
 * @data: argument of @function
 * @result: the result of @function
 * @exited: @function has returned
 * @stopper: the task that waits for the end of this one
 */
struct task_struct {
	char comm[24];
	struct list_head link;
	refcount_t refs;
	struct cred cred;
	struct pid *pid;
	struct cgroup *cgroup;
	struct cgroup *cgroup_ns;
	unsigned int word;
	bool killed;
	bool interrupted;
	bool should_stop;
	int atomic;
	int irqs_off;
	bool in_irq;
	int locks;
	int rcu;
	unsigned long rcu_passed;
	struct grave *given_up;
	unsigned long fail_at;
	int failed;
	unsigned int fail_again;
	unsigned long points;
	struct task_struct *asker;
	void (*meanwhile)(void);
	unsigned int meanwhile_at;
	void *user;
	bool wild;
	unsigned long rank;
	unsigned int *blocked;
	unsigned int go;
	int (*function)(void *data);
	void *data;
	int result;
	bool exited;
	struct task_struct *stopper;
};

extern __thread struct task_struct *native_current;
#define current native_current
#define task_tgid(task) ((task)->pid)
struct pid *get_pid(struct pid *pid);
void put_pid(struct pid *pid);
pid_t pid_vnr(struct pid *pid);
#define pid_has_task(pid, type) __atomic_load_n(&(pid)->has_task, __ATOMIC_RELAXED)
#define put_task_struct(task) native_task_put(task)
struct task_struct *get_task_struct(struct task_struct *task);
void native_task_put(struct task_struct *task);

#define SIGKILL 9
bool fatal_signal_pending(struct task_struct *task);
bool signal_pending(struct task_struct *task);
#define allow_signal(signal) ((void)(signal))
int send_sig(int signal, struct task_struct *task, int privileged);

/*
 * Drops the pending signals of the calling task, as if a new process took its
 * place.
 */
void native_revive(void);

/* In scheduled mode another task may run here. */
void native_point(void);
void native_start_schedule(u64 seed, unsigned int changes,
			   unsigned long points);
unsigned long native_schedule_steps(void);
bool native_should_fail(enum native_fault fault);

/* ---- sleeping ---- */

#define TASK_RUNNING 0
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2
#define TASK_KILLABLE 4
#define TASK_IDLE 8
/* The shim never freezes tasks. */
#define TASK_FREEZABLE 0
#define __set_current_state(state) ((void)(state))
#define set_current_state(state) ((void)(state))
void native_might_sleep(const char *what);
#define might_sleep() native_might_sleep(__func__)
#define cond_resched() native_cond_resched()
#define cpu_relax() native_point()
void native_cond_resched(void);
void schedule(void);
long schedule_timeout(long timeout);
int wake_up_process(struct task_struct *task);
void msleep(unsigned int ms);
#define usleep_range_state(min, max, state) msleep(((min) + 999) / 1000)
#define usleep_range(min, max) msleep(((min) + 999) / 1000)
#define udelay(us) native_point()

/* ---- threads ---- */

struct task_struct *native_kthread_create(int (*function)(void *data),
					  void *data, const char *name);
void native_kthread_start(struct task_struct *task);
void native_come_at(unsigned long points, struct task_struct *task);
bool native_came(void);
struct task_struct *native_kthread_run(int (*function)(void *data), void *data,
				       const char *name, ...)
				       __printf(3, 4);
#define kthread_run(function, data, name...) ({ \
	struct task_struct *__task = native_kthread_run(function, data, name); \
	native_point(); \
	__task; \
})
bool kthread_should_stop(void);
int kthread_stop(struct task_struct *task);

/* ---- wait queues ---- */

struct wait_queue_entry;
typedef int (*wait_queue_func_t)(struct wait_queue_entry *entry,
				 unsigned int mode, int flags, void *key);

struct wait_queue_entry {
	unsigned int flags;
	void *private;
	wait_queue_func_t func;
	struct list_head entry;
};

typedef struct wait_queue_entry wait_queue_entry_t;

typedef struct wait_queue_head {
	spinlock_t lock;
	struct list_head head;
} wait_queue_head_t;

static inline void init_waitqueue_func_entry(struct wait_queue_entry *entry,
					     wait_queue_func_t func)
{
	*entry = (struct wait_queue_entry) { .func = func };
	INIT_LIST_HEAD(&entry->entry);
}

#define WQ_FLAG_WOKEN 2
#define DEFINE_WAIT_FUNC(name, function) \
	struct wait_queue_entry name = { \
		.private = current, \
		.func = function, \
		.entry = LIST_HEAD_INIT((name).entry), \
	}
#define DEFINE_WAIT(name) DEFINE_WAIT_FUNC(name, autoremove_wake_function)
int autoremove_wake_function(struct wait_queue_entry *entry, unsigned int mode,
			     int flags, void *key);
int woken_wake_function(struct wait_queue_entry *entry, unsigned int mode,
			int flags, void *key);
long wait_woken(struct wait_queue_entry *entry, unsigned int mode,
		long timeout);
void init_waitqueue_head(wait_queue_head_t *queue);
void add_wait_queue(wait_queue_head_t *queue, struct wait_queue_entry *entry);
void remove_wait_queue(wait_queue_head_t *queue,
		       struct wait_queue_entry *entry);
void prepare_to_wait(wait_queue_head_t *queue, struct wait_queue_entry *entry,
		     int state);
void finish_wait(wait_queue_head_t *queue, struct wait_queue_entry *entry);
bool wq_has_sleeper(wait_queue_head_t *queue);
void native_wake_up(wait_queue_head_t *queue, bool all);
#define wake_up(queue) native_wake_up(queue, false)
#define wake_up_all(queue) native_wake_up(queue, true)
#define wake_up_interruptible(queue) native_wake_up(queue, false)
#define wake_up_interruptible_all(queue) native_wake_up(queue, true)
bool native_signal_ends(int state);

/*
 * Waits for a condition. Returns 1 or more if it holds, 0 after a timeout,
 * -ERESTARTSYS after a signal.
 */
#define native_wait(queue, condition, state, timeout) ({ \
	long __left = (timeout); \
	bool __signal = false; \
	DEFINE_WAIT(__wait); \
	might_sleep(); \
	for (;;) { \
		__signal = native_signal_ends(state); \
		if (!__signal) \
			prepare_to_wait(&(queue), &__wait, state); \
		if (condition) { \
			__signal = false; \
			__left = __left ?: 1; \
			break; \
		} \
		if (__signal || !__left) \
			break; \
		__left = schedule_timeout(__left); \
	} \
	finish_wait(&(queue), &__wait); \
	__signal ? -ERESTARTSYS : __left; \
})
#define native_wait_forever(queue, condition, state) ({ \
	long __ret = native_wait(queue, condition, state, \
				 MAX_SCHEDULE_TIMEOUT); \
	__ret < 0 ? (int)__ret : 0; \
})
#define wait_event(queue, condition) \
	((void)native_wait_forever(queue, condition, TASK_UNINTERRUPTIBLE))
#define wait_event_idle(queue, condition) wait_event(queue, condition)
#define wait_event_state(queue, condition, state) \
	native_wait_forever(queue, condition, state)
#define wait_event_interruptible(queue, condition) \
	native_wait_forever(queue, condition, TASK_INTERRUPTIBLE)
#define wait_event_timeout(queue, condition, timeout) \
	native_wait(queue, condition, TASK_UNINTERRUPTIBLE, timeout)
#define wait_event_killable_timeout(queue, condition, timeout) \
	native_wait(queue, condition, TASK_KILLABLE, timeout)

struct completion {
	unsigned int done;
	wait_queue_head_t wait;
};

void init_completion(struct completion *done);
void complete(struct completion *done);
void complete_all(struct completion *done);
bool completion_done(struct completion *done);
void wait_for_completion(struct completion *done);
int wait_for_completion_state(struct completion *done, unsigned int state);
#define wait_for_completion_killable(done) \
	wait_for_completion_state(done, TASK_KILLABLE)
#define DECLARE_COMPLETION_ONSTACK(name) \
	struct completion name = ({ init_completion(&name); name; })
unsigned long wait_for_completion_timeout(struct completion *done,
					  unsigned long timeout);

/* ---- timers, and work that runs later ---- */

/**
 * struct native_timer - a timer
 * @link: in the list of the timers that are set, earliest first
 * @expires: time of its expiry, in jiffies
 * @function: called as in an interrupt
 */
struct native_timer {
	struct list_head link;
	unsigned long expires;
	void (*function)(struct native_timer *timer);
};

struct work_struct;
typedef void (*work_func_t)(struct work_struct *work);

/**
 * struct work_struct - work for a worker
 * @func: function to call
 * @pending: it is queued, or its timer is set
 * @canceling: it is being cancelled, so it cannot be queued
 * @queued: it is queued and can run at once
 * @asker: the task whose planned failures it uses, or NULL
 * @wq: the ordered queue that it belongs to, or NULL
 * @link: in the queue
 */
struct work_struct {
	work_func_t func;
	bool pending;
	int canceling;
	bool queued;
	struct task_struct *asker;
	struct workqueue_struct *wq;
	struct list_head link;
};

struct delayed_work {
	struct work_struct work;
	struct native_timer timer;
};

struct workqueue_struct;
#define system_wq ((struct workqueue_struct *)NULL)
#define system_unbound_wq system_wq
void native_work_init(struct work_struct *work, work_func_t func);
void native_delayed_work_init(struct delayed_work *work, work_func_t func);
#define INIT_WORK(work, func) native_work_init(work, func)
#define INIT_DELAYED_WORK(work, func) native_delayed_work_init(work, func)
#define INIT_DEFERRABLE_WORK(work, func) native_delayed_work_init(work, func)
#define to_delayed_work(w) container_of(w, struct delayed_work, work)
struct workqueue_struct *alloc_ordered_workqueue(const char *name,
						 unsigned int flags);
void flush_workqueue(struct workqueue_struct *wq);
void destroy_workqueue(struct workqueue_struct *wq);
bool queue_work(struct workqueue_struct *wq, struct work_struct *work);
bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *work,
			unsigned long delay);
bool mod_delayed_work(struct workqueue_struct *wq, struct delayed_work *work,
		      unsigned long delay);
bool flush_work(struct work_struct *work);
struct work_struct *current_work(void);
bool cancel_work(struct work_struct *work);
bool flush_delayed_work(struct delayed_work *work);
bool cancel_delayed_work(struct delayed_work *work);
bool cancel_delayed_work_sync(struct delayed_work *work);
void native_settle_work(void);
bool delayed_work_pending(struct delayed_work *work);
#define work_pending(work) READ_ONCE((work)->pending)

#endif /* _NATIVE_TASK_H */
