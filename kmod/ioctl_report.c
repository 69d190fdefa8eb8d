// SPDX-License-Identifier: GPL-2.0
/*
 * The commands that report memory and owners, those that set limits, and TRIM.
 */

#include <linux/capability.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>
#include <linux/flexmem.h>

#include "ioctl.h"
#include "owner.h"
#include "reservation.h"
#include "snapshot.h"

static u64 capabilities(const struct flexmem_device_ops *ops)
{
	return FLEXMEM_CAP_SCRUB |
	       (ops->fault ? FLEXMEM_CAP_MAP : 0) |
	       (ops->read ? FLEXMEM_CAP_RW : 0) |
	       (ops->copy ? FLEXMEM_CAP_COPY : 0) |
	       (ops->vm_map ? FLEXMEM_CAP_PAGE_TABLES : 0);
}

int flexmem_cmd_info(struct flexmem_call *call)
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
		.out_capabilities = capabilities(&table->function.ops),
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

/* The bits of enum flexmem_report_flags for a bit mask of domains. */
static u32 exhausted(const struct flexmem_table *table, u64 domains)
{
	enum flexmem_kind programs = flexmem_table_kind(table,
							FLEXMEM_KIND_PROGRAM);
	u32 flags = 0;

	if (flexmem_table_exhausted(table, FLEXMEM_KIND_TENSOR, domains, 0))
		flags |= FLEXMEM_REPORT_EXHAUSTED;
	if (flexmem_table_exhausted(table, programs, domains, 0))
		flags |= FLEXMEM_REPORT_PROGRAM_EXHAUSTED;
	return flags;
}

/*
 * Fills in the members that do not depend on regions. @domains: bit mask of the
 * domains that are described.
 */
static void describe_domains(struct flexmem_table *table, u64 domains,
			     struct flexmem_domain_info *cmd)
{
	const struct flexmem_domain *domain;

	*cmd = (struct flexmem_domain_info) {
		.size = cmd->size,
		.domain = cmd->domain,
		.out_flags = exhausted(table, domains),
		.out_nr_domains = table->function.nr_domains,
		.out_max_region = flexmem_table_max_region(table, domains),
		.out_next = flexmem_table_next_region(table, domains),
	};
	flexmem_for_each_domain(domain, table, domains) {
		cmd->out_capacity += READ_ONCE(domain->capacity);
		cmd->out_set_aside += domain->desc->set_aside;
		if (domain->id != cmd->domain)
			continue;
		cmd->out_type = domain->desc->type;
		cmd->out_nr_sizes = domain->nr_sizes;
		cmd->out_granule = domain->desc->granule;
		memcpy(cmd->out_sizes, domain->sizes, sizeof(cmd->out_sizes));
	}
}

/* Fills in the other members. No region for programs is reserved. */
static void describe_regions(const struct flexmem_view *view,
			     struct flexmem_domain_info *cmd)
{
	const struct flexmem_sum *tensor = &view->kinds[FLEXMEM_KIND_TENSOR];
	const struct flexmem_sum *program = &view->kinds[FLEXMEM_KIND_PROGRAM];

	cmd->out_regions = tensor->regions + program->regions;
	cmd->out_total = tensor->total + program->total;
	cmd->out_reserved = tensor->closed_free;
	cmd->out_reserved_total = tensor->closed_total;
	cmd->out_free = tensor->free + program->free;
	cmd->out_largest_free = max(tensor->largest, program->largest);
	cmd->out_tensor_largest = tensor->largest;
	cmd->out_program_total = program->total;
	cmd->out_program_free = program->free;
	cmd->out_program_largest = program->largest;
	if (cmd->domain == FLEXMEM_DOMAIN_ALL)
		cmd->out_memory = view->memory;
	if (view->limit != FLEXMEM_NO_LIMIT) {
		cmd->out_flags |= FLEXMEM_REPORT_LIMITED;
		cmd->out_limit = view->limit;
		cmd->out_limit_left = view->limit_left;
	}
}

int flexmem_cmd_domain(struct flexmem_call *call)
{
	struct flexmem_table *table = &call->fdev->table;
	struct flexmem_domain_info *cmd = call->cmd;
	u64 domains = flexmem_table_all(table);
	struct flexmem_view *view;

	if (cmd->domain != FLEXMEM_DOMAIN_ALL) {
		if (cmd->domain >= table->function.nr_domains)
			return -EINVAL;
		domains = BIT_ULL(cmd->domain);
	}
	view = kzalloc(sizeof(*view), GFP_KERNEL_ACCOUNT);
	if (!view)
		return -ENOMEM;
	view->domains = domains;
	flexmem_table_snapshot(table, call->client->account, view);
	describe_domains(table, domains, cmd);
	describe_regions(view, cmd);
	kfree(view);
	cmd->out_freed = flexmem_pressure_number(&table->accounts,
						 &call->client->listener);
	return flexmem_reply(call, sizeof(*cmd));
}

/*
 * Copies a list to the caller. The caller's entries may have another size than
 * the driver's. The part of an entry that the driver does not know is zeroed.
 */
static int put_list(u64 to, u32 capacity, u32 user_entry_size,
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
		rc = put_list(cmd->entries, cmd->count, cmd->entry_size,
			      entries, allocation->nr_chunks, sizeof(*entries));
	}
	kfree(entries);
	flexmem_allocation_put(allocation);
	return rc;
}

int flexmem_cmd_lookup(struct flexmem_call *call)
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

int flexmem_cmd_segments(struct flexmem_call *call)
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
	rc = put_list(cmd->entries, cmd->count, cmd->entry_size, entries,
		      cmd->out_count, sizeof(*entries));
	kfree(entries);
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return rc == -EFAULT ? rc : reply_rc ?: rc;
}

/*
 * Adds the members that are not of the snapshot's moment, and removes the figures
 * that are not for the caller.
 */
static void finish_view(struct flexmem_call *call, struct flexmem_view *view,
			bool admin)
{
	struct flexmem_table *table = &call->fdev->table;

	flexmem_view_hide(view);
	view->sum.out_flags = exhausted(table, table->default_domains);
	view->sum.out_failures = atomic64_read(&call->fdev->failures);
	if (!admin) {
		view->sum.out_flags |= FLEXMEM_REPORT_HIDDEN;
		view->sum.out_allocated = 0;
		view->sum.out_allocs = 0;
		view->sum.out_frees = 0;
		view->sum.out_failures = 0;
	}
}

/*
 * Writes the list of owners in batches, without a lock. Owners may have appeared
 * for which the caller has no room.
 */
static int put_owners(struct flexmem_table *table, struct flexmem_snapshot *cmd,
		      struct flexmem_view *view, bool all)
{
	u32 done = 0;
	int rc;

	for (;;) {
		cmd->out_owner_count = done + view->nr_owners;
		rc = put_list(cmd->owners + (u64)done * cmd->owner_entry_size,
			      cmd->owner_count - done, cmd->owner_entry_size,
			      view->owner, view->nr_owners,
			      sizeof(view->owner[0]));
		if (rc || !all || view->nr_owners < FLEXMEM_VIEW_OWNERS)
			return rc;
		done += view->nr_owners;
		flexmem_table_more_owners(table, view);
	}
}

/*
 * Writes the lists that the caller wants, and then the reply. If the caller has
 * too little room for one of the lists, writes only the reply.
 */
static int put_snapshot(struct flexmem_call *call, struct flexmem_view *view,
			bool all)
{
	struct flexmem_snapshot *cmd = call->cmd;
	int rc, reply_rc;

	*cmd = view->sum;
	if (cmd->region_count < view->nr ||
	    (cmd->owner_count && cmd->owner_count < cmd->out_owner_count))
		rc = -EMSGSIZE;
	else
		rc = put_list(cmd->regions, cmd->region_count,
			      cmd->region_entry_size, view->region, view->nr,
			      sizeof(view->region[0]));
	if (!rc && cmd->owner_count)
		rc = put_owners(&call->fdev->table, cmd, view, all);
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return rc == -EFAULT ? rc : reply_rc ?: rc;
}

int flexmem_cmd_snapshot(struct flexmem_call *call)
{
	struct flexmem_table *table = &call->fdev->table;
	struct flexmem_snapshot *cmd = call->cmd;
	bool admin = ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN);
	bool all = admin && !(cmd->flags & FLEXMEM_SNAPSHOT_OWN);
	struct flexmem_view *view;
	int rc = -ENOMEM;

	if (cmd->flags & ~FLEXMEM_SNAPSHOT_OWN)
		return -EOPNOTSUPP;
	if (cmd->region_entry_size < offsetofend(struct flexmem_region_entry, __reserved) ||
	    cmd->region_entry_size > FLEXMEM_MAX_STRUCT ||
	    cmd->owner_entry_size < offsetofend(struct flexmem_owner_entry, failures) ||
	    cmd->owner_entry_size > FLEXMEM_MAX_STRUCT)
		return -EINVAL;

	view = kzalloc(sizeof(*view), GFP_KERNEL_ACCOUNT);
	if (!view)
		return -ENOMEM;
	if (cmd->owner_count)
		view->owner = kcalloc(FLEXMEM_VIEW_OWNERS, sizeof(*view->owner),
				      GFP_KERNEL_ACCOUNT);
	if (view->owner || !cmd->owner_count) {
		if (all)
			flexmem_owner_forget(&table->accounts);
		view->sum = *cmd;
		flexmem_table_snapshot(table,
				       all ? NULL : call->client->account, view);
		finish_view(call, view, admin);
		rc = put_snapshot(call, view, all);
	}
	kfree(view->owner);
	kfree(view);
	return rc;
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

int flexmem_cmd_set_limit(struct flexmem_call *call)
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

int flexmem_cmd_trim(struct flexmem_call *call)
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

int flexmem_cmd_reserve(struct flexmem_call *call)
{
	struct flexmem_reserve *cmd = call->cmd;
	struct flexmem_table *table = &call->fdev->table;
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;
	struct flexmem_account *account;
	int rc;

	if (cmd->count ? !flexmem_reservation_is_valid(table, cmd->length) :
			 cmd->length)
		return -EINVAL;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	account = flexmem_owner_by_id(&table->accounts, cmd->cgroup);
	if (IS_ERR(account))
		return PTR_ERR(account);
	/*
	 * The command cannot be undone, so this checks first that the reply can
	 * be written.
	 */
	cmd->out_reason = FLEXMEM_REASON_NONE;
	rc = account->parent ? flexmem_reply(call, sizeof(*cmd)) : -EINVAL;
	if (!rc) {
		rc = flexmem_reservation_set(table, account, cmd->length,
					     cmd->count, &reason);
		cmd->out_reason = reason;
		(void)flexmem_reply(call, sizeof(*cmd));
	}
	flexmem_owner_put(account);
	return rc;
}
