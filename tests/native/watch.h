/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The operations of the world's PF and VFs (world.h), which call those of the
 * simulator. Each can fail, and each checks whether it may be called.
 */
#ifndef _NATIVE_WATCH_H
#define _NATIVE_WATCH_H

#include <flexmem/device_ops.h>

const struct flexmem_device_ops *watch_ops(unsigned int index);
void watch_asleep(unsigned int index, bool asleep);
void watch_gone(unsigned int index);

/* If this is set, the next page fault calls it once in the middle. */
extern void (*watch_during_fault)(void);

#endif /* _NATIVE_WATCH_H */
