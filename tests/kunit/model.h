/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rules of flexmem, implemented as naively as possible: arrays, scans from
 * one end to the other, no shared code. The random tests compare every answer
 * of the driver with the answer of this model.
 */
#ifndef _FLEXMEM_MODEL_H
#define _FLEXMEM_MODEL_H

#include <linux/types.h>
#include <linux/flexmem.h>

struct kunit;
struct model;
struct model_request;

#define MODEL_MAX_BLOCKS 2048
#define MODEL_MAX_SLOTS 64
#define MODEL_MAX_DOMAINS 2

/* Owners have the numbers 0 to 2. */
#define MODEL_OWNERS 3

/* &model_block.bytes_of, if the bytes are of several owners. */
#define MODEL_MIXED (~0ULL)

/**
 * struct model_block - a block, free or not
 * @start: offset of its first byte
 * @size: bytes
 * @used: the block is not free
 * @orphaned: the block was freed, but is still in use
 * @quarantined: number that the block got when it was quarantined, from 1 on;
 *	0: not quarantined
 * @owner: owner of the block
 * @bytes_of: owner of its bytes: a number, MODEL_MIXED, or 0 for none
 * @dirty_start: first byte that may be dirty
 * @dirty_end: end of the dirty bytes, exclusive
 */
struct model_block {
	u64 start;
	u64 size;
	bool used;
	bool orphaned;
	u64 quarantined;
	unsigned int owner;
	u64 bytes_of;
	u64 dirty_start;
	u64 dirty_end;
};

/**
 * struct model_region - a slot, and the region in it
 * @there: whether the slot has a region
 * @refused: the firmware has refused the slot
 * @piece: number of the device's piece
 * @domain: the domain that the piece lies in
 * @reserved_for: the holder that the region is reserved for; 0: none
 * @total: bytes
 * @free: bytes in free blocks
 * @changes: number of allocations and frees in the region
 * @nr: number of blocks
 * @block: all blocks, by offset
 */
struct model_region {
	bool there;
	bool refused;
	unsigned int piece;
	unsigned int domain;
	unsigned int reserved_for;
	u64 total;
	u64 free;
	u64 changes;
	unsigned int nr;
	struct model_block *block;
};

/**
 * struct model_range - slots of one kind
 * @first: first slot
 * @end: the slot after the last
 * @no_slot: why no slot is left for a further region, or FLEXMEM_REASON_NONE
 */
struct model_range {
	unsigned int first;
	unsigned int end;
	enum flexmem_reason no_slot;
};

/**
 * struct model_rules - limits that forbid a request although there is room
 * @request: whether a request is refused in any region
 * @charge: whether the owner may be charged for the bytes in a slot
 * @region: whether a region may be acquired for the request
 * @is_below: whether an owner may use what is reserved for a holder
 * @holder_is_full: whether a limit forbids a holder a further region
 */
struct model_rules {
	enum flexmem_reason (*request)(struct model *model,
				       const struct model_request *request);
	enum flexmem_reason (*charge)(struct model *model,
				      const struct model_request *request,
				      unsigned int slot);
	enum flexmem_reason (*region)(struct model *model,
				      const struct model_request *request);
	bool (*is_below)(unsigned int owner, unsigned int holder);
	bool (*holder_is_full)(struct model *model, unsigned int holder);
};

#define MODEL_MAX_RESERVATIONS 2

/**
 * struct model_reservation - regions that a holder should have
 * @holder: number of the holder, at least 1
 * @count: number of regions
 * @size: bytes of each
 */
struct model_reservation {
	unsigned int holder;
	unsigned int count;
	u64 size;
};

#define MODEL_MAX_PENDING (2 * MODEL_MAX_SLOTS)

/**
 * struct model_pending - memory to be released
 * @stamp: time of the acquisition; the oldest memory is released first; 0:
 *	unused entry
 * @slot: slot that may name the memory, and is emptied before the release; or
 *	-1
 * @piece: number of the device's piece; -1: the acquisition got no answer, so
 *	the memory may not exist
 * @tries: number of failed releases
 * @dirty: bytes that are scrubbed before the release
 */
struct model_pending {
	u64 stamp;
	int slot;
	int piece;
	unsigned int tries;
	u64 dirty;
};

/**
 * struct model_domain - one of the device's memories
 * @nr_sizes: number of @sizes
 * @sizes: sizes of its regions, in the order of the setting
 * @capacity: capacity that the driver last read
 * @device_capacity: capacity that the device would report now
 * @unsure: the capacity may have changed since the driver has read it
 * @taken: acquired bytes
 * @too_large: the device refuses this size and larger ones
 */
struct model_domain {
	unsigned int nr_sizes;
	u64 sizes[FLEXMEM_MAX_FALLBACK_SIZES];
	u64 capacity;
	u64 device_capacity;
	bool unsure;
	u64 taken;
	u64 too_large;
};

/**
 * struct model - a PF or VF and its device. The test sets the first members
 * @mode: PF or VF
 * @fit: the setting of this name in struct flexmem_settings
 * @order: the setting of this name
 * @acquire: the setting of this name
 * @hw_slots: entries of the firmware's table
 * @max_regions: the setting of this name
 * @program_slots: the setting of this name
 * @nr_domains: number of domains
 * @default_domains: bit mask of the domains for requests that choose none
 * @domain: the memories
 * @refused_slots: bit mask of the slots that the firmware refuses
 * @acquire_error: error of the next acquisition, or 0
 * @scrub_error: error of the next scrub, or 0
 * @slot_error: error of the next slot_set of a VF, or 0
 * @clear_error: error of the next slot_clear of a VF, or 0
 * @drain_error: error of the next drain of a PF, or 0
 * @release_error: error of the next release of memory, or 0
 * @capacity_error: error of the next read of the capacity, or 0
 * @quiesce_error: error of the next quiesce, or 0
 * @reset_error: error of the next reset, or 0
 * @dead: the device neither answers nor acts
 * @tries: the most holes without slack for the alignment that a search tries
 * @rules: limits; NULL: there are none, and nothing is reserved
 * @priv: argument of the rules
 * @broken: the device or a reset has failed: only another reset works
 * @scrubbed: number of bytes that the device has scrubbed
 * @slots: number of slots
 * @pieces: bit mask of acquired pieces; the lowest free one is taken
 * @pending: memory that must be released to the device
 * @timeouts: timeouts since a command succeeded; after two the device is
 *	unresponsive
 * @piece_size: size of each piece in bytes
 * @piece_domain: domain of each piece
 * @acquired: time at which each piece was acquired
 * @generation: generation of the segment table
 * @stamp: a clock: number of quarantines and acquisitions so far
 * @tensors: slots of tensors
 * @programs: slots of programs
 * @reservation: the reservations, in the order in which they were made
 * @nr_reservations: number of reservations
 * @region: the regions, by slot
 */
struct model {
	enum flexmem_mode mode;
	enum flexmem_fit fit;
	enum flexmem_order order;
	enum flexmem_acquire acquire;
	unsigned int hw_slots;
	unsigned int max_regions;
	unsigned int program_slots;
	unsigned int nr_domains;
	u64 default_domains;
	struct model_domain domain[MODEL_MAX_DOMAINS];
	u64 refused_slots;
	int acquire_error;
	int scrub_error;
	int slot_error;
	int clear_error;
	int drain_error;
	int release_error;
	int capacity_error;
	int quiesce_error;
	int reset_error;
	bool dead;
	unsigned int tries;
	const struct model_rules *rules;
	void *priv;
	bool broken;

	u64 scrubbed;
	unsigned int slots;
	u64 generation;
	u64 pieces;
	struct model_pending pending[MODEL_MAX_PENDING];
	unsigned int timeouts;
	u64 piece_size[MODEL_MAX_SLOTS];
	unsigned int piece_domain[MODEL_MAX_SLOTS];
	u64 acquired[MODEL_MAX_SLOTS];
	u64 stamp;
	struct model_range tensors;
	struct model_range programs;
	struct model_reservation reservation[MODEL_MAX_RESERVATIONS];
	unsigned int nr_reservations;
	struct model_region region[MODEL_MAX_SLOTS];
};

/**
 * struct model_request - a request for memory
 * @size: bytes
 * @alignment: of the offset
 * @domains: bit mask of the domains that it may come from
 * @preferred: bit mask of the domains that are tried first, or 0
 * @program: the memory is for a program
 * @growable: the memory needs room behind it
 * @owner: owner of the memory; struct model_rules may refuse the owner
 */
struct model_request {
	u64 size;
	u64 alignment;
	u64 domains;
	u64 preferred;
	bool program;
	bool growable;
	unsigned int owner;
};

/**
 * struct model_answer - result of an allocation
 * @rc: 0, -ENOMEM with a reason, or the error of the acquisition
 * @slot: slot of the allocation
 * @offset: its offset in the region
 * @reason: why the allocation failed, on -ENOMEM
 * @region_reason: why no further region was acquired, if that matters
 * @regions: number of regions, on -ENOMEM
 * @total_free: free bytes, on -ENOMEM
 * @largest_free: bytes of the largest free block, on -ENOMEM
 * @max_region: bytes of the largest possible region, on -ENOMEM
 * @room: bytes of the largest region that the owner may use or that could be
 *	acquired, on -ENOMEM
 * @asked: bytes of the request that these figures are about
 * @leaving: bytes freed but still in use, on -ENOMEM
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
	u64 room;
	u64 asked;
	u64 leaving;
};

/**
 * struct model_sums - the sums of a snapshot
 * @total: bytes of the regions
 * @free: bytes that are free
 * @owned: bytes in live allocations
 * @orphaned: bytes freed but still in use
 * @quarantined: bytes that could not be scrubbed
 * @bytes: each owner's part of @owned
 * @orphaned_of: each owner's part of @orphaned
 * @slots: number of regions in which each owner has bytes
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
int model_prealloc(struct model *model);
void model_alloc(struct model *model, const struct model_request *request,
		 struct model_answer *answer);
void model_figures(struct model *model, const struct model_request *request,
		   struct model_answer *answer);
u64 model_max_region(const struct model *model, u64 domains);
u64 model_next_region(const struct model *model, const struct model_range *range,
		      u64 domains);
bool model_is_impossible(const struct model *model, u64 domains, u64 size);
bool model_is_unsure(const struct model *model, u64 domains);
bool model_is_closed(const struct model *model, unsigned int slot,
		     unsigned int owner);
bool model_is_reserved(const struct model *model, unsigned int slot,
		       unsigned int owner);
bool model_has_regions(const struct model *model, unsigned int owner);
int model_reserve(struct model *model, const struct model_reservation *wanted,
		  enum flexmem_reason *reason);
void model_restore(struct model *model);
u64 model_all_domains(const struct model *model);
u64 model_most(const struct model_domain *domain);
enum flexmem_reason model_exhausted(const struct model *model,
				    const struct model_range *range,
				    u64 domains, u64 min_size);
u64 model_room(struct model *model, unsigned int slot, u64 offset);
u64 model_extend(struct model *model, unsigned int slot, u64 offset, u64 size);
void model_join(struct model *model, unsigned int slot, u64 offset);
void model_shrink(struct model *model, unsigned int slot, u64 offset, u64 size);
void model_free(struct model *model, unsigned int slot, u64 offset);
void model_set_owner(struct model *model, unsigned int slot, u64 offset,
		     unsigned int owner);
u64 model_dirty(struct model *model, unsigned int slot, u64 offset, u64 owner,
		bool zeroed);
void model_mark_dirty(struct model *model, unsigned int slot, u64 offset,
		      u64 owner);
void model_orphan(struct model *model, unsigned int slot, u64 offset);
void model_quarantine(struct model *model, unsigned int slot, u64 offset);
void model_sum(const struct model *model, struct model_sums *sums);
void model_end_quarantine(struct model *model, unsigned int slot);
int model_begin_trim(struct model *model);
int model_trim(struct model *model, u64 held, unsigned int *regions, u64 *bytes);
int model_reset(struct model *model);
int model_call(struct model *model, int *error);
bool model_is_unresponsive(const struct model *model);
int model_wait(struct model *model);
bool model_is_settled(const struct model *model);
void model_settle_unasked(struct model *model);
int model_refresh(struct model *model);
void model_new_capacity(struct model *model, unsigned int domain,
			u64 capacity);
void model_region_entry(const struct model *model, unsigned int slot,
			struct flexmem_region_entry *entry);

/* Shared by the source files of the model. */
int model_acquire_region(struct model *model, u64 size);
int model_find_hole(const struct model *model,
		    const struct model_region *region, u64 size, u64 alignment);
u64 model_largest_hole(const struct model_region *region);
bool model_comes_first(const struct model *model,
		       const struct model_request *request,
		       const struct model_region *a,
		       const struct model_region *b);
bool model_take(const struct model *model, struct model_region *region,
		const struct model_request *request, u64 *start);
bool model_is_unknown(int rc);
bool model_is_no_answer(int rc);
int model_acquire(struct model *model, unsigned int domain, u64 size);
int model_release(struct model *model, unsigned int piece, u64 dirty);
void model_strand(struct model *model, unsigned int piece, int slot,
		  u64 dirty);
int model_retry(struct model *model, bool all);
bool model_slot_is_known(const struct model *model, unsigned int slot);
void model_reopen(struct model *model);

#endif /* _FLEXMEM_MODEL_H */
