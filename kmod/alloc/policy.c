// SPDX-License-Identifier: GPL-2.0
/*
 * Policies: which domains an allocation comes from, and how many chunks it has.
 * Each policy is one row of a table.
 */

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/nospec.h>

#include "alloc/policy.h"
#include "alloc/request.h"
#include "region/table.h"

enum naming {
	NAMES_NONE,
	NAMES_SOME,
	MAY_NAME_SOME,
};

/**
 * struct flexmem_policy_ops - properties of a policy
 * @naming: whether the caller names domains. An allocation without named
 *	domains comes from device memory
 * @spills: if the named domains have no room, the allocation comes from device
 *	memory
 * @spreads: the allocation gets one chunk in each of at least two domains
 */
struct flexmem_policy_ops {
	enum naming naming;
	bool spills;
	bool spreads;
};

static const struct flexmem_policy_ops policies[] = {
	[FLEXMEM_POLICY_DEFAULT] = { .naming = NAMES_NONE },
	[FLEXMEM_POLICY_BIND] = { .naming = NAMES_SOME },
	[FLEXMEM_POLICY_PREFERRED] = { .naming = NAMES_SOME, .spills = true },
	[FLEXMEM_POLICY_INTERLEAVE] = {
		.naming = MAY_NAME_SOME,
		.spreads = true,
	},
};

static bool is_valid_naming(enum naming naming, u64 asked)
{
	return naming == MAY_NAME_SOME || !asked == (naming == NAMES_NONE);
}

/*
 * Chooses domains and the number of chunks.
 * @policy: enum flexmem_policy, from a user. @asked: bit mask of the domains
 * that the user names. @request: receives its members about domains and chunks.
 * Return: 0; -EOPNOTSUPP if there is no such policy; or -EINVAL if @asked does
 * not suit the policy.
 */
int flexmem_policy_apply(const struct flexmem_table *table, u32 policy,
			 u64 asked, struct flexmem_request *request)
{
	const struct flexmem_policy_ops *ops;

	if (policy >= ARRAY_SIZE(policies))
		return -EOPNOTSUPP;
	ops = &policies[array_index_nospec(policy, ARRAY_SIZE(policies))];
	if (!is_valid_naming(ops->naming, asked) ||
	    asked & ~flexmem_table_all(table))
		return -EINVAL;
	request->domains = asked ?: table->default_domains;
	request->first = request->domains;
	request->chunks = 1;
	request->reuses = ops->spills;
	if (ops->spills)
		request->domains |= table->default_domains;
	if (ops->spreads)
		request->chunks = hweight64(request->domains);
	return ops->spreads && request->chunks < 2 ? -EINVAL : 0;
}
