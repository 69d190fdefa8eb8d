// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * flexmem export: figures of all functions in the text format of Prometheus.
 *
 * The figures of a function come from one snapshot, so that they add up. Names of
 * cgroups become public with the file, so only those below the parents that
 * --show names are in it; all others together are one series.
 */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The owners after the first 64 are read later than the sums. So a snapshot whose
 * sums differ is taken again, at most this often.
 */
#define MOST_SNAPSHOTS 100

/* How the cgroup of an account is named. */
enum label {
	LABEL_PATH,
	LABEL_REMOVED,
	LABEL_OTHER,
};

/* @own: the bytes of an account that no other account below it has. */
struct figure {
	enum label label;
	const char *path;
	uint64_t own;
};

/* A function and its snapshot. @error: why there is none, or 0. */
struct scraped {
	struct flexmem_identity identity;
	struct flexmem_properties properties;
	struct flexmem_usage usage;
	struct flexmem_region_state *regions;
	struct flexmem_account_state *accounts;
	struct cgroup_names names;
	struct figure *figures;
	int error;
};

struct exporter {
	struct tool *tool;
	const char **parents;
	size_t nr_parents;
	struct scraped *functions;
	size_t count;
	FILE *file;
};

static const struct flexmem_account_state *
find_account(const struct scraped *function, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < function->usage.accounts; i++) {
		if (function->accounts[i].kind == FLEXMEM_ACCOUNT_CGROUP &&
		    function->accounts[i].id == id)
			return &function->accounts[i];
	}
	return NULL;
}

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
 * A removed cgroup has no path any more. It counts as shown if the first cgroup
 * above it that has one is.
 */
static enum label label_of(const struct exporter *exporter,
			   const struct scraped *function,
			   const struct flexmem_account_state *account)
{
	const struct flexmem_account_state *above = account;
	const char *path = cgroup_names_get(&function->names, account->id);

	if (path)
		return is_shown(exporter, path, false) ? LABEL_PATH : LABEL_OTHER;
	if (!account->removed)
		return LABEL_OTHER;
	while (!path && above->parent) {
		above = find_account(function, above->parent);
		if (!above)
			return LABEL_OTHER;
		path = cgroup_names_get(&function->names, above->id);
	}
	return path && is_shown(exporter, path, true) ? LABEL_REMOVED :
							LABEL_OTHER;
}

/*
 * Computes what each cgroup has that none below it has. Returns whether this adds
 * up to the bytes in use.
 */
static bool add_up(struct scraped *function)
{
	const struct flexmem_account_state *one, *parent;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < function->usage.accounts; i++)
		function->figures[i].own = function->accounts[i].bytes;
	for (i = 0; i < function->usage.accounts; i++) {
		one = &function->accounts[i];
		if (one->kind != FLEXMEM_ACCOUNT_CGROUP)
			continue;
		sum += one->bytes;
		parent = find_account(function, one->parent);
		if (!parent)
			continue;
		sum -= one->bytes;
		if (function->figures[parent - function->accounts].own <
		    one->bytes)
			return false;
		function->figures[parent - function->accounts].own -= one->bytes;
	}
	return sum == function->usage.owned;
}

static void forget(struct scraped *function)
{
	flexmem_regions_free(function->regions);
	flexmem_accounts_free(function->accounts);
	free(function->figures);
	function->regions = NULL;
	function->accounts = NULL;
	function->figures = NULL;
}

/* Returns -EAGAIN if the figures of a snapshot do not add up. */
static int take_snapshot(const struct flexmem_device *device,
			 struct scraped *function)
{
	int err;

	err = flexmem_device_properties(device, &function->properties,
					sizeof(function->properties));
	if (!err)
		err = flexmem_device_usage(device, &function->usage,
					   sizeof(function->usage),
					   &function->regions,
					   sizeof(*function->regions),
					   &function->accounts,
					   sizeof(*function->accounts));
	if (err)
		return err;
	function->figures = grow(NULL, (size_t)function->usage.accounts + 1,
				 sizeof(*function->figures));
	if (add_up(function))
		return 0;
	forget(function);
	return -EAGAIN;
}

static int scrape_function(const struct exporter *exporter,
			   struct scraped *function)
{
	struct flexmem_device *device;
	unsigned int tries = 0;
	uint32_t i;
	int err;

	err = flexmem_device_open(&device, function->identity.path);
	if (err)
		return err;
	do
		err = take_snapshot(device, function);
	while (err == -EAGAIN && ++tries < MOST_SNAPSHOTS);
	flexmem_device_close(device);
	if (err)
		return err;
	cgroup_names_find(&function->names, function->accounts,
			  function->usage.accounts);
	for (i = 0; i < function->usage.accounts; i++) {
		if (function->accounts[i].kind != FLEXMEM_ACCOUNT_CGROUP)
			continue;
		function->figures[i].label =
			label_of(exporter, function, &function->accounts[i]);
		function->figures[i].path = cgroup_names_get(
			&function->names, function->accounts[i].id);
	}
	return 0;
}

/* A function that goes away meanwhile is left out. */
static int scrape(struct exporter *exporter)
{
	struct scraped *function;
	int err;

	for (;;) {
		exporter->functions = grow(exporter->functions,
					   exporter->count + 1,
					   sizeof(*exporter->functions));
		function = &exporter->functions[exporter->count];
		*function = (struct scraped){ 0 };
		err = flexmem_device_identity((unsigned int)exporter->count,
					      &function->identity,
					      sizeof(function->identity));
		if (err)
			return err == -ENODEV ? 0 : err;
		function->error = scrape_function(exporter, function);
		exporter->count++;
	}
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
	fputs("} 1\n", file);
}

static void print_state(const struct exporter *exporter, const char *metric,
			const struct scraped *function)
{
	print_sample(exporter, metric, function, "state",
		     condition_name(function->properties.condition), 1);
}

static void print_readable(const struct exporter *exporter, const char *metric,
			   const struct scraped *function)
{
	print_sample(exporter, metric, function, NULL, NULL, !function->error);
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
	uint64_t removed = 0, other = 0;
	bool any_removed = false;
	const struct figure *figure;
	uint32_t i;

	for (i = 0; i < function->usage.accounts; i++) {
		figure = &function->figures[i];
		if (function->accounts[i].kind != FLEXMEM_ACCOUNT_CGROUP)
			continue;
		if (figure->label == LABEL_PATH) {
			print_sample(exporter, metric, function, "cgroup",
				     figure->path, figure->own);
		} else if (figure->label == LABEL_REMOVED) {
			any_removed = true;
			removed += figure->own;
		} else {
			other += figure->own;
		}
	}
	if (any_removed)
		print_sample(exporter, metric, function, "cgroup", "removed",
			     removed);
	print_sample(exporter, metric, function, "cgroup", "other", other);
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
	uint64_t number;
	uint32_t i;

	for (i = 0; i < function->usage.accounts; i++) {
		if (function->accounts[i].kind != FLEXMEM_ACCOUNT_CGROUP ||
		    function->figures[i].label != LABEL_PATH)
			continue;
		memcpy(&number, (const char *)&function->accounts[i] + offset,
		       sizeof(number));
		if (number != FLEXMEM_UNLIMITED)
			print_sample(exporter, metric, function, "cgroup",
				     function->figures[i].path, number);
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
	{ "flexmem_function_info", "gauge", "Always 1: node, mode and driver of a function.",
	  .print = print_info, .even_unreadable = true },
	{ "flexmem_function_readable", "gauge", "1 if the figures of the function could be read, else 0.",
	  .print = print_readable, .even_unreadable = true },
	{ "flexmem_function_state", "gauge", "Always 1: the state of a function, such as usable or wedged.",
	  .print = print_state },
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
	{ "flexmem_failures_total", "counter", "Allocations that failed for lack of memory.",
	  USAGE(failures) },
	{ "flexmem_resets_total", "counter", "Resets of the device.",
	  USAGE(resets) },
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
	{ "flexmem_cgroup_open_files", "gauge", "Number of open files of a cgroup and of all below it.",
	  ACCOUNT(files) },
	{ "flexmem_cgroup_limit_bytes", "gauge", "The limit of a cgroup; no sample if it has none.",
	  ACCOUNT(limit[FLEXMEM_CHARGE_BYTES]) },
};

static void print_family(const struct exporter *exporter,
			 const struct family *family)
{
	const struct scraped *function;

	fprintf(exporter->file, "# HELP %s %s\n# TYPE %s %s\n", family->name,
		family->help, family->name, family->type);
	for (function = exporter->functions;
	     function < exporter->functions + exporter->count; function++) {
		if (function->error && !family->even_unreadable)
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

/*
 * Writes a file aside and renames it, because its reader may come at any moment.
 * The name aside has no suffix that node_exporter reads.
 */
static int write_file(struct exporter *exporter, const char *path)
{
	char aside[PATH_MAX];
	int fd, err = 0;

	if (snprintf(aside, sizeof(aside), "%s.XXXXXX", path) >=
	    (int)sizeof(aside))
		return -ENAMETOOLONG;
	fd = mkstemp(aside);
	if (fd < 0)
		return -errno;
	exporter->file = fdopen(fd, "w");
	if (!exporter->file) {
		err = -errno;
		close(fd);
	} else {
		print_all(exporter);
		if (fchmod(fd, 0640) || fflush(exporter->file) ||
		    ferror(exporter->file))
			err = -errno;
		if (fclose(exporter->file) && !err)
			err = -errno;
	}
	if (!err && rename(aside, path))
		err = -errno;
	if (err)
		unlink(aside);
	return err;
}

/* Says which functions could not be read; the others are in the file. */
static enum tool_status report_errors(const struct exporter *exporter)
{
	enum tool_status status = TOOL_OK;
	const struct scraped *function;

	for (function = exporter->functions;
	     function < exporter->functions + exporter->count; function++) {
		if (function->error == -EAGAIN)
			status = tool_fail(exporter->tool, -EPERM,
					   "%s: the owners that this process sees do not have all memory in use; only the administrator sees all",
					   function->identity.path);
		else if (function->error)
			status = tool_error(exporter->tool, function->error,
					    NULL, "%s", function->identity.path);
	}
	return status;
}

static enum tool_status export_to(struct exporter *exporter, const char *path)
{
	enum tool_status status;
	int err = scrape(exporter);

	if (err)
		return tool_error(exporter->tool, err, NULL, "export");
	status = report_errors(exporter);
	if (path) {
		err = write_file(exporter, path);
		if (err)
			return tool_error(exporter->tool, err, NULL, "%s", path);
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
	size_t i;

	for (i = 0; i < exporter->count; i++) {
		cgroup_names_clear(&exporter->functions[i].names);
		forget(&exporter->functions[i]);
	}
	free(exporter->functions);
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
