/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The parts of a recording that `flexmem map` makes of a device. */
#ifndef MAP_RECORDER_H
#define MAP_RECORDER_H

#include "picture.h"

/* The most events that are kept. No slot has a larger number. */
#define MOST_EVENTS 200000
#define MOST_SLOTS (1U << 20)

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

/* The region in a slot, or MAP_NOWHERE. @added: while events were read. */
struct slot {
	uint64_t region_id;
	bool added;
};

struct snapshot {
	struct flexmem_usage usage;
	struct flexmem_region_state *regions;
	struct flexmem_account_state *accounts;
};

/*
 * @now: the number of the next event; what was there before begins at 0. @cgroups: by
 * tag. @unnamed: there are new ones. @outdated: an event was of no known client, or events were lost. @snapshot,
 * @before: the last one, and the one from before the recording, if it takes time. @has_snapshot, @lost_before: there is one, and how many events had been lost
 * before it. @failed: by account of the last snapshot that is a cgroup,
 * how often its own files failed to allocate during the recording; NULL: not known. @cut: not all events were read. @line: what was read of the next line.
 */
struct recorder {
	struct tool *tool;
	struct map *map;
	uint64_t now;
	uint64_t lost;
	size_t room;
	uint64_t *cgroups;
	bool unnamed;
	struct client *clients;
	size_t client_count;
	struct slot *slots;
	uint32_t slot_count;
	void *live; /* by place */
	struct live *first;
	bool outdated;
	bool has_snapshot;
	uint64_t lost_before;
	uint64_t (*failed)[FLEXMEM_REASONS];
	bool cut;
	char line[512];
	size_t length;
	struct snapshot before;
	struct snapshot snapshot;
};

/* map_accounts.c: the clients, and the cgroups that they are charged to. */
struct client *map_find_client(const struct recorder *recorder, uint64_t id);
void map_note_clients(struct recorder *recorder,
		      const struct flexmem_account_state *accounts,
		      size_t count);
/* Finds the paths of cgroups that have none so far, with one walk. */
void map_name_cgroups(struct recorder *recorder);
/* Gives each box and each failure the group of its client. All tags have a text then. */
void map_set_groups(struct recorder *recorder);

/* Adds notes of what failed during the recording, by cgroup and reason. */
void map_note_failures(struct recorder *recorder);

/* map_events.c: the regions and the boxes. */
struct slot *map_slot(struct recorder *recorder, uint32_t slot);
/* Notes a region, which may be known. */
void map_note_range(struct map *map, uint64_t region_id, uint64_t size);
/* The client stands in @from of the box until accounts are known. */
struct map_box *map_add_box(struct recorder *recorder, uint64_t client,
			    uint64_t region_id, uint64_t offset, uint64_t size);
/* Ends the box of a live allocation. Returns it. */
struct map_box *map_end_box(struct recorder *recorder, struct live *live);
/*
 * Reads what is there, but at most @buffers. Returns 0 or a negative errno.
 */
int map_read_events(struct recorder *recorder, int fd, unsigned int buffers);

#endif /* MAP_RECORDER_H */
