/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Measures the cache on recorded traces: reserved bytes for live bytes, and the
 * cost of an operation, beside other allocators in the same run.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Traces count in granules of 512 bytes; so do their published figures. */
#define BENCH_UNIT UINT64_C(512)
/* A segment grows by this number of bytes in all measurements. */
#define BENCH_STEP (UINT64_C(2) << 20)

/* An allocation in a slot, or its free if @bytes is 0. */
struct operation {
	uint64_t bytes;
	uint64_t stream;
	uint32_t slot;
};

struct work {
	struct operation *operations;
	size_t count;
	uint32_t slots;
	uint64_t live_peak;
};

/* A failure ends the program. */
void work_read(struct work *work, const char *path);
/* Leaves out one allocation in a hundred, chosen by the seed. */
void work_thin(struct work *work, const struct work *from, uint64_t seed);
void work_free(struct work *work);

void *need(void *memory);
void give_up(const char *what, int error);
uint64_t random_next(uint64_t *state);

/* The CPU time of this thread, which other load hardly changes. */
uint64_t thread_ns(void);
uint64_t wall_ns(void);

/* Replays once. Returns the time; sets the peak of reserved bytes. */
uint64_t cache_replay(const struct work *work, const char *configuration,
		      uint64_t *reserved);
/* The cost of a replay: elapsed time, and the mean CPU time of its threads. */
struct spent {
	uint64_t wall;
	uint64_t cpu;
};

/* Replays by @threads at once, each with its own streams, on @caches caches. */
struct spent cache_replay_threads(const struct work *work,
				  const char *configuration,
				  unsigned int threads, unsigned int caches);
/*
 * Number of requests that fail on a device of @bytes when @streams take turns.
 */
uint64_t cache_failures(const struct work *work, const char *configuration,
			uint64_t bytes, unsigned int streams);
/*
 * Makes PAIRS pairs of an allocation and its free. They are on the last of
 * @streams, which shares a lane if there are many streams, and in the oldest of
 * @pools. @used: the next stream uses each allocation as well, and each stream
 * has one such allocation.
 */
#define PAIRS 10000
void cache_pairs(unsigned int streams, unsigned int pools, bool used);
/* Calls flexmem_cache_address() many times, or an empty function. */
#define ADDRESS_CALLS 1000000
void cache_addresses(bool nothing);
/* As cache_replay(), with the engine of growing segments only. */
uint64_t engine_replay(const struct work *work, uint64_t *reserved);
/*
 * A plain list of holes. A request gets the tightest of the lowest @choices
 * holes. A request of @best_from bytes and more gets the tightest of all holes.
 * With 1 choice it is first fit.
 */
uint64_t list_reserved(const struct work *work, unsigned int choices,
		       uint64_t best_from);
/* An allocator of offsets in constant time: eight bins for each octave. */
uint64_t bins_replay(const struct work *work, uint64_t *reserved);
/*
 * Called before and after the code to be counted: a function counted_...() that
 * is not inlined.
 */
#define COUNTED __attribute__((noinline, noclone))
void count_begin(void);
void count_end(void);
/* Whether the processor can count instructions. */
bool count_by_processor(void);
uint64_t count_of_last(void);
/* Counts `bench --count WHAT TRACE` by callgrind; 0: there is no callgrind. */
uint64_t count_by_callgrind(const char *what, const char *trace);

/* False if this machine has no mimalloc. */
bool mimalloc_find(void);
uint64_t mimalloc_replay(const struct work *work);

#endif /* BENCH_H */
