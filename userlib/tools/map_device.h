/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#ifndef MAP_DEVICE_H
#define MAP_DEVICE_H

#include "picture.h"

/*
 * Makes a map of the open device: its regions, and what the driver's trace events tell
 * in @seconds. A signal to end the process ends that earlier. What was allocated
 * before has no address; with 0 seconds nothing has one. Prints an error on failure.
 */
enum tool_status map_device(struct tool *tool, uint64_t seconds,
			    struct map *map);

#endif /* MAP_DEVICE_H */
