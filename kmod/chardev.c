// SPDX-License-Identifier: GPL-2.0
/*
 * The nodes /dev/flexmemN, one for each PF and VF.
 *
 * One character device serves all minor numbers, and open() looks up the
 * function that has the number now, because an inode in memory caches its
 * character device. A node in the /dev of a container has an inode of its own,
 * which stays when the function is removed. With a character device for each
 * function it could lead to the removed function.
 *
 * A PF's node shows physical addresses. So its mode is 0600, and only the
 * administrator may open it, whatever the mode is: mknod can make further
 * inodes with any mode. With the setting pf_open=mode the mode of the inode
 * decides. A VF's node is for the users of the device (0660; a udev rule gives
 * it to the group flexmem).
 *
 * All CPU mappings of a function must be in one struct address_space, so that
 * one call removes them. So each open file uses that of an internal inode of the
 * function, whichever inode was opened.
 */

#include <linux/capability.h>
#include <linux/cdev.h>
#include <linux/compat.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/mutex.h>
#include <linux/pseudo_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "chardev.h"
#include "compat.h"
#include "parts/mapping.h"
#include "tenant/owner.h"

/*
 * The functions by minor number. Numbers are given out cyclically, so while the
 * module is loaded the number of a removed function leads nowhere (ENXIO) until
 * all others of its range were used. PFs and VFs have ranges of their own, so an
 * old node of a VF never leads to a PF.
 */
static struct flexmem_dev *functions[FLEXMEM_MAX_DEVICES];
/* By mode: how many numbers of the range have been given out so far. */
static unsigned int given_out[FLEXMEM_MODE_VF + 1];

/* Protects the variables above. */
static DEFINE_MUTEX(functions_lock);

static struct cdev cdev;
static dev_t first_devt;
static struct vfsmount *inodes;
static int inodes_count;

#define FLEXMEM_MAGIC 0x666c786d /* "flxm" */

static bool is_pf(const struct flexmem_dev *fdev)
{
	return fdev->table.function.mode == FLEXMEM_MODE_PF;
}

static void free_file(struct flexmem_client *client)
{
	kfree(container_of(client, struct flexmem_file, client));
}

/* On success the caller's reference to @fdev belongs to the file. */
static int open_function(struct flexmem_dev *fdev, struct file *filp)
{
	struct flexmem_file *file;
	struct cgroup *cgroup;
	int rc;

	if (is_pf(fdev) && fdev->table.settings.pf_open != FLEXMEM_PF_OPEN_MODE &&
	    !capable(CAP_SYS_ADMIN))
		return -EPERM;
	/* The removal may have begun after find_function(). */
	if (flexmem_function_is_gone(&fdev->table.function))
		return -ENODEV;
	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	cgroup = flexmem_owner_cgroup();
	rc = flexmem_client_init(&file->client, &fdev->table,
				 filp->f_cred->uid, cgroup, task_tgid(current));
	flexmem_owner_put_cgroup(cgroup);
	if (rc) {
		kfree(file);
		return rc;
	}
	file->fdev = fdev;
	file->client.free = free_file;
	filp->private_data = file;
	filp->f_mapping = fdev->inode->i_mapping;
	return 0;
}

static struct flexmem_dev *find_function(unsigned int minor)
{
	struct flexmem_dev *fdev;

	mutex_lock(&functions_lock);
	fdev = functions[minor];
	if (fdev)
		get_device(&fdev->dev);
	mutex_unlock(&functions_lock);
	return fdev;
}

static int flexmem_open(struct inode *inode, struct file *filp)
{
	struct flexmem_dev *fdev = find_function(iminor(inode));
	int rc;

	if (!fdev)
		return -ENXIO;
	rc = open_function(fdev, filp);
	if (rc) {
		put_device(&fdev->dev);
		return rc;
	}
	return nonseekable_open(inode, filp);
}

static int flexmem_release(struct inode *inode, struct file *filp)
{
	struct flexmem_file *file = filp->private_data;
	struct flexmem_dev *fdev = file->fdev;

	flexmem_client_fini(&file->client);
	/* A driver's reference may keep the client, but does not keep @fdev. */
	flexmem_client_put(&file->client);
	put_device(&fdev->dev);
	return 0;
}

static int flexmem_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct flexmem_file *file = filp->private_data;
	struct flexmem_block *chunk;

	if (flexmem_function_is_gone(&file->fdev->table.function))
		return -ENODEV;
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	chunk = flexmem_client_get_mapped(&file->client,
					  (u64)vma->vm_pgoff << PAGE_SHIFT);
	return IS_ERR(chunk) ? PTR_ERR(chunk) :
			       flexmem_mapping_mmap(chunk, vma);
}

/* Prints the client's figures in the format of gpu/drm-usage-stats.rst. */
static void flexmem_show_fdinfo(struct seq_file *m, struct file *filp)
{
	struct flexmem_file *file = filp->private_data;
	struct flexmem_account *account = file->client.account;
	u64 bytes, orphaned, slots, handles;

	spin_lock(&file->fdev->table.accounts.lock);
	flexmem_account_settle(account);
	bytes = account->placed;
	slots = account->used[FLEXMEM_RESOURCE_REGIONS];
	handles = account->used[FLEXMEM_RESOURCE_HANDLES];
	orphaned = account->orphaned;
	spin_unlock(&file->fdev->table.accounts.lock);

	seq_puts(m, "flexmem-driver:\tflexmem\n");
	seq_printf(m, "flexmem-device:\t%s\n", dev_name(&file->fdev->dev));
	seq_printf(m, "flexmem-client-id:\t%llu\n", account->id);
	/* Sizes are multiples of 128 bytes, so the figures are rounded up. */
	seq_printf(m, "flexmem-total-memory:\t%llu KiB\n",
		   DIV_ROUND_UP_ULL(bytes, SZ_1K));
	seq_printf(m, "flexmem-orphaned-memory:\t%llu KiB\n",
		   DIV_ROUND_UP_ULL(orphaned, SZ_1K));
	seq_printf(m, "flexmem-slots:\t%llu\n", slots);
	seq_printf(m, "flexmem-handles:\t%llu\n", handles);
}

static const struct file_operations flexmem_fops = {
	.owner = THIS_MODULE,
	.open = flexmem_open,
	.release = flexmem_release,
	.read = flexmem_pressure_read,
	.poll = flexmem_pressure_poll,
	.unlocked_ioctl = flexmem_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = flexmem_mmap,
	/* Chooses addresses that allow huge pages. */
	.get_unmapped_area = thp_get_unmapped_area,
	.show_fdinfo = flexmem_show_fdinfo,
};

/**
 * flexmem_client_from_fd - the client behind a file descriptor
 * @fdev: function whose node the file must be
 * @fd: descriptor of the calling task
 *
 * If the file is closed during the call, the client has no handles any more,
 * and the driver's @client_gone operation may be called before the return.
 *
 * Context: may sleep, in the task that has the descriptor.
 * Return: the client, with a reference for flexmem_client_put(). An ERR_PTR():
 * -EBADF if the file is not open, or open for reading only; -EINVAL if it is
 * not a file of @fdev's node.
 */
struct flexmem_client *flexmem_client_from_fd(struct flexmem_dev *fdev, int fd)
{
	struct flexmem_client *client = ERR_PTR(-EINVAL);
	struct file *filp = fget(fd);
	struct flexmem_file *file;

	if (!filp)
		return ERR_PTR(-EBADF);
	file = filp->f_op == &flexmem_fops ? filp->private_data : NULL;
	if (file && file->fdev == fdev) {
		client = ERR_PTR(-EBADF);
		if (filp->f_mode & FMODE_WRITE) {
			client = &file->client;
			flexmem_client_get(client);
		}
	}
	fput(filp);
	return client;
}
EXPORT_SYMBOL_GPL(flexmem_client_from_fd);

static char *flexmem_devnode(flexmem_const_since_6_2 struct device *dev,
			     umode_t *mode)
{
	const struct flexmem_dev *fdev =
		container_of(dev, struct flexmem_dev, dev);

	if (mode)
		*mode = is_pf(fdev) ? 0600 : 0660;
	return NULL;
}

static ssize_t mode_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	const struct flexmem_dev *fdev =
		container_of(dev, struct flexmem_dev, dev);

	return sysfs_emit(buf, "%s\n", is_pf(fdev) ? "pf" : "vf");
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

static int inodes_init_fs_context(struct fs_context *context)
{
	return init_pseudo(context, FLEXMEM_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type inodes_type = {
	.name = "flexmem",
	.owner = THIS_MODULE,
	.init_fs_context = inodes_init_fs_context,
	.kill_sb = kill_anon_super,
};

/* The mount pins the module, so it exists only while a function is registered. */
static int add_inode(struct flexmem_dev *fdev)
{
	struct inode *inode;
	int rc = simple_pin_fs(&inodes_type, &inodes, &inodes_count);

	if (rc)
		return rc;
	inode = alloc_anon_inode(inodes->mnt_sb);
	if (IS_ERR(inode)) {
		simple_release_fs(&inodes, &inodes_count);
		return PTR_ERR(inode);
	}
	fdev->inode = inode;
	fdev->table.mapping = inode->i_mapping;
	return 0;
}

void flexmem_chardev_put_inode(struct flexmem_dev *fdev)
{
	if (!fdev->inode)
		return;
	iput(fdev->inode);
	simple_release_fs(&inodes, &inodes_count);
}

/* The next free number of a function's range, for drop_minor(); or -ENOSPC. */
static int take_minor(struct flexmem_dev *fdev)
{
	unsigned int first = is_pf(fdev) ? 0 : FLEXMEM_MAX_PFS;
	unsigned int nr = is_pf(fdev) ? FLEXMEM_MAX_PFS : FLEXMEM_MAX_VFS;
	unsigned int *next = &given_out[fdev->table.function.mode];
	int minor = -ENOSPC;
	unsigned int i;

	mutex_lock(&functions_lock);
	for (i = 0; i < nr && functions[first + *next % nr]; i++)
		++*next;
	if (i < nr) {
		minor = first + (*next)++ % nr;
		functions[minor] = fdev;
	}
	mutex_unlock(&functions_lock);
	return minor;
}

static void drop_minor(unsigned int minor)
{
	mutex_lock(&functions_lock);
	functions[minor] = NULL;
	mutex_unlock(&functions_lock);
}

/*
 * Gives a function its node. From this call on @release frees @fdev when its last
 * reference is put, even if the call fails.
 * Return: 0, -ENOSPC if there are too many functions of its mode, or -ENOMEM.
 */
int flexmem_chardev_add(struct flexmem_dev *fdev, struct device *parent,
			void (*release)(struct device *dev))
{
	int minor, rc;

	device_initialize(&fdev->dev);
	fdev->dev.class = &flexmem_class;
	fdev->dev.parent = parent;
	fdev->dev.release = release;

	rc = add_inode(fdev);
	if (rc)
		return rc;
	/* Before the node exists, because udev opens the node at once. */
	minor = take_minor(fdev);
	if (minor < 0)
		return minor;
	fdev->dev.devt = MKDEV(MAJOR(first_devt), minor);
	fdev->table.function.minor = minor;
	rc = dev_set_name(&fdev->dev, "flexmem%d", minor);
	rc = rc ?: device_add(&fdev->dev);
	if (rc)
		drop_minor(minor);
	return rc;
}

/* Removes the node; open files stay valid. */
void flexmem_chardev_remove(struct flexmem_dev *fdev)
{
	device_del(&fdev->dev);
	drop_minor(MINOR(fdev->dev.devt));
}

int flexmem_chardev_init(void)
{
	int rc;

	rc = alloc_chrdev_region(&first_devt, 0, FLEXMEM_MAX_DEVICES,
				 "flexmem");
	if (rc)
		return rc;
	rc = class_register(&flexmem_class);
	if (rc)
		goto free_region;
	cdev_init(&cdev, &flexmem_fops);
	cdev.owner = THIS_MODULE;
	rc = cdev_add(&cdev, first_devt, FLEXMEM_MAX_DEVICES);
	if (rc)
		goto unregister_class;
	return 0;

unregister_class:
	class_unregister(&flexmem_class);
free_region:
	unregister_chrdev_region(first_devt, FLEXMEM_MAX_DEVICES);
	return rc;
}

void flexmem_chardev_exit(void)
{
	cdev_del(&cdev);
	class_unregister(&flexmem_class);
	unregister_chrdev_region(first_devt, FLEXMEM_MAX_DEVICES);
}
