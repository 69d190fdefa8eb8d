// SPDX-License-Identifier: GPL-2.0
/* Nodes and open files, as the driver sees them and as a process does. */
#include "internal.h"

static struct cdev *registered;
static unsigned int registered_minors;
static int regions;

int alloc_chrdev_region(dev_t *devt, unsigned int first, unsigned int count,
			const char *name)
{
	if (native_should_fail(NATIVE_ALLOC))
		return -ENOMEM;
	*devt = MKDEV(240, first);
	regions++;
	return 0;
}

void unregister_chrdev_region(dev_t devt, unsigned int count)
{
	if (!regions--)
		shim_bug("numbers of nodes are given back twice");
}

void cdev_init(struct cdev *cdev, const struct file_operations *ops)
{
	*cdev = (struct cdev) { .ops = ops };
}

int cdev_add(struct cdev *cdev, dev_t devt, unsigned int count)
{
	if (native_should_fail(NATIVE_ALLOC))
		return -ENOMEM;
	if (registered)
		shim_bug("a second character device");
	registered = cdev;
	registered_minors = count;
	return 0;
}

void cdev_del(struct cdev *cdev)
{
	if (registered != cdev)
		shim_bug("character device is not there");
	registered = NULL;
}

void poll_wait(struct file *filp, wait_queue_head_t *queue, poll_table *wait)
{
	struct wait_queue_entry entry = {
		.entry = LIST_HEAD_INIT(entry.entry),
	};

	/*
	 * Adds the poller to the queue and removes it, to show that the queue
	 * is valid.
	 */
	if (!wait)
		return;
	entry.private = current;
	entry.func = autoremove_wake_function;
	add_wait_queue(queue, &entry);
	remove_wait_queue(queue, &entry);
}

int nonseekable_open(struct inode *inode, struct file *filp)
{
	return 0;
}

/* ---- system calls of a process ---- */

/**
 * native_open - open an inode with the number of /dev/flexmemN
 * @minor: N
 * @flags: O_RDONLY, O_WRONLY or O_RDWR, perhaps with O_NONBLOCK
 *
 * Return: the file, for native_close(); ERR_PTR(-ENXIO) if no character device has
 * the number; or the error of the driver.
 */
struct file *native_open(unsigned int minor, unsigned int flags)
{
	struct inode inode = { .i_rdev = MKDEV(240, minor) };
	struct file *file;
	int rc;

	if (!registered || minor >= registered_minors)
		return ERR_PTR(-ENXIO);
	file = calloc(1, sizeof(*file));
	if (!file)
		abort();
	refcount_set(&file->refs, 1);
	file->cred = current->cred;
	file->f_cred = &file->cred;
	file->f_flags = flags;
	file->f_mode = (flags & O_ACCMODE) + 1;
	file->f_op = registered->ops;
	rc = file->f_op->open(&inode, file);
	if (!rc)
		return file;
	free(file);
	return ERR_PTR(rc);
}

/* Makes a file that has no node. The caller owns the file. */
struct file *anon_inode_getfile(const char *name,
				const struct file_operations *ops, void *data,
				int flags)
{
	struct file *file;

	if (native_should_fail(NATIVE_ALLOC))
		return ERR_PTR(-ENOMEM);
	file = calloc(1, sizeof(*file));
	if (!file)
		abort();
	refcount_set(&file->refs, 1);
	file->cred = current->cred;
	file->f_cred = &file->cred;
	file->f_op = ops;
	file->private_data = data;
	return file;
}

/* Takes a reference to the file, for another descriptor or a mapping. */
void native_file_get(struct file *file)
{
	refcount_inc(&file->refs);
}

void native_close(struct file *file)
{
	if (!refcount_dec_and_test(&file->refs))
		return;
	file->f_op->release(NULL, file);
	free(file);
}

long native_ioctl(struct file *file, unsigned int cmd, void *arg)
{
	return file->f_op->unlocked_ioctl(file, cmd, (unsigned long)arg);
}

ssize_t native_read(struct file *file, void *to, size_t count)
{
	loff_t pos = 0;

	return file->f_op->read(file, to, count, &pos);
}

__poll_t native_poll(struct file *file)
{
	return file->f_op->poll(file, (poll_table *)file);
}

void native_fdinfo(struct file *file, struct seq_file *m)
{
	m->length = 0;
	file->f_op->show_fdinfo(m, file);
}
