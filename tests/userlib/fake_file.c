// SPDX-License-Identifier: GPL-2.0
/* Open files. The linker redirects the library's system calls to here. */
#include "fake.h"
#include "fake_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct file files[FDS];

static uint64_t next_file_id;

int __real_open(const char *path, int flags, ...);
int __real_close(int fd);
int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_close(int fd);
int __real_fstat(int fd, struct stat *status);
int __wrap_fstat(int fd, struct stat *status);
int __wrap_ioctl(int fd, unsigned long request, ...);

void reset_files(void)
{
	next_file_id = 0;
	memset(files, 0, sizeof(files));
}

void fake_remove(unsigned int index)
{
	int i;

	pthread_mutex_lock(&lock);
	fake.nodes[index].exists = false;
	for (i = 0; i < FDS; i++)
		if (files[i].node == &fake.nodes[index])
			files[i].gone = true;
	pthread_mutex_unlock(&lock);
}

static const struct fake_node *find_node(const char *path)
{
	char name[32];
	unsigned int i;

	for (i = 0; i < FAKE_NODES; i++) {
		if (!fake.nodes[i].exists)
			continue;
		snprintf(name, sizeof(name), "/dev/flexmem%u",
			 fake.nodes[i].number);
		if (!strcmp(path, name))
			return &fake.nodes[i];
	}
	return NULL;
}

int __wrap_open(const char *path, int flags, ...)
{
	const struct fake_node *node;
	int fd = -1;
	int i;

	if (strncmp(path, "/dev/flexmem", 12)) {
		va_list arguments;
		int mode;

		fd = open_sysfs(path);
		if (fd)
			return fd;
		va_start(arguments, flags);
		mode = va_arg(arguments, int);
		va_end(arguments);
		return __real_open(path, flags, mode);
	}
	pthread_mutex_lock(&lock);
	snprintf(fake.opened, sizeof(fake.opened), "%s", path);
	fake.open_flags = flags;
	node = find_node(path);
	errno = ENOENT;
	if (node && node->leaves) {
		fake.nodes[node - fake.nodes].exists = false;
		node = NULL;
	}
	if (node && node->open_error) {
		errno = node->open_error;
	} else if (node) {
		for (i = 0; i < FDS && files[i].open; i++)
			;
		REQUIRE(i < FDS);
		files[i] = (struct file){
			.open = true,
			.node = node,
			.id = ++next_file_id,
			.uid = fake.uid,
		};
		limits_of_new_file(&files[i]);
		fake.opens++;
		fd = FIRST_FD + i;
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

int __wrap_fstat(int fd, struct stat *status)
{
	if (fd < FIRST_FD || fd >= FIRST_FD + FDS)
		return __real_fstat(fd, status);
	memset(status, 0, sizeof(*status));
	status->st_mode = S_IFCHR;
	status->st_rdev = makedev(MAJOR, files[fd - FIRST_FD].node->number);
	return 0;
}

int __wrap_close(int fd)
{
	struct file *file;

	if (fd < FIRST_FD || fd >= FIRST_FD + FDS)
		return __real_close(fd);
	pthread_mutex_lock(&lock);
	file = &files[fd - FIRST_FD];
	REQUIRE(file->open);
	close_space(fd - FIRST_FD);
	free_all(fd - FIRST_FD);
	memset(file, 0, sizeof(*file));
	fake.closes++;
	pthread_mutex_unlock(&lock);
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	unsigned int number = _IOC_NR(request);
	int injected = 0;
	struct file *file;
	va_list arguments;
	void *arg;
	int err;

	va_start(arguments, request);
	arg = va_arg(arguments, void *);
	va_end(arguments);
	if (fd < FIRST_FD || fd >= FIRST_FD + FDS)
		return __real_ioctl(fd, request, arg);
	pthread_mutex_lock(&lock);
	file = &files[fd - FIRST_FD];
	REQUIRE(file->open);
	REQUIRE(_IOC_TYPE(request) == FLEXMEM_TYPE && !_IOC_SIZE(request));
	REQUIRE(_IOC_DIR(request) == _IOC_NONE && number < FAKE_COMMANDS);
	if (++fake.calls[number] == fake.inject[number].at)
		injected = fake.inject[number].error;
	err = file->gone ? ENODEV : dispatch(file, number, arg, injected);
	pthread_mutex_unlock(&lock);
	errno = err;
	return err ? -1 : 0;
}
