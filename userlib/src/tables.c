// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The region table and the segment table. Both are read in two calls, the first
 * of which returns the number of entries. If entries are added between the two
 * calls, the second call reports that, and is repeated with more room.
 */
#include "internal.h"

#include <stdlib.h>

/* How often the second call is made, if the table grows each time. */
#define MAX_TRIES 8

/*
 * The regions or the segment table, as read from the driver. @send asks the
 * driver to fill @entries, which has room for @room entries. @count: the number
 * of entries that the driver has.
 */
struct table {
	size_t entry_size;
	int (*send)(const struct flexmem_device *device, struct table *table);
	void *entries;
	uint32_t room;
	uint32_t count;
	uint64_t generation;
};

static int send_regions(const struct flexmem_device *device,
			struct table *table)
{
	struct flexmem_snapshot cmd = {
		.size = sizeof(cmd),
		.region_entry_size = (uint32_t)table->entry_size,
		.region_count = table->room,
		.regions = (uintptr_t)table->entries,
		.owner_entry_size = sizeof(struct flexmem_owner_entry),
	};
	int err;

	err = fmlib_ioctl(device, FLEXMEM_IOCTL_SNAPSHOT, &cmd);
	table->count = cmd.out_region_count;
	return err;
}

static int send_segments(const struct flexmem_device *device,
			 struct table *table)
{
	struct flexmem_segments cmd = {
		.size = sizeof(cmd),
		.entry_size = (uint32_t)table->entry_size,
		.count = table->room,
		.entries = (uintptr_t)table->entries,
	};
	int err;

	err = fmlib_ioctl(device, FLEXMEM_IOCTL_SEGMENTS, &cmd);
	table->count = cmd.out_count;
	table->generation = cmd.out_generation;
	return err;
}

/* If read_table() succeeds, the caller frees @table->entries. */
static int read_table(const struct flexmem_device *device, struct table *table)
{
	int tries;
	int err;

	for (tries = 0; tries < MAX_TRIES; tries++) {
		err = table->send(device, table);
		if (!err && table->count <= table->room)
			return 0;
		free(table->entries);
		table->entries = NULL;
		table->room = 0;
		if (err && err != -EMSGSIZE)
			return err;
		/*
		 * send() has set the count. If the table has grown since, the
		 * next try has more room.
		 */
		table->entries = calloc(table->count ? table->count : 1,
					table->entry_size);
		if (!table->entries)
			return -ENOMEM;
		table->room = table->count;
	}
	free(table->entries);
	return -EAGAIN;
}

static uint32_t flags_from_uapi(uint32_t from)
{
	uint32_t flags = 0;

	if (from & FLEXMEM_REGION_PROGRAM)
		flags |= FLEXMEM_PROGRAM;
	if (from & FLEXMEM_REGION_HIDDEN)
		flags |= FLEXMEM_HIDDEN;
	return flags;
}

void fmlib_region_from_uapi(const void *from, void *to, size_t size)
{
	const struct flexmem_region_entry *entry = from;
	struct flexmem_region_state region = {
		.region_id = entry->region_id,
		.slot = entry->slot,
		.flags = flags_from_uapi(entry->flags),
		.total = entry->total,
		.free = entry->free,
		.largest_free = entry->largest_free,
		.allocated_blocks = entry->nr_allocated,
		.free_blocks = entry->nr_free,
		.sequence = entry->sequence,
		.domain = entry->domain,
	};

	fmlib_copy_out(to, size, FMLIB_REGION_MIN, &region, sizeof(region));
}

static void segment_from_uapi(const void *from, void *to, size_t size)
{
	const struct flexmem_segment_entry *entry = from;
	struct flexmem_segment segment = {
		.slot = entry->slot,
		.flags = flags_from_uapi(entry->flags),
		.region_id = entry->region_id,
		.length = entry->length,
	};

	fmlib_copy_out(to, size, FMLIB_SEGMENT_MIN, &segment, sizeof(segment));
}

/* Converts the driver's entries to entries of @size bytes, and frees them. */
static int convert(struct table *table, size_t size, void **array,
		   void (*one)(const void *from, void *to, size_t size))
{
	const char *from = table->entries;
	char *to = NULL;
	uint32_t i;

	if (table->count) {
		to = calloc(table->count, size);
		if (!to) {
			free(table->entries);
			return -ENOMEM;
		}
	}
	for (i = 0; i < table->count; i++)
		one(from + i * table->entry_size, to + i * size, size);
	free(table->entries);
	*array = to;
	return 0;
}

int flexmem_device_regions(const struct flexmem_device *device,
			   struct flexmem_region_state **regions, size_t size,
			   size_t *count)
{
	struct table table = {
		.entry_size = sizeof(struct flexmem_region_entry),
		.send = send_regions,
	};
	void *array;
	int err;

	if (!device || !regions || !count || size < FMLIB_REGION_MIN)
		return -EINVAL;
	err = read_table(device, &table);
	if (!err)
		err = convert(&table, size, &array, fmlib_region_from_uapi);
	if (err)
		return err;
	*regions = array;
	*count = table.count;
	return 0;
}

void flexmem_regions_free(struct flexmem_region_state *regions)
{
	free(regions);
}

int flexmem_device_segments(const struct flexmem_device *device,
			    struct flexmem_segment **segments, size_t size,
			    size_t *count, uint64_t *generation)
{
	struct table table = {
		.entry_size = sizeof(struct flexmem_segment_entry),
		.send = send_segments,
	};
	void *array;
	int err;

	if (!device || !segments || !count || size < FMLIB_SEGMENT_MIN)
		return -EINVAL;
	err = read_table(device, &table);
	if (!err)
		err = convert(&table, size, &array, segment_from_uapi);
	if (err)
		return err;
	*segments = array;
	*count = table.count;
	if (generation)
		*generation = table.generation;
	return 0;
}

void flexmem_segments_free(struct flexmem_segment *segments)
{
	free(segments);
}
