/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated card as its driver sees it: one PF and some VFs. Each of these
 * functions is bound to flexmem separately.
 *
 * card.c knows no bus, no module parameter and no debugfs. main.c makes a
 * platform device of each function, and debugfs.c has files that control the
 * card. Tests use neither. Calls run downwards only:
 *
 *   main -> debugfs, card
 *   debugfs -> card, queue, firmware (the probe), mailbox (faults), memory
 *   card -> ops, queue, firmware (the power switch), mailbox, memory; flexmem.ko
 *   ops -> queue, mailbox and memory (the host's end)
 *   queue -> firmware (it runs programs), memory; flexmem.ko
 *   firmware -> mailbox and memory (the firmware's end)
 */
#ifndef _FLEXMEM_SIM_CARD_H
#define _FLEXMEM_SIM_CARD_H

#include <linux/mutex.h>
#include <flexmem/device_ops.h>

#include "firmware.h"
#include "mailbox.h"
#include "memory.h"
#include "queue.h"

struct device;

/**
 * struct sim_function - the PF or a VF
 * @card: its card
 * @index: 0 for the PF, 1 + n for VF n
 * @ops: operations for flexmem; tests replace some
 * @dev: the function's device, for messages; only while the device is bound
 * @turn: held by the operation that talks to the firmware. flexmem calls at
 *	most two operations at a time, so an operation waits for at most one
 *	other
 * @lock: held during the registration with flexmem, until @fdev is set
 * @fdev: the device registered with flexmem, or NULL
 * @suspended: flexmem_device_suspend() was called for @fdev
 * @queue: jobs of the function
 *
 * Only @queue, @dev, @fdev and @suspended change during the life of the card.
 */
struct sim_function {
	struct sim_card *card;
	unsigned int index;
	const struct flexmem_device_ops *ops;
	struct device *dev;
	/*
	 * Innermost of the host's locks: only the mailbox's locks are taken
	 * under it.
	 */
	struct mutex turn;
	/*
	 * Protects @fdev and @suspended. Taken before all locks of flexmem, and
	 * held while flexmem calls operations, so an operation must not take
	 * it.
	 */
	struct mutex lock;
	struct flexmem_dev *fdev;
	bool suspended;
	struct sim_queue queue;
};

/**
 * struct sim_card - a card
 * @mbox: mailbox of its firmware
 * @memory: its memory
 * @fw: the firmware
 * @slots: number of slots of each VF
 * @job_timeout_ms: how long a job may run
 * @domains: memory domains of the card
 * @space: device-virtual spaces
 * @functions: the PF and the VFs
 */
struct sim_card {
	struct sim_mailbox mbox;
	struct sim_memory memory;
	struct sim_firmware *fw;
	unsigned int slots;
	unsigned int job_timeout_ms;
	const struct sim_domains *domains;
	struct sim_space space;
	struct sim_function functions[SIM_MAX_FUNCTIONS];
};

/* Defined in ops.c. */
extern const struct flexmem_device_ops sim_pf_ops;
extern const struct flexmem_device_ops sim_vf_ops;
void sim_ops_reset(struct sim_function *fn);

/* Defined in card.c. */
int sim_card_init(struct sim_card *card, const struct sim_geometry *geometry,
		  u32 timeout_ms, u32 job_timeout_ms);
void sim_card_destroy(struct sim_card *card);
int sim_function_bind(struct sim_function *fn, struct device *dev,
		      const char *name);
int sim_function_unbind(struct sim_function *fn);
void sim_function_capacity_changed(struct sim_function *fn);
int sim_function_reset(struct sim_function *fn);
int sim_function_suspend(struct sim_function *fn);
int sim_function_resume(struct sim_function *fn);
bool sim_function_suspended(struct sim_function *fn);

#endif /* _FLEXMEM_SIM_CARD_H */
