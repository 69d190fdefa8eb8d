// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The list of all caches of the process, for fork(): a fork waits until every
 * cache is consistent. A cache records how many forks there had been when it
 * was created. So a child that uses an inherited cache gets an error, not
 * memory of the parent.
 */
#include "cache.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct flexmem_cache *first;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int start_error;

static void unlock_all(void)
{
	struct flexmem_cache *cache;

	for (cache = first; cache; cache = cache->next_cache)
		fmlib_unlock_raw(cache);
	pthread_mutex_unlock(&registry);
}

static void before_fork(void)
{
	struct flexmem_cache *cache;

	pthread_mutex_lock(&registry);
	for (cache = first; cache; cache = cache->next_cache)
		fmlib_lock_raw(cache);
}

static void in_child(void)
{
	struct flexmem_cache *cache;

	atomic_fetch_add(&fmlib_generation, 1);
	for (cache = first; cache; cache = cache->next_cache)
		fmlib_helper_in_child(cache);
	fmlib_lock_start();
	unlock_all();
}

static void start(void)
{
	fmlib_lock_start();
	start_error = -pthread_atfork(before_fork, unlock_all, in_child);
}

int fmlib_registry_start(void)
{
	pthread_once(&once, start);
	return start_error;
}

void fmlib_registry_add(struct flexmem_cache *cache)
{
	pthread_mutex_lock(&registry);
	cache->next_cache = first;
	if (first)
		first->previous_cache = cache;
	first = cache;
	pthread_mutex_unlock(&registry);
}

void fmlib_registry_remove(struct flexmem_cache *cache)
{
	pthread_mutex_lock(&registry);
	if (cache->previous_cache)
		cache->previous_cache->next_cache = cache->next_cache;
	else
		first = cache->next_cache;
	if (cache->next_cache)
		cache->next_cache->previous_cache = cache->previous_cache;
	pthread_mutex_unlock(&registry);
}
