// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem list: all functions that this process sees. */
#include "tool.h"
#include "functions.h"
#include "policy.h"
#include "render.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* What is known of a function. @error: why it could not be opened, or 0. */
struct listed {
	struct flexmem_identity identity;
	struct flexmem_properties properties;
	struct flexmem_domain_state domains[FLEXMEM_DOMAINS];
	int error;
};

/* Opens a function and asks for its properties, then closes it. */
static int look(struct listed *function)
{
	struct flexmem_device *device;
	int err = flexmem_device_open(&device, function->identity.path);

	if (err)
		return err;
	err = flexmem_device_properties(device, &function->properties,
					sizeof(function->properties));
	if (!err)
		err = read_domains(device, function->domains);
	flexmem_device_close(device);
	return err;
}

/*
 * Reads all functions into an array of the caller, who frees it. A function
 * that goes away meanwhile ends the list.
 */
static int read_functions(struct listed **functions, unsigned int *count)
{
	unsigned int most, i;
	int err = flexmem_device_count(&most);

	*functions = NULL;
	*count = 0;
	if (err)
		return err;
	*functions = grow(NULL, (size_t)most + 1, sizeof(**functions));
	for (i = 0; i < most; i++) {
		struct listed *function = &(*functions)[i];

		*function = (struct listed){ 0 };
		err = flexmem_device_identity(i, &function->identity,
					      sizeof(function->identity));
		if (err)
			return err == -ENODEV ? 0 : err;
		function->error = look(function);
		*count = i + 1;
	}
	return 0;
}

static const char *function_name(const struct listed *function)
{
	return function->identity.function == FLEXMEM_PF ? "PF" : "VF";
}

/* The function's state, or why the caller cannot use it. */
static const char *access_name(const struct listed *function,
			       char text[TOOL_TEXT_MAX])
{
	if (!function->error)
		return condition_name(function->properties.condition);
	flexmem_error_text(function->error, NULL, 0, text, TOOL_TEXT_MAX);
	return text;
}

static void add_row(struct table *table, unsigned int index,
		    const struct listed *function)
{
	const struct flexmem_identity *identity = &function->identity;
	char text[TOOL_TEXT_MAX], capacity[FMLIB_HUMAN_MAX];

	table_add(table, "%u", index);
	table_add(table, "%s", identity->path);
	table_add(table, "%s", identity->id);
	table_add(table, "%s", function_name(function));
	if (function->error) {
		table_add(table, "%s", "");
		table_add(table, "%s", "");
		table_add(table, "%s", "");
	} else {
		table_add(table, "%u", function->properties.slots);
		table_add(table, "%s",
			  fmlib_human(function->properties.capacity, capacity));
		table_add(table, "%u", function->domains[0].count);
	}
	table_add(table, "%s", *identity->driver ? identity->driver : "?");
	table_add(table, "%s", access_name(function, text));
}

static void print_list(const struct listed *functions, unsigned int count)
{
	static const char *const headings[] = {
		"index", "<node", "<id", "<function", "slots",
		"capacity", "domains", "<driver", "<access",
	};
	struct table table = {
		.headings = headings,
		.columns = sizeof(headings) / sizeof(headings[0]),
	};
	unsigned int i;

	for (i = 0; i < count; i++)
		add_row(&table, i, &functions[i]);
	table_print(&table, stdout, render_width(stdout));
	table_clear(&table);
}

static json_t *text_or_null(const char *text)
{
	return *text ? json_text(text) : json_checked(json_null());
}

static json_t *json_function(unsigned int index, const struct listed *function)
{
	const struct flexmem_identity *identity = &function->identity;
	json_t *object = json_checked(json_object());
	bool known = !function->error;

	json_add(object, "index", json_number(index));
	json_add(object, "node", json_text(identity->path));
	json_add(object, "id", json_text(identity->id));
	json_add(object, "function", json_text(function_name(function)));
	json_add(object, "bus", text_or_null(identity->bus));
	json_add(object, "address", text_or_null(identity->address));
	json_add(object, "parent", text_or_null(identity->parent));
	json_add(object, "driver", text_or_null(identity->driver));
	json_add(object, "state",
		 known ? json_string(condition_name(function->properties.condition)) :
			 json_checked(json_null()));
	json_add(object, "slots",
		 known ? json_number(function->properties.slots) :
			 json_checked(json_null()));
	json_add(object, "capacity",
		 known ? json_number(function->properties.capacity) :
			 json_checked(json_null()));
	json_add(object, "domains",
		 known ? json_domains(function->domains) :
			 json_checked(json_null()));
	json_add(object, "error",
		 known ? json_checked(json_null()) :
			 json_error(function->error, NULL, NULL));
	return object;
}

static void report_list(struct tool *tool, const struct listed *functions,
			unsigned int count)
{
	json_t *array = json_checked(json_array());
	json_t *object = json_checked(json_object());
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (json_array_append_new(array,
					  json_function(i, &functions[i])))
			json_checked(NULL);
	}
	json_add(object, "functions", array);
	json_print(tool, object);
}

/* Whether two paths lead to nodes of the same function. */
static bool is_same_node(const char *path, const char *other)
{
	struct stat a, b;

	return !stat(path, &a) && !stat(other, &b) && S_ISCHR(a.st_mode) &&
	       S_ISCHR(b.st_mode) && a.st_rdev == b.st_rdev;
}

/*
 * Prints the id of one function, without opening it. udev's rule calls this for
 * each function, so it lists the functions once.
 */
static enum tool_status print_id(struct tool *tool, const char *node)
{
	struct fmlib_functions functions;
	const char *id = NULL;
	json_t *object;
	size_t i;
	int err;

	err = fmlib_functions_list(&functions, false);
	if (err)
		return tool_error(tool, err, NULL, "list");
	for (i = 0; i < functions.count && !id; i++) {
		if (is_same_node(node, functions.list[i].path))
			id = functions.list[i].id;
	}
	if (id && tool->json) {
		object = json_checked(json_object());
		json_add(object, "id", json_text(id));
		json_print(tool, object);
	} else if (id) {
		puts(id);
	}
	free(functions.list);
	return id ? TOOL_OK : tool_error(tool, -ENODEV, NULL, "%s", node);
}

enum tool_status cmd_list(struct tool *tool, int argc, char **argv)
{
	static const struct option options[] = {
		{ "id", required_argument, NULL, 'i' },
		COMMON_OPTIONS
	};
	struct listed *functions;
	const char *node = NULL;
	unsigned int count;
	int option, err;

	while ((option = next_option(tool, argc, argv, options)) !=
	       OPTION_END) {
		if (option != 'i')
			return option_status(option);
		node = optarg;
	}
	if (optind < argc)
		return usage_error(tool, "unexpected argument '%s'",
				   argv[optind]);
	if (tool->path)
		return usage_error(tool, "'list' shows all functions, not one");
	if (node)
		return print_id(tool, node);
	err = read_functions(&functions, &count);
	if (err) {
		free(functions);
		return tool_error(tool, err, NULL, "list");
	}
	if (tool->json)
		report_list(tool, functions, count);
	else if (count)
		print_list(functions, count);
	else
		printf("no function\n");
	free(functions);
	return TOOL_OK;
}
