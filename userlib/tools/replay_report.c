// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Reports of flexmem replay as text. */
#include "replay_report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

void report_failure_text(const struct report *report,
			 char text[TOOL_TEXT_MAX])
{
	const struct replay_failure *first = &report->replay.first;

	if (report->cached)
		flexmem_cache_error_text(first->error, &first->details,
					 sizeof(first->details), text,
					 TOOL_TEXT_MAX);
	else
		flexmem_error_text(first->error, &first->details.device,
				   sizeof(first->details.device), text,
				   TOOL_TEXT_MAX);
}

/* Names the first event that is not as it was recorded. */
static void print_difference(struct tool *tool, const struct report *report)
{
	const struct replay_exact *exact = &report->exact;

	if (!exact->differs)
		return;
	fflush(stdout);
	tool_fail(tool, -EBADMSG,
		  "%s: event %zu (line %" PRIu64 ", process %" PRIu32 ", number %" PRIu64 "), %s of %" PRIu64
		  " bytes, differs: %s", report->name, exact->event + 1,
		  exact->line, exact->process + 1, exact->number,
		  exact->is_free ? "free" : "allocation", exact->bytes,
		  exact->text);
}

void report_print_failure(struct tool *tool, const struct report *report)
{
	const struct replay_failure *first = &report->replay.first;
	char text[TOOL_TEXT_MAX];

	if (report->is_exact) {
		print_difference(tool, report);
		return;
	}
	if (!first->happened)
		return;
	fflush(stdout);
	report_failure_text(report, text);
	tool_fail(tool, first->error,
		  "%s: event %zu (line %" PRIu64 "), %s of %" PRIu64
		  " bytes failed: %s", report->name, first->event + 1,
		  first->line, first->is_free ? "free" : "allocation",
		  first->bytes, text);
}

static void print_number(const char *label, uint64_t number)
{
	printf("  %-16s %" PRIu64 "\n", label, number);
}

static void print_both(const char *label, uint64_t bytes, const char *what)
{
	char text[FMLIB_HUMAN_MAX];

	printf("  %-16s %s %s (%" PRIu64 " bytes)\n", label,
	       fmlib_human(bytes, text), what, bytes);
}

static void print_counts(const struct replay *replay)
{
	print_number("events", replay->events);
	print_number("allocs", replay->allocs);
	print_number("frees", replay->frees);
	print_number("failures", replay->failures);
	if (replay->skipped_zero)
		printf("  %-16s %" PRIu64 " of 0 bytes\n", "skipped",
		       replay->skipped_zero);
	if (replay->skipped_failed)
		printf("  %-16s %" PRIu64 " frees of failed allocations\n",
		       "skipped", replay->skipped_failed);
	print_number("live at the end", replay->live_at_end);
	print_both("peak live", replay->peak_bytes, "asked for");
}

static const char *when(const struct report *report)
{
	return report->replay.peak_reached ? "at the peak" : "where it stopped";
}

static void print_device(const struct report *report)
{
	bool is_pf = report->properties.function == FLEXMEM_PF;
	const struct replay_device *device = &report->device;
	const double fragmentation = replay_device_fragmentation(device);
	char text[FMLIB_HUMAN_MAX];
	char id[RENDER_REGION_MAX];
	size_t i;

	print_both("", report->replay.peak_device_bytes, "on the device");
	printf("  %-16s %zu\n", "regions used", device->region_count);
	printf("  %-16s %u of %u\n", "slots used", device->slots_used,
	       report->properties.slots);
	if (device->in_chunks)
		printf("  %-16s %" PRIu64
		       " allocations have several, at most %u\n",
		       "chunks", device->in_chunks, device->most_chunks);
	for (i = 0; i < device->region_count; i++)
		printf("  %-16s region %s: %s\n", i ? "" : "region peaks",
		       render_region_id(is_pf, device->regions[i].region_id,
					id),
		       fmlib_human(device->regions[i].peak, text));
	if (!isnan(fragmentation))
		printf("  %-16s %.3f of the regions' free bytes, %s\n",
		       "fragmentation", fragmentation, when(report));
}

/* The settings of the cache that differ from the defaults. */
static void print_settings(const struct replay_cache *cache)
{
	const struct flexmem_cache_setting *setting;
	const char *label = "settings";
	size_t i;

	for (i = 0; i < cache->setting_count; i++) {
		setting = &cache->settings[i];
		if (setting->source == FLEXMEM_CACHE_SOURCE_DEFAULT)
			continue;
		printf("  %-16s %s:%s", label, setting->key, setting->value);
		if (setting->source != FLEXMEM_CACHE_SOURCE_CALLER)
			printf(" (%s)",
			       flexmem_cache_source_name(setting->source));
		putchar('\n');
		label = "";
	}
}

static void print_cache(const struct report *report)
{
	const struct replay_cache *cache = &report->cache;
	const struct flexmem_cache_statistics *end = &cache->at_end;
	char text[FMLIB_HUMAN_MAX];

	print_both("", report->replay.peak_device_bytes, "allocated");
	print_both("peak reserved", end->reserved_bytes[FLEXMEM_CACHE_ALL].peak,
		   "in segments");
	printf("  %-16s %.4f peak reserved / peak live\n", "ratio",
	       replay_cache_ratio(&report->replay, cache));
	printf("  %-16s %.4f of the reserved bytes, %s\n", "unused share",
	       replay_cache_unused(cache), when(report));
	printf("  %-16s %.4f: %" PRIu64 " hits, %" PRIu64 " misses\n",
	       "hit rate", replay_cache_hit_rate(cache), end->num_hits,
	       end->num_misses);
	if (report->provider.flat_bytes)
		printf("  %-16s flat address space of %s\n", "provider",
		       fmlib_human(report->provider.flat_bytes, text));
	else
		printf("  %-16s device\n", "provider");
	printf("  %-16s alloc %" PRIu64 ", free %" PRIu64 ", grow %" PRIu64
	       ", shrink %" PRIu64 "\n", "driver calls", end->num_device_alloc,
	       end->num_device_free, end->num_device_grow,
	       end->num_device_shrink);
	printf("  %-16s %" PRIu64 " refusals, %" PRIu64 " helped, %" PRIu64
	       " failed\n", "out of memory", end->num_first_failures,
	       end->num_alloc_retries, end->num_ooms);
	print_settings(cache);
}

void report_print(const struct report *report)
{
	const struct replay *replay = &report->replay;
	char *name = escaped_text(report->name);

	puts(name);
	free(name);
	if (report->is_exact) {
		print_number("processes", report->exact.processes);
		print_number("same events", report->exact.events);
		return;
	}
	print_counts(replay);
	if (report->cached)
		print_cache(report);
	else
		print_device(report);
	printf("  %-16s mean %" PRIu64 " ns, median %" PRIu64
	       " ns, max %" PRIu64 " ns; %.3f s in all\n",
	       "per operation", replay->ns_mean, replay->ns_median,
	       replay->ns_max, replay->seconds);
}

void report_print_peak(const struct report *report)
{
	const struct replay_device *device = &report->device;
	unsigned int width = render_width(stdout);

	printf("\nregions %s:\n", report->replay.peak_reached ?
	       "at the peak of live bytes" : "where it stopped");
	render_region_table(stdout, width,
			    report->properties.function == FLEXMEM_PF,
			    device->snapshot, device->snapshot_count);
	putchar('\n');
	render_regions(stdout, width, device->snapshot,
		       device->snapshot_count);
}

static void add_device(struct table *table, const struct report *report)
{
	const double fragmentation =
		replay_device_fragmentation(&report->device);

	table_add(table, "%zu", report->device.region_count);
	table_add(table, "%u", report->device.slots_used);
	if (isnan(fragmentation))
		table_add(table, "-");
	else
		table_add(table, "%.3f", fragmentation);
}

static void add_cache(struct table *table, const struct report *report)
{
	const struct replay_cache *cache = &report->cache;
	char text[FMLIB_HUMAN_MAX];

	table_add(table, "%s",
		  fmlib_human(cache->at_end.reserved_bytes[0].peak, text));
	table_add(table, "%.4f", replay_cache_ratio(&report->replay, cache));
	table_add(table, "%.4f", replay_cache_hit_rate(cache));
}

void report_print_summary(const struct report *reports, size_t count,
			  bool cached)
{
	static const char *const of_device[] = {
		"<trace", "events", "failed", "peak live", "regions", "slots",
		"frag.", "mean ns", "median ns",
	};
	static const char *const of_cache[] = {
		"<trace", "events", "failed", "peak live", "reserved", "ratio",
		"hit rate", "mean ns", "median ns",
	};
	struct table table = {
		.headings = cached ? of_cache : of_device,
		.columns = 9,
	};
	const struct replay *replay;
	char text[FMLIB_HUMAN_MAX];
	size_t i;

	for (i = 0; i < count; i++) {
		replay = &reports[i].replay;
		if (reports[i].error)
			continue;
		table_add(&table, "%s", reports[i].name);
		table_add(&table, "%" PRIu64, replay->events);
		table_add(&table, "%" PRIu64, replay->failures);
		table_add(&table, "%s", fmlib_human(replay->peak_bytes, text));
		if (cached)
			add_cache(&table, &reports[i]);
		else
			add_device(&table, &reports[i]);
		table_add(&table, "%" PRIu64, replay->ns_mean);
		table_add(&table, "%" PRIu64, replay->ns_median);
	}
	if (table.count) {
		putchar('\n');
		table_print(&table, stdout, render_width(stdout));
	}
	table_clear(&table);
}
