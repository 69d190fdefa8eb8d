/* SPDX-License-Identifier: GPL-2.0 */
/* Scrubbing and quarantine: no owner gets the bytes of another. */
#ifndef _FLEXMEM_SCRUB_H
#define _FLEXMEM_SCRUB_H

#include <linux/types.h>

#include "domain.h"

struct flexmem_account;
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

void flexmem_region_quarantine(struct flexmem_region *region,
			       struct flexmem_block *block,
			       enum flexmem_kind kind,
			       struct flexmem_account *account);
struct flexmem_block *
flexmem_region_take_quarantined(struct flexmem_region *region);
void flexmem_region_end_quarantine(struct flexmem_region *region,
				   struct flexmem_block *block, bool scrubbed);
bool flexmem_region_begin_retry(struct flexmem_region *region, u64 *start,
				u64 *size);
void flexmem_region_end_retry(struct flexmem_region *region, u64 size, int rc);

#endif /* _FLEXMEM_SCRUB_H */
