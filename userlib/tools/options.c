// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Options and arguments of subcommands. */
#include "aside.h"
#include "tool.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

void print_own_help(FILE *file, const struct tool *tool)
{
	const struct command *command = tool->command;

	fprintf(file, "Usage: %s%s%s%s\n\n%s\n", tool->shell ? "" : "flexmem ",
		command->name, *command->arguments ? " " : "",
		command->arguments, command->help);
	if (!tool->shell)
		fputs("\nOptions of every command:\n"
		      "  --device PATH|PF|VF  the device (default: as $FLEX_DEVICE says,\n"
		      "                       else the first VF, else the first PF)\n"
		      "  --json               report as JSON\n"
		      "  -h, --help           show this text\n", file);
}

/*
 * Returns how many letters must be added, dropped or changed to turn @a into
 * @b; at most @most + 1.
 */
static unsigned int distance(const char *a, const char *b, unsigned int most)
{
	unsigned int best;
	unsigned int other;

	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (!*a && !*b)
		return 0;
	if (!most)
		return 1;
	best = *a && *b ? distance(a + 1, b + 1, most - 1) : most;
	other = *a ? distance(a + 1, b, most - 1) : most;
	if (other < best)
		best = other;
	other = *b ? distance(a, b + 1, most - 1) : most;
	return 1 + (other < best ? other : best);
}

bool is_closer(const char *typed, const char *name, unsigned int *least)
{
	unsigned int away = distance(typed, name, MOST_TYPOS);

	if (away >= *least || away >= strlen(name))
		return false;
	*least = away;
	return true;
}

/* The option that @word resembles, or NULL. */
static const char *resembled(const char *word, const struct option *options)
{
	unsigned int least = MOST_TYPOS + 1;
	const char *found = NULL;
	char typed[32];
	size_t length;

	word += strspn(word, "-");
	length = strcspn(word, "=");
	if (length >= sizeof(typed))
		return NULL;
	memcpy(typed, word, length);
	typed[length] = '\0';
	for (; options->name; options++) {
		if (is_closer(typed, options->name, &least))
			found = options->name;
	}
	return found;
}

static void unknown_option(struct tool *tool, const char *word,
			   const struct option *options)
{
	const char *meant = resembled(word, options);

	if (meant)
		usage_error(tool, "no option '%s', did you mean '--%s'?", word,
			    meant);
	else
		usage_error(tool, "option '%s' is unknown or ambiguous", word);
}

void option_error(struct tool *tool, int option, char **argv,
		  const struct option *options)
{
	const char *word = argv[optind - 1];

	if (option == ':')
		usage_error(tool, "option '%s' needs a value", word);
	else if (!optopt)
		unknown_option(tool, word, options);
	else if (!strncmp(word, "--", 2) && strchr(word, '='))
		usage_error(tool, "option '%s' takes no value", word);
	else
		usage_error(tool, "no option '-%c'", optopt);
}

int next_option(struct tool *tool, int argc, char **argv,
		const struct option *options)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		switch (option) {
		case 'd':
			if (tool->shell) {
				usage_error(tool,
					    "a shell keeps to one device");
				return '?';
			}
			tool->path = optarg;
			break;
		case 'A':
			if (tool->shell) {
				usage_error(tool,
					    "a shell keeps to one device");
				return '?';
			}
			tool->all = true;
			break;
		case 'j':
			tool->json = true;
			break;
		case 'h':
			tool_text(tool, "help", print_own_help);
			return OPTION_HELP;
		case '?':
		case ':':
			option_error(tool, option, argv, options);
			return '?';
		default:
			return option;
		}
	}
	return OPTION_END;
}

enum tool_status option_status(int option)
{
	return option == OPTION_HELP ? TOOL_OK : TOOL_USAGE;
}

bool no_other_options(struct tool *tool, int argc, char **argv,
		      const struct option *options, enum tool_status *status)
{
	int option = next_option(tool, argc, argv, options);

	if (option != OPTION_END) {
		*status = option_status(option);
		return false;
	}
	if (optind < argc) {
		*status = usage_error(tool, "unexpected argument '%s'",
				      argv[optind]);
		return false;
	}
	return true;
}

bool only_common_options(struct tool *tool, int argc, char **argv,
			 enum tool_status *status)
{
	static const struct option options[] = { COMMON_OPTIONS };

	return no_other_options(tool, argc, argv, options, status);
}

bool parse_number(const char *text, uint64_t limit, uint64_t *number)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	/* strtoull() would accept a sign or spaces. */
	if (!strchr("0123456789", text[0]) || !text[0])
		return false;
	errno = 0;
	*number = strtoull(text, &end, hex ? 16 : 10);
	return !errno && !*end && *number <= limit;
}

bool parse_size(const char *text, uint64_t *bytes)
{
	static const char letters[] = "KMGTPE";
	char digits[32];
	const char *letter;
	const char *unit;
	unsigned int shift = 0;
	size_t length;

	unit = text;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		unit = text + strlen(text);
	else
		unit += strspn(text, "0123456789");
	length = (size_t)(unit - text);
	if (!length || length >= sizeof(digits))
		return false;
	memcpy(digits, text, length);
	digits[length] = '\0';

	if (*unit && strcasecmp(unit, "B")) {
		letter = strchr(letters, *unit >= 'a' ? *unit - 'a' + 'A' :
					 *unit);
		if (!letter)
			return false;
		if (unit[1] && strcasecmp(unit + 1, "B") &&
		    strcasecmp(unit + 1, "iB"))
			return false;
		shift = 10 * (unsigned int)(letter - letters + 1);
	}
	if (!parse_number(digits, UINT64_MAX >> shift, bytes))
		return false;
	*bytes <<= shift;
	return true;
}

bool parse_cgroup(struct tool *tool, const char *text, uint64_t *id)
{
	int err;

	if (parse_number(text, UINT64_MAX, id) || cgroup_id(text, id))
		return true;
	if (!is_container(text)) {
		usage_error(tool, "'%s' is no cgroup", text);
		return false;
	}
	err = container_cgroup(text, id);
	if (err == -ENOTUNIQ)
		usage_error(tool,
			    "several cgroups have the container's id '%s': give the path of one",
			    text);
	else if (err)
		usage_error(tool, "no container has the id '%s' here", text);
	return !err;
}

void check_memory(const void *pointer)
{
	if (pointer)
		return;
	aside_drop();
	tool_last_words("flexmem: out of memory\n",
			"{ \"error\": { \"errno\": -12, \"name\": \"ENOMEM\", \"text\": \"out of memory\" } }\n");
	exit(TOOL_FAILED);
}

void *grow(void *array, size_t count, size_t size)
{
	if (count > SIZE_MAX / size)
		check_memory(NULL);
	array = realloc(array, count ? count * size : 1);
	check_memory(array);
	return array;
}

char *copy_text(const char *text)
{
	char *copy = strdup(text);

	check_memory(copy);
	return copy;
}
