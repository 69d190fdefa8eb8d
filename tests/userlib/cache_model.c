// SPDX-License-Identifier: GPL-2.0
/* The model of the cache: sizes, blocks, streams. */
#include "cache_model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

/*
 * Replaces the default sizes by those of @profile that are not 0. A profile has
 * no members besides sizes.
 */
static void change_profile(struct flexmem_cache_profile *profile,
			   const struct flexmem_cache_profile *wished)
{
	const uint64_t *from = &wished->granule;
	uint64_t *to = &profile->granule;
	size_t i;

	for (i = 0; i < sizeof(*profile) / sizeof(*to); i++) {
		if (from[i])
			to[i] = from[i];
	}
}

void model_start(struct model *model, const struct model_setup *setup,
		 struct world *world)
{
	memset(model, 0, sizeof(*model));
	model->setup = setup;
	model->world = world;
	model->profile = (struct flexmem_cache_profile){
		.granule = 128,
		.small_limit = MIB,
		.small_segment = 2 * MIB,
		.large_limit = 10 * MIB,
		.large_segment = 20 * MIB,
		.large_round = 2 * MIB,
		.large_remainder = MIB,
		.oversize_slack = setup->slack ? setup->slack * MIB : MIB,
		.growing_step = 2 * MIB,
	};
	change_profile(&model->profile, &setup->profile);
	model->share.epoch = 1;
	model->figures.max_split_size = setup->max_split ?
		setup->max_split * MIB : UINT64_MAX;
}

void model_end(struct model *model)
{
	size_t i;

	for (i = 0; i < model->count; i++) {
		free(model->segments[i]->blocks);
		free(model->segments[i]);
	}
	free(model->segments);
	model_share_end(model);
}

/* ---- sizes ---- */

uint64_t model_round(uint64_t size, uint64_t unit)
{
	return size % unit ? size + unit - size % unit : size;
}

static uint64_t power_below(uint64_t bytes)
{
	uint64_t power = 1;

	while (power <= bytes / 2)
		power *= 2;
	return power;
}

static uint64_t round_request(const struct model *model, uint64_t bytes)
{
	const struct model_rounding *rounding = model->setup->rounding;
	uint64_t power = power_below(bytes);
	unsigned int steps = 1;
	uint64_t step;
	size_t i;

	for (i = 0; i < 4 && rounding[i].steps; i++) {
		if (!i || bytes >= rounding[i].from * MIB)
			steps = rounding[i].steps;
	}
	if (steps == 1)
		return model_round(bytes, model->profile.granule);
	step = power / steps;
	return model_round(bytes, step < model->profile.granule ?
			   model->profile.granule : step);
}

/* ---- blocks ---- */

struct model_block *model_last(const struct model_segment *segment)
{
	return &segment->blocks[segment->count - 1];
}

struct model_block *model_insert(struct model_segment *segment, size_t index)
{
	segment->blocks = realloc(segment->blocks, (segment->count + 1) *
				  sizeof(segment->blocks[0]));
	assert(segment->blocks);
	memmove(&segment->blocks[index + 1], &segment->blocks[index],
		(segment->count - index) * sizeof(segment->blocks[0]));
	segment->count++;
	memset(&segment->blocks[index], 0, sizeof(segment->blocks[0]));
	return &segment->blocks[index];
}

static void take_out(struct model_segment *segment, size_t index)
{
	segment->count--;
	memmove(&segment->blocks[index], &segment->blocks[index + 1],
		(segment->count - index) * sizeof(segment->blocks[0]));
}

struct model_place model_find_live(const struct model *model, size_t id)
{
	struct model_place place;
	size_t i;

	for (i = 0; i < model->count; i++) {
		place.segment = model->segments[i];
		for (place.index = 0; place.index < place.segment->count;
		     place.index++) {
			if (place.segment->blocks[place.index].state ==
			    MODEL_LIVE &&
			    place.segment->blocks[place.index].id == id)
				return place;
		}
	}
	return (struct model_place){ 0 };
}

static bool serves(const struct model_segment *segment,
		   const struct model_want *want)
{
	return segment->kind == want->kind && !segment->lost &&
	       segment->pool == want->pool &&
	       segment->stream == want->request->stream;
}

/*
 * Finds a free block of growing or of fixed segments. Of growing ones: the
 * lowest block in the oldest segment. Of fixed ones: the tightest block; of
 * equal blocks, the lowest block in the oldest segment.
 */
static struct model_place find_in(const struct model *model,
				  const struct model_want *want, bool growing)
{
	struct model_place best = { 0 };
	struct model_segment *segment;
	uint64_t best_size = UINT64_MAX;
	const struct model_block *block;
	size_t i;
	size_t j;

	for (i = 0; i < model->count; i++) {
		segment = model->segments[i];
		if (segment->growing != growing || !serves(segment, want))
			continue;
		for (j = 0; j < segment->count; j++) {
			block = &segment->blocks[j];
			if (block->state != MODEL_FREE ||
			    block->size < want->size ||
			    block->size >= best_size)
				continue;
			best = (struct model_place){ segment, j, 0 };
			if (segment->growing)
				return best;
			best_size = block->size;
		}
	}
	return best;
}

struct model_place model_find(const struct model *model,
			      const struct model_want *want)
{
	uint64_t limit = model->figures.max_split_size;
	struct model_place best = model_shares(model, want) ?
		model_share_find(model, want) : find_in(model, want, true);
	uint64_t size;

	if (!best.segment)
		best = find_in(model, want, false);
	if (!best.segment || best.segment->growing ||
	    want->kind == FLEXMEM_CACHE_SMALL)
		return best;
	size = best.segment->blocks[best.index].size;
	if (size >= limit &&
	    (want->size < limit ||
	     size > want->size + model->profile.oversize_slack))
		best.segment = NULL;
	return best;
}

static bool may_split(const struct model *model,
		      const struct model_segment *segment, uint64_t whole,
		      uint64_t size)
{
	if (size == whole)
		return false;
	if (segment->growing)
		return true;
	if (model->pools[segment->pool].flags & FLEXMEM_CACHE_POOL_NO_SPLIT)
		return false;
	if (size <= model->profile.small_limit)
		return true;
	return size < model->figures.max_split_size &&
	       whole - size > model->profile.large_remainder;
}

static void take(struct model *model, const struct model_want *want,
		 struct model_place place, size_t id,
		 struct model_result *result)
{
	const struct model_request *request = want->request;
	struct model_segment *segment = place.segment;
	struct model_block *block = &segment->blocks[place.index];
	struct model_block *rest;

	if (place.at) {
		rest = model_insert(segment, place.index + 1);
		block = rest - 1;
		rest->offset = block->offset + place.at;
		rest->size = block->size - place.at;
		rest->stamp = block->stamp;
		block->size = place.at;
		block = rest;
		place.index++;
	}
	if (may_split(model, segment, block->size, want->size)) {
		rest = model_insert(segment, place.index + 1);
		block = rest - 1;
		rest->offset = block->offset + want->size;
		rest->size = block->size - want->size;
		rest->stamp = block->stamp;
		block->size = want->size;
	}
	block->state = MODEL_LIVE;
	block->birth = ++model->births;
	block->id = id;
	block->requested = want->bytes;
	block->tag = request->tag;
	block->stream = request->stream;
	block->used = 0;
	if (model->setup->events && !segment->shared &&
	    block->stream != segment->stream)
		block->used = 1u << block->stream;
	model_share_taken(model, segment, block);
	model_count_alloc(model, segment, block);
	result->address = segment->address + block->offset;
	result->size = block->size;
	result->pool = segment->pool;
}

/* Joins a block that no stream uses with its free neighbours. */
static void settle(struct model *model, struct model_place place)
{
	struct model_segment *segment = place.segment;
	struct model_block *block = &segment->blocks[place.index];
	size_t at = place.index;

	segment->releases++;
	block->state = MODEL_FREE;
	model_share_freed(model, segment, block);
	if (at + 1 < segment->count && block[1].state == MODEL_FREE) {
		block->size += block[1].size;
		take_out(segment, at + 1);
	}
	if (at && block[-1].state == MODEL_FREE) {
		block[-1].size += block->size;
		take_out(segment, at);
		block--;
	}
	block->stamp = model->clock;
	if ((model->setup->direct || segment->lost ||
	     (segment->pool && !model->pools[segment->pool].open)) &&
	    segment->count == 1 && model_excess(model, segment))
		model_give_back(model, segment);
}

static void count_inactive(struct model *model, struct model_place place)
{
	const struct model_block *block = &place.segment->blocks[place.index];
	struct flexmem_cache_statistics *f = &model->figures;

	model_subtract(f->active, place.segment->kind, 1);
	model_subtract(f->active_bytes, place.segment->kind, block->size);
	model_subtract(f->requested_bytes, place.segment->kind,
		       block->requested);
}

static void deactivate(struct model *model, struct model_place place)
{
	count_inactive(model, place);
	settle(model, place);
}

/* ---- streams ---- */

static unsigned int happened(const struct world *world,
			     const struct model_block *block)
{
	unsigned int streams = 0;
	uint64_t stream;

	for (stream = 0; stream < WORLD_STREAMS; stream++) {
		if (block->waits & ~block->lost & 1u << stream &&
		    block->event[stream] < world->done[stream])
			streams |= 1u << stream;
	}
	return streams;
}

/*
 * Ends waits of blocks: either all waits, or only the waits for events on
 * @streams that have happened.
 */
static void bring_back(struct model *model, bool all, unsigned int streams)
{
	struct model_place place;
	struct model_block *block;
	unsigned int over;
	size_t i = 0;

again:
	for (; i < model->count; i++) {
		place.segment = model->segments[i];
		for (place.index = 0; place.index < place.segment->count;
		     place.index++) {
			block = &place.segment->blocks[place.index];
			if (block->state != MODEL_WAITING)
				continue;
			over = all ? block->waits :
			       happened(model->world, block) & streams;
			model->world->destroyed +=
				(unsigned int)__builtin_popcount(over &
								 ~block->lost);
			block->waits &= ~over;
			if (block->waits)
				continue;
			deactivate(model, place);
			/*
			 * Blocks have moved in the list, so the search starts
			 * over.
			 */
			goto again;
		}
	}
}

void model_poll(struct model *model)
{
	if (model->captures)
		return;
	bring_back(model, false, ~0u);
}

void model_wait_for_device(struct model *model)
{
	size_t i;

	if (!model->setup->events || model->captures)
		return;
	model->figures.num_sync_all_streams++;
	if (world_events.synchronize_device(model->world))
		return;
	model_share_synchronized(model);
	model->share.is_done = true;
	bring_back(model, true, 0);
	model->share.is_done = false;
	for (i = 0; i < model->count; i++)
		model->segments[i]->quiet = model->segments[i]->releases;
}

/*
 * Returns a bit mask of the streams for which blocks wait. @lost receives
 * whether a block waits without an event.
 */
static unsigned int waited_for(const struct model *model, bool *lost)
{
	const struct model_segment *segment;
	unsigned int streams = 0;
	size_t i;
	size_t j;

	*lost = false;
	for (i = 0; i < model->count; i++) {
		segment = model->segments[i];
		for (j = 0; j < segment->count; j++) {
			if (segment->blocks[j].state != MODEL_WAITING)
				continue;
			streams |= segment->blocks[j].waits &
				   ~segment->blocks[j].lost;
			if (segment->blocks[j].waits & segment->blocks[j].lost)
				*lost = true;
		}
	}
	return streams;
}

/* Waits for the last event of the stream for which any block waits. */
static int wait_for_stream(struct model *model, uint64_t stream)
{
	const struct model_segment *segment;
	uint64_t last = 0;
	size_t i;
	size_t j;

	if (model->world->refuse_wait == stream)
		return -EIO;
	for (i = 0; i < model->count; i++) {
		segment = model->segments[i];
		for (j = 0; j < segment->count; j++) {
			if (segment->blocks[j].state == MODEL_WAITING &&
			    segment->blocks[j].waits &
			    ~segment->blocks[j].lost & 1u << stream &&
			    segment->blocks[j].event[stream] > last)
				last = segment->blocks[j].event[stream];
		}
	}
	world_progress(model->world, stream,
		       model->world->done[stream] <= last ?
		       last + 1 - model->world->done[stream] : 0);
	return 0;
}

int model_wait_for_all(struct model *model)
{
	unsigned int streams;
	uint64_t stream;
	int result = 0;
	bool lost;

	if (model->captures)
		return 0;
	streams = waited_for(model, &lost);
	for (stream = 0; stream < WORLD_STREAMS; stream++) {
		if (!(streams & 1u << stream) ||
		    !wait_for_stream(model, stream))
			continue;
		streams &= ~(1u << stream);
		result = -EIO;
	}
	/*
	 * If the wait for a stream failed, the stream's blocks stay as they
	 * are.
	 */
	bring_back(model, false, streams);
	if (!lost)
		return result;
	model_wait_for_device(model);
	return model->world->refuse_device_wait ? -EIO : result;
}

void model_record(struct model *model, struct model_block *block)
{
	struct world *world = model->world;
	uint64_t stream;
	uint64_t event;

	block->lost = 0;
	for (stream = 0; stream < WORLD_STREAMS; stream++) {
		if (!(block->waits & 1u << stream))
			continue;
		if (world_events.record(world, stream, &event))
			block->lost |= 1u << stream;
		else
			block->event[stream] = event & UINT32_MAX;
	}
	block->deferred = 0;
}

/* Frees an allocation's block, at once or after its events. */
static void give(struct model *model, struct model_place place)
{
	struct model_block *block = &place.segment->blocks[place.index];

	block->waits = block->used;
	block->used = 0;
	block->state = MODEL_WAITING;
	if (!block->waits)
		deactivate(model, place);
	else if (model->captures)
		block->deferred = ++model->deferred;
	else
		model_record(model, block);
}

/* ---- the operations ---- */

int model_alloc(struct model *model, const struct model_request *request,
		size_t id, struct model_result *result)
{
	struct model_want want = {
		.bytes = request->bytes,
		.request = request,
		.failure = &result->failure,
	};
	struct model_place place;
	int err = 0;

	memset(result, 0, sizeof(*result));
	if (!request->bytes)
		return 0;
	if (request->bytes > FLEXMEM_CACHE_ALLOCATION_BYTES) {
		model->figures.num_ooms++;
		result->failure.limit = FLEXMEM_CACHE_LIMIT_SIZE;
		result->failure.asked = request->bytes;
		result->failure.allocated_bytes =
			model->figures.allocated_bytes[FLEXMEM_CACHE_ALL].current;
		result->failure.reserved_bytes =
			model->figures.reserved_bytes[FLEXMEM_CACHE_ALL].current;
		return -ENOMEM;
	}
	want.size = round_request(model, request->bytes);
	want.kind = FLEXMEM_CACHE_LARGE;
	if (!model->setup->growing && want.size <= model->profile.small_limit)
		want.kind = FLEXMEM_CACHE_SMALL;
	result->kind = want.kind;
	want.pool = request->pool ? request->pool :
		    model_selected_pool(model, request->stream);
	if (want.pool && !model_pool_is_open(model, want.pool)) {
		result->failure.pool = request->pool;
		result->failure.last_pool = model->last_pool;
		return -ENOENT;
	}
	if (model->captures)
		model->pools[want.pool].stays = true;
	if (model_shares(model, &want))
		model_share_enter(model, request->stream);
	model->clock++;
	place = model_find(model, &want);
	if (!place.segment) {
		model_poll(model);
		place = model_find(model, &want);
	}
	if (!place.segment && model_shares(model, &want) &&
	    model_share_poll(model))
		place = model_find(model, &want);
	if (place.segment)
		model->figures.num_hits++;
	else
		err = model_ladder(model, &want, &place);
	if (!err)
		take(model, &want, place, id, result);
	model_commit(model);
	if (err != -ENOMEM)
		memset(&result->failure, 0, sizeof(result->failure));
	return err;
}

void model_free_at(struct model *model, size_t id)
{
	struct model_place place = model_find_live(model, id);

	if (place.segment->blocks[place.index].used) {
		model_poll(model);
		place = model_find_live(model, id);
	}
	model_count_free(model, place.segment,
			 &place.segment->blocks[place.index]);
	give(model, place);
}

int model_free(struct model *model, size_t id)
{
	if (!model_find_live(model, id).segment)
		return -EINVAL;
	model_free_at(model, id);
	model_commit(model);
	return 0;
}

int model_record_stream(struct model *model, size_t id, uint64_t stream)
{
	struct model_place place = model_find_live(model, id);
	struct model_block *block;

	if (!place.segment)
		return -EINVAL;
	block = &place.segment->blocks[place.index];
	if (model->setup->events &&
	    stream != (place.segment->shared ? block->stream :
					       place.segment->stream))
		block->used |= 1u << stream;
	return 0;
}

/* The bytes that the cache has returned to the provider so far. */
uint64_t model_returned(const struct model *model)
{
	return model->figures.reserved_bytes[FLEXMEM_CACHE_ALL].freed;
}

int model_empty(struct model *model, uint64_t *released)
{
	uint64_t before = model_returned(model);
	int wait_error;
	int error;

	wait_error = model_wait_for_all(model);
	model_reclaim(model, UINT64_MAX, &error);
	*released = model_returned(model) - before;
	model_commit(model);
	return wait_error ? wait_error : error;
}

int model_trim(struct model *model, uint64_t bytes, uint64_t *released)
{
	uint64_t before = model_returned(model);
	uint64_t gone;
	int error;

	model_poll(model);
	gone = model_returned(model) - before;
	model_reclaim(model, gone < bytes ? bytes - gone : 0, &error);
	*released = model_returned(model) - before;
	model_commit(model);
	return error;
}

static uint64_t bytes_in_use(const struct model_segment *segment)
{
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < segment->count; i++) {
		if (segment->blocks[i].state != MODEL_FREE)
			bytes += segment->blocks[i].size;
	}
	return bytes;
}

int model_drop_lost(struct model *model, uint64_t *live)
{
	struct model_segment *segment;
	int error = 0;
	size_t i = 0;

	model_poll(model);
	*live = 0;
	while (i < model->count) {
		segment = model->segments[i];
		if (!model_is_lost(model, segment)) {
			i++;
			continue;
		}
		*live += bytes_in_use(segment);
		/* If the segment was freed, the next segment has its index now. */
		if (model_excess(model, segment)) {
			if (model_give_back(model, segment))
				continue;
			error = -EIO;
		}
		i++;
	}
	model_commit(model);
	return error;
}
