// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The GPUs, each with a cache, and the calls of a framework. */
#include "cuda.h"

#include <errno.h>
#include <stdlib.h>

/* Set when the device can be used; stays until the process ends. */
static struct fmcuda_device *_Atomic in_use[FLEXMEM_CUDA_DEVICES];

static int make_cache(struct fmcuda_device *device)
{
	const struct flexmem_cache_profile profile = {
		.granule = FMCUDA_GRANULE,
		.growing_step = FLEXMEM_CUDA_PAGE,
	};
	struct flexmem_cache_provider provider;
	struct flexmem_cache_events events;
	const struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.events = &events,
		.events_size = sizeof(events),
		.profile = &profile,
		.profile_size = sizeof(profile),
		.device_index = (uint32_t)device->number,
	};
	int err;

	fmcuda_provider(device, &provider, &events);
	err = flexmem_cache_create(&device->cache, &options, sizeof(options));
	return err ? fmcuda_fail(err, "no host memory for a cache") : 0;
}

static int make(int number, struct fmcuda_device **made)
{
	struct fmcuda_device *device;
	int err;

	err = fmcuda_load();
	if (err)
		return err;
	device = calloc(1, sizeof(*device));
	if (!device)
		return fmcuda_fail(-ENOMEM, "no host memory for a device");
	device->number = number;
	err = fmcuda_open(device);
	if (!err)
		err = make_cache(device);
	if (err)
		free(device);
	else
		*made = device;
	return err;
}

/*
 * Two threads may make the same device; then one of the two goes. There is no
 * lock, which a fork could leave locked in the child.
 */
static int use(int number)
{
	struct fmcuda_device *expected = NULL;
	struct fmcuda_device *device = NULL;
	int err = make(number, &device);

	if (err)
		return err;
	if (!atomic_compare_exchange_strong(&in_use[number], &expected,
					    device)) {
		flexmem_cache_destroy(device->cache);
		free(device);
	}
	return 0;
}

struct fmcuda_device *fmcuda_device_in_use(int number)
{
	if (number < 0 || number >= FLEXMEM_CUDA_DEVICES)
		return NULL;
	return atomic_load_explicit(&in_use[number], memory_order_acquire);
}

int fmcuda_device(int number, struct fmcuda_device **device)
{
	int err;

	*device = fmcuda_device_in_use(number);
	if (*device)
		return 0;
	if (number < 0 || number >= FLEXMEM_CUDA_DEVICES)
		return fmcuda_fail(-ENODEV, "no device %d", number);
	err = use(number);
	*device = fmcuda_device_in_use(number);
	return err;
}

/* Notes why a call of the cache failed, unless the driver's text is there. */
static int explain(int err, const struct flexmem_cache_failure *failure)
{
	char text[1024];

	/* The driver's text says more. */
	if (!err || err == -EIO)
		return err;
	flexmem_cache_error_text(err, failure, sizeof(*failure), text,
				 sizeof(text));
	return fmcuda_fail(err, "%s", text);
}

/*
 * Makes a request that has failed again, to get the reason. Now it may succeed,
 * because another thread has freed memory.
 */
static int try_again(struct fmcuda_device *device, uint64_t bytes,
		     uint64_t stream, void **token)
{
	const struct flexmem_cache_request request = {
		.bytes = bytes,
		.stream = stream,
	};
	struct flexmem_cache_allocation made;
	int err;

	err = flexmem_cache_alloc_request(device->cache, &request,
					  sizeof(request), &made, sizeof(made));
	*token = made.token;
	return explain(err, &made.failure);
}

int flexmem_cuda_alloc(uint64_t bytes, int number, void *stream, void **pointer)
{
	struct flexmem_virtual_address address;
	struct fmcuda_device *device;
	void *token;
	int err;

	err = fmcuda_device(number, &device);
	if (err)
		return err;
	err = flexmem_cache_alloc(device->cache, bytes, (uintptr_t)stream,
				  &token);
	if (err)
		err = try_again(device, bytes, (uintptr_t)stream, &token);
	if (err)
		return err;
	*pointer = NULL;
	if (!token)
		return 0;
	err = flexmem_cache_address(device->cache, token, &address);
	if (!err)
		err = fmcuda_pointer_put((uint64_t)address.offset, token);
	if (err) {
		flexmem_cache_free(device->cache, token);
		return err;
	}
	*pointer = (void *)(uintptr_t)address.offset;
	return 0;
}

/*
 * Whether the allocation at @pointer belongs to @device. Tokens of two caches
 * can be equal, but addresses of two GPUs differ.
 */
static bool is_of(struct fmcuda_device *device, uint64_t pointer,
		  const void *token)
{
	struct flexmem_virtual_address address;

	return !flexmem_cache_address(device->cache, token, &address) &&
	       (uint64_t)address.offset == pointer;
}

int flexmem_cuda_free(void *pointer, ptrdiff_t bytes, int number, void *stream)
{
	struct fmcuda_device *device = fmcuda_device_in_use(number);
	void *token;
	int err;

	(void)bytes;
	(void)stream;
	if (!pointer)
		return 0;
	if (!device)
		return fmcuda_fail(-EINVAL, "device %d is not in use", number);
	token = fmcuda_pointer_get((uintptr_t)pointer);
	if (!token || !is_of(device, (uintptr_t)pointer, token))
		return fmcuda_fail(-EINVAL,
				   "no allocation of device %d begins at %p",
				   number, pointer);
	err = flexmem_cache_free(device->cache, token);
	return err ? explain(err, NULL) : 0;
}

/* PyTorch does not say to which device a pointer belongs. */
static struct fmcuda_device *device_of(uint64_t pointer, const void *token)
{
	struct fmcuda_device *device;
	int i;

	for (i = 0; i < FLEXMEM_CUDA_DEVICES; i++) {
		device = fmcuda_device_in_use(i);
		if (device && is_of(device, pointer, token))
			return device;
	}
	return NULL;
}

int flexmem_cuda_record_stream(void *pointer, void *stream)
{
	void *token = fmcuda_pointer_get((uintptr_t)pointer);
	struct fmcuda_device *device = NULL;

	if (!pointer)
		return 0;
	if (token)
		device = device_of((uintptr_t)pointer, token);
	if (!device)
		return fmcuda_fail(-EINVAL, "no allocation begins at %p",
				   pointer);
	return explain(flexmem_cache_record_stream(device->cache, token,
						   (uintptr_t)stream), NULL);
}

int flexmem_cuda_empty(void)
{
	struct fmcuda_device *device;
	int first = 0;
	int err;
	int i;

	for (i = 0; i < FLEXMEM_CUDA_DEVICES; i++) {
		device = fmcuda_device_in_use(i);
		if (!device)
			continue;
		err = flexmem_cache_empty(device->cache, NULL);
		if (!first)
			first = err;
	}
	return first;
}

int flexmem_cuda_set_memory_fraction(double fraction, int number)
{
	struct fmcuda_device *device;
	int err = fmcuda_device(number, &device);

	if (err)
		return err;
	return explain(flexmem_cache_set_memory_fraction(device->cache,
							 fraction), NULL);
}

int flexmem_cuda_set_limit(int number, uint64_t bytes)
{
	struct fmcuda_device *device;
	int err = fmcuda_device(number, &device);
	double fraction;

	if (err)
		return err;
	if (!bytes)
		return fmcuda_fail(-EINVAL, "a limit of 0 bytes");
	if (bytes > device->total)
		bytes = device->total;
	/* Half a byte more, so that no rounding takes a byte away. */
	fraction = ((double)bytes + 0.5) / (double)device->total;
	return flexmem_cuda_set_memory_fraction(fraction < 1 ? fraction : 1,
						number);
}

int flexmem_cuda_set_setting(int number, const char *key, const char *value)
{
	struct fmcuda_device *device;
	int err = fmcuda_device(number, &device);

	if (err)
		return err;
	return explain(flexmem_cache_set_setting(device->cache, key, value),
		       NULL);
}

int flexmem_cuda_statistics(int number,
			    struct flexmem_cache_statistics *statistics,
			    size_t size)
{
	struct fmcuda_device *device;
	int err = fmcuda_device(number, &device);

	if (err)
		return err;
	return explain(flexmem_cache_statistics(device->cache, statistics,
						size), NULL);
}

int flexmem_cuda_reset_peaks(int number)
{
	struct fmcuda_device *device;
	int err = fmcuda_device(number, &device);

	if (err)
		return err;
	return explain(flexmem_cache_reset_peaks(device->cache), NULL);
}

int flexmem_cuda_driver_calls(int number, struct flexmem_cuda_calls *calls,
			      size_t size)
{
	struct fmcuda_device *device;
	int err = fmcuda_device(number, &device);

	if (err)
		return err;
	if (!calls || size < sizeof(*calls))
		return fmcuda_fail(-EINVAL, "no struct, or a small one");
	*calls = (struct flexmem_cuda_calls){
		.sections = atomic_load(&device->sections),
		.nanoseconds = atomic_load(&device->nanoseconds),
		.longest = atomic_load(&device->longest),
		.pages = atomic_load(&device->pages),
	};
	return 0;
}

int flexmem_cuda_snapshot(int number, char **text, size_t *length)
{
	struct fmcuda_device *device;
	int err = fmcuda_device(number, &device);

	if (err)
		return err;
	return explain(flexmem_cache_snapshot(device->cache,
					      FLEXMEM_CACHE_EVERY_POOL, text,
					      length), NULL);
}

void flexmem_cuda_text_free(char *text)
{
	flexmem_cache_text_free(text);
}

int flexmem_cuda_provider(int number, struct flexmem_cache_provider *provider,
			  size_t provider_size,
			  struct flexmem_cache_events *events,
			  size_t events_size)
{
	struct fmcuda_device *device;
	int err = fmcuda_device(number, &device);

	if (err)
		return err;
	if (!provider || provider_size < sizeof(*provider) || !events ||
	    events_size < sizeof(*events))
		return fmcuda_fail(-EINVAL, "no struct, or a small one");
	fmcuda_provider(device, provider, events);
	return 0;
}
