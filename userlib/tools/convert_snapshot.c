// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Makes a trace of a memory snapshot of PyTorch, or of one of the library's
 * cache, which has the same fields. The history has the allocations and frees.
 * Allocations from before it are found in frees of the history, and among the
 * blocks that are allocated at the end.
 */
#include "convert.h"
#include "tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Where the events of the history begin: after those of earlier allocations. */
#define HISTORY (UINT64_C(1) << 40)
#define NONE UINT32_MAX

/*
 * An allocation or a free of the history; or a block that is allocated at the
 * end, which has the largest @order.
 */
struct record {
	uint64_t address;
	uint64_t order;
	uint64_t time;
	uint64_t bytes;
	uint64_t stream;
	enum {
		RECORD_ALLOC,
		RECORD_FREE,
		RECORD_BLOCK,
	} kind;
};

/*
 * @index: the device to convert; @only: the others may have no memory.
 * @where: the part of the snapshot that is being read, for errors.
 */
struct snapshot {
	struct conversion *conversion;
	struct values values;
	int64_t index;
	bool only;
	struct record *records;
	size_t count;
	size_t room;
	char where[80];
};

static bool is_value_list(const struct value *value)
{
	return value && value->kind == VALUE_LIST;
}

static bool begins(const struct value *value, const char *text)
{
	return value && value->kind == VALUE_TEXT &&
	       value->count >= strlen(text) &&
	       !memcmp(value->text, text, strlen(text));
}

static bool is_text(const struct value *value, const char *text)
{
	return begins(value, text) && value->count == strlen(text);
}

static bool find_number(const struct snapshot *snapshot, const struct value *dict,
			const char *key, uint64_t *number)
{
	const struct value *value = value_get(&snapshot->values, dict, key);

	if (!value || value->kind != VALUE_NUMBER)
		return false;
	*number = value->number;
	return true;
}

static bool need_number(const struct snapshot *snapshot, const struct value *dict,
			const char *key, uint64_t *number)
{
	return find_number(snapshot, dict, key, number) ||
	       convert_fail(snapshot->conversion->error,
			    "%s has no '%s' that is a number from 0 on",
			    snapshot->where, key);
}

static void add_record(struct snapshot *snapshot, const struct record *record)
{
	if (snapshot->count == snapshot->room) {
		snapshot->room = snapshot->room ? 2 * snapshot->room : 4096;
		snapshot->records = grow(snapshot->records, snapshot->room,
					 sizeof(*snapshot->records));
	}
	snapshot->records[snapshot->count++] = *record;
}

/*
 * Memory can be used again from free_completed on, not from free_requested on.
 * Events of segments are left out, because a replay makes its own segments.
 */
static bool read_event(struct snapshot *snapshot, const struct value *event,
		       struct record *record)
{
	const struct value *action = value_get(&snapshot->values, event, "action");

	if (is_text(action, "alloc"))
		record->kind = RECORD_ALLOC;
	else if (is_text(action, "free_completed"))
		record->kind = RECORD_FREE;
	else if (action && action->kind == VALUE_TEXT)
		return true;
	else
		return convert_fail(snapshot->conversion->error,
				    "%s has no 'action'", snapshot->where);
	if (!need_number(snapshot, event, "addr", &record->address) ||
	    !need_number(snapshot, event, "size", &record->bytes) ||
	    !need_number(snapshot, event, "stream", &record->stream))
		return false;
	add_record(snapshot, record);
	return true;
}

/* Versions of PyTorch before 2.2 have no times: they get the event's number. */
static bool read_history(struct snapshot *snapshot, uint64_t device,
			 const struct value *history)
{
	struct record record = { .order = HISTORY + 1 };
	uint64_t first = UINT64_MAX;
	const struct value *event;
	uint64_t number = 0;
	uint32_t item = 0;
	uint64_t time;

	for (; (event = value_next(&snapshot->values, history, &item)); number++) {
		snprintf(snapshot->where, sizeof(snapshot->where),
			 "device_traces[%" PRIu64 "][%" PRIu64 "]", device, number);
		if (!find_number(snapshot, event, "time_us", &time))
			time = number;
		if (first == UINT64_MAX)
			first = time;
		/* The order of the events counts, should a clock go back. */
		if (time > first && time - first > record.time)
			record.time = time - first;
		if (!read_event(snapshot, event, &record))
			return false;
		record.order += 2;
	}
	snapshot->conversion->sources = number;
	return true;
}

/* A block that is being freed counts, as nothing else can use its memory. */
static bool read_block(struct snapshot *snapshot, const struct value *block,
		       uint64_t *address, uint64_t stream)
{
	struct record record = {
		.order = UINT64_MAX,
		.stream = stream,
		.kind = RECORD_BLOCK,
	};
	uint64_t size;

	if (!need_number(snapshot, block, "size", &size))
		return false;
	/* Versions of PyTorch before 2.1 have neither address nor requested size. */
	find_number(snapshot, block, "address", address);
	record.address = *address;
	record.bytes = size;
	find_number(snapshot, block, "requested_size", &record.bytes);
	*address += size;
	if (begins(value_get(&snapshot->values, block, "state"), "active_"))
		add_record(snapshot, &record);
	return true;
}

static bool read_segment(struct snapshot *snapshot, const struct value *segment,
			 uint64_t number, size_t *blocks_read)
{
	const struct value *blocks = value_get(&snapshot->values, segment, "blocks");
	const struct value *block;
	uint64_t address;
	uint64_t stream;
	uint32_t item = 0;
	uint64_t i;

	if (!need_number(snapshot, segment, "address", &address) ||
	    !need_number(snapshot, segment, "stream", &stream))
		return false;
	if (!is_value_list(blocks))
		return convert_fail(snapshot->conversion->error,
				    "%s has no list 'blocks'", snapshot->where);
	for (i = 0; (block = value_next(&snapshot->values, blocks, &item)); i++) {
		snprintf(snapshot->where, sizeof(snapshot->where),
			 "segments[%" PRIu64 "]['blocks'][%" PRIu64 "]", number, i);
		/* Otherwise a short file could name one list many times. */
		if (++*blocks_read > snapshot->values.count)
			return convert_fail(snapshot->conversion->error,
					    "%s is in several segments",
					    snapshot->where);
		if (!read_block(snapshot, block, &address, stream))
			return false;
	}
	return true;
}

/*
 * Whether the memory of a device is wanted. Without --index the device of the
 * first memory is, and another one with memory is an error.
 */
static bool is_wanted(struct snapshot *snapshot, uint64_t device, bool *wanted)
{
	if (snapshot->index < 0) {
		snapshot->only = true;
		snapshot->index = (int64_t)(device & INT64_MAX);
	}
	*wanted = device == (uint64_t)snapshot->index;
	if (!*wanted && snapshot->only)
		return convert_fail(snapshot->conversion->error,
				    "devices %" PRIi64 " and %" PRIu64 " have memory: choose one with --index",
				    snapshot->index, device);
	return true;
}

static bool read_histories(struct snapshot *snapshot, const struct value *traces)
{
	const struct value *history;
	uint64_t device = 0;
	uint32_t item = 0;
	bool wanted;

	for (; (history = value_next(&snapshot->values, traces, &item)); device++) {
		if (!is_value_list(history) || !history->count)
			continue;
		if (!is_wanted(snapshot, device, &wanted) ||
		    (wanted && !read_history(snapshot, device, history)))
			return false;
	}
	return true;
}

static bool read_segments(struct snapshot *snapshot, const struct value *segments)
{
	const struct value *segment;
	size_t blocks_read = 0;
	uint64_t number = 0;
	uint32_t item = 0;
	uint64_t device;
	bool wanted;

	for (; (segment = value_next(&snapshot->values, segments, &item)); number++) {
		snprintf(snapshot->where, sizeof(snapshot->where),
			 "segments[%" PRIu64 "]", number);
		if (!need_number(snapshot, segment, "device", &device) ||
		    !is_wanted(snapshot, device, &wanted) ||
		    (wanted && !read_segment(snapshot, segment, number, &blocks_read)))
			return false;
	}
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct record *first = a;
	const struct record *second = b;

	if (first->address != second->address)
		return first->address < second->address ? -1 : 1;
	return first->order < second->order ? -1 : first->order > second->order;
}

/*
 * Finds the allocation of each free: the last one at its address. If an address
 * begins with a free or a block, the memory was allocated before the history.
 * Gaps in the middle come from a history that was switched off for a while.
 */
static void pair_records(struct conversion *conversion,
			 const struct record *record, size_t count)
{
	const struct record *end = record + count;
	uint32_t live = NONE;
	bool is_first = true;

	for (; record < end; record++) {
		if (!is_first && record->address != record[-1].address) {
			is_first = true;
			live = NONE;
		}
		if (record->kind == RECORD_ALLOC) {
			if (live != NONE) {
				convert_free(conversion, record->time,
					     record->order - 1, live);
				conversion->lost++;
			}
			live = convert_alloc(conversion, record->time, record->order,
					     record->bytes, record->stream);
		} else if (live == NONE && is_first) {
			live = convert_alloc(conversion, 0, conversion->before++,
					     record->bytes, record->stream);
		} else if (live == NONE) {
			conversion->left_out++;
		}
		if (record->kind == RECORD_FREE && live != NONE) {
			convert_free(conversion, record->time, record->order, live);
			live = NONE;
		}
		is_first = false;
	}
}

static bool convert_values(struct snapshot *snapshot, uint32_t root)
{
	const struct value *dict = &snapshot->values.values[root];
	const struct value *traces = value_get(&snapshot->values, dict, "device_traces");
	const struct value *segments = value_get(&snapshot->values, dict, "segments");

	if (!is_value_list(traces) || !is_value_list(segments))
		return convert_fail(snapshot->conversion->error,
				    "not a memory snapshot: it has no lists 'device_traces' and 'segments'");
	if (!read_histories(snapshot, traces) || !read_segments(snapshot, segments))
		return false;
	if (!snapshot->count)
		return convert_fail(snapshot->conversion->error,
				    "the snapshot has no allocations");
	qsort(snapshot->records, snapshot->count, sizeof(*snapshot->records),
	      by_address);
	pair_records(snapshot->conversion, snapshot->records, snapshot->count);
	return true;
}

/*
 * Makes the values that a pickle of the JSON has. Returns false if it nests too
 * deep. jansson reads no JSON that would be too deep for this recursion.
 */
static bool values_of_json(struct values *values, const json_t *json,
			   uint32_t *number)
{
	json_int_t integer = json_integer_value(json);
	const char *key;
	json_t *member;
	uint32_t below;
	size_t i;

	if (json_is_string(json)) {
		*number = value_add_text(values, json_string_value(json),
					 json_string_length(json));
	} else if (json_is_integer(json) && integer >= 0) {
		*number = value_add(values, VALUE_NUMBER, (uint64_t)integer);
	} else if (json_is_array(json)) {
		*number = value_add(values, VALUE_LIST, 0);
		json_array_foreach(json, i, member) {
			if (!values_of_json(values, member, &below) ||
			    !value_append(values, *number, below))
				return false;
		}
	} else if (json_is_object(json)) {
		*number = value_add(values, VALUE_DICT, 0);
		json_object_foreach((json_t *)json, key, member) {
			value_append(values, *number,
				     value_add_text(values, key, strlen(key)));
			if (!values_of_json(values, member, &below) ||
			    !value_append(values, *number, below))
				return false;
		}
	} else {
		*number = value_add(values, VALUE_OTHER, 0);
	}
	return true;
}

static bool clear(struct snapshot *snapshot, bool good)
{
	values_free(&snapshot->values);
	free(snapshot->records);
	return good;
}

bool convert_snapshot(struct conversion *conversion, const char *data,
		      size_t length, int64_t index)
{
	struct snapshot snapshot = { .conversion = conversion, .index = index };
	uint32_t root;

	return clear(&snapshot, pickle_read(&snapshot.values, data, length, &root,
					    conversion->error) &&
				convert_values(&snapshot, root));
}

bool convert_snapshot_json(struct conversion *conversion, const json_t *json,
			   int64_t index)
{
	struct snapshot snapshot = { .conversion = conversion, .index = index };
	uint32_t root;
	bool good = values_of_json(&snapshot.values, json, &root);

	if (!good)
		convert_fail(conversion->error, "the JSON nests too deep");
	return clear(&snapshot, good && convert_values(&snapshot, root));
}
