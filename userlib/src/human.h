/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Sizes as text for users. Also compiled into the flexmem command. */
#ifndef FMLIB_HUMAN_H
#define FMLIB_HUMAN_H

#include <stdint.h>

#define FMLIB_HUMAN_MAX 16

/*
 * Writes @bytes to @text, with one decimal in the largest binary unit that is
 * not above @bytes, like "12.0 GiB". Numbers below 1 KiB are exact, like "128
 * B". Returns @text.
 */
const char *fmlib_human(uint64_t bytes, char text[FMLIB_HUMAN_MAX]);

#endif /* FMLIB_HUMAN_H */
