// SPDX-License-Identifier: GPL-2.0
/*
 * The parts of the host system that the shim uses: threads, futexes and memory.
 *
 * Like the whole shim this is built without TSan, so that TSan does not see the
 * synchronisation of the shim. TSan is told only what the kernel guarantees, so
 * that the shim hides no race of the driver.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef NATIVE_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#if defined(NATIVE_TSAN) || defined(NATIVE_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

#include "os.h"

/* Sleeps while @word is @value. May return earlier. */
void os_futex_wait(unsigned int *word, unsigned int value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

/* Wakes up all sleepers on the word. */
void os_futex_wake(unsigned int *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
}

void os_yield(void)
{
	sched_yield();
}

struct start {
	void (*function)(void *data);
	void *data;
};

static void *run_thread(void *data)
{
	struct start start = *(struct start *)data;

	free(data);
	start.function(start.data);
	return NULL;
}

/* Starts a detached thread. */
void os_thread(void (*function)(void *data), void *data)
{
	struct start *start = malloc(sizeof(*start));
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	if (!start)
		abort();
	*start = (struct start) { function, data };
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, run_thread, start);
	pthread_attr_destroy(&attr);
	if (err) {
		fprintf(stderr, "no thread: error %d\n", err);
		abort();
	}
}

/*
 * Pins the process to one processor. If tasks take turns, a switch on the same
 * processor is faster than a wake-up on another one. A failure only costs time.
 */
void os_one_processor(void)
{
	int processor = sched_getcpu();
	cpu_set_t only;

	CPU_ZERO(&only);
	if (processor < 0 || processor >= CPU_SETSIZE)
		return;
	CPU_SET(processor, &only);
	sched_setaffinity(0, sizeof(only), &only);
}

void *os_reserve(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

unsigned long long os_nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* Prints a backtrace on stderr. */
void os_trace(void)
{
#if defined(NATIVE_TSAN) || defined(NATIVE_ASAN)
	__sanitizer_print_stack_trace();
#endif
}

/* Sleeps forever. */
void os_pause(void)
{
	pause();
}

/*
 * Ends the process at once, because other tasks may still run. Under libFuzzer
 * the process aborts, so that libFuzzer keeps the input.
 */
void os_exit(int status)
{
	fflush(NULL);
#ifdef NATIVE_FUZZER
	abort();
#endif
	_exit(status);
}

#ifdef NATIVE_TSAN
/*
 * Hides a harmless race in code of the kernel: readers discard values that they
 * have read too early.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:lib/xarray.c\n";
}
#endif

void os_locked(void *lock, bool read, bool tried)
{
#ifdef NATIVE_TSAN
	unsigned int flags = (read ? __tsan_mutex_read_lock : 0) |
			     (tried ? __tsan_mutex_try_lock : 0) |
			     __tsan_mutex_linker_init;

	__tsan_mutex_pre_lock(lock, flags);
	__tsan_mutex_post_lock(lock, flags, 1);
#else
	(void)lock;
	(void)read;
	(void)tried;
#endif
}

void os_unlocking(void *lock, bool read)
{
#ifdef NATIVE_TSAN
	__tsan_mutex_pre_unlock(lock, read ? __tsan_mutex_read_lock : 0);
	__tsan_mutex_post_unlock(lock, read ? __tsan_mutex_read_lock : 0);
#else
	(void)lock;
	(void)read;
#endif
}

void os_acquire(void *address)
{
#ifdef NATIVE_TSAN
	__tsan_acquire(address);
#else
	(void)address;
#endif
}

void os_release(void *address)
{
#ifdef NATIVE_TSAN
	__tsan_release(address);
#else
	(void)address;
#endif
}
