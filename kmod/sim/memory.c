// SPDX-License-Identifier: GPL-2.0
/*
 * The card's memory. Only touched pages exist, whatever size the card has;
 * other pages read as zero. A page fault makes 2 MiB of pages at once if the
 * mapping covers all of them. This layer does not know which function or which
 * piece an address belongs to. As in real memory, bytes survive a change of
 * owner and a reset of a function.
 *
 * Locking: the host only adds pages. It does that in a page fault, and before
 * it sends a write or a copy, so that the task that uses the pages is charged
 * for them. This takes only the xarray's lock, and never waits for the
 * firmware. Of the two only the firmware touches contents and removes pages: in
 * its thread, or in a program that runs between two messages. So a page that
 * the firmware has found stays while the firmware copies.
 *
 * Each command touches only its own bytes. A page is removed only if one
 * command zeroes all of the page, so no byte of the page has another owner. A
 * page that the CPU has mapped stays, because flexmem scrubs only memory
 * without mappings.
 */

#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "memory.h"

/* Page frames in the device contract have this size. */
static_assert(PAGE_SIZE == SZ_4K);

/**
 * sim_memory_init - initialise memory that is all zero
 * @memory: the memory
 */
void sim_memory_init(struct sim_memory *memory)
{
	xa_init_flags(&memory->pages, XA_FLAGS_ACCOUNT);
	atomic_long_set(&memory->count, 0);
}

/**
 * sim_memory_destroy - free all pages
 * @memory: the memory. No page of it is mapped, and neither host nor firmware
 *	uses it
 */
void sim_memory_destroy(struct sim_memory *memory)
{
	struct page *page;
	unsigned long index;

	xa_for_each(&memory->pages, index, page) {
		__free_page(page);
		cond_resched();
	}
	xa_destroy(&memory->pages);
}

/**
 * sim_memory_pages - number of pages that exist
 * @memory: the memory
 *
 * Return: the number of pages.
 */
unsigned long sim_memory_pages(struct sim_memory *memory)
{
	return atomic_long_read(&memory->count);
}

static struct page *memory_find(struct sim_memory *memory, u64 address)
{
	return xa_load(&memory->pages, address >> PAGE_SHIFT);
}

/*
 * Adds @page, or frees it if the address has a page already. Returns the page
 * of the address, or NULL.
 */
static struct page *memory_add(struct sim_memory *memory, u64 address,
			       struct page *page)
{
	struct page *old;

	old = xa_cmpxchg(&memory->pages, address >> PAGE_SHIFT, NULL, page,
			 GFP_KERNEL);
	if (old) {
		/*
		 * Another task has added a page first, or the xarray could not
		 * grow.
		 */
		__free_page(page);
		return xa_is_err(old) ? NULL : old;
	}
	atomic_long_inc(&memory->count);
	return page;
}

/*
 * Finds or allocates the page at @address. Returns NULL if there is no memory.
 */
static struct page *memory_get(struct sim_memory *memory, u64 address)
{
	struct page *page = memory_find(memory, address);

	if (page)
		return page;
	page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	return page ? memory_add(memory, address, page) : NULL;
}

/* Fills a piece of 2 MiB with contiguous pages, if the kernel has them. */
static void memory_make_piece(struct sim_memory *memory, u64 address)
{
	unsigned int order = get_order(SIM_MEMORY_PIECE);
	unsigned long first, i;
	struct page *pages;

	pages = alloc_pages(GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NORETRY |
			    __GFP_NOWARN, order);
	if (!pages)
		return;
	/* Splits the block, so that each page can be freed by itself. */
	split_page(pages, order);
	first = page_to_pfn(pages);
	for (i = 0; i < 1 << order; i++)
		memory_add(memory, address + i * PAGE_SIZE,
			   pfn_to_page(first + i));
}

/**
 * sim_memory_piece - the page frames of a piece, if they are contiguous
 * @memory: the memory
 * @address: address of the piece, a multiple of SIM_MEMORY_PIECE
 * @pfn: receives the number of the first frame
 *
 * A piece without pages gets contiguous ones, if the kernel has them at hand.
 *
 * Context: may sleep to allocate; takes no lock that is held for long.
 *
 * Return: whether the pages are contiguous.
 */
bool sim_memory_piece(struct sim_memory *memory, u64 address,
		      unsigned long *pfn)
{
	unsigned long index, first = address >> PAGE_SHIFT;
	unsigned long last = first + (SIM_MEMORY_PIECE >> PAGE_SHIFT) - 1;
	struct page *page;

	index = first;
	if (!xa_find(&memory->pages, &index, last, XA_PRESENT))
		memory_make_piece(memory, address);
	page = memory_find(memory, address);
	if (!page)
		return false;
	*pfn = page_to_pfn(page);
	for (index = first + 1; index <= last; index++) {
		page = xa_load(&memory->pages, index);
		if (!page || page_to_pfn(page) != *pfn + (index - first))
			return false;
	}
	return true;
}

/**
 * sim_memory_frame - the page frame of a page
 * @memory: the memory
 * @address: anywhere in the page
 * @pfn: receives the number of the frame
 *
 * Context: may sleep to allocate; takes no lock that is held for long.
 *
 * Return: 0 or -ENOMEM.
 */
int sim_memory_frame(struct sim_memory *memory, u64 address,
		     unsigned long *pfn)
{
	struct page *page = memory_get(memory, address);

	if (!page)
		return -ENOMEM;
	*pfn = page_to_pfn(page);
	return 0;
}

/**
 * sim_memory_populate - allocate pages, charged to the caller
 * @memory: the memory
 * @address: of the first byte
 * @size: bytes
 *
 * A page stays until one command zeroes all of it.
 *
 * Context: may sleep to allocate.
 *
 * Return: 0 or -ENOMEM.
 */
int sim_memory_populate(struct sim_memory *memory, u64 address, u64 size)
{
	const u64 end = address + size;

	for (; address < end; address = round_down(address, PAGE_SIZE) + PAGE_SIZE) {
		if (!memory_get(memory, address))
			return -ENOMEM;
	}
	return 0;
}

/*
 * Zeroes a part of a page. The other bytes of the page may have other owners.
 */
static void memory_zero_part(struct sim_memory *memory, u64 address, u64 size)
{
	struct page *page = memory_find(memory, address);

	if (page && size)
		memset(page_address(page) + offset_in_page(address), 0, size);
}

/**
 * sim_memory_zero - zero a range, and free the pages that lie wholly in it
 * @memory: the memory
 * @address: of the first byte. No page of the range is mapped
 * @size: bytes
 *
 * Context: the firmware's thread. May sleep.
 */
void sim_memory_zero(struct sim_memory *memory, u64 address, u64 size)
{
	const u64 end = address + size;
	const u64 first = round_up(address, PAGE_SIZE);
	const u64 last = round_down(end, PAGE_SIZE);
	struct page *page;
	unsigned long index;

	if (first > last) {
		memory_zero_part(memory, address, size);
		return;
	}
	memory_zero_part(memory, address, first - address);
	memory_zero_part(memory, last, end - last);
	if (first == last)
		return;
	xa_for_each_range(&memory->pages, index, page, first >> PAGE_SHIFT,
			  (last >> PAGE_SHIFT) - 1) {
		xa_erase(&memory->pages, index);
		__free_page(page);
		atomic_long_dec(&memory->count);
	}
}

/**
 * sim_memory_read - copy out of the card
 * @memory: the memory
 * @address: of the first byte
 * @size: bytes
 * @to: receives the bytes
 *
 * Context: the firmware's thread.
 */
void sim_memory_read(struct sim_memory *memory, u64 address, u64 size, void *to)
{
	while (size) {
		u64 part = min_t(u64, size, PAGE_SIZE - offset_in_page(address));
		struct page *page = memory_find(memory, address);

		if (page)
			memcpy(to, page_address(page) + offset_in_page(address),
			       part);
		else
			memset(to, 0, part);
		address += part;
		to += part;
		size -= part;
	}
}

/**
 * sim_memory_write - copy into the card
 * @memory: the memory
 * @address: of the first byte
 * @size: bytes
 * @from: source
 *
 * Context: the firmware's thread.
 *
 * Return: 0, or -EFAULT if the host has not made the pages.
 */
int sim_memory_write(struct sim_memory *memory, u64 address, u64 size,
		     const void *from)
{
	while (size) {
		u64 part = min_t(u64, size, PAGE_SIZE - offset_in_page(address));
		struct page *page = memory_find(memory, address);

		if (!page)
			return -EFAULT;
		memcpy(page_address(page) + offset_in_page(address), from, part);
		address += part;
		from += part;
		size -= part;
	}
	return 0;
}

/**
 * sim_memory_copy - copy within the card
 * @memory: the memory
 * @to: address of the first byte
 * @from: address of the first byte of the source; the ranges do not overlap
 * @size: bytes
 *
 * Context: the firmware's thread.
 *
 * Return: 0, or -EFAULT if the host has not made the pages.
 */
int sim_memory_copy(struct sim_memory *memory, u64 to, u64 from, u64 size)
{
	while (size) {
		u64 part = min_t(u64, size, PAGE_SIZE - offset_in_page(to));
		struct page *page = memory_find(memory, to);

		if (!page)
			return -EFAULT;
		sim_memory_read(memory, from, part,
				page_address(page) + offset_in_page(to));
		to += part;
		from += part;
		size -= part;
	}
	return 0;
}
