/* SPDX-License-Identifier: GPL-2.0 */
/* What the administrator sets: one copy a device, taken when it registers. */
#ifndef _FLEXMEM_SETTINGS_H
#define _FLEXMEM_SETTINGS_H

#include <linux/types.h>
#include <linux/flexmem.h>

/**
 * enum flexmem_pf_open - who may open the node of a PF
 * @FLEXMEM_PF_OPEN_ADMIN: the administrator (CAP_SYS_ADMIN), whatever the mode
 *	of the inode lets others do
 * @FLEXMEM_PF_OPEN_MODE: whom the inode lets, as with a VF
 */
enum flexmem_pf_open {
	FLEXMEM_PF_OPEN_ADMIN = 0,
	FLEXMEM_PF_OPEN_MODE = 1,
};

/**
 * struct flexmem_settings - how a device is managed
 * @fit: which free block of a region is taken
 * @order: in which order regions are tried
 * @acquire: when regions are acquired
 * @max_regions: cap on regions, 1 to FLEXMEM_MAX_SLOTS
 * @program_slots: of these, how many are set aside for programs
 * @max_handles: live allocations one client may have
 * @lease_ms: how long a lease lasts, in milliseconds
 * @lease_total_ms: since it was taken first, until when it can be taken again;
 *	0: for ever
 * @pf_open: who may open it if it is a PF
 * @nr_sizes: how many of @sizes are used, at least 1
 * @sizes: region sizes in the order they are tried, in bytes
 */
struct flexmem_settings {
	enum flexmem_fit fit;
	enum flexmem_order order;
	enum flexmem_acquire acquire;
	unsigned int max_regions;
	unsigned int program_slots;
	unsigned int max_handles;
	unsigned int lease_ms;
	unsigned int lease_total_ms;
	enum flexmem_pf_open pf_open;
	unsigned int nr_sizes;
	u64 sizes[FLEXMEM_MAX_FALLBACK_SIZES];
};

int flexmem_settings_validate(void);
int flexmem_settings_print_sizes(const u64 *sizes, unsigned int nr, char *text,
				 size_t room);
void flexmem_settings_get(struct flexmem_settings *settings);

#endif /* _FLEXMEM_SETTINGS_H */
