/* SPDX-License-Identifier: GPL-2.0 */
/* Bytes of one allocation to another one, by the device. */
#ifndef _FLEXMEM_COPY_H
#define _FLEXMEM_COPY_H

#include <linux/flexmem.h>

struct flexmem_allocation;

int flexmem_copy_between(struct flexmem_allocation *to,
			 struct flexmem_allocation *from,
			 struct flexmem_copy_range *range);

#endif /* _FLEXMEM_COPY_H */
