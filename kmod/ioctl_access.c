// SPDX-License-Identifier: GPL-2.0
/*
 * The commands by which the CPU gets at the bytes of allocations: MAP, READ and
 * WRITE. They look the handle up; access.c does the rest. See ioctl.c.
 */

#include <linux/err.h>
#include <linux/flexmem.h>

#include "access.h"
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
	struct flexmem_allocation *allocation;
	int rc;

	if (cmd->flags || cmd->__reserved ||
	    !call->fdev->table.function.ops.page)
		return -EOPNOTSUPP;
	allocation = flexmem_client_get(call->client, cmd->handle);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	rc = flexmem_access_map(allocation, cmd);
	return rc ?: flexmem_reply(call, sizeof(*cmd));
}

static int copy_bytes(struct flexmem_call *call, bool write)
{
	struct flexmem_copy *cmd = call->cmd;
	struct flexmem_allocation *allocation;

	cmd->out_done = 0;
	if (!call->fdev->table.function.ops.read)
		return -EOPNOTSUPP;
	allocation = flexmem_client_get(call->client, cmd->handle);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	return flexmem_access_copy(allocation, cmd, write);
}

static int copy(struct flexmem_call *call, bool write)
{
	struct flexmem_copy *cmd = call->cmd;
	int rc, reply_rc;

	if (cmd->flags || cmd->__reserved)
		return -EOPNOTSUPP;
	rc = copy_bytes(call, write);
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
