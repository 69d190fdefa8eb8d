// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Shows what memory is used for: sums by tag on stderr, and all segments and
 * blocks with the last events as JSON on stdout. PyTorch's viewer of memory
 * snapshots reads this JSON after a conversion to pickle protocol 4:
 *
 *   ./cache_snapshot | python3 -c 'import json, pickle, sys
 *   pickle.dump(json.load(sys.stdin), open("snapshot.pickle", "wb"), 4)'
 *
 * cc cache_snapshot.c $(pkg-config --cflags --libs libflexmem)
 */
#include <flexmem_cache.h>
#include <stdio.h>

static int allocate(struct flexmem_cache *cache)
{
	static const char *const tags[] = {
		"weights", "activations", "activations", NULL,
	};
	struct flexmem_cache_allocation made = { 0 };
	struct flexmem_cache_request request = { 0 };
	int err = 0;
	int i;

	for (i = 0; i < 4 && !err; i++) {
		request.bytes = (i + 1) * 1000000;
		request.tag = tags[i];
		err = flexmem_cache_alloc_request(cache, &request,
						  sizeof(request), &made,
						  sizeof(made));
	}
	return err ? err : flexmem_cache_free(cache, made.token);
}

static int print_tags(struct flexmem_cache *cache)
{
	struct flexmem_cache_tag *tags;
	size_t count;
	size_t i;
	int err;

	err = flexmem_cache_tags(cache, &tags, sizeof(*tags), &count);
	if (err)
		return err;
	for (i = 0; i < count; i++)
		fprintf(stderr, "%-12s %lu bytes, at most %lu\n",
			*tags[i].tag ? tags[i].tag : "(none)",
			(unsigned long)tags[i].allocated_bytes,
			(unsigned long)tags[i].peak_bytes);
	flexmem_cache_tags_free(tags);
	return 0;
}

int main(void)
{
	struct flexmem_cache_provider provider;
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
	};
	struct flexmem_cache_flat *flat = NULL;
	struct flexmem_cache *cache = NULL;
	char *text = NULL;
	int err;

	err = flexmem_cache_flat_create(&flat, 1 << 30, &provider,
					sizeof(provider));
	if (!err)
		err = flexmem_cache_create(&cache, &options, sizeof(options));
	if (!err)
		err = flexmem_cache_set_history(cache, 1000);
	if (!err)
		err = allocate(cache);
	if (!err)
		err = print_tags(cache);
	if (!err)
		err = flexmem_cache_snapshot(cache, FLEXMEM_CACHE_EVERY_POOL,
					     &text, NULL);
	if (!err)
		puts(text);
	flexmem_cache_text_free(text);
	flexmem_cache_destroy(cache);
	flexmem_cache_flat_destroy(flat);
	return err != 0;
}
