/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The card's memory chips: bytes by physical address. See memory.c.
 */
#ifndef _FLEXMEM_SIM_MEMORY_H
#define _FLEXMEM_SIM_MEMORY_H

#include <linux/atomic.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/xarray.h>

/*
 * Where possible the host's memory is contiguous in pieces of this size, so
 * that one page fault maps a piece.
 */
#define SIM_MEMORY_PIECE SZ_2M

/**
 * struct sim_memory - the card's memory
 * @pages: &struct page by number of the page on the card
 * @count: number of @pages
 */
struct sim_memory {
	struct xarray pages;
	atomic_long_t count;
};

void sim_memory_init(struct sim_memory *memory);
void sim_memory_destroy(struct sim_memory *memory);
unsigned long sim_memory_pages(struct sim_memory *memory);

/* the host's end */
int sim_memory_frame(struct sim_memory *memory, u64 address,
		     unsigned long *pfn);
bool sim_memory_piece(struct sim_memory *memory, u64 address,
		      unsigned long *pfn);
int sim_memory_populate(struct sim_memory *memory, u64 address, u64 size);

/* the firmware's end */
void sim_memory_zero(struct sim_memory *memory, u64 address, u64 size);
void sim_memory_read(struct sim_memory *memory, u64 address, u64 size,
		     void *to);
int sim_memory_write(struct sim_memory *memory, u64 address, u64 size,
		     const void *from);
int sim_memory_copy(struct sim_memory *memory, u64 to, u64 from, u64 size);

#endif /* _FLEXMEM_SIM_MEMORY_H */
