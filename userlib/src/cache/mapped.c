// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Maps segments, in a cache with FLEXMEM_CACHE_MAPPED. */
#include "cache.h"

int fmlib_segment_map(struct flexmem_cache *cache,
		      struct fmlib_segment *segment)
{
	const struct flexmem_cache_provider *provider =
		fmlib_provider_of(segment);
	void *pointer = NULL;
	int err;

	if (!cache->pointers)
		return 0;
	err = provider->map(provider->user, segment->handle, segment->size,
			    &pointer);
	err = fmlib_callback_result(err);
	if (!err && !pointer)
		err = -EIO;
	if (!err)
		segment->pointer = pointer;
	return err;
}

static int unmap(struct fmlib_segment *segment)
{
	const struct flexmem_cache_provider *provider =
		fmlib_provider_of(segment);
	int err;

	if (!segment->pointer)
		return 0;
	err = provider->unmap(provider->user, segment->handle, segment->pointer,
			      segment->size);
	if (!err)
		segment->pointer = NULL;
	return err;
}

/*
 * Unmaps the segment first, because memory that is freed while it is mapped
 * stays charged.
 */
int fmlib_segment_free(struct fmlib_segment *segment)
{
	const struct flexmem_cache_provider *provider =
		fmlib_provider_of(segment);
	int err = unmap(segment);

	if (!err)
		err = provider->free(provider->user, segment->handle);
	return fmlib_callback_result(err);
}
