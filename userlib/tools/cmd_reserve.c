// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem reserve. */
#include "tool.h"
#include "render.h"

#include <inttypes.h>
#include <stdlib.h>

struct reserve_options {
	bool chosen;
	uint64_t cgroup;
	bool counted;
	uint64_t regions;
	uint64_t size;
};

static bool set_option(struct tool *tool, int option,
		       struct reserve_options *options)
{
	switch (option) {
	case 'g':
		options->chosen = true;
		return parse_cgroup(tool, optarg, &options->cgroup);
	case 'r':
		options->counted = true;
		if (parse_number(optarg, UINT32_MAX, &options->regions))
			return true;
		usage_error(tool, "'%s' is no number of regions", optarg);
		return false;
	case 's':
		if (parse_size(optarg, &options->size))
			return true;
		usage_error(tool, "'%s' is no size", optarg);
		return false;
	default:
		return false;
	}
}

static bool reserve_arguments(struct tool *tool, int argc, char **argv,
			      struct reserve_options *options,
			      enum tool_status *status)
{
	static const struct option known[] = {
		{ "cgroup", required_argument, NULL, 'g' },
		{ "regions", required_argument, NULL, 'r' },
		{ "size", required_argument, NULL, 's' },
		COMMON_OPTIONS
	};
	int option;

	while ((option = next_option(tool, argc, argv, known)) != OPTION_END) {
		if (!set_option(tool, option, options)) {
			*status = option_status(option);
			return false;
		}
	}
	*status = TOOL_USAGE;
	if (optind < argc)
		usage_error(tool, "unexpected argument '%s'", argv[optind]);
	else if (!options->chosen || !options->counted)
		usage_error(tool, "--cgroup PATH and --regions N are needed");
	else if (!options->regions && options->size)
		usage_error(tool, "--size goes with one region or more");
	else
		return true;
	return false;
}

/* If there is no --size, chooses the size that the driver tries first. */
static int choose_size(struct tool *tool, struct reserve_options *options)
{
	struct flexmem_properties properties;
	int err;

	if (!options->regions || options->size)
		return 0;
	err = flexmem_device_properties(tool->device, &properties,
					sizeof(properties));
	if (!err)
		options->size = properties.fallback_sizes[0];
	return err;
}

static void print_reservation(struct tool *tool,
			      const struct reserve_options *options)
{
	char *path = cgroup_path(options->cgroup);
	char text[FMLIB_HUMAN_MAX];
	char name[24];
	char *cgroup;
	json_t *object;

	snprintf(name, sizeof(name), "%" PRIu64, options->cgroup);
	cgroup = escaped_text(path ? path : name);
	if (tool->json) {
		object = json_checked(json_object());
		json_add(object, "cgroup", json_number(options->cgroup));
		json_add(object, "path", json_path(path));
		json_add(object, "regions", json_number(options->regions));
		json_add(object, "size", json_number(options->size));
		json_print(tool, object);
	} else if (!options->regions) {
		printf("cgroup %s has no reservation\n", cgroup);
	} else {
		printf("cgroup %s has %" PRIu64 " reserved %s of %s\n", cgroup,
		       options->regions,
		       options->regions == 1 ? "region" : "regions",
		       fmlib_human(options->size, text));
	}
	free(cgroup);
	free(path);
}

enum tool_status cmd_reserve(struct tool *tool, int argc, char **argv)
{
	struct reserve_options options = { .chosen = false };
	enum tool_status status;
	uint32_t limit = 0;
	int err;

	if (!reserve_arguments(tool, argc, argv, &options, &status))
		return status;
	status = tool_open(tool);
	if (status)
		return status;
	err = choose_size(tool, &options);
	if (!err)
		err = flexmem_device_reserve(tool->device, options.cgroup,
					     options.size,
					     (uint32_t)options.regions, &limit);
	if (err && limit)
		return tool_fail(tool, err, "reserve: no further region: %s",
				 flexmem_limit_name(limit));
	if (err)
		return tool_error(tool, err, NULL, "reserve");
	print_reservation(tool, &options);
	return TOOL_OK;
}
