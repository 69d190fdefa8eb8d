// SPDX-License-Identifier: GPL-2.0
/* Makes the flexmem command use the fake kernel. */
#include "fake.h"

#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>

FILE *__wrap_setmntent(const char *path, const char *mode);

/* The list of mounts is the file FAKE_MOUNTS. Without it there are none. */
FILE *__wrap_setmntent(const char *path, const char *mode)
{
	const char *mounts = getenv("FAKE_MOUNTS");

	(void)path;
	return mounts ? fopen(mounts, mode) : NULL;
}

__attribute__((constructor)) static void begin(void)
{
	fake_from_environment();
}
