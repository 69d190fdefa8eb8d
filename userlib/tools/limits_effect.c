// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The limits that are in effect for a cgroup. A charge must be within the limits
 * of the cgroup and of all cgroups above it, so the smallest of them decides.
 */
#include "cgroup_limits.h"

#include <stdlib.h>
#include <string.h>

/* Whether @above is the path of a cgroup above that with the path @path. */
static bool is_above(const char *above, const char *path)
{
	size_t length = strlen(above);

	if (!strcmp(above, "/"))
		return strcmp(path, "/");
	return !strncmp(above, path, length) && path[length] == '/';
}

static void begin(struct limits_effect *effect,
		  const struct flexmem_account_state *account)
{
	const uint64_t used[FLEXMEM_CHARGES] = {
		[FLEXMEM_CHARGE_BYTES] = account->bytes + account->orphaned,
		[FLEXMEM_CHARGE_REGIONS] = account->slots,
		[FLEXMEM_CHARGE_HANDLES] = account->handles,
		[FLEXMEM_CHARGE_FILES] = account->files,
	};
	uint32_t i;

	effect->known = true;
	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		effect->charge[i].own = account->limit[i];
		effect->charge[i].used = used[i];
		effect->charge[i].limit = account->limit[i];
		effect->charge[i].by = account->id;
	}
}

/* Of two equal limits, the one of the nearer cgroup is named. */
static void add_above(struct limits_effect *effect,
		      const struct flexmem_account_state *account,
		      size_t length, size_t nearest[FLEXMEM_CHARGES])
{
	uint32_t i;

	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		if (account->limit[i] > effect->charge[i].limit ||
		    (account->limit[i] == effect->charge[i].limit &&
		     length <= nearest[i]))
			continue;
		effect->charge[i].limit = account->limit[i];
		effect->charge[i].by = account->id;
		nearest[i] = length;
	}
}

static void find_above(struct limits_effect *effect,
		       const struct flexmem_account_state *accounts,
		       size_t count, const struct cgroup_names *names,
		       const char *path)
{
	size_t nearest[FLEXMEM_CHARGES];
	const char *above;
	size_t i;

	for (i = 0; i < FLEXMEM_CHARGES; i++)
		nearest[i] = strlen(path);
	for (i = 0; i < count; i++) {
		if (accounts[i].kind != FLEXMEM_ACCOUNT_CGROUP)
			continue;
		above = cgroup_names_get(names, accounts[i].id);
		if (above && is_above(above, path))
			add_above(effect, &accounts[i], strlen(above), nearest);
	}
}

static void name_all(struct limits_effect *effect,
		     const struct cgroup_names *names)
{
	const char *path;
	uint32_t i;

	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		path = cgroup_names_get(names, effect->charge[i].by);
		effect->charge[i].path = path ? copy_text(path) : NULL;
	}
}

int limits_effect_read(struct flexmem_device *device, uint64_t cgroup,
		       struct limits_effect *effect)
{
	struct flexmem_account_state *accounts;
	struct flexmem_usage usage;
	struct cgroup_names names;
	const char *path;
	size_t i;
	int err;

	*effect = (struct limits_effect){ 0 };
	err = flexmem_device_usage(device, &usage, sizeof(usage), NULL, 0,
				   &accounts, sizeof(*accounts));
	if (err)
		return err;
	for (i = 0; i < usage.accounts && !effect->known; i++) {
		if (accounts[i].kind == FLEXMEM_ACCOUNT_CGROUP &&
		    accounts[i].id == cgroup)
			begin(effect, &accounts[i]);
	}
	if (effect->known) {
		cgroup_names_find(&names, accounts, usage.accounts);
		path = cgroup_names_get(&names, cgroup);
		if (path)
			find_above(effect, accounts, usage.accounts, &names,
				   path);
		name_all(effect, &names);
		cgroup_names_clear(&names);
	}
	flexmem_accounts_free(accounts);
	return 0;
}

void limits_effect_clear(struct limits_effect *effect)
{
	uint32_t i;

	for (i = 0; i < FLEXMEM_CHARGES; i++)
		free(effect->charge[i].path);
}
