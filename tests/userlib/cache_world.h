/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The layer below a cache in the randomised test: memory of which only the
 * addresses exist, and streams that progress when the test says so. There are
 * two worlds, one below the cache and one below its model. After each operation
 * both must be equal.
 */
#ifndef CACHE_WORLD_H
#define CACHE_WORLD_H

#include "flexmem_cache.h"

#include <stdbool.h>

#define WORLD_PIECES 512
#define WORLD_STREAMS 4
/* Number of events of a stream whose clocks are kept. */
#define WORLD_EVENTS 4096
#define WORLD_SHRINKS 256
#define WORLD_NEVER UINT64_MAX

/* A segment. @birth: part of the handle; each segment gets a new number. */
struct world_piece {
	bool lost;
	uint64_t birth;
	uint64_t start;
	uint64_t size;
};

/*
 * The pieces are sorted by address. The members from @refuse_allocs on are
 * planned faults, active while they are set; @refuse_allocs counts down.
 * @own_calls: calls of world_own_provider.
 */
struct world {
	uint64_t capacity;
	uint64_t used;
	uint64_t births;
	struct world_piece pieces[WORLD_PIECES];
	size_t count;

	/*
	 * A stream's events happen in the order of recording.
	 * @clock[s][t]: the work of stream s comes after this many events of
	 * stream t, because s has waited. @clocks: @clock of the stream when it
	 * recorded the event.
	 */
	uint64_t recorded[WORLD_STREAMS];
	uint64_t done[WORLD_STREAMS];
	uint64_t clock[WORLD_STREAMS][WORLD_STREAMS];
	uint64_t clocks[WORLD_STREAMS][WORLD_EVENTS][WORLD_STREAMS];
	uint64_t destroyed;
	uint64_t device_waits;
	uint64_t own_calls;
	/* The latest intervals by which segments shrank. */
	uint64_t shrinks;
	uint64_t shrunk_from[WORLD_SHRINKS];
	uint64_t shrunk_to[WORLD_SHRINKS];

	unsigned int refuse_allocs;
	int alloc_error;
	int grow_error;
	bool refuse_frees;
	/* The stream that refuses to record, or WORLD_NEVER. */
	uint64_t refuse_record;
	uint64_t refuse_wait;
	uint64_t refuse_stream_wait;
	bool refuse_device_wait;
};

void world_start(struct world *world, uint64_t capacity);
/* Ends all planned faults. */
void world_heal(struct world *world);
/* Simulates a reset of the device: from now on segments can only be freed. */
void world_lose(struct world *world);
/* Lets up to @count events of a stream happen. */
void world_progress(struct world *world, uint64_t stream, uint64_t count);
const struct world_piece *world_find(const struct world *world,
				     uint64_t address);

/* The callbacks of a cache. @user is a struct world. */
extern const struct flexmem_cache_provider world_provider;
/* The provider of pools that have a provider of their own. Counts its calls. */
extern const struct flexmem_cache_provider world_own_provider;
extern const struct flexmem_cache_events world_events;

#endif /* CACHE_WORLD_H */
