// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "replay.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What became of an allocation of the trace. */
struct live {
	uint32_t handle;
	uint32_t region;
	uint64_t size;
};

/* One run: the device, what lives, and the time of each operation. */
struct run {
	struct replay *replay;
	struct flexmem_device *device;
	struct live *live;
	uint64_t *times;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A device has a dozen regions: looking through them is fastest. */
static uint32_t region_index(struct replay *replay, uint64_t region_id)
{
	size_t i;

	for (i = 0; i < replay->region_count; i++) {
		if (replay->regions[i].region_id == region_id)
			return (uint32_t)i;
	}
	replay->regions = grow(replay->regions, i + 1,
			       sizeof(*replay->regions));
	memset(&replay->regions[i], 0, sizeof(replay->regions[i]));
	replay->regions[i].region_id = region_id;
	replay->region_count++;
	return (uint32_t)i;
}

static void count_alloc(struct run *run, const struct trace_event *event,
			const struct flexmem_allocation *allocation)
{
	struct live *live = &run->live[event->allocation];
	struct replay *replay = run->replay;
	struct replay_region *region;

	live->handle = allocation->handle;
	live->size = allocation->size;
	live->region = region_index(replay, allocation->address.region_id);
	region = &replay->regions[live->region];
	region->used += live->size;
	if (region->used > region->peak)
		region->peak = region->used;
	replay->allocs++;
	replay->live_at_end++;
	replay->live_bytes += event->bytes;
	replay->live_device_bytes += live->size;
	if (replay->live_bytes > replay->peak_bytes)
		replay->peak_bytes = replay->live_bytes;
	if (replay->live_device_bytes > replay->peak_device_bytes)
		replay->peak_device_bytes = replay->live_device_bytes;
}

static void count_free(struct run *run, const struct trace_event *event)
{
	struct live *live = &run->live[event->allocation];
	struct replay *replay = run->replay;

	replay->regions[live->region].used -= live->size;
	replay->frees++;
	replay->live_at_end--;
	replay->live_bytes -= event->bytes;
	replay->live_device_bytes -= live->size;
	live->handle = 0;
}

static int one_alloc(struct run *run, const struct trace_event *event,
		     struct flexmem_allocation *allocation)
{
	uint64_t begin = now_ns();
	int err;

	err = flexmem_device_alloc(run->device, event->bytes, 0, 0, allocation,
				   sizeof(*allocation));
	run->times[run->replay->operations++] = now_ns() - begin;
	if (!err)
		count_alloc(run, event, allocation);
	return err;
}

static int one_free(struct run *run, const struct trace_event *event)
{
	uint64_t begin = now_ns();
	int err;

	err = flexmem_device_free(run->device,
				  run->live[event->allocation].handle);
	run->times[run->replay->operations++] = now_ns() - begin;
	if (!err)
		count_free(run, event);
	return err;
}

/* Carries out an event; true if it failed. */
static bool one_event(struct run *run, const struct trace *trace, size_t number)
{
	const struct trace_event *event = &trace->events[number];
	struct flexmem_allocation allocation = { 0 };
	struct replay *replay = run->replay;
	int err;

	replay->events++;
	if (!event->bytes) {
		replay->skipped_zero++;
		return false;
	}
	if (event->is_free && !run->live[event->allocation].handle) {
		replay->skipped_failed++;
		return false;
	}
	if (event->is_free)
		err = one_free(run, event);
	else
		err = one_alloc(run, event, &allocation);
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
			.details = allocation.failure,
		};
	}
	return true;
}

static int take_snapshot(struct run *run)
{
	struct replay *replay = run->replay;

	flexmem_regions_free(replay->snapshot);
	replay->snapshot = NULL;
	replay->snapshot_count = 0;
	return flexmem_device_regions(run->device, &replay->snapshot,
				      sizeof(*replay->snapshot),
				      &replay->snapshot_count);
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
			err = take_snapshot(run);
			if (err)
				break;
		}
		progress_update(progress, i + 1);
	}
	replay->seconds = (double)(now_ns() - begin) / 1e9;
	if (!err && !replay->peak_reached)
		err = take_snapshot(run);
	/* That the device is gone has been counted as a failed event. */
	return err == -ENODEV && failed ? 0 : err;
}

int replay_run(struct replay *replay, struct flexmem_device *device,
	       const struct trace *trace, bool keep_going,
	       struct progress *progress)
{
	struct run run = { .replay = replay, .device = device };
	struct flexmem_segment *segments = NULL;
	size_t count = 0;
	int err;

	memset(replay, 0, sizeof(*replay));
	run.live = grow(NULL, trace->allocations, sizeof(*run.live));
	memset(run.live, 0, trace->allocations * sizeof(*run.live));
	run.times = grow(NULL, trace->count, sizeof(*run.times));

	err = run_events(&run, trace, keep_going, progress);
	count_times(&run);
	if (!err)
		err = flexmem_device_segments(device, &segments,
					      sizeof(*segments), &count, NULL);
	if (err == -ENODEV && replay->first.happened)
		err = 0;
	replay->slots_used = (uint32_t)count;
	flexmem_segments_free(segments);
	free(run.times);
	free(run.live);
	return err;
}

double replay_fragmentation(const struct replay *replay)
{
	uint64_t largest = 0;
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < replay->snapshot_count; i++) {
		total += replay->snapshot[i].free;
		if (replay->snapshot[i].largest_free > largest)
			largest = replay->snapshot[i].largest_free;
	}
	return total ? 1.0 - (double)largest / (double)total : 0.0;
}

void replay_free(struct replay *replay)
{
	free(replay->regions);
	flexmem_regions_free(replay->snapshot);
	replay->regions = NULL;
	replay->snapshot = NULL;
}
