/* SPDX-License-Identifier: GPL-2.0 */
/* Bytes and maps of allocations. */
#ifndef _FLEXMEM_MAPPING_H
#define _FLEXMEM_MAPPING_H

#include <linux/errno.h>

struct flexmem_block;
struct flexmem_client;
struct flexmem_copy;
struct vm_area_struct;

#ifndef FLEXMEM_CORE
int flexmem_data_copy(struct flexmem_client *client, struct flexmem_copy *cmd);
int flexmem_mapping_mmap(struct flexmem_block *chunk,
			 struct vm_area_struct *vma);
#else
/* Not called: no allocation is mappable. */
static inline int flexmem_mapping_mmap(struct flexmem_block *chunk,
				       struct vm_area_struct *vma)
{
	return -ENODEV;
}
#endif

#endif /* _FLEXMEM_MAPPING_H */
