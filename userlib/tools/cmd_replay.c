// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem replay: options and reports; replay.c does it. */
#include "tool.h"
#include "render.h"
#include "replay.h"
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct replay_options {
	bool keep_going;
	bool show_peak;
	bool trim;
	const char *strategy;
	const char *order;
};

/* One file: its replay, or why there is none. */
struct report {
	const char *file;
	const char *name;
	char error[TRACE_ERROR_MAX];
	struct flexmem_properties properties;
	struct replay replay;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool replay_arguments(struct tool *tool, int argc, char **argv,
			     struct replay_options *options,
			     enum tool_status *status)
{
	static const struct option known[] = {
		{ "keep-going", no_argument, NULL, 'k' },
		{ "show-peak", no_argument, NULL, 'p' },
		{ "trim", no_argument, NULL, 't' },
		{ "strategy", required_argument, NULL, 's' },
		{ "order", required_argument, NULL, 'o' },
		COMMON_OPTIONS
	};
	int option;

	*status = TOOL_USAGE;
	while ((option = next_option(tool, argc, argv, known)) != OPTION_END) {
		switch (option) {
		case 'k':
			options->keep_going = true;
			break;
		case 'p':
			options->show_peak = true;
			break;
		case 't':
			options->trim = true;
			break;
		case 's':
			options->strategy = optarg;
			if (strcmp(optarg, "first_fit") &&
			    strcmp(optarg, "best_fit")) {
				usage_error(tool, "no strategy '%s'", optarg);
				return false;
			}
			break;
		case 'o':
			options->order = optarg;
			if (strcmp(optarg, "load_balance") &&
			    strcmp(optarg, "fill_first")) {
				usage_error(tool, "no order '%s'", optarg);
				return false;
			}
			break;
		default:
			*status = option_status(option);
			return false;
		}
	}
	if (optind == argc) {
		usage_error(tool, "at least one FILE is needed");
		return false;
	}
	return true;
}

static void fail(struct report *report, int err, const char *what)
{
	char text[200];

	flexmem_error_text(err, NULL, 0, text, sizeof(text));
	snprintf(report->error, sizeof(report->error), "%s: %s", what, text);
}

/* Whether the device runs what the options ask for. */
static bool check_settings(struct report *report,
			   const struct replay_options *options)
{
	const char *strategy = strategy_name(report->properties.strategy);
	const char *order = order_name(report->properties.order);

	if (options->strategy && strcmp(options->strategy, strategy)) {
		snprintf(report->error, sizeof(report->error),
			 "the device runs %s, not %s", strategy,
			 options->strategy);
		return false;
	}
	if (options->order && strcmp(options->order, order)) {
		snprintf(report->error, sizeof(report->error),
			 "the device runs %s, not %s", order, options->order);
		return false;
	}
	return true;
}

static void drive(struct tool *tool, struct report *report,
		  const struct replay_options *options,
		  const struct trace *trace)
{
	struct progress progress;
	int err;

	err = flexmem_device_properties(tool->device, &report->properties,
					sizeof(report->properties));
	if (err) {
		fail(report, err, "properties");
		return;
	}
	if (!check_settings(report, options))
		return;
	if (options->trim) {
		err = flexmem_device_trim(tool->device, NULL, NULL);
		if (err) {
			fail(report, err, "trim");
			return;
		}
	}
	progress_begin(&progress, stderr, report->name, trace->count);
	err = replay_run(&report->replay, tool->device, trace,
			 options->keep_going, &progress);
	progress_end(&progress);
	if (err)
		fail(report, err, "regions");
}

static void one_file(struct tool *tool, struct report *report,
		     const struct replay_options *options)
{
	struct trace trace;

	if (!trace_read(&trace, report->file, report->error))
		return;
	if (tool_open(tool)) {
		snprintf(report->error, sizeof(report->error),
			 "the device could not be opened");
	} else {
		drive(tool, report, options, &trace);
		/* The next file finds none of the allocations of this one. */
		flexmem_device_close(tool->device);
		tool->device = NULL;
	}
	trace_free(&trace);
}

static void print_failure(const struct report *report)
{
	const struct replay_failure *first = &report->replay.first;
	char text[256];

	if (!first->happened)
		return;
	fflush(stdout);
	flexmem_error_text(first->error, &first->details,
			   sizeof(first->details), text, sizeof(text));
	fprintf(stderr,
		"flexmem: %s: event %zu (line %" PRIu64 "), %s of %" PRIu64
		" bytes failed: %s\n",
		report->name, first->event + 1, first->line,
		first->is_free ? "free" : "allocation", first->bytes, text);
}

static void print_both(const char *label, uint64_t bytes, const char *what)
{
	char text[FMLIB_HUMAN_MAX];

	printf("  %-16s %s %s (%" PRIu64 " bytes)\n", label,
	       fmlib_human(bytes, text), what, bytes);
}

static void print_counts(const struct replay *replay)
{
	printf("  %-16s %" PRIu64 "\n", "events", replay->events);
	printf("  %-16s %" PRIu64 "\n", "allocs", replay->allocs);
	printf("  %-16s %" PRIu64 "\n", "frees", replay->frees);
	printf("  %-16s %" PRIu64 "\n", "failures", replay->failures);
	if (replay->skipped_zero)
		printf("  %-16s %" PRIu64 " of 0 bytes\n", "skipped",
		       replay->skipped_zero);
	if (replay->skipped_failed)
		printf("  %-16s %" PRIu64 " frees of failed allocations\n",
		       "skipped", replay->skipped_failed);
	printf("  %-16s %" PRIu64 "\n", "live at the end",
	       replay->live_at_end);
}

static void print_replay(const struct report *report)
{
	const struct replay *replay = &report->replay;
	bool is_pf = report->properties.function == FLEXMEM_PF;
	char text[FMLIB_HUMAN_MAX];
	char id[RENDER_REGION_MAX];
	size_t i;

	printf("%s\n", report->name);
	print_counts(replay);
	print_both("peak live", replay->peak_bytes, "asked for");
	print_both("", replay->peak_device_bytes, "on the device");
	printf("  %-16s %zu\n", "regions used", replay->region_count);
	printf("  %-16s %u of %u\n", "slots used", replay->slots_used,
	       report->properties.slots);
	for (i = 0; i < replay->region_count; i++)
		printf("  %-16s region %s: %s\n", i ? "" : "region peaks",
		       render_region_id(is_pf, replay->regions[i].region_id,
					id),
		       fmlib_human(replay->regions[i].peak, text));
	printf("  %-16s %.3f %s\n", "fragmentation",
	       replay_fragmentation(replay),
	       replay->peak_reached ? "at the peak" : "where it stopped");
	printf("  %-16s mean %" PRIu64 " ns, median %" PRIu64
	       " ns, max %" PRIu64 " ns; %.3f s in all\n",
	       "per operation", replay->ns_mean, replay->ns_median,
	       replay->ns_max, replay->seconds);
}

static void print_peak(const struct report *report)
{
	const struct replay *replay = &report->replay;
	unsigned int width = render_width(stdout);

	printf("\nregions %s:\n", replay->peak_reached ?
	       "at the peak of live bytes" : "where it stopped");
	render_region_table(stdout, width,
			    report->properties.function == FLEXMEM_PF,
			    replay->snapshot, replay->snapshot_count);
	putchar('\n');
	render_regions(stdout, width, replay->snapshot,
		       replay->snapshot_count);
}

static void print_summary(const struct report *reports, size_t count)
{
	static const char *const headings[] = {
		"<trace", "events", "failed", "peak live", "regions", "slots",
		"frag.", "mean ns", "median ns",
	};
	struct table table = { .headings = headings, .columns = 9 };
	const struct replay *replay;
	char text[FMLIB_HUMAN_MAX];
	size_t i;

	for (i = 0; i < count; i++) {
		replay = &reports[i].replay;
		if (reports[i].error[0])
			continue;
		table_add(&table, "%s", reports[i].name);
		table_add(&table, "%" PRIu64, replay->events);
		table_add(&table, "%" PRIu64, replay->failures);
		table_add(&table, "%s", fmlib_human(replay->peak_bytes, text));
		table_add(&table, "%zu", replay->region_count);
		table_add(&table, "%u", replay->slots_used);
		table_add(&table, "%.3f", replay_fragmentation(replay));
		table_add(&table, "%" PRIu64, replay->ns_mean);
		table_add(&table, "%" PRIu64, replay->ns_median);
	}
	if (table.count) {
		putchar('\n');
		table_print(&table, stdout, render_width(stdout));
	}
	table_clear(&table);
}

static json_t *json_peaks(const struct replay *replay)
{
	json_t *array = json_checked(json_array());
	json_t *object;
	size_t i;

	for (i = 0; i < replay->region_count; i++) {
		object = json_checked(json_object());
		json_add(object, "region_id",
			 json_number(replay->regions[i].region_id));
		json_add(object, "peak_used",
			 json_number(replay->regions[i].peak));
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *json_first_failure(const struct replay_failure *first)
{
	json_t *object;

	if (!first->happened)
		return json_null();
	object = json_error(first->error, &first->details);
	json_add(object, "event", json_number(first->event + 1));
	json_add(object, "line", json_number(first->line));
	json_add(object, "operation",
		 json_string(first->is_free ? "free" : "alloc"));
	json_add(object, "bytes", json_number(first->bytes));
	return object;
}

static void json_counts(json_t *object, const struct replay *replay)
{
	json_add(object, "events", json_number(replay->events));
	json_add(object, "allocs", json_number(replay->allocs));
	json_add(object, "frees", json_number(replay->frees));
	json_add(object, "failures", json_number(replay->failures));
	json_add(object, "skipped_zero", json_number(replay->skipped_zero));
	json_add(object, "skipped_failed",
		 json_number(replay->skipped_failed));
	json_add(object, "live_at_end", json_number(replay->live_at_end));
	json_add(object, "first_failure", json_first_failure(&replay->first));
	json_add(object, "peak_live_bytes", json_number(replay->peak_bytes));
	json_add(object, "peak_device_bytes",
		 json_number(replay->peak_device_bytes));
}

static json_t *json_report(const struct report *report, bool show_peak)
{
	const struct replay *replay = &report->replay;
	json_t *object = json_checked(json_object());

	json_add(object, "file", json_string(report->file));
	if (report->error[0]) {
		json_add(object, "error", json_string(report->error));
		return object;
	}
	json_add(object, "strategy",
		 json_string(strategy_name(report->properties.strategy)));
	json_add(object, "order",
		 json_string(order_name(report->properties.order)));
	json_counts(object, replay);
	json_add(object, "regions_used", json_number(replay->region_count));
	json_add(object, "slots_used", json_number(replay->slots_used));
	json_add(object, "region_peaks", json_peaks(replay));
	json_add(object, "peak_reached", json_boolean(replay->peak_reached));
	json_add(object, "external_fragmentation_at_peak",
		 json_real(replay_fragmentation(replay)));
	json_add(object, "ns_per_op_mean", json_number(replay->ns_mean));
	json_add(object, "ns_per_op_median", json_number(replay->ns_median));
	json_add(object, "ns_per_op_max", json_number(replay->ns_max));
	json_add(object, "seconds", json_real(replay->seconds));
	if (show_peak)
		json_add(object, "peak_regions",
			 json_regions(replay->snapshot,
				      replay->snapshot_count));
	return object;
}

/* True if the file was replayed and every event went well. */
static bool print_report(const struct tool *tool, const struct report *report,
			 const struct replay_options *options)
{
	if (report->error[0]) {
		fflush(stdout);
		fprintf(stderr, "flexmem: %s: %s\n", report->file,
			report->error);
		return false;
	}
	if (!tool->json) {
		print_replay(report);
		if (options->show_peak)
			print_peak(report);
		fflush(stdout);
	}
	print_failure(report);
	return !report->replay.failures;
}

enum tool_status cmd_replay(struct tool *tool, int argc, char **argv)
{
	struct replay_options options = { 0 };
	enum tool_status status;
	struct report *reports;
	json_t *array;
	size_t count;
	size_t i;

	if (!replay_arguments(tool, argc, argv, &options, &status))
		return status;
	count = (size_t)(argc - optind);
	reports = grow(NULL, count, sizeof(*reports));
	memset(reports, 0, count * sizeof(*reports));
	array = json_checked(json_array());
	status = TOOL_OK;
	for (i = 0; i < count; i++) {
		reports[i].file = argv[optind + (int)i];
		reports[i].name = base_name(reports[i].file);
		one_file(tool, &reports[i], &options);
		if (i && !tool->json)
			putchar('\n');
		if (!print_report(tool, &reports[i], &options))
			status = TOOL_FAILED;
		if (tool->json)
			json_array_append_new(array,
					      json_report(&reports[i],
							  options.show_peak));
	}
	if (tool->json && count == 1)
		json_print(json_incref(json_array_get(array, 0)));
	else if (tool->json)
		json_print(json_incref(array));
	else if (count > 1)
		print_summary(reports, count);
	json_decref(array);
	for (i = 0; i < count; i++)
		replay_free(&reports[i].replay);
	free(reports);
	return status;
}
