// SPDX-License-Identifier: GPL-2.0
/* Where the model places an allocation: in one block, or in several chunks. */
#include "shim/internal.h"

#include "fuzz.h"

/* A chunk of the allocation whose first chunk is @head, or NULL. */
struct fuzz_allocation *fuzz_chunk(struct fuzz *f, u64 head, unsigned int index)
{
	struct fuzz_allocation *a;

	for (a = f->allocation; a < f->allocation + f->nr; a++)
		if (a->head == head && a->index == index)
			return a;
	return NULL;
}

/* Ends an allocation. Frees all its blocks but that of chunk @kept. */
void fuzz_give_chunks(struct fuzz *f, u64 head, int kept)
{
	struct fuzz_allocation *a;
	int i;

	for (i = 0; (a = fuzz_chunk(f, head, i)); i++) {
		if (i != kept && !a->lost)
			model_free(f->model, a->slot, a->offset);
		fuzz_drop(f, a);
	}
}

/*
 * Models the scrub of a new block, which must hold no bytes of other owners, and
 * with ZEROED not even the caller's own. If the scrub fails, the call fails.
 */
int fuzz_clean(struct fuzz *f, unsigned int slot, u64 offset, bool zeroed)
{
	u64 owner = f->owner[f->who].id, dirty;
	struct model *model = f->model;
	int rc = 0;

	dirty = model_dirty(model, slot, offset, owner, zeroed);
	if (dirty && model_wait(model)) {
		model_free(model, slot, offset);
		return -ETIMEDOUT;
	}
	if (dirty)
		rc = model_call(model, &model->scrub_error);
	if (!rc) {
		model->scrubbed += dirty;
		model_mark_dirty(model, slot, offset, owner);
	} else if (rc == -EINTR || rc == -ENOMEM || rc == -ENODEV) {
		model_free(model, slot, offset);
	} else {
		model_quarantine(model, slot, offset);
	}
	return rc;
}

/* Scrubs all chunks. If a scrub fails, the allocation ends. */
static int clean_all(struct fuzz *f, const struct fuzz_allocation *new)
{
	const struct fuzz_allocation *a;
	unsigned int i;
	int rc;

	for (i = 0; i < new->chunks; i++) {
		a = fuzz_chunk(f, new->head, i);
		rc = fuzz_clean(f, a->slot, a->offset,
				a->flags & FLEXMEM_ALLOC_ZEROED);
		if (rc) {
			fuzz_give_chunks(f, new->head, i);
			return rc;
		}
	}
	return 0;
}

/* Adds a chunk to the list. @new: receives the place of the first chunk. */
static void add_chunk(struct fuzz *f, struct fuzz_allocation *new, u64 size,
		      const struct model_answer *answer)
{
	struct flexmem_region_entry region;
	struct fuzz_allocation *a = fuzz_add(f, new);

	model_region_entry(f->model, answer->slot, &region);
	f->allocs++;
	a->index = new->chunks++;
	a->head = a->index ? new->head : a->serial;
	a->size = size;
	a->slot = answer->slot;
	a->offset = answer->offset;
	a->region_id = fuzz_region_id(f, answer->slot);
	a->domain = region.domain;
	if (!a->index)
		*new = *a;
	fuzz_chunk(f, new->head, 0)->chunks = new->chunks = a->index + 1;
	fuzz_note_peak(f, f->who);
}

static int take(struct fuzz *f, const struct model_request *request,
		struct fuzz_allocation *new, struct model_answer *answer)
{
	model_alloc(f->model, request, answer);
	if (!answer->rc)
		add_chunk(f, new, request->size, answer);
	return answer->rc;
}

/* Whether a block is larger than any possible region of its domains. */
static bool is_never_charged(const struct model *model,
			     const struct model_request *request, u64 size)
{
	unsigned int first = request->domains & 1 ? 0 : 1;

	return size > model->domain[first].sizes[0] &&
	       model_is_impossible(model, request->domains, size);
}

/* Charges what does not depend on the place. @most: size of the largest chunk. */
static int charge(struct fuzz *f, const struct model_request *request, u64 most,
		  struct model_answer *answer)
{
	*answer = (struct model_answer) {};
	if (is_never_charged(f->model, request, most))
		answer->reason = FLEXMEM_REASON_REGION_SIZE;
	else
		answer->reason = fuzz_charge_handle(f, f->who) ?:
			fuzz_charge_bytes(f, f->who, request->size);
	if (!answer->reason)
		return 0;
	model_figures(f->model, request, answer);
	answer->asked = most;
	return -ENOMEM;
}

/**
 * fuzz_place - predict an allocation that lies in one block
 * @f: input
 * @request: request
 * @new: receives the first chunk
 * @answer: receives the reason and the figures of a failure
 *
 * Return: 0 or an error.
 */
int fuzz_place(struct fuzz *f, const struct model_request *request,
	       struct fuzz_allocation *new, struct model_answer *answer)
{
	return charge(f, request, request->size, answer) ?:
	       take(f, request, new, answer) ?: clean_all(f, new);
}

/* Frees the chunks that were taken before one has failed. */
static void undo(struct fuzz *f, const struct fuzz_allocation *new,
		 const struct model_request *failed,
		 struct model_answer *answer)
{
	const struct model_answer why = *answer;

	if (new->chunks)
		fuzz_give_chunks(f, new->head, -1);
	if (!why.reason)
		return;
	*answer = (struct model_answer) {
		.reason = why.reason,
		.region_reason = why.region_reason,
	};
	model_figures(f->model, failed, answer);
}

/* Predicts an allocation with a chunk in each domain, as fuzz_place() does. */
int fuzz_spread(struct fuzz *f, const struct model_request *request,
		struct fuzz_allocation *new, struct model_answer *answer)
{
	u64 part = request->size / hweight64(request->domains);
	struct model_request one = *request;
	u64 left = request->size;
	unsigned int domain;
	int rc;

	part = (part + one.alignment - 1) / one.alignment * one.alignment;
	one.growable = request->growable && part >= left;
	rc = charge(f, request, part, answer);
	for (domain = 0; left && !rc; domain++) {
		if (!(request->domains >> domain & 1))
			continue;
		one.domains = 1ULL << domain;
		one.size = min(part, left);
		rc = take(f, &one, new, answer);
		left -= one.size;
		if (rc)
			undo(f, new, &one, answer);
	}
	return rc ?: clean_all(f, new);
}
