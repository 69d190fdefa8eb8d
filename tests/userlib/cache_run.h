/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One run of the random test of the cache, and the comparisons with the model.
 */
#ifndef CACHE_RUN_H
#define CACHE_RUN_H

#include "cache_model.h"
#include "test.h"

#define SLOTS 160
#define PENDING 4096
#define BIRTHS 65536

extern const char *const run_tags[MODEL_TAGS];

/* The test's own record of an allocation. */
struct slot {
	void *token;
	void *last_token;
	uint64_t address;
	uint64_t size;
	uint64_t stream;
	uint64_t pool;
	uint64_t birth;
	unsigned int users;
};

/*
 * Bytes that a stream may still use, until its event @number or a
 * synchronization. @own: the bytes were freed on that stream, which may reuse
 * them at once. @deferred: the event is recorded at the end of the capture.
 * @birth: number of their segment. If that segment is returned to the provider,
 * the provider waits for the stream, so the entry ends.
 */
struct pending {
	bool own;
	bool deferred;
	uint64_t birth;
	uint64_t start;
	uint64_t end;
	uint64_t stream;
	uint64_t number;
	uint64_t device_waits;
	uint64_t shrinks;
};

/*
 * The stream and the pool that a provider's segment belongs to. @shared: the
 * first of the streams that share it.
 */
struct owner {
	bool known;
	uint64_t stream;
	uint64_t pool;
	bool shared;
};

struct run {
	uint64_t seed;
	const struct model_setup *setup;
	struct flexmem_cache *cache;
	struct model model;
	struct world real;
	struct world imagined;
	struct slot slots[SLOTS];
	struct pending pending[PENDING];
	size_t pending_count;
	struct owner owners[BIRTHS];
	uint64_t pools[3];
	/*
	 * The pools that have begun, or 0, and for each pool the streams that
	 * its filter accepts.
	 */
	uint64_t begun[3];
	unsigned int filters[3];
	struct flexmem_cache_checkpoint *checkpoint;
	struct model_checkpoint expected;
	uint64_t random;
	unsigned long done;
	char what[160];
	/*
	 * The actions of the out-of-memory callback, in the cache and in the
	 * model.
	 */
	size_t victims[2];
	struct model_request callback_request;
	size_t callback_slot;
	void *callback_token;
	uint64_t callback_address[2];
	int callback_error[2];
};

/* Defined in cache_run.c. */
uint64_t run_next(struct run *run);
uint64_t run_below(struct run *run, uint64_t limit);
bool run_one_in(struct run *run, uint64_t chances);
/* Names the next operation, for the message of a check that fails. */
void run_say(struct run *run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Return a slot without an allocation, and a random slot with an allocation.
 * SLOTS means that there is none.
 */
size_t run_free_slot(const struct run *run);
size_t run_live_slot(struct run *run);
/* Notes an allocation, and checks its address. */
void run_keep(struct run *run, size_t slot,
	      const struct flexmem_cache_allocation *made);
void run_free(struct run *run, size_t slot);
/*
 * Notes freed bytes that streams still use. While a stream uses them, no other
 * stream may get them.
 * @recorded: for each stream the number of events recorded on it so far, with
 * those of this free.
 */
void run_note_pending(struct run *run, const struct slot *slot,
		      const uint64_t *before, const uint64_t *recorded);
/*
 * Notes that the last capture has ended. @recorded: numbers of events before
 * its end, by stream.
 */
void run_end_captures(struct run *run, const uint64_t *recorded);

/* cache_run_pools.c: a random operation on a private pool. */
void run_pool(struct run *run);

/* Defined in cache_compare.c. */
/* A check that fails ends the test. */
void check_number(const struct run *run, const char *what, uint64_t found,
		  uint64_t expected);
void check_true(const struct run *run, const char *what, bool good);
/* Compares how @request failed in the cache and in the model. */
void compare_failures(const struct run *run,
		      const struct model_request *request,
		      const struct flexmem_cache_failure *found,
		      struct model_result *result);
/* Compare the simulated worlds, the figures, the tags, the snapshots. */
void compare_worlds(const struct run *run);
void compare_figures(const struct run *run);
void compare_tags(const struct run *run);
void compare_snapshot(const struct run *run);

#endif /* CACHE_RUN_H */
