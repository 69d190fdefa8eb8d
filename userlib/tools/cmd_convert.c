// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem convert: options, the kind of a file, and the trace that is written. */
#include "convert.h"
#include "render.h"
#include "tool.h"
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "human.h"

#define MOST_RATE 1000000000

/*
 * @data: the file, and a NUL behind it. The members after @data are results.
 */
struct converter {
	struct tool *tool;
	const char *path;
	const char *output;
	int64_t index;
	struct serving serving;

	char *data;
	size_t length;
	bool is_snapshot;
	struct conversion conversion;
	uint64_t live;
	uint64_t peak_bytes;
	char error[CONVERT_ERROR_MAX];
};

bool convert_fail(char error[CONVERT_ERROR_MAX], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, CONVERT_ERROR_MAX, format, arguments);
	va_end(arguments);
	return false;
}

static struct converted_event *add_event(struct conversion *conversion)
{
	if (conversion->count == conversion->room) {
		conversion->room = conversion->room ? 2 * conversion->room : 4096;
		conversion->events = grow(conversion->events, conversion->room,
					  sizeof(*conversion->events));
	}
	return &conversion->events[conversion->count++];
}

uint32_t convert_alloc(struct conversion *conversion, uint64_t time,
		       uint64_t order, uint64_t bytes, uint64_t stream)
{
	*add_event(conversion) = (struct converted_event){
		.time = time,
		.order = order,
		.bytes = bytes,
		.stream = stream,
		.allocation = conversion->allocations,
	};
	return conversion->allocations++;
}

void convert_free(struct conversion *conversion, uint64_t time, uint64_t order,
		  uint32_t allocation)
{
	*add_event(conversion) = (struct converted_event){
		.time = time,
		.order = order,
		.allocation = allocation,
		.is_free = true,
	};
}

static int in_order(const void *a, const void *b)
{
	const struct converted_event *first = a;
	const struct converted_event *second = b;

	if (first->time != second->time)
		return first->time < second->time ? -1 : 1;
	return first->order < second->order ? -1 : 1;
}

/* ---- input ---- */

/* Reads a file, or standard input, plain or compressed by gzip. */
static bool read_all(struct converter *converter, gzFile file,
		     struct progress *progress)
{
	size_t room = 1 << 16;
	const char *text;
	int count = 0;
	int err;

	do {
		converter->length += (size_t)count;
		progress_update(progress, (uint64_t)gzoffset(file));
		if (converter->length == room)
			room *= 2;
		if (converter->length >= CONVERT_FILE_MAX)
			return convert_fail(converter->error, "the file is 4 GiB long or more");
		converter->data = grow(converter->data, room + 1, 1);
		count = gzread(file, converter->data + converter->length,
			       (unsigned int)(room - converter->length < 1 << 30 ?
					      room - converter->length : 1 << 30));
	} while (count > 0);
	converter->data[converter->length] = '\0';
	text = trace_failure(file, &err);
	return !text || convert_fail(converter->error, "%s", text);
}

static bool convert_serving(struct converter *converter)
{
	if (converter->index >= 0)
		return convert_fail(converter->error, "--index is for snapshots only");
	if (!converter->serving.bytes_per_token)
		return convert_fail(converter->error,
				    "a serving trace needs --bytes-per-token");
	return convert_requests(&converter->conversion, &converter->serving,
				converter->data, converter->length);
}

/* A file of JSON is a snapshot if its first value is one; then it has nothing else. */
static bool convert_json(struct converter *converter)
{
	json_error_t error;
	json_t *json = json_loadb(converter->data, converter->length,
				  JSON_DISABLE_EOF_CHECK, &error);
	size_t end = (size_t)error.position;
	bool good;

	if (!json && !converter->serving.bytes_per_token)
		return convert_fail(converter->error, "no JSON: line %d: %s",
				    error.line, error.text);
	converter->is_snapshot = json_object_get(json, "segments") &&
				 json_object_get(json, "device_traces");
	if (!converter->is_snapshot)
		good = convert_serving(converter);
	else if (end + strspn(converter->data + end, " \t\r\n") < converter->length)
		good = convert_fail(converter->error, "something follows the end of the snapshot");
	else
		good = convert_snapshot_json(&converter->conversion, json,
					     converter->index);
	json_decref(json);
	return good;
}

static bool convert_file(struct converter *converter)
{
	unsigned char first = (unsigned char)converter->data[0];

	if (!converter->length)
		return convert_fail(converter->error, "the file is empty");
	if (first == '{')
		return convert_json(converter);
	converter->is_snapshot = first == 0x80;
	if (converter->is_snapshot)
		return convert_snapshot(&converter->conversion, converter->data,
					converter->length, converter->index);
	if (first <= ' ' || first > '~')
		return convert_fail(converter->error,
				    "neither a pickle of the protocols 2 to 5, nor JSON, nor CSV");
	return convert_serving(converter);
}

/* ---- output ---- */

/* Sorts the events, and finds the sums. Returns false if they do not fit. */
static bool sum_up(struct converter *converter, uint64_t *bytes)
{
	struct conversion *conversion = &converter->conversion;
	struct converted_event *event = conversion->events;
	const struct converted_event *end = event + conversion->count;
	uint64_t live_bytes = 0;

	if (conversion->count)
		qsort(event, conversion->count, sizeof(*event), in_order);
	for (; event < end; event++) {
		if (event->is_free) {
			live_bytes -= bytes[event->allocation];
			converter->live--;
			continue;
		}
		bytes[event->allocation] = event->bytes;
		converter->live++;
		if (__builtin_add_overflow(live_bytes, event->bytes, &live_bytes))
			return convert_fail(converter->error, "more than 2^64 bytes are live");
		if (live_bytes > converter->peak_bytes)
			converter->peak_bytes = live_bytes;
	}
	return true;
}

static void write_comments(const struct converter *converter, gzFile file)
{
	const struct conversion *conversion = &converter->conversion;
	const struct serving *serving = &converter->serving;

	gzprintf(file, "# flexmem-trace 1\n");
	if (converter->is_snapshot)
		gzprintf(file, "# converted from a memory snapshot; events of its history: %" PRIu64 "\n"
			 "# allocations from before the history, which come first: %" PRIu64 "\n"
			 "# frees that the history lacks: %" PRIu64 "; frees and blocks left out: %" PRIu64 "\n"
			 "# times are microseconds since the first event of the history\n",
			 conversion->sources, conversion->before, conversion->lost,
			 conversion->left_out);
	else
		gzprintf(file, "# derived, not recorded: KV cache of the requests of a serving trace: %" PRIu64 "\n"
			 "# %" PRIu64 " bytes a token; the prompt is one allocation, and so are each %" PRIu64 " tokens of output\n"
			 "# prefill %" PRIu64 " tokens/s, decode %" PRIu64 " tokens/s; no request waits\n"
			 "# times are microseconds since the first arrival\n",
			 conversion->sources, serving->bytes_per_token, serving->block,
			 serving->prefill, serving->decode);
}

/* The ids count the allocations in the order of the trace. */
static void write_events(const struct conversion *conversion, gzFile file, uint64_t *ids)
{
	const struct converted_event *event = conversion->events;
	const struct converted_event *end = event + conversion->count;
	struct progress progress;
	uint64_t id = 0;

	progress_begin(&progress, stderr, "writing", conversion->count);
	for (; event < end; event++) {
		progress_update(&progress, (uint64_t)(event - conversion->events));
		if (event->is_free) {
			gzprintf(file, "%" PRIu64 " f %" PRIu64 "\n", event->time,
				 ids[event->allocation]);
			continue;
		}
		ids[event->allocation] = ++id;
		gzprintf(file, "%" PRIu64 " a %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			 event->time, id, event->bytes, event->stream);
	}
	progress_end(&progress);
}

/* Returns 0 or a negative errno. */
static int write_trace(const struct converter *converter, uint64_t *ids)
{
	struct trace_output output = { 0 };
	int err = trace_create(&output, converter->output);

	if (err)
		return err;
	write_comments(converter, output.file);
	write_events(&converter->conversion, output.file, ids);
	return trace_close(&output);
}

static void print_summary(const struct converter *converter)
{
	const struct conversion *conversion = &converter->conversion;
	char *name = escaped_text(converter->output);
	char text[FMLIB_HUMAN_MAX];

	printf("%s: %zu events, %" PRIu32 " allocations, %" PRIu64 " live at the end, peak %s\n",
	       name, conversion->count, conversion->allocations, converter->live,
	       fmlib_human(converter->peak_bytes, text));
	if (conversion->before)
		printf("  from before the history: %" PRIu64 " allocations\n",
		       conversion->before);
	if (conversion->lost || conversion->left_out)
		printf("  the history has gaps: it lacks %" PRIu64 " frees; %" PRIu64 " frees and blocks were left out\n",
		       conversion->lost, conversion->left_out);
	free(name);
}

static json_t *summary_json(const struct converter *converter)
{
	const struct conversion *conversion = &converter->conversion;
	json_t *object = json_checked(json_object());

	json_add(object, "file", json_text(converter->path));
	json_add(object, "output", json_text(converter->output));
	json_add(object, "source", json_string(converter->is_snapshot ?
					       "snapshot" : "requests"));
	json_add(object, "source_events", json_number(conversion->sources));
	json_add(object, "events", json_number(conversion->count));
	json_add(object, "allocations", json_number(conversion->allocations));
	json_add(object, "live_at_end", json_number(converter->live));
	json_add(object, "peak_live_bytes", json_number(converter->peak_bytes));
	json_add(object, "before_history", json_number(conversion->before));
	json_add(object, "lost_frees", json_number(conversion->lost));
	json_add(object, "left_out", json_number(conversion->left_out));
	return object;
}

/* ---- the command ---- */

static enum tool_status convert(struct converter *converter)
{
	struct progress progress;
	uint64_t *numbers;
	uint64_t size;
	gzFile file;
	bool good;
	int err;

	errno = 0;
	file = trace_open(converter->path, &size);
	if (!file)
		return file_error(converter->tool, errno ? -errno : -ENOMEM,
				  converter->path);
	progress_begin(&progress, stderr, "reading", size);
	good = read_all(converter, file, &progress);
	progress_end(&progress);
	good = good && convert_file(converter);
	gzclose(file);
	numbers = grow(NULL, converter->conversion.allocations, sizeof(*numbers));
	good = good && sum_up(converter, numbers);
	err = good ? write_trace(converter, numbers) : 0;
	free(numbers);
	if (!good)
		return tool_fail(converter->tool, -EINVAL, "%s: %s", converter->path,
				 converter->error);
	if (err)
		return file_error(converter->tool, err, converter->output ?
				  converter->output : "standard output");
	if (converter->tool->json)
		json_print(converter->tool, summary_json(converter));
	else if (converter->output)
		print_summary(converter);
	return TOOL_OK;
}

static bool parse_rate(uint64_t most, uint64_t *number)
{
	return parse_number(optarg, most, number) && *number;
}

static bool set_option(struct converter *converter, int option)
{
	struct serving *serving = &converter->serving;
	uint64_t number = 0;

	switch (option) {
	case 'o':
		converter->output = optarg;
		return true;
	case 'i':
		if (!parse_number(optarg, UINT32_MAX, &number))
			return false;
		converter->index = (int64_t)number;
		return true;
	case 'b':
		return parse_size(optarg, &serving->bytes_per_token) &&
		       serving->bytes_per_token &&
		       serving->bytes_per_token <= MOST_RATE;
	case 't':
		return parse_rate(MOST_RATE, &serving->block);
	case 'p':
		return parse_rate(MOST_RATE, &serving->prefill);
	case 'g':
		return parse_rate(MOST_RATE, &serving->decode);
	case 'c':
		serving->columns = optarg;
		return true;
	default:
		serving->ticks = !strcmp(optarg, "s") ? 1 : !strcmp(optarg, "ms") ? 1000 :
				 !strcmp(optarg, "us") ? 1000000 : 0;
		return serving->ticks;
	}
}

static bool convert_arguments(struct converter *converter, int argc, char **argv,
			      enum tool_status *status)
{
	static const struct option known[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "index", required_argument, NULL, 'i' },
		{ "bytes-per-token", required_argument, NULL, 'b' },
		{ "block-tokens", required_argument, NULL, 't' },
		{ "prefill", required_argument, NULL, 'p' },
		{ "decode", required_argument, NULL, 'g' },
		{ "columns", required_argument, NULL, 'c' },
		{ "time-unit", required_argument, NULL, 'u' },
		COMMON_OPTIONS
	};
	struct tool *tool = converter->tool;
	int option;

	*status = TOOL_USAGE;
	while ((option = next_option(tool, argc, argv, known)) != OPTION_END) {
		if (!strchr("oibtpgcu", option)) {
			*status = option_status(option);
			return false;
		}
		if (!set_option(converter, option)) {
			usage_error(tool, "'%s' is no value of that option", optarg);
			return false;
		}
	}
	if (optind + 1 != argc)
		usage_error(tool, "one FILE is needed");
	else if (tool->json && !converter->output)
		usage_error(tool, "--json needs --output, because the trace is no JSON");
	else
		converter->path = argv[optind];
	return converter->path;
}

enum tool_status cmd_convert(struct tool *tool, int argc, char **argv)
{
	struct converter converter = {
		.tool = tool,
		.index = -1,
		.serving = { .block = 16, .prefill = 10000, .decode = 30, .ticks = 1 },
	};
	enum tool_status status;

	converter.conversion.error = converter.error;
	if (convert_arguments(&converter, argc, argv, &status))
		status = convert(&converter);
	free(converter.conversion.events);
	free(converter.data);
	return status;
}
