/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated card as its driver sees it: one PF and some VFs, each a platform
 * device that is bound and unbound on its own.
 */
#ifndef _FLEXMEM_SIM_H
#define _FLEXMEM_SIM_H

#include <linux/mutex.h>

#include "device_ops.h"
#include "firmware.h"
#include "mailbox.h"

struct dentry;
struct device;
struct platform_device;

/**
 * struct sim_function - the PF or a VF
 * @card: its card
 * @index: 0 for the PF, 1 + n for VF n
 * @pdev: its device, whether a driver is bound to it or not
 * @dir: its directory in debugfs
 * @dev: while a driver is bound: for messages
 * @doubt: number of the command whose outcome is unknown, or 0. Only
 *	operations touch it, which flexmem calls one at a time
 * @lock: held from before the registration with flexmem until its result is
 *	in @fdev
 * @fdev: the device registered with flexmem, or NULL
 *
 * All but @dev, @doubt and @fdev never change.
 */
struct sim_function {
	struct sim_card *card;
	unsigned int index;
	struct platform_device *pdev;
	struct dentry *dir;
	struct device *dev;
	u64 doubt;
	/*
	 * Protects @fdev. Taken before all locks of flexmem, and held while
	 * flexmem calls operations, so they do not take it.
	 */
	struct mutex lock;
	struct flexmem_device *fdev;
};

/**
 * struct sim_card - a card
 * @mbox: the way to its firmware
 * @fw: the firmware
 * @dir: directory in debugfs
 * @functions: the PF, and as many VFs as there are
 */
struct sim_card {
	struct sim_mailbox mbox;
	struct sim_firmware *fw;
	struct dentry *dir;
	struct sim_function functions[SIM_MAX_FUNCTIONS];
};

/* ops.c */
extern const struct flexmem_device_ops sim_pf_ops;
extern const struct flexmem_device_ops sim_vf_ops;
void sim_ops_reset(struct sim_function *fn);

/* main.c */
void sim_function_capacity_changed(struct sim_function *fn);

/* debugfs.c */
void sim_debugfs_add_card(struct sim_card *card);
void sim_debugfs_remove_card(struct sim_card *card);
void sim_debugfs_add_function(struct sim_function *fn);
void sim_debugfs_remove_function(struct sim_function *fn);

#endif /* _FLEXMEM_SIM_H */
