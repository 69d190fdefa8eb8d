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

#include "domain.h"
#include "function.h"
#include "settings.h"

/* The largest size below @below that the device has not refused, or 0. */
static u64 next_size(const struct flexmem_domain *domain, u64 below)
{
	u64 size = 0;
	unsigned int i;

	below = min(below, domain->too_large);
	for (i = 0; i < flexmem_domain_nr_sizes(domain); i++)
		if (domain->sizes[i] < below)
			size = max(size, domain->sizes[i]);
	return size;
}

static bool is_rest(const struct flexmem_domain *domain, u64 size)
{
	return domain->has_rest && size == domain->sizes[domain->nr_sizes - 1];
}

/* Adds the size of a last region that takes what the other sizes leave. */
static void add_rest(struct flexmem_domain *domain)
{
	u64 rest = domain->capacity, size = U64_MAX;

	while ((size = next_size(domain, size)))
		rest -= div64_u64(rest, size) * size;
	rest = round_down(rest, domain->desc->granule);
	if (!rest || domain->nr_sizes == FLEXMEM_MAX_FALLBACK_SIZES)
		return;
	domain->sizes[domain->nr_sizes++] = rest;
	domain->has_rest = true;
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
	}
	rc = flexmem_domain_refresh(domain);
	if (!rc && desc->short_last && flexmem_domain_largest(domain))
		add_rest(domain);
	if (rc || flexmem_domain_largest(domain))
		return rc;

	memset(domain->sizes, 0, sizeof(domain->sizes));
	domain->nr_sizes = 1;
	domain->sizes[0] = round_down(domain->capacity, desc->granule);
	if (!domain->sizes[0]) {
		dev_err(function->dev, "domain %u: capacity %llu: less than its granule %llu, so no region fits\n",
			id, domain->capacity, desc->granule);
		return -EINVAL;
	}
	return 0;
}

/*
 * Reads the capacity again. Under the table's acquire_lock. May sleep. Return:
 * 0, or an error of the firmware; then the old capacity stays in use.
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
		WRITE_ONCE(domain->capacity, capacity);
	return rc;
}

/*
 * Notes that a region of @size bytes now exists, or no longer exists. Under the
 * table's acquire_lock.
 */
void flexmem_domain_note(struct flexmem_domain *domain, u64 size, bool exists)
{
	if (is_rest(domain, size))
		WRITE_ONCE(domain->rest_taken, exists);
}

/*
 * The largest region size that is not above @most, or 0 if there is none. With
 * U64_MAX: the size that no region of the domain exceeds, whatever the capacity
 * is.
 */
u64 flexmem_domain_largest_of(const struct flexmem_domain *domain, u64 most)
{
	u64 largest = 0;
	unsigned int i;

	for (i = 0; i < domain->nr_sizes; i++)
		if (domain->sizes[i] <= most)
			largest = max(largest, domain->sizes[i]);
	return largest;
}

/*
 * Size of the largest region that could be acquired; 0 if the capacity is too
 * small for any region.
 */
u64 flexmem_domain_largest(const struct flexmem_domain *domain)
{
	return flexmem_domain_largest_of(domain, READ_ONCE(domain->capacity));
}

/*
 * Whether no further region of at least @min_size bytes (0: of any size) can be
 * acquired. False if a command to the firmware may succeed.
 */
bool flexmem_domain_is_exhausted(const struct flexmem_domain *domain,
				 u64 min_size)
{
	u64 too_large = READ_ONCE(domain->too_large);
	unsigned int i;

	for (i = 0; i < flexmem_domain_nr_sizes(domain); i++)
		if (domain->sizes[i] >= min_size &&
		    domain->sizes[i] < too_large)
			return false;
	return true;
}

/*
 * Computes how much memory the function has or could acquire.
 * @held: bytes of the domain that the function has acquired. @slots: empty
 * slots for tensor regions; receives the number that is left.
 * Context: under the table's acquire_lock. Return: @held plus the bytes of as
 * many regions as capacity and slots allow, largest first.
 */
u64 flexmem_domain_memory(const struct flexmem_domain *domain, u64 held,
			  unsigned int *slots)
{
	u64 capacity, memory = held, size;
	unsigned int nr;

	capacity = domain->capacity > held ? domain->capacity - held : 0;
	for (size = next_size(domain, U64_MAX); size && *slots;
	     size = next_size(domain, size)) {
		nr = min_t(u64, *slots, div64_u64(capacity, size));
		if (is_rest(domain, size))
			nr = min(nr, 1U);
		*slots -= nr;
		capacity -= nr * size;
		memory += nr * size;
	}
	return memory;
}
