// SPDX-License-Identifier: GPL-2.0
/*
 * Extends or shortens an allocation of one chunk. Every step that can fail
 * comes before any caller can see a difference. Until the change is made,
 * resize.c refuses all other commands on the allocation.
 */

#include "allocation.h"
#include "spare.h"
#include "table.h"

/* Takes the bytes to add, as a block of their own. */
static int get_tail(struct flexmem_allocation *allocation,
		    struct flexmem_extension *extension)
{
	struct flexmem_chunk *chunk = &allocation->chunks[0];
	int rc;

	extension->room =
		flexmem_region_extend(chunk->region, chunk->block,
				      extension->size - allocation->size,
				      allocation->kind, allocation->owner,
				      &extension->spare, &extension->tail,
				      &extension->refusal);
	if (extension->tail) {
		rc = flexmem_chunk_clean(chunk, extension->tail);
		if (rc)
			extension->tail = NULL;
		return rc;
	}
	rc = flexmem_region_error(chunk->region);
	if (rc)
		return rc;
	return extension->refusal ? -ENOMEM : -EAGAIN;
}

/**
 * flexmem_allocation_prepare - prepare a change of size
 * @allocation: allocation that only the caller uses or changes
 * @size: new size in bytes, rounded to its granule, not 0
 * @extension: receives the result, for flexmem_allocation_commit() or
 *	flexmem_allocation_abort(). The caller aborts also after a failure
 *
 * Context: may sleep.
 * Return: 0; -EAGAIN if there is too little room behind it: @extension->room is
 * the number of bytes by which it could grow; -ENOMEM for lack of kernel memory
 * or because of @extension->refusal; -EBUSY if a device program uses the end;
 * -EOPNOTSUPP if it has several chunks; or an error of flexmem_region_error()
 * or flexmem_chunk_clean().
 */
int flexmem_allocation_prepare(struct flexmem_allocation *allocation, u64 size,
			       struct flexmem_extension *extension)
{
	int rc;

	*extension = (struct flexmem_extension) { .size = size };
	if (allocation->nr_chunks > 1)
		return -EOPNOTSUPP;
	rc = flexmem_allocation_error(allocation);
	/* A program may use the end until its fence has signalled. */
	if (!rc && size < allocation->size &&
	    flexmem_allocation_is_in_flight(allocation))
		rc = -EBUSY;
	if (!rc && size != allocation->size)
		rc = flexmem_spare_fill(&extension->spare, 1, NULL);
	if (!rc && size > allocation->size)
		rc = get_tail(allocation, extension);
	return rc;
}

/**
 * flexmem_allocation_commit - change the size of the block. Cannot fail
 * @allocation: the prepared allocation; the caller then stores the new size in
 *	it and in its chunk
 * @extension: from flexmem_allocation_prepare(); invalid afterwards
 */
void flexmem_allocation_commit(struct flexmem_allocation *allocation,
			       struct flexmem_extension *extension)
{
	struct flexmem_chunk *chunk = &allocation->chunks[0];

	if (extension->tail)
		flexmem_region_join(chunk->region, chunk->block,
				    extension->tail, allocation->owner);
	else if (extension->size < allocation->size)
		flexmem_region_shrink(chunk->region, chunk->block,
				      extension->size, allocation->kind,
				      allocation->owner, &extension->spare);
	flexmem_spare_drop(&extension->spare, NULL);
}

/**
 * flexmem_allocation_abort - undo flexmem_allocation_prepare()
 * @allocation: as it was prepared
 * @extension: state of flexmem_allocation_prepare(), also after it failed. Its
 *	tail and spare nodes are freed
 */
void flexmem_allocation_abort(struct flexmem_allocation *allocation,
			      struct flexmem_extension *extension)
{
	if (extension->tail)
		flexmem_region_free(allocation->chunks[0].region,
				    extension->tail,
				    allocation->kind, allocation->owner, false,
				    NULL);
	flexmem_spare_drop(&extension->spare, NULL);
}
