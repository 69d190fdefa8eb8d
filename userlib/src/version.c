// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Compares the versions of the module and of the library. They differ between an
 * upgrade of the packages and the next boot.
 */
#include "version.h"
#include "internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODULE "/sys/module/flexmem"

bool fmlib_version_of_module(char version[FMLIB_MODULE_VERSION])
{
	ssize_t length;
	int fd = open(MODULE "/version", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	length = read(fd, version, FMLIB_MODULE_VERSION - 1);
	close(fd);
	if (length <= 0)
		return false;
	version[length] = '\0';
	version[strcspn(version, "\n")] = '\0';
	return true;
}

/* The third number of a version changes only if the ABI does not. */
static size_t length_of_abi(const char *version)
{
	size_t length = strcspn(version, ".");

	if (version[length])
		length += 1 + strcspn(version + length + 1, ".");
	return length;
}

bool fmlib_version_differs(char text[FMLIB_VERSION_TEXT])
{
	const char *library = flexmem_library_version();
	char module[FMLIB_MODULE_VERSION];

	if (!fmlib_version_of_module(module)) {
		if (access(MODULE, F_OK))
			return false;
		strcpy(module, "without a version");
	} else if (length_of_abi(module) == length_of_abi(library) &&
		   !strncmp(module, library, length_of_abi(library))) {
		return false;
	}
	snprintf(text, FMLIB_VERSION_TEXT,
		 "module %s, library %s: reboot or reload flexmem.ko", module,
		 library);
	return true;
}
