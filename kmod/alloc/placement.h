/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Placement: the order of regions for an allocation, and when to acquire one.
 */
#ifndef _FLEXMEM_PLACEMENT_H
#define _FLEXMEM_PLACEMENT_H

struct flexmem_request;

int flexmem_place_charge(struct flexmem_request *request);
int flexmem_place(struct flexmem_request *request);
int flexmem_place_fail(struct flexmem_request *request, int rc);

#endif /* _FLEXMEM_PLACEMENT_H */
