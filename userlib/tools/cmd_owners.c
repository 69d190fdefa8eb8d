// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem owners and limit. */
#include "tool.h"
#include "render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AMOUNT_MAX 24
#define AMOUNTS_MAX (FLEXMEM_CHARGES * AMOUNT_MAX)

/*
 * An option that sets the limit of a charge has the number SET_LIMIT + charge.
 */
#define SET_LIMIT 0x100

static const char *amount_text(uint32_t charge, uint64_t amount,
			       char text[AMOUNT_MAX])
{
	char human[FMLIB_HUMAN_MAX];

	if (amount == FLEXMEM_UNLIMITED)
		snprintf(text, AMOUNT_MAX, "none");
	else if (charge == FLEXMEM_CHARGE_BYTES)
		snprintf(text, AMOUNT_MAX, "%s",
			 fmlib_human(amount, human));
	else
		snprintf(text, AMOUNT_MAX, "%" PRIu64, amount);
	return text;
}

/* Prints all limits, as "8.0 GiB/4/none/none", or just "none". */
static const char *amounts_text(const uint64_t amounts[FLEXMEM_CHARGES],
				char text[AMOUNTS_MAX])
{
	char one[FLEXMEM_CHARGES][AMOUNT_MAX];
	bool any = false;
	uint32_t i;

	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		amount_text(i, amounts[i], one[i]);
		any |= amounts[i] != FLEXMEM_UNLIMITED;
	}
	if (any)
		snprintf(text, AMOUNTS_MAX, "%s/%s/%s/%s",
			 one[FLEXMEM_CHARGE_BYTES], one[FLEXMEM_CHARGE_REGIONS],
			 one[FLEXMEM_CHARGE_HANDLES], one[FLEXMEM_CHARGE_FILES]);
	else
		snprintf(text, AMOUNTS_MAX, "none");
	return text;
}

static void print_sums(const struct flexmem_usage *usage)
{
	static const char *const headings[] = {
		"total", "free", "owned", "orphaned", "reserved",
		"quarantined", "open files",
	};
	struct table table = { .headings = headings, .columns = 7 };
	const uint64_t sizes[] = {
		usage->total, usage->free, usage->owned, usage->orphaned,
		usage->reserved, usage->quarantined,
	};
	char text[FMLIB_HUMAN_MAX];
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		table_add(&table, "%s", fmlib_human(sizes[i], text));
	table_add(&table, "%" PRIu64, usage->clients);
	table_print(&table, stdout, render_width(stdout));
	table_clear(&table);
}

/*
 * Removes the open file of this process from the list. The process opened it
 * only for the report. In a shell the file stays in the list, because it has
 * the allocations of the user.
 */
static size_t without_own(const struct tool *tool,
			  struct flexmem_account_state *accounts, size_t count)
{
	const uint32_t own = (uint32_t)getpid();
	size_t left = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		if (tool->shell || accounts[i].pid != own)
			accounts[left++] = accounts[i];
	}
	return left;
}

/*
 * Adds the number of reserved regions, and how many there should be if that is
 * more.
 */
static void add_reserved(struct table *table,
			 const struct flexmem_account_state *one)
{
	if (one->reserved == one->reservation)
		table_add(table, "%u", one->reserved);
	else
		table_add(table, "%u of %u", one->reserved, one->reservation);
}

static bool any_reservation(const struct flexmem_account_state *accounts,
			    size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (accounts[i].reservation)
			return true;
	return false;
}

/*
 * Adds the orphaned bytes, and how long the oldest of them have waited for
 * device programs.
 */
static void add_orphaned(struct table *table,
			 const struct flexmem_account_state *one)
{
	char size[FMLIB_HUMAN_MAX];

	fmlib_human(one->orphaned, size);
	if (one->leaving)
		table_add(table, "%s for %" PRIu64 " s", size,
			  one->waits_ms / 1000);
	else
		table_add(table, "%s", size);
}

/* Adds who the account belongs to, as "cgroup /a/b" or "client 1". */
static void add_owner(struct table *table,
		      const struct flexmem_account_state *one,
		      const struct cgroup_names *names)
{
	const char *kind = account_kind_name(one->kind);
	const char *path = NULL;

	if (one->kind == FLEXMEM_ACCOUNT_CGROUP)
		path = cgroup_names_get(names, one->id);
	if (path)
		table_add(table, "%s %s", kind, path);
	else
		table_add(table, "%s %" PRIu64 "%s", kind, one->id,
			  one->removed ? " removed" : "");
}

/*
 * Prints the accounts. The column of reserved regions is printed only if there
 * is a reservation.
 */
static void print_accounts(const struct flexmem_account_state *accounts,
			   size_t count, const struct cgroup_names *names)
{
	static const char *const headings[] = {
		"<owner", "uid", "pid", "<process", "bytes", "orphaned",
		"peak", "slots", "handles", "<limit", "reserved",
	};
	const size_t columns = sizeof(headings) / sizeof(headings[0]);
	bool reserved = any_reservation(accounts, count);
	struct table table = {
		.headings = headings,
		.columns = reserved ? columns : columns - 1,
	};
	const struct flexmem_account_state *one;
	char process[PROCESS_NAME_MAX];
	char size[FMLIB_HUMAN_MAX];
	char text[AMOUNTS_MAX];
	size_t i;

	for (i = 0; i < count; i++) {
		one = &accounts[i];
		add_owner(&table, one, names);
		table_add(&table, "%u", one->uid);
		if (one->pid)
			table_add(&table, "%u", one->pid);
		else
			table_add(&table, "-");
		table_add(&table, "%s",
			  process_name(one->pid, process) ? process : "-");
		table_add(&table, "%s", fmlib_human(one->bytes, size));
		add_orphaned(&table, one);
		table_add(&table, "%s", fmlib_human(one->peak, size));
		table_add(&table, "%" PRIu64, one->slots);
		table_add(&table, "%" PRIu64, one->handles);
		table_add(&table, "%s", amounts_text(one->limit, text));
		if (reserved)
			add_reserved(&table, one);
	}
	table_print(&table, stdout, render_width(stdout));
	table_clear(&table);
	puts("\nlimit: bytes/regions/handles/files");
}

static json_t *json_sums(const struct flexmem_usage *usage)
{
	json_t *object = json_checked(json_object());

	json_add(object, "capacity", json_number(usage->capacity));
	json_add(object, "total", json_number(usage->total));
	json_add(object, "free", json_number(usage->free));
	json_add_usage(object, usage);
	json_add(object, "generation", json_number(usage->generation));
	return object;
}

static enum tool_status show_owners(struct tool *tool)
{
	struct flexmem_account_state *accounts;
	struct cgroup_names names;
	struct flexmem_usage usage;
	json_t *object;
	size_t count;
	int err;

	err = flexmem_device_usage(tool->device, &usage, sizeof(usage), NULL, 0,
				   &accounts, sizeof(*accounts));
	if (err)
		return tool_error(tool, err, NULL, "owners");
	count = without_own(tool, accounts, usage.accounts);
	cgroup_names_find(&names, accounts, count);
	if (tool->json) {
		object = json_sums(&usage);
		json_add(object, "owners",
			 json_accounts(accounts, count, &names));
		json_print(tool, object);
	} else {
		print_sums(&usage);
		putchar('\n');
		print_accounts(accounts, count, &names);
	}
	cgroup_names_clear(&names);
	flexmem_accounts_free(accounts);
	return TOOL_OK;
}

enum tool_status cmd_owners(struct tool *tool, int argc, char **argv)
{
	enum tool_status status;

	if (!report_options(tool, argc, argv, &status))
		return status;
	return tool_report(tool, show_owners);
}

/* The limits to set, by charge. @all: for each function. */
struct limit_options {
	bool chosen;
	bool all;
	uint32_t whose;
	uint64_t cgroup;
	bool sets_any;
	bool sets[FLEXMEM_CHARGES];
	uint64_t limit[FLEXMEM_CHARGES];
};

/*
 * Limits. @allowance[i] is valid only if @known[i] is set. @path: of the cgroup;
 * or NULL.
 */
struct limits {
	bool own;
	uint32_t whose;
	uint64_t cgroup;
	char *path;
	bool known[FLEXMEM_CHARGES];
	struct flexmem_allowance allowance[FLEXMEM_CHARGES];
};

static bool choose_cgroup(struct tool *tool, struct limit_options *options)
{
	if (options->chosen) {
		usage_error(tool, "one --cgroup or --default, not more");
		return false;
	}
	options->chosen = true;
	return parse_cgroup(tool, optarg, &options->cgroup);
}

static bool choose_default(struct tool *tool, struct limit_options *options)
{
	if (options->chosen) {
		usage_error(tool, "one --cgroup or --default, not more");
		return false;
	}
	options->chosen = true;
	options->whose = FLEXMEM_FOR_DEFAULT;
	return true;
}

static bool set_amount(struct tool *tool, int option,
		       struct limit_options *options)
{
	uint32_t charge = option - SET_LIMIT;
	uint64_t *value = &options->limit[charge];
	bool good;

	if (!strcmp(optarg, "none")) {
		*value = FLEXMEM_UNLIMITED;
		good = true;
	} else if (charge == FLEXMEM_CHARGE_BYTES) {
		good = parse_size(optarg, value);
	} else {
		good = parse_number(optarg, UINT64_MAX, value);
	}
	if (!good) {
		usage_error(tool, "'%s' is neither a number nor none", optarg);
		return false;
	}
	options->sets_any = true;
	options->sets[charge] = true;
	return true;
}

static bool limit_option(struct tool *tool, int option,
			 struct limit_options *options, bool *each)
{
	if (option == 'g')
		return choose_cgroup(tool, options);
	if (option == 'u')
		return choose_default(tool, options);
	if (option == 'e')
		return *each = true;
	if (option == 'a')
		return options->all = true;
	return option >= SET_LIMIT && set_amount(tool, option, options);
}

static bool check_limit(struct tool *tool, struct limit_options *options,
			bool each)
{
	if (options->sets_any && !options->chosen) {
		usage_error(tool, "whose? --cgroup PATH or --default is needed");
		return false;
	}
	if (each && (!options->chosen || options->whose)) {
		usage_error(tool, "--each-child goes with --cgroup PATH");
		return false;
	}
	if (each)
		options->whose = FLEXMEM_FOR_EACH_CHILD;
	if ((options->whose || options->all) && !options->sets_any) {
		usage_error(tool, "a limit to set is needed");
		return false;
	}
	return true;
}

static bool limit_arguments(struct tool *tool, int argc, char **argv,
			    struct limit_options *options,
			    enum tool_status *status)
{
	static const struct option known[] = {
		{ "cgroup", required_argument, NULL, 'g' },
		{ "each-child", no_argument, NULL, 'e' },
		{ "default", no_argument, NULL, 'u' },
		{ "all", no_argument, NULL, 'a' },
		{ "bytes", required_argument, NULL,
		  SET_LIMIT + FLEXMEM_CHARGE_BYTES },
		{ "regions", required_argument, NULL,
		  SET_LIMIT + FLEXMEM_CHARGE_REGIONS },
		{ "handles", required_argument, NULL,
		  SET_LIMIT + FLEXMEM_CHARGE_HANDLES },
		{ "files", required_argument, NULL,
		  SET_LIMIT + FLEXMEM_CHARGE_FILES },
		COMMON_OPTIONS
	};
	bool each = false;
	int option;

	while ((option = next_option(tool, argc, argv, known)) != OPTION_END) {
		if (!limit_option(tool, option, options, &each)) {
			*status = option_status(option);
			return false;
		}
	}
	*status = TOOL_USAGE;
	if (optind < argc) {
		usage_error(tool, "unexpected argument '%s'", argv[optind]);
		return false;
	}
	return check_limit(tool, options, each);
}

/*
 * Sets the limits one after the other. Limits that were set before a failure
 * stay set.
 */
static enum tool_status set_limits(struct tool *tool,
				   const struct limit_options *options,
				   struct limits *limits)
{
	uint32_t whose = options->whose;
	uint32_t i;
	int err;

	if (options->all)
		whose |= FLEXMEM_FOR_ALL_FUNCTIONS;
	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		if (!options->sets[i])
			continue;
		err = flexmem_device_set_limit(tool->device, whose,
					       options->cgroup, i,
					       options->limit[i],
					       &limits->allowance[i],
					       sizeof(limits->allowance[i]));
		if (err == -ENOENT)
			return tool_fail(tool, err,
					 "limit: no cgroup %" PRIu64,
					 options->cgroup);
		if (err)
			return tool_error(tool, err, NULL, "limit of %s",
					  charge_name(i));
		limits->known[i] = true;
	}
	return TOOL_OK;
}

static void limits_from_account(const struct flexmem_account_state *account,
				struct limits *limits)
{
	const uint64_t used[FLEXMEM_CHARGES] = {
		[FLEXMEM_CHARGE_BYTES] = account->bytes + account->orphaned,
		[FLEXMEM_CHARGE_REGIONS] = account->slots,
		[FLEXMEM_CHARGE_HANDLES] = account->handles,
		[FLEXMEM_CHARGE_FILES] = account->files,
	};
	uint32_t i;

	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		limits->known[i] = true;
		limits->allowance[i] = (struct flexmem_allowance){
			.limit = account->limit[i],
			.used = used[i],
		};
	}
}

/* Finds another owner's accounts, which only an administrator may see. */
static enum tool_status find_limits(struct tool *tool, struct limits *limits)
{
	struct flexmem_account_state *accounts;
	struct flexmem_usage usage;
	bool found = false;
	uint32_t i;
	int err;

	err = flexmem_device_usage(tool->device, &usage, sizeof(usage), NULL, 0,
				   &accounts, sizeof(*accounts));
	if (err)
		return tool_error(tool, err, NULL, "limit");
	for (i = 0; i < usage.accounts && !found; i++) {
		found = accounts[i].kind == FLEXMEM_ACCOUNT_CGROUP &&
			accounts[i].id == limits->cgroup;
		if (found)
			limits_from_account(&accounts[i], limits);
	}
	flexmem_accounts_free(accounts);
	if (found)
		return TOOL_OK;
	return tool_fail(tool, -ENOENT,
			 "limit: no cgroup %" PRIu64 " with an open file, memory or a limit that you may see",
			 limits->cgroup);
}

static enum tool_status own_limits(struct tool *tool, struct limits *limits)
{
	uint32_t i;
	int err;

	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		err = flexmem_device_get_limit(tool->device, i,
					       &limits->allowance[i],
					       sizeof(limits->allowance[i]));
		if (err)
			return tool_error(tool, err, NULL, "limit");
		limits->known[i] = true;
	}
	return TOOL_OK;
}

static void add_whose(struct table *table, const struct limits *limits)
{
	if (limits->own)
		table_add(table, "own cgroup");
	else if (limits->whose == FLEXMEM_FOR_DEFAULT)
		table_add(table, "default");
	else if (limits->path)
		table_add(table, "%scgroup %s",
			  limits->whose ? "each child of " : "", limits->path);
	else
		table_add(table, "%scgroup %" PRIu64,
			  limits->whose ? "each child of " : "",
			  limits->cgroup);
}

static void add_limits(struct table *table, const struct limits *limits)
{
	const struct flexmem_allowance *one;
	char text[AMOUNT_MAX];
	uint32_t i;

	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		if (!limits->known[i])
			continue;
		one = &limits->allowance[i];
		add_whose(table, limits);
		table_add(table, "%s", charge_name(i));
		table_add(table, "%s", amount_text(i, one->used, text));
		table_add(table, "%s", amount_text(i, one->limit, text));
	}
}

static void print_limits(const struct limits *limits)
{
	static const char *const headings[] = {
		"<owner", "<what", "used", "limit",
	};
	struct table table = { .headings = headings, .columns = 4 };

	add_limits(&table, limits);
	table_print(&table, stdout, render_width(stdout));
	table_clear(&table);
}

static json_t *json_limits(const struct limits *limits)
{
	static const char *const kinds[] = {
		[FLEXMEM_FOR_CGROUP] = "cgroup",
		[FLEXMEM_FOR_EACH_CHILD] = "each_child",
		[FLEXMEM_FOR_DEFAULT] = "default",
	};
	json_t *object = json_checked(json_object());
	const struct flexmem_allowance *one;
	json_t *part;
	uint32_t i;

	json_add(object, "kind", json_string(kinds[limits->whose]));
	json_add(object, "id", limits->cgroup ? json_number(limits->cgroup) :
						json_null());
	json_add(object, "path", json_path(limits->path));
	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		if (!limits->known[i])
			continue;
		one = &limits->allowance[i];
		part = json_checked(json_object());
		json_add(part, "used", json_number(one->used));
		json_add(part, "limit", json_limit(one->limit));
		json_add(object, charge_name(i), part);
	}
	return object;
}

enum tool_status cmd_limit(struct tool *tool, int argc, char **argv)
{
	struct limit_options options = { .chosen = false };
	struct limits limits = { .own = true };
	enum tool_status status;
	json_t *array;

	if (!limit_arguments(tool, argc, argv, &options, &status))
		return status;
	status = tool_open(tool);
	if (status)
		return status;
	limits.own = !options.chosen;
	limits.whose = options.whose;
	limits.cgroup = options.cgroup;
	if (limits.own)
		status = own_limits(tool, &limits);
	else if (options.sets_any)
		status = set_limits(tool, &options, &limits);
	else
		status = find_limits(tool, &limits);
	if (status)
		return status;
	limits.path = limits.cgroup ? cgroup_path(limits.cgroup) : NULL;
	if (tool->json) {
		array = json_checked(json_array());
		json_array_append_new(array, json_limits(&limits));
		json_print(tool, array);
	} else {
		print_limits(&limits);
	}
	free(limits.path);
	return TOOL_OK;
}
