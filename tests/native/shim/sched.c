// SPDX-License-Identifier: GPL-2.0
/*
 * How tasks take turns.
 *
 * In thread mode the host system runs tasks as it likes. In scheduled mode one
 * task runs at a time, and another task may follow only at certain points:
 * where the task takes or releases a lock, waits, touches user memory, and so
 * on. A seed decides which task is next, in one of two ways: at random at each
 * point, or by priorities that change only at a few points (probabilistic
 * concurrency testing: a bug that needs d decisions is found with a probability
 * of at least 1 / (tasks * points^(d-1))).
 */
#include "internal.h"

static bool scheduled;
static struct task_struct *turn;
static u64 random_state;
static unsigned int changes;
static unsigned long steps;
static unsigned long change_at[16];
static unsigned long lowest;
static unsigned long comes_at;
static struct task_struct *who_comes;

/* splitmix64: small, fast, and the same everywhere. */
static u64 next_random(void)
{
	u64 z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static bool is_ready(const struct task_struct *task)
{
	return !task->blocked;
}

/*
 * Chooses one of the ready tasks: a random one, or the one with the highest
 * priority.
 */
static struct task_struct *pick(void)
{
	struct task_struct *task, *best = NULL;
	unsigned int ready = 0;

	list_for_each_entry(task, &native_tasks, link) {
		if (!is_ready(task))
			continue;
		ready++;
		if (changes ? !best || task->rank > best->rank :
			      next_random() % ready == 0)
			best = task;
	}
	return best;
}

static void wait_for_turn(struct task_struct *task)
{
	while (!__atomic_load_n(&task->go, __ATOMIC_ACQUIRE))
		os_futex_wait(&task->go, 0);
	task->go = 0;
}

static void give_turn(struct task_struct *task)
{
	turn = task;
	__atomic_store_n(&task->go, 1, __ATOMIC_RELEASE);
	os_futex_wake(&task->go);
}

/* Lets the chosen task run, which may be the caller. */
static void switch_task(void)
{
	struct task_struct *next = pick();

	if (!next) {
		fprintf(stderr, "deadlock: no task can go on\n");
		native_show_tasks();
		native_bug(__FILE__, __LINE__, "deadlock");
	}
	if (next == current)
		return;
	give_turn(next);
	wait_for_turn(current);
}

/*
 * Gives the running task the lowest priority, if the random schedule changes
 * priorities at this step.
 */
static void change_rank(void)
{
	unsigned int i;

	for (i = 0; i < changes && i < ARRAY_SIZE(change_at); i++)
		if (change_at[i] == steps)
			current->rank = lowest--;
}

/*
 * Starts the task that the test has chosen for this point, before all others.
 */
static void let_in(void)
{
	struct task_struct *task = who_comes;

	comes_at = 0;
	native_kthread_start(task);
	task->rank = ULONG_MAX;
	give_turn(task);
	wait_for_turn(current);
}

/**
 * native_come_at - let a task begin at a later point
 * @points: number of points from now
 * @task: task from native_kthread_create()
 */
void native_come_at(unsigned long points, struct task_struct *task)
{
	who_comes = task;
	comes_at = steps + points;
}

/**
 * native_came - whether the task of native_come_at() has begun
 *
 * If the task has not begun, it will not begin any more.
 *
 * Return: true if it has begun.
 */
bool native_came(void)
{
	bool came = !comes_at;

	comes_at = 0;
	return came;
}

/**
 * native_point - a point at which another task may run
 */
void native_point(void)
{
	if (!scheduled || !current || turn != current)
		return;
	steps++;
	if (steps == comes_at)
		let_in();
	change_rank();
	/*
	 * A switch is slow, so at random only one point in four switches.
	 */
	if (changes || !(next_random() % 4))
		switch_task();
}

/*
 * If tasks run by priority, the caller's task gets the lowest priority, so that
 * all other tasks run first.
 */
void native_cond_resched(void)
{
	might_sleep();
	if (scheduled && current && changes)
		current->rank = lowest--;
	native_point();
}

/* Lets all other tasks run once before the caller goes on. */
void sched_yield_turn(void)
{
	if (!scheduled) {
		os_yield();
		return;
	}
	current->rank = lowest--;
	switch_task();
}

void native_wait_word(unsigned int *word, unsigned int value)
{
	if (!scheduled) {
		os_futex_wait(word, value);
		/* Tasks may have begun to take turns while this task slept. */
		if (scheduled)
			wait_for_turn(current);
		return;
	}
	/* Tasks began to take turns while this task was about to sleep. */
	if (turn != current) {
		wait_for_turn(current);
		return;
	}
	if (__atomic_load_n(word, RELAXED) != value)
		return;
	current->blocked = word;
	switch_task();
}

void native_wake_word(unsigned int *word)
{
	struct task_struct *task;

	if (!scheduled) {
		os_futex_wake(word);
		return;
	}
	list_for_each_entry(task, &native_tasks, link) {
		if (task->blocked != word)
			continue;
		task->blocked = NULL;
		/*
		 * The task may sleep on the futex if it began to wait before
		 * the scheduled mode.
		 */
		os_futex_wake(word);
	}
}

/*
 * Takes a lock of the shim itself. Tasks do not switch here, and TSan does not
 * see the lock.
 */
void raw_lock(unsigned int *word)
{
	unsigned int seen = 0;

	if (__atomic_compare_exchange_n(word, &seen, 1, false,
					__ATOMIC_ACQUIRE, RELAXED))
		return;
	while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE))
		native_wait_word(word, 2);
}

void raw_unlock(unsigned int *word)
{
	if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
		native_wake_word(word);
}

/* A new task gets a random priority. */
void sched_add(struct task_struct *task)
{
	task->rank = lowest + next_random() % (1ul << 20);
}

/* The thread of a new task waits for its first turn. */
void sched_begin(struct task_struct *task)
{
	if (scheduled)
		wait_for_turn(task);
}

/*
 * Called when the task has ended and left the list of tasks. Lets the next task
 * run.
 */
void sched_end(void)
{
	struct task_struct *next;

	if (!scheduled)
		return;
	next = pick();
	if (!next)
		native_bug(__FILE__, __LINE__, "deadlock");
	give_turn(next);
}

static void begin_turns(void)
{
	struct task_struct *task;

	native_quiesce();
	list_for_each_entry(task, &native_tasks, link) {
		task->go = 0;
		task->blocked = task == current ? NULL : &task->word;
	}
	turn = current;
	scheduled = true;
}

/**
 * native_start_schedule - begin scheduled mode: one task runs at a time
 * @seed: decides which task runs
 * @nr: how often priorities change; 0: choose at random at each point
 * @points: about how many points there will be
 *
 * Begins again if the mode is on already. The mode cannot be turned off.
 */
void native_start_schedule(u64 seed, unsigned int nr, unsigned long points)
{
	struct task_struct *task;
	unsigned int i;

	if (!scheduled)
		begin_turns();
	random_state = seed;
	changes = nr;
	steps = 0;
	lowest = 1ul << 20;
	for (i = 0; i < ARRAY_SIZE(change_at); i++)
		change_at[i] = 1 + next_random() % points;
	list_for_each_entry(task, &native_tasks, link)
		sched_add(task);
}

/* Points passed since native_start_schedule(). */
unsigned long native_schedule_steps(void)
{
	return steps;
}
