// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Snapshots: segments, blocks and history as JSON, for PyTorch's viewer. */
#include "cache.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text so far; @data is NULL when there was no memory for it. */
struct text {
	char *data;
	size_t length;
	size_t room;
	bool failed;
};

static bool make_room(struct text *text, size_t more)
{
	size_t room = text->room ? text->room : 4096;
	char *data;

	if (text->failed)
		return false;
	if (text->length + more < text->room)
		return true;
	while (room <= text->length + more)
		room *= 2;
	data = realloc(text->data, room);
	if (!data) {
		text->failed = true;
		return false;
	}
	text->data = data;
	text->room = room;
	return true;
}

static void put(struct text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (!make_room(text, (size_t)length + 1))
		return;
	va_start(arguments, format);
	vsnprintf(text->data + text->length, (size_t)length + 1, format,
		  arguments);
	va_end(arguments);
	text->length += (size_t)length;
}

static void put_number(struct text *text, const char *name, uint64_t value)
{
	put(text, "\"%s\":%llu,", name, (unsigned long long)value);
}

/* Tags are the caller's bytes; JSON is ASCII here. */
static void put_string(struct text *text, const char *string)
{
	put(text, "\"");
	for (; *string; string++) {
		if (*string == '"' || *string == '\\')
			put(text, "\\%c", *string);
		else if (*string >= ' ' && *string <= '~')
			put(text, "%c", *string);
		else
			put(text, "\\u%04x", (unsigned char)*string);
	}
	put(text, "\"");
}

static void put_frames(struct text *text, const struct fmlib_tag *tag)
{
	put(text, "\"frames\":[");
	if (tag && *tag->sums.tag) {
		put(text, "{\"name\":");
		put_string(text, tag->sums.tag);
		put(text, ",\"filename\":\"\",\"line\":0}");
	}
	put(text, "]");
}

/* Objects and arrays end with a comma too many, which becomes the bracket. */
static void put_end(struct text *text, char bracket)
{
	if (text->failed)
		return;
	if (text->data[text->length - 1] == ',')
		text->length--;
	put(text, "%c,", bracket);
}

/*
 * A thread may free a block into its store, and allocate it again, meanwhile:
 * what its name was when it was copied is what is told of it everywhere.
 */
static struct fmlib_block copy_of(const struct fmlib_block *block)
{
	struct fmlib_block copy = *block;

	if (copy.name)
		copy.stamp = fmlib_name_word(copy.name);
	return copy;
}

static bool is_allocated(const struct fmlib_block *copy)
{
	return copy->state == FMLIB_LIVE &&
	       fmlib_name_state(copy->stamp) != FMLIB_NAME_PARKED;
}

static const char *state_name(const struct fmlib_block *block)
{
	if (block->state == FMLIB_WAITING)
		return "active_pending_free";
	return is_allocated(block) ? "active_allocated" : "inactive";
}

static void put_block(struct text *text, const struct fmlib_block *block)
{
	const struct fmlib_segment *segment = block->segment;
	bool allocated = is_allocated(block);

	put(text, "{");
	put_number(text, "address", fmlib_flat_address(segment, block->offset));
	put_number(text, "size", block->size);
	put_number(text, "requested_size",
		   allocated || block->state == FMLIB_WAITING ?
		   block->requested : 0);
	put(text, "\"state\":\"%s\",", state_name(block));
	put_number(text, "offset", segment->address.offset + block->offset);
	put_number(text, "token", allocated ?
		   (uintptr_t)fmlib_word_token(block->stamp) : 0);
	put_frames(text, allocated ? block->tag : NULL);
	put_end(text, '}');
}

/* Copies of all blocks and holes, by segments and in their order. */
struct listing {
	struct fmlib_block *blocks;
	size_t count;
};

static int in_order(const void *a, const void *b)
{
	const struct fmlib_block *first = a;
	const struct fmlib_block *second = b;
	uint64_t serial = first->segment->serial;

	if (serial != second->segment->serial)
		return serial < second->segment->serial ? -1 : 1;
	return first->offset < second->offset ? -1 : 1;
}

/* As many entries as a listing has at most. */
static size_t count_blocks(const struct flexmem_cache *cache)
{
	size_t count = fmlib_names_count(cache);
	const struct fmlib_segment *segment;
	const struct fmlib_block *block;

	for (segment = cache->first_segment; segment; segment = segment->next) {
		count += segment->range.holes;
		for (block = segment->first; block; block = block->next)
			count++;
	}
	return count;
}

static void list_segment(struct listing *listing, struct fmlib_segment *segment)
{
	struct fmlib_block hole = { .segment = segment, .state = FMLIB_FREE };
	const struct fmlib_block *block;

	for (block = segment->first; block; block = block->next)
		listing->blocks[listing->count++] = copy_of(block);
	if (!segment->growing)
		return;
	while (fmlib_range_hole(&segment->range, &hole.offset, &hole.size)) {
		listing->blocks[listing->count++] = hole;
		hole.offset += hole.size;
	}
}

/* False: there is no memory for it. */
static bool list_all(struct listing *listing, const struct flexmem_cache *cache)
{
	size_t count = count_blocks(cache);
	const struct fmlib_block *block;
	struct fmlib_segment *segment;
	uint32_t i;

	listing->blocks = aligned_alloc(FMLIB_LINE, (count + 1) *
					sizeof(*listing->blocks));
	if (!listing->blocks)
		return false;
	listing->count = 0;
	for (segment = cache->first_segment; segment; segment = segment->next)
		list_segment(listing, segment);
	for (i = 0; i < fmlib_names_count(cache); i++) {
		block = fmlib_names_block(cache, i);
		if (block && block->segment->growing)
			listing->blocks[listing->count++] = copy_of(block);
	}
	qsort(listing->blocks, listing->count, sizeof(*listing->blocks),
	      in_order);
	return true;
}

static void put_sums(struct text *text, const struct fmlib_block *block,
		     const struct fmlib_block *end)
{
	uint64_t allocated = 0;
	uint64_t requested = 0;
	uint64_t active = 0;

	for (; block < end; block++) {
		if (is_allocated(block))
			allocated += block->size;
		else if (block->state != FMLIB_WAITING)
			continue;
		active += block->size;
		requested += block->requested;
	}
	put_number(text, "allocated_size", allocated);
	put_number(text, "active_size", active);
	put_number(text, "requested_size", requested);
}

static void put_segment(struct text *text, const struct flexmem_cache *cache,
			const struct fmlib_block *block,
			const struct fmlib_block *end)
{
	const struct fmlib_segment *segment = block->segment;

	put(text, "{");
	put_number(text, "device", cache->device_index);
	put_number(text, "address", fmlib_flat_address(segment, 0));
	put_number(text, "total_size", segment->size);
	put_sums(text, block, end);
	put_number(text, "stream", segment->arena->stream);
	put(text, "\"segment_type\":\"%s\",",
	    segment->arena->kind == FLEXMEM_CACHE_SMALL ? "small" : "large");
	put(text, "\"segment_pool_id\":[0,%llu],",
	    (unsigned long long)segment->arena->pool->id);
	put(text, "\"is_expandable\":%s,", segment->growing ? "true" : "false");
	put_number(text, "region_id", segment->address.region_id);
	put_number(text, "offset", segment->address.offset);
	put(text, "\"frames\":[],\"blocks\":[");
	for (; block < end; block++)
		put_block(text, block);
	put_end(text, ']');
	put_end(text, '}');
}

/* The blocks of a segment follow one another. */
static void put_segments(struct text *text, const struct flexmem_cache *cache,
			 const struct listing *listing, uint64_t pool)
{
	const struct fmlib_block *last = listing->blocks + listing->count;
	const struct fmlib_block *block = listing->blocks;
	const struct fmlib_segment *segment;
	const struct fmlib_block *end;

	for (; block < last; block = end) {
		segment = block->segment;
		end = block;
		while (end < last && end->segment == segment)
			end++;
		if (pool == FLEXMEM_CACHE_EVERY_POOL ||
		    segment->arena->pool->id == pool)
			put_segment(text, cache, block, end);
	}
}

static void put_event(struct text *text, const struct fmlib_event *event)
{
	static const char *const actions[] = {
		[FMLIB_ALLOC] = "alloc",
		[FMLIB_FREE_REQUESTED] = "free_requested",
		[FMLIB_FREE_COMPLETED] = "free_completed",
		[FMLIB_SEGMENT_ALLOC] = "segment_alloc",
		[FMLIB_SEGMENT_FREE] = "segment_free",
		[FMLIB_SEGMENT_MAP] = "segment_map",
		[FMLIB_SEGMENT_UNMAP] = "segment_unmap",
		[FMLIB_OOM] = "oom",
	};

	put(text, "{\"action\":\"%s\",", actions[event->action]);
	put_number(text, event->action == FMLIB_OOM ? "device_free" : "addr",
		   event->address);
	put_number(text, "size", event->size);
	put_number(text, "stream", event->stream);
	put_number(text, "time_us", event->time_us);
	put_frames(text, event->tag);
	put_end(text, '}');
}

/* A list for each device, of which only one is known here. */
static void put_traces(struct text *text, const struct flexmem_cache *cache)
{
	const struct fmlib_history *history = &cache->history;
	size_t oldest;
	size_t i;

	put(text, "\"device_traces\":[");
	for (i = 0; i < cache->device_index; i++)
		put(text, "[],");
	put(text, "[");
	oldest = history->count == history->room ? history->next : 0;
	for (i = 0; i < history->count; i++)
		put_event(text, &history->events[(oldest + i) % history->room]);
	put_end(text, ']');
	put_end(text, ']');
}

static void put_settings(struct text *text, const struct flexmem_cache *cache)
{
	struct flexmem_cache_setting setting;
	size_t i;

	put(text, "\"allocator_settings\":{");
	for (i = 0; !flexmem_cache_setting(cache, i, &setting,
					   sizeof(setting)); i++) {
		put(text, "\"%s\":", setting.key);
		put_string(text, setting.value);
		put(text, ",");
	}
	put_end(text, '}');
}

static void put_all(struct text *text, const struct flexmem_cache *cache,
		    uint64_t pool)
{
	struct listing listing;

	if (!list_all(&listing, cache)) {
		text->failed = true;
		return;
	}
	put(text, "{\"segments\":[");
	put_segments(text, cache, &listing, pool);
	free(listing.blocks);
	put_end(text, ']');
	put_traces(text, cache);
	put_settings(text, cache);
	put(text, "\"external_annotations\":[]}");
}

int flexmem_cache_snapshot(struct flexmem_cache *cache, uint64_t pool,
			   char **text, size_t *length)
{
	int err = fmlib_cache_check(cache);
	struct text made = { 0 };

	if (err)
		return err;
	if (!text)
		return -EINVAL;
	fmlib_lock(cache);
	if (pool != FLEXMEM_CACHE_EVERY_POOL && !fmlib_pool_find(cache, pool))
		err = -ENOENT;
	else
		put_all(&made, cache, pool);
	fmlib_unlock(cache);
	if (made.failed)
		err = -ENOMEM;
	if (err) {
		free(made.data);
		return err;
	}
	*text = made.data;
	if (length)
		*length = made.length;
	return 0;
}

void flexmem_cache_text_free(char *text)
{
	free(text);
}
