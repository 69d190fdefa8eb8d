// SPDX-License-Identifier: GPL-2.0
/*
 * CPU access to the bytes of allocations: mappings, and copies for memory that
 * cannot be mapped.
 *
 * A mapping consists of page frames that belong to the device. It is shared,
 * not executable, and filled in page by page on faults. It holds a reference to
 * its allocation, so its pages never go to another owner while they are mapped.
 * When the region is lost, every mapping of the function is removed, and later
 * page faults end in SIGBUS. map_lock keeps removal and faults apart.
 *
 * A copy goes in parts through a buffer of the kernel, because no lock may be
 * held while user memory is touched.
 *
 * The caller has looked the allocation up and hands its reference over. A
 * mapping covers one chunk; a copy can cover several.
 */

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "access.h"
#include "allocation.h"
#include "compat.h"
#include "table.h"

/**
 * flexmem_access_map - describe how to map an allocation
 * @allocation: in use; put before this returns
 * @map: command; receives the ``out_`` members
 *
 * Gives the position of its first chunk.
 *
 * Return: 0, -EIO if it is lost, -ENODEV if the device is removed, or -EINVAL
 * if it cannot be mapped.
 */
int flexmem_access_map(struct flexmem_allocation *allocation,
		       struct flexmem_map *map)
{
	const struct flexmem_chunk *first = &allocation->chunks[0];
	int rc = flexmem_allocation_error(allocation);

	if (!rc && !(allocation->flags & FLEXMEM_ALLOC_MAPPABLE))
		rc = -EINVAL;
	if (!rc) {
		map->out_offset = flexmem_chunk_map_offset(first);
		map->out_size = first->size;
	}
	flexmem_allocation_put(allocation);
	return rc;
}

static void access_open(struct vm_area_struct *vma)
{
	struct flexmem_chunk *chunk = vma->vm_private_data;

	flexmem_allocation_get(chunk->allocation);
}

static void access_close(struct vm_area_struct *vma)
{
	struct flexmem_chunk *chunk = vma->vm_private_data;

	flexmem_allocation_put(chunk->allocation);
}

/*
 * Under mmap_lock: sends no command, and waits only for the removal of
 * mappings.
 */
static vm_fault_t access_fault(struct vm_fault *vmf)
{
	struct flexmem_chunk *chunk = vmf->vma->vm_private_data;
	struct flexmem_region *region = chunk->region;
	struct flexmem_table *table = region->table;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	unsigned long pfn;
	u64 offset;
	int rc;

	offset = (u64)vmf->pgoff << PAGE_SHIFT;
	offset &= BIT_ULL(table->map_shift) - 1;

	down_read(&table->map_lock);
	if (!flexmem_region_is_lost(region)) {
		rc = flexmem_function_page(&table->function, &region->mem,
					   offset, &pfn);
		if (!rc)
			ret = vmf_insert_pfn(vmf->vma, vmf->address, pfn);
		else if (rc == -ENOMEM)
			ret = VM_FAULT_OOM;
	}
	up_read(&table->map_lock);
	return ret;
}

static const struct vm_operations_struct access_vm_ops = {
	.open = access_open,
	.close = access_close,
	.fault = access_fault,
};

/* Whether @size bytes from the mmap() offset @start lie in the chunk. */
static bool is_within(const struct flexmem_chunk *chunk, u64 start, u64 size)
{
	u64 first = flexmem_chunk_map_offset(chunk);

	return start >= first && size <= chunk->size &&
	       start - first <= chunk->size - size;
}

/**
 * flexmem_access_mmap - map a chunk of an allocation
 * @chunk: chunk of an allocation in use; put with the last mapping, or before
 *	this returns an error
 * @vma: addresses and offset; shared, and not executable
 *
 * Context: under mmap_lock.
 * Return: 0, -EINVAL if it cannot be mapped, or the range is not all in the
 * chunk, -EIO if it is lost, or -ENODEV if the device is removed.
 */
int flexmem_access_mmap(struct flexmem_chunk *chunk,
			struct vm_area_struct *vma)
{
	struct flexmem_allocation *allocation = chunk->allocation;
	struct flexmem_table *table = chunk->region->table;
	u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT;
	int rc;

	rc = flexmem_allocation_error(allocation);
	if (!rc && !is_within(chunk, start, vma->vm_end - vma->vm_start))
		rc = -EINVAL;
	if (rc) {
		flexmem_allocation_put(allocation);
		return rc;
	}
	flexmem_vm_flags_mod(vma,
			     VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP,
			     VM_MAYEXEC);
	vma->vm_page_prot =
		flexmem_function_protection(&table->function,
					    vma->vm_page_prot);
	vma->vm_private_data = chunk;
	vma->vm_ops = &access_vm_ops;
	return 0;
}

/* Copies one part between the device and the buffer. */
static int copy_piece(struct flexmem_chunk *chunk, u64 offset, u64 size,
		      void *buffer, bool write)
{
	struct flexmem_region *region = chunk->region;
	struct flexmem_table *table = region->table;
	int rc;

	rc = flexmem_function_lock(&table->function, &table->data_lock);
	if (rc)
		return rc;
	offset += chunk->block->start;
	rc = flexmem_region_error(region);
	if (rc)
		goto unlock;
	if (write)
		rc = flexmem_function_write(&table->function, &region->mem,
					    offset, size, buffer);
	else
		rc = flexmem_function_read(&table->function, &region->mem,
					   offset, size, buffer);
unlock:
	mutex_unlock(&table->data_lock);
	return rc;
}

static int copy_pieces(struct flexmem_allocation *allocation,
		       struct flexmem_copy *copy, void *buffer, u64 room,
		       bool write)
{
	void __user *user = u64_to_user_ptr(copy->data);
	struct flexmem_chunk *chunk;
	u64 size, offset;
	int rc;

	while (copy->out_done < copy->length) {
		offset = copy->offset + copy->out_done;
		chunk = flexmem_allocation_chunk(allocation, &offset);
		size = min3(copy->length - copy->out_done,
			    chunk->size - offset, room);
		if (fatal_signal_pending(current))
			return -EINTR;
		if (write && copy_from_user(buffer, user, size))
			return -EFAULT;
		rc = copy_piece(chunk, offset, size, buffer, write);
		if (rc)
			return rc;
		if (!write && copy_to_user(user, buffer, size))
			return -EFAULT;
		user += size;
		copy->out_done += size;
		cond_resched();
	}
	return 0;
}

/*
 * A driver may map the buffer for DMA, so it is not from vmalloc. It is zeroed,
 * so that a driver that returns too few bytes hands no kernel memory to the
 * user. A single page is enough if memory is fragmented.
 */
static void *alloc_buffer(u64 length, u64 *room)
{
	void *buffer;

	*room = min_t(u64, length, FLEXMEM_COPY_MAX);
	if (*room > PAGE_SIZE) {
		buffer = kzalloc(*room, GFP_KERNEL_ACCOUNT | __GFP_NOWARN |
				 __GFP_NORETRY);
		if (buffer)
			return buffer;
		*room = PAGE_SIZE;
	}
	return kzalloc(*room, GFP_KERNEL_ACCOUNT);
}

/**
 * flexmem_access_copy - copy out of an allocation or into it
 * @allocation: in use, of a device that can copy; put before this returns
 * @copy: command; @copy->out_done, which is 0, counts the bytes done, on
 *	failure too
 * @write: copy into it
 *
 * Context: may sleep; touches user memory.
 * Return: 0, -EIO if it is lost, -EINVAL if the bytes are not all in it,
 * -EFAULT, -EINTR, -ENODEV, -ENOMEM, or an error of the firmware.
 */
int flexmem_access_copy(struct flexmem_allocation *allocation,
			struct flexmem_copy *copy, bool write)
{
	void *buffer;
	u64 room;
	int rc;

	rc = flexmem_allocation_error(allocation);
	if (rc)
		goto put;
	rc = -EINVAL;
	if (!copy->length || copy->length > allocation->size ||
	    copy->offset > allocation->size - copy->length)
		goto put;
	rc = -ENOMEM;
	buffer = alloc_buffer(copy->length, &room);
	if (!buffer)
		goto put;
	rc = copy_pieces(allocation, copy, buffer, room, write);
	kfree(buffer);
put:
	flexmem_allocation_put(allocation);
	return rc;
}
