// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem shell: several commands on one open file. */
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_WORDS 64

static int split(char *line, char *words[MAX_WORDS + 1])
{
	char *rest = NULL;
	char *word;
	int count = 0;

	for (word = strtok_r(line, " \t\r\n", &rest); word;
	     word = strtok_r(NULL, " \t\r\n", &rest)) {
		if (count == MAX_WORDS)
			return -1;
		words[count++] = word;
	}
	words[count] = NULL;
	return count;
}

/* Runs a line of @count words. Sets *@quit at the last line. */
static enum tool_status run_words(struct tool *tool, int count, char **words,
				  bool *quit)
{
	char text[TOOL_TEXT_MAX];

	if (!strcmp(words[0], "quit") || !strcmp(words[0], "exit")) {
		*quit = true;
		return TOOL_OK;
	}
	tool->command = find_command(words[0]);
	if (!tool->command || !tool->command->in_shell) {
		tool_fail(tool, -EINVAL, "no command '%s'%s; try 'help'",
			  words[0],
			  tool->command ? "" : suggestion(words[0], text));
		tool->command = NULL;
		return TOOL_USAGE;
	}
	optind = 0;
	return tool->command->run(tool, count, words);
}

static enum tool_status run_line(struct tool *tool, char *line, bool *quit)
{
	char *words[MAX_WORDS + 1];
	enum tool_status status;
	bool json = tool->json;
	int count;

	count = split(line, words);
	if (count < 0) {
		tool_fail(tool, -EINVAL, "the line has too many words");
		status = TOOL_USAGE;
	} else if (!count || words[0][0] == '#') {
		return TOOL_OK;
	} else {
		tool->json |= wants_json(count, words);
		status = run_words(tool, count, words, quit);
	}
	tool_finish(tool);
	tool->json = json;
	return status;
}

static enum tool_status run_lines(struct tool *tool, bool interactive)
{
	enum tool_status worst = TOOL_OK;
	enum tool_status status;
	char *line = NULL;
	bool quit = false;
	size_t size = 0;

	while (!quit) {
		/* With --json stdout is for reports only. */
		if (interactive)
			fputs("flexmem> ", tool->json ? stderr : stdout);
		fflush(stdout);
		if (getline(&line, &size, stdin) < 0)
			break;
		status = run_line(tool, line, &quit);
		if (status > worst)
			worst = status;
	}
	if (interactive && !quit)
		fputc('\n', tool->json ? stderr : stdout);
	free(line);
	return interactive ? TOOL_OK : worst;
}

enum tool_status cmd_shell(struct tool *tool, int argc, char **argv)
{
	enum tool_status status;

	if (!only_common_options(tool, argc, argv, &status))
		return status;
	status = tool_open(tool);
	if (status)
		return status;
	tool->shell = true;
	return run_lines(tool, isatty(STDIN_FILENO));
}
