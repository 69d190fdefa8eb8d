// SPDX-License-Identifier: GPL-2.0
/*
 * The model of the cache: how it makes and returns segments, and its steps when
 * memory is short.
 */
#include "cache_model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

static uint64_t reserved(const struct model *model)
{
	return model->figures.reserved_bytes[FLEXMEM_CACHE_ALL].current;
}

static bool keeps(const struct model *model,
		  const struct model_segment *segment)
{
	return segment->pool && model->pools[segment->pool].open &&
	       !segment->lost;
}

bool model_is_lost(struct model *model, struct model_segment *segment)
{
	if (!segment->lost &&
	    model_provider(model, segment)->lost(model->world, segment->handle)) {
		model_share_clear(model, segment, 0, segment->size);
		segment->lost = true;
	}
	return segment->lost;
}

uint64_t model_excess(const struct model *model,
		      const struct model_segment *segment)
{
	return keeps(model, segment) ? 0 : model_spare(model, segment);
}

uint64_t model_spare(const struct model *model,
		     const struct model_segment *segment)
{
	const struct model_block *last = model_last(segment);

	if (last->state != MODEL_FREE)
		return 0;
	if (segment->count == 1)
		return segment->size;
	if (!segment->growing || segment->stuck || segment->lost)
		return 0;
	/* Cuts off whole steps only. */
	return segment->size -
	       model_round(last->offset, model->profile.growing_step);
}

static void remove_segment(struct model *model, struct model_segment *segment)
{
	size_t i = 0;

	model_subtract(model->figures.segment, segment->kind, 1);
	model->figures.num_device_free++;
	if (!segment->growing &&
	    segment->size >= model->figures.max_split_size)
		model_subtract_one(&model->figures.oversize_segments, 1);
	model_share_clear(model, segment, 0, segment->size);
	while (model->segments[i] != segment)
		i++;
	model->count--;
	memmove(&model->segments[i], &model->segments[i + 1],
		(model->count - i) * sizeof(model->segments[0]));
	free(segment->blocks);
	free(segment);
}

bool model_give_back(struct model *model, struct model_segment *segment)
{
	const struct flexmem_cache_provider *provider =
		model_provider(model, segment);
	uint64_t excess = model_spare(model, segment);
	struct model_block *last = model_last(segment);

	if (!excess)
		return false;
	if (segment->count == 1) {
		if (provider->free(model->world, segment->handle))
			return false;
		model_subtract(model->figures.reserved_bytes, segment->kind,
			       excess);
		remove_segment(model, segment);
		return true;
	}
	if (provider->shrink(model->world, segment->handle, segment->size,
			     segment->size - excess)) {
		/*
		 * The only error of the simulated world is -EIO. After this
		 * error the cache does not try to shrink the segment again
		 * until it has grown.
		 */
		segment->stuck = true;
		model_is_lost(model, segment);
		return false;
	}
	model_subtract(model->figures.reserved_bytes, segment->kind, excess);
	model->figures.num_device_shrink++;
	model_share_clear(model, segment, segment->size - excess,
			  segment->size);
	segment->size -= excess;
	last->size -= excess;
	if (!last->size)
		segment->count--;
	return true;
}

/*
 * Returns the oldest segment that can be returned to the provider, except
 * segments that the provider has refused; or NULL.
 */
static struct model_segment *oldest(const struct model *model,
				    const bool *refused)
{
	struct model_segment *best = NULL;
	size_t i;

	for (i = 0; i < model->count; i++) {
		if (refused[i] || !model_excess(model, model->segments[i]))
			continue;
		if (!best || model_last(model->segments[i])->stamp <
			     model_last(best)->stamp)
			best = model->segments[i];
	}
	return best;
}

static size_t number_of(const struct model *model,
			const struct model_segment *segment)
{
	size_t i = 0;

	while (model->segments[i] != segment)
		i++;
	return i;
}

/*
 * Returns segments to the provider until they have @bytes bytes. Tries each
 * segment at most once. Sets @error if the provider refused one. Returns the
 * number of bytes that the provider took back.
 */
uint64_t model_reclaim(struct model *model, uint64_t bytes, int *error)
{
	bool refused[WORLD_PIECES] = { false };
	struct model_segment *segment;
	uint64_t released = 0;
	uint64_t excess;
	size_t count;
	size_t at;

	*error = 0;
	while (released < bytes && (segment = oldest(model, refused))) {
		at = number_of(model, segment);
		excess = model_excess(model, segment);
		count = model->count;
		if (!model_give_back(model, segment)) {
			refused[at] = true;
			*error = -EIO;
			continue;
		}
		released += excess;
		if (model->count < count)
			memmove(&refused[at], &refused[at + 1],
				count - at - 1);
	}
	return released;
}

/* The largest segment that was not tried yet. Of equal segments, the oldest. */
static struct model_segment *largest(const struct model *model,
				     struct model_segment *const *tried,
				     size_t count)
{
	struct model_segment *best = NULL;
	size_t i;
	size_t j;

	for (i = 0; i < model->count; i++) {
		for (j = 0; j < count && tried[j] != model->segments[i]; j++)
			;
		if (j < count)
			continue;
		if (model_excess(model, model->segments[i]) >
		    (best ? model_excess(model, best) : 0))
			best = model->segments[i];
	}
	return best;
}

/*
 * Returns the smallest segment that is large enough. If the provider refuses a
 * segment, tries the next larger one. If no segment is large enough, but all
 * segments together are, returns the largest ones, one after the other.
 */
static uint64_t reclaim_large(struct model *model, uint64_t size)
{
	struct model_segment *order[WORLD_PIECES];
	struct model_segment *segment;
	uint64_t released = 0;
	uint64_t excess;
	uint64_t sum = 0;
	size_t count = 0;
	size_t large = 0;
	size_t i;

	while ((segment = largest(model, order, count)))
		order[count++] = segment;
	while (large < count && model_excess(model, order[large]) >= size)
		large++;
	for (i = large; i--;) {
		excess = model_excess(model, order[i]);
		if (model_give_back(model, order[i]))
			return excess;
	}
	for (i = large; i < count; i++)
		sum += model_excess(model, order[i]);
	for (i = large; i < count && sum >= size && released < size; i++) {
		excess = model_excess(model, order[i]);
		if (model_give_back(model, order[i]))
			released += excess;
	}
	return released;
}

/*
 * If more bytes are reserved than the threshold permits, returns the oldest
 * segments.
 */
static bool collect(struct model *model)
{
	double share = model->setup->threshold;
	uint64_t limit;
	int error;

	if (!share)
		return false;
	if (model->setup->fraction)
		share *= model->setup->fraction;
	limit = (uint64_t)(share * (double)model->world->capacity);
	if (reserved(model) <= limit)
		return false;
	if (!model_reclaim(model, reserved(model) - limit, &error))
		return false;
	model->figures.num_collections++;
	return true;
}

/* ---- obtaining memory ---- */

static bool grows(const struct model *model, const struct model_want *want)
{
	return !want->exact && model->setup->growing &&
	       !(model->pools[want->pool].flags & FLEXMEM_CACHE_POOL_NO_SPLIT);
}

static uint64_t segment_size(const struct model *model,
			     const struct model_want *want)
{
	const struct flexmem_cache_profile *profile = &model->profile;
	uint64_t limit = model->figures.max_split_size;
	uint64_t size;

	if (model->setup->direct || want->exact)
		return want->size;
	if (grows(model, want))
		return model_round(want->size, profile->growing_step);
	if (want->size <= profile->small_limit)
		return profile->small_segment;
	if (want->size < profile->large_limit && profile->large_segment < limit)
		return profile->large_segment;
	size = model_round(want->size, profile->large_round);
	/*
	 * Blocks of @limit bytes and more are not split, and serve no smaller
	 * requests. So a smaller request gets a segment of just its own size,
	 * which can serve such requests again.
	 */
	return size >= limit && want->size < limit ? want->size : size;
}

static bool allowed(const struct model *model, struct model_want *want,
		    uint64_t more)
{
	uint64_t limit = 0;

	if (model->setup->fraction)
		limit = (uint64_t)(model->setup->fraction *
				   (double)model->world->capacity);
	want->failure->segment = more;
	want->failure->allowed_bytes = limit;
	want->failure->error = 0;
	return !limit || reserved(model) + more <= limit;
}

static int grow(struct model *model, struct model_want *want,
		struct model_segment *segment)
{
	struct model_block *last = model_last(segment);
	bool is_free = last->state == MODEL_FREE;
	uint64_t tail = is_free ? last->size : 0;
	uint64_t more;
	int err;

	if (segment->shared)
		tail = model_share_tail(model, want, segment);
	more = model_round(want->size - tail, model->profile.growing_step);

	if (!allowed(model, want, more))
		return -ENOMEM;
	err = model_provider(model, segment)->grow(model->world,
						   segment->handle,
						   segment->size,
						   segment->size + more,
						   &want->failure->device);
	want->failure->error = err;
	if (err == -EIO && model_is_lost(model, segment))
		return -EAGAIN;
	if (err)
		return err;
	if (!is_free) {
		last = model_insert(segment, segment->count);
		last->offset = segment->size;
	}
	last->size += more;
	last->stamp = model->clock;
	segment->size += more;
	segment->stuck = false;
	model_add(model->figures.reserved_bytes, segment->kind, more);
	model->figures.num_device_grow++;
	return 0;
}

static int make(struct model *model, struct model_want *want,
		struct model_place *place)
{
	uint64_t size = segment_size(model, want);
	const struct model_segment asked = { .pool = want->pool };
	struct flexmem_cache_memory memory;
	struct model_segment *segment;
	struct model_block *block;
	int err;

	if (!allowed(model, want, size))
		return -ENOMEM;
	err = model_provider(model, &asked)->alloc(model->world, size,
						   model->profile.granule,
						   grows(model, want) ?
						   FLEXMEM_CACHE_GROWABLE : 0,
						   &memory,
						   &want->failure->device);
	want->failure->error = err;
	if (err)
		return err;
	segment = calloc(1, sizeof(*segment));
	model->segments = realloc(model->segments, (model->count + 1) *
				  sizeof(model->segments[0]));
	assert(segment && model->segments);
	model->segments[model->count++] = segment;
	segment->handle = memory.handle;
	segment->address = memory.address.offset;
	segment->size = size;
	segment->kind = want->kind;
	segment->stream = want->request->stream;
	segment->pool = want->pool;
	segment->growing = grows(model, want);
	segment->shared = segment->growing && model_shares(model, want);
	if (segment->shared)
		model_share_begin(model, segment, segment->stream);
	block = model_insert(segment, 0);
	block->size = size;
	block->stamp = model->clock;
	model_add(model->figures.segment, want->kind, 1);
	model_add(model->figures.reserved_bytes, want->kind, size);
	model->figures.num_device_alloc++;
	if (!segment->growing && size >= model->figures.max_split_size)
		model_add_one(&model->figures.oversize_segments, 1);
	*place = (struct model_place){ segment, 0, 0 };
	return 0;
}

/*
 * Looks for free memory again. The callback of a request may have made a shared
 * segment for another stream.
 */
static struct model_place find_again(struct model *model,
				     const struct model_want *want)
{
	if (model_shares(model, want))
		model_share_enter(model, want->request->stream);
	return model_find(model, want);
}

/* Grows the oldest segment that can grow. If none can, makes a new one. */
static int obtain(struct model *model, struct model_want *want,
		  struct model_place *place)
{
	struct model_segment *segment;
	size_t i;
	int err;

	memset(&want->failure->device, 0, sizeof(want->failure->device));
	/* A block may have become free since the search. */
	*place = find_again(model, want);
	if (place->segment)
		return 0;
	if (model_shares(model, want) &&
	    model_share_wait(model, want, false, place))
		return 0;
	for (i = 0; i < model->count; i++) {
		segment = model->segments[i];
		if (!segment->growing || segment->lost ||
		    segment->kind != want->kind ||
		    segment->pool != want->pool ||
		    (!segment->shared &&
		     segment->stream != want->request->stream))
			continue;
		err = grow(model, want, segment);
		if (!err && segment->shared)
			*place = model_share_find_in(model, want, segment);
		else if (!err)
			*place = (struct model_place){
				segment, segment->count - 1, 0 };
		if (!err)
			return 0;
		if (err != -EAGAIN && err != -ENOMEM)
			return err;
	}
	return make(model, want, place);
}

/* The bytes of a pool's free segments and free ends. */
static uint64_t kept(const struct model *model, uint64_t pool)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < model->count; i++) {
		if (model->segments[i]->pool == pool)
			sum += model_spare(model, model->segments[i]);
	}
	return sum;
}

/*
 * The bytes that the request needs at least: a segment, or the growth of one.
 */
static uint64_t least(const struct model *model, const struct model_want *want)
{
	uint64_t bytes = want->failure->segment;
	const struct model_segment *segment;
	const struct model_block *last;
	uint64_t tail;
	uint64_t more;
	size_t i;

	for (i = 0; i < model->count && grows(model, want); i++) {
		segment = model->segments[i];
		last = &segment->blocks[segment->count - 1];
		tail = last->state == MODEL_FREE ? last->size : 0;
		if (!segment->growing || segment->lost ||
		    segment->pool != want->pool || tail >= want->size ||
		    (!segment->shared &&
		     segment->stream != want->request->stream))
			continue;
		more = model_round(want->size - tail,
				   model->profile.growing_step);
		if (more < bytes)
			bytes = more;
	}
	return bytes;
}

/* Whether the request could have succeeded with what a pool keeps. */
static bool would_help(const struct model *model, const struct model_want *want,
		       uint64_t pool)
{
	const struct flexmem_cache_failure *failure = want->failure;
	uint64_t bytes = kept(model, pool);
	bool own = model->pools[pool].own;

	if (failure->allowed_bytes && !failure->error)
		return failure->reserved_bytes - bytes + least(model, want) <=
		       failure->allowed_bytes;
	if (own != (want->pool && model->pools[want->pool].own))
		return false;
	return own || failure->device_free + bytes >= least(model, want);
}

/*
 * Of the private pools that would have helped, the one that keeps the most
 * bytes; or 0. Of equal pools, the oldest.
 */
static uint64_t keeper(const struct model *model, const struct model_want *want)
{
	uint64_t best = 0;
	uint64_t most = 0;
	uint64_t pool;

	for (pool = 1; pool <= model->last_pool; pool++) {
		if (model->pools[pool].open && kept(model, pool) > most &&
		    would_help(model, want, pool)) {
			most = kept(model, pool);
			best = pool;
		}
	}
	return best;
}

static void describe(const struct model *model, const struct model_want *want)
{
	struct flexmem_cache_failure *failure = want->failure;
	const struct model_segment *segment;
	size_t i;
	size_t j;

	failure->asked = want->size;
	failure->pool = want->pool;
	failure->last_pool = model->last_pool;
	failure->allocated_bytes =
		model->figures.allocated_bytes[FLEXMEM_CACHE_ALL].current;
	failure->reserved_bytes = reserved(model);
	failure->device_total = model->world->capacity;
	failure->device_free = model->world->capacity - model->world->used;
	if (model->setup->fraction) {
		uint64_t total = (uint64_t)(model->setup->fraction *
					    (double)model->world->capacity);
		uint64_t left = total > reserved(model) ?
				total - reserved(model) : 0;

		failure->device_total = total;
		if (failure->device_free > left)
			failure->device_free = left;
	}
	failure->kept_pool = keeper(model, want);
	for (i = 0; i < model->count; i++) {
		segment = model->segments[i];
		for (j = 0; j < segment->count && !segment->lost; j++) {
			if (segment->blocks[j].state == MODEL_FREE &&
			    segment->blocks[j].size > failure->largest_free)
				failure->largest_free =
					segment->blocks[j].size;
		}
	}
}

static bool has_free(const struct model_segment *segment, uint64_t size)
{
	size_t i;

	for (i = 0; i < segment->count && !segment->lost; i++) {
		if (segment->blocks[i].state == MODEL_FREE &&
		    segment->blocks[i].size == size)
			return true;
	}
	return false;
}

/* Whether a request for no pool may get free memory of a private pool. */
static bool lends(const struct model *model, uint64_t pool)
{
	return pool && model->pools[pool].open &&
	       model->pools[pool].flags & FLEXMEM_CACHE_POOL_USE_ON_OOM;
}

static enum flexmem_cache_obstacle obstacle(const struct model *model,
					    const struct model_segment *segment,
					    const struct model_request *request,
					    const struct model_result *result)
{
	uint64_t largest = result->failure.largest_free;

	if (largest < result->failure.asked)
		return FLEXMEM_CACHE_OBSTACLE_SIZE;
	if (segment->pool != result->failure.pool &&
	    (result->failure.pool || !lends(model, segment->pool)))
		return FLEXMEM_CACHE_OBSTACLE_POOL;
	if (segment->shared || segment->stream != request->stream)
		return FLEXMEM_CACHE_OBSTACLE_STREAM;
	if (segment->kind != result->kind)
		return FLEXMEM_CACHE_OBSTACLE_KIND;
	return largest >= model->figures.max_split_size ?
	       FLEXMEM_CACHE_OBSTACLE_SPLIT : FLEXMEM_CACHE_OBSTACLE_SIZE;
}

void model_explain(const struct model *model,
		   const struct model_request *request,
		   const struct flexmem_cache_failure *found,
		   struct model_result *result)
{
	struct flexmem_cache_failure *failure = &result->failure;
	const struct model_segment *segment;
	size_t i;

	for (i = 0; i < model->count && failure->largest_free; i++) {
		segment = model->segments[i];
		if (!has_free(segment, failure->largest_free) ||
		    segment->kind != found->largest_kind ||
		    segment->stream != found->largest_stream ||
		    segment->pool != found->largest_pool)
			continue;
		failure->largest_kind = segment->kind;
		failure->largest_stream = segment->stream;
		failure->largest_pool = segment->pool;
		failure->obstacle = obstacle(model, segment, request, result);
		return;
	}
}

static uint64_t freed(const struct model *model)
{
	const struct flexmem_cache_statistics *f = &model->figures;

	return f->allocation[FLEXMEM_CACHE_ALL].freed + f->num_device_free +
	       f->num_device_shrink;
}

/* Whether the stream of a segment has provably no work left. */
static bool is_quiet(struct model *model, struct model_segment *segment)
{
	uint64_t event;

	if (!model->setup->events || segment->quiet == segment->releases)
		return true;
	if (world_events.record(model->world, segment->stream, &event))
		return false;
	if (!world_events.query(model->world, event))
		segment->quiet = segment->releases;
	world_events.destroy(model->world, event);
	return segment->quiet == segment->releases;
}

/*
 * Takes the lowest block in the oldest segment of another stream, if that
 * stream certainly no longer uses it.
 */
static int borrow(struct model *model, struct model_want *want,
		  struct model_place *place)
{
	struct model_segment *segment;
	size_t i;
	size_t j;

	for (i = 0; i < model->count && !model->captures; i++) {
		segment = model->segments[i];
		if (!segment->growing || segment->lost ||
		    segment->kind != want->kind ||
		    segment->pool != want->pool || segment->shared ||
		    segment->stream == want->request->stream)
			continue;
		for (j = 0; j < segment->count; j++) {
			if (segment->blocks[j].state == MODEL_FREE &&
			    segment->blocks[j].size >= want->size)
				break;
		}
		if (j == segment->count || !is_quiet(model, segment))
			continue;
		*place = (struct model_place){ segment, j, 0 };
		return 0;
	}
	return -ENOMEM;
}

/*
 * The steps have the numbers that the documentation of flexmem_cache_alloc()
 * gives them.
 */
static int step_three(struct model *model, struct model_want *want,
		      struct model_place *place)
{
	uint64_t before;

	if (!model->on_oom || model->in_callback)
		return -ENOMEM;
	before = freed(model);
	model_commit(model);
	model->in_callback = true;
	model->on_oom(model->user);
	model->in_callback = false;
	return freed(model) == before ? -ENOMEM : obtain(model, want, place);
}

static int step_four(struct model *model, struct model_want *want,
		     struct model_place *place)
{
	bool some;

	model_poll(model);
	some = collect(model);
	if (reclaim_large(model, segment_size(model, want)))
		some = true;
	return some ? obtain(model, want, place) : -ENOMEM;
}

/* Returns all free memory, also that of the request's own pool. */
static uint64_t reclaim_all(struct model *model, const struct model_want *want)
{
	int error;

	return model_reclaim(model, UINT64_MAX, &error) +
	       model_pool_reclaim(model, want->pool);
}

static int step_five(struct model *model, struct model_want *want,
		     struct model_place *place)
{
	return reclaim_all(model, want) ? obtain(model, want, place) : -ENOMEM;
}

static int step_six(struct model *model, struct model_want *want,
		    struct model_place *place)
{
	model_wait_for_device(model);
	*place = find_again(model, want);
	if (place->segment || !borrow(model, want, place))
		return 0;
	reclaim_all(model, want);
	return obtain(model, want, place);
}

/* Uses free memory of private pools that permit it. */
static int step_seven(struct model *model, struct model_want *want,
		      struct model_place *place)
{
	struct model_want other = *want;

	if (want->pool)
		return -ENOMEM;
	for (other.pool = 1; other.pool <= model->last_pool; other.pool++) {
		if (!lends(model, other.pool))
			continue;
		*place = model_find(model, &other);
		if (place->segment)
			return 0;
	}
	return -ENOMEM;
}

/* Asks for a fixed segment of just the request's size. */
static int step_eight(struct model *model, struct model_want *want,
		      struct model_place *place)
{
	struct model_want exact = *want;

	if (!grows(model, want) && segment_size(model, want) == want->size)
		return -ENOMEM;
	exact.exact = true;
	return make(model, &exact, place);
}

int model_ladder(struct model *model, struct model_want *want,
		 struct model_place *place)
{
	int err;

	model->figures.num_misses++;
	collect(model);
	err = obtain(model, want, place);
	if (err != -ENOMEM)
		return err;
	model->figures.num_first_failures++;
	err = model_shares(model, want) &&
	      model_share_wait(model, want, true, place) ? 0 : -ENOMEM;
	if (err == -ENOMEM)
		err = borrow(model, want, place);
	if (err == -ENOMEM)
		err = step_three(model, want, place);
	if (err == -ENOMEM)
		err = step_four(model, want, place);
	if (err == -ENOMEM)
		err = step_five(model, want, place);
	if (err == -ENOMEM)
		err = step_six(model, want, place);
	if (err == -ENOMEM)
		err = step_seven(model, want, place);
	if (err == -ENOMEM)
		err = step_eight(model, want, place);
	if (!err)
		model->figures.num_alloc_retries++;
	if (err != -ENOMEM)
		return err;
	model->figures.num_ooms++;
	describe(model, want);
	return -ENOMEM;
}
