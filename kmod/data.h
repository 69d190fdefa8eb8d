/* SPDX-License-Identifier: GPL-2.0 */
/* Moves bytes between allocations and user memory, and within the device. */
#ifndef _FLEXMEM_DATA_H
#define _FLEXMEM_DATA_H

struct flexmem_allocation;
struct flexmem_copy;

int flexmem_data_copy(struct flexmem_allocation *to,
		      struct flexmem_allocation *from,
		      struct flexmem_copy *copy);

#endif /* _FLEXMEM_DATA_H */
