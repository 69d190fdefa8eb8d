// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem top: shows the owners of memory on a terminal, and reads them repeatedly. */
#define _XOPEN_SOURCE 700 /* the wide characters of ncurses */
#include "top_view.h"

#include <curses.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INTERVAL_S 2
#define LONGEST_INTERVAL_S 86400

/* Lines that are no rows: sums, keys and headings above, the status below. */
#define LINES_ABOVE 3
#define OTHER_LINES (LINES_ABOVE + 1)

/* By how many characters the keys for left and right move the last column. */
#define SHIFT_STEP 8

#define NEARLY_FULL 1 /* its pair of colours */

/* @reading: how many there were so far. @first: the row at the top. */
struct top {
	struct tool *tool;
	uint64_t interval;
	struct scrape before, now;
	uint64_t reading;
	struct top_list list;
	size_t first;
	unsigned int shift;
};

static int read_again(struct top *top)
{
	int err;

	scrape_clear(&top->before);
	top->before = top->now;
	top->reading++;
	err = scrape_all(&top->now);
	return err;
}

/* ---- the screen ---- */

/* A line in memory, which top_print_...() write to. */
struct line {
	FILE *file;
	char *text;
	size_t size;
};

static FILE *begin_line(struct line *line)
{
	line->file = open_memstream(&line->text, &line->size);
	check_memory(line->file);
	return line->file;
}

/* Shows the line over the whole width. */
static void show_line(struct line *line, int row, attr_t attributes)
{
	struct line fitted;

	fclose(line->file);
	top_fit(begin_line(&fitted), line->text, (unsigned int)COLS);
	fclose(fitted.file);
	attrset((int)attributes);
	mvaddstr(row, 0, fitted.text);
	free(fitted.text);
	free(line->text);
}

static size_t page_rows(void)
{
	return LINES > OTHER_LINES ? (size_t)(LINES - OTHER_LINES) : 1;
}

static void show_status(const struct top *top, size_t end)
{
	size_t begin = end > top->first ? top->first + 1 : 0;
	struct line line;

	begin_line(&line);
	fprintf(line.file, "reading %" PRIu64 ": %zu-%zu of %zu ", top->reading,
		begin, end, top->list.count);
	top_print_order(line.file, &top->list);
	show_line(&line, LINES - 1, A_NORMAL);
}

/*
 * The status comes last, because ncurses sends the lines from the top down: when a
 * new status is on the screen, so is all that is above it.
 */
static void draw(struct top *top)
{
	const attr_t marked = A_BOLD | (has_colors() ?
					(attr_t)COLOR_PAIR(NEARLY_FULL) : 0);
	const size_t page = page_rows();
	struct top_list *list = &top->list;
	struct line line;
	size_t i;

	top_list_fill(list, &top->now, &top->before,
		      top->tool->shell ? 0 : (uint32_t)getpid());
	if (top->first + page > list->count)
		top->first = list->count > page ? list->count - page : 0;
	erase();
	top_print_sums(begin_line(&line), &top->now);
	show_line(&line, 0, A_BOLD);
	fputs("f functions  a accounts  c clients  < > order  r reverse  space read  q quit",
	      begin_line(&line));
	show_line(&line, 1, A_NORMAL);
	top_print_headings(begin_line(&line), list);
	show_line(&line, 2, A_REVERSE);
	for (i = top->first; i < list->count && i < top->first + page; i++) {
		top_print_row(begin_line(&line), list, &list->rows[i],
			      top->shift);
		show_line(&line, LINES_ABOVE + (int)(i - top->first),
			  top_is_nearly_full(&list->rows[i]) ? marked :
							       A_NORMAL);
	}
	show_status(top, i);
	refresh();
}

static bool has_screen;

/*
 * Also called if memory is lacking, so that the terminal works afterwards. A terminal
 * without a second screen keeps the lines, but what follows needs an empty one.
 */
static void end_screen(void)
{
	if (!has_screen)
		return;
	has_screen = false;
	move(LINES - 1, 0);
	clrtoeol();
	refresh();
	endwin();
}

static SCREEN *begin_screen(struct tool *tool)
{
	static bool registered;
	const char *type = getenv("TERM");
	SCREEN *screen;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		tool_fail(tool, -ENOTTY, "top needs a terminal; 'flexmem owners --all' prints a report");
		return NULL;
	}
	setlocale(LC_CTYPE, "");
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		tool_fail(tool, -ENOTTY, "top does not know the terminal '%s' (TERM)",
			  type ? type : "");
		return NULL;
	}
	has_screen = true;
	if (!registered)
		registered = !atexit(end_screen);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	if (has_colors()) {
		start_color();
		use_default_colors();
		init_pair(NEARLY_FULL, COLOR_RED, -1);
	}
	return screen;
}

/* ---- keys ---- */

static void change_view(struct top *top, enum top_view view)
{
	top->list.view = view;
	top->list.order = 0;
	top->list.reversed = false;
	top->first = 0;
	top->shift = 0;
}

/* Moves the first row; draw() keeps it from going too far down. */
static void move_to(struct top *top, size_t up, size_t down)
{
	top->first = (top->first > up ? top->first - up : 0) + down;
}

static void press(struct top *top, int key)
{
	switch (key) {
	case 'f':
		change_view(top, TOP_FUNCTIONS);
		break;
	case 'a':
		change_view(top, TOP_ACCOUNTS);
		break;
	case 'c':
		change_view(top, TOP_CLIENTS);
		break;
	case '<':
		top_list_order(&top->list, -1);
		break;
	case '>':
		top_list_order(&top->list, 1);
		break;
	case 'r':
		top->list.reversed = !top->list.reversed;
		break;
	case KEY_UP:
		move_to(top, 1, 0);
		break;
	case KEY_DOWN:
		move_to(top, 0, 1);
		break;
	case KEY_PPAGE:
		move_to(top, page_rows(), 0);
		break;
	case KEY_NPAGE:
		move_to(top, 0, page_rows());
		break;
	case KEY_LEFT:
		top->shift -= top->shift ? SHIFT_STEP : 0;
		break;
	case KEY_RIGHT:
		top->shift += SHIFT_STEP;
		break;
	}
}

/* Whether the terminal is gone, for which getch() has no result of its own. */
static bool is_gone(void)
{
	struct pollfd terminal = { .fd = STDIN_FILENO };

	return poll(&terminal, 1, 0) == 1 &&
	       (terminal.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static int watch(struct top *top)
{
	int key = ' ';
	int err;

	timeout((int)top->interval * 1000);
	while (key != 'q' && !(key == ERR && is_gone())) {
		if (key == ' ' || key == ERR) {
			err = read_again(top);
			if (err)
				return err;
		} else {
			press(top, key);
		}
		draw(top);
		key = getch();
	}
	return 0;
}

static enum tool_status run(struct top *top)
{
	SCREEN *screen = begin_screen(top->tool);
	int err;

	if (!screen)
		return TOOL_FAILED;
	err = watch(top);
	end_screen();
	delscreen(screen);
	top_list_clear(&top->list);
	scrape_clear(&top->before);
	scrape_clear(&top->now);
	return err ? tool_error(top->tool, err, NULL, "top") : TOOL_OK;
}

enum tool_status cmd_top(struct tool *tool, int argc, char **argv)
{
	static const struct option options[] = {
		{ "interval", required_argument, NULL, 'i' },
		COMMON_OPTIONS
	};
	struct top top = { .tool = tool, .interval = INTERVAL_S };
	int option;

	while ((option = next_option(tool, argc, argv, options)) != OPTION_END) {
		if (option != 'i')
			return option_status(option);
		if (!parse_number(optarg, LONGEST_INTERVAL_S, &top.interval) ||
		    !top.interval)
			return usage_error(tool, "'%s' is no number of seconds from 1 to %d",
					   optarg, LONGEST_INTERVAL_S);
	}
	if (optind < argc)
		return usage_error(tool, "unexpected argument '%s'",
				   argv[optind]);
	if (tool->path && !tool->shell)
		return usage_error(tool, "'top' shows all functions, not one");
	if (tool->json)
		return usage_error(tool, "'top' shows a screen; 'flexmem --json owners --all' prints JSON");
	return run(&top);
}
