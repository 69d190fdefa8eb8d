// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The helper thread, which serves pressure if the framework has no loop for it.
 * Stopping the helper cancels the thread, which takes effect only while it
 * waits without a lock. So no descriptor is needed to wake it. A forked child
 * has no helper.
 *
 * A program may close the provider's descriptor, as closefrom() does, and open
 * another file with the same number. So the helper checks before and after each
 * wait that the provider's descriptor still refers to the same file. If the
 * descriptor changes during a wait, poll() still waits for the old file.
 */
#include "cache.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

/* How long to wait after a temporary error, in milliseconds. */
#define RETRY_MS 100

/*
 * A program that has allocated nothing for this many milliseconds counts as
 * idle.
 */
#define IDLE_MS 1000

/* Finds out which file a descriptor refers to. -EBADF: it was closed. */
static int identify(int descriptor, struct stat *file)
{
	return fstat(descriptor, file) ? -errno : 0;
}

static bool is_file(int descriptor, const struct stat *file)
{
	struct stat now;

	return !identify(descriptor, &now) && now.st_dev == file->st_dev &&
	       now.st_ino == file->st_ino;
}

static int pressure_fd(const struct flexmem_cache *cache)
{
	int descriptor = cache->provider.pressure_fd(cache->provider.user);

	if (fmlib_cache_check(cache))
		return -ECHILD;
	return descriptor < 0 ? fmlib_callback_result(descriptor) : descriptor;
}

/*
 * Waits for @fd, for @timeout milliseconds at most; -1: without end. If @fd is
 * NULL, waits for @timeout. The helper can be cancelled only here.
 */
static int wait_for(struct pollfd *fd, int timeout)
{
	int count;
	int err;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	count = poll(fd, fd ? 1 : 0, timeout);
	err = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return count < 0 ? -err : 0;
}

/*
 * Waits for an event on the provider's descriptor. Returns 0 if there is one;
 * -ETIME if there was none for IDLE_MS while the pressure lasts; or -EBADF if
 * the descriptor no longer refers to @source.
 */
static int wait_for_event(struct flexmem_cache *cache,
			  const struct stat *source)
{
	struct pollfd fd = { .fd = pressure_fd(cache), .events = POLLIN };
	int err;

	if (fd.fd < 0)
		return fd.fd;
	if (!is_file(fd.fd, source))
		return -EBADF;
	err = wait_for(&fd, fmlib_pressure_lasts(cache) ? IDLE_MS : -1);
	if (!is_file(fd.fd, source))
		return -EBADF;
	if (!err && !fd.revents)
		return -ETIME;
	return fd.revents & (POLLERR | POLLHUP | POLLNVAL) ? -ENODEV : err;
}

static int serve_next(struct flexmem_cache *cache, const struct stat *source)
{
	struct flexmem_pressure_event event;
	uint64_t released;
	int err = wait_for_event(cache, source);

	if (err == -ETIME) {
		fmlib_pressure_look(cache);
		return 0;
	}
	if (!err)
		err = fmlib_pressure_read(cache, &event);
	/*
	 * The cache has logged the refusal of the provider, so nothing is
	 * logged here.
	 */
	if (!err)
		fmlib_pressure_answer(cache, &event, &released);
	return err;
}

static void *serve(void *argument)
{
	struct flexmem_cache *cache = argument;
	struct stat source;
	bool in_vain = false;
	int err;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	err = pressure_fd(cache);
	if (err >= 0)
		err = identify(err, &source);
	while (!err || err == -EAGAIN || err == -EINTR || err == -ENOMEM ||
	       err == -EIO) {
		/*
		 * Another thread may have read the event first. If that happens
		 * twice in a row, the helper pauses.
		 */
		in_vain = err == -EAGAIN;
		err = serve_next(cache, &source);
		/*
		 * Pauses, because an error that persists must not keep a CPU
		 * busy.
		 */
		if (err == -ENOMEM || err == -EIO ||
		    (err == -EAGAIN && in_vain))
			wait_for(NULL, RETRY_MS);
	}
	if (err != -ECHILD)
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"pressure is not served any more: error %d",
				-err);
	atomic_store(&cache->helper.ended, true);
	return NULL;
}

/*
 * Creates the thread with all signals blocked: signals are for the program's
 * own threads.
 */
static int create(struct flexmem_cache *cache)
{
	sigset_t before;
	sigset_t all;
	int err;

	atomic_store(&cache->helper.ended, false);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&cache->helper.thread, NULL, serve, cache);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	cache->helper.runs = !err;
	return -err;
}

static void join(struct flexmem_cache *cache)
{
	pthread_join(cache->helper.thread, NULL);
	cache->helper.runs = false;
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
	pthread_mutex_lock(&cache->helper.lock);
	if (cache->helper.runs && atomic_load(&cache->helper.ended))
		join(cache);
	err = cache->helper.runs ? -EEXIST : create(cache);
	pthread_mutex_unlock(&cache->helper.lock);
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
	pthread_mutex_lock(&cache->helper.lock);
	if (cache->helper.runs) {
		pthread_cancel(cache->helper.thread);
		join(cache);
	} else {
		err = -ENOENT;
	}
	pthread_mutex_unlock(&cache->helper.lock);
	fmlib_cancel_as(state);
	return err;
}
