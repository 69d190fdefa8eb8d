/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A world for native programs: the module with its parameters, the simulated
 * card with its PF and VFs, and checks of the invariants that hold between
 * calls.
 */
#ifndef _NATIVE_WORLD_H
#define _NATIVE_WORLD_H

#include "ioctl.h"
#include "parts/snapshot.h"
#include "sim/card.h"

#define WORLD_FUNCTIONS 3

/**
 * struct world - all functions of the card
 * @card: the card, with WORLD_FUNCTIONS functions here
 * @parent: parent devices of the functions
 * @live: number of objects that existed before the world was made
 */
struct world {
	struct sim_card card;
	struct device parent[WORLD_FUNCTIONS];
	long live;
};

extern struct world world;

/*
 * File descriptors for a dispatch and for a fence. Only one task at a time may
 * use them.
 */
#define WORLD_FD 99
/* How long a job may run. */
#define WORLD_JOB_MS 10000

static inline struct sim_function *world_function(unsigned int index)
{
	return &world.card.functions[index];
}

/**
 * struct picture - a function at a moment
 * @view: its snapshot
 * @owner: room for the owners in the snapshot
 */
struct picture {
	struct flexmem_view view;
	struct flexmem_owner_entry owner[FLEXMEM_VIEW_OWNERS];
};

void world_begin(const char *params, u64 memory);
void world_begin_domains(const char *params, const char *text);
void world_end(void);
int world_bind(unsigned int index);
int world_unbind(unsigned int index);
int world_reset(unsigned int index);
void world_fail(unsigned int index);
int world_suspend(unsigned int index);
int world_resume(unsigned int index);
int world_set_capacity(unsigned int index, u64 bytes);
int world_minor(unsigned int index);
int world_run(struct file *file, struct sim_run *run, struct dma_fence **fence);
void world_faults(enum sim_fault fault, unsigned int times);
void world_heal(void);
bool world_translate(unsigned int index, u64 space, u64 address, u32 access,
		     u64 *physical);
const char *world_wrong(unsigned int index);
const char *world_file_wrong(struct file *file);
const char *world_charges_wrong(struct file *file);
void world_picture(struct file *file, struct picture *picture);

/*
 * The error that a failing operation of the device returns.
 * native_should_fail() decides which operation fails.
 */
extern int world_device_error;
/*
 * If set, the device carries the command out before it returns the error, as if
 * the reply were lost.
 */
extern bool world_device_done;

/* CMD(NAME, ...) makes a struct flexmem_NAME and sets its size. */
#define CMD(name, ...) \
	((struct flexmem_##name) { .size = sizeof(struct flexmem_##name), \
				   ##__VA_ARGS__ })

/**
 * struct world_own - what SNAPSHOT shows of the caller's own
 * @cmd: the command
 * @region: the regions
 * @owner: the opener's cgroup, and the open file
 */
struct world_own {
	struct flexmem_snapshot cmd;
	struct flexmem_region_entry region[FLEXMEM_MAX_SLOTS];
	struct flexmem_owner_entry owner[2];
};

/* Prepares a command that shows the caller's own. */
static inline void world_own(struct world_own *own)
{
	own->cmd = CMD(snapshot, .flags = FLEXMEM_SNAPSHOT_OWN,
		       .region_entry_size = sizeof(own->region[0]),
		       .region_count = FLEXMEM_MAX_SLOTS,
		       .regions = (uintptr_t)own->region,
		       .owner_entry_size = sizeof(own->owner[0]),
		       .owner_count = 2, .owners = (uintptr_t)own->owner);
}

#endif /* _NATIVE_WORLD_H */
