// SPDX-License-Identifier: GPL-2.0
/*
 * These tests show that the cache needs no lock for some work. They have one
 * thread, so a lock for which the thread would wait is held by the thread
 * itself. Linked with realloc(), pthread_mutex_lock() and syscall()
 * intercepted.
 */
#include "cache_mock.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>

static struct flexmem_cache *cache;

/* Set while the thread must not wait for a lock. */
static bool must_not_wait;

/* Called when the library enlarges an array or a text, or NULL. */
static void (*on_growth)(void);

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size)
{
	void (*now)(void) = on_growth;

	if (now) {
		on_growth = NULL;
		now();
		on_growth = now;
	}
	return __real_realloc(memory, size);
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int err;

	if (!must_not_wait)
		return __real_pthread_mutex_lock(mutex);
	err = pthread_mutex_trylock(mutex);
	if (err == EBUSY)
		fail_msg("a mutex is held");
	return err;
}

/* The lock of a lane is a futex. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	va_list arguments;
	long a[6];
	int i;

	/* A system call has at most six arguments. */
	va_start(arguments, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	if (must_not_wait && number == SYS_futex &&
	    (int)a[1] == FUTEX_WAIT_PRIVATE)
		fail_msg("the lock of a lane is held");
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static unsigned int growths;

/* A hit locks one lane. A new segment locks the whole cache. */
static void use_cache(void)
{
	give(cache, take(cache, 1000, 0));
	take(cache, 30 * MIB, 7);
	growths++;
}

/* While the text of a snapshot is written, other threads may allocate. */
static void text_of_a_snapshot(void **state)
{
	char *text;
	int i;

	(void)state;
	cache = mock_cache("");
	assert_int_equal(flexmem_cache_set_history(cache, 100), 0);
	for (i = 0; i < 100; i++)
		take(cache, 1000, 0);
	must_not_wait = true;
	on_growth = use_cache;
	assert_int_equal(flexmem_cache_snapshot(cache,
						FLEXMEM_CACHE_EVERY_POOL, &text,
						NULL), 0);
	on_growth = NULL;
	must_not_wait = false;
	assert_true(growths > 2);
	/* The snapshot is of the moment at which it was asked for. */
	assert_null(strstr(text, "\"total_size\":31457280"));
	flexmem_cache_text_free(text);
	assert_int_equal(figures(cache).allocation[0].current, 100 + growths);
	flexmem_cache_destroy(cache);
}

static void *token;
static uint64_t offset;

/* Called while the whole cache is locked. */
static void ask_for_address(void)
{
	struct flexmem_virtual_address address;

	must_not_wait = true;
	assert_int_equal(flexmem_cache_address(cache, token, &address), 0);
	must_not_wait = false;
	offset = address.offset;
}

static void address_of_an_allocation(void **state)
{
	(void)state;
	cache = mock_cache("");
	take(cache, 1000, 0);
	token = take(cache, 1000, 0);
	mock.on_alloc = ask_for_address;
	take(cache, 30 * MIB, 0);
	assert_int_equal(offset, place(cache, token));
	assert_int_not_equal(offset, 0);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(text_of_a_snapshot),
		CACHE_TEST(address_of_an_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
