// SPDX-License-Identifier: GPL-2.0
/*
 * The nodes /dev/flexmemN, one a function.
 *
 * A PF's node shows physical addresses and is the administrator's (0600). A
 * VF's is for the users of the device (0660; a udev rule gives it to the group
 * flexmem).
 */

#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "device.h"

static DEFINE_IDA(minors);
static dev_t first_devt;

static int flexmem_open(struct inode *inode, struct file *filp)
{
	struct flexmem_device *fdev =
		container_of(inode->i_cdev, struct flexmem_device, cdev);
	struct flexmem_file *file;

	/* A file that is opened just as the device goes is one that stayed. */
	if (READ_ONCE(fdev->table.closing))
		return -ENODEV;
	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	get_device(&fdev->dev);
	file->fdev = fdev;
	flexmem_client_init(&file->client, &fdev->table);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static int flexmem_release(struct inode *inode, struct file *filp)
{
	struct flexmem_file *file = filp->private_data;
	struct flexmem_device *fdev = file->fdev;

	flexmem_client_fini(&file->client);
	kfree(file);
	put_device(&fdev->dev);
	return 0;
}

static const struct file_operations flexmem_fops = {
	.owner = THIS_MODULE,
	.open = flexmem_open,
	.release = flexmem_release,
	.unlocked_ioctl = flexmem_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static char *flexmem_devnode(flexmem_const_since_6_2 struct device *dev,
			     umode_t *mode)
{
	const struct flexmem_device *fdev =
		container_of(dev, struct flexmem_device, dev);

	if (mode)
		*mode = fdev->table.mode == FLEXMEM_MODE_PF ? 0600 : 0660;
	return NULL;
}

static ssize_t mode_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	const struct flexmem_device *fdev =
		container_of(dev, struct flexmem_device, dev);
	bool pf = fdev->table.mode == FLEXMEM_MODE_PF;

	return sysfs_emit(buf, "%s\n", pf ? "pf" : "vf");
}
static DEVICE_ATTR_RO(mode);

static struct attribute *flexmem_attrs[] = {
	&dev_attr_mode.attr,
	NULL,
};
ATTRIBUTE_GROUPS(flexmem);

static struct class flexmem_class = {
	.name = "flexmem",
	.devnode = flexmem_devnode,
	.dev_groups = flexmem_groups,
};

/**
 * flexmem_chardev_add - give a function its node
 * @fdev: function
 * @parent: its device
 * @release: frees @fdev
 *
 * Whatever it returns, @fdev is freed by its last reference from here on.
 *
 * Return: 0, -ENOSPC if there are too many nodes, or -ENOMEM.
 */
int flexmem_chardev_add(struct flexmem_device *fdev, struct device *parent,
			void (*release)(struct device *dev))
{
	int minor, rc;

	device_initialize(&fdev->dev);
	fdev->dev.class = &flexmem_class;
	fdev->dev.parent = parent;
	fdev->dev.release = release;
	cdev_init(&fdev->cdev, &flexmem_fops);
	fdev->cdev.owner = THIS_MODULE;

	minor = ida_alloc_max(&minors, FLEXMEM_MAX_DEVICES - 1, GFP_KERNEL);
	if (minor < 0)
		return minor;
	fdev->dev.devt = MKDEV(MAJOR(first_devt), minor);
	rc = dev_set_name(&fdev->dev, "flexmem%d", minor);
	if (rc)
		goto free_minor;
	rc = cdev_device_add(&fdev->cdev, &fdev->dev);
	if (rc)
		goto free_minor;
	return 0;

free_minor:
	ida_free(&minors, minor);
	return rc;
}

/**
 * flexmem_chardev_remove - take the node away; open files stay valid
 * @fdev: function
 */
void flexmem_chardev_remove(struct flexmem_device *fdev)
{
	cdev_device_del(&fdev->cdev, &fdev->dev);
	ida_free(&minors, MINOR(fdev->dev.devt));
}

/**
 * flexmem_chardev_init - once, when the module is loaded
 *
 * Return: 0 or a negative errno.
 */
int flexmem_chardev_init(void)
{
	int rc;

	rc = alloc_chrdev_region(&first_devt, 0, FLEXMEM_MAX_DEVICES,
				 "flexmem");
	if (rc)
		return rc;
	rc = class_register(&flexmem_class);
	if (rc)
		unregister_chrdev_region(first_devt, FLEXMEM_MAX_DEVICES);
	return rc;
}

/**
 * flexmem_chardev_exit - once, when the module is unloaded
 */
void flexmem_chardev_exit(void)
{
	class_unregister(&flexmem_class);
	unregister_chrdev_region(first_devt, FLEXMEM_MAX_DEVICES);
	ida_destroy(&minors);
}
