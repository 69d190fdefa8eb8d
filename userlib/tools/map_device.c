// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Makes a map of a device. A snapshot tells the regions, and what each open file has,
 * but no address of another file's memory. The trace events tell the addresses of what
 * is allocated or freed meanwhile. Other memory is drawn at the top.
 */
#include "map_device.h"
#include "map_recorder.h"
#include "render.h"
#include "tracing.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/* How often the events are read, and at most the paths of new cgroups. */
#define POLL_MS 100
#define WALK_MS 1000
/*
 * How many buffers are read before the clock and the signals are looked at, and how many
 * once no event is added. Many events count for nothing, and tenants make them.
 */
#define BUFFERS_AT_ONCE 64
#define BUFFERS_AT_THE_END 16384

/* ---- the recording ---- */

static void forget(struct snapshot *snapshot)
{
	flexmem_regions_free(snapshot->regions);
	flexmem_accounts_free(snapshot->accounts);
	*snapshot = (struct snapshot){ 0 };
}

/*
 * The snapshot may be newer than events that are read later. So a slot keeps its
 * region until an event removes it, unless the event may be lost. What comes after the
 * first snapshot was added meanwhile.
 */
static void note_regions(struct recorder *recorder, const struct snapshot *snapshot)
{
	const struct flexmem_region_state *region = snapshot->regions;
	struct slot *slot;

	for (; region < snapshot->regions + snapshot->usage.regions; region++) {
		map_note_range(recorder->map, region->region_id, region->total);
		if (region->slot >= MOST_SLOTS)
			continue;
		slot = map_slot(recorder, region->slot);
		if (slot->region_id == MAP_NOWHERE ||
		    (slot->region_id != region->region_id &&
		     recorder->lost != recorder->lost_before))
			*slot = (struct slot){ region->region_id,
					       recorder->has_snapshot };
	}
	recorder->has_snapshot = true;
	recorder->lost_before = recorder->lost;
}

/* The caller calls forget(). */
static int take_snapshot(struct recorder *recorder, struct snapshot *snapshot)
{
	int err;

	forget(snapshot);
	err = flexmem_device_usage(recorder->tool->device, &snapshot->usage,
				   sizeof(snapshot->usage), &snapshot->regions,
				   sizeof(*snapshot->regions), &snapshot->accounts,
				   sizeof(*snapshot->accounts));
	if (!err)
		map_note_clients(recorder, snapshot->accounts, snapshot->usage.accounts);
	if (!err)
		note_regions(recorder, snapshot);
	recorder->outdated = false;
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
	uint64_t passed, walked = 0;
	int err;

	progress_begin(&progress, stderr, "map", seconds * 1000);
	do {
		recorder->cut = false;
		err = map_read_events(recorder, fd, BUFFERS_AT_ONCE);
		if (!err && recorder->outdated)
			err = take_snapshot(recorder, &recorder->snapshot);
		passed = now_ms() - begun;
		if (recorder->unnamed && passed - walked >= WALK_MS) {
			map_name_cgroups(recorder);
			walked = passed;
		}
		progress_update(&progress, passed);
	} while (!err && passed < seconds * 1000 &&
		 recorder->now < MOST_EVENTS &&
		 sigtimedwait(signals, NULL, recorder->cut ? &none : &poll) < 0);
	progress_end(&progress);
	tracing_stop();
	recorder->cut = false;
	return err ? err : map_read_events(recorder, fd, BUFFERS_AT_THE_END);
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
 * Traces before the first snapshot, so that no region is missed. Signals end only the
 * recording, or the instance would stay. They are not for a shell, which goes on.
 * @traced: whether an error is not one of tracing.
 */
static int record(struct recorder *recorder, uint64_t seconds, bool *traced)
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
		err = take_snapshot(recorder, &recorder->before);
		if (!err)
			err = wait_for_events(recorder, fd, seconds, &signals);
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
		box = map_end_box(recorder, recorder->first);
		client = map_find_client(recorder, box->from);
		if (client)
			client->known += box->size;
	}
}

/* Draws what each file has besides its boxes that are live at the end. */
static void add_unknown(struct recorder *recorder)
{
	const struct flexmem_account_state *one = recorder->snapshot.accounts;
	const struct flexmem_account_state *end =
		one + recorder->snapshot.usage.accounts;
	char text[FMLIB_HUMAN_MAX];
	struct client *client;
	uint64_t place = 0;

	for (; one < end; one++) {
		if (one->kind != FLEXMEM_ACCOUNT_CLIENT)
			continue;
		client = map_find_client(recorder, one->id);
		if (one->bytes + one->orphaned <= client->known)
			continue;
		map_add_box(recorder, one->id, MAP_NOWHERE, place,
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
	map_add_note(recorder->map, "%s are drawn at the top, because the driver has told no address of them",
		     fmlib_human(place, text));
}

static void describe_region(struct map *map,
			    const struct flexmem_region_state *region)
{
	char total[FMLIB_HUMAN_MAX], left[FMLIB_HUMAN_MAX], largest[FMLIB_HUMAN_MAX];

	fmlib_human(region->total, total);
	if (region->flags & FLEXMEM_HIDDEN)
		map_add_note(map, "Region 0x%" PRIx64 ": %s", region->region_id,
			     total);
	else
		map_add_note(map, "Region 0x%" PRIx64 ": %s, of which %s are free, up to %s in one piece; blocks in use: %" PRIu64,
			     region->region_id, total,
			     fmlib_human(region->free, left),
			     fmlib_human(region->largest_free, largest),
			     region->allocated_blocks);
}

static void note_figures(struct recorder *recorder)
{
	const struct flexmem_usage *usage = &recorder->snapshot.usage;
	char used[FMLIB_HUMAN_MAX], total[FMLIB_HUMAN_MAX];
	struct map *map = recorder->map;
	uint32_t i;

	map_add_note(map, "After the recording: %s of %s in use",
		     fmlib_human(usage->owned, used),
		     fmlib_human(usage->total, total));
	if (recorder->before.accounts &&
	    usage->failures > recorder->before.usage.failures)
		map_add_note(map, "Allocations that failed, for whatever reason: %" PRIu64,
			     usage->failures - recorder->before.usage.failures);
	map_note_failures(recorder);
	if (recorder->lost)
		map_add_note(map, "Events that were lost, because there were too many: %" PRIu64,
			     recorder->lost);
	if (recorder->cut)
		map_add_note(map, "The recording ended early, because there were too many events");
	for (i = 0; i < usage->regions; i++)
		describe_region(map, &recorder->snapshot.regions[i]);
}

static void clear(struct recorder *recorder)
{
	forget(&recorder->before);
	forget(&recorder->snapshot);
	free(recorder->failed);
	free(recorder->cgroups);
	free(recorder->clients);
	free(recorder->slots);
}

enum tool_status map_device(struct tool *tool, uint64_t seconds,
			    struct map *map)
{
	struct recorder recorder = { .tool = tool, .map = map, .now = 1 };
	enum tool_status status = TOOL_OK;
	bool traced = true;
	int err = 0;

	map->source = "client";
	if (seconds)
		err = record(&recorder, seconds, &traced);
	if (!traced && err == -EBUSY)
		status = tool_fail(tool, err, "map: another 'flexmem map' reads the driver's trace events");
	else if (!traced)
		status = tool_fail(tool, err, "map: the driver's trace events cannot be read: %s; --seconds 0 needs none",
				   strerror(-err));
	else if (!err)
		err = take_snapshot(&recorder, &recorder.snapshot);
	end_boxes(&recorder);
	if (!err) {
		add_unknown(&recorder);
		map_set_groups(&recorder);
		note_figures(&recorder);
		map->events = recorder.now;
	} else if (!status) {
		status = tool_error(tool, err, NULL, "map");
	}
	clear(&recorder);
	return status;
}
