// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The option --policy: which domains allocations come from. */
#include "policy.h"

#include <string.h>

static const char *const names[] = {
	[FLEXMEM_PLACE_DEFAULT] = "default",
	[FLEXMEM_PLACE_BIND] = "bind",
	[FLEXMEM_PLACE_PREFERRED] = "preferred",
	[FLEXMEM_PLACE_INTERLEAVE] = "interleave",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool parse_name(const char *text, size_t length, uint32_t *placement)
{
	for (*placement = 0; *placement < COUNT(names); ++*placement)
		if (strlen(names[*placement]) == length &&
		    !strncmp(text, names[*placement], length))
			return true;
	return false;
}

/* Adds a domain by its number, or all domains of a memory by its name. */
static bool add_item(const char *text, size_t length, struct policy *policy)
{
	char item[16];
	uint32_t *mask = &policy->domains;
	uint64_t number;

	if (length >= sizeof(item))
		return false;
	memcpy(item, text, length);
	item[length] = '\0';
	if (strspn(item, "0123456789") != length ||
	    !parse_number(item, FLEXMEM_DOMAINS - 1, &number)) {
		if (!find_memory(item, &number))
			return false;
		mask = &policy->memories;
	}
	if (*mask >> number & 1)
		return false;
	*mask |= UINT32_C(1) << number;
	return true;
}

static bool parse_domains(const char *text, struct policy *policy)
{
	size_t length;

	for (;;) {
		length = strcspn(text, ",");
		if (!add_item(text, length, policy))
			return false;
		if (!text[length])
			return true;
		text += length + 1;
	}
}

bool parse_policy(struct tool *tool, const char *text, struct policy *policy)
{
	size_t length = strcspn(text, ":");
	const char *list = text + length;

	*policy = (struct policy){ 0 };
	if (!parse_name(text, length, &policy->placement)) {
		usage_error(tool, "no policy '%.*s'", (int)length, text);
		return false;
	}
	if (!*list && policy->placement != FLEXMEM_PLACE_BIND &&
	    policy->placement != FLEXMEM_PLACE_PREFERRED)
		return true;
	if (policy->placement == FLEXMEM_PLACE_DEFAULT) {
		usage_error(tool, "the policy 'default' takes no domains");
		return false;
	}
	if (*list && parse_domains(list + 1, policy))
		return true;
	usage_error(tool,
		    "'%s' is not a list of domains, each once: numbers below %d, or memories as 'flexmem info' names them, hbm, dimm, tcm or host",
		    *list ? list + 1 : "", FLEXMEM_DOMAINS);
	return false;
}

int resolve_policy(struct flexmem_device *device, const struct policy *policy,
		   struct flexmem_alloc_request *request)
{
	struct flexmem_domain_state domains[FLEXMEM_DOMAINS];
	uint32_t i;
	int err;

	request->placement = policy->placement;
	request->domains = policy->domains;
	if (!policy->memories)
		return 0;
	err = read_domains(device, domains);
	if (err)
		return err;
	for (i = 0; i < domains->count && i < FLEXMEM_DOMAINS; i++)
		if (policy->memories >> domains[i].memory & 1)
			request->domains |= UINT32_C(1) << i;
	return 0;
}

int read_domains(struct flexmem_device *device,
		 struct flexmem_domain_state domains[FLEXMEM_DOMAINS])
{
	uint32_t i = 0;
	int err;

	do {
		err = flexmem_device_domain(device, i, &domains[i],
					    sizeof(domains[i]));
	} while (!err && ++i < domains[0].count && i < FLEXMEM_DOMAINS);
	return err;
}
