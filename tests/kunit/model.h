/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What flexmem must do, written down as naively as possible: arrays, scans from
 * one end to the other, no shared code. The random tests compare every answer.
 */
#ifndef _FLEXMEM_MODEL_H
#define _FLEXMEM_MODEL_H

#include <linux/types.h>
#include <linux/flexmem.h>

struct kunit;

#define MODEL_MAX_BLOCKS 2048
#define MODEL_MAX_SLOTS 64

/* The owners that the model knows, by number. */
#define MODEL_OWNERS 3

struct model_block {
	u64 start;
	u64 size;
	bool used;
	bool orphaned;
	/* When, counted from 1; 0: it is not. */
	u64 quarantined;
	unsigned int owner;
};

/**
 * struct model_region - a slot, and the region in it
 * @there: is there one
 * @refused: the firmware has refused the slot
 * @total: bytes
 * @free: bytes in free blocks
 * @changes: allocations and frees
 * @nr: blocks
 * @block: all blocks, by offset
 */
struct model_region {
	bool there;
	bool refused;
	u64 total;
	u64 free;
	u64 changes;
	unsigned int nr;
	struct model_block *block;
};

/**
 * struct model_pool - slots of one kind
 * @first: first
 * @end: after the last
 * @locked: no region is tried for
 * @reason: why
 */
struct model_pool {
	unsigned int first;
	unsigned int end;
	bool locked;
	enum flexmem_reason reason;
};

/**
 * struct model - a function and its device. The first members are the test's
 * @mode: as in struct flexmem_settings, like those that follow
 * @fit: likewise
 * @order: likewise
 * @acquire: likewise
 * @hw_slots: entries of the firmware's table
 * @max_regions: likewise
 * @program_slots: likewise
 * @nr_sizes: likewise
 * @sizes: likewise
 * @capacity: bytes the device gives
 * @refused_slots: slots the firmware refuses, a bit each
 * @acquire_error: what the next acquisition fails with, or 0
 * @tries: how many holes without slack are tried (D15)
 * @slots: slots there are
 * @taken: bytes the device has given
 * @stamp: counts what is quarantined
 * @tensors: slots of tensors
 * @programs: slots of programs
 * @region: by slot
 */
struct model {
	enum flexmem_mode mode;
	enum flexmem_fit fit;
	enum flexmem_order order;
	enum flexmem_acquire acquire;
	unsigned int hw_slots;
	unsigned int max_regions;
	unsigned int program_slots;
	unsigned int nr_sizes;
	u64 sizes[FLEXMEM_MAX_FALLBACK_SIZES];
	u64 capacity;
	u64 refused_slots;
	int acquire_error;
	unsigned int tries;

	unsigned int slots;
	u64 taken;
	u64 generation;
	u64 stamp;
	struct model_pool tensors;
	struct model_pool programs;
	struct model_region region[MODEL_MAX_SLOTS];
};

/**
 * struct model_request - what is wanted
 * @size: bytes
 * @alignment: of the offset
 * @program: for a program
 * @growable: with room behind it
 */
struct model_request {
	u64 size;
	u64 alignment;
	bool program;
	bool growable;
};

/**
 * struct model_answer - what an allocation has come to
 * @rc: 0, -ENOMEM with a reason, or the error of the acquisition
 * @slot: where
 * @offset: where
 * @reason: why not
 * @region_reason: why in no further region, if that matters
 * @regions: on -ENOMEM
 * @total_free: on -ENOMEM
 * @largest_free: on -ENOMEM
 * @max_region: on -ENOMEM
 */
struct model_answer {
	int rc;
	unsigned int slot;
	u64 offset;
	enum flexmem_reason reason;
	enum flexmem_reason region_reason;
	unsigned int regions;
	u64 total_free;
	u64 largest_free;
	u64 max_region;
};

/**
 * struct model_sums - what a snapshot must show besides the regions
 * @total: bytes of the regions
 * @free: of these, free
 * @owned: of these, in live allocations
 * @orphaned: of these, freed but still in use
 * @quarantined: of these, could not be scrubbed
 * @bytes: of @owned, by owner
 * @orphaned_of: of @orphaned, by owner
 * @slots: regions in which the owner has bytes
 */
struct model_sums {
	u64 total;
	u64 free;
	u64 owned;
	u64 orphaned;
	u64 quarantined;
	u64 bytes[MODEL_OWNERS];
	u64 orphaned_of[MODEL_OWNERS];
	u64 slots[MODEL_OWNERS];
};

struct model *model_create(struct kunit *test);
void model_start(struct model *model);
void model_prealloc(struct model *model);
void model_alloc(struct model *model, const struct model_request *request,
		 struct model_answer *answer);
u64 model_room(struct model *model, unsigned int slot, u64 offset);
u64 model_extend(struct model *model, unsigned int slot, u64 offset, u64 size);
void model_join(struct model *model, unsigned int slot, u64 offset);
void model_shrink(struct model *model, unsigned int slot, u64 offset, u64 size);
void model_free(struct model *model, unsigned int slot, u64 offset);
void model_set_owner(struct model *model, unsigned int slot, u64 offset,
		     unsigned int owner);
void model_orphan(struct model *model, unsigned int slot, u64 offset);
void model_quarantine(struct model *model, unsigned int slot, u64 offset);
void model_sum(const struct model *model, struct model_sums *sums);
void model_trim(struct model *model, bool scrub_fails);
void model_new_capacity(struct model *model, u64 capacity);
void model_region_entry(const struct model *model, unsigned int slot,
			struct flexmem_region_entry *entry);

#endif /* _FLEXMEM_MODEL_H */
