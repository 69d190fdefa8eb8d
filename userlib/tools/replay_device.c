// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Replays a trace on a device: each allocation of the trace is an allocation of
 * the driver.
 */
#include "replay.h"
#include "tool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An allocation of the trace that is live. */
struct live {
	uint32_t handle;
	uint32_t region;
	uint64_t size;
};

struct target {
	struct replay_device *result;
	struct flexmem_device *device;
	struct flexmem_alloc_request request;
	struct live *live;
	struct flexmem_allocated made;
};

static int device_alloc(void *user, const struct trace_event *event)
{
	struct target *target = user;

	target->request.length = event->bytes;
	return flexmem_device_alloc_request(target->device, &target->request,
					    sizeof(target->request),
					    &target->made,
					    sizeof(target->made));
}

static int device_free(void *user, const struct trace_event *event)
{
	struct target *target = user;

	return flexmem_device_free(target->device,
				   target->live[event->allocation].handle);
}

/* There are a dozen regions at most, so a search is fast. */
static uint32_t region_index(struct replay_device *result, uint64_t region_id)
{
	size_t i;

	for (i = 0; i < result->region_count; i++) {
		if (result->regions[i].region_id == region_id)
			return (uint32_t)i;
	}
	result->regions = grow(result->regions, i + 1,
			       sizeof(*result->regions));
	memset(&result->regions[i], 0, sizeof(result->regions[i]));
	result->regions[i].region_id = region_id;
	result->region_count++;
	return (uint32_t)i;
}

static uint64_t device_count(void *user, const struct trace_event *event)
{
	struct target *target = user;
	struct live *live = &target->live[event->allocation];
	struct replay_region *region;

	if (event->is_free) {
		target->result->regions[live->region].used -= live->size;
		return live->size;
	}
	if (target->made.chunks > 1)
		target->result->in_chunks++;
	if (target->made.chunks > target->result->most_chunks)
		target->result->most_chunks = target->made.chunks;
	live->handle = target->made.handle;
	live->size = target->made.size;
	live->region = region_index(target->result,
				    target->made.address.region_id);
	region = &target->result->regions[live->region];
	region->used += live->size;
	if (region->used > region->peak)
		region->peak = region->used;
	return live->size;
}

static void device_explain(void *user, struct flexmem_cache_failure *details)
{
	struct target *target = user;

	details->device = target->made.failure;
}

static int device_look(void *user)
{
	struct target *target = user;
	struct replay_device *result = target->result;

	return flexmem_device_regions(target->device, &result->snapshot,
				      sizeof(*result->snapshot),
				      &result->snapshot_count);
}

int replay_device(struct replay *replay, struct replay_device *result,
		  struct flexmem_device *device, const struct policy *policy,
		  const struct trace *trace, bool keep_going,
		  struct progress *progress)
{
	struct target user = { .result = result, .device = device };
	const struct replay_target target = {
		.alloc = device_alloc,
		.free = device_free,
		.count = device_count,
		.explain = device_explain,
		.look = device_look,
		.user = &user,
	};
	struct flexmem_segment *segments = NULL;
	size_t count = 0;
	int err;

	memset(result, 0, sizeof(*result));
	err = resolve_policy(device, policy, &user.request);
	if (err)
		return err;
	user.live = grow(NULL, trace->allocations, sizeof(*user.live));
	err = replay_run(replay, &target, trace, keep_going, progress);
	free(user.live);
	if (!err)
		err = flexmem_device_segments(device, &segments,
					      sizeof(*segments), &count, NULL);
	if (err == -ENODEV && replay->first.happened)
		err = 0;
	result->slots_used = (uint32_t)count;
	flexmem_segments_free(segments);
	return err;
}

double replay_device_fragmentation(const struct replay_device *result)
{
	uint64_t largest = 0;
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < result->snapshot_count; i++) {
		if (result->snapshot[i].flags & FLEXMEM_HIDDEN)
			return NAN;
		total += result->snapshot[i].free;
		largest += result->snapshot[i].largest_free;
	}
	return total ? (double)(total - largest) / (double)total : 0.0;
}

void replay_device_free(struct replay_device *result)
{
	free(result->regions);
	flexmem_regions_free(result->snapshot);
	result->regions = NULL;
	result->snapshot = NULL;
}
