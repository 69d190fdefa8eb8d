// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Replays a recorded trace on caches, one for each process, and compares each event
 * with the recorded one.
 */
#include "replay.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* What stands for one process of the trace. */
struct process {
	struct flexmem_device *device;
	struct flexmem_cache_flat *flat;
	struct flexmem_cache *cache;
};

struct run {
	struct replay_exact *result;
	const struct trace *trace;
	struct process *processes;
	void **tokens;
};

static bool differ(struct run *run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Returns false, to end the replay. */
static bool differ(struct run *run, const char *format, ...)
{
	va_list arguments;

	run->result->differs = true;
	va_start(arguments, format);
	vsnprintf(run->result->text, sizeof(run->result->text), format,
		  arguments);
	va_end(arguments);
	return false;
}

/* The text of an error of the cache. */
static const char *why(int err, const struct flexmem_cache_failure *failure,
		       char text[TOOL_TEXT_MAX])
{
	flexmem_cache_error_text(err, failure, failure ? sizeof(*failure) : 0,
				 text, TOOL_TEXT_MAX);
	return text;
}

static bool same_place(struct run *run, const struct trace_exact *exact,
		       const struct flexmem_cache_allocation *made)
{
	if (made->address.region_id == exact->region_id &&
	    made->address.offset == exact->offset && made->size == exact->size)
		return true;
	return differ(run, "recorded region 0x%" PRIx64 ", offset 0x%" PRIx64 ", %" PRIu64 " bytes"
		      "; here region 0x%" PRIx64 ", offset 0x%" PRIx64 ", %" PRIu64 " bytes",
		      exact->region_id, exact->offset, exact->size,
		      made->address.region_id, made->address.offset,
		      made->size);
}

static bool one_alloc(struct run *run, const struct trace_event *event,
		      const struct trace_exact *exact)
{
	const struct flexmem_cache_request request = {
		.bytes = event->bytes,
		.stream = event->stream,
	};
	struct flexmem_cache_allocation made;
	char text[TOOL_TEXT_MAX];
	int err;

	err = flexmem_cache_alloc_request(run->processes[exact->process].cache,
					  &request, sizeof(request), &made,
					  sizeof(made));
	if (exact->fails)
		return err == -ENOMEM ? true :
		       err ? differ(run, "recorded that memory is lacking; here it fails otherwise: %s",
				    why(err, NULL, text)) :
			     differ(run, "recorded that it fails; here it succeeds");
	if (err)
		return differ(run, "recorded that it succeeds; here it fails: %s",
			      why(err, &made.failure, text));
	run->tokens[event->allocation] = made.token;
	return same_place(run, exact, &made);
}

static bool one_event(struct run *run, size_t number)
{
	const struct trace_event *event = &run->trace->events[number];
	const struct trace_exact *exact = &run->trace->exact[number];
	char text[TOOL_TEXT_MAX];
	int err;

	if (!event->is_free)
		return one_alloc(run, event, exact);
	err = flexmem_cache_free(run->processes[exact->process].cache,
				 run->tokens[event->allocation]);
	return !err || differ(run, "recorded that it succeeds; here it fails: %s",
			      why(err, NULL, text));
}

static void print_log(enum flexmem_log_level level, const char *text,
		      void *user)
{
	char *escaped = escaped_text(text);

	(void)level;
	(void)user;
	fprintf(stderr, "flexmem: %s\n", escaped);
	free(escaped);
}

static int begin_process(struct process *process,
			 const struct replay_provider *provider,
			 const char *path, const char *configuration)
{
	struct flexmem_cache_options options = {
		.configuration = configuration,
		.log = print_log,
		.level = FLEXMEM_LOG_WARNING,
	};
	struct flexmem_cache_provider source;
	int err;

	if (provider->flat_bytes) {
		err = flexmem_cache_flat_create(&process->flat,
						provider->flat_bytes, &source,
						sizeof(source));
		options.provider = &source;
		options.provider_size = sizeof(source);
	} else {
		err = flexmem_device_open(&process->device, path);
		options.device = process->device;
	}
	return err ? err : flexmem_cache_create(&process->cache, &options,
						sizeof(options));
}

static void end_process(struct process *process)
{
	flexmem_cache_destroy(process->cache);
	flexmem_cache_flat_destroy(process->flat);
	flexmem_device_close(process->device);
}

static void carry_out(struct run *run, struct progress *progress)
{
	const struct trace *trace = run->trace;
	struct replay_exact *result = run->result;
	size_t i;

	for (i = 0; i < trace->count && one_event(run, i); i++) {
		result->events++;
		progress_update(progress, i + 1);
	}
	if (!result->differs)
		return;
	result->event = i;
	result->line = trace->events[i].line;
	result->bytes = trace->events[i].bytes;
	result->is_free = trace->events[i].is_free;
	result->process = trace->exact[i].process;
	result->number = trace->exact[i].number;
}

int replay_exact(struct replay_exact *result,
		 const struct replay_provider *provider, const char *path,
		 const char *configuration, const struct trace *trace,
		 struct progress *progress)
{
	struct run run = { .result = result, .trace = trace };
	const char *recorded;
	uint32_t begun;
	int err = 0;

	*result = (struct replay_exact){ .processes = trace->processes };
	run.tokens = grow(NULL, trace->allocations, sizeof(*run.tokens));
	run.processes = grow(NULL, trace->processes, sizeof(*run.processes));
	memset(run.processes, 0, trace->processes * sizeof(*run.processes));
	for (begun = 0; begun < trace->processes && !err; begun++) {
		/* Never NULL, which has the settings of the environment. */
		recorded = trace->settings[begun] ? trace->settings[begun] : "";
		err = begin_process(&run.processes[begun], provider, path,
				    configuration ? configuration : recorded);
	}
	if (!err)
		carry_out(&run, progress);
	while (begun--)
		end_process(&run.processes[begun]);
	free(run.processes);
	free(run.tokens);
	return err;
}
