/* SPDX-License-Identifier: GPL-2.0 */
/* A registered device: one function, its node, and how it is removed. */
#ifndef _FLEXMEM_DEVICE_H
#define _FLEXMEM_DEVICE_H

#include <linux/atomic.h>
#include <linux/device.h>
#include <linux/mutex.h>
#include <flexmem/device_ops.h>

#include "client.h"
#include "table.h"

/**
 * struct flexmem_dev - a device function, from registration to the last close
 * @dev: the node's device; its last reference frees this struct
 * @inode: inode whose address space holds all CPU mappings
 * @name: the device's name, for messages and user space
 * @failures: allocations that ended in ENOMEM
 * @power: held over suspend, resume, and a reset that flexmem itself begins
 * @table: regions of the function
 */
struct flexmem_dev {
	struct device dev;
	struct inode *inode;
	char name[32];
	atomic64_t failures;
	struct mutex power; /* held over suspend, resume and reset */
	struct flexmem_table table;
};

/**
 * struct flexmem_file - private_data of an open file
 * @fdev: function; a reference is held
 * @client: its allocations
 */
struct flexmem_file {
	struct flexmem_dev *fdev;
	struct flexmem_client client;
};

int flexmem_chardev_init(void);
void flexmem_chardev_exit(void);
int flexmem_chardev_add(struct flexmem_dev *fdev, struct device *parent,
			void (*release)(struct device *dev));
void flexmem_chardev_remove(struct flexmem_dev *fdev);
void flexmem_chardev_put_inode(struct flexmem_dev *fdev);

long flexmem_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

#endif /* _FLEXMEM_DEVICE_H */
