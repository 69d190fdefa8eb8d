// SPDX-License-Identifier: GPL-2.0
/*
 * The model of shared segments: the parts of free memory that work of a stream
 * may still use, and the events that tell when this work is done.
 */
#include "cache_model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* After this many frees on a stream the cache records an event. */
#define FREES 24

/* Whether a request may get shared memory. */
bool model_shares(const struct model *model, const struct model_want *want)
{
	return !want->pool && model->setup->growing &&
	       model->setup->reuse != MODEL_REUSE_OWN;
}

static bool serves(const struct model_segment *segment)
{
	return segment->shared && !segment->lost;
}

static uint64_t used(const struct model *model)
{
	uint64_t bytes = 0;
	size_t i;
	size_t j;

	for (i = 0; i < model->count; i++) {
		for (j = 0; serves(model->segments[i]) &&
		     j < model->segments[i]->count; j++) {
			if (model->segments[i]->blocks[j].state != MODEL_FREE)
				bytes += model->segments[i]->blocks[j].size;
		}
	}
	return bytes;
}

static void note_peak(struct model *model)
{
	uint64_t bytes = used(model);

	if (bytes > model->share.peak)
		model->share.peak = bytes;
}

static void drop_event(struct model *model, struct model_stream *stream)
{
	world_events.destroy(model->world, stream->events[0].event);
	stream->event_count--;
	memmove(&stream->events[0], &stream->events[1],
		stream->event_count * sizeof(stream->events[0]));
}

/* The last part of a stream is gone, so it needs no events. */
static void rest(struct model *model, struct model_stream *stream)
{
	while (stream->event_count)
		drop_event(model, stream);
	stream->frees = 0;
}

static void remove_part(struct model *model, struct model_stream *stream,
			size_t i)
{
	stream->part_count--;
	memmove(&stream->parts[i], &stream->parts[i + 1],
		(stream->part_count - i) * sizeof(stream->parts[0]));
	if (!stream->part_count)
		rest(model, stream);
}

static void add_part(struct model *model, uint64_t number,
		     struct model_segment *segment, uint64_t offset,
		     uint64_t size)
{
	struct model_stream *stream = &model->share.streams[number];

	stream->parts = realloc(stream->parts, (stream->part_count + 1) *
				sizeof(stream->parts[0]));
	assert(stream->parts);
	stream->parts[stream->part_count++] = (struct model_part){
		segment, offset, offset + size, model->share.epoch,
	};
}

/* No part of the interval belongs to the work of a stream any more. */
void model_share_clear(struct model *model, const struct model_segment *segment,
		       uint64_t from, uint64_t to)
{
	struct model_stream *stream;
	struct model_part *part;
	uint64_t s;
	size_t i;

	for (s = 0; s < WORLD_STREAMS; s++) {
		stream = &model->share.streams[s];
		i = 0;
		while (i < stream->part_count) {
			part = &stream->parts[i];
			if (part->segment != segment || part->from >= to ||
			    part->to <= from) {
				i++;
			} else if (part->from >= from && part->to <= to) {
				remove_part(model, stream, i);
			} else if (part->from < from) {
				part->to = from;
				i++;
			} else {
				part->from = to;
				i++;
			}
		}
	}
}

static bool record(struct model *model, uint64_t number)
{
	struct model_stream *stream = &model->share.streams[number];
	uint64_t event;

	stream->frees = 0;
	if (world_events.record(model->world, number, &event))
		return false;
	stream->events = realloc(stream->events, (stream->event_count + 1) *
				 sizeof(stream->events[0]));
	assert(stream->events);
	stream->events[stream->event_count++] = (struct model_event){
		event, model->share.epoch++,
	};
	return true;
}

static void end_epoch(struct model *model, struct model_stream *stream,
		      uint64_t epoch)
{
	size_t i = 0;

	while (stream->event_count && stream->events[0].epoch <= epoch)
		drop_event(model, stream);
	while (i < stream->part_count) {
		if (stream->parts[i].epoch <= epoch)
			remove_part(model, stream, i);
		else
			i++;
	}
}

static bool poll(struct model *model)
{
	struct model_stream *stream;
	bool news = false;
	uint64_t s;

	for (s = 0; s < WORLD_STREAMS; s++) {
		stream = &model->share.streams[s];
		while (stream->part_count &&
		       (stream->event_count || record(model, s)) &&
		       !world_events.query(model->world,
					   stream->events[0].event)) {
			end_epoch(model, stream, stream->events[0].epoch);
			news = true;
		}
	}
	return news;
}

bool model_share_poll(struct model *model)
{
	return !model->captures && poll(model);
}

void model_share_synchronized(struct model *model)
{
	uint64_t s;

	for (s = 0; s < WORLD_STREAMS; s++)
		end_epoch(model, &model->share.streams[s], model->share.epoch);
	model->share.epoch++;
}

void model_share_freed(struct model *model, struct model_segment *segment,
		       const struct model_block *block)
{
	struct model_stream *stream;

	if (!model->share.tracks || !serves(segment) ||
	    !model->setup->events || model->share.is_done)
		return;
	stream = &model->share.streams[block->stream];
	add_part(model, block->stream, segment, block->offset, block->size);
	if (++stream->frees < FREES || model->captures)
		return;
	record(model, block->stream);
	poll(model);
}

/*
 * A request that may get shared memory. If it is on a second stream, all free
 * memory belongs to the first one.
 */
void model_share_enter(struct model *model, uint64_t stream)
{
	struct model_segment *segment;
	bool any = false;
	size_t i;
	size_t j;

	for (i = 0; i < model->count; i++)
		any |= model->segments[i]->shared;
	if (!any || model->share.tracks || model->share.sole == stream)
		return;
	model->share.tracks = true;
	model->share.peak =
		model->figures.allocated_bytes[FLEXMEM_CACHE_ALL].peak;
	note_peak(model);
	for (i = 0; i < model->count && model->setup->events; i++) {
		segment = model->segments[i];
		for (j = 0; serves(segment) && j < segment->count; j++) {
			if (segment->blocks[j].state == MODEL_FREE)
				add_part(model, model->share.sole, segment,
					 segment->blocks[j].offset,
					 segment->blocks[j].size);
		}
	}
}

void model_share_begin(struct model *model, struct model_segment *segment,
		       uint64_t stream)
{
	size_t i;

	for (i = 0; i < model->count; i++) {
		if (model->segments[i] != segment &&
		    model->segments[i]->shared) {
			segment->stream = model->share.maker;
			return;
		}
	}
	model->share.tracks = false;
	model->share.sole = stream;
	model->share.maker = stream;
}

void model_share_taken(struct model *model, const struct model_segment *segment,
		       const struct model_block *block)
{
	if (!model->share.tracks || !segment->shared)
		return;
	model_share_clear(model, segment, block->offset,
			  block->offset + block->size);
	note_peak(model);
}

/* The first part of another stream that ends behind @from, and before @to. */
static const struct model_part *foreign(const struct model *model,
					const struct model_segment *segment,
					uint64_t own, uint64_t from,
					uint64_t to)
{
	const struct model_stream *stream;
	const struct model_part *first = NULL;
	const struct model_part *part;
	uint64_t s;
	size_t i;

	for (s = 0; s < WORLD_STREAMS; s++) {
		stream = &model->share.streams[s];
		for (i = 0; i < stream->part_count && s != own; i++) {
			part = &stream->parts[i];
			if (part->segment == segment && part->to > from &&
			    part->from < to &&
			    (!first || part->from < first->from))
				first = part;
		}
	}
	return first;
}

struct model_place model_share_find_in(const struct model *model,
				       const struct model_want *want,
				       struct model_segment *segment)
{
	uint64_t own = want->request->stream;
	const struct model_block *block;
	const struct model_part *part;
	uint64_t start;
	uint64_t end;
	size_t i;

	for (i = 0; i < segment->count; i++) {
		block = &segment->blocks[i];
		if (block->state != MODEL_FREE)
			continue;
		start = block->offset;
		end = block->offset + block->size;
		while (end - start >= want->size) {
			part = foreign(model, segment, own, start,
				       start + want->size);
			if (!part)
				return (struct model_place){
					segment, i, start - block->offset };
			start = part->to;
		}
	}
	return (struct model_place){ 0 };
}

struct model_place model_share_find(const struct model *model,
				    const struct model_want *want)
{
	struct model_place place = { 0 };
	size_t i;

	for (i = 0; i < model->count && !place.segment; i++) {
		if (serves(model->segments[i]))
			place = model_share_find_in(model, want,
						    model->segments[i]);
	}
	return place;
}

uint64_t model_share_tail(const struct model *model,
			  const struct model_want *want,
			  const struct model_segment *segment)
{
	const struct model_block *last = model_last(segment);
	const struct model_part *part;
	uint64_t start = segment->size;

	if (last->state == MODEL_FREE)
		start = last->offset;
	while ((part = foreign(model, segment, want->request->stream, start,
			       segment->size)))
		start = part->to;
	return segment->size - start;
}

static bool has_room(const struct model *model, const struct model_want *want)
{
	uint64_t peak = used(model) + want->size;
	uint64_t reserved = want->size;
	size_t i;

	if (peak < model->share.peak)
		peak = model->share.peak;
	for (i = 0; i < model->count; i++) {
		if (serves(model->segments[i]))
			reserved += model->segments[i]->size;
	}
	return reserved <= peak + peak / 50;
}

/* Waits for the work of one part. @waited: for each stream, see below. */
static bool wait_for_part(struct model *model, const struct model_part *part,
			  uint64_t own, uint64_t *waited)
{
	struct model_stream *stream = model->share.streams;
	size_t i = 0;

	while (part < stream->parts ||
	       part >= stream->parts + stream->part_count)
		stream++;
	if (part->epoch <= waited[stream - model->share.streams])
		return true;
	while (i < stream->event_count && stream->events[i].epoch < part->epoch)
		i++;
	if (i == stream->event_count &&
	    !record(model, (uint64_t)(stream - model->share.streams)))
		return false;
	if (world_events.wait(model->world, own, stream->events[i].event))
		return false;
	waited[stream - model->share.streams] = stream->events[i].epoch;
	model->figures.num_stream_waits++;
	return true;
}

/*
 * Takes the lowest free block, and waits for all streams whose work may use it.
 * @waited: the epoch up to which the request waits for a stream.
 */
bool model_share_wait(struct model *model, const struct model_want *want,
		      bool is_short, struct model_place *place)
{
	uint64_t waited[WORLD_STREAMS] = { 0 };
	const struct model_part *part;
	struct model_segment *segment;
	uint64_t from;
	uint64_t end;
	size_t i;
	size_t j;

	if (!model->share.tracks || model->captures || !model->setup->events ||
	    model->setup->reuse != MODEL_REUSE_WAIT ||
	    (!is_short && has_room(model, want)))
		return false;
	for (i = 0; i < model->count; i++) {
		segment = model->segments[i];
		for (j = 0; serves(segment) && j < segment->count; j++) {
			if (segment->blocks[j].state == MODEL_FREE &&
			    segment->blocks[j].size >= want->size)
				goto found;
		}
	}
	return false;
found:
	from = segment->blocks[j].offset;
	end = from + want->size;
	while ((part = foreign(model, segment, want->request->stream, from,
			       end))) {
		from = part->to;
		if (!wait_for_part(model, part, want->request->stream, waited))
			return false;
	}
	*place = (struct model_place){ segment, j, 0 };
	return true;
}

void model_share_end(struct model *model)
{
	uint64_t s;

	for (s = 0; s < WORLD_STREAMS; s++) {
		free(model->share.streams[s].parts);
		free(model->share.streams[s].events);
	}
}
