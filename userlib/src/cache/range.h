/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The free parts of an interval: the engine of a growing segment. It knows no
 * lock, no stream and no block. A request gets the lowest hole that it fits
 * into.
 *
 * Offsets and sizes are in bytes, and multiples of the unit. A function that
 * fails changes nothing.
 */
#ifndef FMLIB_RANGE_H
#define FMLIB_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fmlib_range_node;

/*
 * @shift: of the unit. @size: in units, as are @used, in reserved parts, and
 * @tail, of the hole at the end. @parts and @holes: how many there are of them.
 * @height: levels of the tree. @releases: how often something was given back.
 */
struct fmlib_range {
	struct fmlib_range_node *root;
	unsigned int height;
	unsigned int shift;
	uint32_t size;
	uint32_t used;
	uint32_t tail;
	uint32_t parts;
	uint32_t holes;
	uint32_t spare_count;
	struct fmlib_range_node *spare;
	uint64_t releases;
};

/* 0 or -ENOMEM. Empty at first, of @unit, a power of two. */
int fmlib_range_start(struct fmlib_range *range, uint64_t unit);
void fmlib_range_end(struct fmlib_range *range);

/* How long a range of that unit can become. */
uint64_t fmlib_range_limit(uint64_t unit);

/*
 * Sets nodes aside for the next reservation or growth, and for all later
 * releases: 0 or -ENOMEM. Without this call reservation and growth do it, and
 * may fail.
 */
int fmlib_range_prepare(struct fmlib_range *range);

/* 0; -ENOSPC: no hole is large enough; -ENOMEM. */
int fmlib_range_reserve(struct fmlib_range *range, uint64_t size,
			uint64_t *offset);

/*
 * Frees a reserved part as a whole. 0; -EINVAL: some of it is free already, or
 * lies beyond the end.
 */
int fmlib_range_release(struct fmlib_range *range, uint64_t offset,
			uint64_t size);

/*
 * The same for so many calls of fmlib_range_claim(), in a row and before any other
 * change.
 */
int fmlib_range_prepare_claims(struct fmlib_range *range, size_t count);

/*
 * Reserves the bytes at @offset; nodes have been set aside. 0; -EBUSY: they are not
 * free, or lie beyond the end.
 */
int fmlib_range_claim(struct fmlib_range *range, uint64_t offset, uint64_t size);

/* Adds bytes at the end. 0; -EFBIG: it would become too long; -ENOMEM. */
int fmlib_range_grow(struct fmlib_range *range, uint64_t more);

/* Removes bytes at the end. 0; -EINVAL: they are not free. */
int fmlib_range_shrink(struct fmlib_range *range, uint64_t less);

/*
 * The size of the largest hole, and of the hole at the end; 0: there is none.
 */
uint64_t fmlib_range_largest(const struct fmlib_range *range);

static inline uint64_t fmlib_range_tail(const struct fmlib_range *range)
{
	return (uint64_t)range->tail << range->shift;
}


/*
 * The first hole that begins at *@offset or after; false: there is none. To
 * iterate over all holes, begin at 0 and add the size to the offset after each.
 */
bool fmlib_range_hole(const struct fmlib_range *range, uint64_t *offset,
		      uint64_t *size);

#endif /* FMLIB_RANGE_H */
