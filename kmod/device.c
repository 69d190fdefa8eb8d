// SPDX-License-Identifier: GPL-2.0
/*
 * Registered devices.
 *
 * A device is there for as long as somebody has a file open on it, but its
 * driver may go at any time. The driver is called under the table's acquire_lock
 * and nowhere else; removal closes the table, so that whoever gets that lock
 * afterwards does not call, and then gives every region back under it. It waits
 * for one operation at most, and never for user space: a command may be stuck in
 * a page fault for as long as its caller likes. What remains is bookkeeping:
 * blocks that wait for their files to be closed.
 */

#include <linux/err.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "compat.h"
#include "device.h"
#include "settings.h"

static void device_release(struct device *dev)
{
	struct flexmem_device *fdev =
		container_of(dev, struct flexmem_device, dev);

	kfree(fdev);
}

static int check_desc(struct device *parent,
		      const struct flexmem_device_desc *desc)
{
	const struct flexmem_device_ops *ops = desc->ops;
	bool vf = desc->mode == FLEXMEM_MODE_VF;

	if (!is_power_of_2(desc->granule) || desc->granule < SZ_4K ||
	    desc->granule > SZ_1G ||
	    (vf && (!desc->slots || desc->slots > FLEXMEM_MAX_SLOTS)) ||
	    !ops->acquire || !ops->release || !ops->capacity ||
	    (vf && (!ops->slot_set || !ops->slot_clear))) {
		dev_err(parent, "flexmem: invalid device description\n");
		return -EINVAL;
	}
	return 0;
}

/**
 * flexmem_device_register - let flexmem manage the memory of a function
 * @parent: the function's device
 * @desc: what it is and what it can do; copied, except for its operations
 *
 * Takes the settings from the module parameters, acquires the regions if they
 * say so, and creates the node /dev/flexmemN.
 *
 * Context: may sleep; calls the operations.
 * Return: the registered device, for flexmem_device_unregister(), or an
 * ERR_PTR(): -EINVAL if the description or the settings do not suit, -ENOMEM,
 * -ENOSPC if there are too many devices, or what an operation returned.
 */
struct flexmem_device *
flexmem_device_register(struct device *parent,
			const struct flexmem_device_desc *desc)
{
	struct flexmem_settings settings;
	struct flexmem_device *fdev;
	int rc;

	rc = check_desc(parent, desc);
	if (rc)
		return ERR_PTR(rc);

	fdev = kzalloc(sizeof(*fdev), GFP_KERNEL);
	if (!fdev)
		return ERR_PTR(-ENOMEM);
	strscpy(fdev->name, desc->name, sizeof(fdev->name));
	flexmem_settings_get(&settings);
	rc = flexmem_table_init(&fdev->table, parent, desc, &settings);
	if (rc)
		goto free_device;
	if (settings.acquire == FLEXMEM_ACQUIRE_PREALLOC) {
		rc = flexmem_table_prealloc(&fdev->table);
		if (rc)
			goto remove_table;
	}

	/* From here on the struct is freed by its last reference. */
	rc = flexmem_chardev_add(fdev, parent, device_release);
	if (rc) {
		flexmem_table_remove(&fdev->table);
		put_device(&fdev->dev);
		return ERR_PTR(rc);
	}
	return fdev;

remove_table:
	flexmem_table_remove(&fdev->table);
free_device:
	kfree(fdev);
	return ERR_PTR(rc);
}
EXPORT_SYMBOL_GPL(flexmem_device_register);

/**
 * flexmem_device_unregister - the function goes
 * @fdev: what flexmem_device_register() returned
 *
 * Every further command gets ENODEV, and every region is given back to the
 * device before this returns. Open files stay valid.
 *
 * Context: may sleep. No operation is called after it returns. A region that
 * the firmware would not take back is reported in the log; the driver resets
 * the function, or the memory is lost until it does.
 */
void flexmem_device_unregister(struct flexmem_device *fdev)
{
	flexmem_chardev_remove(fdev);
	flexmem_table_remove(&fdev->table);
	put_device(&fdev->dev);
}
EXPORT_SYMBOL_GPL(flexmem_device_unregister);

/**
 * flexmem_device_capacity_changed - the function has got more or less capacity
 * @fdev: what flexmem_device_register() returned
 *
 * Reads the capacity anew, and lets regions be acquired again: at once, or, if
 * an operation is under way, with the next allocation that needs a region.
 *
 * Context: may sleep; may call the capacity operation, so not to be called from
 * an operation.
 */
void flexmem_device_capacity_changed(struct flexmem_device *fdev)
{
	int rc = flexmem_table_new_capacity(&fdev->table);

	if (rc)
		dev_warn(&fdev->dev, "capacity could not be read: error %d\n",
			 rc);
}
EXPORT_SYMBOL_GPL(flexmem_device_capacity_changed);
