// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Rounds sizes. Chooses the pool and the segment size for a request. */
#include "cache.h"

#define MIB_SHIFT 20

#define LARGEST_SMALL_ALIGNMENT 4096

uint64_t fmlib_round_up(uint64_t size, uint64_t unit)
{
	return (size + unit - 1) / unit * unit;
}

static unsigned int log2_floor(uint64_t value)
{
	return 63 - (unsigned int)__builtin_clzll(value);
}

static uint32_t divisions_for(const struct fmlib_config *config, uint64_t size)
{
	unsigned int shift = log2_floor(size);
	unsigned int index = shift > MIB_SHIFT ? shift - MIB_SHIFT : 0;

	if (index >= FMLIB_DIVISIONS)
		index = FMLIB_DIVISIONS - 1;
	return config->divisions[index];
}

uint64_t fmlib_size_divided(const struct flexmem_cache *cache, uint64_t bytes)
{
	uint64_t granule = cache->profile.granule;
	uint32_t divisions = divisions_for(&cache->config, bytes);

	/* A step must not be smaller than a granule. */
	if (divisions > 1 && bytes > granule * divisions)
		return fmlib_round_up(bytes, (UINT64_C(1) <<
					      log2_floor(bytes)) / divisions);
	return (bytes + granule - 1) & ~(granule - 1);
}

bool fmlib_size_grows(const struct flexmem_cache *cache,
		      const struct fmlib_want *want)
{
	return !want->exact && cache->expandable &&
	       want->pool->provider->grow &&
	       !(want->pool->flags & FLEXMEM_CACHE_POOL_NO_SPLIT) &&
	       want->size + cache->profile.growing_step <=
	       fmlib_range_limit(cache->profile.granule);
}

bool fmlib_size_begins_growing(const struct flexmem_cache *cache,
			       const struct fmlib_want *want)
{
	return fmlib_size_grows(cache, want) &&
	       !(cache->profile.growing_step & want->mask);
}

/* A device rounds the length of an allocation up to a larger alignment. */
static uint64_t round_to_alignment(const struct fmlib_want *want, uint64_t size)
{
	return want->mask < LARGEST_SMALL_ALIGNMENT ? size :
	       fmlib_round_up(size, want->mask + 1);
}

/* Without the alignment. */
static uint64_t segment_size(const struct flexmem_cache *cache,
			     const struct fmlib_want *want)
{
	const struct flexmem_cache_profile *profile = &cache->profile;
	uint64_t large = fmlib_round_up(cache->config.large, profile->granule);
	uint64_t max_split = cache->config.max_split;
	uint64_t size = want->size;
	uint64_t segment;

	if (cache->config.direct || want->exact)
		return size;
	if (fmlib_size_begins_growing(cache, want))
		return fmlib_round_up(size, profile->growing_step);
	if (size <= profile->small_limit)
		return profile->small_segment;
	if (size < profile->large_limit && size <= large && large < max_split)
		return large;
	segment = fmlib_round_up(size, profile->large_round);
	/*
	 * A free block of max_split bytes or more serves no smaller request. So
	 * if the segment would become that large by rounding, it gets just the
	 * size of the request, to serve such requests again.
	 */
	return size < max_split && segment >= max_split ? size : segment;
}

uint64_t fmlib_size_segment(const struct flexmem_cache *cache,
			    const struct fmlib_want *want)
{
	return round_to_alignment(want, segment_size(cache, want));
}

uint64_t fmlib_size_least(const struct fmlib_want *want)
{
	return round_to_alignment(want, want->size);
}
