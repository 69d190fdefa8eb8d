/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A domain: one of a device's memories, such as an HBM stack or the memory on
 * the chip. This layer knows how much of it a device function may acquire.
 */
#ifndef _FLEXMEM_DOMAIN_H
#define _FLEXMEM_DOMAIN_H

#include <linux/types.h>
#include <linux/flexmem.h>

struct flexmem_domain_desc;
struct flexmem_function;
struct flexmem_settings;

/**
 * enum flexmem_kind - kind of memory
 * @FLEXMEM_KIND_TENSOR: data
 * @FLEXMEM_KIND_PROGRAM: device programs, which may have slots set aside
 * @FLEXMEM_NR_KINDS: number of kinds
 */
enum flexmem_kind {
	FLEXMEM_KIND_TENSOR,
	FLEXMEM_KIND_PROGRAM,
	FLEXMEM_NR_KINDS,
};

/**
 * struct flexmem_domain - one of the device's memories
 * @id: its number among the function's domains
 * @function: the device function that the domain belongs to
 * @desc: what the device's driver says about the domain
 * @nr_sizes: number of @sizes, at least 1
 * @sizes: sizes of regions in bytes, in the order in which they are tried
 * @capacity: bytes that the function may acquire, a multiple of the granule
 * @left: what the acquired bytes leave of @capacity
 * @too_large: the smallest size that the device has refused. No size of at
 *	least @too_large is requested until the device got memory back or
 *	announced a new capacity
 * @capacity_is_old: the capacity has changed, and flexmem has not asked the
 *	firmware for the new value yet
 * @filled: by kind of slot: bit mask of the slots that hold a region of this
 *	domain. A reader without acquire_lock may see a change too early or too
 *	late
 *
 * @capacity, @left, @too_large and @filled change under the table's
 * acquire_lock and are read without it. @capacity_is_old is set in any context
 * and cleared under acquire_lock. The other members never change.
 */
struct flexmem_domain {
	unsigned int id;
	struct flexmem_function *function;
	const struct flexmem_domain_desc *desc;
	unsigned int nr_sizes;
	u64 sizes[FLEXMEM_MAX_FALLBACK_SIZES];
	u64 capacity;
	u64 left;
	u64 too_large;
	bool capacity_is_old;
	u64 filled[FLEXMEM_NR_KINDS];
};

int flexmem_domain_init(struct flexmem_domain *domain, unsigned int id,
			struct flexmem_function *function,
			const struct flexmem_settings *settings);
int flexmem_domain_refresh(struct flexmem_domain *domain);
u64 flexmem_domain_most(const struct flexmem_domain *domain);
u64 flexmem_domain_largest(const struct flexmem_domain *domain);
u64 flexmem_domain_next(const struct flexmem_domain *domain);
u64 flexmem_domain_rest(const struct flexmem_domain *domain);
bool flexmem_domain_is_exhausted(const struct flexmem_domain *domain,
				 u64 min_size);
u64 flexmem_domain_memory(struct flexmem_domain *domain, u64 held,
			  unsigned int *slots);

#endif /* _FLEXMEM_DOMAIN_H */
