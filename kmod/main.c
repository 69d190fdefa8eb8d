// SPDX-License-Identifier: GPL-2.0
/* flexmem.ko: loading and unloading. */

#include <linux/module.h>

#include "allocation.h"
#include "device.h"
#include "region.h"
#include "settings.h"

static int __init flexmem_init(void)
{
	int rc;

	rc = flexmem_settings_validate();
	if (rc)
		return rc;
	rc = flexmem_region_init_caches();
	if (rc)
		return rc;
	rc = flexmem_allocation_init_caches();
	if (rc)
		goto exit_region_caches;
	rc = flexmem_chardev_init();
	if (rc)
		goto exit_allocation_caches;
	return 0;

exit_allocation_caches:
	flexmem_allocation_exit_caches();
exit_region_caches:
	flexmem_region_exit_caches();
	return rc;
}
module_init(flexmem_init);

static void __exit flexmem_exit(void)
{
	flexmem_chardev_exit();
	flexmem_allocation_exit_caches();
	flexmem_region_exit_caches();
}
module_exit(flexmem_exit);

MODULE_DESCRIPTION("Device memory of AI accelerators: regions, slots, blocks");
MODULE_LICENSE("GPL");
