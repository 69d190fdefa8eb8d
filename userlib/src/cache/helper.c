// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The helper thread, which serves pressure when the framework has no loop that
 * does. It holds no lock while it waits, so fork() finds the cache consistent;
 * a child has the descriptor that would end the thread, but not the thread.
 */
#include "cache.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long it waits after an error that may pass. */
#define RETRY_MS 100

/* 0: something happened to the provider's descriptor; -ECANCELED: to end. */
static int wait_for_event(const struct flexmem_cache *cache)
{
	struct pollfd fds[] = {
		{ .fd = cache->helper_stop, .events = POLLIN },
		{ .events = POLLIN },
	};

	fds[1].fd = cache->provider.pressure_fd(cache->provider.user);
	if (fds[1].fd < 0)
		return fds[1].fd;
	while (poll(fds, 2, -1) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL))
		return -ENODEV;
	return fds[0].revents ? -ECANCELED : 0;
}

static int serve_next(struct flexmem_cache *cache)
{
	struct flexmem_pressure_event event;
	uint64_t released;
	int err = wait_for_event(cache);

	if (!err)
		err = fmlib_pressure_read(cache, &event);
	/* What the provider refuses has been logged. */
	if (!err)
		fmlib_pressure_answer(cache, &event, &released);
	return err;
}

/* Lets an error pass; without a pause it could keep a processor busy. */
static void pause_after_error(const struct flexmem_cache *cache)
{
	struct pollfd stop = { .fd = cache->helper_stop, .events = POLLIN };

	/* If this fails as well the next try only comes early. */
	poll(&stop, 1, RETRY_MS);
}

static void *serve(void *argument)
{
	struct flexmem_cache *cache = argument;
	int err;

	do {
		err = serve_next(cache);
		if (err == -ENOMEM || err == -EIO)
			pause_after_error(cache);
	} while (!err || err == -EAGAIN || err == -EINTR || err == -ENOMEM ||
		 err == -EIO);
	if (err != -ECANCELED)
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"pressure is not served any more: error %d",
				-err);
	atomic_store(&cache->helper_ended, true);
	return NULL;
}

/* With all signals blocked: they are for the program's own threads. */
static int create(struct flexmem_cache *cache)
{
	sigset_t before;
	sigset_t all;
	int err;

	atomic_store(&cache->helper_ended, false);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&cache->helper, NULL, serve, cache);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

/* Waits for the end of a helper that was told to end, or has ended. */
static void join(struct flexmem_cache *cache)
{
	int stop = cache->helper_stop;

	pthread_join(cache->helper, NULL);
	/*
	 * In this order: a child that is forked in between would close what has
	 * got the same number by then.
	 */
	cache->helper_runs = false;
	close(stop);
}

int flexmem_cache_start_helper(struct flexmem_cache *cache)
{
	int err = fmlib_cache_check(cache);
	int state;

	if (err)
		return err;
	if (!cache->provider.pressure || !cache->provider.pressure_fd)
		return -EOPNOTSUPP;
	state = fmlib_cancel_off();
	pthread_mutex_lock(&cache->helper_lock);
	if (cache->helper_runs && atomic_load(&cache->helper_ended))
		join(cache);
	if (cache->helper_runs) {
		err = -EEXIST;
		goto out;
	}
	cache->helper_stop = eventfd(0, EFD_CLOEXEC);
	if (cache->helper_stop < 0) {
		err = -errno;
		goto out;
	}
	err = create(cache);
	if (err)
		close(cache->helper_stop);
	else
		cache->helper_runs = true;
out:
	pthread_mutex_unlock(&cache->helper_lock);
	fmlib_cancel_as(state);
	return err;
}

int flexmem_cache_stop_helper(struct flexmem_cache *cache)
{
	int err = fmlib_cache_check(cache);
	int state;

	if (err)
		return err;
	state = fmlib_cancel_off();
	pthread_mutex_lock(&cache->helper_lock);
	if (cache->helper_runs) {
		/* Cannot fail: nobody else counts it up. */
		eventfd_write(cache->helper_stop, 1);
		join(cache);
	} else {
		err = -ENOENT;
	}
	pthread_mutex_unlock(&cache->helper_lock);
	fmlib_cancel_as(state);
	return err;
}

void fmlib_helper_end(struct flexmem_cache *cache, bool own)
{
	if (own)
		flexmem_cache_stop_helper(cache);
	else if (cache->helper_runs)
		close(cache->helper_stop);
}
