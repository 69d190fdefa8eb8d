// SPDX-License-Identifier: GPL-2.0
/* Accounts of the fake kernel: snapshots and limits. */
#include "fake_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * A user that has or had a file or a limit. In the fake kernel each user is
 * also a cgroup.
 */
struct user {
	uint64_t uid;
	uint64_t peak;
	uint64_t limit[FLEXMEM_NR_RESOURCES];
	uint64_t failures[FLEXMEM_MAX_REASONS];
	uint32_t reservation;
};

/* The users of each node. */
static struct users {
	struct user list[FAKE_USERS];
	uint32_t count;
} all_users[FAKE_NODES];

void reset_owners(void)
{
	memset(all_users, 0, sizeof(all_users));
}

static struct users *users_of(const struct file *file)
{
	return &all_users[file->node - fake.nodes];
}

/* Keeps the users in ascending order, as a snapshot lists them. */
static struct user *get_user(struct users *users, uint64_t uid)
{
	struct user *user = users->list;
	uint32_t i;

	while (user < users->list + users->count && user->uid < uid)
		user++;
	if (user < users->list + users->count && user->uid == uid)
		return user;
	REQUIRE(users->count < FAKE_USERS);
	memmove(user + 1, user,
		(size_t)(users->list + users->count++ - user) * sizeof(*user));
	*user = (struct user){ .uid = uid };
	for (i = 0; i < FLEXMEM_NR_RESOURCES; i++)
		user->limit[i] = FLEXMEM_NO_LIMIT;
	return user;
}

void limits_of_new_file(struct file *file)
{
	if (fake.held)
		get_user(users_of(file), fake.held);
	get_user(users_of(file), file->uid)->limit[FLEXMEM_RESOURCE_BYTES] = fake.limit;
}

/*
 * The number of regions with blocks of @file, or of any file of @uid if @file
 * is NULL.
 */
static uint64_t slots_of(const struct file *file, uint64_t uid)
{
	const struct block *block;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < nr_regions; i++) {
		for (block = regions[i].blocks; block; block = block->next) {
			if (block->handle &&
			    (file ? block->file == file - files :
				    files[block->file].uid == uid))
				break;
		}
		sum += !!block;
	}
	return sum;
}

static uint64_t used_by_file(const struct file *file, uint32_t resource)
{
	if (resource == FLEXMEM_RESOURCE_BYTES)
		return file->used;
	if (resource == FLEXMEM_RESOURCE_HANDLES)
		return file->handles;
	if (resource == FLEXMEM_RESOURCE_FILES)
		return 1;
	return slots_of(file, 0);
}

/* The cgroup above all others has what these have. */
static uint64_t used_by_user(uint64_t uid, uint32_t resource)
{
	uint64_t sum = 0;
	int i;

	if (resource == FLEXMEM_RESOURCE_REGIONS)
		return slots_of(NULL, uid);
	for (i = 0; i < FDS; i++) {
		if (files[i].open && (files[i].uid == uid || fake.parent == uid))
			sum += used_by_file(&files[i], resource);
	}
	return sum;
}

/* Whether another open file is charged to the limit of @file's user. */
static bool is_shared(const struct file *file, uint32_t resource)
{
	int i;

	for (i = 0; i < FDS; i++) {
		if (files[i].open && &files[i] != file &&
		    (files[i].uid == file->uid || fake.parent == file->uid) &&
		    used_by_file(&files[i], resource))
			return true;
	}
	return false;
}

static void tell_refusal(const struct file *file, uint32_t resource,
			 struct flexmem_refusal *refusal)
{
	uint64_t limit = get_user(users_of(file), file->uid)->limit[resource];
	uint64_t used = used_by_user(file->uid, resource);

	if (fake.tells_no_limit)
		return;
	*refusal = (struct flexmem_refusal){
		.resource = resource,
		.flags = is_shared(file, resource) ? FLEXMEM_REFUSAL_SHARED : 0,
		.cgroup = file->uid,
		.limit = limit,
		.used = used,
		.own = used_by_file(file, resource),
	};
	if (resource == FLEXMEM_RESOURCE_BYTES && file == files)
		refusal->own += fake.leaving;
	if (!fake.hides_limit)
		return;
	refusal->flags |= FLEXMEM_REFUSAL_HIDDEN;
	refusal->cgroup = 0;
	refusal->limit = used < limit ? limit - used : 0;
	refusal->used = 0;
}

/*
 * Unlike the driver, the fake kernel counts a new region for each allocation.
 */
uint32_t limit_reached(const struct file *file, uint64_t size,
		       struct flexmem_refusal *refusal)
{
	const struct user *own = get_user(users_of(file), file->uid);
	uint64_t used[FLEXMEM_NR_RESOURCES];
	const uint64_t *limit = own->limit;
	uint32_t resource;
	uint32_t i;

	for (i = 0; i < FLEXMEM_NR_RESOURCES; i++)
		used[i] = used_by_user(file->uid, i);
	if (size > limit[FLEXMEM_RESOURCE_BYTES] ||
	    used[FLEXMEM_RESOURCE_BYTES] >
		    limit[FLEXMEM_RESOURCE_BYTES] - size)
		resource = FLEXMEM_RESOURCE_BYTES;
	else if (used[FLEXMEM_RESOURCE_HANDLES] >=
		 limit[FLEXMEM_RESOURCE_HANDLES])
		resource = FLEXMEM_RESOURCE_HANDLES;
	else if (used[FLEXMEM_RESOURCE_REGIONS] >=
		 limit[FLEXMEM_RESOURCE_REGIONS])
		resource = FLEXMEM_RESOURCE_REGIONS;
	else
		return FLEXMEM_REASON_NONE;
	tell_refusal(file, resource, refusal);
	return resource == FLEXMEM_RESOURCE_REGIONS ?
		       FLEXMEM_REASON_REGION_LIMIT :
		       FLEXMEM_REASON_CGROUP_LIMIT;
}

void note_failure(const struct file *file, uint32_t reason)
{
	struct users *users = users_of(file);

	get_user(users, file->uid)->failures[reason]++;
	if (fake.parent && fake.parent != file->uid)
		get_user(users, fake.parent)->failures[reason]++;
}

void describe_limit(const struct file *file, struct flexmem_domain_info *cmd)
{
	uint64_t limit = get_user(users_of(file), file->uid)->limit[FLEXMEM_RESOURCE_BYTES];
	uint64_t used = used_by_user(file->uid, FLEXMEM_RESOURCE_BYTES);

	if (limit == FLEXMEM_NO_LIMIT)
		return;
	cmd->out_flags |= FLEXMEM_REPORT_LIMITED;
	cmd->out_limit = limit;
	cmd->out_limit_left = used < limit ? limit - used : 0;
}

void note_peak(const struct file *file)
{
	uint64_t used = used_by_user(file->uid, FLEXMEM_RESOURCE_BYTES);
	struct user *user = get_user(users_of(file), file->uid);

	if (used > user->peak)
		user->peak = used;
}

static void sums(struct flexmem_snapshot *cmd)
{
	struct flexmem_region_entry entry;
	uint32_t i;

	for (i = 0; i < nr_regions; i++) {
		measure(&regions[i], &entry);
		cmd->out_total += entry.total;
		cmd->out_free += entry.free;
		cmd->out_allocated += entry.nr_allocated;
	}
	for (i = 0; i < FDS; i++) {
		cmd->out_clients += files[i].open;
		cmd->out_owned += files[i].used;
	}
	cmd->out_free -= fake.orphaned + fake.quarantined + fake.grown;
	cmd->out_orphaned = fake.orphaned;
	cmd->out_quarantined = fake.quarantined;
	cmd->out_scrubbed = fake.scrubbed;
	cmd->out_capacity = fake.capacity;
	cmd->out_resets = fake.resets;
	cmd->out_timeouts = fake.timeouts;
	cmd->out_generation = generation;
	cmd->out_flags = exhausted ? FLEXMEM_REPORT_EXHAUSTED : 0;
	cmd->out_used_program = fake.used_program;
	cmd->out_allocs = allocs;
	cmd->out_frees = frees;
	cmd->out_failures = failures;
	if (!fake.admin) {
		cmd->out_flags |= FLEXMEM_REPORT_HIDDEN;
		cmd->out_allocated = 0;
		cmd->out_allocs = 0;
		cmd->out_frees = 0;
		cmd->out_failures = 0;
	}
}

/* How many lists of owners were written so far. */
static unsigned int lists;

static void fill_user(const struct user *user, bool is_first,
		      struct flexmem_owner_entry *entry)
{
	*entry = (struct flexmem_owner_entry){
		.kind = FLEXMEM_OWNER_CGROUP,
		.id = user->uid,
		.bytes = used_by_user(user->uid, FLEXMEM_RESOURCE_BYTES),
		.orphaned = is_first ? fake.orphaned : 0,
		.peak = user->peak,
		.slots = used_by_user(user->uid, FLEXMEM_RESOURCE_REGIONS),
		.handles = used_by_user(user->uid, FLEXMEM_RESOURCE_HANDLES),
		.files = used_by_user(user->uid, FLEXMEM_RESOURCE_FILES),
		.flags = user->uid == fake.removed ? FLEXMEM_OWNER_REMOVED : 0,
		.parent = user->uid == fake.parent ? 0 : fake.parent,
	};
	if (fake.held && user->uid == fake.held &&
	    fake.calls[FLEXMEM_CMD_SNAPSHOT] <= fake.held_for) {
		entry->bytes = GIB;
		entry->handles = 1;
		entry->files = 1;
	}
	if (lists < fake.torn && entry->parent && entry->bytes >= GIB)
		entry->bytes -= GIB;
	entry->reservation = user->reservation;
	entry->reserved = user->reservation;
	if (is_first && fake.broken)
		entry->reservation = fake.broken;
	memcpy(entry->limit, user->limit, sizeof(entry->limit));
	memcpy(entry->failures, user->failures, sizeof(entry->failures));
}

static void fill_client(const struct file *file,
			struct flexmem_owner_entry *entry)
{
	*entry = (struct flexmem_owner_entry){
		.kind = FLEXMEM_OWNER_CLIENT,
		.id = file->id,
		.uid = file->uid,
		.pid = fake.opener == UINT32_MAX ? (uint32_t)getpid() :
						   fake.opener,
		.bytes = file->used + (file == files ? fake.opened_bytes : 0),
		.orphaned = file == files ? fake.leaving : 0,
		.leaving = file == files ? fake.leaving : 0,
		.waits_ms = file == files ? fake.waits_ms : 0,
		.peak = file->peak,
		.slots = used_by_file(file, FLEXMEM_RESOURCE_REGIONS),
		.handles = file->handles,
		.files = 1,
		.parent = fake.admin ? file->uid : 0,
	};
	memset(entry->limit, 0xff, sizeof(entry->limit));
}

/*
 * Lists all owners, or only those of @caller. If @entry is NULL it only counts
 * them.
 */
static uint32_t list_owners(const struct file *caller, bool all,
			    struct flexmem_owner_entry *entry)
{
	const struct users *users = users_of(caller);
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < users->count; i++) {
		if (!all && users->list[i].uid != caller->uid)
			continue;
		count++;
		if (entry)
			fill_user(&users->list[i], !i, entry++);
	}
	for (i = 0; i < FDS; i++) {
		if (!files[i].open || (!all && &files[i] != caller))
			continue;
		count++;
		if (entry)
			fill_client(&files[i], entry++);
	}
	if (all && fake.guest && lists == fake.guest) {
		count++;
		if (entry)
			*entry = (struct flexmem_owner_entry){
				.kind = FLEXMEM_OWNER_CLIENT,
				.id = FAKE_GUEST_ID,
				.bytes = GIB,
				.parent = caller->uid,
			};
	}
	if (all && fake.guests) {
		count++;
		if (entry)
			*entry = (struct flexmem_owner_entry){
				.kind = FLEXMEM_OWNER_CLIENT,
				.id = FAKE_GUEST_ID + lists,
				.bytes = 128,
				.parent = (UINT64_C(1) << 40) + lists,
			};
	}
	return count;
}

static int snapshot(const struct file *caller, struct flexmem_snapshot *cmd)
{
	struct flexmem_region_entry *entry = (void *)(uintptr_t)cmd->regions;
	bool all = fake.admin && !(cmd->flags & FLEXMEM_SNAPSHOT_OWN);
	uint32_t i;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->out_total);
	REQUIRE(!cmd->out_allocated && !cmd->out_failures);
	REQUIRE(!(cmd->flags & ~(uint32_t)FLEXMEM_SNAPSHOT_OWN));
	REQUIRE(cmd->region_entry_size == sizeof(*entry));
	REQUIRE(cmd->owner_entry_size == sizeof(struct flexmem_owner_entry));
	REQUIRE(!cmd->region_count == !cmd->regions);
	REQUIRE(!cmd->owner_count == !cmd->owners);
	sums(cmd);
	cmd->out_region_count = nr_regions;
	cmd->out_owner_count = list_owners(caller, all, NULL);
	if (fake.always_too_small ||
	    cmd->region_count < cmd->out_region_count ||
	    (cmd->owner_count && cmd->owner_count < cmd->out_owner_count)) {
		if (fake.grow) {
			fake.grow--;
			add_region(fake.fallback[2]);
		}
		if (fake.grow_users)
			get_user(users_of(caller), 2000 + fake.grow_users--);
		return EMSGSIZE;
	}
	for (i = 0; i < nr_regions; i++) {
		measure(&regions[i], &entry[i]);
		entry[i].region_id = region_id(i);
		if (fake.moved && lists >= fake.moved)
			entry[i].region_id += FAKE_REGIONS;
		entry[i].slot = i;
		hide(&entry[i]);
	}
	if (!cmd->owner_count)
		return 0;
	list_owners(caller, all, (void *)(uintptr_t)cmd->owners);
	lists++;
	if (fake.fails) {
		note_failure(files, FLEXMEM_REASON_CGROUP_LIMIT);
		note_failure(files, FLEXMEM_REASON_CAPACITY);
		note_failure(files, FLEXMEM_REASON_CAPACITY);
		failures += 3;
	}
	files[0].used += fake.grows;
	fake.grown += fake.grows;
	return 0;
}

/* Appends the command to the file FAKE_LOG. */
static void note_command(const struct file *file, bool all, const char *format,
			 uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	FILE *log = fake.log ? fopen(fake.log, "a") : NULL;

	if (!log)
		return;
	fprintf(log, all ? "all " : "%u ", file->node->number);
	fprintf(log, format, a, b, c, d);
	fclose(log);
}

/* A cgroup with the number 99 does not exist. */
static int set_limit(const struct file *file,
		     struct flexmem_resource_limit *cmd)
{
	bool all = cmd->flags & FLEXMEM_LIMIT_ALL_FUNCTIONS;
	uint32_t i;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->out_limit &&
		!cmd->out_used);
	REQUIRE(fake.limit_for_all > 1 ?
			!(cmd->flags & ~(uint32_t)FLEXMEM_LIMIT_ALL_FUNCTIONS) :
			all == fake.limit_for_all);
	if (!fake.admin)
		return EPERM;
	if ((cmd->scope != FLEXMEM_SCOPE_CGROUP &&
	     cmd->scope != FLEXMEM_SCOPE_DEFAULT) ||
	    cmd->resource >= FLEXMEM_NR_RESOURCES)
		return EINVAL;
	if (cmd->cgroup == 99)
		return ENOENT;
	note_command(file, all, "limit %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		     cmd->scope, cmd->cgroup, cmd->resource, cmd->limit);
	cmd->out_limit = cmd->limit;
	cmd->out_used = cmd->cgroup ? used_by_user(cmd->cgroup,
						   cmd->resource) : 0;
	if (fake.keeps_limits)
		return 0;
	if (cmd->scope != FLEXMEM_SCOPE_CGROUP)
		fake.default_limit = cmd->limit;
	for (i = 0; i < FAKE_NODES; i++)
		if (cmd->scope == FLEXMEM_SCOPE_CGROUP &&
		    (all || file->node == &fake.nodes[i]))
			get_user(&all_users[i], cmd->cgroup)
				->limit[cmd->resource] = cmd->limit;
	return 0;
}

/*
 * The fake device has 4 regions of 8 GiB. Only regions of this size can be
 * reserved.
 */
static int reserve(const struct file *file, struct flexmem_reserve *cmd)
{
	struct user *user;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags && !cmd->out_reason);
	if (!fake.admin)
		return EPERM;
	if (cmd->cgroup == 99)
		return ENOENT;
	if (cmd->length != (cmd->count ? 8ULL << 30 : 0))
		return EINVAL;
	if (cmd->count > 4) {
		cmd->out_reason = FLEXMEM_REASON_CAPACITY;
		return ENOMEM;
	}
	note_command(file, false, "reserve %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", cmd->cgroup,
		     cmd->count, cmd->length, 0);
	user = get_user(users_of(file), cmd->cgroup);
	user->reservation = cmd->count;
	return 0;
}

int owner_command(struct file *file, unsigned int number, void *arg)
{
	switch (number) {
	case FLEXMEM_CMD_SNAPSHOT:
		return snapshot(file, arg);
	case FLEXMEM_CMD_SET_LIMIT:
		return set_limit(file, arg);
	case FLEXMEM_CMD_RESERVE:
		return reserve(file, arg);
	}
	return ENOTTY;
}
