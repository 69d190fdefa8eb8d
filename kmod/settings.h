/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The administrator's settings. Each device copies them when it registers.
 * Where the administrator made no choice, the device's driver chooses.
 */
#ifndef _FLEXMEM_SETTINGS_H
#define _FLEXMEM_SETTINGS_H

#include <linux/bits.h>
#include <linux/types.h>
#include <linux/flexmem.h>

struct flexmem_device_desc;

/*
 * The most live allocations of a client, and the most device-virtual ranges and
 * bindings together.
 */
#define FLEXMEM_MAX_HANDLES BIT(20)

/* The default limits, until the administrator sets others. */
#define FLEXMEM_DEFAULT_HANDLES BIT(20)
#define FLEXMEM_DEFAULT_FILES 4096

/*
 * A cgroup below this depth has no account of its own: its files are charged to
 * its nearest ancestor with one. The depth is bounded because each charge walks
 * up all accounts, under a lock for which other callers wait.
 */
#define FLEXMEM_MAX_DEPTH 32

/**
 * enum flexmem_pf_open - permission to open the node of a PF
 * @FLEXMEM_PF_OPEN_ADMIN: only the administrator (CAP_SYS_ADMIN), whatever the
 *	mode of the inode allows
 * @FLEXMEM_PF_OPEN_MODE: all processes that the mode of the inode allows, as
 *	for a VF
 */
enum flexmem_pf_open {
	FLEXMEM_PF_OPEN_ADMIN = 0,
	FLEXMEM_PF_OPEN_MODE = 1,
};

/**
 * struct flexmem_settings - settings of a device
 * @fit: block strategy
 * @order: region order; 0: not set
 * @acquire: when regions are acquired
 * @max_regions: cap on regions, 1 to FLEXMEM_MAX_SLOTS
 * @program_slots: number of slots that are set aside for programs
 * @default_depth: depth in the hierarchy of the cgroups that have the default
 *	limits
 * @release_after_s: a region is released when it has been empty for this many
 *	seconds; 0: empty regions stay
 * @pf_open: permission to open the node, if the device is a PF
 * @nr_sizes: number of @sizes in use; 0: not set
 * @sizes: region sizes in the order in which they are tried, in bytes
 */
struct flexmem_settings {
	enum flexmem_fit fit;
	enum flexmem_order order;
	enum flexmem_acquire acquire;
	unsigned int max_regions;
	unsigned int program_slots;
	unsigned int default_depth;
	unsigned int release_after_s;
	enum flexmem_pf_open pf_open;
	unsigned int nr_sizes;
	u64 sizes[FLEXMEM_MAX_FALLBACK_SIZES];
};

int flexmem_settings_validate(void);
void flexmem_settings_get(struct flexmem_settings *settings,
			  const struct flexmem_device_desc *desc);

#endif /* _FLEXMEM_SETTINGS_H */
