// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations.
 *
 * An allocation exists as long as something uses it: its handle, a CPU mapping,
 * a copy, a kernel user, or a device program. leaving.c describes its end. Each of
 * its chunks has a block of its own; all chunks are allocated, or none.
 */

#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <flexmem/dispatch.h>

#include "alloc/allocation.h"
#include "alloc/placement.h"
#include "block/spare.h"
#include "part.h"
#include "region/scrub.h"
#include "region/table.h"
#include "tenant/owner.h"
#include "trace.h"

/*
 * Scrubs bytes of other owners in a new block. If the firmware fails, the block
 * goes into quarantine. If no scrub was sent or a signal interrupted the wait,
 * the block is freed unchanged.
 * Context: may sleep. Return: 0; or an error of flexmem_scrub_block(): then the
 * caller must not use the block any more.
 */
int flexmem_chunk_clean(const struct flexmem_allocation *allocation,
			struct flexmem_block *block)
{
	int rc;

	rc = flexmem_scrub_block(block, allocation->owner->id,
				 allocation->flags & FLEXMEM_ALLOC_ZEROED);
	if (rc == -EINTR || rc == -ENOMEM || rc == -ENODEV || rc == -EAGAIN)
		flexmem_region_free(block, 0, NULL);
	else if (rc)
		flexmem_region_quarantine(block);
	return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

/* The domain of chunk number @index, if there are several in @domains. */
static u64 chunk_domain(u64 domains, unsigned int index)
{
	u64 left = domains;

	while (index--)
		left = (left & (left - 1)) ?: domains;
	return BIT_ULL(__ffs64(left));
}

static void give_chunks(struct flexmem_allocation *allocation,
			unsigned int first, unsigned int end,
			struct flexmem_stock *stock)
{
	for (; first < end; first++)
		flexmem_region_free(allocation->chunks[first], 0, stock);
}

/* Allocates a block for each chunk, or none. */
static int take_chunks(struct flexmem_allocation *allocation,
		       struct flexmem_request *request)
{
	u64 part = request->part, domains = request->domains;
	unsigned int i;
	int rc;

	for (i = 0; request->unplaced; i++) {
		request->part = min(part, request->unplaced);
		if (request->chunks > 1) {
			request->domains = chunk_domain(domains, i);
			request->first = request->domains;
		}
		rc = flexmem_place(request);
		if (rc)
			goto undo;
		allocation->chunks[i] = request->block;
		request->block->allocation = allocation;
	}
	return 0;
undo:
	give_chunks(allocation, 0, i, NULL);
	request->began += i;
	return rc;
}

static int clean_chunks(struct flexmem_allocation *allocation)
{
	unsigned int i, nr = allocation->nr_chunks;
	int rc = 0;

	for (i = 0; !rc && i < nr; i++)
		rc = flexmem_chunk_clean(allocation, allocation->chunks[i]);
	if (rc) {
		give_chunks(allocation, 0, i - 1, NULL);
		give_chunks(allocation, i, nr, NULL);
	}
	return rc;
}

static u64 chunk_size(const struct flexmem_request *request)
{
	if (request->chunks == 1)
		return request->size;
	/*
	 * All chunks together have enough bytes. If the quotient is no multiple
	 * of the alignment, ALIGN() adds more to each chunk than the division
	 * has dropped. If the quotient is a multiple, the division has dropped
	 * nothing: the remainder is a multiple of FLEXMEM_ALIGN (128), and less
	 * than the number of chunks (at most 64), so it is 0. ALIGN() does not
	 * overflow, because the quotient is at most half of U64_MAX.
	 */
	return ALIGN(div_u64(request->size, request->chunks),
		     request->alignment);
}

static struct flexmem_allocation *create(const struct flexmem_request *request)
{
	struct flexmem_allocation *allocation;
	unsigned int nr = 1;

	if (request->chunks > 1)
		nr = div64_u64(request->size - 1, request->part) + 1;
	allocation = nr == 1 ?
		flexmem_stock_take(request->stock, FLEXMEM_OBJECT_ALLOCATION) :
		kmalloc(struct_size(allocation, chunks, nr), GFP_KERNEL_ACCOUNT);
	if (!allocation)
		return NULL;
	*allocation = (struct flexmem_allocation) {
		.refs = REFCOUNT_INIT(1),
		.alignment = request->alignment,
		.owner = request->account,
		.size = request->size,
		.flags = request->flags,
		.nr_chunks = nr,
	};
	return allocation;
}

static void destroy(struct flexmem_allocation *allocation,
		    struct flexmem_stock *stock)
{
	if (allocation->nr_chunks == 1)
		flexmem_stock_give(stock, FLEXMEM_OBJECT_ALLOCATION,
				   allocation);
	else
		kfree(allocation);
}

/*
 * Makes an allocation, which takes the request's charge and its reference to
 * the account.
 * @request: receives the reason on failure.
 * Context: may sleep. Return: the allocation, with one reference; or an error
 * of flexmem_place_fail().
 */
struct flexmem_allocation *
flexmem_allocation_make(struct flexmem_request *request)
{
	struct flexmem_allocation *allocation;
	int rc;

	request->part = chunk_size(request);
	rc = flexmem_place_charge(request);
	if (rc)
		goto fail;
	rc = -ENOMEM;
	allocation = create(request);
	if (!allocation)
		goto fail;
	rc = take_chunks(allocation, request) ?: clean_chunks(allocation);
	if (!rc)
		return allocation;
	destroy(allocation, request->stock);
fail:
	return ERR_PTR(flexmem_place_fail(request, rc));
}

void flexmem_allocation_get(struct flexmem_allocation *allocation)
{
	refcount_inc(&allocation->refs);
}

/*
 * Frees an allocation that nothing uses, and its blocks. @stock: may keep freed
 * objects; NULL: the objects are freed.
 */
void flexmem_allocation_end(struct flexmem_allocation *allocation,
			    struct flexmem_stock *stock)
{
	trace_flexmem_end(allocation);
	/* A file that reads the event about the first block may need the handle. */
	flexmem_region_free(allocation->chunks[0], 1, stock);
	give_chunks(allocation, 1, allocation->nr_chunks, stock);
	flexmem_owner_put(allocation->owner);
	destroy(allocation, stock);
}

/* Marks a freed allocation that is still in use. */
void flexmem_allocation_orphan(struct flexmem_allocation *allocation)
{
	unsigned int i;

	for (i = 0; i < allocation->nr_chunks; i++)
		flexmem_region_orphan(allocation->chunks[i]);
}

/* Inline, because each FREE calls it. */
static __always_inline void put(struct flexmem_allocation *allocation,
				struct flexmem_stock *stock)
{
	if (!refcount_dec_and_test(&allocation->refs))
		return;
	if (allocation->fences)
		flexmem_parts_call(leave, allocation, stock);
	else
		flexmem_allocation_end(allocation, stock);
}

/**
 * flexmem_allocation_put - put a reference
 * @allocation: allocation, which this may free
 *
 * After the last reference was put, the blocks are freed as soon as the device
 * no longer uses them.
 *
 * Context: may sleep.
 */
void flexmem_allocation_put(struct flexmem_allocation *allocation)
{
	put(allocation, NULL);
}
EXPORT_SYMBOL_GPL(flexmem_allocation_put);

/*
 * Frees an allocation for its owner. An allocation that is still in use is leaving
 * from now on, and stays charged with its handle.
 * @allocation: this function puts the reference of the handle. The caller has a
 * reference to the account. @stock: stock that may keep the objects that this
 * frees.
 */
void flexmem_allocation_drop_handle(struct flexmem_allocation *allocation,
				    struct flexmem_stock *stock)
{
	/* No task can get a further reference by the handle. */
	if (refcount_read(&allocation->refs) > 1)
		flexmem_allocation_orphan(allocation);
	put(allocation, stock);
}

/**
 * flexmem_allocation_error - whether the bytes of an allocation can be accessed
 * @allocation: allocation
 *
 * Context: any.
 * Return: 0; -EIO if the memory of a chunk was lost in a reset; -ENODEV if the
 * device was removed.
 */
int flexmem_allocation_error(const struct flexmem_allocation *allocation)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < allocation->nr_chunks; i++)
		rc = flexmem_region_error(allocation->chunks[i]->region);
	return rc;
}
EXPORT_SYMBOL_GPL(flexmem_allocation_error);

/**
 * flexmem_allocation_part - address of a part of an allocation
 * @allocation: allocation that the caller has a reference to
 * @index: 0 for the first part
 * @part: receives the address
 *
 * The address is valid until the next call of the driver's @quiesce or @reset
 * operation. To check that no such call has begun, the driver takes the lock
 * that these operations take. Then flexmem_allocation_error() must return 0.
 *
 * Context: any.
 * Return: false if there is no such part.
 */
bool flexmem_allocation_part(const struct flexmem_allocation *allocation,
			     unsigned int index, struct flexmem_part *part)
{
	const struct flexmem_block *chunk;

	if (index >= allocation->nr_chunks)
		return false;
	chunk = allocation->chunks[index];
	*part = (struct flexmem_part) {
		.mem = chunk->region->mem,
		.slot = chunk->region->slot,
		.offset = chunk->start,
		.size = chunk->size,
	};
	return true;
}
EXPORT_SYMBOL_GPL(flexmem_allocation_part);

/*
 * Finds the chunk that has a byte of an allocation.
 * @offset: in: position of the byte in the allocation, less than its size.
 * Out: position of the byte in the chunk.
 */
struct flexmem_block *
flexmem_allocation_chunk(const struct flexmem_allocation *allocation,
			 u64 *offset)
{
	struct flexmem_block *const *chunk = allocation->chunks;

	for (; *offset >= (*chunk)->size; chunk++)
		*offset -= (*chunk)->size;
	return *chunk;
}

struct flexmem_address
flexmem_allocation_address(const struct flexmem_allocation *allocation)
{
	const struct flexmem_block *first = allocation->chunks[0];

	return (struct flexmem_address) {
		.region_id = first->region->id,
		.offset = first->start,
	};
}

/* Fills in the description of chunk number @index that LOOKUP returns. */
void flexmem_allocation_describe(const struct flexmem_allocation *allocation,
				 unsigned int index,
				 struct flexmem_chunk_entry *entry)
{
	const struct flexmem_block *chunk = allocation->chunks[index];
	bool mappable = allocation->flags & FLEXMEM_ALLOC_MAPPABLE;

	*entry = (struct flexmem_chunk_entry) {
		.address.region_id = chunk->region->id,
		.address.offset = chunk->start,
		.length = chunk->size,
		.map_offset = mappable ? flexmem_chunk_map_offset(chunk) : 0,
		.domain = chunk->region->domain->id,
	};
}

/* A multiple of the page size if the allocation is mappable. */
u64 flexmem_chunk_map_offset(const struct flexmem_block *chunk)
{
	return ((u64)chunk->region->slot << chunk->region->table->map_shift) |
	       chunk->start;
}
