/* SPDX-License-Identifier: GPL-2.0 */
/* CPU mappings of allocations. */
#ifndef _FLEXMEM_MAPPING_H
#define _FLEXMEM_MAPPING_H

#include <linux/errno.h>

struct flexmem_block;
struct vm_area_struct;

#ifndef FLEXMEM_CORE
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
