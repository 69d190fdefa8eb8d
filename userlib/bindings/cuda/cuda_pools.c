// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Private pools, by the numbers that PyTorch gives them. */
#include "cuda.h"

#include <errno.h>
#include <stdlib.h>

struct fmcuda_pool {
	struct fmcuda_pool *next;
	struct fmcuda_device *device;
	uint64_t major;
	uint64_t minor;
	/* The cache's number. */
	uint64_t pool;
	/* A pool that is released while it is begun stays in the list. */
	unsigned int holds;
	bool begun;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fmcuda_pool *pools;

/* All callers hold the lock. */
static struct fmcuda_pool **find(const struct fmcuda_device *device,
				 uint64_t major, uint64_t minor)
{
	struct fmcuda_pool **at = &pools;

	while (*at && ((*at)->device != device || (*at)->major != major ||
		       (*at)->minor != minor))
		at = &(*at)->next;
	return at;
}

static void drop(struct fmcuda_pool **at)
{
	struct fmcuda_pool *pool = *at;

	if (pool->holds || pool->begun)
		return;
	*at = pool->next;
	free(pool);
}

/* Makes a pool, or holds it once more. */
static int hold(struct fmcuda_device *device, uint64_t major, uint64_t minor,
		struct fmcuda_pool **at)
{
	struct fmcuda_pool *pool = *at;
	int err;

	if (pool && pool->holds) {
		err = flexmem_cache_pool_hold(device->cache, pool->pool);
	} else if (pool) {
		/* Released, but not ended. */
		err = -EEXIST;
	} else {
		pool = calloc(1, sizeof(*pool));
		if (!pool)
			return -ENOMEM;
		pool->device = device;
		pool->major = major;
		pool->minor = minor;
		err = flexmem_cache_pool_create(device->cache, &pool->pool);
		if (err) {
			free(pool);
			return err;
		}
		*at = pool;
	}
	if (!err)
		pool->holds++;
	return err;
}

static int release(struct fmcuda_pool **at)
{
	int err = flexmem_cache_pool_release((*at)->device->cache,
					     (*at)->pool);

	if (!err) {
		(*at)->holds--;
		drop(at);
	}
	return err;
}

static int begin(struct fmcuda_device *device, struct fmcuda_pool *pool,
		 flexmem_cache_filter_fn filter, void *user)
{
	int err;

	err = flexmem_cache_pool_begin(device->cache, pool->pool, filter, user);
	if (err)
		return err;
	err = flexmem_cache_pool_capture(device->cache, pool->pool);
	if (err) {
		flexmem_cache_pool_end(device->cache, pool->pool);
		return err;
	}
	pool->begun = true;
	atomic_fetch_add(&device->captures, 1);
	return 0;
}

int flexmem_cuda_pool_begin(int number, uint64_t major, uint64_t minor,
			    flexmem_cache_filter_fn filter, void *user)
{
	struct fmcuda_device *device;
	struct fmcuda_pool **at;
	int err = fmcuda_device(number, &device);

	if (err)
		return err;
	pthread_mutex_lock(&lock);
	at = find(device, major, minor);
	err = hold(device, major, minor, at);
	if (!err) {
		err = begin(device, *at, filter, user);
		if (err)
			release(at);
	}
	pthread_mutex_unlock(&lock);
	return err ? fmcuda_fail(err, "cannot begin the pool") : 0;
}

int flexmem_cuda_pool_end(int number, uint64_t major, uint64_t minor)
{
	struct fmcuda_device *device;
	struct fmcuda_pool **at;
	int err = fmcuda_device(number, &device);

	if (err)
		return err;
	pthread_mutex_lock(&lock);
	at = find(device, major, minor);
	err = -ENOENT;
	if (*at && (*at)->begun) {
		atomic_fetch_sub(&device->captures, 1);
		err = flexmem_cache_pool_end(device->cache, (*at)->pool);
		(*at)->begun = false;
		drop(at);
	}
	pthread_mutex_unlock(&lock);
	return err ? fmcuda_fail(err, "the pool has not begun") : 0;
}

int flexmem_cuda_pool_release(int number, uint64_t major, uint64_t minor)
{
	struct fmcuda_device *device;
	struct fmcuda_pool **at;
	int err = fmcuda_device(number, &device);

	if (err)
		return err;
	pthread_mutex_lock(&lock);
	at = find(device, major, minor);
	err = *at && (*at)->holds ? release(at) : -ENOENT;
	pthread_mutex_unlock(&lock);
	return err ? fmcuda_fail(err, "no such pool") : 0;
}
