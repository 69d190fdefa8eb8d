/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The operations of the world's PF and VFs (world.h), which call the operations
 * of the simulator. Each operation can fail, and checks whether flexmem may
 * call it now.
 */
#ifndef _NATIVE_WATCH_H
#define _NATIVE_WATCH_H

#include <flexmem/device_ops.h>

const struct flexmem_device_ops *watch_ops(unsigned int index);
void watch_asleep(unsigned int index, bool asleep);
void watch_gone(unsigned int index);

/* If set, the next page fault calls this once before the fault ends. */
extern void (*watch_during_fault)(void);

#endif /* _NATIVE_WATCH_H */
