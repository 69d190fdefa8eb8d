// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Arranges the picture of a trace, and writes it as an image. */
#include "picture.h"
#include "human.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Unused addresses between two allocations that the picture still shows. */
#define SHOWN_GAP (UINT64_C(1) << 20)

/* The image, in its own units. */
#define WIDTH 1000
#define HEIGHT 500
#define MARGIN 30

static int by_address(const void *a, const void *b)
{
	const struct map_box *one = a, *other = b;

	return (one->address > other->address) - (one->address < other->address);
}

static int by_begin(const void *a, const void *b)
{
	const struct map_box *one = a, *other = b;

	return (one->begin > other->begin) - (one->begin < other->begin);
}

static struct map_range *add_range(struct map *map, uint64_t address)
{
	const struct map_range *last =
		map->range_count ? &map->ranges[map->range_count - 1] : NULL;
	uint64_t place = last ? last->place + last->size : 0;

	map->ranges = grow(map->ranges, map->range_count + 1,
			   sizeof(*map->ranges));
	map->ranges[map->range_count] = (struct map_range){
		.address = address,
		.place = place,
	};
	return &map->ranges[map->range_count++];
}

void map_arrange(struct map *map)
{
	struct map_range *range = NULL;
	struct map_box *box;

	if (!map->count)
		return;
	qsort(map->boxes, map->count, sizeof(*map->boxes), by_address);
	for (box = map->boxes; box < map->boxes + map->count; box++) {
		if (!range ||
		    box->address > range->address + range->size + SHOWN_GAP)
			range = add_range(map, box->address);
		if (box->address + box->size > range->address + range->size)
			range->size = box->address + box->size - range->address;
		box->place = range->place + box->address - range->address;
	}
	map->height = range->place + range->size;
	qsort(map->boxes, map->count, sizeof(*map->boxes), by_begin);
}

void map_clear(struct map *map)
{
	free(map->boxes);
	free(map->ranges);
	free(map->streams);
}

void map_print_text(FILE *file, const char *text)
{
	char *escaped = escaped_text(text);
	const char *at;

	for (at = escaped; *at; at++) {
		if (strchr("<>&\"'", *at))
			fprintf(file, "&#%d;", *at);
		else
			putc(*at, file);
	}
	free(escaped);
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

/* The colours of the page, too. Streams after the eighth have them again. */
static void write_style(FILE *file, const struct map *map)
{
	size_t i;

	fputs("<style>text{font:12px sans-serif;fill:#333}.axis{stroke:#888}.failed{stroke:#d00;stroke-width:2}", file);
	for (i = 0; i < map->stream_count && i < 8; i++)
		fprintf(file, ".s%zu{fill:hsl(%zu,60%%,50%%)}", i, i * 45 + 210);
	fputs("@media(prefers-color-scheme:dark){text{fill:#ccc}}</style>\n", file);
}

static void write_box(FILE *file, const struct map *map,
		      const struct map_box *box)
{
	double x = x_of(map, box->begin);
	double top = y_of(map, box->place + box->size);

	fprintf(file, "<rect class=\"s%" PRIu64 "\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n",
		box->stream % 8, x, top, x_of(map, box->end) - x,
		y_of(map, box->place) - top);
}

static void write_lines(FILE *file, const struct map *map)
{
	char text[FMLIB_HUMAN_MAX];
	const struct map_range *range;

	for (range = map->ranges; range < map->ranges + map->range_count;
	     range++)
		fprintf(file, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.2f\" y2=\"%.2f\"/>\n",
			MARGIN, WIDTH - MARGIN, y_of(map, range->place),
			y_of(map, range->place));
	fprintf(file, "<text x=\"%d\" y=\"%d\">%s of addresses; %" PRIu64 " events from left to right</text>\n",
		MARGIN, HEIGHT - 8, fmlib_human(map->height, text), map->events);
	if (!map->failures)
		return;
	fprintf(file, "<line class=\"failed\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\"><title>",
		x_of(map, map->failed), x_of(map, map->failed), MARGIN,
		HEIGHT - MARGIN);
	map_print_text(file, map->reason);
	fputs("</title></line>\n", file);
}

void map_write_svg(FILE *file, const struct map *map)
{
	const struct map_box *box;

	fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
		WIDTH, HEIGHT);
	map_print_text(file, map->name);
	fputs("</title>\n", file);
	write_style(file, map);
	for (box = map->boxes; box < map->boxes + map->count; box++)
		write_box(file, map, box);
	fprintf(file, "<text x=\"%d\" y=\"18\">", MARGIN);
	map_print_text(file, map->name);
	if (map->failures) {
		fprintf(file, ": %" PRIu64 " failed, first: ", map->failures);
		map_print_text(file, map->reason);
	}
	fputs("</text>\n", file);
	write_lines(file, map);
	fputs("</svg>\n", file);
}
