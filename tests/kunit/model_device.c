// SPDX-License-Identifier: GPL-2.0
/* The reference model of a device whose operations may fail. See model.h. */

#include <linux/errno.h>

#include "model.h"

#define RELEASE_TRIES 4

/**
 * model_call - an operation of the device
 * @model: model
 * @error: the error of the next call, or 0
 *
 * Return: 0 or the error; -EIO if the device has failed, and is not called.
 */
int model_call(struct model *model, int *error)
{
	int rc = model->dead ? -ETIMEDOUT : *error;

	if (model->broken)
		return -EIO;
	*error = 0;
	if (rc == -ETIMEDOUT)
		model->timeouts++;
	else if (!rc)
		model->timeouts = 0;
	return rc;
}

/**
 * model_is_unresponsive - whether callers wait for a probe
 * @model: model
 *
 * Return: true after two timeouts in a row.
 */
bool model_is_unresponsive(const struct model *model)
{
	return model->timeouts >= 2 && !model->broken;
}

/**
 * model_wait - let a caller that needs the device wait for a probe
 * @model: model
 *
 * Return: 0; -ETIMEDOUT if the device is unresponsive and did not answer the
 * probe either.
 */
int model_wait(struct model *model)
{
	if (model_is_unresponsive(model))
		model_settle_unasked(model);
	return model_is_unresponsive(model) ? -ETIMEDOUT : 0;
}

bool model_is_unknown(int rc)
{
	return rc == -ETIMEDOUT || rc == -EINTR;
}

static struct model_pending *add_pending(struct model *model, int piece,
					 int slot, u64 stamp)
{
	struct model_pending *pending = model->pending;

	while (pending->stamp)
		pending++;
	*pending = (struct model_pending) {
		.stamp = stamp,
		.slot = slot,
		.piece = piece,
	};
	return pending;
}

/* Returns the piece of memory that the device grants, or an error. */
int model_acquire(struct model *model, unsigned int domain, u64 size)
{
	struct model_domain *from = &model->domain[domain];
	int rc = model_call(model, &model->acquire_error), piece = 0;

	if (model_is_unknown(rc))
		add_pending(model, -1, -1, ++model->stamp);
	if (rc)
		return rc;
	if (from->taken + size > from->capacity)
		return -ENOSPC;
	while (model->pieces >> piece & 1)
		piece++;
	model->pieces |= 1ULL << piece;
	model->piece_size[piece] = size;
	model->piece_domain[piece] = domain;
	model->acquired[piece] = ++model->stamp;
	from->taken += size;
	return piece;
}

/* Keeps memory that a slot may still name, to be released later. */
void model_strand(struct model *model, unsigned int piece, int slot, u64 dirty)
{
	add_pending(model, piece, slot, model->acquired[piece])->dirty = dirty;
}

/* Carries out the pending steps: clear the slot, drain, scrub and release. */
static int undo(struct model *model, struct model_pending *pending)
{
	int rc;

	pending->tries++;
	if (pending->slot >= 0) {
		rc = model_call(model, &model->clear_error);
		if (rc)
			return rc;
		pending->slot = -1;
	}
	if (model->mode == FLEXMEM_MODE_PF) {
		rc = model_call(model, &model->drain_error);
		if (rc)
			return rc;
	}
	if (pending->dirty) {
		rc = model_call(model, &model->scrub_error);
		if (rc)
			return rc;
		model->scrubbed += pending->dirty;
		pending->dirty = 0;
	}
	rc = model_call(model, &model->release_error);
	if (rc)
		return rc;
	if (pending->piece >= 0) {
		model->pieces &= ~(1ULL << pending->piece);
		model->domain[model->piece_domain[pending->piece]].taken -=
			model->piece_size[pending->piece];
	}
	pending->stamp = 0;
	return 0;
}

/* Releases memory. If the device refuses, the model tries again later. */
int model_release(struct model *model, unsigned int piece, u64 dirty)
{
	struct model_pending *pending;

	pending = add_pending(model, piece, -1, model->acquired[piece]);
	pending->dirty = dirty;
	return undo(model, pending);
}

/* Whether the error means that no further command should be sent now. */
bool model_is_no_answer(int rc)
{
	return rc == -ETIMEDOUT || rc == -EINTR || rc == -ENODEV;
}

/*
 * Returns the oldest pending memory that was acquired after time @after. Skips
 * memory that was tried too often, unless @all.
 */
static struct model_pending *next_pending(struct model *model, u64 after,
					  bool all)
{
	struct model_pending *next = NULL, *one = model->pending;

	for (; one < model->pending + MODEL_MAX_PENDING; one++)
		if (one->stamp > after && (all || one->tries < RELEASE_TRIES) &&
		    (!next || one->stamp < next->stamp))
			next = one;
	return next;
}

/*
 * Retries the pending commands in order, until a command gets no answer. A
 * refused command does not block later ones. Without @all, skips commands that
 * have failed too often.
 */
int model_retry(struct model *model, bool all)
{
	struct model_pending *pending;
	bool released = false;
	int rc = 0, one = 0;
	u64 last = 0;

	while (!model_is_no_answer(one) &&
	       (pending = next_pending(model, last, all))) {
		last = pending->stamp;
		one = undo(model, pending);
		released |= !one;
		rc = model_is_no_answer(one) ? one : rc ?: one;
	}
	if (released)
		model_reopen(model);
	return rc;
}

/* Returns false if memory that waits for its release may be in the slot. */
bool model_slot_is_known(const struct model *model, unsigned int slot)
{
	unsigned int i;

	for (i = 0; i < MODEL_MAX_PENDING; i++)
		if (model->pending[i].stamp && model->pending[i].slot == slot)
			return false;
	return true;
}

/**
 * model_is_settled - whether no command is left to retry
 * @model: model
 *
 * Return: true if nothing is pending, or everything pending was tried too
 * often.
 */
bool model_is_settled(const struct model *model)
{
	unsigned int i;

	for (i = 0; i < MODEL_MAX_PENDING; i++)
		if (model->pending[i].stamp &&
		    model->pending[i].tries < RELEASE_TRIES)
			return false;
	return true;
}

/**
 * model_settle_unasked - let the worker probe, retry pending commands, and
 * acquire what reservations lack
 * @model: model
 */
void model_settle_unasked(struct model *model)
{
	if (model_is_unresponsive(model))
		model_call(model, &model->capacity_error);
	if (!model->broken && !model_is_unresponsive(model))
		model_retry(model, false);
	if (!model->broken && !model_is_unresponsive(model))
		model_restore(model);
}
