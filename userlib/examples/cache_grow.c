// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Segments that grow: with expandable_segments a cache has one allocation of
 * the driver for each stream, and extends and shortens it in place.
 *
 * cc cache_grow.c $(pkg-config --cflags --libs libflexmem)
 */
#include <flexmem_cache.h>
#include <stdio.h>

#define MIB (1 << 20)

static void show(struct flexmem_cache *cache, const char *when)
{
	struct flexmem_cache_statistics f;

	if (flexmem_cache_statistics(cache, &f, sizeof(f)))
		return;
	printf("%s: %lu MiB reserved in %lu segments, grown %lu times, shrunk %lu times\n",
	       when, (unsigned long)(f.reserved_bytes[0].current / MIB),
	       (unsigned long)f.segment[0].current,
	       (unsigned long)f.num_device_grow,
	       (unsigned long)f.num_device_shrink);
}

static int grow_and_shrink(struct flexmem_cache *cache)
{
	void *tokens[4] = { NULL };
	int err = 0;
	int i;

	for (i = 0; !err && i < 4; i++)
		err = flexmem_cache_alloc(cache, 50 * MIB, 0, &tokens[i]);
	show(cache, "allocated");
	/* The first allocation stays, so only the end is returned. */
	for (i = 1; !err && i < 4; i++)
		err = flexmem_cache_free(cache, tokens[i]);
	if (!err)
		err = flexmem_cache_empty(cache, NULL);
	show(cache, "emptied");
	return err;
}

int main(void)
{
	struct flexmem_cache_options options = {
		.configuration = "expandable_segments:True",
	};
	struct flexmem_cache *cache = NULL;
	char text[1024];
	int err;

	err = flexmem_device_open(&options.device, NULL);
	if (!err)
		err = flexmem_cache_create(&cache, &options, sizeof(options));
	if (!err)
		err = grow_and_shrink(cache);
	flexmem_cache_error_text(err, NULL, 0, text, sizeof(text));
	printf("%s\n", text);
	flexmem_cache_destroy(cache);
	flexmem_device_close(options.device);
	return err != 0;
}
