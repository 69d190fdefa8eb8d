// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "render.h"
#include "tool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MIN_WIDTH 20
#define MAX_WIDTH 1000
#define DEFAULT_WIDTH 80
#define GAP 2

unsigned int render_width(FILE *file)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t width = 0;

	if (!ioctl(fileno(file), TIOCGWINSZ, &size))
		width = size.ws_col;
	if (!width && (!columns || !parse_number(columns, MAX_WIDTH, &width)))
		width = 0;
	if (!width)
		return DEFAULT_WIDTH;
	return width < MIN_WIDTH ? MIN_WIDTH : (unsigned int)width;
}

/* The part's share of @width, rounded. Cannot overflow. */
static unsigned int share(uint64_t part, uint64_t whole, unsigned int width)
{
	unsigned int cells;

	if (!part || !whole)
		return 0;
	cells = (unsigned int)((double)part / (double)whole * width + 0.5);
	if (cells > width)
		cells = width;
	return cells ? cells : 1;
}

void render_bar(char *bar, unsigned int width, uint64_t total, uint64_t used,
		uint64_t largest_free)
{
	uint64_t other;
	unsigned int used_cells;
	unsigned int largest_cells;
	unsigned int other_cells;

	if (used > total)
		used = total;
	if (largest_free > total - used)
		largest_free = total - used;
	other = total - used - largest_free;

	used_cells = share(used, total, width);
	/* Keeps a free cell in the bar of a region that is not full. */
	if (used < total && used_cells == width && width > 1)
		used_cells--;
	other_cells = share(other, total, width);
	if (other_cells > width - used_cells)
		other_cells = width - used_cells;
	largest_cells = width - used_cells - other_cells;
	if (largest_free && !largest_cells && other_cells > 1) {
		other_cells--;
		largest_cells++;
	}
	if (!largest_free && total) {
		other_cells += largest_cells;
		largest_cells = 0;
	}
	memset(bar, '#', used_cells);
	memset(bar + used_cells, '-', other_cells);
	memset(bar + used_cells + other_cells, '.', largest_cells);
	bar[width] = '\0';
}

static unsigned int percent(const struct flexmem_region_state *region)
{
	uint64_t used = region->total - region->free;

	if (!region->total)
		return 0;
	return (unsigned int)((double)used / (double)region->total * 100);
}

void render_regions(FILE *file, unsigned int width,
		    const struct flexmem_region_state *regions, size_t count)
{
	/* The columns of "slot 12 [" and "] 100%". */
	unsigned int around = 9 + 6;
	const char *label = "slot";
	bool shown = false;
	unsigned int cells;
	char *bar;
	size_t i;

	if (width < 32) {
		label = "";
		around -= 5;
	}
	cells = width - around;
	bar = grow(NULL, cells + 1, 1);
	for (i = 0; i < count; i++) {
		if (regions[i].flags & FLEXMEM_HIDDEN)
			continue;
		shown = true;
		render_bar(bar, cells, regions[i].total,
			   regions[i].total - regions[i].free,
			   regions[i].largest_free);
		fprintf(file, "%s%s%2u [%s] %3u%%\n", label,
			*label ? " " : "", regions[i].slot, bar,
			percent(&regions[i]));
	}
	free(bar);
	if (!shown)
		return;
	if (width < 56)
		fputs("# used\n. largest free\n- other free\n", file);
	else
		fputs("# used   . largest free piece   - other free pieces\n",
		      file);
}

const char *render_kind(uint32_t flags)
{
	return flags & FLEXMEM_PROGRAM ? "program" : "shared";
}

const char *render_region_id(bool is_pf, uint64_t region_id,
			     char text[RENDER_REGION_MAX])
{
	snprintf(text, RENDER_REGION_MAX, is_pf ? "0x%llx" : "%llu",
		 (unsigned long long)region_id);
	return text;
}

static void add_figures(struct table *table,
			const struct flexmem_region_state *region)
{
	char text[FMLIB_HUMAN_MAX];

	table_add(table, "%s", fmlib_human(region->total - region->free, text));
	table_add(table, "%s", fmlib_human(region->free, text));
	table_add(table, "%s", fmlib_human(region->largest_free, text));
	table_add(table, "%llu", (unsigned long long)region->allocated_blocks);
}

void render_region_table(FILE *file, unsigned int width, bool is_pf,
			 const struct flexmem_region_state *regions,
			 size_t count)
{
	static const char *const headings[] = {
		"slot", "region", "size", "used", "free", "largest free",
		"blocks", "<kind",
	};
	struct table table = { .headings = headings, .columns = 8 };
	char text[FMLIB_HUMAN_MAX];
	char id[RENDER_REGION_MAX];
	const struct flexmem_region_state *region;
	int hidden;
	size_t i;

	for (i = 0; i < count; i++) {
		region = &regions[i];
		table_add(&table, "%u", region->slot);
		table_add(&table, "%s",
			  render_region_id(is_pf, region->region_id, id));
		table_add(&table, "%s", fmlib_human(region->total, text));
		if (region->flags & FLEXMEM_HIDDEN) {
			for (hidden = 0; hidden < 4; hidden++)
				table_add(&table, "-");
		} else {
			add_figures(&table, region);
		}
		table_add(&table, "%s", render_kind(region->flags));
	}
	table_print(&table, file, width);
	table_clear(&table);
}

const char *render_amount(uint32_t charge, uint64_t amount,
			  char text[RENDER_AMOUNT_MAX])
{
	char human[FMLIB_HUMAN_MAX];

	if (amount == FLEXMEM_UNLIMITED)
		snprintf(text, RENDER_AMOUNT_MAX, "none");
	else if (charge == FLEXMEM_CHARGE_BYTES)
		snprintf(text, RENDER_AMOUNT_MAX, "%s",
			 fmlib_human(amount, human));
	else
		snprintf(text, RENDER_AMOUNT_MAX, "%" PRIu64, amount);
	return text;
}

void table_add(struct table *table, const char *format, ...)
{
	va_list arguments;
	char *text;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	text = grow(NULL, (size_t)(length < 0 ? 0 : length) + 1, 1);
	text[0] = '\0';
	va_start(arguments, format);
	vsnprintf(text, (size_t)(length < 0 ? 0 : length) + 1, format,
		  arguments);
	va_end(arguments);
	if (!(table->count & (table->count + 1)))
		table->cells = grow(table->cells, 2 * (table->count + 1),
				    sizeof(*table->cells));
	table->cells[table->count++] = escaped_text(text);
	free(text);
}

void table_clear(struct table *table)
{
	size_t i;

	for (i = 0; i < table->count; i++)
		free(table->cells[i]);
	free(table->cells);
	table->cells = NULL;
	table->count = 0;
}

static bool is_left(const struct table *table, size_t column)
{
	return table->headings[column][0] == '<';
}

static const char *heading(const struct table *table, size_t column)
{
	return table->headings[column] + is_left(table, column);
}

/* How many characters a cell has. Each is one column wide. */
static size_t text_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_cell(const struct table *table, FILE *file, size_t column,
		       size_t width, const char *text)
{
	int gap = (int)(width - text_width(text));

	fprintf(file, "%*s", column ? GAP : 0, "");
	if (!is_left(table, column))
		fprintf(file, "%*s%s", gap, "", text);
	else if (column + 1 < table->columns)
		fprintf(file, "%s%*s", text, gap, "");
	else
		fputs(text, file);
}

static void print_row(const struct table *table, FILE *file,
		      const size_t *widths, size_t first, bool is_heading)
{
	size_t i;

	for (i = 0; i < table->columns; i++)
		print_cell(table, file, i, widths[i],
			   is_heading ? heading(table, i) :
					table->cells[first + i]);
	fputc('\n', file);
}

static void print_lists(const struct table *table, FILE *file)
{
	size_t longest = 0;
	size_t i;

	for (i = 0; i < table->columns; i++) {
		if (strlen(heading(table, i)) > longest)
			longest = strlen(heading(table, i));
	}
	for (i = 0; i < table->count; i++) {
		if (i && !(i % table->columns))
			fputc('\n', file);
		fprintf(file, "%-*s %s\n", (int)longest,
			heading(table, i % table->columns), table->cells[i]);
	}
}

void table_print(const struct table *table, FILE *file, unsigned int width)
{
	size_t *widths = grow(NULL, table->columns, sizeof(*widths));
	size_t total = GAP * (table->columns - 1);
	size_t length;
	size_t i;

	for (i = 0; i < table->columns; i++)
		widths[i] = strlen(heading(table, i));
	for (i = 0; i < table->count; i++) {
		length = text_width(table->cells[i]);
		if (length > widths[i % table->columns])
			widths[i % table->columns] = length;
	}
	for (i = 0; i < table->columns; i++)
		total += widths[i];
	if (total > width) {
		print_lists(table, file);
	} else {
		print_row(table, file, widths, 0, true);
		for (i = 0; i < table->count; i += table->columns)
			print_row(table, file, widths, i, false);
	}
	free(widths);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void progress_begin(struct progress *progress, FILE *file, const char *label,
		    uint64_t total)
{
	*progress = (struct progress){
		.file = file,
		.label = label,
		.total = total,
		.on = total && isatty(fileno(file)),
	};
	if (progress->on)
		progress->begun_ns = now_ns();
}

void progress_draw(struct progress *progress, uint64_t done)
{
	unsigned int width = render_width(progress->file);
	unsigned int columns, cells;
	char *label, *bar;

	progress->next = done + progress->total / 200 + 1;
	if (!progress->drawn && now_ns() - progress->begun_ns <
				PROGRESS_AFTER_S * UINT64_C(1000000000))
		return;
	progress->drawn = true;
	if (done > progress->total)
		done = progress->total;
	label = escaped_text(progress->label);
	/*
	 * One column stays free, because the terminal would wrap a full line.
	 */
	if (text_width(label) + 9 + 10 > width)
		*label = '\0';
	columns = (unsigned int)text_width(label);
	cells = width - columns - 9;
	bar = grow(NULL, cells + 1, 1);
	render_bar(bar, cells, progress->total, done, progress->total - done);
	fprintf(progress->file, "\r%s [%s] %3u%%", label, bar,
		(unsigned int)(100.0 * (double)done / (double)progress->total));
	fflush(progress->file);
	free(bar);
	free(label);
}

void progress_end(struct progress *progress)
{
	if (progress->drawn) {
		fprintf(progress->file, "\r%*s\r",
			(int)render_width(progress->file) - 1, "");
		fflush(progress->file);
	}
	progress->on = false;
	progress->drawn = false;
}
