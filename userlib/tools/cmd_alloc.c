// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem alloc and free. */
#include "tool.h"
#include "policy.h"
#include "render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Enough for use by hand. Load tests use the command replay. */
#define MAX_COUNT 1000000
#define MAX_HOLD 1000000

struct alloc_options {
	struct flexmem_alloc_request request;
	struct policy policy;
	uint64_t count;
	uint64_t hold;
	uint64_t seed;
	bool has_hold;
	bool has_seed;
};

/* The result of filling or checking memory: an error, or the state of @job. */
struct outcome {
	struct pattern_job job;
	bool checked;
	int error;
};

struct work {
	const struct alloc_options *options;
	struct flexmem_allocated *allocations;
	struct outcome *outcomes;
};

static bool alloc_option(struct tool *tool, int option,
			 struct alloc_options *options)
{
	uint64_t *value;

	switch (option) {
	case 'a':
		value = &options->request.alignment;
		if (parse_size(optarg, value) && !(*value & (*value - 1)))
			return true;
		usage_error(tool, "alignment '%s' is not a power of two",
			    optarg);
		return false;
	case 'p':
		options->request.flags |= FLEXMEM_PROGRAM;
		return true;
	case 'm':
		options->request.flags |= FLEXMEM_MAPPABLE;
		return true;
	case 'z':
		options->request.flags |= FLEXMEM_ZEROED;
		return true;
	case 'b':
		return parse_policy(tool, optarg, &options->policy);
	case 'e':
		options->has_seed = true;
		if (parse_number(optarg, UINT64_MAX, &options->seed))
			return true;
		usage_error(tool, "'%s' is not a seed", optarg);
		return false;
	case 'c':
		if (parse_number(optarg, MAX_COUNT, &options->count) &&
		    options->count)
			return true;
		usage_error(tool, "'%s' is not a count up to %d", optarg,
			    MAX_COUNT);
		return false;
	case 's':
		options->has_hold = true;
		if (parse_number(optarg, MAX_HOLD, &options->hold))
			return true;
		usage_error(tool, "'%s' is not a number of seconds", optarg);
		return false;
	default:
		return false;
	}
}

static bool alloc_arguments(struct tool *tool, int argc, char **argv,
			    struct alloc_options *options,
			    enum tool_status *status)
{
	static const struct option known[] = {
		{ "align", required_argument, NULL, 'a' },
		{ "program", no_argument, NULL, 'p' },
		{ "mappable", no_argument, NULL, 'm' },
		{ "zeroed", no_argument, NULL, 'z' },
		{ "policy", required_argument, NULL, 'b' },
		{ "pattern", required_argument, NULL, 'e' },
		{ "count", required_argument, NULL, 'c' },
		{ "hold", required_argument, NULL, 's' },
		COMMON_OPTIONS
	};
	int option;

	while ((option = next_option(tool, argc, argv, known)) != OPTION_END) {
		if (!alloc_option(tool, option, options)) {
			*status = option_status(option);
			return false;
		}
	}
	*status = TOOL_USAGE;
	if (argc - optind != 1) {
		usage_error(tool, "exactly one LENGTH is needed");
		return false;
	}
	if (!parse_size(argv[optind], &options->request.length)) {
		usage_error(tool, "'%s' is not a length", argv[optind]);
		return false;
	}
	if (!options->request.length) {
		usage_error(tool, "LENGTH is at least 1");
		return false;
	}
	return true;
}

static bool is_pf(const struct tool *tool)
{
	struct flexmem_properties properties;

	return !flexmem_device_properties(tool->device, &properties,
					  sizeof(properties)) &&
	       properties.function == FLEXMEM_PF;
}

static json_t *json_outcome(const struct flexmem_allocated *one,
			    const struct alloc_options *options,
			    const struct outcome *outcome)
{
	json_t *object = json_checked(json_object());

	if (!one->error)
		json_add_allocation(object, one);
	if (one->error)
		json_add(object, "error",
			 json_error(one->error, NULL, &one->failure));
	else if (outcome->error)
		json_add(object, "error",
			 json_error(outcome->error, NULL, NULL));
	else if (options->has_seed)
		json_add(object, "pattern",
			 json_pattern(&outcome->job, outcome->checked));
	return object;
}

static void print_allocation(const struct flexmem_allocated *one, bool hex)
{
	char id[RENDER_REGION_MAX];
	char size[FMLIB_HUMAN_MAX];

	printf("handle %u  address %s:0x%" PRIx64 "  size %" PRIu64 " (%s)\n",
	       one->handle, render_region_id(hex, one->address.region_id, id),
	       one->address.offset, one->size, fmlib_human(one->size, size));
}

static void report_json(struct tool *tool, const struct work *work)
{
	json_t *array = json_checked(json_array());
	uint64_t i;

	for (i = 0; i < work->options->count; i++)
		json_array_append_new(array,
				      json_outcome(&work->allocations[i],
						   work->options,
						   &work->outcomes[i]));
	json_print(tool, array);
	fflush(stdout);
}

/* Counts the allocations from @one on that failed for the same reason. */
static uint64_t alike(const struct flexmem_allocated *one, uint64_t left)
{
	uint64_t count = 1;

	while (count < left && one[count].error == one->error &&
	       one[count].failure.limit == one->failure.limit)
		count++;
	return count;
}

static enum tool_status report(struct tool *tool, const struct work *work)
{
	const struct flexmem_allocated *one = work->allocations;
	uint64_t left = work->options->count;
	bool hex = !tool->json && is_pf(tool);
	enum tool_status status = TOOL_OK;
	uint64_t count;

	for (; left; left -= count, one += count) {
		count = 1;
		if (!one->error) {
			if (!tool->json)
				print_allocation(one, hex);
			continue;
		}
		count = alike(one, left);
		if (count > 1)
			tool_error(tool, one->error, &one->failure,
				   "alloc: %" PRIu64 " times", count);
		else
			tool_error(tool, one->error, &one->failure, "alloc");
		status = TOOL_FAILED;
	}
	fflush(stdout);
	return status;
}

static void hold(const struct alloc_options *options)
{
	struct timespec left = { .tv_sec = (time_t)options->hold };
	int c;

	if (options->has_hold) {
		while (nanosleep(&left, &left) && errno == EINTR)
			;
		return;
	}
	fputs("Press Enter to give it back.\n", stderr);
	do {
		c = getchar();
	} while (c != '\n' && c != EOF);
}

/* Fills all allocations with the pattern, or checks all of them. */
static enum tool_status patterns(struct tool *tool, struct work *work,
				 bool check)
{
	const struct alloc_options *options = work->options;
	enum tool_status worst = TOOL_OK;
	struct outcome *outcome;
	uint32_t handle;
	uint64_t i;

	for (i = 0; options->has_seed && i < options->count; i++) {
		if (work->allocations[i].error)
			continue;
		handle = work->allocations[i].handle;
		outcome = &work->outcomes[i];
		outcome->job.seed = options->seed;
		if (check)
			outcome->error = pattern_check_allocation(tool, handle,
								  &outcome->job);
		else
			outcome->error = pattern_fill_allocation(tool, handle,
								 &outcome->job);
		if (outcome->error)
			return tool_error(tool, outcome->error, NULL,
					  "%s handle %u",
					  check ? "check" : "fill", handle);
		outcome->checked = check;
		if (check && pattern_result(tool, handle, &outcome->job))
			worst = TOOL_FAILED;
	}
	return worst;
}

/*
 * In a shell the allocations stay. Otherwise the driver frees them when the
 * command ends and closes the file.
 */
static enum tool_status keep(struct tool *tool, struct work *work)
{
	/*
	 * The JSON report is one value, which includes the results of checking
	 * the pattern. So with a pattern the report is printed at the end.
	 */
	bool early = tool->json && !work->options->has_seed;
	enum tool_status status;
	bool any = false;
	uint64_t i;

	status = patterns(tool, work, false);
	for (i = 0; i < work->options->count && !any; i++)
		any = !work->allocations[i].error;
	if (early)
		report_json(tool, work);
	if (!tool->shell && any) {
		hold(work->options);
		if (!status)
			status = patterns(tool, work, true);
	}
	if (tool->json && !early)
		report_json(tool, work);
	return status;
}

/* Returns 0, or the error that ended a batch early. */
static int allocate(struct tool *tool, const struct work *work)
{
	const struct alloc_options *options = work->options;
	struct flexmem_alloc_request *requests;
	uint64_t i;
	int err;

	if (options->count == 1) {
		/* The call stores its error in work->allocations, too. */
		flexmem_device_alloc_request(tool->device, &options->request,
					     sizeof(options->request),
					     work->allocations,
					     sizeof(*work->allocations));
		return 0;
	}
	requests = grow(NULL, options->count, sizeof(*requests));
	for (i = 0; i < options->count; i++)
		requests[i] = options->request;
	err = flexmem_device_alloc_batch(tool->device, requests,
					 sizeof(*requests), work->allocations,
					 sizeof(*work->allocations),
					 options->count);
	free(requests);
	return err;
}

enum tool_status cmd_alloc(struct tool *tool, int argc, char **argv)
{
	struct alloc_options options = { .count = 1 };
	struct work work = { .options = &options };
	enum tool_status status;
	enum tool_status kept;
	int err;

	if (!alloc_arguments(tool, argc, argv, &options, &status))
		return status;
	status = tool_open(tool);
	if (status)
		return status;
	err = resolve_policy(tool->device, &options.policy, &options.request);
	if (err)
		return tool_error(tool, err, NULL, "domains");

	work.allocations = grow(NULL, options.count,
				sizeof(*work.allocations));
	work.outcomes = grow(NULL, options.count, sizeof(*work.outcomes));
	memset(work.outcomes, 0, options.count * sizeof(*work.outcomes));
	err = allocate(tool, &work);
	status = report(tool, &work);
	if (err)
		status = tool_error(tool, err, NULL, "the batch ended early");
	kept = keep(tool, &work);
	if (kept > status)
		status = kept;
	free(work.allocations);
	free(work.outcomes);
	return status;
}

/*
 * Frees the allocation that @name names: a handle, or REGION:OFFSET. @error
 * receives 0 or a negative errno.
 */
static enum tool_status free_one(struct tool *tool, char *name, int *error)
{
	struct flexmem_virtual_address address;
	char *colon = strchr(name, ':');
	uint64_t handle;
	bool good;

	if (colon) {
		*colon = '\0';
		good = parse_number(name, UINT64_MAX, &address.region_id) &&
		       parse_number(colon + 1, UINT64_MAX, &address.offset);
		*colon = ':';
	} else {
		good = parse_number(name, UINT32_MAX, &handle) && handle;
	}
	*error = -EINVAL;
	if (!good)
		return usage_error(tool,
				   "'%s' is neither HANDLE nor REGION:OFFSET",
				   name);
	if (colon)
		*error = flexmem_device_free_address(tool->device, address);
	else
		*error = flexmem_device_free(tool->device, (uint32_t)handle);
	if (*error)
		return tool_error(tool, *error, NULL, "free %s", name);
	return TOOL_OK;
}

static json_t *json_freed(const char *name, int error)
{
	json_t *object = json_checked(json_object());

	json_add(object, "freed", json_text(name));
	if (error)
		json_add(object, "error", json_error(error, NULL, NULL));
	return object;
}

enum tool_status cmd_free(struct tool *tool, int argc, char **argv)
{
	static const struct option options[] = { COMMON_OPTIONS };
	enum tool_status worst = TOOL_OK;
	enum tool_status status;
	json_t *array;
	int option;
	int err;
	int i;

	option = next_option(tool, argc, argv, options);
	if (option != OPTION_END)
		return option_status(option);
	if (optind == argc)
		return usage_error(tool, "at least one HANDLE or REGION:OFFSET is needed");
	status = tool_open(tool);
	if (status)
		return status;
	array = json_checked(json_array());
	for (i = optind; i < argc; i++) {
		status = free_one(tool, argv[i], &err);
		json_array_append_new(array, json_freed(argv[i], err));
		if (status > worst)
			worst = status;
	}
	if (tool->json)
		json_print(tool, json_incref(array));
	json_decref(array);
	return worst;
}
