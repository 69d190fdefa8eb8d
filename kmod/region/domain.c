// SPDX-License-Identifier: GPL-2.0
/*
 * Domains: how much of each memory a function has, and how much it can still
 * acquire.
 */

#include <linux/align.h>
#include <linux/device.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "gate/function.h"
#include "region/domain.h"
#include "settings.h"

/* The largest size of the list that is no more than @most, or 0. */
static u64 largest_size(const struct flexmem_domain *domain, u64 most)
{
	u64 size = 0;
	unsigned int i;

	for (i = 0; i < domain->nr_sizes; i++)
		if (domain->sizes[i] <= most)
			size = max(size, domain->sizes[i]);
	return size;
}

/* The largest size below @below that the device has not refused, or 0. */
static u64 next_size(const struct flexmem_domain *domain, u64 below)
{
	return largest_size(domain,
			    min(below, READ_ONCE(domain->too_large)) - 1);
}

/*
 * Initialises a domain of a device function. If the capacity is smaller than
 * each region size, the domain is one region.
 * @id: its number among the function's domains. @function: must outlive the
 * domain. @settings: has the region sizes if the device's driver names none for
 * the domain.
 * Context: may sleep; asks the firmware for the capacity. Return: 0; -EINVAL,
 * with a message, if a size does not suit the device or the memory is too small
 * for any region; or an error of the firmware.
 */
int flexmem_domain_init(struct flexmem_domain *domain, unsigned int id,
			struct flexmem_function *function,
			const struct flexmem_settings *settings)
{
	const struct flexmem_domain_desc *desc = &function->domains[id];
	const u64 *sizes = desc->nr_sizes ? desc->sizes : settings->sizes;
	u64 smallest = U64_MAX;
	unsigned int i;
	int rc;

	*domain = (struct flexmem_domain) {
		.id = id,
		.function = function,
		.desc = desc,
		.nr_sizes = desc->nr_sizes ?: settings->nr_sizes,
		.too_large = U64_MAX,
	};
	for (i = 0; i < domain->nr_sizes; i++) {
		domain->sizes[i] = sizes[i];
		if (!IS_ALIGNED(domain->sizes[i], desc->granule)) {
			dev_err(function->dev, "fallback_sizes: %llu is not a multiple of the device's granule %llu\n",
				domain->sizes[i], desc->granule);
			return -EINVAL;
		}
		smallest = min(smallest, domain->sizes[i]);
	}
	rc = flexmem_domain_refresh(domain);
	if (rc || domain->capacity >= smallest)
		return rc;

	memset(domain->sizes, 0, sizeof(domain->sizes));
	domain->nr_sizes = 1;
	domain->sizes[0] = domain->capacity;
	if (!domain->sizes[0]) {
		dev_err(function->dev, "domain %u: capacity is less than its granule %llu, so no region fits\n",
			id, desc->granule);
		return -EINVAL;
	}
	return 0;
}

/*
 * Reads the capacity again, in whole granules. Under the table's acquire_lock. May
 * sleep. Return: 0, or an error of the firmware; then the old capacity stays in use.
 */
int flexmem_domain_refresh(struct flexmem_domain *domain)
{
	u64 capacity;
	int rc;

	/*
	 * Cleared before the firmware is asked, so that a change during the
	 * command is not missed.
	 */
	WRITE_ONCE(domain->capacity_is_old, false);
	rc = flexmem_function_capacity(domain->function, domain->id, &capacity);
	if (rc)
		WRITE_ONCE(domain->capacity_is_old, true);
	else
		WRITE_ONCE(domain->capacity,
			   round_down(capacity, domain->desc->granule));
	return rc;
}

/* The size that no region of the domain exceeds, whatever the capacity is. */
u64 flexmem_domain_most(const struct flexmem_domain *domain)
{
	return largest_size(domain, U64_MAX);
}

/*
 * Size of a region that takes the rest of the capacity, all that the other
 * regions have left; 0 if no such region is tried, because nothing is left, or a
 * region of the largest size, or because the device has refused as much.
 */
u64 flexmem_domain_rest(const struct flexmem_domain *domain)
{
	u64 rest = READ_ONCE(domain->left);

	return rest < flexmem_domain_most(domain) &&
	       rest < READ_ONCE(domain->too_large) ? rest : 0;
}

/*
 * Size of the largest region that could be acquired; 0 if the capacity is too
 * small for any region. Regions that exist do not count against a size of the
 * list, but against the rest.
 */
u64 flexmem_domain_largest(const struct flexmem_domain *domain)
{
	return max(largest_size(domain, READ_ONCE(domain->capacity)),
		   flexmem_domain_rest(domain));
}

/*
 * Size of the largest region that could be acquired beside those that exist; 0
 * if there is none.
 */
u64 flexmem_domain_next(const struct flexmem_domain *domain)
{
	u64 left = READ_ONCE(domain->left) + 1;

	return max(next_size(domain, left), flexmem_domain_rest(domain));
}

/*
 * Whether no further region of at least @min_size bytes (0: of any size) can be
 * acquired. False if a command to the firmware may succeed.
 */
bool flexmem_domain_is_exhausted(const struct flexmem_domain *domain,
				 u64 min_size)
{
	u64 too_large = READ_ONCE(domain->too_large);
	u64 rest = flexmem_domain_rest(domain);
	unsigned int i;

	for (i = 0; i < domain->nr_sizes; i++)
		if (domain->sizes[i] >= min_size &&
		    domain->sizes[i] < too_large)
			return false;
	return !rest || rest < min_size;
}

/*
 * Notes what is left of the capacity, and computes how much memory the function
 * has or could acquire.
 * @held: bytes of the domain that the function has acquired. @slots: empty
 * slots for tensor regions; receives the number that is left.
 * Context: under the table's acquire_lock, or before the table is visible to
 * others. Return: @held plus the bytes of as many regions as capacity and slots
 * allow, largest first, the rest last.
 */
u64 flexmem_domain_memory(struct flexmem_domain *domain, u64 held,
			  unsigned int *slots)
{
	u64 capacity = domain->capacity - min(domain->capacity, held);
	u64 memory = held, size;
	unsigned int nr;

	WRITE_ONCE(domain->left, capacity);
	for (size = next_size(domain, U64_MAX); size && *slots;
	     size = next_size(domain, size)) {
		nr = min_t(u64, *slots, div64_u64(capacity, size));
		*slots -= nr;
		capacity -= nr * size;
		memory += nr * size;
	}
	if (capacity && *slots && capacity < domain->too_large &&
	    capacity < flexmem_domain_most(domain)) {
		--*slots;
		memory += capacity;
	}
	return memory;
}
