/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Which parts of an interval are free: the engine of a segment that grows. It
 * knows of no lock, no stream and no block. A request gets the lowest hole that
 * it fits into.
 *
 * Offsets and sizes are in bytes, and multiples of the unit. What is said to
 * fail has changed nothing then.
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
 * @height: levels of the tree.
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
};

/* 0 or -ENOMEM. Empty at first, of @unit, a power of two. */
int fmlib_range_start(struct fmlib_range *range, uint64_t unit);
void fmlib_range_end(struct fmlib_range *range);

/* How long a range of that unit can become. */
uint64_t fmlib_range_limit(uint64_t unit);

/*
 * Sets aside what the next reservation, or the next growth, and all that is
 * given back afterwards may need: 0 or -ENOMEM. Both do it by themselves
 * otherwise, and cannot fail of it if it was done before.
 */
int fmlib_range_prepare(struct fmlib_range *range);

/* 0; -ENOSPC: no hole is large enough; -ENOMEM. */
int fmlib_range_reserve(struct fmlib_range *range, uint64_t size,
			uint64_t *offset);

/*
 * Gives back what was reserved, as it was reserved. 0; -EINVAL: some of it is
 * free already, or lies beyond the end.
 */
int fmlib_range_release(struct fmlib_range *range, uint64_t offset,
			uint64_t size);

/* More at the end. 0; -EFBIG: it cannot become so long; -ENOMEM. */
int fmlib_range_grow(struct fmlib_range *range, uint64_t more);

/* Less at the end. 0; -EINVAL: that is not free. */
int fmlib_range_shrink(struct fmlib_range *range, uint64_t less);

/* The size of the largest hole, and of that at the end; 0: there is none. */
uint64_t fmlib_range_largest(const struct fmlib_range *range);

static inline uint64_t fmlib_range_tail(const struct fmlib_range *range)
{
	return (uint64_t)range->tail << range->shift;
}


/*
 * The first hole that begins at *@offset or after; false: there is none. To go
 * through all of them from 0 on, add the size to the offset after each.
 */
bool fmlib_range_hole(const struct fmlib_range *range, uint64_t *offset,
		      uint64_t *size);

#endif /* FMLIB_RANGE_H */
