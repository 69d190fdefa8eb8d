// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem cdi. */
#include "cdi.h"
#include "functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* @shares: those of --share and --unlimited. */
struct cdi_options {
	struct cdi_share *shares;
	size_t count;
	const char *remove;
	bool refresh;
	bool transient;
	bool pod;
};

/* Reads BYTES[:REGIONS:HANDLES]. */
static bool read_amounts(struct cdi_share *share, const char *text)
{
	char copy[128];
	char *regions, *handles = NULL;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	regions = strchr(copy, ':');
	if (regions) {
		*regions++ = '\0';
		handles = strchr(regions, ':');
		if (!handles)
			return false;
		*handles++ = '\0';
	}
	return parse_size(copy, &share->bytes) && share->bytes &&
	       (!regions || (parse_number(regions, UINT64_MAX, &share->regions) &&
			     parse_number(handles, UINT64_MAX, &share->handles)));
}

/* Reads what follows the function. */
static bool read_rest(struct cdi_share *share, const char *rest)
{
	if (share->unlimited)
		return !*rest;
	return *rest == ':' && read_amounts(share, rest + 1);
}

/*
 * Reads NAME:FUNCTION, with amounts after it if the share has limits, for one name
 * of one function. Names of shares and of functions may have colons. Returns in
 * how many ways the text can be read.
 */
static unsigned int try_function(struct cdi_share *share, const char *text,
				 const struct flexmem_identity *identity,
				 const char *function)
{
	size_t length = strlen(function);
	struct cdi_share read;
	unsigned int ways = 0;
	const char *at;

	for (at = strchr(text, ':'); at && length; at = strchr(at + 1, ':')) {
		read = (struct cdi_share){ .unlimited = share->unlimited };
		if ((size_t)(at - text) > CDI_NAME_MAX ||
		    strncmp(at + 1, function, length))
			continue;
		memcpy(read.name, text, (size_t)(at - text));
		if (!cdi_is_name(read.name) ||
		    !read_rest(&read, at + 1 + length))
			continue;
		free(share->function);
		*share = read;
		share->function = copy_text(identity->id);
		ways++;
	}
	return ways;
}

enum function_name { BY_ID, BY_ADDRESS, BY_INDEX, FUNCTION_NAMES };

/* In how many ways the text can be read with one kind of name for functions. */
static unsigned int try_functions(struct cdi_share *share, const char *text,
				  const struct fmlib_functions *functions,
				  enum function_name kind)
{
	unsigned int ways = 0;
	const char *name;
	char index[24];
	size_t i;

	for (i = 0; i < functions->count; i++) {
		const struct flexmem_identity *one = &functions->list[i];

		snprintf(index, sizeof(index), "%zu", i);
		name = kind == BY_ID ? one->id :
		       kind == BY_INDEX ? index :
		       strcmp(one->bus, "pci") ? "" : one->address;
		ways += try_function(share, text, one, name);
	}
	return ways;
}

/*
 * An amount looks like an index, so the id of a function counts before an address,
 * and that before an index.
 */
static bool add_share(struct tool *tool, struct cdi_options *options,
		      const char *text, bool unlimited)
{
	struct cdi_share share = { .unlimited = unlimited };
	struct fmlib_functions functions;
	unsigned int ways = 0;
	int kind;
	int err = fmlib_functions_list(&functions, false);

	if (err) {
		tool_error(tool, err, NULL, "cdi");
		return false;
	}
	for (kind = 0; kind < FUNCTION_NAMES && !ways; kind++)
		ways = try_functions(&share, text, &functions,
				     (enum function_name)kind);
	free(functions.list);
	if (ways != 1) {
		free(share.function);
		usage_error(tool, ways ? "'%s' can be read in several ways: name the function by its id" :
			    unlimited ? "'%s' is not NAME:FUNCTION of a function that is here" :
					"'%s' is not NAME:FUNCTION:BYTES[:REGIONS:HANDLES] of a function that is here",
			    text);
		return false;
	}
	options->shares = grow(options->shares, options->count + 1,
			       sizeof(*options->shares));
	options->shares[options->count++] = share;
	return true;
}

static bool cdi_option(struct tool *tool, int option,
		       struct cdi_options *options)
{
	switch (option) {
	case 's':
	case 'u':
		return add_share(tool, options, optarg, option == 'u');
	case 't':
		return options->transient = true;
	case 'p':
		return options->pod = true;
	case 'f':
		return options->refresh = true;
	case 'r':
		options->remove = optarg;
		if (cdi_is_name(optarg))
			return true;
		usage_error(tool, "'%s' is no name of a share", optarg);
		return false;
	default:
		return false;
	}
}

static bool cdi_arguments(struct tool *tool, int argc, char **argv,
			  struct cdi_options *options,
			  enum tool_status *status)
{
	static const struct option known[] = {
		{ "share", required_argument, NULL, 's' },
		{ "unlimited", required_argument, NULL, 'u' },
		{ "transient", no_argument, NULL, 't' },
		{ "pod", no_argument, NULL, 'p' },
		{ "remove", required_argument, NULL, 'r' },
		{ "refresh", no_argument, NULL, 'f' },
		COMMON_OPTIONS
	};
	int option;

	while ((option = next_option(tool, argc, argv, known)) != OPTION_END) {
		if (!cdi_option(tool, option, options)) {
			*status = option_status(option);
			return false;
		}
	}
	*status = TOOL_USAGE;
	if (optind < argc)
		usage_error(tool, "unexpected argument '%s'", argv[optind]);
	else if (tool->path)
		usage_error(tool, "'cdi' names the function in --share");
	else if (!!options->count + !!options->remove + options->refresh != 1)
		usage_error(tool, "one of --share, --unlimited, --remove and --refresh is needed");
	else if ((options->transient || options->pod) && !options->count)
		usage_error(tool, "--transient and --pod go with --share");
	else
		return true;
	return false;
}

/* Warns if a function has a share and also a device without a limit. */
static void warn(const struct cdi_share *share)
{
	struct cdi_share *others;
	size_t count, i;

	if (!cdi_read_all(&others, &count)) {
		for (i = 0; i < count; i++)
			if (others[i].unlimited != share->unlimited &&
			    !strcmp(others[i].function, share->function))
				fprintf(stderr, "flexmem: warning: %s has a share and an unlimited device: flexmem.org/%s=%s\n",
					share->function,
					others[i].unlimited ? "vf" : "share",
					others[i].name);
		cdi_clear(others, count);
	}
	free(others);
}

static json_t *json_share(const struct cdi_share *share, const char *path)
{
	json_t *object = json_checked(json_object());

	json_add(object, "device",
		 json_sprintf("flexmem.org/%s=%s",
			      share->unlimited ? "vf" : "share", share->name));
	json_add(object, "file", json_string(path));
	json_add(object, "function", json_string(share->function));
	json_add(object, "node", json_string(share->node));
	return object;
}

static enum tool_status write_share(struct tool *tool, struct cdi_share *share,
				    bool replace, json_t *array)
{
	char path[PATH_MAX];
	int err = cdi_find_node(share);

	if (!err)
		err = cdi_write(share, replace);
	cdi_path(share, path);
	if (err == -EEXIST)
		return tool_fail(tool, err,
				 "cdi: there is another share of the name %s: --remove it first",
				 share->name);
	if (err)
		return tool_fail(tool, err, "cdi: %s: %s", path, strerror(-err));
	if (array && json_array_append_new(array, json_share(share, path)))
		json_checked(NULL);
	if (!array)
		printf("flexmem.org/%s=%s  %s\n",
		       share->unlimited ? "vf" : "share", share->name, path);
	return TOOL_OK;
}

/*
 * Writes the shares. In a refresh a share of a function that is gone stays as it
 * is: the hook lets no container start with it.
 */
static enum tool_status write_shares(struct tool *tool,
				     struct cdi_share *shares, size_t count,
				     bool refresh)
{
	json_t *array = tool->json ? json_checked(json_array()) : NULL;
	enum tool_status status = TOOL_OK, worst = TOOL_OK;
	json_t *object;
	size_t i;

	for (i = 0; i < count; i++) {
		if (refresh && cdi_find_node(&shares[i]) == -ENODEV)
			continue;
		status = write_share(tool, &shares[i], refresh, array);
		if (status > worst)
			worst = status;
		if (!refresh && !status)
			warn(&shares[i]);
	}
	if (array && !worst) {
		object = json_checked(json_object());
		json_add(object, "devices", array);
		json_print(tool, object);
	} else {
		json_decref(array);
	}
	return worst;
}

static enum tool_status refresh(struct tool *tool)
{
	struct cdi_share *shares;
	enum tool_status status;
	size_t count;
	int err = cdi_read_all(&shares, &count);

	if (err)
		status = tool_error(tool, err, NULL, "cdi");
	else
		status = write_shares(tool, shares, count, true);
	cdi_clear(shares, count);
	free(shares);
	return status;
}

static enum tool_status remove_share(struct tool *tool, const char *name)
{
	json_t *object;
	int err = cdi_remove(name, false);

	if (!err)
		err = cdi_remove(name, true);
	if (err)
		return tool_fail(tool, err, "cdi: %s: %s", name, strerror(-err));
	if (tool->json) {
		object = json_checked(json_object());
		json_add(object, "removed", json_string(name));
		json_print(tool, object);
	}
	return TOOL_OK;
}

enum tool_status cmd_cdi(struct tool *tool, int argc, char **argv)
{
	struct cdi_options options = { .shares = NULL };
	enum tool_status status;
	size_t i;

	if (cdi_arguments(tool, argc, argv, &options, &status)) {
		for (i = 0; i < options.count; i++) {
			options.shares[i].pod = options.pod;
			if (options.transient)
				options.shares[i].folder = CDI_TRANSIENT;
		}
		if (options.refresh)
			status = refresh(tool);
		else if (options.remove)
			status = remove_share(tool, options.remove);
		else
			status = write_shares(tool, options.shares,
					      options.count, false);
	}
	cdi_clear(options.shares, options.count);
	free(options.shares);
	return status;
}
