// SPDX-License-Identifier: GPL-2.0
/*
 * The test's own record of a run: random numbers, live allocations, and which
 * bytes streams may still use. It needs no model.
 */
#include <stdarg.h>

#include "cache_run.h"

uint64_t run_next(struct run *run)
{
	/* The generator is splitmix64. */
	uint64_t z = run->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint64_t run_below(struct run *run, uint64_t limit)
{
	return run_next(run) % limit;
}

bool run_one_in(struct run *run, uint64_t chances)
{
	return !run_below(run, chances);
}

void run_say(struct run *run, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(run->what, sizeof(run->what), format, arguments);
	va_end(arguments);
}

/* The checks below need no model. */

static bool still_used(const struct run *run, const struct pending *pending)
{
	if (run->real.device_waits != pending->device_waits)
		return false;
	return pending->number >= run->real.done[pending->stream];
}

/*
 * Whether the bytes that a freed and a new slot have in common went back to the
 * provider in between. Then the provider is to see to it that no work uses them.
 */
static bool was_returned(const struct run *run, const struct pending *pending,
			 const struct slot *made)
{
	uint64_t from = pending->start > made->address ? pending->start :
							 made->address;
	const struct world *world = &run->real;
	uint64_t i = pending->shrinks;

	if (world->shrinks > WORLD_SHRINKS + i)
		i = world->shrinks - WORLD_SHRINKS;
	for (; i < world->shrinks; i++) {
		if (world->shrunk_from[i % WORLD_SHRINKS] <= from &&
		    world->shrunk_to[i % WORLD_SHRINKS] > from)
			return true;
	}
	return false;
}

static void check_properties(struct run *run, struct slot *made,
			     uint64_t pool)
{
	const struct world_piece *piece = world_find(&run->real, made->address);
	uint64_t end = made->address + made->size;
	const struct pending *pending;
	struct owner *owner;
	size_t i;

	check_true(run, "inside of one segment of the provider", piece &&
		   end <= piece->start + piece->size);
	check_true(run, "alignment", made->address %
		   run->model.profile.granule == 0);
	for (i = 0; i < SLOTS; i++) {
		if (&run->slots[i] == made || !run->slots[i].token)
			continue;
		check_true(run, "live buffers do not overlap",
			   run->slots[i].address >= end ||
			   run->slots[i].address + run->slots[i].size <=
			   made->address);
	}
	assert_true(piece->birth < BIRTHS);
	owner = &run->owners[piece->birth];
	if (owner->known) {
		if (!run->setup->growing)
			check_number(run, "the segment's stream", made->stream,
				     owner->stream);
		check_number(run, "the segment's pool", pool, owner->pool);
	}
	else
		*owner = (struct owner){
			true, made->stream, pool,
			!pool && run->setup->growing &&
			run->setup->reuse != MODEL_REUSE_OWN,
		};
	made->birth = piece->birth;
	if (made->stream != owner->stream && !owner->shared)
		made->users |= 1u << made->stream;
	for (i = 0; i < run->pending_count; i++) {
		pending = &run->pending[i];
		if (pending->start < end && pending->end > made->address &&
		    !was_returned(run, pending, made) && !(pending->own &&
		      (pending->stream == made->stream ||
		       pending->birth != piece->birth ||
		       run->real.clock[made->stream][pending->stream] >
		       pending->number)))
			check_true(run, "no other stream uses it any more",
				   !still_used(run, pending));
	}
}

/*
 * Called when the list is full: drops half of the entries whose bytes only the
 * freeing stream may reuse.
 */
static void forget_pending(struct run *run)
{
	size_t kept = 0;
	size_t i;

	for (i = 0; i < run->pending_count; i++) {
		if (!run->pending[i].own || i > PENDING / 2)
			run->pending[kept++] = run->pending[i];
	}
	run->pending_count = kept;
	assert_true(kept < PENDING);
}

/*
 * Called when a slot is freed. Returns the number of an event of @stream. Until
 * this event has happened, the stream may use the bytes of the slot. @before,
 * @recorded: numbers of events before and after the free.
 */
static uint64_t last_use(const struct run *run, uint64_t stream, bool own,
			 const uint64_t *before, const uint64_t *recorded)
{
	if (own)
		return before[stream];
	/*
	 * No event was recorded: the stream may use the bytes until the device
	 * is synchronized.
	 */
	if (run->model.captures || run->real.refuse_record == stream)
		return WORLD_NEVER;
	return recorded[stream] - 1;
}

/*
 * Whether a stream may still use the bytes of a slot that was freed. Sets @own
 * if later allocations of the stream may have the bytes at once.
 */
static bool is_user(const struct run *run, const struct slot *slot,
		    uint64_t stream, bool *own)
{
	const struct owner *owner = &run->owners[slot->birth];
	bool uses = slot->users & 1u << stream;

	/*
	 * A block in another stream's segment waits for one more event. After
	 * that the segment's own stream may have the block.
	 */
	*own = uses && !owner->shared ? stream == owner->stream :
					stream == slot->stream;
	return uses || *own;
}

void run_note_pending(struct run *run, const struct slot *slot,
		      const uint64_t *before, const uint64_t *recorded)
{
	uint64_t stream;
	size_t kept = 0;
	bool own;
	size_t i;

	for (i = 0; i < run->pending_count; i++) {
		if (still_used(run, &run->pending[i]))
			run->pending[kept++] = run->pending[i];
	}
	run->pending_count = kept;
	for (stream = 0; stream < WORLD_STREAMS; stream++) {
		if (!run->setup->events || !is_user(run, slot, stream, &own))
			continue;
		if (run->pending_count == PENDING)
			forget_pending(run);
		run->pending[run->pending_count++] = (struct pending){
			.own = own,
			.deferred = !own && run->model.captures,
			.birth = slot->birth,
			.start = slot->address,
			.end = slot->address + slot->size,
			.stream = stream,
			.number = last_use(run, stream, own, before, recorded),
			.device_waits = run->real.device_waits,
			.shrinks = run->real.shrinks,
		};
	}
}

void run_end_captures(struct run *run, const uint64_t *recorded)
{
	uint64_t next[WORLD_STREAMS];
	struct pending *pending;
	size_t i;

	memcpy(next, recorded, sizeof(next));
	/*
	 * After a capture the cache records the events of the deferred frees,
	 * the latest free first.
	 */
	for (i = run->pending_count; i--;) {
		pending = &run->pending[i];
		if (pending->deferred &&
		    run->real.refuse_record != pending->stream)
			pending->number = next[pending->stream]++;
		pending->deferred = false;
	}
}

/* ---- the operations ---- */

size_t run_free_slot(const struct run *run)
{
	size_t i = 0;

	while (i < SLOTS && run->slots[i].token)
		i++;
	return i;
}

size_t run_live_slot(struct run *run)
{
	size_t start = run_below(run, SLOTS);
	size_t i;

	for (i = 0; i < SLOTS; i++) {
		if (run->slots[(start + i) % SLOTS].token)
			return (start + i) % SLOTS;
	}
	return SLOTS;
}

void run_keep(struct run *run, size_t slot,
	      const struct flexmem_cache_allocation *made)
{
	run->slots[slot] = (struct slot){
		.token = made->token,
		.address = made->address.offset,
		.size = made->size,
		.stream = made->stream,
		.pool = made->pool,
	};
	check_properties(run, &run->slots[slot], made->pool);
}

void run_free(struct run *run, size_t slot)
{
	uint64_t before[WORLD_STREAMS];
	struct flexmem_cache_statistics f;

	memcpy(before, run->real.recorded, sizeof(before));
	assert_int_equal(flexmem_cache_free(run->cache,
					    run->slots[slot].token), 0);
	/*
	 * The model knows nothing of what streams keep (kept.c). Whoever reads
	 * the figures takes it back.
	 */
	assert_int_equal(flexmem_cache_statistics(run->cache, &f, sizeof(f)),
			 0);
	run_note_pending(run, &run->slots[slot], before, run->real.recorded);
	run->slots[slot].last_token = run->slots[slot].token;
	run->slots[slot].token = NULL;
}

