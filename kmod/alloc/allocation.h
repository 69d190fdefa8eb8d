/* SPDX-License-Identifier: GPL-2.0 */
/* Allocations: the result of ALLOC. */
#ifndef _FLEXMEM_ALLOCATION_H
#define _FLEXMEM_ALLOCATION_H

#include <linux/align.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/flexmem.h>
#include <flexmem/dispatch.h>

#include "alloc/request.h"
#include "block/block.h"
#include "region/domain.h"

struct flexmem_fences;

/**
 * struct flexmem_allocation - an allocation
 * @refs: one reference for its handle, and one for each CPU mapping, each
 *	copy, each binding at device-virtual addresses, and each kernel user (a
 *	device's driver that dispatches jobs). After the last reference is put,
 *	the blocks are freed as soon as all @fences have signalled
 * @alignment: of each chunk's offset
 * @fences: fences of device programs that use the allocation; NULL if no
 *	program ever did
 * @owner: account that is charged; a reference is held
 * @handle: handle for user space
 * @named: look-ups find the allocation. Cleared under the lock of the handles
 * @flags: of enum flexmem_alloc_flags
 * @size: bytes in all its chunks; changes under the lock of the handles, and
 *	only while the handle has the only reference
 * @resizing: @size is about to change, so no task can take a reference. Under
 *	the lock of the handles
 * @nr_chunks: number of @chunks, at least 1. A client's stock may keep an object
 *	with room for one chunk after the free
 * @chunks: parts of the allocation, in order: an occupied block each. The first
 *	chunk has the address of the allocation
 *
 * After the allocation has got its handle, only @refs, @fences, @named, @size
 * and @resizing change, and the size, node and residue of the chunks.
 */
struct flexmem_allocation {
	refcount_t refs;
	u32 alignment;
	struct flexmem_fences *fences;
	struct flexmem_account *owner;
	u64 size;
	u32 handle;
	u32 flags;
	bool named;
	bool resizing;
	unsigned int nr_chunks;
	struct flexmem_block *chunks[];
};

/*
 * The unit of the start and length of an allocation with @flags. A mappable
 * allocation consists of whole pages, so no two mappable allocations share a
 * page.
 */
static inline u64 flexmem_granule_of(u32 flags)
{
	return flags & FLEXMEM_ALLOC_MAPPABLE ? PAGE_SIZE : FLEXMEM_ALIGN;
}

/*
 * The unit of the length of an allocation. An alignment above a page is a unit
 * itself: otherwise a few bytes, which are all that is charged, could keep others
 * from so much. @alignment: any number; one that is no power of two is no unit.
 */
static inline u64 flexmem_unit_of(u32 flags, u64 alignment)
{
	return unlikely(alignment > PAGE_SIZE) && is_power_of_2(alignment) ?
		alignment : flexmem_granule_of(flags);
}

/*
 * Rounds a length up to flexmem_unit_of(). If that overflows, the result is still
 * larger than any region.
 */
static inline u64 flexmem_round_length(u32 flags, u64 alignment, u64 length)
{
	u64 unit = flexmem_unit_of(flags, alignment);

	return length > ALIGN_DOWN(U64_MAX, unit) ? ALIGN_DOWN(U64_MAX, unit) :
						    ALIGN(length, unit);
}

struct flexmem_allocation *
flexmem_allocation_make(struct flexmem_request *request);
int flexmem_chunk_clean(const struct flexmem_allocation *allocation,
			struct flexmem_block *block);
void flexmem_allocation_get(struct flexmem_allocation *allocation);
void flexmem_allocation_orphan(struct flexmem_allocation *allocation);
void flexmem_allocation_end(struct flexmem_allocation *allocation,
			    struct flexmem_stock *stock);
void flexmem_allocation_drop_handle(struct flexmem_allocation *allocation,
				    struct flexmem_stock *stock);
struct flexmem_block *
flexmem_allocation_chunk(const struct flexmem_allocation *allocation,
			 u64 *offset);
struct flexmem_address
flexmem_allocation_address(const struct flexmem_allocation *allocation);
void flexmem_allocation_describe(const struct flexmem_allocation *allocation,
				 unsigned int index,
				 struct flexmem_chunk_entry *entry);
u64 flexmem_chunk_map_offset(const struct flexmem_block *chunk);

#endif /* _FLEXMEM_ALLOCATION_H */
