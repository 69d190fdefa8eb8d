/* SPDX-License-Identifier: GPL-2.0 */
/* The bytes of allocations for the CPU: maps and copies. */
#ifndef _FLEXMEM_ACCESS_H
#define _FLEXMEM_ACCESS_H

#include <linux/types.h>
#include <linux/flexmem.h>

struct flexmem_allocation;
struct flexmem_chunk;
struct vm_area_struct;

int flexmem_access_map(struct flexmem_allocation *allocation,
		       struct flexmem_map *map);
int flexmem_access_mmap(struct flexmem_chunk *chunk,
			struct vm_area_struct *vma);
int flexmem_access_copy(struct flexmem_allocation *allocation,
			struct flexmem_copy *copy, bool write);

#endif /* _FLEXMEM_ACCESS_H */
