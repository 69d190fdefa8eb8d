// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem owners. */
#include "tool.h"
#include "render.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AMOUNTS_MAX (FLEXMEM_CHARGES * RENDER_AMOUNT_MAX)

/* Prints all limits, as "8.0 GiB/4/none/none", or just "none". */
static const char *amounts_text(const uint64_t amounts[FLEXMEM_CHARGES],
				char text[AMOUNTS_MAX])
{
	char one[FLEXMEM_CHARGES][RENDER_AMOUNT_MAX];
	bool any = false;
	uint32_t i;

	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		render_amount(i, amounts[i], one[i]);
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
