/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The blocks that a stream keeps (kept.c), for all who take one of them. */
#ifndef FMLIB_KEPT_H
#define FMLIB_KEPT_H

#include "cache.h"

#include <string.h>

static inline uint32_t fmlib_kept_count(const struct fmlib_kept *kept)
{
	return atomic_load_explicit(&kept->count, memory_order_relaxed);
}

static inline void fmlib_kept_set(struct fmlib_kept *kept, uint32_t count)
{
	atomic_store_explicit(&kept->count, count, memory_order_relaxed);
}

static inline struct fmlib_found
fmlib_kept_at(const struct fmlib_kept *kept, uint32_t i)
{
	return (struct fmlib_found){
		.segment = kept->places[i].segment,
		.offset = kept->places[i].offset,
		.size = kept->sizes[i],
		.owner = kept->owner,
	};
}

/* Forgets @count blocks from @first on. */
static inline void
fmlib_kept_drop(struct fmlib_kept *kept, uint32_t first, uint32_t count)
{
	uint32_t rest = fmlib_kept_count(kept) - first - count;

	memmove(&kept->sizes[first], &kept->sizes[first + count],
		rest * sizeof(kept->sizes[0]));
	memmove(&kept->places[first], &kept->places[first + count],
		rest * sizeof(kept->places[0]));
	fmlib_kept_set(kept, first + rest);
}

/*
 * Takes a kept block of just this size, for the stream of the locked lane.
 * Returns false if there is none.
 */
static inline bool fmlib_kept_take(struct fmlib_lane *lane, uint64_t size,
				   struct fmlib_found *found)
{
	struct fmlib_kept *kept = &lane->kept;
	uint32_t i = fmlib_kept_count(kept);

	while (i && kept->sizes[i - 1] != size)
		i--;
	/* A segment that was lost in a reset serves no request. */
	if (!i || fmlib_segment_leaves(kept->places[i - 1].segment))
		return false;
	*found = fmlib_kept_at(kept, i - 1);
	fmlib_kept_drop(kept, i - 1, 1);
	kept->hits++;
	return true;
}

#endif
