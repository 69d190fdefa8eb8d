/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A domain: a part of a device's memory with its own capacity. A function has
 * one today.
 */
#ifndef _FLEXMEM_DOMAIN_H
#define _FLEXMEM_DOMAIN_H

#include <asm/barrier.h>
#include <linux/types.h>
#include <linux/flexmem.h>

struct flexmem_function;
struct flexmem_settings;

/**
 * enum flexmem_kind - what memory is for
 * @FLEXMEM_KIND_TENSOR: data
 * @FLEXMEM_KIND_PROGRAM: device programs, which may have slots set aside
 * @FLEXMEM_NR_KINDS: how many there are
 */
enum flexmem_kind {
	FLEXMEM_KIND_TENSOR,
	FLEXMEM_KIND_PROGRAM,
	FLEXMEM_NR_KINDS,
};

/**
 * struct flexmem_domain - a part of the device's memory
 * @id: its number among those of the function
 * @function: whose it is
 * @granule: what sizes are multiples of
 * @nr_sizes: how many of @sizes there are, at least 1
 * @sizes: of regions in the order they are tried, in bytes
 * @capacity: bytes the function may acquire of it
 * @too_large: the smallest size that the device has refused since it got memory
 *	back or announced a capacity: it is asked for no more of that and above
 * @capacity_is_old: that has changed, but the firmware has not said to what yet
 * @no_slot: by kind of slot: why there is none for a further region, or
 *	FLEXMEM_REASON_NONE
 *
 * @capacity, @too_large and @no_slot change under the table's acquire_lock and are
 * read without it; @capacity_is_old is set by anybody, and reset under it. Nothing
 * else changes.
 */
struct flexmem_domain {
	unsigned int id;
	struct flexmem_function *function;
	u64 granule;
	unsigned int nr_sizes;
	u64 sizes[FLEXMEM_MAX_FALLBACK_SIZES];
	u64 capacity;
	u64 too_large;
	bool capacity_is_old;
	enum flexmem_reason no_slot[FLEXMEM_NR_KINDS];
};

/* The size that is tried as number @i. Programs are small: from the last. */
static inline u64 flexmem_domain_size(const struct flexmem_domain *domain,
				      enum flexmem_kind kind, unsigned int i)
{
	return domain->sizes[kind == FLEXMEM_KIND_PROGRAM ?
			     domain->nr_sizes - 1 - i : i];
}

/* The capacity is asked for before it is needed again. */
static inline void flexmem_domain_outdate(struct flexmem_domain *domain)
{
	/* Pairs with flexmem_domain_is_old(). */
	smp_store_release(&domain->capacity_is_old, true);
}

/* Who sees that asks a driver that knows the new one. */
static inline bool flexmem_domain_is_old(const struct flexmem_domain *domain)
{
	/* Pairs with flexmem_domain_outdate(). */
	return smp_load_acquire(&domain->capacity_is_old);
}

int flexmem_domain_init(struct flexmem_domain *domain,
			struct flexmem_function *function,
			const struct flexmem_settings *settings);
int flexmem_domain_refresh(struct flexmem_domain *domain);
u64 flexmem_domain_largest(const struct flexmem_domain *domain);
enum flexmem_reason
flexmem_domain_exhausted(const struct flexmem_domain *domain,
			 enum flexmem_kind kind, u64 min_size);
u64 flexmem_domain_memory(const struct flexmem_domain *domain, u64 held,
			  unsigned int slots);

#endif /* _FLEXMEM_DOMAIN_H */
