/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Shared by the files of the flexmem command. */
#ifndef TOOL_H
#define TOOL_H

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cgroup_mount.h"
#include "flexmem.h"

/* The longest line of text. */
#define TOOL_TEXT_MAX 1024

enum tool_status {
	TOOL_OK = 0,
	TOOL_FAILED = 1,
	TOOL_USAGE = 2,
};

struct tool;

enum in_shell {
	SHELL_NOT,
	SHELL_TOO,
	SHELL_ONLY,
};

/*
 * One subcommand. --help prints the usage line, then @help. @in_shell: whether
 * the subcommand exists in `flexmem shell`. A subcommand that uses allocations
 * of earlier subcommands exists only there.
 */
struct command {
	const char *name;
	const char *arguments;
	const char *summary;
	const char *help;
	enum in_shell in_shell;
	enum tool_status (*run)(struct tool *tool, int argc, char **argv);
};

/*
 * State of a run. @device is NULL until tool_open(). In a shell @device stays
 * open from one command to the next. With @json a command prints exactly one
 * JSON value. @reported: the command has printed this value. @all: --all was
 * given; then @reports collects the values for all functions. @error: the first
 * error.
 */
struct tool {
	const char *path;
	bool json;
	bool all;
	bool shell;
	const struct command *command;
	struct flexmem_device *device;
	bool reported;
	json_t *reports;
	json_t *error;
};

/* main.c: returns NULL if there is no such subcommand. */
const struct command *find_command(const char *name);
/*
 * Returns ", did you mean 'X'?" if the name resembles that of a command,
 * otherwise "".
 */
const char *suggestion(const char *name, char text[TOOL_TEXT_MAX]);
/* Whether --json is among the arguments, even if other arguments are wrong. */
bool wants_json(int argc, char **argv);

enum tool_status cmd_alloc(struct tool *tool, int argc, char **argv);
enum tool_status cmd_cdi(struct tool *tool, int argc, char **argv);
enum tool_status cmd_check(struct tool *tool, int argc, char **argv);
enum tool_status cmd_convert(struct tool *tool, int argc, char **argv);
enum tool_status cmd_doctor(struct tool *tool, int argc, char **argv);
enum tool_status cmd_export(struct tool *tool, int argc, char **argv);
enum tool_status cmd_fill(struct tool *tool, int argc, char **argv);
enum tool_status cmd_free(struct tool *tool, int argc, char **argv);
enum tool_status cmd_help(struct tool *tool, int argc, char **argv);
enum tool_status cmd_info(struct tool *tool, int argc, char **argv);
enum tool_status cmd_list(struct tool *tool, int argc, char **argv);
enum tool_status cmd_limit(struct tool *tool, int argc, char **argv);
enum tool_status cmd_map(struct tool *tool, int argc, char **argv);
enum tool_status cmd_owners(struct tool *tool, int argc, char **argv);
enum tool_status cmd_record(struct tool *tool, int argc, char **argv);
enum tool_status cmd_regions(struct tool *tool, int argc, char **argv);
enum tool_status cmd_release(struct tool *tool, int argc, char **argv);
enum tool_status cmd_replay(struct tool *tool, int argc, char **argv);
enum tool_status cmd_reserve(struct tool *tool, int argc, char **argv);
enum tool_status cmd_segments(struct tool *tool, int argc, char **argv);
enum tool_status cmd_shell(struct tool *tool, int argc, char **argv);
enum tool_status cmd_stats(struct tool *tool, int argc, char **argv);
enum tool_status cmd_top(struct tool *tool, int argc, char **argv);
enum tool_status cmd_trim(struct tool *tool, int argc, char **argv);
enum tool_status cmd_version(struct tool *tool, int argc, char **argv);
enum tool_status cmd_watch(struct tool *tool, int argc, char **argv);

/* Defined in options.c. */

/* The options that every command has. They end a command's array of options. */
#define COMMON_OPTIONS \
	{ "device", required_argument, NULL, 'd' }, \
	{ "json", no_argument, NULL, 'j' }, \
	{ "help", no_argument, NULL, 'h' }, \
	{ NULL, 0, NULL, 0 }

/* The options of a command that reports on functions: report.c. */
#define REPORT_OPTIONS { "all", no_argument, NULL, 'A' }, COMMON_OPTIONS

/* Results of next_option() other than an option's value. */
#define OPTION_END (-1)
#define OPTION_HELP 'h'

/*
 * Returns the next option of a subcommand, and handles common options itself.
 * If the result is no option of the subcommand, the help or an error has been
 * printed, and the caller must return option_status() of the result.
 */
int next_option(struct tool *tool, int argc, char **argv,
		const struct option *options);
enum tool_status option_status(int option);
/*
 * Prints an error that getopt_long() found among @options; getopt_long() itself
 * prints nothing.
 */
void option_error(struct tool *tool, int option, char **argv,
		  const struct option *options);
/*
 * If a name has more wrong letters than this, no known name is suggested for
 * it.
 */
#define MOST_TYPOS 2
/*
 * Whether @typed would have fewer than @least wrong letters if @name was meant.
 * If so, sets @least to their number. The caller begins with a @least of
 * MOST_TYPOS + 1.
 */
bool is_closer(const char *typed, const char *name, unsigned int *least);
void print_own_help(FILE *file, const struct tool *tool);
/*
 * Parses the options of a command that has only the common options, or only
 * @options, which next_option() handles itself.
 */
bool only_common_options(struct tool *tool, int argc, char **argv,
			 enum tool_status *status);
bool no_other_options(struct tool *tool, int argc, char **argv,
		      const struct option *options, enum tool_status *status);

/*
 * Defined in report.c. report_options() parses the options of a report that has
 * no others. tool_report() opens the device and calls @show; with --all it does so
 * for each function. @show prints one report; with --json by json_print().
 */
typedef enum tool_status (*report_fn)(struct tool *tool);
bool report_options(struct tool *tool, int argc, char **argv,
		    enum tool_status *status);
enum tool_status tool_report(struct tool *tool, report_fn show);

/* Reads a size: "12G", "4MiB", "0x80", "128". K, M, G, T are powers of 1024. */
bool parse_size(const char *text, uint64_t *bytes);
bool parse_number(const char *text, uint64_t limit, uint64_t *number);
/*
 * Parses the number or the path of a cgroup, or the id of a container. Prints an
 * error on failure.
 */
bool parse_cgroup(struct tool *tool, const char *text, uint64_t *id);

/* Opens the device if it is not open. Prints an error on failure. */
enum tool_status tool_open(struct tool *tool);
/*
 * Like tool_open(), but returns 0 or a negative errno, and writes the error to
 * @text.
 */
int tool_try_open(struct tool *tool, char text[TOOL_TEXT_MAX]);

/*
 * errors.c: prints a line on stderr, and keeps it for tool_finish(). @error is
 * a negative errno.
 *
 * tool_error() prints "flexmem: <what>: <text of @error>", where the text says what
 * the error means for device memory. file_error() is for a file or a folder.
 * tool_fail() prints "flexmem: <text>". All return TOOL_FAILED. usage_error()
 * prints an error in the arguments and returns TOOL_USAGE.
 */
enum tool_status tool_error(struct tool *tool, int error,
			    const struct flexmem_failure *failure,
			    const char *format, ...)
	__attribute__((format(printf, 4, 5)));
enum tool_status file_error(struct tool *tool, int error, const char *path);
enum tool_status tool_fail(struct tool *tool, int error, const char *format,
			   ...) __attribute__((format(printf, 3, 4)));
enum tool_status usage_error(struct tool *tool, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Ends a command. With --json prints the command's error, unless the command
 * has printed a report.
 */
void tool_finish(struct tool *tool);
/*
 * tool_last_words() prints the error of a command that cannot continue: @text,
 * and also @json if --json was given and nothing was reported yet. It may run
 * in a signal handler. tool_begin() tells it about the command.
 */
void tool_begin(const struct tool *tool);
void tool_last_words(const char *text, const char *json);
/*
 * Prints a text on stdout. With --json prints an object that has the text under
 * @key.
 */
void tool_text(struct tool *tool, const char *key,
	       void (*print)(FILE *file, const struct tool *tool));

/*
 * Names are chosen by tenants, and are escaped where they are printed: by
 * table_add(), json_text(), and the functions above that print errors. All of
 * these call escaped_text(), which has the escapes of fmlib_escape(). The caller
 * frees the text.
 */
char *escaped_text(const char *text);

/* Ends the command if a pointer is NULL, because memory is lacking. */
void check_memory(const void *pointer);
/* realloc() and strdup(), which end the command if there is no memory. */
void *grow(void *array, size_t count, size_t size);
char *copy_text(const char *text);

/*
 * cgroup.c: finds the number of a cgroup. Its path is given as in
 * /proc/PID/cgroup, or with the mount point in front. Returns false if there is
 * no such cgroup.
 */
bool cgroup_id(const char *name, uint64_t *id);

/* container.c: whether a text is the whole id of a container. */
bool is_container(const char *text);
/*
 * Finds the cgroup of a container's first process. Returns 0, -ENOENT, or
 * -ENOTUNIQ if several cgroups have this id.
 */
int container_cgroup(const char *id, uint64_t *cgroup);

/* Paths of cgroups, as in /proc/PID/cgroup, by number. */
struct cgroup_name {
	uint64_t id;
	char *path;
};

struct cgroup_names {
	struct cgroup_name *entries;
	size_t count;
};

/*
 * Finds the paths of all cgroups among the accounts, with one walk through the
 * directories of cgroups. The caller frees @names with cgroup_names_clear().
 */
void cgroup_names_find(struct cgroup_names *names,
		       const struct flexmem_account_state *accounts,
		       size_t count);
/*
 * The path of a cgroup; or NULL if the cgroup is removed, or lies outside the
 * cgroup namespace.
 */
const char *cgroup_names_get(const struct cgroup_names *names, uint64_t id);
void cgroup_names_clear(struct cgroup_names *names);
/* The same for one cgroup. The caller frees the path. */
char *cgroup_path(uint64_t id);

/* cmd_pattern.c: fills an allocation with a pattern, or checks it. */
enum pattern_way {
	PATTERN_AUTO,
	PATTERN_MAP,
	PATTERN_COPY,
};

struct progress;

/*
 * The caller sets @seed and @way. PATTERN_AUTO becomes the way that was used: a
 * mapping if the allocation is mappable, otherwise copies. The other members
 * are results. @bad: number of wrong bytes. @first_bad: offset of the first
 * wrong byte, if there is one.
 */
struct pattern_job {
	uint64_t seed;
	enum pattern_way way;
	struct progress *progress;
	uint64_t size;
	uint64_t bad;
	uint64_t first_bad;
};

/* Both calls return 0 or a negative errno. Wrong bytes are not an error. */
int pattern_fill_allocation(struct tool *tool, uint32_t handle,
			    struct pattern_job *job);
int pattern_check_allocation(struct tool *tool, uint32_t handle,
			     struct pattern_job *job);
/* Prints an error and returns TOOL_FAILED if bytes were wrong. */
enum tool_status pattern_result(struct tool *tool, uint32_t handle,
				const struct pattern_job *job);

/* json.c: parts of reports. None of these returns NULL. */
json_t *json_device(const struct flexmem_properties *properties);
/* @domains: all of the device, from read_domains(). */
json_t *json_domains(const struct flexmem_domain_state *domains);
json_t *json_statistics(const struct flexmem_statistics *statistics);
void json_add_usage(json_t *object, const struct flexmem_usage *usage);
json_t *json_accounts(const struct flexmem_account_state *accounts,
		      size_t count, const struct cgroup_names *names);
/* The path of a cgroup, or null if it is NULL. */
json_t *json_path(const char *path);
/* The limit as a number, or null for FLEXMEM_UNLIMITED. */
json_t *json_limit(uint64_t limit);
json_t *json_regions(const struct flexmem_region_state *regions, size_t count);
json_t *json_segments(const struct flexmem_segment *segments, size_t count);
void json_add_allocation(json_t *object,
			 const struct flexmem_allocated *allocation);
/* Returns the object for a fill, or for a check if @checked. */
json_t *json_pattern(const struct pattern_job *job, bool checked);
/*
 * Returns the object of an error. If @text is NULL, takes the text of @error.
 * @failure may be NULL.
 */
json_t *json_error(int error, const char *text,
		   const struct flexmem_failure *failure);
json_t *json_number(uint64_t number);
/* The text with the escapes of escaped_text(). */
json_t *json_text(const char *text);
/* Ends the command if @value is NULL, because memory is lacking. */
json_t *json_checked(json_t *value);
/* Adds @value to the object. From then on the object owns @value. */
void json_add(json_t *object, const char *key, json_t *value);
/*
 * Prints the report of a command, and frees it. With --all keeps it for
 * tool_report().
 */
void json_print(struct tool *tool, json_t *value);

#define CAPABILITIES 6

/* Fills @names with the names of the set capabilities; returns their number. */
size_t capability_names(uint64_t capabilities, const char *names[CAPABILITIES]);
const char *account_kind_name(uint32_t kind);
const char *charge_name(uint32_t charge);
/*
 * Reads the name that the kernel has for a process, unescaped. Returns false if
 * there is no such process.
 */
#define PROCESS_NAME_MAX 64

bool process_name(uint32_t pid, char name[PROCESS_NAME_MAX]);
const char *condition_name(uint32_t condition);
const char *strategy_name(uint32_t strategy);
const char *order_name(uint32_t order);
/* Whether the driver has a strategy, or an order, of that name. */
bool is_strategy(const char *name);
bool is_order(const char *name);
const char *acquisition_name(uint32_t acquisition);
const char *memory_name(uint32_t memory);
/*
 * Finds the memory with a name that memory_name() returns, or that the
 * simulator uses. Returns false if there is none.
 */
bool find_memory(const char *name, uint64_t *memory);

#endif /* TOOL_H */
