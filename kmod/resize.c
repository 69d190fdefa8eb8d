// SPDX-License-Identifier: GPL-2.0
/*
 * Extends or shortens an allocation in place.
 *
 * A change of size is first prepared and then made, as an allocation is: every
 * step that can fail, and the copy of the reply to user space, come before any
 * caller can see a difference. In between all other commands on the allocation
 * fail with EBUSY. A change begins only if there is no reference but the
 * handle's. So the size is constant for the holder of a reference.
 */

#include <linux/align.h>
#include <linux/err.h>

#include "client.h"
#include "resize.h"

/* Reserves the allocation of a handle for this change. */
static struct flexmem_allocation *begin(struct flexmem_client *client,
					struct flexmem_resize *cmd)
{
	struct flexmem_allocation *allocation;
	int rc = 0;

	cmd->out_reason = FLEXMEM_REASON_NONE;
	cmd->out_size = 0;
	cmd->out_max = 0;
	spin_lock(&client->handles.lock);
	allocation = flexmem_client_find(client, cmd->handle);
	if (allocation)
		cmd->out_size = allocation->size;
	/*
	 * A reference is taken under the lock, or by the holder of another
	 * one: with just one reference here, the count cannot grow.
	 */
	if (!cmd->length)
		rc = -EINVAL;
	else if (!allocation)
		rc = -ENOENT;
	else if (allocation->resizing || refcount_read(&allocation->refs) > 1)
		rc = -EBUSY;
	else
		allocation->resizing = true;
	spin_unlock(&client->handles.lock);
	return rc ? ERR_PTR(rc) : allocation;
}

static void end(struct flexmem_resizing *resizing, u64 size)
{
	struct flexmem_allocation *allocation = resizing->allocation;
	struct flexmem_client *client = resizing->client;

	spin_lock(&client->handles.lock);
	client->used += size - allocation->size;
	client->peak = max(client->peak, client->used);
	allocation->size = size;
	if (allocation->nr_chunks == 1)
		allocation->chunks[0].size = size;
	allocation->resizing = false;
	spin_unlock(&client->handles.lock);
}

/* Reports why the size could not change, or which size is possible. */
static void explain(const struct flexmem_resizing *resizing, int error,
		    struct flexmem_resize *cmd)
{
	const struct flexmem_allocation *allocation = resizing->allocation;
	const struct flexmem_extension *extension = &resizing->extension;

	if (error == -ENOMEM)
		cmd->out_reason = extension->refusal;
	if (error == -EAGAIN)
		cmd->out_max = ALIGN_DOWN(allocation->size + extension->room,
					  flexmem_granule_of(allocation->flags));
}

/**
 * flexmem_resize_prepare - prepare a change of an allocation's size
 * @client: client
 * @cmd: command; receives the ``out_`` members, on failure too
 * @resizing: receives the state for flexmem_resize_commit() or
 *	flexmem_resize_abort()
 *
 * Context: may sleep.
 * Return: 0; or an errno of the ABI header, and nothing has changed.
 */
int flexmem_resize_prepare(struct flexmem_client *client,
			   struct flexmem_resize *cmd,
			   struct flexmem_resizing *resizing)
{
	struct flexmem_allocation *allocation;
	u64 size;
	int rc;

	*resizing = (struct flexmem_resizing) {};
	allocation = begin(client, cmd);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	resizing->client = client;
	resizing->allocation = allocation;
	size = flexmem_round_length(allocation->flags, cmd->length);
	rc = flexmem_allocation_prepare(allocation, size, &resizing->extension);
	if (rc) {
		explain(resizing, rc, cmd);
		flexmem_resize_abort(resizing);
		return rc;
	}
	cmd->out_size = size;
	return 0;
}

/**
 * flexmem_resize_commit - change the size. Cannot fail
 * @resizing: prepared; nothing is left of it
 */
void flexmem_resize_commit(struct flexmem_resizing *resizing)
{
	flexmem_allocation_commit(resizing->allocation, &resizing->extension);
	end(resizing, resizing->extension.size);
}

/**
 * flexmem_resize_abort - undo flexmem_resize_prepare()
 * @resizing: prepared; nothing is left of it
 */
void flexmem_resize_abort(struct flexmem_resizing *resizing)
{
	flexmem_allocation_abort(resizing->allocation, &resizing->extension);
	end(resizing, resizing->allocation->size);
}
