// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Memory by owner, and limits. A snapshot has a list of regions and a list of
 * owners. If a list has grown beyond its room, the snapshot is read again.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)FLEXMEM_NR_RESOURCES == FLEXMEM_CHARGES &&
	       (int)FLEXMEM_SCOPE_DEFAULT == FLEXMEM_FOR_DEFAULT &&
	       FLEXMEM_NO_LIMIT == FLEXMEM_UNLIMITED &&
	       FLEXMEM_MAX_REASONS == FLEXMEM_REASONS,
	       "the library counts what the driver counts");

/*
 * More tries than in tables.c, because the list of owners changes more often
 * than the list of regions.
 */
#define MAX_TRIES 16
#define SPARE_OWNERS 8

/* A function never has more regions (&struct flexmem_info.out_max_regions). */
#define MOST_REGIONS 64

/* A snapshot, and the room in its two lists. */
struct snapshot {
	struct flexmem_snapshot reply;
	struct flexmem_region_entry *regions;
	struct flexmem_owner_entry *owners;
	uint32_t region_room;
	uint32_t owner_room;
};

static void drop_lists(struct snapshot *snapshot)
{
	free(snapshot->regions);
	free(snapshot->owners);
	snapshot->regions = NULL;
	snapshot->owners = NULL;
	snapshot->region_room = 0;
	snapshot->owner_room = 0;
}

static int make_room(struct snapshot *snapshot)
{
	uint32_t regions = snapshot->reply.out_region_count;
	uint32_t owners = snapshot->reply.out_owner_count + SPARE_OWNERS;

	drop_lists(snapshot);
	if (regions) {
		snapshot->regions = calloc(regions, sizeof(*snapshot->regions));
		if (!snapshot->regions)
			return -ENOMEM;
	}
	snapshot->region_room = regions;
	snapshot->owners = calloc(owners, sizeof(*snapshot->owners));
	if (!snapshot->owners)
		return -ENOMEM;
	snapshot->owner_room = owners;
	return 0;
}

static int send(const struct flexmem_device *device, struct snapshot *snapshot)
{
	snapshot->reply = (struct flexmem_snapshot){
		.size = sizeof(snapshot->reply),
		.region_entry_size = sizeof(*snapshot->regions),
		.region_count = snapshot->region_room,
		.regions = (uintptr_t)snapshot->regions,
		.owner_entry_size = sizeof(*snapshot->owners),
		.owner_count = snapshot->owner_room,
		.owners = (uintptr_t)snapshot->owners,
	};
	return fmlib_ioctl(device, FLEXMEM_IOCTL_SNAPSHOT, &snapshot->reply);
}

/* Reads a snapshot. Its sums are valid even if the lists had no room. */
static int read_snapshot(const struct flexmem_device *device,
			 struct snapshot *snapshot, bool lists)
{
	int tries;
	int err;

	memset(snapshot, 0, sizeof(*snapshot));
	for (tries = 0; tries < MAX_TRIES; tries++) {
		err = send(device, snapshot);
		if (err && err != -EMSGSIZE)
			goto fail;
		if (!lists)
			return 0;
		if (!err &&
		    snapshot->reply.out_region_count <= snapshot->region_room &&
		    snapshot->reply.out_owner_count <= snapshot->owner_room)
			return 0;
		err = make_room(snapshot);
		if (err)
			goto fail;
	}
	err = -EAGAIN;
fail:
	drop_lists(snapshot);
	return err;
}

static void account_from_uapi(const void *from, void *to, size_t size)
{
	const struct flexmem_owner_entry *entry = from;
	struct flexmem_account_state account = {
		.kind = entry->kind,
		.removed = !!(entry->flags & FLEXMEM_OWNER_REMOVED),
		.id = entry->id,
		.uid = entry->uid,
		.pid = entry->pid,
		.bytes = entry->bytes,
		.orphaned = entry->orphaned,
		.peak = entry->peak,
		.slots = entry->slots,
		.handles = entry->handles,
		.files = entry->files,
		.leaving = entry->leaving,
		.waits_ms = entry->waits_ms,
		.parent = entry->parent,
	};

	memcpy(account.limit, entry->limit, sizeof(account.limit));
	memcpy(account.failures, entry->failures, sizeof(account.failures));
	account.reservation = entry->reservation;
	account.reserved = entry->reserved;
	fmlib_copy_out(to, size, FMLIB_ACCOUNT_MIN, &account, sizeof(account));
}

static void usage_from_uapi(const struct flexmem_snapshot *reply,
			    struct flexmem_usage *usage)
{
	*usage = (struct flexmem_usage){
		.regions = reply->out_region_count,
		.accounts = reply->out_owner_count,
		.capacity = reply->out_capacity,
		.total = reply->out_total,
		.free = reply->out_free,
		.owned = reply->out_owned,
		.orphaned = reply->out_orphaned,
		.reserved = reply->out_reserved,
		.quarantined = reply->out_quarantined,
		.scrubbed = reply->out_scrubbed,
		.clients = reply->out_clients,
		.resets = reply->out_resets,
		.timeouts = reply->out_timeouts,
		.generation = reply->out_generation,
		.used_program = reply->out_used_program,
		.allocs = reply->out_allocs,
		.failures = reply->out_failures,
	};
}

/*
 * Converts entries to an array of the caller's structs. The array is NULL if
 * there are no entries.
 */
static int convert(const void *entries, size_t entry_size, uint32_t count,
		   size_t size, void **array,
		   void (*one)(const void *from, void *to, size_t size))
{
	const char *from = entries;
	char *to = NULL;
	uint32_t i;

	if (count) {
		to = calloc(count, size);
		if (!to)
			return -ENOMEM;
	}
	for (i = 0; i < count; i++)
		one(from + i * entry_size, to + i * size, size);
	*array = to;
	return 0;
}

int flexmem_device_usage(const struct flexmem_device *device,
			 struct flexmem_usage *usage, size_t usage_size,
			 struct flexmem_region_state **regions,
			 size_t region_size,
			 struct flexmem_account_state **accounts,
			 size_t account_size)
{
	struct snapshot snapshot;
	struct flexmem_usage now;
	void *region_array = NULL;
	void *account_array = NULL;
	int err;

	if (!device || !usage || usage_size < FMLIB_USAGE_MIN ||
	    (regions && region_size < FMLIB_REGION_MIN) ||
	    (accounts && account_size < FMLIB_ACCOUNT_MIN))
		return -EINVAL;
	err = read_snapshot(device, &snapshot, regions || accounts);
	if (err)
		return err;
	if (regions)
		err = convert(snapshot.regions, sizeof(*snapshot.regions),
			      snapshot.reply.out_region_count, region_size,
			      &region_array, fmlib_region_from_uapi);
	if (!err && accounts)
		err = convert(snapshot.owners, sizeof(*snapshot.owners),
			      snapshot.reply.out_owner_count, account_size,
			      &account_array, account_from_uapi);
	drop_lists(&snapshot);
	if (err) {
		free(region_array);
		return err;
	}
	usage_from_uapi(&snapshot.reply, &now);
	fmlib_copy_out(usage, usage_size, FMLIB_USAGE_MIN, &now, sizeof(now));
	if (regions)
		*regions = region_array;
	if (accounts)
		*accounts = account_array;
	return 0;
}

void flexmem_accounts_free(struct flexmem_account_state *accounts)
{
	free(accounts);
}

int fmlib_own(const struct flexmem_device *device, struct fmlib_own *own)
{
	struct flexmem_region_entry regions[MOST_REGIONS];
	struct flexmem_owner_entry owners[2];
	int err;

	own->sums = (struct flexmem_snapshot){
		.size = sizeof(own->sums),
		.flags = FLEXMEM_SNAPSHOT_OWN,
		.region_entry_size = sizeof(regions[0]),
		.region_count = MOST_REGIONS,
		.regions = (uintptr_t)regions,
		.owner_entry_size = sizeof(owners[0]),
		.owner_count = 2,
		.owners = (uintptr_t)owners,
	};
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_SNAPSHOT, &own->sums);
	if (err)
		return err;
	own->cgroup = owners[0];
	own->file = owners[1];
	return 0;
}

static void charges_of(const struct flexmem_owner_entry *entry,
		       struct flexmem_allowance charges[FLEXMEM_CHARGES])
{
	int charge;

	for (charge = 0; charge < FLEXMEM_CHARGES; charge++)
		charges[charge].limit = entry->limit[charge];
	charges[FLEXMEM_CHARGE_BYTES].used = entry->bytes + entry->orphaned;
	charges[FLEXMEM_CHARGE_REGIONS].used = entry->slots;
	charges[FLEXMEM_CHARGE_HANDLES].used = entry->handles;
	charges[FLEXMEM_CHARGE_FILES].used = entry->files;
}

int fmlib_own_charges(const struct flexmem_device *device,
		      struct fmlib_charges *charges)
{
	struct fmlib_own now;
	int err;

	err = fmlib_own(device, &now);
	if (err)
		return err;
	charges_of(&now.cgroup, charges->cgroup);
	charges_of(&now.file, charges->file);
	return 0;
}

int flexmem_device_get_limit(const struct flexmem_device *device,
			     uint32_t charge,
			     struct flexmem_allowance *allowance, size_t size)
{
	struct fmlib_charges own;
	int err;

	if (!device || !allowance || size < FMLIB_ALLOWANCE_MIN ||
	    charge >= FLEXMEM_CHARGES)
		return -EINVAL;
	err = fmlib_own_charges(device, &own);
	if (err)
		return err;
	return fmlib_copy_out(allowance, size, FMLIB_ALLOWANCE_MIN,
			      &own.cgroup[charge], sizeof(own.cgroup[charge]));
}

int flexmem_device_set_limit(struct flexmem_device *device, uint32_t whose,
			     uint64_t cgroup, uint32_t charge, uint64_t limit,
			     struct flexmem_allowance *allowance, size_t size)
{
	struct flexmem_resource_limit cmd = {
		.size = sizeof(cmd),
		.flags = whose & FLEXMEM_FOR_ALL_FUNCTIONS ?
				 FLEXMEM_LIMIT_ALL_FUNCTIONS : 0,
		.scope = whose & ~(uint32_t)FLEXMEM_FOR_ALL_FUNCTIONS,
		.resource = charge,
		.cgroup = cgroup,
		.limit = limit,
	};
	struct flexmem_allowance now;
	int err;

	if (!device || (allowance && size < FMLIB_ALLOWANCE_MIN))
		return -EINVAL;
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_SET_LIMIT, &cmd);
	if (err || !allowance)
		return err;
	now = (struct flexmem_allowance){
		.limit = cmd.out_limit,
		.used = cmd.out_used,
	};
	return fmlib_copy_out(allowance, size, FMLIB_ALLOWANCE_MIN, &now,
			      sizeof(now));
}

int flexmem_device_reserve(struct flexmem_device *device, uint64_t cgroup,
			   uint64_t size, uint32_t count, uint32_t *limit)
{
	struct flexmem_reserve cmd = {
		.size = sizeof(cmd),
		.cgroup = cgroup,
		.length = size,
		.count = count,
	};
	int err;

	if (!device)
		return -EINVAL;
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_RESERVE, &cmd);
	if (limit)
		*limit = cmd.out_reason;
	return err;
}
