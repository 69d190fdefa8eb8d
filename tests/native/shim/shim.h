/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of the kernel that flexmem uses, in user space. The compiler
 * includes it first in each source of the driver (-include). The headers below
 * linux/ that the driver includes are either the kernel's own, or empty ones
 * (headers.sh).
 *
 * Nothing in kmod/ knows of the shim. If the driver begins to use another C
 * function of the kernel, add it here.
 */
#ifndef _NATIVE_SHIM_H
#define _NATIVE_SHIM_H

#include "base.h"
#include "atomic.h"
#include "lock.h"
#include "task.h"
#include "cgroup.h"
#include "memory.h"
#include "file.h"
#include "fence.h"
#include "trace.h"

#endif /* _NATIVE_SHIM_H */
