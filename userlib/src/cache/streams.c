// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Blocks that other streams use. A freed one waits until an event on each of
 * those streams has happened. All that is needed for this is allocated when the
 * use is recorded, so that a free cannot fail.
 */
#include "cache.h"

#include <stdlib.h>

/* Noted of a segment in which nothing was freed while the device was waited for. */
#define QUIET UINT64_MAX

static struct fmlib_queue *find_queue(struct flexmem_cache *cache,
				      uint64_t stream)
{
	struct fmlib_queue *queue;

	for (queue = cache->queues; queue; queue = queue->next) {
		if (queue->stream == stream)
			return queue;
	}
	return NULL;
}

/* Queues stay: a framework has few streams and uses them again. */
static int have_queue(struct flexmem_cache *cache, uint64_t stream)
{
	struct fmlib_queue *queue = find_queue(cache, stream);

	if (queue)
		return 0;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	queue->stream = stream;
	queue->next = cache->queues;
	cache->queues = queue;
	return 0;
}

struct fmlib_use *fmlib_use_new(struct flexmem_cache *cache, uint64_t stream)
{
	struct fmlib_use *use;

	if (have_queue(cache, stream))
		return NULL;
	use = calloc(1, sizeof(*use));
	if (use)
		use->stream = stream;
	return use;
}

void fmlib_use_begin(struct fmlib_block *block, struct fmlib_use *use)
{
	use->block = block;
	use->next = block->uses;
	block->uses = use;
}

static void drop_uses(struct fmlib_block *block)
{
	struct fmlib_use *use;

	while ((use = block->uses)) {
		block->uses = use->next;
		free(use);
	}
}

int fmlib_use_add(struct flexmem_cache *cache, struct fmlib_block *block,
		  uint64_t stream)
{
	struct fmlib_use *use;

	if (!cache->has_events || stream == block->segment->arena->stream)
		return 0;
	for (use = block->uses; use; use = use->next) {
		if (use->stream == stream)
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

void fmlib_uses_wait(struct flexmem_cache *cache, struct fmlib_block *block)
{
	struct fmlib_use *next = block->uses;
	struct fmlib_use *use;
	int err;

	/* Without events all is done at once. */
	if (!cache->has_events) {
		drop_uses(block);
		fmlib_settle(cache, block);
		return;
	}
	block->waits = 0;
	while ((use = next)) {
		next = use->next;
		block->waits++;
		use->serial = ++cache->use_serial;
		err = cache->events.record(cache->events.user, use->stream,
					   &use->event);
		if (!err) {
			append(find_queue(cache, use->stream), use);
			continue;
		}
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"no event on stream %llu (error %d): a block of %llu bytes waits for the whole device",
				(unsigned long long)use->stream, -err,
				(unsigned long long)block->size);
		append(&cache->lost, use);
	}
	cache->waiting++;
	fmlib_figures_wait(cache, block, 1);
}

static void end_use(struct flexmem_cache *cache, struct fmlib_use *use)
{
	cache->events.destroy(cache->events.user, use->event);
	free(use);
}

/*
 * The first use of a queue is over. The block does not wait for those who still
 * wait for its event: the last of them ends the use.
 */
static void complete(struct flexmem_cache *cache, struct fmlib_queue *queue)
{
	struct fmlib_use *use = queue->first;
	struct fmlib_block *block = use->block;

	queue->first = use->next;
	use->block = NULL;
	if (queue == &cache->lost)
		free(use);
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

	/* Somebody waits for it without the lock, and will complete it. */
	if (use->pins)
		return false;
	err = cache->events.query(cache->events.user, use->event);
	if (err && err != -EAGAIN && !use->complained) {
		use->complained = true;
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"an event on stream %llu cannot be queried: error %d",
				(unsigned long long)use->stream, -err);
	}
	return !err;
}

void fmlib_uses_poll(struct flexmem_cache *cache)
{
	struct fmlib_queue *queue;

	if (!cache->waiting)
		return;
	for (queue = cache->queues; queue; queue = queue->next) {
		while (queue->first && happened(cache, queue->first))
			complete(cache, queue);
	}
}

/* Everything up to @serial is over. */
static void complete_to(struct flexmem_cache *cache, struct fmlib_queue *queue,
			uint64_t serial)
{
	while (queue->first && queue->first->serial <= serial)
		complete(cache, queue);
}

/* Before the device is synchronized: what is freed from here on is not done. */
static void note_releases(struct flexmem_cache *cache)
{
	struct fmlib_segment *segment = cache->first_segment;

	/* Another thread waits already: what it has noted is true for both. */
	if (cache->synchronizing++)
		return;
	for (; segment; segment = segment->next)
		segment->noted = segment->range.releases;
}

/* After that: what comes back until the call below is done as well. */
static void keep_quiet(struct flexmem_cache *cache)
{
	struct fmlib_segment *segment = cache->first_segment;

	for (; segment; segment = segment->next) {
		if (segment->noted == segment->range.releases)
			segment->noted = QUIET;
	}
}

static void become_quiet(struct flexmem_cache *cache)
{
	struct fmlib_segment *segment = cache->first_segment;

	for (; segment; segment = segment->next) {
		if (segment->noted == QUIET)
			segment->quiet = segment->range.releases;
	}
}

int fmlib_uses_synchronize_device(struct flexmem_cache *cache)
{
	uint64_t serial = cache->use_serial;
	struct fmlib_queue *queue;
	int state;
	int gone;
	int err;

	if (!cache->has_events)
		return 0;
	cache->figures.num_sync_all_streams++;
	note_releases(cache);
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
		for (queue = cache->queues; queue; queue = queue->next)
			complete_to(cache, queue, serial);
		complete_to(cache, &cache->lost, serial);
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

	for (queue = cache->queues; queue; queue = queue->next) {
		err = synchronize_queue(cache, queue);
		if (err == -ECHILD)
			return err;
		if (err && !result)
			result = err;
	}
	if (cache->lost.first) {
		err = fmlib_uses_synchronize_device(cache);
		if (err == -ECHILD || !result)
			result = err;
	}
	return result;
}

static void forget_queue(struct flexmem_cache *cache, struct fmlib_queue *queue,
			 bool destroy_events)
{
	struct fmlib_use *use;

	while ((use = queue->first)) {
		queue->first = use->next;
		if (destroy_events)
			cache->events.destroy(cache->events.user, use->event);
		free(use);
	}
}

void fmlib_uses_forget(struct flexmem_cache *cache, bool destroy_events)
{
	struct fmlib_queue *queue;
	struct fmlib_block *block;
	uint32_t i;

	while ((queue = cache->queues)) {
		cache->queues = queue->next;
		forget_queue(cache, queue, destroy_events);
		free(queue);
	}
	forget_queue(cache, &cache->lost, false);
	for (i = 0; i < fmlib_blocks_count(cache); i++) {
		block = fmlib_block_at(cache, i);
		/* The uses of those that wait went with their queues. */
		if (block && fmlib_block_is_live(block))
			drop_uses(block);
	}
}
