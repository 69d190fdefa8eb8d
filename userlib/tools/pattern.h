/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A pattern of bytes that depends on a seed and on the place, so that bytes
 * that are stale, of another place, or of another owner are seen. Knows nothing
 * of devices.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Fills @length bytes with what the pattern has from @offset on. */
void pattern_fill(void *bytes, uint64_t seed, uint64_t offset, size_t length);

/*
 * Returns how many bytes are not what the pattern has there, and in @first the
 * offset in the pattern of the first of them.
 */
uint64_t pattern_check(const void *bytes, uint64_t seed, uint64_t offset,
		       size_t length, uint64_t *first);

#endif /* PATTERN_H */
