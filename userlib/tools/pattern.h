/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A pattern of bytes that depends on a seed and on the offset. So a check
 * notices old bytes, and bytes of another offset or owner. Uses no device.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Fills @length bytes with the pattern from @offset on. */
void pattern_fill(void *bytes, uint64_t seed, uint64_t offset, size_t length);

/*
 * Returns the number of bytes that differ from the pattern. @first receives the
 * offset of the first such byte in the pattern.
 */
uint64_t pattern_check(const void *bytes, uint64_t seed, uint64_t offset,
		       size_t length, uint64_t *first);

#endif /* PATTERN_H */
