// SPDX-License-Identifier: GPL-2.0
/* Tasks: threads, sleep, users and signals. */
#include "internal.h"

/* States of &task_struct.word. */
#define RUNS 0
#define LEAVE 1
#define SLEEPS 2

__thread struct task_struct *native_current;
struct list_head native_tasks = LIST_HEAD_INIT(native_tasks);
unsigned int native_tasks_lock;
struct user_namespace init_user_ns;

/* The number of tasks that do not sleep. Time advances when it is 0. */
static int running;
static int last_pid;
/* As in the kernel, jiffies overflow 32 bits five minutes after the start. */
static unsigned long now = (unsigned int)(-300 * HZ);

unsigned long native_jiffies(void)
{
	return __atomic_load_n(&now, RELAXED);
}

/* Only native_timers_next() calls this function. */
void native_set_jiffies(unsigned long jiffy);
void native_set_jiffies(unsigned long jiffy)
{
	__atomic_store_n(&now, jiffy, RELAXED);
}

void native_show_tasks(void)
{
	struct task_struct *task;

	list_for_each_entry(task, &native_tasks, link)
		fprintf(stderr, "task %d %s: %s%s%s, %d locks\n",
			task->pid->nr, task->comm,
			task->word == SLEEPS ? "sleeps" : "runs",
			task->blocked ? ", waits" : "",
			task->killed ? ", killed" : "", task->locks);
}

/* Advances time to the next event, because the last running task sleeps now. */
static void let_time_pass(struct task_struct *task)
{
	do {
		__atomic_fetch_add(&running, 1, __ATOMIC_SEQ_CST);
		if (!native_timers_next()) {
			fprintf(stderr, "deadlock: all sleep for ever\n");
			native_show_tasks();
			native_bug(__FILE__, __LINE__, "deadlock");
		}
	} while (!__atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST) &&
		 (!task || __atomic_load_n(&task->word, RELAXED) == SLEEPS));
}

static void stop_running(struct task_struct *task)
{
	if (!__atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST))
		let_time_pass(task);
}

/*
 * Sleeps until native_unpark(). Returns at once if native_unpark() was called
 * before.
 */
void native_park(void)
{
	struct task_struct *task = current;
	unsigned int seen = RUNS;

	native_point();
	if (__atomic_compare_exchange_n(&task->word, &seen, SLEEPS, false,
					__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		stop_running(task);
		while (__atomic_load_n(&task->word, __ATOMIC_ACQUIRE) == SLEEPS)
			native_wait_word(&task->word, SLEEPS);
		return;
	}
	__atomic_store_n(&task->word, RUNS, __ATOMIC_SEQ_CST);
}

void native_unpark(struct task_struct *task)
{
	unsigned int seen = __atomic_load_n(&task->word, __ATOMIC_SEQ_CST);
	bool asleep;

	do {
		if (seen == LEAVE)
			return;
		/*
		 * Counts the task as running before it runs, so that time does
		 * not advance.
		 */
		asleep = seen == SLEEPS;
		if (asleep)
			__atomic_fetch_add(&running, 1, __ATOMIC_SEQ_CST);
		if (__atomic_compare_exchange_n(&task->word, &seen,
						asleep ? RUNS : LEAVE, false,
						__ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST))
			break;
		/*
		 * Another task woke @task first, so @task was counted twice.
		 * The count stays above 0, because the calling task runs.
		 */
		if (asleep)
			__atomic_fetch_sub(&running, 1, __ATOMIC_SEQ_CST);
	} while (true);
	if (asleep)
		native_wake_word(&task->word);
}

/* Waits until all other tasks sleep, without advancing time. */
void native_quiesce(void)
{
	while (__atomic_load_n(&running, __ATOMIC_SEQ_CST) != 1)
		sched_yield_turn();
}

/* ---- tasks ---- */

static struct task_struct *task_create(const char *comm)
{
	struct task_struct *task = calloc(1, sizeof(*task));

	if (!task)
		abort();
	task->pid = calloc(1, sizeof(*task->pid));
	if (!task->pid)
		abort();
	refcount_set(&task->pid->count, 1);
	task->pid->has_task = true;
	task->pid->nr = __atomic_add_fetch(&last_pid, 1, RELAXED);
	refcount_set(&task->refs, 1);
	strscpy(task->comm, comm, sizeof(task->comm));
	task->cred.admin = true;
	task->cgroup = native_cgroup_root;
	return task;
}

struct task_struct *get_task_struct(struct task_struct *task)
{
	refcount_inc(&task->refs);
	return task;
}

void native_task_put(struct task_struct *task)
{
	if (!refcount_dec_and_test(&task->refs))
		return;
	put_pid(task->pid);
	cgroup_put(task->cgroup);
	native_user_part_free(task->user);
	free(task);
}

struct pid *get_pid(struct pid *pid)
{
	if (pid)
		refcount_inc(&pid->count);
	return pid;
}

void put_pid(struct pid *pid)
{
	if (!pid)
		return;
	/* TSan sees neither the shim's counter nor free(). */
	os_release(&pid->count);
	if (!refcount_dec_and_test(&pid->count))
		return;
	os_acquire(&pid->count);
	free(pid);
}

pid_t pid_vnr(struct pid *pid)
{
	return pid ? pid->nr : 0;
}

static void link_task(struct task_struct *task)
{
	raw_lock(&native_tasks_lock);
	list_add_tail(&task->link, &native_tasks);
	raw_unlock(&native_tasks_lock);
}

/* Held while a task ends, and by callers that may still signal the task. */
static unsigned int stop_lock;

static void run_task(void *data)
{
	struct task_struct *task = data;

	current = task;
	sched_begin(task);
	task->result = task->function(task->data);
	if (task->locks || task->atomic || task->rcu)
		shim_bug("%s ends with locks held", task->comm);
	raw_lock(&native_tasks_lock);
	list_del(&task->link);
	raw_unlock(&native_tasks_lock);
	__atomic_store_n(&task->pid->has_task, false, RELAXED);
	os_release(task);
	raw_lock(&stop_lock);
	task->exited = true;
	if (task->stopper)
		native_unpark(task->stopper);
	raw_unlock(&stop_lock);
	stop_running(NULL);
	current = NULL;
	native_task_put(task);
	sched_end();
}

struct task_struct *native_kthread_create(int (*function)(void *data),
					  void *data, const char *name)
{
	struct task_struct *task = task_create(name);

	task->function = function;
	task->data = data;
	return task;
}

void native_kthread_start(struct task_struct *task)
{
	__atomic_fetch_add(&running, 1, __ATOMIC_SEQ_CST);
	sched_add(task);
	link_task(task);
	os_thread(run_task, task);
}

struct task_struct *native_kthread_run(int (*function)(void *data), void *data,
				       const char *format, ...)
{
	struct task_struct *task;
	char name[24];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	task = native_kthread_create(function, data, name);
	native_kthread_start(task);
	return task;
}

bool kthread_should_stop(void)
{
	return __atomic_load_n(&current->should_stop, __ATOMIC_SEQ_CST);
}

int kthread_stop(struct task_struct *task)
{
	int result;

	get_task_struct(task);
	__atomic_store_n(&task->should_stop, true, __ATOMIC_SEQ_CST);
	native_unpark(task);
	raw_lock(&stop_lock);
	task->stopper = current;
	while (!task->exited) {
		raw_unlock(&stop_lock);
		native_park();
		raw_lock(&stop_lock);
	}
	raw_unlock(&stop_lock);
	os_acquire(task);
	result = task->result;
	native_task_put(task);
	return result;
}

/**
 * native_shim_init - make the calling thread the first task
 */
void native_shim_init(void)
{
	current = task_create("main");
	running = 1;
	link_task(current);
}

/* ---- signals ---- */

bool fatal_signal_pending(struct task_struct *task)
{
	return __atomic_load_n(&task->killed, RELAXED);
}

bool signal_pending(struct task_struct *task)
{
	return fatal_signal_pending(task) ||
	       __atomic_load_n(&task->interrupted, RELAXED);
}

int send_sig(int signal, struct task_struct *task, int privileged)
{
	__atomic_store_n(signal == SIGKILL ? &task->killed : &task->interrupted,
			 true, RELAXED);
	native_unpark(task);
	return 0;
}

void native_revive(void)
{
	__atomic_store_n(&current->killed, false, RELAXED);
	__atomic_store_n(&current->interrupted, false, RELAXED);
}

bool native_signal_ends(int state)
{
	if (state == TASK_KILLABLE)
		return fatal_signal_pending(current);
	return state == TASK_INTERRUPTIBLE && signal_pending(current);
}

/* ---- sleeping ---- */

void native_might_sleep(const char *what)
{
	if (current->atomic || current->rcu)
		shim_bug("%s() may sleep, but %d spinlocks are held and %d RCU read sections open",
			 what, current->atomic, current->rcu);
}

void schedule(void)
{
	might_sleep();
	native_park();
}

struct sleeper {
	struct native_timer timer;
	struct task_struct *task;
};

static void wake_sleeper(struct native_timer *timer)
{
	native_unpark(container_of(timer, struct sleeper, timer)->task);
}

long schedule_timeout(long timeout)
{
	unsigned long end = jiffies + timeout;
	struct sleeper sleeper = { .task = current };

	might_sleep();
	if (timeout == MAX_SCHEDULE_TIMEOUT) {
		native_park();
		return timeout;
	}
	/* The kernel prints a backtrace for a negative time-out. */
	WARN_ONCE(timeout < 0, "a time-out of %ld jiffies\n",
		  timeout);
	if (timeout <= 0) {
		native_point();
		return 0;
	}
	INIT_LIST_HEAD(&sleeper.timer.link);
	sleeper.timer.function = wake_sleeper;
	native_timer_set(&sleeper.timer, end);
	native_park();
	native_timer_del(&sleeper.timer);
	return time_before(jiffies, end) ? (long)(end - jiffies) : 0;
}

int wake_up_process(struct task_struct *task)
{
	native_unpark(task);
	return 1;
}

void msleep(unsigned int ms)
{
	long left = msecs_to_jiffies(ms) + 1;

	while (left)
		left = schedule_timeout(left);
}

ktime_t ktime_get(void)
{
	return os_nanoseconds();
}

/* ---- users ---- */

bool capable(int capability)
{
	return current->cred.admin;
}

/* ---- failures ---- */

bool native_should_fail(enum native_fault fault)
{
	struct task_struct *task = current;

	native_point();
	if (!task)
		return false;
	if (task->asker)
		task = task->asker;
	task->points++;
	if (task->fail_again && task->failed == 1 + fault) {
		task->fail_again--;
		return true;
	}
	if (!task->fail_at || --task->fail_at)
		return false;
	task->failed = 1 + fault;
	return true;
}

/* Returns the task's own part of user memory, which memory.c simulates. */
void *native_user(void)
{
	if (!current->user)
		current->user = native_user_part();
	return current->user;
}
