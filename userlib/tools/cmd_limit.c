// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem limit. */
#include "cgroup_limits.h"
#include "render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * An option that sets the limit of a charge has the number SET_LIMIT + charge.
 */
#define SET_LIMIT 0x100

/* What to do with a file of limits. */
enum file_action {
	FILE_NONE,
	FILE_CHECK = 'c',
	FILE_APPLY = 'p',
	FILE_WATCH = 'w',
};

/*
 * The limits to set, by charge. @all: for each function. @action, @file: or the
 * file that has the limits.
 */
struct limit_options {
	enum file_action action;
	const char *file;
	bool chosen;
	bool all;
	uint32_t whose;
	uint64_t cgroup;
	bool sets_any;
	bool sets[FLEXMEM_CHARGES];
	uint64_t limit[FLEXMEM_CHARGES];
};

/*
 * Limits. @allowance[i] is valid only if @known[i] is set. @path: of the cgroup;
 * or NULL. @effect is valid for one cgroup only.
 */
struct limits {
	bool own;
	uint32_t whose;
	uint64_t cgroup;
	char *path;
	bool known[FLEXMEM_CHARGES];
	struct flexmem_allowance allowance[FLEXMEM_CHARGES];
	struct limits_effect effect;
};

static bool choose_cgroup(struct tool *tool, struct limit_options *options)
{
	if (options->chosen) {
		usage_error(tool, "one --cgroup or --default, not more");
		return false;
	}
	options->chosen = true;
	return parse_cgroup(tool, optarg, &options->cgroup);
}

static bool choose_default(struct tool *tool, struct limit_options *options)
{
	if (options->chosen) {
		usage_error(tool, "one --cgroup or --default, not more");
		return false;
	}
	options->chosen = true;
	options->whose = FLEXMEM_FOR_DEFAULT;
	return true;
}

static bool choose_file(struct tool *tool, int option,
			struct limit_options *options)
{
	if (options->action) {
		usage_error(tool, "one --check, --apply or --watch, not more");
		return false;
	}
	options->action = (enum file_action)option;
	options->file = optarg;
	return true;
}

static bool set_amount(struct tool *tool, int option,
		       struct limit_options *options)
{
	uint32_t charge = option - SET_LIMIT;
	uint64_t *value = &options->limit[charge];

	if (!limits_parse(charge, optarg, value)) {
		usage_error(tool, "'%s' is neither a number nor none", optarg);
		return false;
	}
	options->sets_any = true;
	options->sets[charge] = true;
	return true;
}

static bool limit_option(struct tool *tool, int option,
			 struct limit_options *options)
{
	if (option == 'g')
		return choose_cgroup(tool, options);
	if (option == 'u')
		return choose_default(tool, options);
	if (option == 'a')
		return options->all = true;
	if (option == FILE_CHECK || option == FILE_APPLY ||
	    option == FILE_WATCH)
		return choose_file(tool, option, options);
	return option >= SET_LIMIT && set_amount(tool, option, options);
}

static bool check_file_options(struct tool *tool,
			       const struct limit_options *options)
{
	if (options->chosen || options->all || options->sets_any || tool->path)
		usage_error(tool,
			    "--check, --apply and --watch go with no other option: the file says all");
	else if (tool->shell)
		usage_error(tool, "a shell keeps to one device");
	else if (tool->json && options->action == FILE_WATCH)
		usage_error(tool, "--watch prints lines, not JSON");
	else
		return true;
	return false;
}

static bool check_limit(struct tool *tool, const struct limit_options *options)
{
	if (options->action)
		return check_file_options(tool, options);
	if (options->sets_any && !options->chosen) {
		usage_error(tool, "whose? --cgroup PATH or --default is needed");
		return false;
	}
	if ((options->whose || options->all) && !options->sets_any) {
		usage_error(tool, "a limit to set is needed");
		return false;
	}
	return true;
}

static bool limit_arguments(struct tool *tool, int argc, char **argv,
			    struct limit_options *options,
			    enum tool_status *status)
{
	static const struct option known[] = {
		{ "cgroup", required_argument, NULL, 'g' },
		{ "default", no_argument, NULL, 'u' },
		{ "all", no_argument, NULL, 'a' },
		{ "check", required_argument, NULL, FILE_CHECK },
		{ "apply", required_argument, NULL, FILE_APPLY },
		{ "watch", required_argument, NULL, FILE_WATCH },
		{ "bytes", required_argument, NULL,
		  SET_LIMIT + FLEXMEM_CHARGE_BYTES },
		{ "regions", required_argument, NULL,
		  SET_LIMIT + FLEXMEM_CHARGE_REGIONS },
		{ "handles", required_argument, NULL,
		  SET_LIMIT + FLEXMEM_CHARGE_HANDLES },
		{ "files", required_argument, NULL,
		  SET_LIMIT + FLEXMEM_CHARGE_FILES },
		COMMON_OPTIONS
	};
	int option;

	while ((option = next_option(tool, argc, argv, known)) != OPTION_END) {
		if (!limit_option(tool, option, options)) {
			*status = option_status(option);
			return false;
		}
	}
	*status = TOOL_USAGE;
	if (optind < argc) {
		usage_error(tool, "unexpected argument '%s'", argv[optind]);
		return false;
	}
	return check_limit(tool, options);
}

/*
 * Sets the limits one after the other. Limits that were set before a failure
 * stay set.
 */
static enum tool_status set_limits(struct tool *tool,
				   const struct limit_options *options,
				   struct limits *limits)
{
	uint32_t whose = options->whose;
	uint32_t i;
	int err;

	if (options->all)
		whose |= FLEXMEM_FOR_ALL_FUNCTIONS;
	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		if (!options->sets[i])
			continue;
		err = flexmem_device_set_limit(tool->device, whose,
					       options->cgroup, i,
					       options->limit[i],
					       &limits->allowance[i],
					       sizeof(limits->allowance[i]));
		if (err == -ENOENT)
			return tool_fail(tool, err,
					 "limit: no cgroup %" PRIu64,
					 options->cgroup);
		if (err)
			return tool_error(tool, err, NULL, "limit of %s",
					  charge_name(i));
		limits->known[i] = true;
	}
	return TOOL_OK;
}

/*
 * Reads back what was set, and what is in effect. A cgroup whose own limit was
 * removed may have another one.
 */
static enum tool_status read_back(struct tool *tool,
				  const struct limit_options *options,
				  struct limits *limits)
{
	char set[RENDER_AMOUNT_MAX], shown[RENDER_AMOUNT_MAX];
	uint64_t limit;
	uint32_t i;
	int err = limits_effect_read(tool->device, limits->cgroup,
				     &limits->effect);

	if (err)
		return tool_error(tool, err, NULL, "limit");
	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		limit = limits->effect.known ? limits->effect.charge[i].own :
					       FLEXMEM_UNLIMITED;
		if (!options->sets[i] ||
		    options->limit[i] == FLEXMEM_UNLIMITED ||
		    options->limit[i] == limit)
			continue;
		return tool_fail(tool, -EIO,
				 "limit of %s: %s was set, but the driver has %s",
				 charge_name(i),
				 render_amount(i, options->limit[i], set),
				 render_amount(i, limit, shown));
	}
	return TOOL_OK;
}

/* Finds another owner's limits, which only an administrator may see. */
static enum tool_status find_limits(struct tool *tool, struct limits *limits)
{
	uint32_t i;
	int err = limits_effect_read(tool->device, limits->cgroup,
				     &limits->effect);

	if (err)
		return tool_error(tool, err, NULL, "limit");
	if (!limits->effect.known)
		return tool_fail(tool, -ENOENT,
				 "limit: no cgroup %" PRIu64 " with an open file, memory or a limit that you may see",
				 limits->cgroup);
	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		limits->known[i] = true;
		limits->allowance[i] = (struct flexmem_allowance){
			.limit = limits->effect.charge[i].own,
			.used = limits->effect.charge[i].used,
		};
	}
	return TOOL_OK;
}

static enum tool_status own_limits(struct tool *tool, struct limits *limits)
{
	uint32_t i;
	int err;

	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		err = flexmem_device_get_limit(tool->device, i,
					       &limits->allowance[i],
					       sizeof(limits->allowance[i]));
		if (err)
			return tool_error(tool, err, NULL, "limit");
		limits->known[i] = true;
	}
	return TOOL_OK;
}

static void add_whose(struct table *table, const struct limits *limits)
{
	if (limits->own)
		table_add(table, "own cgroup");
	else if (limits->whose == FLEXMEM_FOR_DEFAULT)
		table_add(table, "default");
	else if (limits->path)
		table_add(table, "cgroup %s", limits->path);
	else
		table_add(table, "cgroup %" PRIu64, limits->cgroup);
}

/* The cgroup whose limit decides, by path if it has one here. */
static void add_effect(struct table *table, const struct limits_effect *effect,
		       uint32_t charge)
{
	char text[RENDER_AMOUNT_MAX];
	uint64_t limit = effect->charge[charge].limit;

	table_add(table, "%s", render_amount(charge, limit, text));
	if (limit == FLEXMEM_UNLIMITED)
		table_add(table, "-");
	else if (effect->charge[charge].path)
		table_add(table, "%s", effect->charge[charge].path);
	else
		table_add(table, "%" PRIu64, effect->charge[charge].by);
}

static void add_limits(struct table *table, const struct limits *limits)
{
	const struct flexmem_allowance *one;
	char text[RENDER_AMOUNT_MAX];
	uint32_t i;

	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		if (!limits->known[i])
			continue;
		one = &limits->allowance[i];
		add_whose(table, limits);
		table_add(table, "%s", charge_name(i));
		table_add(table, "%s", render_amount(i, one->used, text));
		table_add(table, "%s", render_amount(i, one->limit, text));
		if (limits->effect.known)
			add_effect(table, &limits->effect, i);
	}
}

static void print_limits(const struct limits *limits)
{
	static const char *const headings[] = {
		"<owner", "<what", "used", "limit", "effective", "<set by",
	};
	struct table table = {
		.headings = headings,
		.columns = limits->effect.known ? 6 : 4,
	};

	add_limits(&table, limits);
	table_print(&table, stdout, render_width(stdout));
	table_clear(&table);
}

static void json_add_effect(json_t *object, const struct limits_effect *effect,
			    uint32_t charge)
{
	uint64_t limit = effect->charge[charge].limit;
	bool limited = limit != FLEXMEM_UNLIMITED;

	json_add(object, "effective", json_limit(limit));
	json_add(object, "set_by_id",
		 limited ? json_number(effect->charge[charge].by) :
			   json_null());
	json_add(object, "set_by",
		 json_path(limited ? effect->charge[charge].path : NULL));
}

static json_t *json_limits(const struct limits *limits)
{
	json_t *object = json_checked(json_object());
	const struct flexmem_allowance *one;
	json_t *part;
	uint32_t i;

	json_add(object, "kind", json_string(limits->whose ? "default" : "cgroup"));
	json_add(object, "id", limits->cgroup ? json_number(limits->cgroup) :
						json_null());
	json_add(object, "path", json_path(limits->path));
	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		if (!limits->known[i])
			continue;
		one = &limits->allowance[i];
		part = json_checked(json_object());
		json_add(part, "used", json_number(one->used));
		json_add(part, "limit", json_limit(one->limit));
		if (limits->effect.known)
			json_add_effect(part, &limits->effect, i);
		json_add(object, charge_name(i), part);
	}
	return object;
}

static enum tool_status file_action(struct tool *tool,
				    const struct limit_options *options)
{
	if (options->action == FILE_CHECK)
		return limits_check(tool, options->file);
	if (options->action == FILE_APPLY)
		return limits_apply(tool, options->file);
	return limits_watch(tool, options->file);
}

enum tool_status cmd_limit(struct tool *tool, int argc, char **argv)
{
	struct limit_options options = { .chosen = false };
	struct limits limits = { .own = true };
	enum tool_status status;
	json_t *array;

	if (!limit_arguments(tool, argc, argv, &options, &status))
		return status;
	if (options.action)
		return file_action(tool, &options);
	status = tool_open(tool);
	if (status)
		return status;
	limits.own = !options.chosen;
	limits.whose = options.whose;
	limits.cgroup = options.cgroup;
	if (limits.own)
		status = own_limits(tool, &limits);
	else if (options.sets_any)
		status = set_limits(tool, &options, &limits);
	else
		status = find_limits(tool, &limits);
	if (!status && options.sets_any && !limits.whose)
		status = read_back(tool, &options, &limits);
	if (status) {
		limits_effect_clear(&limits.effect);
		return status;
	}
	limits.path = limits.cgroup ? cgroup_path(limits.cgroup) : NULL;
	if (tool->json) {
		array = json_checked(json_array());
		json_array_append_new(array, json_limits(&limits));
		json_print(tool, array);
	} else {
		print_limits(&limits);
	}
	limits_effect_clear(&limits.effect);
	free(limits.path);
	return TOOL_OK;
}
