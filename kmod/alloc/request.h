/* SPDX-License-Identifier: GPL-2.0 */
/* An ALLOC under way, from the ioctl to its blocks. */
#ifndef _FLEXMEM_REQUEST_H
#define _FLEXMEM_REQUEST_H

#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/flexmem.h>

#include "region/region.h"
#include "tenant/account.h"

/**
 * struct flexmem_request - an ALLOC under way
 * @size: bytes, a multiple of FLEXMEM_ALIGN, not 0
 * @alignment: of each chunk's offset; a power of two from FLEXMEM_ALIGN to
 *	FLEXMEM_MAX_ALIGNMENT
 * @domains: bit mask of the domains that the memory may come from; not 0. While
 *	one of several chunks is placed: the domain of that chunk
 * @first: domains of @domains that are tried first; equal to @domains if none
 *	is preferred
 * @flags: of enum flexmem_alloc_flags
 * @chunks: largest number of chunks, 1 to FLEXMEM_MAX_CHUNKS. A single chunk
 *	may come from any of @domains. Several chunks come from them in turn.
 *	All chunks have the same size, a multiple of @alignment, except the last
 *	chunk, which may be smaller. A small allocation has fewer chunks
 * @reuses: existing regions are tried before one is acquired, whatever the
 *	region strategy
 * @charged: @account is charged for a handle and for @unplaced, and a reference
 *	to it is held
 * @searched: flexmem_gauge_frees() plus 1 when the last search of the existing
 *	regions for this chunk began; 0: there was none
 * @gave_up: the search in a region ended early, so a block that would fit may
 *	exist
 * @tries: number of blocks that the search has tried one by one
 * @table: region table of the function
 * @account: account of the open file
 * @stock: keeps freed objects of the open file; NULL: none
 * @part: bytes of the chunk that is placed
 * @unplaced: bytes that are charged, but are in no block yet
 * @spare: block nodes for the chunk that is placed
 * @block: block of that chunk; NULL if there is none yet
 * @began: flexmem_gauge_frees() when the request began, and 1 more for each block
 *	that it has freed itself, and for the event that it has caused, since neither
 *	is an event for the caller
 * @reason: on -ENOMEM: the reason; FLEXMEM_REASON_NONE if the kernel had no
 *	memory. During the search: the limit that refused a block which was
 *	large enough
 * @refused: with the reasons REGION_LIMIT and CGROUP_LIMIT: the limit
 * @region_reason: on -ENOMEM for fragmentation or alignment: why no further
 *	region was acquired
 * @regions: on -ENOMEM: number of acquired regions
 * @sum: on -ENOMEM: sums over the regions of @domains for this kind of memory
 * @max_region: on -ENOMEM: largest possible region
 * @room: on -ENOMEM: largest region that the account may use or could acquire now;
 *	no FREE lets a larger chunk succeed
 * @room_of_others: on -ENOMEM: most bytes that one of these regions would have
 *	free if no other file had memory. Regions in which no other file has memory
 *	count only if a limit is in the way
 * @room_of_leaving: on -ENOMEM: most bytes that one of them would have free if no
 *	other file had memory, and if what the file has freed in it were not in use
 * @alone: on -ENOMEM: no other file was told of it, since none could help
 * @leaving: on -ENOMEM: freed bytes that are still in use, in all regions
 * @event: on -ENOMEM: what flexmem_pressure_failed() returned; 0 if no free can
 *	let it succeed
 *
 * The ioctl sets the members up to @reuses, and zeroes those up to @refused. Each
 * try sets the members that it reads. A failure with a reason sets those behind
 * @refused. A request is on its
 * caller's stack. If it needs the worker, the job has a copy, which owns
 * the charge and the nodes. The caller takes them back, unless it was killed.
 */
struct flexmem_request {
	u64 size;
	u64 alignment;
	u64 domains;
	u64 first;
	u32 flags;
	unsigned int chunks;
	bool reuses;
	bool charged;
	u64 searched;
	bool gave_up;
	unsigned int tries;
	struct flexmem_table *table;
	struct flexmem_account *account;
	struct flexmem_stock *stock;
	u64 part;
	u64 unplaced;
	struct flexmem_spare spare;
	struct flexmem_block *block;
	u64 began;
	enum flexmem_reason reason;
	struct flexmem_refused refused;
	enum flexmem_reason region_reason;
	unsigned int regions;
	struct flexmem_sum sum;
	u64 max_region;
	u64 room;
	u64 room_of_others;
	u64 room_of_leaving;
	bool alone;
	u64 leaving;
	u64 event;
};

/* Zeroes a request, but for the members that explain a failure. */
static inline void flexmem_request_init(struct flexmem_request *request)
{
	memset(request, 0, offsetofend(struct flexmem_request, refused));
}

/* Whether a request is for the place with the most free bytes behind it. */
static inline bool
flexmem_request_is_growable(const struct flexmem_request *request)
{
	return request->flags & FLEXMEM_ALLOC_GROWABLE &&
	       request->part == request->size;
}

#endif /* _FLEXMEM_REQUEST_H */
