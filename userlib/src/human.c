// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "human.h"

#include <stdio.h>

const char *fmlib_human(uint64_t bytes, char text[FMLIB_HUMAN_MAX])
{
	static const char units[][4] = { "KiB", "MiB", "GiB",
					 "TiB", "PiB", "EiB" };
	unsigned int unit = 0;
	uint64_t rest;
	uint64_t whole;

	if (bytes < 1024) {
		snprintf(text, FMLIB_HUMAN_MAX, "%u B", (unsigned int)bytes);
		return text;
	}
	while (unit < 5 && bytes >> (10 * (unit + 2)))
		unit++;

	/*
	 * First, @rest is the whole value in 1/1024 of the unit. The tenths are
	 * computed from its low ten bits only, so nothing overflows.
	 */
	rest = bytes >> (10 * unit);
	whole = rest >> 10;
	rest = ((rest & 1023) * 10 + 512) >> 10;
	if (rest == 10) {
		rest = 0;
		whole++;
	}
	if (whole == 1024 && unit < 5) {
		whole = 1;
		unit++;
	}
	snprintf(text, FMLIB_HUMAN_MAX, "%u.%u %s", (unsigned int)whole,
		 (unsigned int)rest, units[unit]);
	return text;
}
