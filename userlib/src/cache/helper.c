// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The helper thread, which serves pressure if the framework has no loop for it.
 * flexmem_cache_stop_helper() writes to a pipe that the helper polls. It does
 * not cancel the thread, because a cancellation loads libgcc_s, and aborts the
 * process if that fails. A forked child has no helper, and closes the pipe.
 *
 * A program may close the descriptors of the provider and of the pipe, as
 * closefrom() does, and open other files with the same numbers. So the helper
 * checks before and after each wait that both descriptors still refer to the
 * same files. A close of the pipe ends the wait. If the program has reused the
 * numbers before the helper runs, poll() waits for the program's files, until
 * LOOK_MS have passed.
 */
#define _GNU_SOURCE
#include "cache.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* How long to wait after a temporary error, in milliseconds. */
#define RETRY_MS 100

/*
 * A program that has allocated nothing for this many milliseconds counts as
 * idle.
 */
#define IDLE_MS 1000

/* How often it looks while another process lacks memory, in milliseconds. */
#define AGAIN_MS 100

/* After how many milliseconds the helper looks at its descriptors. */
#define LOOK_MS 10000

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
 * Waits for @fd, for @timeout milliseconds at most. If @fd->fd is negative,
 * waits for @timeout. Returns 0; -ECANCELED if the helper has to end; or -EBADF
 * if the descriptor of the pipe is no longer the helper's.
 */
static int wait_for(struct fmlib_helper *helper, struct pollfd *fd, int timeout)
{
	struct pollfd fds[] = {
		*fd, { .fd = helper->wake[0], .events = POLLIN },
	};
	int count;
	int err;

	if (!is_file(helper->wake[0], &helper->pipe))
		return -EBADF;
	count = poll(fds, 2, timeout);
	err = errno;
	if (count < 0)
		return -err;
	fd->revents = fds[0].revents;
	if (!is_file(helper->wake[0], &helper->pipe))
		return -EBADF;
	if (fds[1].revents & POLLIN)
		return -ECANCELED;
	return fds[1].revents ? -EBADF : 0;
}

/* For how long to wait for an event, in milliseconds. */
static int patience(struct flexmem_cache *cache)
{
	if (fmlib_wanted_lasts(cache))
		return AGAIN_MS;
	return fmlib_pressure_lasts(cache) ? IDLE_MS : LOOK_MS;
}

/*
 * Waits for an event on the provider's descriptor. Returns 0 if there is one;
 * -ETIME if there was none for that time; or -EBADF if the descriptor no longer
 * refers to @source.
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
	err = wait_for(&cache->helper, &fd, patience(cache));
	if (!err && !is_file(fd.fd, source))
		err = -EBADF;
	if (!err && !fd.revents)
		err = -ETIME;
	if (err)
		return err;
	return fd.revents & (POLLERR | POLLHUP | POLLNVAL) ? -ENODEV : 0;
}

static int serve_next(struct flexmem_cache *cache, const struct stat *source)
{
	struct flexmem_pressure_event event;
	uint64_t released;
	int err = wait_for_event(cache, source);

	if (err == -ETIME) {
		if (fmlib_wanted_lasts(cache))
			fmlib_pressure_again(cache);
		else if (fmlib_pressure_lasts(cache))
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

/* Waits, because an error that persists must not keep a CPU busy. */
static int pause_for_retry(struct fmlib_helper *helper, int err)
{
	struct pollfd none = { .fd = -1 };
	int end = wait_for(helper, &none, RETRY_MS);

	return end == -ECANCELED || end == -EBADF ? end : err;
}

static void *serve(void *argument)
{
	struct flexmem_cache *cache = argument;
	struct stat source;
	bool in_vain = false;
	int err;

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
		if (err == -ENOMEM || err == -EIO ||
		    (err == -EAGAIN && in_vain))
			err = pause_for_retry(&cache->helper, err);
	}
	if (err != -ECHILD && err != -ECANCELED)
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"pressure is not served any more: error %d",
				-err);
	atomic_store(&cache->helper.ended, true);
	return NULL;
}

/* Closes the descriptors that still refer to the pipe. */
static void close_pipe(struct fmlib_helper *helper)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		if (is_file(helper->wake[i], &helper->pipe))
			close(helper->wake[i]);
	}
}

void fmlib_helper_in_child(struct flexmem_cache *cache)
{
	if (cache->helper.runs)
		close_pipe(&cache->helper);
}

/*
 * Creates the thread with all signals blocked: signals are for the program's
 * own threads.
 */
static int create(struct flexmem_cache *cache)
{
	struct fmlib_helper *helper = &cache->helper;
	sigset_t before;
	sigset_t all;
	int err;

	if (pipe2(helper->wake, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	err = identify(helper->wake[0], &helper->pipe);
	if (!err) {
		atomic_store(&helper->ended, false);
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		err = -pthread_create(&helper->thread, NULL, serve, cache);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	helper->runs = !err;
	if (err)
		close_pipe(helper);
	return err;
}

static void join(struct flexmem_cache *cache)
{
	pthread_join(cache->helper.thread, NULL);
	close_pipe(&cache->helper);
	cache->helper.runs = false;
}

/*
 * Makes the helper end. The write cannot fail, because the pipe is empty. If
 * the program has closed the pipe, the helper has noticed that.
 */
static void wake(struct fmlib_helper *helper)
{
	ssize_t count = 0;

	if (!atomic_load(&helper->ended) &&
	    is_file(helper->wake[1], &helper->pipe))
		count = write(helper->wake[1], "", 1);
	(void)count;
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
		wake(&cache->helper);
		join(cache);
	} else {
		err = -ENOENT;
	}
	pthread_mutex_unlock(&cache->helper.lock);
	fmlib_cancel_as(state);
	return err;
}
