/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Drives a device with a trace and measures. Prints nothing but progress. */
#ifndef REPLAY_H
#define REPLAY_H

#include "flexmem.h"
#include "render.h"
#include "trace.h"

/* What the trace had in one region. */
struct replay_region {
	uint64_t region_id;
	uint64_t used;
	uint64_t peak;
};

/* The first event that failed. */
struct replay_failure {
	bool happened;
	size_t event;
	uint64_t line;
	bool is_free;
	uint64_t bytes;
	int error;
	struct flexmem_failure details;
};

/*
 * What a replay did. @events = @allocs + @frees + @failures + @skipped_zero +
 * @skipped_failed. @snapshot are the regions at the peak of the trace; if it
 * was not reached, at the failure.
 */
struct replay {
	uint64_t events;
	uint64_t allocs;
	uint64_t frees;
	uint64_t failures;
	uint64_t skipped_zero;
	uint64_t skipped_failed;
	uint64_t live_at_end;
	uint64_t live_bytes;
	uint64_t live_device_bytes;
	uint64_t peak_bytes;
	uint64_t peak_device_bytes;
	struct replay_region *regions;
	size_t region_count;
	uint32_t slots_used;
	bool peak_reached;
	struct flexmem_region *snapshot;
	size_t snapshot_count;
	uint64_t operations;
	uint64_t ns_mean;
	uint64_t ns_median;
	uint64_t ns_max;
	double seconds;
	struct replay_failure first;
};

/*
 * Runs until the end of @trace, or to the first failure unless @keep_going.
 * Returns 0, or a negative errno when the device could not be asked for its
 * regions; failed events are in @replay only. replay_free() in each case.
 */
int replay_run(struct replay *replay, struct flexmem_device *device,
	       const struct trace *trace, bool keep_going,
	       struct progress *progress);
/* 1 - largest free piece / free bytes, over all regions of the snapshot. */
double replay_fragmentation(const struct replay *replay);
void replay_free(struct replay *replay);

#endif /* REPLAY_H */
