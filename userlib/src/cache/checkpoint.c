// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Checkpoints of a private pool. A restore gives the pool the live allocations
 * of the checkpoint again, at their addresses. The restore keeps those that are
 * still live, frees all other allocations of the pool, and makes the missing
 * ones. Before any change the restore checks that all allocations fit, and
 * allocates the host memory that it needs.
 */
#include "cache.h"

#include <stdlib.h>

/*
 * An allocation.
 * @block: its block, during a restore.
 * @made: the restore has allocated @block.
 */
struct entry {
	uint64_t serial;
	uint64_t offset;
	uint64_t size;
	uint64_t requested;
	struct fmlib_tag *tag;
	void *token;
	struct fmlib_segment *segment;
	struct fmlib_block *block;
	bool made;
};

/* @entries are sorted by segment, and by offset within a segment. */
struct flexmem_cache_checkpoint {
	uint64_t pool;
	size_t count;
	struct entry entries[];
};

static int in_order(const void *a, const void *b)
{
	const struct entry *first = a;
	const struct entry *second = b;

	if (first->serial != second->serial)
		return first->serial < second->serial ? -1 : 1;
	return first->offset < second->offset ? -1 : 1;
}

static bool is_in(const struct fmlib_block *block, const struct fmlib_pool *pool)
{
	return block && block->segment->arena->pool == pool;
}

static size_t count_live(const struct flexmem_cache *cache,
			 const struct fmlib_pool *pool)
{
	const struct fmlib_block *block;
	size_t count = 0;
	uint32_t i;

	for (i = 0; i < fmlib_blocks_count(cache); i++) {
		block = fmlib_block_at(cache, i);
		count += is_in(block, pool) && fmlib_block_is_live(block);
	}
	return count;
}

static struct flexmem_cache_checkpoint *
copy(const struct flexmem_cache *cache, const struct fmlib_pool *pool)
{
	size_t room = count_live(cache, pool);
	struct flexmem_cache_checkpoint *made =
		calloc(1, sizeof(*made) + room * sizeof(made->entries[0]));
	const struct fmlib_block *block;
	uint32_t i;

	if (!made)
		return NULL;
	made->pool = pool->id;
	for (i = 0; i < fmlib_blocks_count(cache); i++) {
		block = fmlib_block_at(cache, i);
		if (!is_in(block, pool) || !fmlib_block_is_live(block))
			continue;
		made->entries[made->count++] = (struct entry){
			.serial = block->segment->serial,
			.offset = block->offset,
			.size = block->size,
			.requested = block->requested,
			.tag = block->origin->tag,
			.token = fmlib_block_token(block),
		};
	}
	qsort(made->entries, made->count, sizeof(made->entries[0]), in_order);
	return made;
}

int flexmem_cache_pool_checkpoint(struct flexmem_cache *cache, uint64_t pool,
				  struct flexmem_cache_checkpoint **checkpoint)
{
	int err = fmlib_cache_check(cache);
	struct flexmem_cache_checkpoint *made = NULL;
	struct fmlib_pool *found = NULL;

	if (err)
		return err;
	if (!checkpoint)
		return -EINVAL;
	fmlib_lock(cache);
	if (pool)
		found = fmlib_pool_find(cache, pool);
	if (found)
		made = copy(cache, found);
	if (made)
		found->stays = true;
	fmlib_unlock(cache);
	if (made)
		*checkpoint = made;
	return made ? 0 : found ? -ENOMEM : -ENOENT;
}

/* The first entry that ends after the start of @block, or NULL. */
static struct entry *find_entry(struct flexmem_cache_checkpoint *checkpoint,
				const struct fmlib_block *block)
{
	uint64_t serial = block->segment->serial;
	size_t end = checkpoint->count;
	const struct entry *entry;
	size_t from = 0;
	size_t middle;

	while (from < end) {
		middle = from + (end - from) / 2;
		entry = &checkpoint->entries[middle];
		if (entry->serial < serial ||
		    (entry->serial == serial &&
		     entry->offset + entry->size <= block->offset))
			from = middle + 1;
		else
			end = middle;
	}
	return from < checkpoint->count ? &checkpoint->entries[from] : NULL;
}

/* Whether a live block still holds the allocation that the entry describes. */
static bool matches(const struct entry *entry, const struct fmlib_block *block)
{
	return entry && entry->token == fmlib_block_token(block) &&
	       entry->serial == block->segment->serial &&
	       entry->offset == block->offset && entry->size == block->size;
}

static bool is_in_the_way(const struct entry *entry,
			  const struct fmlib_block *block)
{
	return entry && entry->serial == block->segment->serial &&
	       entry->offset < block->offset + block->size;
}

/*
 * Finds those allocations of the checkpoint that are still live. -EBUSY:
 * another block has memory that the checkpoint needs, and cannot be freed at
 * once, because a stream uses the block.
 */
static int match_blocks(struct flexmem_cache *cache,
			const struct fmlib_pool *pool,
			struct flexmem_cache_checkpoint *checkpoint)
{
	struct fmlib_block *block;
	struct entry *entry;
	uint32_t i;
	bool live;

	for (i = 0; i < fmlib_blocks_count(cache); i++) {
		block = fmlib_block_at(cache, i);
		if (!is_in(block, pool))
			continue;
		live = fmlib_block_is_live(block);
		entry = find_entry(checkpoint, block);
		if (live && matches(entry, block))
			entry->block = block;
		else if (is_in_the_way(entry, block) &&
			 (!live || (block->uses && cache->has_events)))
			return -EBUSY;
	}
	return 0;
}

/*
 * Finds the segment of each entry. -ENXIO: the pool no longer has the memory.
 */
static int find_segments(const struct flexmem_cache *cache,
			 const struct fmlib_pool *pool,
			 struct flexmem_cache_checkpoint *checkpoint)
{
	struct fmlib_segment *segment = cache->first_segment;
	struct entry *entry = checkpoint->entries;
	struct entry *end = entry + checkpoint->count;

	/* Both lists are sorted by the segments' serial numbers. */
	for (; entry < end; entry++) {
		while (segment && segment->serial < entry->serial)
			segment = segment->next;
		if (!segment || segment->serial != entry->serial ||
		    segment->arena->pool != pool || segment->lost ||
		    entry->offset + entry->size > segment->size)
			return -ENXIO;
		entry->segment = segment;
	}
	return 0;
}

/*
 * Allocates the host memory that the restore will need. Returns 0 or -ENOMEM.
 */
static int prepare(struct flexmem_cache *cache,
		   struct flexmem_cache_checkpoint *checkpoint)
{
	const struct fmlib_segment *segment = NULL;
	size_t missing = 0;
	size_t here = 0;
	struct entry *entry;
	size_t i;
	int err = 0;

	for (i = 0; i < checkpoint->count && !err; i++) {
		entry = &checkpoint->entries[i];
		if (entry->block)
			continue;
		entry->block = fmlib_block_take(cache,
						entry->segment->arena->lane,
						entry->size);
		entry->made = entry->block;
		if (!entry->made)
			return -ENOMEM;
		here = entry->segment == segment ? here + 1 : 1;
		segment = entry->segment;
		missing++;
		if (segment->growing)
			err = fmlib_range_prepare_claims(&entry->segment->range,
							 here);
		else
			/*
			 * The bytes before a missing block become a piece, and
			 * the bytes after it another piece.
			 */
			err = fmlib_pieces_prepare(segment->arena->lane,
						   2 * missing);
	}
	return err;
}

static void free_one(struct flexmem_cache *cache, struct fmlib_block *block)
{
	if (cache->pointers)
		fmlib_pointers_forget(cache, (char *)block->segment->pointer +
				      block->offset, fmlib_block_token(block));
	fmlib_cache_give(cache, block);
}

static void free_others(struct flexmem_cache *cache,
			const struct fmlib_pool *pool,
			struct flexmem_cache_checkpoint *checkpoint)
{
	struct fmlib_block *block;
	uint32_t i;

	for (i = 0; i < fmlib_blocks_count(cache); i++) {
		block = fmlib_block_at(cache, i);
		if (is_in(block, pool) && fmlib_block_is_live(block) &&
		    !matches(find_entry(checkpoint, block), block))
			free_one(cache, block);
	}
}

static void make_missing(struct flexmem_cache *cache,
			 struct flexmem_cache_checkpoint *checkpoint)
{
	struct entry *entry;
	size_t i;

	for (i = 0; i < checkpoint->count; i++) {
		struct fmlib_want want = { 0 };

		entry = &checkpoint->entries[i];
		if (entry->made) {
			want.bytes = entry->requested;
			want.stream = entry->segment->arena->stream;
			want.origin = &entry->tag->origin;
			fmlib_claim(cache, entry->segment, entry->offset,
				    entry->size, &want);
			fmlib_cache_make(cache, &want, entry->block);
		}
		entry->token = fmlib_block_token(entry->block);
	}
}

/* Ends a restore. If the restore is undone, frees the blocks that it made. */
static void end_restore(struct flexmem_cache *cache,
			struct flexmem_cache_checkpoint *checkpoint, bool undo)
{
	struct entry *entry;
	size_t i;

	for (i = 0; i < checkpoint->count; i++) {
		entry = &checkpoint->entries[i];
		if (undo && entry->made)
			fmlib_block_give(cache, entry->segment->arena->lane,
					 entry->block);
		entry->block = NULL;
		entry->made = false;
	}
}

int flexmem_cache_pool_restore(struct flexmem_cache *cache,
			       struct flexmem_cache_checkpoint *checkpoint)
{
	int err = fmlib_cache_check(cache);
	const struct fmlib_pool *pool;

	if (err)
		return err;
	if (!checkpoint)
		return -EINVAL;
	fmlib_lock(cache);
	fmlib_lane_admit(cache);
	fmlib_uses_poll(cache);
	pool = fmlib_pool_find(cache, checkpoint->pool);
	if (!pool)
		err = -ENOENT;
	if (!err)
		err = match_blocks(cache, pool, checkpoint);
	if (!err)
		err = find_segments(cache, pool, checkpoint);
	if (!err)
		err = prepare(cache, checkpoint);
	if (!err) {
		free_others(cache, pool, checkpoint);
		make_missing(cache, checkpoint);
	}
	end_restore(cache, checkpoint, err);
	fmlib_figures_commit(cache, &cache->account);
	fmlib_unlock(cache);
	return err;
}

void *flexmem_cache_checkpoint_token(
	const struct flexmem_cache_checkpoint *checkpoint, size_t index)
{
	return checkpoint && index < checkpoint->count ?
	       checkpoint->entries[index].token : NULL;
}

void flexmem_cache_checkpoint_free(struct flexmem_cache_checkpoint *checkpoint)
{
	free(checkpoint);
}
