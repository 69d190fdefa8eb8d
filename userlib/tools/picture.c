// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Arranges the picture of a trace or of a device, and writes it as an image. */
#include "picture.h"
#include "trace.h"
#include "human.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Unused addresses between two allocations that the picture still shows. */
#define SHOWN_GAP (UINT64_C(1) << 20)

/* The image, in its own units. */
#define WIDTH 1000
#define HEIGHT 500
#define MARGIN 30
#define NOTE 18 /* the height of a line of text */
/* How many groups an image names. */
#define MOST_KEYS 16

void map_add_note(struct map *map, const char *format, ...)
{
	va_list arguments;
	char *text;
	size_t size;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	size = (size_t)(length < 0 ? 0 : length) + 1;
	text = grow(NULL, size, 1);
	text[0] = '\0';
	va_start(arguments, format);
	vsnprintf(text, size, format, arguments);
	va_end(arguments);
	map->notes = grow(map->notes, map->note_count + 1, sizeof(*map->notes));
	map->notes[map->note_count++] = text;
}

static int three_way(uint64_t one, uint64_t other)
{
	return (one > other) - (one < other);
}

static int by_address(const void *a, const void *b)
{
	const struct map_box *one = a, *other = b;

	return one->region_id == other->region_id ?
	       three_way(one->address, other->address) :
	       three_way(one->region_id, other->region_id);
}

static int by_begin(const void *a, const void *b)
{
	const struct map_box *one = a, *other = b;

	return one->begin == other->begin ? three_way(one->place, other->place) :
					    three_way(one->begin, other->begin);
}

static int by_name(const void *a, const void *b)
{
	const struct map_group *one = a, *other = b;

	return one->process == other->process ?
	       three_way(one->key, other->key) :
	       three_way(one->process, other->process);
}

/* ---- groups ---- */

static size_t number_of(const struct map *map, const struct map_group *group)
{
	const struct map_group *found =
		bsearch(group, map->groups, map->group_count,
			sizeof(*map->groups), by_name);

	return (size_t)(found - map->groups);
}

static void find_groups(struct map *map)
{
	size_t all = map->count + map->failure_count;
	size_t i;

	map->groups = grow(NULL, all, sizeof(*map->groups));
	for (i = 0; i < map->count; i++)
		map->groups[i] = map->boxes[i].group;
	for (i = 0; i < map->failure_count; i++)
		map->groups[map->count + i] = map->failures[i].group;
	qsort(map->groups, all, sizeof(*map->groups), by_name);
	for (i = 0; i < all; i++)
		if (!i || by_name(&map->groups[i], &map->groups[map->group_count - 1]))
			map->groups[map->group_count++] = map->groups[i];
	for (i = 0; i < map->count; i++)
		map->boxes[i].number = number_of(map, &map->boxes[i].group);
	for (i = 0; i < map->failure_count; i++)
		map->failures[i].number = number_of(map, &map->failures[i].group);
}

/* ---- places ---- */

static struct map_range *add_range(struct map *map, const struct map_box *box)
{
	const struct map_range *last =
		map->range_count ? &map->ranges[map->range_count - 1] : NULL;
	uint64_t place = last ? last->place + last->size : 0;

	map->ranges = grow(map->ranges, map->range_count + 1,
			   sizeof(*map->ranges));
	map->ranges[map->range_count] = (struct map_range){
		.region_id = box->region_id,
		.address = box->address,
		.place = place,
	};
	return &map->ranges[map->range_count++];
}

static bool is_near(const struct map_range *range, const struct map_box *box)
{
	return range && range->region_id == box->region_id &&
	       box->address - range->address <= range->size + SHOWN_GAP;
}

/* Without boxes there are no ranges. */
static void make_ranges(struct map *map)
{
	struct map_range *range = NULL;
	struct map_box *box;

	if (!map->count)
		return;
	qsort(map->boxes, map->count, sizeof(*map->boxes), by_address);
	for (box = map->boxes; box < map->boxes + map->count; box++) {
		if (!is_near(range, box))
			range = add_range(map, box);
		if (box->address - range->address + box->size > range->size)
			range->size = box->address - range->address + box->size;
		box->place = range->place + box->address - range->address;
		map->height = range->place + range->size;
	}
}

static int by_region(const void *a, const void *b)
{
	const struct map_range *one = a, *other = b;

	return three_way(one->region_id, other->region_id);
}

/* Stacks the ranges that the caller has set, and finds that of each box. */
static void use_ranges(struct map *map)
{
	struct map_range wanted = { 0 };
	const struct map_range *range;
	size_t i;

	qsort(map->ranges, map->range_count, sizeof(*map->ranges), by_region);
	for (i = 0; i < map->range_count; i++) {
		map->ranges[i].place = map->height;
		map->height += map->ranges[i].size;
	}
	for (i = 0; i < map->count; i++) {
		wanted.region_id = map->boxes[i].region_id;
		range = bsearch(&wanted, map->ranges, map->range_count,
				sizeof(*map->ranges), by_region);
		map->boxes[i].place = range->place + map->boxes[i].address;
	}
}

void map_arrange(struct map *map)
{
	if (map->range_count)
		use_ranges(map);
	else
		make_ranges(map);
	if (map->count)
		qsort(map->boxes, map->count, sizeof(*map->boxes), by_begin);
	if (map->count + map->failure_count)
		find_groups(map);
}

void map_clear(struct map *map)
{
	while (map->note_count)
		free(map->notes[--map->note_count]);
	free(map->notes);
	if (map->own_tags) {
		while (map->own_tags)
			free(map->tags[--map->own_tags]);
		free(map->tags);
	}
	free(map->boxes);
	free(map->ranges);
	free(map->groups);
	free(map->failures);
}

void map_print_text(FILE *file, const char *text)
{
	for (; *text; text++) {
		if (strchr("<>&\"'", *text))
			fprintf(file, "&#%d;", *text);
		else
			putc(*text, file);
	}
}

void map_print_name(FILE *file, const char *name)
{
	char *escaped = escaped_text(name);

	map_print_text(file, escaped);
	free(escaped);
}

void map_print_failures(FILE *file, const struct map *map)
{
	char text[FMLIB_HUMAN_MAX];

	fprintf(file, "%zu failed, the first at event %" PRIu64 ", of %s",
		map->failure_count, map->failures[0].event,
		fmlib_human(map->failures[0].bytes, text));
	if (map->failures[0].reason) {
		fputs(": ", file);
		map_print_name(file, map->failures[0].reason);
	}
}

char *map_group_name(const struct map *map, const struct map_group *group)
{
	const char *tag = map->tags && group->key ? map->tags[group->key - 1] :
						    "no tag";
	size_t room = strlen(tag) + 60;
	char *name = grow(NULL, room, 1);
	int length = 0;

	if (map->processes > 1)
		length = snprintf(name, room, "process %" PRIu32 ", ",
				  group->process + 1);
	if (!map->tags)
		snprintf(name + length, room - (size_t)length,
			 "stream %" PRIu64, group->key);
	else
		snprintf(name + length, room - (size_t)length, "%s", tag);
	return name;
}

/* ---- the image ---- */

static double x_of(const struct map *map, uint64_t event)
{
	return MARGIN + (WIDTH - 2.0 * MARGIN) * (double)event /
				(double)(map->events ? map->events : 1);
}

/* Low addresses are at the bottom. */
static double y_of(const struct map *map, uint64_t place)
{
	return HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * (double)place /
					 (double)(map->height ? map->height : 1);
}

/* The colours of the page, too. Groups after the eighth have them again. */
static void write_style(FILE *file, const struct map *map)
{
	size_t i;

	fputs("<style>text{font:12px sans-serif;fill:#333}.axis{stroke:#888}.failed{stroke:#d00;stroke-width:2}.n{opacity:.5}", file);
	for (i = 0; i < map->group_count && i < 8; i++)
		fprintf(file, ".s%zu{fill:hsl(%zu,60%%,50%%)}.s%zu.t1{fill:hsl(%zu,60%%,44%%)}.s%zu.t2{fill:hsl(%zu,60%%,56%%)}",
			i, i * 45 + 210, i, i * 45 + 210, i, i * 45 + 210);
	fputs("@media(prefers-color-scheme:dark){text{fill:#ccc}}</style>\n", file);
}

/* An allocation that covers less of the image, in units, cannot be seen. */
#define SEEN 1.0
#define SHADES 3
#define STYLES (8 * SHADES * 2)

static double height_of(const struct map *map, const struct map_box *box)
{
	return y_of(map, box->place) - y_of(map, box->place + box->size);
}

static double width_of(const struct map *map, const struct map_box *box)
{
	return x_of(map, box->end) - x_of(map, box->begin);
}

/* The smallest length that an image has. */
static double visible(double length)
{
	return length < 0.1 ? 0.1 : length;
}

static bool can_be_seen(const struct map *map, const struct map_box *box)
{
	return width_of(map, box) * height_of(map, box) >= SEEN;
}

/* The shades tell an allocation from those beside it. */
static size_t style_of(const struct map *map, const struct map_box *box)
{
	return (box->number % 8 * SHADES + (size_t)(box - map->boxes) % SHADES) * 2 +
	       (box->region_id == MAP_NOWHERE);
}

/* One path for each style, because a trace has many boxes. */
static void write_boxes(FILE *file, const struct map *map)
{
	const struct map_box *box;
	double width, height;
	size_t style;
	bool begun;

	for (style = 0; style < STYLES; style++) {
		begun = false;
		for (box = map->boxes; box < map->boxes + map->count; box++) {
			if (style_of(map, box) != style || !can_be_seen(map, box))
				continue;
			if (!begun)
				fprintf(file, "<path class=\"s%zu t%zu%s\" d=\"",
					style / 2 / SHADES, style / 2 % SHADES,
					style % 2 ? " n" : "");
			begun = true;
			width = visible(width_of(map, box));
			height = visible(height_of(map, box));
			fprintf(file, "M%.1f %.1fh%.1fv%.1fh-%.1f",
				x_of(map, box->begin),
				y_of(map, box->place + box->size), width, height, width);
		}
		if (begun)
			fputs("\"/>\n", file);
	}
}

static void write_lines(FILE *file, const struct map *map)
{
	char text[FMLIB_HUMAN_MAX];
	const struct map_range *range;
	const struct map_box *box;
	size_t small = 0;

	for (range = map->ranges; range < map->ranges + map->range_count;
	     range++)
		fprintf(file, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.2f\" y2=\"%.2f\"/>\n",
			MARGIN, WIDTH - MARGIN, y_of(map, range->place),
			y_of(map, range->place));
	for (box = map->boxes; box < map->boxes + map->count; box++)
		small += !can_be_seen(map, box);
	fprintf(file, "<text x=\"%d\" y=\"%d\">%s of addresses; %" PRIu64 " events from left to right",
		MARGIN, HEIGHT - 8, fmlib_human(map->height, text), map->events);
	if (small)
		fprintf(file, "; without %zu allocations that are too small to be seen",
			small);
	fputs("</text>\n", file);
}

static void write_failure(FILE *file, const struct map *map,
			  const struct map_failure *failure)
{
	char text[FMLIB_HUMAN_MAX];
	double x = x_of(map, failure->event);
	char *name;

	fprintf(file, "<line class=\"failed\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\"><title>%s, ",
		x, x, MARGIN - 8, MARGIN, fmlib_human(failure->bytes, text));
	name = map_group_name(map, &failure->group);
	map_print_text(file, name);
	free(name);
	fprintf(file, ", %s %" PRIu64, map->source, failure->from);
	if (failure->reason) {
		fputs(": ", file);
		map_print_name(file, failure->reason);
	}
	fputs("</title></line>\n", file);
}

/* The lines below the picture for the names of groups, if there are several. */
static size_t key_lines(const struct map *map)
{
	if (map->group_count < 2)
		return 0;
	return map->group_count > MOST_KEYS ? MOST_KEYS + 1 : map->group_count;
}

static size_t line_y(size_t line)
{
	return HEIGHT + NOTE * (line + 1) - 8;
}

static void write_keys(FILE *file, const struct map *map)
{
	char *name;
	size_t i;

	for (i = 0; i < key_lines(map) && i < MOST_KEYS; i++) {
		fprintf(file, "<rect class=\"s%zu\" x=\"%d\" y=\"%zu\" width=\"10\" height=\"10\"/><text x=\"%d\" y=\"%zu\">",
			i % 8, MARGIN, line_y(i) - 10, MARGIN + 16, line_y(i));
		name = map_group_name(map, &map->groups[i]);
		map_print_text(file, name);
		free(name);
		fputs("</text>\n", file);
	}
	if (map->group_count > MOST_KEYS)
		fprintf(file, "<text x=\"%d\" y=\"%zu\">and %zu more</text>\n",
			MARGIN, line_y(i), map->group_count - MOST_KEYS);
}

/* Below the picture, as below that of the page. */
static void write_notes(FILE *file, const struct map *map)
{
	size_t i;

	for (i = 0; i < map->note_count; i++) {
		fprintf(file, "<text x=\"%d\" y=\"%zu\">", MARGIN,
			line_y(key_lines(map) + i));
		map_print_text(file, map->notes[i]);
		fputs("</text>\n", file);
	}
}

void map_write_svg(FILE *file, const struct map *map)
{
	size_t i;

	fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %zu\" role=\"img\">\n<title>",
		WIDTH, HEIGHT + NOTE * (key_lines(map) + map->note_count));
	map_print_name(file, map->name);
	fputs("</title>\n", file);
	write_style(file, map);
	write_lines(file, map);
	write_boxes(file, map);
	fprintf(file, "<text x=\"%d\" y=\"18\">", MARGIN);
	map_print_name(file, map->name);
	if (map->failure_count) {
		fputs(": ", file);
		map_print_failures(file, map);
	}
	fputs("</text>\n", file);
	for (i = 0; i < map->failure_count; i++)
		write_failure(file, map, &map->failures[i]);
	write_keys(file, map);
	write_notes(file, map);
	fputs("</svg>\n", file);
}
