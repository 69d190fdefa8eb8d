// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings. A page table is an array of frames. The CPU's accesses through an
 * entry run under the mapping's lock, so that no access uses an entry that was
 * removed.
 */
#include "internal.h"

#define FIRST_ADDRESS 0x700000000000ul

static void forget_pages(struct vm_area_struct *vma)
{
	size_t i, nr = (vma->vm_end - vma->vm_start) >> PAGE_SHIFT;

	for (i = 0; i < nr; i++)
		vma->pfn[i] = 0;
}

vm_fault_t vmf_insert_pfn(struct vm_area_struct *vma, unsigned long address,
			  unsigned long pfn)
{
	unsigned long *entry;

	if (address < vma->vm_start || address >= vma->vm_end)
		shim_bug("page is put outside of its map");
	if (!(vma->vm_flags & VM_PFNMAP))
		shim_bug("page is put into a map that is not VM_PFNMAP");
	if (native_should_fail(NATIVE_ALLOC))
		return VM_FAULT_OOM;
	entry = &vma->pfn[(address - vma->vm_start) >> PAGE_SHIFT];
	spin_lock(&vma->lock);
	/* A page that is mapped already stays, as in Linux. */
	if (!*entry)
		*entry = pfn;
	spin_unlock(&vma->lock);
	return VM_FAULT_NOPAGE;
}

vm_fault_t vmf_insert_pfn_pmd(struct vm_fault *vmf, unsigned long pfn, bool write)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long first = round_down(vmf->address, SZ_2M);
	size_t i, at = (first - vma->vm_start) >> PAGE_SHIFT;

	if (first < vma->vm_start || vma->vm_end - first < SZ_2M)
		shim_bug("huge page is put outside of its map");
	if (!(vma->vm_flags & VM_PFNMAP))
		shim_bug("huge page is put into a map that is not VM_PFNMAP");
	if (!IS_ALIGNED(pfn, 1 << PMD_ORDER))
		shim_bug("huge page of frames that are not aligned");
	if (native_should_fail(NATIVE_ALLOC))
		return VM_FAULT_OOM;
	spin_lock(&vma->lock);
	for (i = 0; i < 1 << PMD_ORDER; i++)
		vma->pfn[at + i] = pfn + i;
	vma->nr_huge++;
	spin_unlock(&vma->lock);
	return VM_FAULT_NOPAGE;
}

unsigned long thp_get_unmapped_area(struct file *filp, unsigned long hint,
				    unsigned long length, unsigned long pgoff,
				    unsigned long flags)
{
	return FIRST_ADDRESS + ((pgoff << PAGE_SHIFT) & (SZ_2M - 1));
}

/* Unmaps the whole file, because the driver never asks for a part. */
void unmap_mapping_range(struct address_space *mapping, loff_t start,
			 loff_t length, int even_cows)
{
	struct vm_area_struct *vma;

	might_sleep();
	if (start || length)
		shim_bug("only whole mappings are taken away");
	spin_lock(&mapping->lock);
	list_for_each_entry(vma, &mapping->vmas, mapped) {
		spin_lock(&vma->lock);
		forget_pages(vma);
		spin_unlock(&vma->lock);
	}
	spin_unlock(&mapping->lock);
}

static struct vm_area_struct *create(struct file *file, unsigned long pgoff,
				     size_t length, unsigned long flags)
{
	struct mm_struct *mm = calloc(1, sizeof(*mm));
	struct vm_area_struct *vma = &mm->vma;

	if (!mm)
		abort();
	vma->vm_mm = mm;
	vma->vm_start = file->f_op->get_unmapped_area(file, 0, length, pgoff, 0);
	vma->vm_end = vma->vm_start + PAGE_SIZE * DIV_ROUND_UP(length, PAGE_SIZE);
	vma->vm_pgoff = pgoff;
	vma->vm_flags = flags | VM_MAYEXEC;
	vma->vm_file = file;
	vma->pfn = calloc((vma->vm_end - vma->vm_start) >> PAGE_SHIFT,
			  sizeof(*vma->pfn));
	if (!vma->pfn)
		abort();
	spin_lock_init(&vma->lock);
	init_rwsem(&mm->mmap_lock);
	native_file_get(file);
	return vma;
}

static void destroy(struct vm_area_struct *vma)
{
	native_close(vma->vm_file);
	free(vma->pfn);
	free(vma->vm_mm);
}

static void link_map(struct vm_area_struct *vma)
{
	struct address_space *mapping = vma->vm_file->f_mapping;

	spin_lock(&mapping->lock);
	list_add_tail(&vma->mapped, &mapping->vmas);
	spin_unlock(&mapping->lock);
}

/**
 * native_mmap - map a file
 * @file: open file
 * @offset: offset in the file, a multiple of the page size
 * @length: bytes, not 0
 * @flags: VM_SHARED and so on
 *
 * As in the kernel, a file that is open only for reading cannot have a writable
 * shared mapping, and its readable shared mapping is not marked as shared.
 *
 * Return: the mapping, for native_munmap(), or an ERR_PTR().
 */
struct vm_area_struct *native_mmap(struct file *file, u64 offset, size_t length,
				   unsigned long flags)
{
	struct vm_area_struct *vma;
	int rc;

	if (flags & VM_SHARED && !(file->f_mode & FMODE_WRITE)) {
		if (flags & VM_WRITE)
			return ERR_PTR(-EACCES);
		flags &= ~VM_SHARED;
	}
	vma = create(file, offset >> PAGE_SHIFT, length, flags);
	down_write(&vma->vm_mm->mmap_lock);
	rc = file->f_op->mmap(file, vma);
	if (!rc)
		link_map(vma);
	up_write(&vma->vm_mm->mmap_lock);
	if (!rc)
		return vma;
	destroy(vma);
	return ERR_PTR(rc);
}

/*
 * Makes another mapping of the same memory, as fork() does. No page of it is
 * mapped yet.
 */
struct vm_area_struct *native_fork_map(struct vm_area_struct *vma)
{
	struct vm_area_struct *copy;

	copy = create(vma->vm_file, vma->vm_pgoff, vma->vm_end - vma->vm_start,
		      vma->vm_flags);
	down_write(&vma->vm_mm->mmap_lock);
	copy->vm_flags = vma->vm_flags;
	copy->vm_ops = vma->vm_ops;
	copy->vm_private_data = vma->vm_private_data;
	copy->vm_ops->open(copy);
	link_map(copy);
	up_write(&vma->vm_mm->mmap_lock);
	return copy;
}

void native_munmap(struct vm_area_struct *vma)
{
	struct address_space *mapping = vma->vm_file->f_mapping;

	down_write(&vma->vm_mm->mmap_lock);
	spin_lock(&mapping->lock);
	list_del(&vma->mapped);
	spin_unlock(&mapping->lock);
	vma->vm_ops->close(vma);
	up_write(&vma->vm_mm->mmap_lock);
	destroy(vma);
}

/*
 * An access of the CPU to a mapped byte. Two tasks of an owner may use the same
 * byte at the same time, and the firmware may copy it. The program must order
 * these accesses, not the driver, so TSan does not check them. ASan detects an
 * access to a freed frame.
 */
static noinline __attribute__((no_sanitize("thread")))
void use_byte(u8 *at, u8 *byte, bool write)
{
	if (write)
		*at = *byte;
	else
		*byte = *at;
}

/* Accesses a mapped page; -EAGAIN if the page is not mapped. */
static int use_page(struct vm_area_struct *vma, size_t offset, u8 *byte,
		    bool write)
{
	unsigned long pfn;
	struct page *page;
	int rc = -EAGAIN;

	spin_lock(&vma->lock);
	pfn = vma->pfn[offset >> PAGE_SHIFT];
	page = native_pfn_to_page(pfn);
	if (pfn)
		rc = 0;
	if (page)
		use_byte(page->data + offset_in_page(offset), byte, write);
	spin_unlock(&vma->lock);
	return rc;
}

/*
 * Asks for a huge page first if the map has room for one, as the kernel does.
 */
static vm_fault_t page_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long first = round_down(vmf->address, SZ_2M);
	vm_fault_t fault = VM_FAULT_FALLBACK;
	size_t i, at = (first - vma->vm_start) >> PAGE_SHIFT;

	if (first >= vma->vm_start && first + SZ_2M <= vma->vm_end) {
		spin_lock(&vma->lock);
		for (i = 0; i < 1 << PMD_ORDER && !vma->pfn[at + i]; i++)
			;
		spin_unlock(&vma->lock);
		if (i == 1 << PMD_ORDER)
			fault = vma->vm_ops->huge_fault(vmf, PMD_ORDER);
	}
	return fault & VM_FAULT_FALLBACK ? vma->vm_ops->fault(vmf) : fault;
}

/**
 * native_touch - read or write a byte of a map
 * @vma: mapping
 * @offset: offset of the byte in the mapping
 * @byte: the byte to write, or receives the byte. Not used if the frame has no
 *	bytes in this program
 * @write: whether to write
 *
 * Return: 0; -EFAULT for SIGBUS; -ENOMEM.
 */
int native_touch(struct vm_area_struct *vma, size_t offset, u8 *byte, bool write)
{
	struct vm_fault vmf = {
		.vma = vma,
		.pgoff = vma->vm_pgoff + (offset >> PAGE_SHIFT),
		.address = vma->vm_start + (offset & ~(PAGE_SIZE - 1)),
		.flags = FAULT_FLAG_ALLOW_RETRY |
			 (write ? FAULT_FLAG_WRITE : 0),
	};
	vm_fault_t fault;

	while (use_page(vma, offset, byte, write)) {
		if (fatal_signal_pending(current))
			return -EFAULT;
		down_read(&vma->vm_mm->mmap_lock);
		fault = page_fault(&vmf);
		/* The driver has unlocked mmap_lock. */
		if (fault & VM_FAULT_RETRY)
			continue;
		up_read(&vma->vm_mm->mmap_lock);
		if (fault & VM_FAULT_SIGBUS)
			return -EFAULT;
		if (fault & VM_FAULT_OOM)
			return -ENOMEM;
	}
	return 0;
}
