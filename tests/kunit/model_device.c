// SPDX-License-Identifier: GPL-2.0
/* The reference model: the device, which may fail. See model.h. */

#include <linux/errno.h>
#include <linux/jiffies.h>

#include "model.h"

#define RELEASE_TRIES 4

/**
 * model_call - an operation of the device
 * @model: model
 * @error: what it is to fail with once, or 0
 *
 * Return: what it answers.
 */
int model_call(struct model *model, int *error)
{
	int rc = model->dead ? -ETIMEDOUT : *error;

	*error = 0;
	model->calls++;
	if (rc == -ETIMEDOUT) {
		model->doubt = true;
		model->probe_at = model->now + HZ;
	} else if (!rc) {
		model->doubt = false;
	}
	return rc;
}

/**
 * model_may_probe - whether a device that may be dead is asked (D28)
 * @model: model
 *
 * Return: true for one who asks, each second; and if it is not in doubt.
 */
bool model_may_probe(struct model *model)
{
	if (!model->doubt)
		return true;
	if (time_before(model->now, model->probe_at))
		return false;
	model->probe_at = model->now + HZ;
	return true;
}

bool model_is_unknown(int rc)
{
	return rc == -ETIMEDOUT || rc == -EINTR;
}

/* Undoes what was not answered: 0, or the error that this failed with. */
static int undo(struct model *model)
{
	int rc = 0;

	switch (model->lost) {
	case MODEL_LOST_NOTHING:
		return 0;
	case MODEL_LOST_ACQUIRE:
		rc = model_call(model, &model->release_error);
		break;
	case MODEL_LOST_SET:
		rc = model_call(model, &model->clear_error);
		break;
	case MODEL_LOST_CLEAR:
		rc = model_call(model, &model->slot_error);
		break;
	}
	if (!rc)
		model->lost = MODEL_LOST_NOTHING;
	return rc;
}

/**
 * model_settle - find out what became of what was not answered
 * @model: model
 *
 * Return: 0, and no region is kept out of use any more; or an error of the
 * device.
 */
int model_settle(struct model *model)
{
	int rc = undo(model);
	unsigned int slot;

	for (slot = 0; !rc && slot < model->slots; slot++) {
		model->generation += model->region[slot].retired;
		model->region[slot].retired = false;
	}
	return rc;
}

/* The device: which piece of memory it gives, or an error. */
int model_acquire(struct model *model, u64 size)
{
	int rc = model_call(model, &model->acquire_error), piece = 0;

	if (model_is_unknown(rc))
		model->lost = MODEL_LOST_ACQUIRE;
	if (rc)
		return rc;
	if (model->taken + size > model->capacity)
		return -ENOSPC;
	while (model->pieces >> piece & 1)
		piece++;
	model->pieces |= 1ULL << piece;
	model->piece_size[piece] = size;
	model->taken += size;
	return piece;
}

/* What it does not take back now it is asked to take back later. */
int model_release(struct model *model, unsigned int piece)
{
	int rc = model_call(model, &model->release_error);

	model->stranded[piece] = rc ? ++model->stamp : 0;
	model->unanswered[piece] += rc == -ETIMEDOUT;
	if (rc)
		return rc;
	model->unanswered[piece] = 0;
	model->pieces &= ~(1ULL << piece);
	model->taken -= model->piece_size[piece];
	return 0;
}

/* Whether the device cannot be asked for anything else now. */
bool model_is_no_answer(int rc)
{
	return rc == -ETIMEDOUT || rc == -EINTR || rc == -ENODEV;
}

/* What has been stranded first, up to a stamp, or -1. */
static int first_stranded(const struct model *model, u64 last)
{
	int first = -1;
	unsigned int i;

	for (i = 0; i < MODEL_MAX_SLOTS; i++)
		if (model->stranded[i] && model->stranded[i] <= last &&
		    (first < 0 || model->stranded[i] < model->stranded[first]))
			first = i;
	return first;
}

/*
 * All that is stranded, in that order. What is refused does not keep others,
 * and what is never answered is not tried for ever.
 */
int model_release_stranded(struct model *model)
{
	u64 last = model->stamp;
	bool released = false;
	int rc = 0, one, i;

	while ((i = first_stranded(model, last)) >= 0) {
		if (model_is_no_answer(rc) ||
		    model->unanswered[i] == RELEASE_TRIES) {
			model->stranded[i] = ++model->stamp;
			continue;
		}
		one = model_release(model, i);
		released |= !one;
		rc = one ?: rc;
	}
	if (released)
		model_reopen(model);
	return rc;
}

/**
 * model_is_settled - whether there is nothing to be found out unasked
 * @model: model
 *
 * Return: true if all is known, or given up.
 */
bool model_is_settled(const struct model *model)
{
	unsigned int i;

	if (model->lost)
		return false;
	for (i = 0; i < MODEL_MAX_SLOTS; i++)
		if (model->stranded[i] && model->unanswered[i] &&
		    model->unanswered[i] < RELEASE_TRIES)
			return false;
	return true;
}

/**
 * model_settle_unasked - what is not known is found out by the worker
 * @model: model
 */
void model_settle_unasked(struct model *model)
{
	if (!model->broken && !model_is_settled(model) &&
	    model_may_probe(model) && !model_settle(model))
		model_release_stranded(model);
}
