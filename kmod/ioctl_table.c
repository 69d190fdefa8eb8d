// SPDX-License-Identifier: GPL-2.0
/* The command about the regions and slots of a function: TRIM. */

#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/flexmem.h>

#include "ioctl.h"

int flexmem_cmd_trim(struct flexmem_call *call)
{
	struct flexmem_trim *cmd = call->cmd;
	int rc;

	if (cmd->__reserved)
		return -EOPNOTSUPP;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;

	/*
	 * The release of a region cannot be undone, so this checks first that
	 * the reply can be written.
	 */
	cmd->out_regions = 0;
	cmd->out_bytes = 0;
	rc = flexmem_reply(call, sizeof(*cmd));
	if (rc)
		return rc;
	rc = flexmem_table_trim(&call->fdev->table, &cmd->out_regions,
				&cmd->out_bytes);
	/*
	 * Ignores EFAULT: the TRIM is done, and the first reply could be
	 * written.
	 */
	(void)flexmem_reply(call, sizeof(*cmd));
	return rc;
}
