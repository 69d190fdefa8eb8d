// SPDX-License-Identifier: GPL-2.0
/*
 * Extends or shortens an allocation in place.
 *
 * A change of size is first prepared and then made. Every step that can fail,
 * including the copy of the reply to user space, comes before any caller can
 * see the new size. Between the two phases all other commands on the allocation
 * fail with EBUSY. A change begins only if the handle has the only reference to
 * the allocation. So the size never changes while another task holds a
 * reference.
 */

#include <linux/align.h>
#include <linux/err.h>
#include <linux/limits.h>

#include "block/spare.h"
#include "ioctl.h"
#include "parts/leaving.h"
#include "parts/resize.h"
#include "tenant/owner.h"

/* Finds the allocation of a handle, and marks it as being resized. */
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
	 * A further reference can be taken only under this lock, or by a task
	 * that holds a reference already. So if the handle has the only
	 * reference, the count cannot grow.
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
	spin_lock(&resizing->client->handles.lock);
	resizing->allocation->size = size;
	resizing->allocation->resizing = false;
	spin_unlock(&resizing->client->handles.lock);
	flexmem_spare_drop(&resizing->spare, NULL);
}

/* Allocates the additional bytes as a separate block. */
static int get_tail(struct flexmem_resizing *resizing,
		    struct flexmem_resize *cmd)
{
	struct flexmem_allocation *allocation = resizing->allocation;
	struct flexmem_block *chunk = allocation->chunks[0];
	struct flexmem_account *owner = allocation->owner;
	u64 more = resizing->size - allocation->size;
	bool may_fit = resizing->size <= chunk->region->mem.size;
	enum flexmem_reason refusal = FLEXMEM_REASON_NONE;
	u64 room;
	int rc;

	/*
	 * Even a short charge can make another caller with the same limit fail.
	 * So a growth for which the region certainly has no room is not
	 * charged.
	 */
	if (may_fit)
		refusal = flexmem_charge(owner, more, 0, &resizing->refused);
	/*
	 * If a limit forbids the growth, this call only computes the room: no
	 * region has U64_MAX bytes.
	 */
	room = flexmem_region_extend(chunk, refusal ? U64_MAX : more,
				     &resizing->spare, &resizing->tail);
	if (resizing->tail) {
		rc = flexmem_chunk_clean(allocation, resizing->tail);
		if (rc)
			resizing->tail = NULL;
		return rc;
	}
	/* Another allocation may have room in its place, so any refusal counts. */
	if (may_fit && !refusal &&
	    flexmem_uncharge_failed(owner, more, 0, U64_MAX))
		flexmem_accounts_freed(owner->accounts);
	rc = flexmem_region_error(chunk->region);
	if (rc)
		return rc;
	if (refusal && more <= room) {
		cmd->out_reason = refusal;
		return -ENOMEM;
	}
	cmd->out_max = ALIGN_DOWN(allocation->size + room,
				  flexmem_unit_of(allocation->flags,
						  allocation->alignment));
	return -EAGAIN;
}

static int prepare(struct flexmem_resizing *resizing,
		   struct flexmem_resize *cmd)
{
	struct flexmem_allocation *allocation = resizing->allocation;
	u64 size = resizing->size;
	int rc;

	if (allocation->nr_chunks > 1)
		return -EOPNOTSUPP;
	rc = flexmem_allocation_error(allocation);
	/*
	 * A shorter allocation would free bytes that a device program may still
	 * use, because its fence has not signalled.
	 */
	if (!rc && size < allocation->size &&
	    flexmem_allocation_is_in_flight(allocation))
		rc = -EBUSY;
	if (!rc && size != allocation->size)
		rc = flexmem_spare_fill(&resizing->spare, 1, NULL);
	if (!rc && size > allocation->size)
		rc = get_tail(resizing, cmd);
	return rc;
}

/*
 * Prepares a change of an allocation's size.
 * @cmd: receives the ``out_`` members, even on failure. @resizing: receives the
 * state for flexmem_resize_commit() or flexmem_resize_abort().
 * Context: may sleep. Return: 0; or an errno that the ABI header lists: then
 * nothing has changed.
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
	resizing->size = flexmem_round_length(allocation->flags,
					      allocation->alignment,
					      cmd->length);
	rc = prepare(resizing, cmd);
	if (rc)
		flexmem_resize_abort(resizing);
	else
		cmd->out_size = resizing->size;
	return rc;
}

/* Changes the size. Cannot fail. Ends @resizing. */
void flexmem_resize_commit(struct flexmem_resizing *resizing)
{
	const struct flexmem_allocation *allocation = resizing->allocation;
	struct flexmem_client *client = resizing->client;

	if (resizing->tail) {
		flexmem_pressure_grew(&client->table->accounts,
				      &client->listener,
				      resizing->size - allocation->size);
		flexmem_region_join(allocation->chunks[0], resizing->tail);
	} else if (resizing->size < allocation->size) {
		flexmem_region_shrink(allocation->chunks[0], resizing->size,
				      &resizing->spare);
	}
	end(resizing, resizing->size);
}

/* Undoes flexmem_resize_prepare(). Ends @resizing. */
void flexmem_resize_abort(struct flexmem_resizing *resizing)
{
	if (resizing->tail)
		flexmem_region_free(resizing->tail, 0, NULL);
	end(resizing, resizing->allocation->size);
}

static int cmd_resize(struct flexmem_call *call)
{
	struct flexmem_resize *cmd = call->cmd;
	struct flexmem_resizing resizing;
	int rc, reply_rc;

	rc = flexmem_resize_prepare(call->client, cmd, &resizing);
	cmd->out_refusal = (struct flexmem_refusal) {};
	if (cmd->out_reason)
		flexmem_owner_tell_refusal(call->client->account,
					   &resizing.refused,
					   &cmd->out_refusal);
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	if (rc)
		return reply_rc ?: rc;
	if (reply_rc)
		flexmem_resize_abort(&resizing);
	else
		flexmem_resize_commit(&resizing);
	return reply_rc;
}

const struct flexmem_part_ops flexmem_part_resize = {
	.commands = (const struct flexmem_command[]) {
		COMMAND(FLEXMEM_CMD_RESIZE, flexmem_resize, out_max, CHANGES, 0,
			cmd_resize),
		{}
	},
};
