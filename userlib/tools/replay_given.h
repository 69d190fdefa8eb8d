/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A provider for one process of a recorded trace: it answers as the driver has
 * answered then, and notes what the cache does with its memory otherwise.
 */
#ifndef REPLAY_GIVEN_H
#define REPLAY_GIVEN_H

#include "flexmem_cache.h"
#include "replay.h"
#include "trace.h"

/* Memory that the cache has got, and may have returned. */
struct given_segment {
	uint64_t region_id;
	uint64_t offset;
	uint64_t size;
};

/*
 * @next: of trace->memory, where the search for the process's next entry begins.
 * @number: what the driver gave before this event may be given. @until: what the
 * cache returned before this event may be returned. @asked: the bytes that were
 * refused last in this event, or 0. @text: what differs, or empty. @ends: the cache
 * is being destroyed.
 */
struct given {
	const struct trace *trace;
	uint32_t process;
	size_t next;
	uint64_t number;
	uint64_t until;
	uint64_t asked;
	struct given_segment *segments;
	size_t count;
	bool ends;
	char text[REPLAY_TEXT_MAX];
};

/* Fills @provider, for a cache that is destroyed before given_end(). */
void given_init(struct given *given, const struct trace *trace,
		uint32_t process, struct flexmem_cache_provider *provider);
void given_end(struct given *given);

/* Begins the event @number of the process's history; the next one is @until. */
void given_begin(struct given *given, uint64_t number, uint64_t until);
/*
 * Whether all that the process got and returned before the event @number has been
 * got and returned; otherwise given->text says what differs.
 */
bool given_check(struct given *given, uint64_t number);

#endif /* REPLAY_GIVEN_H */
