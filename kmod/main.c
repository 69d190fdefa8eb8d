// SPDX-License-Identifier: GPL-2.0
/* flexmem.ko: loading and unloading. */

#include <linux/dma-fence.h>
#include <linux/module.h>

#include "alloc/allocation.h"
#include "block/spare.h"
#include "chardev.h"
#include "part.h"
#include "region/table.h"
#include "settings.h"
#include "tenant/account.h"
#include "version.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static const struct flexmem_part_ops *const parts[] = {
	&flexmem_part_core,
#ifndef FLEXMEM_CORE
	&flexmem_part_resize,
	&flexmem_part_reports,
	&flexmem_part_reservations,
	&flexmem_part_programs,
	&flexmem_part_bytes,
	&flexmem_part_spaces,
	/* The last row is the first one at close and loss, which wake others. */
	&flexmem_part_pressure,
#endif
};

static int __init flexmem_init(void)
{
	int rc = flexmem_settings_validate();

	if (rc)
		return rc;
	flexmem_parts_init(parts, ARRAY_SIZE(parts));
	rc = flexmem_spare_init();
	if (rc)
		return rc;
	rc = flexmem_chardev_init();
	if (rc) {
		flexmem_spare_exit();
		return rc;
	}
	flexmem_limit_init();
	return 0;
}
module_init(flexmem_init);

static void __exit flexmem_exit(void)
{
	flexmem_limit_exit();
	flexmem_chardev_exit();
	flexmem_spare_exit();
}
module_exit(flexmem_exit);

MODULE_DESCRIPTION("Device memory of AI accelerators: regions, slots, blocks");
MODULE_LICENSE("GPL");
MODULE_VERSION(FLEXMEM_VERSION);
