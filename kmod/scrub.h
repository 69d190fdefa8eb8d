/* SPDX-License-Identifier: GPL-2.0 */
/* Scrubbing: no owner gets the bytes of another. */
#ifndef _FLEXMEM_SCRUB_H
#define _FLEXMEM_SCRUB_H

#include <linux/types.h>

struct flexmem_block;
struct flexmem_memory;
struct flexmem_region;
struct flexmem_table;

int flexmem_scrub_memory(struct flexmem_table *table,
			 const struct flexmem_memory *mem);
int flexmem_scrub_block(struct flexmem_region *region,
			struct flexmem_block *block, u64 owner, bool zeroed);
int flexmem_scrub_quarantine(struct flexmem_table *table);
void flexmem_scrub_init(struct flexmem_table *table);
void flexmem_scrub_soon(struct flexmem_table *table);
void flexmem_scrub_stop(struct flexmem_table *table);

#endif /* _FLEXMEM_SCRUB_H */
