// SPDX-License-Identifier: GPL-2.0
/*
 * CPU mappings of allocations.
 *
 * A mapping consists of page frames that belong to the device. It is shared and
 * not executable. A page fault fills in the pages around the address, within 2
 * MiB, as far as the driver has contiguous frames for them. The mapping holds a
 * reference to its allocation, so its pages do not go to another owner while
 * they are mapped. When a reset or the removal ends the regions, all mappings
 * of the PF or VF are removed, and later page faults end in SIGBUS. A suspend
 * removes all mappings too, and page faults wait for the resume. map_lock keeps
 * a page fault and the removal of mappings from running at the same time.
 *
 * The caller looks up the allocation and hands over its reference. A mapping
 * covers one chunk.
 */

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sizes.h>

#include "alloc/allocation.h"
#include "compat.h"
#include "parts/mapping.h"
#include "region/table.h"

static void mapping_open(struct vm_area_struct *vma)
{
	struct flexmem_block *chunk = vma->vm_private_data;

	flexmem_allocation_get(chunk->allocation);
}

static void mapping_close(struct vm_area_struct *vma)
{
	struct flexmem_block *chunk = vma->vm_private_data;

	flexmem_allocation_put(chunk->allocation);
}

/* The part of the mapping that lies in the same 2 MiB as @offset. */
static struct flexmem_frames window_at(const struct vm_fault *vmf, u64 offset)
{
	const struct vm_area_struct *vma = vmf->vma;
	u64 first = round_down(offset, SZ_2M);
	u64 end = first + SZ_2M;

	first = max(first, offset - (vmf->address - vma->vm_start));
	end = min(end, offset + (vma->vm_end - vmf->address));
	return (struct flexmem_frames){ .offset = first, .size = end - first };
}

/*
 * Maps the page at @offset, and then the rest of @frames until a page cannot be
 * mapped.
 */
static vm_fault_t insert_pages(struct vm_fault *vmf, u64 offset,
			       const struct flexmem_frames *frames)
{
	unsigned long before = (offset - frames->offset) >> PAGE_SHIFT;
	unsigned long address = vmf->address - (before << PAGE_SHIFT);
	unsigned long i, nr = frames->size >> PAGE_SHIFT;
	vm_fault_t ret;

	ret = vmf_insert_pfn(vmf->vma, vmf->address, frames->pfn + before);
	if (ret != VM_FAULT_NOPAGE)
		return ret;
	for (i = 0; i < nr && ret == VM_FAULT_NOPAGE; i++)
		ret = vmf_insert_pfn(vmf->vma, address + (i << PAGE_SHIFT),
				     frames->pfn + i);
	return VM_FAULT_NOPAGE;
}

/*
 * Handles a page fault. Sends no command, and waits only for a removal of
 * mappings. Returns VM_FAULT_FALLBACK if the PF or VF is suspended.
 */
static vm_fault_t handle_fault(struct vm_fault *vmf,
			       vm_fault_t (*insert)(struct vm_fault *vmf,
						    u64 offset,
						    const struct flexmem_frames *))
{
	struct flexmem_block *chunk = vmf->vma->vm_private_data;
	struct flexmem_region *region = chunk->region;
	struct flexmem_table *table = region->table;
	u64 offset = ((u64)vmf->pgoff << PAGE_SHIFT) &
		     (BIT_ULL(table->map_shift) - 1);
	struct flexmem_frames frames = window_at(vmf, offset);
	vm_fault_t ret;
	int rc;

	down_read(&table->map_lock);
	/*
	 * This check comes first. In the opposite order, a suspended PF or VF
	 * that is removed between the two checks would pass both.
	 */
	if (flexmem_function_is_suspended(&table->function)) {
		ret = VM_FAULT_FALLBACK;
	} else if (flexmem_region_is_lost(region) ||
		   flexmem_function_fatal(&table->function)) {
		ret = VM_FAULT_SIGBUS;
	} else {
		rc = flexmem_function_fault(&table->function, &region->mem,
					    offset, &frames);
		if (!rc)
			ret = insert(vmf, offset, &frames);
		else
			ret = rc == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
	}
	up_read(&table->map_lock);
	return ret;
}

/*
 * Waits until the PF or VF is awake. Drops mmap_lock before the wait if the
 * fault permits that. The kernel then repeats the access.
 */
static vm_fault_t wait_awake(struct vm_fault *vmf,
			     struct flexmem_function *function)
{
	struct file *file;

	if (!(vmf->flags & FAULT_FLAG_ALLOW_RETRY))
		return flexmem_function_wait_awake(function) ?
			VM_FAULT_SIGBUS : VM_FAULT_NOPAGE;
	if (vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
		return VM_FAULT_RETRY;
	/*
	 * The reference to the file keeps @function, even if another task
	 * removes the mapping.
	 */
	file = get_file(vmf->vma->vm_file);
	mmap_read_unlock(vmf->vma->vm_mm);
	/*
	 * The result does not matter: if the caller was killed, the kernel does
	 * not repeat the fault.
	 */
	flexmem_function_wait_awake(function);
	fput(file);
	return VM_FAULT_RETRY;
}

/*
 * Called under mmap_lock, so this function may wait. mapping_huge_fault() may
 * be called without mmap_lock, so that function does not wait.
 */
static vm_fault_t mapping_fault(struct vm_fault *vmf)
{
	struct flexmem_block *chunk = vmf->vma->vm_private_data;
	vm_fault_t ret = handle_fault(vmf, insert_pages);

	if (ret != VM_FAULT_FALLBACK)
		return ret;
	return wait_awake(vmf, &chunk->region->table->function);
}

#ifdef CONFIG_ARCH_SUPPORTS_PMD_PFNMAP
static vm_fault_t insert_huge(struct vm_fault *vmf, u64 offset,
			      const struct flexmem_frames *frames)
{
	if (frames->size != SZ_2M ||
	    !IS_ALIGNED(frames->pfn, SZ_2M >> PAGE_SHIFT) ||
	    !IS_ALIGNED(vmf->address - offset, SZ_2M))
		return VM_FAULT_FALLBACK;
	return flexmem_insert_pfn_pmd(vmf, frames->pfn,
				      vmf->flags & FAULT_FLAG_WRITE);
}

/*
 * Linux 6.1 does not have CONFIG_ARCH_SUPPORTS_PMD_PFNMAP, because it cannot
 * tell a huge page of a device from a huge page of memory.
 */
static vm_fault_t mapping_huge_fault(struct vm_fault *vmf, unsigned int order)
{
	if (order != PMD_ORDER)
		return VM_FAULT_FALLBACK;
	return handle_fault(vmf, insert_huge);
}
#endif

static const struct vm_operations_struct mapping_vm_ops = {
	.open = mapping_open,
	.close = mapping_close,
	.fault = mapping_fault,
#ifdef CONFIG_ARCH_SUPPORTS_PMD_PFNMAP
	.huge_fault = mapping_huge_fault,
#endif
};

/* Whether @size bytes from the mmap() offset @start lie in the chunk. */
static bool is_within(const struct flexmem_block *chunk, u64 start, u64 size)
{
	u64 first = flexmem_chunk_map_offset(chunk);

	return start >= first && size <= chunk->size &&
	       start - first <= chunk->size - size;
}

/*
 * Maps a chunk of an allocation.
 * @chunk: chunk of an allocation that is in use. The caller's reference is put
 * when the last mapping ends, or before this returns an error. @vma: the
 * addresses and the mmap() offset of the mapping; must be shared and not
 * executable.
 * Context: under mmap_lock. Return: 0, -EINVAL if the allocation cannot be
 * mapped, or the range is not inside the chunk, -EIO if the allocation is lost,
 * or -ENODEV if the device is removed.
 */
int flexmem_mapping_mmap(struct flexmem_block *chunk,
			 struct vm_area_struct *vma)
{
	struct flexmem_allocation *allocation = chunk->allocation;
	u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT;
	int rc = flexmem_allocation_error(allocation);

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
		flexmem_function_protection(&chunk->region->table->function,
					    vma->vm_page_prot);
	vma->vm_private_data = chunk;
	vma->vm_ops = &mapping_vm_ops;
	return 0;
}
