// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A cache over a device: the second allocation does not reach the driver.
 *
 * cc cache_first.c $(pkg-config --cflags --libs libflexmem)
 */
#include <flexmem_cache.h>
#include <stdio.h>

static int twice(struct flexmem_cache *cache)
{
	struct flexmem_cache_statistics s;
	void *token;
	int err = 0;
	int i;

	for (i = 0; i < 2 && !err; i++) {
		err = flexmem_cache_alloc(cache, 3 << 20, 0, &token);
		if (!err)
			err = flexmem_cache_free(cache, token);
	}
	if (!err)
		err = flexmem_cache_statistics(cache, &s, sizeof(s));
	if (!err)
		printf("%lu hit, %lu miss, %lu bytes reserved, %lu in use\n",
		       (unsigned long)s.num_hits, (unsigned long)s.num_misses,
		       (unsigned long)s.reserved_bytes[0].current,
		       (unsigned long)s.allocated_bytes[0].current);
	return err;
}

int main(void)
{
	struct flexmem_cache_options options = { 0 };
	struct flexmem_cache *cache = NULL;
	char text[1024];
	int err;

	err = flexmem_device_open(&options.device, NULL);
	if (!err)
		err = flexmem_cache_create(&cache, &options, sizeof(options));
	if (!err)
		err = twice(cache);
	if (err) {
		flexmem_cache_error_text(err, NULL, 0, text, sizeof(text));
		fprintf(stderr, "%s\n", text);
	}
	flexmem_cache_destroy(cache);
	flexmem_device_close(options.device);
	return err != 0;
}
