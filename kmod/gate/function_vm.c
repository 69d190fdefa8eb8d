// SPDX-License-Identifier: GPL-2.0
/*
 * Calls to a function's driver about its page tables, and the spaces in which
 * something may be mapped; function_answer.c has the checks of the answers.
 *
 * A command that was not answered may still have been carried out. While
 * something may be mapped in a space, the owner of the space keeps the memory. So
 * memory that may be mapped is neither released nor given to another owner. The
 * owner undoes its failed commands itself; only spaces that are closed are left
 * to the worker. If the device has failed, only a reset ends the mappings.
 *
 * While a function of this file runs, the PF or VF runs no other operation,
 * except one that moves data.
 */

#include <linux/errno.h>
#include <linux/list.h>
#include <linux/workqueue.h>

#include "gate/function.h"

/* How many closed spaces flexmem_function_vm_retry() unmaps in one call. */
#define AT_ONCE 16

/*
 * Lets device programs reach memory.
 * @range: addresses in the bounds of the function's spaces where nothing is
 * mapped, with their space. @mem: memory that the function holds. @offset: first
 * byte in @mem; like @range in whole pages. @access: of enum flexmem_vm_access,
 * not 0.
 * Context: the caller runs no other operation of the function, except one that
 * moves data. May sleep. Return: 0; -ENOSPC if there is no room for the page
 * table; or an error of the firmware: then a part may be mapped, and the caller
 * unmaps the range.
 */
int flexmem_function_vm_map(struct flexmem_function *function,
			    const struct flexmem_vm_range *range,
			    const struct flexmem_memory *mem, u64 offset,
			    unsigned int access)
{
	int rc = function->ops.vm_map(function->priv, range, mem, offset,
				      access);

	return flexmem_function_outcome(function, "vm_map", rc, true);
}

/*
 * Ends mappings for device programs.
 * @range: as for flexmem_function_vm_map(). Each mapping lies wholly inside the
 * range or wholly outside.
 * Context: as for flexmem_function_vm_map(). Return: 0, also if nothing was mapped
 * there; or an error of the firmware: then the range may still be mapped, and the
 * caller retries.
 */
int flexmem_function_vm_unmap(struct flexmem_function *function,
			      const struct flexmem_vm_range *range)
{
	int rc = function->ops.vm_unmap(function->priv, range);

	return flexmem_function_outcome(function, "vm_unmap", rc, false);
}

/* Notes that one more binding may be mapped in a space. */
void flexmem_function_vm_begin(struct flexmem_function *function,
			       struct flexmem_vm *vm)
{
	vm->nr_mapped++;
	/*
	 * The space is not in the list if nothing was mapped in it, or if a
	 * reset has removed it.
	 */
	if (list_empty(&vm->link))
		list_add_tail(&vm->link, &function->vms);
}

/* Notes that a binding is not mapped any more. */
void flexmem_function_vm_end(struct flexmem_vm *vm)
{
	if (!--vm->nr_mapped)
		list_del_init(&vm->link);
}

static int unmap_space(struct flexmem_function *function,
		       const struct flexmem_vm *vm)
{
	const struct flexmem_vm_range all = {
		.space = vm->space,
		.address = function->vm_start,
		.size = function->vm_end - function->vm_start,
	};

	return flexmem_function_vm_unmap(function, &all);
}

/*
 * Ends a space that is not used any more. May sleep. Return: true if nothing is
 * mapped in it. False if something may be: then the worker retries, and runs
 * @vm->unmapped after a success, a reset or the removal of the function.
 */
bool flexmem_function_vm_close(struct flexmem_function *function,
			       struct flexmem_vm *vm)
{
	if (list_empty(&vm->link))
		return true;
	if (!flexmem_function_error(function) && !unmap_space(function, vm)) {
		list_del_init(&vm->link);
		return true;
	}
	vm->closed = true;
	flexmem_function_work_later(function);
	return false;
}

/*
 * Forgets a space in which nothing is mapped any more. If the space is closed,
 * its owner frees @vm, maybe before this returns.
 */
static void forget(struct flexmem_function *function, struct flexmem_vm *vm)
{
	list_del_init(&vm->link);
	if (vm->closed)
		queue_work(function->worker, &vm->unmapped);
}

/* Whether closed spaces are left to unmap. */
bool flexmem_function_vm_is_pending(const struct flexmem_function *function)
{
	const struct flexmem_vm *vm;

	list_for_each_entry(vm, &function->vms, link)
		if (vm->closed)
			return true;
	return false;
}

/*
 * Unmaps closed spaces, but not more than AT_ONCE, because others wait for the
 * lock. If the firmware refuses to unmap a space, this goes on with the next
 * one. If the firmware does not answer, no further command is sent. May sleep.
 * Return: whether some spaces were unmapped and others were not tried. Then the
 * worker continues as soon as the jobs that were queued meanwhile have run.
 */
bool flexmem_function_vm_retry(struct flexmem_function *function)
{
	struct flexmem_vm *vm, *next;
	bool unmapped = false, again = false;
	unsigned int sent = 0;
	LIST_HEAD(refused);
	int rc;

	list_for_each_entry_safe(vm, next, &function->vms, link) {
		if (!vm->closed)
			continue;
		if (flexmem_function_error(function))
			break;
		if (sent++ == AT_ONCE) {
			again = unmapped;
			break;
		}
		rc = unmap_space(function, vm);
		if (!rc) {
			forget(function, vm);
			unmapped = true;
			continue;
		}
		/* The next call begins with other spaces. */
		list_move_tail(&vm->link, &refused);
		if (rc != -EIO)
			break;
	}
	list_splice_tail(&refused, &function->vms);
	if (again)
		mod_delayed_work(function->worker, &function->work, 0);
	return again;
}

/*
 * Unmaps everything on removal, after the programs have stopped. Stops at the
 * first space that stays mapped, and if the device fails, because no memory is
 * released then. May sleep.
 * Return: 0: nothing is mapped; -EIO if the device has failed; or an error of
 * the firmware.
 */
int flexmem_function_vm_unmap_all(struct flexmem_function *function)
{
	const struct flexmem_vm *vm;
	int rc;

	list_for_each_entry(vm, &function->vms, link) {
		/* The state of a function that is being removed does not change. */
		if (flexmem_function_has_failed(function))
			return -EIO;
		rc = unmap_space(function, vm);
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * Forgets all mappings, because a reset or the removal of the function has
 * ended them.
 */
void flexmem_function_vm_forget(struct flexmem_function *function)
{
	struct flexmem_vm *vm, *next;

	list_for_each_entry_safe(vm, next, &function->vms, link)
		forget(function, vm);
}
