// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The lines of flexmem top. All columns but the last have a fixed width, so that
 * figures stay where they are from one reading to the next. Together with ten
 * columns for names they fit into 80 columns.
 */
#define _XOPEN_SOURCE 700 /* wcwidth() */
#include "top_view.h"
#include "human.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* Room for a figure: "1023.9M", a number, or "none". */
#define FIGURE_MAX 24

#define PROCESS_WIDTH 15

/* How the value of a column is found and shown. Those after FIGURES are texts. */
enum kind {
	BYTES,
	LIMIT,
	NUMBER,
	SHORT_NUMBER,
	OWN,
	FRESH,
	NODE,
	FIGURES,
	PROCESS = FIGURES,
	NAME,
};

struct column {
	const char *heading;
	unsigned int width;
	enum kind kind;
	size_t offset;
};

#define USAGE(member) offsetof(struct flexmem_usage, member)
#define ACCOUNT(member) offsetof(struct flexmem_account_state, member)

static const struct column function_columns[] = {
	{ "acquired", 8, BYTES, USAGE(total) },
	{ "used", 9, BYTES, USAGE(owned) },
	{ "leaving", 9, BYTES, USAGE(orphaned) },
	{ "reserved", 9, BYTES, USAGE(reserved) },
	{ "quarantined", 12, BYTES, USAGE(quarantined) },
	{ "free", 9, BYTES, USAGE(free) },
	{ "new", 6, FRESH, 0 },
	{ "failed", 7, NUMBER, USAGE(failures) },
	{ "function", 0, NAME, 0 },
};

static const struct column account_columns[] = {
	{ "used", 8, BYTES, ACCOUNT(bytes) },
	{ "own", 9, OWN, 0 },
	{ "leaving", 9, BYTES, ACCOUNT(orphaned) },
	{ "peak", 9, BYTES, ACCOUNT(peak) },
	{ "limit", 9, LIMIT, ACCOUNT(limit[FLEXMEM_CHARGE_BYTES]) },
	{ "files", 6, NUMBER, ACCOUNT(files) },
	{ "node", 5, NODE, 0 },
	{ "cgroup", 0, NAME, 0 },
};

static const struct column client_columns[] = {
	{ "used", 8, BYTES, ACCOUNT(bytes) },
	{ "leaving", 9, BYTES, ACCOUNT(orphaned) },
	{ "peak", 9, BYTES, ACCOUNT(peak) },
	{ "handles", 8, NUMBER, ACCOUNT(handles) },
	{ "node", 5, NODE, 0 },
	{ "pid", 8, SHORT_NUMBER, ACCOUNT(pid) },
	{ "process", PROCESS_WIDTH, PROCESS, 0 },
	{ "cgroup", 0, NAME, 0 },
};

#define VIEW(text, list) { text, list, sizeof(list) / sizeof((list)[0]) }

static const struct view {
	const char *name;
	const struct column *columns;
	size_t count;
} views[] = {
	[TOP_FUNCTIONS] = VIEW("functions", function_columns),
	[TOP_ACCOUNTS] = VIEW("accounts", account_columns),
	[TOP_CLIENTS] = VIEW("clients", client_columns),
};

static const struct view *view_of(const struct top_list *list)
{
	return &views[list->view];
}

static const struct column *order_of(const struct top_list *list)
{
	return &view_of(list)->columns[list->order];
}

void top_list_order(struct top_list *list, int step)
{
	unsigned int count = (unsigned int)view_of(list)->count;

	list->order = (list->order + count + (unsigned int)step) % count;
}

/* ---- cells ---- */

static uint64_t number_of(const struct top_row *row,
			  const struct column *column)
{
	const char *base = row->account ? (const char *)row->account :
					  (const char *)&row->function->usage;
	uint64_t number;
	uint32_t shorter;

	switch (column->kind) {
	case OWN:
		return row->own;
	case FRESH:
		return row->fresh;
	case NODE:
		return row->index;
	case SHORT_NUMBER:
		memcpy(&shorter, base + column->offset, sizeof(shorter));
		return shorter;
	default:
		memcpy(&number, base + column->offset, sizeof(number));
		return number;
	}
}

/* "12.0G" for "12.0 GiB". */
static void short_size(uint64_t bytes, char text[FIGURE_MAX])
{
	char human[FMLIB_HUMAN_MAX];
	char *space;

	snprintf(text, FIGURE_MAX, "%s", fmlib_human(bytes, human));
	space = strchr(text, ' ');
	if (!space)
		return;
	space[0] = space[1] == 'B' ? '\0' : space[1];
	space[1] = '\0';
}

/* The name of a node without its folder. */
static const char *node_name(const struct scraped *function)
{
	const char *slash = strrchr(function->identity.path, '/');

	return slash ? slash + 1 : function->identity.path;
}

/* The number of a node, or else its name. */
static void node_text(const struct scraped *function, char text[FIGURE_MAX])
{
	static const char prefix[] = "flexmem";
	const size_t length = sizeof(prefix) - 1;
	const char *name = node_name(function);

	if (!strncmp(name, prefix, length) &&
	    isdigit((unsigned char)name[length]))
		name += length;
	snprintf(text, FIGURE_MAX, "%.*s", FIGURE_MAX - 1, name);
}

static void figure_text(const struct top_row *row, const struct column *column,
			char text[FIGURE_MAX])
{
	uint64_t number = number_of(row, column);

	if (column->kind == NODE)
		node_text(row->function, text);
	else if (row->function->error)
		snprintf(text, FIGURE_MAX, "-");
	else if (column->kind == LIMIT && number == FLEXMEM_UNLIMITED)
		snprintf(text, FIGURE_MAX, "none");
	else if (column->kind == BYTES || column->kind == LIMIT ||
		 column->kind == OWN)
		short_size(number, text);
	else if (column->kind == SHORT_NUMBER && !number)
		snprintf(text, FIGURE_MAX, "-");
	else
		snprintf(text, FIGURE_MAX, "%" PRIu64, number);
}

/* ---- rows ---- */

/* The chunks that a function has allocated since the reading before. */
static uint64_t fresh_chunks(const struct scraped *function,
			     const struct scrape *before)
{
	const struct scraped *old;

	for (old = before->functions; old < before->functions + before->count;
	     old++) {
		if (!strcmp(old->identity.id, function->identity.id) &&
		    !old->error && old->usage.allocs <= function->usage.allocs)
			return function->usage.allocs - old->usage.allocs;
	}
	return 0;
}

/* The name of a function; with its error if it could not be read. */
static char *function_name(const struct scraped *function)
{
	char text[TOOL_TEXT_MAX];
	char reason[TOOL_TEXT_MAX / 2];

	if (function->error)
		flexmem_error_text(function->error, NULL, 0, reason,
				   sizeof(reason));
	snprintf(text, sizeof(text), "%s%s%s %s", node_name(function),
		 function->error ? ": " : "", function->error ? reason : "",
		 function->identity.id);
	return escaped_text(text);
}

/* The path of a cgroup; without one its number. */
static char *cgroup_name(const struct scrape *scrape,
			 const struct scraped *function, uint64_t id)
{
	const struct flexmem_account_state *account =
		scraped_cgroup(function, id);
	const char *path = cgroup_names_get(&scrape->names, id);
	char text[64];

	if (path)
		return escaped_text(path);
	if (!id)
		return copy_text("-");
	snprintf(text, sizeof(text), "%" PRIu64 "%s", id,
		 account && account->removed ? " removed" : "");
	return copy_text(text);
}

static struct top_row *add_row(struct top_list *list,
			       const struct scraped *function)
{
	struct top_row *row;

	list->rows = grow(list->rows, list->count + 1, sizeof(*list->rows));
	row = &list->rows[list->count++];
	*row = (struct top_row){ .function = function };
	return row;
}

static void add_accounts(struct top_list *list, const struct scrape *now,
			 const struct scraped *function, uint32_t hidden)
{
	const struct flexmem_account_state *account;
	char process[PROCESS_NAME_MAX];
	struct top_row *row;
	bool is_client;
	uint32_t i;

	for (i = 0; i < function->usage.accounts; i++) {
		account = &function->accounts[i];
		is_client = account->kind == FLEXMEM_ACCOUNT_CLIENT;
		if (is_client != (list->view == TOP_CLIENTS) ||
		    (is_client && hidden && account->pid == hidden))
			continue;
		row = add_row(list, function);
		row->account = account;
		row->own = function->own[i];
		row->index = (size_t)(function - now->functions);
		row->name = cgroup_name(now, function,
					is_client ? account->parent :
						    account->id);
		row->process = escaped_text(
			process_name(account->pid, process) ? process : "-");
	}
}

static int by_order(const void *a, const void *b)
{
	const struct top_row *one = a, *other = b;
	int order = one->word ? strcmp(one->word, other->word) : 0;

	if (order)
		return order;
	if (one->number != other->number)
		return one->number < other->number ? 1 : -1;
	return (one->index > other->index) - (one->index < other->index);
}

static void sort(struct top_list *list)
{
	const struct column *column = order_of(list);
	struct top_row *row, kept;
	size_t i;

	for (i = 0; i < list->count; i++) {
		row = &list->rows[i];
		if (column->kind == NAME)
			row->word = row->name;
		else if (column->kind == PROCESS)
			row->word = row->process;
		else
			row->number = number_of(row, column);
		row->index = i;
	}
	if (list->count)
		qsort(list->rows, list->count, sizeof(*list->rows), by_order);
	for (i = 0; list->reversed && i < list->count / 2; i++) {
		row = &list->rows[list->count - 1 - i];
		kept = list->rows[i];
		list->rows[i] = *row;
		*row = kept;
	}
}

void top_list_fill(struct top_list *list, const struct scrape *now,
		   const struct scrape *before, uint32_t hidden)
{
	const struct scraped *function;
	struct top_row *row;

	top_list_clear(list);
	for (function = now->functions; function < now->functions + now->count;
	     function++) {
		if (list->view != TOP_FUNCTIONS) {
			add_accounts(list, now, function, hidden);
			continue;
		}
		row = add_row(list, function);
		row->fresh = fresh_chunks(function, before);
		row->name = function_name(function);
	}
	sort(list);
}

void top_list_clear(struct top_list *list)
{
	size_t i;

	for (i = 0; i < list->count; i++) {
		free(list->rows[i].name);
		free(list->rows[i].process);
	}
	free(list->rows);
	list->rows = NULL;
	list->count = 0;
}

static bool is_most_of(uint64_t used, uint64_t most)
{
	return used >= most - most / 10;
}

bool top_is_nearly_full(const struct top_row *row)
{
	const struct flexmem_usage *usage = &row->function->usage;

	if (row->account)
		return is_most_of(row->account->bytes + row->account->orphaned,
				  row->account->limit[FLEXMEM_CHARGE_BYTES]);
	return row->function->error ||
	       (usage->capacity &&
		is_most_of(usage->owned + usage->orphaned + usage->quarantined,
			   usage->capacity));
}

/* ---- text ---- */

void top_fit(FILE *file, const char *text, unsigned int width)
{
	mbstate_t state = { 0 };
	unsigned int used = 0;
	size_t length;
	wchar_t code;
	int columns;

	for (; *text; text += length) {
		length = mbrtowc(&code, text, strlen(text), &state);
		columns = length <= strlen(text) ? wcwidth(code) : -1;
		if (length > strlen(text)) {
			memset(&state, 0, sizeof(state));
			length = 1;
		}
		if (used + (columns < 0 ? 1 : (unsigned int)columns) > width)
			break;
		if (columns < 0)
			fputc('?', file);
		else
			fwrite(text, 1, length, file);
		used += columns < 0 ? 1 : (unsigned int)columns;
	}
	fprintf(file, "%*s", (int)(width - used), "");
}

void top_print_headings(FILE *file, const struct top_list *list)
{
	const struct view *view = view_of(list);
	const struct column *column;

	for (column = view->columns; column < view->columns + view->count;
	     column++) {
		if (column->kind < FIGURES)
			fprintf(file, "%*s", (int)column->width,
				column->heading);
		else
			fprintf(file, " %-*s", (int)column->width,
				column->heading);
	}
}

/* Skips the first characters of a text, which is UTF-8. */
static const char *without_first(const char *text, unsigned int count)
{
	for (; *text && count; count--) {
		do
			text++;
		while (((unsigned char)*text & 0xc0) == 0x80);
	}
	return text;
}

void top_print_row(FILE *file, const struct top_list *list,
		   const struct top_row *row, unsigned int shift)
{
	const struct view *view = view_of(list);
	const struct column *column;
	char text[FIGURE_MAX];

	for (column = view->columns; column < view->columns + view->count;
	     column++) {
		if (column->kind < FIGURES) {
			figure_text(row, column, text);
			fprintf(file, "%*s", (int)column->width, text);
			continue;
		}
		fputc(' ', file);
		if (column->kind == PROCESS)
			top_fit(file, row->process, column->width);
		else
			fputs(without_first(row->name, shift), file);
	}
}

void top_print_order(FILE *file, const struct top_list *list)
{
	const struct column *column = order_of(list);
	bool is_text = column->kind >= FIGURES;

	fprintf(file, "%s by %s, %s", view_of(list)->name, column->heading,
		is_text && !list->reversed ? "A to Z" :
		is_text ? "Z to A" :
		list->reversed ? "least first" : "most first");
}

void top_print_sums(FILE *file, const struct scrape *scrape)
{
	uint64_t total = 0, owned = 0, orphaned = 0;
	const struct scraped *function;
	char text[3][FMLIB_HUMAN_MAX];
	bool whole = true;

	for (function = scrape->functions;
	     function < scrape->functions + scrape->count; function++) {
		total += function->usage.total;
		owned += function->usage.owned;
		orphaned += function->usage.orphaned;
		whole &= function->error || function->whole;
	}
	fprintf(file, "%zu function%s: %s of %s in use, %s leaving%s",
		scrape->count, scrape->count == 1 ? "" : "s",
		fmlib_human(owned, text[0]), fmlib_human(total, text[1]),
		fmlib_human(orphaned, text[2]),
		whole ? "" : ", owners: only yours");
}
