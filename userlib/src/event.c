// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Memory pressure: events that say how full the device is. */
#include "internal.h"

#include <unistd.h>

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
