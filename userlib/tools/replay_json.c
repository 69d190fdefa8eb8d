// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Reports of flexmem replay as JSON; flexmem(1) describes the keys. */
#include "replay_report.h"

#include <math.h>

static json_t *json_peaks(const struct replay_device *device)
{
	json_t *array = json_checked(json_array());
	json_t *object;
	size_t i;

	for (i = 0; i < device->region_count; i++) {
		object = json_checked(json_object());
		json_add(object, "region_id",
			 json_number(device->regions[i].region_id));
		json_add(object, "peak_used",
			 json_number(device->regions[i].peak));
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *json_first_failure(const struct report *report)
{
	const struct replay_failure *first = &report->replay.first;
	char text[TOOL_TEXT_MAX];
	json_t *object;

	if (!first->happened)
		return json_null();
	report_failure_text(report, text);
	object = json_error(first->error, text, &first->details.device);
	json_add(object, "event", json_number(first->event + 1));
	json_add(object, "line", json_number(first->line));
	json_add(object, "operation",
		 json_string(first->is_free ? "free" : "alloc"));
	json_add(object, "bytes", json_number(first->bytes));
	return object;
}

static void add_counts(json_t *object, const struct report *report)
{
	const struct replay *replay = &report->replay;

	json_add(object, "events", json_number(replay->events));
	json_add(object, "allocs", json_number(replay->allocs));
	json_add(object, "frees", json_number(replay->frees));
	json_add(object, "failures", json_number(replay->failures));
	json_add(object, "skipped_zero", json_number(replay->skipped_zero));
	json_add(object, "skipped_failed",
		 json_number(replay->skipped_failed));
	json_add(object, "live_at_end", json_number(replay->live_at_end));
	json_add(object, "first_failure", json_first_failure(report));
	json_add(object, "peak_live_bytes", json_number(replay->peak_bytes));
	json_add(object, "peak_device_bytes",
		 json_number(replay->peak_device_bytes));
	json_add(object, "peak_reached", json_boolean(replay->peak_reached));
	json_add(object, "ns_per_op_mean", json_number(replay->ns_mean));
	json_add(object, "ns_per_op_median", json_number(replay->ns_median));
	json_add(object, "ns_per_op_max", json_number(replay->ns_max));
	json_add(object, "seconds", json_real(replay->seconds));
}

static void add_device(json_t *object, const struct report *report,
		       bool show_peak)
{
	const struct replay_device *device = &report->device;
	const double fragmentation = replay_device_fragmentation(device);

	json_add(object, "regions_used", json_number(device->region_count));
	json_add(object, "slots_used", json_number(device->slots_used));
	json_add(object, "in_chunks", json_number(device->in_chunks));
	json_add(object, "most_chunks", json_number(device->most_chunks));
	json_add(object, "region_peaks", json_peaks(device));
	json_add(object, "region_fragmentation_at_peak",
		 isnan(fragmentation) ? json_null() : json_real(fragmentation));
	if (show_peak)
		json_add(object, "peak_regions",
			 json_regions(device->snapshot,
				      device->snapshot_count));
}

static json_t *json_calls(const struct flexmem_cache_statistics *figures)
{
	json_t *object = json_checked(json_object());

	json_add(object, "alloc", json_number(figures->num_device_alloc));
	json_add(object, "free", json_number(figures->num_device_free));
	json_add(object, "grow", json_number(figures->num_device_grow));
	json_add(object, "shrink", json_number(figures->num_device_shrink));
	return object;
}

static json_t *json_settings(const struct replay_cache *cache)
{
	json_t *object = json_checked(json_object());
	const struct flexmem_cache_setting *setting;
	json_t *value;
	size_t i;

	for (i = 0; i < cache->setting_count; i++) {
		setting = &cache->settings[i];
		value = json_checked(json_object());
		json_add(value, "value", json_string(setting->value));
		json_add(value, "source",
			 json_string(flexmem_cache_source_name(setting->source)));
		json_add(object, setting->key, value);
	}
	return object;
}

static void add_cache(json_t *object, const struct report *report)
{
	const struct replay_cache *cache = &report->cache;
	const struct flexmem_cache_statistics *end = &cache->at_end;
	const struct replay *replay = &report->replay;

	json_add(object, "peak_reserved_bytes",
		 json_number(end->reserved_bytes[FLEXMEM_CACHE_ALL].peak));
	json_add(object, "peak_allocated_bytes",
		 json_number(end->allocated_bytes[FLEXMEM_CACHE_ALL].peak));
	json_add(object, "reserved_to_live",
		 json_real(replay_cache_ratio(replay, cache)));
	json_add(object, "unused_share_at_peak",
		 json_real(replay_cache_unused(cache)));
	json_add(object, "hits", json_number(end->num_hits));
	json_add(object, "misses", json_number(end->num_misses));
	json_add(object, "hit_rate", json_real(replay_cache_hit_rate(cache)));
	json_add(object, "driver_calls", json_calls(end));
	json_add(object, "num_ooms", json_number(end->num_ooms));
	json_add(object, "num_alloc_retries",
		 json_number(end->num_alloc_retries));
	json_add(object, "num_first_failures",
		 json_number(end->num_first_failures));
	json_add(object, "settings", json_settings(cache));
}

static json_t *json_difference(const struct replay_exact *exact)
{
	json_t *object;

	if (!exact->differs)
		return json_checked(json_null());
	object = json_checked(json_object());
	json_add(object, "event", json_number(exact->event + 1));
	json_add(object, "line", json_number(exact->line));
	json_add(object, "process", json_number(exact->process + 1));
	json_add(object, "number", json_number(exact->number));
	json_add(object, "operation",
		 json_string(exact->is_free ? "free" : "alloc"));
	json_add(object, "bytes", json_number(exact->bytes));
	json_add(object, "text", json_text(exact->text));
	return object;
}

json_t *report_json(const struct report *report, bool show_peak)
{
	json_t *object = json_checked(json_object());

	json_add(object, "file", json_text(report->file));
	if (report->error) {
		json_add(object, "error",
			 json_error(report->error, report->text, NULL));
		return object;
	}
	if (report->is_exact) {
		json_add(object, "processes",
			 json_number(report->exact.processes));
		json_add(object, "events", json_number(report->exact.events));
		json_add(object, "difference", json_difference(&report->exact));
		return object;
	}
	if (report->cached)
		json_add(object, "provider",
			 json_string(report->provider.flat_bytes ? "flat" :
				     "device"));
	if (report->provider.flat_bytes) {
		json_add(object, "provider_bytes",
			 json_number(report->provider.flat_bytes));
	} else {
		json_add(object, "strategy",
			 json_string(strategy_name(report->properties.strategy)));
		json_add(object, "order",
			 json_string(order_name(report->properties.order)));
	}
	add_counts(object, report);
	if (report->cached)
		add_cache(object, report);
	else
		add_device(object, report, show_peak);
	return object;
}
