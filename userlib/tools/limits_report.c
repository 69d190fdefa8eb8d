// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem limit --check and --apply. */
#include "cgroup_limits.h"
#include "render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum tool_status limits_open(struct tool *tool, const char *name,
			     struct limits_file *file)
{
	size_t i;
	int err = limits_file_read(file, name);

	if (err)
		return tool_fail(tool, err, "limit: %s: %s", name, strerror(-err));
	for (i = 0; i < file->nr_mistakes; i++)
		tool_fail(tool, -EINVAL, "%s:%u: %s", name,
			  file->mistakes[i].number, file->mistakes[i].text);
	return file->nr_mistakes ? TOOL_FAILED : TOOL_OK;
}

static json_t *json_mistakes(const struct limits_file *file)
{
	json_t *array = json_checked(json_array());
	json_t *object;
	size_t i;

	for (i = 0; i < file->nr_mistakes; i++) {
		object = json_checked(json_object());
		json_add(object, "line", json_number(file->mistakes[i].number));
		json_add(object, "text", json_text(file->mistakes[i].text));
		if (json_array_append_new(array, object))
			json_checked(NULL);
	}
	return array;
}

static void json_check(struct tool *tool, const char *name,
		       const struct limits_file *file)
{
	json_t *object = json_checked(json_object());

	json_add(object, "file", json_text(name));
	json_add(object, "lines", json_number(file->count));
	json_add(object, "mistakes", json_mistakes(file));
	json_print(tool, object);
}

enum tool_status limits_check(struct tool *tool, const char *name)
{
	struct limits_file file;
	enum tool_status status = limits_open(tool, name, &file);
	char *escaped;

	/* A file that cannot be read has an error and no mistakes. */
	if (tool->json && (!status || file.nr_mistakes)) {
		json_check(tool, name, &file);
	} else if (!status) {
		escaped = escaped_text(name);
		printf("%s: %zu %s\n", escaped, file.count,
		       file.count == 1 ? "line" : "lines");
		free(escaped);
	}
	limits_file_clear(&file);
	return status;
}

static void add_row(struct table *table, const struct limits_line *line,
		    const struct limits_outcome *outcome)
{
	char *owner = limits_owner(line);

	table_add(table, "%u", line->number);
	table_add(table, "%s", owner);
	table_add(table, "%s", line->function ? line->function : "all");
	table_add(table, "%s", limits_state_name(outcome->state));
	free(owner);
}

static void print_outcomes(const struct limits_file *file,
			   const struct limits_outcome *outcomes)
{
	static const char *const headings[] = {
		"line", "<owner", "<function", "<state",
	};
	struct table table = { .headings = headings, .columns = 4 };
	size_t i;

	for (i = 0; i < file->count; i++)
		add_row(&table, &file->lines[i], &outcomes[i]);
	table_print(&table, stdout, render_width(stdout));
	table_clear(&table);
}

static json_t *json_outcome(const struct limits_line *line,
			    const struct limits_outcome *outcome)
{
	json_t *object = json_checked(json_object());
	char *owner = limits_owner(line);

	json_add(object, "line", json_number(line->number));
	json_add(object, "owner", json_text(owner));
	json_add(object, "path", json_path(line->path));
	json_add(object, "id", outcome->cgroup ? json_number(outcome->cgroup) :
						 json_null());
	json_add(object, "function",
		 json_text(line->function ? line->function : "all"));
	json_add(object, "functions", json_number(outcome->functions));
	json_add(object, "state",
		 json_string(limits_state_name(outcome->state)));
	json_add(object, "error",
		 outcome->error ? json_error(outcome->error, outcome->text,
					     NULL) :
				  json_null());
	free(owner);
	return object;
}

static void json_outcomes(struct tool *tool, const char *name,
			  const struct limits_file *file,
			  const struct limits_outcome *outcomes)
{
	json_t *object = json_checked(json_object());
	json_t *array = json_checked(json_array());
	size_t i;

	for (i = 0; i < file->count; i++)
		if (json_array_append_new(array, json_outcome(&file->lines[i],
							      &outcomes[i])))
			json_checked(NULL);
	json_add(object, "file", json_text(name));
	json_add(object, "lines", array);
	json_print(tool, object);
}

static enum tool_status report(struct tool *tool, const char *name,
			       const struct limits_file *file,
			       const struct limits_outcome *outcomes)
{
	enum tool_status status = TOOL_OK;
	size_t i;

	for (i = 0; i < file->count; i++)
		if (outcomes[i].error)
			status = tool_fail(tool, outcomes[i].error,
					   "%s:%u: %s", name,
					   file->lines[i].number,
					   outcomes[i].text);
	if (tool->json)
		json_outcomes(tool, name, file, outcomes);
	else
		print_outcomes(file, outcomes);
	return status;
}

static enum tool_status apply(struct tool *tool, const char *name,
			      const struct limits_file *file)
{
	struct limits_outcome *outcomes = NULL;
	enum tool_status status;
	struct limits_file lines;
	int err = limits_expand(file, &lines);

	if (!err) {
		outcomes = grow(NULL, lines.count + 1, sizeof(*outcomes));
		err = limits_set(&lines, NULL, outcomes);
	}
	if (err) {
		status = tool_error(tool, err, NULL, "limit: %s", name);
		free(outcomes);
	} else {
		status = report(tool, name, &lines, outcomes);
		limits_outcomes_clear(outcomes, lines.count);
	}
	limits_file_clear(&lines);
	return status;
}

/* Nothing is set if a line has a mistake. */
enum tool_status limits_apply(struct tool *tool, const char *name)
{
	struct limits_file file;
	enum tool_status status = limits_open(tool, name, &file);

	if (!status)
		status = apply(tool, name, &file);
	limits_file_clear(&file);
	return status;
}
