// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem map: replays a trace on a cache, and draws the addresses that it got. */
#include "tool.h"
#include "aside.h"
#include "picture.h"
#include "replay.h"
#include "trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLAT_BYTES (UINT64_C(64) << 30)

struct job {
	struct tool *tool;
	const char *source;
	const char *configuration;
	uint64_t flat_bytes;
	bool image;
	struct trace trace;
	struct map map;
	size_t *box_of; /* by allocation */
};

/* The number of a stream in the list of streams, to which it is added. */
static uint64_t stream_number(struct map *map, uint64_t stream)
{
	size_t i;

	for (i = 0; i < map->stream_count; i++)
		if (map->streams[i] == stream)
			return i;
	map->streams = grow(map->streams, map->stream_count + 1,
			    sizeof(*map->streams));
	map->streams[map->stream_count++] = stream;
	return i;
}

static void note(void *user, const struct trace_event *event,
		 const struct flexmem_cache_allocation *made)
{
	struct job *job = user;
	struct map *map = &job->map;
	uint64_t number = (uint64_t)(event - job->trace.events);

	if (!made) {
		map->boxes[job->box_of[event->allocation]].end = number;
		return;
	}
	job->box_of[event->allocation] = map->count;
	map->boxes[map->count++] = (struct map_box){
		.begin = number,
		.end = job->trace.count,
		.address = made->address.offset,
		.size = made->size,
		.stream = stream_number(map, event->stream),
		.line = event->line,
	};
}

static void keep_failures(struct map *map, const struct replay *replay)
{
	const struct replay_failure *first = &replay->first;

	if (!first->happened)
		return;
	map->failures = replay->failures;
	map->failed = first->event;
	flexmem_cache_error_text(first->error, &first->details,
				 sizeof(first->details), map->reason,
				 sizeof(map->reason));
}

static int replay_trace(struct job *job)
{
	const struct replay_provider provider = {
		.flat_bytes = job->flat_bytes,
		.note = note,
		.user = job,
	};
	struct replay_cache result;
	struct progress progress;
	struct replay replay;
	int err;

	job->map.boxes = grow(NULL, job->trace.allocations,
			      sizeof(*job->map.boxes));
	job->box_of = grow(NULL, job->trace.allocations, sizeof(*job->box_of));
	job->map.events = job->trace.count;
	progress_begin(&progress, stderr, "map", job->trace.count);
	err = replay_cache(&replay, &result, &provider, job->configuration,
			   &job->trace, true, &progress);
	progress_end(&progress);
	replay_cache_free(&result);
	if (!err)
		keep_failures(&job->map, &replay);
	return err;
}

static void write_map(FILE *file, void *user)
{
	const struct job *job = user;

	if (job->image)
		map_write_svg(file, &job->map);
	else
		map_write_page(file, &job->map);
}

/* The path "-" is standard output. */
static int write_file(struct job *job, const char *path)
{
	struct aside aside = { 0 };
	int fd;

	if (!strcmp(path, "-")) {
		write_map(stdout, job);
		return 0;
	}
	fd = aside_begin_own(&aside, path);
	return fd < 0 ? fd : aside_end(&aside, aside_print(fd, write_map, job));
}

static enum tool_status draw(struct job *job, const char *path)
{
	const char *slash = strrchr(job->source, '/');
	char text[TRACE_ERROR_MAX];
	int err;

	err = trace_read(&job->trace, job->source, text);
	if (err)
		return tool_fail(job->tool, err, "%s: %s", job->source, text);
	job->map.name = slash ? slash + 1 : job->source;
	err = replay_trace(job);
	if (err) {
		err = tool_error(job->tool, err, NULL, "%s", job->source);
	} else {
		map_arrange(&job->map);
		err = write_file(job, path);
		if (err)
			err = tool_error(job->tool, err, NULL, "%s", path);
	}
	map_clear(&job->map);
	free(job->box_of);
	trace_free(&job->trace);
	return (enum tool_status)err;
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
	case 's':
		job->image = true;
		return true;
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
		{ "config", required_argument, NULL, 'f' },
		{ "addresses", required_argument, NULL, 'a' },
		{ "svg", no_argument, NULL, 's' },
		COMMON_OPTIONS
	};
	struct job job = { .tool = tool, .flat_bytes = FLAT_BYTES };
	int option;

	while ((option = next_option(tool, argc, argv, options)) != OPTION_END)
		if (!set_option(&job, option))
			return option_status(option);
	if (!job.source)
		return usage_error(tool, "--trace is needed");
	if (optind + 1 != argc)
		return usage_error(tool, "one FILE is needed");
	if (tool->json || tool->path)
		return usage_error(tool, "'map' needs no device, and prints no JSON");
	return draw(&job, argv[optind]);
}
