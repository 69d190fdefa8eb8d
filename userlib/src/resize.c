// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* RESIZE: allocations grow and shrink without changing their address. */
#include "internal.h"

/*
 * Adds the figures about free memory to a failure. Leaves out those that cannot
 * be read.
 */
static void add_free(const struct flexmem_device *device,
		     struct flexmem_failure *failure)
{
	struct flexmem_domain_state all;

	if (flexmem_device_domain(device, FLEXMEM_WHOLE_DEVICE, &all,
				  sizeof(all)))
		return;
	failure->total_free = all.free;
	failure->largest_free = all.largest_free;
}

static void failure_from_uapi(const struct flexmem_device *device,
			      const struct flexmem_resize *reply,
			      struct flexmem_failure *failure)
{
	const struct flexmem_info *info = &device->info;
	struct fmlib_own own;
	uint64_t rounded = reply->length + info->out_alignment - 1;

	rounded -= rounded % info->out_alignment;
	*failure = (struct flexmem_failure){
		.limit = reply->out_reason,
		.slots = info->out_slots,
		.program_slots = info->out_program_slots,
		.max_regions = info->out_max_regions,
		.max_handles = info->out_max_handles,
		.asked = rounded - reply->out_size,
		.max_region = info->out_max_region,
	};
	/* Without these figures the error text has fewer details. */
	if (!fmlib_own(device, &own)) {
		failure->regions = own.sums.out_region_count;
		failure->own_used = own.file.bytes;
	}
	add_free(device, failure);
	fmlib_refusal_from_uapi(&reply->out_refusal, failure);
}

int flexmem_device_resize(struct flexmem_device *device, uint32_t handle,
			  uint64_t length, struct flexmem_resized *resized,
			  size_t size)
{
	struct flexmem_resize cmd = {
		.size = sizeof(cmd),
		.handle = handle,
		.length = length,
	};
	struct flexmem_resized result = { 0 };
	struct fmlib_debug debug;
	int err;

	if (!device || (resized && size < FMLIB_RESIZED_MIN))
		return -EINVAL;
	fmlib_debug_begin(device, &debug);
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_RESIZE, &cmd);
	result.bytes = cmd.out_size;
	result.most = cmd.out_max;
	if (err == -ENOMEM && cmd.out_reason != FLEXMEM_REASON_NONE)
		failure_from_uapi(device, &cmd, &result.failure);
	if (debug.on) {
		fmlib_debug_done(device, &debug);
		fmlib_debug_resize(device, &debug, err, handle, length,
				   &result);
		fmlib_debug_end(device, &debug);
	}
	if (resized)
		fmlib_copy_out(resized, size, FMLIB_RESIZED_MIN, &result,
			       sizeof(result));
	return err;
}
