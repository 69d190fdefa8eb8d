// SPDX-License-Identifier: GPL-2.0
/* Devices and classes, events and dumps. */
#include "internal.h"

void device_initialize(struct device *dev)
{
	refcount_set(&dev->kobj.refs, 1);
}

int dev_set_name(struct device *dev, const char *format, ...)
{
	va_list args;

	if (native_should_fail(NATIVE_ALLOC))
		return -ENOMEM;
	va_start(args, format);
	vsnprintf(dev->name, sizeof(dev->name), format, args);
	va_end(args);
	return 0;
}

struct device *get_device(struct device *dev)
{
	if (dev)
		refcount_inc(&dev->kobj.refs);
	return dev;
}

int device_add(struct device *dev)
{
	might_sleep();
	/* The kernel allocates the name of the node and the name in sysfs. */
	if (native_should_fail(NATIVE_ALLOC) || native_should_fail(NATIVE_ALLOC))
		return -ENOMEM;
	get_device(dev);
	return 0;
}

void device_del(struct device *dev)
{
	might_sleep();
	put_device(dev);
}

void put_device(struct device *dev)
{
	if (!dev)
		return;
	might_sleep();
	if (refcount_dec_and_test(&dev->kobj.refs) && dev->release)
		dev->release(dev);
	native_point();
}

static struct class *classes;

int class_register(struct class *class)
{
	if (native_should_fail(NATIVE_ALLOC))
		return -ENOMEM;
	classes = class;
	return 0;
}

void class_unregister(struct class *class)
{
	if (classes != class)
		shim_bug("class %s is not there", class->name);
	classes = NULL;
}

struct bus_type {
	const char *name;
};

const struct bus_type pci_bus_type = { .name = "pci" };

int kobject_uevent_env(struct kobject *kobj, enum kobject_action action,
		       char *envp[])
{
	might_sleep();
	for (; *envp; envp++)
		native_dev_message(NULL, "uevent: %s\n", *envp);
	return 0;
}

/* A file or a directory in debugfs. */
struct dentry {
	struct list_head link;
	struct dentry *parent;
	const char *name;
	void *data;
	const struct file_operations *fops;
};

static LIST_HEAD(dentries);
/*
 * A reader of a file holds this lock, so that a removal waits for all readers.
 */
static struct rw_semaphore debugfs_lock = {
	.waiters = LIST_HEAD_INIT(debugfs_lock.waiters),
};

struct dentry *debugfs_create_file(const char *name, umode_t mode,
				   struct dentry *parent, void *data,
				   const struct file_operations *fops)
{
	struct dentry *dentry;

	if (IS_ERR(parent))
		return parent;
	if (native_should_fail(NATIVE_ALLOC))
		return ERR_PTR(-ENOMEM);
	/*
	 * A device also works without its debugfs files, so a failure here must
	 * not change native_live(). Therefore native_live() never counts these
	 * files.
	 */
	dentry = calloc(1, sizeof(*dentry));
	if (!dentry)
		abort();
	dentry->parent = parent;
	dentry->name = name;
	dentry->data = data;
	dentry->fops = fops;
	down_write(&debugfs_lock);
	list_add_tail(&dentry->link, &dentries);
	up_write(&debugfs_lock);
	return dentry;
}

struct dentry *debugfs_create_dir(const char *name, struct dentry *parent)
{
	return debugfs_create_file(name, 0700, parent, NULL, NULL);
}

/* Removes a file, or a directory with its files. */
void debugfs_remove(struct dentry *dentry)
{
	struct dentry *at, *next;

	bool is_top;

	if (IS_ERR_OR_NULL(dentry))
		return;
	is_top = !dentry->parent;
	down_write(&debugfs_lock);
	list_for_each_entry_safe(at, next, &dentries, link) {
		if (at != dentry && at->parent != dentry)
			continue;
		list_del(&at->link);
		free(at);
	}
	if (is_top && !list_empty(&dentries))
		shim_bug("files in debugfs are left");
	up_write(&debugfs_lock);
}

static struct dentry *find_file(const char *dir, const char *name)
{
	struct dentry *at;

	list_for_each_entry(at, &dentries, link)
		if (at->fops && !strcmp(at->name, name) &&
		    !strcmp(at->parent->name, dir))
			return at;
	return NULL;
}

int native_debugfs(const char *dir, const char *name, struct seq_file *m)
{
	struct dentry *file;
	int rc = -ENOENT;

	m->length = 0;
	m->text[0] = 0;
	down_read(&debugfs_lock);
	file = find_file(dir, name);
	if (file) {
		m->private = file->data;
		rc = file->fops->show(m, NULL);
	}
	up_read(&debugfs_lock);
	return rc;
}

/* The pseudo file system for the inodes of the driver's devices. */
static struct super_block super_block;
static struct vfsmount mount = { .mnt_sb = &super_block };
static DEFINE_SPINLOCK(pin_lock);

struct pseudo_fs_context *init_pseudo(struct fs_context *context,
				      unsigned long magic)
{
	context->magic = magic;
	return native_should_fail(NATIVE_ALLOC) ? NULL : (void *)context;
}

int simple_pin_fs(struct file_system_type *type, struct vfsmount **at,
		  int *count)
{
	struct fs_context context;
	bool there;
	int rc;

	might_sleep();
	spin_lock(&pin_lock);
	there = *at;
	spin_unlock(&pin_lock);
	rc = there ? 0 : type->init_fs_context(&context);
	if (rc)
		return rc;
	spin_lock(&pin_lock);
	*at = &mount;
	++*count;
	spin_unlock(&pin_lock);
	return 0;
}

void simple_release_fs(struct vfsmount **at, int *count)
{
	might_sleep();
	spin_lock(&pin_lock);
	if (*count <= 0)
		shim_bug("file system is released, but not pinned");
	if (!--*count)
		*at = NULL;
	spin_unlock(&pin_lock);
}

struct inode *alloc_anon_inode(struct super_block *sb)
{
	struct inode *inode = kzalloc(sizeof(*inode), GFP_KERNEL);

	if (!inode)
		return ERR_PTR(-ENOMEM);
	refcount_set(&inode->refs, 1);
	inode->i_mapping = &inode->data;
	INIT_LIST_HEAD(&inode->data.vmas);
	return inode;
}

void iput(struct inode *inode)
{
	might_sleep();
	if (!refcount_dec_and_test(&inode->refs))
		return;
	if (!list_empty(&inode->data.vmas))
		shim_bug("inode goes while it is mapped");
	kfree(inode);
}
