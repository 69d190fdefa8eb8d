// SPDX-License-Identifier: GPL-2.0
/* Random operations on private pools, on the cache and on its model. */
#include "cache_run.h"

static void check_result(const struct run *run, int found, int expected)
{
	check_number(run, "the result", (uint64_t)-found, (uint64_t)-expected);
}

static void create(struct run *run, size_t at)
{
	struct flexmem_cache_provider provider = world_own_provider;
	bool own = run_one_in(run, 3);
	uint64_t expected;

	if (run->model.last_pool + 1 == MODEL_POOLS)
		return;
	provider.user = &run->real;
	run_say(run, "create a pool%s", own ? " on a provider" : "");
	model_pool_create(&run->model, own, &expected);
	assert_int_equal(flexmem_cache_pool_create_on(run->cache, own ?
						      &provider : NULL,
						      sizeof(provider),
						      &run->pools[at]), 0);
	check_number(run, "the pool", run->pools[at], expected);
}

static void hold(struct run *run, uint64_t pool)
{
	run_say(run, "hold pool %llu", (unsigned long long)pool);
	check_result(run, flexmem_cache_pool_hold(run->cache, pool),
		     model_pool_hold(&run->model, pool));
}

static void release(struct run *run, size_t at)
{
	uint64_t pool = run->pools[at];

	run_say(run, "release pool %llu", (unsigned long long)pool);
	check_result(run, flexmem_cache_pool_release(run->cache, pool),
		     model_pool_release(&run->model, pool));
	/* Sometimes keeps the number, so that later calls name a bad pool. */
	if (!model_pool_is_open(&run->model, pool) && !run_one_in(run, 4))
		run->pools[at] = 0;
}

static void set_flags(struct run *run, uint64_t pool)
{
	uint32_t flags = (uint32_t)run_below(run, 4);

	run_say(run, "flags %u for pool %llu", flags, (unsigned long long)pool);
	check_result(run, flexmem_cache_pool_set_flags(run->cache, pool, flags),
		     model_pool_set_flags(&run->model, pool, flags));
}

static int accepts(void *user, uint64_t stream)
{
	return *(unsigned int *)user >> stream & 1;
}

static void begin(struct run *run, size_t at)
{
	uint64_t pool = run->pools[at];
	int err;

	/*
	 * An earlier pool with index @at still uses filters[at], so the filter
	 * must not change.
	 */
	if (run->begun[at] && run->begun[at] != pool)
		return;
	if (!run->begun[at])
		run->filters[at] = (unsigned int)
			run_below(run, 1u << WORLD_STREAMS);
	run_say(run, "pool %llu begins for streams %#x", (unsigned long long)pool,
		run->filters[at]);
	err = model_pool_begin(&run->model, pool, run->filters[at]);
	check_result(run, flexmem_cache_pool_begin(run->cache, pool, accepts,
						   &run->filters[at]), err);
	if (err)
		return;
	run->begun[at] = pool;
}

static void capture(struct run *run, size_t at)
{
	uint64_t pool = run->begun[at] ? run->begun[at] : run->pools[at];

	run_say(run, "pool %llu captures", (unsigned long long)pool);
	check_result(run, flexmem_cache_pool_capture(run->cache, pool),
		     model_pool_capture(&run->model, pool));
}

static void end(struct run *run, size_t at)
{
	uint64_t pool = run->begun[at] ? run->begun[at] : run->pools[at];
	size_t captures = run->model.captures;
	uint64_t recorded[WORLD_STREAMS];
	int err;

	run_say(run, "pool %llu ends", (unsigned long long)pool);
	memcpy(recorded, run->real.recorded, sizeof(recorded));
	err = model_pool_end(&run->model, pool);
	check_result(run, flexmem_cache_pool_end(run->cache, pool), err);
	if (err)
		return;
	run->begun[at] = 0;
	if (captures && !run->model.captures)
		run_end_captures(run, recorded);
}

static void empty(struct run *run, uint64_t pool)
{
	uint64_t expected = 0;
	uint64_t found = 0;
	int err;

	run_say(run, "empty pool %llu", (unsigned long long)pool);
	err = model_pool_empty(&run->model, pool, &expected);
	check_result(run, flexmem_cache_pool_empty(run->cache, pool, &found),
		     err);
	check_number(run, "what went back", found, expected);
}

static void compare_usage(struct run *run, uint64_t pool)
{
	struct flexmem_cache_usage expected = { 0 };
	struct flexmem_cache_usage found = { 0 };
	uint64_t stream = run_below(run, WORLD_STREAMS);
	const uint64_t *only = run_one_in(run, 2) ? &stream : NULL;

	run_say(run, "usage of pool %llu, stream %lld",
		(unsigned long long)pool, only ? (long long)stream : -1);
	check_result(run, flexmem_cache_pool_usage(run->cache, pool, only,
						   &found, sizeof(found)),
		     model_pool_usage(&run->model, pool, only, &expected));
	check_number(run, "uses", found.uses, expected.uses);
	check_number(run, "segments", found.segments, expected.segments);
	check_number(run, "reserved_bytes", found.reserved_bytes,
		     expected.reserved_bytes);
	check_number(run, "allocations", found.allocations,
		     expected.allocations);
	check_number(run, "allocated_bytes", found.allocated_bytes,
		     expected.allocated_bytes);
	check_number(run, "requested_bytes", found.requested_bytes,
		     expected.requested_bytes);
	check_number(run, "active_bytes", found.active_bytes,
		     expected.active_bytes);
}

static void checkpoint(struct run *run, uint64_t pool)
{
	struct flexmem_cache_checkpoint *made = NULL;
	int err;

	run_say(run, "checkpoint of pool %llu", (unsigned long long)pool);
	err = flexmem_cache_pool_checkpoint(run->cache, pool, &made);
	check_result(run, err, model_pool_checkpoint(&run->model, pool,
						     &run->expected));
	if (err)
		return;
	flexmem_cache_checkpoint_free(run->checkpoint);
	run->checkpoint = made;
}

static const struct run *sorted_run;

/* Live slots are freed in the order of the numbers in their tokens. */
static int by_token(const void *a, const void *b)
{
	uintptr_t first =
		(uintptr_t)sorted_run->slots[*(const size_t *)a].token;
	uintptr_t second =
		(uintptr_t)sorted_run->slots[*(const size_t *)b].token;
	uint32_t shift = 32;
	uint32_t mask = (UINT32_C(1) << 22) - 1;

	return (int)(first >> shift & mask) - (int)(second >> shift & mask);
}

/*
 * Puts the live slots first, in the order in which a restore frees them.
 * Returns the number of live slots.
 */
static size_t order_slots(const struct run *run, size_t *order)
{
	size_t count = 0;
	size_t others = 0;
	size_t i;

	for (i = 0; i < SLOTS; i++) {
		if (run->slots[i].token)
			order[count++] = i;
	}
	for (i = 0; i < SLOTS; i++) {
		if (!run->slots[i].token)
			order[count + others++] = i;
	}
	sorted_run = run;
	qsort(order, count, sizeof(*order), by_token);
	return count;
}

/* Notes that a restore has freed a slot and recorded events for its uses. */
static void lose_slot(struct run *run, struct slot *slot, uint64_t *recorded)
{
	uint64_t stream;

	for (stream = 0; stream < WORLD_STREAMS; stream++) {
		if (slot->users & 1u << stream && !run->model.captures &&
		    stream != run->owners[slot->birth].stream &&
		    run->real.refuse_record != stream)
			recorded[stream]++;
	}
	run_note_pending(run, slot, recorded, recorded);
	slot->last_token = slot->token;
	slot->token = NULL;
}

/*
 * Compares an allocation of the checkpoint with the model's. If the slot of the
 * allocation has no token yet, fills the slot.
 */
static void compare_entry(struct run *run, size_t index)
{
	const struct model_entry *entry = &run->expected.entries[index];
	struct slot *slot = &run->slots[entry->id];
	struct flexmem_cache_allocation found;
	void *token;

	token = flexmem_cache_checkpoint_token(run->checkpoint, index);
	assert_int_equal(flexmem_cache_lookup(run->cache, token, &found,
					      sizeof(found), NULL), 0);
	check_number(run, "its handle", found.handle, entry->handle);
	check_number(run, "its offset", found.offset, entry->offset);
	check_number(run, "its size", found.size, entry->size);
	check_number(run, "its requested size", found.requested,
		     entry->requested);
	check_number(run, "its pool", found.pool, run->expected.pool);
	check_true(run, "its tag", !strcmp(found.tag, entry->tag ?
					   run_tags[entry->tag] : ""));
	if (slot->token)
		check_number(run, "its token", (uintptr_t)token,
			     (uintptr_t)slot->token);
	else
		run_keep(run, entry->id, &found);
}

static void restore(struct run *run)
{
	struct model_checkpoint *expected = &run->expected;
	size_t order[SLOTS];
	size_t count = order_slots(run, order);
	uint64_t recorded[WORLD_STREAMS];
	size_t i;
	int err;

	if (!run->checkpoint || count + expected->count > SLOTS)
		return;
	run_say(run, "restore pool %llu", (unsigned long long)expected->pool);
	memcpy(recorded, run->real.recorded, sizeof(recorded));
	err = model_pool_restore(&run->model, expected, order, count,
				 order + count);
	check_result(run, flexmem_cache_pool_restore(run->cache,
						     run->checkpoint), err);
	if (err)
		return;
	for (i = 0; i < count; i++) {
		if (!model_find_live(&run->model, order[i]).segment)
			lose_slot(run, &run->slots[order[i]], recorded);
	}
	for (i = 0; i < expected->count; i++)
		compare_entry(run, i);
	assert_null(flexmem_cache_checkpoint_token(run->checkpoint, i));
}

void run_pool(struct run *run)
{
	size_t at = 1 + run_below(run, 2);
	uint64_t pool = run->pools[at];

	if (!pool) {
		create(run, at);
		return;
	}
	switch (run_below(run, 22)) {
	case 0:
		hold(run, pool);
		break;
	case 1:
	case 2:
	case 3:
		release(run, at);
		break;
	case 4:
	case 5:
		set_flags(run, pool);
		break;
	case 6:
	case 7:
		begin(run, at);
		break;
	case 8:
	case 9:
	case 10:
		end(run, at);
		break;
	case 11:
		empty(run, pool);
		break;
	case 12:
	case 13:
		compare_usage(run, run_one_in(run, 3) ? 0 : pool);
		break;
	case 14:
	case 15:
		checkpoint(run, pool);
		break;
	case 16:
	case 17:
		capture(run, at);
		break;
	default:
		restore(run);
	}
}
