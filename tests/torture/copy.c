// SPDX-License-Identifier: GPL-2.0
/* COPY: the device copies from one allocation to another. */
#include "torture.h"

static bool is_usable(const struct object *o)
{
	return !o->freed && !o->lost && o->size <= BUFFER_SIZE;
}

/*
 * Picks an allocation, preferably one that was written. Few are, and without
 * that preference a run of 3,000 operations often makes no copy.
 */
static struct object *pick_source(struct thread *t)
{
	struct object *o = object_pick(t);
	unsigned int i, at;

	if (!o || o->written)
		return o;
	at = o - t->object;
	for (i = 1; i < t->nr_objects; i++) {
		o = &t->object[(at + i) % t->nr_objects];
		if (o->written && is_usable(o) && !atomic_load(&o->file->gone))
			return o;
	}
	return NULL;
}

/*
 * Picks an allocation of the same file that is no longer than @from, so that it
 * can hold the first bytes of @from.
 */
static struct object *pick_target(struct thread *t, const struct object *from)
{
	unsigned int i, at = rng_below(&t->rng, t->nr_objects);
	struct object *o;

	for (i = 0; i < t->nr_objects; i++) {
		o = &t->object[(at + i) % t->nr_objects];
		if (o != from && o->file == from->file && is_usable(o) &&
		    o->size <= from->size)
			return o;
	}
	return NULL;
}

/*
 * Checks after a copy that @to has the bytes of the source. From then on @to
 * counts as not written.
 */
static void verify_copy(struct thread *t, struct object *to, uint32_t nonce)
{
	uint32_t own = to->nonce;

	to->nonce = nonce;
	to->written = true;
	object_verify(t, to);
	to->nonce = own;
	to->written = false;
}

bool op_copy(struct thread *t)
{
	struct object *from = pick_source(t), *to;
	struct flexmem_copy copy;
	int error;

	if (!from || !from->written || !is_usable(from))
		return false;
	to = pick_target(t, from);
	if (!to)
		return false;
	copy = CMD(copy, .to = to->handle, .from = from->handle,
		   .length = to->size);
	to->written = false;
	error = call(to->file, "COPY", FLEXMEM_IOCTL_COPY, &copy, MAY_FIRMWARE);
	if (error) {
		if (error == EIO) {
			object_lost(to);
			object_lost(from);
		}
		return false;
	}
	if (copy.out_done != to->size)
		fail("COPY: %llu of %llu bytes, and success",
		     (unsigned long long)copy.out_done,
		     (unsigned long long)to->size);
	verify_copy(t, to, from->nonce);
	return true;
}
