// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Sums by tag. A tag stays known after its first use. */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

#define TAG_MIN FMLIB_SIZE_TO(struct flexmem_cache_tag, peak_bytes)

static struct fmlib_tag **chain_of(struct flexmem_cache *cache,
				   const char *tag)
{
	/* The hash is FNV-1a. */
	uint32_t hash = UINT32_C(2166136261);

	for (; *tag; tag++)
		hash = (hash ^ (unsigned char)*tag) * UINT32_C(16777619);
	return &cache->tag_chains[hash % FMLIB_TAG_CHAINS];
}

struct fmlib_tag *fmlib_tag_find(struct flexmem_cache *cache, const char *tag)
{
	struct fmlib_tag **chain;
	struct fmlib_tag *found;

	if (!tag || !*tag)
		return &cache->untagged;
	chain = chain_of(cache, tag);
	for (found = *chain; found; found = found->chain) {
		if (!strcmp(found->sums.tag, tag))
			return found;
	}
	found = calloc(1, sizeof(*found));
	if (!found)
		return NULL;
	fmlib_figures_tagged(cache);
	/* The caller has checked the length. */
	strcpy(found->sums.tag, tag);
	found->origin.tag = found;
	found->chain = *chain;
	*chain = found;
	cache->last_tag->next = found;
	cache->last_tag = found;
	return found;
}

/*
 * Counts an allocation with a tag, under the locks of the whole cache.
 */
void fmlib_tag_add(struct fmlib_tag *tag, const struct fmlib_block *block)
{
	tag->sums.allocations++;
	tag->sums.allocated_bytes += block->size;
	tag->sums.requested_bytes += block->requested;
	if (tag->sums.allocated_bytes > tag->sums.peak_bytes)
		tag->sums.peak_bytes = tag->sums.allocated_bytes;
}

void fmlib_tag_subtract(struct fmlib_tag *tag, const struct fmlib_block *block)
{
	tag->sums.allocations--;
	tag->sums.allocated_bytes -= block->size;
	tag->sums.requested_bytes -= block->requested;
}

void fmlib_tags_reset_peaks(struct flexmem_cache *cache)
{
	struct fmlib_tag *tag;

	for (tag = &cache->untagged; tag; tag = tag->next)
		tag->sums.peak_bytes = tag->sums.allocated_bytes;
}

void fmlib_tags_free(struct flexmem_cache *cache)
{
	struct fmlib_tag *tag;

	while ((tag = cache->untagged.next)) {
		cache->untagged.next = tag->next;
		free(tag);
	}
}

/* Copies the sums to an array of structs of @size bytes. */
static void copy_all(const struct flexmem_cache *cache, char *to, size_t size)
{
	struct flexmem_cache_tag sums;
	const struct fmlib_tag *tag;

	for (tag = &cache->untagged; tag; tag = tag->next, to += size) {
		sums = tag->sums;
		if (tag == &cache->untagged)
			fmlib_figures_untagged(cache, &sums);
		fmlib_copy_out(to, size, TAG_MIN, &sums, sizeof(sums));
	}
}

int flexmem_cache_tags(struct flexmem_cache *cache,
		       struct flexmem_cache_tag **tags, size_t size,
		       size_t *count)
{
	int err = fmlib_cache_check(cache);
	const struct fmlib_tag *tag;
	size_t number = 0;
	void *array;

	if (err)
		return err;
	if (!tags || !count || size < TAG_MIN)
		return -EINVAL;
	fmlib_lock(cache);
	for (tag = &cache->untagged; tag; tag = tag->next)
		number++;
	array = calloc(number, size);
	if (array)
		copy_all(cache, array, size);
	fmlib_unlock(cache);
	if (!array)
		return -ENOMEM;
	*tags = array;
	*count = number;
	return 0;
}

void flexmem_cache_tags_free(struct flexmem_cache_tag *tags)
{
	free(tags);
}
