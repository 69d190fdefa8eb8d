// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Reads the figures of all functions. */
#include "scrape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The driver reads the owners after the first 64 later than the sums. If the bytes
 * of the owners do not add up, the snapshot is taken again, at most this often. So it
 * is, at most half as often, if what a cgroup has is not the sum of its files.
 */
#define MOST_SNAPSHOTS 100
#define MOST_FOR_FILES (MOST_SNAPSHOTS / 2)

/* A user without rights gets two owners: the own cgroup and the open file. */
#define OWNERS_OF_ONE 2

bool scraped_is_own(const struct scraped *function)
{
	return function->usage.accounts <= OWNERS_OF_ONE;
}

/* Orders accounts as struct scraped says. */
static int by_kind_and_id(const void *a, const void *b)
{
	const struct flexmem_account_state *one = a, *other = b;

	if (one->kind != other->kind)
		return one->kind == FLEXMEM_ACCOUNT_CGROUP ? -1 : 1;
	return (one->id > other->id) - (one->id < other->id);
}

const struct flexmem_account_state *scraped_cgroup(const struct scraped *function,
						   uint64_t id)
{
	const struct flexmem_account_state wanted = {
		.kind = FLEXMEM_ACCOUNT_CGROUP,
		.id = id,
	};

	if (!function->cgroups)
		return NULL;
	return bsearch(&wanted, function->accounts, function->cgroups,
		       sizeof(wanted), by_kind_and_id);
}

static void sort_accounts(struct scraped *function)
{
	uint32_t i;

	if (!function->usage.accounts)
		return;
	qsort(function->accounts, function->usage.accounts,
	      sizeof(*function->accounts), by_kind_and_id);
	for (i = 0; i < function->usage.accounts; i++)
		function->cgroups += function->accounts[i].kind ==
				     FLEXMEM_ACCOUNT_CGROUP;
}

/*
 * Computes what each account has that none below it has. Returns whether what the
 * cgroups have adds up to the bytes in use.
 */
static bool add_up(struct scraped *function)
{
	const struct flexmem_account_state *one, *parent;
	uint64_t sum = 0;
	uint64_t *own;
	uint32_t i;

	for (i = 0; i < function->usage.accounts; i++)
		function->own[i] = function->accounts[i].bytes;
	for (i = 0; i < function->cgroups; i++) {
		one = &function->accounts[i];
		parent = scraped_cgroup(function, one->parent);
		if (!parent) {
			sum += one->bytes;
			continue;
		}
		own = &function->own[parent - function->accounts];
		if (*own < one->bytes)
			return false;
		*own -= one->bytes;
	}
	return sum == function->usage.owned;
}

/* Whether each cgroup has by itself what the files in it have. */
static bool is_of_files(const struct scraped *function)
{
	uint64_t *left = grow(NULL, function->cgroups + 1, sizeof(*left));
	const struct flexmem_account_state *parent;
	bool equal = true;
	uint32_t i;

	for (i = 0; i < function->cgroups; i++)
		left[i] = function->own[i];
	for (; i < function->usage.accounts; i++) {
		parent = scraped_cgroup(function, function->accounts[i].parent);
		if (parent)
			left[parent - function->accounts] -=
				function->accounts[i].bytes;
	}
	for (i = 0; i < function->cgroups; i++)
		equal &= !left[i];
	free(left);
	return equal;
}

static void forget(struct scraped *function)
{
	flexmem_regions_free(function->regions);
	flexmem_accounts_free(function->accounts);
	free(function->own);
	*function = (struct scraped){ .identity = function->identity };
}

static int take_snapshot(const struct flexmem_device *device,
			 struct scraped *function)
{
	int err = flexmem_device_properties(device, &function->properties,
					    sizeof(function->properties));

	if (!err)
		err = flexmem_device_usage(device, &function->usage,
					   sizeof(function->usage),
					   &function->regions,
					   sizeof(*function->regions),
					   &function->accounts,
					   sizeof(*function->accounts));
	if (err)
		return err;
	sort_accounts(function);
	function->own = grow(NULL, function->usage.accounts,
			     sizeof(*function->own));
	function->whole = add_up(function);
	return 0;
}

/* A file that was just opened has an event if there is a level. */
static int read_level(struct flexmem_device *device, uint32_t *level)
{
	struct flexmem_pressure_event event;
	int err = flexmem_device_pressure(device, &event, sizeof(event));

	if (!err)
		*level = event.level;
	return err == -EAGAIN ? 0 : err;
}

static int read_function(struct scraped *function)
{
	struct flexmem_device *device;
	unsigned int tries = 0;
	bool again;
	int err;

	err = flexmem_device_open(&device, function->identity.path);
	if (err)
		return err;
	do {
		forget(function);
		err = take_snapshot(device, function);
		again = !err && !scraped_is_own(function) &&
			++tries < MOST_SNAPSHOTS &&
			(!function->whole ||
			 (tries < MOST_FOR_FILES && !is_of_files(function)));
	} while (again);
	if (!err)
		err = read_level(device, &function->level);
	flexmem_device_close(device);
	return err;
}

/*
 * Whether a function went away during the reading, so that another one, or none, has its
 * number now. One that is there and cannot be opened is not.
 */
static bool is_gone(const struct scraped *function, unsigned int number)
{
	struct flexmem_identity now;

	return function->error == -ENODEV &&
	       (flexmem_device_identity(number, &now, sizeof(now)) ||
		strcmp(now.id, function->identity.id));
}

/* A function that goes away during the reading is left out. */
static int read_functions(struct scrape *scrape)
{
	struct scraped *function;
	int err;

	for (;;) {
		scrape->functions = grow(scrape->functions, scrape->count + 1,
					 sizeof(*scrape->functions));
		function = &scrape->functions[scrape->count];
		*function = (struct scraped){ 0 };
		err = flexmem_device_identity((unsigned int)scrape->count,
					      &function->identity,
					      sizeof(function->identity));
		if (err)
			return err == -ENODEV ? 0 : err;
		function->error = read_function(function);
		if (is_gone(function, (unsigned int)scrape->count))
			forget(function);
		else
			scrape->count++;
	}
}

/* Finds the names of the cgroups of all functions with one walk. */
static void find_names(struct scrape *scrape)
{
	struct flexmem_account_state *all;
	const struct scraped *function;
	size_t count = 0;
	size_t i;

	for (i = 0; i < scrape->count; i++)
		count += scrape->functions[i].cgroups;
	all = grow(NULL, count, sizeof(*all));
	count = 0;
	for (i = 0; i < scrape->count; i++) {
		function = &scrape->functions[i];
		if (!function->cgroups)
			continue;
		memcpy(all + count, function->accounts,
		       function->cgroups * sizeof(*all));
		count += function->cgroups;
	}
	cgroup_names_find(&scrape->names, all, count);
	free(all);
}

int scrape_all(struct scrape *scrape)
{
	int err;

	*scrape = (struct scrape){ 0 };
	err = read_functions(scrape);
	if (!err)
		find_names(scrape);
	return err;
}

void scrape_clear(struct scrape *scrape)
{
	size_t i;

	for (i = 0; i < scrape->count; i++)
		forget(&scrape->functions[i]);
	free(scrape->functions);
	cgroup_names_clear(&scrape->names);
}
