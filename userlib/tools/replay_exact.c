// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Replays a recorded trace on caches, one for each process, and compares each event
 * with the recorded one.
 */
#include "replay.h"
#include "replay_given.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LAST UINT64_MAX

/* What stands for one process of the trace. */
struct process {
	struct given given;
	struct flexmem_device *device;
	struct flexmem_cache_flat *flat;
	struct flexmem_cache *cache;
};

/* @until: for each event the number of the next one of its process, or LAST. */
struct run {
	struct replay_exact *result;
	const struct trace *trace;
	struct process *processes;
	void **tokens;
	uint64_t *until;
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

/* Whether the cache has got and returned what it had then. */
static bool as_given(struct run *run, size_t number)
{
	const struct trace_exact *exact = &run->trace->exact[number];
	struct given *given = &run->processes[exact->process].given;

	/* Without @given->trace the cache has another provider. */
	return !given->trace ||
	       given_check(given, run->until[number] == LAST ?
			   LAST : exact->number) ||
	       differ(run, "%s", given->text);
}

static bool one_alloc(struct run *run, size_t number)
{
	const struct trace_event *event = &run->trace->events[number];
	const struct trace_exact *exact = &run->trace->exact[number];
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
	if (!as_given(run, number))
		return false;
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

	given_begin(&run->processes[exact->process].given, exact->number,
		    run->until[number]);
	if (!event->is_free)
		return one_alloc(run, number);
	err = flexmem_cache_free(run->processes[exact->process].cache,
				 run->tokens[event->allocation]);
	if (err)
		return differ(run, "recorded that it succeeds; here it fails: %s",
			      why(err, NULL, text));
	return as_given(run, number);
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

static int begin_process(struct process *process, const struct trace *trace,
			 uint32_t number, const struct replay_provider *provider,
			 const char *path, const char *configuration)
{
	struct flexmem_cache_options options = {
		.configuration = configuration,
		.log = print_log,
		.level = FLEXMEM_LOG_WARNING,
	};
	struct flexmem_cache_provider source;
	int err = 0;

	if (provider->recorded)
		given_init(&process->given, trace, number, &source);
	else if (provider->flat_bytes)
		err = flexmem_cache_flat_create(&process->flat,
						provider->flat_bytes, &source,
						sizeof(source));
	if (provider->recorded || provider->flat_bytes) {
		options.provider = &source;
		options.provider_size = sizeof(source);
	} else {
		err = flexmem_device_open(&process->device, path);
		options.device = process->device;
	}
	if (!err)
		err = flexmem_cache_create(&process->cache, &options,
					   sizeof(options));
	/* The recorded cache had a history. Without one, a cache takes other ways. */
	return err ? err : flexmem_cache_set_history(process->cache, 1);
}

static void end_process(struct process *process)
{
	process->given.ends = true;
	flexmem_cache_destroy(process->cache);
	given_end(&process->given);
	flexmem_cache_flat_destroy(process->flat);
	flexmem_device_close(process->device);
}

/* The numbers that end the events, from the last one on. */
static uint64_t *ends_of(const struct trace *trace)
{
	uint64_t *until = grow(NULL, trace->count, sizeof(*until));
	uint64_t *next = grow(NULL, trace->processes, sizeof(*next));
	size_t i;

	memset(next, 0xff, trace->processes * sizeof(*next)); /* LAST */
	for (i = trace->count; i--;) {
		until[i] = next[trace->exact[i].process];
		next[trace->exact[i].process] = trace->exact[i].number;
	}
	free(next);
	return until;
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
	run.until = ends_of(trace);
	for (begun = 0; begun < trace->processes && !err; begun++) {
		/* Never NULL, which has the settings of the environment. */
		recorded = trace->settings[begun] ? trace->settings[begun] : "";
		err = begin_process(&run.processes[begun], trace, begun,
				    provider, path,
				    configuration ? configuration : recorded);
	}
	if (!err)
		carry_out(&run, progress);
	while (begun--)
		end_process(&run.processes[begun]);
	free(run.until);
	free(run.processes);
	free(run.tokens);
	return err;
}
