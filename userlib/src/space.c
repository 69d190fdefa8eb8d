// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Device-virtual addresses, and the memory that is bound there. */
#include "internal.h"

_Static_assert(FLEXMEM_SPACE_READ == (int)FLEXMEM_VA_READ, "same bit");
_Static_assert(FLEXMEM_SPACE_WRITE == (int)FLEXMEM_VA_WRITE, "same bit");
_Static_assert(FLEXMEM_SPACE_EXECUTE == (int)FLEXMEM_VA_EXECUTE, "same bit");

/*
 * Rounds a length up to whole pages, as the driver does. The driver's reply
 * does not contain the rounded length.
 */
static uint64_t whole_pages(const struct flexmem_device *device,
			    uint64_t length)
{
	uint64_t mask = device->info.out_va_page - 1;

	if (!device->info.out_va_page)
		return length;
	return length > UINT64_MAX - mask ? UINT64_MAX :
					    (length + mask) & ~mask;
}

int flexmem_device_space_reserve(struct flexmem_device *device, uint64_t length,
				 struct flexmem_space_range *range, size_t size)
{
	struct flexmem_va_reserve cmd = {
		.size = sizeof(cmd),
		.length = length,
	};
	struct flexmem_space_range result = { 0 };
	int err;

	if (!device || !range || size < FMLIB_SPACE_RANGE_MIN)
		return -EINVAL;
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_VA_RESERVE, &cmd);
	result.address = cmd.out_address;
	result.length = whole_pages(device, length);
	result.largest_free = cmd.out_largest_free;
	fmlib_copy_out(range, size, FMLIB_SPACE_RANGE_MIN, &result,
		       sizeof(result));
	return err;
}

int flexmem_device_space_free(struct flexmem_device *device, uint64_t address)
{
	struct flexmem_va_free cmd = {
		.size = sizeof(cmd),
		.address = address,
	};

	return device ? fmlib_ioctl(device, FLEXMEM_IOCTL_VA_FREE, &cmd) :
			-EINVAL;
}

int flexmem_device_space_bind(struct flexmem_device *device, uint64_t address,
			      uint32_t handle, uint64_t offset,
			      uint64_t length, uint32_t access)
{
	struct flexmem_va_bind cmd = {
		.size = sizeof(cmd),
		.handle = handle,
		.access = access,
		.address = address,
		.offset = offset,
		.length = length,
	};

	return device ? fmlib_ioctl(device, FLEXMEM_IOCTL_VA_BIND, &cmd) :
			-EINVAL;
}

int flexmem_device_space_unbind(struct flexmem_device *device,
				uint64_t address)
{
	struct flexmem_va_unbind cmd = {
		.size = sizeof(cmd),
		.address = address,
	};

	return device ? fmlib_ioctl(device, FLEXMEM_IOCTL_VA_UNBIND, &cmd) :
			-EINVAL;
}

static int lookup(const struct flexmem_device *device,
		  struct flexmem_va_lookup *cmd,
		  struct flexmem_space_bytes *bytes, size_t size)
{
	struct flexmem_space_bytes result;
	int err;

	if (!device || !bytes || size < FMLIB_SPACE_BYTES_MIN)
		return -EINVAL;
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_VA_LOOKUP, cmd);
	if (err)
		return err;
	result = (struct flexmem_space_bytes){
		.handle = cmd->out_handle,
		.chunk = cmd->out_chunk,
		.access = cmd->out_access,
		.address = cmd->out_address,
		.offset = cmd->out_offset,
		.length = cmd->out_length,
	};
	return fmlib_copy_out(bytes, size, FMLIB_SPACE_BYTES_MIN, &result,
			      sizeof(result));
}

int flexmem_device_space_lookup(const struct flexmem_device *device,
				uint32_t handle, uint64_t offset,
				struct flexmem_space_bytes *bytes, size_t size)
{
	struct flexmem_va_lookup cmd = {
		.size = sizeof(cmd),
		.handle = handle,
		.offset = offset,
	};

	/* For the driver, handle 0 means a look-up by address. */
	if (device && bytes && size >= FMLIB_SPACE_BYTES_MIN && !handle)
		return device->info.out_va_page ? -ENOENT : -EOPNOTSUPP;
	return lookup(device, &cmd, bytes, size);
}

int flexmem_device_space_lookup_address(const struct flexmem_device *device,
					uint64_t address,
					struct flexmem_space_bytes *bytes,
					size_t size)
{
	struct flexmem_va_lookup cmd = {
		.size = sizeof(cmd),
		.address = address,
	};

	return lookup(device, &cmd, bytes, size);
}
