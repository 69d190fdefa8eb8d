// SPDX-License-Identifier: GPL-2.0
/*
 * CPU mappings of allocations.
 *
 * A mapping consists of page frames that belong to the device. It is shared,
 * not executable, and filled in page by page on faults. It holds a reference to
 * its allocation, so its pages never go to another owner while they are mapped.
 * When the region is lost, every mapping of the function is removed, and later
 * page faults end in SIGBUS. map_lock keeps removal and faults apart.
 *
 * The caller has looked up the allocation and passes its reference. A mapping
 * covers one chunk.
 */

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>

#include "allocation.h"
#include "compat.h"
#include "mapping.h"
#include "table.h"

/**
 * flexmem_mapping_describe - describe how to map an allocation
 * @allocation: in use; put before this returns
 * @map: command; receives the ``out_`` members
 *
 * Gives the position of its first chunk.
 *
 * Return: 0, -EIO if it is lost, -ENODEV if the device is removed, or -EINVAL
 * if it cannot be mapped.
 */
int flexmem_mapping_describe(struct flexmem_allocation *allocation,
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

static void mapping_open(struct vm_area_struct *vma)
{
	struct flexmem_chunk *chunk = vma->vm_private_data;

	flexmem_allocation_get(chunk->allocation);
}

static void mapping_close(struct vm_area_struct *vma)
{
	struct flexmem_chunk *chunk = vma->vm_private_data;

	flexmem_allocation_put(chunk->allocation);
}

/*
 * Under mmap_lock: sends no command, and waits only for the removal of
 * mappings.
 */
static vm_fault_t mapping_fault(struct vm_fault *vmf)
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

static const struct vm_operations_struct mapping_vm_ops = {
	.open = mapping_open,
	.close = mapping_close,
	.fault = mapping_fault,
};

/* Whether @size bytes from the mmap() offset @start lie in the chunk. */
static bool is_within(const struct flexmem_chunk *chunk, u64 start, u64 size)
{
	u64 first = flexmem_chunk_map_offset(chunk);

	return start >= first && size <= chunk->size &&
	       start - first <= chunk->size - size;
}

/**
 * flexmem_mapping_mmap - map a chunk of an allocation
 * @chunk: chunk of an allocation in use; put with the last mapping, or before
 *	this returns an error
 * @vma: addresses and offset; shared, and not executable
 *
 * Context: under mmap_lock.
 * Return: 0, -EINVAL if it cannot be mapped, or the range is not inside the
 * chunk, -EIO if it is lost, or -ENODEV if the device is removed.
 */
int flexmem_mapping_mmap(struct flexmem_chunk *chunk,
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
	vma->vm_ops = &mapping_vm_ops;
	return 0;
}
