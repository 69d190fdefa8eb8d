// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What a stream freed last in segments that several streams use (share.c).
 *
 * Such a segment has one lock for all streams. So the lane of a stream keeps
 * the last 16 to 24 blocks of at most 1 MiB that the stream has freed, and serves
 * requests of exactly the same size from them. Both need only the lane's lock.
 * The work of the stream runs in order, so it may use these bytes at once.
 *
 * A kept block is still reserved in the range of its segment, counts as a block
 * of its owner, and is no hole for the figures. So only this file knows of it:
 *
 *  - While the whole cache is locked, nothing is kept: whoever locks the whole
 *    cache first takes all kept blocks back, so that they are holes. So
 *    statistics, snapshots, checkpoints, texts of failures, and everything that
 *    returns memory see only blocks in use and holes. It costs no more than to
 *    free these blocks at once would have cost.
 *  - A request that finds no place takes back what all streams keep, before it
 *    lets the segments grow, waits for another stream, or fails. The thread has
 *    the cache's lock and its own lane's, and takes one other lane's at a time.
 *    It cannot deadlock, because a thread without the cache's lock waits for no
 *    second lane.
 *  - If a lane has 24 kept blocks, the next free takes the eight oldest back,
 *    under one lock of the share. Of the requests of a trace of decoding on four
 *    streams, 74 of 100 are served if eight stay, and 91 if 16 stay.
 *  - A block becomes pending (share.c) when it is taken back, so another stream
 *    needs an event that was recorded after that.
 *  - The free of a block that serves a request later counts like any other, so
 *    events are recorded as often as if nothing were kept. Else other streams
 *    would get the large blocks of the stream late.
 *
 * A fork takes nothing back. In the child the memory stays the parent's, so a
 * child that destroys the cache takes nothing back either.
 */
#include "kept.h"

/* Larger blocks are not kept. */
#define BYTES_MAX (1 << 20)

/*
 * Counts the hits of a locked lane, and takes its @count oldest blocks back. A
 * lost segment that is empty then stays until memory is returned the next time,
 * because that needs all locks.
 */
static void take_back_oldest(struct flexmem_cache *cache, struct fmlib_lane *lane,
			uint32_t count)
{
	struct fmlib_kept *kept = &lane->kept;
	struct fmlib_found found;
	uint32_t i;

	fmlib_lock_take(&cache->share.lock);
	fmlib_share_count(cache, kept->owner, kept->hits);
	kept->hits = 0;
	for (i = 0; i < count; i++) {
		found = fmlib_kept_at(kept, i);
		fmlib_release_shared(cache, &found);
	}
	fmlib_lock_drop(&cache->share.lock);
	fmlib_kept_drop(kept, 0, count);
	fmlib_figures_commit(cache, fmlib_account(cache, lane));
}

bool fmlib_keep(struct flexmem_cache *cache, struct fmlib_lane *lane,
		const struct fmlib_block *block)
{
	struct fmlib_kept *kept = &lane->kept;
	uint32_t i;

	if (!block->segment->tracks || block->size > BYTES_MAX ||
	    block->owner->stream != lane->stream ||
	    cache->config.reuse == FMLIB_REUSE_OWN)
		return false;
	fmlib_figures_free(cache, block);
	kept->owner = block->owner;
	if (fmlib_kept_count(kept) == FMLIB_KEPT)
		take_back_oldest(cache, lane, FMLIB_KEPT_GO);
	else if (kept->hits >= FMLIB_FREES)
		take_back_oldest(cache, lane, 0);
	i = fmlib_kept_count(kept);
	kept->sizes[i] = (uint32_t)block->size;
	kept->places[i].segment = block->segment;
	kept->places[i].offset = block->offset;
	fmlib_kept_set(kept, i + 1);
	return true;
}

bool fmlib_take_back(struct flexmem_cache *cache,
		       const struct fmlib_want *want)
{
	struct fmlib_lane *lane;
	bool any = false;
	uint32_t count;
	size_t i;

	/* Only these requests get shared memory; else nothing is kept. */
	if (!want->owner || !cache->alone)
		return false;
	for (i = 0; i < FMLIB_LANES; i++) {
		lane = fmlib_lane_at(cache, i);
		if (!lane || !fmlib_kept_count(&lane->kept))
			continue;
		if (lane != want->lane)
			fmlib_lock_take(&lane->lock);
		count = fmlib_kept_count(&lane->kept);
		if (count)
			take_back_oldest(cache, lane, count);
		any |= count;
		if (lane != want->lane)
			fmlib_lock_drop(&lane->lock);
	}
	return any;
}

void fmlib_take_back_all(struct flexmem_cache *cache)
{
	struct fmlib_lane *lane;
	struct fmlib_found found;
	size_t i;

	if (fmlib_cache_check(cache))
		return;
	for (i = 0; i < FMLIB_LANES; i++) {
		lane = fmlib_lane_at(cache, i);
		if (!lane || !fmlib_kept_count(&lane->kept))
			continue;
		while (fmlib_kept_count(&lane->kept)) {
			found = fmlib_kept_at(&lane->kept, 0);
			fmlib_kept_drop(&lane->kept, 0, 1);
			/* The segment goes, if it was lost and is empty now. */
			fmlib_put_back(cache, &found);
		}
		fmlib_figures_commit(cache, fmlib_account(cache, lane));
	}
}
