// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The open files of a map of a device, and the cgroups that they are charged to. */
#include "map_recorder.h"

#include <inttypes.h>
#include <stdlib.h>

/* In place of a cgroup: of files that were opened and closed between two readings. */
#define NO_CGROUP UINT64_MAX

static int by_id(const void *a, const void *b)
{
	const struct client *one = a, *other = b;

	return (one->id > other->id) - (one->id < other->id);
}

struct client *map_find_client(const struct recorder *recorder, uint64_t id)
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
void map_note_clients(struct recorder *recorder,
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
		    map_find_client(recorder, accounts[i].id))
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

void map_set_groups(struct recorder *recorder)
{
	struct map *map = recorder->map;
	struct client *client;
	size_t closed = 0;
	size_t tag, i;

	for (i = 0; i < map->count + map->failure_count; i++) {
		client = map_find_client(recorder, i < map->count ? map->boxes[i].from :
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
