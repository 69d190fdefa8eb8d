/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reservations: regions that are set aside for a cgroup and the cgroups below
 * it.
 */
#ifndef _FLEXMEM_RESERVATION_H
#define _FLEXMEM_RESERVATION_H

#include <linux/types.h>
#include <linux/flexmem.h>

struct flexmem_account;
struct flexmem_table;

bool flexmem_reservation_is_valid(const struct flexmem_table *table, u64 size);
int flexmem_reservation_set(struct flexmem_table *table,
			    struct flexmem_account *account, u64 size,
			    unsigned int count, enum flexmem_reason *reason);

#endif /* _FLEXMEM_RESERVATION_H */
