/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* A picture of a trace: the addresses of its allocations against time. */
#ifndef PICTURE_H
#define PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tool.h"

/*
 * An allocation: from event @begin to before event @end, at @address. @place: where
 * it is in the picture, in bytes from the lowest address. @stream: its number in the
 * list of streams. @line: of the trace.
 */
struct map_box {
	uint64_t begin;
	uint64_t end;
	uint64_t address;
	uint64_t size;
	uint64_t place;
	uint64_t stream;
	uint64_t line;
};

/* Addresses that the picture shows without a gap, from @address on. */
struct map_range {
	uint64_t address;
	uint64_t size;
	uint64_t place;
};

/*
 * @events: how many events are on the axis of time. @height: bytes on the axis of
 * addresses. @failed: the first event that failed, if @reason is not empty.
 */
struct map {
	const char *name;
	struct map_box *boxes;
	size_t count;
	struct map_range *ranges;
	size_t range_count;
	uint64_t *streams;
	size_t stream_count;
	uint64_t events;
	uint64_t height;
	uint64_t failed;
	uint64_t failures;
	char reason[TOOL_TEXT_MAX];
};

/* Places the boxes. Unused addresses are left out of the picture. */
void map_arrange(struct map *map);
void map_clear(struct map *map);

/* Writes the picture: a page that needs no other file, or an image. */
void map_write_page(FILE *file, const struct map *map);
void map_write_svg(FILE *file, const struct map *map);

/* Prints a text, with escapes, so that it is only text in HTML and SVG. */
void map_print_text(FILE *file, const char *text);

#endif /* PICTURE_H */
