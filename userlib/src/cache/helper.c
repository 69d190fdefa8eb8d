// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The helper thread, which serves pressure if the framework has no loop for it.
 * It holds no lock while it waits, so fork() finds the cache consistent. A
 * child has the descriptors that would end the thread, but not the thread.
 *
 * A program may close descriptors that are not its own, as closefrom() does,
 * and get others with the same numbers. So the helper checks before each use
 * that a descriptor still refers to the same file. It also checks every second,
 * because poll() does not report a descriptor that is closed during the wait.
 */
#include "cache.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Delay after an error that may pass. */
#define RETRY_MS 100

/* Interval of the checks of its descriptors while it waits. */
#define LOOK_MS 1000

static int identify(int descriptor, struct fmlib_file *file)
{
	struct stat status;

	if (fstat(descriptor, &status))
		return -errno;
	file->device = status.st_dev;
	file->inode = status.st_ino;
	return 0;
}

static bool is_file(int descriptor, const struct fmlib_file *file)
{
	struct fmlib_file now = { 0 };

	return !identify(descriptor, &now) && now.device == file->device &&
	       now.inode == file->inode;
}

static bool has_ends(const struct flexmem_cache *cache)
{
	return is_file(cache->helper_ends[0], &cache->helper_files[0]) &&
	       is_file(cache->helper_ends[1], &cache->helper_files[1]);
}

static int pressure_fd(const struct flexmem_cache *cache)
{
	int descriptor = cache->provider.pressure_fd(cache->provider.user);

	return fmlib_cache_check(cache) ? -ECHILD : descriptor;
}

/*
 * 0: the provider's descriptor, which refers to @source, has an event;
 * -ECANCELED: the helper must end.
 */
static int wait_for_event(const struct flexmem_cache *cache,
			  const struct fmlib_file *source)
{
	struct pollfd fds[] = {
		{ .fd = cache->helper_ends[0], .events = POLLIN },
		{ .fd = pressure_fd(cache), .events = POLLIN },
	};
	int count = 0;

	if (fds[1].fd < 0)
		return fds[1].fd;
	while (!count && has_ends(cache) && is_file(fds[1].fd, source)) {
		count = poll(fds, 2, LOOK_MS);
		if (count < 0 && errno != EINTR)
			return -errno;
	}
	if (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL))
		return -ENODEV;
	if (!has_ends(cache) || !is_file(fds[1].fd, source))
		return -EBADF;
	if (fds[0].revents)
		return -ECANCELED;
	return count < 0 ? -EINTR : 0;
}

static int serve_next(struct flexmem_cache *cache,
		      const struct fmlib_file *source)
{
	struct flexmem_pressure_event event;
	uint64_t released;
	int err = wait_for_event(cache, source);

	if (!err)
		err = fmlib_pressure_read(cache, &event);
	/* Refusals of the provider have been logged. */
	if (!err)
		fmlib_pressure_answer(cache, &event, &released);
	return err;
}

/*
 * Waits after an error. Without the pause an error could keep a processor busy.
 */
static void pause_after_error(const struct flexmem_cache *cache)
{
	struct pollfd stop = { .fd = cache->helper_ends[0], .events = POLLIN };

	/* If this fails too, the next attempt only comes early. */
	poll(&stop, 1, RETRY_MS);
}

static void *serve(void *argument)
{
	struct flexmem_cache *cache = argument;
	struct fmlib_file source = { 0 };
	bool in_vain = false;
	int err;

	err = pressure_fd(cache);
	if (err >= 0)
		err = identify(err, &source);
	while (!err || err == -EAGAIN || err == -EINTR || err == -ENOMEM ||
	       err == -EIO) {
		/*
		 * Another thread may read an event first, but not again and
		 * again.
		 */
		in_vain = err == -EAGAIN;
		err = serve_next(cache, &source);
		if (err == -ENOMEM || err == -EIO ||
		    (err == -EAGAIN && in_vain))
			pause_after_error(cache);
	}
	if (err != -ECANCELED && err != -ECHILD)
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"pressure is not served any more: error %d",
				-err);
	atomic_store(&cache->helper_ended, true);
	return NULL;
}

/*
 * Creates it with all signals blocked: they are for the program's own threads.
 */
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

static void close_ends(const struct flexmem_cache *cache)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (is_file(cache->helper_ends[i], &cache->helper_files[i]))
			close(cache->helper_ends[i]);
	}
}

/*
 * A socket can be shut down without a signal, and the other end sees that an
 * end was closed. A child's copies prevent neither.
 */
static int open_ends(struct flexmem_cache *cache)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
		       cache->helper_ends))
		return -errno;
	/* Cannot fail, because both are open. */
	identify(cache->helper_ends[0], &cache->helper_files[0]);
	identify(cache->helper_ends[1], &cache->helper_files[1]);
	return 0;
}

/* Waits until the helper has ended. */
static void join(struct flexmem_cache *cache)
{
	pthread_join(cache->helper, NULL);
	/*
	 * In this order: a child forked in between would close descriptors that
	 * reuse these numbers.
	 */
	cache->helper_runs = false;
	close_ends(cache);
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
	err = open_ends(cache);
	if (err)
		goto out;
	err = create(cache);
	if (err)
		close_ends(cache);
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
		/*
		 * If the number belongs to another file now, the helper has
		 * noticed that too.
		 */
		if (is_file(cache->helper_ends[1], &cache->helper_files[1]))
			shutdown(cache->helper_ends[1], SHUT_RDWR);
		join(cache);
	} else {
		err = -ENOENT;
	}
	pthread_mutex_unlock(&cache->helper_lock);
	fmlib_cancel_as(state);
	return err;
}

void fmlib_helper_end(struct flexmem_cache *cache)
{
	flexmem_cache_stop_helper(cache);
}

/*
 * Copies that stay open would keep the parent's helper from seeing the close.
 */
void fmlib_helper_forget(struct flexmem_cache *cache)
{
	if (!cache->helper_runs)
		return;
	cache->helper_runs = false;
	close_ends(cache);
}
