/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated card as its driver sees it: one PF and some VFs, each a platform
 * device that is bound and unbound on its own.
 */
#ifndef _FLEXMEM_SIM_H
#define _FLEXMEM_SIM_H

#include <linux/mutex.h>
#include <flexmem/device_ops.h>

#include "firmware.h"
#include "mailbox.h"
#include "memory.h"

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
 * @turn: held by the operation that talks to the firmware; others wait in line,
 *	each for one holder at most, since flexmem calls two at a time at most
 * @doubt: number of the command whose outcome is unknown, or 0; protected by
 *	@turn
 * @lock: held from before the registration with flexmem until its result is
 *	in @fdev
 * @fdev: the device registered with flexmem, or NULL
 * @suspended: flexmem was told to leave it alone
 *
 * All but @dev, @doubt, @fdev and @suspended never change while the device is there.
 */
struct sim_function {
	struct sim_card *card;
	unsigned int index;
	struct platform_device *pdev;
	struct dentry *dir;
	struct device *dev;
	/* Innermost of the host's locks: only the mailbox's come after it. */
	struct mutex turn;
	u64 doubt;
	/*
	 * Protects @fdev and @suspended. Taken before all locks of flexmem, and held while
	 * flexmem calls operations, so they do not take it.
	 */
	struct mutex lock;
	struct flexmem_device *fdev;
	bool suspended;
};

/**
 * struct sim_card - a card
 * @mbox: the way to its firmware
 * @memory: its memory
 * @fw: the firmware
 * @dir: directory in debugfs
 * @nr: how many functions there are; protected by sim_lock in main.c
 * @functions: the PF, and as many VFs as there are
 */
struct sim_card {
	struct sim_mailbox mbox;
	struct sim_memory memory;
	struct sim_firmware *fw;
	struct dentry *dir;
	unsigned int nr;
	struct sim_function functions[SIM_MAX_FUNCTIONS];
};

/* ops.c */
extern const struct flexmem_device_ops sim_pf_ops;
extern const struct flexmem_device_ops sim_vf_ops;
void sim_ops_reset(struct sim_function *fn);

/* card.c */
void sim_function_capacity_changed(struct sim_function *fn);
int sim_function_reset(struct sim_function *fn);
int sim_function_suspend(struct sim_function *fn);
int sim_function_resume(struct sim_function *fn);
bool sim_function_suspended(struct sim_function *fn);

/* debugfs.c */
void sim_debugfs_add_card(struct sim_card *card);
void sim_debugfs_remove_card(struct sim_card *card);
void sim_debugfs_add_function(struct sim_function *fn);
void sim_debugfs_remove_function(struct sim_function *fn);

#endif /* _FLEXMEM_SIM_H */
