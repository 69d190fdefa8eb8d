// SPDX-License-Identifier: GPL-2.0
/* Statistics, snapshots and the history of the cache. */
#include "cache_mock.h"
#include "cache_viewer.h"

#include <pthread.h>

#include <jansson.h>

#define SLOTS 300
#define STEPS 4000

static uint32_t seed;

static uint32_t dice(uint32_t sides)
{
	seed = seed * UINT32_C(1664525) + UINT32_C(1013904223);
	return (seed >> 8) % sides;
}

static json_t *snapshot(struct flexmem_cache *cache, uint64_t pool)
{
	const char *refused;
	json_error_t error;
	size_t length;
	json_t *json;
	char *text;

	assert_int_equal(flexmem_cache_snapshot(cache, pool, &text, &length),
			 0);
	assert_int_equal(strlen(text), length);
	json = json_loads(text, 0, &error);
	if (!json)
		fail_msg("%s at %d in %s", error.text, error.position, text);
	flexmem_cache_text_free(text);
	refused = viewer_refuses(json);
	if (refused)
		fail_msg("%s", refused);
	return json;
}

static uint64_t number(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	return (uint64_t)json_integer_value(value);
}

static const char *string(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	assert_non_null(value);
	return value;
}

/* The sums of a snapshot, by kind of pool. */
struct sums {
	uint64_t segments;
	uint64_t reserved;
	uint64_t allocated;
	uint64_t allocated_bytes;
	uint64_t requested_bytes;
	uint64_t active;
	uint64_t active_bytes;
	uint64_t split;
	uint64_t split_bytes;
};

static void add_block(struct sums *sums, const json_t *block, bool alone)
{
	const char *state = string(block, "state");
	uint64_t size = number(block, "size");

	assert_int_equal(size % 128, 0);
	if (!strcmp(state, "inactive")) {
		sums->split += !alone;
		sums->split_bytes += alone ? 0 : size;
		assert_int_equal(number(block, "requested_size"), 0);
		return;
	}
	sums->active++;
	sums->active_bytes += size;
	sums->requested_bytes += number(block, "requested_size");
	if (!strcmp(state, "active_pending_free"))
		return;
	assert_string_equal(state, "active_allocated");
	sums->allocated++;
	sums->allocated_bytes += size;
}

/* Blocks cover a segment without a gap. Two neighbours are never both free. */
static void add_segment(struct sums *sums, const json_t *segment)
{
	json_t *blocks = json_object_get(segment, "blocks");
	uint64_t end = number(segment, "address");
	struct sums before = *sums;
	bool was_free = false;
	json_t *block;
	bool is_free;
	size_t i;

	sums->segments++;
	sums->reserved += number(segment, "total_size");
	json_array_foreach(blocks, i, block) {
		assert_int_equal(number(block, "address"), end);
		assert_int_equal(number(block, "offset"),
				 end - number(segment, "address") +
				 number(segment, "offset"));
		end += number(block, "size");
		is_free = !strcmp(string(block, "state"), "inactive");
		assert_false(is_free && was_free);
		was_free = is_free;
		add_block(sums, block, json_array_size(blocks) == 1);
	}
	assert_int_equal(end - number(segment, "address"),
			 number(segment, "total_size"));
	assert_int_equal(number(segment, "allocated_size"),
			 sums->allocated_bytes - before.allocated_bytes);
	assert_int_equal(number(segment, "active_size"),
			 sums->active_bytes - before.active_bytes);
	assert_int_equal(number(segment, "requested_size"),
			 sums->requested_bytes - before.requested_bytes);
}

static void expect_sums(const struct flexmem_cache_statistics *f, int kind,
			const struct sums *sums)
{
	assert_int_equal(f->segment[kind].current, sums->segments);
	assert_int_equal(f->reserved_bytes[kind].current, sums->reserved);
	assert_int_equal(f->allocation[kind].current, sums->allocated);
	assert_int_equal(f->allocated_bytes[kind].current,
			 sums->allocated_bytes);
	assert_int_equal(f->requested_bytes[kind].current,
			 sums->requested_bytes);
	assert_int_equal(f->active[kind].current, sums->active);
	assert_int_equal(f->active_bytes[kind].current, sums->active_bytes);
	assert_int_equal(f->inactive_split[kind].current, sums->split);
	assert_int_equal(f->inactive_split_bytes[kind].current,
			 sums->split_bytes);
}

static void add_sums(struct sums *to, const struct sums *from)
{
	to->segments += from->segments;
	to->reserved += from->reserved;
	to->allocated += from->allocated;
	to->allocated_bytes += from->allocated_bytes;
	to->requested_bytes += from->requested_bytes;
	to->active += from->active;
	to->active_bytes += from->active_bytes;
	to->split += from->split;
	to->split_bytes += from->split_bytes;
}

static void compare_with_snapshot(struct flexmem_cache *cache)
{
	struct flexmem_cache_statistics f = figures(cache);
	struct sums sums[FLEXMEM_CACHE_POOL_KINDS] = { 0 };
	json_t *json = snapshot(cache, FLEXMEM_CACHE_EVERY_POOL);
	json_t *segment;
	bool small;
	size_t i;

	json_array_foreach(json_object_get(json, "segments"), i, segment) {
		small = !strcmp(string(segment, "segment_type"), "small");
		add_segment(&sums[small ? FLEXMEM_CACHE_SMALL :
				  FLEXMEM_CACHE_LARGE], segment);
	}
	json_decref(json);
	add_sums(&sums[FLEXMEM_CACHE_ALL], &sums[FLEXMEM_CACHE_SMALL]);
	add_sums(&sums[FLEXMEM_CACHE_ALL], &sums[FLEXMEM_CACHE_LARGE]);
	for (i = 0; i < FLEXMEM_CACHE_POOL_KINDS; i++)
		expect_sums(&f, (int)i, &sums[i]);
}

/* The figures that the test computes from its own calls. */
struct shadow {
	struct flexmem_cache_figure allocation;
	struct flexmem_cache_figure allocated_bytes;
	uint64_t requested_bytes;
	uint64_t failures;
};

static void up(struct flexmem_cache_figure *figure, uint64_t by)
{
	figure->current += by;
	figure->allocated += by;
	if (figure->current > figure->peak)
		figure->peak = figure->current;
}

static void down(struct flexmem_cache_figure *figure, uint64_t by)
{
	figure->current -= by;
	figure->freed += by;
}

static void expect_figure(const struct flexmem_cache_figure *figure,
			  const struct flexmem_cache_figure *expected)
{
	assert_int_equal(figure->current, expected->current);
	assert_int_equal(figure->peak, expected->peak);
	assert_int_equal(figure->allocated, expected->allocated);
	assert_int_equal(figure->freed, expected->freed);
}

static void compare_with_shadow(struct flexmem_cache *cache,
				const struct shadow *shadow)
{
	struct flexmem_cache_statistics f = figures(cache);

	expect_figure(&f.allocation[0], &shadow->allocation);
	expect_figure(&f.allocated_bytes[0], &shadow->allocated_bytes);
	assert_int_equal(f.requested_bytes[0].allocated,
			 shadow->requested_bytes);
	/*
	 * Each current figure is the sum of what was added, less the sum of
	 * what was removed.
	 */
	assert_int_equal(f.reserved_bytes[0].current,
			 f.reserved_bytes[0].allocated -
			 f.reserved_bytes[0].freed);
	assert_int_equal(f.inactive_split_bytes[0].current,
			 f.inactive_split_bytes[0].allocated -
			 f.inactive_split_bytes[0].freed);
	assert_int_equal(f.requested_bytes[0].current,
			 f.requested_bytes[0].allocated -
			 f.requested_bytes[0].freed);
	assert_true(f.requested_bytes[0].peak >= f.requested_bytes[0].current);
	assert_true(f.reserved_bytes[0].current >= f.active_bytes[0].current);
	assert_true(f.active_bytes[0].current >= f.allocated_bytes[0].current);
	if (!mock.fails) {
		assert_int_equal(f.num_device_alloc, mock.allocs);
		assert_int_equal(f.num_device_free, mock.frees);
		assert_int_equal(f.num_device_grow, mock.grows);
		assert_int_equal(f.num_device_shrink, mock.shrinks);
	}
	assert_int_equal(f.num_hits + f.num_misses,
			 f.allocation[0].allocated + shadow->failures);
}

static void one_alloc(struct flexmem_cache *cache, struct shadow *shadow,
		      void **token)
{
	uint64_t bytes = dice(4) ? dice(60000) + 1 : dice(9 * MIB) + 1;

	if (flexmem_cache_alloc(cache, bytes, dice(3), token)) {
		assert_true(mock.fails);
		shadow->failures++;
		return;
	}
	up(&shadow->allocation, 1);
	up(&shadow->allocated_bytes, lookup(cache, *token).size);
	shadow->requested_bytes += bytes;
	if (!dice(10))
		assert_int_equal(flexmem_cache_record_stream(cache, *token,
							     dice(3)), 0);
}

static void one_free(struct flexmem_cache *cache, struct shadow *shadow,
		     void **token)
{
	struct flexmem_cache_allocation a = lookup(cache, *token);

	give(cache, *token);
	down(&shadow->allocation, 1);
	down(&shadow->allocated_bytes, a.size);
	*token = NULL;
}

/* Lets one or several of the provider's next calls fail. */
static void go_wrong(void)
{
	mock.error = dice(4) ? -ENOMEM : -EIO;
	switch (dice(4)) {
	case 0:
		mock.fail_frees = dice(3);
		break;
	case 1:
		mock.fail_grows = dice(3);
		break;
	case 2:
		mock.fail_records = dice(3);
		break;
	default:
		mock.fail_allocs = dice(6);
		break;
	}
}

/* After each random call all figures must add up. */
static void random_calls(const char *configuration, uint32_t begin)
{
	struct flexmem_cache *cache = mock_cache_events(configuration);
	void *tokens[SLOTS] = { NULL };
	struct shadow shadow = { 0 };
	uint32_t slot;
	int i;

	seed = begin;
	for (i = 0; i < STEPS; i++) {
		slot = dice(SLOTS);
		if (mock.fails && !dice(10))
			go_wrong();
		if (tokens[slot])
			one_free(cache, &shadow, &tokens[slot]);
		else
			one_alloc(cache, &shadow, &tokens[slot]);
		if (mock.events && !dice(3))
			mock.happened[dice(mock.events)] = true;
		if (!dice(500))
			assert_true(!flexmem_cache_empty(cache, NULL) ||
				    mock.fails);
		if (!dice(500))
			assert_true(!flexmem_cache_trim(cache, 20 * MIB,
							   NULL) ||
				    mock.fails);
		if (!(i % 50)) {
			compare_with_shadow(cache, &shadow);
			compare_with_snapshot(cache);
		}
	}
	for (slot = 0; slot < SLOTS; slot++) {
		if (tokens[slot])
			one_free(cache, &shadow, &tokens[slot]);
	}
	compare_with_shadow(cache, &shadow);
	mock.fail_frees = 0;
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	compare_with_snapshot(cache);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	flexmem_cache_destroy(cache);
}

static void exact(void **state)
{
	(void)state;
	mock.capacity = 8 * GIB;
	random_calls("", 1);
}

static void exact_growing(void **state)
{
	(void)state;
	mock.capacity = 8 * GIB;
	random_calls("expandable_segments:True", 2);
}

static void exact_direct(void **state)
{
	(void)state;
	mock.capacity = 8 * GIB;
	random_calls("backend:direct", 3);
}

static void exact_with_limits(void **state)
{
	(void)state;
	mock.capacity = 8 * GIB;
	random_calls("max_split_size_mb:4,roundup_power2_divisions:4,"
		     "garbage_collection_threshold:0.02", 4);
}

static void exact_with_failures(void **state)
{
	(void)state;
	mock.capacity = 8 * GIB;
	mock.fails = true;
	random_calls("", 5);
}

static void exact_growing_with_failures(void **state)
{
	(void)state;
	mock.capacity = 8 * GIB;
	mock.fails = true;
	random_calls("expandable_segments:True", 6);
}

/* The figures are also exact if the provider has no memory most of the time. */
static void exact_when_full(void **state)
{
	(void)state;
	mock.capacity = 200 * MIB;
	mock.fails = true;
	random_calls("", 7);
}

static void per_pool(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_statistics f;

	(void)state;
	take(cache, 1000, 0);
	take(cache, 2 * MIB, 0);
	f = figures(cache);
	assert_int_equal(f.allocated_bytes[FLEXMEM_CACHE_ALL].current,
			 2 * MIB + 1024);
	assert_int_equal(f.allocated_bytes[FLEXMEM_CACHE_SMALL].current, 1024);
	assert_int_equal(f.allocated_bytes[FLEXMEM_CACHE_LARGE].current,
			 2 * MIB);
	assert_int_equal(f.reserved_bytes[FLEXMEM_CACHE_SMALL].current,
			 2 * MIB);
	assert_int_equal(f.reserved_bytes[FLEXMEM_CACHE_LARGE].current,
			 20 * MIB);
	assert_int_equal(f.inactive_split_bytes[FLEXMEM_CACHE_LARGE].current,
			 18 * MIB);
	assert_int_equal(f.num_misses, 2);
	flexmem_cache_destroy(cache);
}

static void resets(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	struct flexmem_cache_statistics f;

	(void)state;
	give(cache, take(cache, 5 * MIB, 0));
	take(cache, 1000, 0);
	f = figures(cache);
	assert_int_equal(f.allocated_bytes[0].peak, 5 * MIB);
	assert_int_equal(flexmem_cache_reset_peaks(cache), 0);
	f = figures(cache);
	assert_int_equal(f.allocated_bytes[0].peak, 1024);
	assert_int_equal(f.allocated_bytes[0].allocated, 5 * MIB + 1024);
	assert_int_equal(f.num_misses, 2);
	assert_int_equal(flexmem_cache_reset_accumulated(cache), 0);
	f = figures(cache);
	assert_int_equal(f.allocated_bytes[0].current, 1024);
	assert_int_equal(f.allocated_bytes[0].peak, 1024);
	assert_int_equal(f.allocated_bytes[0].allocated, 0);
	assert_int_equal(f.allocated_bytes[0].freed, 0);
	assert_int_equal(f.num_misses, 0);
	assert_int_equal(f.num_device_alloc, 0);
	take(cache, 5 * MIB, 0);
	f = figures(cache);
	assert_int_equal(f.allocated_bytes[0].allocated, 5 * MIB);
	assert_int_equal(f.num_hits, 1);
	flexmem_cache_destroy(cache);
}

/* The members that PyTorch's viewer reads. */
static void snapshot_fields(void **state)
{
	static const char *const of_segment[] = {
		"device", "address", "total_size", "allocated_size",
		"active_size", "requested_size", "stream", "segment_type",
		"segment_pool_id", "is_expandable", "frames", "blocks",
	};
	static const char *const of_block[] = {
		"address", "size", "requested_size", "state", "frames",
	};
	struct flexmem_cache_request request = {
		.bytes = 1000, .stream = 5, .tag = "a \"b\"\\\n\xc3\xa4",
	};
	struct flexmem_cache_options options = mock_options("");
	struct flexmem_cache_allocation a;
	struct flexmem_cache *cache;
	json_t *segment;
	json_t *block;
	json_t *json;
	size_t i;

	(void)state;
	options.device_index = 2;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	json = snapshot(cache, 0);
	assert_int_equal(json_array_size(json_object_get(json, "segments")),
			 1);
	assert_int_equal(json_array_size(json_object_get(json,
							 "device_traces")), 3);
	segment = json_array_get(json_object_get(json, "segments"), 0);
	for (i = 0; i < sizeof(of_segment) / sizeof(of_segment[0]); i++)
		assert_non_null(json_object_get(segment, of_segment[i]));
	assert_int_equal(number(segment, "device"), 2);
	assert_int_equal(number(segment, "stream"), 5);
	assert_int_equal(number(segment, "address"),
			 (UINT64_C(1) << 44) + a.address.offset);
	block = json_array_get(json_object_get(segment, "blocks"), 0);
	for (i = 0; i < sizeof(of_block) / sizeof(of_block[0]); i++)
		assert_non_null(json_object_get(block, of_block[i]));
	assert_int_equal(number(block, "token"), (uintptr_t)a.token);
	assert_int_equal(number(block, "requested_size"), 1000);
	block = json_array_get(json_object_get(block, "frames"), 0);
	assert_string_equal(string(block, "name"),
			    "a \"b\"\\\\\\x0a\xc3\xa4");
	assert_string_equal(string(json_object_get(json, "allocator_settings"),
				   "backend"), "native");
	json_decref(json);
	flexmem_cache_destroy(cache);
}

static void snapshot_of_pools(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	struct flexmem_cache_request request = { .bytes = 1000 };
	struct flexmem_cache_allocation a;
	json_t *segment;
	json_t *json;
	char *text;

	(void)state;
	take(cache, 1, 0);
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	json = snapshot(cache, request.pool);
	assert_int_equal(json_array_size(json_object_get(json, "segments")),
			 1);
	segment = json_array_get(json_object_get(json, "segments"), 0);
	assert_true(json_is_true(json_object_get(segment, "is_expandable")));
	assert_int_equal(json_integer_value(json_array_get(
				json_object_get(segment, "segment_pool_id"),
				1)), request.pool);
	json_decref(json);
	json = snapshot(cache, FLEXMEM_CACHE_EVERY_POOL);
	assert_int_equal(json_array_size(json_object_get(json, "segments")),
			 2);
	json_decref(json);
	assert_int_equal(flexmem_cache_snapshot(cache, 77, &text, NULL),
			 -ENOENT);
	assert_int_equal(flexmem_cache_snapshot(cache, 0, NULL, NULL),
			 -EINVAL);
	assert_int_equal(flexmem_cache_snapshot(cache, 0, &text, NULL), 0);
	flexmem_cache_text_free(text);
	flexmem_cache_text_free(NULL);
	flexmem_cache_destroy(cache);
}

static void expect_actions(struct flexmem_cache *cache,
			   const char *const *actions, size_t count)
{
	json_t *json = snapshot(cache, 0);
	json_t *traces = json_object_get(json, "device_traces");
	json_t *events = json_array_get(traces, 0);
	uint64_t time = 0;
	size_t i;

	assert_int_equal(json_array_size(events), count);
	for (i = 0; i < count; i++) {
		json_t *event = json_array_get(events, i);

		assert_string_equal(string(event, "action"), actions[i]);
		assert_true(number(event, "time_us") >= time);
		time = number(event, "time_us");
		assert_true(number(event, "size"));
		assert_in_range(number(event, "requested_size"), 1,
				number(event, "size"));
		assert_int_equal(number(event, "number"),
				 number(json_array_get(events, 0), "number") + i);
		assert_int_equal(number(event, "pool"), 0);
		number(event, "stream");
		assert_true(json_is_array(json_object_get(event, "frames")));
		number(event, strcmp(actions[i], "oom") ? "addr" :
		       "device_free");
	}
	json_decref(json);
}

static void history(void **state)
{
	static const char *const all[] = {
		"segment_map", "alloc", "segment_map", "alloc",
		"free_requested", "free_requested", "free_completed",
		"segment_unmap", "oom", "free_completed", "segment_unmap",
	};
	struct flexmem_cache *cache =
		mock_cache_events("expandable_segments:True");
	void *a;
	void *b;

	(void)state;
	assert_int_equal(flexmem_cache_set_history(cache, 100), 0);
	a = take(cache, 4 * MIB, 0);
	b = take(cache, 4 * MIB, 0);
	assert_int_equal(flexmem_cache_record_stream(cache, a, 1), 0);
	give(cache, a);
	give(cache, b);
	assert_int_equal(flexmem_cache_trim(cache, UINT64_MAX, NULL), 0);
	mock.fail_allocs = 100;
	mock.fail_waits = 1;
	assert_int_equal(flexmem_cache_alloc(cache, 20 * MIB, 5,
					     &(void *){ NULL }), -ENOMEM);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	expect_actions(cache, all, sizeof(all) / sizeof(all[0]));

	/* The history keeps the latest events. */
	mock.fail_allocs = 0;
	assert_int_equal(flexmem_cache_set_history(cache, 2), 0);
	expect_actions(cache, NULL, 0);
	a = take(cache, 4 * MIB, 0);
	expect_actions(cache, all, 2);
	give(cache, a);
	expect_actions(cache, (const char *const[]){ "free_requested",
						     "free_completed" }, 2);
	/* A length of 0 switches the history off. */
	assert_int_equal(flexmem_cache_set_history(cache, 0), 0);
	take(cache, 4 * MIB, 0);
	expect_actions(cache, NULL, 0);
	flexmem_cache_destroy(cache);
}

/* A segment that does not grow is allocated and freed as a whole. */
static void history_of_fixed_segments(void **state)
{
	static const char *const all[] = {
		"segment_alloc", "alloc", "free_requested", "free_completed",
		"segment_free",
	};
	struct flexmem_cache *cache = mock_cache("");

	(void)state;
	assert_int_equal(flexmem_cache_set_history(cache, 100), 0);
	give(cache, take(cache, 4 * MIB, 0));
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	expect_actions(cache, all, sizeof(all) / sizeof(all[0]));
	flexmem_cache_destroy(cache);
}

/* The event with this index in the history. The caller drops @json. */
static json_t *event_at(json_t *json, size_t index)
{
	return json_array_get(json_array_get(json_object_get(json, "device_traces"),
					     0), index);
}

/* An event has the number that it would have if the history lost none. */
static void numbers_of_events(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	json_t *json, *event, *block;
	void *token;

	(void)state;
	assert_int_equal(flexmem_cache_set_history(cache, 2), 0);
	give(cache, take(cache, 1000, 0));
	json = snapshot(cache, 0);
	assert_int_equal(number(event_at(json, 0), "number"), 3);
	assert_int_equal(number(event_at(json, 1), "number"), 4);
	assert_int_equal(number(event_at(json, 1), "requested_size"), 1000);
	json_decref(json);

	/* A new history begins with 1. The place is that of the block. */
	assert_int_equal(flexmem_cache_set_history(cache, 100), 0);
	take(cache, 1000, 0);
	token = take(cache, 1000, 0);
	json = snapshot(cache, 0);
	event = event_at(json, 1);
	assert_int_equal(number(event, "number"), 2);
	assert_true(number(event, "size") > number(event, "requested_size"));
	block = json_array_get(json_object_get(json_array_get(
			json_object_get(json, "segments"), 0), "blocks"), 1);
	assert_int_equal(number(block, "token"), (uintptr_t)token);
	assert_int_equal(number(event, "addr"), number(block, "address"));
	assert_int_equal(number(event, "offset"), number(block, "offset"));
	assert_int_equal(number(event, "region_id"),
			 number(json_array_get(json_object_get(json, "segments"), 0),
				"region_id"));
	json_decref(json);
	flexmem_cache_destroy(cache);
}

static size_t count_events(struct flexmem_cache *cache, uint64_t pool)
{
	json_t *json = snapshot(cache, pool);
	size_t count = json_array_size(json_array_get(
				json_object_get(json, "device_traces"), 0));

	json_decref(json);
	return count;
}

/* The events of pairs are in order, and the last one is of a free. */
static void expect_last(struct flexmem_cache *cache, size_t count)
{
	static const char *const pair[] = {
		"alloc", "free_requested", "free_completed",
	};
	json_t *json = snapshot(cache, FLEXMEM_CACHE_EVERY_POOL);
	const json_t *events = json_array_get(
		json_object_get(json, "device_traces"), 0);
	size_t i;

	for (i = 0; i < count; i++)
		assert_string_equal(
			json_string_value(json_object_get(
				json_array_get(events, count - 1 - i),
				"action")), pair[2 - i % 3]);
	json_decref(json);
}

static void many_pairs(struct flexmem_cache *cache)
{
	size_t i;

	for (i = 0; i < 700; i++)
		give(cache, take(cache, 1000, 0));
}

/*
 * PyTorch's default is a history without an end. Its memory comes when it is
 * needed.
 */
static void history_without_an_end(void **state)
{
	const uint64_t every = FLEXMEM_CACHE_EVERY_POOL;
	struct flexmem_cache *cache = mock_cache("");

	(void)state;
	take(cache, 1000, 0);
	assert_int_equal(flexmem_cache_set_history(cache, UINT32_MAX), 0);
	many_pairs(cache);
	assert_int_equal(count_events(cache, every), 3 * 700);
	many_pairs(cache);
	assert_int_equal(count_events(cache, every), 6 * 700);
	/* One that ends behind the first 1,024 events. */
	assert_int_equal(flexmem_cache_set_history(cache, 1501), 0);
	many_pairs(cache);
	assert_int_equal(count_events(cache, every), 1501);
	expect_last(cache, 1501);
	flexmem_cache_destroy(cache);
}

/* The snapshot of a pool has only that pool's events. */
static void history_of_pools(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	struct flexmem_cache_request request = { .bytes = 1000 };
	struct flexmem_cache_allocation a;

	(void)state;
	assert_int_equal(flexmem_cache_set_history(cache, 100), 0);
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	give(cache, take(cache, 5 * MIB, 0));
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	assert_int_equal(count_events(cache, 0), 4);
	assert_int_equal(count_events(cache, request.pool), 2);
	assert_int_equal(count_events(cache, FLEXMEM_CACHE_EVERY_POOL), 6);
	/* A failure belongs to the pool that the request named. */
	request.bytes = 2 * GIB;
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	assert_int_equal(count_events(cache, request.pool), 3);
	flexmem_cache_destroy(cache);
}

static void debug_log(void **state)
{
	struct flexmem_cache_options options = mock_options("");
	struct flexmem_cache *cache;
	char expected[300];
	void *token;

	(void)state;
	options.level = FLEXMEM_LOG_DEBUG;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	token = take(cache, 1000, 4);
	give(cache, token);
	snprintf(expected, sizeof(expected),
		 "segment 1: 2097152 bytes for stream 4\n"
		 "alloc %p: 1024 bytes (1000 requested) on stream 4\n"
		 "free %p: 1024 bytes\n", token, token);
	assert_string_equal(mock.log, expected);
	assert_int_equal(mock.warnings, 0);
	flexmem_cache_destroy(cache);
}

/* A segment without an allocation is free as a whole, and has no holes. */
static void a_free_segment_is_no_hole(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	struct flexmem_cache_statistics f;
	int i;

	(void)state;
	/* In the second turn of the loop the cache already has the segment. */
	for (i = 0; i < 2; i++) {
		void *token = take(cache, MIB, 0);

		f = figures(cache);
		assert_int_equal(f.inactive_split[0].current, 1);
		assert_int_equal(f.inactive_split_bytes[0].current, MIB);
		give(cache, token);
		f = figures(cache);
		assert_int_equal(f.inactive_split[0].current, 0);
		assert_int_equal(f.inactive_split_bytes[0].current, 0);
	}
	assert_int_equal(f.num_hits, 1);
	assert_int_equal(f.inactive_split_bytes[0].allocated, 2 * MIB);
	flexmem_cache_destroy(cache);
}

static struct flexmem_cache *watched;
static uint64_t split_bytes;

static void look_at_splits(void)
{
	split_bytes = figures(watched).inactive_split_bytes[0].current;
}

/*
 * When a call releases the lock in the middle of its work, the figures include
 * what the call has done so far.
 */
static void exact_while_others_look(void **state)
{
	struct flexmem_cache *cache =
		mock_cache_events("expandable_segments:True");

	(void)state;
	watched = cache;
	take(cache, MIB, 0);
	give(cache, take(cache, 9 * MIB, 0));
	assert_int_equal(figures(cache).inactive_split_bytes[0].current,
			 9 * MIB);
	mock.on_wait = look_at_splits;
	mock.fail_grows = 3;
	mock.fail_allocs = 4;
	assert_int_equal(try_alloc(cache, 30 * MIB), -ENOMEM);
	assert_int_equal(mock.shrinks, 1);
	assert_int_equal(split_bytes, MIB);
	flexmem_cache_destroy(cache);
}

/* A snapshot has a list for each device number up to that of the cache. */
static void device_numbers(void **state)
{
	struct flexmem_cache_options options = mock_options("");
	struct flexmem_cache *cache = NULL;
	json_t *json;

	(void)state;
	options.device_index = UINT32_MAX;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EINVAL);
	options.device_index = 65536;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EINVAL);
	options.device_index = 65535;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	json = snapshot(cache, 0);
	assert_int_equal(json_array_size(json_object_get(json,
							 "device_traces")),
			 65536);
	json_decref(json);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(exact),
		CACHE_TEST(exact_growing),
		CACHE_TEST(exact_direct),
		CACHE_TEST(exact_with_limits),
		CACHE_TEST(exact_with_failures),
		CACHE_TEST(exact_growing_with_failures),
		CACHE_TEST(exact_when_full),
		CACHE_TEST(exact_while_others_look),
		CACHE_TEST(a_free_segment_is_no_hole),
		CACHE_TEST(per_pool),
		CACHE_TEST(resets),
		CACHE_TEST(snapshot_fields),
		CACHE_TEST(snapshot_of_pools),
		CACHE_TEST(history),
		CACHE_TEST(history_of_fixed_segments),
		CACHE_TEST(numbers_of_events),
		CACHE_TEST(history_of_pools),
		CACHE_TEST(history_without_an_end),
		CACHE_TEST(debug_log),
		CACHE_TEST(device_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
