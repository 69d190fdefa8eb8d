// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The default provider: it gets each segment as one allocation of the driver.
 */
#include "cache.h"

static int make(struct flexmem_device *device, uint64_t bytes,
		uint64_t alignment, uint32_t flags,
		struct flexmem_cache_memory *memory,
		struct flexmem_failure *failure)
{
	struct flexmem_allocated allocation = { 0 };
	int err;

	err = flexmem_device_alloc(device, bytes, alignment, flags, &allocation,
				   sizeof(allocation));
	if (err) {
		*failure = allocation.failure;
		return err;
	}
	memory->handle = allocation.handle;
	memory->address = allocation.address;
	return 0;
}

/*
 * Converts the cache's flags to the driver's. The cache passes GROWABLE only if
 * the provider can grow segments.
 */
static uint32_t flags_of(uint32_t flags)
{
	return (flags & FLEXMEM_CACHE_GROWABLE ? FLEXMEM_GROWABLE : 0) |
	       (flags & FLEXMEM_CACHE_MAPPABLE ? FLEXMEM_MAPPABLE : 0);
}

static int device_alloc(void *user, uint64_t bytes, uint64_t alignment,
			uint32_t flags, struct flexmem_cache_memory *memory,
			struct flexmem_failure *failure)
{
	return make(user, bytes, alignment, flags_of(flags), memory, failure);
}

static int device_lost(void *user, uint64_t handle)
{
	struct flexmem_allocated allocation;
	int err = flexmem_device_lookup(user, (uint32_t)handle, &allocation,
					sizeof(allocation));

	return err ? err : (allocation.flags & FLEXMEM_LOST) != 0;
}

static int device_grow(void *user, uint64_t handle, uint64_t old_bytes,
		       uint64_t bytes, struct flexmem_failure *failure)
{
	struct flexmem_resized resized;
	int err;

	(void)old_bytes;
	err = flexmem_device_resize(user, (uint32_t)handle, bytes, &resized,
				    sizeof(resized));
	if (err == -ENOMEM)
		*failure = resized.failure;
	/*
	 * A segment cannot grow while its bytes are being copied or mapped, or
	 * if the added bytes cannot be scrubbed. The cache treats that like a
	 * lack of room.
	 */
	if (err == -EIO && device_lost(user, handle) > 0)
		return err;
	return err == -EBUSY || err == -EIO ? -EAGAIN : err;
}

static int device_shrink(void *user, uint64_t handle, uint64_t old_bytes,
			 uint64_t bytes)
{
	(void)old_bytes;
	return flexmem_device_resize(user, (uint32_t)handle, bytes, NULL, 0);
}

static int device_pressure(void *user, struct flexmem_pressure_event *event)
{
	return flexmem_device_pressure(user, event, sizeof(*event));
}

static int device_pressure_fd(void *user)
{
	return flexmem_device_fd(user);
}

static int device_free(void *user, uint64_t handle)
{
	return flexmem_device_free(user, (uint32_t)handle);
}

static int device_map(void *user, uint64_t handle, uint64_t bytes,
		      void **pointer)
{
	/* A 32-bit program cannot map that many bytes. */
	if (bytes > SIZE_MAX)
		return -ENOMEM;
	return flexmem_device_map(user, (uint32_t)handle, 0, (size_t)bytes, 0,
				  pointer, NULL);
}

static int device_unmap(void *user, uint64_t handle, void *pointer,
			uint64_t bytes)
{
	(void)handle;
	return flexmem_device_unmap(user, pointer, (size_t)bytes);
}

static int device_memory_info(void *user, uint64_t *free, uint64_t *total)
{
	return flexmem_device_memory_info(user, free, total);
}

/*
 * The measure of an event: what is in use, also by programs, of all memory. What
 * a cgroup has reserved and does not use is not in use.
 */
static int device_device_info(void *user, uint64_t *free, uint64_t *total)
{
	struct flexmem_domain_state all;
	uint64_t used;
	int err;

	err = flexmem_device_domain(user, FLEXMEM_WHOLE_DEVICE, &all,
				    sizeof(all));
	if (err)
		return err;
	used = all.total - all.free - all.reserved;
	/* An older driver does not tell the whole. */
	*total = all.memory_total ? all.memory_total : all.capacity;
	*total = *total > used ? *total : used;
	*free = *total - used;
	return 0;
}

static int device_largest(void *user, uint64_t *bytes)
{
	struct flexmem_available available;
	int err = flexmem_device_available(user, &available,
					   sizeof(available));

	if (!err)
		*bytes = available.largest;
	return err;
}

void fmlib_provider_device(struct flexmem_device *device,
			   struct flexmem_cache_provider *provider)
{
	*provider = (struct flexmem_cache_provider){
		.alloc = device_alloc,
		.free = device_free,
		.memory_info = device_memory_info,
		.device_info = device_device_info,
		.largest = device_largest,
		.user = device,
		.lost = device_lost,
		.grow = device_grow,
		.shrink = device_shrink,
		.pressure = device_pressure,
		.pressure_fd = device_pressure_fd,
	};
	if (device->info.out_capabilities & FLEXMEM_CAP_MAP) {
		provider->map = device_map;
		provider->unmap = device_unmap;
	}
}

int flexmem_cache_device_provider(struct flexmem_device *device,
				  struct flexmem_cache_provider *provider,
				  size_t size)
{
	struct flexmem_cache_provider known;

	if (!device || !provider)
		return -EINVAL;
	if (device->adopted)
		return -EOPNOTSUPP;
	fmlib_provider_device(device, &known);
	return fmlib_copy_out(provider, size, FMLIB_PROVIDER_MIN, &known,
			      sizeof(known));
}
