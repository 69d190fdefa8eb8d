// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The flexmem command: finds the subcommand and runs it. */
#include "tool.h"

#include <string.h>

#define EACH_FUNCTION \
	"  --all          of each function that 'flexmem list' shows"
#define TWO_FORMS \
	"A place is named REGION:OFFSET, the way that 'alloc' prints it.\n"

static const struct command commands[] = {
	{ "list", "[--id NODE]", "all functions: node, id, slots, capacity, driver",
	  "Show all functions of all devices that this process sees, in the order of\n"
	  "their indices: node, id, slots, capacity, domains and driver, and whether\n"
	  "the function can be opened. The id stays the same when a driver is bound\n"
	  "again and after a reboot; the number in the node's name does not.\n"
	  "FLEXMEM_VISIBLE_DEVICES chooses functions by index or id.\n\n"
	  "  --id NODE      only the id of this node's function, which is not opened",
	  SHELL_NOT, cmd_list },
	{ "doctor", "", "what is wrong with this host, and how to mend it",
	  "Look for what is wrong with this host: a module that is not installed, not\n"
	  "signed, not loaded or of another version; kernels, groups, nodes, cgroups and\n"
	  "CDI files; functions that have failed or have nothing left, and memory that\n"
	  "device programs or dead processes hold. Print a remedy with each. Root sees\n"
	  "more than others. The exit status is 1 if there is an error, and not if there\n"
	  "are only warnings. Changes nothing.",
	  SHELL_NOT, cmd_doctor },
	{ "info", "[--all]", "what the device is and how it is set up",
	  "Show kind, limits and settings of the device.\n\n" EACH_FUNCTION,
	  SHELL_TOO, cmd_info },
	{ "regions", "[--all] [--by-domain]", "the regions, and how full they are",
	  "Show all regions: slot, size, used and free bytes, the largest free piece\n"
	  "and the number of allocations, and a bar of the terminal's width for each.\n"
	  EACH_FUNCTION "\n"
	  "  --by-domain    instead, the sums of the regions of each memory\n"
	  "                 (domain), which every user may see",
	  SHELL_TOO, cmd_regions },
	{ "segments", "[--all]", "the segment table and its generation",
	  "Show the filled slots of the segment table, as a dispatch sees them.\n\n"
	  EACH_FUNCTION, SHELL_TOO, cmd_segments },
	{ "stats", "[--all]", "statistics of the device and of this open file",
	  "Show what is allocated now, and what has happened so far.\n\n"
	  EACH_FUNCTION, SHELL_TOO, cmd_stats },
	{ "owners", "[--all]", "memory by owner",
	  "Show the sums of all regions, and what each cgroup and each open file has:\n"
	  "bytes, bytes freed that are still mapped, slots, allocations and limits,\n"
	  "with the process that opened the file. The file of this report is left out.\n"
	  "The administrator sees all of them, other users only their own cgroup and\n"
	  "this open file.\n\n" EACH_FUNCTION, SHELL_TOO, cmd_owners },
	{ "limit", "[OPTIONS]", "limits of cgroups",
	  "Show what the own cgroup may have; or set it, which only the administrator\n"
	  "may. A limit is a number, or 'none'.\n\n"
	  "  --cgroup PATH|ID       of a cgroup, or a container, and all below it\n"
	  "  --default              of each cgroup at the default depth\n"
	  "  --all                  on each PF and VF, present and future\n"
	  "  --bytes BYTES          at most so much memory (8G, none)\n"
	  "  --regions N            memory in at most so many regions\n"
	  "  --handles N            at most so many live allocations\n"
	  "  --files N              at most so many open files\n\n"
	  "Or the limits that a file has, such as /etc/flexmem/limits.conf:\n\n"
	  "  --check FILE           name the lines that are wrong, and set nothing\n"
	  "  --apply FILE           set all of them\n"
	  "  --watch FILE           set all, and again when a cgroup appears; does not end",
	  SHELL_TOO, cmd_limit },
	{ "reserve", "--cgroup PATH --regions N [--size BYTES]",
	  "reserve regions for a cgroup",
	  "Set regions aside: only files that were opened in the cgroup or below it\n"
	  "allocate in them. They are acquired at once, so the memory is there whatever\n"
	  "others do. Only the administrator may.\n\n"
	  "  --cgroup PATH  the cgroup, which is not the root\n"
	  "  --regions N    so many; 0 ends the reservation\n"
	  "  --size BYTES   bytes of each (default: the size that is tried first)",
	  SHELL_TOO, cmd_reserve },
	{ "cdi", "OPTIONS", "give a share of a function to containers",
	  "Write CDI files, with which podman, docker and Kubernetes give part of a\n"
	  "function to a container, as the device flexmem.org/share=NAME. A hook sets\n"
	  "the limits of the container before its first process runs. Only the\n"
	  "administrator may.\n\n"
	  "  --share NAME:FUNCTION:BYTES[:REGIONS:HANDLES]\n"
	  "                  a share of a function, which 'flexmem list' shows\n"
	  "  --unlimited NAME:FUNCTION\n"
	  "                  all of it, without a limit: flexmem.org/vf=NAME\n"
	  "  --transient     until the next boot\n"
	  "  --pod           the limits are for all containers of a pod together\n"
	  "  --remove NAME   take the share away; containers that run keep it\n"
	  "  --refresh       write all files again, after nodes have new numbers",
	  SHELL_NOT, cmd_cdi },
	{ "release", "--cgroup PATH [--timeout SECONDS]",
	  "wait until a cgroup holds nothing",
	  "Wait until no file that was opened in the cgroup or below it is open or has\n"
	  "memory, on any function. Ends no process. The administrator sees all\n"
	  "cgroups, other users only their own.\n\n"
	  "  --cgroup PATH|ID   the cgroup, or a container; a number if it was removed\n"
	  "  --timeout SECONDS  fail after so long (default: never); 0: ask once",
	  SHELL_NOT, cmd_release },
	{ "watch", "[--count N] [--timeout SECONDS]",
	  "a line for each event of a function",
	  "Print a line for each event of a function: it was reset or removed, it has\n"
	  "another state or capacity, it is exhausted or no longer, or the pressure has\n"
	  "changed. A function that appears has an event 'state'. Events that follow each\n"
	  "other quickly may be one. The functions that are there at the beginning have\n"
	  "no event, so see 'flexmem list' first. Does not end by itself.\n\n"
	  "  --count N          end after so many events\n"
	  "  --timeout SECONDS  end after so long; 0: look once",
	  SHELL_NOT, cmd_watch },
	{ "top", "[--interval SECONDS]", "the owners of memory, live",
	  "Show the owners of memory on a terminal: functions, cgroups, or open files.\n"
	  "The sums of a function are of one moment. The administrator sees all\n"
	  "owners. A line in bold has nine tenths of what it may have, or more.\n\n"
	  "  --interval SECONDS  read again after so long (default: 2)\n\n"
	  "Keys:\n\n"
	  "  f a c            functions, accounts of cgroups, clients (open files)\n"
	  "  < >              order by the column before, or the next\n"
	  "  r                reverse the order\n"
	  "  arrows, page up and down\n"
	  "                   other rows; to the left and right: the rest of long names\n"
	  "  space            read now\n"
	  "  q                end",
	  SHELL_TOO, cmd_top },
	{ "export", "[--show PARENT]... [--output FILE]", "figures for Prometheus",
	  "Write figures of all functions in the text format of Prometheus. The figures\n"
	  "of a function come from one snapshot and add up. Only the administrator may.\n\n"
	  "  --show PARENT   name the cgroups below this one, which is given by its whole\n"
	  "                  path; all others together are cgroup=\"other\", because who\n"
	  "                  reads the figures may be anybody\n"
	  "  --output FILE   write this file aside, with mode 0640, and rename it",
	  SHELL_TOO, cmd_export },
	{ "alloc", "LENGTH [OPTIONS]", "allocate, for trying things out",
	  "Allocate LENGTH bytes (128, 4MiB, 12G) and show handle and address. The\n"
	  "allocation belongs to the open file: it is kept until Enter is pressed,\n"
	  "or as --hold says. To free it by its name use 'flexmem shell'.\n\n"
	  "  --align BYTES   alignment of the offset, a power of two\n"
	  "  --program       memory for a device program\n"
	  "  --mappable      memory that the CPU can map\n"
	  "  --policy P      which domains: bind:2,3, interleave\n"
	  "  --zeroed        memory in which all bytes are zero\n"
	  "  --pattern SEED  fill it, and check it before it goes back\n"
	  "  --count N       allocate N times (one batch)\n"
	  "  --hold SECONDS  end after so many seconds, without waiting for Enter",
	  SHELL_TOO, cmd_alloc },
	{ "fill", "HANDLE [OPTIONS]", "write a pattern, inside 'flexmem shell'",
	  "Fill an allocation of this open file with a pattern.\n\n"
	  "  --seed N       which pattern (default: 0)\n"
	  "  --by map|copy  write to a map, or let the driver copy (default: a map\n"
	  "                 if it is mappable)", SHELL_ONLY, cmd_fill },
	{ "check", "HANDLE [OPTIONS]", "look for it, inside 'flexmem shell'",
	  "Check that an allocation of this open file has the pattern of 'fill'.\n\n"
	  "  --seed N       which pattern (default: 0)\n"
	  "  --by map|copy  read from a map, or let the driver copy (default: a map\n"
	  "                 if it is mappable)", SHELL_ONLY, cmd_check },
	{ "free", "HANDLE|REGION:OFFSET...", "free, inside 'flexmem shell'",
	  "Give allocations of this open file back. Each run of flexmem is an open\n"
	  "file of its own, so only 'flexmem shell' has something to free.\n"
	  TWO_FORMS, SHELL_ONLY, cmd_free },
	{ "trim", "", "give unused regions back to the device",
	  "Give all regions without an allocation back to the device. Only the\n"
	  "administrator may. Regions that the device's driver holds for a job stay.",
	  SHELL_TOO, cmd_trim },
	{ "shell", "", "several commands on one open file",
	  "Read commands from standard input, one a line, and carry them out on one\n"
	  "open file: info, regions, segments, stats, owners, limit, reserve, top, export,\n"
	  "alloc, fill, check, free, trim, help, quit.\n"
	  "All allocations are freed at the end. Lines that begin with '#' are\n"
	  "skipped. If the input is not a terminal the exit status is that of the\n"
	  "worst command.", SHELL_NOT, cmd_shell },
	{ "replay", "FILE... [OPTIONS]", "drive the device with recorded traces",
	  "Carry out the allocations and frees of each FILE (a trace, plain or gzip;\n"
	  "- is standard input) as fast as the device can, each in a fresh open file,\n"
	  "and report; or, with --cache, on the library's caching allocator.\n\n"
	  "  --keep-going                        count failed events and go on\n"
	  "  --show-peak                         show the regions at the peak\n"
	  "  --trim                              trim before each file (administrator)\n"
	  "  --strategy first_fit|best_fit       fail if the device runs another\n"
	  "  --order load_balance|fill_first     fail if the device runs another\n"
	  "  --policy POLICY[:DOMAINS]           which domains to allocate from\n"
	  "  --cache                             allocate through a cache\n"
	  "  --exact                             compare a trace of 'flexmem record', and\n"
	  "                                      stop at the first event that differs\n"
	  "  --config STRING                     its settings (default: the\n"
	  "                                      environment's)\n"
	  "  --provider device|flat[:SIZE]|recorded\n"
	  "                                      where it has its memory: the device\n"
	  "                                      (default), an address space without\n"
	  "                                      memory (64G), or with --exact where the\n"
	  "                                      driver put it then (default)",
	  SHELL_NOT, cmd_replay },
	{ "record", "SNAPSHOT... [--output FILE]", "make an exact trace of a history",
	  "Write a trace for 'flexmem replay --exact', with addresses and failures. Each\n"
	  "SNAPSHOT (JSON of a cache, plain or gzip; - is standard input) is that of one\n"
	  "process, with the whole history: set history_entries before the first\n"
	  "allocation.\n\n"
	  "  --output FILE   write this file (gzip if it ends in .gz) and say what is in\n"
	  "                  it; default: standard output",
	  SHELL_NOT, cmd_record },
	{ "convert", "FILE [OPTIONS]", "make a trace of a file of others",
	  "Write a trace for 'flexmem replay'. FILE (plain or gzip; - is standard input)\n"
	  "is a memory snapshot of PyTorch or of a cache, as pickle or JSON; or a list of\n"
	  "requests to a server of a language model, as CSV or JSON lines.\n\n"
	  "  --output FILE             write this file (gzip if it ends in .gz) and say\n"
	  "                            what is in it; default: standard output\n"
	  "  --index N                 the device, if a snapshot has several\n\n"
	  "For requests, which have an arrival, input tokens and output tokens:\n\n"
	  "  --bytes-per-token BYTES   keys and values of a token in all layers\n"
	  "  --block-tokens N          tokens of output in an allocation (16)\n"
	  "  --prefill N               tokens of input in a second (10000)\n"
	  "  --decode N                tokens of output in a second (30)\n"
	  "  --columns ARRIVAL,INPUT,OUTPUT\n"
	  "                            names of the columns or keys\n"
	  "  --time-unit s|ms|us       unit of an arrival that is a number (s)",
	  SHELL_NOT, cmd_convert },
	{ "map", "[OPTIONS] FILE", "a picture of the device or of a trace, as a page",
	  "Write a page with the addresses of allocations, event by event: those on the\n"
	  "device, by cgroup; or those of a trace, which 'flexmem record' has written or a\n"
	  "replay on a cache without a device gives. The page needs no other file and no\n"
	  "network. It shows the allocation under the pointer, and zooms. Only the\n"
	  "administrator sees the allocations on a device, and only those that are made or\n"
	  "freed meanwhile have addresses. FILE may be -, the standard output.\n\n"
	  "  --seconds N         how long to watch the device (default: 10); 0: only now\n"
	  "  --trace TRACE       a trace instead of the device; - is standard input\n"
	  "  --config STRING     settings of the cache (default: the environment's)\n"
	  "  --addresses BYTES   the size of the address space (default: 64G)\n"
	  "  --by stream|tag     colours of a recorded trace (default: tag, if it has any)\n"
	  "  --svg               write an image instead of a page",
	  SHELL_TOO, cmd_map },
	{ "help", "[COMMAND]", "this text, or that of a command",
	  "Show what commands there are, as 'flexmem --help' does, or inside a shell\n"
	  "those that it has; with COMMAND what 'flexmem COMMAND --help' shows.",
	  SHELL_TOO, cmd_help },
	{ "version", "", "the version of the library",
	  "Show the version, as 'flexmem --version' does.", SHELL_NOT, cmd_version },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* The shell carries out this command itself. */
static const struct command quit = {
	"quit", "", "end; all allocations go back",
	"End the shell. All that was allocated in it goes back, as at the end of the\n"
	"input.", SHELL_ONLY, NULL
};

const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

const char *suggestion(const char *name, char text[TOOL_TEXT_MAX])
{
	unsigned int least = MOST_TYPOS + 1;
	size_t i;

	text[0] = '\0';
	for (i = 0; i < COMMANDS; i++) {
		if (is_closer(name, commands[i].name, &least))
			snprintf(text, TOOL_TEXT_MAX, ", did you mean '%s'?",
				 commands[i].name);
	}
	return text;
}

static void print_command(FILE *file, const struct command *command)
{
	fprintf(file, "  %-10s %s\n", command->name, command->summary);
}

static void print_commands(FILE *file, bool shell_only)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++) {
		if (commands[i].in_shell || !shell_only)
			print_command(file, &commands[i]);
	}
}

bool wants_json(int argc, char **argv)
{
	size_t length;
	int i;

	/* Any unambiguous beginning of --json counts. */
	for (i = 0; i < argc && strcmp(argv[i], "--"); i++) {
		length = strcspn(argv[i], "=");
		if (length > 2 && !strncmp(argv[i], "--json", length))
			return true;
	}
	return false;
}

static void print_version(FILE *file, const struct tool *tool)
{
	fprintf(file, tool->json ? "%s" : "flexmem %s\n",
		flexmem_library_version());
}

static void print_usage(FILE *file, const struct tool *tool)
{
	if (tool->shell) {
		print_commands(file, true);
		print_command(file, &quit);
		return;
	}
	fputs("Usage: flexmem [--device PATH|PF|VF] [--json] COMMAND [ARGUMENTS]\n"
	      "       flexmem --help | --version\n\n"
	      "Device memory of AI accelerators.\n\nCommands:\n", file);
	print_commands(file, false);
	fputs("\n'flexmem COMMAND --help' tells more about one of them.\n"
	      "Exit status: 0 success, 1 failure, 2 wrong usage.\n", file);
}

enum tool_status cmd_help(struct tool *tool, int argc, char **argv)
{
	static const struct option options[] = { COMMON_OPTIONS };
	const struct command *about;
	char text[TOOL_TEXT_MAX];
	int option = next_option(tool, argc, argv, options);

	if (option != OPTION_END)
		return option_status(option);
	if (optind == argc) {
		tool_text(tool, "help", print_usage);
		return TOOL_OK;
	}
	if (optind + 1 < argc)
		return usage_error(tool, "unexpected argument '%s'",
				   argv[optind + 1]);
	about = find_command(argv[optind]);
	if (tool->shell && !strcmp(argv[optind], quit.name))
		about = &quit;
	if (!about || (tool->shell && !about->in_shell))
		return usage_error(tool, "no command '%s'%s", argv[optind],
				   about ? "" : suggestion(argv[optind], text));
	tool->command = about;
	tool_text(tool, "help", print_own_help);
	return TOOL_OK;
}

enum tool_status cmd_version(struct tool *tool, int argc, char **argv)
{
	enum tool_status status;

	if (!only_common_options(tool, argc, argv, &status))
		return status;
	tool_text(tool, "version", print_version);
	return TOOL_OK;
}

/*
 * Parses the options before the subcommand. Returns true if optind is at the
 * subcommand.
 */
static bool global_options(struct tool *tool, int argc, char **argv,
			   enum tool_status *status)
{
	static const struct option options[] = {
		{ "version", no_argument, NULL, 'v' },
		COMMON_OPTIONS
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		switch (option) {
		case 'd':
			tool->path = optarg;
			break;
		case 'j':
			tool->json = true;
			break;
		case 'v':
			tool_text(tool, "version", print_version);
			*status = TOOL_OK;
			return false;
		case 'h':
			tool_text(tool, "help", print_usage);
			*status = TOOL_OK;
			return false;
		default:
			option_error(tool, option, argv, options);
			*status = TOOL_USAGE;
			return false;
		}
	}
	return true;
}

static enum tool_status run(struct tool *tool, int argc, char **argv)
{
	char text[TOOL_TEXT_MAX];
	enum tool_status status;
	int first;

	if (!global_options(tool, argc, argv, &status))
		return status;
	if (optind == argc)
		return usage_error(tool, "which command?");
	tool->command = find_command(argv[optind]);
	if (!tool->command)
		return usage_error(tool, "no command '%s'%s", argv[optind],
				   suggestion(argv[optind], text));
	first = optind;
	/* getopt_long() prints this name in its error messages. */
	argv[first] = argv[0];
	optind = 0;
	return tool->command->run(tool, argc - first, argv + first);
}

int main(int argc, char **argv)
{
	struct tool tool = { 0 };
	enum tool_status status;

	tool.json = wants_json(argc, argv);
	tool_begin(&tool);
	status = run(&tool, argc, argv);
	tool_finish(&tool);
	flexmem_device_close(tool.device);
	if (fflush(stdout) || ferror(stdout)) {
		perror("flexmem: standard output");
		if (status == TOOL_OK)
			status = TOOL_FAILED;
	}
	return (int)status;
}
