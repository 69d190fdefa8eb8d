// SPDX-License-Identifier: GPL-2.0
/* Makes the hook of containers see the cgroups of processes that a test chooses. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

/*
 * /proc/PID/cgroup is the file PID in the folder FAKE_PROC, or "self". With
 * FAKE_MOVES it is PID.moved from the second time on.
 */
FILE *__wrap_fopen(const char *path, const char *mode)
{
	const char *folder = getenv("FAKE_PROC");
	static unsigned int reads;
	char name[32], file[512];
	bool moved = false;
	int length = 0;

	if (!folder || sscanf(path, "/proc/%31[^/]/cgroup%n", name, &length) != 1 ||
	    !length || path[length])
		return __real_fopen(path, mode);
	if (strcmp(name, "self") && getenv("FAKE_MOVES"))
		moved = reads++ > 0;
	snprintf(file, sizeof(file), "%s/%s%s", folder, name,
		 moved ? ".moved" : "");
	return __real_fopen(file, mode);
}
