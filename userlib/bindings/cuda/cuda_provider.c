// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The provider of a GPU's memory. A segment of a fixed size is an allocation of
 * the driver. A segment that grows is a range of addresses, large enough for all
 * memory of the GPU, with pages at its beginning.
 */
#include "cuda.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define PAGE FLEXMEM_CUDA_PAGE

/* A segment. Its address in host memory is its handle. */
struct fmcuda_segment {
	uint64_t address;
	/* Bytes of addresses; 0: the size is fixed. */
	uint64_t room;
	/* Pages that are mapped. */
	uint64_t count;
};

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* A stretch of calls of the driver, with the context of the device. */
struct section {
	struct fmcuda_device *device;
	uint64_t start;
	int mode;
};

/*
 * The calls may be made while the program captures a graph. By default the
 * driver would refuse them, and end the capture.
 */
static int enter(struct section *section, struct fmcuda_device *device,
		 int *result)
{
	section->device = device;
	section->start = now();
	section->mode = FMCUDA_RELAXED;
	*result = fmcuda.CtxPushCurrent(device->context);
	if (*result)
		return fmcuda_errno("CtxPushCurrent", *result);
	*result = fmcuda.ThreadExchangeStreamCaptureMode(&section->mode);
	if (*result) {
		fmcuda.CtxPopCurrent(&(void *){ NULL });
		return fmcuda_errno("ThreadExchangeStreamCaptureMode", *result);
	}
	return 0;
}

/*
 * Ends a section, and returns @err. Only a driver that is gone fails here; then
 * the next call fails, too.
 */
static int leave(struct section *section, int err)
{
	struct fmcuda_device *device = section->device;
	uint_fast64_t longest = atomic_load(&device->longest);
	uint64_t spent;
	void *context;

	fmcuda.ThreadExchangeStreamCaptureMode(&section->mode);
	fmcuda.CtxPopCurrent(&context);
	spent = now() - section->start;
	atomic_fetch_add(&device->sections, 1);
	atomic_fetch_add(&device->nanoseconds, spent);
	while (spent > longest &&
	       !atomic_compare_exchange_weak(&device->longest, &longest, spent))
		;
	return err;
}

int fmcuda_open(struct fmcuda_device *device)
{
	struct section section;
	size_t free_bytes, total = 0;
	int handle, result;
	int err;

	err = FMCUDA(DeviceGet, &handle, device->number);
	if (err)
		return err;
	err = FMCUDA(DevicePrimaryCtxRetain, &device->context, handle);
	if (err)
		return err;
	err = enter(&section, device, &result);
	if (err)
		return err;
	err = leave(&section, FMCUDA(MemGetInfo, &free_bytes, &total));
	device->total = total;
	return err;
}

/* Pages at the end of a growing segment. */

/*
 * The driver frees a page when it is unmapped, because its handle is released as
 * soon as it is mapped.
 */
static int add_page(struct fmcuda_device *device,
		    struct fmcuda_segment *segment)
{
	const struct fmcuda_property property = {
		.type = FMCUDA_PINNED,
		.location = { FMCUDA_DEVICE, device->number },
	};
	uint64_t address = segment->address + segment->count * PAGE;
	uint64_t page;
	int err;

	err = FMCUDA(MemCreate, &page, PAGE, &property, 0);
	if (err)
		return err;
	err = FMCUDA(MemMap, address, PAGE, 0, page, 0);
	if (err) {
		fmcuda.MemRelease(page);
		return err;
	}
	segment->count++;
	return FMCUDA(MemRelease, page);
}

/*
 * Removes the pages from @count on, all or none. The driver would unmap pages
 * that queued work uses, so the caller has waited for the device.
 */
static int remove_pages(struct fmcuda_segment *segment, uint64_t count)
{
	int err = 0;

	if (segment->count > count)
		err = FMCUDA(MemUnmap, segment->address + count * PAGE,
			     (segment->count - count) * PAGE);
	if (!err)
		segment->count = count;
	return err;
}

/*
 * Adds pages from @old to @count. A failure removes them again; pages that the
 * driver does not unmap then serve the next call.
 */
static int add_pages(struct fmcuda_device *device,
		     struct fmcuda_segment *segment, uint64_t old,
		     uint64_t count)
{
	const struct fmcuda_access access = {
		.location = { FMCUDA_DEVICE, device->number },
		.flags = FMCUDA_READWRITE,
	};
	int err = 0;

	while (!err && segment->count < count)
		err = add_page(device, segment);
	if (!err)
		err = FMCUDA(MemSetAccess, segment->address + old * PAGE,
			     (count - old) * PAGE, &access, 1);
	if (!err)
		atomic_fetch_add(&device->pages, count - old);
	else if (segment->count > old &&
		 !fmcuda.MemUnmap(segment->address + old * PAGE,
				  (segment->count - old) * PAGE))
		segment->count = old;
	return err;
}

static int make_growing(struct fmcuda_device *device,
			struct fmcuda_segment *segment, uint64_t bytes)
{
	/* Room for all memory of the device. */
	uint64_t room = (device->total / PAGE + 1) * PAGE;
	int err;

	if (bytes % PAGE)
		return fmcuda_fail(-EINVAL,
				   "growing segments have pages of %llu bytes",
				   (unsigned long long)PAGE);
	if (bytes > room)
		return fmcuda_fail(-ENOMEM, "more than the device has");
	err = FMCUDA(MemAddressReserve, &segment->address, room, 0, 0, 0);
	if (err)
		return err;
	err = add_pages(device, segment, 0, bytes / PAGE);
	if (err) {
		fmcuda.MemAddressFree(segment->address, room);
		return err;
	}
	segment->room = room;
	return 0;
}

static int segment_alloc(void *user, uint64_t bytes, uint64_t alignment,
			uint32_t flags, struct flexmem_cache_memory *memory,
			struct flexmem_failure *failure)
{
	struct fmcuda_device *device = user;
	struct fmcuda_segment *segment;
	struct section section;
	int result;
	int err;

	(void)alignment;
	(void)failure;
	if (flags & FLEXMEM_CACHE_MAPPABLE)
		return -EOPNOTSUPP;
	segment = calloc(1, sizeof(*segment));
	if (!segment)
		return fmcuda_fail(-ENOMEM, "no host memory for a segment");
	err = enter(&section, device, &result);
	if (!err) {
		err = flags & FLEXMEM_CACHE_GROWABLE ?
			      make_growing(device, segment, bytes) :
			      FMCUDA(MemAlloc, &segment->address, bytes);
		err = leave(&section, err);
	}
	if (err) {
		free(segment);
		return err;
	}
	memory->handle = (uintptr_t)segment;
	memory->address.region_id = 0;
	memory->address.offset = segment->address;
	return 0;
}

/*
 * Begins to return memory. Work that is queued may still use it, so the call
 * waits for the device. That would break the capture of a graph: then the cache
 * tries again later.
 */
static int enter_idle(struct section *section, struct fmcuda_device *device,
		      int *result)
{
	int err;

	*result = 0;
	if (atomic_load(&device->captures))
		return fmcuda_fail(-EBUSY, "a graph is being captured");
	err = enter(section, device, result);
	if (err)
		return err;
	*result = fmcuda.CtxSynchronize();
	if (*result)
		return leave(section,
			     fmcuda_errno("CtxSynchronize", *result));
	return 0;
}

static int segment_free(void *user, uint64_t handle)
{
	struct fmcuda_segment *segment = (void *)(uintptr_t)handle;
	struct section section;
	int result;
	int err;

	err = enter_idle(&section, user, &result);
	if (!err) {
		if (!segment->room)
			err = FMCUDA(MemFree, segment->address);
		else if (!(err = remove_pages(segment, 0)))
			err = FMCUDA(MemAddressFree, segment->address,
				     segment->room);
		err = leave(&section, err);
	} else if (fmcuda_is_lost(result)) {
		/* The driver has freed the memory with its context. */
		err = 0;
	}
	if (!err)
		free(segment);
	return err;
}

static int segment_grow(void *user, uint64_t handle, uint64_t old_bytes,
		       uint64_t bytes, struct flexmem_failure *failure)
{
	struct fmcuda_segment *segment = (void *)(uintptr_t)handle;
	struct section section;
	int result;
	int err;

	(void)failure;
	if (bytes % PAGE)
		return -EINVAL;
	if (bytes > segment->room)
		return -EAGAIN;
	err = enter(&section, user, &result);
	if (err)
		return err;
	return leave(&section, add_pages(user, segment, old_bytes / PAGE,
					 bytes / PAGE));
}

static int segment_shrink(void *user, uint64_t handle, uint64_t old_bytes,
			 uint64_t bytes)
{
	struct fmcuda_segment *segment = (void *)(uintptr_t)handle;
	struct section section;
	int result;
	int err;

	(void)old_bytes;
	if (bytes % PAGE)
		return -EINVAL;
	err = enter_idle(&section, user, &result);
	if (err)
		return err;
	return leave(&section, remove_pages(segment, bytes / PAGE));
}

static int memory_info(void *user, uint64_t *free_bytes, uint64_t *total)
{
	size_t free_size = 0, size = 0;
	struct section section;
	int result;
	int err;

	err = enter(&section, user, &result);
	if (!err)
		err = leave(&section, FMCUDA(MemGetInfo, &free_size, &size));
	if (!err) {
		*free_bytes = free_size;
		*total = size;
	}
	return err;
}

/* A kernel that crashes, or a reset, ends the context with all its memory. */
static int segment_lost(void *user, uint64_t handle)
{
	size_t free_size, size;
	struct section section;
	int result;
	int err;

	(void)handle;
	err = enter(&section, user, &result);
	if (!err) {
		result = fmcuda.MemGetInfo(&free_size, &size);
		leave(&section, 0);
	}
	return fmcuda_is_lost(result);
}

/* Events. */

static int event_record(void *user, uint64_t stream, uint64_t *event)
{
	struct section section;
	void *made = NULL;
	int result;
	int err;

	err = enter(&section, user, &result);
	if (err)
		return err;
	err = FMCUDA(EventCreate, &made, FMCUDA_NO_TIMING);
	if (!err) {
		err = FMCUDA(EventRecord, made, (void *)(uintptr_t)stream);
		if (err)
			fmcuda.EventDestroy(made);
	}
	*event = (uintptr_t)made;
	return leave(&section, err);
}

static int event_query(void *user, uint64_t event)
{
	struct section section;
	int result;
	int err;

	err = enter(&section, user, &result);
	if (err)
		return err;
	return leave(&section, FMCUDA(EventQuery, (void *)(uintptr_t)event));
}

static int event_synchronize(void *user, uint64_t event)
{
	struct section section;
	int result;
	int err;

	err = enter(&section, user, &result);
	if (err)
		return err;
	return leave(&section,
		     FMCUDA(EventSynchronize, (void *)(uintptr_t)event));
}

static int event_wait(void *user, uint64_t stream, uint64_t event)
{
	struct section section;
	int result;
	int err;

	err = enter(&section, user, &result);
	if (err)
		return err;
	return leave(&section,
		     FMCUDA(StreamWaitEvent, (void *)(uintptr_t)stream,
			    (void *)(uintptr_t)event, 0));
}

static void event_destroy(void *user, uint64_t event)
{
	struct section section;
	int result;

	/* An event of a lost context is lost, too. */
	if (!enter(&section, user, &result))
		leave(&section,
		      FMCUDA(EventDestroy, (void *)(uintptr_t)event));
}

static int synchronize_device(void *user)
{
	struct section section;
	int result;
	int err;

	err = enter(&section, user, &result);
	if (err)
		return err;
	return leave(&section, fmcuda_errno("CtxSynchronize",
					  fmcuda.CtxSynchronize()));
}

void fmcuda_provider(struct fmcuda_device *device,
		     struct flexmem_cache_provider *provider,
		     struct flexmem_cache_events *events)
{
	*provider = (struct flexmem_cache_provider){
		.alloc = segment_alloc,
		.free = segment_free,
		.grow = segment_grow,
		.shrink = segment_shrink,
		.memory_info = memory_info,
		.lost = segment_lost,
		.user = device,
	};
	*events = (struct flexmem_cache_events){
		.record = event_record,
		.query = event_query,
		.synchronize = event_synchronize,
		.destroy = event_destroy,
		.synchronize_device = synchronize_device,
		.user = device,
		.wait = event_wait,
	};
}
