// SPDX-License-Identifier: GPL-2.0
/* The reference model: see model.h. It is simple and slow on purpose. */

#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "model.h"

#define UNIT 128ULL

/* ---- regions ---- */

static struct model_range *range_of(struct model *model, bool program)
{
	return program && model->program_slots ? &model->programs :
						 &model->tensors;
}

u64 model_all_domains(const struct model *model)
{
	return (1ULL << model->nr_domains) - 1;
}

bool model_is_unsure(const struct model *model, u64 domains)
{
	unsigned int d;

	for (d = 0; d < model->nr_domains; d++)
		if (domains >> d & 1 && model->domain[d].unsure)
			return true;
	return false;
}

/**
 * model_most - the size that no region of a domain exceeds
 * @domain: domain
 *
 * Return: the largest size.
 */
u64 model_most(const struct model_domain *domain)
{
	unsigned int i;
	u64 most = 0;

	for (i = 0; i < domain->nr_sizes; i++)
		most = max(most, domain->sizes[i]);
	return most;
}

/* The size of a region that takes the rest of the capacity, or 0. */
static u64 rest_of(const struct model_domain *domain)
{
	u64 rest = domain->capacity > domain->taken ?
		domain->capacity - domain->taken : 0;

	return rest < model_most(domain) && rest < domain->too_large ? rest : 0;
}

static bool may_grant(const struct model_domain *domain, u64 min_size)
{
	u64 rest = rest_of(domain);
	unsigned int i;

	for (i = 0; i < domain->nr_sizes; i++)
		if (domain->sizes[i] >= min_size &&
		    domain->sizes[i] < domain->too_large)
			return true;
	return rest && rest >= min_size;
}

/*
 * The reason why no region of at least @min_size bytes can be acquired, or
 * FLEXMEM_REASON_NONE.
 */
enum flexmem_reason model_exhausted(const struct model *model,
				    const struct model_range *range,
				    u64 domains, u64 min_size)
{
	unsigned int d;

	if (range->no_slot)
		return range->no_slot;
	for (d = 0; d < model->nr_domains; d++)
		if (domains >> d & 1 && may_grant(&model->domain[d], min_size))
			return FLEXMEM_REASON_NONE;
	return FLEXMEM_REASON_CAPACITY;
}

/* The lowest empty slot that is known and was not refused, or -1. */
static int empty_slot(const struct model *model,
		      const struct model_range *range)
{
	unsigned int slot;

	for (slot = range->first; slot < range->end; slot++)
		if (!model->region[slot].there &&
		    !model->region[slot].refused &&
		    model_slot_is_known(model, slot))
			return slot;
	return -1;
}

static void lock_if_full(struct model *model, struct model_range *range)
{
	unsigned int slot;

	if (empty_slot(model, range) >= 0)
		return;
	if (model->mode == FLEXMEM_MODE_VF &&
	    model->hw_slots <= model->max_regions)
		range->no_slot = FLEXMEM_REASON_SLOTS;
	else
		range->no_slot = FLEXMEM_REASON_MAX_REGIONS;
	for (slot = range->first; slot < range->end; slot++)
		if (model->region[slot].refused)
			range->no_slot = FLEXMEM_REASON_SLOTS;
}

/*
 * Puts a piece of memory in a slot. Returns the slot, -ENOSPC or another error.
 */
static int fill_slot(struct model *model, struct model_range *range,
		     unsigned int piece, u64 size)
{
	struct model_region *region;
	int slot, rc;

	while ((slot = empty_slot(model, range)) >= 0) {
		region = &model->region[slot];
		rc = 0;
		if (model->mode == FLEXMEM_MODE_VF)
			rc = model_call(model, &model->slot_error);
		if (rc) {
			model_strand(model, piece, slot, 0);
			return rc;
		}
		if (model->refused_slots >> slot & 1) {
			region->refused = true;
			continue;
		}
		model->generation++;
		region->there = true;
		region->piece = piece;
		region->domain = model->piece_domain[piece];
		region->reserved_for = 0;
		region->total = size;
		region->free = size;
		region->changes = 0;
		region->nr = 1;
		region->block[0] = (struct model_block) { .size = size };
		return slot;
	}
	return -ENOSPC;
}

/* Makes a region from a piece of memory. Returns the slot or an error. */
static int add_region(struct model *model, struct model_range *range,
		      unsigned int piece, u64 size)
{
	int rc = model_call(model, &model->scrub_error), slot;

	if (!rc)
		model->scrubbed += size;
	slot = rc ?: fill_slot(model, range, piece, size);
	if (slot == -ENOSPC || rc)
		model_release(model, piece, 0);
	if (slot >= 0 || slot == -ENOSPC)
		lock_if_full(model, range);
	return slot;
}

static int acquire_from(struct model *model, struct model_range *range,
			unsigned int d, u64 min_size, u64 max_size)
{
	struct model_domain *domain = &model->domain[d];
	unsigned int i;
	int rc;

	for (i = 0; i <= domain->nr_sizes; i++) {
		u64 size;

		if (i == domain->nr_sizes)
			size = rest_of(domain);
		else if (range == &model->programs)
			size = domain->sizes[domain->nr_sizes - 1 - i];
		else
			size = domain->sizes[i];
		if (!size || size < min_size || size > max_size ||
		    size >= domain->too_large)
			continue;
		rc = model_acquire(model, d, size);
		if (rc == -ENOSPC) {
			domain->too_large = size;
			continue;
		}
		return rc < 0 ? rc : add_region(model, range, rc, size);
	}
	return -ENOSPC;
}

/*
 * Acquires a region from the first domain that grants one. Returns its slot,
 * -ENOSPC or another error. If there is no slot for the region, the next domain
 * is not asked.
 */
static int acquire(struct model *model, struct model_range *range, u64 domains,
		   u64 min_size, u64 max_size)
{
	unsigned int d;
	int rc;

	rc = model_retry(model, false);
	if (model_is_no_answer(rc))
		return rc;
	rc = -ENOSPC;
	for (d = 0; d < model->nr_domains && rc == -ENOSPC; d++) {
		if (range->no_slot)
			return -ENOSPC;
		if (domains >> d & 1)
			rc = acquire_from(model, range, d, min_size, max_size);
	}
	return rc;
}

/* Acquires a region of exactly @size bytes for tensors. */
int model_acquire_region(struct model *model, u64 size)
{
	return acquire(model, &model->tensors, model->default_domains, size,
		       size);
}

static bool is_in(const struct model_region *region, u64 domains)
{
	return region->there && domains >> region->domain & 1;
}

u64 model_max_region(const struct model *model, u64 domains)
{
	const struct model_domain *domain;
	unsigned int i, d;
	u64 largest = 0;

	for (d = 0; d < model->nr_domains; d++) {
		domain = &model->domain[d];
		if (!(domains >> d & 1))
			continue;
		largest = max(largest, rest_of(domain));
		for (i = 0; i < domain->nr_sizes; i++)
			if (domain->sizes[i] <= domain->capacity)
				largest = max(largest, domain->sizes[i]);
	}
	for (i = 0; i < model->slots; i++)
		if (is_in(&model->region[i], domains))
			largest = max(largest, model->region[i].total);
	return largest;
}

/*
 * Whether @size is larger than any region of these domains can be. If a
 * capacity is not known, only the sizes of regions are compared.
 */
bool model_is_impossible(const struct model *model, u64 domains, u64 size)
{
	const struct model_domain *domain;
	bool exceeds = true;
	unsigned int i, d;

	for (d = 0; d < model->nr_domains; d++) {
		domain = &model->domain[d];
		for (i = 0; i < domain->nr_sizes; i++)
			if (domains >> d & 1 && size <= domain->sizes[i])
				exceeds = false;
	}
	return exceeds || (!model_is_unsure(model, domains) &&
			   size > model_max_region(model, domains));
}

/* ---- placement ---- */

static bool try_region(struct model *model, unsigned int slot,
		       const struct model_request *request,
		       struct model_answer *answer)
{
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;
	struct model_region *region = &model->region[slot];

	if (model_find_hole(model, region, request->size,
			    request->alignment) < 0)
		return false;
	if (model->rules)
		reason = model->rules->charge(model, request, slot);
	if (reason) {
		answer->reason = reason;
		return false;
	}
	answer->slot = slot;
	return model_take(model, region, request, &answer->offset);
}

bool model_comes_first(const struct model *model,
		       const struct model_request *request,
		       const struct model_region *a,
		       const struct model_region *b)
{
	if (!a->reserved_for != !b->reserved_for)
		return a->reserved_for;
	if (request->growable && model_largest_hole(a) != model_largest_hole(b))
		return model_largest_hole(a) > model_largest_hole(b);
	return model->order == FLEXMEM_ORDER_LOAD_BALANCE ?
		a->free > b->free : a->free < b->free;
}

/* Tries the domains' regions in the order that the settings give. */
static bool try_those_of(struct model *model, const struct model_range *range,
			 u64 domains, const struct model_request *request,
			 struct model_answer *answer)
{
	struct model_region *region = model->region;
	bool tried[MODEL_MAX_SLOTS] = {};
	unsigned int slot;
	int next;

	for (;;) {
		next = -1;
		for (slot = range->first; slot < range->end; slot++) {
			if (!is_in(&region[slot], domains) || tried[slot] ||
			    model_is_closed(model, slot, request->owner))
				continue;
			if (next < 0 ||
			    model_comes_first(model, request, &region[slot],
					      &region[next]))
				next = slot;
		}
		if (next < 0)
			return false;
		tried[next] = true;
		if (try_region(model, next, request, answer))
			return true;
	}
}

/* Tries the existing regions, those of preferred domains first. */
static bool try_regions(struct model *model, const struct model_range *range,
			const struct model_request *request,
			struct model_answer *answer)
{
	return try_those_of(model, range, request->preferred, request,
			    answer) ||
	       try_those_of(model, range,
			    request->domains & ~request->preferred, request,
			    answer);
}

/* Whether a region may have room that the bounded search does not find. */
static bool gives_up(const struct model *model,
		     const struct model_region *region,
		     const struct model_request *request)
{
	unsigned int i, large = 0;

	for (i = 0; i < region->nr; i++)
		large += !region->block[i].used &&
			 region->block[i].size >= request->size;
	return large > model->tries && request->alignment > UNIT &&
	       model_find_hole(model, region, request->size,
			       request->alignment) < 0;
}

static bool one_gives_up(struct model *model, const struct model_range *range,
			 const struct model_request *request)
{
	const struct model_region *region;
	unsigned int slot;

	for (slot = range->first; slot < range->end; slot++) {
		region = &model->region[slot];
		if (is_in(region, request->domains) &&
		    !model_is_closed(model, slot, request->owner) &&
		    gives_up(model, region, request))
			return true;
	}
	return false;
}

/**
 * model_next_region - the largest region that could be acquired now
 * @model: model
 * @range: the slots that it could be in
 * @domains: bit mask of the domains that it could be of
 *
 * Return: its size; U64_MAX if a capacity is not known.
 */
u64 model_next_region(const struct model *model, const struct model_range *range,
		      u64 domains)
{
	const struct model_domain *domain;
	unsigned int d, i;
	u64 largest = 0;

	for (d = 0; d < model->nr_domains && !range->no_slot; d++) {
		domain = &model->domain[d];
		if (!(domains >> d & 1))
			continue;
		largest = max(largest, domain->unsure ? U64_MAX :
						       rest_of(domain));
		for (i = 0; i < domain->nr_sizes; i++)
			if (domain->sizes[i] + domain->taken <=
			    domain->capacity &&
			    domain->sizes[i] < domain->too_large)
				largest = max(largest, domain->sizes[i]);
	}
	return largest;
}

/**
 * model_figures - compute the figures for a failed request
 * @model: model
 * @request: request
 * @answer: receives its figures
 */
void model_figures(struct model *model, const struct model_request *request,
		   struct model_answer *answer)
{
	const struct model_range *range = range_of(model, request->program);
	struct model_sums sums;
	unsigned int slot;

	answer->max_region = model_max_region(model, request->domains);
	answer->asked = request->size;
	answer->room = model_next_region(model, range, request->domains);
	for (slot = 0; slot < model->slots; slot++)
		answer->regions += model->region[slot].there;
	for (slot = range->first; slot < range->end; slot++) {
		if (!is_in(&model->region[slot], request->domains) ||
		    model_is_closed(model, slot, request->owner))
			continue;
		answer->room = max(answer->room, model->region[slot].total);
		answer->total_free += model->region[slot].free;
		answer->largest_free = max(answer->largest_free,
					   model_largest_hole(&model->region[slot]));
	}
	model_sum(model, &sums);
	answer->leaving = sums.orphaned;
}

/* Whether a region that is reserved for others has a hole for the request. */
static bool fits_in_closed(const struct model *model,
			   const struct model_range *range,
			   const struct model_request *request)
{
	unsigned int slot;

	for (slot = range->first; slot < range->end; slot++)
		if (is_in(&model->region[slot], request->domains) &&
		    model_is_closed(model, slot, request->owner) &&
		    model_largest_hole(&model->region[slot]) >= request->size)
			return true;
	return false;
}

static void explain(struct model *model, const struct model_range *range,
		    const struct model_request *request,
		    struct model_answer *answer)
{
	enum flexmem_reason no_region;

	no_region = model_exhausted(model, range, request->domains, 0) ?:
		    FLEXMEM_REASON_CAPACITY;
	answer->rc = -ENOMEM;
	model_figures(model, request, answer);
	if (answer->reason)
		return;
	if (request->size > answer->max_region) {
		answer->reason = FLEXMEM_REASON_REGION_SIZE;
	} else if (fits_in_closed(model, range, request)) {
		answer->reason = FLEXMEM_REASON_RESERVED;
	} else if (answer->total_free >= request->size) {
		answer->reason = one_gives_up(model, range, request) ?
					 FLEXMEM_REASON_ALIGNMENT :
					 FLEXMEM_REASON_FRAGMENTATION;
		answer->region_reason = no_region;
	} else {
		answer->reason = no_region;
	}
}

/**
 * model_create - make a model, to be filled in
 * @test: frees the model at its end
 *
 * Return: the model.
 */
struct model *model_create(struct kunit *test)
{
	struct model_block *blocks;
	struct model *model;
	unsigned int i;

	model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, model);
	for (i = 0; i < MODEL_MAX_SLOTS; i++) {
		blocks = kunit_kcalloc(test, MODEL_MAX_BLOCKS + 1,
				       sizeof(*blocks), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, blocks);
		model->region[i].block = blocks;
	}
	return model;
}

/**
 * model_start - forget all regions, and begin with the present settings
 * @model: model
 */
void model_start(struct model *model)
{
	unsigned int slot, d;

	model->slots = model->max_regions;
	if (model->mode == FLEXMEM_MODE_VF)
		model->slots = min(model->slots, model->hw_slots);
	for (d = 0; d < model->nr_domains; d++) {
		model->domain[d].taken = 0;
		model->domain[d].too_large = ~0ULL;
		model->domain[d].unsure = false;
	}
	model->generation = 0;
	model->scrubbed = 0;
	model->pieces = 0;
	model->broken = false;
	memset(model->pending, 0, sizeof(model->pending));
	model->nr_reservations = 0;
	model->timeouts = 0;
	model->dead = false;
	model->tensors = (struct model_range) {
		.end = model->slots - model->program_slots,
	};
	model->programs = (struct model_range) {
		.first = model->slots - model->program_slots,
		.end = model->slots,
	};
	for (slot = 0; slot < MODEL_MAX_SLOTS; slot++) {
		model->region[slot].there = false;
		model->region[slot].refused = false;
	}
}

/* Acquires a region of each domain in turn, until no domain grants one. */
static int prealloc(struct model *model, struct model_range *range, u64 domains)
{
	unsigned int d;
	bool more;
	int rc;

	do {
		more = false;
		for (d = 0; d < model->nr_domains; d++) {
			if (!(domains >> d & 1) ||
			    model_exhausted(model, range, 1ULL << d, 0))
				continue;
			rc = acquire(model, range, 1ULL << d, 0, ~0ULL);
			if (rc < 0 && rc != -ENOSPC)
				return rc;
			more |= rc >= 0;
		}
	} while (more);
	return 0;
}

/* Acquires all possible regions. Returns 0 or an error. */
int model_prealloc(struct model *model)
{
	int rc = 0;

	if (model->program_slots)
		rc = prealloc(model, &model->programs, model->default_domains);
	return rc ?: prealloc(model, &model->tensors,
			      model_all_domains(model));
}

/*
 * Acquires a region and allocates in it. Returns 0, -ENOSPC or another error.
 */
static int place_in_new(struct model *model, struct model_range *range,
			const struct model_request *request,
			struct model_answer *answer)
{
	enum flexmem_reason refusal = FLEXMEM_REASON_NONE;
	int slot = model_refresh(model);

	if (slot)
		return slot;
	if (model->rules)
		refusal = model->rules->region(model, request);
	if (refusal) {
		answer->reason = refusal;
		return -ENOSPC;
	}
	slot = -ENOSPC;
	if (request->preferred)
		slot = acquire(model, range, request->preferred, request->size,
			       ~0ULL);
	if (slot == -ENOSPC && request->domains != request->preferred)
		slot = acquire(model, range,
			       request->domains & ~request->preferred,
			       request->size, ~0ULL);
	if (slot < 0)
		return slot;
	return try_region(model, slot, request, answer) ? 0 : -ENOSPC;
}

static bool may_grow(const struct model *model, const struct model_range *range,
		     const struct model_request *request)
{
	return model_is_unsure(model, request->domains) ||
	       !model_exhausted(model, range, request->domains,
				request->size) ||
	       !model_is_settled(model);
}

static int place_in_order(struct model *model, struct model_range *range,
			  const struct model_request *request,
			  struct model_answer *answer, bool acquire_first)
{
	int rc;

	if (!acquire_first && try_regions(model, range, request, answer))
		return 0;
	if (model->broken)
		return -EIO;
	answer->reason = FLEXMEM_REASON_NONE;
	if (!may_grow(model, range, request))
		return try_regions(model, range, request, answer) ? 0 : -ENOSPC;
	rc = model_wait(model);
	if (rc)
		return rc;
	if (acquire_first)
		rc = place_in_new(model, range, request, answer);
	if ((acquire_first && !rc) ||
	    try_regions(model, range, request, answer))
		return 0;
	if (!acquire_first)
		rc = place_in_new(model, range, request, answer);
	return rc;
}

/* Places a request. Returns 0, -ENOSPC or another error. */
static int place(struct model *model, struct model_range *range,
		 const struct model_request *request,
		 struct model_answer *answer)
{
	bool acquire_first = model->order == FLEXMEM_ORDER_LOAD_BALANCE &&
			     !request->preferred &&
			     model->acquire == FLEXMEM_ACQUIRE_LAZY &&
			     (model_is_unsure(model, request->domains) ||
			      !model_exhausted(model, range, request->domains,
					       request->size)) &&
			     !model_is_unresponsive(model) &&
			     !model_has_regions(model, request->owner) &&
			     !(model->rules &&
			       model->rules->region(model, request));

	return place_in_order(model, range, request, answer, acquire_first);
}

void model_alloc(struct model *model, const struct model_request *request,
		 struct model_answer *answer)
{
	struct model_range *range = range_of(model, request->program);
	int rc = -ENOSPC;

	*answer = (struct model_answer) {};
	if (model->rules)
		answer->reason = model->rules->request(model, request);
	if (!answer->reason &&
	    model_is_impossible(model, request->domains, request->size))
		answer->reason = FLEXMEM_REASON_REGION_SIZE;
	if (!answer->reason)
		rc = place(model, range, request, answer);
	if (rc == -ENOSPC) {
		explain(model, range, request, answer);
	} else {
		answer->reason = FLEXMEM_REASON_NONE;
		answer->rc = rc;
	}
}

/*
 * Forgets which sizes and slots were refused, because the device may grant them
 * now.
 */
void model_reopen(struct model *model)
{
	unsigned int slot, d;

	for (d = 0; d < model->nr_domains; d++)
		model->domain[d].too_large = ~0ULL;
	model->tensors.no_slot = FLEXMEM_REASON_NONE;
	model->programs.no_slot = FLEXMEM_REASON_NONE;
	for (slot = 0; slot < model->slots; slot++)
		model->region[slot].refused = false;
	lock_if_full(model, &model->tensors);
	lock_if_full(model, &model->programs);
}

/* Releases an empty region. Returns whether its slot is empty now. */
static bool trim_slot(struct model *model, unsigned int slot, int *rc)
{
	struct model_region *region = &model->region[slot];
	u64 dirty;

	if (!region->there || region->free < region->total ||
	    region->reserved_for)
		return false;
	*rc = 0;
	/* The bytes of former owners are scrubbed before the release. */
	dirty = model_dirty(model, slot, 0, 0, true);
	if (model->mode == FLEXMEM_MODE_VF)
		*rc = model_call(model, &model->clear_error);
	/* The segment table hides the slot before the firmware clears it. */
	model->generation++;
	if (*rc && !model_is_unknown(*rc)) {
		model->generation++;
		return false;
	}
	region->there = false;
	if (*rc)
		model_strand(model, region->piece, slot, dirty);
	else
		*rc = model_release(model, region->piece, dirty);
	return true;
}

static int scrub_quarantine(struct model *model)
{
	struct model_sums sums;
	unsigned int slot;
	int rc = 0;

	model_sum(model, &sums);
	if (sums.quarantined)
		rc = model_call(model, &model->scrub_error);
	if (!rc)
		model->scrubbed += sums.quarantined;
	for (slot = 0; slot < model->slots && !rc; slot++)
		if (model->region[slot].there)
			model_end_quarantine(model, slot);
	return rc;
}

/**
 * model_begin_trim - the first part of TRIM, in which holds do not matter
 * @model: model
 *
 * Return: 0, or an error that ends TRIM.
 */
int model_begin_trim(struct model *model)
{
	int rc;

	/* After the second timeout in a row the caller waits for a probe. */
	do {
		rc = model_wait(model);
		if (rc)
			return rc;
		rc = scrub_quarantine(model);
	} while (rc != -EINTR && model_is_unresponsive(model));
	return rc == -EINTR ? rc : 0;
}

/**
 * model_trim - release empty regions
 * @model: model, after model_begin_trim()
 * @held: bit mask of the slots that a driver holds
 * @regions: receives the number of released regions
 * @bytes: receives the bytes in them
 *
 * Return: 0, or an error of the device.
 */
int model_trim(struct model *model, u64 held, unsigned int *regions, u64 *bytes)
{
	bool any = false;
	unsigned int slot;
	int rc, refused;

	*regions = 0;
	*bytes = 0;
	refused = model_retry(model, true);
	rc = model_is_no_answer(refused) ? refused : 0;
	for (slot = 0; slot < model->slots && !rc; slot++) {
		if (held & BIT_ULL(slot) || !trim_slot(model, slot, &rc))
			continue;
		any = true;
		if (!rc) {
			++*regions;
			*bytes += model->region[slot].total;
		}
	}
	if (any)
		model_reopen(model);
	return rc ?: refused;
}

/**
 * model_refresh - read the capacities that may have changed
 * @model: model
 *
 * Return: 0 or an error of the device.
 */
int model_refresh(struct model *model)
{
	struct model_domain *domain = model->domain;
	int rc = 0;

	for (; domain < model->domain + model->nr_domains && !rc; domain++) {
		if (!domain->unsure)
			continue;
		rc = model_call(model, &model->capacity_error);
		if (!rc)
			model_new_capacity(model, domain - model->domain,
					   domain->device_capacity);
	}
	return rc;
}

void model_new_capacity(struct model *model, unsigned int domain, u64 capacity)
{
	model->domain[domain].capacity = capacity;
	model->domain[domain].device_capacity = capacity;
	model->domain[domain].unsure = false;
	model_reopen(model);
}

/**
 * model_reset - reset the device: all regions are lost
 * @model: model
 *
 * Return: 0; or an error of the device: then only another reset works.
 */
int model_reset(struct model *model)
{
	bool holds = model->pieces;
	unsigned int slot, d;
	int rc;

	for (slot = 0; slot < model->slots; slot++)
		model->region[slot].there = false;
	for (slot = 0; slot < MODEL_MAX_PENDING; slot++)
		holds |= model->pending[slot].stamp;
	model->generation++;
	for (d = 0; d < model->nr_domains; d++)
		model->domain[d].taken = 0;
	model->broken = false;
	if (holds)
		model_call(model, &model->quiesce_error);
	rc = model_call(model, &model->reset_error);
	model->broken = rc;
	if (rc)
		return rc;
	model->pieces = 0;
	memset(model->pending, 0, sizeof(model->pending));
	model_reopen(model);
	for (d = 0; d < model->nr_domains; d++)
		model->domain[d].unsure = true;
	return 0;
}
