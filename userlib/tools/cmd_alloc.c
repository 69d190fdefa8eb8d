// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem alloc, free: for trying things out. */
#include "tool.h"
#include "render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* More would be a load test, for which there is replay. */
#define MAX_COUNT 1000000
#define MAX_HOLD 1000000

struct alloc_options {
	struct flexmem_request request;
	uint64_t count;
	uint64_t hold;
	uint64_t seed;
	bool has_hold;
	bool has_seed;
};

static bool alloc_option(struct tool *tool, int option,
			 struct alloc_options *options)
{
	switch (option) {
	case 'a':
		if (parse_size(optarg, &options->request.alignment))
			return true;
		usage_error(tool, "'%s' is not an alignment", optarg);
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
	return true;
}

static bool is_pf(const struct tool *tool)
{
	struct flexmem_properties properties;

	return !flexmem_device_properties(tool->device, &properties,
					  sizeof(properties)) &&
	       properties.function == FLEXMEM_PF;
}

static enum tool_status report(const struct tool *tool,
			       const struct flexmem_allocation *allocations,
			       uint64_t count)
{
	json_t *array = tool->json ? json_checked(json_array()) : NULL;
	bool hex = !tool->json && is_pf(tool);
	const struct flexmem_allocation *one;
	enum tool_status status = TOOL_OK;
	char id[RENDER_REGION_MAX];
	char size[FMLIB_HUMAN_MAX];
	uint64_t i;

	for (i = 0; i < count; i++) {
		one = &allocations[i];
		if (one->error)
			status = tool_error(one->error, &one->failure, "alloc");
		if (array)
			json_array_append_new(array, json_allocation(one));
		else if (!one->error)
			printf("handle %u  address %s:0x%" PRIx64
			       "  size %" PRIu64 " (%s)\n",
			       one->handle,
			       render_region_id(hex, one->address.region_id,
						id),
			       one->address.offset, one->size,
			       fmlib_human(one->size, size));
	}
	if (array)
		json_print(array);
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

/* Fills all allocations with the pattern, or checks them all. */
static enum tool_status patterns(struct tool *tool,
				 const struct flexmem_allocation *allocations,
				 const struct alloc_options *options,
				 bool check)
{
	struct pattern_job job = { .seed = options->seed };
	enum tool_status worst = TOOL_OK;
	uint32_t handle;
	uint64_t i;
	int err;

	for (i = 0; options->has_seed && i < options->count; i++) {
		if (allocations[i].error)
			continue;
		handle = allocations[i].handle;
		if (check)
			err = pattern_check_allocation(tool, handle, &job);
		else
			err = pattern_fill_allocation(tool, handle, &job);
		if (err)
			return tool_error(err, NULL, "%s handle %u",
					  check ? "check" : "fill", handle);
		if (check && pattern_result(handle, &job))
			worst = TOOL_FAILED;
	}
	return worst;
}

/* In a shell they live on; else they are kept, and go with the open file. */
static enum tool_status keep(struct tool *tool,
			     const struct flexmem_allocation *allocations,
			     const struct alloc_options *options)
{
	enum tool_status status;
	bool any = false;
	uint64_t i;

	status = patterns(tool, allocations, options, false);
	for (i = 0; i < options->count && !any; i++)
		any = !allocations[i].error;
	if (tool->shell || !any)
		return status;
	hold(options);
	if (!status)
		status = patterns(tool, allocations, options, true);
	return status;
}

enum tool_status cmd_alloc(struct tool *tool, int argc, char **argv)
{
	struct alloc_options options = { .count = 1 };
	struct flexmem_allocation *allocations;
	struct flexmem_request *requests;
	enum tool_status status;
	enum tool_status kept;
	int err = 0;
	uint64_t i;

	if (!alloc_arguments(tool, argc, argv, &options, &status))
		return status;
	status = tool_open(tool);
	if (status)
		return status;

	allocations = grow(NULL, options.count, sizeof(*allocations));
	requests = grow(NULL, options.count, sizeof(*requests));
	for (i = 0; i < options.count; i++)
		requests[i] = options.request;
	if (options.count == 1)
		/* The error is in the result too. */
		flexmem_device_alloc(tool->device, options.request.length,
				     options.request.alignment,
				     options.request.flags, allocations,
				     sizeof(*allocations));
	else
		err = flexmem_device_alloc_batch(tool->device, requests,
						 sizeof(*requests), allocations,
						 sizeof(*allocations),
						 options.count);
	status = report(tool, allocations, options.count);
	if (err)
		status = tool_error(err, NULL, "the batch ended early");
	free(requests);

	kept = keep(tool, allocations, &options);
	if (kept > status)
		status = kept;
	free(allocations);
	return status;
}

/* Frees what @name names: a handle, or REGION:OFFSET. */
static enum tool_status free_one(struct tool *tool, char *name)
{
	struct flexmem_virtual_address address;
	char *colon = strchr(name, ':');
	uint64_t handle;
	bool good;
	int err;

	if (colon) {
		*colon = '\0';
		good = parse_number(name, UINT64_MAX, &address.region_id) &&
		       parse_number(colon + 1, UINT64_MAX, &address.offset);
		*colon = ':';
	} else {
		good = parse_number(name, UINT32_MAX, &handle) && handle;
	}
	if (!good)
		return usage_error(tool,
				   "'%s' is neither HANDLE nor REGION:OFFSET",
				   name);
	if (colon)
		err = flexmem_device_free_address(tool->device, address);
	else
		err = flexmem_device_free(tool->device, (uint32_t)handle);
	if (err)
		return tool_error(err, NULL, "free %s%s", name,
				  tool->shell ? "" :
				  " (only 'flexmem shell' can free what it allocated)");
	return TOOL_OK;
}

enum tool_status cmd_free(struct tool *tool, int argc, char **argv)
{
	static const struct option options[] = { COMMON_OPTIONS };
	enum tool_status worst = TOOL_OK;
	enum tool_status status;
	int option;
	int i;

	option = next_option(tool, argc, argv, options);
	if (option != OPTION_END)
		return option_status(option);
	if (optind == argc)
		return usage_error(tool, "what is to be freed?");
	status = tool_open(tool);
	if (status)
		return status;
	for (i = optind; i < argc; i++) {
		status = free_one(tool, argv[i]);
		if (status > worst)
			worst = status;
	}
	return worst;
}
