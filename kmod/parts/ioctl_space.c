// SPDX-License-Identifier: GPL-2.0
/* Device-virtual spaces: the space of a client, and the commands about it. */

#include <linux/atomic.h>
#include <linux/err.h>

#include "ioctl.h"
#include "parts/space.h"

/*
 * The client's device-virtual space; makes it if there is none yet. The function
 * has page tables. May sleep. NULL: no memory.
 */
struct flexmem_space *flexmem_client_make_space(struct flexmem_client *client)
{
	/* Pairs with cmpxchg(): another thread may just have made the space. */
	struct flexmem_space *space = smp_load_acquire(&client->space), *first;

	if (space)
		return space;
	space = flexmem_space_open(client->table);
	first = space ? cmpxchg(&client->space, NULL, space) : NULL;
	if (!first)
		return space;
	flexmem_space_put(space);
	return first;
}

/**
 * flexmem_client_space - the device-virtual space of a client
 * @client: client that the caller has a reference to
 *
 * A program of this client runs in this space. After the client has closed the
 * file, flexmem unmaps the space, and then the program faults on every address.
 * That may take long if the firmware does not answer. Until then no other client
 * gets the memory.
 *
 * Context: not an interrupt.
 * Return: the number of the space (&struct flexmem_vm_range.space); 0 if the
 * client has reserved no addresses yet, or has closed the file.
 */
u64 flexmem_client_space(struct flexmem_client *client)
{
	struct flexmem_space *space;
	u64 number;

	spin_lock(&client->handles.lock);
	/* Pairs with flexmem_client_make_space(). */
	space = smp_load_acquire(&client->space);
	number = space ? space->vm.space : 0;
	spin_unlock(&client->handles.lock);
	return number;
}
EXPORT_SYMBOL_GPL(flexmem_client_space);

/* The space of a client, or an ERR_PTR(): @none if the client has none yet. */
static struct flexmem_space *find_space(struct flexmem_call *call, int none)
{
	/* Pairs with flexmem_client_make_space(). */
	return smp_load_acquire(&call->client->space) ?: ERR_PTR(none);
}

static int cmd_va_reserve(struct flexmem_call *call)
{
	struct flexmem_va_reserve *cmd = call->cmd;
	struct flexmem_space *space;
	int rc, failure;

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

static int cmd_va_free(struct flexmem_call *call)
{
	struct flexmem_va_free *cmd = call->cmd;
	struct flexmem_space *space = find_space(call, -ENOENT);

	return IS_ERR(space) ? PTR_ERR(space) :
			       flexmem_space_free(space, cmd->address);
}

static int cmd_va_bind(struct flexmem_call *call)
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

static int cmd_va_unbind(struct flexmem_call *call)
{
	struct flexmem_va_unbind *cmd = call->cmd;
	struct flexmem_space *space = find_space(call, -ENOENT);

	return IS_ERR(space) ? PTR_ERR(space) :
			       flexmem_space_unbind(space, cmd->address);
}

static int cmd_va_lookup(struct flexmem_call *call)
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

static void close_space(struct flexmem_client *client)
{
	struct flexmem_space *space;

	spin_lock(&client->handles.lock);
	space = client->space;
	client->space = NULL;
	spin_unlock(&client->handles.lock);
	if (space)
		flexmem_space_close(space);
}

const struct flexmem_part_ops flexmem_part_spaces = {
	.commands = (const struct flexmem_command[]) {
		COMMAND(FLEXMEM_CMD_VA_RESERVE, flexmem_va_reserve,
			out_largest_free, CHANGES, FLEXMEM_CAP_PAGE_TABLES,
			cmd_va_reserve),
		COMMAND(FLEXMEM_CMD_VA_FREE, flexmem_va_free, address, CHANGES,
			FLEXMEM_CAP_PAGE_TABLES, cmd_va_free),
		COMMAND(FLEXMEM_CMD_VA_BIND, flexmem_va_bind, length, CHANGES,
			FLEXMEM_CAP_PAGE_TABLES, cmd_va_bind),
		COMMAND(FLEXMEM_CMD_VA_UNBIND, flexmem_va_unbind, address,
			CHANGES, FLEXMEM_CAP_PAGE_TABLES, cmd_va_unbind),
		COMMAND(FLEXMEM_CMD_VA_LOOKUP, flexmem_va_lookup, out_length,
			LOOKS, FLEXMEM_CAP_PAGE_TABLES, cmd_va_lookup),
		{}
	},
	.capabilities = FLEXMEM_CAP_PAGE_TABLES,
	.close = close_space,
};
