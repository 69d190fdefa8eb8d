// SPDX-License-Identifier: GPL-2.0
/* Reports: the commands DOMAIN and SNAPSHOT. */

#include <linux/capability.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/user_namespace.h>

#include "ioctl.h"
#include "parts/snapshot.h"
#include "tenant/owner.h"

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

static int cmd_domain(struct flexmem_call *call)
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
		rc = flexmem_put_list(cmd->owners + (u64)done * cmd->owner_entry_size,
				      cmd->owner_count - done,
				      cmd->owner_entry_size, view->owner,
				      view->nr_owners, sizeof(view->owner[0]));
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
		rc = flexmem_put_list(cmd->regions, cmd->region_count,
				      cmd->region_entry_size, view->region,
				      view->nr, sizeof(view->region[0]));
	if (!rc && cmd->owner_count)
		rc = put_owners(&call->fdev->table, cmd, view, all);
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return rc == -EFAULT ? rc : reply_rc ?: rc;
}

static int cmd_snapshot(struct flexmem_call *call)
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

const struct flexmem_part_ops flexmem_part_reports = {
	.commands = (const struct flexmem_command[]) {
		COMMAND(FLEXMEM_CMD_SNAPSHOT, flexmem_snapshot, out_failures,
			HAS_FLAGS, 0, cmd_snapshot),
		COMMAND(FLEXMEM_CMD_DOMAIN, flexmem_domain_info, out_sizes,
			LOOKS, 0, cmd_domain),
		{}
	},
};
