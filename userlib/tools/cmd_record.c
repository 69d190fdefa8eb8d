// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * flexmem record: makes a trace of the histories of caches, one of each process,
 * that 'flexmem replay --exact' compares with another run.
 *
 * The order of the events of one process is certain, that of several is only that of
 * their times. The driver serves calls at the same time, and each takes a while, so
 * where it has put memory does not follow from the order. So the trace has what
 * the driver gave to each cache, and what it got back.
 */
#include "render.h"
#include "tool.h"
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"

#define NONE UINT32_MAX

/*
 * An allocation, a free, or an allocation that failed; or memory that the driver
 * gave or got back. @process counts from 0.
 */
struct event {
	enum {
		EVENT_ALLOC,
		EVENT_FREE,
		EVENT_FAILED,
		EVENT_GIVEN,
		EVENT_RETURNED,
	} kind;
	uint32_t process;
	uint32_t allocation;
	uint64_t time;
	uint64_t number;
	uint64_t address;
	uint64_t bytes;
	uint64_t stream;
	uint64_t region_id;
	uint64_t offset;
	uint64_t size;
	uint32_t tag;
};

/*
 * @tags: an object with the number of each tag, from 1 on, in their order.
 * @error: why the file that is being read cannot be recorded.
 */
struct record {
	struct tool *tool;
	const char *output;
	char **files;
	uint32_t processes;
	json_t **snapshots;
	json_t *tags;
	struct event *events;
	size_t count;
	size_t room;
	uint32_t allocations;
	uint64_t segments; /* bytes that came less those that went, in a history */
	size_t memories; /* events of memory that the driver gave or got back */
	uint64_t live;
	uint64_t failed;
	char error[PATH_MAX + 300];
};

static bool fail(struct record *record, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool fail(struct record *record, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(record->error, sizeof(record->error), format, arguments);
	va_end(arguments);
	return false;
}

/* ---- input ---- */

/* Whether @event, which is the number @index of its history, has a number. */
static bool need(struct record *record, const json_t *event, size_t index,
		 const char *key, uint64_t *number)
{
	const json_t *value = json_object_get(event, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return fail(record, "entry %zu of its history has no '%s' that is a number from 0 on",
			    index + 1, key);
	*number = (uint64_t)json_integer_value(value);
	return true;
}

static void add_event(struct record *record, const struct event *event)
{
	if (record->count == record->room) {
		record->room = record->room ? 2 * record->room : 4096;
		record->events = grow(record->events, record->room,
				      sizeof(*record->events));
	}
	record->events[record->count++] = *event;
}

/* The name of the first frame is the tag, or the function that has allocated. */
static uint32_t number_of_tag(struct record *record, const json_t *event)
{
	const json_t *frame = json_array_get(json_object_get(event, "frames"), 0);
	const char *name = json_string_value(json_object_get(frame, "name"));
	const json_t *number;

	if (!name || !*name)
		return 0;
	number = json_object_get(record->tags, name);
	if (number)
		return (uint32_t)json_integer_value(number);
	json_add(record->tags, name,
		 json_number(json_object_size(record->tags) + 1));
	return (uint32_t)json_object_size(record->tags);
}

/* Whether the event has a place, which it notes. */
static bool need_place(struct record *record, const json_t *json, size_t index,
		       struct event *event)
{
	return need(record, json, index, "addr", &event->address) &&
	       need(record, json, index, "size", &event->size) &&
	       need(record, json, index, "region_id", &event->region_id) &&
	       need(record, json, index, "offset", &event->offset);
}

/* Adds what the driver gave or got back, and counts the bytes of the segments. */
static bool add_memory(struct record *record, const json_t *json, size_t index,
		       struct event *event)
{
	if (!need_place(record, json, index, event))
		return false;
	if (event->kind == EVENT_GIVEN)
		record->segments += event->size;
	else
		record->segments -= event->size;
	record->memories++;
	add_event(record, event);
	return true;
}

static bool find_kind(const char *action, struct event *event)
{
	static const struct { const char *action; int kind; } kinds[] = {
		{ "alloc", EVENT_ALLOC },
		{ "free_completed", EVENT_FREE },
		{ "oom", EVENT_FAILED },
		{ "segment_alloc", EVENT_GIVEN },
		{ "segment_map", EVENT_GIVEN },
		{ "segment_free", EVENT_RETURNED },
		{ "segment_unmap", EVENT_RETURNED },
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(action, kinds[i].action)) {
			event->kind = kinds[i].kind;
			return true;
		}
	}
	return false;
}

/* Memory can be used again from free_completed on, not from free_requested on. */
static bool add_entry(struct record *record, const json_t *json, size_t index,
		       struct event *event)
{
	const char *action = json_string_value(json_object_get(json, "action"));
	uint64_t pool;

	if (!action)
		return fail(record, "entry %zu of its history has no 'action'",
			    index + 1);
	if (!find_kind(action, event))
		return true;
	if (event->kind == EVENT_GIVEN || event->kind == EVENT_RETURNED)
		return add_memory(record, json, index, event);
	if (!need(record, json, index, "requested_size", &event->bytes) ||
	    !need(record, json, index, "stream", &event->stream) ||
	    !need(record, json, index, "pool", &pool))
		return false;
	if (pool)
		return fail(record, "entry %zu of its history is in private pool %" PRIu64 "; a replay has none",
			    index + 1, pool);
	if (event->kind != EVENT_FAILED &&
	    !need_place(record, json, index, event))
		return false;
	if (event->kind != EVENT_FREE)
		event->tag = number_of_tag(record, json);
	add_event(record, event);
	return true;
}

/* The clock may go back, but the order of the events counts. */
static bool add_history(struct record *record, uint32_t process,
			 const json_t *history)
{
	struct event event = { .process = process };
	const json_t *json;
	uint64_t number;
	uint64_t time;
	size_t i;

	record->segments = 0;
	json_array_foreach(history, i, json) {
		event = (struct event){ .process = process, .time = event.time };
		if (!need(record, json, i, "number", &number) ||
		    !need(record, json, i, "time_us", &time))
			return false;
		if (!i && number != 1)
			return fail(record, "its history lacks the first %" PRIu64 " events: history_entries was too small",
				    number - 1);
		if (number != i + 1)
			return fail(record, "its history has gaps; a snapshot of all pools has none");
		event.number = number;
		event.time = time > event.time ? time : event.time;
		if (!add_entry(record, json, i, &event))
			return false;
	}
	return true;
}

/* The history of the device that has one. A trace has the memory of one device. */
static const json_t *find_history(struct record *record, const json_t *snapshot)
{
	const json_t *traces = json_object_get(snapshot, "device_traces");
	const json_t *history, *found = NULL;
	size_t i;

	json_array_foreach(traces, i, history) {
		if (!json_array_size(history))
			continue;
		if (found) {
			fail(record, "it has the histories of several devices, and a trace is of one");
			return NULL;
		}
		found = history;
	}
	if (!found)
		fail(record, "it has no history: set history_entries before the first allocation");
	return found;
}

/* A cache that had memory before its history began may put allocations there. */
static bool check_segments(struct record *record, const json_t *snapshot)
{
	const json_t *segment;
	uint64_t size = 0;
	size_t i;

	json_array_foreach(json_object_get(snapshot, "segments"), i, segment)
		size += (uint64_t)json_integer_value(
				json_object_get(segment, "total_size"));
	if (size != record->segments)
		return fail(record, "its segments have %" PRIu64 " bytes, but %" PRIu64
			    " by its history: set history_entries before the first allocation",
			    size, record->segments);
	return true;
}

/* A file that is being read. */
struct input {
	gzFile file;
	struct progress progress;
};

/* Reads a part of a file for json_load_callback(). */
static size_t read_part(void *buffer, size_t length, void *user)
{
	struct input *input = user;
	int count = gzread(input->file, buffer, (unsigned int)length);

	progress_update(&input->progress, (uint64_t)gzoffset(input->file));
	return count < 0 ? (size_t)-1 : (size_t)count;
}

/* Returns the JSON of a file, plain or compressed, or NULL. */
static json_t *read_json(struct record *record, const char *path)
{
	struct input input;
	const char *text;
	json_t *json = NULL;
	json_error_t error;
	uint64_t size;
	int err;

	input.file = trace_open(path, &size);
	if (!input.file) {
		fail(record, "%s", strerror(errno));
		return NULL;
	}
	progress_begin(&input.progress, stderr, "reading", size);
	json = json_load_callback(read_part, &input, 0, &error);
	progress_end(&input.progress);
	if (!json) {
		text = trace_failure(input.file, &err);
		if (text)
			fail(record, "%s", text);
		else
			fail(record, "no JSON: line %d: %s", error.line, error.text);
	}
	gzclose(input.file);
	return json;
}

static bool read_snapshot(struct record *record, uint32_t process)
{
	json_t *snapshot = read_json(record, record->files[process]);
	const json_t *history;

	record->snapshots[process] = snapshot;
	if (!snapshot)
		return false;
	if (!json_is_array(json_object_get(snapshot, "segments")) ||
	    !json_is_array(json_object_get(snapshot, "device_traces")))
		return fail(record, "not a memory snapshot: it has no lists 'device_traces' and 'segments'");
	history = find_history(record, snapshot);
	return history && add_history(record, process, history) &&
	       check_segments(record, snapshot);
}

/* ---- pairs of allocations and frees ---- */

static int by_address(const void *a, const void *b)
{
	const struct event *one = a, *other = b;

	if (one->process != other->process)
		return one->process < other->process ? -1 : 1;
	if (one->address != other->address)
		return one->address < other->address ? -1 : 1;
	return (one->number > other->number) - (one->number < other->number);
}

static int by_time(const void *a, const void *b)
{
	const struct event *one = a, *other = b;

	if (one->time != other->time)
		return one->time < other->time ? -1 : 1;
	if (one->process != other->process)
		return one->process < other->process ? -1 : 1;
	return (one->number > other->number) - (one->number < other->number);
}

static void sort(struct record *record,
		 int (*order)(const void *a, const void *b))
{
	if (record->count)
		qsort(record->events, record->count, sizeof(*record->events),
		      order);
}

/* The number of blocks of a snapshot that are not free. */
static uint64_t count_blocks(const json_t *snapshot)
{
	const json_t *segment, *block;
	const char *state;
	uint64_t count = 0;
	size_t i, j;

	json_array_foreach(json_object_get(snapshot, "segments"), i, segment) {
		json_array_foreach(json_object_get(segment, "blocks"), j, block) {
			state = json_string_value(json_object_get(block, "state"));
			count += state && !strncmp(state, "active_", 7);
		}
	}
	return count;
}

/*
 * Finds the allocation of each free: the one before, at the same address.
 * @live: how many allocations of each process are not freed.
 */
static bool find_pairs(struct record *record, uint64_t *live)
{
	const struct event *before;
	struct event *event;
	size_t i;

	sort(record, by_address);
	for (i = 0; i < record->count; i++) {
		event = &record->events[i];
		event->allocation = NONE;
		if (event->kind == EVENT_FAILED)
			record->failed++;
		if (event->kind != EVENT_ALLOC && event->kind != EVENT_FREE)
			continue;
		if (event->kind == EVENT_ALLOC) {
			event->allocation = record->allocations++;
			live[event->process]++;
			continue;
		}
		before = i ? event - 1 : event;
		if (before->kind != EVENT_ALLOC ||
		    before->process != event->process ||
		    before->address != event->address)
			return fail(record, "%s: event %" PRIu64 " of its history frees memory that was allocated before",
				    record->files[event->process],
				    event->number);
		event->allocation = before->allocation;
		live[event->process]--;
	}
	return true;
}

static bool check_live(struct record *record, const uint64_t *live)
{
	uint64_t blocks;
	uint32_t i;

	for (i = 0; i < record->processes; i++) {
		blocks = count_blocks(record->snapshots[i]);
		if (blocks != live[i])
			return fail(record, "%s: %" PRIu64 " blocks are allocated, but %" PRIu64 " by its history",
				    record->files[i], blocks, live[i]);
		record->live += live[i];
	}
	return true;
}

static bool read_all(struct record *record)
{
	char error[sizeof(record->error)];
	uint64_t *live;
	uint32_t i;
	bool good;

	for (i = 0; i < record->processes; i++) {
		if (read_snapshot(record, i))
			continue;
		memcpy(error, record->error, sizeof(error));
		return fail(record, "%s: %.200s", record->files[i], error);
	}
	live = grow(NULL, record->processes, sizeof(*live));
	memset(live, 0, record->processes * sizeof(*live));
	good = find_pairs(record, live) && check_live(record, live);
	free(live);
	sort(record, by_time);
	return good;
}

/* ---- output ---- */

static bool is_plain(const char *text)
{
	char *escaped = escaped_text(text);
	bool plain = !strcmp(escaped, text);

	free(escaped);
	return plain;
}

/* A setting that is off has no value that a configuration may have. */
static void write_settings(const struct record *record, gzFile file)
{
	const char *key, *text;
	json_t *value;
	uint32_t i;

	for (i = 0; i < record->processes; i++) {
		json_object_foreach(json_object_get(record->snapshots[i],
						    "allocator_settings"),
				    key, value) {
			text = json_string_value(value);
			if (!text || !strcmp(text, "off") ||
			    !strcmp(key, "history_entries") ||
			    !is_plain(key) || !is_plain(text))
				continue;
			gzprintf(file, TRACE_SETTING "%" PRIu32 " %s:%s\n",
				 i + 1, key, text);
		}
	}
}

/* Cuts a tag to whole characters. A backslash stays, because the cache has escaped it. */
static void tag_text(const char *name, char text[TRACE_TAG_MAX + 1])
{
	char escaped[FMLIB_ESCAPED_MAX];
	size_t left = strlen(name);
	size_t length = 0;
	size_t size;

	for (; left; name += size, left -= size) {
		size = fmlib_escape(name, left, escaped);
		if (*name == '\\')
			strcpy(escaped, "\\");
		if (length + strlen(escaped) > TRACE_TAG_MAX)
			break;
		strcpy(text + length, escaped);
		length += strlen(escaped);
	}
}

static void write_tags(const struct record *record, gzFile file)
{
	char text[TRACE_TAG_MAX + 1];
	const char *name;
	json_t *number;

	json_object_foreach(record->tags, name, number) {
		tag_text(name, text);
		gzprintf(file, TRACE_TAG "%" JSON_INTEGER_FORMAT " %s\n",
			 json_integer_value(number), text);
	}
}

/* The ids count the allocations in the order of the trace. */
static void write_events(const struct record *record, gzFile file)
{
	const struct event *event = record->events;
	const struct event *end = event + record->count;
	uint64_t *ids = grow(NULL, record->allocations, sizeof(*ids));
	uint64_t begin = record->count ? event->time : 0;
	struct progress progress;
	uint64_t id = 0;

	progress_begin(&progress, stderr, "writing", record->count);
	for (; event < end; event++) {
		progress_update(&progress, (uint64_t)(event - record->events));
		gzprintf(file, "%" PRIu64 " ", event->time - begin);
		switch (event->kind) {
		case EVENT_ALLOC:
			ids[event->allocation] = ++id;
			gzprintf(file, "a %" PRIu64 " %" PRIu64 " %" PRIu64
				 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64
				 " %" PRIu64 " %" PRIu32 "\n", id, event->bytes,
				 event->stream, event->process + 1,
				 event->number, event->region_id,
				 event->offset, event->size, event->tag);
			break;
		case EVENT_FREE:
			gzprintf(file, "f %" PRIu64 " %" PRIu32 " %" PRIu64 "\n",
				 ids[event->allocation], event->process + 1,
				 event->number);
			break;
		case EVENT_FAILED:
			gzprintf(file, "x %" PRIu64 " %" PRIu64 " %" PRIu32
				 " %" PRIu64 " %" PRIu32 "\n", event->bytes,
				 event->stream, event->process + 1,
				 event->number, event->tag);
			break;
		case EVENT_GIVEN:
		case EVENT_RETURNED:
			gzprintf(file, "%c %" PRIu32 " %" PRIu64 " %" PRIu64
				 " %" PRIu64 " %" PRIu64 "\n",
				 event->kind == EVENT_GIVEN ? 'g' : 'r',
				 event->process + 1, event->number,
				 event->region_id, event->offset, event->size);
			break;
		}
	}
	progress_end(&progress);
	free(ids);
}

static int write_trace(const struct record *record)
{
	struct trace_output output = { 0 };
	int err = trace_create(&output, record->output);

	if (err)
		return err;
	gzprintf(output.file, "# flexmem-trace 2\n"
		 "# recorded from the histories of caches; processes: %" PRIu32 "\n"
		 "# times are microseconds since the first event\n",
		 record->processes);
	write_settings(record, output.file);
	write_tags(record, output.file);
	write_events(record, output.file);
	return trace_close(&output);
}

static void print_summary(const struct record *record)
{
	char *name = escaped_text(record->output);

	printf("%s: %zu events of %" PRIu32 " process%s, %" PRIu32 " allocations, %" PRIu64 " live at the end, %" PRIu64 " failed\n",
	       name, record->count - record->memories, record->processes,
	       record->processes == 1 ? "" : "es", record->allocations,
	       record->live, record->failed);
	free(name);
}

static json_t *summary_json(const struct record *record)
{
	json_t *object = json_checked(json_object());

	json_add(object, "output", json_text(record->output));
	json_add(object, "processes", json_number(record->processes));
	json_add(object, "events",
		 json_number(record->count - record->memories));
	json_add(object, "allocations", json_number(record->allocations));
	json_add(object, "live_at_end", json_number(record->live));
	json_add(object, "failures", json_number(record->failed));
	return object;
}

/* ---- the command ---- */

static enum tool_status run(struct record *record)
{
	int err;

	if (!read_all(record))
		return tool_fail(record->tool, -EINVAL, "%s", record->error);
	err = write_trace(record);
	if (err)
		return file_error(record->tool, err, record->output ?
				  record->output : "standard output");
	if (record->tool->json)
		json_print(record->tool, summary_json(record));
	else if (record->output)
		print_summary(record);
	return TOOL_OK;
}

enum tool_status cmd_record(struct tool *tool, int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		COMMON_OPTIONS
	};
	struct record record = { .tool = tool };
	enum tool_status status;
	int option;
	uint32_t i;

	while ((option = next_option(tool, argc, argv, options)) != OPTION_END) {
		if (option != 'o')
			return option_status(option);
		record.output = optarg;
	}
	if (optind == argc)
		return usage_error(tool, "at least one SNAPSHOT is needed");
	if (argc - optind > TRACE_PROCESSES_MAX)
		return usage_error(tool, "more than %d files",
				   TRACE_PROCESSES_MAX);
	if (tool->json && !record.output)
		return usage_error(tool, "--json needs --output, because the trace is no JSON");
	record.files = argv + optind;
	record.processes = (uint32_t)(argc - optind);
	record.snapshots = grow(NULL, record.processes,
				sizeof(*record.snapshots));
	memset(record.snapshots, 0,
	       record.processes * sizeof(*record.snapshots));
	record.tags = json_checked(json_object());
	status = run(&record);
	json_decref(record.tags);
	for (i = 0; i < record.processes; i++)
		json_decref(record.snapshots[i]);
	free(record.snapshots);
	free(record.events);
	return status;
}
