// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Memory pressure: events that say how full the device is; and waiting for
 * memory.
 */
#include "internal.h"

#include <time.h>
#include <unistd.h>

/* How often flexmem_device_wait() looks. */
#define LOOK (10 * FMLIB_MS)

int flexmem_device_pressure(struct flexmem_device *device,
			    struct flexmem_pressure_event *event, size_t size)
{
	struct flexmem_pressure_event now = { 0 };
	struct flexmem_event read_event = { 0 };
	ssize_t length;

	if (!device || !event || size < FMLIB_PRESSURE_MIN)
		return -EINVAL;
	/* read() does not wait, because the file was opened with O_NONBLOCK. */
	length = read(device->fd, &read_event, sizeof(read_event));
	if (length < 0)
		return -errno;
	if (length < FLEXMEM_EVENT_MIN)
		return -EIO;
	now.level = read_event.level;
	/* An older driver writes neither. */
	now.flags = read_event.flags;
	now.wanted = read_event.wanted;
	now.in_use = read_event.in_use;
	now.memory = read_event.memory;
	now.sequence = read_event.sequence;
	return fmlib_copy_out(event, size, FMLIB_PRESSURE_MIN, &now,
			      sizeof(now));
}

uint64_t fmlib_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * FMLIB_SECOND + (uint64_t)now.tv_nsec;
}

void fmlib_sleep_until(uint64_t time)
{
	const struct timespec end = {
		.tv_sec = (time_t)(time / FMLIB_SECOND),
		.tv_nsec = (long)(time % FMLIB_SECOND),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) ==
	       EINTR)
		;
}

/*
 * Whether memory was freed since an event, and so many bytes are free. Returns 1
 * or 0, or an errno.
 *
 * It asks for the number of an event and reads none, because each event is read
 * once: the helper of a cache may read it first, or may need it. For the same
 * reason poll() would not do.
 */
static int is_free(const struct flexmem_device *device, uint64_t since,
		   uint64_t bytes)
{
	struct flexmem_domain_state all;
	uint64_t free_bytes;
	uint64_t total;
	int err;

	err = flexmem_device_domain(device, FLEXMEM_WHOLE_DEVICE, &all,
				    sizeof(all));
	if (err || all.freed <= since)
		return err;
	/* Not the bytes of the whole device: some domains must be asked for. */
	err = flexmem_device_memory_info(device, &free_bytes, &total);
	return err ? err : free_bytes >= bytes;
}

int flexmem_device_wait(const struct flexmem_device *device, uint64_t since,
			uint64_t bytes, uint32_t milliseconds)
{
	uint64_t now, end;
	int err;

	if (!device || !since)
		return -EINVAL;
	now = fmlib_now();
	end = now + milliseconds * FMLIB_MS;
	while (!(err = is_free(device, since, bytes)) && now < end) {
		fmlib_sleep_until(end - now < LOOK ? end : now + LOOK);
		now = fmlib_now();
	}
	if (err > 0)
		return 0;
	return err ? err : -ETIMEDOUT;
}
