// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Makes a map of a device. A snapshot tells the regions, and what each open file has,
 * but no address of another file's memory. The trace events tell the addresses of what
 * is allocated or freed meanwhile. What is left is drawn at no address.
 */
#include "map_device.h"
#include "render.h"
#include "tracing.h"

#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/* How often the events are read, and the most that are kept. */
#define POLL_MS 100
#define MOST_EVENTS 200000
#define MOST_SLOTS (1U << 20)
/*
 * How many buffers are read before the clock and the signals are looked at, and how many
 * once no event is added. Many events count for nothing, and tenants make them.
 */
#define BUFFERS_AT_ONCE 64
#define BUFFERS_AT_THE_END 16384

/* In place of a cgroup: of files that were opened and closed between two readings. */
#define NO_CGROUP UINT64_MAX

/* An open file. @tag: of its cgroup, from 1 on. @known: bytes whose address is known. */
struct client {
	uint64_t id;
	size_t tag;
	uint64_t known;
};

/*
 * Where an allocation begins that is live now, its handle, and the number of its box.
 * All are in a list, too.
 */
struct live {
	uint64_t region_id;
	uint64_t offset;
	uint32_t handle;
	size_t box;
	struct live *before;
	struct live *next;
};

/* The region in a slot, or MAP_NOWHERE. @came: it was added while events were read. */
struct slot {
	uint64_t region_id;
	bool came;
};

/* What the event of an allocation tells. */
struct told {
	uint64_t client;
	uint32_t handle;
	uint64_t region_id;
	bool came; /* the region did */
	uint64_t offset;
	uint64_t size;
};

/* A snapshot. */
struct seen {
	struct flexmem_usage usage;
	struct flexmem_region_state *regions;
	struct flexmem_account_state *accounts;
};

/*
 * @now: the number of the next event; what was there before begins at 0. @cgroups: by
 * tag. @strange: an event was of no known client, or events were lost. @looked, @told:
 * there was a look, and how many events had been lost before it. @cut: not all
 * events were read. @line: what was read of the next line. @seen: the last snapshot.
 */
struct recorder {
	struct tool *tool;
	struct map *map;
	uint64_t now;
	uint64_t lost;
	size_t room;
	uint64_t *cgroups;
	struct client *clients;
	size_t client_count;
	struct slot *slots;
	uint32_t slot_count;
	void *live; /* by place */
	struct live *first;
	bool strange;
	bool looked;
	uint64_t told;
	bool cut;
	char line[512];
	size_t length;
	struct seen seen;
};

static void add_note(struct map *map, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_note(struct map *map, const char *format, ...)
{
	char text[TOOL_TEXT_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	map->notes = grow(map->notes, map->note_count + 1, sizeof(*map->notes));
	map->notes[map->note_count++] = copy_text(text);
}

/* ---- accounts ---- */

static int by_id(const void *a, const void *b)
{
	const struct client *one = a, *other = b;

	return (one->id > other->id) - (one->id < other->id);
}

static struct client *find_client(const struct recorder *recorder, uint64_t id)
{
	const struct client wanted = { .id = id };

	if (!recorder->client_count)
		return NULL;
	return bsearch(&wanted, recorder->clients, recorder->client_count,
		       sizeof(wanted), by_id);
}

/* Returns the tag of a cgroup, which gets @name, without escapes, if it is new. */
static size_t tag_of(struct recorder *recorder, uint64_t cgroup,
		     const char *name)
{
	struct map *map = recorder->map;
	char number[40];
	size_t i;

	for (i = 0; i < map->own_tags; i++)
		if (recorder->cgroups[i] == cgroup)
			return i + 1;
	if (!name) {
		snprintf(number, sizeof(number), "cgroup %" PRIu64, cgroup);
		name = number;
	}
	recorder->cgroups = grow(recorder->cgroups, i + 1,
				 sizeof(*recorder->cgroups));
	recorder->cgroups[i] = cgroup;
	map->tags = grow(map->tags, i + 1, sizeof(*map->tags));
	map->tags[i] = escaped_text(name);
	return ++map->own_tags;
}

/* The paths of cgroups are looked up only if there is a client that was not there. */
static void note_clients(struct recorder *recorder,
			 const struct flexmem_account_state *accounts,
			 size_t count)
{
	const size_t before = recorder->client_count;
	struct cgroup_names names;
	struct client *client;
	size_t known = before;
	size_t i;

	recorder->clients = grow(recorder->clients, before + count,
				 sizeof(*recorder->clients));
	for (i = 0; i < count; i++) {
		if (accounts[i].kind != FLEXMEM_ACCOUNT_CLIENT ||
		    find_client(recorder, accounts[i].id))
			continue;
		if (known == before)
			cgroup_names_find(&names, accounts, count);
		client = &recorder->clients[known++];
		*client = (struct client){
			.id = accounts[i].id,
			.tag = tag_of(recorder, accounts[i].parent,
				      cgroup_names_get(&names, accounts[i].parent)),
		};
	}
	if (known == before)
		return;
	recorder->client_count = known;
	cgroup_names_clear(&names);
	qsort(recorder->clients, recorder->client_count,
	      sizeof(*recorder->clients), by_id);
}

/* ---- regions ---- */

static struct slot *slot_at(struct recorder *recorder, uint32_t slot)
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
static void note_range(struct map *map, uint64_t region_id, uint64_t size)
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

/* The client stands in the group until accounts are known. */
static struct map_box *add_box(struct recorder *recorder, uint64_t client,
			       uint64_t region_id, uint64_t offset,
			       uint64_t size)
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

/* Ends the box of a live allocation. Returns it. */
static struct map_box *end_box(struct recorder *recorder, struct live *live)
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

static void begin_live(struct recorder *recorder, const struct told *told)
{
	struct live *old = find_live(recorder, told->region_id, told->offset);
	struct live *live = grow(NULL, 1, sizeof(*live));

	/* Events may be lost. */
	if (old)
		end_box(recorder, old);
	*live = (struct live){
		.region_id = told->region_id,
		.offset = told->offset,
		.handle = told->handle,
		.box = recorder->map->count,
		.next = recorder->first,
	};
	if (live->next)
		live->next->before = live;
	recorder->first = live;
	check_memory(tsearch(live, &recorder->live, by_place));
	add_box(recorder, told->client, told->region_id, told->offset,
		told->size)->begin = recorder->now;
}

/*
 * What was allocated before is known from now on. After a reset the memory of a lost
 * region ends late: its slot may have another region meanwhile, and its place there
 * another allocation. RESIZE has no event, so the size is that of the end.
 */
static void end_live(struct recorder *recorder, const struct told *told)
{
	struct live *live = find_live(recorder, told->region_id, told->offset);
	struct map_box *box;

	if (live ? live->handle != told->handle ||
		   recorder->map->boxes[live->box].from != told->client :
		   told->came && !recorder->lost)
		return;
	box = live ? end_box(recorder, live) :
		     add_box(recorder, told->client, told->region_id,
			     told->offset, told->size);
	box->size = told->size;
	box->end = recorder->now;
}

static void end_region(struct recorder *recorder, uint64_t region_id)
{
	struct live *live, *next;

	for (live = recorder->first; live; live = next) {
		next = live->next;
		if (live->region_id == region_id)
			end_box(recorder, live);
	}
}

/* ---- events ---- */

static void note_strange(struct recorder *recorder, uint64_t client)
{
	recorder->strange |= !find_client(recorder, client);
}

/* Of an allocation of several chunks the event tells only the first address. */
static void read_allocation(struct recorder *recorder, const char *text,
			    void (*call)(struct recorder *recorder,
					 const struct told *told))
{
	uint32_t slot, chunks;
	struct told told;

	if (sscanf(text, "client=%" SCNu64 " handle=%" SCNu32 " flags=%*x slot=%" SCNu32 " offset=%" SCNx64 " size=%" SCNu64 " chunks=%" SCNu32,
		   &told.client, &told.handle, &slot, &told.offset, &told.size,
		   &chunks) != 6 || chunks != 1)
		return;
	told.region_id = region_in(recorder, slot);
	if (told.region_id == MAP_NOWHERE)
		return;
	told.came = recorder->slots[slot].came;
	note_strange(recorder, told.client);
	call(recorder, &told);
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
	note_strange(recorder, client);
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
		*slot_at(recorder, slot) = (struct slot){ region_id, true };
		note_range(recorder->map, region_id, size);
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
		recorder->strange = true;
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

/*
 * Reads what is there, but at most @buffers. A line may come in parts, and none is longer
 * than the room.
 */
static int read_events(struct recorder *recorder, int fd, unsigned int buffers)
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

/* ---- the recording ---- */

static void forget(struct seen *seen)
{
	flexmem_regions_free(seen->regions);
	flexmem_accounts_free(seen->accounts);
	*seen = (struct seen){ 0 };
}

/*
 * The snapshot may be newer than events that are read later. So a slot keeps its
 * region until an event removes it, unless the event may be lost. What comes after the
 * first look came meanwhile.
 */
static void note_regions(struct recorder *recorder, const struct seen *seen)
{
	const struct flexmem_region_state *region = seen->regions;
	struct slot *slot;

	for (; region < seen->regions + seen->usage.regions; region++) {
		note_range(recorder->map, region->region_id, region->total);
		if (region->slot >= MOST_SLOTS)
			continue;
		slot = slot_at(recorder, region->slot);
		if (slot->region_id == MAP_NOWHERE ||
		    (slot->region_id != region->region_id &&
		     recorder->lost != recorder->told))
			*slot = (struct slot){ region->region_id,
					       recorder->looked };
	}
	recorder->looked = true;
	recorder->told = recorder->lost;
}

/* The caller calls forget(). */
static int look(struct recorder *recorder, struct seen *seen)
{
	int err;

	forget(seen);
	err = flexmem_device_usage(recorder->tool->device, &seen->usage,
				   sizeof(seen->usage), &seen->regions,
				   sizeof(*seen->regions), &seen->accounts,
				   sizeof(*seen->accounts));
	if (!err)
		note_clients(recorder, seen->accounts, seen->usage.accounts);
	if (!err)
		note_regions(recorder, seen);
	recorder->strange = false;
	return err;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Reads until the time is over or a signal comes. */
static int wait_for_events(struct recorder *recorder, int fd, uint64_t seconds,
			   const sigset_t *signals)
{
	const struct timespec poll = { .tv_nsec = POLL_MS * 1000000L };
	const struct timespec none = { 0 };
	const uint64_t begun = now_ms();
	struct progress progress;
	uint64_t passed;
	int err;

	progress_begin(&progress, stderr, "map", seconds * 1000);
	do {
		recorder->cut = false;
		err = read_events(recorder, fd, BUFFERS_AT_ONCE);
		if (!err && recorder->strange)
			err = look(recorder, &recorder->seen);
		passed = now_ms() - begun;
		progress_update(&progress, passed);
	} while (!err && passed < seconds * 1000 &&
		 recorder->now < MOST_EVENTS &&
		 sigtimedwait(signals, NULL, recorder->cut ? &none : &poll) < 0);
	progress_end(&progress);
	tracing_stop();
	recorder->cut = false;
	return err ? err : read_events(recorder, fd, BUFFERS_AT_THE_END);
}

/* Signals that end the recording: not those that the command shall not notice. */
static void fill_signals(sigset_t *signals)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;
	size_t i;

	sigemptyset(signals);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!sigaction(numbers[i], NULL, &action) &&
		    action.sa_handler != SIG_IGN)
			sigaddset(signals, numbers[i]);
}

/*
 * Traces before the first look, so that no region is missed. Signals end only the
 * recording, or the instance would stay. They are not for a shell, which goes on.
 * @traced: whether an error is not one of tracing.
 */
static int record(struct recorder *recorder, uint64_t seconds,
		  uint64_t *failures, bool *traced)
{
	const char *path = flexmem_device_path(recorder->tool->device);
	const struct timespec none = { 0 };
	sigset_t signals, before;
	struct stat node;
	int fd, err;

	if (stat(path, &node))
		return -errno;
	fill_signals(&signals);
	sigprocmask(SIG_BLOCK, &signals, &before);
	fd = tracing_begin(minor(node.st_rdev));
	*traced = fd >= 0;
	err = fd;
	if (*traced) {
		err = look(recorder, &recorder->seen);
		if (!err) {
			*failures = recorder->seen.usage.failures;
			err = wait_for_events(recorder, fd, seconds, &signals);
		}
		tracing_end(fd);
	}
	/* A second signal ends the recording, too, and no more. */
	while (sigtimedwait(&signals, NULL, &none) > 0)
		;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* ---- what the page shows ---- */

static void end_boxes(struct recorder *recorder)
{
	const struct map_box *box;
	struct client *client;

	while (recorder->first) {
		box = end_box(recorder, recorder->first);
		client = find_client(recorder, box->from);
		if (client)
			client->known += box->size;
	}
}

/* Draws what each file has besides its boxes that are live at the end. */
static void add_unknown(struct recorder *recorder)
{
	const struct flexmem_account_state *one = recorder->seen.accounts;
	const struct flexmem_account_state *end =
		one + recorder->seen.usage.accounts;
	char text[FMLIB_HUMAN_MAX];
	struct client *client;
	uint64_t place = 0;

	for (; one < end; one++) {
		if (one->kind != FLEXMEM_ACCOUNT_CLIENT)
			continue;
		client = find_client(recorder, one->id);
		if (one->bytes + one->orphaned <= client->known)
			continue;
		add_box(recorder, one->id, MAP_NOWHERE, place,
			one->bytes + one->orphaned - client->known)->end =
			recorder->now;
		place += recorder->map->boxes[recorder->map->count - 1].size;
	}
	if (!place)
		return;
	recorder->map->ranges = grow(recorder->map->ranges,
				     recorder->map->range_count + 1,
				     sizeof(*recorder->map->ranges));
	recorder->map->ranges[recorder->map->range_count++] =
		(struct map_range){ .region_id = MAP_NOWHERE, .size = place };
	add_note(recorder->map, "%s are drawn at the top, because the driver has told no address of them",
		 fmlib_human(place, text));
}

static void set_groups(struct recorder *recorder)
{
	struct map *map = recorder->map;
	struct client *client;
	size_t closed = 0;
	size_t tag, i;

	for (i = 0; i < map->count + map->failure_count; i++) {
		client = find_client(recorder, i < map->count ? map->boxes[i].from :
				     map->failures[i - map->count].from);
		if (!client && !closed)
			closed = tag_of(recorder, NO_CGROUP, "files that were closed");
		tag = client ? client->tag : closed;
		if (i < map->count)
			map->boxes[i].group.key = tag;
		else
			map->failures[i - map->count].group.key = tag;
	}
}

static void describe_region(struct map *map,
			    const struct flexmem_region_state *region)
{
	char total[FMLIB_HUMAN_MAX], left[FMLIB_HUMAN_MAX], largest[FMLIB_HUMAN_MAX];

	fmlib_human(region->total, total);
	if (region->flags & FLEXMEM_HIDDEN)
		add_note(map, "Region 0x%" PRIx64 ": %s", region->region_id,
			 total);
	else
		add_note(map, "Region 0x%" PRIx64 ": %s, of which %s are free, up to %s in one piece; blocks in use: %" PRIu64,
			 region->region_id, total,
			 fmlib_human(region->free, left),
			 fmlib_human(region->largest_free, largest),
			 region->allocated_blocks);
}

static void note_figures(struct recorder *recorder, uint64_t failures)
{
	const struct flexmem_usage *usage = &recorder->seen.usage;
	char used[FMLIB_HUMAN_MAX], total[FMLIB_HUMAN_MAX];
	struct map *map = recorder->map;
	uint32_t i;

	add_note(map, "%s of %s in use", fmlib_human(usage->owned, used),
		 fmlib_human(usage->total, total));
	if (usage->failures > failures)
		add_note(map, "Allocations that failed, for whatever reason: %" PRIu64,
			 usage->failures - failures);
	if (recorder->lost)
		add_note(map, "Events that were lost, because there were too many: %" PRIu64,
			 recorder->lost);
	if (recorder->cut)
		add_note(map, "The recording ended early, because there were too many events");
	for (i = 0; i < usage->regions; i++)
		describe_region(map, &recorder->seen.regions[i]);
}

static void clear(struct recorder *recorder)
{
	forget(&recorder->seen);
	free(recorder->cgroups);
	free(recorder->clients);
	free(recorder->slots);
}

enum tool_status map_device(struct tool *tool, uint64_t seconds,
			    struct map *map)
{
	struct recorder recorder = { .tool = tool, .map = map, .now = 1 };
	enum tool_status status = TOOL_OK;
	uint64_t failures = UINT64_MAX;
	bool traced = true;
	int err = 0;

	map->source = "client";
	if (seconds)
		err = record(&recorder, seconds, &failures, &traced);
	if (!traced && err == -EBUSY)
		status = tool_fail(tool, err, "map: another 'flexmem map' reads the driver's trace events");
	else if (!traced)
		status = tool_fail(tool, err, "map: the driver's trace events cannot be read: %s; --seconds 0 needs none",
				   strerror(-err));
	else if (!err)
		err = look(&recorder, &recorder.seen);
	end_boxes(&recorder);
	if (!err) {
		add_unknown(&recorder);
		set_groups(&recorder);
		note_figures(&recorder, failures);
		map->events = recorder.now;
	} else if (!status) {
		status = tool_error(tool, err, NULL, "map");
	}
	clear(&recorder);
	return status;
}
