// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Finds segments without a walk over all of them: those that the cache could
 * return to the provider, by their excess, and all, by their address.
 *
 * A fixed segment can be returned while it is free as a whole. Each lane has a
 * set of such segments. The end of a growing segment becomes free and used far
 * more often, so these segments are in a list, which is searched.
 */
#include "cache.h"

static struct fmlib_segment *spare_of(struct fmlib_node *node)
{
	return node ? FMLIB_OF_NODE(node, struct fmlib_segment, spare) : NULL;
}

/* By size; of equal segments the younger one comes first. */
static bool is_smaller(uint64_t size, uint64_t serial,
		       const struct fmlib_excess *than)
{
	return size != than->size ? size < than->size : serial > than->serial;
}

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

	return is_smaller(one->size, one->serial, &place);
}

void fmlib_spare_add(struct flexmem_cache *cache, struct fmlib_segment *segment)
{
	if (segment->growing || segment->is_spare ||
	    !fmlib_segment_excess(cache, segment))
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

/* Whether a fixed segment is the one at a place, or is larger. */
static bool is_at_or_above(const struct fmlib_node *node, const void *place)
{
	const struct fmlib_segment *segment =
		FMLIB_OF_NODE(node, const struct fmlib_segment, spare);

	return !is_smaller(segment->size, segment->serial, place);
}

static bool is_above(const struct fmlib_node *node, const void *place)
{
	const struct fmlib_segment *segment =
		FMLIB_OF_NODE(node, const struct fmlib_segment, spare);
	const struct fmlib_excess *than = place;

	return is_at_or_above(node, place) &&
	       (segment->size != than->size || segment->serial != than->serial);
}

/* Keeps the better one of two places. */
static void choose(struct fmlib_excess *best, bool wants_smaller,
		   struct fmlib_segment *segment, uint64_t size)
{
	if (!segment || !size ||
	    (best->segment &&
	     is_smaller(size, segment->serial, best) != wants_smaller))
		return;
	*best = (struct fmlib_excess){
		.size = size,
		.serial = segment->serial,
		.segment = segment,
	};
}

bool fmlib_spare_above(const struct flexmem_cache *cache,
		       struct fmlib_excess *place)
{
	struct fmlib_excess best = { 0 };
	struct fmlib_segment *segment;
	struct fmlib_lane *lane;
	uint64_t size;
	size_t i;

	for (i = 0; i < FMLIB_LANES; i++) {
		lane = fmlib_lane_at(cache, i);
		segment = lane ? spare_of(fmlib_tree_from(lane->spares,
							  is_above, place)) :
				 NULL;
		choose(&best, true, segment, segment ? segment->size : 0);
	}
	for (segment = cache->first_growing; segment;
	     segment = segment->next_grown) {
		size = fmlib_segment_excess(cache, segment);
		if (!is_smaller(size, segment->serial, place) &&
		    (size != place->size || segment->serial != place->serial))
			choose(&best, true, segment, size);
	}
	*place = best;
	return best.segment;
}

bool fmlib_spare_below(const struct flexmem_cache *cache,
		       struct fmlib_excess *place)
{
	struct fmlib_excess best = { 0 };
	struct fmlib_segment *segment;
	struct fmlib_lane *lane;
	uint64_t size;
	size_t i;

	for (i = 0; i < FMLIB_LANES; i++) {
		lane = fmlib_lane_at(cache, i);
		segment = lane ? spare_of(fmlib_tree_below(lane->spares,
							   is_at_or_above,
							   place)) : NULL;
		choose(&best, false, segment, segment ? segment->size : 0);
	}
	for (segment = cache->first_growing; segment;
	     segment = segment->next_grown) {
		size = fmlib_segment_excess(cache, segment);
		if (is_smaller(size, segment->serial, place))
			choose(&best, false, segment, size);
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
	uint64_t more;
	uint64_t tail;

	if (!fmlib_size_grows(cache, want))
		return least;
	for (; segment; segment = segment->next_grown) {
		tail = fmlib_segment_tail(segment);
		if (segment->arena->pool != want->pool || segment->lost ||
		    (!segment->shared &&
		     segment->arena->stream != want->stream) ||
		    tail >= want->size)
			continue;
		more = fmlib_round_up(want->size - tail,
				      cache->profile.growing_step);
		least = more < least ? more : least;
	}
	return least;
}

/* ---- by address ---- */

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
