/* SPDX-License-Identifier: GPL-2.0 */
/* CPU mappings of allocations. */
#ifndef _FLEXMEM_MAPPING_H
#define _FLEXMEM_MAPPING_H

#include <linux/errno.h>

struct flexmem_block;
struct vm_area_struct;

int flexmem_mapping_mmap(struct flexmem_block *chunk,
			 struct vm_area_struct *vma);

#endif /* _FLEXMEM_MAPPING_H */
