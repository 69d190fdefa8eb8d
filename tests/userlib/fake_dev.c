// SPDX-License-Identifier: GPL-2.0
/* The fake /dev. */
#include "fake.h"
#include "fake_state.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SYSFS_MODE "/sys/dev/char/511:%u/mode"

DIR *__real_opendir(const char *path);
struct dirent *__real_readdir(DIR *dir);
int __real_closedir(DIR *dir);
DIR *__wrap_opendir(const char *path);
struct dirent *__wrap_readdir(DIR *dir);
int __wrap_closedir(DIR *dir);
int __real_access(const char *path, int mode);
int __real_stat(const char *path, struct stat *status);
int __wrap_access(const char *path, int mode);
int __wrap_stat(const char *path, struct stat *status);
ssize_t __real_readlink(const char *path, char *to, size_t size);
ssize_t __wrap_readlink(const char *path, char *to, size_t size);

/* A listing of /dev: the nodes in descending order, then other files. */
static struct dirent listed;
static int list_at = -1;

DIR *__wrap_opendir(const char *path)
{
	if (strcmp(path, "/dev"))
		return __real_opendir(path);
	if (fake.opendir_error) {
		errno = fake.opendir_error;
		return NULL;
	}
	list_at = 0;
	return (DIR *)&list_at;
}

struct dirent *__wrap_readdir(DIR *dir)
{
	const struct fake_node *node;

	if (dir != (DIR *)&list_at)
		return __real_readdir(dir);
	for (; list_at < FAKE_NODES; list_at++) {
		node = &fake.nodes[FAKE_NODES - 1 - list_at];
		if (!node->exists)
			continue;
		list_at++;
		snprintf(listed.d_name, sizeof(listed.d_name), "flexmem%u",
			 node->number);
		return &listed;
	}
	if (list_at >= FAKE_NODES + 4 ||
	    !fake.stray_names[list_at - FAKE_NODES])
		return NULL;
	strcpy(listed.d_name, fake.stray_names[list_at++ - FAKE_NODES]);
	return &listed;
}

int __wrap_closedir(DIR *dir)
{
	if (dir != (DIR *)&list_at)
		return __real_closedir(dir);
	return 0;
}

/* The node with this number in its name, or NULL. */
static const struct fake_node *numbered(unsigned int number)
{
	unsigned int i;

	for (i = 0; i < FAKE_NODES; i++) {
		if (fake.nodes[i].exists && fake.nodes[i].number == number)
			return &fake.nodes[i];
	}
	return NULL;
}

/* Returns a descriptor from which @text can be read. */
static int open_text(const char *text)
{
	ssize_t length = (ssize_t)strlen(text);
	int ends[2];

	REQUIRE(!pipe(ends));
	REQUIRE(write(ends[1], text, (size_t)length) == length);
	close(ends[1]);
	return ends[0];
}

/* Returns a descriptor of a file in sysfs or proc, which any caller may read. */
int open_sysfs(const char *path)
{
	const char *version = fake.version ? fake.version : FLEXMEM_VERSION "\n";
	const struct fake_node *node;
	unsigned int number;

	if (!strcmp(path, "/sys/module/flexmem/version") && !fake.no_module &&
	    *version)
		return open_text(version);
	if (!strcmp(path, "/proc/devices")) {
		errno = ENOENT;
		return *fake.devices ? open_text(fake.devices) : -1;
	}
	if (sscanf(path, SYSFS_MODE, &number) != 1)
		return 0;
	node = numbered(number);
	if (!node)
		return 0;
	return open_text(node->mode == FLEXMEM_MODE_PF ? "pf\n" : "vf\n");
}

int __wrap_access(const char *path, int mode)
{
	if (strcmp(path, "/sys/module/flexmem"))
		return __real_access(path, mode);
	errno = ENOENT;
	return fake.no_module ? -1 : 0;
}

int __wrap_stat(const char *path, struct stat *status)
{
	unsigned int number;

	if (sscanf(path, "/dev/flexmem%u", &number) != 1)
		return __real_stat(path, status);
	errno = ENOENT;
	if (!numbered(number))
		return -1;
	memset(status, 0, sizeof(*status));
	status->st_mode = S_IFCHR | fake.node_access;
	status->st_gid = fake.node_group;
	status->st_rdev = makedev(MAJOR, number);
	return 0;
}

ssize_t __wrap_readlink(const char *path, char *to, size_t size)
{
	size_t length;
	unsigned int i;

	if (strncmp(path, "/sys/", 5))
		return __real_readlink(path, to, size);
	for (i = 0; i < FAKE_LINKS; i++) {
		if (strcmp(fake.links[i].path, path))
			continue;
		length = strlen(fake.links[i].target);
		REQUIRE(length < size);
		memcpy(to, fake.links[i].target, length);
		return (ssize_t)length;
	}
	errno = ENOENT;
	return -1;
}
