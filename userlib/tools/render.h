/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Prints tables, bars and sizes. Needs no device. */
#ifndef RENDER_H
#define RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "flexmem.h"
#include "human.h"

/*
 * Returns the width of the terminal @file in columns. If @file is no terminal,
 * returns $COLUMNS, or 80.
 */
unsigned int render_width(FILE *file);

/*
 * Fills @bar with @width characters and a NUL: '#' used, '.' the largest free
 * piece, '-' other free memory. Each part that is not zero gets at least one
 * character if there is room for all.
 */
void render_bar(char *bar, unsigned int width, uint64_t total, uint64_t used,
		uint64_t largest_free);

/* One bar for each region, and a legend. */
void render_regions(FILE *file, unsigned int width,
		    const struct flexmem_region_state *regions, size_t count);

/* The table of `flexmem regions`. */
void render_region_table(FILE *file, unsigned int width, bool is_pf,
			 const struct flexmem_region_state *regions,
			 size_t count);

/* The kind of a region or segment: "program" or "shared". */
const char *render_kind(uint32_t flags);

/* Room for the name of a region: an address on a PF, a slot on a VF. */
#define RENDER_REGION_MAX 24
const char *render_region_id(bool is_pf, uint64_t region_id,
			     char text[RENDER_REGION_MAX]);

/* Room for the amount of a charge: "8.0 GiB", "3", or "none". */
#define RENDER_AMOUNT_MAX 24
const char *render_amount(uint32_t charge, uint64_t amount,
			  char text[RENDER_AMOUNT_MAX]);

/*
 * A table, filled cell by cell, row by row. Columns are as wide as their cells.
 * If the table is wider than the terminal, each row becomes a list. Cells are
 * right-aligned, unless the heading of the column begins with '<'.
 */
struct table {
	const char *const *headings;
	size_t columns;
	char **cells;
	size_t count;
};

void table_add(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void table_print(const struct table *table, FILE *file, unsigned int width);
void table_clear(struct table *table);

/*
 * A progress bar for work that can take long. It is drawn from PROGRESS_AFTER_S
 * seconds on, if @file is a terminal.
 */
#define PROGRESS_AFTER_S 2

struct progress {
	FILE *file;
	const char *label;
	uint64_t total;
	uint64_t next;
	uint64_t begun_ns;
	bool on;
	bool drawn;
};

/* @label: what is in progress; it gets escapes. @total: 0 if that is not known; draws nothing. */
void progress_begin(struct progress *progress, FILE *file, const char *label,
		    uint64_t total);
void progress_draw(struct progress *progress, uint64_t done);
void progress_end(struct progress *progress);

/* @done, of @total, is done. Draws only if the bar has changed. */
static inline void progress_update(struct progress *progress, uint64_t done)
{
	if (progress->on && done >= progress->next)
		progress_draw(progress, done);
}

#endif /* RENDER_H */
