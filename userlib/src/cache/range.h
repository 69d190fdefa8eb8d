/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A range: the free parts (holes) of an interval. It is the data structure of a
 * growing segment, and knows no lock, no stream and no block. A request gets
 * the lowest hole that is large enough.
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
 * @shift: log2 of the unit.
 * @size: length in units.
 * @used: units in reserved parts.
 * @tail: units of the hole at the end.
 * @parts, @holes: numbers of reserved parts and of holes.
 * @height: levels of the tree.
 * @releases: number of releases so far.
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

/* Makes an empty range. @unit is a power of two. Returns 0 or -ENOMEM. */
int fmlib_range_start(struct fmlib_range *range, uint64_t unit);
void fmlib_range_end(struct fmlib_range *range);

/* The greatest length of a range with this unit. */
uint64_t fmlib_range_limit(uint64_t unit);

/*
 * Sets nodes aside for the next reservation or growth, and for all later
 * releases. Returns 0 or -ENOMEM. Without this call a reservation or growth
 * sets its nodes aside itself, and may fail.
 */
int fmlib_range_prepare(struct fmlib_range *range);

/*
 * Reserves the lowest hole that is large enough. Returns 0; -ENOSPC if there is
 * none; or -ENOMEM.
 */
int fmlib_range_reserve(struct fmlib_range *range, uint64_t size,
			uint64_t *offset);

/*
 * Finds the lowest hole of at least @size bytes at *@offset or behind it.
 * *@offset is 0 or the end of a hole. Returns false if there is none; otherwise
 * *@offset and *@hole receive the offset and the size of the hole.
 */
bool fmlib_range_fit(const struct fmlib_range *range, uint64_t size,
		     uint64_t *offset, uint64_t *hole);

/*
 * Frees a whole reserved part. Returns 0; or -EINVAL if a byte of it is free
 * already, or beyond the end.
 */
int fmlib_range_release(struct fmlib_range *range, uint64_t offset,
			uint64_t size);

/*
 * Sets nodes aside for @count calls of fmlib_range_claim(), if nothing else
 * changes the range in between.
 */
int fmlib_range_prepare_claims(struct fmlib_range *range, size_t count);

/*
 * Reserves @size bytes at @offset, with nodes that fmlib_range_prepare_claims()
 * has set aside. Returns 0; or -EBUSY if a byte is not free, or is beyond the
 * end.
 */
int fmlib_range_claim(struct fmlib_range *range, uint64_t offset, uint64_t size);

/*
 * Adds bytes at the end. Returns 0; -EFBIG if the range would become too long;
 * or -ENOMEM.
 */
int fmlib_range_grow(struct fmlib_range *range, uint64_t more);

/* Removes bytes at the end. Returns 0; or -EINVAL if they are not free. */
int fmlib_range_shrink(struct fmlib_range *range, uint64_t less);

/*
 * fmlib_range_largest() returns the size of the largest hole.
 * fmlib_range_tail() returns the size of the hole at the end. Both return 0 if
 * there is none.
 */
uint64_t fmlib_range_largest(const struct fmlib_range *range);

static inline uint64_t fmlib_range_tail(const struct fmlib_range *range)
{
	return (uint64_t)range->tail << range->shift;
}

/* The bytes of the reserved parts. */
static inline uint64_t fmlib_range_used(const struct fmlib_range *range)
{
	return (uint64_t)range->used << range->shift;
}

/*
 * Finds the first hole at *@offset or behind it. Returns false if there is
 * none. To iterate over all holes, begin at 0 and add the size to the offset
 * after each.
 */
bool fmlib_range_hole(const struct fmlib_range *range, uint64_t *offset,
		      uint64_t *size);

#endif /* FMLIB_RANGE_H */
