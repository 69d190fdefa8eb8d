// SPDX-License-Identifier: GPL-2.0
/*
 * PyTorch's viewer starts from the segments and blocks of a snapshot, and
 * undoes the events of the history from the last to the first, to show the
 * memory after each event. This check does the same. It is stricter: it also
 * refuses a snapshot that the viewer would accept but draw wrongly.
 */
#include "cache_viewer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * A segment or a block. @pending: the block was freed but waits for its stream.
 */
struct interval {
	uint64_t start;
	uint64_t end;
	uint64_t stream;
	bool expandable;
	bool pending;
};

/* An array in no particular order. */
struct intervals {
	struct interval *list;
	size_t count;
	size_t room;
};

struct view {
	struct intervals segments;
	struct intervals blocks;
	size_t event;
};

static _Thread_local char complaint[256];

static bool complain(const struct view *view, const char *what,
		     const struct interval *at)
{
	snprintf(complaint, sizeof(complaint),
		 "event %zu: %s at 0x%" PRIx64 " (%" PRIu64 " bytes, stream %"
		 PRIu64 ")", view->event, what, at->start, at->end - at->start,
		 at->stream);
	return false;
}

static uint64_t number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

static const char *string(const json_t *object, const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));

	return value ? value : "";
}

static void add(struct intervals *to, const struct interval *interval)
{
	if (to->count == to->room) {
		to->room = to->room ? 2 * to->room : 64;
		to->list = realloc(to->list, to->room * sizeof(*to->list));
		if (!to->list)
			abort();
	}
	to->list[to->count++] = *interval;
}

static void take_out(struct intervals *from, struct interval *interval)
{
	*interval = from->list[--from->count];
}

/* The first interval that overlaps @with. */
static struct interval *overlapping(const struct intervals *in,
				    const struct interval *with)
{
	size_t i;

	for (i = 0; i < in->count; i++) {
		if (in->list[i].start < with->end &&
		    with->start < in->list[i].end)
			return &in->list[i];
	}
	return NULL;
}

/* Returns the interval that contains all of @what and has the same stream. */
static struct interval *containing(const struct intervals *in,
				   const struct interval *what)
{
	struct interval *found = overlapping(in, what);

	return found && found->start <= what->start &&
	       found->end >= what->end && found->stream == what->stream ?
	       found : NULL;
}

static struct interval *equal(const struct intervals *in,
			      const struct interval *to)
{
	struct interval *found = containing(in, to);

	return found && found->start == to->start && found->end == to->end ?
	       found : NULL;
}

static bool add_block(struct view *view, const struct interval *block)
{
	if (overlapping(&view->blocks, block))
		return complain(view, "a block where one is already", block);
	if (!containing(&view->segments, block))
		return complain(view, "a block outside of segments", block);
	add(&view->blocks, block);
	return true;
}

static bool add_segment(struct view *view, const struct interval *segment)
{
	if (overlapping(&view->segments, segment))
		return complain(view, "a segment where one is already",
				segment);
	add(&view->segments, segment);
	return true;
}

/* Reverts segment_unmap: adds the segment and merges it with its neighbours. */
static bool map(struct view *view, struct interval segment)
{
	struct interval *other;
	size_t i;

	if (overlapping(&view->segments, &segment))
		return complain(view, "a segment where one is already",
				&segment);
	for (i = 0; i < view->segments.count;) {
		other = &view->segments.list[i];
		if (!other->expandable || other->stream != segment.stream ||
		    (other->end != segment.start &&
		     segment.end != other->start)) {
			i++;
			continue;
		}
		if (other->start < segment.start)
			segment.start = other->start;
		if (other->end > segment.end)
			segment.end = other->end;
		take_out(&view->segments, other);
	}
	add(&view->segments, &segment);
	return true;
}

/* Reverts segment_map: removes the bytes of the segment. */
static bool unmap(struct view *view, const struct interval *part)
{
	struct interval *whole = containing(&view->segments, part);
	struct interval rest;

	if (!whole || !whole->expandable)
		return complain(view, "nothing expandable to unmap", part);
	if (overlapping(&view->blocks, part))
		return complain(view, "a block in what is unmapped", part);
	rest = *whole;
	take_out(&view->segments, whole);
	if (rest.start < part->start)
		add(&view->segments, &(struct interval){
			.start = rest.start, .end = part->start,
			.stream = rest.stream, .expandable = true,
		});
	if (part->end < rest.end)
		add(&view->segments, &(struct interval){
			.start = part->end, .end = rest.end,
			.stream = rest.stream, .expandable = true,
		});
	return true;
}

static bool remove_segment(struct view *view, const struct interval *segment)
{
	struct interval *found = equal(&view->segments, segment);

	if (!found || found->expandable)
		return complain(view, "no such segment", segment);
	if (overlapping(&view->blocks, segment))
		return complain(view, "a block in a segment that goes",
				segment);
	take_out(&view->segments, found);
	return true;
}

static bool take_back(struct view *view, const json_t *event)
{
	const char *action = string(event, "action");
	struct interval at = {
		.start = number(event, "addr"),
		.end = number(event, "addr") + number(event, "size"),
		.stream = number(event, "stream"),
	};
	struct interval *block = equal(&view->blocks, &at);

	if (!strcmp(action, "alloc")) {
		if (!block || block->pending)
			return complain(view, "no such live block", &at);
		take_out(&view->blocks, block);
		return true;
	}
	if (!strcmp(action, "free_requested")) {
		if (!block || !block->pending)
			return complain(view, "no such pending block", &at);
		block->pending = false;
		return true;
	}
	if (!strcmp(action, "free_completed")) {
		at.pending = true;
		return add_block(view, &at);
	}
	if (!strcmp(action, "segment_alloc"))
		return remove_segment(view, &at);
	if (!strcmp(action, "segment_free"))
		return add_segment(view, &at);
	at.expandable = true;
	if (!strcmp(action, "segment_map"))
		return unmap(view, &at);
	if (!strcmp(action, "segment_unmap"))
		return map(view, at);
	return !strcmp(action, "oom") || complain(view, "unknown action", &at);
}

static bool read_blocks(struct view *view, const json_t *segment,
			const struct interval *in)
{
	struct interval block = { .start = in->start, .stream = in->stream };
	const json_t *found;
	size_t i;

	json_array_foreach(json_object_get(segment, "blocks"), i, found) {
		const char *state = string(found, "state");

		/* The viewer adds up the sizes instead of reading addresses. */
		if (number(found, "address") != block.start)
			return complain(view, "a block that is not next",
					&block);
		block.end = block.start + number(found, "size");
		block.pending = !strcmp(state, "active_pending_free");
		if ((block.pending || !strcmp(state, "active_allocated")) &&
		    !add_block(view, &block))
			return false;
		block.start = block.end;
	}
	return block.start == in->end ||
	       complain(view, "blocks do not tile their segment", in);
}

static bool read_segments(struct view *view, const json_t *snapshot)
{
	const json_t *found;
	size_t i;

	json_array_foreach(json_object_get(snapshot, "segments"), i, found) {
		struct interval segment = {
			.start = number(found, "address"),
			.end = number(found, "address") +
			       number(found, "total_size"),
			.stream = number(found, "stream"),
			.expandable = json_is_true(json_object_get(found,
							"is_expandable")),
		};

		if (!add_segment(view, &segment) ||
		    !read_blocks(view, found, &segment))
			return false;
	}
	return true;
}

/*
 * Whether the event has the members that the viewer prints beside its picture.
 */
static bool has_texts(const struct view *view, const json_t *event)
{
	static const struct interval nowhere;
	const json_t *frame;
	size_t i;

	if (!json_is_array(json_object_get(event, "frames")))
		return complain(view, "no frames", &nowhere);
	json_array_foreach(json_object_get(event, "frames"), i, frame) {
		if (!json_is_string(json_object_get(frame, "name")) ||
		    !json_is_string(json_object_get(frame, "filename")) ||
		    !json_is_integer(json_object_get(frame, "line")))
			return complain(view, "an incomplete frame", &nowhere);
	}
	return json_is_integer(json_object_get(event, "size")) ||
	       complain(view, "no size", &nowhere);
}

static bool take_all_back(struct view *view, const json_t *events)
{
	const json_t *event;

	view->event = json_array_size(events);
	while (view->event--) {
		event = json_array_get(events, view->event);
		if (!has_texts(view, event) || !take_back(view, event))
			return false;
	}
	return true;
}

/*
 * Appends the snapshot, as one line, to the file that FLEXMEM_SNAPSHOTS names.
 * test_viewer.py shows the lines of this file with PyTorch's viewer, which
 * takes 50 ms each: so only the first snapshot and then each 64th is kept, and
 * all of them if FLEXMEM_LONG is set. Snapshots with events are counted apart.
 */
static void keep(const json_t *snapshot, bool has_events)
{
	static atomic_uint counts[2];
	const char *path = getenv("FLEXMEM_SNAPSHOTS");
	char *text;
	int fd;

	if (!path ||
	    (atomic_fetch_add(&counts[has_events], 1) % 64 &&
	     !getenv("FLEXMEM_LONG")))
		return;
	text = json_dumps(snapshot, JSON_COMPACT);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (!text || fd < 0 || dprintf(fd, "%s\n", text) < 0)
		abort();
	close(fd);
	free(text);
}

const char *viewer_refuses(const json_t *snapshot)
{
	const json_t *traces = json_object_get(snapshot, "device_traces");
	const json_t *events = json_array_get(traces,
					      json_array_size(traces) - 1);
	struct view view = { .event = json_array_size(traces) };
	bool good;

	keep(snapshot, json_array_size(events));
	good = read_segments(&view, snapshot) && take_all_back(&view, events);
	free(view.segments.list);
	free(view.blocks.list);
	return good ? NULL : complaint;
}

const char *viewer_refuses_text(const char *text)
{
	json_t *snapshot = json_loads(text, 0, NULL);
	const char *why;

	if (!snapshot)
		return "not JSON";
	why = viewer_refuses(snapshot);
	json_decref(snapshot);
	return why;
}
