// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The caller's contexts. The caller's functions for contexts run without any
 * lock of the cache. They may wait for a lock of the caller, such as an
 * interpreter's, and another thread may hold that lock while it allocates.
 */
#include "cache.h"

#include <stdlib.h>

struct fmlib_origin *fmlib_origin_new(struct flexmem_cache *cache,
				      void *context)
{
	struct fmlib_origin *origin = calloc(1, sizeof(*origin));
	int state;

	if (!origin)
		return NULL;
	if (cache->contexts.hold) {
		/* A thread cancelled in the callback would lose @origin. */
		state = fmlib_cancel_off();
		cache->contexts.hold(cache->contexts.user, context);
		fmlib_cancel_as(state);
	}
	origin->tag = &cache->untagged;
	origin->context = context;
	origin->refs = 1;
	return origin;
}

void fmlib_origin_drop(struct flexmem_cache *cache,
		       struct fmlib_origin *origin)
{
	/* A tag's own origin lives as long as the tag. */
	if (!origin->context || --origin->refs)
		return;
	origin->next = cache->gone_origins;
	cache->gone_origins = origin;
}

void fmlib_origins_release(struct flexmem_cache *cache,
			   struct fmlib_origin *list)
{
	/* A thread cancelled in the callback would lose the rest of @list. */
	int state = fmlib_cancel_off();
	struct fmlib_origin *origin;

	while ((origin = list)) {
		list = origin->next;
		if (cache->contexts.release)
			cache->contexts.release(cache->contexts.user,
						origin->context);
		free(origin);
	}
	fmlib_cancel_as(state);
}
