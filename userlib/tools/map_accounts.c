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

/* Returns the tag of a cgroup. map_name_cgroups() names those that are new. */
static size_t tag_of(struct recorder *recorder, uint64_t cgroup)
{
	struct map *map = recorder->map;
	size_t i;

	for (i = 0; i < map->own_tags; i++)
		if (recorder->cgroups[i] == cgroup)
			return i + 1;
	recorder->cgroups = grow(recorder->cgroups, i + 1,
				 sizeof(*recorder->cgroups));
	recorder->cgroups[i] = cgroup;
	map->tags = grow(map->tags, i + 1, sizeof(*map->tags));
	map->tags[i] = NULL;
	recorder->unnamed = true;
	return ++map->own_tags;
}

/*
 * A caller who is no administrator sees no parent of its files, but the cgroup, which is
 * the first account.
 */
static uint64_t cgroup_of(const struct flexmem_account_state *client,
			  const struct flexmem_account_state *accounts)
{
	if (!client->parent && accounts->kind == FLEXMEM_ACCOUNT_CGROUP)
		return accounts->id;
	return client->parent;
}

void map_note_clients(struct recorder *recorder,
		      const struct flexmem_account_state *accounts,
		      size_t count)
{
	const size_t before = recorder->client_count;
	size_t known = before;
	size_t i;

	recorder->clients = grow(recorder->clients, before + count,
				 sizeof(*recorder->clients));
	for (i = 0; i < count; i++) {
		if (accounts[i].kind != FLEXMEM_ACCOUNT_CLIENT ||
		    map_find_client(recorder, accounts[i].id))
			continue;
		recorder->clients[known++] = (struct client){
			.id = accounts[i].id,
			.tag = tag_of(recorder, cgroup_of(&accounts[i], accounts)),
		};
	}
	if (known == before)
		return;
	recorder->client_count = known;
	qsort(recorder->clients, recorder->client_count,
	      sizeof(*recorder->clients), by_id);
}

/* ---- the names of cgroups ---- */

/* Accounts of cgroups come before those of files, by id. */
static int by_kind_and_id(const void *a, const void *b)
{
	const struct flexmem_account_state *one = a, *other = b;

	if (one->kind != other->kind)
		return one->kind == FLEXMEM_ACCOUNT_CGROUP ? -1 : 1;
	return (one->id > other->id) - (one->id < other->id);
}

static const struct flexmem_account_state *
find_cgroup(const struct snapshot *snapshot, uint64_t id)
{
	const struct flexmem_account_state wanted = {
		.kind = FLEXMEM_ACCOUNT_CGROUP,
		.id = id,
	};

	if (!snapshot->usage.accounts)
		return NULL;
	return bsearch(&wanted, snapshot->accounts, snapshot->usage.accounts,
		       sizeof(wanted), by_kind_and_id);
}

/* A cgroup may be gone when its path is looked up. */
void map_name_cgroups(struct recorder *recorder)
{
	struct map *map = recorder->map;
	struct flexmem_account_state *wanted;
	struct cgroup_names names;
	size_t count = 0;
	const char *path;
	size_t i;

	recorder->unnamed = false;
	wanted = grow(NULL, map->own_tags + 1, sizeof(*wanted));
	for (i = 0; i < map->own_tags; i++)
		if (!map->tags[i])
			wanted[count++] = (struct flexmem_account_state){
				.kind = FLEXMEM_ACCOUNT_CGROUP,
				.id = recorder->cgroups[i],
			};
	cgroup_names_find(&names, wanted, count);
	for (i = 0; i < map->own_tags; i++) {
		path = map->tags[i] ? NULL :
			cgroup_names_get(&names, recorder->cgroups[i]);
		if (path)
			map->tags[i] = escaped_text(path);
	}
	cgroup_names_clear(&names);
	free(wanted);
}

/* Those that are left are removed, or lie outside the namespace of cgroups. */
static void number_cgroups(struct recorder *recorder)
{
	const struct flexmem_account_state *account;
	struct map *map = recorder->map;
	char text[64];
	size_t i;

	map_name_cgroups(recorder);
	for (i = 0; i < map->own_tags; i++) {
		if (map->tags[i])
			continue;
		account = find_cgroup(&recorder->snapshot, recorder->cgroups[i]);
		snprintf(text, sizeof(text), "cgroup %" PRIu64 "%s",
			 recorder->cgroups[i],
			 account && !account->removed ? "" : " removed");
		map->tags[i] = copy_text(text);
	}
}

void map_set_groups(struct recorder *recorder)
{
	struct map *map = recorder->map;
	struct client *client;
	size_t closed = 0;
	size_t tag, i;

	number_cgroups(recorder);

	for (i = 0; i < map->count + map->failure_count; i++) {
		client = map_find_client(recorder, i < map->count ? map->boxes[i].from :
				     map->failures[i - map->count].from);
		if (!client && !closed) {
			closed = tag_of(recorder, NO_CGROUP);
			map->tags[closed - 1] = copy_text("files that were closed");
		}
		tag = client ? client->tag : closed;
		if (i < map->count)
			map->boxes[i].group.key = tag;
		else
			map->failures[i - map->count].group.key = tag;
	}
}
