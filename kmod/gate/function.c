// SPDX-License-Identifier: GPL-2.0
/*
 * Calls to the driver of a function, except those that move data
 * (function_data.c) and those about page tables (function_vm.c).
 *
 * The addresses that firmware returns keep tenants apart, so every answer is
 * checked. Wrong memory is neither used nor released, because it may belong to
 * another function. A reset recovers it.
 */

#include <linux/align.h>
#include <linux/atomic.h>
#include <linux/device.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/pgtable.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "gate/function.h"

/* Means that no frame is known: no page frame has this number. */
#define NO_FRAME ULONG_MAX

/* Room for a device's name in INFO, and a NUL. */
#define NAME_SIZE sizeof_field(struct flexmem_info, out_name)

static bool is_valid_name(const char *name)
{
	return name && *name && strnlen(name, NAME_SIZE) < NAME_SIZE;
}

static bool are_valid_ops(const struct flexmem_device_ops *ops, bool vf)
{
	return ops && ops->acquire && ops->release && ops->quiesce &&
	       ops->capacity && ops->scrub && !ops->slot_set == !vf &&
	       !ops->slot_clear == !vf && !(vf && ops->drain) &&
	       !ops->read == !ops->write && !ops->vm_map == !ops->vm_unmap;
}

static bool is_valid_granule(u64 granule)
{
	return is_power_of_2(granule) && granule >= SZ_4K && granule <= SZ_1G;
}

static bool is_valid_vm_page(const struct flexmem_device_desc *desc)
{
	if (!desc->ops->vm_map)
		return !desc->vm_page;
	return is_power_of_2(desc->vm_page) && desc->vm_page >= SZ_4K &&
	       desc->vm_page <= desc->granule;
}

static bool are_valid_vm_bounds(const struct flexmem_device_desc *desc)
{
	if (!desc->ops->vm_map)
		return !desc->vm_start && !desc->vm_end;
	/* Address 0 is nobody's: a reply of 0 means that the call failed. */
	return desc->vm_start && desc->vm_start < desc->vm_end &&
	       IS_ALIGNED(desc->vm_start | desc->vm_end, desc->vm_page);
}

static bool are_valid_sizes(const u64 *sizes, unsigned int nr, u64 granule)
{
	unsigned int i;

	if (nr > FLEXMEM_MAX_FALLBACK_SIZES)
		return false;
	for (i = 0; i < nr; i++)
		if (!sizes[i] || !IS_ALIGNED(sizes[i], granule))
			return false;
	return true;
}

static bool is_valid_domain(const struct flexmem_device_desc *desc,
			    const struct flexmem_domain_desc *domain)
{
	u64 granule = domain->granule ?: desc->granule;

	return domain->type <= FLEXMEM_DOMAIN_HOST_VISIBLE &&
	       is_valid_granule(granule) && desc->vm_page <= granule &&
	       (!desc->ops->fault || granule >= PAGE_SIZE) &&
	       are_valid_sizes(domain->sizes, domain->nr_sizes, granule);
}

static bool are_valid_domains(const struct flexmem_device_desc *desc)
{
	unsigned int i;

	if (desc->nr_domains > FLEXMEM_MAX_DOMAINS ||
	    (desc->nr_domains && desc->domains[0].type))
		return false;
	for (i = 0; i < desc->nr_domains; i++)
		if (!is_valid_domain(desc, &desc->domains[i]))
			return false;
	return true;
}

static const char *find_fault(const struct flexmem_device_desc *desc)
{
	bool vf = desc->mode == FLEXMEM_MODE_VF;

	if (!vf && desc->mode != FLEXMEM_MODE_PF)
		return "mode";
	if (!is_valid_name(desc->name))
		return "name";
	if (!is_valid_granule(desc->granule))
		return "granule";
	if (vf ? !desc->slots || desc->slots > FLEXMEM_MAX_SLOTS : desc->slots)
		return "number of slots";
	if (!are_valid_ops(desc->ops, vf))
		return "set of operations";
	if (!is_valid_vm_page(desc))
		return "page size of device-virtual spaces";
	if (!are_valid_vm_bounds(desc))
		return "bounds of device-virtual spaces";
	if (desc->caching > FLEXMEM_CACHED)
		return "caching";
	if (desc->order > FLEXMEM_ORDER_FILL_FIRST)
		return "order";
	if (!are_valid_sizes(desc->sizes, desc->nr_sizes, desc->granule))
		return "sizes of regions";
	if (desc->ops->fault && desc->granule < PAGE_SIZE)
		return "granule for a fault operation";
	if (!are_valid_domains(desc))
		return "domains";
	return NULL;
}

static void copy_domains(struct flexmem_function *function,
			 const struct flexmem_device_desc *desc)
{
	unsigned int i;

	function->nr_domains = desc->nr_domains ?: 1;
	if (desc->nr_domains)
		memcpy(function->domains, desc->domains,
		       desc->nr_domains * sizeof(*desc->domains));
	for (i = 0; i < function->nr_domains; i++)
		if (!function->domains[i].granule)
			function->domains[i].granule = desc->granule;
}

/*
 * Initialises a function that holds no memory. @dev: for messages, or NULL.
 * Return: 0, or -EINVAL (with a message) if the description is not valid.
 */
int flexmem_function_init(struct flexmem_function *function,
			  struct device *dev,
			  const struct flexmem_device_desc *desc)
{
	const char *fault = find_fault(desc);

	if (fault) {
		dev_err(dev, "flexmem: invalid device description: %s\n",
			fault);
		return -EINVAL;
	}
	*function = (struct flexmem_function) {
		.dev = dev,
		.mode = desc->mode,
		.slots = desc->slots,
		.vm_page = desc->vm_page,
		.vm_start = desc->vm_start,
		.vm_end = desc->vm_end,
		.caching = desc->caching,
		.clears = desc->clears,
		.device = desc->device,
		.minor = -1,
		.ops = *desc->ops,
		.priv = desc->priv,
		.work_ms = FLEXMEM_WORK_MS,
	};
	copy_domains(function, desc);
	INIT_LIST_HEAD(&function->vms);
	mutex_init(&function->data_lock);
	spin_lock_init(&function->state_lock);
	init_waitqueue_head(&function->changed);
	return 0;
}

/* Not reused, so a command that is carried out late affects no other memory. */
static u64 new_id(void)
{
	static atomic64_t last_id;

	return atomic64_inc_return(&last_id);
}

/*
 * Sends one command to an unresponsive function; its outcome decides the state.
 * Context: the caller runs no other operation of the function. May sleep.
 */
void flexmem_function_probe(struct flexmem_function *function)
{
	u64 unused;
	int rc = function->ops.capacity(function->priv, 0, &unused);

	flexmem_function_outcome(function, "capacity", rc, false);
	WRITE_ONCE(function->probes, function->probes + 1);
	wake_up_all(&function->changed);
}

/*
 * Asks for the capacity of a domain; @bytes is unchanged on failure.
 * Context: the caller runs no other operation of the function. May sleep.
 * Return: 0 or an error of the firmware.
 */
int flexmem_function_capacity(struct flexmem_function *function,
			      unsigned int domain, u64 *bytes)
{
	u64 capacity = 0;
	int rc = function->ops.capacity(function->priv, domain, &capacity);

	rc = flexmem_function_outcome(function, "capacity", rc, false);
	if (!rc)
		*bytes = capacity;
	return rc;
}

/* Does not count unanswered releases: they may have been carried out. */
static bool is_in_use(const struct flexmem_function *function,
		      const struct flexmem_memory *mem)
{
	const struct flexmem_piece *piece = function->piece;
	const struct flexmem_piece *end = piece + function->nr_pieces;

	for (; piece < end; piece++)
		if (piece->state != FLEXMEM_PIECE_ASKED_FOR &&
		    piece->state != FLEXMEM_PIECE_LEAVING &&
		    flexmem_overlap(mem, &piece->mem))
			return true;
	return false;
}

/* If memory was granted again, unanswered releases of it were carried out. */
static void forget_released(struct flexmem_function *function,
			    const struct flexmem_memory *mem)
{
	struct flexmem_piece *piece = function->piece;

	while (piece < function->piece + function->nr_pieces) {
		if (piece->state == FLEXMEM_PIECE_LEAVING &&
		    flexmem_overlap(mem, &piece->mem))
			flexmem_function_forget_piece(function, piece);
		else
			piece++;
	}
}

static int check_memory(struct flexmem_function *function,
			const struct flexmem_memory *request,
			const struct flexmem_memory *mem)
{
	u64 granule = function->domains[request->domain].granule;
	u64 alignment = request->size < SZ_1G ? granule : SZ_1G;
	u64 end;

	if (mem->id != request->id)
		return flexmem_function_distrust(function, "acquire", "id",
						 mem->id);
	if (mem->domain != request->domain)
		return flexmem_function_distrust(function, "acquire", "domain",
						 mem->domain);
	if (mem->size != request->size)
		return flexmem_function_distrust(function, "acquire", "size",
						 mem->size);
	if (!IS_ALIGNED(mem->base, alignment) ||
	    check_add_overflow(mem->base, mem->size, &end))
		return flexmem_function_distrust(function, "acquire", "base",
						 mem->base);
	if (is_in_use(function, mem))
		return flexmem_function_distrust(function, "acquire",
						 "memory in use, base",
						 mem->base);
	return 0;
}

/*
 * Acquires memory from the device.
 * @size: bytes, a multiple of the domain's granule. @mem: receives the memory;
 * unchanged on failure.
 * Context: the caller runs no other operation of the function. May sleep.
 * Return: 0; -ENOSPC if the domain has no contiguous free memory of that size;
 * -EIO if too many pieces wait for their release; or another error of the
 * firmware.
 */
int flexmem_function_acquire(struct flexmem_function *function,
			     unsigned int domain, u64 size,
			     struct flexmem_memory *mem)
{
	const struct flexmem_memory request = {
		.id = new_id(),
		.domain = domain,
		.size = size,
	};
	struct flexmem_piece piece = {
		.mem = request,
		.slot = FLEXMEM_NO_SLOT,
	};
	int rc;

	if (function->nr_pieces == FLEXMEM_MAX_PIECES)
		return -EIO;
	rc = function->ops.acquire(function->priv, size, &piece.mem);
	rc = flexmem_function_check(function, "acquire", rc, true);
	rc = rc ?: check_memory(function, &request, &piece.mem);
	flexmem_function_note(function, rc);
	if (flexmem_is_unanswered(rc)) {
		piece.mem = request;
		piece.state = FLEXMEM_PIECE_ASKED_FOR;
		flexmem_function_work_later(function);
	} else if (rc) {
		return rc;
	}
	piece.exclusive = !rc;
	if (!flexmem_function_add_piece(function, &piece))
		return flexmem_function_distrust(function, "acquire",
						 "memory of another function, base",
						 piece.mem.base);
	if (rc)
		return rc;
	forget_released(function, &piece.mem);
	*mem = piece.mem;
	return 0;
}

/*
 * Releases memory to the device. If the firmware fails, or a slot may still
 * point at the memory, the release stays pending. The worker or the next caller
 * that acquires memory retries the release.
 * @mem: from flexmem_function_acquire(); the caller must not use it afterwards.
 * Context: the caller runs no other operation of the function. May sleep.
 * Return: 0, also if no command was sent, or an error of the firmware.
 */
int flexmem_function_release(struct flexmem_function *function,
			     const struct flexmem_memory *mem)
{
	struct flexmem_piece *piece = flexmem_function_piece(function, mem->id);
	int rc = 0;

	/* No piece: the device has granted the same memory again. */
	if (!piece)
		return 0;
	if (piece->state == FLEXMEM_PIECE_HELD)
		piece->state = FLEXMEM_PIECE_STRANDED;
	if (piece->slot == FLEXMEM_NO_SLOT)
		rc = flexmem_function_undo(function, piece);
	if (!flexmem_function_is_settled(function))
		flexmem_function_work_later(function);
	return rc;
}

/*
 * Points an empty slot of the firmware's table at memory that the function
 * holds. A PF has no table, so no command is sent.
 * Context: the caller runs no other operation of the function. May sleep.
 * Return: 0; -ENOSPC if the firmware does not permit this slot; or an error of
 * the firmware, after which the slot may point at the memory.
 */
int flexmem_function_slot_set(struct flexmem_function *function,
			      unsigned int slot,
			      const struct flexmem_memory *mem)
{
	struct flexmem_piece *piece = flexmem_function_piece(function, mem->id);
	int rc;

	if (!function->ops.slot_set)
		return 0;
	rc = function->ops.slot_set(function->priv, slot, mem);
	rc = flexmem_function_outcome(function, "slot_set", rc, true);
	/* -ENOSPC: the slot stays empty. */
	if (rc != -ENOSPC && !WARN_ON_ONCE(!piece))
		piece->slot = slot;
	return rc;
}

/*
 * Empties a filled slot of the firmware's table, if there is a table.
 * Context: the caller runs no other operation of the function. May sleep.
 * Return: 0, or an error of the firmware; after -ETIMEDOUT and -EINTR the slot
 * may be empty.
 */
int flexmem_function_slot_clear(struct flexmem_function *function,
				unsigned int slot)
{
	unsigned int i;
	int rc;

	if (!function->ops.slot_clear)
		return 0;
	rc = function->ops.slot_clear(function->priv, slot);
	rc = flexmem_function_outcome(function, "slot_clear", rc, false);
	for (i = 0; i < function->nr_pieces && !rc; i++)
		if (function->piece[i].slot == slot)
			function->piece[i].slot = FLEXMEM_NO_SLOT;
	return rc;
}

/*
 * Stops all device programs, if the function holds memory.
 * Context: the caller runs no other operation, and none that moves data. May
 * sleep. Return: 0: memory can be released now. Or an error of the firmware:
 * then only a reset recovers the memory.
 */
int flexmem_function_quiesce(struct flexmem_function *function)
{
	int rc;

	if (!function->nr_pieces)
		return 0;
	rc = function->ops.quiesce(function->priv);
	return flexmem_function_outcome(function, "quiesce", rc, false);
}

/*
 * Resets the device, which can be reset.
 * Context: the caller runs no other operation, and none that moves data. May
 * sleep. Return: 0: the function holds no memory now. Or an error of the
 * firmware.
 */
int flexmem_function_reset(struct flexmem_function *function)
{
	unsigned int i;
	int rc;

	/* A peer may get the memory before flexmem gets the answer. */
	for (i = 0; i < function->nr_pieces; i++)
		flexmem_function_set_exclusive(&function->piece[i], false);
	rc = function->ops.reset(function->priv);
	rc = flexmem_function_check(function, "reset", rc, false);
	if (!rc) {
		flexmem_function_forget_pieces(function);
		flexmem_function_vm_forget(function);
		kfree(function->late_buffer);
		function->late_buffer = NULL;
		atomic_set(&function->distrusted, 0);
	}
	return flexmem_function_note(function, rc);
}

static bool is_part(const struct flexmem_frames *part,
		    const struct flexmem_frames *all, u64 offset)
{
	return IS_ALIGNED(part->offset | part->size, PAGE_SIZE) &&
	       part->offset >= all->offset && part->offset <= offset &&
	       part->size > offset - part->offset &&
	       part->size <= all->size - (part->offset - all->offset);
}

/*
 * Gets page frames of device memory that can be mapped.
 * @mem: memory that the function holds. @offset: offset in @mem of the page that
 * was touched. @frames: in: the range that may be mapped with that page. Out:
 * the part with contiguous page frames, and its first frame number, which
 * flexmem cannot check. Not valid on failure.
 * Context: in a page fault, under mmap_lock. May sleep, but not for firmware.
 * Return: 0, -ENOMEM, or another error if the page has no frame.
 */
int flexmem_function_fault(struct flexmem_function *function,
			   const struct flexmem_memory *mem, u64 offset,
			   struct flexmem_frames *frames)
{
	const struct flexmem_frames all = *frames;
	int rc;

	frames->pfn = NO_FRAME;
	rc = function->ops.fault(function->priv, mem, offset, frames);
	rc = flexmem_function_check(function, "fault", rc, false);
	if (rc)
		return rc;
	if (frames->pfn == NO_FRAME)
		return flexmem_function_distrust(function, "fault",
						 "no frame for offset",
						 offset);
	if (!is_part(frames, &all, offset))
		return flexmem_function_distrust(function, "fault",
						 "range at offset", offset);
	return 0;
}

/* @protection: that of a mapping of ordinary memory. */
pgprot_t flexmem_function_protection(const struct flexmem_function *function,
				     pgprot_t protection)
{
	switch (function->caching) {
	/* A BAR is not encrypted, even in a guest with encrypted memory. */
	case FLEXMEM_UNCACHED:
		return pgprot_decrypted(pgprot_noncached(protection));
	case FLEXMEM_WRITE_COMBINED:
		return pgprot_decrypted(pgprot_writecombine(protection));
	case FLEXMEM_CACHED:
		break;
	}
	return protection;
}
