// SPDX-License-Identifier: GPL-2.0
/*
 * File descriptors. A task that finds a file by its descriptor sees the writes
 * that were made before the file was installed. The kernel guarantees no more.
 * TSan would take the lock in this file for a guarantee about later writes too,
 * so the lock is hidden from TSan.
 */
#include "internal.h"

static struct file *files[NATIVE_FILES];
static unsigned int files_lock;

/* Stands for a descriptor that is reserved and has no file yet. */
static struct file taken;

/* Returns false if the descriptor is in use. */
bool native_install(unsigned int fd, struct file *file)
{
	bool empty;

	raw_lock(&files_lock);
	empty = !files[fd];
	if (empty) {
		os_release(&files[fd]);
		files[fd] = file;
	}
	raw_unlock(&files_lock);
	return empty;
}

/* Returns the file with a new reference, for native_close(); or NULL. */
struct file *native_fdget(unsigned int fd)
{
	struct file *file;

	raw_lock(&files_lock);
	file = files[fd];
	if (file == &taken)
		file = NULL;
	if (file) {
		os_acquire(&files[fd]);
		native_file_get(file);
	}
	raw_unlock(&files_lock);
	return file;
}

/* Empties the descriptor. Its reference to the file passes to the caller. */
struct file *native_uninstall(unsigned int fd)
{
	struct file *file;

	raw_lock(&files_lock);
	file = files[fd];
	files[fd] = NULL;
	raw_unlock(&files_lock);
	if (file)
		os_acquire(&files[fd]);
	return file;
}

/*
 * The driver gets descriptors from this number on. Tests use smaller numbers.
 */
#define FIRST_UNUSED 128

int get_unused_fd_flags(unsigned int flags)
{
	unsigned int fd;

	if (native_should_fail(NATIVE_ALLOC))
		return -EMFILE;
	for (fd = FIRST_UNUSED; fd < NATIVE_FILES; fd++)
		if (native_install(fd, &taken))
			return fd;
	return -EMFILE;
}

void put_unused_fd(unsigned int fd)
{
	if (native_uninstall(fd) != &taken)
		shim_bug("descriptor %u is not unused", fd);
}

void fd_install(unsigned int fd, struct file *file)
{
	put_unused_fd(fd);
	if (!native_install(fd, file))
		shim_bug("descriptor %u is taken", fd);
}

struct file *fget(unsigned int fd)
{
	return fd < NATIVE_FILES ? native_fdget(fd) : NULL;
}

struct file *get_file(struct file *file)
{
	native_file_get(file);
	return file;
}

void fput(struct file *file)
{
	native_close(file);
}
