// SPDX-License-Identifier: GPL-2.0
/* The scrub of a free block that may change at any time, part by part. */

#include <linux/errno.h>

#include "block/residue.h"

/*
 * Chooses the block to scrub. @residue: of a free block that is not clean.
 * Context: the caller holds the lock of the region.
 */
void flexmem_residues_watch(struct flexmem_residues *residues,
			    struct flexmem_residue *residue)
{
	residues->watched = residue;
	residues->next = residue->start;
}

/*
 * Finds the next part of the watched block to scrub, of at most @most bytes.
 * Context: the caller holds the lock of the region; no other task scrubs until
 * flexmem_residues_end_scrub(). Return: false if no block is watched.
 */
bool flexmem_residues_begin_scrub(struct flexmem_residues *residues, u64 most,
				  u64 *start, u64 *end)
{
	if (!residues->watched)
		return false;
	*start = residues->next;
	*end = min(residues->watched->end, *start + most);
	return true;
}

/*
 * Ends a scrub that flexmem_residues_begin_scrub() has begun. A block that could
 * not be scrubbed is checked again after all other dirty blocks.
 * @end: end of the part. @rc: 0 if the part is clean now.
 * Context: the caller holds the lock of the region. Return: @rc; or -EAGAIN if
 * the block has changed during the scrub. The block then stays dirty.
 */
int flexmem_residues_end_scrub(struct flexmem_residues *residues, u64 end,
			       int rc)
{
	struct flexmem_residue *residue = residues->watched;

	residues->next = end;
	if (!residue)
		return rc ?: -EAGAIN;
	if (!rc && end < residue->end)
		return 0;
	residues->watched = NULL;
	if (rc) {
		list_move_tail(&residue->link, &residues->dirty);
	} else {
		residue->bytes_of = FLEXMEM_CLEAN;
		list_del_init(&residue->link);
	}
	return rc;
}
