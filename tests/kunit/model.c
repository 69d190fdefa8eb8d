// SPDX-License-Identifier: GPL-2.0
/* The reference model: see model.h. Slow on purpose. */

#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
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

/* The lowest of the largest free blocks, or -1. */
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

/* Half way in the largest one, or as near to its start as it must be. */
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

/* Takes @size bytes of a region: where they start, or false. */
static bool take(const struct model *model, struct model_region *region,
		 const struct model_request *request, u64 *start)
{
	u64 size = request->size, alignment = request->alignment, end;
	struct kunit *test = kunit_get_current_test();
	int i = find_hole(model, region, size, alignment), other = -1;

	if (i < 0)
		return false;
	if (request->growable)
		other = find_growable(region, size, alignment, start);
	if (other >= 0)
		i = other;
	else
		*start = round_to(region->block[i].start, alignment);
	end = region->block[i].start + region->block[i].size;
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
		region->block[i] = (struct model_block) {
			.start = start,
			.size = region->block[i].size,
		};
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
	int i = largest_block(region);

	return i < 0 ? 0 : region->block[i].size;
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
		model->generation++;
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

static bool try_region(struct model *model, unsigned int slot,
		       const struct model_request *request,
		       struct model_answer *answer)
{
	if (!take(model, &model->region[slot], request, &answer->offset))
		return false;
	answer->slot = slot;
	return true;
}

/* Is a region tried before another one, in a higher or lower slot? */
static bool region_comes_first(const struct model *model,
			       const struct model_request *request,
			       const struct model_region *a,
			       const struct model_region *b)
{
	if (request->growable && largest_hole(a) != largest_hole(b))
		return largest_hole(a) > largest_hole(b);
	return model->order == FLEXMEM_ORDER_LOAD_BALANCE ?
		a->free > b->free : a->free < b->free;
}

/* Tries the regions there are, in the order of the settings. */
static bool try_regions(struct model *model, const struct model_pool *pool,
			const struct model_request *request,
			struct model_answer *answer)
{
	struct model_region *region = model->region;
	bool tried[MODEL_MAX_SLOTS] = {};
	unsigned int slot;
	int next;

	for (;;) {
		next = -1;
		for (slot = pool->first; slot < pool->end; slot++) {
			if (!region[slot].there || tried[slot])
				continue;
			if (next < 0 ||
			    region_comes_first(model, request, &region[slot],
					       &region[next]))
				next = slot;
		}
		if (next < 0)
			return false;
		tried[next] = true;
		if (try_region(model, next, request, answer))
			return true;
	}
}

/* Whether D15's bound is why a region has no place, for all that is known. */
static bool gives_up(const struct model *model,
		     const struct model_region *region,
		     const struct model_request *request)
{
	unsigned int i, large = 0;

	for (i = 0; i < region->nr; i++)
		large += !region->block[i].used &&
			 region->block[i].size >= request->size;
	return large > model->tries && request->alignment > UNIT &&
	       find_hole(model, region, request->size, request->alignment) < 0;
}

static void explain(const struct model *model, const struct model_pool *pool,
		    const struct model_request *request,
		    struct model_answer *answer)
{
	enum flexmem_reason no_region = pool->locked ? pool->reason :
						       FLEXMEM_REASON_CAPACITY;
	bool gave_up = false;
	unsigned int slot;

	answer->rc = -ENOMEM;
	answer->max_region = max_region(model);
	for (slot = 0; slot < model->slots; slot++)
		answer->regions += model->region[slot].there;
	for (slot = pool->first; slot < pool->end; slot++) {
		if (!model->region[slot].there)
			continue;
		gave_up |= gives_up(model, &model->region[slot], request);
		answer->total_free += model->region[slot].free;
		answer->largest_free = max(answer->largest_free,
					   largest_hole(&model->region[slot]));
	}
	if (request->size > answer->max_region) {
		answer->reason = FLEXMEM_REASON_REGION_SIZE;
	} else if (answer->total_free >= request->size) {
		answer->reason = gave_up ? FLEXMEM_REASON_ALIGNMENT :
					   FLEXMEM_REASON_FRAGMENTATION;
		answer->region_reason = no_region;
	} else {
		answer->reason = no_region;
	}
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
	model->generation = 0;
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

void model_alloc(struct model *model, const struct model_request *request,
		 struct model_answer *answer)
{
	struct model_pool *pool = pool_of(model, request->program);
	u64 size = request->size;
	bool lazy = model->acquire == FLEXMEM_ACQUIRE_LAZY;
	int slot = -ENOSPC;

	*answer = (struct model_answer) {};
	if (size > max_region(model)) {
		explain(model, pool, request, answer);
		return;
	}
	if (model->order == FLEXMEM_ORDER_LOAD_BALANCE && lazy) {
		slot = acquire(model, pool, size);
		if (slot >= 0) {
			try_region(model, slot, request, answer);
			return;
		}
	}
	if (try_regions(model, pool, request, answer))
		return;
	if (model->order != FLEXMEM_ORDER_LOAD_BALANCE || !lazy) {
		slot = acquire(model, pool, size);
		if (slot >= 0) {
			try_region(model, slot, request, answer);
			return;
		}
	}
	if (slot == -ENOSPC)
		explain(model, pool, request, answer);
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
 * model_room - by how many bytes an allocation could be extended
 * @model: model
 * @slot: where it is
 * @offset: likewise
 *
 * Return: bytes.
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
 * model_extend - allocate what lies behind an allocation
 * @model: model
 * @slot: where it is
 * @offset: likewise
 * @size: bytes more, no more than there is room for
 *
 * Return: where that starts.
 */
u64 model_extend(struct model *model, unsigned int slot, u64 offset, u64 size)
{
	struct model_region *region = &model->region[slot];
	struct model_block *block = block_at(model, slot, offset), *more;
	u64 room = model_room(model, slot, offset);

	more = block + 1;
	if (size < room)
		insert_block(kunit_get_current_test(), region,
			     more + 1 - region->block, more->start + size,
			     room - size);
	more->size = size;
	more->used = true;
	more->owner = block->owner;
	region->free -= size;
	region->changes++;
	return more->start;
}

/**
 * model_join - make an allocation one with what lies behind it
 * @model: model
 * @slot: where it is
 * @offset: likewise
 */
void model_join(struct model *model, unsigned int slot, u64 offset)
{
	struct model_region *region = &model->region[slot];
	struct model_block *block = block_at(model, slot, offset);

	block->size += block[1].size;
	delete_block(region, block + 1 - region->block);
	region->changes++;
}

/**
 * model_shrink - free the end of an allocation
 * @model: model
 * @slot: where it is
 * @offset: likewise
 * @size: bytes that stay
 */
void model_shrink(struct model *model, unsigned int slot, u64 offset, u64 size)
{
	struct model_region *region = &model->region[slot];
	struct model_block *block = block_at(model, slot, offset);
	u64 rest = block->size - size;

	block->size = size;
	insert_block(kunit_get_current_test(), region,
		     block + 1 - region->block, offset + size, rest);
	give(region, offset + size);
}

void model_set_owner(struct model *model, unsigned int slot, u64 offset,
		     unsigned int owner)
{
	block_at(model, slot, offset)->owner = owner;
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
 * @sums: receives them
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

/* What has been quarantined first is tried first. */
static void end_quarantine(struct model_region *region)
{
	unsigned int i;
	int first;

	do {
		first = -1;
		for (i = 0; i < region->nr; i++)
			if (region->block[i].quarantined &&
			    (first < 0 || region->block[i].quarantined <
					  region->block[first].quarantined))
				first = i;
		if (first >= 0)
			give(region, region->block[first].start);
	} while (first >= 0);
}

void model_trim(struct model *model, bool scrub_fails)
{
	bool any = false;
	unsigned int slot;

	for (slot = 0; slot < model->slots && !scrub_fails; slot++)
		if (model->region[slot].there)
			end_quarantine(&model->region[slot]);
	for (slot = 0; slot < model->slots; slot++) {
		struct model_region *region = &model->region[slot];

		if (!region->there || region->free < region->total)
			continue;
		region->there = false;
		model->generation++;
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
		if (!region->block[i].used)
			entry->nr_free++;
		else if (!region->block[i].quarantined)
			entry->nr_allocated++;
	}
}
