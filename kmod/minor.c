// SPDX-License-Identifier: GPL-2.0
/*
 * Minor numbers of nodes.
 *
 * PFs and VFs have separate ranges, so an old or hand-made node of a VF never
 * leads to a PF. While the module is loaded, a device gets the number that its
 * name had before, unless the numbers of the range have run out. Drivers may be
 * unbound and bound again in any order: /dev/flexmemN in a rule, a container or
 * a configuration still means the same PF or VF.
 */

#include <linux/errno.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ioctl.h"
#include "minor.h"

void flexmem_minors_init(struct flexmem_minors *minors)
{
	memset(minors, 0, sizeof(*minors));
	mutex_init(&minors->lock);
}

/*
 * Frees the names of the devices that had numbers. No number is in use any
 * more.
 */
void flexmem_minors_fini(struct flexmem_minors *minors)
{
	unsigned int minor;

	for (minor = 0; minor < FLEXMEM_MAX_DEVICES; minor++) {
		WARN_ON_ONCE(minors->function[minor]);
		kfree(minors->name[minor]);
	}
	mutex_destroy(&minors->lock);
}

/*
 * Finds the number that @name had before. If @name had none, finds the lowest
 * number that was never used. If all numbers were used, finds the lowest one
 * that is free now, and takes it from its former device.
 */
static int find(const struct flexmem_minors *minors, enum flexmem_mode mode,
		const char *name)
{
	bool pf = mode == FLEXMEM_MODE_PF;
	int minor = pf ? 0 : FLEXMEM_MAX_PFS, unused = -ENOSPC, idle = -ENOSPC;
	int end = pf ? FLEXMEM_MAX_PFS : FLEXMEM_MAX_DEVICES;

	lockdep_assert_held(&minors->lock);
	for (; minor < end; minor++) {
		if (minors->function[minor])
			continue;
		if (minors->name[minor] && !strcmp(minors->name[minor], name))
			return minor;
		if (!minors->name[minor])
			unused = unused < 0 ? minor : unused;
		else
			idle = idle < 0 ? minor : idle;
	}
	return unused < 0 ? idle : unused;
}

static int take(struct flexmem_minors *minors, int minor, const char *name,
		struct flexmem_dev *fdev)
{
	char *copy;

	lockdep_assert_held(&minors->lock);
	if (!minors->name[minor] || strcmp(minors->name[minor], name)) {
		copy = kstrdup(name, GFP_KERNEL);
		if (!copy)
			return -ENOMEM;
		kfree(minors->name[minor]);
		minors->name[minor] = copy;
	}
	minors->function[minor] = fdev;
	return minor;
}

/*
 * Finds the number for a function.
 * @mode: PF or VF; each has its own range of numbers. @name: name of the
 * function's device. If two devices have the same name, the later one gets
 * another number. @fdev: open() finds it from now on.
 * Context: may sleep. Return: the number, for flexmem_minor_put(); -ENOSPC if
 * all are in use, or -ENOMEM.
 */
int flexmem_minor_get(struct flexmem_minors *minors, enum flexmem_mode mode,
		      const char *name, struct flexmem_dev *fdev)
{
	int minor;

	mutex_lock(&minors->lock);
	minor = find(minors, mode, name);
	if (minor >= 0)
		minor = take(minors, minor, name, fdev);
	mutex_unlock(&minors->lock);
	return minor;
}

/*
 * Gives up the number of a function. A device of the same name gets this number
 * again, unless the numbers run out.
 */
void flexmem_minor_put(struct flexmem_minors *minors, unsigned int minor)
{
	mutex_lock(&minors->lock);
	minors->function[minor] = NULL;
	mutex_unlock(&minors->lock);
}

/*
 * The function that has a number now, with a reference for put_device(); or
 * NULL. May sleep.
 */
struct flexmem_dev *flexmem_minor_find(struct flexmem_minors *minors,
				       unsigned int minor)
{
	struct flexmem_dev *fdev;

	mutex_lock(&minors->lock);
	fdev = minors->function[minor];
	if (fdev)
		get_device(&fdev->dev);
	mutex_unlock(&minors->lock);
	return fdev;
}
