// SPDX-License-Identifier: GPL-2.0
/* The reference model: the blocks of its regions. See model.h. */

#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "model.h"

#define UNIT 128ULL

static u64 round_to(u64 offset, u64 alignment)
{
	u64 rest = offset % alignment;

	return rest ? offset + alignment - rest : offset;
}

/* Whether free block @a is tried before @b. Blocks are numbered by offset. */
static bool comes_before(const struct model *model,
			 const struct model_region *region, unsigned int a,
			 unsigned int b)
{
	if (model->fit == FLEXMEM_FIT_BEST &&
	    region->block[a].size != region->block[b].size)
		return region->block[a].size < region->block[b].size;
	return a < b;
}

/*
 * Goes through the free blocks in the order in which the fit tries them, and
 * returns the first with at least @size bytes, or -1. Begins behind block
 * @after, if that is not -1.
 */
static int first_hole(const struct model *model,
		      const struct model_region *region, u64 size, int after)
{
	int best = -1;
	unsigned int i;

	for (i = 0; i < region->nr; i++) {
		if (region->block[i].used || region->block[i].size < size)
			continue;
		if (after >= 0 && !comes_before(model, region, after, i))
			continue;
		if (best < 0 || comes_before(model, region, i, best))
			best = i;
	}
	return best;
}

int model_find_hole(const struct model *model,
		    const struct model_region *region, u64 size, u64 alignment)
{
	unsigned int tries;
	int i;

	if (size > region->total)
		return -1;
	i = first_hole(model, region, size + alignment - UNIT, -1);
	if (i >= 0 || alignment == UNIT)
		return i;

	for (tries = 0; tries < model->tries; tries++) {
		const struct model_block *block;

		i = first_hole(model, region, size, i);
		if (i < 0)
			return -1;
		block = &region->block[i];
		if (round_to(block->start, alignment) + size <=
		    block->start + block->size)
			return i;
	}
	return -1;
}

/* Makes a part of block @from, which is dirty where @from is dirty. */
static struct model_block piece_of(const struct model_block *from, u64 start,
				   u64 size)
{
	struct model_block piece = { .start = start, .size = size };

	piece.dirty_start = max(start, from->dirty_start);
	piece.dirty_end = min(start + size, from->dirty_end);
	if (piece.dirty_start < piece.dirty_end)
		piece.bytes_of = from->bytes_of;
	return piece;
}

static void add_dirt(struct model_block *block, const struct model_block *other)
{
	if (!other->bytes_of)
		return;
	if (!block->bytes_of) {
		block->bytes_of = other->bytes_of;
		block->dirty_start = other->dirty_start;
		block->dirty_end = other->dirty_end;
		return;
	}
	block->dirty_start = min(block->dirty_start, other->dirty_start);
	block->dirty_end = max(block->dirty_end, other->dirty_end);
	if (block->bytes_of != other->bytes_of)
		block->bytes_of = MODEL_MIXED;
}

/* Splits a block in two; the first part has @size bytes. */
static void split_block(struct model_region *region, unsigned int i, u64 size)
{
	struct model_block *block = &region->block[i], whole = *block;

	KUNIT_ASSERT_LT_MSG(kunit_get_current_test(), region->nr,
			    MODEL_MAX_BLOCKS, "model too small");
	memmove(block + 1, block, (region->nr - i) * sizeof(*block));
	region->nr++;
	block[0] = piece_of(&whole, whole.start, size);
	block[0].used = whole.used;
	block[0].owner = whole.owner;
	block[1] = piece_of(&whole, whole.start + size, whole.size - size);
}

static void join_blocks(struct model_region *region, unsigned int i)
{
	struct model_block *block = &region->block[i];

	block->size += block[1].size;
	add_dirt(block, &block[1]);
	region->nr--;
	memmove(block + 1, block + 2, (region->nr - i - 1) * sizeof(*block));
}

/* The index of the largest free block, the lowest of equal ones, or -1. */
static int largest_block(const struct model_region *region)
{
	int best = -1;
	unsigned int i;

	for (i = 0; i < region->nr; i++) {
		if (region->block[i].used)
			continue;
		if (best < 0 || region->block[i].size > region->block[best].size)
			best = i;
	}
	return best;
}

static bool fits_at(const struct model_block *block, u64 start, u64 size)
{
	return start + size <= block->start + block->size;
}

/*
 * Finds room in the middle of the largest free block, or at the start of that
 * block if the middle has no room.
 */
static int find_growable(const struct model_region *region, u64 size,
			 u64 alignment, u64 *start)
{
	const struct model_block *block;
	int i = largest_block(region);
	u64 step = alignment;

	if (i < 0)
		return -1;
	block = &region->block[i];
	if (block->size >= 16 * SZ_1M && step < 2 * SZ_1M)
		step = 2 * SZ_1M;
	*start = round_to(block->start + block->size / 2, step);
	if (region->nr > 1 && fits_at(block, *start, size))
		return i;
	*start = round_to(block->start, alignment);
	return fits_at(block, *start, size) ? i : -1;
}

/* Allocates in a region. Returns false if the request does not fit. */
bool model_take(const struct model *model, struct model_region *region,
		const struct model_request *request, u64 *start)
{
	u64 size = request->size, alignment = request->alignment;
	int i = model_find_hole(model, region, size, alignment), other = -1;

	if (i < 0)
		return false;
	if (request->growable)
		other = find_growable(region, size, alignment, start);
	if (other >= 0)
		i = other;
	else
		*start = round_to(region->block[i].start, alignment);
	if (*start > region->block[i].start) {
		split_block(region, i, *start - region->block[i].start);
		i++;
	}
	if (size < region->block[i].size)
		split_block(region, i, size);
	region->block[i].used = true;
	region->free -= size;
	region->changes++;
	return true;
}

static void give(struct model_region *region, u64 start)
{
	unsigned int i;

	for (i = 0; i < region->nr; i++) {
		if (region->block[i].start != start)
			continue;
		region->block[i].used = false;
		region->block[i].orphaned = false;
		region->block[i].quarantined = 0;
		region->free += region->block[i].size;
		region->changes++;
		break;
	}
	for (i = 0; i + 1 < region->nr;) {
		if (region->block[i].used || region->block[i + 1].used) {
			i++;
			continue;
		}
		join_blocks(region, i);
	}
}

u64 model_largest_hole(const struct model_region *region)
{
	int i = largest_block(region);

	return i < 0 ? 0 : region->block[i].size;
}

static struct model_block *block_at(struct model *model, unsigned int slot,
				    u64 offset)
{
	struct model_region *region = &model->region[slot];
	unsigned int i;

	for (i = 0; region->block[i].start != offset; i++)
		;
	return &region->block[i];
}

/**
 * model_room - bytes by which an allocation could be extended
 * @model: model
 * @slot: slot of the allocation's region
 * @offset: offset of the allocation in the region
 *
 * Return: the number of bytes.
 */
u64 model_room(struct model *model, unsigned int slot, u64 offset)
{
	struct model_region *region = &model->region[slot];
	struct model_block *block = block_at(model, slot, offset);

	if (block == &region->block[region->nr - 1] || block[1].used)
		return 0;
	return block[1].size;
}

/**
 * model_extend - allocate bytes behind an allocation
 * @model: model
 * @slot: slot of the allocation's region
 * @offset: offset of the allocation in the region
 * @size: bytes to add, at most model_room()
 *
 * Return: offset of the added bytes.
 */
u64 model_extend(struct model *model, unsigned int slot, u64 offset, u64 size)
{
	struct model_region *region = &model->region[slot];
	struct model_block *block = block_at(model, slot, offset), *more;

	more = block + 1;
	if (size < more->size)
		split_block(region, more - region->block, size);
	more->used = true;
	more->owner = block->owner;
	region->free -= size;
	region->changes++;
	return more->start;
}

/**
 * model_join - merge an allocation with the block behind the allocation
 * @model: model
 * @slot: slot of the allocation's region
 * @offset: offset of the allocation in the region
 */
void model_join(struct model *model, unsigned int slot, u64 offset)
{
	struct model_region *region = &model->region[slot];
	struct model_block *block = block_at(model, slot, offset);

	join_blocks(region, block - region->block);
	region->changes++;
}

/**
 * model_shrink - free the end of an allocation
 * @model: model
 * @slot: slot of the allocation's region
 * @offset: offset of the allocation in the region
 * @size: bytes that stay
 */
void model_shrink(struct model *model, unsigned int slot, u64 offset, u64 size)
{
	struct model_region *region = &model->region[slot];
	struct model_block *block = block_at(model, slot, offset);

	split_block(region, block - region->block, size);
	give(region, offset + size);
}

void model_set_owner(struct model *model, unsigned int slot, u64 offset,
		     unsigned int owner)
{
	block_at(model, slot, offset)->owner = owner;
}

/**
 * model_dirty - the part of a block to scrub before an owner gets the block
 * @model: model
 * @slot: slot of the block's region
 * @offset: offset of the block in the region
 * @owner: the owner that gets the block
 * @zeroed: the owner's own bytes must be scrubbed, too
 *
 * Return: number of bytes to scrub, which are contiguous.
 */
u64 model_dirty(struct model *model, unsigned int slot, u64 offset, u64 owner,
		bool zeroed)
{
	const struct model_block *block = block_at(model, slot, offset);

	if (!block->bytes_of || (block->bytes_of == owner && !zeroed))
		return 0;
	return block->dirty_end - block->dirty_start;
}

/**
 * model_mark_dirty - note that an owner may have written all bytes of a block
 * @model: model
 * @slot: slot of the block's region
 * @offset: offset of the block in the region
 * @owner: the owner; 0: the block has been scrubbed
 */
void model_mark_dirty(struct model *model, unsigned int slot, u64 offset,
		      u64 owner)
{
	struct model_block *block = block_at(model, slot, offset);

	block->bytes_of = owner;
	block->dirty_start = block->start;
	block->dirty_end = block->start + block->size;
}

void model_free(struct model *model, unsigned int slot, u64 offset)
{
	give(&model->region[slot], offset);
}

void model_orphan(struct model *model, unsigned int slot, u64 offset)
{
	block_at(model, slot, offset)->orphaned = true;
}

void model_quarantine(struct model *model, unsigned int slot, u64 offset)
{
	block_at(model, slot, offset)->quarantined = ++model->stamp;
}

static void add_block(const struct model_block *block, bool *in,
		      struct model_sums *sums)
{
	sums->total += block->size;
	if (!block->used) {
		sums->free += block->size;
	} else if (block->quarantined) {
		sums->quarantined += block->size;
	} else {
		if (block->orphaned) {
			sums->orphaned += block->size;
			sums->orphaned_of[block->owner] += block->size;
		} else {
			sums->owned += block->size;
			sums->bytes[block->owner] += block->size;
		}
		if (!in[block->owner])
			sums->slots[block->owner]++;
		in[block->owner] = true;
	}
}

/**
 * model_sum - the sums of a snapshot
 * @model: model
 * @sums: receives the sums
 */
void model_sum(const struct model *model, struct model_sums *sums)
{
	unsigned int slot, i;

	*sums = (struct model_sums) {};
	for (slot = 0; slot < model->slots; slot++) {
		const struct model_region *region = &model->region[slot];
		bool in[MODEL_OWNERS] = {};

		for (i = 0; region->there && i < region->nr; i++)
			add_block(&region->block[i], in, sums);
	}
}

/**
 * model_end_quarantine - free all quarantined blocks of a region, oldest first
 * @model: model
 * @slot: slot of the region, whose blocks were scrubbed
 */
void model_end_quarantine(struct model *model, unsigned int slot)
{
	struct model_region *region = &model->region[slot];
	unsigned int i;
	int first;

	do {
		first = -1;
		for (i = 0; i < region->nr; i++)
			if (region->block[i].quarantined &&
			    (first < 0 || region->block[i].quarantined <
					  region->block[first].quarantined))
				first = i;
		if (first < 0)
			break;
		region->block[first].bytes_of = 0;
		give(region, region->block[first].start);
	} while (first >= 0);
}

/**
 * model_region_entry - a region as a snapshot must show it
 * @model: model
 * @slot: any slot; @entry->total becomes 0 if it has no region
 * @entry: receives the entry, with the region_id that a VF would show
 */
void model_region_entry(const struct model *model, unsigned int slot,
			struct flexmem_region_entry *entry)
{
	const struct model_region *region = &model->region[slot];
	unsigned int i;

	*entry = (struct flexmem_region_entry) {};
	if (!region->there)
		return;
	entry->region_id = slot;
	entry->slot = slot;
	if (slot >= model->programs.first)
		entry->flags = FLEXMEM_REGION_PROGRAM;
	entry->domain = region->domain;
	entry->total = region->total;
	entry->free = region->free;
	entry->largest_free = model_largest_hole(region);
	entry->sequence = region->changes;
	for (i = 0; i < region->nr; i++) {
		if (!region->block[i].used)
			entry->nr_free++;
		else if (!region->block[i].quarantined)
			entry->nr_allocated++;
	}
}
