// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Two ways to access the bytes of a cache's allocations. The driver copies the
 * bytes, which always works. Or the program maps the bytes, if the device and
 * the options of the cache permit that.
 *
 * cc cache_bytes.c $(pkg-config --cflags --libs libflexmem)
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <flexmem_cache.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Repeats the write after -EBUSY, because the segment is busy while another
 * thread makes it grow or shrink.
 */
static int put(struct flexmem_device *device,
	       const struct flexmem_cache_allocation *tensor, const void *data,
	       size_t length)
{
	const char *from = data;
	size_t sum = 0;
	size_t done;
	int err;

	do {
		err = flexmem_device_write(device, (uint32_t)tensor->handle,
					   tensor->offset + sum, from + sum,
					   length - sum, &done);
		sum += done;
	} while (err == -EBUSY);
	return err;
}

static int get(struct flexmem_device *device,
	       const struct flexmem_cache_allocation *tensor, void *data,
	       size_t length)
{
	char *to = data;
	size_t sum = 0;
	size_t done;
	int err;

	do {
		err = flexmem_device_read(device, (uint32_t)tensor->handle,
					  tensor->offset + sum, to + sum,
					  length - sum, &done);
		sum += done;
	} while (err == -EBUSY);
	return err;
}

/* Maps the pages of a tensor, and prints the text that it begins with. */
static int show(struct flexmem_device *device,
		const struct flexmem_cache_allocation *tensor)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t before = tensor->offset % page;
	void *start;
	size_t mapped;
	int err;

	do {
		err = flexmem_device_map(device, (uint32_t)tensor->handle,
					 tensor->offset - before, page,
					 FLEXMEM_READ_ONLY, &start, &mapped);
	} while (err == -EBUSY);
	if (err)
		return err;
	printf("mapped: %s\n", (const char *)start + before);
	return flexmem_device_unmap(device, start, mapped);
}

static int use(struct flexmem_cache *cache, struct flexmem_device *device,
	       int can_map)
{
	static const char text[] = "a tensor's bytes";
	struct flexmem_cache_request request = { .bytes = 1000 };
	struct flexmem_cache_allocation tensors[2] = { { 0 } };
	char back[sizeof(text)];
	int err = 0;
	int i;

	/* Both tensors come from the same segment, one behind the other. */
	for (i = 0; !err && i < 2; i++)
		err = flexmem_cache_alloc_request(cache, &request,
						  sizeof(request), &tensors[i],
						  sizeof(tensors[i]));
	if (!err)
		err = put(device, &tensors[1], text, sizeof(text));
	if (!err)
		err = get(device, &tensors[1], back, sizeof(back));
	if (!err)
		printf("at %lu of its segment: %s\n",
		       (unsigned long)tensors[1].offset, back);
	if (!err && can_map)
		err = show(device, &tensors[1]);
	/*
	 * No mapping of the tensors is left. A mapping would show the bytes of
	 * the tensor that gets the memory next.
	 */
	for (i = 0; i < 2; i++)
		flexmem_cache_free(cache, tensors[i].token);
	return err;
}

int main(void)
{
	struct flexmem_cache_options options = { 0 };
	struct flexmem_properties properties = { 0 };
	struct flexmem_cache *cache = NULL;
	int can_map;
	char text[1024];
	int err;

	err = flexmem_device_open(&options.device, NULL);
	if (!err)
		err = flexmem_device_properties(options.device, &properties,
						sizeof(properties));
	can_map = (properties.capabilities & FLEXMEM_CAN_MAP) != 0;
	if (can_map)
		options.flags = FLEXMEM_CACHE_MAPPABLE;
	if (!err)
		err = flexmem_cache_create(&cache, &options, sizeof(options));
	if (!err)
		err = use(cache, options.device, can_map);
	flexmem_cache_error_text(err, NULL, 0, text, sizeof(text));
	printf("%s\n", text);
	flexmem_cache_destroy(cache);
	flexmem_device_close(options.device);
	return err != 0;
}
