/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel as far as flexmem sees it, in user space. Forced into each source
 * of the driver by -include; what it includes below linux/ are headers of the
 * kernel's own, taken in place, or empty ones (headers.sh).
 *
 * Nothing in kmod/ knows of this. What the driver begins to use and is missing
 * here is added here.
 */
#ifndef _NATIVE_SHIM_H
#define _NATIVE_SHIM_H

#include "shim/base.h"
#include "shim/atomic.h"
#include "shim/lock.h"
#include "shim/task.h"
#include "shim/memory.h"
#include "shim/file.h"

#endif /* _NATIVE_SHIM_H */
