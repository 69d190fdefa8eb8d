// SPDX-License-Identifier: GPL-2.0
/*
 * Registered devices.
 *
 * A struct flexmem_dev exists while a file is open on it, but the driver of the
 * device may be removed at any time. flexmem calls the driver only under the
 * table's acquire_lock or data_lock, or in a page fault under map_lock. Removal
 * first changes the function's state. From then on, a task that takes one of
 * these locks does not call the driver. A task that already holds one finishes
 * its operation and calls no other, except one that undoes it. Removal waits
 * for these operations, and then releases every region. Removal never waits for
 * user space, because a caller can keep a command in a page fault for any time.
 * After the removal only blocks are left. Their owners free them when they
 * close their files.
 */

#include <linux/err.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "chardev.h"
#include "settings.h"

static void device_release(struct device *dev)
{
	struct flexmem_dev *fdev = container_of(dev, struct flexmem_dev, dev);

	flexmem_table_fini(&fdev->table);
	flexmem_chardev_put_inode(fdev);
	kfree(fdev);
}

/**
 * flexmem_device_register - let flexmem manage the memory of a function
 * @parent: the function's device
 * @desc: description of the function; copied, except its operations
 *
 * Takes the settings from the module parameters. A parameter with the value
 * auto takes the setting from @desc. Resets the function, acquires its regions
 * if the settings say so, takes the limits for each function, and creates the
 * node /dev/flexmemN.
 *
 * Context: may sleep; calls the operations.
 * Return: the registered device, for flexmem_device_unregister(), or an
 * ERR_PTR(): -EINVAL if the description or the settings are not valid for this
 * device, -ENOMEM, -ENOSPC if there are too many devices, or the error of an
 * operation.
 */
struct flexmem_dev *
flexmem_device_register(struct device *parent,
			const struct flexmem_device_desc *desc)
{
	struct flexmem_settings settings;
	struct flexmem_dev *fdev;
	int rc;

	fdev = kzalloc(sizeof(*fdev), GFP_KERNEL);
	if (!fdev)
		return ERR_PTR(-ENOMEM);
	flexmem_settings_get(&settings, desc);
	rc = flexmem_table_init(&fdev->table, parent, desc, &settings);
	if (rc)
		goto free_device;
	strscpy(fdev->name, desc->name, sizeof(fdev->name));
	if (settings.acquire == FLEXMEM_ACQUIRE_PREALLOC) {
		mutex_lock(&fdev->table.acquire_lock);
		rc = flexmem_table_prealloc(&fdev->table);
		mutex_unlock(&fdev->table.acquire_lock);
		if (rc)
			goto remove_table;
	}
	rc = flexmem_limit_join(&fdev->table.accounts);
	if (rc)
		goto remove_table;

	/* From here on the struct is freed when its last reference is put. */
	rc = flexmem_chardev_add(fdev, parent, device_release);
	if (rc) {
		flexmem_limit_leave(&fdev->table.accounts);
		flexmem_table_remove(&fdev->table);
		put_device(&fdev->dev);
		return ERR_PTR(rc);
	}
	dev_info(&fdev->dev, "registered: %s (%s), %s\n", fdev->name,
		 dev_name(parent),
		 fdev->table.function.mode == FLEXMEM_MODE_PF ? "PF" : "VF");
	return fdev;

remove_table:
	flexmem_table_remove(&fdev->table);
	flexmem_table_fini(&fdev->table);
free_device:
	kfree(fdev);
	return ERR_PTR(rc);
}
EXPORT_SYMBOL_GPL(flexmem_device_register);

/**
 * flexmem_device_unregister - end flexmem's management of a function
 * @fdev: what flexmem_device_register() returned
 *
 * From now on every command of a client fails with ENODEV. Before this returns,
 * flexmem releases all regions that it can. Open files stay valid.
 *
 * Context: may sleep. No operation is called after this call has returned. If
 * the PF or VF is suspended, flexmem calls none at all. The log reports a
 * region that could not be released. Its memory stays lost until the driver
 * resets the function.
 */
void flexmem_device_unregister(struct flexmem_dev *fdev)
{
	flexmem_chardev_remove(fdev);
	flexmem_limit_leave(&fdev->table.accounts);
	flexmem_table_remove(&fdev->table);
	dev_info(&fdev->dev, "removed\n");
	put_device(&fdev->dev);
}
EXPORT_SYMBOL_GPL(flexmem_device_unregister);

/**
 * flexmem_device_capacity_changed - the function has more or less capacity
 * @fdev: what flexmem_device_register() returned
 *
 * Reads the capacity again, so that regions can be acquired up to the new
 * value. If an operation is under way, the next allocation that needs a region
 * reads the capacity.
 *
 * Context: may sleep; may call operations, so it must not be called from an
 * operation.
 */
void flexmem_device_capacity_changed(struct flexmem_dev *fdev)
{
	int rc = flexmem_table_new_capacity(&fdev->table);

	if (rc)
		dev_warn(&fdev->dev, "capacity could not be read: error %d\n",
			 rc);
}
EXPORT_SYMBOL_GPL(flexmem_device_capacity_changed);

/*
 * What brings the function back, in DRM's words: the remedy with the fewest side
 * effects first.
 */
static char *remedy(const struct flexmem_dev *fdev, int error)
{
	if (!error)
		return "WEDGED=none";
	if (!fdev->table.function.ops.reset)
		return "WEDGED=unknown";
	return dev_is_pci(fdev->dev.parent) ? "WEDGED=rebind,bus-reset" :
					      "WEDGED=rebind";
}

static void announce_reset(struct flexmem_dev *fdev, int error)
{
	char result[32], generation[48];
	/* checkpatch: STATIC_CONST_CHAR_ARRAY - filled in below */
	char *envp[] = { "FLEXMEM_EVENT=reset", remedy(fdev, error), result,
			 generation, NULL };

	snprintf(result, sizeof(result), "FLEXMEM_ERROR=%d", -error);
	snprintf(generation, sizeof(generation), "FLEXMEM_GENERATION=%llu",
		 flexmem_slots_generation(&fdev->table.slots));
	kobject_uevent_env(&fdev->dev.kobj, KOBJ_CHANGE, envp);
}

/**
 * flexmem_device_reset - reset the function
 * @fdev: what flexmem_device_register() returned
 *
 * Called by a driver that finds its firmware dead, or finds that something else
 * has reset its device. All allocations are lost and all mappings are removed.
 * The handle of a lost allocation can only be looked up and freed; any other
 * use of it returns EIO. Then the reset operation is called, and the function
 * starts again without memory. Callers that need the device in the meantime get
 * EIO. The operator gets a uevent (FLEXMEM_EVENT=reset), also if this call fails.
 * A driver that makes a devcoredump does so before this call.
 *
 * Context: may sleep; calls the reset operation, so it must not be called from
 * an operation. Not in parallel with flexmem_device_suspend().
 * Return: 0; -EOPNOTSUPP if the driver has no reset operation; -ENODEV if the
 * device is removed; -EIO if the device failed again during the reset; or the
 * operation's error: after an error only another reset works.
 */
int flexmem_device_reset(struct flexmem_dev *fdev)
{
	int rc = flexmem_table_reset(&fdev->table);

	announce_reset(fdev, rc);
	if (rc)
		dev_err(&fdev->dev, "reset failed: error %d\n", rc);
	else
		dev_warn(&fdev->dev, "was reset, all allocations are lost\n");
	return rc;
}
EXPORT_SYMBOL_GPL(flexmem_device_reset);

/**
 * flexmem_device_failed - the function does not work any more
 * @fdev: what flexmem_device_register() returned
 *
 * Called by an interrupt handler that finds the firmware dead, or by
 * error_detected() of a PCI driver. From then on flexmem begins no operation,
 * and a caller that needs the device gets EIO. Allocations stay allocated and
 * mapped, and can be freed, until the driver calls flexmem_device_reset(). The
 * driver does so as soon as it may sleep. If the device fails during the reset
 * operation or directly after it, flexmem_device_reset() returns -EIO and the
 * function needs another reset.
 *
 * Context: any, also a hard interrupt; not after flexmem_device_unregister()
 * began.
 */
void flexmem_device_failed(struct flexmem_dev *fdev)
{
	flexmem_function_fail(&fdev->table.function);
	dev_err(&fdev->dev, "has failed: nothing but a reset works\n");
}
EXPORT_SYMBOL_GPL(flexmem_device_failed);

/**
 * flexmem_regions_unhold - a job that held regions has ended
 * @fdev: what flexmem_device_register() returned
 * @hold: what flexmem_client_hold() returned for a client of @fdev. Regions
 *	that a reset has lost since are skipped, and so is an empty hold
 *
 * Context: any in which a spinlock_t may be taken: with PREEMPT_RT only threads,
 * also threaded interrupt handlers; otherwise interrupt handlers, too. Before
 * flexmem_device_unregister() returns.
 */
void flexmem_regions_unhold(struct flexmem_dev *fdev,
			    const struct flexmem_hold *hold)
{
	flexmem_slots_unhold(&fdev->table.slots, hold);
}
EXPORT_SYMBOL_GPL(flexmem_regions_unhold);

/**
 * flexmem_device_suspend - the function is about to sleep
 * @fdev: what flexmem_device_register() returned
 *
 * No operation is called until flexmem_device_resume(), and no CPU has a
 * mapping of the device's memory. A task that touches mapped memory waits,
 * killably. The device must keep its memory, or be reset when it wakes up.
 *
 * Context: may sleep, for one command about regions, for one command that
 * undoes it, and for one operation that moves data.
 */
void flexmem_device_suspend(struct flexmem_dev *fdev)
{
	flexmem_table_suspend(&fdev->table);
}
EXPORT_SYMBOL_GPL(flexmem_device_suspend);

/**
 * flexmem_device_resume - end the suspend of a function
 * @fdev: what flexmem_device_register() returned
 */
void flexmem_device_resume(struct flexmem_dev *fdev)
{
	flexmem_table_resume(&fdev->table);
}
EXPORT_SYMBOL_GPL(flexmem_device_resume);
