// SPDX-License-Identifier: GPL-2.0
/*
 * The contents of the fake device's memory. Tests use it to prove which bytes
 * an owner could see.
 *
 * Ranges of equal bytes tile each piece, in order, and no two neighbours have
 * the same value. The value 0 means clean, and FAKE_FOREIGN marks bytes that
 * were there before the acquisition. All other values were written by tests.
 */

#include <linux/align.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "fake_device.h"

struct fake_range {
	struct list_head link;
	u64 start;
	u64 end;
	u8 value;
};

/**
 * fake_data_init - initialise the contents of an empty device
 * @fake: device
 */
void fake_data_init(struct fake_device *fake)
{
	unsigned int i;

	mutex_init(&fake->data_lock);
	spin_lock_init(&fake->piece_lock);
	for (i = 0; i < FAKE_MAX_PIECES; i++)
		INIT_LIST_HEAD(&fake->bytes[i]);
}

static void drop_range(struct fake_range *range)
{
	list_del(&range->link);
	kfree(range);
}

/* Cuts the ranges that overlap [start, end), to make room for a new range. */
static struct list_head *cut_out(struct list_head *ranges, u64 start, u64 end,
				 struct fake_range **tail)
{
	struct list_head *before = ranges;
	struct fake_range *range, *next;

	list_for_each_entry_safe(range, next, ranges, link) {
		u64 range_end = range->end;

		if (range->start >= end)
			break;
		if (range_end <= start) {
			before = &range->link;
			continue;
		}
		if (range->start < start) {
			before = &range->link;
			range->end = start;
			if (range_end > end) {
				**tail = (struct fake_range) {
					.start = end,
					.end = range_end,
					.value = range->value,
				};
				list_add(&(*tail)->link, before);
				*tail = NULL;
			}
		} else if (range_end > end) {
			range->start = end;
		} else {
			drop_range(range);
		}
	}
	return before;
}

static void merge_with_next(struct list_head *ranges, struct fake_range *range)
{
	struct fake_range *next = list_next_entry(range, link);

	if (&next->link == ranges || next->value != range->value)
		return;
	range->end = next->end;
	drop_range(next);
}

static void put_range(struct fake_device *fake, unsigned int piece, u64 start,
		      u64 end, u8 value)
{
	struct list_head *ranges = &fake->bytes[piece], *before;
	struct fake_range *range, *tail;

	range = kmalloc(sizeof(*range), GFP_KERNEL);
	tail = kmalloc(sizeof(*tail), GFP_KERNEL);
	if (range && tail) {
		*range = (struct fake_range) {
			.start = start,
			.end = end,
			.value = value,
		};
		mutex_lock(&fake->data_lock);
		before = cut_out(ranges, start, end, &tail);
		list_add(&range->link, before);
		merge_with_next(ranges, range);
		if (before != ranges)
			merge_with_next(ranges, list_prev_entry(range, link));
		mutex_unlock(&fake->data_lock);
	} else {
		fake_breach_if(fake, true, "the fake has no memory");
		kfree(range);
	}
	kfree(tail);
}

/**
 * fake_data_give - fill an acquired piece with bytes of other tenants
 * @fake: device
 * @piece: its number
 */
void fake_data_give(struct fake_device *fake, unsigned int piece)
{
	put_range(fake, piece, 0, fake->piece[piece].size, FAKE_FOREIGN);
}

/**
 * fake_data_drop - forget the bytes of a released piece
 * @fake: device
 * @piece: its number
 */
void fake_data_drop(struct fake_device *fake, unsigned int piece)
{
	struct fake_range *range, *next;

	mutex_lock(&fake->data_lock);
	list_for_each_entry_safe(range, next, &fake->bytes[piece], link)
		drop_range(range);
	mutex_unlock(&fake->data_lock);
}

/**
 * fake_data_drop_all - forget the bytes of every piece
 * @fake: device
 */
void fake_data_drop_all(struct fake_device *fake)
{
	unsigned int i;

	for (i = 0; i < FAKE_MAX_PIECES; i++)
		fake_data_drop(fake, i);
}

/* The index of the piece that contains the whole range, or -1. */
static int find_data(struct fake_device *fake, const struct flexmem_memory *mem,
		     u64 offset, u64 size)
{
	struct flexmem_memory *piece = fake_device_piece(fake, mem);

	fake_breach_if(fake, !piece, "data of memory that was not acquired");
	if (!piece)
		return -1;
	if (!size || size > mem->size || offset > mem->size - size) {
		fake_breach_if(fake, true, "data beyond what was acquired");
		return -1;
	}
	return piece - fake->piece;
}

/**
 * fake_data_fill - an owner writes its bytes
 * @fake: device
 * @mem: piece
 * @start: first byte
 * @size: bytes
 * @value: the new value
 */
void fake_data_fill(struct fake_device *fake, const struct flexmem_memory *mem,
		    u64 start, u64 size, u8 value)
{
	int piece = find_data(fake, mem, start, size);

	if (piece >= 0)
		put_range(fake, piece, start, start + size, value);
}

static bool is_either(struct fake_device *fake,
		      const struct flexmem_memory *mem, u64 start, u64 size,
		      u8 value, u8 other)
{
	int piece = find_data(fake, mem, start, size);
	struct fake_range *range;
	bool is = piece >= 0;

	if (!is)
		return false;
	mutex_lock(&fake->data_lock);
	list_for_each_entry(range, &fake->bytes[piece], link)
		if (range->start < start + size && range->end > start &&
		    range->value != value && range->value != other)
			is = false;
	mutex_unlock(&fake->data_lock);
	return is;
}

/**
 * fake_data_is - whether all bytes have a value
 * @fake: device
 * @mem: piece of memory
 * @start: first byte
 * @size: bytes
 * @value: expected value of each byte; 0: clean
 *
 * Return: true if each byte has @value.
 */
bool fake_data_is(struct fake_device *fake, const struct flexmem_memory *mem,
		  u64 start, u64 size, u8 value)
{
	return is_either(fake, mem, start, size, value, value);
}

/**
 * fake_data_is_own - whether each byte is clean or has an owner's value
 * @fake: device
 * @mem: piece of memory
 * @start: first byte
 * @size: bytes
 * @value: the owner's value
 *
 * Return: true if each byte is clean or has @value.
 */
bool fake_data_is_own(struct fake_device *fake,
		      const struct flexmem_memory *mem, u64 start, u64 size,
		      u8 value)
{
	return is_either(fake, mem, start, size, value, 0);
}

/**
 * fake_data_is_dirty - whether an owner has left bytes in a piece
 * @fake: device
 * @piece: its number
 *
 * Return: true if the piece has bytes that an owner wrote. FAKE_FOREIGN bytes
 * do not count, because they were there before the acquisition.
 */
bool fake_data_is_dirty(struct fake_device *fake, unsigned int piece)
{
	const struct fake_range *range;
	bool dirty = false;

	mutex_lock(&fake->data_lock);
	list_for_each_entry(range, &fake->bytes[piece], link)
		dirty |= range->value && range->value != FAKE_FOREIGN;
	mutex_unlock(&fake->data_lock);
	return dirty;
}

int fake_scrub(void *priv, const struct flexmem_memory *mem, u64 offset,
	       u64 size)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_SCRUB);
	int piece = find_data(fake, mem, offset, size);

	fake_breach_if(fake, !IS_ALIGNED(offset | size, 128),
		       "scrubbed range is not aligned");
	fake_breach_if(fake, size > FLEXMEM_SCRUB_MAX,
		       "scrubbed too much at a time");
	if (fake->during_scrub)
		fake->during_scrub(fake->during_scrub_arg);
	if (!rc && piece >= 0) {
		put_range(fake, piece, offset, offset + size, 0);
		fake->scrubbed += size;
	}
	return fake_device_end(fake, FAKE_SCRUB, size, rc);
}

int fake_read(void *priv, const struct flexmem_memory *mem, u64 offset,
	      u64 size, void *to)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_READ);
	int piece = find_data(fake, mem, offset, size);
	struct fake_range *range;

	fake_breach_if(fake, size > FLEXMEM_RW_MAX,
		       "copied too much at a time");
	if (rc || piece < 0)
		return fake_device_end(fake, FAKE_READ, size, rc);
	mutex_lock(&fake->data_lock);
	list_for_each_entry(range, &fake->bytes[piece], link) {
		u64 start = max(range->start, offset);
		u64 end = min(range->end, offset + size);

		if (start < end)
			memset(to + (start - offset), range->value,
			       end - start);
	}
	mutex_unlock(&fake->data_lock);
	return fake_device_end(fake, FAKE_READ, size, 0);
}

/* Tests fill a buffer with one value, so only the first byte is looked at. */
int fake_write(void *priv, const struct flexmem_memory *mem, u64 offset,
	       u64 size, const void *from)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_WRITE);
	int piece = find_data(fake, mem, offset, size);
	const u8 *bytes = from;

	fake_breach_if(fake, size > FLEXMEM_RW_MAX,
		       "copied too much at a time");
	if (!rc && piece >= 0)
		put_range(fake, piece, offset, offset + size, bytes[0]);
	return fake_device_end(fake, FAKE_WRITE, size, rc);
}

/*
 * Returns the value of a byte. *@size receives how many bytes from there on
 * have the same value.
 */
static u8 value_at(struct fake_device *fake, unsigned int piece, u64 offset,
		   u64 *size)
{
	struct fake_range *range;
	u8 value = 0;

	mutex_lock(&fake->data_lock);
	list_for_each_entry(range, &fake->bytes[piece], link) {
		if (range->start <= offset && offset < range->end) {
			value = range->value;
			*size = min(*size, range->end - offset);
		}
	}
	mutex_unlock(&fake->data_lock);
	return value;
}

int fake_copy(void *priv, const struct flexmem_memory *to, u64 to_offset,
	      const struct flexmem_memory *from, u64 from_offset, u64 size)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_COPY);
	int target = find_data(fake, to, to_offset, size);
	int source = find_data(fake, from, from_offset, size);
	bool overlap = target == source && to_offset < from_offset + size &&
		       from_offset < to_offset + size;
	u64 done = 0, part;
	u8 value;

	fake_breach_if(fake, !IS_ALIGNED(to_offset | from_offset | size, 128),
		       "copied range is not aligned");
	fake_breach_if(fake, size > FLEXMEM_COPY_MAX,
		       "copied too much at a time");
	fake_breach_if(fake, overlap, "copied onto itself");
	if (fake->during_copy)
		fake->during_copy(fake->during_copy_arg);
	if (rc || target < 0 || source < 0 || overlap)
		size = 0;
	for (; done < size; done += part) {
		part = size - done;
		value = value_at(fake, source, from_offset + done, &part);
		put_range(fake, target, to_offset + done,
			  to_offset + done + part, value);
	}
	return fake_device_end(fake, FAKE_COPY, size, rc);
}

int fake_fault(void *priv, const struct flexmem_memory *mem, u64 offset,
	       struct flexmem_frames *frames)
{
	struct fake_device *fake = priv;

	fake_breach_if(fake, fake->gone, "called after the table was removed");
	fake_breach_if(fake, !IS_ALIGNED(offset, SZ_4K), "page is not aligned");
	if (find_data(fake, mem, frames->offset, frames->size) < 0)
		return -EIO;
	frames->pfn = (mem->base + frames->offset) / SZ_4K;
	return 0;
}
