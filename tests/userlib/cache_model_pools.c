// SPDX-License-Identifier: GPL-2.0
/* The model: private pools, captures and checkpoints. */
#include "cache_model.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

const struct flexmem_cache_provider *
model_provider(const struct model *model, const struct model_segment *segment)
{
	return model->pools[segment->pool].own ? &world_own_provider :
						 &world_provider;
}

bool model_pool_is_open(const struct model *model, uint64_t pool)
{
	return pool && pool <= model->last_pool && model->pools[pool].open;
}

int model_pool_create(struct model *model, bool own, uint64_t *pool)
{
	*pool = ++model->last_pool;
	assert(*pool < MODEL_POOLS);
	model->pools[*pool] = (struct model_pool){
		.open = true, .own = own, .uses = 1,
	};
	return 0;
}

int model_pool_hold(struct model *model, uint64_t pool)
{
	if (!model_pool_is_open(model, pool))
		return -ENOENT;
	model->pools[pool].uses++;
	return 0;
}

int model_pool_set_flags(struct model *model, uint64_t pool, uint32_t flags)
{
	size_t i;

	if (!model_pool_is_open(model, pool))
		return -ENOENT;
	for (i = 0; i < model->count; i++) {
		if (model->segments[i]->pool == pool &&
		    (flags ^ model->pools[pool].flags) &
			    FLEXMEM_CACHE_POOL_NO_SPLIT)
			return -EBUSY;
	}
	model->pools[pool].flags = flags;
	return 0;
}

/* Returns the pool's free memory. Returns -EIO if the provider refused any. */
static int return_all(struct model *model, uint64_t pool)
{
	struct model_segment *segment;
	int error = 0;
	size_t i = 0;

	while (i < model->count) {
		segment = model->segments[i];
		if (segment->pool == pool && model_spare(model, segment) &&
		    !model_give_back(model, segment))
			error = -EIO;
		/* If the segment was freed, the next segment has its index now. */
		if (i < model->count && model->segments[i] == segment)
			i++;
	}
	return error;
}

uint64_t model_pool_reclaim(struct model *model, uint64_t pool)
{
	uint64_t before = model_returned(model);

	if (pool && !model->pools[pool].stays)
		return_all(model, pool);
	return model_returned(model) - before;
}

int model_pool_release(struct model *model, uint64_t pool)
{
	if (!model_pool_is_open(model, pool))
		return -ENOENT;
	if (--model->pools[pool].uses)
		return 0;
	model_poll(model);
	model->pools[pool].open = false;
	return_all(model, pool);
	model_commit(model);
	return 0;
}

int model_pool_empty(struct model *model, uint64_t pool, uint64_t *released)
{
	uint64_t before = model_returned(model);
	int wait_error;
	int error;

	if (!model_pool_is_open(model, pool))
		return -ENOENT;
	wait_error = model_wait_for_all(model);
	error = return_all(model, pool);
	*released = model_returned(model) - before;
	model_commit(model);
	return wait_error ? wait_error : error;
}

/* ---- selections and captures ---- */

uint64_t model_selected_pool(const struct model *model, uint64_t stream)
{
	const struct model_pool *pool;
	uint64_t last = 0;
	uint64_t i;

	for (i = 1; i <= model->last_pool; i++) {
		pool = &model->pools[i];
		if (pool->begun && pool->open && pool->streams & 1u << stream &&
		    pool->begun > model->pools[last].begun)
			last = i;
	}
	return last;
}

int model_pool_begin(struct model *model, uint64_t pool, unsigned int streams)
{
	if (!model_pool_is_open(model, pool))
		return -ENOENT;
	if (model->pools[pool].begun)
		return -EEXIST;
	model->pools[pool].begun = ++model->begun;
	model->pools[pool].streams = streams;
	return 0;
}

static bool has_begun(const struct model *model, uint64_t pool)
{
	return pool && pool <= model->last_pool && model->pools[pool].begun;
}

int model_pool_capture(struct model *model, uint64_t pool)
{
	if (!has_begun(model, pool))
		return -ENOENT;
	model->captures += !model->pools[pool].captures;
	model->pools[pool].captures = true;
	model->pools[pool].stays = true;
	return 0;
}

/* The block that was freed last in a capture, or NULL. */
static struct model_block *last_deferred(const struct model *model)
{
	struct model_block *last = NULL;
	struct model_block *block;
	size_t i;
	size_t j;

	for (i = 0; i < model->count; i++) {
		for (j = 0; j < model->segments[i]->count; j++) {
			block = &model->segments[i]->blocks[j];
			if (block->deferred &&
			    (!last || block->deferred > last->deferred))
				last = block;
		}
	}
	return last;
}

int model_pool_end(struct model *model, uint64_t pool)
{
	struct model_block *block;

	if (!has_begun(model, pool))
		return -ENOENT;
	model->pools[pool].begun = 0;
	if (!model->pools[pool].captures)
		return 0;
	model->pools[pool].captures = false;
	if (--model->captures)
		return 0;
	while ((block = last_deferred(model)))
		model_record(model, block);
	return 0;
}

int model_pool_usage(const struct model *model, uint64_t pool,
		     const uint64_t *stream, struct flexmem_cache_usage *usage)
{
	const struct model_segment *segment;
	const struct model_block *block;
	bool shared;
	size_t i;
	size_t j;

	if (pool && !model_pool_is_open(model, pool))
		return -ENOENT;
	memset(usage, 0, sizeof(*usage));
	usage->uses = model->pools[pool].uses;
	for (i = 0; i < model->count; i++) {
		segment = model->segments[i];
		if (segment->pool != pool)
			continue;
		shared = stream && segment->shared;
		if (stream && !shared && segment->stream != *stream)
			continue;
		usage->segments += !shared;
		usage->reserved_bytes += shared ? 0 : segment->size;
		for (j = 0; j < segment->count; j++) {
			block = &segment->blocks[j];
			if (block->state == MODEL_FREE ||
			    (shared && block->stream != *stream))
				continue;
			usage->active_bytes += block->size;
			if (block->state != MODEL_LIVE)
				continue;
			usage->allocations++;
			usage->allocated_bytes += block->size;
			usage->requested_bytes += block->requested;
		}
	}
	return 0;
}

/* ---- checkpoints ---- */

int model_pool_checkpoint(struct model *model, uint64_t pool,
			  struct model_checkpoint *checkpoint)
{
	const struct model_segment *segment;
	const struct model_block *block;
	size_t i;
	size_t j;

	if (!model_pool_is_open(model, pool))
		return -ENOENT;
	model->pools[pool].stays = true;
	checkpoint->pool = pool;
	checkpoint->count = 0;
	for (i = 0; i < model->count; i++) {
		segment = model->segments[i];
		for (j = 0; j < segment->count; j++) {
			block = &segment->blocks[j];
			if (segment->pool != pool ||
			    block->state != MODEL_LIVE)
				continue;
			assert(checkpoint->count < MODEL_ENTRIES);
			checkpoint->entries[checkpoint->count++] =
				(struct model_entry){
				.handle = segment->handle,
				.offset = block->offset,
				.size = block->size,
				.requested = block->requested,
				.birth = block->birth,
				.tag = block->tag,
				.id = block->id,
			};
		}
	}
	return 0;
}

static bool overlaps(const struct model_entry *entry,
		     const struct model_segment *segment,
		     const struct model_block *block)
{
	return entry->handle == segment->handle &&
	       entry->offset < block->offset + block->size &&
	       block->offset < entry->offset + entry->size;
}

/* The entry for this live block, or NULL. */
static struct model_entry *entry_of(struct model_checkpoint *checkpoint,
				    const struct model_block *block)
{
	size_t i;

	for (i = 0; i < checkpoint->count; i++) {
		if (block->state == MODEL_LIVE &&
		    checkpoint->entries[i].birth == block->birth)
			return &checkpoint->entries[i];
	}
	return NULL;
}

/*
 * Marks the entries that are live. -EBUSY: another block has memory of an
 * entry, and waits for an event, or would wait for one after its free.
 */
static int match(const struct model *model, struct model_checkpoint *checkpoint)
{
	const struct model_segment *segment;
	const struct model_block *block;
	struct model_entry *entry;
	size_t i;
	size_t j;
	size_t k;

	for (k = 0; k < checkpoint->count; k++)
		checkpoint->entries[k].is_live = false;
	for (i = 0; i < model->count; i++) {
		segment = model->segments[i];
		for (j = 0; j < segment->count; j++) {
			block = &segment->blocks[j];
			entry = entry_of(checkpoint, block);
			if (entry)
				entry->is_live = true;
			if (entry || (block->state != MODEL_WAITING &&
				      !(block->state == MODEL_LIVE &&
					block->used)))
				continue;
			for (k = 0; k < checkpoint->count; k++) {
				if (overlaps(&checkpoint->entries[k], segment,
					     block))
					return -EBUSY;
			}
		}
	}
	return 0;
}

static struct model_segment *segment_of(const struct model *model,
					const struct model_entry *entry)
{
	size_t i;

	for (i = 0; i < model->count; i++) {
		if (model->segments[i]->handle == entry->handle)
			return model->segments[i];
	}
	return NULL;
}

/* Whether all memory of the checkpoint is still there. */
static bool is_complete(const struct model *model,
			const struct model_checkpoint *checkpoint)
{
	const struct model_segment *segment;
	const struct model_entry *entry;
	size_t i;

	for (i = 0; i < checkpoint->count; i++) {
		entry = &checkpoint->entries[i];
		segment = segment_of(model, entry);
		if (!segment || segment->lost ||
		    entry->offset + entry->size > segment->size)
			return false;
	}
	return true;
}

/* Cuts a free block in two at @offset of its segment. */
static void cut(struct model_segment *segment, size_t index, uint64_t offset)
{
	struct model_block *rest = model_insert(segment, index + 1);
	struct model_block *block = rest - 1;

	*rest = *block;
	rest->offset = offset;
	rest->size = block->offset + block->size - offset;
	block->size = offset - block->offset;
}

/* Allocates the bytes of an entry, which are free. */
static void make(struct model *model, struct model_entry *entry, size_t id)
{
	struct model_segment *segment = segment_of(model, entry);
	uint64_t end = entry->offset + entry->size;
	struct model_block *block;
	size_t i = 0;

	while (segment->blocks[i].offset + segment->blocks[i].size <=
	       entry->offset)
		i++;
	assert(segment->blocks[i].state == MODEL_FREE);
	if (segment->blocks[i].offset < entry->offset)
		cut(segment, i++, entry->offset);
	assert(segment->blocks[i].offset + segment->blocks[i].size >= end);
	if (segment->blocks[i].offset + segment->blocks[i].size > end)
		cut(segment, i, end);
	block = &segment->blocks[i];
	block->state = MODEL_LIVE;
	block->birth = ++model->births;
	block->id = id;
	block->requested = entry->requested;
	block->tag = entry->tag;
	block->stream = segment->stream;
	block->used = 0;
	entry->birth = block->birth;
	entry->id = id;
	model_count_alloc(model, segment, block);
	model->figures.num_hits++;
}

static int restore(struct model *model, struct model_checkpoint *checkpoint,
		   const size_t *order, size_t count, const size_t *unused)
{
	struct model_place place;
	size_t i;
	int err;

	if (!model_pool_is_open(model, checkpoint->pool))
		return -ENOENT;
	err = match(model, checkpoint);
	if (err)
		return err;
	if (!is_complete(model, checkpoint))
		return -ENXIO;
	for (i = 0; i < count; i++) {
		place = model_find_live(model, order[i]);
		if (place.segment->pool == checkpoint->pool &&
		    !entry_of(checkpoint,
			      &place.segment->blocks[place.index]))
			model_free_at(model, order[i]);
	}
	for (i = 0; i < checkpoint->count; i++) {
		if (!checkpoint->entries[i].is_live)
			make(model, &checkpoint->entries[i], *unused++);
	}
	return 0;
}

int model_pool_restore(struct model *model, struct model_checkpoint *checkpoint,
		       const size_t *order, size_t count, const size_t *unused)
{
	int err;

	model_poll(model);
	err = restore(model, checkpoint, order, count, unused);
	model_commit(model);
	return err;
}
