// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Each lane has the set of its fixed segments that the cache could return to
 * the provider: they are free as a whole, and may leave their pool.
 */
#include "cache.h"

static bool smaller(const struct fmlib_node *a, const struct fmlib_node *b)
{
	const struct fmlib_segment *one =
		FMLIB_OF_NODE(a, const struct fmlib_segment, spare);
	const struct fmlib_segment *other =
		FMLIB_OF_NODE(b, const struct fmlib_segment, spare);
	const struct fmlib_excess place = {
		.size = other->size,
		.serial = other->serial,
	};

	return fmlib_excess_is_smaller(one->size, one->serial, &place);
}

void fmlib_spare_add(struct fmlib_segment *segment)
{
	const struct fmlib_piece *last = segment->last;

	if (segment->growing || segment->is_spare || !last->is_free ||
	    last->size < segment->size ||
	    (segment->arena->pool->id && !fmlib_segment_leaves(segment)))
		return;
	segment->is_spare = true;
	fmlib_tree_insert(&segment->arena->lane->spares, &segment->spare,
			  smaller, (uint32_t)fmlib_hash(segment->serial));
}

void fmlib_spare_remove(struct fmlib_segment *segment)
{
	if (!segment->is_spare)
		return;
	segment->is_spare = false;
	fmlib_tree_remove(&segment->arena->lane->spares, &segment->spare,
			  smaller);
}
