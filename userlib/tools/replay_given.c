// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Gives a cache the memory that the driver gave when the trace was recorded. Where
 * memory is depends on the order in which the driver served all processes, which no
 * process knows. So the answers of the driver are a part of the trace.
 *
 * A request for which the trace has no answer was refused then.
 */
#include "replay_given.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define PLACE "region 0x%" PRIx64 ", offset 0x%" PRIx64 ", %" PRIu64 " bytes"

/* The next entry of the process, or NULL. */
static const struct trace_memory *next_of(struct given *given)
{
	const struct trace *trace = given->trace;

	while (given->next < trace->memory_count &&
	       trace->memory[given->next].process != given->process)
		given->next++;
	return given->next < trace->memory_count ?
	       &trace->memory[given->next] : NULL;
}

/* The next entry, if it is memory of @bytes that this event may get. */
static const struct trace_memory *next_gift(struct given *given, uint64_t bytes)
{
	const struct trace_memory *memory = next_of(given);

	return memory && !memory->returned && memory->size == bytes &&
	       memory->number < given->number ? memory : NULL;
}

static int refuse(struct given *given, uint64_t bytes)
{
	given->asked = bytes;
	return -ENOMEM;
}

static int given_alloc(void *user, uint64_t bytes, uint64_t alignment,
		       uint32_t flags, struct flexmem_cache_memory *made,
		       struct flexmem_failure *failure)
{
	struct given *given = user;
	const struct trace_memory *memory = next_gift(given, bytes);

	(void)alignment;
	(void)flags;
	(void)failure;
	if (!memory)
		return refuse(given, bytes);
	given->segments = grow(given->segments, given->count + 1,
			       sizeof(*given->segments));
	given->segments[given->count] = (struct given_segment){
		.region_id = memory->region_id,
		.offset = memory->offset,
		.size = memory->size,
	};
	made->handle = given->count++;
	made->address.region_id = memory->region_id;
	made->address.offset = memory->offset;
	given->next++;
	return 0;
}

static int given_grow(void *user, uint64_t handle, uint64_t old_bytes,
		      uint64_t bytes, struct flexmem_failure *failure)
{
	struct given *given = user;
	struct given_segment *segment = &given->segments[handle];
	const struct trace_memory *memory = next_gift(given, bytes - old_bytes);

	(void)failure;
	if (!memory || memory->region_id != segment->region_id ||
	    memory->offset != segment->offset + old_bytes)
		return refuse(given, bytes - old_bytes);
	segment->size = bytes;
	given->next++;
	return 0;
}

/* Notes that the cache has not got, or not returned, the next entry. */
static void note_lack(struct given *given, const struct trace_memory *memory)
{
	char here[100] = "not";

	if (given->asked && !memory->returned)
		snprintf(here, sizeof(here), "it asks for %" PRIu64 " bytes",
			 given->asked);
	snprintf(given->text, sizeof(given->text),
		 "recorded in line %" PRIu64 " that the cache %s " PLACE " %s the driver; here %s",
		 memory->line, memory->returned ? "returns" : "gets",
		 memory->region_id, memory->offset, memory->size,
		 memory->returned ? "to" : "from", here);
}

/* Notes a difference. The replay ends after this event, so the cache may go on. */
static void give_back(struct given *given, const struct given_segment *segment,
		      uint64_t kept)
{
	const struct trace_memory *memory = next_of(given);
	uint64_t offset = segment->offset + kept;
	uint64_t size = segment->size - kept;

	if (given->ends || *given->text)
		return;
	if (memory && !memory->returned && memory->number < given->number) {
		note_lack(given, memory);
	} else if (!memory || !memory->returned ||
		   memory->number >= given->until) {
		snprintf(given->text, sizeof(given->text),
			 "recorded that the cache keeps its memory; here it returns " PLACE " to the driver",
			 segment->region_id, offset, size);
	} else if (memory->region_id != segment->region_id ||
		   memory->offset != offset || memory->size != size) {
		snprintf(given->text, sizeof(given->text),
			 "recorded in line %" PRIu64 " that the cache returns " PLACE " to the driver; here " PLACE,
			 memory->line, memory->region_id, memory->offset,
			 memory->size, segment->region_id, offset, size);
	} else {
		given->next++;
	}
}

static int given_shrink(void *user, uint64_t handle, uint64_t old_bytes,
			uint64_t bytes)
{
	struct given *given = user;
	struct given_segment *segment = &given->segments[handle];

	(void)old_bytes;
	give_back(given, segment, bytes);
	segment->size = bytes;
	return 0;
}

static int given_back(void *user, uint64_t handle)
{
	struct given *given = user;

	give_back(given, &given->segments[handle], 0);
	return 0;
}

void given_init(struct given *given, const struct trace *trace,
		uint32_t process, struct flexmem_cache_provider *provider)
{
	*given = (struct given){ .trace = trace, .process = process };
	*provider = (struct flexmem_cache_provider){
		.alloc = given_alloc,
		.free = given_back,
		.grow = given_grow,
		.shrink = given_shrink,
		.user = given,
	};
}

void given_end(struct given *given)
{
	free(given->segments);
}

void given_begin(struct given *given, uint64_t number, uint64_t until)
{
	given->number = number;
	given->until = until;
	given->asked = 0;
}

bool given_check(struct given *given, uint64_t number)
{
	const struct trace_memory *memory = next_of(given);

	if (*given->text)
		return false;
	if (!memory || memory->number >= number)
		return true;
	note_lack(given, memory);
	return false;
}
