// SPDX-License-Identifier: GPL-2.0
/*
 * Domains: what there is of a device's memory, before any of it is acquired.
 */

#include "domain.h"
#include "function.h"

/**
 * flexmem_domain_init - all memory of a function
 * @domain: to initialise
 * @function: the function; must outlive it
 *
 * Context: may sleep; asks the firmware for the capacity.
 * Return: 0, or an error of the firmware.
 */
int flexmem_domain_init(struct flexmem_domain *domain,
			struct flexmem_function *function)
{
	domain->function = function;
	return flexmem_domain_refresh(domain);
}

/**
 * flexmem_domain_refresh - read the capacity anew
 * @domain: domain
 *
 * Context: under the table's acquire_lock. May sleep.
 * Return: 0, or an error of the firmware; then the old figure stands for now.
 */
int flexmem_domain_refresh(struct flexmem_domain *domain)
{
	u64 capacity;
	int rc;

	/* Before it is asked for: what changes after that is to be asked for. */
	WRITE_ONCE(domain->capacity_is_old, false);
	rc = flexmem_function_capacity(domain->function, &capacity);
	if (rc)
		WRITE_ONCE(domain->capacity_is_old, true);
	else
		WRITE_ONCE(domain->capacity, capacity);
	return rc;
}
