/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The history of a cache, and the records of a snapshot. */
#ifndef FMLIB_SNAPSHOT_H
#define FMLIB_SNAPSHOT_H

#include "structs.h"

/* An address in a snapshot is the region's number, shifted, plus the offset. */
#define FMLIB_REGION_SHIFT 44
#define FMLIB_OFFSET_MASK ((UINT64_C(1) << FMLIB_REGION_SHIFT) - 1)

/* The caller of these functions has locked the whole cache. */
void fmlib_history_add(struct flexmem_cache *cache, enum fmlib_action action,
		       const struct fmlib_block *block);

static inline void fmlib_history_block(struct flexmem_cache *cache,
				       enum fmlib_action action,
				       const struct fmlib_block *block)
{
	if (cache->history.room)
		fmlib_history_add(cache, action, block);
}

/* Records that @size bytes of the segment at @offset were added or removed. */
void fmlib_history_segment(struct flexmem_cache *cache,
			   const struct fmlib_segment *segment, uint64_t offset,
			   uint64_t size, bool come);
void fmlib_history_oom(struct flexmem_cache *cache,
		       const struct fmlib_want *want);
/* Drops the events. Returns the array, which the caller frees. */
struct fmlib_event *fmlib_history_end(struct flexmem_cache *cache);

/*
 * The array for the first events of a history of @entries, which is not 0. The
 * array grows as it fills. Returns NULL if there is no host memory.
 */
struct fmlib_event *fmlib_history_new(uint64_t entries);

/*
 * Does what fmlib_history_end() does, and begins a new history in the array
 * @events, from fmlib_history_new(). It is NULL if the setting history_entries
 * is 0.
 */
struct fmlib_event *fmlib_history_begin(struct flexmem_cache *cache,
					struct fmlib_event *events);

enum fmlib_state {
	FMLIB_COPY_FREE,
	FMLIB_COPY_LIVE,
	FMLIB_COPY_WAITING,
};

/* The record of a block or a hole. */
struct fmlib_copied_block {
	uint64_t serial;
	uint64_t offset;
	uint64_t size;
	uint64_t requested;
	uint64_t token;
	enum fmlib_state state;
	struct fmlib_origin *origin;
};

struct fmlib_copied_segment {
	uint64_t serial;
	uint64_t address;
	uint64_t size;
	uint64_t stream;
	uint64_t pool;
	struct flexmem_virtual_address place;
	bool is_small;
	bool growing;
};

/* The records of a snapshot, either of one pool or of all pools. */
struct fmlib_copy {
	uint64_t pool;
	struct fmlib_copied_segment *segments;
	size_t segment_count;
	struct fmlib_copied_block *blocks;
	size_t block_count;
	struct fmlib_event *events;
	size_t event_count;
	bool has_contexts;
};

/*
 * Writes the text of a snapshot, which the caller frees (snapshot_text.c).
 * Returns 0 or -ENOMEM.
 */
int fmlib_snapshot_text(const struct flexmem_cache *cache,
			const struct fmlib_copy *copy, char **text,
			size_t *length);

#endif /* FMLIB_SNAPSHOT_H */
