// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The streams that use shared segments, and the free parts that their work may
 * still use. share.c explains both.
 */
#include "cache.h"

#include <stdlib.h>

/* At most this many more parts are kept than there are blocks. */
#define SPARE_EXCESS 256

/* ---- owners ---- */

static struct fmlib_owner **chain_of(struct fmlib_share *share, uint64_t stream)
{
	return &share->owners[fmlib_hash(stream) % FMLIB_OWNER_CHAINS];
}

struct fmlib_owner *fmlib_owner_get(struct fmlib_share *share,
				     struct fmlib_lane *lane, uint64_t stream)
{
	struct fmlib_owner **first = chain_of(share, stream);
	struct fmlib_owner *owner = *first;

	while (owner && owner->stream != stream)
		owner = owner->next;
	if (owner)
		return owner;
	owner = calloc(1, sizeof(*owner));
	if (!owner)
		return NULL;
	owner->stream = stream;
	owner->lane = lane;
	owner->next = *first;
	*first = owner;
	return owner;
}

void fmlib_epoch_drop(struct flexmem_cache *cache, struct fmlib_owner *owner,
		       bool destroy)
{
	struct fmlib_epoch *epoch = owner->first;

	owner->first = epoch->next;
	if (destroy)
		cache->events.destroy(cache->events.user, epoch->event);
	free(epoch);
}

void fmlib_owner_put(struct flexmem_cache *cache, struct fmlib_owner *owner)
{
	struct fmlib_owner **link = chain_of(&cache->share, owner->stream);

	if (owner->blocks || owner->first_part || owner == cache->share.sole)
		return;
	while (*link != owner)
		link = &(*link)->next;
	*link = owner->next;
	free(owner);
}

/* ---- pending parts: a treap for each segment, ordered by offset ---- */

static struct fmlib_pending *join(struct fmlib_pending *left,
				  struct fmlib_pending *right)
{
	if (!left || !right)
		return left ? left : right;
	if (left->priority >= right->priority) {
		left->right = join(left->right, right);
		return left;
	}
	right->left = join(left, right->left);
	return right;
}

static void split(struct fmlib_pending *root, uint64_t offset,
		  struct fmlib_pending **left, struct fmlib_pending **right)
{
	if (!root) {
		*left = NULL;
		*right = NULL;
	} else if (root->offset < offset) {
		*left = root;
		split(root->right, offset, &root->right, right);
	} else {
		*right = root;
		split(root->left, offset, left, &root->left);
	}
}

static struct fmlib_pending *insert(struct fmlib_pending *root,
				    struct fmlib_pending *part)
{
	if (!root || root->priority < part->priority) {
		split(root, part->offset, &part->left, &part->right);
		return part;
	}
	if (part->offset < root->offset)
		root->left = insert(root->left, part);
	else
		root->right = insert(root->right, part);
	return root;
}

struct fmlib_pending *fmlib_part_from(const struct fmlib_segment *segment,
				       uint64_t offset)
{
	struct fmlib_pending *part = segment->pending;
	struct fmlib_pending *first = NULL;

	while (part) {
		if (fmlib_part_end(part) > offset) {
			first = part;
			part = part->left;
		} else {
			part = part->right;
		}
	}
	return first;
}

static void add_spare(struct fmlib_share *share, struct fmlib_pending *part)
{
	part->left = share->spare;
	share->spare = part;
	share->spare_count++;
}

int fmlib_parts_prepare(struct fmlib_share *share, size_t count)
{
	struct fmlib_pending *part;

	while (share->spare_count < count) {
		part = malloc(sizeof(*part));
		if (!part)
			return -ENOMEM;
		add_spare(share, part);
	}
	return 0;
}

/*
 * The parts of a stream are in a list, ordered by epoch. The streams with parts
 * are in a list, too.
 */
static void link_part(struct fmlib_share *share, struct fmlib_pending *part)
{
	struct fmlib_owner *owner = part->owner;

	part->previous = owner->last_part;
	part->next = NULL;
	if (part->previous) {
		part->previous->next = part;
	} else {
		owner->first_part = part;
		owner->previous_pending = NULL;
		owner->next_pending = share->pending;
		if (share->pending)
			share->pending->previous_pending = owner;
		share->pending = owner;
	}
	owner->last_part = part;
}

/* A stream without parts needs no events. */
static void rest(struct flexmem_cache *cache, struct fmlib_owner *owner)
{
	if (owner->previous_pending)
		owner->previous_pending->next_pending = owner->next_pending;
	else
		cache->share.pending = owner->next_pending;
	if (owner->next_pending)
		owner->next_pending->previous_pending = owner->previous_pending;
	while (owner->first)
		fmlib_epoch_drop(cache, owner, true);
	owner->frees = 0;
	fmlib_owner_put(cache, owner);
}

static void unlink_part(struct flexmem_cache *cache, struct fmlib_pending *part)
{
	struct fmlib_owner *owner = part->owner;

	if (part->previous)
		part->previous->next = part->next;
	else
		owner->first_part = part->next;
	if (part->next)
		part->next->previous = part->previous;
	else
		owner->last_part = part->previous;
	if (!owner->first_part)
		rest(cache, owner);
}

void fmlib_part_add(struct fmlib_share *share, struct fmlib_segment *segment,
		     struct fmlib_owner *owner, uint64_t offset, uint64_t size)
{
	struct fmlib_pending *part = share->spare;

	share->spare = part->left;
	share->spare_count--;
	/* xorshift32 spreads well enough for priorities. */
	share->random ^= share->random << 13;
	share->random ^= share->random >> 17;
	share->random ^= share->random << 5;
	*part = (struct fmlib_pending){
		.segment = segment,
		.owner = owner,
		.offset = offset,
		.size = size,
		.epoch = share->epoch,
		.priority = share->random,
	};
	segment->pending = insert(segment->pending, part);
	link_part(share, part);
}

void fmlib_part_remove(struct flexmem_cache *cache, struct fmlib_pending *part)
{
	struct fmlib_pending **link = &part->segment->pending;
	struct fmlib_share *share = &cache->share;

	while (*link != part)
		link = part->offset < (*link)->offset ? &(*link)->left :
							&(*link)->right;
	*link = join(part->left, part->right);
	unlink_part(cache, part);
	if (share->spare_count > share->live + SPARE_EXCESS)
		free(part);
	else
		add_spare(share, part);
}

void fmlib_parts_clear(struct flexmem_cache *cache, struct fmlib_segment *segment,
		  uint64_t offset, uint64_t end)
{
	struct fmlib_pending *part;
	uint64_t rest;

	while ((part = fmlib_part_from(segment, offset)) && part->offset < end) {
		rest = fmlib_part_end(part) > end ?
		       fmlib_part_end(part) - end : 0;
		if (part->offset < offset) {
			part->size = offset - part->offset;
			/* The present epoch is later than that of the part. */
			if (rest)
				fmlib_part_add(&cache->share, segment,
					       part->owner, end, rest);
		} else if (rest) {
			part->size = rest;
			part->offset = end;
		} else {
			fmlib_part_remove(cache, part);
		}
		if (rest)
			return;
	}
}

void fmlib_share_cut(struct flexmem_cache *cache,
		     struct fmlib_segment *segment, uint64_t end)
{
	struct fmlib_pending *part;

	while ((part = fmlib_part_from(segment, end))) {
		if (part->offset < end)
			part->size = end - part->offset;
		else
			fmlib_part_remove(cache, part);
	}
}

