// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a trace. Small numbers (slots) replace the identifiers of allocations,
 * so that a replay needs little memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "trace.h"

#define NO_SLOT UINT32_MAX
#define LEFT_OUT_ONE_IN 100

void *need(void *memory)
{
	if (!memory)
		give_up("memory", 0);
	return memory;
}

void give_up(const char *what, int error)
{
	fprintf(stderr, "bench: %s: %s\n", what,
		error ? strerror(-error) : "failed");
	exit(1);
}

uint64_t random_next(uint64_t *state)
{
	/* The generator is splitmix64. */
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t thread_ns(void)
{
	return now(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t wall_ns(void)
{
	return now(CLOCK_MONOTONIC);
}

/*
 * Slots. A slot whose allocation was freed is used again; the slot that was
 * freed last comes first.
 */
struct slots {
	uint64_t *bytes;
	uint32_t *unused;
	uint32_t unused_count;
	uint32_t count;
	uint64_t live;
};

static void append(struct work *work, struct slots *slots,
		   const struct operation *operation)
{
	uint64_t *bytes = &slots->bytes[operation->slot];

	work->operations[work->count++] = *operation;
	if (!operation->bytes) {
		slots->unused[slots->unused_count++] = operation->slot;
		slots->live -= *bytes;
		return;
	}
	*bytes = (operation->bytes + BENCH_UNIT - 1) / BENCH_UNIT * BENCH_UNIT;
	slots->live += *bytes;
	if (slots->live > work->live_peak)
		work->live_peak = slots->live;
}

static uint32_t take_slot(struct slots *slots)
{
	if (slots->unused_count)
		return slots->unused[--slots->unused_count];
	return slots->count++;
}

static void begin(struct work *work, struct slots *slots, size_t count)
{
	memset(work, 0, sizeof(*work));
	memset(slots, 0, sizeof(*slots));
	work->operations = need(calloc(count, sizeof(*work->operations)));
	slots->bytes = need(calloc(count, sizeof(*slots->bytes)));
	slots->unused = need(calloc(count, sizeof(*slots->unused)));
}

static void end(struct work *work, struct slots *slots)
{
	work->slots = slots->count;
	free(slots->bytes);
	free(slots->unused);
}

void work_read(struct work *work, const char *path)
{
	char error[TRACE_ERROR_MAX];
	struct operation operation;
	struct slots slots;
	struct trace trace;
	uint32_t *slot_of;
	size_t i;

	if (trace_read(&trace, path, error))
		give_up(error, 0);
	begin(work, &slots, trace.count);
	slot_of = need(calloc(trace.allocations + 1, sizeof(*slot_of)));
	for (i = 0; i < trace.count; i++) {
		const struct trace_event *event = &trace.events[i];

		if (!event->is_free)
			slot_of[event->allocation] = event->bytes ?
						     take_slot(&slots) :
						     NO_SLOT;
		operation.slot = slot_of[event->allocation];
		operation.stream = event->stream;
		operation.bytes = event->is_free ? 0 : event->bytes;
		/* A request for 0 bytes allocates nothing. */
		if (operation.slot != NO_SLOT)
			append(work, &slots, &operation);
	}
	free(slot_of);
	end(work, &slots);
	trace_free(&trace);
}

void work_thin(struct work *work, const struct work *from, uint64_t seed)
{
	struct operation operation;
	struct slots slots;
	uint32_t *slot_of;
	size_t i;

	begin(work, &slots, from->count);
	slot_of = need(calloc(from->slots + 1, sizeof(*slot_of)));
	for (i = 0; i < from->count; i++) {
		operation = from->operations[i];
		if (operation.bytes)
			slot_of[operation.slot] =
				random_next(&seed) % LEFT_OUT_ONE_IN ?
				take_slot(&slots) : NO_SLOT;
		operation.slot = slot_of[operation.slot];
		if (operation.slot != NO_SLOT)
			append(work, &slots, &operation);
	}
	free(slot_of);
	end(work, &slots);
}

void work_free(struct work *work)
{
	free(work->operations);
}
