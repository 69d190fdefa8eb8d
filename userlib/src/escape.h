/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Names that a tenant chooses: cgroups, commands, tags, files. Also compiled
 * into the flexmem command.
 */
#ifndef FMLIB_ESCAPE_H
#define FMLIB_ESCAPE_H

#include <stddef.h>

/* Room for one escaped character, and a NUL: \xNN for each of four bytes. */
#define FMLIB_ESCAPED_MAX 17

/*
 * Escapes the character at the start of @text, of which @length bytes are left
 * (at least 1). A backslash becomes two. Each byte becomes \xNN if it is no
 * UTF-8, or belongs to a character that controls a terminal, ends a line or
 * changes the direction of the text after it. Other characters stay, so two
 * different names never look the same. Returns how many bytes of @text the
 * character has.
 */
size_t fmlib_escape(const char *text, size_t length,
		    char escaped[FMLIB_ESCAPED_MAX]);

#endif /* FMLIB_ESCAPE_H */
