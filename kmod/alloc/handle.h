/* SPDX-License-Identifier: GPL-2.0 */
/* The handles of one client: numbers that stand for allocations. */
#ifndef _FLEXMEM_HANDLE_H
#define _FLEXMEM_HANDLE_H

#include <linux/spinlock.h>
#include <linux/types.h>

struct flexmem_allocation;

/* The low bits of a handle are an index; the bits above are a generation. */
#define FLEXMEM_HANDLE_INDEX_BITS 22
/*
 * The first array of entries has 2 to this power entries. Each further array
 * has as many entries as all arrays before it.
 */
#define FLEXMEM_HANDLE_FIRST_BITS 9
#define FLEXMEM_HANDLE_SEGMENTS \
	(FLEXMEM_HANDLE_INDEX_BITS - FLEXMEM_HANDLE_FIRST_BITS + 1)
/*
 * An index is reused only when at least this many indexes are free. The index
 * that was freed first is reused first.
 */
#define FLEXMEM_HANDLE_KEPT 512

/**
 * struct flexmem_handles - handles of a client
 * @lock: protects the members below. A leaf, never held together with another
 *	lock
 * @segment: arrays of entries, by index; NULL if not allocated yet
 * @next: the lowest index that was never used. Index 0 is not used at all
 * @nr_free: number of free indexes below @next
 * @oldest: index that was freed first
 * @newest: index that was freed last
 */
struct flexmem_handles {
	spinlock_t lock; /* protects the members below */
	unsigned long *segment[FLEXMEM_HANDLE_SEGMENTS];
	u32 next;
	u32 nr_free;
	u32 oldest;
	u32 newest;
};

void flexmem_handles_init(struct flexmem_handles *handles);
void flexmem_handles_fini(struct flexmem_handles *handles);
int flexmem_handles_add(struct flexmem_handles *handles,
			struct flexmem_allocation *allocation);
void flexmem_handles_remove(struct flexmem_handles *handles, u32 handle);
struct flexmem_allocation *
flexmem_handles_find(const struct flexmem_handles *handles, u32 handle);
struct flexmem_allocation *
flexmem_handles_next(const struct flexmem_handles *handles, u32 *index);

#endif /* _FLEXMEM_HANDLE_H */
