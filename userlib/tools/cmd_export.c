// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * flexmem export: figures of all functions in the text format of Prometheus.
 *
 * The figures of a function come from one snapshot, and add up. Names of
 * cgroups become public with the file, so only those below the parents that
 * --show names are in it; all others together are one series.
 */
#include "aside.h"
#include "scrape.h"
#include "tool.h"
#include "version.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How the cgroup of an account is named. */
enum label {
	LABEL_PATH,
	LABEL_REMOVED,
	LABEL_OTHER,
};

struct exporter {
	struct tool *tool;
	const char **parents;
	size_t nr_parents;
	struct scrape scrape;
	FILE *file;
};

/* Whether a cgroup is one of the parents, or below one. */
static bool is_shown(const struct exporter *exporter, const char *path,
		     bool itself)
{
	size_t i, length;

	for (i = 0; i < exporter->nr_parents; i++) {
		length = strlen(exporter->parents[i]);
		if (strncmp(path, exporter->parents[i], length))
			continue;
		if (path[length] == '/' || (itself && !path[length]))
			return true;
	}
	return false;
}

/*
 * Sets *@path to the path of a cgroup. A removed cgroup has none. It counts as shown
 * if the first cgroup above it that has a path is shown.
 */
static enum label label_of(const struct exporter *exporter,
			   const struct scraped *function,
			   const struct flexmem_account_state *account,
			   const char **path)
{
	const struct cgroup_names *names = &exporter->scrape.names;
	const struct flexmem_account_state *above = account;
	const char *place;

	*path = cgroup_names_get(names, account->id);
	if (*path)
		return is_shown(exporter, *path, false) ? LABEL_PATH :
							  LABEL_OTHER;
	if (!account->removed)
		return LABEL_OTHER;
	do {
		above = scraped_cgroup(function, above->parent);
		if (!above)
			return LABEL_OTHER;
		place = cgroup_names_get(names, above->id);
	} while (!place);
	return is_shown(exporter, place, true) ? LABEL_REMOVED : LABEL_OTHER;
}

/* ---- the text ---- */

/*
 * Prints a label. escaped_text() leaves no end of a line in a name, so only
 * backslash and quote are left to escape.
 */
static void print_label(FILE *file, const char *name, const char *value)
{
	char *text = escaped_text(value);
	const char *at;

	fprintf(file, "%s=\"", name);
	for (at = text; *at; at++) {
		if (*at == '"' || *at == '\\')
			putc('\\', file);
		putc(*at, file);
	}
	putc('"', file);
	free(text);
}

static void print_sample(const struct exporter *exporter, const char *metric,
			 const struct scraped *function, const char *name,
			 const char *value, uint64_t number)
{
	fprintf(exporter->file, "%s{", metric);
	print_label(exporter->file, "function", function->identity.id);
	if (name) {
		putc(',', exporter->file);
		print_label(exporter->file, name, value);
	}
	fprintf(exporter->file, "} %" PRIu64 "\n", number);
}

typedef void (*family_fn)(const struct exporter *exporter, const char *metric,
			  const struct scraped *function);

static void print_info(const struct exporter *exporter, const char *metric,
		       const struct scraped *function)
{
	const struct flexmem_identity *identity = &function->identity;
	char version[FMLIB_MODULE_VERSION];
	FILE *file = exporter->file;

	fprintf(file, "%s{", metric);
	print_label(file, "function", identity->id);
	putc(',', file);
	print_label(file, "node", identity->path);
	putc(',', file);
	print_label(file, "mode",
		    identity->function == FLEXMEM_PF ? "PF" : "VF");
	putc(',', file);
	print_label(file, "driver", identity->driver);
	putc(',', file);
	print_label(file, "version",
		    fmlib_version_of_module(version) ? version : "");
	fputs("} 1\n", file);
}

static void print_state(const struct exporter *exporter, const char *metric,
			const struct scraped *function)
{
	print_sample(exporter, metric, function, "state",
		     condition_name(function->properties.condition), 1);
}

static void print_pressure(const struct exporter *exporter, const char *metric,
			   const struct scraped *function)
{
	print_sample(exporter, metric, function, NULL, NULL, function->level);
}

/* Figures that do not add up are not shown. */
static bool is_readable(const struct scraped *function)
{
	return !function->error && function->whole;
}

static void print_readable(const struct exporter *exporter, const char *metric,
			   const struct scraped *function)
{
	print_sample(exporter, metric, function, NULL, NULL,
		     is_readable(function));
}

static void print_memory(const struct exporter *exporter, const char *metric,
			 const struct scraped *function)
{
	const struct flexmem_usage *usage = &function->usage;

	print_sample(exporter, metric, function, "use", "free", usage->free);
	print_sample(exporter, metric, function, "use", "used", usage->owned);
	print_sample(exporter, metric, function, "use", "leaving",
		     usage->orphaned);
	print_sample(exporter, metric, function, "use", "reserved",
		     usage->reserved);
	print_sample(exporter, metric, function, "use", "quarantined",
		     usage->quarantined);
}

/* A domain appears with its first region. */
static void print_domains(const struct exporter *exporter, const char *metric,
			  const struct scraped *function)
{
	uint64_t bytes[FLEXMEM_DOMAINS] = { 0 };
	char number[16];
	uint32_t i;

	for (i = 0; i < function->usage.regions; i++) {
		if (function->regions[i].domain < FLEXMEM_DOMAINS)
			bytes[function->regions[i].domain] +=
				function->regions[i].total;
	}
	for (i = 0; i < FLEXMEM_DOMAINS; i++) {
		snprintf(number, sizeof(number), "%" PRIu32, i);
		if (bytes[i])
			print_sample(exporter, metric, function, "domain",
				     number, bytes[i]);
	}
}

static void print_own(const struct exporter *exporter, const char *metric,
		      const struct scraped *function)
{
	uint64_t sums[] = { [LABEL_REMOVED] = 0, [LABEL_OTHER] = 0 };
	bool any_removed = false;
	const char *path;
	enum label label;
	uint32_t i;

	for (i = 0; i < function->cgroups; i++) {
		label = label_of(exporter, function, &function->accounts[i],
				 &path);
		any_removed |= label == LABEL_REMOVED;
		if (label == LABEL_PATH)
			print_sample(exporter, metric, function, "cgroup",
				     path, function->own[i]);
		else
			sums[label] += function->own[i];
	}
	if (any_removed)
		print_sample(exporter, metric, function, "cgroup", "removed",
			     sums[LABEL_REMOVED]);
	print_sample(exporter, metric, function, "cgroup", "other",
		     sums[LABEL_OTHER]);
}

static uint64_t scalar(const struct scraped *function, size_t offset)
{
	uint64_t number;

	memcpy(&number, (const char *)&function->usage + offset, sizeof(number));
	return number;
}

/*
 * A figure of each shown cgroup, which counts all cgroups below it, too.
 * FLEXMEM_UNLIMITED has no sample.
 */
static void print_accounts(const struct exporter *exporter, const char *metric,
			   const struct scraped *function, size_t offset)
{
	const char *path;
	uint64_t number;
	uint32_t i;

	for (i = 0; i < function->cgroups; i++) {
		if (label_of(exporter, function, &function->accounts[i],
			     &path) != LABEL_PATH)
			continue;
		memcpy(&number, (const char *)&function->accounts[i] + offset,
		       sizeof(number));
		if (number != FLEXMEM_UNLIMITED)
			print_sample(exporter, metric, function, "cgroup",
				     path, number);
	}
}

/* The reasons that the library has no name for are of a later driver. */
static void print_failures(const struct exporter *exporter, const char *metric,
			   const struct scraped *function)
{
	const struct flexmem_account_state *account;
	const char *path;
	uint32_t limit;

	for (account = function->accounts;
	     account < function->accounts + function->cgroups; account++) {
		if (label_of(exporter, function, account, &path) != LABEL_PATH)
			continue;
		for (limit = 0; limit <= FLEXMEM_LIMIT_RESERVED; limit++) {
			fprintf(exporter->file, "%s{", metric);
			print_label(exporter->file, "function",
				    function->identity.id);
			putc(',', exporter->file);
			print_label(exporter->file, "cgroup", path);
			putc(',', exporter->file);
			print_label(exporter->file, "reason",
				    flexmem_limit_name(limit));
			fprintf(exporter->file, "} %" PRIu64 "\n",
				account->failures[limit]);
		}
	}
}

/*
 * A metric. Its samples come from @print, or are the number at @usage of the sums,
 * or at @account of each shown cgroup.
 */
#define USAGE(member) .is_usage = true, .offset = offsetof(struct flexmem_usage, member)
#define ACCOUNT(member) .offset = offsetof(struct flexmem_account_state, member)

static const struct family {
	const char *name, *type, *help;
	family_fn print;
	bool even_unreadable, is_usage;
	size_t offset;
} families[] = {
	{ "flexmem_function_info", "gauge", "Always 1: node, mode and driver of a function, and the version of flexmem.ko.",
	  .print = print_info, .even_unreadable = true },
	{ "flexmem_function_readable", "gauge", "1 if the figures of the function could be read, else 0.",
	  .print = print_readable, .even_unreadable = true },
	{ "flexmem_function_state", "gauge", "Always 1: the state of a function, such as usable or wedged.",
	  .print = print_state },
	{ "flexmem_pressure_level", "gauge", "How full the function is: 0, 1 (moderate) or 2 (critical).",
	  .print = print_pressure },
	{ "flexmem_capacity_bytes", "gauge", "Memory that the function may acquire.",
	  USAGE(capacity) },
	{ "flexmem_acquired_bytes", "gauge", "Memory in the acquired regions: the sum of flexmem_memory_bytes.",
	  USAGE(total) },
	{ "flexmem_memory_bytes", "gauge", "Memory in the acquired regions, by use.",
	  .print = print_memory },
	{ "flexmem_domain_acquired_bytes", "gauge", "Memory in the acquired regions, by domain.",
	  .print = print_domains },
	{ "flexmem_program_bytes", "gauge", "Memory that was allocated for device programs.",
	  USAGE(used_program) },
	{ "flexmem_open_files", "gauge", "Number of open files of the function.",
	  USAGE(clients) },
	{ "flexmem_allocations_total", "counter", "Chunks allocated since the device was registered.",
	  USAGE(allocs) },
	{ "flexmem_failures_total", "counter", "Allocations that failed: for lack of memory, or because a limit refused them.",
	  USAGE(failures) },
	{ "flexmem_resets_total", "counter", "Resets of the device.",
	  USAGE(resets) },
	{ "flexmem_timeouts_total", "counter", "Commands that the firmware has not answered in time.",
	  USAGE(timeouts) },
	{ "flexmem_scrubbed_bytes_total", "counter", "Memory that was scrubbed.",
	  USAGE(scrubbed) },
	{ "flexmem_cgroup_own_bytes", "gauge", "Allocated memory of a cgroup without those below it: the sum is the used memory.",
	  .print = print_own },
	{ "flexmem_cgroup_bytes", "gauge", "Allocated memory of a cgroup and of all below it.",
	  ACCOUNT(bytes) },
	{ "flexmem_cgroup_leaving_bytes", "gauge", "Freed memory of a cgroup and of all below it that is still in use.",
	  ACCOUNT(orphaned) },
	{ "flexmem_cgroup_peak_bytes", "gauge", "The most memory that a cgroup and all below it have had.",
	  ACCOUNT(peak) },
	{ "flexmem_cgroup_failures_total", "counter", "Allocations of a cgroup and of all below it that failed, by reason.",
	  .print = print_failures },
	{ "flexmem_cgroup_open_files", "gauge", "Number of open files of a cgroup and of all below it.",
	  ACCOUNT(files) },
	{ "flexmem_cgroup_limit_bytes", "gauge", "The limit of a cgroup; no sample if it has none.",
	  ACCOUNT(limit[FLEXMEM_CHARGE_BYTES]) },
};

static void print_family(const struct exporter *exporter,
			 const struct family *family)
{
	const struct scrape *scrape = &exporter->scrape;
	const struct scraped *function;

	fprintf(exporter->file, "# HELP %s %s\n# TYPE %s %s\n", family->name,
		family->help, family->name, family->type);
	for (function = scrape->functions;
	     function < scrape->functions + scrape->count; function++) {
		if (!is_readable(function) && !family->even_unreadable)
			continue;
		if (family->print)
			family->print(exporter, family->name, function);
		else if (family->is_usage)
			print_sample(exporter, family->name, function, NULL,
				     NULL, scalar(function, family->offset));
		else
			print_accounts(exporter, family->name, function,
				       family->offset);
	}
}

static void print_all(const struct exporter *exporter)
{
	size_t i;

	for (i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		print_family(exporter, &families[i]);
}

/* ---- the file ---- */

static void write_all(FILE *file, void *user)
{
	struct exporter *exporter = user;

	exporter->file = file;
	print_all(exporter);
}

static int write_file(struct exporter *exporter, const char *path)
{
	struct aside aside = { 0 };
	int fd = aside_begin(&aside, path, 0640);

	return fd < 0 ? fd : aside_end(&aside, aside_print(fd, write_all, exporter));
}

/* Says which functions could not be read; the others are in the file. */
static enum tool_status report_errors(const struct exporter *exporter)
{
	const struct scrape *scrape = &exporter->scrape;
	enum tool_status status = TOOL_OK;
	const struct scraped *function;

	for (function = scrape->functions;
	     function < scrape->functions + scrape->count; function++) {
		if (function->error)
			status = tool_error(exporter->tool, function->error,
					    NULL, "%s", function->identity.path);
		else if (!function->whole && !scraped_is_own(function))
			status = tool_fail(exporter->tool, -EAGAIN,
					   "%s: the owners changed during each reading, so their memory does not add up to the memory in use",
					   function->identity.path);
		else if (!function->whole)
			status = tool_fail(exporter->tool, -EPERM,
					   "%s: the owners that this process sees do not have all memory in use; only the administrator sees all",
					   function->identity.path);
	}
	return status;
}

static enum tool_status export_to(struct exporter *exporter, const char *path)
{
	enum tool_status status;
	int err = scrape_all(&exporter->scrape);

	if (err)
		return tool_error(exporter->tool, err, NULL, "export");
	status = report_errors(exporter);
	if (path) {
		err = write_file(exporter, path);
		if (err)
			return file_error(exporter->tool, err, path);
	} else {
		exporter->file = stdout;
		print_all(exporter);
	}
	return status;
}

/* Adds a parent without the slashes at its end, so the root is "". */
static void add_parent(struct exporter *exporter, char *path)
{
	size_t length = strlen(path);

	while (length && path[length - 1] == '/')
		path[--length] = '\0';
	exporter->parents = grow(exporter->parents, exporter->nr_parents + 1,
				 sizeof(*exporter->parents));
	exporter->parents[exporter->nr_parents++] = path;
}

static void clear(struct exporter *exporter)
{
	scrape_clear(&exporter->scrape);
	free(exporter->parents);
}

enum tool_status cmd_export(struct tool *tool, int argc, char **argv)
{
	static const struct option options[] = {
		{ "show", required_argument, NULL, 's' },
		{ "output", required_argument, NULL, 'o' },
		COMMON_OPTIONS
	};
	struct exporter exporter = { .tool = tool };
	enum tool_status status;
	const char *path = NULL;
	int option;

	while ((option = next_option(tool, argc, argv, options)) !=
	       OPTION_END) {
		if (option == 's' && *optarg == '/') {
			add_parent(&exporter, optarg);
		} else if (option == 's') {
			free(exporter.parents);
			return usage_error(tool, "--show takes the whole path of a cgroup, which begins with '/', not '%s'",
					   optarg);
		} else if (option == 'o') {
			path = optarg;
		} else {
			free(exporter.parents);
			return option_status(option);
		}
	}
	if (optind < argc)
		status = usage_error(tool, "unexpected argument '%s'",
				     argv[optind]);
	else if (tool->path)
		status = usage_error(tool, "'export' shows all functions, not one");
	else if (tool->json)
		status = usage_error(tool, "'export' writes the text format of Prometheus, not JSON");
	else
		status = export_to(&exporter, path);
	clear(&exporter);
	return status;
}
