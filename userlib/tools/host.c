// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Files of the host. The tests have their own, below another root. */
#include "host.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef HOST_ROOT
#define HOST_ROOT ""
#endif

bool host_read(const char *path, char line[HOST_LINE_MAX])
{
	char full[PATH_MAX];
	FILE *file = NULL;
	bool found;

	if (snprintf(full, sizeof(full), HOST_ROOT "%s", path) <
	    (int)sizeof(full))
		file = fopen(full, "re");
	if (!file)
		return false;
	found = fgets(line, HOST_LINE_MAX, file);
	fclose(file);
	if (found)
		line[strcspn(line, "\n")] = '\0';
	return found;
}

bool host_exists(const char *path)
{
	char full[PATH_MAX];

	return snprintf(full, sizeof(full), HOST_ROOT "%s", path) <
		       (int)sizeof(full) &&
	       !access(full, F_OK);
}

const char *host_state(const char *node)
{
	/* The driver's word, and the command's. */
	static const char *const states[][2] = {
		{ "up", "usable" },
		{ "unresponsive", "unresponsive" },
		{ "suspended", "suspended" },
		{ "wedged", "wedged" },
	};
	char path[PATH_MAX], line[HOST_LINE_MAX], state[32];
	const char *name = strrchr(node, '/');
	size_t i;

	snprintf(path, sizeof(path), "/sys/kernel/debug/flexmem/%s/memory",
		 name ? name + 1 : node);
	if (!host_read(path, line) || sscanf(line, "state %31s", state) != 1)
		return NULL;
	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (!strcmp(state, states[i][0]))
			return states[i][1];
	return NULL;
}
