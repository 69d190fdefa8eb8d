// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Checks memory that a provider has offered for a segment. */
#include "cache.h"

/*
 * Returns the reason why memory from the provider cannot be a segment, or NULL.
 */
static const char *fault_of(const struct flexmem_cache *cache,
			    const struct fmlib_segment *segment, uint64_t size,
			    uint64_t mask)
{
	uint64_t offset = segment->address.offset;

	if (offset % cache->profile.granule || offset & mask)
		return "is not aligned";
	if (offset + size < offset)
		return "goes beyond the last address";
	return fmlib_place_is_taken(cache, segment, size) ?
	       "is in use already" : NULL;
}

bool fmlib_memory_is_possible(const struct flexmem_cache *cache,
			      const struct fmlib_segment *segment,
			      uint64_t size, uint64_t mask)
{
	const char *fault = fault_of(cache, segment, size, mask);

	if (fault)
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"the provider returned memory that %s (region 0x%llx, offset 0x%llx, %llu bytes); it is not used",
				fault,
				(unsigned long long)segment->address.region_id,
				(unsigned long long)segment->address.offset,
				(unsigned long long)size);
	return !fault;
}

/* Whether another segment that is in use has the same handle. */
static bool is_known(const struct flexmem_cache *cache,
		     const struct fmlib_segment *segment)
{
	const struct fmlib_segment *other = cache->first_segment;

	while (other && (other->handle != segment->handle ||
			 fmlib_provider_of(other) != fmlib_provider_of(segment)))
		other = other->next;
	return other;
}

void fmlib_memory_reject(struct flexmem_cache *cache,
			 const struct fmlib_segment *segment)
{
	const struct flexmem_cache_provider *provider =
		fmlib_provider_of(segment);

	/*
	 * If another segment has the same handle, freeing the handle would free
	 * that segment.
	 */
	if (is_known(cache, segment) ||
	    provider->free(provider->user, segment->handle))
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"%llu bytes of the device are lost, since the provider did not take them back",
				(unsigned long long)segment->size);
}
