// SPDX-License-Identifier: GPL-2.0
/*
 * Reservations: regions that are set aside for a cgroup and those below it.
 *
 * A reserved region is a region of the table like any other. Placement tries it
 * first for the account that it names and those below it, and skips it for
 * others. TRIM does not release it. It is acquired when the reservation is made,
 * so a reservation holds whatever other tenants do.
 *
 * A reset takes all regions away. A reservation stays, and its regions are
 * acquired again before any other. If the device grants fewer regions then, the
 * cgroup has fewer than it should, which a snapshot shows.
 */

#include <linux/bitops.h>
#include <linux/capability.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/slab.h>

#include "ioctl.h"
#include "parts/reservation.h"
#include "region/job.h"
#include "tenant/owner.h"

/**
 * struct reserving - a RESERVE
 * @job: job of the worker that runs it
 * @account: account of the cgroup; a reference is held
 * @size: bytes of each region
 * @count: number of regions
 * @reason: why the regions could not be reserved
 */
struct reserving {
	struct flexmem_job job;
	struct flexmem_account *account;
	u64 size;
	unsigned int count;
	enum flexmem_reason reason;
};

static void give_back(struct flexmem_table *table, u64 slots)
{
	struct flexmem_region *region;

	for (; slots; slots &= slots - 1) {
		region = flexmem_region_at(table, __ffs64(slots));
		spin_lock(&region->lock);
		flexmem_region_unreserve(region);
		spin_unlock(&region->lock);
	}
	flexmem_accounts_freed(&table->accounts);
}

/*
 * Reserves existing regions until @count regions of @size bytes are reserved.
 * Adds their slots to @slots.
 * @own: take only regions that are reserved for @account already.
 */
static int reserve_existing(struct flexmem_table *table,
			    struct flexmem_account *account, u64 size,
			    unsigned int count, bool own, u64 *slots)
{
	struct flexmem_region *region;
	unsigned int slot;
	int rc;

	for (slot = 0; slot < table->slots.nr && hweight64(*slots) < count;
	     slot++) {
		region = flexmem_region_at(table, slot);
		if (!region || region->kind != FLEXMEM_KIND_TENSOR ||
		    region->mem.size != size ||
		    !(BIT_ULL(region->domain->id) & table->default_domains) ||
		    (own && region->reserved_for != account))
			continue;
		rc = flexmem_region_reserve(region, account);
		if (!rc)
			*slots |= BIT_ULL(slot);
		else if (rc != -EBUSY)
			return rc;
	}
	return 0;
}

/*
 * Keeps regions of an earlier reservation, then reserves empty regions, and
 * then new ones, until @count regions of @size bytes are reserved. *@slots
 * receives a bit mask of the slots of all reserved regions, also after an error.
 */
static int reserve(struct flexmem_table *table, struct flexmem_account *account,
		   u64 size, unsigned int count, u64 *slots)
{
	unsigned int slot;
	int rc;

	*slots = 0;
	rc = reserve_existing(table, account, size, count, true, slots);
	rc = rc ?: reserve_existing(table, account, size, count, false, slots);
	if (rc)
		return rc;
	while (hweight64(*slots) < count) {
		if (flexmem_account_refuses_region(account, NULL))
			return -EDQUOT;
		rc = flexmem_region_add(table, FLEXMEM_KIND_TENSOR,
					table->default_domains, size, account,
					&slot);
		if (rc)
			return rc;
		*slots |= BIT_ULL(slot);
	}
	return 0;
}

/* The list of reservations holds a reference to the account. Cannot fail. */
static void record(struct flexmem_table *table, struct flexmem_account *account,
		   u64 size, unsigned int count)
{
	unsigned int before = account->reservation;

	account->reservation_size = size;
	account->told = false;
	spin_lock(&table->accounts.lock);
	account->reservation = count;
	spin_unlock(&table->accounts.lock);
	if (count && !before) {
		list_add_tail(&account->reserves, &table->reservations);
		flexmem_owner_get(account);
	} else if (before && !count) {
		list_del(&account->reserves);
		flexmem_owner_put(account);
	}
}

static enum flexmem_reason explain(const struct flexmem_table *table,
				   u64 size, int rc)
{
	if (rc == -EDQUOT)
		return FLEXMEM_REASON_REGION_LIMIT;
	return flexmem_table_exhausted(table, FLEXMEM_KIND_TENSOR,
				       table->default_domains, size) ?:
	       FLEXMEM_REASON_CAPACITY;
}

/*
 * Ends the reservations of removed cgroups. A caller that finds a region
 * reserved calls this before it fails its request: the cgroup may be gone.
 * Context: under acquire_lock. May sleep.
 */
static void forget(struct flexmem_table *table)
{
	struct flexmem_account *account, *next;

	lockdep_assert_held(&table->acquire_lock);
	list_for_each_entry_safe(account, next, &table->reservations, reserves) {
		if (!flexmem_account_is_removed(account))
			continue;
		give_back(table, account->reserved);
		record(table, account, 0, 0);
	}
}

/* Either all regions are reserved, or no reservation changes. */
static int run(struct flexmem_job *job)
{
	struct reserving *reserving = container_of(job, struct reserving, job);
	struct flexmem_account *account = reserving->account;
	struct flexmem_table *table = job->table;
	u64 before, slots;
	int rc;

	forget(table);
	if (flexmem_account_is_removed(account))
		return -ENOENT;
	rc = flexmem_table_refresh(table);
	if (rc)
		return rc;
	before = account->reserved;
	rc = reserve(table, account, reserving->size, reserving->count, &slots);
	if (!rc && flexmem_job_is_abandoned(job))
		rc = -EINTR;
	if (rc) {
		give_back(table, account->reserved & ~before);
		if (rc != -ENOSPC && rc != -EDQUOT)
			return rc;
		reserving->reason = explain(table, reserving->size, rc);
		return -ENOMEM;
	}
	give_back(table, before & ~slots);
	record(table, account, reserving->size, reserving->count);
	return 0;
}

static void free_reserving(struct flexmem_job *job)
{
	struct reserving *reserving = container_of(job, struct reserving, job);

	flexmem_owner_put(reserving->account);
	kfree(reserving);
}

/* Whether a default domain has regions of @size bytes. */
bool flexmem_reservation_is_valid(const struct flexmem_table *table, u64 size)
{
	const struct flexmem_domain *domain;
	unsigned int i;

	flexmem_for_each_domain(domain, table, table->default_domains)
		for (i = 0; i < domain->nr_sizes; i++)
			if (domain->sizes[i] == size)
				return true;
	return false;
}

/*
 * Reserves regions for a cgroup. Reserves existing empty regions first, and
 * then new ones. Regions of the cgroup's earlier reservation that are too many
 * or have another size are open to all afterwards; the allocations in them
 * stay.
 * @account: account of the cgroup, not of the root. @size: bytes of each
 * region; see flexmem_reservation_is_valid(). @count: how many regions the
 * cgroup has afterwards; 0 ends its reservation. @reason: on -ENOMEM: receives
 * the reason; FLEXMEM_REASON_NONE if the kernel has no memory.
 * Context: may sleep while the worker makes the reservation. Return: 0;
 * -ENOMEM; -ENOENT if the cgroup was removed; -EINTR if the caller was killed;
 * -ENODEV; or an error of the firmware. After an error no reservation has
 * changed, but there may be new empty regions.
 */
int flexmem_reservation_set(struct flexmem_table *table,
			    struct flexmem_account *account, u64 size,
			    unsigned int count, enum flexmem_reason *reason)
{
	struct reserving *reserving;
	int rc;

	*reason = FLEXMEM_REASON_NONE;
	reserving = kzalloc(sizeof(*reserving), GFP_KERNEL_ACCOUNT);
	if (!reserving)
		return -ENOMEM;
	flexmem_job_init(&reserving->job, table, run, free_reserving);
	reserving->account = flexmem_owner_get(account);
	reserving->size = size;
	reserving->count = count;
	if (!flexmem_job_run(&reserving->job))
		return -EINTR;
	rc = reserving->job.rc;
	*reason = reserving->reason;
	free_reserving(&reserving->job);
	return rc;
}

/* Acquires again what reservations lack. */
static void restore(struct flexmem_table *table)
{
	struct flexmem_account *account;
	u64 slots;
	int rc;

	forget(table);
	list_for_each_entry(account, &table->reservations, reserves) {
		if (hweight64(account->reserved) == account->reservation)
			continue;
		rc = flexmem_table_refresh(table);
		rc = rc ?: reserve(table, account, account->reservation_size,
				   account->reservation, &slots);
		if (rc && !account->told)
			dev_warn(table->function.dev,
				 "cgroup %llu has %u of its %u reserved regions: error %d\n",
				 account->id,
				 (unsigned int)hweight64(account->reserved),
				 account->reservation, rc);
		account->told = rc;
	}
}

static int cmd_reserve(struct flexmem_call *call)
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

const struct flexmem_part_ops flexmem_part_reservations = {
	.commands = (const struct flexmem_command[]) {
		COMMAND(FLEXMEM_CMD_RESERVE, flexmem_reserve, out_reason,
			CHANGES, 0, cmd_reserve),
		{}
	},
	.work = restore,
	.trim = forget,
};
