// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem shell: several commands on one open file. */
#include "tool.h"

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

/* Carries out one line; *@quit: that was the last one. */
static enum tool_status run_line(struct tool *tool, char *line, bool *quit)
{
	char *words[MAX_WORDS + 1];
	enum tool_status status;
	bool json = tool->json;
	int count;

	count = split(line, words);
	if (count < 0) {
		fputs("flexmem: the line has too many words\n", stderr);
		return TOOL_USAGE;
	}
	if (!count || words[0][0] == '#')
		return TOOL_OK;
	if (!strcmp(words[0], "quit") || !strcmp(words[0], "exit")) {
		*quit = true;
		return TOOL_OK;
	}
	if (!strcmp(words[0], "help")) {
		print_commands(stdout, true);
		puts("  quit       end; all allocations go back");
		return TOOL_OK;
	}
	tool->command = find_command(words[0]);
	if (!tool->command || !tool->command->in_shell) {
		fprintf(stderr, "flexmem: no command '%s'; try 'help'\n",
			words[0]);
		return TOOL_USAGE;
	}
	optind = 0;
	status = tool->command->run(tool, count, words);
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
		if (interactive)
			fputs("flexmem> ", stdout);
		fflush(stdout);
		if (getline(&line, &size, stdin) < 0)
			break;
		status = run_line(tool, line, &quit);
		if (status > worst)
			worst = status;
	}
	if (interactive && !quit)
		putchar('\n');
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
