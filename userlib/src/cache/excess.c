// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Finds the segments that the cache could return to the provider, by their
 * excess, without a walk over all of them.
 *
 * A fixed segment is found in the set of its lane, see spares.c. The end of a
 * growing segment becomes free and used far more often, so these segments are
 * in a list, which is searched.
 */
#include "cache.h"

static struct fmlib_segment *spare_of(struct fmlib_node *node)
{
	return node ? FMLIB_OF_NODE(node, struct fmlib_segment, spare) : NULL;
}

/* Whether a fixed segment is the one at a place, or is larger. */
static bool is_at_or_above(const struct fmlib_node *node, const void *place)
{
	const struct fmlib_segment *segment =
		FMLIB_OF_NODE(node, const struct fmlib_segment, spare);

	return !fmlib_excess_is_smaller(segment->size, segment->serial, place);
}

static bool is_above(const struct fmlib_node *node, const void *place)
{
	const struct fmlib_segment *segment =
		FMLIB_OF_NODE(node, const struct fmlib_segment, spare);
	const struct fmlib_excess *than = place;

	return is_at_or_above(node, place) &&
	       (segment->size != than->size || segment->serial != than->serial);
}

/* Whether a segment with this excess is larger than a place, or smaller. */
static bool is_beyond(const struct fmlib_excess *place, bool larger,
		      uint64_t size, uint64_t serial)
{
	return (size != place->size || serial != place->serial) &&
	       fmlib_excess_is_smaller(size, serial, place) != larger;
}

/* Keeps the one of two places that is nearer to where the search began. */
static void choose(struct fmlib_excess *best, bool larger,
		   struct fmlib_segment *segment, uint64_t size)
{
	if (!size ||
	    (best->segment && is_beyond(best, larger, size, segment->serial)))
		return;
	*best = (struct fmlib_excess){
		.size = size,
		.serial = segment->serial,
		.segment = segment,
	};
}

bool fmlib_spare_next(const struct flexmem_cache *cache, bool larger,
		      struct fmlib_excess *place)
{
	struct fmlib_excess best = { 0 };
	struct fmlib_segment *segment;
	struct fmlib_lane *lane;
	uint64_t size;
	size_t i;

	for (i = 0; i < FMLIB_LANES; i++) {
		lane = fmlib_lane_at(cache, i);
		if (!lane)
			continue;
		segment = spare_of(larger ? fmlib_tree_from(lane->spares,
							    is_above, place) :
					    fmlib_tree_below(lane->spares,
							     is_at_or_above,
							     place));
		if (segment)
			choose(&best, larger, segment, segment->size);
	}
	for (segment = cache->first_growing; segment;
	     segment = segment->next_grown) {
		size = fmlib_segment_excess(cache, segment);
		if (is_beyond(place, larger, size, segment->serial))
			choose(&best, larger, segment, size);
	}
	*place = best;
	return best.segment;
}

/* Puts all segments of a tree in front of a list of victims. */
static struct fmlib_segment *add_all(struct fmlib_node *root,
				     struct fmlib_segment *list, size_t *count)
{
	struct fmlib_segment *segment = spare_of(root);

	if (!segment)
		return list;
	list = add_all(root->left, list, count);
	segment->next_victim = list;
	++*count;
	return add_all(root->right, segment, count);
}

struct fmlib_segment *fmlib_spares(const struct flexmem_cache *cache,
				   size_t *count)
{
	struct fmlib_segment *segment = cache->first_growing;
	struct fmlib_segment *list = NULL;
	struct fmlib_lane *lane;
	size_t i;

	*count = 0;
	for (i = 0; i < FMLIB_LANES; i++) {
		lane = fmlib_lane_at(cache, i);
		if (lane)
			list = add_all(lane->spares, list, count);
	}
	for (; segment; segment = segment->next_grown) {
		if (!fmlib_segment_excess(cache, segment))
			continue;
		segment->next_victim = list;
		list = segment;
		++*count;
	}
	return list;
}

uint64_t fmlib_segment_least(const struct flexmem_cache *cache,
			     const struct fmlib_want *want)
{
	const struct fmlib_segment *segment = cache->first_growing;
	uint64_t least = want->failure->segment;
	uint64_t lacks;
	uint64_t more;

	if (!fmlib_size_grows(cache, want))
		return least;
	for (; segment; segment = segment->next_grown) {
		lacks = fmlib_tail_lacks(segment, fmlib_segment_tail(segment),
					 want);
		if (segment->arena->pool != want->pool || segment->lost ||
		    (!segment->shared &&
		     segment->arena->stream != want->stream) ||
		    !lacks)
			continue;
		more = fmlib_round_up(lacks, cache->profile.growing_step);
		least = more < least ? more : least;
	}
	return least;
}
