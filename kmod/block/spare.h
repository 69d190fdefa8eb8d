/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel memory for allocations and blocks, and freed objects kept for reuse.
 */
#ifndef _FLEXMEM_SPARE_H
#define _FLEXMEM_SPARE_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct flexmem_spare;

/**
 * enum flexmem_object - kinds of objects
 * @FLEXMEM_OBJECT_ALLOCATION: &struct flexmem_allocation with one chunk
 * @FLEXMEM_OBJECT_BLOCK: &struct flexmem_block
 * @FLEXMEM_NR_OBJECTS: number of kinds
 */
enum flexmem_object {
	FLEXMEM_OBJECT_ALLOCATION,
	FLEXMEM_OBJECT_BLOCK,
	FLEXMEM_NR_OBJECTS,
};

/*
 * How many objects of each kind a client keeps: more than a usual batch frees.
 * Debug builds keep none unless a test asks for it, because KASAN notices a use
 * after free only if the object went back to the slab.
 */
#define FLEXMEM_STOCK_MOST 80

/**
 * struct flexmem_stock - freed objects that a client keeps for reuse
 * @lock: protects @kept; a leaf
 * @link: in the list of stocks that the shrinker empties
 * @is_listed: it is in this list; changes under the list's lock
 * @kept: lists of the objects, by kind; the first word of each object points at
 *	the next
 */
struct flexmem_stock {
	spinlock_t lock; /* protects @kept */
	struct list_head link;
	bool is_listed;
	struct {
		void *first;
		unsigned int nr;
	} kept[FLEXMEM_NR_OBJECTS];
};

int flexmem_spare_init(void);
void flexmem_spare_exit(void);

void flexmem_stock_init(struct flexmem_stock *stock);
void flexmem_stock_fini(struct flexmem_stock *stock);
void *flexmem_stock_take(struct flexmem_stock *stock, enum flexmem_object kind);
void flexmem_stock_give(struct flexmem_stock *stock, enum flexmem_object kind,
			void *object);
unsigned long flexmem_stock_count(void);
unsigned long flexmem_stock_shrink(unsigned long wanted);
int flexmem_spare_fill(struct flexmem_spare *spare, unsigned int nr,
		       struct flexmem_stock *stock);
void flexmem_spare_drop(struct flexmem_spare *spare,
			struct flexmem_stock *stock);

#ifdef FLEXMEM_DEBUG
extern unsigned int flexmem_stock_most;
#endif

#endif /* _FLEXMEM_SPARE_H */
