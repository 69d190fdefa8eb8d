/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The origin of an allocation: its tag, and the caller's context. */
#ifndef FMLIB_ORIGIN_H
#define FMLIB_ORIGIN_H

#include <stddef.h>

struct flexmem_cache;
struct fmlib_tag;

/*
 * Each tag has an origin without a context, which lives as long as the tag. An
 * origin with a context lives while a request, an allocation, an event of the
 * history or a snapshot refers to it. @refs and @next are accessed only with
 * the whole cache locked. @next links the origins without references.
 */
struct fmlib_origin {
	struct fmlib_tag *tag;
	void *context;
	size_t refs;
	struct fmlib_origin *next;
};

/*
 * Returns an origin with one reference, or NULL if there is no host memory. The
 * caller holds no lock.
 */
struct fmlib_origin *fmlib_origin_new(struct flexmem_cache *cache,
				      void *context);

/* Takes a reference. The caller has locked the whole cache. */
static inline struct fmlib_origin *fmlib_origin_hold(struct fmlib_origin *origin)
{
	if (origin->context)
		origin->refs++;
	return origin;
}

/* Drops a reference. After the last one fmlib_unlock() releases the context. */
void fmlib_origin_drop(struct flexmem_cache *cache,
		       struct fmlib_origin *origin);
/* Releases the contexts of a list and frees it. No lock may be held. */
void fmlib_origins_release(struct flexmem_cache *cache,
			   struct fmlib_origin *list);

#endif /* FMLIB_ORIGIN_H */
