// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * flexmem map: draws the addresses of a device or of a trace: those that were recorded,
 * or those that a cache gives in a replay.
 */
#include "tool.h"
#include "aside.h"
#include "map_device.h"
#include "picture.h"
#include "replay.h"
#include "trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLAT_BYTES (UINT64_C(64) << 30)
#define SECONDS 10
#define MOST_SECONDS 86400
#define NONE SIZE_MAX

/* @source: the trace; NULL: the device. @by: what the colours tell. */
struct job {
	struct tool *tool;
	const char *source;
	const char *configuration;
	const char *by;
	uint64_t flat_bytes; /* 0: FLAT_BYTES */
	uint64_t seconds;
	bool timed;
	bool image;
	struct trace trace;
	struct map map;
	char reason[TOOL_TEXT_MAX]; /* of the first failure */
	size_t *box_of; /* by allocation */
};

static struct map_group group_of(const struct job *job, size_t event)
{
	const struct trace_exact *exact = job->trace.exact;

	return (struct map_group){
		.process = exact ? exact[event].process : 0,
		.key = job->map.tags ? exact[event].tag :
				       job->trace.events[event].stream,
	};
}

static void add_box(struct job *job, size_t event, uint64_t region_id,
		    uint64_t address, uint64_t size)
{
	struct map *map = &job->map;

	job->box_of[job->trace.events[event].allocation] = map->count;
	map->boxes[map->count++] = (struct map_box){
		.begin = event,
		.end = job->trace.count,
		.region_id = region_id,
		.address = address,
		.size = size,
		.from = job->trace.events[event].line,
		.group = group_of(job, event),
	};
}

static void end_box(struct job *job, size_t event)
{
	size_t box = job->box_of[job->trace.events[event].allocation];

	if (box != NONE)
		job->map.boxes[box].end = event;
}

static void note(void *user, const struct trace_event *event,
		 const struct flexmem_cache_allocation *made)
{
	struct job *job = user;
	size_t number = (size_t)(event - job->trace.events);

	if (made)
		add_box(job, number, made->address.region_id,
			made->address.offset, made->size);
	else
		end_box(job, number);
}

static void add_failure(struct job *job, size_t event)
{
	struct map *map = &job->map;

	map->failures = grow(map->failures, map->failure_count + 1,
			     sizeof(*map->failures));
	map->failures[map->failure_count++] = (struct map_failure){
		.event = event,
		.bytes = job->trace.events[event].bytes,
		.from = job->trace.events[event].line,
		.group = group_of(job, event),
	};
}

/* What the replay could not allocate has no box. */
static void keep_failures(struct job *job, const struct replay *replay)
{
	const struct replay_failure *first = &replay->first;
	const struct trace_event *event;
	size_t i;

	for (i = 0; i < job->trace.count; i++) {
		event = &job->trace.events[i];
		if (!event->is_free && event->bytes &&
		    job->box_of[event->allocation] == NONE)
			add_failure(job, i);
	}
	if (!first->happened || first->is_free)
		return;
	flexmem_cache_error_text(first->error, &first->details,
				 sizeof(first->details), job->reason,
				 sizeof(job->reason));
	job->map.failures[0].reason = job->reason;
}

/* A recorded trace has the addresses. */
static void take_recorded(struct job *job)
{
	const struct trace_exact *exact;
	size_t i;

	for (i = 0; i < job->trace.count; i++) {
		exact = &job->trace.exact[i];
		if (exact->fails)
			add_failure(job, i);
		else if (job->trace.events[i].is_free)
			end_box(job, i);
		else
			add_box(job, i, exact->region_id, exact->offset,
				exact->size);
	}
}

static int replay_trace(struct job *job)
{
	const struct replay_provider provider = {
		.flat_bytes = job->flat_bytes ? job->flat_bytes : FLAT_BYTES,
		.note = note,
		.user = job,
	};
	struct replay_cache result;
	struct progress progress;
	struct replay replay;
	int err;

	progress_begin(&progress, stderr, "map", job->trace.count);
	err = replay_cache(&replay, &result, &provider, job->configuration,
			   &job->trace, true, &progress);
	progress_end(&progress);
	replay_cache_free(&result);
	if (!err)
		keep_failures(job, &replay);
	return err;
}

static int make_map(struct job *job)
{
	size_t allocations = job->trace.allocations;
	size_t i;

	job->map.boxes = grow(NULL, allocations, sizeof(*job->map.boxes));
	job->box_of = grow(NULL, allocations, sizeof(*job->box_of));
	for (i = 0; i < allocations; i++)
		job->box_of[i] = NONE;
	job->map.events = job->trace.count;
	job->map.processes = job->trace.processes;
	if (!job->by || !strcmp(job->by, "tag"))
		job->map.tags = job->trace.tags;
	if (!job->trace.exact)
		return replay_trace(job);
	take_recorded(job);
	return 0;
}

static void write_map(FILE *file, void *user)
{
	const struct job *job = user;

	if (job->image)
		map_write_svg(file, &job->map);
	else
		map_write_page(file, &job->map);
}

static enum tool_status make_trace_map(struct job *job)
{
	const char *slash = strrchr(job->source, '/');
	char text[TRACE_ERROR_MAX];
	int err;

	err = trace_read(&job->trace, job->source, text);
	if (err)
		return tool_fail(job->tool, err, "%s: %s", job->source, text);
	if (job->trace.exact && (job->configuration || job->flat_bytes))
		return tool_fail(job->tool, -EINVAL, "%s: the trace has addresses, so it is not replayed with --config or --addresses",
				 job->source);
	job->map.name = slash ? slash + 1 : job->source;
	job->map.source = "line";
	err = make_map(job);
	return err ? tool_error(job->tool, err, NULL, "%s", job->source) :
		     TOOL_OK;
}

static enum tool_status make_device_map(struct job *job)
{
	enum tool_status status = tool_open(job->tool);

	if (status)
		return status;
	job->map.name = flexmem_device_path(job->tool->device);
	return map_device(job->tool, job->seconds, &job->map);
}

static enum tool_status make(struct job *job)
{
	enum tool_status status = job->source ? make_trace_map(job) :
						make_device_map(job);

	if (!status)
		map_arrange(&job->map);
	return status;
}

/* The file is begun before a recording of hours, which an error then would lose. */
static enum tool_status make_file(struct job *job, const char *path)
{
	struct aside aside = { 0 };
	int fd = aside_begin_own(&aside, path);
	enum tool_status status;
	int err;

	if (fd < 0)
		return file_error(job->tool, fd, path);
	status = make(job);
	if (status) {
		close(fd);
		aside_end(&aside, -ECANCELED);
		return status;
	}
	err = aside_end(&aside, aside_print(fd, write_map, job));
	return err ? file_error(job->tool, err, path) : TOOL_OK;
}

/* The path "-" is standard output. */
static enum tool_status draw(struct job *job, const char *path)
{
	enum tool_status status;

	if (strcmp(path, "-")) {
		status = make_file(job, path);
	} else {
		status = make(job);
		if (!status)
			write_map(stdout, job);
	}
	map_clear(&job->map);
	free(job->box_of);
	trace_free(&job->trace);
	return status;
}

static bool set_option(struct job *job, int option)
{
	switch (option) {
	case 't':
		job->source = optarg;
		return true;
	case 'f':
		job->configuration = optarg;
		return true;
	case 'b':
		job->by = optarg;
		if (!strcmp(optarg, "stream") || !strcmp(optarg, "tag"))
			return true;
		usage_error(job->tool, "'%s' is neither 'stream' nor 'tag'",
			    optarg);
		return false;
	case 's':
		job->image = true;
		return true;
	case 'S':
		job->timed = true;
		if (parse_number(optarg, MOST_SECONDS, &job->seconds))
			return true;
		usage_error(job->tool, "'%s' is no number of seconds from 0 to %d",
			    optarg, MOST_SECONDS);
		return false;
	case 'a':
		if (parse_size(optarg, &job->flat_bytes) && job->flat_bytes &&
		    job->flat_bytes % 128 == 0)
			return true;
		usage_error(job->tool, "'%s' is not a size above 0 and a multiple of 128",
			    optarg);
		return false;
	}
	return false;
}

enum tool_status cmd_map(struct tool *tool, int argc, char **argv)
{
	static const struct option options[] = {
		{ "trace", required_argument, NULL, 't' },
		{ "seconds", required_argument, NULL, 'S' },
		{ "config", required_argument, NULL, 'f' },
		{ "addresses", required_argument, NULL, 'a' },
		{ "by", required_argument, NULL, 'b' },
		{ "svg", no_argument, NULL, 's' },
		COMMON_OPTIONS
	};
	struct job job = { .tool = tool, .seconds = SECONDS };
	int option;

	while ((option = next_option(tool, argc, argv, options)) != OPTION_END)
		if (!set_option(&job, option))
			return option_status(option);
	if (optind + 1 != argc)
		return usage_error(tool, "one FILE is needed");
	if (tool->json)
		return usage_error(tool, "'map' writes a page, not JSON");
	if (!job.source && (job.configuration || job.flat_bytes || job.by))
		return usage_error(tool, "--config, --addresses and --by need --trace");
	if (job.source && (job.timed || (tool->path && !tool->shell)))
		return usage_error(tool, "--trace needs no device and takes no time");
	return draw(&job, argv[optind]);
}
