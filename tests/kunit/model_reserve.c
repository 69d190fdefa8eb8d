// SPDX-License-Identifier: GPL-2.0
/* The reference model of reservations. See model.h. */

#include <linux/errno.h>

#include "model.h"

/**
 * model_is_closed - whether a reservation keeps an owner out of a region
 * @model: model
 * @slot: slot of the region
 * @owner: the owner
 *
 * Return: true if the region is reserved for others.
 */
bool model_is_closed(const struct model *model, unsigned int slot,
		     unsigned int owner)
{
	unsigned int holder = model->region[slot].reserved_for;

	return holder && !model->rules->is_below(owner, holder);
}

/**
 * model_is_reserved - whether a region is reserved for an owner
 * @model: model
 * @slot: slot of the region
 * @owner: the owner
 *
 * Return: true if the holder of the region lets the owner use it.
 */
bool model_is_reserved(const struct model *model, unsigned int slot,
		       unsigned int owner)
{
	return model->region[slot].reserved_for &&
	       !model_is_closed(model, slot, owner);
}

/**
 * model_has_regions - whether regions are reserved for an owner
 * @model: model
 * @owner: the owner
 *
 * Return: true if there is one at least.
 */
bool model_has_regions(const struct model *model, unsigned int owner)
{
	unsigned int slot;

	for (slot = 0; slot < model->slots; slot++)
		if (model->region[slot].there &&
		    model_is_reserved(model, slot, owner))
			return true;
	return false;
}

static unsigned int count_reserved(const struct model *model,
				   unsigned int holder)
{
	unsigned int slot, nr = 0;

	for (slot = 0; slot < model->slots; slot++)
		nr += model->region[slot].there &&
		      model->region[slot].reserved_for == holder;
	return nr;
}

static bool suits(const struct model *model, unsigned int slot,
		  unsigned int holder, u64 size)
{
	const struct model_region *region = &model->region[slot];

	return region->there && region->total == size &&
	       model->default_domains >> region->domain & 1 &&
	       (region->reserved_for == holder ||
		(!region->reserved_for && region->free == region->total));
}

/*
 * Reserves the regions that are reserved for the holder already, then empty
 * ones, lowest slot first, and then new ones. @mine: receives which slots have a
 * region of the reservation, also after an error. Returns 0, -ENOSPC, -EDQUOT if
 * a limit forbids a region, or an error of the device.
 */
static int reserve(struct model *model,
		   const struct model_reservation *wanted, bool *mine)
{
	unsigned int slot, nr = 0;
	int rc;

	for (slot = 0; slot < model->tensors.end && nr < wanted->count; slot++) {
		if (!suits(model, slot, wanted->holder, wanted->size) ||
		    model->region[slot].reserved_for != wanted->holder)
			continue;
		mine[slot] = true;
		nr++;
	}
	for (slot = 0; slot < model->tensors.end && nr < wanted->count; slot++) {
		if (mine[slot] ||
		    !suits(model, slot, wanted->holder, wanted->size))
			continue;
		if (model->rules->holder_is_full(model, wanted->holder))
			return -EDQUOT;
		model->region[slot].reserved_for = wanted->holder;
		mine[slot] = true;
		nr++;
	}
	for (; nr < wanted->count; nr++) {
		if (model->rules->holder_is_full(model, wanted->holder))
			return -EDQUOT;
		if (model_is_unresponsive(model))
			return -EAGAIN;
		rc = model_acquire_region(model, wanted->size);
		if (rc < 0)
			return rc;
		model->region[rc].reserved_for = wanted->holder;
		mine[rc] = true;
	}
	return 0;
}

static struct model_reservation *find(struct model *model, unsigned int holder)
{
	unsigned int i;

	for (i = 0; i < model->nr_reservations; i++)
		if (model->reservation[i].holder == holder)
			return &model->reservation[i];
	return NULL;
}

/* Reservations stay in the order in which they were made. */
static void record(struct model *model, const struct model_reservation *wanted)
{
	struct model_reservation *last, *one = find(model, wanted->holder);

	if (!one && wanted->count)
		one = &model->reservation[model->nr_reservations++];
	if (one)
		*one = *wanted;
	if (!one || wanted->count)
		return;
	for (last = &model->reservation[--model->nr_reservations]; one < last;
	     one++)
		*one = one[1];
}

/**
 * model_reserve - set the reservation of a holder
 * @model: model
 * @wanted: the reservation; a count of 0 ends it
 * @reason: receives why no region could be reserved, on -ENOMEM
 *
 * Return: 0; or an error: then no reservation has changed.
 */
int model_reserve(struct model *model, const struct model_reservation *wanted,
		  enum flexmem_reason *reason)
{
	bool before[MODEL_MAX_SLOTS], mine[MODEL_MAX_SLOTS] = {};
	struct model_region *region = model->region;
	unsigned int slot;
	int rc;

	if (model->broken)
		return -EIO;
	rc = model_wait(model) ?: model_refresh(model);
	if (rc)
		return rc;
	for (slot = 0; slot < model->slots; slot++)
		before[slot] = region[slot].there &&
			       region[slot].reserved_for == wanted->holder;
	rc = reserve(model, wanted, mine);
	for (slot = 0; slot < model->slots; slot++)
		if (rc ? mine[slot] && !before[slot] :
			 before[slot] && !mine[slot])
			region[slot].reserved_for = 0;
	if (!rc)
		record(model, wanted);
	if (rc != -EDQUOT && rc != -ENOSPC)
		return rc;
	*reason = rc == -EDQUOT ? FLEXMEM_REASON_REGION_LIMIT :
		model_exhausted(model, &model->tensors, model->default_domains,
				wanted->size) ?: FLEXMEM_REASON_CAPACITY;
	return -ENOMEM;
}

/**
 * model_restore - acquire the regions that reservations lack
 * @model: model
 */
void model_restore(struct model *model)
{
	const struct model_reservation *one = model->reservation;

	for (; one < model->reservation + model->nr_reservations; one++) {
		bool mine[MODEL_MAX_SLOTS] = {};

		if (count_reserved(model, one->holder) != one->count &&
		    !model_refresh(model))
			reserve(model, one, mine);
	}
}
