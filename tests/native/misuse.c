// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the shim itself: it must report wrong use of the kernel's functions,
 * and accept right use. Each case is a process of its own, which must end as
 * the table says. Prints TAP.
 */
#include "shim/internal.h"

#include <sys/wait.h>
#include <unistd.h>

static spinlock_t spin;
static struct mutex mutex;
static wait_queue_head_t queue;
static int plain;
static u64 *shared;

static int take_and_hold(void *unused)
{
	mutex_lock(&mutex);
	while (!kthread_should_stop())
		schedule();
	mutex_unlock(&mutex);
	return 0;
}

static void sleeps_with_spinlock(void)
{
	spin_lock(&spin);
	msleep(1);
}

static void locks_mutex_with_spinlock(void)
{
	spin_lock(&spin);
	mutex_lock(&mutex);
}

static void allocates_with_spinlock(void)
{
	spin_lock(&spin);
	kfree(kmalloc(8, GFP_KERNEL));
}

static void allocates_atomically(void)
{
	spin_lock(&spin);
	kfree(kmalloc(8, GFP_ATOMIC));
	spin_unlock(&spin);
}

static void take_spin(struct irq_work *irq)
{
	spin_lock(&spin);
	spin_unlock(&spin);
}

static void interrupt_takes_lock(void)
{
	static struct irq_work irq;

	init_irq_work(&irq, take_spin);
	irq_work_queue(&irq);
	irq_work_sync(&irq);
}

static void locks_with_interrupts_enabled(void)
{
	interrupt_takes_lock();
	spin_lock(&spin);
}

static void locks_with_interrupts_disabled(void)
{
	unsigned long flags;

	interrupt_takes_lock();
	spin_lock_irqsave(&spin, flags);
	spin_unlock_irqrestore(&spin, flags);
}

static void sleep_in_interrupt(struct irq_work *irq)
{
	msleep(1);
}

static void sleeps_in_interrupt(void)
{
	static struct irq_work irq;

	init_irq_work(&irq, sleep_in_interrupt);
	irq_work_queue(&irq);
	irq_work_sync(&irq);
}

static void sleeps_in_read_section(void)
{
	rcu_read_lock();
	cond_resched();
}

static void touches_user_with_mutex(void)
{
	u32 n;

	mutex_lock(&mutex);
	if (get_user(n, (u32 *)native_user()))
		plain++;
}

static void unlocks_what_is_free(void)
{
	spin_unlock(&spin);
}

static void locks_twice(void)
{
	spin_lock(&spin);
	spin_lock(&spin);
}

static void locks_mutex_twice(void)
{
	mutex_lock(&mutex);
	mutex_lock(&mutex);
}

static void unlocks_anothers_mutex(void)
{
	kthread_run(take_and_hold, NULL, "holder");
	msleep(10);
	mutex_unlock(&mutex);
}

static void relies_on_lock(void)
{
	lockdep_assert_held(&spin);
}

static void dereferences_outside(void)
{
	plain += *rcu_dereference(shared);
}

static int leave_with_lock(void *unused)
{
	spin_lock(&spin);
	return 0;
}

static void ends_with_lock(void)
{
	kthread_run(leave_with_lock, NULL, "leaver");
	msleep(10);
}

static void leaves_object_in_cache(void)
{
	struct kmem_cache *cache = kmem_cache_create("some", 8, 0, 0, NULL);

	if (kmem_cache_alloc(cache, GFP_KERNEL))
		kmem_cache_destroy(cache);
}

static void puts_once_too_often(void)
{
	refcount_t refs;

	refcount_set(&refs, 1);
	refcount_dec_and_test(&refs);
	refcount_dec_and_test(&refs);
}

static void waits_for_ever(void)
{
	wait_event(queue, plain);
}

static void locks_in_a_circle(void)
{
	kthread_run(take_and_hold, NULL, "holder");
	msleep(10);
	mutex_lock(&mutex);
}

struct object {
	u64 value;
	struct rcu_head rcu;
};

static struct object *object;

static void make_object(void)
{
	object = kzalloc(sizeof(*object), GFP_KERNEL);
}

static void keeps_what_it_read(void)
{
	struct object *seen;

	make_object();
	rcu_read_lock();
	seen = rcu_dereference(object);
	rcu_assign_pointer(object, NULL);
	kfree_rcu(seen, rcu);
	rcu_read_unlock();
	plain = READ_ONCE(seen->value);
}

static void reads_until_it_leaves(void)
{
	struct object *seen;

	make_object();
	rcu_read_lock();
	seen = rcu_dereference(object);
	rcu_assign_pointer(object, NULL);
	kfree_rcu(seen, rcu);
	plain = READ_ONCE(seen->value);
	rcu_read_unlock();
	WARN_ON(native_live());
}

/*
 * Passes an object to RCU before the pointer to the object is cleared. Both
 * happen under one lock, as in the XArray.
 */
static int gives_up(void *done)
{
	struct object *mine = object;

	spin_lock(&spin);
	kfree_rcu(mine, rcu);
	complete(done);
	while (!READ_ONCE(plain))
		native_point();
	rcu_assign_pointer(object, NULL);
	spin_unlock(&spin);
	complete(done);
	return 0;
}

static void reads_what_is_given_up(void)
{
	struct completion done;
	struct object *seen;

	make_object();
	init_completion(&done);
	kthread_run(gives_up, &done, "gives up");
	wait_for_completion(&done);
	rcu_read_lock();
	seen = rcu_dereference(object);
	WRITE_ONCE(plain, 1);
	spin_lock(&spin);
	WARN_ON(READ_ONCE(seen->value));
	spin_unlock(&spin);
	rcu_read_unlock();
	wait_for_completion(&done);
	WARN_ON(native_live());
}

/* A register or the stack can hold the address of the last object. */
static void leaks(void)
{
	int i;

	for (i = 0; i < 8; i++)
		make_object();
	object = NULL;
}

static int count_plain(void *done)
{
	int i;

	for (i = 0; i < 1000; i++)
		plain++;
	complete(done);
	return 0;
}

static int count_locked(void *done)
{
	int i;

	for (i = 0; i < 1000; i++) {
		mutex_lock(&mutex);
		spin_lock(&spin);
		plain++;
		spin_unlock(&spin);
		mutex_unlock(&mutex);
	}
	complete(done);
	return 0;
}

static void run_two(int (*function)(void *done))
{
	struct completion done;

	init_completion(&done);
	kthread_run(function, &done, "first");
	kthread_run(function, &done, "second");
	wait_for_completion(&done);
	wait_for_completion(&done);
}

static void counts_without_lock(void)
{
	run_two(count_plain);
}

static void counts_with_locks(void)
{
	run_two(count_locked);
	WARN_ON(plain != 2000);
}

static void time_flies(void)
{
	unsigned long begin = jiffies;

	msleep(3600 * 1000);
	WARN_ON(jiffies - begin < 3600 * HZ || jiffies - begin > 3601 * HZ);
	WARN_ON(wait_event_timeout(queue, plain, 10 * HZ));
}

static void late(struct work_struct *work)
{
	WRITE_ONCE(plain, READ_ONCE(plain) + 1);
}

static void work_is_done_later(void)
{
	struct delayed_work work;

	INIT_DELAYED_WORK(&work, late);
	queue_delayed_work(system_wq, &work, HZ);
	WARN_ON(!delayed_work_pending(&work));
	msleep(900);
	WARN_ON(READ_ONCE(plain));
	msleep(200);
	WARN_ON(READ_ONCE(plain) != 1);
	queue_delayed_work(system_wq, &work, HZ);
	cancel_delayed_work_sync(&work);
	msleep(2000);
	WARN_ON(READ_ONCE(plain) != 1);
}

static void fails_the_third(void)
{
	current->fail_at = 3;
	kfree(kmalloc(1, GFP_KERNEL));
	WARN_ON(clear_user(native_user(), 8));
	WARN_ON(kmalloc(1, GFP_KERNEL));
	WARN_ON(current->failed != 1 + NATIVE_ALLOC || current->points != 3);
}

static void user_memory_has_an_end(void)
{
	u8 *end = native_user() + NATIVE_USER_SIZE - PAGE_SIZE;
	u64 n = 0;

	WARN_ON(copy_to_user(end - 8, &n, 8));
	WARN_ON(copy_to_user(end - 4, &n, 8) != 4);
	WARN_ON(!copy_to_user(NULL, &n, 8));
	WARN_ON(!copy_from_user(&n, (void *)~0ul - 3, 8));
}

/**
 * struct misuse - a case
 * @run: the case
 * @name: name of the case
 * @says: the expected report, or NULL
 * @only: the kind of build that can find the misuse; NULL: every build
 */
static const struct misuse {
	void (*run)(void);
	const char *name;
	const char *says;
	const char *only;
} cases[] = {
#define CASE(function, says, only) { function, #function, says, only }
	CASE(sleeps_with_spinlock, "may sleep", NULL),
	CASE(locks_mutex_with_spinlock, "may sleep", NULL),
	CASE(allocates_with_spinlock, "may sleep", NULL),
	CASE(allocates_atomically, NULL, NULL),
	CASE(locks_with_interrupts_enabled, "with interrupts enabled", NULL),
	CASE(locks_with_interrupts_disabled, NULL, NULL),
	CASE(sleeps_in_interrupt, "may sleep", NULL),
	CASE(sleeps_in_read_section, "may sleep", NULL),
	CASE(touches_user_with_mutex, "user memory is touched with", NULL),
	CASE(unlocks_what_is_free, "not held", NULL),
	CASE(locks_twice, "held already", NULL),
	CASE(locks_mutex_twice, "held already", NULL),
	CASE(unlocks_anothers_mutex, "not held", NULL),
	CASE(relies_on_lock, "not held", NULL),
	CASE(dereferences_outside, "suspicious rcu_dereference", NULL),
	CASE(ends_with_lock, "ends with locks held", NULL),
	CASE(leaves_object_in_cache, "objects left", NULL),
	CASE(puts_once_too_often, "refcount", NULL),
	CASE(waits_for_ever, "deadlock", NULL),
	CASE(locks_in_a_circle, "deadlock", NULL),
	CASE(keeps_what_it_read, "heap-use-after-free", "asan"),
	CASE(keeps_what_it_read, "heap-use-after-free", "tsan"),
	CASE(reads_until_it_leaves, NULL, NULL),
	CASE(reads_what_is_given_up, NULL, NULL),
	CASE(leaks, "LeakSanitizer", "asan"),
	CASE(counts_without_lock, "data race", "tsan"),
	CASE(counts_with_locks, NULL, NULL),
	CASE(time_flies, NULL, NULL),
	CASE(work_is_done_later, NULL, NULL),
	CASE(fails_the_third, NULL, NULL),
	CASE(user_memory_has_an_end, NULL, NULL),
};

#ifdef NATIVE_TSAN
#define KIND "tsan"
#else
#define KIND "asan"
#endif

static __noreturn void child(const struct misuse *misuse, int output)
{
	dup2(output, 1);
	dup2(output, 2);
	native_shim_init();
	mutex_init(&mutex);
	init_waitqueue_head(&queue);
	misuse->run();
	exit(0);
}

/* Runs one case and returns its output. */
static char *run(const struct misuse *misuse, int *status)
{
	static char text[1 << 16];
	int pipes[2];
	size_t n = 0;
	ssize_t more;
	pid_t pid;

	fflush(stdout);
	if (pipe(pipes))
		abort();
	pid = fork();
	if (pid < 0)
		abort();
	if (!pid)
		child(misuse, pipes[1]);
	close(pipes[1]);
	while ((more = read(pipes[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += more;
	text[n] = '\0';
	close(pipes[0]);
	waitpid(pid, status, 0);
	return text;
}

int main(void)
{
	unsigned int i, count = 0, failures = 0;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct misuse *misuse = &cases[i];
		int status;
		char *text;
		bool good;

		if (misuse->only && strcmp(misuse->only, KIND))
			continue;
		text = run(misuse, &status);
		good = misuse->says ? status && strstr(text, misuse->says) :
				      !status;
		printf("%s %u - shim.%s\n", good ? "ok" : "not ok", ++count,
		       misuse->name);
		if (!good)
			printf("# status %#x: %.600s\n", status, text);
		failures += !good;
	}
	printf("1..%u\n", count);
	return failures;
}
