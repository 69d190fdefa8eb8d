// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Reports on one function, or with --all on each function that is visible. */
#include "tool.h"

#include <errno.h>

bool report_options(struct tool *tool, int argc, char **argv,
		    enum tool_status *status)
{
	static const struct option options[] = { REPORT_OPTIONS };

	return no_other_options(tool, argc, argv, options, status);
}

static enum tool_status show_one(struct tool *tool, report_fn show)
{
	enum tool_status status = tool_open(tool);

	return status ? status : show(tool);
}

/*
 * Adds the function to the value that its report has printed. A report that
 * failed has the error in its place.
 */
static void name_function(struct tool *tool,
			  const struct flexmem_identity *identity)
{
	json_t *object;

	if (tool->error) {
		object = json_checked(json_object());
		json_add(object, "error", tool->error);
		tool->error = NULL;
		json_print(tool, object);
	}
	object = json_array_get(tool->reports,
				json_array_size(tool->reports) - 1);
	json_add(object, "device", json_text(identity->path));
	json_add(object, "id", json_text(identity->id));
}

static enum tool_status show_function(struct tool *tool, report_fn show,
				      const struct flexmem_identity *identity)
{
	enum tool_status status;

	tool->path = identity->path;
	if (!tool->json)
		printf("%s (%s)\n", identity->path, identity->id);
	status = show_one(tool, show);
	if (tool->json)
		name_function(tool, identity);
	flexmem_device_close(tool->device);
	tool->device = NULL;
	tool->path = NULL;
	return status;
}

/* A function that goes away meanwhile ends the list. */
static enum tool_status show_functions(struct tool *tool, report_fn show)
{
	struct flexmem_identity identity;
	enum tool_status status, worst = TOOL_OK;
	unsigned int i;
	int err;

	for (i = 0; !(err = flexmem_device_identity(i, &identity,
						    sizeof(identity))); i++) {
		if (i && !tool->json)
			putchar('\n');
		status = show_function(tool, show, &identity);
		if (status > worst)
			worst = status;
	}
	if (err != -ENODEV)
		return tool_error(tool, err, NULL, "%s", tool->command->name);
	if (!i && !tool->json)
		puts("no function");
	return worst;
}

enum tool_status tool_report(struct tool *tool, report_fn show)
{
	enum tool_status status;
	json_t *object;

	if (!tool->all)
		return show_one(tool, show);
	if (tool->path)
		return usage_error(tool, "--all and --device exclude each other");
	if (tool->json)
		tool->reports = json_checked(json_array());
	status = show_functions(tool, show);
	if (tool->json) {
		object = json_checked(json_object());
		json_add(object, "functions", tool->reports);
		tool->reports = NULL;
		json_print(tool, object);
	}
	return status;
}
