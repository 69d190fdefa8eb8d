/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* A picture of a trace or of a device: the addresses of allocations, event by event. */
#ifndef PICTURE_H
#define PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tool.h"

/*
 * What has a colour of its own. @process counts from 0. @key: a stream, a tag or an
 * account.
 */
struct map_group {
	uint32_t process;
	uint64_t key;
};

/*
 * An allocation: from event @begin to before event @end, at @address in a region.
 * @from: the line of the trace, or the client of the device. map_arrange() sets @place,
 * where it is in the picture, in bytes from the lowest address on, and @number, of its
 * group in the list of groups.
 */
struct map_box {
	uint64_t begin;
	uint64_t end;
	uint64_t region_id;
	uint64_t address;
	uint64_t size;
	uint64_t from;
	struct map_group group;
	uint64_t place;
	size_t number;
};

/*
 * An allocation that failed. @reason: a text, or NULL if it is not known. map_arrange()
 * sets @number.
 */
struct map_failure {
	uint64_t event;
	uint64_t bytes;
	uint64_t from;
	const char *reason;
	struct map_group group;
	size_t number;
};

/*
 * Addresses that the picture shows without a gap, from @address on. MAP_NOWHERE in
 * place of a region: for memory whose addresses are not known.
 */
#define MAP_NOWHERE UINT64_MAX

struct map_range {
	uint64_t region_id;
	uint64_t address;
	uint64_t size;
	uint64_t place;
};

/*
 * @source: what @from of a box is: "line" or "client". @ranges: for a device the caller
 * sets them; otherwise map_arrange() does, without the addresses that no box has.
 * @events: how many events are on the axis of time. @height: bytes on the axis of
 * addresses. @tags: those that the keys of groups count from 1 on, or NULL if the keys
 * are streams. @own_tags: how many of these map_clear() frees. @notes: lines of text
 * that need no fmlib_escape().
 */
struct map {
	const char *name;
	const char *source;
	struct map_box *boxes;
	size_t count;
	struct map_range *ranges;
	size_t range_count;
	struct map_group *groups;
	size_t group_count;
	struct map_failure *failures;
	size_t failure_count;
	uint32_t processes;
	char **tags;
	size_t own_tags;
	uint64_t events;
	uint64_t height;
	char **notes;
	size_t note_count;
};

/* Adds a line to the notes. Names in it have their escapes. */
void map_add_note(struct map *map, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Places the boxes, and finds the groups. */
void map_arrange(struct map *map);
void map_clear(struct map *map);

/* Writes the picture: a page that needs no other file, or an image. */
void map_write_page(FILE *file, const struct map *map);
void map_write_svg(FILE *file, const struct map *map);

/* Prints a number of failures and the reason of the first. */
void map_print_failures(FILE *file, const struct map *map);

/* The name of a group, as a text that needs no fmlib_escape(). The caller frees it. */
char *map_group_name(const struct map *map, const struct map_group *group);

/*
 * Prints a text, with escapes, so that it is only text in HTML and SVG. With
 * map_print_name() also characters that fmlib_escape() knows are escaped.
 */
void map_print_text(FILE *file, const char *text);
void map_print_name(FILE *file, const char *name);

#endif /* PICTURE_H */
