/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Limits of cgroups: in a file, and on the functions. */
#ifndef CGROUP_LIMITS_H
#define CGROUP_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool.h"

/*
 * What a line of the file sets: the limit of a charge, by its number, or the
 * reservation.
 */
#define LIMITS_RESERVE FLEXMEM_CHARGES
#define LIMITS_AMOUNTS (FLEXMEM_CHARGES + 1)

/*
 * One line of the file. @whose: FLEXMEM_FOR_CGROUP or FLEXMEM_FOR_DEFAULT.
 * @each: it is for each child of the cgroup that has no line of its own; the
 * driver knows no such limits, see limits_expand(). @is_child: it was made for
 * one of these children. @path: of the cgroup, or NULL for the default. @function: a stable id, an address on PCI or an index; NULL: all. @amount: the
 * limits, by charge, and the number of reserved regions. @size: bytes of each
 * reserved region; 0: the size that the driver tries first.
 */
struct limits_line {
	unsigned int number;
	uint32_t whose;
	bool each;
	bool is_child;
	char *path;
	char *function;
	bool sets[LIMITS_AMOUNTS];
	uint64_t amount[LIMITS_AMOUNTS];
	uint64_t size;
};

/* What is wrong with a line. */
struct limits_mistake {
	unsigned int number;
	char *text;
};

struct limits_file {
	struct limits_line *lines;
	size_t count;
	struct limits_mistake *mistakes;
	size_t nr_mistakes;
};

/*
 * limits_file.c: reads a file. Lines with mistakes are left out. Returns 0 or a
 * negative errno. The caller calls limits_file_clear() in either case.
 */
int limits_file_read(struct limits_file *file, const char *name);
void limits_file_clear(struct limits_file *file);
/* The name of an amount of a line: "bytes" and so on, or "reserve". */
const char *limits_amount_name(uint32_t amount);
/*
 * Parses a limit, "none" or a number. Only the limit of bytes may have a unit.
 */
bool limits_parse(uint32_t charge, const char *text, uint64_t *limit);
/* Whether two lines are for the same cgroup, or for the default. */
bool limits_same_owner(const struct limits_line *one,
		       const struct limits_line *other);
/* "cgroup /a", "each child of cgroup /a" or "default". The caller frees it. */
char *limits_owner(const struct limits_line *line);

/*
 * limits_children.c: copies a file. Each line for the children of a cgroup
 * becomes a line for each child that is there now, in the order of their names,
 * without the amounts that another line sets for that child on all functions; the
 * line itself stays if it has no such child. Returns 0, or a negative errno if a
 * directory cannot be read. The caller calls limits_file_clear() for the copy in
 * either case.
 */
int limits_expand(const struct limits_file *file, struct limits_file *expanded);

/* What became of a line. LIMITS_LEFT: nothing was asked for. */
enum limits_state {
	LIMITS_LEFT,
	LIMITS_SET,
	LIMITS_NO_CGROUP,
	LIMITS_NO_FUNCTION,
	LIMITS_FAILED,
};

const char *limits_state_name(enum limits_state state);

/*
 * The outcome of one line. @cgroup: its number, or 0. @functions: on how many it
 * was set. @error, @text: of the first failure; the owner of the array frees
 * @text.
 */
struct limits_outcome {
	enum limits_state state;
	uint64_t cgroup;
	unsigned int functions;
	int error;
	char *text;
};

/*
 * limits_set.c: sets the limits of those lines for which @wanted is set; NULL:
 * of all lines. Reads them back from the driver. @file: from limits_expand().
 * @outcomes has an element for
 * each line of the file. Returns 0, or a negative errno if the functions cannot
 * be listed.
 */
int limits_set(const struct limits_file *file, const bool *wanted,
	       struct limits_outcome *outcomes);
void limits_outcomes_clear(struct limits_outcome *outcomes, size_t count);

/*
 * limits_report.c: reads a file, and prints its mistakes. The caller calls
 * limits_file_clear() in either case.
 */
enum tool_status limits_open(struct tool *tool, const char *name,
			     struct limits_file *file);
/* The verbs of `flexmem limit` for a file. */
enum tool_status limits_check(struct tool *tool, const char *name);
enum tool_status limits_apply(struct tool *tool, const char *name);
/*
 * limits_watch.c: sets the limits of a file, and again whenever a cgroup of the
 * file appears. Returns only after a failure.
 */
enum tool_status limits_watch(struct tool *tool, const char *name);

/*
 * The limits that are in effect for a cgroup, and what sets them, by charge.
 * @known: whether the driver shows this cgroup. @own: the limit of the cgroup
 * itself. @limit: the smallest limit of the cgroup and all cgroups above it.
 * @by: the number of the cgroup that has this limit. The caller frees @path,
 * which is that cgroup's path or NULL.
 */
struct limits_effect {
	bool known;
	struct {
		uint64_t own;
		uint64_t used;
		uint64_t limit;
		uint64_t by;
		char *path;
	} charge[FLEXMEM_CHARGES];
};

/* limits_effect.c: both return 0 or a negative errno. */
int limits_effect_read(struct flexmem_device *device, uint64_t cgroup,
		       struct limits_effect *effect);
void limits_effect_clear(struct limits_effect *effect);

#endif /* CGROUP_LIMITS_H */
