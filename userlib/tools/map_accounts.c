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

/* ---- what failed ---- */

/* An account that had nothing for a moment has begun at 0 again. */
static uint64_t failed_since(const struct recorder *recorder,
			     const struct flexmem_account_state *account,
			     size_t reason)
{
	const struct flexmem_account_state *old =
		find_cgroup(&recorder->before, account->id);
	uint64_t count = account->failures[reason];

	return old && old->failures[reason] <= count ?
		       count - old->failures[reason] : count;
}

/*
 * A cgroup counts what failed below it, too. The accounts may be of two moments, so the
 * difference is never below 0.
 */
static void take_from_parent(struct recorder *recorder,
			     const struct flexmem_account_state *account)
{
	const struct flexmem_account_state *parent =
		find_cgroup(&recorder->snapshot, account->parent);
	uint64_t *left, failed;
	size_t reason;

	if (!parent)
		return;
	left = recorder->failed[parent - recorder->snapshot.accounts];
	for (reason = 0; reason < FLEXMEM_REASONS; reason++) {
		failed = failed_since(recorder, account, reason);
		left[reason] -= failed < left[reason] ? failed : left[reason];
	}
}

static uint64_t sum_of(const uint64_t failed[FLEXMEM_REASONS])
{
	uint64_t sum = 0;
	size_t reason;

	for (reason = 0; reason < FLEXMEM_REASONS; reason++)
		sum += failed[reason];
	return sum;
}

static size_t cgroups_in(const struct snapshot *snapshot)
{
	size_t count = 0;

	while (count < snapshot->usage.accounts &&
	       snapshot->accounts[count].kind == FLEXMEM_ACCOUNT_CGROUP)
		count++;
	return count;
}

static void count_failures(struct recorder *recorder)
{
	const struct flexmem_account_state *accounts = recorder->snapshot.accounts;
	const size_t count = cgroups_in(&recorder->snapshot);
	size_t reason, i;

	if (!recorder->before.accounts)
		return;
	recorder->failed = grow(NULL, count + 1, sizeof(*recorder->failed));
	for (i = 0; i < count; i++)
		for (reason = 0; reason < FLEXMEM_REASONS; reason++)
			recorder->failed[i][reason] =
				failed_since(recorder, &accounts[i], reason);
	for (i = 0; i < count; i++)
		take_from_parent(recorder, &accounts[i]);
	for (i = 0; i < count; i++)
		if (sum_of(recorder->failed[i]))
			tag_of(recorder, accounts[i].id);
}

static void note_failures_of(struct recorder *recorder, size_t account)
{
	const uint64_t *failed = recorder->failed[account];
	char text[TOOL_TEXT_MAX] = "";
	size_t length = 0, reason;
	size_t tag;

	for (reason = 0; reason < FLEXMEM_REASONS; reason++)
		if (failed[reason] && length < sizeof(text))
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%" PRIu64 " (%s)",
						   length ? ", " : "", failed[reason],
						   reason ? flexmem_limit_name((uint32_t)reason) :
							    "no memory of the kernel");
	tag = tag_of(recorder, recorder->snapshot.accounts[account].id);
	map_add_note(recorder->map, "Allocations of %s that failed: %s",
		     recorder->map->tags[tag - 1], text);
}

void map_note_failures(struct recorder *recorder)
{
	const size_t count = recorder->failed ? cgroups_in(&recorder->snapshot) : 0;
	size_t i;

	for (i = 0; i < count; i++)
		if (sum_of(recorder->failed[i]))
			note_failures_of(recorder, i);
}

void map_set_groups(struct recorder *recorder)
{
	struct map *map = recorder->map;
	struct client *client;
	size_t closed = 0;
	size_t tag, i;

	count_failures(recorder);
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
