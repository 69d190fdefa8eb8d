// SPDX-License-Identifier: GPL-2.0
/*
 * The commands about the bytes of allocations: MAP, READ and WRITE, by which
 * the CPU gets at them, and COPY. See ioctl.c.
 */

#include <linux/errno.h>
#include <linux/flexmem.h>

#include "device.h"
#include "ioctl.h"

/**
 * flexmem_cmd_map - MAP
 * @call: command under way
 *
 * Return: 0 or a negative errno, as the ABI header lists them.
 */
int flexmem_cmd_map(struct flexmem_call *call)
{
	struct flexmem_map *cmd = call->cmd;
	int rc;

	if (cmd->flags || cmd->__reserved ||
	    !call->fdev->table.function.ops.page)
		return -EOPNOTSUPP;
	rc = flexmem_client_map(call->client, cmd);
	return rc ?: flexmem_reply(call, sizeof(*cmd));
}

static int copy(struct flexmem_call *call, bool write)
{
	struct flexmem_copy *cmd = call->cmd;
	int rc, reply_rc;

	if (cmd->flags || cmd->__reserved)
		return -EOPNOTSUPP;
	cmd->out_done = 0;
	rc = call->fdev->table.function.ops.read ?
		flexmem_client_copy(call->client, cmd, write) : -EOPNOTSUPP;
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return rc ?: reply_rc;
}

/**
 * flexmem_cmd_read - READ
 * @call: command under way
 *
 * Return: 0 or a negative errno, as the ABI header lists them.
 */
int flexmem_cmd_read(struct flexmem_call *call)
{
	return copy(call, false);
}

/**
 * flexmem_cmd_write - WRITE
 * @call: command under way
 *
 * Return: 0 or a negative errno, as the ABI header lists them.
 */
int flexmem_cmd_write(struct flexmem_call *call)
{
	return copy(call, true);
}

/**
 * flexmem_cmd_copy - COPY
 * @call: command under way
 *
 * Return: 0 or a negative errno, as the ABI header lists them.
 */
int flexmem_cmd_copy(struct flexmem_call *call)
{
	struct flexmem_copy_range *cmd = call->cmd;
	int rc, reply_rc;

	if (cmd->flags)
		return -EOPNOTSUPP;
	cmd->out_done = 0;
	rc = call->fdev->table.function.ops.copy ?
		flexmem_client_copy_range(call->client, cmd) : -EOPNOTSUPP;
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return rc ?: reply_rc;
}
