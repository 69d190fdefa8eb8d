/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The lines of flexmem top: which rows and columns there are, and their order. */
#ifndef TOP_VIEW_H
#define TOP_VIEW_H

#include <stdio.h>

#include "scrape.h"

enum top_view {
	TOP_FUNCTIONS,
	TOP_ACCOUNTS,
	TOP_CLIENTS,
};

/*
 * A row. @account is NULL in the view of functions. @fresh: chunks allocated since
 * the reading before. @name and @process have escapes. The rest says where the row
 * stands: by @word if it is not NULL, otherwise by @number, and then by @index.
 */
struct top_row {
	const struct scraped *function;
	const struct flexmem_account_state *account;
	uint64_t own;
	uint64_t fresh;
	char *name;
	char *process;
	const char *word;
	uint64_t number;
	size_t index;
};

/* The caller sets all but @rows and @count. @order: the number of a column. */
struct top_list {
	enum top_view view;
	unsigned int order;
	bool reversed;
	struct top_row *rows;
	size_t count;
};

/*
 * Makes the rows of a reading, in their order. Open files of the process @hidden are
 * left out. The rows refer to @now. @before has no functions at first.
 */
void top_list_fill(struct top_list *list, const struct scrape *now,
		   const struct scrape *before, uint32_t hidden);
void top_list_clear(struct top_list *list);
/* Orders by the next column, or with @step -1 by the one before. */
void top_list_order(struct top_list *list, int step);

/*
 * Prints the headings, or a row. The last column begins with its character number
 * @shift, counted from 0.
 */
void top_print_headings(FILE *file, const struct top_list *list);
void top_print_row(FILE *file, const struct top_list *list,
		   const struct top_row *row, unsigned int shift);
/* Prints what the rows are, and their order. */
void top_print_order(FILE *file, const struct top_list *list);
/* Prints the sums of all functions. */
void top_print_sums(FILE *file, const struct scrape *scrape);

/* Whether a row has nine tenths of what it may have, or more. */
bool top_is_nearly_full(const struct top_row *row);

/*
 * Prints as many characters as there is room for in @width columns of a terminal,
 * and fills the rest with spaces. A character that the locale does not have is a
 * '?'.
 */
void top_fit(FILE *file, const char *text, unsigned int width);

#endif /* TOP_VIEW_H */
