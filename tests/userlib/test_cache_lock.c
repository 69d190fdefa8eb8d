// SPDX-License-Identifier: GPL-2.0
/* The lock of a lane, with and without membarrier(). TSan checks it, too. */
#include "test.h"
#include "cache/lock.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 50000

static struct fmlib_lock lock;
static unsigned long count;
static unsigned long sleepers;

/*
 * If set, membarrier() fails although the lock relies on it, as seccomp can
 * make it fail.
 */
static atomic_bool denied;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	va_list arguments;
	long a[6];
	int i;

	if (number == SYS_membarrier && atomic_load(&denied)) {
		errno = EPERM;
		return -1;
	}
	/*
	 * Always passes six arguments on, because a system call has at most
	 * six.
	 */
	va_start(arguments, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/*
 * Some threads sleep while they hold the lock, so waiting threads must be woken
 * up.
 */
static void *increment(void *argument)
{
	unsigned long first = (unsigned long)(uintptr_t)argument;
	unsigned long i;

	for (i = first; i < first + ROUNDS; i++) {
		fmlib_lock_take(&lock);
		count++;
		if (i % 1000 == 7) {
			sleepers++;
			usleep(100);
		}
		fmlib_lock_drop(&lock);
	}
	return NULL;
}

static void rounds_together(void)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	count = 0;
	sleepers = 0;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, increment,
						(void *)(i * ROUNDS)), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(count, THREADS * ROUNDS);
	assert_int_equal(sleepers, THREADS * ROUNDS / 1000);
	assert_int_equal(atomic_load(&lock.taken), 0);
	assert_int_equal(atomic_load(&lock.waiters), 0);
}

static void together(bool light)
{
	fmlib_lock_start();
	fmlib_lock_light = fmlib_lock_light && light;
	rounds_together();
}

static void one_at_a_time(void **state)
{
	(void)state;
	together(true);
}

static void where_there_is_no_membarrier(void **state)
{
	(void)state;
	together(false);
}

static void *wait_for_it(void *argument)
{
	fmlib_lock_take(&lock);
	*(int *)argument = 0;
	fmlib_lock_drop(&lock);
	return NULL;
}

/* A thread sleeps until the next unlock wakes it up. */
static void sleeps_until_the_lock_is_free(void **state)
{
	pthread_t thread;
	int got = -1;

	(void)state;
	fmlib_lock_start();
	fmlib_lock_take(&lock);
	assert_false(fmlib_lock_try(&lock));
	assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &got), 0);
	while (!atomic_load(&lock.waiters))
		usleep(100);
	usleep(1000);
	assert_int_equal(got, -1);
	fmlib_lock_drop(&lock);
	pthread_join(thread, NULL);
	assert_int_equal(got, 0);
}

/*
 * A waiter must get the lock even if the unlock has not seen it, and therefore
 * has not woken it up. This can happen if the system call for the barrier is
 * denied.
 */
static void waiter_that_no_unlock_wakes(void **state)
{
	pthread_t thread;
	int got = -1;

	(void)state;
	atomic_store(&denied, false);
	fmlib_lock_start();
	/* Without membarrier() there is nothing to test. */
	if (!fmlib_lock_light)
		skip();
	atomic_store(&denied, true);
	fmlib_lock_take(&lock);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &got), 0);
	while (!atomic_load(&lock.waiters))
		usleep(100);
	/*
	 * By now the thread most likely sleeps. If it does not, the test checks
	 * less, but does not fail.
	 */
	usleep(10000);
	atomic_store(&lock.taken, 0);
	pthread_join(thread, NULL);
	assert_int_equal(got, 0);
	atomic_store(&denied, false);
}

static void denied_later(void **state)
{
	(void)state;
	atomic_store(&denied, false);
	fmlib_lock_start();
	atomic_store(&denied, true);
	rounds_together();
	atomic_store(&denied, false);
}

/* A forked child can use the lock. */
static void in_a_child(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	fmlib_lock_start();
	fmlib_lock_take(&lock);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pthread_t thread;
		int got = -1;

		fmlib_lock_start();
		pthread_create(&thread, NULL, wait_for_it, &got);
		while (!atomic_load(&lock.waiters))
			usleep(100);
		fmlib_lock_drop(&lock);
		pthread_join(thread, NULL);
		_exit(got);
	}
	fmlib_lock_drop(&lock);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(where_there_is_no_membarrier),
		cmocka_unit_test(sleeps_until_the_lock_is_free),
		cmocka_unit_test(waiter_that_no_unlock_wakes),
		cmocka_unit_test(denied_later),
		cmocka_unit_test(in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
