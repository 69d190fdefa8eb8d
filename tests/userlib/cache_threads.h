/* SPDX-License-Identifier: GPL-2.0 */
/* A cache that all threads of a test share. */
#ifndef CACHE_THREADS_H
#define CACHE_THREADS_H

#include "cache_mock.h"

#include <pthread.h>
#include <stdatomic.h>

static struct flexmem_cache *cache;
static atomic_int failures;

static pthread_barrier_t barrier;

/* Counts a failure: cmocka's checks work in the main thread only. */
#define EXPECT(condition) \
	do { \
		if (!(condition)) \
			atomic_fetch_add(&failures, 1); \
	} while (0)

static inline void run(pthread_t *threads, int count,
		       void *(*work)(void *argument))
{
	int i;

	for (i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work,
						(void *)(uintptr_t)(i + 1)),
				 0);
}

#endif /* CACHE_THREADS_H */
