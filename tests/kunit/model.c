// SPDX-License-Identifier: GPL-2.0
/* The reference model: see model.h. Slow on purpose. */

#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "model.h"

#define UNIT 128ULL

/* Blocks. */

static u64 round_to(u64 offset, u64 alignment)
{
	u64 rest = offset % alignment;

	return rest ? offset + alignment - rest : offset;
}

/* Is block @a tried before block @b? Lower indexes have lower offsets. */
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
 * The free block of at least @size bytes that comes first in the order of the
 * fit; with @after, the first of those that come after that one.
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

/* D15. */
static int find_hole(const struct model *model,
		     const struct model_region *region, u64 size,
		     u64 alignment)
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

static void insert_block(struct kunit *test, struct model_region *region,
			 unsigned int at, u64 start, u64 size)
{
	KUNIT_ASSERT_LT_MSG(test, region->nr, MODEL_MAX_BLOCKS,
			    "model too small");
	memmove(&region->block[at + 1], &region->block[at],
		(region->nr - at) * sizeof(region->block[0]));
	region->block[at] = (struct model_block) {
		.start = start,
		.size = size,
	};
	region->nr++;
}

static void delete_block(struct model_region *region, unsigned int at)
{
	region->nr--;
	memmove(&region->block[at], &region->block[at + 1],
		(region->nr - at) * sizeof(region->block[0]));
}

/* Takes @size bytes of a region: where they start, or false. */
static bool take(const struct model *model, struct model_region *region,
		 u64 size, u64 alignment, u64 *start)
{
	struct kunit *test = kunit_get_current_test();
	int i = find_hole(model, region, size, alignment);
	u64 end;

	if (i < 0)
		return false;
	end = region->block[i].start + region->block[i].size;
	*start = round_to(region->block[i].start, alignment);
	if (*start > region->block[i].start) {
		insert_block(test, region, i, region->block[i].start,
			     *start - region->block[i].start);
		i++;
	}
	if (*start + size < end)
		insert_block(test, region, i + 1, *start + size,
			     end - (*start + size));
	region->block[i] = (struct model_block) {
		.start = *start,
		.size = size,
		.used = true,
	};
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
		region->free += region->block[i].size;
		region->changes++;
		break;
	}
	for (i = 0; i + 1 < region->nr;) {
		if (region->block[i].used || region->block[i + 1].used) {
			i++;
			continue;
		}
		region->block[i].size += region->block[i + 1].size;
		delete_block(region, i + 1);
	}
}

static u64 largest_hole(const struct model_region *region)
{
	u64 largest = 0;
	unsigned int i;

	for (i = 0; i < region->nr; i++)
		if (!region->block[i].used)
			largest = max(largest, region->block[i].size);
	return largest;
}

/* Regions. */

static struct model_pool *pool_of(struct model *model, bool program)
{
	return program && model->program_slots ? &model->programs :
						 &model->tensors;
}

static void lock(struct model_pool *pool, enum flexmem_reason reason)
{
	pool->locked = true;
	pool->reason = reason;
}

/* The lowest slot that can be filled, or -1. */
static int empty_slot(const struct model *model, const struct model_pool *pool)
{
	unsigned int slot;

	for (slot = pool->first; slot < pool->end; slot++)
		if (!model->region[slot].there && !model->region[slot].refused)
			return slot;
	return -1;
}

static void lock_if_full(struct model *model, struct model_pool *pool)
{
	unsigned int slot;

	if (empty_slot(model, pool) >= 0)
		return;
	if (model->mode == FLEXMEM_MODE_VF &&
	    model->hw_slots <= model->max_regions)
		lock(pool, FLEXMEM_REASON_SLOTS);
	else
		lock(pool, FLEXMEM_REASON_MAX_REGIONS);
	for (slot = pool->first; slot < pool->end; slot++)
		if (model->region[slot].refused)
			lock(pool, FLEXMEM_REASON_SLOTS);
}

/* The device: 0 or an error. */
static int device_acquire(struct model *model, u64 size)
{
	int rc = model->acquire_error;

	if (rc) {
		model->acquire_error = 0;
		return rc;
	}
	if (model->taken + size > model->capacity)
		return -ENOSPC;
	model->taken += size;
	return 0;
}

/* Puts memory in a slot: the slot, or -1 if there is none. */
static int fill_slot(struct model *model, struct model_pool *pool, u64 size)
{
	struct model_region *region;
	int slot;

	while ((slot = empty_slot(model, pool)) >= 0) {
		region = &model->region[slot];
		if (model->refused_slots >> slot & 1) {
			region->refused = true;
			continue;
		}
		region->there = true;
		region->total = size;
		region->free = size;
		region->changes = 0;
		region->nr = 1;
		region->block[0] = (struct model_block) { .size = size };
		return slot;
	}
	return -1;
}

/* A new region of at least @min_size: its slot, -ENOSPC or another error. */
static int acquire(struct model *model, struct model_pool *pool, u64 min_size)
{
	bool every_size = true;
	unsigned int i;
	int rc, slot;

	if (pool->locked)
		return -ENOSPC;
	for (i = 0; i < model->nr_sizes; i++) {
		u64 size = model->sizes[i];

		if (pool == &model->programs)
			size = model->sizes[model->nr_sizes - 1 - i];
		if (size < min_size) {
			every_size = false;
			continue;
		}
		rc = device_acquire(model, size);
		if (rc == -ENOSPC)
			continue;
		if (rc)
			return rc;
		slot = fill_slot(model, pool, size);
		if (slot < 0) {
			model->taken -= size;
			slot = -ENOSPC;
		}
		lock_if_full(model, pool);
		return slot;
	}
	if (every_size)
		lock(pool, FLEXMEM_REASON_CAPACITY);
	return -ENOSPC;
}

static u64 max_region(const struct model *model)
{
	unsigned int i;
	u64 largest = 0;

	for (i = 0; i < model->nr_sizes; i++)
		if (model->sizes[i] <= model->capacity)
			largest = max(largest, model->sizes[i]);
	for (i = 0; i < model->slots; i++)
		if (model->region[i].there)
			largest = max(largest, model->region[i].total);
	return largest;
}

/* Placement. */

static bool try_region(struct model *model, unsigned int slot, u64 size,
		       u64 alignment, struct model_answer *answer)
{
	if (!take(model, &model->region[slot], size, alignment,
		  &answer->offset))
		return false;
	answer->slot = slot;
	return true;
}

/* Tries the regions there are, in the order of their free bytes. */
static bool try_regions(struct model *model, const struct model_pool *pool,
			u64 size, u64 alignment, struct model_answer *answer)
{
	bool tried[MODEL_MAX_SLOTS] = {};
	unsigned int slot;
	int next;

	for (;;) {
		next = -1;
		for (slot = pool->first; slot < pool->end; slot++) {
			u64 free = model->region[slot].free;

			if (!model->region[slot].there || tried[slot])
				continue;
			if (next < 0 ||
			    (model->order == FLEXMEM_ORDER_LOAD_BALANCE ?
			     free > model->region[next].free :
			     free < model->region[next].free))
				next = slot;
		}
		if (next < 0)
			return false;
		tried[next] = true;
		if (try_region(model, next, size, alignment, answer))
			return true;
	}
}

static void explain(const struct model *model, const struct model_pool *pool,
		    u64 size, struct model_answer *answer)
{
	unsigned int slot;

	answer->rc = -ENOMEM;
	answer->max_region = max_region(model);
	for (slot = pool->first; slot < pool->end; slot++) {
		if (!model->region[slot].there)
			continue;
		answer->total_free += model->region[slot].free;
		answer->largest_free = max(answer->largest_free,
					   largest_hole(&model->region[slot]));
	}
	if (size > answer->max_region)
		answer->reason = FLEXMEM_REASON_REGION_SIZE;
	else if (answer->total_free >= size)
		answer->reason = FLEXMEM_REASON_FRAGMENTATION;
	else if (pool->locked)
		answer->reason = pool->reason;
	else
		answer->reason = FLEXMEM_REASON_CAPACITY;
}

/**
 * model_create - a model, to be filled in
 * @test: at whose end it goes
 *
 * Return: the model.
 */
struct model *model_create(struct kunit *test)
{
	struct model_block *blocks;
	struct model *model;
	unsigned int i;

	model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, model);
	for (i = 0; i < MODEL_MAX_SLOTS; i++) {
		blocks = kunit_kcalloc(test, MODEL_MAX_BLOCKS + 1,
				       sizeof(*blocks), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, blocks);
		model->region[i].block = blocks;
	}
	return model;
}

/**
 * model_start - forget all regions and begin with the settings there are now
 * @model: model
 */
void model_start(struct model *model)
{
	unsigned int slot;

	model->slots = model->max_regions;
	if (model->mode == FLEXMEM_MODE_VF)
		model->slots = min(model->slots, model->hw_slots);
	model->taken = 0;
	model->tensors = (struct model_pool) {
		.end = model->slots - model->program_slots,
	};
	model->programs = (struct model_pool) {
		.first = model->slots - model->program_slots,
		.end = model->slots,
	};
	for (slot = 0; slot < MODEL_MAX_SLOTS; slot++) {
		model->region[slot].there = false;
		model->region[slot].refused = false;
	}
}

void model_prealloc(struct model *model)
{
	if (model->program_slots)
		while (acquire(model, &model->programs, 0) >= 0)
			;
	while (acquire(model, &model->tensors, 0) >= 0)
		;
}

void model_alloc(struct model *model, u64 size, u64 alignment, bool program,
		 struct model_answer *answer)
{
	struct model_pool *pool = pool_of(model, program);
	bool lazy = model->acquire == FLEXMEM_ACQUIRE_LAZY;
	int slot = -ENOSPC;

	*answer = (struct model_answer) {};
	if (size > max_region(model)) {
		explain(model, pool, size, answer);
		return;
	}
	if (model->order == FLEXMEM_ORDER_LOAD_BALANCE && lazy) {
		slot = acquire(model, pool, size);
		if (slot >= 0) {
			try_region(model, slot, size, alignment, answer);
			return;
		}
	}
	if (try_regions(model, pool, size, alignment, answer))
		return;
	if (model->order != FLEXMEM_ORDER_LOAD_BALANCE || !lazy) {
		slot = acquire(model, pool, size);
		if (slot >= 0) {
			try_region(model, slot, size, alignment, answer);
			return;
		}
	}
	if (slot == -ENOSPC)
		explain(model, pool, size, answer);
	else
		answer->rc = slot;
}

void model_free(struct model *model, unsigned int slot, u64 offset)
{
	give(&model->region[slot], offset);
}

static void unlock(struct model *model)
{
	unsigned int slot;

	model->tensors.locked = false;
	model->programs.locked = false;
	for (slot = 0; slot < model->slots; slot++)
		model->region[slot].refused = false;
	lock_if_full(model, &model->tensors);
	lock_if_full(model, &model->programs);
}

void model_trim(struct model *model)
{
	bool any = false;
	unsigned int slot;

	for (slot = 0; slot < model->slots; slot++) {
		struct model_region *region = &model->region[slot];

		if (!region->there || region->free < region->total)
			continue;
		region->there = false;
		model->taken -= region->total;
		any = true;
	}
	if (any)
		unlock(model);
}

void model_new_capacity(struct model *model, u64 capacity)
{
	model->capacity = capacity;
	unlock(model);
}

/**
 * model_region_entry - a region as a snapshot must show it
 * @model: model
 * @slot: its slot; @entry->total is 0 if there is none
 * @entry: receives it; the region_id is that of a VF
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
	entry->total = region->total;
	entry->free = region->free;
	entry->largest_free = largest_hole(region);
	entry->sequence = region->changes;
	for (i = 0; i < region->nr; i++) {
		if (region->block[i].used)
			entry->nr_allocated++;
		else
			entry->nr_free++;
	}
}
