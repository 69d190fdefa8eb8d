/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The card's firmware. The host talks to it only through messages (mailbox.h).
 * This header declares the card's power switch, and a probe on its board that
 * debugfs.c and tests use.
 */
#ifndef _FLEXMEM_SIM_FIRMWARE_H
#define _FLEXMEM_SIM_FIRMWARE_H

#include <linux/bits.h>
#include <linux/sizes.h>
#include <linux/types.h>

#include "domains.h"

struct flexmem_address;
struct sim_firmware;
struct sim_mailbox;
struct sim_memory;

/* The most ranges that a device function may map. */
#define SIM_MAX_MAPPINGS 64

/* Bounds of the number of slots that a VF can have. */
#define SIM_MIN_SLOTS 8
#define SIM_MAX_SLOTS 16

/**
 * struct sim_geometry - how the card is built
 * @domains: memories of the card
 * @pf_capacity: initial limit of the PF for memory 0, in bytes
 * @vf_capacity: initial limit of each VF for memory 0, in bytes. The other
 *	memories have no limit for a single function
 * @slots: number of slots of each VF
 * @space: device-virtual spaces
 */
struct sim_geometry {
	const struct sim_domains *domains;
	u64 pf_capacity;
	u64 vf_capacity;
	unsigned int slots;
	struct sim_space space;
};

#define SIM_NO_SLOT (-1)

/**
 * struct sim_piece - memory that a function has
 * @base: physical address of its first byte
 * @size: bytes
 * @slot: slot of the function that holds this memory, or SIM_NO_SLOT
 */
struct sim_piece {
	u64 base;
	u64 size;
	int slot;
};

/**
 * struct sim_mapping - an entry of a page table
 * @space: number of the device-virtual space
 * @address: first address
 * @size: bytes
 * @access: of enum flexmem_vm_access
 * @physical: physical address of the first byte
 */
struct sim_mapping {
	u64 space;
	u64 address;
	u64 size;
	u32 access;
	u64 physical;
};

struct sim_firmware *sim_firmware_start(struct sim_mailbox *mbox,
					struct sim_memory *chips,
					const struct sim_geometry *geometry);
void sim_firmware_stop(struct sim_firmware *fw);

int sim_firmware_run(struct sim_firmware *fw, int (*program)(void *data),
		     void *data);
bool sim_firmware_translate(const struct sim_firmware *fw,
			    unsigned int function, u64 space, u64 address,
			    u32 access, u64 *physical);
bool sim_firmware_segment(const struct sim_firmware *fw, unsigned int function,
			  const struct flexmem_address *address, u64 size,
			  u64 *physical);
u64 sim_firmware_capacity(struct sim_firmware *fw, unsigned int function);
int sim_firmware_set_capacity(struct sim_firmware *fw, unsigned int function,
			      u64 bytes);
unsigned int sim_firmware_usable_slots(struct sim_firmware *fw,
				       unsigned int function);
int sim_firmware_set_usable_slots(struct sim_firmware *fw,
				  unsigned int function, u64 slots);
bool sim_firmware_mapping(struct sim_firmware *fw, unsigned int function,
			  unsigned int index, struct sim_mapping *mapping);
bool sim_firmware_next_piece(struct sim_firmware *fw, unsigned int function,
			     struct sim_piece *piece);

#endif /* _FLEXMEM_SIM_FIRMWARE_H */
