// SPDX-License-Identifier: GPL-2.0
/* The table of parts; main.c names its rows. */

#include <linux/cache.h>
#include <linux/init.h>
#include <flexmem/device_ops.h>

#include "part.h"

const struct flexmem_part_ops *const *flexmem_parts __ro_after_init;
unsigned int flexmem_nr_parts __ro_after_init;
const struct flexmem_command *flexmem_commands[FLEXMEM_MAX_COMMANDS] __ro_after_init;

/* Takes the rows, before anything calls a part. */
void __init flexmem_parts_init(const struct flexmem_part_ops *const *rows,
			       unsigned int nr)
{
	const struct flexmem_command *command;
	unsigned int i;

	for (i = 0; i < nr; i++)
		for (command = rows[i]->commands;
		     command && command->carry_out; command++)
			flexmem_commands[command->number] = command;
	flexmem_parts = rows;
	flexmem_nr_parts = nr;
}

/* What a function can do: what its device can do, if there is a part for it. */
u32 flexmem_parts_capabilities(const struct flexmem_device_ops *ops)
{
	u32 device = (ops->fault ? FLEXMEM_CAP_MAP : 0) |
		     (ops->read ? FLEXMEM_CAP_RW : 0) |
		     (ops->copy ? FLEXMEM_CAP_COPY : 0) |
		     (ops->vm_map ? FLEXMEM_CAP_PAGE_TABLES : 0);
	u32 parts = 0;
	unsigned int i;

	for (i = 0; i < flexmem_nr_parts; i++)
		parts |= flexmem_parts[i]->capabilities;
	return FLEXMEM_CAP_SCRUB | (device & parts);
}
