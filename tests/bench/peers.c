// SPDX-License-Identifier: GPL-2.0
/* The allocators that the cache is compared with. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* The holes of an address space, sorted by offset. The last hole has no end. */
struct hole {
	uint64_t offset;
	uint64_t size;
};

struct list {
	struct hole *holes;
	size_t count;
};

struct place {
	uint64_t offset;
	uint64_t size;
};

static void remove_hole(struct list *list, size_t i)
{
	list->count--;
	memmove(&list->holes[i], &list->holes[i + 1],
		(list->count - i) * sizeof(list->holes[0]));
}

/* Returns the smallest of the lowest @choices holes that are large enough. */
static struct hole *choose(const struct list *list, uint64_t size,
			   unsigned int choices)
{
	struct hole *end = list->holes + list->count;
	struct hole *best = NULL;
	struct hole *hole;

	for (hole = list->holes; hole < end && choices; hole++) {
		if (hole->size < size)
			continue;
		if (!best || hole->size < best->size)
			best = hole;
		choices--;
	}
	return best;
}

static uint64_t take(struct list *list, uint64_t size, unsigned int choices)
{
	struct hole *hole = choose(list, size, choices);
	uint64_t offset = hole->offset;

	hole->offset += size;
	hole->size -= size;
	if (!hole->size)
		remove_hole(list, (size_t)(hole - list->holes));
	return offset;
}

static void give_back(struct list *list, const struct place *place)
{
	uint64_t end = place->offset + place->size;
	struct hole *hole;
	size_t i = 0;

	while (list->holes[i].offset < place->offset)
		i++;
	hole = &list->holes[i];
	if (hole->offset == end) {
		hole->offset = place->offset;
		hole->size += place->size;
	} else {
		memmove(hole + 1, hole,
			(list->count - i) * sizeof(list->holes[0]));
		list->count++;
		*hole = (struct hole){ place->offset, place->size };
	}
	if (i && hole[-1].offset + hole[-1].size == hole->offset) {
		hole[-1].size += hole->size;
		remove_hole(list, i);
	}
}

uint64_t list_reserved(const struct work *work, unsigned int choices,
		       uint64_t best_from)
{
	const struct operation *operation = work->operations;
	const struct operation *end = operation + work->count;
	struct place *places;
	struct place *place;
	struct list list;
	uint64_t top = 0;

	places = need(calloc(work->slots, sizeof(*places)));
	/*
	 * With n live allocations there are at most n + 1 holes: the last one
	 * has no end.
	 */
	list.holes = need(calloc(work->slots + 2, sizeof(*list.holes)));
	list.holes[0] = (struct hole){ 0, UINT64_MAX / 2 };
	list.count = 1;
	for (; operation < end; operation++) {
		place = &places[operation->slot];
		if (!operation->bytes) {
			give_back(&list, place);
			continue;
		}
		place->size = (operation->bytes + BENCH_UNIT - 1) /
			      BENCH_UNIT * BENCH_UNIT;
		place->offset = take(&list, place->size,
				     place->size < best_from ? choices :
				     UINT32_MAX);
		if (place->offset + place->size > top)
			top = place->offset + place->size;
	}
	free(list.holes);
	free(places);
	return (top + BENCH_STEP - 1) / BENCH_STEP * BENCH_STEP;
}

/*
 * mimalloc is loaded, not linked, so that it does not replace malloc(). Sizes
 * are divided by 512, so that the memory itself costs little and mimalloc only
 * has to find room.
 */
static void *(*mi_malloc)(size_t size);
static void (*mi_free)(void *memory);

bool mimalloc_find(void)
{
	void *library = dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL);
	void *functions[2];

	if (!library)
		return false;
	functions[0] = dlsym(library, "mi_malloc");
	functions[1] = dlsym(library, "mi_free");
	if (!functions[0] || !functions[1])
		return false;
	/* ISO C permits no cast from a data to a function pointer. */
	memcpy(&mi_malloc, &functions[0], sizeof(mi_malloc));
	memcpy(&mi_free, &functions[1], sizeof(mi_free));
	return true;
}

static COUNTED bool counted_mimalloc(const struct work *work, void **memory)
{
	const struct operation *operation = work->operations;
	const struct operation *end = operation + work->count;
	bool failed = false;

	for (; operation < end; operation++) {
		void **slot = &memory[operation->slot];

		if (operation->bytes) {
			*slot = mi_malloc((operation->bytes + BENCH_UNIT - 1) /
					  BENCH_UNIT);
			failed |= !*slot;
		} else {
			mi_free(*slot);
			*slot = NULL;
		}
	}
	return failed;
}

uint64_t mimalloc_replay(const struct work *work)
{
	bool failed;
	void **memory;
	uint64_t time;

	memory = need(calloc(work->slots, sizeof(*memory)));
	time = thread_ns();
	count_begin();
	failed = counted_mimalloc(work, memory);
	count_end();
	time = thread_ns() - time;
	if (failed)
		give_up("mi_malloc", 0);
	/* Frees the allocations that live at the end of the trace. */
	for (uint32_t i = 0; i < work->slots; i++)
		mi_free(memory[i]);
	free(memory);
	return time;
}
