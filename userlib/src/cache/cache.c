// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Allocations and frees that need more than one lane. hit.c has those that need
 * only one.
 */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

#define ALLOCATION_MIN \
	FMLIB_SIZE_TO(struct flexmem_cache_allocation, \
		      failure.device.max_region)
#define REQUEST_MIN FMLIB_SIZE_TO(struct flexmem_cache_request, tag)

void fmlib_cache_give(struct flexmem_cache *cache, struct fmlib_block *block)
{
	if (fmlib_cache_logs(cache, FLEXMEM_LOG_DEBUG))
		fmlib_cache_log(cache, FLEXMEM_LOG_DEBUG, "free %p: %llu bytes",
				fmlib_block_token(block),
				(unsigned long long)block->size);
	fmlib_block_retire(block, fmlib_block_word(block));
	fmlib_figures_free(cache, block);
	if (fmlib_is_tagged(cache, block))
		fmlib_tag_subtract(block->origin->tag, block);
	fmlib_history_block(cache, FMLIB_FREE_REQUESTED, block);
	if (!block->uses) {
		fmlib_settle(cache, block);
		return;
	}
	/*
	 * First handles the events that have happened, so that the lists of
	 * events stay short.
	 */
	fmlib_uses_poll(cache);
	fmlib_uses_wait(cache, block);
}

FMLIB_INLINE void give_token(struct flexmem_cache *cache,
			     const struct fmlib_want *want,
			     struct fmlib_block *block)
{
	fmlib_block_put(block, want->found.segment, want->found.offset,
			want->found.size);
	if (want->found.owner)
		block->owner = want->found.owner;
	else
		block->piece = want->found.piece;
	block->requested = want->bytes;
	block->origin = want->origin;
	block->uses = NULL;
	if (want->loan)
		fmlib_use_begin(block, want->loan);
	fmlib_figures_alloc(cache, block);
	if (fmlib_is_tagged(cache, block))
		fmlib_tag_add(block->origin->tag, block);
	fmlib_block_begin(block);
}

/* The failure of a request that a limit of the cache refuses. */
static struct flexmem_cache_failure
own_limit(const struct flexmem_cache *cache, enum flexmem_cache_limit limit,
	  uint64_t asked)
{
	const struct flexmem_cache_figure *reserved =
		&cache->figures.reserved_bytes[FLEXMEM_CACHE_ALL];

	return (struct flexmem_cache_failure){
		.limit = limit,
		.asked = asked,
		.allocated_bytes = fmlib_figures_allocated(cache),
		.reserved_bytes = reserved->current,
	};
}

/*
 * Memory for @size bytes was found, but no token is left. Notes in the failure
 * which of the two limits on tokens is the cause.
 */
static void explain_tokens(struct flexmem_cache *cache, struct fmlib_want *want,
			   uint64_t size)
{
	if (!fmlib_tokens_are_used_up(cache, size)) {
		want->no_host_memory = true;
		return;
	}
	cache->figures.num_limit_errors++;
	*want->failure = own_limit(cache, FLEXMEM_CACHE_LIMIT_ALLOCATIONS,
				   want->size);
}

/* Frees the memory that was found, because no token is left for it. */
static int refuse(struct flexmem_cache *cache, struct fmlib_want *want)
{
	/*
	 * Needs all locks, because the segment may be released, and the failure
	 * contains the sums of all lanes.
	 */
	fmlib_lock_rest(cache);
	fmlib_put_back(cache, &want->found);
	fmlib_use_drop(cache, want->loan);
	explain_tokens(cache, want, want->found.size);
	return -ENOMEM;
}

/*
 * Turns the memory that was found into an allocation, and adds the allocation
 * to the history and the log.
 */
void fmlib_cache_make(struct flexmem_cache *cache,
		      const struct fmlib_want *want, struct fmlib_block *block)
{
	give_token(cache, want, block);
	fmlib_origin_hold(block->origin);
	fmlib_history_block(cache, FMLIB_ALLOC, block);
	if (fmlib_cache_logs(cache, FLEXMEM_LOG_DEBUG))
		fmlib_cache_log(cache, FLEXMEM_LOG_DEBUG,
				"alloc %p: %llu bytes (%llu requested) on stream %llu",
				fmlib_block_token(block),
				(unsigned long long)want->found.size,
				(unsigned long long)want->bytes,
				(unsigned long long)want->stream);
}

/*
 * Turns the memory that was found into an allocation. If no token is left, puts
 * the memory back and returns -ENOMEM.
 */
static int complete(struct flexmem_cache *cache, struct fmlib_want *want,
		    struct fmlib_block **block)
{
	/*
	 * The block struct comes from the lane of the memory. The lane may be
	 * another stream's.
	 */
	*block = fmlib_block_take(cache, want->owner ? want->lane :
				  want->found.segment->arena->lane,
				  want->found.size);
	if (!*block)
		return refuse(cache, want);
	fmlib_cache_make(cache, want, *block);
	return 0;
}

/*
 * Advances the clock at the beginning of an allocation, so that memory freed
 * from now on counts as younger than memory freed before.
 */
static void tick(struct flexmem_cache *cache, struct fmlib_lane *lane)
{
	fmlib_account(cache, lane)->clock++;
}

static int find_memory(struct flexmem_cache *cache, struct fmlib_want *want,
		       struct fmlib_block **block)
{
	bool missed;
	int err;

	tick(cache, want->lane);
	err = fmlib_obtain(cache, want);
	if (err == -ENOENT && cache->waiting) {
		fmlib_uses_poll(cache);
		err = fmlib_obtain(cache, want);
	}
	if (err == -ENOENT && fmlib_share_poll(cache, want))
		err = fmlib_obtain(cache, want);
	if (err == -ENOENT && fmlib_take_back(cache, want)) {
		fmlib_share_poll(cache, want);
		err = fmlib_obtain(cache, want);
	}
	missed = err == -ENOENT;
	if (missed) {
		/* The pin keeps the pool while the lock is dropped. */
		want->pool->pins++;
		err = fmlib_ladder(cache, want);
		fmlib_pool_put(cache, want->pool);
	}
	if (!err)
		err = complete(cache, want, block);
	if (!err && missed)
		cache->by_ladder++;
	return err;
}

static int find(struct flexmem_cache *cache, struct fmlib_want *want,
		struct fmlib_block **block)
{
	int err = fmlib_share_join(cache, want);

	if (!err)
		err = find_memory(cache, want, block);
	fmlib_share_leave(cache, want);
	return err;
}

/* The stream that a live block was allocated for. */
static uint64_t stream_of(const struct fmlib_block *block)
{
	const struct fmlib_use *use = block->uses;

	while (use && !use->owns)
		use = use->next;
	return use ? use->queue->stream : fmlib_stream_of(block);
}

static void fill(const struct fmlib_block *block,
		 struct flexmem_cache_allocation *allocation)
{
	const struct fmlib_segment *segment = block->segment;

	allocation->token = fmlib_block_token(block);
	allocation->size = block->size;
	allocation->requested = block->requested;
	allocation->address.region_id = segment->address.region_id;
	allocation->address.offset = segment->address.offset + block->offset;
	allocation->stream = stream_of(block);
	allocation->pool = segment->arena->pool->id;
	memcpy(allocation->tag, block->origin->tag->sums.tag,
	       FLEXMEM_CACHE_TAG);
	allocation->context = block->origin->context;
	allocation->handle = segment->handle;
	allocation->offset = block->offset;
	if (segment->pointer)
		allocation->pointer = (char *)segment->pointer + block->offset;
}

/* Refuses a request for more bytes than a token can address. */
static int too_large(struct flexmem_cache *cache, uint64_t bytes,
		     struct flexmem_cache_allocation *allocation)
{
	fmlib_lock(cache);
	cache->figures.num_ooms++;
	if (allocation)
		allocation->failure =
			own_limit(cache, FLEXMEM_CACHE_LIMIT_SIZE, bytes);
	fmlib_unlock(cache);
	return -ENOMEM;
}

/* Returns false if there is no host memory. */
static bool set_tag(struct flexmem_cache *cache, struct fmlib_want *want,
		    const char *name)
{
	struct fmlib_tag *tag = fmlib_tag_find(cache, name);

	if (tag && want->origin->context)
		want->origin->tag = tag;
	else if (tag)
		want->origin = &tag->origin;
	return tag;
}

/*
 * Called with the locks of the cache and of the lane. The locks of all other
 * lanes are held too, unless is_simple_miss() is true. Fills the results under
 * the locks, because after the unlock another thread may free the block.
 */
static int alloc_locked(struct flexmem_cache *cache,
			const struct flexmem_cache_request *request,
			struct fmlib_want *want, void **token,
			struct flexmem_cache_allocation *allocation)
{
	struct fmlib_block *block;
	int err;

	if (request->pool)
		want->pool = fmlib_pool_find(cache, request->pool);
	else if (cache->selections)
		want->pool = fmlib_selected_pool(cache, want->stream);
	if (!want->pool) {
		if (allocation) {
			allocation->failure.pool = request->pool;
			allocation->failure.last_pool = cache->last_pool;
		}
		return -ENOENT;
	}
	/* The graph of the captured work may use the memory of this pool. */
	if (cache->captures)
		want->pool->stays = true;
	if (request->tag && !set_tag(cache, want, request->tag)) {
		want->no_host_memory = true;
		return -ENOMEM;
	}
	err = find(cache, want, &block);
	if (!err && token)
		*token = fmlib_block_token(block);
	if (!err && allocation)
		fill(block, allocation);
	fmlib_figures_commit(cache, fmlib_account(cache, want->lane));
	if (cache->alone)
		fmlib_lane_done(cache, want->lane);
	return err;
}

/* Whether a hit needs only the lane's lock. */
static inline bool is_simple(const struct flexmem_cache *cache,
			     const struct flexmem_cache_request *request,
			     const struct fmlib_want *want)
{
	return !request->pool && !request->tag && !request->context &&
	       want->size < cache->simple_limit && fmlib_lane_serves(cache);
}

/* Whether the arena for a new segment exists. */
static bool has_arena(const struct flexmem_cache *cache,
		      const struct fmlib_want *want)
{
	return fmlib_share_serves(cache, want->pool) &&
	       fmlib_size_begins_growing(cache, want) ?
	       cache->share.arena != NULL :
	       fmlib_arena_find(cache, want) != NULL;
}

/* Whether a miss needs only the lane's lock. */
static bool is_simple_miss(const struct flexmem_cache *cache,
			   const struct flexmem_cache_request *request,
			   const struct fmlib_want *want)
{
	return is_simple(cache, request, want) &&
	       cache->config.threshold <= 0.0 && !cache->config.release_lock &&
	       has_arena(cache, want);
}

/*
 * Allocates free memory of the lane, without the cache's lock. Returns false if
 * that is not possible.
 */
static bool alloc_in_lane(struct flexmem_cache *cache,
			  const struct flexmem_cache_request *request,
			  struct fmlib_want *want, void **token,
			  struct flexmem_cache_allocation *allocation)
{
	struct fmlib_lane *lane = fmlib_lane_find(cache, want->stream);
	struct fmlib_block *block;
	bool done;

	if (!lane)
		return false;
	want->lane = lane;
	fmlib_lock_take(&lane->lock);
	done = is_simple(cache, request, want) &&
	       fmlib_block_ready(&lane->blocks) && !fmlib_obtain(cache, want);
	if (done) {
		tick(cache, lane);
		block = fmlib_block_pop(&lane->blocks);
		give_token(cache, want, block);
		if (token)
			*token = fmlib_block_token(block);
		if (allocation)
			fill(block, allocation);
		fmlib_figures_commit(cache, fmlib_account(cache, lane));
		fmlib_lane_done(cache, lane);
	}
	fmlib_lock_drop(&lane->lock);
	return done;
}

/* Allocates, and fills in @token or @allocation. One of the two is NULL. */
static int alloc(struct flexmem_cache *cache,
		 const struct flexmem_cache_request *request, void **token,
		 struct flexmem_cache_allocation *allocation)
{
	struct flexmem_cache_failure failure;
	struct fmlib_want want = {
		.bytes = request->bytes,
		.stream = request->stream,
		.mask = request->alignment > cache->profile.granule ?
			request->alignment - 1 : 0,
		.pool = &cache->common,
		.origin = &cache->untagged.origin,
		.failure = &failure,
	};
	int err;

	if (request->bytes > FLEXMEM_CACHE_ALLOCATION_BYTES)
		return too_large(cache, request->bytes, allocation);
	want.size = fmlib_size_round(cache, request->bytes);
	want.kind = fmlib_size_kind(cache, want.size);
	if (alloc_in_lane(cache, request, &want, token, allocation))
		return 0;
	/*
	 * This second attempt may find host memory that the first one lacked.
	 */
	want.no_host_memory = false;
	if (request->context) {
		want.origin = fmlib_origin_new(cache, request->context);
		if (!want.origin)
			return -ENOMEM;
	}
	err = fmlib_lock_stream(cache, want.stream, &want.lane);
	if (err) {
		if (request->context)
			fmlib_origins_release(cache, want.origin);
		return err;
	}
	if (!is_simple_miss(cache, request, &want)) {
		fmlib_lock_rest(cache);
		fmlib_lane_admit(cache);
	}
	err = alloc_locked(cache, request, &want, token, allocation);
	fmlib_origin_drop(cache, want.origin);
	fmlib_unlock(cache);
	if (err == -ENOMEM && !want.no_host_memory && allocation)
		allocation->failure = failure;
	return err;
}

int fmlib_cache_alloc(struct flexmem_cache *cache, uint64_t bytes,
		      uint64_t stream, void **token)
{
	const struct flexmem_cache_request request = {
		.bytes = bytes,
		.stream = stream,
	};

	return alloc(cache, &request, token, NULL);
}

int flexmem_cache_alloc_request(struct flexmem_cache *cache,
				const struct flexmem_cache_request *request,
				size_t request_size,
				struct flexmem_cache_allocation *allocation,
				size_t allocation_size)
{
	struct flexmem_cache_allocation result = { 0 };
	struct flexmem_cache_request known;
	int err = fmlib_cache_check(cache);

	if (err)
		return err;
	if (!request || !allocation || allocation_size < ALLOCATION_MIN)
		return -EINVAL;
	err = fmlib_copy_in(&known, sizeof(known), request, request_size,
			    REQUEST_MIN);
	if (err)
		return err;
	if (known.tag &&
	    strnlen(known.tag, FLEXMEM_CACHE_TAG) == FLEXMEM_CACHE_TAG)
		return -EINVAL;
	if (known.alignment & (known.alignment - 1))
		return -EINVAL;
	if (known.bytes)
		err = alloc(cache, &known, NULL, &result);
	fmlib_copy_out(allocation, allocation_size, ALLOCATION_MIN, &result,
		       sizeof(result));
	return err;
}

int fmlib_cache_free(struct flexmem_cache *cache, const void *token)
{
	struct fmlib_block *block;
	uint64_t offset;
	uint64_t word;
	int err = 0;

	fmlib_lock(cache);
	fmlib_lane_admit(cache);
	block = fmlib_block_find(cache, token, &word, &offset);
	if (block && !offset) {
		fmlib_cache_give(cache, block);
		fmlib_figures_commit(cache, &cache->account);
	} else {
		err = -EINVAL;
	}
	fmlib_unlock(cache);
	return err;
}

int flexmem_cache_record_stream(struct flexmem_cache *cache, void *token,
				uint64_t stream)
{
	int err = fmlib_cache_check(cache);
	struct fmlib_block *block;
	uint64_t offset;
	uint64_t word;

	if (err || !token)
		return err;
	fmlib_lock(cache);
	block = fmlib_block_find(cache, token, &word, &offset);
	if (block && !offset)
		err = fmlib_use_add(cache, block, stream);
	else
		err = -EINVAL;
	fmlib_unlock(cache);
	return err;
}

int flexmem_cache_lookup(struct flexmem_cache *cache, const void *token,
			 struct flexmem_cache_allocation *allocation,
			 size_t size, uint64_t *offset)
{
	struct flexmem_cache_allocation result = { 0 };
	int err = fmlib_cache_check(cache);
	struct fmlib_lane *lane = NULL;
	const struct fmlib_chunk *chunk;
	struct fmlib_block *block;
	uint64_t at = 0;
	uint64_t word;

	if (err)
		return err;
	if (!allocation || size < ALLOCATION_MIN)
		return -EINVAL;
	chunk = fmlib_token_chunk(&cache->narrow, token);
	if (chunk)
		lane = chunk->lane;
	if (lane)
		fmlib_lock_take(&lane->lock);
	else
		fmlib_lock(cache);
	block = fmlib_block_find(cache, token, &word, &at);
	if (block && at < block->size)
		fill(block, &result);
	else
		err = -EINVAL;
	if (lane)
		fmlib_lock_drop(&lane->lock);
	else
		fmlib_unlock(cache);
	if (err)
		return err;
	if (offset)
		*offset = at;
	return fmlib_copy_out(allocation, size, ALLOCATION_MIN, &result,
			      sizeof(result));
}
