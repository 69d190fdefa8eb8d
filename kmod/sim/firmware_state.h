/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of the card's firmware, which the files firmware*.c share. See
 * firmware.c.
 */
#ifndef _FLEXMEM_SIM_FIRMWARE_STATE_H
#define _FLEXMEM_SIM_FIRMWARE_STATE_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <flexmem/device_ops.h>

#include "firmware.h"
#include "mailbox.h"

struct task_struct;

/**
 * struct fw_piece - memory that a function has
 * @node: in &struct sim_firmware.pieces
 * @base: physical address of the first byte
 * @domain: number of the domain
 * @size: bytes
 * @name: the name that the host gave the piece
 * @owner: the function
 * @slot: entry of the function's table that points here, or SIM_NO_SLOT
 * @last_slot: the last entry that pointed here
 */
struct fw_piece {
	struct list_head node;
	u64 base;
	unsigned int domain;
	u64 size;
	u64 name;
	unsigned int owner;
	int slot;
	int last_slot;
};

/**
 * struct fw_mapping - an entry of a function's page table
 * @piece: mapped memory; NULL: an empty entry
 * @offset: offset of the first byte in that memory
 * @space: number of the device-virtual space
 * @address: first address in that space
 * @size: bytes
 * @access: allowed accesses of programs
 */
struct fw_mapping {
	struct fw_piece *piece;
	u64 offset;
	u64 space;
	u64 address;
	u64 size;
	u64 access;
};

/**
 * struct fw_domain - one of the card's memories
 * @base: physical address of the first byte, a multiple of 1 GiB
 * @size: bytes that functions can acquire; the card keeps the bytes behind them
 *         for itself
 * @granule: the size of each piece is a multiple of this
 */
struct fw_domain {
	u64 base;
	u64 size;
	u64 granule;
};

/**
 * struct fw_function - one function as the firmware sees it
 * @capacity: most bytes that the function may have, by domain
 * @used: bytes that the function has, by domain
 * @slots: entries of the function's table; 0: the PF, which has no table
 * @usable_slots: only entries below this number may be filled
 * @quiet: SIM_QUIESCE has stopped the programs; until a reset the function can
 *	only release memory
 * @table: the memory that each entry of the table points at, or NULL
 * @mappings: the page table, for all device-virtual spaces
 * @seq: number of the latest command that was carried out
 */
struct fw_function {
	u64 capacity[FLEXMEM_MAX_DOMAINS];
	u64 used[FLEXMEM_MAX_DOMAINS];
	unsigned int slots;
	unsigned int usable_slots;
	bool quiet;
	struct fw_piece *table[SIM_MAX_SLOTS];
	struct fw_mapping mappings[SIM_MAX_MAPPINGS];
	u64 seq;
};

/**
 * struct sim_firmware - the firmware of one card
 * @mbox: mailbox of the card; never changes
 * @thread: runs the firmware; never changes
 * @nr_domains: number of @domains; never changes
 * @domains: the card's memories; never change
 * @space: device-virtual spaces; never changes
 * @chips: the bytes of the memories; never changes. The thread and programs
 *	use the bytes under @lock
 * @lock: held by the thread while it handles one message
 * @pieces: &struct fw_piece, by base
 * @functions: PF and VFs
 */
struct sim_firmware {
	struct sim_mailbox *mbox;
	struct task_struct *thread;
	unsigned int nr_domains;
	struct fw_domain domains[FLEXMEM_MAX_DOMAINS];
	struct sim_space space;
	struct sim_memory *chips;
	/*
	 * Protects the members below, because debugfs files change capacities
	 * and usable slots while the thread runs. Taken before &struct
	 * sim_mailbox.lock.
	 */
	struct mutex lock;
	struct list_head pieces;
	struct fw_function functions[SIM_MAX_FUNCTIONS];
};

static inline bool fw_is_within(const struct fw_piece *piece, u64 offset,
				u64 bytes)
{
	return offset <= piece->size && bytes <= piece->size - offset;
}

/* firmware.c */
struct fw_piece *fw_find(struct sim_firmware *fw, unsigned int owner, u64 name);

/* firmware_vm.c */
bool fw_is_mapped(const struct fw_function *f, const struct fw_piece *piece);
enum sim_status fw_vm_map(struct sim_firmware *fw, unsigned int function,
			  const struct sim_request *req);
enum sim_status fw_vm_unmap(struct sim_firmware *fw, unsigned int function,
			    const struct sim_request *req);

#endif /* _FLEXMEM_SIM_FIRMWARE_STATE_H */
