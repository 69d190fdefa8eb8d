// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The debug log shows how each allocation and free changed the regions. The
 * driver does not report the change, so the library compares the region table
 * before and after. The comparison costs two to four more commands for each
 * call. The library makes it only at FLEXMEM_LOG_DEBUG.
 */
#include "internal.h"
#include "human.h"

#include <stdio.h>
#include <string.h>

#define REGION_TEXT 24

static const char *region_text(const struct flexmem_device *device,
			       uint64_t region_id, char text[REGION_TEXT])
{
	snprintf(text, REGION_TEXT,
		 device->info.out_mode == FLEXMEM_MODE_PF ? "%#llx" : "%llu",
		 (unsigned long long)region_id);
	return text;
}

static const struct flexmem_region_state *
find(const struct flexmem_region_state *regions, size_t count,
     uint64_t region_id)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (regions[i].region_id == region_id)
			return &regions[i];
	}
	return NULL;
}

static void read_regions(const struct flexmem_device *device,
			 struct flexmem_region_state **regions, size_t *count)
{
	if (flexmem_device_regions(device, regions, sizeof(**regions), count)) {
		*regions = NULL;
		*count = 0;
	}
}

void fmlib_debug_begin(struct flexmem_device *device, struct fmlib_debug *debug)
{
	memset(debug, 0, sizeof(*debug));
	debug->on = fmlib_log_wants(device, FLEXMEM_LOG_DEBUG);
	if (!debug->on)
		return;
	pthread_mutex_lock(&device->debug_lock);
	read_regions(device, &debug->before, &debug->before_count);
}

static void log_acquired(struct flexmem_device *device,
			 const struct flexmem_region_state *region)
{
	const struct flexmem_info *info = &device->info;
	char id[REGION_TEXT];
	char size[FMLIB_HUMAN_MAX];
	char level[48] = "none of the fallback sizes";
	uint32_t i;

	for (i = 0; i < info->out_nr_fallback_sizes &&
	     i < FLEXMEM_MAX_FALLBACK_SIZES; i++) {
		if (info->out_fallback_sizes[i] != region->total)
			continue;
		snprintf(level, sizeof(level), "fallback level %u", i);
		break;
	}
	fmlib_log(device, FLEXMEM_LOG_DEBUG,
		  "acquired region %s in slot %u: size %llu (%s), %s",
		  region_text(device, region->region_id, id), region->slot,
		  (unsigned long long)region->total,
		  fmlib_human(region->total, size), level);
}

void fmlib_debug_done(struct flexmem_device *device, struct fmlib_debug *debug)
{
	size_t i;

	if (!debug->on)
		return;
	read_regions(device, &debug->after, &debug->after_count);
	for (i = 0; i < debug->after_count; i++) {
		if (!find(debug->before, debug->before_count,
			  debug->after[i].region_id))
			log_acquired(device, &debug->after[i]);
	}
}

void fmlib_debug_alloc(struct flexmem_device *device,
		       const struct fmlib_debug *debug,
		       const struct flexmem_alloc_request *request,
		       const struct flexmem_allocated *allocation)
{
	char id[REGION_TEXT];
	char text[512];

	if (!debug->on)
		return;
	if (allocation->error) {
		flexmem_error_text(allocation->error, &allocation->failure,
				   sizeof(allocation->failure), text,
				   sizeof(text));
		fmlib_log(device, FLEXMEM_LOG_DEBUG,
			  "alloc of %llu failed: %s",
			  (unsigned long long)request->length, text);
		return;
	}
	fmlib_log(device, FLEXMEM_LOG_DEBUG,
		  "alloc handle %u: region %s offset %#llx size %llu (asked %llu, alignment %llu%s%s%s%s)",
		  allocation->handle,
		  region_text(device, allocation->address.region_id, id),
		  (unsigned long long)allocation->address.offset,
		  (unsigned long long)allocation->size,
		  (unsigned long long)request->length,
		  (unsigned long long)request->alignment,
		  request->flags & FLEXMEM_PROGRAM ? ", program" : "",
		  request->flags & FLEXMEM_MAPPABLE ? ", mappable" : "",
		  request->flags & FLEXMEM_ZEROED ? ", zeroed" : "",
		  request->flags & FLEXMEM_GROWABLE ? ", growable" : "");
}

/*
 * Tells how a freed block has merged with its neighbours: the number of free
 * blocks has changed by 1, 0 or -1. Works only if the region has changed
 * exactly once.
 */
static const char *merge_text(const struct flexmem_region_state *before,
			      const struct flexmem_region_state *after)
{
	if (!before || !after || after->sequence != before->sequence + 1)
		return "neighbours not known";
	if (after->free_blocks == before->free_blocks + 1)
		return "no free neighbour";
	if (after->free_blocks == before->free_blocks)
		return "merged with one free neighbour";
	return "merged with two free neighbours";
}

void fmlib_debug_free(struct flexmem_device *device,
		      const struct fmlib_debug *debug, int error,
		      uint32_t handle,
		      const struct flexmem_virtual_address *address,
		      uint64_t size)
{
	const struct flexmem_region_state *before;
	const struct flexmem_region_state *after;
	char name[32] = "by address";
	char text[512];
	char id[REGION_TEXT];

	if (!debug->on)
		return;
	if (handle)
		snprintf(name, sizeof(name), "handle %u", handle);
	if (error) {
		flexmem_error_text(error, NULL, 0, text, sizeof(text));
		fmlib_log(device, FLEXMEM_LOG_DEBUG, "free %s failed: %s", name,
			  text);
		return;
	}
	region_text(device, address->region_id, id);
	before = find(debug->before, debug->before_count, address->region_id);
	after = find(debug->after, debug->after_count, address->region_id);
	if (!size && before && after &&
	    after->sequence == before->sequence + 1)
		size = after->free - before->free;
	fmlib_log(device, FLEXMEM_LOG_DEBUG,
		  "free %s: region %s offset %#llx size %llu, %s", name, id,
		  (unsigned long long)address->offset,
		  (unsigned long long)size, merge_text(before, after));
}

void fmlib_debug_resize(struct flexmem_device *device,
			const struct fmlib_debug *debug, int error,
			uint32_t handle, uint64_t length,
			const struct flexmem_resized *resized)
{
	char text[512];

	if (!debug->on)
		return;
	if (error == -EAGAIN) {
		fmlib_log(device, FLEXMEM_LOG_DEBUG,
			  "resize handle %u to %llu: only %llu are possible there",
			  handle, (unsigned long long)length,
			  (unsigned long long)resized->most);
	} else if (error) {
		flexmem_error_text(error, &resized->failure,
				   sizeof(resized->failure), text,
				   sizeof(text));
		fmlib_log(device, FLEXMEM_LOG_DEBUG,
			  "resize handle %u to %llu failed: %s", handle,
			  (unsigned long long)length, text);
	} else {
		fmlib_log(device, FLEXMEM_LOG_DEBUG,
			  "resize handle %u: size %llu (asked %llu)", handle,
			  (unsigned long long)resized->bytes,
			  (unsigned long long)length);
	}
}

void fmlib_debug_end(struct flexmem_device *device, struct fmlib_debug *debug)
{
	const struct flexmem_region_state *region;
	const struct flexmem_region_state *before;
	char largest[FMLIB_HUMAN_MAX];
	char total[FMLIB_HUMAN_MAX];
	char space[FMLIB_HUMAN_MAX];
	char id[REGION_TEXT];
	size_t i;

	if (!debug->on)
		return;
	for (i = 0; i < debug->after_count; i++) {
		region = &debug->after[i];
		before = find(debug->before, debug->before_count,
			      region->region_id);
		if (region->flags & FLEXMEM_HIDDEN ||
		    (before && before->sequence == region->sequence))
			continue;
		fmlib_log(device, FLEXMEM_LOG_DEBUG,
			  "region %s: %s of %s free in %llu blocks, largest %s; %llu blocks used",
			  region_text(device, region->region_id, id),
			  fmlib_human(region->free, space),
			  fmlib_human(region->total, total),
			  (unsigned long long)region->free_blocks,
			  fmlib_human(region->largest_free, largest),
			  (unsigned long long)region->allocated_blocks);
	}
	flexmem_regions_free(debug->before);
	flexmem_regions_free(debug->after);
	pthread_mutex_unlock(&device->debug_lock);
}
