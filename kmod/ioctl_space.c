// SPDX-License-Identifier: GPL-2.0
/* The commands about device-virtual addresses. */

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/flexmem.h>

#include "client.h"
#include "ioctl.h"
#include "space.h"

static bool has_spaces(const struct flexmem_call *call)
{
	return call->fdev->table.function.ops.vm_map;
}

/* The space of a client, or an ERR_PTR(): @none if the client has none yet. */
static struct flexmem_space *find_space(struct flexmem_call *call, int none)
{
	struct flexmem_space *space;

	if (!has_spaces(call))
		return ERR_PTR(-EOPNOTSUPP);
	space = flexmem_client_find_space(call->client);
	return space ?: ERR_PTR(none);
}

int flexmem_cmd_va_reserve(struct flexmem_call *call)
{
	struct flexmem_va_reserve *cmd = call->cmd;
	struct flexmem_space *space;
	int rc, failure;

	if (!has_spaces(call))
		return -EOPNOTSUPP;
	cmd->out_address = 0;
	cmd->out_largest_free = 0;
	space = flexmem_client_make_space(call->client);
	if (!space)
		return -ENOMEM;
	rc = flexmem_space_reserve(space, cmd);
	failure = flexmem_reply(call, sizeof(*cmd));
	/*
	 * The reply could not be written, so the range is freed again. That
	 * fails if another thread has guessed the address and has bound memory
	 * there.
	 */
	if (failure && !rc)
		flexmem_space_free(space, cmd->out_address);
	return failure ?: rc;
}

int flexmem_cmd_va_free(struct flexmem_call *call)
{
	struct flexmem_va_free *cmd = call->cmd;
	struct flexmem_space *space = find_space(call, -ENOENT);

	return IS_ERR(space) ? PTR_ERR(space) :
			       flexmem_space_free(space, cmd->address);
}

int flexmem_cmd_va_bind(struct flexmem_call *call)
{
	struct flexmem_va_bind *cmd = call->cmd;
	struct flexmem_space *space = find_space(call, -ENXIO);
	struct flexmem_allocation *allocation;
	int rc;

	if (IS_ERR(space))
		return PTR_ERR(space);
	allocation = flexmem_client_allocation(call->client, cmd->handle);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	rc = flexmem_space_bind(space, allocation, cmd);
	flexmem_allocation_put(allocation);
	return rc;
}

int flexmem_cmd_va_unbind(struct flexmem_call *call)
{
	struct flexmem_va_unbind *cmd = call->cmd;
	struct flexmem_space *space = find_space(call, -ENOENT);

	return IS_ERR(space) ? PTR_ERR(space) :
			       flexmem_space_unbind(space, cmd->address);
}

int flexmem_cmd_va_lookup(struct flexmem_call *call)
{
	struct flexmem_va_lookup *cmd = call->cmd;
	struct flexmem_space *space = find_space(call, -ENOENT);
	struct flexmem_allocation *allocation = NULL, *found;

	if (IS_ERR(space))
		return PTR_ERR(space);
	if (cmd->handle ? cmd->address : cmd->offset)
		return -EINVAL;
	if (cmd->handle)
		allocation = flexmem_client_allocation(call->client,
						       cmd->handle);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	found = flexmem_space_lookup(space, allocation, cmd);
	if (allocation)
		flexmem_allocation_put(allocation);
	if (!found)
		return -ENOENT;
	cmd->out_handle = flexmem_client_handle(call->client, found);
	flexmem_allocation_put(found);
	return flexmem_reply(call, sizeof(*cmd));
}
