/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Residue: the bytes that open files may have left in a block.
 *
 * The bytes can only be in the dirty range of the block. So a small block that
 * is freed next to much clean memory does not make all the memory dirty. When a
 * block is split, both parts inherit the owner and the dirty range. When blocks
 * of different owners are merged, the result is mixed, and its dirty range
 * covers both ranges.
 *
 * A pure data structure without a lock, like the blocks.
 */
#ifndef _FLEXMEM_RESIDUE_H
#define _FLEXMEM_RESIDUE_H

#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/types.h>
#include <asm/barrier.h>

/* Two values of &flexmem_residue.bytes_of that are no number of a file. */
#define FLEXMEM_CLEAN 0ULL
#define FLEXMEM_MIXED (~0ULL)

/**
 * struct flexmem_residue - bytes that may be left in a block
 * @link: in &flexmem_residues.dirty while the block is free and not clean; in
 *	&flexmem_region.quarantine while it is in quarantine
 * @bytes_of: number of the file that owns the bytes; or FLEXMEM_CLEAN (all
 *	bytes of the block are zero) or FLEXMEM_MIXED
 * @start: the bytes before this offset are zero; without meaning in a clean
 *	block
 * @end: the bytes from this offset on are zero; without meaning in a clean
 *	block
 */
struct flexmem_residue {
	struct list_head link;
	u64 bytes_of;
	u64 start;
	u64 end;
};

/**
 * struct flexmem_residues - the free blocks of a region that are not clean
 * @dirty: their residues, mixed ones first
 * @watched: the one that a background scrub works on; becomes NULL when its
 *	block changes in any way
 * @next: offset from which the background scrub continues in @watched
 */
struct flexmem_residues {
	struct list_head dirty;
	struct flexmem_residue *watched;
	u64 next;
};

/* Split: @residue gets the part of @from's dirty range in [@start, @end). */
static inline void flexmem_residue_split(struct flexmem_residue *residue,
					 const struct flexmem_residue *from,
					 u64 start, u64 end)
{
	start = max(start, from->start);
	end = min(end, from->end);
	residue->bytes_of = start < end ? from->bytes_of : FLEXMEM_CLEAN;
	residue->start = start;
	residue->end = end;
}

/* Merge: adds the dirty range of @other. */
static inline void flexmem_residue_merge(struct flexmem_residue *residue,
					 const struct flexmem_residue *other)
{
	if (other->bytes_of == FLEXMEM_CLEAN)
		return;
	if (residue->bytes_of == FLEXMEM_CLEAN) {
		residue->bytes_of = other->bytes_of;
		residue->start = other->start;
		residue->end = other->end;
		return;
	}
	residue->start = min(residue->start, other->start);
	residue->end = max(residue->end, other->end);
	if (residue->bytes_of != other->bytes_of)
		residue->bytes_of = FLEXMEM_MIXED;
}

/* The block has changed, so a scrub under way does not make it clean. */
static inline void flexmem_residue_unwatch(struct flexmem_residues *residues,
					   const struct flexmem_residue *residue)
{
	if (residues->watched == residue)
		residues->watched = NULL;
}

/*
 * Free: the block has become free. A new mixed block always needs a scrub, so
 * it is queued first.
 */
static inline void flexmem_residue_free(struct flexmem_residues *residues,
					struct flexmem_residue *residue)
{
	if (residue->bytes_of == FLEXMEM_CLEAN)
		INIT_LIST_HEAD(&residue->link);
	else if (residue->bytes_of == FLEXMEM_MIXED)
		list_add(&residue->link, &residues->dirty);
	else
		list_add_tail(&residue->link, &residues->dirty);
}

/* Take: the block is no longer free. */
static inline void flexmem_residue_take(struct flexmem_residues *residues,
					struct flexmem_residue *residue)
{
	list_del_init(&residue->link);
	flexmem_residue_unwatch(residues, residue);
}

/*
 * Split of a free block, which keeps [@start, @end). The other parts have got
 * their share before.
 */
static inline void flexmem_residue_cut(struct flexmem_residues *residues,
				       struct flexmem_residue *residue,
				       u64 start, u64 end)
{
	flexmem_residue_unwatch(residues, residue);
	flexmem_residue_split(residue, residue, start, end);
	if (residue->bytes_of == FLEXMEM_CLEAN)
		list_del_init(&residue->link);
}

/* Merge of a free block, which has absorbed the block of @other. */
static inline void flexmem_residue_absorb(struct flexmem_residues *residues,
					  struct flexmem_residue *residue,
					  const struct flexmem_residue *other)
{
	u64 before = residue->bytes_of;

	flexmem_residue_unwatch(residues, residue);
	flexmem_residue_merge(residue, other);
	if (residue->bytes_of == before)
		return;
	if (before == FLEXMEM_CLEAN)
		flexmem_residue_free(residues, residue);
	else
		list_move(&residue->link, &residues->dirty);
}

/*
 * Whether a free block is mixed. May be false if the scrub of all mixed blocks
 * has failed, because these are last. The background scrub tries them again.
 */
static inline bool
flexmem_residues_have_mixed(const struct flexmem_residues *residues)
{
	return !list_empty(&residues->dirty) &&
	       list_first_entry(&residues->dirty, struct flexmem_residue,
				link)->bytes_of == FLEXMEM_MIXED;
}

/* The residue that is scrubbed next, or NULL. */
static inline struct flexmem_residue *
flexmem_residues_first(struct flexmem_residues *residues)
{
	return list_first_entry_or_null(&residues->dirty,
					struct flexmem_residue, link);
}

void flexmem_residues_watch(struct flexmem_residues *residues,
			    struct flexmem_residue *residue);
bool flexmem_residues_begin_scrub(struct flexmem_residues *residues, u64 most,
				  u64 *start, u64 *end);
int flexmem_residues_end_scrub(struct flexmem_residues *residues, u64 end,
			       int rc);

#endif /* _FLEXMEM_RESIDUE_H */
