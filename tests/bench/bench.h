/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Measures the cache with recorded traces: how many bytes it reserves for the
 * live bytes, and what an operation costs. Other allocators are measured in the
 * same run, for comparison.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sizes in traces are multiples of this unit. Published figures about these
 * traces use the same unit.
 */
#define BENCH_UNIT UINT64_C(512)
/* A segment grows by this number of bytes in all measurements. */
#define BENCH_STEP (UINT64_C(2) << 20)

/*
 * Allocates @bytes for the slot, or frees the slot's allocation if @bytes is 0.
 */
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

/* Reads a trace. A failure ends the program. */
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

/*
 * Replays the trace once. Returns the time. *@reserved receives the peak of
 * reserved bytes.
 */
uint64_t cache_replay(const struct work *work, const char *configuration,
		      uint64_t *reserved);
/* The cost of a replay: elapsed time, and the mean CPU time of its threads. */
struct spent {
	uint64_t wall;
	uint64_t cpu;
};

/*
 * Replays in @threads threads at once, each with its own streams, on @caches
 * caches.
 * @waiting: a block of each cache waits for an event during the replays.
 */
struct spent cache_replay_threads(const struct work *work,
				  const char *configuration,
				  unsigned int threads, unsigned int caches,
				  bool waiting);
/*
 * Returns the number of requests that fail on a device of @bytes if @streams
 * streams take turns.
 */
uint64_t cache_failures(const struct work *work, const char *configuration,
			uint64_t bytes, unsigned int streams);
/*
 * First makes one allocation on each of @streams streams, in the oldest of
 * @pools pools. Then makes PAIRS pairs of an allocation and its free on the
 * last of these streams. With many streams the last one shares a lane. @used:
 * each allocation is also used on the next stream, and every second one of the
 * first allocations is freed.
 */
#define PAIRS 10000
void cache_pairs(unsigned int streams, unsigned int pools, bool used);
/*
 * Fills a device of @segments times 2 MiB with blocks of 1 MiB, frees them all,
 * and makes REFUSED requests of 20 MiB, for each of which the cache has to
 * return segments. @streams: each of the requests is on a stream of its own.
 */
#define REFUSED 40
void cache_returns(unsigned int segments, bool streams);
/* Calls flexmem_cache_address(), or an empty function if @nothing. */
#define ADDRESS_CALLS 1000000
void cache_addresses(bool nothing);
/*
 * Like cache_replay(), but uses only the data structure of growing segments
 * (range.c).
 */
uint64_t engine_replay(const struct work *work, uint64_t *reserved);
/*
 * Replays with a plain list of holes. A request gets the tightest of the lowest
 * @choices holes, so 1 means first fit. A request of at least @best_from bytes
 * gets the tightest of all holes.
 */
uint64_t list_reserved(const struct work *work, unsigned int choices,
		       uint64_t best_from);
/*
 * Replays with an allocator that takes constant time: it has eight bins for
 * each power of two.
 */
uint64_t bins_replay(const struct work *work, uint64_t *reserved);
/*
 * The code to be counted is in a C function named counted_...(), which is not
 * inlined. This function calls count_begin() before that code, and count_end()
 * after it.
 */
#define COUNTED __attribute__((noinline, noclone))
void count_begin(void);
void count_end(void);
/* Whether the processor can count instructions. */
bool count_by_processor(void);
uint64_t count_of_last(void);
/*
 * Counts the instructions of `bench --count WHAT TRACE` with callgrind. Returns
 * 0 if there is no callgrind.
 */
uint64_t count_by_callgrind(const char *what, const char *trace);

/* Loads mimalloc. Returns false if this machine has none. */
bool mimalloc_find(void);
uint64_t mimalloc_replay(const struct work *work);

/* How the operations of a trace are spread over four streams. */
enum bench_streams {
	BENCH_ROUND_ROBIN,
	BENCH_IN_TURNS,
	BENCH_OWN_STREAMS,
};

/*
 * Replays on four streams. Returns the peak of reserved bytes over the peak of
 * live bytes. @waits receives how often a stream waits for another one, for 100
 * allocations.
 */
double streams_ratio(const struct work *work, const char *configuration,
		     enum bench_streams streams, double *waits);

#endif /* BENCH_H */
