/* SPDX-License-Identifier: GPL-2.0 */
/* Policies: which domains an allocation comes from. */
#ifndef _FLEXMEM_POLICY_H
#define _FLEXMEM_POLICY_H

#include <linux/types.h>

struct flexmem_request;
struct flexmem_table;

int flexmem_policy_apply(const struct flexmem_table *table, u32 policy,
			 u64 asked, struct flexmem_request *request);

#endif /* _FLEXMEM_POLICY_H */
