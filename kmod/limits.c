// SPDX-License-Identifier: GPL-2.0
/*
 * Quotas are set: what an owner is guaranteed is promised out of what the device
 * can still give, so the worker does it, which can ask the device for that.
 */

#include <linux/slab.h>

#include "compat.h"
#include "job.h"
#include "table.h"

/**
 * struct set_quota - a SET_QUOTA
 * @job: has it done: the capacity may have to be asked for
 * @quota: what was replied
 * @uid: the user, if it is a user's
 * @outdated: the reply would not be true any more, and nothing has changed
 */
struct set_quota {
	struct flexmem_job job;
	struct flexmem_quota quota;
	kuid_t uid;
	bool outdated;
};

/* No region comes or goes meanwhile, and the capacity is the present one. */
static int run_set_quota(struct flexmem_job *job)
{
	struct set_quota *set = container_of(job, struct set_quota, job);
	struct flexmem_accounts *accounts = &job->table->accounts;
	struct flexmem_quota quota = set->quota;
	int rc;

	/* Only under this lock do quotas change, but those of who closes. */
	flexmem_quota_preview(accounts, &quota, set->uid);
	set->outdated = quota.out_limit != set->quota.out_limit ||
			quota.out_guarantee != set->quota.out_guarantee;
	if (set->outdated)
		return 0;
	rc = flexmem_table_refresh(job->table);
	return rc ?: flexmem_quota_set(accounts, &quota, set->uid);
}

static void free_set_quota(struct flexmem_job *job)
{
	kfree(container_of(job, struct set_quota, job));
}

/**
 * flexmem_table_preview_quota - what an owner's quota will be
 * @table: region table
 * @quota: SET_QUOTA; receives the ``out_`` members
 * @uid: the user, if it is a user's
 */
void flexmem_table_preview_quota(struct flexmem_table *table,
				 struct flexmem_quota *quota, kuid_t uid)
{
	flexmem_quota_preview(&table->accounts, quota, uid);
}

/**
 * flexmem_table_set_quota - set an owner's quota
 * @table: region table
 * @replied: as flexmem_table_preview_quota() has filled it in
 * @uid: the user, if it is a user's
 * @outdated: set if what was replied would not be true any more: then nothing has
 *	changed
 *
 * Context: may sleep; the worker does it.
 * Return: 0, -EINTR, -ENODEV, -EIO, -ENOMEM, or an error as flexmem_quota_set()
 * and flexmem_table_refresh() have them.
 */
int flexmem_table_set_quota(struct flexmem_table *table,
			    const struct flexmem_quota *replied, kuid_t uid,
			    bool *outdated)
{
	struct set_quota *set;
	int rc;

	set = kzalloc(sizeof(*set), GFP_KERNEL_ACCOUNT);
	if (!set)
		return -ENOMEM;
	flexmem_job_init(&set->job, table, run_set_quota, free_set_quota);
	set->quota = *replied;
	set->uid = uid;
	if (!flexmem_job_run(&set->job))
		return -EINTR;
	rc = set->job.rc;
	*outdated = set->outdated;
	kfree(set);
	return rc;
}
