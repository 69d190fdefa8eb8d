/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The option --policy, and the domains of a device. */
#ifndef POLICY_H
#define POLICY_H

#include "tool.h"

/*
 * A policy as it was typed. @domains: bit mask of the domains given by number.
 * @memories: bit mask of the types of memory given by name; a type stands for
 * all domains of the device that have it.
 */
struct policy {
	uint32_t placement;
	uint32_t domains;
	uint32_t memories;
};

/* Parses POLICY[:DOMAINS]. Prints an error if @text is not valid. */
bool parse_policy(struct tool *tool, const char *text, struct policy *policy);
/*
 * Sets placement and domains of a request. Returns 0 or a negative errno of the
 * device.
 */
int resolve_policy(struct flexmem_device *device, const struct policy *policy,
		   struct flexmem_alloc_request *request);
/* Reads all domains of a device. Returns 0 or a negative errno. */
int read_domains(struct flexmem_device *device,
		 struct flexmem_domain_state domains[FLEXMEM_DOMAINS]);

#endif /* POLICY_H */
