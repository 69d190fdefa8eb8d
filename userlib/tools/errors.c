// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Errors. They are printed as a line on stderr, and with --json also as an
 * object on stdout. A line is written with one call, because other processes
 * may write to the same stderr.
 */
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "escape.h"

static char *format_text(const char *format, va_list arguments)
	__attribute__((format(printf, 1, 0)));

char *escaped_text(const char *text)
{
	size_t left = strlen(text);
	char *escaped = grow(NULL, left + 1, 4);
	char *at = escaped;
	char one[FMLIB_ESCAPED_MAX];
	size_t size;

	for (; left; text += size, left -= size) {
		size = fmlib_escape(text, left, one);
		at = stpcpy(at, one);
	}
	*at = '\0';
	return escaped;
}

/* Prints the line of an error with one call. The text comes without escapes. */
static void print_error(const char *text)
{
	char *escaped = escaped_text(text);

	fprintf(stderr, "flexmem: %s\n", escaped);
	free(escaped);
}

/* The caller frees the text. */
static char *format_text(const char *format, va_list arguments)
{
	va_list again;
	char *text;
	int length;

	va_copy(again, arguments);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	text = grow(NULL, (size_t)(length < 0 ? 0 : length) + 1, 1);
	text[0] = '\0';
	if (length > 0)
		vsnprintf(text, (size_t)length + 1, format, arguments);
	return text;
}

/*
 * Keeps the first error for the report, because later ones may be its
 * consequences.
 */
static void keep_error(struct tool *tool, int error, const char *text,
		       const struct flexmem_failure *failure)
{
	if (tool->json && !tool->error)
		tool->error = json_error(error, text, failure);
}

enum tool_status tool_error(struct tool *tool, int error,
			    const struct flexmem_failure *failure,
			    const char *format, ...)
{
	char reason[TOOL_TEXT_MAX];
	va_list arguments;
	size_t length;
	char *what;
	char *text;

	flexmem_error_text(error, failure, failure ? sizeof(*failure) : 0,
			   reason, sizeof(reason));
	va_start(arguments, format);
	what = format_text(format, arguments);
	va_end(arguments);
	length = strlen(what) + strlen(reason) + 3;
	text = grow(NULL, length, 1);
	snprintf(text, length, "%s: %s", what, reason);
	print_error(text);
	keep_error(tool, error, text, failure);
	free(text);
	free(what);
	return TOOL_FAILED;
}

enum tool_status tool_fail(struct tool *tool, int error, const char *format,
			   ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	print_error(text);
	keep_error(tool, error, text, NULL);
	free(text);
	return TOOL_FAILED;
}

enum tool_status file_error(struct tool *tool, int error, const char *path)
{
	return tool_fail(tool, error, "%s: %s", path, strerror(-error));
}

enum tool_status usage_error(struct tool *tool, const char *format, ...)
{
	const char *name = tool->command ? tool->command->name : "";
	const char *space = tool->command ? " " : "";
	va_list arguments;
	char *escaped;
	char *text;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	escaped = escaped_text(text);
	fprintf(stderr, "flexmem%s%s: %s\nTry 'flexmem%s%s --help'.\n", space,
		name, escaped, space, name);
	keep_error(tool, -EINVAL, text, NULL);
	free(escaped);
	free(text);
	return TOOL_USAGE;
}

static const struct tool *running;

void tool_begin(const struct tool *tool)
{
	running = tool;
}

static void write_text(int fd, const char *text)
{
	ssize_t written = write(fd, text, strlen(text));

	(void)written;
}

void tool_last_words(const char *text, const char *json)
{
	write_text(STDERR_FILENO, text);
	if (running && running->json && !running->reported)
		write_text(STDOUT_FILENO, json);
}

void tool_finish(struct tool *tool)
{
	json_t *object;

	if (tool->error && !tool->reported) {
		object = json_checked(json_object());
		json_add(object, "error", json_incref(tool->error));
		json_print(tool, object);
	}
	json_decref(tool->error);
	tool->error = NULL;
	tool->reported = false;
}

void tool_text(struct tool *tool, const char *key,
	       void (*print)(FILE *file, const struct tool *tool))
{
	char *text = NULL;
	size_t length = 0;
	json_t *object;
	FILE *file;

	if (!tool->json) {
		print(stdout, tool);
		return;
	}
	file = open_memstream(&text, &length);
	if (file) {
		print(file, tool);
		fclose(file);
	}
	object = json_checked(json_object());
	json_add(object, key, json_string(text ? text : ""));
	json_print(tool, object);
	free(text);
}
