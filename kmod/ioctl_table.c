// SPDX-License-Identifier: GPL-2.0
/* The commands about the regions and slots of a function: LEASE and TRIM. */

#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/sched/signal.h>
#include <linux/flexmem.h>

#include "ioctl.h"

/*
 * The error if the device function is wedged or removed, or the caller was
 * killed. The slots of a wedged or removed function can still be read, but not
 * leased.
 */
static int lease_error(const struct flexmem_table *table)
{
	return flexmem_function_fatal(&table->function) ?:
	       fatal_signal_pending(current) ? -EINTR : 0;
}

static int lease_take(struct flexmem_call *call)
{
	struct flexmem_table *table = &call->fdev->table;
	struct flexmem_lease *cmd = call->cmd;
	int rc;

	/*
	 * A lease cannot be undone, because another thread of the client may
	 * have renewed it before the undo. So the reply is written first, and
	 * must still be true when the lease is taken. The loop ends, because
	 * another round is needed only if a slot was filled or emptied in
	 * between.
	 */
	cmd->out_lease_ms = table->settings.lease_ms;
	do {
		rc = lease_error(table);
		if (rc)
			return rc;
		cmd->out_generation = flexmem_slots_generation(&table->slots);
		rc = flexmem_reply(call, sizeof(*cmd));
		if (rc)
			return rc;
		rc = flexmem_lease_take(&table->slots, &call->client->lease,
					&table->settings, cmd->out_generation);
	} while (rc == -EAGAIN);
	return rc;
}

static int lease_drop(struct flexmem_call *call)
{
	struct flexmem_slots *slots = &call->fdev->table.slots;
	struct flexmem_lease_hold *lease = &call->client->lease;
	struct flexmem_lease *cmd = call->cmd;
	int rc;

	if (!flexmem_lease_held(slots, lease))
		return -EINVAL;
	cmd->out_lease_ms = 0;
	cmd->out_generation = flexmem_slots_generation(slots);
	rc = flexmem_reply(call, sizeof(*cmd));
	/*
	 * The result is ignored, because a lease that has expired by now need
	 * not be dropped.
	 */
	if (!rc)
		flexmem_lease_drop(slots, lease);
	return rc;
}

int flexmem_cmd_lease(struct flexmem_call *call)
{
	struct flexmem_lease *cmd = call->cmd;

	switch (cmd->op) {
	case FLEXMEM_LEASE_TAKE:
		return lease_take(call);
	case FLEXMEM_LEASE_DROP:
		return lease_drop(call);
	default:
		return -EINVAL;
	}
}

int flexmem_cmd_trim(struct flexmem_call *call)
{
	struct flexmem_trim *cmd = call->cmd;
	int rc;

	if (cmd->flags & ~FLEXMEM_TRIM_BREAK_LEASES || cmd->__reserved)
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
	rc = flexmem_table_trim(&call->fdev->table,
				cmd->flags & FLEXMEM_TRIM_BREAK_LEASES,
				&cmd->out_regions, &cmd->out_bytes);
	/*
	 * Ignores EFAULT: the TRIM is done, and the first reply could be
	 * written.
	 */
	(void)flexmem_reply(call, sizeof(*cmd));
	return rc;
}
