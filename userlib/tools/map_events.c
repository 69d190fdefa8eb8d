// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Makes boxes of the driver's trace events. */
#include "map_recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The event of an allocation. */
struct event {
	uint64_t client;
	uint32_t handle;
	uint64_t region_id;
	bool region_added;
	uint64_t offset;
	uint64_t size;
};

/* ---- regions ---- */

struct slot *map_slot(struct recorder *recorder, uint32_t slot)
{
	if (slot >= recorder->slot_count)
		recorder->slots = grow(recorder->slots, slot + 1,
				       sizeof(*recorder->slots));
	while (recorder->slot_count <= slot)
		recorder->slots[recorder->slot_count++] =
			(struct slot){ .region_id = MAP_NOWHERE };
	return &recorder->slots[slot];
}

/* A region that comes again may have another size. */
void map_note_range(struct map *map, uint64_t region_id, uint64_t size)
{
	struct map_range *range = map->ranges;

	while (range < map->ranges + map->range_count &&
	       range->region_id != region_id)
		range++;
	if (range == map->ranges + map->range_count) {
		map->ranges = grow(map->ranges, map->range_count + 1,
				   sizeof(*map->ranges));
		range = &map->ranges[map->range_count++];
		*range = (struct map_range){ .region_id = region_id };
	}
	if (size > range->size)
		range->size = size;
}

static uint64_t region_in(const struct recorder *recorder, uint32_t slot)
{
	return slot < recorder->slot_count ? recorder->slots[slot].region_id :
					     MAP_NOWHERE;
}

/* ---- boxes ---- */

static int by_place(const void *a, const void *b)
{
	const struct live *one = a, *other = b;

	if (one->region_id != other->region_id)
		return one->region_id < other->region_id ? -1 : 1;
	return (one->offset > other->offset) - (one->offset < other->offset);
}

struct map_box *map_add_box(struct recorder *recorder, uint64_t client,
			    uint64_t region_id, uint64_t offset, uint64_t size)
{
	struct map *map = recorder->map;
	struct map_box *box;

	if (map->count == recorder->room) {
		recorder->room = recorder->room ? 2 * recorder->room : 1024;
		map->boxes = grow(map->boxes, recorder->room,
				  sizeof(*map->boxes));
	}
	box = &map->boxes[map->count++];
	*box = (struct map_box){
		.end = MAP_NOWHERE,
		.region_id = region_id,
		.address = offset,
		.size = size,
		.from = client,
	};
	return box;
}

static struct live *find_live(const struct recorder *recorder,
			      uint64_t region_id, uint64_t offset)
{
	struct live wanted = { .region_id = region_id, .offset = offset };
	struct live *const *found = tfind(&wanted, &recorder->live, by_place);

	return found ? *found : NULL;
}

struct map_box *map_end_box(struct recorder *recorder, struct live *live)
{
	struct map_box *box = &recorder->map->boxes[live->box];

	box->end = recorder->now;
	tdelete(live, &recorder->live, by_place);
	if (live->before)
		live->before->next = live->next;
	else
		recorder->first = live->next;
	if (live->next)
		live->next->before = live->before;
	free(live);
	return box;
}

static void begin_live(struct recorder *recorder, const struct event *event)
{
	struct live *old = find_live(recorder, event->region_id, event->offset);
	struct live *live = grow(NULL, 1, sizeof(*live));

	/* Events may be lost. */
	if (old)
		map_end_box(recorder, old);
	*live = (struct live){
		.region_id = event->region_id,
		.offset = event->offset,
		.handle = event->handle,
		.box = recorder->map->count,
		.next = recorder->first,
	};
	if (live->next)
		live->next->before = live;
	recorder->first = live;
	check_memory(tsearch(live, &recorder->live, by_place));
	map_add_box(recorder, event->client, event->region_id, event->offset,
		    event->size)->begin = recorder->now;
}

/*
 * What was allocated before is known from now on. After a reset the memory of a lost
 * region ends late: its slot may have another region meanwhile, and its place there
 * another allocation. RESIZE has no event, so the size is that of the end.
 */
static void end_live(struct recorder *recorder, const struct event *event)
{
	struct live *live = find_live(recorder, event->region_id, event->offset);
	struct map_box *box;

	if (live ? live->handle != event->handle ||
		   recorder->map->boxes[live->box].from != event->client :
		   event->region_added && !recorder->lost)
		return;
	box = live ? map_end_box(recorder, live) :
		     map_add_box(recorder, event->client, event->region_id,
				 event->offset, event->size);
	box->size = event->size;
	box->end = recorder->now;
}

static void end_region(struct recorder *recorder, uint64_t region_id)
{
	struct live *live, *next;

	for (live = recorder->first; live; live = next) {
		next = live->next;
		if (live->region_id == region_id)
			map_end_box(recorder, live);
	}
}

/* ---- events ---- */

static void note_client(struct recorder *recorder, uint64_t client)
{
	recorder->outdated |= !map_find_client(recorder, client);
}

/* Of an allocation of several chunks the event tells only the first address. */
static void read_allocation(struct recorder *recorder, const char *text,
			    void (*call)(struct recorder *recorder,
					 const struct event *event))
{
	uint32_t slot, chunks;
	struct event event;

	if (sscanf(text, "client=%" SCNu64 " handle=%" SCNu32 " flags=%*x slot=%" SCNu32 " offset=%" SCNx64
			 " size=%" SCNu64 " chunks=%" SCNu32,
		   &event.client, &event.handle, &slot, &event.offset, &event.size,
		   &chunks) != 6 || chunks != 1)
		return;
	event.region_id = region_in(recorder, slot);
	if (event.region_id == MAP_NOWHERE)
		return;
	event.region_added = recorder->slots[slot].added;
	note_client(recorder, event.client);
	call(recorder, &event);
	recorder->now++;
}

static void read_charge(struct recorder *recorder, const char *text)
{
	struct map *map = recorder->map;
	struct map_failure *failure;
	uint64_t client, size;
	uint32_t reason;

	if (sscanf(text, "client=%" SCNu64 " size=%" SCNu64 " handles=%*u reason=%" SCNu32,
		   &client, &size, &reason) != 3 || !reason)
		return;
	note_client(recorder, client);
	/* It is full whenever it has a power of two. */
	if (!(map->failure_count & (map->failure_count - 1)))
		map->failures = grow(map->failures, 2 * map->failure_count + 1,
				     sizeof(*map->failures));
	failure = &map->failures[map->failure_count++];
	*failure = (struct map_failure){
		.event = recorder->now++,
		.bytes = size,
		.from = client,
		.reason = reason == FLEXMEM_LIMIT_HANDLES ?
			"the file has as many allocations as it may" :
			"a limit of the cgroup, or of one above it",
	};
}

static void read_region(struct recorder *recorder, const char *text, bool comes)
{
	uint64_t region_id, size;
	uint32_t slot;

	if (sscanf(text, "slot=%" SCNu32 " region=%" SCNx64 " domain=%*u size=%" SCNu64,
		   &slot, &region_id, &size) != 3)
		return;
	if (slot >= MOST_SLOTS)
		return;
	if (comes) {
		*map_slot(recorder, slot) = (struct slot){ region_id, true };
		map_note_range(recorder->map, region_id, size);
		return;
	}
	end_region(recorder, region_id);
	if (region_in(recorder, slot) == region_id)
		recorder->slots[slot].region_id = MAP_NOWHERE;
	recorder->now++;
}

/*
 * An event is "NAME: minor=N " and more. The kernel says how many it has not kept:
 * "CPU:N [LOST M EVENTS]".
 */
static void read_trace_event(struct recorder *recorder, const char *line)
{
	char name[32];
	uint64_t lost;
	int text = 0;

	if (sscanf(line, "CPU:%*u [LOST %" SCNu64 " EVENTS]", &lost) == 1) {
		recorder->lost += lost;
		recorder->outdated = true;
	}
	if (sscanf(line, "%31[a-z_]: minor=%*u %n", name, &text) != 1 || !text)
		return;
	if (!strcmp(name, "flexmem_alloc"))
		read_allocation(recorder, line + text, begin_live);
	else if (!strcmp(name, "flexmem_end"))
		read_allocation(recorder, line + text, end_live);
	else if (!strcmp(name, "flexmem_charge"))
		read_charge(recorder, line + text);
	else if (!strcmp(name, "flexmem_region_add"))
		read_region(recorder, line + text, true);
	else if (!strcmp(name, "flexmem_region_remove"))
		read_region(recorder, line + text, false);
}

/* A line may come in parts, and none is longer than the room. */
int map_read_events(struct recorder *recorder, int fd, unsigned int buffers)
{
	char buffer[4096];
	ssize_t count, i;

	while (recorder->now < MOST_EVENTS && buffers--) {
		count = read(fd, buffer, sizeof(buffer));
		if (count <= 0)
			return !count || errno == EAGAIN || errno == EINTR ?
				       0 : -errno;
		for (i = 0; i < count; i++) {
			if (buffer[i] != '\n') {
				if (recorder->length < sizeof(recorder->line) - 1)
					recorder->line[recorder->length++] = buffer[i];
				continue;
			}
			recorder->line[recorder->length] = '\0';
			recorder->length = 0;
			read_trace_event(recorder, recorder->line);
		}
	}
	recorder->cut = true;
	return 0;
}
