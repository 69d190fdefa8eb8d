// SPDX-License-Identifier: GPL-2.0
/*
 * An allocator for comparison. It allocates offsets, and has eight bins for
 * each power of two. A request takes any hole of the first bin in which all
 * holes are large enough, so allocation and free take constant time.
 */
#include <stdlib.h>

#include "bench.h"

#define BINS 256
#define BITS 64
#define NONE UINT32_MAX

/*
 * An interval, which is either a hole in the list of its bin, or taken. Each
 * interval is linked with its neighbours.
 */
struct part {
	uint32_t offset;
	uint32_t size;
	uint32_t before;
	uint32_t after;
	uint32_t previous;
	uint32_t next;
	bool taken;
};

struct bins {
	struct part *parts;
	uint32_t spare;
	uint32_t first[BINS];
	uint64_t filled[BINS / BITS];
	uint64_t top;
};

/* The bin of a size: its exponent and the first three bits of its mantissa. */
static uint32_t bin_of(uint32_t size)
{
	uint32_t shift;

	if (size < 8)
		return size;
	shift = 28 - (uint32_t)__builtin_clz(size);
	return (shift + 1) * 8 + ((size >> shift) & 7);
}

/* The first bin that contains no hole smaller than @size. */
static uint32_t bin_from(uint32_t size)
{
	uint32_t bin = bin_of(size);
	uint32_t shift = bin / 8 - 1;

	return size >= 8 && size & ((UINT32_C(1) << shift) - 1) ? bin + 1 : bin;
}

static void put(struct bins *bins, uint32_t i)
{
	uint32_t bin = bin_of(bins->parts[i].size);
	uint32_t next = bins->first[bin];

	bins->parts[i].taken = false;
	bins->parts[i].previous = NONE;
	bins->parts[i].next = next;
	if (next != NONE)
		bins->parts[next].previous = i;
	bins->first[bin] = i;
	bins->filled[bin / BITS] |= UINT64_C(1) << bin % BITS;
}

static void pull(struct bins *bins, uint32_t i)
{
	const struct part *part = &bins->parts[i];
	uint32_t bin = bin_of(part->size);

	if (part->next != NONE)
		bins->parts[part->next].previous = part->previous;
	if (part->previous != NONE)
		bins->parts[part->previous].next = part->next;
	else
		bins->first[bin] = part->next;
	if (bins->first[bin] == NONE)
		bins->filled[bin / BITS] &= ~(UINT64_C(1) << bin % BITS);
}

static uint32_t find(const struct bins *bins, uint32_t size)
{
	uint32_t bin = bin_from(size);
	uint32_t word = bin / BITS;
	uint64_t filled = bins->filled[word] >> bin % BITS << bin % BITS;

	while (!filled)
		filled = bins->filled[++word];
	return bins->first[word * BITS + (uint32_t)__builtin_ctzll(filled)];
}

static uint32_t take(struct bins *bins, uint32_t size)
{
	uint32_t i = find(bins, size);
	struct part *part = &bins->parts[i];
	uint32_t rest = bins->spare;
	uint64_t end = (uint64_t)part->offset + size;

	pull(bins, i);
	part->taken = true;
	if (part->size > size) {
		bins->spare = bins->parts[rest].next;
		bins->parts[rest] = (struct part){
			.offset = (uint32_t)end,
			.size = part->size - size,
			.before = i,
			.after = part->after,
		};
		if (part->after != NONE)
			bins->parts[part->after].before = rest;
		part->after = rest;
		part->size = size;
		put(bins, rest);
	}
	if (end > bins->top)
		bins->top = end;
	return i;
}

/* Merges interval @i with the next one. */
static void join(struct bins *bins, uint32_t i)
{
	struct part *part = &bins->parts[i];
	uint32_t gone = part->after;

	part->size += bins->parts[gone].size;
	part->after = bins->parts[gone].after;
	if (part->after != NONE)
		bins->parts[part->after].before = i;
	bins->parts[gone].next = bins->spare;
	bins->spare = gone;
}

static void give(struct bins *bins, uint32_t i)
{
	uint32_t before = bins->parts[i].before;
	uint32_t after = bins->parts[i].after;

	if (after != NONE && !bins->parts[after].taken) {
		pull(bins, after);
		join(bins, i);
	}
	if (before != NONE && !bins->parts[before].taken) {
		pull(bins, before);
		join(bins, before);
		i = before;
	}
	put(bins, i);
}

static COUNTED void counted_bins(const struct work *work, struct bins *bins,
				 uint32_t *places)
{
	const struct operation *operation = work->operations;
	const struct operation *end = operation + work->count;

	for (; operation < end; operation++) {
		uint32_t *place = &places[operation->slot];

		if (operation->bytes) {
			*place = take(bins, (uint32_t)((operation->bytes +
							BENCH_UNIT - 1) /
						       BENCH_UNIT));
		} else {
			give(bins, *place);
			*place = NONE;
		}
	}
}

/* With n live allocations there are at most 2 n + 1 intervals. */
static void begin(struct bins *bins, uint32_t slots)
{
	uint32_t i;

	for (i = 0; i < BINS; i++)
		bins->first[i] = NONE;
	bins->parts = need(calloc(2 * slots + 2, sizeof(*bins->parts)));
	for (i = 1; i < 2 * slots + 2; i++)
		bins->parts[i].next = i + 1;
	bins->spare = 1;
	bins->parts[0] = (struct part){
		.size = UINT32_MAX, .before = NONE, .after = NONE,
	};
	put(bins, 0);
}

uint64_t bins_replay(const struct work *work, uint64_t *reserved)
{
	struct bins bins = { 0 };
	uint32_t *places;
	uint64_t time;
	uint32_t i;

	begin(&bins, work->slots);
	places = need(malloc(work->slots * sizeof(*places)));
	for (i = 0; i < work->slots; i++)
		places[i] = NONE;
	time = thread_ns();
	count_begin();
	counted_bins(work, &bins, places);
	count_end();
	time = thread_ns() - time;
	*reserved = bins.top * BENCH_UNIT;
	for (i = 0; i < work->slots; i++) {
		if (places[i] != NONE)
			give(&bins, places[i]);
	}
	/* At the end the address space must be one hole again. */
	if (bins.parts[0].size != UINT32_MAX || bins.parts[0].taken)
		give_up("the peer with bins", 0);
	free(bins.parts);
	free(places);
	return time;
}
