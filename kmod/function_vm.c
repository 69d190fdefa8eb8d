// SPDX-License-Identifier: GPL-2.0
/*
 * Calls to a function's driver about its page tables; function_answer.c has
 * the checks of the answers. No other part of flexmem makes these calls yet.
 */

#include <linux/align.h>
#include <linux/bug.h>
#include <linux/errno.h>

#include "function.h"

#define ALL_ACCESS (FLEXMEM_VM_READ | FLEXMEM_VM_WRITE | FLEXMEM_VM_EXECUTE)

static bool is_valid(const struct flexmem_function *function,
		     const struct flexmem_vm_range *range)
{
	return range->space && range->size &&
	       IS_ALIGNED(range->address | range->size, function->vm_page) &&
	       range->address >= function->vm_start &&
	       range->address < function->vm_end &&
	       range->size <= function->vm_end - range->address;
}

/**
 * flexmem_function_vm_map - let device programs reach memory
 * @function: function
 * @range: addresses where nothing is mapped, with their address space
 * @mem: memory of the function
 * @offset: first byte in @mem
 * @access: of enum flexmem_vm_access, not 0
 *
 * Context: the caller runs no other operation of the function. May sleep.
 * Return: 0; -EOPNOTSUPP if the device has no page tables; -EINVAL if an
 * argument is not valid; -ENOSPC if there is no room for the page table; or an
 * error of the firmware: then a part may be mapped, and the range is unmapped
 * before @mem is released.
 */
int flexmem_function_vm_map(struct flexmem_function *function,
			    const struct flexmem_vm_range *range,
			    const struct flexmem_memory *mem, u64 offset,
			    unsigned int access)
{
	struct flexmem_piece *piece;
	int rc;

	if (!function->ops.vm_map)
		return -EOPNOTSUPP;
	if (!is_valid(function, range) || !access || access & ~ALL_ACCESS ||
	    !IS_ALIGNED(offset, function->vm_page) ||
	    range->size > mem->size || offset > mem->size - range->size)
		return -EINVAL;
	piece = flexmem_function_piece(function, mem->id);
	if (!piece || piece->state != FLEXMEM_PIECE_HELD)
		return -EINVAL;
	/*
	 * A piece can remember only one range that may still be mapped, so an
	 * earlier such range is unmapped first.
	 */
	rc = flexmem_function_undo(function, piece);
	if (rc)
		return rc;
	rc = function->ops.vm_map(function->priv, range, mem, offset, access);
	rc = flexmem_function_outcome(function, "vm_map", rc, true);
	/*
	 * -ENOSPC leaves nothing mapped. After any other error a part may be
	 * mapped.
	 */
	if (rc && rc != -ENOSPC) {
		piece->range = *range;
		flexmem_function_work_later(function);
	}
	return rc;
}

/**
 * flexmem_function_vm_unmap - end a mapping for device programs
 * @function: function
 * @range: addresses, and their address space. Each mapping lies wholly inside
 *	the range or wholly outside
 *
 * Context: the caller runs no other operation of the function. May sleep.
 * Return: 0, also if nothing was mapped there; -EOPNOTSUPP if the device has no
 * page tables; -EINVAL if an argument is not valid; or an error of the
 * firmware: then the range may still be mapped, and the caller retries.
 */
int flexmem_function_vm_unmap(struct flexmem_function *function,
			      const struct flexmem_vm_range *range)
{
	int rc;

	if (!function->ops.vm_unmap)
		return -EOPNOTSUPP;
	if (!is_valid(function, range))
		return -EINVAL;
	rc = function->ops.vm_unmap(function->priv, range);
	return flexmem_function_outcome(function, "vm_unmap", rc, false);
}
