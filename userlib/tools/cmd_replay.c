// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem replay: options, and the replay of each file. */
#include "tool.h"
#include "policy.h"
#include "render.h"
#include "replay.h"
#include "replay_report.h"
#include "trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLAT_DEFAULT (UINT64_C(64) << 30)

struct replay_options {
	bool keep_going;
	bool show_peak;
	bool trim;
	const char *strategy;
	const char *order;
	struct policy policy;
	bool cache;
	bool exact;
	const char *configuration;
	const char *provider;
	uint64_t flat_bytes;
	bool recorded;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool parse_provider(struct replay_options *options, const char *text)
{
	options->provider = text;
	options->flat_bytes = 0;
	options->recorded = !strcmp(text, "recorded");
	if (options->recorded)
		return true;
	if (!strcmp(text, "device"))
		return true;
	if (strncmp(text, "flat", 4))
		return false;
	options->flat_bytes = FLAT_DEFAULT;
	if (!text[4])
		return true;
	return text[4] == ':' && parse_size(text + 5, &options->flat_bytes) &&
	       options->flat_bytes && options->flat_bytes % 128 == 0;
}

/*
 * Sets an option that only replay has. Returns false if its argument is wrong.
 */
static bool set_option(struct tool *tool, struct replay_options *options,
		       int option)
{
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
		if (!is_strategy(optarg)) {
			usage_error(tool, "no strategy '%s'", optarg);
			return false;
		}
		break;
	case 'o':
		options->order = optarg;
		if (!is_order(optarg)) {
			usage_error(tool, "no order '%s'", optarg);
			return false;
		}
		break;
	case 'l':
		return parse_policy(tool, optarg, &options->policy);
	case 'c':
		options->cache = true;
		break;
	case 'x':
		options->exact = true;
		options->cache = true;
		break;
	case 'f':
		options->configuration = optarg;
		break;
	case 'r':
		if (!parse_provider(options, optarg)) {
			if (!strncmp(optarg, "flat:", 5))
				usage_error(tool,
					    "'%s' is not a size above 0 and a multiple of 128",
					    optarg + 5);
			else
				usage_error(tool, "no provider '%s'", optarg);
			return false;
		}
		break;
	}
	return true;
}

static bool check_options(struct tool *tool,
			  const struct replay_options *options)
{
	const char *wrong = NULL;

	if (!options->cache && (options->configuration || options->provider)) {
		usage_error(tool, "--config and --provider need --cache or --exact");
		return false;
	}
	if (options->recorded && !options->exact)
		wrong = "--provider recorded needs --exact";
	if (options->exact &&
	    (options->trim || options->strategy || options->order ||
	     options->keep_going))
		wrong = "--exact has no --trim, --strategy, --order and --keep-going";
	if (options->cache && options->show_peak)
		wrong = "--show-peak shows nothing with --cache";
	if (options->cache && options->policy.placement)
		wrong = "a cache has no --policy";
	if (options->flat_bytes &&
	    (options->trim || options->strategy || options->order))
		wrong = "--trim, --strategy and --order need a device";
	if (wrong)
		usage_error(tool, "%s", wrong);
	return !wrong;
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
		{ "policy", required_argument, NULL, 'l' },
		{ "cache", no_argument, NULL, 'c' },
		{ "exact", no_argument, NULL, 'x' },
		{ "config", required_argument, NULL, 'f' },
		{ "provider", required_argument, NULL, 'r' },
		COMMON_OPTIONS
	};
	int option;

	*status = TOOL_USAGE;
	while ((option = next_option(tool, argc, argv, known)) != OPTION_END) {
		if (!strchr("kptsolcxfr", option)) {
			*status = option_status(option);
			return false;
		}
		if (!set_option(tool, options, option))
			return false;
	}
	if (optind == argc) {
		usage_error(tool, "at least one FILE is needed");
		return false;
	}
	if (options->exact && !options->provider)
		options->recorded = true;
	return check_options(tool, options);
}

static void fail(struct report *report, int err, const char *what)
{
	char text[200];

	flexmem_error_text(err, NULL, 0, text, sizeof(text));
	report->error = err;
	snprintf(report->text, sizeof(report->text), "%s: %s", what, text);
}

static bool check_settings(struct report *report,
			   const struct replay_options *options)
{
	const char *strategy = strategy_name(report->properties.strategy);
	const char *order = order_name(report->properties.order);

	if (options->strategy && strcmp(options->strategy, strategy)) {
		report->error = -EINVAL;
		snprintf(report->text, sizeof(report->text),
			 "the device runs %s, not %s", strategy,
			 options->strategy);
		return false;
	}
	if (options->order && strcmp(options->order, order)) {
		report->error = -EINVAL;
		snprintf(report->text, sizeof(report->text),
			 "the device runs %s, not %s", order, options->order);
		return false;
	}
	return true;
}

static bool prepare_device(struct tool *tool, struct report *report,
			   const struct replay_options *options)
{
	int err;

	report->error = tool_try_open(tool, report->text);
	if (report->error)
		return false;
	err = flexmem_device_properties(tool->device, &report->properties,
					sizeof(report->properties));
	if (err) {
		fail(report, err, "properties");
		return false;
	}
	if (!check_settings(report, options))
		return false;
	if (options->trim)
		err = flexmem_device_trim(tool->device, 0, NULL, NULL);
	if (err)
		fail(report, err, "trim");
	return !err;
}

static void drive(struct tool *tool, struct report *report,
		  const struct replay_options *options,
		  const struct trace *trace)
{
	struct progress progress;
	int err;

	progress_begin(&progress, stderr, report->name, trace->count);
	if (options->cache)
		err = replay_cache(&report->replay, &report->cache,
				   &report->provider, options->configuration,
				   trace, options->keep_going, &progress);
	else
		err = replay_device(&report->replay, &report->device,
				    tool->device, &options->policy, trace,
				    options->keep_going, &progress);
	progress_end(&progress);
	if (err)
		fail(report, err, options->cache ? "cache" : "regions");
}

/* With the device as provider, each process of the trace opens it by itself. */
static void drive_exactly(struct tool *tool, struct report *report,
			  const struct replay_options *options,
			  const struct trace *trace)
{
	struct progress progress;
	int err;

	if (!trace->exact) {
		report->error = -EINVAL;
		snprintf(report->text, sizeof(report->text),
			 "the trace has no addresses; 'flexmem record' makes one that has");
		return;
	}
	if (!options->flat_bytes && !options->recorded) {
		report->error = tool_try_open(tool, report->text);
		flexmem_device_close(tool->device);
		tool->device = NULL;
		if (report->error)
			return;
	}
	progress_begin(&progress, stderr, report->name, trace->count);
	err = replay_exact(&report->exact, &report->provider, tool->path,
			   options->configuration, trace, &progress);
	progress_end(&progress);
	if (err)
		fail(report, err, "cache");
}

static void one_file(struct tool *tool, struct report *report,
		     const struct replay_options *options)
{
	bool ready = true;
	struct trace trace;

	report->cached = options->cache;
	report->is_exact = options->exact;
	report->provider.flat_bytes = options->flat_bytes;
	report->provider.recorded = options->recorded;
	report->error = trace_read(&trace, report->file, report->text);
	if (report->error)
		return;
	if (options->exact) {
		drive_exactly(tool, report, options, &trace);
		trace_free(&trace);
		return;
	}
	if (!options->flat_bytes)
		ready = prepare_device(tool, report, options);
	report->provider.device = tool->device;
	if (ready)
		drive(tool, report, options, &trace);
	/* Closing the device frees all allocations before the next file. */
	flexmem_device_close(tool->device);
	tool->device = NULL;
	trace_free(&trace);
}

/* Returns true if no event of the file failed. */
static bool print_report(struct tool *tool, const struct report *report,
			 const struct replay_options *options)
{
	if (report->error) {
		fflush(stdout);
		tool_fail(tool, report->error, "%s: %s", report->file,
			  report->text);
		return false;
	}
	if (!tool->json) {
		report_print(report);
		if (options->show_peak)
			report_print_peak(report);
		fflush(stdout);
	}
	report_print_failure(tool, report);
	return report->is_exact ? !report->exact.differs :
				  !report->replay.failures;
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
					      report_json(&reports[i],
							  options.show_peak));
	}
	if (tool->json && count == 1)
		json_print(tool, json_incref(json_array_get(array, 0)));
	else if (tool->json)
		json_print(tool, json_incref(array));
	else if (count > 1 && !options.exact)
		report_print_summary(reports, count, options.cache);
	json_decref(array);
	for (i = 0; i < count; i++) {
		replay_device_free(&reports[i].device);
		replay_cache_free(&reports[i].cache);
	}
	free(reports);
	return status;
}
