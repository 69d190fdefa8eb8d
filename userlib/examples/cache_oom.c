// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Out of memory: before an allocation fails, a framework can free memory that
 * it does not need. Also shows how to report a failure.
 *
 * cc cache_oom.c $(pkg-config --cflags --libs libflexmem)
 */
#include <errno.h>
#include <flexmem_cache.h>
#include <stdio.h>

#define MIB (1 << 20)

/* A buffer that the program can compute again. */
struct spare {
	struct flexmem_cache *cache;
	void *token;
};

/* The cache calls this function without a lock. It may free and allocate. */
static void give_up(void *user, uint64_t bytes)
{
	struct spare *spare = user;

	printf("%lu bytes are missing; something to free: %s\n",
	       (unsigned long)bytes, spare->token ? "yes" : "no");
	if (!flexmem_cache_free(spare->cache, spare->token))
		spare->token = NULL;
}

static int fill(struct flexmem_cache *cache, struct spare *spare)
{
	struct flexmem_cache_request request = { .bytes = 30 * MIB };
	struct flexmem_cache_allocation made = { 0 };
	char text[1024];
	int count;
	int err;

	err = flexmem_cache_alloc(cache, 30 * MIB, 0, &spare->token);
	if (!err)
		err = flexmem_cache_add_oom_callback(cache, give_up, spare);
	for (count = 0; !err; count++)
		err = flexmem_cache_alloc_request(cache, &request,
						  sizeof(request), &made,
						  sizeof(made));
	flexmem_cache_error_text(err, &made.failure, sizeof(made.failure), text,
				 sizeof(text));
	printf("after %d allocations: %s\n", count - 1, text);
	return err == -ENOMEM ? 0 : err;
}

int main(void)
{
	struct flexmem_cache_provider provider;
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.configuration = "garbage_collection_threshold:0.8",
	};
	struct flexmem_cache_flat *flat = NULL;
	struct spare spare = { 0 };
	int err;

	err = flexmem_cache_flat_create(&flat, 128 * MIB, &provider,
					sizeof(provider));
	if (!err)
		err = flexmem_cache_create(&spare.cache, &options,
					   sizeof(options));
	if (!err)
		err = fill(spare.cache, &spare);
	/* Also frees all allocations. */
	flexmem_cache_destroy(spare.cache);
	flexmem_cache_flat_destroy(flat);
	return err != 0;
}
