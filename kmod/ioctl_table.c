// SPDX-License-Identifier: GPL-2.0
/* Commands of the core: INFO, LOOKUP, SEGMENTS, SET_LIMIT and TRIM. */

#include <linux/capability.h>
#include <linux/err.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ioctl.h"
#include "owner.h"

static int cmd_info(struct flexmem_call *call)
{
	struct flexmem_table *table = &call->fdev->table;
	const struct flexmem_settings *settings = &table->settings;
	const struct flexmem_domain *domain = &table->domain[0];
	struct flexmem_info *cmd = call->cmd;

	*cmd = (struct flexmem_info) {
		.size = cmd->size,
		.out_mode = table->function.mode,
		.out_slots = table->hw_slots,
		.out_max_regions = table->slots.nr,
		.out_program_slots = settings->program_slots,
		.out_acquire = settings->acquire,
		.out_order = settings->order,
		.out_fit = settings->fit,
		.out_max_handles = FLEXMEM_MAX_HANDLES,
		.out_max_batch = FLEXMEM_MAX_BATCH,
		.out_state = READ_ONCE(table->function.state),
		.out_alignment = FLEXMEM_ALIGN,
		.out_nr_fallback_sizes = domain->nr_sizes,
		.out_max_alignment = FLEXMEM_MAX_ALIGNMENT,
		.out_granule = domain->desc->granule,
		.out_capacity = flexmem_table_capacity(table),
		.out_max_region =
			flexmem_table_max_region(table, table->default_domains),
		.out_capabilities = table->function.capabilities,
		.out_va_page = table->function.vm_page,
		.out_va_start = table->function.vm_start,
		.out_va_length =
			table->function.vm_end - table->function.vm_start,
	};
	memcpy(cmd->out_fallback_sizes, domain->sizes,
	       sizeof(cmd->out_fallback_sizes));
	strscpy(cmd->out_name, call->fdev->name, sizeof(cmd->out_name));
	return flexmem_reply(call, sizeof(*cmd));
}

/*
 * Copies a list to the caller. The caller's entries may have another size than
 * the driver's. The part of an entry that the driver does not know is zeroed.
 */
int flexmem_put_list(u64 to, u32 capacity, u32 user_entry_size,
		     const void *entries, u32 count, u32 entry_size)
{
	void __user *uentry = u64_to_user_ptr(to);
	u32 size = min(user_entry_size, entry_size), i;

	if (capacity < count)
		return -EMSGSIZE;
	for (i = 0; i < count; i++) {
		if (copy_to_user(uentry, entries + i * entry_size, size) ||
		    clear_user(uentry + size, user_entry_size - size))
			return -EFAULT;
		uentry += user_entry_size;
	}
	return 0;
}

/* Copies out the list of an allocation's chunks. */
static int put_chunks(struct flexmem_call *call, struct flexmem_lookup *cmd)
{
	struct flexmem_allocation *allocation;
	struct flexmem_chunk_entry *entries;
	unsigned int i;
	int rc = -ENOMEM;

	allocation = flexmem_client_allocation(call->client, cmd->handle);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	entries = kcalloc(allocation->nr_chunks, sizeof(*entries),
			  GFP_KERNEL_ACCOUNT);
	if (entries) {
		for (i = 0; i < allocation->nr_chunks; i++)
			flexmem_allocation_describe(allocation, i, &entries[i]);
		rc = flexmem_put_list(cmd->entries, cmd->count, cmd->entry_size,
				      entries, allocation->nr_chunks,
				      sizeof(*entries));
	}
	kfree(entries);
	flexmem_allocation_put(allocation);
	return rc;
}

static int cmd_lookup(struct flexmem_call *call)
{
	struct flexmem_lookup *cmd = call->cmd;
	int rc, reply_rc;

	if (cmd->__reserved)
		return -EOPNOTSUPP;
	if (cmd->count &&
	    (cmd->entry_size < offsetofend(struct flexmem_chunk_entry, __reserved) ||
	     cmd->entry_size > FLEXMEM_MAX_STRUCT))
		return -EINVAL;
	rc = flexmem_client_lookup(call->client, cmd->handle, cmd);
	if (!rc && cmd->count)
		rc = put_chunks(call, cmd);
	if (rc && rc != -EMSGSIZE)
		return rc;
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return reply_rc ?: rc;
}

static int cmd_segments(struct flexmem_call *call)
{
	struct flexmem_segments *cmd = call->cmd;
	struct flexmem_segment_entry *entries;
	int rc, reply_rc;

	if (cmd->__reserved)
		return -EOPNOTSUPP;
	if (cmd->entry_size < offsetofend(struct flexmem_segment_entry, length) ||
	    cmd->entry_size > FLEXMEM_MAX_STRUCT)
		return -EINVAL;

	entries = kcalloc(FLEXMEM_MAX_SLOTS, sizeof(*entries),
			  GFP_KERNEL_ACCOUNT);
	if (!entries)
		return -ENOMEM;
	cmd->out_count = flexmem_slots_read(&call->fdev->table.slots, entries,
					    &cmd->out_generation);
	rc = flexmem_put_list(cmd->entries, cmd->count, cmd->entry_size, entries,
			      cmd->out_count, sizeof(*entries));
	kfree(entries);
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return rc == -EFAULT ? rc : reply_rc ?: rc;
}

/*
 * Sets the limit for each function. The reply was written. If no limit can be
 * set, takes the reply back.
 */
static int set_all(struct flexmem_call *call)
{
	struct flexmem_resource_limit *cmd = call->cmd;
	int rc = flexmem_limit_set_all(cmd);

	if (rc) {
		cmd->out_limit = 0;
		cmd->out_used = 0;
		rc = flexmem_reply(call, sizeof(*cmd)) ?: rc;
	}
	return rc;
}

static int cmd_set_limit(struct flexmem_call *call)
{
	struct flexmem_resource_limit *cmd = call->cmd;
	struct flexmem_accounts *accounts = &call->fdev->table.accounts;
	struct flexmem_account *account;
	int rc;

	if (cmd->flags & ~FLEXMEM_LIMIT_ALL_FUNCTIONS)
		return -EOPNOTSUPP;
	if ((cmd->scope != FLEXMEM_SCOPE_CGROUP &&
	     cmd->scope != FLEXMEM_SCOPE_DEFAULT) ||
	    cmd->resource >= FLEXMEM_NR_RESOURCES ||
	    (cmd->scope == FLEXMEM_SCOPE_DEFAULT && cmd->cgroup))
		return -EINVAL;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	cmd->resource = array_index_nospec(cmd->resource, FLEXMEM_NR_RESOURCES);

	flexmem_owner_forget(accounts);
	account = flexmem_limit_find(accounts, cmd);
	if (IS_ERR(account))
		return PTR_ERR(account);
	/* The new limit cannot be undone, so the reply is written first. */
	rc = flexmem_reply(call, sizeof(*cmd));
	if (!rc && cmd->flags & FLEXMEM_LIMIT_ALL_FUNCTIONS)
		rc = set_all(call);
	else if (!rc)
		flexmem_limit_set(accounts, account, cmd);
	flexmem_owner_put(account);
	return rc;
}

static int cmd_trim(struct flexmem_call *call)
{
	struct flexmem_trim *cmd = call->cmd;
	int rc;

	if (cmd->__reserved)
		return -EOPNOTSUPP;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	/* A release cannot be undone: can the reply be written? */
	cmd->out_regions = 0;
	cmd->out_bytes = 0;
	rc = flexmem_reply(call, sizeof(*cmd));
	if (rc)
		return rc;
	rc = flexmem_table_trim(&call->fdev->table, &cmd->out_regions,
				&cmd->out_bytes);
	/* Ignores EFAULT: the first reply could be written. */
	(void)flexmem_reply(call, sizeof(*cmd));
	return rc;
}

const struct flexmem_part_ops flexmem_part_table = {
	.commands = (const struct flexmem_command[]) {
		COMMAND(FLEXMEM_CMD_INFO, flexmem_info, out_name, LOOKS,
			cmd_info),
		COMMAND(FLEXMEM_CMD_LOOKUP, flexmem_lookup, out_size, LOOKS,
			cmd_lookup),
		COMMAND(FLEXMEM_CMD_SEGMENTS, flexmem_segments, out_generation,
			LOOKS, cmd_segments),
		COMMAND(FLEXMEM_CMD_TRIM, flexmem_trim, out_bytes, CHANGES,
			cmd_trim),
		COMMAND(FLEXMEM_CMD_SET_LIMIT, flexmem_resource_limit, out_used,
			CHANGES | HAS_FLAGS, cmd_set_limit),
		{}
	},
};
