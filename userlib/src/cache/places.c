// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* All segments, by their address. */
#include "cache.h"

static struct fmlib_segment *placed(struct fmlib_node *node)
{
	return node ? FMLIB_OF_NODE(node, struct fmlib_segment, place) : NULL;
}

static bool lower(const struct fmlib_segment *a, const struct fmlib_segment *b)
{
	if (a->address.region_id != b->address.region_id)
		return a->address.region_id < b->address.region_id;
	return a->address.offset < b->address.offset;
}

static bool is_lower(const struct fmlib_node *a, const struct fmlib_node *b)
{
	return lower(FMLIB_OF_NODE(a, const struct fmlib_segment, place),
		     FMLIB_OF_NODE(b, const struct fmlib_segment, place));
}

static bool is_not_lower(const struct fmlib_node *node, const void *segment)
{
	return !lower(FMLIB_OF_NODE(node, const struct fmlib_segment, place),
		      segment);
}

static bool is_higher(const struct fmlib_node *node, const void *segment)
{
	return lower(segment,
		     FMLIB_OF_NODE(node, const struct fmlib_segment, place));
}

void fmlib_place_add(struct flexmem_cache *cache, struct fmlib_segment *segment)
{
	fmlib_tree_insert(&cache->places, &segment->place, is_lower,
			  (uint32_t)fmlib_hash(segment->serial));
}

void fmlib_place_remove(struct flexmem_cache *cache,
			struct fmlib_segment *segment)
{
	fmlib_tree_remove(&cache->places, &segment->place, is_lower);
}

/* Whether @size bytes from the start of a segment overlap @other. */
static bool overlap(const struct fmlib_segment *segment, uint64_t size,
		    const struct fmlib_segment *other)
{
	const struct flexmem_virtual_address *a = &segment->address;
	const struct flexmem_virtual_address *b = &other->address;

	return other != segment && a->region_id == b->region_id &&
	       a->offset < b->offset + other->size &&
	       b->offset < a->offset + size;
}

bool fmlib_place_is_taken(const struct flexmem_cache *cache,
			  const struct fmlib_segment *segment, uint64_t size)
{
	const struct fmlib_segment *near[] = {
		placed(fmlib_tree_below(cache->places, is_not_lower, segment)),
		placed(fmlib_tree_from(cache->places, is_not_lower, segment)),
		placed(fmlib_tree_from(cache->places, is_higher, segment)),
	};
	size_t i;

	/*
	 * Segments do not overlap each other, so one that does not touch the
	 * nearest ones touches none.
	 */
	for (i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
		if (near[i] && overlap(segment, size, near[i]))
			return true;
	}
	return false;
}
