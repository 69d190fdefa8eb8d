// SPDX-License-Identifier: GPL-2.0
/* Tables and bars in terminals of any width; parsing of sizes and numbers. */
#include "test.h"

#include "render.h"
#include "tool.h"

static char bar[1024];

static const char *draw(unsigned int width, uint64_t total, uint64_t used,
			uint64_t largest)
{
	memset(bar, 0xaa, sizeof(bar));
	render_bar(bar, width, total, used, largest);
	assert_int_equal(strlen(bar), width);
	return bar;
}

static void bars(void **state)
{
	(void)state;
	assert_string_equal(draw(10, 100, 0, 100), "..........");
	assert_string_equal(draw(10, 100, 100, 0), "##########");
	assert_string_equal(draw(10, 100, 50, 50), "#####.....");
	assert_string_equal(draw(10, 100, 50, 20), "#####---..");
	assert_string_equal(draw(10, 0, 0, 0), "..........");
	/*
	 * A used part is never drawn as empty, and a free part never as full.
	 */
	assert_string_equal(draw(10, 1000000, 1, 999999), "#.........");
	assert_string_equal(draw(10, 1000000, 999999, 1), "#########.");
	assert_string_equal(draw(10, 1000000, 999998, 1), "#########-");
	assert_string_equal(draw(1, 100, 50, 50), "#");
	/* Impossible figures do not overflow the bar. */
	assert_string_equal(draw(10, 100, 200, 300), "##########");
	assert_string_equal(draw(4, UINT64_MAX, UINT64_MAX / 2,
				 UINT64_MAX / 2 + 1), "##..");
}

static void every_bar_has_its_width(void **state)
{
	unsigned int width;
	uint64_t largest;
	uint64_t used;

	(void)state;
	for (width = 1; width < 30; width++) {
		for (used = 0; used <= 20; used++) {
			for (largest = 0; largest <= 20 - used; largest++)
				draw(width, 20, used, largest);
		}
	}
}

static const struct flexmem_region_state two[] = {
	{ .region_id = 0, .slot = 0, .total = 12 * GIB, .free = 6 * GIB,
	  .largest_free = 3 * GIB, .allocated_blocks = 1234 },
	{ .region_id = 1, .slot = 11, .total = 4 * GIB, .free = 4 * GIB,
	  .largest_free = 4 * GIB, .flags = FLEXMEM_PROGRAM },
};

/* Calls a function that prints. No line may be wider than @width. */
static char *printed(void (*print)(FILE *file, unsigned int width),
		     unsigned int width)
{
	static char text[16384];
	FILE *file = tmpfile();
	char *line;
	char *end;
	size_t size;

	print(file, width);
	rewind(file);
	size = fread(text, 1, sizeof(text) - 1, file);
	text[size] = '\0';
	fclose(file);
	for (line = text; (end = strchr(line, '\n')); line = end + 1)
		assert_true((unsigned int)(end - line) <= width);
	assert_int_equal(*line, '\0');
	return text;
}

/* The user may not see the figures of the first region. */
static const struct flexmem_region_state hidden[] = {
	{ .region_id = 0, .slot = 0, .total = 12 * GIB,
	  .flags = FLEXMEM_HIDDEN },
	{ .region_id = 1, .slot = 11, .total = 4 * GIB, .free = 4 * GIB,
	  .largest_free = 4 * GIB },
};

static void print_hidden(FILE *file, unsigned int width)
{
	render_region_table(file, width, false, hidden, 2);
	render_regions(file, width, hidden, 2);
	render_regions(file, width, hidden, 1);
}

static void print_bars(FILE *file, unsigned int width)
{
	render_regions(file, width, two, 2);
}

static void print_table(FILE *file, unsigned int width)
{
	render_region_table(file, width, false, two, 2);
}

static void bars_at_20(void **state)
{
	(void)state;
	assert_string_equal(printed(print_bars, 20),
			    " 0 [#####---..]  50%\n"
			    "11 [..........]   0%\n"
			    "# used\n. largest free\n- other free\n");
}

static void bars_at_80(void **state)
{
	const char *text = printed(print_bars, 80);

	(void)state;
	assert_memory_equal(text, "slot  0 [######", 15);
	assert_int_equal(strcspn(text, "\n"), 80);
	assert_non_null(strstr(text, "# used   . largest free piece"));
}

static void bars_at_200(void **state)
{
	(void)state;
	assert_int_equal(strcspn(printed(print_bars, 200), "\n"), 200);
}

static void table_at_80_and_200(void **state)
{
	static const char expected[] =
		"slot  region      size     used     free  largest free  blocks  kind\n"
		"   0       0  12.0 GiB  6.0 GiB  6.0 GiB       3.0 GiB    1234  shared\n"
		"  11       1   4.0 GiB      0 B  4.0 GiB       4.0 GiB       0  program\n";

	(void)state;
	assert_string_equal(printed(print_table, 80), expected);
	assert_string_equal(printed(print_table, 200), expected);
}

static void hidden_at_80(void **state)
{
	const char *text = printed(print_hidden, 80);
	const char *bars;

	(void)state;
	bars = strstr(text, "slot 11 [");
	assert_non_null(bars);
	assert_memory_equal(text,
			    "slot  region      size  used     free  largest free  blocks  kind\n"
			    "   0       0  12.0 GiB     -        -             -       -  shared\n"
			    "  11       1   4.0 GiB   0 B  4.0 GiB       4.0 GiB       0  shared\n",
			    (size_t)(bars - text));
	/* One bar, and nothing for the hidden region. */
	assert_string_equal(strchr(strchr(bars, '\n') + 1, '\n'), "\n");
}

static void table_at_20(void **state)
{
	(void)state;
	assert_string_equal(printed(print_table, 22),
			    "slot         0\nregion       0\n"
			    "size         12.0 GiB\nused         6.0 GiB\n"
			    "free         6.0 GiB\nlargest free 3.0 GiB\n"
			    "blocks       1234\nkind         shared\n\n"
			    "slot         11\nregion       1\n"
			    "size         4.0 GiB\nused         0 B\n"
			    "free         4.0 GiB\nlargest free 4.0 GiB\n"
			    "blocks       0\nkind         program\n");
}

static void region_names(void **state)
{
	char id[RENDER_REGION_MAX];

	(void)state;
	assert_string_equal(render_region_id(false, 11, id), "11");
	assert_string_equal(render_region_id(true, 0x2000000000, id),
			    "0x2000000000");
	assert_string_equal(render_region_id(true, UINT64_MAX, id),
			    "0xffffffffffffffff");
}

static void widths(void **state)
{
	FILE *file = tmpfile();

	(void)state;
	unsetenv("COLUMNS");
	assert_int_equal(render_width(file), 80);
	setenv("COLUMNS", "132", 1);
	assert_int_equal(render_width(file), 132);
	setenv("COLUMNS", "3", 1);
	assert_int_equal(render_width(file), 20);
	setenv("COLUMNS", "wide", 1);
	assert_int_equal(render_width(file), 80);
	setenv("COLUMNS", "4294967297", 1);
	assert_int_equal(render_width(file), 80);
	unsetenv("COLUMNS");
	fclose(file);
}

static void expect_size(const char *text, uint64_t expected)
{
	uint64_t bytes = 0;

	assert_true(parse_size(text, &bytes));
	assert_int_equal(bytes, expected);
}

static void sizes_are_read(void **state)
{
	static const char *const bad[] = {
		"", " 1", "-1", "+1", "1 G", "G", "1X", "1GG", "1iB", "1.5G",
		"0x", "0xg", "0x10K", "18446744073709551616", "16E", "1KiBB",
		"99999999999999999999999999999999999999999999999999G",
	};
	uint64_t bytes;
	size_t i;

	(void)state;
	expect_size("0", 0);
	expect_size("128", 128);
	expect_size("128B", 128);
	expect_size("010", 10);
	expect_size("0x80", 128);
	expect_size("4k", 4096);
	expect_size("4KB", 4096);
	expect_size("4MiB", 4 * MIB);
	expect_size("12G", 12 * GIB);
	expect_size("12gib", 12 * GIB);
	expect_size("1T", 1024 * GIB);
	expect_size("15E", UINT64_C(15) << 60);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(parse_size(bad[i], &bytes));
}

static void print_names(FILE *file, unsigned int width)
{
	static const char *const headings[] = { "<name", "size" };
	/* CSI as one character, and text from right to left. */
	static const char *const names[] = {
		"\\x1b", "\x1b", "\xc2\x9b", "\xe2\x80\xae", "\xff\n",
		"\xc3\xa4\xf0\x9f\x98\x80",
	};
	struct table table = { .headings = headings, .columns = 2 };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		table_add(&table, "%s", names[i]);
		table_add(&table, "%zu", i);
	}
	table_print(&table, file, width);
	table_clear(&table);
}

static void names_in_tables(void **state)
{
	(void)state;
	assert_string_equal(printed(print_names, 80),
			    "name          size\n"
			    "\\\\x1b            0\n"
			    "\\x1b             1\n"
			    "\\xc2\\x9b         2\n"
			    "\\xe2\\x80\\xae     3\n"
			    "\\xff\\x0a         4\n"
			    "\xc3\xa4\xf0\x9f\x98\x80               5\n");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(bars),
		TEST(every_bar_has_its_width),
		TEST(bars_at_20),
		TEST(bars_at_80),
		TEST(bars_at_200),
		TEST(table_at_80_and_200),
		TEST(hidden_at_80),
		TEST(table_at_20),
		TEST(names_in_tables),
		TEST(region_names),
		TEST(widths),
		TEST(sizes_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
