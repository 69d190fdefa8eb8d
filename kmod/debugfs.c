// SPDX-License-Identifier: GPL-2.0
/*
 * The files in /sys/kernel/debug/flexmem, for root only: a directory for each
 * node. Documentation/ABI/testing/debugfs-flexmem describes the files.
 *
 * The driver works also if the kernel has no debugfs, or cannot make a file.
 */

#include <linux/debugfs.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "debugfs.h"
#include "snapshot.h"
#include "table.h"

static struct dentry *top;

static int regions_show(struct seq_file *m, void *unused)
{
	struct flexmem_view *view = kzalloc(sizeof(*view), GFP_KERNEL);
	const struct flexmem_region_entry *entry;

	if (!view)
		return -ENOMEM;
	flexmem_table_snapshot(m->private, NULL, view);
	seq_printf(m,
		   "total %llu free %llu owned %llu orphaned %llu quarantined %llu scrubbed %llu\n"
		   "clients %llu generation %llu capacity %llu\n",
		   view->sum.out_total, view->sum.out_free,
		   view->sum.out_owned, view->sum.out_orphaned,
		   view->sum.out_quarantined, view->sum.out_scrubbed,
		   view->sum.out_clients, view->sum.out_generation,
		   view->sum.out_capacity);
	for (entry = view->region; entry < view->region + view->nr; entry++)
		seq_printf(m,
			   "slot %u total %llu free %llu largest %llu allocated %llu sequence %llu\n",
			   entry->slot, entry->total, entry->free,
			   entry->largest_free, entry->nr_allocated,
			   entry->sequence);
	kfree(view);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(regions);

/*
 * Does not wait for a command under way. A reader of this file wants to see a
 * device that does not answer, and removal waits for the reader.
 */
static int memory_show(struct seq_file *m, void *unused)
{
	struct flexmem_table *table = m->private;

	flexmem_function_show(&table->function, m);
	if (!mutex_trylock(&table->acquire_lock)) {
		seq_puts(m, "busy\n");
		return 0;
	}
	flexmem_function_show_pieces(&table->function, m);
	flexmem_function_vm_show(&table->function, m);
	mutex_unlock(&table->acquire_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(memory);

/*
 * Makes the files of a function.
 * Return: their directory, for debugfs_remove(), which waits for readers of the
 * files.
 */
struct dentry *flexmem_debugfs_add(struct flexmem_table *table,
				   const char *name)
{
	struct dentry *dir = debugfs_create_dir(name, top);

	debugfs_create_file("memory", 0400, dir, table, &memory_fops);
	debugfs_create_file("regions", 0400, dir, table, &regions_fops);
	return dir;
}

void flexmem_debugfs_init(void)
{
	top = debugfs_create_dir("flexmem", NULL);
}

void flexmem_debugfs_exit(void)
{
	debugfs_remove(top);
}
