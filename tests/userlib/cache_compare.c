// SPDX-License-Identifier: GPL-2.0
/* Compares what callers can see of the cache with what the model predicts. */
#include <jansson.h>

#include "cache_run.h"
#include "cache_viewer.h"

const char *const run_tags[MODEL_TAGS] = {
	NULL, "weights", "activations", "optimizer",
};

void check_number(const struct run *run, const char *what, uint64_t found,
		  uint64_t expected)
{
	if (found == expected)
		return;
	fail_msg("CACHE_SEED=%llu, %s, operation %lu, %s: %s is %llu (%#llx), not %llu (%#llx)",
		 (unsigned long long)run->seed, run->setup->name, run->done,
		 run->what, what, (unsigned long long)found,
		 (unsigned long long)found, (unsigned long long)expected,
		 (unsigned long long)expected);
}

void check_true(const struct run *run, const char *what, bool good)
{
	check_number(run, what, good, true);
}

static void compare_obstacles(const struct run *run,
			      const struct flexmem_cache_failure *found,
			      const struct flexmem_cache_failure *expected)
{
	check_number(run, "failure.obstacle", found->obstacle,
		     expected->obstacle);
	check_number(run, "failure.largest_kind", found->largest_kind,
		     expected->largest_kind);
	check_number(run, "failure.largest_stream", found->largest_stream,
		     expected->largest_stream);
	check_number(run, "failure.largest_pool", found->largest_pool,
		     expected->largest_pool);
	check_number(run, "failure.pool", found->pool, expected->pool);
	check_number(run, "failure.last_pool", found->last_pool,
		     expected->last_pool);
}

void compare_failures(const struct run *run,
		      const struct model_request *request,
		      const struct flexmem_cache_failure *found,
		      struct model_result *result)
{
	const struct flexmem_cache_failure *expected = &result->failure;

	check_number(run, "failure.error", (uint64_t)found->error,
		     (uint64_t)expected->error);
	check_number(run, "failure.limit", found->limit, expected->limit);
	check_number(run, "failure.asked", found->asked, expected->asked);
	check_number(run, "failure.segment", found->segment,
		     expected->segment);
	check_number(run, "failure.allocated_bytes", found->allocated_bytes,
		     expected->allocated_bytes);
	check_number(run, "failure.reserved_bytes", found->reserved_bytes,
		     expected->reserved_bytes);
	check_number(run, "failure.largest_free", found->largest_free,
		     expected->largest_free);
	check_number(run, "failure.allowed_bytes", found->allowed_bytes,
		     expected->allowed_bytes);
	check_number(run, "failure.device_free", found->device_free,
		     expected->device_free);
	check_number(run, "failure.device_total", found->device_total,
		     expected->device_total);
	check_number(run, "failure.kept_pool", found->kept_pool,
		     expected->kept_pool);
	model_explain(&run->model, request, found, result);
	compare_obstacles(run, found, expected);
}

void compare_worlds(const struct run *run)
{
	const struct world *real = &run->real;
	const struct world *model = &run->imagined;
	size_t i;

	check_number(run, "number of segments", real->count, model->count);
	for (i = 0; i < model->count; i++) {
		check_number(run, "a handle", real->pieces[i].birth,
			     model->pieces[i].birth);
		check_number(run, "a segment's start", real->pieces[i].start,
			     model->pieces[i].start);
		check_number(run, "a segment's size", real->pieces[i].size,
			     model->pieces[i].size);
	}
	for (i = 0; i < WORLD_STREAMS; i++) {
		check_number(run, "events recorded", real->recorded[i],
			     model->recorded[i]);
		check_number(run, "events that happened", real->done[i],
			     model->done[i]);
	}
	check_number(run, "events destroyed", real->destroyed,
		     model->destroyed);
	check_number(run, "waits for the device", real->device_waits,
		     model->device_waits);
	check_number(run, "calls of pools' own providers", real->own_calls,
		     model->own_calls);
}

#define FIGURES \
	(offsetof(struct flexmem_cache_statistics, max_split_size) / \
	 sizeof(struct flexmem_cache_figure))

static const char *const figure_names[] = {
	"allocation", "segment", "active", "inactive_split", "allocated_bytes",
	"reserved_bytes", "active_bytes", "inactive_split_bytes",
	"requested_bytes", "oversize",
};

static void compare_figure(const struct run *run, size_t i,
			   const struct flexmem_cache_figure *found,
			   const struct flexmem_cache_figure *expected)
{
	const char *name = figure_names[i / FLEXMEM_CACHE_POOL_KINDS];
	char what[64];

	snprintf(what, sizeof(what), "current %s[%zu]", name, i % 3);
	check_number(run, what, found->current, expected->current);
	snprintf(what, sizeof(what), "allocated %s[%zu]", name, i % 3);
	check_number(run, what, found->allocated, expected->allocated);
	snprintf(what, sizeof(what), "freed %s[%zu]", name, i % 3);
	check_number(run, what, found->freed, expected->freed);
	snprintf(what, sizeof(what), "peak %s[%zu]", name, i % 3);
	check_number(run, what, found->peak, expected->peak);
}

void compare_figures(const struct run *run)
{
	const struct flexmem_cache_statistics *e = &run->model.figures;
	/*
	 * The figures lie one behind the other in the struct, so a loop reaches
	 * all of them.
	 */
	const struct flexmem_cache_figure *expected = e->allocation;
	struct flexmem_cache_statistics f;
	const struct flexmem_cache_figure *found = f.allocation;
	size_t i;

	assert_int_equal(flexmem_cache_statistics(run->cache, &f, sizeof(f)),
			 0);
	for (i = 0; i < FIGURES; i++)
		compare_figure(run, i, &found[i], &expected[i]);
	check_number(run, "max_split_size", f.max_split_size,
		     e->max_split_size);
	check_number(run, "num_ooms", f.num_ooms, e->num_ooms);
	check_number(run, "num_alloc_retries", f.num_alloc_retries,
		     e->num_alloc_retries);
	check_number(run, "num_first_failures", f.num_first_failures,
		     e->num_first_failures);
	check_number(run, "num_sync_all_streams", f.num_sync_all_streams,
		     e->num_sync_all_streams);
	check_number(run, "num_stream_waits", f.num_stream_waits,
		     e->num_stream_waits);
	check_number(run, "num_device_alloc", f.num_device_alloc,
		     e->num_device_alloc);
	check_number(run, "num_device_free", f.num_device_free,
		     e->num_device_free);
	check_number(run, "num_device_grow", f.num_device_grow,
		     e->num_device_grow);
	check_number(run, "num_device_shrink", f.num_device_shrink,
		     e->num_device_shrink);
	check_number(run, "num_hits", f.num_hits, e->num_hits);
	check_number(run, "num_misses", f.num_misses, e->num_misses);
	check_number(run, "num_collections", f.num_collections,
		     e->num_collections);
	/* A check of the cache's own figures, without the model. */
	check_true(run, "reserved >= active >= allocated, requested",
		   f.reserved_bytes[0].current >= f.active_bytes[0].current &&
		   f.active_bytes[0].current >= f.allocated_bytes[0].current &&
		   f.active_bytes[0].current >= f.requested_bytes[0].current);
	check_number(run, "reserved_bytes, as the provider has it",
		     f.reserved_bytes[0].current, run->real.used);
}

void compare_tags(const struct run *run)
{
	struct flexmem_cache_tag *found;
	const struct flexmem_cache_tag *expected;
	size_t count;
	size_t i;
	size_t t;

	assert_int_equal(flexmem_cache_tags(run->cache, &found, sizeof(*found),
					    &count), 0);
	for (i = 0; i < count; i++) {
		t = 0;
		while (i && strcmp(run_tags[++t], found[i].tag))
			;
		expected = &run->model.tags[t];
		check_number(run, "allocations of a tag", found[i].allocations,
			     expected->allocations);
		check_number(run, "allocated_bytes of a tag",
			     found[i].allocated_bytes,
			     expected->allocated_bytes);
		check_number(run, "requested_bytes of a tag",
			     found[i].requested_bytes,
			     expected->requested_bytes);
		check_number(run, "peak_bytes of a tag", found[i].peak_bytes,
			     expected->peak_bytes);
	}
	flexmem_cache_tags_free(found);
}

static uint64_t number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	return (uint64_t)json_integer_value(value);
}

static const char *string(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	assert_non_null(value);
	return value;
}

static void compare_block(const struct run *run, const json_t *found,
			  const struct model_segment *segment,
			  const struct model_block *block)
{
	static const char *const states[] = {
		[MODEL_FREE] = "inactive",
		[MODEL_LIVE] = "active_allocated",
		[MODEL_WAITING] = "active_pending_free",
	};
	bool active = block->state == MODEL_LIVE ||
		      block->state == MODEL_WAITING;

	check_number(run, "a block's offset", number(found, "offset"),
		     segment->address + block->offset);
	check_number(run, "a block's size", number(found, "size"),
		     block->size);
	check_number(run, "a block's requested_size",
		     number(found, "requested_size"),
		     active ? block->requested : 0);
	check_true(run, states[block->state],
		   !strcmp(string(found, "state"), states[block->state]));
	check_number(run, "a block's token", number(found, "token"),
		     block->state == MODEL_LIVE ?
		     (uintptr_t)run->slots[block->id].token : 0);
}

static void compare_segment(const struct run *run, const json_t *found,
			    const struct model_segment *segment)
{
	const json_t *blocks = json_object_get(found, "blocks");
	const json_t *pool = json_object_get(found, "segment_pool_id");
	size_t i;

	check_number(run, "a segment's offset", number(found, "offset"),
		     segment->address);
	check_number(run, "a segment's total_size", number(found, "total_size"),
		     segment->size);
	check_number(run, "a segment's stream", number(found, "stream"),
		     segment->stream);
	check_number(run, "a segment's pool", (uint64_t)
		     json_integer_value(json_array_get(pool, 1)),
		     segment->pool);
	check_true(run, "small or large",
		   !strcmp(string(found, "segment_type"),
			   segment->kind == FLEXMEM_CACHE_SMALL ? "small" :
			   "large"));
	check_number(run, "number of blocks", json_array_size(blocks),
		     segment->count);
	for (i = 0; i < segment->count; i++)
		compare_block(run, json_array_get(blocks, i), segment,
			      &segment->blocks[i]);
}

/*
 * Checks that PyTorch's viewer can show a snapshot of all pools, or of one
 * pool, which may have been released.
 */
static void view_snapshot(const struct run *run, uint64_t pool)
{
	const char *refused;
	char *text;
	int err;

	err = flexmem_cache_snapshot(run->cache, pool, &text, NULL);
	if (err == -ENOENT && pool)
		return;
	assert_int_equal(err, 0);
	refused = viewer_refuses_text(text);
	if (refused)
		print_error("%s\n", refused);
	flexmem_cache_text_free(text);
	check_true(run, "the viewer shows a snapshot", !refused);
}

void compare_snapshot(const struct run *run)
{
	json_t *segments;
	json_t *found;
	char *text;
	size_t i;

	assert_int_equal(flexmem_cache_snapshot(run->cache,
						FLEXMEM_CACHE_EVERY_POOL,
						&text, NULL), 0);
	found = json_loads(text, 0, NULL);
	flexmem_cache_text_free(text);
	assert_non_null(found);
	segments = json_object_get(found, "segments");
	check_number(run, "number of segments in the snapshot",
		     json_array_size(segments), run->model.count);
	for (i = 0; i < run->model.count; i++)
		compare_segment(run, json_array_get(segments, i),
				run->model.segments[i]);
	json_decref(found);
	view_snapshot(run, FLEXMEM_CACHE_EVERY_POOL);
	view_snapshot(run, 0);
	for (i = 0; i < sizeof(run->pools) / sizeof(run->pools[0]); i++) {
		if (run->pools[i])
			view_snapshot(run, run->pools[i]);
	}
}
