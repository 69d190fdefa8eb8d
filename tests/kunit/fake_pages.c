// SPDX-License-Identifier: GPL-2.0
/*
 * The page table of the fake device. It notices if flexmem maps over a mapping,
 * cuts one, or maps memory that was not acquired.
 */

#include <linux/errno.h>

#include "fake_device.h"

static bool touches(const struct flexmem_vm_range *a,
		    const struct flexmem_vm_range *b)
{
	return a->size && a->space == b->space &&
	       a->address < b->address + b->size &&
	       b->address < a->address + a->size;
}

/* The number of entries in the page table. */
unsigned int fake_pages_nr(const struct fake_device *fake)
{
	unsigned int i, nr = 0;

	for (i = 0; i < FAKE_MAX_PAGES; i++)
		nr += !!fake->page[i].range.size;
	return nr;
}

/**
 * fake_pages_map - add an entry to the page table
 * @fake: device
 * @range: addresses
 * @mem: memory that is mapped there
 * @offset: first byte in @mem
 * @access: of enum flexmem_vm_access
 *
 * Return: 0, or -ENOSPC if the table is full.
 */
int fake_pages_map(struct fake_device *fake,
		   const struct flexmem_vm_range *range,
		   const struct flexmem_memory *mem, u64 offset,
		   unsigned int access)
{
	struct fake_page *page = fake->page, *empty = NULL;

	fake_breach_if(fake, !fake_device_piece(fake, mem),
		       "mapped memory that was not acquired");
	for (; page < fake->page + FAKE_MAX_PAGES; page++) {
		fake_breach_if(fake, touches(&page->range, range),
			       "mapped over a mapping");
		if (!page->range.size && !empty)
			empty = page;
	}
	if (fake_pages_nr(fake) >= fake->max_pages)
		return -ENOSPC;
	*empty = (struct fake_page) { *range, mem->id, offset, access };
	return 0;
}

void fake_pages_unmap(struct fake_device *fake,
		      const struct flexmem_vm_range *range)
{
	struct fake_page *page = fake->page;

	for (; page < fake->page + FAKE_MAX_PAGES; page++) {
		if (!touches(&page->range, range))
			continue;
		fake_breach_if(fake, page->range.address < range->address ||
			       page->range.address + page->range.size >
			       range->address + range->size,
			       "cut a mapping");
		page->range.size = 0;
	}
}

/* Whether the memory is mapped in any space. */
bool fake_pages_has(const struct fake_device *fake, u64 id)
{
	unsigned int i;

	for (i = 0; i < FAKE_MAX_PAGES; i++)
		if (fake->page[i].range.size && fake->page[i].id == id)
			return true;
	return false;
}

int fake_vm_map(void *priv, const struct flexmem_vm_range *range,
		const struct flexmem_memory *mem, u64 offset,
		unsigned int access)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_VM_MAP);

	if (!rc)
		rc = fake_pages_map(fake, range, mem, offset, access);
	else if (fake_takes_effect(fake, rc))
		fake_pages_map(fake, range, mem, offset, access);
	return fake_device_end(fake, FAKE_VM_MAP, range->size, rc);
}

int fake_vm_unmap(void *priv, const struct flexmem_vm_range *range)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_VM_UNMAP);

	if (fake_takes_effect(fake, rc))
		fake_pages_unmap(fake, range);
	return fake_device_end(fake, FAKE_VM_UNMAP, range->size, rc);
}
