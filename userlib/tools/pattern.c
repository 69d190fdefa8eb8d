// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "pattern.h"

#include <string.h>

/*
 * Eight bytes of the pattern. Multiplications by odd numbers and shifted
 * exclusive ors are reversible, so no two words of the same seed are equal.
 */
static uint64_t word(uint64_t seed, uint64_t index)
{
	uint64_t x = index + seed * UINT64_C(0x9e3779b97f4a7c15);

	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	return x;
}

/*
 * Returns the byte at an offset. It does not depend on the byte order of the
 * machine.
 */
static unsigned char byte(uint64_t seed, uint64_t offset)
{
	return (unsigned char)(word(seed, offset / 8) >> (8 * (offset % 8)));
}

void pattern_fill(void *bytes, uint64_t seed, uint64_t offset, size_t length)
{
	unsigned char *to = bytes;
	uint64_t eight;
	size_t i = 0;
	int j;

	while (i < length) {
		if ((offset + i) % 8 || length - i < 8) {
			to[i] = byte(seed, offset + i);
			i++;
			continue;
		}
		eight = word(seed, (offset + i) / 8);
		for (j = 0; j < 8; j++)
			to[i++] = (unsigned char)(eight >> (8 * j));
	}
}

uint64_t pattern_check(const void *bytes, uint64_t seed, uint64_t offset,
		       size_t length, uint64_t *first)
{
	const unsigned char *from = bytes;
	unsigned char expected[512];
	uint64_t bad = 0;
	size_t done;
	size_t part;
	size_t i;

	for (done = 0; done < length; done += part) {
		part = length - done;
		if (part > sizeof(expected))
			part = sizeof(expected);
		pattern_fill(expected, seed, offset + done, part);
		if (!memcmp(from + done, expected, part))
			continue;
		for (i = 0; i < part; i++) {
			if (from[done + i] == expected[i])
				continue;
			if (!bad++)
				*first = offset + done + i;
		}
	}
	return bad;
}
