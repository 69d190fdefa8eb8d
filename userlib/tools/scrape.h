/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Figures of all functions, for reports that show more than one. */
#ifndef SCRAPE_H
#define SCRAPE_H

#include "tool.h"

/*
 * A function and one snapshot of it. The accounts are those of cgroups, by number,
 * and then those of clients.
 * @own: of each account the bytes that no account below it has.
 * @whole: these add up to the bytes in use. If not, the caller sees only own
 *	accounts, or they changed during each of many readings.
 * @level: enum flexmem_pressure_level, read just after the snapshot.
 * @error: why there is no snapshot, or 0.
 */
struct scraped {
	struct flexmem_identity identity;
	struct flexmem_properties properties;
	struct flexmem_usage usage;
	struct flexmem_region_state *regions;
	struct flexmem_account_state *accounts;
	uint32_t cgroups;
	uint64_t *own;
	bool whole;
	uint32_t level;
	int error;
};

struct scrape {
	struct scraped *functions;
	size_t count;
	struct cgroup_names names;
};

/*
 * Reads all functions that this process sees. The sums of a function, its regions and
 * the first 64 accounts are of one moment, the other accounts of a slightly later one;
 * they add up nevertheless. Returns 0 or a negative errno. scrape_clear() frees what it has read, also
 * after an error.
 */
int scrape_all(struct scrape *scrape);
void scrape_clear(struct scrape *scrape);

/* Whether the caller can see only its own accounts. */
bool scraped_is_own(const struct scraped *function);

/* The account of a cgroup; NULL if there is none. */
const struct flexmem_account_state *scraped_cgroup(const struct scraped *function,
						   uint64_t id);

#endif /* SCRAPE_H */
