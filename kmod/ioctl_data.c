// SPDX-License-Identifier: GPL-2.0
/* The commands about the bytes of allocations: READ, WRITE and COPY. */

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/flexmem.h>

#include "data.h"
#include "ioctl.h"

static int do_rw(struct flexmem_call *call, bool write)
{
	struct flexmem_allocation *allocation;
	struct flexmem_rw *cmd = call->cmd;

	if (!call->fdev->table.function.ops.read)
		return -EOPNOTSUPP;
	allocation = flexmem_client_allocation(call->client, cmd->handle);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	return flexmem_data_rw(allocation, cmd, write);
}

static int rw(struct flexmem_call *call, bool write)
{
	struct flexmem_rw *cmd = call->cmd;
	int rc, reply_rc;

	if (cmd->__reserved)
		return -EOPNOTSUPP;
	cmd->out_done = 0;
	rc = do_rw(call, write);
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return rc ?: reply_rc;
}

int flexmem_cmd_read(struct flexmem_call *call)
{
	return rw(call, false);
}

int flexmem_cmd_write(struct flexmem_call *call)
{
	return rw(call, true);
}

static int do_copy(struct flexmem_call *call)
{
	struct flexmem_allocation *to, *from;
	struct flexmem_copy *cmd = call->cmd;

	if (!call->fdev->table.function.ops.copy)
		return -EOPNOTSUPP;
	to = flexmem_client_allocation(call->client, cmd->to);
	if (IS_ERR(to))
		return PTR_ERR(to);
	from = flexmem_client_allocation(call->client, cmd->from);
	if (IS_ERR(from)) {
		flexmem_allocation_put(to);
		return PTR_ERR(from);
	}
	return flexmem_data_copy(to, from, cmd);
}

int flexmem_cmd_copy(struct flexmem_call *call)
{
	struct flexmem_copy *cmd = call->cmd;
	int rc, reply_rc;

	cmd->out_done = 0;
	rc = do_copy(call);
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return rc ?: reply_rc;
}
