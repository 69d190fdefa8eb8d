// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The bytes of allocations: mappings for the CPU, and copies by the driver. The
 * offsets of mappings need more than 32 bits, in 32-bit programs too.
 */
#define _FILE_OFFSET_BITS 64
#include "internal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* How many bytes a copy through the host reads and writes at a time. */
#define BOUNCE (UINT64_C(1) << 16)

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/*
 * Finds the chunk of the byte at @offset of a mappable allocation. @offset becomes
 * the byte's offset in that chunk.
 */
static int find_chunk(const struct flexmem_device *device, uint32_t handle,
		      uint64_t *offset, struct flexmem_chunk_entry *chunk)
{
	struct flexmem_chunk_entry entries[FLEXMEM_MAX_CHUNKS] = { 0 };
	struct flexmem_lookup list = {
		.size = sizeof(list),
		.handle = handle,
		.entry_size = sizeof(entries[0]),
		.count = FLEXMEM_MAX_CHUNKS,
		.entries = (uintptr_t)entries,
	};
	uint32_t i;
	int err;

	if (!(device->info.out_capabilities & FLEXMEM_CAP_MAP))
		return -EOPNOTSUPP;
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_LOOKUP, &list);
	if (err)
		return err;
	if (list.out_flags & FLEXMEM_LOOKUP_LOST)
		return -EIO;
	if (!(list.out_flags & FLEXMEM_ALLOC_MAPPABLE))
		return -EINVAL;
	for (i = 0; i < list.out_count; i++) {
		if (*offset < entries[i].length) {
			*chunk = entries[i];
			return 0;
		}
		*offset -= entries[i].length;
	}
	return -EINVAL;
}

int flexmem_device_map(struct flexmem_device *device, uint32_t handle,
		       uint64_t offset, size_t length, uint32_t flags,
		       void **address, size_t *mapped)
{
	struct flexmem_chunk_entry chunk;
	int protection = PROT_READ;
	uint64_t part = length;
	void *start;
	int err;

	if (!device || !address || offset % page_size())
		return -EINVAL;
	if (flags & ~FLEXMEM_READ_ONLY)
		return -EOPNOTSUPP;
	if (!(flags & FLEXMEM_READ_ONLY))
		protection |= PROT_WRITE;
	err = find_chunk(device, handle, &offset, &chunk);
	if (err)
		return err;
	if (!part)
		part = chunk.length - offset;
	/* A 32-bit program may not be able to map all bytes. */
	if (part > chunk.length - offset || part > SIZE_MAX)
		return -EINVAL;
	start = mmap(NULL, (size_t)part, protection, MAP_SHARED, device->fd,
		     (off_t)(chunk.map_offset + offset));
	if (start == MAP_FAILED)
		return -errno;
	*address = start;
	if (mapped)
		*mapped = (size_t)part;
	return 0;
}

int flexmem_device_unmap(struct flexmem_device *device, void *address,
			 size_t length)
{
	(void)device;
	if (!address)
		return 0;
	return munmap(address, length) ? -errno : 0;
}

/*
 * Repeats the command until all bytes are copied or the command fails, because
 * the driver may copy fewer bytes without an error.
 */
static int copy(const struct flexmem_device *device, unsigned long command,
		uint32_t handle, uint64_t offset, uintptr_t data, size_t length,
		size_t *done)
{
	struct flexmem_rw cmd;
	size_t sum = 0;
	int err = 0;

	if (done)
		*done = 0;
	if (!device || (!data && length))
		return -EINVAL;
	while (!err && sum < length) {
		cmd = (struct flexmem_rw){
			.size = sizeof(cmd),
			.handle = handle,
			.offset = offset + sum,
			.length = length - sum,
			.data = data + sum,
		};
		err = fmlib_ioctl(device, command, &cmd);
		/*
		 * The flexmem driver never copies too many bytes. If it copies
		 * no bytes, it returns an error.
		 */
		if (cmd.out_done > length - sum || (!err && !cmd.out_done))
			err = -EIO;
		else
			sum += (size_t)cmd.out_done;
	}
	if (done)
		*done = sum;
	return err;
}

int flexmem_device_read(const struct flexmem_device *device, uint32_t handle,
			uint64_t offset, void *data, size_t length,
			size_t *done)
{
	return copy(device, FLEXMEM_IOCTL_READ, handle, offset,
		    (uintptr_t)data, length, done);
}

int flexmem_device_write(struct flexmem_device *device, uint32_t handle,
			 uint64_t offset, const void *data, size_t length,
			 size_t *done)
{
	return copy(device, FLEXMEM_IOCTL_WRITE, handle, offset,
		    (uintptr_t)data, length, done);
}

static bool is_inside(const struct flexmem_device *device, uint32_t handle,
		      uint64_t offset, uint64_t length, int *err)
{
	struct flexmem_allocated allocation = { 0 };

	*err = flexmem_device_lookup(device, handle, &allocation,
				     sizeof(allocation));
	return !*err && offset <= allocation.size &&
	       length <= allocation.size - offset;
}

/* Checks arguments as the driver's COPY does, for a device without COPY. */
static int check_copy(const struct flexmem_device *device, uint32_t to,
		      uint64_t to_offset, uint32_t from, uint64_t from_offset,
		      uint64_t length)
{
	uint64_t mask = device->info.out_alignment - 1;
	int err;

	if (!is_inside(device, to, to_offset, length, &err) ||
	    !is_inside(device, from, from_offset, length, &err))
		return err ? err : -EINVAL;
	if ((to_offset | from_offset | length) & mask)
		return -EINVAL;
	return to == from && to_offset < from_offset + length &&
	       from_offset < to_offset + length ? -EINVAL : 0;
}

/*
 * Copies with READ and WRITE. Bytes that were written before an error stay
 * written.
 */
static int copy_by_host(struct flexmem_device *device, uint32_t to,
			uint64_t to_offset, uint32_t from, uint64_t from_offset,
			uint64_t length, uint64_t *done)
{
	size_t part = (size_t)(length < BOUNCE ? length : BOUNCE);
	size_t written;
	char *buffer;
	int err;

	err = check_copy(device, to, to_offset, from, from_offset, length);
	if (err)
		return err;
	buffer = malloc(part);
	if (!buffer)
		return -ENOMEM;
	while (!err && *done < length) {
		if (part > length - *done)
			part = (size_t)(length - *done);
		err = flexmem_device_read(device, from, from_offset + *done,
					  buffer, part, NULL);
		if (err)
			break;
		err = flexmem_device_write(device, to, to_offset + *done,
					   buffer, part, &written);
		*done += written;
	}
	free(buffer);
	return err;
}

int flexmem_device_copy(struct flexmem_device *device, uint32_t to,
			uint64_t to_offset, uint32_t from, uint64_t from_offset,
			uint64_t length, uint64_t *done)
{
	struct flexmem_copy cmd;
	uint64_t sum = 0;
	int err = 0;

	if (done)
		*done = 0;
	if (!device)
		return -EINVAL;
	if (length &&
	    !(device->info.out_capabilities & FLEXMEM_CAP_COPY)) {
		err = copy_by_host(device, to, to_offset, from, from_offset,
				   length, &sum);
		goto out;
	}
	while (!err && sum < length) {
		cmd = (struct flexmem_copy){
			.size = sizeof(cmd),
			.to = to,
			.from = from,
			.to_offset = to_offset + sum,
			.from_offset = from_offset + sum,
			.length = length - sum,
		};
		err = fmlib_ioctl(device, FLEXMEM_IOCTL_COPY, &cmd);
		if (cmd.out_done > length - sum || (!err && !cmd.out_done))
			err = -EIO;
		else
			sum += cmd.out_done;
	}
out:
	if (done)
		*done = sum;
	return err;
}
