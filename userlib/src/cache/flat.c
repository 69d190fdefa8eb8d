// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The flat provider: an address space without memory, for tests of a cache and
 * replays of traces without a device. A growing segment begins in the middle of
 * the largest hole, any other segment at the start of the tightest hole.
 */
#include "cache.h"

#include <stdlib.h>

#define GRANULE 128

/*
 * A segment, and the hole behind it. @previous, @next: by address. @by_start:
 * node among all segments. @by_hole: node among those with a hole.
 */
struct piece {
	struct piece *previous;
	struct piece *next;
	struct fmlib_node by_start;
	struct fmlib_node by_hole;
	uint64_t start;
	uint64_t size;
	uint64_t hole;
};

/*
 * @units: all sizes and alignments so far, so its lowest bit divides the start
 * of each segment and of each hole.
 * @first: a segment of no bytes at the start of the space, which stays.
 */
struct flexmem_cache_flat {
	pthread_mutex_t lock;
	uint64_t size;
	uint64_t used;
	uint64_t units;
	uint32_t random;
	struct fmlib_node *starts;
	struct fmlib_node *holes;
	struct piece first;
};

static uint64_t align(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

static uint64_t end_of(const struct piece *piece)
{
	return piece->start + piece->size;
}

static const struct piece *started(const struct fmlib_node *node)
{
	return FMLIB_OF_NODE(node, const struct piece, by_start);
}

static bool starts_before(const struct fmlib_node *a,
			  const struct fmlib_node *b)
{
	return started(a)->start < started(b)->start;
}

static bool starts_at(const struct fmlib_node *node, const void *start)
{
	return started(node)->start >= *(const uint64_t *)start;
}

static const struct piece *followed(const struct fmlib_node *node)
{
	return FMLIB_OF_NODE(node, const struct piece, by_hole);
}

/* Of equal holes the lower one comes first. */
static bool is_tighter(const struct piece *a, const struct piece *b)
{
	return a->hole != b->hole ? a->hole < b->hole : end_of(a) < end_of(b);
}

static bool tighter(const struct fmlib_node *a, const struct fmlib_node *b)
{
	return is_tighter(followed(a), followed(b));
}

static bool is_as_large(const struct fmlib_node *node, const void *bytes)
{
	return followed(node)->hole >= *(const uint64_t *)bytes;
}

static struct piece *piece_of(struct fmlib_node *node)
{
	return node ? FMLIB_OF_NODE(node, struct piece, by_hole) : NULL;
}

/* xorshift32 spreads well enough for priorities. */
static uint32_t draw(struct flexmem_cache_flat *flat)
{
	flat->random ^= flat->random << 13;
	flat->random ^= flat->random >> 17;
	flat->random ^= flat->random << 5;
	return flat->random;
}

/* Called before and after each change of a segment or of the next one. */
static void forget_hole(struct flexmem_cache_flat *flat, struct piece *piece)
{
	if (piece->hole)
		fmlib_tree_remove(&flat->holes, &piece->by_hole, tighter);
	piece->hole = 0;
}

static void note_hole(struct flexmem_cache_flat *flat, struct piece *piece)
{
	piece->hole = (piece->next ? piece->next->start : flat->size) -
		      end_of(piece);
	if (piece->hole)
		fmlib_tree_insert(&flat->holes, &piece->by_hole, tighter,
				  draw(flat));
}

/* The bytes of a hole from the first multiple of the alignment on. */
static uint64_t room_in(const struct piece *piece, uint64_t alignment)
{
	uint64_t start = align(end_of(piece), alignment);

	/* The next multiple may overflow. */
	return start >= end_of(piece) && start - end_of(piece) < piece->hole ?
	       piece->hole - (start - end_of(piece)) : 0;
}

/* The largest hole; of equal ones the lowest. NULL: there is none. */
static struct piece *find_largest(const struct flexmem_cache_flat *flat)
{
	const uint64_t most = UINT64_MAX;
	struct piece *piece =
		piece_of(fmlib_tree_below(flat->holes, is_as_large, &most));

	return piece ? piece_of(fmlib_tree_from(flat->holes, is_as_large,
						&piece->hole)) : NULL;
}

/*
 * Searches all holes. Needed only if segments of other alignments have left
 * holes that begin at no multiple of this one.
 */
static struct piece *search(struct flexmem_cache_flat *flat, uint64_t bytes,
			    uint64_t alignment, bool grows, uint64_t *largest)
{
	struct piece *found = NULL;
	struct piece *piece;
	uint64_t best = 0;
	uint64_t room;

	*largest = 0;
	for (piece = &flat->first; piece; piece = piece->next) {
		room = room_in(piece, alignment);
		if (room > *largest)
			*largest = room;
		if (room < bytes ||
		    (found && (grows ? room <= best : room >= best)))
			continue;
		best = room;
		found = piece;
	}
	return found;
}

/* Finds a hole for @bytes. @largest receives the size of the largest hole. */
static struct piece *find_hole(struct flexmem_cache_flat *flat, uint64_t bytes,
			       uint64_t alignment, bool grows,
			       uint64_t *largest)
{
	struct piece *widest;

	if (flat->units & (alignment - 1))
		return search(flat, bytes, alignment, grows, largest);
	widest = find_largest(flat);
	*largest = widest ? widest->hole : 0;
	if (*largest < bytes)
		return NULL;
	return grows ? widest : piece_of(fmlib_tree_from(flat->holes,
							 is_as_large, &bytes));
}

static void explain(const struct flexmem_cache_flat *flat, uint64_t bytes,
		    struct flexmem_failure *failure)
{
	failure->asked = bytes;
	failure->regions = 1;
	failure->slots = 1;
	failure->max_regions = 1;
	failure->total_free = flat->size - flat->used;
	failure->max_region = flat->size;
	if (bytes > flat->size)
		failure->limit = FLEXMEM_LIMIT_REGION_SIZE;
	else if (bytes > failure->total_free)
		failure->limit = FLEXMEM_LIMIT_CAPACITY;
	else
		failure->limit = FLEXMEM_LIMIT_FRAGMENTATION;
}

/* Puts a segment into the hole behind @before. */
static void add_piece(struct flexmem_cache_flat *flat, struct piece *before,
		      struct piece *piece)
{
	forget_hole(flat, before);
	piece->previous = before;
	piece->next = before->next;
	piece->hole = 0;
	if (piece->next)
		piece->next->previous = piece;
	before->next = piece;
	fmlib_tree_insert(&flat->starts, &piece->by_start, starts_before,
			  draw(flat));
	note_hole(flat, before);
	note_hole(flat, piece);
	flat->used += piece->size;
}

static int flat_alloc(void *user, uint64_t bytes, uint64_t alignment,
		      uint32_t flags, struct flexmem_cache_memory *memory,
		      struct flexmem_failure *failure)
{
	bool grows = flags & FLEXMEM_CACHE_GROWABLE;
	struct flexmem_cache_flat *flat = user;
	struct piece *piece = malloc(sizeof(*piece));
	struct piece *before;
	uint64_t room;

	if (!piece)
		return -ENOMEM;
	pthread_mutex_lock(&flat->lock);
	before = find_hole(flat, bytes, alignment, grows,
			   &failure->largest_free);
	if (!before) {
		explain(flat, bytes, failure);
		pthread_mutex_unlock(&flat->lock);
		free(piece);
		return -ENOMEM;
	}
	piece->start = align(end_of(before), alignment);
	/*
	 * The segment in front may grow too, so half of the free bytes stay for
	 * it.
	 */
	room = grows && piece->start ?
	       (room_in(before, alignment) - bytes) / 2 : 0;
	piece->start = align(piece->start + room - room % alignment, alignment);
	piece->size = bytes;
	flat->units |= bytes | alignment;
	add_piece(flat, before, piece);
	memory->handle = piece->start;
	memory->address.region_id = 0;
	memory->address.offset = piece->start;
	pthread_mutex_unlock(&flat->lock);
	return 0;
}

/* Returns NULL if no segment has the handle. */
static struct piece *find_piece(const struct flexmem_cache_flat *flat,
				uint64_t handle)
{
	struct fmlib_node *node =
		fmlib_tree_from(flat->starts, starts_at, &handle);

	return node && started(node)->start == handle ?
	       FMLIB_OF_NODE(node, struct piece, by_start) : NULL;
}

static void remove_piece(struct flexmem_cache_flat *flat, struct piece *piece)
{
	forget_hole(flat, piece);
	forget_hole(flat, piece->previous);
	fmlib_tree_remove(&flat->starts, &piece->by_start, starts_before);
	piece->previous->next = piece->next;
	if (piece->next)
		piece->next->previous = piece->previous;
	note_hole(flat, piece->previous);
	flat->used -= piece->size;
}

static int flat_free(void *user, uint64_t handle)
{
	struct flexmem_cache_flat *flat = user;
	struct piece *piece;

	pthread_mutex_lock(&flat->lock);
	piece = find_piece(flat, handle);
	if (piece)
		remove_piece(flat, piece);
	pthread_mutex_unlock(&flat->lock);
	free(piece);
	return piece ? 0 : -ENOENT;
}

static int resize(struct flexmem_cache_flat *flat, uint64_t handle,
		  uint64_t old_bytes, uint64_t bytes)
{
	struct piece *piece = find_piece(flat, handle);

	if (!piece || piece->size != old_bytes)
		return -ENOENT;
	if (bytes > piece->size + piece->hole)
		return -EAGAIN;
	forget_hole(flat, piece);
	piece->size = bytes;
	flat->units |= bytes;
	note_hole(flat, piece);
	flat->used += bytes - old_bytes;
	return 0;
}

static int flat_grow(void *user, uint64_t handle, uint64_t old_bytes,
		     uint64_t bytes, struct flexmem_failure *failure)
{
	struct flexmem_cache_flat *flat = user;
	int err;

	(void)failure;
	pthread_mutex_lock(&flat->lock);
	err = resize(flat, handle, old_bytes, bytes);
	pthread_mutex_unlock(&flat->lock);
	return err;
}

static int flat_shrink(void *user, uint64_t handle, uint64_t old_bytes,
		       uint64_t bytes)
{
	struct flexmem_cache_flat *flat = user;
	int err;

	pthread_mutex_lock(&flat->lock);
	err = resize(flat, handle, old_bytes, bytes);
	pthread_mutex_unlock(&flat->lock);
	return err;
}

static int flat_memory_info(void *user, uint64_t *free, uint64_t *total)
{
	struct flexmem_cache_flat *flat = user;

	pthread_mutex_lock(&flat->lock);
	*free = flat->size - flat->used;
	*total = flat->size;
	pthread_mutex_unlock(&flat->lock);
	return 0;
}

static int flat_largest(void *user, uint64_t *bytes)
{
	struct flexmem_cache_flat *flat = user;

	pthread_mutex_lock(&flat->lock);
	find_hole(flat, 1, GRANULE, false, bytes);
	pthread_mutex_unlock(&flat->lock);
	return 0;
}

int flexmem_cache_flat_create(struct flexmem_cache_flat **flat, uint64_t bytes,
			      struct flexmem_cache_provider *provider,
			      size_t size)
{
	struct flexmem_cache_provider filled = {
		.alloc = flat_alloc,
		.free = flat_free,
		.grow = flat_grow,
		.shrink = flat_shrink,
		.memory_info = flat_memory_info,
		.largest = flat_largest,
	};
	struct flexmem_cache_flat *made;

	if (!flat || !provider || size < FMLIB_PROVIDER_MIN || !bytes ||
	    bytes % GRANULE)
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	pthread_mutex_init(&made->lock, NULL);
	made->size = bytes;
	made->random = UINT32_C(0x9e3779b9);
	note_hole(made, &made->first);
	filled.user = made;
	*flat = made;
	return fmlib_copy_out(provider, size, FMLIB_PROVIDER_MIN, &filled,
			      sizeof(filled));
}

void flexmem_cache_flat_destroy(struct flexmem_cache_flat *flat)
{
	struct piece *piece;

	if (!flat)
		return;
	while ((piece = flat->first.next)) {
		flat->first.next = piece->next;
		free(piece);
	}
	pthread_mutex_destroy(&flat->lock);
	free(flat);
}
