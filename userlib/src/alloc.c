// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Single allocations. */
#include "internal.h"

#include <string.h>

void fmlib_refusal_from_uapi(const struct flexmem_refusal *from,
			     struct flexmem_failure *failure)
{
	failure->quota = FLEXMEM_UNLIMITED;
	failure->quota_left = FLEXMEM_UNLIMITED;
	if (from->flags & FLEXMEM_REFUSAL_ALONE)
		failure->quota_flags = FLEXMEM_QUOTA_ALONE;
	/* No limit was reached, or the driver is older. */
	if (!from->cgroup && !from->limit &&
	    !(from->flags & FLEXMEM_REFUSAL_HIDDEN))
		return;
	failure->charge = from->resource;
	if (from->flags & FLEXMEM_REFUSAL_SHARED)
		failure->quota_flags |= FLEXMEM_QUOTA_SHARED;
	failure->quota_own = from->own;
	failure->quota_left = from->used < from->limit ?
				      from->limit - from->used : 0;
	if (from->flags & FLEXMEM_REFUSAL_HIDDEN)
		return;
	failure->quota = from->limit;
	failure->quota_used = from->used;
	failure->quota_cgroup = from->cgroup;
}

static void failure_from_uapi(const struct flexmem_device *device,
			      const struct flexmem_alloc *reply,
			      struct flexmem_failure *failure)
{
	*failure = (struct flexmem_failure){
		.limit = reply->out_reason,
		.regions = reply->out_regions,
		.slots = device->info.out_slots,
		.program_slots = device->info.out_program_slots,
		.max_regions = device->info.out_max_regions,
		.max_handles = device->info.out_max_handles,
		.flags = reply->flags,
		.asked = reply->out_size,
		.total_free = reply->out_total_free,
		.largest_free = reply->out_largest_free,
		.max_region = reply->out_max_region,
		.own_used = reply->out_client_used,
		.leaving = reply->out_leaving,
		.region_limit = reply->out_region_reason,
		.event = reply->out_event,
	};
	fmlib_refusal_from_uapi(&reply->out_refusal, failure);
}

/* Finds out which value is wrong, because the driver returns only EINVAL. */
static void explain_invalid(const struct flexmem_device *device,
			    const struct flexmem_alloc_request *request,
			    struct flexmem_failure *failure)
{
	uint64_t alignment = request->alignment;

	failure->quota = FLEXMEM_UNLIMITED;
	failure->quota_left = FLEXMEM_UNLIMITED;
	if (!request->length) {
		failure->limit = FLEXMEM_LIMIT_NO_LENGTH;
	} else if (alignment & (alignment - 1)) {
		failure->limit = FLEXMEM_LIMIT_ALIGNMENT_POWER;
		failure->asked = alignment;
	} else if (alignment > device->info.out_max_alignment) {
		failure->limit = FLEXMEM_LIMIT_ALIGNMENT_MAX;
		failure->asked = alignment;
	} else {
		failure->limit = FLEXMEM_LIMIT_DOMAINS;
		failure->asked = request->domains;
	}
}

static uint32_t flags_from_uapi(uint32_t from)
{
	uint32_t flags = 0;

	if (from & FLEXMEM_ALLOC_PROGRAM)
		flags |= FLEXMEM_PROGRAM;
	if (from & FLEXMEM_ALLOC_MAPPABLE)
		flags |= FLEXMEM_MAPPABLE;
	if (from & FLEXMEM_ALLOC_ZEROED)
		flags |= FLEXMEM_ZEROED;
	if (from & FLEXMEM_ALLOC_GROWABLE)
		flags |= FLEXMEM_GROWABLE;
	if (from & FLEXMEM_LOOKUP_LOST)
		flags |= FLEXMEM_LOST;
	return flags;
}

void fmlib_allocation_from_uapi(const struct flexmem_device *device, int error,
				const struct flexmem_alloc_request *request,
				const struct flexmem_alloc *reply,
				struct flexmem_allocated *allocation)
{
	memset(allocation, 0, sizeof(*allocation));
	allocation->flags = flags_from_uapi(reply->flags);
	allocation->error = error;
	if (error == -ENOMEM && reply->out_reason != FLEXMEM_REASON_NONE)
		failure_from_uapi(device, reply, &allocation->failure);
	else if (error == -EINVAL)
		explain_invalid(device, request, &allocation->failure);
	if (error)
		return;
	allocation->handle = reply->out_handle;
	allocation->address.region_id = reply->out_address.region_id;
	allocation->address.offset = reply->out_address.offset;
	allocation->size = reply->out_size;
	allocation->chunks = reply->out_chunks;
}

struct flexmem_alloc
fmlib_request_to_uapi(const struct flexmem_alloc_request *request)
{
	/*
	 * The library's flags have the values of the driver's flags. The driver
	 * refuses unknown flags.
	 */
	return (struct flexmem_alloc){
		.size = sizeof(struct flexmem_alloc),
		.flags = request->flags,
		.length = request->length,
		.alignment = request->alignment,
		.policy = request->placement,
		.domains = request->domains,
	};
}

int flexmem_device_alloc_request(struct flexmem_device *device,
				 const struct flexmem_alloc_request *from,
				 size_t request_size,
				 struct flexmem_allocated *allocation,
				 size_t size)
{
	struct flexmem_alloc_request request;
	struct flexmem_allocated result;
	struct fmlib_debug debug;
	struct flexmem_alloc cmd;
	int err;

	if (!device || !allocation || size < FMLIB_ALLOCATION_MIN)
		return -EINVAL;
	err = fmlib_copy_in(&request, sizeof(request), from, request_size,
			    FMLIB_REQUEST_MIN);
	if (err)
		return err;

	cmd = fmlib_request_to_uapi(&request);
	fmlib_debug_begin(device, &debug);
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_ALLOC, &cmd);
	fmlib_allocation_from_uapi(device, err, &request, &cmd, &result);
	if (debug.on) {
		fmlib_debug_done(device, &debug);
		fmlib_debug_alloc(device, &debug, &request, &result);
		fmlib_debug_end(device, &debug);
	}
	fmlib_copy_out(allocation, size, FMLIB_ALLOCATION_MIN, &result,
		       sizeof(result));
	return err;
}

int flexmem_device_alloc(struct flexmem_device *device, uint64_t length,
			 uint64_t alignment, uint32_t flags,
			 struct flexmem_allocated *allocation, size_t size)
{
	struct flexmem_alloc_request request = {
		.length = length,
		.alignment = alignment,
		.flags = flags,
	};

	return flexmem_device_alloc_request(device, &request, sizeof(request),
					    allocation, size);
}

int flexmem_device_lookup(const struct flexmem_device *device, uint32_t handle,
			  struct flexmem_allocated *allocation, size_t size)
{
	struct flexmem_lookup cmd = { .size = sizeof(cmd), .handle = handle };
	struct flexmem_allocated result;
	int err;

	if (!device || !allocation || size < FMLIB_ALLOCATION_MIN)
		return -EINVAL;
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_LOOKUP, &cmd);
	if (err)
		return err;
	result = (struct flexmem_allocated){
		.handle = handle,
		.flags = flags_from_uapi(cmd.out_flags),
		.address.region_id = cmd.out_address.region_id,
		.address.offset = cmd.out_address.offset,
		.size = cmd.out_size,
		.chunks = cmd.out_count,
	};
	return fmlib_copy_out(allocation, size, FMLIB_ALLOCATION_MIN, &result,
			      sizeof(result));
}

int flexmem_device_chunks(const struct flexmem_device *device, uint32_t handle,
			  struct flexmem_chunk_info *chunks, size_t size,
			  size_t room, size_t *count)
{
	struct flexmem_chunk_entry entries[FLEXMEM_MAX_CHUNKS];
	struct flexmem_lookup cmd = {
		.size = sizeof(cmd),
		.handle = handle,
		.entry_size = sizeof(entries[0]),
		.count = FLEXMEM_MAX_CHUNKS,
		.entries = (uintptr_t)entries,
	};
	size_t i;
	int err;

	if (!device || !count || (room && !chunks) ||
	    size < sizeof(struct flexmem_chunk_info))
		return -EINVAL;
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_LOOKUP, &cmd);
	if (err)
		return err;
	*count = cmd.out_count;
	if (cmd.out_count > room)
		return -EMSGSIZE;
	for (i = 0; i < cmd.out_count; i++) {
		const struct flexmem_chunk_info chunk = {
			.address.region_id = entries[i].address.region_id,
			.address.offset = entries[i].address.offset,
			.size = entries[i].length,
			.domain = entries[i].domain,
		};

		fmlib_copy_out((char *)chunks + i * size, size,
			       sizeof(struct flexmem_chunk_info), &chunk,
			       sizeof(chunk));
	}
	return 0;
}

static int free_by_handle(struct flexmem_device *device,
			  struct flexmem_free *cmd)
{
	struct flexmem_allocated old = { .handle = cmd->handle };
	struct fmlib_debug debug;
	int err;

	if (!cmd->handle)
		return 0;
	if (!device)
		return -EINVAL;
	fmlib_debug_begin(device, &debug);
	if (debug.on)
		flexmem_device_lookup(device, cmd->handle, &old, sizeof(old));
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_FREE, cmd);
	if (debug.on) {
		fmlib_debug_done(device, &debug);
		fmlib_debug_free(device, &debug, err, cmd->handle,
				 &old.address, old.size);
		fmlib_debug_end(device, &debug);
	}
	return err;
}

int flexmem_device_free(struct flexmem_device *device, uint32_t handle)
{
	struct flexmem_free cmd = { .size = sizeof(cmd), .handle = handle };

	return free_by_handle(device, &cmd);
}

int flexmem_device_free_address(struct flexmem_device *device,
				struct flexmem_virtual_address address)
{
	struct flexmem_free cmd = {
		.size = sizeof(cmd),
		.flags = FLEXMEM_FREE_BY_ADDRESS,
		.address.region_id = address.region_id,
		.address.offset = address.offset,
	};
	struct fmlib_debug debug;
	int err;

	if (!device)
		return -EINVAL;
	fmlib_debug_begin(device, &debug);
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_FREE, &cmd);
	if (debug.on) {
		fmlib_debug_done(device, &debug);
		fmlib_debug_free(device, &debug, err, 0, &address, 0);
		fmlib_debug_end(device, &debug);
	}
	return err;
}
