// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Many allocations at once. The library cuts a batch into pieces that are small
 * enough for the driver, and converts one piece after another in the same
 * buffer.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* The most entries of one command. More would not be faster. */
#define MAX_PIECE 1024

static size_t piece_size(const struct flexmem_device *device, size_t count)
{
	size_t piece = device->info.out_max_batch;

	if (piece > MAX_PIECE)
		piece = MAX_PIECE;
	if (!piece)
		piece = 1;
	return count < piece ? count : piece;
}

/*
 * Sends @count entries. Returns 0 or -errno. @done receives how many entries
 * were carried out; an EFAULT undoes the whole piece.
 */
static int send_piece(const struct flexmem_device *device,
		      unsigned long command, void *entries, size_t entry_size,
		      size_t count, size_t *done)
{
	struct flexmem_batch cmd = {
		.size = sizeof(cmd),
		.entry_size = (uint32_t)entry_size,
		.count = (uint32_t)count,
		.entries = (uintptr_t)entries,
	};
	int err;

	err = fmlib_ioctl(device, command, &cmd);
	if (!err)
		*done = count;
	else if (err == -EINTR && cmd.out_done <= count)
		*done = cmd.out_done;
	else
		*done = 0;
	return err;
}

static void *nth(void *array, size_t stride, size_t n)
{
	return (char *)array + n * stride;
}

/*
 * fmlib_copy_in() cannot fail, because check_requests() has checked the sizes
 * before the first command.
 */
static struct flexmem_alloc_request
nth_request(const struct flexmem_alloc_request *requests, size_t stride,
	    size_t n)
{
	struct flexmem_alloc_request request;

	fmlib_copy_in(&request, sizeof(request),
		      (const char *)requests + n * stride, stride,
		      FMLIB_REQUEST_MIN);
	return request;
}

static int alloc_piece(struct flexmem_device *device,
		       const struct flexmem_alloc_request *requests,
		       size_t stride, struct flexmem_alloc *entries,
		       struct flexmem_allocated *allocations,
		       size_t result_stride, size_t count, size_t *done)
{
	struct flexmem_allocated result;
	struct flexmem_alloc_request request;
	struct fmlib_debug debug;
	size_t i;
	int err;

	for (i = 0; i < count; i++) {
		request = nth_request(requests, stride, i);
		entries[i] = fmlib_request_to_uapi(&request);
	}
	fmlib_debug_begin(device, &debug);
	err = send_piece(device, FLEXMEM_IOCTL_ALLOC_BATCH, entries,
			 sizeof(*entries), count, done);
	fmlib_debug_done(device, &debug);
	for (i = 0; i < *done; i++) {
		request = nth_request(requests, stride, i);
		fmlib_allocation_from_uapi(device, -entries[i].out_error,
					   &request, &entries[i], &result);
		fmlib_debug_alloc(device, &debug, &request, &result);
		fmlib_copy_out(nth(allocations, result_stride, i),
			       result_stride, FMLIB_ALLOCATION_MIN, &result,
			       sizeof(result));
	}
	fmlib_debug_end(device, &debug);
	return err;
}

static int check_requests(const struct flexmem_alloc_request *requests,
			  size_t stride, size_t count)
{
	struct flexmem_alloc_request request;
	size_t i;
	int err;

	for (i = 0; i < count; i++) {
		err = fmlib_copy_in(&request, sizeof(request),
				    (const char *)requests + i * stride,
				    stride, FMLIB_REQUEST_MIN);
		if (err)
			return err;
	}
	return 0;
}

int flexmem_device_alloc_batch(struct flexmem_device *device,
			       const struct flexmem_alloc_request *requests,
			       size_t request_size,
			       struct flexmem_allocated *allocations,
			       size_t allocation_size, size_t count)
{
	static const struct flexmem_allocated canceled = {
		.error = -ECANCELED,
	};
	struct flexmem_alloc *entries;
	size_t piece;
	size_t left;
	size_t done;
	size_t i;
	int err;

	if (!device || request_size < FMLIB_REQUEST_MIN ||
	    allocation_size < FMLIB_ALLOCATION_MIN)
		return -EINVAL;
	if (!count)
		return 0;
	if (!requests || !allocations)
		return -EINVAL;
	for (i = 0; i < count; i++)
		fmlib_copy_out(nth(allocations, allocation_size, i),
			       allocation_size, FMLIB_ALLOCATION_MIN, &canceled,
			       sizeof(canceled));
	err = check_requests(requests, request_size, count);
	if (err)
		return err;

	piece = piece_size(device, count);
	entries = calloc(piece, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	for (left = count; left && !err; left -= done) {
		i = count - left;
		err = alloc_piece(device,
				  (const void *)((const char *)requests +
						 i * request_size),
				  request_size, entries,
				  nth(allocations, allocation_size, i),
				  allocation_size, left < piece ? left : piece,
				  &done);
	}
	free(entries);
	return err;
}

/* Frees by @handles or by @addresses. One of the two is NULL. */
static int free_piece(struct flexmem_device *device, const uint32_t *handles,
		      const struct flexmem_virtual_address *addresses,
		      struct flexmem_free *entries, int *errors, size_t count,
		      size_t *done)
{
	static const struct flexmem_virtual_address nowhere;
	struct fmlib_debug debug;
	size_t i;
	int err;

	memset(entries, 0, count * sizeof(*entries));
	for (i = 0; i < count; i++) {
		entries[i].size = sizeof(*entries);
		if (handles) {
			entries[i].handle = handles[i];
			continue;
		}
		entries[i].flags = FLEXMEM_FREE_BY_ADDRESS;
		entries[i].address.region_id = addresses[i].region_id;
		entries[i].address.offset = addresses[i].offset;
	}
	fmlib_debug_begin(device, &debug);
	err = send_piece(device, FLEXMEM_IOCTL_FREE_BATCH, entries,
			 sizeof(*entries), count, done);
	fmlib_debug_done(device, &debug);
	for (i = 0; i < *done; i++) {
		errors[i] = -entries[i].out_error;
		fmlib_debug_free(device, &debug, errors[i],
				 handles ? handles[i] : 0,
				 addresses ? &addresses[i] : &nowhere, 0);
	}
	fmlib_debug_end(device, &debug);
	return err;
}

static int free_all(struct flexmem_device *device, const uint32_t *handles,
		    const struct flexmem_virtual_address *addresses,
		    int *errors, size_t count)
{
	struct flexmem_free *entries;
	size_t piece;
	size_t left;
	size_t done;
	size_t i;
	int err = 0;

	if (!device)
		return -EINVAL;
	if (!count)
		return 0;
	if ((!handles && !addresses) || !errors)
		return -EINVAL;
	for (i = 0; i < count; i++)
		errors[i] = -ECANCELED;

	piece = piece_size(device, count);
	entries = calloc(piece, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	for (left = count; left && !err; left -= done) {
		i = count - left;
		err = free_piece(device, handles ? handles + i : NULL,
				 addresses ? addresses + i : NULL, entries,
				 errors + i, left < piece ? left : piece,
				 &done);
	}
	free(entries);
	return err;
}

int flexmem_device_free_batch(struct flexmem_device *device,
			      const uint32_t *handles, int *errors,
			      size_t count)
{
	return free_all(device, handles, NULL, errors, count);
}

int
flexmem_device_free_address_batch(struct flexmem_device *device,
				  const struct flexmem_virtual_address *addresses,
				  int *errors, size_t count)
{
	return free_all(device, NULL, addresses, errors, count);
}
