/* SPDX-License-Identifier: GPL-2.0 */
/* Files in debugfs. */
#ifndef _FLEXMEM_DEBUGFS_H
#define _FLEXMEM_DEBUGFS_H

struct dentry;
struct flexmem_table;

void flexmem_debugfs_init(void);
void flexmem_debugfs_exit(void);
struct dentry *flexmem_debugfs_add(struct flexmem_table *table,
				   const char *name);

#endif /* _FLEXMEM_DEBUGFS_H */
