// SPDX-License-Identifier: GPL-2.0
/*
 * An allocation is extended where it is, or cut short.
 *
 * Like any allocation a change of size is first prepared and then made: what
 * can fail, and the copy of the reply to user space, come before anybody can
 * see a difference. In between nobody can use, free or resize the allocation:
 * that is EBUSY. And it begins only if nobody uses it: so who has a reference
 * to an allocation may rely on its size.
 */

#include <linux/align.h>
#include <linux/err.h>

#include "client.h"
#include "compat.h"
#include "resize.h"
#include "table.h"

/* The allocation of a handle, for us alone. */
static struct flexmem_allocation *begin(struct flexmem_client *client,
					struct flexmem_resize *cmd)
{
	struct flexmem_allocation *allocation;
	int rc = 0;

	cmd->out_reason = FLEXMEM_REASON_NONE;
	cmd->out_size = 0;
	cmd->out_max = 0;
	xa_lock(&client->handles);
	allocation = flexmem_client_find(client, cmd->handle);
	if (allocation)
		cmd->out_size = allocation->size;
	/* Further references are taken under the lock, or by who has one. */
	if (!cmd->length)
		rc = -EINVAL;
	else if (!allocation)
		rc = -ENOENT;
	else if (allocation->resizing || refcount_read(&allocation->refs) > 1)
		rc = -EBUSY;
	else
		allocation->resizing = true;
	xa_unlock(&client->handles);
	return rc ? ERR_PTR(rc) : allocation;
}

static void end(struct flexmem_resizing *resizing, u64 size)
{
	struct flexmem_allocation *allocation = resizing->allocation;
	struct flexmem_client *client = resizing->client;

	flexmem_spare_drop(&resizing->spare);
	xa_lock(&client->handles);
	client->used += size - allocation->size;
	client->peak = max(client->peak, client->used);
	allocation->size = size;
	allocation->resizing = false;
	xa_unlock(&client->handles);
}

/* Gets the bytes that are to be added, as a block of their own. */
static int grow(struct flexmem_resizing *resizing, struct flexmem_resize *cmd)
{
	struct flexmem_allocation *allocation = resizing->allocation;
	enum flexmem_reason refusal = FLEXMEM_REASON_NONE;
	struct flexmem_region *region = allocation->region;
	u64 room;
	int rc;

	room = flexmem_region_extend(region, allocation->block,
				     resizing->size - allocation->size,
				     allocation->kind, allocation->owner,
				     &resizing->spare, &resizing->tail,
				     &refusal);
	if (resizing->tail) {
		rc = flexmem_allocation_clean(allocation, resizing->tail);
		if (rc)
			resizing->tail = NULL;
		return rc;
	}
	rc = flexmem_region_error(region);
	if (rc)
		return rc;
	if (refusal) {
		cmd->out_reason = refusal;
		return -ENOMEM;
	}
	cmd->out_max = ALIGN_DOWN(allocation->size + room,
				  flexmem_granule_of(allocation->flags));
	return -EAGAIN;
}

/**
 * flexmem_resize_prepare - get what is needed to change an allocation's size
 * @client: client
 * @cmd: command; receives the ``out_`` members, on failure too
 * @resizing: receives what flexmem_resize_commit() or flexmem_resize_abort()
 *	needs
 *
 * Context: may sleep.
 * Return: 0; or an errno as the ABI header has them, and then nothing has
 * changed.
 */
int flexmem_resize_prepare(struct flexmem_client *client,
			   struct flexmem_resize *cmd,
			   struct flexmem_resizing *resizing)
{
	struct flexmem_allocation *allocation;
	int rc;

	*resizing = (struct flexmem_resizing) {};
	allocation = begin(client, cmd);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	resizing->client = client;
	resizing->allocation = allocation;
	resizing->size = flexmem_round_length(allocation->flags, cmd->length);
	rc = flexmem_region_error(allocation->region);
	if (!rc && resizing->size != allocation->size)
		rc = flexmem_spare_fill(&resizing->spare, 1);
	if (!rc && resizing->size > allocation->size)
		rc = grow(resizing, cmd);
	if (rc)
		goto end;
	cmd->out_size = resizing->size;
	return 0;

end:
	end(resizing, allocation->size);
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_resize_prepare);

/**
 * flexmem_resize_commit - change the size. Cannot fail
 * @resizing: prepared; nothing is left of it
 */
void flexmem_resize_commit(struct flexmem_resizing *resizing)
{
	struct flexmem_allocation *allocation = resizing->allocation;
	struct flexmem_account *account = allocation->owner;

	if (resizing->tail)
		flexmem_region_join(allocation->region, allocation->block,
				    resizing->tail, account);
	else if (resizing->size < allocation->size)
		flexmem_region_shrink(allocation->region, allocation->block,
				      resizing->size, allocation->kind,
				      account, &resizing->spare);
	end(resizing, resizing->size);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_resize_commit);

/**
 * flexmem_resize_abort - as if it had never been asked for
 * @resizing: prepared; nothing is left of it
 */
void flexmem_resize_abort(struct flexmem_resizing *resizing)
{
	struct flexmem_allocation *allocation = resizing->allocation;

	if (resizing->tail)
		flexmem_region_free(allocation->region, resizing->tail,
				    allocation->kind, allocation->owner, false);
	end(resizing, allocation->size);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_resize_abort);
