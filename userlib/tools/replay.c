// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "replay.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One run: the target, live allocations, and the time of each operation. */
struct run {
	struct replay *replay;
	const struct replay_target *target;
	bool *live;
	uint64_t *times;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void count_alloc(struct run *run, const struct trace_event *event)
{
	struct replay *replay = run->replay;

	run->live[event->allocation] = true;
	replay->allocs++;
	replay->live_at_end++;
	replay->live_bytes += event->bytes;
	replay->live_device_bytes += run->target->count(run->target->user,
							event);
	if (replay->live_bytes > replay->peak_bytes)
		replay->peak_bytes = replay->live_bytes;
	if (replay->live_device_bytes > replay->peak_device_bytes)
		replay->peak_device_bytes = replay->live_device_bytes;
}

static void count_free(struct run *run, const struct trace_event *event)
{
	struct replay *replay = run->replay;

	run->live[event->allocation] = false;
	replay->frees++;
	replay->live_at_end--;
	replay->live_bytes -= event->bytes;
	replay->live_device_bytes -= run->target->count(run->target->user,
							event);
}

static int operate(struct run *run, const struct trace_event *event)
{
	const struct replay_target *target = run->target;
	uint64_t begin = now_ns();
	int err;

	err = event->is_free ? target->free(target->user, event) :
			       target->alloc(target->user, event);
	run->times[run->replay->operations++] = now_ns() - begin;
	if (err)
		return err;
	if (event->is_free)
		count_free(run, event);
	else
		count_alloc(run, event);
	return 0;
}

/* Returns true if the event failed. */
static bool one_event(struct run *run, const struct trace *trace, size_t number)
{
	const struct trace_event *event = &trace->events[number];
	struct replay *replay = run->replay;
	int err;

	replay->events++;
	if (!event->bytes) {
		replay->skipped_zero++;
		return false;
	}
	/* The replay does not know whether that would fail here, too. */
	if (trace->exact && trace->exact[number].fails) {
		replay->skipped_failed++;
		return false;
	}
	if (event->is_free && !run->live[event->allocation]) {
		replay->skipped_failed++;
		return false;
	}
	err = operate(run, event);
	if (!err)
		return false;
	if (!replay->failures++) {
		replay->first = (struct replay_failure){
			.happened = true,
			.event = number,
			.line = event->line,
			.is_free = event->is_free,
			.bytes = event->bytes,
			.error = err,
		};
		if (!event->is_free)
			run->target->explain(run->target->user,
					     &replay->first.details);
	}
	return true;
}

static int compare_times(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a;
	uint64_t right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static void count_times(struct run *run)
{
	struct replay *replay = run->replay;
	uint64_t count = replay->operations;
	uint64_t sum = 0;
	uint64_t i;

	if (!count)
		return;
	qsort(run->times, count, sizeof(*run->times), compare_times);
	for (i = 0; i < count; i++)
		sum += run->times[i];
	replay->ns_mean = sum / count;
	replay->ns_median = run->times[count / 2];
	replay->ns_max = run->times[count - 1];
}

static int run_events(struct run *run, const struct trace *trace,
		      bool keep_going, struct progress *progress)
{
	const struct replay_target *target = run->target;
	struct replay *replay = run->replay;
	uint64_t begin = now_ns();
	bool failed = false;
	int err = 0;
	size_t i;

	for (i = 0; i < trace->count; i++) {
		failed = one_event(run, trace, i);
		if (failed && (!keep_going || replay->first.error == -ENODEV))
			break;
		if (i == trace->peak_event) {
			replay->peak_reached = true;
			err = target->look(target->user);
			if (err)
				break;
		}
		progress_update(progress, i + 1);
	}
	replay->seconds = (double)(now_ns() - begin) / 1e9;
	if (!err && !replay->peak_reached)
		err = target->look(target->user);
	/* The removal of the device is already counted as a failed event. */
	return err == -ENODEV && failed ? 0 : err;
}

int replay_run(struct replay *replay, const struct replay_target *target,
	       const struct trace *trace, bool keep_going,
	       struct progress *progress)
{
	struct run run = { .replay = replay, .target = target };
	int err;

	memset(replay, 0, sizeof(*replay));
	run.live = grow(NULL, trace->allocations, sizeof(*run.live));
	memset(run.live, 0, trace->allocations * sizeof(*run.live));
	run.times = grow(NULL, trace->count, sizeof(*run.times));

	err = run_events(&run, trace, keep_going, progress);
	count_times(&run);
	free(run.times);
	free(run.live);
	return err;
}
