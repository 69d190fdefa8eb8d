// SPDX-License-Identifier: GPL-2.0
/* Makes the flexmem command use the fake kernel. */
#include "fake.h"
#include "fake_state.h"

#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>

FILE *__wrap_setmntent(const char *path, const char *mode);

/*
 * The list of mounts is the file FAKE_MOUNTS. Without it there are none. Each reading adds
 * a line to the file FAKE_WALKS, because a walk through the cgroups begins with it.
 */
FILE *__wrap_setmntent(const char *path, const char *mode)
{
	const char *mounts = getenv("FAKE_MOUNTS");
	const char *walks = getenv("FAKE_WALKS");
	FILE *log;

	(void)path;
	if (walks) {
		log = fopen(walks, "a");
		REQUIRE(log);
		fputs("walk\n", log);
		fclose(log);
	}
	return mounts ? fopen(mounts, mode) : NULL;
}

__attribute__((constructor)) static void begin(void)
{
	fake_from_environment();
}
