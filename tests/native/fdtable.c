// SPDX-License-Identifier: GPL-2.0
/*
 * Descriptors. As in the kernel, a task that gets a file by its number sees the
 * writes from before the file was installed, and no others: TSan sees no lock
 * here.
 */
#include "internal.h"

static struct file *files[NATIVE_FILES];
static unsigned int files_lock;

/* Returns false if the number is taken. */
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

/* Returns a reference, for native_close(), or NULL. */
struct file *native_fdget(unsigned int fd)
{
	struct file *file;

	raw_lock(&files_lock);
	file = files[fd];
	if (file) {
		os_acquire(&files[fd]);
		native_file_get(file);
	}
	raw_unlock(&files_lock);
	return file;
}

/* Returns the reference that the number had. */
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
