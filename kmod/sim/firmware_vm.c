// SPDX-License-Identifier: GPL-2.0
/*
 * The page tables of the card: what programs reach at device-virtual addresses.
 * The firmware changes them by messages (firmware.c).
 */

#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>

#include "firmware_state.h"

static bool fw_touches(const struct fw_mapping *map,
		       const struct sim_request *req)
{
	return map->piece && map->space == req->space &&
	       map->address < req->address + req->bytes &&
	       req->address < map->address + map->size;
}

bool fw_is_mapped(const struct fw_function *f, const struct fw_piece *piece)
{
	unsigned int i;

	for (i = 0; i < SIM_MAX_MAPPINGS; i++)
		if (f->mappings[i].piece == piece)
			return true;
	return false;
}

static bool fw_is_bad_vm_range(const struct sim_space *space,
			       const struct sim_request *req)
{
	return !req->space || !req->bytes ||
	       !IS_ALIGNED(req->address | req->bytes | req->offset,
			   space->page) ||
	       req->address < space->start || req->address >= space->end ||
	       req->bytes > space->end - req->address;
}

static bool fw_is_bad_access(u64 access)
{
	return !access || access & ~(u64)(FLEXMEM_VM_READ | FLEXMEM_VM_WRITE |
					  FLEXMEM_VM_EXECUTE);
}

enum sim_status fw_vm_map(struct sim_firmware *fw, unsigned int function,
			  const struct sim_request *req)
{
	struct fw_piece *piece = fw_find(fw, function, req->memory);
	struct fw_mapping *map = fw->functions[function].mappings;
	struct fw_mapping *empty = NULL;
	unsigned int i;

	if (!piece)
		return SIM_BAD_MEMORY;
	if (fw_is_bad_vm_range(&fw->space, req) ||
	    fw_is_bad_access(req->access) ||
	    !fw_is_within(piece, req->offset, req->bytes))
		return SIM_BAD_RANGE;
	for (i = 0; i < SIM_MAX_MAPPINGS; i++, map++) {
		if (!map->piece)
			empty = empty ?: map;
		else if (fw_touches(map, req))
			return SIM_IN_USE;
	}
	if (!empty)
		return SIM_NO_SPACE;
	*empty = (struct fw_mapping) {
		.piece = piece,
		.offset = req->offset,
		.space = req->space,
		.address = req->address,
		.size = req->bytes,
		.access = req->access,
	};
	return SIM_OK;
}

/*
 * Entries cannot be split: an entry that lies partly in the range is removed as
 * a whole.
 */
enum sim_status fw_vm_unmap(struct sim_firmware *fw, unsigned int function,
			    const struct sim_request *req)
{
	struct fw_function *f = &fw->functions[function];
	unsigned int i;

	if (fw_is_bad_vm_range(&fw->space, req))
		return SIM_BAD_RANGE;
	for (i = 0; i < SIM_MAX_MAPPINGS; i++)
		if (fw_touches(&f->mappings[i], req))
			f->mappings[i].piece = NULL;
	return SIM_OK;
}

/**
 * sim_firmware_translate - translate the address of a program's access
 * @fw: the firmware
 * @function: the function that runs the program
 * @space: number of the device-virtual space that the program runs in
 * @address: accessed address
 * @access: of enum flexmem_vm_access
 * @physical: receives the physical address, which is valid up to the end of
 *	the page, and until the program ends
 *
 * Context: in a program of sim_firmware_run().
 *
 * Return: false if the access faults.
 */
bool sim_firmware_translate(const struct sim_firmware *fw,
			    unsigned int function, u64 space, u64 address,
			    u32 access, u64 *physical)
{
	const struct fw_mapping *map = fw->functions[function].mappings;
	unsigned int i;

	lockdep_assert_held(&fw->lock);
	for (i = 0; i < SIM_MAX_MAPPINGS; i++, map++) {
		if (!map->piece || map->space != space ||
		    address < map->address ||
		    address - map->address >= map->size ||
		    access & ~map->access)
			continue;
		*physical = map->piece->base + map->offset +
			    (address - map->address);
		return true;
	}
	return false;
}

/**
 * sim_firmware_mapping - an entry of a function's page table
 * @fw: the firmware
 * @function: which function
 * @index: number of the entry, below SIM_MAX_MAPPINGS
 * @mapping: receives the entry
 *
 * Return: false if the entry is empty.
 */
bool sim_firmware_mapping(struct sim_firmware *fw, unsigned int function,
			  unsigned int index, struct sim_mapping *mapping)
{
	const struct fw_mapping *map =
		&fw->functions[function].mappings[index];
	bool used;

	mutex_lock(&fw->lock);
	used = map->piece;
	if (used)
		*mapping = (struct sim_mapping) {
			.space = map->space,
			.address = map->address,
			.size = map->size,
			.access = map->access,
			.physical = map->piece->base + map->offset,
		};
	mutex_unlock(&fw->lock);
	return used;
}
