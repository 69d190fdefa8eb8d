/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Carries out the events of a trace on a device (replay_device.c) or a cache
 * (replay_cache.c), and measures the result. Prints only progress.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include "flexmem_cache.h"
#include "policy.h"
#include "render.h"
#include "trace.h"

/* The first failed event. Without a cache only @details.device is valid. */
struct replay_failure {
	bool happened;
	size_t event;
	uint64_t line;
	bool is_free;
	uint64_t bytes;
	int error;
	struct flexmem_cache_failure details;
};

/*
 * The result of a replay. @events = @allocs + @frees + @failures +
 * @skipped_zero + @skipped_failed. Members with device_bytes count the bytes as
 * the allocator rounds them up. @peak_reached: the replay reached the peak of
 * the trace.
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
	bool peak_reached;
	uint64_t operations;
	uint64_t ns_mean;
	uint64_t ns_median;
	uint64_t ns_max;
	double seconds;
	struct replay_failure first;
};

/*
 * The allocator for a trace. @alloc and @free are timed, so they only make the
 * call. They return 0 or a negative errno. @count is called after a success,
 * and returns how many bytes were allocated or freed. @explain is called after
 * the first failed allocation. @look is called once: at the peak of the trace,
 * or at the end if the replay ends earlier. An error of @look ends the replay.
 */
struct replay_target {
	int (*alloc)(void *user, const struct trace_event *event);
	int (*free)(void *user, const struct trace_event *event);
	uint64_t (*count)(void *user, const struct trace_event *event);
	void (*explain)(void *user, struct flexmem_cache_failure *details);
	int (*look)(void *user);
	void *user;
};

/*
 * Carries out @trace to its end, or without @keep_going to the first failure.
 * Returns 0 or the error of the target's @look. A failed event is no error, but
 * is counted in @replay.
 */
int replay_run(struct replay *replay, const struct replay_target *target,
	       const struct trace *trace, bool keep_going,
	       struct progress *progress);

/* A region, and the bytes that the trace's allocations used in it. */
struct replay_region {
	uint64_t region_id;
	uint64_t used;
	uint64_t peak;
};

/*
 * Result of a replay on a device. @snapshot: the regions when @look was called.
 * @slots_used: slots in use at the end.
 * @in_chunks: number of allocations with several chunks.
 * @most_chunks: largest number of chunks of an allocation.
 */
struct replay_device {
	struct replay_region *regions;
	size_t region_count;
	uint32_t slots_used;
	uint64_t in_chunks;
	uint32_t most_chunks;
	struct flexmem_region_state *snapshot;
	size_t snapshot_count;
};

/*
 * Carries out @trace on @device. Returns 0, or a negative errno if the regions
 * or domains could not be read. The caller calls replay_device_free() even
 * after an error.
 */
int replay_device(struct replay *replay, struct replay_device *result,
		  struct flexmem_device *device, const struct policy *policy,
		  const struct trace *trace, bool keep_going,
		  struct progress *progress);
/*
 * Returns the share of the free bytes in the snapshot that lie outside the
 * largest free block of their region; NAN if a region is hidden from the user.
 */
double replay_device_fragmentation(const struct replay_device *result);
void replay_device_free(struct replay_device *result);

/*
 * @flat_bytes: the size of a flat address space; 0: uses the device. @recorded, in
 * an exact replay: uses neither, but the answers of the driver in the trace. @note: called
 * after each event that succeeded, with what an allocation got, and with NULL for a
 * free; may be NULL.
 */
struct replay_provider {
	struct flexmem_device *device;
	uint64_t flat_bytes;
	bool recorded;
	void (*note)(void *user, const struct trace_event *event,
		     const struct flexmem_cache_allocation *made);
	void *user;
};

/* @settings: the cache's settings, as it reports them. */
struct replay_cache {
	struct flexmem_cache_statistics at_look;
	struct flexmem_cache_statistics at_end;
	struct flexmem_cache_setting *settings;
	size_t setting_count;
};

/*
 * Carries out @trace on a new cache with @configuration; NULL: the
 * configuration in the environment. Warnings of the cache go to stderr. Returns
 * 0, or a negative errno if the cache could not be made or read. The caller
 * calls replay_cache_free() even after an error.
 */
int replay_cache(struct replay *replay, struct replay_cache *result,
		 const struct replay_provider *provider,
		 const char *configuration, const struct trace *trace,
		 bool keep_going, struct progress *progress);
/*
 * Returns the largest number of reserved bytes, divided by the largest number
 * of live bytes.
 */
double replay_cache_ratio(const struct replay *replay,
			  const struct replay_cache *result);
/*
 * Returns the share of the reserved bytes in @at_look that were not allocated.
 */
double replay_cache_unused(const struct replay_cache *result);
/*
 * Returns the share of the allocations that the cache served without its
 * provider.
 */
double replay_cache_hit_rate(const struct replay_cache *result);
void replay_cache_free(struct replay_cache *result);

#define REPLAY_TEXT_MAX 800

/*
 * The result of an exact replay. @events: those that were the same. The members
 * after @differs describe the first event that differs, if there is one: @event
 * and @process count from 0, @number is that of the process's history.
 */
struct replay_exact {
	uint64_t events;
	uint32_t processes;
	bool differs;
	bool is_free;
	size_t event;
	uint64_t line;
	uint64_t bytes;
	uint32_t process;
	uint64_t number;
	char text[REPLAY_TEXT_MAX];
};

/*
 * Carries out @trace, which was recorded, up to the first event that differs: an
 * allocation that is at another place, of another size, or fails only in one of
 * both; and with the answers of the driver in the trace, whose cache gets or returns
 * other memory. Each process of the trace gets a cache of its own, with @configuration,
 * or if that is NULL with the recorded settings; and what @provider says, or an open
 * file of the device @path. Returns 0, or a negative errno if a device or cache could
 * not be made.
 */
int replay_exact(struct replay_exact *result,
		 const struct replay_provider *provider, const char *path,
		 const char *configuration, const struct trace *trace,
		 struct progress *progress);

#endif /* REPLAY_H */
