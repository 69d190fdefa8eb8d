// SPDX-License-Identifier: GPL-2.0
/*
 * Copies between two allocations, or within one, by the device. Without this
 * the CPU would read and write the bytes across the bus.
 *
 * A copy goes in parts, so that data_lock is never held for long, and a killed
 * caller can leave. All allocations are on one function, so there is one
 * data_lock.
 *
 * The caller has looked both allocations up and hands its references over.
 * While they are held, no other task resizes, frees or scrubs these bytes.
 */

#include <linux/align.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "allocation.h"
#include "copy.h"
#include "table.h"

/**
 * struct place - where the device finds a byte
 * @region: region; stays as long as its allocation does
 * @offset: offset in the region
 * @room: bytes from there to the end of the chunk
 */
struct place {
	struct flexmem_region *region;
	u64 offset;
	u64 room;
};

static struct place place_of(struct flexmem_allocation *allocation, u64 offset)
{
	struct flexmem_chunk *chunk;

	chunk = flexmem_allocation_chunk(allocation, &offset);
	return (struct place) {
		.region = chunk->region,
		.offset = chunk->block->start + offset,
		.room = chunk->size - offset,
	};
}

static int lost_error(const struct place *to, const struct place *from)
{
	return flexmem_region_error(to->region) ?:
	       flexmem_region_error(from->region);
}

static bool has_range(const struct flexmem_allocation *allocation, u64 offset,
		      u64 length)
{
	return length <= allocation->size &&
	       offset <= allocation->size - length;
}

static bool are_valid(const struct flexmem_allocation *to,
		      const struct flexmem_allocation *from,
		      const struct flexmem_copy_range *range)
{
	u64 length = range->length;

	if (!length || !IS_ALIGNED(range->to_offset | range->from_offset |
				   length, FLEXMEM_ALIGN))
		return false;
	if (!has_range(to, range->to_offset, length) ||
	    !has_range(from, range->from_offset, length))
		return false;
	/* No wrap: both ranges are within the allocation. */
	return to != from || range->to_offset + length <= range->from_offset ||
	       range->from_offset + length <= range->to_offset;
}

static int move_piece(const struct place *to, const struct place *from,
		      u64 size)
{
	struct flexmem_table *table = to->region->table;
	int rc;

	rc = flexmem_function_lock(&table->function, &table->data_lock);
	if (rc)
		return rc;
	rc = lost_error(to, from);
	if (!rc)
		rc = flexmem_function_copy(&table->function, &to->region->mem,
					   to->offset, &from->region->mem,
					   from->offset, size);
	mutex_unlock(&table->data_lock);
	return rc;
}

static int move_pieces(struct flexmem_allocation *to_allocation,
		       struct flexmem_allocation *from_allocation,
		       struct flexmem_copy_range *range)
{
	struct place to, from;
	u64 size;
	int rc;

	while (range->out_done < range->length) {
		to = place_of(to_allocation,
			      range->to_offset + range->out_done);
		from = place_of(from_allocation,
				range->from_offset + range->out_done);
		size = min3(range->length - range->out_done, to.room,
			    from.room);
		size = min(size, FLEXMEM_COPY_DEVICE_MAX);
		if (fatal_signal_pending(current))
			return -EINTR;
		rc = move_piece(&to, &from, size);
		if (rc)
			return rc;
		range->out_done += size;
		cond_resched();
	}
	return 0;
}

/**
 * flexmem_copy_between - copy from one allocation to another
 * @to: in use, of a device that can copy; put before this returns
 * @from: in use, of the same device, with a reference of its own; put before
 *	this returns; may be @to
 * @range: command; @range->out_done, which is 0, counts the bytes done, on
 *	failure too
 *
 * Context: may sleep.
 * Return: 0, -EIO if either is lost, -EINVAL if a range is not all in its
 * allocation, or not aligned, or the two overlap, -EINTR, -ENODEV, or an error
 * of the firmware.
 */
int flexmem_copy_between(struct flexmem_allocation *to,
			 struct flexmem_allocation *from,
			 struct flexmem_copy_range *range)
{
	int rc;

	rc = flexmem_allocation_error(to) ?: flexmem_allocation_error(from);
	if (!rc && !are_valid(to, from, range))
		rc = -EINVAL;
	rc = rc ?: move_pieces(to, from, range);
	flexmem_allocation_put(from);
	flexmem_allocation_put(to);
	return rc;
}
