// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The text of a snapshot: JSON with the fields that PyTorch's viewer reads.
 * Runs without any lock of the cache.
 */
#include "cache.h"
#include "../escape.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Enough for most contexts. A longer one is printed again, into more memory. */
#define CONTEXT_ROOM 4096

/* The text so far. @failed: the host had no memory for more. */
struct text {
	const struct flexmem_cache *cache;
	char *data;
	size_t length;
	size_t room;
	bool failed;
};

static void put_bytes(struct text *text, const char *bytes, size_t length)
{
	size_t room = text->room ? text->room : 4096;
	char *data;

	if (text->failed)
		return;
	while (room <= text->length + length)
		room *= 2;
	if (room > text->room) {
		data = realloc(text->data, room);
		if (!data) {
			text->failed = true;
			return;
		}
		text->data = data;
		text->room = room;
	}
	memcpy(text->data + text->length, bytes, length);
	text->length += length;
	text->data[text->length] = '\0';
}

static void put(struct text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Appends a formatted text of less than 256 bytes. For the caller's strings,
 * which may be longer, there is put_string().
 */
static void put(struct text *text, const char *format, ...)
{
	char piece[256];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(piece, sizeof(piece), format, arguments);
	va_end(arguments);
	put_bytes(text, piece, (size_t)length);
}

static void put_number(struct text *text, const char *name, uint64_t value)
{
	put(text, "\"%s\":%llu,", name, (unsigned long long)value);
}

/* Appends bytes from the caller, with the escapes of fmlib_escape(). */
static void put_string(struct text *text, const char *string, size_t length)
{
	char escaped[FMLIB_ESCAPED_MAX];
	const char *at;
	size_t size;

	put_bytes(text, "\"", 1);
	for (; length; string += size, length -= size) {
		size = fmlib_escape(string, length, escaped);
		for (at = escaped; *at; at++) {
			if (*at == '"' || *at == '\\')
				put_bytes(text, "\\", 1);
			put_bytes(text, at, 1);
		}
	}
	put_bytes(text, "\"", 1);
}

static void put_frame(struct text *text, const char *name, size_t length,
		      const char *file, size_t file_length, unsigned long line)
{
	put(text, "{\"name\":");
	put_string(text, name, length);
	put(text, ",\"filename\":");
	put_string(text, file, file_length);
	put(text, ",\"line\":%lu},", line);
}

/* Appends a line of a context: FILE:LINE:NAME or a name. */
static void put_line(struct text *text, const char *line, size_t length)
{
	const char *end = line + length;
	const char *colon;
	unsigned long number;
	const char *digit;

	for (colon = line; colon < end; colon++) {
		number = 0;
		digit = colon + 1;
		while (*colon == ':' && digit < end && *digit >= '0' &&
		       *digit <= '9' && number < 100000000)
			number = 10 * number + (unsigned long)(*digit++ - '0');
		if (digit == colon + 1 || digit == end || *digit != ':')
			continue;
		put_frame(text, digit + 1, (size_t)(end - digit - 1), line,
			  (size_t)(colon - line), number);
		return;
	}
	put_frame(text, line, length, "", 0, 0);
}

static void put_lines(struct text *text, const char *lines)
{
	size_t length;

	for (; *lines; lines += length + (lines[length] == '\n')) {
		length = strcspn(lines, "\n");
		if (length)
			put_line(text, lines, length);
	}
}

static void put_context(struct text *text, void *context)
{
	const struct flexmem_cache_contexts *contexts = &text->cache->contexts;
	char first[CONTEXT_ROOM] = "";
	char *lines = first;
	size_t length;

	if (!context || !contexts->print)
		return;
	length = contexts->print(contexts->user, context, first, sizeof(first));
	if (length >= sizeof(first)) {
		lines = calloc(1, length + 1);
		if (!lines) {
			text->failed = true;
			return;
		}
		contexts->print(contexts->user, context, lines, length + 1);
	}
	put_lines(text, lines);
	if (lines != first)
		free(lines);
}

/* Ends an object or array: the bracket replaces its last comma. */
static void put_end(struct text *text, char bracket)
{
	if (text->failed)
		return;
	if (text->data[text->length - 1] == ',')
		text->length--;
	put(text, "%c,", bracket);
}

static void put_frames(struct text *text, const struct fmlib_origin *origin)
{
	put(text, "\"frames\":[");
	if (origin) {
		const char *tag = origin->tag->sums.tag;

		if (*tag)
			put_frame(text, tag, strlen(tag), "", 0, 0);
		put_context(text, origin->context);
	}
	put_end(text, ']');
}

static const char *state_name(enum fmlib_state state)
{
	switch (state) {
	case FMLIB_COPY_LIVE:
		return "active_allocated";
	case FMLIB_COPY_WAITING:
		return "active_pending_free";
	default:
		return "inactive";
	}
}

static void put_block(struct text *text, const struct fmlib_copied_segment *segment,
		      const struct fmlib_copied_block *block)
{
	put(text, "{");
	put_number(text, "address", segment->address + block->offset);
	put_number(text, "size", block->size);
	put_number(text, "requested_size", block->requested);
	put(text, "\"state\":\"%s\",", state_name(block->state));
	put_number(text, "offset", segment->place.offset + block->offset);
	put_number(text, "token", block->token);
	put_frames(text, block->origin);
	put_end(text, '}');
}

static void put_sums(struct text *text, const struct fmlib_copied_block *block,
		     const struct fmlib_copied_block *end)
{
	uint64_t allocated = 0;
	uint64_t requested = 0;
	uint64_t active = 0;

	for (; block < end; block++) {
		if (block->state == FMLIB_COPY_LIVE)
			allocated += block->size;
		if (block->state != FMLIB_COPY_FREE)
			active += block->size;
		requested += block->requested;
	}
	put_number(text, "allocated_size", allocated);
	put_number(text, "active_size", active);
	put_number(text, "requested_size", requested);
}

static void put_segment(struct text *text, const struct fmlib_copied_segment *segment,
			const struct fmlib_copied_block *block,
			const struct fmlib_copied_block *end)
{
	put(text, "{");
	put_number(text, "device", text->cache->device_index);
	put_number(text, "address", segment->address);
	put_number(text, "total_size", segment->size);
	put_sums(text, block, end);
	put_number(text, "stream", segment->stream);
	put(text, "\"segment_type\":\"%s\",",
	    segment->is_small ? "small" : "large");
	put(text, "\"segment_pool_id\":[0,%llu],",
	    (unsigned long long)segment->pool);
	put(text, "\"is_expandable\":%s,", segment->growing ? "true" : "false");
	put_number(text, "region_id", segment->place.region_id);
	put_number(text, "offset", segment->place.offset);
	put(text, "\"frames\":[],\"blocks\":[");
	for (; block < end; block++)
		put_block(text, segment, block);
	put_end(text, ']');
	put_end(text, '}');
}

static int in_order(const void *a, const void *b)
{
	const struct fmlib_copied_block *first = a;
	const struct fmlib_copied_block *second = b;

	if (first->serial != second->serial)
		return first->serial < second->serial ? -1 : 1;
	return first->offset < second->offset ? -1 : 1;
}

/* Appends the segments, the oldest first. */
static void put_segments(struct text *text, const struct fmlib_copy *copy)
{
	const struct fmlib_copied_block *last = copy->blocks + copy->block_count;
	const struct fmlib_copied_block *block = copy->blocks;
	const struct fmlib_copied_segment *segment;
	const struct fmlib_copied_block *end;
	size_t i;

	qsort(copy->blocks, copy->block_count, sizeof(*copy->blocks), in_order);
	put(text, "\"segments\":[");
	for (i = 0; i < copy->segment_count; i++, block = end) {
		segment = &copy->segments[i];
		for (end = block; end < last; end++) {
			if (end->serial != segment->serial)
				break;
		}
		put_segment(text, segment, block, end);
	}
	put_end(text, ']');
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
	put_number(text, "requested_size", event->requested);
	if (event->action != FMLIB_OOM) {
		put_number(text, "region_id", event->region_id);
		put_number(text, "offset", event->address & FMLIB_OFFSET_MASK);
	}
	put_number(text, "stream", event->stream);
	put_number(text, "pool", event->pool);
	put_number(text, "time_us", event->time_us);
	put_number(text, "number", event->number);
	put_frames(text, event->origin);
	put_end(text, '}');
}

/*
 * Appends a list for each device. All lists except the one of the cache's own
 * device are empty.
 */
static void put_traces(struct text *text, const struct fmlib_copy *copy)
{
	size_t i;

	put(text, "\"device_traces\":[");
	for (i = 0; i < text->cache->device_index; i++)
		put(text, "[],");
	put(text, "[");
	for (i = 0; i < copy->event_count; i++)
		put_event(text, &copy->events[i]);
	put_end(text, ']');
	put_end(text, ']');
}

static void put_settings(struct text *text)
{
	struct flexmem_cache_setting setting;
	size_t i;

	put(text, "\"allocator_settings\":{");
	for (i = 0; !flexmem_cache_setting(text->cache, i, &setting,
					   sizeof(setting)); i++) {
		put(text, "\"%s\":", setting.key);
		put_string(text, setting.value, strlen(setting.value));
		put(text, ",");
	}
	put_end(text, '}');
}

int fmlib_snapshot_text(const struct flexmem_cache *cache,
			const struct fmlib_copy *copy, char **text,
			size_t *length)
{
	struct text made = { .cache = cache };

	put(&made, "{");
	put_segments(&made, copy);
	put_traces(&made, copy);
	put_settings(&made);
	put(&made, "\"external_annotations\":[]}");
	if (made.failed) {
		free(made.data);
		return -ENOMEM;
	}
	*text = made.data;
	if (length)
		*length = made.length;
	return 0;
}
