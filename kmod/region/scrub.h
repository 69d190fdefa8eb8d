/* SPDX-License-Identifier: GPL-2.0 */
/* Scrubbing: no open file can read another file's bytes. */
#ifndef _FLEXMEM_SCRUB_H
#define _FLEXMEM_SCRUB_H

#include <linux/types.h>

struct flexmem_block;
struct flexmem_table;

int flexmem_scrub_whole(const struct flexmem_block *block);
int flexmem_scrub_block(struct flexmem_block *block, u64 owner, bool zeroed);
void flexmem_scrub_soon(struct flexmem_table *table);

#endif /* _FLEXMEM_SCRUB_H */
