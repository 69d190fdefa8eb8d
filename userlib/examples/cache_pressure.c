// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Pressure: the event loop of a framework also waits for events of the device,
 * and returns memory that its cache does not need before other programs run out
 * of memory. The loop ends when something can be read from standard input. A
 * program without a loop calls flexmem_cache_start_helper() instead.
 *
 * cc cache_pressure.c $(pkg-config --cflags --libs libflexmem)
 */
#include <errno.h>
#include <flexmem_cache.h>
#include <poll.h>
#include <stdio.h>

#define MIB (1 << 20)

/* Fills the cache with memory that no tensor uses. */
static int fill(struct flexmem_cache *cache)
{
	void *tokens[8] = { NULL };
	int err = 0;
	int i;

	for (i = 0; !err && i < 8; i++)
		err = flexmem_cache_alloc(cache, 100 * MIB, 0, &tokens[i]);
	for (i = 0; i < 8; i++)
		flexmem_cache_free(cache, tokens[i]);
	return err;
}

static int loop(struct flexmem_cache *cache, struct flexmem_device *device)
{
	struct pollfd fds[] = {
		{ .fd = 0, .events = POLLIN },
		{ .fd = flexmem_device_fd(device), .events = POLLIN },
	};
	uint64_t released;
	int err;

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			return -errno;
		if (fds[0].revents)
			return 0;
		if (fds[1].revents & (POLLERR | POLLHUP))
			return -ENODEV;
		if (!fds[1].revents)
			continue;
		err = flexmem_cache_serve_pressure(cache, &released);
		/* -EAGAIN: another thread has served the event. */
		if (err && err != -EAGAIN)
			return err;
		printf("%lu MiB given back\n",
		       (unsigned long)(released / MIB));
	}
}

int main(void)
{
	struct flexmem_cache_options options = { 0 };
	struct flexmem_cache *cache = NULL;
	char text[1024];
	int err;

	err = flexmem_device_open(&options.device, NULL);
	if (!err)
		err = flexmem_cache_create(&cache, &options, sizeof(options));
	if (!err)
		err = fill(cache);
	if (!err)
		err = loop(cache, options.device);
	flexmem_cache_error_text(err, NULL, 0, text, sizeof(text));
	printf("%s\n", text);
	flexmem_cache_destroy(cache);
	flexmem_device_close(options.device);
	return err != 0;
}
