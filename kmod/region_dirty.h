/* SPDX-License-Identifier: GPL-2.0 */
/* The free blocks of a region that need a scrub, and blocks in quarantine. */
#ifndef _FLEXMEM_REGION_DIRTY_H
#define _FLEXMEM_REGION_DIRTY_H

#include <linux/types.h>

#include "domain.h"

struct flexmem_account;
struct flexmem_block;
struct flexmem_region;

void flexmem_region_dirty_part(struct flexmem_region *region, u64 *start,
			       u64 *end);
bool flexmem_region_begin_scrub(struct flexmem_region *region, u64 *dirty);
int flexmem_region_end_scrub(struct flexmem_region *region, int rc);

void flexmem_region_quarantine(struct flexmem_region *region,
			       struct flexmem_block *block);
struct flexmem_block *
flexmem_region_take_quarantined(struct flexmem_region *region);
void flexmem_region_end_quarantine(struct flexmem_region *region,
				   struct flexmem_block *block, bool scrubbed);
int flexmem_region_retry(struct flexmem_region *region,
			 struct flexmem_block *block);

#endif /* _FLEXMEM_REGION_DIRTY_H */
