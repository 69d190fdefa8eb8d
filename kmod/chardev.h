/* SPDX-License-Identifier: GPL-2.0 */
/* The nodes of registered devices. */
#ifndef _FLEXMEM_CHARDEV_H
#define _FLEXMEM_CHARDEV_H

#include "ioctl.h"

/* Minor numbers: first those of PFs, then those of VFs. */
#define FLEXMEM_MAX_PFS 64
#define FLEXMEM_MAX_VFS 960
#define FLEXMEM_MAX_DEVICES (FLEXMEM_MAX_PFS + FLEXMEM_MAX_VFS)

int flexmem_chardev_init(void);
void flexmem_chardev_exit(void);
int flexmem_chardev_add(struct flexmem_dev *fdev, struct device *parent,
			void (*release)(struct device *dev));
void flexmem_chardev_remove(struct flexmem_dev *fdev);
void flexmem_chardev_put_inode(struct flexmem_dev *fdev);

#endif /* _FLEXMEM_CHARDEV_H */
