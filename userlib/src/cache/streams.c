// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Blocks that other streams use. A freed block waits until an event on each of
 * those streams has happened. The structs for the wait are allocated when the
 * use is recorded, so that a free cannot fail.
 */
#include "cache.h"

#include <stdlib.h>

/*
 * Value of @noted if nothing was freed in the segment while the device was
 * being synchronized.
 */
#define QUIET UINT64_MAX

static struct fmlib_queue **chain_of(struct flexmem_cache *cache,
				     uint64_t stream)
{
	return &cache->queues[fmlib_hash(stream) % FMLIB_CHAINS];
}

/* Finds or makes the queue of a stream. NULL: no host memory. */
static struct fmlib_queue *get_queue(struct flexmem_cache *cache,
				     uint64_t stream)
{
	struct fmlib_queue **first = chain_of(cache, stream);
	struct fmlib_queue *queue = *first;

	while (queue && queue->stream != stream)
		queue = queue->next;
	if (queue)
		return queue;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return NULL;
	queue->stream = stream;
	queue->next = *first;
	*first = queue;
	return queue;
}

/* Frees a queue, unless a use or a walk through the queues needs it. */
static void put_queue(struct flexmem_cache *cache, struct fmlib_queue *queue)
{
	struct fmlib_queue **link = chain_of(cache, queue->stream);

	if (queue->uses || queue->busy)
		return;
	while (*link != queue)
		link = &(*link)->next;
	*link = queue->next;
	free(queue);
}

struct fmlib_use *fmlib_use_new(struct flexmem_cache *cache, uint64_t stream)
{
	struct fmlib_queue *queue = get_queue(cache, stream);
	struct fmlib_use *use;

	if (!queue)
		return NULL;
	use = calloc(1, sizeof(*use));
	if (use) {
		use->queue = queue;
		queue->uses++;
	}
	put_queue(cache, queue);
	return use;
}

void fmlib_use_drop(struct flexmem_cache *cache, struct fmlib_use *use)
{
	if (!use)
		return;
	use->queue->uses--;
	put_queue(cache, use->queue);
	free(use);
}

void fmlib_use_begin(struct fmlib_block *block, struct fmlib_use *use)
{
	use->block = block;
	use->next = block->uses;
	block->uses = use;
}

static void drop_uses(struct flexmem_cache *cache, struct fmlib_block *block)
{
	struct fmlib_use *use;

	while ((use = block->uses)) {
		block->uses = use->next;
		fmlib_use_drop(cache, use);
	}
}

int fmlib_use_add(struct flexmem_cache *cache, struct fmlib_block *block,
		  uint64_t stream)
{
	struct fmlib_use *use;

	if (!cache->has_events || stream == fmlib_stream_of(block))
		return 0;
	for (use = block->uses; use; use = use->next) {
		if (use->queue->stream == stream)
			return 0;
	}
	use = fmlib_use_new(cache, stream);
	if (!use)
		return -ENOMEM;
	fmlib_use_begin(block, use);
	return 0;
}

static void append(struct fmlib_queue *queue, struct fmlib_use *use)
{
	use->next = NULL;
	if (queue->first)
		queue->last->next = use;
	else
		queue->first = use;
	queue->last = use;
}

static void become_busy(struct flexmem_cache *cache, struct fmlib_queue *queue)
{
	if (queue->busy)
		return;
	queue->busy = true;
	queue->next_busy = cache->busy;
	cache->busy = queue;
}

static void record_events(struct flexmem_cache *cache,
			  struct fmlib_block *block)
{
	struct fmlib_use *next = block->uses;
	struct fmlib_use *use;
	uint64_t stream;
	int err;

	block->waits = 0;
	while ((use = next)) {
		next = use->next;
		block->waits++;
		use->serial = ++cache->use_serial;
		stream = use->queue->stream;
		err = cache->events.record(cache->events.user, stream,
					   &use->event);
		if (!err) {
			become_busy(cache, use->queue);
			append(use->queue, use);
			continue;
		}
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"no event on stream %llu (error %d): a block of %llu bytes waits for the whole device",
				(unsigned long long)stream, -err,
				(unsigned long long)block->size);
		append(&cache->lost, use);
	}
}

void fmlib_uses_wait(struct flexmem_cache *cache, struct fmlib_block *block)
{
	/*
	 * Without callbacks for events, all work of a stream counts as done
	 * when the call returns.
	 */
	if (!cache->has_events) {
		drop_uses(cache, block);
		fmlib_settle(cache, block);
		return;
	}
	cache->waiting++;
	fmlib_figures_wait(cache, block, 1);
	if (!cache->captures) {
		record_events(cache, block);
		return;
	}
	block->uses->next_deferred = cache->deferred;
	cache->deferred = block->uses;
}

void fmlib_uses_resume(struct flexmem_cache *cache)
{
	struct fmlib_use *use;

	while ((use = cache->deferred)) {
		cache->deferred = use->next_deferred;
		record_events(cache, use->block);
	}
}

static void end_use(struct flexmem_cache *cache, struct fmlib_use *use)
{
	cache->events.destroy(cache->events.user, use->event);
	fmlib_use_drop(cache, use);
}

/*
 * Completes the first use of a queue. Other threads may still wait for the
 * event of the use. The block does not wait for them. The last such thread
 * frees the use.
 */
static void complete(struct flexmem_cache *cache, struct fmlib_queue *queue)
{
	struct fmlib_use *use = queue->first;
	struct fmlib_block *block = use->block;

	queue->first = use->next;
	use->block = NULL;
	if (queue == &cache->lost)
		fmlib_use_drop(cache, use);
	else if (!use->pins)
		end_use(cache, use);
	if (--block->waits)
		return;
	cache->waiting--;
	fmlib_figures_wait(cache, block, -1);
	fmlib_settle(cache, block);
}

static bool happened(struct flexmem_cache *cache, struct fmlib_use *use)
{
	int err;

	/*
	 * A thread waits for the event without the lock, and will complete the
	 * use.
	 */
	if (use->pins)
		return false;
	err = cache->events.query(cache->events.user, use->event);
	if (err && err != -EAGAIN && !use->complained) {
		use->complained = true;
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"an event on stream %llu cannot be queried: error %d",
				(unsigned long long)use->queue->stream, -err);
	}
	return !err;
}

/*
 * Ends a walk through the list of busy queues. A queue stays in the list while
 * any thread walks through it, possibly without the lock. The walk that ends
 * last removes the queues in which no use waits any more.
 */
static void end_walk(struct flexmem_cache *cache)
{
	struct fmlib_queue **link = &cache->busy;
	struct fmlib_queue *queue;

	if (--cache->walks)
		return;
	while ((queue = *link)) {
		if (queue->first) {
			link = &queue->next_busy;
			continue;
		}
		*link = queue->next_busy;
		queue->busy = false;
		put_queue(cache, queue);
	}
}

/* Whether the first event in any queue has happened. */
static bool any_happened(struct flexmem_cache *cache)
{
	const struct fmlib_queue *queue = cache->busy;

	while (queue && !(queue->first && happened(cache, queue->first)))
		queue = queue->next_busy;
	return queue;
}

void fmlib_uses_poll(struct flexmem_cache *cache)
{
	struct fmlib_queue *queue;

	if (!cache->waiting || cache->captures)
		return;
	/*
	 * Most polls free nothing, and need not lock the other lanes.
	 */
	if (cache->alone && !any_happened(cache))
		return;
	fmlib_lock_rest(cache);
	cache->walks++;
	for (queue = cache->busy; queue; queue = queue->next_busy) {
		while (queue->first && happened(cache, queue->first))
			complete(cache, queue);
	}
	end_walk(cache);
}

static void complete_to(struct flexmem_cache *cache, struct fmlib_queue *queue,
			uint64_t serial)
{
	while (queue->first && queue->first->serial <= serial)
		complete(cache, queue);
}

/*
 * Called before the device is synchronized. Notes the number of releases of
 * each segment. The synchronization does not wait for work on memory that is
 * released after this call.
 */
static void note_releases(struct flexmem_cache *cache)
{
	struct fmlib_segment *segment = cache->first_growing;

	/*
	 * Another thread waits for the device already, and has made these
	 * notes.
	 */
	if (cache->synchronizing++)
		return;
	for (; segment; segment = segment->next_grown)
		segment->noted = segment->range.releases;
}

/*
 * Called after the device was synchronized. Marks with QUIET the segments in
 * which nothing was freed since note_releases().
 */
static void keep_quiet(struct flexmem_cache *cache)
{
	struct fmlib_segment *segment = cache->first_growing;

	for (; segment; segment = segment->next_grown) {
		if (segment->noted == segment->range.releases)
			segment->noted = QUIET;
	}
}

/*
 * Replaces QUIET by a new note, for other threads that still wait for the
 * device.
 */
static void become_quiet(struct flexmem_cache *cache)
{
	struct fmlib_segment *segment = cache->first_growing;

	for (; segment; segment = segment->next_grown) {
		if (segment->noted == QUIET) {
			segment->quiet = segment->range.releases;
			segment->noted = segment->range.releases;
		}
	}
}

int fmlib_uses_synchronize_device(struct flexmem_cache *cache)
{
	uint64_t serial = cache->use_serial;
	struct fmlib_queue *queue;
	uint64_t epoch;
	int state;
	int gone;
	int err;

	if (!cache->has_events || cache->captures)
		return 0;
	cache->figures.num_sync_all_streams++;
	note_releases(cache);
	epoch = fmlib_share_mark(cache);
	state = fmlib_pause(cache);
	err = cache->events.synchronize_device(cache->events.user);
	gone = fmlib_go_on(cache, state);
	cache->synchronizing--;
	if (gone)
		return gone;
	err = fmlib_callback_result(err);
	if (err) {
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"the device cannot be synchronized: error %d",
				-err);
	} else {
		keep_quiet(cache);
		fmlib_share_done(cache, epoch);
		/* The streams of the blocks below have done their work, too. */
		cache->share.is_done = true;
		cache->walks++;
		for (queue = cache->busy; queue; queue = queue->next_busy)
			complete_to(cache, queue, serial);
		complete_to(cache, &cache->lost, serial);
		end_walk(cache);
		cache->share.is_done = false;
		become_quiet(cache);
	}
	return err;
}

static int synchronize_queue(struct flexmem_cache *cache,
			     struct fmlib_queue *queue)
{
	struct fmlib_use *use = queue->last;
	uint64_t serial;
	int state;
	int gone;
	int err;

	if (!queue->first)
		return 0;
	serial = use->serial;
	use->pins++;
	state = fmlib_pause(cache);
	err = cache->events.synchronize(cache->events.user, use->event);
	gone = fmlib_go_on(cache, state);
	if (gone)
		return gone;
	err = fmlib_callback_result(err);
	if (!err)
		complete_to(cache, queue, serial);
	else
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"an event on stream %llu cannot be waited for: error %d",
				(unsigned long long)queue->stream, -err);
	if (!--use->pins && !use->block)
		end_use(cache, use);
	return err;
}

int fmlib_uses_synchronize(struct flexmem_cache *cache)
{
	struct fmlib_queue *queue;
	int result = 0;
	int err;

	/*
	 * Each turn of the loop checks for captures, because a capture may
	 * begin while this thread waits without the lock.
	 */
	cache->walks++;
	for (queue = cache->busy; queue && !cache->captures;
	     queue = queue->next_busy) {
		err = synchronize_queue(cache, queue);
		if (err == -ECHILD)
			return err;
		if (err && !result)
			result = err;
	}
	end_walk(cache);
	if (cache->lost.first) {
		err = fmlib_uses_synchronize_device(cache);
		if (err == -ECHILD || !result)
			result = err;
	}
	return result;
}

static void free_uses(struct flexmem_cache *cache, struct fmlib_use *use,
		      bool destroy_events)
{
	struct fmlib_use *next;

	for (; use; use = next) {
		next = use->next;
		if (destroy_events)
			cache->events.destroy(cache->events.user, use->event);
		free(use);
	}
}

void fmlib_uses_forget(struct flexmem_cache *cache, bool destroy_events)
{
	struct fmlib_queue *queue;
	struct fmlib_block *block;
	struct fmlib_use *use;
	uint32_t i;

	for (i = 0; i < FMLIB_CHAINS; i++) {
		while ((queue = cache->queues[i])) {
			cache->queues[i] = queue->next;
			free_uses(cache, queue->first, destroy_events);
			free(queue);
		}
	}
	free_uses(cache, cache->lost.first, false);
	while ((use = cache->deferred)) {
		cache->deferred = use->next_deferred;
		free_uses(cache, use, false);
	}
	for (i = 0; i < fmlib_blocks_count(cache); i++) {
		block = fmlib_block_at(cache, i);
		/*
		 * The loops above have freed the uses of waiting blocks. The
		 * uses of live blocks are left.
		 */
		if (block && fmlib_block_is_live(block))
			free_uses(cache, block->uses, false);
	}
}
