// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Files of the host. The tests have their own, below another root. */
#include "host.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef HOST_ROOT
#define HOST_ROOT ""
#endif

static FILE *open_file(const char *path)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), HOST_ROOT "%s", path) >=
	    (int)sizeof(full))
		return NULL;
	return fopen(full, "re");
}

bool host_read(const char *path, char line[HOST_LINE_MAX])
{
	FILE *file = open_file(path);
	bool found;

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

void host_list(const char *path, void (*call)(const char *name, void *user),
	       void *user)
{
	char full[PATH_MAX];
	const struct dirent *file;
	DIR *directory = NULL;

	if (snprintf(full, sizeof(full), HOST_ROOT "%s", path) <
	    (int)sizeof(full))
		directory = opendir(full);
	if (!directory)
		return;
	while ((file = readdir(directory)))
		if (file->d_name[0] != '.')
			call(file->d_name, user);
	closedir(directory);
}

bool host_module(const char *release, char path[PATH_MAX])
{
	char line[PATH_MAX], *end;
	bool found = false;
	FILE *file;

	/* The file has a line for each module: its path, a colon, those it needs. */
	snprintf(line, sizeof(line), "/lib/modules/%s/modules.dep", release);
	file = open_file(line);
	while (file && !found && fgets(line, sizeof(line), file)) {
		end = strchr(line, ':');
		if (!end)
			continue;
		*end = '\0';
		end = strrchr(line, '/');
		end = end ? end + 1 : line;
		found = !strncmp(end, "flexmem.ko", 10) &&
			snprintf(path, PATH_MAX, "/lib/modules/%s/%s", release,
				 line) < PATH_MAX;
	}
	if (file)
		fclose(file);
	return found;
}

bool host_is_signed(const char *path)
{
	static const char magic[] = "~Module signature appended~\n";
	char end[sizeof(magic)] = "";
	FILE *file;

	if (strcmp(path + strlen(path) - 3, ".ko"))
		return true;
	file = open_file(path);
	if (!file)
		return true;
	if (!fseek(file, 1 - (long)sizeof(magic), SEEK_END) &&
	    !fread(end, sizeof(magic) - 1, 1, file))
		*end = '\0';
	fclose(file);
	return !strcmp(end, magic);
}
