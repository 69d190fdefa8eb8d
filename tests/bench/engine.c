// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the engine, which is the data structure of growing segments: it has
 * only holes, no blocks and no locks.
 */
#include <errno.h>
#include <stdlib.h>

#include "bench.h"
#include "cache/range.h"

struct place {
	uint64_t offset;
	uint64_t size;
};

static int grow_for(struct fmlib_range *range, uint64_t size, uint64_t *top)
{
	uint64_t more = size - fmlib_range_tail(range);

	more = (more + BENCH_STEP - 1) / BENCH_STEP * BENCH_STEP;
	*top += more;
	return fmlib_range_grow(range, more);
}

static int reserve(struct fmlib_range *range, struct place *place,
		   uint64_t *top)
{
	int err = fmlib_range_reserve(range, place->size, &place->offset);

	if (err != -ENOSPC)
		return err;
	err = grow_for(range, place->size, top);
	return err ? err : fmlib_range_reserve(range, place->size,
					       &place->offset);
}

static COUNTED int counted_engine(const struct work *work,
				  struct fmlib_range *range,
				  struct place *places, uint64_t *reserved)
{
	const struct operation *operation = work->operations;
	const struct operation *end = operation + work->count;
	struct place *place;
	int err = 0;

	for (; operation < end && !err; operation++) {
		place = &places[operation->slot];
		if (operation->bytes) {
			place->size = (operation->bytes + BENCH_UNIT - 1) /
				      BENCH_UNIT * BENCH_UNIT;
			err = reserve(range, place, reserved);
		} else {
			err = fmlib_range_release(range, place->offset,
						  place->size);
		}
	}
	return err;
}

uint64_t engine_replay(const struct work *work, uint64_t *reserved)
{
	struct fmlib_range range;
	struct place *places;
	uint64_t time;
	int err;

	places = need(calloc(work->slots, sizeof(*places)));
	*reserved = 0;
	time = thread_ns();
	err = fmlib_range_start(&range, BENCH_UNIT);
	count_begin();
	if (!err)
		err = counted_engine(work, &range, places, reserved);
	count_end();
	time = thread_ns() - time;
	if (err)
		give_up("replay on the engine", err);
	fmlib_range_end(&range);
	free(places);
	return time;
}
