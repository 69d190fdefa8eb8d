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
