// SPDX-License-Identifier: GPL-2.0
/*
 * The cache against its model: the same random operations on both, each with a
 * simulated provider and streams of its own (a world). After each operation all
 * visible state is compared. To repeat a run: CACHE_SEED=N, with the printed N.
 * CACHE_OPERATIONS sets the number of operations.
 */
#include <time.h>

#include "cache_run.h"

#define OPERATIONS 3000
#define CAPACITY (208 * MIB)
/*
 * Comparing all blocks is slow, so the test does it only after each eighth
 * operation.
 */
#define SNAPSHOT_EVERY 8
/* How often the history is switched on or off, and its length. */
#define HISTORY_EVERY 200
#define HISTORY_EVENTS 300

static uint64_t seed;
static unsigned long operations = OPERATIONS;

/* Some sizes occur again and again, as a neural network's layers do. */
static uint64_t random_size(struct run *run)
{
	static const uint64_t again[] = {
		1, 128, 500, 4096, 40000, 65536, 65537, 300000, MIB, MIB + 1,
		2 * MIB, 5 * MIB, 8 * MIB, 9 * MIB, 10 * MIB, 12 * MIB, 20 * MIB,
		24 * MIB, 30 * MIB,
	};

	switch (run_below(run, 12)) {
	case 0:
	case 1:
		return run_below(run, 4 * KIB) + 1;
	case 2:
		return run_below(run, 64 * KIB) + 1;
	case 3:
		return run_below(run, 2 * MIB) + 1;
	case 4:
		return run_below(run, 12 * MIB) + 1;
	case 5:
		return run_one_in(run, 4) ? run_below(run, 60 * MIB) + 1 : MIB;
	case 6:
		if (!run_one_in(run, 20))
			return 20 * MIB;
		return run_one_in(run, 2) ? CAPACITY + 1 : UINT64_MAX -
			run_below(run, 3);
	case 7:
		return run_one_in(run, 10) ? 0 : 700;
	default:
		return again[run_below(run, sizeof(again) / sizeof(again[0]))];
	}
}

static struct model_request random_request(struct run *run)
{
	struct model_request request = {
		.bytes = random_size(run),
		/* Half of all requests are on one stream. */
		.stream = run_one_in(run, 2) ? 0 : run_below(run, WORLD_STREAMS),
		.simple = true,
	};

	if (run_one_in(run, 3)) {
		request.simple = false;
		request.pool = run->pools[run_below(run, 3)];
		/*
		 * Sometimes names a pool that was released, or does not exist
		 * yet.
		 */
		if (run_one_in(run, 40))
			request.pool = run_below(run, run->model.last_pool + 1) + 1;
		request.tag = run_below(run, MODEL_TAGS);
	}
	return request;
}

static int real_alloc(struct run *run, const struct model_request *request,
		      struct flexmem_cache_allocation *made)
{
	struct flexmem_cache_request full = {
		.bytes = request->bytes,
		.stream = request->stream,
		.pool = request->pool,
		.tag = run_tags[request->tag],
	};
	void *token = NULL;
	int err;

	memset(made, 0, sizeof(*made));
	if (!request->simple)
		return flexmem_cache_alloc_request(run->cache, &full,
						   sizeof(full), made,
						   sizeof(*made));
	err = flexmem_cache_alloc(run->cache, request->bytes, request->stream,
				  &token);
	if (!err && token)
		err = flexmem_cache_lookup(run->cache, token, made,
					   sizeof(*made), NULL);
	return err;
}

static void compare_made(const struct run *run,
			 const struct model_request *request,
			 const struct flexmem_cache_allocation *made,
			 const struct model_result *expected)
{
	check_number(run, "its offset", made->address.offset,
		     expected->address);
	check_number(run, "its region", made->address.region_id, 5);
	check_number(run, "its size", made->size, expected->size);
	check_number(run, "its requested size", made->requested,
		     request->bytes);
	check_number(run, "its stream", made->stream, request->stream);
	check_number(run, "its pool", made->pool, expected->pool);
	check_true(run, "its tag", !strcmp(made->tag, request->tag ?
					   run_tags[request->tag] : ""));
	check_true(run, "large enough", made->size >= request->bytes);
}

static void do_alloc(struct run *run)
{
	struct model_request request = random_request(run);
	size_t slot = run_free_slot(run);
	struct flexmem_cache_allocation made;
	struct model_result expected;
	int expected_error;
	int err;

	if (slot == SLOTS)
		return;
	run_say(run, "alloc %llu on %llu, pool %llu, tag %zu%s",
	    (unsigned long long)request.bytes,
	    (unsigned long long)request.stream,
	    (unsigned long long)request.pool, request.tag,
	    request.simple ? ", simple" : "");
	expected_error = model_alloc(&run->model, &request, slot, &expected);
	err = real_alloc(run, &request, &made);
	check_number(run, "the result", (uint64_t)-err,
		     (uint64_t)-expected_error);
	if (err && !request.simple)
		compare_failures(run, &request, &made.failure, &expected);
	if (err || !request.bytes) {
		check_number(run, "a token", (uintptr_t)made.token, 0);
		return;
	}
	compare_made(run, &request, &made, &expected);
	run_keep(run, slot, &made);
}

static void do_free(struct run *run)
{
	size_t slot = run_live_slot(run);

	if (slot == SLOTS)
		return;
	run_say(run, "free %zu: %llu bytes at %#llx", slot,
	    (unsigned long long)run->slots[slot].size,
	    (unsigned long long)run->slots[slot].address);
	check_number(run, "the model's result",
		     (uint64_t)-model_free(&run->model, slot), 0);
	run_free(run, slot);
}

/*
 * Frees a token that was freed, points inside an allocation, or never existed.
 */
static void do_bad_free(struct run *run)
{
	size_t slot = run_below(run, SLOTS);
	const struct slot *at = &run->slots[slot];
	void *token = at->last_token;
	int err;

	if (at->token)
		token = (char *)at->token + 1 + run_below(run, at->size);
	else if (!token || run_one_in(run, 4))
		token = (void *)(uintptr_t)(run_next(run) >> 20);
	run_say(run, "free of %p, which is nothing", token);
	err = flexmem_cache_free(run->cache, token);
	check_number(run, "the result", (uint64_t)-err, token ? EINVAL : 0);
	err = flexmem_cache_record_stream(run->cache, token, 1);
	check_number(run, "record_stream", (uint64_t)-err, token ? EINVAL : 0);
}

static void do_record_stream(struct run *run)
{
	uint64_t stream = run_below(run, WORLD_STREAMS);
	size_t slot = run_live_slot(run);

	if (slot == SLOTS)
		return;
	run_say(run, "record stream %llu for %zu", (unsigned long long)stream,
	    slot);
	model_record_stream(&run->model, slot, stream);
	assert_int_equal(flexmem_cache_record_stream(run->cache,
						     run->slots[slot].token,
						     stream), 0);
	if (stream != run->slots[slot].stream)
		run->slots[slot].users |= 1u << stream;
}

static void do_progress(struct run *run)
{
	uint64_t stream = run_below(run, WORLD_STREAMS);
	uint64_t count = run_below(run, 6) + 1;

	run_say(run, "%llu events on stream %llu happen",
	    (unsigned long long)count, (unsigned long long)stream);
	world_progress(&run->imagined, stream, count);
	world_progress(&run->real, stream, count);
}

static void do_lookup(struct run *run)
{
	size_t slot = run_live_slot(run);
	struct flexmem_cache_allocation found;
	uint64_t offset;
	uint64_t at;

	if (slot == SLOTS)
		return;
	at = run_below(run, run->slots[slot].size);
	run_say(run, "look up byte %llu of %zu", (unsigned long long)at, slot);
	assert_int_equal(flexmem_cache_lookup(run->cache, (char *)
					      run->slots[slot].token + at,
					      &found, sizeof(found), &offset),
			 0);
	check_number(run, "the offset", offset, at);
	check_number(run, "the address", found.address.offset,
		     run->slots[slot].address);
	check_number(run, "the token", (uintptr_t)found.token,
		     (uintptr_t)run->slots[slot].token);
}

static void do_empty(struct run *run)
{
	uint64_t bytes = run_below(run, 64 * MIB);
	bool all = run_one_in(run, 2);
	uint64_t expected = 0;
	uint64_t found = 0;
	int expected_error;
	int err;

	run_say(run, all ? "empty" : "relieve %llu", (unsigned long long)bytes);
	if (all) {
		expected_error = model_empty(&run->model, &expected);
		err = flexmem_cache_empty(run->cache, &found);
	} else {
		expected_error = model_trim(&run->model, bytes, &expected);
		err = flexmem_cache_trim(run->cache, bytes, &found);
	}
	check_number(run, "the result", (uint64_t)-err,
		     (uint64_t)-expected_error);
	check_number(run, "what went back", found, expected);
}

/*
 * Resets the device. The test tells the cache, or the cache finds out by
 * itself.
 */
static void do_lose(struct run *run)
{
	uint64_t expected = 0;
	uint64_t found = 0;
	int expected_error;
	int err;

	run_say(run, "lose everything");
	world_lose(&run->imagined);
	world_lose(&run->real);
	if (run_one_in(run, 2))
		return;
	expected_error = model_drop_lost(&run->model, &expected);
	err = flexmem_cache_drop_lost(run->cache, &found);
	check_number(run, "the result", (uint64_t)-err,
		     (uint64_t)-expected_error);
	if (!err)
		check_number(run, "what lives", found, expected);
}

static void do_reset(struct run *run)
{
	if (run_one_in(run, 2)) {
		run_say(run, "reset peaks");
		model_reset_peaks(&run->model);
		assert_int_equal(flexmem_cache_reset_peaks(run->cache), 0);
	} else {
		run_say(run, "reset accumulated");
		model_reset_accumulated(&run->model);
		assert_int_equal(flexmem_cache_reset_accumulated(run->cache),
				 0);
	}
}

/* Plans a fault for the next operation. */
static void break_world(struct run *run, struct world *world)
{
	switch (run_below(run, 8)) {
	case 0:
		world->refuse_frees = true;
		break;
	case 1:
		world->refuse_record = run_below(run, WORLD_STREAMS);
		world->refuse_stream_wait = run_below(run, WORLD_STREAMS);
		break;
	case 2:
		world->refuse_wait = run_below(run, WORLD_STREAMS);
		break;
	case 3:
		world->refuse_device_wait = true;
		break;
	case 4:
		world->grow_error = run_one_in(run, 2) ? -EAGAIN : -EIO;
		break;
	case 5:
		world->alloc_error = -EIO;
		world->refuse_allocs = 1 + run_below(run, 3);
		break;
	default:
		world->alloc_error = -ENOMEM;
		world->refuse_allocs = 1 + run_below(run, 4);
		break;
	}
}

static void copy_breakage(struct world *to, const struct world *from)
{
	to->refuse_allocs = from->refuse_allocs;
	to->alloc_error = from->alloc_error;
	to->grow_error = from->grow_error;
	to->refuse_frees = from->refuse_frees;
	to->refuse_record = from->refuse_record;
	to->refuse_wait = from->refuse_wait;
	to->refuse_stream_wait = from->refuse_stream_wait;
	to->refuse_device_wait = from->refuse_device_wait;
}

/*
 * Callback of a framework that should free memory: it frees two buffers and
 * allocates one. This is the model's callback, which runs before the cache's.
 */
static void model_callback(void *user)
{
	struct run *run = user;
	struct model_result made;
	size_t i;

	for (i = 0; i < 2; i++) {
		if (run->victims[i] < SLOTS)
			model_free(&run->model, run->victims[i]);
	}
	if (run->callback_slot == SLOTS)
		return;
	run->callback_error[0] = model_alloc(&run->model,
					     &run->callback_request,
					     run->callback_slot, &made);
	run->callback_address[0] = made.address;
}

static void real_callback(void *user, uint64_t bytes)
{
	struct run *run = user;
	struct flexmem_cache_allocation made;
	size_t i;

	check_true(run, "bytes are missing", bytes > 0);
	for (i = 0; i < 2; i++) {
		if (run->victims[i] < SLOTS)
			run_free(run, run->victims[i]);
		run->victims[i] = SLOTS;
	}
	if (run->callback_slot == SLOTS)
		return;
	run->callback_error[1] = real_alloc(run, &run->callback_request,
					    &made);
	run->callback_address[1] = made.address.offset;
	check_number(run, "the result in the callback",
		     (uint64_t)-run->callback_error[1],
		     (uint64_t)-run->callback_error[0]);
	check_number(run, "the address in the callback",
		     run->callback_address[1], run->callback_address[0]);
	if (!run->callback_error[1])
		run_keep(run, run->callback_slot, &made);
	run->callback_slot = SLOTS;
}

/*
 * Draws which slots the callback frees, and what it allocates. Leaves the first
 * free slot to the next allocation.
 */
static void prepare_callback(struct run *run)
{
	size_t slot = run_free_slot(run);

	run->victims[0] = run_one_in(run, 2) ? run_live_slot(run) : SLOTS;
	run->victims[1] = run_one_in(run, 4) ? run_live_slot(run) : SLOTS;
	if (run->victims[1] == run->victims[0])
		run->victims[1] = SLOTS;
	run->callback_request = (struct model_request){
		.bytes = run_below(run, 4 * MIB) + 1,
		.stream = run_below(run, WORLD_STREAMS),
		.simple = true,
	};
	do
		slot++;
	while (slot < SLOTS && run->slots[slot].token);
	run->callback_slot = slot < SLOTS && run_one_in(run, 2) ? slot : SLOTS;
}

static void one_operation(struct run *run)
{
	uint64_t choice = run_below(run, 100);

	if (run_one_in(run, 12)) {
		break_world(run, &run->imagined);
		copy_breakage(&run->real, &run->imagined);
	}
	prepare_callback(run);
	if (choice < 44)
		do_alloc(run);
	else if (choice < 76)
		do_free(run);
	else if (choice < 82)
		do_record_stream(run);
	else if (choice < 87)
		do_progress(run);
	else if (choice < 90)
		do_empty(run);
	else if (choice < 96)
		run_pool(run);
	else if (choice < 97)
		do_bad_free(run);
	else if (choice < 98)
		do_reset(run);
	else if (choice < 99 || !run_one_in(run, 4))
		do_lookup(run);
	else
		do_lose(run);
	world_heal(&run->imagined);
	world_heal(&run->real);
}

static struct flexmem_cache *create(struct run *run)
{
	struct flexmem_cache_provider provider = world_provider;
	struct flexmem_cache_events events = world_events;
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.profile = &run->setup->profile,
		.profile_size = sizeof(run->setup->profile),
		.configuration = run->setup->configuration,
	};
	struct flexmem_cache *cache = NULL;

	provider.user = &run->real;
	events.user = &run->real;
	if (run->setup->events) {
		options.events = &events;
		options.events_size = sizeof(events);
	}
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	assert_int_equal(flexmem_cache_add_oom_callback(cache, real_callback,
							run), 0);
	return cache;
}

static uint64_t recorded(const struct world *world)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < WORLD_STREAMS; i++)
		sum += world->recorded[i];
	return sum;
}

#define ROUND_LIST "roundup_power2_divisions:[1:2,4:8,>:1]"

static struct model_setup setups[] = {
	{ .name = "defaults", .configuration = "" },
	{ .name = "streams", .configuration = "", .events = true },
	{ .name = "direct", .configuration = "backend:direct",
	  .direct = true, .events = true },
	{ .name = "max_split", .configuration = "max_split_size_mb:8",
	  .max_split = 8 },
	{ .name = "max_split_slack", .events = true,
	  .configuration =
		"max_split_size_mb:24,max_non_split_rounding_mb:6",
	  .max_split = 24, .slack = 6 },
	{ .name = "rounding", .configuration = "roundup_power2_divisions:4",
	  .rounding = { { 0, 4 } } },
	{ .name = "rounding_list", .configuration = ROUND_LIST,
	  .rounding = { { 1, 2 }, { 4, 8 }, { 8, 1 } } },
	{ .name = "growing", .configuration = "expandable_segments:True",
	  .growing = true },
	{ .name = "growing_streams", .growing = true, .events = true,
	  .configuration = "expandable_segments:True" },
	{ .name = "growing_done", .growing = true, .events = true,
	  .reuse = MODEL_REUSE_DONE,
	  .configuration = "expandable_segments:True,reuse:done" },
	{ .name = "growing_wait", .growing = true, .events = true,
	  .reuse = MODEL_REUSE_WAIT,
	  .configuration = "expandable_segments:True,reuse:wait" },
	{ .name = "growing_no_events", .growing = true,
	  .reuse = MODEL_REUSE_WAIT,
	  .configuration = "expandable_segments:True,reuse:wait" },
	{ .name = "threshold", .threshold = 0.5, .events = true,
	  .configuration = "garbage_collection_threshold:0.5" },
	{ .name = "growing_threshold", .growing = true, .threshold = 0.6,
	  .configuration =
		"expandable_segments:True,garbage_collection_threshold:0.6" },
	{ .name = "fraction", .fraction = 0.6,
	  .configuration = "per_process_memory_fraction:0.6" },
	{ .name = "growing_fraction", .fraction = 0.7, .growing = true,
	  .configuration =
		"expandable_segments:True,per_process_memory_fraction:0.7" },
	{ .name = "unlocked", .events = true,
	  .configuration = "release_lock_on_device_malloc:True" },
	{ .name = "other_sizes", .configuration = "", .events = true,
	  .profile = { .granule = 512, .small_limit = 256 * KIB,
		       .small_segment = MIB, .large_limit = 4 * MIB,
		       .large_segment = 8 * MIB, .large_round = 4 * MIB,
		       .large_remainder = 128 * KIB } },
	{ .name = "other_growing_sizes", .growing = true,
	  .configuration = "expandable_segments:True",
	  .profile = { .granule = 256, .growing_step = 512 * KIB } },
	{ .name = "all", .growing = true, .events = true,
	  .reuse = MODEL_REUSE_WAIT,
	  .threshold = 0.7, .fraction = 0.9, .rounding = { { 0, 8 } },
	  .configuration =
		"expandable_segments:True,reuse:wait,"
		"garbage_collection_threshold:0.7,"
		"per_process_memory_fraction:0.9,roundup_power2_divisions:8" },
};

#define SETUPS (sizeof(setups) / sizeof(setups[0]))

static void follows_the_model(void **state)
{
	struct run *run = calloc(1, sizeof(*run));

	assert_non_null(run);
	run->seed = seed;
	run->setup = *state;
	/* Each setup gets other random operations. */
	run->random = seed + (uint64_t)(run->setup - setups);
	world_start(&run->real, CAPACITY);
	world_start(&run->imagined, CAPACITY);
	model_start(&run->model, run->setup, &run->imagined);
	run->model.on_oom = model_callback;
	run->model.user = run;
	run->cache = create(run);
	for (run->done = 0; run->done < operations; run->done++) {
		if (!(run->done % HISTORY_EVERY))
			assert_int_equal(flexmem_cache_set_history(run->cache,
				run->done / HISTORY_EVERY % 3 *
				HISTORY_EVENTS), 0);
		one_operation(run);
		compare_worlds(run);
		compare_figures(run);
		if (run->done % SNAPSHOT_EVERY)
			continue;
		compare_snapshot(run);
		compare_tags(run);
	}
	run_say(run, "destroy");
	flexmem_cache_checkpoint_free(run->checkpoint);
	flexmem_cache_destroy(run->cache);
	check_number(run, "what the provider does not have back",
		     run->real.used, 0);
	check_number(run, "events destroyed", run->real.destroyed,
		     recorded(&run->real));
	model_end(&run->model);
	free(run);
}

int main(void)
{
	const char *count = getenv("CACHE_OPERATIONS");
	const char *wish = getenv("CACHE_SEED");
	struct CMUnitTest tests[SETUPS];
	struct timespec now;
	size_t i;

	clock_gettime(CLOCK_REALTIME, &now);
	seed = wish ? strtoull(wish, NULL, 0) :
		      (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (count)
		operations = strtoul(count, NULL, 0);
	printf("# CACHE_SEED=%llu, %lu operations on each of %zu caches\n",
	       (unsigned long long)seed, operations, SETUPS);
	fflush(stdout);
	for (i = 0; i < SETUPS; i++)
		tests[i] = (struct CMUnitTest){
			.name = setups[i].name,
			.test_func = follows_the_model,
			.initial_state = &setups[i],
		};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
